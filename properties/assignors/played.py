"""What is judged, of either kind: scenarios and calls of partitions, and those of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_verifier.model.values import OF_TASKS
from rebalance_verifier.properties.assignors import scenarios, task_scenarios
from rebalance_verifier.properties.assignors.calls import AssignorCall
from rebalance_verifier.properties.assignors.scenarios import Scenario
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario

AnyScenario = Scenario | TaskScenario
AnyCall = AssignorCall | TaskCall


def of_partitions(scenario: AnyScenario) -> Scenario:
    """Return a scenario that is known to be one of partitions."""
    assert isinstance(scenario, Scenario)
    return scenario


def calls_of(calls: Sequence[AnyCall]) -> tuple[AssignorCall, ...]:
    """Return calls that are known to be of partitions."""
    return tuple([call for call in calls if isinstance(call, AssignorCall)])


def to_json(scenario: AnyScenario) -> dict[str, Any]:
    """Return a scenario as readable, hand-editable JSON."""
    if isinstance(scenario, TaskScenario):
        return task_scenarios.to_json(scenario)
    return scenarios.to_json(scenario)


def from_json(data: Mapping[str, Any]) -> AnyScenario:
    """Return the scenario that ``to_json`` wrote: of tasks where its protocol is one of these. Raises
    ``ValueError`` naming the field that is wrong."""
    if isinstance(data, Mapping) and data.get("protocol") in [*OF_TASKS]:
        return task_scenarios.from_json(data)
    return scenarios.from_json(data)
