"""Groups between the protocols in logic: proved, about something, each guard needed, as the model does it."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.sampled import MIGRATION, SampledGroup
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityFinding, examined
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, sampled_by
from rebalance_verifier.specs.consumer.necessity import run_along
from rebalance_verifier.specs.logic.prover import ProofVerdict, prove
from rebalance_verifier.specs.migration.necessity import GUARDS
from rebalance_verifier.specs.migration.proof import WITNESSES, checks, proof
from rebalance_verifier.specs.migration.refinement import MigrationRefinement
from rebalance_verifier.specs.migration.safety import specification
from rebalance_verifier.specs.protocols import PROOFS

from tests.tiers import tiered

RARE = (SampledGroup(scenario=SCENARIOS["migration"], budget=3, faults=("late request", "member removed")),)
"""A group with the faults that refused heartbeats and commits take."""

UNTAKEN = {"has_dropped", "must_drop", "raises", "returns_nothing"}
"""Actions that no run here takes: topics change, callbacks end oddly, a JoinGroup crosses a conversion."""


def test_all_obligations_are_proved():
    theorems = proof()
    outcomes = [outcome for some in prove(theorems) for outcome in some]
    assert {outcome.verdict for outcome in outcomes} == {ProofVerdict.PROVED}
    assert len(outcomes) == sum(theorem.obligations for theorem in theorems) > 900


@pytest.mark.nightly
def test_nothing_is_vacuous():
    spec = specification()
    rows = [row for _, some in examined(checks(spec)) for row in some]
    assert not [row for row in rows if row.doubtful]
    implied = {row.name for row in rows if row.finding is VacuityFinding.IMPLIED}
    assert implied == {"commit fencing", "exclusive ownership"}
    reached = {row.name for row in rows if row.kind == "action"}
    assert reached == {action.name for action in spec.actions} == set(WITNESSES)


@pytest.mark.nightly
@pytest.mark.parametrize("name", tiered(GUARDS, ["waits_for_nobody"]))
def test_without_the_guard_obligations_are_refuted_and_a_run_has_two_owners(name):
    found = PROOFS["migration"].variations[name]()
    assert found.refuted
    assert found.run is not None
    assert [step[0] for step in found.run.steps] == GUARDS[name].path.split()
    assert found.verdict == "needed"
    assert found.deviates


@pytest.mark.covering
@pytest.mark.parametrize("name", ["no_barrier_for_withheld", "downgrade_to_target"])
def test_with_the_guard_no_run_along_the_path_does(name):
    assert run_along(specification(), GUARDS[name]) is None


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", [name for name, guard in GUARDS.items() if guard.switch])
def test_a_run_of_the_model_breaks_the_same(name):
    setup = SHOWN[name].setup()
    search = fast.explore(machine(setup), rules(setup), Limits(go_on=True))
    assert "group/owner" in {breach.clause for breach in search.breaches}


@pytest.mark.nightly
def test_random_runs_of_the_model_are_runs_of_the_logic():
    taken = set()
    for setup in (group.setup() for group in (*MIGRATION, *RARE)):
        refinement = MigrationRefinement(setup)
        found = sampled_by(ModelSample(group="", setup=setup, seed=0, steps=3_000), refinement)
        assert found.deviation is None, (str(found.deviation.failure), found.deviation.run)
        taken |= {name for name, number in refinement.report.taken.items() if number}
    assert set(refinement.report.taken) - taken == UNTAKEN


REMOVED = ScenarioSize(
    members=2,
    partitions=1,
    budget=2,
    faults=("session timeout", "member removed"),
    switches=("unknown_member_admitted",),
    naming="given",
)
"""A group in which members soon come back after they were removed."""


@pytest.mark.covering
@pytest.mark.parametrize(
    ("setup", "name"),
    [
        (SHOWN["no_barrier_for_withheld"].setup(), "nothing_new"),
        (SHOWN["downgrade_to_target"].setup(), "downgraded"),
        (SCENARIOS["migration"].setup(REMOVED), "presents"),
    ],
    ids=["no_barrier_for_withheld", "downgrade_to_target", "unknown_member_admitted"],
)
def test_a_step_as_shipped_is_none_of_the_logic(setup, name):
    """And what the theorems say breaks in the model."""
    found = sampled_by(ModelSample(group="", setup=setup, seed=0, steps=4_000), MigrationRefinement(setup))
    assert found.deviation is not None
    assert found.deviation.failure.name == name
    assert found.breach is not None


@pytest.mark.parametrize("scenario", ["migration-static", "migration-failover"])
def test_what_the_logic_does_not_have_is_refused(scenario):
    with pytest.raises(ValueError, match="dynamic members, and no failover"):
        MigrationRefinement(SCENARIOS[scenario].setup(ScenarioSize()))
