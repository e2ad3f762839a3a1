"""What the proof assumes of an assignor, no more and no less.

``offer(m, p)`` is its answer; each clause is a formula over the state in which the leader asked. The clauses
that the gate checks on real assignors (``properties.assignors.clauses``) have other ids and words:
``specs.classic.gate`` says which of them stand for a clause here, ``specs.classic.boundary`` proves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rebalance_verifier.base.names import unknown
from rebalance_verifier.specs.classic.vocabulary import A, M, N, P, Q, cooperative, lt, none
from rebalance_verifier.specs.logic.language import State, Term
from z3 import And, Exists, ForAll, Implies, Not

Offer = Callable[[Term, Term], Term]
ContractClause = Callable[[State, Offer], Term]


def once(s: State, offer: Offer) -> Term:
    """A partition is offered to one member."""
    return Implies(And(offer(M, P), offer(N, P)), M == N)


def member_only(s: State, offer: Offer) -> Term:
    """Only members of the generation are offered anything."""
    return Implies(offer(M, P), s.member(M))


def newest_claim(s: State, offer: Offer) -> Term:
    """COOPERATIVE: a partition that somebody else claims is offered only to a member that has a newer claim.

    This is withholding and the rule of competing claims in one: ``none`` is older than every claim.
    """
    other = And(s.member(N), M != N, s.claim(N, P) != none)
    return Implies(And(s.chosen(A), cooperative(A), offer(M, P), other), lt(s.claim(N, P), s.claim(M, P)))


def held_back(s: State, offer: Offer) -> Term:
    """A partition that a silent static member may still own is offered to nobody else, by any assignor.

    The leader's part, not the assignor's; no KIP asks for it (see U6 in ``model.bugs.catalogue``).
    """
    other = And(s.member(N), M != N, s.silent(N), s.claim(N, P) != none)
    return Not(And(offer(M, P), other))


SAFETY: Mapping[str, ContractClause] = {
    "once": once,
    "member_only": member_only,
    "newest_claim": newest_claim,
    "held_back": held_back,
}
"""What exclusive ownership needs."""


# -- what convergence needs besides --------------------------------------------------------------------


def subscribers(s: State, offer: Offer) -> Term:
    """A member is offered only what it subscribes to."""
    return Implies(offer(M, P), s.topics(M, P))


def complete(s: State, offer: Offer) -> Term:
    """A partition that somebody subscribes to and nobody claims is offered to a member."""
    free = And(
        Exists([M], And(s.member(M), s.topics(M, P))),
        ForAll([N], Implies(s.member(N), s.claim(N, P) == none)),
    )
    return Implies(free, Exists([M], And(s.member(M), offer(M, P))))


def stays(s: State, offer: Offer) -> Term:
    """Asked again by the same members with the same subscriptions, it leaves what it assigned where it is.

    Only for what is claimed; the rest it may assign anew. The last assignment is the one in the log.
    """
    kept = And(s.member(M), s.claim(M, P) != none, s.log_assigned(M, P))
    return Implies(same_members(s), ForAll([M, P], Implies(kept, offer(M, P))))


def same_members(s: State) -> Term:
    """Members and subscriptions are those of the last assignment."""
    return ForAll([N, Q], And(s.member(N) == s.log_member(N), s.topics(N, Q) == s.log_topics(N, Q)))


LIVENESS: Mapping[str, ContractClause] = {"subscribers": subscribers, "complete": complete, "stays": stays}
"""What convergence needs besides."""


def assumed(without: Collection[str] = ()) -> dict[str, ContractClause]:
    """Return the clauses of ``SAFETY`` but for some. Raises ValueError for one that there is not."""
    for name in without:
        if name not in SAFETY:
            raise ValueError(unknown("clause", name, SAFETY))
    return {name: clause for name, clause in SAFETY.items() if name not in without}
