"""The checks of an audit: each takes small DataFrames and returns rows of ``frames.FINDINGS``."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from rebalance.pipeline.audit.clocks import UNKNOWN
from rebalance.pipeline.audit.frames import FINDINGS, seconds, source_location
from rebalance.pipeline.audit.kernel.findings import (
    CHECKS,
    GRANTED_EARLY,
    NEEDLESS,
    OWNED_TWICE,
    PAUSE,
    STORM,
    STRANDED,
    UNSETTLED,
    ZOMBIE,
    Thresholds,
)
from rebalance.pipeline.audit.ownership import KEY
from rebalance.pipeline.audit.rebalances import BEGINNINGS
from rebalance.pipeline.audit.sources.events import Kind

NOTICED = (Kind.REVOKED, Kind.LOST, Kind.CLOSED)
"""An interval that ends so was believed in by its consumer until then. A process that was killed did not."""


AT_ONCE = 5.0
"""Seconds within which a consumer does what its new assignment says."""


def contradictions(
    met: DataFrame, members: DataFrame, hosts: DataFrame, end: DataFrame, limits: Thresholds
) -> DataFrame:
    """Owned twice, granted before revoked, owned by a zombie: of the neighbours in ``ownership.meetings``.

    Exclusivity is a statement about the members of a generation. So of two owners the one whose partition
    was granted earlier counts as a member if it joined the generation of the later grant, or if the log does
    not say who did. One that did not join had been removed; it is a zombie until it notices.
    """
    a_first = F.coalesce(F.col("a.granted") <= F.col("b.granted"), F.lit(True))
    pairs = met.where("a.consumer != b.consumer").withColumns(
        {
            "older": F.when(a_first, F.col("a")).otherwise(F.col("b")),
            "generation": F.greatest("a.granted", "b.granted"),
            "until": F.least("a.ended", "b.ended"),
            "overlap": F.col("a.ended").isNull() | (F.col("a.ended") > F.col("b.began")),
            # Says the same without a clock: given away in the generation of the grant, or later.
            "proved": F.coalesce(
                (F.col("a.end") == Kind.REVOKED)
                & (F.col("a.held") >= F.col("b.granted"))
                # What was owned before the log begins was granted before what it tells of.
                & ((F.col("a.granted") < F.col("b.granted")) | F.col("a.start").isNull()),
                F.lit(False),
            ),
        }
    )
    joined = members.select(
        "group", "generation", F.col("consumer").alias("_who"), F.lit(True).alias("there")
    )
    known = members.select("group", "generation").distinct().withColumn("told", F.lit(True))
    pairs = (
        pairs.withColumn("_who", F.col("older.consumer"))
        .join(joined, ["group", "generation", "_who"], "left")
        .join(known, ["group", "generation"], "left")
        .withColumn("member", F.col("there").isNotNull() | F.col("told").isNull())
        .crossJoin(F.broadcast(end))
    )
    check = (
        F.when(F.col("overlap") & F.col("member"), OWNED_TWICE.id)
        .when(F.col("proved") & F.col("next"), GRANTED_EARLY.id)
        .when(F.col("overlap") & F.col("older.end").isin(*NOTICED), ZOMBIE.id)
    )
    lasted = F.when(F.col("overlap"), seconds("b.began", F.coalesce("until", "end"))).otherwise(0.0)
    rows = _with_skew(
        pairs.withColumns({"check": check, "seconds": lasted}).where("check is not null"), hosts, limits
    )
    granted = F.coalesce(F.col("b.granted").cast("string"), F.lit("?"))
    held = F.concat_ws(" ", F.lower("a.end"), F.lit("in generation"), F.col("a.held").cast("string"))
    still = F.when(F.col("a.ended").isNull(), F.lit("which never gave it away")).otherwise(
        F.when(F.col("a.held").isNull(), F.concat(F.lower("a.end"), F.lit(" by then"))).otherwise(held)
    )
    return _findings(
        rows,
        F.col("check"),
        began=F.when(F.col("overlap"), F.col("b.began")).otherwise(F.col("a.ended")),
        ended=F.when(F.col("overlap"), F.col("until")).otherwise(F.col("b.began")),
        lasted=F.col("seconds"),
        owners=("a", "b"),
        skew=F.col("skew"),
        certain=F.col("proved") | (F.col("seconds") > F.col("skew")),
        places=F.array("a.start", "b.start", "a.stop", "b.stop"),
        named=F.array("a.start", "b.start"),
        detail=F.concat(
            *(F.col("b.consumer"), F.lit(" was granted it in generation "), granted, F.lit("; ")),
            *(F.col("a.consumer"), F.lit(" had been since generation ")),
            *(F.coalesce(F.col("a.granted").cast("string"), F.lit("?")), F.lit(", "), still),
        ),
    )


def _with_skew(rows: DataFrame, hosts: DataFrame, limits: Thresholds) -> DataFrame:
    """By how much the clocks of ``a`` and ``b`` may differ, as ``skew``; 0 on one host."""
    same = F.col("a.host").eqNullSafe(F.col("b.host"))
    if limits.clock_skew is not None:
        return rows.withColumn("skew", F.when(same, 0.0).otherwise(F.lit(float(limits.clock_skew))))
    for one in ("a", "b"):
        clock = hosts.select(F.col("host").alias("_host"), F.struct("ahead", "spread").alias(f"clock_{one}"))
        rows = rows.join(F.broadcast(clock), F.col(f"{one}.host") == F.col("_host"), "left").drop("_host")
    known = (
        F.abs(F.col("clock_a.ahead") - F.col("clock_b.ahead"))
        + F.col("clock_a.spread")
        + F.col("clock_b.spread")
    )
    return rows.withColumn("skew", F.when(same, 0.0).otherwise(F.coalesce(known, F.lit(UNKNOWN))))


def stranded(gap: DataFrame, quiet: DataFrame, events: DataFrame, limits: Thresholds) -> DataFrame:
    """Gaps that a settled group with members left as they were; ``quiet`` are its ``rebalances.lulls``."""
    alive = quiet.where("alive").select("group", F.col("since").alias("calm"), F.col("until").alias("stir"))
    start, stop = F.greatest("since", "calm"), F.least("until", "stir")
    rows = (
        gap.join(alive, "group")
        .withColumns({"from": start, "to": stop})
        .where(seconds("from", "to") >= limits.stranded)
        .groupBy(*KEY, "a", "b", "since", "until")
        .agg(F.min("from").alias("from"), F.max("to").alias("to"))
    )
    rows = rows.join(_dropped(rows, events), [*KEY, "since"], "left_anti")
    return _findings(
        rows,
        F.lit(STRANDED.id),
        began=F.col("from"),
        ended=F.when(F.col("b").isNotNull(), F.col("to")),
        lasted=seconds("from", "to"),
        owners=("a",),
        places=F.array("a.start", "a.stop", "b.start"),
        # What the log does not see begin is told apart by where it ends.
        named=F.array(F.coalesce("a.start", "a.stop")),
        detail=F.concat(
            F.lit("nobody owns it since "), F.col("a.consumer"), F.lit(" did, and the group had come to rest")
        ),
    )


def _dropped(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Those of a topic to which nobody subscribes any more: the last to subscribe meanwhile leaves it out."""
    subscribed = (
        events.where(F.col("kind") == Kind.SUBSCRIBED)
        .groupBy("group", "consumer", F.col("at").alias("said"))
        .agg(F.collect_set("topic").alias("topics"))
    )
    return (
        rows.join(subscribed, "group")
        .where((F.col("said") >= F.col("a.began")) & (F.col("said") <= F.col("to")))
        .groupBy(*KEY, "since")
        .agg(F.max_by("topics", "said").alias("topics"))
        .where(~F.array_contains("topics", F.col("topic")))
    )


