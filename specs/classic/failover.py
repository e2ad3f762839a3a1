"""The group moves to another broker, which knows what is in the log; or it is deleted."""

from __future__ import annotations

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import log_nobody
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, Exists, If, Not, Or


def load(s: State, t: After) -> None:
    """Another broker knows what is in the log. As specified a static id that was removed stays so (U8)."""

    def known(m: Term) -> Term:
        return And(s.log_member(m), Or(Not(v.static(v.of(m))), s.member(m)))

    purged = Exists([v.M], And(s.log_member(v.M), v.static(v.of(v.M)), Not(s.member(v.M))))
    t.group = If(purged, v.PREPARING, s.log_group)
    t.current = s.log_current
    t.leads[v.M] = s.log_leads(v.M)
    t.chosen[v.A] = s.log_chosen(v.A)
    t.member[v.M] = known(v.M)
    t.synced[v.M] = known(v.M)
    for relation in ("pending", "joined", "silent", "given_up"):
        getattr(t, relation)[v.M] = False
    t.claim[v.M, v.P] = If(known(v.M), s.log_claim(v.M, v.P), v.none)
    t.supports[v.M, v.A] = And(known(v.M), s.log_supports(v.M, v.A))
    t.topics[v.M, v.P] = And(known(v.M), s.log_topics(v.M, v.P))
    t.assigned[v.M, v.P] = And(known(v.M), s.log_assigned(v.M, v.P))


def _cut(s: State, t: After) -> None:
    """Answer the requests that are parked at the old coordinator: NOT_COORDINATOR.

    As specified what a leader decided and left behind decides nothing when its generation comes again (U12).
    """
    joins, syncs = s.wire(v.C) == v.JOIN_PARKED, s.wire(v.C) == v.SYNC_PARKED
    of_cut = Or(s.wire(v.of(v.M)) == v.JOIN_PARKED, s.wire(v.of(v.M)) == v.SYNC_PARKED)
    t.wire[v.C] = If(joins, v.JOIN_REFUSED, If(syncs, v.SYNC_REFUSED, s.wire(v.C)))
    t.error[v.C] = If(Or(joins, syncs), v.RETRIABLE, s.error(v.C))
    t.names[v.M] = And(s.names(v.M), Not(of_cut))
    t.wire_generation[v.C] = If(Or(joins, syncs), v.none, s.wire_generation(v.C))
    t.left_decision[v.M, v.G] = False


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
    t.when(Or(s.group == v.SETTLED, s.group == v.PREPARING))
    t.group = v.PREPARING


def turned_away(s: State, t: After, c: Term) -> None:
    """NOT_COORDINATOR, or to a JoinGroup COORDINATOR_LOAD_IN_PROGRESS: the consumer tries again.

    So is who waits for a leader whose decision could not be stored.
    """
    joins = Or(s.wire(c) == v.JOIN, s.wire(c) == v.JOIN_NEW)
    t.when(Or(joins, s.wire(c) == v.SYNC, s.wire(c) == v.SYNC_PARKED))
    refuse(s, t, c, If(joins, v.JOIN_REFUSED, v.SYNC_REFUSED), v.RETRIABLE)


def sync_while_loading(s: State, t: After, c: Term) -> None:
    """A SyncGroup that arrives while the group is loaded is told that it rebalances."""
    t.when(s.wire(c) == v.SYNC)
    refuse(s, t, c, v.SYNC_REFUSED, v.IN_PROGRESS)


def group_expires(s: State, t: After) -> None:
    """An empty group is deleted, and with it the ids that nobody has joined with; the next one of that name
    starts at the first generation, after a failover too."""
    t.when(s.group == v.EMPTY)
    t.current = v.zero
    t.pending[v.M] = False
    log_nobody(t, v.zero)
