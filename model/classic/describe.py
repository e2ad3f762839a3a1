"""What a group does, in Kafka's words: events, states, observations, steps, for everybody who shows them.

``description`` is what ``Machine.describe`` of a group is. Pure: from the setup and the values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, cast

from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    JoinParked,
    Member,
    MemberRecord,
    Records,
    Refused,
    Sync,
    SyncOk,
    SyncParked,
    Wire,
    participates,
)
from rebalance_verifier.model.group.observations import (
    Answered,
    Call,
    Callback,
    Claimed,
    Completed,
    Decided,
    Expelled,
    Left,
    Noted,
    Replaced,
    Threw,
)
from rebalance_verifier.model.group.parts import NO_ID, NONE, ClusterState, Life, MemberState, Parts, union
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


def description(setup: Setup, components: tuple[str, ...]) -> Description:
    """Return how the group of ``setup`` is described; ``components`` names the values of a state, in
    order."""
    position = {name: index for index, name in enumerate(components)}

    def scene(before: State, event: Event, after: State, seen: tuple[Any, ...]) -> _Scene:
        return _Scene(setup=setup, position=position, event=event, before=before, after=after, seen=seen)

    def step(before: State, event: Event, after: State, seen: tuple[Any, ...]) -> tuple[str, tuple[str, ...]]:
        what = scene(before, event, after, seen).what()
        return what, tuple(observation_text(setup, one) for one in seen if _adds(one))

    return Description(
        event=event_text,
        state=partial(_caption, setup, position),
        owners=lambda state: tuple(_owners(setup, position, state)),
        parties=_parties(setup, position),
        observation=partial(observation_text, setup),
        step=step,
        details=lambda *step: scene(*step).details(),
    )


def event_text(event: Event) -> str:
    """Return an event as in a trace file.

    >>> event_text(Event("join", 0)), event_text(Event("join phase ends", -1, "range, leader A"))
    ('A join', 'join phase ends (range, leader A)')
    """
    who = "" if event.who == NOBODY else f"{letter(event.who)} "
    return f"{who}{event.action}{f' ({event.choice})' if event.choice else ''}"


def _caption(setup: Setup, position: Mapping[str, int], state: State) -> str:
    """Return a state in a graph: the group, then each member's state and what it owns."""
    group = cast(Group, state[position["group"]])
    lines = [f"{group.state} {group.generation}"]
    for slot in setup.slots:
        me = cast(Member, state[position[f"member {letter(slot)}"]])
        life = me.state if me.life is Life.UP else me.life
        lines.append(f"{letter(slot)} {life} {setup.spell(me.owned)}")
    return "\n".join(lines)


def _owners(setup: Setup, position: Mapping[str, int], state: State) -> Iterator[StepOwner]:
    for slot in setup.slots:
        me = cast(Member, state[position[f"member {letter(slot)}"]])
        generation = None if me.generation == NONE else int(me.generation)
        life = "stuck" if me.stuck else "" if me.life is Life.UP else me.life.value
        yield StepOwner(
            letter(slot), life, generation, tuple(setup.spell(me.owned).split()) if me.owned else ()
        )


def _parties(setup: Setup, position: Mapping[str, int]) -> Callable[[State], tuple[tuple[str, str], ...]]:
    """Of a state everybody as one line: the coordinator with whom it knows, then each member with what it
    waits for. A line is made once for what it is about, which most steps leave as it is."""
    names = [letter(slot) for slot in setup.slots]

    @lru_cache(1000)
    def coordinator(group: Group, *records: Records) -> str:
        leads = f", {group.protocol}, leader {letter(group.leader.slot)}" if group.leader is not None else ""
        known = [_record(setup, n, one) for n, mine in zip(names, records, strict=True) for one in mine]
        return "; ".join([f"{group.state}, generation {group.generation}{leads}", *known])

    @lru_cache(1000)
    def member(me: Member, wire: Wire) -> str:
        owned = f"owns {setup.spell(me.owned)}" if me.owned else "owns nothing"
        owned += (
            f" of generation {me.own_gen}" if me.owned and me.own_gen not in (NONE, me.generation) else ""
        )
        facts = [me.state.value if me.life is Life.UP else me.life.value]
        facts += ["no generation" if me.generation == NONE else f"generation {me.generation}", owned]
        facts += ["stuck"] * me.stuck + [f"under way: {_under_way(setup, wire)}"] * (wire is not None)
        return ", ".join(facts)

    def parties(state: State) -> tuple[tuple[str, str], ...]:
        def of(kind: str) -> list[Any]:
            return [state[position[f"{kind} {name}"]] for name in names]

        first = coordinator(cast(Group, state[position["group"]]), *of("record"))
        return (("coordinator", first), *zip(names, map(member, of("member"), of("wire")), strict=True))

    return parties


