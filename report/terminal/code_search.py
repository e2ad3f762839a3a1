"""A search on Kafka's own code for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.live.code.search.findings import CodeFinding
from rebalance_verifier.live.code.search.walks import CodeSearchPlan, CodeSearchResult
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import CONSUMER, MIGRATION, letter
from rebalance_verifier.report.frame import labelled


def headline(result: CodeSearchResult, subject: str) -> str:
    """Return the verdict on ``subject``, in one line."""
    titles = {Verdict.CONFORMANT: "HOLDS", Verdict.VIOLATION: "VIOLATED"}
    return f"{titles.get(result.verdict, 'INCONCLUSIVE')}  {subject} on {result.plan.releases.sentence}"


def render(result: CodeSearchResult, subject: str, paths: Mapping[tuple[str, str], str]) -> str:
    """Return the result for people; ``paths``: where the run of a cause is saved."""
    lines = [headline(result, subject)]
    for name, sentence in facts(result):
        lines += labelled(name, sentence, width=10)
    for one in result.findings:
        lines += ["", f"  {one.breach.clause}: {clean(one.breach.sentence)}"]
        lines += labelled("found", how_found(one), width=10)
        if path := paths.get(one.cause):
            lines += labelled("saved", f"{path}: `rebalance show {path}`", width=10)
    return "\n".join(lines)


CLIENTS = {
    CONSUMER: "of the model, as their releases are known",
    MIGRATION: "Kafka's own where they speak the classic protocol, else of the model",
}
"""By group protocol, which clients are not all Kafka's own code."""


def members(plan: CodeSearchPlan) -> list[dict[str, Any]]:
    """Return each member with its release, and the client that speaks each group protocol of its stages."""
    spoken = [dict.fromkeys(stage.group_protocol for stage in one.stages) for one in plan.setup.consumers]
    return [
        {
            "member": letter(slot),
            "release": plan.releases.of(slot),
            "clients": {one: "model" if one == CONSUMER else "code" for one in protocols},
        }
        for slot, protocols in enumerate(spoken)
    ]


def how_found(one: CodeFinding) -> str:
    """Return how often, and how long the shortest run is."""
    rest = ", then nothing goes wrong any more" if one.in_peace else ""
    return f"in {count(one.times, 'run')}; the shortest is of {count(len(one.events), 'step')}{rest}"


def facts(result: CodeSearchResult) -> list[tuple[str, str]]:
    """Return what was searched, by name."""
    seen, plan = result.searched, result.plan
    how = f"walk, seed {plan.seed}" if plan.depth is None else f"run, all of {plan.depth} steps"
    unit, _, more = how.partition(",")
    ends = ", ".join(f"{how} {times:,}" for how, times in sorted(seen.endings.items()))
    return [
        ("searched", f"{count(seen.steps, 'step')} of {count(seen.runs, unit)},{more}"),
        *([("clients", clients)] if (clients := CLIENTS.get(plan.setup.protocol)) else []),
        ("at rest", f"the group {ends}" if ends else "not asked"),
        ("asked", ", ".join(plan.asked_clauses))
        if plan.assignor
        else ("not asked", ", ".join(result.not_asked)),
        *([("stopped", result.stopped)] if result.stopped else []),
    ]


def data(result: CodeSearchResult, paths: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Return the result as JSON values; ``paths``: cause of a finding -> where its run is saved."""
    plan, seen = result.plan, result.searched
    return {
        "verdict": result.verdict.value,
        "on": str(plan.releases),
        "members": members(plan),
        "walks": plan.walks if plan.depth is None else None,
        "depth": plan.steps if plan.depth is None else plan.depth,
        "seed": plan.seed,
        "stopped": result.stopped,
        "runs": seen.runs,
        "steps": seen.steps,
        "taken": dict(sorted(seen.taken.items())),
        "endings": dict(sorted(seen.endings.items())),
        "asked": sorted(plan.asked_clauses),
        "not_asked": result.not_asked,
        "findings": [
            {
                "clause": one.breach.clause,
                "sentence": one.breach.sentence,
                "cause": one.breach.cause,
                "runs": one.times,
                "events": list(map(event_text, one.events)),
                "path": paths.get(one.cause),
            }
            for one in result.findings
        ],
    }
