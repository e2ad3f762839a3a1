"""Whether whole checks find the same again, of an assignor whose answers differ from run to run.

python -m tools.repeated --into DIR [--runs N] check ...    `rebalance check` with these arguments, N times

Prints for each clause that is broken in a run how many runs count it as violated, and how many as
unconfirmed. What was run before is in DIR and not run again. Exit 1 if a clause is violated in some runs and
not in all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.shared.values import whole
from rebalance_verifier.gate.search.result import Status

RUNS = 20

Counted = Mapping[tuple[str, str], Counter[str]]
"""Level and clause -> in how many runs it has which status."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the table."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    cut = arguments.index("check") if "check" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", type=Path, metavar="DIR", required=True, help="where the reports are kept")
    parser.add_argument("--runs", type=whole, default=RUNS, metavar="N", help=f"how many ({RUNS})")
    options = parser.parse_args(arguments[:cut])
    if not arguments[cut:]:
        parser.error("say `check` and what it takes behind the options")
    reports = []
    for number in range(1, options.runs + 1):
        path = options.into / str(number) / "report.json"
        if not path.exists():
            run(arguments[cut:], path.parent)
            print(f"run {number} of {options.runs}", file=sys.stderr)
        reports.append(report(path))
    found = counted(reports)
    print("\n".join(table(found)))
    return 1 if unsteady(found) else 0


def run(check: Sequence[str], directory: Path) -> None:
    """One check, whose report is in ``directory`` then. Raises SystemExit with what it says otherwise."""
    head, *target = check
    ours = ("--report", "json", "--report-dir", str(directory), "--no-progress")
    command = [sys.executable, "-m", "rebalance_verifier.cli.start", head, *ours, *target]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (Exit.CONFORMANT, Exit.VIOLATION, Exit.INCONCLUSIVE):
        raise SystemExit(ran.stderr)


def report(path: Path) -> Mapping[str, Any]:
    """What a check has written. Raises SystemExit with what is wrong."""
    try:
        found = json.loads(path.read_text())
        [(row["level"], row["id"], row["status"]) for row in found["clauses"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SystemExit(
            f"{path} is no report of a check ({error!r}): remove it, and it is run again"
        ) from None
    return found  # type: ignore[no-any-return]


def counted(reports: Iterable[Mapping[str, Any]]) -> Counted:
    """The clauses that are broken in a run."""
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for report in reports:
        for row in report["clauses"]:
            found[row["level"], row["id"]][row["status"]] += 1
    broken = (Status.VIOLATED, Status.UNCONFIRMED)
    return {key: found[key] for key in sorted(found) if any(found[key][status] for status in broken)}


def unsteady(found: Counted) -> list[str]:
    """The clauses that are violated in some runs and not in all."""
    return [clause for (_, clause), runs in found.items() if 0 < runs[Status.VIOLATED] < runs.total()]


def table(found: Counted) -> Iterable[str]:
    """A line for each clause, and how many of them are not the same each time."""
    for (level, clause), runs in found.items():
        numbers = (f"{status} {runs[status]}" for status in (Status.VIOLATED, Status.UNCONFIRMED))
        yield f"{level:<9} {clause:<30} {', '.join(numbers)} of {runs.total()} runs"
    names = unsteady(found)
    yield f"{len(names)} of {len(found)} violated in some runs and not in all: {', '.join(names) or '-'}"


if __name__ == "__main__":
    sys.exit(main())
