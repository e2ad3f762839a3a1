"""What a search has found as a saved run, and such a run played on these releases or on others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.findings import CodeFinding
from rebalance_verifier.live.code.search.run import CodePlaying, asked_clauses
from rebalance_verifier.live.code.search.setups import as_released
from rebalance_verifier.live.code.search.walks import CodeSearchPlan
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationBroken, SimulationDied
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.properties.group.clauses import CLAUSES

MAX_IN_PEACE = 60
"""Steps that are saved of a group that does not come to rest."""


def saved_run(finding: CodeFinding, plan: CodeSearchPlan, origin: Mapping[str, Any]) -> SavedRun | None:
    """Return the run of a finding; None of one that is about no clause."""
    if finding.breach.clause not in CLAUSES:
        return None
    count = len(finding.events)
    steps = finding.steps[: count + MAX_IN_PEACE]
    return SavedRun(
        setup=plan.setup,
        clause=finding.breach.clause,
        events=tuple(one.event for one in steps) or finding.events,
        sentence=finding.breach.sentence,
        origin=origin,
        on=str(plan.releases),
        recorded=steps,
        peace=count if finding.in_peace else None,
    )


def replay_searched(run: SavedRun, releases: CodeReleases, simulation: Simulation) -> Replayed:
    """Play a run that was found on Kafka's code on ``releases`` of it; what cannot be there is left out.

    Raises ScenarioError for releases that have no such groups.
    """
    setup = as_released(run.setup, releases, f"a run of {run.clause}")
    playing = CodePlaying(simulation, setup, releases, keeps=True)
    events = run.events[: run.peace]
    result = Replayed(
        clause=run.clause,
        client=str(releases),
        version=releases.sentence,
        naming=tuple(map(letter, run.setup.slots)),
        steps=len(events),
        observable_clauses=frozenset(one for one in asked_clauses(run.setup) if one in CLAUSES),
    )
    try:
        playing.begin()
        for number, event in enumerate(events, 1):
            found = playing.found(event)
            if found is None:
                result.unforced.append(f"step {number}, {event_text(event)}: cannot happen here")
            else:
                playing.step(found)
                result.done = number
        if run.peace is not None:
            playing.rest()
    except (SimulationBroken, SimulationDied, NotEnabled) as error:
        result.stopped = str(error)
    played = playing.played
    result.broken = [BrokenClause(one.clause, at, one.sentence) for one, at in played.breaches.items()]
    for step in played.steps:
        owned = {one.name: " ".join(one.owns) or "nothing" for one in step.owners}
        shown = {"step": step.number, "event": step.what, "seen": list(step.seen), "owned": owned}
        result.shown.append(shown)
    return result
