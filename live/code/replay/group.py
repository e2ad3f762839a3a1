"""The group on which a run is forced: a simulation with its consumers, and what they show, in the model's
terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.base.text import cut
from rebalance_verifier.explore.groups.scenarios import ScenarioError
from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.naming import RunNames
from rebalance_verifier.live.code.answers import (
    ConsumerState,
    SimulationCallback,
    SimulationEvent,
    SimulationNoted,
    SimulationRequest,
    SimulationResponse,
    SimulationState,
    SimulationThrown,
)
from rebalance_verifier.live.code.replay.coordinator import CoordinatorWatch, slot_of
from rebalance_verifier.live.code.simulation import Simulation, SimulationMember
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic.errors import FATAL
from rebalance_verifier.model.classic.state import JoinOk, Refused
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import (
    Answered,
    Call,
    Callback,
    Claimed,
    Completed,
    Decided,
    Threw,
)
from rebalance_verifier.model.group.setup import ConsumerConfig, Setup, letter
from rebalance_verifier.model.machine import NOBODY

POLLS = 4
"""After which a consumer does what it will do: each looks at one more answer."""

MOST_MESSAGE = 300
"""Columns of what an exception says that are kept."""

ERRORS = "org.apache.kafka.common.errors."

GROUP = {"group.initial.rebalance.delay.ms": 3000, "offsets.retention.minutes": 1}
"""The first join phase waits too, so that the trace says when it ends."""


def limits(setup: Setup) -> Mapping[str, object]:
    """Return the limits of members of a broker, whichever protocol its groups have."""
    names = ("group.max.size", "group.consumer.max.size")
    return {} if setup.max_size is None else dict.fromkeys(names, setup.max_size)


RETENTION = 61_000
"""Milliseconds after which an empty group has no offsets any more."""


REWRITTEN = "4.0.0"
"""The first release whose broker runs by default the coordinator that a simulation runs of every release."""

NO_AUTOMATIC_COMMIT = {"auto.commit.interval.ms": 1 << 30}
"""Automatic commits come before a join, when a consumer is closed, and never by themselves."""


STAYS_ON_CLOSE = {"internal.leave.group.on.close": "false"}
"""As Kafka Streams sets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeReleases:
    """The releases of Kafka that are run, such as 4.1.0: those of ``consumers`` by the members in turn."""

    coordinator: str
    consumers: tuple[str, ...]

    def of(self, slot: int) -> str:
        """Return the release of a member."""
        return self.consumers[slot % len(self.consumers)]

    def refuse_without_consumer_groups(self, what: str, slots: Collection[int] = ()) -> None:
        """Raise ScenarioError for releases that have no consumer groups; ``what`` is to be played on them.

        ``slots``: who is in them, if it is not everybody.
        """
        oldest = min(map(self.of, slots) if slots else self.consumers, key=version)
        for side, release in (("a coordinator", self.coordinator), ("a consumer", oldest)):
            if version(release) < version(REWRITTEN):
                raise ScenarioError(f"{what}: {side} of {release} has no such groups")

    def __str__(self) -> str:
        if self.consumers == (self.coordinator,):
            return f"code:{self.coordinator}"
        return ",".join([f"coordinator:{self.coordinator}", *(f"consumer:{one}" for one in self.consumers)])

    @property
    def sentence(self) -> str:
        """Return both as text."""
        return f"coordinator {self.coordinator}, consumers {', '.join(self.consumers)}"


