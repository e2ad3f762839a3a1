"""What an audit can find: the checks, and one row for each finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from rebalance.model.data import table


class AuditCheck(NamedTuple):
    """Something that must not be seen in the log of a group. ``level`` as of a clause."""

    id: str
    level: str
    sentence: str
    source: str


CHECKS = {id_: AuditCheck(id_, **row) for id_, row in table(__file__).items()}
"""In the order in which they are reported."""

OWNED_TWICE = CHECKS["owned-twice"]
GRANTED_EARLY = CHECKS["granted-before-revoked"]
ZOMBIE = CHECKS["owned-by-zombie"]
STRANDED = CHECKS["stranded"]
UNSETTLED = CHECKS["never-settles"]
STORM = CHECKS["rebalance-storm"]
NEEDLESS = CHECKS["needless-movement"]
PAUSE = CHECKS["long-pause"]


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From when on something is a finding; seconds.

    ``clock_skew``: by how much any two hosts may differ; None estimates it from the log (``clocks``).
    ``storm`` generations within ``storm_within`` are one.
    """

    stranded: float = 60.0
    settle: float = 300.0
    storm: int = 10
    storm_within: float = 600.0
    pause: float = 300.0
    clock_skew: float | None = None


SOURCE_LOCATION = StructType(
    [
        StructField("at", TimestampType()),
        StructField("kind", StringType()),  # of the event
        StructField("consumer", StringType()),
        StructField("generation", IntegerType()),
        StructField("file", StringType()),
        StructField("line", LongType()),
    ]
)
"""An event that a finding is about, with where it is written. Nullable, as everything is in Parquet."""


def source_location() -> Column:
    """A row of ``events.EVENTS`` as a place."""
    return F.struct(*SOURCE_LOCATION.names)


FINDINGS = StructType(
    [
        StructField("id", StringType(), nullable=False),  # the same whenever the same is found again
        StructField("check", StringType(), nullable=False),
        StructField("level", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("began", TimestampType(), nullable=False),
        StructField("ended", TimestampType()),  # null: it had not ended when the log did
        StructField("seconds", DoubleType(), nullable=False),  # how long, to the end of the log at most
        StructField("consumers", ArrayType(StringType())),  # the earlier first
        StructField("members", ArrayType(StringType())),  # ids of the same, null where not known
        StructField("generations", ArrayType(IntegerType())),  # in which each of them was granted it
        StructField("skew", DoubleType()),  # seconds that the clocks may differ by; null: one clock
        StructField("certain", BooleanType(), nullable=False),  # no difference of clocks explains it
        StructField("places", ArrayType(SOURCE_LOCATION), nullable=False),
        StructField("detail", StringType(), nullable=False),  # one sentence
    ]
)
"""One row for each finding."""
