"""The executable model with a decision made otherwise for which it has no switch.

The model is data, so a decision is varied by what an action yields, or by what it is asked with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.machine import Action, Outcome, Value
from rebalance_verifier.specs.classic.necessity.replay import Altered

RunFunction = Callable[..., Iterator[Outcome]]


def _results(change: Callable[[Action, tuple[Value, ...], Outcome], Mapping[str, Value]]) -> Any:
    """Return an action that writes what ``change`` says in place of what it would: by component."""

    def wrap(action: Action) -> RunFunction:
        def run(*values: Value) -> Iterator[Outcome]:
            for outcome in action.run(*values):
                other = change(action, values, outcome)
                written = zip(action.writes, outcome.values, strict=True)
                yield outcome._replace(values=tuple(other.get(name, value) for name, value in written))

        return run

    return wrap


def _reads(change: Callable[[Action, dict[str, Value]], Mapping[str, Value]]) -> Any:
    """Return an action that reads what ``change`` says in place of what is there: by component."""

    def wrap(action: Action) -> RunFunction:
        def run(*values: Value) -> Iterator[Outcome]:
            read = dict(zip(action.reads, values, strict=True))
            other = change(action, read)
            yield from action.run(*(other.get(name, value) for name, value in read.items()))

        return run

    return wrap


def _same_generation(action: Action, values: tuple[Value, ...], outcome: Outcome) -> Mapping[str, Value]:
    read = dict(zip(action.reads, values, strict=True))
    old = cast(s.Group, read["group"]).generation
    written = zip(action.writes, outcome.values, strict=True)
    return {
        name: value._replace(generation=old)
        for name, value in written
        if isinstance(value, s.Group | s.JoinOk) and value != read[name]
    }


NO_GENERATION_BUMP = Altered({"join phase ends": _results(_same_generation)})
"""The generation stays when a join phase ends."""


def _admitted(action: Action, read: dict[str, Value]) -> Mapping[str, Value]:
    wire, record = next(iter(read.values())), next(name for name in read if name.startswith("record"))
    records = cast(s.Records, read[record])
    if isinstance(wire, s.Join) and wire.id != p.NO_ID and s.find(records, wire.id) is None:
        return {record: s.put(records, s.MemberRecord(wire.id, None))}
    return {}


UNKNOWN_MEMBER_REJOINS = Altered({"join request": _reads(_admitted)})
"""A JoinGroup with an id that was removed is taken as that of a member."""


def _awake(action: Action, read: dict[str, Value]) -> Mapping[str, Value]:
    return {
        name: tuple(record._replace(silent=False) for record in cast(s.Records, value))
        for name, value in read.items()
        if name.startswith("record")
    }


NOTHING_HELD_BACK = Altered({"assign": _reads(_awake)})
"""The leader does not know which static members are silent."""


def _unassigned(action: Action, values: tuple[Value, ...], outcome: Outcome) -> Mapping[str, Value]:
    return {
        name: tuple(record._replace(assigned=p.NOTHING) for record in cast(s.Records, value))
        for name, value in zip(action.writes, outcome.values, strict=True)
        if name.startswith("log ")
    }


ASSIGNMENT_NOT_LOGGED = Altered({"leader sync": _results(_unassigned)})
"""The log has the members, and not what was assigned to them."""


def _commits(*, member: bool, generation: bool) -> Callable[[s.Member, s.Stray, s.Group, s.Records], p.Parts]:
    """Return the view ``commits`` of a coordinator that asks only for membership, or only for the
    generation."""

    def commits(m: s.Member, stray: s.Stray, group: s.Group, records: s.Records) -> p.Parts:
        sent = [p.Late("commit", m.id, m.generation, m.owned)] if m.state is p.MemberState.STABLE else []
        late = [stray] if isinstance(stray, p.Late) and stray.api == "commit" else []
        open_ = group.state not in (p.GroupState.DEAD, p.GroupState.EMPTY, p.GroupState.COMPLETING)
        return p.union(
            [
                commit.parts
                for commit in (*sent, *late)
                if open_
                and (not member or s.find(records, commit.id) is not None)
                and (not generation or commit.generation == group.generation)
            ]
        )

    return commits


COMMIT_GENERATION_UNCHECKED = Altered(views={"commits": _commits(member=True, generation=False)})
COMMIT_MEMBER_UNCHECKED = Altered(views={"commits": _commits(member=False, generation=True)})
