"""Traces as pictures: who owned what when, from each of the sources; capped, and what is left out is said."""

from __future__ import annotations

import cProfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.search.counterexamples import Trace, of
from rebalance_verifier.gate.search.result import Finding, TargetInfo
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.machine import CannotHappenError, Event
from rebalance_verifier.model.values import RebalanceProtocol, TopicPartition
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding, Recording
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    SetTopic,
    uniform,
)
from rebalance_verifier.report.diagram import diagram, log_diagram, run_diagram, scenario_diagram
from rebalance_verifier.report.diagram.diagram import Overlap, OwnershipState, bars, grid, joined
from rebalance_verifier.report.diagram.scenario_diagram import recorded

from tools.pictures import FOLDER, PICTURES, draw, main

COOPERATIVE = RebalanceProtocol.COOPERATIVE
OWNED, LEAVING, STALE, WITHOUT, REMOVED = (
    OwnershipState.OWNED,
    OwnershipState.LEAVING,
    OwnershipState.STALE,
    OwnershipState.WITHOUT,
    OwnershipState.REMOVED,
)
TARGET = TargetInfo(spec="cooperative-sticky+trust_all_claims", name="cooperative-sticky")


def found(scenario: Scenario, switch: str = "trust_all_claims", clause: str = "assign/1") -> Finding:
    """The finding of a reference assignor with a mistake."""
    made = switched("cooperative-sticky", (switch,))
    record = play(
        scenario, lambda protocol, cluster, group: Answer(made.assign(cluster, group)), None,
        (CLAUSES[clause],), (),
    )  # fmt: skip
    breach = record.breach_of(clause)
    assert breach is not None
    return Finding(
        clause=breach.clause, protocol=scenario.protocol, breach=breach.breach, scenario=scenario,
        round=breach.round, calls=record.calls, seed=7, number=3,
        found_size=scenario.size, confirmed=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ghost() -> Finding:
    """A was away, B was given what A held, A comes back with its claims: both are given them."""
    a = ScenarioMember(id="A", topics=("t",), generation=-1)
    rounds = ((), (AddMember(ScenarioMember(id="B", topics=("t",))), Fault(FaultKind.GHOST, "A")), ())
    return found(Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=(a,), rounds=rounds))


@pytest.fixture(scope="module")
def run() -> SavedRun:
    """A loses its membership, keeps its claims, and becomes a member again beside B."""
    made = reproduce(SHOWN["prepare_not_repeated_after_reset"])
    assert made is not None
    return made


@pytest.fixture(scope="module")
def lasso() -> SavedRun:
    made = reproduce(SHOWN["rebalance_timeout_zero"])
    assert made is not None
    return made


BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)


def seen(second: float, kind: str, consumer: str | None, **fields: object) -> LogEvent:
    at = BEGAN + timedelta(seconds=second)
    return LogEvent(at=at, kind=kind, file="app.log", line=int(second * 10), consumer=consumer, **fields)  # type: ignore[arg-type]


@pytest.fixture
def log() -> Recording:
    """B is assigned t-1 while A owns it; later the coordinator removes A, which learns of it at last."""
    events = (
        seen(0, "joining", "A"),
        seen(1, "joined", "A", generation=7, member="m-a"),
        seen(2, "assigned", "A", generation=7, topic="t", partition=1),
        seen(3, "stable", None, generation=8),
        seen(4, "assigned", "B", generation=8, topic="t", partition=1),
        seen(5, "removed", None, member="m-a"),
        seen(6, "lost", "A", topic="t", partition=1),
    )
    finding = LogFinding(
        id="1f2e3d4c", check="owned-twice", level="safety", group="g", topic="t", partition=1,
        began=events[4].at, ended=events[6].at, seconds=2.0,
        owners=(FindingOwner("A", "m-a", 7), FindingOwner("B", "m-b", 8)), skew=None, certain=True,
        places=(events[2], events[4]), sentence="twice",
    )  # fmt: skip
    return Recording(finding=finding, rule="No partition twice.", source="KIP-429", events=events)


