"""A group on its way between the protocols, on a shipped coordinator, a step at a time.

Its members of the classic protocol are consumers of Kafka's own code; those of the consumer protocol are
played.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import (
    Partitions,
    SimulationCallback,
    SimulationEvent,
    SimulationRequest,
    SimulationResponse,
    SimulationState,
    SimulationThrown,
)
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationBroken, SimulationMember
from rebalance_verifier.model.bugs.releases import NEWEST

from tools.migration.played import PlayedConsumer

BROKER: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
}
"""Of the broker: it does not wait for more members, nor before it assigns (as up to 4.2)."""

ROUND_MS = 2_000
"""Of the broker's clock, in a round in which everybody says something."""

QUIET_ROUNDS = 40
"""After which a group that is left alone has come to rest: sessions of 10 and 45 seconds have ended."""

RESTS = 3
"""Rounds in which nothing has changed after which nothing will, if everybody is there who is registered."""

MAX_EXCHANGES = 24
"""Of one member, until nothing of it is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """Who is in it. ``members`` by letter: assignors of a classic one, () of one of the consumer protocol.

    ``instances``: the ``group.instance.id`` of static members; one of the consumer protocol may have that
    of a classic one, which is then the same process before and after its upgrade, and never runs beside it.
    ``config``: of the broker, beside ``BROKER``. ``release``: of the consumers.
    """

    coordinator: str
    members: Mapping[str, tuple[str, ...]]
    partitions: int = 4
    release: str = NEWEST
    instances: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a partition, and whether the coordinator would take its commit."""

    member: str
    accepted: bool