@dataclass(kw_only=True)
class CodeMember:
    """One consumer of a replay."""

    slot: p.Slot
    eager: bool = False
    believed_partitions: int = 0
    """Partitions that its listener must believe to own."""
    owned_generation: int = p.NONE
    """The generation in which its owned partitions were assigned."""
    open_requests: dict[str, SimulationRequest] = field(default_factory=dict)
    """API -> its request that is neither delivered nor lost yet."""
    unanswered_requests: dict[str, SimulationRequest] = field(default_factory=dict)
    """API -> its request that arrived and has no answer."""
    undelivered_answers: dict[str, SimulationResponse] = field(default_factory=dict)
    """API -> the answer that came back and was not handed over."""
    last_assignment: int = 0
    """Partitions that it was assigned last."""
    early_join_answer: SimulationResponse | None = None
    """JoinGroup's answer, where it was handed over before the trace says so."""
    delayed_request: SimulationRequest | None = None
    """A request that the trace keeps back."""
    cut_off_requests: list[list[SimulationRequest]] = field(default_factory=list)
    """Requests of each connection that broke."""
    sent_requests: dict[int, SimulationRequest] = field(default_factory=dict)
    """All its requests by number."""
    commit_numbers: set[int] = field(default_factory=set)
    """Numbers of the commits that the application asked for."""

    def forget(self) -> None:
        """Begin as a new process: nothing of the old one counts but a JoinGroup that may still arrive."""
        self.believed_partitions, self.owned_generation = 0, p.NONE
        request = self.delayed_request
        self.delayed_request = request if request and request.api == "JoinGroup" else None
        self.cut_off()

    def cut_off(self) -> None:
        """Drop all requests under way, which will not be answered."""
        self.open_requests, self.unanswered_requests, self.undelivered_answers = {}, {}, {}
        self.early_join_answer = None


