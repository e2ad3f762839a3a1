"""What if: the leader's contract and actions of the coordinator, each with one decision made otherwise.

See ``variations_member``, of which this is the other half.
"""

from __future__ import annotations

from rebalance_verifier.specs.classic import connections, coordinator, failover
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.contract import Offer
from rebalance_verifier.specs.classic.member import NO
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import ANY, NEXT, After, Effect, State, Term, symbols_of
from rebalance_verifier.specs.logic.varying import afterwards, around, instead_of, without
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- the contract --------------------------------------------------------------------------------------


def max_generation_only(s: State, offer: Offer) -> Term:
    """State that only claims of the newest generation count (2.8.1 to 3.4.0)."""
    older = Exists([v.L, v.Q], And(s.member(v.L), v.lt(s.claim(v.N, v.P), s.claim(v.L, v.Q))))
    other = And(s.member(v.N), v.M != v.N, s.claim(v.N, v.P) != v.none, Not(older))
    return Implies(
        And(s.chosen(v.A), v.cooperative(v.A), offer(v.M, v.P), other),
        v.lt(s.claim(v.N, v.P), s.claim(v.M, v.P)),
    )


def trusted_once(s: State, offer: Offer) -> Term:
    """State that a partition is offered to one member, or to several that all claim it (2.5.1 to 2.8.0)."""
    both = And(s.claim(v.M, v.P) != v.none, s.claim(v.N, v.P) != v.none)
    return Implies(And(offer(v.M, v.P), offer(v.N, v.P)), Or(v.M == v.N, both))


def trusted_claim(s: State, offer: Offer) -> Term:
    """COOPERATIVE: what somebody else claims is offered only to a member that claims it too."""
    other = And(s.member(v.N), v.M != v.N, s.claim(v.N, v.P) != v.none)
    return Implies(
        And(s.chosen(v.A), v.cooperative(v.A), offer(v.M, v.P), other), s.claim(v.M, v.P) != v.none
    )


# -- the coordinator: JoinGroup ------------------------------------------------------------------------


@instead_of(coordinator.join_refused_without_id)
def ghost_on_retry(s: State, t: After, c: Term, m: Term) -> None:
    """A dynamic consumer that joins without an id becomes a member at once."""
    t.when(s.wire(c) == v.JOIN_NEW, Not(v.static(c)), coordinator.fresh(s, c, m))
    coordinator.park(s, t, c, m)


