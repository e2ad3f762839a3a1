"""One codec for every file: what was saved stays as it is, byte for byte; what is wrong is named by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.model import codec
from rebalance_verifier.model.values import TopicPartition
from rebalance_verifier.pipeline.audit.records import Recording
from rebalance_verifier.traces import kinds, recordings, runs

ROOT = Path(__file__).parents[2]
SAVED = [
    *(ROOT / "tests" / "traces" / "saved").glob("*.json"),
    *(ROOT / "examples" / "audit").glob("*.json"),
    *(ROOT / "docs" / "results" / "traces").glob("*.json"),
]


@pytest.mark.parametrize("path", sorted(SAVED), ids=lambda path: path.stem)
def test_what_earlier_releases_saved_is_saved_again_byte_for_byte(path):
    saved = kinds.load(path)
    if isinstance(saved, SavedRun):
        text = runs.to_text(saved)
    elif isinstance(saved, Recording):
        text = recordings.to_text(saved)
    else:
        text = counterexamples.to_text(saved)
    assert text == path.read_text()


def test_there_are_files_of_every_kind():
    assert {type(kinds.load(path)) for path in SAVED} == {SavedRun, Recording, counterexamples.Trace}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    left: int
    right: int = 7


@dataclass(frozen=True, kw_only=True)
class Step:
    member: str
    owned: tuple[TopicPartition, ...] = ()
    known: frozenset[str] = frozenset()
    pair: Pair = Pair(1, 2)  # noqa: RUF009
    colour: Colour = Colour.RED
    mode: Literal["old", "new"] = "old"
    at: datetime | None = None
    share: float = 0.0
    origin: Mapping[str, Any] = field(default_factory=dict)


class Log(NamedTuple):
    steps: tuple[Step, ...]
    by_name: Mapping[str, Step]


STEP = Step(
    member="A",
    owned=(TopicPartition("a-b", 10),),
    known=frozenset("cab"),
    pair=Pair(3),
    colour=Colour.BLUE,
    mode="new",
    at=datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    share=0.5,
    origin={"x": [1, None]},
)


def test_a_record_reads_back():
    log = Log((STEP, Step(member="B")), {"A": STEP})
    written = codec.to_json(log)
    assert codec.from_json(Log, written) == log
    assert written["steps"][0] == written["by_name"]["A"] == {
        "member": "A", "owned": ["a-b-10"], "known": ["a", "b", "c"], "pair": {"left": 3, "right": 7},
        "colour": "blue", "mode": "new", "at": "2026-01-01T10:00:00.000000Z", "share": 0.5,
        "origin": {"x": [1, None]},
    }  # fmt: skip


def test_what_is_at_its_default_can_be_left_out_and_what_nobody_knows_is_passed_over():
    assert codec.to_json(Step(member="B", share=1.0), set(Step.__dataclass_fields__)) == {
        "member": "B",
        "share": 1.0,
    }
    assert codec.from_json(Step, {"member": "B", "more": 1}) == Step(member="B")
    assert codec.from_json(Step, {"member": "B", "at": "2026-01-01"}).at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({}, "steps[1].member: is missing"),
        ([], "steps[1]: expected an object, found []"),
        ({"member": 7}, "steps[1].member: expected a string, found 7"),
        ({"owned": "a-1"}, 'steps[1].owned: expected a list, found "a-1"'),
        ({"owned": ["a"]}, 'steps[1].owned[0]: expected a partition such as orders-0, found "a"'),
        ({"known": ["a", None]}, "steps[1].known[1]: expected a string, found null"),
        ({"pair": {"left": True}}, "steps[1].pair.left: expected a whole number, found true"),
        ({"pair": {"left": 1.5}}, "steps[1].pair.left: expected a whole number, found 1.5"),
        ({"colour": "green"}, 'steps[1].colour: expected one of red, blue, found "green"'),
        ({"mode": []}, "steps[1].mode: expected old or new, found []"),
        ({"at": "noon"}, 'steps[1].at: expected a time in ISO 8601, found "noon"'),
        ({"share": "1"}, 'steps[1].share: expected a number, found "1"'),
        ({"origin": None}, "steps[1].origin: expected an object, found null"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(step, text):
    whole = {"member": "A", **step} if step else step
    with pytest.raises(TraceError) as raised:
        codec.from_json(Log, {"steps": [{"member": "A"}, whole], "by_name": {}})
    assert str(raised.value) == text


def test_a_type_may_be_read_in_a_way_of_its_own():
    with pytest.raises(TraceError, match=r"^by_name\.A\.colour: 'x' is no colour$"):
        codec.from_json(
            Log,
            {"steps": [], "by_name": {"A": {"member": "A", "colour": "x"}}},
            readers={Colour: lambda name: codec_fails(name)},
        )


def codec_fails(name):
    raise ValueError(f"{name!r} is no colour")
