"""Lines that a logger wrote, in whatever layout, by the tables of their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType
from rebalance.pipeline.audit.sources import patterns
from rebalance.pipeline.audit.sources.events import Kind
from rebalance.pipeline.audit.sources.patterns import Source
from rebalance.pipeline.audit.sources.records import named, part, record, without_number
from rebalance.pipeline.audit.sources.times import CLOCK, DATED, moment

MESSAGES = ("message", "msg", "log", "short_message", "@message")
"""Where JSON layouts and container runtimes put the line, and when it was written:"""
TIMES = ("@timestamp", "timestamp", "time", "timeMillis", "ts", "asctime")
_INSTANT = StructType([StructField("epochSecond", LongType()), StructField("nanoOfSecond", LongType())])
_OUTER = StructType(
    [*(StructField(name, StringType()) for name in (*MESSAGES, *TIMES)), StructField("instant", _INSTANT)]
)

_SHARE = r"(?:^\{|, )([^,={}]+)=Assignment\(partitions=\[([^\]]*)\]"
"""``{consumer-1-uuid=Assignment(partitions=[t-0, t-1]), consumer-2-uuid=Assignment(partitions=[])}``"""

BEFORE = 400
"""Characters before the message in which the time is looked for, the last ones."""


def with_records(
    claimed: DataFrame, sources: Sequence[Source], zone: str, date: str | None, stream: Column
) -> DataFrame:
    """``claimed`` (with value string and source string) and a column ``logged``: the ``RECORD`` of a line.

    Each step is a select of its own, so that Spark computes what several columns use once.
    """

    def by_source(make: Callable[[Source], Column]) -> Column:
        choice: Column | None = None
        for source in sources:
            ours = F.col("source") == source.name
            choice = F.when(ours, make(source)) if choice is None else choice.when(ours, make(source))
        return choice if choice is not None else F.lit(None)

    is_json = F.col("source").isin(*(source.name for source in sources)) & F.col("value").startswith("{")
    unwrapped = claimed.select("*", F.when(is_json, F.from_json("value", _OUTER)).alias("outer"))
    message = F.when(F.col("outer").isNull(), F.col("value")).otherwise(_first(MESSAGES))
    plain = unwrapped.select("*", F.rtrim(message, F.lit(" \r\n")).alias("plain"))
    headed = plain.select(
        "*", by_source(lambda source: patterns.split_head(F.col("plain"), source)).alias("head")
    ).select("*", (F.size("head") == len(patterns.HEADS)).alias("whole"))
    caught = by_source(lambda source: patterns.caught(patterns.head("head", "message"), source))
    read = headed.select("*", F.when(F.col("whole"), caught).alias("caught")).select(
        "*", patterns.row("caught").alias("row")
    )
    kinds = by_source(
        lambda source: F.get(F.array(*(F.lit(line.kind) for line in source.lines)), F.col("row"))
    )
    known = read.select("*", kinds.alias("kind")).select(
        "*", F.when(F.col("kind").isNotNull(), _when()).alias("when"), _parts().alias("parts")
    )
    timed = known.select("*", moment(F.col("when"), zone, date).alias("at"))
    return timed.select(*claimed.columns, _record(stream).alias("logged"))


def _first(names: Sequence[str]) -> Column:
    return F.coalesce(*(F.col("outer")[name] for name in names))


def _when() -> Column:
    """What tells the time of a line: what stands before the message, then what is around both."""
    before = patterns.head("head", "head")
    near = F.substring(before, F.greatest(F.length(before) - BEFORE + 1, F.lit(1)), F.lit(BEFORE))
    instant = F.col("outer.instant")
    nanos = F.lpad(instant["nanoOfSecond"].cast("string"), 9, "0")
    return F.concat_ws(" ", near, _first(TIMES), F.concat_ws(".", instant["epochSecond"], nanos))


def _parts() -> Column:
    topics = _listed(patterns.captured("caught", "topics"), lambda topic: part(topic))
    partitions = _listed(patterns.captured("caught", "partitions"), lambda name: named(name))
    members = _listed(patterns.captured("caught", "members"), lambda one: part(member=one))
    plan = patterns.captured("caught", "plan")
    owners = F.regexp_extract_all(plan, F.lit(_SHARE), F.lit(1))
    shares = F.regexp_extract_all(plan, F.lit(_SHARE), F.lit(2))
    planned = F.transform(
        F.arrays_zip(owners.alias("member"), shares.alias("share")),
        lambda each: F.when(each["share"] == "", F.array(part(member=each["member"]))).otherwise(
            F.transform(F.split(each["share"], ", "), lambda name: named(name, each["member"]))
        ),
    )
    number = patterns.captured("caught", "number")
    tied = F.array(part(patterns.captured("caught", "topic"), number.try_cast("int")))
    return (
        F.when(plan != "", F.flatten(planned))
        .when(number != "", tied)
        .otherwise(F.concat(topics, partitions, members))
    )


def _listed(text: Column, each: Callable[[Column], Column]) -> Column:
    """``a, b`` or ``[a, b]`` as an array."""
    bare = F.trim(text, F.lit("[] "))
    none = F.array().cast("array<string>")
    return F.transform(F.when(bare == "", none).otherwise(F.split(bare, ", ?")), each)


def _record(stream: Column) -> Column:
    def stated(name: str) -> Column:
        """From the message, or else from what stands before it; null when neither says it."""
        captures = [
            *([patterns.captured("caught", name)] if name in patterns.PLACES else []),
            *([patterns.head("head", name)] if name in patterns.HEADS else []),
        ]
        return F.coalesce(*(F.nullif(capture, F.lit("")) for capture in captures))

    client = stated("client")
    generation = stated("generation")
    no_group = F.coalesce(
        stated("group") == "null", F.lit(False)
    )  # Java's word for a consumer that assigns itself
    kind = F.when(~no_group, F.col("kind"))
    unlike = F.col("row").isNull() & F.col("caught").isNotNull()
    clock = F.col("when").rlike(CLOCK) & ~F.col("when").rlike(DATED)
    why = (
        F.when(unlike, "begins like a line of this source that we know, and goes on otherwise")
        .when(kind.isNull(), None)
        .when(F.col("at").isNull() & clock, "a time without a date")
        .when(F.col("at").isNull(), "no date and time that we understand")
        .when(generation.isNotNull() & generation.try_cast("int").isNull(), "the generation is no number")
        .when(
            without_number(F.col("parts")) & (kind != Kind.SUBSCRIBED), "a partition that is not topic-number"
        )
    )
    return record(
        at=F.col("at"),
        kind=kind,
        group=stated("group"),
        consumer=F.when(client.isNotNull(), F.concat(client, F.lit("@"), stream)),
        member=stated("member"),
        instance=stated("instance"),
        generation=generation.try_cast("int"),
        parts=F.col("parts"),
        detail=stated("detail"),
        host=stream,
        why=why,
    )
