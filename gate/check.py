"""The main job: search for scenarios that break a clause, make them small, and give the verdict."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version as distribution_version
from typing import Protocol

from rebalance.gate.judgement import gates, judge
from rebalance.gate.messages import Hello
from rebalance.gate.plan import CROWD, FLOORS, FLOORS_FROM, Plan, count, numbered
from rebalance.gate.result import Along, ClauseResult, Finding, Result, Sample, Status, TargetInfo
from rebalance.model.assignor import Promise
from rebalance.model.values import (
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)
from rebalance.properties.calls import Asker, Call, Failure, FailureKind, Reply
from rebalance.properties.clauses import Clause, Scope, violation
from rebalance.properties.generator import BY_NAME
from rebalance.properties.histories import Found, Record, Writer, WriteUserData, from_round, play
from rebalance.properties.minimise import minimise
from rebalance.properties.scenarios import Scenario

IMPATIENT = 0.5
"""Seconds that a call gets once the target is known to hang: while more is searched, and to minimise."""

PATIENCE = 5.0
"""Seconds that a search may lose in calls that do not return, and all minimising in slow scenarios."""

QUICK = 0.1
"""Seconds that playing a scenario may take without counting as slow, so that minimising stays repeatable."""


class TargetSession(Protocol):
    """What the check needs of a target: ``rebalance.gate.session.Session`` or ``InProcess``."""

    call_seconds: float
    history: int

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply: ...
    def again(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply: ...
    def user_data(
        self, owned: Partitions, generation: int, asker: Asker | None = None
    ) -> bytes | Failure | None: ...
    @property
    def hello(self) -> Hello: ...


@dataclass(slots=True)
class Progress:
    """Where a search stands; saved when it is interrupted, and taken up again by ``--resume``."""

    done: int = 0
    asked: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    moved: int = 0
    best: dict[str, tuple[Scenario, Found, int]] = field(default_factory=dict)
    """Per clause-protocol id: the smallest scenario that breaks it so far, and its number."""
    seconds: float = 0.0
    along: dict[str, Tally] = field(default_factory=dict)
    """By ``along_key``."""
    samples: dict[str, Passing] = field(default_factory=dict)
    """By ``along_key``: the passing scenario to show."""


@dataclass(slots=True)
class Tally:
    """The figures of one ``Along`` while they grow."""

    scenarios: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Passing:
    """A scenario in which every clause held. ``calls`` is None after a resume, until it is played again."""

    scenario: Scenario
    number: int
    worth: int
    calls: tuple[Call, ...] | None = None


@dataclass(slots=True)
class Patience:
    """What is left of ``PATIENCE`` for all minimising of one check."""

    left: float = PATIENCE


Tell = Callable[[Progress, int], None]
"""Called after every scenario with where the search stands, and the total."""


def _write_for(session: TargetSession, asker: Asker) -> WriteUserData:
    return partial(session.user_data, asker=asker)


@dataclass(frozen=True, slots=True)
class Subject:
    """A target as scenarios are played on it: its session, its userData, what it promises."""

    session: TargetSession
    writer: Writer | None
    promises: tuple[Promise, ...]

    @classmethod
    def of(cls, session: TargetSession) -> Subject:
        """Ask the target what it is."""
        hello = session.hello
        writer = Writer.of(session.user_data, partial(_write_for, session)) if hello.user_data else None
        return cls(session, writer, tuple(sorted(hello.promises)))

    def play(self, scenario: Scenario, clauses: Sequence[Clause]) -> Record:
        """Play one scenario."""
        session = self.session
        session.history += 1
        return play(scenario, session.assign, self.writer, clauses, self.promises, again=session.again)


def search(
    plan: Plan,
    subject: Subject,
    protocols: Sequence[RebalanceProtocol],
    progress: Progress,
    tell: Tell = lambda progress, total: None,
) -> str | None:
    """Play the scenarios of ``plan`` from ``progress.done`` on; why it stopped before the end, if it did.

    ``progress`` is up to date after every scenario, also when this is interrupted.
    """
    total = count(plan.profile, protocols)
    session, patient = subject.session, subject.session.call_seconds
    began = time.monotonic()
    before, lost = progress.seconds, 0.0
    try:
        for number, scenario in enumerate(numbered(plan, protocols)):
            if number < progress.done:
                continue
            record = subject.play(scenario, plan.clauses)
            spent = time.monotonic() - began
            _count(progress, record, number, plan.clauses, subject.promises, before + spent)
            tell(progress, total)
            if record.failure is not None and record.failure.kind is FailureKind.TIMEOUT:
                lost += record.failure.seconds
                session.call_seconds = min(patient, IMPATIENT)  # that it can hang is known by now
                hopeless = not plan.expected(f"assign/4-{scenario.protocol}")
                if hopeless and lost > patient + PATIENCE:
                    return f"{lost:.0f} s went by in calls that do not return"
            if plan.fail_fast and any(_counts(plan, f.clause, scenario.protocol) for f in record.found):
                return "stopped at the first violation"
            if plan.budget is not None and spent > plan.budget and progress.done < total:
                return f"the budget of {plan.budget:g} s is spent"
    finally:
        session.call_seconds = patient
    return None


def _counts(plan: Plan, clause: Clause, protocol: RebalanceProtocol) -> bool:
    return gates(clause, plan.level) and not plan.expected(f"{clause.id}-{protocol}")


def _count(
    progress: Progress,
    record: Record,
    number: int,
    clauses: Sequence[Clause],
    promises: Sequence[Promise],
    seconds: float,
) -> None:
    protocol = record.scenario.protocol
    progress.done, progress.seconds = number + 1, seconds
    progress.asked += record.asked
    progress.claims += record.claims
    if record.skipped is not None:
        progress.skipped[record.skipped] += 1
        return
    progress.witnesses.update(f"{w}-{protocol}" for w in record.witnesses)
    for clause in clauses:
        if clause.applies(protocol, promises):
            progress.judged[f"{clause.id}-{protocol}"] += 1
    for found in record.found:
        key = f"{found.clause.id}-{protocol}"
        progress.broken[key] += 1
        progress.moved += found.breach.gap if found.clause.id == "kip54/sticky/1" else 0
        known = progress.best.get(key)
        if known is None or record.scenario.size < known[0].size:
            progress.best[key] = (record.scenario, found, number)
    _cover(progress, record, number)


def along_key(protocol: RebalanceProtocol, dimension: str) -> str:
    """Names one ``Along``."""
    return f"{protocol}/{dimension}"


def _cover(progress: Progress, record: Record, number: int) -> None:
    """What the scenario adds to the figures of its dimensions, and whether it is worth showing."""
    protocol, dimensions = record.scenario.protocol, record.scenario.dimensions or ("",)
    broken = [found.clause.id for found in record.found]
    for dimension in dimensions:
        key = along_key(protocol, dimension)
        tally = progress.along.get(key)
        if tally is None:
            tally = progress.along[key] = Tally()
        tally.scenarios += 1
        tally.broken.update(broken)
        tally.witnesses.update(record.witnesses)
    if len(dimensions) > 1 or dimensions[0] == CROWD or broken or record.failure is not None:
        return
    worth = _worth(record)
    if (known := progress.samples.get(key)) is None or worth > known.worth:
        progress.samples[key] = Passing(record.scenario, number, worth, record.calls)


def _worth(record: Record) -> int:
    """How well a scenario shows what passing is: small enough to be read, and something happens in it."""
    members, partitions, _, events = record.scenario.size
    legible = 2 <= members <= 4 and 2 <= partitions <= 6 and events <= 4
    return 10_000 * legible + 100 * min(len(record.witnesses), 3) - members - partitions - events


def shrink(plan: Plan, subject: Subject, scenario: Scenario, broken: Found, patience: Patience) -> Scenario:
    """The smallest scenario found that still breaks the clause of ``broken`` on the target.

    Starts from the scenario as it was found, and from the round of it that breaks.
    """
    clause, hangs = broken.clause, broken.breach.actual == FailureKind.TIMEOUT
    session, patient = subject.session, subject.session.call_seconds
    left = plan.profile.shrink

    def played(candidate: Scenario) -> Record:
        nonlocal left
        left -= 1
        began = time.monotonic()
        record = subject.play(candidate, (clause,))
        patience.left -= max(0.0, time.monotonic() - began - QUICK)
        return record

    def breaks(candidate: Scenario) -> bool:
        return played(candidate).breach_of(clause.id) is not None

    def small(start: Scenario) -> Scenario:
        return minimise(start, breaks, may_go_on=lambda: left > 0 and patience.left > 0)

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


def check(
    plan: Plan,
    session: TargetSession,
    target: TargetInfo,
    *,
    progress: Progress | None = None,
    tell: Tell = lambda progress, total: None,
    fresh: Callable[[], None] = lambda: None,
) -> Result:
    """Search, minimise, confirm, and judge.

    ``session`` answers for ``target``; ``fresh`` restarts it before a counterexample is confirmed.
    Ctrl-C ends the search early: the result then says ``interrupted`` and holds what was found.
    """
    progress = progress if progress is not None else Progress()
    started = time.monotonic() - progress.seconds
    declared = tuple(RebalanceProtocol(p) for p in target.protocols)
    protocols = tuple(p for p in plan.protocols or declared if p in declared)
    findings: dict[str, Finding] = {}
    interrupted, stopped = False, None
    try:
        subject = Subject.of(session)
        stopped = search(plan, subject, protocols, progress, tell)
        patience = Patience(math.inf) if plan.repeatable else Patience()
        for key in sorted(progress.best, key=lambda k: (progress.best[k][1].clause.scope is Scope.REPLY, k)):
            # Those that can take long last: patience is for all.
            findings[key] = _finding(plan, subject, key, progress, patience, fresh)
        for passing in progress.samples.values():
            if passing.calls is None:
                passing.calls = subject.play(passing.scenario, ()).calls
    except KeyboardInterrupt:
        interrupted = True
    for key in progress.best:
        findings.setdefault(key, _unconfirmed(plan, *progress.best[key]))
    promises = tuple(Promise(p) for p in target.promises)
    rows = tuple(
        _row(
            clause,
            protocol,
            progress,
            findings.get(f"{clause.id}-{protocol}"),
            declared,
            protocols,
            promises,
        )
        for clause in plan.clauses
        for protocol in clause.protocols
    )
    result = Result(
        suite_version=distribution_version("rebalance-verifier"),
        target=target,
        profile=plan.profile.name,
        seed=plan.seed,
        level=plan.level,
        clauses=rows,
        scenarios=progress.done,
        asked=progress.asked,
        seconds=time.monotonic() - started,
        witnesses=_merged(progress.witnesses),
        missed=() if interrupted else _missed(plan, protocols, progress, stopped),
        floors=_floors(plan, protocols),
        coverage=_coverage(progress, protocols),
        samples=_samples(progress, protocols),
        quality=1 - progress.moved / progress.claims if progress.claims else None,
        interrupted=interrupted,
    )
    return judge(result)


def _finding(
    plan: Plan,
    subject: Subject,
    key: str,
    progress: Progress,
    patience: Patience,
    fresh: Callable[[], None],
) -> Finding:
    """The counterexample of one clause, minimised unless it is expected, and confirmed."""
    scenario, found, number = progress.best[key]
    small = scenario if plan.expected(key) else shrink(plan, subject, scenario, found, patience)
    for played in (small,) if small == scenario else (small, scenario):
        fresh()
        record = subject.play(played, (found.clause,))
        again = record.breach_of(found.clause.id)
        if again is not None:
            return Finding(
                found.clause,
                played.protocol,
                again.breach,
                played,
                again.round,
                record.calls,
                plan.seed,
                number,
                scenario.size,
                confirmed=True,
            )
    return _unconfirmed(plan, scenario, found, number)


def _unconfirmed(plan: Plan, scenario: Scenario, found: Found, number: int) -> Finding:
    return Finding(
        found.clause,
        scenario.protocol,
        found.breach,
        scenario,
        found.round,
        (),
        plan.seed,
        number,
        scenario.size,
        confirmed=False,
    )


def _row(
    clause: Clause,
    protocol: RebalanceProtocol,
    progress: Progress,
    finding: Finding | None,
    declared: Sequence[RebalanceProtocol],
    protocols: Sequence[RebalanceProtocol],
    promises: Sequence[Promise],
) -> ClauseResult:
    key = f"{clause.id}-{protocol}"
    judged, broken = progress.judged[key], progress.broken[key]
    if finding is not None:
        return ClauseResult(clause, protocol, Status.VIOLATED, judged, broken, finding)
    if protocol not in declared:
        return ClauseResult(
            clause, protocol, Status.UNSUPPORTED, note=f"the target does not support {protocol}"
        )
    if protocol not in protocols:
        return ClauseResult(clause, protocol, Status.UNTESTED, note=f"{protocol} was not asked for")
    if not clause.applies(protocol, promises):
        wanted = ", ".join(sorted(clause.promises - frozenset(promises)))
        return ClauseResult(clause, protocol, Status.UNSUPPORTED, note=f"not promised: {wanted}")
    if not judged:
        declined = progress.skipped.most_common(1)
        note = f"declined: {declined[0][0]}" if declined else "no scenario was played"
        return ClauseResult(clause, protocol, Status.UNTESTED, note=note)
    return ClauseResult(clause, protocol, Status.PASSED, judged)


def _missed(
    plan: Plan, protocols: Sequence[RebalanceProtocol], progress: Progress, stopped: str | None
) -> tuple[str, ...]:
    total = count(plan.profile, protocols)
    if not protocols:
        return ("the target supports none of the protocols that were asked for",)
    if progress.done and progress.skipped.total() == progress.done:
        return (f"the target declined all {progress.done} scenarios",)
    if stopped is not None:
        return (f"stopped after {progress.done} of {total} scenarios: {stopped}",)
    return tuple(
        f"never reached: {witness} ({protocol})"
        for protocol, floors in _floors(plan, protocols).items()
        for witness in floors
        if not progress.witnesses[f"{witness}-{protocol}"]
    )


def _floors(plan: Plan, protocols: Sequence[RebalanceProtocol]) -> dict[RebalanceProtocol, tuple[str, ...]]:
    return {p: FLOORS[p] for p in protocols} if plan.profile.each >= FLOORS_FROM else {}


def _keys(protocols: Sequence[RebalanceProtocol]) -> Iterator[tuple[RebalanceProtocol, str, str]]:
    """(protocol, dimension, ``along_key``) for all that a search can have played, in order."""
    for protocol in protocols:
        for dimension in ("", *BY_NAME, CROWD):
            yield protocol, dimension, along_key(protocol, dimension)


def _coverage(progress: Progress, protocols: Sequence[RebalanceProtocol]) -> tuple[Along, ...]:
    return tuple(
        Along(protocol, dimension, tally.scenarios, _by_name(tally.broken), _by_name(tally.witnesses))
        for protocol, dimension, key in _keys(protocols)
        if (tally := progress.along.get(key)) is not None
    )


def _by_name(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items()))


def _samples(progress: Progress, protocols: Sequence[RebalanceProtocol]) -> tuple[Sample, ...]:
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


def assert_conforms(target_spec: str, scenario: dict[str, object], clause_id: str) -> None:
    """Replay one scenario on a target; raises the clause's ``Violation`` when it is still broken.

    What a test written by ``rebalance replay --as-pytest`` calls. ``scenario`` is as in a trace.
    """
    from rebalance.gate.session import Session
    from rebalance.gate.targets import resolve
    from rebalance.properties.clauses import CLAUSES
    from rebalance.properties.scenarios import from_json

    clause = CLAUSES[clause_id]
    with Session(resolve(target_spec)) as session:
        record = replay(session, from_json(scenario), clause)
    if record.skipped is not None:
        raise RuntimeError(f"{target_spec} declined the scenario: {record.skipped}")
    if found := record.breach_of(clause.id):
        raise violation(clause, found.breach, record.scenario)


def describe(spec: str, hello: Hello) -> TargetInfo:
    """The target of a report: what it said of itself, and how it was named to us."""
    return TargetInfo(
        spec,
        hello.name,
        hello.version or "",
        hello.language or "",
        tuple(str(p) for p in hello.protocols),
        tuple(sorted(str(p) for p in hello.promises)),
        hello.homepage or "",
        hello.issues or "",
    )


def replay(session: TargetSession, scenario: Scenario, clause: Clause) -> Record:
    """Play one saved scenario for one clause, whatever the target promises today."""
    return replace(Subject.of(session), promises=tuple(Promise)).play(scenario, (clause,))
