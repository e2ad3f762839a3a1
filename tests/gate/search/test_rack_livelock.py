"""A group that never settles for its racks and unequal subscriptions, in Kafka's own assignor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import process
from tests.live.code.played import RELEASE, needs_java

TARGET = "java:org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
CAUSE = "never+unequal+racks"


@needs_java
@pytest.mark.nightly
def test_it_is_found_on_four_seeds_of_five_and_made_small(tmp_path: Path) -> None:
    """At most three members and eight partitions."""
    sizes = []
    jar = f"org.apache.kafka:kafka-clients:{RELEASE}"
    search = ("--profile", "ci", "--clause", "kip429/converge/1")
    for seed in range(5):
        out = tmp_path / str(seed)
        report = ("--report", "json", "--report-dir", str(out))
        process("check", TARGET, "--maven", jar, *search, "--seed", str(seed), *report, cwd=tmp_path)
        report = json.loads((out / "report.json").read_text())
        causes = [cause for clause in report["clauses"] for cause in clause["causes"]]
        sizes += [cause["size"] for cause in causes if cause["cause"] == CAUSE]
    assert len(sizes) >= 4
    assert all(size["members"] <= 3 and size["partitions"] <= 8 for size in sizes)