def _record(setup: Setup, name: str, record: MemberRecord) -> str:
    """Return what the coordinator knows of one member id."""
    if record.meta is None:
        return f"{name} has a member id"
    claims = f"claims {setup.spell(record.meta.owned)}" if record.meta.owned else "claims nothing"
    facts = [claims, f"is assigned {setup.spell(record.assigned)}" if record.assigned else ""]
    facts += ["has joined"] * record.joined + ["has synced"] * record.synced
    return f"{name} {', '.join(filter(None, facts))}"


def _under_way(setup: Setup, wire: Any) -> str:
    """Return what is outstanding between a member and the coordinator."""
    match wire:
        case Join():
            return "its JoinGroup"
        case JoinParked():
            return "its JoinGroup, which waits at the coordinator"
        case JoinOk(generation=generation, leader=leader):
            return f"the answer to JoinGroup: generation {generation}" + (", it leads" if leader else "")
        case Sync():
            return "its SyncGroup"
        case SyncParked():
            return "its SyncGroup, which waits at the coordinator"
        case SyncOk(parts=parts):
            return f"the answer to SyncGroup: {setup.spell(parts) if parts else 'nothing'}"
        case Refused(api=api, error=error):
            return f"the answer to {_API[api]}: {error}"
    return str(wire)