@instead_of(coordinator.join_of_unknown)
def unknown_member_rejoins(s: State, t: After, c: Term, m: Term) -> None:
    """A member id that was removed joins again as if nothing had happened."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), Not(s.member(m)), Not(s.pending(m)))
    coordinator.park(s, t, c, m)


@instead_of(coordinator.join_of_static)
def static_replace_only_stable(s: State, t: After, c: Term, m: Term) -> None:
    """In the join phase an instance that is known already becomes another member."""
    t.when(s.wire(c) == v.JOIN_NEW, v.static(c), coordinator.fresh(s, c, m))
    t.when(Or(s.group == v.PREPARING, ForAll([v.N], Implies(v.of(v.N) == c, Not(s.member(v.N))))))
    coordinator.park(s, t, c, m)


static_rejoin_ignores_subscription = without("topics", coordinator.static_returns)
"""A static member returns to a stable group whatever it subscribes to."""

static_replace_drops_revocation = without("claim", coordinator.static_returns)
"""A static member returns to a stable group although the old process had something to revoke."""


@around(coordinator.static_returns)
def static_replace_not_persisted(effect: Effect, s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """The log keeps the old id of a static member that returns."""
    effect(s, t, c, m, n)
    _log_stays(t)


@around(coordinator.static_returns)
def static_replace_in_completing_no_rebalance(
    effect: Effect, s: State, t: After, c: Term, m: Term, n: Term
) -> None:
    """A static member may also return while the leader assigns, and no rebalance follows.

    Its id is new, so it is in no assignment that is under way; the log does not learn of it.
    """
    without("group", effect)(s, t, c, m, n)
    unassigned = And(s.group == v.COMPLETING, ForAll([v.C, v.P], Not(s.offer(v.C, m, v.P))))
    t.when(Or(s.group == v.SETTLED, unassigned))
    _log_stays(t, unless=s.group == v.SETTLED)


def _log_stays(t: After, unless: Term = NO) -> None:
    letters = {letter.sort(): letter for letter in (v.A, v.M, v.P)}
    for symbol in v.VOCABULARY.mutable:
        if symbol.name.startswith("log_"):
            places = tuple(letters[sort] for sort in symbol.arguments)
            kept = [(places, symbol.of()(*places))]
            written = t._assigned.get(symbol.name, kept)
            t._assigned[symbol.name] = [(to, If(unless, value, symbol.of()(*to))) for to, value in written]


_BAG = ("left", "left_claim", "left_list", "left_new", "left_new_list")


def _nothing_of_the_bag(t: After) -> None:
    """Undo the effect of the step on the JoinGroups that were left behind."""
    for name in _BAG:
        t._assigned.pop(name, None)
    after = {name + NEXT for name in _BAG}
    t._wheres[:] = [where for where in t._wheres if after.isdisjoint(symbols_of(where))]


@afterwards
def believes(s: State, t: After, *_: Term) -> None:
    """A JoinGroup is handled, and what its sender left behind before may arrive as if it were news."""
    _nothing_of_the_bag(t)


@afterwards
def believes_any(s: State, t: After, *_: Term) -> None:
    """Requests that were left behind are lost or arrive, in any order: some of it, old or young, is left."""
    _nothing_of_the_bag(t)
    for places in (
        (t.left, v.M),
        (t.left_claim, v.M, v.P),
        (t.left_list, v.M, v.A),
        (t.left_new, v.C),
        (t.left_new_list, v.C, v.A),
    ):
        symbol, *letters = places
        symbol[tuple(letters)] = ANY
    t.where(
        Implies(t.left(v.M), s.left(v.M)), t.left_list(v.M, v.A) == And(t.left(v.M), s.left_list(v.M, v.A))
    )
    t.where(
        Implies(
            t.left_claim(v.M, v.P) != v.none,
            And(t.left(v.M), t.left_claim(v.M, v.P) == s.left_claim(v.M, v.P)),
        )
    )
    t.where(*connections.fewer_new(s, t, v.C))


@around(connections.left_join_arrives)
def left_join_believed(effect: Effect, s: State, t: After, m: Term) -> None:
    """It claims some of what all claim that were left behind, and not what its sender does by now."""
    believes_any(effect)(s, t, m)
    t._wheres[:] = [where for where in t._wheres if "claim" + NEXT not in symbols_of(where)]
    t.where(
        Implies(v.honest(v.of(m)), Or(t.claim(m, v.P) == v.none, t.claim(m, v.P) == s.left_claim(m, v.P)))
    )


@around(failover.failover)
def lost_decision_stays(effect: Effect, s: State, t: After) -> None:
    """Decisions of leaders that were left behind outlive a failover."""
    effect(s, t)
    t._assigned.pop("left_decision", None)


lost_decision_believed = connections.left_decision_under({})
"""It was decided in another generation of that number, of whose claims nothing is known any more."""


# -- the coordinator: the end of the join phase --------------------------------------------------------


@around(coordinator.join_phase_ends)
def no_generation_bump(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """The generation stays what it was."""
    without("lt", effect)(s, t, g, l, a)
    t.when(g == s.current)


@around(coordinator.join_phase_ends)
def silent_static_claims_stale(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """A static member that did not come is represented by what it claimed last, and nothing else."""
    effect(s, t, g, l, a)
    t.claim[v.M, v.P] = If(coordinator.stays(s, v.M), s.claim(v.M, v.P), v.none)


rebalance_timeout_zero = without("given_up", coordinator.join_phase_ends)
"""The join phase ends although members have yet to come."""


@around(coordinator.join_phase_ends)
def evict_static_on_rebalance_timeout(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """Static members that did not come are removed."""
    without("supports", effect)(s, t, g, l, a)
    t.when(ForAll([v.M], Implies(s.joined(v.M), s.supports(v.M, a))))
    t.member[v.M] = s.joined(v.M)
    t.silent[v.M] = False
    t.assigned[v.M, v.P] = False
    t.claim[v.M, v.P] = If(s.joined(v.M), s.claim(v.M, v.P), v.none)
    t.supports[v.M, v.A] = And(s.joined(v.M), s.supports(v.M, v.A))
    t.topics[v.M, v.P] = And(s.joined(v.M), s.topics(v.M, v.P))


# -- the coordinator: SyncGroup and the log ------------------------------------------------------------


@around(coordinator.leader_syncs)
def assignment_not_logged(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """The log learns who is in the group, and not what was assigned to them."""
    effect(s, t, c, m)
    t.log_assigned[v.M, v.P] = s.assigned(v.M, v.P)


@around(coordinator.leader_syncs)
def persist_selected_protocol_only(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    effect(s, t, c, m)
    t.log_supports[v.M, v.A] = And(s.supports(v.M, v.A), s.chosen(v.A))


@afterwards
def static_removal_not_persisted(s: State, t: After) -> None:
    """A failover, after which a static id that was removed since the last append is back."""
    t.group = s.log_group
    t.member[v.M] = s.log_member(v.M)
    t.synced[v.M] = s.log_member(v.M)
    t.claim[v.M, v.P] = s.log_claim(v.M, v.P)
    t.supports[v.M, v.A] = s.log_supports(v.M, v.A)
    t.topics[v.M, v.P] = s.log_topics(v.M, v.P)
    t.assigned[v.M, v.P] = s.log_assigned(v.M, v.P)


@instead_of(failover.sync_while_loading)
def sync_load_error_raw(s: State, t: After, c: Term) -> None:
    """A SyncGroup that arrives while the group is loaded is told what ends the client."""
    t.when(s.wire(c) == v.SYNC)
    refuse(s, t, c, v.SYNC_REFUSED, v.FATAL)