class CodeGroup(RunNames):
    """A simulation and its members; ``seen`` is what they have shown since the last step, in the model's
    terms, ``refreshed`` who has received metadata.

    ``order``: the slots in the order in which their member ids sort, which are drawn from the number
    ``naming`` on. ``commits``: whether the consumers commit before they join. ``has_offsets``: whether a
    commit has been accepted; ``last_arrived``: the last request that did.
    """

    def __init__(
        self,
        simulation: Simulation,
        setup: Setup,
        releases: CodeReleases,
        order: Sequence[int],
        naming: int = 1,
        *,
        commits: bool,
    ) -> None:
        self.simulation, self.setup, self.releases, self.commits = simulation, setup, releases, commits
        self.naming = naming
        self.members = [CodeMember(slot=p.Slot(slot)) for slot in setup.slots]
        self.seen: list[Any] = []
        self.refreshed: list[int] = []
        self.last_arrived: SimulationRequest | None = None
        self.has_offsets = False
        self.state: SimulationState
        self.watch = CoordinatorWatch(setup)
        self._forged: set[int] = set()
        self._ranks = {slot: rank for rank, slot in enumerate(order)}

    def begin(self) -> None:
        """Start the simulation with this group, in which no consumer has started.

        Raises NotEnabled, SimulationBroken, SimulationDied.
        """
        slots, topics = self.setup.slots, self.counts(self.setup.exist)
        settings = [self.settings(slot, 0, self.client(slot)) for slot in slots]
        config = self.broker(limited=not self.setup.lowers)
        self.simulation.create(
            self.releases.coordinator, settings, topics, config, self.racks(self.setup.exist)
        )
        if self.naming > 1:
            self.simulation.command("ids", first=self.naming, step=1)
        self.state = self.simulation.state()

    def broker(self, *, limited: bool) -> JsonLine:
        """Return the config of a coordinator, and whether it has the group.max.size of the setup."""
        size = self.setup.max_size if limited else None
        return GROUP if size is None else GROUP | {"group.max.size": size}

    def settings(self, slot: int, stage: int, client: str) -> SimulationMember:
        """Return those of a consumer in a stage of an upgrade."""
        consumer = self.setup.consumers[slot]
        return SimulationMember(
            release=self.releases.of(slot),
            assignors=consumer.stages[stage].assignors,
            topics=tuple(self.names(consumer.subscriptions[0])),
            instance=self.instance(slot, client),
            client=client,
            config={"enable.auto.commit": str(self.commits).lower()}
            | ({} if consumer.rack is None else {"client.rack": consumer.rack})
            | ({} if consumer.stages[stage].leaves else STAYS_ON_CLOSE)
            | NO_AUTOMATIC_COMMIT,
        )

    def client(self, slot: int) -> str:
        """Return the client id of a slot, with which its member ids begin."""
        return f"{self._ranks[slot]:x}{letter(slot)}"

    def instance(self, slot: int, client: str = "") -> str | None:
        """Return the ``group.instance.id`` of a static member: its member ids begin with it."""
        return None if self.setup.consumers[slot].instance is None else f"{client or self.client(slot)}i"

    def views(self, member: CodeMember) -> Mapping[str, Any]:
        """Return what the clauses about states ask of a member, as Kafka has it."""
        name, consumer = letter(member.slot), self.state.members[member.slot]
        owned = self.owned(member.slot)
        joined = consumer is not None and consumer.generation != p.NONE and consumer.member_id in self._ids()
        settled = (
            consumer is not None and consumer.state == "STABLE" and "SyncGroup" not in member.open_requests
        )
        return {
            f"held {name}": p.Parts(owned if joined else 0),
            f"listener {name}": (
                p.Parts(member.believed_partitions),
                p.Parts(owned if settled else member.believed_partitions),
                p.Life.UP,
            ),
            f"reads {name}": (member.eager, self._commits(member), p.Parts(self.fetchable(member.slot))),
        }  # fmt: skip

    def _commits(self, member: CodeMember) -> bool:
        """Check whether it polls on while the commit before a revocation is under way."""
        consumer, commit = self.state.members[member.slot], member.open_requests.get("OffsetCommit")
        own = commit is not None and commit.id not in member.commit_numbers
        return own and consumer is not None and not consumer.prepared

    def fetchable(self, slot: int) -> int:
        """Return what a consumer may read of what it has."""
        consumer = self.state.members[slot]
        return self.bits(consumer.fetchable) if consumer else 0

    def _ids(self) -> list[str]:
        return [one.id for one in self.state.coordinator.members]

    def owned(self, slot: int) -> int:
        """Return what a consumer has, as it was looked at last."""
        consumer = self.state.members[slot]
        return self.bits(consumer.owned) if consumer else 0

    def do(self, name: str, **arguments: Any) -> tuple[SimulationEvent, ...]:
        """Return one command; what it shows is seen. Raises NotEnabled, SimulationBroken, SimulationDied."""
        return self.run({"do": name, **arguments})

    def run(self, *commands: JsonLine) -> tuple[SimulationEvent, ...]:
        """Return several commands in one line, none but the first of which can be refused; see `do`."""
        before = self.state.coordinator
        events, self.state = self.simulation.step(*commands)
        for event in events:
            if event.member != NOBODY:  # an administrator
                self._takes(event)
        name, arguments = commands[0]["do"], {k: v for k, v in commands[0].items() if k != "do"}
        if name == "deliver":
            sent = (member.sent_requests.get(arguments["id"]) for member in self.members)
            self.last_arrived = next((one for one in sent if one is not None), None)
        if name == "commit":
            requests = (
                one for one in events if isinstance(one, SimulationRequest) and one.api == "OffsetCommit"
            )
            self.members[arguments["member"]].commit_numbers.update(one.id for one in requests)
        self.seen += self.watch.sees(name, arguments, before, self.state.coordinator, events)
        return events

    def _takes(self, event: SimulationEvent) -> None:
        match event:
            case SimulationRequest():
                member = self.members[event.member]
                member.open_requests[event.api] = event
                member.sent_requests[event.id] = event
                if event.api == "JoinGroup":
                    self._claims(member, event)
            case SimulationResponse():
                member = self.members[event.member]
                if (waited := member.unanswered_requests.get(event.api)) and waited.id == event.id:
                    del member.unanswered_requests[event.api]
                if not event.abandoned and event.id not in self._forged:
                    member.undelivered_answers[event.api] = event
                self.has_offsets |= event.api == "OffsetCommit" and event.error == "NONE"
            case SimulationCallback():
                self._calls(event)
            case SimulationNoted(event="responded"):  # while a call waited, so nobody else has to
                member = self.members[event.member]
                for under_way in (
                    member.open_requests,
                    member.unanswered_requests,
                    member.undelivered_answers,
                ):
                    for api in [api for api, one in under_way.items() if one.id == int(event.detail)]:
                        del under_way[api]
            case SimulationNoted(event="metadata"):
                self.refreshed.append(event.member)
            case SimulationThrown():
                listener = "rebalance callback" in (event.message or "")
                known = "listener" if listener else _THROWN.get(event.error)
                message = "" if known else cut((event.message or "").partition("\n")[0], MOST_MESSAGE)
                self.seen.append(Threw(p.Slot(event.member), known or event.error, message))

    def _claims(self, member: CodeMember, request: SimulationRequest) -> None:
        [first, *_] = request.claims or [None]
        owned = self.bits(first.owned) if first else 0
        label = first.generation if first else None
        if owned and label is not None and label != p.NONE:
            claimed = Claimed(
                member.slot, p.Parts(owned), p.Generation(label), p.Generation(member.owned_generation)
            )
            self.seen.append(claimed)

    def _calls(self, event: SimulationCallback) -> None:
        member, parts = self.members[event.member], self.bits(event.partitions)
        gone = event.generation == p.NONE
        call = Call(event.call)
        current = gone or event.shown_generation in (None, event.generation)
        self.seen.append(
            Callback(
                *(call, member.slot, p.Parts(parts), member.eager, gone or call is Call.LOST),
                *(p.Parts(self.bits(event.owned)), p.Parts(member.believed_partitions)),
                current=current,
            )
        )
        if call is Call.ASSIGNED:
            member.believed_partitions |= parts
            member.owned_generation = event.generation if event.owned else p.NONE
        else:
            member.believed_partitions &= ~parts

    def deliver(self, member: CodeMember, api: str) -> None:
        """Deliver its request. Raises Diverged when there is none."""
        request = member.open_requests.pop(api, None)
        if request is None:
            raise Diverged(f"{letter(member.slot)} has no {api} under way")
        member.unanswered_requests[api] = request
        self.do("deliver", id=request.id)

    def respond(self, member: CodeMember, api: str) -> SimulationResponse:
        """Hand over the response and look at it, without a poll of the application.

        Raises Diverged when there is none.
        """
        response = member.undelivered_answers.pop(api, None)
        if response is None:
            raise Diverged(f"the coordinator has not answered {letter(member.slot)}'s {api}")
        before = self.state.members[member.slot]
        looks: JsonLine = {"do": "network", "member": member.slot}
        # What an answer makes it send leaves with the second.
        forged = response.id in self._forged
        how = {"do": "refuse", "error": response.error} if forged else {"do": "respond"}
        self.run({**how, "id": response.id}, looks, looks)
        if response.error != "NONE":
            self._answered(member, response, before)
        if response.error in FATAL:  # which the application learns when it polls
            self.do("poll", member=member.slot)
        if response.api == "SyncGroup":
            member.last_assignment = self.bits(response.assignment or ())
        return response

    def forge(self, member: CodeMember, api: str, error: p.Error) -> None:
        """Answer its request with an error that another coordinator gives, not this one.

        Raises Diverged when there is none.
        """
        request = member.unanswered_requests.pop(api, None) or member.open_requests.pop(api, None)
        if request is None:
            raise Diverged(f"{letter(member.slot)} has no {api} under way")
        self._forged.add(request.id)
        member.undelivered_answers[api] = SimulationResponse(
            member=member.slot, id=request.id, api=api, error=error.value, abandoned=False
        )

    def commit_arrives(self, member: CodeMember) -> None:
        """Deliver and answer its commit before a join, if there is one."""
        if "OffsetCommit" in member.open_requests:
            self.deliver(member, "OffsetCommit")
            self.respond(member, "OffsetCommit")

    def broken_off(self, member: CodeMember, refused: Refused) -> None:
        """Wait until the effect of a broken connection on a request shows."""
        before = self.state.members[member.slot]
        self.ready(member)
        self.do("poll", member=member.slot)
        after = self.state.members[member.slot]
        if before is not None and after is not None:
            self.seen.append(made_of(member, refused.api, refused.error, before, after, same=True))

    def _answered(
        self, member: CodeMember, response: SimulationResponse, before: ConsumerState | None
    ) -> None:
        after = self.state.members[member.slot]
        if before is not None and after is not None:
            seen = answered_by(member, response, before, after)
            self.seen += [] if seen is None else [seen]

    def ready(self, member: CodeMember) -> None:
        """Wait until it knows its coordinator, and nothing more: the join is the trace's next step."""
        for _ in range(POLLS):
            state = self.state.members[member.slot]
            if state is None or state.coordinator_known:
                return
            self.do("poll", member=member.slot)
            if "FindCoordinator" in member.open_requests:
                self.deliver(member, "FindCoordinator")
                self.respond(member, "FindCoordinator")


