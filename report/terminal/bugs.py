"""The catalogue of bugs and each of them made again, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rebalance_verifier.base.text import fold, page_width
from rebalance_verifier.explore.groups.bugs import Shown
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.model.bugs.catalogue import PROPERTIES, Entry
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.releases import CURRENT, dotted
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.report.markup import code, table
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


def reproduced(shown: Shown, found: SavedRun | None, trace: str = "") -> str:
    """Return the run of the model that shows a switch; ``trace``: where it is saved."""
    switch = shown.switch
    sentence = DECISIONS[switch].sentence if switch in DECISIONS else SWITCHES[switch].sentence
    lines = ["", *labelled("switch", f"{switch}: {sentence}"), *labelled("group", _group(shown))]
    if found is None:
        return "\n".join([*lines, *labelled("NOT SHOWN", f"{shown.clause} holds in this group")])
    clause = CLAUSES[shown.clause]
    lines += labelled("breaks", f"{clause.id}: {clause.sentence} ({clause.source})")
    lines += ["", *run_lines(found), "", *labelled("result", found.sentence)]
    return "\n".join([*lines, *(labelled("trace", trace) if trace else [])])


def _group(shown: Shown) -> str:
    """Return how to ask for the same by hand."""
    setup = shown.setup()
    command = f"rebalance explore {shown.scenario} --members {shown.members} --partitions {shown.partitions}"
    faults = ",".join(fault.replace(" ", "-") for fault in shown.faults) or "none"
    command += f" --faults {faults} --max-faults {setup.budget}"
    command += f" --release {shown.client}" if shown.client != "as-specified" else ""
    return command + "".join(f" --switch {name}" for name in (shown.switch, *shown.also)) + " --go-on"
