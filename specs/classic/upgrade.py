"""Rolling upgrades: that no member is turned away, whatever the order of the bounces.

Safe every bounce is, legal or not: ``reconfigure`` takes any list at any time, and the proof of exclusive
ownership holds with it. What an operator has to see to is that the group stays able to agree: a consumer may
be given a new list if there is one assignor on it that everybody else lists, that the coordinator knows of
every member and in its log, and that is in every JoinGroup under way. The two bounces of KIP-429 are such:
from [range] to [range, cooperative-sticky] everybody has range, and from there to [cooperative-sticky]
everybody has cooperative-sticky, once the first bounce is through and the group has seen all of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_verifier.specs.classic import process
from rebalance_verifier.specs.classic.vocabulary import JOIN, JOIN_NEW, VOCABULARY, A, C, D, M
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, Exists, ForAll, Implies, Not, Or


def shared(s: State, a: Term, *, but: Term | None = None) -> Term:
    """Everybody could agree on ``a``; ``but`` one consumer's list, which is about to be replaced."""
    lists = s.lists(D, a) if but is None else Or(but == D, s.lists(D, a))
    asking = Or(s.wire(D) == JOIN, s.wire(D) == JOIN_NEW)
    sent = And(Implies(asking, s.sent_list(D, a)), Implies(s.left_new(D), s.left_new_list(D, a)))
    members = And(Implies(s.member(M), s.supports(M, a)), Implies(s.log_member(M), s.log_supports(M, a)))
    return And(
        ForAll([D], And(lists, sent)), ForAll([M], And(members, Implies(s.left(M), s.left_list(M, a))))
    )


def reconfigure(s: State, t: After, c: Term, a: Term) -> None:
    """A bounce of a legal upgrade: the new list has an assignor that everybody else has."""
    process.reconfigure(s, t, c)
    t.when(shared(s, a, but=c))
    t.where(t.lists(c, a))


def _refused(s: State) -> Term:
    """INCONSISTENT_GROUP_PROTOCOL: the guard of ``coordinator.join_inconsistent``."""
    alone = Exists([M], And(s.member(M), Not(s.supports(M, A))))
    return And(Or(s.wire(C) == JOIN_NEW, s.wire(C) == JOIN), ForAll([A], Implies(s.sent_list(C, A), alone)))


AT_FIRST = Exists([A], ForAll([D], VOCABULARY.state().lists(D, A)))
"""Before anybody has started, one assignor is on every list."""
INVARIANTS: Mapping[str, Term] = {
    "everybody could agree": Exists([A], shared(VOCABULARY.state(), A)),
}
PROPERTIES: Mapping[str, Term] = {"nobody is turned away": Not(_refused(VOCABULARY.state()))}
