"""``rebalance prove``: the protocol is safe in groups of any size, if the assignor keeps its contract."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.processes.supervision import defer_interrupt, noted
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import estimated, progress
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    answer,
    color,
    json_text,
    make_directory,
    print_err,
    print_json,
    print_text,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options, refuse, refuse_protocol
from rebalance_verifier.cli.shared.reports import Own, Reports
from rebalance_verifier.cli.shared.values import natural, unless_all
from rebalance_verifier.specs.logic.limit import LIMIT

if TYPE_CHECKING:
    from rebalance_verifier.specs.answers import KeptAnswers
    from rebalance_verifier.specs.classic.necessity.repairs import ShippedFindings
    from rebalance_verifier.specs.classic.refinement.sampling import ModelSample
    from rebalance_verifier.specs.logic.specification import Theorem
    from rebalance_verifier.specs.proving import ProofPlan


MODEL_STEPS = 20_000

NO_CACHE = "REBALANCE_NO_CACHE"
"""Environment variable of those who change the code while it runs, as our tests do."""

OF_CORRECTED = ("--without", "--necessity", "--model-steps", "--seed", "--smt2")
"""Options that are about the protocol as corrected."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "prove",
        epilog="Proved is 0, refuted 1, unknown 3.",
        description="Prove the protocol by inductive invariants, for groups of any size, under the "
        "contract of the assignor. Random runs of the executable model check that the proof "
        "is about it. With --release CLIENT,BROKER prove the protocol as released. A trace "
        "refutes the rest, and the report lists the decisions to repair.",
    )
    add_options(parser, "--group-protocol")
    parser.add_argument("--theorem", action="append", default=[], metavar="NAME", help="only this one, such "
                        "as commit-fencing, and what it depends on; repeatable")  # fmt: skip
    add_options(parser, "--without")
    parser.add_argument(
        "--necessity",
        nargs="*",
        metavar="NAME",
        help="change each clause and decision, and show the break as a run that replays on the "
        "model. Without NAME all, in a line each",
    )
    add_options(parser, "--release", "--solver-units", "--jobs", solver_units=LIMIT)
    parser.add_argument(
        "--model-steps",
        type=natural,
        default=MODEL_STEPS,
        metavar="N",
        help="check N steps of random runs of the model against the logic (%(default)d). With too "
        "few, or 0, the verdict is unknown",
    )
    add_options(parser, "--seed", seed=0)
    parser.add_argument("--smt2", type=Path, metavar="DIR", help="write each obligation there as a file in "
                        "SMT-LIB 2, for other solvers")  # fmt: skip
    parser.add_argument("--no-cache", action="store_true", help="ask everything again, also what was proved "
                        "with the same sources, versions and options")  # fmt: skip
    add_format(parser)
    add_options(parser, *REPORTS, "--verbose", "--no-progress", "--no-color")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.base.processes import workers
    from rebalance_verifier.report.ci import ci_reports
    from rebalance_verifier.report.html import proof as html_proof
    from rebalance_verifier.report.terminal import proof as report
    from rebalance_verifier.specs import proving

    for option in ("release", "without"):
        if getattr(options, option):
            refuse_protocol(f"prove --{option}", options.group_protocol)
    if options.release:
        return _as_shipped(options)
    if options.necessity is not None:
        return _necessity(options)
    with defer_interrupt():
        plan = _plan(options)
    if plan.smt2 is not None:
        make_directory(plan.smt2, "--smt2")
    reports = Reports.wanted(options, ("html", "json")).open()
    began = time.monotonic()

    def line(done: float, total: float) -> str:
        return estimated("of the proof", done, total, time.monotonic() - began)

    with progress(options) as show:
        proof = proving.run_proof(
            plan,
            lambda done, total: show(partial(line, done, total)),
            partial(workers.spread, jobs=options.jobs),
            _kept(options),
        )
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the verdict stands: it exits with what it prints
    text = partial(report.render, proof, verbose=options.verbose, color=color(options), page=reports.page)
    answer(options, partial(report.data, proof), text)
    own: Own = {
        "html": partial(html_proof.render, proof),
        "json": lambda: json_text(report.data(proof)) + "\n",
    }
    reports.finish(lambda: ci_reports.proved(proof), own, noted=reports.unseen)
    if proof.interrupted:
        print_err("interrupted")
    return int(proof.exit)


def _kept(options: argparse.Namespace) -> KeptAnswers | None:
    """Return what is kept of earlier proofs of the same, None where everything is to be asked again."""
    from rebalance_verifier.specs.answers import kept_answers

    if options.no_cache or options.smt2 is not None or os.environ.get(NO_CACHE):
        return None
    without = sorted(set(options.without))
    return kept_answers(options.group_protocol, str(options.solver_units), *without)