class MigrationGroup:
    """The group of a plan; steps are texts such as ``poll A`` (docs/results/migration.md lists them).

    ``log``: the steps that were done, and what each brought about. ``converted``: how often the group went
    over to the other protocol. ``thrown``: what consumers threw out of a poll. ``expired``: whose session
    has ended.
    """

    def __init__(self, simulation: Simulation, plan: GroupPlan) -> None:
        self.simulation, self.plan = simulation, plan
        self.letters = tuple(plan.members)
        self.log: list[str] = []
        self.converted = self.starts = 0
        self.expired: set[str] = set()
        self.thrown: list[str] = []
        listed = [
            SimulationMember(
                release=plan.release,
                assignors=assignors or ("range",),
                client=letter,
                instance=plan.instances.get(letter),
                config={"session.timeout.ms": 10_000, "heartbeat.interval.ms": 3_000},
            )
            for letter, assignors in plan.members.items()
        ]
        listed.append(SimulationMember(release=plan.release, client="probe"))
        simulation.create(plan.coordinator, listed, {"t": plan.partitions}, {**BROKER, **plan.config})
        self.played = {
            letter: PlayedConsumer(member_id=letter.lower() * 4, instance=plan.instances.get(letter))
            for letter, assignors in plan.members.items()
            if not assignors
        }
        self.up: set[str] = set()
        self._answers: dict[int, SimulationResponse] = {}
        self._names: dict[str, str] = {}  # letters by member id, of those too that are gone
        self.state: SimulationState = simulation.state()

    # --- steps ---------------------------------------------------------------------------------------------

    def step(self, text: str) -> bool:
        """Do what the text says; false where it cannot be, and nothing has changed."""
        verb, _, rest = text.partition(" ")
        before = len(self.log)
        self.log.append(f"# {text}")
        try:
            done = self._do(verb, rest)
        except NotEnabled:
            done = False
        if not done:
            del self.log[before:]
        return done

    def _do(self, verb: str, who: str) -> bool:
        if verb == "settle":
            return self.settle()
        if verb == "failover":
            return self._commands({"do": "failover"})
        if verb == "elapse":
            return self._commands({"do": "elapse", "ms": int(who)})
        if verb == "expire":
            return self._expire(who)
        if who not in self.letters:
            return False
        if verb == "run":
            self._try("beat", who)
            return self._run(who)
        if verb == "start" and self._has_double(who):
            return False
        if who in self.played:
            return self._of_played(verb, who)
        return self._of_classic(verb, who)

    def _has_double(self, who: str) -> bool:
        """Check whether another process with its ``group.instance.id`` runs."""
        own = self.plan.instances.get(who)
        others = (one for one in self.letters if one != who and self.plan.instances.get(one) == own)
        return own is not None and any(map(self.is_up, others))

    def is_up(self, who: str) -> bool:
        """Check whether the process of a member runs, and is in the group or on its way into it."""
        if who not in self.played:
            return who in self.up
        return self.played[who].up and not self.played[who].gone

    def _of_classic(self, verb: str, who: str) -> bool:
        slot = self.letters.index(who)
        if verb == "start" and who not in self.up:
            self.up.add(who)
            slotted = {"member": slot}
            opening: list[JsonLine] = [
                {"do": do, **slotted} for do in ("start", "poll", "deliver", "respond")
            ]
            return self._commands(*opening)  # until it knows the coordinator
        if who not in self.up:
            return False
        match verb:
            case "poll" | "deliver" | "respond":
                return self._commands({"do": verb, "member": slot})
            case "drop":  # as lose, and what it has sent does not arrive
                return bool(self._of(slot)) and self._commands({"do": "disconnect", "member": slot})
            case "beat":
                return self._commands({"do": "heartbeat", "member": slot})
            case "lose":  # its connections end: what is under way to it is gone, what it has sent arrives
                cut: JsonLine = {"do": "disconnect", "member": slot, "arrive": True}
                return bool(self._of(slot)) and self._commands(cut)
            case "crash":
                self.up.discard(who)
                return self._commands({"do": "crash", "member": slot})
            case "leave":
                self.up.discard(who)
                done = self._commands({"do": "close", "member": slot, "ms": 0, "arrive": True})
                return done and self._deliver_all(slot)
        return False

    def _of_played(self, verb: str, who: str) -> bool:
        slot, one = self.letters.index(who), self.played[who]
        send: JsonLine = {"do": "send", "member": slot, "api": "CONSUMER_GROUP_HEARTBEAT"}
        match verb:
            case "start" if not one.up:
                self.played[who] = PlayedConsumer(
                    member_id=f"{who.lower() * 4}{self.starts}", instance=one.instance, up=True
                )
                self.starts += 1
                return True
            case "send" if one.can_send:
                return self._commands(send | one.heartbeat())
            case "reconcile" if one.can_reconcile:
                one.reconcile()
                return True
            case "deliver":
                return self._commands({"do": "deliver", "member": slot})
            case "respond" if one.up:
                return self._respond_played(slot, one)
            case "lose" if one.waiting:
                for message in self._of(slot):
                    self._do_id("deliver", message)
                    self._do_id("lose", message)
                one.lose()
                return True
            case "drop" if one.waiting:
                done = self._commands({"do": "drop", "member": slot})
                one.lose()
                return done
            case "crash" if one.up:
                one.up = False
                one.owned = frozenset()
                return self._forget(slot)
            case "leave" if one.can_send:
                done = self._commands(send | one.leave()) and self._deliver_all(slot)
                return done and self._forget(slot)
        return False

    def _respond_played(self, slot: int, one: PlayedConsumer) -> bool:
        answered = self._answered(slot)
        if not answered:
            return False
        answer = self._answers.pop(answered[0])
        self._commands({"do": "respond", "id": answered[0]})
        one.hear(answer)
        return True

    def _expire(self, who: str) -> bool:
        """Fire the coordinator's session timer of a member, whatever has been heard of it."""
        member = self.id_of(who)
        keys = [k for k in self.state.coordinator.timers if member and k.endswith(member)]
        session = [k for k in keys if k.startswith(("session-timeout-", "heartbeat-"))]
        if session:
            self.expired.add(who)
            self._commands({"do": "expire", "timer": session[0]})
        return bool(session)

    def _run(self, who: str) -> bool:
        """Do all that a member does until nothing of it is under way; if it is played, one heartbeat."""
        slot, moved = self.letters.index(who), False
        if who in self.played:
            self._of_played("reconcile", who)
            moved = self._try("send", who)
            moved |= self._try("deliver", who)
            moved |= self._try("respond", who)
            self._of_played("reconcile", who)
            return moved
        for _ in range(MAX_EXCHANGES):
            before = self.state
            if not self._try("poll", who):
                return moved
            for message in list(self._of(slot)):
                self._do_id("deliver", message)
                self._do_id("respond", message)
            if self.state.requests == before.requests and self.state == before:
                break
            moved = True
        return moved

    def _do_id(self, verb: str, message: int) -> None:
        with contextlib.suppress(NotEnabled):
            self._commands({"do": verb, "id": message})

    def _try(self, verb: str, who: str) -> bool:
        if who not in self.played and who not in self.up:
            return False
        try:
            return self._of_played(verb, who) if who in self.played else self._of_classic(verb, who)
        except NotEnabled:
            return False

    def settle(self, rounds: int = QUIET_ROUNDS) -> bool:
        """Leave the group alone: everybody does what is to be done, round by round, and time passes."""
        rests = 0
        for _ in range(rounds):
            before = self._standing()
            for who in self.letters:
                if who in self.up:
                    self._try("beat", who)
                self._run(who)
            self._commands({"do": "elapse", "ms": ROUND_MS})
            for slot, who in enumerate(self.letters):
                if who in self.up:
                    self._commands({"do": "clock", "member": slot, "ms": ROUND_MS})
            rests = rests + 1 if self._standing() == before and self._all_known() else 0
            if rests == RESTS:
                break
        return True

    def _standing(self) -> tuple[object, ...]:
        coordinator = self.state.coordinator
        return (
            coordinator.state,
            coordinator.generation,
            coordinator.consumer,
            self.owners(),
            self.converted,
        )

    def _all_known(self) -> bool:
        """Check whether whoever is registered is there, so that no session has still to end."""
        coordinator = self.state.coordinator
        ids = {
            one.id for one in (coordinator.consumer.members if coordinator.consumer else coordinator.members)
        }
        if coordinator.pending_joins:
            return False
        there = filter(self.is_up, self.letters)
        return ids <= {self.id_of(who) for who in there if who in self.up or not self.played[who].dead}

    # --- what happens --------------------------------------------------------------------------------------

    def _commands(self, *commands: JsonLine) -> bool:
        was = self.state.coordinator.consumer is not None
        events, self.state = self.simulation.step(*commands)
        for event in events:
            self._note(event)
        now = self.state.coordinator.consumer is not None
        if was != now and (self.state.coordinator.state is not None or now):
            self.converted += 1
            self.log.append(f"the group is {'a consumer' if now else 'a classic'} group")
        return True

    def _note(self, event: SimulationEvent) -> None:
        if isinstance(event, SimulationResponse) and self.who(event.member) in self.played:
            self._answers[event.id] = event
        if isinstance(event, SimulationThrown):
            self.thrown.append(f"{self.who(event.member)}: {event.error}: {event.message}")
        if not (
            isinstance(event, SimulationRequest | SimulationResponse)
            and event.api in ("FindCoordinator", "Metadata")
        ):
            self._names |= {self.id_of(who): who for who in self.letters}
            self.log.append(shown(event, self.who(event.member), self._names))

    def who(self, slot: int) -> str:
        """Return the letter of a member."""
        return self.letters[slot] if slot < len(self.letters) else "probe"

    def _of(self, slot: int) -> list[int]:
        under = (*self.state.requests, *self.state.responses)
        return sorted(one.id for one in under if one.member == slot and not one.abandoned)

    def _answered(self, slot: int) -> list[int]:
        return [one.id for one in self.state.responses if one.member == slot and not one.abandoned]

    def _forget(self, slot: int) -> bool:
        """Whoever starts in its stead hears nothing of what was said to a played member."""
        for message in self._of(slot):
            self._do_id("drop", message)
            self._do_id("lose", message)
        return True

    def _deliver_all(self, slot: int) -> bool:
        for one in [one.id for one in self.state.requests if one.member == slot]:
            self._do_id("deliver", one)
        return True

    # --- who owns what -------------------------------------------------------------------------------------

    def id_of(self, who: str) -> str:
        """Return the member id that a member has, "" before it has one."""
        if who in self.played:
            return self.played[who].member_id
        consumer = self.state.members[self.letters.index(who)]
        return consumer.member_id if consumer else ""

    def generation_of(self, who: str) -> int:
        """Return its generation, or its member epoch."""
        if who in self.played:
            return self.played[who].epoch
        consumer = self.state.members[self.letters.index(who)]
        return consumer.generation if consumer else -1

    def owned(self, who: str) -> Partitions:
        """Return what a member would read now."""
        if who in self.played:
            return self.played[who].owned
        consumer = self.state.members[self.letters.index(who)]
        return consumer.owned if consumer else frozenset()

    def accepted(self, who: str) -> bool:
        """Check whether the coordinator knows the member in the generation or epoch that it has."""
        member, generation, known = self.id_of(who), self.generation_of(who), self.state.coordinator
        if known.consumer is not None:
            return any(one.id == member and one.epoch == generation for one in known.consumer.members)
        registered = any(one.id == member for one in known.members)
        return registered and generation == known.generation and who not in self.played

    def owners(self) -> dict[str, tuple[Owner, ...]]:
        """Partition -> who owns it."""
        found: dict[str, tuple[Owner, ...]] = {f"t-{i}": () for i in range(self.plan.partitions)}
        for who in self.letters:
            for partition in self.owned(who):
                found[partition] = (*found[partition], Owner(who, self.accepted(who)))
        return found

    def owned_twice(self) -> tuple[str, ...]:
        """Return partitions with two owners whose commits the coordinator takes."""
        return tuple(
            partition
            for partition, owners in sorted(self.owners().items())
            if sum(owner.accepted for owner in owners) > 1
        )

    def overlaps(self) -> tuple[str, ...]:
        """Return partitions with two owners, of whom no session has ended: one was given what another had not
        yet given up."""
        return tuple(
            partition
            for partition, owners in sorted(self.owners().items())
            if sum(owner.member not in self.expired for owner in owners) > 1
        )

    def unowned(self) -> tuple[str, ...]:
        """Return partitions that nobody who is there owns."""
        return tuple(partition for partition, owners in sorted(self.owners().items()) if not owners)

    def commit(self, who: str, partition: str) -> str:
        """Return the error with which the coordinator answers a commit of this member; NONE if it takes
        it."""
        slot = len(self.letters)
        fields: JsonLine = {"member_id": self.id_of(who), "generation": self.generation_of(who)}
        fields |= {"partitions": [partition], "instance": self.plan.instances.get(who)}
        events, self.state = self.simulation.step(
            {"do": "send", "member": slot, "api": "OFFSET_COMMIT", **fields},
            {"do": "deliver", "member": slot},
        )
        [answer] = [one for one in events if isinstance(one, SimulationResponse)]
        self.simulation.command("respond", id=answer.id)
        self.log.append(f"{who} commits {partition} at {fields['generation']}: {answer.error}")
        return answer.error


