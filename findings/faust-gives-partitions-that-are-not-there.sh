#!/bin/sh
# faust-streaming 0.15.3: after a topic was made anew with fewer partitions its leader fails, or gives what is not there.
#
# Each member of a Faust application tells the leader which partitions it had. Guess before the run: partitions that a
# topic no longer has are dropped, and what is left is dealt evenly, each partition once, as with a new group.
# Seen: assign() can end with an AssertionError, in each rebalance again, also for a member that is alone. In other
# such groups it gives an old partition on, even to two members, and the real partitions are dealt unevenly. A new
# group of the same members is dealt evenly.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check faust-streaming==0.15.3 aiokafka==0.14.0
cat >"$work/play.py" <<'PYTHON'
import logging

import faust
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from faust.assignor.partition_assignor import PartitionAssignor

logging.disable(logging.CRITICAL)
assignor = PartitionAssignor(faust.App("play", broker="kafka://127.0.0.1:1", web_enabled=False))


class Cluster:
    def __init__(self, partitions):
        self.partitions = partitions

    def partitions_for_topic(self, topic):
        return set(range(self.partitions))


def rebalance(partitions, claims):
    metadata = {}
    for member, claimed in claims.items():
        had = ClientAssignment(actives={"t": claimed} if claimed else {}, standbys={})
        told = ClientMetadata(assignment=had, url=f"http://{member}", changelog_distribution={},
                              external_topic_distribution={}, topic_groups={})
        metadata[member] = ConsumerProtocolMemberMetadata(assignor.version, ["t"], told.dumps())
    print(f"{partitions} partitions, members had {claims}:")
    try:
        plan = assignor.assign(Cluster(partitions), metadata)
    except AssertionError as error:
        print("  AssertionError", error)
        return
    print(" ", {member: sorted(p for _, got in plan[member].assignment for p in got) for member in sorted(plan)})


rebalance(4, {"a": [], "b": []})
rebalance(2, {"a": [0, 2], "b": [1, 3]})
rebalance(2, {"a": [0, 1, 2, 3]})
rebalance(3, {"a": [0, 1, 2], "b": [3, 4, 5]})
rebalance(4, {"a": [], "b": [2, 3, 4], "c": [1, 2, 4]})
PYTHON
timeout 60 "$work/env/bin/python" "$work/play.py" >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
4 partitions, members had {'a': [], 'b': []}:
  {'a': [0, 2], 'b': [1, 3]}
2 partitions, members had {'a': [0, 2], 'b': [1, 3]}:
  AssertionError 
2 partitions, members had {'a': [0, 1, 2, 3]}:
  AssertionError 
3 partitions, members had {'a': [0, 1, 2], 'b': [3, 4, 5]}:
  {'a': [0, 2], 'b': [1, 5]}
4 partitions, members had {'a': [], 'b': [2, 3, 4], 'c': [1, 2, 4]}:
  {'a': [0, 3], 'b': [1, 4], 'c': [2, 4]}
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
