"""What the trace has each client do, done to a real one; and what that shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from rebalance_verifier.live.clients.clusters.defaults import CLOSE
from rebalance_verifier.live.clients.consumers.member import LiveMember
from rebalance_verifier.live.clients.proxy.proxy import ProxyTimeout
from rebalance_verifier.live.clients.replay.client import TAKEN, Diverged, ReplayClient
from rebalance_verifier.live.clients.replay.coordinator import TraceCoordinator, claims_of
from rebalance_verifier.live.clients.replay.judge import ReplayJudge
from rebalance_verifier.live.clients.replay.replay_plan import Due, ReplayStep
from rebalance_verifier.live.clients.replay.scene import NotForcible, ReplayScene
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.errors import answer_to
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback, Claimed, Completed, Left, Threw
from rebalance_verifier.model.group.setup import MemberContext

POLLS = 10
"""That a client makes while its commit waits, to see whether it goes on reading."""

MAX_POLL = 6.0
"""``max.poll.interval.ms`` where a trace lets it pass, in seconds."""


class ClientDriver:
    """Each method is a step of one client; what it returns is what the client showed meanwhile.

    ``due``: who has to do what when the run has come to a standstill.
    """

    def __init__(
        self, scene: ReplayScene, coordinator: TraceCoordinator, judge: ReplayJudge, due: Mapping[str, Due]
    ) -> None:
        self.scene, self.coordinator, self.judge, self.due = scene, coordinator, judge, due

    # -- processes ---------------------------------------------------------------------------------------

    def start(self, step: ReplayStep, client: ReplayClient) -> None:
        """A process with a consumer that subscribes."""
        scene = self.scene
        consumer = scene.setup.consumers[client.slot]
        stage = consumer.stages[step.member().stage]
        changes = scene.has("topic grows", "topic shrinks", "topic deleted")
        hurries = scene.has("max poll", "poll interval")
        config: dict[str, Any] = {
            "partition.assignment.strategy": ",".join(stage.assignors),
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            "max.poll.interval.ms": int(MAX_POLL * 1000) if hurries else 300_000,
            "enable.auto.commit": "true" if scene.has("slow commit") else "false",  # before each join
            "auto.commit.interval.ms": 300_000,
            "auto.offset.reset": "earliest",
            "metadata.max.age.ms": 500 if changes else 300_000,
        }
        if consumer.instance is not None:
            config["group.instance.id"] = f"i{consumer.instance}"
        log = None
        if scene.log_dir is not None:
            name = scene.run.path.stem if scene.run.path else scene.run.clause.replace("/", "-")
            log = scene.log_dir / f"{name}-{str(scene.profile).replace(':', '-')}-{client.name}.log"
        client.eager = stage.eager
        client.read = client.began = sum(line.get("consumer") == client.name for line in scene.log.lines)
        client.member = LiveMember(
            *(client.name, scene.profile, "g", scene.names(consumer.subscriptions[0]), config),
            bootstrap=scene.proxy.bootstrap,
            log=scene.log,
            log_file=log,
        )
        client.forget()

    def crash(self, step: ReplayStep, client: ReplayClient) -> None:
        """SIGKILL."""
        client.process.kill()
        client.forget()

    def pause(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """SIGSTOP."""
        yield from client.look()
        client.process.stop()

    def resume(self, step: ReplayStep, client: ReplayClient) -> None:
        """SIGCONT."""
        client.process.cont()

    def hang(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Yield a callback that does not return, as far as the group sees: it is not polled."""
        if isinstance(step.wire(), s.JoinOk):
            raise NotForcible("an assignor that never returns is not among the clients' commands")
        yield from self._not_polled(client)

    def too_late(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """It is not polled until its own max.poll.interval.ms has passed, which LeaveGroup shows."""
        if self.scene.setup.consumers[client.slot].instance is not None:
            raise NotForcible("a static member says nothing when its max.poll.interval.ms passes")
        before = self.scene.proxy.count("LeaveGroup", client.name)
        yield from self._not_polled(client)
        client.leaves(before, MAX_POLL + self.scene.patience)
        client.gone = True
        if step.event.action == "max poll" and step.member().life is p.Life.UP:
            client.process.command("resume")

    def _not_polled(self, client: ReplayClient) -> Iterator[Any]:
        client.process.command("pause")
        client.process.owned(self.scene.patience)
        yield from client.look()

    # -- its rebalances ----------------------------------------------------------------------------------

    def join(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Its JoinGroup leaves, and shows what it claims and what the last error did."""
        if "JoinGroup" in client.waiting:  # an old client that is not asked to show an id first
            return
        client.starts()
        frame = client.request("JoinGroup")
        fields = frame.fields or {}
        yield from client.look()
        yield from client.effects(frame)
        meta = claims_of(fields)
        if meta is None:
            return
        scene = self.scene
        claims = scene.bits(meta.owned_partitions)
        if claims and meta.generation_id != p.NONE:
            yield Claimed(
                client.slot, p.Parts(claims), p.Generation(meta.generation_id), p.Generation(client.own_gen)
            )
        modelled = getattr(getattr(step.wire(after=True), "meta", None), "owned", 0)
        if bool(modelled) != bool(claims):
            scene.differs(step, f"claims {scene.spell(claims)}, in the trace {scene.spell(modelled)}")
        request = step.wire(after=True)
        had_id, has_id = isinstance(request, s.Join) and request.id != p.NO_ID, bool(fields.get("member_id"))
        if had_id != has_id:
            difference = "shows a member id" if has_id else "shows no member id"
            scene.differs(step, f"{difference}, in the trace {'one' if had_id else 'none'}")
        if client.due is not None:
            due, client.due = client.due, None
            try:
                client.late = client.take("OffsetCommit", client.commits)
            except ProxyTimeout as error:
                scene.unforced(due, f"no commit while its JoinGroup waits: {error}")

    def receive(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Its JoinGroup or SyncGroup is answered."""
        match step.wire():
            case s.JoinOk() as wire:
                self.coordinator.answer_join(step, client, wire)
                if step.wire(after=True) is not None:
                    client.request("SyncGroup")
            case s.SyncOk(id=incarnation):
                does = "pause" if step.following not in ("complete", "") else ""
                does = "throw" if step.following == "listener throws" else does
                if does:
                    client.process.command(does)
                    yield from client.look()
                self.coordinator.answer_sync(step, client, incarnation)
            case s.Refused() as wire:
                yield from self.coordinator.refuse(step, client, wire)

    def complete(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """It takes the assignment that it was sent, and calls back."""
        client.process.command("resume")
        self._await_assignment(client)
        client.goes_on()
        had = client.owned
        calls = list(client.look())
        if client.asks_to_join:  # behind the callbacks of this assignment there may be those of the next join
            calls, next_join = _apart(calls)
            self.judge.judge(step, tuple(next_join))
        yield from calls
        made = {one.call for one in calls if isinstance(one, Callback)}
        if client.gone and Call.ASSIGNED not in made:
            return
        given = self.scene.assignment(self.coordinator.assigned.get((client.slot, client.incarnation), b""))
        client.own_gen = client.generation if client.owned else p.NONE
        revoked = Call.REVOKED in made
        yield Completed(
            who=client.slot,
            assigned=p.Parts(given),
            owned=p.Parts(client.owned),
            eager=client.eager,
            revoked=revoked,
            rejoin=client.rejoins() if revoked and not client.eager else True,
            believed=p.Parts(client.believed),
        )
        if client.owned != given:
            spell = self.scene.spell
            difference = f"owns {spell(client.owned)} and was assigned {spell(given)}"
            self.scene.differs(step, f"{difference} (it had {spell(had)})")

    def _await_assignment(self, client: ReplayClient) -> None:
        """Wait until it has taken an assignment, or asks to join since its membership is gone.

        Raises Diverged when it does neither.
        """
        before = client.read

        def synced() -> bool:
            return any(line["event"] in ("synced", "assigned") for line in client.output()[before:])

        self.scene.log.wait(self.scene.patience, lambda _: synced() or client.asks_to_join)
        if not synced():  # what it says comes by another way than its JoinGroup
            client.process.owned(self.scene.patience)
        joins = client.asks_to_join
        if not synced() and not (client.gone and joins):
            what = "sends JoinGroup again and never takes" if joins else "never takes"
            raise Diverged(f"{client.name} {what} the assignment that it was sent")

    def listener_throws(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Yield the same with a listener that throws."""
        seen = list(self.complete(step, client))
        threw = next((position for position, one in enumerate(seen, 1) if isinstance(one, Threw)), 0)
        halves = [
            [one.call for one in part if isinstance(one, Callback)] for part in (seen[:threw], seen[threw:])
        ]
        if all(Call.ASSIGNED in calls for calls in halves):
            self.scene.differs(step, "tells of the assignment once more after its listener threw")
            self.judge.judge(step, tuple(seen[:threw]))
            seen = seen[threw:]
        elif not any(halves):
            self.scene.unforced(step, "no callback that could throw")
        elif not threw:
            self.scene.differs(step, "its listener threw, and no poll does")
        yield from seen

    def disconnect(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Its connections end, and what was under way on them."""
        yield from client.look()
        client.waiting.clear()
        for api in TAKEN:
            client.used[api] = len(client.taken[api].matched)
        wire = step.wire(after=True)
        assert isinstance(wire, s.Refused)
        client.remember_error(step, wire)
        if not self.scene.proxy.disconnect(client.name):
            raise Diverged(f"{client.name} has no connection to lose")

    def leave_behind(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """Yield the same, and its JoinGroup or SyncGroup has arrived, or will."""
        api = "JoinGroup" if isinstance(step.wire(), s.Join) else "SyncGroup"
        client.left_behind.append(client.waiting.get(api))
        yield from self.disconnect(step, client)

    def slow_commit(self, step: ReplayStep, client: ReplayClient) -> None:
        """The commit before a join waits for its answer; does the client go on reading?"""
        assert client.slow is not None
        try:
            client.commit = client.slow.await_match(seconds=self.scene.patience)
        except ProxyTimeout:
            client.commit_done()
            raise NotForcible("the client commits nothing before it joins") from None
        before = len(client.output())
        self.scene.produce(client.owned)
        for _ in range(POLLS):  # each answer is one more poll, unless poll waits for the commit
            if client.process.owned(self.scene.patience / POLLS) is None:
                break
        for line in client.output()[before:]:
            if line["event"] == "polled":
                client.reads |= self.scene.bits(line["ranges"])

    def commit_done(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """That commit is answered."""
        client.commit_done()
        return client.look()

    def commit_refused(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """That commit is answered with an error, and JoinGroup follows if it does in the trace."""
        me, member = MemberContext(client.slot, self.scene.setup), step.member()
        error = answer_to(me, "commit", step.group(), step.records(), member.id, member.generation)
        assert error is not None, "a commit that is accepted is not refused"
        if not client.committing():
            raise Diverged(f"no commit of {client.name} waits for its answer")
        client.remember_error(step, s.Refused("commit", error, member.id, member.generation))
        client.commit_done(error)
        sends = isinstance(step.wire(after=True), s.Join)
        yield from self.join(step, client) if sends else client.look()

    def prepare(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """It polls all the time."""
        return client.look()

    # -- its subscription --------------------------------------------------------------------------------

    def subscribe(self, step: ReplayStep, client: ReplayClient) -> None:
        """``subscribe()``."""
        client.process.command("subscribe", topics=self.scene.names(step.member(after=True).topics))

    def refresh(self, step: ReplayStep, client: ReplayClient) -> None:
        """It gets metadata."""
        before, proxy = self.scene.proxy.total, self.scene.proxy
        wanted = "Metadata", "response", client.name
        proxy.await_frame(
            lambda f: f.number >= before and (f.api, f.direction, f.client) == wanted,
            f"{client.name}'s metadata",
            self.scene.patience,
        )

    def leave(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """``close()`` or ``unsubscribe()``."""
        close = step.event.action != "unsubscribe"
        left = next((one for one in step.outcome.seen if isinstance(one, Left)), None)
        ought = left is not None and left.ought
        proxy, patience = self.scene.proxy, self.scene.patience
        before = proxy.count("LeaveGroup", client.name)
        yield from client.look()
        client.process.command("close" if close else "unsubscribe")
        if ought:
            self._leaves_after_all(step, client, before)
        if close and not client.process.closes(patience / 2):
            client.let_go()
            if not client.process.closes(CLOSE):
                self.judge.never_settles(step, f"{client.name} does not close, for {CLOSE:g} s")
                client.process.kill()
                client.over = True
                return
        if not close and client.process.owned(patience / 2) is None:  # its call waits for an answer
            client.let_go()
        if self.due.get(client.name) is Due.END:
            self.scene.differs(step, "closes")
            client.over = True
        gone = client.gone  # that it leaves takes nothing away from it
        calls = [one._replace(reset=gone) if isinstance(one, Callback) else one for one in client.look()]
        completed, calls = _apart(calls)
        if calls:  # it has taken an assignment before it left
            self.judge.judge(step, tuple(completed))
        yield from calls or completed
        sent = proxy.count("LeaveGroup", client.name) > before
        yield Left(client.slot, p.Parts(client.believed), sent, ought)
        left_behind = client.waiting.get("JoinGroup")
        if close:
            client.process.end()
        elif isinstance(step.stray(after=True), s.Join):  # still on its way when its connection ends
            proxy.disconnect(client.name)
        client.forget()
        client.abandoned = left_behind

    def _leaves_after_all(self, step: ReplayStep, client: ReplayClient, before: int) -> None:
        """Wait for LeaveGroup; a client may want its JoinGroup or SyncGroup answered first."""
        with contextlib.suppress(ProxyTimeout):
            client.leaves(before, self.scene.patience / 2)
            return
        client.let_go()
        with contextlib.suppress(ProxyTimeout):
            client.leaves(before, self.scene.patience / 2)
            self.scene.differs(step, "sends LeaveGroup only when what it had under way is answered")


def _apart(seen: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return what was seen, cut before the first callback behind the last onPartitionsAssigned."""
    calls = [position for position, one in enumerate(seen) if isinstance(one, Callback)]
    given = [position for position in calls if seen[position].call is Call.ASSIGNED]
    cut = next((position for position in calls if given and position > given[-1]), len(seen))
    return seen[:cut], seen[cut:]


ClientStep = Callable[[ReplayStep, ReplayClient], Iterable[Any] | None]


def client_steps(driver: ClientDriver) -> Mapping[str, ClientStep]:
    """Action of the model -> what does it to a real client."""
    coordinator = driver.coordinator
    return {
        "start": driver.start,
        "join": driver.join,
        "receive": driver.receive,
        "assign": coordinator.assign,
        "leader sync": coordinator.leader_sync,
        "complete": driver.complete,
        "heartbeat": coordinator.heartbeat,
        "disconnect": driver.disconnect,
        "left behind": driver.leave_behind,
        "late request": coordinator.late_request,
        "late answer": coordinator.late_answer,
        "slow commit": driver.slow_commit,
        "commit done": driver.commit_done,
        "commit refused": driver.commit_refused,
        "prepare": driver.prepare,
        "listener throws": driver.listener_throws,
        "crash": driver.crash,
        "pause": driver.pause,
        "resume": driver.resume,
        "hang": driver.hang,
        "close": driver.leave,
        "bounce": driver.leave,
        "unsubscribe": driver.leave,
        "subscribe": driver.subscribe,
        "resubscribe": driver.subscribe,
        "refresh": driver.refresh,
        "max poll": driver.too_late,
        "poll interval": driver.too_late,
    }
