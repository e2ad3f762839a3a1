"""The tests of the night, file by file, into a table that is kept.

python -m tools.nightly [--again] [-n WORKERS] [FILE ...]    those of the named files; of all without one

Each file is a run of pytest of its own, the quickest first by its last run, so that a night that is cut off
has most rows. As soon as it has ended it has a row in `tests/nightly.md`: tests that passed, failed and were
skipped, minutes, commit. A file that passed at this commit is not run again, so a run that was interrupted
goes on. Exit 1 if a test failed, 130 on Ctrl-C.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rebalance_verifier.cli.shared.values import whole

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "nightly.md"
MARKED = ("-m", "nightly")
HEAD = """# The tests of the night

Written by `make nightly`, a row when a file of tests has ended. A row stands until its file is run again.

| file | passed | failed | skipped | minutes | commit |
|---|--:|--:|--:|--:|---|
"""
MINUTES = 0.2
"""What a test takes of which nothing is known: the mean of those that have a row."""

FAILED, NONE_COLLECTED = 1, 5
"""Exit codes of pytest: tests failed; no test was selected."""


@dataclass(frozen=True)
class Night:
    """Row of the table: tests by how they ended, minutes by the clock, the commit that was tested."""

    file: str
    passed: int
    failed: int
    skipped: int
    minutes: float
    commit: str

    @property
    def line(self) -> str:
        """Return the row as it is written."""
        return "| " + " | ".join(str(value) for value in astuple(self)) + " |"


def read(text: str) -> dict[str, Night]:
    """Return the rows of a table by file."""
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines())
    rows = [one for one in cells if len(one) == 6 and one[1].isdigit()]
    return {
        one[0]: Night(one[0], int(one[1]), int(one[2]), int(one[3]), float(one[4]), one[5]) for one in rows
    }


def written(rows: Mapping[str, Night]) -> str:
    """Return the table, by file."""
    return HEAD + "".join(f"{rows[file].line}\n" for file in sorted(rows))


def due(files: Iterable[str], rows: Mapping[str, Night], commit: str) -> list[str]:
    """Return the files that did not pass at this commit; all of them while something is not committed."""
    return [
        file
        for file in files
        if file not in rows or rows[file].failed or rows[file].commit != commit or "+" in commit
    ]


def quickest_first(files: Mapping[str, int], rows: Mapping[str, Night]) -> list[str]:
    """Return the files in the order of their last minutes; where there was no run, of their tests."""
    minutes = {file: rows[file].minutes if file in rows else MINUTES * tests for file, tests in files.items()}
    return sorted(files, key=lambda file: (minutes[file], file))


def counted(report: Path) -> Counter[str]:
    """Return how many tests of a JUnit report passed, failed (errors too) and were skipped."""
    kinds = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    return Counter(
        next((kinds[child.tag] for child in case if child.tag in kinds), "passed")
        for case in ET.parse(report).iter("testcase")
    )


def _commit() -> str:
    """Return the commit, with a + where files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{TABLE.relative_to(ROOT)}")
    return git("rev-parse", "--short=8", "HEAD") + ("+" if changed else "")


def _files(named: list[str]) -> Mapping[str, int]:
    """Return the files that have tests of the night, each with how many."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *MARKED, *named]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, NONE_COLLECTED):
        sys.exit(ran.stdout + ran.stderr)
    return Counter(line.partition("::")[0] for line in ran.stdout.splitlines() if "::" in line)


def _run(file: str, commit: str, workers: int) -> Night:
    began = time.monotonic()
    with TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        options = ("-q", *MARKED, "-n", str(workers), f"--junitxml={report}")
        command = [sys.executable, "-m", "pytest", *options, file]
        ran = subprocess.run(command, cwd=ROOT, check=False)
        found = counted(report) if report.exists() else Counter()
    crashed = ran.returncode != 0 and not found["failed"]
    return Night(
        file=file,
        passed=found["passed"],
        failed=found["failed"] + crashed,
        skipped=found["skipped"],
        minutes=round((time.monotonic() - began) / 60, 1),
        commit=commit,
    )


def main() -> int:
    """Run what is due and keep its rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("-n", dest="workers", type=whole, default=2, help="processes at once (%(default)d)")
    parser.add_argument("--again", action="store_true", help="also what passed at this commit")
    options = parser.parse_args()
    rows, commit = read(TABLE.read_text("utf-8") if TABLE.exists() else ""), _commit()
    files = _files(options.files)
    if not options.files:  # a file that is gone has no row
        rows = {file: row for file, row in rows.items() if file in files}
    ordered = quickest_first(files, rows)
    wanted = ordered if options.again else due(ordered, rows, commit)
    try:
        for number, file in enumerate(wanted, 1):
            left = sum(rows[other].minutes for other in wanted[number - 1 :] if other in rows)
            print(f"{number} of {len(wanted)}: {file}; {left:.0f} minutes left by the last runs", flush=True)
            rows[file] = _run(file, commit, options.workers)
            TABLE.write_text(written(rows), encoding="utf-8")
    except KeyboardInterrupt:
        return 130
    return FAILED if any(rows[file].failed for file in files) else 0


if __name__ == "__main__":
    sys.exit(main())
