"""One instance, one member: what breaks it, and what a second process of the instance comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.specs.classic.instances import INVARIANTS_OF_INSTANCES, SECOND
from rebalance_verifier.specs.classic.necessity.vacuity import SIZES
from rebalance_verifier.specs.classic.necessity.variations_group import static_replace_only_stable
from rebalance_verifier.specs.classic.necessity.witnesses import NEVER, path_to
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY
from rebalance_verifier.specs.logic.bounded import StepRelations, Unrolling
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.theorems import inductive


def broken(spec: Specification, action: str) -> set[str]:
    """What that action breaks of the invariants of instances."""
    own = {name: VOCABULARY.close(formula) for name, formula in INVARIANTS_OF_INSTANCES.items()}
    case = next(case for case in inductive(spec, own) if case.name == action)
    answers = discharge(VOCABULARY, case, limit=2_000_000)
    return {answer.goal for answer in answers if answer.verdict is not ProofVerdict.PROVED}


@pytest.mark.slow
def test_an_instance_that_is_known_and_becomes_another_member_is_noticed():
    assert not broken(specification(), "join_of_static")
    assert broken(specification(static_replace_only_stable), "join_of_static") == {
        "one record of an instance"
    }


FENCED = {
    "heartbeat_of_fenced": (*path_to("sync_answered"), "sync_answered", "second_joins"),
    "late_answer_fails": (
        *(*path_to("heartbeat_late"), "heartbeat_late", "second_joins", "late_request_of_fenced"),
    ),
    "join_of_fenced": (*path_to("join_of_member"), "second_joins"),
    "join_of_replaced": (*path_to("append_fails"), "second_joins"),
    "sync_of_fenced": (*path_to("leader_syncs"), "second_joins"),
}
"""How each of the actions comes about that no run of one process for each instance comes to."""


def test_what_is_fenced_is_what_one_process_never_comes_to():
    assert FENCED.keys() == NEVER.keys()


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("action", FENCED)
def test_the_elder_of_two_processes_is_fenced(action):
    spec = specification()
    both = replace(spec, actions=(*spec.actions, *SECOND))
    unrolling = Unrolling(StepRelations(both, SIZES))
    unrolling.require(spec.initial)
    for name in (*FENCED[action], action):
        unrolling.step(both.action(name))
    run = unrolling.answer().run
    assert run is not None
    stepper, before = Stepper(run.universe, both.actions), run.initial
    for name, parameters, after in run.steps:
        assert stepper.allowed(before, name, parameters, after) is None
        before = after
