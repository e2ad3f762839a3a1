"""The check engine, on tiny assignors in this process: what it finds, when it stops, what it concludes."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.scenarios.preconditions import present
from rebalance_verifier.gate.search import findings, resume
from rebalance_verifier.gate.search import plan as planning
from rebalance_verifier.gate.search import search as searching
from rebalance_verifier.gate.search.causes.attribution import BreakingScenario, plainest, realism
from rebalance_verifier.gate.search.findings import IMPATIENT, PATIENCE, attribution
from rebalance_verifier.gate.search.judgement import allow
from rebalance_verifier.gate.search.known import KnownFailure
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, SearchProfile, count, numbered
from rebalance_verifier.gate.search.progress import CheckProgress
from rebalance_verifier.gate.search.result import ClauseResult, Result, Status
from rebalance_verifier.gate.search.search import check, describe, replay
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.hosts.messages import Skipped
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import (
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import (
    Failure,
    Reply,
)
from rebalance_verifier.properties.assignors.clause import Breach, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.played import calls_of, of_partitions
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, to_json
from rebalance_verifier.report import facts

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
TINY = SearchProfile(name="tiny", each=2, mixed=10, large=0, crowd=0, shrink=200)

Hands = Mapping[str, Partitions]


class Tiny:
    """An EAGER assignor that promises balance: every partition goes to some subscriber.

    ``choose`` gets the sorted subscribers of a partition and the partition.
    """

    protocols = ("eager",)
    promises: tuple[str, ...] = ("balanced",)

    def __init__(self, choose: Callable[[list[str], TopicPartition], str] = lambda members, _: members[0]):
        self.choose = choose

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Hands:
        hands: dict[str, list[TopicPartition]] = {member: [] for member in group}
        for topic in sorted(cluster.topics):
            members = sorted(m for m in group if topic in group[m].topics)
            for index in range(cluster.partition_count(topic) if members else 0):
                partition = TopicPartition(topic, index)
                hands[self.choose(members, partition)].append(partition)
        return {member: tuple(hand) for member, hand in hands.items()}


class Doubling(Tiny):
    """Gives the second partition of a topic to two members, if there are two: breaks assign/1."""

    promises = ()

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Hands:
        hands = dict(super().assign(cluster, group))
        for topic in sorted(cluster.topics):
            members = sorted(m for m in group if topic in group[m].topics)
            if cluster.partition_count(topic) > 1 and len(members) > 1:
                hands[members[1]] = (*hands[members[1]], TopicPartition(topic, 1))
        return hands


class Failing(Tiny):
    """Answers so many questions, and raises at all others."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.left = answers

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Hands:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no broker")
        return super().assign(cluster, group)


class Interrupted(InProcess):
    """Ctrl-C at the n-th question."""

    def __init__(self, assignor: Any, at: int) -> None:
        super().__init__(assignor)
        self.left = at

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().assign(protocol, cluster, group)

    again = assign


def run(assignor: Any, session: InProcess | None = None, **options: Any) -> Result:
    """A tiny check of an assignor; ``options`` are the plan's, but for those of ``check`` itself."""
    mine = {
        name: options.pop(name)
        for name in ("progress", "report_progress", "report_stage", "fresh")
        if name in options
    }
    session = session or InProcess(assignor)
    plan = CheckPlan(**{"profile": TINY, **options})
    return check(plan, session, describe("tiny", session.hello), **mine)


def row(result: Result, clause: str, protocol: RebalanceProtocol = EAGER) -> ClauseResult:
    return next(r for r in result.clauses if r.id == f"{clause}-{protocol}")


def violated(result: Result) -> set[str]:
    return {r.id for r in result.clauses if r.status is Status.VIOLATED}


def total(plan: CheckPlan) -> int:
    return count(plan.profile, (EAGER,))


def timeless(result: Result) -> Result:
    return replace(result, seconds=0.0)


