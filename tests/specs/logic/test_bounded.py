"""Runs found by the solver: the explicit evaluator has to agree with each step."""

from __future__ import annotations

from functools import cache

import pytest
from rebalance_verifier.specs.classic.necessity.witnesses import path_to
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY, C, D, M, P, none
from rebalance_verifier.specs.logic.bounded import SearchAnswer, SpecRun, StepRelations, Unrolling
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.specification import Specification
from z3 import And, Exists, Not

S = VOCABULARY.state()
SIZES = {"Consumer": 2, "Member": 3, "Partition": 2, "Generation": 4, "Assignor": 2}

SETTLES = (
    "start", "partitions_lost", "join", "join_refused_without_id", "id_given",
    "join", "join_with_given_id", "join_phase_ends", "join_answered", "lead",
    "leader_syncs", "sync_answered", "partitions_assigned",
)  # fmt: skip
"""One consumer settles alone."""


@cache
def protocol() -> Specification:
    return specification()


def follow(path, goal=None, sizes=SIZES) -> SearchAnswer:
    """A run by these actions, that ends in a state with the goal."""
    unrolling = Unrolling(StepRelations(protocol(), sizes))
    unrolling.require(protocol().initial)
    for name in path:
        unrolling.step(protocol().action(name))
    return unrolling.answer(goal)


def checked(spec: Specification, run: SpecRun | None) -> SpecRun:
    """The run, if the explicit evaluator allows each of its steps."""
    assert run is not None
    stepper, before = Stepper(run.universe, spec.actions), run.initial
    assert stepper.holds(spec.initial, before)
    assert all(stepper.holds(axiom, before) for axiom in spec.axioms.values())
    for name, parameters, after in run.steps:
        assert stepper.allowed(before, name, parameters, after) is None
        before = after
    return run


def last(run: SpecRun):
    return run.steps[-1][2] if run.steps else run.initial


@pytest.mark.slow
def test_a_run_along_a_path():
    answer = follow(SETTLES, Exists([P], S.since(C, P) != none))
    assert answer.verdict == "none"  # not for every consumer
    answer = follow(SETTLES, Exists([C, P], S.since(C, P) != none))
    assert answer.verdict == "run"
    run = checked(protocol(), answer.run)
    assert [name for name, _, _ in run.steps] == list(SETTLES)
    (owner,) = run.steps[0][1]
    partitions = run.universe.domains["Partition"]
    none_ = run.universe.tables["none"][0]
    assert any(run.universe.read(last(run), "since", owner, p) != none_ for p in partitions)


@pytest.mark.parametrize(
    ("path", "goal", "consumers"),
    [
        (["start", "start"], None, 1),
        (["start", "join"], None, 2),
        (SETTLES, Exists([C, D, P], And(C != D, S.since(C, P) != none, S.since(D, P) != none)), 2),
        (["start", "crash"], Exists([C], S.subscribes(C)), 2),
    ],
)
def test_what_no_run_does(path, goal, consumers):
    assert follow(path, goal, {**SIZES, "Consumer": consumers}).verdict == "none"


def test_each_step_has_parameters_of_its_own():
    run = checked(protocol(), follow(["start", "start"]).run)
    assert {parameters for _, parameters, _ in run.steps} == {(0,), (1,)}
    run = checked(protocol(), follow(["start", "pause", "resume"]).run)
    assert len({parameters for _, parameters, _ in run.steps}) == 1


@pytest.mark.slow
def test_a_long_path():
    """Two members settle: twenty steps."""
    path = path_to("sync_parked_answered")
    assert len(path) > 15
    run = checked(protocol(), follow(path).run)
    assert follow(path, Not(Exists([M], S.synced(M)))).verdict == "none"
    assert len(run.steps) == len(path)
