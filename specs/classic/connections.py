"""Requests that outlive their connection: each may arrive at any time, after any of later ones, or never.

A consumer whose connection broke sends again on a new one. What it left behind is a bag of requests of any
number; of that the state keeps what could do harm. Of JoinGroups: what they claim, for those that no later
JoinGroup of the same member or instance has overtaken. The others are refused, which takes an epoch in
JoinGroup that no release of Kafka has (U10). Of SyncGroups: their generations; while a generation is between
join and sync nobody's claim changes, so a decision that arrives late is any that keeps the contract. A late
LeaveGroup does what a lost session does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalance_verifier.specs.classic import contract
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import (
    await_others,
    fresh,
    hand_over,
    log_members,
    log_return,
    overtake,
)
from rebalance_verifier.specs.classic.member import YES, owns
from rebalance_verifier.specs.classic.wire import put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

# -- what is left behind -------------------------------------------------------------------------------


def _breaks(s: State, t: After, c: Term, answer: Term) -> None:
    """The consumer learns of it, where there still is one."""
    gone = s.life(c) == v.DOWN
    put(s, t, c, If(gone, v.IDLE, answer), error=If(gone, v.NO_ERROR, v.RETRIABLE))


def join_left_behind(s: State, t: After, c: Term, m: Term) -> None:
    """The connection breaks, and a JoinGroup stays under way."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m))
    join_stays(s, t, c, m == v.M)
    _breaks(s, t, c, v.JOIN_REFUSED)


def join_stays(s: State, t: After, c: Term, which: Term) -> None:
    """The JoinGroup of ``c`` stays under way, as one of the member M of which ``which`` holds."""
    older = And(s.left(v.M), s.left_claim(v.M, v.P) != v.none)
    t.left[v.M] = Or(s.left(v.M), which)
    t.left_claim[v.M, v.P] = If(And(which, Not(older)), s.sent(c, v.P), s.left_claim(v.M, v.P))
    listed = And(s.sent_list(c, v.A), Implies(s.left(v.M), s.left_list(v.M, v.A)))
    t.left_list[v.M, v.A] = If(which, listed, s.left_list(v.M, v.A))


def new_join_left_behind(s: State, t: After, c: Term) -> None:
    """A JoinGroup without a member id stays under way when its connection breaks."""
    t.when(s.wire(c) == v.JOIN_NEW)
    new_join_stays(s, t, c, YES)
    _breaks(s, t, c, v.JOIN_REFUSED)


def new_join_stays(s: State, t: After, c: Term, whether: Term) -> None:
    """The JoinGroup without a member id stays under way, if ``whether`` holds."""
    listed = And(s.sent_list(c, v.A), Implies(s.left_new(c), s.left_new_list(c, v.A)))
    t.left_new[c] = Or(s.left_new(c), whether)
    t.left_new_list[c, v.A] = If(whether, listed, s.left_new_list(c, v.A))


def sync_left_behind(s: State, t: After, c: Term, m: Term, g: Term) -> None:
    """A SyncGroup stays under way when its connection breaks."""
    t.when(s.wire(c) == v.SYNC, v.of(m) == c, s.names(m), g == s.wire_generation(c))
    t.left_sync[m, g] = True
    t.left_decision[m, g] = Or(s.left_decision(m, g), s.leading(c))
    _breaks(s, t, c, v.SYNC_REFUSED)


def left_lost(s: State, t: After) -> None:
    """Some of all this is lost, or is refused when it arrives."""
    t.left[v.M] = ANY
    t.left_claim[v.M, v.P] = ANY
    t.left_list[v.M, v.A] = ANY
    t.left_new[v.C] = ANY
    t.left_new_list[v.C, v.A] = ANY
    t.where(Implies(t.left(v.M), s.left(v.M)))
    t.where(
        Implies(
            t.left_claim(v.M, v.P) != v.none,
            And(t.left(v.M), t.left_claim(v.M, v.P) == s.left_claim(v.M, v.P)),
        )
    )
    t.where(Implies(And(t.left(v.M), _still(s, v.M, v.P)), t.left_claim(v.M, v.P) == s.left_claim(v.M, v.P)))
    t.where(t.left_list(v.M, v.A) == And(t.left(v.M), s.left_list(v.M, v.A)))
    t.where(*fewer_new(s, t, v.C))
    _fewer_syncs(s, t)


def _still(s: State, m: Term, p: Term) -> Term:
    """State that the consumer of ``m`` owns or claims ``p`` by now, and so did every JoinGroup that it left
    behind."""
    c = v.of(m)
    return Or(And(s.id(m), owns(s, c, p)), And(s.names(m), s.sent(c, p) != v.none))


def fewer_new(s: State, t: After, c: Term) -> tuple[Term, ...]:
    """Of the JoinGroups without a member id that ``c`` left behind there may be fewer now."""
    return (
        Implies(t.left_new(c), s.left_new(c)),
        Implies(t.left_new_list(c, v.A), t.left_new(c)),
        Implies(And(t.left_new(c), s.left_new_list(c, v.A)), t.left_new_list(c, v.A)),
    )


def _fewer_syncs(s: State, t: After) -> None:
    """Of the SyncGroups that were left behind there may be fewer now."""
    t.left_sync[v.M, v.G] = ANY
    t.left_decision[v.M, v.G] = ANY
    t.where(Implies(t.left_sync(v.M, v.G), s.left_sync(v.M, v.G)))
    t.where(Implies(t.left_decision(v.M, v.G), And(s.left_decision(v.M, v.G), t.left_sync(v.M, v.G))))


