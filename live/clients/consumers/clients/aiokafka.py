"""A consumer of aiokafka, recorded: ``python -m ...aiokafka``.

Its event loop runs in a thread of its own, so that a consumer that is not polled goes on as it does in an
application that waits for something else. Generations are taken from its log.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from rebalance_verifier.live.clients.consumers.clients.recorder import (
    Client,
    LogTap,
    Ranges,
    Recorder,
    arguments,
    collected,
    listener,
    serve,
)

T = TypeVar("T")

CALL = 30.0
"""Seconds that a call of the client may take."""


class Aiokafka(Client):
    """One ``aiokafka.AIOKafkaConsumer``."""

    def __init__(self, recorder: Recorder) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        assignors = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        self._recorder = recorder
        lost = recorder.noting("reset")
        LogTap(
            "aiokafka.consumer.group_coordinator",
            {
                "(Re-)joining group %s": recorder.noting("joining"),
                "Joined group '%s' (generation %s) with member_id %s": self._joined,
                "Successfully synced group %s with generation %s": recorder.noting("synced"),
                "Heartbeat failed for group %s: generation id is not  current.": lost,
                "Heartbeat failed: local member_id was not recognized; resetting and re-joining group": lost,
            },
        )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=recorder.settings["bootstrap"].split(","),
                group_id=recorder.settings["group"],
                client_id=recorder.settings["consumer"],
                **arguments(recorder.config, assignors),
            )
            await consumer.start()
            return consumer

        self.consumer: Any = self._wait(start())
        self._listener = listener(ConsumerRebalanceListener, recorder)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL)

    def _joined(self, record: logging.LogRecord) -> None:
        _, generation, member = record.args  # type: ignore[misc]
        self._recorder.joined(int(generation), str(member))  # type: ignore[arg-type]

    def subscribe(self, topics: list[str]) -> None:
        async def subscribe() -> None:
            self.consumer.subscribe(topics, listener=self._listener)

        self._wait(subscribe())

    def unsubscribe(self) -> None:
        async def unsubscribe() -> None:
            self.consumer.unsubscribe()

        self._wait(unsubscribe())

    def poll(self, seconds: float) -> Ranges:
        return collected(self._wait(self.consumer.getmany(timeout_ms=int(seconds * 1000))))

    def commit(self) -> None:
        asyncio.run_coroutine_threadsafe(self.consumer.commit(), self._loop)

    def close(self) -> None:
        self._wait(self.consumer.stop())


def main() -> None:
    """The program."""
    import aiokafka

    serve(Aiokafka, f"aiokafka {aiokafka.__version__}")


if __name__ == "__main__":
    main()