@dataclass(frozen=True, kw_only=True)
class _Scene:
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

    def _me(self, state: State) -> Member:
        return cast(Member, self._part(state, "member"))

    def _wire(self, state: State) -> Wire:
        return cast(Wire, self._part(state, "wire"))

    @property
    def _group(self) -> Group:
        return cast(Group, self.after[self.position["group"]])

    def _topics(self, topics: int) -> str:
        names = sorted(
            {str(name).rpartition("-")[0] for name in self.setup.spell(self.setup.parts(topics)).split()}
        )
        return " ".join(names) or "nothing"

    # -- the sentence ----------------------------------------------------------------------------------

    def what(self) -> str:
        """Return what happens, in one sentence without a full stop."""
        name, action, choice = self.name, self.event.action, self.event.choice
        if action in _PLAIN_STEPS:
            return _PLAIN_STEPS[action].format(name=name, choice=choice)
        logged = ", and the log has it all the same" if choice else ""
        special: dict[str, Callable[[], str]] = {
            "start": self._start,
            "subscribe": lambda: f"{name} subscribes to {self._subscription()} again",
            "resubscribe": lambda: f"{name} subscribes to {self._subscription()}",
            "join": self._join,
            "commit refused": self._commit_refused,
            "join late": lambda: f"{self._join()}, which is slow",
            "join lost": lambda: f"{self._join()}, which gets lost",
            "join left behind": lambda: f"{self._join()}, and its connection breaks",
            "join unanswered": lambda: f"{self._join()}, whose answer gets lost",
            "receive": self._received,
            "receive join": self._received,
            "receive sync": self._received,
            "receive error": self._received,
            "sync late": lambda: f"{self._received()}, which is slow",
            "sync lost": lambda: f"{self._received()}, which gets lost",
            "sync left behind": lambda: f"{self._received()}, and its connection breaks",
            "callback late": lambda: f"{self._received()} and does not handle it yet",
            "complete": lambda: f"{name} handles its assignment",
            "listener throws": lambda: f"{name} handles its assignment, and its listener throws",
            "assign": self._assign,
            "leader sync": lambda: (
                f"{name}'s SyncGroup arrives: generation {self._group.generation} is {self._group.state}"
            ),
            "join phase ends": self._join_phase_ends,
            "refresh": lambda: f"{name}'s metadata now has {self.setup.spell(self._me(self.after).view)}",
            "bounce": self._bounce,
            "sync not stored": lambda: f"the append of {name}'s SyncGroup fails{logged}",
            "return not stored": lambda: f"the append of {name}'s return fails{logged}",
            "failover": lambda: (
                "the coordinator fails over" + (", and the new one still loads" if choice else "")
            ),
        }
        return special[action]() if action in special else event_text(self.event)

    def _start(self) -> str:
        me = self._me(self.after)
        consumer = self.setup.consumers[self.event.who]
        static = f" as static member i{consumer.instance}" if consumer.instance is not None else ""
        lists = f" with [{', '.join(consumer.stages[me.stage].assignors)}]" if self.setup.mixed else ""
        return f"{self.name} starts{static}{lists}, subscribed to {self._subscription()}"

    def _subscription(self) -> str:
        """Return the topics that a member subscribes to, and those that match its pattern."""
        me = self._me(self.after)
        pattern = f", by a pattern for {self._topics(me.pattern)}" if me.pattern else ""
        return self._topics(me.topics) + pattern

    def _join(self) -> str:
        wire, me = self._wire(self.after), self._me(self.after)
        sentence = f"{self.name} sends JoinGroup"
        claim = next((one for one in self.seen if isinstance(one, Claimed)), None)
        if claim is not None:
            sentence += f", claims {self.setup.spell(claim.parts)} of generation {claim.label}"
        elif me.owned:
            claims = wire.meta.owned if isinstance(wire, Join) else self._claims(wire)
            sentence += (
                f", claims {self.setup.spell(claims)} of no generation" if claims else ", claims nothing"
            )
        if me.id != self._me(self.before).id and wire is None and me.id:
            sentence += ", is given a member id"
        elif isinstance(wire, JoinOk):
            sentence += f": answered at once, generation {wire.generation}"
            sentence += ", it leads" if wire.leader else ""
        return sentence

    def _commit_refused(self) -> str:
        sends = self._wire(self.after) is not None or self._me(self.after).state is MemberState.PREPARING
        return f"{self.name}'s commit is refused" + (f": {self._join()}" if sends else "")

    def _claims(self, wire: Wire) -> Parts:
        """Return what the coordinator knows as the claim of the JoinGroup that it has just taken."""
        found = [
            r.meta
            for r in cast(Records, self._part(self.after, "record"))
            if isinstance(wire, JoinParked) and r.id == wire.id
        ]
        return found[0].owned if found and found[0] is not None else Parts(0)

    def _received(self) -> str:
        match self._wire(self.before):
            case JoinOk(generation=generation):
                return f"{self.name} hears that generation {generation} begins, sends SyncGroup"
            case SyncOk(parts=parts):
                return f"{self.name} is assigned {self.setup.spell(parts) if parts else 'nothing'}"
            case Refused(api=api, error=error):
                return f"{self.name}'s {_API[api]} is answered with {error}"
        return event_text(self.event)

    def _assign(self) -> str:
        wire = self._wire(self.before)
        assert isinstance(wire, JoinOk)
        start = f"{self.name} leads generation {wire.generation}"
        if self.event.choice == "throws":
            return f"{start}, and its assignor throws"
        if self.event.choice:
            return f"{start} and decides {self.event.choice}"
        return f"{start}, sends SyncGroup without a decision"

    def _join_phase_ends(self) -> str:
        if self._group.leader is None:
            return "the join phase ends: the group is empty"
        _, _, leader = self.event.choice.rpartition(", ")
        chosen = self.event.choice if self.setup.mixed else leader
        return f"the join phase ends: generation {self._group.generation}, {chosen}"

    def _bounce(self) -> str:
        stages = self.setup.consumers[self.event.who].stages
        stage = self._me(self.after).stage
        then = f"[{', '.join(stages[stage].assignors)}]" if self.setup.mixed else f"configuration {stage + 1}"
        return f"{self.name} is stopped, to start again with {then}"

    # -- what is drawn ---------------------------------------------------------------------------------

    def details(self) -> StepDetails:
        """Return what a drawing shows of it."""
        parts = {name: self.after[at] for name, at in self.position.items()}
        members = {letter(slot): cast(Member, parts[f"member {letter(slot)}"]) for slot in self.setup.slots}
        inside = {n for n, me in members.items() if participates(me, cast(Records, parts[f"record {n}"]))}
        exist = cast(ClusterState, parts["cluster"]).parts
        unowned = exist & ~union([me.owned for me in members.values()]) if self._group.generation else 0
        return StepDetails(
            generation=int(self._group.generation),
            removed=frozenset(members.keys() - inside),
            unowned=tuple(self.setup.spell(unowned).split()) if unowned else (),
            messages=tuple(self._messages()),
            marks=tuple(self._marks()),
        )

    def _messages(self) -> Iterator[StepMessage]:
        """Yield what its member receives, then what it sends; last the errors that anybody hears."""
        name, action = self.name, self.event.action
        if name:
            before, after = self._wire(self.before), self._wire(self.after)
            match before:
                case JoinOk(generation=generation) if after is not before:
                    yield StepMessage(member=name, api="JoinGroup", answer=True, generation=int(generation))
                    lost = action == "sync lost"
                    if lost or isinstance(after, Sync | SyncParked) or action == "assign":
                        yield StepMessage(member=name, api="SyncGroup", text=self.event.choice, lost=lost)
                case SyncOk(generation=generation) if after is not before:
                    yield StepMessage(member=name, api="SyncGroup", answer=True, generation=int(generation))
                case _ if api := ASKS.get(action):
                    yield StepMessage(member=name, api=api, lost=action == "join lost")
            was, given = self._me(self.before).id, self._me(self.after).id
            if action.startswith("join") and after is None and given not in (was, NO_ID):
                yield StepMessage(member=name, api="JoinGroup", answer=True, text="member id")
        for one in self.seen:
            if isinstance(one, Answered):
                api, error = _API.get(one.api, one.api), str(one.error)
                yield StepMessage(member=letter(one.who), api=api, answer=True, text=error)

    def _marks(self) -> Iterator[StepMark]:
        """Yield what the coordinator does, a member that goes on, callbacks."""
        if text := _AT_COORDINATOR.get(self.event.action):
            yield StepMark("", f"{text} {self.name}")
        elif self.event.action == "leader sync":
            yield StepMark("", "stable")
        elif self.event.action == "resume":
            yield StepMark(self.name, "goes on")
        for one in self.seen:
            match one:
                case Callback(call=call, who=who, parts=parts):
                    what = CALLBACKS[call].removeprefix("onPartitions").lower()
                    yield StepMark(letter(who), f"{what} {self.setup.spell(parts)}")
                case Threw(who=who):
                    yield StepMark(letter(who), "poll() throws", fault=True)
                case Expelled(who=who):
                    yield StepMark("", f"removes {letter(who)}")
                case Replaced(who=who):
                    yield StepMark("", f"replaces {letter(who)}")