def looks(drawn: diagram.OwnershipDiagram) -> dict[tuple[str, str], list[OwnershipState | None]]:
    return dict(zip(((r.partition, r.member) for r in drawn.rows), grid(drawn), strict=True))


# --- the model ------------------------------------------------------------------------------------


def test_bars_and_their_grid():
    lines: list[list[OwnershipState | None]] = [[None, OWNED, OWNED, STALE], [WITHOUT] * 4]
    drawn = diagram.OwnershipDiagram(
        title="",
        columns=tuple(diagram.DiagramColumn(label=str(n)) for n in range(4)),
        bars=bars(lines),
        rows=(diagram.Row("t-0", "A"), diagram.Row("t-0", "B")),
    )
    assert [(b.row, b.start, b.end) for b in drawn.bars] == [(0, 1, 3), (0, 3, 4), (1, 0, 4)]
    assert grid(drawn) == lines


def test_overlaps_without_a_gap_are_one():
    first, then, later = (
        Overlap(partition="t-0", start=at, end=at + 1, members=("A", "B")) for at in (3, 4, 6)
    )
    assert joined([first, then, later]) == (replace(first, end=5), later)
    assert joined([first, replace(then, members=("A", "C"))]) != joined([first, then])


def test_two_members_are_the_bug_and_a_zombie_beside_one_is_not(expected):
    assert Overlap(partition="t-0", start=0, end=1, members=("A", "B")).bug
    assert Overlap(partition="t-0", start=0, end=1, members=("A",)).owners(str) == "A twice"
    zombie = Overlap(partition="t-0", start=0, end=1, members=("A", "B"), zombies=("A",))
    assert not zombie.bug
    expected(zombie.owners(str), "1")
    expected(Overlap(partition="t-0", start=0, end=1, members=tuple("ABCDE")).owners(str), "2")


# --- a finding ------------------------------------------------------------------------------------


def test_a_finding_has_two_columns_a_round(ghost, expected):
    drawn = scenario_diagram.of_finding(ghost)
    assert [(c.label, c.generation, c.marked) for c in drawn.columns[:6]] == [
        ("JoinGroup", 1, False), ("SyncGroup", 1, False), ("JoinGroup", 2, False), ("SyncGroup", 2, False),
        ("JoinGroup", 3, True), ("SyncGroup", 3, True),
    ]  # fmt: skip
    expected(drawn.columns[2].what)
    assert looks(drawn)["t-0", "A"][:6] == [WITHOUT, OWNED, None, None, STALE, OWNED]
    assert looks(drawn)["t-0", "B"][:6] == [None, None, WITHOUT, OWNED, OWNED, OWNED]


def test_two_owners_go_on_when_they_join_again(ghost):
    drawn = scenario_diagram.of_finding(ghost)
    assert drawn.overlaps == (Overlap(partition="t-0", start=5, end=len(drawn.columns), members=("A", "B")),)
    assert drawn.overlaps[0].end > 7
    assert {look for line in looks(drawn).values() for look in line[5:]} == {OWNED}


def test_claims_that_are_equally_new_are_no_two_owners():
    members = tuple(
        ScenarioMember(id=m, topics=("t",), owned=(TopicPartition("t", 0),), generation=5) for m in "AB"
    )
    drawn = scenario_diagram.of_finding(
        found(Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=members, rounds=((),)))
    )
    assert [line[0] for line in looks(drawn).values()] == [OwnershipState.TIED, OwnershipState.TIED]
    assert drawn.overlaps[0].start == 1


def test_messages_of_a_round(ghost):
    drawn = scenario_diagram.of_finding(ghost)
    third = [(a.member, a.api, a.answer, a.text) for a in drawn.arrows if a.column in (4, 5)]
    assert sorted(third) == [
        ("A", "JoinGroup", False, "claims of generation 1"),
        ("A", "SyncGroup", True, ""),
        ("B", "JoinGroup", False, ""),
        ("B", "SyncGroup", True, ""),
    ]
    lost = replace(ghost.scenario, rounds=((Fault(FaultKind.MISSED_SYNC, "A"),), *ghost.scenario.rounds))
    assert scenario_diagram.of_finding(replace(ghost, scenario=lost)).arrows[1].lost


