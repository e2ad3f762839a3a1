"""``make results``: all clients in all releases, judged, as pages for docs/results.

``python -m tools.results --pages DIR`` takes what ``rebalance compare`` takes, and goes on where it was
interrupted as that does. It writes an overview (README.md) and a page for each client, in Markdown, and the
traces that they name into DIR/traces; those of an earlier time go. The exit code is that of the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.base.verdict import Exit, Level
from rebalance_verifier.cli.commands import compare as command
from rebalance_verifier.cli.console.terminal import UsageError, print_err, usage_errors
from rebalance_verifier.gate.compare import compare
from rebalance_verifier.gate.compare.compare import UNKNOWN, CellMark, Judged
from rebalance_verifier.gate.compare.newest import newest
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.plan import PROFILES
from rebalance_verifier.live.clients.leaders.targets import CLIENT
from rebalance_verifier.properties.assignors.clause import Clause
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.report.facts import UNUSUAL
from rebalance_verifier.report.markup import escaped, table
from rebalance_verifier.report.terminal import comparison as report

_UNKNOWN = (
    f"`{UNKNOWN}` as the newest: the registry could not be asked, and the releases judged are those that are "
    "named in the list of clients."
)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tools.results", description=__doc__)
    parser = command.add(top.add_subparsers())
    parser.add_argument(
        "--pages", type=Path, metavar="DIR", required=True, help="where the pages are written"
    )
    parser.add_argument(
        "--wire",
        choices=PROFILES,
        metavar="PROFILE",
        help="how much is searched of clients over the wire, where a question costs a round of the group "
        "(as much as of the others)",
    )
    options = top.parse_args(["compare", *(sys.argv[1:] if argv is None else argv)])
    try:
        wanted = with_wire(command.comparison_of(options), options.wire)
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


def with_wire(comparison: compare.TargetComparison, profile: str | None) -> compare.TargetComparison:
    """The comparison, with a profile of their own for the clients over the wire."""
    columns = (
        replace(column, profile=profile or "") if column.spec.startswith(CLIENT) else column
        for column in comparison.columns
    )
    return replace(comparison, columns=tuple(columns))


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
                *overview(judged, about, lambda one: f"{one.column.page}.md"),
                *report.totals(judged),
                "",
            ]
        )
    }
    shown: dict[str, counterexamples.Trace] = {}
    for client, members in report.clients(judged):
        own = replace(about, profile=members[0].column.profile or about.profile)
        lines = report.client_lines(client or "Targets", members, own, f"{directory}/traces/")
        found[f"{members[0].column.page}.md"] = "\n".join(["[All implementations](README.md)", "", *lines])
        for group in report.by_group(members):
            for red in report.red_cells(group):
                trace = about.trace(red.cell)
                if trace and report.is_small(trace) and not trace.is_harmful:
                    shown[red.id] = trace
    return found, shown


def overview(judged: Sequence[Judged], about: report.About, page: Callable[[Judged], str]) -> list[str]:
    """The newest release of each client, by level and clause by clause; ``page`` is where more is said of a
    target, "" for the same page."""
    broken, held = _columns(judged)
    made = f"The newest release of each client that was judged and the newest that exists, by {about.line}"
    made += "".join(f" ({client}: {profile})" for client, profile in _profiles(judged)) + "."
    levels = "Bold clauses are of safety and liveness, the others of quality: a promise not kept."
    played = sum(one.scenarios for one in judged)
    legend = (
        "`X` broken; `·` passed; `-` not promised, or not a clause of its protocol; `?` no verdict. "
        f"The targets ran {played:,} scenarios together, and each the counterexamples of the others."
    )
    unusual = f"{UNUSUAL} its smallest counterexample needs input that is rare in practice, and names it."
    lines = [made, "", *_short(judged, about, page)]
    if any(one.exists == UNKNOWN for one in newest(judged)):
        lines += [_UNKNOWN, ""]
    lines += [f"{unusual} {report.SILENT}", "", "Clause by clause. " + levels, ""]
    lines += [*_matrix(judged, page), legend, ""]
    lines += [
        f"- [{clause.id}]({clause.link}) ({clause.level}): {escaped(clause.sentence)}" for clause in broken
    ]
    if unsteady := [" ".join(_named(one)) for one in _newest(judged) if report.is_red(one, "assign/6")]:
        differs = "A target that breaks assign/6 answers the same input in several ways"
        lines += ["", f"{differs}. Its other findings may differ from run to run.", ""]
        lines += [f"- {escaped(target)}" for target in unsteady]
    if held:
        lines += ["", f"Broken by none of them: {', '.join(clause.id for clause in held)}."]
    return [*lines, ""]


def _profiles(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    """Each client that was searched by a profile of its own, and which."""
    own = ((one.column.client, one.column.profile) for one in judged if one.column.profile)
    return list(dict.fromkeys(own))


def _short(judged: Sequence[Judged], about: report.About, page: Callable[[Judged], str]) -> list[str]:
    """For each of the newest what it breaks, by level."""
    anchors = report.anchors(judged)
    rows = []
    for one in _newest(judged):
        found: dict[Level, list[str]] = {level: ["?"] if one.error else [] for level in Level}
        for clause in TABLE:
            key, cell = report.merged(one, clause)
            if cell.mark is CellMark.BROKEN:
                anchor = anchors[one.column.spec, key]
                trace = about.trace(cell)
                mark = UNUSUAL if trace and unusual_preconditions(trace.scenario) else ""
                found[clause.level].append(f"[{clause.id}]({page(one)}#{anchor}){mark}")
        marks = (", ".join(found[level]) or "·" for level in Level)
        rows.append([*map(escaped, [*_named(one), _exists(one)]), *marks])
    return table(["client", "assignor", "release", "newest", *(f"breaks {level}" for level in Level)], rows)


def _named(one: Judged) -> list[str]:
    """Client, assignor and release; of a target that is no client's its spec, and nothing."""
    if one.column.client:
        return [one.column.client, one.column.assignor, one.release]
    return [one.column.spec, "", ""]


def _exists(one: Judged) -> str:
    """The newest release of its client that exists."""
    return one.column.newest or ("-" if one.column.client else "")


def _matrix(judged: Sequence[Judged], page: Callable[[Judged], str]) -> list[str]:
    broken, _ = _columns(judged)
    anchors = report.anchors(judged)
    heads = [c.id if c.level is Level.QUALITY else f"**{c.id}**" for c in broken]
    rows = []
    for one in _newest(judged):
        cells = []
        for clause in broken:
            key, cell = report.merged(one, clause)
            mark = report.mark(cell).replace(".", "·")
            anchor = anchors.get((one.column.spec, key), "")
            cells.append(f"[{mark}]({page(one)}#{anchor})" if anchor else mark)
        rows.append([*map(escaped, _named(one)), *cells])
    return table(["client", "assignor", "release", *heads], rows)


def _newest(judged: Sequence[Judged]) -> Iterator[Judged]:
    """The last release of each assignor of each client, and every target that is neither."""
    for members in report.by_group(judged):
        yield from members[-1:] if members[0].column.client else members


def _columns(judged: Sequence[Judged]) -> tuple[list[Clause], list[Clause]]:
    """The clauses that a newest release breaks, and those that one keeps and none breaks."""
    marks = {c: {report.merged(one, c)[1].mark for one in _newest(judged)} for c in TABLE}
    broken = [c for c in TABLE if CellMark.BROKEN in marks[c]]
    return broken, [c for c in TABLE if CellMark.HOLDS in marks[c] and c not in broken]


if __name__ == "__main__":
    sys.exit(main())
