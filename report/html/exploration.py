"""What an exploration found as one HTML page: verdict, the runs that break a clause, what was searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version

from rebalance_verifier.base.text import count
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.exploration import ExplorationViolation, Explored
from rebalance_verifier.explore.groups.runs import SavedRun, run_views
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.steps import Step, changes, walked
from rebalance_verifier.properties.group.own import clause_named
from rebalance_verifier.report.diagram.run_diagram import of_run
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, join, tag, text
from rebalance_verifier.report.terminal.exploration import faults, figures, group, headline, length, method
from rebalance_verifier.traces.runs import run_id, to_text

_LEADS = {
    Verdict.VIOLATION: "This consumer group can break a rule, and the pictures show how.",
    Verdict.CONFORMANT: "This consumer group keeps all rules, whatever happens within the limits below.",
    Verdict.INCONCLUSIVE: "The search gives no verdict: it ended early, or missed a situation.",
}

MAX_DRAWN = 20
"""Runs shown with everything."""

MAX_STEPS, LAST_STEPS = 200, 20
"""Steps of one run in its table, and how many of them are the last where not all fit."""

MAX_PLAYED = 20_000
"""Steps of a run that are played to get to its last ones; of a longer one only the first are in its table."""

MAX_STEPPED = 100_000
"""Steps of a run that can be stepped through."""


def render(exploration: Explored, paths: Mapping[str, str]) -> str:
    """Return the page, below 5 MB. ``paths``: id of a run -> the file that it was saved to."""
    blocks, _ = page.within(
        (_violation(one, paths) for one in exploration.violations[:MAX_DRAWN]), page.MAX_BYTES
    )
    if left := len(exploration.violations) - len(blocks):
        blocks.append(page.dim(f"{count(left, 'more broken clause')}: the JSON report has them."))
    named = group(exploration)
    options = [f"{name} {value}" for name, value in named.items() if name not in ("scenario", "budget")]
    return page.report(
        "explore",
        headline(exploration),
        exploration.verdict,
        [
            ("group", named.get("scenario", "")),
            ("of", ", ".join(options)),
            ("faults", faults(exploration)),
            ("search", method(exploration)),
        ],
        page.section("broken", "What is broken", *blocks),
        page.section("searched", "What was searched", page.facts(figures(exploration)), _levels(exploration)),
        page.section("shown", "Situations shown", _witnesses(exploration)),
        lead=_LEADS[exploration.verdict],
        foot=f"{exploration.verdict.upper()}, exit {int(exploration.exit)}. "
        f"rebalance {version('rebalance-verifier')}. "
        "This is a model of the group: the smallest groups in all that they can do.",
    )


# -- what is broken ------------------------------------------------------------------------------------------


def _violation(violation: ExplorationViolation, paths: Mapping[str, str]) -> Markup:
    clause, name = clause_named(violation.clause), f"f-{run_id(violation.runs[0])}"
    broken_by = f"{violation.count:,} states or steps" if violation.count else ""
    parts = [
        tag("p", text(violation.runs[0].sentence or violation.sentence, 600), class_="lead"),
        page.facts([("rule", f"{clause.sentence} ({clause.source})"), ("broken by", broken_by)]),
    ]
    for position, one in enumerate(violation.runs[:MAX_DRAWN], 1):
        which = f", trace {position} of {len(violation.runs)}" if len(violation.runs) > 1 else ""
        parts += run_parts(one, f"{clause.id}{which}", paths, length(violation, one))
    return page.article(name, page.badge("✗ VIOLATION", "bad"), clause.id, clause.level, *parts)


def run_parts(run: SavedRun, what: str, paths: Mapping[str, str], how_long: str) -> Iterator[Markup]:
    """Yield a run of which ``what`` is the title: drawn, to step through, step by step, and how to see it
    again."""
    name = run_id(run)
    yield page.figure(f"Who owned what: {what}", partial(of_run, run), f"r-{name}")
    yield page.stepper(what, run_views(run, MAX_STEPPED), f"r-{name}")
    yield tag("h4", f"Step by step, what changed: {what}")
    yield _steps(f"Steps of {what}", run)
    yield tag("h4", f"See it again: {what}")
    yield page.facts(
        [
            ("replay", page.code(f"rebalance replay {name}") if name in paths else ""),
            ("trace", page.code(paths[name]) if name in paths else ""),
            ("length", how_long),
        ]
    )
    if len(run.events) <= MAX_STEPS:
        yield page.details("Trace as JSON", page.pre(f"Trace of {what}", to_text(run), 60_000))


def _steps(label: str, run: SavedRun) -> Markup:
    """Return a row a step: what happens, what shows on the way, and the members that it changes."""
    rows: list[Markup] = []
    last: Step | None = None
    for one in _shown_steps(run):
        before = 0 if last is None else last.number
        if one.number - before > 1:
            rows.append(_across(f"steps {before + 1:,} to {one.number - 1:,} are left out here"))
            last = None
        if run.loop == one.number - 1:
            rows.append(_across("from here again and again"))
        after = changes(one, last)
        what = join(
            join(tag("b", "environment"), " ") if one.fault else "",
            one.what,
            page.listed(one.seen, 20) if one.seen else "",
        )
        rows.append(
            tag(
                "tr",
                tag("th", f"{one.number:,}", scope="row"),
                tag("td", what),
                tag("td", page.listed(after, 12) if after else ""),
                class_="here" if run.loop is None and one.number == len(run.events) else None,
            )
        )
        last = one
    if last is not None and last.number < len(run.events):
        rows.append(_across(f"steps {last.number + 1:,} to {len(run.events):,} are left out here"))
    elif run.loop is not None:
        again = f"back to where step {run.loop:,} led"
        rows.append(_across(again if run.loop < len(run.events) else "nothing else ever happens"))
    return page.table(label, ("step", "what happens", "afterwards"), rows, most=MAX_STEPS + 4)


def _shown_steps(run: SavedRun) -> Iterator[Step]:
    """Yield the steps to show: all, or the first and the last."""
    total = len(run.events)
    first = total if total <= MAX_STEPS else MAX_STEPS - LAST_STEPS
    if total > MAX_PLAYED:
        found = walked(machine(run.setup), run.events[:MAX_STEPS])
    else:
        found = walked(machine(run.setup), run.events, lambda n: n <= first or n > total - LAST_STEPS)
    return (step for step, _ in found)


def _across(remark: str) -> Markup:
    return tag("tr", tag("th", "…", scope="row"), tag("td", remark, colspan=2), class_="dim")


# -- what was searched ---------------------------------------------------------------------------------------


def _levels(exploration: Explored) -> Markup:
    if exploration.search is None or not exploration.search.levels:
        return Markup("")
    levels = exploration.search.levels
    most = max(levels)
    rows = [
        (
            depth,
            f"{states:,}",
            tag("td", "█" * max(1, round(30 * states / most)), class_="bar", aria_hidden="true"),
        )
        for depth, states in enumerate(levels)
    ]
    shown = page.table("States by depth", ("depth", "states", "share"), rows, numbers=(0, 1))
    return page.details(f"States by depth: {count(len(levels), 'level')}", shown)


def _witnesses(exploration: Explored) -> Markup:
    """Return the clauses that say what must be possible: how often each was shown, and how soon."""
    rows = []
    for name, times in sorted(exploration.coverage.witnesses.items(), key=lambda one: (not one[1], one[0])):
        first = f"step {exploration.shown[name]:,}" if name in exploration.shown else ""
        due = (
            tag("span", "✗ missed", class_="bad")
            if name in exploration.missed
            else "✓"
            if times
            else "not shown"
        )
        rows.append((name, f"{times:,}", first, due))
    heads = ("situation", "times", "first in", "shown")
    return page.table("Situations", heads, rows, numbers=(1,)) if rows else Markup("")
