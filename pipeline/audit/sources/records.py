"""A line as it was understood, before its partitions become rows."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType
from rebalance.pipeline.audit.sources.events import EVENTS

PART = StructType(
    [
        StructField("member", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
    ]
)
"""What an event is about; ``member`` where it is another for each."""

_NOT_HERE = {"file", "line", "source", "topic", "partition"}

RECORD = StructType(
    [
        *(StructField(field.name, field.dataType) for field in EVENTS if field.name not in _NOT_HERE),
        StructField("parts", ArrayType(PART)),
        StructField("why", StringType()),  # why the line is not understood
    ]
)
"""``EVENTS`` of one line. Without kind: of no interest."""


def record(**columns: Column | str | None) -> Column:
    """A struct of ``RECORD``; what is not given is null."""
    return F.struct(
        *(
            _column(columns.pop(field.name, None)).cast(field.dataType).alias(field.name)
            for field in RECORD.fields
        )
    )


def _column(value: Column | str | None) -> Column:
    return value if isinstance(value, Column) else F.lit(value)


def part(
    topic: Column | None = None, partition: Column | None = None, member: Column | None = None
) -> Column:
    """A struct of ``PART``."""
    given = (member, topic, partition)
    return F.struct(
        *(_column(one).cast(f.dataType).alias(f.name) for one, f in zip(given, PART.fields, strict=True))
    )


def named(name: Column, member: Column | None = None) -> Column:
    """``topic-0`` as a part; without a topic, where it does not end in a number."""
    number = F.substring_index(name, "-", -1)
    topic = F.substring(name, F.lit(1), F.length(name) - F.length(number) - 1)
    numbered = number.rlike(r"^\d+$") & number.try_cast("int").isNotNull()
    return part(F.when(numbered, topic).otherwise(""), number.try_cast("int"), member)


def without_number(parts: Column) -> Column:
    """Whether one of the parts was to be a partition, and has no number or no topic."""
    return F.coalesce(
        F.exists(parts, lambda one: (one["topic"] == "") | (one["partition"] < 0)), F.lit(False)
    )
