"""``rebalance bugs``: the history of rebalancing in the field, and each of its mistakes made again."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.text import clean
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import progress, staged
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    print_json,
    print_out,
    print_text,
    unicode,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import add_format, add_options
from rebalance_verifier.cli.shared.targets import clauses, resolved
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.traces.recognise import right_command

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.matrix import Cell
    from rebalance_verifier.model.bugs.catalogue import Entry
    from rebalance_verifier.model.bugs.observed import Observations
    from rebalance_verifier.model.bugs.profiles import ReleaseProfile


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
    add_options(parser, "--no-progress")
    return parser


def run(options: argparse.Namespace) -> int:
    """Return the command."""
    chosen = _chosen(options.entries)
    for name in ("release", "on"):
        if getattr(options, name) and not options.matrix:
            raise UsageError(f"--{name} goes with --matrix")
    if options.matrix:
        return _matrix(options, [switch for entry in chosen for switch in entry.switches])
    if not options.entries:
        _list(options)
        return 0
    if options.format != "text":
        raise UsageError("--format goes with the list and with --matrix")
    worst = 0
    for number, entry in enumerate(chosen):
        if number:
            print_text("")
        worst = max(worst, _reproduce(entry, options))
    return worst


def _chosen(names: Sequence[str]) -> list[Entry]:
    from rebalance_verifier.model.bugs.catalogue import CATALOGUE, entries_of

    found: dict[str, Entry] = {}
    for name in CATALOGUE if "all" in names else names:
        entries = [CATALOGUE[name.upper()]] if name.upper() in CATALOGUE else entries_of(name)[:1]
        if not entries:
            if other := right_command(Path(name)):
                raise UsageError(other)
            every = [*CATALOGUE, *(switch for one in CATALOGUE.values() for switch in one.switches)]
            raise UsageError(unknown("bug or switch", name, every, "rebalance bugs"))
        found |= {entry.id: entry for entry in entries}
    return list(found.values())


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


def _reproduce(entry: Entry, options: argparse.Namespace) -> int:
    """Story and runs of one entry; 0 when everything that can be shown was, else 1."""
    from rebalance_verifier.explore.groups.bugs import shown_by
    from rebalance_verifier.report.terminal import bugs as text

    print_text(text.story(entry))
    worst = 0
    for switch, how, what in shown_by(entry):
        if how == "not":
            print_text("\n".join(["", *labelled("not shown", what)]))
        elif options.story:
            where = f"breaks {what} on the model" if how == "model" else f"rebalance check {what}"
            print_text("\n".join(labelled("switch", f"{switch}: {where}")))
        elif how == "model":
            worst = max(worst, _on_the_model(switch, options))
        else:
            worst = max(worst, _by_check(switch, what, options))
    return worst


def _on_the_model(switch: str, options: argparse.Namespace) -> int:
    from rebalance_verifier.explore.groups.bugs import SHOWN
    from rebalance_verifier.explore.groups.reproduction import reproduce
    from rebalance_verifier.report.terminal import bugs as text
    from rebalance_verifier.traces import runs

    shown = SHOWN[switch]
    with staged(options, f"searching for {switch}"):
        found = reproduce(shown)
    trace = ""
    if found is not None and options.out:
        with usage_errors(OSError, option="--out"):
            trace = str(runs.save(found, Path(options.out)))
    print_text(text.reproduced(shown, found, trace))
    return Exit.VIOLATION if found is None else Exit.CONFORMANT


def _by_check(switch: str, spec: str, options: argparse.Namespace) -> int:
    """Return what ``rebalance check`` finds in the reference assignor with this mistake."""
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search.result import Status
    from rebalance_verifier.model.bugs.switches import SWITCHES
    from rebalance_verifier.report.terminal.check import block

    print_text("\n".join(["", *labelled("switch", f"{switch}: {SWITCHES[switch].sentence}")]))
    for profile in ("smoke", "ci"):
        with staged(options, f"rebalance check {spec} --profile {profile}"):
            result = judged(spec, profile)
        rows = [row for row in result.clauses if row.status is Status.VIOLATED and row.finding]
        rows.sort(key=lambda row: list(Level).index(row.clause.level))
        if rows:
            print_text(
                "\n".join(labelled("check", f"rebalance check {spec} --level quality --profile {profile}"))
            )
            print_text("\n".join(["", *block("VIOLATION", rows[0], unicode())]))
            others = [f"{row.clause.id}-{row.protocol}" for row in rows[1:]]
            if others:
                print_text("\n".join(labelled("also", ", ".join(others))))
            return 0
    print_text("\n".join(labelled("NOT SHOWN", f"rebalance check {spec} finds nothing in profile ci")))
    return Exit.VIOLATION


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
    from rebalance_verifier.report.terminal.matrix import data, render, unexplained

    chosen = tuple(dict.fromkeys(switch for switch in switches if switch in SHOWN))
    if switches and not chosen:
        raise UsageError("nothing of that is shown on the model; `rebalance bugs ID` says how it is shown")
    columns = _columns(options)
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
