"""``rebalance check`` of other checkouts beside that of this one, in turn, on one machine, into check.md.

``python -m tools.benchmarks.check --beside OTHER [--beside OTHER] [--runs 3] [CASE ...]``: an OTHER is a
checkout that is installed in its own ``.venv``. What counts is seconds of the processors, of all processes,
the JVMs among them: the clock is that of whatever else is at work. Whether both come to the same is said too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rebalance_verifier.model.bugs.releases import NEWEST

HERE = Path(__file__).parent
CLIENTS, JAVA = f"org.apache.kafka:kafka-clients:{NEWEST}", "java:org.apache.kafka.clients.consumer."

CASES: dict[str, tuple[str, ...]] = {
    "Range": (f"{JAVA}RangeAssignor", "--maven", CLIENTS),
    "CooperativeSticky": (f"{JAVA}CooperativeStickyAssignor", "--maven", CLIENTS),
    "reference": ("cooperative-sticky+third_round_general",),
    "kafka-python": ("kafka-python:sticky",),
}

COMMAND = Path(".venv/bin/rebalance")

HEAD = """# `rebalance check` beside earlier commits

Made by `python -m tools.benchmarks.check --beside OTHER --runs {runs}` ({machine}, {cores} cores, Python
{python}; load {load:.0f} when it began) of {this}: `--profile ci --jobs 2`, in turn. CPU s: of all processes,
the JVMs among them, the median. *Ratio*: of questions for each CPU second. *Same*: clauses, causes,
counterexamples and counts: both reports are equal.

| target | beside | questions | CPU s | clock | questions here | CPU s | clock | ratio | same |
|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One run: what it took, and what it came to."""

    cpu: float
    clock: float
    report: dict[str, Any]

    @property
    def questions(self) -> int:
        return int(self.report["questions"])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, action="append", required=True, metavar="OTHER")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (all)")
    options = parser.parse_args(argv)
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    for other in options.beside:
        if not (other / COMMAND).exists():
            parser.error(f"--beside {other}: there is no {COMMAND}; `make gate` in that checkout installs it")
    rows = [
        HEAD.format(
            runs=options.runs,
            machine=platform.machine(),
            cores=os.cpu_count(),
            python=platform.python_version(),
            load=os.getloadavg()[0],
            this=_commit(HERE.parents[1]),
        )
    ]
    print(rows[0], flush=True)
    for case in options.cases or CASES:
        for other in options.beside:
            theirs, ours = list[Checked](), list[Checked]()
            for _ in range(options.runs):
                theirs.append(checked(other.absolute() / COMMAND, CASES[case]))
                ours.append(checked(Path(sys.executable).with_name("rebalance"), CASES[case]))
            rows.append(row(case, _commit(other), theirs, ours))
            print(rows[-1], flush=True)
    (HERE / "check.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def checked(command: Path, target: Sequence[str]) -> Checked:
    """Check once with the command of one of the checkouts."""
    with tempfile.TemporaryDirectory() as directory:
        argv = [str(command), "check", *target, "--profile", "ci", "--jobs", "2", "--no-progress"]
        argv += ["--report", "json", "--report-dir", directory]
        began = time.monotonic()
        process = subprocess.Popen(argv, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
        clock = time.monotonic() - began
        [report] = Path(directory).glob("**/report.json")
        known = json.loads(report.read_text(encoding="utf-8"))
        return Checked(cpu=used.ru_utime + used.ru_stime, clock=clock, report=known)


def row(case: str, other: str, theirs: Sequence[Checked], ours: Sequence[Checked]) -> str:
    """As a row of the table."""
    cells, rates = list[str](), list[float]()
    for runs in (theirs, ours):
        cpu, clock, questions = median(r.cpu for r in runs), median(r.clock for r in runs), runs[0].questions
        cells += [f"{questions:,}", f"{cpu:.1f}", f"{clock:.0f} s"]
        rates.append(questions / cpu)
    same = theirs[0].report == ours[0].report
    return (
        f"| {case} | {other} | {' | '.join(cells)} | {rates[1] / rates[0]:.2f}x | {'yes' if same else 'no'} |"
    )


def _commit(checkout: Path) -> str:
    argv = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
