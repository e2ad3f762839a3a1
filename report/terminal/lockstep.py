"""Lockstep of the model and Kafka's own code for a terminal."""

from __future__ import annotations

from typing import Any

from rebalance_verifier.base.text import clean, count, percent
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.live.code.lockstep.deviations import NAMED
from rebalance_verifier.live.code.lockstep.system import lines_of
from rebalance_verifier.live.code.lockstep.walks import LockstepResult
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.report.frame import labelled


def headline(result: LockstepResult, scenario: str) -> str:
    """Return the verdict, in one line."""
    titles = {Verdict.CONFORMANT: "IN STEP", Verdict.VIOLATION: "OUT OF STEP"}
    word = titles.get(result.verdict, "INTERRUPTED" if result.interrupted else "INCONCLUSIVE")
    return f"{word}  {scenario} with {result.plan.releases.sentence}"


def render(result: LockstepResult, scenario: str) -> str:
    """Return the result for people."""
    lines = [headline(result, scenario)]
    for name, sentence in facts(result):
        lines += labelled(name, sentence, width=10)
    if result.disagreement is not None:
        lines += ["", f"{shortest_title(result)}:", *map(clean, lines_of(result.disagreement))]
    if result.interrupted:
        go_on = result.plan.first + result.agreement.walks
        lines += ["", f"go on with --seed {result.plan.seed} --first-walk {go_on}"]
    return "\n".join(lines)


def shortest_title(result: LockstepResult) -> str:
    """Return which run the shortest is."""
    again = "that was found to disagree"
    return f"the shortest run {again if result.seen_again else 'which a second simulation did not repeat'}"


def facts(result: LockstepResult) -> list[tuple[str, str]]:
    """Return what was walked, by name."""
    seen, plan = result.agreement, result.plan
    share = percent(seen.predicted / seen.decisions) if seen.decisions else "none"
    decisions = count(seen.decisions, "leader's decision")
    rows = [
        ("agreed", f"{count(seen.steps, 'step')} of {count(seen.walks, 'walk')}, seed {plan.seed}"),
        ("decided", f"{share} of {decisions} as the model's assignor does"),
        ("in vain", f"{seen.in_vain:,} times tried what is no step of the model"),
        ("never", f"taken: {', '.join(result.never_taken) or 'none'}"),
        *(("threw", f"{name}, {count(times, 'time')}") for name, times in sorted(seen.threw.items())),
    ]
    for name, times in sorted(seen.deviations.items()):
        rows.append(("known", f"{NAMED[name].sentence} ({NAMED[name].releases}; {count(times, 'time')})"))
    for (action, why), times in sorted(seen.unforced.items()):
        rows.append(("unforced", f"{action}: {why} ({count(times, 'time')})"))
    return [*rows, *([("stopped", result.stopped)] if result.stopped else [])]


def data(result: LockstepResult) -> dict[str, Any]:
    """Return the result as JSON values."""
    seen, plan, mismatch = result.agreement, result.plan, None
    if result.disagreement is not None:
        events = list(map(event_text, result.disagreement.events))
        mismatch = {"events": events, "differences": list(result.disagreement.sentences)}
    return {
        "verdict": result.verdict.value,
        "releases": str(plan.releases),
        "walks": {"first": plan.first, "done": seen.walks, "of": plan.walks, "seed": plan.seed},
        "steps": seen.steps,
        "in_vain": seen.in_vain,
        "taken": dict(sorted(seen.taken.items())),
        "never_taken": result.never_taken,
        "deviations": {
            name: {"times": times, "sentence": NAMED[name].sentence, "releases": NAMED[name].releases}
            for name, times in sorted(seen.deviations.items())
        },
        "threw": dict(sorted(seen.threw.items())),
        "decisions": {"all": seen.decisions, "predicted": seen.predicted},
        "not_forced": [
            {"action": action, "why": why, "times": times}
            for (action, why), times in sorted(seen.unforced.items())
        ],
        "disagreement": mismatch,
    }
