"""The Java client, which the model's member is."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance.live.conformance.clients.every import TAKEN_BACK
from rebalance.live.conformance.clients.traits import read_client
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import works
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import Member, MemberState


def _forgets(me: MemberContext, member: Member) -> Iterator[Outcome]:
    leads = member.state is MemberState.STABLE and member.watch is not None
    if works(member) and leads and not member.rejoin and len(me.setup.topics) > 1:
        yield Outcome((member._replace(rejoin=True, watch=None),))


TRAITS = read_client(
    __file__,
    {
        "forgets a topic": _forgets,
    },
    {
        TAKEN_BACK.id: TAKEN_BACK,
    },
)
