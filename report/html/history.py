"""The page of all runs that were made here: what is broken, since when, what is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalance_verifier.base.saved import REPORTS
from rebalance_verifier.base.text import count
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, tag
from rebalance_verifier.traces.history import OpenFinding, PastRun, open_findings


def render(runs: Sequence[PastRun], kept: Callable[[PastRun], bool]) -> str:
    """Return the page; ``kept`` says whether the reports of a run are there still."""
    found = open_findings(runs)
    new, known = sum(one.new for one in found), sum(one.known for one in found)
    last = {(run.command, run.subject): run for run in runs}
    line = f"{count(len(found), 'finding')} open, {new} new, {known} known, in {count(len(last), 'subject')}"
    head = page.headline(
        f"{'✗ OPEN' if len(found) > known else '✓ NOTHING NEW' if found else '✓ NOTHING OPEN'}  {line}",
        "bad" if len(found) > known else "good",
    )
    return page.document(
        f"rebalance: {line}",
        head,
        page.section("open", "What is broken", _findings(found)),
        page.section("last", "Each by its last run", _table("Last runs", list(last.values())[::-1], kept)),
        page.section("runs", "All runs", _table("Runs", runs[::-1], kept)),
        foot="By the last run that asked each rule. The reports of the newest runs are kept, the others "
        "are remembered.",
    )


def moment(when: str) -> str:
    """When a run was made, as people write it.

    >>> moment("20260102T030405Z")
    '2026-01-02 03:04 UTC'
    """
    day, clock = when[:8], when[9:13]
    return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:]} UTC"


def _findings(found: Sequence[OpenFinding]) -> Markup:
    if not found:
        return tag("p", "Nothing that was asked is broken.")
    rows = [
        (
            page.code(one.rule),
            page.badge("new", "bad") if one.new else page.badge("known", "info") if one.known else "open",
            f"{one.command} {one.subject}",
            one.message,
            f"{moment(one.since.when)}, {count(one.runs, 'run')}",
            page.code(one.again) if one.again else "",
        )
        for one in found
    ]
    heads = ("rule", "state", "of", "what is wrong", "since", "again")
    return page.table("What is broken", heads, rows)


def _table(label: str, runs: Sequence[PastRun], kept: Callable[[PastRun], bool]) -> Markup:
    rows = [
        (
            _report(run) if kept(run) else moment(run.when),
            page.badge(run.verdict, run.verdict),
            f"{run.command} {run.subject}",
            run.headline.partition("  ")[2] or run.headline,
        )
        for run in runs
    ]
    return page.table(label, ("when", "verdict", "of", "in a line"), rows)


def _report(run: PastRun) -> Markup:
    return tag("a", moment(run.when), href=f"{run.directory}/{REPORTS['html']}")
