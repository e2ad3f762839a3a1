"""What kafka-dump-log prints of __consumer_offsets: the history of groups, as their coordinator keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.sources.assignments import listed

from tests.pipeline.audit.foreign.test_corpus import audited

BEGINS = 1_795_912_385_000
TOPIC = "sKyx2J2OQqe6zilCi2B8TQ"
DELETE = "<DELETE>"


def record(second: float, kind: int, value: Mapping[str, Any] | str, **key: str) -> str:
    """A line of Kafka's tool, with --offsets-decoder."""
    keyed = json.dumps({"type": str(kind), "data": key}, separators=(",", ":"))
    said = (
        value
        if isinstance(value, str)
        else json.dumps({"version": "0", "data": value}, separators=(",", ":"))
    )
    return (
        f"| offset: {kind} CreateTime: {BEGINS + int(second * 1000)} keySize: 30 valueSize: 64 sequence: 0 "
        f"headerKeys: [] key: {keyed} payload: {said}"
    )


def current(second: float, member: str, epoch: int, state: int, has: list[int], gives: list[int]) -> str:
    """What a member may own by now."""

    def parts(numbers: list[int]) -> list[Mapping[str, Any]]:
        return [{"topicId": TOPIC, "partitions": numbers, "assignmentEpochs": [epoch]}] if numbers else []

    value = {"memberEpoch": epoch, "previousMemberEpoch": 0, "state": state, "assignedPartitions": parts(has)}
    value["partitionsPendingRevocation"] = parts(gives)
    return record(second, 8, value, groupId="orders", memberId=member)


def target(second: float, epoch: int) -> str:
    return record(second, 6, {"assignmentEpoch": epoch, "assignmentTimestamp": 1}, groupId="orders")


def classic(second: float, generation: int, protocol: str | None, members: int) -> str:
    joined = [{"memberId": f"m-{n}", "assignment": {"assignedPartitions": []}} for n in range(members)]
    value = {"protocolType": "consumer", "generation": generation, "protocol": protocol, "members": joined}
    return record(second, 2, value, group="billing")


HEAD = ["Dumping __consumer_offsets-7/00000000000000000000.log", "Log starting offset: 0"]
JOINS = [
    record(0, 5, {"clientId": "one", "subscribedTopicNames": ["orders"]}, groupId="orders", memberId="A"),
    target(0, 2),
    current(0, "A", 2, 0, [0, 1], []),
    record(10, 5, {"clientId": "two", "subscribedTopicNames": ["orders"]}, groupId="orders", memberId="B"),
    target(10, 3),
    current(10, "B", 3, 2, [], []),
    current(12, "A", 2, 1, [0], [1]),
]
LATER = record(3000, 3, {"epoch": 5}, groupId="another")
DONE = [current(13, "A", 3, 0, [0], []), current(14, "B", 3, 0, [1], [])]
GONE = [record(13, number, DELETE, groupId="orders", memberId="A") for number in (8, 7, 5)]


def test_a_member_for_which_the_others_wait_is_found_in_a_dump(tmp_path: Path) -> None:
    found = audited({"dump.txt": [*HEAD, *JOINS, LATER]}, tmp_path)
    assert [(one.check, one.group, one.certain) for one in found.findings] == [
        ("never-settles", "orders", True)
    ]
    assert found.verdict is Verdict.VIOLATION


@pytest.mark.parametrize("ends", [DONE, GONE], ids=["acknowledged", "removed"])
def test_nobody_waits_for_who_is_done_or_gone(ends: list[str], tmp_path: Path) -> None:
    found = audited({"dump.txt": [*HEAD, *JOINS, *ends, LATER]}, tmp_path)
    assert not found.findings
    assert found.verdict is Verdict.INCONCLUSIVE  # who owns what is not in it


def test_a_dump_that_ends_there_may_be_cut_off(tmp_path: Path) -> None:
    other = {"a.txt": [*HEAD, *JOINS], "b.txt": [*HEAD, LATER]}  # the partition of another coordinator
    found = audited(other, tmp_path)
    assert [(one.check, one.certain) for one in found.findings] == [("never-settles", False)]


def test_generations_of_a_classic_group_are_counted(tmp_path: Path) -> None:
    lines = [
        classic(0, 1, "range", 1),
        classic(5, 2, "range", 2),
        classic(9, 2, "range", 2),
        classic(20, 3, None, 0),
    ]
    found = audited({"dump.txt": [*HEAD, *lines]}, tmp_path)
    [group] = [one for one in found.worst if one.group == "billing"]
    assert group.rebalances == 2  # a static member that is back is written into the generation that there is
    assert not found.findings


def test_partitions_by_the_ids_of_their_topics() -> None:
    assert listed(json.dumps([{"topicId": TOPIC, "partitions": [0, 2], "assignmentEpochs": [1, 1]}])) == [
        f"{TOPIC}-0",
        f"{TOPIC}-2",
    ]
    assert listed("[]") == []
