"""The ways from one assignor to another as one page: the plan, the paths, the runs that break something."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from rebalance_verifier.base.text import count
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.upgrades import UpgradeOutcome, UpgradeVerdict
from rebalance_verifier.properties.group.own import clause_named
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.exploration import run_parts
from rebalance_verifier.report.html.page import Markup, text
from rebalance_verifier.report.terminal.upgrade import UpgradeReport, remarks
from rebalance_verifier.traces.runs import run_id

_KINDS = {UpgradeVerdict.SAFE: "good", UpgradeVerdict.UNKNOWN: "warn"}


def render(headline: str, exit_code: Exit, report: UpgradeReport, explored: Mapping[str, object]) -> str:
    """Return the page. ``explored``: what was explored, by name."""
    shown = [(one, run) for one in report.outcomes if (run := report.saved[one.path.name])]
    blocks, _ = page.within((_broken(one, run, report.paths) for one, run in shown), page.MAX_BYTES)
    plan = page.listed(report.plan, ordered=True) if report.plan else page.dim(report.plan_title)
    title = f"The {report.plan_title}" if report.plan else "No plan"
    return page.report(
        "upgrade",
        headline,
        headline.partition(" ")[0].lower(),
        explored.items(),
        page.section("plan", title, plan, *(page.tag("p", text(note, 600)) for note in report.notes)),
        page.section("size", "Groups of any size", page.listed(report.any_size)),
        page.section("paths", "Paths", _paths(report)),
        page.section("broken", "What is broken", *blocks),
        lead="This page shows the safe ways of the upgrade, the unsafe ones with pictures, and the plan.",
        foot=f"exit {int(exit_code)}. rebalance {version('rebalance-verifier')}. "
        "This is a model of the group: every interleaving of "
        "restarts, rebalances and messages. What a path costs is that of one quiet run: partition-pauses are "
        "partitions without an owner times steps, and compare paths with each other.",
    )


def _paths(report: UpgradeReport) -> Markup:
    rows = [
        (
            one.path.name,
            page.badge(one.verdict.value, _KINDS.get(one.verdict, "bad")),
            "; ".join((one.path.sentence, *remarks(one))),
            *(
                "" if figure is None else f"{figure:,}"
                for figure in (one.rebalances, one.pauses, one.search.unreduced)
            ),
        )
        for one in report.outcomes
    ]
    heads = ("path", "verdict", "what is done", "rebalances", "partition-pauses", "states searched")
    return page.table("Paths", heads, rows, numbers=(3, 4, 5))


def _broken(outcome: UpgradeOutcome, run: SavedRun, paths: Mapping[str, str]) -> Markup:
    clause = clause_named(run.clause)
    lead = page.tag("p", text(run.sentence or clause.sentence, 600), class_="lead")
    rule = page.facts([("rule", f"{clause.sentence} ({clause.source})")])
    title = f"{outcome.path.name} breaks {run.clause}"
    steps = run_parts(run, title, paths, count(len(run.events), "step"))
    mark = page.badge(f"✗ {outcome.verdict.value.upper()}", "bad")
    return page.article(f"f-{run_id(run)}", mark, title, clause.level, lead, rule, *steps)
