"""A state machine as data: named components, actions with a declared footprint, views.

A state is one immutable value per component. An action reads some components, is a plain function of
their values, and writes some components; everything it may depend on is in ``reads``. That is what lets
one readable definition run in two engines: one that calls every action on every state, and one that calls
it once per distinct value of what it reads (``explore``).

Nothing here knows of Kafka. The consumer group is built in ``model.classic``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

Value = Hashable
"""The value of one component."""

State = tuple[Value, ...]
"""One value per component, in the order of ``Machine.components``."""

NOBODY = -1
"""``who`` of an action that is about no member in particular."""


class Fairness(IntEnum):
    """Assumption about an action in a run that never ends.

    WEAK: it is not for ever enabled and never taken. STRONG: it is not enabled again and again for ever
    and taken only finitely often. NONE: nothing; faults have none.
    """

    NONE = 0
    WEAK = 1
    STRONG = 2


class Event(NamedTuple):
    """One step: an action, the member it is about, and which of its outcomes."""

    action: str
    who: int = NOBODY
    choice: str = ""


class Outcome(NamedTuple):
    """Result of one step: new values for ``Action.writes``, and what could be observed on the way.

    ``choice`` tells apart the outcomes of one action in one state; it never contains a generation.
    ``seen`` is what a listener, a broker log or a test would have seen, in order.
    """

    values: tuple[Value, ...]
    choice: str = ""
    seen: tuple[Hashable, ...] = ()


Change = Callable[[str], tuple[Value, Value]]
"""From the name of a view to its values before and after a step."""

Run = Callable[..., Iterable[Outcome]]
"""From the values of what an action reads to its outcomes."""

Footprint = tuple[str, ...]
"""Names of components."""


class When(NamedTuple):
    """A condition on some of what an action reads."""

    reads: tuple[str, ...]
    holds: Callable[..., bool]


class Action(NamedTuple):
    """One kind of step. (``name``, ``who``) is unique in a machine.

    ``run`` is called with the values of ``reads`` and yields the outcomes, none when it is not enabled,
    in an order that follows from the values alone. ``guard``, where given, is asked with the value of
    ``reads[0]`` only: false means that there are no outcomes, whatever the rest is. So does each of
    ``when``; an engine may leave these out, since they only save calls of ``run``.
    ``fault`` marks what the environment does to the group; when no fault happens any more, the group has
    to settle.
    """

    name: str
    who: int
    reads: Footprint
    writes: Footprint
    run: Run
    guard: Callable[[Value], bool] | None = None
    fault: bool = False
    fairness: Fairness = Fairness.WEAK
    when: tuple[When, ...] = ()


def is_a(*kinds: type) -> Callable[[Value], bool]:
    """Return a guard: whether the value is of one of ``kinds``."""
    return lambda value: isinstance(value, kinds)


def fault(name: str, who: int, reads: Footprint, writes: Footprint, run: Run) -> Action:
    """Return what the environment may do as long as ``reads[0]``, the budget, is not 0."""
    return Action(
        name=name,
        who=who,
        reads=reads,
        writes=writes,
        run=run,
        guard=bool,
        fault=True,
        fairness=Fairness.NONE,
    )


class View(NamedTuple):
    """A small value that follows from some components; what rules are asked about."""

    name: str
    reads: tuple[str, ...]
    of: Callable[..., Value]


class Labels(NamedTuple):
    """Numbers of which only order and equality matter (generations), so that states can be normalised.

    ``used`` is the set of labels >= 0 in one component's value, as a bit mask. ``relabel`` renames them,
    label ``n`` to ``names[n]`` (only labels in use are looked up). A state is normal when its labels are
    0, 1, 2 ... without a gap.
    """

    used: Callable[[Value], int]
    relabel: Callable[[Value, Mapping[int, int]], Value]


@dataclass(frozen=True, slots=True)
class StepOwner:
    """One member in a state: ``life`` is empty while it is at work, ``generation`` None outside of any."""

    name: str
    life: str
    generation: int | None
    owns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMessage:
    """A message between a member and the coordinator, as far as the member sees it. ``api``: JoinGroup ...

    ``answer``: from the coordinator. ``text`` says what it carries, or the error. ``lost``: it never arrives.
    """

    member: str
    api: str
    answer: bool = False
    generation: int | None = None
    text: str = ""
    lost: bool = False

    @property
    def sentence(self) -> str:
        """Return all of it, in one line."""
        since = "" if self.generation is None else f" of generation {self.generation}"
        what = (
            f"{self.api} response{since} to {self.member}"
            if self.answer
            else f"{self.api}{since} of {self.member}"
        )
        return what + (f": {self.text}" if self.text else "") + (", which gets lost" if self.lost else "")


@dataclass(frozen=True, slots=True)
class StepMark:
    """Mark at a member (at the coordinator: ``""``) in a step: a callback, a removal."""

    member: str
    text: str
    fault: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetails:
    """Details of a step for a drawing: its messages and marks, and what is so afterwards.

    ``removed``: who is no member (any more), whatever it owns; ``unowned``: partitions that exist and that
    nobody owns, once there is a ``generation``.
    """

    generation: int | None = None
    removed: frozenset[str] = frozenset()
    unowned: tuple[str, ...] = ()
    messages: tuple[StepMessage, ...] = ()
    marks: tuple[StepMark, ...] = ()


def _plain_event(event: Event) -> str:
    who = "" if event.who == NOBODY else f" {event.who}"
    return f"{event.action}{who}{f' ({event.choice})' if event.choice else ''}"


def _plain_step(
    before: State, event: Event, after: State, seen: tuple[Hashable, ...]
) -> tuple[str, tuple[str, ...]]:
    return _plain_event(event), tuple(map(str, seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """How a machine puts itself in words, so that nobody else has to; by default as values print.

    ``event`` as in a trace file. ``state``: a caption of a few lines; ``owners``: who owns what in it;
    ``parties``: (name, one line) of everybody in it.
    ``observation``: one item of ``Outcome.seen``. ``step``, of the state before, the event, the state after
    and what was seen: what happens as one sentence, and what of the observations it does not say already.
    ``details``, of the same: what a drawing shows of it.
    """

    event: Callable[[Event], str] = _plain_event
    state: Callable[[State], str] = str
    owners: Callable[[State], tuple[StepOwner, ...]] = lambda state: ()
    parties: Callable[[State], tuple[tuple[str, str], ...]] = lambda state: ()
    observation: Callable[[Hashable], str] = str
    step: Callable[[State, Event, State, tuple[Hashable, ...]], tuple[str, tuple[str, ...]]] = _plain_step
    details: Callable[[State, Event, State, tuple[Hashable, ...]], StepDetails] = lambda *step: StepDetails()


class CannotHappenError(ValueError):
    """A step of a run that the machine does not allow; ``number`` is its position, from 1."""

    def __init__(self, number: int, event: str, possible: Sequence[str]) -> None:
        names = ", ".join(possible[:12]) + (", ..." if len(possible) > 12 else "")
        super().__init__(f"step {number}, {event!r}, cannot happen; possible are: {names or 'none'}")
        self.number = number


class Permutation(NamedTuple):
    """One symmetry: component ``i`` moves to position ``columns[i]``, its value renamed by ``rename``."""

    columns: tuple[int, ...]
    rename: Callable[[Value], Value]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A whole machine. ``symmetries`` is a group under composition, the identity first, or empty."""

    components: tuple[str, ...]
    initial: tuple[State, ...]
    actions: tuple[Action, ...]
    views: tuple[View, ...] = ()
    labels: Labels | None = None
    symmetries: tuple[Permutation, ...] = ()
    describe: Description = Description()

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Return the place of each component in a state, by name."""
        return {name: index for index, name in enumerate(self.components)}

    @cached_property
    def by_name(self) -> Mapping[tuple[str, int], Action]:
        """Return the action of each (action name, member)."""
        return {(action.name, action.who): action for action in self.actions}

    @cached_property
    def view(self) -> Mapping[str, View]:
        """Return each view by its name."""
        return {view.name: view for view in self.views}

    @cached_property
    def compiled(self) -> tuple[_Compiled, ...]:
        """Return its actions, as `Options` asks them."""
        return tuple(_compiled(self, action) for action in self.actions)

    @cached_property
    def number_of(self) -> Mapping[tuple[str, int], int]:
        """Return the place of each (action name, member) among the actions."""
        return {(action.name, action.who): number for number, action in enumerate(self.actions)}

    @cached_property
    def of_kind(self) -> Mapping[bool, tuple[int, ...]]:
        """Return the places of all actions that are faults, and of all others."""
        numbers = range(len(self.actions))
        return {kind: tuple(n for n in numbers if self.actions[n].fault is kind) for kind in (False, True)}

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Return the places of the actions that read each component."""
        reads = [set(action.reads) for action in self.actions]
        return tuple(
            tuple(number for number, names in enumerate(reads) if name in names) for name in self.components
        )

    def read(self, state: State, names: Iterable[str]) -> list[Value]:
        """Return the values of the components ``names`` in ``state``."""
        return [state[self.position[name]] for name in names]

    def value(self, state: State, name: str) -> Any:
        """Return the value of the component ``name`` in ``state``."""
        return state[self.position[name]]

    def put(self, state: State, name: str, value: Value) -> State:
        """``state`` with another value of the component ``name``."""
        position = self.position[name]
        return (*state[:position], value, *state[position + 1 :])

    def look(self, state: State, view: str) -> Value:
        """Return the value of ``view`` in ``state``."""
        return self.view[view].of(*self.read(state, self.view[view].reads))

    def outcomes(self, state: State, *, faults: bool = True) -> Iterator[tuple[Event, Outcome]]:
        """Yield every step that is possible in ``state``, in a fixed order."""
        for action in self.actions:
            if action.fault and not faults:
                continue
            for outcome in self.outcomes_of(action, state):
                yield Event(action.name, action.who, outcome.choice), outcome

    def outcomes_of(self, action: Action, state: State) -> Iterable[Outcome]:
        """Yield what ``action`` does in ``state``, by each of its choices."""
        if action.guard is not None and not action.guard(state[self.position[action.reads[0]]]):
            return ()
        return action.run(*self.read(state, action.reads))

    def outcome(self, state: State, event: Event) -> Outcome | None:
        """Return what ``event`` does in ``state``; None when it is not enabled."""
        action = self.by_name.get((event.action, event.who))
        outcomes = () if action is None else self.outcomes_of(action, state)
        return next((outcome for outcome in outcomes if outcome.choice == event.choice), None)

    def apply(self, state: State, event: Event, outcome: Outcome) -> State:
        """``state`` after ``outcome``; not normalised, so that labels read as they were given."""
        after = list(state)
        for name, value in zip(self.by_name[event.action, event.who].writes, outcome.values, strict=True):
            after[self.position[name]] = value
        return tuple(after)

    def change(self, state: State, event: Event, outcome: Outcome) -> Change:
        """Return the values of each view in ``state`` and after ``outcome``, by its name."""
        return lambda view: (self.look(state, view), self.look(self.apply(state, event, outcome), view))

    def enabled(self, state: State) -> tuple[Event, ...]:
        """Return the events that can happen in ``state``."""
        return tuple(event for event, _ in self.outcomes(state))

    def step(self, state: State, event: Event) -> State:
        """``state`` after ``event``.

        Raises ValueError when the event is not enabled; the text names those that are.
        """
        outcome = self.outcome(state, event)
        if outcome is not None:
            return self.apply(state, event, outcome)
        raise ValueError(f"{event} is not enabled; enabled are {self.enabled(state)}")

    def refusal(self, number: int, event: Event, state: State) -> CannotHappenError:
        """Return what is wrong with a run whose step ``number`` is ``event``, in ``state``."""
        text = self.describe.event
        return CannotHappenError(number, text(event), list(map(text, self.enabled(state))))

    def replay(self, events: Iterable[Event]) -> Iterator[tuple[State, Outcome]]:
        """Yield each event's outcome and the state after it, from the (first) initial state; nothing is
        renamed.

        Raises CannotHappenError when it comes to an event that is not enabled.
        """
        state = self.initial[0]
        for number, event in enumerate(events, 1):
            outcome = self.outcome(state, event)
            if outcome is None:
                raise self.refusal(number, event, state)
            state = self.apply(state, event, outcome)
            yield state, outcome

    def normal(self, state: State) -> State:
        """``state`` with its labels renamed to 0, 1, 2 ... in the same order."""
        if self.labels is None:
            return state
        used = 0
        for value in state:
            used |= self.labels.used(value)
        if used & (used + 1) == 0:
            return state
        names = dense(used)
        return tuple(self.labels.relabel(value, names) for value in state)

    def permuted(self, state: State, symmetry: Permutation) -> State:
        """``state`` under one symmetry."""
        after = list(state)
        for index, value in enumerate(state):
            after[symmetry.columns[index]] = symmetry.rename(value)
        return tuple(after)


