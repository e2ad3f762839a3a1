"""``python -m ...leaders SETTINGS``: a real client as a target that speaks the stdio protocol.

SETTINGS are JSON: ``command`` with ``{address}``, ``{group}`` and perhaps ``{topics}`` in it,
``environment``, ``promises`` by assignor, ``hello``, what else is known of the client, ``forks``, what
starts the process that clients are forks of, if they are, ``hosts``, what starts the one that they run in,
if they run in one, ``anew``, whether each answers one question, and ``remembers``, whether each plays one
history, and ``at_once``, how many of them answer questions of different histories side by side.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.processes.lines import Json, to_line
from rebalance_verifier.live.clients.leaders.broker import Network
from rebalance_verifier.live.clients.leaders.lane import Lane
from rebalance_verifier.live.clients.leaders.leader import (
    OWN_TOPIC,
    GroupMember,
    LeaderClient,
    LeaderLost,
    LossKind,
)
from rebalance_verifier.live.clients.leaders.pool import LeaderPool
from rebalance_verifier.live.clients.leaders.user_data import LEARN, LearntUserData, Unwritable, remembered
from rebalance_verifier.model.values import Partitions, TopicPartition

HISTORIES_EACH = 8
"""Histories for each client at once: while it thinks about one question the next ones are there."""

TRIES = 2
"""A leader that waits, joins again or missed the metadata is asked once more, in a new process."""


class Declined(Exception):
    """Question that this client cannot be asked; the text says why."""


class WireTarget:
    """Answers the requests of the protocol with what the client does."""

    def __init__(self, pool: LeaderPool, settings: str) -> None:
        self._pool, self._text = pool, settings
        self._settings: Json = json.loads(settings)
        self._learnt: LearntUserData | None = None

    def __call__(self, request: Json) -> Json:
        """Return the reply to a request, without its number."""
        try:
            match request["cmd"]:
                case "hello":
                    return {"result": self._hello()}
                case "assign":
                    return {"result": {"encoded": self._assign(request)}}
                case "user_data":
                    return {"result": {"user_data": self._user_data(request)}}
            raise Declined(f"no such request: {request['cmd']}")
        except (Declined, Unwritable) as declined:
            return {"skipped": {"message": str(declined)}}
        except LeaderLost as lost:
            kind = "crash" if lost.kind is LossKind.ENDED else "errored"
            return {kind: {"message": lost.message, "traceback": lost.detail or None}}
        except OSError as error:
            return {"errored": {"message": f"the client cannot be started: {error}"}}

    def _hello(self) -> Json:
        learnt = self.learn()
        return {
            "name": learnt.assignor,
            "protocols": ["cooperative" if learnt.keeps else "eager"],
            "promises": self._settings["promises"].get(learnt.assignor, []),
            "user_data": learnt.writes,
            "user_data_from": ["owned", "generation"] if learnt.format else None,
            "histories": HISTORIES_EACH * count if (count := self._settings["at_once"]) > 1 else 1,
            **self._settings["hello"],
        }

    def learn(self) -> LearntUserData:
        """Return what the client is seen to write. What a release does it does again; other programs may
        change."""
        self._learnt = self._learnt or self._remembered()
        return self._learnt

    def _remembered(self) -> LearntUserData:
        known = remembered(self._text)
        with contextlib.suppress(OSError, ValueError, TypeError, IndexError, KeyError):
            return LearntUserData.from_text(known.read_text(encoding="utf-8"))
        learnt = LearntUserData.of(self._pool.leader(), OWN_TOPIC)
        if self._settings["pinned"]:
            with contextlib.suppress(OSError):
                known.parent.mkdir(parents=True, exist_ok=True)
                write_whole(known, learnt.to_text())
        return learnt

    def _user_data(self, request: Json) -> str | None:
        owned: Partitions = tuple(
            TopicPartition(topic, index) for topic, indexes in request["owned"] for index in indexes
        )
        topics = tuple(dict.fromkeys(topic for topic, _ in owned))
        try:
            data = self.learn().written(lambda: self._pool.leader(topics), owned, request["generation"])
        except LeaderLost as lost:
            if lost.kind is LossKind.STALE:  # the client was not asked what it should have been
                raise Declined(lost.message) from None
            raise
        return None if data is None else data.hex()

    def _assign(self, request: Json) -> dict[str, str]:
        topics = {name: tuple(map(tuple, racks)) for name, racks in request["cluster"]["topics"].items()}
        own = request["members"][0]["topics"]
        every = {topic for member in request["members"] for topic in member["topics"]}
        subscribed = sorted(own if self._pool.by_topics else every)
        if self._pool.by_topics and not (own and all(topic in topics for topic in every)):
            raise Declined("this client's leader waits until all topics exist, and subscribes to some itself")
        members = [
            GroupMember(one["id"], bytes.fromhex(one["metadata"]), one.get("instance"))
            for one in request["members"]
        ]

        def lead(client: LeaderClient) -> dict[str, bytes]:
            answer = client.assign(topics, subscribed, members)
            if self._settings["anew"]:
                self._pool.end(client, ahead=True)
            else:
                client.join_again()
            return answer

        try:
            answer = self._with_leader(own, lead, request.get("history", 0))
        except LeaderLost as lost:
            if lost.kind is LossKind.STALE:
                raise Declined(lost.message) from None
            if not lost.by_signal and (missing := [t for t in subscribed if not topics.get(t)]):
                # Not the assignor's doing: it is not called.
                why = "this client's leader gives up where a topic is unknown or has no partitions"
                raise Declined(f"{why}: {', '.join(missing)}") from None
            raise
        return {member: assignment.hex() for member, assignment in answer.items()}

    def _with_leader(self, own: list[str], ask: Callable[[LeaderClient], Any], history: int) -> Any:
        for left in reversed(range(TRIES)):
            client = self._pool.leader(own)
            if self._settings["remembers"] and client.recalls(history):
                self._pool.end(client, well=True)
                client = self._pool.leader(own)
            client.history = history
            try:
                return ask(client)
            except LeaderLost as lost:
                ended = lost.kind is LossKind.ENDED
                client.steady = client.steady or lost.kind is LossKind.STALE
                self._pool.end(client, ahead=ended)
                if ended or not left:
                    raise
        raise AssertionError


def main() -> None:
    """Answer until ``bye`` or the end of input; or only learn."""
    settings = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a client that crashes leaves no core file
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the one who asks

    if sys.argv[2:] == [LEARN]:
        with _clients(sys.argv[1], Network()) as target:
            target.learn()
        return
    with contextlib.ExitStack() as stack:
        answering = partial(_clients, sys.argv[1])
        lanes = [stack.enter_context(Lane(answering)) for _ in range(settings["at_once"])]
        replies = SimpleQueue[tuple[int, Future[Json]] | None]()
        Thread(target=_read, args=(lanes, replies), daemon=True).start()
        while one := replies.get():
            seq, reply = one
            if not reply.done():
                sys.stdout.buffer.flush()
            sys.stdout.buffer.write(to_line({"seq": seq, **reply.result()}))
            if replies.empty():
                sys.stdout.buffer.flush()


@contextlib.contextmanager
def _clients(settings: str, network: Network) -> Iterator[WireTarget]:
    """Yield what answers in one lane."""
    start = json.loads(settings)
    how = [start[name] for name in ("command", "environment", "steady", "forks", "hosts")]
    with LeaderPool(network, *how) as pool:
        yield WireTarget(pool, settings)


def _read(lanes: Sequence[Lane], replies: SimpleQueue[tuple[int, Future[Json]] | None]) -> None:
    """Hand out what comes on stdin, a history to one lane, up to ``bye`` or the end."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["cmd"] == "bye":
            break
        replies.put((request["seq"], lanes[request.get("history", 0) % len(lanes)].ask(request)))
    replies.put(None)


if __name__ == "__main__":
    main()
