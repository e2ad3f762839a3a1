"""A saved run of a consumer group, or of a group between the protocols, in step with Kafka's coordinator.

The clients are the model's, as in every lockstep of such a group; so a clause that is about a client alone is
not asked, and a run whose clients no release is known to have is not played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.random.judge import Judge
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.live.code.lockstep.migration import DECIDES, ENDS
from rebalance_verifier.live.code.lockstep.protocols import in_step
from rebalance_verifier.live.code.lockstep.reproduce import possible, singly
from rebalance_verifier.live.code.lockstep.setups import UNLIMITED_FAULTS, decisions_at
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import broker, client, profile_of_code
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event, Outcome, State
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

OF_CLIENTS = ("callback/", "member/", "epoch/acknowledged")
"""How the clauses begin that a client keeps or breaks by itself."""

AT_REST = ("group/converges", "group/heartbeats")
"""Clauses of runs that never end, which a replay cannot ask."""

BY_KAFKA = (DECIDES, "request refused")
"""Steps that Kafka takes within the one before."""


class SingleStep(NamedTuple):
    """One message of a run; ``number`` is that of the run's step which it is a part of, from 1."""

    number: int
    event: Event


def replay_in_step(
    run: SavedRun, releases: CodeReleases, simulation: Simulation, *, attempts: int | None = None
) -> Replayed:
    """Play ``run`` in step with the coordinator of ``releases``; one attempt is all that there is to make.

    The model has what the release is known to do and what the run's coordinator does. Where the code leaves
    it, the release alone is played: in step with that, the code goes another way than the run. Raises
    ScenarioError for releases without such groups, CannotHappenError when the model does not allow the run.
    """
    releases.refuse_without_consumer_groups(f"a run of {run.clause}")
    if strange := strange_clients(run.setup, releases):
        result = _result(run, releases, run.setup)
        result.stopped = f"its clients are the model's here, and no release named is known for: {strange}"
        return result
    steps = single_steps(run)
    as_run, as_released = _coordinators(run.setup, releases.coordinator)
    result = _Replaying(run, as_run, releases, simulation).play(steps)
    if result.otherwise is None or as_run == as_released:
        return result
    other = _Replaying(run, as_released, releases, simulation).play(steps)
    if other.otherwise is not None and other.otherwise <= result.otherwise:
        return result
    other.parting = other.otherwise = result.otherwise
    return other


def single_steps(run: SavedRun) -> tuple[SingleStep, ...]:
    """Return the run one message a step. Raises CannotHappenError."""
    built = machine(run.setup)
    fine = machine(replace(run.setup, steps="fine", budget=UNLIMITED_FAULTS))
    before, found = built.initial[0], list[SingleStep]()
    for number, (event, (after, _)) in enumerate(zip(run.events, built.replay(run.events), strict=True), 1):
        single = [event] if run.setup.steps == "fine" else singly(fine, before, event, after)
        found += (SingleStep(number, one) for one in single)
        before = after
    return tuple(found)


def strange_clients(setup: Setup, releases: CodeReleases) -> str:
    """Return the decisions of the run's members that their releases are not known for, "" for none."""
    found: dict[str, None] = {}
    for slot, consumer in enumerate(setup.consumers):
        known = client(profile_of_code("client", releases.of(slot))).decisions
        for stage in consumer.stages:
            own = (one for one in sorted(stage.decisions - known) if DECISIONS[one].where != "coordinator")
            found |= dict.fromkeys(own)
    return ", ".join(found)


def _coordinators(setup: Setup, release: str) -> tuple[Setup, Setup]:
    """Return the group with the run's coordinator that is of this release too, and with the release alone."""
    released = decisions_at(broker(profile_of_code("broker", release)).decisions, release)
    fine = replace(setup, steps="fine", budget=UNLIMITED_FAULTS)
    return replace(fine, coordinator=setup.coordinator | released), replace(fine, coordinator=released)


def _result(run: SavedRun, releases: CodeReleases, setup: Setup) -> Replayed:
    clauses = (name for name in rules(setup).broken_by if not name.startswith(OF_CLIENTS))
    return Replayed(
        clause=run.clause,
        client=str(releases),
        version=f"coordinator {releases.coordinator}, clients of the model",
        naming=tuple(map(letter, setup.slots)),
        steps=len(run.events),
        observable_clauses=frozenset(name for name in clauses if name not in AT_REST),
    )


class _Replaying:
    """One play of a run in step; what comes of it is in ``result``."""

    def __init__(self, run: SavedRun, setup: Setup, releases: CodeReleases, simulation: Simulation) -> None:
        self.built, self.result = machine(setup), _result(run, releases, setup)
        self.lockstep = in_step(simulation, setup, self.built, releases)
        self.judge = Judge(self.built, rules(setup).about(*self.result.observable_clauses))

    def play(self, steps: Sequence[SingleStep]) -> Replayed:
        """Play up to the first step that model and code do not take alike: ``otherwise`` is its number."""
        result = self.result
        if (failed := self.lockstep.begin()) is not None:
            result.stopped = failed.sentences[0]
            return result
        for at, (number, event) in enumerate(steps):
            # Kafka's leader decides as soon as its SyncGroup arrives, the run's when it pleases.
            decision = self._decision(steps[at:])
            if decision is not None and not self._take(number, decision):
                return result
            if event.action in BY_KAFKA:
                result.done = number
                continue
            chosen = next(possible(self.built, self.lockstep.state, event), None)
            if chosen is not None:
                if not self._take(number, chosen):
                    return result
            elif event.action != ENDS:  # which Kafka does by itself where nobody else is waited for
                self._unable(number, event, "cannot happen here")
            result.done = number
        return result

    def _decision(self, steps: Sequence[SingleStep]) -> tuple[Event, Outcome] | None:
        """Return the leader's decision that is due, as the run has its next; None where none is."""
        due = [one for one in self.lockstep.possible().among(faults=False) if one[0].action == DECIDES]
        wanted = next((step.event for step in steps if step.event.action == DECIDES), None)
        return next((one for one in due if one[0] == wanted), next(iter(due), None))

    def _unable(self, number: int, event: Event, why: object) -> None:
        self.result.unforced.append(f"step {number}, {self.built.describe.event(event)}: {why}")
        self.result.unable = self.result.unable or number

    def _take(self, number: int, chosen: tuple[Event, Outcome]) -> bool:
        """Take one step in both; False where they part."""
        before = self.lockstep.state
        try:
            met = self.lockstep.step(*chosen)
        except NotForcible as why:
            self._unable(number, chosen[0], why)
            return True
        if met is not None:
            title = f"step {number}, {self.built.describe.event(chosen[0])}"
            self.result.stopped, self.result.otherwise = f"{title}: {met.sentences[0]}", number
            return False
        self._judge(number, before, *chosen)
        return True

    def _judge(self, number: int, before: State, event: Event, outcome: Outcome) -> None:
        """Ask the clauses after one step, and note what was seen; a sentence counts once."""
        result, after = self.result, self.lockstep.state
        known = {(one.clause, one.sentence) for one in result.broken}
        result.broken += [
            BrokenClause(one.clause, number, one.sentence)
            for one in (*self.judge.step(before, event, outcome), *self.judge.state(after))
            if (one.clause, one.sentence) not in known
        ]
        what, seen = self.built.describe.step(before, event, after, outcome.seen)
        owned = {one.name: " ".join(one.owns) or "nothing" for one in self.built.describe.owners(after)}
        result.shown.append({"step": number, "event": what, "seen": list(seen), "owned": owned})
