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

from rebalance.gate.report.cases import Case, Evidence, Report, Rule
from rebalance.gate.report.picture import Arrow, Column, Look, Picture
from rebalance.gate.report.place import Place, shown
from rebalance.gate.report.words import clean, cut, listed
from rebalance.gate.result import Exit, Status
from rebalance.properties.clauses import Level

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

MOST_RESULTS = 5_000
"""Of a run; GitHub shows no more."""
MOST_STEPS = 1_000
"""In all thread flows of a result; GitHub shows no more, and refuses the file at ten times that."""
MOST_TEXT = 1_000

NOWHERE = ".rebalance/failures"
"""Stands for the trace of what has none: it could not be saved, or was not made small."""

_LEVELS = {Level.SAFETY: "error", Level.LIVENESS: "warning", Level.QUALITY: "note"}


def render(report: Report) -> str:
    """``to_json`` as text, ASCII only, with a line end."""
    return json.dumps(to_json(report), indent=2) + "\n"


def to_json(report: Report) -> dict[str, Any]:
    """The log as plain JSON values: one run, no time stamps; equal reports give equal text."""
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
        "results": results[:MOST_RESULTS],
        "properties": {name: clean(value) for name, value in report.properties if value},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    source = f" ({rule.source})" if rule.source else ""
    said: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.replace("-", "/").split("/")),
        "shortDescription": {"text": rule.sentence},
        "fullDescription": {"text": f"{rule.sentence}{source}"},
        "help": {"text": f"{rule.level}: {rule.sentence}{source}"},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
        "properties": {"tags": ["kafka", "rebalance", rule.level.value]},
    }
    return {**said, "helpUri": rule.link} if rule.link else said


def _invocation(report: Report, results: int) -> dict[str, Any]:
    """That the command ran, how it ended, and what is wrong with the run and belongs to no rule."""
    fixed = report.having(Status.FIXED)
    told = [("error", f"{case.id} holds: remove its line from the known list") for case in fixed]
    told += [("error", f"{line} matches no clause: remove line") for line in report.stale]
    told += [("warning", "interrupted before the end")] * report.interrupted
    told += [("warning", f"not reached: {reason}") for reason in report.missed]
    if results > MOST_RESULTS:
        told.append(("warning", f"{results - MOST_RESULTS:,} results left out"))
    return {
        "executionSuccessful": report.exit in (Exit.CONFORMANT, Exit.VIOLATION, Exit.INCONCLUSIVE),
        "exitCode": int(report.exit),
        "exitCodeDescription": clean(report.headline),
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": cut(clean(text), MOST_TEXT)}} for level, text in told
        ],
    }


def _evidence(case: Case) -> tuple[Evidence, ...]:
    """What a case has; of one that is broken all the same, what is known of it."""
    if case.evidence or case.status is not Status.VIOLATED:
        return case.evidence
    return (Evidence(case.note or case.rule.sentence),)


def _result(report: Report, case: Case, one: Evidence, index: int) -> dict[str, Any]:
    trace = shown(one.path) if one.path else Place(NOWHERE)
    place = one.place or report.place or trace
    logical = {"fullyQualifiedName": clean(report.subject), "kind": "module"}
    said: dict[str, Any] = {
        "ruleId": case.rule.id,
        "ruleIndex": index,
        "level": _level(case, one),
        "message": {"text": _message(case, one)},
        "locations": [{"physicalLocation": _physical(place), "logicalLocations": [logical]}],
        "partialFingerprints": _fingerprints(report, case, one, place),
        "properties": {
            name: value
            for name, value in (
                ("protocol", case.variant),
                ("status", case.status.value),
                ("replay", one.command),
                ("trace", clean(one.path)),
            )
            if value
        },
    }
    if one.path and place != trace:
        said["relatedLocations"] = [
            {"id": 1, "message": {"text": "the counterexample"}, "physicalLocation": _physical(trace)}
        ]
    if case.status in (Status.KNOWN, Status.FLAKY):
        why = f"{case.status}: {case.note}" if case.note else f"on the list of {case.status} failures"
        said["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": cut(clean(why), MOST_TEXT)}
        ]
    flows = list(_flows(one, trace))
    return {**said, "codeFlows": [{"threadFlows": flows}]} if flows else said


def _level(case: Case, one: Evidence) -> str:
    """``error`` is what fails the run, or would if it were not on a list."""
    if not case.gates:
        return "note"
    return "error" if one.certain else "warning"


def _message(case: Case, one: Evidence) -> str:
    """The summary, a full stop, then what leads to it: viewers show the first sentence in their lists."""
    lines = [f"{clean(one.message)}.", *(clean(reason) for reason in one.because[:10])]
    lines += [f"{name}: {clean(text)}" for name, text in one.facts]
    lines += [clean(f"{name}: {text}") for name, text in one.notes]
    lines += [one.command] if one.command else []
    return "\n".join(cut(line, MOST_TEXT) for line in lines)


