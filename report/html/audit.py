"""What an audit found as one HTML file: no script, no style sheet or font from elsewhere. It loads nothing;
its links, for whoever clicks, are those of the checks and of the catalogue, none is of a log.

Everything that comes from a log is escaped. The size is bounded: the figures below say of what there is how
much; the JSON report and the tables have the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version

from rebalance_verifier.base.text import span
from rebalance_verifier.pipeline.audit import advice
from rebalance_verifier.pipeline.audit.diagnosis import sentences
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.quoting import quoted
from rebalance_verifier.pipeline.audit.records import LogFinding
from rebalance_verifier.pipeline.audit.result import Audited
from rebalance_verifier.report.diagram.log_diagram import of_recording
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, join, text
from rebalance_verifier.report.incident import Names, legend, short_names, shortened, story, with_short_names
from rebalance_verifier.report.terminal.audit import PAGE, headline
from rebalance_verifier.report.times import certainty, lasted, moment

MAX_FINDINGS = 200
MAX_CHARTS = 40
MAX_NAMED = 60
MAX_BYTES = 2 * 1024 * 1024
"""Bytes of the whole; charts that do not fit in are left out."""


def render(audit: Audited) -> str:
    """The page, at most ``MAX_BYTES`` bytes of UTF-8: the incident first, the tables at the end, folded."""
    names = _names(audit)
    parts = [_findings(audit, check, names) for check in dict.fromkeys(one.check for one in audit.findings)]
    tables = [
        *(_checks(audit), _clients(audit), _groups(audit), _pauses(audit), _clocks(audit)),
        _malformed(audit),
    ]
    folded = [_folded("All findings", *parts), _folded("Tables", *tables)]
    room = MAX_BYTES - len(_document(audit, names, *folded).encode()) - 1000
    charted = audit.findings[:MAX_CHARTS]
    raw = quoted(event for one in charted for event in one.places)
    drawn, left = page.within((_chart(audit, one, raw, names) for one in charted), room)
    drawn = [one for one in drawn if one]
    if drawn and (left := left + len(audit.findings[MAX_CHARTS:])):
        drawn.append(page.dim(f"{left:,} more are not drawn here: rebalance show draws their traces."))
    legend = _legend(audit, names) if drawn else ""
    return _document(audit, names, page.section("charts", "What happened", legend, *drawn), *folded)


def _folded(title: str, *parts: Markup) -> Markup:
    body = join(*parts)
    return page.details(title, body, class_="all") if body else Markup("")


def _names(audit: Audited) -> Names:
    """Short names of those that findings are about, the gravest first."""
    return short_names(
        consumer
        for one in audit.findings[:MAX_FINDINGS]
        for consumer in (*(o.consumer for o in one.owners), *(event.consumer for event in one.places))
    )


def _legend(audit: Audited, names: Names) -> Markup:
    clients = {one.consumer: one for one in audit.clients}
    rows = []
    for consumer, letter in list(names.items())[:MAX_NAMED]:
        client, process = legend(consumer)
        logged = clients.get(consumer)
        details = (logged.source, logged.release or "", logged.assignor or "") if logged else ()
        rows.append((letter, client, process, " ".join(filter(None, details))))
    more = page.dim(f"{len(names) - MAX_NAMED:,} more are in the tables") if len(names) > MAX_NAMED else ""
    heads = ("name here", "client id", "pod, host or file", "client")
    return join(page.table("Names", heads, rows), more) if rows else Markup("")


def _document(audit: Audited, names: Names, *sections: Markup) -> str:
    line = headline(audit)
    read = f"{audit.files:,} files, {audit.lines:,} lines, {audit.events:,} events"
    suite = f"{audit.malformed:,} malformed lines; rebalance {version('rebalance-verifier')}. Times are UTC."
    paths = join(*(join(page.code(path), " ") for path in audit.plan.paths[:20]))
    unread = [f"{one.file}: {one.why} ({one.lines:,} lines)" for one in audit.unread[:20]]
    unclear = [page.tag("p", text) for text in [note.text for note in audit.notes[:20]] + unread]
    lead = (
        [page.tag("p", text(story(audit, audit.findings[0], names), 1500), class_="lead")]
        if audit.findings
        else []
    )
    head = join(
        page.headline(line, audit.verdict.value), *lead,
        page.dim(paths, f" {read}, {suite} {PAGE} says what a finding proves."), *unclear,
    )  # fmt: skip
    return page.document(f"rebalance audit: {line}", head, *sections, contents=False)


def _checks(audit: Audited) -> Markup:
    rows = []
    for check in audit.plan.chosen_checks:
        one = audit.tally(check.id)
        longest = span(one.longest) if one.findings else ""
        figures = (f"{one.findings:,}", f"{one.certain:,}", f"{one.groups:,}", longest)
        rows.append((check.id, check.level, check.sentence, *figures))
    heads = ("check", "level", "what must be so", "findings", "certain", "groups", "longest")
    return page.section("checks", "Checks", page.table("Checks", heads, rows, numbers=(3, 4, 5, 6)))


def _findings(audit: Audited, check: str, names: Names) -> Markup:
    mine = [one for one in audit.findings[:MAX_FINDINGS] if one.check == check]
    if not mine:
        return Markup("")
    rows = [
        (
            one.group,
            one.about,
            ", ".join(
                who if owner.generation is None else f"{who} (generation {owner.generation})"
                for owner in one.owners[:6]
                for who in [names.get(owner.consumer or "", owner.name)]
            ),
            moment(one.began),
            span(one.seconds) + ("" if one.ended else ", goes on"),
            certainty(one),
            shortened(". ".join([one.sentence, *sentences(audit.diagnoses.get(one.id, ()))]), names),
            ", ".join(event.where for event in one.places[:4]),
        )
        for one in mine
    ]
    total = audit.tally(check).findings
    more = page.dim(f"{len(mine):,} of {total:,}") if total > len(mine) else ""
    heads = ("group", "partition", "consumers", "began", "for", "sure", "what", "where")
    rule = CHECKS[check]
    facts = page.facts([("rule", join(rule.source, *_links(advice.kips(rule.source)))),
                        ("what to do", text(advice.STEPS[check], 600))])  # fmt: skip
    table = page.table(f"Findings of {check}", heads, rows)
    return page.section(check, f"{check}: {rule.sentence}", facts, table, more)


def _links(named: Sequence[tuple[str, str]]) -> list[Markup]:
    """Names to click on, each after a gap."""
    return [join(" ", page.link(url, name)) for name, url in named]


def _explained(audit: Audited, one: LogFinding, names: Names) -> Markup:
    """Return the bug of the catalogue, the next steps, and the logged facts about the clients of a
    finding."""
    diagnoses = audit.diagnoses.get(one.id, ())
    known = [text(shortened(sentence, names), 900) for sentence in sentences(diagnoses)]
    links = _links(advice.trackers(diagnoses))
    steps = [text(step, 600) for step in (*advice.remedies(diagnoses), advice.STEPS[one.check])]
    logged = advice.as_logged(one, audit.clients)
    return page.facts(
        [
            ("what happened", join(text(shortened(one.sentence, names), 900), f", {lasted(one)}")),
            ("the log points to", shortened(audit.pointers.get(one.id, ""), names)),
            ("what this is", page.listed(known) if known else advice.unknown(one)),
            ("read about it", join(*links)),
            ("what to do", page.listed(steps)),
            ("as logged", page.listed(logged, 20) if logged else "no release, no assignor"),
        ]
    )


def _chart(audit: Audited, one: LogFinding, raw: Mapping[tuple[str, int], str], names: Names) -> Markup:
    """The chart of a finding and the ``raw`` lines behind it; nothing where no recording was made."""
    recording = next((known for known in audit.recordings if known.finding.id == one.id), None)
    if recording is None:
        return Markup("")
    short = with_short_names(recording, names)
    title = " ".join(filter(None, (one.check, one.about, "of group", one.group, span(one.seconds))))
    drawn = page.figure(f"Chart of {one.id}", partial(of_recording, short), f"c{one.id}", steps=True)
    behind = [(event, line) for event in one.places if (line := raw.get((event.file, event.line)))]
    quotes = [
        f"{names.get(event.consumer or '', event.who)}  {event.where}  {line}" for event, line in behind
    ]
    shown = page.pre(f"Lines of {one.id}", "\n".join(quotes))
    lines = join(page.tag("h4", "The lines behind it"), shown) if behind else ""
    heading = join(title, " ", page.code(one.id))
    first = one is audit.findings[0]
    return page.details(heading, drawn, lines, _explained(audit, one, names), open_=first)


def _clients(audit: Audited) -> Markup:
    rows = [
        (
            one.group,
            one.consumer or "coordinator",
            one.source,
            one.release or "not logged",
            one.assignor or "",
        )
        for one in audit.clients
    ]
    heads = ("group", "who", "log of", "release", "assignor")
    table = page.table("Releases and assignors", heads, rows) if rows else ""
    return page.section("clients", "Releases and assignors, as logged", table)


def _groups(audit: Audited) -> Markup:
    if not audit.worst:
        return Markup("")
    heads = ("group", "findings", "rebalances", "consumers", "partitions", "events", "first", "last")
    rows = [
        (
            *(one.group, one.findings, one.rebalances, one.consumers, one.partitions, one.events),
            *(one.first, one.last),
            "" if one.settled is None else "settled" if one.settled else "rebalancing",
        )
        for one in audit.worst
    ]
    more = page.dim(f"{len(rows):,} of {audit.groups:,}") if audit.groups > len(rows) else ""
    table = page.table("Groups", (*heads, "at the end"), rows, numbers=(1, 2, 3, 4, 5))
    return page.section("groups", "Groups", table, more)


def _pauses(audit: Audited) -> Markup:
    rows = [
        (one.group, one.handovers, span(one.p50), span(one.p95), span(one.longest))
        for one in audit.pauses
        if one.handovers
    ]
    heads = ("group", "hand-overs", "half within", "95 % within", "longest")
    table = page.table("Partitions without an owner", heads, rows, numbers=(1, 2, 3, 4)) if rows else ""
    return page.section("pauses", "Partitions without an owner", table)


def _clocks(audit: Audited) -> Markup:
    rows = [
        (
            one.host,
            span(abs(one.ahead)),
            "ahead" if one.ahead >= 0 else "behind",
            span(one.spread),
            one.samples,
        )
        for one in audit.clocks
        if one.ahead is not None
    ]
    heads = ("host", "by", "which way", "give or take", "samples")
    table = page.table("Clocks", heads, rows, numbers=(1, 3, 4)) if rows else ""
    return page.section("clocks", "Clocks", table)


def _malformed(audit: Audited) -> Markup:
    rows = [(f"{one.file}:{one.line}", one.why, one.text) for one in audit.first_malformed]
    table = page.table("Malformed lines", ("where", "why", "text"), rows) if rows else ""
    return page.section("malformed", f"Malformed lines: {audit.malformed:,}", table)
