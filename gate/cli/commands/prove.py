"""``rebalance prove``: the protocol is safe in groups of any size, if the assignor keeps its contract."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import report_options
from rebalance.gate.cli.console.terminal import (
    EXITS,
    UsageError,
    color,
    draw,
    positive,
    print_err,
    print_out,
    usage,
    whole,
)

if TYPE_CHECKING:
    from rebalance.specs.proving import Proof, ProofPlan, ReportProgress


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "prove",
        help="prove the protocol safe for groups of any size",
        epilog=f"{EXITS}. Proved is 0, refuted 1, unknown 3.",
        description="Prove the protocol: that its invariants hold in every state that any group can reach, "
        "and what follows from them. Of the assignor nothing is assumed but its contract.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--theorem", action="append", default=[], metavar="NAME", help="only this one, such "
                        "as commit-fencing, and what it rests upon; repeatable")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the obligations, prove nothing")
    parser.add_argument("--without", action="append", default=[], metavar="CLAUSE", help="do not assume "
                        "this clause of the assignor's contract: what is it for? repeatable")  # fmt: skip
    parser.add_argument("--necessity", nargs="*", metavar="NAME", help="make each clause and decision "
                        "otherwise and see what breaks, as a run that replays on the model; all, "
                        "in a line each, or those named, in full")  # fmt: skip
    parser.add_argument("--limit", type=positive, default=10.0, metavar="SECONDS",
                        help="for one obligation (10); what takes longer is unknown")  # fmt: skip
    parser.add_argument("--jobs", type=whole, metavar="N", help="how many processes (as many as processors)")
    parser.add_argument("--smt2", type=Path, metavar="DIR", help="write each obligation there as a file in "
                        "SMT-LIB 2, for other solvers")  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text")
    report_options.add(parser, "html (this one, unless --format says otherwise), json, junit, sarif, "
                  "markdown")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="count", default=0, help="a line for each action, and "
                        "each counterexample in full")  # fmt: skip
    parser.add_argument("--no-progress", action="store_true", help="no progress line on the terminal")
    parser.add_argument("--no-color", action="store_true", help="also by the variable NO_COLOR")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate.cli.writers import CI_WRITERS
    from rebalance.gate.report.terminal import proof as report
    from rebalance.live.processes import workers
    from rebalance.specs import proving

    if options.necessity is not None:
        from rebalance.gate.cli.commands import necessity

        as_json = options.format == "json"
        return necessity.run(options.necessity, limit=options.limit, jobs=options.jobs, as_json=as_json)
    with _unbroken():
        plan = _plan(options)
    if options.list:
        _list(plan, options)
        return 0
    if plan.smt2 is not None:
        try:
            plan.smt2.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--smt2: {error}") from error
    unasked = ("html",) if options.format == "text" else ()
    formats = report_options.formats(options, ("html", "json", *CI_WRITERS), unasked)
    directory = report_options.directory(formats, options)
    with _ticker(options) as report_progress:
        proof = proving.run_proof(plan, report_progress, partial(workers.spread, jobs=options.jobs))
    if options.format == "json":
        print_out(json.dumps(report.data(proof), indent=2))
    else:
        page = report_options.page(directory, formats)
        print_out(report.render(proof, verbose=options.verbose, color=color(options), page=page))
    _report(proof, formats, directory, options)
    if proof.interrupted:
        print_err("interrupted")
    return int(report.exit_of(proof))


def _report(
    proof: Proof, formats: tuple[str, ...], directory: Path | None, options: argparse.Namespace
) -> None:
    """The report as files, and what a CI system is told."""
    from rebalance.gate.report.ci import ci_reports
    from rebalance.gate.report.html import proof as html_proof
    from rebalance.gate.report.terminal import proof as report

    own = {
        "html": ("report.html", lambda: html_proof.render(proof)),
        "json": ("report.json", lambda: json.dumps(report.data(proof), indent=2) + "\n"),
    }
    noted = formats != ("html",) or options.format != "text"
    report_options.finish(lambda: ci_reports.proved(proof), directory, formats, own, options, noted=noted)


def _plan(options: argparse.Namespace) -> ProofPlan:
    from rebalance.specs.necessity import vacuity
    from rebalance.specs.protocol.contract import LIVENESS, SAFETY
    from rebalance.specs.proving import ProofPlan
    from rebalance.specs.theorems.proof import proof
    from rebalance.specs.theorems.safety import specification
    from rebalance.specs.theorems.theorems import chosen

    for name in options.without:
        if name not in SAFETY:
            raise UsageError(f"--without: no clause is called {name!r}; there are: {', '.join(SAFETY)}")
    contract = {name: clause for name, clause in SAFETY.items() if name not in options.without}
    try:
        wanted = chosen(proof(contract), options.theorem)
    except ValueError as error:
        raise UsageError(f"--theorem: {usage(error)}") from error
    without = tuple(dict.fromkeys(options.without))
    return ProofPlan(
        theorems=wanted,
        contract=tuple(contract),
        without=without,
        limit=options.limit,
        checks=vacuity.checks(specification(contract=contract), {**contract, **LIVENESS}),
        smt2=options.smt2,
    )


def _list(plan: ProofPlan, options: argparse.Namespace) -> None:
    from rebalance.specs.proving import listed

    rows = listed(plan.theorems)
    if options.format == "json":
        written = [
            {"theorem": theorem.name, "kind": kind, "case": case, "goal": goal}
            for theorem, kind, case, goal in rows
        ]
        print_out(json.dumps(written, indent=2))
        return
    lines = []
    for theorem in plan.theorems:
        source = f" ({theorem.source})" if theorem.source else ""
        lines += [f"{theorem.name}: {theorem.sentence}{source}"]
        lines += [
            f"  {f'{kind} {case}'.rstrip()}: {goal}" for one, kind, case, goal in rows if one is theorem
        ]
    print_out("\n".join(lines))


@contextlib.contextmanager
def _unbroken() -> Iterator[None]:
    """Ctrl-C waits until the end: z3's bindings would make another exception of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _ticker(options: argparse.Namespace) -> Iterator[ReportProgress | None]:
    """A progress line with an estimate, on a terminal only, a few times a second."""
    if options.no_progress or not sys.stderr.isatty():
        yield None
        return
    began, shown = time.monotonic(), 0.0

    def report_progress(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.3:
            return
        shown = now
        left = (now - began) * (total - done) / done
        line = f"{done:,} of {total:,} obligations and checks, about {left:.0f} s left"
        draw(line)

    try:
        yield report_progress
    finally:
        if shown:
            draw()
