"""A bug made again: the shortest run of the group that shows it."""

from __future__ import annotations

from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import LASSO, Shown
from rebalance_verifier.explore.groups.exploration import ExplorationPlan, run_exploration
from rebalance_verifier.explore.groups.runs import SavedRun

STATES = 5_000_000
"""Most states of one group that shows a bug; the largest has a tenth of that."""


def reproduce(shown: Shown) -> SavedRun | None:
    """Return a shortest run of the group that breaks its clause; None when there is none.

    Raises KeyboardInterrupt when it was interrupted.
    """
    setup = shown.setup()
    origin = {
        "scenario": shown.scenario,
        "members": shown.members,
        "partitions": shown.partitions,
        "switches": [shown.switch, *shown.also],
        "budget": setup.budget,
        "faults": list(setup.faults),
    }
    plan = ExplorationPlan(
        setup=setup,
        origin=origin,
        limits=Limits(states=STATES, go_on=True),
        asks_liveness=shown.clause == LASSO,
    )
    exploration = run_exploration(plan)
    if exploration.interrupted:
        raise KeyboardInterrupt
    runs = (violation.runs[0] for violation in exploration.violations if violation.clause == shown.clause)
    return next(runs, None)
