"""The Java client, which the model's member is."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance.live.conformance.clients.every import TAKEN_BACK
from rebalance.live.conformance.clients.traits import ClientTraits, Deviation
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import works
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import Member, MemberState

JAVA = "java"


def _forgets(me: MemberContext, member: Member) -> Iterator[Outcome]:
    leads = member.state is MemberState.STABLE and member.watch is not None
    if works(member) and leads and not member.rejoin and len(me.setup.topics) > 1:
        yield Outcome((member._replace(rejoin=True, watch=None),))


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id="forgets a topic", client=JAVA, benign=False,
        sentence="the leader rejoins, and the group rebalances for nothing, when a topic to which nobody "
        "subscribes any more leaves its metadata",
        evidence="its log: 'Request joining group due to: cached metadata has changed from ... at the "
        "beginning of the rebalance to ...', the second with a topic less",
        parts=("member",), run=_forgets,
    ),
)  # fmt: skip

TRAITS = ClientTraits(
    name=JAVA,
    recorder="java",
    reports="kafka-clients",
    profile="java-current",
    cooperative=True,
    deviations=DEVIATIONS,
    diagnoses=(TAKEN_BACK,),
)
