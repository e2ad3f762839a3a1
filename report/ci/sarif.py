"""Cases as SARIF 2.1.0: a rule per clause, a result per counterexample, which its thread flows tell.

What GitHub and VS Code make of it decides the shape (docs/reference/formats.md): every location has a file,
since GitHub refuses a whole upload for one that has none, and the first thread flow tells the whole group,
since the viewer of VS Code shows no other. The others tell one member each; ``executionOrder`` joins them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rebalance_verifier.base.text import clean, cut, listed
from rebalance_verifier.base.verdict import Exit, Level
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation, shown
from rebalance_verifier.report.ci.cases import CiCase, CiReport, CiRule, Evidence
from rebalance_verifier.report.diagram.diagram import (
    DiagramColumn,
    MessageArrow,
    OwnershipDiagram,
    OwnershipState,
)

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

MAX_RESULTS = 5_000
"""Of a run; GitHub shows no more."""
MAX_STEPS = 1_000
"""In all thread flows of a result; GitHub shows no more, and refuses the file at ten times that."""
MAX_TEXT = 1_000

NOWHERE = ".rebalance/failures"
"""Stands for the trace of what has none: it could not be saved, or was not made small."""

_LEVELS = {Level.SAFETY: "error", Level.LIVENESS: "warning", Level.QUALITY: "note"}


def render(report: CiReport) -> str:
    """``to_json`` as text, ASCII only, with a line end."""
    return json.dumps(to_json(report), indent=2) + "\n"


def to_json(report: CiReport) -> dict[str, Any]:
    """Return the log as plain JSON values: one run, no time stamps; equal reports give equal text."""
    rules = list({case.rule.id: case.rule for case in report.cases}.values())
    at = {rule.id: number for number, rule in enumerate(rules)}
    results = [
        _result(report, case, one, at[case.rule.id]) for case in report.cases for one in _evidence(case)
    ]
    run = {
        "tool": {
            "driver": {
                "name": "rebalance",
                "fullName": "rebalance-verifier",
                "version": report.suite_version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "automationDetails": {"id": f"rebalance/{report.command}/{clean(report.subject)}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, len(results))],
        "results": results[:MAX_RESULTS],
        "properties": {name: clean(value) for name, value in report.properties if value},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: CiRule) -> dict[str, Any]:
    source = f" ({rule.source})" if rule.source else ""
    descriptor: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.replace("-", "/").split("/")),
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence}{source}"},
        "help": {"text": f"{rule.level}: {rule.sentence}{source}"},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"tags": ["kafka", "rebalance", rule.level.value]},
    }
    return {**descriptor, "helpUri": rule.link} if rule.link else descriptor


def _invocation(report: CiReport, results: int) -> dict[str, Any]:
    """That the command ran, how it ended, and what is wrong with the run and belongs to no rule."""
    fixed = report.having(Status.FIXED)
    notices = [("error", f"{case.id} holds: remove its line from the known list") for case in fixed]
    notices += [("error", f"{line} matches no clause: remove line") for line in report.stale]
    notices += [("warning", "interrupted before the end")] * report.interrupted
    notices += [("warning", f"not reached: {reason}") for reason in report.missed]
    if results > MAX_RESULTS:
        notices.append(("warning", f"{results - MAX_RESULTS:,} results left out"))
    return {
        "executionSuccessful": report.exit in (Exit.CONFORMANT, Exit.VIOLATION, Exit.INCONCLUSIVE),
        "exitCode": int(report.exit),
        "exitCodeDescription": clean(report.headline),
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": cut(clean(text), MAX_TEXT)}} for level, text in notices
        ],
    }


def _evidence(case: CiCase) -> tuple[Evidence, ...]:
    """Return what a case has; of one that is broken all the same, what is known of it."""
    if case.evidence or case.status is not Status.VIOLATED:
        return case.evidence
    return (Evidence(message=case.note or case.rule.sentence),)


def _result(report: CiReport, case: CiCase, one: Evidence, index: int) -> dict[str, Any]:
    trace = shown(one.path) if one.path else SourceLocation(NOWHERE)
    source_location = one.source_location or report.source_location or trace
    logical = {"fullyQualifiedName": clean(report.subject), "kind": "module"}
    result: dict[str, Any] = {
        "ruleId": case.rule.id,
        "ruleIndex": index,
        "level": _level(case, one),
        "message": {"text": _message(case, one)},
        "locations": [{"physicalLocation": _physical(source_location), "logicalLocations": [logical]}],
        "partialFingerprints": _fingerprints(report, case, one, source_location),
        "properties": {
            name: value
            for name, value in (
                (report.variants, case.variant),
                ("status", case.status.value),
                ("replay", one.command),
                ("trace", clean(one.path)),
            )
            if value
        },
    }
    if one.path and source_location != trace:
        result["relatedLocations"] = [
            {"id": 1, "message": {"text": "the counterexample"}, "physicalLocation": _physical(trace)}
        ]
    if case.status in (Status.KNOWN, Status.FLAKY):
        why = f"{case.status}: {case.note}" if case.note else f"on the list of {case.status} failures"
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": cut(clean(why), MAX_TEXT)}
        ]
    flows = list(_flows(one, trace))
    return {**result, "codeFlows": [{"threadFlows": flows}]} if flows else result


def _level(case: CiCase, one: Evidence) -> str:
    """``error`` is what fails the run, or would if it were not on a list."""
    if not case.gates or case.status is Status.PASSED:
        return "note"
    return "error" if one.certain else "warning"


def _message(case: CiCase, one: Evidence) -> str:
    """Return the summary, a full stop, then what leads to it: viewers show the first sentence in their
    lists."""
    lines = [f"{clean(one.message)}.", *(clean(reason) for reason in one.because[:10])]
    lines += [f"{name}: {clean(text)}" for name, text in one.facts]
    lines += [clean(f"{name}: {text}") for name, text in one.notes]
    lines += [one.command] if one.command else []
    return "\n".join(cut(line, MAX_TEXT) for line in lines)


def _fingerprints(
    report: CiReport, case: CiCase, one: Evidence, source_location: SourceLocation
) -> dict[str, str]:
    """``trace/v1`` is this very counterexample, ``clause/v1`` the rule, however it is broken.

    GitHub follows an alert by ``primaryLocationLineHash`` alone, which its upload computes from the line
    of a source file. Where there is no line, the clause stands for it: a counterexample that changes
    with the code is no new alert.
    """
    clause = clean(
        f"{report.command}:{report.subject}:{case.id}"
        + (f":{one.id}" if one.source_location else "")
        + (f"@{one.cause}" if one.cause and one is not case.evidence[0] else "")
    )
    fingerprints = {"clause/v1": clause}
    if one.id:
        fingerprints["trace/v1"] = one.id
    if not source_location.line:
        fingerprints["primaryLocationLineHash"] = f"{clause}:1"
    return fingerprints


def _physical(source_location: SourceLocation) -> dict[str, Any]:
    path = Path(source_location.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix().encode(errors="replace"))
    region = {"region": {"startLine": source_location.line}} if source_location.line else {}
    return {"artifactLocation": {"uri": uri}, **region}


# -- the counterexample ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _FlowStep:
    """A step of a thread flow; ``order`` counts the steps of all."""

    order: int
    text: str
    members: tuple[str, ...] = ()
    deep: bool = False
    marked: bool = False


def _flows(one: Evidence, trace: SourceLocation) -> Iterator[dict[str, Any]]:
    """Yield the group first, then each member; the first has what room there is, a member only all of its
    steps."""
    if one.draw is None:
        return
    diagram = one.draw()
    steps = list(islice(_steps(diagram), MAX_STEPS))
    room = MAX_STEPS - len(steps)
    if steps:
        whole = "; ".join(["the whole group, step by step", *diagram.left_out])
        yield _flow("group", clean(whole), steps, trace)
    for member in diagram.members:
        its_steps = [step for step in steps if member in step.members]
        room -= len(its_steps)
        if room < 0:
            return
        if its_steps:
            yield _flow(
                f"member {clean(member)}", f"what {clean(member)} sends, hears and owns", its_steps, trace
            )


def _flow(name: str, message: str, steps: list[_FlowStep], trace: SourceLocation) -> dict[str, Any]:
    return {
        "id": name,
        "message": {"text": message},
        "locations": [
            {
                "location": {
                    "message": {"text": cut(step.text, MAX_TEXT)},
                    "physicalLocation": _physical(trace),
                },
                "nestingLevel": 2 if step.deep else 1,
                "executionOrder": step.order,
                "importance": "essential" if step.marked else "important",
            }
            for step in steps
        ],
    }


def _steps(diagram: OwnershipDiagram) -> Iterator[_FlowStep]:
    """Yield each moment; below it what is sent and shows then, what begins to be whose, and what is owned
    twice."""
    order = 0
    for at, column in enumerate(diagram.columns):
        below = [*_seen(diagram, at), *_held(diagram, at), *_twice(diagram, at)]
        if not column.what and not below:
            continue
        order += 1
        yield _FlowStep(order=order, text=clean(_moment(diagram, column)), marked=column.marked)
        for text, members, marked in below:
            order += 1
            yield _FlowStep(order=order, text=clean(text), members=members, deep=True, marked=marked)


def _moment(diagram: OwnershipDiagram, column: DiagramColumn) -> str:
    number = f"{diagram.era} {column.generation} " if diagram.era == "round" else f"{diagram.unit} "
    return number + column.label + (f": {column.what}" if column.what else "")


_FlowText = tuple[str, tuple[str, ...], bool]
"""A text, the members that it is about, and whether the finding rests on it."""


def _seen(diagram: OwnershipDiagram, at: int) -> Iterator[_FlowText]:
    yield from ((_arrow(one), (one.member,), False) for one in diagram.arrows if one.column == at)
    for mark in diagram.marks:
        if mark.column == at:
            yield f"{mark.member or 'coordinator'}: {mark.text}", (mark.member,), mark.fault
    for away in diagram.away:
        if away.start == at:
            yield f"{away.member}: {away.text}", (away.member,), False


def _held(diagram: OwnershipDiagram, at: int) -> Iterator[_FlowText]:
    begun: dict[tuple[str, OwnershipState], list[str]] = {}
    for bar in diagram.bars:
        if bar.start == at and bar.look not in (OwnershipState.WITHOUT, OwnershipState.UNKNOWN):
            row = diagram.rows[bar.row]
            begun.setdefault((row.member, bar.look), []).append(row.partition)
    for (member, look), partitions in begun.items():
        who = f"{member}: " if member else ""
        yield f"{who}{listed(partitions)} {look}", (member,) if member else (), False


def _twice(diagram: OwnershipDiagram, at: int) -> Iterator[_FlowText]:
    for one in diagram.overlaps:
        if one.start != at:
            continue
        owners = " and by ".join(one.members) if len(one.members) > 1 else f"{one.members[0]} twice"
        removed = "" if one.bug else f"; {listed(one.zombies)} was removed from the group and has not noticed"
        yield f"{one.partition} is owned by {owners} at one time{removed}", one.members, one.bug


def _arrow(arrow: MessageArrow) -> str:
    ends = ("coordinator", arrow.member) if arrow.answer else (arrow.member, "coordinator")
    carries = f": {arrow.text}" if arrow.text else ""
    return f"{ends[0]} -> {ends[1]} {arrow.api}{carries}" + (", lost" if arrow.lost else "")
