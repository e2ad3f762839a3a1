"""What kafka-dump-log prints of __consumer_offsets: the history of groups, as their coordinator keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
OF_ANOTHER = record(3000, 3, {"epoch": 5}, groupId="another")
LATER = record(3000, 1, {"offset": 7}, group="orders", topic="orders", partition="0")  # a commit
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


@pytest.mark.parametrize(
    "logs",
    [
        {"a.txt": [*HEAD, *JOINS], "b.txt": [*HEAD, LATER]},  # two files of one partition, or of two
        {"a.txt": [*HEAD, *JOINS, *HEAD, OF_ANOTHER]},  # --files takes several, and each may end anywhere
        {"a.txt": [*HEAD, *JOINS, OF_ANOTHER]},
    ],
    ids=["two files", "two partitions in one file", "another group"],
)
def test_a_group_of_which_no_record_follows_may_be_cut_off(
    logs: dict[str, list[str]], tmp_path: Path
) -> None:
    found = audited(logs, tmp_path)
    assert [(one.check, one.certain) for one in found.findings] == [("never-settles", False)]


SHIPPED = {
    "as it is": lambda line: line,
    "with the time of a shipper": lambda line: f"2026-11-29T03:00:00.000000000Z {line}",
    "with the name of a container": lambda line: f"kafka-0  | {line}",
    "from Windows": lambda line: f"{line}\r",
    "with the time of the broker": lambda line: line.replace("CreateTime", "LogAppendTime"),
    "without its bar": lambda line: line.removeprefix("| "),
    "with headers": lambda line: line.replace("headerKeys: []", "headerKeys: [trace, span]"),
}


@pytest.mark.parametrize("shipped", SHIPPED.values(), ids=SHIPPED)
def test_a_dump_is_read_however_it_was_shipped(shipped: Callable[[str], str], tmp_path: Path) -> None:
    found = audited({"dump.txt": [shipped(line) for line in [*HEAD, *JOINS, LATER]]}, tmp_path)
    assert [(one.check, one.certain) for one in found.findings] == [("never-settles", True)]


CUT_OFF = {
    "in what it may own": current(13, "A", 3, 0, [0], [])[:-40],
    "in its key": current(13, "A", 3, 0, [0], []).partition("memberId")[0],
    "in a target's epoch": target(13, 4).partition("Epoch")[0],
    "in a generation": classic(13, 4, "range", 1).partition('"protocol"')[0],
    "in a removal": record(13, 5, DELETE, groupId="orders", memberId="A")[:-3],
    "with fields in another order": record(
        13, 8, {"state": 0, "memberEpoch": 3, "assignedPartitions": []}, groupId="orders", memberId="A"
    ),
}


@pytest.mark.parametrize("line", CUT_OFF.values(), ids=CUT_OFF)
def test_a_record_that_cannot_be_read_is_named(line: str, tmp_path: Path) -> None:
    found = audited({"dump.txt": [*HEAD, *JOINS[:3], line]}, tmp_path)
    assert found.malformed
    assert found.verdict is Verdict.INCONCLUSIVE


OTHERS = {
    "a group of Connect": record(
        13, 2, {"protocolType": "connect", "generation": 1, "protocol": "sessioned", "members": []}, group="c"
    ),
    "a group that is deleted": record(13, 2, DELETE, group="billing"),
    "a share group": record(13, 10, {"epoch": 1}, groupId="share"),
    "a commit that expires": record(13, 1, DELETE, group="orders", topic="orders", partition="0"),
    "a member that is there": record(13, 5, {"clientId": "one"}, groupId="orders", memberId="A"),
}


@pytest.mark.parametrize("line", OTHERS.values(), ids=OTHERS)
def test_other_records_are_of_no_interest(line: str, tmp_path: Path) -> None:
    found = audited({"dump.txt": [*HEAD, *JOINS[:3], line]}, tmp_path)
    assert not found.malformed


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
