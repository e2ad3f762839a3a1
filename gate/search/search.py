"""The main job: search for scenarios that break a clause, make them small, and give the verdict."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version as distribution_version
from typing import TypeVar

from rebalance_verifier.base.processes.workers import CannotStart, stream
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.exclusions import not_reached
from rebalance_verifier.gate.scenarios.generator import BY_NAME, CROWD
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.scenarios.task_generator import TASKS_BY_NAME
from rebalance_verifier.gate.search.findings import IMPATIENT, PATIENCE, findings, unconfirmed
from rebalance_verifier.gate.search.hints import SILENT, hint
from rebalance_verifier.gate.search.judgement import judge
from rebalance_verifier.gate.search.plan import FLOORS_FROM, SLICE, CheckPlan, count, scenario_at, slices
from rebalance_verifier.gate.search.progress import CheckProgress, ReportProgress, along_key, judged_keys
from rebalance_verifier.gate.search.result import (
    Along,
    ClauseResult,
    Finding,
    Result,
    Sample,
    Status,
    TargetInfo,
)
from rebalance_verifier.gate.search.subject import Subject, TargetSession
from rebalance_verifier.gate.search.time_limit import TimeLimits
from rebalance_verifier.gate.targets.hosts.inside import OutOfTime
from rebalance_verifier.gate.targets.hosts.messages import Hello
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import FAMILY, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.clauses import TABLE, UNANSWERED, unanswered
from rebalance_verifier.properties.assignors.oracles import FLOORS
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario
from rebalance_verifier.properties.assignors.task_calls import TASK_FLOORS

T = TypeVar("T")
ReportStage = Callable[[str, int, int], None]

EVERY = 0.05
"""Seconds after which a worker says how far it is."""

MAX_CALLS = 60
"""A worker that is silent for longer than so many calls may take hangs in what no alarm ends."""


def search(
    plan: CheckPlan,
    session: TargetSession,
    protocols: Sequence[RebalanceProtocol],
    progress: CheckProgress,
    report_progress: ReportProgress = lambda progress, total: None,
    jobs: int = 1,
    *,
    enter: bool = False,
    limits: TimeLimits = TimeLimits(),  # noqa: B008 (it is a value)
) -> str | None:
    """Play the scenarios of ``plan`` from ``progress.done`` on; why it stopped before the end, if it did.

    ``enter``: the target runs in the workers. ``progress`` is up to date after every scenario, also when this
    is interrupted; where workers play, after a few of them, and it knows of some ahead. What stops the
    search is looked for in the order of the scenarios, so that it stops behind the same one whatever the
    number of jobs; only time is what it is.
    Raises CannotStart.
    """
    total = count(plan.profile, protocols, plan.without)
    began, before = time.monotonic(), progress.seconds
    every = EVERY if jobs > 1 or enter else 0.0
    latest, session.latest = limits.search, limits.cut
    left = [numbers for one in slices(total) if (numbers := _left(one, progress))]
    tasks = [partial(_played, plan, protocols, numbers, every, latest) for numbers in left]

    def in_conversation(numbers: range) -> Generator[CheckProgress, None, None]:
        """Yield the slice of a worker that died, of what a conversation can tell; what came before counts."""
        whole = range(numbers.start // SLICE * SLICE, numbers.stop)
        return _played(plan, protocols, whole, 0.0, latest, session)

    with contextlib.ExitStack() as stack:
        arriving = stack.enter_context(closing((_entered if enter else _shared)(tasks, jobs, session)))
        slice_by_slice = ((left[number], part) for number, part in arriving)
        for part in stack.enter_context(closing(_in_order(progress, total, slice_by_slice, in_conversation))):
            progress.absorb(part)
            spent = time.monotonic() - began
            progress.seconds = before + spent
            report_progress(progress, total)
            if stopped := _stopped(plan, progress, part):
                progress.ahead.clear()
                return stopped
            if plan.budget is not None and began + spent >= limits.search and progress.done < total:
                return f"the budget of {plan.budget:g} s is spent"
    return None


def _in_order(
    progress: CheckProgress,
    total: int,
    arriving: Iterator[tuple[range, CheckProgress | None]],
    again: Callable[[range], Generator[CheckProgress, None, None]],
) -> Generator[CheckProgress, None, None]:
    """Yield the parts of a search in the order of the scenarios: each begins where ``progress`` stands by
    then. ``arriving``: parts with their slice, None for a slice whose rest comes from ``again``."""
    lost: dict[range, Iterator[CheckProgress]] = {}
    with contextlib.ExitStack() as stack:
        while progress.done < total:
            ahead = next((part for part in progress.ahead if part.first == progress.done), None)
            replayed = next((parts for numbers, parts in lost.items() if progress.done in numbers), None)
            if ahead is not None:
                progress.ahead.remove(ahead)
                yield ahead
            elif replayed is not None:
                nothing = CheckProgress(first=progress.done, done=progress.done)  # in time
                yield next((part for part in replayed if part.first == progress.done), nothing)
            else:
                numbers, part = next(arriving)
                if part is not None:
                    progress.ahead.append(part)
                else:
                    lost[numbers] = stack.enter_context(closing(again(numbers)))


def _shared(
    tasks: Sequence[Callable[[TargetSession], Iterator[T]]], jobs: int, session: TargetSession
) -> Generator[tuple[int, T], None, None]:
    """Yield what the tasks yield, each with the number of its task: by workers with a target each, or by this
    process where there is one to do the work. Raises CannotStart."""
    if (jobs := min(jobs, len(tasks))) <= 1:
        yield from ((number, item) for number, task in enumerate(tasks) for item in task(session))
        return
    for number, item in stream(partial(_working, tasks, session.forked), len(tasks), jobs):
        if item is None:
            raise RuntimeError("a worker ended before its work")
        yield number, item


def _entered(
    tasks: Sequence[Callable[[TargetSession], Iterator[T]]], jobs: int, session: TargetSession
) -> Generator[tuple[int, T | None], None, None]:
    """Yield the same by a worker for each task that runs the target itself; None comes where that ended
    it."""
    working = partial(_working, tasks, session.entered)
    yield from stream(working, len(tasks), jobs, anew=True, silence=MAX_CALLS * session.call_seconds)


@contextlib.contextmanager
def _working(
    tasks: Sequence[Callable[[TargetSession], Iterator[T]]],
    opened: Callable[[], AbstractContextManager[TargetSession]],
) -> Iterator[Callable[[int], Iterator[T]]]:
    """Yield what a worker does with a number, on the session that is its own."""
    with opened() as session:
        yield lambda number: tasks[number](session)


def _left(numbers: range, progress: CheckProgress) -> range:
    """Return what of a slice has not been played yet."""
    known = [part.done for part in progress.ahead if part.first in numbers]
    return range(max(numbers.start, progress.done, *known), numbers.stop)


def _played(
    plan: CheckPlan,
    protocols: Sequence[RebalanceProtocol],
    numbers: range,
    every: float,
    latest: float,
    session: TargetSession,
) -> Generator[CheckProgress, None, None]:
    """Yield what the scenarios with these numbers show, played on a new process of the target: as a part
    after ``every`` so many seconds, and one that ends with each scenario at which the search may have to
    stop, which is any from the time ``latest`` on."""
    subject, patient = Subject.renewed(session), session.call_seconds
    keys = {protocol: judged_keys(plan.clauses, protocol, subject.promises) for protocol in protocols}
    part, due = CheckProgress(first=numbers.start, done=numbers.start), time.monotonic() + every
    try:
        played = subject.plays(numbers, partial(scenario_at, plan, protocols), plan.clauses)
        for number, record in zip(numbers, played, strict=True):
            part.add(record, keys[record.scenario.protocol])
            if part.hung:
                session.call_seconds = min(patient, IMPATIENT)  # that it can hang is known by now
            if (
                part.hung
                or _violates(plan, part)
                or number + 1 == numbers.stop
                or time.monotonic() >= min(due, latest)
            ):
                yield part
                part, due = CheckProgress(first=part.done, done=part.done), time.monotonic() + every
    except OutOfTime:
        yield part
    finally:
        session.call_seconds = patient


def _stopped(plan: CheckPlan, progress: CheckProgress, part: CheckProgress) -> str | None:
    """Return why the search stops behind ``part``, the newest of ``progress``, if it does."""
    unexpected = any(
        not plan.expected(f"{unanswered(protocol)}-{protocol}")
        for protocol in map(RebalanceProtocol, part.hung)
    )
    if unexpected and IMPATIENT * ((calls := progress.hung.total()) - 1) > PATIENCE:
        return f"{calls} calls do not return, or use up what they may"
    return "stopped at the first violation" if _violates(plan, part) else None


def _violates(plan: CheckPlan, part: CheckProgress) -> bool:
    """Check whether ``part`` holds what a search stops at that is to fail fast."""
    return plan.fail_fast and any(
        broken[0].found.clause.level.gates(plan.level) and not plan.expected(key)
        for key, broken in part.breaking.items()
    )


def check(
    plan: CheckPlan,
    session: TargetSession,
    target: TargetInfo,
    *,
    progress: CheckProgress | None = None,
    report_progress: ReportProgress = lambda progress, total: None,
    report_stage: ReportStage = lambda stage, done, total: None,
    fresh: Callable[[], None] = lambda: None,
    jobs: int = 1,
) -> Result:
    """Search, minimise, confirm, and judge.

    ``report_stage`` is called with what is done after the search and how far it is. ``session`` answers for
    ``target``; ``fresh`` restarts it before a counterexample is confirmed. With
    several ``jobs`` as many processes work, each with a target of its own, and the result is the same; a
    target that cannot run more than once at a time is asked by this one. Ctrl-C ends the search early: the
    result then says ``interrupted`` and holds what was found.
    """
    progress = progress if progress is not None else CheckProgress()
    began = time.monotonic()
    started = began - progress.seconds
    limits = TimeLimits.of(plan.budget, began if plan.began is None else plan.began, began)
    declared = tuple(RebalanceProtocol(p) for p in target.protocols)
    protocols = tuple(p for p in plan.protocols or declared if p in declared)
    playing = partial(search, plan, session, protocols, progress, report_progress, limits=limits)
    shown: dict[str, tuple[Finding, ...]] = {}
    interrupted, stopped = False, None
    whole = progress
    try:
        try:
            enter = session.can_be_entered
            stopped = playing(jobs, enter=enter)
        except CannotStart:
            jobs = 1
            stopped = playing(jobs)
        whole = progress.whole()
        session.latest = limits.end
        keys = sorted(whole.breaking, key=partial(_urgency, plan, whole))
        repeated = [f"{c.id}-{p}" for c in TABLE if c.scope is Scope.REPEAT for p in protocols]
        alike = not any(whole.broken[k] for k in repeated) and (
            all(whole.judged[k] for k in repeated) or None
        )
        judged = (partial(findings, plan, broken=whole.breaking[key], fresh=fresh) for key in keys)
        counterexamples = [partial(_findings, one, alike) for one in judged]
        stage = "making small and confirming"
        report_stage(stage, 0, len(keys))
        for number, found in _shared(counterexamples, jobs, session):
            shown[keys[number]] = found
            report_stage(stage, len(shown), len(keys))
        again = [passing for passing in whole.samples.values() if passing.calls is None]
        replays = [partial(_calls, passing.scenario) for passing in again]
        for done, (number, calls) in enumerate(_shared(replays, jobs, session), 1):
            again[number].calls = calls
            report_stage("playing the samples of the report", done, len(again))
    except KeyboardInterrupt:
        interrupted = True
        whole = progress.whole()
    late, session.latest = time.monotonic() >= limits.end, math.inf
    for key, broken in whole.breaking.items():
        shown.setdefault(key, (unconfirmed(plan, broken[0]),))
    promises = tuple(Promise(p) for p in target.promises)
    cut = interrupted and whole.done < count(plan.profile, protocols, plan.without)
    silent = _silent(plan, protocols, promises, whole)
    rows = (
        _row(
            clause,
            protocol,
            whole,
            shown.get(f"{clause.id}-{protocol}", ()),
            declared,
            protocols,
            promises,
            cut,
            late,
            target.spec,
        )
        for clause in plan.clauses
        for protocol in clause.protocols
        if FAMILY[protocol] in {FAMILY[one] for one in declared}
    )
    result = Result(
        suite_version=distribution_version("rebalance-verifier"),
        target=target,
        profile=plan.profile.name,
        seed=plan.seed,
        level=plan.level,
        clauses=tuple(_explained(row, target.spec) if row.protocol in silent else row for row in rows),
        scenarios=whole.done,
        questions=whole.questions,
        seconds=time.monotonic() - started,
        witnesses=_merged(whole.witnesses),
        missed=() if interrupted else _missed(plan, protocols, whole, stopped, silent),
        floors=_floors(plan, protocols),
        coverage=_coverage(whole, protocols),
        samples=_samples(whole, protocols),
        quality=1 - whole.moved / whole.claims if whole.claims else None,
        interrupted=interrupted,
        assumed=session.hello.promises_assumed,
        without=plan.without,
        topics=plan.topics,
        beside=plan.beside,
    )
    return judge(result)


def _findings(
    judged: Callable[[Subject], tuple[Finding, ...]], alike: bool | None, session: TargetSession
) -> Iterator[tuple[Finding, ...]]:
    yield judged(replace(Subject.renewed(session), alike=alike))


def _calls(scenario: AnyScenario, session: TargetSession) -> Iterator[tuple[AnyCall, ...]]:
    with contextlib.suppress(OutOfTime):  # the report does without
        yield Subject.renewed(session).play(scenario, ()).calls


def _urgency(plan: CheckPlan, progress: CheckProgress, key: str) -> tuple[object, ...]:
    """Return what is made small first: what costs no calls that hang, and where time may run out, the
    worst."""
    level = progress.breaking[key][0].found.clause.level
    return 0 if plan.budget is None else [*Level].index(level), key.rpartition("-")[0] in UNANSWERED, key


def _row(
    clause: Clause,
    protocol: RebalanceProtocol,
    progress: CheckProgress,
    findings: Sequence[Finding],
    declared: Sequence[RebalanceProtocol],
    protocols: Sequence[RebalanceProtocol],
    promises: Sequence[Promise],
    cut: bool,
    late: bool,
    spec: str,
) -> ClauseResult:
    row = partial(ClauseResult, clause=clause.under(protocol), protocol=protocol)
    key = f"{clause.id}-{protocol}"
    judged = progress.judged[key]
    if findings:
        first, *others = findings
        status = Status.VIOLATED if first.confirmed else Status.UNCONFIRMED
        note = "not again in the time there was" if late and status is Status.UNCONFIRMED else ""
        row = partial(row, scenarios=judged, broken=progress.broken[key], searched=progress.done, note=note)
        row = partial(row, hint=hint(clause.id, spec))
        return row(status=status, finding=first, others=tuple(others))
    if protocol not in declared:
        return row(status=Status.UNSUPPORTED, note=f"the target does not support {protocol}")
    if protocol not in protocols:
        return row(status=Status.UNTESTED, note=f"{protocol} was not asked for")
    if not clause.applies(protocol, promises):
        return row(status=Status.UNSUPPORTED, note=clause.missing(promises))
    if judged and cut:  # it would not be broken by what was not played
        return row(status=Status.UNTESTED, scenarios=judged, note=f"interrupted after {judged} scenarios")
    if judged and clause.needs and not progress.witnesses[f"{clause.needs}-{protocol}"]:
        return row(status=Status.UNTESTED, note=f"never reached: {clause.needs}")
    if judged:
        return row(status=Status.PASSED, scenarios=judged)
    declined = progress.skipped.most_common(1)
    return row(
        status=Status.UNTESTED, note=f"declined: {declined[0][0]}" if declined else "no scenario was played"
    )


def _silent(
    plan: CheckPlan,
    protocols: Sequence[RebalanceProtocol],
    promises: Sequence[Promise],
    progress: CheckProgress,
) -> tuple[RebalanceProtocol, ...]:
    """Return the protocols under which the target answered nothing that a clause could be held against."""
    wanted = {
        protocol: [
            key
            for scope, keys in judged_keys(plan.clauses, protocol, promises).items()
            if scope is not Scope.REPLY
            for key in keys
        ]
        for protocol in protocols
        if progress.judged[f"{unanswered(protocol)}-{protocol}"]
    }
    return tuple(p for p, keys in wanted.items() if keys and not any(progress.judged[key] for key in keys))


def _explained(row: ClauseResult, spec: str) -> ClauseResult:
    """Return the row of a target that never answered, with what follows from that."""
    if row.clause.id in UNANSWERED:
        return replace(row, hint=hint(SILENT, spec))
    return replace(row, note="no answer to judge") if row.status is Status.UNTESTED else row


def _missed(
    plan: CheckPlan,
    protocols: Sequence[RebalanceProtocol],
    progress: CheckProgress,
    stopped: str | None,
    silent: Sequence[RebalanceProtocol],
) -> tuple[str, ...]:
    total = count(plan.profile, protocols, plan.without)
    if not protocols:
        return ("the target supports none of the protocols that were asked for",)
    if progress.done and progress.skipped.total() == progress.done:
        return (f"the target declined all {progress.done} scenarios",)
    if stopped is not None:
        return (f"stopped after {progress.done} of {total} scenarios: {stopped}",)
    return (
        *(f"it never answered ({protocol})" for protocol in silent),
        *tuple(
            f"never reached: {witness} ({protocol})"
            for protocol, floors in _floors(plan, protocols).items()
            for witness in floors
            if protocol not in silent and not progress.witnesses[f"{witness}-{protocol}"]
        ),
    )


def _floors(
    plan: CheckPlan, protocols: Sequence[RebalanceProtocol]
) -> dict[RebalanceProtocol, tuple[str, ...]]:
    if plan.profile.each < FLOORS_FROM:
        return {}
    beyond = not_reached(plan.without)
    return {p: tuple(one for one in (FLOORS | TASK_FLOORS)[p] if one not in beyond) for p in protocols}


def _keys(protocols: Sequence[RebalanceProtocol]) -> Iterator[tuple[RebalanceProtocol, str, str]]:
    """(protocol, dimension, ``along_key``) for all that a search can have played, in order."""
    for protocol in protocols:
        for dimension in ("", *BY_NAME, *TASKS_BY_NAME, CROWD):
            yield protocol, dimension, along_key(protocol, dimension)


def _coverage(progress: CheckProgress, protocols: Sequence[RebalanceProtocol]) -> tuple[Along, ...]:
    return tuple(
        Along(
            protocol=protocol,
            dimension=dimension,
            scenarios=tally.scenarios,
            broken=_by_name(tally.broken),
            witnesses=_by_name(tally.witnesses),
        )
        for protocol, dimension, key in _keys(protocols)
        if (tally := progress.along.get(key)) is not None
    )


def _by_name(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items()))


def _samples(progress: CheckProgress, protocols: Sequence[RebalanceProtocol]) -> tuple[Sample, ...]:
    return tuple(
        Sample(dimension, passing.scenario, passing.calls, passing.number)
        for _, dimension, key in _keys(protocols)
        if (passing := progress.samples.get(key)) is not None and passing.calls is not None
    )


def _merged(witnesses: Counter[str]) -> dict[str, int]:
    merged: Counter[str] = Counter()
    for key, hits in witnesses.items():
        merged[key.rpartition("-")[0]] += hits
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def describe(spec: str, hello: Hello) -> TargetInfo:
    """Return the target of a report: what it said of itself, and how it was named to us."""
    return TargetInfo(
        spec=spec,
        name=hello.name,
        version=hello.version or "",
        language=hello.language or "",
        protocols=tuple(str(p) for p in hello.protocols),
        promises=tuple(sorted(str(p) for p in hello.promises)),
        homepage=hello.homepage or "",
        issues=hello.issues or "",
        interface=hello.interface or "",
        also=hello.also or "",
    )


def replay(session: TargetSession, scenario: AnyScenario, clause: Clause) -> PlayedHistory:
    """Play one saved scenario for one clause, whatever the target promises today."""
    subject = replace(Subject.of(session), promises=tuple(sorted(clause.promises)))
    return subject.showing(scenario, clause)
