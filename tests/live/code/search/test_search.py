"""Search on Kafka's own code: what can happen, what is judged, and that what is known is found."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rebalance_verifier.base.processes import gather
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.random.system import play, replay
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search import walks
from rebalance_verifier.live.code.search.choice import key
from rebalance_verifier.live.code.search.enabled import FAULTS, actions
from rebalance_verifier.live.code.search.exhaustive import Everything
from rebalance_verifier.live.code.search.findings import CodeFinding, Searched, shortened
from rebalance_verifier.live.code.search.quiescence import Ending
from rebalance_verifier.live.code.search.run import (
    ASKED,
    NOT_ASKED,
    CodeBreach,
    CodePlaying,
    PlayedOnCode,
    rebalances,
)
from rebalance_verifier.live.code.search.walks import CodeSearchPlan, search_walks
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.classic import group
from rebalance_verifier.model.group.observations import Call, Callback, Completed
from rebalance_verifier.model.group.parts import Parts, Slot
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import NOBODY, Event
from rebalance_verifier.properties.group.clauses import CLAUSES, CONVERGES

from tests.command import Rebalance
from tests.live.code.played import RELEASE, needs_java
from tests.live.code.search.sleeping import sleep_sets_lose_no_end
from tests.traces.published import hold

NOW = CodeReleases(coordinator=RELEASE, consumers=(RELEASE,))


def of(scenario: str = "dynamic", *faults: str, members: int = 2, partitions: int = 2) -> Setup:
    size = ScenarioSize(members=members, partitions=partitions, faults=faults or None, budget=1 << 30)
    return SCENARIOS[scenario].setup(size)


# -- names and judgement ---------------------------------------------------------------------------------


def test_every_fault_is_one_of_the_model_and_every_clause_is_asked_or_not() -> None:
    assert set(FAULTS) <= set(group.FAULTS)
    assert {*ASKED, *NOT_ASKED, CONVERGES.id} == set(CLAUSES)
    assert len({(name, who) for name, who, _ in actions(of())}) == len(actions(of()))


def test_an_event_is_found_by_what_is_done_whatever_it_is_called() -> None:
    assert key(Event("join", 1)) == key(Event("complete", 1)) != key(Event("join", 0))
    assert key(Event("join phase ends")) == key(Event("slow member", 1, "join"))
    assert key(Event("slow member", 0, "sync")) == key(Event("rebalance timeout", 1, "sync"))
    assert key(Event("receive", 0, "SyncGroup")) == key(Event("assign", 0))
    assert key(Event("crash", 0)) != key(Event("crash", 0, "arrives"))
    assert key(Event("topic grows", NOBODY, "t-1")) != key(Event("topic grows", NOBODY, "t-2"))


@pytest.mark.parametrize(("asked", "parts"), [(1, 1), (9, 1), (10, 1), (11, 2), (60, 6)])
def test_every_walk_is_in_a_part(monkeypatch: pytest.MonkeyPatch, asked: int, parts: int) -> None:
    """A part that is not whole is walked too."""
    given: list[int] = []

    def stream(working: object, several: int, jobs: int) -> Iterator[tuple[int, Searched]]:
        given.append(several)
        yield from ((number, Searched(runs=1)) for number in range(several))

    monkeypatch.setattr(gather, "stream", stream)
    found = search_walks(CodeSearchPlan(setup=of(), releases=NOW, walks=asked))
    assert (given, found.searched.runs) == ([parts], parts)


def test_a_process_that_plays_and_is_killed_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it played may have done that, and what it had seen is lost."""
    ends = iter([(0, Searched(runs=3)), (1, None), (2, Searched(runs=3))])
    monkeypatch.setattr(gather, "stream", lambda *given: (one for one in ends))
    found = search_walks(CodeSearchPlan(setup=of(), releases=NOW, walks=60))
    assert (found.stopped, found.searched.runs) == ("a process that plays was killed", 3)
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_cause_has_no_names() -> None:
    one, two = "t-0 t-1 is owned by A and by C", "t1-3 is owned by B and by A"
    assert CodeBreach("x", one).cause == CodeBreach("x", two).cause == "P is owned by X and by X"
    assert CodeBreach("x", "A claims t-0 of 3").cause != CodeBreach("x", "A claims nothing of 3").cause


