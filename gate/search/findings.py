"""Counterexamples: one for each cause of a broken clause, made small, played again in a fresh process."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.search.causes.attribution import (
    MAX_CAUSES,
    Attribution,
    BreakingScenario,
    CauseFound,
)
from rebalance_verifier.gate.search.causes.tasks import TaskAttribution
from rebalance_verifier.gate.search.plan import CheckPlan
from rebalance_verifier.gate.search.result import Finding
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.search.time_limit import shrink_until
from rebalance_verifier.gate.targets.hosts.inside import OutOfTime
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario

IMPATIENT = 0.5
"""Seconds that a call gets once the target is known to hang: while more is searched, and to minimise."""

PATIENCE = 3.5
"""Seconds that a search may lose in calls that do not return, and minimising one scenario in slow plays."""

STEADY_PATIENCE = 20.0
"""The same while a scenario is minimised where the machine must not decide: 40 calls that do not return, or
so many scenarios as are large enough to lose it by their size."""

QUICK, SLOW = 0.1, 1.0
"""Seconds that playing a scenario may take without counting as slow: by its size, and by CPU time."""

SECONDS_EACH = 1 / 4000
"""What a member or a partition adds to the time that playing a scenario takes, roughly."""


def findings(
    plan: CheckPlan, subject: Subject, broken: Sequence[BreakingScenario], fresh: Callable[[], None]
) -> tuple[Finding, ...]:
    """Return the counterexamples of one clause, of each cause one that was confirmed, the most real first; if
    none was, one as it was found. A clause that is expected to be broken has one, which is not minimised."""
    first, *_ = smallest = sorted(broken, key=lambda one: (one.scenario.size, one.number))[:MAX_CAUSES]
    key = f"{first.found.clause.id}-{first.scenario.protocol}"
    causes: list[CauseFound] = []
    if not plan.expected(key):
        with contextlib.suppress(OutOfTime):
            until = shrink_until(time.monotonic(), subject.session.latest)
            causes = attribution(plan, subject, broken, until).explain(broken)
    found = tuple(
        replace(shown, cause=one.cause, broken=len(one.broken))
        for one in causes
        if (shown := confirmed(plan, subject, one.first, one.small, fresh))
    )
    as_found = (confirmed(plan, subject, one, one.scenario, fresh) for one in smallest if not found)
    return found or (next(filter(None, as_found), unconfirmed(plan, first)),)


def confirmed(
    plan: CheckPlan, subject: Subject, broken: BreakingScenario, small: AnyScenario, fresh: Callable[[], None]
) -> Finding | None:
    """Return the counterexample that ``small`` is, or what it was made of, if a fresh process shows it
    too."""
    clause = broken.found.clause
    for played in (small,) if small == broken.scenario else (small, broken.scenario):
        fresh()
        try:
            record = subject.showing(played, clause)
            again = subject.lasting(record, clause).breach_of(clause.id)
        except OutOfTime:
            return None
        if again:
            shown = Finding.of(again, played, record.calls)
            size = broken.scenario.size
            return replace(shown, seed=plan.seed, number=broken.number, found_size=size, confirmed=True)
    return None


def unconfirmed(plan: CheckPlan, broken: BreakingScenario) -> Finding:
    """Return what the search saw, and nobody has seen again."""
    return replace(Finding.of(broken.found, broken.scenario), seed=plan.seed, number=broken.number)


def attribution(
    plan: CheckPlan, subject: Subject, broken: Sequence[BreakingScenario], until: float = math.inf
) -> Attribution | TaskAttribution:
    """Return what explains why a clause is ``broken``. Plays that are slow cost more than one."""
    clause, session = broken[0].found.clause, subject.session
    hasty = replace(subject, to_breach=subject.alike is not False)
    patience = STEADY_PATIENCE if plan.repeatable else PATIENCE
    failures = {one.found.breach.actual for one in broken}
    used = session.cpu_seconds

    def plays(scenarios: Sequence[AnyScenario]) -> list[tuple[PlayedHistory, float]]:
        nonlocal used
        began, patient, first = used, session.call_seconds, session.history
        session.call_seconds = min(patient, IMPATIENT) if FailureKind.TIMEOUT in failures else patient
        played = [scenario for scenario in scenarios if plan.plays(scenario)]
        numbers = range(first, first + len(played))
        try:
            records = [*hasty.plays(numbers, lambda number: played[number - first], (clause,))]
            session.history = numbers.stop
            if subject.alike is False:
                records = [subject.steady(record, clause) for record in records]
        finally:
            session.call_seconds = patient
        used = 0.0 if plan.repeatable else session.cpu_seconds
        seconds = 0.0 if plan.repeatable else (used - began) / len(scenarios)
        costs = [(r, 1 + _lost(r, seconds) / patience * plan.profile.shrink) for r in records]
        return costs if len(played) == len(scenarios) else _filled(scenarios, costs)

    of_tasks = isinstance(broken[0].scenario, TaskScenario)
    explaining: type[Attribution] | type[TaskAttribution] = TaskAttribution if of_tasks else Attribution
    return explaining(
        clause=clause,
        plays=plays,
        limit=plan.profile.shrink,
        together=session.hello.histories > 1 and failures.isdisjoint(FailureKind),
        expected=plan.expected,
        most=plan.causes,
        late=lambda: time.monotonic() >= until,
    )


def _filled(
    scenarios: Sequence[AnyScenario], costs: Sequence[tuple[PlayedHistory, float]]
) -> list[tuple[PlayedHistory, float]]:
    """Return the same for all ``scenarios``: one that was not played, since the search is without its kind,
    breaks nothing."""
    found = {id(record.scenario): (record, cost) for record, cost in costs}
    return [found.get(id(one), (PlayedHistory(scenario=one, calls=()), 1.0)) for one in scenarios]


def _lost(record: PlayedHistory, seconds: float) -> float:
    """Return the seconds by which playing was slow, which took ``seconds``."""
    if record.failure is not None and record.failure.costly:
        return max(IMPATIENT, seconds - SLOW)
    members, partitions, _, _ = record.scenario.size
    return max(0.0, (members + partitions) * SECONDS_EACH - QUICK, seconds - SLOW)
