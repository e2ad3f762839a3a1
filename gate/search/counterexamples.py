"""Counterexamples on disk: one JSON file each, readable, editable by hand, replayable from the file alone.

``traces/schemas/trace.schema.json`` describes the file. The scenario in it is what is replayed; the
calls are a recording to read, and everything else tells where it came from.
"""

from __future__ import annotations

import hashlib
import json
import pprint
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.processes.failure import HARMFUL
from rebalance_verifier.base.saved import FAILURES, SUITE, TraceError, dump, make_root
from rebalance_verifier.base.text import clean, fold
from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.search.result import MAYBE_UNSAID, ClauseResult, Finding, Result, TargetInfo
from rebalance_verifier.gate.targets import trust
from rebalance_verifier.model import codec
from rebalance_verifier.model.tasks import ClientTasks, TaskId, Tasks
from rebalance_verifier.model.values import NO_GENERATION, Partitions, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario
from rebalance_verifier.properties.assignors.played import from_json as scenario_in
from rebalance_verifier.properties.assignors.played import to_json as scenario_out
from rebalance_verifier.properties.assignors.task_calls import TaskCall

SCHEMA = 1
"""Raised when older readers would misread the file."""

MAX_RECORDED = 100_000
"""Claims and grants in the recording; beyond, it is left out, since replay makes it again."""


class FoundSize(NamedTuple):
    """``Scenario.size`` with names."""

    members: int = 0
    partitions: int = 0
    claims: int = 0
    events: int = 0


class RecordedMember(NamedTuple):
    """Input that one member brings to a call."""

    topics: tuple[str, ...] = ()
    claims: Partitions = ()
    generation: int = NO_GENERATION


class RecordedCall(NamedTuple):
    """One call of the target, as it is recorded."""

    round: int
    members: Mapping[str, RecordedMember]
    assignment: Mapping[str, Partitions]


class RecordedClient(NamedTuple):
    """Record of a process, or a member of one, when a call is made: what runs, what is on its disk."""

    process: str = ""
    threads: int = 1
    active: Tasks = ()
    standby: Tasks = ()
    lags: Mapping[TaskId, int] = {}


