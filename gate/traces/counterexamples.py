"""Counterexamples on disk: one JSON file each, readable, editable by hand, replayable from the file alone.

``gate/trace.schema.json`` describes the file. The scenario in it is what is replayed; the calls are
a recording to read, and everything else tells where it came from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pprint
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from rebalance.gate.report import WRITERS
from rebalance.gate.report.data import SUITE, size_out, target_out
from rebalance.gate.report.words import clean, fold, listed
from rebalance.gate.result import ClauseResult, Finding, Result, TargetInfo
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.calls import Call
from rebalance.properties.clauses import CLAUSES, Clause
from rebalance.properties.scenarios import Scenario, from_json, to_json

SCHEMA = 1
"""Raised when older readers would misread the file."""

FAILURES = "failures"
LATEST = "latest"

KEPT = 20
"""Run directories that are left when another is made, of those with nothing but reports in them."""

MOST_RECORDED = 100_000
"""Claims and grants in the recording; beyond, it is left out, since replay makes it again."""

_ID = re.compile(r"[0-9a-f]{1,64}\Z")
_RUN = re.compile(r"\d{8}T\d{6}Z(-\d+)?")
_T = TypeVar("_T")


class TraceError(ValueError):
    """A trace that cannot be read or found; the text names the file and what is wrong."""


class NewerSchema(TraceError):
    """A trace that a newer suite wrote: to be skipped with a notice, never to be deleted."""


@dataclass(frozen=True, slots=True)
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
        finding.clause,
        target,
        finding.scenario,
        suite_version,
        profile,
        finding.seed,
        finding.number,
        breach.summary,
        breach.because,
        breach.expected,
        breach.actual,
        finding.round,
        finding.found_size,
        finding.confirmed,
        tuple(_recording(number, call) for number, call in enumerate(calls, 1)),
    )


def _recording(number: int, call: Call) -> dict[str, Any]:
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


def dump(value: Any, indent: str = "") -> str:
    """JSON with every object and list that fits into a line on one line: small enough to read."""
    flat = json.dumps(value)
    if len(flat) + len(indent) <= 100 or not value or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {dump(item, inner)}" for key, item in value.items()]
    else:
        parts = [dump(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


def save_all(result: Result, root: Path) -> Result:
    """Write the findings of a result as traces below ``root``; the result then says where they are.

    Raises ``OSError`` when they cannot be written.
    """
    if any(row.finding for row in result.clauses) and not root.exists():
        make_root(root)
    return replace(result, clauses=tuple(_saved(row, result, root / FAILURES) for row in result.clauses))


def make_root(root: Path) -> None:
    """Make the directory that everything is saved in, with a ``.gitignore``. Raises ``OSError``."""
    root.mkdir(parents=True, exist_ok=True)
    if not (root / ".gitignore").exists():
        write(root / ".gitignore", "# made by rebalance\n*\n")


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


def write(path: Path, text: str) -> Path:
    """Write a file as a whole or not at all, also beside another process that writes the same one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


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
        CLAUSES[clause],
        _target(target),
        scenario,
        field_of(data, "suite_version", str, ""),
        field_of(data, "profile", str, ""),
        field_of(data, "seed", int, 0),
        field_of(data, "number", int, 0),
        field_of(data, "summary", str, ""),
        tuple(str(line) for line in field_of(data, "because", list, [])),
        field_of(data, "expected", str, ""),
        field_of(data, "actual", str, ""),
        field_of(data, "round", int, 0),
        _size(field_of(data, "found_size", dict, {})),
        field_of(data, "confirmed", bool, False),
        tuple(field_of(data, "calls", list, [])),
    )


def _target(data: Mapping[str, Any]) -> TargetInfo:
    def text(name: str) -> str:
        return field_of(data, name, str, "", "target.")

    def words(name: str) -> tuple[str, ...]:
        return tuple(str(word) for word in field_of(data, name, list, [], "target."))

    return TargetInfo(
        field_of(data, "spec", str, where="target."),
        text("name"),
        text("version"),
        text("language"),
        words("protocols"),
        words("promises"),
        text("homepage"),
        text("issues"),
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


def find(name: str, root: Path) -> list[Path]:
    """The traces that ``name`` stands for, sorted: a file, all below a directory, or the start of an id.

    Ids are looked up in the failures and the latest run below ``root``; a start that several ids share
    stands for all of them. Raises ``TraceError`` when there is none.
    """
    path = Path(name)
    if path.is_file():
        return [path]
    if name and path.is_dir():
        if found := _below(path):
            return found
        raise TraceError(f"{path}: no traces (*.json) below this directory")
    known = {p.stem: p for place in (LATEST, FAILURES) for p in _below(root / place)}
    found = [p for stem, p in sorted(known.items()) if _ID.match(name) and stem.startswith(name)]
    if found:
        return found
    have = f"; known ids: {listed(sorted(known))}" if known else ""
    raise TraceError(f"{name!r} is neither a file, a directory, nor the id of a trace below {root}{have}")


def _below(directory: Path) -> list[Path]:
    """JSON files below a directory, links to directories not followed, our own reports left out."""
    reports = {file for file, _ in WRITERS.values()}
    paths: Iterable[Path] = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return sorted(
        p for p in paths if p.suffix == ".json" and p.name not in reports and not p.name.startswith(".")
    )


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


def by_latest(directory: Path) -> Path:
    """A run directory by the name that stays: through the link ``latest``, where that leads to it."""
    link = directory.parent / LATEST
    with contextlib.suppress(OSError):
        if link.resolve() == directory.resolve():
            return link
    return directory


def run_directory(root: Path, now: datetime) -> Path:
    """A new directory below ``root`` for one run, named after ``now`` in UTC; ``latest`` links to it.

    The first one puts a ``.gitignore`` into ``root``; of earlier ones the newest ``KEPT`` stay. Raises
    ``OSError`` when it cannot be made.
    """
    make_root(root)
    with contextlib.suppress(OSError):
        _forget(root)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        path = root / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            path.mkdir()
            break
        except FileExistsError:  # another run started in the same second
            number += 1
    link = root / f".{LATEST}-{path.name}"
    # A convenience: file systems without links do without it.
    with contextlib.suppress(OSError, NotImplementedError):
        link.symlink_to(path.name, target_is_directory=True)
        link.replace(root / LATEST)
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
    return path


def _forget(root: Path) -> None:
    """Remove old run directories. One with anything else in it than our reports, such as traces, is
    somebody's, and an empty one may be that of a run that goes on."""
    reports = {file for file, _ in WRITERS.values()}
    runs = sorted(
        path
        for path in root.iterdir()
        if _RUN.fullmatch(path.name) and not path.is_symlink() and path.is_dir()
    )
    old = ((path, os.listdir(path)) for path in runs[:-KEPT])
    for path, names in old:
        if names and reports.issuperset(names):
            for name in names:
                (path / name).unlink(missing_ok=True)
            path.rmdir()
