"""What the listeners of the consumers are told: by the model, as it was seen, and by the logic.

A callback of the logic is an action of its own, so what is owned while it runs is the state before it (for
onPartitionsAssigned, the state after it). Which of onPartitionsRevoked and onPartitionsLost a consumer calls
that leaves is not in the logic, nor a revocation of nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from rebalance_verifier.model.group.observations import Call, Callback
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.refinement.moves import SpecStep
from rebalance_verifier.specs.logic.universe import Structure, Universe

ENDS = (Call.REVOKED, Call.LOST)
CALLS: dict[str, tuple[Call, ...]] = {
    "partitions_lost": (Call.LOST,),
    "partitions_revoked_to_join": (Call.REVOKED,),
    "partitions_revoked": (Call.REVOKED,),
    **dict.fromkeys(("partitions_assigned", "assigned_and_thrown"), (Call.ASSIGNED,)),
    **dict.fromkeys(("unsubscribe", "close", "unsubscribe_unnoticed", "close_unnoticed"), ENDS),
    "unsubscribe_midway": ENDS,
    **dict.fromkeys(("fails", "heartbeat_of_fenced", "late_answer_fails"), ENDS),
}
"""The actions of the logic that call the listener, and how."""

ListenerCall = tuple[tuple[Call, ...], int, int, int]
"""A callback: any of these, for which partitions, what was owned meanwhile and believed before."""

TakenStep = tuple[Structure, SpecStep, Structure]
"""An action of the logic between two states."""


def seen_by(observations: Iterable[Hashable]) -> tuple[ListenerCall, ...]:
    """Return the callbacks among what was seen of a step of the model."""
    return tuple(
        [
            ((seen.call,), seen.parts, seen.owned, seen.believed)
            for seen in observations
            if isinstance(seen, Callback) and (seen.parts or seen.call is Call.ASSIGNED)
        ]
    )


def called_by(universe: Universe, path: Iterable[TakenStep]) -> Iterator[ListenerCall]:
    """Yield the callbacks of actions of the logic."""
    for before, (name, parameters), after in path:
        if name in CALLS:
            c = parameters[0]
            owned, kept = _owned(universe, before, c), _owned(universe, after, c)
            believed, then = _believed(universe, before, c), _believed(universe, after, c)
            if CALLS[name] == (Call.ASSIGNED,):
                yield CALLS[name], then & ~believed, kept, believed
            elif owned & ~kept:
                yield CALLS[name], owned & ~kept, owned, believed


def differs(setup: Setup, seen: Iterable[ListenerCall], called: Iterable[ListenerCall]) -> str | None:
    """Return None if these are the same callbacks; else how they differ."""
    listed, expected = list(seen), list(called)
    for have, want in zip(listed, expected, strict=False):
        if have[0][0] not in want[0] or have[1:] != want[1:]:
            return f"the listener was told {_spell(setup, have)}; should be {_spell(setup, want)}"
    if len(listed) > len(expected):
        return f"the listener was also told {_spell(setup, listed[len(expected)])}"
    if len(listed) < len(expected):
        return f"the listener was not told {_spell(setup, expected[len(listed)])}"
    return None


def _spell(setup: Setup, call: ListenerCall) -> str:
    calls, parts, owned, before = call
    names = " or ".join(calls)
    return f"{names} {setup.spell(parts)} (owned {setup.spell(owned)}, believed {setup.spell(before)})"


def _owned(universe: Universe, state: Structure, c: int) -> int:
    none = universe.tables["none"][0]
    return _mask(universe.read(state, "since", c, p) != none for p in universe.domains["Partition"])


def _believed(universe: Universe, state: Structure, c: int) -> int:
    return _mask(bool(universe.read(state, "told", c, p)) for p in universe.domains["Partition"])


def _mask(bits: Iterable[bool]) -> int:
    return sum(1 << p for p, bit in enumerate(bits) if bit)
