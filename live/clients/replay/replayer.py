"""A run of the model played against real clients: environment and coordinator do what the trace says.

The clients are real, and so are metadata, offsets and records (the mock cluster). Their group requests
end at the proxy, where the coordinator of the trace answers them: which generation begins when and under
whose lead, whose session expires, which answer is late or lost. Assignments are those that the real leader
decides. What the clients then do, callback by callback, is put into the model's own observations and judged
by the same clauses that broke in the model (``properties.group.clauses``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from rebalance_verifier.live.clients.clusters.mock import MockCluster
from rebalance_verifier.live.clients.proxy.frames import lines
from rebalance_verifier.live.clients.proxy.proxy import Proxy, ProxyTimeout
from rebalance_verifier.live.clients.proxy.rules import ProxyRule
from rebalance_verifier.live.clients.replay.client import Diverged, ReplayClient
from rebalance_verifier.live.clients.replay.coordinator import COORDINATOR, TraceCoordinator
from rebalance_verifier.live.clients.replay.driver import ClientDriver, client_steps
from rebalance_verifier.live.clients.replay.judge import ReplayJudge
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep, due, slots
from rebalance_verifier.live.clients.replay.scene import NotForcible, ReplayScene
from rebalance_verifier.live.clients.replay.standstill import settle_all, stands_still

CLUSTER = ("topic deleted", "topic grows", "topic shrinks")
"""Steps that are done to the mock cluster."""


class TraceReplayer:
    """Cluster, proxy and clients for one replay, inside a ``with`` block."""

    def __init__(self, scene: ReplayScene) -> None:
        self.scene, self.result = scene, scene.result
        self.judge = ReplayJudge(scene)
        self.coordinator = TraceCoordinator(scene)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> TraceReplayer:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        scene = self.scene
        scene.cluster = self._stack.enter_context(MockCluster())
        scene.proxy = self._stack.enter_context(Proxy())
        host, port = scene.cluster.bootstrap.split(",")[0].rsplit(":", 1)
        scene.proxy.to(host, int(port))
        scene.cluster.advertise(*scene.proxy.address)
        # The mock cluster refuses newer ones with bytes that Java reads as a throttle of twenty minutes.
        scene.proxy.add(ProxyRule(api="ApiVersions", times=None, error="UNSUPPORTED_VERSION", since=3))
        for name, count in scene.counts(scene.setup.exist).items():
            scene.cluster.create_topic(name, count)
        if any(
            event.action == "slow commit" or (event.action, event.choice) == ("late request", "commit")
            for event in scene.run.events
        ):
            scene.produce(scene.setup.exist)
        ranks = {slot: rank for rank, slot in enumerate(scene.order)}
        scene.clients += [
            ReplayClient(slot, name, ranks[slot], scene.proxy, scene.log, scene.bits, scene.patience)
            for slot, name in slots(scene.setup)
        ]

    def __exit__(self, *_: object) -> None:
        scene = self.scene
        for client in scene.clients:
            if client.member is not None:
                client.member.end()
        self.result.events = list(scene.log.lines)
        self.result.frames = list(lines([f for f in scene.proxy.frames if f.fields is not None]))
        started = [line for line in scene.log.lines if line.get("event") == "started"]
        self.result.version = str(started[0].get("detail", "")) if started else ""
        self._stack.close()

    def play(self, steps: Sequence[ReplayStep]) -> None:
        """Step by step until the end, or until a client goes another way."""
        owed = due(self.scene.run, steps)
        self.result.due = tuple(f"{name} has to {what}" for name, what in owed.items())
        driver = ClientDriver(self.scene, self.coordinator, self.judge, owed)
        for step in steps:
            seen: list[Any] = []
            try:
                seen = list(self._take(driver, step) or ())
            except NotForcible as reason:
                self.scene.unforced(step, reason)
            except (Diverged, ProxyTimeout) as reason:
                self.result.stopped = f"{step.title}: {reason}"
                self.judge.judge(step, ())
                return
            self.result.done = step.number
            self.judge.judge(step, tuple(seen))
        try:
            stands_still(driver, steps[-1])
            settle_all(driver, steps[-1])
        except Diverged as reason:
            self.result.stopped = f"after the last step: {reason}"

    def _take(self, driver: ClientDriver, step: ReplayStep) -> Iterable[Any] | None:
        """Yield one step; what the clients showed meanwhile. Raises NotForcible, Diverged,
        ProxyTimeout."""
        action = step.event.action
        if action in COORDINATOR:
            self.coordinator.takes(step)
            return ()
        if action in CLUSTER:
            self._change_cluster(step)
            return ()
        does = client_steps(driver).get(action)
        if does is None:
            raise NotForcible(NOT_FORCED.get(action, "nothing here does it"))
        client = self.scene.clients[step.event.who]
        if client.over:
            return ()
        if step.following == "slow commit":
            client.commit_is_slow()
        return does(step, client)

    def _change_cluster(self, step: ReplayStep) -> None:
        scene, choice = self.scene, step.event.choice
        if step.event.action == "topic deleted":
            scene.cluster.delete_topic(scene.topics[int(choice.split()[-1])])
            return
        topic = choice.rpartition("-")[0]
        parts = step.built.value(step.after, "cluster")
        assert isinstance(parts, tuple)
        count = scene.counts(int(parts[0])).get(topic, 0)
        # The mock cluster cannot add partitions; created anew is what a client sees of either.
        with contextlib.suppress(RuntimeError):
            scene.cluster.delete_topic(topic)
        scene.cluster.create_topic(topic, count)


NOT_FORCED = {
    "enforce": "the recorders have no command for enforceRebalance()",
    **dict.fromkeys(("late leave", "left leave arrives", "leave lost"), "LeaveGroup is answered as it comes"),
    "member removed": "there is no administrator",
    "racks change": "the mock cluster has no racks",
    **dict.fromkeys(("polls on", "completes again", "unsubscribe midway"), "the recorders close then"),
    **dict.fromkeys(("sync not stored", "return not stored"), "what is answered is in the log"),
    "left decision arrives": "the decision is the trace's, not the leader's, once its connection is gone",
}
"""Steps that nothing here can bring about, and why."""
