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
from rebalance_verifier.specs.classic.coordinator import (
    await_others,
    fresh,
    hand_over,
    log_members,
    log_return,
    overtake,
)
from rebalance_verifier.specs.classic.member import YES, owns
from rebalance_verifier.specs.classic.vocabulary import (
    COMPLETING,
    DOWN,
    IDLE,
    JOIN,
    JOIN_NEW,
    JOIN_REFUSED,
    NO_ERROR,
    RETRIABLE,
    SETTLED,
    SYNC,
    SYNC_REFUSED,
    A,
    C,
    G,
    M,
    N,
    P,
    honest,
    none,
    of,
    static,
)
from rebalance_verifier.specs.classic.wire import put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

# -- what is left behind -------------------------------------------------------------------------------


def _breaks(s: State, t: After, c: Term, answer: Term) -> None:
    """The consumer learns of it, where there still is one."""
    gone = s.life(c) == DOWN
    put(s, t, c, If(gone, IDLE, answer), error=If(gone, NO_ERROR, RETRIABLE))


def join_left_behind(s: State, t: After, c: Term, m: Term) -> None:
    """The connection breaks, and a JoinGroup stays under way."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m))
    join_stays(s, t, c, m == M)
    _breaks(s, t, c, JOIN_REFUSED)


def join_stays(s: State, t: After, c: Term, which: Term) -> None:
    """The JoinGroup of ``c`` stays under way, as one of the member M of which ``which`` holds."""
    older = And(s.left(M), s.left_claim(M, P) != none)
    t.left[M] = Or(s.left(M), which)
    t.left_claim[M, P] = If(And(which, Not(older)), s.sent(c, P), s.left_claim(M, P))
    listed = And(s.sent_list(c, A), Implies(s.left(M), s.left_list(M, A)))
    t.left_list[M, A] = If(which, listed, s.left_list(M, A))


def new_join_left_behind(s: State, t: After, c: Term) -> None:
    """The same of a JoinGroup without a member id."""
    t.when(s.wire(c) == JOIN_NEW)
    new_join_stays(s, t, c, YES)
    _breaks(s, t, c, JOIN_REFUSED)


def new_join_stays(s: State, t: After, c: Term, whether: Term) -> None:
    """The JoinGroup without a member id stays under way, if ``whether`` holds."""
    listed = And(s.sent_list(c, A), Implies(s.left_new(c), s.left_new_list(c, A)))
    t.left_new[c] = Or(s.left_new(c), whether)
    t.left_new_list[c, A] = If(whether, listed, s.left_new_list(c, A))


def sync_left_behind(s: State, t: After, c: Term, m: Term, g: Term) -> None:
    """The same of a SyncGroup."""
    t.when(s.wire(c) == SYNC, of(m) == c, s.names(m), g == s.wire_generation(c))
    t.left_sync[m, g] = True
    t.left_decision[m, g] = Or(s.left_decision(m, g), s.leading(c))
    _breaks(s, t, c, SYNC_REFUSED)


def left_lost(s: State, t: After) -> None:
    """Some of all this is lost, or is refused when it arrives."""
    t.left[M] = ANY
    t.left_claim[M, P] = ANY
    t.left_list[M, A] = ANY
    t.left_new[C] = ANY
    t.left_new_list[C, A] = ANY
    t.where(Implies(t.left(M), s.left(M)))
    t.where(Implies(t.left_claim(M, P) != none, And(t.left(M), t.left_claim(M, P) == s.left_claim(M, P))))
    t.where(Implies(And(t.left(M), _still(s, M, P)), t.left_claim(M, P) == s.left_claim(M, P)))
    t.where(t.left_list(M, A) == And(t.left(M), s.left_list(M, A)))
    t.where(*fewer_new(s, t, C))
    _fewer_syncs(s, t)


def _still(s: State, m: Term, p: Term) -> Term:
    """State that the consumer of ``m`` owns or claims ``p`` by now, and so did every JoinGroup that it left
    behind."""
    c = of(m)
    return Or(And(s.id(m), owns(s, c, p)), And(s.names(m), s.sent(c, p) != none))


def fewer_new(s: State, t: After, c: Term) -> tuple[Term, ...]:
    """Of the JoinGroups without a member id that ``c`` left behind there may be fewer now."""
    return (
        Implies(t.left_new(c), s.left_new(c)),
        Implies(t.left_new_list(c, A), t.left_new(c)),
        Implies(And(t.left_new(c), s.left_new_list(c, A)), t.left_new_list(c, A)),
    )


def _fewer_syncs(s: State, t: After) -> None:
    """Of the SyncGroups that were left behind there may be fewer now."""
    t.left_sync[M, G] = ANY
    t.left_decision[M, G] = ANY
    t.where(Implies(t.left_sync(M, G), s.left_sync(M, G)))
    t.where(Implies(t.left_decision(M, G), And(s.left_decision(M, G), t.left_sync(M, G))))


# -- what arrives: its answer goes nowhere -------------------------------------------------------------


def left_join_arrives(s: State, t: After, m: Term) -> None:
    """A JoinGroup of a member, or of an id that was given and not shown yet.

    It is any of those under way: it claims some of what they do, at least what its sender owns or claims
    by now. Younger ones may still be under way, and claim no more than it does.
    """
    c = of(m)
    t.when(s.left(m), Or(s.member(m), s.pending(m)))
    t.pending[m] = False
    await_others(t, m)
    overtake(s, t, m)
    t.claim[m, P] = ANY
    t.topics[m, P] = ANY
    t.supports[m, A] = s.left_list(m, A)
    t.left[m] = ANY
    t.left_claim[m, P] = ANY
    t.left_list[m, A] = ANY
    still = _still(s, m, P)
    some = Or(And(t.claim(m, P) == none, Not(still)), t.claim(m, P) == s.left_claim(m, P))
    t.where(Implies(honest(c), some))
    t.where(Implies(t.left_claim(m, P) != none, And(t.left(m), t.left_claim(m, P) == t.claim(m, P))))
    t.where(Implies(And(t.left(m), still), t.left_claim(m, P) == s.left_claim(m, P)))
    t.where(t.left_list(m, A) == And(t.left(m), s.left_list(m, A)))


def left_join_without_id(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup of a dynamic consumer without an id: an id is given that nobody hears of (KIP-394)."""
    t.when(s.left_new(c), Not(static(c)), fresh(s, c, m))
    t.pending[m] = True
    _one_arrives(s, t, c)


