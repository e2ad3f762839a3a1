"""The report as JSON, for programs; ``gate/report.schema.json`` describes it."""

from __future__ import annotations

import json
from typing import Any

from rebalance.gate.report.facts import counts, gating
from rebalance.gate.result import ClauseResult, Finding, Result, TargetInfo

SCHEMA = 1
"""Raised when a field changes its meaning or goes away; fields may be added at any time."""

SUITE = "rebalance-verifier"
_SIZE = ("members", "partitions", "claims", "events")


def render(result: Result) -> str:
    """``to_json`` as text, ASCII only, with a line end."""
    return json.dumps(to_json(result), indent=2) + "\n"


def to_json(result: Result) -> dict[str, Any]:
    """The result as plain JSON values; equal results give equal text.

    The scenario and its calls are in the trace of a finding, not here.
    """
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": result.suite_version},
        "target": target_out(result.target),
        "profile": result.profile,
        "level": result.level,
        "seed": result.seed,
        "verdict": result.verdict.value,
        "exit": int(result.exit),
        "interrupted": result.interrupted,
        "scenarios": result.scenarios,
        "questions": result.asked,
        "seconds": round(result.seconds, 3),
        "quality": None if result.quality is None else round(result.quality, 6),
        "counts": {
            level.value: {status.value: number for status, number in sorted(row.items())}
            for level, row in counts(result).items()
        },
        "clauses": [_clause(result, c) for c in result.clauses],
        "reached": dict(sorted(result.witnesses.items())),
        "missed": list(result.missed),
        "stale_known": list(result.stale_known),
        "run_dir": result.run_dir,
    }


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


def _clause(result: Result, clause: ClauseResult) -> dict[str, Any]:
    return {
        "id": clause.id,
        "clause": clause.clause.id,
        "protocol": clause.protocol.value,
        "level": clause.clause.level.value,
        "gates": gating(result, clause),
        "sentence": clause.clause.sentence,
        "rule": clause.clause.rule,
        "link": clause.clause.link,
        "status": clause.status.value,
        "scenarios": clause.scenarios,
        "broken": clause.broken,
        "note": clause.note,
        "finding": clause.finding and _finding(clause.finding),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    breach = finding.breach
    return {
        "trace": finding.trace_id,
        "path": finding.path,
        "summary": breach.summary,
        "because": list(breach.because),
        "expected": breach.expected,
        "actual": breach.actual,
        "partitions": [str(p) for p in breach.partitions],
        "gap": breach.gap,
        "seed": finding.seed,
        "number": finding.number,
        "round": finding.round,
        "size": size_out(finding.scenario.size),
        "found_size": size_out(finding.found_size),
        "confirmed": finding.confirmed,
    }