class PossibleStep(NamedTuple):
    """A step that is possible in some state."""

    event: Event
    outcome: Outcome


class _Compiled(NamedTuple):
    """An action as it is asked: its guard and the place of what this is asked with, what takes all that it
    reads out of a state."""

    action: Action
    guard: Callable[[Value], bool] | None
    position: int
    take: Callable[[State], tuple[Value, ...]]

    def steps(self, state: State) -> Sequence[PossibleStep]:
        """Return what it comes to in ``state``."""
        if self.guard is not None and not self.guard(state[self.position]):
            return ()
        name, who = self.action.name, self.action.who
        outcomes = self.action.run(*self.take(state))
        return [PossibleStep(Event(name, who, outcome.choice), outcome) for outcome in outcomes]


def _compiled(machine: Machine, action: Action) -> _Compiled:
    places = [machine.position[name] for name in action.reads]
    take = itemgetter(*places) if len(places) > 1 else lambda state: tuple(state[at] for at in places)
    return _Compiled(action, action.guard, places[0] if places else -1, take)


class Options:
    """Possible steps in one state of a run after the other, as `Machine.outcomes` has it.

    An action follows from what it reads, so it is asked again only where some of that has changed, and only
    when somebody wants to know.
    """

    def __init__(self, machine: Machine) -> None:
        self._table = machine.compiled
        self._state: State = ()
        self._known: list[Sequence[PossibleStep] | None] = [None] * len(machine.actions)
        self._of_kind = machine.of_kind
        self._numbers, self._readers = machine.number_of, machine.readers

    def move(self, state: State) -> None:
        """The run is in ``state`` now."""
        if state is self._state:
            return
        known = self._known
        for readers, old, new in zip(self._readers, self._state, state, strict=False):
            if old is not new and old != new:  # a step may write what was there
                for number in readers:
                    known[number] = None
        self._state = state

    def among(self, *, faults: bool) -> Iterator[PossibleStep]:
        """Yield the steps that are possible, all that are faults or all others, in the order of the
        actions."""
        known, table, state = self._known, self._table, self._state
        for number in self._of_kind[faults]:
            steps = known[number]
            if steps is None:
                steps = known[number] = table[number].steps(state)
            if steps:
                yield from steps

    def can(self, name: str, who: int) -> bool:
        """Check whether an action is possible."""
        number = self._numbers.get((name, who))
        if number is None:
            return False
        steps = self._known[number]
        if steps is None:
            steps = self._known[number] = self._table[number].steps(self._state)
        return bool(steps)


