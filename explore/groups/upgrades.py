"""Rolling upgrades: which way from one assignor list to another is safe, and what it costs.

A path is the list of configurations that every member is bounced through. All interleavings are explored:
of bounces, starts, rebalances and messages, with a round of bounces begun only when the one before is
finished. The verdict comes from that search, not from the path's reputation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from rebalance.explore.engine import fast
from rebalance.explore.engine.checkpoint import Checkpoint
from rebalance.explore.engine.search import Exploration, Limits, ModelTrace, Progress, Stop
from rebalance.explore.groups.exploration import saved_run
from rebalance.explore.groups.runs import SavedRun
from rebalance.explore.groups.scenarios import BOTH, COOPERATIVE, UNIFORM, ScenarioError, runs
from rebalance.explore.liveness import liveness
from rebalance.explore.liveness.lasso import Lasso
from rebalance.model.assignors import NAMES
from rebalance.model.bugs.profiles import AS_SPECIFIED, broker
from rebalance.model.consumer.migration.either import machine
from rebalance.model.consumer.state import ConsumerGroup, GroupKind
from rebalance.model.machine import Event, Machine, State
from rebalance.model.names import unknown
from rebalance.model.protocol.setup import CONSUMER, Consumer, ConsumerConfig, Setup, letter
from rebalance.model.protocol.state import Error, Parts, Topics
from rebalance.properties.group.clauses import CONVERGES, rules

STREAMS = "streams"
"""A Kafka Streams application: one assignor name for ever, EAGER before 2.4 and COOPERATIVE after."""

CHOICES = (*NAMES, "default", STREAMS, CONSUMER)
"""What ``rebalance upgrade`` takes for ``--from`` and ``--to``; ``default`` is the list since 3.0,
``consumer`` the consumer protocol (KIP-848)."""


class UpgradeVerdict(StrEnum):
    """What came of a path."""

    SAFE = "safe"
    REFUSED = "refused"
    UNSAFE = "unsafe"
    STALLS = "does not settle"
    UNKNOWN = "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Path:
    """One way to upgrade: the configurations one after the other, and what to do in each round.
    ``rollout``: when members are stopped and started (``Setup``)."""

    name: str
    sentence: str
    stages: tuple[ConsumerConfig, ...]
    plan: tuple[str, ...]
    rollout: str = "any"


@dataclass(frozen=True, kw_only=True)
class UpgradeOutcome:
    """The verdict on a path. ``clause`` is the one that broke, ``trace`` the shortest run that breaks it.

    ``rebalances`` and ``pauses`` are of one quiet run that bounces the members one after the other:
    generations, and partitions without an owner times steps.
    """

    path: Path
    setup: Setup
    verdict: UpgradeVerdict
    search: Exploration
    clause: str | None = None
    sentence: str = ""
    trace: ModelTrace | Lasso | None = None
    rebalances: int = 0
    pauses: int = 0

    def run(self, origin: Mapping[str, Any]) -> SavedRun | None:
        """The counterexample as a run that can be saved."""
        if self.trace is None or self.clause is None:
            return None
        found = saved_run(self.setup, origin, self.clause, self.trace)
        return replace(found, sentence=found.sentence or self.sentence)


def _list(name: str) -> tuple[str, ...]:
    if name == CONSUMER:
        return UNIFORM
    return BOTH if name == "default" else COOPERATIVE if name == STREAMS else (name,)


def _spelled(assignors: tuple[str, ...]) -> str:
    if assignors == UNIFORM:
        return "group.protocol = consumer"
    return f"partition.assignment.strategy = [{', '.join(assignors)}]"


def paths(old: str, new: str, profile: str = AS_SPECIFIED) -> tuple[Path, ...]:
    """The ways from ``old`` to ``new`` (of ``CHOICES``), the recommended one first.

    Raises ScenarioError for names that are unknown or equal, or of which only one is Streams.
    """
    for name in (old, new):
        if name not in CHOICES:
            raise ScenarioError(unknown("assignor to upgrade from or to", name, CHOICES))
    if old == new and old != STREAMS:
        raise ScenarioError(f"--from and --to are both {old}: nothing changes")
    if STREAMS in (old, new):
        if old != new:
            raise ScenarioError("a Streams application keeps its own assignor: --from streams --to streams")
        return _streams(profile)
    first, last = _list(old), _list(new)
    shared = tuple(name for name in first if name in last)
    start, end = runs(profile, first), runs(profile, last)
    if CONSUMER in (old, new):
        return tuple(_between_protocols(start, end))
    single = Path(
        name="single-bounce",
        sentence="every member goes from the old list to the new one at once",
        stages=(start, end),
        plan=(f"restart the members one by one with {_spelled(last)}",),
    )
    if shared:
        return (single,)
    both = tuple(dict.fromkeys((*first, *last)))
    reverse = tuple(dict.fromkeys((*last, *first)))
    return (
        _double("double-bounce", start, runs(profile, both), end, "old assignors first"),
        _double("double-bounce-new-first", start, runs(profile, reverse), end, "new assignors first"),
        single,
    )


def _between_protocols(start: ConsumerConfig, end: ConsumerConfig) -> Iterator[Path]:
    """From the classic protocol to the consumer protocol, or back; as specified there is no need to wait."""
    config = _spelled(end.assignors)
    if start.group_protocol == CONSUMER:
        config = f"group.protocol = classic and {config}"
    yield Path(
        name="online", sentence="members go over one by one, at any time", stages=(start, end),
        plan=(f"restart the members one by one with {config}",),
    )  # fmt: skip
    yield Path(
        name="online-settled", sentence="the same, and everybody waits until the group is stable",
        stages=(start, end),
        plan=(
            "wait until the group is stable; nobody else joins or leaves meanwhile",
            "stop one member, and wait until the group is stable",
            f"start it with {config}, and go on with the next",
        ),
        rollout="settled",
    )  # fmt: skip
    yield Path(
        name="offline", sentence="all members are stopped before the first goes over", stages=(start, end),
        plan=("stop all members, and wait until the group is empty", f"start them with {config}"),
        rollout="stopped",
    )  # fmt: skip


def _double(
    name: str, start: ConsumerConfig, middle: ConsumerConfig, end: ConsumerConfig, order: str
) -> Path:
    return Path(
        name=name,
        sentence=f"through a list with both, {order}",
        stages=(start, middle, end),
        plan=(
            f"restart the members one by one with {_spelled(middle.assignors)}",
            "wait until all of them run with it and the group is stable",
            f"restart the members one by one with {_spelled(end.assignors)}",
        ),
    )


def _streams(profile: str) -> tuple[Path, ...]:
    """KIP-429's path for Streams. Before 2.4 its assignor did not withhold what a member still owns."""
    old = ConsumerConfig(
        assignors=COOPERATIVE, switches=("no_withhold",), version=1, tells=False, upgrade_from=True
    )
    new = runs(profile, COOPERATIVE)
    careful = replace(new, upgrade_from=True)
    return (
        Path(
            name="upgrade.from",
            sentence="the new release stays EAGER in the first round, because upgrade.from is set",
            stages=(old, careful, new),
            plan=(
                "restart the instances one by one with the new release and upgrade.from = the old one",
                "wait until all of them run with it and the group is stable",
                "restart the instances one by one without upgrade.from",
            ),
        ),
        Path(
            name="single-bounce",
            sentence="every instance goes to the new release at once, without upgrade.from",
            stages=(old, new),
            plan=("restart the instances one by one with the new release",),
        ),
    )