def test_a_long_finding_shows_what_led_to_it():
    members = (ScenarioMember(id="A", topics=("t",)),)
    rounds = (
        *((),) * 20,
        (AddMember(ScenarioMember(id="B", topics=("t",))), Fault(FaultKind.GHOST, "A")),
        (),
    )
    long = found(Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=members, rounds=rounds))
    assert long.round == 22
    drawn = scenario_diagram.of_finding(long)
    assert len(drawn.columns) == 24
    assert [c.generation for c in drawn.columns if c.marked] == [22, 22]
    assert drawn.columns[0].skipped == 12
    assert f"{len(long.calls) - 12} rounds of {len(long.calls)}" in drawn.left_out


# --- a counterexample on disk ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ghost", "grown", "gone"])
def test_the_file_draws_as_the_finding_did(name, ghost):
    grown = replace(ghost.scenario, rounds=((), (SetTopic("t", ((),) * 3), *ghost.scenario.rounds[1]), ()))
    gone = replace(
        ghost.scenario,
        topics=uniform({"t": 1, "u": 1}),
        members=(ScenarioMember(id="A", topics=("t", "u")),),
        rounds=((), (SetTopic("u", None), *ghost.scenario.rounds[1]), ()),
    )
    finding = {"ghost": ghost, "grown": found(grown), "gone": found(gone)}[name]
    trace = of(finding, TARGET, "smoke", "0.1.0")
    assert scenario_diagram.of_trace(trace) == scenario_diagram.of_finding(finding)


def test_a_file_without_the_answers_tells_the_story(ghost, expected):
    drawn = scenario_diagram.of_trace(replace(of(ghost, TARGET, "smoke", "0.1.0"), calls=()))
    assert not drawn.bars
    expected("\n".join([c.what for c in drawn.columns[::2]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[2].update(members=3), r"calls\[2\]\.members: expected an object, found 3"),
        (lambda c: c[2]["members"].update(A=[]), r"calls\[2\]\.members\.A: expected an object"),
        (
            lambda c: c[2]["assignment"].update(B=["t"]),
            r"calls\[2\]\.assignment\.B\[0\]: expected a",
        ),
        (lambda c: c.__setitem__(2, None), r"calls\[2\]: expected an object, found null"),
    ],
)
def test_a_damaged_recording_is_named(ghost, change, message):
    calls = [dict(c) for c in of(ghost, TARGET, "smoke", "0.1.0").calls]
    calls = [{**c, "members": dict(c["members"]), "assignment": dict(c["assignment"])} for c in calls]
    change(calls)
    with pytest.raises(TraceError, match=message):
        recorded(replace(of(ghost, TARGET, "smoke", "0.1.0"), calls=tuple(calls)))


# --- a run of the model ---------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_shows_who_owned_it_twice_and_when(run):
    drawn = run_diagram.of_run(run)
    last = len(run.events)
    assert [c.label for c in drawn.columns] == [str(n) for n in range(1, last + 1)]
    assert [o for o in drawn.overlaps if o.bug] == [
        Overlap(partition="t-0", start=last - 1, end=last, members=("A", "B"))
    ]
    line = looks(drawn)["t-0", "A"]
    assert line[-1] is OWNED
    assert REMOVED in line[:-1]
    assert [c.generation for c in drawn.columns] == sorted(
        (c.generation for c in drawn.columns), key=lambda g: g or 0
    )
    assert drawn.columns[-1].generation == 3
    assert drawn.columns[-1].marked


