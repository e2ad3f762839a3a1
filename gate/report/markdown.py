"""The report as GitHub-flavoured Markdown, for step summaries and comments."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from rebalance.gate.report.chart import chart
from rebalance.gate.report.facts import (
    broken,
    counts,
    found_where,
    having,
    headline,
    informational,
    reached,
    tally,
)
from rebalance.gate.report.text import plain
from rebalance.gate.report.words import clean, count, cut, percent, size
from rebalance.gate.result import ClauseResult, Result, Status, Verdict

MOST = 1024 * 1024
"""Bytes: GitHub refuses a longer step summary as a whole."""

_NOTICE = "\n*{} left out here for length; the JSON report and the traces have them.*\n"
_MARKUP = re.compile(r"[\\`*_\[\]#!|<>&~@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_MARKS = {Verdict.CONFORMANT: "✅", Verdict.VIOLATION: "❌", Verdict.INCONCLUSIVE: "⚠️"}


def render(result: Result, most: int = MOST) -> str:
    """Verdict, table and one folded section per broken clause, at most ``most`` bytes of UTF-8.

    Sections that do not fit are left out, worst level kept first, and their number is said. Where not
    even the head fits, it is cut.
    """
    text = _head(result)
    sections = [_section("Violation", c) for c in broken(result)]
    sections += [_section("Finding", c) for c in informational(result)]
    room = most - len(text.encode()) - len(_NOTICE.encode()) - 30
    kept = 0
    for section in sections:
        room -= len(section.encode())
        if room < 0:
            break
        text, kept = text + section, kept + 1
    if kept < len(sections):
        text += _NOTICE.format(count(len(sections) - kept, "broken clause"))
    return text.encode()[:most].decode(errors="ignore")


def _head(result: Result) -> str:
    target = result.target
    version = f" {target.version}" if target.version else ""
    lines = [f"## {_MARKS[result.verdict]} {_words(headline(result))}", ""]
    facts = [
        f"target {_code(cut(target.spec, 100))}",
        f"{_words(cut(clean(target.name + version), 100))}",
        f"suite {_words(result.suite_version)}",
        f"protocols {_words(', '.join(target.protocols) or '-')}",
        f"profile {_words(result.profile)}",
        f"seed {result.seed}",
        f"{count(result.scenarios, 'scenario')}, {result.seconds:.1f} s",
    ]
    lines += [" · ".join(facts), ""]
    table = counts(result)
    lines += _table(
        ["level", *Status], [[level, *(str(row[s]) for s in Status)] for level, row in table.items()]
    )
    if found := [*broken(result), *informational(result)]:
        lines += _table(["clause", "protocol", "level", "what"], [_row(c) for c in found])
    for clause in having(result, Status.FIXED):
        lines.append(f"- {_code(clause.id)} holds, remove its line from the known list {_words(clause.note)}")
    for line in result.stale_known:
        lines.append(f"- {_code(cut(line, 200))} matches no clause: remove line")
    lines += [f"- not reached: {_words(cut(clean(reason), 200))}" for reason in result.missed]
    if situations := reached(result):
        lines += [
            "",
            "Reached: " + ", ".join(f"{_words(name)} {percent(share)}" for name, share in situations),
        ]
    return "\n".join([*lines, "", f"{_words(tally(result))}; exit {int(result.exit)}", ""])


def _row(clause: ClauseResult) -> list[str]:
    summary = clause.finding.breach.summary if clause.finding else clause.clause.sentence
    link = f"[{_words(clause.clause.id)}]({clause.clause.link})"
    return [link, clause.protocol, clause.clause.level, _words(cut(clean(summary), 200))]


def _section(word: str, clause: ClauseResult) -> str:
    finding = clause.finding
    title = f"{word} {clause.clause.id} ({clause.protocol})"
    lines = [f"<details><summary>{html.escape(title)}</summary>", ""]
    rule = f"**Rule** {_words(clause.clause.sentence)}"
    lines += [f"{rule} ([{_words(clause.clause.rule)}]({clause.clause.link}))", ""]
    if finding is None:
        lines += [_words(cut(clean(clause.note), 1000)), ""]
    else:
        breach = finding.breach
        lines += [_words(cut(clean(breach.summary), 1000)), ""]
        lines += [f"- {_words(cut(clean(reason), 1000))}" for reason in breach.because[:20]]
        for name, text in (("expected", breach.expected), ("actual", breach.actual)):
            if text:
                lines.append(f"- **{name}** {_words(cut(clean(text), 1000))}")
        lines += ["", *_fenced(plain(chart(finding), 20_000)), ""]
        lines += [f"- shrunk from {size(finding.found_size)} to {size(finding.scenario.size)}"]
        lines += [f"- found {found_where(clause, finding)}"]
        if finding.trace_id:
            lines.append(f"- replay: {_code(f'rebalance replay {finding.trace_id}')}")
        if finding.path:
            lines.append(f"- trace: {_code(finding.path)}")
    return "\n".join(["", *lines, "", "</details>", ""])


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = list(titles)
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _words(text: str) -> str:
    """``text`` as words: no markup, link, mention or HTML comes of it, in table cells neither."""
    return _MARKUP.sub(r"\\\g<0>", clean(text))


def _code(text: str) -> str:
    """``text`` as code, in a fence that it does not contain."""
    text = clean(text)
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _fenced(text: str) -> list[str]:
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"{fence}text", text, fence]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