# -- what shows on the way -----------------------------------------------------------------------------


def observation_text(setup: Setup, one: Any) -> str:
    """Return what a listener, a broker log or a test would have seen, as one line."""
    match one:
        case Callback(call=call, who=who, parts=parts):
            return f"{letter(who)}: {CALLBACKS[call]}({setup.spell(parts) if parts else ''})"
        case Threw(who=who, error="listener"):
            return f"{letter(who)}: poll() throws what the listener threw"
        case Threw(who=who, error=error, message=message):
            return f"{letter(who)}: poll() throws {error}" + (f": {message}" if message else "")
        case Answered(who=who, api=api, error=error, same=same):
            older = "" if same else ", for an older generation"
            return f"{letter(who)} hears {_API.get(api, api)} {error}{older}: {_reaction(one)}"
        case Completed(who=who, assigned=assigned, revoked=revoked, rejoin=rejoin):
            then = (", rejoins" if rejoin else ", does not rejoin") if revoked else ""
            return f"{letter(who)} was assigned {setup.spell(assigned) if assigned else 'nothing'}{then}"
        case Decided(grants=grants):
            given = (f"{letter(g.id.slot)}: {setup.spell(g.parts) if g.parts else 'nothing'}" for g in grants)
            return "decided " + "; ".join(given)
        case Claimed(who=who, parts=parts, label=label, own_gen=own):
            claim = setup.spell(parts) if parts else "nothing"
            return f"{letter(who)} claims {claim} of generation {label} (assigned in {own})"
        case Left(who=who, sent=sent):
            return f"{letter(who)} leaves, {'with' if sent else 'without'} LeaveGroup"
        case Expelled(who=who, cause=cause):
            return f"the coordinator removes {letter(who)}: {cause} timeout"
        case Replaced(who=who, rebalances=rebalances):
            then = "the group rebalances" if rebalances else "no rebalance"
            return f"the coordinator moves {letter(who)}'s place to its new member id, {then}"
        case Noted(what=what):
            return f"({what})"
    return str(one)


def _reaction(one: Answered) -> str:
    """Return what the member makes of an error."""
    if one.reset:
        return "gives up its membership" + (", keeps its member id" if one.keeps_id else "")
    return "will rejoin" if one.rejoin else "changes nothing"


