"""One run of a group, driven by numbers: which step comes next, and in which mood.

A number stands for an action and one of its outcomes, the same in every state; where that action cannot
happen, the next one in the machine's order does. So every number is a step, a run stays much the same when
one of its numbers is left out, and smaller numbers are simpler: first what the group does by itself, in the
machine's order, then faults. That is what makes runs shrink.

Swarm: a run has its mood, drawn once. It says which faults may happen, how many and how densely, and who
is slow: a member that is put off again and again meets states that a fair coin never meets (Groce and
others, "Swarm testing", 2012).

When the numbers end, faults stop, and the rest of the run follows from the state alone: all actions take
turns, which is fair, until the run ends or comes back to where it was. That decides ``Finally`` for this
run, either way. Nothing here knows of Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from rebalance.model.machine import Action, Event, Fairness, Machine, Outcome, State, Value
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup
from rebalance.properties import protocol
from rebalance.properties.rules import Always, Rules

CHOICES = 16
"""How many outcomes of one action a number can tell apart; of more, every sixteenth is the same."""

DENSITIES = (0, 4, 16, 64)
"""Of 128 numbers, how many stand for faults; drawn once for a run."""

MEMORY = 100_000
"""How many outcomes a ``Game`` remembers."""

RulesOf = Callable[[Setup], Rules]


class Run(NamedTuple):
    """What was played: the first ``drawn`` events by number, the others when no fault happened any more.

    A clause that is broken is broken by the last event, or in the state after it; where the last ``cycle``
    events lead back to where they began, it is broken by going round for ever. ``clause`` and ``sentence``
    are empty for a run that breaks nothing. ``shown`` are the witnesses on the way.
    """

    setup: Setup
    events: tuple[Event, ...]
    drawn: int
    clause: str = ""
    sentence: str = ""
    cycle: int = 0
    shown: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """The clause, the sentence, and the events, one to a line."""
        lines = [f"{self.clause}: {self.sentence}" if self.clause else "nothing is broken"]
        for number, event in enumerate(self.events, 1):
            again = "  <- from here again and again" if number == len(self.events) - self.cycle + 1 else ""
            lines.append(f"{number:4} {tell(event)}{again}")
        return "\n".join(lines)


class Mood(NamedTuple):
    """What a run is drawn with: ``faults`` at most, of the costly actions for which ``kinds`` has a bit,
    ``density`` of 128 numbers standing for one; members in ``slow`` (a bit mask) are put off."""

    faults: int
    kinds: int
    density: int
    slow: int


def tell(event: Event) -> str:
    """An event as text.

    >>> tell(Event("join", 0)), tell(Event("join phase ends", -1, "range, leader A"))
    ('A: join', 'join phase ends (range, leader A)')
    """
    who = "" if event.who < 0 else f"{protocol.letter(event.who)}: "
    return f"{who}{event.action}{f' ({event.choice})' if event.choice else ''}"


def only(rules: Rules, clause: str | None) -> Rules:
    """``rules`` with one clause, and the witnesses.

    Raises ValueError when no rule has that clause.
    """
    if clause is None:
        return rules
    found = Rules(
        tuple(rule for rule in rules.always if rule.clause == clause),
        tuple(rule for rule in rules.each_step if rule.clause == clause),
        rules.sometimes,
        tuple(rule for rule in rules.finally_ if rule.clause == clause),
        tuple(rule for rule in rules.bounded if rule.clause == clause),
    )
    if not any((found.always, found.each_step, found.finally_, found.bounded)):
        known = {rule.clause for rule in (*rules.always, *rules.each_step, *rules.finally_, *rules.bounded)}
        raise ValueError(f"no rule of clause {clause!r}; there are {', '.join(sorted(known))}")
    return found


class Game:
    """What all runs of one setup share: the machine, the rules, and what is known of both."""

    def __init__(self, setup: Setup, rules: Rules) -> None:
        self.setup, self.rules = setup, rules
        self.machine: Machine = machine(setup)
        costly = [action.fault and "budget" in action.reads for action in self.machine.actions]
        self.steps = [action for action, costs in zip(self.machine.actions, costs, strict=True) if not costs]
        self.faults = [action for action, costs in zip(self.machine.actions, costs, strict=True) if costs]
        self.kinds = tuple(dict.fromkeys(action.name for action in self.faults))
        self.fair = [a for a in self.steps if not a.fault and a.fairness is not Fairness.NONE]
        self._known: dict[tuple[str, int, tuple[Value, ...]], tuple[Outcome, ...]] = {}

    @cached_property
    def watchers(self) -> dict[str, tuple[Always, ...]]:
        """Component -> the rules that have to be asked again when it changes."""
        views = self.machine.view
        return {
            name: tuple(r for r in self.rules.always if any(name in views[v].reads for v in r.views))
            for name in self.machine.components
        }

    def possible(self, state: State, action: Action) -> tuple[Outcome, ...]:
        """The outcomes of ``action`` in ``state``."""
        values = tuple(self.machine.read(state, action.reads))
        if action.guard is not None and not action.guard(values[0]):
            return ()
        key = (action.name, action.who, values)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MEMORY:
                self._known.clear()
            known = self._known[key] = tuple(action.run(*values))
        return known

    def top(self, mood: Mood) -> int:
        """The greatest number that means something else than those below; 0 is the end of the numbers."""
        steps = len(self.steps) * CHOICES
        return steps + steps * mood.density // (128 - mood.density)


@lru_cache(maxsize=16)
def game(setup: Setup, rules_of: RulesOf = protocol.rules, clause: str | None = None) -> Game:
    """The game of ``setup``, asked ``clause`` only where one is given."""
    return Game(setup, only(rules_of(setup), clause))


class Play:
    """One run as it goes. ``broken`` is set, once, to what it breaks; nothing happens after that."""

    def __init__(self, game: Game, mood: Mood) -> None:
        self.game, self.mood = game, mood
        self.state: State = game.machine.initial[0]
        self.events: list[Event] = []
        self.broken: tuple[str, str] | None = None
        self.cycle = 0
        self._left = mood.faults
        self._shown: set[str] = set()
        self._counts = [0] * len(game.rules.bounded)
        self._faults = [a for a in game.faults if mood.kinds >> game.kinds.index(a.name) & 1]
        self._views: dict[str, Value] = {}
        self._drawn: int | None = None
        self._ask(game.rules.always, game.machine.components)

    @property
    def run(self) -> Run:
        """What was played so far."""
        clause, sentence = self.broken or ("", "")
        drawn = len(self.events) if self._drawn is None else self._drawn
        shown = frozenset(self._shown)
        return Run(self.game.setup, tuple(self.events), drawn, clause, sentence, self.cycle, shown)

    def step(self, number: int) -> bool:
        """The step that ``number`` (from 1 on) stands for; False where nothing can happen."""
        steps, found = len(self.game.steps) * CHOICES, None
        if number > steps and self._faults and self._left:
            found = self._first(self._faults, (number - steps - 1) % (len(self._faults) * CHOICES))
        if found is None:
            place = (number - 1) % steps
            found = self._first(self.game.steps, place, self.mood.slow)
            if found is None and self._left:
                found = self._first(self._faults, place % max(1, len(self._faults) * CHOICES))
        if found is not None:
            self._take(*found)
        return found is not None

    def settle(self) -> None:
        """No faults any more: fair turns until the goal is reached for good, or never."""
        rules, machine = self.game.rules, self.game.machine
        if self.broken or not (rules.finally_ or rules.bounded):
            return
        self._drawn = len(self.events)
        fair, turn = self.game.fair, 0
        met: dict[State, int] = {}
        bound = self._drawn + 100 * len(fair)
        good: list[bool] = []  # of the state before each event from here on, whether the goals hold
        while not self.broken:
            if turn == 0:
                state = machine.normal(self.state)
                if state in met:
                    self._close(met[state], good)
                    return
                met[state] = len(self.events)
                self.state = state
            action = fair[turn]
            turn = (turn + 1) % len(fair)
            outcomes = self.game.possible(self.state, action)
            if outcomes:
                good.append(self._goal() is None)
                self._take(action, outcomes[0])
            if len(self.events) > bound and not self.broken:
                steps = len(self.events) - self._drawn
                self.broken = (self._goal() or protocol.CONVERGES.id, f"not settled after {steps} steps")

    def _close(self, start: int, good: Sequence[bool]) -> None:
        """The run is back where it was at event ``start``: for ever so."""
        assert self._drawn is not None
        missed = self._goal()
        if missed is None and all(good[start - self._drawn :]):
            return
        if start == len(self.events):
            self.broken = (missed or "", "the run ends in a state in which the goal does not hold")
            return
        self.cycle = len(self.events) - start
        clause = missed or self.game.rules.finally_[0].clause
        self.broken = (clause, f"the group goes round for ever, {self.cycle} steps at a time")

    def _goal(self) -> str | None:
        """The first goal that does not hold."""
        look = self._look
        for rule in self.game.rules.finally_:
            if not rule.holds(*[look(view) for view in rule.views]):
                return rule.clause
        return None

    def _first(self, actions: Sequence[Action], place: int, slow: int = 0) -> tuple[Action, Outcome] | None:
        """The action and outcome at ``place``, or those of the next action that can happen."""
        count = len(actions)
        start, choice = divmod(place, CHOICES)
        late: tuple[Action, Outcome] | None = None
        for offset in range(count):
            action = actions[(start + offset) % count]
            waits = action.who >= 0 and slow >> action.who & 1
            if waits and late is not None:
                continue
            outcomes = self.game.possible(self.state, action)
            if outcomes:
                found = action, outcomes[choice % len(outcomes)]
                if not waits:
                    return found
                late = found
        return late

    def _take(self, action: Action, outcome: Outcome) -> None:
        event = Event(action.name, action.who, outcome.choice)
        self.state = self.game.machine.apply(self.state, event, outcome)
        self.events.append(event)
        if action.fault:
            self._left -= "budget" in action.reads
            self._counts = [0] * len(self._counts)
        rules = self.game.rules
        if outcome.seen:
            for step in rules.each_step:
                self._break(step.clause, step.breach(event, outcome.seen))
            self._shown.update(r.clause for r in rules.sometimes if r.shows(event, outcome.seen))
        for place, rule in enumerate(rules.bounded):
            self._counts[place] += rule.counts(event)
            if self._counts[place] > rule.most:
                self._break(rule.clause, f"{self._counts[place]} rebalances, {rule.most} may be")
        watchers = self.game.watchers
        self._ask(dict.fromkeys(r for name in action.writes for r in watchers[name]), action.writes)

    def _ask(self, rules: Iterator[Always] | dict[Always, None] | Sequence[Always], _: Sequence[str]) -> None:
        for rule in rules:
            self._break(rule.clause, rule.breach(*[self._look(view) for view in rule.views]))

    def _break(self, clause: str, sentence: Hashable) -> None:
        if sentence is not None and self.broken is None:
            self.broken = (clause, str(sentence))

    def _look(self, view: str) -> Value:
        return self.game.machine.look(self.state, view)
