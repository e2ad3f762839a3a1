"""The kernel finds what plain Python finds, in random logs that keep no rule at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds
from rebalance_verifier.pipeline.audit.tables import micros, moment

from tests.pipeline.audit.logs_at_hand import judged
from tests.pipeline.audit.plain_audit import Event, Found, Limits, audit

START = datetime(2026, 1, 2, tzinfo=UTC)
GROUPS = 150


def random_group(random, number):
    """Few consumers, partitions and instants, so that everything meets, ties above all."""
    consumers = [f"c{i}@h{i % 2}" for i in range(random.randint(1, 4))]
    slots = [("t", i) for i in range(random.randint(1, 2))]
    kinds = random.choice(
        [
            "assigned revoked lost",
            "assigned revoked joined synced",
            "assigned revoked lost joined started closed",
            "assigned revoked joining joined synced preparing stable removed empty leaving reset subscribed",
        ]
    ).split()
    step = random.choice([1, 20, 70])
    calm = random.random() < 0.3  # the members stay the same
    if calm:
        kinds, slots = ["assigned", "revoked", "joined"], slots[:1]
    generation, at = 0, START
    names = "a" if calm else "aab"
    for line in range(1, random.randint(3, 40)):
        at += timedelta(seconds=random.choice([0, 0, 1, 1, 5]) * step)
        generation += random.random() < 0.3
        kind = random.choice(kinds)
        consumer = consumers[0] if calm and kind == "joined" else random.choice(consumers)
        where = random.choice(slots) if kind in ("assigned", "revoked", "lost") else (None, None)
        if kind == "subscribed":
            where = (random.choice(["t", "u"]), None)
        broker = kind in ("preparing", "stable", "removed", "empty")
        stated = None if random.random() < 0.1 else max(0, generation - random.choice([0, 0, 0, 1]))
        yield Event(
            at=at,
            kind=kind,
            group=f"g{number:03}",
            consumer=None if broker else consumer,
            member=None if broker else f"{consumer}-{random.choice(names)}",
            generation=stated,
            topic=where[0],
            partition=where[1],
            file="broker.log" if broker else f"{consumer}.log",
            line=line,
        )


def row(event):
    values = dict.fromkeys(COLUMNS) | event._asdict() | {"source": "events", "moment": micros(event.at)}
    return tuple((values | {"host": event.file.removesuffix(".log")})[name] for name in COLUMNS)


THRESHOLDS = {"stranded": 60, "settle": 100, "storm": 4, "storm_within": 100, "pause": 120}


def by_kernel(events):
    rows = (
        judged(map(row, events), Thresholds(**THRESHOLDS, clock_skew=0.0))
        .execute(
            'SELECT "check", "group", topic, partition, epoch_us(began), epoch_us(ended), consumers '
            "FROM findings"
        )
        .fetchall()
    )
    return {
        Found(check, group, topic, partition, moment(began), ended and moment(ended), tuple(consumers))
        for check, group, topic, partition, began, ended, consumers in rows
    }


def logs(seed):
    random = Random(seed)
    return [event for number in range(GROUPS) for event in random_group(random, number)]


def listing(found):
    return "\n".join(map(str, sorted(found, key=str)[:10]))


LIMITS = Limits(**THRESHOLDS)


@pytest.mark.covering
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_kernel_finds_what_plain_python_finds(seed):
    events = logs(seed)
    expected, got = audit(events, LIMITS), by_kernel(events)
    assert got == expected, f"only SQL:\n{listing(got - expected)}\nonly Python:\n{listing(expected - got)}"


def test_the_random_logs_show_everything():
    found = {finding.check for seed in (1, 2) for finding in audit(logs(seed), LIMITS)}
    assert found == set(CHECKS)


def test_the_reference_finds_nothing_in_nothing():
    assert audit([], LIMITS) == set()