# -- what arrives: its answer goes nowhere -------------------------------------------------------------


def left_join_arrives(s: State, t: After, m: Term) -> None:
    """A JoinGroup of a member, or of an id that was given and not shown yet.

    It is any of those under way: it claims some of what they do, at least what its sender owns or claims
    by now. Younger ones may still be under way, and claim no more than it does.
    """
    c = v.of(m)
    t.when(s.left(m), Or(s.member(m), s.pending(m)))
    t.pending[m] = False
    await_others(t, m)
    overtake(s, t, m)
    t.claim[m, v.P] = ANY
    t.topics[m, v.P] = ANY
    t.supports[m, v.A] = s.left_list(m, v.A)
    t.left[m] = ANY
    t.left_claim[m, v.P] = ANY
    t.left_list[m, v.A] = ANY
    still = _still(s, m, v.P)
    some = Or(And(t.claim(m, v.P) == v.none, Not(still)), t.claim(m, v.P) == s.left_claim(m, v.P))
    t.where(Implies(v.honest(c), some))
    t.where(Implies(t.left_claim(m, v.P) != v.none, And(t.left(m), t.left_claim(m, v.P) == t.claim(m, v.P))))
    t.where(Implies(And(t.left(m), still), t.left_claim(m, v.P) == s.left_claim(m, v.P)))
    t.where(t.left_list(m, v.A) == And(t.left(m), s.left_list(m, v.A)))


def left_join_without_id(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup of a dynamic consumer without an id: an id is given that nobody hears of (KIP-394)."""
    t.when(s.left_new(c), Not(v.static(c)), fresh(s, c, m))
    t.pending[m] = True
    _one_arrives(s, t, c)


def left_join_of_static(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup of an instance that the coordinator does not know."""
    t.when(
        s.left_new(c), v.static(c), fresh(s, c, m), ForAll([v.N], Implies(v.of(v.N) == c, Not(s.member(v.N))))
    )
    await_others(t, m)
    _nothing_claimed(s, t, c, m)


def left_static_replaced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A JoinGroup of an instance that the coordinator knows, and the group rebalances."""
    t.when(s.left_new(c), v.static(c), fresh(s, c, m), v.of(n) == c, s.member(n))
    hand_over(s, t, m, n)
    await_others(t, m)
    _nothing_claimed(s, t, c, m)


def left_static_returns(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A late JoinGroup of a static member returns to a stable group that it does not change, as in
    ``coordinator.static_returns``."""
    t.when(s.left_new(c), v.static(c), fresh(s, c, m), v.of(n) == c, s.member(n), s.group == v.SETTLED)
    t.when(ForAll([v.P], Implies(s.claim(n, v.P) != v.none, s.assigned(n, v.P))))
    hand_over(s, t, m, n)
    t.silent[m] = False
    _nothing_claimed(s, t, c, m)
    t.topics[m, v.P] = s.topics(n, v.P)
    t.where(Implies(s.chosen(v.A), t.supports(m, v.A)))
    log_return(s, t, m, n)
    t.log_claim[m, v.P] = v.none
    t.log_topics[m, v.P] = s.topics(n, v.P)
    t.log_supports[m, v.A] = ANY
    t.where(t.log_supports(m, v.A) == t.supports(m, v.A))


def _nothing_claimed(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup without a member id is handled as that of ``m``, and claims nothing."""
    overtake(s, t, m)
    _one_arrives(s, t, c)
    t.claim[m, v.P] = v.none
    t.topics[m, v.P] = ANY
    t.supports[m, v.A] = ANY
    t.where(Implies(s.left_new_list(c, v.A), t.supports(m, v.A)))


def _one_arrives(s: State, t: After, c: Term) -> None:
    """Of the JoinGroups without a member id, some may still be under way."""
    t.left_new[c] = ANY
    t.left_new_list[c, v.A] = ANY
    t.where(*fewer_new(s, t, c))


def left_sync_arrives(s: State, t: After, m: Term) -> None:
    """A SyncGroup of the present generation that decides nothing."""
    t.when(s.left_sync(m, s.current), s.member(m), Or(s.group == v.COMPLETING, s.group == v.SETTLED))
    t.synced[m] = True
    _fewer_syncs(s, t)


def left_decision_under(
    clauses: Mapping[str, contract.ContractClause],
) -> Callable[[State, After, Term], None]:
    """Return the action ``left_decision_arrives`` of a group whose assignor keeps ``clauses``."""

    def left_decision_arrives(s: State, t: After, m: Term) -> None:
        """The leader's SyncGroup of the present generation, in time.

        Nobody's claim has changed since it was sent, or the group would be in another join phase. So what
        it assigns keeps the contract.
        """
        t.when(s.left_decision(m, s.current), s.member(m), s.leads(m), s.group == v.COMPLETING)
        t.group = v.SETTLED
        t.synced[m] = True
        t.assigned[v.M, v.P] = ANY
        log_members(s, t)
        t.log_assigned[v.M, v.P] = ANY
        _fewer_syncs(s, t)
        t.where(
            Implies(t.assigned(v.M, v.P), s.member(v.M)), t.log_assigned(v.M, v.P) == t.assigned(v.M, v.P)
        )
        for clause in clauses.values():
            t.where(clause(s, lambda m, p: t.assigned(m, p)))

    return left_decision_arrives


left_decision_arrives = left_decision_under(contract.SAFETY)
