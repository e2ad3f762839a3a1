"""Machines drawn at random, in which members and labels are interchangeable by construction.

A member's value is ``(x, label)``, the shared one ``(x, label, holder)``, ``holder`` a member or -1. An
action sees labels only by their order, and members only as "me" or "another": so that runs do not depend
on names, as in a real machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import Any

from hypothesis import strategies as st
from rebalance_verifier.model.machine import (
    NOBODY,
    Action,
    Event,
    Labels,
    Machine,
    Outcome,
    Permutation,
    Value,
    View,
)
from rebalance_verifier.properties.group.rules import Always, EachChange, EachStep, Rules, Sometimes

XS = 3


def machines() -> st.SearchStrategy[tuple[Machine, Rules]]:
    """Small machines and rules for them."""
    return st.builds(
        build,
        seed=st.integers(0, 2**32),
        members=st.integers(1, 3),
        kinds=st.integers(1, 4),
        labelled=st.booleans(),
        blind=st.booleans(),
        fuel=st.integers(1, 5),
    )


def build(
    seed: int, members: int, kinds: int, labelled: bool, blind: bool, fuel: int
) -> tuple[Machine, Rules]:
    """A machine that follows from the arguments alone. ``fuel`` steps may change the shared component."""
    everyone = tuple(f"member{i}" for i in range(members))
    rng = random.Random(seed)
    actions: list[Action] = []
    for kind in range(kinds):
        shares, wide = rng.random() < 0.6, labelled and rng.random() < 0.3
        salt, guarded = rng.random(), rng.random() < 0.5
        for i, me in enumerate(everyone):
            others = tuple(name for name in everyone if name != me) if wide else ()
            reads = (me, *(("fuel", "shared") if shares or wide else ()), *others)
            writes = (me, "fuel", "shared") if shares else (me,)
            run = partial(_act, salt, i, shares, labelled and wide, fuel)
            guard = partial(_guard, salt) if guarded else None
            actions.append(
                Action(
                    name=f"kind{kind}",
                    who=i,
                    reads=reads,
                    writes=writes,
                    run=run,
                    guard=guard,
                    fault=kind == 0,
                )
            )
    if blind:
        actions.append(
            Action(
                name="reset",
                who=NOBODY,
                reads=("fuel",),
                writes=("fuel", *everyone),
                run=partial(_reset, members),
            )
        )
    start = (fuel, (0, -1, -1), *(((0, -1),) * members))
    names = ("fuel", "shared", *everyone)
    machine = Machine(
        components=names,
        initial=(start,),
        actions=tuple(actions),
        views=(
            View("xs", everyone, lambda *ms: tuple(sorted(m[0] for m in ms))),
            View("holds", ("shared",), lambda shared: shared[2] >= 0),
            *(View(f"x of {me}", (me,), lambda m: m[0]) for me in everyone),
        ),
        labels=Labels(_used, _relabel) if labelled else None,
        symmetries=tuple(
            Permutation((0, 1, *(2 + to for to in order)), partial(_rename, order))
            for order in permutations(range(members))
        ),
    )
    bad = rng.randrange(XS)
    rules = Rules(
        always=(
            Always("not-all-alike", ("xs",), lambda xs: f"all {bad}" if set(xs) == {bad} else None),
            Always("lone", ("holds", "xs"), lambda h, xs: "held" if h and xs[0] == xs[-1] else None),
        ),
        each_step=(EachStep("no-two", _no_two),),
        each_change=tuple(
            EachChange("no-fall", i, frozenset({"kind0", "kind1"}), (f"x of {me}",), _no_fall)
            for i, me in enumerate(everyone)
        ),
        sometimes=(Sometimes("fresh", _fresh), Sometimes("never", lambda event, seen: False)),
    )
    return machine, rules


def _no_two(event: Event, seen: Sequence[Any]) -> str | None:
    return f"{event.action}: two" if event.choice == "2" and "copied" in seen else None


def _no_fall(event: Event, x: tuple[int, int]) -> str | None:
    return f"{event.action}: from {x[0]} to {x[1]}" if x == (2, 0) else None


def _fresh(event: Event, seen: Sequence[Any]) -> bool:
    return "fresh" in seen


def _guard(salt: float, me: Any) -> bool:
    return random.Random(f"{salt} {me[0]}").random() < 0.8


def _act(
    salt: float, i: int, shares: bool, sees_all: bool, most: int, me: Any, *rest: Any
) -> Iterator[Outcome]:
    """Outcomes drawn by what the action sees: values, and labels by their order."""
    fuel, shared, *others = rest or (1, None)
    values = [me, *([shared[:2]] if shared is not None else []), *sorted((*o[:1], -1) for o in others)]
    labels = sorted({value[1] for value in values if value[1] >= 0})
    sight = [(value[0], labels.index(value[1]) if value[1] >= 0 else -1) for value in values]
    holder = None if shared is None else "me" if shared[2] == i else "none" if shared[2] < 0 else "other"
    rng = random.Random(f"{salt} {sight} {holder} {fuel}")
    if shares and fuel == 0:
        return
    for number in range(rng.choice((0, 1, 1, 1, 2, 3))):
        choices: list[tuple[str, int]] = [("none", -1), *(("copied", label) for label in labels)]
        if sees_all and shared is not None:
            top = max((value[1] for value in (me, shared, *others)), default=-1)
            choices += [("fresh", top + 1)] * 2
        word, label = rng.choice(choices)
        after: tuple[Value, ...] = ((rng.randrange(XS), label),)
        if shares and shared is not None:
            to = rng.choice((shared[2], i, -1))
            after += (fuel - 1, (rng.randrange(XS), rng.choice((-1, shared[1], label)), to))
        yield Outcome(after, str(number), (word,))


def _reset(members: int, fuel: int) -> Iterator[Outcome]:
    if fuel == 1:
        yield Outcome((0, *(((2, -1),) * members)), "all", ("reset",))


def _used(value: Any) -> int:
    return 1 << value[1] if isinstance(value, tuple) and value[1] >= 0 else 0


def _relabel(value: Any, names: Mapping[int, int]) -> Value:
    if isinstance(value, tuple) and value[1] >= 0:
        return (value[0], names[value[1]], *value[2:])
    renamed: Value = value
    return renamed


def _rename(order: tuple[int, ...], value: Any) -> Value:
    if isinstance(value, tuple) and len(value) == 3 and value[2] >= 0:
        return (*value[:2], order[value[2]])
    renamed: Value = value
    return renamed
