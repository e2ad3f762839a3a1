"""Findings are linked to the catalogue: by what in the log shows a mistake, and by releases and assignors."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.model.bugs.catalogue import CATALOGUE
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.pipeline.audit.diagnosis import BREAKS, EVIDENCE, BugLink, sentences
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import _client, given, incident, joined, rejoining, started, taken


def audit(tmp_path, lines, release="3.4.0", assignor="cooperative-sticky"):
    files = shapes.per_pod(sorted(lines, key=lambda one: one.second))
    changes = (b"3.4.0", release.encode()), (b"cooperative-sticky", assignor.encode())
    for old, new in changes:
        files = {name: data.replace(old, new) for name, data in files.items()}
    paths = shapes.write(files, tmp_path / "logs")
    found = run_audit(AuditPlan(paths=tuple(paths), out=tmp_path / "out"))
    (finding,) = (one for one in found.findings if one.check in ("owned-twice", "granted-before-revoked"))
    return found.diagnoses[finding.id], sentences(found.diagnoses[finding.id])


def late():
    """The second of three is slow to sync, misses a generation, and its claim does not count any more."""
    return [
        *started(0, 0), *started(0, 1),
        *joined(3, 1, 0, 1, leader=0, plan="t-0|t-1"), given(3.2, 0, "t-0"), given(3.2, 1, "t-1"),
        *started(30, 2), *rejoining(31, 0), *rejoining(31, 1),
        *joined(33, 2, 0, 2, leader=0, plan="t-0|"),
        *rejoining(34, 0, 2),
        *joined(35, 3, 0, 1, 2, leader=0, plan="t-0||t-1"),
        given(35.2, 2, "t-1"), taken(36, 1, "t-1"),
    ]  # fmt: skip


def forgetful():
    """The second is removed, loses nothing, and claims again what another is given with it."""
    lines = late()
    lines.append(
        _client(
            32,
            1,
            "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from "
            "HEARTBEAT response",
            "AbstractCoordinator",
        )
    )
    return lines


def bugs(diagnoses, *, shown):
    return [one.bug for one in diagnoses if one.shown is shown]


def test_a_late_member_whose_claim_does_not_count_is_j4(tmp_path):
    found, (sentence,) = audit(tmp_path, late())
    assert bugs(found, shown=True) == ["J4"]
    assert sentence.startswith("this is J4, fixed in 3.4.1: A member that is late by one generation")
    assert "java 3.4.0; orders@orders-7d9fbc5d4-k8s9q.log missed generation 2" in sentence


@pytest.mark.parametrize(
    ("release", "assignor"), [("3.4.1", "cooperative-sticky"), ("3.4.0", "range"), ("2.8.0", "sticky")]
)
def test_a_release_or_an_assignor_without_it_is_not_accused(tmp_path, release, assignor):
    found, _ = audit(tmp_path, late(), release, assignor)
    assert "J4" not in [one.bug for one in found]


def test_who_claims_what_it_lost_is_one_of_two(tmp_path):
    found, texts = audit(tmp_path, forgetful(), "2.7.1")
    assert bugs(found, shown=True) == ["U13", "J1"]
    assert any("this is J1, fixed in 2.7.2" in one for one in texts)
    assert all("had lost its membership at 18:00:32" in one for one in texts)


def test_what_the_log_would_show_and_what_no_release_is_without_is_not_named(tmp_path):
    """The owner was in every generation, so it is not J4; U11 is fixed nowhere."""
    assert audit(tmp_path, incident()) == ((), [])


def test_what_no_log_can_show_may_be_what_a_later_release_is_without(tmp_path):
    found, (sentence,) = audit(tmp_path, incident(), "2.4.1", "sticky")
    assert bugs(found, shown=True) == []
    assert found
    assert all(one.fixed and one.bug not in EVIDENCE for one in found)
    assert sentence.startswith("may be ")
    assert sentence.endswith("rebalance bugs ID says what that is")


def test_without_a_release_nothing_is_linked(tmp_path):
    lines = [one for one in incident() if not one.text.startswith("Kafka version")]
    assert audit(tmp_path, lines) == ((), [])


def test_the_consumer_protocol_has_mistakes_of_its_own(tmp_path):
    found, _ = audit(tmp_path, incident(), "4.1.0")
    assert not any(one.bug.startswith("N") for one in found)


def test_what_the_tables_name_is_there():
    codes = {code for entry in CATALOGUE.values() for code in entry.breaks}
    assert set(BREAKS) <= set(CHECKS)
    assert set(BREAKS.values()) <= codes
    for name in EVIDENCE:
        assert CATALOGUE[name].affected.startswith("Java")
        assert set(CATALOGUE[name].breaks) & set(BREAKS.values())


def test_one_that_is_not_fixed_says_so():
    one = BugLink("U11", "a", "java", "4.3.1", "", "it is seen")
    assert sentences([one])[0].startswith("this is U11, not fixed yet: JoinGroup claims")
    assert version("3.4.0") < version("3.4.1")
