"""The time axis to scale below the chart of a log: lengths are times, and a zombie is no second owner."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding, Recording
from rebalance_verifier.report.diagram import svg, text
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.diagram.log_diagram import of_recording

BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)


def event(second: float, kind: str, who: str, line: int, generation: int) -> LogEvent:
    return LogEvent(at=BEGAN + timedelta(seconds=second), kind=kind, file="a.log", line=line, consumer=who,
                    generation=generation, topic="t", partition=0)  # fmt: skip


def drawn(check: str = "owned-twice", until: float = 40.0) -> OwnershipDiagram:
    """``a`` has it from 0 on, ``b`` from 30 on, ``a`` gives it up at ``until``."""
    events = (
        event(0, "assigned", "a", 1, 3),
        event(30, "assigned", "b", 2, 4),
        event(until, "revoked", "a", 3, 3),
        event(100, "revoked", "b", 4, 4),
    )
    found = LogFinding(
        id="0" * 12, check=check, level="safety", group="g", topic="t", partition=0,
        began=events[1].at, ended=events[2].at, seconds=until - 30,
        owners=(FindingOwner("a", "m1", 3), FindingOwner("b", "m2", 4)),
        skew=None, certain=True, places=events[:3], sentence="two have it",
    )  # fmt: skip
    return of_recording(Recording(finding=found, rule="r", source="s", events=events))


def scaled(diagram: OwnershipDiagram) -> tuple[list[ET.Element], list[str]]:
    """Boxes of the height of the scale's bars, and all texts."""
    root = ET.fromstring(re.sub(r' xmlns="[^"]*"', "", svg.render(diagram)))
    boxes = [one for one in root.iter("rect") if float(one.attrib["height"]) in (10.0, 8.5)]
    return boxes, [one.text or "" for one in root.iter("text")]


def test_lengths_are_times():
    boxes, texts = scaled(drawn())
    first, second, *_ = (float(one.attrib["width"]) for one in boxes if one.attrib["class"] == "owned")
    assert first / second == pytest.approx(40 / 70, abs=0.01)
    assert "to scale: 100 s from event 1 on" in texts
    assert "10 s" in texts, "how long there were two owners"
    assert "+0:01:00" in texts


def test_what_goes_on_to_the_end_says_so():
    both = drawn(until=40.0)
    shorter = replace(both, columns=both.columns[:2], bars=(replace(both.bars[0], end=2), both.bars[-1]),
                      overlaps=(replace(both.overlaps[0], start=1, end=2),))  # fmt: skip
    assert "0 ms, goes on" in scaled(shorter)[1]


def test_a_zombie_is_drawn_as_one_and_not_as_a_second_owner():
    diagram = drawn("owned-by-zombie")
    (met,) = diagram.overlaps
    assert met.zombies == ("a",)
    assert not met.bug
    boxes, texts = scaled(diagram)
    assert {"removed", "owned"} <= {one.attrib["class"] for one in boxes}
    assert not [one for one in boxes if one.attrib["class"] == "hatch"]
    assert "t-0 is used by b and a (no longer a member)" in texts
    lines = "\n".join(text.draw(diagram))
    assert "△" in lines
    assert "▲" not in lines
    assert "two owners" not in lines
    assert "two owners" in "\n".join(text.draw(drawn()))


@pytest.mark.parametrize("seconds", [0.0004, 0.02, 0.7, 3, 59, 4000, 90_000, 4e6, 1e9])
def test_any_length_of_time_has_marks_that_can_be_read(seconds):
    diagram = drawn()
    columns = tuple(replace(one, at=seconds * number) for number, one in enumerate(diagram.columns))
    texts = scaled(replace(diagram, columns=columns))[1]
    marks = [one for one in texts if one.startswith("+") or re.fullmatch(r"\d+ ms", one)]
    assert 1 <= len(marks) <= 12


def test_nothing_to_scale_without_a_clock_or_where_all_is_at_once():
    diagram = drawn()
    for at in (None, 7.0):
        columns = tuple(replace(one, at=at) for one in diagram.columns)
        assert not any(one.startswith("to scale") for one in scaled(replace(diagram, columns=columns))[1])
