"""What a broker logs of a group, in lines as Kafka 4.4.0 has written them."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.live.clients.record.coordinator import coordinated

TOPIC = "K7MngpSETGidoNpQUjsIsQ"
HEAD = "[group-coordinator-event-processor-0] INFO org.apache.kafka.coordinator.group.GroupMetadataManager - "
GROUP = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] "


def read(*messages: str, at: str = "2026-11-25T17:23:23.373Z") -> list[dict[str, Any]]:
    lines = [f"{at} {HEAD}{GROUP}{message}" for message in messages]
    return list(coordinated(["Bootstrap metadata", *lines], "recorded", {TOPIC: "orders"}))


TARGETED = (
    "[GroupId recorded] Computed a new target assignment for epoch 7 with 'uniform' assignor in 31ms: "
    f"{{a/b+c=MemberAssignment(partitions={{{TOPIC}=[1, 2]}}), d=MemberAssignment(partitions={{}})}}."
)
STATE = "[GroupId recorded] Member d new assignment state: epoch=8, previousEpoch=6, state="
REVOKES = (
    f"{STATE}UNREVOKED_PARTITIONS, assignedPartitions=[{TOPIC}-0@8, {TOPIC}-1@6] "
    f"and revokedPartitions=[{TOPIC}-2@6]."
)
BEFORE_4_3 = f"{STATE}STABLE, assignedPartitions=[{TOPIC}-0] and revokedPartitions=[]."
EPOCHS = {"event": "state", "member": "d", "generation": 8, "previous": 6}


def removed(detail: str) -> dict[str, Any]:
    return {"event": "removed", "member": "d", "detail": detail}


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (
            TARGETED,
            {
                "event": "target",
                "generation": 7,
                "assignors": ["uniform"],
                "plan": {"a/b+c": ["orders-1", "orders-2"], "d": []},
            },
        ),
        (
            REVOKES,
            {
                **EPOCHS,
                "state": "UNREVOKED_PARTITIONS",
                "partitions": ["orders-0", "orders-1"],
                "pending": ["orders-2"],
            },
        ),
        (BEFORE_4_3, {**EPOCHS, "state": "STABLE", "partitions": ["orders-0"], "pending": []}),
        (
            "[GroupId recorded] Member d fenced from the group because the member session expired.",
            removed("the member session expired"),
        ),
        ("[GroupId recorded] Member d left the consumer group.", removed("left")),
        (
            "[GroupId recorded] Static member d with instance id i temporarily left the consumer group.",
            removed("temporarily left"),
        ),
        (
            "[Group recorded] Member d has left group through explicit `LeaveGroup` request; client reason",
            removed("left"),
        ),
        (
            "[GroupId recorded] Converted the classic group to a consumer group.",
            {"event": "converted", "detail": "consumer"},
        ),
        ("Stabilized group recorded generation 3 with 2 members.", {"event": "stable", "generation": 3}),
    ],
)
def test_a_line_is_an_event(message: str, event: dict[str, Any]) -> None:
    (line,) = read(message)
    assert line == {
        "at": "2026-11-25T17:23:23.373000Z",
        "group": "recorded",
        "consumer": "",
        **event,
    }


def test_other_groups_and_other_lines_are_left_out() -> None:
    other = "[GroupId another] Converted the classic group to a consumer group."
    assert read(other, "[GroupId recorded] Bumped group epoch to 7 with metadata hash 1.") == []


def test_lines_of_one_millisecond_keep_their_order() -> None:
    message = "Stabilized group recorded generation {} with 2 members."
    lines = read(*(message.format(number) for number in range(1, 30)))
    assert [line["generation"] for line in lines] == list(range(1, 30))
    assert [line["at"] for line in lines] == sorted({line["at"] for line in lines})
