"""Reports for CI systems on the command line: the options that commands share, and writing the files."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli.console.terminal import ROOT, UsageError, comma_separated, print_err, print_out

if TYPE_CHECKING:
    from rebalance.gate.report.ci.cases import CiReport


def add(group: Any, known: str) -> None:
    """Add ``--report``, ``--report-dir`` and ``--ci`` to a parser or a group of its arguments."""
    group.add_argument("--report", metavar="FORMAT[,...]", help=known)
    group.add_argument("--report-dir", type=Path, metavar="DIR", help="default: .rebalance/<time>")
    add_ci(group)


def add_ci(group: Any) -> None:
    """Add ``--ci`` alone."""
    group.add_argument("--ci", choices=("github", "none"), default="none",
                       help="github: annotations and a step summary")  # fmt: skip


def formats(
    options: argparse.Namespace, known: Iterable[str], unasked: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The formats that ``--report`` names, those ``unasked`` where it is not given.

    Raises UsageError for one that is not ``known``, and for two things at once on stdout.
    """
    chosen, there = unasked if options.report is None else comma_separated(options.report), list(known)
    if unknown := [name for name in chosen if name not in there]:
        raise UsageError(f"--report: no format is called {unknown[0]!r}; known: {', '.join(there)}")
    if getattr(options, "ci", "none") != "none" and getattr(options, "format", "text") == "json":
        raise UsageError(f"--ci {options.ci} and --format json both print: say --report json for a file")
    return chosen


def directory(chosen: Sequence[str], options: argparse.Namespace) -> Path | None:
    """Where reports go, made before the search: that it cannot be made is better known now.

    None where there is nothing to write but what the terminal shows. Raises UsageError, unless nobody asked
    for a report.
    """
    from rebalance.gate.traces import files

    path: Path | None = options.report_dir
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
        elif any(name != "text" for name in chosen):
            path = files.run_directory(ROOT, datetime.now(UTC))
    except OSError as error:
        if options.report is None and options.report_dir is None:
            print_err(f"no report is written: {error}")
            return None
        raise UsageError(f"no directory for reports: {error}") from error
    return path


def page(directory: Path | None, chosen: Sequence[str]) -> str:
    """The HTML report among what is ``chosen``, by a name that is the same in the next run; or nothing."""
    from rebalance.gate.traces import files

    return str(files.by_latest(directory) / files.REPORTS["html"]) if directory and "html" in chosen else ""


@contextlib.contextmanager
def spared(what: str) -> Iterator[None]:
    """Say what goes wrong with a report, ``what`` by name, and go on: it does not cost the verdict."""
    try:
        yield
    except OSError as error:
        print_err(f"{what} cannot be written: {error}")
    except Exception as error:
        import traceback

        traceback.print_exc()
        print_err(f"{what} cannot be made: {error!r}; this is a bug of the suite, please report it")


def write(
    directory: Path,
    chosen: Sequence[str],
    report: CiReport,
    own: Mapping[str, tuple[str, Callable[[], str]]],
) -> None:
    """Write the ``chosen`` formats, each file whole or not at all, and each whatever becomes of the others.

    ``own``: those of the command, format -> (file name, what makes its text); the others are CI systems'.
    """
    from rebalance.gate.cli.writers import CI_WRITERS
    from rebalance.gate.traces import files

    known: dict[str, tuple[str, Callable[[], str]]] = {
        name: (file, partial(render, report)) for name, (file, render) in CI_WRITERS.items()
    }
    known.update(own)
    for name in chosen:
        if name in known:
            file, made = known[name]
            with spared(str(directory / file)):
                files.write(directory / file, made())


def finish(
    made: Callable[[], CiReport],
    directory: Path | None,
    chosen: Sequence[str],
    own: Mapping[str, tuple[str, Callable[[], str]]],
    options: argparse.Namespace,
    *,
    noted: bool,
) -> None:
    """Write what is ``chosen`` to ``directory`` and do what ``--ci`` asks for; ``made`` tells what was found.

    ``own`` as in ``write``. ``noted``: say where the reports are. Nothing that goes wrong costs the verdict.
    """
    if directory is None and options.ci == "none":
        return
    with spared("a report"):
        report = made()
        if directory is not None:
            write(directory, chosen, report, own)
            if noted:
                print_err(f"reports: {directory}")
        publish_ci(report, options)


def publish_ci(report: CiReport, options: argparse.Namespace) -> None:
    """What ``--ci`` asks for."""
    if options.ci != "github":
        return
    from rebalance.gate.report.ci import github

    with spared("annotations"):
        if commands := github.commands(report):
            print_out("\n".join(commands))
    with spared("the step summary"):
        github.summarise(report)
