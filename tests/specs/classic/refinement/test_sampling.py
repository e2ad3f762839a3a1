"""Samples of the executable model: what they look at, and which wrong models they notice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.cli.commands.prove import MODEL_STEPS, model_samples
from rebalance_verifier.explore.groups.sampled import CLASSIC
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.classic import callbacks, errors, member
from rebalance_verifier.model.classic.state import Member, Metadata
from rebalance_verifier.model.group.parts import NOTHING
from rebalance_verifier.model.group.setup import ConsumerConfig
from rebalance_verifier.specs.classic.refinement import sampling
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel, sampled, shares

real = member.metadata


def taken(name: str, steps: int, seed: int = 0, members: int = 2, budget: int = 4) -> SampledModel:
    size = ScenarioSize(members=members, partitions=2, budget=budget, naming="given")
    return sampled(ModelSample(group=name, setup=SCENARIOS[name].setup(size), seed=seed, steps=steps))


@pytest.mark.slow
def test_a_sample_is_of_the_logic_and_follows_from_its_seed():
    one, again, other = (taken("dynamic", 300, seed) for seed in (0, 0, 1))
    assert one.deviation is one.breach is other.deviation is None
    assert one == again
    assert 300 <= one.steps < 340
    assert (one.steps, one.runs) != (other.steps, other.runs)


def test_a_small_group_is_known_some_time():
    size = ScenarioSize(members=1, partitions=1, faults=("crash",), budget=0, naming="given")
    one = sampled(ModelSample(group="alone", setup=SCENARIOS["dynamic"].setup(size), seed=0, steps=1_000_000))
    assert one.deviation is None
    assert sampling.IDLE < one.runs < 1000
    assert one.steps < 100


def test_the_samples_of_a_proof_share_its_steps():
    samples = model_samples(1003, 7)
    assert sum(sample.steps for sample in samples) == 1003
    assert {sample.seed for sample in samples} == {7}
    assert [sample.group for sample in samples] == [group.title for group in CLASSIC]
    whole = sum(group.share for group in CLASSIC)
    for sample, group in zip(samples, CLASSIC, strict=True):
        assert abs(sample.steps - 1003 * group.share / whole) < 1
    assert model_samples(0, 7) == ()
    assert [sample.steps for sample in shares(samples[:2], 3)] == [1, 2]


def test_the_samples_of_a_proof_have_every_kind_of_group():
    setups = [sample.setup for sample in model_samples(100, 0)]
    static = {all(consumer.instance is not None for consumer in setup.consumers) for setup in setups}
    assert (
        static == {setup.keeps_log for setup in setups} == {setup.mixed for setup in setups} == {True, False}
    )
    assert {stage.eager for s in setups for c in s.consumers for stage in c.stages} == {True, False}
    every = {
        fault
        for scenario in SCENARIOS.values()
        if scenario.protocol.name == "classic"
        for fault in scenario.faults
    }
    assert every == {fault for setup in setups for fault in setup.faults}


def claims_nothing(it: Member, config: ConsumerConfig, **_: object) -> Metadata:
    return real(it, config)._replace(owned=NOTHING)


def claims_of_the_last_generation(it: Member, config: ConsumerConfig, **_: object) -> Metadata:
    return real(it, config)._replace(label=it.generation)


@pytest.mark.slow
@pytest.mark.parametrize("metadata", [claims_nothing, claims_of_the_last_generation])
def test_a_wrong_claim_is_none_of_the_logic(monkeypatch, metadata):
    monkeypatch.setattr(member, "metadata", metadata)
    samples = map(sampled, model_samples(MODEL_STEPS, 0))
    found = next(one for one in samples if one.deviation is not None)
    assert found.deviation is not None
    assert found.deviation.failure.name == "join"
    assert found.deviation.run[-1] in ("A join", "B join")
    assert found.deviation.failure.event == found.deviation.run[-1]


def test_after_a_wrong_step_what_is_proved_may_break(monkeypatch):
    monkeypatch.setattr(member, "metadata", claims_nothing)
    found = taken("dynamic", 3000, members=3, budget=3)
    assert found.deviation is not None
    assert found.breach is not None
    assert found.breach.failure.name == "revoke before assign"
    assert found.breach.failure.invariant
    assert len(found.breach.run) >= len(found.deviation.run)


def test_a_reset_that_does_not_prepare_is_noticed(monkeypatch):
    def reset(it, *, keep_id=False):
        return real_reset(it, keep_id=keep_id)._replace(prepare=False)

    real_reset = callbacks.reset
    for module in (callbacks, errors):
        monkeypatch.setattr(module, "reset", reset)
    found = taken("dynamic", 1000)
    assert found.deviation is not None
    assert "prepare" in found.deviation.failure.why


def test_a_wrong_beginning_is_noticed(monkeypatch):
    sample = model_samples(80, 0)[0]
    from rebalance_verifier.specs.classic.safety import specification
    from rebalance_verifier.specs.classic.vocabulary import UP, C

    spec = specification()
    wrong = replace(spec, initial=spec.vocabulary.close(spec.vocabulary.state().life(C) == UP))
    found = sampled(sample, wrong)
    assert found.deviation is not None
    assert (found.deviation.failure.event, found.deviation.run) == ("at first", ())
