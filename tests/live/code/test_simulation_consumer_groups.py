"""Consumer groups (KIP-848) in a simulation: played members, what the coordinator knows, conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rebalance_verifier.live.code.answers import ServedGroup, SimulationRequest, SimulationResponse
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationMember
from rebalance_verifier.model.bugs.releases import NEWEST

pytestmark = pytest.mark.slow

RELEASES = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST)
FIRST = ("4.0.0", "4.1.0")
"""In which a partition that returns comes a heartbeat later (KAFKA-19449)."""
AT_ONCE = {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0}


@pytest.fixture(scope="module")
def jvm() -> Iterator[Simulation]:
    with Simulation((*FIRST, *RELEASES), [NEWEST]) as simulation:
        yield simulation


def made(simulation: Simulation, coordinator: str = NEWEST, **config: Any) -> None:
    members = [SimulationMember(release=NEWEST, client=name) for name in ("A", "C", "D")]
    simulation.create(coordinator, members, {"t": 4}, AT_ONCE | config)


def heartbeat(simulation: Simulation, member: int, epoch: int, **fields: Any) -> SimulationResponse:
    if epoch == 0:
        fields = {"topics": ["t"], "partitions": [], "rebalance_ms": 60_000} | fields
    api = "CONSUMER_GROUP_HEARTBEAT"
    [request] = simulation.command(
        "send", member=member, api=api, member_id=f"m{member}", generation=epoch, **fields
    )
    assert isinstance(request, SimulationRequest)
    events = [
        one for one in simulation.command("deliver", id=request.id) if isinstance(one, SimulationResponse)
    ]
    [answer] = [one for one in events if one.member == member]
    simulation.command("respond", id=answer.id)
    return answer


def group(simulation: Simulation) -> ServedGroup:
    found = simulation.state().coordinator.consumer
    assert found is not None
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("release", RELEASES)
def test_two_members_share_a_topic_and_a_partition_waits_for_its_owner(jvm: Simulation, release: str) -> None:
    made(jvm, release)
    first = heartbeat(jvm, 1, 0)
    everything = frozenset({"t-0", "t-1", "t-2", "t-3"})
    assert (first.error, first.assignment) == ("NONE", everything)
    assert first.generation is not None
    second = heartbeat(jvm, 2, 0)
    assert second.assignment == frozenset()
    less = heartbeat(jvm, 1, first.generation)
    assert less.assignment is not None
    assert len(less.assignment) == 2
    served = {one.id: one for one in group(jvm).members}
    assert served["m1"].state == "UNREVOKED_PARTITIONS"
    assert served["m1"].pending == everything - less.assignment
    heartbeat(jvm, 1, first.generation, partitions=sorted(less.assignment))
    given = heartbeat(jvm, 2, second.generation or 0, partitions=[])
    assert given.assignment == everything - less.assignment
    assert group(jvm).state == "Stable"
    assert {one.target for one in group(jvm).members} == {less.assignment, everything - less.assignment}


@pytest.mark.parametrize("release", RELEASES)
def test_a_heartbeat_that_was_overtaken_releases_what_its_sender_consumes(
    jvm: Simulation, release: str
) -> None:
    """Two owners, by one connection that broke: docs/results/findings.md."""
    made(jvm, release)
    first = heartbeat(jvm, 0, 0)
    heartbeat(jvm, 1, 0)
    less = heartbeat(jvm, 0, first.generation or 0)
    everything = frozenset({"t-0", "t-1", "t-2", "t-3"})
    assert (first.assignment, less.generation) == (everything, first.generation)
    # It has revoked the others, says so, and its connection breaks: the request is left behind.
    kept = sorted(less.assignment or ())
    confirms: dict[str, Any] = {"api": "CONSUMER_GROUP_HEARTBEAT", "member_id": "m0", "partitions": kept}
    [behind] = jvm.command("send", member=0, generation=first.generation, **confirms)
    assert isinstance(behind, SimulationRequest)
    # The other leaves, and on a new connection all is its own again, in a newer epoch.
    heartbeat(jvm, 1, -1)
    again = heartbeat(jvm, 0, first.generation or 0, topics=["t"], partitions=kept, rebalance_ms=60_000)
    assert (again.error, again.assignment) == ("NONE", first.assignment)
    newcomer = heartbeat(jvm, 2, 0)
    assert newcomer.assignment == frozenset(), "they are the first one's"
    jvm.command("deliver", id=behind.id)  # nobody hears the answer
    given = heartbeat(jvm, 2, newcomer.generation or 0)
    assert given.assignment
    assert given.assignment < everything, "and the first one consumes them"
    commit = {"api": "OFFSET_COMMIT", "member_id": "m0", "partitions": sorted(given.assignment)[:1]}
    jvm.command("send", member=0, generation=again.generation, **commit)
    [answer] = [one for one in jvm.command("deliver", member=0) if isinstance(one, SimulationResponse)]
    assert answer.error == "STALE_MEMBER_EPOCH", "its commits are refused"
    assert heartbeat(jvm, 0, again.generation or 0).error == "FENCED_MEMBER_EPOCH", "and its next heartbeat"


def left_behind(simulation: Simulation, member: int, epoch: int, **fields: Any) -> int:
    """A heartbeat whose connection breaks: its number, by which it arrives later."""
    said: dict[str, Any] = {"api": "CONSUMER_GROUP_HEARTBEAT", "member_id": f"m{member}"} | fields
    [request] = simulation.command("send", member=member, generation=epoch, **said)
    assert isinstance(request, SimulationRequest)
    return request.id


FULL: dict[str, Any] = {"topics": ["t"], "rebalance_ms": 60_000}
"""What a heartbeat carries besides when the answer to the one before was lost."""


@pytest.mark.parametrize("release", [*FIRST, *RELEASES])
def test_a_join_that_was_overtaken_releases_what_its_sender_consumes(jvm: Simulation, release: str) -> None:
    """The smallest: epoch 0 says that nothing is owned, and of a member that is known it is believed."""
    made(jvm, release)
    behind = left_behind(jvm, 0, 0, partitions=[], **FULL)
    owner = heartbeat(jvm, 0, 0)
    newcomer = heartbeat(jvm, 2, 0)
    assert (len(owner.assignment or ()), newcomer.assignment) == (4, frozenset())
    jvm.command("deliver", id=behind)
    given = heartbeat(jvm, 2, newcomer.generation or 0)
    assert given.assignment, "and the first one consumes it"
    assert heartbeat(jvm, 0, owner.generation or 0).error == "FENCED_MEMBER_EPOCH"


@pytest.mark.parametrize("release", [*FIRST, *RELEASES])
def test_so_does_one_that_was_overtaken_at_the_members_present_epoch(jvm: Simulation, release: str) -> None:
    """To believe only what is shown at the present epoch does not help: it stays when more is given."""
    made(jvm, release)
    by_name: dict[str, Any] = {"assignor": "range"}
    first = heartbeat(jvm, 0, 0, **by_name)
    second = heartbeat(jvm, 2, 0, **by_name)
    assert second.assignment == frozenset()
    behind = left_behind(jvm, 2, second.generation or 0, partitions=[], **FULL)
    kept = heartbeat(jvm, 0, first.generation or 0).assignment or frozenset()
    heartbeat(jvm, 0, first.generation or 0, partitions=sorted(kept))
    owner = heartbeat(jvm, 2, second.generation or 0, partitions=[], **FULL)
    assert (owner.generation, owner.assignment) == (second.generation, frozenset({"t-2", "t-3"}))
    newcomer = heartbeat(jvm, 1, 0, **by_name)
    assert newcomer.assignment == frozenset()
    jvm.command("deliver", id=behind)
    given = heartbeat(jvm, 1, newcomer.generation or 0)
    assert given.assignment == frozenset({"t-2"}), "and the other one consumes it"
    assert heartbeat(jvm, 2, owner.generation or 0).error == "FENCED_MEMBER_EPOCH"


@pytest.mark.parametrize("release", [*FIRST, *RELEASES])
def test_one_that_says_nothing_takes_the_news_with_it(jvm: Simulation, release: str) -> None:
    """Its answer is the only one with the new assignment, and its sender, who waits for none, is expelled."""
    made(jvm, release)
    owner = heartbeat(jvm, 0, 0)
    behind = left_behind(jvm, 0, owner.generation or 0)
    heartbeat(jvm, 0, owner.generation or 0, partitions=sorted(owner.assignment or ()), **FULL)
    newcomer = heartbeat(jvm, 2, 0)
    jvm.command("deliver", id=behind)
    for _ in range(3):
        assert heartbeat(jvm, 0, owner.generation or 0).assignment is None
        assert heartbeat(jvm, 2, newcomer.generation or 0).assignment is None
    assert {one.id: one.state for one in group(jvm).members}["m0"] == "UNREVOKED_PARTITIONS"
    timers = [one for one in jvm.state().coordinator.timers if one.startswith("rebalance-timeout-")]
    jvm.command("expire", timer=timers[0])
    assert heartbeat(jvm, 0, owner.generation or 0).error == "UNKNOWN_MEMBER_ID"


@pytest.mark.parametrize("release", RELEASES)
def test_a_commit_for_what_was_given_up_is_stored_where_the_epoch_stays(
    jvm: Simulation, release: str
) -> None:
    """N12, since 4.2.0: before, who has to give up more behind a revocation has the next epoch by then."""
    made(jvm, release)
    by_name: dict[str, Any] = {"assignor": "range"}
    epoch = heartbeat(jvm, 2, 0, **by_name).generation or 0
    heartbeat(jvm, 1, 0, **by_name)
    kept = heartbeat(jvm, 2, epoch).assignment
    assert kept == frozenset({"t-2", "t-3"})
    newcomer = heartbeat(jvm, 0, 0, **by_name).generation or 0
    more = heartbeat(jvm, 2, epoch, partitions=sorted(kept))
    assert more.assignment == frozenset({"t-3"})
    assert heartbeat(jvm, 0, newcomer).assignment == frozenset({"t-0", "t-1"})
    commit: dict[str, Any] = {"api": "OFFSET_COMMIT", "member_id": "m2", "partitions": ["t-0"]}
    jvm.command("send", member=2, generation=epoch, **commit)
    [answer] = [one for one in jvm.command("deliver", member=2) if isinstance(one, SimulationResponse)]
    stays = release >= "4.2"
    assert more.generation == (epoch if stays else epoch + 1)
    assert answer.error == ("NONE" if stays else "STALE_MEMBER_EPOCH")


def test_what_a_played_member_says_is_what_arrives(jvm: Simulation) -> None:
    made(jvm)
    fields = {"api": "CONSUMER_GROUP_HEARTBEAT", "member_id": "m", "generation": 7, "partitions": ["t-1"]}
    [request] = jvm.command("send", member=1, **fields)
    assert isinstance(request, SimulationRequest)
    assert (request.api, request.generation) == ("ConsumerGroupHeartbeat", 7)
    assert request.owned == frozenset({"t-1"})
    jvm.command("drop", member=1)
    with pytest.raises(NotEnabled):
        jvm.command("deliver", member=1)
    jvm.command("start", member=0)
    with pytest.raises(NotEnabled, match="has a process, which speaks for itself"):
        jvm.command("send", member=0, **fields)


def test_a_commit_with_another_epoch_is_refused_and_a_failover_forgets_nothing(jvm: Simulation) -> None:
    made(jvm)
    epoch = heartbeat(jvm, 1, 0).generation or 0
    before = group(jvm)
    jvm.command("failover")
    assert group(jvm) == before
    for wrong, error in ((0, "NONE"), (1, "STALE_MEMBER_EPOCH")):
        fields = {"member_id": "m1", "generation": epoch + wrong, "partitions": ["t-0"]}
        jvm.command("send", member=2, api="OFFSET_COMMIT", **fields)
        [answer] = jvm.command("deliver", member=2)
        assert isinstance(answer, SimulationResponse)
        assert answer.error == error


def test_a_classic_consumer_is_taken_along_and_the_last_of_the_others_takes_it_back(jvm: Simulation) -> None:
    made(jvm)
    jvm.command("start", member=0)
    for _ in range(4):
        jvm.command("poll", member=0)
        for command in ("deliver", "respond"):
            jvm.batch([{"do": command, "member": 0}])
        jvm.command("elapse", ms=1)
    assert jvm.state().coordinator.state == "COMPLETING_REBALANCE" or jvm.state().coordinator.generation == 1
    for _ in range(3):
        jvm.batch([{"do": do, "member": 0} for do in ("poll", "deliver", "respond", "poll")])
    epoch = heartbeat(jvm, 1, 0).generation
    converted = group(jvm)
    assert {one.client: one.classic for one in converted.members} == {"A": True, "C": False}
    assert epoch == converted.epoch == 2
    heartbeat(jvm, 1, -1)
    state = jvm.state().coordinator
    assert (state.consumer, state.state) == (None, "PREPARING_REBALANCE")


def test_what_the_coordinator_throws_is_an_answer_as_in_its_runtime(jvm: Simulation) -> None:
    """A classic group that has no generation yet has chosen no protocol, and fromClassicGroup takes it."""
    made(jvm)
    jvm.command("start", member=0)
    for _ in range(3):
        jvm.batch([{"do": do, "member": 0} for do in ("poll", "deliver", "respond")])
    assert jvm.state().coordinator.state == "PREPARING_REBALANCE"
    answer = heartbeat(jvm, 1, 0)
    assert answer.error == "UNKNOWN_SERVER_ERROR"
    assert answer.failure == "java.util.NoSuchElementException: No value present"
    assert jvm.state().coordinator.state == "PREPARING_REBALANCE"


def test_topics_that_grow_are_in_the_next_target(jvm: Simulation) -> None:
    made(jvm)
    epoch = heartbeat(jvm, 1, 0).generation or 0
    jvm.command("topics", topics={"t": 5})
    more = heartbeat(jvm, 1, epoch)
    assert more.generation == epoch + 1
    assert more.assignment == frozenset(f"t-{index}" for index in range(5))
