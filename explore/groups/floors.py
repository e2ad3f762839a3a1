"""Which witnesses a search of a group owes: without them it was too tame to be a verdict.

What a group can show follows from its faults. A complete search that does not show what is certain to
come up in such a group is inconclusive; of a rarer situation it is only said that it was not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.consumer.conversion import may_downgrade, may_upgrade
from rebalance_verifier.model.group.parts import Topics
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION, Setup
from rebalance_verifier.model.values import RebalanceProtocol


def _first(setup: Setup, *, eager: bool) -> bool:
    return any(consumer.stages[0].eager is eager for consumer in setup.consumers)


def _room(setup: Setup) -> int:
    return min(len(setup.consumers), setup.max_size or len(setup.consumers))


def _static(setup: Setup) -> bool:
    return any(consumer.instance is not None for consumer in setup.consumers)


def _fault(*kinds: str) -> Callable[[Setup], bool]:
    return lambda setup: setup.budget >= len(kinds) and all(kind in setup.faults for kind in kinds)


def _two_kinds(setup: Setup) -> bool:
    """EAGER and COOPERATIVE members that have a cooperative assignor in common."""
    lists = [consumer.stages[0].assignors for consumer in setup.consumers]
    common = [name for name in lists[0] if all(name in other for other in lists)]
    cooperative = any(RebalanceProtocol.COOPERATIVE in reference(name).protocols for name in common)
    return cooperative and _first(setup, eager=True) and _first(setup, eager=False)


def _shared(setup: Setup) -> int:
    """Return how many partitions every member subscribes to at first."""
    topics = Topics(-1)
    for consumer in setup.consumers:
        named, pattern = consumer.choices[0]
        topics = Topics(topics & (named | pattern))
    return (setup.exist & setup.parts(topics)).bit_count()


def _hands_over(setup: Setup) -> bool:
    """Check whether a member has to give something up to another."""
    return _room(setup) > 1 and _shared(setup) > 1


def _shrinks(setup: Setup) -> bool:
    return any(
        other != own and other & own == other
        for consumer in setup.consumers
        for own, *others in [consumer.subscriptions]
        for other in others
    )


DUE: Mapping[str, Callable[[Setup], bool]] = {
    "follow-up rebalance": lambda s: _first(s, eager=False) and _hands_over(s),
    "owner crashed between join and sync": _fault("crash"),
    "cooperative assignment in a mixed group": lambda s: _two_kinds(s) and _room(s) > 1,
    "partitions lost": _fault("max poll"),
    "static member replaced": lambda s: _static(s) and _fault("crash")(s),
    "silent static member": lambda s: _static(s) and _room(s) > 1 and _fault("crash")(s),
    "static leader skips the assignment": lambda s: _static(s) and _fault("crash")(s),
    "failover between join and sync": _fault("failover"),
    "SyncGroup response after a reset": _fault("max poll"),
    "reset between SyncGroup and callback": _fault("max poll", "slow network"),
    "late answer of an old generation": lambda s: _room(s) > 1 and _fault("late request")(s),
    "enforceRebalance swallowed": _fault("enforce"),
    "assignment of an old subscription ignored": lambda s: _shrinks(s) and _fault("resubscribe")(s),
    "task moves to its warm-up": lambda s: s.warmups > 0 and _room(s) > 1 and _shared(s) > 1,
}
"""Witness -> whether a group is certain to show it when all of it is explored."""


DUE_IN_CONSUMER_GROUPS: Mapping[str, Callable[[Setup], bool]] = {
    "member is UNREVOKED_PARTITIONS": _hands_over,
    "member is UNRELEASED_PARTITIONS": _hands_over,
    "heartbeat at the previous epoch": lambda s: _room(s) > 1 and _fault("disconnect")(s),
    "known member joins again": _fault("disconnect"),
    "member is fenced": _fault("pause"),
    "partitions lost by a fence": _fault("pause"),
    "crash with a revocation under way": _fault("crash", "slow callback"),
    "failover with a revocation pending": lambda s: _hands_over(s) and _fault("failover")(s),
    "failover after a revoking member went away": lambda s: (
        _static(s) and _hands_over(s) and _fault("failover", "close")(s)
    ),
    "static member returns while something is unreleased": lambda s: (
        _static(s) and _hands_over(s) and _fault("close")(s)
    ),
    "static member goes away while something is unreleased": lambda s: (
        _static(s) and _hands_over(s) and _fault("close")(s)
    ),
    "revocation took too long": lambda s: _hands_over(s) and _fault("slow member")(s),
    "static member returns": lambda s: _static(s) and _fault("close")(s),
    "patterns resolved": lambda s: s.has_patterns,
    "heartbeat left behind": _fault("left behind"),
    "request of a broken connection": _fault("left behind"),
}
"""The same for a consumer group (KIP-848)."""


def _converts(setup: Setup) -> bool:
    """Check whether a member of the consumer protocol may come to a group of the classic one."""
    return _room(setup) > 1 and may_upgrade(setup)


def _goes_back(setup: Setup) -> bool:
    """Check whether a member of the classic protocol may be left alone by one of the other."""
    return _room(setup) > 1 and may_downgrade(setup)


DUE_IN_MIGRATIONS: Mapping[str, Callable[[Setup], bool]] = {
    "classic member in a consumer group": lambda s: _room(s) > 1 and s.policy != "disabled",
    "upgrade of a group that is stable": _converts,
    "upgrade of a group that is joining": _converts,
    "upgrade of a group that is assigning": _converts,
    "classic member turned away": lambda s: _room(s) > 1 and s.policy == "disabled",
    "downgrade": lambda s: _goes_back(s) and _fault("close")(s) and not _static(s),
    "downgrade while partitions move": lambda s: (
        _goes_back(s) and _hands_over(s) and _fault("close")(s) and not _static(s)
    ),
    "failover of a classic group": _fault("failover"),
    "failover of a consumer group": _fault("failover"),
    "failover after a downgrade": lambda s: _goes_back(s) and _fault("failover", "close")(s),
}
"""The same for a group on its way between the protocols."""


_OWED = {CLASSIC: DUE, CONSUMER: DUE_IN_CONSUMER_GROUPS, MIGRATION: DUE_IN_MIGRATIONS}
"""By the group protocol."""


def due(setup: Setup) -> tuple[str, ...]:
    """Return the witnesses that a complete search of ``setup`` owes."""
    return tuple(name for name, certain in _OWED[setup.protocol].items() if certain(setup))
