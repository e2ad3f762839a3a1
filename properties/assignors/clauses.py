"""The contract of an assignor, as a table of named clauses that a program can check.

A clause is one sentence, one id, one level and one function. The functions are pure; the scopes say what
they are shown: one call, one call and the right to ask again, or a whole history. ``TABLE`` is the single
place where clauses are registered; a duplicate id is an error at import.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import CLASSIC, OF_PARTITIONS, OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import COOPERATIVE, SHARE, Clause, Scope, ServedText
from rebalance_verifier.properties.assignors.placement import (
    all_given_back,
    answered,
    balanced,
    balanced_equal,
    balanced_per_topic,
    co_partitioned,
    complete,
    complete_once_revoked,
    exclusive,
    few_moves,
    newest_claim_wins,
    nobody_idle,
    only_existing,
    only_to_subscribers,
    rack_aligned,
    revoke_first,
    spread,
    sticky,
    within_capacity,
)
from rebalance_verifier.properties.assignors.replies import (
    deterministic,
    indifferent_to_order,
    input_untouched,
    stale_claims_ignored,
    total,
)
from rebalance_verifier.properties.assignors.settling import (
    settled_is_final,
    settles,
    settles_in_two,
    withheld_in_vain,
)
from rebalance_verifier.properties.assignors.sharing import (
    all_busy,
    all_shared,
    evenly_loaded,
    evenly_shared,
    moves_nothing,
    once_each,
)
from rebalance_verifier.properties.assignors.task_clauses import KIP_54, TASK_CLAUSES, WIKI

# --- the table ------------------------------------------------------------------------------------

KIP_429 = WIKI + "KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol"

KIP_792 = WIKI + "KIP-792%3A+Add+%22generation%22+field+into+consumer+protocol"

KIP_881 = WIKI + "KIP-881%3A+Rack-aware+Partition+Assignment+for+Kafka+Consumers"

ASSIGNOR = "https://kafka.apache.org/documentation/#consumerconfigs_partition.assignment.strategy"

BROKER_ASSIGNORS = "https://kafka.apache.org/documentation/#brokerconfigs_group.consumer.assignors"

KIP_848 = WIKI + "KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol"

KIP_932 = WIKI + "KIP-932%3A+Queues+for+Kafka"

ONLY_COOPERATIVE = (COOPERATIVE,)

EVERY = OF_PARTITIONS

ONLY_SHARE = (SHARE,)

SERVER_SIDE = ServedText(rule="ConsumerGroupPartitionAssignor.assign", link=BROKER_ASSIGNORS)
"""Of what the interface of a broker's assignor asks for."""

_DESIGN = "KIP-848, server-side assignors"

