"""One walk, one replay and one shrinker, over a system that only counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from rebalance_verifier.explore.random.swarm_config import SwarmConfig
from rebalance_verifier.explore.random.system import drawn, replay, shortened, walk
from rebalance_verifier.model.machine import NOBODY, Event


class Move(NamedTuple):
    event: Event


class Counter:
    """Two members count up to five; ``idle`` changes nothing, and ``bad`` breaks once A has counted twice."""

    def __init__(self) -> None:
        self.begun = self.rested = 0

    def begin(self) -> None:
        self.events: list[Event] = []
        self.breaches: dict[Hashable, int] = {}
        self.begun += 1
        self.over = False

    def possible(self) -> Sequence[Move]:
        full = sum(event.action == "up" for event in self.events) == 5
        names = () if full else (("up", 0), ("up", 1), ("idle", 0), ("bad", NOBODY))
        return [Move(Event(*name)) for name in names]

    def is_fault(self, choice: Move) -> bool:
        return choice.event.action == "bad"

    def found(self, event: Event) -> Move | None:
        return next((one for one in self.possible() if one.event == event), None)

    def step(self, choice: Move) -> bool:
        self.events.append(choice.event)
        if choice.event.action == "bad" and self.events.count(Event("up", 0)) >= 2:
            self.breaches.setdefault("bad", len(self.events))
            self.over = True
        return choice.event.action != "idle"

    def rest(self) -> None:
        self.rested += 1
        self.breaches.setdefault("rests", len(self.events))


A, B, IDLE, BAD = Event("up", 0), Event("up", 1), Event("idle", 0), Event("bad")


def moves(*events: Event) -> Iterator[Move]:
    return iter(map(Move, events))


def test_what_changes_nothing_is_no_step_of_a_walk() -> None:
    system = Counter()
    walk(system, moves(A, IDLE, IDLE, B, A), 2)
    assert (system.events, system.rested) == ([A, IDLE, IDLE, B], 1)


def test_a_walk_ends_with_a_breach_and_where_nothing_can_happen() -> None:
    system = Counter()
    walk(system, moves(A, A, BAD, B), 9)
    assert system.events == [A, A, BAD]
    walk(system, moves(A), 9)
    assert (system.events, system.begun) == ([A], 2)


def test_what_is_drawn_follows_from_the_seed_and_ends_where_nothing_can_happen() -> None:
    def run(seed: int, rare: int = 0) -> list[Event]:
        system = Counter()
        walk(system, drawn(system, SwarmConfig(rare=rare), Random(seed)), 100)
        return system.events

    assert run(7) == run(7)
    assert len({tuple(run(seed)) for seed in range(9)}) > 5
    assert max(len(run(seed, rare=1 << 40)) for seed in range(9)) > 5
    assert BAD not in {event for seed in range(9) for event in run(seed, rare=1 << 40)}, "faults are rare"


def test_of_a_run_that_is_played_again_what_cannot_happen_is_left_out() -> None:
    system = Counter()
    replay(system, [A, Event("never", 0), B, A, A, A, BAD])
    assert (system.events, system.rested) == ([A, B, A, A, A], 0)
    replay(system, [A, A, BAD, B], rest=True)
    assert (system.events, system.rested) == ([A, A, BAD], 1)


def test_a_run_is_shortened_to_what_its_cause_needs() -> None:
    at_once, in_chunks = Counter(), Counter()
    events = (B, *[IDLE] * 40, A, BAD, *[IDLE] * 40, B, *[IDLE] * 40, A, BAD, B)
    assert shortened(lambda: at_once, events, "bad", by_part=True) == (A, A, BAD)
    assert shortened(lambda: in_chunks, events, "bad") == (A, A, BAD)
    assert at_once.begun < in_chunks.begun, "all of a kind are left out in one run"


def test_a_cause_that_shows_at_rest_needs_nothing_else() -> None:
    system = Counter()
    assert shortened(lambda: system, (A, B, IDLE), "rests", rest=True) == ()


def test_shortening_ends_when_it_may_not_go_on() -> None:
    system = Counter()
    assert shortened(lambda: system, (B, A, A, BAD), "bad", may_go_on=lambda: False) == (B, A, A, BAD)
    assert system.begun == 0
