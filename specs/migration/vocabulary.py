"""What a group between the protocols has besides a consumer group: classic members, and a classic group.

A classic member has the fields of the other kind that it needs: ``epoch`` is its generation, ``state``
JOINING while it has none, ``owned`` what it reads. Of the classic group there is what conversions need, as in
``model.migration``: a join phase, claims, a decision that gives nobody what another one
claims. Its generation is the epoch of the group; its members have none of their own there.
"""

from __future__ import annotations

from rebalance_verifier.specs.consumer.vocabulary import VOCABULARY as OF_CONSUMER
from rebalance_verifier.specs.consumer.vocabulary import Generation, Member, Partition

VOCABULARY = OF_CONSUMER.extended()
_v = VOCABULARY

GroupKind, NO_GROUP, CLASSIC, CONSUMER = _v.enumeration("GroupKind", ("none", "classic", "consumer"))
GroupPhase, EMPTY, PREPARING, COMPLETING, SETTLED = _v.enumeration(
    "GroupPhase", ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
)
CallWire, NOTHING, JOIN_GROUP, JOIN_WAITS, JOIN_OK, SYNC, SYNC_WAITS, SYNC_OK, REFUSED = _v.enumeration(
    "CallWire",
    (
        "no call", "JoinGroup", "JoinGroup waits", "JoinGroup is answered", "SyncGroup", "SyncGroup waits",
        "SyncGroup is answered", "call is refused",
    ),
)  # fmt: skip

# -- the classic client, and its one call --------------------------------------------------------------

_v.relation("old", Member, meaning="its process speaks the classic protocol")
_v.function("call", Member, value=CallWire, meaning="its JoinGroup or SyncGroup, or the answer")
_v.function("call_epoch", Member, value=Generation, meaning="the generation in it")
_v.relation("call_parts", Member, Partition, meaning="what it claims, or assigns")

# -- the coordinator -----------------------------------------------------------------------------------

_v.function("kind", value=GroupKind, meaning="which protocol the group has")
_v.function("phase", value=GroupPhase, meaning="how far a classic group is")
_v.relation("classic", Member, meaning="a member that speaks the classic protocol")
_v.relation("joined", Member, meaning="its JoinGroup waits for those of the others")
_v.relation("claimed", Member, Partition, meaning="what its last JoinGroup to a classic group claimed")
