"""One incident in the shapes that operators have it in, and healthy logs, through the whole audit."""

from __future__ import annotations

import gzip
from itertools import takewhile
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.pipeline.audit.sources.times import stamp, text_of
from rebalance_verifier.pipeline.audit.tables import micros

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import deploy, incident

REAL = Path(__file__).parent / "logs"

HEALTHY = {
    "billing": ("cooperative-2.4.1.log", "cooperative-3.9.1.json.log.gz", "cooperative-4.2.0.log.bz2"),
    "billing with its broker": ("cooperative-*", "broker-4.1.0.log"),
    "shipping": ("range-2.3.1.log", "range-2.8.2.log", "range-3.5.2.log"),
    "modern": ("kip848-4.2.0.log.gz",),
    "librdkafka, cooperative": ("librdkafka-2.16.0-cooperative.log.gz",),
    "librdkafka, range": ("librdkafka-2.16.0-range.python.log.gz",),
}
"""Real logs, of processes that are stopped, killed and slow, in groups that keep every rule."""

ZOMBIES = ("billing", "billing with its broker")
"""A process was so slow that another read its records for 2.6 seconds: no rule is broken, and it counts."""


def audit(tmp_path, *paths, **more):
    return run_audit(AuditPlan(paths=tuple(map(str, paths)), out=tmp_path / "out", **more))


@pytest.mark.covering
@pytest.mark.parametrize("shape", shapes.APART, ids=lambda shape: shape.__name__)
def test_the_incident_is_found_in_every_shape_that_tells_pods_apart(shape, tmp_path):
    found = audit(tmp_path, *shapes.write(shape(incident()), tmp_path / "logs"))
    twice, zombie = found.findings
    assert found.verdict is Verdict.VIOLATION
    assert (twice.check, twice.about, twice.certain) == ("owned-twice", "t-0", True)
    assert (zombie.check, zombie.about, zombie.certain) == ("owned-by-zombie", "t-1", True)
    assert twice.seconds == pytest.approx(9.0, abs=0.001)
    assert zombie.seconds == pytest.approx(21.0, abs=0.001)
    (group,) = found.worst
    assert (group.consumers, group.partitions) == (3, 2)


def test_where_nothing_tells_them_apart_it_is_inconclusive_and_says_why(tmp_path):
    found = audit(tmp_path, *shapes.write(shapes.merged(incident()), tmp_path / "logs"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not any(one.certain for one in found.findings)
    (note,) = found.notes
    assert "several processes share this client id" in note.text


def test_logs_of_two_clusters_are_inconclusive_and_it_says_which(tmp_path):
    """Each alone is in order; in one directory each partition of the name has two owners."""
    files = shapes.per_pod(deploy())
    elsewhere = {f"staging/{name}": shapes.in_another_cluster(text) for name, text in files.items()}
    one, other = (
        audit(tmp_path, *shapes.write(logs, tmp_path / name))
        for name, logs in (("a", files), ("b", elsewhere))
    )
    assert (one.verdict, other.verdict) == (Verdict.CONFORMANT, Verdict.CONFORMANT)
    both = audit(tmp_path, tmp_path / "a", tmp_path / "b")
    assert both.verdict is Verdict.INCONCLUSIVE
    assert any(found.check == "owned-twice" for found in both.findings)
    assert not any(found.certain for found in both.findings)
    (note,) = both.notes
    assert note.group == "billing"
    assert note.text.startswith("billing is the name of 2 groups: orders@a/orders-")
    assert "in cluster 4L6g3nShT-eMCtK--X86sw" in note.text
    assert "in cluster nObOdYsShT-eMCtK--X86s" in note.text


@pytest.mark.covering
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_is_conformant(name, tmp_path):
    paths = [REAL / file for file in HEALTHY[name]]
    found = audit(tmp_path, *paths, date="2026-11-21", level="safety")
    assert found.verdict is Verdict.CONFORMANT
    zombies = {"owned-by-zombie"} if name in ZOMBIES else set()
    assert {one.check for one in found.findings if one.level != "quality"} == zombies
    assert found.events > 50


@pytest.mark.covering
@pytest.mark.parametrize("shape", [shapes.per_pod, shapes.stern, shapes.loki], ids=lambda one: one.__name__)
def test_a_rolling_deploy_and_two_quiet_hours_are_conformant(shape, tmp_path):
    found = audit(tmp_path, *shapes.write(shape(deploy()), tmp_path / "logs"))
    assert found.verdict is Verdict.CONFORMANT
    assert {one.check for one in found.findings} <= {"rebalance-storm"}, "ten generations in ten minutes"
    (group,) = found.worst
    assert group.settled


FIXTURES = {"one client": "kip848-*.gz", "a migration": "migration/*.gz"}


@pytest.mark.covering("files")
@pytest.mark.parametrize("files", FIXTURES.values(), ids=FIXTURES)
@pytest.mark.parametrize("tenth", range(10))
def test_a_log_of_the_consumer_protocol_that_is_cut_is_never_certain_and_wrong(files, tenth, tmp_path):
    """Wherever it ends, and nothing is said for ten minutes: a member's epoch is just not logged again."""
    logs = {
        path.name: [(stamp(line), line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        for path in sorted(REAL.glob(files))
    }
    lines = sorted((at, line) for several in logs.values() for at, line in several if at)
    first = next(at for at, line in lines if " transitioned from JOINING " in line)
    cut = Random(tenth).choice([at for at, line in lines if "[Consumer clientId=" in line and at >= first])
    for name, several in logs.items():
        kept = [line for _, line in takewhile(lambda one: one[0] is None or one[0] <= cut, several)]
        later = f"{text_of(cut + 600_000_000)} INFO application : nothing new"
        (tmp_path / name.removesuffix(".gz")).write_text("\n".join([*kept, later]))
    found = audit(tmp_path, tmp_path)
    assert found.until is not None
    assert micros(found.until) == cut + 600_000_000
    assert not [one for one in found.findings if one.certain and one.level != "quality"]
