"""What an audit found as one HTML file: no script, no style sheet or font from elsewhere, no link at all.

Everything that comes from a log is escaped. The size is bounded: the figures below say of what there is how
much; the JSON report and the tables have the rest.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from rebalance.gate import recordings
from rebalance.gate.auditing import Audited
from rebalance.gate.recordings import Finding
from rebalance.gate.report.audit import headline
from rebalance.gate.report.timeline import certainty, chart, moment, span
from rebalance.gate.report.words import clean, cut
from rebalance.gate.traces import TraceError
from rebalance.pipeline.findings import CHECKS

MOST_FINDINGS = 200
MOST_CHARTS = 40
MOST_TEXT = 300
"""Characters of one cell."""
MOST = 2 * 1024 * 1024
"""Bytes of the whole; charts that do not fit in are left out."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1f24; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2.2rem } h1 b { padding: .1em .5em; color: #fff }
.violation { background: #b3261e } .inconclusive { background: #9a6700 } .conformant { background: #1a7f37 }
table { border-collapse: collapse; width: 100% } td, th { padding: .25rem .6rem; text-align: left;
       vertical-align: top; border-bottom: 1px solid #d7dce1 } th { font-weight: 600 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
pre { font: 12px/1.25 ui-monospace, monospace; overflow-x: auto; background: #f6f8fa; padding: .8rem }
code { font: 13px ui-monospace, monospace } summary { cursor: pointer } .dim { color: #59636e }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3 } pre { background: #161b22 }
       td, th { border-color: #30363d } .dim { color: #9198a1 } }
"""


def render(found: Audited) -> str:
    """The page, at most ``MOST`` bytes of UTF-8."""
    parts = [_head(found), _checks(found)]
    parts += [_findings(found, check) for check in dict.fromkeys(one.check for one in found.findings)]
    end = [_groups(found), _pauses(found), _clocks(found), _malformed(found), "</main></body></html>\n"]
    room = MOST - sum(len(part.encode()) for part in (*parts, *end))
    drawn = []
    for one in found.findings[:MOST_CHARTS]:
        picture = _chart(found, one)
        room -= len(picture.encode())
        if room < 1000:
            break
        drawn.append(picture)
    if drawn:
        left = len(found.findings) - len(drawn)
        more = (
            f"<p class=dim>{left:,} more are not drawn here: rebalance show draws their traces.</p>"
            if left
            else ""
        )
        drawn = ["<h2>Charts</h2>", *drawn, more]
    return "".join([*parts, *drawn, *end])


def _text(value: object) -> str:
    """A value from outside: on one line, short, nothing in it that HTML obeys."""
    return html.escape(cut(clean("" if value is None else str(value)), MOST_TEXT))


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(
            f"<{tag}{' class=n' if at in numbers else ''}>{_text(value)}</{tag}>"
            for at, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"


def _head(found: Audited) -> str:
    word, _, rest = headline(found).partition("  ")
    title = f"rebalance audit: {_text(headline(found))}"
    read = f"{found.files:,} files, {found.lines:,} lines, {found.events:,} events"
    suite = f"{found.malformed:,} malformed lines; rebalance {version('rebalance-verifier')}. Times are UTC."
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    paths = " ".join(f"<code>{_text(path)}</code>" for path in found.plan.paths[:20])
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{_STYLE}</style></head><body><main>"
        f"<h1><b class={found.verdict.value}>{_text(word)}</b> {_text(rest)}</h1>"
        f"<p>{paths}</p><p class=dim>{read}, {_text(suite)}</p>"
    )


def _checks(found: Audited) -> str:
    tallies = {one.check: one for one in found.tallies}
    rows = []
    for check in found.plan.asked:
        one = tallies.get(check.id)
        figures = (
            (f"{one.findings:,}", f"{one.certain:,}", f"{one.groups:,}", span(one.longest))
            if one
            else (0, 0, 0, "")
        )
        rows.append((check.id, check.level, check.sentence, *figures))
    heads = ("check", "level", "what must be so", "findings", "certain", "groups", "longest")
    return "<h2>Checks</h2>" + _table(heads, rows, (3, 4, 5, 6))


def _findings(found: Audited, check: str) -> str:
    mine = [one for one in found.findings[:MOST_FINDINGS] if one.check == check]
    if not mine:
        return ""
    rows = [
        (
            one.group,
            one.about,
            ", ".join(
                owner.name if owner.generation is None else f"{owner.name} (generation {owner.generation})"
                for owner in one.owners[:6]
            ),
            moment(one.began),
            span(one.seconds) + ("" if one.ended else ", goes on"),
            certainty(one),
            one.sentence,
            ", ".join(place.where for place in one.places[:4]),
        )
        for one in mine
    ]
    total = next((one.findings for one in found.tallies if one.check == check), len(mine))
    more = f"<p class=dim>{len(mine):,} of {total:,}</p>" if total > len(mine) else ""
    heads = ("group", "partition", "consumers", "began", "for", "sure", "what", "where")
    return f"<h2>{_text(check)}: {_text(CHECKS[check].sentence)}</h2>" + _table(heads, rows) + more


def _chart(found: Audited, one: Finding) -> str:
    """The chart of a finding, from its trace; nothing where there is none."""
    path = found.traces.get(one.id)
    if path is None:
        return ""
    try:
        lines = chart(recordings.load(found.plan.out / "traces" / one.file_name))
    except TraceError:
        return ""
    title = " ".join(filter(None, (one.check, one.about, "of group", one.group, span(one.seconds))))
    drawn = html.escape("\n".join(lines))
    summary = f"<summary>{_text(title)} <code>{_text(one.id)}</code></summary>"
    return f"<details open>{summary}<pre>{drawn}</pre></details>"


def _groups(found: Audited) -> str:
    if not found.worst:
        return ""
    heads = (
        "group",
        "findings",
        "rebalances",
        "consumers",
        "partitions",
        "events",
        "first",
        "last",
        "at the end",
    )
    rows = [
        (
            *(one.group, one.findings, one.rebalances, one.consumers, one.partitions, one.events),
            *(
                one.first,
                one.last,
                "" if one.settled is None else "settled" if one.settled else "rebalancing",
            ),
        )
        for one in found.worst
    ]
    more = f"<p class=dim>{len(rows):,} of {found.groups:,}</p>" if found.groups > len(rows) else ""
    return "<h2>Groups</h2>" + _table(heads, rows, (1, 2, 3, 4, 5)) + more


def _pauses(found: Audited) -> str:
    rows = [
        (one.group, one.handovers, span(one.p50), span(one.p95), span(one.longest))
        for one in found.pauses
        if one.handovers
    ]
    heads = ("group", "hand-overs", "half within", "95 % within", "longest")
    return "<h2>Partitions without an owner</h2>" + _table(heads, rows, (1, 2, 3, 4)) if rows else ""


def _clocks(found: Audited) -> str:
    rows = [
        (
            one.host,
            span(abs(one.ahead)),
            "ahead" if one.ahead >= 0 else "behind",
            span(one.spread),
            one.samples,
        )
        for one in found.clocks
        if one.ahead is not None
    ]
    heads = ("host", "by", "", "give or take", "samples")
    return "<h2>Clocks</h2>" + _table(heads, rows, (1, 3, 4)) if rows else ""


def _malformed(found: Audited) -> str:
    rows = [(f"{one.file}:{one.line}", one.why, one.text) for one in found.first_malformed]
    title = f"<h2>Malformed lines: {found.malformed:,}</h2>"
    return title + _table(("where", "why", "text"), rows) if rows else ""
