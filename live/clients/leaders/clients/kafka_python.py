"""``python kafka_python.py ADDRESS GROUP TOPICS ASSIGNOR``: a consumer of kafka-python that polls.

TOPICS is ``.*`` where it is to lead: as a leader it fetches no metadata of topics of others.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module

DAY = 86_400_000
ASSIGNORS = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


def main() -> None:
    """The program."""
    import kafka

    logging.basicConfig(level=logging.ERROR)
    address, group, topics, assignor = sys.argv[1:]
    module, name = ASSIGNORS[assignor]
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=[address],
        group_id=group,
        partition_assignment_strategy=[getattr(import_module(f"kafka.coordinator.assignors.{module}"), name)],
        session_timeout_ms=3_600_000,
        request_timeout_ms=DAY,
        connections_max_idle_ms=DAY + 1,
        max_poll_interval_ms=DAY - 1,
        heartbeat_interval_ms=20,
        metadata_max_age_ms=0,
        retry_backoff_ms=0,
        reconnect_backoff_ms=1,
        enable_auto_commit=False,
    )
    consumer._client.cluster.config["retry_backoff_ms"] = 0  # the setting does not get there in 3.0
    if topics == ".*":
        consumer.subscribe(pattern=topics)
    else:
        consumer.subscribe(topics.split(","))
    while True:
        consumer.poll(timeout_ms=60_000)


if __name__ == "__main__":
    main()
