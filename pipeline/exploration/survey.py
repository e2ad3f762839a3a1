"""What is to be counted of a level: one small table, added up by Spark, from which the tally follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, Row, StringType, StructField, StructType
from rebalance_verifier.explore.engine.fast import count
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.explore.engine.visited import Visited
from rebalance_verifier.pipeline.exploration.states import SearchSpec

SURVEY = StructType(
    [
        StructField("what", StringType(), nullable=False),  # one of the words below
        StructField("name", StringType(), nullable=False),  # of an action (its place), a clause, a value
        StructField("states", LongType()),
        StructField("steps", LongType()),
        StructField("least", LongType()),  # out-degree
        StructField("most", LongType()),
        StructField("sentence", StringType()),  # the least of what a clause says
        StructField("value", BinaryType()),
    ]
)
"""Rows of these kinds: ``found`` (states, and in steps how many they stand for), ``always`` (states that
break a clause), ``expanded``, ``deadlock``, ``action``, ``breach``, ``witness`` (steps), and
``value``, which occurs in a state after these."""

_ARROW = to_arrow_schema(SURVEY)

Batches = Iterator[pa.RecordBatch]

_ROW = {"states": 0, "steps": 0, "least": None, "most": None, "sentence": None, "value": None}


def survey(level: DataFrame, spec: SearchSpec) -> DataFrame:
    """Survey the states of ``level`` and the steps out of them. One row for each (what, name)."""
    return (
        level.mapInArrow(_surveyor(spec), SURVEY)
        .groupBy("what", "name")
        .agg(
            *(f.sum(name).alias(name) for name in ("states", "steps")),
            f.min("least").alias("least"),
            f.max("most").alias("most"),
            f.min("sentence").alias("sentence"),
            f.any_value("value").alias("value"),
        )
    )


def _surveyor(spec: SearchSpec) -> Callable[[Batches], Batches]:
    def go(batches: Batches) -> Batches:
        worker = spec.worker_space()
        space, handled = worker.space, Visited()
        # What is wrong with states, and with the steps out of them.
        here, onward = (Tally.of(space.machine, space.rules) for _ in range(2))
        for batch in batches:
            if not batch.num_rows:
                continue
            states = worker.states(batch)
            keys = space.hashes(states)
            stands_for = len(keys) if space.orbits is None else int(space.orbits.represent(states)[2].sum())
            here.level(len(keys), stands_for)
            for clause, sentence, where in space.always.breaches(states):
                here.breach(clause, sentence, 0, len(where))
            candidates = space.candidates(states, keys, space.tables)
            count(space, onward, len(keys), candidates, 1)
            if candidates is not None:
                # For the values, which a job may only send once all workers can be told of them.
                worker.after(states, candidates, handled)
        rows = [] if not here.levels else [*_rows(here, onward), *_fresh(worker.fresh())]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    return go


def _rows(here: Tally, onward: Tally) -> Iterator[dict[str, object]]:
    def row(what: str, name: object = "", **more: object) -> dict[str, object]:
        return {"what": what, "name": str(name), **_ROW, **more}

    yield row("found", states=here.distinct, steps=here.unreduced)
    yield row(
        "expanded", states=onward.expanded, steps=onward.generated, least=onward.least, most=onward.most
    )
    yield row("deadlock", states=onward.deadlocks)
    for index, (states, steps) in enumerate(onward.taken):
        if steps:
            yield row("action", index, states=states, steps=steps)
    for breach in here.breaches.values():
        yield row("always", breach.clause, states=breach.count, sentence=breach.sentence)
    for breach in onward.breaches.values():
        yield row("breach", breach.clause, steps=breach.count, sentence=breach.sentence)
    for witness in onward.witnesses.values():
        if witness.count:
            yield row("witness", witness.clause, steps=witness.count)


def _fresh(values: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, object]]:
    for name, value in values:
        yield {"what": "value", "name": name, **_ROW, "value": value}


def found(rows: Iterable[Row], tally: Tally) -> None:
    """Add a level, and what its states break, to ``tally``. No level without states."""
    depth = len(tally.levels)
    for row in rows:
        match row.what:
            case "found":
                tally.level(row.states, row.steps)
            case "always":
                tally.breach(row.name, row.sentence, depth, row.states)


def expanded(rows: Iterable[Row], tally: Tally) -> None:
    """Add the steps out of the level that was found last to ``tally``."""
    by = {(row.what, row.name): row for row in rows}
    depth = len(tally.levels)
    dead = by["deadlock", ""].states
    whole = by["expanded", ""]
    tally.expand(whole.states, whole.steps, whole.least, whole.most, dead, depth - 1)
    for (what, name), row in by.items():
        match what:
            case "action":
                tally.take(int(name), row.states, row.steps)
            case "breach":
                tally.breach(name, row.sentence, depth, row.steps)
            case "witness":
                tally.witness(name, depth, row.steps)


def values(rows: Iterable[Row]) -> list[bytes]:
    """Return the values of a survey, by name."""
    return [bytes(row.value) for row in sorted(rows, key=_name) if row.what == "value"]


def _name(row: Row) -> str:
    name: str = row.name
    return name
