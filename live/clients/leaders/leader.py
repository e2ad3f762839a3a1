"""One real client that leads its group: started, made the leader of whatever group is played, ended."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rebalance_verifier.base.processes.supervision import TimeUsed, named
from rebalance_verifier.live.clients.leaders.broker import LeaderBroker, Network, Topics
from rebalance_verifier.live.clients.leaders.starting import Start
from rebalance_verifier.model import wire
from rebalance_verifier.model.values import Subscription
from rebalance_verifier.model.written import WrittenJoin, read_metadata

START_SECONDS = 40.0
"""Until a new client has sent its first JoinGroup: a JVM on a busy machine."""
ANSWER_SECONDS = 600.0
"""Until the leader has to answer; whoever asks has a limit of his own, and a better one."""
QUIET_SECONDS = 3.0
"""A leader that uses no processor for so long waits for something that will not come."""
REFRESH_SECONDS = 1.0
"""Until a client that fetches metadata by itself has done so."""
REJOIN_SECONDS = 20.0
"""Until a client has noticed that its group rebalances."""
POLL_SECONDS = 0.1
"""Seconds after which a client that is awaited is looked at."""
TAIL = 20_000
OWN_TOPIC = "topic-of-the-leader"
"""What a client that has to subscribe to something subscribes to; no scenario has it."""
BESIDE = "topic-beside-it"
"""Is there too while a client starts: one that joins with it subscribes to whatever there is."""


class LossKind(StrEnum):
    """Why there is no answer."""

    ENDED = "ended"
    SILENT = "silent"
    REFUSED = "refused"
    STALE = "stale"
    UNREADABLE = "unreadable"


class LeaderLost(Exception):
    """The client did not answer: its process has ended, it waits, it joins again, or it did not look at the
    metadata. ``detail``: the last that it wrote; ``by_signal``: what ended it was one."""

    def __init__(
        self,
        message: str,
        detail: str = "",
        kind: LossKind = LossKind.SILENT,
        *,
        by_signal: bool = False,
    ) -> None:
        super().__init__(message)
        self.message, self.detail, self.kind, self.by_signal = message, detail, kind, by_signal


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member as JoinGroup's answer shows it to the leader."""

    id: str
    metadata: bytes
    instance: str | None = None


