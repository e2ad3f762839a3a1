"""Who owned which partition from when to when, and which neighbours among these intervals meet.

In two steps, because almost every partition of almost every log is in order. ``screen`` reads each event
once, in the order of its partition, and looks at the one before it only: in an orderly log a consumer is
assigned what the last owner gave away. ``intervals`` then rebuilds the ownership of those partitions that
something is to be said about, and ``meetings`` puts neighbours side by side.

At the same instant what ends goes before what begins: such a hand-over is no overlap.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from rebalance.pipeline.audit.clocks import host
from rebalance.pipeline.audit.frames import source_location
from rebalance.pipeline.audit.sources.events import Kind

CHANGES = (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
"""What happens to a single partition; everything else happens to a consumer or to the group."""

NEAR = 3
"""With how many intervals that began before it an interval is compared. What lasts longer than that many
owners has met the first of them."""

KEY = ("group", "topic", "partition")


def key() -> Column:
    """The partition as a number. Strings would have to be compared and shuffled again and again.

    Two of n partitions have the same with probability n^2 / 2^65, and would then be looked at for nothing.
    """
    return F.xxhash64(*KEY).alias("key")


def screen(events: DataFrame) -> DataFrame:
    """What each change of ownership says together with the one before it in its partition.

    Returns ``key`` and ``family`` (partition and group as numbers), ``at`` (microseconds since 1970),
    ``pause`` (microseconds that nobody owned it; null where this is no hand-over), ``moved`` (handed to
    another consumer), ``generation`` and ``revoked_in``, ``odd`` (does not follow from the one before),
    ``consumer`` (a number), ``last`` (nothing follows) and ``begins`` (as opposed to ends).
    """
    begins = F.col("kind") == Kind.ASSIGNED
    rows = _changes(events).select(
        key(),
        F.xxhash64("group").alias("family"),
        # One number to sort by: the time, and in its last bit what begins after what ends.
        (F.unix_micros("at") * 2 + begins.cast("int")).alias("time"),
        F.xxhash64("consumer").alias("consumer"),
        "generation",
    )
    order = Window.partitionBy("key").orderBy("time")
    rows = rows.select(
        "*",
        F.lag("time").over(order).alias("time_before"),
        F.lag("consumer").over(order).alias("consumer_before"),
        F.lag("generation").over(order).alias("revoked_in"),
        F.lead("time").over(order).isNull().alias("last"),
    )
    begins, began_before = _begins("time"), _begins("time_before")
    same = F.col("consumer") == F.col("consumer_before")
    handed = begins & ~began_before
    tie = handed & same & (F.shiftright("time", 1) == F.shiftright("time_before", 1))
    early = handed & ~same & (F.col("generation") <= F.col("revoked_in"))
    pause = F.shiftright("time", 1) - F.shiftright("time_before", 1)
    return rows.select(
        *("key", "family", "consumer", "generation", "revoked_in", "last"),
        F.shiftright("time", 1).alias("at"),
        F.when(handed, pause).alias("pause"),
        F.coalesce(handed & ~same, F.lit(False)).alias("moved"),
        F.coalesce(
            (begins & began_before) | (~begins & ~(began_before & same)) | early | tie, F.lit(False)
        ).alias("odd"),
        begins.alias("begins"),
    )


def _changes(events: DataFrame) -> DataFrame:
    """A callback without partitions changes nothing; our own log has those, too."""
    return events.where(F.col("kind").isin(*CHANGES) & F.col("partition").isNotNull())


def _begins(time: str) -> Column:
    return F.col(time).bitwiseAND(F.lit(1)) == 1


def intervals(events: DataFrame, keys: DataFrame, seen: DataFrame) -> DataFrame:
    """The ownership of the partitions in ``keys`` (with a column ``key``), one row for each interval.

    ``seen``: ``rebalances.consumers``. Returns group, topic, partition, consumer, member, host; ``granted``
    (generation), ``began``; ``ended``, ``end`` (the kind of event) and ``held`` (the last generation of the
    consumer then), null where it does not end in this log; and the events ``start`` and ``stop`` as places.
    An interval ends at the latest where its consumer closes or starts again. One that began before the log of
    its consumer did has its first line for ``began``, no ``start`` and no ``granted``.
    """
    chosen = _changes(events).join(
        F.broadcast(keys.select(F.col("key").alias("_key")).distinct()),
        key() == F.col("_key"),
        "left_semi",
    )
    # At one instant a consumer's events are in the order of its log.
    own = Window.partitionBy(*KEY, "consumer").orderBy("at", "file", "line")
    here = source_location()
    begins = F.col("kind") == Kind.ASSIGNED
    rows = (
        chosen.withColumns({"next": F.lead(here).over(own), "none": F.lag("at").over(own).isNull()})
        .where(begins | F.col("none"))
        .withColumn("next", F.when(begins, F.col("next")).otherwise(here))
        .join(seen.select("group", "consumer", "first", "turns"), ["group", "consumer"], "left")
        .withColumn(
            "life",
            F.get(
                F.filter(
                    "turns", lambda one: one["at"] > F.when(begins, F.col("at")).otherwise(F.col("first"))
                ),
                F.lit(0),
            ),
        )
    )
    over = F.col("next").isNull() | (F.col("life.at") < F.col("next.at"))
    return rows.withColumn("stop", F.when(over, F.col("life")).otherwise(F.col("next"))).select(
        *KEY,
        *("consumer", "member"),
        host().alias("host"),
        F.when(begins, F.col("generation")).alias("granted"),
        F.when(begins, F.col("at")).otherwise(F.col("first")).alias("began"),
        F.col("stop.at").alias("ended"),
        F.col("stop.kind").alias("end"),
        F.col("stop.generation").alias("held"),
        F.when(begins, here).alias("start"),
        "stop",
    )


def meetings(owned: DataFrame) -> DataFrame:
    """Each interval as ``b`` with the intervals of the same partition that began before it as ``a``.

    Returns group, topic, partition, ``a``, ``b`` (all columns of ``intervals``) and ``next``: nothing began
    in between.
    """
    one, order = _whole(owned), _in_order()
    before = F.collect_list(one).over(order.rowsBetween(-NEAR, -1))
    return (
        owned.select(*KEY, one.alias("b"), before.alias("before"))
        .select(*KEY, "b", F.posexplode(F.reverse("before")).alias("back", "a"))
        .select(*KEY, "a", "b", (F.col("back") == 0).alias("next"))
    )


def gaps(owned: DataFrame, end: DataFrame) -> DataFrame:
    """The times in which nobody owned a partition: KEY, ``a`` (the last owner's interval), ``b`` (the next,
    null: nobody), ``since``, ``until`` (of the log where there is no next)."""
    whole, order = _whole(owned), _in_order()
    # An interval that does not end reaches beyond all others.
    reach = F.struct(F.col("ended").isNull().alias("open"), F.col("ended").alias("at"), whole.alias("one"))
    rows = owned.select(
        *KEY,
        F.max(reach).over(order.rowsBetween(Window.unboundedPreceding, 0)).alias("reach"),
        F.lead(whole).over(order).alias("b"),
    )
    return (
        rows.where("not reach.open")
        .crossJoin(F.broadcast(end))
        .select(
            *KEY,
            F.col("reach.one").alias("a"),
            "b",
            F.col("reach.at").alias("since"),
            F.coalesce("b.began", "end").alias("until"),
        )
        # Whose log begins with giving it away has had it, nobody knows since when.
        .where("since < until and (b is null or b.start is not null)")
    )


def _in_order() -> WindowSpec:
    return Window.partitionBy(*KEY).orderBy("began", "granted", "consumer")


def _whole(owned: DataFrame) -> Column:
    """An interval as one value, to be put beside others of its partition."""
    return F.struct(*(name for name in owned.columns if name not in KEY))
