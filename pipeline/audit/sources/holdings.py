"""Clients that say what they own as a whole, or that they own nothing any more: as assigned and revoked.

kafkajs names its whole assignment, and that it joins again; kafka-go and sarama when a session ends; franz-go
does not list what an error takes from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.loggers import (
    DROPS,
    FETCHES,
    HOLDS,
    KEEPS,
    LEAVES,
    LOSES,
    REJOINS,
    SESSION,
)
from rebalance_verifier.pipeline.audit.sources.rows import LineRow

WHOLE = (HOLDS, KEEPS, DROPS, REJOINS, LOSES, LEAVES, FETCHES, SESSION)

_WHOLE = frozenset(WHOLE)

EAGER = "0"
"""Version of the protocol of Connect in which a worker stops all before it joins."""

CHANGES = (*WHOLE, Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)

Part = tuple[str | None, int | None]


def spelled_out(rows: Sequence[LineRow]) -> Sequence[LineRow]:
    """Return the rows of a consumer, in order, with each partition that it gets or gives away in one."""
    if _WHOLE.isdisjoint({row.kind for row in rows}):
        return rows
    return [*_spelled_out(rows)]


def _spelled_out(rows: Sequence[LineRow]) -> Iterator[LineRow]:
    owned: dict[str | None, dict[Part, None]] = defaultdict(dict)
    eager: set[str | None] = set()
    apart = all(row.group for row in rows if row.kind in CHANGES)  # else the log is taken for one group's
    in_session = False
    for _, several in groupby(rows, key=attrgetter("at", "file", "line", "kind", "member")):
        here = [*several]
        row = here[0]
        bare = row._replace(topic=None, partition=None)
        group = row.group if apart else None
        mine = owned[group]
        match row.kind:
            case "holds":
                wanted: dict[Part, None] = {(one.topic, one.partition): None for one in here if one.topic}
                if mine:
                    # It has given them away before, nobody knows when: it says only what it has now.
                    yield bare._replace(kind=Kind.CLOSED, detail=None)
                yield from (bare._replace(kind=kind) for kind in (Kind.JOINED, Kind.SYNCED))
                yield from (
                    row._replace(kind=Kind.ASSIGNED, topic=t, partition=p)
                    for t, p in wanted or [(None, None)]
                )
                owned[group] = wanted
            case "keeps":
                wanted = {(one.topic, one.partition): None for one in here if one.topic}
                new = [part for part in wanted if part not in mine]
                gone = [part for part in mine if part not in wanted]
                yield bare._replace(kind=Kind.SYNCED)
                yield from (row._replace(kind=Kind.REVOKED, topic=t, partition=p) for t, p in gone)
                given = new if wanted else [(None, None)]
                (eager.add if row.detail == EAGER else eager.discard)(group)
                yield from (row._replace(kind=Kind.ASSIGNED, topic=t, partition=p) for t, p in given)
                owned[group] = wanted
            case "drops" | "rejoins" | "leaves" | "loses":
                if row.kind == LOSES:
                    yield bare._replace(kind=Kind.RESET)
                kind = Kind.LOST if row.kind == LOSES else Kind.REVOKED
                yield from (row._replace(kind=kind, topic=t, partition=p) for t, p in mine)
                mine.clear()
                if after := {LEAVES: Kind.LEAVING, REJOINS: Kind.REBALANCING}.get(row.kind):
                    yield bare._replace(kind=after)
            case "fetches":
                # A partition whose broker changes is fetched anew, and was owned all the time.
                if not in_session:
                    yield from (bare._replace(kind=kind) for kind in (Kind.JOINED, Kind.SYNCED))
                in_session = True
                yield from (
                    one._replace(kind=Kind.ASSIGNED) for one in here if (one.topic, one.partition) not in mine
                )
                mine |= {(one.topic, one.partition): None for one in here}
            case "session":
                # It stops to heartbeat before it has given all away where it is told that it is no member.
                if mine and row.member:
                    yield bare._replace(kind=Kind.RESET, generation=None)
                in_session = in_session and row.member is not None
            case Kind.JOINING if group in eager:
                yield from (row._replace(kind=Kind.REVOKED, topic=t, partition=p) for t, p in mine)
                mine.clear()
                yield row
            case _:
                for one in here:
                    part = one.topic, one.partition
                    if one.kind == Kind.ASSIGNED and one.topic is not None:
                        mine[part] = None
                    elif one.kind in (Kind.REVOKED, Kind.LOST):
                        mine.pop(part, None)
                    elif one.kind in (Kind.STARTED, Kind.CLOSED):
                        mine.clear()
                yield from here
