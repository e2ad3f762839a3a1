"""The kernel finds what plain Python finds, in random logs that keep no rule at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("duckdb")

from rebalance.pipeline.audit import kernel
from rebalance.pipeline.audit.kernel.events import COLUMNS, add
from rebalance.pipeline.audit.kernel.findings import Thresholds

from tests.pipeline.audit.plain_audit import Found, audit
from tests.pipeline.audit.test_audit_reference import LIMITS, listing, logs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment):
    return (moment - EPOCH) // timedelta(microseconds=1)


def row(event):
    values = dict.fromkeys(COLUMNS) | event._asdict() | {"source": "events", "moment": micros(event.at)}
    return tuple((values | {"host": event.file.removesuffix(".log")})[name] for name in COLUMNS)


def judged(events, thresholds):
    """A connection with the results."""
    connection = kernel.prepared(thresholds)
    add(connection, events)
    ((end,),) = connection.execute("SELECT max(moment) FROM events").fetchall()
    kernel.judge(connection, end)
    kernel.finish(connection)
    return connection


def found(connection):
    rows = connection.execute(
        'SELECT "check", "group", topic, partition, epoch_us(began), epoch_us(ended), consumers FROM findings'
    ).fetchall()
    return {
        Found(check, group, topic, partition, moment(began), moment(ended), tuple(consumers))
        for check, group, topic, partition, began, ended, consumers in rows
    }


def moment(when):
    return None if when is None else EPOCH + timedelta(microseconds=when)


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_finds_what_plain_python_finds(seed):
    thresholds = Thresholds(
        stranded=LIMITS.stranded,
        settle=LIMITS.settle,
        storm=LIMITS.storm,
        storm_within=LIMITS.storm_within,
        pause=LIMITS.pause,
        clock_skew=0.0,
    )
    events = logs(seed)
    expected, got = audit(events, LIMITS), found(judged(map(row, events), thresholds))
    assert got == expected, f"only SQL:\n{listing(got - expected)}\nonly Python:\n{listing(expected - got)}"
