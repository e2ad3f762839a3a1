"""A proof's verdict does not depend on its seed."""

from __future__ import annotations

from itertools import combinations

import pytest
from rebalance_verifier.cli.commands.prove import MODEL_STEPS, model_samples
from rebalance_verifier.explore.groups.sampled import SAMPLED
from rebalance_verifier.model.classic.group import FAULTS as CLASSIC_KINDS
from rebalance_verifier.model.consumer.group import FAULTS as CONSUMER_KINDS
from rebalance_verifier.model.migration.group import FAULTS as MIGRATION_KINDS
from rebalance_verifier.specs.classic.refinement.refinement import Refinement
from rebalance_verifier.specs.consumer.refinement import ConsumerRefinement
from rebalance_verifier.specs.migration.refinement import MigrationRefinement
from rebalance_verifier.specs.protocols import PROOFS

from tests.specs.classic.refinement.seeds import doubts, under_seeds

KINDS = {"classic": CLASSIC_KINDS, "consumer": CONSUMER_KINDS, "migration": MIGRATION_KINDS}
NOT_IN_THE_LOGIC = {
    "classic": set(),
    "consumer": {"left behind"},
    "migration": {"failover", "topic made anew"},
}
"""One heartbeat of a process is under way at a time. A classic group on its way does not fail over, and its
topics stay what they are."""

REFINEMENTS = {"classic": Refinement, "consumer": ConsumerRefinement, "migration": MigrationRefinement}


@pytest.mark.parametrize("protocol", SAMPLED)
def test_the_logic_has_each_group_of_the_sample(protocol):
    for group in SAMPLED[protocol]:
        REFINEMENTS[protocol](group.setup())


@pytest.mark.parametrize("protocol", SAMPLED)
def test_every_two_kinds_of_faults_are_in_one_group(protocol):
    kinds = [kind for kind in KINDS[protocol] if kind not in NOT_IN_THE_LOGIC[protocol]]
    together = [set(group.setup().faults) for group in SAMPLED[protocol]]
    assert not [pair for pair in combinations(kinds, 2) if not any(set(pair) <= one for one in together)]


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", SAMPLED)
def test_what_is_kept_of_a_seed_changes_nothing_of_the_next(protocol):
    check = PROOFS[protocol].sampled
    *_, (seed, rows) = under_seeds(protocol, (5, 6), 300)
    assert rows == [check(sample) for sample in model_samples(300, seed, protocol)]


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", SAMPLED)
def test_some_seeds(protocol):
    for seed, rows in under_seeds(protocol, range(2)):
        assert doubts(rows) == [], seed


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", SAMPLED)
def test_few_steps_are_too_few(protocol):
    [(_, rows)] = under_seeds(protocol, (0,), MODEL_STEPS // 20)
    assert "too little was met" in doubts(rows)[0]


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", SAMPLED)
def test_two_hundred_seeds(protocol):
    """A proof of each would say PROVED: with the obligations, which ``test_the_protocol_is_proved`` has."""
    wrong = {seed: doubts(rows) for seed, rows in under_seeds(protocol, range(200))}
    assert {seed: why for seed, why in wrong.items() if why} == {}
