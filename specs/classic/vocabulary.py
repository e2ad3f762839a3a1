"""What a consumer group is, in logic: its sorts, and the relations and functions of one state.

Five sorts of any size. A ``Consumer`` is a process, or one after another with the same configuration; a
``Member`` is a member id, ``of`` the consumer to which the coordinator gave it. Which partitions are
owned is one function: ``since(c, p)`` is the generation in which ``p`` was assigned to ``c``, ``none``
if ``c`` does not own it; ``claim(m, p)`` is what the coordinator was told of that. So "the newest claim" is
an order on values, and a partition that nobody claims is one that everybody claims since ``none``.

A consumer has one request at a time under way on its connection; it or its answer may be lost, and then the
consumer is told so. What was sent on connections that broke may still arrive, at any time and in any order:
of that the state knows no more than what could do harm (``specs.classic.connections``).
"""

from __future__ import annotations

import z3
from rebalance_verifier.specs.logic.language import Vocabulary

VOCABULARY = Vocabulary()
_v = VOCABULARY

Consumer, C, D = _v.sort("Consumer", "CD")
Member, M, N, L = _v.sort("Member", "MNL")
Partition, P, Q = _v.sort("Partition", "PQ")
Generation, G, H, K = _v.sort("Generation", "GHK")
Assignor, A, B = _v.sort("Assignor", "AB")

Life, DOWN, UP, PAUSED, HUNG = _v.enumeration("Life", ("DOWN", "UP", "PAUSED", "HUNG"))
MemberState, UNJOINED, JOINING, SYNCING, STABLE = _v.enumeration(
    "MemberState", ("UNJOINED", "PREPARING_REBALANCE", "COMPLETING_REBALANCE", "STABLE")
)
Wire, IDLE, JOIN_NEW, JOIN, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK, JOIN_REFUSED, SYNC_REFUSED = (
    _v.enumeration(
        "Wire",
        (
            "idle", "join_new", "join", "join_parked", "join_ok",
            "sync", "sync_parked", "sync_ok", "join_refused", "sync_refused",
        ),
    )
)  # fmt: skip
Error, NO_ERROR, ID_REQUIRED, UNKNOWN, ILLEGAL, IN_PROGRESS, RETRIABLE, FATAL = _v.enumeration(
    "Error",
    (
        "no_error", "MEMBER_ID_REQUIRED", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION",
        "REBALANCE_IN_PROGRESS", "retriable", "fatal",
    ),
)  # fmt: skip
Stray, NO_STRAY, HEARTBEAT, COMMIT, ANSWER = _v.enumeration(
    "Stray", ("no_stray", "heartbeat", "commit", "answer")
)
GroupState, EMPTY, PREPARING, COMPLETING, SETTLED = _v.enumeration(
    "GroupState", ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
)

# -- what never changes --------------------------------------------------------------------------------

of = _v.fixed("of", Member, value=Consumer, meaning="the consumer that a member id is for")
static = _v.fixed("static", Consumer, meaning="it has a group.instance.id (KIP-345)")
honest = _v.fixed("honest", Consumer, meaning="it claims what it owns, since when it owns it")
cooperative = _v.fixed("cooperative", Assignor, meaning="the assignor supports COOPERATIVE")
lt = _v.fixed("lt", Generation, Generation, meaning="the one generation is older than the other")
none = _v.fixed("none", value=Generation, meaning="no generation; older than every other")
zero = _v.fixed("zero", value=Generation, meaning="the generation of a group that does not exist yet")

AXIOMS = {
    "a generation is not older than itself": z3.Not(lt(G, G)),
    "older than the older is older": z3.Implies(z3.And(lt(G, H), lt(H, K)), lt(G, K)),
    "of two generations one is older": z3.Or(lt(G, H), lt(H, G), G == H),
    "none is the oldest": z3.Or(lt(none, G), none == G),
    "zero is a generation": zero != none,
}
"""All that is known of the above; generations are a total order and nothing more."""

# -- the consumer, as its own fields say ---------------------------------------------------------------

