"""Partitions and plans as clients write them, and as nobody should."""

from __future__ import annotations

import time

import pytest
from rebalance_verifier.pipeline.audit.sources.assignments import listed, planned, written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"t": [0, 1], "u": []}, "t-0, t-1"),
        ([{"topic": "t", "partitions": [0]}, {"topic": "t", "partitions": [2]}], "t-0, t-2"),
        ('[{"topic": "t", "partitions": [2]}]', "t-2"),
        (["t-0", "u-1"], "t-0, u-1"),
        ([], ""),
        ({}, ""),
    ],
)
def test_a_value_is_a_list_of_partitions(value: object, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize(
    "value",
    [
        *([{"topic": name, "partitions": [0]}] for name in ([1], {"a": 1}, None, 7)),
        *({"t": [number]} for number in (-1, 2**31, 10**40, True, 0.5, "0", None)),
        *({"t": numbers} for numbers in (None, 0, {"0": 0}, "0")),
        *([["t-0"]], [{"partitions": [0]}], ["t-0", {"topic": "t", "partitions": [1]}], 7, None, True),
    ],
)
def test_any_other_value_is_none_and_not_an_empty_one(value: object) -> None:
    assert written(value) is None


def test_a_plan_of_names_with_braces() -> None:
    assert planned("a-1{t[0 1]}, b-2{}, c{u[0]}") == [("a-1", ["t-0", "t-1"]), ("b-2", []), ("c", ["u-0"])]
    assert planned("{a=Assignment(partitions=[t-0, t-1]), b=Assignment(partitions=[])}") == [
        ("a", ["t-0", "t-1"]),
        ("b", []),
    ]
    assert planned(
        "{a=MemberAssignment(partitions={ID=[0, 1], J=[2]}), b=MemberAssignment(partitions={})}"
    ) == [
        ("a", ["ID-0", "ID-1", "J-2"]),
        ("b", []),
    ]
    assert planned("{}, x") == planned("{a{b}") == planned("a{{b}") == planned("") == []


REPEATED = (
    *(", m=Assignment(partitions={", ", m=Assignment(partitions=[", ", m{", ", ", "a{", "{topic:t "),
    *("t[", "TopicPartition(topic='", "a'"),
)


@pytest.mark.parametrize("part", REPEATED)
@pytest.mark.parametrize("read", [listed, planned])
@pytest.mark.parametrize("whole", ["{", "map[{topic:t partition:1}:2]", ""])
def test_a_line_eight_times_as_long_takes_no_forty_times_as_much(part, read, whole) -> None:
    """A line may be of a megabyte: where each place is a start of a search to its end, it takes an hour."""

    def seconds(count: int) -> float:
        text, spent = whole + part * count, []
        for _ in range(3):
            began = time.process_time()
            read(text)
            spent.append(time.process_time() - began)
        return max(min(spent), 0.002)

    assert seconds(8 * 4_000) / seconds(4_000) < 40
