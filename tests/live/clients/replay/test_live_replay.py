"""Runs of the model against real clients: the script, the verdict, and clients that are known to differ."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.cli.commands import replay as replay_cli
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN as SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.clients.clusters.cluster import Unsupported
from rebalance_verifier.live.clients.consumers.clients.recorder import THREW
from rebalance_verifier.live.clients.consumers.member import ClientProfile, Log
from rebalance_verifier.live.clients.proxy.proxy import ProxyTimeout
from rebalance_verifier.live.clients.replay.client import AT_ONCE, TAKEN, Diverged, ReplayClient, thrown
from rebalance_verifier.live.clients.replay.coordinator import COORDINATOR, TraceCoordinator
from rebalance_verifier.live.clients.replay.driver import ClientDriver, client_steps
from rebalance_verifier.live.clients.replay.judge import ReplayJudge
from rebalance_verifier.live.clients.replay.replay_plan import PARTS, Due, SendTime, alike, due, replay_plan
from rebalance_verifier.live.clients.replay.replayer import CLUSTER, NOT_FORCED
from rebalance_verifier.live.clients.replay.scene import ReplayScene
from rebalance_verifier.live.clients.replay.standstill import stands_still
from rebalance_verifier.live.clients.replay.verdict import OBSERVABLE_CLAUSES, BrokenClause, Replayed
from rebalance_verifier.live.code.replay.attempts import peer, replay
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.model.classic.describe import observation_text
from rebalance_verifier.model.classic.group import FAULTS, machine
from rebalance_verifier.model.group.observations import Call, Callback, Claimed, Completed, Left, Threw
from rebalance_verifier.model.group.parts import Generation, Parts, Slot
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import CannotHappenError, Event
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.report.terminal.replayed import on_clients
from rebalance_verifier.report.terminal.trace import named
from rebalance_verifier.traces import runs

from tests.command import Rebalance

EMPTY = "skip_empty_assigned_cb"
"""Nobody is told that a rebalance brought nothing: kafka-python 3.0.12 does so, librdkafka does not."""
FORGOTTEN = "prepare_not_repeated_after_reset"
"""JoinGroup is answered UNKNOWN_MEMBER_ID, and what was owned is kept and claimed: KAFKA-12983."""


@cache
def shown(switch: str) -> SavedRun:
    found = reproduce(SHOWN[switch])
    assert found is not None
    return found


# -- the script --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "switch", ["reset_on_retriable", "skip_empty_assigned_cb",
               "join_rip_fatal", "static_replace_in_completing_no_rebalance", "no_snapshot_before_callback"]
)  # fmt: skip
def test_a_script_takes_the_trace_where_it_goes(switch):
    """Step by step the two granularities go through the same states, but for what faults cost."""
    run = shown(switch)
    _, steps = replay_plan(run)
    built = machine(run.setup)
    budget = built.position["budget"]
    for number, (state, _) in enumerate(built.replay(run.events), 1):
        last = [step for step in steps if step.number == number][-1]
        assert _without(last.after, budget) == _without(state, budget), number
    assert {step.event.action for step in steps}.isdisjoint(
        {name for name, parts in PARTS.items() if parts[0] != name}
    )


@pytest.mark.parametrize("scenario", ["dynamic", "static", "growing"])
def test_any_walk_of_large_steps_is_a_walk_of_small_ones(scenario):
    faults = tuple(fault for fault in FAULTS if fault not in ("resubscribe", "failover"))
    setup = SCENARIOS[scenario].setup(ScenarioSize(members=2, partitions=2, faults=faults, budget=6))
    built = machine(setup)
    budget = built.position["budget"]
    for seed in range(12):
        draw, state, events = random.Random(seed), built.initial[0], []
        reached = [state]
        for _ in range(40):
            outcomes = list(built.outcomes(state))
            if not outcomes:
                break
            event, outcome = draw.choice(outcomes)
            state = built.apply(state, event, outcome)
            events.append(event)
            reached.append(state)
        _, steps = replay_plan(SavedRun(setup=setup, clause="group/owner", events=tuple(events)))
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if following is None or following.number != step.number:
                assert _without(step.after, budget) == _without(reached[step.number], budget), (
                    seed,
                    step.event,
                )


def _without(state: tuple[object, ...], index: int) -> tuple[object, ...]:
    return state[:index] + state[index + 1 :]


def test_a_trace_of_fine_steps_is_its_own_script():
    run = shown("reset_on_retriable")
    _, steps = replay_plan(run)
    fine = replace(
        run, setup=replace(run.setup, steps="fine", budget=9), events=tuple(step.event for step in steps)
    )
    assert [step.event for step in replay_plan(fine)[1]] == [step.event for step in steps]


@pytest.mark.parametrize(
    ("switch", "owed"),
    [
        ("prepare_commit_never_done", {"A": Due.JOIN}),
        ("joinfuture_not_cleared", {"A": Due.JOIN}),
        ("assign_during_close_hangs", {"A": Due.END}),
        ("no_heartbeat_in_completing", {}),  # goes on for ever
        ("no_leave_on_unsubscribe", {}),  # ends
    ],
)
def test_who_has_to_do_something_in_a_group_that_stands_still(switch, owed):
    run = shown(switch)
    assert due(run, replay_plan(run)[1]) == owed


@pytest.mark.parametrize(
    ("switch", "sent"),
    [
        ("commit_error_no_rejoin", SendTime.NOW),
        ("late_commit_resets", SendTime.BEHIND),
        ("no_sent_generation_check", SendTime.NEVER),
    ],
)
def test_a_late_request_is_sent_when_a_connection_allows_its_answer(switch, sent):
    _, steps = replay_plan(shown(switch))
    request = next(step for step in steps if step.event.action == "late request")
    assert request.send_time is sent


def test_what_the_model_does_not_allow_is_named():
    run = shown("reset_on_retriable")
    with pytest.raises(CannotHappenError, match="step 1, 'A receive join', cannot happen"):
        replay_plan(replace(run, events=(Event("receive join", 0), *run.events)))


@pytest.mark.parametrize(
    ("decided", "really", "same"),
    [
        ([{"A": 0b01, "B": 0b10}], [{"A": 0b10, "B": 0b01}], True),
        ([{"A": 0b01, "B": 0b10}], [{"A": 0b11, "B": 0}], False),
        ([{"A": 0b01, "B": 0b10}, {"A": 0b01, "B": 0}], [{"A": 0b10, "B": 0b01}, {"A": 0b10, "B": 0}], True),
        ([{"A": 0b01, "B": 0b10}, {"A": 0b01, "B": 0}], [{"A": 0b10, "B": 0b01}, {"A": 0b01, "B": 0}], False),
    ],
)
def test_decisions_are_alike_up_to_one_renaming_of_partitions(decided, really, same):
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2))
    assert alike(setup, list(zip(decided, really, strict=True))) is same


def test_partitions_of_two_topics_are_not_taken_for_each_other():
    setup = SCENARIOS["topics"].setup(ScenarioSize(members=2, partitions=2))
    assert len(setup.topics) == 2
    assert not alike(setup, [({"A": 0b01, "B": 0b10}, {"A": 0b10, "B": 0b01})])


# -- what a replay knows -----------------------------------------------------------------------------------


def test_every_step_of_the_model_is_done_or_has_its_reason():
    run = shown("reset_on_retriable")
    done = {*COORDINATOR, *CLUSTER, *NOT_FORCED, *client_steps(client_driver(run, replay_plan(run)[0], {}))}
    for name, scenario in SCENARIOS.items():
        # No client is driven in the consumer protocol yet, and none has stores.
        if scenario.protocol.name != "classic" or scenario.warmups:
            continue
        faults = tuple(fault for fault in FAULTS if fault != "resubscribe" or name != "dynamic")
        setup = scenario.setup(ScenarioSize(faults=faults, steps="fine"))
        for action in machine(setup).actions:
            assert action.name in done, action.name


def test_what_is_asked_are_clauses():
    assert set(CLAUSES) >= OBSERVABLE_CLAUSES


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "none"),
        ({"broken": [BrokenClause("group/owner", 3, "two owners")]}, "same"),
        ({"broken": [BrokenClause("poll/throws", 3, "x"), BrokenClause("group/owner", 4, "y")]}, "same"),
        ({"broken": [BrokenClause("poll/throws", 3, "x")]}, "another"),
        ({"unforced": ["step 3"]}, "inconclusive"),
        ({"stopped": "step 3"}, "inconclusive"),
        ({"clause": "coordinator/keep"}, "inconclusive"),
        ({"differs": ["step 3"]}, "none"),
        ({"unforced": ["step 3"], "broken": [BrokenClause("group/owner", 3, "two owners")]}, "same"),
    ],
)
def test_nothing_unforced_passes_in_silence(change, verdict):
    result = replace(Replayed(clause="group/owner", client="confluent"), **change)
    assert result.verdict == verdict
    assert result.exit == {"none": 0, "same": 1, "another": 1, "inconclusive": 3}[verdict]


def test_a_run_that_stands_still_is_asked_for_what_is_due():
    result = Replayed(clause="group/converges", client="c", due=("A has to join",))
    assert (result.verdict, result.why_unobservable) == ("none", "")
    assert Replayed(clause="group/converges", client="c").verdict == "inconclusive"


@pytest.mark.parametrize(
    ("event", "detail", "is_thrown"),
    [
        ("error", "FencedInstanceIdException: x", True),
        ("error", 'KafkaError{code=_FATAL,val=-150,str="Fatal error: x"}', True),
        ("error", 'KafkaError{FATAL,code=_FENCED,val=-144,str="x"}', True),
        ("error", 'KafkaError{code=_MAX_POLL_EXCEEDED,val=-147,str="FATAL, says somebody"}', False),
        ("lost", "FencedInstanceIdException: x", False),
    ],
)
def test_what_a_poll_throws(event, detail, is_thrown):
    assert thrown({"event": event, "detail": detail}) is is_thrown


class Mute:
    """A member that runs, and does not say what it owns."""

    running, stopped, lines = True, False, ()

    def owned(self, seconds: float) -> None:
        return None


def replay_client(**more: Any) -> ReplayClient:
    proxy: Any = SimpleNamespace(add=lambda rule: rule)
    made = ReplayClient(
        Slot(0), "A", 0, proxy, Log(), lambda names: sum(1 << int(n[-1]) for n in names), 0.01
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def client_driver(run: SavedRun, setup: Setup, due: dict[str, Due]) -> ClientDriver:
    client = ClientProfile("confluent")
    scene = ReplayScene(run=run, setup=setup, profile=client, order=setup.slots, patience=0.01)
    return ClientDriver(scene, TraceCoordinator(scene), ReplayJudge(scene), due)


def test_what_a_client_said_before_is_not_what_it_owns_now():
    with pytest.raises(Diverged, match="A does not say what it owns"):
        list(replay_client(member=Mute(), owned=3).look())


def test_a_callback_shows_what_the_client_owned_meanwhile():
    member: Any = Mute()
    member.running = False
    member.lines = [
        {"event": "owned", "partitions": ["t-1"]},
        {"event": "revoked", "partitions": ["t-0", "t-1"]},
        {"event": "revoked", "partitions": ["t-0"]},  # of a program that does not say
        {"event": "error", "detail": f"KafkaException: x: {THREW}"},
    ]
    first, second, threw = replay_client(member=member, believed=0b11).look()
    assert (first.owned, first.believed) == (0b10, 0b11)
    assert second.owned == second.believed | 0b01
    assert threw == Threw(Slot(0), "listener")


def test_a_client_that_has_ended_does_not_stand_still():
    """Its silence is not what the clause asks about: the replay stops there, and says why."""

    def never(*_: Any) -> None:
        raise ProxyTimeout

    def add_rule(rule: Any) -> Any:
        return SimpleNamespace(rule=rule, matched=[None], remove=lambda: None)

    run = shown("joinfuture_not_cleared")
    setup, steps = replay_plan(run)
    member: Any = SimpleNamespace(
        running=False,
        stopped=False,
        lines=(),
        config={"partition.assignment.strategy": ""},
        stderr=lambda: "x",
    )
    gone = replay_client(member=member, used={"JoinGroup": 1})
    proxy: Any = SimpleNamespace(add=add_rule, wait=never)
    gone.proxy = proxy
    gone.taken = gone.polite = {api: add_rule(None) for api in (*TAKEN, *AT_ONCE)}
    driver = client_driver(run, setup, {"A": Due.JOIN})
    driver.scene.clients.append(gone)
    with pytest.raises(Diverged, match="A has ended: x"):
        stands_still(driver, steps[-1])
    assert driver.scene.result.broken == []
    member.running = True
    stands_still(driver, steps[-1])
    assert [one.clause for one in driver.scene.result.broken] == ["group/converges"]


def test_the_better_of_two_attempts_counts():
    same = Replayed(clause="group/owner", client="c", broken=[BrokenClause("group/owner", 1, "x")])
    other = Replayed(
        clause="group/owner", client="c", broken=[BrokenClause("poll/throws", 1, "x")], unforced=["y"]
    )
    clean = Replayed(clause="group/owner", client="c", done=9)
    stopped = [Replayed(clause="group/owner", client="c", stopped="x", done=done) for done in (3, 5)]
    ranks = [one.rank for one in (same, other, clean, stopped[1], stopped[0])]
    assert ranks == sorted(ranks)


def test_the_report_says_what_was_not_forced_and_not_asked():
    run = shown("reset_on_retriable")
    result = Replayed(
        clause="coordinator/keep", client="confluent", version="librdkafka 2", naming=("A",), steps=4, done=2,
        unforced=["step 2: why"], differs=["step 3: how"], stopped="step 4: what",
        shown=[{"step": 1, "event": "A start", "seen": ["A \x1b[31mtold"], "owned": {}}],
    )  # fmt: skip
    outcome = on_clients(named(Path(), run), result, Path("1.json"), verbose=1)
    text = "\n".join([outcome.line, *outcome.text])
    for part in ("inconclusive", "unforced", "step 2: why", "step 3: how", "step 4: what", "2 of 4 steps",
                 "the coordinator, and consumers are asked", "A start"):  # fmt: skip
        assert part in text
    assert "\x1b" not in text
    assert Replayed(clause="group/converges", client="c").why_unobservable.startswith(
        "group/converges does not show"
    )


def test_the_recording_reads_back(tmp_path):
    run = shown("reset_on_retriable")
    result = Replayed(clause="group/owner", client="java:4.0.0", broken=[BrokenClause("group/owner", 1, "x")])
    path = replay_cli.save(run, result, tmp_path)
    assert path.name == f"{runs.run_id(run)}-java-4.0.0.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    assert (data["kind"], data["verdict"], data["broken"][0]["clause"]) == ("replay", "same", "group/owner")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kafka", "no client is called 'kafka': did you mean kafka-python"),
        ("confluent:2.0", "in the release that is"),
        ("java", "which release of kafka-clients"),
        ("coordinator:4.3.1", "write code:RELEASE or coordinator:RELEASE,consumer:RELEASE"),
        ("code:4.3.1,broker:3.9.0", "write code:RELEASE"),
    ],
)
def test_clients_that_there_are_not_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        peer(name)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("java:3.9.0", ClientProfile("java", "3.9.0")),
        ("code:4.3.1", CodeReleases(coordinator="4.3.1", consumers=("4.3.1",))),
        ("coordinator:4.3.1,consumer:2.8.1", CodeReleases(coordinator="4.3.1", consumers=("2.8.1",))),
        ("consumer:2.8.1,code:4.3.1", CodeReleases(coordinator="4.3.1", consumers=("2.8.1",))),
    ],
)
def test_what_a_run_is_played_on_has_a_name(name, found):
    assert peer(name) == found


def test_an_assignors_counterexample_is_not_played(rebalance: Rebalance):
    path = min((Path(__file__).parents[4] / "docs" / "results" / "traces").glob("*.json"))
    ran = rebalance("replay", path, "--on", "confluent")
    assert ran.code == 2
    assert "not a run of the group" in ran.err
    ran = rebalance("replay", path, "--on", "confluent", "--target", "range")
    assert (ran.code, "--on with runs of the group" in ran.err) == (2, True)


# -- real clients ------------------------------------------------------------------------------------------


@pytest.fixture
def clients() -> None:
    pytest.importorskip("confluent_kafka", reason="the mock cluster comes with confluent-kafka")
    pytest.importorskip("kafka", reason="kafka-python is not installed")


@pytest.mark.nightly
@pytest.mark.usefixtures("clients")
def test_kafka_python_tells_nobody_of_an_empty_assignment(rebalance: Rebalance, tmp_path):
    path = runs.save(shown(EMPTY), tmp_path)
    ran = rebalance("replay", path, "--on", "kafka-python", "--out", tmp_path / "out", "-v")
    assert ran.code == 1, ran.out
    assert ran.out.startswith("same ")
    assert "callback/assigned at step 10: a rebalance completed without onPartitionsAssigned" in ran.out
    saved = json.loads(next((tmp_path / "out").glob("*.json")).read_text(encoding="utf-8"))
    assert saved["verdict"] == "same"
    assert not saved["unforced"]
    assert {frame["api"] for frame in saved["frames"]} >= {"JoinGroup", "SyncGroup"}


@pytest.mark.slow
@pytest.mark.usefixtures("clients")
def test_librdkafka_tells_of_an_empty_assignment():
    result = replay(shown(EMPTY), ClientProfile("confluent"))
    assert (result.verdict, result.unforced, result.stopped) == ("none", [], "")
    assert "A: onPartitionsAssigned()" in [one for step in result.shown for one in step["seen"]]


@pytest.mark.slow
@pytest.mark.usefixtures("clients")
def test_librdkafka_keeps_its_membership_when_an_answer_is_lost():
    result = replay(shown("reset_on_retriable"), ClientProfile("confluent"))
    assert (result.verdict, result.done) == ("none", result.steps)
    assert "A hears JoinGroup disconnect: will rejoin" in [
        one for step in result.shown for one in step["seen"]
    ]


def test_observations_in_words():
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2))
    sentences = {
        Callback(call=Call.LOST, who=Slot(1), parts=Parts(0b10), eager=False, reset=True, owned=Parts(0b10),
            believed=Parts(0b10)):
            "B: onPartitionsLost(t-1)",
        Completed(who=Slot(0), assigned=Parts(1), owned=Parts(1), eager=False, revoked=True, rejoin=False,
            believed=Parts(1)):
            "A was assigned t-0, does not rejoin",
        Claimed(Slot(0), Parts(1), Generation(2), Generation(1)):
            "A claims t-0 of generation 2 (assigned in 1)",
        Left(Slot(0), Parts(0), False, True): "A leaves, without LeaveGroup",
        Threw(Slot(0), "x"): "A: poll() throws x",
    }  # fmt: skip
    assert [observation_text(setup, one) for one in sentences] == list(sentences.values())


def test_ctrl_c_keeps_what_is_known(monkeypatch, rebalance: Rebalance, tmp_path):
    def interrupted(*_: object, **__: object) -> Replayed:
        return Replayed(
            clause="group/owner", client="confluent", stopped="interrupted", interrupted=True, steps=4, done=2
        )

    monkeypatch.setattr("rebalance_verifier.live.code.lockstep.replayers.replay", interrupted)
    path = runs.save(shown("reset_on_retriable"), tmp_path)
    ran = rebalance("replay", path, "--on", "confluent", "--out", tmp_path / "out")
    assert ran.code == 130
    assert "2 of 4 steps" in ran.out
    assert list((tmp_path / "out").glob("*.json"))


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize(
    ("switch", "verdict", "shows"),
    [
        ("abort_on_callback_exception", "none", "A: poll() throws what the listener threw"),
        (
            "commit_illegal_generation_always_lost",
            "none",
            "A hears OffsetCommit ILLEGAL_GENERATION, for an older generation: will rejoin",
        ),
        ("static_forgets_id", "same", "A leaves, without LeaveGroup"),
    ],
)
def test_librdkafka_is_forced(switch, verdict, shows):
    """A listener that throws, a commit that is answered late, a JoinGroup that was left behind."""
    result = replay(shown(switch), ClientProfile("confluent"))
    assert (result.verdict, result.unforced, result.stopped) == (verdict, [], "")
    assert shows in "\n".join(one for step in result.shown for one in step["seen"])


@pytest.mark.slow
@pytest.mark.usefixtures("clients")
def test_who_closes_with_a_request_under_way_has_sent_leave_group():
    """Its LeaveGroup is waited for before its end: the JoinGroup in front of it is not answered first."""
    fault = replace(SHOWN["clear_before_leave_prepare"], members=2)
    setup = fault.setup(on=False)
    built, events = machine(setup), list(shown("clear_before_leave_prepare").events[:-1])
    *_, (state, _) = built.replay(events)
    for name, who in (("start", 1), ("join", 1), ("join", 1), ("heartbeat", 0), ("join", 0), ("close", 0)):
        event, outcome = next((e, o) for e, o in built.outcomes(state) if (e.action, e.who) == (name, who))
        state = built.apply(state, event, outcome)
        events.append(event)
    result = replay(
        SavedRun(setup=setup, clause="leave/sent", events=tuple(events)), ClientProfile("confluent")
    )
    assert (result.verdict, result.stopped) == ("none", ""), result.broken
    assert "A leaves, with LeaveGroup" in result.shown[-1]["seen"]


@pytest.mark.nightly
@pytest.mark.usefixtures("clients")
def test_kafka_python_has_the_next_assignment_while_it_revokes():
    result = replay(shown("assign_before_revoke_cb"), ClientProfile("kafka-python"))
    assert (result.verdict, result.unforced) == ("same", [])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("switch", "version", "verdict"),
    [
        ("prepare_not_repeated_after_reset", "2.8.0", "same"),  # KAFKA-12983
        ("prepare_not_repeated_after_reset", "2.8.1", "none"),
        ("reset_on_retriable", "2.8.0", "same"),  # KAFKA-13214
        ("reset_on_retriable", "2.8.1", "none"),
        ("reset_on_sync_rip", "3.3.1", "same"),  # KAFKA-14016
        ("reset_on_sync_rip", "3.3.2", "none"),
        ("keep_owned_on_sync_rip", "4.1.0", "same"),  # KAFKA-13891, not repaired
        ("fetch_while_pending_revocation", "3.2.0", "none"),
        ("fetch_while_pending_revocation", "3.2.1", "same"),  # KAFKA-14196
        ("fetch_while_pending_revocation", "3.2.3", "none"),
        ("prepare_commit_never_done", "3.2.0", "same"),  # KAFKA-14024
        ("prepare_commit_never_done", "3.2.1", "none"),
        ("static_forgets_id", "4.1.0", "same"),  # KAFKA-20985, not repaired
    ],
)
def test_java_clients_show_the_bugs_of_their_releases(switch, version, verdict):
    """The catalogue says in which releases; here these releases run."""
    pytest.importorskip("confluent_kafka", reason="the mock cluster comes with confluent-kafka")
    try:
        result = replay(shown(switch), ClientProfile("java", version))
    except ToolError as error:
        pytest.skip(str(error))
    assert result.verdict == verdict, (result.broken, result.unforced, result.stopped)


@pytest.mark.nightly
@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize(("client", "verdict"), [("kafka-python", "same"), ("confluent", "none")])
def test_two_owners_after_a_membership_that_was_lost_in_joining(client, verdict):
    """kafka-python 3.0.12 has KAFKA-12983: refused as unknown, it keeps and claims what it owned."""
    result = replay(shown(FORGOTTEN), ClientProfile(client))
    assert result.verdict == verdict, (result.broken, result.unforced, result.stopped)


# -- the table in the documentation ------------------------------------------------------------------------


def documented() -> dict[str, tuple[str, str]]:
    """Switch -> clause, and what came of it on librdkafka."""
    (page,) = (Path(__file__).parents[4] / "docs").rglob("*replay*.md")
    rows = [line.split(" | ") for line in page.read_text(encoding="utf-8").splitlines() if " | `" in line]
    return {cells[1].strip("`"): (cells[2], cells[3]) for cells in rows if len(cells) == 6}


def test_the_documentation_has_a_row_for_what_can_be_asked():
    rows = documented()
    assert {switch: clause for switch, (clause, _) in rows.items()} == {
        switch: SHOWN[switch].clause for switch in rows
    }
    assert {switch for switch, one in SHOWN.items() if one.clause in OBSERVABLE_CLAUSES} <= set(rows)
    assert {SHOWN[switch].clause for switch in rows} - OBSERVABLE_CLAUSES == {"group/converges"}


@pytest.mark.nightly
@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("switch", documented())
def test_librdkafka_does_what_the_documentation_says(switch):
    _, documented_verdict = documented()[switch]
    if documented_verdict == "no such list":
        with pytest.raises(Unsupported):
            replay(shown(switch), ClientProfile("confluent"))
        return
    result = replay(shown(switch), ClientProfile("confluent"))
    verdict = "not forced" if result.verdict == "inconclusive" else result.verdict
    assert verdict == documented_verdict, (result.broken, result.unforced, result.stopped)