def left_join_of_static(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup of an instance that the coordinator does not know."""
    t.when(s.left_new(c), static(c), fresh(s, c, m), ForAll([N], Implies(of(N) == c, Not(s.member(N)))))
    await_others(t, m)
    _nothing_claimed(s, t, c, m)


def left_static_replaced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A JoinGroup of an instance that the coordinator knows, and the group rebalances."""
    t.when(s.left_new(c), static(c), fresh(s, c, m), of(n) == c, s.member(n))
    hand_over(s, t, m, n)
    await_others(t, m)
    _nothing_claimed(s, t, c, m)


def left_static_returns(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """The same in a stable group that it does not change, as in ``coordinator.static_returns``."""
    t.when(s.left_new(c), static(c), fresh(s, c, m), of(n) == c, s.member(n), s.group == SETTLED)
    t.when(ForAll([P], Implies(s.claim(n, P) != none, s.assigned(n, P))))
    hand_over(s, t, m, n)
    t.silent[m] = False
    _nothing_claimed(s, t, c, m)
    t.topics[m, P] = s.topics(n, P)
    t.where(Implies(s.chosen(A), t.supports(m, A)))
    log_return(s, t, m, n)
    t.log_claim[m, P] = none
    t.log_topics[m, P] = s.topics(n, P)
    t.log_supports[m, A] = ANY
    t.where(t.log_supports(m, A) == t.supports(m, A))


def _nothing_claimed(s: State, t: After, c: Term, m: Term) -> None:
    """A JoinGroup without a member id is handled as that of ``m``, and claims nothing."""
    overtake(s, t, m)
    _one_arrives(s, t, c)
    t.claim[m, P] = none
    t.topics[m, P] = ANY
    t.supports[m, A] = ANY
    t.where(Implies(s.left_new_list(c, A), t.supports(m, A)))


def _one_arrives(s: State, t: After, c: Term) -> None:
    """Of the JoinGroups without a member id, some may still be under way."""
    t.left_new[c] = ANY
    t.left_new_list[c, A] = ANY
    t.where(*fewer_new(s, t, c))


def left_sync_arrives(s: State, t: After, m: Term) -> None:
    """A SyncGroup of the present generation that decides nothing."""
    t.when(s.left_sync(m, s.current), s.member(m), Or(s.group == COMPLETING, s.group == SETTLED))
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
        t.when(s.left_decision(m, s.current), s.member(m), s.leads(m), s.group == COMPLETING)
        t.group = SETTLED
        t.synced[m] = True
        t.assigned[M, P] = ANY
        log_members(s, t)
        t.log_assigned[M, P] = ANY
        _fewer_syncs(s, t)
        t.where(Implies(t.assigned(M, P), s.member(M)), t.log_assigned(M, P) == t.assigned(M, P))
        for clause in clauses.values():
            t.where(clause(s, lambda m, p: t.assigned(m, p)))

    return left_decision_arrives


left_decision_arrives = left_decision_under(contract.SAFETY)
