"""Has a released coordinator a bug of consumer groups? The run that shows it, in step with that coordinator.

The model is that of the release with the bug's switch besides. Where it and the code agree to the end of the
run, which breaks the switch's clause, the code has it; where they differ and the model without the switch
does not, it has not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import Shown, without
from rebalance_verifier.explore.random.judge import Judge
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import Disagreement
from rebalance_verifier.live.code.lockstep.consumer import ServedLockstep
from rebalance_verifier.live.code.lockstep.setups import UNLIMITED_FAULTS, decisions_at
from rebalance_verifier.live.code.replay.group import REWRITTEN, CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.observed import (
    ABSENT,
    OPEN,
    SERVED,
    SHOWN,
    Observation,
    Observations,
    Seen,
)
from rebalance_verifier.model.bugs.profiles import profile_of_code
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.consumer.group import consumer_machine
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Event, Machine, Outcome, State
from rebalance_verifier.properties.group.clauses import rules

MAX_TRACES = 40
"""Shortest runs that are tried: which partition goes to whom is Kafka's to say."""

MAX_STEPS = 6
"""Single messages that one step of an exploration is at most."""


def observed_on(simulation: Simulation, shown: Shown, releases: CodeReleases) -> Observation:
    """Return what a coordinator does that the simulation has; ``shown`` is of a consumer group."""
    setup = _released(shown, releases.coordinator)
    why = "the run goes another way"
    for events in _runs(shown):
        seen, met = _in_step(simulation, setup, releases, events, shown.clause)
        if met is not None:
            _, met = _in_step(simulation, without(setup, shown.switch), releases, met.events, shown.clause)
            seen, why = (ABSENT, why) if met is None else (OPEN, met.sentences[0])
        if seen != OPEN:
            return Observation(seen)
    return Observation(OPEN, why)


def observe_served(
    shown: Mapping[str, Shown],
    coordinators: Sequence[str],
    consumer: str,
    progress: Callable[[str], None] = lambda line: None,
) -> Observations:
    """Return the same of every switch, on each of these coordinators that has consumer groups. Raises
    ToolError."""
    listed = tuple(one for one in coordinators if version(one) >= version(REWRITTEN))
    observations: dict[tuple[str, str], Observation] = {}
    for release in listed if shown else ():
        progress(f"{SERVED} {release}")
        with Simulation([release], [consumer]) as simulation:
            on = CodeReleases(coordinator=release, consumers=(consumer,))
            observations |= {
                (switch, release): observed_on(simulation, one, on) for switch, one in shown.items()
            }
    order = {(switch, release): observations[switch, release] for switch in shown for release in listed}
    return Observations(part=SERVED, releases=listed, other=consumer, found=order)


def _released(shown: Shown, coordinator: str) -> Setup:
    """Return the group with a coordinator of this release and the switch, one message a step."""
    setup = shown.run_by(shown.client, profile_of_code("broker", coordinator), (shown.switch, *shown.also))
    decisions = decisions_at(setup.coordinator, coordinator)
    return replace(setup, steps="fine", budget=UNLIMITED_FAULTS, coordinator=decisions)


@cache
def _runs(shown: Shown) -> tuple[tuple[Event, ...], ...]:
    """Shortest runs of the model that break the clause of the switch, one message a step."""
    setup = shown.setup()
    built, fine = (
        consumer_machine(setup),
        consumer_machine(replace(setup, steps="fine", budget=UNLIMITED_FAULTS)),
    )
    search = fast.explore(built, rules(setup).about(shown.clause), Limits(go_on=True))
    found = []
    for trace in islice(search.traces(shown.clause), MAX_TRACES):
        state, events = trace.initial, []
        for event in trace.events:
            outcome = built.outcome(state, event)
            assert outcome is not None
            after = built.apply(state, event, outcome)
            events += singly(fine, state, event, after)
            state = after
        found.append(tuple(events))
    return tuple(found)


def singly(fine: Machine, before: State, step: Event, after: State) -> list[Event]:
    """Return the fewest single steps from one state to the other of whoever takes ``step``, one at least,
    whatever they cost; ``step`` itself where it is one. Raises ValueError where there are none."""
    goal, start, who = after[1:], before[1:], step.who
    whole = (UNLIMITED_FAULTS, *start)
    same = fine.outcome(whole, step)
    if same is not None and fine.apply(whole, step, same)[1:] == goal:
        return [step]  # another step may lead there too: a session that expires, for a timeout
    known: set[State] = set()
    waiting: deque[tuple[State, list[Event]]] = deque([(start, [])])
    while waiting:
        state, events = waiting.popleft()
        if state == goal and events:
            return events
        if len(events) == MAX_STEPS:
            continue
        for event, outcome in fine.outcomes((UNLIMITED_FAULTS, *state)):
            reached = fine.apply((UNLIMITED_FAULTS, *state), event, outcome)[1:]
            if event.who == who and reached not in known:
                known.add(reached)
                waiting.append((reached, [*events, event]))
    raise ValueError(f"no {MAX_STEPS} steps of {who} lead there")


def _in_step(
    simulation: Simulation, setup: Setup, releases: CodeReleases, events: Sequence[Event], clause: str
) -> tuple[Seen, Disagreement | None]:
    """Return what is seen in a run in which both agree, open where it cannot be done; and where they do
    not."""
    built = consumer_machine(setup)
    lockstep = ServedLockstep(simulation, setup, built, releases)
    if (failed := lockstep.begin()) is not None:
        return OPEN, failed
    judge = Judge(built, rules(setup), clause)
    for event in events:
        for one, outcome in possible(built, lockstep.state, event):
            before = lockstep.state
            try:
                met = lockstep.step(one, outcome)
            except NotForcible:
                return OPEN, None
            if met is not None:
                return OPEN, met
            if any(True for _ in (*judge.step(before, one, outcome), *judge.state(lockstep.state))):
                return SHOWN, None
            break
        else:
            return OPEN, None
    return ABSENT, None


def possible(built: Machine, state: State, event: Event) -> Iterator[tuple[Event, Outcome]]:
    """The event's outcome, or one of the same action: Kafka chooses the target."""
    outcome = built.outcome(state, event)
    if outcome is not None:
        yield event, outcome
    action = built.by_name[event.action, event.who]
    for other in built.outcomes_of(action, state):
        yield Event(event.action, event.who, other.choice), other
