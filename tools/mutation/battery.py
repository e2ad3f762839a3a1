"""The groups on which a mutant is tried: small ones that are clean, and ones with a mistake to find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_verifier.model.classic.group import FAULTS as ALL
from rebalance_verifier.properties.group.clauses import CONVERGES

COOPERATIVE, RANGE, STICKY = ("cooperative-sticky",), ("range",), ("sticky",)
BOTH = ("range", "cooperative-sticky")


@dataclass(frozen=True)
class MutationCase:
    """One small group: ``build`` makes its setup from the module ``setup`` of the (mutated) model.

    ``finds``: the clause that a mistake which is switched on in it has to break; "" where none is.
    """

    name: str
    build: Callable[[Any], Any]
    finds: str = ""


def group(
    names: Any,
    lists: Sequence[Sequence[str]],
    partitions: int | Sequence[int] = 1,
    *,
    faults: Sequence[str] = (),
    budget: int = 0,
    then: Sequence[Sequence[str]] = (),
    subscriptions: Sequence[Sequence[int]] = (),
    instances: Sequence[int | None] = (),
    racks: Sequence[str | None] = (),
    exist: int | None = None,
    on: Sequence[str] = (),
    switches: Sequence[str] = (),
    version: int = 3,
    tells: bool = True,
    broker: Sequence[str] = (),
    **more: Any,
) -> Any:
    """A setup: consumer ``i`` has the assignors ``lists[i]``, and after a bounce those of ``then``.

    ``partitions``: how many each topic can have. ``on``: decisions of every client.
    """
    sizes = [partitions] if isinstance(partitions, int) else partitions
    topics, first = [], 0
    for size in sizes:
        topics.append(((1 << size) - 1) << first)
        first += size
    consumers = tuple(
        names.Consumer(
            stages=tuple(
                names.ConsumerConfig(
                    assignors=tuple(assignors),
                    decisions=frozenset(on),
                    switches=tuple(switches),
                    version=version,
                    tells=tells,
                )
                for assignors in (listed, *then)
            ),
            subscriptions=tuple(subscriptions[i] if subscriptions else [(1 << len(sizes)) - 1]),
            instance=instances[i] if instances else None,
            rack=racks[i] if racks else None,
        )
        for i, listed in enumerate(lists)
    )
    there = (1 << first) - 1 if exist is None else exist
    return names.Setup(
        consumers=consumers,
        topics=tuple(topics),
        exist=there,
        faults=tuple(faults),
        budget=budget,
        coordinator=frozenset(broker),
        **more,
    )


def case(name: str, *args: Any, finds: str = "", **more: Any) -> MutationCase:
    """A case by the arguments of ``group``."""
    return MutationCase(name, lambda names: group(names, *args, **more), finds)


def bug(decision: str, finds: str, base: str, *, broker: bool = False) -> MutationCase:
    """The group ``base`` with one mistake switched on."""
    lists, partitions, more = BASES[base]
    where = {"broker" if broker else "on": (decision,)}
    return case(f"{decision}, {base}", lists, partitions, finds=finds, **more, **where)


ALONE, TWO = (COOPERATIVE,), (COOPERATIVE, COOPERATIVE)
BASES: dict[str, tuple[Sequence[Sequence[str]], int | Sequence[int], dict[str, Any]]] = {
    "1 x 1": (ALONE, 1, {"faults": ALL, "budget": 2}),
    "2 x 1": (TWO, 1, {"faults": ALL, "budget": 1}),
    "range": ((RANGE, RANGE), 2, {"faults": ALL, "budget": 1}),
    "static": (TWO, 1, {"faults": ALL, "budget": 1, "instances": (1, 2)}),
    "limit of one": (TWO, 1, {"faults": ALL, "budget": 1, "max_size": 1}),
    "one member": (ALONE, 1, {"faults": ALL, "budget": 1}),
    "one static member": (ALONE, 1, {"faults": ALL, "budget": 1, "instances": (1,)}),
    "slow commits": (TWO, 1, {"faults": ("crash", "slow commit", "hang"), "budget": 1}),
    "slow static commits": (
        *(TWO, 1),
        {"faults": ("session timeout", "slow commit"), "budget": 2, "instances": (1, 2)},
    ),
    "subscriptions": (
        *(TWO, (1, 1)),
        {
            "faults": ("resubscribe", "crash"),
            "budget": 1,
            "subscriptions": ((3, 1), (3, 2)),
            "instances": (1, 2),
        },
    ),
    "two topics": (TWO, (1, 1), {"faults": ("resubscribe",), "budget": 1, "subscriptions": ((3, 1), (3, 2))}),
}

CLEAN = (
    case("1 x 1, every fault, budget 2", ALONE, 1, faults=ALL, budget=2),
    case("2 x 2, one to come, every fault", TWO, 2, faults=ALL, budget=1, exist=1),
    case("3 x 2", [COOPERATIVE] * 3, 2),
    case("static members, every fault", TWO, 1, faults=ALL, budget=1, instances=(1, 2)),
    case("static members, 2 x 2", TWO, 2, faults=("crash", "session timeout", "failover"), budget=1,
         instances=(1, 2)),
    case("static members, slow commits", TWO, 1, faults=("session timeout", "slow commit"), budget=2,
         instances=(1, 2)),
    case("range, every fault", (RANGE, RANGE), 1, faults=ALL, budget=1),
    case("sticky", (STICKY, STICKY), 2, faults=("crash", "topic shrinks", "slow network", "unsubscribe"),
         budget=1),
    case("two topics, resubscription", TWO, (1, 1), faults=("resubscribe", "topic grows"), budget=1, exist=1,
         subscriptions=((3, 1), (3, 2))),
    case("one topic each, resubscription", TWO, (1, 1), faults=("resubscribe", "topic deleted", "crash"),
         budget=1, subscriptions=((3, 1), (3, 2)), instances=(1, None)),
    case("mixed lists", (BOTH, COOPERATIVE), 1, faults=("crash", "failover", "close"), budget=1),
    case("a static member comes and goes", ALONE, 1, faults=("slow network", "close", "unsubscribe", "crash"),
         budget=2, instances=(1,)),
    case("lists that exclude each other", (BOTH, RANGE, COOPERATIVE), 1),
    case("first bounce", (RANGE, RANGE), 1, then=(BOTH,)),
    case("second bounce", (BOTH, BOTH), 1, then=(COOPERATIVE,)),
    case("double bounce", (RANGE, RANGE), 1, then=(BOTH, COOPERATIVE)),
    case("limit of one", TWO, 1, faults=ALL, budget=1, max_size=1),
    case("limit of two", [COOPERATIVE] * 3, 1, max_size=2),
    case("fine steps", TWO, 1, faults=("crash",), budget=1, steps="fine"),
)  # fmt: skip
"""Groups in which every clause holds but those that the model itself breaks, which are not asked there."""

BUGS = (
    bug("claims_always_empty", "group/owner", "two topics"),
    bug("claims_always_empty", "group/commit", "two topics"),
    bug("keep_owned_on_sync_rip", "leader/label", "two topics"),
    bug("unsorted_metadata", "coordinator/repeat", "2 x 1"),
    bug("join_sent_after_reset", "group/owner", "slow static commits"),
    bug("clear_member_id_on_illegal_generation", "error/id", "static"),
    bug("reset_on_retriable", "error/retriable", "1 x 1"),
    bug("reset_on_sync_rip", "error/retriable", "two topics"),
    bug("no_sent_generation_check", "error/old", "1 x 1"),
    bug("commit_error_no_rejoin", "error/membership", "1 x 1"),
    bug("no_rejoin_after_revoke", "callback/rejoin", "two topics"),
    bug("protocol_flag_inconsistent", "callback/revoked", "range"),
    bug("protocol_flag_inconsistent", "leader/withhold", "range"),
    bug("no_leave_on_unsubscribe", "leave/sent", "1 x 1"),
    bug("assign_before_revoke_cb", "callback/owned", "two topics"),
    bug("skip_empty_assigned_cb", "callback/assigned", "two topics"),
    bug("assigned_cb_repeated", "callback/assigned", "two topics"),
    bug("lost_as_revoked", "callback/lost", "1 x 1"),
    bug("clear_before_leave_prepare", "leave/callback", "1 x 1"),
    bug("no_snapshot_before_callback", "callback/generation", "1 x 1"),
    bug("metadata_after_revoke", "callback/generation", "two topics"),
    bug("fetch_while_pending_revocation", "callback/fetch", "range"),
    bug("eager_revoke_keeps_last_assigned", "callback/told", "limit of one"),
    bug("sync_load_error_raw", "poll/throws", "1 x 1", broker=True),
    bug("pending_sync_evicts_static", "coordinator/keep", "static", broker=True),
    bug("evict_static_on_rebalance_timeout", "coordinator/keep", "static", broker=True),
    bug("static_leader_returns_as_follower", "coordinator/leader", "static", broker=True),
    bug("static_replace_in_completing_no_rebalance", "coordinator/static", "static", broker=True),
    bug("static_replace_only_stable", "group/instance", "static", broker=True),
    bug("ghost_on_retry", "coordinator/admit", "1 x 1", broker=True),
    bug("leave_on_empty_assignment", CONVERGES.id, "one member"),
    bug("offset_fetch_not_resumed", CONVERGES.id, "one member"),
    bug("static_leader_returns_as_follower", CONVERGES.id, "one static member", broker=True),
    bug("prepare_commit_never_done", CONVERGES.id, "slow commits"),
    bug("claims_always_empty", CONVERGES.id, "slow commits"),
    bug("no_rejoin_after_revoke", CONVERGES.id, "subscriptions"),
    bug("leader_watches_own_topics", CONVERGES.id, "subscriptions"),
    bug("max_size_counts_members", "group/size", "limit of one", broker=True),
)
