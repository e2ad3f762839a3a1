"""``python confluent_kafka.py ADDRESS GROUP TOPICS ASSIGNOR``: a consumer of confluent-kafka that polls."""

from __future__ import annotations

import sys

DAY = 86_400_000


def main() -> None:
    """The program."""
    sys.path.pop(0)  # this directory, where a module has the client's name
    import confluent_kafka

    address, group, topics, assignor = sys.argv[1:]
    settings = {
        "bootstrap.servers": address,
        "group.id": group,
        "partition.assignment.strategy": assignor,
        "session.timeout.ms": 300_000,  # twenty minutes more and librdkafka counts them as none
        "max.poll.interval.ms": DAY,
        "heartbeat.interval.ms": 20,
        "socket.timeout.ms": 300_000,
        "topic.metadata.refresh.interval.ms": -1,
        "retry.backoff.ms": 1,
        "reconnect.backoff.ms": 1,
        "reconnect.backoff.max.ms": 10,
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(topics.split(","))
    while True:
        consumer.poll(60)


if __name__ == "__main__":
    main()
