"""A run of the model played against real clients: environment and coordinator do what the trace says.

The clients are real, and so are metadata, offsets and records (the mock cluster). Their group requests
end at the proxy, where the coordinator of the trace answers them: which generation begins when and under
whose lead, whose session expires, which answer is late or lost. Assignments are those that the real leader
decides. What the clients then do, callback by callback, is put into the model's own observations and judged
by the same clauses that broke in the model (``properties.group.clauses``).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rebalance.explore.groups.runs import SavedRun
from rebalance.live.clusters.defaults import CLOSE
from rebalance.live.clusters.mock import MockCluster
from rebalance.live.consumers.member import ClientProfile, LiveMember, Log
from rebalance.live.proxy.frames import Frame, lines
from rebalance.live.proxy.proxy import Proxy, ProxyTimeout
from rebalance.live.proxy.rules import ProxyAction, ProxyRule
from rebalance.live.replay.client import TAKEN, ReplayClient, WentAnotherWay
from rebalance.live.replay.replay_plan import (
    Decision,
    Due,
    ReplayStep,
    SendTime,
    alike,
    due,
    next_of,
    send_time,
    slots,
)
from rebalance.live.replay.verdict import (
    LEADER,
    OBSERVABLE_CLAUSES,
    BrokenClause,
    Replayed,
)
from rebalance.model.protocol.describe import event_text, observation_text
from rebalance.model.protocol.errors import FATAL, answer_to
from rebalance.model.protocol.observations import Call, Callback, Claimed, Completed, Decided, Left, Threw
from rebalance.model.protocol.setup import MemberContext, Setup, letter
from rebalance.model.protocol.state import (
    NO_ID,
    NONE,
    Error,
    Generation,
    Grant,
    Id,
    Join,
    JoinOk,
    Life,
    MemberState,
    Parts,
    Refused,
    Slot,
    Sync,
    SyncOk,
    Topics,
    each,
    union,
)
from rebalance.model.wire import WireError, decode_assignment, decode_subscription
from rebalance.properties.group.clauses import CONVERGES, rules

RECORDS = 20
"""For each partition, where a client has to read something before it can commit."""

COORDINATOR = (
    *("join phase ends", "session expires", "session timeout", "rebalance timeout", "slow member"),
    *("append fails", "failover", "group expires", "join refused", "sync refused", "sync request"),
    *("abandoned join", "late request arrives"),
)
"""Steps that the coordinator takes by itself: clients learn of them from its answers."""


POLLS = 10
"""That a client makes while its commit waits, to see whether it goes on reading."""


class CannotForce(Exception):
    """Nothing here can make this step of the trace happen; the text says why."""


class TraceReplayer:
    """Cluster, proxy and clients for one replay."""

    def __init__(
        self,
        run: SavedRun,
        setup: Setup,
        profile: ClientProfile,
        order: Sequence[int],
        patience: float,
        log_dir: Path | None,
    ) -> None:
        self.run, self.setup, self.profile = run, setup, profile
        self.patience, self.log_dir = patience, log_dir
        self.order = order
        self.result = Replayed(clause=run.clause, client=str(profile), naming=tuple(letter(s) for s in order))
        self.log = Log()
        self.clients: list[ReplayClient] = []
        self.metas: dict[tuple[int, int], dict[str, bytes]] = {}
        """(slot, incarnation) -> metadata by assignor, of the last JoinGroup that arrived."""
        self.assigned: dict[tuple[int, int], bytes] = {}
        self.grants: dict[str, dict[tuple[int, int], bytes]] = {}
        """By leader: what its SyncGroup under way says."""
        self.decisions: list[Decision] = []
        self.numbers = {str(setup.partition(p)): p for parts in setup.topics for p in each(parts)}
        self.topics = list(dict.fromkeys(name.rpartition("-")[0] for name in self.numbers))
        self.rules = rules(setup)
        self._stack = contextlib.ExitStack()

    # -- life ------------------------------------------------------------------------------------------

    def __enter__(self) -> TraceReplayer:
        try:
            self.cluster = self._stack.enter_context(MockCluster())
            self.proxy = self._stack.enter_context(Proxy())
            host, port = self.cluster.bootstrap.split(",")[0].rsplit(":", 1)
            self.proxy.to(host, int(port))
            self.cluster.advertise(*self.proxy.addresses[0])
            # The mock cluster refuses newer ones with bytes that Java reads as a throttle of twenty minutes.
            newer = ProxyRule(
                api="ApiVersions", action=ProxyAction.ANSWER, times=None, error="UNSUPPORTED_VERSION", since=3
            )
            self.proxy.add(newer)
            for number, topic in enumerate(self.topics):
                count = len(each(self.setup.exist & self.setup.topics[number]))
                if count:
                    self.cluster.create_topic(topic, count)
                for part in range(count if self._reads else 0):
                    self.cluster.produce(topic, part, RECORDS)
            for slot, name in slots(self.setup):
                rank = list(self.order).index(slot)
                self.clients.append(
                    ReplayClient(slot, name, rank, self.proxy, self.log, self._bits, self.patience)
                )
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            if client.member is not None:
                client.member.end()
        self.result.events = list(self.log.lines)
        self.result.frames = list(lines([f for f in self.proxy.frames if f.fields is not None]))
        started = [line for line in self.log.lines if line.get("event") == "started"]
        self.result.version = str(started[0].get("detail", "")) if started else ""
        self._stack.close()

    # -- the play ----------------------------------------------------------------------------------------

    def play(self, steps: Sequence[ReplayStep]) -> None:
        """Step by step until the end, or until a client goes another way."""
        self.result.steps = len(self.run.events)
        self.due = due(self.run, steps)
        self.result.due = tuple(f"{name} has to {what}" for name, what in self.due.items())
        for position, step in enumerate(steps):
            self._step = step
            seen: list[Any] = []
            try:
                seen = list(self._one(steps, position))
            except CannotForce as reason:
                self.result.unforced.append(f"step {step.number}, {event_text(step.event)}: {reason}")
            except (WentAnotherWay, ProxyTimeout) as reason:
                self.result.stopped = f"step {step.number}, {event_text(step.event)}: {reason}"
                self._judge(step, ())
                return
            self.result.done = step.number
            self._judge(step, tuple(seen))
        try:
            self._stands_still(steps[-1])
        except WentAnotherWay as reason:
            self.result.stopped = f"after the last step: {reason}"
            return
        self._settle_all(steps[-1])

    def _one(self, steps: Sequence[ReplayStep], position: int) -> Iterator[Any]:
        step = steps[position]
        action = step.event.action
        if action in COORDINATOR:
            if action == "late request arrives":
                self._late_arrives(step)
            elif action == "abandoned join":
                self._abandoned(step)
            return
        if action == "join request":
            self._arrives(step)
            return
        if step.name == "":
            self._cluster(step)
            return
        client = self.clients[step.event.who]
        if client.over:
            return
        following = next_of(steps, position, client.slot)
        if following is not None and following.event.action == "slow commit":
            client.commit_is_slow()
        does: dict[str, Callable[[ReplayStep, ReplayClient], Iterator[Any]]] = {
            "start": self._start,
            "join": self._join,
            "assign": partial(self._assign, following=following),
            "leader sync": self._leader_sync,
            "heartbeat": self._heartbeat,
            "disconnect": self._disconnect,
            "late request": partial(self._late_request, steps=steps, position=position),
            "late answer": self._late_answer,
            "slow commit": self._slow_commit,
            "commit done": self._commit_done,
            "listener throws": self._listener_throws,
            "crash": self._crash,
            "pause": self._pause,
            "resume": self._resume,
            "hang": self._hang,
            "close": partial(self._leave, close=True),
            "bounce": partial(self._leave, close=True),
            "unsubscribe": partial(self._leave, close=False),
            "subscribe": self._subscribe,
            "resubscribe": self._subscribe,
            "refresh": self._refresh,
            "max poll": self._too_late,
            "poll interval": self._too_late,
        }
        if action == "receive":
            yield from self._receive(step, client, steps, position)
        elif action == "complete":
            yield from self._complete(step, client)
        elif action in does:
            yield from does[action](step, client)
        else:
            why = _NO_WAY.get(action, "nothing here does it")
            raise CannotForce(why)

    # -- clients -----------------------------------------------------------------------------------------

    def _start(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        consumer = self.setup.consumers[client.slot]
        stage = consumer.stages[step.member().stage]
        config: dict[str, Any] = {
            "partition.assignment.strategy": ",".join(stage.assignors),
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            "max.poll.interval.ms": 6000 if self._hurries else 300_000,
            "enable.auto.commit": "true" if self._commits_itself else "false",
            "auto.commit.interval.ms": 300_000,
            "auto.offset.reset": "earliest",
            "metadata.max.age.ms": 500 if self._changes else 300_000,
        }
        if consumer.instance is not None:
            config["group.instance.id"] = f"i{consumer.instance}"
        log = None
        if self.log_dir is not None:
            name = self.run.path.stem if self.run.path else self.run.clause.replace("/", "-")
            log = self.log_dir / f"{name}-{str(self.profile).replace(':', '-')}-{client.name}.log"
        client.eager = stage.eager
        client.read = client.began = sum(line.get("consumer") == client.name for line in self.log.lines)
        client.member = LiveMember(
            *(client.name, self.profile, "g", self._names(consumer.subscriptions[0]), config),
            bootstrap=self.proxy.bootstrap,
            log=self.log,
            log_file=log,
        )
        client.forget()
        yield from ()

    @property
    def _hurries(self) -> bool:
        return any(event.action in ("max poll", "poll interval") for event in self.run.events)

    @property
    def _commits_itself(self) -> bool:
        """Before each join, that is."""
        return any(event.action == "slow commit" for event in self.run.events)

    @property
    def _reads(self) -> bool:
        return any(
            event.action == "slow commit" or (event.action, event.choice) == ("late request", "commit")
            for event in self.run.events
        )

    @property
    def _changes(self) -> bool:
        return any(event.action.startswith("topic ") for event in self.run.events)

    def _names(self, topics: Topics | int) -> list[str]:
        return [self.topics[number] for number in each(topics)]

    # -- JoinGroup ---------------------------------------------------------------------------------------

    def _join(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        if "JoinGroup" in client.waiting:  # an old client that is not asked to show an id first
            return
        client.starts()
        frame = client.request("JoinGroup")
        fields = frame.fields or {}
        yield from client.look()
        yield from client.effects(frame)
        meta = _subscription(fields)
        if meta is None:
            return
        claims = self._bits(map(str, meta.owned_partitions))
        if claims and meta.generation_id != NONE:
            yield Claimed(
                client.slot, Parts(claims), Generation(meta.generation_id), Generation(client.own_gen)
            )
        expected = step.wire(after=True)
        modelled = getattr(getattr(expected, "meta", None), "owned", 0)
        if bool(modelled) != bool(claims):
            self._differs(step, f"claims {self._spell(claims)}, in the trace {self._spell(modelled)}")
        had_id, has_id = step.member().id != NO_ID, bool(fields.get("member_id"))
        if had_id != has_id:
            difference = "shows a member id" if has_id else "shows no member id"
            self._differs(step, f"{difference}, in the trace {'one' if had_id else 'none'}")
        if client.due is not None:
            due, client.due = client.due, None
            try:
                client.late = client.take("OffsetCommit", client.commits)
            except ProxyTimeout as error:
                why = f"no commit while its JoinGroup waits: {error}"
                self.result.unforced.append(f"step {due.number}, {event_text(due.event)}: {why}")

    def _arrives(self, step: ReplayStep) -> None:
        """The JoinGroup is the coordinator's: it has the metadata from now on."""
        client = self.clients[step.event.who]
        frame = client.waiting.get("JoinGroup")
        wire = step.wire(after=True)
        if frame is None or isinstance(wire, Refused):
            return
        assert wire is not None
        self.metas[client.slot, int(wire.id)] = _protocols(frame)

    def _abandoned(self, step: ReplayStep) -> None:
        """A JoinGroup arrives that its member has forgotten."""
        client = self.clients[step.event.who]
        if client.abandoned is not None:
            for record in step.records(after=True):
                if record not in step.records():
                    self.metas[client.slot, record.id] = _protocols(client.abandoned)

    def _answer_join(self, step: ReplayStep, client: ReplayClient, wire: JoinOk) -> None:
        members = []
        group = step.group()
        if wire.leader:
            for slot in self.order:
                for record in step.records(name=letter(slot)):
                    metas = self.metas.get((slot, record.id))
                    if record.meta is None or metas is None:
                        continue
                    instance = self.setup.consumers[slot].instance
                    members.append(
                        {
                            "member_id": self.clients[slot].id(record.id),
                            "group_instance_id": None if instance is None else f"i{instance}",
                            "metadata": metas.get(wire.protocol, b""),
                        }
                    )
        leader = group.leader
        client.reply(
            "JoinGroup",
            {
                "error_code": 0,
                "generation_id": int(wire.generation),
                "protocol_type": "consumer",
                "protocol_name": wire.protocol,
                "leader": client.id(wire.id)
                if wire.leader
                else self.clients[leader.slot].id(leader.incarnation)
                if leader is not None
                else "",
                "skip_assignment": wire.skip,
                "member_id": client.id(wire.id),
                "members": members,
            },
        )
        client.generation, client.incarnation, client.gone = wire.generation, wire.id, False

    def _receive(
        self, step: ReplayStep, client: ReplayClient, steps: Sequence[ReplayStep], position: int
    ) -> Iterator[Any]:
        wire = step.wire()
        match wire:
            case JoinOk():
                self._answer_join(step, client, wire)
                if step.wire(after=True) is not None:
                    client.request("SyncGroup")
            case SyncOk(id=id_):
                after = next_of(steps, position, client.slot)
                action = "complete" if after is None else after.event.action
                if action == "listener throws":
                    assert client.member is not None
                    client.member.command("throw")
                    yield from client.look()
                yield from self._answer_sync(client, id_, action not in ("complete", "listener throws"))
            case Refused():
                yield from self._refuse(step, client, wire)

    # -- SyncGroup ---------------------------------------------------------------------------------------

    def _assign(
        self, step: ReplayStep, client: ReplayClient, *, following: ReplayStep | None
    ) -> Iterator[Any]:
        wire = step.wire()
        assert isinstance(wire, JoinOk)
        self._answer_join(step, client, wire)
        if client.late is not None and following is not None and following.event.action == "late answer":
            # librdkafka asks for metadata before it decides, and the answer waits behind this one.
            yield from self._late_answer(following, client)
        decided = next((one for one in step.outcome.seen if isinstance(one, Decided)), None)
        try:
            frame = client.request("SyncGroup")
        except ProxyTimeout:
            if decided is None and step.wire(after=True) is None:  # the model's leader throws, too
                yield from client.look()
                return
            if client.judged is not None and client.asks_to_join:  # what it heard has ended its lead
                return
            raise
        given = {one["member_id"]: one["assignment"] for one in (frame.fields or {})["assignments"]}
        back = {
            self.clients[slot].id(record.id): (slot, record.id)
            for slot in self.setup.slots
            for record in step.records(name=letter(slot))
        }
        self.grants[client.name] = {back[name]: data for name, data in given.items() if name in back}
        for name in given:
            if name not in back:
                self._differs(step, f"assigns to {name}, which the group does not have")
        if isinstance(step.wire(after=True), Sync) and decided is None:
            return  # the group has moved on, and nobody reads what it decides
        yield self._decided(step, client, decided)

    def _decided(self, step: ReplayStep, client: ReplayClient, decided: Decided | None) -> Decided:
        """What the real leader decided, on the real claims; ``decided`` is what the trace's did, or threw."""
        real = self.grants[client.name]
        grants, claims, counts = [], [], []
        for slot in self.setup.slots:
            for record in step.records(name=letter(slot)):
                if record.meta is None:
                    continue
                key = (int(slot), record.id)
                grants.append(Grant(Id(Slot(slot), record.id), Parts(self._assignment(real.get(key, b"")))))
                meta = _metadata(self.metas.get(key, {}), step.group().protocol)
                claimed = self._bits(map(str, meta.owned_partitions)) if meta else 0
                assigned_in = Generation(self.clients[slot].own_gen if claimed else NONE)
                subscribed = self.setup.parts(record.meta.topics)
                claims.append((Id(Slot(slot), record.id), Parts(claimed), assigned_in, subscribed))
                counts.append((claimed.bit_count(), record.meta.owned.bit_count()))
        decision = "; ".join(f"{letter(g.id.slot)}: {self._spell(g.parts)}" for g in grants)
        modelled = {letter(grant.id.slot): grant.parts for grant in decided.grants} if decided else {}
        self.decisions.append((modelled, {letter(grant.id.slot): grant.parts for grant in grants}))
        if not alike(self.setup, self.decisions):
            if any(is_ != was for is_, was in counts):
                self._differs(step, f"{LEADER} {decision}, since it was asked something else")
            else:
                self.result.unforced.append(
                    f"step {step.number}, {event_text(step.event)}: {LEADER} {decision}"
                )
        return Decided(client.eager, tuple(claims), tuple(grants))

    def _leader_sync(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        for slot in self.setup.slots:
            for record in step.records(name=letter(slot)):
                self.assigned[slot, record.id] = self.grants.get(client.name, {}).get((slot, record.id), b"")
        yield from ()

    def _answer_sync(self, client: ReplayClient, id_: int, late: bool) -> Iterator[Any]:
        assert client.member is not None
        if late:
            client.member.command("pause")
            yield from client.look()
        data = self.assigned.get((client.slot, id_), b"")
        client.reply(
            "SyncGroup",
            {
                "error_code": 0,
                "protocol_type": "consumer",
                "protocol_name": self._step.group().protocol,
                "assignment": data,
            },
        )

    def _complete(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        assert client.member is not None
        member = client.member
        member.command("resume")
        before = client.read
        synced = False

        def taken_or_not(_: object = None) -> bool:
            nonlocal synced
            synced = any(line["event"] in ("synced", "assigned") for line in client.output()[before:])
            return synced or client.asks_to_join

        self.log.wait(self.patience, taken_or_not)
        if not synced:  # what it says comes by another way than its JoinGroup
            member.owned(self.patience)
            taken_or_not()
        lost = client.gone and client.asks_to_join  # so there is nothing to complete
        if not lost and not taken_or_not():
            raise WentAnotherWay(f"{client.name} never takes the assignment that it was sent")
        if not lost and not synced:
            raise WentAnotherWay(
                f"{client.name} sends JoinGroup again and never takes the assignment it was sent"
            )
        client.goes_on()
        had = client.owned
        calls = list(client.look())
        if client.asks_to_join:  # behind the callbacks of this assignment there may be those of the next join
            calls, next_join = _apart(calls)
            self._judge(step, tuple(next_join))
        yield from calls
        if client.gone and not any(isinstance(one, Callback) and one.call is Call.ASSIGNED for one in calls):
            return
        given = self._assignment(self.assigned.get((client.slot, client.incarnation), b""))
        revoked = any(isinstance(one, Callback) and one.call is Call.REVOKED for one in calls)
        client.own_gen = client.generation if client.owned else NONE
        rejoin = True
        if revoked and not client.eager:
            rejoin = client.rejoins()
        yield Completed(
            who=client.slot,
            assigned=Parts(given),
            owned=Parts(client.owned),
            eager=client.eager,
            revoked=revoked,
            rejoin=rejoin,
            believed=Parts(client.believed),
        )
        if client.owned != given:
            difference = f"owns {self._spell(client.owned)} and was assigned {self._spell(given)}"
            self._differs(step, f"{difference} (it had {self._spell(had)})")

    # -- errors ------------------------------------------------------------------------------------------

    def _refuse(self, step: ReplayStep, client: ReplayClient, wire: Refused) -> Iterator[Any]:
        api = "JoinGroup" if wire.api == "join" else "SyncGroup"
        if wire.error is Error.DISCONNECT:
            return
        frame = client.waiting.get(api)
        if frame is None:
            raise WentAnotherWay(f"{client.name} has no {api} under way")
        if wire.error is Error.MEMBER_ID_REQUIRED:
            if frame.version < 4:
                return  # it stays for the JoinGroup that shows an id, in the trace
            client.waiting.pop(api)
            given, client.incarnation = client.id(wire.given), wire.given
            self.proxy.reply(frame, {"error_code": 79, "generation_id": -1, "member_id": given})
            return
        client.waiting.pop(api)
        client.remember_error(step, wire)
        self.proxy.refuse(frame, wire.error.value)
        if wire.error in FATAL:
            client.throws()
            yield from client.look()

    def _heartbeat(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        me, before = MemberContext(client.slot, self.setup), step.member()
        error = answer_to(me, "heartbeat", step.group(), step.records(), before.id, before.generation)
        assert error is not None, "a heartbeat without an effect is no step"
        yield from client.look()
        frame = client.take("Heartbeat")
        yield from self._refuses(
            step, client, frame, Refused("heartbeat", error, before.id, before.generation)
        )

    def _refuses(
        self, step: ReplayStep, client: ReplayClient, frame: Frame, answer: Refused
    ) -> Iterator[Any]:
        """Answer a heartbeat or a commit with an error. Raises CannotForce when it is not its turn."""
        gone = client.gone
        client.remember_error(step, answer)
        if not self.proxy.refuse(frame, answer.error.value):
            client.judged, client.gone = None, gone
            raise CannotForce("the answer waits behind another one on its connection, as a broker's would")
        if answer.error in FATAL:
            client.throws()
            yield from client.look()

    def _late_request(
        self, step: ReplayStep, client: ReplayClient, *, steps: Sequence[ReplayStep], position: int
    ) -> Iterator[Any]:
        """It is taken from the client, now or when its JoinGroup has left, and answered later."""
        yield from client.look()
        sent = send_time(steps, position)
        if sent is SendTime.NEVER:
            raise CannotForce(sent)
        if sent is SendTime.BEHIND:
            client.due = step
        elif step.event.choice == "commit":
            client.late = client.take("OffsetCommit", client.commits)
        else:
            client.late = client.take("Heartbeat")

    def _late_arrives(self, step: ReplayStep) -> None:
        client = self.clients[step.event.who]
        if step.stray(after=True) is None and client.late is not None:  # an answer without an error
            self.proxy.refuse(client.late, "NONE")
            client.late = None

    def _late_answer(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        answer, frame = step.stray(), client.late
        client.late = None
        if frame is None or not isinstance(answer, Refused):
            return  # why it was not sent was said before, or it is a request of a process that is gone
        yield from client.look()
        yield from self._refuses(step, client, frame, answer)

    def _slow_commit(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """The commit before a join waits for its answer; does the client go on reading?"""
        assert client.member is not None
        assert client.slow is not None
        try:
            client.commit = client.slow.await_match(seconds=self.patience)
        except ProxyTimeout:
            client.commit_done()
            raise CannotForce("the client commits nothing before it joins") from None
        before = len(client.output())
        self._produce(client.owned)
        for _ in range(POLLS):  # each answer is one more poll, unless poll waits for the commit
            if client.member.owned(self.patience / POLLS) is None:
                break
        for line in client.output()[before:]:
            if line["event"] == "polled":
                client.reads |= self._bits(line["ranges"])
        yield from ()

    def _commit_done(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        client.commit_done()
        yield from client.look()

    def _listener_throws(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        seen = list(self._complete(step, client))
        threw = next((position for position, one in enumerate(seen, 1) if isinstance(one, Threw)), 0)
        halves = [
            [one.call for one in part if isinstance(one, Callback)] for part in (seen[:threw], seen[threw:])
        ]
        if all(Call.ASSIGNED in calls for calls in halves):
            self._differs(step, "tells of the assignment once more after its listener threw")
            self._judge(step, tuple(seen[:threw]))
            seen = seen[threw:]
        elif not any(halves):
            self.result.unforced.append(
                f"step {step.number}, {event_text(step.event)}: no callback that could throw"
            )
        elif not threw:
            self._differs(step, "its listener threw, and no poll does")
        yield from seen

    def _disconnect(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        yield from client.look()
        client.waiting.clear()
        for api in TAKEN:
            client.used[api] = len(client.taken[api].matched)
        wire = step.wire(after=True)
        assert isinstance(wire, Refused)
        client.remember_error(step, wire)
        if not self.proxy.disconnect(client.name):
            raise WentAnotherWay(f"{client.name} has no connection to lose")

    # -- processes ---------------------------------------------------------------------------------------

    def _crash(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        assert client.member is not None
        client.member.kill()
        client.forget()
        yield from ()

    def _pause(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        assert client.member is not None
        yield from client.look()
        client.member.stop()

    def _resume(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        assert client.member is not None
        client.member.cont()
        yield from ()

    def _hang(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        wire = step.wire()
        if isinstance(wire, JoinOk):
            raise CannotForce("an assignor that never returns is not among the clients' commands")
        assert client.member is not None
        client.member.command("pause")
        client.member.owned(self.patience)
        yield from client.look()

    def _too_late(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """It is not polled until its own max.poll.interval.ms has passed, which LeaveGroup shows."""
        assert client.member is not None
        if self.setup.consumers[client.slot].instance is not None:
            raise CannotForce("a static member says nothing when its max.poll.interval.ms passes")
        before = self.proxy.count("LeaveGroup", client.name)
        client.member.command("pause")
        client.member.owned(self.patience)
        yield from client.look()
        client.leaves(before, 6.0 + self.patience)
        client.gone = True
        if step.event.action == "max poll" and step.member().life is Life.UP:
            client.member.command("resume")

    def _leaves_after_all(self, step: ReplayStep, client: ReplayClient, before: int) -> None:
        """Wait for LeaveGroup; a client may want its JoinGroup or SyncGroup answered first."""
        with contextlib.suppress(ProxyTimeout):
            client.leaves(before, self.patience / 2)
            return
        client.let_go()
        with contextlib.suppress(ProxyTimeout):
            client.leaves(before, self.patience / 2)
            self._differs(step, "sends LeaveGroup only when what it had under way is answered")

    def _leave(self, step: ReplayStep, client: ReplayClient, *, close: bool) -> Iterator[Any]:
        assert client.member is not None
        left = next((one for one in step.outcome.seen if isinstance(one, Left)), None)
        ought = left is not None and left.ought
        before = self.proxy.count("LeaveGroup", client.name)
        yield from client.look()
        client.member.command("close" if close else "unsubscribe")
        if ought:
            self._leaves_after_all(step, client, before)
        if close and not client.member.closes(self.patience / 2):
            client.let_go()
            if not client.member.closes(CLOSE):
                self._never_settles(step, f"{client.name} does not close, for {CLOSE:g} s")
                client.member.kill()
                client.over = True
                return
        if not close and client.member.owned(self.patience / 2) is None:  # its call waits for an answer
            client.let_go()
        if self.due.get(client.name) is Due.END:
            self._differs(step, "closes")
            client.over = True
        gone = client.gone  # that it leaves takes nothing away from it
        calls = [one._replace(reset=gone) if isinstance(one, Callback) else one for one in client.look()]
        completed, calls = _apart(calls)
        if calls:  # it has taken an assignment before it left
            self._judge(step, tuple(completed))
        yield from calls or completed
        yield Left(
            client.slot, Parts(client.believed), self.proxy.count("LeaveGroup", client.name) > before, ought
        )
        left_behind = client.waiting.get("JoinGroup")
        if close:
            client.member.end()
        elif isinstance(step.stray(after=True), Join):  # still on its way when its connection ends
            self.proxy.disconnect(client.name)
        client.forget()
        client.abandoned = left_behind

    def _subscribe(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        assert client.member is not None
        client.member.command("subscribe", topics=self._names(step.member(after=True).topics))
        yield from ()

    def _refresh(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        before = self.proxy.total
        self.proxy.await_frame(
            lambda f: (
                f.number >= before and (f.api, f.direction, f.client) == ("Metadata", "response", client.name)
            ),
            f"{client.name}'s metadata",
            self.patience,
        )
        yield from ()

    def _cluster(self, step: ReplayStep) -> None:
        action = step.event.action
        if action == "topic deleted":
            self.cluster.delete_topic(self.topics[int(step.event.choice.split()[-1])])
        elif action in ("topic grows", "topic shrinks"):
            topic = step.event.choice.rpartition("-")[0]
            parts = step.after[step.built.position["cluster"]]
            assert isinstance(parts, tuple)
            count = len(each(int(parts[0]) & self.setup.topics[self.topics.index(topic)]))
            # The mock cluster cannot add partitions; created anew is what a client sees of either.
            with contextlib.suppress(RuntimeError):
                self.cluster.delete_topic(topic)
            self.cluster.create_topic(topic, count)
        else:
            raise CannotForce("nothing here does it")

    # -- what they show ----------------------------------------------------------------------------------

    def _judge(self, step: ReplayStep, seen: tuple[Any, ...]) -> None:
        """Ask the clauses, and note what was seen."""
        found = [
            BrokenClause(rule.clause, step.number, sentence)
            for rule in self.rules.each_step
            if rule.clause in OBSERVABLE_CLAUSES and (sentence := rule.breach(step.event, seen)) is not None
        ]
        values: dict[str, Any] = {}
        for client in self.clients:
            known = [record.id for record in step.records(after=True, name=client.name) if record.meta]
            inside = client.incarnation in known and not client.gone
            values[f"held {client.name}"] = Parts(client.owned if inside else 0)
            # In the middle of a rebalance some clients still list what the listener was told is gone.
            me = step.member(after=True, name=client.name)
            settled = me.state is MemberState.STABLE and me.received is None and not client.waiting
            listed = client.owned if settled else client.believed
            values[f"listener {client.name}"] = (Parts(client.believed), Parts(listed), Life.UP)
            values[f"reads {client.name}"] = (client.eager, client.commit is not None, Parts(client.reads))
        for rule in self.rules.always:
            if rule.clause in OBSERVABLE_CLAUSES:
                sentence = rule.breach(*(values[view] for view in rule.views))
                if sentence is not None:
                    found.append(BrokenClause(rule.clause, step.number, sentence))
        reported = [(one.clause, one.sentence) for one in self.result.broken]
        self.result.broken += [one for one in found if (one.clause, one.sentence) not in reported]
        self.result.shown.append(
            {
                "step": step.number,
                "event": event_text(step.event),
                "seen": [observation_text(self.setup, one) for one in seen],
                "owned": {client.name: self._spell(client.owned) for client in self.clients if client.member},
            }
        )

    def _never_settles(self, step: ReplayStep, how: str) -> None:
        self.result.broken.append(
            BrokenClause(CONVERGES.id, step.number, f"{how}, and nothing goes wrong any more")
        )

    def _stands_still(self, step: ReplayStep) -> None:
        """The model's group does nothing any more; the coordinator goes on to answer. What do the clients?

        Raises WentAnotherWay for one that has ended: that is no standstill.
        """
        for client in self.clients:
            match self.due.get(client.name):
                case Due.JOIN if not self._joins(step, client):
                    client.ended()
                    how = "asks for nothing" if client.committing() == [] else "commits and commits"
                    self._never_settles(step, f"{client.name} {how}, for {self.patience:g} s")
                case Due.READ if missing := self._unread(client):
                    client.ended()
                    self._never_settles(step, f"{client.name} does not read {self._spell(missing)}")
                case _:
                    continue
            client.judged = None

    def _joins(self, step: ReplayStep, client: ReplayClient) -> bool:
        me = MemberContext(client.slot, self.setup)
        known = step.group(after=True), step.records(after=True, name=client.name)
        error = answer_to(me, "heartbeat", *known, client.incarnation, client.generation)
        client.hears(error.value if error else "NONE")
        assert client.member is not None
        deadline = time.monotonic() + self.patience
        while client.slow is not None and not client.asks_to_join and time.monotonic() < deadline:
            several = client.committing()
            for _ in range(2):  # each commit takes longer than a poll
                client.member.owned(1.0)
            for frame in several:
                self.proxy.refuse(frame, "NONE")
        return client.asks_to_join or (client.slow is None and client.rejoins())

    def _unread(self, client: ReplayClient) -> int:
        """What it owns and does not read, of records that are there now."""
        before = len(client.output())
        self._produce(client.owned)

        def missing(_: object = None) -> int:
            polled = (line for line in client.output()[before:] if line["event"] == "polled")
            return client.owned & ~union([self._bits(line["ranges"]) for line in polled])

        self.log.wait(self.patience, lambda _: not missing())
        return missing()

    def _produce(self, parts: int) -> None:
        for name, number in self.numbers.items():
            if parts >> number & 1:
                topic, _, partition = name.rpartition("-")
                self.cluster.produce(topic, int(partition), RECORDS)

    def _settle_all(self, step: ReplayStep) -> None:
        """What the last errors did shows in a JoinGroup that the trace does not wait for any more."""
        for client in self.clients:
            if client.judged is None or client.member is None or client.member.stopped:
                continue
            client.commit_done()
            for request in client.waiting.values():  # its poll waits for the answer
                self.proxy.refuse(request, "REBALANCE_IN_PROGRESS")
            client.waiting.clear()
            frame = None
            with contextlib.suppress(ProxyTimeout, WentAnotherWay):
                frame = client.request("JoinGroup")
            try:
                seen = (*client.look(), *client.effects(frame))
            except WentAnotherWay as reason:
                self.result.stopped = f"after the last step: {reason}"
                return
            self._judge(step, tuple(seen))

    def _differs(self, step: ReplayStep, what: str) -> None:
        self.result.differs.append(f"step {step.number}, {event_text(step.event)}: {what}")

    def _bits(self, names: Any) -> int:
        return union([1 << self.numbers[name] for name in names if name in self.numbers])

    def _assignment(self, data: bytes) -> int:
        try:
            return self._bits(map(str, decode_assignment(data).partitions)) if data else 0
        except WireError:
            return 0

    def _spell(self, parts: int) -> str:
        return self.setup.spell(parts) if parts else "nothing"


_NO_WAY = {
    "enforce": "the recorders have no command for enforceRebalance()",
}
"""Steps that nothing here can bring about, and why."""


def _apart(seen: list[Any]) -> tuple[list[Any], list[Any]]:
    """What was seen, cut before the first callback behind the last onPartitionsAssigned."""
    calls = [position for position, one in enumerate(seen) if isinstance(one, Callback)]
    given = [position for position in calls if seen[position].call is Call.ASSIGNED]
    cut = next((position for position in calls if given and position > given[-1]), len(seen))
    return seen[:cut], seen[cut:]


def _protocols(frame: Frame) -> dict[str, bytes]:
    """The metadata of a JoinGroup by assignor."""
    return {one["name"]: one["metadata"] for one in (frame.fields or {})["protocols"]}


def _subscription(fields: Mapping[str, Any]) -> Any:
    protocols = fields.get("protocols") or [{"metadata": b""}]
    return _decoded(protocols[0]["metadata"])


def _metadata(metas: Mapping[str, bytes], protocol: str | None) -> Any:
    return _decoded(metas.get(protocol or "", b""))


def _decoded(data: bytes) -> Any:
    try:
        return decode_subscription(data) if data else None
    except WireError:
        return None
