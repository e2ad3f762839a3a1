"""Model and Kafka's own code, step by step at once: after each step both have to look alike.

A walk takes a step that the model allows, does it to the simulation, and lets the model do what Kafka did in
the same call: end a join phase, refuse what is parked, send the JoinGroup that is due. Which member leads and
what it decides is Kafka's to say. What is left has to be equal.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.code.lockstep.comparison import (
    CodeSight,
    IdNames,
    ModelSight,
    differences,
    records_of,
    spelled,
)
from rebalance_verifier.live.code.lockstep.deviations import (
    DEVIATIONS,
    OUTDATED_SNAPSHOT,
    PREPARES_IN_FLIGHT,
    Memory,
    never_answered,
    prepared_in_flight,
    still_waiting,
)
from rebalance_verifier.live.code.lockstep.steps import LockSteps, can_enforce, lost
from rebalance_verifier.live.code.replay.group import CodeGroup, CodeReleases
from rebalance_verifier.live.code.replay.steps import GROUP_EXPIRY
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationBroken, SimulationDied
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Callback, Threw
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event, Machine, Options, Outcome, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """The first step after which model and code are not alike. ``events``: the run up to it, itself last;
    none where Kafka's code does not even begin."""

    events: tuple[Event, ...]
    sentences: tuple[str, ...]

    @property
    def cause(self) -> str:
        """Return what disagrees, without what differs from run to run: the event's action and the first
        sentence."""
        last = self.events[-1].action if self.events else "the beginning"
        return f"{last}: {self.sentences[0]}"


@dataclass(kw_only=True)
class Agreement:
    """Agreements and differences that lockstep has seen so far.

    ``steps`` agreed; ``taken`` by action, ``unforced`` by action and why; ``deviations``: those that Kafka is
    known to have; ``threw``: what assignors threw; ``in_vain``: what was done to Kafka that is no step of the
    model, and had no effect. Of ``decisions`` of leaders so many were also the
    model's (``predicted``).
    """

    walks: int = 0
    steps: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    unforced: Counter[tuple[str, str]] = field(default_factory=Counter)
    deviations: Counter[str] = field(default_factory=Counter)
    threw: Counter[str] = field(default_factory=Counter)
    decisions: int = 0
    predicted: int = 0
    in_vain: int = 0

    def add(self, other: Agreement) -> None:
        """Add the counts of another."""
        self.walks += other.walks
        self.steps += other.steps
        self.decisions += other.decisions
        self.predicted += other.predicted
        self.in_vain += other.in_vain
        self.taken.update(other.taken)
        self.unforced.update(other.unforced)
        self.deviations.update(other.deviations)
        self.threw.update(other.threw)


POLL, ENFORCE, SESSION, EXPIRE, CRASH, BEAT, LEFT = NO_STEPS = (
    "polls in vain", "enforces in vain", "session ends in vain", "group expires in vain", "crashes in vain",
    "heartbeats in vain", "overtaken in vain",
)  # fmt: skip
"""What is no step of the model."""

BY_POLL = ("join", "complete", "listener throws", "slow commit")
"""What a poll may come to."""


FOLLOWED = tuple((one.id, one.follow) for one in DEVIATIONS if one.follow is not None)
"""Deviations that the model follows in the step in which they show."""


class _Disagrees(Exception):
    pass


