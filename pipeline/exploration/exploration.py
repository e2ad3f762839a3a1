"""The engine for what outgrows one machine: breadth-first search with the states in Spark.

It says what ``explore.engine.fast`` says, and expands states with the same tables, a batch at a time, in
Spark's Python workers (``pipeline.exploration.states``). What is found lies below one directory, which every
worker reaches:

    levels/level=007     the states of depth 7, each once, by key
    surveys/level=007    what was counted of them (``pipeline.exploration.survey``); there when the level is
    whole

A level is what the one before leads to, each state once, without all that earlier levels hold. Since a
survey is one file, written when its level is whole, a search that was killed goes on from the last survey.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, Row, StructField, StructType
from rebalance_verifier.explore.engine.fast import Search, collision
from rebalance_verifier.explore.engine.history import LevelHistory, about, follow, leading
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.search import (
    Exploration,
    Limits,
    ModelTrace,
    OrbitGraph,
    Progress,
    Stop,
)
from rebalance_verifier.explore.engine.space import Space
from rebalance_verifier.explore.engine.tables import narrow
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.explore.engine.visited import Hashes, Visited
from rebalance_verifier.explore.groups.exploration import ExplorationPlan, OtherEngine
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.pipeline.exploration import survey
from rebalance_verifier.pipeline.exploration.states import KEY, SearchSpec, schema
from rebalance_verifier.pipeline.session import session
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.rules import Rules

NO_LIMITS = Limits()

COLLECTED = 2_000_000
"""How many states may be gathered here for what needs the whole graph; about 2 GB."""

StatePredicate = Callable[[Space, Columns, Hashes], NDArray[np.bool_]]
"""A question about states: the space, their columns, their keys; which of them it is true of."""

Batches = Iterator[pa.RecordBatch]


def group(setup: Setup) -> tuple[Machine, Rules]:
    """Return the machine of a group and what must hold of it: the ``build`` of a search, with ``partial``."""
    return machine(setup), rules(setup)


class Store:
    """The directory of a search: a path or a URI that Spark and all its workers reach."""

    def __init__(self, spark: SparkSession, where: str, components: int) -> None:
        self.spark, self.where, self.row = spark, where, schema(components)

    def level(self, *depths: int) -> DataFrame:
        """Return the states of these depths."""
        paths = [self._path("levels", depth) for depth in depths]
        return self.spark.read.schema(self.row).parquet(*paths)

    def begin(self, first: pa.RecordBatch) -> None:
        """Write level 0, and forget what was counted of an earlier search."""
        for depth in self.surveys():
            self._write("surveys", depth, self.spark.createDataFrame([], survey.SURVEY))
        self._write("levels", 0, self.spark.createDataFrame(pa.Table.from_batches([first])))

    def expand(self, depth: int, spec: SearchSpec) -> None:
        """Write the level after ``depth``."""
        known = self.level(*range(depth + 1)).select(KEY)
        after = self.level(depth).mapInArrow(_successors(spec), self.row)
        self._write("levels", depth + 1, after.dropDuplicates([KEY]).join(known, KEY, "left_anti"))

    def survey(self, depth: int, spec: SearchSpec) -> list[Row]:
        """Count a level, write that down, and give it back. No rows: the level is empty."""
        self._write("surveys", depth, survey.survey(self.level(depth), spec).coalesce(1))
        return self.spark.read.schema(survey.SURVEY).parquet(self._path("surveys", depth)).collect()

    def surveys(self) -> dict[int, list[Row]]:
        """Return what was counted of each level that is whole."""
        try:
            saved = self.spark.read.schema(survey.SURVEY).parquet(f"{self.where}/surveys").collect()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return {}
            raise
        by: dict[int, list[Row]] = {}
        for row in saved:
            by.setdefault(row.level, []).append(row)
        return by

    def _write(self, what: str, depth: int, rows: DataFrame) -> None:
        rows.write.mode("overwrite").parquet(self._path(what, depth))

    def _path(self, what: str, depth: int) -> str:
        return f"{self.where}/{what}/level={depth:03}"


def _successors(spec: SearchSpec) -> Callable[[Batches], Batches]:
    def go(batches: Batches) -> Batches:
        worker = spec.worker_space()
        handled = Visited()
        for batch in batches:
            states = worker.states(batch)
            keys = worker.space.hashes(states)
            candidates = worker.space.candidates(states, keys, worker.space.tables)
            if candidates is not None:
                yield worker.rows(*worker.after(states, candidates, handled))

    return go


def explore(
    spark: SparkSession,
    build: Callable[[], tuple[Machine, Rules]],
    where: str,
    limits: Limits = NO_LIMITS,
    *,
    symmetry: bool = False,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Search the machine that ``build`` makes and ask its rules of every state and step.

    ``build`` is called in every worker too, so it can be pickled and its modules can be imported there.
    ``where`` is the directory of this search alone; ``resume`` goes on with what is there, else it is
    written anew. ``limits.memory`` is Spark's affair and not looked at. ``progress`` is called after each
    level. Ctrl-C (KeyboardInterrupt) drops the level being searched.

    The answers need ``spark`` for as long as their ``history`` is asked. Raises ValueError when symmetries
    lead out of the initial states.
    """
    clock = time.monotonic()
    spec = SearchSpec(build, uuid.uuid4().hex, symmetry)
    worker = spec.worker_space()
    machine_, rules_ = worker.space.machine, worker.space.rules
    start = Search(worker.space, limits)
    start.begin()
    spec = spec.knowing(value for _, value in worker.fresh())
    store = Store(spark, where, len(machine_.components))
    saved = store.surveys() if resume else {}
    tally = before = Tally.of(machine_, rules_)
    depth = 0
    try:
        if 0 not in saved:
            first = start.levels[0]
            store.begin(worker.rows(first, worker.space.hashes(first)))
        while rows := saved.get(depth) or store.survey(depth, spec):
            survey.found(rows, tally)
            spec = spec.knowing(survey.values(rows))
            before = tally.copy()
            size = tally.levels[-1]
            if progress is not None:
                seconds = time.monotonic() - clock
                progress(
                    Progress(
                        depth=depth,
                        frontier=size,
                        distinct=tally.distinct,
                        generated=tally.generated,
                        seconds=seconds,
                    )
                )
            if (stop := tally.stop(size, limits)) is not None:
                break
            survey.expanded(rows, tally)
            if depth + 1 not in saved:
                store.expand(depth, spec)
            depth += 1
        else:
            stop = Stop.COMPLETE
    except KeyboardInterrupt:
        if not before.levels:
            raise
        stop, tally = Stop.INTERRUPTED, before
    worker.learn(spec.values)
    # Every successor was hashed before it got its normal form.
    tally.relabelled = tally.generated
    odds = collision(tally, 1 if worker.space.orbits is None else worker.space.orbits.order)
    return tally.result(stop, SparkHistory(store, spec, len(tally.levels)), 0.0, odds)


