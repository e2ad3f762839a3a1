"""A check with a time limit ends in at most 1.5 times as long, and 10 seconds: whatever the target does."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.workers import CannotStart
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.main import main
from rebalance_verifier.gate.search import search as searching
from rebalance_verifier.gate.search.plan import PROFILES
from rebalance_verifier.gate.search.result import Result, Status
from rebalance_verifier.gate.search.time_limit import TimeLimits, shrink_until
from rebalance_verifier.gate.targets import session as targets
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import InProcess, OutOfTime
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import START_SECONDS, Session
from rebalance_verifier.model.values import Cluster, GroupSubscription, RebalanceProtocol

from tests.gate.search.test_check import Doubling, run, violated

EAGER = RebalanceProtocol.EAGER


class Clock:
    """A clock that stands still but for what is added to it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


class Slow(Doubling):
    """One that breaks a clause, and takes its time."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Any:
        self.clock.now += self.seconds
        return super().assign(cluster, group)


def took(clock: Clock, seconds: float, budget: float, profile: str = "ci") -> tuple[float, Result]:
    began = clock.now
    result = run(Slow(clock, seconds), budget=budget, profile=PROFILES[profile])
    return clock.now - began, result


@pytest.mark.parametrize("seconds", [0.05, 0.2, 3.0, 60.0])
@pytest.mark.parametrize("budget", [2.0, 20.0])
def test_confirming_and_shrinking_end_in_time(clock: Clock, seconds: float, budget: float) -> None:
    spent, result = took(clock, seconds, budget)
    assert spent <= 1.5 * budget + 4 + seconds
    assert result.exit in (Exit.VIOLATION, Exit.INCONCLUSIVE)


def test_what_is_found_early_is_confirmed(clock: Clock) -> None:
    _, result = took(clock, 0.2, 60.0, "smoke")
    assert result.exit is Exit.VIOLATION
    assert "assign/1-eager" in violated(result)
    _, patient = took(clock, 0.2, 2000.0, "smoke")
    (few,), (many,) = ([r for r in one.clauses if r.id == "assign/1-eager"] for one in (result, patient))
    assert few.finding is not None
    assert many.finding is not None
    assert many.finding.scenario.size <= few.finding.scenario.size, "there is more time to make it small"


def test_what_there_was_no_time_to_confirm_is_not_confirmed_and_says_so(clock: Clock) -> None:
    result = run(Slow(clock, 0.5), budget=6.0, seed=3)  # whose first scenario shows it
    (broken,) = [r for r in result.clauses if r.status is Status.UNCONFIRMED]
    assert broken.note == "not again in the time there was"
    assert result.exit is Exit.INCONCLUSIVE
    assert any("and not again in the time there was" in doubt for doubt in result.doubts)


def test_a_scenario_that_takes_longer_than_the_limit_is_cut_short(clock: Clock) -> None:
    spent, result = took(clock, 5.0, 4.0)
    assert (spent, result.scenarios) == (10.0, 0)


def test_the_limits_in_order() -> None:
    limits = TimeLimits.of(20.0, 100.0)
    assert 120.0 == limits.search < limits.cut < limits.end <= 100.0 + 1.5 * 20 + 10
    assert TimeLimits.of(None, 100.0) == TimeLimits()
    assert TimeLimits().search == TimeLimits().cut == TimeLimits().end == math.inf
    assert 10.0 < shrink_until(10.0, 20.0) < 20.0
    assert shrink_until(10.0, math.inf) == math.inf


@pytest.mark.parametrize("late", [0.0, 1.0, 4.0, 12.0, 60.0])
@pytest.mark.parametrize("limit", [0.5, 4.0, 30.0])
def test_a_slow_start_adds_no_time(limit: float, late: float) -> None:
    """It takes of that to search, then of that to confirm; the end is where it would have been."""
    limits = TimeLimits.of(limit, 100.0, 100.0 + late)
    assert limits.search < limits.cut < limits.end == 100.0 + 1.5 * limit + 4
    assert limits.search <= 100.0 + late + limit


@pytest.mark.parametrize("late", [2.0, 9.0, 30.0])
def test_a_check_counts_from_when_its_command_began(clock: Clock, late: float) -> None:
    began = clock.now
    clock.now += late
    result = run(Slow(clock, 0.5), budget=4.0, profile=PROFILES["ci"], began=began)
    assert clock.now - began <= max(1.5 * 4 + 4, late) + 0.5
    assert (result.scenarios > 0) == (late < 7)
    assert any("the budget of 4 s is spent" in doubt for doubt in result.missed)


class LosesItsWorkers(InProcess):
    """The work of several processes cannot begin, and this takes its time."""

    can_be_entered = True

    def __init__(self, assignor: Any, clock: Clock, seconds: float) -> None:
        super().__init__(assignor)
        self.clock, self.seconds = clock, seconds

    def renew(self) -> None:
        if self.can_be_entered:
            self.can_be_entered = False
            self.clock.now += self.seconds
            raise CannotStart("no process")


def test_a_second_start_has_the_time_of_the_first(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_entered", searching._shared)
    began, session = clock.now, LosesItsWorkers(Slow(clock, 0.5), clock, 5.0)
    result = run(None, session, budget=4.0, profile=PROFILES["ci"])
    assert clock.now - began <= 1.5 * 4 + 4 + 0.5
    assert result.scenarios == 0


def test_the_second_process_of_a_target_starts_in_the_time_that_is_left(here: Path) -> None:
    (here / "quick.py").write_text("def assign(cluster, group):\n    return {}\n")
    with Session(resolve("quick:assign")) as session:
        session.latest = -math.inf
        with pytest.raises(OutOfTime):
            session.second()
        session.latest = math.inf
        assert session.second() is not None


@pytest.mark.parametrize(
    ("options", "most"),
    [((), START_SECONDS), (("--time-limit", "2"), 7.0), (("--time-limit", "90"), START_SECONDS)],
)
def test_a_target_starts_within_the_time_of_the_command(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], most: float
) -> None:
    given: list[float] = []

    def refused(*_: object, start_seconds: float, **__: object) -> None:
        given.append(start_seconds)
        raise TargetError("not now")

    monkeypatch.setattr(targets, "Session", refused)
    assert main(["check", *options, "--no-progress", "--", "true"]) == Exit.USAGE
    assert 0 <= given[0] <= most
    assert most < START_SECONDS or given == [START_SECONDS]


def test_nothing_is_asked_once_the_time_is_up(clock: Clock) -> None:
    session = InProcess(Slow(clock, 1.0))
    session.latest = clock.now + 1
    assert session.assign(EAGER, Cluster({}), {}) is not None
    with pytest.raises(OutOfTime):
        session.assign(EAGER, Cluster({}), {})


SLEEPY = """
import time

def assign(cluster, group):
    time.sleep(1000)
"""


def test_an_answer_is_waited_for_no_longer_and_the_target_is_not_blamed(here: Path) -> None:
    (here / "sleepy.py").write_text(SLEEPY)
    with Session(resolve("sleepy:assign"), call_seconds=500.0) as session:
        for again in (session.assign, session.again):
            session.latest = time.monotonic() + 0.2
            with pytest.raises(OutOfTime):
                again(EAGER, Cluster({}), {})
        with pytest.raises(OutOfTime):
            session.assign(EAGER, Cluster({}), {})
        session.latest, session.call_seconds = math.inf, 0.2
        assert "within 0.2 s" in str(session.assign(EAGER, Cluster({}), {}))