def test_what_prepares_the_next_rebalance_is_judged_apart() -> None:
    none, slot = Parts(0), Slot(0)
    given, taken = (
        Callback(call, slot, Parts(1), True, False, none, none) for call in (Call.ASSIGNED, Call.REVOKED)
    )
    done = Completed(slot, none, none, True, False, True, none)
    assert rebalances([given, done, taken]) == [(given, done), (taken,)]
    assert rebalances([given, taken]) == [(given, taken)]
    assert rebalances([]) == []


def test_of_equal_causes_the_smallest_run_is_kept() -> None:
    a, b = (
        CodeBreach("group/owner", "t-0 is owned by A and by B"),
        CodeBreach("group/owner", "t-1 is owned by B and by C"),
    )
    long, short = [Event("start", 0)] * 3, [Event("start", 1)] * 2
    first, second = Searched(), Searched()
    first.note(PlayedOnCode(events=long, breaches={a: 3}))
    second.note(PlayedOnCode(events=short, breaches={b: 2}, ending=Ending.SETTLED))
    first.add(second)
    assert list(first.findings.values()) == [CodeFinding(breach=b, events=tuple(short), times=2)]
    assert (first.runs, first.steps, dict(first.endings)) == (2, 5, {"settles": 1})


# -- on a simulation
# -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation([RELEASE], [RELEASE, "3.3.1"]) as made:
        yield made


@needs_java
@pytest.mark.slow
def test_a_group_settles_and_a_run_comes_again(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of(), NOW, keeps=True)
    replay(playing, [], rest=True)
    first = playing.played
    assert (first.ending, first.breaches, first.peace) == (Ending.SETTLED, {}, 0)
    assert [" ".join(one.owns) for one in first.steps[-1].owners] == ["t-0", "t-1"]
    replay(playing, first.events, rest=True)
    again = playing.played
    assert (again.steps, again.peace) == (first.steps, len(first.events))


@needs_java
@pytest.mark.slow
def test_requests_of_a_connection_arrive_in_order_and_those_of_a_broken_one_may_still(
    simulation: Simulation,
) -> None:
    playing = CodePlaying(simulation, of("dynamic", "disconnect", "late request"), NOW)
    playing.begin()
    playing.gather()
    play(playing, [Event("late request", 0, "heartbeat"), Event("late request", 0, "commit")])

    def now(who: int = 0) -> set[str]:
        return {f"{one.event.action} {one.event.choice}" for one in playing.choices() if one.event.who == who}

    assert {one for one in now() if "arrives" in one} >= {"late request arrives heartbeat"}
    assert "late request arrives commit" not in now()
    play(playing, [Event("disconnect", 0, "arrives")])
    assert "abandoned join Heartbeat" in now()
    assert "late request arrives heartbeat" not in now()
    assert playing.rest() is Ending.SETTLED


@needs_java
@pytest.mark.slow
def test_a_commit_of_the_application_is_not_the_one_before_a_revocation(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("eager", "late request"), NOW)
    playing.begin()
    playing.gather()
    play(playing, [Event("late request", 0, "commit")])
    assert playing.group.members[0].open_requests["OffsetCommit"]
    assert playing.played.breaches == {}


@needs_java
@pytest.mark.nightly
def test_sleep_sets_lose_no_end(simulation: Simulation) -> None:
    sleep_sets_lose_no_end(
        CodePlaying(simulation, of("dynamic", "session timeout", partitions=1), NOW), depth=5
    )


@needs_java
@pytest.mark.slow
def test_a_broker_reads_nothing_behind_a_request_that_waits(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("dynamic", "enforce", "late request"), NOW)
    playing.begin()
    playing.gather()
    joins = [Event("join", 0), Event("join request", 0), Event("heartbeat", 1), Event("join", 1)]
    play(playing, [Event("enforce", 0), *joins, Event("join request", 1)])
    leader = playing.group.slot(playing.group.state.coordinator.leader or "")
    follower = 1 - leader
    play(playing, [Event("receive", follower), Event("sync request", follower)])
    play(playing, [Event("late request", follower, "heartbeat")])
    assert [one.api for one in playing.group.queue(follower)] == ["Heartbeat"]
    assert playing.group.waits(follower) is not None
    assert ("arrive", follower) not in {(one.act, one.event.who) for one in playing.choices()}


