"""``rebalance compare``: targets, or the releases of clients, beside each other."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.base.text import span
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    print_err,
    print_out,
    print_text,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import LIMITS, add_format, add_options
from rebalance_verifier.cli.shared.targets import clauses, resolved
from rebalance_verifier.cli.shared.values import comma_separated, unless_all

if TYPE_CHECKING:
    from rebalance_verifier.gate.compare.clients import PinnedClient
    from rebalance_verifier.gate.compare.compare import Judged, TargetColumn, TargetComparison
    from rebalance_verifier.gate.search.counterexamples import Trace
    from rebalance_verifier.live.artifacts.registries import Existing


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "compare",
        epilog="Exit codes: 0 every cell has its verdict. 1 a bug differs from the catalogue, shown "
        "or missing. 3 a target was not judged or a cell has no verdict (?).",
        description="Check every TARGET and the releases of every --client, and play each counterexample "
        "on all of them. Show which clauses each breaks and which known bugs each has, as "
        "text, json or md. Results are kept in .rebalance/compare or --out, and a second run "
        "continues.",
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="as `rebalance check` takes it, or "
                        "@FILE: clients, written as in gate/compare/clients.json")  # fmt: skip
    parser.add_argument("--client", type=comma_separated, metavar="all|C[,C...]",
                        help="clients in their releases: "
                        "reference, kafka-clients (of Java), kafka-python, aiokafka")  # fmt: skip
    parser.add_argument(
        "--versions",
        type=comma_separated,
        metavar="all|newest|V[,V...]",
        help="releases of --client (default: kafka-clients). all: those of "
        "gate/compare/clients.json that the registries have, and the last of each minor "
        "series. newest: the last (all)",
    )
    parser.add_argument(
        "--only", type=comma_separated, metavar="A[,A...]", help="which of their assignors (all)"
    )
    parser.add_argument("--traces", type=Path, action="append", default=[], metavar="PATH", help="replay "
                        "this trace, or all in this directory, on all targets too; repeatable")  # fmt: skip
    add_options(parser, "--profile", "--clause", "--seed", "--out", profile="smoke", seed=0)
    add_format(parser, "md")
    add_options(parser, "--jobs", *LIMITS, "--verbose", "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.gate.compare import compare

    comparison = comparison_of(options)
    try:
        with usage_errors(compare.CompareError, OSError):
            files.make_root(ROOT)
            judged = compare.run(comparison, report_progress(options))
    except KeyboardInterrupt:
        print_err(f"interrupted: what is known is kept in {comparison.directory}; the same command goes on")
        _show(compare.stored(comparison), comparison, options.format, options.verbose)
        return Exit.INTERRUPTED
    _show(judged, comparison, options.format, options.verbose)
    return exit_of(judged)


def columns(
    targets: Sequence[str],
    wanted: Sequence[str] | None,
    releases: Sequence[str] | None,
    assignors: Sequence[str] | None,
    ask: Callable[[Iterable[str]], Mapping[str, Existing]] | None = None,
) -> tuple[TargetColumn, ...]:
    """Return the targets, then the known clients that are wanted and those of files among the targets
    (``@FILE``).

    ``ask`` is who knows which releases exist, the registries without any; what they do not say is said on
    stderr. Raises UsageError.
    """
    from rebalance_verifier.gate.compare import clients
    from rebalance_verifier.gate.compare.compare import TargetColumn
    from rebalance_verifier.live.artifacts import registries

    known = {client.name: client for client in clients.pinned()}
    wanted = ("kafka-clients",) if wanted is None and releases else tuple(wanted or ())
    wanted = tuple(known) if "all" in wanted else wanted
    assignors = unless_all(assignors or ())
    if others := [name for name in wanted if name not in known]:
        if os.path.isfile(file := others[0].removeprefix("@")):
            raise UsageError(f"--client: {file} is a file of clients, which is a TARGET: @{file}")
        raise UsageError(f"--client: {unknown('client', others[0], [*known, 'all'])}")
    found = [known[name] for name in wanted]
    with usage_errors(ValueError):  # of a file, or a release that is no release
        for spec in targets:
            found += clients.read(Path(spec[1:])) if spec.startswith("@") else ()
        of_clients = _of(found, releases, assignors, {})  # so that nobody is asked for what is wrong
        packages = [one.package for one in found if one.package and one.has(assignors)]
        if packages:
            of_clients = _of(found, releases, assignors, (ask or registries.existing_of)(packages))
    for name in assignors:
        if not any(column.assignor == name for column in of_clients):
            raise UsageError(f"--only: none of the clients has {name!r}")
    named = [TargetColumn(spec=spec, label=spec) for spec in targets if not spec.startswith("@")]
    return tuple(dict.fromkeys([*named, *of_clients]))


def _of(
    columns: Sequence[PinnedClient],
    releases: Sequence[str] | None,
    assignors: Sequence[str] | None,
    existing: Mapping[str, Existing],
) -> list[TargetColumn]:
    """Return the columns of clients, and on stderr what is not known of their packages. Raises ValueError."""
    for answer in existing.values():
        if answer.trouble:
            print_err(f"{answer.trouble}; those that are named are taken")
    return [
        column
        for client in columns
        for column in client.columns(
            releases or ("all",),
            assignors or (),
            existing[client.package].releases if client.package in existing else (),
        )
    ]


def comparison_of(options: argparse.Namespace) -> TargetComparison:
    """Return the comparison that the options ask for. Raises UsageError."""
    from rebalance_verifier.base.processes.workers import processors
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.compare.compare import TargetComparison
    from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan

    found = columns(options.targets, options.client, options.versions, options.only)
    if not found:
        raise UsageError("name the TARGETs to compare, or --client, or --versions all")
    for column in found:
        if not column.client:
            resolved(column.spec)
    return TargetComparison(
        columns=found,
        directory=Path(options.out or ROOT / "compare"),
        plan=CheckPlan(
            clauses=clauses(options.clause),
            profile=PROFILES[options.profile],
            seed=options.seed,
            level=Level.QUALITY,
        ),
        call_seconds=options.call_seconds,
        memory_mib=options.memory_mib,
        known=_known(options.traces),
        jobs=int(options.jobs or processors()),
    )


def _known(paths: Sequence[Path]) -> tuple[Trace, ...]:
    """Return the traces at these paths, in the order of their names. Raises UsageError."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.gate.search import counterexamples

    found = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    with usage_errors(files.TraceError, option="--traces"):
        return tuple(map(counterexamples.load, found))


