"""The trace's coordinator: it answers real clients when the trace does, and as the trace does.

The real leader decides on assignments; generations, leaders, errors and member ids are the trace's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.proxy.proxy import ProxyTimeout
from rebalance_verifier.live.clients.replay.client import Diverged, ReplayClient
from rebalance_verifier.live.clients.replay.replay_plan import Decision, ReplayStep, SendTime, alike
from rebalance_verifier.live.clients.replay.scene import NotForcible, ReplayScene
from rebalance_verifier.live.clients.replay.verdict import LEADER
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.errors import FATAL, answer_to
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Decided
from rebalance_verifier.model.group.setup import MemberContext, letter
from rebalance_verifier.model.values import Subscription
from rebalance_verifier.model.wire import WireError, decode_subscription

COORDINATOR = (
    *("join phase ends", "session expires", "session timeout", "rebalance timeout", "slow member"),
    *("append fails", "failover", "group expires", "join refused", "sync refused", "sync request"),
    *("abandoned join", "join request", "late request arrives", "left join arrives", "left sync arrives"),
)
"""Steps that the coordinator takes by itself: clients learn of them from its answers."""


class TraceCoordinator:
    """The coordinator's knowledge of the members, by (slot, incarnation), and its answers."""

    def __init__(self, scene: ReplayScene) -> None:
        self.scene = scene
        self.metas: dict[tuple[int, int], dict[str, bytes]] = {}
        """Metadata by assignor, of the last JoinGroup that arrived."""
        self.assigned: dict[tuple[int, int], bytes] = {}
        self.grants: dict[str, dict[tuple[int, int], bytes]] = {}
        """By leader: what its SyncGroup under way says."""
        self.decisions: list[Decision] = []

    def takes(self, step: ReplayStep) -> None:
        """One of the steps ``COORDINATOR``."""
        match step.event.action:
            case "join request":
                self._arrives(step)
            case "abandoned join":
                self._abandoned(step, self.scene.clients[step.event.who].abandoned)
            case "left join arrives":
                self._abandoned(step, self.scene.clients[step.event.who].left_behind.pop(step.connection))
            case "left sync arrives":
                self.scene.clients[step.event.who].left_behind.pop(step.connection)
            case "late request arrives":
                client = self.scene.clients[step.event.who]
                if step.stray(after=True) is None and client.late is not None:  # an answer without an error
                    self.scene.proxy.refuse(client.late, "NONE")
                    client.late = None

    def records(self, step: ReplayStep) -> Iterator[tuple[p.Slot, s.MemberRecord]]:
        """Yield what the trace's coordinator knows before a step, in the order of slots."""
        for slot in self.scene.setup.slots:
            for record in step.records(name=letter(slot)):
                yield p.Slot(slot), record

    # -- JoinGroup ---------------------------------------------------------------------------------------

    def _arrives(self, step: ReplayStep) -> None:
        """The JoinGroup is the coordinator's: it has the metadata from now on."""
        client, wire = self.scene.clients[step.event.who], step.wire(after=True)
        frame = client.waiting.get("JoinGroup")
        if frame is not None and wire is not None and not isinstance(wire, s.Refused):
            self.metas[client.slot, int(wire.id)] = _protocols(frame)

    def _abandoned(self, step: ReplayStep, frame: Frame | None) -> None:
        """A JoinGroup arrives whose answer goes nowhere."""
        for record in step.records(after=True):
            if frame is not None and record not in step.records():
                self.metas[p.Slot(step.event.who), record.id] = _protocols(frame)

    def answer_join(self, step: ReplayStep, client: ReplayClient, wire: s.JoinOk) -> None:
        """A generation begins; its leader gets the members in the order of their ids."""
        clients, members = self.scene.clients, []
        for slot in self.scene.order if wire.leader else ():
            instance = self.scene.setup.consumers[slot].instance
            for record in step.records(name=letter(slot)):
                metas = self.metas.get((slot, record.id))
                if record.meta is not None and metas is not None:
                    members.append(
                        {
                            "member_id": clients[slot].id(record.id),
                            "group_instance_id": None if instance is None else f"i{instance}",
                            "metadata": metas.get(wire.protocol, b""),
                        }
                    )
        known = step.group().leader
        leader = "" if known is None else clients[known.slot].id(known.incarnation)
        client.reply(
            "JoinGroup",
            {
                "error_code": 0,
                "generation_id": int(wire.generation),
                "protocol_type": "consumer",
                "protocol_name": wire.protocol,
                "leader": client.id(wire.id) if wire.leader else leader,
                "skip_assignment": wire.skip,
                "member_id": client.id(wire.id),
                "members": members,
            },
        )
        client.generation, client.incarnation, client.gone = wire.generation, wire.id, False

    # -- SyncGroup ---------------------------------------------------------------------------------------

    def assign(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """The leader is answered and decides."""
        wire = step.wire()
        assert isinstance(wire, s.JoinOk)
        self.answer_join(step, client, wire)
        if client.late is not None and step.following == "late answer":
            # librdkafka asks for metadata before it decides, and the answer waits behind this one.
            yield from self.late_answer(step.later[0], client)
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
            self.scene.clients[slot].id(record.id): (slot, record.id) for slot, record in self.records(step)
        }
        self.grants[client.name] = {back[name]: data for name, data in given.items() if name in back}
        for name in given:
            if name not in back:
                self.scene.differs(step, f"assigns to {name}, which the group does not have")
        if isinstance(step.wire(after=True), s.Sync) and decided is None:
            return  # the group has moved on, and nobody reads what it decides
        yield self._decided(step, client, decided)

    def _decided(self, step: ReplayStep, client: ReplayClient, decided: Decided | None) -> Decided:
        """Return what the real leader decided, on the real claims; ``decided`` is what the trace's did, or
        threw."""
        scene, grants, claims, otherwise = self.scene, [], [], False
        for slot, record in self.records(step):
            if record.meta is None:
                continue
            key, id_ = (int(slot), record.id), p.Id(slot, record.id)
            grants.append(p.Grant(id_, p.Parts(scene.assignment(self.grants[client.name].get(key, b"")))))
            meta = subscription(self.metas.get(key, {}).get(step.group().protocol or "", b""))
            claimed = scene.bits(meta.owned_partitions) if meta else 0
            assigned_in = p.Generation(scene.clients[slot].own_gen if claimed else p.NONE)
            claims.append((id_, p.Parts(claimed), assigned_in, scene.setup.parts(record.meta.topics)))
            otherwise |= claimed.bit_count() != record.meta.owned.bit_count()
        modelled = {letter(grant.id.slot): grant.parts for grant in decided.grants} if decided else {}
        self.decisions.append((modelled, {letter(grant.id.slot): grant.parts for grant in grants}))
        if not alike(scene.setup, self.decisions):
            decision = "; ".join(f"{letter(g.id.slot)}: {scene.spell(g.parts)}" for g in grants)
            if otherwise:
                scene.differs(step, f"{LEADER} {decision}, since it was asked something else")
            else:
                scene.unforced(step, f"{LEADER} {decision}")
        return Decided(client.eager, tuple(claims), tuple(grants))

    def leader_sync(self, step: ReplayStep, client: ReplayClient) -> None:
        """The leader's SyncGroup arrives: its decision counts."""
        given = self.grants.get(client.name, {})
        self.assigned |= {
            (slot, record.id): given.get((slot, record.id), b"") for slot, record in self.records(step)
        }

    def answer_sync(self, step: ReplayStep, client: ReplayClient, incarnation: int) -> None:
        """A member gets its assignment."""
        client.reply(
            "SyncGroup",
            {
                "error_code": 0,
                "protocol_type": "consumer",
                "protocol_name": step.group().protocol,
                "assignment": self.assigned.get((client.slot, incarnation), b""),
            },
        )

    # -- errors ------------------------------------------------------------------------------------------

    def refuse(self, step: ReplayStep, client: ReplayClient, wire: s.Refused) -> Iterator[Any]:
        """A JoinGroup or SyncGroup is answered with an error."""
        api = "JoinGroup" if wire.api == "join" else "SyncGroup"
        if wire.error is p.Error.DISCONNECT:
            return
        frame = client.waiting.get(api)
        if frame is None:
            raise Diverged(f"{client.name} has no {api} under way")
        if wire.error is p.Error.MEMBER_ID_REQUIRED:
            if frame.version < 4:
                return  # it stays for the JoinGroup that shows an id, in the trace
            client.incarnation = wire.given
            answer = {"error_code": 79, "generation_id": -1, "member_id": client.id(wire.given)}
            client.reply(api, answer)
            return
        client.waiting.pop(api)
        client.remember_error(step, wire)
        self.scene.proxy.refuse(frame, wire.error.value)
        if wire.error in FATAL:
            client.throws()
            yield from client.look()

    def heartbeat(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """A heartbeat is answered with an error."""
        me, before = MemberContext(client.slot, self.scene.setup), step.member()
        error = answer_to(me, "heartbeat", step.group(), step.records(), before.id, before.generation)
        assert error is not None, "a heartbeat without an effect is no step"
        yield from client.look()
        frame = client.take("Heartbeat")
        yield from self._refuses(
            step, client, frame, s.Refused("heartbeat", error, before.id, before.generation)
        )

    def late_request(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """It is taken from the client, now or when its JoinGroup has left, and answered later."""
        yield from client.look()
        match step.send_time:
            case SendTime.NEVER as never:
                raise NotForcible(never)
            case SendTime.BEHIND:
                client.due = step
            case SendTime.NOW if step.event.choice == "commit":
                client.late = client.take("OffsetCommit", client.commits)
            case SendTime.NOW:
                client.late = client.take("Heartbeat")

    def late_answer(self, step: ReplayStep, client: ReplayClient) -> Iterator[Any]:
        """A request that was taken is answered with an error."""
        answer, frame = step.stray(), client.late
        client.late = None
        if frame is None or not isinstance(answer, s.Refused):
            return  # why it was not sent was said before, or it is a request of a process that is gone
        yield from client.look()
        yield from self._refuses(step, client, frame, answer)

    def _refuses(
        self, step: ReplayStep, client: ReplayClient, frame: Frame, answer: s.Refused
    ) -> Iterator[Any]:
        """Answer a heartbeat or a commit with an error. Raises NotForcible when it is not its turn."""
        gone = client.gone
        client.remember_error(step, answer)
        if not self.scene.proxy.refuse(frame, answer.error.value):
            client.judged, client.gone = None, gone
            raise NotForcible("the answer waits behind another one on its connection, as a broker's would")
        if answer.error in FATAL:
            client.throws()
            yield from client.look()


def _protocols(frame: Frame) -> dict[str, bytes]:
    """Return the metadata of a JoinGroup by assignor."""
    return {one["name"]: one["metadata"] for one in (frame.fields or {})["protocols"]}


def claims_of(fields: Mapping[str, Any]) -> Subscription | None:
    """Return what a JoinGroup says to its first assignor; None for nothing that can be read."""
    return subscription((fields.get("protocols") or [{"metadata": b""}])[0]["metadata"])


def subscription(data: bytes) -> Subscription | None:
    """Return a member's metadata; None for nothing that can be read."""
    try:
        return decode_subscription(data) if data else None
    except WireError:
        return None
