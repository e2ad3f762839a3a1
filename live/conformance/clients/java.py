"""The Java client, which the model's member is."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.live.conformance.clients.every import TAKEN_BACK
from rebalance_verifier.live.conformance.clients.traits import read_client
from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.state import Member
from rebalance_verifier.model.group.parts import MemberState
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome


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
