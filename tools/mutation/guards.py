"""Mutants of the logic: each guard of each action is dropped once.

What a dropped guard adds are the steps in which it does not hold and all others do. So a mutant is asked
whether there are any in a state of the invariants, and whether each theorem about that action holds of them.
Where all do, the guard is none of what the theorems need: the protocol is safe without it, and the guard
stands there because Kafka has it. The step that shows it is one of a group in which all invariants hold.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import z3
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.counterexample import Counterexample, counterexample
from rebalance_verifier.specs.logic.language import SpecAction, Term
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge, shows
from rebalance_verifier.specs.logic.specification import PROGRESS, ProofCase, Theorem

from tools.mutation.trying import MutantVerdict

QUICKLY = LIMIT // 5
"""Units of the solver for one obligation: those that hold take a small part of it."""


class GuardMutant(NamedTuple):
    """The action without its ``number``-th guard, which is ``was``."""

    key: str
    action: str
    number: int
    was: str


def guards_of(action: SpecAction) -> list[Term]:
    """What has to hold before the action, one by one."""
    waiting, found = [action.guard], list[Term]()
    while waiting:
        first = waiting.pop(0)
        if z3.is_and(first):
            waiting = [*first.children(), *waiting]
        else:
            found.append(first)
    return found


_specification = cache(specification)


@cache
def guard_mutants() -> tuple[GuardMutant, ...]:
    """All of them, in the order of the actions."""
    found = []
    for action in _specification().actions:
        for index, guard in enumerate(guards_of(action)):
            text = " ".join(str(guard).split())
            found.append(
                GuardMutant(f"specs.{action.name} | guard {index} dropped | {text}", action.name, index, text)
            )
    return tuple(found)


def added(action: SpecAction, index: int) -> SpecAction:
    """The steps that the action takes besides without its ``index``-th guard."""
    guards = guards_of(action)
    guards[index] = z3.Not(guards[index])
    return replace(action, guard=z3.And(*guards))


@cache
def _cases() -> Mapping[str, Sequence[tuple[Theorem, ProofCase]]]:
    """By action the cases of each theorem about it. Only what is known of a step speaks of guards."""
    found: dict[str, list[tuple[Theorem, ProofCase]]] = {}
    for theorem in proof():
        for case in theorem.cases:
            if case.action is not None and not case.possible and case.kind != PROGRESS:
                found.setdefault(case.action.name, []).append((theorem, case))
    return found


def prepared() -> None:
    """What all mutants share is made: once, before they go to processes of their own."""
    _cases()


def asked_guard(mutant: GuardMutant) -> MutantVerdict:
    """What becomes of the theorems without that guard."""
    began = time.process_time()
    verdict = _theorem_verdict(mutant)
    return verdict._replace(seconds=time.process_time() - began)


def _theorem_verdict(mutant: GuardMutant) -> MutantVerdict:
    spec = _specification()
    action = added(spec.action(mutant.action), mutant.number)
    hypotheses = {**spec.facts(action), **spec.invariants}
    if shows(hypotheses, z3.BoolVal(False), Budget(QUICKLY)) is ProofVerdict.PROVED:
        return MutantVerdict("implied")
    unknown = ""
    for theorem, case in _cases()[mutant.action]:
        besides = replace(case, facts=partial(_facts, case, action))
        for answer in discharge(theorem.vocabulary, besides, QUICKLY):
            if answer.verdict is ProofVerdict.REFUTED:
                return MutantVerdict("theorem", theorem.name, answer.goal, same=False)
            if answer.verdict is ProofVerdict.UNKNOWN:
                unknown = unknown or f"{theorem.name}: {answer.goal}"
    if unknown:
        return MutantVerdict("unknown", detail=unknown, same=False)
    shown = counterexample(
        spec.vocabulary, hypotheses.values(), "no step", z3.BoolVal(False), action, Budget(LIMIT)
    )
    return MutantVerdict("superfluous", detail=_described(shown), same=False)


def _facts(case: ProofCase, action: SpecAction) -> Mapping[str, Term]:
    return {**case.facts(), "guard": action.guard}


def _described(shown: Counterexample | None) -> str:
    """The step and what is not plain before it, in one line."""
    if shown is None:
        return ""
    facts = (f"{fact.symbol}({', '.join(fact.of)}) = {fact.value}" for fact in shown.before if not fact.plain)
    return f"{shown.action}({', '.join(shown.parameters.values())}): " + "; ".join(facts)
