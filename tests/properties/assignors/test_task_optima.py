"""The optimum of a flow is that of all answers there are, tried one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.task_generator import SMALL, generate
from rebalance_verifier.gate.scenarios.task_player import play
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.tasks import StickyTasks
from rebalance_verifier.model.tasks import Application, RackStrategy, TaskAssignment, TaskId
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskCall, TaskHistory
from rebalance_verifier.properties.assignors.task_optima import (
    Moves,
    least_moves,
    least_traffic,
    moves_of,
)
from rebalance_verifier.properties.assignors.task_placement import crossing, moves_least, spread_over_tags
from rebalance_verifier.properties.assignors.task_settling import balanced_tasks

DIMENSIONS = ("owned", "threads", "tags", "processes", "client-racks")
TINY = replace(SMALL, members=(2, 3), subtopologies=(1, 1), partitions=(2, 3), rounds=2)
EVERYTHING = frozenset({Promise.BALANCED, Promise.STANDBYS, Promise.TAGS, Promise.LEAST_MOVES})


def seen(seed: int, protocol: RebalanceProtocol) -> list[TaskCall]:
    """Return calls of a small scenario with owners, copies, threads and tags."""
    scenario = generate(Seeded(seed), protocol, DIMENSIONS, TINY)

    def ask(question):
        return TaskAnswer(StickyTasks().assign_tasks(question.application))

    found = play(scenario, ask, (), StickyTasks().promises).calls
    return [one for one in found if isinstance(one, TaskCall) and len(one.clients) <= 3]


def places(application: Application, task: TaskId) -> Iterator[tuple[str, tuple[str, ...]]]:
    process = {client.id: client.process for client in application.clients}
    wanted = min(application.configs.standbys, len(set(process.values())) - 1)
    for active in process:
        for chosen in combinations(process, wanted if task in application.logged else 0):
            if len({process[one] for one in (active, *chosen)}) == len(chosen) + 1:
                yield active, chosen


def answers(call: TaskCall) -> Iterator[TaskCall]:
    """Yield a call for each answer that has a standby where one is asked for."""
    application = call.application
    for chosen in product(*(places(application, task) for task in application.tasks)):
        active: dict[str, list[TaskId]] = {client.id: [] for client in application.clients}
        standby: dict[str, list[TaskId]] = {client.id: [] for client in application.clients}
        for task, (on, copies) in zip(application.tasks, chosen, strict=True):
            active[on].append(task)
            for copy in copies:
                standby[copy].append(task)
        yield TaskCall(
            protocol=call.protocol,
            application=application,
            assignment=TaskAssignment.of(active, standby),
            promises=EVERYTHING,
        )


def with_racks_ignored(call: TaskCall) -> TaskCall:
    configs = replace(call.application.configs, rack_strategy=RackStrategy.NONE)
    return replace(call, application=replace(call.application, configs=configs))


def allowed(call: TaskCall) -> bool:
    return balanced_tasks(TaskHistory((call,), 0, 0, 1)) is None and spread_over_tags(call) is None


@pytest.mark.parametrize("protocol", OF_TASKS)
def test_it_is_the_least_of_all_answers(protocol: RebalanceProtocol):
    """With threads, tags, racks and members of one process; by the clauses, which share no code with it."""
    shown, racks = set(), set()
    for seed in range(9):
        for call in seen(seed, protocol)[:2]:
            right = [one for one in answers(call) if allowed(one)]
            least = min(map(moves_of, right))
            assert least_moves(right[0]) == least, call.application
            shown.add(least)
            some = random.Random(seed).sample(right, min(20, len(right)))
            assert least_traffic(right[0]) == min(len(crossing(one)) for one in right)
            racks.add(least_traffic(right[0]))
            some = [with_racks_ignored(one) for one in some]
            assert all((moves_least(one) is None) == (moves_of(one) == least) for one in some)
    assert any(least.actives for least in shown)
    assert any(least.copies for least in shown)
    assert protocol is not RebalanceProtocol.TASKS or len(racks) > 1


def test_of_an_application_that_is_large_nothing_is_said():
    [call, *_] = seen(1, RebalanceProtocol.TASKS)
    big = replace(call.application.subtopologies[0], racks=((),) * 30_000)
    application = replace(call.application, subtopologies=(big,))
    huge = replace(call, application=application, promises=EVERYTHING)
    assert least_moves(huge) is None


def test_the_clause_says_how_much_moved_and_how_much_had_to():
    call = next(one for one in seen(3, RebalanceProtocol.TASKS) if one.owners)
    worst = max((with_racks_ignored(one) for one in answers(call) if allowed(one)), key=moves_of)
    made, least = moves_of(worst), least_moves(worst)
    assert isinstance(least, Moves)
    assert made > least
    breach = CLAUSES["task/15"].check(worst)
    assert breach.actual.startswith(f"{made.actives} active task")
    assert f"{least.actives} and {least.copies} are needed" in breach.summary
