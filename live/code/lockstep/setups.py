"""The group of a scenario for walks in lockstep: each member and the coordinator as its release is."""

from __future__ import annotations

from dataclasses import replace

from rebalance_verifier.explore.groups.scenarios import NamedScenario, ScenarioError, ScenarioSize
from rebalance_verifier.live.code.replay.group import REWRITTEN, CodeReleases
from rebalance_verifier.model.bugs.profiles import profile_of_code
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.group.setup import CLASSIC, Setup

NOT_PLAYED = ("slow network",)
"""Kinds of faults that lockstep does not have: its messages are under way for as long as they like."""

ALWAYS = ("session timeout", "slow member")
"""Those that it always has: one timer of Kafka is that of all who are late."""

KNOW_RACKS = "3.5.0"
"""The first release whose consumers look where replicas are (KIP-881)."""

FOLLOWS = "4.2.0"
"""The first release in which a member that revokes gives up at once what it does not subscribe to any
more."""

A_HEARTBEAT_LATER = ("4.0.0", "4.0.1", "4.1.0", "4.1.1")
"""Releases in which a partition that returns to who was to revoke it comes a heartbeat later (KAFKA-19449),
which costs time and nothing else, and so is no entry of the catalogue."""

KEEPS_ITS_EPOCH = "4.2.0"
"""The first release in which a member that is to give up more, behind what it has just given up, keeps its
epoch; before, it has the next one, which is no mistake either."""

DROPS_ANEW = "4.3.0"
"""The first release in which a member that drops what it had given up before takes a step of its record."""

REBALANCES_IF_DUE = "4.3.0"
"""The first release in which a group that a static member takes back while a target is due always rebalances
(KAFKA-20273); before, only for another subscription of that member. The generation of its answer is not the
group's then, so it joins again, and a rebalance begins: no mistake that stays."""

FIRST = "4.0.0"
"""A release whose upgrades do not note the topics of the group, so that there is another epoch with the same
request, and whose assignor gives the partitions that are over to those who are first (KAFKA-18688)."""

UNLIMITED_FAULTS = 1 << 30
"""Faults that a walk may take."""


def lockstep_setup(scenario: NamedScenario, size: ScenarioSize, releases: CodeReleases) -> Setup:
    """Return the scenario for walks: each member and the coordinator as its release is known to be.

    Raises ScenarioError for what does not fit or a release does not have, ValueError for a release without a
    profile.
    """
    scenario.refuse_stores("conform --code")
    oldest = min(releases.consumers, key=version)
    if scenario.racks and version(oldest) < version(KNOW_RACKS):
        raise ScenarioError(f"{scenario.name} is not walked with {oldest}: racks are since {KNOW_RACKS}")
    size = replace(
        size,
        profiles=tuple(profile_of_code("client", one) for one in releases.consumers),
        broker=profile_of_code("broker", max(releases.coordinator, REWRITTEN, key=version)),
        steps="fine",
        budget=UNLIMITED_FAULTS,
    )
    if scenario.protocol.name != CLASSIC:
        return served_setup(scenario, size, releases)
    if scenario.patterns:
        raise ScenarioError(
            f"{scenario.name} is not walked: Kafka's consumers in a simulation subscribe by name; "
            "consumer-patterns is, whose patterns are the coordinator's"
        )
    chosen = scenario.setup(replace(size, naming="given"))
    faults = dict.fromkeys((*chosen.faults, *ALWAYS))
    without = (*NOT_PLAYED, *(() if chosen.racks else ("racks change",)))
    return replace(chosen, faults=tuple(fault for fault in faults if fault not in without))


def served_setup(scenario: NamedScenario, size: ScenarioSize, releases: CodeReleases) -> Setup:
    """Return the setup of a consumer group (KIP-848), whose target is Kafka's to choose."""
    releases.refuse_without_consumer_groups(scenario.name)
    chosen = scenario.setup(replace(size, naming="every"))
    if "resubscribe" in chosen.faults and version(releases.coordinator) < version(FOLLOWS):
        raise ScenarioError(
            f"{scenario.name}: before {FOLLOWS} what a member holds does not follow its subscription "
            "while it revokes (KAFKA-19431), which the model does not have"
        )
    faults = dict.fromkeys((*chosen.faults, *ALWAYS))
    return replace(
        chosen, faults=tuple(faults), coordinator=decisions_at(chosen.coordinator, releases.coordinator)
    )


def decisions_at(decisions: frozenset[str], coordinator: str) -> frozenset[str]:
    """Return what a coordinator of this release decides otherwise, with what is no mistake."""
    if coordinator in A_HEARTBEAT_LATER:
        decisions |= {"own_pending_is_unreleased"}
    if version(coordinator) < version(KEEPS_ITS_EPOCH):
        # A commit at the epoch is stored for any partition. It shows where the epoch stays (N12), and where a
        # client that still reads partitions of a topic that was made anew does not claim them.
        decisions |= {"revocation_counts", "commit_any_at_epoch"}
    if version(coordinator) < version(FOLLOWS):
        decisions |= {"subscription_not_followed"}
    if version(coordinator) < version(REBALANCES_IF_DUE):
        decisions |= {"downgrade_misses_due_target"}
    if coordinator == FIRST:
        decisions |= {"upgrade_keeps_target", "upgrade_forgets_topics", "extra_by_iteration_order"}
    if version(coordinator) < version(DROPS_ANEW):
        decisions |= {"dropping_is_no_step"}
    return decisions
