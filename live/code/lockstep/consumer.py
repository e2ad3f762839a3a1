"""A consumer group (KIP-848) as model and on the shipped coordinator, step by step at once.

Its clients are the model's: what they send is sent to Kafka's coordinator too, and its answer, what it
holds for each member and its epochs have to be the model's. Which target it computes is Kafka's to say,
among those that the model's assignor may compute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.clients.replay.naming import RunNames
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.answers import (
    Partitions,
    RegisteredMember,
    ServedMember,
    SimulationRequest,
    SimulationResponse,
    SimulationState,
)
from rebalance_verifier.live.code.lockstep.classic import LEFT, Agreement, Disagreement
from rebalance_verifier.live.code.lockstep.deviations import COUNTED_ANEW
from rebalance_verifier.live.code.replay.beats import fields_of
from rebalance_verifier.live.code.replay.group import CodeReleases, limits
from rebalance_verifier.live.code.replay.steps import GROUP_EXPIRY
from rebalance_verifier.live.code.simulation import (
    NotEnabled,
    Simulation,
    SimulationBroken,
    SimulationDied,
    SimulationMember,
)
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.connections import LeftBehind, connection_of
from rebalance_verifier.model.consumer.conversion import counted
from rebalance_verifier.model.consumer.observations import Committed
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Event, Machine, Options, Outcome, State

_Member = TypeVar("_Member", ServedMember, RegisteredMember)

BROKER: Mapping[str, object] = {"group.consumer.assignment.interval.ms": 0}
"""Of the broker: a target is computed when it is due, as up to 4.2."""

ANEW = "'"
"""After the name of a topic: it was deleted and created again."""

OF_THE_GROUP = frozenset(
    (
        *("heartbeat arrives", "late request arrives", "session expires", "session timeout", "slow member"),
        "stale timeout",
        "left heartbeat arrives",
        *("member removed", "close", "unsubscribe", "max poll", "poll interval", "failover"),
        *("group expires", "topic grows", "topic deleted", "topic made anew", "patterns resolved"),
    )
)
"""Actions that the coordinator takes part in; all others are a client's own affair."""

LEAVING = ("close", "unsubscribe", "max poll", "poll interval")


