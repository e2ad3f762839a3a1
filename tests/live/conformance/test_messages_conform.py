"""Recordings with messages: a real migration is a run of the model, and a changed one is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.live.clients.record.coordinator import COORDINATOR
from rebalance_verifier.live.clients.record.messages import APIS, MESSAGES
from rebalance_verifier.live.conformance.ask import ConformanceAnswer
from rebalance_verifier.live.conformance.log import LogError, read
from rebalance_verifier.live.conformance.question import Choices
from rebalance_verifier.live.conformance.wire import group as wire_group
from rebalance_verifier.live.conformance.wire.frontier import Partitions
from rebalance_verifier.live.conformance.wire.group import WireGroup
from rebalance_verifier.live.conformance.wire.intended import IntendedTargets
from rebalance_verifier.live.conformance.wire.lines import NEEDED
from rebalance_verifier.live.conformance.wire.question import (
    WireQuestion,
    ask_wire,
    build_wire_question,
    has_messages,
)
from rebalance_verifier.model.consumer.coordinator import TargetMember
from rebalance_verifier.model.group.parts import Parts, Slot

from tests.command import Rebalance

MIGRATION = Path(__file__).parents[3] / "examples" / "recordings" / "migration"
"""One Java consumer and one of librdkafka, from range to the consumer protocol and back, on Kafka 4.4.0."""

NOT_CONVERTED = MIGRATION.with_name("not-converted")
"""Two consumers of librdkafka with cooperative-sticky; one comes back with the consumer protocol, in vain."""

Line = dict[str, Any]


def question(directory: Path = MIGRATION, **more: Any) -> WireQuestion:
    return build_wire_question(read(directory), Choices(**more))


def ask(directory: Path = MIGRATION, **more: Any) -> ConformanceAnswer:
    return ask_wire(question(directory), Choices(**more))


def changed(
    tmp_path: Path, name: str, change: Callable[[list[Line]], Any], recording: Path = MIGRATION
) -> Path:
    """The recording with the lines of one file changed in place."""
    out = tmp_path / "changed"
    shutil.copytree(recording, out)
    lines = [json.loads(line) for line in (out / name).read_text().splitlines()]
    change(lines)
    (out / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


def first(lines: list[Line], **values: Any) -> Line:
    """The first line that has these values."""
    return next(line for line in lines if all(line.get(name) == value for name, value in values.items()))


def test_a_migration_of_real_clients_is_a_run_of_the_model() -> None:
    assert has_messages(read(MIGRATION))
    answer = ask()
    found = answer.conformance
    assert (found.verdict, found.longest) == ("explained", found.events)
    taken = {step.event.action for step in found.witness if step.event is not None}
    # Both ways, and what members of both kinds do.
    assert {"bounce", "heartbeat arrives", "request arrives", "join phase ends", "revoke", "beat"} <= taken
    shown = [position for step in found.witness for position in step.shows]
    assert sorted(shown) == list(range(found.events))
    converted = {str(line) for line in answer.question.lines if line.event == "converted"}
    assert {line.split()[1].strip("(") for line in converted} == {"classic", "consumer"}


def drop(**values: Any) -> Callable[[list[Line]], Any]:
    return lambda lines: lines.remove(first(lines, **values))


def put(values: Line, **other: Any) -> Callable[[list[Line]], Any]:
    return lambda lines: first(lines, **values).update(other)


STATE = {"event": "state", "state": "UNREVOKED_PARTITIONS"}
BEAT = "ConsumerGroupHeartbeat"


def _given_to_another(lines: list[Line]) -> None:
    plan = first(lines, event="target")["plan"]
    one, other = plan
    plan[one], plan[other] = plan[other], plan[one]


def _older(lines: list[Line]) -> None:
    late = [line for line in lines if line["event"] == "request" and line["api"] == BEAT]
    late[-2]["generation"] -= 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("messages.jsonl", drop(event="converted", detail="consumer"), id="not converted"),
        pytest.param("messages.jsonl", drop(event="converted", detail="classic"), id="not converted back"),
        pytest.param("messages.jsonl", drop(event="target"), id="no target"),
        pytest.param("messages.jsonl", _given_to_another, id="another target"),
        pytest.param("messages.jsonl", drop(**STATE), id="a step that is not logged"),
        pytest.param("messages.jsonl", put(STATE, previous=1), id="another previous epoch"),
        pytest.param("messages.jsonl", put(STATE, pending=[]), id="nothing to revoke"),
        pytest.param("messages.jsonl", drop(event="removed"), id="a member that stays"),
        pytest.param("messages.jsonl", _older, id="a heartbeat in an older epoch"),
        pytest.param(
            "messages.jsonl",
            put({"event": "answer", "api": "SyncGroup"}, partitions=[]),
            id="a sync with nothing",
        ),
        pytest.param(
            "messages.jsonl",
            put({"event": "answer", "api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}, error="NONE"),
            id="a heartbeat that calls nobody",
        ),
        pytest.param("events.jsonl", drop(event="revoked"), id="a callback that did not come"),
        pytest.param(
            "events.jsonl", put({"event": "assigned"}, partitions=["orders-0"]), id="another callback"
        ),
    ],
)
def test_what_did_not_happen_is_no_run_of_the_model(
    tmp_path: Path, name: str, change: Callable[[list[Line]], Any]
) -> None:
    found = ask(changed(tmp_path, name, change)).conformance
    assert found.verdict == "mismatch"
    assert found.longest < found.events
    assert found.blamed is not None
    assert found.blamed in found.pending


def test_a_lost_line_of_the_broker_is_named_with_what_the_model_does(tmp_path: Path) -> None:
    answer = ask(changed(tmp_path, "messages.jsonl", put(STATE, previous=1)))
    blamed = answer.conformance.blamed
    assert blamed is not None
    assert "from 1 UNREVOKED_PARTITIONS" in str(answer.question.lines[blamed])
    assert any("UNREVOKED_PARTITIONS" in text for text, _ in answer.conformance.allowed)


@pytest.mark.parametrize("without", ["previous_epoch_overwritten", "upgrade_keeps_target"])
def test_a_coordinator_that_does_otherwise_is_noticed(without: str) -> None:
    asked = question()
    setup = asked.group.setup
    assert without in setup.coordinator
    other = replace(setup, coordinator=setup.coordinator - {without})
    group = WireGroup(asked.recording, other, asked.group.partitions)
    found = ask_wire(replace(asked, group=group), Choices()).conformance
    assert found.verdict == "mismatch"


def test_where_namings_are_too_many_the_targets_are_those_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_group, "MAX_NAMINGS", 1)
    asked = question()
    assert asked.group.setup.naming == "given"
    assert ask_wire(asked, Choices()).conformance.verdict == "explained"


def intended(plan: Line, before: tuple[int, int]) -> list[tuple[Parts, ...]]:
    asked = question()
    partitions = Partitions(numbers={"t-0": 0, "t-1": 1}, topics={"t": 0})
    members = {"a": 0, "b": 1}
    lanes = dict.fromkeys(asked.recording.lanes, ())
    recording = replace(asked.recording, members=members, plans={1: plan}, lanes=lanes)
    setup = replace(asked.group.setup, topics=(Parts(0b11),), exist=Parts(0b11), naming="given", targets=None)
    everything = Parts(0b11)
    targeted = [TargetMember(Slot(slot), 1, everything, Parts(before[slot])) for slot in (0, 1)]
    return list(IntendedTargets(recording, setup, partitions)(targeted))


@pytest.mark.parametrize(
    ("plan", "before", "taken"),
    [
        ({"a": ["t-0"], "b": ["t-1"]}, (0, 0), [(1, 2)]),
        ({"a": ["t-1"], "b": ["t-0"]}, (0, 0), [(2, 1)]),
        ({"a": ["t-1"], "b": ["t-0"]}, (1, 2), []),  # what was there could stay
        ({"a": ["t-0", "t-1"], "b": []}, (0, 0), []),  # uneven
        ({"a": ["t-0"], "b": []}, (0, 0), [(1, 0)]),  # a leader withholds the other one
        ({"a": ["t-0", "t-1"]}, (0, 0), []),  # of another group
    ],
)
def test_a_target_has_to_be_as_good_as_the_models(
    plan: Line, before: tuple[int, int], taken: list[tuple[int, ...]]
) -> None:
    assert intended(plan, before) == taken


def test_the_command_reads_messages_where_there_are_some(rebalance: Rebalance, tmp_path: Path) -> None:
    ran = rebalance("conform", MIGRATION, "--out", tmp_path / "answer.json")
    assert (ran.code, "explained by java-4.4.0, librdkafka on broker-4.4.0" in ran.out) == (0, True)
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert (answer["verdict"], answer["longest"]) == ("conformant", answer["events"])
    assert [one["profile"] for one in answer["consumers"]] == ["java-4.4.0", "librdkafka"]
    spoiled = changed(tmp_path, "messages.jsonl", drop(event="target"))
    ran = rebalance("conform", spoiled)
    assert ran.code == 1
    assert "no state of the model allows it there" in ran.out
    ran = rebalance("conform", MIGRATION, "--show")
    assert "leader decides (java-4.4.0-1 orders-2, confluent-1 orders-0 orders-1)" in ran.out


def _joins_twice(lines: list[Line], *, generation: int = 0, claim: str = "") -> None:
    """The leader's JoinGroup and its answer come once more before its SyncGroup."""
    number, sync = next(
        (number, line) for number, line in enumerate(lines) if line.get("plan") and line["event"] == "request"
    )
    [join] = [
        line
        for line in lines[:number]
        if (line.get("api"), line.get("member"), line["event"]) == ("JoinGroup", sync["member"], "request")
    ][-1:]
    [answer] = [line for line in lines if line["event"] == "answer" and line["number"] == join["number"]]
    more = {"number": 10_000, "at": sync["at"]}
    again = {**answer, **more, "generation": answer["generation"] + generation}
    lines[number:number] = [{**join, **more, "partitions": [claim] if claim else []}, again]


