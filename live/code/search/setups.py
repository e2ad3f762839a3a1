"""The group of a scenario for a search on Kafka's own code."""

from __future__ import annotations

from dataclasses import replace

from rebalance_verifier.explore.groups.scenarios import NamedScenario, ScenarioError, ScenarioSize
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.model.bugs.profiles import client, profile_of_code
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, Consumer, ConsumerConfig, Setup


def search_setup(scenario: NamedScenario, size: ScenarioSize, releases: CodeReleases) -> Setup:
    """Return the group of a scenario.

    Raises ScenarioError for what does not fit or a release does not have, ValueError for a release without a
    profile.
    """
    scenario.refuse_stores("explore --on")
    return as_released(scenario.setup(size), releases, scenario.name)


def as_released(setup: Setup, releases: CodeReleases, what: str) -> Setup:
    """Return a group in which the model's clients, of the consumer protocol, decide as their releases do;
    ``what`` is to be played.

    Raises ScenarioError where a release does not speak that protocol, ValueError for one without a profile.
    """
    if setup.has_patterns:
        raise ScenarioError(
            f"{what}: Kafka's own code is searched with members that subscribe by name, not by pattern"
        )
    if setup.protocol == CLASSIC:
        return setup
    served = [slot for slot, one in enumerate(setup.consumers) if any(map(_is_served, one.stages))]
    releases.refuse_without_consumer_groups(what, served)
    consumers = (_released(one, releases.of(slot)) for slot, one in enumerate(setup.consumers))
    return replace(setup, consumers=tuple(consumers))


def _is_served(stage: ConsumerConfig) -> bool:
    return stage.group_protocol == CONSUMER


def _released(consumer: Consumer, release: str) -> Consumer:
    if not any(map(_is_served, consumer.stages)):
        return consumer
    known = client(profile_of_code("client", release)).decisions
    stages = (replace(one, decisions=known) if _is_served(one) else one for one in consumer.stages)
    return replace(consumer, stages=tuple(stages))
