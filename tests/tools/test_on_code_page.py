"""The page of what is released, from observations that are made up; and of two releases of Kafka's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.code.played import RELEASE, needs_java
from tools import on_code, on_code_page
from tools.on_code_page import CONSUMER, COORDINATOR, Observation, Observations

SWITCH = "prepare_not_repeated_after_reset"  # J1: to 2.7.1, and 2.8.0
CONSUMERS = ("2.7.1", "2.8.0", "2.8.1", "3.0.0")


def observed(*seen: str) -> dict[str, Observations]:
    found = {
        (SWITCH, release): Observation(*one.split(":")) for release, one in zip(CONSUMERS, seen, strict=True)
    }
    return {CONSUMER: Observations(CONSUMERS, found)}


@pytest.fixture
def explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "explained.toml"
    path.write_text("difference = []\n", encoding="utf-8")
    monkeypatch.setattr(on_code_page, "EXPLAINED", path)
    return path


def row(what: str, spans: str) -> str:
    lines = {"part": "consumer", "switch": SWITCH, "what": what, "releases": spans, "why": "so"}
    return "\n".join(["[[difference]]", *(f'{name} = "{value}"' for name, value in lines.items())]) + "\n"


def test_what_shows_where_it_was_shipped_is_no_difference(explained: Path) -> None:
    found = observed("shown", "shown", "absent", "absent")
    assert list(on_code_page.wrong(found)) == []
    page = on_code_page.page(
        found, {(SWITCH, "java-2.8.0"): "X", (SWITCH, "java-3.0"): "."}, ("4.4.0", "4.4.0")
    )
    row = f"| J1 | `{SWITCH}` | group/owner | 2.7.1 to 2.8.0 | 2.7.1 to 2.8.0 | 2.8.1 to 3.0.0 | 2.8.0 |"
    assert f"{row} as the catalogue says |" in page
    assert "Of 1 switches of the consumer, 1 are shown in some releases and absent in others" in page


def test_each_difference_has_to_be_explained(explained: Path) -> None:
    found = observed("absent", "shown", "shown", "open:A sends no JoinGroup")
    assert list(on_code_page.wrong(found)) == [
        f"not explained: {SWITCH} is shown in consumer 2.8.1",
        f"not explained: {SWITCH} is absent in consumer 2.7.1",
        f"not explained: {SWITCH} is open in consumer 3.0.0",
    ]
    rows = (("shown", "2.8.1"), ("absent", "2.7.1"), ("open", "3.0.0"))
    explained.write_text("".join(row(*one) for one in rows), encoding="utf-8")
    assert list(on_code_page.wrong(found)) == []
    page = on_code_page.page(found, {}, ("4.4.0", "4.4.0"))
    assert f"- `{SWITCH}` is absent in 2.7.1: so\n" in page
    assert f"- `{SWITCH}` is open in 3.0.0: so\n  (A sends no JoinGroup)\n" in page


def test_an_explanation_of_nothing_is_wrong(explained: Path) -> None:
    explained.write_text(row("open", "2.8.1"), encoding="utf-8")
    found = observed("shown", "shown", "absent", "absent")
    assert list(on_code_page.wrong(found)) == [f"explained, and not so: {SWITCH} is open in consumer 2.8.1"]
    assert list(on_code_page.wrong(found, whole=False)) == []


def test_the_page_has_what_its_file_explains() -> None:
    """Of the whole matrix, which takes half an hour, the page is what was observed last."""
    page = on_code.PAGE.read_text(encoding="utf-8")
    assert "**not explained**" not in page
    for (_, switch, what, spans), why in on_code_page.explanations().items():
        assert f"- `{switch}` is {what} in {spans}: {why}" in page


def test_whom_a_switch_concerns() -> None:
    assert on_code_page.concerns(CONSUMER, SWITCH)
    assert not on_code_page.concerns(COORDINATOR, SWITCH)
    assert on_code_page.concerns(COORDINATOR, "sync_load_error_raw")
    assert on_code_page.concerns(on_code_page.CLIENT, "prepare_once_per_rebalance")


@needs_java
@pytest.mark.slow
def test_the_page_of_two_releases(tmp_path: Path) -> None:
    argv = ["--consumers", "2.8.0,2.8.1", "--coordinators", RELEASE, "--switches", "reset_on_retriable"]
    assert on_code.main([*argv, "--page", str(tmp_path / "x.md")]) == 0
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert "| J9 | `reset_on_retriable` | error/retriable | 2.8.0 | 2.8.0 | 2.8.1 | as the" in text
