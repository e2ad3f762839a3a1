"""The proof is about something: assumptions are consistent, actions are taken, formulas can fail."""

from dataclasses import replace

import pytest
import z3
from rebalance.specs import vacuity
from rebalance.specs.contract import LIVENESS, SAFETY
from rebalance.specs.protocol import specification
from rebalance.specs.prover import Verdict
from rebalance.specs.vacuity import Finding
from rebalance.specs.witnesses import NEVER, WITNESSES, path_to

SPEC = specification()


def test_every_action_has_a_run_or_a_reason():
    names = {action.name for action in SPEC.actions}
    assert WITNESSES.keys() | NEVER.keys() >= names
    assert not WITNESSES.keys() & NEVER.keys()


def test_the_assumptions_are_consistent():
    assert {row.finding for row in vacuity.assumptions(SPEC)} == {Finding.CONSISTENT}


def test_a_contradiction_among_the_assumptions_is_noticed():
    wrong = replace(SPEC, axioms={**SPEC.axioms, "nothing is": z3.BoolVal(False)})
    assert Finding.CONSISTENT not in {row.finding for row in vacuity.assumptions(wrong)}


@pytest.mark.slow
def test_each_clause_of_the_contract_forbids_something_but_one():
    rows = {row.name: row.finding for row in vacuity.clauses(SPEC, {**SAFETY, **LIVENESS})}
    said = {name: finding for name, finding in rows.items() if name in {**SAFETY, **LIVENESS}}
    implied = [name for name, finding in said.items() if finding is not Finding.INDEPENDENT]
    assert len(said) == len(SAFETY) + len(LIVENESS)
    assert implied == ["member_only"]  # members only have topics, and only subscribers are offered anything


@pytest.mark.slow
def test_every_property_can_fail():
    rows = list(vacuity.formulas(SPEC, "property", SPEC.properties))
    assert {row.finding for row in rows} == {Finding.INDEPENDENT}


def test_what_cannot_fail_is_noticed():
    rows = list(vacuity.formulas(SPEC, "property", {"true": z3.BoolVal(True)}))
    assert [row.finding for row in rows] == [Finding.VACUOUS]


@pytest.mark.nightly
def test_every_action_is_taken_in_a_run_or_proved_impossible():
    rows = {row.name: row.finding for row in vacuity.actions(SPEC)}
    assert [name for name, finding in rows.items() if finding is Finding.NEVER] == [
        action.name for action in SPEC.actions if action.name in NEVER
    ]
    assert {finding for name, finding in rows.items() if name not in NEVER} == {Finding.REACHED}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lead", "failover", "partitions_revoked", "static_returns"])
def test_a_run_leads_to_the_action(name):
    run = vacuity.witness(SPEC, (*path_to(name), name))
    assert run is not None
    assert run.steps[-1][0] == name


@pytest.mark.nightly
def test_no_invariant_says_nothing():
    rows = list(vacuity.formulas(SPEC, "invariant", SPEC.invariants))
    assert {row.finding for row in rows} <= {Finding.INDEPENDENT, Finding.IMPLIED}


@pytest.mark.nightly
def test_the_reasons_for_never_are_proved():
    assert {verdict for *_, verdict in vacuity.lemmas(SPEC)} == {Verdict.PROVED}
