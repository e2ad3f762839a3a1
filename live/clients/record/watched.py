"""Apache Kafka behind proxies, so that what its clients and its coordinator say to each other is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster
from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.proxy.proxy import HOST, Proxy


class WatchedKafka(KafkaCluster):
    """A cluster with a proxy before each node. Arguments as of KafkaCluster."""

    def __init__(
        self, version: str, nodes: int = 1, *, logs: Path | None = None, config: Mapping[str, object]
    ) -> None:
        super().__init__(version, nodes, logs=logs, config=config)
        self._heard: Callable[[Frame], None] = lambda frame: None
        self._proxies = [Proxy(lambda frame: self._heard(frame)) for _ in range(nodes)]
        self._closing = ExitStack()

    def listen(self, heard: Callable[[Frame], None]) -> None:
        """Let ``heard`` be called with each message from now on."""
        self._heard = heard

    def __enter__(self) -> Self:
        with self._closing as stack:
            for proxy in self._proxies:
                stack.enter_context(proxy)
            self.advertised = [proxy.bootstrap for proxy in self._proxies]
            super().__enter__()
            for proxy, port in zip(self._proxies, self.listening, strict=True):
                proxy.to(HOST, port)
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._closing.close()
