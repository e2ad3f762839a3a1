"""Cases as GitHub-flavoured Markdown, for step summaries and comments."""

from __future__ import annotations

import html

from rebalance_verifier.base.text import clean, count, cut
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.report.ci.cases import CiCase, CiReport, Evidence
from rebalance_verifier.report.diagram import mermaid
from rebalance_verifier.report.markup import code, escaped, fenced, plain, table

MAX_BYTES = 1024 * 1024
"""Bytes: GitHub refuses a longer step summary as a whole."""

MAX_EVIDENCE = 5
"""Things that break one rule that are shown."""

MAX_DIAGRAMS = 50_000
"""Characters of all diagrams: Mermaid draws no more of a page."""

_NOTICE = "\n*{} left out here for length; the JSON report and the traces have them.*\n"
_MARKS = {Verdict.CONFORMANT: "✅", Verdict.VIOLATION: "❌", Verdict.INCONCLUSIVE: "⚠️"}


def render(report: CiReport, most: int = MAX_BYTES) -> str:
    """Verdict, table and one folded section per broken rule, at most ``most`` bytes of UTF-8.

    Sections that do not fit are left out, worst level kept first, and their number is said. Where not
    even the head fits, it is cut.
    """
    text = _head(report)
    room = most - len(text.encode()) - len(_NOTICE.encode()) - 30
    every = (("Violation", report.failing), ("Finding", report.informing), ("Shown", report.showing))
    broken = [(word, case) for word, cases in every for case in cases]
    kept, drawn = 0, 0
    for word, case in broken:
        diagram = _diagram(case) if drawn < MAX_DIAGRAMS else []
        drawn += sum(map(len, diagram))
        section = _section(word, case, diagram if drawn < MAX_DIAGRAMS else [])
        room -= len(section.encode())
        if room < 0:
            break
        text, kept = text + section, kept + 1
    if kept < len(broken):
        text += _NOTICE.format(count(len(broken) - kept, "broken clause"))
    return text.encode()[:most].decode(errors="ignore")


def _head(report: CiReport) -> str:
    passed = report.verdict is Verdict.CONFORMANT and report.exit is not Exit.CONFORMANT
    mark = _MARKS[Verdict.INCONCLUSIVE if passed else report.verdict]
    lines = [f"## {mark} {escaped(report.headline)}", ""]
    (name, subject), *others = report.facts or ((report.command, report.subject),)
    lines += [" · ".join([f"{name} {code(subject)}", *(f"{n} {escaped(v)}" for n, v in others)]), ""]
    lines += table(
        ["level", *Status],
        [[level, *(str(row[s]) for s in Status)] for level, row in report.counts.items()],
    )
    if found := [*report.failing, *report.informing, *report.showing]:
        variants = any(case.variant for case in found)
        titles = ["clause", *[report.variants] * variants, "level", "what"]
        lines += table(titles, [_row(case, variants) for case in found])
    for case in report.having(Status.FIXED):
        lines.append(f"- {code(case.id)} holds, remove its line from the known list {escaped(case.note)}")
    for line in report.stale:
        lines.append(f"- {code(cut(line, 200))} matches no clause: remove line")
    lines += [f"- not reached: {escaped(cut(clean(reason), 200))}" for reason in report.missed]
    if report.reached:
        lines += ["", "Reached: " + ", ".join(escaped(situation) for situation in report.reached)]
    tally = f"{escaped(report.tally)}; " if report.tally else ""
    return "\n".join([*lines, "", f"{tally}exit {int(report.exit)}", ""])


def _row(case: CiCase, variants: bool) -> list[str]:
    rule = case.rule
    link = f"[{escaped(rule.id)}]({rule.link})" if rule.link else escaped(rule.id)
    return [link, *[case.variant] * variants, rule.level, escaped(cut(clean(case.message), 200))]


def _section(word: str, case: CiCase, diagram: list[str]) -> str:
    rule = case.rule
    title = f"{word} {rule.id}" + (f" ({case.variant})" if case.variant else "")
    lines = [f"<details><summary>{html.escape(title)}</summary>", ""]
    source = f"[{escaped(rule.source)}]({rule.link})" if rule.link else escaped(rule.source)
    lines += [f"**Rule** {escaped(rule.sentence)}" + (f" ({source})" if rule.source else ""), ""]
    if not case.evidence:
        lines += [escaped(cut(clean(case.note), 1000)), ""]
    for number, one in enumerate(case.evidence[:MAX_EVIDENCE]):
        lines += _shown(one, [] if number else diagram)
    if len(case.evidence) > MAX_EVIDENCE:
        lines += ["", f"and {len(case.evidence) - MAX_EVIDENCE:,} more"]
    return "\n".join(["", *lines, "", "</details>", ""])


def _shown(one: Evidence, diagram: list[str]) -> list[str]:
    lines = [escaped(cut(clean(one.message), 1000)), ""]
    lines += [f"- {escaped(cut(clean(reason), 1000))}" for reason in one.because[:20]]
    lines += [f"- **{name}** {escaped(cut(clean(text), 1000))}" for name, text in one.facts]
    if chart := one.chart():
        lines += ["", *fenced(plain(chart, 20_000)), ""]
    lines += diagram
    lines += [f"- {name} {escaped(cut(clean(text), 1000))}" for name, text in one.notes]
    if one.source_location:
        lines.append(f"- in {code(f'{one.source_location.file}:{one.source_location.line}')}")
    if one.command:
        lines.append(f"- replay: {code(one.command)}")
    if one.path:
        lines.append(f"- trace: {code(one.path)}")
    return lines


def _diagram(case: CiCase) -> list[str]:
    """Return the picture of the first thing that breaks a rule, in the language that GitHub draws."""
    draw = case.evidence[0].draw if case.evidence else None
    if draw is None:
        return []
    return ["```mermaid", mermaid.render(draw()).rstrip("\n"), "```", ""]
