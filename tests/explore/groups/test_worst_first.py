"""A search does not end at the mildest breach: it goes on for a worse one, which then stands first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine.search import SEARCH_ON, Limits, Stop
from rebalance_verifier.explore.groups.exploration import ExplorationPlan, Explored, run_exploration
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.random import walks
from rebalance_verifier.live.code.search.findings import CodeFinding, worst_first
from rebalance_verifier.live.code.search.run import BROKEN, CodeBreach
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.properties.group.own import OWN, gravity, milder, outranked
from rebalance_verifier.report.terminal.exploration import data, render

MEMBERS_END = "member/ends"


def upgraded(**changed: object) -> ExplorationPlan:
    """Members bounced to the consumer protocol, on the current broker: two owners, behind milder breaches."""
    size = ScenarioSize(broker="broker-current", faults=("crash", "pause"))
    setup = SCENARIOS["migration-upgrade"].setup(size)
    plan = ExplorationPlan(setup=setup, origin={"scenario": "migration-upgrade"})
    return replace(plan, **changed)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Explored:
    """What a search with the usual limits finds."""
    return run_exploration(upgraded())


def test_two_owners_stand_first_and_milder_ones_keep_their_shortest_traces(found: Explored) -> None:
    clauses = [one.clause for one in found.violations]
    assert clauses[0] == "group/owner"
    assert clauses == sorted(clauses, key=gravity)
    mild = next(one for one in found.violations if one.clause == MEMBERS_END)
    assert len(mild.runs[0].events) == 6
    assert mild.shortest
    assert (found.search is not None and found.search.stop, found.may_be_worse) == (Stop.BREACH, False)
    assert " breaks group/owner, " in render(found, {}).splitlines()[0]
    assert "first violation of group/owner (--go-on" in " ".join(render(found, {}).split())


def test_limits_end_the_search_for_a_worse_one_and_the_report_says_so() -> None:
    shallow = run_exploration(upgraded(limits=Limits(depth=8)))
    assert [one.clause for one in shallow.violations] == [MEMBERS_END]
    assert shallow.may_be_worse
    assert data(shallow, {})["may_be_worse"] is True
    assert "worse    not ruled out: nothing worse than the above" in render(shallow, {})
    early = run_exploration(upgraded(limits=Limits(search_on=500)))
    assert [one.clause for one in early.violations] == [MEMBERS_END]
    assert early.search is not None
    assert early.search.stop is Stop.BREACH
    assert early.may_be_worse
    assert "--go-on searches to the end" in " ".join(render(early, {}).split())


def test_the_plain_engine_searches_on_alike() -> None:
    limits = Limits(depth=7)
    plain, fast = (run_exploration(upgraded(limits=limits, engine=one)) for one in ("plain", "fast"))
    assert plain.search is not None
    assert fast.search is not None
    assert plain.search.counts == fast.search.counts
    assert plain.search.stop is Stop.DEPTH, "and not the breach at depth 6"


@pytest.mark.parametrize("strategy", ["swarm", "depth"])
def test_walks_go_on_after_a_mild_breach(strategy: str) -> None:
    plan = upgraded(strategy=strategy, walks=600, steps=60 if strategy == "swarm" else 15, seed=1)
    walked = run_exploration(replace(plan, limits=Limits(states=20_000)))
    clauses = [one.clause for one in walked.violations]
    assert clauses == sorted(clauses, key=lambda clause: (gravity(clause), clause))
    if strategy == "depth":  # 20,000 states of many more: where it sees nothing worse, it says so
        assert gravity(clauses[0])[0] == 0 or walked.may_be_worse
    else:
        assert gravity(clauses[0])[0] == 0
        assert len(clauses) > 1
    few = run_exploration(replace(plan, walks=1, steps=7, limits=Limits(states=800)))
    assert not few.violations or few.may_be_worse
    assert few.may_be_worse == ("worse    not ruled out" in render(few, {}))


def test_two_owners_end_it() -> None:
    setup = SCENARIOS["static"].setup(
        ScenarioSize(members=2, partitions=1, broker="broker-current", faults=("pause",))
    )
    kept = run_exploration(ExplorationPlan(setup=setup, origin={}))
    clauses = {one.clause: len(one.runs[0].events) for one in kept.violations}
    assert clauses == {"group/owner": 14, "coordinator/keep": 9, "group/commit": 14}
    assert kept.search is not None
    assert kept.search.stop is Stop.BREACH
    assert kept.search.depth == len(kept.violations[0].runs[0].events)
    assert not kept.may_be_worse


def test_an_ordinary_breach_of_safety_hides_no_two_owners() -> None:
    """The clause at depth 9 is of safety too, and ends the search where no more states are to be searched."""
    setup = SCENARIOS["static"].setup(
        ScenarioSize(members=2, partitions=1, broker="broker-current", faults=("pause",))
    )
    early = run_exploration(ExplorationPlan(setup=setup, origin={}, limits=Limits(search_on=1)))
    assert [one.clause for one in early.violations] == ["coordinator/keep"]
    assert early.may_be_worse
    assert "--go-on searches to the end" in " ".join(render(early, {}).split())


@pytest.mark.covering
@pytest.mark.parametrize("strategy", ["swarm", "depth"])
def test_nor_does_it_where_states_are_not_all_seen(strategy: str) -> None:
    """A leader that withholds nothing breaks a clause of safety first, and nearly always."""
    size = ScenarioSize(members=2, partitions=2, faults=(), budget=0, switches=("no_withhold",))
    plan = ExplorationPlan(
        setup=SCENARIOS["dynamic"].setup(size), origin={}, strategy=strategy, walks=40, steps=60
    )
    walked = run_exploration(plan)
    assert walked.violations[0].clause == "group/owner"
    assert {"leader/withhold"} < {one.clause for one in walked.violations}
    assert not walked.may_be_worse


@pytest.mark.nightly
def test_depth_first_looks_at_so_many_states_after_a_breach(monkeypatch: pytest.MonkeyPatch) -> None:
    """At all of them with --go-on."""
    monkeypatch.setattr(walks, "SEARCH_ON", 100)
    setup = SCENARIOS["static"].setup(
        ScenarioSize(members=2, partitions=1, broker="broker-current", faults=("pause",))
    )
    plan = ExplorationPlan(setup=setup, origin={}, strategy="depth", steps=15)
    few = run_exploration(plan)
    assert "group/owner" not in {one.clause for one in few.violations}
    assert few.may_be_worse
    every = run_exploration(replace(plan, limits=Limits(go_on=True)))
    assert every.violations[0].clause == "group/owner"


def test_what_ends_no_search() -> None:
    names = ["group/owner", "error/old", "group/commit", MEMBERS_END, f"{OWN}mine:rule"]
    assert outranked(names) == {"error/old", "group/commit", MEMBERS_END}, "an own rule was asked about"
    assert outranked(["group/commit", MEMBERS_END]) == {MEMBERS_END}, "of rules without owners"


def test_how_bad_a_breach_is() -> None:
    order = ["group/owner", "group/commit", "epoch/covers", MEMBERS_END]
    assert sorted({*order}, key=gravity) == order
    assert gravity(f"{OWN}mine:rule") == gravity("group/commit")
    assert milder(["group/owner", "poll/throws", MEMBERS_END]) == {"poll/throws", MEMBERS_END}
    assert milder([MEMBERS_END, "group/converges"]) == frozenset()
    assert set(CLAUSES) - milder(CLAUSES) > {"group/owner", "coordinator/keep"}
    limits = Limits(mild=milder(CLAUSES))
    assert not limits.ends([MEMBERS_END], SEARCH_ON - 1)
    assert limits.ends([MEMBERS_END], SEARCH_ON)
    assert limits.ends([MEMBERS_END, "group/owner"], 1)
    assert not replace(limits, go_on=True).ends(["group/owner"], SEARCH_ON)
    assert not limits.ends([], SEARCH_ON)


def test_findings_of_kafkas_own_code_stand_in_the_same_order() -> None:
    names = ["callback/rejoin", "poll/throws", BROKEN, "group/owner"]
    findings = [CodeFinding(breach=CodeBreach(name, "why"), events=()) for name in names]
    assert [one.breach.clause for one in worst_first(findings)] == [
        BROKEN, "group/owner", "poll/throws", "callback/rejoin"
    ]  # fmt: skip
