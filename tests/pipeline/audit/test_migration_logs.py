"""One group with members of both protocols: what Java, librdkafka and the broker log of a migration."""

from __future__ import annotations

import json
from pathlib import Path

from rebalance_verifier.pipeline.audit.sources import local

from tests.command import Rebalance

LOGS = Path(__file__).parent / "logs" / "migration"
"""Those of ``examples/recordings/migration``, without what names offsets and configuration."""
RECORDED = Path(__file__).parents[3] / "examples" / "recordings" / "migration" / "events.jsonl"


def generations(kinds: tuple[str, ...], paths: list[str]) -> dict[str, list[int]]:
    """Consumer -> the generations or epochs that it was told, in order."""
    found: dict[str, list[int]] = {}
    rows = sorted(local.read(paths).events, key=lambda row: (row.at, row.file, row.line))
    for row in rows:
        if row.kind in kinds and row.generation is not None and row.consumer:
            mine = found.setdefault(row.consumer.split("#")[0].split("@")[0], [])
            if mine[-1:] != [row.generation]:
                mine.append(row.generation)
    return found


def test_both_kinds_of_client_tell_one_row_of_epochs_and_generations() -> None:
    kinds = ("joined", "synced")
    logged = generations(kinds, [str(path) for path in sorted(LOGS.glob("*.gz"))])
    recorded = generations(kinds, [str(RECORDED)])
    assert set(logged) == set(recorded) == {"java-4.4.0-1", "confluent-1"}
    assert logged["confluent-1"] == recorded["confluent-1"]
    # A Java consumer does not log an epoch in which nothing changes for it.
    assert set(logged["java-4.4.0-1"]) <= set(recorded["java-4.4.0-1"])
    assert len(logged["java-4.4.0-1"]) >= len(recorded["java-4.4.0-1"]) // 2


def test_nobody_owned_twice(rebalance: Rebalance, tmp_path: Path) -> None:
    ran = rebalance("audit", LOGS, "--format", "json", "--out", tmp_path / "out")
    report = json.loads(ran.out)
    assert (ran.code, report["verdict"]) == (0, "conformant")
    assert {one["level"] for one in report["findings"]} <= {"quality"}
