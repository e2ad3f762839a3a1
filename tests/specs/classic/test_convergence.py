"""The convergence proof: its calm is that of the executable model, and each of its assumptions is needed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import z3
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.assignor import Assignor, Promise
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.specs.classic import contract, convergence
from rebalance_verifier.specs.classic import proof as proofs
from rebalance_verifier.specs.classic.proof import CALM, proof
from rebalance_verifier.specs.classic.refinement.refinement import Report
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY, A
from rebalance_verifier.specs.logic.language import leaves
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge
from rebalance_verifier.specs.logic.ranking import MEASURE
from rebalance_verifier.specs.logic.specification import Specification

from tests.specs.classic.refinement.explorations import check_exploration


def with_calm() -> Specification:
    """The protocol under the whole contract, with calm among what is checked of every state."""
    spec = specification(contract={**contract.SAFETY, **contract.LIVENESS})
    calm = {name: VOCABULARY.close(formula) for name, formula in convergence.CALM.items()}
    common = [
        name for name, formula in calm.items() if any(leaf.eq(convergence.common) for leaf in leaves(formula))
    ]
    together = z3.And([calm.pop(name) for name in common])
    calm["a common assignor"] = z3.Exists([A], z3.substitute(together, (convergence.common, A)))
    return replace(spec, invariants={**spec.invariants, **calm})


def explored(scenario: str, members: int, partitions: int, **more: object) -> Report:
    """A group without faults; a failover is among the kinds, so that the coordinator keeps its log."""
    size = ScenarioSize(
        members=members,
        partitions=partitions,
        faults=("failover",),
        budget=0,
        steps="fine",
        **more,  # type: ignore[arg-type]
    )
    return check_exploration(SCENARIOS[scenario].setup(size), with_calm())


@pytest.mark.covering
@pytest.mark.parametrize(
    ("scenario", "members", "partitions"),
    [
        ("dynamic", 2, 2),
        ("mixed", 2, 2),
        ("eager", 2, 2),
        ("static", 2, 2),
        pytest.param("dynamic", 3, 3, marks=pytest.mark.slow),
        pytest.param("mixed", 3, 3, marks=pytest.mark.nightly),
        pytest.param("static", 3, 3, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow
def test_a_group_without_faults_is_calm_and_its_assignor_keeps_the_contract(scenario, members, partitions):
    report = explored(scenario, members, partitions)
    assert report.failure is None, str(report.failure)
    assert report.taken["lead"] > 0
    assert report.taken["leader_syncs"] > 0


@dataclass(frozen=True)
class HotPotato:
    """Safe and never content: at every rebalance it takes one partition away from whoever claims it."""

    name: str = "cooperative-sticky"
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    promises: frozenset[Promise] = frozenset()

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        owner = {p: member for member in group for p in group[member].owned_partitions}
        hot = min(owner, default=None)
        answer: dict[str, list[TopicPartition]] = {member: [] for member in group}
        for topic, partitions in cluster.topics.items():
            for index in range(len(partitions)):
                p = TopicPartition(topic, index)
                if p not in owner:
                    answer[min(answer, key=lambda member: len(answer[member]))].append(p)
                elif p != hot:
                    answer[owner[p]].append(p)
        return {member: tuple(parts) for member, parts in answer.items()}

    def user_data(self, owned, generation):
        return None


def hot_potato(name: str, switches: tuple[str, ...]) -> Assignor:
    return HotPotato()


@pytest.mark.slow
def test_an_assignor_that_never_settles_breaks_the_contract():
    report = explored("dynamic", 2, 2, factory=hot_potato)
    assert report.failure is not None
    assert "lead" in str(report.failure)


def test_the_measure_names_every_step_that_is_possible():
    spec = specification()
    steps = {action.name for action in spec.actions if not action.fault}
    assert set(convergence.DECREASES) <= steps
    names = {still.name for still in convergence.MEASURE}
    assert {name for sets in convergence.DECREASES.values() for name in sets} <= names


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("clause", "kind", "action", "goal"),
    [
        ("stays", CALM, "lead", "what was assigned stays"),
        ("complete", CALM, "lead", "what is free is offered"),
        ("subscribers", CALM, "lead", "offered to subscribers"),
    ],
)
def test_each_clause_for_convergence_is_needed(monkeypatch, clause, kind, action, goal):
    """Without it the decision of a leader may break what the proof rests on; with it none does."""
    verdicts = []
    for clauses in (contract.LIVENESS, {k: v for k, v in contract.LIVENESS.items() if k != clause}):
        monkeypatch.setattr(proofs, "LIVENESS", clauses)
        theorem = next(theorem for theorem in proof() if theorem.name == "convergence")
        case = next(case for case in theorem.cases if (case.kind, case.name) == (kind, action))
        narrow = replace(case, goals={goal: case.goals[goal]})
        verdicts.append(next(iter(discharge(theorem.vocabulary, narrow, limit=2_000_000))).verdict)
    assert verdicts[0] is ProofVerdict.PROVED
    assert verdicts[1] is not ProofVerdict.PROVED


@pytest.mark.slow
def test_a_step_that_undoes_another_is_not_accepted(monkeypatch):
    """A measure that leaves out what a step does there is no measure."""
    smaller = {**convergence.DECREASES, "partitions_assigned": ("JoinGroup arrives",)}
    monkeypatch.setattr(convergence, "DECREASES", smaller)
    theorem = next(theorem for theorem in proof() if theorem.name == "convergence")
    case = next(case for case in theorem.cases if (case.kind, case.name) == (MEASURE, "partitions_assigned"))
    goal = "less of: JoinGroup arrives"
    answer = next(
        iter(discharge(theorem.vocabulary, replace(case, goals={goal: case.goals[goal]}), limit=2_000_000))
    )
    assert answer.verdict is not ProofVerdict.PROVED
