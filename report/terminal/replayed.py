"""Traces that were replayed, on their targets, on the model, on real clients or Kafka's own code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.report.terminal.trace import NamedTrace

ERROR, SKIPPED, FIXED, FAILING, SHOWN = "error", "skipped", "fixed", "failing", "shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """Outcome of one trace.

    ``word`` is the first of its line; on clients and Kafka's code the verdict of the replay. ``trace`` is
    None for a file that cannot be read. ``program`` is what it was played on, where that is not its target.
    ``text`` follows its line, ``facts`` is the same by name.
    """

    word: str
    exit: Exit
    path: Path
    trace: NamedTrace | None = None
    sentence: str = ""
    text: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    program: str = ""

    @property
    def line(self) -> str:
        """Return the line of the terminal, which begins with its word."""
        trace, width = self.trace, 12 if self.program else 8
        subject = self.program or clean(trace.subject) if trace else ""
        name = f"{trace.id}  {trace.clause}  {subject}" if trace else ""
        return f"{self.word:<{width}} " + ": ".join(filter(None, (name, self.sentence)))

    @property
    def verdict(self) -> Verdict:
        """Return the verdict; of what could not be played it is inconclusive."""
        if self.word == SKIPPED or self.exit not in (Exit.CONFORMANT, Exit.VIOLATION):
            return Verdict.INCONCLUSIVE
        return Verdict.VIOLATION if self.exit is Exit.VIOLATION else Verdict.CONFORMANT


@dataclass(slots=True, kw_only=True)
class Replays:
    """Outcomes of a command. ``on``: what they were played on, "" for what they are from. ``stopped``: why it
    did not come to its end."""

    on: str = ""
    outcomes: list[ReplayOutcome] = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all: what is missing makes it inconclusive, unless something failed."""
        verdicts = {one.verdict for one in self.outcomes}
        missing = self.stopped or self.interrupted or not verdicts
        if Verdict.VIOLATION in verdicts:
            return Verdict.VIOLATION
        return Verdict.INCONCLUSIVE if missing else max(verdicts, key=list(Verdict).index)

    @property
    def exit(self) -> Exit:
        """Return the gravest exit code: what could not be played, then what failed."""
        if self.interrupted or self.stopped:
            return Exit.INTERRUPTED if self.interrupted else Exit.USAGE
        codes = {one.exit for one in self.outcomes}
        every = (Exit.USAGE, Exit.VIOLATION, Exit.INCONCLUSIVE)
        return next((code for code in every if code in codes), Exit.CONFORMANT)


def headline(replays: Replays) -> str:
    """Return the verdict in a line."""
    results = [one.word for one in replays.outcomes]
    tally = ", ".join(f"{results.count(word)} {word}" for word in dict.fromkeys(results))
    where = f" on {replays.on}" if replays.on else ""
    what = f"{count(len(results), 'trace')} replayed{where}"
    return f"{replays.verdict.upper()}  {what}: {tally or 'none'}"


def on_clients(trace: NamedTrace, result: Replayed, saved: Path, *, verbose: int = 0) -> ReplayOutcome:
    """Return the outcome on clients, or on Kafka's code; ``saved``: where its recording is."""
    return ReplayOutcome(
        word=result.verdict,
        exit=result.exit,
        path=trace.path,
        trace=trace,
        sentence=result.sentence,
        text=(*_grounds(result, verbose), f"  saved    {saved}"),
        facts=(*facts(result), ("saved", str(saved))),
        program=result.version or result.client,
    )


def _grounds(result: Replayed, verbose: int) -> list[str]:
    """Return the lines on which the verdict rests."""
    lines = [line for label, text in facts(result) for line in labelled(label, text, most=6, width=10)]
    if verbose:
        lines.append("")
        for step in result.shown:
            lines.append(f"  {step['step']:>3} {clean(step['event'])}")
            lines += [f"        {clean(one)}" for one in step["seen"]]
        lines.append("")
    return lines


def facts(result: Replayed) -> list[tuple[str, str]]:
    """Return the named facts that a verdict rests on."""
    order = " ".join(result.naming)
    return [
        *(("breaks", f"{one.clause} at step {one.step}: {one.sentence}") for one in result.broken),
        *(("unforced", text) for text in result.unforced),
        *(("stopped", text) for text in [result.stopped] if text),
        *(("differs", text) for text in result.differs),
        *(("parts", text) for text in [result.parts] if text),
        *(("not asked", text) for text in [result.why_unobservable] if text),
        ("forced", f"{result.done} of {result.steps} steps, member ids in the order {order}"),
    ]
