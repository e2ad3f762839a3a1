#!/bin/sh
# mockafka-py 0.2.3 (with confluent-kafka 2.16.1): its FakeConsumer takes a group.id, and there are no groups.
#
# Guess before the run: members do not share partitions, the second begins behind what the first committed;
# on_assign is not called.
# Seen: on_assign is not called and assignment() is empty, so the guess was right there. But two members that commit
# nothing both read everything, and a commit of one group moves every other group: a new group begins behind it.
# Code under test that counts on a group of its own, or on members that share, is tested against something else.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check mockafka-py==0.2.3 confluent-kafka==2.16.1
cat >"$work/play.py" <<'PYTHON'
from mockafka import FakeAdminClientImpl, FakeConsumer, FakeProducer
from mockafka.admin_client import NewTopic

FakeAdminClientImpl().create_topics([NewTopic("t", num_partitions=2)])
producer = FakeProducer()
for number in range(4):
    producer.produce(topic="t", key="k", value=f"v{number}", partition=number % 2)


def member(group):
    consumer = FakeConsumer({"group.id": group})
    consumer.subscribe(["t"], on_assign=lambda *_: print("on_assign"))
    return consumer


def read(consumer, most):
    polled = [consumer.poll(0.1) for _ in range(most)]
    return [message.value(payload=None) for message in polled if message]


first, second = member("one"), member("one")
print("first of group one reads", read(first, 6))
print("second of group one reads", read(second, 6))
print("assignments", first.assignment(), second.assignment())
third = member("two")
print("group two reads", read(third, 2), "and commits")
third.commit()
print("group three, new, reads", read(member("three"), 6))
PYTHON
timeout 60 "$work/env/bin/python" "$work/play.py" >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
first of group one reads [b'v0', b'v2', b'v1', b'v3']
second of group one reads [b'v0', b'v2', b'v1', b'v3']
assignments [] []
group two reads [b'v0', b'v2'] and commits
group three, new, reads [b'v1', b'v3']
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
