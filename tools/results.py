"""``make results``: all clients in all releases, judged, as pages for docs/results.

``python -m tools.results --pages DIR`` takes what ``rebalance compare`` takes, and goes on where it was
interrupted as that does. It writes an overview (README.md) and a page for each client, in Markdown, and the
traces that they name into DIR/traces; those of an earlier time go. The exit code is that of the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rebalance.gate.cli.commands import compare as command
from rebalance.gate.cli.console.terminal import ROOT, UsageError, print_err, usage_errors
from rebalance.gate.compare import compare
from rebalance.gate.compare.compare import Judged
from rebalance.gate.report.terminal import comparison as report
from rebalance.gate.traces import counterexamples, files
from rebalance.properties.verdict import Exit


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tools.results", description=__doc__)
    parser = command.add(top.add_subparsers())
    parser.add_argument(
        "--pages", type=Path, metavar="DIR", required=True, help="where the pages are written"
    )
    options = top.parse_args(["compare", *(sys.argv[1:] if argv is None else argv)])
    try:
        wanted = command.comparison_of(options)
        with usage_errors(compare.CompareError, OSError):
            files.make_root(ROOT)
            judged = compare.run(wanted, command.report_progress(options))
            write(judged, report.About.of(wanted), options.pages)
    except UsageError as error:
        print_err(f"tools.results: {error}")
        return Exit.USAGE
    except KeyboardInterrupt:
        print_err("interrupted, no page is written; the same command goes on")
        return Exit.INTERRUPTED
    return command.exit_of(judged)


def write(judged: Sequence[Judged], about: report.About, directory: Path) -> None:
    """The pages, and the traces that they name. Raises OSError."""
    texts, shown = pages(judged, about, str(directory))
    (directory / "traces").mkdir(parents=True, exist_ok=True)
    for stale in (directory / "traces").glob("*.json"):
        if stale.stem not in shown:
            stale.unlink()
    for name, text in texts.items():
        files.write(directory / name, text)
    for trace in shown.values():
        files.write(directory / "traces" / f"{trace.id}.json", counterexamples.to_text(trace))
    print_err(f"{len(texts)} pages in {directory}")


def pages(
    judged: Sequence[Judged], about: report.About, directory: str
) -> tuple[dict[str, str], dict[str, counterexamples.Trace]]:
    """Name -> text of an overview (``README.md``) and of a page for each client, and id -> trace of the
    counterexamples in them, which are to be in ``traces`` beside them. ``directory`` is where the pages will
    be, as the reader names it."""
    found = {
        "README.md": "\n".join(
            [
                "# Implementations and the contract",
                "",
                "Made by `rebalance compare`. A red cell leads to its counterexample.",
                "",
                *report.overview(judged, about, lambda one: f"{one.column.page}.md"),
                *report.totals(judged),
                "",
            ]
        )
    }
    shown: dict[str, counterexamples.Trace] = {}
    for client, members in report.clients(judged):
        lines = report.client_lines(client or "Targets", members, about, f"{directory}/traces/")
        found[f"{members[0].column.page}.md"] = "\n".join(["[All implementations](README.md)", "", *lines])
        for group in report.by_group(members):
            for red in report.red_cells(group):
                trace = about.trace(red.cell)
                if trace and report.is_small(trace):
                    shown[red.id] = trace
    return found, shown


if __name__ == "__main__":
    sys.exit(main())
