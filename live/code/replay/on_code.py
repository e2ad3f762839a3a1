"""A run of the model forced on Kafka's own code: each step of the trace is some commands to a simulation.

Consumers and coordinator are both real here, so the coordinator is not the trace's: the caller decides which
message arrives when and which timer fires, and what Kafka makes of that is compared with the trace. What the
consumers show is put into the model's own observations and judged by the same clauses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations, product
from typing import Any

from rebalance_verifier.explore.groups.bugs import without
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.judge import ClauseJudge
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep, parting, replay_plan
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.clients.replay.verdict import LEADER, OBSERVABLE_CLAUSES, Replayed
from rebalance_verifier.live.code.releases import OLDEST_CONSUMER, OLDEST_COORDINATOR
from rebalance_verifier.live.code.replay.group import CodeGroup, CodeMember, CodeReleases
from rebalance_verifier.live.code.replay.steps import CodeSteps
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationBroken, SimulationDied
from rebalance_verifier.model.bugs.observed import (
    ABSENT,
    COORDINATOR,
    OBSERVED,
    OPEN,
    SHOWN,
    Observation,
    Observations,
)
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.parts import Life
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.properties.group.clauses import CONVERGES

SHOWN_BY_CODE = OBSERVABLE_CLAUSES | {
    "callback/generation", "coordinator/admit", "coordinator/full", "coordinator/keep", "coordinator/leader",
    "coordinator/repeat", "coordinator/static", "coordinator/vote", "group/converges", "group/instance",
    "group/size",
}  # fmt: skip
"""In a simulation the coordinator shows as well, and whether a group settles can be asked of it."""

LOOPS = 3
"""How often the steps are forced that a run takes again and again."""

ATTEMPTS = 8
"""At one run: each order of the member ids, and other ways to draw them. Assignors go through maps, by the
hashes of ids."""


ROUNDS = 60
"""Of everybody polling and everything arriving; a group of three that settles needs less than ten."""

PATIENT = 3
"""Rounds in which nothing changes, before time passes."""


class CodeReplayer:
    """One replay on a simulation. ``order``: the slots in the order in which their member ids sort;
    ``naming``: the number with which they begin."""

    def __init__(
        self,
        simulation: Simulation,
        run: SavedRun,
        releases: CodeReleases,
        order: Sequence[int],
        naming: int = 1,
    ) -> None:
        self.run, (self.setup, self.steps) = run, replay_plan(repeated(run))
        self.result = Replayed(
            clause=run.clause,
            client=str(releases),
            version=releases.sentence,
            naming=tuple(letter(slot) for slot in order),
            steps=len(run.events),
            observable_clauses=SHOWN_BY_CODE,
            parting=_parting(run, self.steps),
        )
        self.judge = ClauseJudge(self.setup, self.result)
        commits = any(event.action == "slow commit" for event in run.events)
        self.group = CodeGroup(simulation, self.setup, releases, order, naming, commits=commits)
        self.code = CodeSteps(self.group, self.result)

    # -- the run -----------------------------------------------------------------------------------------

    def play(self) -> Replayed:
        """Step by step until the end, or until Kafka goes another way. Raises SimulationBroken,
        SimulationDied."""
        self.group.begin()
        result = self.result
        for step in self.steps:
            self.group.seen = []
            noted = len(result.unforced) + len(result.differs)
            try:
                self.code.take(step)
            except NotForcible as why:
                result.unforced.append(f"{step.title}: {why}")
                noted += 1
                result.unable = result.unable or step.number
            except (Diverged, NotEnabled) as why:
                result.stopped = f"{step.title}: {why}"
                if isinstance(why, Diverged):
                    result.otherwise = result.otherwise or step.number
                self._judge(step)
                return result
            if len(result.unforced) + len(result.differs) > noted:
                result.otherwise = result.otherwise or step.number
            result.done = step.number
            self._judge(step)
        self._goes_on()
        return result

    def _goes_on(self) -> None:
        """The model's group never settles: does Kafka's?"""
        if self.run.clause != CONVERGES.id or self.run.loop is None or self.result.unforced:
            return
        if self.run.loop < len(self.run.events):
            self.judge.never_settles(self.steps[-1], f"all this happens {LOOPS} times in a row")
        elif why := unrest(self.group, self.steps[-1]):
            self.judge.never_settles(self.steps[-1], why)

    def _judge(self, step: ReplayStep) -> None:
        """Ask the clauses about what was seen and what each consumer and the coordinator have now."""
        values: dict[str, Any] = self.group.watch.views(self.group.state.coordinator)
        for member in self.group.members:
            values |= self.group.views(member)
        slots = (member.slot for member in self.group.members)
        owned = {letter(slot): self.group.spell(self.group.owned(slot)) for slot in slots}
        self.judge.ask(step, tuple(self.group.seen), values, owned)


def replay_on_code(
    run: SavedRun, releases: CodeReleases, simulation: Simulation, *, attempts: int | None = None
) -> Replayed:
    """Play ``run`` on Kafka's own code; the best of the attempts, each with other member ids.

    Raises CannotHappenError when the model does not allow the trace.
    """
    results: list[Replayed] = []
    drawn = product(range(1, ATTEMPTS + 1), permutations(run.setup.slots))
    for naming, order in islice(drawn, attempts or ATTEMPTS):
        replayer = CodeReplayer(simulation, run, releases, order, naming)
        try:
            replayer.play()
        except (SimulationBroken, SimulationDied) as error:
            replayer.result.stopped = str(error)
        results.append(replayer.result)
        best = min(results, key=lambda result: result.rank)
        why = " ".join((*best.unforced, best.stopped))
        decided = LEADER in why or any(result.renamed for result in results)
        if best.verdict == "same" or not decided:
            break
    return min(results, key=lambda result: result.rank)


# -- release by release --------------------------------------------------------------------------------

AT_ONCE = 10
"""Releases in one JVM."""


def observe(runs: Sequence[SavedRun], releases: CodeReleases, simulation: Simulation) -> Observation:
    """Return what the runs of one switch say of one release: it is enough that one of them shows it."""
    results: list[Replayed] = []
    for run in runs:
        results.append(replay_on_code(run, beside(run, releases), simulation))
        if results[-1].verdict == "same":
            return Observation(SHOWN)
    # What is spelled out is there because the smallest run says too little.
    if any(result.absent for result in results):
        return Observation(ABSENT)
    last = results[-1]
    why = last.stopped or next(iter(last.unforced), "") or last.why_unobservable
    return Observation(OPEN, why.partition("\n")[0])


def beside(run: SavedRun, releases: CodeReleases) -> CodeReleases:
    """Return the same releases, but those that the run needs for some of its members."""
    needed: Mapping[str, str] = run.origin.get("beside") or {}
    if not needed:
        return releases
    slots = run.setup.slots
    return replace(releases, consumers=tuple(needed.get(letter(slot), releases.of(slot)) for slot in slots))


def observe_part(
    part: str,
    runs: Mapping[str, Sequence[SavedRun]],
    releases: Sequence[str],
    other: str = "",
    progress: Callable[[str], None] = lambda line: None,
) -> Observations:
    """Return what came of the runs that show each switch, in each of the releases of a part
    (``model.bugs.observed``) that a simulation can have, with ``other`` of what it works with ("": the
    same as in ``observed.toml``). Raises ToolError.
    """
    other = other or OBSERVED[part].other
    oldest = version(OLDEST_COORDINATOR if part == COORDINATOR else OLDEST_CONSUMER)
    listed = tuple(one for one in releases if version(one) >= oldest)
    needed = dict.fromkeys(one for several in runs.values() for run in several for one in _needed(run))
    observations: dict[tuple[str, str], Observation] = {}
    for first in range(0, len(listed) if runs else 0, AT_ONCE):
        several = listed[first : first + AT_ONCE]
        coordinators, consumers = (several, [other]) if part == COORDINATOR else ([other], several)
        with Simulation(coordinators, [*consumers, *needed]) as simulation:
            for release in several:
                progress(f"{part} {release}")
                one = (release, other) if part == COORDINATOR else (other, release)
                on = CodeReleases(coordinator=one[0], consumers=(one[1],))
                observations |= {
                    (switch, release): observe(its, on, simulation) for switch, its in runs.items()
                }
    order = {(switch, release): observations[switch, release] for switch in runs for release in listed}
    return Observations(part=part, releases=listed, other=other, found=order)


def _needed(run: SavedRun) -> Iterator[str]:
    yield from (run.origin.get("beside") or {}).values()


# -- runs ----------------------------------------------------------------------------------------------


def repeated(run: SavedRun) -> SavedRun:
    """Return the run with its loop taken several times, if it has one."""
    if run.loop is None or run.loop == len(run.events):
        return run
    built = machine(run.setup)
    state, events = built.initial[0], list(run.events)
    for after, _ in built.replay(run.events):
        state = after
    for event in run.events[run.loop :] * (LOOPS - 1):
        # Member ids have numbers, which go on.
        outcomes = list(built.outcomes_of(built.by_name[event.action, event.who], state))
        outcome = next((one for one in outcomes if one.choice == event.choice), outcomes[0])
        events.append(event._replace(choice=outcome.choice))
        state = built.apply(state, events[-1], outcome)
    return replace(run, events=tuple(events))


def _parting(run: SavedRun, steps: Sequence[ReplayStep]) -> int | None:
    """Return where the first switch that the run was made with matters, if it says which."""
    switches = run.origin.get("switches") or ()
    return parting(steps, without(run.setup, switches[0])) if switches else None


# -- in the end ----------------------------------------------------------------------------------------


def unrest(group: CodeGroup, last: ReplayStep) -> str:
    """Return why the group does not settle although every message arrives, everybody who is up polls, and
    time passes where nothing else happens; "" when it does."""
    lives = {member.slot: last.member(after=True, name=letter(member.slot)).life for member in group.members}
    running = [member for member in group.members if lives[member.slot] is Life.UP]
    hung = [member for member in group.members if lives[member.slot] is Life.HUNG]
    idle, before = 0, group.state
    for _ in range(ROUNDS):
        for member in (*running, *hung):
            with contextlib.suppress(NotEnabled):
                group.do("heartbeat", member=member.slot)
            _arrives(group, member, only=() if member in running else ("Heartbeat",))
        for member in running:
            if group.state.members[member.slot] is not None:
                group.do("refresh", member=member.slot)
                group.do("poll", member=member.slot)
            _arrives(group, member)
        if not (why := _unsettled(group, running)):
            return ""
        idle = idle + 1 if _alike(group, before) else 0
        before = group.state
        if idle >= PATIENT:
            idle = 0
            if not _time_passes(group, [*running, *hung]):
                return why
    return why


def _arrives(group: CodeGroup, member: CodeMember, only: Sequence[str] = ()) -> None:
    """Deliver the requests and answers of a member; ``only`` these APIs, where some are named."""
    for api in list(member.open_requests):
        if api in (only or member.open_requests):
            group.deliver(member, api)
    for api in list(member.undelivered_answers):
        if api in (only or member.undelivered_answers):
            group.respond(member, api)


def _time_passes(group: CodeGroup, there: Sequence[CodeMember]) -> bool:
    """Fire one timer of the coordinator that a group at work does not prevent; return False when there is
    none."""
    alive = {one.member_id for member in there if (one := group.state.members[member.slot]) is not None}
    coordinator = group.state.coordinator
    gone = [
        one for one in (*(m.id for m in coordinator.members), *coordinator.pending_joins) if one not in alive
    ]
    for timer, member_id in (("rebalance", None), ("sync", None), *(("session", one) for one in gone)):
        with contextlib.suppress(NotEnabled):
            group.do("expire", timer=timer, **({} if member_id is None else {"member_id": member_id}))
            return True
    return False


def _alike(group: CodeGroup, before: object) -> bool:
    """Check whether the round has changed nothing but the time."""
    now = group.state
    assert isinstance(before, type(now))
    one, other = now.coordinator, before.coordinator
    return (one.state, one.generation, one.members, one.pending_joins, now.members) == (
        *(other.state, other.generation, other.members, other.pending_joins), before.members
    )  # fmt: skip


def _unsettled(group: CodeGroup, running: Sequence[CodeMember]) -> str:
    """Return what is not as it should be in the end, "" for nothing."""
    coordinator = group.state.coordinator
    there = [(member, one) for member in running if (one := group.state.members[member.slot]) and one.topics]
    if not there:
        return (
            ""
            if coordinator.state in (None, "EMPTY", "DEAD")
            else f"nobody is there, and the group is {coordinator.state}"
        )
    if coordinator.state != "STABLE":
        return f"the group stays {coordinator.state}"
    for member, one in there:
        if one.generation != coordinator.generation or one.state != "STABLE" or one.rejoin or one.joining:
            return f"{letter(member.slot)} is not in generation {coordinator.generation}"
    owned = [name for _, one in there for name in one.owned]
    wanted = {name for _, one in there for name in _partitions(group, one.topics)}
    if sorted(owned) != sorted(wanted):
        return f"{group.spell(group.bits(owned))} is owned of {group.spell(group.bits(wanted))}"
    return ""


def _partitions(group: CodeGroup, topics: Sequence[str]) -> Iterator[str]:
    for topic in topics:
        yield from (f"{topic}-{number}" for number in range(group.state.topics.get(topic, 0)))
