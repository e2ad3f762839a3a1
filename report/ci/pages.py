"""Cases as a page, for a command that has none of its own."""

from __future__ import annotations

from rebalance_verifier.base.text import count
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.report.ci.cases import CiCase, CiReport, Evidence
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, code, text

HEADS = ("rule", "result", "level", "what")

_KINDS = {Status.PASSED: "good", Status.VIOLATED: "bad"}


def render(report: CiReport, lead: str) -> str:
    """Return the page; ``lead`` is its sentence for everybody."""
    found = [*report.failing, *report.informing]
    blocks, left = page.within((_block(case) for case in [*found, *report.showing]), page.MAX_BYTES)
    title = "What is broken" if found else "What was shown"
    more = [page.dim(f"{count(left, 'rule')} more left out for length")] if left else []
    rows = [
        (
            case.id,
            page.badge(case.status.value, _KINDS.get(case.status, "warn")),
            case.rule.level,
            case.message,
        )
        for case in report.cases
    ]
    missed = [("not reached", reason) for reason in report.missed]
    return page.report(
        report.command,
        report.headline,
        report.verdict.value,
        (*report.facts, *missed),
        page.section("broken", title, *blocks, *more) if blocks else Markup(""),
        page.section("rules", "What was asked", page.table("Rules", HEADS, rows)),
        lead=lead,
        foot=f"exit {int(report.exit)}. rebalance {report.suite_version}.",
    )


def _block(case: CiCase) -> Markup:
    word, kind = ("✗ VIOLATION", "bad") if case.fails else ("FINDING", "warn")
    mark = page.badge("SHOWN", "good") if case.status is Status.PASSED else page.badge(word, kind)
    source = f"{case.rule.sentence} ({case.rule.source})" if case.rule.source else case.rule.sentence
    name = f"f-{case.id.replace('/', '-')}"
    every = enumerate(case.evidence, 1)
    parts = [part for number, one in every for part in _evidence(case, one, f"{name}-{number}")]
    return page.article(name, mark, case.id, case.where, page.facts([("rule", source)]), *parts)


def _evidence(case: CiCase, one: Evidence, name: str) -> list[Markup]:
    named = [*one.facts, *((("show", code(one.command)),) if one.command else ())]
    chart = "\n".join(one.chart())
    return [
        page.tag("p", text(one.message, 600), class_="lead"),
        page.facts(named) if named else Markup(""),
        page.figure(f"who owns what in {case.id}", one.draw, name) if one.draw else Markup(""),
        page.pre(f"steps of {case.id}", chart) if chart else Markup(""),
    ]