def pauses(gap: DataFrame, quiet: DataFrame, found: DataFrame, limits: Thresholds) -> DataFrame:
    """Gaps between two owners that lasted too long although the group had members; ``found``: stranded."""
    dead = quiet.where("gone").select("group", F.col("since").alias("calm"), F.col("until").alias("stir"))
    unowned = found.select(*KEY, F.col("began").alias("calm"), F.col("ended").alias("stir"))
    rows = gap.where(F.col("b").isNotNull() & (seconds("since", "until") >= limits.pause))
    within = (F.col("calm") < F.col("until")) & (F.col("stir") > F.col("since"))
    for other, on in ((dead, ["group"]), (unowned, list(KEY))):
        meets = [F.col(f"gap.{name}") == F.col(f"other.{name}") for name in on]
        rows = rows.alias("gap").join(other.alias("other"), [*meets, within], "left_anti")
    return _findings(
        rows,
        F.lit(PAUSE.id),
        began=F.col("since"),
        ended=F.col("until"),
        lasted=seconds("since", "until"),
        owners=("a", "b"),
        places=F.array("a.stop", "b.start"),
        detail=F.concat(
            F.lit("nobody owned it between "), F.col("a.consumer"), F.lit(" and "), F.col("b.consumer")
        ),
    )


def needless(met: DataFrame, members: DataFrame, began: DataFrame) -> DataFrame:
    """Movements between two generations around which neither members nor subscriptions changed.

    What a COOPERATIVE consumer revokes it was told to in that generation, so that one counts; an EAGER one
    revokes everything before it joins the next. It is EAGER if it had been told its assignment for a while.
    Generations tell which came first, whatever the clocks of the two say.
    """
    eras = began.select("group", "generation", "era", F.col("changed").cast("int").alias("changed"))
    there = eras.select("group", F.col("generation").alias("to"), F.col("era").alias("era_to"))
    here = eras.select("group", F.col("generation").alias("from"), F.col("era").alias("era_from"), "changed")
    synced = members.select(
        "group", F.col("generation").alias("from"), F.col("consumer").alias("_who"), "synced"
    )
    eager = F.coalesce(seconds("synced", "a.ended") > AT_ONCE, F.lit(False))
    given, taken = F.least("a.ended", "b.began"), F.greatest("a.ended", "b.began")
    rows = (
        met.where("next and a.consumer != b.consumer and a.held < b.granted")
        .where(F.col("a.end") == Kind.REVOKED)
        .withColumns({"from": F.col("a.held"), "to": F.col("b.granted"), "_who": F.col("a.consumer")})
        .join(there, ["group", "to"])
        .join(here, ["group", "from"])
        .join(synced, ["group", "from", "_who"], "left")
        .where((F.col("era_from") == F.col("era_to")) & (eager | (F.col("changed") == 0)))
    )
    return _findings(
        rows,
        F.lit(NEEDLESS.id),
        began=given,
        ended=taken,
        lasted=seconds(given, taken),
        owners=("a", "b"),
        places=F.array("a.stop", "b.start"),
        detail=F.concat(
            *(F.lit("it moved from "), F.col("a.consumer"), F.lit(" to "), F.col("b.consumer")),
            *(F.lit(" in generation "), F.col("to").cast("string"), F.lit(", and the members were the same")),
        ),
    )