def _fingerprints(report: Report, case: Case, one: Evidence, place: Place) -> dict[str, str]:
    """``trace/v1`` is this very counterexample, ``clause/v1`` the rule, however it is broken.

    GitHub follows an alert by ``primaryLocationLineHash`` alone, which its upload computes from the line
    of a source file. Where there is no line, the clause stands for it: a counterexample that changes
    with the code is no new alert.
    """
    clause = clean(f"{report.command}:{report.subject}:{case.id}" + (f":{one.id}" if one.place else ""))
    said = {"clause/v1": clause}
    if one.id:
        said["trace/v1"] = one.id
    if not place.line:
        said["primaryLocationLineHash"] = f"{clause}:1"
    return said


def _physical(place: Place) -> dict[str, Any]:
    path = Path(place.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix().encode(errors="replace"))
    region = {"region": {"startLine": place.line}} if place.line else {}
    return {"artifactLocation": {"uri": uri}, **region}


# -- the counterexample ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a thread flow; ``order`` counts the steps of all."""

    order: int
    text: str
    members: tuple[str, ...] = ()
    deep: bool = False
    marked: bool = False


def _flows(one: Evidence, trace: Place) -> Iterator[dict[str, Any]]:
    """The group first, then each member; the first has what room there is, a member only all of its steps."""
    if one.draw is None:
        return
    picture = one.draw()
    steps = list(islice(_steps(picture), MOST_STEPS))
    room = MOST_STEPS - len(steps)
    if steps:
        whole = "; ".join(["the whole group, step by step", *picture.left_out])
        yield _flow("group", clean(whole), steps, trace)
    for member in picture.members:
        mine = [step for step in steps if member in step.members]
        room -= len(mine)
        if room < 0:
            return
        if mine:
            yield _flow(f"member {clean(member)}", f"what {clean(member)} sends, hears and owns", mine, trace)


def _flow(name: str, message: str, steps: list[_Step], trace: Place) -> dict[str, Any]:
    return {
        "id": name,
        "message": {"text": message},
        "locations": [
            {
                "location": {
                    "message": {"text": cut(step.text, MOST_TEXT)},
                    "physicalLocation": _physical(trace),
                },
                "nestingLevel": 2 if step.deep else 1,
                "executionOrder": step.order,
                "importance": "essential" if step.marked else "important",
            }
            for step in steps
        ],
    }


def _steps(picture: Picture) -> Iterator[_Step]:
    """Each moment; below it what is sent and shows then, what begins to be whose, and what is owned twice."""
    order = 0
    for at, column in enumerate(picture.columns):
        below = [*_seen(picture, at), *_held(picture, at), *_twice(picture, at)]
        if not column.what and not below:
            continue
        order += 1
        yield _Step(order, clean(_moment(picture, column)), marked=column.marked)
        for text, members, marked in below:
            order += 1
            yield _Step(order, clean(text), members, deep=True, marked=marked)


def _moment(picture: Picture, column: Column) -> str:
    number = f"{picture.era} {column.generation} " if picture.era == "round" else f"{picture.unit} "
    return number + column.label + (f": {column.what}" if column.what else "")


_Told = tuple[str, tuple[str, ...], bool]
"""A text, the members that it is about, and whether the finding rests on it."""


def _seen(picture: Picture, at: int) -> Iterator[_Told]:
    yield from ((_arrow(one), (one.member,), False) for one in picture.arrows if one.column == at)
    for mark in picture.marks:
        if mark.column == at:
            yield f"{mark.member or 'coordinator'}: {mark.text}", (mark.member,), mark.fault
    for away in picture.away:
        if away.start == at:
            yield f"{away.member}: {away.text}", (away.member,), False


def _held(picture: Picture, at: int) -> Iterator[_Told]:
    begun: dict[tuple[str, Look], list[str]] = {}
    for bar in picture.bars:
        if bar.start == at and bar.look not in (Look.WITHOUT, Look.UNKNOWN):
            row = picture.rows[bar.row]
            begun.setdefault((row.member, bar.look), []).append(row.partition)
    for (member, look), partitions in begun.items():
        who = f"{member}: " if member else ""
        yield f"{who}{listed(partitions)} {look}", (member,) if member else (), False


def _twice(picture: Picture, at: int) -> Iterator[_Told]:
    for one in picture.overlaps:
        if one.start != at:
            continue
        owners = " and by ".join(one.members) if len(one.members) > 1 else f"{one.members[0]} twice"
        removed = "" if one.bug else f"; {listed(one.zombies)} was removed from the group and has not noticed"
        yield f"{one.partition} is owned by {owners} at one time{removed}", one.members, one.bug


def _arrow(arrow: Arrow) -> str:
    ends = ("coordinator", arrow.member) if arrow.answer else (arrow.member, "coordinator")
    carries = f": {arrow.text}" if arrow.text else ""
    return f"{ends[0]} -> {ends[1]} {arrow.api}{carries}" + (", lost" if arrow.lost else "")
