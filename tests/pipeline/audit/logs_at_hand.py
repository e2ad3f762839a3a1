"""Small event logs, written by hand, and what the kernel makes of events."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

from rebalance_verifier.pipeline.audit import kernel
from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.tables import micros
from rebalance_verifier.pipeline.database import add

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)


def events(text, group="g"):
    """A log as rows of the kernel's COLUMNS, one line ``second consumer kind generation? partition*`` an
    event.

    A dash is no consumer. Each consumer has a host, a file and a member id of its own name; ``a/h`` is
    consumer a on host h. ``b:t-0`` is a partition that the leader plans for member b. ``#`` begins a comment.
    """
    rows = []
    for number, line in zip(count(1), text.strip().splitlines(), strict=False):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        second, consumer, kind, *rest = fields
        consumer, _, host = consumer.partition("/")
        generation = int(rest.pop(0)) if rest and rest[0].isdigit() else None
        for partition in rest or [None]:
            member = None if consumer == "-" or kind == "planned" else consumer
            if partition and ":" in partition:
                member, _, partition = partition.partition(":")
            topic, index = (partition, None) if partition else (None, None)
            if partition and "-" in partition:
                topic, _, index = partition.rpartition("-")
            row = dict.fromkeys(COLUMNS) | {
                "moment": micros(BEGIN) + round(float(second) * 1e6),
                "kind": kind,
                "group": group,
                "consumer": None if consumer == "-" else consumer,
                "member": member,
                "generation": generation,
                "topic": topic,
                "partition": None if index is None else int(index),
                "host": host or consumer,
                "source": "events",
                "file": f"{host or consumer}.jsonl",
                "line": number,
            }
            rows.append(tuple(row.values()))
    return rows


def judged(rows, thresholds=None):
    """A connection with the results of the kernel."""
    connection = kernel.prepared(thresholds or Thresholds())
    add(connection, rows, "events", COLUMNS)
    ((end,),) = connection.execute("SELECT max(moment) FROM events").fetchall()
    kernel.judge(connection, end)
    kernel.finish(connection)
    return connection