def digest(result: Result) -> list[object]:
    """All that a result says, but for the time, as text."""
    rows: list[object] = []
    for r in result.clauses:
        f = r.finding
        shown = f and (
            to_json(of_partitions(f.scenario)),
            f.breach,
            f.round,
            f.number,
            f.found_size,
            f.calls,
            f.confirmed,
        )
        rows.append((r.id, str(r.status), r.scenarios, r.broken, r.note, repr(shown)))
    return [*rows, result.scenarios, result.questions, result.witnesses, result.missed, result.verdict.value]


# --- scenarios ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocols", [(EAGER,), (COOPERATIVE,), (COOPERATIVE, EAGER)])
@pytest.mark.parametrize(
    "profile",
    [TINY, PROFILES["smoke"], SearchProfile(name="odd", each=1, mixed=3, large=2, crowd=20, shrink=0)],
)
def test_count_is_the_number_of_scenarios(profile, protocols):
    scenarios = list(numbered(CheckPlan(profile=profile), protocols))
    assert len(scenarios) == count(profile, protocols)
    assert {s.protocol for s in scenarios} == set(protocols)


def test_seed_and_number_make_the_scenario():
    def first(seed):
        return list(islice(numbered(CheckPlan(seed=seed), (COOPERATIVE, EAGER)), 100))

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_a_short_search_varies_along_every_dimension():
    every = [s.dimensions for s in numbered(CheckPlan(profile=replace(TINY, each=1, mixed=0)), (EAGER,))]
    assert len(set(every)) == len(every)


# --- determinism ----------------------------------------------------------------------------------


@pytest.mark.nightly
def test_equal_seeds_give_equal_results():
    one, other = run(Doubling(), seed=5), run(Doubling(), seed=5)
    assert timeless(one) == timeless(other)
    assert digest(run(Doubling(), seed=6)) != digest(one)


@pytest.mark.nightly
def test_results_do_not_depend_on_the_hash_seed():
    code = "import test_check as t; print(t.digest(t.run(t.Doubling(), seed=5)))"
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert printed == {str(digest(run(Doubling(), seed=5)))}


# --- findings -------------------------------------------------------------------------------------


def test_a_sound_target_conforms():
    result = run(reference("roundrobin"))
    assert violated(result) == set()
    assert (result.verdict, result.exit, result.missed) == (Verdict.CONFORMANT, Exit.CONFORMANT, ())
    assert result.scenarios == total(CheckPlan(profile=TINY))
    assert row(result, "assign/1").scenarios == result.scenarios


def test_a_finding_is_minimal_confirmed_and_complete():
    result = run(Doubling())
    assert violated(result) == {"assign/1-eager"}
    assert (result.verdict, result.exit) == (Verdict.VIOLATION, Exit.VIOLATION)
    finding = row(result, "assign/1").finding
    assert finding is not None
    assert finding.scenario.size[:2] == (2, 2)
    assert finding.confirmed
    assert finding.breach.partitions == (TopicPartition("t0", 1),)
    assert calls_of(finding.calls)[finding.round - 1].assignment["B"] == (TopicPartition("t0", 1),)


def test_minimising_starts_from_the_plainest_scenario_found():
    plan = CheckPlan(profile=TINY)
    subject = Subject.of(InProcess(Doubling()))
    breaking = [
        (realism(scenario), len(present(of_partitions(scenario))), scenario.size, number)
        for number, scenario in enumerate(numbered(plan, (EAGER,)))
        if subject.play(scenario, plan.clauses).breach_of("assign/1")
    ]
    result = row(run(Doubling()), "assign/1")
    assert result.finding is not None
    assert (result.finding.found_size, result.finding.number) == min(breaking)[2:]
    assert result.broken == len(breaking)


def test_target_is_started_afresh_before_a_finding_counts():
    started: list[int] = []
    run(Doubling(), fresh=lambda: started.append(1))
    assert len(started) == 1