def test_a_leader_that_joins_once_more_before_it_assigns_is_answered_the_same(tmp_path: Path) -> None:
    answer = ask(changed(tmp_path, "messages.jsonl", _joins_twice))
    taken = [step.event.action for step in answer.conformance.witness if step.event is not None]
    assert (answer.conformance.verdict, taken.count("join again")) == ("explained", 1)


@pytest.mark.parametrize("other", [{"generation": 1}, {"claim": "orders-0"}])
def test_but_not_in_another_generation_nor_with_another_claim(tmp_path: Path, other: Line) -> None:
    twice = changed(tmp_path, "messages.jsonl", lambda lines: _joins_twice(lines, **other))
    assert ask(twice).conformance.verdict == "mismatch"


def _answered_late(lines: list[Line]) -> None:
    """A classic member is answered a heartbeat after it has left."""
    leave = next(line for line in lines if line.get("api") == "LeaveGroup" and line["event"] == "request")
    mine = {"consumer": leave["consumer"], "api": "Heartbeat"}
    request = next(line for line in lines if {**line, **mine} == line and line["event"] == "request")
    [answer] = [one for one in lines if one["event"] == "answer" and one["number"] == request["number"]]
    number = lines.index(leave)
    again = {"number": 20_000, "at": leave["at"]}
    before = [line for line in lines[:number] if line.get("consumer") == leave["consumer"]]
    generation = [
        line["generation"] for line in before if line.get("api") == "Heartbeat" and "generation" in line
    ]
    lines.insert(number + 1, {**answer, **again, "error": "NONE"})
    lines.insert(number, {**request, **again, "generation": generation[-1]})


