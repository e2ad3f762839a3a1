"""The proof is about something: assumptions are consistent, actions are taken, formulas can fail."""

from dataclasses import replace

import pytest
import z3
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY
from rebalance_verifier.specs.classic.necessity import vacuity
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityFinding
from rebalance_verifier.specs.classic.necessity.witnesses import NEVER, WITNESSES, path_to
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import DOWN, C
from rebalance_verifier.specs.logic.bounded import StepRelations, run_by
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge

SPEC = specification()


def test_every_action_has_a_run_or_a_reason():
    names = {action.name for action in SPEC.actions}
    assert WITNESSES.keys() | NEVER.keys() >= names
    assert not WITNESSES.keys() & NEVER.keys()


@pytest.mark.slow
def test_the_assumptions_are_consistent():
    assert {row.finding for row in vacuity.assumptions(SPEC)} == {VacuityFinding.CONSISTENT}


@pytest.mark.slow
def test_a_contradiction_among_the_assumptions_is_noticed():
    wrong = replace(SPEC, axioms={**SPEC.axioms, "nothing is": z3.BoolVal(False)})
    assert VacuityFinding.CONSISTENT not in {row.finding for row in vacuity.assumptions(wrong)}


@pytest.mark.slow
def test_each_clause_of_the_contract_forbids_something_but_one():
    rows = {row.name: row.finding for row in vacuity.clauses(SPEC, {**SAFETY, **LIVENESS})}
    findings = {name: finding for name, finding in rows.items() if name in {**SAFETY, **LIVENESS}}
    implied = [name for name, finding in findings.items() if finding is not VacuityFinding.INDEPENDENT]
    assert len(findings) == len(SAFETY) + len(LIVENESS)
    assert implied == ["member_only"]  # members only have topics, and only subscribers are offered anything


@pytest.mark.slow
def test_every_property_can_fail():
    rows = list(vacuity.formulas(SPEC, "property", SPEC.properties))
    assert {row.finding for row in rows} == {VacuityFinding.INDEPENDENT}


def test_what_cannot_fail_is_noticed():
    rows = list(vacuity.formulas(SPEC, "property", {"true": z3.BoolVal(True)}))
    assert [row.finding for row in rows] == [VacuityFinding.VACUOUS]


@pytest.mark.nightly  # `rebalance prove` asks the same, and runs for docs/explanation/proof.md
def test_every_action_is_taken_in_a_run_or_proved_impossible():
    rows = {row.name: row for check in vacuity.actions(SPEC) for row in check.ask()}
    assert rows.keys() == {action.name for action in SPEC.actions}
    assert {name for name, row in rows.items() if row.finding is VacuityFinding.NEVER} == NEVER.keys()
    taken = {row.finding for name, row in rows.items() if name not in NEVER}
    assert taken == {VacuityFinding.REACHED}


def test_few_runs_take_every_action():
    runs = list(vacuity.covering([*WITNESSES]))
    assert len(runs) < len(WITNESSES) * 2 / 3
    assert sorted(name for _, new in runs for name in new) == sorted(WITNESSES)
    for path, new in runs:
        assert path == (*path_to(path[-1]), path[-1])
        assert set(new) <= set(path)


def test_an_action_that_no_run_comes_to_is_noticed():
    never = {name: lemmas for name, lemmas in NEVER.items() if name != "join_of_fenced"}
    some = {name: WITNESSES[name] for name in WITNESSES if name != "failover"}
    spec = replace(SPEC, actions=(SPEC.action("join_of_fenced"), SPEC.action("failover")))
    rows = [row for check in vacuity.actions(spec, some, never) for row in check.ask()]
    assert {row.finding for row in rows} == {VacuityFinding.UNKNOWN}
    assert [row.name for row in rows] == ["join_of_fenced", "failover"]


def test_the_checks_are_about_everything():
    found: dict[str, list[str]] = {check.kind: [] for check in vacuity.checks(SPEC)}
    for check in vacuity.checks(SPEC):
        found[check.kind] += check.names
    assert tuple(found) == vacuity.KINDS
    assert sorted(found["action"]) == sorted(action.name for action in SPEC.actions)
    assert found["invariant"] == [*SPEC.invariants]
    assert found["clause"] == [vacuity.TOGETHER, *SAFETY, *LIVENESS]


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", ["lead", "failover", "partitions_revoked", "static_returns"])
def test_a_run_leads_to_the_action(name):
    run = run_by(StepRelations(SPEC, vacuity.SIZES), (*path_to(name), name))
    assert run is not None
    assert run.steps[-1][0] == name


@pytest.mark.nightly  # the same
def test_no_invariant_says_nothing():
    rows = list(vacuity.formulas(SPEC, "invariant", SPEC.invariants))
    assert {row.finding for row in rows} <= {VacuityFinding.INDEPENDENT, VacuityFinding.IMPLIED}


@pytest.mark.nightly  # the same
def test_the_reasons_for_never_are_proved():
    assert {row.finding for row in vacuity.lemmas(SPEC)} == {VacuityFinding.PROVED}


def test_a_lemma_that_does_not_hold_is_noticed(monkeypatch):
    monkeypatch.setattr(vacuity, "LEMMAS", {"nobody starts": SPEC.vocabulary.state().life(C) == DOWN})
    spec = replace(SPEC, actions=(SPEC.action("start"),), invariants={})
    assert [row.finding for row in vacuity.lemmas(spec)] == [VacuityFinding.UNKNOWN]


def test_a_lemma_that_the_prover_cannot_decide_is_not_proved(monkeypatch):
    def undecided(vocabulary, case):
        return (replace(answer, verdict=ProofVerdict.UNKNOWN) for answer in discharge(vocabulary, case))

    monkeypatch.setattr(vacuity, "LEMMAS", {"anything": SPEC.vocabulary.state().life(C) == DOWN})
    spec = replace(SPEC, actions=(SPEC.action("start"),), invariants={})
    monkeypatch.setattr(vacuity, "discharge", undecided)
    assert [row.finding for row in vacuity.lemmas(spec)] == [VacuityFinding.UNKNOWN]