def test_what_happens_only_once_is_reported_as_unconfirmed():
    class Once(Tiny):
        calls = 0

        def assign(self, cluster, group):
            Once.calls += 1
            if Once.calls == 30:
                raise RuntimeError("the moon was full")
            return super().assign(cluster, group)

    result = run(Once(), level=Level.SAFETY)
    finding = row(result, "assign/4").finding
    assert finding is not None
    assert not finding.confirmed
    assert "the moon was full" in finding.breach.summary
    assert row(result, "assign/4").broken == 1
    assert result.verdict is Verdict.CONFORMANT  # assign/4 is liveness
    assert row(result, "assign/4").status is Status.UNCONFIRMED
    judged = run(Once(), level=Level.LIVENESS)
    assert (judged.verdict, judged.exit) == (Verdict.CONFORMANT, Exit.CONFORMANT)  # the moon is full once
    Once.calls = 0
    judged = run(Once(), level=Level.LIVENESS)
    assert (judged.verdict, judged.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)
    assert judged.doubts == ("assign/4-eager was broken in the search, and not again",)


def test_what_shows_once_more_and_not_again_is_unconfirmed():
    class Fading(Doubling):
        """Breaks once after it was restarted."""

        left = math.inf

        def assign(self, cluster, group):
            self.left -= 1
            return (Doubling if self.left >= 0 else Tiny).assign(self, cluster, group)

    target = Fading()
    result = run(target, fresh=lambda: setattr(target, "left", 1))
    assert row(result, "assign/1").status is Status.UNCONFIRMED
    assert result.verdict is Verdict.INCONCLUSIVE
    target.left = math.inf
    again = run(target, fresh=lambda: setattr(target, "left", 100))
    assert row(again, "assign/1").status is Status.VIOLATED


@pytest.mark.parametrize(("each", "status"), [(60, Status.UNCONFIRMED), (math.inf, Status.VIOLATED)])
def test_who_answers_in_several_ways_breaks_a_clause_in_each_of_forty_plays_or_not_at_all(each, status):
    class Wavering(Doubling):
        """Deals out the other way round in every other answer; two members have one partition in all answers,
        or not in the first 20 of each 60."""

        answers = 0

        def assign(self, cluster, group):
            self.answers += 1
            self.choose = lambda members, partition: members[-(partition.partition == 0 and self.answers % 2)]
            return (Doubling if self.answers % each > 20 else Tiny).assign(self, cluster, group)

    clauses = (CLAUSES["assign/1"], CLAUSES["assign/6"])
    result = run(Wavering(), clauses=clauses, profile=replace(TINY, shrink=20))
    assert row(result, "assign/6").status is Status.VIOLATED
    assert row(result, "assign/1").status is status


def test_where_the_smallest_does_not_break_again_another_one_may():
    class Settled(Doubling):
        """With two members it breaks once, with three always."""

        def assign(self, cluster, group):
            often = len(group) == 3 or self.calls == 0
            self.calls += 1
            return (Doubling if often else Tiny).assign(self, cluster, group)

        calls = 0

    groups = [tuple(ScenarioMember(id=f"m{number}", topics=("t",)) for number in range(n)) for n in (2, 3)]
    topics = Cluster.of({"t": 2}).topics
    scenarios = [Scenario(protocol=EAGER, topics=topics, members=members) for members in groups]
    subject, clause = Subject.of(InProcess(Settled())), CLAUSES["assign/1"]
    found = [subject.play(one, (clause,)).found[0] for one in scenarios]
    broken = [BreakingScenario(*one, number) for number, one in enumerate(zip(scenarios, found, strict=True))]
    plan = CheckPlan(profile=replace(TINY, shrink=0))
    [shown] = findings.findings(plan, subject, broken, lambda: None)
    assert (shown.confirmed, shown.scenario) == (True, scenarios[1])
    [shown] = findings.findings(plan, subject, broken[:1], lambda: None)
    assert (shown.confirmed, shown.scenario) == (False, scenarios[0])


class Rarely(Tiny):
    """Gives nobody anything in its tenth answer."""

    calls = 0

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Hands:
        self.calls += 1
        return dict.fromkeys(group, ()) if self.calls == 10 else super().assign(cluster, group)


