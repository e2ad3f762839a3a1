"""What a counterexample takes that groups seldom see, so that nobody takes a finding for more than it is."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance.model.values import RebalanceProtocol, TopicPartition
from rebalance.properties.assignors.scenarios import Fault, FaultKind, Scenario, SetTopic, UserData
from rebalance.properties.assignors.wording import listed


def unusual_preconditions(scenario: Scenario) -> list[str]:
    """Half a sentence for each.

    In EAGER the claims are what an assignor remembers in its user data: that those are old is no news, and
    neither is a claim to a topic that the member has dropped.
    """
    found = [*_gone(scenario), *_repeated(scenario), *_shared(scenario)]
    found += [*_shrunk(scenario), *_ancient(scenario)]
    if scenario.protocol is RebalanceProtocol.COOPERATIVE:
        found += [*_dropped(scenario), *_returning(scenario)]
    return found


def _gone(scenario: Scenario) -> Iterator[str]:
    claimed = sorted({p for member in scenario.members for p in member.owned})
    gone = [p for p in claimed if p.partition >= len(scenario.topics.get(p.topic, ()))]
    if gone:
        yield f"{listed(gone)} is claimed and does not exist: the topic was deleted, or made again smaller"


def _repeated(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if len(set(member.owned)) < len(member.owned):
            yield f"{member.id} claims a partition twice"


def _shrunk(scenario: Scenario) -> Iterator[str]:
    sizes = {topic: len(partitions) for topic, partitions in scenario.topics.items()}
    for event in (event for events in scenario.rounds for event in events):
        if isinstance(event, SetTopic):
            size = len(event.partitions or ())
            if event.partitions is not None and size < sizes.get(event.topic, 0):
                yield f"{event.topic} is deleted and made again with fewer partitions"
            sizes[event.topic] = max(size, sizes.get(event.topic, 0))


def _ancient(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if member.user_data is UserData.STICKY_V0:
            yield f"{member.id} has user data of a sticky assignor before KIP-341, without a generation"


def _shared(scenario: Scenario) -> Iterator[str]:
    claimants: dict[tuple[TopicPartition, int], list[str]] = {}
    eager = scenario.protocol is RebalanceProtocol.EAGER
    for member in scenario.members:
        for partition in dict.fromkeys(member.owned):
            claimants.setdefault((partition, member.generation if eager else 0), []).append(member.id)
    for (partition, _), members in sorted(claimants.items()):
        if len(members) > 1:
            yield f"{partition} is claimed by {listed(members)} at once"


def _dropped(scenario: Scenario) -> Iterator[str]:
    for member in scenario.members:
        if foreign := sorted({p for p in member.owned if p.topic not in member.topics}):
            yield f"{member.id} claims {listed(foreign)} and does not subscribe to it"


def _returning(scenario: Scenario) -> Iterator[str]:
    events = [event for events in scenario.rounds for event in events]
    ghosts = sorted({e.id for e in events if isinstance(e, Fault) and e.kind is FaultKind.GHOST})
    if ghosts:
        yield f"{listed(ghosts)} keeps its claims when it is removed, as Java members did before KAFKA-12983"
