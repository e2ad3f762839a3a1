"""The model as shipped against the logic as shipped: each of its steps is one there.

Which path of the logic a step stands for is written for the protocol as specified; as shipped another one
may do the same. So here any action counts that leads where the model goes, from anywhere on the path.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.necessity.shipped import released, shipped
from rebalance_verifier.specs.classic.refinement.abstraction import LOG
from rebalance_verifier.specs.classic.refinement.refinement import Refinement

from tests.specs.classic.refinement.explorations import failures

UNTESTED = {
    "sync_load_error_raw": "the error that ends the client has another name in the picture than in the logic",
}
"""Left out, in the model and in the logic."""


class AnyAction(Refinement):
    """Where the path that a step stands for does not lead there, a part of it and another action may."""

    def _wrong(self, state: Any, path: Any, after: Any, calls: Any) -> Any:
        wrong = super()._wrong(state, path, after, calls)
        if wrong is None:
            return None
        passed = [state]
        for name, parameters in path:
            try:
                state = self._stepper.apply(state, name, parameters)
            except ValueError:  # not possible, or it may lead to several states
                break
            passed.append(state if self.setup.keeps_log else self._forgetful(state))
        leads = any(self._leads(one, action, after) for one in passed for action in self.spec.actions)
        return None if leads else wrong

    def _leads(self, state: Any, action: Any, after: Any) -> bool:
        domains = self.map.universe.domains
        places = [[int(element) for element in domains[one.sort().name()]] for one in action.parameters]
        forgets = not self.setup.keeps_log and not LOG.isdisjoint(action.updates)
        return any(self._does(state, action.name, given, after, forgets) for given in product(*places))

    def _does(self, state: Any, name: str, given: Any, after: Any, forgets: bool) -> bool:
        if not forgets:
            why: str | None = self._stepper.allowed(state, name, given, after)
            return why is None
        try:
            return bool(self._forgetful(self._stepper.apply(state, name, given)) == after)
        except ValueError:
            return False


def group(releases: tuple[str, str], where: tuple[str, int, int], faults: Collection[str] = ()) -> Setup:
    """The scenario as these ship it, but for what is UNTESTED; with these ``faults``, or all of its own."""
    (members, coordinator), (scenario, size, budget) = releases, where
    whole = ScenarioSize(members=size, partitions=1, budget=budget, profiles=(members,), broker=coordinator)
    setup = SCENARIOS[scenario].setup(whole)
    consumers = tuple(
        replace(
            one,
            stages=tuple(
                replace(stage, decisions=stage.decisions - frozenset(UNTESTED)) for stage in one.stages
            ),
        )
        for one in setup.consumers
    )
    return replace(
        setup,
        consumers=consumers,
        coordinator=setup.coordinator - frozenset(UNTESTED),
        faults=tuple(faults) or setup.faults,
    )


def wrong(
    releases: tuple[str, str], where: tuple[str, int, int], limit: int, faults: Collection[str] = ()
) -> list[str]:
    """What the model does that the logic does not allow."""
    switches = frozenset(released(*releases).switches) - frozenset(UNTESTED)
    refinement = AnyAction(group(releases, where, faults), shipped(switches).specification)
    return [str(failure) for failure in failures(refinement, judged=False, limit=limit)]


NEWEST = ("java-current", "broker-current")
OLDER = [
    ("java-2.4", "broker-2.4"),
    ("java-2.6", "broker-2.6"),
    ("java-2.8.0", "broker-2.8.0"),
    ("java-2.8.1", "broker-3.0"),
    ("java-3.3.1", "broker-3.2"),
]
GROUPS = [
    ("dynamic", 1, 2), ("dynamic", 2, 1), ("failover", 1, 2), ("static", 1, 2), ("static", 2, 1),
    ("static-failover", 1, 2), ("static-failover", 2, 1), ("mixed-failover", 2, 1),
]  # fmt: skip
NARROW = [
    (("dynamic", 1, 3), ("enforce", "session timeout", "slow commit")),
    (("static", 1, 3), ("enforce", "session timeout", "slow commit")),
    (("connections", 1, 3), ("enforce", "left behind")),
    (("connections", 1, 3), ("enforce", "left behind", "slow commit")),
    (("static-connections", 1, 3), ("enforce", "left behind", "unsubscribe")),
]
"""A few faults, and deep enough to see what comes of them."""


@pytest.mark.nightly
@pytest.mark.parametrize(("where", "faults"), NARROW, ids=str)
def test_the_newest_does_what_the_logic_allows_in_depth(where, faults):
    assert wrong(NEWEST, where, 6000, faults) == []


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("where", GROUPS, ids=str)
def test_the_newest_does_what_the_logic_allows(where):
    assert wrong(NEWEST, where, 600) == []


@pytest.mark.nightly
@pytest.mark.parametrize("where", GROUPS, ids=str)
@pytest.mark.parametrize("releases", [NEWEST, *OLDER], ids="-".join)
def test_each_does_what_the_logic_allows(releases, where):
    assert wrong(releases, where, 6000) == []


@pytest.mark.nightly
def test_a_decision_that_the_logic_lacks_is_noticed():
    setup = group(("java-2.8.0", "broker-2.8.0"), ("dynamic", 1, 2))
    spec = shipped({"prepare_not_repeated_after_reset"}).specification
    found = {failure.name for failure in failures(AnyAction(setup, spec), judged=False, limit=600)}
    assert found
