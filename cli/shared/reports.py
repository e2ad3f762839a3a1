"""Reports for CI systems on the command line: the options that commands share, and writing the files."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.saved import (
    REPORTS,
    ROOT,
)
from rebalance_verifier.base.text import WIDEST, page_of
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    json_text,
    make_directory,
    print_err,
    print_out,
    usage_errors,
)
from rebalance_verifier.cli.shared.values import comma_separated

if TYPE_CHECKING:
    from rebalance_verifier.report.ci.cases import CiCase, CiReport
    from rebalance_verifier.traces.history import PastRun

INDEX = "index.html"
"""The page of all runs, below ``ROOT``."""

Own = Mapping[str, Callable[[], str]]
"""Formats that a command has of its own -> what makes the text."""


def _renderer(module: str) -> Callable[[CiReport], str]:
    def render(report: CiReport) -> str:
        made: str = import_module(f"rebalance_verifier.report.ci.{module}").render(report)
        return made

    return render


CI_WRITERS = {name: _renderer(name) for name in ("junit", "sarif", "markdown")}
"""The formats of CI systems, which every command can write; their modules are imported on first use."""


@dataclass
class Reports:
    """The reports of one run: their formats, and their directory once there is one."""

    options: argparse.Namespace
    chosen: tuple[str, ...]
    directory: Path | None = None

    @classmethod
    def wanted(
        cls, options: argparse.Namespace, own: Sequence[str], unasked: tuple[str, ...] = ("html",)
    ) -> Reports:
        """Return those that ``--report`` names, of the command's ``own`` formats and those of CI systems.

        ``unasked``: what is written where it is not given and text is printed. Raises UsageError for one
        that is not known, and for two things at once on stdout.
        """
        printed = getattr(options, "format", "text")
        given, known = options.report, (*own, *CI_WRITERS)
        chosen = comma_separated(given) if given is not None else () if printed != "text" else unasked
        chosen = known if "all" in chosen else chosen
        if others := [name for name in chosen if name not in known]:
            raise UsageError(f"--report: {unknown('format', others[0], known)}")
        if options.ci != "none" and printed != "text":
            other = "--report json for a file" if printed == "json" else "one of them"
            raise UsageError(f"--ci {options.ci} and --format {printed} both print: say {other}")
        return cls(options, chosen)

    @classmethod
    def of_cases(cls, options: argparse.Namespace) -> Reports:
        """Return those of a command that shows its cases, none where ``--report`` is not given. Raises
        UsageError."""
        return cls.wanted(options, ("html", "json"), ()).open()

    def finish_cases(
        self, made: Callable[[], CiReport], document: Callable[[], Any] | None = None, *, lead: str
    ) -> None:
        """Write them where the page of the command is that of its cases; ``lead`` is its first sentence.

        ``document``: its own, where that is not that of its cases.
        """
        from rebalance_verifier.report.ci import document as of_cases
        from rebalance_verifier.report.ci import pages

        own: Own = {
            "json": lambda: json_text(document() if document else of_cases.to_json(made())) + "\n",
            "html": lambda: pages.render(made(), lead),
        }
        self.finish(made, own, noted=True)

    def open(self) -> Reports:
        """Make the directory, before the search: that it cannot be made is better known now.

        There is none where nothing is written but what the terminal shows. Raises UsageError, unless nobody
        asked for a report.
        """
        from rebalance_verifier.base import saved as files

        self.directory = self.options.report_dir
        try:
            if self.directory is not None:
                self.directory.mkdir(parents=True, exist_ok=True)
            elif any(name != "text" for name in self.chosen):
                self.directory = files.run_directory(ROOT, datetime.now(UTC))
        except OSError as error:
            if self.options.report is not None or self.options.report_dir is not None:
                raise UsageError(f"no directory for reports: {error}") from error
            print_err(f"no report is written: {error}")
        return self

    @property
    def page(self) -> str:
        """Return the HTML report, by a name that the next run uses again; "" where there is none."""
        from rebalance_verifier.base import saved as files

        if self.directory is None or "html" not in self.chosen:
            return ""
        return str(files.by_latest(self.directory) / REPORTS["html"])

    @property
    def unseen(self) -> bool:
        """Check whether the text that is printed does not name all of them, which is the page alone."""
        return self.chosen != ("html",) or self.options.format != "text"

    def finish(self, made: Callable[[], CiReport], own: Own, *, noted: bool) -> None:
        """Write them and do what ``--ci`` asks for; ``made`` says what was found.

        ``own``: the formats of the command. ``noted``: say where the reports are. Nothing that goes wrong
        costs the verdict.
        """
        if self.directory is None and self.options.ci == "none":
            return
        with log_and_continue("a report"):
            report = made()
            if self.directory is not None:
                write(self.directory, self.chosen, report, own)
                if noted:
                    print_err(f"reports: {self.directory}")
                if self.directory.parent == ROOT:
                    with log_and_continue("the index of runs"):
                        remember(report, self.directory)
            if self.options.ci == "github":
                publish_to_github(report)


def results_directory(out: str | None) -> Path:
    """Return the directory that ``--out`` names, a new or empty one, so that nothing is overwritten.

    Without it that of this run below ``ROOT``. Raises UsageError.
    """
    from rebalance_verifier.base import saved as files

    if out:
        return make_directory(Path(out), "--out", empty=True)
    with usage_errors(OSError, option="--out"):
        return files.run_directory(ROOT, datetime.now(UTC))


@contextlib.contextmanager
def log_and_continue(what: str) -> Iterator[None]:
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
    from rebalance_verifier.base import saved as files

    known: Own = {**{name: partial(render, report) for name, render in CI_WRITERS.items()}, **own}
    for name in chosen:
        if name in known:
            with log_and_continue(str(directory / REPORTS[name])), page_of(WIDEST):
                files.write(directory / REPORTS[name], known[name]())


def past(report: CiReport, directory: Path) -> PastRun:
    """Return what is remembered of a run whose reports are in ``directory``.

    Of an assignor the subject is the target, whatever is asked of it; of a group all that makes it one.
    """
    from rebalance_verifier.traces.history import BROKEN, PastRun

    group = [f"{name}={value}" for name, value in report.properties if name not in ("scenario", "faults")]
    named = [report.subject, *(group if report.command == "explore" else [])]
    return PastRun(
        when=directory.name[:16],
        directory=directory.name,
        command=report.command,
        subject=" ".join(named)[:300],
        verdict=report.verdict.value,
        headline=report.headline[:300],
        cases={case.id: case.status.value for case in report.cases},
        findings={
            case.id: (_in_index(case), next((one.command for one in case.evidence), ""))
            for case in report.cases
            if case.status in BROKEN
        },
    )


def _in_index(case: CiCase) -> str:
    """Return what is wrong, and of what is known why it may be."""
    why = f"; known: {case.note}" if case.status.value == "known" and case.note else ""
    return f"{case.message[:300]}{why[:200]}"


def remember(report: CiReport, directory: Path) -> None:
    """Add a run to the index of those that were made here, ``.rebalance/index.html``."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.base.files import alone
    from rebalance_verifier.report.html import history as page
    from rebalance_verifier.traces import history

    root = directory.parent
    with alone(root):  # else another run's page, without this one, may be the last
        runs = history.remember(past(report, directory), root)
        shown = page.render(runs, lambda run: os.path.exists(root / run.directory / REPORTS["html"]))
        files.write(root / INDEX, shown)


def publish_to_github(report: CiReport) -> None:
    """Annotations, and the summary of the step."""
    from rebalance_verifier.report.ci import github

    with log_and_continue("annotations"):
        if commands := github.commands(report):
            print_out("\n".join(commands))
    with log_and_continue("the step summary"):
        github.summarise(report)
