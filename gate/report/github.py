"""What GitHub Actions shows beside a run: annotations (workflow commands) and the step summary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rebalance.gate.report import markdown
from rebalance.gate.report.facts import broken, having, informational
from rebalance.gate.report.words import clean, cut
from rebalance.gate.result import ClauseResult, Result, Status

MOST = 10
"""Annotations of one kind that GitHub shows for a step; it drops the others without a word."""


def commands(result: Result) -> list[str]:
    """Workflow commands to print, at most ten per kind; the last then counts those left out."""
    errors = [_clause("error", c) for c in broken(result)]
    errors += [
        _command("error", f"{c.id} holds", "on the known list and not broken: remove its line")
        for c in having(result, Status.FIXED)
    ]
    errors += [
        _command("error", "stale known failure", f"{clean(line)} matches no clause: remove line")
        for line in result.stale_known
    ]
    warnings = ["interrupted before the end"] * result.interrupted
    warnings += [f"not reached: {clean(reason)}" for reason in result.missed]
    notices = [_clause("notice", c) for c in informational(result)]
    return [
        *_most("error", errors),
        *_most("warning", [_command("warning", "inconclusive", cut(text, 1000)) for text in warnings]),
        *_most("notice", notices),
    ]


def summarise(result: Result, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Append the Markdown report to ``$GITHUB_STEP_SUMMARY``, if set; returns the file written.

    The file is kept below GitHub's 1 MiB, counting what the step has written before. Raises
    ``OSError`` when it cannot be written.
    """
    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    path = Path(name)
    room = markdown.MOST - (path.stat().st_size if path.exists() else 0)
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(markdown.render(result, max(room, 0)))
    return path


def _clause(kind: str, clause: ClauseResult) -> str:
    finding = clause.finding
    lines = [finding.breach.summary, *finding.breach.because[:6]] if finding else []
    lines.append(f"rule: {clause.clause.sentence} ({clause.clause.rule})")
    if finding and finding.trace_id:
        lines.append(f"rebalance replay {finding.trace_id}")
    text = "\n".join(cut(clean(line), 500) for line in lines)
    return _command(kind, f"{clause.clause.id} ({clause.clause.level}, {clause.protocol})", text)


def _most(kind: str, found: list[str]) -> list[str]:
    if len(found) <= MOST:
        return found
    left_out = len(found) - MOST + 1
    return [*found[: MOST - 1], _command(kind, "more", f"and {left_out} more: see the report")]


def _command(kind: str, title: str, message: str) -> str:
    """One workflow command.

    >>> _command("error", "a,b: c", "50%\\nof it")
    '::error title=a%2Cb%3A c::50%25%0Aof it'
    """
    return f"::{kind} title={_escape(title).replace(':', '%3A').replace(',', '%2C')}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
