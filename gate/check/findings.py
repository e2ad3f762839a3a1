"""A counterexample: the smallest scenario that still breaks a clause, played again in a fresh process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rebalance.gate.check.plan import CheckPlan
from rebalance.gate.check.result import Finding
from rebalance.gate.check.subject import Subject
from rebalance.properties.assignors.calls import FailureKind
from rebalance.properties.assignors.histories import Found, PlayedHistory, from_round
from rebalance.properties.assignors.minimise import minimise
from rebalance.properties.assignors.scenarios import Scenario

IMPATIENT = 0.5
"""Seconds that a call gets once the target is known to hang: while more is searched, and to minimise."""

PATIENCE = 5.0
"""Seconds that a search may lose in calls that do not return, and minimising one scenario in slow plays."""

STEADY_PATIENCE = 20.0
"""The same while a scenario is minimised where the machine must not decide: 40 calls that do not return, or
so many scenarios as are large enough to lose it by their size."""

QUICK, SLOW = 0.1, 1.0
"""Seconds that playing a scenario may take without counting as slow: by its size, and by CPU time."""

SECONDS_EACH = 1 / 4000
"""What a member or a partition adds to the time that playing a scenario takes, roughly."""


def finding(
    plan: CheckPlan,
    subject: Subject,
    scenario: Scenario,
    found: Found,
    number: int,
    fresh: Callable[[], None],
) -> Finding:
    """The counterexample of one clause, minimised unless it is expected, and confirmed."""
    expected = plan.expected(f"{found.clause.id}-{scenario.protocol}")
    small = scenario if expected else shrink(plan, subject, scenario, found)
    for played in (small,) if small == scenario else (small, scenario):
        fresh()
        record = subject.play(played, (found.clause,))
        again = record.breach_of(found.clause.id)
        if again is not None:
            shown = Finding.of(again, played, record.calls)
            size = scenario.size
            return replace(shown, seed=plan.seed, number=number, found_size=size, confirmed=True)
    return unconfirmed(plan, scenario, found, number)


def unconfirmed(plan: CheckPlan, scenario: Scenario, found: Found, number: int) -> Finding:
    """What the search saw, and nobody has seen again."""
    return replace(Finding.of(found, scenario), seed=plan.seed, number=number)


def shrink(plan: CheckPlan, subject: Subject, scenario: Scenario, broken: Found) -> Scenario:
    """The smallest scenario found that still breaks the clause of ``broken`` on the target.

    Starts from the scenario as it was found, and from the round of it that breaks.
    """
    clause, hangs = broken.clause, broken.breach.actual == FailureKind.TIMEOUT
    session, patient = subject.session, subject.session.call_seconds
    left, patience = plan.profile.shrink, STEADY_PATIENCE if plan.repeatable else PATIENCE

    def played(candidate: Scenario) -> PlayedHistory:
        nonlocal left, patience
        left -= 1
        began = session.cpu_seconds
        record = subject.play(candidate, (clause,))
        patience -= _lost(record, 0.0 if plan.repeatable else session.cpu_seconds - began)
        return record

    def breaks(candidate: Scenario) -> bool:
        return played(candidate).breach_of(clause.id) is not None

    def small(start: Scenario) -> Scenario:
        return minimise(start, breaks, may_go_on=lambda: left > 0 and patience > 0)

    if hangs:
        session.call_seconds = min(patient, IMPATIENT)
    try:
        best = small(scenario)
        record = played(best)
        found = record.breach_of(clause.id)
        if found is not None and 1 < found.round <= len(record.calls):
            shorter = from_round(record, found.round)
            if breaks(shorter):
                best = min(best, small(shorter), key=lambda s: s.size)
        return best
    finally:
        session.call_seconds = patient


def _lost(record: PlayedHistory, seconds: float) -> float:
    """The seconds by which playing was slow, which took ``seconds``."""
    if record.failure is not None and record.failure.kind is FailureKind.TIMEOUT:
        return IMPATIENT
    members, partitions, _, _ = record.scenario.size
    return max(0.0, (members + partitions) * SECONDS_EACH - QUICK, seconds - SLOW)
