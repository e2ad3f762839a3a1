"""The page of what is released, from results that are made up; and of two releases, from Kafka's own code."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance.live.replay.verdict import BrokenClause, Replayed

from tests.live.code.played import RELEASE, needs_java
from tools import on_code

SWITCH = "prepare_not_repeated_after_reset"  # J1: to 2.7.1, and 2.8.0
CONSUMERS = ("2.7.1", "2.8.0", "2.8.1", "3.0.0")


def result(*, breaks: bool = False, stopped: str = "") -> Replayed:
    broken = [BrokenClause("group/owner", 1, "t-0 is owned twice")] if breaks else []
    return Replayed(clause="group/owner", client="code", broken=broken, stopped=stopped)


def test_what_shows_where_it_was_shipped_is_no_difference() -> None:
    found = {(SWITCH, release): result(breaks=release < "2.8.1") for release in CONSUMERS}
    assert list(on_code.differences(found, CONSUMERS)) == []
    page = on_code.page(found, "4.4.0", CONSUMERS)
    assert (
        f"| J1 | `{SWITCH}` | group/owner | 2.7.1 to 2.8.0 | 2.7.1 to 2.8.0 | - | 2.8.1 to 3.0.0 | - |"
        in page
    )
    assert "## Otherwise than the catalogue says\n\nNowhere.\n" in page


def test_each_difference_is_named_and_what_is_not_settled_says_why() -> None:
    outcomes = (result(), result(breaks=True), result(breaks=True), result(stopped="A sends no JoinGroup"))
    found = {(SWITCH, release): one for release, one in zip(CONSUMERS, outcomes, strict=True)}
    assert list(on_code.differences(found, CONSUMERS)) == [
        f"`{SWITCH}` shows in 2.8.1, which have it not by the catalogue",
        f"`{SWITCH}` does not show in 2.7.1, which have it by the catalogue",
    ]
    page = on_code.page(found, "4.4.0", CONSUMERS)
    assert "| 2.8.0 to 2.8.1 | - | 2.7.1 | 3.0.0 |" in page
    assert f"- `{SWITCH}`: A sends no JoinGroup\n" in page


def test_of_a_bug_of_another_client_the_catalogue_says_nothing() -> None:
    found = {("prepare_once_per_rebalance", release): result(breaks=True) for release in CONSUMERS}
    assert list(on_code.differences(found, CONSUMERS)) == []


@needs_java
@pytest.mark.slow
def test_the_page_of_two_releases(tmp_path: Path) -> None:
    argv = ["--consumers", "2.8.0,2.8.1", "--coordinator", RELEASE, "--switches", "reset_on_retriable"]
    assert on_code.main([*argv, "--page", str(tmp_path / "x.md")]) == 0
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "| J9 | `reset_on_retriable` | error/retriable | 2.8.0 | 2.8.0 | - | 2.8.1 | - |" in text
