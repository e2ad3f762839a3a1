"""The clauses of a consumer group (KIP-848), and the rules that a setup of one has to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from typing import Any

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.consumer.observations import (
    Acknowledged,
    Advanced,
    BeatAnswered,
    Committed,
    Ended,
    Granted,
    Targeted,
)
from rebalance_verifier.model.group.observations import Call, Callback, Expelled, Noted, Seen, TurnedAway
from rebalance_verifier.model.group.setup import MIGRATION, Setup, letter
from rebalance_verifier.model.machine import Event
from rebalance_verifier.properties.group import checks, consumer_checks
from rebalance_verifier.properties.group.clause import CONVERGES, ProtocolClause
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


def _clause(name: str, level: Level, kind: str, source: str, sentence: str) -> ProtocolClause:
    return ProtocolClause(id=name, level=level, kind=kind, sentence=sentence, source=source)


HOLDER = _clause("epoch/holder", Level.SAFETY, "always", "KIP-848, reconciliation",
    "the coordinator holds a partition for one member at most, to be revoked or not")  # fmt: skip
ORDER = _clause("epoch/order", Level.SAFETY, "always", "KIP-848, member epoch",
    "a member's epoch is not beyond that of the target, nor that beyond the group's")  # fmt: skip
BEYOND = _clause("epoch/covers", Level.SAFETY, "always", "KIP-848, reconciliation and online migration",
    "the coordinator knows what a member reads as held by it, also after a conversion")  # fmt: skip
STAYS_UP = _clause("conversion/down", Level.SAFETY, "always", "KIP-848, online migration",
    "without a member of the consumer protocol a group is a classic one, if the policy lets it")  # fmt: skip
MIXED = _clause("conversion/disabled", Level.SAFETY, "always", "KIP-848, online migration",
    "where the policy is disabled a group has members of one protocol")  # fmt: skip
CALLED = _clause("epoch/called", Level.LIVENESS, "always", "KIP-848, group epoch",
    "another subscription calls for a new target, at the latest when its pattern is resolved")  # fmt: skip
HEARTBEATS = _clause("group/heartbeats", Level.LIVENESS, "eventually", "KIP-848, reconciliation",
    "once nothing goes wrong any more a consumer group settles within a bounded number of heartbeats "
    "that change something")  # fmt: skip

_STEPS: tuple[tuple[ProtocolClause, type | None, Check], ...] = tuple(
    (_clause(name, level, "always", source, sentence), seen, check)
    for name, level, seen, check, source, sentence in (
        ("epoch/monotone", Level.SAFETY, Advanced, consumer_checks.monotone, "KIP-848, group epoch",
         "no heartbeat takes an epoch back"),
        ("epoch/granted", Level.SAFETY, Granted, consumer_checks.granted, "KIP-848, reconciliation",
         "a partition is given to a member after the one before has revoked it"),
        ("epoch/target", Level.LIVENESS, Targeted, consumer_checks.targeted, "KIP-848, server-side assignor",
         "a target is computed of what each member subscribes to"),
        ("epoch/subscribed", Level.SAFETY, Granted, consumer_checks.subscribed, "KAFKA-19431",
         "a member is given only what it subscribes to"),
        ("epoch/acknowledged", Level.SAFETY, Acknowledged, consumer_checks.acknowledged, "KIP-848, client",
         "a client gives up a partition before it acknowledges that it has"),
        ("epoch/fenced", Level.LIVENESS, BeatAnswered, consumer_checks.fenced, "KIP-848, member epoch",
         "a member of the group is not fenced, however many answers are lost"),
        ("epoch/timely", Level.LIVENESS, Expelled, consumer_checks.timely, "KIP-848, KIP-345",
         "the rebalance timeout removes only a member that has not revoked what the timeout was set for"),
        ("conversion/returns", Level.LIVENESS, BeatAnswered, consumer_checks.comes_back, "KAFKA-17228",
         "a static member changes its protocol with a restart, and need not leave before"),
        ("member/ends", Level.LIVENESS, Ended, consumer_checks.ends, "KIP-848, error handling",
         "no error ends a client that could join again"),
        ("commit/stored", Level.LIVENESS, Committed, consumer_checks.stored, "KIP-1251",
         "a commit for what its sender holds is stored, however late it comes"),
    )
)  # fmt: skip

TABLE: tuple[ProtocolClause, ...] = (
    HOLDER,
    ORDER,
    BEYOND,
    STAYS_UP,
    MIXED,
    CALLED,
    *(clause for clause, *_ in _STEPS),
    HEARTBEATS,
)
"""The clauses that only a consumer group has."""

_SHARED: tuple[tuple[str, type | None, Check], ...] = (
    ("callback/revoked", Callback, checks.revoked),
    ("callback/lost", Callback, checks.lost),
    ("callback/owned", Callback, checks.while_owned),
    ("callback/assigned", None, checks.assigned),
    ("callback/order", None, checks.order),
    ("coordinator/full", TurnedAway, checks.turned_away),
)
"""Clauses of steps that both protocols have, with what they ask."""


def _always(setup: Setup) -> Iterator[Always]:
    slots = [letter(slot) for slot in setup.slots]
    converts = setup.protocol == MIGRATION
    if setup.max_size is not None:
        yield Always("group/size", ("crowd",), partial(consumer_checks.size, setup.max_size))
    if setup.has_patterns:
        yield Always(CALLED.id, ("foreign",), partial(consumer_checks.called, setup))
    if converts:
        yield Always(STAYS_UP.id, ("stays up",), consumer_checks.stays_up)
    if converts and setup.policy == "disabled":
        yield Always(MIXED.id, ("mixed",), consumer_checks.mixed)
    for a, b in combinations(slots, 2):
        yield Always("group/owner", (f"held {a}", f"held {b}"), partial(checks.owner, setup, a, b))
        yield Always(
            HOLDER.id, (f"records {a}", f"records {b}"), partial(consumer_checks.holder, setup, a, b)
        )
    for a, b in permutations(slots, 2):
        yield Always("group/commit", (f"commits {a}", f"held {b}"), partial(checks.commit, setup, a, b))
    for slot, a in enumerate(slots):
        yield Always(ORDER.id, (f"epochs {a}",), partial(consumer_checks.order, a))
        if converts:
            yield Always(BEYOND.id, (f"beyond {a}",), partial(consumer_checks.beyond, setup, a))
        yield Always("callback/told", (f"listener {a}",), partial(checks.listener, setup, a))
        if setup.consumers[slot].instance is not None:
            yield Always("group/instance", (f"ids {a}",), partial(checks.instance, a))


_POLLS = frozenset(
    (
        "reconcile",
        "reconcile late",
        "assign late",
        "revoke",
        "assign",
        "acknowledge",
        "lose",
        "subscribe",
        "unsubscribe",
        "close",
    )
)
"""What a client does in its poll, and what its application does with it."""


def _each_change(setup: Setup) -> Iterator[EachChange]:
    for slot, a in enumerate(map(letter, setup.slots)):
        yield EachChange("member/runs", slot, _POLLS, (f"life {a}",), partial(checks.runs, a))


def _at_step(kind: type | None, check: Check, setup: Setup, event: Event, seen: Seen) -> str | None:
    if kind is None:
        return check(setup, seen)
    return next((found for one in seen if isinstance(one, kind) and (found := check(setup, one))), None)


WITNESSES = (
    "member is UNREVOKED_PARTITIONS",
    "member is UNRELEASED_PARTITIONS",
    "partition returns to its owner",
    "heartbeat at the previous epoch",
    "known member joins again",
    "member is fenced",
    "partitions lost by a fence",
    "crash with a revocation under way",
    "failover with a revocation pending",
    "failover after a revoking member went away",
    "revocation took too long",
    "static member returns",
    "static member returns while something is unreleased",
    "static member goes away while something is unreleased",
)
"""Situations that runs of a consumer group should reach; which of them can be depends on the faults."""

PATTERN_WITNESSES = ("patterns resolved",)
"""The same where members subscribe by pattern."""

CONNECTION_WITNESSES = ("heartbeat left behind", "request of a broken connection")
"""The same on connections that break."""

MIGRATION_WITNESSES = (
    "classic generation",
    "upgrade of a group that is stable",
    "upgrade of a group that is joining",
    "upgrade of a group that is assigning",
    "upgrade of a group that is interrupted",
    "upgrade while partitions are withheld",
    "classic member in a consumer group",
    "downgrade",
    "downgrade while partitions move",
    "failover of a classic group",
    "failover of a consumer group",
    "failover after a downgrade",
    "classic member turned away",
)
"""The same for a group on its way between the protocols: each stage of a migration."""


def _shows(name: str, event: Event, seen: Seen) -> bool:
    if name == "partitions lost by a fence":
        return any(isinstance(item, Callback) and item.call is Call.LOST for item in seen)
    return Noted(name) in seen


# -- in the end ----------------------------------------------------------------------------------------


def _settles(setup: Setup, cluster: int, group: tuple[bool, bool], *views: object) -> bool:
    """Check that every client is settled, and every partition that somebody subscribes to is owned."""
    count = len(setup.consumers)
    if any(views[:count]):
        return False
    owned = wanted = 0
    for share in views[count:]:
        assert isinstance(share, tuple)
        owned, wanted = owned | share[0], wanted | share[1]
    return not (owned & ~cluster or cluster & wanted & ~owned)


def _finally(setup: Setup) -> Finally:
    slots = [letter(slot) for slot in setup.slots]
    views = ("cluster", "group", *(f"settled {a}" for a in slots), *(f"share {a}" for a in slots))
    return Finally(CONVERGES.id, views, partial(_settles, setup))


def _beats(event: Event) -> bool:
    return event.action in ("heartbeat", "heartbeat arrives", "join")


def most_heartbeats(setup: Setup) -> int:
    """Return the most heartbeats that change something and may follow the last fault.

    Each of N members joins, and acknowledges what it is given: 2 N. Each join makes a target, of which those
    who are members hear: N (N - 1) / 2. The k-th to join is given P / k partitions at most, so at most so
    many of the k - 1 before it give something up; each of these acknowledges that, and what it gave up is
    received and acknowledged: 3 heartbeats. A fault removes a member, of which the others hear, who comes
    back, hears and acknowledges, and each of the others may give something up to it. The bound is met without
    faults (``tests/explore/groups/test_consumer_scenarios.py``). Where the group goes between the protocols
    each conversion interrupts what a member is about, who begins anew with a heartbeat or a JoinGroup; the
    last fault can bring about two, up and down: 2 N, and so does each before it. Where members subscribe by
    pattern, a new target follows when that is resolved, and after each fault: N hear of it.
    """
    members, partitions = len(setup.consumers), sum(setup.topics).bit_count()
    givers = sum(min(k - 1, partitions // k) for k in range(2, members + 1))
    again = members + 1 + 3 * min(members - 1, partitions)
    most = 2 * members + members * (members - 1) // 2 + 3 * givers + again * setup.budget
    if setup.has_patterns:
        most += members * (1 + setup.budget)
    return most + 2 * members * (1 + setup.budget) if setup.protocol == MIGRATION else most


def rules(setup: Setup) -> Rules:
    """Return the rules that a consumer group of ``setup`` has to keep."""
    steps = [(clause.id, kind, check) for clause, kind, check in _STEPS]
    witnesses = (*WITNESSES, *(MIGRATION_WITNESSES if setup.protocol == MIGRATION else ()))
    witnesses += CONNECTION_WITNESSES if setup.breaks_connections else ()
    witnesses += PATTERN_WITNESSES if setup.has_patterns else ()
    counted = setup.steps == "atomic"  # else heartbeats that change nothing are steps, too
    return Rules(
        always=tuple(_always(setup)),
        each_step=tuple(
            EachStep(name, partial(_at_step, kind, check, setup)) for name, kind, check in (*_SHARED, *steps)
        ),
        each_change=tuple(_each_change(setup)),
        sometimes=tuple(Sometimes(name, partial(_shows, name)) for name in witnesses),
        finally_=(_finally(setup),),
        bounded=(Bounded(HEARTBEATS.id, _beats, most_heartbeats(setup)),) if counted else (),
    )
