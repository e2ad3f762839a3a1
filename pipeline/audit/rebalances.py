"""The life of each group as a whole: its consumers, its generations, and when nothing happened."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from rebalance.pipeline.audit.frames import seconds, source_location
from rebalance.pipeline.audit.sources.events import AT_COORDINATOR, Kind

JOINS = (Kind.JOINED, Kind.SYNCED)
"""A consumer that says so was a member of the generation that it names."""

BEGINNINGS = (Kind.JOINED, Kind.STABLE)
"""The join phase of the generation is over."""

STIRS = (
    *(Kind.STARTED, Kind.JOINING, Kind.JOINED, Kind.SYNCED, Kind.RESET, Kind.LEAVING, Kind.CLOSED),
    *AT_COORDINATOR,
)
"""Whatever is part of a rebalance, or begins one."""

UNDERWAY = (Kind.JOINING, Kind.PREPARING)
"""What a rebalance that did not come to its end has last. JOINED is one more, unless nobody logs SYNCED."""

GONE = (Kind.LEAVING, Kind.CLOSED, Kind.EMPTY, Kind.REMOVED)
"""What a group has last whose members have all gone."""


def consumers(events: DataFrame) -> DataFrame:
    """Each consumer in the log, and null for the coordinator: group, consumer, ``events`` (how many),
    ``first`` and ``last`` (timestamps), ``turns`` (places where it starts or closes, in order)."""
    of_group = ["group", "consumer"]
    seen = events.groupBy(of_group).agg(
        F.count("*").alias("events"), F.min("at").alias("first"), F.max("at").alias("last")
    )
    # By itself, because Spark sorts whatever it collects by many keys, and these are few of the events.
    turns = events.where(F.col("kind").isin(Kind.STARTED, Kind.CLOSED)).groupBy(of_group)
    return seen.join(
        turns.agg(F.array_sort(F.collect_list(source_location())).alias("turns")), of_group, "left"
    )


def participants(events: DataFrame) -> DataFrame:
    """Who was a member in which generation: group, generation, consumer, member, ``at`` (when it joined) and
    ``synced`` (when it was told its assignment, where that is logged)."""
    there = F.col("kind").isin(*JOINS) & F.col("generation").isNotNull() & F.col("consumer").isNotNull()
    return (
        events.where(there)
        .groupBy("group", "generation", "consumer")
        .agg(
            F.max("member").alias("member"),
            F.min("at").alias("at"),
            F.max(F.when(F.col("kind") == Kind.SYNCED, F.col("at"))).alias("synced"),
        )
    )


def generations(events: DataFrame, members: DataFrame) -> DataFrame:
    """Each generation of each group: group, family, generation, ``began`` (of its first member).

    ``era`` counts how often the members or their subscriptions had changed until then; ``changed`` says
    whether they did with this generation. A member id is a new one when a process has started again. Whose
    log is not at hand is known by the leader's plan: ``planned`` says that there is one.
    """
    plans = (
        events.where((F.col("kind") == Kind.PLANNED) & F.col("generation").isNotNull())
        .select("group", "generation", "member")
        .distinct()
        .groupBy("group", "generation")
        .agg(F.bit_xor(F.xxhash64("member")).alias("plan"))
    )
    each = (
        members.groupBy("group", "generation")
        .agg(
            F.min("at").alias("at"),
            F.bit_xor(F.xxhash64("consumer", F.coalesce("member", F.lit("")))).alias("who"),
        )
        .join(plans, ["group", "generation"], "left")
    )
    order = Window.partitionBy("group").orderBy("at", "generation")
    former = F.last("plan", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    # Before the first generation in the log there may have been anything.
    changed = F.coalesce(F.col("who") != F.lag("who").over(order), F.lit(True)) | F.coalesce(
        F.col("plan") != former, F.lit(False)
    )
    each = each.select(
        *("group", "generation", "at"),
        changed.cast("int").alias("changed"),
        F.col("plan").isNotNull().alias("planned"),
    )
    subscribed = events.where(F.col("kind").isin(Kind.SUBSCRIBED, Kind.STARTED)).select(
        "group",
        F.lit(None).cast("int").alias("generation"),
        "at",
        F.lit(1).alias("changed"),
        F.lit(False).alias("planned"),
    )
    so_far = Window.partitionBy("group").orderBy("at", F.col("generation").asc_nulls_first())
    return (
        each.unionByName(subscribed)
        .withColumn("era", F.sum("changed").over(so_far.rowsBetween(Window.unboundedPreceding, 0)))
        .where(F.col("generation").isNotNull())
        .select(
            "group",
            F.xxhash64("group").alias("family"),
            "generation",
            F.col("at").alias("began"),
            "era",
            (F.col("changed") == 1).alias("changed"),
            "planned",
        )
    )


def vanished(members: DataFrame, began: DataFrame) -> DataFrame:
    """Consumers that were no member of some later generation of their group, and never came back.

    Returns group, consumer, ``gone`` (when the first generation without them began).
    """
    last = members.groupBy("group", "consumer").agg(F.max("generation").alias("generation"))
    order = Window.partitionBy("group").orderBy("generation")
    following = began.select("group", "generation", F.lead("began").over(order).alias("gone"))
    return last.join(following, ["group", "generation"]).where("gone is not null").drop("generation")


def stirs(events: DataFrame) -> DataFrame:
    """What happened to each group as a group, in order, with the time since and until the next.

    Returns group, at, kind, consumer, generation, file, line, ``before`` and ``after`` (timestamps of the
    neighbours, null at the ends).
    """
    order = _in_order()
    return (
        events.where(F.col("kind").isin(*STIRS))
        .select("group", "at", "kind", "consumer", "generation", "file", "line")
        .withColumn("before", F.lag("at").over(order))
        .withColumn("after", F.lead("at").over(order))
    )


def lulls(stirred: DataFrame, end: DataFrame, least: float) -> DataFrame:
    """The times of at least so many seconds in which nothing happened to a group, up to the end of the log.

    Returns group, family, ``since``, ``until``, ``gone`` (there are no members), ``alive`` (there are, and no
    rebalance is under way). ``end`` is one row, with ``end``.
    """
    until = F.coalesce("after", "end")
    return (
        stirred.crossJoin(F.broadcast(end))
        .where(seconds("at", until) >= least)
        .select(
            "group",
            F.xxhash64("group").alias("family"),
            F.col("at").alias("since"),
            until.alias("until"),
            F.col("kind").isin(*GONE).alias("gone"),
            (~F.col("kind").isin(*GONE, *UNDERWAY)).alias("alive"),
        )
    )


def storms(began: DataFrame, count: int, within: float) -> DataFrame:
    """Runs of generations (``began`` as ``generations`` gives them) of which any ``count`` came ``within``
    so many seconds: group, ``since``, ``until``, ``count``, ``changes`` (of members among them)."""
    order = Window.partitionBy("group").orderBy("began", "generation")
    ahead = order.rowsBetween(0, count - 1)
    marked = (
        began.withColumn("first", F.lag("began", count - 1).over(order))
        .withColumn("dense", F.coalesce(seconds("first", "began") <= within, F.lit(False)))
        # A generation is in a storm when one of the next ``count`` completes a dense run.
        .withColumn("within", F.max("dense").over(ahead))
    )
    starts = F.col("within") & ~F.coalesce(F.lag("within").over(order), F.lit(False))
    return (
        marked.withColumn("storm", F.sum(starts.cast("int")).over(order))
        .where("within")
        .groupBy("group", "storm")
        .agg(
            F.min("began").alias("since"),
            F.max("began").alias("until"),
            F.count("*").alias("count"),
            F.sum(F.col("changed").cast("int")).alias("changes"),
        )
        .drop("storm")
    )


def unsettled(stirred: DataFrame, end: DataFrame, settle: float, began: DataFrame) -> DataFrame:
    """Groups whose last rebalance had not ended when the log did: group, ``since``, ``first`` and ``last``
    (places), ``generations`` (how many came for no reason), ``waiting`` (the last one began and did not end),
    ``certain``.

    Either nothing at all happened for ``settle`` seconds after a rebalance began, or one came after the
    other, never so long apart, for that long and until the end, although nobody came or went: after a change
    of members the first generation is due to it, and the one that follows it. Where no leader's log says
    whom it planned for, others may have come and gone, and it is not certain.
    """
    order = _in_order()
    fresh = F.coalesce(seconds("before", "at") >= settle, F.lit(True))
    runs = (
        stirred.withColumn("run", F.sum(fresh.cast("int")).over(order))
        .withColumn("syncs", F.max(F.col("kind") == Kind.SYNCED).over(Window.partitionBy("group")))
        .groupBy("group", "run")
        .agg(
            F.min("at").alias("since"),
            F.min(source_location()).alias("first"),
            F.max(source_location()).alias("last"),
            F.max(F.col("after").isNull()).alias("final"),
            F.max("syncs").alias("syncs"),
        )
        .where("final")
        .crossJoin(F.broadcast(end))
    )
    so_far = Window.partitionBy("group").orderBy("began", "generation")
    causeless = (
        began.withColumn("causeless", F.col("era") == F.lag("era", 2).over(so_far))
        .where("causeless")
        .join(runs.select("group", "since"), "group")
        .where("began >= since")
        .groupBy("group")
        .agg(F.count("*").alias("generations"), F.min("planned").alias("planned"))
    )
    runs = runs.join(causeless, "group", "left").na.fill(0, ["generations"]).na.fill(False, ["planned"])
    quiet = seconds("last.at", "end")
    awaits_sync = (F.col("last.kind") == Kind.JOINED) & F.col("syncs")
    waiting = (F.col("last.kind").isin(*UNDERWAY) | awaits_sync) & (quiet >= settle)
    restless = (quiet < settle) & (seconds("since", "end") >= settle) & (F.col("generations") > 1)
    return runs.where(waiting | restless).select(
        *("group", "since", "first", "last", "generations"),
        waiting.alias("waiting"),
        (waiting | F.col("planned")).alias("certain"),
    )


def _in_order() -> WindowSpec:
    return Window.partitionBy("group").orderBy("at", "generation", "kind")
