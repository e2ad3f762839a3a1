"""One run of a group, driven by numbers: which step comes next, and in which configuration.

A number stands for an action and one of its outcomes; where that action cannot happen, for the next one of
the run's order that can. So every number is a step, and a run stays much the same when one of its numbers
is left out. That is what makes runs shrink.

Swarm: a run has its configuration, drawn once, which makes some runs of the group far more likely than a fair
coin would: which kinds of faults may happen, how many and how densely; in which order actions come first;
and which steps are put off as long as anything else can happen, drawn anew after each fault (Groce and
others, "Swarm testing", 2012; Burckhardt and others, "A randomized scheduler", 2010).

When the numbers end, faults stop, and the rest of the run follows from the state alone: all actions take
turns, which is fair, until the run ends or comes back to where it was. That decides ``Finally`` for this
run, either way. Nothing here knows of Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Action, Event, Fairness, Machine, Outcome, State, Value
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group import clauses
from rebalance_verifier.properties.group.rules import Rules

CHOICES = 16
"""How many outcomes of one action a number can tell apart; of more, every sixteenth is the same."""

DENSITIES = (16, 4, 64)
"""Of 128 numbers, how many stand for faults; drawn once for a run."""

SWARM_SEEDS = 1 << 16
"""How many configurations there are, for each density."""

ODDS = (0, 1, 2, 4)
"""How many of eight kinds of faults a configuration leaves out, and of eight steps it puts off."""

STRICT = (0, 8, 14)
"""How many of sixteen actions give way to the first of its order."""

MEMORY = 100_000
"""For how many values of what an action reads a ``RunContext`` remembers its outcomes."""

BOUND = 100
"""How many steps a group may take to settle, for each of its actions."""

Some = frozenset[tuple[str, int]]
"""Some actions, by name and member."""

RulesOf = Callable[[Setup], Rules]


class PlayedRun(NamedTuple):
    """Steps of a run that was played: the first ``drawn`` events by number, the others when no fault happened
    any more.

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

    def __repr__(self) -> str:
        """Return one line, as Hypothesis prints what is drawn; the whole run is its text, and what a breach
        says."""
        broken = f"{self.clause}: {self.sentence}" if self.clause else "nothing broken"
        return f"<run of {len(self.events)} events, {broken}; {described(self.setup)}>"

    def __str__(self) -> str:
        """Return the clause, the sentence, and the events, one to a line."""
        lines = [f"{self.clause}: {self.sentence}" if self.clause else "nothing is broken"]
        for number, event in enumerate(self.events, 1):
            again = "  <- from here again and again" if number == len(self.events) - self.cycle + 1 else ""
            lines.append(f"{number:4} {event_text(event)}{again}")
        return "\n".join(lines)


class RunConfig(NamedTuple):
    """How the numbers of a run are read.

    At most so many ``faults`` happen, of the ``kinds``, for which ``density`` of 128 numbers stand.
    ``order`` is the order of the other steps; of 16 actions in it ``strict`` give way to the first one.
    After ``n`` faults the steps ``late[n]``, by name and member, are put off, and the starts (and whatever
    else the environment does for nothing) ``never[n]`` do not happen.
    """

    faults: int
    kinds: tuple[Action, ...]
    density: int
    order: tuple[Action, ...]
    strict: int
    late: tuple[Some, ...]
    never: tuple[Some, ...]

    def __repr__(self) -> str:
        """Return one line: all of it is hundreds of actions, and follows from the numbers that are drawn."""
        kinds = dict.fromkeys(action.name for action in self.kinds)
        return f"<config: {self.faults} faults at most, of {len(kinds)} kinds, density {self.density}>"


def described(setup: Setup) -> str:
    """Return a setup in one line, shorter than all that is in it."""
    lists = dict.fromkeys(" -> ".join(",".join(s.assignors) for s in c.stages) for c in setup.consumers)
    static = sum(consumer.instance is not None for consumer in setup.consumers)
    sizes = " + ".join(str((parts & setup.exist).bit_count()) for parts in setup.topics)
    members = f"{len(setup.consumers)} members" + (f" ({static} static)" if static else "")
    return (
        f"{members} with {'; '.join(lists)}, {sizes} partitions, budget {setup.budget}, {setup.steps} steps"
    )


def only(rules: Rules, clause: str | None) -> Rules:
    """``rules`` with those of one clause, and the witnesses.

    Raises ValueError when no rule has that clause.
    """
    if clause is None:
        return rules
    found = rules.about(clause)._replace(sometimes=rules.sometimes)
    if not (found.always or found.each_step or found.each_change or found.finally_ or found.bounded):
        raise ValueError(f"no rule of this setup is about {clause!r}")
    return found