class ServedLockstep(RunNames):
    """One consumer group, as model and on the coordinator of a simulation. ``built`` is the machine of
    ``setup``.

    ``both``: actions that the coordinator takes part in; ``config``: of the broker.
    """

    both: Collection[str] = OF_THE_GROUP
    config: Mapping[str, object] = BROKER
    _code: SimulationState  # after the last command

    def __init__(self, simulation: Simulation, setup: Setup, built: Machine, releases: CodeReleases) -> None:
        self.simulation, self.setup, self.built, self.releases = simulation, setup, built, releases
        self._options = Options(built)
        self.config = {**self.config, **limits(setup)}
        self.state: State = built.initial[0]
        self.events: list[Event] = []
        self.seen = Agreement(walks=1)
        self._real: dict[tuple[int, int], str] = {}
        self._lives: tuple[tuple[int, int], ...] = ()  # first epoch of each group, and what Kafka counts more
        self._exists = False
        self._begins = [p.each(parts)[:1] for parts in setup.topics]  # first partition of each id of a topic
        self._started = self._stored = 0
        self._deleted = False
        self._answers: list[SimulationResponse] = []
        self._overtaken: dict[int, s.Beat] = {}  # by slot, the last that the model believes nothing of

    # -- what a walk needs -------------------------------------------------------------------------------

    def begin(self) -> Disagreement | None:
        """Return both from their beginning."""
        members = [
            SimulationMember(release=self.releases.of(slot), assignors=("range",), client=letter(slot))
            for slot in self.setup.slots
        ]
        try:
            topics = self.counts(self.setup.exist)
            self.simulation.create(self.releases.coordinator, members, topics, self.config)
            self._code = self.simulation.state()
        except (NotEnabled, SimulationBroken, SimulationDied) as why:
            return Disagreement(events=(), sentences=(str(why),))
        return None

    def possible(self) -> Options:
        """Return what the model can do now."""
        self._options.move(self.state)
        return self._options

    def in_vain(self) -> list[Event]:
        """Heartbeats that were overtaken, where the model's coordinator refuses them."""
        return [
            Event(LEFT, slot)
            for slot, beat in self._overtaken.items()
            if s.find(self._part(self.state, "record", slot), beat.id) is not None
        ]

    def try_in_vain(self, event: Event) -> Disagreement | None:
        """Let one of these arrive; return a disagreement where it changes something."""
        self.events.append(event)
        try:
            self._sends(event.who, self._overtaken[event.who], left=True)
        except (NotEnabled, SimulationBroken, SimulationDied) as why:
            return Disagreement(events=tuple(self.events), sentences=(str(why),))
        if differences := self._differ(self.state):
            return Disagreement(events=tuple(self.events), sentences=tuple(differences))
        self.seen.in_vain += 1
        return None

    def step(self, event: Event, outcome: Outcome) -> Disagreement | None:
        """Take one step in both. Raises NotForcible before anything was done."""
        after = self.built.apply(self.state, event, outcome)
        if event.action not in self.both:
            self._of_client(event, after)
            self._agreed(event, after)
            return None
        self._check_possible(event, after)
        self._answers = []
        try:
            self._take(event, after)
        except (NotEnabled, SimulationBroken, SimulationDied) as why:
            self.events.append(event)
            return Disagreement(events=tuple(self.events), sentences=(str(why),))
        self.events.append(event)
        found: list[list[str]] = []
        for other in self._outcomes(event, outcome):
            reached = self._goes_on(self.built.apply(self.state, event, other))
            lives, exists = self._lives, self._exists
            differences = [*self._differ(reached), *self._answered(event, reached, other)]
            if not differences:
                self.events.pop()
                self._agreed(event, self._looks_at_topics(event, reached))
                return None
            self._lives, self._exists = lives, exists
            found.append(differences)
        return Disagreement(events=tuple(self.events), sentences=tuple(sorted(found, key=len)[0]))

    def _goes_on(self, after: State) -> State:
        """Return the model with what Kafka does in the same step."""
        return after

    def _looks_at_topics(self, event: Event, after: State) -> State:
        """Kafka looks at the topics where a member is removed, too; the model with the next heartbeat, so
        that it counts one epoch more where both have changed."""
        group = self.built.value(after, "group")
        if event.action.startswith("topic ") or self.built.value(self.state, "group") == group:
            return after
        looks = group._replace(known=self._exist(after))
        if group.epoch != self.built.value(self.state, "group").epoch:
            looks = counted(
                self.setup, looks, tuple(self._part(after, "record", slot) for slot in self.setup.slots)
            )
        return self.built.put(after, "group", looks)

    def _agreed(self, event: Event, after: State) -> None:
        self.events.append(event)
        if self.setup.breaks_connections and event.action == "heartbeat arrives":
            name = f"behind {letter(event.who)}"
            before, left = (self.built.value(state, name) for state in (self.state, after))
            if before != left:
                self._overtaken[event.who] = before[-1]
        self.state = self.built.put(after, "budget", self.setup.budget)  # or all faults were asked anew
        self.seen.steps += 1
        self.seen.taken[event.action] += 1

    def _outcomes(self, event: Event, first: Outcome) -> Iterator[Outcome]:
        """Return the outcomes that the model may have in this step: whatever target there may be, where there
        is one."""
        yield first
        if event.action in ("heartbeat arrives", "left heartbeat arrives", *LEAVING):
            action = self.built.by_name[event.action, event.who]
            for one in self.built.outcomes_of(action, self.state):
                if one != first and connection_of(one.choice) == connection_of(event.choice):
                    yield one

    # -- what is done ------------------------------------------------------------------------------------

    def _of_client(self, event: Event, after: State) -> None:
        if event.action == "start":
            member = self._part(after, "member", event.who)
            self._real[event.who, member.id] = f"{letter(event.who)}-{self._started}"
            self._started += 1

    def _check_possible(self, event: Event, after: State) -> None:
        if event.action == "group expires" and self._stored:
            raise NotForcible("offsets are stored, which keep the group")
        if event.action == "topic grows" and (self._deleted or not self.are_first(self._exist(after))):
            raise NotForcible("a topic that is made again is another one to Kafka")
        if event.who >= 0 and self._forgets(event.who):
            raise NotForcible("a member gives up a topic that is gone as it changes its subscription")
        now = self._lives[-1][0] if self._lives else p.NONE
        if event.action == "left heartbeat arrives" and p.NONE != self._left(event).epoch < now:
            raise NotForcible("Kafka counts epochs anew since, and would take an old one for one of now")

    def _forgets(self, who: int) -> bool:
        """Check whether a heartbeat changes the subscription of a member that holds a topic which is gone.
        Kafka looks there at what there is of its topics (``updateCurrentAssignment``), the model with the
        next target."""
        beat = self._part(self.state, "wire", who)
        record = s.find(self._part(self.state, "record", who), beat.id) if isinstance(beat, s.Beat) else None
        if record is None or (record.topics, record.pattern) == (beat.topics, beat.pattern):
            return False
        return bool(record.held & ~self._exist(self.state))

    def _take(self, event: Event, after: State) -> None:
        """Do it to the coordinator."""
        who, wire = event.who, None if event.who < 0 else self._part(self.state, "wire", event.who)
        match event.action:
            case "heartbeat arrives":
                assert isinstance(wire, s.Beat)
                self._sends(who, wire)
            case "left heartbeat arrives":
                self._sends(who, self._left(event), left=True)
            case "late request arrives":
                self._commits(who, self._part(self.state, "stray", who))
            case "session expires" | "session timeout":
                self._fires("session-timeout-", who, event)
            case "slow member" | "stale timeout":
                self._fires("rebalance-timeout-", who, event)
            case "member removed":
                real = self._real[who, int(event.choice.removeprefix("id "))]
                named = {"instance": self._instance(who)} if self._instance(who) else {"member_id": real}
                self._exchange({"do": "send", "api": "LEAVE_GROUP", **named})
            case "failover":
                self._do({"do": "failover"})
            case "patterns resolved":
                self._do({"do": "expire", "timer": "patterns"})
            case "group expires":
                self._do({"do": "expire", "timer": GROUP_EXPIRY})
            case "topic grows" | "topic deleted" | "topic made anew":
                self._deleted |= event.action == "topic deleted"
                if event.action == "topic made anew":
                    self._made_anew(after)
                self._do({"do": "topics", "topics": self.counts(self._exist(after))})
            case _:
                self._leaves(who, wire)

    def _leaves(self, who: int, wire: Any) -> None:
        """Deliver the requests that were sent before on that connection first."""
        if isinstance(wire, s.Beat):
            self._sends(who, wire)
        member = self._part(self.state, "member", who)
        if member.epoch != p.NONE or member.state.value == "JOINING":
            static = self._instance(who) is not None
            kind = s.BeatKind.AWAY if static else s.BeatKind.LEAVE
            self._sends(who, s.Beat(kind, member.id, p.NONE, None, True, member.topics))

    def _left(self, event: Event) -> s.Beat:
        """Return the heartbeat of a broken connection that arrives."""
        behind: LeftBehind = self._part(self.state, "behind", event.who)
        return behind[connection_of(event.choice)]

    def _sends(self, who: int, beat: s.Beat, *, left: bool = False) -> None:
        """``left``: on a connection that broke; it has every field, or no news of the subscription."""
        fields = fields_of(
            beat,
            self._kafka(beat.epoch),
            member_id=self._real[who, beat.id],
            instance=self._instance(who),
            topics=self.names(beat.topics) if beat.full or not left else None,
            regex=self._regex(beat) if beat.full or not left else None,
            owned=None if beat.owned is None else self._partitions(beat.owned),
        )
        self._exchange({"do": "send", "member": who, **fields})

    def _regex(self, beat: s.Beat) -> str | None:
        """Return SubscribedTopicRegex, which matches these topics and no other."""
        return "|".join(self.names(beat.pattern)) if self.setup.has_patterns else None

    def _commits(self, who: int, commit: Any) -> None:
        """One commit for each partition: Kafka may store some of them only."""
        assert isinstance(commit, p.Late)
        for name in self._partitions(commit.parts):
            fields: JsonLine = {
                "member_id": self._real[who, commit.id],
                "generation": self._kafka(commit.generation),
                "instance": self._instance(who),
                "partitions": [name],
            }
            self._exchange({"do": "send", "member": who, "api": "OFFSET_COMMIT", **fields})

    def _exchange(self, send: JsonLine) -> None:
        """A request, its answer; nobody waits for it."""
        answers = self._deliver(self._send(send))
        self._answers += answers

    def _send(self, send: JsonLine) -> int:
        """Send a request and return its number."""
        [sent] = [one.id for one in self._do(send) if isinstance(one, SimulationRequest)]
        return int(sent)

    def _deliver(self, sent: int) -> list[SimulationResponse]:
        """It arrives: the answer to it, if there is one by now."""
        answers = [
            one for one in self._do({"do": "deliver", "id": sent}) if isinstance(one, SimulationResponse)
        ]
        for one in answers:
            self._do({"do": "respond", "id": one.id})
        return [one for one in answers if one.id == sent]

    def _fires(self, kind: str, who: int, event: Event) -> None:
        """A timer of a member."""
        real = self._real[who, int(event.choice.removeprefix("id "))]
        timers = self._code.coordinator.timers
        keys = [one for one in timers if one.startswith(kind) and one.endswith(real)]
        if not keys:
            raise NotEnabled(f"{kind.rstrip('-')} of {real} is not set")
        self._do({"do": "expire", "timer": keys[0]})

    def _do(self, command: JsonLine) -> tuple[Any, ...]:
        events, self._code = self.simulation.step(command)
        return events

    # -- comparing ---------------------------------------------------------------------------------------

    def _answered(self, event: Event, after: State, outcome: Outcome) -> Iterator[str]:
        """Yield what of Kafka's answers is not the model's."""
        if event.action == "heartbeat arrives":
            [code] = self._answers
            model, theirs = self._spelled(self._part(after, "wire", event.who)), self._heard(code)
            if model != theirs:
                yield f"the answer is {theirs}, the model has {model}"
        elif event.action == "late request arrives":
            [seen] = [one for one in outcome.seen if isinstance(one, Committed)]
            stored = sum(
                1 << number
                for number, code in zip(p.each(seen.parts), self._answers, strict=True)
                if code.error == "NONE"
            )
            self._stored += stored.bit_count()
            commit = self._part(self.state, "stray", event.who)
            record = s.find(self._part(self.state, "record", event.who), commit.id)
            # Since when a partition is its member's (KIP-1251) the model does not know: it stores more.
            reached = None if record is None else self._reached(record)
            older = reached is not None and commit.generation < reached
            if reached is not None and older and self._kafka(commit.generation) == self._kafka(reached):
                self.seen.deviations[COUNTED_ANEW.id] += 1
            elif stored & ~seen.accepted if older else stored != seen.accepted:
                ours = self.setup.spell(seen.accepted)
                yield f"stored are {self.setup.spell(stored)}, the model has {ours}"

    def _reached(self, record: s.ConsumerRecord) -> int:
        """Return the epoch that a commit of this member has to show."""
        return record.epoch

    def _spelled(self, answer: Any) -> str:
        if isinstance(answer, s.BeatRefused):
            return str(answer.error)
        assert isinstance(answer, s.BeatOk)
        parts = "as before" if answer.parts is None else self.setup.spell(answer.parts)
        return f"epoch {self._kafka(answer.epoch)}, {parts}"

    def _heard(self, answer: SimulationResponse) -> str:
        if answer.error != "NONE":
            return answer.error
        parts = "as before" if answer.assignment is None else self.setup.spell(self._bits(answer.assignment))
        return f"epoch {answer.generation}, {parts}"

    def _differ(self, after: State) -> list[str]:
        """In what the groups are not alike."""
        group, known = self.built.value(after, "group"), self._code.coordinator.consumer
        if group.kind is not s.GroupKind.CONSUMER or known is None:
            self._exists = False
            return (
                []
                if (group.kind is s.GroupKind.CONSUMER) is (known is not None)
                else [f"the group of the model is {group.kind}, Kafka's {'consumer' if known else 'none'}"]
            )
        if not self._exists:
            self._exists = True
            self._lives = (*self._lives, (group.epoch, known.epoch - group.epoch))
        ours: dict[str, Any] = {"epoch": self._kafka(group.epoch)}
        theirs: dict[str, Any] = {"epoch": known.epoch}
        if known.members:  # without any it is that of the group since 4.4 (KAFKA-20442), older before
            ours["epoch of the target"] = self._kafka(group.assigned)
            theirs["epoch of the target"] = known.assignment_epoch
        members = {one.id: one for one in known.members}
        return self._unlike(after, ours, theirs, members, self._record, self._member)

    def _unlike(
        self,
        after: State,
        ours: dict[str, Any],
        theirs: dict[str, Any],
        members: dict[str, _Member],
        of_model: Callable[[s.ConsumerRecord], dict[str, Any]],
        of_kafka: Callable[[_Member, s.ConsumerRecord], dict[str, Any]],
    ) -> list[str]:
        """In what the model and Kafka differ: ``ours`` and ``theirs`` of the group, and of each member what
        there is ``of_model`` and ``of_kafka``. ``members``: Kafka's, by their ids."""
        for slot in self.setup.slots:
            for record in self._part(after, "record", slot):
                real, name = self._real[slot, record.id], f"{letter(slot)} id {record.id}"
                ours |= {f"{name} {what}": how for what, how in of_model(record).items()}
                if real in members:
                    one = of_kafka(members.pop(real), record)
                    theirs |= {f"{name} {what}": how for what, how in one.items()}
        theirs |= {f"{real} is a member": 1 for real in members}
        return [
            f"{what}: the model has {ours.get(what)}, Kafka {theirs.get(what)}"
            for what in dict.fromkeys((*ours, *theirs))
            if ours.get(what) != theirs.get(what)
        ]

    def _record(self, record: s.ConsumerRecord) -> dict[str, Any]:
        return {
            "epoch": -2 if record.away else self._kafka(record.epoch),
            "previous": 0 if record.away else self._kafka(record.previous),
            "state": record.state.value,
            "assigned": self.setup.spell(record.assigned),
            "pending": self.setup.spell(record.pending),
            "target": self.setup.spell(record.target),
        }

    def _member(self, one: ServedMember, record: s.ConsumerRecord) -> dict[str, Any]:
        return {
            "epoch": one.epoch,
            "previous": 0 if record.away or one.previous < 0 else one.previous,
            "state": one.state if one.state.endswith("PARTITIONS") else "STABLE",
            "assigned": self.setup.spell(self._bits(one.assigned)),
            "pending": self.setup.spell(self._bits(one.pending)),
            "target": self.setup.spell(self._bits(one.target)),
        }

    # -- names -------------------------------------------------------------------------------------------

    def _kafka(self, epoch: int) -> int:
        """Return an epoch of the model as Kafka counts, which begins anew with each group; 0 for none."""
        if epoch == p.NONE:
            return 0
        return int(epoch) + next((more for first, more in reversed(self._lives) if epoch >= first), 0)

    def _made_anew(self, after: State) -> None:
        """Note where the partitions of a new id begin."""
        exist, before = self._exist(after), self._exist(self.state)
        for begins, parts in zip(self._begins, self.setup.topics, strict=True):
            now = p.each(exist & parts)
            if now and not before & exist & parts:
                begins.append(now[0])
        self.__dict__.pop("numbers", None)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Partition by name -> its number. A topic that was made anew is ``t'``, then ``t''``: Kafka knows
        each by its id."""
        found = {}
        for name, begins, parts in zip(self.topics, self._begins, self.setup.topics, strict=True):
            for number in p.each(parts):
                times = sum(begin <= number for begin in begins) - 1
                found[f"{name}{ANEW * times}-{number - begins[times]}"] = number
        return found

    @cached_property
    def topics(self) -> list[str]:
        """All topics by name, in the order of the setup."""
        each = (str(self.setup.partition(p.each(parts)[0])) for parts in self.setup.topics)
        return [name.rpartition("-")[0] for name in each]

    def counts(self, exist: int) -> dict[str, int]:
        """Return how many partitions each topic has, of those that there are."""
        sizes: dict[str, int] = {}
        for name, number in self.numbers.items():
            if exist >> number & 1:
                topic = name.rpartition("-")[0]
                sizes[topic] = sizes.get(topic, 0) + 1
        return sizes

    def are_first(self, exist: int) -> bool:
        """Check whether the partitions that there are of each topic are its first ones, as Kafka numbers
        them."""
        for begins, parts in zip(self._begins, self.setup.topics, strict=True):
            there = p.each(exist & parts)
            if there and there != list(range(begins[-1], begins[-1] + len(there))):
                return False
        return True

    def _instance(self, who: int) -> str | None:
        instance = self.setup.consumers[who].instance
        return None if instance is None else f"i{instance}"

    def _exist(self, state: State) -> p.Parts:
        exist: p.Parts = self.built.value(state, "cluster").parts
        return exist

    def _partitions(self, parts: int) -> list[str]:
        names = {number: name for name, number in self.numbers.items()}
        return [names[number] for number in p.each(parts)]

    def _bits(self, names: Partitions) -> int:
        """As `bits`, of partitions that the run has."""
        return sum(1 << self.numbers[name] for name in names)

    def _part(self, state: State, part: str, slot: int) -> Any:
        return self.built.value(state, f"{part} {letter(slot)}")
