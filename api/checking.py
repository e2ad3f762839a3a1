"""Judging an assignor: the check, and its parts for tests that draw histories themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from rebalance_verifier.api.judgement import (
    CannotJudge,
    JudgedFinding,
    Judgement,
    judgement_of,
    judging,
    one_of,
    several,
)
from rebalance_verifier.base.verdict import Level

if TYPE_CHECKING:
    from rebalance_verifier.gate.search.plan import CheckPlan
    from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result
    from rebalance_verifier.properties.assignors.calls import AssignorCall
    from rebalance_verifier.properties.assignors.scenarios import Scenario


def check(
    target: Any,
    *,
    profile: str = "ci",
    seed: int = 0,
    level: str = "liveness",
    clauses: Sequence[str] = (),
    protocols: Sequence[str] = (),
    time_limit: float | None = None,
    fail_fast: bool = False,
    without: Sequence[str] = (),
    topics: Sequence[str] = (),
    known_failing: Sequence[str] = (),
    known_flaky: Sequence[str] = (),
    jobs: int = 1,
    call_seconds: float = 10.0,
    memory_mib: int = 2048,
    env: Sequence[str] = (),
    sandbox: bool = False,
) -> Judgement:
    """Judge a partition assignor, as `rebalance check` does: the same seed gives the same answer.

        answer = check("my_package.assignors:MyAssignor", profile="smoke")
        assert answer, str(answer)

    `target` is text as `rebalance check` takes it: "module:attribute", "kafka-python:sticky",
    "java:CLASS@WHERE", "-- ./adapter". It runs in a process of its own, so a hang or a crash is a finding.
    An object, class or function is judged in this process, which nothing then protects.

    Args:
        profile: how much is searched: smoke (seconds), ci (a minute), nightly, deep.
        level: the weakest level that makes the verdict a violation: safety, liveness or quality.
        clauses: only clauses at or below these paths, such as "kip429".
        protocols: only these of eager, cooperative, consumer, tasks and streams.
        time_limit: seconds after which the search stops, inconclusive.
        fail_fast: stop at the first violation.
        without: kinds of input that the assignor is not made for, such as "unequal" or "racks".
        topics: names that the topics of all scenarios have, for an assignor that looks for names.
        known_failing: violations to expect, as patterns or "@FILE"; one that is gone fails.
        known_flaky: violations to accept, in the same form.
        jobs: how many processes search; the answer is the same.
        call_seconds: CPU seconds that one answer of the target may take.
        memory_mib: how much memory the target may use.
        env: variables of the environment that the target may see.
        sandbox: give the target no network and no files but its own program (Linux).

    Nothing is printed or written; `JudgedFinding.save` writes a counterexample. Raises CannotJudge.
    """
    from rebalance_verifier.gate.scenarios.exclusions import excluded
    from rebalance_verifier.gate.scenarios.topics import names_given
    from rebalance_verifier.gate.search import known
    from rebalance_verifier.gate.search.judgement import allow
    from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan
    from rebalance_verifier.model.values import RebalanceProtocol
    from rebalance_verifier.properties.assignors.clauses import select

    today = date.today()
    with judging(ValueError):
        failing = known.read(several(known_failing), "known_failing")
        flaky = known.read(several(known_flaky), "known_flaky")
        chosen = tuple(select(several(clauses)))
        left_out = excluded(several(without))
        called = names_given(several(topics))
    names = [one_of("protocols", name, RebalanceProtocol) for name in several(protocols)]
    plan = CheckPlan(
        clauses=chosen,
        protocols=tuple(map(RebalanceProtocol, names)) or None,
        profile=PROFILES[one_of("profile", profile, PROFILES)],
        seed=seed,
        level=Level(one_of("level", level, Level)),
        budget=time_limit,
        fail_fast=fail_fast,
        without=left_out,
        topics=called,
        expected=lambda key: known.match((*failing, *flaky), key, today) is not None,
    )
    limits = {"call_seconds": call_seconds, "memory_mib": memory_mib}
    result = run_check(target, plan, jobs=jobs, env=several(env), sandbox=sandbox, limits=limits)
    return judgement(allow(result, failing, flaky, today))


def run_check(
    target: Any,
    plan: CheckPlan,
    *,
    jobs: int = 1,
    env: Sequence[str] = (),
    sandbox: bool = False,
    limits: dict[str, Any] | None = None,
    **shown: Any,
) -> Result:
    """Search by a plan, for a target by name or an object; ``shown`` is told how far it is.

    Ctrl-C ends it as it ends any function. Raises CannotJudge.
    """
    from rebalance_verifier.gate.scenarios.exclusions import refuse_tasks
    from rebalance_verifier.gate.scenarios.topics import refuse_names
    from rebalance_verifier.gate.search.search import check as search
    from rebalance_verifier.gate.search.search import describe
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.hosts.inside import InProcess
    from rebalance_verifier.gate.targets.resolve import resolve, shared_path
    from rebalance_verifier.gate.targets.session import Session

    named = isinstance(target, str)
    if not named and (env or sandbox or jobs > 1):
        raise CannotJudge("env, sandbox and jobs go with a target by name: an object is in this process")
    with judging(TargetError), shared_path():
        if named:
            confined = replace(resolve(target), variables=tuple(env), sandbox=sandbox)
            session: Session | InProcess = Session(confined, **limits or {})
        else:
            session = InProcess(target)
        with session:
            with judging(ValueError):
                refuse_tasks(plan.without, session.hello.protocols)
                refuse_names(plan.topics, plan.protocols or session.hello.protocols)
            info = describe(target if named else name_of(target), session.hello)
            result = search(plan, session, info, fresh=session.close, jobs=jobs, **shown)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def name_of(target: Any) -> str:
    """Return an object's name as ``module:attribute``, by which ``rebalance replay`` may find it again."""
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}:{named.__qualname__}"


