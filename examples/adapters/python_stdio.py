"""A target in plain Python: round robin over all subscribed partitions. Uses nothing but the protocol.

    rebalance check --adapter -- python examples/adapters/python_stdio.py

One JSON object per line, one reply per request, in order, flushed. Print to stderr, never to stdout.
"""

import json
import sys
import traceback

HELLO = {
    "name": "plain-round-robin",
    "version": "1.0",
    "language": "Python",
    "protocols": ["eager"],
    "promises": ["balanced-equal"],
    "user_data": False,
    "homepage": None,
    "issues": None,
}


def assign(topics, members):
    """Deal the partitions of every topic, one by one, to the next member that subscribes to it."""
    ring = sorted(members, key=lambda member: member["id"])
    assignment = {member["id"]: [] for member in members}
    position = 0
    for topic in sorted(topics):
        if not any(topic in member["topics"] for member in ring):
            continue
        for partition in range(len(topics[topic])):
            while topic not in ring[position % len(ring)]["topics"]:
                position += 1
            assignment[ring[position % len(ring)]["id"]].append([topic, [partition]])
            position += 1
    return assignment


def reply(request):
    """The reply to one request, without its seq."""
    if request["cmd"] == "hello":
        return {"result": HELLO}
    try:
        return {"result": {"assignment": assign(request["cluster"]["topics"], request["members"])}}
    except Exception as error:
        return {"errored": {"message": repr(error), "traceback": traceback.format_exc()}}


for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "bye":
        break
    sys.stdout.write(json.dumps({"seq": request["seq"], **reply(request)}) + "\n")
    sys.stdout.flush()
