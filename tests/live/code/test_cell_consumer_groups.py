"""Consumer groups (KIP-848) in a cell: played members, what the coordinator knows, conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rebalance.live.code.answers import CellRequest, CellResponse, ServedGroup
from rebalance.live.code.cell import CellMember, CellRefused, KafkaCell

pytestmark = pytest.mark.slow

NEWEST = "4.4.0"
RELEASES = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST)
AT_ONCE = {"group.initial.rebalance.delay.ms": 0, "group.consumer.assignment.interval.ms": 0}


@pytest.fixture(scope="module")
def jvm() -> Iterator[KafkaCell]:
    with KafkaCell(RELEASES, [NEWEST]) as cell:
        yield cell


def made(cell: KafkaCell, coordinator: str = NEWEST, **config: Any) -> None:
    members = [CellMember(release=NEWEST, client=name) for name in ("A", "C", "D")]
    cell.create(coordinator, members, {"t": 4}, AT_ONCE | config)


def heartbeat(cell: KafkaCell, member: int, epoch: int, **fields: Any) -> CellResponse:
    if epoch == 0:
        fields = {"topics": ["t"], "partitions": [], "rebalance_ms": 60_000} | fields
    api = "CONSUMER_GROUP_HEARTBEAT"
    [request] = cell.command(
        "send", member=member, api=api, member_id=f"m{member}", generation=epoch, **fields
    )
    assert isinstance(request, CellRequest)
    events = [one for one in cell.command("deliver", id=request.id) if isinstance(one, CellResponse)]
    [answer] = [one for one in events if one.member == member]
    cell.command("respond", id=answer.id)
    return answer


def group(cell: KafkaCell) -> ServedGroup:
    found = cell.state().coordinator.consumer
    assert found is not None
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_two_members_share_a_topic_and_a_partition_waits_for_its_owner(jvm: KafkaCell, release: str) -> None:
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
    jvm: KafkaCell, release: str
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
    assert isinstance(behind, CellRequest)
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
    [answer] = [one for one in jvm.command("deliver", member=0) if isinstance(one, CellResponse)]
    assert answer.error == "STALE_MEMBER_EPOCH", "its commits are refused"
    assert heartbeat(jvm, 0, again.generation or 0).error == "FENCED_MEMBER_EPOCH", "and its next heartbeat"


def test_what_a_played_member_says_is_what_arrives(jvm: KafkaCell) -> None:
    made(jvm)
    fields = {"api": "CONSUMER_GROUP_HEARTBEAT", "member_id": "m", "generation": 7, "partitions": ["t-1"]}
    [request] = jvm.command("send", member=1, **fields)
    assert isinstance(request, CellRequest)
    assert (request.api, request.generation) == ("ConsumerGroupHeartbeat", 7)
    assert request.owned == frozenset({"t-1"})
    jvm.command("drop", member=1)
    with pytest.raises(CellRefused):
        jvm.command("deliver", member=1)
    jvm.command("start", member=0)
    with pytest.raises(CellRefused, match="has a process, which speaks for itself"):
        jvm.command("send", member=0, **fields)


def test_a_commit_with_another_epoch_is_refused_and_a_failover_forgets_nothing(jvm: KafkaCell) -> None:
    made(jvm)
    epoch = heartbeat(jvm, 1, 0).generation or 0
    before = group(jvm)
    jvm.command("failover")
    assert group(jvm) == before
    for wrong, error in ((0, "NONE"), (1, "STALE_MEMBER_EPOCH")):
        fields = {"member_id": "m1", "generation": epoch + wrong, "partitions": ["t-0"]}
        jvm.command("send", member=2, api="OFFSET_COMMIT", **fields)
        [answer] = jvm.command("deliver", member=2)
        assert isinstance(answer, CellResponse)
        assert answer.error == error


def test_a_classic_consumer_is_taken_along_and_the_last_of_the_others_takes_it_back(jvm: KafkaCell) -> None:
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


def test_what_the_coordinator_throws_is_an_answer_as_in_its_runtime(jvm: KafkaCell) -> None:
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


def test_topics_that_grow_are_in_the_next_target(jvm: KafkaCell) -> None:
    made(jvm)
    epoch = heartbeat(jvm, 1, 0).generation or 0
    jvm.command("topics", topics={"t": 5})
    more = heartbeat(jvm, 1, epoch)
    assert more.generation == epoch + 1
    assert more.assignment == frozenset(f"t-{index}" for index in range(5))
