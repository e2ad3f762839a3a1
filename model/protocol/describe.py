"""A run of the group told step by step: what happens in Kafka's words, callbacks, who owns what.

Pure: from a setup and events alone. The run is replayed on the model without renaming anything, so the
generations are those that the group would count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rebalance.model.machine import NOBODY, Event, Machine, Outcome, State
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import (
    NONE,
    Answered,
    Call,
    Callback,
    Claimed,
    Expelled,
    Group,
    Join,
    JoinOk,
    JoinParked,
    Life,
    Member,
    Noted,
    Parts,
    Records,
    Refused,
    Replaced,
    SyncOk,
    Threw,
    Wire,
)


class CannotHappenError(ValueError):
    """A step of a run that the model does not allow; ``number`` is its place, from 1."""

    def __init__(self, number: int, event: Event, possible: Sequence[Event]) -> None:
        said = ", ".join(tell(one) for one in possible[:12]) + (", ..." if len(possible) > 12 else "")
        super().__init__(f"step {number}, {tell(event)!r}, cannot happen; possible are: {said or 'none'}")
        self.number = number


@dataclass(frozen=True, slots=True)
class Owner:
    """One member after a step: ``life`` is empty while it is at work."""

    name: str
    life: str
    generation: int | None
    owns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what happens, what shows on the way (callbacks first of all), everybody afterwards.

    ``fault`` is true of what the environment does.
    """

    number: int
    event: Event
    fault: bool
    what: str
    seen: tuple[str, ...]
    owners: tuple[Owner, ...]


def tell(event: Event) -> str:
    """An event as in a trace file.

    >>> tell(Event("join", 0)), tell(Event("join phase ends", -1, "range, leader A"))
    ('A join', 'join phase ends (range, leader A)')
    """
    who = "" if event.who == NOBODY else f"{letter(event.who)} "
    return f"{who}{event.action}{f' ({event.choice})' if event.choice else ''}"


def happens(built: Machine, initial: State, events: Iterable[Event]) -> Iterator[tuple[State, Outcome]]:
    """Each event's outcome, and the state after it.

    Raises CannotHappenError when it comes to an event that is not enabled.
    """
    state = initial
    for number, event in enumerate(events, 1):
        found = built.outcome(state, event)
        if found is None:
            raise CannotHappenError(number, event, built.enabled(state))
        state = built.apply(state, event, found)
        yield state, found


def steps(setup: Setup, events: Sequence[Event], built: Machine | None = None) -> tuple[Step, ...]:
    """The run of ``events`` from the start. Raises CannotHappenError."""
    built = built or machine(setup)
    before = built.initial[0]
    told = []
    for number, (event, (after, outcome)) in enumerate(
        zip(events, happens(built, before, events), strict=True), 1
    ):
        told.append(step(setup, built, number, event, before, after, outcome.seen))
        before = after
    return tuple(told)


def step(
    setup: Setup,
    built: Machine,
    number: int,
    event: Event,
    before: State,
    after: State,
    seen: tuple[Any, ...],
) -> Step:
    """One step of a run, told. ``seen`` is what its outcome showed."""
    scene = _Scene(setup, built, event, before, after, seen)
    fault = built.by_name[event.action, event.who].fault
    owners = tuple(_owners(setup, built, after))
    return Step(number, event, fault, scene.what(), tuple(scene.shown()), owners)


def states(setup: Setup, built: Machine) -> Callable[[State], str]:
    """A caption for a state in a graph: the group, then each member's state and what it owns."""

    def caption(state: State) -> str:
        group = cast(Group, state[built.position["group"]])
        lines = [f"{group.state} {group.generation}"]
        for slot in setup.slots:
            me = cast(Member, state[built.position[f"member {letter(slot)}"]])
            said = me.state if me.life is Life.UP else me.life
            lines.append(f"{letter(slot)} {said} {setup.spell(me.owned)}")
        return "\n".join(lines)

    return caption


def _owners(setup: Setup, built: Machine, state: State) -> Iterator[Owner]:
    for slot in setup.slots:
        me = cast(Member, state[built.position[f"member {letter(slot)}"]])
        generation = None if me.generation == NONE else int(me.generation)
        life = "stuck" if me.stuck else "" if me.life is Life.UP else me.life.value
        yield Owner(letter(slot), life, generation, tuple(setup.spell(me.owned).split()) if me.owned else ())


