"""Apache Kafka in KRaft mode on loopback: one process for each node, from Maven's jars.

Each node is broker and controller. A node ends with its stdin, that is with us, and the kernel kills it where
we cannot; its files are in a temporary directory that goes with it.
"""

from __future__ import annotations

import base64
import re
import signal
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.processes.program import Server
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.clients.clusters.cluster import LiveCluster, Unsupported
from rebalance_verifier.live.clients.clusters.defaults import KAFKA
from rebalance_verifier.live.clients.clusters.java import GROUPS, broker
from rebalance_verifier.model.bugs.releases import version

OLDEST = "2.8.0"
"""The first release with KRaft mode."""

READY = 90.0
"""Seconds until a node has to answer."""


class KafkaCluster(LiveCluster):
    """A cluster of Apache Kafka ``version`` with ``nodes`` nodes.

    Their ids begin with 1. ``logs``: a directory for what the nodes log; ``config``: of each, beside ours.
    ``advertised``: what stands before the nodes, as clients are to see them; `listening` is where these are
    then. Where it is given, what the nodes make of consumer groups is logged too.
    """

    kind = "kafka"

    def __init__(
        self,
        version: str = KAFKA,
        nodes: int = 1,
        *,
        logs: Path | None = None,
        config: Mapping[str, object] | None = None,
        advertised: Sequence[str] = (),
    ) -> None:
        self.version, self.nodes, self.logs = version, nodes, logs
        self.config, self.advertised = dict(config or {}), advertised
        self.listening: tuple[int, ...] = ()
        """The ports of the nodes for clients."""
        self._servers: dict[int, Server] = {}
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if re.fullmatch(r"(\d+\.)+\d+", self.version) and version(self.version) < version(OLDEST):
            raise ToolError(f"Kafka {self.version} has no KRaft mode: a cluster takes {OLDEST} or newer")
        with self._stack as stack:
            directory = stack.enter_context(scratch("kafka"))
            ports = _free_ports(3 * self.nodes)
            addresses = [f"127.0.0.1:{port}" for port in ports[: self.nodes]]
            self.listening = tuple(ports[2 * self.nodes :])
            inside = ",".join(addresses)
            self.bootstrap = ",".join(self.advertised) or inside
            command = broker(self.version, "warn", *([GROUPS] if self.advertised else []))
            written = self._written(directory, ports)
            if self.logs:
                self.logs.mkdir(parents=True, exist_ok=True)
            identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
            for node, properties in written.items():
                log = self.logs / f"node-{node}.log" if self.logs else None
                given = [str(properties), identity.replace("-", "_"), inside, str(self.nodes)]
                self._servers[node] = Server([*command, *given], ready=None, log=log)
                stack.callback(self._servers[node].close, 2.0)
            for server in self._servers.values():
                self.version = str(server.await_ready(READY)["version"])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda server: server.close(1.0), self._servers.values()))
        self._stack.close()

    def _written(self, directory: Path, ports: list[int]) -> dict[int, Path]:
        control = ports[self.nodes : 2 * self.nodes]
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(control, 1))
        seen = self.advertised or [f"127.0.0.1:{port}" for port in self.listening]
        more = "".join(f"{name}={value}\n" for name, value in self.config.items())
        template = Path(__file__).with_name("node.properties").read_text(encoding="utf-8")
        made = {}
        for node in range(1, self.nodes + 1):
            own: dict[str, object] = {"node": node, "port": ports[node - 1], "control": control[node - 1]}
            own |= {"clients": self.listening[node - 1], "advertised": seen[node - 1]}
            data = directory / f"data-{node}"
            made[node] = directory / f"node-{node}.properties"
            text = template.format(**own, voters=voters, nodes=self.nodes, directory=data)
            made[node].write_text(text + more, encoding="utf-8")
        return made

    def _ask(self, do: str, **arguments: Any) -> Any:
        """Return the answer of the first node that runs."""
        running = [one for one in self._servers.values() if one.returncode is None]
        if not running:
            raise ToolError("no Kafka node runs any more")
        return running[0].ask(do, **arguments)

    def fail_coordinator(self, group: str) -> None:
        """Kill the node that coordinates ``group``."""
        if self.nodes < 3:
            raise Unsupported("a failover takes three nodes: --nodes 3")
        node = int(self._ask("coordinator", group=group)["node"])
        self._servers[node].signal(signal.SIGKILL)
        self._servers[node].wait(10)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, chosen by the system."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
