"""Counterexamples on disk: one JSON file each, readable, editable by hand, replayable from the file alone.

``gate/traces/schemas/trace.schema.json`` describes the file. The scenario in it is what is replayed; the
calls are a recording to read, and everything else tells where it came from.
"""

from __future__ import annotations

import hashlib
import json
import pprint
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from rebalance.gate.check.result import ClauseResult, Finding, Result, TargetInfo
from rebalance.gate.cli.console.text import clean, fold
from rebalance.gate.traces.files import FAILURES, SUITE, NewerSchema, TraceError, dump, make_root, write
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.assignors.calls import AssignorCall
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.clauses import CLAUSES
from rebalance.properties.assignors.scenarios import Scenario, from_json, to_json

SCHEMA = 1
"""Raised when older readers would misread the file."""

MOST_RECORDED = 100_000
"""Claims and grants in the recording; beyond, it is left out, since replay makes it again."""

_T = TypeVar("_T")
_SIZE = ("members", "partitions", "claims", "events")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One counterexample. ``calls`` is the recording, as JSON; ``path`` where it was read from."""

    clause: Clause
    target: TargetInfo
    scenario: Scenario
    suite_version: str = ""
    profile: str = ""
    seed: int = 0
    number: int = 0
    summary: str = ""
    because: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""
    round: int = 0
    found_size: tuple[int, int, int, int] = (0, 0, 0, 0)
    confirmed: bool = False
    calls: tuple[Mapping[str, Any], ...] = ()
    path: Path | None = None

    @property
    def id(self) -> str:
        """The id, which follows from clause, target and scenario: an edited trace is another one."""
        return trace_id(self.clause.id, self.target.spec, self.scenario)

    @property
    def target_spec(self) -> str:
        """What to replay it on, as ``--target`` takes it."""
        return self.target.spec

    @property
    def protocol(self) -> RebalanceProtocol:
        """The protocol under which it is replayed."""
        return self.scenario.protocol


def trace_id(clause: str, target: str, scenario: Scenario) -> str:
    """Eight hexadecimal digits that depend on the clause id, the target's spec and the scenario only.

    The order of members and topics counts, because it is part of what the target is asked.
    """
    played = to_json(replace(scenario, dimensions=()))
    text = json.dumps([clause, target, played], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def of(finding: Finding, target: TargetInfo, profile: str, suite_version: str) -> Trace:
    """The trace of a finding."""
    breach = finding.breach
    entries = sum(
        len(partitions)
        for call in finding.calls
        for partitions in (*call.assignment.values(), *(c.partitions for c in call.claims.values()))
    )
    calls = finding.calls if entries <= MOST_RECORDED else ()
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
        found_size=finding.found_size,
        confirmed=finding.confirmed,
        calls=tuple(_recording(number, call) for number, call in enumerate(calls, 1)),
    )


def _recording(number: int, call: AssignorCall) -> dict[str, Any]:
    members = {
        member: {
            "topics": list(subscription.topics),
            "claims": [str(p) for p in call.claims[member].partitions],
            "generation": call.claims[member].generation,
        }
        for member, subscription in call.group.items()
    }
    assignment = {member: [str(p) for p in partitions] for member, partitions in call.assignment.items()}
    return {"round": number, "members": members, "assignment": assignment}


def to_text(trace: Trace) -> str:
    """The file. What a reader wants to know comes first, the recording last."""
    document = {
        "schema": SCHEMA,
        "suite": SUITE,
        "suite_version": trace.suite_version,
        "clause": trace.clause.id,
        "level": trace.clause.level.value,
        "rule": trace.clause.rule,
        "link": trace.clause.link,
        "target": target_out(trace.target),
        "protocol": trace.protocol.value,
        "summary": trace.summary,
        "because": list(trace.because),
        "expected": trace.expected,
        "actual": trace.actual,
        "round": trace.round,
        "profile": trace.profile,
        "seed": trace.seed,
        "number": trace.number,
        "found_size": size_out(trace.found_size),
        "confirmed": trace.confirmed,
        "scenario": to_json(trace.scenario),
        "calls": list(trace.calls),
    }
    return dump(document) + "\n"


def target_out(target: TargetInfo) -> dict[str, Any]:
    """The target as JSON, in reports and traces alike."""
    return {
        "spec": target.spec,
        "name": target.name,
        "version": target.version,
        "language": target.language,
        "protocols": list(target.protocols),
        "promises": list(target.promises),
        "homepage": target.homepage,
        "issues": target.issues,
    }


def size_out(size: tuple[int, int, int, int]) -> dict[str, int]:
    """``Scenario.size`` with names."""
    return dict(zip(_SIZE, size, strict=True))


def save_all(result: Result, root: Path) -> Result:
    """Write the findings of a result as traces below ``root``; the result then says where they are.

    Raises ``OSError`` when they cannot be written.
    """
    if any(row.finding for row in result.clauses) and not root.exists():
        make_root(root)
    return replace(result, clauses=tuple(_saved(row, result, root / FAILURES) for row in result.clauses))


def _saved(row: ClauseResult, result: Result, directory: Path) -> ClauseResult:
    if row.finding is None:
        return row
    trace = of(row.finding, result.target, result.profile, result.suite_version)
    path = save(trace, directory)
    return replace(row, finding=replace(row.finding, trace_id=trace.id, path=str(path)))


def save(trace: Trace, directory: Path) -> Path:
    """Write the trace as ``<id>.json``, replacing an equal one; never leaves half a file."""
    directory.mkdir(parents=True, exist_ok=True)
    return write(directory / f"{trace.id}.json", to_text(trace))


def load(path: Path) -> Trace:
    """The trace in a file.

    Raises ``NewerSchema`` for one of a newer suite and ``TraceError`` for everything else that is
    wrong with it.
    """
    return replace(read_as(_parse, path), path=path)


def read_as(parse: Callable[[Any], _T], path: Path) -> _T:
    """What ``parse`` makes of the JSON in a file. Raises ``TraceError`` that names the file, also for what
    ``parse`` raises."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise TraceError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"{path}: not JSON: {error}") from error
    try:
        return parse(data)
    except TraceError as error:
        raise type(error)(f"{path}: {error}") from error