class _Scene:
    """One step with everything that its sentence may need."""

    def __init__(
        self, setup: Setup, built: Machine, event: Event, before: State, after: State, seen: tuple[Any, ...]
    ) -> None:
        self.setup, self.built, self.event, self.seen = setup, built, event, seen
        self.before, self.after = before, after
        self.name = "" if event.who == NOBODY else letter(event.who)

    def _part(self, state: State, name: str) -> Any:
        return state[self.built.position[name]]

    def _me(self, state: State) -> Member:
        return cast(Member, self._part(state, f"member {self.name}"))

    def _wire(self, state: State) -> Wire:
        return cast(Wire, self._part(state, f"wire {self.name}"))

    def _records(self, state: State) -> Records:
        return cast(Records, self._part(state, f"record {self.name}"))

    @property
    def _group(self) -> Group:
        return cast(Group, self._part(self.after, "group"))

    def _topics(self, topics: int) -> str:
        names = sorted(
            {str(name).rpartition("-")[0] for name in self.setup.spell(self.setup.parts(topics)).split()}
        )
        return " ".join(names) or "nothing"

    # -- the sentence ----------------------------------------------------------------------------------

    def what(self) -> str:
        """What happens, in one sentence without a full stop."""
        name, action, choice = self.name, self.event.action, self.event.choice
        plain = {
            "join request": f"{name}'s JoinGroup arrives",
            "sync request": f"{name}'s SyncGroup arrives",
            "sync refused": f"{name}'s SyncGroup, parked in a generation that is over, is refused",
            "join refused": f"{name}'s parked JoinGroup is refused",
            "commit done": f"{name}'s commit comes back",
            "resume": f"{name} goes on where it stopped",
            "late request arrives": f"{name}'s slow request arrives",
            "late answer": f"the answer to {name}'s slow request arrives",
            "poll interval": f"max.poll.interval.ms passes for {name}: it leaves the group",
            "max poll": f"{name} exceeds max.poll.interval.ms: its heartbeat thread leaves the group",
            "abandoned join": f"the JoinGroup that {name} gave up on arrives",
            "session expires": f"the session of {name} ({choice}) expires",
            "session timeout": f"the session of {name} ({choice}) expires although it is at work",
            "rebalance timeout": f"the rebalance timeout passes for {name} ({choice})",
            "slow member": f"the rebalance timeout passes for {name}, which is slow ({choice})",
            "crash": f"{name} crashes",
            "pause": f"{name} stops, and does not notice",
            "hang": f"{name} hangs in a call, its heartbeats go on",
            "close": f"{name} closes",
            "unsubscribe": f"{name} unsubscribes",
            "enforce": f"{name} calls enforceRebalance()",
            "disconnect": f"{name} loses its connection to the coordinator",
            "late request": f"{name} sends a {choice} that takes long",
            "slow commit": f"{name} commits before it rejoins, and that takes long",
            "append fails": f"the coordinator cannot append to its log: {name}'s JoinGroup is refused",
            "failover": "the coordinator fails over" + (", and the new one still loads" if choice else ""),
            "group expires": "the empty group is deleted",
            "topic grows": f"partition {choice} is added",
            "topic shrinks": f"the topic is created again without {choice}",
            "topic deleted": f"{choice} is deleted",
            "heartbeat": f"{name} sends a heartbeat",
        }
        special = {
            "start": self._start,
            "subscribe": lambda: f"{name} subscribes to {self._topics(self._me(self.after).topics)} again",
            "resubscribe": lambda: f"{name} subscribes to {self._topics(self._me(self.after).topics)}",
            "join": self._join,
            "join late": lambda: f"{self._join()}, which is slow",
            "join lost": lambda: f"{self._join()}, which gets lost",
            "join unanswered": lambda: f"{self._join()}, whose answer gets lost",
            "receive": self._received,
            "receive join": self._received,
            "receive sync": self._received,
            "receive error": self._received,
            "sync late": lambda: f"{self._received()}, which is slow",
            "sync lost": lambda: f"{self._received()}, which gets lost",
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
        }
        return special[action]() if action in special else plain.get(action, tell(self.event))

    def _start(self) -> str:
        me = self._me(self.after)
        consumer = self.setup.consumers[self.event.who]
        static = f" as static member i{consumer.instance}" if consumer.instance is not None else ""
        lists = f" with [{', '.join(consumer.stages[me.stage].assignors)}]" if self.setup.mixed else ""
        return f"{self.name} starts{static}{lists}, subscribed to {self._topics(me.topics)}"

    def _join(self) -> str:
        wire, me = self._wire(self.after), self._me(self.after)
        said = f"{self.name} sends JoinGroup"
        claim = next((one for one in self.seen if isinstance(one, Claimed)), None)
        if claim is not None:
            said += f", claims {self.setup.spell(claim.parts)} of generation {claim.label}"
        elif me.owned:
            claims = wire.meta.owned if isinstance(wire, Join) else self._claims(wire)
            said += f", claims {self.setup.spell(claims)} of no generation" if claims else ", claims nothing"
        if me.id != self._me(self.before).id and wire is None and me.id:
            said += ", is given a member id"
        elif isinstance(wire, JoinOk):
            said += f": answered at once, generation {wire.generation}"
            said += ", it leads" if wire.leader else ""
        return said

    def _claims(self, wire: Wire) -> Parts:
        """What the coordinator knows as the claim of the JoinGroup that it has just taken."""
        found = [
            r.meta for r in self._records(self.after) if isinstance(wire, JoinParked) and r.id == wire.id
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
        return tell(self.event)

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

    # -- what shows on the way -------------------------------------------------------------------------

    def shown(self) -> Iterator[str]:
        """Callbacks, exceptions, what the coordinator does besides; one line each."""
        for one in self.seen:
            match one:
                case Callback(call=call, who=who, parts=parts):
                    named = f"{letter(who)}: {_CALLBACK[call]}({self.setup.spell(parts) if parts else ''})"
                    yield named
                case Threw(who=who, error="listener"):
                    yield f"{letter(who)}: poll() throws what the listener threw"
                case Threw(who=who, error=error):
                    yield f"{letter(who)}: poll() throws {error}"
                case Answered():
                    yield from self._answered(one)
                case Expelled(who=who, cause=cause):
                    yield f"the coordinator removes {letter(who)}: {cause} timeout"
                case Replaced(who=who, rebalances=rebalances):
                    then = "the group rebalances" if rebalances else "no rebalance"
                    yield f"the coordinator moves {letter(who)}'s place to its new member id, {then}"
                case Noted(what=what) if what not in _PLAIN:
                    yield f"({what})"

    def _answered(self, one: Answered) -> Iterator[str]:
        if one.reset:
            what = "gives up its membership" + (", keeps its member id" if one.keeps_id else "")
        elif one.rejoin:
            what = "will rejoin"
        else:
            what = "changes nothing"
        older = "" if one.same else ", for an older generation"
        yield f"{letter(one.who)} hears {_API.get(one.api, one.api)} {one.error}{older}: {what}"


_API = {"join": "JoinGroup", "sync": "SyncGroup", "heartbeat": "Heartbeat", "commit": "OffsetCommit"}
_CALLBACK = {
    Call.REVOKED: "onPartitionsRevoked",
    Call.ASSIGNED: "onPartitionsAssigned",
    Call.LOST: "onPartitionsLost",
}
_PLAIN = (
    "enforceRebalance", "max.poll.interval exceeded", "failover", "join lost", "sync lost",
    "abandoned JoinGroup arrives", "late answer of an old generation",
)  # fmt: skip
"""Notes that only say again what the sentence of the step says."""


def to_json(step: Step) -> dict[str, Any]:
    """A step for a trace file or a report."""
    return {
        "step": step.number,
        "what": step.what,
        "seen": list(step.seen),
        "members": {
            owner.name: {"generation": owner.generation, "owns": list(owner.owns)}
            | ({"life": owner.life} if owner.life else {})
            for owner in step.owners
        },
    }


__all__ = ["CannotHappenError", "Owner", "Step", "happens", "states", "step", "steps", "tell", "to_json"]
