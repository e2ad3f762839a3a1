"""What a broker logs of a group that it coordinates, as lines of ``messages.jsonl``.

``target``: it computed who is to have what; ``state``: a member takes a step towards that; ``removed``;
``converted`` to a group of the other protocol; ``stable``: a classic generation began. Those of one broker
are in the order in which it handled the requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.clients.consumers.clients.recorder import stamp

COORDINATOR = ("target", "state", "removed", "converted", "stable")
"""Events of a broker."""

_LINE = re.compile(r"(?P<at>\d{4}-\S+) .*? org\.apache\.kafka\.coordinator\.group\.\w+ - (?P<message>.*)")
_TARGET = re.compile(
    r"Computed a new target assignment for epoch (\d+) with '([^']*)' assignor in \d+ms: \{(.*)\}\.$"
)
_OF_MEMBER = re.compile(r"([^\s=]+)=MemberAssignment\(partitions=\{(.*?)\}\)")
_OF_TOPIC = re.compile(r"([\w-]{22})=\[([\d, ]*)\]")
_STATE = re.compile(
    r"Member (\S+) new assignment state: epoch=(-?\d+), previousEpoch=(-?\d+), state=(\w+), "
    r"assignedPartitions=\[(.*?)\] and revokedPartitions=\[(.*?)\]\.$"
)
_HELD = re.compile(r"([\w-]{22})-(\d+)(?:@-?\d+)?")
_REMOVED = re.compile(
    r"[Mm]ember (\S+)(?: with instance id \S+)? "
    r"(?:fenced from the group because (.*)\.$|((?:temporarily )?left) the consumer group|has (left) group)"
)
_CONVERTED = re.compile(r"Converted the (?:classic|consumer) group to a (classic|consumer) group")
_STABLE = re.compile(r"Stabilized group \S+ generation (\d+)")


def coordinated(lines: Iterable[str], group: str, topics: Mapping[str, str]) -> Iterator[JsonLine]:
    """Yield the events of ``group`` that a broker has logged; ``topics``: topic id as Kafka writes it ->
    name."""
    mine = (f"[GroupId {group}]", f"[Group {group}]", f"group {group} ")
    last = 0
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found is None or not any(mark in line for mark in mine):
            continue
        if event := _event(found["message"], topics):
            at = datetime.fromisoformat(found["at"]).astimezone(UTC)
            # It has milliseconds; within one the order of the log counts.
            last = max(last + 1, round(at.timestamp() * 1000) * 1000)
            yield {"at": stamp(last * 1000), "group": group, "consumer": "", **event}


def _event(message: str, topics: Mapping[str, str]) -> JsonLine | None:
    def partitions(pairs: Iterable[tuple[str, str]]) -> list[str]:
        return sorted(f"{topics.get(topic, topic)}-{number}" for topic, number in pairs)

    readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], JsonLine]], ...] = (
        (
            _TARGET,
            lambda found: {
                "event": "target",
                "generation": int(found[1]),
                "assignors": [found[2]],
                "plan": {
                    member: partitions(
                        (topic, number)
                        for topic, numbers in _OF_TOPIC.findall(listed)
                        for number in filter(None, numbers.split(", "))
                    )
                    for member, listed in _OF_MEMBER.findall(found[3])
                },
            },
        ),
        (
            _STATE,
            lambda found: {
                "event": "state",
                "member": found[1],
                "generation": int(found[2]),
                "previous": int(found[3]),
                "state": found[4],
                "partitions": partitions(_HELD.findall(found[5])),
                "pending": partitions(_HELD.findall(found[6])),
            },
        ),
        (
            _REMOVED,
            lambda found: {
                "event": "removed",
                "member": found[1],
                "detail": found[2] or found[3] or found[4],
            },
        ),
        (_CONVERTED, lambda found: {"event": "converted", "detail": found[1]}),
        (_STABLE, lambda found: {"event": "stable", "generation": int(found[1])}),
    )
    for pattern, made in readers:
        if found := pattern.search(message):
            return made(found)
    return None
