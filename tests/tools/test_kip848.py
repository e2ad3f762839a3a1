"""What the public model of KIP-848 asks, asked of ours: it holds as specified, and finds mistakes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer.state import ClientState
from rebalance_verifier.model.machine import Event

from tools.kip848 import questions
from tools.kip848.__main__ import PAGE, SIZES, consumer_switches, found, soonest, with_theirs
from tools.kip848.questions import QUESTIONS, may_follow


@pytest.mark.parametrize(
    "scenario",
    [
        "consumer",
        "consumer-static",
        pytest.param("consumer-connections", marks=pytest.mark.nightly),
        "consumer-topics",
        pytest.param("consumer-anew", marks=pytest.mark.nightly),
        pytest.param("consumer-patterns", marks=pytest.mark.nightly),
    ],
)
def test_as_specified_all_hold(scenario: str) -> None:
    found = with_theirs(SCENARIOS[scenario].setup(ScenarioSize(members=2, partitions=2)))
    assert found.complete
    assert soonest(found) == ({}, {})


SOONEST: Mapping[str, str] = {
    "epoch_lost_on_reassign": questions.PARTITION_EPOCH,
    "new_pattern_keeps_target": questions.STABLE_GROUP,
    "pattern_topics_unwatched": questions.LEGAL_TARGET,
    "ignore_current_epoch": questions.NO_DOUBLE,
    "no_rejoin_flag": questions.TYPE_OK,
}


@pytest.mark.parametrize(("switch", "question"), SOONEST.items())
def test_a_mistake_breaks_a_question(switch: str, question: str) -> None:
    _, theirs = soonest(with_theirs(consumer_switches()[switch].setup()))
    assert min(theirs, key=lambda name: theirs[name]) == question


def test_a_client_that_is_too_far_ahead_is_seen() -> None:
    _, theirs = soonest(with_theirs(consumer_switches()["heartbeat_while_fenced"].setup()))
    assert questions.VALID_MEMBER_EPOCH in theirs


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        (ClientState.JOINING, ClientState.STABLE, True),
        (ClientState.STABLE, ClientState.UNSUBSCRIBED, True),  # by way of leaving
        (ClientState.RECONCILING, ClientState.JOINING, True),  # fenced, with nothing to lose
        (ClientState.STABLE, ClientState.ACKNOWLEDGING, False),
        (ClientState.UNSUBSCRIBED, ClientState.RECONCILING, False),
    ],
)
def test_states_follow_each_other_as_in_the_client(
    before: ClientState, after: ClientState, may: bool
) -> None:
    assert may_follow(before, after) is may


def test_an_epoch_that_goes_back_is_seen() -> None:
    event = Event("answer", 0)
    assert questions._back("A", event, ((1, 5), (1, 4)))
    assert not questions._back("A", event, ((1, 5), (2, 1)))  # another process
    assert questions._taken_back("A", event, (((1, 5),), ((1, 4),)))
    assert not questions._taken_back("A", event, (((1, 5),), ((2, 1),)))


def test_the_page_names_each_question_and_each_mistake_and_each_size() -> None:
    page = PAGE.read_text("utf-8")
    assert not [name for name, sentence in QUESTIONS.items() if f"| `{name}` | {sentence} |" not in page]
    assert not [name for name in consumer_switches() if f"| `{name}` |" not in page]
    assert not [size for size in SIZES if f"| {size} |" not in page]


@pytest.mark.nightly
def test_the_page_is_what_our_model_gives_today() -> None:
    page = PAGE.read_text("utf-8")
    assert not [row for row in found() if "| " + " | ".join(row) + " |" not in page]


def test_our_sizes_are_those_of_the_page() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text("utf-8").splitlines() if " x 2, " in line]
    small = SIZES[:3]
    assert [f"{with_theirs(size.setup()).distinct:,}" for size in small] == [row[3] for row in rows][:3]