def theorems(protocol: str, names: Sequence[str], without: Sequence[str]) -> tuple[Theorem, ...]:
    """Return the theorems about ``protocol`` of these names and what they rest upon, all without any, under a
    contract that lacks some clauses. Raises UsageError."""
    from rebalance_verifier.specs.logic.theorems import chosen
    from rebalance_verifier.specs.protocols import PROOFS

    proof = PROOFS[protocol]
    with usage_errors(ValueError, option="--without"):
        kept = proof.kept(without)
    with usage_errors(ValueError, option="--theorem"):
        return tuple(chosen(proof.theorems(kept), unless_all(names)))


def _plan(options: argparse.Namespace) -> ProofPlan:
    from rebalance_verifier.specs.protocols import PROOFS
    from rebalance_verifier.specs.proving import ProofPlan, clauses

    about = PROOFS[options.group_protocol]
    wanted = theorems(options.group_protocol, options.theorem, options.without)
    kept = about.kept(options.without)
    return ProofPlan(
        theorems=wanted,
        contract=about.assumed(kept),
        without=tuple(dict.fromkeys(options.without)),
        clauses=clauses(about.every, about.converging),
        assumptions=about.assumptions,
        scope=about.scope,
        limit=options.solver_units,
        checks=about.checks(kept),
        samples=model_samples(options.model_steps, options.seed, options.group_protocol),
        sample=about.sampled,
        smt2=options.smt2,
    )


def model_samples(steps: int, seed: int, protocol: str = "classic") -> tuple[ModelSample, ...]:
    """Samples of so many steps of the model together; none of no steps."""
    from rebalance_verifier.explore.groups.sampled import SAMPLED
    from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, shares

    groups = SAMPLED[protocol]
    samples = [
        ModelSample(group=group.title, setup=group.setup(), seed=seed, steps=0, ways=group.ways)
        for group in groups
    ]
    return shares(samples, steps, [group.share for group in groups]) if steps else ()


# -- what each clause is for ---------------------------------------------------------------------------


def _necessity(options: argparse.Namespace) -> int:
    """Return one line for each variation, or all about those that are named. 0 if nothing stays open, else
    3."""
    from rebalance_verifier.base.processes.workers import spread
    from rebalance_verifier.specs.classic.necessity.examine import data, in_full, table
    from rebalance_verifier.specs.protocols import PROOFS

    known = PROOFS[options.group_protocol].variations
    names = unless_all(options.necessity)
    for name in names:
        if name not in known:
            raise UsageError(f"--necessity: nothing is called {name!r}; there are: {', '.join(known)}")
    as_json = options.format == "json"
    findings = []
    width, work = max(map(len, known)), partial(spread, jobs=options.jobs)
    try:
        for name in names or known:
            findings.append(known[name](options.solver_units, work))
            if not as_json:
                lines = in_full(findings[-1]) if names else table(findings[-1:], width)
                print_text("\n".join(lines))
    except KeyboardInterrupt:
        print_text(f"interrupted after {len(findings)}")
        return Exit.INTERRUPTED
    if as_json:
        print_json([data(finding) for finding in findings])
    still_open = [finding.variation.name for finding in findings if finding.verdict == "open"]
    if not names and not as_json:
        needed = sum(finding.verdict == "needed" for finding in findings)
        without = len(findings) - needed - len(still_open)
        counted = f"{needed} needed for safety, {without} not, {len(still_open)} open"
        print_text(f"\n{len(findings)} variations: {counted}")
    return Exit.INCONCLUSIVE if still_open else Exit.CONFORMANT


# -- as shipped ----------------------------------------------------------------------------------------


def _as_shipped(options: argparse.Namespace) -> int:
    """Return what becomes of the theorems about a client and a broker as shipped: 1 if a run refutes one, 3
    if one is open, else 0."""
    from rebalance_verifier.base.processes.workers import spread
    from rebalance_verifier.report.terminal import shipped as report
    from rebalance_verifier.specs.classic.necessity.repairs import ShippedProof, examine_shipped
    from rebalance_verifier.specs.classic.necessity.shipped import client_and_broker, released

    refuse(options, (*OF_CORRECTED, *REPORTS), "does not go with --release")
    names = [name for several in options.release for name in several]
    with usage_errors(ValueError, option="--release"):
        pair = client_and_broker(names)
        protocols = [released(*pair, dynamic=dynamic) for dynamic in (True, False)]
    theorems(options.group_protocol, options.theorem, ())  # so that a wrong name is known at once
    began = time.monotonic()
    findings: list[ShippedFindings] = []
    with progress(options) as show, noted() as raise_if_interrupted:
        for protocol in protocols:

            def line(done: int, of: str = protocol.members) -> None:
                raise_if_interrupted()
                show(lambda: f"{of}: {done:,} obligations, {time.monotonic() - began:.0f} s")

            findings.append(examine_shipped(
                protocol, options.solver_units, partial(spread, jobs=options.jobs), line, options.theorem
            ))  # fmt: skip
            if findings[-1].interrupted:
                break
    written = ShippedProof(releases=tuple(names), findings=tuple(findings), limit=options.solver_units)
    text = partial(report.render, written, verbose=options.verbose, color=color(options))
    answer(options, partial(report.data, written), text)
    if written.interrupted:
        print_err("interrupted")
    return int(written.exit)
