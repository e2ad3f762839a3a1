"""Every step of the executable model of a consumer group is some steps of the logic in a row, or none.

``picture`` maps states, ``correspondence`` says which steps are meant. Each of them has to be allowed, and
the last one has to end where the map says. What a heartbeat does at the coordinator at once is up to five
steps of the logic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from enum import Enum
from functools import cache, lru_cache
from typing import Any, cast

import z3
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.consumer.group import consumer_machine
from rebalance_verifier.model.consumer.state import ConsumerGroup
from rebalance_verifier.model.group.setup import CONSUMER, Setup, letter
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.classic.refinement.refinement import (
    MAX_KNOWN,
    RECENT,
    RefinementFailure,
    Report,
    broken,
)
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel, sampled_by
from rebalance_verifier.specs.consumer.correspondence import ConsumerMove, Step, steps
from rebalance_verifier.specs.consumer.order import in_step
from rebalance_verifier.specs.consumer.picture import GroupPicture, SlotState, ids_in
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.transitions import NumberedMachine, Numbers, Transition
from rebalance_verifier.specs.logic.universe import Structure, call

_Step = tuple[int, tuple[Step, ...], int]
"""A step between two structures, by their numbers."""

LEAST = (2, 8)
"""Ids of each slot and epochs that the universe begins with."""


class _KnownEpochs:
    """Facts that are known in a universe of one size: the pictures, and what came of each step between
    them."""

    def __init__(self, picture: GroupPicture, spec: Specification) -> None:
        self.map = picture
        self.stepper = Stepper(picture.universe, spec.actions)
        self.pictures: dict[Numbers, int] = {}
        self.structures: list[Structure] = []
        self.numbers: dict[Structure, int] = {}
        self.known: dict[_Step, tuple[tuple[str, str] | None, tuple[tuple[str, int], ...]]] = {}
        self.whole: set[int] = set()


class ConsumerRefinement:
    """Checks states and transitions of one setup, each that looks different once. The universe grows as ids
    and epochs come. Raises ValueError where somebody speaks the classic protocol."""

    picture: Callable[[Setup, int, int], GroupPicture] = GroupPicture
    """How a state of the model is one of the logic."""

    def __init__(
        self,
        setup: Setup,
        spec: Specification | None = None,
        build: Callable[[Setup], Machine] | None = None,
    ) -> None:
        self.covers(setup)
        self.setup = replace(setup, steps="fine")
        self.spec = spec or self.specified()
        self.numbered = NumberedMachine((build or self.machine)(self.setup))
        self.report = Report(taken=Counter(dict.fromkeys((action.name for action in self.spec.actions), 0)))
        position = self.numbered.machine.position
        self._group = position["group"]
        parts = ("member", "wire", "stray", "record")
        self._slots = [[position[f"{part} {letter(slot)}"] for part in parts] for slot in setup.slots]
        self._formulas = {**self.spec.invariants, **self.spec.properties}
        self._together = z3.And(*self._formulas.values())
        self._views: dict[tuple[int, int], _KnownEpochs] = {}
        self._kinds: dict[int, Hashable] = {}
        self._slot_states = lru_cache(maxsize=RECENT)(self._slots_of)
        self._resize(*LEAST)

    def anew(self) -> None:
        """Forget which steps and states were met, not what is known of them."""
        self.report = Report(taken=Counter(dict.fromkeys(self.report.taken, 0)))
        self._resize(*LEAST)

    def covers(self, setup: Setup) -> None:
        """Raises ValueError for a group that the logic does not have."""
        if setup.protocol != CONSUMER:
            raise ValueError("the logic has members of the consumer protocol only")

    def specified(self) -> Specification:
        """Return the logic."""
        return _protocol()

    def machine(self, setup: Setup) -> Machine:
        """Return the model."""
        return consumer_machine(setup)

    def path(self, move: ConsumerMove) -> Iterator[Step]:
        """Yield the steps of the logic that a step of the model stands for. Raises NoCounterpartError."""
        return steps(move)

    def _resize(self, ids: int, epochs: int) -> None:
        view = self._views.get((ids, epochs))
        if view is None or len(view.known) > MAX_KNOWN:
            picture = type(self).picture(self.setup, ids, epochs)
            view = self._views[ids, epochs] = _KnownEpochs(picture, self.spec)
        self._view, self.map, self._stepper = view, view.map, view.stepper
        self._fits: set[Numbers] = set()
        self._seen: set[_Step] = set()
        self._judged: set[int] = set()

    def begin(self) -> RefinementFailure | None:
        """Check the initial states."""
        for state in self.numbered.initial:
            if not self._stepper.holds(self.spec.initial, self._view.structures[self._number(state)]):
                return RefinementFailure("at first", "initial", "the formula does not hold at first")
        return None

    def check(self, transition: Transition) -> RefinementFailure | None:
        """Check one step."""
        before, _, after, _ = transition
        self.report.transitions += 1
        try:
            self._fit(before, after)
            one, other = self._number(before), self._number(after)
            path = tuple(self.path(self._move(transition)))
        except NoCounterpartError as reason:
            return RefinementFailure(event_text(transition.event), "", str(reason))
        self.report.silent += not path
        step: _Step = (one, path, other)
        if step in self._seen:
            return None
        self._seen.add(step)
        self.report.distinct += 1
        structures, known = self._view.structures, self._view.known
        if step not in known:
            taken = Counter[str]()
            known[step] = self._wrong(structures[one], path, structures[other], taken), tuple(taken.items())
        wrong, actions = known[step]
        self.report.taken.update(dict(actions))
        return RefinementFailure(event_text(transition.event), *wrong) if wrong else None

    def _wrong(
        self, state: Structure, path: tuple[Step, ...], after: Structure, taken: Counter[str]
    ) -> tuple[str, str] | None:
        """Return the first step that is not possible, or the last one if it ends elsewhere; and why. Counts
        the actions of the logic that are ``taken``."""
        for names, parameters in path:
            reasons = []
            for name in names:
                try:
                    state = self._stepper.apply(state, name, parameters, after)
                except ValueError as reason:
                    reasons.append(str(reason))
                    continue
                taken[name] += 1
                break
            else:
                return names[0], "; ".join(dict.fromkeys(reasons))
        final = path[-1][0][0] if path else "a stutter"
        for symbol, arguments, should, is_ in self.map.universe.differences(state, after):
            return final, f"{final}: {call(symbol, arguments)} is {is_}, should be {should}"
        return None

    def judge(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """Return the first invariant or property that does not hold in ``state``."""
        try:
            self._fit(state)
            number = self._number(state)
        except NoCounterpartError as reason:
            return RefinementFailure(event, "", str(reason))
        if number in self._judged:
            return None
        self._judged.add(number)
        if number in self._view.whole:
            return None
        structure = self._view.structures[number]
        if self._stepper.holds(self._together, structure):
            self._view.whole.add(number)
            return None
        return broken(self._stepper, self._formulas, structure, event)

    def breach(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """Return the first property that does not hold in ``state``; None also where nothing shows it."""
        try:
            self._fit(state)
            structure = self._view.structures[self._number(state)]
            return broken(self._stepper, self.spec.properties, structure, event)
        except NoCounterpartError:
            return None

    def kind(self, transition: Transition) -> Hashable:
        """Return the action, and what of the states before of its client and of the group is no number."""
        before, event, *_ = transition
        positions = [self._group, *self._slots[max(event.who, 0)]]
        return event.action, *(self._kind(before[position]) for position in positions)

    def _kind(self, number: int) -> Hashable:
        if number not in self._kinds:
            self._kinds[number] = _without_numbers(self.numbered.values[number])
        return self._kinds[number]

    # -- pictures ----------------------------------------------------------------------------------------

    def _slots_of(self, state: Numbers) -> tuple[SlotState, ...]:
        values: list[Any] = self.numbered.values
        return tuple(SlotState(*(values[state[i]] for i in positions)) for positions in self._slots)

    def _fit(self, *states: Numbers) -> None:
        ids, epochs = self.map.ids, self.map.epochs
        unknown = [state for state in states if state not in self._fits]
        for state in unknown:
            ids = max(ids, *map(ids_in, self._slot_states(state)))
            epochs = max(epochs, self.numbered.labels(state).bit_length())
        if (ids, epochs) != (self.map.ids, self.map.epochs):
            self._resize(ids, epochs)
        self._fits.update(unknown)

    def _number(self, state: Numbers) -> int:
        """Return the number of the structure that is the picture of a state."""
        view = self._view
        known = view.pictures.get(state)
        if known is None:
            group = cast(ConsumerGroup, self.numbered.values[state[self._group]])
            structure = self.map.structure(group, self._slot_states(state))
            known = view.pictures[state] = view.numbers.setdefault(structure, len(view.structures))
            if known == len(view.structures):
                view.structures.append(structure)
        return known

    def _move(self, transition: Transition) -> ConsumerMove:
        before, event, after, seen = transition
        values: list[Any] = self.numbered.values
        return ConsumerMove(
            map=self.map,
            event=event,
            before=self._slot_states(before),
            after=self._slot_states(after),
            group=values[before[self._group]],
            group_after=values[after[self._group]],
            seen=seen or (),
        )


def _without_numbers(value: object) -> Hashable:
    """Of a value its truth values and names, and those of its parts; of a number that there is one."""
    if isinstance(value, tuple):
        return type(value).__name__, *(_without_numbers(part) for part in value)
    return value if value is None or isinstance(value, bool | Enum) else bool(value)


def sampled(sample: ModelSample) -> SampledModel:
    """Check the sample of the model."""
    return sampled_by(sample, ConsumerRefinement(sample.setup))


@cache
def _protocol() -> Specification:
    """With an assignor that is exclusive; topics that are deleted are left to nobody."""
    return in_step(("exclusive",))
