"""The command line of the mutation score."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tools.mutation.clauses import asked_clause, clause_mutants
from tools.mutation.guards import asked_guard, guard_mutants, prepared
from tools.mutation.mutants import mutants
from tools.mutation.oracles import telling_tests
from tools.mutation.page import report, stale, unexplained
from tools.mutation.trying import (
    STRONG,
    Keyed,
    MutantVerdict,
    asked_all,
    asked_quickly,
    asked_tests,
    measured,
    run,
)

KINDS: dict[str, Callable[[], Sequence[Keyed]]] = {
    "model": mutants,
    "clauses": clause_mutants,
    "specs": guard_mutants,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when a mutant is open or a reason is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation")
    parser.add_argument("--of", choices=KINDS, action="append", help="mutants of that alone; writes no table")
    parser.add_argument("--only", default="", help="the mutants whose key contains this; writes no table")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    parser.add_argument("--sample", type=int, default=0, help="so many of each; writes no table")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--log", type=Path, help="one line of JSON per mutant, as they end")
    parser.add_argument("--again", type=Path, help="take the verdicts from such a log, run what it has not")
    parser.add_argument("--tests", action="store_true", help="ask the tests of single steps alone; no table")
    parser.add_argument("--known", action="store_true", help="with --again: only make the table of those")
    given = parser.parse_args(arguments)
    known = _read(given.again) if given.again else {}
    log = given.log.open("a", encoding="utf-8") if given.log else None
    chosen = {kind: _chosen(given, kind, known) for kind in given.of or KINDS}
    if given.list:
        for mutant in (mutant for some in chosen.values() for mutant in some):
            print(mutant.key)
        return 0
    verdicts: dict[str, MutantVerdict] = {}
    for kind, some in chosen.items():
        todo = [mutant for mutant in some if mutant.key not in known]
        found = (
            _try_all(kind, todo, given.tests, given.jobs, partial(_write, log, given.tests)) if todo else {}
        )
        verdicts |= {mutant.key: (known | found)[mutant.key] for mutant in some}
    if given.tests:
        for key in sorted(key for key, verdict in verdicts.items() if verdict.kind not in STRONG):
            print(key)
        return 0
    whole = not (given.of or given.only or given.sample)
    text = report(verdicts)
    if whole:
        (Path(__file__).parent / "mutation.md").write_text(text, encoding="utf-8")
    else:
        print(text)
    wrong = unexplained(verdicts) + stale(verdicts, whole and not given.known)
    print(f"{len(wrong)} open or stale", file=sys.stderr)
    return 1 if wrong else 0


def _chosen(given: argparse.Namespace, kind: str, known: dict[str, MutantVerdict]) -> list[Keyed]:
    chosen = [mutant for mutant in KINDS[kind]() if given.only in mutant.key]
    if not given.list:
        random.Random(1).shuffle(chosen)  # what has run when somebody looks is a fair sample
    chosen = chosen[: given.sample or None]
    return [mutant for mutant in chosen if mutant.key in known] if given.known else chosen


def _try_all(
    kind: str,
    todo: Sequence[Any],
    tests: bool,
    jobs: int,
    report_verdict: Callable[[Any, MutantVerdict], None],
) -> dict[str, MutantVerdict]:
    """The verdicts of mutants of that kind, once all is measured that they take."""
    if kind == "specs":
        prepared()
    if kind != "model":
        return run(todo, asked_guard if kind == "specs" else asked_clause, jobs, report_verdict)
    telling = telling_tests()
    found = asked_quickly(todo, telling, jobs, report_verdict)
    left = [mutant for mutant in todo if mutant.key not in found]
    ask = partial(asked_tests if tests else asked_all, battery=measured(telling, tests)) if left else None
    return found | (run(left, ask, jobs, report_verdict) if ask else {})


def _write(log: TextIO | None, tests: bool, mutant: Keyed, verdict: MutantVerdict) -> None:
    if log is not None and (verdict.kind in STRONG or not tests):
        print(json.dumps([mutant.key, *verdict]), file=log, flush=True)


def _read(log: Path) -> dict[str, MutantVerdict]:
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {key: MutantVerdict(*rest) for key, *rest in rows}


if __name__ == "__main__":
    sys.exit(main())
