"""What is said of a finding by what calls the target: of an error, of a task with nobody, of nothing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from rebalance_verifier.gate.search import second_judge
from rebalance_verifier.gate.search.result import Result
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.hosts.java import interfaces, parse, runtime_of
from rebalance_verifier.model.tasks import Application, TaskAssignment

from tests.gate.search.test_tasks import Alone, Forgetful, finding, judged

TASKS = interfaces.KINDS["streams"]
OWN = "java:com.acme.Mine@own.jar?mode=x#sticky"


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> Result:
    """Return a finding of a task assignor that forgets tasks, as if it were one of Java."""
    monkeypatch.setattr(second_judge, "runtime_of", lambda spec: f"runtime of {spec}")
    return judged(Forgetful(), each=1, mixed=0, crowd=0)


class Asks(Forgetful):
    def assign_tasks(self, application: Application) -> Any:
        given = super().assign_tasks(application)
        return TaskAssignment.of({one: active for one, (active, _) in given.items()}, followup=True)


class SomeOfMany(Alone):
    """Forgets tasks where there is more than one process, which a small counterexample has not."""

    def assign_tasks(self, application: Application) -> Any:
        given = super().assign_tasks(application)
        return dict.fromkeys(given, ((), ())) if len(given) > 1 else given


class Refuses(Alone):
    def assign_tasks(self, application: Application) -> Any:
        raise ValueError("UNKNOWN_TASK_ID")


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        (Forgetful, "nobody runs 0_0, without an error, and no rebalance follows"),
        (Asks, "nobody runs 0_0, and a rebalance follows"),
        (Refuses, "ValueError: UNKNOWN_TASK_ID"),
        (Alone, "nothing of it is seen"),
        (
            SomeOfMany,
            "0_1, 0_2, 1_0, 1_1, 1_2, 1_3, without an error, and no rebalance follows",
        ),
    ],
)
def test_a_finding_says_what_the_runtime_makes_of_it(runtime: type, says: str, result: Result):
    told = second_judge.consult(result, lambda spec: nullcontext(InProcess(runtime())))  # type: ignore[arg-type]
    last = finding(told).breach.because[-1]
    assert last.startswith("in StreamsPartitionAssignor ")
    assert last.endswith(says)
    assert finding(told).breach.because[:-1] == finding(result).breach.because


def test_a_runtime_that_does_not_start_leaves_the_verdict(result: Result):
    def opening(spec: str) -> Any:
        raise TargetError("its inside is another")

    assert second_judge.consult(result, opening) is result


class OutOfPatience(Alone):
    """Answers three times; then there is no time for more."""

    def assign_tasks(self, application: Application) -> Any:
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked > 3:
            self.session.latest = 0.0  # type: ignore[attr-defined]
        return super().assign_tasks(application)


def test_a_time_limit_holds_for_the_runtime_too(result: Result):
    runtime = OutOfPatience()
    session = runtime.session = InProcess(runtime)  # type: ignore[attr-defined]
    told = second_judge.consult(result, lambda spec: nullcontext(session))  # type: ignore[arg-type]
    assert finding(told).breach.because[-1].endswith("not played, for want of time")
    assert runtime.asked == 4
    assert second_judge.consult(result, lambda spec: pytest.fail(spec), 0.0) is result


def test_ctrl_c_leaves_what_was_found(result: Result):
    class Hangs(Alone):
        def assign_tasks(self, application: Application) -> Any:
            raise KeyboardInterrupt

    told = second_judge.consult(result, lambda spec: nullcontext(InProcess(Hangs())))  # type: ignore[arg-type]
    assert told.interrupted
    assert told.clauses == result.clauses


def test_a_verdict_without_a_finding_asks_nobody():
    fine = judged(Alone(), each=1, mixed=0, crowd=0)
    assert second_judge.consult(fine, lambda spec: pytest.fail(spec)) is fine


def test_the_runtime_is_that_of_the_class_path(monkeypatch: pytest.MonkeyPatch):
    java = "rebalance_verifier.gate.targets.hosts.java"
    monkeypatch.setattr(f"{java}.chosen", lambda *given: (TASKS, []))
    monkeypatch.setattr(f"{java}.maven.class_path", lambda where: where)
    around = parse(runtime_of(OWN) or "")
    assert around.class_name == interfaces.RUNTIME_CLASS
    assert around.where == ("own.jar",)
    assert dict(around.config) == {"mode": "x", "task.assignor.class": "com.acme.Mine"}
    assert [*around.promises] == ["sticky"]
    monkeypatch.setattr(f"{java}.chosen", lambda *given: (interfaces.KINDS["streams-broker"], []))
    assert runtime_of(OWN) is None
    assert runtime_of("tasks-sticky") is None
