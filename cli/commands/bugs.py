"""``rebalance bugs``: the history of rebalancing in the field, and each of its mistakes made again."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.text import clean
from rebalance_verifier.cli.console.progress import progress, staged
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    print_json,
    print_out,
    print_text,
    unicode,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options, refuse
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.targets import clauses, resolved
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.traces.recognise import right_command

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.matrix import Cell
    from rebalance_verifier.model.bugs.catalogue import Entry
    from rebalance_verifier.model.bugs.observed import Observations
    from rebalance_verifier.model.bugs.profiles import ReleaseProfile
    from rebalance_verifier.report.terminal.bugs import Reproduction


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bugs",
        epilog="A bug that is shown is what was asked for: exit 0.",
        description="List the catalogue of rebalance bugs that were released (text, json or md). With "
        "IDs, tell their story and reproduce each, on the model or by `rebalance check`. "
        "--out keeps the runs, for replay and show. --matrix compares the catalogue, the "
        "model, and the observations of Kafka's own code (docs/results/released.md). With "
        "--on code:RELEASE[,RELEASE...] it observes them now.",
    )
    parser.add_argument("entries", nargs="*", metavar="ID", help="an entry such as J1, or a switch")
    parser.add_argument("--matrix", action="store_true", help="releases x bugs, each cell by running; takes "
                        "minutes without ID and --release, which names columns")  # fmt: skip
    add_options(parser, "--release", "--on")
    parser.add_argument("--story", action="store_true", help="tell the story only, run nothing")
    add_options(parser, "--out")
    add_format(parser, "md")
    add_options(parser, *REPORTS, "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    chosen = _chosen(options.entries)
    for name in ("release", "on"):
        if getattr(options, name) and not options.matrix:
            raise UsageError(f"--{name} goes with --matrix")
    if options.matrix:
        return _matrix(options, [switch for entry in chosen for switch in entry.switches])
    if not options.entries or options.story:
        refuse(options, REPORTS, "goes with IDs, which are run, and with --matrix: `rebalance bugs all`")
    if not options.entries:
        _list(options)
        return 0
    if options.story:
        if options.format != "text":
            raise UsageError("--format does not go with --story")
        for number, entry in enumerate(chosen):
            if number:
                print_text("")
            _print_story(entry)
        return 0
    return _reproduce_all(chosen, options)


def _reproduce_all(chosen: Sequence[Entry], options: argparse.Namespace) -> int:
    """Tell the story of each entry and make it again; the exit code."""
    from rebalance_verifier.report.terminal import bugs as text

    if options.format == "md":
        raise UsageError("--format md goes with the list and with --matrix: say --report markdown")
    reports = Reports.of_cases(options)
    found: list[Reproduction] = []
    try:
        for number, entry in enumerate(chosen):
            if options.format == "text":
                print_text("\n" * bool(number) + text.story(entry))
            for one in _reproduce(entry, options):
                found.append(one)
                if options.format == "text":
                    print_text(text.reproduction_text(one, unicode()))
    except KeyboardInterrupt:
        if found:  # what was made again is not lost
            _finish(reports, found, options, interrupted=True)
        raise
    return _finish(reports, found, options)


def _finish(
    reports: Reports, found: Sequence[Reproduction], options: argparse.Namespace, *, interrupted: bool = False
) -> int:
    """Write the reports, and print the document where it was asked for; the exit code."""
    from rebalance_verifier.report.ci import document, trace_reports

    report = trace_reports.reproduced(found, interrupted=interrupted)
    if options.format == "json":
        print_json(document.to_json(report))
    reports.finish_cases(
        lambda: report, lead="This page shows known Kafka rebalance bugs, each made again in a small group."
    )
    return report.exit


def _chosen(names: Sequence[str]) -> list[Entry]:
    from rebalance_verifier.model.bugs.catalogue import CATALOGUE, entries_of

    chosen: dict[str, Entry] = {}
    for name in CATALOGUE if "all" in names else names:
        entries = [CATALOGUE[name.upper()]] if name.upper() in CATALOGUE else entries_of(name)[:1]
        if not entries:
            if other := right_command(Path(name)):
                raise UsageError(other)
            every = [*CATALOGUE, *(switch for one in CATALOGUE.values() for switch in one.switches)]
            raise UsageError(unknown("bug or switch", name, every, "rebalance bugs"))
        chosen |= {entry.id: entry for entry in entries}
    return list(chosen.values())


# -- the list ------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> None:
    from rebalance_verifier.explore.groups.bugs import shown_by
    from rebalance_verifier.model.bugs.catalogue import CATALOGUE
    from rebalance_verifier.report.terminal import bugs as text

    rows = [(entry, list(shown_by(entry))) for entry in CATALOGUE.values()]
    if options.format == "json":
        print_json([_entry_out(entry, shown) for entry, shown in rows])
        return
    if options.format == "md":
        print_out(text.markdown(entry for entry, _ in rows))
        return
    print_text(text.listed(rows))


def _entry_out(entry: Entry, shown: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    facts = ("id", "title", "level", "project", "affected", "trackers", "breaks", "switches")
    ways = [dict(zip(("switch", "how", "what"), one, strict=True)) for one in shown]
    return {**{name: getattr(entry, name) for name in facts}, "shown": ways, "story": entry.story}


# -- one entry -----------------------------------------------------------------------------------------


def _print_story(entry: Entry) -> None:
    """Tell the story of an entry and how its switches are shown, and run nothing."""
    from rebalance_verifier.explore.groups.bugs import shown_by
    from rebalance_verifier.report.terminal import bugs as text

    print_text(text.story(entry))
    for switch, how, what in shown_by(entry):
        if how == "not":
            print_text("\n".join(["", *labelled("not shown", what)]))
        else:
            where = f"breaks {what} on the model" if how == "model" else f"rebalance check {what}"
            print_text("\n".join(labelled("switch", f"{switch}: {where}")))


def _reproduce(entry: Entry, options: argparse.Namespace) -> Iterator[Reproduction]:
    """Make the switches of one entry again."""
    from rebalance_verifier.explore.groups.bugs import shown_by
    from rebalance_verifier.report.terminal.bugs import Reproduction

    ways = {"model": _on_the_model, "check": _by_check}
    for switch, how, what in shown_by(entry):
        to_show = Reproduction(entry=entry, switch=switch, how=how, what=what)
        yield ways[how](to_show, options) if how in ways else to_show


def _on_the_model(to_show: Reproduction, options: argparse.Namespace) -> Reproduction:
    from rebalance_verifier.explore.groups.bugs import SHOWN
    from rebalance_verifier.explore.groups.reproduction import reproduce
    from rebalance_verifier.traces import runs

    with staged(options, f"searching for {to_show.switch}"):
        run = reproduce(SHOWN[to_show.switch])
    path = ""
    if run is not None and options.out:
        with usage_errors(OSError, option="--out"):
            path = str(runs.save(run, Path(options.out)))
    return replace(to_show, run=run, path=path)


def _by_check(to_show: Reproduction, options: argparse.Namespace) -> Reproduction:
    """Add what ``rebalance check`` finds in the reference assignor with this mistake."""
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search.result import Status

    for profile in ("smoke", "ci"):
        with staged(options, f"rebalance check {to_show.what} --profile {profile}"):
            result = judged(to_show.what, profile)
        rows = [row for row in result.clauses if row.status is Status.VIOLATED and row.finding]
        rows.sort(key=lambda row: list(Level).index(row.clause.level))
        if rows:
            also = tuple(f"{row.clause.id}-{row.protocol}" for row in rows[1:])
            return replace(to_show, row=rows[0], profile=profile, also=also)
    return to_show


def judged(spec: str, profile: str) -> Any:
    """Return the result of a check of ``spec``; one of profile ci stops at the first violation."""
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan
    from rebalance_verifier.gate.search.search import check, describe
    from rebalance_verifier.gate.targets.session import Session

    plan = CheckPlan(
        clauses=clauses([]), profile=PROFILES[profile], level=Level.QUALITY, fail_fast=profile == "ci"
    )
    with Session(resolved(spec)) as session:
        return check(plan, session, describe(spec, session.hello), fresh=session.close)


# -- the matrix ----------------------------------------------------------------------------------------


def _matrix(options: argparse.Namespace, switches: Sequence[str]) -> int:
    from rebalance_verifier.explore.groups.bugs import SHOWN
    from rebalance_verifier.explore.groups.matrix import cells
    from rebalance_verifier.model.bugs.observed import OBSERVED
    from rebalance_verifier.report.ci import trace_reports
    from rebalance_verifier.report.terminal.matrix import data, render, unexplained

    chosen = tuple(dict.fromkeys(switch for switch in switches if switch in SHOWN))
    if switches and not chosen:
        raise UsageError("nothing of that is shown on the model; `rebalance bugs ID` says how it is shown")
    columns, reports = _columns(options), Reports.of_cases(options)
    observed = _observed_now(options, chosen or tuple(SHOWN)) if options.on else OBSERVED
    found: list[Cell] = []
    with usage_errors(ValueError), progress(options) as show:
        for cell in cells(chosen, columns):
            found.append(cell)
            show(lambda: f"{len(found)} cells, {found[-1].switch} {found[-1].profile.name}")
    if options.format == "json":
        print_json(data(found, observed))
    else:
        print_out(render(found, observed, markdown=options.format == "md"))
    reports.finish_cases(
        lambda: trace_reports.compared(found, observed), lambda: data(found, observed),
        lead="This page compares the catalogue of bugs with the model and with Kafka's own code.",
    )  # fmt: skip
    return 1 if unexplained(found, observed) else 0


def _columns(options: argparse.Namespace) -> list[ReleaseProfile]:
    """Return what ``--release`` and ``--on`` name; none: all. Raises UsageError."""
    from rebalance_verifier.model.bugs.profiles import broker, client

    names = [name for several in options.release for name in several]
    with usage_errors(ValueError, option="--release"):
        found = [broker(one) if one.startswith("broker-") else client(one) for one in names]
    with usage_errors(ValueError, option="--on"):
        for release in _releases_on(options):
            found += [client(f"java-{release}"), broker(f"broker-{release}")]
    return found


def _releases_on(options: argparse.Namespace) -> tuple[str, ...]:
    """Return those of ``--on code:RELEASE[,RELEASE...]``. Raises UsageError."""
    if not options.on:
        return ()
    kind, _, releases = options.on.partition(":")
    if kind != "code" or not all(releases.split(",")):
        raise UsageError("--on: releases of Kafka's code are observed, code:RELEASE[,RELEASE...]")
    return tuple(dict.fromkeys(releases.split(",")))


def _observed_now(options: argparse.Namespace, switches: Sequence[str]) -> dict[str, Observations]:
    """Return the runs of these switches on the releases of ``--on``. Raises UsageError."""
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN, SERVED_SHOWN
    from rebalance_verifier.explore.groups.released import runs_for_code
    from rebalance_verifier.live.code.lockstep.reproduce import observe_served
    from rebalance_verifier.live.code.replay.on_code import observe_part
    from rebalance_verifier.model.bugs.observed import PARTS, SERVED, concerns

    listed, found = _releases_on(options), {}
    try:
        with progress(options) as show:

            def report_line(line: str) -> None:
                show(lambda: line)

            served = {s: SERVED_SHOWN[s] for s in switches if s in SERVED_SHOWN and concerns(SERVED, s)}
            for part in PARTS:
                runs = {s: runs_for_code(s) for s in switches if s in CLASSIC_SHOWN and concerns(part, s)}
                found[part] = observe_part(part, runs, listed, progress=report_line)
            found[SERVED] = observe_served(served, listed, listed[-1], progress=report_line)
    except ToolError as error:
        raise UsageError(f"--on {options.on}: {clean(str(error))}") from error
    return found
