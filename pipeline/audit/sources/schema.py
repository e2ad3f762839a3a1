"""The events as Spark sees them."""

from __future__ import annotations

from pyspark.sql.types import (
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from rebalance_verifier.pipeline.audit.sources.events import COLUMNS

_TYPES: dict[str, DataType] = {
    "time": TimestampType(),
    "text": StringType(),
    "int": IntegerType(),
    "long": LongType(),
}

EVENTS = StructType([StructField(c.name, _TYPES[c.type], nullable=not c.required) for c in COLUMNS])
"""``events.COLUMNS``: one row for each event and partition; ``at`` in UTC, to the microsecond."""