def _adds(one: Any) -> bool:
    """Check whether it says what the sentence of its step does not."""
    if isinstance(one, Noted):
        return one.what not in _PLAIN
    return isinstance(one, Callback | Threw | Answered | Expelled | Replaced)


_PLAIN_STEPS = {
    "join request": "{name}'s JoinGroup arrives",
    "sync request": "{name}'s SyncGroup arrives",
    "sync refused": "{name}'s SyncGroup, parked in a generation that is over, is refused",
    "join refused": "{name}'s parked JoinGroup is refused",
    "commit done": "{name}'s commit comes back",
    "prepare": "{name} polls, and prepares for the JoinGroup that it has sent",
    "resume": "{name} goes on where it stopped",
    "late request arrives": "{name}'s slow request arrives",
    "late answer": "the answer to {name}'s slow request arrives",
    "poll interval": "max.poll.interval.ms passes for {name}: it leaves the group",
    "max poll": "{name} exceeds max.poll.interval.ms: its heartbeat thread leaves the group",
    "abandoned join": "the JoinGroup that {name} gave up on arrives",
    "session expires": "the session of {name} ({choice}) expires",
    "session timeout": "the session of {name} ({choice}) expires although it is at work",
    "rebalance timeout": "the rebalance timeout passes for {name} ({choice})",
    "slow member": "the rebalance timeout passes for {name}, which is slow ({choice})",
    "crash": "{name} crashes",
    "pause": "{name} stops, and does not notice",
    "hang": "{name} hangs in a call, its heartbeats go on",
    "close": "{name} closes",
    "unsubscribe": "{name} unsubscribes",
    "enforce": "{name} calls enforceRebalance()",
    "disconnect": "{name} loses its connection to the coordinator",
    "left behind": "{name}'s connection breaks, what it sent stays under way",
    "late leave": "{name} leaves ({choice}), and its LeaveGroup takes long",
    "left join arrives": "{name}'s JoinGroup of a broken connection arrives",
    "left sync arrives": "{name}'s SyncGroup of a broken connection arrives",
    "left decision arrives": "{name}'s SyncGroup of a broken connection arrives, and decides",
    "left leave arrives": "{name}'s LeaveGroup of a broken connection arrives",
    "leave lost": "{name} leaves ({choice}), and its LeaveGroup is lost",
    "member removed": "an administrator removes {name} ({choice})",
    "polls on": "{name} throws an error, and its application polls on",
    "completes again": "{name}'s listener throws, and its next poll completes the join again",
    "unsubscribe midway": "{name} unsubscribes while its join is under way",
    "racks change": "replicas move to other racks",
    "late request": "{name} sends a {choice} that takes long",
    "slow commit": "{name} commits before it rejoins, and that takes long",
    "append fails": "the coordinator cannot append to its log: {name}'s JoinGroup is refused",
    "group expires": "the empty group is deleted",
    "topic grows": "partition {choice} is added",
    "topic shrinks": "the topic is created again without {choice}",
    "topic deleted": "{choice} is deleted",
    "heartbeat": "{name} sends a heartbeat",
}
"""Action -> its sentence, where that needs nothing but the name of the member and the choice."""

ASKS = {
    **dict.fromkeys(("join", "join late", "join lost", "join unanswered"), "JoinGroup"),
    "heartbeat": "Heartbeat",
}
"""Action -> the request that its member sends, where that follows from the action."""

_AT_COORDINATOR = {
    "rebalance timeout": "rebalance timeout of",
    "session expires": "session expires:",
    "sync refused": "refuses SyncGroup of",
    "join refused": "refuses JoinGroup of",
}
_API = {"join": "JoinGroup", "sync": "SyncGroup", "heartbeat": "Heartbeat", "commit": "OffsetCommit"}
CALLBACKS = {
    Call.REVOKED: "onPartitionsRevoked",
    Call.ASSIGNED: "onPartitionsAssigned",
    Call.LOST: "onPartitionsLost",
}
_PLAIN = (
    "enforceRebalance", "max.poll.interval exceeded", "failover", "join lost", "sync lost",
    "join left behind", "sync left behind", "request of a broken connection",
    "abandoned JoinGroup arrives", "late answer of an old generation",
)  # fmt: skip
"""Notes that only say again what the sentence of the step says."""
