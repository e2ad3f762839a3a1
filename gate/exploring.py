"""One exploration from end to end: search, liveness, witnesses, and the verdict that follows.

Nothing here prints; ``gate.report.exploration`` renders what comes out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from rebalance.explore import fast, liveness, plain, walks
from rebalance.explore.checkpoint import Checkpoint
from rebalance.explore.lasso import Lasso
from rebalance.explore.liveness import Liveness
from rebalance.explore.minimise import minimise
from rebalance.explore.search import Coverage, Exploration, Limits, Progress, Stop, Trace, merge
from rebalance.gate.floors import due
from rebalance.gate.result import Exit, Verdict
from rebalance.gate.runs import SavedRun, of_lasso, play, setup_out
from rebalance.model.machine import Machine
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup
from rebalance.properties.protocol import CONVERGES, ROUNDS, rules
from rebalance.properties.rules import Rules


@dataclass(frozen=True)
class Plan:
    """What to explore and how. ``origin`` goes into the traces.

    ``way`` is "breadth" (the engines), "depth" or "swarm" (``rebalance.explore.walks``). ``most`` is how
    many shortest traces of a clause are wanted; ``walks`` and ``steps`` are for the last two ways.
    ``master`` is that of the engine ``spark``, and ``resume`` makes it go on with what it finds.
    """

    setup: Setup
    origin: Mapping[str, Any]
    engine: str = "fast"
    symmetry: bool = False
    exact: bool = False
    limits: Limits = field(default_factory=Limits)
    asks_liveness: bool = True
    most: int = 1
    way: str = "breadth"
    seed: int = 0
    walks: int = 1_000
    steps: int = 200
    master: str = "local[*]"
    resume: bool = False

    @property
    def fingerprint(self) -> str:
        """Names this search in a checkpoint: the group and the code that it was searched with."""
        text = f"{setup_out(self.setup)} {_code(self.engine)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Violation:
    """A broken clause with its traces, the shortest first. ``shortest``: nothing shorter breaks it.

    ``count`` is how many states or steps break it, 0 where they were not counted.
    """

    clause: str
    sentence: str
    runs: tuple[SavedRun, ...]
    shortest: bool
    count: int = 0


@dataclass(frozen=True)
class Explored:
    """What came of it. ``search`` is None for walks, ``lively`` where liveness was not asked or could not be;
    ``unasked`` says why. ``missed`` are the witnesses that were due."""

    plan: Plan
    built: Machine
    coverage: Coverage
    violations: tuple[Violation, ...]
    search: Exploration | None = None
    lively: Liveness | None = None
    unasked: str = ""
    missed: tuple[str, ...] = ()
    checkpoint: Path | str | None = None
    shown: Mapping[str, int] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.search is not None and self.search.stop is Stop.INTERRUPTED

    @property
    def verdict(self) -> Verdict:
        """Broken clauses first; then whether all was seen that had to be."""
        if self.violations:
            return Verdict.VIOLATION
        complete = self.search is not None and self.search.complete
        return Verdict.CONFORMANT if complete and not self.missed else Verdict.INCONCLUSIVE

    @property
    def asked(self) -> int:
        """How many clauses were asked."""
        asked = rules(self.plan.setup)
        names = [rule.clause for rule in asked.always] + [rule.clause for rule in asked.each_step]
        if self.lively is not None:
            names += [CONVERGES.id, ROUNDS.id]
        return len(set(names))

    @property
    def exit(self) -> Exit:
        """The exit code."""
        if self.interrupted:
            return Exit.INTERRUPTED
        return Exit[self.verdict.name]


def explore(
    plan: Plan,
    *,
    tell: Callable[[Progress], None] | None = None,
    checkpoint: Path | str | None = None,
) -> Explored:
    """Run ``plan``. ``checkpoint``: what an unfinished search is saved to, and goes on from; a file, for the
    engine ``spark`` a directory or its URI, which it cannot do without.

    Raises SparkMissing.
    """
    built, asked = machine(plan.setup), rules(plan.setup)
    if plan.way != "breadth":
        return _walked(plan, built, asked, tell)
    with ExitStack() as stack:
        if plan.engine == "spark":
            search = _on_spark(plan, str(checkpoint), tell, stack)
        elif plan.engine == "plain":
            search = plain.explore(built, asked, plan.limits)
        else:
            kept = None if checkpoint is None else Checkpoint(Path(checkpoint), plan.fingerprint)
            search = fast.explore(
                built,
                asked,
                plan.limits,
                symmetry=plan.symmetry,
                exact=plan.exact,
                progress=tell,
                checkpoint=kept,
            )
        return _judged(plan, built, asked, search, checkpoint)


def _on_spark(
    plan: Plan, where: str, tell: Callable[[Progress], None] | None, stack: ExitStack
) -> Exploration:
    """The search on Spark; the session lasts as long as ``stack``, since traces are asked of it."""
    from rebalance.pipeline import exploration
    from rebalance.pipeline.session import session

    spark = stack.enter_context(session(plan.master))
    return exploration.explore(
        spark,
        partial(exploration.group, plan.setup),
        where,
        plan.limits,
        symmetry=plan.symmetry,
        resume=plan.resume,
        progress=tell,
    )


def _judged(
    plan: Plan, built: Machine, asked: Rules, search: Exploration, checkpoint: Path | str | None
) -> Explored:
    """Traces, liveness and witnesses of a search."""
    violations = [
        Violation(
            breach.clause,
            breach.sentence,
            tuple(saved_run(plan, breach.clause, t) for t in islice(search.traces(breach.clause), plan.most)),
            True,
            breach.count,
        )
        for breach in search.breaches
    ]
    lively, unasked = None, _unasked(plan, search)
    if not unasked:
        lively = liveness.judge(built, asked, search)
        violations += list(_unsettled(plan, lively))
    missed = [w for w in due(plan.setup) if w in search.missed] if search.complete else []
    return Explored(
        plan,
        built,
        Coverage(
            1, search.distinct, search.generated, search.depth, search.taken,
            {w.clause: w.count for w in search.witnesses},
        ),
        tuple(violations),
        search,
        lively,
        unasked,
        tuple(missed),
        _left(checkpoint, search),
        {w.clause: w.depth for w in search.witnesses if w.count},
    )  # fmt: skip


def _left(checkpoint: Path | str | None, search: Exploration) -> Path | str | None:
    """What an unfinished search can be gone on with from."""
    if isinstance(checkpoint, Path):
        return checkpoint if checkpoint.exists() else None
    return None if search.stop in (Stop.COMPLETE, Stop.BREACH) else checkpoint


def _unasked(plan: Plan, search: Exploration) -> str:
    """Why liveness cannot be asked; empty when it can."""
    if not plan.asks_liveness:
        return "not asked (--no-liveness)"
    if plan.symmetry:
        return "not asked: symmetry merges states, and a cycle of those need not be a cycle"
    if not search.complete:
        return f"not asked: the search ended before its end ({search.stop})"
    if plan.engine == "spark":
        from rebalance.pipeline.exploration import COLLECTED

        if search.distinct > COLLECTED:
            return f"not asked: it needs the whole graph here, and there are over {COLLECTED:,} states"
    return ""


def _unsettled(plan: Plan, lively: Liveness) -> Iterator[Violation]:
    for settling in lively.settling:
        if settling.lasso is not None:
            run = _named(plan, of_lasso(plan.setup, settling.lasso))
            yield Violation(settling.clause, CONVERGES.sentence, (run,), settling.least, settling.stuck)
    for counted in lively.counts:
        if counted.lasso is not None:
            if any(one.lasso is not None for one in lively.settling):
                continue  # who rebalances for ever does not settle, which has been said
            run = _named(plan, of_lasso(plan.setup, counted.lasso, counted.clause))
            yield Violation(counted.clause, run.sentence, (run,), False)
        elif not counted.holds and counted.trace is not None:
            run = saved_run(plan, counted.clause, counted.trace)
            yield Violation(counted.clause, run.sentence, (run,), False)


def saved_run(plan: Plan, clause: str, trace: Trace) -> SavedRun:
    """The trace as it will be written; its sentence names the generations of this very run."""
    if clause == CONVERGES.id:
        return _named(plan, of_lasso(plan.setup, Lasso(trace.initial, trace.events, ())))
    run = SavedRun(plan.setup, clause, trace.events)
    return _named(plan, replace(run, sentence=play(run).sentence or ""))


def _named(plan: Plan, run: SavedRun) -> SavedRun:
    return replace(run, origin=plan.origin, suite_version=version("rebalance-verifier"))


def _walked(plan: Plan, built: Machine, asked: Rules, tell: Callable[[Progress], None] | None) -> Explored:
    """Walks, until the first that breaks something (or all of them with ``go_on``), then made short."""
    last: list[Coverage] = []

    def note(coverage: Coverage) -> None:
        last[:] = [coverage]
        if tell is not None:
            tell(Progress(coverage.depth, 0, coverage.distinct, coverage.generated, 0.0))

    if plan.way == "depth":
        found = walks.depth_first(built, asked, plan.steps, states=plan.limits.states, progress=note)
    else:
        found = walks.swarm(built, asked, plan.seed, walks=plan.walks, steps=plan.steps, progress=note)
    first: dict[str, Trace] = {}
    for walk in found:
        for broken in walk.broken:
            known = first.get(broken.clause)
            if known is None or len(walk.trace.events) < len(known.events):
                first[broken.clause] = walk.trace
        last[:] = last or [walk.coverage]
        if not plan.limits.go_on:
            last[:] = [walk.coverage] if plan.way == "depth" else last
            break
    violations = []
    for clause in sorted(first):
        small = minimise(built, asked, clause, first[clause])
        run = saved_run(plan, clause, small.trace)
        violations.append(Violation(clause, run.sentence, (run,), small.shortest))
    coverage = last[0] if last else merge(())
    why = "not asked: walks see no cycles, only runs that end"
    return Explored(plan, built, coverage, tuple(violations), unasked=why)


def _code(engine: str) -> str:
    """A digest of the model, the rules and the engines: what a checkpoint of other code says is not true."""
    import rebalance.explore
    import rebalance.model
    import rebalance.pipeline
    import rebalance.properties

    packages = [rebalance.model, rebalance.properties, rebalance.explore]
    if engine == "spark":
        packages.append(rebalance.pipeline)
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
