"""What else can tell a mutant from the model, where no clause on the battery does.

A fault that does not cost one of the budget is seen in any exploration. Then the tests of the single steps in
``tests/model/classic`` are run on the mutant, and last random runs of it are held against the logic, as
``rebalance prove`` holds those of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance_verifier.cli.commands.prove import model_samples
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.machine import Action, Machine, Outcome, Value
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, sampled

from tools.mutation.loading import Differing, loaded
from tools.mutation.mutants import Mutant
from tools.mutation.testing import run_tests

STEPS = 9_000
"""Steps of a mutant that are held against the logic, in all groups together."""

TESTS = Path(__file__).parents[2] / "tests" / "model" / "classic"

IN_ORDER = (
    *("test_protocol_member", "test_protocol_coordinator", "test_protocol_leader"),
    *("test_protocol_views", "test_protocol_upgrades", "test_protocol_atomic"),
    *("test_protocol_connections", "test_protocol_prepare", "test_protocol_running", "test_protocol_rare"),
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


def failing_test(mutant: Mutant | None, among: Collection[str] | None = None) -> str:
    """The first test of single steps that fails on a mutant; "" where none does. None is the model itself.

    Only for a process that ends with it: what it imports is the mutant's. ``among``: of these tests, by id.
    """
    if among is not None and not among:
        return ""
    names = IN_ORDER if among is None else [name for name in IN_ORDER if any(f"{name}." in t for t in among)]
    with loaded(mutant):
        return run_tests([TESTS / f"{name}.py" for name in names], among).failed


def telling_tests() -> Mapping[int, Sequence[str]]:
    """By the number of a mutant the tests in which it changes any value; no other can tell it from the model.

    Raises AssertionError where the model itself fails a test.
    """
    compare = Differing()
    with loaded(compare=compare):
        run = run_tests([TESTS / f"{name}.py" for name in IN_ORDER], compare=compare)
    assert not run.failed, f"the model itself fails {run.failed}"
    found: dict[int, list[str]] = {}
    for test, numbers in run.differ.items():
        for number in numbers:
            found.setdefault(number, []).append(test)
    return found


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


def telling_groups() -> Mapping[str, frozenset[int]]:
    """By group the numbers of the mutants that change any value in its sample."""
    found = {}
    for sample in groups():
        compare = Differing()
        with loaded(compare=compare) as names:
            sampled(sample, build=names["group"].machine)
        found[sample.group] = frozenset(compare.numbers)
    return found


def step_of_no_logic(
    mutant: Mutant | None, telling: Mapping[str, frozenset[int]] | None = None
) -> tuple[str, str]:
    """The group in which a mutant takes a step, or comes to a state, that the logic does not allow, and what
    that is; empty where none was seen. Only for a process that ends with it.

    ``telling``: as of `telling_groups`.
    """
    with loaded(mutant) as names:
        for sample in groups():
            if mutant is not None and telling is not None and mutant.number not in telling[sample.group]:
                continue
            found = sampled(sample, build=names["group"].machine)
            if found.deviation is not None:
                return sample.group, str(found.deviation.failure)
    return "", ""
