"""Clauses of a whole history: that a group which is left alone settles, and how soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from rebalance_verifier.model.assignor import Limits, Promise
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors import oracles
from rebalance_verifier.properties.assignors.calls import AssignorCall, once
from rebalance_verifier.properties.assignors.clause import Breach, History
from rebalance_verifier.properties.assignors.wording import (
    claims_of,
    counted,
    differs,
    grants,
    listed,
    same_owners,
)


def bound(history: History) -> int:
    """Undisturbed rounds within which a COOPERATIVE group must settle.

    Equal subscriptions: one round to revoke, one to grant. Unequal subscriptions or racks: one more,
    which every shipped implementation needs now and then (KAFKA-8767). One more again beside EAGER
    members, which hide in each round what they were given in the one before.
    """
    last = history.calls[-1]
    rounds = 2 if last.equal_subscriptions and not oracles.rack_matters(last) else 3
    first = history.calls[history.settling]
    rounds += slow_rounds(len(first.existing), last.limits)
    return rounds + hides(history.calls[history.settling :])


def settled(calls: Sequence[AssignorCall], alone: int) -> int | None:
    """Return the first call from ``alone`` on, by index, after which nobody has to revoke anything."""
    if len(calls) > alone and calls[alone].protocol is not RebalanceProtocol.COOPERATIVE:
        return alone
    return next((i for i in range(alone, len(calls)) if not calls[i].revoked), None)


def slow_rounds(partitions: int, limits: Limits) -> int:
    """Rounds that a gradual assignor takes in which so many partitions move, each once."""
    return -(-partitions // limits[Promise.GRADUAL]) if Promise.GRADUAL in limits else 0


def hides(calls: Sequence[AssignorCall]) -> bool:
    """Check whether a member claims nothing although the call before gave it something."""
    return any(
        before.assignment.get(member) and not claim.partitions
        for before, after in pairwise(calls)
        for member, claim in after.claims.items()
    )


KINDS = ("stranded", "never", "late")
"""The kinds of breaches of what settles."""


def settles(history: History) -> Breach | None:
    rounds = bound(history)
    if history.settled is not None and history.settled - history.settling < rounds:
        last = history.calls[history.settled]
        if not last.waiting:
            return None
        return Breach(
            kind="stranded",
            summary=f"the group settles without an owner of {listed(last.waiting)}",
            because=("nobody revokes anything in that round, so no rebalance follows it",),
            expected="every partition of a subscribed topic owned",
            actual=f"{counted(len(last.waiting), 'partition')} stranded",
            partitions=last.waiting,
        )
    return _still_revokes(history, rounds)


def cycle(history: History) -> range | None:
    """Return the undisturbed calls, by index, from one to that before which the group is in the same state
    again: the same claims, as old, with the same decision behind them. It never settles then."""
    seen: dict[object, int] = {}
    for index in range(history.settling, len(history.calls)):
        call = history.calls[index]
        state = _claimed(call), _given(history.calls[index - 1]) if index else frozenset()
        if state in seen:
            return range(seen[state], index)
        seen[state] = index
    return None


@once
def _claimed(call: AssignorCall) -> frozenset[object]:
    """Return who claims what, of how many generations before the newest."""
    newest = max((claim.generation for claim in call.claims.values()), default=0)
    return frozenset([(m, frozenset(c.partitions), newest - c.generation) for m, c in call.claims.items()])


@once
def _given(call: AssignorCall) -> frozenset[object]:
    """Return who was given what."""
    return frozenset([(m, frozenset(partitions)) for m, partitions in call.assignment.items()])


def _still_revokes(history: History, rounds: int) -> Breach:
    undisturbed = history.calls[history.settling :]
    moved = tuple(sorted({p for c in undisturbed[rounds - 1 :] for ps in c.revoked.values() for p in ps}))
    again = cycle(history) if history.settled is None else None
    return Breach(
        kind="never" if again else "late",
        summary=f"the group never settles: after {counted(len(again), 'round')} it is where it was"
        if again
        else f"the group still revokes in undisturbed round {rounds}: {listed(moved)}",
        because=tuple(
            f"round {number}: " + ("; ".join(f"{m} revokes {listed(r)}" for m, r in c.revoked.items()) or "-")
            for number, c in enumerate(undisturbed, 1)
        ),
        expected=f"nothing left to revoke in round {rounds}",
        actual="settled in round " + str(history.settled - history.settling + 1)
        if history.settled is not None
        else f"not settled in {len(undisturbed)} rounds",
        partitions=moved,
    )


def settled_is_final(history: History) -> Breach | None:
    if history.settled is None or history.settled + 1 >= len(history.calls):
        return None
    before, after = history.calls[history.settled], history.calls[history.settled + 1]
    if before.waiting or same_owners(before.assignment, after.assignment):
        return None
    # What EAGER members hold beside COOPERATIVE ones nobody can see: until the claims of the others
    # are the same twice, it may move once more.
    if before.claims != after.claims and hides((before, after)):
        return None
    return differs(after, before.assignment, "after the rebalance before it")


def withheld_in_vain(history: History) -> Breach | None:
    undisturbed = history.calls[history.settling :]
    for before, after in pairwise(undisturbed):
        for partition in before.withheld:
            holder = before.valid.get(partition)
            if holder is not None and after.granted.get(partition) == (holder,):
                return Breach(
                    summary=f"{partition} is taken from {holder} and given back in the next round",
                    because=(
                        *claims_of(before, partition),
                        f"assign() returned {grants(before, {holder})}",
                        f"and after the revocation {grants(after, {holder})}",
                    ),
                    expected=f"{partition} with {holder} in both rounds",
                    actual=f"{partition} revoked without a new owner",
                    partitions=(partition,),
                )
    return None


def settles_in_two(history: History) -> Breach | None:
    if history.settled is None or history.settled - history.settling < 2:
        return None
    return replace(
        _still_revokes(history, 2),
        summary=f"the group needs {history.settled - history.settling + 1} undisturbed rounds to settle",
        expected="at most two: one to revoke, one to grant",
    )
