"""Exploring a group of consumers: every state of the model, runs that Hypothesis draws, Kafka's own code."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from rebalance_verifier.api.judgement import (
    CannotJudge,
    JudgedFinding,
    Judgement,
    judgement_of,
    judging,
    one_of,
    several,
)

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine
    from hypothesis.strategies import SearchStrategy
    from rebalance_verifier.explore.groups.exploration import ExplorationViolation, Explored
    from rebalance_verifier.explore.groups.scenarios import NamedScenario, ScenarioSize
    from rebalance_verifier.explore.random.group_machine import StatefulFinding
    from rebalance_verifier.explore.random.swarm import PlayedRun
    from rebalance_verifier.model.group.setup import Setup
    from rebalance_verifier.properties.group.rules import Rules


class GroupSize(TypedDict, total=False):
    """The parameters of `scenario`, which the functions that take a group take too."""

    members: int | None
    partitions: int | None
    release: str | Sequence[str]
    broker: str
    faults: Sequence[str] | None
    max_faults: int | None
    switches: Sequence[str]
    target: str | None
    naming: str | None
    granularity: str


@dataclass(frozen=True)
class SizedScenario:
    """A group to explore, as `scenario` makes it: members, partitions, releases and faults are chosen."""

    named: NamedScenario
    size: ScenarioSize
    setup: Setup

    @property
    def origin(self) -> Mapping[str, Any]:
        """Return the choices, as traces and reports state them."""
        return self.named.origin(self.size, self.setup)


def scenario(
    name: str | os.PathLike[str],
    *,
    members: int | None = None,
    partitions: int | None = None,
    release: str | Sequence[str] = (),
    broker: str = "as-specified",
    faults: Sequence[str] | None = None,
    max_faults: int | None = None,
    switches: Sequence[str] = (),
    target: str | None = None,
    naming: str | None = None,
    granularity: str = "atomic",
) -> SizedScenario:
    """Return a group of consumers to explore: one of `rebalance list scenarios`, or one of yours in a file.

        group = scenario("static", members=2, faults=["crash"])

    Args:
        name: the scenario, or the path of a file `*.toml`.
        members: how many consumers there are (as the scenario has it).
        partitions: how many partitions there are (as the scenario has it).
        release: the release of the clients, such as "3.9"; of several each member has one, in turn.
        broker: the release of the coordinator.
        faults: kinds of faults that may happen: some of `rebalance list faults`, [] for none.
        max_faults: how many may happen in one run.
        switches: known mistakes that members, leader and coordinator make: see `rebalance bugs`.
        target: an assignor of yours in the leader's place, such as "my_module:MyAssignor".
        naming: "every" asks the assignor under every naming of members and partitions, "given" under one.
        granularity: "atomic" steps, or "fine" ones.

    Raises CannotJudge.
    """
    from rebalance_verifier.explore.groups import scenarios
    from rebalance_verifier.explore.groups.scenario_files import scenario_in
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.plugged import led_by
    from rebalance_verifier.model.bugs import profiles
    from rebalance_verifier.model.protocols import FAULTS, machine

    kinds = None if faults is None else tuple(fault.replace("-", " ") for fault in several(faults))
    if kinds is not None and "all" in kinds:
        kinds = FAULTS
    with judging(ValueError, OSError, TargetError):
        is_file = isinstance(name, os.PathLike) or name.endswith(".toml")
        named = scenario_in(Path(name)) if is_file else scenarios.scenario(str(name))
        named.refuse_renaming(naming, symmetry=False)
        size = scenarios.ScenarioSize(
            members=members,
            partitions=partitions,
            profiles=tuple(profiles.client(one).name for one in several(release)) or (profiles.AS_SPECIFIED,),
            broker=profiles.broker(broker).name,
            faults=kinds,
            budget=0 if kinds == () and max_faults is None else max_faults,
            switches=several(switches),
            steps=one_of("granularity", granularity, ("atomic", "fine")),
            naming=one_of("naming", naming or ("given" if target else "every"), ("every", "given")),
        )
        if target:
            named, size = led_by(target, named, size)
        setup = named.setup(size)
        machine(setup)  # refuses what cannot be modelled
    return SizedScenario(named, size, setup)


Group = str | os.PathLike[str] | SizedScenario
"""What a function that takes a group takes: the name of a scenario, its file, or what `scenario` returns."""


def sized(group: Group, size: GroupSize) -> SizedScenario:
    """Return the group in its size. Raises CannotJudge."""
    if not isinstance(group, SizedScenario):
        return scenario(group, **size)
    if size:
        raise CannotJudge(f"{', '.join(size)}: this scenario has its size already; give it to scenario()")
    return group


def explore(
    group: Group,
    *,
    depth: int | None = None,
    states: int | None = None,
    memory: int | None = None,
    go_on: bool = False,
    symmetry: bool = False,
    liveness: bool = True,
    walks: int | None = None,
    steps: int = 200,
    seed: int = 0,
    invariants: Sequence[str] = (),
    **size: Unpack[GroupSize],
) -> Judgement:
    """Search every state of a group of consumers for a broken clause, as `rebalance explore` does.

        answer = explore("static", members=2)
        assert answer, answer.findings[0].summary

    Args:
        group: a scenario by its name or file, or what `scenario` returns; with a name, the parameters of
            `scenario` go here too.
        depth: how many steps deep to search (to the end).
        states: how many states to search, about.
        memory: how many bytes the search may take.
        go_on: search on after the first broken clause.
        symmetry: count states that differ in names only as one; liveness is then not asked.
        liveness: ask whether the group settles once faults stop.
        walks: play so many random walks instead, which never is a proof.
        steps: how long a walk is.
        seed: the random seed of the walks.
        invariants: functions of yours that hold in every state, as "module:function".

    A search that a bound ends is inconclusive. Raises CannotJudge.
    """
    from rebalance_verifier.explore.engine.search import Limits
    from rebalance_verifier.explore.groups.exploration import ExplorationPlan, run_exploration
    from rebalance_verifier.gate.targets.plugged import UserDataError
    from rebalance_verifier.properties.group import own

    chosen = sized(group, size)
    with judging(ValueError):
        chosen.named.refuse_renaming(None, symmetry)
    if symmetry and chosen.size.naming == "given":
        raise CannotJudge("symmetry needs naming='every': under given names nothing is symmetric")
    plan = ExplorationPlan(
        setup=chosen.setup,
        origin=chosen.origin,
        symmetry=symmetry,
        limits=Limits(depth=depth, states=states, memory=memory, go_on=go_on),
        asks_liveness=liveness,
        strategy="breadth" if walks is None else "swarm",
        seed=seed,
        walks=walks or 0,
        steps=steps,
        invariants=several(invariants),
    )
    with judging(own.InvariantError, UserDataError):
        exploration = run_exploration(plan)
    return _judgement(exploration)


def _judgement(exploration: Explored) -> Judgement:
    """Return the answer that a finished exploration gives."""
    from rebalance_verifier.report.html import exploration as page
    from rebalance_verifier.report.terminal import exploration as text

    return judgement_of(
        exploration,
        map(_finding, exploration.violations),
        text.headline,
        document=partial(text.data, paths={}),
        text=partial(text.render, paths={}),
        page=partial(page.render, paths={}),
    )


def _finding(violation: ExplorationViolation) -> JudgedFinding:
    from rebalance_verifier.properties.group.own import clause_named
    from rebalance_verifier.traces import runs

    clause, run = clause_named(violation.clause), violation.runs[0]
    return JudgedFinding(
        clause=clause.id,
        level=clause.level,
        rule=clause.sentence,
        summary=run.sentence or violation.sentence,
        _text=partial(runs.to_text, run),
        _save=partial(runs.save, run),
    )


def group_machine(
    group: Group | SearchStrategy[Setup],
    *,
    clause: str | None = None,
    invariants: Sequence[str] = (),
    **size: Unpack[GroupSize],
) -> type[RuleBasedStateMachine]:
    """Return a group as a state machine of Hypothesis: each step is one that can happen, faults among them.

        TestGroup = group_machine("dynamic", members=3, partitions=4).TestCase

    After each step the clauses are asked, and at the end faults stop and the group has to settle. Subclass
    it to ask more; `self.random_run` has the run so far (`events`, `state`).

    Args:
        group: as `explore` takes it, or a strategy that draws groups, such as `setups()`.
        clause: ask this one only.
        invariants: functions of yours that hold in every state, as "module:function".

    A run that breaks a clause fails with BreachError, an AssertionError. Raises CannotJudge.
    """
    from rebalance_verifier.explore.random import group_machine as hypothesis_machine

    return hypothesis_machine.group_machine(drawn(group, size), clause, _rules(invariants))


def drawn(group: Group | SearchStrategy[Setup], size: GroupSize) -> Setup | SearchStrategy[Setup]:
    """Return the group, or the strategy that draws groups. Raises CannotJudge."""
    from hypothesis.strategies import SearchStrategy

    if not isinstance(group, SearchStrategy):
        return sized(group, size).setup
    if size:
        raise CannotJudge(f"{', '.join(size)}: a strategy draws groups in their size")
    return group


def _rules(invariants: Sequence[str]) -> Callable[[Setup], Rules]:
    """Return all that is asked of a group. Raises CannotJudge for an invariant that cannot be."""
    from rebalance_verifier.properties.group import own

    with judging(own.InvariantError):
        for reference in several(invariants):
            own.load(reference)
    return partial(own.rules, invariants=several(invariants))


def runs(
    group: Group | SearchStrategy[Setup],
    *,
    clause: str | None = None,
    invariants: Sequence[str] = (),
    steps: int = 60,
    **size: Unpack[GroupSize],
) -> SearchStrategy[PlayedRun]:
    """Draw whole runs of a group, for tests with `@given`: `run.events`, and `run.clause` where one breaks.

    Args:
        group: as `group_machine` takes it.
        clause: ask this one only.
        invariants: functions of yours that hold in every state, as "module:function".
        steps: how many steps a run has before faults stop.

    Raises CannotJudge.
    """
    from rebalance_verifier.explore.random import group_machine as hypothesis_machine

    return hypothesis_machine.runs(drawn(group, size), steps, clause, _rules(invariants))


def find_run(
    group: Group | SearchStrategy[Setup],
    *,
    clause: str | None = None,
    invariants: Sequence[str] = (),
    seed: int = 0,
    max_examples: int = 5_000,
    steps: int = 60,
    **size: Unpack[GroupSize],
) -> StatefulFinding | None:
    """Search with Hypothesis for a run that breaks a clause; return the smallest, None where none is found.

        found = find_run("dynamic", clause="leader/withhold", members=2, switches=["no_withhold"])
        print(found.run)

    `explore` finds shortest runs, in groups that can be searched as a whole; this plays in larger ones.
    The same seed gives the same run in the same program: Hypothesis also draws numbers that it finds in your
    modules.

    Args:
        group: as `group_machine` takes it.
        clause: ask this one only.
        invariants: functions of yours that hold in every state, as "module:function".
        max_examples: how many runs are played.
        steps: how many steps a run has before faults stop.

    Raises CannotJudge.
    """
    from rebalance_verifier.explore.random import group_machine as hypothesis_machine

    return hypothesis_machine.find(
        drawn(group, size),
        clause=clause,
        seed=seed,
        max_examples=max_examples,
        steps=steps,
        rules_of=_rules(invariants),
    )


@contextlib.contextmanager
def code_machine(
    group: Group, *, code: str, clauses: Sequence[str] = (), **size: Unpack[GroupSize]
) -> Iterator[type[Any]]:
    """Give a group of Kafka's own code, in one JVM, as a state machine of Hypothesis; needs Java and Maven.

        with code_machine("dynamic", code="newest", members=2) as Group:
            Group.TestCase().runTest()

    Subclass it to ask more: `self.playing.group` has the state of coordinator and consumers.

    Args:
        group: as `explore` takes it.
        code: the release of Kafka, "newest", or "coordinator:RELEASE,consumer:RELEASE".
        clauses: ask these only.

    A run that breaks a clause fails with CodeBreachError, an AssertionError. Raises CannotJudge.
    """
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.live.code.replay.attempts import code_releases
    from rebalance_verifier.live.code.search import stateful
    from rebalance_verifier.live.code.search.setups import search_setup
    from rebalance_verifier.live.code.simulation import Simulation

    chosen = sized(group, size)
    with judging(ValueError, ToolError):
        releases = code_releases(code if ":" in code else f"code:{code}")
        setup = search_setup(chosen.named, chosen.size, releases)
        simulation = Simulation([releases.coordinator], releases.consumers)
    with simulation:
        given = {"clauses": several(clauses)} if clauses else {}
        yield stateful.code_machine(simulation, setup, releases, **given)
