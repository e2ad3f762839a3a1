#!/bin/sh
# confluent-kafka 2.16.1 (librdkafka 2.16.0) on Kafka 4.4.0: a topic of a follower grows, and with range nobody reads it.
#
# Two consumers of one group, the first subscribes to topic a, the second to topic b. Then b gets a second partition.
#
# No guess was written down before this was seen.
# Seen: the follower sees it and joins again. With range its JoinGroup has the bytes of the last one, so the coordinator
# answers with the present generation and starts no rebalance: b-1 is nobody's, for good. With cooperative-sticky the
# JoinGroup names a newer generation, and b-1 is assigned. If topic a grows, of which the leader knows, both assign it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check confluent-kafka==2.16.1
kafka_start "$work"
cat >"$work/ask.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

admin = AdminClient({"bootstrap.servers": sys.argv[1]})


def wait(made: dict) -> None:
    for one in made.values():
        one.result()


def consumer(group: str, topic: str, assignor: str, told: list) -> Consumer:
    one = Consumer({
        "bootstrap.servers": sys.argv[1], "group.id": group, "partition.assignment.strategy": assignor,
        "topic.metadata.refresh.interval.ms": 1000, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500,
        "log_level": 0,
    })  # fmt: skip
    one.subscribe([topic], on_assign=lambda _, parts: told.append(len(parts)))
    return one


def poll(consumers: list, until, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        for one in consumers:
            one.poll(0.1)
    return until()


for assignor in ("range", "cooperative-sticky"):
    for grows in ("a", "b"):
        group = f"{assignor}-{grows}"
        topics = [f"{group}-{name}" for name in "ab"]
        wait(admin.create_topics([NewTopic(topic, 1) for topic in topics]))
        told = [[], []]
        members = [consumer(group, topics[0], assignor, told[0])]
        assert poll(members, lambda: len(members[0].assignment()) == 1, 60)
        members.append(consumer(group, topics[1], assignor, told[1]))
        assert poll(members, lambda: [len(one.assignment()) for one in members] == [1, 1], 60)
        poll(members, lambda: False, 3)
        calls = len(told[1])
        wait(admin.create_partitions([NewPartitions(f"{group}-{grows}", 2)]))
        new = "ab".index(grows)
        poll(members, lambda: len(members[new].assignment()) == 2, 20)
        joined = "; the follower has joined again" if grows == "b" and len(told[1]) > calls else ""
        owned = sorted(part.partition for part in members[new].assignment())
        print(f"{assignor}: topic {grows} has 2 partitions, assigned are {owned}{joined}", flush=True)
        for one in members:
            one.close()
PYTHON
timeout 300 "$work/env/bin/python" "$work/ask.py" "$KAFKA" >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
range: topic a has 2 partitions, assigned are [0, 1]
range: topic b has 2 partitions, assigned are [0]; the follower has joined again
cooperative-sticky: topic a has 2 partitions, assigned are [0, 1]
cooperative-sticky: topic b has 2 partitions, assigned are [0, 1]; the follower has joined again
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
