"""Small machines to try the engines on.

``coordinator`` is a group in the large: a generation, members that join, are assigned, revoke and crash;
its generations are labels, its members and partitions are interchangeable. ``puzzle`` is the smallest
machine with a bug.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations, product
from typing import NamedTuple

from rebalance_verifier.model.machine import (
    Action,
    Event,
    Fairness,
    Labels,
    Machine,
    Outcome,
    Permutation,
    State,
    Value,
    View,
)
from rebalance_verifier.properties.group.rules import Always, EachStep, Rules, Sometimes


class Group(NamedTuple):
    """What the coordinator knows: ``phase`` is empty, preparing, syncing or stable."""

    phase: str = "empty"
    generation: int = -1
    joined: tuple[int, ...] = ()
    plan: tuple[int, ...] = ()
    """The member each partition is assigned to, -1 for nobody."""


class Member(NamedTuple):
    """What a member knows: ``phase`` is out, joining, waiting or stable."""

    phase: str = "out"
    generation: int = -1
    owned: tuple[int, ...] = ()


def coordinator(
    members: int, partitions: int, faults: int = 2, *, joins: int = 1, withhold: bool = True
) -> tuple[Machine, Rules]:
    """A group of ``members`` with ``partitions``, and what must hold of it.

    ``faults`` crashes happen at most, and ``joins`` times a member starts a round of its own.
    Without ``withhold`` a partition is given to a new owner before the old one has revoked it: the bug.
    Generations count up for ever; the machine is finite only because they are labels.
    """
    names = ("budget", "group", *(f"member{i}" for i in range(members)))
    everyone = tuple(f"member{i}" for i in range(members))
    actions: list[Action] = []

    def join(i: int) -> Callable[..., Iterator[Outcome]]:
        def run(member: Member, group: Group, budget: tuple[int, int]) -> Iterator[Outcome]:
            invited = member.phase == "stable" and group.phase == "preparing" and i not in group.joined
            if member.phase == "out" or invited:
                left = budget
            elif member.phase == "stable" and group.phase == "stable" and budget[1]:
                left = (budget[0], budget[1] - 1)
            else:
                return
            if group.phase == "syncing":
                return
            before = group.joined if group.phase == "preparing" else ()
            joined = tuple(sorted({*before, i}))
            yield Outcome(
                (member._replace(phase="joining"), group._replace(phase="preparing", joined=joined), left),
                seen=(("join", i),),
            )

        return run

    def complete(group: Group, *all_members: Member) -> Iterator[Outcome]:
        waiting = [i for i, m in enumerate(all_members) if m.phase in ("stable", "waiting")]
        if group.phase != "preparing" or any(i not in group.joined for i in waiting):
            return
        for spread in product(group.joined, repeat=partitions):
            if max(Counter(spread).values()) > -(-partitions // max(len(group.joined), 1)):
                continue
            plan = []
            for p, target in enumerate(spread):
                owner = next((i for i, m in enumerate(all_members) if p in m.owned), -1)
                plan.append(-1 if withhold and owner not in (-1, target) else target)
            after = group._replace(phase="syncing", generation=group.generation + 1, plan=tuple(plan))
            yield Outcome((after,), choice=f"{spread}", seen=(("plan", tuple(plan)),))

    def sync(i: int) -> Callable[..., Iterator[Outcome]]:
        def run(member: Member, group: Group) -> Iterator[Outcome]:
            if member.phase != "joining" or group.phase != "syncing" or i not in group.joined:
                return
            owned = tuple(p for p, owner in enumerate(group.plan) if owner == i)
            left = tuple(j for j in group.joined if j != i)
            revoked = tuple(p for p in member.owned if p not in owned)
            yield Outcome(
                (
                    Member("stable", group.generation, owned),
                    group._replace(joined=left, phase="syncing" if left else "stable"),
                ),
                seen=(("revoked", i, revoked),) if revoked else (),
            )

        return run

    def crash(i: int) -> Callable[..., Iterator[Outcome]]:
        def run(member: Member, budget: tuple[int, int], group: Group) -> Iterator[Outcome]:
            if member.phase == "out" or not budget[0] or group.phase == "syncing":
                return
            joined = tuple(j for j in group.joined if j != i)
            yield Outcome((Member(), (budget[0] - 1, budget[1]), group._replace(joined=joined)))

        return run

    for i in range(members):
        me = f"member{i}"
        actions += [
            *[
                Action(
                    name="join",
                    who=i,
                    reads=(me, "group", "budget"),
                    writes=(me, "group", "budget"),
                    run=join(i),
                    guard=_joins,
                )
            ],
            *[Action(name="sync", who=i, reads=(me, "group"), writes=(me, "group"), run=sync(i))],
            *[
                Action(
                    name="crash",
                    who=i,
                    reads=(me, "budget", "group"),
                    writes=(me, "budget", "group"),
                    run=crash(i),
                    fault=True,
                )
            ],
            *[Action(name="idle", who=i, reads=(me,), writes=(), run=_idle, fairness=Fairness.NONE)],
        ]
    actions.append(
        Action(
            name="complete",
            who=-1,
            reads=("group", *everyone),
            writes=("group",),
            run=complete,
            guard=_prepares,
        )
    )

    views = (
        View("owners", everyone, lambda *ms: tuple(m.owned for m in ms)),
        View("phase", ("group",), lambda group: group.phase),
    )
    start = ((faults, joins), Group(), *([Member()] * members))
    machine = Machine(
        components=names,
        initial=(start,),
        actions=tuple(actions),
        views=views,
        labels=Labels(_used, _relabel),
        symmetries=tuple(_symmetries(members, partitions)),
    )
    rules = Rules(
        always=(
            Always("one-owner", ("owners",), _one_owner),
            Always("known-phase", ("phase", "owners"), lambda phase, owners: None),
        ),
        each_step=(EachStep("no-third-crash", lambda event, seen: None),),
        sometimes=(
            Sometimes("revocation", lambda event, seen: any("revoked" in str(s) for s in seen)),
            Sometimes("never", lambda event, seen: False),
        ),
    )
    return machine, rules


def _joins(member: Value) -> bool:
    return isinstance(member, Member) and member.phase in ("out", "stable")


def _prepares(group: Value) -> bool:
    return isinstance(group, Group) and group.phase == "preparing"


def _idle(member: Member) -> Iterator[Outcome]:
    if member.phase == "stable":
        yield Outcome((), "poll")


def _one_owner(owners: tuple[tuple[int, ...], ...]) -> str | None:
    seen: dict[int, int] = {}
    for i, owned in enumerate(owners):
        for p in owned:
            if p in seen:
                return f"partition {p} is owned by {seen[p]} and {i}"
            seen[p] = i
    return None


def _used(value: Value) -> int:
    if isinstance(value, Group | Member) and value.generation >= 0:
        return 1 << value.generation
    return 0


def _relabel(value: Value, new: Mapping[int, int]) -> Value:
    if isinstance(value, Group | Member) and value.generation >= 0:
        return value._replace(generation=new[value.generation])
    return value


def _symmetries(members: int, partitions: int) -> Iterator[Permutation]:
    for ms in permutations(range(members)):
        for ps in permutations(range(partitions)):
            yield Permutation((0, 1, *(2 + m for m in ms)), _rename(ms, ps))


def _rename(ms: tuple[int, ...], ps: tuple[int, ...]) -> Callable[[Value], Value]:
    def rename(value: Value) -> Value:
        if isinstance(value, Member):
            return value._replace(owned=tuple(sorted(ps[p] for p in value.owned)))
        if isinstance(value, Group):
            plan = [-1] * len(value.plan)
            for p, owner in enumerate(value.plan):
                plan[ps[p]] = ms[owner] if owner >= 0 else -1
            return value._replace(joined=tuple(sorted(ms[i] for i in value.joined)), plan=tuple(plan))
        return value

    return rename


def puzzle(size: int = 5) -> tuple[Machine, Rules]:
    """Two counters: ``a`` moves up or back to 0, ``b`` follows it; they must not meet at ``size``.

    ``b`` may jump to the top in one step that shows itself; when both are at the top, nothing moves.
    """

    def up(a: int, b: int) -> Iterator[Outcome]:
        if a < size:
            yield Outcome((a + 1,), "one", (("up", a),))
        if 0 < a < size:
            yield Outcome((0,), "back")

    def follow(b: int, a: int) -> Iterator[Outcome]:
        if b < a:
            yield Outcome((b + 1,))

    def jump(b: int) -> Iterator[Outcome]:
        if b == size - 2:
            yield Outcome((size,), seen=(("jumped", b),))

    machine = Machine(
        components=("a", "b"),
        initial=((0, 0), (1, 0)),
        actions=(
            Action(name="up", who=0, reads=("a", "b"), writes=("a",), run=up),
            Action(name="follow", who=1, reads=("b", "a"), writes=("b",), run=follow),
            Action(
                name="jump",
                who=1,
                reads=("b",),
                writes=("b",),
                run=jump,
                guard=lambda b: b == size - 2,
                fault=True,
            ),
            Action(name="never", who=-1, reads=("a",), writes=("a",), run=lambda a: ()),
        ),
        views=(View("both", ("a", "b"), lambda a, b: min(a, b)), View("a", ("a",), lambda a: a)),
    )
    rules = Rules(
        always=(
            Always("not-at-top", ("both",), lambda both: "both are there" if both == size else None),
            Always("not-apart", ("a", "both"), lambda a, both: f"{both} < {a}" if both < a - 2 else None),
        ),
        each_step=(EachStep("no-jump", lambda event, seen: "jumped" if event.action == "jump" else None),),
        sometimes=(Sometimes("second step up", lambda event, seen: ("up", 1) in seen),),
    )
    return machine, rules


def replay(machine: Machine, initial: State, events: tuple[Event, ...]) -> list[State]:
    """The states of a run, the machine's own steps one after the other."""
    states = [initial]
    for event in events:
        states.append(machine.step(states[-1], event))
    return states
