"""The verdict as the JSON that shields.io and its like draw a badge from (their "endpoint badge")."""

from __future__ import annotations

import json

from rebalance.gate.report.cases import Report
from rebalance.gate.report.words import count
from rebalance.gate.result import Status, Verdict

_COLOURS = {Verdict.CONFORMANT: "brightgreen", Verdict.VIOLATION: "red", Verdict.INCONCLUSIVE: "lightgrey"}


def render(report: Report) -> str:
    """The JSON text: label, message and colour. It names nothing that a target chose."""
    stale = len(report.having(Status.FIXED)) + len(report.stale)
    broken = report.verdict is Verdict.VIOLATION
    said = {
        "schemaVersion": 1,
        "label": "kafka rebalance",
        "message": _message(report) + (f", {stale} stale" if stale else ""),
        "color": "orange" if stale and not broken else _COLOURS[report.verdict],
    }
    if broken:
        said["isError"] = True  # nobody paints it green by an option in the link
    return json.dumps(said, indent=2) + "\n"


def _message(report: Report) -> str:
    if report.verdict is Verdict.VIOLATION:
        return f"{len(report.failing)} of {count(len(report.cases), 'clause')} broken"
    if report.verdict is Verdict.INCONCLUSIVE:
        return "interrupted" if report.interrupted else "inconclusive"
    known = len(report.having(Status.KNOWN))
    kept = f"keeps {count(len(report.having(Status.PASSED)), 'clause')}"
    return kept + (f", {known} known to fail" if known else "")
