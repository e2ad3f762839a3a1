"""The report of a check as one HTML page, from the result alone: what a failing CI job links to.

Verdict, what is broken and how to see it again, the clause matrix, what the search covered, what passing
looks like. Equal results give equal pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rebalance_verifier.base.text import count, listed, percent, size
from rebalance_verifier.base.verdict import Level, Verdict
from rebalance_verifier.gate.scenarios.generator import BY_NAME
from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.scenarios.round_view import (
    ALONE,
    after_changed,
    before_changed,
    round_views,
    stories,
)
from rebalance_verifier.gate.scenarios.task_generator import TASKS_BY_NAME
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.result import Along, ClauseResult, Finding, Result, Sample, Status
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.properties.assignors.wording import terms_of
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.diagram.scenario_diagram import of_finding
from rebalance_verifier.report.facts import (
    NOT_JUDGED,
    STALE,
    broken,
    cause_facts,
    found_where,
    gating,
    having,
    headline,
    informational,
    kept_noun,
    mark,
    played,
    reached,
    scenario_number,
    tally,
    unattributed,
    undeclared,
    verdict_word,
)
from rebalance_verifier.report.html import page
from rebalance_verifier.report.html.page import Markup, join, tag, text

MAX_DRAWN = 20
"""Broken clauses shown with everything; the others are in the matrix."""

MAX_ROUNDS, LAST_ROUNDS = 200, 20
"""Rounds of one counterexample in its table, and how many of them are the last where not all fit."""

LARGE = 2000
"""Things in a counterexample from which on its test and its JSON are not in the page."""

_STATUS = {
    Status.PASSED: ("✓", "good"),
    Status.VIOLATED: ("✗", "bad"),
    Status.KNOWN: ("◇", "warn"),
    Status.UNCONFIRMED: ("?", "warn"),
    Status.FLAKY: ("◇", "warn"),
    Status.FIXED: ("!", "warn"),
    Status.UNSUPPORTED: ("–", "dim"),
    Status.UNTESTED: ("–", "dim"),
}

SENTENCES = {name: one.sentence for name, one in BY_NAME.items()} | {
    name: one.sentence for name, one in TASKS_BY_NAME.items()
}
"""What varies along each dimension."""


def render(result: Result) -> str:
    """Return the page, below 5 MB whatever the result: what does not fit is left out, and counted."""
    found = [*broken(result), *informational(result)]
    blocks, _ = page.within((_failure(result, row) for row in found[:MAX_DRAWN]), page.MAX_BYTES // 2)
    drawn = {row.id: _name(result, row, row.finding) for row in found[: len(blocks)]}
    if len(drawn) > 1:
        blocks.insert(0, page.listed(_in_short(row, drawn[row.id]) for row in found[: len(drawn)]))
    if left := len(found) - len(drawn):
        more = count(left, "more broken clause")
        blocks.append(page.dim(f"{more} without a picture: see the table below."))
    return page.report(
        "check",
        headline(result),
        "warn" if verdict_word(result) == STALE else result.verdict,
        _named(result),
        page.section("broken", "What is broken", *blocks),
        page.section("todo", "What else to look at", _todo(result)),
        page.section("clauses", "Clauses", _matrix(result, drawn)),
        page.folded("reached", "Situations reached", _reached(result)),
        page.folded("coverage", "What was asked along which dimension", *_coverage(result)),
        page.folded("others", "Known, flaky, unsupported, untested", _others(result)),
        page.folded("samples", "What passing looks like", *_samples(result)),
        lead=_lead(result),
        foot=f"{tally(result)}; {verdict_word(result)}, exit {int(result.exit)}. rebalance "
        f"{result.suite_version}. A search from a seed: conformant means that it found nothing in the "
        "situations that it lists as reached.",
    )


# -- the head ------------------------------------------------------------------------------------------------

_MEANS = {
    Level.SAFETY: "In some rebalances this assignor gives a partition to a wrong consumer, or to two.",
    Level.LIVENESS: "In some rebalances this assignor leaves partitions unread, or never settles.",
    Level.QUALITY: "This assignor distributes partitions worse than it promises.",
}


def _lead(result: Result) -> str:
    """Say in one sentence, without a term of the trade, what the result means."""
    if found := broken(result):
        return _MEANS[found[0].clause.level]
    if result.verdict is Verdict.INCONCLUSIVE:
        return "This run gives no verdict: the list below says why."
    tested = count(result.scenarios, "tested scenario")
    known = "Only known failures occur" if having(result, Status.KNOWN) else "No rule is broken"
    return f"{known} in {tested} with this assignor."


def _named(result: Result) -> list[tuple[object, object]]:
    target = result.target
    named = " ".join(filter(None, (target.name, target.version))) + f" ({target.language})" * bool(
        target.language
    )
    links = [page.link(url, url) for url in (target.homepage, target.issues) if url]
    return [
        ("target", page.code(target.spec)),
        ("calls itself", named if named != target.spec else ""),
        ("see", Markup(" · ".join(links))),
        ("protocols", ", ".join(target.protocols)),
        ("promises", undeclared(result) or ", ".join(target.promises)),
        ("search", f"profile {result.profile}, seed {result.seed}, level {result.level}"),
        ("without", ", ".join(result.without)),
        ("topics", ", ".join(result.topics)),
        ("members", ", ".join(result.beside)),
        ("ran", played(result)),
        (
            f"{kept_noun(result)} kept",
            "" if result.quality is None else f"{percent(result.quality)} of those that could be kept",
        ),
        ("checks", tally(result)),
    ]


def _todo(result: Result) -> Markup:
    notes = [
        join(page.code(row.id), " holds: remove its line from the known list. ", row.note)
        for row in having(result, Status.FIXED)
    ]
    notes += [join(page.code(line), " matches no clause: remove the line.") for line in result.stale_known]
    notes += [join("Not judged: ", reason) for reason in result.doubts]
    return page.listed(notes) if notes else Markup("")


# -- what is broken ------------------------------------------------------------------------------------------


def _in_short(row: ClauseResult, name: str) -> Markup:
    summary = row.finding.breach.summary if row.finding else row.note
    return join(tag("a", row.id, href=f"#{name}"), f": {summary}")


def _name(result: Result, row: ClauseResult, finding: Finding | None) -> str:
    """Return the id of a finding in the page, which is the same in every page that shows it."""
    trace = f"-{_trace_id(result, row, finding)}" if finding else ""
    return f"f-{row.id.replace('/', '-')}{trace}"


def _trace_id(result: Result, row: ClauseResult, finding: Finding) -> str:
    return finding.trace_id or counterexamples.trace_id(row.clause.id, result.target.spec, finding.scenario)


def _failure(result: Result, row: ClauseResult) -> Markup:
    gates, finding = gating(result, row), row.finding
    name = _name(result, row, finding)
    if finding is None:
        body = [page.facts([("rule", _rule(row)), ("note", row.note)])]
    else:
        body = [tag("p", text(left)) for left in (unattributed(row),) if left]
        for one in reversed(row.findings):
            body = [*_explained(result, row, one), *body]
    badge = page.badge("✗ VIOLATION", "bad") if gates else page.badge("◇ FINDING", "info")
    where = f"{row.clause.level}, {row.protocol}"
    shown = row.clause.id + (mark(finding) if finding else "")
    return page.article(name, badge, shown, where, *body, mild=not gates)


def _rule(row: ClauseResult) -> Markup:
    return join(row.clause.sentence, " (", page.link(row.clause.link, row.clause.rule), ")")


def _explained(result: Result, row: ClauseResult, finding: Finding) -> Iterator[Markup]:
    breach, name = finding.breach, _name(result, row, finding)
    yield tag("p", text(breach.summary + mark(finding), 600), class_="lead")
    reasons = [text(one, 600) for one in breach.because]
    because = page.listed(reasons, 20, ordered=True) if len(reasons) > 1 else join(*reasons)
    yield page.facts(
        [
            *((named, text(fact, 600)) for named, fact in cause_facts(row, finding)),
            ("because", because),
            ("expected", text(breach.expected, 600)),
            ("actual", text(breach.actual, 600)),
            ("rule", _rule(row)),
            ("hint", row.hint),
        ]
    )
    yield page.figure(f"{_owned(row.protocol)}: {row.id}", partial(of_finding, finding), name)
    views = round_views(finding.scenario, finding.calls, finding.round, breach.summary)
    yield page.stepper(row.id, views, name, "round")
    yield tag("h4", "Round by round, what changed")
    yield _rounds(f"Rounds of {row.id}", finding)
    yield tag("h4", "See it again")
    yield from _again(result, row, finding)


def _again(result: Result, row: ClauseResult, finding: Finding) -> Iterator[Markup]:
    """Yield where it was found, the command, the stand-alone test, the file."""
    name = _trace_id(result, row, finding)
    yield page.facts(
        [
            ("replay", page.code(f"rebalance replay {name}") if finding.trace_id else ""),
            ("trace", page.code(finding.path) if finding.path else ""),
            ("found", found_where(row, finding)),
            ("shrunk", _shrunk(finding)),
        ]
    )
    if _is_large(finding):
        as_test = page.code(f"rebalance replay {name} --as-pytest test_{name}.py")
        yield page.dim("Too large to be shown here; the trace has it, and as a test: ", as_test)
        return
    trace = counterexamples.of(finding, result.target, result.profile, result.suite_version)
    test, file = counterexamples.as_pytest(trace), counterexamples.to_text(trace)
    yield page.details("Stand-alone test for pytest", page.pre(f"Test of {row.id}", test))
    yield page.details("Trace as JSON", page.pre(f"Trace of {row.id}", file, 60_000))


def _shrunk(finding: Finding) -> str:
    nouns = finding.scenario.nouns
    return f"from {size(finding.found_size, nouns)} to {size(finding.scenario.size, nouns)}"


def _is_large(finding: Finding) -> bool:
    scenario = finding.scenario
    things = sum(scenario.size) + len(scenario.rounds) + len(finding.calls)
    for call in finding.calls:
        if things > LARGE:
            break
        things += counterexamples.entries(call)
    return things > LARGE


def _rounds(label: str, finding: Finding) -> Markup:
    """Return a row a round: what happens, and whose claims and partitions are not those of the round
    before."""
    calls, at, terms = finding.calls, finding.round, terms_of(finding.scenario.protocol)
    if not calls and not finding.confirmed:
        return page.dim("It did not break again when it was replayed: there is no recording to show.")
    end = min(max(len(calls), at), at + 2)
    first = end if end <= MAX_ROUNDS else MAX_ROUNDS - LAST_ROUNDS
    shown = [*range(first), *range(max(first, end - LAST_ROUNDS), end)]
    events = stories(finding.scenario, range(first)) | stories(
        finding.scenario, range(end - LAST_ROUNDS, end)
    )
    rows = []
    for before, index in zip([-1, *shown], shown, strict=False):
        if index - before > 1:
            skipped = f"rounds {before + 2:,} to {index:,} are left out here"
            rows.append(tag("tr", tag("th", "…", scope="row"), tag("td", skipped, colspan=3), class_="dim"))
        call = calls[index] if index < len(calls) else None
        previous = calls[index - 1] if 0 < index <= len(calls) else None
        broken_here = index + 1 == at
        happens = [text(events.get(index, ALONE), 1000)]
        happens += [tag("p", text(finding.breach.summary, 600), class_="bad")] * broken_here
        decisive = set(finding.breach.partitions) if broken_here else set[TopicPartition]()
        claims = _each(call and before_changed(call, previous, decisive), "unknown")
        given = _each(call and after_changed(call, previous, decisive), "no answer")
        same = index not in events and claims == given == _AS_BEFORE
        rows.append(
            tag(
                "tr",
                tag("th", f"{index + 1:,}" + " ✗ breaks here" * broken_here, scope="row"),
                tag("td", *happens),
                tag("td", claims),
                tag("td", given),
                class_="here" if broken_here else "same" if same else None,
            )
        )
    return page.table(label, ("round", "what happens", terms.was, terms.given), rows, most=len(rows))


def _owned(protocol: RebalanceProtocol) -> str:
    return "Who runs what" if protocol in OF_TASKS else "Who owned what"


def _each(changed: Sequence[str] | None, unknown: str) -> Markup:
    if changed is None:
        return text(unknown)
    return page.listed(changed) if changed else _AS_BEFORE


_AS_BEFORE = text("as before")


# -- the clauses ---------------------------------------------------------------------------------------------


def _matrix(result: Result, drawn: Mapping[str, str]) -> Markup:
    protocols = list(dict.fromkeys(row.protocol for row in result.clauses))
    by_clause: dict[str, dict[RebalanceProtocol, ClauseResult]] = {}
    for row in result.clauses:
        by_clause.setdefault(row.clause.id, {})[row.protocol] = row
    rows = []
    for id_, found in by_clause.items():
        clause = next(iter(found.values())).clause
        cells = [_outcome(found[p], drawn) if p in found else _NO_SUCH for p in protocols]
        what = join(page.code(id_), tag("div", clause.sentence, class_="dim"))
        rows.append((what, clause.level, page.link(clause.link, clause.rule), *cells))
    heads = ("clause", "level", "source", *protocols)
    return page.table("Clauses by protocol", heads, rows, most=len(rows), class_="clauses")


_NO_SUCH = tag("span", "does not apply", class_="dim")


def _outcome(row: ClauseResult, drawn: Mapping[str, str]) -> Markup:
    symbol, kind = _STATUS[row.status]
    word: Markup = tag("span", f"{symbol} {row.status}", class_=kind)
    if row.id in drawn:
        word = tag("a", word, href=f"#{drawn[row.id]}")
    of_all = f"{row.broken:,} of {row.scenarios:,}" if row.broken else f"{row.scenarios:,} scenarios"
    finding = row.finding
    again = page.code(f"rebalance replay {finding.trace_id}") if finding and finding.trace_id else ""
    return join(
        word, *(tag("div", one, class_="dim") for one in (of_all if row.scenarios else "", again) if one)
    )


def _others(result: Result) -> Markup:
    rows = [(row.id, row.status, text(row.note, 600)) for row in having(result, *NOT_JUDGED)]
    heads = ("clause", "status", "why")
    return page.table("Clauses that are not judged, and why", heads, rows, most=500) if rows else Markup("")


# -- coverage ------------------------------------------------------------------------------------------------


def _reached(result: Result) -> Markup:
    """Return each situation with its share of the scenarios, and whether the search had to get there."""
    shares = dict(reached(result))
    owed = [witness for floors in result.floors.values() for witness in floors]
    rows = []
    for witness in dict.fromkeys([*shares, *owed]):
        floors = ", ".join(
            f"{protocol} {'✓' if _was_reached(result, protocol, witness) else '✗ missed'}"
            for protocol, names in result.floors.items()
            if witness in names
        )
        share = percent(shares.get(witness, 0.0))
        rows.append((witness, f"{result.witnesses.get(witness, 0):,}", share, floors or "no"))
    heads = ("situation", "scenarios", "share", "has to be reached")
    return page.table("Situations reached", heads, rows, numbers=(1, 2)) if rows else Markup("")


def _was_reached(result: Result, protocol: RebalanceProtocol, witness: str) -> bool:
    return any(one.witnesses.get(witness) for one in result.coverage if one.protocol is protocol)


def _coverage(result: Result) -> Iterator[Markup]:
    """For each protocol a heat map: clauses and situations by the dimension of the scenarios."""
    for protocol in dict.fromkeys(one.protocol for one in result.coverage):
        columns = [one for one in result.coverage if one.protocol is protocol]
        tested = [r for r in result.clauses if r.protocol is protocol and r.scenarios]
        red = [row for row in tested if any(one.broken.get(row.clause.id) for one in columns)]
        rest = [row.clause.id for row in tested if row not in red]
        most = max(one.scenarios for one in columns)
        rows = [
            (row.clause.id, *(_broken(one.broken.get(row.clause.id, 0), one, most) for one in columns))
            for row in red
        ]
        others = f"each of the {'other ' * bool(red)}{count(len(rest), 'clause')}"
        if rest:
            rows.append((others, *(_warm(one.scenarios, most) for one in columns)))
        heads = (protocol, *(_dimension(one) for one in columns))
        yield tag("h3", f"{protocol}: scenarios that asked, by what varies in them".capitalize())
        yield page.table(f"Clauses by dimension, {protocol}", heads, rows, class_="heat")
        if rest:
            yield page.details(others.capitalize(), page.dim(listed(rest, 100)))
        names = dict.fromkeys(witness for one in columns for witness in one.witnesses)
        order = sorted(names, key=lambda name: (-result.witnesses.get(name, 0), name))
        rows = [
            (name, *(_warm(one.witnesses.get(name, 0), one.scenarios) for one in columns)) for name in order
        ]
        heads = ("situation", *heads[1:])
        yield tag("h3", f"{protocol}: scenarios that reached a situation".capitalize())
        yield page.table(f"Situations by dimension, {protocol}", heads, rows, class_="heat")
    known = [one for one in dict.fromkeys(c.dimension for c in result.coverage) if one in SENTENCES]
    if known:
        meant = page.facts((name, SENTENCES[name]) for name in known)
        yield page.details("What the dimensions are", meant)


def _dimension(one: Along) -> Markup:
    return tag("span", one.dimension or "nothing")


def _warm(number: int, most: int) -> Markup:
    """Return a cell of a heat map; the figure says what the colour says."""
    level = 0 if not number else min(4, 1 + 4 * number // max(most, 1))
    return tag("td", f"{number:,}" if number else "·", class_=f"h{level}")


def _broken(number: int, one: Along, most: int) -> Markup:
    return tag("td", f"✗{number:,}/{one.scenarios:,}", class_="hx") if number else _warm(one.scenarios, most)


# -- what passes ---------------------------------------------------------------------------------------------


def _samples(result: Result) -> list[Markup]:
    shown, left = page.within(
        (_sample(one, number, result.scenarios) for number, one in enumerate(result.samples, 1)),
        page.MAX_BYTES // 3,
    )
    if shown:
        sentence = "One scenario for each thing that varies, in which every clause held."
        shown.insert(0, page.dim(sentence + (f" {left:,} more do not fit here." if left else "")))
    return shown


def _sample(sample: Sample, number: int, searched: int) -> Markup:
    scenario = sample.scenario
    owned = _owned(scenario.protocol)
    what = f"{scenario.protocol}, {sample.dimension or 'nothing varies'}"
    meant = SENTENCES.get(sample.dimension, "")
    inside = join(
        page.dim(f"{scenario_number(sample.number, searched).capitalize()}. {meant}"),
        page.figure(f"{owned}: {what}", partial(_drawn, sample), f"s{number}", steps=True),
    )
    return page.details(join(tag("strong", what), f": {size(scenario.size, scenario.nouns)}"), inside)


def _drawn(sample: Sample) -> OwnershipDiagram:
    """Return its picture: that of a finding in its last round, with nothing wrong in it."""
    calls = sample.calls
    nothing = Found(TABLE[0], Breach(summary="every clause holds"), len(calls))
    drawn = of_finding(replace(Finding.of(nothing, sample.scenario, calls), confirmed=True))
    columns = tuple(replace(column, marked=False) for column in drawn.columns)
    return replace(drawn, title=f"Scenario {sample.number:,}: every clause holds", columns=columns)
