"""What a proof came to, as text and as JSON: the verdict, a line for each theorem, and what refutes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import groupby
from typing import Any

from rebalance_verifier.base.saved import SUITE
from rebalance_verifier.base.text import count
from rebalance_verifier.report.frame import aligned, labelled, painted
from rebalance_verifier.report.terminal.assumptions import command
from rebalance_verifier.specs.classic.necessity.vacuity import KINDS
from rebalance_verifier.specs.classic.refinement.sampling import ModelDeviation, SampledModel
from rebalance_verifier.specs.logic.assumptions import Premise
from rebalance_verifier.specs.logic.counterexample import lines as group_lines
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict, solver_version, verdict
from rebalance_verifier.specs.logic.specification import Theorem
from rebalance_verifier.specs.proving import Proof

SCHEMA = 2

NOT_CHECKED = "not checked against the model"
"""Said of a proof without a sample of the model, or with one that is too small."""


def render(proof: Proof, *, verbose: int = 0, color: bool = False, page: str = "") -> str:
    """Return the whole report. ``verbose``: a line for each case, every counterexample; ``page``: the HTML
    one."""
    lines = [headline(proof), *_header(proof), "", *_table(proof, verbose), *_vacuity(proof)]
    lines += [*_model(proof, verbose), *_failures(proof, verbose)]
    if page:
        lines += labelled("report", page)
    lines.append(f"{proof.verdict.upper()}, exit {int(proof.exit)}")
    return painted(lines, color)


ABOUT = "as specified, which no release is; classic groups as released: --release CLIENT,BROKER"
"""Which protocol is proved, and how to ask for another."""


WITHOUT = "--format json says each, and shows the run without it"


def headline(proof: Proof) -> str:
    """Return the verdict and what it rests on."""
    start, theorems = proof.verdict.upper(), proof.plan.theorems
    done = sum(outcome.verdict is ProofVerdict.PROVED for outcome in proof.outcomes)
    of_all = f"{done:,} of {count(proof.obligations, 'obligation')} proved"
    if proof.interrupted:
        return f"{start}  interrupted, {of_all}"
    if proof.verdict is ProofVerdict.PROVED:
        what = f"{count(len(theorems), 'theorem')}, {count(proof.obligations, 'obligation')}"
        return f"{start}  {what}, for groups of any size"
    names = [theorem.name for theorem in theorems if proof.alone(theorem) is proof.verdict]
    if not names and proof.doubts:
        names = [f"{proof.doubts[0].kind} {proof.doubts[0].name} may say nothing"]
    if not names and proof.breaches:
        names = [f"the model breaks {broken.failure.name}" for broken in _breaches(proof)][:1]
    if not names and proof.deviations:
        names = ["no theorem is about this model"]
    if not names and not proof.held_against_model:
        names = [NOT_CHECKED]
    return f"{start}  {', '.join(names)}; {of_all}"


def _header(proof: Proof) -> list[str]:
    plan = proof.plan
    suite = f"rebalance {version('rebalance-verifier')}  z3 {solver_version()}  limit={plan.limit:,} units"
    rows = [suite, *labelled("about", ABOUT)]
    rows += labelled("", plan.scope) if plan.scope else []
    rows += labelled("assumed", f"of the assignor: {', '.join(plan.contract) or 'nothing'}")
    also = [one.name for one in plan.clauses if one.converging and one.name not in plan.without]
    if also and any(theorem.name == "convergence" for theorem in plan.theorems):
        rows += labelled("", f"for convergence also: {', '.join(also)}")
    if proof.besides:
        rows += labelled("", f"besides: {', '.join(one.name for one in proof.besides)}; {WITHOUT}")
    rows += labelled("cached", kept_line(proof)) if proof.kept else []
    for clause in plan.clauses:
        if clause.name in plan.without:
            rows += labelled("without", f"{clause.name}: {clause.sentence}")
    return rows


def kept_line(proof: Proof) -> str:
    """Return how many answers are from the cache, of when, and how to ask again; "" where none is."""
    if proof.kept is None:
        return ""
    number = (
        proof.obligations + sum(len(check.names) for check in proof.plan.checks) + len(proof.plan.samples)
    )
    of_all = f"{proof.kept.used:,} of {number:,} answers are from the cache of {proof.kept.day}"
    return f"{of_all}, made with the same code, versions and limit; ask again: --no-cache"


def _table(proof: Proof, verbose: int) -> list[str]:
    """Theorems, with ``verbose`` also their cases; the time comes last, since its width is never the same."""
    rows = []
    for theorem in proof.plan.theorems:
        found = proof.of(theorem)
        rows.append((f"  {theorem.name}", f"{theorem.obligations:,}", judged_as(proof, theorem), found))
        for name, group in groupby(found, case_of) if verbose else ():
            case = tuple(group)
            rows.append((f"    {name}", f"{len(case):,}", verdict(case).value, case))
    width = max(len(judged) for *_, judged, _ in rows)
    cells = [(name, number, f"{judged:<{width}}  {seconds(found)}") for name, number, judged, found in rows]
    return aligned([("theorem", "obligations", f"{'verdict':<{width}}  time"), *cells], {1})


def seconds(outcomes: Iterable[ProofOutcome]) -> str:
    """Return how long they took together."""
    return f"{sum(outcome.seconds for outcome in outcomes):.1f} s"


def judged_as(proof: Proof, theorem: Theorem) -> str:
    """Return the verdict on a theorem, and what it lacks."""
    judged, weak = proof.judged(theorem).value, proof.weak(theorem)
    if missing := theorem.obligations - len(proof.of(theorem)):
        return f"{judged}: {missing:,} not tried"
    if weak and proof.alone(theorem) is ProofVerdict.PROVED:
        return f"{judged}: depends on {', '.join(weak)}"
    return judged


def kinds(proof: Proof) -> Iterator[tuple[str, int, str]]:
    """Yield what was asked so that nothing is proved of nothing: kind, how many, what was found how often."""
    for kind in KINDS:
        if found := Counter(row.finding.value for row in proof.vacuity if row.kind == kind):
            yield kind, found.total(), ", ".join(f"{number:,} {finding}" for finding, number in found.items())


def _vacuity(proof: Proof) -> Iterator[str]:
    if rows := [(f"  {kind}", f"{number:,}", found) for kind, number, found in kinds(proof)]:
        yield ""
        yield from aligned([("vacuity check", "number", "result"), *rows], {1})
    for row in proof.doubts:
        because = f": {', '.join(row.because)}" if row.because else ""
        yield f"{row.finding.upper()} {row.kind} {row.name}{because}"


def model_line(proof: Proof) -> str:
    """Return what was checked of the executable model."""
    if not proof.plan.samples:
        return f"{NOT_CHECKED}: --model-steps 0"
    steps, runs = sum(row.steps for row in proof.model), sum(row.runs for row in proof.model)
    looked = f"{count(steps, 'step')} of {count(len(proof.model), 'group')}, from {count(runs, 'random run')}"
    looked += f" with faults (seed {proof.plan.samples[0].seed})"
    if proof.deviations:
        wrong = f"{len(proof.deviations)} of {count(len(proof.model), 'group')}"
        return f"{looked}: in {wrong} the model does what the logic does not; no theorem is about it"
    looked += f", are steps of the logic: they met {coverage(proof)}"
    if proof.held_against_model:
        return looked
    if missing := len(proof.plan.samples) - len(proof.model):
        return f"{looked}; {NOT_CHECKED}: {count(missing, 'group')} not looked at"
    return f"{looked}; {NOT_CHECKED}: too few steps, --model-steps takes more"


def coverage(proof: Proof) -> str:
    """Return how much of the model the sample met."""
    met, wanted = proof.met, proof.wanted
    actions = f"{len(met.actions & wanted.actions):,} of {count(len(wanted.actions), 'action')}"
    return f"{actions}, {len(met.pairs & wanted.pairs):,} of {count(len(wanted.pairs), 'pair')} of faults"


def model_rows(row: SampledModel) -> Iterator[tuple[str, str]]:
    """Yield where a group of the model leaves the logic: each line with a label."""
    for label_, found in (("step", row.deviation), ("breaks", row.breach)):
        if found is not None:
            yield label_, str(found.failure)
            yield "run", "; ".join(found.run) or "none"


def _model(proof: Proof, verbose: int) -> Iterator[str]:
    yield ""
    yield from labelled("model", model_line(proof))
    for number, row in enumerate(proof.deviations):
        yield ""
        yield f"NOT IN THE LOGIC  group {row.group}; seed {row.seed}"
        for label_, text in model_rows(row):
            if label_ != "run" or verbose or not number:
                yield from labelled(label_, text, 100)


def _breaches(proof: Proof) -> list[ModelDeviation]:
    return [row.breach for row in proof.breaches if row.breach]


def _failures(proof: Proof, verbose: int) -> Iterator[str]:
    shown = False
    for outcome in proof.outcomes:
        if outcome.verdict is ProofVerdict.PROVED:
            continue
        yield ""
        yield f"{outcome.verdict.upper()} {outcome.theorem}  {label(outcome)}"
        if outcome.verdict is ProofVerdict.UNKNOWN:
            yield from labelled(
                "", f"neither proved nor refuted within {proof.plan.limit:,} units of the solver"
            )
        elif outcome.counterexample is None:
            yield from labelled("", "refuted by the solver, but by no small group")
        elif shown and not verbose:
            yield from labelled("", "-v shows the group")
        else:
            for name, text in group_lines(outcome.counterexample):
                yield from labelled(name, text)
            shown = True
    yield ""


def label(outcome: ProofOutcome) -> str:
    """Return which obligation of its theorem."""
    return f"{case_of(outcome)}: {outcome.goal}"


def case_of(outcome: ProofOutcome) -> str:
    """Return its kind and the name of its action."""
    return f"{outcome.kind} {outcome.case}".rstrip()


def data(proof: Proof) -> dict[str, Any]:
    """Return the result as plain JSON values; what depends on the machine it ran on is below ``speed``."""
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": version("rebalance-verifier")},
        "solver": {"name": "z3", "version": solver_version()},
        "about": "as specified",
        "scope": proof.plan.scope,
        "contract": list(proof.plan.contract),
        "without": list(proof.plan.without),
        "besides": [one.sentence for one in proof.besides],
        "assumptions": [_premise(one) for one in proof.plan.assumptions],
        "limit": proof.plan.limit,
        "verdict": proof.verdict.value,
        "exit": int(proof.exit),
        "interrupted": proof.interrupted,
        "theorems": [_theorem(proof, theorem) for theorem in proof.plan.theorems],
        "vacuity": [
            {"kind": row.kind, "name": row.name, "finding": row.finding.value, "because": list(row.because)}
            for row in proof.vacuity
        ],
        "model": {
            "seed": proof.plan.samples[0].seed if proof.plan.samples else None,
            "steps": sum(row.steps for row in proof.model),
            "checked": proof.held_against_model,
            "met": {
                "actions": sorted(proof.met.actions),
                "pairs_of_faults": len(proof.met.pairs & proof.wanted.pairs),
            },
            "missing": {
                "actions": sorted((proof.wanted - proof.met).actions),
                "pairs_of_faults": len((proof.wanted - proof.met).pairs),
            },
            "groups": [
                {
                    "group": row.group,
                    "steps": row.steps,
                    "runs": row.runs,
                    "deviation": _deviation(row.deviation),
                    "breach": _deviation(row.breach),
                }
                for row in proof.model
            ],
        },
        "speed": {
            "seconds": round(proof.seconds, 3),
            "cached": proof.kept.used if proof.kept else 0,
            "theorems": {
                theorem.name: round(sum(outcome.seconds for outcome in proof.of(theorem)), 3)
                for theorem in proof.plan.theorems
            },
        },
    }


def _premise(one: Premise) -> dict[str, Any]:
    return {
        "name": one.name,
        "of": one.of,
        "sentence": one.sentence,
        "theorems": one.theorems or "all",
        "without": command(one),
    }


def _deviation(found: ModelDeviation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"name": found.failure.name, "why": str(found.failure), "run": list(found.run)}


def _theorem(proof: Proof, theorem: Theorem) -> dict[str, Any]:
    return {
        "name": theorem.name,
        "sentence": theorem.sentence,
        "source": theorem.source,
        "upon": list(theorem.upon),
        "verdict": proof.judged(theorem).value,
        "obligations": theorem.obligations,
        "outcomes": [
            {
                "kind": outcome.kind,
                "case": outcome.case,
                "goal": outcome.goal,
                "verdict": outcome.verdict.value,
                "hypotheses": outcome.hypotheses,
                "units": outcome.units,
                **({"counterexample": outcome.counterexample.data()} if outcome.counterexample else {}),
            }
            for outcome in proof.of(theorem)
        ],
    }
