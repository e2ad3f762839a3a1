"""What ``make code`` writes, from observations that are made up, and of two releases of Kafka's code."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from rebalance_verifier.live.code import releases
from rebalance_verifier.model.bugs import observed
from rebalance_verifier.model.bugs.observed import CLIENT, CONSUMER, OBSERVED, Observation, Observations

from tests.live.code.played import RELEASE, needs_java
from tools import on_code, released_page

SWITCH = "prepare_not_repeated_after_reset"  # J1: to 2.7.1, and 2.8.0
CONSUMERS = ("2.7.1", "2.7.2", "2.8.0", "2.8.1")


def observations(*seen: str) -> dict[str, Observations]:
    found = {
        (SWITCH, release): Observation(*one.split(":"))  # type: ignore[arg-type]
        for release, one in zip(CONSUMERS, seen, strict=True)
    }
    of = Observations(part=CONSUMER, releases=CONSUMERS, other="4.3.1", found=found)
    return {**OBSERVED, CONSUMER: of}


@pytest.fixture
def nothing_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "EXPLANATIONS", ())


@pytest.mark.usefixtures("nothing_explained")
def test_a_difference_that_nobody_explains_fails() -> None:
    assert list(on_code.wrong(observations("shown", "absent", "shown", "absent")))[1:] == []
    wrong = list(on_code.wrong(observations("absent", "shown", "shown", "open:A sends no JoinGroup")))
    assert wrong[:-1] == [
        f"not explained: {SWITCH} is shown in consumer 2.7.2",
        f"not explained: {SWITCH} is absent in consumer 2.7.1",
        f"not explained: {SWITCH} is open in consumer 2.8.1",
    ]
    page = released_page.page(observations("absent", "shown", "shown", "open:A sends no JoinGroup"))
    assert f"- `{SWITCH}` is open in 2.8.1: **not explained**\n  (A sends no JoinGroup)\n" in page


def test_the_file_reads_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    text = on_code.toml(OBSERVED)
    assert text == on_code.FILE.read_text(encoding="utf-8")
    before = dict(OBSERVED)
    monkeypatch.setattr(observed, "table", lambda module: tomllib.loads(text))
    again = {one.part: one for one in observed._observations()}
    assert {part: dict(of.found) for part, of in again.items()} == {
        part: dict(of.found) for part, of in before.items()
    }


def test_what_was_observed_of_other_switches_stays() -> None:
    known = OBSERVED[CONSUMER]
    now = Observations(
        part=CONSUMER,
        releases=known.releases,
        other=known.other,
        found={(SWITCH, one): Observation("open", "so") for one in known.releases},
    )
    both = on_code.together(known, now)
    assert both.switches == known.switches
    assert both.where(SWITCH, "open") == known.releases
    assert [both.where(s, "shown") for s in known.switches if s != SWITCH] == [
        known.where(s, "shown") for s in known.switches if s != SWITCH
    ]
    with pytest.raises(ValueError, match="other releases than were observed"):
        on_code.together(OBSERVED[CLIENT], now)


@needs_java
@pytest.mark.slow
def test_two_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "consumers", lambda: ("2.8.0", "2.8.1"))
    monkeypatch.setattr(releases, "coordinators", lambda: (RELEASE,))
    seen = {one.part: one for one in on_code.observe_all(["reset_on_retriable"])}
    assert seen[CONSUMER].where("reset_on_retriable", "shown") == ("2.8.0",)
    assert seen[CONSUMER].where("reset_on_retriable", "absent") == ("2.8.1",)