def chain(name: str, first: Action, *then: Action, whole: bool = False) -> Action:
    """Return one action that does ``first`` and at once each of ``then`` that is enabled after it, in order.

    ``whole``: only where all of them are enabled.

    Its footprint is the union of theirs, ``first``'s guard is its guard, and it is a fault if ``first`` is.
    Sound where the parts commute with what others could do in between; that is for the caller to show.
    """
    reads = tuple(dict.fromkeys(n for action in (first, *then) for n in (*action.reads, *action.writes)))
    writes = tuple(dict.fromkeys(n for action in (first, *then) for n in action.writes))

    position = {name: number for number, name in enumerate(reads)}
    ends = [position[name] for name in writes]
    parts = [
        (action, [position[name] for name in action.reads], [position[name] for name in action.writes])
        for action in (first, *then)
    ]

    def go(values: Sequence[Value], number: int) -> Iterator[Outcome]:
        if number == len(parts):
            yield Outcome(tuple([values[at] for at in ends]))
            return
        action, takes, puts = parts[number]
        enabled = action.guard is None or action.guard(values[takes[0]])
        outcomes = list(action.run(*[values[at] for at in takes])) if enabled else []
        if not outcomes and number and not whole:
            yield from go(values, number + 1)
        for outcome in outcomes:
            after = list(values)
            for at, value in zip(puts, outcome.values, strict=True):
                after[at] = value
            for end in go(after, number + 1):
                choice = " ".join(word for word in (outcome.choice, end.choice) if word)
                yield Outcome(end.values, choice, (*outcome.seen, *end.seen))

    def run(*values: Value) -> Iterator[Outcome]:
        return go(values, 0)

    return first._replace(name=name, reads=reads, writes=writes, run=run)


def at_a_cost(name: str, action: Action, budget: str) -> Action:
    """``action`` as a fault that draws one on the component ``budget``, an int."""

    def run(left: int, *values: Value) -> Iterator[Outcome]:
        if action.guard is None or action.guard(values[0]):
            for outcome in action.run(*values):
                yield outcome._replace(values=(left - 1, *outcome.values))

    reads, writes = (budget, *action.reads), (budget, *action.writes)
    return action._replace(
        name=name, reads=reads, writes=writes, run=run, guard=bool, fault=True, fairness=Fairness.NONE
    )


def dense(used: int) -> Mapping[int, int]:
    """Return new names for the labels in the bit mask ``used``: 0, 1, 2 ... in the same order.

    >>> dense(0b10110)
    {1: 0, 2: 1, 4: 2}
    """
    return {label: name for name, label in enumerate(b for b in range(used.bit_length()) if used >> b & 1)}