def shown(event: SimulationEvent, who: str, names: Mapping[str, str]) -> str:
    """Return a message or a callback in a line; ``names``: member ids and their letters."""
    match event:
        case SimulationRequest():
            facts = [] if event.generation is None else [f"epoch {event.generation}"]
            facts += [f"owns {parts(event.owned)}"] if event.owned is not None else []
            facts += [f"claims {parts(event.claims[0].owned)}"] if event.claims else []
            assigned = sorted((names.get(one, one), given or ()) for one, given in event.assignments.items())
            facts += [f"assigns {one}{parts(given)}" for one, given in assigned]
            return f"{who} -> {event.api} {', '.join(facts)}".rstrip()
        case SimulationResponse():
            fine = event.error == "NONE"
            facts = [] if fine else [event.error + (f" ({event.failure})" if event.failure else "")]
            facts += [f"epoch {event.generation}"] if fine and event.generation is not None else []
            facts += [f"assigned {parts(event.assignment)}"] if event.assignment is not None else []
            return f"{who} <- {event.api} {', '.join(facts)}".rstrip() + (
                " (lost)" if event.abandoned else ""
            )
        case SimulationCallback():
            return f"{who}: {event.call} {parts(event.partitions)}"
        case SimulationThrown():
            return f"{who} throws {event.error}: {event.message}"
        case _:
            return f"{who}: {getattr(event, 'event', type(event).__name__)}"


def parts(partitions: Iterable[str]) -> str:
    """Return the indexes of partitions of one topic, in braces.

    >>> parts(["t-1", "t-0"])
    '{0,1}'
    """
    return "{" + ",".join(sorted(one.rpartition("-")[2] for one in partitions)) + "}"


__all__ = ["GroupPlan", "MigrationGroup", "Owner", "SimulationBroken"]