def led_to(
    group: CodeGroup, leader: CodeMember, sync: SimulationRequest, own_gen: Callable[[p.Slot, str], int]
) -> Decided:
    """Return what a leader decided with its SyncGroup, on the claims that the coordinator has.

    ``own_gen``: the generation in which a slot, by its member id, was assigned what it claims.
    """
    claims, grants = [], []
    for one in group.state.coordinator.members:
        id_ = p.Id(slot_of(one), p.NO_ID)
        first = one.claims[0] if one.claims else None
        owned = group.bits(first.owned) if first else 0
        topics = p.union([1 << group.topics.index(name) for name in (first.topics if first else ())])
        gen = p.Generation(own_gen(id_.slot, one.id) if owned else p.NONE)
        claims.append((id_, p.Parts(owned), gen, group.setup.parts(topics)))
        grants.append(p.Grant(id_, p.Parts(group.bits(sync.assignments.get(one.id) or ()))))
    return Decided(leader.eager, tuple(claims), tuple(grants))


def taken(group: CodeGroup, member: CodeMember, after: ConsumerState) -> Completed:
    """That a member, which is like this now, took an assignment with the callbacks that were just seen."""
    calls = [one for one in group.seen if isinstance(one, Callback) and one.who == member.slot]
    owned = p.Parts(group.bits(after.owned))
    revoked = any(one.call is Call.REVOKED for one in calls)
    return Completed(
        who=member.slot,
        assigned=owned,
        owned=owned,
        eager=member.eager,
        revoked=revoked,
        rejoin=after.rejoin or after.joining or not revoked,
        believed=p.Parts(member.believed_partitions),
    )