def test_an_answer_that_differs_now_and_then_is_looked_for_in_several_plays():
    scenario = replace(plainest(EAGER), rounds=((),))
    session = InProcess(target := Rarely())
    assert replay(session, scenario, CLAUSES["assign/6"]).breach_of("assign/6")
    assert 9 < target.calls < 20
    assert not replay(session, scenario, CLAUSES["assign/6"]).breach_of("assign/6")


def test_an_answer_that_differs_now_and_then_is_confirmed_in_the_small_scenario():
    small, clause = replace(plainest(EAGER), rounds=((),)), CLAUSES["assign/6"]
    large = replace(small, topics=Cluster.of({"t": 22}).topics)
    broken = BreakingScenario(large, Found(clause, Breach(summary="differs"), 1), 0)
    shown = findings.confirmed(CheckPlan(), Subject.of(InProcess(Rarely())), broken, small, lambda: None)
    assert shown is not None
    assert (shown.scenario, shown.found_size) == (small, large.size)


def test_scenario_as_found_is_shown_when_the_minimised_one_does_not_hold():
    class Restarted(Doubling):
        """Behaves with two partitions, once it was restarted."""

        restarted = False

        def assign(self, cluster, group):
            small = sum(map(cluster.partition_count, cluster.topics)) <= 2
            return (Tiny if small and self.restarted else Doubling).assign(self, cluster, group)

    target = Restarted()
    finding = row(run(target, fresh=lambda: setattr(target, "restarted", True)), "assign/1").finding
    assert finding is not None
    assert finding.confirmed
    assert finding.scenario.size == finding.found_size
    assert finding.found_size[1] > 2


def test_a_cause_that_shows_only_as_it_was_found_is_shown_so_beside_others():
    """Whoever has a cause that is confirmed looks at no scenario as it was found any more."""
    groups = [tuple(ScenarioMember(id=f"m{number}", topics=("t",)) for number in range(n)) for n in (1, 2)]
    small, large = (Scenario(protocol=EAGER, topics=Cluster.of({"t": 2}).topics, members=g) for g in groups)
    broken = BreakingScenario(large, Found(CLAUSES["assign/1"], Breach(summary="twice"), 1), 0)
    started: list[int] = []
    subject = Subject.of(InProcess(Doubling()))
    shown = findings.confirmed(CheckPlan(), subject, broken, small, lambda: started.append(1))
    assert shown is not None
    assert (shown.confirmed, shown.scenario, len(started)) == (True, large, 2)


# --- levels ---------------------------------------------------------------------------------------


def test_quality_is_reported_and_fails_only_when_asked_for():
    default, strict = run(Tiny()), run(Tiny(), level=Level.QUALITY)
    assert violated(default) == violated(strict) == {"kip54/balance/1-eager"}
    assert (default.verdict, default.exit) == (Verdict.CONFORMANT, Exit.CONFORMANT)
    assert (strict.verdict, strict.exit) == (Verdict.VIOLATION, Exit.VIOLATION)


def test_liveness_fails_by_default_and_not_at_level_safety():
    class Lazy(Tiny):
        promises = ()

        def assign(self, cluster, group):
            return {member: hand[1:] for member, hand in super().assign(cluster, group).items()}

    assert run(Lazy()).verdict is Verdict.VIOLATION
    safe = run(Lazy(), level=Level.SAFETY)
    assert safe.verdict is Verdict.CONFORMANT
    assert "kip429/leader/5-eager" in violated(safe)


# --- early ends -----------------------------------------------------------------------------------


def test_spent_budget_is_inconclusive():
    result = run(Tiny(), budget=0.0)
    assert (result.verdict, result.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)
    assert result.scenarios == 1
    assert "budget" in result.missed[0]


def test_spent_budget_does_not_hide_a_violation():
    result = run(Doubling(), budget=0.0, seed=3)  # whose first scenario shows it
    assert result.scenarios == 1
    assert (result.verdict, result.exit) == (Verdict.VIOLATION, Exit.VIOLATION)


