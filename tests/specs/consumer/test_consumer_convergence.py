"""Convergence of the consumer protocol: what it assumes is needed, and a wrong measure is not accepted."""

from __future__ import annotations

import pytest
import z3
from rebalance_verifier.specs.consumer import convergence, necessity
from rebalance_verifier.specs.consumer import member as client
from rebalance_verifier.specs.consumer.convergence import (
    DECREASES,
    IN_VAIN,
    MEASURE,
    PER_TARGET,
    SITUATIONS,
    TAKES,
    WIRE,
    most_heartbeats,
    settled,
)
from rebalance_verifier.specs.consumer.order import CONTRACT, assuming
from rebalance_verifier.specs.consumer.safety import specification
from rebalance_verifier.specs.consumer.vocabulary import IDLE, VOCABULARY
from rebalance_verifier.specs.logic.bounded import SpecRun, StepRelations, run_by
from rebalance_verifier.specs.logic.language import After, State, Term
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.varying import instead_of

from tools.state_space import StateSpace


def refuted(spec: Specification, name: str, contract: tuple[str, ...] = tuple(CONTRACT)) -> set[str]:
    """The goals of that theorem that are refuted."""
    [theorem] = [one for one in convergence.convergence(spec, contract) if one.name == name]
    answers = (answer for case in theorem.cases for answer in discharge(VOCABULARY, case))
    return {answer.goal for answer in answers if answer.verdict is ProofVerdict.REFUTED}


# -- the measure ---------------------------------------------------------------------------------------


def test_every_step_but_faults_is_measured_and_what_is_in_vain_changes_more_than_the_wire():
    spec = specification()
    assert set(DECREASES) == {action.name for action in spec.actions if not action.fault}
    names = {ranking.name for ranking in MEASURE}
    assert {name for sets in DECREASES.values() for name in sets} <= names
    assert {name for sets in TAKES.values() for name in sets} <= {ranking.name for ranking in PER_TARGET}
    assert set(IN_VAIN) <= set(DECREASES)
    assert set(WIRE) <= set(spec.action("given").updates)
    possible = {name for situation in SITUATIONS for name in situation.steps}
    assert possible == {name for name, sets in DECREASES.items() if sets} | {"unknown"}


@pytest.mark.nightly
def test_a_set_that_a_step_does_not_make_smaller_is_refused(monkeypatch):
    monkeypatch.setattr(convergence, "DECREASES", {**DECREASES, "begin": ("reconciliations",)})
    assert "less of: reconciliations" in refuted(specification(), "convergence")


def test_a_measure_in_the_wrong_order_is_refused(monkeypatch):
    """An acknowledgement makes news for the next heartbeat, so it has to weigh more."""
    names = [ranking.name for ranking in MEASURE]
    one, other = names.index("reconciliations"), names.index("acknowledgements")
    turned = list(MEASURE)
    turned[one], turned[other] = turned[other], turned[one]
    monkeypatch.setattr(convergence, "MEASURE", tuple(turned))
    assert refuted(specification(), "convergence") == {"no more of: acknowledgements"}


# -- what is assumed -----------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("clause", "goals"),
    [
        ("exclusive", {"everybody is at the group's epoch", "everybody owns its target"}),
        ("complete", {"every subscribed partition is owned"}),
    ],
)
def test_each_clause_of_the_contract_is_needed(clause, goals):
    """Without it what is called settled is not: nothing is left to be done, and not everything is owned."""
    found = refuted(specification(), "convergence", tuple(name for name in CONTRACT if name != clause))
    assert found
    assert found & goals


@instead_of(client.disconnected)
def _not_noticed(s: State, t: After, m: Term) -> None:
    client.put(t, m, IDLE)


@instead_of(client.acknowledge)
def _never_acknowledged(s: State, t: After, m: Term) -> None:
    client.acknowledge(s, t, m)
    t.unsent[m] = s.unsent(m)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("instead", "goal"),
    [
        (_not_noticed, "its assignment is known"),
        (_never_acknowledged, "what is pending will be acknowledged"),
    ],
)
def test_a_client_that_does_not_come_back_into_step_is_noticed(instead, goal):
    assert goal in refuted(specification(instead), "in step")


# -- fairness ------------------------------------------------------------------------------------------


def settles_without(run: SpecRun, spec: Specification, never: tuple[str, ...]) -> bool:
    """Whether any run without faults from its end, but for these steps, comes to where all is settled."""
    steps = [action for action in spec.actions if not action.fault and action.name not in never]
    space = StateSpace(run.universe, steps)
    end = z3.And(*VOCABULARY.closed(settled(VOCABULARY.state())).values())
    state = run.steps[-1][2]
    seen, waiting = {state}, [state]
    while waiting:
        state = waiting.pop()
        if space.holds(end, state):
            return True
        for _, _, after in space.successors(state):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return False


COMES = "start join joined retargeted"
"""Another one joins, for whom there is a target."""

MOVES = f"{necessity.OWNS} acknowledge {COMES} full_heartbeat must_revoke answered"
"""A member owns something, and hears that it has to revoke it."""


@pytest.mark.covering(by=lambda never, path: len(path.split()) > 4)
@pytest.mark.parametrize(
    ("never", "path"),
    [
        ("expired", f"{necessity.OWNS} acknowledge ends"),
        ("heartbeat", f"{necessity.OWNS} acknowledge full_heartbeat nothing_new answered raised"),
        ("full_heartbeat", f"{necessity.OWNS} acknowledge raised"),
        ("answered", "start join joined retargeted given"),
        ("lose", f"{necessity.OWNS} poll_too_late"),
        ("begin", MOVES),
        ("revoke", f"{MOVES} begin"),
        ("acknowledge", f"{MOVES} begin revoke"),
        ("retargeted", f"{necessity.OWNS} acknowledge raised"),
        ("unheard", "start join joined given ends"),
    ],
)
def test_each_kind_of_fairness_is_needed(never, path):
    """Where a step is possible and never taken the group may not settle, whatever else goes on; and where
    every step is taken it does."""
    spec = assuming(specification())
    run = run_by(StepRelations(spec, necessity.SIZES), path.split())
    assert run is not None
    assert not settles_without(run, spec, (never,))
    assert settles_without(run, spec, ())


# -- the bound -----------------------------------------------------------------------------------------


def test_the_bound_grows_with_who_comes_and_who_goes():
    assert most_heartbeats(2, 3) < most_heartbeats(2, 3, outside=1) < most_heartbeats(2, 3, outside=1, gone=1)
    assert len(PER_TARGET) == 5