def told_to_lead(config: ConsumerConfig, answer: JoinOk) -> bool:
    """Check whether an answer names the member as the leader: not to a client that cannot skip (KIP-814)."""
    return answer.leader and not (answer.skip and "static_leader_returns_as_follower" in config.decisions)


STATES = {one.value: one for one in p.MemberState}
"""MemberState of Kafka by name; before 2.7 REBALANCING stands for both states of a rebalance."""

_THROWN = {f"{ERRORS}GroupMaxSizeReachedException": p.Error.GROUP_MAX_SIZE_REACHED.value}
"""What an application is told with good reason, as the model has it."""

_APIS = {"JoinGroup": "join", "SyncGroup": "sync", "OffsetCommit": "commit"}


def answered_by(
    member: CodeMember, response: SimulationResponse, before: ConsumerState, after: ConsumerState
) -> Answered | None:
    """Return what a consumer made of an error response, by its state before and after; None of an unknown
    error, and of one that ends the consumer, which poll throws. Who has no member id has no membership to
    lose."""
    if response.error not in p.Error.__members__ or response.error in FATAL:
        return None
    sent = member.sent_requests[response.id]
    same = (
        bool(before.member_id)
        and sent.member_id == before.member_id
        and (response.api == "JoinGroup" or sent.generation == before.generation)
    )
    api = _APIS.get(response.api, "heartbeat")
    return made_of(member, api, p.Error[response.error], before, after, same=same)


def made_of(
    member: CodeMember, api: str, error: p.Error, before: ConsumerState, after: ConsumerState, *, same: bool
) -> Answered:
    """Return what a consumer made of an error, by its state before and after."""
    keeps_id = not before.member_id or after.member_id == before.member_id
    return Answered(
        who=member.slot,
        api=api,
        error=error,
        state=STATES.get(before.state, p.MemberState.PREPARING),
        same=same,
        reset=not keeps_id or (after.generation == p.NONE and before.generation != p.NONE),
        keeps_id=keeps_id,
        rejoin=after.rejoin or after.joining,
    )
