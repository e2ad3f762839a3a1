"""The end of a replay: the coordinator goes on to answer; what do the clients that owe something do?"""

from __future__ import annotations

import contextlib
import time

from rebalance_verifier.live.clients.proxy.proxy import ProxyTimeout
from rebalance_verifier.live.clients.replay.client import Diverged, ReplayClient
from rebalance_verifier.live.clients.replay.driver import ClientDriver
from rebalance_verifier.live.clients.replay.replay_plan import Due, ReplayStep
from rebalance_verifier.live.clients.replay.scene import ReplayScene
from rebalance_verifier.model.classic.errors import answer_to
from rebalance_verifier.model.group.parts import union
from rebalance_verifier.model.group.setup import MemberContext


def stands_still(driver: ClientDriver, step: ReplayStep) -> None:
    """The model's group does nothing any more after ``step``, its last: do the clients what is due?

    Raises Diverged for one that has ended: that is no standstill.
    """
    scene, judge = driver.scene, driver.judge
    for client in scene.clients:
        match driver.due.get(client.name):
            case Due.JOIN if not _joins(scene, step, client):
                client.ended()
                how = "asks for nothing" if client.committing() == [] else "commits and commits"
                judge.never_settles(step, f"{client.name} {how}, for {scene.patience:g} s")
            case Due.READ if missing := _unread(scene, client):
                client.ended()
                judge.never_settles(step, f"{client.name} does not read {scene.spell(missing)}")
            case _:
                continue
        client.judged = None


def settle_all(driver: ClientDriver, step: ReplayStep) -> None:
    """Wait for the effect of the last errors, which a JoinGroup shows that the trace does not wait for any
    more.

    Raises Diverged.
    """
    for client in driver.scene.clients:
        if client.judged is None or client.member is None or client.member.stopped:
            continue
        client.commit_done()
        for request in client.waiting.values():  # its poll waits for the answer
            driver.scene.proxy.refuse(request, "REBALANCE_IN_PROGRESS")
        client.waiting.clear()
        frame = None
        with contextlib.suppress(ProxyTimeout, Diverged):
            frame = client.request("JoinGroup")
        driver.judge.judge(step, (*client.look(), *client.effects(frame)))


def _joins(scene: ReplayScene, step: ReplayStep, client: ReplayClient) -> bool:
    me = MemberContext(client.slot, scene.setup)
    known = step.group(after=True), step.records(after=True, name=client.name)
    error = answer_to(me, "heartbeat", *known, client.incarnation, client.generation)
    client.hears(error.value if error else "NONE")
    deadline = time.monotonic() + scene.patience
    while client.slow is not None and not client.asks_to_join and time.monotonic() < deadline:
        several = client.committing()
        for _ in range(2):  # each commit takes longer than a poll
            client.process.owned(1.0)
        for frame in several:
            scene.proxy.refuse(frame, "NONE")
    return client.asks_to_join or (client.slow is None and client.rejoins())


def _unread(scene: ReplayScene, client: ReplayClient) -> int:
    """Return what it owns and does not read, of records that are there now."""
    before = len(client.output())
    scene.produce(client.owned)

    def missing() -> int:
        polled = (line for line in client.output()[before:] if line["event"] == "polled")
        return client.owned & ~union([scene.bits(line["ranges"]) for line in polled])

    scene.log.wait(scene.patience, lambda _: not missing())
    return missing()