def is_kind(kind: str, path: Path) -> bool:
    """Whether a file says that it is of this kind; false for whatever cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.get("kind") == kind


def _parse(data: Any) -> Trace:
    if not isinstance(data, dict) or "schema" not in data:
        raise TraceError("not a trace: it has no field 'schema'")
    schema = field_of(data, "schema", int)
    if schema > SCHEMA:
        raise NewerSchema(f"has schema {schema}, this suite reads up to {SCHEMA}: use a newer suite")
    if schema < 1:
        raise TraceError(f"schema {schema} does not exist, the first is 1")
    clause = field_of(data, "clause", str)
    if clause not in CLAUSES:
        raise TraceError(f"clause {clause!r} is unknown; known: {', '.join(CLAUSES)}")
    target = field_of(data, "target", dict)
    try:
        scenario = from_json(field_of(data, "scenario", dict))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TraceError(str(error)) from error
    if (protocol := field_of(data, "protocol", str, scenario.protocol.value)) != scenario.protocol:
        raise TraceError(f"protocol is {protocol!r} and the scenario's is {scenario.protocol.value!r}")
    return Trace(
        clause=CLAUSES[clause],
        target=_target(target),
        scenario=scenario,
        suite_version=field_of(data, "suite_version", str, ""),
        profile=field_of(data, "profile", str, ""),
        seed=field_of(data, "seed", int, 0),
        number=field_of(data, "number", int, 0),
        summary=field_of(data, "summary", str, ""),
        because=tuple(str(line) for line in field_of(data, "because", list, [])),
        expected=field_of(data, "expected", str, ""),
        actual=field_of(data, "actual", str, ""),
        round=field_of(data, "round", int, 0),
        found_size=_size(field_of(data, "found_size", dict, {})),
        confirmed=field_of(data, "confirmed", bool, False),
        calls=tuple(field_of(data, "calls", list, [])),
    )


def _target(data: Mapping[str, Any]) -> TargetInfo:
    def text(name: str) -> str:
        return field_of(data, name, str, "", "target.")

    def texts(name: str) -> tuple[str, ...]:
        return tuple(str(word) for word in field_of(data, name, list, [], "target."))

    return TargetInfo(
        spec=field_of(data, "spec", str, where="target."),
        name=text("name"),
        version=text("version"),
        language=text("language"),
        protocols=texts("protocols"),
        promises=texts("promises"),
        homepage=text("homepage"),
        issues=text("issues"),
    )


_KINDS = {str: "a string", int: "a whole number", bool: "true or false", dict: "an object", list: "a list"}


def field_of(data: Mapping[str, Any], name: str, kind: type[_T], default: Any = None, where: str = "") -> _T:
    """One field of an object, of the right kind. Raises ``TraceError`` that names it."""
    value = data.get(name, default)
    if value is None:
        raise TraceError(f"field '{where}{name}' is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TraceError(f"field '{where}{name}' is {json.dumps(value)[:60]}, expected {_KINDS[kind]}")
    return value


def _size(data: Mapping[str, Any]) -> tuple[int, int, int, int]:
    members, partitions, claims, events = (
        field_of(data, n, int, 0, "found_size.") for n in size_out((0,) * 4)
    )
    return members, partitions, claims, events


def as_pytest(trace: Trace) -> str:
    """A test module that needs nothing but the target and this package; it fails while the bug is there."""
    scenario = json.loads(json.dumps(to_json(trace.scenario)))
    story = [f"Found by {SUITE} {clean(trace.suite_version)}."]
    story += [f"{trace.clause.id}: {trace.clause.sentence}", trace.clause.link]
    story += [line for text in (trace.summary, *trace.because) for line in fold(clean(text), 100)]
    comment = "\n".join(f"# {line}".rstrip() for line in story)
    return f'''"""The counterexample in trace {trace.id}, as a test."""

from rebalance.gate.check import assert_conforms

{comment}

TARGET = {trace.target.spec!r}
CLAUSE = {trace.clause.id!r}
SCENARIO = {pprint.pformat(scenario, width=100, sort_dicts=False)}


def test_{trace.id}() -> None:
    assert_conforms(TARGET, SCENARIO, CLAUSE)
'''