def judgement(result: Result) -> Judgement:
    """Return the answer that a finished check gives."""
    from rebalance_verifier.gate.search import counterexamples
    from rebalance_verifier.report import data
    from rebalance_verifier.report.facts import headline
    from rebalance_verifier.report.html import check as page
    from rebalance_verifier.report.terminal import check as text

    identified = counterexamples.identified(result)
    return judgement_of(
        identified,
        _findings(result),
        headline,
        document=data.to_json,
        text=lambda _: text.render(result),  # of findings without ids: none is saved, so none can be replayed
        page=page.render,
    )


def _findings(result: Result) -> Iterator[JudgedFinding]:
    from rebalance_verifier.gate.search.result import Status
    from rebalance_verifier.report.facts import gating, having

    for row in having(result, Status.VIOLATED, Status.UNCONFIRMED):
        for finding in row.findings:
            if not finding.known:
                yield _finding(result, row, finding, gating(result, row))


def _finding(result: Result, row: ClauseResult, finding: Finding, gates: bool) -> JudgedFinding:
    from rebalance_verifier.gate.search import counterexamples

    trace = counterexamples.of(finding, result.target, result.profile, result.suite_version)
    return JudgedFinding(
        clause=row.clause.id,
        level=row.clause.level,
        rule=row.clause.sentence,
        summary=finding.breach.summary,
        about=str(row.protocol),
        certain=finding.confirmed,
        gates=gates,
        _text=partial(counterexamples.to_text, trace),
        _save=partial(counterexamples.save, trace),
    )


def play(assignor: Any, history: Scenario, *, level: str = "liveness") -> tuple[AssignorCall, ...]:
    """Play one of `histories` on an assignor and return its calls, each with `group` and `assignment`.

    `assignor` is an object, a class or a function, and runs in this process. Raises Violation, an
    AssertionError, where an answer breaks a clause of `level` or a worse one, and CannotJudge.
    """
    from rebalance_verifier.gate.search.subject import Subject
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.hosts.inside import InProcess
    from rebalance_verifier.properties.assignors.calls import AssignorCall
    from rebalance_verifier.properties.assignors.clause import violation
    from rebalance_verifier.properties.assignors.clauses import TABLE

    weakest = Level(one_of("level", level, Level))
    with judging(TargetError):
        subject = Subject.of(InProcess(assignor))
    record = subject.play(history, [clause for clause in TABLE if clause.level.gates(weakest)])
    if record.found:
        raise violation(record.found[0].clause, record.found[0].breach, record.scenario)
    return tuple(call for call in record.calls if isinstance(call, AssignorCall))


def assert_conforms(target: str, scenario: dict[str, object], clause: str) -> None:
    """Play the scenario of a trace on a target; the tests of `rebalance replay --as-pytest` call this.

    Raises Violation, an AssertionError, while the clause is broken, and CannotJudge.
    """
    from rebalance_verifier.gate.search.search import replay
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.resolve import resolve, shared_path
    from rebalance_verifier.gate.targets.session import Session
    from rebalance_verifier.properties.assignors.clause import violation
    from rebalance_verifier.properties.assignors.clauses import CLAUSES
    from rebalance_verifier.properties.assignors.played import from_json

    broken = CLAUSES[one_of("clause", clause, CLAUSES)]
    with judging(TargetError), shared_path(), Session(resolve(target)) as session:
        record = replay(session, from_json(scenario), broken)
    if record.skipped is not None:
        raise CannotJudge(f"{target} declined the scenario: {record.skipped}")
    if found := record.breach_of(broken.id):
        raise violation(broken, found.breach, record.scenario)