def report_progress(options: argparse.Namespace) -> Callable[[int, int, str], None]:
    """Says what is done, and how long the rest of the pass will take if it goes on as since its start."""
    if options.no_progress:
        return lambda done, total, what: None
    start = 0.0

    def print_progress(done: int, total: int, what: str) -> None:
        nonlocal start
        if not done:
            start = time.monotonic()
        left = f"  (about {span((time.monotonic() - start) / done * (total - done))} left)" if done else ""
        print_err(f"{done + 1}/{total} {what}{left}")

    return print_progress


def _show(judged: Sequence[Judged], comparison: TargetComparison, form: str, verbose: bool) -> None:
    from rebalance_verifier.report.terminal import comparison as report

    about = report.About.of(comparison)
    if form == "json":
        print_out(report.to_json(judged))
    elif form == "md":
        print_out(report.markdown(judged, about))
    else:
        print_text(report.text(judged, verbose=verbose))


def exit_of(judged: Sequence[Judged]) -> int:
    """Return the exit code: a cell that is not as the catalogue says counts more than one without a
    verdict."""
    if not all(cell.agrees for one in judged for cell in one.entries.values()):
        return Exit.VIOLATION
    unknown = any(cell.mark.value == "?" for one in judged for cell in one.cells)
    return Exit.INCONCLUSIVE if unknown or any(one.error for one in judged) else Exit.CONFORMANT
