"""What habits do not excuse: a client has its own only, and what no client may do stays a mismatch."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import runs
from rebalance_verifier.live.conformance.ask import ConformanceAnswer, ask
from rebalance_verifier.live.conformance.clients.table import DEVIATIONS, client_of
from rebalance_verifier.live.conformance.deviations import with_deviations
from rebalance_verifier.live.conformance.log import read
from rebalance_verifier.live.conformance.observed import SearchQuestion
from rebalance_verifier.live.conformance.question import Choices, build_question
from rebalance_verifier.model.bugs.profiles import CLIENTS
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import Consumer, Setup

TELLS = {
    "librdkafka": "confluent-kafka 2.16.1, librdkafka 2.16.0",
    "kafka-python": "kafka-python 3.0.12",
    "aiokafka": "aiokafka 0.14.0",
    "java": "kafka-clients 4.1.0",
}
A, B = ["a-0", "a-1"], ["b-0", "b-1"]
Lines = list[dict[str, Any]]


def line(at: float, kind: str, consumer: str, **more: Any) -> dict[str, Any]:
    return {"at": 1_000.0 + at, "event": kind, "group": "g", "consumer": consumer, **more}


def lives(client: str, name: str, at: float, generation: int, parts: list[str]) -> Lines:
    """A consumer of topic a starts, joins and is assigned ``parts``."""
    joining = [line(at + 0.2, "joining", name), line(at + 0.21, "joining", name)]
    return [
        line(at, "started", name, detail=TELLS[client]),
        line(at + 0.1, "subscribed", name, topics=["a"]),
        *joining[: 1 if client == "aiokafka" else 2],
        line(at + 0.5, "joined", name, generation=generation),
        line(at + 0.6, "synced", name, generation=generation),
        line(at + 0.7, "assigned", name, generation=generation, partitions=parts),
    ]


def answer_for(
    lines: Lines, client: str, to: Path, profiles: tuple[tuple[str, str], ...] = ()
) -> ConformanceAnswer:
    text = "".join(json.dumps(one) + "\n" for one in sorted(lines, key=lambda one: one["at"]))
    (to / "events.jsonl").write_text(text, encoding="utf-8")
    assignor = "range" if client == "aiokafka" else "cooperative-sticky"
    run = {"cluster": {"kind": "kafka"}, "assignors": [[assignor]], "partitions": 2}
    (to / "run.json").write_text(json.dumps(run), encoding="utf-8")
    choices = Choices(topics={"a": 2, "b": 2}, profiles=profiles)
    return ask(build_question(read(to), choices), choices)


@pytest.mark.parametrize("client", TELLS)
def test_what_no_client_may_do_is_a_mismatch(client: str, tmp_path: Path) -> None:
    """Assigned what it does not subscribe to; a callback for what it never had; a generation that falls."""
    alone = lives(client, "one", 0, 5, A)
    assert answer_for(alone, client, tmp_path).conformance.verdict == "explained"
    wrong: dict[str, Lines] = {
        "not subscribed": lives(client, "one", 0, 5, B),
        "never had": [*alone, line(5, "revoked", "one", partitions=B)],
        "falls": [
            *alone,
            line(5, "joining", "one", generation=5),
            line(5.5, "joined", "one", generation=4),
        ],
        "assigned twice": [*alone, line(5, "assigned", "one", generation=5, partitions=A)],
    }
    for name, lines in wrong.items():
        assert (name, answer_for(lines, client, tmp_path).conformance.verdict) == (name, "mismatch")


@pytest.mark.parametrize("client", TELLS)
def test_two_owners_in_one_generation_are_a_mismatch(client: str, tmp_path: Path) -> None:
    """one keeps what it has, and two is given it: only kafka-python's leader is known to do that."""
    eager = client == "aiokafka"
    lines = [*lives(client, "one", 0, 1, A), *lives(client, "two", 2, 2, A)]
    lines += [line(2.3, "revoked", "one", partitions=A)] if eager else []
    lines += [line(2.31, "joining", "one", generation=1), line(2.5, "joined", "one", generation=2)]
    lines += [line(2.6, "synced", "one", generation=2)]
    if client != "kafka-python":  # it tells of no empty assignment
        lines += [line(2.7, "assigned", "one", generation=2, partitions=A if eager else [])]
    found = answer_for(lines, client, tmp_path)
    answer = found.conformance.verdict, list(found.findings)
    assert answer == (("explained", ["leader/withhold"]) if client == "kafka-python" else ("mismatch", []))


@pytest.mark.parametrize("profile", CLIENTS)
def test_a_client_has_its_own_habits_only(profile: str) -> None:
    client = client_of(profile)
    member = Consumer(stages=(runs(profile, ("range",)),), subscriptions=(Topics(1), Topics(2)))
    setup = Setup(consumers=(member,), topics=(Parts(3), Parts(12)), exist=Parts(15))
    timed = [(deviation.id, 0) for deviation in DEVIATIONS]
    made = with_deviations(machine(setup), setup, (client,), timed=timed, findings=True)
    known = {action.name for action in machine(setup).actions}
    added = {action.name for action in made.actions} - known
    assert added == {deviation.id for deviation in DEVIATIONS if profile.startswith(deviation.client)}
    for action in made.actions:  # each reads and writes what there is
        assert {*action.reads, *action.writes} <= set(made.components), action.name
    benign = with_deviations(machine(setup), setup, (client,), timed=timed, findings=False)
    assert {action.name for action in benign.actions} - known == {
        deviation.id for deviation in DEVIATIONS if deviation.benign and profile.startswith(deviation.client)
    }
    assert not any(
        action.name in {deviation.id for deviation in DEVIATIONS if deviation.timed}
        for action in with_deviations(machine(setup), setup, (client,), timed=(), findings=True).actions
    )


@pytest.mark.parametrize(
    "release", [one for one in CLIENTS if one.startswith(("librdkafka", "kafka-python"))]
)
def test_every_release_of_a_client_can_be_asked(release: str, tmp_path: Path) -> None:
    lines = [*lives("librdkafka", "one", 0, 1, A), line(5, "subscribed", "one", topics=["b"])]
    found = answer_for(lines, "librdkafka", tmp_path, (("*", release),))
    assert found.conformance.verdict == "explained"


def test_of_a_narrow_window_the_last_search_gets_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the narrowest window is all of it there are two searches, not four."""
    answer_for(lives("librdkafka", "one", 0, 1, A), "librdkafka", tmp_path)  # writes the files
    seconds: list[float] = []

    def never(question: SearchQuestion, *_: Any) -> Any:
        assert question.seconds is not None
        seconds.append(question.seconds)
        return SimpleNamespace(verdict="mismatch")

    monkeypatch.setattr("rebalance_verifier.live.conformance.ask.conforms", never)
    for window, searches in ((1.0, 4), (0.05, 2)):
        seconds.clear()
        choices = Choices(window=window, seconds=1000)
        ask(build_question(read(tmp_path), choices), choices)
        assert len(seconds) == searches
        assert seconds[-1] > 900
