#!/bin/sh
# pykafka 2.8.0: who gets a partition depends on which broker leads it.
#
# Guess before the run: its range and its roundrobin depend on members and numbers of partitions, as Java's do.
# Seen: partitions are put in order by the broker that leads them first. An election on the broker moves partitions between
# members that nothing happened to. BalancedConsumer's members decide each for itself, from the metadata that each has:
# while one has heard of the election and the other has not, a partition has two owners and another one none.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
python3 -m venv "$work/env"
"$work/env/bin/pip" install -q --disable-pip-version-check pykafka==2.8.0
"$work/env/bin/python" - >"$work/seen" <<'PYTHON'
from collections import namedtuple

from pykafka.membershipprotocol import RangeProtocol, RoundRobinProtocol

Topic, Broker = namedtuple("Topic", "name"), namedtuple("Broker", "id")
Partition = namedtuple("Partition", "topic leader id")
BEFORE, AFTER = (1, 1, 1, 1), (2, 1, 1, 1)  # the leaders of t-0 to t-3


def share(protocol, member, leaders):
    known = {number: Partition(Topic(b"t"), Broker(leader), number) for number, leader in enumerate(leaders)}
    return sorted(one.id for one in protocol.decide_partitions([b"a", b"b"], known, member))


for name, protocol in (("range", RangeProtocol), ("roundrobin", RoundRobinProtocol)):
    for seen, a, b in (("before", BEFORE, BEFORE), ("after", AFTER, AFTER), ("a before, b after", BEFORE, AFTER)):
        print(f"{name}, {seen}: a {share(protocol, b'a', a)}, b {share(protocol, b'b', b)}")
PYTHON
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
range, before: a [0, 1], b [2, 3]
range, after: a [1, 2], b [0, 3]
range, a before, b after: a [0, 1], b [0, 3]
roundrobin, before: a [0, 2], b [1, 3]
roundrobin, after: a [1, 3], b [0, 2]
roundrobin, a before, b after: a [0, 2], b [0, 2]
TEXT
diff "$work/expected" "$work/seen"
