"""Findings that are known: what a list allows, and that their ids stay when other logs are read besides."""

from __future__ import annotations

from datetime import date

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.known import KnownError
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit import known
from rebalance_verifier.pipeline.audit.known import KnownFinding
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import deploy, incident

TWICE, ZOMBIE = "owned-twice", "owned-by-zombie"


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    shapes.write(shapes.per_pod(incident()), folder)
    return folder


def audit(tmp_path, *paths, **more):
    out = tmp_path / "out"
    return run_audit(AuditPlan(paths=tuple(map(str, paths)), out=out, **more))


def ids(found):
    return {one.check: one.id for one in found.findings if one.group == "billing"}


def test_ids_stay_when_other_logs_are_read_besides(logs, tmp_path):
    before = ids(audit(tmp_path, logs))
    assert set(before) == {TWICE, ZOMBIE}
    other = [one._replace(text=one.text.replace("groupId=billing", "groupId=other")) for one in deploy()]
    shapes.write({f"b-{name}": data for name, data in shapes.per_pod(other).items()}, logs / "elsewhere")
    (logs / "broker.log").write_text("2026-11-21 18:00:13,001 INFO Stabilized group billing generation 2\n")
    shapes.write({"application.log": b"2026-11-21 18:00:00,000 INFO hello\n"}, tmp_path / "more")
    after = audit(tmp_path, logs, tmp_path / "more")
    assert after.groups == 2
    assert ids(after) == before
    moved = tmp_path / "archive" / "november"
    moved.parent.mkdir()
    logs.rename(moved)
    assert ids(audit(tmp_path, tmp_path / "archive")) == before


@pytest.mark.covering("verdict")
@pytest.mark.parametrize(
    ("patterns", "left", "unmatched", "verdict"),
    [
        (["ID"], [ZOMBIE], 0, Verdict.VIOLATION),
        ([TWICE], [ZOMBIE], 0, Verdict.VIOLATION),
        (["* group=bill*"], [], 0, Verdict.CONFORMANT),
        (["* partition=t-[1]", "stranded"], [TWICE], 1, Verdict.VIOLATION),
        ([f"{TWICE} group=other", f"{TWICE} partition=t-1"], [TWICE, ZOMBIE], 2, Verdict.VIOLATION),
        (["0123456789ab"], [TWICE, ZOMBIE], 1, Verdict.VIOLATION),
    ],
)
def test_what_a_list_allows_is_not_counted(logs, tmp_path, patterns, left, unmatched, verdict):
    id_ = ids(audit(tmp_path, logs))[TWICE]
    listed = known.read([pattern.replace("ID", id_) for pattern in patterns])
    found = audit(tmp_path, logs, known=listed)
    assert [one.check for one in found.findings] == left == [one.check for one in found.tallies]
    assert found.known == 2 - len(left)
    assert len(found.unmatched) == unmatched
    assert found.verdict is verdict
    assert {one.finding.check for one in found.recordings} == set(left)


def test_a_line_allows_nothing_when_its_time_is_over(logs, tmp_path):
    text = f"{TWICE} # issue 7 until=2020-02-01\n{ZOMBIE} # issue 8 until=9999-12-31\n"
    (tmp_path / "known.txt").write_text(text)
    listed = known.read([f"@{tmp_path / 'known.txt'}"])
    found = audit(tmp_path, logs, known=listed)
    assert [one.check for one in found.findings] == [TWICE]
    assert [entry.where for entry in found.unmatched] == [f"{tmp_path / 'known.txt'}:1"]
    (finding,) = found.findings
    assert found.plan.wants(finding, date(2021, 1, 1))
    assert not found.plan.wants(finding, date(2020, 2, 1))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("owned-twise", "no check is called 'owned-twise': did you mean owned-twice"),
        ("0123456789ab group=g", "no id of a finding"),
        ("stranded topic=t", "'topic=t' in 'stranded topic=t': write group=NAME or partition=TOPIC-NUMBER"),
        ("stranded group=", "write group=NAME"),
        (" ", "'' is no id of a finding"),
    ],
)
def test_what_is_no_pattern_says_what_would_be(pattern, message):
    with pytest.raises(KnownError, match=message):
        known.read([pattern])


def test_an_entry_means_what_it_says():
    entry = KnownFinding(pattern="stranded group=a?c partition=t-*")
    assert entry.matches("0" * 12, "stranded", "abc", "t-7")
    assert not entry.matches("0" * 12, "stranded", "abc", "")
    assert not entry.matches("0" * 12, "long-pause", "abc", "t-7")
