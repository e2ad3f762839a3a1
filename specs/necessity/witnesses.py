"""For every action how a run comes to it, or why none does.

A run is given by its actions alone; the solver finds the consumers and the rest, the explicit evaluator
checks what it found: ``specs.necessity.vacuity``. ``python -m tools.witness_search`` finds them anew; a few
are shorter here.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance.specs.logic.language import State, Term
from rebalance.specs.protocol.vocabulary import (
    ANSWER,
    DOWN,
    FATAL,
    ID_REQUIRED,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_PARKED,
    JOIN_REFUSED,
    JOINING,
    NO_STRAY,
    SYNC,
    SYNC_OK,
    SYNC_PARKED,
    VOCABULARY,
    C,
    M,
    N,
    none,
    of,
    static,
)
from z3 import And, Exists, Implies, Not, Or

WITNESSES: Mapping[str, str] = {
    "failover": "",
    "failover_while_loading": "",
    "group_expires": "",
    "reconfigure": "",
    "start": "",
    "topics_change": "",
    "close": "start",
    "crash": "start",
    "hang": "start",
    "partitions_lost": "start",
    "pause": "start",
    "resubscribe": "start",
    "unsubscribe": "start",
    "join": "partitions_lost",
    "join_with_any_claim": "partitions_lost",
    "refresh": "start topics_change",
    "resume": "pause",
    "subscribe": "unsubscribe",
    "disconnect": "join",
    "group_full": "join",
    "join_of_static": "join",
    "join_refused_without_id": "join",
    "append_fails": "join_of_static",
    "fails": "group_full",
    "id_given": "join_refused_without_id",
    "join_phase_ends": "join_of_static",
    "lost": "join crash",
    "session_lost": "join_of_static",
    "try_again": "join failover_while_loading",
    "enforce_rebalance": "id_given",
    "join_answered": "join_phase_ends",
    "join_of_removed": "session_lost",
    "join_phase_ends_empty": "session_lost",
    "rebalance_timeout": "append_fails",
    "session_expires": "append_fails",
    "told_to_rejoin": "append_fails",
    "too_slow_to_join": "append_fails",
    "too_slow_to_sync": "join_phase_ends",
    "expelled_before": "join_of_removed",
    "hang_in_assign": "join_answered",
    "join_with_given_id": "id_given join",
    "lead": "join_answered",
    "lead_in_vain": "join_answered",
    "sync_timeout": "join_phase_ends disconnect",
    "heartbeat_late": "lead",
    "join_of_unknown": "id_given session_lost join",
    "lead_too_late": "join_answered too_slow_to_sync",
    "leader_syncs": "lead",
    "poll_too_late": "lead",
    "static_replaced": "join_of_static disconnect try_again join",
    "expelled": "join_of_unknown",
    "heartbeat_of_unknown": "lead session_lost",
    "join_again": "lead_in_vain join",
    "join_inconsistent": (
        "reconfigure start partitions_lost join join_of_static append_fails told_to_rejoin join"
    ),
    "join_of_member": "lead_in_vain join",
    "late_request_accepted": "heartbeat_late",
    "stray_lost": "heartbeat_late",
    "sync_answered": "leader_syncs",
    "sync_of_unknown": "lead session_lost",
    "commit_late": "sync_answered",
    "complete_of_old_subscription": "sync_answered",
    "late_request_of_unknown": "lead session_lost heartbeat_late",
    "partitions_assigned": "sync_answered",
    "sync_answer_too_late": "leader_syncs poll_too_late",
    "complete_after_reset": "sync_answered poll_too_late",
    "late_answer_expels": "late_request_of_unknown",
    "partitions_revoked_to_join": "complete_of_old_subscription",
    "late_answer": "late_request_of_unknown heartbeat_of_unknown",
    "late_request_in_rebalance": "heartbeat_late disconnect try_again join join_of_member",
    "heartbeat_in_rebalance": (
        "join_of_static start join_phase_ends join_answered lead leader_syncs sync_answered "
        "partitions_lost join join_of_static"
    ),
    "static_returns": "complete_after_reset partitions_lost join",
    "follow": "join_with_given_id start partitions_lost join join_of_static join_phase_ends join_answered",
    "late_request_of_fenced": "sync_of_unknown heartbeat_late expelled partitions_lost join join_of_static",
    "late_request_of_old": (
        "complete_of_old_subscription heartbeat_late partitions_revoked_to_join join join_of_member "
        "join_phase_ends"
    ),
    "sync_of_settled": "static_returns follow",
    "sync_parks": "follow",
    "heartbeat_of_old": (
        "partitions_revoked_to_join join join_of_member join_phase_ends join_answered lead "
        "failover_while_loading"
    ),
    "sync_in_rebalance": "follow too_slow_to_sync",
    "sync_of_old": (
        "partitions_revoked_to_join join join_of_member join_phase_ends join_answered "
        "failover_while_loading lead_too_late"
    ),
    "join_answer_too_late": "late_request_of_old join_answered late_answer_expels",
    "partitions_revoked": (
        "leader_syncs resubscribe sync_answered partitions_assigned partitions_revoked_to_join join "
        "join_of_member join_phase_ends join_answered lead leader_syncs sync_answered"
    ),
    "sync_parked_answered": "sync_parks join_answered lead leader_syncs",
    "sync_parked_refused": "sync_parks too_slow_to_sync",
}  # fmt: skip
"""Actions from which the action is possible; the first of them begins where its own run ends, and so on."""


def path_to(action: str, witnesses: Mapping[str, str] = WITNESSES) -> tuple[str, ...]:
    """The whole run, without the action itself.

    >>> path_to("join")
    ('start', 'partitions_lost')
    """
    first, *rest = witnesses[action].split() or [""]
    return (*path_to(first, witnesses), first, *rest) if first else ()


def _lemmas(s: State) -> dict[str, Term]:
    recorded = And(static(of(M)), s.member(N), of(M) == of(N))
    kinds = (JOIN, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK)
    under_way = And(s.names(M), Or(*(s.wire(of(M)) == kind for kind in kinds)))
    fenced = And(s.stray(C) == ANSWER, s.stray_error(C) == FATAL)
    return {
        "a JoinGroup without id is of one that has none": Implies(
            s.wire(C) == JOIN_NEW, Not(s.identified(C))
        ),
        "an id is given to a JoinGroup": Implies(s.error(C) == ID_REQUIRED, s.wire(C) == JOIN_REFUSED),
        "an id is waited for": Implies(
            And(s.life(C) != DOWN, Or(s.wire(C) == JOIN_NEW, s.error(C) == ID_REQUIRED)),
            And(s.state(C) == JOINING, Not(s.identified(C))),
        ),
        "what is late has a generation": Implies(s.stray(C) != NO_STRAY, s.stray_generation(C) != none),
        "an instance is given no id": Not(And(static(C), s.error(C) == ID_REQUIRED)),
        "no instance is pending": Not(And(s.pending(M), static(of(M)))),
        "one record of an instance": Implies(And(recorded, s.member(M)), M == N),
        "the record is of the id in use": Implies(And(recorded, s.id(M)), M == N),
        "the record is of the id under way": Implies(And(recorded, under_way), M == N),
        "only an instance is fenced": Implies(
            fenced, And(static(C), Exists([M], And(of(M) == C, s.stray_names(M))))
        ),
        "a fenced id is out of use": Implies(
            And(fenced, s.stray_names(M), of(M) == C), Not(Or(s.id(M), under_way))
        ),
    }


LEMMAS: Mapping[str, Term] = _lemmas(VOCABULARY.state())
"""Invariants that safety does not need: with them it is proved that some actions are never possible."""

_FENCED = ("the record is of the id in use",)
_FENCED_UNDER_WAY = ("the record is of the id under way",)

NEVER: Mapping[str, tuple[str, ...]] = {
    "id_given_too_late": ("an id is waited for", "an id is given to a JoinGroup"),
    "heartbeat_of_fenced": _FENCED,
    "late_answer_fails": ("only an instance is fenced", "a fenced id is out of use"),
    "join_of_fenced": _FENCED_UNDER_WAY,
    "join_of_replaced": _FENCED_UNDER_WAY,
    "sync_of_fenced": _FENCED_UNDER_WAY,
}
"""Actions that no run comes to, and the lemmas that show it.

FENCED_INSTANCE_ID is for the elder of two processes with one ``group.instance.id``. Here a consumer has one
process at a time and one request under way, so what is fenced is over; it stays here, as in the executable
model, for whoever adds the second process. An id cannot be too late because a new JoinGroup waits for it.
"""
