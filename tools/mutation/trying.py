"""One mutant on the battery, and each in a process of its own."""

from __future__ import annotations

import gc
import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol, TypeVar

from rebalance_verifier.base.processes.workers import stream
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits, Stop
from rebalance_verifier.explore.liveness.liveness import counts, settles
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.properties.group.clauses import CONVERGES, ROUNDS, WITNESSES, rules
from rebalance_verifier.properties.group.rules import Bounded, Rules

from tools.mutation.battery import BUGS, CLEAN, MutationCase
from tools.mutation.loading import Differing, loaded
from tools.mutation.mutants import Mutant
from tools.mutation.oracles import CostError, costing, failing_test, step_of_no_logic, telling_groups
from tools.mutation.switched import told_by_tests

CPU_SECONDS = 120
"""Of one mutant, on the whole battery and on what is asked behind it."""

MEMORY = 3 << 30
"""Of one mutant."""

SMALL = 4_000
"""A group of the battery with fewer states comes before the tests of single steps."""

PART = 200
"""Mutants that are asked the tests in one process."""

ROOM = 8_000
"""States that a mutant may have in a case beyond three times those of the model."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a case shows on the model as it is: clauses broken, liveness, what was reached.

    ``differ``: the numbers of the mutants that change any value on the way; the others cannot be told here.
    """

    broken: frozenset[str]
    settles: bool
    rounds: int | None
    witnesses: frozenset[str]
    taken: frozenset[tuple[str, int]]
    distinct: int
    generated: int
    seconds: float
    differ: frozenset[int]


Cases = Sequence[tuple[MutationCase, Baseline]]
"""Cases with what each shows on the model as it is."""


@dataclass(frozen=True, kw_only=True)
class Battery:
    """All that a mutant is asked, and by its number what can tell it from the model: ``tests`` by their ids,
    ``groups`` whose runs are held against the logic. ``cases`` know that themselves."""

    tests: Mapping[int, Sequence[str]]
    groups: Mapping[str, frozenset[int]]
    cases: Cases


class MutantVerdict(NamedTuple):
    """How a mutant ended: ``kind`` is a key of ``KINDS``, ``by`` the clause (or what it was), ``where`` the
    case. ``same``: the counts of states and steps are those of the model in every case."""

    kind: str
    by: str = ""
    where: str = ""
    detail: str = ""
    same: bool = True
    seconds: float = 0.0


KINDS = {
    "clause": "a clause is broken",
    "settling": "a fair run does not settle (group/converges)",
    "rounds": "a run takes more rebalances than any run of the model does (group/rounds)",
    "witness": "a witness that the model reaches in the same case is not reached",
    "finding": "a clause does not find a mistake any more that is switched on",
    "error": "the model raises an exception",
    "budget": "a fault does not cost one of the budget, or another step costs something",
    "large": "the space is more than three times as large, and nothing is found in that much of it",
    "timeout": "the time or the memory is used up",
    "coverage": "an action of the model is never taken in a case in which it was",
    "test": "a test of single steps fails (tests/model/classic)",
    "logic": "a step or a state is none that the logic allows (specs/classic/refinement)",
    "theorem": "a theorem does not hold of the steps that are added",
    "implied": "the guard follows from the others and the invariants, so no step is added",
    "superfluous": "steps are added, and all theorems hold of them",
    "unknown": "the solver does not find out",
    "survived": "nothing of these",
    "idle": "no value is ever another one than in the model, wherever the battery comes",
}
STRONG = (
    "clause",
    "settling",
    "rounds",
    "witness",
    "finding",
    "error",
    "budget",
    "coverage",
    "test",
    "logic",
    "theorem",
)
"""After one of these the battery ends; after the others it goes on, and the first of them stands."""


def _required(some: MutationCase, setup: Any, known: frozenset[str] = frozenset()) -> Rules:
    """The rules of ``setup``: of a mistake the one that finds it, else all but those ``known`` to break."""
    required = rules(setup)

    def wanted(clause: str) -> bool:
        return clause == some.finds if some.finds else clause not in known

    return required._replace(
        always=tuple(rule for rule in required.always if wanted(rule.clause)),
        each_step=tuple(rule for rule in required.each_step if wanted(rule.clause)),
        each_change=tuple(rule for rule in required.each_change if wanted(rule.clause)),
    )