TABLE: tuple[Clause, ...] = (
    Clause(
        id="assign/1", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition is assigned to at most one member, and once",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=exclusive,
        served=SERVER_SIDE,
    ),
    Clause(
        id="assign/2", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition is assigned only to a member of the group that subscribes to its topic",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=only_to_subscribers, protocols=EVERY,
        # Since 4.2.0 a coordinator sends no member of a share group what it does not subscribe to
        # (KAFKA-19431: ShareGroupAssignmentBuilder.filterAssignedPartitions). Up to 4.1 it does.
        served=SERVER_SIDE, level_of_shares=Level.LIVENESS,
    ),
    Clause(
        id="assign/3", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="only partitions that exist are assigned; those of unknown topics may be given back to "
        "their owner",
        rule="KIP-429, leader 2.6", link=KIP_429, check=only_existing, protocols=EVERY,
        served=ServedText(
            rule="SubscribedTopicDescriber.numPartitions", link=BROKER_ASSIGNORS,
            sentence="only partitions that exist are assigned",
        ),
    ),
    Clause(
        id="assign/4", level=Level.LIVENESS, scope=Scope.REPLY,
        sentence="an assignment comes back for every well-formed input, within its time and memory",
        rule="KIP-429, leader 2.2", link=KIP_429, check=total, protocols=EVERY,
        served=SERVER_SIDE,
    ),
    Clause(
        id="assign/5", level=Level.SAFETY, scope=Scope.REPLY,
        sentence="subscriptions and metadata are left as they were",
        rule="ConsumerPartitionAssignor.assign", link=ASSIGNOR, check=input_untouched, protocols=EVERY,
        served=ServedText(
            rule="GroupSpec", link=BROKER_ASSIGNORS,
            sentence="subscriptions, topics and earlier assignments are left as they were",
        ),
    ),
    Clause(
        id="assign/6", level=Level.QUALITY, scope=Scope.REPEAT,
        sentence="the same input gives the same assignment, in any process and whatever was asked before",
        rule="KIP-54, algorithm", link=KIP_54, check=deterministic, protocols=EVERY,
        served=ServedText(rule=_DESIGN, link=KIP_848),
    ),
    Clause(
        id="assign/7", level=Level.QUALITY, scope=Scope.RELATION,
        sentence="the order of members, topics and claims changes nothing",
        rule="KIP-54, algorithm", link=KIP_54, check=indifferent_to_order, protocols=EVERY,
        served=ServedText(
            rule=_DESIGN, link=KIP_848,
            sentence="the order of members, topics and earlier assignments changes nothing",
        ),
    ),
    Clause(
        id="assign/8", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="every member of the group gets an assignment, possibly an empty one",
        rule="ConsumerCoordinator.onJoinComplete", link=ASSIGNOR, check=answered, protocols=CLASSIC,
    ),
    Clause(
        id="kip429/leader/3", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="only a partition that changes owner is withheld",
        rule="KIP-429, leader 2.3", link=KIP_429, check=withheld_in_vain, protocols=ONLY_COOPERATIVE,
        unless=frozenset({Promise.STOP_THE_WORLD}),
    ),
    Clause(
        id="kip429/leader/4", level=Level.SAFETY, scope=Scope.CALL,
        sentence="a partition whose owner changes is withheld until the old owner has revoked it",
        rule="KIP-429, leader 2.4", link=KIP_429, check=revoke_first, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/leader/5", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="a partition that nobody has to revoke is assigned at once",
        rule="KIP-429, leader 2.5", link=KIP_429, check=complete,
        unless=frozenset({Promise.STOP_THE_WORLD}),
        served=ServedText(
            rule=_DESIGN, link=KIP_848,
            sentence="each partition of a subscribed topic is assigned, even if it has yet to be revoked",
        ),
    ),
    Clause(
        id="kip792/claim/1", level=Level.SAFETY, scope=Scope.CALL,
        sentence="of two claims to one partition the newer generation wins",
        rule="KIP-792, proposed changes", link=KIP_792, check=newest_claim_wins, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip792/claim/2", level=Level.QUALITY, scope=Scope.RELATION,
        sentence="superseded claims cost no member a valid one and delay nothing",
        rule="KIP-792, proposed changes", link=KIP_792, check=stale_claims_ignored,
        protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/1", level=Level.LIVENESS, scope=Scope.HISTORY,
        sentence="without further events the group settles: in 2 rounds, 3 if unequal or racked, one more "
        "beside EAGER members",
        rule="KIP-429, member 3.3", link=KIP_429, check=settles, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/2", level=Level.LIVENESS, scope=Scope.HISTORY,
        sentence="once settled, a further rebalance changes nothing",
        rule="KIP-429, member 3.3", link=KIP_429, check=settled_is_final, protocols=ONLY_COOPERATIVE,
    ),
    Clause(
        id="kip429/converge/3", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="without further events the group settles in two rounds, also with unequal subscriptions "
        "and racks",
        rule="KIP-429, leader 2.4", link=KIP_429, check=settles_in_two, protocols=ONLY_COOPERATIVE,
        unless=frozenset({Promise.GRADUAL}),
    ),
    Clause(
        id="kip54/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="no member could hand a partition to one that has two fewer",
        rule="KIP-54, balance", link=KIP_54, check=balanced, promises=frozenset({Promise.BALANCED}),
        unless=frozenset({Promise.WEIGHTED}),
    ),
    Clause(
        id="kip54/sticky/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="as many valid claims are kept as the best balance allows",
        rule="KIP-54, stickiness", link=KIP_54, check=sticky, promises=frozenset({Promise.STICKY}),
        unless=frozenset({Promise.WEIGHTED}),
        served=ServedText(
            rule="KIP-54, stickiness", link=KIP_54,
            sentence="as many partitions stay with their members as the best balance allows",
        ),
    ),
    Clause(
        id="kip881/rack/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="as many partitions are with a member in a replica's rack as the balance allows",
        rule="KIP-881, proposed changes", link=KIP_881, check=rack_aligned,
        promises=frozenset({Promise.BALANCED, Promise.RACK_AWARE}), unless=frozenset({Promise.WEIGHTED}),
    ),
    Clause(
        id="range/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="the numbers of partitions of one topic differ by at most one between its subscribers",
        rule="RangeAssignor", link=ASSIGNOR, check=balanced_per_topic,
        promises=frozenset({Promise.BALANCED_PER_TOPIC}),
        served=ServedText(rule="RangeAssignor", link=BROKER_ASSIGNORS),
    ),
    Clause(
        id="range/copartition/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="equal indexes of topics with equal sizes and subscribers go to one member",
        rule="KIP-881, range", link=KIP_881, check=co_partitioned,
        promises=frozenset({Promise.CO_PARTITIONED}),
    ),
    Clause(
        id="roundrobin/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="with equal subscriptions the numbers of partitions differ by at most one",
        rule="RoundRobinAssignor", link=ASSIGNOR, check=balanced_equal,
        promises=frozenset({Promise.BALANCED_EQUAL}),
        served=ServedText(rule="RoundRobinAssignor", link=BROKER_ASSIGNORS),
    ),
    Clause(
        id="sticky/spread/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="of topics that a member holds alike, in its rack if racks matter, it keeps numbers that "
        "differ by at most two",
        rule="KAFKA-16277", link="https://issues.apache.org/jira/browse/KAFKA-16277", check=spread,
        promises=frozenset({Promise.SPREAD}),
    ),
    Clause(
        id="partial/limit/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="no member has more partitions than the limit that the target states",
        rule="promise partial", link=ASSIGNOR, check=within_capacity, protocols=EVERY,
        promises=frozenset({Promise.PARTIAL}),
        served=ServedText(rule="promise partial", link=BROKER_ASSIGNORS),
    ),
    Clause(
        id="gradual/moves/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="no more valid claims are taken from their owners in one round than the target states",
        rule="promise gradual", link=ASSIGNOR, check=few_moves, promises=frozenset({Promise.GRADUAL}),
        served=ServedText(
            rule="promise gradual", link=BROKER_ASSIGNORS,
            sentence="no more partitions are taken from their members in one round than the target states",
        ),
    ),
    Clause(
        id="weighted/idle/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="nobody is left with nothing while another could hand over one of several partitions",
        rule="promise weighted", link=ASSIGNOR, check=nobody_idle, promises=frozenset({Promise.WEIGHTED}),
        served=ServedText(rule="promise weighted", link=BROKER_ASSIGNORS),
    ),
    Clause(
        id="stop-the-world/assign/1", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="a partition that nobody has to revoke is assigned at once, unless a member revokes another",
        rule="promise stop-the-world", link=KIP_429, check=complete_once_revoked,
        promises=frozenset({Promise.STOP_THE_WORLD}),
        served=ServedText(
            rule="promise stop-the-world", link=KIP_848,
            sentence="each partition of a subscribed topic is assigned, unless a member revokes another",
        ),
    ),
    Clause(
        id="stop-the-world/revoke/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="all valid claims are kept, or none",
        rule="promise stop-the-world", link=KIP_429, check=all_given_back, protocols=ONLY_COOPERATIVE,
        promises=frozenset({Promise.STOP_THE_WORLD}),
    ),
    Clause(
        id="kip932/complete/1", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="each partition of a subscribed topic is assigned to at least one member",
        rule="KIP-932, share group assignment", link=KIP_932, check=all_shared, protocols=ONLY_SHARE,
    ),
    Clause(
        id="kip932/once/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="a partition is assigned to a member once",
        rule="KIP-932, share group assignment", link=KIP_932, check=once_each, protocols=ONLY_SHARE,
    ),
    Clause(
        id="kip932/idle/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="a member that subscribes to a topic with partitions is assigned something",
        rule="KIP-932, SimpleAssignor", link=KIP_932, check=all_busy, protocols=ONLY_SHARE,
        promises=frozenset({Promise.BALANCED}),
    ),
    Clause(
        id="kip932/balance/1", level=Level.QUALITY, scope=Scope.CALL,
        sentence="with equal subscriptions the numbers of members of two partitions differ by at most one",
        rule="KIP-932, SimpleAssignor", link=KIP_932, check=evenly_shared, protocols=ONLY_SHARE,
        promises=frozenset({Promise.BALANCED}),
    ),
    Clause(
        id="kip932/balance/2", level=Level.QUALITY, scope=Scope.CALL,
        sentence="with equal subscriptions the numbers of partitions of two members differ by at most one",
        rule="KIP-932, SimpleAssignor", link=KIP_932, check=evenly_loaded, protocols=ONLY_SHARE,
        promises=frozenset({Promise.BALANCED}),
    ),
    Clause(
        id="kip932/settled/1", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="a further assignment of the same group changes nothing",
        rule="KIP-932, SimpleAssignor", link=KIP_932, check=moves_nothing, protocols=ONLY_SHARE,
        promises=frozenset({Promise.STICKY}),
    ),
    *TASK_CLAUSES,
)  # fmt: skip

