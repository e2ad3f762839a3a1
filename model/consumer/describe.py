"""What a consumer group does, in Kafka's words; ``description`` is what ``Machine.describe`` of one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from rebalance_verifier.model.classic.describe import CALLBACKS, event_text
from rebalance_verifier.model.consumer.connections import connection_of
from rebalance_verifier.model.consumer.observations import Acknowledged, BeatAnswered, Committed, Ended
from rebalance_verifier.model.consumer.state import (
    AnyMember,
    Beat,
    BeatKind,
    BeatOk,
    BeatRefused,
    BeatWire,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    epoch_of,
    find,
    participates,
)
from rebalance_verifier.model.group.observations import Callback, Noted
from rebalance_verifier.model.group.parts import NONE, NOTHING, ClusterState, Life, union
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import (
    NOBODY,
    Description,
    Event,
    State,
    StepDetails,
    StepMark,
    StepMessage,
    StepOwner,
)

HEARTBEAT = "ConsumerGroupHeartbeat"

_PLAIN = {
    "lose": "{} loses what it had, and joins again",
    "reconcile late": "{} begins to reconcile its assignment, and that takes long",
    "revoke": "{} revokes what it has to give up",
    "assign": "{} is assigned what it reconciles",
    "acknowledge": "{} has reconciled its assignment",
    "assign late": "{} is assigned what it reconciles, and its listener takes long",
    "resume": "{} goes on where it stopped",
    "late request arrives": "{}'s slow commit arrives",
    "late request": "{} sends a commit that takes long",
    "poll interval": "max.poll.interval.ms passes for {}, which hangs: it leaves the group",
    "max poll": "{} exceeds max.poll.interval.ms, and leaves the group",
    "crash": "{} crashes",
    "pause": "{} stops, and does not notice",
    "hang": "{} hangs in a call, its heartbeats go on",
    "close": "{} closes",
    "unsubscribe": "{} unsubscribes",
    "disconnect": "{} loses its connection to the coordinator",
    "left behind": "{}'s connection breaks, its heartbeat stays under way",
    "join late": "{} sends JoinGroup, which is slow",
    "response late": "{}'s request arrives, and the answer is slow",
    "join unanswered": "{} joins, and the answer gets lost",
    "request refused": "the request of {} that waits is refused",
}

_SENT = {
    "heartbeat": "",
    "heartbeat late": ", which is slow",
    "heartbeat lost": ", which gets lost",
    "heartbeat unanswered": ", whose answer gets lost",
    "heartbeat left behind": ", and its connection breaks",
    "answer late": ", whose answer is slow",
    "callback late": ", and does not handle the answer yet",
}
"""Actions by which a heartbeat leaves, and what becomes of it."""


_REMOVES = ("session expires", "session timeout", "slow member", "member removed", "stale timeout")
"""Actions by which the coordinator removes a member."""


def description(setup: Setup, components: tuple[str, ...]) -> Description:
    """Return how the group of ``setup`` is described; ``components`` names the values of a state, in
    order."""
    position = {name: index for index, name in enumerate(components)}

    def scene(before: State, event: Event, after: State, seen: tuple[Any, ...]) -> _ConsumerScene:
        return _ConsumerScene(
            setup=setup, position=position, event=event, before=before, after=after, seen=seen
        )

    def step(before: State, event: Event, after: State, seen: tuple[Any, ...]) -> tuple[str, tuple[str, ...]]:
        extra = tuple(observation_text(setup, one) for one in seen if _adds(one))
        return scene(before, event, after, seen).sentence(), extra

    return Description(
        event=event_text,
        state=partial(_caption, setup, position),
        owners=lambda state: tuple(_owners(setup, position, state)),
        observation=partial(observation_text, setup),
        step=step,
        details=lambda *step: scene(*step).details(),
    )


def _caption(setup: Setup, position: Mapping[str, int], state: State) -> str:
    group = cast(ConsumerGroup, state[position["group"]])
    lines = [f"epoch {group.epoch}, target of {group.assigned}"]
    for slot in setup.slots:
        me = cast(AnyMember, state[position[f"member {letter(slot)}"]])
        life = me.state if me.life is Life.UP else me.life
        lines.append(f"{letter(slot)} {life} {setup.spell(me.owned)}")
    return "\n".join(lines)


def _owners(setup: Setup, position: Mapping[str, int], state: State) -> Iterator[StepOwner]:
    for slot in setup.slots:
        me = cast(AnyMember, state[position[f"member {letter(slot)}"]])
        life = "" if me.life is Life.UP else me.life.value
        owned = tuple(setup.spell(me.owned).split()) if me.owned else ()
        yield StepOwner(letter(slot), life, None if epoch_of(me) == NONE else int(epoch_of(me)), owned)


@dataclass(frozen=True, kw_only=True)
class _ConsumerScene:
    """One step with everything that its sentence may need."""

    setup: Setup
    position: Mapping[str, int]
    event: Event
    before: State
    after: State
    seen: tuple[Any, ...]

    @property
    def name(self) -> str:
        return "" if self.event.who == NOBODY else letter(self.event.who)

    def _part(self, state: State, kind: str) -> Any:
        return state[self.position[f"{kind} {self.name}"]]

    def _me(self, state: State) -> Any:
        return self._part(state, "member")

    def _topics(self, topics: int) -> str:
        parts = self.setup.spell(self.setup.parts(topics)).split()
        return " ".join(sorted({name.rpartition("-")[0] for name in parts})) or "nothing"

    def _subscription(self) -> str:
        """Return the topics that a member subscribes to, and those that match its pattern."""
        me = self._me(self.after)
        pattern = me.pattern if isinstance(me, ConsumerMember) else 0
        named = [self._topics(me.topics)] if me.topics or not pattern else []
        matched = [f"a pattern for {self._topics(pattern)}"] if pattern else []
        return " and ".join((*named, *matched))

    def sentence(self) -> str:
        """Return what happens, in one sentence without a full stop."""
        name, action, choice = self.name, self.event.action, self.event.choice
        if action in _SENT:
            return self._sends() + _SENT[action] + self._answer()
        match action:
            case "heartbeat arrives":
                return f"{name}'s heartbeat arrives{self._answer()}"
            case "left heartbeat arrives":
                return f"{name}'s heartbeat of a broken connection arrives{self._answer()}"
            case "answer":
                return f"{name} hears the answer{self._answer()}"
            case "join":
                return self._joins()
            case "beat":
                return f"{name} sends a heartbeat of generation {epoch_of(self._me(self.before))}: {choice}"
            case "request arrives" | "response":
                return self._exchange()
            case "join phase ends":
                group = cast(ConsumerGroup, self.after[self.position["group"]])
                return f"every member has joined: generation {group.epoch}"
            case "leader decides":
                return f"the leader assigns {choice}, without what others claim"
            case "bounce":
                spoken = "consumer" if isinstance(self._me(self.after), ConsumerMember) else "classic"
                return f"{name} is stopped, to come back with the {spoken} protocol"
            case "start":
                instance = self.setup.consumers[self.event.who].instance
                static = f" as static member i{instance}" if instance is not None else ""
                return f"{name} starts{static}, subscribed to {self._subscription()}"
            case "subscribe" | "resubscribe":
                return f"{name} subscribes to {self._subscription()}"
            case "patterns resolved":
                return "the coordinator resolves the patterns"
            case "reconcile":
                return f"{name} reconciles: it has {self.setup.spell(self._me(self.after).owned)}"
            case "session expires":
                return f"the session of {name} ({choice}) expires"
            case "session timeout":
                return f"the session of {name} ({choice}) expires although it is at work"
            case "slow member":
                return f"the rebalance timeout passes for {name}, which is slow to revoke ({choice})"
            case "stale timeout":
                return f"the rebalance timeout that a failover has set passes for {name} ({choice})"
            case "member removed":
                return f"an administrator removes {name} ({choice})"
            case "leave lost":
                return f"{name} leaves ({choice}), and its heartbeat gets lost"
            case "failover":
                return "the coordinator fails over"
            case "group expires":
                return "the empty group is deleted"
            case "topic grows":
                return f"partition {choice} is added"
            case "topic deleted":
                return f"{choice} is deleted"
            case "topic made anew":
                return f"{choice} is deleted and created again, with another id"
        return _PLAIN[action].format(name) if action in _PLAIN else event_text(self.event)

    def _sends(self) -> str:
        me = self._me(self.before)
        if me.epoch == NONE:
            return f"{self.name} joins with epoch 0"
        text = f"{self.name} sends a heartbeat of epoch {me.epoch}"
        claim = next((one.claim for one in self.seen if isinstance(one, Acknowledged)), None)
        return text + ("" if claim is None else f", has {self.setup.spell(claim)}")

    def _joins(self) -> str:
        """JoinGroup, and its answer where nobody is waited for."""
        before = self._me(self.before)
        claim = NOTHING if self._eager(before) else before.owned
        text = f"{self.name} joins, claims {self.setup.spell(claim)}"
        wire = self._part(self.after, "wire")
        if isinstance(wire, ClassicMessage) and wire.step is ClassicStep.SYNC:
            return f"{text}: generation {wire.generation}{self._answer()}"
        return text if wire is not None else f"{text}: refused"

    def _eager(self, me: Any) -> bool:
        stage: int = me.stage
        return self.setup.consumers[self.event.who].stages[stage].eager

    def _exchange(self) -> str:
        """A request or an answer of the classic protocol comes to where it goes."""
        wire = self._part(self.before, "wire")
        assert isinstance(wire, ClassicMessage)
        me, spell = self._me(self.after), self.setup.spell
        match wire.step:
            case ClassicStep.JOIN_OK:
                return f"{self.name} hears that the generation is {wire.generation}"
            case ClassicStep.SYNC_OK:
                return f"{self.name} hears what it is assigned: it has {spell(me.owned)}"
            case ClassicStep.REFUSED:
                return f"{self.name} hears {wire.error}"
        text = f"{self.name}'s {wire.step} arrives"
        waits = self._part(self.after, "wire") is not None
        return text if waits else f"{text}: it has {spell(me.owned)}"

    def _answer(self) -> str:
        """Return what of the coordinator's answer shows in the records afterwards."""
        refused = next((one for one in self.seen if isinstance(one, BeatAnswered)), None)
        if refused is not None:
            return f": {refused.error}"
        before, after = (
            cast(ConsumerRecords, self._part(state, "record")) for state in (self.before, self.after)
        )
        changed = [record for record in after if record not in before]
        if not changed:
            return ""
        record, spell = changed[0], self.setup.spell
        gives = f", gives up {spell(record.pending)}" if record.pending else ""
        return f": epoch {record.epoch}, {record.state}, has {spell(record.assigned)}{gives}"

    # -- what is drawn ---------------------------------------------------------------------------------

    def details(self) -> StepDetails:
        """Return what a drawing shows of it."""
        parts = {name: self.after[at] for name, at in self.position.items()}
        members = {letter(s): cast(AnyMember, parts[f"member {letter(s)}"]) for s in self.setup.slots}
        records = {name: cast(ConsumerRecords, parts[f"record {name}"]) for name in members}
        inside = {name for name, me in members.items() if participates(me, records[name])}
        group, exist = cast(ConsumerGroup, parts["group"]), cast(ClusterState, parts["cluster"]).parts
        unowned = exist & ~union([me.owned for me in members.values()]) if group.epoch else 0
        return StepDetails(
            generation=int(group.epoch),
            removed=frozenset(members.keys() - inside),
            unowned=tuple(self.setup.spell(unowned).split()) if unowned else (),
            messages=tuple(self._messages()),
            marks=tuple(self._marks()),
        )

    def _messages(self) -> Iterator[StepMessage]:
        name, action = self.name, self.event.action
        if not name:
            return
        if isinstance(self._part(self.before, "wire"), ClassicMessage) or action == "join":
            yield from self._classic_messages()
            return
        message = partial(StepMessage, member=name, api=HEARTBEAT)
        before, after = (cast(BeatWire, self._part(state, "wire")) for state in (self.before, self.after))
        if action in _SENT:
            me = self._me(self.before)
            yield message(
                generation=None if me.epoch == NONE else int(me.epoch),
                lost=action in ("heartbeat lost", "heartbeat left behind"),
            )
        elif action == "left heartbeat arrives":
            left: Beat = self._part(self.before, "behind")[connection_of(self.event.choice)]
            epoch = None if left.epoch == NONE else int(left.epoch)
            yield message(generation=epoch, text="of a broken connection")
        refused = next((one for one in self.seen if isinstance(one, BeatAnswered)), None)
        answered = action in ("heartbeat", "heartbeat unanswered", "callback late")
        if answered and refused is not None:
            yield message(answer=True, text=refused.error, lost=action == "heartbeat unanswered")
        elif answered:
            record = find(cast(ConsumerRecords, self._part(self.after, "record")), self._me(self.after).id)
            epoch = None if record is None or record.epoch == NONE else int(record.epoch)
            yield message(answer=True, generation=epoch, lost=action == "heartbeat unanswered")
        elif isinstance(before, BeatOk | BeatRefused) and after is None:
            text = before.error if isinstance(before, BeatRefused) else ""
            epoch = int(before.epoch) if isinstance(before, BeatOk) and before.epoch != NONE else None
            yield message(answer=True, generation=epoch, text=text)
        elif isinstance(before, Beat) and isinstance(after, BeatRefused) and action == "disconnect":
            yield message(lost=True)

    def _classic_messages(self) -> Iterator[StepMessage]:
        """JoinGroup as it is sent, and the answer that is heard."""
        name, wire = self.name, self._part(self.before, "wire")
        if self.event.action == "join":
            yield StepMessage(member=name, api=str(ClassicStep.JOIN))
            wire = self._part(self.after, "wire")
            if isinstance(wire, ClassicMessage) and wire.step is ClassicStep.SYNC:
                yield StepMessage(
                    member=name, api=str(ClassicStep.JOIN), answer=True, generation=int(wire.generation)
                )
        elif self.event.action == "response" and isinstance(wire, ClassicMessage):
            api = ClassicStep.JOIN if wire.step is ClassicStep.JOIN_OK else ClassicStep.SYNC
            epoch = None if wire.generation == NONE else int(wire.generation)
            yield StepMessage(member=name, api=str(api), answer=True, generation=epoch, text=wire.error)

    def _marks(self) -> Iterator[StepMark]:
        for one in self.seen:
            if isinstance(one, Callback):
                yield StepMark(letter(one.who), f"{CALLBACKS[one.call]} {self.setup.spell(one.parts)}")
            elif isinstance(one, Ended):
                yield StepMark(letter(one.who), f"poll throws {one.error}", fault=True)
        if self.event.action in _REMOVES:
            yield StepMark("", f"removes {self.name}")


def observation_text(setup: Setup, one: Any) -> str:
    """Return one observation as text."""
    match one:
        case Callback(call=call, who=who, parts=parts):
            return f"{letter(who)}: {CALLBACKS[call]}({setup.spell(parts)})"
        case BeatAnswered(who=who, kind=kind, error=error):
            asks = {BeatKind.JOIN: "joins", BeatKind.STEADY: "sends a heartbeat"}.get(kind, "leaves")
            return f"{letter(who)} {asks} and hears {error}"
        case Ended(who=who, error=error):
            return f"{letter(who)}: poll throws {error}"
        case Committed(who=who, parts=parts, accepted=stored):
            return f"{letter(who)} commits for {setup.spell(parts)}, stored are {setup.spell(stored)}"
        case Noted(text):
            return text
    return str(one)


def _adds(one: Any) -> bool:
    """Check whether it carries what the sentence of its step does not."""
    if isinstance(one, Noted):
        return one.what.startswith(("upgrade", "downgrade"))
    return isinstance(one, Callback | Ended | Committed)
