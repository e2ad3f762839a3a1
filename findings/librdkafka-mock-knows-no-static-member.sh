#!/bin/sh
# confluent-kafka 2.16.1 (librdkafka 2.16.0): its mock cluster takes group.instance.id, and knows no static members.
#
# Guess before the run: a second consumer with the same group.instance.id fences the first (FENCED_INSTANCE_ID, fatal),
# as on every broker that offers JoinGroup 5 or newer; the mock offers 6.
# Seen: both consumers stay and share the partitions like two members of different ids; no error comes to either. So
# a test of two pods with one id, or of the restart of a static member, passes on the mock whatever the application does.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check confluent-kafka==2.16.1
cat >"$work/play.py" <<'PYTHON'
import time
from confluent_kafka import Consumer, Producer

mock = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
for number in range(4):
    mock.produce("t", b"x", partition=number)
mock.flush(10)
(broker,) = mock.list_topics(timeout=10).brokers.values()


def consumer(group, **settings):
    errors = []
    made = Consumer({
        "bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": group, "session.timeout.ms": 30000,
        "heartbeat.interval.ms": 300, "error_cb": errors.append, "log_level": 0, **settings,
    })
    made.subscribe(["t"])
    return made, errors


def poll(members, seconds=60):
    """Until every member has something, errors come, or the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not all(m.assignment() for m, _ in members) and not any(e for _, e in members):
        for member, errors in members:
            message = member.poll(0.05)
            if message is not None and message.error():
                errors.append(message.error())


def look(members):
    fatal = sum(error.fatal() for _, errors in members for error in errors)
    return sorted(len(member.assignment()) for member, _ in members), f"fatal errors {fatal}"


first = consumer("static", **{"group.instance.id": "pod-0"})
poll([first])
print("one static member:", *look([first]))
both = [first, consumer("static", **{"group.instance.id": "pod-0"})]
poll(both)
print("two of one group.instance.id:", *look(both))
PYTHON
timeout 300 "$work/env/bin/python" "$work/play.py" >"$work/seen" 2>"$work/errors" || { cat "$work/errors"; exit 1; }
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
one static member: [4] fatal errors 0
two of one group.instance.id: [2, 2] fatal errors 0
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
