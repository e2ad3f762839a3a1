"""Every step of the executable model of a consumer group is a path of steps of the logic."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.sampled import CONSUMER, SampledGroup
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel, sampled_by
from rebalance_verifier.specs.consumer.refinement import ConsumerRefinement

UNTAKEN = {"has_dropped"}
"""What these runs do not come to: a member drops what it does not subscribe to any more and has not got."""

RARE = (
    SampledGroup(scenario=SCENARIOS["consumer"], budget=3, faults=("late request", "member removed")),
    SampledGroup(scenario=SCENARIOS["consumer-topics"], faults=("resubscribe",)),
)
"""Groups with the faults that refused commits take, and subscriptions that change in a revocation."""


def looked_at(setup: Setup, steps: int, seed: int = 0) -> tuple[SampledModel, dict[str, int]]:
    refinement = ConsumerRefinement(setup)
    found = sampled_by(ModelSample(group="", setup=setup, seed=seed, steps=steps), refinement)
    return found, dict(refinement.report.taken)


@pytest.mark.nightly  # `rebalance prove --group-protocol consumer` does so for docs/explanation/proof.md
def test_random_runs_are_runs_of_the_logic_and_take_every_action_but_one():
    """In step all the time, and the assignor of the model keeps what convergence assumes of it."""
    taken = set()
    for setup in (group.setup() for group in (*CONSUMER, *RARE)):
        found, counted = looked_at(setup, 6_000)
        assert found.deviation is None, (str(found.deviation.failure), found.deviation.run)
        assert found.steps >= 6_000
        taken |= {name for name, number in counted.items() if number}
    assert set(counted) - taken == UNTAKEN


@pytest.mark.nightly
def test_many_random_runs_are_runs_of_the_logic():
    for setup in (group.setup() for group in CONSUMER):
        for seed in range(3):
            sample = ModelSample(group="", setup=setup, seed=seed, steps=100_000)
            found = sampled_by(sample, ConsumerRefinement(setup))
            assert found.deviation is None, (str(found.deviation.failure), found.deviation.run)


@pytest.mark.covering
@pytest.mark.parametrize(
    ("switch", "name", "breach"),
    [
        ("claims_reconciled_only", "full_heartbeat", True),
        ("no_rejoin_flag", "refused", True),
        ("heartbeat_while_fenced", "join", True),
        ("ignore_current_epoch", "nothing_new", True),
        ("previous_epoch_overwritten", "nothing_new", False),
        ("reject_epoch0_of_known", "unreleased", False),
        ("group_not_found_fatal", "refused", False),
        ("commit_epoch_equality", "commit_refused", False),
    ],
)
def test_a_step_as_shipped_is_none_of_the_logic(switch, name, breach):
    """And where it breaks safety, so do the properties of the theorems in the model. With seed 0 that takes
    ``no_rejoin_flag`` 5,357 steps."""
    found, _ = looked_at(SHOWN[switch].setup(), 4_000, seed=1)
    assert found.deviation is not None
    assert found.deviation.failure.name == name
    assert (found.breach is not None) is breach


def test_classic_members_are_none_of_the_logic():
    with pytest.raises(ValueError, match="members of the consumer protocol only"):
        ConsumerRefinement(SCENARIOS["migration"].setup(ScenarioSize()))