_v.function("life", Consumer, value=Life, meaning="PAUSED: nothing runs; HUNG: only its heartbeats do")
_v.function("state", Consumer, value=MemberState, meaning="AbstractCoordinator.MemberState")
_v.function("generation", Consumer, value=Generation, meaning="that of the last JoinGroup answered")
_v.relation("identified", Consumer, meaning="it has a member id")
_v.relation("id", Member, meaning="the member id that its consumer has")
_v.function("since", Consumer, Partition, value=Generation, meaning="it owns the partition since then")
_v.relation("told", Consumer, Partition, meaning="what its listener was told adds up to that")
_v.relation("prepare", Consumer, meaning="onJoinPrepare is due before the next JoinGroup")
_v.relation("rejoin", Consumer, meaning="rejoinNeeded")
_v.relation("resubscribed", Consumer, meaning="its subscription is not that of its last JoinGroup")
_v.relation("outdated", Consumer, meaning="the metadata that it watches as the leader has changed")
_v.relation("unseen", Consumer, meaning="its metadata is older than the cluster's")
_v.relation("subscribes", Consumer, meaning="it has a subscription")
_v.relation("subscribed", Consumer, Partition, meaning="the partition is of a topic of its subscription")
_v.relation("received", Consumer, meaning="SyncGroup brought an assignment that is not handled yet")
_v.relation("got", Consumer, Partition, meaning="that assignment")
_v.relation("eager", Consumer, meaning="it runs the EAGER protocol")
_v.relation("lists", Consumer, Assignor, meaning="partition.assignment.strategy")

# -- one request or answer of each consumer ------------------------------------------------------------

_v.function("wire", Consumer, value=Wire, meaning="what is under way")
_v.relation("names", Member, meaning="what is under way for its consumer carries this member id")
_v.function("wire_generation", Consumer, value=Generation, meaning="and this generation")
_v.function("error", Consumer, value=Error, meaning="the error of a refusal")
_v.relation(
    "leading", Consumer, meaning="JoinGroup's answer says that it leads, or SyncGroup has an assignment"
)
_v.function("sent", Consumer, Partition, value=Generation, meaning="JoinGroup claims the partition, since")
_v.relation("sent_list", Consumer, Assignor, meaning="JoinGroup lists the assignor")
_v.relation("sent_topics", Consumer, Partition, meaning="JoinGroup subscribes to the partition's topic")
_v.relation("offer", Consumer, Member, Partition, meaning="the assignment in SyncGroup")
_v.relation("granted", Consumer, Partition, meaning="the assignment in SyncGroup's answer")
_v.function("stray", Consumer, value=Stray, meaning="a late heartbeat or commit, or a late answer to one")
_v.relation("stray_names", Member, meaning="it carries this member id")
_v.function("stray_generation", Consumer, value=Generation, meaning="and this generation")
_v.function("stray_error", Consumer, value=Error, meaning="the error of a late answer")
_v.relation("committed", Consumer, Partition, meaning="the partitions of a late commit")

# -- what was left under way on connections that broke ---------------------------------------------------

_v.relation("left", Member, meaning="a JoinGroup with this member id, which no later one has overtaken")
_v.function("left_claim", Member, Partition, value=Generation, meaning="such JoinGroups claim it, since")
_v.relation("left_list", Member, Assignor, meaning="all such list the assignor")
_v.relation("left_new", Consumer, meaning="a JoinGroup without a member id, not overtaken by a later one")
_v.relation("left_new_list", Consumer, Assignor, meaning="all such list the assignor")
_v.relation("left_sync", Member, Generation, meaning="a SyncGroup of this member id and generation")
_v.relation("left_decision", Member, Generation, meaning="one that has an assignment")

# -- the coordinator -----------------------------------------------------------------------------------

_v.function("group", value=GroupState, meaning="ClassicGroupState; Empty also for no group")
_v.function("current", value=Generation, meaning="the group's generation")
_v.relation("leads", Member, meaning="the leader")
_v.relation("chosen", Assignor, meaning="the assignor of this generation")
_v.relation("pending", Member, meaning="an id that was given and not shown yet (KIP-394)")
_v.relation("member", Member, meaning="in the group")
_v.relation("joined", Member, meaning="its JoinGroup is parked")
_v.relation("synced", Member, meaning="its SyncGroup of this generation came")
_v.relation("silent", Member, meaning="a static member carried through the last join phase")
_v.relation("given_up", Member, meaning="the rebalance timeout passed for it")
_v.function("claim", Member, Partition, value=Generation, meaning="its last JoinGroup claims that, since")
_v.relation("supports", Member, Assignor, meaning="its last JoinGroup lists the assignor")
_v.relation("topics", Member, Partition, meaning="its last JoinGroup subscribes to the partition's topic")
_v.relation("assigned", Member, Partition, meaning="the assignment of the last SyncGroup")

# -- the coordinator's log, in __consumer_offsets -------------------------------------------------------

_v.function("log_group", value=GroupState, meaning="the group as it was last appended")
_v.function("log_current", value=Generation)
_v.relation("log_leads", Member)
_v.relation("log_chosen", Assignor)
_v.relation("log_member", Member)
_v.function("log_claim", Member, Partition, value=Generation)
_v.relation("log_supports", Member, Assignor)
_v.relation("log_topics", Member, Partition)
_v.relation("log_assigned", Member, Partition)
