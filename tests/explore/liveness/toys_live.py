"""Small machines that settle, or do not, and ones that break after a long way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from rebalance_verifier.model.machine import Action, Event, Fairness, Labels, Machine, Outcome, Value, View
from rebalance_verifier.properties.group.rules import Always, Bounded, Finally, Rules, Sometimes

WEAK, STRONG, NONE = Fairness.WEAK, Fairness.STRONG, Fairness.NONE

Table = Mapping[int, tuple[int, ...]]


class Row(NamedTuple):
    """An action of a table machine: from each number, the numbers it can lead to."""

    name: str
    moves: Table
    fairness: Fairness = WEAK
    fault: bool = False


def table(*rows: Row, initial: tuple[int, ...] = (0,)) -> Machine:
    """A machine whose state is one number; ``view`` at shows it."""

    def run(moves: Table) -> Callable[[int], Iterator[Outcome]]:
        def outcomes(at: int) -> Iterator[Outcome]:
            for target in moves.get(at, ()):
                yield Outcome((target,), str(target))

        return outcomes

    actions = tuple(
        Action(
            name=row.name,
            who=who,
            reads=("at",),
            writes=("at",),
            run=run(row.moves),
            fault=row.fault,
            fairness=row.fairness,
        )
        for who, row in enumerate(rows)
    )
    view = View("at", ("at",), lambda at: at)
    return Machine(components=("at",), initial=tuple((at,) for at in initial), actions=actions, views=(view,))


def until(*goal: int) -> Finally:
    """In the end the number is, and stays, one of ``goal``."""
    return Finally("live/there", ("at",), lambda at: at in goal)


def random_table(seed: int, states: int = 5, actions: int = 3) -> tuple[Machine, Finally]:
    """A table machine with a goal, anything being possible."""
    random = Random(seed)
    rows = []
    for number in range(actions):
        moves = {
            at: tuple(random.randrange(states) for _ in range(random.choice((1, 1, 1, 2))))
            for at in range(states)
            if random.randrange(5) < 2
        }
        moves = {at: tuple(dict.fromkeys(targets)) for at, targets in moves.items()}
        rows.append(Row(f"a{number}", moves, random.choice((NONE, WEAK, WEAK, STRONG))))
    rows.append(Row("fault", {at: (random.randrange(states),) for at in range(0, states, 2)}, NONE, True))
    goal = tuple(at for at in range(states) if random.randrange(2))
    return table(*rows), until(*goal)


def restless(quiet: bool = False) -> tuple[Machine, Finally, Bounded]:
    """Two members that make each other rejoin, for ever or, when ``quiet``, once each.

    State: the generation of the group, and of each member. A member that is behind joins, which begins a
    new generation, and so puts the other behind. Generations are labels: only so does the cycle close.
    """

    def join(who: int) -> Callable[..., Iterator[Outcome]]:
        def run(group: int, mine: int, other: int) -> Iterator[Outcome]:
            if mine < group:
                yield Outcome((group if quiet else group + 1, group if quiet else group + 1))

        return run

    def crash(group: int) -> Iterator[Outcome]:
        if group == 1:
            yield Outcome((2,))

    def used(value: Value) -> int:
        assert isinstance(value, int)
        return 1 << value

    def relabel(value: Value, names: Mapping[int, int]) -> Value:
        assert isinstance(value, int)
        return names[value]

    generations = ("group", "first", "second")
    machine = Machine(
        components=generations,
        initial=((1, 1, 1), (1, 0, 1)),
        actions=(
            Action(
                name="join", who=0, reads=("group", "first", "second"), writes=("group", "first"), run=join(0)
            ),
            Action(
                name="join",
                who=1,
                reads=("group", "second", "first"),
                writes=("group", "second"),
                run=join(1),
            ),
            Action(
                name="crash",
                who=-1,
                reads=("group",),
                writes=("group",),
                run=crash,
                fault=True,
                fairness=NONE,
            ),
        ),
        views=(View("behind", generations, lambda group, first, second: (first < group) + (second < group)),),
        labels=Labels(used, relabel),
    )
    goal = Finally("live/in-step", ("behind",), lambda behind: behind == 0)
    return machine, goal, Bounded("live/joins", lambda event: event.action == "join", 2)


class Lock(NamedTuple):
    """How far the right digits have been entered, and noise that does not matter."""

    entered: int = 0
    noise: int = 0


def lock(digits: int = 6, noises: int = 4) -> tuple[Machine, Rules]:
    """A lock opens, which it must not, after ``digits`` right turns of one of two wheels each.

    A wrong turn takes back one digit; noise makes walks long and states many. The shortest trace that
    breaks safe/closed has ``digits`` events. Shaking takes back two digits: a fault.
    """

    def turn(wheel: int) -> Callable[[int], Iterator[Outcome]]:
        def run(entered: int) -> Iterator[Outcome]:
            if entered < digits:
                right = entered % 2 == wheel
                yield Outcome((entered + 1 if right else max(0, entered - 1),), "", ("click",) * right)

        return run

    def hum(noise: int) -> Iterator[Outcome]:
        for step in (1, 2):
            yield Outcome(((noise + step) % noises,), str(step))

    def shake(entered: int) -> Iterator[Outcome]:
        if 1 < entered < digits:
            yield Outcome((entered - 2,))

    machine = Machine(
        components=("entered", "noise"),
        initial=((0, 0), (0, 1)),
        actions=(
            Action(name="turn", who=0, reads=("entered",), writes=("entered",), run=turn(0)),
            Action(name="turn", who=1, reads=("entered",), writes=("entered",), run=turn(1)),
            Action(name="hum", who=-1, reads=("noise",), writes=("noise",), run=hum),
            Action(
                name="shake",
                who=-1,
                reads=("entered",),
                writes=("entered",),
                run=shake,
                fault=True,
                fairness=NONE,
            ),
        ),
        views=(View("entered", ("entered",), lambda entered: entered),),
    )
    closed = Always("safe/closed", ("entered",), lambda n: "the lock is open" if n == digits else None)
    shaken = Sometimes("sometimes/shaken", lambda event, seen: event.action == "shake")
    return machine, Rules(always=(closed,), sometimes=(shaken,))


def counts_turns(event: Event) -> bool:
    """For ``Bounded``."""
    return event.action == "turn"
