"""Members of the consumer protocol in a group that is searched.

No simulation runs Kafka's client of that protocol. The model's client stands for it, with the decisions that
its release is known for; what it sends goes to Kafka's coordinator, and what it hears is Kafka's answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.replay.beats import HEARTBEAT, fields_of, heard
from rebalance_verifier.live.code.search.choice import ARRIVES, CodeChoice
from rebalance_verifier.live.code.search.group import SearchedGroup
from rebalance_verifier.model.consumer import member as client
from rebalance_verifier.model.consumer.state import (
    INSIDE,
    Beat,
    BeatError,
    BeatKind,
    BeatRefused,
    ClientState,
    ConsumerMember,
)
from rebalance_verifier.model.group.parts import NONE, Life, Parts, Slot, each
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Event, Outcome

_OWN: Mapping[str, Callable[[MemberContext, ConsumerMember], Iterator[Outcome]]] = {
    "lose": client.lose,
    "reconcile": client.begin,
    "revoke": client.revoke,
    "assign": client.assign,
    "acknowledge": client.acknowledge,
    "subscribe": client.subscribe,
}
"""Steps of a client that nobody else sees."""

OWN = (*_OWN, "answer")
"""Acts that read and change one client."""

COMMIT = "OffsetCommit"


def client_choices(group: SearchedGroup, slot: int, faults: Sequence[str]) -> Iterator[CodeChoice]:
    """Yield what can happen to a member of the consumer protocol whose process runs."""
    member, me = group.memory.clients[slot], _me(group, slot)
    if answers := group.arrived(slot):
        late = answers[0].api == COMMIT
        name, choice = ("late answer", "commit") if late else ("answer", "")
        yield CodeChoice("answer", Event(name, slot, choice))
    if (queue := group.queue(slot)) and group.waits(slot) is None:
        commit = queue[0].api == COMMIT
        name, choice = ("late request arrives", "commit") if commit else ("heartbeat arrives", "")
        yield CodeChoice("arrive", Event(name, slot, choice))
    for name, run in _OWN.items():
        if any(True for _ in run(me, member)):
            yield CodeChoice(name, Event(name, slot))
    news = group.memory.last_heartbeat_views.get(slot) != _view(group, slot)
    if slot not in group.memory.beats and news and any(True for _ in client.send(me, member, None)):
        yield CodeChoice("heartbeat", Event("heartbeat", slot))
    if faults:
        yield from _trouble(group, slot, member)


def _trouble(group: SearchedGroup, slot: int, member: ConsumerMember) -> Iterator[CodeChoice]:
    queue = group.queue(slot)
    for name in ("crash", "close"):
        yield CodeChoice(name, Event(name, slot), True)
    if queue:
        yield CodeChoice("crash", Event("crash", slot, ARRIVES), True)
        yield CodeChoice("left behind", Event("left behind", slot), True)
    if queue or group.arrived(slot):
        yield CodeChoice("disconnect", Event("disconnect", slot), True)
    if not member.topics:
        return
    yield CodeChoice("unsubscribe", Event("unsubscribe", slot), True)
    if member.state in INSIDE:
        yield CodeChoice("max poll", Event("max poll", slot), True)
    for number, topics in enumerate(group.setup.consumers[slot].subscriptions):
        if topics != member.topics:
            yield CodeChoice("resubscribe", Event("resubscribe", slot, f"subscription {number}"), True)
    commits = COMMIT in {*(one.api for one in queue), *(one.api for one in group.arrived(slot))}
    if member.epoch != NONE and member.owned and not commits:
        yield CodeChoice("late request", Event("late request", slot, "commit"), True)


def beats_on(member: ConsumerMember) -> bool:
    """Check whether a client keeps its session with heartbeats: not by joins, which may be refused."""
    return member.life is Life.UP and member.state in INSIDE


def _me(group: SearchedGroup, slot: int) -> MemberContext:
    return MemberContext(Slot(slot), group.setup)


def _view(group: SearchedGroup, slot: int) -> tuple[object, ConsumerMember]:
    """Return how both stand, on which it depends what becomes of a heartbeat: of equal ones one is enough."""
    return _coordinator(group), group.memory.clients[slot]


def _coordinator(group: SearchedGroup) -> object:
    known = group.state.coordinator
    return known.state, known.generation, known.consumer, group.memory.partition_count


class ClientSteps:
    """Does what a client does, and what is done to it."""

    def __init__(self, group: SearchedGroup) -> None:
        self.group, self.setup = group, group.setup
        self.acts: Mapping[str, Callable[[Event], None]] = {
            **dict.fromkeys(_OWN, self._own),
            "start": self._start, "heartbeat": self._heartbeat, "answer": self._answer,
            "crash": self._crash, "close": self._close,
            **dict.fromkeys(("disconnect", "left behind"), self._disconnect),
            "unsubscribe": self._unsubscribe, "max poll": self._max_poll, "resubscribe": self._resubscribe,
            "late request": self._late_request,
        }  # fmt: skip

    def _take(self, slot: int, outcome: Outcome) -> None:
        self.group.memory.clients[slot] = outcome.values[0]  # type: ignore[assignment]
        self.group.seen += outcome.seen

    def _own(self, event: Event) -> None:
        member = self.group.memory.clients[event.who]
        self._take(event.who, next(_OWN[event.action](_me(self.group, event.who), member)))

    def _start(self, event: Event) -> None:
        slot, memory = event.who, self.group.memory
        member = memory.clients.get(slot, ConsumerMember(stage=memory.stages.get(slot, 0)))
        outcome = next(client.start(_me(self.group, slot), member, None, None, ()))
        number = self.group.named(f"{self.group.client(slot)}-{self.group.next_number(slot)}", slot)
        fresh: ConsumerMember = outcome.values[0]  # type: ignore[assignment]
        memory.clients[slot] = fresh._replace(id=number)
        memory.last_heartbeat_views.pop(slot, None)

    # -- messages --------------------------------------------------------------------------------------

    def _heartbeat(self, event: Event) -> None:
        slot = event.who
        self.group.memory.sent_views[slot] = _view(self.group, slot)
        outcome = next(client.send(_me(self.group, slot), self.group.memory.clients[slot], None))
        self._take(slot, outcome)
        self._sends(slot, outcome.values[1])  # type: ignore[arg-type]

    def _sends(self, slot: int, beat: Beat) -> None:
        group = self.group
        partitions = None if beat.owned is None else [str(self.setup.partition(p)) for p in each(beat.owned)]
        fields = fields_of(
            beat,
            beat.epoch,
            member_id=group.id_of(slot, beat.id),
            instance=group.instance(slot),
            topics=group.names(beat.topics),
            owned=partitions,
        )
        [sent] = group.do("send", member=slot, **fields)
        group.memory.beats[slot] = group.memory.sent_beats[sent.id] = beat  # type: ignore[union-attr]

    def _answer(self, event: Event) -> None:
        group, slot = self.group, event.who
        answer = group.arrived(slot)[0]
        group.do("respond", id=answer.id)
        beat = group.memory.beats.get(slot)
        if answer.api != HEARTBEAT or group.memory.sent_beats[answer.id] is not beat or beat is None:
            return  # that it was going to leave before it was answered
        del group.memory.beats[slot]
        if beat.kind in (BeatKind.LEAVE, BeatKind.AWAY):
            return
        given = answer.assignment
        self._hears(slot, heard(beat, answer, None if given is None else Parts(group.bits(given))))
        sent = group.memory.sent_views.pop(slot, None)
        if sent is not None and sent[0] == _coordinator(group):
            group.memory.last_heartbeat_views[slot] = sent

    def _hears(self, slot: int, wire: object) -> None:
        member = self.group.memory.clients[slot]
        for outcome in client.receive(_me(self.group, slot), wire, member):  # type: ignore[arg-type]
            self._take(slot, outcome)
        if self.group.memory.clients[slot].life is Life.FAILED:
            self._ends(slot, arrives=True)
            self.group.memory.given_up |= {slot}

    def _late_request(self, event: Event) -> None:
        """One commit for each partition: Kafka may store some of them only."""
        group, slot = self.group, event.who
        member = group.memory.clients[slot]
        identity: JsonLine = {
            "member_id": group.id_of(slot, member.id),
            "generation": member.epoch,
            "instance": group.instance(slot),
        }
        for number in each(member.owned):
            partitions = [str(self.setup.partition(number))]
            group.do("send", member=slot, api="OFFSET_COMMIT", partitions=partitions, **identity)

    # -- what goes wrong, and what applications ask for -------------------------------------------------

    def _disconnect(self, event: Event) -> None:
        """The connection ends; what is left behind on it may arrive after what is sent on the next one."""
        self._cut(event.who, arrives=event.action == "left behind")
        beat = self.group.memory.beats.pop(event.who, None)
        if beat is not None and beat.kind not in (BeatKind.LEAVE, BeatKind.AWAY):
            self._hears(event.who, BeatRefused(beat.id, BeatError.DISCONNECT))

    def _cut(self, slot: int, *, arrives: bool) -> None:
        self.group.memory.pending_requests.pop(slot, None)
        self.group.do("cut", member=slot, arrive=arrives)

    def _ends(self, slot: int, *, arrives: bool) -> None:
        """The process ends, and its connections with it."""
        self.group.memory.beats.pop(slot, None)
        self._cut(slot, arrives=arrives)
        stage = self.group.memory.stages.get(slot, 0)
        self.group.memory.clients[slot] = ConsumerMember(stage=stage)

    def _crash(self, event: Event) -> None:
        self._ends(event.who, arrives=event.choice == ARRIVES)

    def _close(self, event: Event) -> None:
        """Close the consumer; its requests, the leaving one too, may arrive later."""
        self._leaves(event.who)
        member = self.group.memory.clients[event.who]
        self.group.seen += client.departs(_me(self.group, event.who), member, close=True)[1]
        self._ends(event.who, arrives=True)

    def _unsubscribe(self, event: Event) -> None:
        self._leaves(event.who)
        me, member = _me(self.group, event.who), self.group.memory.clients[event.who]
        self.group.memory.clients[event.who], calls = client.departs(me, member, close=False)
        self.group.seen += calls

    def _max_poll(self, event: Event) -> None:
        self._leaves(event.who)
        me, member = _me(self.group, event.who), self.group.memory.clients[event.who]
        self.group.memory.clients[event.who] = client.fenced(me, member, ClientState.STALE)

    def _leaves(self, slot: int) -> None:
        me = _me(self.group, slot)
        beat = client.leaving(me, self.group.memory.clients[slot], static=me.static)
        if beat is not None:
            self._sends(slot, beat)

    def _resubscribe(self, event: Event) -> None:
        number = int(event.choice.rpartition(" ")[2])
        member = self.group.memory.clients[event.who]
        topics = self.setup.consumers[event.who].subscriptions[number]
        self.group.memory.clients[event.who] = member._replace(topics=topics)
