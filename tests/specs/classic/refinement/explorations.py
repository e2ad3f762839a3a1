"""Everything that the model reaches, checked against the logic."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.refinement.refinement import Refinement, RefinementFailure, Report
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.transitions import NumberedMachine, Numbers


def failures(
    refinement: Refinement, *, judged: bool = True, limit: int | None = None
) -> Iterator[RefinementFailure]:
    """Every failure in the reachable states of the setup and on the steps from there, breadth-first.

    States that equal each other but for the names of members and partitions are one. ``judged``: invariants
    and properties too. ``limit`` is about how many states there may be at most.
    """
    yield from filter(None, [refinement.begin()])
    states = reachable(refinement.numbered, limit)
    refinement.report.states = len(states)
    refinement.fit(range(len(refinement.numbered.values)))  # or the universe would grow again and again
    for state in states:
        if judged and (failure := refinement.judge(state, "a reachable state")):
            yield failure
        for transition in refinement.numbered.steps(state):
            if failure := refinement.check(transition):
                yield failure


def check_exploration(
    setup: Setup, spec: Specification | None = None, *, judged: bool = True, limit: int | None = None
) -> Report:
    """Check everything that is reachable, to the first failure."""
    refinement = Refinement(setup, spec)
    refinement.report.failure = next(failures(refinement, judged=judged, limit=limit), None)
    return refinement.report


def reachable(numbered: NumberedMachine, limit: int | None = None) -> list[Numbers]:
    """Every state that steps lead to, one for all that equal it but for names.

    Breadth-first; ends with the first state that leads beyond ``limit`` states.
    """
    states = list(dict.fromkeys(numbered.initial))
    seen = set(states)
    for state in states:
        if limit is not None and len(states) > limit:
            break
        for step in numbered.steps(state):
            after = numbered.canonical(step.after)
            if after not in seen:
                seen.add(after)
                states.append(after)
    return states