def test_messages_and_callbacks_of_a_run(run):
    drawn = run_diagram.of_run(run)
    messages = {(a.column + 1, a.member, a.api, a.answer, a.generation, a.text) for a in drawn.arrows}
    assert (7, "A", "JoinGroup", True, 1, "") in messages
    assert (7, "A", "SyncGroup", False, None, "A: t-0") in messages
    assert (14, "A", "Heartbeat", False, None, "") in messages
    assert (14, "A", "Heartbeat", True, None, "REBALANCE_IN_PROGRESS") in messages
    marks = {(m.column + 1, m.member, m.text) for m in drawn.marks}
    assert {(13, "A", "assigned t-0"), (15, "", "removes A"), (8, "A", "pause")} <= marks
    assert [(a.member, a.start + 1, a.text) for a in drawn.away] == [("A", 8, "paused"), ("B", 1, "down")]


def test_a_run_for_ever_has_its_loop_and_what_nobody_owns(lasso):
    drawn = run_diagram.of_run(lasso)
    assert drawn.loop == (lasso.loop, len(lasso.events))
    assert looks(drawn)["t-0", ""][-1] is OwnershipState.NOBODY
    assert not any(c.marked for c in drawn.columns)


def test_a_run_that_cannot_happen_is_refused(run):
    with pytest.raises(CannotHappenError, match="step 2"):
        run_diagram.of_run(replace(run, events=(run.events[0], Event("leader sync", 0), *run.events[2:])))


def test_a_long_run_shows_its_start_and_what_led_to_the_end(lasso):
    again = lasso.events[lasso.loop :]
    long = replace(lasso, events=lasso.events + again * 20)
    drawn = run_diagram.of_run(long)
    assert len(drawn.columns) == diagram.MAX_COLUMNS
    assert [c.label for c in drawn.columns] == [str(n) for n in range(1, 65)]
    assert drawn.loop == (lasso.loop, 64)
    assert drawn.left_out[-1] == f"{len(long.events) - 64} steps of {len(long.events)}"
    ending = replace(long, loop=None, clause="group/owner")
    drawn = run_diagram.of_run(ending)
    assert drawn.columns[-1].label == str(len(long.events))
    assert drawn.columns[4].skipped == len(long.events) - 64


# --- a recording ----------------------------------------------------------------------------------


def test_a_recording_shows_who_owned_it_twice_and_when(log):
    drawn = log_diagram.of_recording(log)
    assert looks(drawn) == {
        ("t-1", "A"): [None, None, OWNED, OWNED, OWNED, REMOVED, None],
        ("t-1", "B"): [None, None, None, None, OWNED, OWNED, OWNED],
    }
    assert [(o.start, o.end, o.bug) for o in drawn.overlaps] == [(4, 5, True), (5, 6, False)]
    assert [c.generation for c in drawn.columns] == [None, 7, 7, 8, 8, 8, 8]
    assert [c.when for c in drawn.columns[:2]] == ["18:00:00.000", "18:00:01.000"]
    assert [c.label for c in drawn.columns if c.marked] == ["3", "5"]
    assert [(a.member, a.api, a.answer) for a in drawn.arrows] == [
        ("A", "JoinGroup", False), ("A", "JoinGroup", True),
    ]  # fmt: skip
    assert ("", "removes A") in [(m.member, m.text) for m in drawn.marks]


def test_a_long_recording_says_what_is_left_out_and_where(log):
    noise = tuple(seen(5 + n / 1000, "joining", f"c{n % 3}") for n in range(1, 100))
    drawn = log_diagram.of_recording(replace(log, events=(*log.events, *noise)))
    assert len(drawn.columns) == 24
    assert sum(c.skipped for c in drawn.columns) == 106 - 24
    assert "and 82 events around these" in drawn.left_out
    assert [c.when for c in drawn.columns if c.marked] == ["18:00:02.000", "18:00:04.000"]


def test_a_recording_without_events(log):
    assert log_diagram.of_recording(replace(log, events=())).columns == ()


# --- caps -----------------------------------------------------------------------------------------


