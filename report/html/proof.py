"""What a proof came to as one HTML page: verdict, theorems, assumptions, every obligation with its time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from itertools import groupby

from rebalance_verifier.base.text import count
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, join, tag
from rebalance_verifier.report.terminal.assumptions import command
from rebalance_verifier.report.terminal.proof import (
    case_of,
    headline,
    judged_as,
    kept_line,
    kinds,
    label,
    model_line,
    model_rows,
    seconds,
)
from rebalance_verifier.specs.logic.counterexample import lines as group_lines
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict, solver_version
from rebalance_verifier.specs.logic.specification import Theorem
from rebalance_verifier.specs.proving import Proof

MAX_DRAWN = 20
"""Obligations that are not proved, in full."""

MAX_LISTED = 2000
"""Obligations of one theorem, in its table."""

SLOWEST = 10

_KINDS = {
    ProofVerdict.PROVED: "✓ proved",
    ProofVerdict.REFUTED: "✗ refuted",
    ProofVerdict.UNKNOWN: "? unknown",
}
_COLOURS = {ProofVerdict.PROVED: "good", ProofVerdict.REFUTED: "bad", ProofVerdict.UNKNOWN: "warn"}


def render(proof: Proof) -> str:
    """Return the page, below 5 MB."""
    open_ = [outcome for outcome in proof.outcomes if outcome.verdict is not ProofVerdict.PROVED]
    shown = (_open(proof, one, number) for number, one in enumerate(open_[:MAX_DRAWN], 1))
    blocks, _ = page.within(shown, page.MAX_BYTES // 2)
    if left := len(open_) - len(blocks):
        blocks.append(page.dim(f"{count(left, 'more obligation')} in the tables below."))
    listed, _ = page.within((_listed(proof, theorem) for theorem in proof.plan.theorems), page.MAX_BYTES // 2)
    return page.report(
        "prove",
        headline(proof),
        proof.verdict,
        [
            ("solver", f"z3 {solver_version()}, {proof.plan.limit:,} units for an obligation"),
            ("taken", f"{proof.seconds:.1f} s" + (", interrupted" if proof.interrupted else "")),
            ("not assumed", ", ".join(proof.plan.without)),
        ],
        page.section("open", "What is not proved", *blocks),
        page.section("theorems", "Theorems", _theorems(proof)),
        page.section("assumed", "What is assumed of the assignor", _assumed(proof)),
        page.section("vacuity", "That it is about something", _vacuity(proof)),
        page.section("model", "That it is about the model", _model(proof)),
        page.section("slowest", "What took longest", _slowest(proof)),
        page.section("obligations", "Every obligation", *listed),
        lead=f"Every statement below is about groups of any size: {proof.verdict}.",
        foot=f"{proof.verdict.upper()}, exit {int(proof.exit)}. "
        f"rebalance {version('rebalance-verifier')}. "
        "Proved of the protocol as it is modelled, for groups of any size.",
    )


def _mark(verdict: ProofVerdict) -> Markup:
    return tag("span", _KINDS[verdict], class_=_COLOURS[verdict])


def _open(proof: Proof, outcome: ProofOutcome, number: int) -> Markup:
    if outcome.verdict is ProofVerdict.UNKNOWN:
        answer = tag("p", f"Neither proved nor refuted within {proof.plan.limit:,} units of the solver.")
    elif outcome.counterexample is None:
        answer = tag("p", "Refuted by the solver, but by no small group.")
    else:
        lines = [(head or "", line) for head, line in group_lines(outcome.counterexample)]
        answer = page.facts(_gathered(lines))
    mark = page.badge(_KINDS[outcome.verdict], outcome.verdict)
    return page.article(f"o{number}", mark, f"{outcome.theorem}: {label(outcome)}", "", answer)


def _gathered(lines: list[tuple[str, str]]) -> Iterator[tuple[str, Markup]]:
    """Lines without a label go to the label before."""
    at = 0
    while at < len(lines):
        end = next((n for n in range(at + 1, len(lines)) if lines[n][0]), len(lines))
        found = [page.text(line, 600) for _, line in lines[at:end]]
        yield lines[at][0], found[0] if len(found) == 1 else page.listed(found, 60)
        at = end


def _theorems(proof: Proof) -> Markup:
    rows = []
    for theorem in proof.plan.theorems:
        found = proof.of(theorem)
        what = join(page.code(theorem.name), tag("div", theorem.sentence, class_="dim"))
        judged = judged_as(proof, theorem)
        verdict = join(_mark(proof.judged(theorem)), tag("div", judged.partition(": ")[2], class_="dim"))
        upon = ", ".join(theorem.upon)
        rows.append((what, theorem.source, upon, f"{theorem.obligations:,}", verdict, seconds(found)))
    heads = ("theorem", "source", "depends on", "obligations", "verdict", "time")
    return page.table("Theorems", heads, rows, numbers=(3, 5))


def _assumed(proof: Proof) -> Markup:
    plan = proof.plan
    others = [f"Of {one.of}, {one.name}: {one.sentence}. Without it: {command(one)}" for one in proof.besides]
    about = f"About {plan.scope}." if plan.scope else ""
    besides = [tag("p", sentence) for sentence in (about, *others, kept_line(proof)) if sentence]
    if not (plan.contract or plan.clauses):
        return join(tag("p", "Of the assignor nothing is assumed."), *besides)
    rows = []
    for one in plan.clauses:
        purposes = [("every theorem", one.every), ("convergence", one.converging)]
        for_what = ", ".join(purpose for purpose, so in purposes if so)
        rows.append((one.name, one.sentence, "✗ not assumed here" if one.name in plan.without else for_what))
    heads = ("clause", "what it says", "assumed for")
    return join(page.table("What is assumed of the assignor", heads, rows), *besides)


def _vacuity(proof: Proof) -> Markup:
    if not proof.vacuity:
        return Markup("")
    found = page.table("What may say nothing", ("what", "asked", "found"), list(kinds(proof)), numbers=(1,))
    rows = [(row.kind, row.name, row.finding.value, ", ".join(row.because)) for row in proof.vacuity]
    each = page.table("Each of them", ("what", "which", "found", "because of"), rows)
    return join(found, page.details("each of them", each))


def _model(proof: Proof) -> Markup:
    shown = [tag("p", model_line(proof))]
    for number, row in enumerate(proof.deviations, 1):
        mark = page.badge("✗ not in the logic", ProofVerdict.UNKNOWN)
        lines = [(head, page.text(line, 6000)) for head, line in model_rows(row)]
        shown.append(page.article(f"m{number}", mark, f"{row.group}; seed {row.seed}", "", page.facts(lines)))
    rows = [(row.group, f"{row.steps:,}", f"{row.runs:,}") for row in proof.model]
    if rows:
        shown.append(page.table("Groups of the model", ("group", "steps", "runs"), rows, numbers=(1, 2)))
    return join(*shown)


_COST = ("time", "units", "hypotheses used")


def _cost(one: ProofOutcome) -> tuple[str, str, int]:
    return f"{one.seconds:.2f} s", f"{one.units:,}", one.hypotheses


def _slowest(proof: Proof) -> Markup:
    slow = sorted(proof.outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]
    rows = [(label(one), one.theorem, *_cost(one)) for one in slow]
    heads = ("obligation", "theorem", *_COST)
    return page.table("The slowest obligations", heads, rows, numbers=(2, 3, 4)) if rows else Markup("")


def _listed(proof: Proof, theorem: Theorem) -> Markup:
    found = proof.of(theorem)
    rows = [
        (case if at == 0 else "″", one.goal, _mark(one.verdict), *_cost(one))
        for case, group in groupby(found, case_of)
        for at, one in enumerate(group)
    ]
    heads = ("case", "goal", "verdict", *_COST)
    table = page.table(f"Obligations of {theorem.name}", heads, rows, numbers=(3, 4, 5), most=MAX_LISTED)
    return page.details(f"{theorem.name}: {count(len(found), 'obligation')}, {seconds(found)}", table)
