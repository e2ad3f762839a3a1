"""The search for what a conversion breaks: random runs with one fault at most, made small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance_verifier.base.draws import Seeded, pick
from rebalance_verifier.live.code.migration.group import GroupPlan, MigrationGroup, SimulationBroken
from rebalance_verifier.live.code.simulation import Simulation

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


def play(
    simulation: Simulation, plan: GroupPlan, steps: Sequence[str], wanted: str = "", at_rest: bool = True
) -> tuple[MigrationRun, MigrationGroup]:
    """Play ``steps`` until something is broken, or what is ``wanted``; the group is then left alone,
    ``at_rest``, and what is broken at its end is looked for too."""
    group = MigrationGroup(simulation, plan)
    done: list[str] = []

    def run(kind: str = "", what: str = "") -> tuple[MigrationRun, MigrationGroup]:
        return MigrationRun(plan=plan, steps=tuple(done), kind=kind, what=what), group

    def found(kind: str) -> bool:
        return not wanted or wanted == kind

    for step in steps:
        try:
            if not group.step(step):
                continue
        except SimulationBroken as error:
            done.append(step)
            return run(BROKEN, error.why) if found(BROKEN) else run()
        done.append(step)
        if group.converted and found(TWICE) and (twice := group.owned_twice()):
            return run(TWICE, twice[0])
        if group.converted and found(OVERLAP) and (both := group.overlaps()):
            return run(OVERLAP, both[0])
        if found(DEAD) and (dead := [who for who, one in group.played.items() if one.dead]):
            return run(DEAD, f"{dead[0]}: {group.played[dead[0]].dead}")
        if group.converted and found(THROWN) and group.thrown:
            return run(THROWN, group.thrown[0])
    if not at_rest:
        return run()
    try:
        group.settle()
    except SimulationBroken as error:
        return run(BROKEN, error.why) if found(BROKEN) else run()
    return run(*at_end(group, found))


def at_end(group: MigrationGroup, found: Callable[[str], bool]) -> tuple[str, str]:
    """Return what is broken in a group that was left alone: kind and what; empty where nothing is."""
    dead = [who for who, one in group.played.items() if one.dead]
    there = [who for who in group.letters if group.is_up(who) and who not in dead]
    if found(DEAD) and dead:
        return DEAD, f"{dead[0]}: {group.played[dead[0]].dead}"
    if not group.converted:
        return "", ""
    if found(THROWN) and group.thrown:
        return THROWN, group.thrown[0]
    if found(TWICE) and (twice := group.owned_twice()):
        return TWICE, twice[0]
    if found(NOBODY) and there and (nobody := group.unowned()):
        return NOBODY, nobody[0]
    if found(UNSETTLED) and (out := [who for who in there if not group.accepted(who)]):
        return UNSETTLED, out[0]
    return "", ""


# --- drawn -----------------------------------------------------------------------------------------------


def drawn(simulation: Simulation, plan: GroupPlan, seed: str, length: int = 40) -> MigrationRun:
    """Return a run that follows from ``seed``: an opening, then single steps, with one fault at most."""
    draw = Seeded(seed)
    opening = [step for step in pick(draw, OPENINGS) if step.partition(" ")[2] in ("", *plan.members)]
    group = MigrationGroup(simulation, plan)
    faults = 0 if draw.integer(0, 2) == 0 else 1
    steps = [step for step in opening if group.step(step)]
    victim, moves = pick(draw, group.letters), draw.integer(1, 14)  # who goes step by step, and then waits
    for _ in range(draw.integer(10, length)):
        step = _next(draw, group, faults > 0, victim, moves <= 0)
        moves -= step.endswith(victim)
        try:
            if not group.step(step):
                continue
        except SimulationBroken as error:
            return MigrationRun(plan=plan, steps=(*steps, step), kind=BROKEN, what=error.why)
        faults -= step.split()[0] in FAULTS
        steps.append(step)
        if group.converted and (twice := group.owned_twice()):
            return MigrationRun(plan=plan, steps=tuple(steps), kind=TWICE, what=twice[0])
        if group.converted and (both := group.overlaps()):
            return MigrationRun(plan=plan, steps=tuple(steps), kind=OVERLAP, what=both[0])
    try:
        group.settle()
    except SimulationBroken as error:
        return MigrationRun(plan=plan, steps=tuple(steps), kind=BROKEN, what=error.why)
    kind, what = at_end(group, lambda kind: True)
    return MigrationRun(plan=plan, steps=tuple(steps), kind=kind, what=what)


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


# --- smaller ---------------------------------------------------------------------------------------------


def smaller(simulation: Simulation, run: MigrationRun, tries: int = 300) -> MigrationRun:
    """Return the same breach by fewer steps: parts are left out as long as what is broken is of the same
    kind."""
    best, left = run, tries
    size = max(1, len(best.steps) // 2)
    while size:
        shorter = None
        for steps in _without(best.steps, size):
            if not left:
                return best
            left -= 1
            played, _ = play(simulation, run.plan, steps, run.kind)
            same = played.kind == run.kind and _error(played) == _error(run)
            if same and len(played.steps) < len(best.steps):
                shorter = played
                break
        if shorter:
            best = shorter
            size = min(size, max(1, len(best.steps) // 2))
        else:
            size //= 2
    return best


def _error(run: MigrationRun) -> str:
    """Return what a client or the coordinator throws, without whose it is."""
    return run.what.rpartition(": ")[2] if run.kind in (DEAD, THROWN, BROKEN) else ""


def _without(steps: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(steps) - size, -1, -1):
        yield steps[:start] + steps[start + size :]
