"""The findings as Spark sees them, and times as columns."""

from __future__ import annotations

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


def column(one: Column | str) -> Column:
    """A column by its name, or itself."""
    return F.col(one) if isinstance(one, str) else one


def seconds(start: Column | str, end: Column | str) -> Column:
    """From one timestamp to another, in seconds with microseconds."""
    return (F.unix_micros(column(end)) - F.unix_micros(column(start))) / 1e6
