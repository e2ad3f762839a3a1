"""Lines of text files with file and line number, which Spark's text source leaves out.

Spark reads a large file in blocks, several at a time, so nobody counts its lines. A first pass counts those
of each block; the number of a line is then its place in the block plus the lines of the blocks before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from rebalance_verifier.pipeline.audit.sources.reading import NoInput

BLOCKS = "spark.sql.files.minPartitionNum"
"""Spark cuts files by the number of cores it sees. Both passes must see the same, whoever joins meanwhile."""


FEWEST = "16"
"""Not many: each costs the making of its code, a second of CPU. Spark cuts at 128 MB anyway."""


class Lines(NamedTuple):
    """Lines that were read."""

    lines: DataFrame
    """file string, line bigint (from 1), value string (without line end, as it is: perhaps not UTF-8)."""
    counts: DataFrame
    """file string, lines bigint. Cached, a row for each file that is not empty."""


def read(spark: SparkSession, paths: Sequence[str]) -> Lines:
    """The lines of files, of directories with all below them, and of globs; compressed ones too.

    A line ends where a newline is, with or without a carriage return before it, so numbers are those of
    ``grep -n``. A file must not grow meanwhile. Raises NoInput.
    """
    if spark.conf.get(BLOCKS, None) is None:
        spark.conf.set(BLOCKS, FEWEST)
    reader = spark.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    try:
        text = reader.text(list(paths))
    except AnalysisException as error:
        raise NoInput(_reason(error)) from error
    numbered = text.select(
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("id"),
        "value",
    )
    in_order = Window.partitionBy("path").orderBy("block")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    blocks = (
        numbered.groupBy("path", "block")
        .agg(F.min("id").alias("first"), F.count("*").alias("lines"))
        .select(
            "path",
            "block",
            (F.col("first") - F.coalesce(F.sum("lines").over(before), F.lit(0)) - 1).alias("less"),
            "lines",
            _name(F.col("path")).alias("file"),
        )
        .persist()
    )
    lost = F.raise_error(
        F.concat(F.lit("the blocks of this file changed while it was read: "), F.col("path"))
    )
    lines = numbered.join(F.broadcast(blocks.drop("lines")), ["path", "block"], "left").select(
        F.coalesce(F.col("file"), lost.cast("string")).alias("file"),
        (F.col("id") - F.col("less")).alias("line"),
        F.rtrim("value", F.lit("\r")).alias("value"),
    )
    return Lines(lines, blocks.groupBy("file").agg(F.sum("lines").alias("lines")))


def files(spark: SparkSession, path: str) -> list[str]:
    """The files that a path stands for, sorted; as Spark names them. Raises NoInput when there are none."""
    if "://" not in path and Path(path).is_file():
        return [path]
    try:
        found = spark.read.option("recursiveFileLookup", "true").text(path).inputFiles()
    except AnalysisException as error:
        raise NoInput(_reason(error)) from error
    if not found:
        raise NoInput(f"{path}: no files there")
    return sorted(found)


def literal(path: str) -> str:
    """A path to read from that is no pattern, whatever is in its name."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _name(path: Column) -> Column:
    """A path as people write it: Spark's is a URL, with what is special in URLs escaped."""
    plain = F.coalesce(F.try_url_decode(F.replace(path, F.lit("+"), F.lit("%2B"))), path)
    return F.regexp_replace(plain, "^file:(//)?(?=/)", "")


def _reason(error: AnalysisException) -> str:
    if error.getCondition() == "PATH_NOT_FOUND":
        path = (error.getMessageParameters() or {}).get("path", "?").removeprefix("file:")
        return f"{path}: no such file or directory, or nothing that matches"
    first, *_ = str(error).splitlines() or [""]
    return first
