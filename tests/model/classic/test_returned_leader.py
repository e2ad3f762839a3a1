"""Restarts of a static leader, which skips the assignment (KIP-814): what is missed, what a repair costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.observations import Call, Callback
from rebalance_verifier.model.machine import NOBODY, Event, Machine, Outcome, State

from tests.model.classic.small_groups import setup

NOTED = "skipped_assignment_noted"


Taken = tuple[State, Event, Outcome]


def settles(built: Machine, state: State) -> Iterator[Taken]:
    """Start whoever is down, and take the first step that is no fault until there is none."""
    while steps := [
        (event, outcome)
        for event, outcome in built.outcomes(state)
        if event.action == "start" or not built.by_name[event.action, event.who].fault
    ]:
        yield taken(built, state, *steps[0])
        state = built.apply(state, *steps[0])


def taken(built: Machine, state: State, event: Event, outcome: Outcome) -> Taken:
    return built.apply(state, event, outcome), event, outcome


def fault(built: Machine, state: State, action: str, who: int) -> State:
    """Return the state after the first outcome of a fault."""
    for event, outcome in built.outcomes(state):
        if (event.action, event.who) == (action, who):
            return built.apply(state, event, outcome)
    raise AssertionError(f"{action} is not possible")


def after_restart(decisions: tuple[str, ...], who: int, *, grows: bool) -> tuple[int, int, int]:
    """Return how many rebalances a restart of ``who`` makes, how many callbacks take something away, and what
    is owned in the end."""
    group = setup(
        topics=(0b111,), exist=0b011, static=True, decisions=decisions, faults=("close", "topic grows")
    )
    built = machine(group)
    settled = [*settles(built, built.initial[0])][-1][0]
    down = fault(built, settled, "close", who)
    run = [*settles(built, fault(built, down, "topic grows", NOBODY) if grows else down)]
    end = run[-1][0]
    lost = [
        seen
        for _, _, outcome in run
        for seen in outcome.seen
        if isinstance(seen, Callback) and seen.call is not Call.ASSIGNED and seen.parts
    ]
    owned = built.value(end, "member A").owned | built.value(end, "member B").owned
    before, after = (built.value(state, "group").generation for state in (settled, end))
    return after - before, len(lost), owned


@pytest.mark.parametrize(
    ("decisions", "who", "grows", "rebalances", "owned"),
    [
        ((NOTED,), 0, False, 0, 0b011),
        ((NOTED,), 0, True, 0, 0b011),  # U14: t-2 is read by nobody
        ((), 0, False, 1, 0b011),  # the price of the repair
        ((), 0, True, 1, 0b111),
        ((), 1, False, 0, 0b011),  # another member than the leader costs nothing
    ],
)
def test_a_restart(decisions: tuple[str, ...], who: int, grows: bool, rebalances: int, owned: int) -> None:
    assert after_restart(decisions, who, grows=grows) == (rebalances, 0, owned)
