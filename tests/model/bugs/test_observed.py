"""What was observed of releases beside what the catalogue says: every difference is explained."""

from __future__ import annotations

import pytest
from rebalance_verifier.model.bugs import observed
from rebalance_verifier.model.bugs.observed import (
    CLIENT,
    CONSUMER,
    COORDINATOR,
    OBSERVED,
    Explanation,
    Observation,
    Observations,
    concerns,
    unused,
)

SWITCH = "prepare_not_repeated_after_reset"  # J1: to 2.7.1, and 2.8.0


def observations(**seen: str) -> Observations:
    """Of releases such as r2_8_0."""
    releases = tuple(name[1:].replace("_", ".") for name in seen)
    found = {
        (SWITCH, release): Observation(one)  # type: ignore[arg-type]
        for release, one in zip(releases, seen.values(), strict=True)
    }
    return Observations(part=CONSUMER, releases=releases, other="4.3.1", found=found)


def test_every_difference_is_explained_and_every_explanation_is_of_one() -> None:
    differing = [
        one
        for part in (CONSUMER, COORDINATOR)
        for switch in OBSERVED[part].switches
        for one in OBSERVED[part].differences(switch)
    ]
    assert differing
    assert [one for one in differing if not one.why] == []
    assert list(unused(OBSERVED)) == []


def test_each_release_was_asked_of_each_switch() -> None:
    for part, of in OBSERVED.items():
        assert set(of.found) == {(switch, one) for switch in of.switches for one in of.releases}
        assert all(concerns(part, switch) for switch in of.switches)


def test_the_history_of_kafka_was_observed() -> None:
    """As the trackers have it: the last release with a bug shows it, the next one does not."""
    history = {
        SWITCH: ("2.8.0", "2.8.1"),  # KAFKA-12983
        "reset_on_sync_rip": ("3.3.1", "3.3.2"),  # KAFKA-14016
        "reset_on_retriable": ("2.8.0", "2.8.1"),  # KAFKA-13214
        "prepare_commit_never_done": ("3.2.0", "3.2.1"),  # KAFKA-14024
        "unsorted_metadata": ("2.8.0", "2.8.1"),  # KAFKA-12898
        "trust_all_claims": ("2.8.0", "2.8.1"),  # KAFKA-12984
        "validate_raw_claims": ("2.8.1", "2.8.2"),  # KAFKA-13406
        "max_generation_only": ("3.4.0", "3.4.1"),  # KAFKA-14639
    }
    of = OBSERVED[CONSUMER]
    seen = {switch: tuple(of.found[switch, one].seen for one in pair) for switch, pair in history.items()}
    assert seen == dict.fromkeys(history, ("shown", "absent"))


def test_a_difference_has_its_releases_and_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    of = observations(r2_7_0="absent", r2_7_1="absent", r2_8_0="shown", r2_8_1="shown", r4_3_1="open")
    why = Explanation(part=CONSUMER, switch=SWITCH, seen="absent", releases="2.7.1", why="so")
    monkeypatch.setattr(observed, "EXPLANATIONS", (why,))
    found = [(one.seen, one.releases, one.why) for one in of.differences(SWITCH)]
    assert found == [
        ("shown", ("2.8.1",), ""),
        ("absent", ("2.7.0",), ""),
        ("absent", ("2.7.1",), "so"),
        ("open", ("4.3.1",), ""),
    ]


def test_an_explanation_of_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = observations(r2_7_1="shown", r2_8_0="shown", r2_8_1="absent")
    why = Explanation(part=CONSUMER, switch=SWITCH, seen="absent", releases="2.7.1 to 2.8.0", why="so")
    monkeypatch.setattr(observed, "EXPLANATIONS", (why,))
    assert list(unused({CONSUMER: right})) == [why]
    wrong = observations(r2_7_1="absent", r2_8_0="absent", r2_8_1="absent")
    assert list(unused({CONSUMER: wrong})) == []


def test_releases_that_were_not_asked_lie_in_no_range() -> None:
    of = observations(r2_8_0="shown", r2_8_1="absent", r4_3_1="absent")
    assert of.spans(of.where(SWITCH, "absent")) == "2.8.1, 4.3.1"
    assert of.spans(of.where(SWITCH, "shown", "absent")) == "all"
    assert of.spans(of.where(SWITCH, "open")) == "-"


def test_whom_a_switch_concerns() -> None:
    assert concerns(CONSUMER, SWITCH)
    assert not concerns(COORDINATOR, SWITCH)
    assert concerns(COORDINATOR, "sync_load_error_raw")
    assert concerns(CLIENT, "prepare_once_per_rebalance")