def test_what_is_answered_to_who_has_left_changes_nothing(tmp_path: Path) -> None:
    answer = ask(changed(tmp_path, "messages.jsonl", _answered_late))
    taken = [step.event.action for step in answer.conformance.witness if step.event is not None]
    assert (answer.conformance.verdict, taken.count("unheard")) == ("explained", 1)


def test_a_group_whose_leader_assigns_user_data_is_not_converted(tmp_path: Path) -> None:
    found = ask(NOT_CONVERTED).conformance
    taken = [step.event.action for step in found.witness if step.event is not None]
    assert (found.verdict, taken.count("not converted")) == ("explained", 1)

    def without(lines: list[Line]) -> None:
        for line in lines:
            line.pop("user_data", None)

    plain = changed(tmp_path, "messages.jsonl", without, NOT_CONVERTED)
    assert ask(plain).conformance.verdict == "mismatch"


def test_a_search_that_meets_its_limit_is_inconclusive() -> None:
    found = ask(limit=50).conformance
    assert (found.verdict, found.why) == ("inconclusive", "more than 50 pairs")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("messages.jsonl", "{", "messages.jsonl:1: not JSON"),
        ("messages.jsonl", "[]", "messages.jsonl:1: no message"),
        ("messages.jsonl", "", "no messages of group recorded"),
        ("messages.jsonl", '{"event": "heard", "group": "recorded"}', "no messages of group recorded"),
        ("messages.jsonl", "[" * 100_000, "messages.jsonl:1: not JSON"),
        ("messages.jsonl", "\0\xff", "messages.jsonl:1: not JSON"),
        ("run.json", "{}", "run.json does not say what each stage speaks"),
    ],
)
def test_what_is_no_recording_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(MIGRATION, out)
    (out / name).write_text(text)
    with pytest.raises(LogError, match=message):
        question(out)


