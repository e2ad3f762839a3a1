"""The group moves to another broker, which knows what is in the log; or it is deleted."""

from __future__ import annotations

from rebalance_verifier.specs.classic.coordinator import log_nobody
from rebalance_verifier.specs.classic.vocabulary import (
    EMPTY,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOIN_PARKED,
    JOIN_REFUSED,
    PREPARING,
    RETRIABLE,
    SETTLED,
    SYNC,
    SYNC_PARKED,
    SYNC_REFUSED,
    A,
    C,
    G,
    M,
    P,
    none,
    of,
    static,
    zero,
)
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, Exists, If, Not, Or


def load(s: State, t: After) -> None:
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


def _cut(s: State, t: After) -> None:
    """What is parked at the old coordinator is answered by it: NOT_COORDINATOR.

    As specified what a leader decided and left behind decides nothing when its generation comes again (U12).
    """
    joins, syncs = s.wire(C) == JOIN_PARKED, s.wire(C) == SYNC_PARKED
    of_cut = Or(s.wire(of(M)) == JOIN_PARKED, s.wire(of(M)) == SYNC_PARKED)
    t.wire[C] = If(joins, JOIN_REFUSED, If(syncs, SYNC_REFUSED, s.wire(C)))
    t.error[C] = If(Or(joins, syncs), RETRIABLE, s.error(C))
    t.names[M] = And(s.names(M), Not(of_cut))
    t.wire_generation[C] = If(Or(joins, syncs), none, s.wire_generation(C))
    t.left_decision[M, G] = False


def failover(s: State, t: After) -> None:
    """The group moves to another broker. Lost: the phase of a rebalance, parked requests, pending ids,
    generations and removals since the last append. A generation may thus come twice.

    A request in flight may be turned away by a broker that is no coordinator, or arrive all the same: a
    group that moves there and back finds it where it was.
    """
    load(s, t)
    _cut(s, t)


def over_capacity(s: State, t: After) -> None:
    """A group that was loaded has more members than its broker allows, and rebalances."""
    t.when(Or(s.group == SETTLED, s.group == PREPARING))
    t.group = PREPARING


def turned_away(s: State, t: After, c: Term) -> None:
    """NOT_COORDINATOR, or to a JoinGroup COORDINATOR_LOAD_IN_PROGRESS: the consumer tries again.

    So is who waits for a leader whose decision could not be stored.
    """
    joins = Or(s.wire(c) == JOIN, s.wire(c) == JOIN_NEW)
    t.when(Or(joins, s.wire(c) == SYNC, s.wire(c) == SYNC_PARKED))
    refuse(s, t, c, If(joins, JOIN_REFUSED, SYNC_REFUSED), RETRIABLE)


def sync_while_loading(s: State, t: After, c: Term) -> None:
    """A SyncGroup that arrives while the group is loaded is told that it rebalances."""
    t.when(s.wire(c) == SYNC)
    refuse(s, t, c, SYNC_REFUSED, IN_PROGRESS)


def group_expires(s: State, t: After) -> None:
    """An empty group is deleted, and with it the ids that nobody has joined with; the next one of that name
    starts at the first generation, after a failover too."""
    t.when(s.group == EMPTY)
    t.current = zero
    t.pending[M] = False
    log_nobody(t, zero)
