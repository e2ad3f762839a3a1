"""The catalogue of bugs and each of them made again, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_verifier.base.text import count, fold, page_width
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.explore.groups.bugs import SHOWN, Shown
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.gate.search.result import ClauseResult
from rebalance_verifier.model.bugs.catalogue import PROPERTIES, Entry
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.releases import CURRENT, dotted
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.report.markup import code, table
from rebalance_verifier.report.terminal.check import block
from rebalance_verifier.report.terminal.exploration import run_lines


def about() -> str:
    """Say of which group the mistakes are shown, and how to ask for another."""
    release = dotted(CURRENT)
    return (
        "one bug at a time, in a group that is otherwise as specified; all bugs of a release: "
        f"--matrix --release {release},broker-{release}"
    )


def markdown(entries: Iterable[Entry]) -> str:
    """Return the catalogue as a table of Markdown."""
    cells = (
        (e.id, e.level, e.project, e.affected, e.title, ", ".join(map(code, e.switches))) for e in entries
    )
    heads = ("id", "level", "project", "affected", "what happens", "switches")
    return "\n".join(table(heads, cells)).rstrip()


def listed(rows: Iterable[tuple[Entry, Sequence[tuple[str, str, str]]]]) -> str:
    """Return the catalogue, each entry with how its switches are shown."""
    lines = [*labelled("about", about(), width=7), ""]
    for entry, shown in rows:
        lines.append(f"{entry.id:<4} {entry.level:<4} {entry.title}")
        lines += labelled("", f"{entry.project}: {entry.affected}", width=8)
        for switch, how, what in shown:
            if how == "not":
                text = f"not expressed: {what}"
            else:
                text = f"{switch}: " + (f"breaks {what}" if how == "model" else f"rebalance check {what}")
            lines += labelled("", text, width=8)
    return "\n".join(lines)


def story(entry: Entry) -> str:
    """Return what is known of an entry."""
    lines = [f"{entry.id}  {entry.title}", *labelled("about", about())]
    lines += [f"  {line}" for line in fold(entry.story, page_width() - 10, most=20)]
    lines += labelled("project", f"{entry.project}: {entry.affected}")
    for switch, text in entry.narrower.items():
        lines += labelled("", f"as {switch}: {text}")
    if entry.trackers:
        lines += labelled("tracker", ", ".join(entry.trackers))
    lines += labelled("breaks", "; ".join(PROPERTIES[code] for code in entry.breaks) or "nothing")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One switch of an entry, made again.

    ``how`` and ``what`` are those of ``explore.groups.bugs.shown_by``. ``run``: the run of the model that
    shows it, ``path``: where it is saved. ``row``: the broken clause of a check under ``profile``, ``also``:
    the others.
    """

    entry: Entry
    switch: str
    how: str
    what: str
    run: SavedRun | None = None
    path: str = ""
    row: ClauseResult | None = None
    profile: str = "ci"
    also: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Check whether the bug was shown."""
        return self.run is not None or self.row is not None

    @property
    def fails(self) -> bool:
        """Check whether it was to be shown and was not."""
        return self.how != "not" and not self.is_shown

    @property
    def level(self) -> Level:
        """Return the level of the clause that it breaks."""
        clause = self.row.clause if self.row else CLAUSES.get(self.what)
        return clause.level if clause else Level.SAFETY

    @property
    def sentence(self) -> str:
        """Return the sentence of the switch."""
        of_model = self.switch in DECISIONS
        return DECISIONS[self.switch].sentence if of_model else SWITCHES[self.switch].sentence

    @property
    def command(self) -> str:
        """Return how to ask for it by hand."""
        if self.how == "model":
            return by_hand(SHOWN[self.switch])
        return f"rebalance check {self.what} --level quality --profile {self.profile}"

    @property
    def why_not(self) -> str:
        """Return why it counts as not shown."""
        if self.how == "model":
            return f"{self.what} holds in this group"
        return f"rebalance check {self.what} finds nothing in profile ci"


def headline(reproductions: Sequence[Reproduction]) -> str:
    """Return in a line how many switches were shown."""
    names = ", ".join(dict.fromkeys(one.entry.id for one in reproductions))
    to_show = [one for one in reproductions if one.how != "not"]
    done = sum(one.is_shown for one in to_show)
    word = "SHOWN" if done == len(to_show) > 0 else "NOT SHOWN"
    return f"{word}  {names}: {done} of {count(len(to_show), 'switch')}"


def reproduction_text(one: Reproduction, unicode: bool) -> str:
    """Return a switch and what shows it."""
    if one.how == "not":
        return "\n".join(["", *labelled("not shown", one.what)])
    lines = ["", *labelled("switch", f"{one.switch}: {one.sentence}")]
    if one.how == "model":
        lines += labelled("group", one.command)
    if one.run is not None:
        clause = CLAUSES[one.what]
        lines += labelled("breaks", f"{clause.id}: {clause.sentence} ({clause.source})")
        lines += ["", *run_lines(one.run), "", *labelled("result", one.run.sentence)]
        lines += labelled("trace", one.path) if one.path else []
    elif one.row is not None:
        lines += [*labelled("check", one.command), "", *block("VIOLATION", one.row, unicode)]
        lines += labelled("also", ", ".join(one.also)) if one.also else []
    else:
        lines += labelled("NOT SHOWN", one.why_not)
    return "\n".join(lines)


def by_hand(shown: Shown) -> str:
    """Return how to ask for the same by hand."""
    setup = shown.setup()
    command = f"rebalance explore {shown.scenario} --members {shown.members} --partitions {shown.partitions}"
    faults = ",".join(fault.replace(" ", "-") for fault in shown.faults) or "none"
    command += f" --faults {faults} --max-faults {setup.budget}"
    command += f" --release {shown.client}" if shown.client != "as-specified" else ""
    return command + "".join(f" --switch {name}" for name in (shown.switch, *shown.also)) + " --go-on"