HEARTBEAT = {"event": "request", "api": BEAT}
ANSWER = {"event": "answer", "api": "SyncGroup"}
TARGET = {"event": "target"}


@pytest.mark.parametrize(
    ("line", "more", "message"),
    [
        (HEARTBEAT, {"number": None}, "field 'number' is null, expected a whole number"),
        (HEARTBEAT, {"number": True}, "field 'number' is true, expected a whole number"),
        (HEARTBEAT, {"api": "Fetch"}, "field 'api' is \"Fetch\", expected one of ConsumerGroupHeartbeat, "),
        (HEARTBEAT, {"api": ["Heartbeat"]}, r"field 'api' is \["),
        (HEARTBEAT, {"generation": "1"}, "field 'generation' is \"1\", expected a whole number"),
        (HEARTBEAT, {"generation": None}, "field 'generation' is null"),
        (HEARTBEAT, {"topics": "orders"}, "field 'topics' is \"orders\", expected a list of strings"),
        (HEARTBEAT, {"at": "soon"}, "field 'at' is \"soon\", expected ISO 8601"),
        (ANSWER, {"error": None}, "field 'error' is null, expected a string"),
        (ANSWER, {"partitions": None}, "field 'partitions' is null, expected a list of strings"),
        (ANSWER, {"api": "JoinGroup", "generation": 1}, r"answers request \d+, which is of SyncGroup"),
        (TARGET, {"plan": {"a": "orders-0"}}, "field 'plan' is .* expected an object of lists of strings"),
        (STATE, {"pending": None}, "field 'pending' is null"),
        (STATE, {"member": 7}, "field 'member' is 7, expected a string"),
        ({"event": "stable"}, {"generation": []}, r"field 'generation' is \[\]"),
        ({"event": "converted"}, {"detail": None}, "field 'detail' is null"),
    ],
)
def test_a_line_that_lacks_something_is_named(tmp_path: Path, line: Line, more: Line, message: str) -> None:
    spoiled = changed(tmp_path, "messages.jsonl", put(line, **more))
    with pytest.raises(LogError, match=rf"messages\.jsonl:\d+: {message}"):
        question(spoiled)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("assignors", ["range", "uniform", "range"], "field 'assignors' is .* expected a list of lists"),
        ("assignors", [["range"], [], ["range"]], "run.json does not say what each stage speaks"),
        ("protocols", "classic", "run.json does not say what each stage speaks"),
        ("protocols", ["classic", "share", "classic"], "other protocols than classic and consumer"),
        ("request", None, "run.json: field 'request' is null, expected an object"),
        ("request", {}, "run.json: field 'partitions' is null, expected a whole number from 0 on"),
        ("request", {"partitions": 10**9}, "at most 8 and 64 can be asked about"),
        ("cluster", "kafka", "run.json: field 'cluster' is \"kafka\", expected an object"),
        ("cluster", {"kind": "kafka"}, "run.json: field 'version' is null, expected a string"),
        ("steps", [{"do": "start", "stage": "1"}], "run.json: step 1: field 'stage' is \"1\""),
        (
            "steps",
            [{"do": "start", "stage": -9}],
            "step 1: field 'stage' is -9, expected a whole number from 0",
        ),
    ],
)
def test_a_run_that_lacks_something_is_named(tmp_path: Path, field: str, value: Any, message: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(MIGRATION, out)
    run = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**run, field: value}))
    with pytest.raises(LogError, match=message):
        question(out)


def test_every_event_that_is_recorded_has_fields_that_are_looked_at() -> None:
    assert {event for event, _ in NEEDED} == {*MESSAGES, *COORDINATOR}
    assert {api for _, api in NEEDED} <= {"", *APIS}


def test_a_failover_is_not_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(MIGRATION, out)
    run = json.loads((out / "run.json").read_text())
    run["steps"].append({"do": "fail_coordinator"})
    (out / "run.json").write_text(json.dumps(run))
    with pytest.raises(LogError, match="a failover is not read"):
        question(out)
