"""The command line of the mutation score."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

from tools.mutation.mutants import Mutant, mutants
from tools.mutation.page import report, stale, unexplained
from tools.mutation.trying import STRONG, MutantVerdict, asked_all, asked_tests, measured, run


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when a mutant is open or a reason is stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation")
    parser.add_argument("--only", default="", help="the mutants whose key contains this; writes no table")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    parser.add_argument("--sample", type=int, default=0, help="so many of them; writes no table")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--log", type=Path, help="one line of JSON per mutant, as they end")
    parser.add_argument("--again", type=Path, help="take the verdicts from such a log, run what it has not")
    parser.add_argument("--tests", action="store_true", help="ask the tests of single steps alone; no table")
    parser.add_argument("--known", action="store_true", help="with --again: only make the table of those")
    given = parser.parse_args(arguments)
    chosen = [mutant for mutant in mutants() if given.only in mutant.key]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.number:5} {mutant.module}.py:{mutant.line} {mutant.key}  ->  {mutant.now}")
        return 0
    random.Random(1).shuffle(chosen)  # what has run when somebody looks is a fair sample
    chosen = chosen[: given.sample or None]
    known = _read(given.again) if given.again else {}
    if given.known:
        chosen = [mutant for mutant in chosen if mutant.key in known]
    todo = [mutant for mutant in chosen if mutant.key not in known]
    verdicts = dict(known)
    if todo:
        battery = measured(given.tests)
        seconds = sum(seen.seconds for _, seen in battery.cases)
        print(
            f"{len(todo)} mutants, {len(battery.cases)} cases of {seconds:.0f} s", file=sys.stderr, flush=True
        )
        log = given.log.open("a", encoding="utf-8") if given.log else None
        verdicts |= run(
            todo,
            partial(asked_tests if given.tests else asked_all, battery=battery),
            given.jobs,
            partial(_write, log, given.tests),
        )
    chosen.sort()
    verdicts = {mutant.key: verdicts[mutant.key] for mutant in chosen}
    if given.tests:
        for mutant in chosen:
            if verdicts[mutant.key].kind not in STRONG:
                print(f"{mutant.module}.py:{mutant.line} {mutant.key}  ->  {mutant.now}")
        return 0
    whole = not (given.only or given.sample)
    text = report(chosen, verdicts, len(mutants()))
    if whole:
        (Path(__file__).parent / "mutation.md").write_text(text, encoding="utf-8")
    else:
        print(text)
    wrong = unexplained(verdicts) + stale(verdicts, whole and not given.known)
    print(f"{len(wrong)} open or stale", file=sys.stderr)
    return 1 if wrong else 0


def _write(log: TextIO | None, tests: bool, mutant: Mutant, verdict: MutantVerdict) -> None:
    if log is not None and (verdict.kind in STRONG or not tests):
        print(json.dumps([mutant.key, *verdict]), file=log, flush=True)


def _read(log: Path) -> dict[str, MutantVerdict]:
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {key: MutantVerdict(*rest) for key, *rest in rows}


if __name__ == "__main__":
    sys.exit(main())
