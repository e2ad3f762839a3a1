"""``python aiokafka.py ADDRESS GROUP TOPICS ASSIGNOR``: a consumer of aiokafka that polls.

TOPICS is ``.*`` where it is to lead: as a leader it fetches no metadata of topics of others.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib import import_module

DAY = 86_400_000
ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}


async def main() -> None:
    """The program."""
    sys.path.pop(0)  # this directory, where a module has the client's name
    import aiokafka

    logging.basicConfig(level=logging.ERROR)
    address, group, topics, assignor = sys.argv[1:]
    module, name = ASSIGNORS[assignor]
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address,
        group_id=group,
        partition_assignment_strategy=[
            getattr(import_module(f"aiokafka.coordinator.assignors.{module}"), name)
        ],
        session_timeout_ms=3_600_000,
        request_timeout_ms=DAY,
        max_poll_interval_ms=DAY,
        rebalance_timeout_ms=DAY,
        heartbeat_interval_ms=20,
        metadata_max_age_ms=1,
        retry_backoff_ms=1,
        enable_auto_commit=False,
    )
    if topics == ".*":
        consumer.subscribe(pattern=topics)
    else:
        consumer.subscribe(topics.split(","))
    await consumer.start()
    while True:
        await consumer.getmany(timeout_ms=60_000)


if __name__ == "__main__":
    asyncio.run(main())
