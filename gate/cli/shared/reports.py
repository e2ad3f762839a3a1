"""Reports for CI systems on the command line: the options that commands share, and writing the files."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance.gate.cli.console.terminal import ROOT, UsageError, print_err, print_out
from rebalance.gate.cli.shared.values import comma_separated
from rebalance.gate.traces.files import REPORTS

if TYPE_CHECKING:
    from rebalance.gate.report.ci.cases import CiReport

Own = Mapping[str, Callable[[], str]]
"""Formats that a command has of its own -> what makes the text."""


def _renderer(module: str) -> Callable[[CiReport], str]:
    def render(report: CiReport) -> str:
        made: str = import_module(f"rebalance.gate.report.ci.{module}").render(report)
        return made

    return render


CI_WRITERS = {name: _renderer(name) for name in ("junit", "sarif", "markdown")}
"""The formats of CI systems, which every command can write; their modules are imported on first use."""


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


def wanted(
    options: argparse.Namespace, own: Sequence[str], unasked: tuple[str, ...] = ("html",)
) -> tuple[tuple[str, ...], Path | None]:
    """The formats to write, of the command's ``own`` and those of CI systems, and the directory.

    ``unasked``: what is written where ``--report`` is not given and text is printed. Raises UsageError.
    """
    chosen = formats(options, (*own, *CI_WRITERS), unasked if options.format == "text" else ())
    return chosen, directory(chosen, options)


def noted(options: argparse.Namespace, chosen: tuple[str, ...]) -> bool:
    """Whether to say where reports are: the text that is printed names the page itself."""
    return chosen != ("html",) or options.format != "text"


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


def write(directory: Path, chosen: Sequence[str], report: CiReport, own: Own) -> None:
    """Write the ``chosen`` formats, each file whole or not at all, and each whatever becomes of the others.

    ``own``: those of the command; the others are CI systems'.
    """
    from rebalance.gate.traces import files

    known: Own = {**{name: partial(render, report) for name, render in CI_WRITERS.items()}, **own}
    for name in chosen:
        if name in known:
            with spared(str(directory / REPORTS[name])):
                files.write(directory / REPORTS[name], known[name]())


def finish(
    made: Callable[[], CiReport],
    directory: Path | None,
    chosen: Sequence[str],
    own: Own,
    options: argparse.Namespace,
    *,
    noted: bool,
) -> None:
    """Write what is ``chosen`` to ``directory`` and do what ``--ci`` asks for; ``made`` says what was found.

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
