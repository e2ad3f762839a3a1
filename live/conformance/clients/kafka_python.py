"""kafka-python."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.live.conformance.clients.every import TAKEN_BACK
from rebalance_verifier.live.conformance.clients.traits import FindingContext, read_client
from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.state import Member
from rebalance_verifier.model.group.parts import MemberState
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome


def _asks_again(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state is MemberState.STABLE and not member.rejoin:
        yield Outcome((member._replace(rejoin=True),))


def _abandons(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state in (MemberState.PREPARING, MemberState.COMPLETING):
        yield Outcome((member._replace(stuck=True),))


def _takes_up(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if member.stuck:
        yield Outcome((member._replace(stuck=False, rejoin=True),))


def _somebody_went(seen: FindingContext) -> bool:
    gone = any(e["event"] == "closed" and e["at"] < seen.finding["began"] for e in seen.events)
    return gone or bool(seen.away)


def _unsubscribed_leader(seen: FindingContext) -> bool:
    """Check whether a live member does not subscribe to the topic that has no owner."""
    topic = str(seen.finding["partition"]).rpartition("-")[0]
    subscriptions = [seen.before(name, "subscribed") for name in seen.finding["consumers"]]
    return any(events and topic not in events[-1].get("topics", ()) for events in subscriptions)


def _abandoned(seen: FindingContext) -> bool:
    """Check whether a member that runs sent JoinGroup, or was answered, and was not heard of again."""
    for name in seen.finding["consumers"]:
        moves = [e["event"] for e in seen.before(name, "joining", "joined", "synced", "reset", "closed")]
        if moves and moves[-1] in ("joining", "joined", "reset"):
            return True
    return False


def _one_round(seen: FindingContext) -> bool:
    """Check whether the owner gives the partition away in the generation in which the other one is given
    it."""
    after = seen.finding["generations"][1]
    return after is not None and seen.finding["detail"].endswith(f"revoked in generation {after}")


TRAITS = read_client(
    __file__,
    {
        "abandons its join": _abandons,
        "takes its join up again": _takes_up,
        "joins once more": _asks_again,
    },
    {
        "a stale claim wins": _one_round,
        TAKEN_BACK.id: TAKEN_BACK,
        "given to a member that is gone": _somebody_went,
        "leader knows its own topics only": _unsubscribed_leader,
        "abandons its join": _abandoned,
    },
)
