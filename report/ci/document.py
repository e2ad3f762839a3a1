"""Cases as JSON, for a command that has no document of its own; ``traces/schemas/cases.schema.json``."""

from __future__ import annotations

from typing import Any

from rebalance_verifier.base.saved import SUITE
from rebalance_verifier.report.ci.cases import CiCase, CiReport, Evidence
from rebalance_verifier.report.diagram import diagram

SCHEMA = 1
"""Raised when a field changes its meaning or goes away; fields may be added at any time."""


def to_json(report: CiReport) -> dict[str, Any]:
    """Return the report as plain JSON values, without times: equal reports give equal text."""
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": report.suite_version},
        "command": report.command,
        "subject": report.subject,
        "headline": report.headline,
        "verdict": report.verdict.value,
        "exit": int(report.exit),
        "interrupted": report.interrupted,
        "cases": [_case(case) for case in report.cases],
        "missed": list(report.missed),
    }


def _case(case: CiCase) -> dict[str, Any]:
    rule = case.rule
    return {
        "id": case.id,
        "clause": rule.id,
        "variant": case.variant,
        "level": rule.level.value,
        "sentence": rule.sentence,
        "source": rule.source,
        "link": rule.link,
        "status": case.status.value,
        "gates": case.gates,
        "note": case.note,
        "evidence": [_evidence(one) for one in case.evidence],
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {
        "message": one.message,
        "id": one.id,
        "path": one.path,
        "because": list(one.because),
        "facts": dict((*one.facts, *one.notes)),
        "command": one.command,
        "picture": diagram.to_json(one.draw()) if one.draw else None,
    }
