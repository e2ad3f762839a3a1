"""What the gate asks of an assignor, in logic: the clauses about one call that the proof rests upon.

Each is written of one call as the gate's oracles see it (``properties.assignors.placement``), whose
verdicts the tests hold against these formulas on the same finite calls. A claim is what a member says that it
owns, since the generation that it says: KIP-792's field, or the user data before; no claim is one since
``none``. That a claim may lie is not the assignor's business: here it counts as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import z3
from rebalance_verifier.specs.classic.contract import ContractClause, Offer, held_back, same_members
from rebalance_verifier.specs.classic.vocabulary import A, M, N, P, cooperative, lt, none
from rebalance_verifier.specs.logic.language import State, Term
from z3 import And, Exists, ForAll, Implies, Not


@dataclass(frozen=True, kw_only=True)
class JudgedCall:
    """One call: who is in the group, subscribes and claims, what the leader knows, what the answer is.

    ``repeated``: the answer lists the partition twice for that member. ``incremental``: the call is a
    COOPERATIVE one. ``again``: it is made of the members and subscriptions of the call before, and nothing
    went wrong since; a group that is left alone makes such calls.
    """

    member: Callable[[Term], Term]
    subscribed: Callable[[Term, Term], Term]
    claim: Callable[[Term, Term], Term]
    exists: Callable[[Term], Term]
    offered: Offer
    repeated: Offer
    incremental: Term
    again: Term


GateFormula = Callable[[JudgedCall], Term]


def exclusive(call: JudgedCall) -> Term:
    """A partition is assigned to at most one member, and once."""
    alone = Implies(And(call.offered(M, P), call.offered(N, P)), M == N)
    return And(alone, Not(call.repeated(M, P)))


def only_to_subscribers(call: JudgedCall) -> Term:
    """A partition is assigned only to a member of the group that subscribes to its topic."""
    return Implies(call.offered(M, P), And(call.member(M), call.subscribed(M, P)))


def revoke_first(call: JudgedCall) -> Term:
    """COOPERATIVE: what is claimed is assigned only to one that claims it."""
    claimed = And(call.member(N), call.claim(N, P) != none)
    return Implies(And(call.incremental, call.offered(M, P), claimed), call.claim(M, P) != none)


def newest_claim_wins(call: JudgedCall) -> Term:
    """COOPERATIVE: of those that claim a partition none gets it whose claim is older than another's."""
    kept = And(call.incremental, call.offered(M, P), call.claim(M, P) != none)
    return Implies(And(kept, call.member(N)), Not(lt(call.claim(M, P), call.claim(N, P))))


def complete(call: JudgedCall) -> Term:
    """A partition that exists, that somebody subscribes to and that nobody has to revoke is assigned."""
    wanted = And(call.exists(P), Exists([M], And(call.member(M), call.subscribed(M, P))))
    held = And(call.incremental, Exists([N], And(call.member(N), call.claim(N, P) != none)))
    return Implies(And(wanted, Not(held)), Exists([M], call.offered(M, P)))


def settles_in_two(call: JudgedCall) -> Term:
    """COOPERATIVE: in the second round of a group that is left alone nobody revokes anything."""
    kept = And(call.member(M), call.claim(M, P) != none)
    return Implies(And(call.incremental, call.again), ForAll([M, P], Implies(kept, call.offered(M, P))))


FORMULAS: Mapping[str, GateFormula] = {
    "assign/1": exclusive,
    "assign/2": only_to_subscribers,
    "kip429/leader/4": revoke_first,
    "kip792/claim/1": newest_claim_wins,
    "kip429/leader/5": complete,
    "kip429/converge": settles_in_two,
}
"""By the ids of ``properties.assignors.clauses``; the last is what all three below that path say of
the second round: 1 that the group settles, 3 that it does so within two, 2 that it then stays as it is."""

COUNTERPARTS: Mapping[str, tuple[str, ...]] = {
    "once": ("assign/1",),
    "member_only": ("assign/2",),
    "newest_claim": ("kip429/leader/4", "kip792/claim/1"),
    "held_back": (),
    "subscribers": ("assign/2",),
    "complete": ("assign/2", "kip429/leader/5"),
    "stays": ("kip429/converge",),
}
"""Each clause of the contract, and the clauses of the gate from which it is proved to follow.

``held_back`` is the leader's part, of which no assignor is asked. ``newest_claim`` follows where no two
members claim a partition since one generation, as no two honest ones do; ``complete`` of partitions that
the leader knows. See ``specs.classic.boundary``.
"""


def call_of(s: State, offer: Offer) -> JudgedCall:
    """Return the call of the leader in state ``s`` that is answered with ``offer``; it knows every
    partition."""
    return JudgedCall(
        member=s.member,
        subscribed=s.topics,
        claim=s.claim,
        exists=lambda p: z3.BoolVal(True),
        offered=offer,
        repeated=lambda m, p: z3.BoolVal(False),
        incremental=Exists([A], And(s.chosen(A), cooperative(A))),
        again=same_members(s),
    )


def _as_contract(formula: GateFormula) -> ContractClause:
    return lambda s, offer: formula(call_of(s, offer))


SAFETY: Mapping[str, ContractClause] = {
    **{name: _as_contract(FORMULAS[name]) for name in ("assign/1", "assign/2")},
    **{name: _as_contract(FORMULAS[name]) for name in ("kip429/leader/4", "kip792/claim/1")},
    "held_back": held_back,
}
"""In place of ``contract.SAFETY``: what is asked of an assignor, word for word, and the leader's part."""
