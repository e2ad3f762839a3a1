"""What else can tell a mutant from the model, where no clause on the battery does.

A fault that does not cost one of the budget is seen in any exploration. Then the tests of the single steps in
``tests/model/protocol`` are run on the mutant, and last random runs of it are held against the logic, as
``rebalance prove`` holds those of the model.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance.gate.cli.commands.prove import model_samples
from rebalance.model.machine import Action, Machine, Outcome, Value
from rebalance.specs.refinement.sampling import ModelSample, sampled

from tools.mutation.loading import loaded
from tools.mutation.mutants import Mutant

STEPS = 9_000
"""Steps of a mutant that are held against the logic, in all groups together."""

TESTS = Path(__file__).parents[2] / "tests" / "model" / "protocol"

IN_ORDER = (
    *("test_protocol_member", "test_protocol_coordinator", "test_protocol_leader"),
    *("test_protocol_connections", "test_protocol_prepare", "test_protocol_running"),
)
"""Those of single steps; test_protocol_group.py is about the machine as a whole."""


class CostError(Exception):
    """A fault that does not cost one of the budget, or another step that costs anything."""


def costing(machine: Machine) -> Machine:
    """``machine``, of which a step that costs what it should not raises CostError."""
    return replace(machine, actions=tuple(map(_costing, machine.actions)))


def _costing(action: Action) -> Action:
    if "budget" not in action.writes:
        return action
    read, written, cost = action.reads.index("budget"), action.writes.index("budget"), int(action.fault)

    def run(*values: Value) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            before: Any = values[read]
            after: Any = outcome.values[written]
            if before != after + cost:
                raise CostError(f"{action.name} leaves {after} of {before}")
            yield outcome

    return action._replace(run=run)


class _FirstFailure:
    """A plugin of pytest that keeps the name of the first test that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("::")[2].partition("[")[0]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = "the tests cannot be collected"


def failing_test(mutant: Mutant | None) -> str:
    """The first test of single steps that fails on a mutant; "" where none does. None is the model itself.

    Only for a process that ends with it: what it imports is the mutant's.
    """
    for name, module in list(sys.modules.items()):
        if str(TESTS) in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]  # it knows the model without the mutant
    first = _FirstFailure()
    options = ["-x", "-q", "--assert=plain", "--capture=no", "-m", "not slow and not nightly"]
    without = [option for name in ("cacheprovider", "xdist", "warnings") for option in ("-p", f"no:{name}")]
    files = [str(TESTS / f"{name}.py") for name in IN_ORDER]
    printed = io.StringIO()
    with loaded(mutant), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = pytest.main([*options, *without, *files], plugins=[first])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not first.name:
        raise RuntimeError(f"pytest ends with {code!r}: {printed.getvalue()[-500:]}")
    return first.name


def groups() -> tuple[ModelSample, ...]:
    """The groups whose runs are held against the logic: those of ``rebalance prove``, and static members that
    see a failover."""
    size = ScenarioSize(members=2, partitions=2, budget=3, naming="given")
    more = ModelSample(
        group="static-failover, 2 x 2",
        setup=SCENARIOS["static-failover"].setup(size),
        seed=0,
        steps=STEPS // 9,
    )
    return (*model_samples(STEPS - more.steps, 0), more)


def step_of_no_logic(mutant: Mutant | None) -> tuple[str, str]:
    """The group in which a mutant takes a step, or comes to a state, that the logic does not allow, and what
    that is; empty where none was seen. Only for a process that ends with it."""
    with loaded(mutant) as names:
        for sample in groups():
            found = sampled(sample, build=names["group"].machine)
            if found.deviation is not None:
                return sample.group, str(found.deviation.failure)
    return "", ""
