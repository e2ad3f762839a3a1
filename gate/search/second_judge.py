"""A second judge of what a task assignor of Kafka Streams answers: the runtime that calls it.

``StreamsPartitionAssignor`` validates little of an answer. So each counterexample is played once more on a
whole group of it, of the release on the class path, and the finding says what comes of it there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.player import Found, PlayedHistory
from rebalance_verifier.gate.scenarios.task_generator import TOGETHER, generate
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import OutOfTime, check_time
from rebalance_verifier.gate.targets.hosts.java import runtime_of
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.wording import counted

SERIOUS = (Level.SAFETY, Level.LIVENESS)

ELSEWHERE = 24
"""Applications that are tried where a counterexample does the runtime no harm."""

Opening = Callable[[str], AbstractContextManager[Session]]


def consult(result: Result, opening: Opening, latest: float = math.inf) -> Result:
    """Return a result whose findings say what the runtime makes of them, where one calls the target.
    ``opening`` starts a target by its spec, and nothing is asked from ``latest`` of ``time.monotonic`` on.
    Ctrl-C leaves the result as it was found, and interrupted."""
    if not any(row.finding for row in result.clauses):
        return result
    try:
        check_time(latest)
        spec = runtime_of(result.target.spec)
        if spec is None:
            return result
        with opening(spec) as session:
            session.latest = latest
            subject = Subject.of(session)
            version = session.hello.version

            def add_runtime(finding: Finding) -> Finding:
                try:
                    outcome = _of_runtime(subject, finding)
                except OutOfTime:
                    outcome = "not played, for want of time"
                text = f"in StreamsPartitionAssignor {version}: {outcome}"
                return replace(
                    finding, breach=replace(finding.breach, because=(*finding.breach.because, text))
                )

            return replace(result, clauses=tuple(_each(row, add_runtime) for row in result.clauses))
    # A release whose inside is another, or a limit that has passed: the verdict stands without it.
    except (TargetError, ToolError, OutOfTime):
        return result
    except KeyboardInterrupt:
        return replace(result, interrupted=True)


def _each(row: ClauseResult, judge: Callable[[Finding], Finding]) -> ClauseResult:
    if row.finding is None:
        return row
    return replace(row, finding=judge(row.finding), others=tuple(map(judge, row.others)))


def _of_runtime(subject: Subject, finding: Finding) -> str:
    if finding.clause.scope is Scope.REPEAT or finding.clause.by_chance:
        record = subject.showing(finding.scenario, finding.clause)
        if record.found:
            return _outcome(record.found[0], record)
    record, worst = _worst(subject, finding.scenario, finding.clause)
    if record.skipped:
        return "it asks for the rebalance to be tried again"
    if worst is not None:
        return _outcome(worst, record)
    # A counterexample is as small as its clause allows: perhaps too small for the runtime to lose anything.
    for number in range(ELSEWHERE):
        names, size = TOGETHER[number % len(TOGETHER)]
        scenario = generate(Seeded(f"runtime/{number}"), finding.protocol, names, size)
        record, worst = _worst(subject, scenario, finding.clause)
        if worst is not None:
            clients, tasks, _, _ = scenario.size
            where = f"{clients} processes and {counted(tasks, 'task')}"
            return f"nothing of it is seen here; with {where}: {_outcome(worst, record)}"
    return "nothing of it is seen"


def _worst(subject: Subject, scenario: AnyScenario, clause: Clause) -> tuple[PlayedHistory, Found | None]:
    """Return the play of a scenario, and of what it breaks the clause, or else the worst that counts."""
    promises = frozenset(subject.promises)
    clauses = [one for one in TABLE if one.applies(scenario.protocol, promises)]
    record = subject.play(scenario, clauses)
    serious = [one for one in record.found if one.clause.level in SERIOUS or one.clause.id == clause.id]
    order = sorted(
        serious, key=lambda one: (one.clause.level not in SERIOUS, one.clause.id != clause.id, one.round)
    )
    return record, next(iter(order), None)


def _outcome(found: Found, record: PlayedHistory) -> str:
    """Return what came of it; of a task that nobody runs also whether anybody will look again."""
    text = found.breach.summary.removeprefix("assign() raises: ")
    if found.breach.kind == "nobody":
        call = record.calls[found.round - 1]
        follows = isinstance(call, TaskCall) and call.assignment.followup
        text += ", and a rebalance follows" if follows else ", without an error, and no rebalance follows"
    return text
