"""Every step of the executable model is a step of the logic, or some in a row, or none.

That makes the proof speak of the model. ``abstraction`` maps states, ``correspondence`` says which actions of
the logic a step of the model stands for; here it is checked that each of them is allowed, and that the last
one ends where the map says. A step that the appearance does not show stands for none, and may change nothing.
The listeners have to be told the same on the way (``listeners``).

The model runs with fine steps; an atomic one does several of these at once.

A setup without failover keeps no log in the model. There the logic's log is forgotten after each step, as if
nothing had been appended yet. Only two things read it: a failover, which cannot happen, and the choice of a
new member id, which may not be in the log; of ids there are always others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, cast

import z3
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import Group
from rebalance_verifier.model.group.parts import Slot
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event, Machine, State
from rebalance_verifier.specs.classic.refinement.abstraction import (
    LEAST,
    LOG,
    Abstraction,
    Entries,
    Local,
    NoCounterpartError,
    StructureSize,
    needed,
)
from rebalance_verifier.specs.classic.refinement.correspondence import steps
from rebalance_verifier.specs.classic.refinement.listeners import (
    ListenerCall,
    TakenStep,
    called_by,
    differs,
    seen_by,
)
from rebalance_verifier.specs.classic.refinement.moves import Move, SpecStep
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.language import Term, symbols_of
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.transitions import NumberedMachine, Numbers, Transition
from rebalance_verifier.specs.logic.universe import Structure, call


@dataclass(frozen=True)
class RefinementFailure:
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


@dataclass(kw_only=True)
class Report:
    """Steps checked so far.

    ``states`` (of an exploration) and ``transitions`` are the model's; ``distinct`` are the steps between two
    pictures that these come to, each checked once, and ``silent`` the transitions that stand for no action.
    ``taken`` counts the actions of the logic, for every transition.
    """

    taken: Counter[str]
    states: int = 0
    transitions: int = 0
    distinct: int = 0
    silent: int = 0
    failure: RefinementFailure | None = None


Appearance = tuple[int, ...]
"""A structure: the number of what all share, and of what each slot has."""


_Step = tuple[Appearance, tuple[SpecStep, ...], Appearance, tuple[ListenerCall, ...] | None]

KINDS = (
    "life", "state", "identified", "prepare", "rejoin", "resubscribed", "outdated", "unseen", "subscribes",
    "received", "wire", "error", "leading", "stray", "stray_error", "group",
)  # fmt: skip
"""Symbols that are no numbers, and tell of what kind a state is."""

RECENT = 4096
"""States whose picture is kept: all steps from a state are looked at in a row."""

MAX_KNOWN = 200_000
"""Steps that are kept for the next sample: about 200 MB."""


class _KnownUniverse:
    """Facts that are known in a universe of one size: the pictures, and what came of each step between
    them."""

    def __init__(self, picture: Abstraction, spec: Specification) -> None:
        self.map = picture
        self.stepper = Stepper(picture.universe, spec.actions)
        self.entries: list[Entries] = []
        self.numbers: dict[object, int] = {}
        self.parts: dict[tuple[int, Numbers], int] = {}
        self.known: dict[_Step, tuple[str, str] | None] = {}
        self.whole: set[Appearance] = set()
        self.kinds: dict[int, Hashable] = {}


class Refinement:
    """Checks states and transitions of one setup, each that looks different once.

    The universe grows as ids and generations come. ``size`` is what it begins with. ``build`` makes the
    machine of the setup: the model's, or one that is to be told from it. What is known of a step is kept for
    the next sample (``anew``), so that many cost little more than what they differ in.

    Raises ValueError where members subscribe by pattern: they take an assignment of a topic that matches and
    that they know no more.
    """

    def __init__(
        self,
        setup: Setup,
        spec: Specification | None = None,
        size: StructureSize = LEAST,
        build: Callable[[Setup], Machine] = machine,
    ) -> None:
        if setup.has_patterns:
            raise ValueError("the logic has members of the classic protocol that subscribe by name only")
        self.setup = replace(setup, steps="fine")
        self.spec = spec or _protocol()
        self.numbered = NumberedMachine(build(self.setup))
        self.report = Report(taken=Counter(dict.fromkeys((action.name for action in self.spec.actions), 0)))
        position = self.numbered.machine.position
        logs = ["log"] if setup.keeps_log else []
        self._shared = [position[name] for name in ("group", *logs)]
        behind = ["behind"] if setup.breaks_connections else []
        parts = ("member", "wire", "stray", "record", *logs, *behind)
        self._slots = [
            [position["cluster"], *(position[f"{part} {letter(slot)}"] for part in parts)]
            for slot in setup.slots
        ]
        formulas = {**self.spec.invariants, **self.spec.properties}
        self._formulas = {
            name: formula
            for name, formula in formulas.items()
            if setup.keeps_log or symbols_of(formula).isdisjoint(LOG)
        }
        self._together = z3.And(*self._formulas.values())
        self._size = size
        self._views: dict[StructureSize, _KnownUniverse] = {}
        self._locals: dict[tuple[int, Numbers], Local] = {}
        self._resize(size)

    def anew(self) -> None:
        """Forget which steps and states were met, not what is known of them."""
        self.report = Report(taken=Counter(dict.fromkeys(self.report.taken, 0)))
        self._resize(self._size)

    def _resize(self, size: StructureSize) -> None:
        view = self._views.get(size)
        if view is None or len(view.known) > MAX_KNOWN:
            view = self._views[size] = _KnownUniverse(Abstraction(self.setup, size), self.spec)
        self._view, self.map, self._stepper = view, view.map, view.stepper
        self._fits: set[int] = set()
        self._seen: set[_Step] = set()
        self._judged: set[Appearance] = set()
        blank, positions = self.map.blank(), self.map.universe.positions
        self._log = {name: blank[positions[name]] for name in LOG}
        self._structure = lru_cache(maxsize=256)(self._built)
        self._appearance = lru_cache(maxsize=RECENT)(self._seen_as)

    # -- the checks --------------------------------------------------------------------------------------

    def step(
        self, before: State, event: Event, after: State, seen: tuple[Hashable, ...] | None = None
    ) -> RefinementFailure | None:
        """Check a step of the machine with fine steps, and the state after it.

        The generations have the same names in both states, as ``Machine.apply`` leaves them. ``seen`` is the
        outcome's, if it is to be checked as well.
        """
        one, other = self.numbered.normal(self.numbered.numbers(before), self.numbered.numbers(after))
        transition = Transition(one, event, other, seen)
        return self.check(transition) or self.judge(other, event_text(event))

    def begin(self) -> RefinementFailure | None:
        """Check the initial states."""
        for state in self.numbered.initial:
            self.fit(state)
            if not self._stepper.holds(self.spec.initial, self._structure(self._appearance(state))):
                return RefinementFailure(
                    "at first", "initial", "the formula does not hold of the initial state"
                )
        return None

    def check(self, transition: Transition) -> RefinementFailure | None:
        """Check one step."""
        before, event, after, seen = transition
        self.fit((*before, *after))
        self.report.transitions += 1
        try:
            one, other = self._appearance(before), self._appearance(after)
            path = tuple(steps(self._move(transition)))
        except NoCounterpartError as reason:
            return RefinementFailure(event_text(event), "", str(reason))
        self.report.silent += not path
        for name, _ in path:
            self.report.taken[name] += 1
        calls = None if seen is None else seen_by(seen)
        step: _Step = (one, path, other, calls)
        if step in self._seen:
            return None
        self._seen.add(step)
        self.report.distinct += 1
        known = self._view.known
        if step not in known:
            known[step] = self._wrong(self._structure(one), path, self._structure(other), calls)
        wrong = known[step]
        return RefinementFailure(event_text(event), *wrong) if wrong else None

    def judge(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """Return the first invariant or property that does not hold in ``state``."""
        self.fit(state)
        try:
            appearance = self._appearance(state)
        except NoCounterpartError as reason:
            return RefinementFailure(event, "", str(reason))
        if appearance in self._judged:
            return None
        self._judged.add(appearance)
        if appearance in self._view.whole:
            return None
        structure = self._structure(appearance)
        if self._stepper.holds(self._together, structure):
            self._view.whole.add(appearance)
            return None
        return broken(self._stepper, self._formulas, structure, event)

    def breach(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """Return the first property that does not hold in ``state``; None also where nothing shows it."""
        self.fit(state)
        try:
            structure = self._structure(self._appearance(state))
        except NoCounterpartError:
            return None
        properties = {name: f for name, f in self._formulas.items() if name in self.spec.properties}
        return broken(self._stepper, properties, structure, event)

    def _wrong(
        self,
        state: Structure,
        path: tuple[SpecStep, ...],
        after: Structure,
        calls: tuple[ListenerCall, ...] | None,
    ) -> tuple[str, str] | None:
        """Return the first action that is not possible, or the last one if it ends elsewhere; and why."""
        universe, taken = self.map.universe, list[TakenStep]()
        for n, (name, parameters) in enumerate(path):
            last = n == len(path) - 1
            forgets = not self.setup.keeps_log and not LOG.isdisjoint(self._stepper.actions[name].updates)
            if last and not forgets:
                why = self._stepper.allowed(state, name, parameters, after)
                if why is not None:
                    return name, why
                then = after
            else:
                try:
                    towards = self._remembering(after) if forgets else after
                    then = self._stepper.apply(state, name, parameters, towards)
                except ValueError as reason:
                    return name, str(reason)
                then = self._forgetful(then) if forgets else then
            taken.append((state, (name, parameters), then))
            state = then
        final = path[-1][0] if path else "a stutter"
        for symbol, arguments, should, is_ in universe.differences(state, after):
            return final, f"{final}: {call(symbol, arguments)} is {is_}, should be {should}"
        why = None if calls is None else differs(self.setup, calls, called_by(universe, taken))
        return (final, why) if why else None

    def _remembering(self, state: Structure) -> Structure:
        """Return the structure with that in its log which is in memory."""
        positions = self.map.universe.positions
        live = {name: state[positions[name.removeprefix("log_")]] for name in LOG}
        return tuple([live.get(name, entry) for name, entry in zip(positions, state, strict=True)])

    def _forgetful(self, state: Structure) -> Structure:
        """Return the structure with nothing in its log."""
        symbols = self.map.universe.positions
        return tuple([self._log.get(name, entry) for name, entry in zip(symbols, state, strict=True)])

    def kind(self, transition: Transition) -> Hashable:
        """Return the action, and what of the states before of its consumer and of the group is no number."""
        before, event, *_ = transition
        try:
            appearance = self._appearance(before)
        except (NoCounterpartError, ValueError):
            return event.action
        return event.action, self._kind(appearance[0]), self._kind(appearance[max(event.who, 0) + 1])

    def _kind(self, number: int) -> Hashable:
        kinds = self._view.kinds
        if number not in kinds:
            entries = self._view.entries[number]
            kinds[number] = tuple(entries[name] for name in KINDS if name in entries)
        return kinds[number]

    # -- pictures ----------------------------------------------------------------------------------------

    def fit(self, values: Iterable[int]) -> None:
        """Enlarge the universe if the values with these numbers need it."""
        for number in values:
            if number not in self._fits:
                size = self.map.size | needed([self.numbered.values[number]])
                if size != self.map.size:
                    self._resize(size)
                self._fits.add(number)

    def _seen_as(self, state: Numbers) -> Appearance:
        shared = self._part(-1, tuple([state[position] for position in self._shared]))
        parts = [
            self._part(slot, tuple([state[position] for position in places]))
            for slot, places in enumerate(self._slots)
        ]
        return (shared, *parts)

    def _part(self, slot: int, numbers: Numbers) -> int:
        """Return the number of the entries for some components: of one slot, or of what all share."""
        known = self._view.parts.get((slot, numbers))
        if known is None:
            if slot < 0:
                group, *log = [self.numbered.values[number] for number in numbers]
                entries = self.map.shared(cast(Group, group), cast(Group, log[0]) if log else Group())
            else:
                entries = self.map.local(self._local_of(slot, numbers))
            # Entries that equal each other get one number, so that equal pictures are equal.
            key = (slot < 0, *entries.values())
            view = self._view
            known = view.numbers.setdefault(key, len(view.entries))
            if known == len(view.entries):
                view.entries.append(entries)
            view.parts[slot, numbers] = known
        return known

    def _local(self, slot: int, state: Numbers) -> Local:
        return self._local_of(slot, tuple([state[position] for position in self._slots[slot]]))

    def _local_of(self, slot: int, numbers: Numbers) -> Local:
        known = self._locals.get((slot, numbers))
        if known is None:
            values: list[Any] = [self.numbered.values[number] for number in numbers]
            cluster, member, wire, stray, records, *rest = values
            log = rest[:1] if self.setup.keeps_log else []
            behind = rest[len(log) :]
            known = Local(
                slot=Slot(slot),
                member=member,
                wire=wire,
                stray=stray,
                behind=behind[0] if behind else (),
                records=records,
                log=log[0] if log else (),
                cluster=cluster,
            )
            self._locals[slot, numbers] = known
        return known

    def _built(self, appearance: Appearance) -> Structure:
        shared, *slots = [self._view.entries[number] for number in appearance]
        return self.map.structure(shared, slots)

    def _move(self, transition: Transition) -> Move:
        before, event, after, _ = transition
        values, group = self.numbered.values, self._shared[0]
        return Move(
            map=self.map,
            event=event,
            before=tuple([self._local(slot, before) for slot in self.setup.slots]),
            after=tuple([self._local(slot, after) for slot in self.setup.slots]),
            group=cast(Group, values[before[group]]),
            group_after=cast(Group, values[after[group]]),
        )


def broken(
    stepper: Stepper, formulas: Mapping[str, Term], structure: Structure, event: str
) -> RefinementFailure | None:
    """Return the first of the closed formulas that does not hold, and for whom."""
    holds = stepper.holds
    name = next((name for name, formula in formulas.items() if not holds(formula, structure)), None)
    if name is None:
        return None
    closed = formulas[name]
    if not z3.is_quantifier(closed):
        return RefinementFailure(event, name, "it does not hold", True)
    letters = [z3.Const(closed.var_name(i), closed.var_sort(i)) for i in range(closed.num_vars())]
    formula = z3.substitute_vars(closed.body(), *reversed(letters))
    values = stepper.breach(formula, letters, structure) or {}
    return RefinementFailure(event, name, ", ".join(f"{letter}={v}" for letter, v in values.items()), True)


@cache
def _protocol() -> Specification:
    return specification()
