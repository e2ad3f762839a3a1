"""How far apart the clocks of the hosts are, from the log itself.

The coordinator answers all members of a generation at one moment, so the members note at one moment that
they have joined it, up to the time that an answer travels. A host that is always early or late among them
has a clock that is behind or ahead.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from rebalance.pipeline.audit.sources.events import Kind

UNKNOWN = 1.0
"""Seconds by which clocks may differ of which nothing is known; with NTP it is a small part of that."""


def host() -> Column:
    """Whose clock it is. A consumer of which the log does not say it has one of its own."""
    return F.coalesce("host", "consumer")


def clocks(events: DataFrame) -> DataFrame:
    """Each host with ``ahead`` (seconds, of the others), ``spread`` (in 95 of 100 generations it was not
    farther off than that) and ``samples`` (generations). Hosts that never joined with another are missing."""
    joined = (
        events.where(F.col("kind") == Kind.JOINED)
        .where(F.col("consumer").isNotNull() & F.col("generation").isNotNull())
        .groupBy("group", "generation", host().alias("host"))
        .agg((F.min(F.unix_micros("at")) / 1e6).alias("at"))
    )
    middle = joined.groupBy("group", "generation").agg(
        F.median("at").alias("middle"), F.count("*").alias("hosts")
    )
    off = (
        joined.join(middle.where("hosts > 1"), ["group", "generation"])
        .withColumn("off", F.col("at") - F.col("middle"))
        .select("host", "off")
    )
    ahead = off.groupBy("host").agg(F.median("off").alias("ahead"), F.count("*").alias("samples"))
    spread = (
        off.join(ahead, "host")
        .groupBy("host")
        .agg(F.percentile(F.abs(F.col("off") - F.col("ahead")), 0.95).alias("spread"))
    )
    return ahead.join(spread, "host").select("host", "ahead", "spread", "samples")
