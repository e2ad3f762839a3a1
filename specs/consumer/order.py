"""A client and the coordinator in step, whatever has gone wrong; and what is assumed of the assignor besides.

Kept by every step, faults too: what a client knows and what the coordinator has differ only by what is under
way, will be asked for, or is still to be reconciled. Nothing of that is needed for safety; convergence begins
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer.coordinator import wanted
from rebalance_verifier.specs.consumer.member import differs, hears
from rebalance_verifier.specs.consumer.safety import specification
from rebalance_verifier.specs.consumer.vocabulary import ANSWER, BEAT, IDLE, INSIDE, VOCABULARY, M, N, P, Q
from rebalance_verifier.specs.logic.language import After, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from z3 import And, Exists, ForAll, Implies, Not, Or

Target = Callable[[Term, Term], Term]
"""A target: whether it gives to a member a partition."""


def exclusive(s: State, target: Target) -> Term:
    """No partition is of the target of two members."""
    return Implies(And(target(M, P), target(N, P)), M == N)


def complete(s: State, target: Target) -> Term:
    """State that what some member subscribes to is of the target of one that does."""
    gets = And(s.member(N), target(N, P), s.subscribed(N, P))
    return Implies(And(s.member(M), s.subscribed(M, P)), Exists([N], gets))


CONTRACT: Mapping[str, Callable[[State, Target], Term]] = {"exclusive": exclusive, "complete": complete}
"""What is assumed of the assignor."""


def _kept(s: State) -> dict[str, Term]:
    """Return what is true of the target at all times: exclusive it stays, complete until the epoch is
    raised."""
    return {
        "the target is exclusive": exclusive(s, s.target),
        "the target is complete": Implies(s.group_epoch == s.target_epoch, complete(s, s.target)),
    }


def at_rest(s: State, m: Term) -> Term:
    """It is inside, and reconciles nothing."""
    return And(s.state(m) == INSIDE, Not(s.fresh(m)), Not(s.reconciling(m)))


def order(s: State) -> dict[str, Term]:
    """Return what every step keeps, faults too."""
    knows = And(s.member(M), s.runs(M))
    heard = And(
        knows, s.state(M) == INSIDE,
        Or(And(s.wire(M) == IDLE, Not(s.full(M))), And(s.wire(M) == BEAT, Not(s.asks(M)))),
    )  # fmt: skip
    owes = And(knows, s.state(M) == INSIDE, s.pending(M, P))
    more = Or(s.fresh(M), s.reconciling(M), s.unsent(M), s.full(M))
    gives_up = And(s.carries(M), ForAll([Q], Implies(s.pending(M, Q), Not(s.sent(M, Q)))))
    return {
        "an answer is the newest": Implies(
            And(s.member(M), s.wire(M) == ANSWER), s.wire_epoch(M) == s.at(M)
        ),
        "an assignment on its way is the newest": Implies(
            And(s.member(M), s.wire(M) == ANSWER, s.carries(M)), s.granted(M, P) == s.assigned(M, P)
        ),
        "no assignment is no news": Implies(
            And(knows, s.wire(M) == ANSWER, Not(s.carries(M))),
            And(s.state(M) == INSIDE, s.received(M, P) == s.assigned(M, P)),
        ),
        "its epoch is known": Implies(heard, s.epoch(M) == s.at(M)),
        "its assignment is known": Implies(heard, s.received(M, P) == s.assigned(M, P)),
        "at rest it has what it received": Implies(
            at_rest(s, M),
            And(s.owned(M, P) == s.received(M, P), s.claim(M, P) == s.received(M, P), Not(s.goal(M, P))),
        ),
        "it reconciles what it received": Implies(
            And(s.reconciling(M), Not(s.fresh(M))), s.goal(M, P) == s.received(M, P)
        ),
        "only inside": Implies(Or(s.fresh(M), s.reconciling(M), s.unsent(M)), s.state(M) == INSIDE),
        "all fields of one that hears": Implies(s.full(M), hears(s, M)),
        "no other claims than it has": Implies(
            And(s.wire(M) == BEAT, s.carries(M), s.runs(M), at_rest(s, M), Not(s.unsent(M)), s.sent(M, P)),
            s.received(M, P),
        ),
        "only a heartbeat asks": Implies(s.asks(M), And(s.wire(M) == BEAT, s.carries(M))),
        "once all fields they are asked for": Implies(s.full(M), s.wire(M) == IDLE),
        "assigned or pending": Not(And(s.assigned(M, P), s.pending(M, P))),
        "what is pending will be acknowledged": Implies(
            And(owes, Or(s.wire(M) == IDLE, s.wire(M) == BEAT)),
            Or(more, And(s.wire(M) == BEAT, Or(s.asks(M), gives_up))),
        ),
        "what is pending is news": Implies(And(owes, s.wire(M) == ANSWER), Or(more, differs(s, M))),
        "who is there has all": Implies(
            And(coordinator.arrived(s, M), s.member(M), s.group_epoch == s.target_epoch, wanted(s, M, P)),
            s.assigned(M, P),
        ),
        **_kept(s),
    }  # fmt: skip


ORDER: Mapping[str, Term] = order(VOCABULARY.state())


def assuming(spec: Specification, contract: Iterable[str] = tuple(CONTRACT)) -> Specification:
    """Return the protocol with an assignor that keeps these clauses."""

    def retargeted(s: State, t: After) -> None:
        coordinator.retargeted(s, t)
        for name in contract:
            t.where(CONTRACT[name](s, lambda m, p: t.target(m, p)))

    retargeted.__doc__ = coordinator.retargeted.__doc__
    action = spec.vocabulary.action(retargeted)
    return replace(spec, actions=tuple(action if one.name == action.name else one for one in spec.actions))


def ordered(contract: Iterable[str] = tuple(CONTRACT)) -> dict[str, Term]:
    """Return what is kept of order under such an assignor, for all of its capital letters."""
    left = {f"the target is {name}" for name in set(CONTRACT) - set(contract)}
    return VOCABULARY.closed({name: formula for name, formula in ORDER.items() if name not in left})


def in_step(contract: Iterable[str] = tuple(CONTRACT)) -> Specification:
    """Return the protocol with such an assignor, and with order among its invariants."""
    spec = assuming(specification(), contract)
    return replace(spec, invariants={**spec.invariants, **ordered(contract)})