def test_enough_budget_changes_nothing():
    assert timeless(run(Doubling(), budget=3600.0)) == timeless(run(Doubling()))


def test_fail_fast_stops_at_the_first_breach_that_counts():
    fast = run(Doubling(), fail_fast=True)
    assert fast.scenarios < run(Doubling()).scenarios
    assert row(fast, "assign/1").broken == 1
    assert fast.verdict is Verdict.VIOLATION
    assert "first violation" in fast.missed[0]


def test_fail_fast_passes_over_weaker_and_expected_breaches():
    everything = total(CheckPlan(profile=TINY))
    assert run(Tiny(), fail_fast=True).scenarios == everything
    assert run(Tiny(), fail_fast=True, level=Level.QUALITY).scenarios < everything
    known = run(Doubling(), fail_fast=True, expected=lambda key: key == "assign/1-eager")
    assert known.scenarios == everything


def test_expected_breaches_are_not_minimised():
    finding = row(run(Doubling(), expected=lambda key: True), "assign/1").finding
    assert finding is not None
    assert finding.scenario.size == finding.found_size
    assert finding.confirmed


NO_REPLY = Failure(FailureKind.TIMEOUT, "no reply")


class Hanging(InProcess):
    """Says that it timed out, without the wait, or fails in another manner: with so many members or more."""

    allowed: list[float]

    def __init__(self, assignor: Any, failure: Failure = NO_REPLY, members: int = 1) -> None:
        super().__init__(assignor)
        self.call_seconds, self.allowed = 4.0, []
        self.failure, self.members = failure, members

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        if len(group) < self.members:
            return super().assign(protocol, cluster, group)
        self.allowed.append(self.call_seconds)
        return self.failure

    again = assign


def test_a_target_that_hangs_again_and_again_ends_the_search():
    session = Hanging(Tiny())
    result = run(None, session, profile=replace(TINY, shrink=0))
    assert session.allowed[:3] == [4.0, IMPATIENT, IMPATIENT]
    assert result.scenarios == 1 + PATIENCE // IMPATIENT + 1
    assert session.call_seconds == 4.0
    assert violated(result) == {"assign/4-eager"}
    assert "do not return" in result.missed[0]


@pytest.mark.parametrize(
    ("failure", "ends"),
    [
        (Failure(FailureKind.MEMORY, "uses 3 GiB"), True),
        (Failure(FailureKind.GARBAGE, "300,000 members", slow=True), True),
        (Failure(FailureKind.CRASH, "closed its stdout and is still running", slow=True), True),
        (Failure(FailureKind.GARBAGE, "no JSON"), False),
        (Failure(FailureKind.CRASH, "ended with exit 3"), False),
    ],
)
def test_so_does_whatever_takes_as_long_as_a_hang(failure, ends):
    """300,000 members in every answer took an hour to refuse, one by one."""
    result = run(None, Hanging(Tiny(), failure), profile=replace(TINY, shrink=0))
    assert ("use up" in "".join(result.missed)) == ends
    assert violated(result) == {"assign/4-eager"}


