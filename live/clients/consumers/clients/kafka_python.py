"""A consumer of kafka-python, recorded: ``python -m ...kafka_python``.

Callbacks tell what it owns. That it joins and in which generation is taken from its log and from two methods
of its coordinator, which are called as before: its listener is not called for an empty assignment.
"""

from __future__ import annotations

import logging
from typing import Any

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


class KafkaPython(Client):
    """One ``kafka.KafkaConsumer``."""

    def __init__(self, recorder: Recorder) -> None:
        import kafka
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from kafka.protocol.metadata import ApiVersionsRequest

        assignors = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }
        # What the mock cluster answers to newer ones cannot be decoded; the answer says the same.
        ApiVersionsRequest.max_version = 2
        self._recorder = recorder
        LogTap(
            "kafka",
            {
                "(Re-)joining group %s": recorder.noting("joining"),
                "Successfully joined group %s %s": self._joined,
            },
        )
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=recorder.settings["bootstrap"].split(","),
            group_id=recorder.settings["group"],
            client_id=recorder.settings["consumer"],
            **arguments(recorder.config, assignors),
        )
        self._hook(self.consumer._coordinator)
        self._listener = listener(kafka.ConsumerRebalanceListener, recorder)

    def _hook(self, coordinator: Any) -> None:
        complete, reset = coordinator._on_join_complete_async, coordinator.reset_generation

        async def completed(generation: int, member: str, *others: Any) -> Any:
            self._recorder.write("synced")
            return await complete(generation, member, *others)

        def forgotten(*given: Any, **named: Any) -> Any:
            if coordinator._generation.generation_id >= 0:
                self._recorder.write("reset")
            return reset(*given, **named)

        coordinator._on_join_complete_async, coordinator.reset_generation = completed, forgotten

    def _joined(self, record: logging.LogRecord) -> None:
        generation: Any = record.args[1]  # type: ignore[index]
        self._recorder.joined(generation.generation_id, generation.member_id)

    def subscribe(self, topics: list[str]) -> None:
        self.consumer.subscribe(topics, listener=self._listener)

    def poll(self, seconds: float) -> Ranges:
        return collected(self.consumer.poll(timeout_ms=int(seconds * 1000)))

    def commit(self) -> None:
        self.consumer.commit_async()


def main() -> None:
    """The program."""
    import kafka

    serve(KafkaPython, f"kafka-python {kafka.__version__}")


if __name__ == "__main__":
    main()
