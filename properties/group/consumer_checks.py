"""What the clauses of a consumer group (KIP-848) ask, each as one function, beside those of ``checks``.

A function returns what is wrong, or None. ``consumer`` says which clause it stands for.
"""

from __future__ import annotations

from rebalance_verifier.model.consumer.conversion import may_upgrade
from rebalance_verifier.model.consumer.observations import (
    Acknowledged,
    Advanced,
    BeatAnswered,
    Committed,
    Ended,
    Granted,
    Targeted,
)
from rebalance_verifier.model.consumer.state import BeatError
from rebalance_verifier.model.group.observations import Expelled
from rebalance_verifier.model.group.parts import NONE, Parts
from rebalance_verifier.model.group.setup import Setup, letter

Holds = tuple[Parts, Parts]
"""What the records of one slot hold, and what more than one of them does."""


def holder(setup: Setup, a: str, b: str, x: Holds, y: Holds) -> str | None:
    """Return one holder: of two slots, and of the records of each."""
    for name, (_, twice) in ((a, x), (b, y)):
        if twice:
            return f"{setup.spell(twice)} is held twice by {name}"
    both = x[0] & y[0]
    return f"{setup.spell(both)} is held by {a} and by {b}" if both else None


def order(a: str, epochs: tuple[tuple[int, int, int, int], ...]) -> str | None:
    for previous, own, target, group in epochs:
        if not previous <= own <= target <= group:
            numbers = f"previous {previous}, own {own}, of the target {target}, of the group {group}"
            return f"the epochs of {a} are out of order: {numbers}"
    return None


def beyond(setup: Setup, a: str, parts: int) -> str | None:
    return f"{a} reads {setup.spell(parts)}, which the coordinator does not hold for it" if parts else None


def size(limit: int, members: int) -> str | None:
    return f"{members} members, the limit is {limit}" if members > limit else None


def stays_up(up: bool) -> str | None:
    return "everybody speaks the classic protocol, and it is still a consumer group" if up else None


def mixed(both: bool) -> str | None:
    return "a consumer group has members of the classic protocol" if both else None


def comes_back(setup: Setup, item: BeatAnswered) -> str | None:
    if item.error is not BeatError.UNRELEASED_INSTANCE_ID or not item.classic:
        return None
    return f"{letter(item.who)} cannot come back with the consumer protocol: {item.error}"


def monotone(setup: Setup, item: Advanced) -> str | None:
    names = ("its own", "that of the target", "that of the group")
    for name, before, after in zip(names, item.before, item.after, strict=True):
        if after < before != NONE:
            return f"a heartbeat of {letter(item.who)} takes {name} epoch from {before} back to {after}"
    return None


def granted(setup: Setup, item: Granted) -> str | None:
    early = item.parts & item.held
    return f"{letter(item.who)} is given {setup.spell(early)}, which another member holds" if early else None


def subscribed(setup: Setup, item: Granted) -> str | None:
    who, parts = letter(item.who), setup.spell(item.foreign)
    return f"{who} is given {parts} and does not subscribe to it" if item.foreign else None


def called(setup: Setup, foreign: Parts) -> str | None:
    parts = setup.spell(foreign)
    return f"no target is due, and {parts} is for a member that does not subscribe to it" if foreign else None


def targeted(setup: Setup, item: Targeted) -> str | None:
    parts = setup.spell(item.foreign)
    return f"a target has {parts} for a member that does not subscribe to it" if item.foreign else None


def acknowledged(setup: Setup, item: Acknowledged) -> str | None:
    kept = item.owned & ~item.claim
    return (
        f"{letter(item.who)} acknowledges to have given up {setup.spell(kept)}, and has it" if kept else None
    )


def fenced(setup: Setup, item: BeatAnswered) -> str | None:
    refused = item.error in (BeatError.FENCED_MEMBER_EPOCH, BeatError.UNRELEASED_INSTANCE_ID)
    if not refused or not item.inside:
        return None
    what = "is fenced" if item.error is BeatError.FENCED_MEMBER_EPOCH else f"hears {item.error}"
    return f"{letter(item.who)}, a member, {what}: {item.kind}"


def timely(setup: Setup, item: Expelled) -> str | None:
    what = "is away and has nothing to revoke" if item.away else "has revoked what it had to"
    return f"{letter(item.who)} {what}, and is removed by the {item.cause} timeout"


def ends(setup: Setup, item: Ended) -> str | None:
    refused = item.error is BeatError.GROUP_ID_NOT_FOUND and not may_upgrade(setup)
    if item.error in (BeatError.FENCED_INSTANCE_ID, BeatError.GROUP_MAX_SIZE_REACHED) or refused:
        return None
    return f"{letter(item.who)} ends by {item.error}, which joining again would cure"


def stored(setup: Setup, item: Committed) -> str | None:
    refused = item.held & ~item.accepted
    return (
        f"a commit of {letter(item.who)} for {setup.spell(refused)}, which it holds, is refused"
        if refused
        else None
    )