class RunContext:
    """State that all runs of one setup share: the machine, the rules, and what is known of both."""

    def __init__(self, setup: Setup, rules: Rules) -> None:
        self.setup, self.rules = setup, rules
        self.machine: Machine = machine(setup)
        self.steps = tuple(action for action in self.machine.actions if not costs(action))
        self.faults = tuple(action for action in self.machine.actions if costs(action))
        self.fair = [a for a in self.steps if not a.fault and a.fairness is not Fairness.NONE]
        self.views_of = {
            name: tuple(view.name for view in self.machine.views if name in view.reads)
            for name in self.machine.components
        }
        """Component -> the views that read it."""
        self.rules_about = {
            view.name: tuple(n for n, rule in enumerate(rules.always) if view.name in rule.views)
            for view in self.machine.views
        }
        """View -> the numbers of the rules that are asked about it in every state."""
        self._known: dict[tuple[str, int, tuple[Value, ...]], tuple[Outcome, ...]] = {}

    def possible(self, state: State, action: Action) -> tuple[Outcome, ...]:
        """Return the outcomes of ``action`` in ``state``."""
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


def costs(action: Action) -> bool:
    """Check whether it is a fault that draws on the budget; the others are starts, bounces and
    subscribing."""
    return action.fault and "budget" in action.reads


@lru_cache(maxsize=16)
def run_context(setup: Setup, rules_of: RulesOf = clauses.rules, clause: str | None = None) -> RunContext:
    """Return what the runs of ``setup`` share, asked ``clause`` only where one is given."""
    return RunContext(setup, only(rules_of(setup), clause))


def swarm_config(context: RunContext, density: int, swarm_seed: int) -> RunConfig:
    """Configuration ``swarm_seed``; 0 is the one of all faults, the machine's order, and nothing put off."""
    budget = context.setup.budget
    if swarm_seed == 0:
        return RunConfig(
            faults=budget,
            kinds=context.faults,
            density=density,
            order=context.steps,
            strict=0,
            late=(frozenset(),),
            never=(frozenset(),),
        )
    random = Random(swarm_seed)
    faults = 1 + random.randrange(budget) if budget else 0
    odds = random.choice(ODDS)
    off = {kind for kind in dict.fromkeys(a.name for a in context.faults) if random.randrange(8) < odds}
    kinds, order = [a for a in context.faults if a.name not in off], list(context.steps)
    random.shuffle(kinds)
    random.shuffle(order)
    strict = random.choice(STRICT)
    late = [_some(context.steps, random) for _ in range(faults + 1)]
    free = [action for action in context.steps if action.fault]
    never = [_some(free, random) if random.randrange(2) else frozenset() for _ in range(faults + 1)]
    return RunConfig(
        faults=faults,
        kinds=tuple(kinds),
        density=density,
        order=tuple(order),
        strict=strict,
        late=tuple(late),
        never=tuple(never),
    )


def _some(actions: Sequence[Action], random: Random) -> Some:
    odds = random.choice(ODDS)
    return frozenset((action.name, action.who) for action in actions if random.randrange(8) < odds)


