"""What is wrong with a promise is said with the promises of that kind of assignor."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.hosted import TargetError, describe
from rebalance_verifier.gate.targets.hosts.java import spelled
from rebalance_verifier.model.assignor import PARTITION_PROMISES, TASK_PROMISES, Promise


class Partitions:
    promises = ("fair",)

    def assign(self, cluster: Any, group: Any) -> Any: ...


class Tasks:
    promises = ("fair",)

    def assign_tasks(self, application: Any) -> Any: ...


@pytest.mark.parametrize(("target", "right"), [(Partitions, PARTITION_PROMISES), (Tasks, TASK_PROMISES)])
def test_only_those_of_its_kind(target: type, right: tuple[Promise, ...]):
    with pytest.raises(TargetError) as wrong:
        describe(target())
    assert str(wrong.value).endswith(f"promises of {', '.join(right)}")


def test_of_a_class_whose_kind_is_not_known_those_of_both():
    with pytest.raises(ToolError) as wrong:
        spelled("java:Own", promises=["fair"])
    assert "partitions: balanced, balanced-equal" in str(wrong.value)
    assert "tasks: balanced, sticky, standbys" in str(wrong.value)
    assert {*PARTITION_PROMISES} | {*TASK_PROMISES} == set(Promise)
