"""What GitHub Actions shows beside a run: annotations (workflow commands) and the step summary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rebalance_verifier.base.text import clean, cut
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation
from rebalance_verifier.report.ci import markdown
from rebalance_verifier.report.ci.cases import CiCase, CiReport, Evidence

MAX_ANNOTATIONS = 10
"""Annotations of one kind that GitHub shows for a step; it drops the others without a word."""


def commands(report: CiReport) -> list[str]:
    """Workflow commands to print, at most ten per kind; the last then counts those left out."""
    errors = [text for case in report.failing for text in _case("error", report, case)]
    errors += [
        _command("error", f"{case.id} holds", "on the known list and not broken: remove its line")
        for case in report.having(Status.FIXED)
    ]
    errors += [
        _command("error", "stale known failure", f"{clean(line)} matches no clause: remove line")
        for line in report.stale
    ]
    warnings = ["interrupted before the end"] * report.interrupted
    warnings += [f"not reached: {clean(reason)}" for reason in report.missed]
    notices = [text for case in report.informing for text in _case("notice", report, case)]
    return [
        *_most("error", errors),
        *_most("warning", [_command("warning", "inconclusive", cut(text, 1000)) for text in warnings]),
        *_most("notice", notices),
    ]


def summarise(report: CiReport, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Append the Markdown report to ``$GITHUB_STEP_SUMMARY``, if set; returns the file written.

    The file is kept below GitHub's 1 MiB, counting what the step has written before. Raises
    ``OSError`` when it cannot be written.
    """
    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    path = Path(name)
    room = markdown.MAX_BYTES - (path.stat().st_size if path.exists() else 0)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(markdown.render(report, max(room, 0)))
    return path


def _case(kind: str, report: CiReport, case: CiCase) -> list[str]:
    """Return an annotation for each location where a rule is broken; one where it has none of its own."""
    located = [one for one in case.evidence if one.source_location] or list(case.evidence[:1])
    if not located:
        return [_annotation(kind, report, case, None)]
    return [_annotation(kind, report, case, one) for one in located]


def _annotation(kind: str, report: CiReport, case: CiCase, one: Evidence | None) -> str:
    rule = case.rule
    lines = [one.message, *one.because[:6]] if one else [case.note] if case.note else []
    lines.append(f"rule: {rule.sentence} ({rule.source})" if rule.source else f"rule: {rule.sentence}")
    if one and one.command:
        lines.append(one.command)
    text = "\n".join(cut(clean(line), 500) for line in lines)
    where = one.source_location if one and one.source_location else report.source_location
    return _command(kind, f"{rule.id} ({case.where})", text, where)


def _most(kind: str, found: list[str]) -> list[str]:
    if len(found) <= MAX_ANNOTATIONS:
        return found
    left_out = len(found) - MAX_ANNOTATIONS + 1
    return [*found[: MAX_ANNOTATIONS - 1], _command(kind, "more", f"and {left_out} more: see the report")]


def _command(kind: str, title: str, message: str, source_location: SourceLocation | None = None) -> str:
    """Return one workflow command.

    >>> _command("error", "a,b: c", "50%\\nof it", SourceLocation("a.py", 3))
    '::error file=a.py,line=3,title=a%2Cb%3A c::50%25%0Aof it'
    """
    properties = {"title": title}
    if source_location:
        line = {"line": str(source_location.line)} if source_location.line else {}
        properties = {"file": clean(source_location.file), **line, **properties}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_escape(message)}"


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