def baseline(some: MutationCase) -> Baseline:
    """What ``some`` shows on the model as it is."""
    compare = Differing()
    with loaded() as names:
        setup = some.build(names["setup"])
        required = _required(some, setup)
        began = time.process_time()
        made = names["group"].machine(setup)
        clean = not some.finds
        found = fast.explore(made, required, Limits(go_on=clean))
        settled, rounds = True, None
        if clean or some.finds == CONVERGES.id:
            settled = all(settles(made, rule, found).holds for rule in required.finally_)
        if clean:
            rounds = counts(made, ROUNDED, found).reached
        seconds = time.process_time() - began
    with loaded(compare=compare) as names:
        setup = some.build(names["setup"])
        made = names["group"].machine(setup)
        again = fast.explore(made, required, Limits(go_on=clean))
        assert again.counts == found.counts
        if clean or some.finds == CONVERGES.id:
            for rule in required.finally_:
                settles(made, rule, again)
    if some.finds:
        assert found.breaches or not settled, f"{some.name} does not find {some.finds}"
    return Baseline(
        broken=frozenset(breach.clause for breach in found.breaches), settles=settled, rounds=rounds,
        witnesses=frozenset(w.clause for w in found.witnesses if w.count),
        taken=frozenset(action for action, taken in found.taken.items() if taken.outcomes),
        distinct=found.distinct, generated=found.generated, seconds=seconds,
        differ=frozenset(compare.numbers),
    )  # fmt: skip


ROUNDED = Bounded(ROUNDS.id, lambda event: event.action == "join phase ends", 0)


def attempt(mutant: Mutant | None, some: MutationCase, seen: Baseline) -> MutantVerdict:
    """One mutant on one case; None is the model itself."""
    with loaded(mutant) as names:
        try:
            return _attempt(names, some, seen)
        except MemoryError:
            return MutantVerdict("timeout", where=some.name, same=False)
        except CostError as error:
            return MutantVerdict("budget", "budget", some.name, str(error), same=False)
        except Exception as error:
            return MutantVerdict("error", type(error).__name__, some.name, str(error)[:120], same=False)


def _attempt(names: Mapping[str, Any], some: MutationCase, seen: Baseline) -> MutantVerdict:
    setup = some.build(names["setup"])
    made: Machine = costing(names["group"].machine(setup))
    required = _required(some, setup, seen.broken)
    found = fast.explore(made, required, Limits(states=3 * seen.distinct + ROOM))
    same = (found.distinct, found.generated) == (seen.distinct, seen.generated)
    end = partial(MutantVerdict, where=some.name, same=same)
    clauses = [breach.clause for breach in found.breaches]
    if some.finds == CONVERGES.id and found.complete:
        settled = all(settles(made, rule, found).holds for rule in required.finally_)
        return end("finding", some.finds) if settled else end("survived")
    if some.finds:
        return end("survived") if clauses else end("finding", some.finds)
    if found.breaches:
        return end("clause", found.breaches[0].clause, detail=found.breaches[0].sentence)
    if found.stop is not Stop.COMPLETE:
        return end("large")
    if seen.settles:
        for rule in required.finally_:
            if not settles(made, rule, found).holds:
                return end("settling", rule.clause)
    if seen.rounds is not None and not same:
        most = counts(made, ROUNDED._replace(most=seen.rounds), found)
        if not most.holds:
            return end("rounds", ROUNDS.id, detail=f"{most.reached} for {seen.rounds}")
    lost = [name for name in WITNESSES if name in seen.witnesses and name in found.coverage.missed]
    if lost:
        return end("witness", lost[0])
    idle = [action for action in found.coverage.never_taken if action in seen.taken]
    return end("coverage", idle[0][0]) if idle else end("survived")


JUDGED = ("setup", "group")
"""Modules that the clauses look through. A mutant of another one that changes values in clean cases, and the
number of states and steps in none of them, is not tried on the mistakes."""


def judge(mutant: Mutant, cases: Cases) -> MutantVerdict:
    """One mutant on the cases, until something strong is said about it."""
    began = time.process_time()
    differs = [some for some, seen in cases if mutant.number in seen.differ]
    first = MutantVerdict("survived" if differs else "idle")
    clean = any(not some.finds for some in differs) and mutant.module not in JUDGED
    same = True
    for some, seen in cases:
        if mutant.number not in seen.differ or (some.finds and same and clean):
            continue
        verdict = attempt(mutant, some, seen)
        same = same and verdict.same
        if verdict.kind in STRONG or verdict.kind == first.kind == "large":
            first = verdict
            break
        if first.kind == "survived":
            first = verdict if verdict.kind != "survived" else first
    return first._replace(same=same, seconds=time.process_time() - began)


