"""From rows to a verdict, with and without lists of known failures: each word of the rules, one at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.gate.search import known
from rebalance_verifier.gate.search.causes.attribution import Cause
from rebalance_verifier.gate.search.judgement import allow, judge
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach

from tests.report.handmade import finding, result, row

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
TODAY = date(2027, 1, 31)
SAFETY, LIVENESS, QUALITY = "kip429/leader/4", "kip429/leader/5", "kip54/balance/1"


def cause(clause: str, kind: str, broken: int = 1) -> Finding:
    made: Finding = finding(clause, (), 1, Breach(summary=f"broken by {kind}", kind=kind))
    return replace(made, cause=Cause(kind, ()), broken=broken)


def violated(clause: str, *kinds: str, broken: int | None = None) -> ClauseResult:
    """Broken for causes of these kinds, in one scenario each unless it is in more."""
    first, *others = [cause(clause, kind) for kind in kinds] or [finding(clause, (), 1, Breach(summary="x"))]
    broken = len(kinds) if broken is None else broken
    found = row(clause, status=Status.VIOLATED, finding=first, others=tuple(others), broken=broken)
    assert isinstance(found, ClauseResult)
    return found


def judged(*rows: ClauseResult, failing: str = "", flaky: str = "", **fields: object) -> Result:
    """What lists with these lines make of the rows."""
    return allow(
        result(*rows, **fields), known.parse(failing, "known.txt"), known.parse(flaky, "flaky.txt"), TODAY
    )


def statuses(made: Result) -> list[Status]:
    return [clause.status for clause in made.clauses]


# --- the verdict -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "clause", "verdict"),
    [
        ("safety", SAFETY, Verdict.VIOLATION),
        ("safety", LIVENESS, Verdict.CONFORMANT),
        ("liveness", LIVENESS, Verdict.VIOLATION),
        ("liveness", QUALITY, Verdict.CONFORMANT),
        ("quality", QUALITY, Verdict.VIOLATION),
    ],
)
def test_a_violation_of_the_level_is_the_verdict(level, clause, verdict):
    made = judge(result(row("assign/1"), violated(clause), level=level))
    assert (made.verdict, made.exit == Exit.VIOLATION) == (verdict, verdict is Verdict.VIOLATION)


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.VIOLATED, Status.UNCONFIRMED)])
def test_what_is_no_violation_leaves_a_run_conformant(status):
    made = judge(result(row(SAFETY, status=status)))
    stale = status is Status.FIXED
    assert (made.verdict, made.exit) == (Verdict.CONFORMANT, Exit.VIOLATION if stale else Exit.CONFORMANT)


def test_a_doubt_alone_and_an_interruption_alone_are_inconclusive():
    doubt, interrupted = result(missed=("racks",)), result(interrupted=True)
    assert (judge(doubt).verdict, judge(doubt).exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)
    assert (judge(interrupted).verdict, judge(interrupted).exit) == (Verdict.INCONCLUSIVE, Exit.INTERRUPTED)


def test_a_violation_outweighs_a_doubt_and_a_doubt_a_stale_line():
    both = judge(result(violated(SAFETY), missed=("racks",)))
    assert (both.verdict, both.exit) == (Verdict.VIOLATION, Exit.VIOLATION)
    stale = judge(result(row(SAFETY, status=Status.FIXED), missed=("racks",), stale_known=("x",)))
    assert (stale.verdict, stale.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)


def test_an_interrupted_violation_is_one_and_has_the_exit_code_of_the_interruption():
    made = judge(result(violated(SAFETY), interrupted=True))
    assert (made.verdict, made.exit) == (Verdict.VIOLATION, Exit.INTERRUPTED)


@pytest.mark.parametrize(("level", "doubts"), [("safety", 0), ("liveness", 1)])
def test_what_was_seen_once_is_a_doubt_where_it_would_fail_the_run(level, doubts):
    made = judge(result(row(LIVENESS, status=Status.UNCONFIRMED), level=level))
    assert len(made.doubts) == doubts
    assert made.verdict is (Verdict.INCONCLUSIVE if doubts else Verdict.CONFORMANT)


# --- what is known -----------------------------------------------------------------------------------


def test_a_row_is_known_if_each_of_its_causes_is():
    both = f"{SAFETY}@late # one\n{SAFETY}@never # two"
    made = judged(violated(SAFETY, "late", "never"), failing=both)
    assert statuses(made) == [Status.KNOWN]
    assert (made.verdict, made.exit, made.clauses[0].note) == (Verdict.CONFORMANT, Exit.CONFORMANT, "one")


@pytest.mark.parametrize("listed", ["late", "never"])
def test_a_row_is_new_if_one_of_its_causes_is(listed):
    made = judged(violated(SAFETY, "late", "never"), failing=f"{SAFETY}@{listed} # why")
    assert (statuses(made), made.verdict) == ([Status.VIOLATED], Verdict.VIOLATION)
    [new, old] = made.clauses[0].findings
    assert new.cause != old.cause
    assert (new.known, old.cause and old.cause.id) == ("", listed)
    assert old.known == f"{SAFETY}@{listed} (known.txt:1)"


def test_a_row_for_which_nobody_asked_why_is_known_by_its_clause_alone():
    assert statuses(judged(violated(SAFETY), failing=f"{SAFETY} # why")) == [Status.KNOWN]
    assert statuses(judged(violated(SAFETY), failing=f"{SAFETY}@late # why")) == [Status.VIOLATED]


def test_a_line_of_another_clause_or_protocol_or_day_allows_nothing():
    for line in (f"{LIVENESS} # x", f"{SAFETY}-eager # x", f"{SAFETY} # x until=2027-01-30"):
        assert statuses(judged(violated(SAFETY, "late"), failing=line)) == [Status.VIOLATED]
    assert statuses(judged(violated(SAFETY, "late"), failing=f"{SAFETY} # x until=2027-01-31")) == [
        Status.KNOWN
    ]


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.UNTESTED, Status.UNCONFIRMED])
def test_a_list_says_nothing_of_what_was_not_judged(status):
    lines = f"{SAFETY} # why"
    assert statuses(judged(row(SAFETY, status=status), failing=lines, flaky=lines)) == [status]


@pytest.mark.parametrize("status", [Status.PASSED, Status.VIOLATED])
def test_what_is_flaky_may_pass_or_fail_and_is_not_missed(status):
    one = violated(SAFETY, "late") if status is Status.VIOLATED else row(SAFETY)
    made = judged(one, flaky=f"{SAFETY} # now and then")
    assert (statuses(made), made.clauses[0].note) == ([Status.FLAKY], "now and then")
    assert (made.verdict, made.exit, made.stale_known) == (Verdict.CONFORMANT, Exit.CONFORMANT, ())


# --- what is known and not needed any more -----------------------------------------------------------


def test_a_line_is_not_needed_if_all_that_it_means_holds():
    made = judged(row(SAFETY), row(LIVENESS), failing=f"{SAFETY} # why")
    assert statuses(made) == [Status.FIXED, Status.PASSED]
    assert made.clauses[0].note == f"{SAFETY} (known.txt:1)"
    assert (made.verdict, made.exit) == (Verdict.CONFORMANT, Exit.VIOLATION)


def test_a_line_is_needed_if_something_that_it_means_is_broken():
    made = judged(row("kip429/leader/5"), violated(SAFETY, "late"), failing="kip429/** # why")
    assert (statuses(made), made.exit) == ([Status.PASSED, Status.KNOWN], Exit.CONFORMANT)


@pytest.mark.parametrize("fields", [{"missed": ("the budget is spent",)}, {"interrupted": True}])
def test_a_search_that_did_not_come_to_its_end_makes_no_line_needless(fields):
    made = judged(row(SAFETY), failing=f"{SAFETY} # why\n{LIVENESS}@late # why", **fields)
    assert (statuses(made), made.stale_known) == ([Status.PASSED], ())
    partly = judged(violated(SAFETY, "late"), failing=f"{SAFETY}@late # a\n{SAFETY}@never # b", **fields)
    assert (statuses(partly), partly.stale_known) == ([Status.KNOWN], ())


def test_a_cause_that_is_not_seen_any_more_is_stale_where_all_causes_are_known():
    lines = f"{SAFETY}@late # a\n{SAFETY}@never # b"
    [stale] = judged(violated(SAFETY, "late"), failing=lines).stale_known
    assert f"{SAFETY}@never" in stale
    # Some scenarios break it for a cause that nobody looked into: it may be this one.
    assert judged(violated(SAFETY, "late", broken=2), failing=lines).stale_known == ()
    # Each cause accounts for its scenarios.
    third = f"{lines}\n{SAFETY}@tied # c"
    [gone] = judged(violated(SAFETY, "late", "never"), failing=third).stale_known
    assert f"{SAFETY}@tied" in gone
    # A line without a cause is for whatever breaks it.
    whole = f"{SAFETY}@late # a\n{LIVENESS} # b"
    assert judged(violated(SAFETY, "late"), failing=whole).stale_known == ()


def test_a_line_that_means_no_clause_of_the_target_is_stale_whatever_was_run():
    lines = "assing/1 # misspelt\nassign/1 # not run\nkip881/rack/1 # not promised\nassign/1-consumer # no"
    made = judged(row(SAFETY), failing=lines)
    assert [line.partition(" ")[0] for line in made.stale_known] == [
        "assing/1",
        "kip881/rack/1",
        "assign/1-consumer",
    ]
    assert (made.verdict, made.exit) == (Verdict.CONFORMANT, Exit.VIOLATION)


def test_of_another_protocol_than_those_of_the_target_is_stale_too():
    only = replace(result().target, protocols=("eager",))
    made = judged(row("assign/1", EAGER), failing=f"{SAFETY} # why\nassign/1-cooperative # why", target=only)
    assert len(made.stale_known) == 2