@pytest.mark.parametrize(
    "failure",
    [
        NO_REPLY,
        Failure(FailureKind.MEMORY, "uses 3 GiB"),
        Failure(FailureKind.GARBAGE, "300,000 members", slow=True),
        Failure(FailureKind.CRASH, "closed its stdout and is still running", slow=True),
    ],
)
def test_a_target_that_never_answers_is_waited_for_twice_and_five_seconds(failure):
    """One after another, by this process; five more seconds are left for what its processes take to start.
    What fails before it has used up its time takes half a second each, by what it does or we."""
    session = Hanging(Tiny(), failure)
    result = run(None, session, profile=replace(TINY, shrink=1500))
    assert violated(result) == {"assign/4-eager"}
    if failure is NO_REPLY:  # once to see it, once to confirm it in a fresh process
        assert [seconds for seconds in session.allowed if seconds > IMPATIENT] == [4.0, 4.0]
        assert sum(session.allowed) <= 2 * 4.0 + 5
    assert len(session.allowed) <= 2 + 2 * (PATIENCE // IMPATIENT) + 2


def test_what_never_answers_is_asked_for_the_plainest_group_and_nothing_else():
    """To look for what is behind it took eighty calls that hang."""
    session = Hanging(Tiny())
    plan, subject = CheckPlan(profile=replace(TINY, shrink=1500)), Subject.of(session)
    start = Scenario(
        protocol=RebalanceProtocol.EAGER,
        topics=Cluster.of({"t": 9, "u": 9}).topics,
        members=tuple(ScenarioMember(id=f"m{index}", topics=("t", "u")) for index in range(9)),
    )
    broken = [
        BreakingScenario(start, subject.play(start, plan.clauses).found[0], number) for number in (0, 1)
    ]
    session.allowed.clear()
    [one] = attribution(plan, subject, broken).explain(broken)
    assert (one.cause.id, one.small.size, one.broken) == ("timeout", (1, 1, 0, 0), tuple(broken))
    assert session.allowed == [IMPATIENT]


@pytest.mark.parametrize(("repeatable", "calls"), [(False, PATIENCE // IMPATIENT), (True, 5)])
def test_what_hangs_is_made_small_by_so_many_calls(repeatable, calls, monkeypatch):
    """Each may take half a second and a new process: 1,500 of them took twenty minutes."""
    monkeypatch.setattr(findings, "STEADY_PATIENCE", 5 * IMPATIENT)
    cluster = Cluster.of({f"t{index}": 9 for index in range(9)})
    members = tuple(ScenarioMember(id=f"m{index}", topics=tuple(cluster.topics)) for index in range(9))
    scenario = Scenario(protocol=RebalanceProtocol.EAGER, topics=cluster.topics, members=members)
    plan = CheckPlan(profile=replace(TINY, shrink=1500), repeatable=repeatable)
    session = Hanging(Tiny(), members=2)
    subject = Subject.of(session)
    [found] = subject.play(scenario, plan.clauses).found
    broken = [BreakingScenario(scenario, found, 0)]
    session.allowed.clear()
    [one] = attribution(plan, subject, broken).explain(broken)
    assert one.small.size < scenario.size
    assert calls <= len(session.allowed) <= calls + 8
    assert set(session.allowed) == {IMPATIENT}


# --- what was not judged --------------------------------------------------------------------------


def declining(condition: Callable[[Cluster, GroupSubscription], bool]) -> Tiny:
    class Declining(Tiny):
        promises = ()

        def assign(self, cluster, group):
            if condition(cluster, group):
                raise Skipped("not on a Friday", "https://example.org/1")
            return super().assign(cluster, group)

    return Declining()


@pytest.mark.slow
def test_situations_that_were_never_reached_make_it_inconclusive():
    def unequal(cluster: Cluster, group: GroupSubscription) -> bool:
        return len({frozenset(s.topics) for s in group.values()}) > 1

    profile = replace(TINY, each=20, mixed=60)
    assert run(declining(lambda *_: False), profile=profile).missed == ()
    result = run(declining(unequal), profile=profile)
    assert "never reached: unequal subscriptions (eager)" in result.missed
    assert (result.verdict, result.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)


def test_a_small_search_owes_no_situations():
    assert run(Tiny()).missed == ()


def test_declined_scenarios_judge_nothing():
    result = run(declining(lambda cluster, group: len(group) > 1))
    judged = row(result, "assign/1")
    assert 0 < judged.scenarios < result.scenarios
    assert judged.status is Status.PASSED


def test_a_target_that_declines_everything_is_untested():
    result = run(declining(lambda *_: True))
    untested = row(result, "assign/1")
    assert untested.status is Status.UNTESTED
    assert untested.note == "declined: not on a Friday"
    assert violated(result) == set()


def test_clauses_beyond_promises_and_protocols_are_unsupported():
    result = run(Tiny())
    rack, sticky = row(result, "kip881/rack/1"), row(result, "kip54/sticky/1")
    assert (rack.status, rack.note) == (Status.UNSUPPORTED, "not promised: rack-aware")
    assert (sticky.status, sticky.note) == (Status.UNSUPPORTED, f"not promised: {Promise.STICKY}")
    other = row(result, "assign/1", COOPERATIVE)
    assert other.status is Status.UNSUPPORTED
    assert "cooperative" in other.note


def test_a_protocol_that_was_not_asked_for_is_untested():
    result = run(reference("cooperative-sticky"), protocols=(EAGER,))
    assert row(result, "assign/1").status is Status.PASSED
    other = row(result, "assign/1", COOPERATIVE)
    assert (other.status, other.note) == (Status.UNTESTED, "cooperative was not asked for")


def test_asking_for_a_protocol_that_the_target_has_not():
    result = run(Tiny(), protocols=(COOPERATIVE,))
    assert result.scenarios == 0
    assert (result.verdict, result.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)
    assert "none of the protocols" in result.missed[0]


# --- interrupt and resume -------------------------------------------------------------------------


def test_an_interrupt_keeps_what_was_found():
    result = run(None, Interrupted(Doubling(), 200))
    assert result.interrupted
    assert (result.verdict, result.exit) == (Verdict.INCONCLUSIVE, Exit.INTERRUPTED)
    assert 0 < result.scenarios < total(CheckPlan(profile=TINY))
    finding = row(result, "assign/1").finding
    assert finding is not None
    assert not finding.confirmed


def test_an_interrupt_of_a_sound_target_is_inconclusive():
    result = run(None, Interrupted(reference("roundrobin"), 50))
    assert (result.verdict, result.exit) == (Verdict.INCONCLUSIVE, Exit.INTERRUPTED)
    assert not any(one.status is Status.PASSED for one in result.clauses), "which it does not know yet"
    assert row(result, "assign/1").note.startswith("interrupted after ")


def test_stages_after_the_search_are_reported():
    stages = []
    result = run(Doubling(), report_stage=lambda *stage: stages.append(stage))
    broken = sum(one.status is Status.VIOLATED for one in result.clauses)
    small = "making small and confirming"
    assert [stage for stage in stages if stage[0] == small] == [(small, n, broken) for n in range(broken + 1)]


def test_an_interrupt_while_minimising_keeps_every_finding():
    searched = run(Doubling(), profile=replace(TINY, shrink=0)).questions
    result = run(None, Interrupted(Doubling(), searched + 5))
    assert result.interrupted
    assert result.scenarios == total(CheckPlan(profile=TINY))
    finding = row(result, "assign/1").finding
    assert finding is not None
    assert not finding.confirmed


@pytest.mark.covering
@pytest.mark.parametrize("assignor", [Doubling, Tiny, lambda: reference("sticky")])
def test_resuming_ends_as_if_never_interrupted(assignor, tmp_path):
    path = tmp_path / "deep" / "state.json"
    for at in (40, 70, 100):  # interrupted three times
        progress = resume.load(path)
        done = progress.done
        assert run(None, Interrupted(assignor(), at), progress=progress).interrupted
        resume.save(path, progress)
        assert progress.done > done
    resumed = run(assignor(), progress=resume.load(path))
    assert timeless(resumed) == timeless(run(assignor()))


@pytest.mark.parametrize("ends", [(15,), (20,), (20, 30)])
def test_resuming_plays_nothing_of_what_workers_have_played_ahead(monkeypatch, ends):
    for module in (planning, searching):
        monkeypatch.setattr(module, "SLICE", 10)
    ahead = [CheckProgress(first=first, done=end) for first, end in pairwise((10, *ends))]
    progress = CheckProgress(ahead=ahead)
    played: list[int] = []
    result = run(Tiny(), progress=progress, report_progress=lambda told, _: played.append(told.done))
    assert (result.scenarios, progress.ahead) == (total(CheckPlan(profile=TINY)), [])
    assert {*range(11, ends[-1])} & {*played} == {*ends[:-1]}, (
        "what lies ahead counts as it is, a part at once"
    )


def test_resuming_counts_the_time_before():
    done: list[float] = []
    progress = CheckProgress(seconds=100.0)
    result = run(Tiny(), progress=progress, report_progress=lambda p, _: done.append(p.seconds))
    assert result.seconds > 100
    assert done[0] > 100


def test_what_somebody_else_played_is_not_believed(tmp_path, monkeypatch):
    """It may say that all was played and nothing is broken."""
    path = tmp_path / "state.json"
    resume.save(path, CheckProgress(done=7))
    assert resume.load(path).done == 7
    whole = path.read_text()
    for changed in (
        whole.replace('"done": 7', '"done": 70'),
        re.sub('"signed": "..', '"signed": "zz', whole),
    ):
        path.write_text(changed)
        with pytest.raises(ValueError, match="no check of yours has saved it"):
            resume.load(path)
    with monkeypatch.context() as theirs:
        theirs.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
        resume.save(path, CheckProgress(done=7))
    with pytest.raises(ValueError, match="no check of yours has saved it"):
        resume.load(path)
    path.rename(tmp_path / "other.json")
    with pytest.raises(ValueError, match="no check of yours has saved it"):
        resume.load(tmp_path / "other.json")


def test_resume_keys_tell_searches_apart():
    info = describe("tiny", InProcess(Tiny()).hello)
    plan = CheckPlan(profile=TINY)
    others = [
        resume.key(info, replace(plan, seed=1)),
        resume.key(info, replace(plan, profile=PROFILES["ci"])),
        resume.key(info, replace(plan, protocols=(EAGER,))),
        resume.key(info, replace(plan, clauses=plan.clauses[1:])),
        resume.key(replace(info, spec="other"), plan),
        resume.key(replace(info, version="2"), plan),
    ]
    assert len({resume.key(info, plan), *others}) == 1 + len(others)
    assert resume.key(info, replace(plan, budget=1.0)) == resume.key(info, plan)


def test_progress_is_told_after_every_scenario():
    reported: list[tuple[int, int]] = []
    run(Tiny(), report_progress=lambda progress, whole: reported.append((progress.done, whole)))
    expected = total(CheckPlan(profile=TINY))
    assert reported == [(number, expected) for number in range(1, expected + 1)]


def test_a_target_that_never_answers_keeps_nothing():
    result = run(Failing(0))
    asked = [one for one in result.clauses if one.status is not Status.UNSUPPORTED]
    assert violated(result) == {"assign/4-eager"}
    assert {one.note for one in asked if one.status is Status.UNTESTED} == {"no answer to judge"}
    assert {one.status for one in asked} == {Status.VIOLATED, Status.UNTESTED}
    assert row(result, "assign/4").hint.startswith("it never answered")
    assert result.missed == ("it never answered (eager)",)
    assert "nothing else was judged, since it never answered" in facts.headline(result)


def test_a_target_that_never_answers_is_not_allowed_by_a_list():
    known = [KnownFailure(pattern="assign/4")]
    allowed = allow(run(Failing(0)), known, [], date(2026, 1, 1))
    assert (allowed.verdict, allowed.exit) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE)
    alone = allow(run(Failing(0), clauses=(CLAUSES["assign/4"],)), known, [], date(2026, 1, 1))
    assert alone.verdict is Verdict.CONFORMANT  # nothing else was wanted


def test_a_clause_to_which_no_scenario_comes_is_not_kept():
    result = run(Failing(1))
    assert row(result, "assign/1").status is Status.PASSED
    ends = [one for one in result.clauses if one.clause.scope in (Scope.REPEAT, Scope.HISTORY)]
    assert {one.status for one in ends} == {Status.UNSUPPORTED, Status.UNTESTED}
    assert not any("never answered" in one for one in result.missed)
