"""Our own event log: ``events.JSON``, one object a line, read strictly."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType
from rebalance.pipeline.audit.sources.events import AT_CONSUMER, JSON, Kind
from rebalance.pipeline.audit.sources.records import named, part, record, without_number
from rebalance.pipeline.audit.sources.times import DATED, iso, seconds

NAME = "events"

_CORRUPT = "_corrupt"
_SCHEMA = StructType([*JSON.fields, StructField(_CORRUPT, StringType())])
_NUMBER = r"^-?\d+(\.\d+)?([eE]\+?\d+)?$"


def claimed(value: Column) -> Column:
    """Whether a line may be of our log, a truncated one too: an object that tells an event and its time."""
    complete = (value.contains('"event"') & value.contains('"at"')) | value.startswith('{"at"')
    return value.startswith("{") & complete


def parsed(value: Column) -> Column:
    """The line as a struct; to be selected under a name, then given to ``at``."""
    return F.from_json(value, _SCHEMA, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})


def at(row: Column, zone: str) -> Column:
    """When it happened, from what ``parsed`` made; null when it says no such time. To be selected, too."""
    stamp = row["at"]
    return F.when(stamp.rlike(_NUMBER), seconds(stamp)).when(stamp.rlike(f"^{DATED}$"), iso(stamp, zone))


def read(value: Column, row: Column, at: Column) -> Column:
    """The ``RECORD`` of a line, from its text and what ``parsed`` and ``at`` made of it."""
    empty = F.array().cast("array<string>")
    topics = F.transform(F.coalesce(row["topics"], empty), lambda topic: part(topic))
    partitions = F.transform(F.coalesce(row["partitions"], empty), lambda name: named(name))
    same = ("group", "consumer", "member", "instance", "generation", "detail", "host")
    return record(
        at=at,
        kind=row["event"],
        parts=F.concat(topics, partitions),
        why=_why(value, row, at, partitions),
        **{name: row[name] for name in same},
    )


def _why(value: Column, row: Column, at: Column, partitions: Column) -> Column:
    """What is wrong with a line, or null. The first of: JSON, types, required fields, their values."""

    def missing(field: str) -> Column:
        return row[field].isNull() | (row[field] == "")

    def excerpt(field: str) -> Column:
        return F.substring(row[field], 1, 100)

    return (
        F.when(F.get_json_object(value, "$").isNull() | ~value.rlike(r"\}\s*$"), "not JSON")
        .when(row[_CORRUPT].isNotNull(), "a field is not of its type")
        .when(missing("event"), "event is missing")
        .when(~row["event"].isin(*map(str, Kind)), F.concat(F.lit("no such event: "), excerpt("event")))
        .when(missing("at"), "at is missing")
        .when(at.isNull(), F.concat(F.lit("at is neither ISO 8601 nor seconds since 1970: "), excerpt("at")))
        .when(missing("group"), "group is missing")
        .when(row["event"].isin(*map(str, AT_CONSUMER)) & missing("consumer"), "consumer is missing")
        .when(without_number(partitions), "a partition that is not topic-number")
    )