class Lockstep:
    """One group, as model and as code. ``built`` is the machine of ``setup``."""

    def __init__(self, simulation: Simulation, setup: Setup, built: Machine, releases: CodeReleases) -> None:
        self.setup, self.built = setup, built
        self.ids = IdNames()
        commits = "slow commit" in setup.faults
        self.group = CodeGroup(simulation, setup, releases, list(setup.slots), commits=commits)
        self.code = LockSteps(self.group, self.ids)
        self._model_sight, self._code_sight = ModelSight(setup, built), CodeSight(self.group, self.ids)
        self._options = Options(built)
        self.state: State = built.initial[0]
        self.memory = Memory()
        self.events: list[Event] = []
        self.seen = Agreement(walks=1)

    def begin(self) -> Disagreement | None:
        """Return both from their beginning."""
        try:
            self.group.begin()
        except (NotEnabled, SimulationBroken, SimulationDied) as why:
            return Disagreement(events=(), sentences=(str(why),))
        return None

    def possible(self) -> Options:
        """Return what the model can do now."""
        self._options.move(self.state)
        return self._options

    def step(self, event: Event, outcome: Outcome) -> Disagreement | None:
        """Take one step in both. Raises NotForcible before anything was done."""
        after = self.built.apply(self.state, event, outcome)
        step = ReplayStep(
            number=len(self.events) + 1, event=event, outcome=outcome, before=self.state, after=after,
            built=self.built, position=0, plan=(),
        )  # fmt: skip
        self.group.seen, self.group.refreshed = [], []
        self.memory.before = self.group.state.coordinator
        expected = list(outcome.seen)
        trouble = ""
        try:
            self.code.take(step)
        except (Diverged, NotEnabled, SimulationBroken, SimulationDied) as why:
            trouble = str(why)
        self.events.append(event)
        try:
            if trouble:
                raise _Disagrees(trouble)
            if event.action == "assign":
                after = self._decided(step, self._assigned(step, after))
            elif event.action == "join phase ends":
                event, outcome = next(self._elected(self.state), (event, outcome))
                after, expected = self.built.apply(self.state, event, outcome), list(outcome.seen)
            self.memory.expected = expected
            self.state = self._follow(step, after, expected)
            self._compare(expected)
        except _Disagrees as why:
            return Disagreement(events=tuple(self.events), sentences=tuple(map(str, why.args)))
        self.state = self.built.put(self.state, "budget", self.setup.budget)  # or all faults were asked anew
        self.seen.deviations.update(set(self.memory.unanswered.values()))
        self.seen.steps += 1
        self.seen.taken[event.action] += 1
        return None

    # -- what the model has no step for ------------------------------------------------------------------

    def in_vain(self) -> list[Event]:
        """Return what can be done to Kafka now although no step of the model is like it: nothing may come of
        it."""
        can = self.possible().can
        up = [slot for slot in self.setup.slots if self._part(self.state, "member", slot).life is p.Life.UP]
        found = [
            Event(POLL, slot)
            for slot in up
            if not any(can(name, slot) for name in BY_POLL)
            and not lost(self._part(self.state, "wire", slot))
            and not self._commits_within_a_poll(slot)
        ]
        found += [
            Event(ENFORCE, slot)
            for slot in (up if "enforce" in self.setup.faults else ())
            if not can("enforce", slot) and can_enforce(self.group.releases, slot)
        ]
        for real in (one.id for one in self.group.state.coordinator.members):
            slot, number = self.ids.number(real) or (NOBODY, NOBODY)
            expires = can("session expires", slot) or can("session timeout", slot)
            if slot != NOBODY and not expires:
                found.append(Event(SESSION, slot, f"id {number}"))
        if self.built.value(self.state, "group").state not in (p.GroupState.EMPTY, p.GroupState.DEAD):
            found.append(Event(EXPIRE, NOBODY))
        found += [
            Event(CRASH, slot)
            for slot in (self.setup.slots if "crash" in self.setup.faults else ())
            if not can("crash", slot) and self.group.state.members[slot] is not None
        ]
        return found

    def _commits_within_a_poll(self, slot: int) -> bool:
        member = self._part(self.state, "member", slot)
        return member.committing and self.code.waits(self.group.members[slot])

    def try_in_vain(self, event: Event) -> Disagreement | None:
        """Do one of these. Where something comes of it that is a disagreement."""
        self.events.append(event)
        self.group.seen, self.group.refreshed = [], []
        expected: list[Any] = []
        try:
            if event.action == POLL:
                self.group.ready(self.group.members[event.who])
                self.group.do("poll", member=event.who)
                expected = self._polled(event.who)
            elif event.action == CRASH:
                self.group.do("crash", member=event.who, arrive=True)
            elif event.action == EXPIRE:
                self.group.do("expire", timer=GROUP_EXPIRY)
            elif event.action == ENFORCE:
                self.group.do("enforce", member=event.who)
            else:
                real = self.ids.real(event.who, int(event.choice.removeprefix("id ")))
                with contextlib.suppress(NotEnabled):  # its timer is not set
                    self.group.do("expire", timer="session", member_id=real)
            self._compare(expected)
        except (_Disagrees, SimulationBroken, SimulationDied) as why:
            return Disagreement(events=tuple(self.events), sentences=tuple(map(str, why.args)))
        self.seen.in_vain += 1
        return None

    def _polled(self, slot: int) -> list[Any]:
        """The model does what Kafka is known to do in such a poll."""
        if prepared := prepared_in_flight(self.built, self.state, MemberContext(p.Slot(slot), self.setup)):
            self.state, seen = prepared
            self.seen.deviations[PREPARES_IN_FLIGHT.id] += 1
            return list(seen)
        if "JoinGroup" in self.group.members[slot].open_requests and self.memory.is_outdated(slot):
            member = self._part(self.state, "member", slot)._replace(rejoin=True)
            state = self.built.put(self.state, f"member {letter(slot)}", member)
            for join, outcome in self._possible("join", slot, state):
                self.state = self.built.apply(state, join, outcome)
                self.seen.deviations[OUTDATED_SNAPSHOT.id] += 1
                return list(outcome.seen)
        return []

    # -- what Kafka did in the same call -----------------------------------------------------------------

    def _follow(self, step: ReplayStep, state: State, expected: list[Any]) -> State:
        """The model does what Kafka does at once."""
        armed_again = self._armed_again(step)
        if armed_again:
            state = step.before
        elif step.event.action in ("failover", "join phase ends"):
            state = still_waiting(self.built, step.before, state, self.memory) or state
        for deviation, follow in FOLLOWED:
            if (deviant := follow(step, state, self.group, self.memory)) is not None:
                state = deviant
                self.seen.deviations[deviation] += 1
        before = step.before
        while True:
            self._learn(before, state)
            found = next(self._due(step, state, armed_again), None)
            if found is None:
                return state
            event, outcome = found
            expected += outcome.seen
            self.seen.taken[event.action] += 1
            before, state = state, self.built.apply(state, event, outcome)
            state = still_waiting(self.built, before, state, self.memory) or state

    def _due(self, step: ReplayStep, state: State, armed_again: bool) -> Iterator[tuple[Event, Outcome]]:
        group = self.built.value(state, "group")
        for slot in self.setup.slots:
            if not never_answered(self.built, state, self.group, self.memory, slot):
                yield from self._possible("join refused", slot, state)
                yield from self._possible("sync refused", slot, state)
        if step.event.action in ("rebalance timeout", "slow member") and not armed_again:
            yield from self._passed_for_others(step, state)
        ended = self.group.state.coordinator.state != "PREPARING_REBALANCE"
        if group.state is p.GroupState.PREPARING and (ended or not (group.first or self.memory.full)):
            yield from self._elected(state)
        for slot in self.group.refreshed:
            yield from self._possible("refresh", slot, state)
        for slot in self.setup.slots:
            member = self.group.members[slot]
            if "OffsetCommit" in member.open_requests and not self._part(state, "member", slot).committing:
                yield from self._possible("slow commit", slot, state)
            if "JoinGroup" in member.open_requests and not isinstance(
                self._part(state, "wire", slot), s.Join
            ):
                yield from self._refused_within(slot, state)
                yield from self._possible("join", slot, state)

    def _refused_within(self, slot: int, state: State) -> Iterator[tuple[Event, Outcome]]:
        """Yield the commit before a join, where a poll waited for it and heard that the membership is
        over."""
        mine, member = self.group.state.members[slot], self._part(state, "member", slot)
        over = mine is not None and mine.generation == p.NONE != member.generation
        if over and self.group.commits and self.code.waits(self.group.members[slot]):
            yield from self._possible("commit refused" if member.committing else "slow commit", slot, state)

    def _armed_again(self, step: ReplayStep) -> bool:
        """Check whether a join phase goes on although its time is over: nobody came, and static members
        stay."""
        if not step.event.choice.startswith("join of"):
            return False
        now, before = self.group.state.coordinator, self.memory.before
        return before is not None and (now.state, now.generation) == (before.state, before.generation)

    def _passed_for_others(self, step: ReplayStep, state: State) -> Iterator[tuple[Event, Outcome]]:
        """One timer is that of all who are missing. Of those who did not sync the first one's removal has
        ended the generation: the others go by the end of their session."""
        joining = step.event.choice.startswith("join")
        names = ("rebalance timeout", "slow member") if joining else ("session expires", "session timeout")
        known = [self.ids.name(one.id) for one in self.group.state.coordinator.members]
        for slot in self.setup.slots:
            for name in names:
                for event, outcome in self._possible(name, slot, state):
                    number = int(event.choice.rpartition(" ")[2])
                    admitted = any(r.id == number and r.meta for r in records_of(self.built, state, slot))
                    gone = admitted and spelled(slot, number) not in known
                    if event.choice.startswith("join") if joining else gone:
                        yield event, outcome

    def _elected(self, state: State) -> Iterator[tuple[Event, Outcome]]:
        coordinator = self.group.state.coordinator
        leader = self.ids.name(coordinator.leader)
        for event, outcome in self._possible("join phase ends", NOBODY, state):
            group = self.built.value(self.built.apply(state, event, outcome), "group")
            chosen = group.leader is None or spelled(*group.leader) == leader
            if chosen and group.protocol in (None, coordinator.protocol):
                yield event, outcome

    def _possible(self, name: str, who: int, state: State) -> Iterator[tuple[Event, Outcome]]:
        action = self.built.by_name.get((name, who))
        if action is not None:
            for outcome in self.built.outcomes_of(action, state):
                yield Event(name, who, outcome.choice), outcome

    def _learn(self, before: State, after: State) -> None:
        """Member ids that were given in this step."""
        coordinator = self.group.state.coordinator
        for slot in self.setup.slots:
            old = {record.id for record in records_of(self.built, before, slot)}
            fresh = [r.id for r in records_of(self.built, after, slot) if r.id not in old]
            if fresh:
                real = [one.id for one in coordinator.members if one.client[-1] == letter(slot)]
                real += [one for one in coordinator.pending_joins if one[1:2] == letter(slot)]
                self.ids.learn(slot, fresh, real)

    def _part(self, state: State, part: str, slot: int) -> Any:
        return self.built.value(state, f"{part} {letter(slot)}")

    def _assigned(self, step: ReplayStep, after: State) -> State:
        """Return the state after the leader's decision; it may have waited for newer metadata."""
        who = step.event.who
        if who not in self.group.refreshed:
            return after
        for refresh in self._possible("refresh", who, step.before):
            fresh = self.built.apply(step.before, *refresh)
            for assign in self._possible("assign", who, fresh):
                return self.built.apply(fresh, *assign)
        return after

    # -- what is Kafka's to say --------------------------------------------------------------------------

    def _decided(self, step: ReplayStep, after: State) -> State:
        """Return the state with the leader's own decision instead of the model's."""
        wire = step.wire(after=True)
        sync = self.group.members[step.event.who].open_requests.get("SyncGroup")
        if isinstance(wire, s.Sync) and sync is None:
            return self._threw(step, after)
        if step.event.choice == "throws" and sync is not None and sync.generation is not None:
            joined = step.wire()
            assert isinstance(joined, s.JoinOk)
            wire = s.Sync(
                joined.id, joined.generation, (p.Grant(p.Id(p.Slot(step.event.who), joined.id), p.Parts(0)),)
            )
            member = self._part(after, "member", step.event.who)
            member = member._replace(rejoin=step.member().rejoin)
            after = self.built.put(after, f"member {step.name}", member)
        if not isinstance(wire, s.Sync) or not wire.grants or sync is None:
            return after
        grants = []
        for real, parts in sync.assignments.items():
            number = self.ids.number(real)
            if number is None:
                raise _Disagrees(f"the leader assigns to {real}, which the model does not know")
            grants.append(p.Grant(p.Id(p.Slot(number[0]), number[1]), p.Parts(self.group.bits(parts or ()))))
        grants.sort()
        self.seen.decisions += 1
        mine = {one.grants for one in self._answers(step) if isinstance(one, s.Sync) and one.grants}
        if tuple(grants) in mine:
            self.seen.predicted += 1
        else:
            mine |= {
                one.grants for one in self._answers(step, "every") if isinstance(one, s.Sync) and one.grants
            }
            settled = len(self.setup.topics) == 1 and not self.setup.racks
            settled = settled and not any("topic" in one.action for one in self.events)
            ids = [one.id for one in grants]  # who was removed since is in the leader's list still
            mine = {one for one in mine if [grant.id for grant in one] == ids}
            if settled and mine and self._quality(grants) not in map(self._quality, mine):
                raise _Disagrees(f"the leader decides {grants}, the model {sorted(mine)}")
        return self.built.put(after, f"wire {step.name}", wire._replace(grants=tuple(grants)))

    def _metas(self) -> dict[p.Id, s.Metadata]:
        """Return what the coordinator knows of its members."""
        return {
            p.Id(p.Slot(slot), record.id): record.meta
            for slot in self.setup.slots
            for record in records_of(self.built, self.state, slot)
            if record.meta is not None
        }

    def _quality(self, grants: Sequence[p.Grant]) -> tuple[list[int], int]:
        """Return how many partitions members are given, and how many stay with who claims them."""
        metas = self._metas()
        known = [(one.parts, metas[one.id]) for one in grants if one.id in metas]
        stay = sum((parts & (meta.owned | meta.last)).bit_count() for parts, meta in known)
        return sorted(parts.bit_count() for parts, _ in known), stay

    def _answers(self, step: ReplayStep, naming: str = "given") -> Iterator[s.Wire]:
        """Yield what the model's assignor may decide, with members and partitions under the names that they
        have or under any."""
        state, who = step.before, step.event.who
        if who in self.group.refreshed:
            for refresh in self._possible("refresh", who, state):
                state = self.built.apply(state, *refresh)
        action = self.built.by_name["assign", who]
        assert isinstance(action.run, partial)
        (me,) = action.run.args
        named = replace(me, setup=replace(me.setup, naming=naming))
        values = [self.built.value(state, name) for name in action.reads]
        for outcome in action.run.func(named, *values):
            yield dict(zip(action.writes, outcome.values, strict=True))[f"wire {step.name}"]

    def _threw(self, step: ReplayStep, after: State) -> State:
        """Return the state when the leader's assignor threw, as the next poll tells."""
        self.group.do("poll", member=step.event.who)
        why = next((one.error for one in self.group.seen if isinstance(one, Threw)), None)
        if why is None:
            raise _Disagrees("the leader decides nothing, and poll does not throw")
        self.seen.threw[why] += 1
        member = self._part(after, "member", step.event.who)._replace(rejoin=True)
        after = self.built.put(after, f"member {step.name}", member)
        return self.built.put(after, f"wire {step.name}", None)

    # -- comparing ---------------------------------------------------------------------------------------

    def _compare(self, expected: Sequence[Any]) -> None:
        model, code = self._model_sight.all(self.state), self._code_sight.all()
        for member in self.group.members:
            if self._part(self.state, "member", member.slot).unfetched and self.code.waits(member):
                model.pop(f"{letter(member.slot)} reads")  # within the poll that commits nobody can look
                code.pop(f"{letter(member.slot)} reads", None)
        found = differences(model, code)
        heard = [_call(self.setup, one) for one in self.group.seen if isinstance(one, Callback)]
        due = [_call(self.setup, one) for one in expected if isinstance(one, Callback)]
        if heard != due:
            ours, theirs = (", ".join(calls) or "none" for calls in (due, heard))
            found.append(f"callbacks: the model has {ours}, Kafka {theirs}")
        if found:
            raise _Disagrees(*found)


def _call(setup: Setup, one: Callback) -> str:
    return f"{letter(one.who)} {one.call.value} {setup.spell(one.parts)}"
