"""Small event logs, written by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from rebalance.pipeline.audit.sources.schema import EVENTS

BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)


def events(spark, text, group="g"):
    """A log as a DataFrame of EVENTS, one line ``second consumer kind generation? partition*`` an event.

    A dash is no consumer. Each consumer has a host and a file of its own name; ``a/h`` is consumer a on
    host h. ``#`` begins a comment.
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
            topic, index = (partition, None) if partition else (None, None)
            if partition and "-" in partition:
                topic, _, index = partition.rpartition("-")
            rows.append(
                {
                    "at": BEGIN + timedelta(microseconds=round(float(second) * 1e6)),
                    "kind": kind,
                    "group": group,
                    "consumer": None if consumer == "-" else consumer,
                    "member": None,
                    "instance": None,
                    "generation": generation,
                    "topic": topic,
                    "partition": None if index is None else int(index),
                    "detail": None,
                    "host": host or consumer,
                    "source": "events",
                    "file": f"{host or consumer}.jsonl",
                    "line": number,
                }
            )
    return spark.createDataFrame([tuple(row[name] for name in EVENTS.names) for row in rows], EVENTS)
