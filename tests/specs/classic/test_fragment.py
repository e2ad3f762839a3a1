"""In which logic the obligations are, and what the properties follow from.

Formulas whose sorts can be put in an order, so that functions and the Skolem functions of existential
quantifiers lead only onwards, have finite models, and a solver ends on them. Here the edges between the
unbounded sorts are collected, of all formulas of a case together: more than any of its obligations has.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import pytest
import z3
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.language import Term, parts
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.prover import ProofVerdict, shows
from rebalance_verifier.specs.logic.specification import ProofCase

UNBOUNDED = {"Consumer", "Member", "Partition", "Generation", "Assignor"}

Edge = tuple[str, str]


def functions(formula: Term) -> Iterator[Edge]:
    """From each argument of a function to its value."""
    for part in parts(formula):
        if z3.is_app(part) and part.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            yield from ((child.sort().name(), part.sort().name()) for child in part.children())


def skolem(formula: Term, holds: bool, around: tuple[str, ...] = ()) -> Iterator[Edge]:
    """From what is quantified for all ``around`` to what exists, where the formula ``holds`` or does not."""
    if z3.is_quantifier(formula):
        sorts = tuple(formula.var_sort(i).name() for i in range(formula.num_vars()))
        if formula.is_forall() is holds:
            yield from skolem(formula.body(), holds, (*around, *sorts))
        else:
            yield from ((outer, inner) for outer in around for inner in sorts)
            yield from skolem(formula.body(), holds, around)
    elif z3.is_not(formula):
        yield from skolem(formula.arg(0), not holds, around)
    elif z3.is_implies(formula):
        yield from skolem(formula.arg(0), not holds, around)
        yield from skolem(formula.arg(1), holds, around)
    elif z3.is_and(formula) or z3.is_or(formula):
        for child in formula.children():
            yield from skolem(child, holds, around)
    elif any(map(z3.is_quantifier, parts(formula))):  # a condition, or two sides that are equal: either way
        for child in formula.children():
            yield from skolem(child, True, around)
            yield from skolem(child, False, around)


def edges(case: ProofCase) -> set[Edge]:
    """Of all hypotheses and all goals of a case, these negated where they are to follow."""
    hypotheses = {**case.facts(), **case.given}.values()
    goals = [goal() for goal in case.goals.values()]
    found = {edge for formula in hypotheses for edge in skolem(formula, True)}
    found |= {edge for goal in goals for edge in skolem(goal, case.possible)}
    found |= {edge for formula in (*hypotheses, *goals) for edge in functions(formula)}
    return {edge for edge in found if set(edge) <= UNBOUNDED}


def circular(found: set[Edge]) -> bool:
    return not nx.is_directed_acyclic_graph(nx.DiGraph(list(found)))


@pytest.mark.nightly
def test_all_theorems_but_three_are_in_a_fragment_that_is_decidable():
    """In the three a consumer *has* some member id, and a member id has one consumer."""
    theorems = {theorem.name: theorem for theorem in proof()}
    outside = {
        name for name, theorem in theorems.items() if any(circular(edges(case)) for case in theorem.cases)
    }
    assert outside == {"convergence", "leftovers", "zombies"}
    assert len(theorems) == 14


def test_a_cycle_is_seen():
    things = z3.DeclareSort("Member"), z3.DeclareSort("Consumer")
    m, c = (z3.Const(name, sort) for name, sort in zip("mc", things, strict=True))
    of = z3.Function("of", *things)
    some = z3.ForAll([c], z3.Exists([m], of(m) == c))
    assert circular({*functions(some), *skolem(some, True)})
    assert not circular({*functions(some), *skolem(some, False)})


@pytest.mark.parametrize(
    ("name", "upon"),
    [
        ("exclusive ownership", ["no two rights"]),
        ("revoke before assign", ["no two rights"]),
        ("exclusive belief of the listeners", ["no two rights", "the listener is told"]),
        ("commit fencing", ["a late commit takes nothing"]),
    ],
)
def test_what_a_property_follows_from(name, upon):
    spec = specification()
    given = {invariant: spec.invariants[invariant] for invariant in upon}
    assert shows(given, spec.properties[name], Budget(LIMIT)) is ProofVerdict.PROVED
    for one in upon:
        fewer = {invariant: formula for invariant, formula in given.items() if invariant != one}
        assert shows(fewer, spec.properties[name], Budget(LIMIT)) is not ProofVerdict.PROVED
