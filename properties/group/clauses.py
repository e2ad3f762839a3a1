"""What must hold of a consumer group: safety, callbacks, error handling, convergence, and the witnesses.

``TABLE`` is the single place where the clauses of the protocol are registered; ``rules`` turns them into
rules for one setup. The functions see views and observations of ``model.classic``, no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, permutations
from typing import Any

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.group.observations import (
    Admitted,
    Answered,
    Call,
    Callback,
    Claimed,
    Completed,
    Decided,
    Elected,
    Expelled,
    Left,
    Noted,
    Repeated,
    Replaced,
    Seen,
    Threw,
    TurnedAway,
)
from rebalance_verifier.model.group.parts import GroupState
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION, Setup, letter
from rebalance_verifier.model.machine import Event
from rebalance_verifier.properties.group import checks, consumer
from rebalance_verifier.properties.group.clause import CONVERGES as CONVERGES
from rebalance_verifier.properties.group.clause import ProtocolClause as ProtocolClause
from rebalance_verifier.properties.group.rules import (
    Always,
    Bounded,
    EachChange,
    EachStep,
    Finally,
    Rules,
    Sometimes,
)

Check = Callable[[Setup, Any], str | None]


def _always(setup: Setup) -> Iterator[Always]:
    slots = [letter(slot) for slot in setup.slots]
    for a, b in combinations(slots, 2):
        yield Always("group/owner", (f"held {a}", f"held {b}"), partial(checks.owner, setup, a, b))
    for a, b in permutations(slots, 2):
        yield Always("group/commit", (f"commits {a}", f"held {b}"), partial(checks.commit, setup, a, b))
    if setup.max_size is not None and not setup.lowers:
        yield Always(
            "group/size", ("group", *(f"size {a}" for a in slots)), partial(checks.size, setup.max_size)
        )
    for slot, a in enumerate(slots):
        if setup.consumers[slot].instance is not None:
            yield Always("group/instance", (f"ids {a}",), partial(checks.instance, a))
            if setup.keeps_log:
                yield Always("coordinator/log", ("group", f"unlogged {a}"), partial(checks.log, a))
        yield Always("callback/told", (f"listener {a}",), partial(checks.listener, setup, a))
        yield Always("callback/fetch", (f"reads {a}",), partial(checks.fetch, setup, a))


_POLLS = frozenset(
    (
        *("join", "join late", "join lost", "join unanswered", "join left behind", "join not stored"),
        *(
            "join polls on",
            "receive",
            "receive join",
            "receive sync",
            "receive error",
            "sync late",
            "sync lost",
        ),
        *("sync left behind", "complete", "callback late", "callback throws", "callback again", "prepare"),
        *("listener throws", "completes again", "polls on", "commit done", "commit refused", "slow commit"),
    )
)
"""What a consumer does in its poll, in both granularities."""

_CALLS = frozenset(("close", "unsubscribe", "unsubscribe midway", "subscribe", "resubscribe", "enforce"))
"""What an application does with its consumer."""

_STAYS = frozenset(("close", "unsubscribe", "unsubscribe midway", "max poll", "poll interval"))
"""By what a dynamic member leaves."""


def _each_change(setup: Setup) -> Iterator[EachChange]:
    for slot, a in enumerate(map(letter, setup.slots)):
        about = partial(EachChange, who=slot)
        yield about(
            clause="member/runs", actions=_POLLS | _CALLS | {"refresh", "pause", "hang", "leave lost"},
            views=(f"life {a}",), breach=partial(checks.runs, a),
        )  # fmt: skip
        yield about(
            clause="member/reads", actions=_POLLS, views=(f"reads {a}", f"owned {a}"),
            breach=partial(checks.reads_on, setup, a),
        )  # fmt: skip
        yield about(
            clause="member/enforce", actions=frozenset({"enforce"}), views=(f"wants {a}",),
            breach=partial(checks.enforced, a),
        )  # fmt: skip
        if setup.consumers[slot].instance is not None:
            yield about(
                clause="leave/static", actions=_STAYS, views=(f"ids {a}",), breach=partial(checks.stays, a)
            )


_STEPS: tuple[tuple[ProtocolClause, type | None, Check], ...] = tuple(
    (ProtocolClause(id=name, level=level, kind="always", sentence=sentence, source=source), seen, check)
    for name, level, seen, check, source, sentence in (
        ("leader/stale", Level.SAFETY, Decided, checks.stale, "KIP-792",
         "a claim never wins over a newer claim on the same partition"),
        ("leader/withhold", Level.SAFETY, Decided, checks.withhold, "KIP-429, consumer group changes",
         "a partition that a member still holds is not granted to another member in the same round"),
        ("leader/grant", Level.SAFETY, Decided, checks.grant, "KIP-54",
         "a partition is granted once, and only to a subscriber"),
        ("leader/label", Level.SAFETY, Claimed, checks.label, "KIP-792, proposed changes",
         "a claim says in which generation it was assigned"),
        ("callback/revoked", Level.SAFETY, Callback, checks.revoked, "KIP-429, ConsumerRebalanceListener",
         "COOPERATIVE revokes what goes and never nothing, EAGER revokes everything"),
        ("callback/lost", Level.SAFETY, Callback, checks.lost, "KIP-429, onPartitionsLost",
         "onPartitionsLost is called where the membership is gone, and only there"),
        ("callback/owned", Level.SAFETY, Callback, checks.while_owned, "KIP-429, ConsumerRebalanceListener",
         "partitions are still owned while they are revoked"),
        ("callback/assigned", Level.SAFETY, None, checks.assigned, "KIP-429, onPartitionsAssigned",
         "a completed rebalance ends with onPartitionsAssigned of what is new, even if that is nothing"),
        ("callback/order", Level.SAFETY, None, checks.order, "KIP-429, ConsumerRebalanceListener",
         "what goes is revoked before what comes is assigned"),
        ("callback/generation", Level.SAFETY, Callback, checks.generation, "KAFKA-8104, KAFKA-9741",
         "in a callback the group metadata shows the generation that the callback belongs to"),
        ("callback/rejoin", Level.LIVENESS, Completed, checks.rejoin, "KIP-429, consumer group changes",
         "a COOPERATIVE member that revoked rejoins"),
        ("leave/callback", Level.SAFETY, Left, checks.leave, "KIP-429, KAFKA-8972",
         "a member that leaves has called its listener before"),
        ("leave/sent", Level.LIVENESS, Left, checks.leave_sent, "KIP-429; librdkafka 1.7.0",
         "a dynamic member that leaves says so to the coordinator"),
        ("error/retriable", Level.SAFETY, Answered, checks.retriable, "KAFKA-13214, KAFKA-14016",
         "an error that can be retried costs no membership"),
        ("error/membership", Level.SAFETY, Answered, checks.membership, "KIP-429, KAFKA-12983",
         "a member that hears that its membership is gone gives it up and rejoins"),
        ("error/old", Level.SAFETY, Answered, checks.old, "KAFKA-9823",
         "an answer to an older generation does not touch the present one"),
        ("error/id", Level.LIVENESS, Answered, checks.keeps_id, "KAFKA-13419",
         "ILLEGAL_GENERATION costs no member id"),
        ("poll/throws", Level.SAFETY, Threw, checks.throws, "KIP-429",
         "poll throws nothing that no application can handle"),
        ("coordinator/admit", Level.SAFETY, Admitted, checks.admit, "KIP-394",
         "a member id is admitted after its owner has shown it"),
        ("coordinator/full", Level.LIVENESS, TurnedAway, checks.turned_away, "KIP-389, KAFKA-20601",
         "a full group turns away nobody who is a member of it"),
        (
            "coordinator/vote",
            Level.SAFETY,
            Elected, checks.vote,
            "ClassicGroup.selectProtocol",
            "every member supports the protocol of its generation, and none has more votes",
        ),
        ("coordinator/repeat", Level.LIVENESS, Repeated, checks.repeat, "KAFKA-12898",
         "a follower that repeats itself starts no rebalance"),
        ("coordinator/static", Level.SAFETY, Replaced, checks.static, "KIP-345, KAFKA-9801, KAFKA-12759",
         ("a static member that returns to a settled group starts a rebalance only if it subscribes to "
         "something else or had to revoke, and one that returns during a rebalance is part of it")),
        ("coordinator/leader", Level.LIVENESS, Replaced, checks.leader_told, "KIP-814",
         "a static leader that returns learns that it leads"),
        ("coordinator/keep", Level.SAFETY, Expelled, checks.keep, "KIP-345, KAFKA-8220",
         "a static member that is away loses its place by its session timeout only"),
    )
)  # fmt: skip


# -- in the end ----------------------------------------------------------------------------------------


def _settles(setup: Setup, cluster: int, group: GroupState, *views: object) -> bool:
    """Check that every member is settled, every subscribed partition is owned once, and somebody watches the
    metadata of each topic."""
    count = len(setup.consumers)
    if any(views[:count]) or group not in (GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD):
        return False
    owned = wanted = watched = 0
    blind = False
    for share in views[count:]:
        assert isinstance(share, tuple)
        owned, wanted = owned | share[0], wanted | share[1]
        if share[1] and share[0] & ~cluster:
            return False  # owns what does not exist any more
        watched |= share[3] if share[2] == cluster & share[3] else 0
        blind = blind or share[4]
    if setup.has_patterns:  # that a topic comes is seen by whoever subscribes by pattern
        wanted &= setup.parts(setup.matching((1 << len(setup.topics)) - 1, cluster))
    return not cluster & wanted & ~owned and (blind or not wanted & ~watched)


def _finally(setup: Setup) -> Finally:
    slots = [letter(slot) for slot in setup.slots]
    views = ("cluster", "group", *(f"settled {a}" for a in slots), *(f"share {a}" for a in slots))
    return Finally(CONVERGES.id, views, partial(_settles, setup))


def _rests(setup: Setup) -> Iterator[Finally]:
    """Yield the goal of an application of Kafka Streams: no process has anything left to do."""
    if setup.warmups:
        views = tuple(f"unfinished {letter(slot)}" for slot in setup.slots)
        yield Finally(PROBING_ENDS.id, views, lambda *unfinished: not any(unfinished))


def _round(event: Event) -> bool:
    return event.action == "join phase ends"


ROUNDS = ProtocolClause(
    id="group/rounds", level=Level.LIVENESS, kind="eventually",
    sentence="once nothing goes wrong any more the group settles within a bounded number of rebalances",
    source="KIP-429",
)  # fmt: skip

PROBING_ENDS = ProtocolClause(
    id="streams/probing", level=Level.LIVENESS, kind="eventually",
    sentence="once nothing goes wrong any more probing rebalances end, and every task runs where it belongs",
    source="KIP-441",
)  # fmt: skip

WITNESSES = (
    "follow-up rebalance",
    "owner crashed between join and sync",
    "stale claim seen by a leader",
    "cooperative assignment in a mixed group",
    "partitions lost",
    "static member replaced",
    "silent static member",
    "static leader skips the assignment",
    "failover between join and sync",
    "reset between SyncGroup and callback",
    "SyncGroup response after a reset",
    "late answer of an old generation",
    "enforceRebalance swallowed",
    "assignment of an old subscription ignored",
    "task moves to its warm-up",
)
"""Situations that runs should reach, by name; which of them a setup can reach depends on its faults."""


def _shows(name: str, event: Event, seen: Seen) -> bool:
    if name == "partitions lost":
        return any(isinstance(item, Callback) and item.call is Call.LOST for item in seen)
    if name == "static member replaced":
        return any(isinstance(item, Replaced) for item in seen)
    return Noted(name) in seen


def _at_step(kind: type | None, check: Check, setup: Setup, event: Event, seen: Seen) -> str | None:
    """Return what ``check`` says first of what was seen of one ``kind``, or of all together where that is
    None."""
    if kind is None:
        return check(setup, seen)
    return next((found for one in seen if isinstance(one, kind) and (found := check(setup, one))), None)


_STATES = tuple(
    ProtocolClause(id=name, level=Level.SAFETY, kind="always", sentence=sentence, source=source)
    for name, sentence, source in (
        ("group/owner", "no two members of the group own the same partition", "KIP-429"),
        (
            "group/commit",
            "a commit for a partition that another member owns is refused, however late it comes",
            "KIP-429, KIP-447",
        ),
        ("group/size", "no more members than group.max.size take part in a generation", "KIP-389"),
        ("group/instance", "one group.instance.id belongs to one member of the group", "KIP-345"),
        ("callback/told", "the callbacks of the listener add up to what the consumer owns", "KIP-429"),
        ("callback/fetch", "an EAGER member reads nothing after its last commit", "KAFKA-14196"),
        (
            "coordinator/log",
            "while the group is stable its log knows the member id of every static member",
            "KAFKA-10284",
        ),
    )
)

_CHANGES = tuple(
    ProtocolClause(id=name, level=level, kind="always", sentence=sentence, source=source)
    for name, level, sentence, source in (
        ("member/runs", Level.SAFETY, "only a process that runs takes part", "KafkaConsumer.poll"),
        ("member/reads", Level.SAFETY, "a COOPERATIVE member reads on what it keeps while it rebalances",
         "KIP-429, motivation"),
        ("member/enforce", Level.LIVENESS, "enforceRebalance has an effect at the next poll", "KIP-568"),
        ("leave/static", Level.SAFETY,
         "a static member that closes, unsubscribes or polls too late stays in the group", "KIP-345"),
    )
)  # fmt: skip

TABLE: tuple[ProtocolClause, ...] = (
    *(*_STATES, *(clause for clause, *_ in _STEPS), *_CHANGES),
    *(CONVERGES, ROUNDS, PROBING_ENDS),
    *consumer.TABLE,
)
"""All clauses of the protocols, those that only consumer groups of KIP-848 have last."""

CLAUSES: dict[str, ProtocolClause] = {clause.id: clause for clause in TABLE}


def most_rounds(setup: Setup) -> int:
    """Return the most rebalances that may follow the last fault.

    Each of N members that joins starts one. In COOPERATIVE a partition that moves takes one more, and with P
    partitions at most min(N, P) - 1 of the joins have to wait for that. Each earlier fault can leave behind
    a member id whose removal starts one, a member that comes back and starts one, and in COOPERATIVE one
    that moves partitions again. Equal and unequal subscriptions, racks and static members change nothing
    in this: the assignor settles who gets what in one round (``model/assignors/flow.py``), and the round
    after it only hands over. The bound is met in small groups
    (``tests/explore/groups/test_named_scenarios.py``). Where members subscribe by pattern, each sees by
    itself that a topic comes or goes, and starts one.
    """
    members, partitions = len(setup.consumers), sum(setup.topics).bit_count()
    each_sees = members * setup.budget if setup.has_patterns else 0
    if all(stage.eager for consumer in setup.consumers for stage in consumer.stages):
        return members + 2 * setup.budget + each_sees
    return members + min(members, partitions) - 1 + (3 if members > 1 else 2) * setup.budget + each_sees


def _bounded(setup: Setup) -> Iterator[Bounded]:
    """Yield how many rebalances there may be; Kafka Streams probes until its stores have caught up, however
    long that takes."""
    if not setup.warmups:
        yield Bounded(ROUNDS.id, _round, most_rounds(setup))


def _classic(setup: Setup) -> Rules:
    """Return the rules of a group of the classic protocol."""
    return Rules(
        always=tuple(_always(setup)),
        each_step=tuple(
            EachStep(clause.id, partial(_at_step, kind, check, setup)) for clause, kind, check in _STEPS
        ),
        each_change=tuple(_each_change(setup)),
        sometimes=tuple(Sometimes(name, partial(_shows, name)) for name in WITNESSES),
        finally_=(_finally(setup), *_rests(setup)),
        bounded=tuple(_bounded(setup)),
    )


_RULES: Mapping[str, Callable[[Setup], Rules]] = {
    CLASSIC: _classic,
    CONSUMER: consumer.rules,
    MIGRATION: consumer.rules,
}


def rules(setup: Setup) -> Rules:
    """Return the rules that the group of ``setup`` has to keep."""
    return _RULES[setup.protocol](setup)
