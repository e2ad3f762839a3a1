"""One exploration from end to end: search, liveness, witnesses, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import islice
from typing import Any, NamedTuple

from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.checkpoint import Checkpoint
from rebalance_verifier.explore.engine.search import (
    Coverage,
    Exploration,
    Limits,
    ModelTrace,
    Progress,
    Stop,
    merge,
)
from rebalance_verifier.explore.groups.floors import due
from rebalance_verifier.explore.groups.runs import ENDINGS, SavedRun, of_lasso, play
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.explore.liveness.lasso import Lasso
from rebalance_verifier.explore.liveness.liveness import Liveness
from rebalance_verifier.explore.random import walks
from rebalance_verifier.explore.random.minimise import minimise
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.properties.group.own import WORST, gravity, outranked, rules
from rebalance_verifier.properties.group.rules import Rules


@dataclass(frozen=True, kw_only=True)
class ExplorationPlan:
    """Plan of an exploration. ``origin`` goes into the traces.

    ``strategy`` is "breadth" (the engines), "depth" or "swarm" (``explore.random.walks``). ``most``
    is how many shortest traces of a clause are wanted; ``walks`` and ``steps`` are for the last two of these.
    ``invariants`` are asked besides the clauses (`properties.group.own`), and of the situations
    ``witnesses`` a trace is wanted.
    ``engine`` is "fast", "plain", or the name of an engine that is handed in.
    """

    setup: Setup
    origin: Mapping[str, Any]
    engine: str = "fast"
    symmetry: bool = False
    exact: bool = False
    limits: Limits = field(default_factory=Limits)
    asks_liveness: bool = True
    most: int = 1
    strategy: str = "breadth"
    seed: int = 0
    walks: int = 1_000
    steps: int = 200
    invariants: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()

    @property
    def rules(self) -> Rules:
        """Return all rules of the search. Raises InvariantError."""
        return rules(self.setup, self.invariants)


ReportSearch = Callable[[Progress], None]


class OtherEngine(NamedTuple):
    """An engine that is not of this package. ``search`` is a block, in which the answers can be asked.

    ``kept`` says what an unfinished search can be gone on with. Of more than ``collected`` states the graph
    is not gathered in this process, so liveness is not asked.
    """

    search: Callable[[ExplorationPlan, ReportSearch | None], AbstractContextManager[Exploration]]
    kept: str
    collected: int


@dataclass(frozen=True, kw_only=True)
class ExplorationViolation:
    """A broken clause with its traces, the shortest first. ``shortest``: nothing shorter breaks it.

    ``count`` is how many states or steps break it, 0 where they were not counted.
    """

    clause: str
    sentence: str
    runs: tuple[SavedRun, ...]
    shortest: bool
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class Explored:
    """Result of an exploration. ``search`` is None for walks, ``lively`` where liveness was not asked or
    could not be; ``unasked`` says why. ``missed`` are the witnesses that were due, ``checkpoint`` is where an
    unfinished search can be gone on from."""

    plan: ExplorationPlan
    built: Machine
    coverage: Coverage
    violations: tuple[ExplorationViolation, ...]
    search: Exploration | None = None
    lively: Liveness | None = None
    unasked: str = ""
    missed: tuple[str, ...] = ()
    checkpoint: str = ""
    shown: Mapping[str, int] = field(default_factory=dict)
    witnessed: tuple[ExplorationViolation, ...] = ()
    """Of the situations whose traces were wanted those that were shown."""

    @property
    def interrupted(self) -> bool:
        """Check whether Ctrl-C ended it."""
        return self.search is not None and self.search.stop is Stop.INTERRUPTED

    @property
    def verdict(self) -> Verdict:
        """Return the verdict. Broken clauses come first; then whether all was seen that had to be."""
        if self.violations:
            return Verdict.VIOLATION
        complete = self.search is not None and self.search.complete
        return Verdict.CONFORMANT if complete and not self.missed else Verdict.INCONCLUSIVE

    @property
    def may_be_worse(self) -> bool:
        """Check whether the search ended before it was known that nothing worse than the violations is
        broken."""
        complete = self.search is not None and self.search.complete
        worst = any(one.clause == WORST for one in self.violations)
        return bool(self.violations) and not worst and not complete

    @property
    def exit(self) -> Exit:
        """Return the exit code."""
        return Exit.of(self.verdict, interrupted=self.interrupted)

    @property
    def clause_count(self) -> int:
        """Return how many clauses were asked."""
        names = list(self.plan.rules.safety)
        if self.lively is not None:
            names += self.plan.rules.lively
        return len(set(names))


def run_exploration(
    plan: ExplorationPlan,
    *,
    report_progress: ReportSearch | None = None,
    report_stage: Callable[[str], None] = lambda stage: None,
    checkpoint: Checkpoint | None = None,
    other: OtherEngine | None = None,
) -> Explored:
    """Run ``plan``, on the engine ``other`` if one is given.

    ``report_stage`` is called with what is done after the search, when it begins.

    ``checkpoint``: what an unfinished search of the fast engine is saved to, and goes on from.
    """
    built, required = machine(plan.setup), plan.rules
    mild = outranked(required.broken_by)
    plan = replace(plan, limits=replace(plan.limits, mild=mild))
    if plan.strategy != "breadth":
        return _walked(plan, built, required, report_progress)
    if other is not None:
        with other.search(plan, report_progress) as search:
            whole = search.stop in (Stop.COMPLETE, Stop.BREACH)
            kept, unasked = "" if whole else other.kept, _unasked(plan, search, other.collected)
            return _judged(plan, built, required, search, kept, unasked, report_stage)
    if plan.engine == "plain":
        search = plain.explore(built, required, plan.limits)
    else:
        search = fast.explore(
            built,
            required,
            plan.limits,
            symmetry=plan.symmetry,
            exact=plan.exact,
            progress=report_progress,
            checkpoint=checkpoint,
        )
    kept = str(checkpoint.path) if checkpoint is not None and checkpoint.path.exists() else ""
    return _judged(plan, built, required, search, kept, _unasked(plan, search), report_stage)


def _judged(
    plan: ExplorationPlan,
    built: Machine,
    required: Rules,
    search: Exploration,
    kept: str,
    unasked: str,
    report_stage: Callable[[str], None],
) -> Explored:
    """Traces, liveness and witnesses of a search."""
    if search.breaches:
        report_stage("making the shortest traces")
    violations = [_traced(plan, search, b.clause, b.sentence, b.count) for b in search.breaches]
    witnessed = [
        _traced(plan, search, one.clause, f"a run that shows: {one.clause}", one.count)
        for one in search.witnesses
        if one.count and one.clause in plan.witnesses
    ]
    if not unasked:
        report_stage("asking whether the group settles")
    lively = None if unasked else liveness.judge(built, required, search)
    if lively is not None:
        violations += list(_unsettled(plan, lively))
    violations.sort(key=lambda one: gravity(one.clause))
    missed = [w for w in due(plan.setup) if w in search.coverage.missed] if search.complete else []
    return Explored(
        plan=plan,
        built=built,
        coverage=search.coverage,
        violations=tuple(violations),
        search=search,
        lively=lively,
        unasked=unasked,
        missed=tuple(missed),
        checkpoint=kept,
        shown={w.clause: w.depth for w in search.witnesses if w.count},
        witnessed=tuple(witnessed),
    )


def _traced(
    plan: ExplorationPlan, search: Exploration, clause: str, sentence: str, count: int
) -> ExplorationViolation:
    """Return what a search met, with shortest traces."""
    runs = tuple(
        saved_run(plan.setup, plan.origin, clause, trace)
        for trace in islice(search.traces(clause), plan.most)
    )
    return ExplorationViolation(clause=clause, sentence=sentence, runs=runs, shortest=True, count=count)


def _unasked(plan: ExplorationPlan, search: Exploration, collected: int | None = None) -> str:
    """Return why liveness cannot be asked; empty when it can. Of at most ``collected`` states the graph is
    here."""
    if not plan.asks_liveness:
        return "not asked (--no-liveness)"
    if plan.symmetry:
        return "not asked: symmetry merges states, and a cycle of those need not be a cycle"
    if not search.complete:
        return f"not asked: the search ended before its end ({search.stop})"
    if collected is not None and search.distinct > collected:
        return f"not asked: it needs the whole graph here, and there are over {collected:,} states"
    return ""


def _unsettled(plan: ExplorationPlan, lively: Liveness) -> Iterator[ExplorationViolation]:
    for settling in lively.settling:
        if settling.lasso is not None:
            yield ExplorationViolation(
                clause=settling.clause,
                sentence=CLAUSES[settling.clause].sentence,
                runs=(saved_run(plan.setup, plan.origin, settling.clause, settling.lasso),),
                shortest=settling.least,
                count=settling.stuck,
            )
    settles = all(settling.holds for settling in lively.settling)
    for counted in lively.counts:
        # Who rebalances for ever does not settle, which has been said.
        trace = counted.trace if counted.lasso is None else counted.lasso if settles else None
        if trace is not None and not counted.holds:
            run = saved_run(plan.setup, plan.origin, counted.clause, trace)
            yield ExplorationViolation(
                clause=counted.clause, sentence=run.sentence, runs=(run,), shortest=False
            )


def saved_run(setup: Setup, origin: Mapping[str, Any], clause: str, trace: ModelTrace | Lasso) -> SavedRun:
    """Return the trace as it will be written; its sentence names the generations of this very run."""
    if isinstance(trace, Lasso):
        run = of_lasso(setup, trace, clause)
    elif clause in ENDINGS:
        run = of_lasso(setup, Lasso(trace.initial, trace.events, ()), clause)
    else:
        run = SavedRun(setup=setup, clause=clause, events=trace.events)
        run = replace(run, sentence=play(run).sentence or "")
    return replace(run, origin=origin, suite_version=version("rebalance-verifier"))


def _walked(
    plan: ExplorationPlan, built: Machine, required: Rules, report_progress: ReportSearch | None
) -> Explored:
    """Walks, until the first that breaks what nothing outranks (or all of them with ``go_on``), then made
    short."""
    last: list[Coverage] = []

    def note(coverage: Coverage) -> None:
        last[:] = [coverage]
        if report_progress is not None:
            report_progress(
                Progress(
                    depth=coverage.depth,
                    frontier=0,
                    distinct=coverage.distinct,
                    generated=coverage.generated,
                    seconds=0.0,
                )
            )

    if plan.strategy == "depth":
        found = walks.depth_first(
            built,
            required,
            plan.steps,
            states=plan.limits.states,
            mild=plan.limits.mild,
            search_on=None if plan.limits.go_on else walks.SEARCH_ON,
            progress=note,
        )
    else:
        found = walks.swarm(
            built,
            required,
            plan.seed,
            walks=plan.walks,
            steps=plan.steps,
            mild=plan.limits.mild,
            progress=note,
        )
    first: dict[str, ModelTrace] = {}
    for walk in found:
        for broken in walk.broken:
            known = first.get(broken.clause)
            if known is None or len(walk.trace.events) < len(known.events):
                first[broken.clause] = walk.trace
        last[:] = last or [walk.coverage]
        if plan.limits.ends((broken.clause for broken in walk.broken), 0):
            last[:] = [walk.coverage] if plan.strategy == "depth" else last
            break
    violations = []
    for clause in sorted(first, key=lambda clause: (gravity(clause), clause)):
        small = minimise(built, required, clause, first[clause])
        run = saved_run(plan.setup, plan.origin, clause, small.trace)
        violations.append(
            ExplorationViolation(clause=clause, sentence=run.sentence, runs=(run,), shortest=small.shortest)
        )
    coverage = last[0] if last else merge(())
    why = "not asked: walks see no cycles, only runs that end"
    return Explored(plan=plan, built=built, coverage=coverage, violations=tuple(violations), unasked=why)
