"""A run that was replayed on real clients or on Kafka's own code, for a terminal."""

from __future__ import annotations

from rebalance_verifier.base.text import clean
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.traces.runs import run_id


def render(saved: SavedRun, result: Replayed, *, verbose: int = 0) -> str:
    """Return the verdict, and what it rests on."""
    head = f"{result.verdict:<12} {run_id(saved)}  {saved.clause}  {result.version or result.client}"
    lines = [f"{head}: {result.sentence}"]
    facts = [
        *(("breaks", f"{one.clause} at step {one.step}: {one.sentence}") for one in result.broken),
        *(("unforced", text) for text in result.unforced),
        *(("stopped", text) for text in [result.stopped] if text),
        *(("differs", text) for text in result.differs),
        *(("parts", text) for text in [result.parts] if text),
        *(("not asked", text) for text in [result.why_unobservable] if text),
        (
            "forced",
            f"{result.done} of {result.steps} steps, member ids in the order {' '.join(result.naming)}",
        ),
    ]
    for label, text in facts:
        lines += labelled(label, text, most=6, width=10)
    if verbose:
        lines.append("")
        for step in result.shown:
            lines.append(f"  {step['step']:>3} {clean(step['event'])}")
            lines += [f"        {clean(one)}" for one in step["seen"]]
        lines.append("")
    return "\n".join(lines)
