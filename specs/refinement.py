"""Every step of the executable model is a step of the logic, or some in a row, or none.

That makes the proof speak of the model. ``abstraction`` maps states, ``correspondence`` says which actions of
the logic a step of the model stands for; here it is checked that each of them is allowed, and that the last
one ends where the map says. A step that the picture does not show stands for none, and may change nothing.

The model runs with fine steps; an atomic one does several of these at once.

A setup without failover keeps no log in the model. There the logic's log is forgotten after each step, as if
nothing had been appended yet. Only two things read it: a failover, which cannot happen, and the choice of a
new member id, which may not be in the log; of ids there are always others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import z3
from rebalance.model.machine import Event, State
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import Group, Slot
from rebalance.properties.swarm import tell
from rebalance.specs.abstraction import LOG, Abstraction, Entries, Local, NoCounterpartError, Size, needed
from rebalance.specs.concrete import Stepper
from rebalance.specs.correspondence import Move, Step, steps
from rebalance.specs.logic import symbols_of
from rebalance.specs.protocol import Specification, specification
from rebalance.specs.transitions import Numbered, Numbers, Transition, random_steps, reachable
from rebalance.specs.universe import Structure, call


@dataclass(frozen=True)
class Failure:
    """A step of the model that is none of the logic, or a state that breaks an invariant.

    ``event`` is the model's step, ``name`` the action of the logic, or the invariant; it is empty where the
    logic has no word for what happens. ``why`` says which guard, which symbol, or for whom it is broken.
    """

    event: str
    name: str
    why: str
    invariant: bool = False

    def __str__(self) -> str:
        what = f"breaks {self.name!r}" if self.invariant else f"is not {self.name or 'in the logic'}"
        return f"{self.event} {what}: {self.why}"


@dataclass(frozen=True)
class Report:
    """What was checked.

    ``states`` and ``transitions`` are the model's; ``distinct`` are the steps between two pictures that
    these transitions come to, each checked once, and ``silent`` the transitions that stand for no action.
    ``taken`` counts the actions of the logic, for every transition.
    """

    states: int
    transitions: int
    distinct: int
    silent: int
    taken: Mapping[str, int]
    failure: Failure | None

    @property
    def unused(self) -> tuple[str, ...]:
        """The actions of the logic that no transition stands for."""
        return tuple(name for name, count in self.taken.items() if not count)


Picture = tuple[int, ...]
"""A structure: the number of what all share, and of what each slot has."""


class Refinement:
    """Checks states and transitions of one setup, each that looks different once.

    The universe grows as ids and generations come; what is known is forgotten then. ``size`` is what it
    begins with.
    """

    def __init__(self, setup: Setup, spec: Specification | None = None, size: Size = Size()) -> None:
        self.setup = replace(setup, steps="fine")
        self.spec = spec or specification()
        self.numbered = Numbered(machine(self.setup))
        self.transitions = self.distinct = self.silent = 0
        self.taken = Counter(dict.fromkeys((action.name for action in self.spec.actions), 0))
        place = self.numbered.machine.position
        logs = ["log"] if setup.keeps_log else []
        self._shared = [place[name] for name in ("group", *logs)]
        parts = ("member", "wire", "stray", "record", *logs)
        self._slots = [
            [place["cluster"], *(place[f"{part} {letter(slot)}"] for part in parts)] for slot in setup.slots
        ]
        asked = {**self.spec.invariants, **self.spec.properties}
        self._asked = {
            name: formula
            for name, formula in asked.items()
            if setup.keeps_log or symbols_of(formula).isdisjoint(LOG)
        }
        self._together = z3.And(*self._asked.values())
        self._fits: set[int] = set()
        self._resize(size)

    def _resize(self, size: Size) -> None:
        self.map = Abstraction(self.setup, size)
        self._stepper = Stepper(self.map.universe, self.spec.actions)
        self._entries: list[Entries] = []
        self._numbers: dict[object, int] = {}
        self._parts: dict[tuple[int, Numbers], int] = {}
        self._seen: set[tuple[Picture, tuple[Step, ...], Picture]] = set()
        self._judged: set[Picture] = set()
        blank, positions = self.map.blank(), self.map.universe.positions
        self._log = {name: blank[positions[name]] for name in LOG}
        self._structure = lru_cache(maxsize=256)(self._built)

    # -- the checks --------------------------------------------------------------------------------------

    def step(self, before: State, event: Event, after: State) -> Failure | None:
        """Check a step of the machine, and the state after it.

        The generations have the same names in both states, as ``Machine.apply`` leaves them.
        """
        one, other = self.numbered.normal(self.numbered.numbers(before), self.numbered.numbers(after))
        return self.check(Transition(one, event, other)) or self.judge(other, tell(event))

    def begin(self) -> Failure | None:
        """Check the initial states."""
        for state in self.numbered.initial:
            self._fit(state)
            if not self._stepper.holds(self.spec.initial, self._structure(self._picture(state))):
                return Failure("at first", "initial", "the formula does not hold of the initial state")
        return None

    def check(self, transition: Transition) -> Failure | None:
        """Check one step."""
        before, event, after = transition
        self._fit(before, after)
        self.transitions += 1
        try:
            one, other = self._picture(before), self._picture(after)
            path = tuple(steps(self._move(transition)))
        except NoCounterpartError as reason:
            return Failure(tell(event), "", str(reason))
        self.silent += not path
        for name, _ in path:
            self.taken[name] += 1
        if (one, path, other) in self._seen:
            return None
        self._seen.add((one, path, other))
        self.distinct += 1
        wrong = self._differs(self._structure(one), path, self._structure(other))
        return Failure(tell(event), *wrong) if wrong else None

    def judge(self, state: Numbers, event: str = "") -> Failure | None:
        """The first invariant or property that does not hold in ``state``."""
        self._fit(state)
        picture = self._picture(state)
        if picture in self._judged:
            return None
        self._judged.add(picture)
        structure = self._structure(picture)
        if self._stepper.holds(self._together, structure):
            return None
        holds = self._stepper.holds
        name, closed = next((name, f) for name, f in self._asked.items() if not holds(f, structure))
        letters = [z3.Const(closed.var_name(i), closed.var_sort(i)) for i in range(closed.num_vars())]
        formula = z3.substitute_vars(closed.body(), *reversed(letters))
        values = self._stepper.breach(formula, letters, structure) or {}
        return Failure(event, name, ", ".join(f"{letter}={v}" for letter, v in values.items()), True)

    def report(self, states: int, failure: Failure | None) -> Report:
        return Report(states, self.transitions, self.distinct, self.silent, dict(self.taken), failure)

    def _differs(self, state: Structure, path: tuple[Step, ...], after: Structure) -> tuple[str, str] | None:
        """The first action that is not possible, or the last one if it ends elsewhere; and why."""
        for n, (name, parameters) in enumerate(path):
            forgets = not self.setup.keeps_log and not LOG.isdisjoint(self._stepper.actions[name].updates)
            if n == len(path) - 1 and not forgets:
                why = self._stepper.allowed(state, name, parameters, after)
                return (name, why) if why else None
            try:
                state = self._stepper.apply(state, name, parameters)
            except ValueError as reason:
                return name, str(reason)
            if forgets:
                state = self._forgetful(state)
        universe = self.map.universe
        for symbol, place, should, is_ in universe.differences(state, after):
            last = call(*path[-1]) if path else "no action"
            old = f"{last}: {call(symbol, place)} is {is_}, should be {should}"
            return path[-1][0] if path else "a stutter", old
        return None

    def _forgetful(self, state: Structure) -> Structure:
        """The structure with nothing in its log."""
        symbols = self.map.universe.positions
        return tuple([self._log.get(name, entry) for name, entry in zip(symbols, state, strict=True)])

    # -- pictures ----------------------------------------------------------------------------------------

    def _fit(self, *states: Numbers) -> None:
        """Grow the universe if these states need it."""
        for state in states:
            for number in state:
                if number not in self._fits:
                    size = self.map.size | needed([self.numbered.values[number]])
                    if size != self.map.size:
                        self._resize(size)
                    self._fits.add(number)

    def _picture(self, state: Numbers) -> Picture:
        parts = [self._part(-1, tuple([state[place] for place in self._shared]))[0]]
        for slot, places in enumerate(self._slots):
            parts.append(self._part(slot, tuple([state[place] for place in places]))[0])
        return tuple(parts)

    def _part(self, slot: int, numbers: Numbers) -> tuple[int, Any]:
        """The number of the entries for some components, and what these components are."""
        known = self._parts.get((slot, numbers))
        if known is None:
            values: list[Any] = [self.numbered.values[number] for number in numbers]
            if slot < 0:
                what: Any = values
                entries = self.map.shared(values[0], values[1] if self.setup.keeps_log else Group())
            else:
                cluster, member, wire, stray, records, *log = values
                what = Local(Slot(slot), member, wire, stray, records, log[0] if log else (), cluster)
                entries = self.map.local(what)
            # Entries that equal each other get one number, so that equal pictures are equal.
            key = (slot < 0, *entries.values())
            number = self._numbers.setdefault(key, len(self._entries))
            if number == len(self._entries):
                self._entries.append(entries)
            known = self._parts[slot, numbers] = number, what
        return known

    def _built(self, picture: Picture) -> Structure:
        shared, *slots = [self._entries[number] for number in picture]
        return self.map.structure(shared, slots)

    def _move(self, transition: Transition) -> Move:
        def slots(state: Numbers) -> tuple[Local, ...]:
            return tuple(
                [
                    self._part(slot, tuple([state[place] for place in places]))[1]
                    for slot, places in enumerate(self._slots)
                ]
            )

        def group(state: Numbers) -> Any:
            return self.numbered.values[state[self._shared[0]]]

        before, event, after = transition
        return Move(self.map, event, slots(before), slots(after), group(before), group(after))


def check_exploration(
    setup: Setup, spec: Specification | None = None, limit: int | None = None, judged: bool = True
) -> Report:
    """Check every step from every reachable state, and ``judged`` the invariants there, to the first failure.

    States that equal each other but for the names of members and partitions are one. ``limit`` is about how
    many states there may be at most.
    """
    refinement = Refinement(setup, spec)
    failure = refinement.begin()
    states = reachable(refinement.numbered, limit)
    for state in states:
        if judged:
            failure = failure or refinement.judge(state, "a reachable state")
        for transition in refinement.numbered.steps(state):
            failure = failure or refinement.check(transition)
        if failure:
            break
    return refinement.report(len(states), failure)


def check_walks(
    setup: Setup, seed: int, count: int, spec: Specification | None = None, judged: bool = True
) -> Report:
    """Check ``count`` steps of random runs, and the state after each of them, to the first failure."""
    refinement = Refinement(setup, spec, Size(3, 6))
    failure = refinement.begin()
    for transition in random_steps(refinement.numbered, refinement.setup, seed, count):
        failure = failure or refinement.check(transition)
        if judged:
            failure = failure or refinement.judge(transition.after, tell(transition.event))
        if failure:
            break
    return refinement.report(0, failure)
