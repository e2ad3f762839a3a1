"""The least that any task assignor would have to move, by network flow.

Standbys of a task depend on where it runs, and on nothing else of an answer. So a number says what it costs
to run a task on a client, and the best answer is a flow of least cost from tasks to clients, whose loads the
balance bounds. It shares nothing with the assignors that it measures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, comb

import networkx as nx
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import TaskClient, TaskId
from rebalance_verifier.properties.assignors.task_calls import TaskCall

MAX_SETS, MAX_EDGES = 2_000, 4_000
"""Of more sets of standbys of a task, or of more pairs of a task and a client, no optimum is looked for."""


@dataclass(frozen=True, slots=True, order=True)
class Moves:
    """Tasks that stop where they run and run elsewhere; and copies of stores, of active tasks and standbys,
    that are made on clients which have nothing of them."""

    actives: int
    copies: int


def moves_of(call: TaskCall) -> Moves:
    """Return how much an answer moves."""
    actives = sum(
        client not in call.actives.get(task, ())
        for task, client in call.owners.items()
        if task in call.existing
    )
    made = sum(
        not _has(call.clients[client], task)
        for placed in (call.actives, call.standbys)
        for task, on in placed.items()
        for client in on
        if client in call.clients and call.is_logged(task)
    )
    return Moves(actives, made)


def least_moves(call: TaskCall) -> Moves | None:
    """Return the least that has to move for what is promised: balance before running tasks before copies.
    None where the application is too large for it."""
    weight = 1 + sum(1 + _wanted(call, task) for task in call.application.tasks)  # outweighs all copies

    def price(task: TaskId, client: TaskClient) -> int:
        moved = call.owners.get(task, client.id) != client.id
        return weight * moved + _least_made(call, task, client)

    least = _cheapest(call, price)
    return None if least is None else Moves(*divmod(least, weight))


def least_traffic(call: TaskCall) -> int | None:
    """Return how many active tasks and standbys have to be in another rack than what they read, for what is
    promised. None where the application is too large for it."""

    def crosses(task: TaskId, client: TaskClient) -> bool:
        racks = call.application.racks_of(task)
        return bool(racks and client.rack and client.rack not in racks)

    return _cheapest(
        call, lambda task, on: crosses(task, on) + _least(call, task, on, lambda copy: crosses(task, copy))
    )


def _has(client: TaskClient, task: TaskId) -> bool:
    return task in client.standby or task in client.active


def _wanted(call: TaskCall, task: TaskId) -> int:
    """Return how many standbys a task shall have: as many as are asked for where that is promised, else as it
    is given."""
    most = len(call.threads) - 1
    if Promise.STANDBYS not in call.promises:
        return min(most, len(call.standbys.get(task, ())))
    return min(most, call.application.configs.standbys) if call.is_logged(task) else 0


def _least_made(call: TaskCall, task: TaskId, active: TaskClient) -> int:
    if not call.is_logged(task):
        return 0
    return (not _has(active, task)) + _least(call, task, active, lambda copy: not _has(copy, task))


def _least(call: TaskCall, task: TaskId, active: TaskClient, cost: Callable[[TaskClient], bool]) -> int:
    """Return how many of a set of standbys cost something, at least, of the sets that are spread over tags as
    promised."""
    wanted = _wanted(call, task)
    if not wanted:
        return 0
    others = [client for client in call.application.clients if client.process != active.process]
    tags = call.application.configs.tags if Promise.TAGS in call.promises else ()
    if not tags:
        return max(0, wanted - len({client.process for client in others if not cost(client)}))
    return min(
        sum(map(cost, chosen))
        for chosen in combinations(others, wanted)
        if len({client.process for client in chosen}) == wanted and _spread(tags, active, chosen, others)
    )


def _spread(
    tags: Sequence[str], active: TaskClient, chosen: Sequence[TaskClient], others: Sequence[TaskClient]
) -> bool:
    """Check whether no standby could be elsewhere, and the copies under more values of a tag."""

    def values(copies: Sequence[TaskClient]) -> list[int]:
        return [len({copy.tags.get(tag, "") for copy in copies}) for tag in tags]

    if not tags:
        return True
    now, taken = values([active, *chosen]), {client.process for client in chosen}
    for number in range(len(chosen)):
        rest = [active, *chosen[:number], *chosen[number + 1 :]]
        for other in others:
            if other.process not in taken:
                then = values([*rest, other])
                if then != now and all(a >= b for a, b in zip(then, now, strict=True)):
                    return False
    return True


Box = list[tuple[int, int]]
"""For each client the fewest and the most tasks that it may run."""


def _boxes(call: TaskCall) -> Iterator[Box]:
    """Yield bounds of loads: an answer is balanced exactly when it keeps within one of these.

    Balanced is that no task could go from one client to another and leave the two more even: that
    (n - 1)/t < (m + 1)/u for any two, of n tasks on t threads and m on u. For the least (m + 1)/u that says
    that each n is ceil(least * t), or one less.
    """
    threads, total = [client.threads for client in call.application.clients], len(call.application.tasks)
    if Promise.BALANCED not in call.promises:
        yield [(0, total) for _ in threads]
        return
    seen: set[tuple[int, ...]] = set()
    for least in sorted({Fraction(number, count) for number in range(total + 2) for count in threads}):
        most = tuple(ceil(least * count) for count in threads)
        box = [(max(0, number - 1), number) for number in most]
        if most not in seen and sum(low for low, _ in box) <= total <= sum(most):
            yield box
        seen.add(most)


def _cheapest(call: TaskCall, price: Callable[[TaskId, TaskClient], int]) -> int | None:
    """Return the least price of all answers that are balanced as promised; None of too many."""
    clients, tasks = call.application.clients, call.application.tasks
    most = max((_wanted(call, task) for task in tasks), default=0)
    if len(clients) * len(tasks) > MAX_EDGES or comb(len(clients), most) > MAX_SETS:
        return None
    rows = Counter(tuple([price(task, client) for client in clients]) for task in tasks)
    costs = [cost for box in _boxes(call) if (cost := _flow(rows, box)) is not None]
    return min(costs, default=0)


def _flow(rows: Counter[tuple[int, ...]], box: Box) -> int | None:
    """Return the least cost of placing rows, each so often, within bounds; None if they cannot be."""
    total = sum(rows.values())
    forced = 1 + sum(max(row) * count for row, count in rows.items())
    graph: nx.MultiDiGraph[object] = nx.MultiDiGraph()
    graph.add_node("source", demand=-total)
    graph.add_node("sink", demand=total)
    for row, count in rows.items():
        graph.add_edge("source", row, capacity=count, weight=0)
        for client, cost in enumerate(row):
            graph.add_edge(row, client, capacity=count, weight=cost)
    for client, (low, high) in enumerate(box):
        graph.add_edge(client, "sink", capacity=low, weight=-forced)
        graph.add_edge(client, "sink", capacity=high - low, weight=0)
    cost, _ = nx.network_simplex(graph)
    cost += forced * sum(low for low, _ in box)
    return cost if cost < forced else None  # else some client has fewer than it must