def asked_quickly(
    some: Sequence[Mutant],
    tests: Mapping[int, Sequence[str]],
    jobs: int,
    report_verdict: Callable[[Mutant, MutantVerdict], None],
) -> dict[str, MutantVerdict]:
    """Those that fall to a test of single steps in one copy of the model, see ``switched``. The others, and
    those of a part in which a process died, are to be asked in a process of their own."""
    parts = [some[first : first + PART] for first in range(0, len(some), PART)]

    def ask(number: int) -> Sequence[Sequence[tuple[str, float]]]:
        found: list[tuple[str, float]] = []
        told_by_tests(parts[number], tests, lambda _, test, seconds: found.append((test, seconds)))
        return [found]

    verdicts = {}
    for number, found in stream(lambda: nullcontext(ask), len(parts), jobs, anew=True):
        for mutant, (test, seconds) in zip(parts[number], found or (), strict=False):
            if test:
                verdicts[mutant.key] = MutantVerdict("test", test, same=False, seconds=seconds)
                report_verdict(mutant, verdicts[mutant.key])
    return verdicts


def asked_tests(mutant: Mutant, battery: Battery) -> MutantVerdict:
    """One mutant on the tests of single steps alone. Only for a process that ends with it."""
    began = time.process_time()
    test = failing_test(mutant, battery.tests.get(mutant.number, ()))
    verdict = MutantVerdict("test", test, same=False) if test else MutantVerdict("survived")
    return verdict._replace(seconds=time.process_time() - began)


def asked_all(mutant: Mutant, battery: Battery) -> MutantVerdict:
    """One mutant on everything, what is quick first: tests of single steps, small groups of the battery, the
    logic, large groups. Only for a process that ends with it."""
    began = time.process_time()
    verdict = asked_tests(mutant, battery)
    if verdict.kind not in STRONG:
        verdict = _battery_verdict(mutant, battery)
    return verdict._replace(seconds=time.process_time() - began)


def _battery_verdict(mutant: Mutant, battery: Battery) -> MutantVerdict:
    soon = judge(mutant, [pair for pair in battery.cases if pair[1].distinct < SMALL])
    if soon.kind in STRONG:
        return soon
    group, why = step_of_no_logic(mutant, battery.groups)
    if group:
        return soon._replace(kind="logic", by="refinement", where=group, detail=why[:120])
    later = judge(mutant, [pair for pair in battery.cases if pair[1].distinct >= SMALL])
    return soon if later.kind in ("survived", "idle") and soon.kind != "idle" else later


class Keyed(Protocol):
    """A mutant of anything."""

    @property
    def key(self) -> str:
        """Its name, whatever line it is on."""


M = TypeVar("M", bound=Keyed)


def _child(pipe: Connection, mutant: M, ask: Callable[[M], MutantVerdict]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pipe.send(ask(mutant))
    pipe.close()


def run(
    chosen: Sequence[M],
    ask: Callable[[M], MutantVerdict],
    jobs: int = 2,
    report_verdict: Callable[[M, MutantVerdict], None] | None = None,
) -> dict[str, MutantVerdict]:
    """Each mutant is asked in a process of its own, ``jobs`` at once; verdicts by key, in the order given."""
    gc.freeze()  # what is here already costs no process anything
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(chosen))
    running: dict[Connection, tuple[M, Any]] = {}
    verdicts: dict[str, MutantVerdict] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, mutant, ask))
            process.start()
            theirs.close()
            running[mine] = mutant, process
        for pipe in wait(list(running)):
            assert isinstance(pipe, Connection)
            mutant, process = running.pop(pipe)
            try:
                verdicts[mutant.key] = pipe.recv()
            except EOFError:
                process.join()
                if process.exitcode >= 0:
                    raise RuntimeError(
                        f"{mutant.key}: the process that asks ended with {process.exitcode}"
                    ) from None
                # a signal: the limit of the processor's time
                verdicts[mutant.key] = MutantVerdict("timeout", same=False, seconds=CPU_SECONDS)
            pipe.close()
            process.join()
            if report_verdict is not None:
                report_verdict(mutant, verdicts[mutant.key])
    return {mutant.key: verdicts[mutant.key] for mutant in chosen}


def measured(tests: Mapping[int, Sequence[str]], tests_only: bool = False) -> Battery:
    """Everything on the model as it is beside ``tests``; of the cases the quickest first, a mistake after the
    clean ones that are quicker than a third of a second. Raises AssertionError where the model itself
    fails."""
    with loaded():
        pass  # compiled once, here
    if tests_only:
        return Battery(tests=tests, groups={}, cases=())
    pairs = [(each, baseline(each)) for each in (*CLEAN, *BUGS)]
    pairs.sort(key=lambda pair: max(QUICK, pair[1].seconds) if pair[0].finds else pair[1].seconds)
    return Battery(tests=tests, groups=telling_groups(), cases=pairs)


QUICK = 0.35
