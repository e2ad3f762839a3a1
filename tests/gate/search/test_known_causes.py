"""Lists of known failures by cause: an entry allows one cause of a clause and hides no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from rebalance_verifier.base.known import KnownError
from rebalance_verifier.gate.search import known
from rebalance_verifier.gate.search.causes.attribution import Cause
from rebalance_verifier.gate.search.known import KnownFailure
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Status
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import Scenario

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
CLAUSE, KEY = "kip429/converge/1", "kip429/converge/1-cooperative"
TODAY = date(2027, 1, 31)


def finding(kind: str, *features: str, protocol: RebalanceProtocol = COOPERATIVE) -> Finding:
    return Finding(
        clause=CLAUSES[CLAUSE],
        protocol=protocol,
        breach=Breach(summary=f"broken by {kind}", kind=kind),
        scenario=Scenario(protocol=protocol, topics={}, members=()),
        round=1,
        calls=(),
        seed=7,
        number=1,
        found_size=(1, 1, 1, 1),
        confirmed=True,
        cause=Cause.of(kind, features),
    )


NEVER, LATE = finding("never", "racks", "unequal"), finding("late", "racks")


def row(*found: Finding, status: Status = Status.VIOLATED) -> ClauseResult:
    first, *others = found or (None,)
    return ClauseResult(
        clause=CLAUSES[CLAUSE], protocol=COOPERATIVE, status=status, finding=first, others=tuple(others)
    )


@pytest.mark.parametrize(
    ("pattern", "name", "means"),
    [
        (f"{CLAUSE}@late+racks", f"{KEY}@late+racks", True),
        (f"{KEY}@late+racks", f"{KEY}@late+racks", True),
        (f"{CLAUSE}-eager@late+racks", f"{KEY}@late+racks", False),
        (f"{CLAUSE}@late+racks", f"{KEY}@never+unequal+racks", False),
        (f"{CLAUSE}@late+racks", f"{KEY}@late+racks+phantom", False),
        (f"{CLAUSE}@late+racks", f"{KEY}@late", False),
        (f"{CLAUSE}@late+racks", KEY, False),
        (CLAUSE, f"{KEY}@late+racks", True),
        ("kip429/**@late+racks", f"{KEY}@late+racks", True),
        ("kip54/**@late+racks", f"{KEY}@late+racks", False),
    ],
)
def test_an_entry_with_a_cause_means_that_one(pattern: str, name: str, means: bool) -> None:
    assert KnownFailure(pattern=pattern).matches(name) is means


@pytest.mark.parametrize("pattern", ["a/1@", "a/1@late+", "a/1@*", "a/1@late@racks"])
def test_what_names_no_cause_is_refused(pattern: str) -> None:
    with pytest.raises(KnownError, match="names no cause"):
        known.parse(f"{pattern} # why", "x")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (f"{CLAUSE}@unequl", "no cause is called 'unequl': did you mean unequal?"),
        (f"{CLAUSE}@late+rack", "no cause is called 'rack': did you mean racks?"),
        ("kip429/**@plain+unequal", "no cause is called 'plain'"),
        (f"{CLAUSE}@ValueError", "no cause is called 'ValueError'"),
        (f"{CLAUSE}@racks+unequal", "a report has it as @unequal+racks"),
        (f"{CLAUSE}@unequal+late", "no cause is called 'late'"),
        ("assign/4@ValueError+unequl", "no cause is called 'unequl'"),
    ],
)
def test_a_cause_that_no_report_names_is_refused_before_the_search(pattern: str, reason: str) -> None:
    for read in (lambda: known.parse(f"{pattern} # why", "list.txt"), lambda: known.read([pattern])):
        with pytest.raises(KnownError) as refused:
            read()
        assert reason in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    [
        f"{CLAUSE}@plain",
        f"{CLAUSE}@stranded",
        "assign/4@ValueError+unequal",
        "**@timeout",
        "assign/**@errored",
    ],
)
def test_a_cause_that_a_report_may_name_is_taken(pattern: str) -> None:
    assert known.read([pattern])[0].pattern == pattern


def test_one_cause_that_is_known_does_not_allow_another() -> None:
    entries = known.parse(f"{CLAUSE}@late+racks # https://example.org/1", "x")
    late, never = known.causes_of(row(LATE, NEVER))
    assert known.match(entries, late, TODAY) == entries[0]
    assert known.match(entries, never, TODAY) is None


def test_of_a_clause_that_ran_a_cause_that_was_not_seen_is_unmatched() -> None:
    entries = known.parse(f"{CLAUSE}@late+racks # a\n{CLAUSE}@never+unequal+racks # b", "x")
    names = known.causes_of(row(LATE))
    assert known.unmatched(entries, names) == entries[1:]
    assert known.unmatched(entries, names, by_cause=False) == ()


def test_write_names_each_cause() -> None:
    text = known.write([row(LATE, NEVER)])
    assert text == (
        f"{CLAUSE}@late+racks           # no issue yet: broken by late\n"
        f"{CLAUSE}@never+unequal+racks  # no issue yet: broken by never\n"
    )
    assert known.write([row(LATE, NEVER)], known.parse(text, "x")) == text


def test_write_drops_a_cause_that_is_gone_and_keeps_the_reason_of_the_other() -> None:
    old = known.parse(f"{CLAUSE}@late+racks # one\n{CLAUSE}@never+unequal+racks # two", "x")
    assert known.write([row(NEVER)], old) == f"{CLAUSE}@never+unequal+racks  # two\n"
    assert known.write([row(status=Status.PASSED)], old) == ""


def test_an_entry_for_the_clause_stays_as_long_as_it_is_broken_by_anything() -> None:
    old = known.parse(f"{CLAUSE} # all of it", "x")
    assert known.write([row(LATE, NEVER)], old) == f"{CLAUSE}  # all of it\n"


def test_a_cause_under_one_protocol_only_is_written_for_it() -> None:
    eager = replace(row(finding("late", "racks", protocol=EAGER)), protocol=EAGER)
    text = known.write([eager, row(NEVER)])
    assert [entry.pattern for entry in known.parse(text, "x")] == [
        f"{KEY}@never+unequal+racks",
        f"{CLAUSE}-eager@late+racks",
    ]
