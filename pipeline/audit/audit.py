"""The audit: from the events of real groups to findings, with what Spark SQL can say and nothing else.

Partition by partition everything is first narrowed down (``ownership.screen``) to those about which there
is something to say; what is left is small, and every check is made on that.
"""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rebalance.pipeline.audit import checks
from rebalance.pipeline.audit.clocks import clocks
from rebalance.pipeline.audit.kernel.findings import Thresholds
from rebalance.pipeline.audit.ownership import gaps, intervals, meetings, screen
from rebalance.pipeline.audit.rebalances import (
    consumers,
    generations,
    lulls,
    participants,
    stirs,
    storms,
    unsettled,
    vanished,
)
from rebalance.pipeline.session import together


class Audit(NamedTuple):
    """What came of it, as DataFrames; none is computed before it is asked for. ``release`` it at the end.

    ``findings``: ``frames.FINDINGS``. ``groups``: group, consumers, partitions (that somebody owned),
    events, rebalances, first, last, settled. ``pauses``: group, handovers, p50, p95, longest (seconds without
    an owner). ``clocks``: host, ahead, spread (seconds), samples.
    """

    findings: DataFrame
    groups: DataFrame
    pauses: DataFrame
    clocks: DataFrame
    screened: DataFrame
    """``ownership.screen``, as far as more than one table needs it."""

    def release(self) -> None:
        """Give back the memory and disk that intermediate results took."""
        self.screened.unpersist()


def audit(events: DataFrame, thresholds: Thresholds | None = None, *, until: datetime | None = None) -> Audit:
    """Check the groups in ``events`` (``events.EVENTS``), which are read several times: best from Parquet.

    The log goes to its last event, or to ``until`` if that is later: nothing has happened since.
    """
    limits = thresholds or Thresholds()

    def keep(one: DataFrame) -> DataFrame:
        """More than one check needs it; and Spark would plan each of them with all that led to it."""
        return one.localCheckpoint()

    seen = keep(consumers(events))
    ((count,),) = seen.agg(F.coalesce(F.sum("events"), F.lit(0))).collect()
    seen, events = together(seen, count), together(events, count)
    end = keep(seen.agg(F.greatest(F.max("last"), F.lit(until).cast("timestamp")).alias("end")))
    hosts = keep(clocks(events))
    members = keep(participants(events))
    began = keep(generations(events, members))
    stirred = keep(stirs(events))
    quiet = keep(lulls(stirred, end, limits.stranded))
    gone = vanished(members, began)
    # Of all events about half: kept as columns, which Spark packs tight.
    screened = screen(events).where("pause is not null or odd or last").persist()
    restless = unsettled(stirred, end, limits.settle, began)
    owned = keep(_ended(intervals(events, _candidates(screened, quiet, gone, began, limits), seen), gone))
    met = keep(meetings(owned))
    gap = keep(gaps(owned, end))
    stranded = keep(checks.stranded(gap, quiet, events, limits))
    found = (
        checks.contradictions(met, members, hosts, end, limits),
        stranded,
        checks.pauses(gap, quiet, stranded, limits),
        checks.needless(met, members, began),
        checks.rebalance_storms(storms(began, limits.storm, limits.storm_within), stirred, limits),
        checks.never_settles(restless, end),
    )
    return Audit(
        findings=reduce(DataFrame.unionByName, found),
        groups=_groups(seen, screened, began, restless),
        pauses=_pauses(seen, screened),
        clocks=hosts,
        screened=screened,
    )


def _candidates(
    screened: DataFrame, quiet: DataFrame, gone: DataFrame, began: DataFrame, limits: Thresholds
) -> DataFrame:
    """The partitions about which there may be something to say, as numbers; too many do no harm."""
    micros = 1_000_000
    short = int(min(limits.stranded, limits.pause) * micros)
    there = began.select("family", "generation", F.col("era").alias("era_to"))
    here = began.select("family", F.col("generation").alias("revoked_in"), F.col("era").alias("era_from"))
    calm = quiet.where("alive").select(
        F.col("family").alias("_family"),
        F.unix_micros("since").alias("calm"),
        F.unix_micros("until").alias("stir"),
    )
    still = F.col("stir") - F.greatest("calm", "at") >= int(limits.stranded * micros)
    left = gone.select(F.xxhash64("group").alias("family"), F.xxhash64("consumer").alias("consumer"))
    some = (
        screened.where(F.col("odd") | (F.col("pause") >= short)),
        screened.where("moved")
        .join(there, ["family", "generation"])
        .join(here, ["family", "revoked_in"])
        .where("era_from = era_to"),
        screened.where("last and not begins").join(
            calm, (F.col("family") == F.col("_family")) & still, "left_semi"
        ),
        screened.where("last and begins").join(left, ["family", "consumer"], "left_semi"),
    )
    return reduce(DataFrame.union, (one.select("key") for one in some)).distinct()


def _ended(owned: DataFrame, gone: DataFrame) -> DataFrame:
    """What a consumer owned that the group went on without ends when it did."""
    over = F.when(F.col("gone").isNotNull(), F.greatest("gone", "began"))
    return (
        owned.join(gone, ["group", "consumer"], "left")
        .withColumn("ended", F.coalesce("ended", over))
        .select(*owned.columns)
    )


def _groups(seen: DataFrame, screened: DataFrame, began: DataFrame, restless: DataFrame) -> DataFrame:
    """One row for each group, what there is of it and whether it had come to rest."""
    groups = seen.groupBy("group").agg(
        F.xxhash64("group").alias("family"),
        F.count("consumer").alias("consumers"),
        F.sum("events").alias("events"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    )
    partitions = screened.where("last").groupBy("family").agg(F.count("*").alias("partitions"))
    rebalances = began.groupBy("group").agg(F.count("*").alias("rebalances"))
    unrest = restless.select("group", F.lit(False).alias("settled"))
    return (
        groups.join(partitions, "family", "left")
        .join(rebalances, "group", "left")
        .join(unrest, "group", "left")
        .na.fill(0, ["partitions", "rebalances"])
        .na.fill(True, ["settled"])
        .select("group", "consumers", "partitions", "events", "rebalances", "first", "last", "settled")
    )


def _pauses(seen: DataFrame, screened: DataFrame) -> DataFrame:
    """How long partitions were without an owner between two, for each group."""
    names = seen.select("group").distinct().withColumn("family", F.xxhash64("group"))
    pause = F.col("pause") / 1e6
    return (
        screened.where("pause is not null")
        .groupBy("family")
        .agg(
            F.count("*").alias("handovers"),
            F.percentile_approx(pause, 0.5).alias("p50"),
            F.percentile_approx(pause, 0.95).alias("p95"),
            F.max(pause).alias("longest"),
        )
        .join(names, "family")
        .select("group", "handovers", "p50", "p95", "longest")
    )