def rebalance_storms(stormy: DataFrame, stirred: DataFrame, limits: Thresholds) -> DataFrame:
    """One finding for each storm (``rebalances.storms``)."""
    rows = (
        stormy.join(stirred.where(F.col("kind").isin(*BEGINNINGS)), "group")
        .where("at >= since and at <= until")
        .groupBy("group", "since", "until", "count", "changes")
        .agg(F.min(source_location()).alias("first"), F.max(source_location()).alias("last"))
    )
    return _findings(
        rows,
        F.lit(STORM.id),
        began=F.col("since"),
        ended=F.col("until"),
        lasted=seconds("since", "until"),
        places=F.array("first", "last"),
        named=F.array("first"),
        detail=F.format_string(
            f"%d generations, any {limits.storm} of them within {limits.storm_within:g} s; the members or "
            "subscriptions changed with %d",
            "count",
            "changes",
        ),
    )


def never_settles(restless: DataFrame, end: DataFrame) -> DataFrame:
    """One finding for each group that did not come to rest (``rebalances.unsettled``)."""
    rows = restless.crossJoin(F.broadcast(end))
    return _findings(
        rows,
        F.lit(UNSETTLED.id),
        began=F.col("since"),
        ended=F.lit(None).cast("timestamp"),
        lasted=seconds("since", "end"),
        places=F.array("first", "last"),
        named=F.array("first"),
        certain=F.col("certain"),
        detail=F.when(F.col("waiting"), F.lit("a rebalance began and did not end")).otherwise(
            F.concat(
                F.format_string(
                    "%d generations for which nobody came or went, up to the end of the log", "generations"
                ),
                F.when(F.col("certain"), "").otherwise(", as far as these logs tell who the members are"),
            )
        ),
    )


def _findings(
    rows: DataFrame,
    check: Column,
    *,
    began: Column,
    ended: Column,
    lasted: Column,
    places: Column,
    detail: Column,
    owners: tuple[str, ...] = (),
    named: Column | None = None,
    skew: Column | None = None,
    certain: Column | None = None,
) -> DataFrame:
    """The rows as findings. ``owners``: columns that hold intervals. ``named``: the places that tell one from
    another, also when more of it is known; by default all."""
    partition = {name: F.col(name) if owners else F.lit(None) for name in ("topic", "partition")}
    written = F.filter(places, lambda location: location.isNotNull())
    ours = written if named is None else F.filter(named, lambda location: location.isNotNull())
    # Not by their files and their directories, which depend on where the logs lie and what is read besides.
    where = F.transform(
        ours,
        lambda p: F.concat_ws(
            " ",
            F.unix_micros(p["at"]).cast("string"),
            p["kind"],
            F.regexp_replace(p["consumer"], "@[^@]*/", "@"),
        ),
    )
    levels = F.create_map(*(F.lit(word) for each in CHECKS.values() for word in (each.id, each.level)))
    columns = {
        "id": F.substring(F.sha2(F.concat_ws("|", check, "group", *partition.values(), where), 256), 1, 12),
        "check": check,
        "level": F.element_at(levels, check),
        "group": F.col("group"),
        **partition,
        "began": began,
        "ended": ended,
        "seconds": lasted,
        "consumers": F.array(*(F.col(f"{one}.consumer") for one in owners)),
        "members": F.array(*(F.col(f"{one}.member") for one in owners)),
        "generations": F.array(*(F.col(f"{one}.granted") for one in owners)),
        "skew": F.lit(None) if skew is None else skew,
        "certain": F.lit(True) if certain is None else certain,
        "places": F.array_sort(written),
        "detail": detail,
    }
    return rows.select(*(columns[field.name].cast(field.dataType).alias(field.name) for field in FINDINGS))