CLAUSES: dict[str, Clause] = {clause.id: clause for clause in TABLE}
if len(CLAUSES) < len(TABLE):
    raise ValueError("properties.clauses: two clauses share an id")


UNANSWERED = ("assign/4", "task/5")
"""The clauses that are broken where no answer comes: of partitions, of tasks."""


def unanswered(protocol: RebalanceProtocol) -> str:
    """Return that of ``UNANSWERED`` which is asked under ``protocol``."""
    return UNANSWERED[protocol in OF_TASKS]


def select(patterns: Sequence[str]) -> tuple[Clause, ...]:
    """Return the clauses at or below one of the paths (``kip429``, ``kip429/leader``), all when there is
    none.

    Raises ``ValueError`` naming a path that selects nothing.
    """
    for pattern in patterns:
        if not any(_below(clause.id, pattern) for clause in TABLE):
            parents = (id_.rsplit("/", up)[0] for id_ in CLAUSES for up in (1, 2))
            paths = dict.fromkeys([*CLAUSES, *parents])
            raise ValueError(unknown("clause", pattern, paths, "rebalance list clauses"))
    return tuple(c for c in TABLE if not patterns or any(_below(c.id, p) for p in patterns))


def _below(clause_id: str, pattern: str) -> bool:
    path, wanted = clause_id.split("/"), pattern.strip("/").split("/")
    return path[: len(wanted)] == wanted