def setup(
    path: Path,
    members: int = 2,
    partitions: int = 2,
    *,
    faults: tuple[str, ...] = (),
    budget: int = 0,
    broker_profile: str = AS_SPECIFIED,
) -> Setup:
    """The group that goes along ``path``: one topic, dynamic members.

    Raises ScenarioError for more than can be explored.
    """
    if members > 6 or partitions > 12:
        raise ScenarioError(f"{members} members x {partitions} partitions: at most 6 x 12 can be explored")
    consumer = Consumer(path.stages, (Topics(1),))
    topic = Parts((1 << partitions) - 1)
    return Setup(
        consumers=(consumer,) * members,
        topics=(topic,),
        exist=topic,
        faults=faults,
        budget=budget,
        coordinator=broker(broker_profile).decisions,
        rollout=path.rollout,
    )


def judge(
    path: Path,
    group: Setup,
    limits: Limits | None = None,
    *,
    report_progress: Callable[[Progress], None] | None = None,
    report_stage: Callable[[str], None] = lambda stage: None,
    checkpoint: Checkpoint | None = None,
) -> UpgradeOutcome:
    """Explore every interleaving of ``path`` in ``group`` and give the verdict.

    A member that is turned away with INCONSISTENT_GROUP_PROTOCOL, or that ends although to join again would
    cure it, makes the path refused, which is safe but stops the member; anything else that breaks a safety
    clause makes it unsafe. ``report_stage`` is called with what is done after the search. Ctrl-C
    (KeyboardInterrupt) passes through, when what was searched is in the ``checkpoint``.
    """
    built, clauses = machine(group), rules(group)
    search = fast.explore(
        built, clauses, limits or Limits(go_on=True), progress=report_progress, checkpoint=checkpoint
    )
    if search.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    report_stage("counting what it costs")
    rebalances, pauses = cost(built, group)
    outcome = UpgradeOutcome(
        path=path,
        setup=group,
        verdict=UpgradeVerdict.SAFE if search.complete else UpgradeVerdict.UNKNOWN,
        search=search,
        rebalances=rebalances,
        pauses=pauses,
    )
    broken = sorted(search.breaches, key=lambda breach: (_LAST.get(breach.clause, 0), breach.depth))
    if broken:
        report_stage("making the shortest counterexample")
        first = broken[0]
        turned_away = first.clause == "poll/throws" and Error.INCONSISTENT_GROUP_PROTOCOL in first.sentence
        refused = turned_away or first.clause == "member/ends"
        verdict = UpgradeVerdict.REFUSED if refused else UpgradeVerdict.UNSAFE
        trace = search.trace(first.clause)
        return replace(outcome, verdict=verdict, clause=first.clause, sentence=first.sentence, trace=trace)
    report_stage("asking whether it settles")
    settling = liveness.judge(built, clauses, search).settling if search.complete else ()
    lasso = next((one.lasso for one in settling if one.lasso is not None), None)
    if lasso is None:
        return outcome
    return replace(
        outcome,
        verdict=UpgradeVerdict.STALLS,
        clause=CONVERGES.id,
        sentence=CONVERGES.sentence,
        trace=lasso,
    )


