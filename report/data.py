"""The report as JSON, for programs; ``traces/schemas/report.schema.json`` describes it."""

from __future__ import annotations

import json
from typing import Any

from rebalance_verifier.base.saved import SUITE
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.gate.search.causes.attribution import realism
from rebalance_verifier.gate.search.counterexamples import FoundSize
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result
from rebalance_verifier.model import codec
from rebalance_verifier.report.facts import counts, gating

SCHEMA = 2
"""Raised when a field changes its meaning or goes away; fields may be added at any time."""


def render(result: Result) -> str:
    """``to_json`` as text, ASCII only, with a line end."""
    return json.dumps(to_json(result), indent=2) + "\n"


def to_json(result: Result) -> dict[str, Any]:
    """Return the result as plain JSON values; equal results give equal text.

    How long it took and where it is written are not here: a search with the same seed gives the same bytes.
    The scenario and its calls are in the trace of a finding.
    """
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": result.suite_version},
        "target": codec.to_json(result.target),
        "profile": result.profile,
        "level": result.level,
        "seed": result.seed,
        "without": list(result.without),
        "topics": list(result.topics),
        "beside": list(result.beside),
        "verdict": result.verdict.value,
        "exit": int(result.exit),
        "interrupted": result.interrupted,
        "scenarios": result.scenarios,
        "questions": result.questions,
        "quality": None if result.quality is None else round(result.quality, 6),
        "counts": {
            level.value: {status.value: number for status, number in sorted(row.items())}
            for level, row in counts(result).items()
        },
        "clauses": [_clause(result, c) for c in result.clauses],
        "reached": dict(sorted(result.witnesses.items())),
        "missed": list(result.doubts),
        "stale_known": list(result.stale_known),
    }


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
        "hint": clause.hint,
        "finding": clause.finding and _finding(clause.finding),
        "causes": [_finding(finding) for finding in clause.findings if finding.cause],
        "unattributed": clause.unattributed if clause.finding and clause.finding.cause else 0,
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
        "size": FoundSize(*finding.scenario.size)._asdict(),
        "found_size": FoundSize(*finding.found_size)._asdict(),
        "confirmed": finding.confirmed,
        "cause": finding.cause and finding.cause.id,
        "needs": [] if finding.cause is None else list(finding.cause.features),
        "scenarios": finding.broken,
        "realism": realism(finding.scenario).name.lower(),
        "unusual": unusual_preconditions(finding.scenario),
        "known": finding.known,
    }
