"""What is necessary: every decision made otherwise fails where the table says, and its run replays."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN, SHOWN
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.machine import NOBODY
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.specs.classic.contract import SAFETY
from rebalance_verifier.specs.classic.necessity.examine import (
    Variation,
    VariationFinding,
    counterexample,
    data,
    deviation,
    examine,
    in_full,
    outcomes_of,
    replay_of,
    steps_of,
    summary,
    table,
    wanted,
)
from rebalance_verifier.specs.classic.necessity.necessity import BESIDE, NECESSITY
from rebalance_verifier.specs.classic.necessity.replay import EVENTS, ReplayError, play
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.bounded import SpecRun
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict

from tests.tiers import tiered

REFUTATIONS = {name: variation.refutation for name, variation in NECESSITY.items() if variation.refutation}


def tier(name):
    """Some of each kind in `make test`, all by night."""
    some = ("max_generation_only", "held_back", "no_generation_bump", "protocol_flag_inconsistent")
    return pytest.mark.slow if name in some else pytest.mark.nightly


def many(name: str) -> bool:
    """It takes seconds: groups are looked for, or all actions asked."""
    return bool(NECESSITY[name].obligations or NECESSITY[name].invariants)


falling = pytest.mark.parametrize(
    "name", [name if name == "newest_claim" else pytest.param(name, marks=tier(name)) for name in REFUTATIONS]
)


@cache
def run_of(name: str) -> SpecRun:
    answer = counterexample(NECESSITY[name])
    assert answer.run is not None, answer.verdict
    return answer.run


# -- the table -----------------------------------------------------------------------------------------


def test_every_switch_of_the_model_is_accounted_for_once():
    listed = [switch for variation in NECESSITY.values() for switch in variation.switches]
    assert sorted([*listed, *BESIDE]) == sorted(CLASSIC_SHOWN)
    modern = SHOWN.keys() - CLASSIC_SHOWN.keys()
    assert set(DECISIONS) <= {*listed, *BESIDE, *modern}


def test_every_clause_of_the_contract_is_dropped():
    dropped = {
        clause
        for variation in NECESSITY.values()
        for clause in SAFETY
        if variation.contract.get(clause) is None
    }
    assert dropped == set(SAFETY)


def test_what_is_kept_is_kept_for_a_clause():
    reasons = [
        (name, variation.kept) for name, variation in NECESSITY.items() if not variation.refutation
    ] + list(BESIDE.items())
    for name, reason in reasons:
        clause, _, why = reason.partition(": ")
        assert clause in CLAUSES, name
        assert why, name


def test_switches_are_kept_for_the_clause_that_finds_them():
    """A group that shows the switch breaking that clause is in ``explore.groups.bugs``."""
    reasons = {
        switch: variation.kept
        for variation in NECESSITY.values()
        if variation.kept
        for switch in variation.switches
    }
    for switch, reason in {**reasons, **BESIDE}.items():
        assert reason.partition(": ")[0] == SHOWN[switch].clause, switch


def test_every_action_is_an_event_of_the_model_or_a_part_of_one():
    silent = {
        *("partitions_lost", "partitions_revoked_to_join", "partitions_revoked"),
        *("join_answered", "sync_parked_answered", "reconfigure", "topics_change", "lost", "stray_lost"),
        "left_lost",
        *("over_capacity", "turned_away", "sync_while_loading"),
    }
    names = {action.name for action in specification().actions}
    assert names - set(EVENTS) == silent
    assert set(EVENTS) <= names


# -- obligations ---------------------------------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("name", tiered(NECESSITY, [name for name in NECESSITY if not many(name)]))
@pytest.mark.slow
def test_the_obligations_that_fail_are_those_of_the_table(name):
    variation = NECESSITY[name]
    failed = {
        (outcome.case, outcome.goal): outcome
        for outcome in outcomes_of(variation)
        if outcome.verdict is not ProofVerdict.PROVED
    }
    assert set(variation.obligations) <= set(failed)
    assert bool(failed) is bool(variation.obligations)
    for outcome in failed.values():
        assert outcome.verdict is ProofVerdict.REFUTED
        assert outcome.counterexample is not None


@pytest.mark.nightly
def test_with_the_decision_an_instance_has_one_member():
    """So that the invariants that one variation adds are true of the protocol as specified."""
    right = replace(NECESSITY["static_replace_only_stable"], instead=())
    assert {outcome.verdict for outcome in outcomes_of(right)} == {ProofVerdict.PROVED}


# -- runs ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covering
@falling
def test_a_run_breaks_what_is_wanted_and_only_at_its_end(name):
    variation, run = NECESSITY[name], run_of(name)
    assert [step[0] for step in run.steps] == [action for _, action in steps_of(REFUTATIONS[name].path)]
    stepper = Stepper(run.universe, variation.specification.actions)
    assert stepper.holds(variation.specification.initial, run.initial)
    before = run.initial
    for number, (action, parameters, after) in enumerate(run.steps, 1):
        assert stepper.allowed(before, action, parameters, after) is None
        assert stepper.holds(wanted(variation), after) is (number < len(run.steps)), number
        before = after


@pytest.mark.slow
@pytest.mark.covering
@falling
def test_without_the_variation_there_is_no_such_run(name):
    right = replace(NECESSITY[name], instead=(), contract=SAFETY, properties={})
    assert counterexample(right).verdict == "none"


@falling
def test_the_run_replays_on_the_model(name):
    variation, run = NECESSITY[name], run_of(name)
    replayed = replay_of(variation, run)
    assert replayed.clause == REFUTATIONS[name].clause
    assert replayed.sentence
    assert replayed.without


@pytest.mark.slow
def test_the_rule_shipped_in_2_8_1_takes_few_messages():
    """Claims of older generations are discarded: 10 JoinGroup and SyncGroup requests to two owners, and
    7 steps from the decision that the right rule does not allow."""
    variation, run = NECESSITY["max_generation_only"], run_of("max_generation_only")
    assert replay_of(variation, run).requests <= 12
    assert len(run.steps) - deviation(run, specification()) + 1 <= 12
    assert run.steps[deviation(run, specification()) - 1][0] == "lead"


# -- replay --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_the_model_cannot_follow_is_told():
    """Without the switch the assignor of the model is not asked what it is asked in the run."""
    refutation, run = REFUTATIONS["silent_static_claims_stale"], run_of("silent_static_claims_stale")
    whose = [who for who, _ in steps_of(refutation.path)]
    with pytest.raises(ReplayError, match="does not follow"):
        play(run, whose, refutation.clause)


def test_a_clause_that_does_not_break_is_told():
    refutation, run = REFUTATIONS["newest_claim"], run_of("newest_claim")
    whose = [who for who, _ in steps_of(refutation.path)]
    with pytest.raises(ReplayError, match="does not follow"):
        play(run, whose, "group/instance")


def test_whose_turn_it_is():
    assert steps_of("A: start join\n -: join_phase_ends\n B: start") == [
        (0, "start"),
        (0, "join"),
        (NOBODY, "join_phase_ends"),
        (1, "start"),
    ]


# -- as text -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_finding_is_told():
    finding = examine(NECESSITY["newest_claim"])
    text = "\n".join(in_full(finding))
    assert finding.verdict == "needed"
    assert finding.run is not None
    assert "exclusive ownership, at step" in text
    assert "t-0 is owned by A and by B" in text
    assert text.startswith("\n".join(summary(finding)))
    written = data(finding)
    assert written["verdict"] == "needed"
    assert len(written["run"]) == len(finding.run.steps)
    assert written["replay"]["clause"] == "group/owner"


@pytest.mark.slow
def test_what_is_not_needed_is_told_with_the_reason():
    finding = examine(NECESSITY["member_only"])
    assert finding.verdict == "not needed"
    assert any(line.strip().startswith("kept for") for line in summary(finding))
    assert data(finding)["run"] is None
    assert list(table([finding])) == ["member_only  not needed  for safety; kept for leader/grant"]


def test_what_fails_without_a_run_is_open():
    variation = Variation(name="x", about="coordinator", sentence="")
    failed = ProofOutcome(
        theorem="invariants",
        kind="step",
        case="lead",
        goal="offered once",
        verdict=ProofVerdict.UNKNOWN,
        units=0,
        seconds=0.0,
        hypotheses=0,
    )
    assert VariationFinding(variation=variation, obligations=1, failed=(failed,)).verdict == "open"
    assert VariationFinding(variation=variation, obligations=1, failed=(failed,)).refuted == ()
    assert VariationFinding(variation=variation, obligations=1, failed=()).verdict == "not needed"