def grows(draw, sizes: tuple[int, int]) -> float:
    """How many times more calls it takes to draw what is larger: unlike times, the same on any machine."""
    calls = []
    for size in sizes:
        trace = draw(size)
        with cProfile.Profile() as profile:
            trace()
        calls.append(sum(one.callcount for one in profile.getstats()))
    return calls[1] / calls[0]


def hostile_trace(number: int) -> Trace:
    """So many rounds, 5,000 members, each call a claim of everybody."""
    names = [f"<b>\x1b[31m{n}" for n in range(5000)]
    rounds = tuple(
        (AddMember(ScenarioMember(id=names[n % 5000], topics=("t",), instance="x")),)
        if n % 3 == 0
        else (Fault(FaultKind.SILENT, names[n % 5000]), Leave(names[n * 7 % 5000]))
        for n in range(number)
    )
    call = {
        "round": 1,
        "members": {m: {"topics": ["t"], "claims": [f"t-{n}"], "generation": 3} for n, m in enumerate(names)},
        "assignment": {m: [f"t-{(n + 1) % 5000}"] for n, m in enumerate(names)},
    }
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 5000}),
        members=tuple(ScenarioMember(id=m, topics=("t",)) for m in names),
        rounds=rounds,
    )
    calls = (call,) * number
    return Trace(
        clause=CLAUSES["assign/1"],
        target=TARGET,
        scenario=scenario,
        round=number - 10,
        confirmed=True,
        calls=calls,
    )


@pytest.mark.nightly
def test_a_hostile_counterexample_is_capped_and_costs_no_more_than_its_length():
    drawn = scenario_diagram.of_trace(hostile_trace(30_000))
    assert len(drawn.columns) == 24
    assert len(drawn.members) == diagram.MAX_LINES
    assert len(drawn.rows) < 100
    assert "and 4,988 more members" in drawn.left_out

    def draw(size):
        trace = hostile_trace(size)
        return lambda: scenario_diagram.of_trace(trace)

    assert grows(draw, (3_000, 30_000)) < 12  # 100 if each round were compared with each


def hostile_log(log: Recording, number: int) -> Recording:
    kinds = ("assigned", "joined", "revoked", "reset")
    return replace(
        log,
        events=tuple(
            seen(n / 100, kinds[n % 4], f"c{n % 5000}", topic="t", partition=1, generation=n)
            for n in range(number)
        ),
    )


@pytest.mark.slow
def test_a_hostile_recording_is_capped_and_costs_no_more_than_its_length(log):
    drawn = log_diagram.of_recording(hostile_log(log, 50_000))
    assert len(drawn.columns) == 24
    assert "and 49,976 events around these" in drawn.left_out

    def draw(size):
        recording = hostile_log(log, size)
        return lambda: log_diagram.of_recording(recording)

    assert grows(draw, (3_000, 30_000)) < 12


def test_a_run_too_large_to_play_shows_its_events(lasso, expected):
    events = tuple(Event("join", n % 2) for n in range(100_000))
    drawn = run_diagram.of_run(replace(lasso, events=events, loop=None, clause="group/owner"))
    assert not drawn.bars
    assert len(drawn.columns) == diagram.MAX_COLUMNS
    expected(drawn.left_out[0])


# --- the documents --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * n.startswith("run")) for n in PICTURES]
)
def test_pictures_of_the_documents_are_what_the_code_draws(name):
    path = FOLDER / f"{name}.svg"
    assert path.read_text(encoding="utf-8") == draw(name), "stale: python -m tools.pictures"


def test_pictures_are_written_where_they_are_asked_for(tmp_path, monkeypatch, capsys):
    first = next(iter(PICTURES))
    monkeypatch.setattr("tools.pictures.PICTURES", {first: PICTURES[first]})
    assert main(["--into", str(tmp_path / "new")]) == 0
    assert main(["--into", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out == f"{first}.svg\n"
    assert [p.name for p in (tmp_path / "new").iterdir()] == [f"{first}.svg"]


def test_every_picture_of_the_documents_is_made_here():
    assert {p.stem for p in FOLDER.glob("*.svg")} >= set(PICTURES)
