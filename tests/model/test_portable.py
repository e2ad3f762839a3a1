"""Values of a machine as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from rebalance_verifier.model import portable
from rebalance_verifier.model.classic.state import Member
from rebalance_verifier.model.group.parts import Life
from rebalance_verifier.model.portable import NotValues
from rebalance_verifier.model.values import TopicPartition

VALUES: Sequence[Any] = (
    None,
    *(True, 1, 1.0, "1", b"1", 0, False, -1, 2**70, 0.1, "", b"", "\ud800", "\u2028"),
    *((), (1, (2, (3,))), frozenset(), frozenset({1, 2, frozenset({3})})),
    *(Life.UP, TopicPartition("t", 0), (TopicPartition("t", 0), Life.UP, TopicPartition("t", 0))),
)


def test_values_come_back_as_they_were_each_of_its_own_type() -> None:
    back = portable.loads(portable.dumps(VALUES))
    assert back == list(VALUES)
    assert [type(value) for value in back] == [type(value) for value in VALUES]
    (deep,) = portable.loads(portable.dumps([(True, 1, 1.0)]))
    assert [type(value) for value in deep] == [bool, int, float]


def test_what_is_there_often_is_written_once() -> None:
    value: Any = ("a long text that is there often",)
    for _ in range(15):
        value = (value, value)
    assert len(portable.dumps([value, value])) < 500
    assert portable.loads(portable.dumps([value, value])) == [value, value]


def test_equal_values_are_equal_bytes() -> None:
    one, other = frozenset({"a", "b", "c"}), frozenset({"c", "b", "a"})
    assert portable.dumps([one]) == portable.dumps([other])


class _Number(NamedTuple):
    number: int


class Counted(_Number):
    """A record that would notice being made."""

    @classmethod
    def _make(cls, iterable):  # type: ignore[override]
        raise AssertionError("code of the class is run")


def test_no_code_of_a_class_is_run() -> None:
    assert portable.loads(portable.dumps([Counted(1)])) == [Counted(1)]


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, object(), bytearray(b"x"), Member])
def test_nothing_else_is_written(value: Any) -> None:
    with pytest.raises(TypeError, match="it cannot be written"):
        portable.dumps([value])


PARTITION = ["rebalance_verifier.model.values", "TopicPartition"]
LIFE = ["rebalance_verifier.model.classic.state", "Life"]
DEEP = [0, *(["t", number] for number in range(200))]
WIDE = [0, *(["t", number, number] for number in range(40))]


@pytest.mark.parametrize(
    ("classes", "parts"),
    [
        ([["os", "system"]], [["r", 0]]),
        ([["builtins", "eval"]], [["r", 0]]),
        ([["os", "stat_result"]], [["r", 0]]),
        ([["rebalance_verifier.base.reading", "os"]], []),
        ([["rebalance_verifier.model.machine", "Machine"]], []),
        ([["rebalance.nowhere", "Life"]], []),
        ([["rebalance_verifier.model.classic.state", "__builtins__"]], []),
        ([[1, 2]], []),
        ([["a"]], []),
        ([PARTITION], [0, ["r", 0, 0]]),
        ([PARTITION], [0, ["r", 0, 0, 0, 0]]),
        ([PARTITION], [["e", 0, "topic"]]),
        ([PARTITION], ["t", ["r", 1, 0, 0]]),
        ([PARTITION], [["r"]]),
        ([LIFE], [["e", 0, "mro"]]),
        ([LIFE], [["e", 0, 1]]),
        ([LIFE], [["r", 0, 0]]),
        ([], [["t", 0]]),
        ([], [["t", 1], 2]),
        ([], [0, ["t", -1]]),
        ([], [0, ["t", True]]),
        ([], [0, ["t", "0"]]),
        ([], [["x"]]),
        ([], [[]]),
        ([], [[["t"]]]),
        ([], [{"a": 1}]),
        ([], [1.5]),
        ([], [["f", 1.5]]),
        ([], [["f", "x"]]),
        ([], [["b", "x"]]),
        ([], DEEP),
        ([], WIDE),
    ],
)
def test_what_is_no_document_is_refused(classes: object, parts: list[object]) -> None:
    document = {"classes": classes, "parts": parts, "values": [len(parts) - 1] if parts else []}
    with pytest.raises(NotValues):
        portable.loads(json.dumps(document).encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b"9" * 5000, b'{"parts": 1}'])
def test_bytes_that_are_no_document_are_refused(text: bytes) -> None:
    with pytest.raises(NotValues):
        portable.loads(text)
    with pytest.raises(NotValues):
        portable.loads(b'{"classes": [], "parts": [], "values": [0]}')
