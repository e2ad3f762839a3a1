"""What is under way for one consumer: a request, its place in the purgatory, or an answer."""

from __future__ import annotations

from typing import Any

import z3
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.logic.language import After, State, Term


def wire_in(s: State, c: Term, *kinds: Term) -> Term:
    """State that one of these is under way for ``c``."""
    return z3.Or(*(s.wire(c) == kind for kind in kinds))


def put(
    s: State, t: After, c: Term, kind: Term, *, names: Any = False, generation: Term = v.none,
    error: Term = v.NO_ERROR, leading: Any = False, sent: Any = v.none, sent_list: Any = False,
    sent_topics: Any = False, offer: Any = False, granted: Any = False,
) -> None:  # fmt: skip
    """``kind`` is under way for ``c`` from now on, and nothing else.

    ``names`` is a formula of M: the member id that it carries; ``sent``, ``sent_topics`` and ``granted`` are
    of P, ``sent_list`` of A, ``offer`` of M and P.
    """
    t.wire[c] = kind
    t.names[v.M] = z3.If(v.of(v.M) == c, names, s.names(v.M))
    t.wire_generation[c] = generation
    t.error[c] = error
    t.leading[c] = leading
    t.sent[c, v.P] = sent
    t.sent_list[c, v.A] = sent_list
    t.sent_topics[c, v.P] = sent_topics
    t.offer[c, v.M, v.P] = offer
    t.granted[c, v.P] = granted


def clear(s: State, t: After, c: Term) -> None:
    """Nothing is under way for ``c``."""
    put(s, t, c, v.IDLE)


def refuse(s: State, t: After, c: Term, kind: Term, error: Term) -> None:
    """Answer the request under way with an error.

    Of which member id and generation it speaks matters only where it may cost a membership.
    """
    speaks = z3.And(error != v.RETRIABLE, error != v.IN_PROGRESS)
    generation = z3.If(z3.And(speaks, kind == v.SYNC_REFUSED), s.wire_generation(c), v.none)
    put(s, t, c, kind, names=z3.And(speaks, s.names(v.M)), generation=generation, error=error)


def put_stray(
    s: State, t: After, c: Term, kind: Term, *, names: Any = False, generation: Term = v.none,
    error: Term = v.NO_ERROR, committed: Any = False,
) -> None:  # fmt: skip
    """The late heartbeat or commit of ``c``, or the late answer to one."""
    t.stray[c] = kind
    t.stray_names[v.M] = z3.If(v.of(v.M) == c, names, s.stray_names(v.M))
    t.stray_generation[c] = generation
    t.stray_error[c] = error
    t.committed[c, v.P] = committed


def clear_stray(s: State, t: After, c: Term) -> None:
    """Nothing late is under way for ``c``."""
    put_stray(s, t, c, v.NO_STRAY)
