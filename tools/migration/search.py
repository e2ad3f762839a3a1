"""The search for what a conversion breaks: random runs with one fault at most, made small."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_verifier.base.draws import Seeded, pick
from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.machine import Event

from tools.migration.group import GroupPlan, MigrationGroup, SimulationBroken

COOPERATIVE, RANGE, BOTH = ("cooperative-sticky",), ("range",), ("cooperative-sticky", "range")

PLANS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cooperative": {"A": COOPERATIVE, "B": COOPERATIVE, "C": ()},
    "eager": {"A": RANGE, "B": RANGE, "C": ()},
    "mixed": {"A": BOTH, "B": RANGE, "C": ()},
    "two": {"A": COOPERATIVE, "B": (), "C": ()},
    "three": {"A": COOPERATIVE, "B": COOPERATIVE, "D": COOPERATIVE, "C": ()},
    "static": {"A": COOPERATIVE, "B": COOPERATIVE, "C": (), "D": ()},
    "static-eager": {"A": RANGE, "B": RANGE, "C": (), "D": ()},
    "one-way": {"A": COOPERATIVE, "B": COOPERATIVE, "C": ()},
}
"""Who is in the group, by letter. With ``static`` in its name A and B are static, and C and D the same
processes after their upgrade. On the broker of ``one-way`` groups go up only."""

ONE_WAY = {"group.consumer.migration.policy": "upgrade"}

INSTANCES = {"A": "i1", "C": "i1", "B": "i2", "D": "i2"}

OPENINGS: tuple[tuple[str, ...], ...] = (
    ("start A", "settle"),
    ("start A", "settle", "start B"),
    ("start A", "settle", "start B", "settle"),
    ("start C", "settle"),
    ("start C", "settle", "start A"),
    ("start A", "settle", "start C", "settle"),
    ("start A", "settle", "start B", "settle", "start C", "settle"),
    ("start C", "settle", "start A", "settle", "start B", "settle"),
    ("start C", "settle", "start A", "settle"),
)
"""What comes before the run that is drawn."""

FAULTS = ("lose", "drop", "crash", "expire", "failover")

TWICE, OVERLAP, NOBODY = "twice", "overlap", "nobody"
DEAD, THROWN, BROKEN, UNSETTLED = "dead", "thrown", "broken", "unsettled"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationRun:
    """Steps on the group of a plan, and what they break: ``kind`` and which partition or member."""

    plan: GroupPlan
    steps: tuple[str, ...]
    kind: str = ""
    what: str = ""

    @property
    def cause(self) -> tuple[str, str]:
        """Return what is broken, and the error that somebody throws, without whose it is."""
        return self.kind, self.what.rpartition(": ")[2] if self.kind in (DEAD, THROWN, BROKEN) else ""


def plan_of(name: str, coordinator: str, partitions: int = 4) -> GroupPlan:
    """Return the plan of this name. Raises KeyError."""
    members = PLANS[name]
    instances = {who: INSTANCES[who] for who in members} if name.startswith("static") else {}
    return GroupPlan(
        coordinator=coordinator,
        members=members,
        partitions=partitions,
        instances=instances,
        config=ONE_WAY if name == "one-way" else {},
    )


# --- what is broken --------------------------------------------------------------------------------------


def _dead(group: MigrationGroup) -> list[str]:
    return [f"{who}: {one.dead}" for who, one in group.played.items() if one.dead]


def _there(group: MigrationGroup) -> list[str]:
    return [
        who for who in group.letters if group.is_up(who) and not getattr(group.played.get(who), "dead", "")
    ]


_BREAKS: Mapping[str, Callable[[MigrationGroup], Sequence[str]]] = {
    TWICE: lambda group: group.owned_twice(),
    OVERLAP: lambda group: group.overlaps(),
    DEAD: _dead,
    THROWN: lambda group: group.thrown,
    NOBODY: lambda group: group.unowned() if _there(group) else (),
    UNSETTLED: lambda group: [who for who in _there(group) if not group.accepted(who)],
}
"""Kind -> the partitions or members of which it is so; all but a member that is dead after a conversion."""

OF_STEPS, AT_REST = (TWICE, OVERLAP, DEAD, THROWN), (DEAD, THROWN, TWICE, NOBODY, UNSETTLED)
"""What is looked for after each step, and in a group that was left alone, in this order."""


class MigrationStep(NamedTuple):
    """A step that may be possible; its name is its text."""

    event: Event


class MigrationSystem:
    """The group of a plan as a system that is played, up to the first that it breaks, or that is ``wanted``.

    ``of_steps``: what is looked for after each step. ``kind`` and ``what`` it breaks, "" for nothing.
    """

    def __init__(
        self, simulation: Simulation, plan: GroupPlan, wanted: str = "", of_steps: tuple[str, ...] = OF_STEPS
    ) -> None:
        self.simulation, self.plan, self.wanted, self.of_steps = simulation, plan, wanted, of_steps

    def begin(self) -> None:
        self.group = MigrationGroup(self.simulation, self.plan)
        self.events: list[Event] = []
        self.over = False
        self.kind = self.what = ""

    @property
    def breaches(self) -> Mapping[Hashable, int]:
        return {self.run.cause: len(self.events)} if self.kind else {}

    @property
    def run(self) -> MigrationRun:
        """Return what was played."""
        steps = tuple(one.action for one in self.events)
        return MigrationRun(plan=self.plan, steps=steps, kind=self.kind, what=self.what)

    def found(self, event: Event) -> MigrationStep:
        return MigrationStep(event)

    def step(self, choice: MigrationStep) -> bool:
        text = choice.event.action
        return self._do(lambda: self.group.step(text), choice.event, self.of_steps)

    def rest(self) -> None:
        if not self.over:
            self._do(self.group.settle, None, AT_REST)

    def _do(self, act: Callable[[], bool], event: Event | None, kinds: Sequence[str]) -> bool:
        try:
            done = act()
        except SimulationBroken as error:
            self.over = done = True
            if self.wanted in ("", BROKEN):
                self.kind, self.what = BROKEN, error.why
        if event is not None and done:
            self.events.append(event)
        for kind in kinds if not self.over and (done or event is None) else ():
            counts = self.wanted in ("", kind) and (kind == DEAD or self.group.converted)
            if counts and (found := _BREAKS[kind](self.group)):
                self.over, self.kind, self.what = True, kind, found[0]
                break
        return done


def play(
    simulation: Simulation, plan: GroupPlan, steps: Sequence[str], wanted: str = "", at_rest: bool = True
) -> tuple[MigrationRun, MigrationGroup]:
    """Play ``steps`` until something is broken, or what is ``wanted``; the group is then left alone,
    ``at_rest``, and what is broken at its end is looked for too."""
    system = MigrationSystem(simulation, plan, wanted)
    systems.replay(system, map(Event, steps), rest=at_rest)
    return system.run, system.group


def drawn(simulation: Simulation, plan: GroupPlan, seed: str, length: int = 40) -> MigrationRun:
    """Return a run that follows from ``seed``: an opening, then single steps, with one fault at most."""
    system = MigrationSystem(simulation, plan, of_steps=(TWICE, OVERLAP))
    systems.walk(system, _choices(system, Seeded(seed), length), 1 << 30)
    return system.run


def _choices(system: MigrationSystem, draw: Seeded, length: int) -> Iterator[MigrationStep]:
    opening = [step for step in pick(draw, OPENINGS) if step.partition(" ")[2] in ("", *system.plan.members)]
    faults = 0 if draw.integer(0, 2) == 0 else 1
    yield from (MigrationStep(Event(step)) for step in opening)
    group = system.group
    victim, moves = pick(draw, group.letters), draw.integer(1, 14)  # who goes step by step, and then waits
    for _ in range(draw.integer(10, length)):
        step = _next(draw, group, faults > 0, victim, moves <= 0)
        moves -= step.endswith(victim)
        before = len(system.events)
        yield MigrationStep(Event(step))
        faults -= step.split()[0] in FAULTS and len(system.events) > before


def _next(draw: Seeded, group: MigrationGroup, may_fail: bool, victim: str, waits: bool) -> str:
    """Return a step that may be possible."""
    who = pick(draw, [one for one in group.letters if one != victim or not waits])
    if may_fail and draw.integer(0, 9) == 0:
        fault, whose = pick(draw, FAULTS), pick(draw, group.letters)
        return fault if fault == "failover" else f"{fault} {whose}"
    if not group.is_up(who):
        return f"start {who}"
    if draw.integer(0, 24) == 0:
        return f"leave {who}"
    if who != victim and draw.integer(0, 2):
        return f"run {who}"
    slot = group.letters.index(who)
    choices = []
    if any(one.member == slot and not one.abandoned for one in group.state.responses):
        choices.append("respond")
    if any(one.member == slot for one in group.state.requests):
        choices.append("deliver")
    if who in group.played:
        choices += ["send"] * group.played[who].can_send + ["reconcile"] * group.played[who].can_reconcile
    else:
        choices += ["poll", "beat"]
    return f"{pick(draw, choices or ['respond'])} {who}"


def smaller(simulation: Simulation, run: MigrationRun, tries: int = 300) -> MigrationRun:
    """Return the same breach by fewer steps, made so in so many ``tries``."""
    system, left = MigrationSystem(simulation, run.plan, run.kind), tries

    def fresh() -> MigrationSystem:
        nonlocal left
        left -= 1
        return system

    steps = systems.shortened(
        fresh, tuple(map(Event, run.steps)), run.cause, rest=True, may_go_on=lambda: left > 0
    )
    systems.replay(system, steps, rest=True)
    return system.run if run.cause in system.breaches else run
