"""From faults to calm, the first half: once nothing goes wrong any more, what faults have left goes.

What is late, left behind or stopped, and metadata that is out of date, are sets that no step without a fault
makes larger, or only while a weightier one becomes smaller. As long as something is late, paused or out of
date, a step is possible that makes less of it. So under fairness each of these is empty in the end and stays
so. What was left under way on connections that broke is not ended by a step of the group: that the network
forgets it in time is assumed, and so is that no thread hangs for ever.

The other half is that the coordinator's members and the consumers then come to agree. It is not proved, but
searched for in small groups (tests/specs/classic/test_calm.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import z3
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.zombies import INVARIANTS_OF_ZOMBIES
from rebalance_verifier.specs.logic.language import SpecAction, State, Term, symbols_of
from rebalance_verifier.specs.logic.specification import PROGRESS, STEP, ProofCase, Specification, Theorem
from rebalance_verifier.specs.logic.theorems import INVARIANTS, inductive
from z3 import And, Exists, Implies, Not, Or


def _leftovers(s: State) -> dict[str, tuple[Term, ...]]:
    """Return each as sets, the weightiest first."""
    return {
        "late": (Or(s.stray(v.C) == v.HEARTBEAT, s.stray(v.C) == v.COMMIT), s.stray(v.C) != v.NO_STRAY),
        "left behind with an id": (s.left(v.M),),
        "left behind without one": (s.left_new(v.C),),
        "SyncGroup left behind": (s.left_sync(v.M, v.G),),
        "decision left behind": (s.left_decision(v.M, v.G),),
        "paused": (s.life(v.C) == v.PAUSED,),
        "hung": (s.life(v.C) == v.HUNG,),
        "without a subscription": (And(s.life(v.C) != v.DOWN, Not(s.subscribes(v.C))),),
        "metadata out of date": (s.unseen(v.C), s.outdated(v.C)),
    }


LEFTOVERS: Mapping[str, tuple[Term, ...]] = _leftovers(v.VOCABULARY.state())
"""What faults leave: tuples of capital letters of which a formula holds."""


def _known(s: State) -> dict[str, Term]:
    errors = Or(*(s.stray_error(v.C) == error for error in (v.UNKNOWN, v.ILLEGAL, v.IN_PROGRESS, v.FATAL)))
    return {
        "what is late has a name": Implies(
            s.stray(v.C) != v.NO_STRAY, Exists([v.M], And(v.of(v.M) == v.C, s.stray_names(v.M)))
        ),
        "a late answer is an error": Implies(s.stray(v.C) == v.ANSWER, errors),
    }


INVARIANTS_OF_LEFTOVERS: Mapping[str, Term] = _known(v.VOCABULARY.state())
"""What it takes that a late request can be answered, and its answer heard."""


def _ends(s: State) -> dict[str, tuple[Term, Mapping[str, Sequence[Term]]]]:
    """Return where there is such a leftover, and the steps of which one is possible and makes less of it."""
    c, m = v.VOCABULARY.parameter("c"), v.VOCABULARY.parameter("m")
    late = Or(s.stray(c) == v.HEARTBEAT, s.stray(c) == v.COMMIT)
    return {
        "a late request arrives": (
            And(late, v.of(m) == c, s.stray_names(m)),
            {f"late_request_{what}": (c, m) for what in ("accepted", "of_unknown", "of_old", "in_rebalance")},
        ),
        "a late answer arrives": (
            And(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG)),
            dict.fromkeys(("late_answer", "late_answer_expels", "late_answer_fails"), (c,)),
        ),
        "who is paused goes on": (s.life(c) == v.PAUSED, {"resume": (c,)}),
        "metadata is refreshed": (And(s.unseen(c), s.life(c) == v.UP), {"refresh": (c,)}),
    }


def leftovers(spec: Specification) -> Theorem:
    """Return what faults leave goes, once there are none."""
    own = spec.vocabulary.closed(INVARIANTS_OF_LEFTOVERS)
    known = spec.vocabulary.closed(INVARIANTS_OF_ZOMBIES)
    given = {**spec.invariants, **known, **own}
    return Theorem(
        name="leftovers",
        sentence="without faults nothing more is late, left behind, stopped or out of date, and a step is "
        "possible that ends what is late, paused or out of date",
        source="specs.theorems.convergence: from faults to calm",
        vocabulary=spec.vocabulary,
        cases=(*inductive(spec, own, known), *_never_more(spec, given), *_ended(spec, given)),
        upon=(INVARIANTS, "zombies"),
    )


def _never_more(spec: Specification, given: Mapping[str, Term]) -> Iterator[ProofCase]:
    for action in spec.actions:
        goals = {
            f"no more: {name}{f' ({n})' if n else ''}": partial(_no_more, spec, action, sets, n)
            for name, sets in LEFTOVERS.items()
            for n, formula in enumerate(sets)
            if symbols_of(formula) & set(action.updates)
        }
        if goals and not action.fault:
            yield spec.case(STEP, goals, name=f"{action.name} leaves nothing", action=action, given=given)


def _no_more(spec: Specification, action: SpecAction, sets: tuple[Term, ...], number: int) -> Term:
    """State that the set has nothing new after the step, unless one before it in the list has less."""

    def after(formula: Term) -> Term:
        return action.after(spec.vocabulary, formula)

    close = spec.vocabulary.close
    less = [z3.Not(close(Implies(formula, after(formula)))) for formula in sets[:number]]
    return z3.Or(close(Implies(after(sets[number]), sets[number])), *less)


def _ended(spec: Specification, given: Mapping[str, Term]) -> Iterator[ProofCase]:
    for name, (there, steps) in _ends(v.VOCABULARY.state()).items():
        goal = partial(z3.Or, *(spec.action(step).guard_of(*who) for step, who in steps.items()))
        yield spec.case(PROGRESS, {name: goal}, name=name, facts={"given": there}, given=given)
