"""Rolling upgrades: which way from one assignor list to another is safe, and what it costs.

A path is the list of configurations that every member is bounced through. All interleavings are explored:
of bounces, starts, rebalances and messages, with a round of bounces begun only when the one before is
finished. The verdict comes from that search, not from the path's reputation.

A release breaks clauses also where nothing is upgraded. One that is about what is claimed and decided, not
about what a group does, and that breaks in a rolling restart which changes nothing too, says nothing of a
path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import factorial
from typing import Any

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.checkpoint import Checkpoint
from rebalance_verifier.explore.engine.search import Exploration, Limits, ModelTrace, Progress, Stop
from rebalance_verifier.explore.groups.exploration import saved_run
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.scenarios import ScenarioError
from rebalance_verifier.explore.groups.upgrade_paths import Hop, Path
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.explore.liveness.lasso import Lasso
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED, broker, consumer_protocol_trouble
from rebalance_verifier.model.classic.group import MAX_NAMINGS
from rebalance_verifier.model.consumer.state import ConsumerGroup, GroupKind
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import CONSUMER, Consumer, Setup, letter
from rebalance_verifier.model.machine import Event, Machine, State
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import CONVERGES, rules
from rebalance_verifier.properties.group.own import gravity


class UpgradeVerdict(StrEnum):
    """Verdict on a path."""

    SAFE = "safe"
    REFUSED = "refused"
    UNSAFE = "unsafe"
    STALLS = "does not settle"
    UNKNOWN = "inconclusive"


@dataclass(frozen=True, kw_only=True)
class UpgradeOutcome:
    """The verdict on a path. ``clause`` is the one that broke, ``trace`` the shortest run that breaks it.

    ``rebalances`` and ``pauses`` are of one quiet run that bounces the members one after the other:
    generations, and partitions without an owner times steps; None where that run does not settle.
    ``besides``: clauses that break as they do in a restart that changes nothing. ``anyway``: whether
    ``clause`` breaks there too.
    """

    path: Path
    setup: Setup
    verdict: UpgradeVerdict
    search: Exploration
    clause: str | None = None
    sentence: str = ""
    trace: ModelTrace | Lasso | None = None
    rebalances: int | None = None
    pauses: int | None = None
    besides: tuple[str, ...] = ()
    anyway: bool = False

    def run(self, origin: Mapping[str, Any]) -> SavedRun | None:
        """Return the counterexample as a run that can be saved."""
        if self.trace is None or self.clause is None:
            return None
        found = saved_run(self.setup, origin, self.clause, self.trace)
        return replace(found, sentence=found.sentence or self.sentence)


@dataclass(frozen=True, kw_only=True)
class JudgedHop:
    """A hop, and what came of its paths."""

    hop: Hop
    outcomes: tuple[UpgradeOutcome, ...]

    @property
    def safe(self) -> UpgradeOutcome | None:
        """Return the first path that is safe."""
        return next((one for one in self.outcomes if one.verdict is UpgradeVerdict.SAFE), None)

    @property
    def verdict(self) -> UpgradeVerdict:
        """Return the verdict on the hop: one path that is safe will do."""
        verdicts = {one.verdict for one in self.outcomes}
        return next((one for one in (UpgradeVerdict.SAFE, UpgradeVerdict.UNKNOWN) if one in verdicts),
                    UpgradeVerdict.UNSAFE)  # fmt: skip


NEXT_HOP = "wait until all of them run with it and the group is stable"


def joined_plan(judged: Sequence[JudgedHop]) -> tuple[str, ...]:
    """Return the plans of all hops as one; none where a hop has no safe path."""
    plans = [one.safe.path.plan for one in judged if one.safe]
    if len(plans) < len(judged):
        return ()
    return tuple(step for number, plan in enumerate(plans) for step in ((NEXT_HOP,) * (number > 0) + plan))


MAX_MEMBERS = 4
"""Members that are searched if they are asked for; more take days."""

STAND_IN = 2
"""Members, and partitions, that are searched in place of more than can be."""


def searched(members: int, partitions: int) -> tuple[int, int]:
    """Return the size of the group that is searched for one of this size.

    >>> searched(3, 3), searched(50, 2), searched(2, 500)
    ((3, 3), (2, 2), (2, 2))
    """
    members = members if members <= MAX_MEMBERS else STAND_IN
    fits = partitions <= 7 and factorial(members) * factorial(partitions) <= MAX_NAMINGS
    return members, partitions if fits else STAND_IN


def setup(
    path: Path,
    members: int = 2,
    partitions: int = 2,
    *,
    faults: tuple[str, ...] = (),
    budget: int = 0,
    broker_profile: str = AS_SPECIFIED,
) -> Setup:
    """Return the group that goes along ``path``: one topic, dynamic members.

    Raises ScenarioError for more than can be explored, and for a coordinator that is not known to speak the
    protocol.
    """
    if (members, partitions) != searched(members, partitions):
        raise ScenarioError(f"{members} members x {partitions} partitions are more than can be explored")
    trouble = consumer_protocol_trouble(broker(broker_profile))
    if trouble and any(stage.group_protocol == CONSUMER for stage in path.stages):
        raise ScenarioError(f"--broker: {trouble}")
    consumer = Consumer(stages=path.stages, subscriptions=(p.Topics(1),))
    topic = p.Parts((1 << partitions) - 1)
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
    limits = limits or Limits(go_on=True)
    search = _uninterrupted(
        fast.explore(built, clauses, limits, symmetry=True, progress=report_progress, checkpoint=checkpoint)
    )
    report_stage("counting what it costs")
    rebalances, pauses = cost(built, group) or (None, None)
    outcome = UpgradeOutcome(
        path=path,
        setup=group,
        verdict=UpgradeVerdict.SAFE if search.complete else UpgradeVerdict.UNKNOWN,
        search=search,
        rebalances=rebalances,
        pauses=pauses,
    )
    found = {breach.clause for breach in search.breaches}
    if found:
        report_stage("asking whether a restart that changes nothing breaks it too")
    anyway = _anyway(path, group, found)
    besides = tuple(sorted(clause for clause in anyway if not clause.startswith(FELT)))
    outcome = replace(outcome, besides=besides)
    broken = sorted(
        (breach for breach in search.breaches if breach.clause not in besides),
        key=lambda breach: (gravity(breach.clause), breach.depth),
    )
    if broken:
        report_stage("making the shortest counterexample")
        first = broken[0]
        turned_away = first.clause == "poll/throws" and p.Error.INCONSISTENT_GROUP_PROTOCOL in first.sentence
        refused = turned_away or first.clause == "member/ends"
        return replace(
            outcome,
            verdict=UpgradeVerdict.REFUSED if refused else UpgradeVerdict.UNSAFE,
            clause=first.clause,
            sentence=first.sentence,
            trace=search.trace(first.clause),
            anyway=first.clause in anyway,
        )
    report_stage("asking whether it settles")
    lasso = None
    if search.complete and not liveness.settles_by_orbits(built, clauses, search):
        # A run that never settles is told step by step, of all states.
        whole = _uninterrupted(fast.explore(built, clauses, limits, progress=report_progress))
        if not whole.complete:
            return replace(outcome, verdict=UpgradeVerdict.UNKNOWN)
        settling = liveness.judge(built, clauses, whole).settling
        lasso = next((one.lasso for one in settling if one.lasso is not None), None)
    if lasso is None:
        shows = path.shown_by(len(group.consumers), group.exist.bit_count())
        return outcome if shows else replace(outcome, verdict=UpgradeVerdict.UNKNOWN)
    return replace(
        outcome,
        verdict=UpgradeVerdict.STALLS,
        clause=CONVERGES.id,
        sentence=CONVERGES.sentence,
        trace=lasso,
    )


FELT = ("group/", "member/", "poll/", "callback/", "leave/", "epoch/")
"""Clauses of what a group does to its application and its records. That one breaks in every restart makes no
upgrade safe."""


def _anyway(path: Path, group: Setup, clauses: set[str]) -> set[str]:
    """Return those of ``clauses`` that break where every member is restarted with what it has, in any round
    of ``path``."""
    found: set[str] = set()
    for stage in dict.fromkeys(path.stages):
        left = clauses - found
        if not left:
            break
        consumers = tuple(replace(consumer, stages=(stage, stage)) for consumer in group.consumers)
        same = replace(group, consumers=consumers)
        search = _uninterrupted(
            fast.explore(machine(same), rules(same).about(*left), Limits(go_on=len(left) > 1), symmetry=True)
        )
        found |= {breach.clause for breach in search.breaches}
    return found


def _uninterrupted(search: Exploration) -> Exploration:
    """Return a search that was not interrupted. Raises KeyboardInterrupt for another."""
    if search.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    return search


def cost(built: Machine, group: Setup) -> tuple[int, int] | None:
    """Return rebalances and partition-pauses of one quiet run, or None where a group of it does not settle.

    Members start and are bounced one after the other, each when the group has settled. Counted from the first
    bounce on. In a consumer group (KIP-848) each new target counts as a rebalance."""
    state = built.initial[0]
    for slot in group.slots:
        settled = _settle(built, group, built.step(state, Event("start", slot)))
        if settled is None:
            return None
        state = settled[0]
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
            settled = _settle(built, group, state)
            if settled is None:
                return None
            state, more, paused = settled
            rebalances, pauses = rebalances + more, pauses + paused
    return rebalances, pauses


LATE = ("session expires", "join phase ends")
"""Timers: in a quiet run everything else happens before they fire."""

MAX_QUIET_STEPS = 2_000
"""Steps after which a quiet run counts as one that does not settle; one that does takes some tens."""


def _settle(built: Machine, group: Setup, state: State) -> tuple[State, int, int] | None:
    """Let the group run, each member in turn, until only faults are possible.

    Returns the state, generations and pauses; None where it goes on for ever.
    """
    rebalances = pauses = turn = 0
    for _ in range(MAX_QUIET_STEPS):
        steps = [(event, outcome) for event, outcome in built.outcomes(state, faults=False)]
        if not steps:
            return state, rebalances, pauses
        # In turn, so that the run is fair. Timers come last: members of 2.4 leave an id behind when they
        # join, and one whose session always expired before the next SyncGroup made them join anew, for ever.
        order = sorted(steps, key=lambda s: (s[0].action in LATE, (s[0].who - turn) % 97))
        event, outcome = order[0]
        before, state = state, built.apply(state, event, outcome)
        turn = event.who + 1 if event.who >= 0 else turn
        rebalances += event.action == "join phase ends" or _new_target(built, before, state)
        pauses += unowned(built, group, state).bit_count()
    return None


def _new_target(built: Machine, before: State, after: State) -> bool:
    """Check whether the coordinator of a consumer group has computed a target."""
    was, now = built.value(before, "group"), built.value(after, "group")
    served = isinstance(now, ConsumerGroup) and now.kind is GroupKind.CONSUMER
    return served and now.assigned != was.assigned


def unowned(built: Machine, group: Setup, state: State) -> p.Parts:
    """Return the partitions that no member owns."""
    owned = 0
    for slot in group.slots:
        mine = built.look(state, f"held {letter(slot)}")
        assert isinstance(mine, int)
        owned |= mine
    return p.Parts(group.exist & ~owned)