@needs_java
@pytest.mark.slow
def test_a_shared_search_is_the_whole_one(simulation: Simulation) -> None:
    """The shares together have the runs of the search that is not shared."""
    playing = CodePlaying(simulation, of("dynamic", "crash", partitions=1), NOW)

    def runs(share: int | None) -> list[tuple[Event, ...]]:
        found: list[tuple[Event, ...]] = []

        def note(run: PlayedOnCode) -> None:
            found.append(tuple(run.events[: run.peace]))

        Everything(playing=playing, depth=3, faults=1, ends=note, share=share).search()
        return found

    assert sorted(one for share in range(16) for one in runs(share)) == sorted(runs(None))


@needs_java
@pytest.mark.nightly
def test_what_is_known_is_found_made_short_saved_drawn_and_played_elsewhere(
    rebalance: Rebalance, tmp_path: Path
) -> None:
    """J7: in 3.3.0 and 3.3.1 a SyncGroup that comes in a rebalance costs the membership."""
    out = str(tmp_path)
    found = rebalance(
        "explore", "--on", f"coordinator:{RELEASE},consumer:3.3.1", "--members", "2", "--partitions", "2",
        "--faults", "disconnect", "--walks", "20", "--out", out, "--format", "json",
    )  # fmt: skip
    assert found.code == 1, found.err
    document = json.loads(found.out)
    hold("code-search", document)
    [lost] = [one for one in document["findings"] if one["clause"] == "error/retriable"]
    assert len(lost["events"]) <= 25
    hold("run", json.loads(Path(lost["path"]).read_text()))
    drawn = rebalance("show", lost["path"])
    assert drawn.code == 0
    assert "REBALANCE_IN_PROGRESS: gives up its membership" in drawn.out
    assert rebalance("show", lost["path"], "--format", "svg").out.endswith("</svg>\n")
    refused = rebalance("replay", lost["path"])
    assert refused.code == 2
    assert "say --on" in refused.err
    same = rebalance("replay", lost["path"], "--on", f"coordinator:{RELEASE},consumer:3.3.1", "--out", out)
    assert (same.code, same.out.split()[0]) == (1, "same")
    newer = rebalance("replay", lost["path"], "--on", f"coordinator:{RELEASE},consumer:3.3.2", "--out", out)
    assert "same" not in newer.out.split()


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(("consumer", "result"), [("newest", "same"), ("2.8.2", "inconclusive")])
def test_a_topic_that_is_made_again_smaller_has_two_owners(
    rebalance: Rebalance, tmp_path: Path, consumer: str, result: str
) -> None:
    run = Path(__file__).parents[4] / "examples" / "runs" / "topic-made-again.json"
    on = f"coordinator:{RELEASE},consumer:{consumer}"
    ran = rebalance("replay", str(run), "--on", on, "--out", str(tmp_path))
    assert ran.out.split()[0] == result
    assert ("group/owner at step 46: t0-0 t0-1 is owned by A and by C" in ran.out) is (result == "same")


@needs_java
@pytest.mark.nightly
def test_the_result_is_the_same_for_any_number_of_jobs() -> None:
    plan = CodeSearchPlan(setup=of(members=3), releases=NOW, walks=12, steps=10)
    one, two = (search_walks(replace(plan, jobs=jobs)).searched for jobs in (1, 2))
    assert (one.runs, one) == (12, two)


@needs_java
@pytest.mark.nightly
def test_two_owners_are_found_in_2_8_0_and_not_in_2_8_1() -> None:
    """J1."""

    def clauses(release: str) -> set[str]:
        setup = of("dynamic", "session timeout", "slow member", "crash", members=3, partitions=3)
        releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
        found = search_walks(CodeSearchPlan(setup=setup, releases=releases, walks=200, jobs=2))
        return {one.breach.clause for one in found.findings}

    assert "group/owner" in clauses("2.8.0")
    assert not clauses("2.8.1") & {"group/owner", "group/converges"}


