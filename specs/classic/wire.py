"""What is under way for one consumer: a request, its place in the purgatory, or an answer."""

from __future__ import annotations

from typing import Any

import z3
from rebalance_verifier.specs.classic.vocabulary import (
    IDLE,
    IN_PROGRESS,
    NO_ERROR,
    NO_STRAY,
    RETRIABLE,
    SYNC_REFUSED,
    A,
    M,
    P,
    none,
    of,
)
from rebalance_verifier.specs.logic.language import After, State, Term


def wire_in(s: State, c: Term, *kinds: Term) -> Term:
    """State that one of these is under way for ``c``."""
    return z3.Or(*(s.wire(c) == kind for kind in kinds))


def put(
    s: State, t: After, c: Term, kind: Term, *, names: Any = False, generation: Term = none,
    error: Term = NO_ERROR, leading: Any = False, sent: Any = none, sent_list: Any = False,
    sent_topics: Any = False, offer: Any = False, granted: Any = False,
) -> None:  # fmt: skip
    """``kind`` is under way for ``c`` from now on, and nothing else.

    ``names`` is a formula of M: the member id that it carries; ``sent``, ``sent_topics`` and ``granted`` are
    of P, ``sent_list`` of A, ``offer`` of M and P.
    """
    t.wire[c] = kind
    t.names[M] = z3.If(of(M) == c, names, s.names(M))
    t.wire_generation[c] = generation
    t.error[c] = error
    t.leading[c] = leading
    t.sent[c, P] = sent
    t.sent_list[c, A] = sent_list
    t.sent_topics[c, P] = sent_topics
    t.offer[c, M, P] = offer
    t.granted[c, P] = granted


def clear(s: State, t: After, c: Term) -> None:
    """Nothing is under way for ``c``."""
    put(s, t, c, IDLE)


def refuse(s: State, t: After, c: Term, kind: Term, error: Term) -> None:
    """An error comes back for what was under way.

    Of which member id and generation it speaks matters only where it may cost a membership.
    """
    speaks = z3.And(error != RETRIABLE, error != IN_PROGRESS)
    generation = z3.If(z3.And(speaks, kind == SYNC_REFUSED), s.wire_generation(c), none)
    put(s, t, c, kind, names=z3.And(speaks, s.names(M)), generation=generation, error=error)


def put_stray(
    s: State, t: After, c: Term, kind: Term, *, names: Any = False, generation: Term = none,
    error: Term = NO_ERROR, committed: Any = False,
) -> None:  # fmt: skip
    """The late heartbeat or commit of ``c``, or the late answer to one."""
    t.stray[c] = kind
    t.stray_names[M] = z3.If(of(M) == c, names, s.stray_names(M))
    t.stray_generation[c] = generation
    t.stray_error[c] = error
    t.committed[c, P] = committed


def clear_stray(s: State, t: After, c: Term) -> None:
    """Nothing late is under way for ``c``."""
    put_stray(s, t, c, NO_STRAY)