class RecordedTasks(NamedTuple):
    """One call of a task assignor, as it is recorded."""

    round: int
    clients: Mapping[str, RecordedClient]
    assignment: tuple[ClientTasks, ...] = ()
    followup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One counterexample. ``calls`` is the recording, as JSON; ``path`` where it was read from."""

    suite_version: str = ""
    clause: Clause
    target: TargetInfo
    summary: str = ""
    because: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""
    round: int = 0
    profile: str = ""
    seed: int = 0
    number: int = 0
    found_size: FoundSize = field(default_factory=FoundSize)
    confirmed: bool = False
    scenario: AnyScenario
    calls: tuple[Mapping[str, Any], ...] = ()
    path: Path | None = None

    @property
    def id(self) -> str:
        """Return the id, which follows from clause, target and scenario: an edited trace is another one."""
        return trace_id(self.clause.id, self.target.spec, self.scenario)

    def finding(self, found: Found, played: AnyScenario, calls: tuple[AnyCall, ...]) -> Finding:
        """Return what a play of it has ``found``, as far as the file says where it comes from."""
        return replace(
            Finding.of(found, played, calls),
            seed=self.seed,
            number=self.number,
            found_size=self.found_size,
            confirmed=True,
            trace_id=self.id,
            path=str(self.path or ""),
        )

    @property
    def is_harmful(self) -> bool:
        """Check whether its question ends or blocks the process that is asked.

        The user who found it sees it. It is not published: with it anybody could do so to others.
        """
        return self.actual in HARMFUL

    @property
    def protocol(self) -> RebalanceProtocol:
        """Return the protocol under which it is replayed."""
        return self.scenario.protocol


def trace_id(clause: str, target: str, scenario: AnyScenario) -> str:
    """Eight hexadecimal digits that depend on the clause id, the target's spec and the scenario only.

    The order of members and topics counts, because it is part of what the target is asked.
    """
    played = scenario_out(replace(scenario, dimensions=()))
    text = json.dumps([clause, target, played], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def of(finding: Finding, target: TargetInfo, profile: str, suite_version: str) -> Trace:
    """Return the trace of a finding."""
    breach = finding.breach
    calls = finding.calls if sum(map(entries, finding.calls)) <= MAX_RECORDED else ()
    return Trace(
        clause=finding.clause,
        target=target,
        scenario=finding.scenario,
        suite_version=suite_version,
        profile=profile,
        seed=finding.seed,
        number=finding.number,
        summary=breach.summary,
        because=breach.because,
        expected=breach.expected,
        actual=breach.actual,
        round=finding.round,
        found_size=FoundSize(*finding.found_size),
        confirmed=finding.confirmed,
        calls=tuple(_recording(number, call) for number, call in enumerate(calls, 1)),
    )


def entries(call: AnyCall) -> int:
    """Return how much a call has to record."""
    if isinstance(call, TaskCall):
        here, there = call.application.clients, call.assignment.clients
        found = sum(len(one.active) + len(one.standby) for one in here)
        return found + sum(len(one.active) + len(one.standby) for one in there)
    lists = (*call.assignment.values(), *(claim.partitions for claim in call.claims.values()))
    return sum(map(len, lists))


def _recording(number: int, call: AnyCall) -> dict[str, Any]:
    if isinstance(call, TaskCall):
        clients = {
            one.id: RecordedClient(one.process, one.threads, one.active, one.standby, one.lags)
            for one in call.application.clients
        }
        assigned = call.assignment
        tasks: dict[str, Any] = codec.to_json(
            RecordedTasks(number, clients, assigned.clients, assigned.followup)
        )
        return tasks
    members = {
        member: RecordedMember(
            tuple(subscription.topics), call.claims[member].partitions, call.claims[member].generation
        )
        for member, subscription in call.group.items()
    }
    recorded: dict[str, Any] = codec.to_json(RecordedCall(number, members, call.assignment))
    return recorded


def to_text(trace: Trace) -> str:
    """Return the file. What a reader wants to know comes first, the recording last."""
    clause = trace.clause
    plain = replace(trace, clause=clause.id, scenario=scenario_out(trace.scenario), path=None)  # type: ignore[arg-type]
    head = {
        "schema": SCHEMA,
        "suite": SUITE,
        "suite_version": trace.suite_version,
        "clause": clause.id,
        "level": clause.level.value,
        "rule": clause.rule,
        "link": clause.link,
        "target": codec.to_json(trace.target, MAYBE_UNSAID),
        "protocol": trace.protocol.value,
    }
    return dump(head | codec.to_json(plain, left_out=("path", *MAYBE_UNSAID))) + "\n"


def save_all(result: Result, root: Path) -> Result:
    """Write the findings of a result as traces below ``root``; the result then says where they are.

    Raises ``OSError`` when they cannot be written.
    """
    if any(row.findings for row in result.clauses) and not root.exists():
        make_root(root)
    return replace(result, clauses=tuple(_saved(row, result, root / FAILURES) for row in result.clauses))


def identified(result: Result) -> Result:
    """Return a result whose findings have the ids of their traces, none of which is written."""

    def named(row: ClauseResult) -> ClauseResult:
        found = [
            replace(one, trace_id=trace_id(one.clause.id, result.target.spec, one.scenario))
            for one in row.findings
        ]
        return replace(row, finding=found[0], others=tuple(found[1:])) if found else row

    return replace(result, clauses=tuple(map(named, result.clauses)))


def _saved(row: ClauseResult, result: Result, directory: Path) -> ClauseResult:
    saved = []
    for finding in row.findings:
        trace = of(finding, result.target, result.profile, result.suite_version)
        saved.append(replace(finding, trace_id=trace.id, path=str(save(trace, directory))))
    return replace(row, finding=saved[0], others=tuple(saved[1:])) if saved else row


def save(trace: Trace, directory: Path) -> Path:
    """Write the trace as ``<id>.json``, replacing an equal one, and sign what it ran; never leave half a
    file."""
    if trace.path is None:
        trust.sign(trace.target.spec)
    return files.save(directory, f"{trace.id}.json", to_text(trace))


def _parse(data: dict[str, Any]) -> Trace:
    read = codec.from_json(Trace, data, readers={Clause: _clause, AnyScenario: scenario_in})
    protocol = data.get("protocol", read.protocol.value)
    if protocol != read.protocol:
        raise TraceError(f"protocol is {protocol!r} and the scenario's is {read.protocol.value!r}")
    return read


FILE = files.FileKind("a trace", SCHEMA, _parse)
load = FILE.load


def _clause(name: Any) -> Clause:
    if name not in CLAUSES:
        raise ValueError(f"{name!r} is unknown; known: {', '.join(CLAUSES)}")
    return CLAUSES[name]


def as_pytest(trace: Trace) -> str:
    """Return a test module that needs nothing but the target and this package; it fails while the bug is
    there."""
    scenario = json.loads(json.dumps(scenario_out(trace.scenario)))
    story = [f"Found by {SUITE} {clean(trace.suite_version)}."]
    clause = trace.clause.under(trace.protocol)
    story += [f"{clause.id}: {clause.sentence}", clause.link]
    story += [line for text in (trace.summary, *trace.because) for line in fold(clean(text), 100)]
    comment = "\n".join(f"# {line}".rstrip() for line in story)
    return f'''"""The counterexample in trace {trace.id}, as a test."""

from rebalance_verifier import assert_conforms

{comment}

TARGET = {trace.target.spec!r}
CLAUSE = {trace.clause.id!r}
SCENARIO = {pprint.pformat(scenario, width=100, sort_dicts=False)}


def test_{trace.id}() -> None:
    assert_conforms(TARGET, SCENARIO, CLAUSE)
'''
