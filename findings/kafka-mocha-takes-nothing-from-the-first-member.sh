#!/bin/sh
# kafka-mocha 2.3.0 (with confluent-kafka 2.16.1): its mock of a Consumer rebalances a group, and forgets the old members.
#
# Guess before the run: two members of a group share the partitions, the callbacks on_revoke and on_assign are called,
# each partition is read once.
# Seen: on_assign is called. The second member is given a partition that the first has, and the first is told nothing:
# on_revoke is not called, its assignment() has all partitions still. How many the second gets differs from run to
# run (one or both); a listener that commits when partitions are revoked is never tested.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check kafka-mocha==2.3.0 "confluent-kafka[schemaregistry]==2.16.1"
cat >"$work/play.py" <<'PYTHON'
import confluent_kafka
from kafka_mocha import mock_consumer, mock_producer


calls = {"first": [], "second": []}


def member(name):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g",
                                         "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["t"], on_assign=lambda *_: calls[name].append("on_assign"),
                       on_revoke=lambda *_: calls[name].append("on_revoke"))
    return consumer


def has(consumer):
    return {partition.partition for partition in consumer.assignment()}


@mock_producer()
@mock_consumer()
def play():
    producer = confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:1"})
    for number in range(6):
        producer.produce("t", value="v", key="k", partition=number % 2)
    producer.flush()
    first = member("first")
    while not has(first):
        first.poll(0.2)
    print("first alone has", sorted(has(first)))
    second = member("second")
    while not has(second):
        second.poll(0.2)
    for _ in range(20):
        first.poll(0.2)
        second.poll(0.2)
    print("then first has", sorted(has(first)))
    print("second has what first has:", has(second) <= has(first))
    print("calls of first:", calls["first"])
    print("calls of second:", calls["second"])


play()
PYTHON
KAFKA_MOCHA_KSIM_TOPICS='["t:2"]' timeout 100 "$work/env/bin/python" "$work/play.py" 2>"$work/log" | grep -E '^(first|then|second|calls) ' >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
first alone has [0, 1]
then first has [0, 1]
second has what first has: True
calls of first: ['on_assign']
calls of second: ['on_assign']
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
