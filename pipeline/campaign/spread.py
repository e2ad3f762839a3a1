"""A campaign on Spark: each slice is a job, whose tasks play in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)
from rebalance_verifier.pipeline.campaign import campaign as campaigns
from rebalance_verifier.pipeline.campaign.campaign import COLUMNS, Campaign, Player, Slice, VerdictRow
from rebalance_verifier.pipeline.session import LIGHT, session

_TYPES = {
    "BIGINT": LongType(),
    "INTEGER": IntegerType(),
    "VARCHAR": StringType(),
    "VARCHAR[]": ArrayType(StringType()),
    "MAP(VARCHAR, BIGINT)": MapType(StringType(), LongType()),
}
VERDICTS = StructType([StructField(name, _TYPES[kind]) for name, kind in COLUMNS.items()])
ARROW = to_arrow_schema(VERDICTS)


def run(
    master: str,
    player: Player,
    campaign: Campaign,
    directory: Path,
    limit: float,
    report_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Play all slices that are not committed on a ``master`` of Spark. ``limit``: seconds that a scenario may
    take.

    ``report_progress`` is called with how many scenarios are done. ``directory`` is one that driver and
    workers see. Raises CampaignError where the player does not get ready on a worker, SparkMissing.
    """

    def commit(one: Slice, report: Callable[[int], None]) -> None:
        rows = play(spark, player, campaign.seed, one, limit)
        try:
            rows.write.mode("overwrite").parquet(str(campaigns.slice_path(directory.absolute(), one)))
        except PySparkException as error:
            raise (campaigns.unready(str(error)) or error) from error

    with session(master, memory="2g", settings=LIGHT) as spark:
        campaigns.run(campaign, directory, commit, report_progress)


def play(spark: SparkSession, player: Player, seed: int, one: Slice, limit: float) -> DataFrame:
    """Return the rows (``VERDICTS``) of a slice; nothing is played before they are asked for."""
    tasks = [(numbers.start, numbers.stop) for numbers in campaigns.tasks(one)]
    chunks = spark.range(0, len(tasks), 1, len(tasks))
    return chunks.mapInArrow(partial(_play, tasks, player=player, seed=seed, limit=limit), VERDICTS)


def _play(
    tasks: Sequence[tuple[int, int]],
    batches: Iterable[pa.RecordBatch],
    player: Player,
    seed: int,
    limit: float,
) -> Iterator[pa.RecordBatch]:
    """On a worker: numbers of tasks in, the rows of their scenarios out."""
    _find_from_anywhere()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for rows in campaigns.rows(player, seed, range(*tasks[number]), limit):
                yield _batch(rows)


def _find_from_anywhere() -> None:
    """Spark names the archives that it sends from the directory of its worker, which players leave."""
    sys.path[:] = [os.path.abspath(one) if one else one for one in sys.path]
    for module in [*sys.modules.values()]:
        path = getattr(module, "__dict__", {}).get("__path__")
        if isinstance(path, list):
            path[:] = map(os.path.abspath, path)


def _batch(rows: Sequence[VerdictRow]) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), ARROW, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(values, f.type) for values, f in columns], schema=ARROW)
