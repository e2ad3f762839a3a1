"""Where what is random comes from: one bounded integer at a time, smallest meaning simplest.

So the same code serves a seeded ``random.Random`` (the gate, millions of scenarios) and Hypothesis
(``gate.scenarios.strategies``), which shrinks what it draws.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Draw(Protocol):
    """A source of choices: ``integer(low, high)`` is one of low..high, both included."""

    def integer(self, low: int, high: int) -> int: ...


class Seeded:
    """Choices from a seeded generator; equal seeds give equal scenarios on every machine."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


def pick(draw: Draw, items: Sequence[T]) -> T:
    """Return one of ``items``."""
    return items[draw.integer(0, len(items) - 1)]


# -- names as people have them -------------------------------------------------------------------------

TOPICS = (
    ("t", "t1", "t11", "t111", "t1-1", "t-1"),
    ("a", "a1", "a10", "a2", "a1.0", "a11"),
    ("orders", "orders-1", "orders-1-1", "orders_1", "orders.1", "orders-10"),
    ("eu.orders", "eu_orders", "eu-orders", "eu.orders.dlq", "eu", "eu."),
    ("1", "11", "-", "1-1", "_", "__consumer_offsets"),
)
"""Sets of legal names that are mistaken for each other: joined with an index without a separator, cut at the
wrong dash, with dots and underscores that metrics do not tell apart, one the beginning of another."""

CLIENT_IDS = ("consumer-1", "consumer-11", "consumer-1-1", "orders-service", "rdkafka", "sarama", "a.b_c")
"""What member ids begin with; the broker adds a dash and a UUID."""

SHORT_IDS = ("c", "c1", "c11", "c1-1", "c-1", "c.1", "c_1", "1", "11")
"""Ids that are mistaken for each other as topics are."""


def topic_names(draw: Draw, count: int) -> list[str]:
    """So many names of one set, numbered on where it has too few."""
    return _numbered(pick(draw, TOPICS), count)


def member_ids(draw: Draw, count: int) -> list[str]:
    """So many ids as a broker makes them, whose order is not that of arrival; or short ones."""
    if draw.integer(0, 2) == 2:
        return _numbered(SHORT_IDS, count)
    drawn = [draw.integer(0, 0xFFFFFFFF) for _ in range(count)]
    return [
        f"{pick(draw, CLIENT_IDS)}-{word:08x}-{number:04x}-4{word % 4096:03x}-8a5b-{word:08x}c0de"
        for number, word in enumerate(drawn)
    ]


def _numbered(names: Sequence[str], count: int) -> list[str]:
    more = (f"{name}.{number}" for number in range(count) for name in names)
    return [*names, *more][:count]