_LAST = {"poll/throws": 1, "epoch/covers": 1, "member/ends": 2}
"""Clauses that break before something worse does, or where nothing else does; the larger the number the less
there is to it."""


def cost(built: Machine, group: Setup) -> tuple[int, int]:
    """Rebalances and partition-pauses of one quiet run: members start and are bounced one after the other,
    each when the group has settled. Counted from the first bounce on. In a consumer group (KIP-848) each new
    target counts as a rebalance."""
    state = built.initial[0]
    for slot in group.slots:
        state, _, _ = _settle(built, group, built.step(state, Event("start", slot)))
    rebalances = pauses = 0
    order = [(name, slot) for slot in group.slots for name in ("bounce", "start")]
    if group.rollout == "stopped":
        order.sort(key=lambda one: one[0] == "start")  # all bounces first
    for _ in range(len(group.consumers[0].stages) - 1):
        for name, slot in order:
            if Event(name, slot) not in built.enabled(state):
                return rebalances, pauses  # turned away: the path ends here
            state = built.step(state, Event(name, slot))
            pauses += unowned(built, group, state).bit_count()
            state, more, paused = _settle(built, group, state)
            rebalances, pauses = rebalances + more, pauses + paused
    return rebalances, pauses


def _settle(built: Machine, group: Setup, state: State) -> tuple[State, int, int]:
    """Let the group run, each member in turn, until only faults are possible; generations and pauses."""
    rebalances = pauses = turn = 0
    while True:
        steps = [(event, outcome) for event, outcome in built.outcomes(state, faults=False)]
        if not steps:
            return state, rebalances, pauses
        # In turn, so that the run is fair; the end of the join phase waits for everybody else.
        order = sorted(steps, key=lambda s: (s[0].action == "join phase ends", (s[0].who - turn) % 97))
        event, outcome = order[0]
        before, state = state, built.apply(state, event, outcome)
        turn = event.who + 1 if event.who >= 0 else turn
        rebalances += event.action == "join phase ends" or _new_target(built, before, state)
        pauses += unowned(built, group, state).bit_count()


def _new_target(built: Machine, before: State, after: State) -> bool:
    """Whether the coordinator of a consumer group has computed a target."""
    was, now = built.value(before, "group"), built.value(after, "group")
    modern = isinstance(now, ConsumerGroup) and now.kind is GroupKind.CONSUMER
    return modern and now.assigned != was.assigned


def unowned(built: Machine, group: Setup, state: State) -> Parts:
    """The partitions that no member owns."""
    owned = 0
    for slot in group.slots:
        mine = built.look(state, f"held {letter(slot)}")
        assert isinstance(mine, int)
        owned |= mine
    return Parts(group.exist & ~owned)
