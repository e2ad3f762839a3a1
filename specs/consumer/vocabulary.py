"""What a group of the consumer protocol (KIP-848) is, in logic: its sorts, and the symbols of one state.

Three sorts of any size. A ``Member`` is a member id, and the one process that made it: a process that starts
has a new id, and keeps it until it ends. An epoch is a ``Generation``, as in the model; ``none`` stands for
those that the wire writes as 0 and -1.

A client has one heartbeat at a time under way; it or its answer may be lost at any time, and what a killed
process had sent may still arrive. Commits are a bag: any number of them may be under way, and each may arrive
at any time, and again. Who a timer, a leave or an administrator removes is not told apart.
"""

from __future__ import annotations

import z3
from rebalance_verifier.specs.logic.language import Vocabulary

VOCABULARY = Vocabulary()
_v = VOCABULARY

Member, M, N, L = _v.sort("Member", "MNL")
Partition, P, Q = _v.sort("Partition", "PQ")
Generation, G, H, K = _v.sort("Generation", "GHK")

ClientState, OUT, JOINING, INSIDE, FENCED = _v.enumeration(
    "ClientState", ("UNSUBSCRIBED", "JOINING", "INSIDE", "FENCED")
)
BeatWire, IDLE, JOIN, BEAT, ANSWER, REFUSAL = _v.enumeration(
    "BeatWire", ("idle", "join", "heartbeat", "answer", "refusal")
)
RecordState, STABLE, UNREVOKED, UNRELEASED = _v.enumeration(
    "RecordState", ("STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS")
)

# -- what never changes --------------------------------------------------------------------------------

lt = _v.fixed("lt", Generation, Generation, meaning="the one epoch is older than the other")
none = _v.fixed("none", value=Generation, meaning="no epoch; older than every other")
zero = _v.fixed("zero", value=Generation, meaning="the epoch of a group that does not exist yet")

AXIOMS = {
    "an epoch is not older than itself": z3.Not(lt(G, G)),
    "older than the older is older": z3.Implies(z3.And(lt(G, H), lt(H, K)), lt(G, K)),
    "of two epochs one is older": z3.Or(lt(G, H), lt(H, G), G == H),
    "none is the oldest": z3.Or(lt(none, G), none == G),
    "zero is an epoch": zero != none,
}
"""All that is known of the above; epochs are a total order and nothing more."""

# -- the client, as its own fields say -----------------------------------------------------------------

_v.relation("runs", Member, meaning="its process runs")
_v.function("state", Member, value=ClientState, meaning="INSIDE: it believes to be a member")
_v.function("epoch", Member, value=Generation, meaning="its member epoch, as it was answered last")
_v.relation("owned", Member, Partition, meaning="it consumes the partition")
_v.relation("received", Member, Partition, meaning="the newest assignment that it received")
_v.relation("reconciling", Member, meaning="it is reconciling an assignment")
_v.relation("goal", Member, Partition, meaning="that assignment")
_v.relation("claim", Member, Partition, meaning="the assignment that it reconciled last")
_v.relation("fresh", Member, meaning="it has received one that it has not begun to reconcile")
_v.relation("unsent", Member, meaning="it has reconciled one and not acknowledged it")
_v.relation("full", Member, meaning="its next heartbeat has every field, since an answer may be lost")

# -- its one heartbeat, and its commits ----------------------------------------------------------------

_v.function("wire", Member, value=BeatWire, meaning="its heartbeat, or the answer")
_v.function("wire_epoch", Member, value=Generation, meaning="the epoch in it")
_v.relation("carries", Member, meaning="the heartbeat, or the answer, carries partitions")
_v.relation("asks", Member, meaning="the heartbeat has every field, and is answered with the assignment")
_v.relation("sent", Member, Partition, meaning="those that the heartbeat gives as owned")
_v.relation("granted", Member, Partition, meaning="those that the answer assigns")
_v.relation("late", Member, Generation, Partition, meaning="a commit of that epoch for it is under way")

# -- the coordinator, all of which is in its log -------------------------------------------------------

_v.function("group_epoch", value=Generation, meaning="the epoch of the group")
_v.function("target_epoch", value=Generation, meaning="the epoch of the target assignment")
_v.relation("member", Member, meaning="in the group")
_v.function("at", Member, value=Generation, meaning="the member epoch")
_v.function("previous", Member, value=Generation, meaning="the epoch that it may show after a lost answer")
_v.function("record", Member, value=RecordState, meaning="whether it, or another one, has to give up some")
_v.relation("assigned", Member, Partition, meaning="its current assignment")
_v.relation("pending", Member, Partition, meaning="what it has to revoke, and has not acknowledged")
_v.relation("target", Member, Partition, meaning="its target assignment")
_v.relation("subscribed", Member, Partition, meaning="the partition is of a topic of its subscription")