def engine(master: str, where: str, *, resume: bool = False) -> OtherEngine:
    """This engine for ``run_exploration``; its session on ``master`` lasts as long as answers are asked.

    Its searches raise SparkMissing.
    """

    @contextmanager
    def search(
        plan: ExplorationPlan, report_progress: Callable[[Progress], None] | None
    ) -> Iterator[Exploration]:
        with session(master) as spark:
            yield explore(
                spark,
                partial(group, plan.setup),
                where,
                plan.limits,
                symmetry=plan.symmetry,
                resume=resume,
                progress=report_progress,
            )

    return OtherEngine(search, where, COLLECTED)


class SparkHistory:
    """The levels of a search, and the questions that can be asked of them (``search.SearchHistory``).

    Going back from a breach, only the keys of the states on a shortest way to it are gathered here.
    """

    def __init__(self, store: Store, spec: SearchSpec, levels: int) -> None:
        self.store, self.spec, self.levels = store, spec, levels

    def traces(self, clause: str, depth: int) -> Iterator[ModelTrace]:
        """Yield every trace of ``depth`` events whose last state, or last step, is about ``clause``."""
        goals = np.zeros(0, np.uint64)
        if depth < self.levels:
            goals = self._keys(depth, partial(about, clause=clause))
        ways = [goals]
        for here in reversed(range(depth)):
            last = clause if here == depth - 1 else ""
            ways.append(self._keys(here, partial(leading, goals=ways[-1], clause=last)))
        return follow(self.spec.worker_space().space, ways[::-1], clause)

    def traces_to(self, index: int) -> Iterator[ModelTrace]:
        """Yield every shortest trace to the state with this index. Raises ValueError when there are too
        many."""
        return self._gathered().traces_to(index)

    def graph(self) -> OrbitGraph:
        """Return the steps that are no faults. Raises ValueError when there are too many states."""
        return self._gathered().graph()

    def _gathered(self) -> LevelHistory:
        levels: list[Columns] = []
        room = COLLECTED
        worker = self.spec.worker_space()
        for depth in range(self.levels):
            rows = self.store.level(depth).limit(room + 1).toArrow().sort_by(KEY)
            room -= len(rows)
            if room < 0:
                raise ValueError(f"no graph: there are more than {COLLECTED:,} states")
            levels.append([narrow(ids) for ids in worker.states(rows)])
        return LevelHistory(worker.space, levels)

    def _keys(self, depth: int, predicate: StatePredicate) -> Hashes:
        """Return the sorted keys of the states of which ``asked`` is true."""
        keys = self.store.level(depth).mapInArrow(_choose(self.spec, predicate), _KEYS).toArrow().column(KEY)
        chosen: Hashes = np.sort(keys.to_numpy().view(np.uint64))
        return chosen


_KEYS = StructType([StructField(KEY, LongType(), nullable=False)])


def _choose(spec: SearchSpec, predicate: StatePredicate) -> Callable[[Batches], Batches]:
    def go(batches: Batches) -> Batches:
        worker = spec.worker_space()
        for batch in batches:
            states = worker.states(batch)
            keys = worker.space.hashes(states)
            chosen = keys[predicate(worker.space, states, keys)]
            yield pa.RecordBatch.from_arrays([pa.array(chosen.view(np.int64))], names=[KEY])

    return go