class RandomRun:
    """One run as it goes. ``broken`` is what it breaks first, clause and sentence."""

    def __init__(self, context: RunContext, config: RunConfig) -> None:
        self.context, self.config = context, config
        self.state: State = context.machine.initial[0]
        self.events: list[Event] = []
        self.broken: tuple[str, str] | None = None
        self._cycle = 0
        self._drawn: int | None = None
        self._left = min(config.faults, context.setup.budget)
        self._shown: set[str] = set()
        self._counts = [0] * len(context.rules.bounded)
        self._views: dict[str, Value] = {}
        self._ask(range(len(context.rules.always)))

    @property
    def top(self) -> int:
        """The greatest number with a meaning of its own; they start with 1."""
        steps = len(self.context.steps) * CHOICES
        return steps + steps * self.config.density // (128 - self.config.density)

    @property
    def run(self) -> PlayedRun:
        """Return what was played so far."""
        drawn = len(self.events) if self._drawn is None else self._drawn
        shown = frozenset(self._shown)
        return PlayedRun(
            self.context.setup, tuple(self.events), drawn, *(self.broken or ("", "")), self._cycle, shown
        )

    def step(self, number: int) -> bool:
        """Take the step that ``number`` stands for; False where nothing can happen, or after a breach."""
        if self.broken:
            return False
        config, found = self.config, None
        steps, faults = len(config.order) * CHOICES, max(1, len(config.kinds) * CHOICES)
        if number > steps and self._left:
            found = self._first(config.kinds, (number - steps - 1) % faults)
        if found is None:
            index = (number - 1) % steps
            if index // CHOICES % 16 < config.strict:
                index %= CHOICES
            found = self._first(config.order, index)
        if found is None and self._left:
            found = self._first(config.kinds, (number - 1) % faults)
        if found is not None:
            self._take(*found)
        return found is not None

    def settle(self) -> None:
        """No faults any more: fair turns until the run has shown whether the goal is reached and kept."""
        context = self.context
        if self.broken or not (context.rules.finally_ or context.rules.bounded):
            return
        self._drawn = len(self.events)
        states = [context.machine.normal(self.state)]  # after so many fair steps
        met = {states[0]: 0}
        while len(states) <= BOUND * len(context.fair):
            before = len(states)
            for action in context.fair:
                for outcome in context.possible(self.state, action)[:1]:
                    self._take(action, outcome)
                    states.append(self.state)
                    if self.broken:
                        return
            self.state = states[-1] = context.machine.normal(self.state)
            start = met.setdefault(states[-1], len(states) - 1)
            if start < len(states) - 1 or before == len(states):
                self._close(states[start:])
                return
        self._fail(f"not settled after {len(states) - 1} steps without a fault")

    def _close(self, states: Sequence[State]) -> None:
        """The run is back in ``states[0]``: it stays there, or goes round for ever."""
        rounds = len(states) - 1
        for state in states:
            if rounds:
                self._fail(f"the group goes round for ever, {rounds} steps at a time", state)
            else:
                self._fail("the run ends in a state in which the goal does not hold", state)
        self._cycle = rounds if self.broken else 0

    def _fail(self, sentence: str, state: State | None = None) -> None:
        """Break the first goal that does not hold in ``state``; in none given, the first of all."""
        look = self.context.machine.look
        for rule in self.context.rules.finally_:
            if state is None or not rule.holds(*[look(state, view) for view in rule.views]):
                self._break(rule.clause, sentence)

    def _first(self, actions: Sequence[Action], index: int) -> tuple[Action, Outcome] | None:
        """Return the action and outcome at ``index``, or of the next action that can happen, late ones
        last."""
        start, choice = divmod(index, CHOICES)
        phase = min(len(self.config.late) - 1, self.config.faults - self._left)
        late, never = self.config.late[phase], self.config.never[phase]
        second: tuple[Action, Outcome] | None = None
        for action in (*actions[start:], *actions[:start]):
            name = (action.name, action.who)
            waits = name in late
            if (waits and second) or name in never:
                continue
            outcomes = self.context.possible(self.state, action)
            if outcomes:
                second = action, outcomes[choice % len(outcomes)]
                if not waits:
                    return second
        return second

    def _take(self, action: Action, outcome: Outcome) -> None:
        context, event = self.context, Event(action.name, action.who, outcome.choice)
        before, self.state = self.state, context.machine.apply(self.state, event, outcome)
        self.events.append(event)
        if action.fault:
            self._left -= costs(action)
            self._counts = [0] * len(self._counts)
        for index, rule in enumerate(context.rules.bounded):
            self._counts[index] += rule.counts(event)
            if self._counts[index] > rule.most:
                self._break(rule.clause, f"{self._counts[index]} steps count, {rule.most} may")
        for clause, sentence in context.rules.at_step(
            event, outcome.seen, context.machine.change(before, event, outcome)
        ):
            self._break(clause, sentence)
        if outcome.seen:
            self._shown.update(r.clause for r in context.rules.sometimes if r.shows(event, outcome.seen))
        self._ask(self._changed(before, action))

    def _changed(self, before: State, action: Action) -> list[int]:
        """Return the numbers of the ``Always`` rules about views that ``action`` changed."""
        context, rules, forgotten = self.context, set[int](), dict[str, Value]()
        for name in action.writes:
            index = context.machine.position[name]
            if self.state[index] is not before[index]:
                for view in context.views_of[name]:
                    if view in self._views:
                        forgotten[view] = self._views.pop(view)
        for view, value in forgotten.items():
            if context.rules_about[view] and self._look(view) != value:
                rules.update(context.rules_about[view])
        return sorted(rules)

    def _ask(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            rule = self.context.rules.always[number]
            self._break(rule.clause, rule.breach(*[self._look(view) for view in rule.views]))

    def _break(self, clause: str, sentence: str | None) -> None:
        if sentence is not None and self.broken is None:
            self.broken = (clause, sentence)

    def _look(self, view: str) -> Value:
        if view not in self._views:
            self._views[view] = self.context.machine.look(self.state, view)
        return self._views[view]
