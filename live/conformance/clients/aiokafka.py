"""aiokafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebalance_verifier.live.conformance.clients.every import TAKEN_BACK, prepares
from rebalance_verifier.live.conformance.clients.traits import read_client
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.group.parts import MemberState, Topics
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome


def _notices(me: MemberContext, member: s.Member, topics: Any) -> Iterator[Outcome]:
    """``subscribe()``, also to the same topics: what was asked for before does not count any more."""
    if topics is not None and works(member):
        yield Outcome((member._replace(topics=topics, joined_topics=Topics(0)), None))


def _discards(me: MemberContext, member: s.Member, wire: s.Wire) -> Iterator[Outcome]:
    """An answer that comes after ``subscribe()``; of the JoinGroup not even the member id is kept."""
    if not works(member) or member.topics == member.joined_topics:
        return
    if isinstance(wire, s.JoinOk) and member.state is MemberState.PREPARING:
        yield Outcome((member._replace(state=MemberState.UNJOINED), None))
    elif isinstance(wire, s.SyncOk) and member.state is MemberState.COMPLETING:
        yield Outcome((member._replace(state=MemberState.STABLE, rejoin=True, prepare=False), None))


TRAITS = read_client(
    __file__,
    {
        "takes its subscription": _notices,
        "prepares and waits": prepares,
        "discards an answer": _discards,
    },
    {
        TAKEN_BACK.id: TAKEN_BACK,
        "not polled and never leaves: aiokafka": lambda seen: seen.in_group_without_polls,
    },
)