@needs_java
@pytest.mark.nightly
def test_the_newest_release_has_no_two_owners_and_settles() -> None:
    """But for J6, and for topics that shrink, which its assignor is not made for."""
    faults = [one for one in FAULTS if one not in ("topic shrinks", "failover", "resubscribe")]
    setup = of("dynamic", *faults, members=3, partitions=3)
    found = search_walks(CodeSearchPlan(setup=setup, releases=NOW, walks=500, jobs=2))
    assert {one.breach.clause for one in found.findings} <= {"leader/label"}
    assert set(found.searched.endings) == {"settles"}


@needs_java
@pytest.mark.slow
def test_a_run_that_does_not_come_again_is_left_as_it_is(simulation: Simulation) -> None:
    finding = CodeFinding(breach=CodeBreach("group/owner", "never"), events=(Event("start", 0),))
    assert shortened(CodePlaying(simulation, of(), NOW), finding) == finding


class Counted:
    """A group that breaks nothing, and counts its runs; each takes a second of ``clock``."""

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.played = clock, PlayedOnCode()
        self.events, self.over, self.breaches = (), True, dict[Hashable, int]()
        self.runs = 0

    def begin(self) -> None:
        self.runs += 1
        self.clock[0] += 1.0


NEVER = CodeFinding(breach=CodeBreach("group/owner", "never"), events=(Event("start", 0),) * 50)


def test_making_a_run_short_is_bounded_in_plays() -> None:
    """Not in seconds: a busy machine comes to the same run."""
    playing = Counted([0.0])
    assert shortened(cast(CodePlaying, playing), NEVER, 7) == NEVER
    assert playing.runs == 7 + 1  # in the end it is played once more, for its steps


def test_making_a_run_short_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    playing = Counted([100.0])
    monkeypatch.setattr(time, "monotonic", lambda: playing.clock[0])
    assert shortened(cast(CodePlaying, playing), NEVER, until=105.0) == NEVER
    assert playing.runs == 5 + 1


def test_with_a_time_limit_no_walk_begins_and_nothing_is_made_short_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A part of the work may be long, and so may what is found be."""
    clock, ends = [100.0], list[float]()
    one, other = (CodeFinding(breach=CodeBreach("group/owner", name), events=()) for name in ("a", "b"))

    def walk(*given: object) -> PlayedOnCode:
        clock[0] += 4.0
        return cast(PlayedOnCode, SimpleNamespace(events=[], ending=None, breaches={}))

    def shorten(playing: object, finding: CodeFinding, plays: int, until: float) -> CodeFinding:
        ends.append(until)
        clock[0] = until
        return finding

    def stream(working: Callable[[], Any], parts: int, jobs: int) -> Iterator[tuple[int, Searched]]:
        with working() as part:
            for number in range(parts):
                for searched in part(number):
                    searched.findings |= {found.cause: found for found in (one, other)}
                    yield number, searched

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(walks, "walk", walk)
    monkeypatch.setattr(gather, "stream", stream)
    monkeypatch.setattr(walks, "shortened", shorten)
    monkeypatch.setattr(CodeSearchPlan, "simulation", lambda self: contextlib.nullcontext())
    monkeypatch.setattr(CodeSearchPlan, "playing", lambda *given, **named: SimpleNamespace(dead=False))
    found = search_walks(CodeSearchPlan(setup=of(), releases=NOW, walks=500, time_limit=10.0))
    assert (found.stopped, found.searched.runs) == ("time limit", 3)
    assert ends == [110.0 + 5 + 3], "the other one is as it was found"
    assert clock[0] <= 100.0 + 1.5 * 10 + 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "plain"), "--engine does not go with --on"),
        (("--release", "java-4.0.0"), "--release does not go with --on"),
        (("nothing",), "no scenario is called 'nothing'"),
        (("--faults", "rain"), "no fault is called 'rain'"),
        (("dynamic", "--faults", "crash,pause"), "--on does not bring about 'pause'"),
    ],
)
def test_what_says_nothing_of_code_is_refused(
    rebalance: Rebalance, arguments: tuple[str, ...], message: str
) -> None:
    ran = rebalance("explore", "--on", "code:newest", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_what_is_about_code_goes_with_it_only(rebalance: Rebalance) -> None:
    ran = rebalance("explore", "dynamic", "--jobs", "2")
    assert (ran.code, ran.out) == (2, "")
    assert "--jobs goes with --on only" in ran.err
