"""The whole protocol in logic: how a group begins, and every step that it can take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import z3
from rebalance_verifier.specs.classic import (
    appends,
    connections,
    coordinator,
    failover,
    heartbeats,
    member,
    process,
)
from rebalance_verifier.specs.classic.contract import SAFETY, ContractClause
from rebalance_verifier.specs.classic.vocabulary import (
    AXIOMS,
    DOWN,
    EMPTY,
    IDLE,
    NO_ERROR,
    NO_STRAY,
    UNJOINED,
    VOCABULARY,
    A,
    C,
    cooperative,
    none,
    zero,
)
from rebalance_verifier.specs.logic.language import Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from z3 import And, Implies, Not

MEMBER = (
    member.partitions_lost, member.partitions_revoked_to_join, member.join, member.join_with_any_claim,
    member.join_answer_too_late, member.follow, member.lead, member.lead_too_late, member.sync_answered,
    member.sync_answer_too_late, member.complete_after_reset, member.complete_of_old_subscription,
    member.partitions_revoked, member.partitions_assigned, member.id_given, member.id_given_too_late,
    member.try_again, member.told_to_rejoin, member.expelled, member.expelled_before, member.fails,
    heartbeats.heartbeat_of_unknown, heartbeats.heartbeat_of_fenced, heartbeats.heartbeat_of_old,
    heartbeats.heartbeat_in_rebalance, heartbeats.late_answer, heartbeats.late_answer_expels,
    heartbeats.late_answer_fails, process.refresh, process.resume, process.lost,
)  # fmt: skip
"""What the member does by itself."""

MEMBER_FAULTS = (
    member.lead_in_vain, heartbeats.heartbeat_late, heartbeats.commit_late, process.poll_too_late,
    process.unsubscribe, process.close, process.subscribe, process.resubscribe, process.enforce_rebalance,
    process.start, process.crash, process.pause, process.hang, process.hang_in_assign,
    process.reconfigure, process.disconnect, process.stray_lost, connections.join_left_behind,
    connections.new_join_left_behind, connections.sync_left_behind, connections.left_lost,
    process.unsubscribe_unnoticed, process.close_unnoticed, process.poll_too_late_unnoticed,
    member.polls_on, member.assigned_and_thrown, process.unsubscribe_midway,
)  # fmt: skip
"""What the application, the operator and the network do to it."""

COORDINATOR = (
    coordinator.join_refused_without_id, coordinator.join_with_given_id, coordinator.join_of_static,
    coordinator.join_of_member, coordinator.join_again, coordinator.static_returns,
    coordinator.static_replaced, coordinator.join_of_unknown, coordinator.join_of_fenced,
    coordinator.join_inconsistent, coordinator.join_phase_ends, coordinator.join_phase_ends_empty,
    coordinator.join_answered, coordinator.join_of_removed, coordinator.join_of_replaced,
    coordinator.sync_of_unknown, coordinator.sync_of_fenced, coordinator.sync_of_old,
    coordinator.sync_in_rebalance, coordinator.sync_parks, coordinator.sync_of_settled,
    coordinator.leader_syncs, coordinator.sync_parked_answered, coordinator.sync_parked_refused,
    heartbeats.late_request_accepted, heartbeats.late_request_of_unknown,
    heartbeats.late_request_of_fenced, heartbeats.late_request_of_old,
    heartbeats.late_request_in_rebalance, coordinator.session_expires, coordinator.rebalance_timeout,
    coordinator.sync_timeout, connections.left_join_arrives, connections.left_join_without_id,
    connections.left_join_of_static, connections.left_static_replaced, connections.left_static_returns,
    connections.left_sync_arrives, connections.left_decision_arrives,
)  # fmt: skip
"""What the coordinator does by itself."""

COORDINATOR_FAULTS = (
    coordinator.group_full, appends.append_fails, appends.sync_not_stored, appends.sync_stored_in_vain,
    appends.return_stored_in_vain, coordinator.session_lost,
    coordinator.too_slow_to_join, coordinator.too_slow_to_sync, failover.failover,
    failover.over_capacity, failover.turned_away, failover.sync_while_loading, failover.group_expires,
    process.topics_change,
)  # fmt: skip
"""What goes wrong there, and in the cluster."""


def protocol(*instead: Effect, contract: Mapping[str, ContractClause] = SAFETY) -> Specification:
    """Return the protocol, of which nothing is stated yet.

    With actions ``instead`` of those of the same name, and of an assignor that keeps ``contract``.

    Raises ValueError for one that takes the place of no action.
    """
    every = (*MEMBER, *MEMBER_FAULTS, *COORDINATOR, *COORDINATOR_FAULTS)
    assigning = (member.lead_under(contract), connections.left_decision_under(contract))
    return Specification(
        vocabulary=VOCABULARY,
        axioms=dict(_axioms()),
        initial=_initial(),
        actions=VOCABULARY.actions((*every, *assigning), (*MEMBER_FAULTS, *COORDINATOR_FAULTS), instead),
    )


# Formulas are long to build and the same in every specification.


@cache
def _axioms() -> Mapping[str, Term]:
    return VOCABULARY.closed(AXIOMS)


@cache
def _initial() -> Term:
    return initial(VOCABULARY.state())


def initial(s: State) -> Term:
    """Nobody has started and there is no group. What a consumer lists, and so its protocol, is open."""
    defaults = {
        "life": DOWN, "state": UNJOINED, "prepare": True, "rejoin": True, "wire": IDLE, "error": NO_ERROR,
        "stray": NO_STRAY, "stray_error": NO_ERROR, "group": EMPTY, "log_group": EMPTY, "current": zero,
        "log_current": zero,
    }  # fmt: skip
    stated = []
    for symbol in VOCABULARY.mutable:
        if symbol.name in ("lists", "eager"):
            continue
        places = [z3.Const(f"x{i}", sort) for i, sort in enumerate(symbol.arguments)]
        here = getattr(s, symbol.name)(*places) if places else getattr(s, symbol.name)
        empty = none if symbol.value == none.sort() else False
        value = defaults.get(symbol.name, empty)
        stated.append(z3.ForAll(places, here == value) if places else here == value)
    eager = VOCABULARY.close(Implies(And(s.lists(C, A), Not(cooperative(A))), s.eager(C)))
    return And(*stated, eager)