class LeaderClient:
    """A client in a process of its own, with a broker of its own. ``start`` starts it with the ``command``,
    which has ``{address}``, ``{group}`` and ``{topics}`` in it; ``topics`` are those it subscribes to itself.
    ``steady``: it fetches metadata again and again, as far as is known by now.

    Raises OSError when it cannot be started.
    """

    def __init__(
        self,
        network: Network,
        start: Start,
        command: Sequence[str],
        topics: Sequence[str],
        *,
        steady: bool = True,
    ) -> None:
        self._network = network
        self._broker = LeaderBroker(network, OWN_TOPIC)
        self._broker.topics = dict.fromkeys((*topics, BESIDE), ((),))
        filled = {"{address}": self._broker.bootstrap, "{group}": "group", "{topics}": ",".join(topics)}
        self._output = tempfile.NamedTemporaryFile()  # noqa: SIM115  # for as long as the process
        for name, value in filled.items():
            command = [word.replace(name, value) for word in command]
        self._process = start(command, self._output)
        self.steady = steady
        self.generation = 0
        """That of the last JoinGroup that was answered."""
        self.first: Subscription | None = None
        """What it joined with before it was assigned anything."""
        self.assignor = ""
        self._metadata = b""
        self.history: int | None = None
        """Number of the history that it plays; None before that, 0: none that goes on."""
        self.short = False
        """Its subscription ends before the fields that its version has (Q1)."""

    def close(self) -> None:
        """End it."""
        self._process.end()
        self._broker.close()
        self._output.close()

    @property
    def orphaned(self) -> bool:
        """Check whether it has ended with what it runs in, perhaps by another's doing."""
        return self._process.orphaned

    def recalls(self, history: int) -> bool:
        """Check whether it has played another history than this one."""
        return self.history is not None and (not history or history != self.history)

    def await_join(self, seconds: float = START_SECONDS) -> None:
        """Wait until it has sent JoinGroup. Raises LeaderLost."""
        self._await(lambda: self._broker.join, "JoinGroup", seconds)
        self._broker.holding = True
        if self.first is None:
            first = self._joined()
            self._broker.to_all = BESIDE in first.topics
            self.first = replace(first, topics=tuple(topic for topic in first.topics if topic != BESIDE))

    def _joined(self) -> Subscription:
        """Return the subscription that it has sent. Raises LeaderLost where nobody can read it."""
        assert self._broker.join
        protocol = self._broker.join.fields["protocols"][0]
        self.assignor = protocol["name"]
        try:
            self._metadata = protocol["metadata"]
            read = read_metadata(self._metadata)
        except wire.WireError as error:
            why = f"its JoinGroup for {self.assignor!r} has a subscription that cannot be read: {error}"
            raise LeaderLost(why, kind=LossKind.UNREADABLE) from error
        self.short = read.short
        return read.subscription

    def join_again(self) -> None:
        """Let it join again after it has assigned, so that what that broke is not taken for the next
        question's doing. Raises LeaderLost."""
        self._broker.refuse_sync("REBALANCE_IN_PROGRESS")
        self.await_join(ANSWER_SECONDS)

    def rejoined(self, topics: Topics, member: str, generation: int) -> tuple[Subscription, bytes]:
        """Return what it joins with after it was assigned all of ``topics``, alone in its group, and the
        assignment as it wrote it itself. Raises LeaderLost."""
        assert self.first
        metadata = self._metadata if self.short else wire.encode_subscription(self.first)
        alone = GroupMember(member, metadata)
        assigned = self.called_back(topics, alone, generation, "REBALANCE_IN_PROGRESS")
        return self._joined(), assigned

    def called_back(self, topics: Topics, alone: GroupMember, generation: int, error: str) -> bytes:
        """Let it assign all of ``topics`` to itself, alone in its group, and join again since its heartbeats
        are answered with an ``error``; return the assignment as it wrote it. Raises LeaderLost."""
        self.generation = generation - 1
        assigned = self.assign(topics, [*topics], [alone]).get(alone.id, b"")
        self._broker.answer_sync({"assignment": assigned, "protocol_name": self.assignor})
        self._broker.holding, self._broker.heartbeat_error = False, error
        try:
            self._await(lambda: self._broker.join, f"JoinGroup after {error}", REJOIN_SECONDS)
        finally:
            self._broker.heartbeat_error = ""
        self._broker.holding = True
        return assigned

    def join(self) -> WrittenJoin:
        """Return the JoinGroup that waits for an answer."""
        assert self._broker.join
        version, fields = self._broker.join.head.version, self._broker.join.fields
        written = {one["name"]: one["metadata"] for one in fields["protocols"]}
        return WrittenJoin(version, fields.get("reason"), written)

    def assign(
        self, topics: Topics, subscribed: Sequence[str], members: Sequence[GroupMember]
    ) -> dict[str, bytes]:
        """Return what the client assigns to the members, which subscribe to these topics, as the leader under
        the id of the first of them: member -> ConsumerProtocolAssignment. Its SyncGroup waits. Raises
        LeaderLost."""
        self._lead(topics, members)
        if not self._broker.sync:  # it joins again instead: for the metadata that it got, or since it fails
            self._lead(topics, members)
        broker = self._broker
        if not broker.sync:
            raise LeaderLost("the leader joins again and assigns nothing", self._written(), LossKind.REFUSED)
        if stale := broker.stale(subscribed):
            raise LeaderLost(f"the leader did not fetch metadata of {', '.join(stale)}", kind=LossKind.STALE)
        return {one["member_id"]: one["assignment"] for one in broker.sync.fields["assignments"]}

    def _lead(self, topics: Topics, members: Sequence[GroupMember]) -> None:
        """Tell it that it is the leader of this group, and wait for what it does."""
        broker = self._broker
        self.await_join(ANSWER_SECONDS)
        broker.topics = topics
        if self.steady:
            self._refresh()
        self.generation += 1
        broker.answer_join(
            {
                "generation_id": self.generation,
                "protocol_name": self.assignor,
                "leader": members[0].id,
                "member_id": members[0].id,
                "members": [
                    {"member_id": one.id, "group_instance_id": one.instance, "metadata": one.metadata}
                    for one in members
                ],
            }
        )
        broker.holding = False
        broker.release()
        self._await(lambda: broker.sync or broker.join, "SyncGroup", ANSWER_SECONDS)

    def _refresh(self) -> None:
        """Let it have the new metadata before it is the leader: what it asks for next it asks with that. One
        that does not ask by itself fetches them as the leader, or else is found out."""
        broker = self._broker
        if self._serve(lambda: broker.held, REFRESH_SECONDS):
            calls = broker.calls
            broker.release()
            self.steady = self._serve(lambda: broker.calls > calls, REFRESH_SECONDS)
        else:
            self.steady = False

    def _serve(self, until: Callable[[], object], seconds: float) -> bool:
        """Serve until something is true or the process has ended; whether it is true."""
        self._network.serve(lambda: until() or self._process.poll() is not None, seconds)
        return bool(until())

    def _await(self, until: Callable[[], object], what: str, seconds: float) -> None:
        """Serve until something is true. Raises LeaderLost."""
        used: TimeUsed | None = None  # most answers come at once
        while not self._serve(until, POLL_SECONDS):
            if (code := self._process.poll()) is not None:
                how = f"was ended by {named(code)}" if code < 0 else f"ended with {named(code)}"
                raise LeaderLost(
                    f"the client {how} before its {what}",
                    self._written(),
                    LossKind.ENDED,
                    by_signal=code < 0,
                )
            if self._broker.failure:
                raise LeaderLost(self._broker.failure, self._written())
            used = used or TimeUsed(self._process.pid)
            used.look()
            if used.ran > seconds or used.idle > QUIET_SECONDS:
                raise LeaderLost(f"the client sends no {what}", self._written())

    def _written(self) -> str:
        """Return the last that it wrote."""
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - TAIL))
        return self._output.read().decode("utf-8", "replace").strip()
