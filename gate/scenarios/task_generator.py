"""Where scenarios of tasks come from: one function per dimension, freely combined, as ``generator`` does for
partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rebalance_verifier.base.draws import Draw, member_ids, pick
from rebalance_verifier.gate.scenarios.generator import CROWD, ONE_IN_LARGE, RACKS
from rebalance_verifier.model.tasks import RackStrategy, StoreKind, Subtopology, TaskConfigs
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.task_scenarios import (
    Copy,
    ScenarioClient,
    TaskEvent,
    TaskEventKind,
    TaskScenario,
    renamed_clients,
)

TASKS, STREAMS = OF_TASKS
ONLY_CLIENT = (TASKS,)

END = 1000
"""The end offset of a changelog partition: what a copy lags that has nothing."""


@dataclass(frozen=True, slots=True)
class TaskSize:
    """Least and most of what is drawn, partitions per subtopology; and disturbed rebalances at most."""

    members: tuple[int, int] = (1, 4)
    subtopologies: tuple[int, int] = (1, 3)
    partitions: tuple[int, int] = (1, 4)
    rounds: int = 4


SMALL = TaskSize()
SPREAD = TaskSize((3, 6), (1, 2), (2, 5))
"""More processes than there are zones."""
LARGE = TaskSize((4, 12), (2, 5), (1, 16), 3)


@dataclass(slots=True, kw_only=True)
class _TaskPlan:
    """A scenario while its dimensions are drawn one after the other."""

    draw: Draw
    size: TaskSize
    protocol: RebalanceProtocol
    configs: TaskConfigs
    subtopologies: list[Subtopology]
    clients: list[ScenarioClient]
    rounds: list[list[TaskEvent]] = field(default_factory=lambda: [[]])
    slow: int = 1
    joined: int = 0

    def chance(self, one_in: int) -> bool:
        return self.draw.integer(0, one_in - 1) == one_in - 1

    def round(self) -> list[TaskEvent]:
        """Return the events of a rebalance after the first, a new one while there is room."""
        if len(self.rounds) == 1 or (len(self.rounds) <= self.size.rounds and self.chance(2)):
            self.rounds.append([])
        return self.rounds[self.draw.integer(1, len(self.rounds) - 1)]

    def ids(self) -> list[str]:
        """Return everybody who is or will be there."""
        joined = [e.client.id for events in self.rounds for e in events if e.client is not None]
        return [client.id for client in self.clients] + joined

    def each_client(self, change: Callable[[ScenarioClient], ScenarioClient]) -> None:
        self.clients = [change(client) for client in self.clients]
        self.rounds = [
            [e if e.client is None else replace(e, client=change(e.client)) for e in events]
            for events in self.rounds
        ]

    def scenario(self, dimensions: Iterable[str] = ()) -> TaskScenario:
        """Return what it has come to."""
        return TaskScenario(
            protocol=self.protocol,
            configs=self.configs,
            subtopologies=tuple(self.subtopologies),
            clients=tuple(self.clients),
            rounds=tuple(tuple(events) for events in self.rounds),
            slow=self.slow,
            dimensions=tuple(dimensions),
        )


def _stores(plan: _TaskPlan) -> None:
    """Subtopologies without a store, or with one that has no changelog."""
    kinds = [StoreKind.NONE, StoreKind.LOGGED]
    if plan.protocol is TASKS:  # a coordinator knows of changelogs only
        kinds.append(StoreKind.MEMORY)
    plan.subtopologies = [replace(one, store=pick(plan.draw, kinds)) for one in plan.subtopologies]


def _ends(plan: _TaskPlan) -> None:
    """Empty changelogs, in which everybody is caught up, and long ones."""
    plan.subtopologies = [
        replace(one, end=pick(plan.draw, (0, 10, END, 1_000_000))) for one in plan.subtopologies
    ]
    lag = pick(plan.draw, (0, 10, 10_000))
    plan.configs = replace(plan.configs, recovery_lag=lag)


def _standbys(plan: _TaskPlan) -> None:
    """More standbys than usual, or than there are processes."""
    plan.configs = replace(plan.configs, standbys=plan.draw.integer(0, 3))


def _warmups(plan: _TaskPlan) -> None:
    """Other limits of what is copied at a time, and of what counts as caught up."""
    plan.configs = replace(plan.configs, warmups=pick(plan.draw, (2, 1, 5)), recovery_lag=0)


def _slow(plan: _TaskPlan) -> None:
    """Copies that catch up in several rebalances."""
    plan.slow = plan.draw.integer(2, 3)


def _threads(plan: _TaskPlan) -> None:
    """Processes with several threads."""
    if plan.protocol is TASKS:
        plan.each_client(lambda client: replace(client, threads=plan.draw.integer(1, 3)))
        return
    processes = [client.process_id for client in plan.clients]
    plan.clients = [
        replace(client, process=pick(plan.draw, processes[: number + 1]))
        for number, client in enumerate(plan.clients)
    ]


def _owned(plan: _TaskPlan) -> None:
    """Tasks run when the first rebalance begins, and copies are kept."""
    skew = plan.draw.integer(0, 1)
    for subtopology in plan.subtopologies:
        for task in subtopology.tasks:
            # The skewed ones pile up on the first.
            number = plan.draw.integer(0, len(plan.clients) + skew)
            if number <= len(plan.clients):
                at = max(0, number - 1)
                owner = plan.clients[at]
                plan.clients[at] = replace(owner, active=(*owner.active, task))
            if subtopology.store is StoreKind.LOGGED:
                _copy(plan, task, at if number <= len(plan.clients) else None, subtopology.end)


def _copy(plan: _TaskPlan, task: object, owner: int | None, end: int) -> None:
    """Let processes where a task does not run have copies of it."""
    for number, client in enumerate(plan.clients):
        beside = owner is not None and client.process_id == plan.clients[owner].process_id
        if not beside and plan.chance(3):
            lag = pick(plan.draw, (0, 0, end // 2, end))
            plan.clients[number] = replace(client, copies=(*client.copies, Copy(task, lag)))  # type: ignore[arg-type]


def _disks(plan: _TaskPlan) -> None:
    """Processes that have just started, with copies of several ages on their disks."""
    for subtopology in plan.subtopologies:
        if subtopology.store is not StoreKind.LOGGED:
            continue
        for task in subtopology.tasks:
            if not any(task in client.active for client in plan.clients):
                _copy(plan, task, None, subtopology.end)
    plan.clients = [replace(client, started=not client.active) for client in plan.clients]


def _tags(plan: _TaskPlan) -> None:
    """Client tags over which copies are spread."""
    zones = [f"z{number}" for number in range(plan.draw.integer(2, 3))]
    plan.each_client(lambda client: replace(client, tags={"zone": pick(plan.draw, zones)}))
    plan.configs = replace(plan.configs, tags=("zone",), standbys=max(1, plan.configs.standbys))


def _racks(plan: _TaskPlan) -> None:
    """Racks of clients and replicas, taken into account."""
    plan.each_client(lambda client: replace(client, rack=pick(plan.draw, RACKS)))
    plan.subtopologies = [
        replace(one, racks=tuple((pick(plan.draw, RACKS),) for _ in one.racks)) for one in plan.subtopologies
    ]
    plan.configs = replace(plan.configs, rack_strategy=RackStrategy.MIN_TRAFFIC)


def _order(plan: _TaskPlan) -> None:
    """Processes are iterated in any order."""
    rest = list(plan.clients)
    plan.clients = [rest.pop(plan.draw.integer(0, len(rest) - 1)) for _ in range(len(rest))]


def _membership(plan: _TaskPlan) -> None:
    """Processes join and leave between rebalances."""
    for _ in range(plan.draw.integer(1, 3)):
        if plan.chance(2) or len(plan.clients) < 2:
            plan.joined += 1
            template = pick(plan.draw, plan.clients)
            process = template.process_id if plan.protocol is STREAMS and plan.chance(2) else ""
            newcomer = replace(
                template, id=f"N{plan.joined}", process=process, active=(), copies=(), started=True
            )
            plan.round().append(TaskEvent(kind=TaskEventKind.JOIN, client=newcomer))
        else:
            _about_somebody(plan, TaskEventKind.LEAVE)


def _restarts(plan: _TaskPlan) -> None:
    """Processes start again, with their disk or without."""
    for _ in range(plan.draw.integer(1, 2)):
        _about_somebody(plan, pick(plan.draw, (TaskEventKind.RESTART, TaskEventKind.WIPED)))


def _about_somebody(plan: _TaskPlan, kind: TaskEventKind, number: int = 0) -> None:
    event = TaskEvent(kind=kind, id=pick(plan.draw, plan.ids()), number=number)
    plan.round().append(event)


def _growth(plan: _TaskPlan) -> None:
    """Input topics get more partitions."""
    subtopology = pick(plan.draw, plan.subtopologies)
    event = TaskEvent(kind=TaskEventKind.GROW, id=subtopology.id, number=plan.draw.integer(1, 2))
    plan.round().append(event)


def _resize(plan: _TaskPlan) -> None:
    """Processes change their number of threads."""
    _about_somebody(plan, TaskEventKind.THREADS, plan.draw.integer(1, 3))


def _lagging(plan: _TaskPlan) -> None:
    """The copies of a process fall behind."""
    for _ in range(plan.draw.integer(1, 2)):
        _about_somebody(plan, TaskEventKind.FALL_BEHIND, pick(plan.draw, (END // 2, 20_000)))


def _unknown_ends(plan: _TaskPlan) -> None:
    """End offsets cannot be fetched: whatever does not run has a lag of -3."""
    number = plan.draw.integer(0, 1)
    rebalance = plan.round() if number else plan.rounds[0]
    rebalance.append(TaskEvent(kind=TaskEventKind.UNKNOWN_ENDS))


def _names(plan: _TaskPlan) -> None:
    """Processes are called as they are: by random ids, whose order is not that of arrival."""
    plain = plan.scenario()
    ids = list(dict.fromkeys(plan.ids()))
    named = renamed_clients(plain, dict(zip(ids, member_ids(plan.draw, len(ids)), strict=True)))
    plan.clients = list(named.clients)
    plan.rounds = [list(events) for events in named.rounds]


@dataclass(frozen=True, slots=True)
class TaskDimension:
    """One independent way in which inputs vary. ``protocols``: where it means anything."""

    name: str
    apply: Callable[[_TaskPlan], None]
    protocols: tuple[RebalanceProtocol, ...] = OF_TASKS

    @property
    def sentence(self) -> str:
        return " ".join((self.apply.__doc__ or "").split())


# In the order in which they are applied: stores before copies before events.
TASK_DIMENSIONS: tuple[TaskDimension, ...] = (
    TaskDimension("stores", _stores),
    TaskDimension("ends", _ends, ONLY_CLIENT),
    TaskDimension("standbys", _standbys),
    TaskDimension("warmups", _warmups, ONLY_CLIENT),
    TaskDimension("slow", _slow, ONLY_CLIENT),
    TaskDimension("threads", _threads),
    TaskDimension("owned", _owned),
    TaskDimension("disks", _disks),
    TaskDimension("tags", _tags),
    TaskDimension("client-racks", _racks, ONLY_CLIENT),
    TaskDimension("processes-in-any-order", _order),
    TaskDimension("processes", _membership),
    TaskDimension("restarts", _restarts),
    TaskDimension("growth", _growth),
    TaskDimension("resize", _resize, ONLY_CLIENT),
    TaskDimension("lagging", _lagging),
    TaskDimension("unknown-ends", _unknown_ends, ONLY_CLIENT),
    TaskDimension("process-ids", _names),
)
TASKS_BY_NAME = {dimension.name: dimension for dimension in TASK_DIMENSIONS}
EVENTS = frozenset({"processes", "restarts", "growth", "resize", "lagging", "unknown-ends"})

TOGETHER: tuple[tuple[tuple[str, ...], TaskSize], ...] = (
    (("standbys", "owned"), SMALL),
    (("standbys", "processes"), SMALL),
    (("stores", "processes"), SMALL),
    (("threads", "owned", "processes"), SMALL),
    (("disks", "processes", "slow"), SMALL),
    (("tags", "client-racks"), SPREAD),
)
"""Dimensions that do most together: a copy moves only where there is one, and has a choice of zones only
where there are several processes."""


def generate(
    draw: Draw, protocol: RebalanceProtocol, dimensions: Iterable[str] = (), size: TaskSize = SMALL
) -> TaskScenario:
    """Return one scenario that varies along ``dimensions``; without any, processes that have just started, of
    one thread each. Raises ``ValueError`` naming a dimension that does not exist."""
    wanted = set(dimensions)
    if unknown := sorted(wanted - TASKS_BY_NAME.keys()):
        raise ValueError(f"no dimension is called {unknown[0]!r}; known: {', '.join(TASKS_BY_NAME)}")
    counts = [draw.integer(*size.partitions) for _ in range(draw.integer(*size.subtopologies))]
    plan = _TaskPlan(
        draw=draw,
        size=size,
        protocol=protocol,
        configs=TaskConfigs(standbys=draw.integer(0, 1), recovery_lag=0),
        subtopologies=[
            Subtopology(id=str(number), racks=((),) * count, end=END) for number, count in enumerate(counts)
        ],
        clients=[ScenarioClient(id=_name(n), started=True) for n in range(draw.integer(*size.members))],
    )
    chosen = [d for d in TASK_DIMENSIONS if d.name in wanted and protocol in d.protocols]
    for dimension in chosen:
        dimension.apply(plan)
    return plan.scenario(d.name for d in chosen)


def _name(index: int) -> str:
    letter = chr(ord("A") + index % 26)
    return letter if index < 26 else f"{letter}{index // 26}"


def along(protocol: RebalanceProtocol) -> list[tuple[tuple[str, ...], TaskSize]]:
    """Return what is searched systematically: nothing special, every single dimension, and some together."""
    single = [((d.name,), SMALL) for d in TASK_DIMENSIONS if protocol in d.protocols]
    together = [
        (names, size)
        for names, size in TOGETHER
        if all(protocol in TASKS_BY_NAME[name].protocols for name in names)
    ]
    everything: list[tuple[tuple[str, ...], TaskSize]] = [((), SMALL), *single, *together]
    return sorted(everything, key=lambda one: (one[1].members, not EVENTS.isdisjoint(one[0])))


def some(draw: Draw) -> tuple[str, ...]:
    """Return a random combination of dimensions."""
    one_in = draw.integer(2, 6)
    return tuple(d.name for d in TASK_DIMENSIONS if draw.integer(1, one_in) == 1)


def drawn(draw: Draw, protocols: Sequence[RebalanceProtocol]) -> TaskScenario:
    """Return a scenario that follows from ``draw`` alone: half along what is systematic, half along
    combinations."""
    protocol = pick(draw, protocols)
    if draw.integer(0, 1):
        return generate(draw, protocol, *pick(draw, along(protocol)))
    return generate(draw, protocol, some(draw), LARGE if draw.integer(1, ONE_IN_LARGE) == 1 else SMALL)


def crowd(protocol: RebalanceProtocol, members: int) -> TaskScenario:
    """A seventh as many tasks as members of the crowd of partitions, on few processes: each of them has a lag
    for each task."""
    subtopologies = tuple(
        Subtopology(id=str(number), racks=((),) * (members // 35), end=END) for number in range(5)
    )
    clients = tuple(ScenarioClient(id=f"process-{n:04}", started=True) for n in range(members // 70))
    joiner = TaskEvent(kind=TaskEventKind.JOIN, client=ScenarioClient(id="process-last", started=True))
    return TaskScenario(
        protocol=protocol,
        configs=TaskConfigs(standbys=1, recovery_lag=0, warmups=members),  # a few at a time take minutes
        subtopologies=subtopologies,
        clients=clients,
        rounds=((), (joiner,)),
        dimensions=(CROWD,),
    )
