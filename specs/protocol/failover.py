"""The group moves to another broker, which knows what is in the log; or it is deleted."""

from __future__ import annotations

from rebalance.specs.logic.language import After, State, Term
from rebalance.specs.protocol.vocabulary import (
    EMPTY,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOIN_PARKED,
    JOIN_REFUSED,
    PREPARING,
    RETRIABLE,
    SYNC,
    SYNC_PARKED,
    SYNC_REFUSED,
    A,
    C,
    M,
    P,
    none,
    of,
    static,
    zero,
)
from z3 import And, Exists, If, Not, Or


def _load(s: State, t: After) -> None:
    """Another broker knows what is in the log. As specified a static id that was removed stays so (U8)."""

    def known(m: Term) -> Term:
        return And(s.log_member(m), Or(Not(static(of(m))), s.member(m)))

    purged = Exists([M], And(s.log_member(M), static(of(M)), Not(s.member(M))))
    t.group = If(purged, PREPARING, s.log_group)
    t.current = s.log_current
    t.leads[M] = s.log_leads(M)
    t.chosen[A] = s.log_chosen(A)
    t.member[M] = known(M)
    t.synced[M] = known(M)
    for relation in ("pending", "joined", "silent", "given_up"):
        getattr(t, relation)[M] = False
    t.claim[M, P] = If(known(M), s.log_claim(M, P), none)
    t.supports[M, A] = And(known(M), s.log_supports(M, A))
    t.topics[M, P] = And(known(M), s.log_topics(M, P))
    t.assigned[M, P] = And(known(M), s.log_assigned(M, P))


def _cut(s: State, t: After, sync_error: Term) -> None:
    """Requests at the old coordinator are lost; answers that left it may still arrive."""

    def joins(c: Term) -> Term:
        return Or(s.wire(c) == JOIN, s.wire(c) == JOIN_NEW, s.wire(c) == JOIN_PARKED)

    def syncs(c: Term) -> Term:
        return Or(s.wire(c) == SYNC, s.wire(c) == SYNC_PARKED)

    cut = Or(joins(C), syncs(C))
    of_cut = Or(joins(of(M)), syncs(of(M)))
    t.wire[C] = If(joins(C), JOIN_REFUSED, If(syncs(C), SYNC_REFUSED, s.wire(C)))
    error = If(s.wire(C) == SYNC, sync_error, RETRIABLE)
    t.error[C] = If(cut, error, s.error(C))
    t.names[M] = And(s.names(M), Not(of_cut))
    t.wire_generation[C] = If(cut, none, s.wire_generation(C))
    t.leading[C] = And(s.leading(C), Not(cut))
    t.sent[C, P] = If(cut, none, s.sent(C, P))
    t.sent_list[C, A] = And(s.sent_list(C, A), Not(cut))
    t.sent_topics[C, P] = And(s.sent_topics(C, P), Not(cut))
    t.offer[C, M, P] = And(s.offer(C, M, P), Not(cut))


def move(s: State, t: After, sync_error: Term) -> None:
    """Another broker loads the group; a SyncGroup that arrives meanwhile is told ``sync_error``."""
    _load(s, t)
    _cut(s, t, sync_error)


def failover(s: State, t: After) -> None:
    """The group moves to another broker. Lost: the phase of a rebalance, parked requests, pending ids,
    generations and removals since the last append. A generation may thus come twice."""
    move(s, t, RETRIABLE)


def failover_while_loading(s: State, t: After) -> None:
    """The same; a SyncGroup arrives while the group is loaded, and is told that it rebalances."""
    move(s, t, IN_PROGRESS)


def group_expires(s: State, t: After) -> None:
    """An empty group is deleted; the next one of that name starts at the first generation."""
    t.when(s.group == EMPTY)
    t.current = zero
