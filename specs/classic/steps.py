"""What is proved of every step: formulas over the state before (``s``) and after (``t``)."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_verifier.specs.classic.member import owns
from rebalance_verifier.specs.classic.vocabulary import (
    COMPLETING,
    VOCABULARY,
    A,
    C,
    M,
    N,
    P,
    Q,
    cooperative,
    honest,
    lt,
    none,
    of,
)
from rebalance_verifier.specs.logic.language import NEXT, State, Term
from z3 import And, ForAll, Implies, Not


def displaced(s: State, t: State) -> Term:
    """State that a COOPERATIVE leader decides that ``N`` gets what the consumer of ``M`` owns."""
    decided = And(s.group == COMPLETING, s.chosen(A), cooperative(A), t.offer(C, N, P), Not(s.offer(C, N, P)))
    owner = And(s.id(M), s.member(M), honest(of(M)), owns(s, of(M), P), M != N)
    return And(decided, owner, s.member(N))


def _steps(s: State, t: State) -> dict[str, Term]:
    comes, goes = And(t.told(C, P), Not(s.told(C, P))), And(s.told(C, P), Not(t.told(C, P)))
    return {
        "stale claims": Implies(displaced(s, t), lt(s.since(of(M), P), s.claim(N, P))),
        "revoked before assigned": Implies(comes, ForAll([Q], Implies(s.told(C, Q), s.got(C, Q)))),
        "assigned by the group": Implies(
            comes, And(s.received(C), s.got(C, P), t.since(C, P) == s.generation(C), t.since(C, P) != none)
        ),
        "revoked while owned": Implies(goes, owns(s, C, P)),
        "nothing taken in silence": Implies(And(owns(s, C, P), Not(owns(t, C, P))), goes),
        "nothing owned in silence": Implies(And(owns(t, C, P), Not(owns(s, C, P))), comes),
    }


STEPS: Mapping[str, Term] = _steps(VOCABULARY.state(), VOCABULARY.state(NEXT))
"""By name: who owns what, however stale the claims of others; and the order of the listener's callbacks."""
