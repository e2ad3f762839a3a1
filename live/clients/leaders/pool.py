"""The processes of one client: one that leads for each set of topics that it subscribes to, and, once it has
ended in the middle of a question, others that were started ahead."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Self

from rebalance_verifier.live.clients.leaders.broker import Network
from rebalance_verifier.live.clients.leaders.clients import TOPICS
from rebalance_verifier.live.clients.leaders.hosted import Hosts
from rebalance_verifier.live.clients.leaders.leader import OWN_TOPIC, LeaderClient, LeaderLost
from rebalance_verifier.live.clients.leaders.starting import Forks, by_command

MAX_AHEAD = 3
"""Processes that wait for one that leads to end: as many begin as have ended."""
MAX_TOPICS = 8
"""Sets of topics for which a process is kept, those used last."""
SubscribedTopics = tuple[str, ...]


class LeaderPool:
    """Clients of one ``command``; use as a context manager. ``by_topics``: each subscribes to what the first
    member does, since its leader assigns that, whatever the others subscribe to. ``forks``: what starts the
    process of which they are forks; ``hosts``: what starts the one that they run in, side by side. Where
    there is neither the command starts each."""

    def __init__(
        self,
        network: Network,
        command: Sequence[str],
        environment: Mapping[str, str],
        steady: bool,
        forks: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> None:
        self._network = network
        self._hosts = Hosts(network, hosts, environment) if hosts else None
        self._forks = Forks(network, forks, environment) if forks else None
        self._start = self._hosts or self._forks or by_command(environment)
        self._arguments = command[len(hosts) :]
        self.by_topics = any(TOPICS in word for word in command)
        self._leading: dict[SubscribedTopics, LeaderClient] = {}
        self._ahead: defaultdict[SubscribedTopics, deque[LeaderClient]] = defaultdict(deque)
        self._ended, self._steady = 0, steady

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in (*self._leading.values(), *(one for ahead in self._ahead.values() for one in ahead)):
            client.close()
        if self._forks:
            self._forks.close()
        if self._hosts:
            self._hosts.close()

    def leader(self, topics: Sequence[str] = (OWN_TOPIC,)) -> LeaderClient:
        """Return the client that leads where the first member subscribes to ``topics``; it waits for an
        answer to its JoinGroup. Raises LeaderLost, OSError."""
        key = tuple(dict.fromkeys(topics)) if self.by_topics else (OWN_TOPIC,)
        client = self._waiting(key) or self._started(key)
        self._leading[key] = client  # the one used last comes last
        while len(self._leading) > MAX_TOPICS:
            self._leading.pop(next(iter(self._leading))).close()
        try:
            client.await_join()
        except LeaderLost:
            self.end(client)
            raise
        return client

    def _waiting(self, key: SubscribedTopics) -> LeaderClient | None:
        """Return one that has led or was started ahead, unless it ended with another in its process."""
        led = [self._leading.pop(key)] if key in self._leading else []
        for client in (*led, *self._ahead.pop(key, ())):
            if not client.orphaned:
                self._ahead[key].append(client)
            else:
                client.close()
        return self._ahead[key].popleft() if self._ahead[key] else None

    def end(self, client: LeaderClient, *, ahead: bool = False, well: bool = False) -> None:
        """Be rid of a client. ``ahead``: let others begin now, which later ones need not be waited for: as
        many as have ended, or one where they are forks or side by side, which are there at once. ``well``:
        what it runs in may go on."""
        if self._hosts and not (ahead or well):
            self._hosts.renew()
        key = next(key for key, one in self._leading.items() if one is client)
        self._steady = client.steady
        self._leading.pop(key).close()
        if ahead:
            self._ended += 1
            while len(self._ahead[key]) < min(self._ended, 1 if self._forks or self._hosts else MAX_AHEAD):
                self._ahead[key].append(self._started(key))

    def _started(self, topics: SubscribedTopics) -> LeaderClient:
        return LeaderClient(self._network, self._start, self._arguments, topics, steady=self._steady)
