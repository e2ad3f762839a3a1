"""Whether a recorded group is a run of the model, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.live.conformance.ask import ConformanceAnswer
from rebalance_verifier.live.conformance.clients.table import BY_ID

MAX_SHOWN = 12
"""Steps, pending events and alternatives that are shown of a mismatch."""


def headline(answer: ConformanceAnswer) -> str:
    """Return the verdict, in one line."""
    question, found = answer.question, answer.conformance
    names = sorted({slot.profile for slot in question.slots})
    where = f"{', '.join(names)} on {question.broker}"
    head = f"{found.judgement}  {question.recorded.group}: {found.longest} of {found.events} events"
    return clean({
        "explained": f"{head} explained by {where}",
        "mismatch": f"{head} explained by {where}, and not the next",
        "inconclusive": f"{head} explained so far by {where}: {found.why}",
    }[found.verdict])  # fmt: skip


def render(answer: ConformanceAnswer, *, steps: bool = False) -> str:
    """Return the answer for people."""
    found = answer.conformance
    lines = [headline(answer), f"  {found.searched:,} states and events searched"]
    if answer.faults:
        lines[1] += f", {count(answer.faults, 'fault')} that the recording does not have"
    lines += _found(answer)
    if found.blamed is not None:
        lines += ["", *mismatch(answer)]
    if steps or found.blamed is not None:
        witness = found.witness if steps else found.witness[-MAX_SHOWN:]
        lines += ["", "  the run of the model" if steps else "  the run of the model up to there, its end"]
        lines += [f"    {line}" for line in _steps(answer, witness)]
    return "\n".join(lines)


def _found(answer: ConformanceAnswer) -> list[str]:
    """Return what about clients the run takes that is no part of the model."""
    lines: list[str] = []
    for name, times in answer.findings.items():
        deviation = BY_ID.get(name)
        whose = "a leader's decision breaks this clause"
        if deviation:
            whose = f"{deviation.client}: {deviation.sentence}"
        lines.append(clean(f"  {name} ({count(times, 'time')}): {whose}"))
    return ["", "  findings about clients that the run takes", *lines] if lines else []


def mismatch(answer: ConformanceAnswer) -> list[str]:
    """Return the first line that the model does not allow, and what it allows there instead."""
    question, found = answer.question, answer.conformance
    assert found.blamed is not None
    blamed = question.lines[found.blamed]
    lines = [clean(f"  line {blamed.number}: {blamed}"), "    no state of the model allows it there"]
    others = [question.lines[position] for position in found.pending if position != found.blamed]
    if others:
        lines += ["  nor the next events of the other consumers"]
        lines += [clean(f"    line {line.number}: {line}") for line in others[:MAX_SHOWN]]
    lines += ["  what it allows there"] if found.allowed else ["  it allows nothing there that would be seen"]
    lines += [
        clean(f"    {question.spelled(one)}  (in {count(n, 'state')})")
        for one, n in found.allowed[:MAX_SHOWN]
    ]
    return lines


def _steps(answer: ConformanceAnswer, witness: Sequence[Any]) -> list[str]:
    question, lines = answer.question, []
    for step in witness:
        if step.event is None:
            what = "(it has failed before)"
        else:
            who = question.name(step.event.who) if step.event.who >= 0 else ""
            choice = f" ({question.spelled(step.event.choice)})" if step.event.choice else ""
            what = f"{who} {step.event.action}{choice}".strip()
        shown = "; ".join(f"line {question.lines[p].number} {question.lines[p].event}" for p in step.shows)
        lines.append(clean(f"{what}{'  <- ' + shown if shown else ''}"))
    return lines


def data(answer: ConformanceAnswer) -> dict[str, Any]:
    """Return the answer as JSON values."""
    question, found = answer.question, answer.conformance
    verdict = found.judgement
    mismatch: dict[str, Any] = {}
    if found.blamed is not None:
        mismatch = {
            "line": question.lines[found.blamed].number,
            "event": str(question.lines[found.blamed]),
            "pending": [question.lines[position].number for position in found.pending],
            "allowed": [{"shows": question.spelled(text), "states": count} for text, count in found.allowed],
        }
    return {
        "verdict": verdict,
        "exit": Exit.of(verdict),
        "explained": found.verdict == "explained",
        "log": str(question.recorded.path),
        "group": question.recorded.group,
        "consumers": [
            {"name": slot.consumer, "profile": slot.profile, "assignors": list(slot.assignors)}
            for slot in question.slots
        ],
        "broker": question.broker,
        "topics": dict(question.topics),
        "events": found.events,
        "longest": found.longest,
        "hidden_faults": answer.faults,
        "findings": answer.findings,
        "free": [f"{name} of {question.name(slot)}" for name, slot in question.unlogged],
        "searched": found.searched,
        "why": found.why,
        **({"mismatch": mismatch} if mismatch else {}),
        "witness": [
            {
                "action": step.event.action if step.event else "",
                **({"who": question.name(step.event.who)} if step.event and step.event.who >= 0 else {}),
                **({"choice": step.event.choice} if step.event and step.event.choice else {}),
                "lines": [question.lines[position].number for position in step.shows],
            }
            for step in found.witness
        ],
    }
