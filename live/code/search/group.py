"""The group that is searched: a simulation, what is under way on each connection, and the way back.

Requests of one connection arrive in order, one at a time: a broker reads the next one when it has answered
the last. What was sent on a connection that has ended may still arrive, and nobody hears the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import (
    ConsumerState,
    SimulationEvent,
    SimulationNoted,
    SimulationRequest,
    SimulationResponse,
    SimulationState,
)
from rebalance_verifier.live.code.replay.coordinator import CoordinatorWatch
from rebalance_verifier.live.code.replay.group import CodeGroup, CodeMember, CodeReleases
from rebalance_verifier.live.code.simulation import Simulation, SimulationMember
from rebalance_verifier.model.consumer.state import Beat, ConsumerMember
from rebalance_verifier.model.group.parts import Life, Parts, Topics
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, Setup, letter
from rebalance_verifier.model.machine import Event
from rebalance_verifier.properties.group.clauses import most_rounds

FOUND = "FindCoordinator"
"""Goes to any node, not to the coordinator."""

JOINING = ("JoinGroup", "SyncGroup")


@dataclass(frozen=True, kw_only=True)
class GroupAssignor:
    """A class, the jars that it needs beside kafka-clients, and what it is configured with."""

    class_name: str
    classpath: tuple[str, ...]
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class SearchMemory:
    """Knowledge of a group besides the state of its simulation."""

    member_ids: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Member id -> its slot, and the how manyth id of that slot it is."""
    claimed_generations: dict[str, int] = field(default_factory=dict)
    """Member id -> the generation in which the partitions that its last JoinGroup claims were assigned."""
    subscriptions: dict[int, frozenset[str]] = field(default_factory=dict)
    """Slot -> the topics that it subscribes to."""
    polled_without_effect: frozenset[int] = frozenset()
    """Slots whose next poll changes nothing."""
    last_heartbeat_views: dict[int, object] = field(default_factory=dict)
    """Slot -> its view of the group when a heartbeat last changed nothing."""
    stale_metadata: frozenset[int] = frozenset()
    """Slots that have not seen the newest topics."""
    disconnected: dict[int, tuple[str, ConsumerState]] = field(default_factory=dict)
    """Slot -> the API of the request under which its connection ended, and its state at that time."""
    given_up: frozenset[int] = frozenset()
    """Slots whose consumer has given up."""
    pending_requests: dict[int, int] = field(default_factory=dict)
    """Slot -> the number of its request that waits."""
    without_effect: frozenset[Event] = frozenset()
    """Events that change nothing in this state."""
    partition_count: int = 0
    """Partitions that exist."""
    responses: dict[int, SimulationResponse] = field(default_factory=dict)
    """Number of a request -> its response."""
    stages: dict[int, int] = field(default_factory=dict)
    """Slot -> the stage of its configuration, once it was bounced."""
    clients: dict[int, ConsumerMember] = field(default_factory=dict)
    """Slot -> its client, where it speaks the consumer protocol."""
    beats: dict[int, Beat] = field(default_factory=dict)
    """Slot -> the heartbeat of its client whose answer it waits for."""
    sent_beats: dict[int, Beat] = field(default_factory=dict)
    """Number of a request -> the heartbeat that it is."""
    sent_views: dict[int, tuple[object, ConsumerMember]] = field(default_factory=dict)
    """Slot -> how the coordinator and its client stood when this sent its last heartbeat."""

    def copied(self) -> SearchMemory:
        """Return one that changes on its own."""
        return replace(
            self,
            member_ids=dict(self.member_ids), claimed_generations=dict(self.claimed_generations),
            subscriptions=dict(self.subscriptions), last_heartbeat_views=dict(self.last_heartbeat_views),
            disconnected=dict(self.disconnected), pending_requests=dict(self.pending_requests),
            responses=dict(self.responses),
            stages=dict(self.stages), clients=dict(self.clients), beats=dict(self.beats),
            sent_beats=dict(self.sent_beats), sent_views=dict(self.sent_views),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class GroupMark:
    """Where a group stood: ``commands`` brings the simulation there from its beginning."""

    commands: tuple[JsonLine, ...]
    members: tuple[CodeMember, ...]
    memory: SearchMemory
    watch: CoordinatorWatch
    state: SimulationState


class SearchedGroup(CodeGroup):
    """A group of a simulation that is moved freely. The order of its member ids is that of the slots."""

    def __init__(
        self,
        simulation: Simulation,
        setup: Setup,
        releases: CodeReleases,
        assignor: GroupAssignor | None = None,
    ) -> None:
        commits = "slow commit" in setup.faults
        super().__init__(simulation, setup, releases, list(setup.slots), commits=commits)
        self.assignor = assignor
        self.memory = SearchMemory(partition_count=setup.exist)
        self.commands: list[JsonLine] = []
        self._created = False

    def begin(self) -> None:
        """Begin again, with no consumer started. See `CodeGroup.begin`."""
        for member in self.members:
            member.forget()
            member.delayed_request, member.sent_requests = None, {}
            member.last_assignment = 0
            member.eager = self._is_eager(member.slot, 0)
        self.memory = SearchMemory(partition_count=self.setup.exist)
        self.watch = CoordinatorWatch(self.setup, self.at_work)
        self.seen, self.refreshed, self.commands = [], [], []
        if self._created:
            _, self.state = self.simulation.step({"do": "reset"})
        else:
            super().begin()
            self._created = True

    def _is_eager(self, slot: int, stage: int) -> bool:
        config = self.setup.consumers[slot].stages[stage]
        return config.group_protocol == CLASSIC and config.eager

    def bounced(self, slot: int) -> None:
        """Give a slot, whose process has ended, the configuration of its next stage."""
        stage = self.memory.stages.get(slot, 0) + 1
        self.memory.stages[slot] = stage
        self.members[slot].eager = self._is_eager(slot, stage)
        self.memory.clients.pop(slot, None)

    def changed_settings(self, slot: int) -> JsonLine:
        """Return the settings of a process that are not those of the slot's first stage."""
        stage = self.memory.stages.get(slot, 0)
        settings = self.settings(slot, stage, self.client(slot)).settings()
        return {"assignors": settings["assignors"]} if stage else {}

    def is_played(self, slot: int) -> bool:
        """Check whether a member speaks the consumer protocol: its client is the model's."""
        stage = self.memory.stages.get(slot, 0)
        return self.setup.consumers[slot].stages[stage].group_protocol == CONSUMER

    def is_up(self, slot: int) -> bool:
        """Check whether the process of a member runs."""
        if self.is_played(slot):
            client = self.memory.clients.get(slot)
            return client is not None and client.life is Life.UP
        return self.state.members[slot] is not None

    def at_work(self, member_id: str) -> bool:
        """Check whether some process goes by a member id, or is about to learn that it does."""
        if member_id not in self.memory.member_ids:
            return False
        slot = self.slot(member_id)
        if self.is_played(slot):
            client = self.memory.clients.get(slot)
            return client is not None and client.life is Life.UP and client.id == self.number(member_id)
        consumer = self.state.members[slot]
        if consumer is None:
            return False
        if consumer.member_id == member_id or any(one.member_id == member_id for one in self.arrived(slot)):
            return True
        waited = self.waits(slot)
        newest = max(number for owner, number in self.memory.member_ids.values() if owner == slot)
        first = waited is not None and waited.api == "JoinGroup" and not waited.member_id
        return first and self.number(member_id) == newest

    def settings(self, slot: int, stage: int, client: str) -> SimulationMember:
        """Return those of a consumer; all have the assignor of somebody's own, if there is one."""
        usual = super().settings(slot, stage, client)
        if self.assignor is None:
            return usual
        config = {**usual.config, **self.assignor.config}
        return replace(usual, assignors=(self.assignor.class_name,), config=config)

    def run(self, *commands: JsonLine) -> tuple[SimulationEvent, ...]:
        """Run as `CodeGroup.run` does; what is under way is read off the simulation."""
        self.commands += commands
        try:
            events = super().run(*commands)
        except BaseException:
            del self.commands[-len(commands) :]
            raise
        for member in self.members:
            member.open_requests = {one.api: one for one in self.queue(member.slot)}
            if not self.is_up(member.slot):
                self.memory.pending_requests.pop(member.slot, None)
        self._number()
        return events

    def _takes(self, event: SimulationEvent) -> None:
        super()._takes(event)
        match event:
            case SimulationRequest(api="JoinGroup"):
                topics = event.claims[0].topics if event.claims else ()
                self.memory.subscriptions[event.member] = frozenset(topics)
                own_gen = self.members[event.member].owned_generation
                self.memory.claimed_generations[event.member_id or f"of {event.member}"] = own_gen
            case SimulationResponse():
                self.memory.responses[event.id] = event
                if self.memory.pending_requests.get(event.member) == event.id:
                    del self.memory.pending_requests[event.member]
            case SimulationNoted(event="disconnected"):
                self.memory.pending_requests.pop(event.member, None)

    def _number(self) -> None:
        """Learn whose the member ids are that the coordinator has given."""
        known, memory = self.state.coordinator, self.memory
        served = known.consumer.members if known.consumer else ()
        ids = [(one.id, one.client[-1]) for one in known.members]
        ids += [(one.id, one.client[-1]) for one in served]
        for one, name in (*ids, *((one, one[1]) for one in known.pending_joins)):
            if one not in memory.member_ids:
                self.named(one, ord(name) - ord("A"))

    def named(self, member_id: str, slot: int) -> int:
        """Learn that a member id is of a slot; return the how manyth it is."""
        number = self.next_number(slot)
        self.memory.member_ids[member_id] = slot, number
        return number

    def next_number(self, slot: int) -> int:
        """Return the how manyth the next member id of a slot will be."""
        return 1 + sum(owner == slot for owner, _ in self.memory.member_ids.values())

    def id_of(self, slot: int, number: int) -> str:
        """Return a member id by its slot and number. Raises StopIteration for one that there is not."""
        return next(one for one, its in self.memory.member_ids.items() if its == (slot, number))

    def slot(self, member_id: str) -> int:
        """Return whose member id it is. Raises KeyError for one that the coordinator has not given."""
        return self.memory.member_ids[member_id][0]

    def number(self, member_id: str) -> int:
        """Return the how manyth id of its owner it is."""
        return self.memory.member_ids[member_id][1]

    # -- what is under way ---------------------------------------------------------------------------------

    def queue(self, slot: int) -> list[SimulationRequest]:
        """Return the requests on a member's connections that have not arrived, the oldest first."""
        sent = self.members[slot].sent_requests
        return [sent[one.id] for one in self.state.requests if one.member == slot and not one.abandoned]

    def strays(self, slot: int) -> list[SimulationRequest]:
        """Return those on connections that have ended."""
        sent = self.members[slot].sent_requests
        return [sent[one.id] for one in self.state.requests if one.member == slot and one.abandoned]

    def arrived(self, slot: int) -> list[SimulationResponse]:
        """Return the answers that a member has not looked at, the oldest first."""
        known = self.memory.responses
        return [known[one.id] for one in self.state.responses if one.member == slot and not one.abandoned]

    def waits(self, slot: int) -> SimulationRequest | None:
        """Return the request of a member that the coordinator has and does not answer yet."""
        found = self.memory.pending_requests.get(slot)
        return None if found is None else self.members[slot].sent_requests[found]

    def joins(self, slot: int) -> bool:
        """Check whether a JoinGroup or SyncGroup of a member is under way."""
        waited = self.waits(slot)
        sent = [*self.queue(slot), *([waited] if waited else [])]
        return any(one.api in JOINING for one in sent) or any(o.api in JOINING for o in self.arrived(slot))

    def timer(self, kind: str, member_id: str) -> str:
        """Return the key of a timer that a consumer group has for a member, "" where it is not set."""
        keys = (one for one in self.state.coordinator.timers if one.endswith(f"-{member_id}"))
        return next((one for one in keys if one.startswith(f"{kind}-timeout-")), "")

    def subscribed(self, slot: int) -> int:
        """Return the partitions that there are of the topics that a member subscribes to now."""
        consumer = self.state.members[slot]
        topics = sum(1 << self.topics.index(name) for name in (consumer.topics if consumer else ()))
        return self.setup.parts(Topics(topics)) & self.memory.partition_count

    @property
    def most_rounds(self) -> int:
        """Return how many generations, or epochs, may follow the last fault."""
        return most_rounds(self.setup)

    def seen_by_clauses(self, arrived: SimulationRequest | None) -> Callable[[str], Any]:
        """Return what gives the value of a view of the group by name, after ``arrived`` has."""
        views = self.watch.views(self.state.coordinator) | committed(self, arrived)
        for member in self.members:
            views.update(self.views(member))
        return views.__getitem__

    def settled(self) -> bool:
        """Check whether all who run are settled members, each subscribed partition owned by one."""
        known = self.state.coordinator
        records = {one.id: one for one in known.members}
        owned = wanted = 0
        ids = set()
        for slot in self.setup.slots:
            consumer = self.state.members[slot]
            if consumer is None or not consumer.topics:
                continue
            record = records.get(consumer.member_id)
            if record is None or known.state != "STABLE" or consumer.state != "STABLE":
                return False
            if consumer.rejoin or consumer.joining or self.joins(slot):
                return False
            if consumer.generation != known.generation or record.assigned != consumer.owned:
                return False
            mine = self.owned(slot)
            if mine & owned or mine & ~self.subscribed(slot):
                return False
            ids.add(consumer.member_id)
            owned, wanted = owned | mine, wanted | self.subscribed(slot)
        return owned == wanted and ids == set(records) and not known.pending_joins

    def look(self) -> tuple[Any, ...]:
        """Return all that can be seen: two steps that come to the same did the same."""
        return (
            self.state,
            self.memory.partition_count,
            self.memory.stale_metadata,
            [m.believed_partitions for m in self.members],
            dict(self.memory.clients),
            dict(self.memory.stages),
        )

    def sight(self) -> Hashable:
        """Return what can be seen but the numbers of messages, which tell in which order they were sent."""
        state = self.state
        under_way = sorted((one.member, one.abandoned) for one in (*state.requests, *state.responses))
        timers = tuple(sorted(state.coordinator.timers.items()))
        names = [one.name for one in fields(state.coordinator) if one.name != "timers"]
        known = tuple(getattr(state.coordinator, name) for name in names)
        clients = tuple(sorted(self.memory.clients.items())), tuple(sorted(self.memory.stages.items()))
        return known, timers, state.members, tuple(under_way), self.memory.partition_count, clients

    # -- the way back --------------------------------------------------------------------------------------

    def mark(self) -> GroupMark:
        """Return where it stands."""
        members = tuple(copy(member) for member in self.members)
        for member in members:
            member.open_requests, member.sent_requests = (
                dict(member.open_requests),
                dict(member.sent_requests),
            )
        return GroupMark(
            commands=tuple(self.commands), members=members, memory=self.memory.copied(),
            watch=self.watch.copied(), state=self.state,
        )  # fmt: skip

    def back(self, mark: GroupMark) -> None:
        """Return to where it stood, from the beginning, in one line. Raises SimulationDied."""
        self.simulation.batch([{"do": "reset"}, *mark.commands], quiet=True)
        self.commands = list(mark.commands)
        self.members = [copy(member) for member in mark.members]
        for member in self.members:
            member.open_requests, member.sent_requests = (
                dict(member.open_requests),
                dict(member.sent_requests),
            )
        self.memory, self.state, self.seen = mark.memory.copied(), mark.state, []
        self.watch = mark.watch.copied()


def committed(group: SearchedGroup, arrived: SimulationRequest | None) -> dict[str, Any]:
    """Return the partitions of a commit that has just been accepted, as views of the members."""
    views = {f"commits {letter(slot)}": Parts(0) for slot in group.setup.slots}
    if arrived is not None and arrived.api == "OffsetCommit":
        answer = group.memory.responses.get(arrived.id)
        if answer is not None and answer.error == "NONE":
            views[f"commits {letter(arrived.member)}"] = Parts(group.bits(arrived.partitions))
    return views
