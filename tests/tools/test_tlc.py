"""What ``make tlc`` makes of what TLC prints, and of two searches that differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tools import tlc
from tools.tla.configurations import GROUPS
from tools.tlc import SearchFigures

CLEAN = """Model checking completed. No error has been found.
10,418 states generated, 2,236 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 27.
"""
BROKEN = """Progress(3) at noon: 20 states generated, 9 distinct states found, 2 states left on queue.
Error: Invariant ExclusiveOwnership is violated.
State 1: <Initial predicate>
State 2: <Start(c1) line 1, col 3 to line 2, col 4 of module ConsumerGroup>
25 states generated, 12 distinct states found, 3 states left on queue.
The depth of the complete state graph search is 4.
"""


def test_what_tlc_prints_is_understood() -> None:
    assert tlc.figures(CLEAN) == SearchFigures(distinct=2236, depth=27)
    assert tlc.figures(BROKEN) == SearchFigures(distinct=12, depth=2, broken="ExclusiveOwnership")


@pytest.mark.parametrize(
    "output",
    [
        "",
        CLEAN.replace("No error has been found", "Error: out of memory"),
        CLEAN.replace(", 0 states left", ", 7 states left"),
        BROKEN.replace("Invariant ExclusiveOwnership is violated", "Deadlock reached"),
    ],
)
def test_a_search_that_did_not_end_is_no_count(output: str) -> None:
    with pytest.raises(ValueError, match="did not come to an end"):
        tlc.figures(output)


def returning(found: SearchFigures) -> Callable[[object], SearchFigures]:
    return lambda group: found


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "code"),
    [
        ("two_members", {}, {}, 0),
        ("two_members", {}, {"distinct": 39_687}, 1),
        ("two_members", {}, {"depth": 41}, 1),
        ("two_members", {"distinct": 1}, {"distinct": 1}, 1),  # not what is pinned
        ("broken_newest_claim", {"distinct": 5}, {"distinct": 6}, 0),  # both stopped on their way
        ("broken_newest_claim", {}, {"broken": ""}, 1),
    ],
)
def test_a_difference_is_a_failure(
    name: str, ours: dict[str, Any], theirs: dict[str, Any], code: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pinned = tlc.pinned(next(group for group in GROUPS if group.name == name))
    monkeypatch.setattr(tlc, "jar", lambda: "tla2tools.jar")
    monkeypatch.setattr(tlc, "by_us", returning(replace(pinned, **ours)))
    monkeypatch.setattr(tlc, "by_tlc", returning(replace(pinned, **theirs)))
    assert tlc.main([name]) == code
    assert ("NOT EQUAL" in capsys.readouterr().out) == bool(code)


def test_without_tlc_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tlc, "jar", lambda: None)
    assert tlc.main([]) == 2
    assert "TLA2TOOLS" in capsys.readouterr().err


def test_a_wrong_name_of_the_jar_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TLA2TOOLS", "/no/such.jar")
    assert tlc.main([]) == 2
    assert "/no/such.jar: no such file" in capsys.readouterr().err
