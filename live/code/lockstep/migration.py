"""A group on its way between the protocols, as model and on the shipped coordinator, step by step at once.

Its clients are the model's, of both kinds: members of the classic protocol send JoinGroup, SyncGroup,
Heartbeat and LeaveGroup to Kafka's coordinator, and a leader assigns what the model's leader does. Whom
Kafka makes the leader, the model lets decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.answers import Partitions, RegisteredMember, SimulationResponse
from rebalance_verifier.live.code.lockstep.classic import BEAT, Disagreement
from rebalance_verifier.live.code.lockstep.consumer import ANEW, OF_THE_GROUP, ServedLockstep
from rebalance_verifier.live.code.lockstep.deviations import NEVER_ANSWERED, SENT_BACK
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationBroken, SimulationDied
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.conversion import following, keeps_protocols, may_upgrade
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import CLASSIC, MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event, Machine, Options, Outcome, PossibleStep, State
from rebalance_verifier.model.migration.coordinator import heartbeat, refusal

DECIDES, ENDS, ARRIVES, BEATS = "leader decides", "join phase ends", "request arrives", "beat"

NO_GENERATION = -1

ROUNDS = 4
"""A first join phase goes on for as long as somebody new has come."""

PHASES = {
    p.GroupState.EMPTY: "EMPTY",
    p.GroupState.PREPARING: "PREPARING_REBALANCE",
    p.GroupState.COMPLETING: "COMPLETING_REBALANCE",
    p.GroupState.STABLE: "STABLE",
}


class _LedOptions(Options):
    """Steps that the model can take, but that Kafka's leader alone decides, and then at once.

    ``deciding``: its SyncGroup is arriving. ``classic``: nobody begins to speak the consumer protocol.
    """

    deciding = classic = False

    def among(self, *, faults: bool) -> Iterator[PossibleStep]:
        for one in super().among(faults=faults):
            kept = self.classic and _begins(one[0], one[1])
            if (one[0].action == DECIDES) is self.deciding and not kept:
                yield one


def _begins(event: Event, outcome: Outcome) -> bool:
    """Check whether a process starts, or is to, that speaks the consumer protocol."""
    return event.action in ("start", "bounce") and any(
        isinstance(value, s.ConsumerMember) for value in outcome.values
    )


class MigratingLockstep(ServedLockstep):
    """One group with members of both protocols, as model and on the coordinator of a simulation.

    ``classic``: for how many steps it is one of the classic protocol, where members begin with that.
    """

    classic = 0

    both = (*OF_THE_GROUP, DECIDES, ENDS, ARRIVES, BEATS, "bounce")

    def __init__(self, simulation: Simulation, setup: Setup, built: Machine, releases: CodeReleases) -> None:
        super().__init__(simulation, setup, built, releases)
        self.config: Mapping[str, object] = {
            **self.config,
            "group.initial.rebalance.delay.ms": 0,
            "group.consumer.migration.policy": setup.policy,
        }
        self._options: _LedOptions = _LedOptions(built)
        self._waits: dict[int, int] = {}  # by slot, its request that Kafka has not answered
        self._came: dict[int, SimulationResponse] = {}  # by slot, the answer that came to it in this step
        self._leads = NOBODY  # whose SyncGroup is arriving, by which it decides
        self._joins = 0
        self._mixed = any(consumer.stages[0].group_protocol == CLASSIC for consumer in setup.consumers)
        self._followed: list[str] = []
        self._deviates = ""
        self._anew = False  # Kafka has deleted the group when nobody was left

    # -- what a walk needs -------------------------------------------------------------------------------

    def possible(self) -> Options:
        self._options.deciding = self._leads != NOBODY
        self._options.classic = len(self.events) < self.classic and self._mixed
        return super().possible()

    def in_vain(self) -> list[Event]:
        """Heartbeats that nothing comes of."""
        can = self.possible().can
        return [
            Event(BEAT, slot)
            for slot in self.setup.slots
            if self._leads == NOBODY and self._beats(slot) and not can(BEATS, slot)
        ]

    def _beats(self, slot: int) -> bool:
        member = self._part(self.state, "member", slot)
        in_group = isinstance(member, s.ClassicMember) and member.generation != p.NONE
        return in_group and member.life is p.Life.UP and member.state is p.MemberState.STABLE

    def try_in_vain(self, event: Event) -> Disagreement | None:
        self.events.append(event)
        group, book = self.built.value(self.state, "group"), self._book(self.state)
        me = MemberContext(p.Slot(event.who), self.setup)
        ours = heartbeat(me, self._part(self.state, "member", event.who), group, book) or "NONE"
        self._answers = []
        try:
            self._beat(event.who)
        except (NotEnabled, SimulationBroken, SimulationDied) as why:
            return Disagreement(events=tuple(self.events), sentences=(str(why),))
        differences = [*self._differ(self.state), *self._compared("the heartbeat", ours, self._answers[0])]
        if differences:
            return Disagreement(events=tuple(self.events), sentences=tuple(differences))
        self.seen.in_vain += 1
        return None

    def step(self, event: Event, outcome: Outcome) -> Disagreement | None:
        if (event.action == DECIDES) is (self._leads == NOBODY):
            raise NotForcible("whom Kafka made the leader decides, as soon as its SyncGroup arrives")
        self._came, self._followed, self._deviates = {}, [], ""
        return super().step(event, outcome)

    def _goes_on(self, after: State) -> State:
        """Return a join phase that Kafka has ended, and refusals of what waits."""
        self._followed, self._deviates = [], ""
        after = self._sent_back(after)
        while True:
            for action in self.built.actions:
                ends = action.name == ENDS and self._phase() != "PREPARING_REBALANCE"
                if ends or action.name == "request refused":
                    outcome = next(iter(self.built.outcomes_of(action, after)), None)
                    if outcome is not None:
                        after = self._followed_by(after, Event(action.name, action.who), outcome)
                        break
            else:
                return after

    def _sent_back(self, after: State) -> State:
        """Return the state in which a full classic group has refused whoever waits: it was converted before
        it was found full, and stays as it was."""
        most = self.setup.max_size
        group: s.ConsumerGroup = self.built.value(after, "group")
        if most is None or group.kind is not s.GroupKind.CLASSIC or sum(map(len, self._book(after))) < most:
            return after
        wires = [
            (self._part(self.state, "wire", slot), self._part(after, "wire", slot))
            for slot in self.setup.slots
        ]
        if not any(isinstance(before, s.Beat) and before is not now for before, now in wires):
            return after
        heard = [slot for slot, answer in self._came.items() if answer.error == p.Error.REBALANCE_IN_PROGRESS]
        for slot in heard:
            name = f"wire {letter(slot)}"
            waits = self.built.value(after, name)
            if not isinstance(waits, s.ClassicMessage) or waits.step not in s.WAITING:
                continue
            if any(self.built.outcomes_of(self.built.by_name["request refused", slot], after)):
                continue  # by the model, too
            self._deviates = SENT_BACK.id
            after = self.built.put(after, name, refusal(waits, p.Error.REBALANCE_IN_PROGRESS))
            after = self._stands_up(after, slot)
        return after

    def _stands_up(self, after: State, slot: int) -> State:
        """Return the state in which no JoinGroup of the slot waits."""
        records: s.ConsumerRecords = self._part(after, "record", slot)
        left = tuple(record._replace(joined=False) for record in records)
        return self.built.put(after, f"record {letter(slot)}", left)

    def _followed_by(self, before: State, event: Event, outcome: Outcome) -> State:
        """Return the state after one of these."""
        self._followed.append(event.action)
        after = self.built.apply(before, event, outcome)
        if event.action == ENDS:
            return after
        name = f"wire {letter(event.who)}"
        waits, answer = self.built.value(before, name), self.built.value(after, name)
        gone = waits.step is s.ClassicStep.SYNC_WAITS and answer.error is p.Error.UNKNOWN_MEMBER_ID
        if not gone or event.who in self._came:
            return after
        self._deviates = NEVER_ANSWERED.id  # its client gives it up
        return self.built.put(after, name, answer._replace(error=p.Error.DISCONNECT))

    def _agreed(self, event: Event, after: State) -> None:
        group: s.ConsumerGroup = self.built.value(after, "group")
        if event.action == "failover" and group.log is not None and group.log.newest > group.epoch:
            # The generations that were lost are used again by Kafka, and not by the model.
            newest = group.log.newest
            self._lives = (*self._lives, (newest + 1, self._kafka(group.epoch) - newest))
        super()._agreed(event, after)
        self.seen.taken.update(self._followed)
        if self._deviates:
            self.seen.deviations[self._deviates] += 1
        if event.action == DECIDES:
            self._leads = NOBODY
        if event.action in self.both:
            # Of an empty consumer group, for instance, by a JoinGroup that it refuses.
            self._anew = not any(self._book(after)) and self._code.coordinator.consumer is None
        for slot in self.setup.slots:
            wire = self._part(after, "wire", slot)
            if not isinstance(wire, s.ClassicMessage) or wire.step not in s.WAITING:
                self._waits.pop(slot, None)

    def _outcomes(self, event: Event, first: Outcome) -> Iterator[Outcome]:
        if event.action not in (ARRIVES, "bounce"):
            yield from super()._outcomes(event, first)
            return
        yield first
        action = self.built.by_name[event.action, event.who]
        yield from (one for one in self.built.outcomes_of(action, self.state) if one != first)

    # -- what is done ------------------------------------------------------------------------------------

    def _of_client(self, event: Event, after: State) -> None:
        member = None if event.who == NOBODY else self._part(after, "member", event.who)
        if event.action == "start" and isinstance(member, s.ClassicMember):
            self._real.pop((event.who, member.id), None)  # Kafka gives it one
        else:
            super()._of_client(event, after)

    def _check_possible(self, event: Event, after: State) -> None:
        super()._check_possible(event, after)
        if event.action in ("session expires", "session timeout"):
            one = self._registered(self._real[event.who, int(event.choice.removeprefix("id "))])
            if one is not None and not one.new and (one.joining or one.syncing):
                raise NotForcible("no session ends while a request of its member waits")

    def _take(self, event: Event, after: State) -> None:
        who = event.who
        match event.action:
            case "beat":
                self._beat(who)
            case "request arrives":
                self._arrives(who, self._part(self.state, "wire", who))
            case "leader decides":
                self._decides(after)
            case "join phase ends":
                for _ in range(ROUNDS):
                    if self._phase() == "PREPARING_REBALANCE":
                        self._do({"do": "expire", "timer": "rebalance"})
            case "session expires" | "session timeout" if self._kind() is s.GroupKind.CLASSIC:
                real = self._real[who, int(event.choice.removeprefix("id "))]
                self._do({"do": "expire", "timer": "session", "member_id": real})
            case "close" | "bounce" if isinstance(self._part(self.state, "member", who), s.ClassicMember):
                self._leaves_classic(who)
            case "bounce":
                self._leaves(who, self._part(self.state, "wire", who))
            case _:
                super()._take(event, after)
        self._empties()

    def _empties(self) -> None:
        """A group that was left before its first join phase began is empty only after its delay, and a
        policy that lets no group go up keeps it until then."""
        coordinator = self._code.coordinator
        if (
            coordinator.state == PHASES[p.GroupState.PREPARING]
            and not coordinator.members
            and not may_upgrade(self.setup)
        ):
            self._do({"do": "expire", "timer": "rebalance"})

    def _beat(self, who: int) -> None:
        member: s.ClassicMember = self._part(self.state, "member", who)
        self._exchange({"do": "send", "member": who, "api": "HEARTBEAT", **self._identity(who, member)})

    def _identity(self, who: int, one: s.ClassicMember | s.ClassicMessage) -> JsonLine:
        real = self._real[who, one.id]
        generation = self._generation(one.generation)
        return {"member_id": real, "generation": generation, "instance": self._instance(who)}

    def _leaves_classic(self, who: int) -> None:
        """LeaveGroup of who has an id; a static member sends none."""
        real = self._real.get((who, self._part(self.state, "member", who).id))
        if real is not None and self._instance(who) is None:
            self._exchange({"do": "send", "member": who, "api": "LEAVE_GROUP", "member_id": real})

    def _arrives(self, who: int, message: s.ClassicMessage) -> None:
        if message.step is s.ClassicStep.JOIN:
            self._join(who, message)
            return
        coordinator = self._code.coordinator
        real = self._real[who, message.id]
        mine = (PHASES[p.GroupState.COMPLETING], real, self._kafka(message.generation))
        if (coordinator.state, coordinator.leader, coordinator.generation) == mine:
            self._leads = who
            return
        self._requests(
            who, {"api": "SYNC_GROUP", **self._of_protocol(message), **self._identity(who, message)}
        )

    def _join(self, who: int, message: s.ClassicMessage) -> None:
        """Each says something else in its user data, so that a classic group rebalances, as the model's."""
        self._joins += 1
        fields: JsonLine = {
            "api": "JOIN_GROUP",
            "generation": self._generation(message.generation),
            "instance": self._instance(who),
            "topics": self.names(message.topics),
            "partitions": self._partitions(message.parts),
            "noise": self._joins,
        }
        if message.protocols:
            fields["protocols"] = list(message.protocols)
        record = s.find(self._part(self.state, "record", who), message.id) is not None
        real = "" if message.generation == p.NONE and not record else self._real[who, message.id]
        if not real and self._instance(who) is None:
            self._exchange({"do": "send", "member": who, "member_id": "", **fields})
            answer = self._answers.pop()
            if answer.error != "MEMBER_ID_REQUIRED":
                self._came[who] = answer
                self._real.setdefault((who, message.id), "")
                return
            real = answer.member_id
        self._requests(who, {**fields, "member_id": real})
        self._real[who, message.id] = real or self._named(who)

    def _named(self, who: int) -> str:
        """Return the id that Kafka has given to a static member."""
        coordinator = self._code.coordinator
        everybody = coordinator.members if coordinator.consumer is None else coordinator.consumer.members
        return next((one.id for one in everybody if one.instance == self._instance(who)), "")

    def _requests(self, who: int, fields: JsonLine) -> None:
        """Note the requests that may be answered later."""
        sent = self._send({"do": "send", "member": who, **fields})
        self._waits[who] = sent
        self._deliver(sent)

    def _decides(self, after: State) -> None:
        who, assigned = self._leads, {}
        for slot in self.setup.slots:
            for record in self._part(after, "record", slot):
                assigned[self._real[slot, record.id]] = self._partitions(record.assigned)
        message: s.ClassicMessage = self._part(self.state, "wire", who)
        fields = {"api": "SYNC_GROUP", **self._of_protocol(message), **self._identity(who, message)}
        self._requests(who, {**fields, "assignments": assigned})

    def _of_protocol(self, message: s.ClassicMessage) -> JsonLine:
        """Return the assignor that a SyncGroup names, where members list several."""
        return {"protocol": message.protocols[0]} if message.protocols else {}

    def _do(self, command: JsonLine) -> tuple[Any, ...]:
        events = super()._do(command)
        slots = {sent: slot for slot, sent in self._waits.items()}
        answers = [one for one in events if isinstance(one, SimulationResponse) and one.id in slots]
        self._came |= {slots[one.id]: one for one in answers}
        return events

    # -- comparing ---------------------------------------------------------------------------------------

    def _answered(self, event: Event, after: State, outcome: Outcome) -> Iterator[str]:
        if event.action == BEATS:
            yield from self._compared("the heartbeat", event.choice, self._answers[0])
        else:
            yield from super()._answered(event, after, outcome)
        for slot in self.setup.slots:
            before, now = (self._part(state, "wire", slot) for state in (self.state, after))
            if not isinstance(before, s.ClassicMessage) or not isinstance(now, s.ClassicMessage):
                continue
            lost = now.error is p.Error.DISCONNECT
            if before.step not in (*s.REQUESTS, *s.WAITING) or before == now or lost:
                continue
            heard = self._came.get(slot)
            if now.step in s.ANSWERS:
                ours = self._spelled_classic(now)
                yield from self._compared(f"the {before.step} of {letter(slot)}", ours, heard)
            elif heard is not None:
                yield f"{before.step} of {letter(slot)} is answered {self._heard_classic(heard)}"

    def _reached(self, record: s.ConsumerRecord) -> int:
        group: s.ConsumerGroup = self.built.value(self.state, "group")
        return group.epoch if group.kind is s.GroupKind.CLASSIC else super()._reached(record)

    def _compared(self, what: str, ours: str, heard: SimulationResponse | None) -> Iterator[str]:
        theirs = "nothing" if heard is None else self._heard_classic(heard)
        if ours != theirs:
            yield f"the answer to {what} is {theirs}, the model has {ours}"

    def _spelled_classic(self, answer: s.ClassicMessage) -> str:
        if answer.step is s.ClassicStep.JOIN_OK:
            return f"generation {0 if answer.generation == p.NONE else self._kafka(answer.generation)}"
        if answer.step is s.ClassicStep.SYNC_OK:
            return f"assigned {self.setup.spell(answer.parts)}"
        return str(answer.error)

    def _heard_classic(self, answer: SimulationResponse) -> str:
        if answer.error != "NONE" or answer.api not in ("JoinGroup", "SyncGroup"):
            return answer.error
        if answer.api == "JoinGroup":
            return f"generation {answer.generation}"
        return f"assigned {self.setup.spell(self._by_name(answer.assignment or frozenset()))}"

    def _differ(self, after: State) -> list[str]:
        group, known = self.built.value(after, "group"), self._code.coordinator
        there = any(self._book(after))
        kind = (
            s.GroupKind.CONSUMER
            if known.consumer
            else s.GroupKind.CLASSIC
            if known.state
            else s.GroupKind.NONE
        )
        if there and group.kind is not kind:
            return [f"the group of the model is {group.kind}, Kafka's {kind}"]
        if not there:
            if kind is group.kind is s.GroupKind.CONSUMER and known.consumer is not None:
                self._lives = (*self._lives, (group.epoch, known.consumer.epoch - group.epoch))
            found = [one.id for one in (known.consumer.members if known.consumer else known.members)]
            return [f"{one} is a member" for one in found]
        before = self.built.value(self.state, "group")
        generation = known.generation if known.consumer is None else known.consumer.epoch
        goes_on = before.kind is kind is s.GroupKind.CONSUMER and not self._anew
        if not any(self._book(self.state)) and not goes_on:
            newest = following(group)
            here, then = (group.epoch, generation - group.epoch), (newest, generation + 1 - newest)
            self._lives = (*self._lives, here, then)
        if kind is s.GroupKind.CONSUMER:
            self._exists = True
            return super()._differ(after)
        ours: dict[str, Any] = {"state": PHASES[group.phase], "generation": self._kafka(group.epoch)}
        theirs: dict[str, Any] = {"state": known.state, "generation": generation}
        if keeps_protocols(self.setup):
            ours["protocol"], theirs["protocol"] = group.protocol, known.protocol or ""
        members = {one.id: one for one in known.members}
        of_model = partial(self._classic_record, self._exist(after))
        return self._unlike(after, ours, theirs, members, of_model, self._classic_member)

    def _classic_record(self, exist: p.Parts, record: s.ConsumerRecord) -> dict[str, Any]:
        """Return what Kafka shows too: partitions of a topic that is gone have no name."""
        return {"assigned": self.setup.spell(record.assigned & exist), "joined": record.joined}

    def _classic_member(self, one: RegisteredMember, _: s.ConsumerRecord) -> dict[str, Any]:
        assigned = self.setup.spell(self._by_name(one.assigned or frozenset()))
        return {"assigned": assigned, "joined": one.joining}

    # -- names -------------------------------------------------------------------------------------------

    def _by_name(self, names: Partitions) -> int:
        """As `_bits`, of partitions of the classic protocol: those of the topic that has the name now."""
        times = {name: len(begins) - 1 for name, begins in zip(self.topics, self._begins, strict=True)}
        split = (name.rpartition("-") for name in names)
        return self._bits(frozenset(f"{topic}{ANEW * times[topic]}-{number}" for topic, _, number in split))

    def _generation(self, generation: int) -> int:
        return NO_GENERATION if generation == p.NONE else self._kafka(generation)

    def _kind(self) -> s.GroupKind:
        kind: s.GroupKind = self.built.value(self.state, "group").kind
        return kind

    def _book(self, state: State) -> tuple[s.ConsumerRecords, ...]:
        return tuple(self._part(state, "record", slot) for slot in self.setup.slots)

    def _phase(self) -> str | None:
        return self._code.coordinator.state

    def _registered(self, real: str) -> RegisteredMember | None:
        coordinator = self._code.coordinator
        return next((one for one in coordinator.members if one.id == real), None)
