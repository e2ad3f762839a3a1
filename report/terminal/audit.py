"""What an audit found, as text and as JSON: the verdict first, what was read, the findings, then the groups.

``traces/schemas/audit.schema.json`` describes the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

from rebalance_verifier.base.names import LONGEST, close
from rebalance_verifier.base.saved import ROOT, SUITE
from rebalance_verifier.base.text import clean, count, cut, fold, listed, page_width, shorten, span
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.diagnosis import sentences
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, PAUSE, STORM, ZOMBIE
from rebalance_verifier.pipeline.audit.records import LogEvent, LogFinding
from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan, AuditTally, unlogged_text
from rebalance_verifier.pipeline.audit.sources.settling import APART, CLUSTERS, MIXED, SET_BACK, Note
from rebalance_verifier.report.frame import aligned, labelled, painted
from rebalance_verifier.report.times import lasted
from rebalance_verifier.traces.recordings import finding_out

SCHEMA = 1
"""Raised when a field changes its meaning or goes away; fields may be added at any time."""

PAGE = "docs/how-to/audit-logs.md"
"""Where to read on."""

MAX_SHOWN = 20
MAX_GROUPS = 10
MAX_PLACES = 4
MAX_UNREAD = 10
NAME = 40


def render(audit: Audited, *, verbose: bool = False, color: bool = False, page: str = "") -> str:
    """The whole report. ``verbose``: every finding that was collected, not the first 20 only. ``page``: the
    path of the one for the incident review."""
    lines = [headline(audit), *_read(audit)]
    if audit.tallies:
        lines += ["", *_tallies(audit)]
    shown = audit.findings if verbose else audit.findings[:MAX_SHOWN]
    for tally in audit.tallies:
        mine = [one for one in shown if one.check == tally.check]
        if mine:
            lines += ["", *_section(audit, tally, mine)]
    lines += [*_known(audit), *_groups(audit), *_pauses(audit), *_clocks(audit), "", *_saved(audit, page)]
    lines.append(f"{audit.verdict.upper()}, exit {int(audit.exit)}")
    return painted(lines, color)


_labelled = partial(labelled, width=11)


def finding_text(one: LogFinding, plan: AuditPlan) -> str:
    """One finding of a log that is followed: check, what was found, where it is written, its trace."""
    trace = plan.out / "traces" / one.file_name
    return "\n".join([f"{one.check}  [{one.level}]", *_finding(one), f"    show  rebalance show {trace}"])


def headline(audit: Audited) -> str:
    """Return the verdict and what it rests on, in one line; whose logs are missing, in any case."""
    line = _verdict_line(audit)
    missing = clean(unlogged_text(audit.unlogged)) if audit.unlogged else ""
    return line if missing in line else f"{line}; {missing}"


def _verdict_line(audit: Audited) -> str:
    start = audit.verdict.upper()
    certain = audit.count(gating=True, certain=True)
    zombies = audit.tally(ZOMBIE.id)
    unsure = audit.count(gating=True, certain=False)
    informs = sum(audit.count(gating=False, certain=certain) for certain in (True, False))
    broken = f"{audit.broken:,} of {count(audit.groups, 'group')}"
    more = f", {unsure:,} more within clock skew" if unsure and certain else ""
    more += _storms(audit) + _long_pauses(audit)
    others = informs - (audit.tally(STORM.id).findings if _storms(audit) else 0)
    others -= audit.tally(PAUSE.id).findings if _long_pauses(audit) else 0
    more += f", {others:,} more that only {'informs' if others == 1 else 'inform'}" if others else ""
    if audit.verdict is Verdict.VIOLATION and certain == zombies.certain:
        line = f"{start}  {_read_twice(audit)}{more}"
        return f"{line}; not finished" if audit.stage else line
    if audit.verdict is Verdict.VIOLATION:
        line = f"{start}  {count(certain, 'finding')} in {broken}{more}"
        return f"{line}; not finished" if audit.stage else line
    if audit.failed:
        return cut(clean(f"{start}  Spark failed while {audit.stage}: {audit.failed}"), 2 * page_width())
    if audit.interrupted:
        return f"{start}  interrupted while {audit.stage}"
    if audit.notes:
        more = (f", {count(unsure, 'finding')} that may be of that" if unsure else "") + more
        return f"{start}  {_unclear(audit.notes)}{more}"
    if not audit.events:
        return _absent(audit)
    if audit.absent:
        return _absent(audit)
    if unsure:
        return f"{start}  {count(unsure, 'finding')}, {_doubts(audit)}{more}"
    if audit.verdict is Verdict.INCONCLUSIVE and not any(one.lost for one in audit.unread):
        return f"{start}  not judged: {clean(audit.gap)}{more}"
    if audit.verdict is Verdict.INCONCLUSIVE:
        return f"{start}  {count(sum(one.lost for one in audit.unread), 'file')} could not be read{more}"
    checks = count(len(audit.judged), "check")
    if audit.not_judged:
        more = f", {len(audit.not_judged)} not judged{more}"
    more = f", but for {count(audit.known, 'known finding')}{more}" if audit.known else more
    return (
        f"{start}  {checks} passed for {count(audit.groups, 'group')} in {count(audit.events, 'event')}{more}"
    )


def _storms(audit: Audited) -> str:
    """The largest storm, where it fails no run: it is all that a broker's log alone can tell."""
    storms = [one for one in audit.findings if one.check == STORM.id]
    if not storms or audit.plan.gates(STORM.level):
        return ""
    worst = max(storms, key=lambda one: one.seconds)
    more = f", and {len(storms) - 1:,} more" if len(storms) > 1 else ""
    return clean(f"; a storm of {worst.sentence.partition(',')[0]} in {span(worst.seconds)}{more}")


def _long_pauses(audit: Audited) -> str:
    """How many partitions a rebalance took from everybody for long, where it fails no run."""
    long = [one for one in audit.findings if one.check == PAUSE.id and one.partition is not None]
    if not long or audit.plan.gates(PAUSE.level):
        return ""
    partitions = count(len({(one.group, one.about) for one in long}), "partition")
    return f"; a rebalance left {partitions} without an owner for {span(max(one.seconds for one in long))}"


def _absent(audit: Audited) -> str:
    """Which groups were asked for that the logs do not have, and which they have."""
    return f"{audit.verdict.upper()}  {absent_text(audit.plan, audit.absent, audit.others)}"


def absent_text(plan: AuditPlan, absent: Sequence[str], there: Sequence[str]) -> str:
    """Say that no event is about the groups ``absent``, and which groups are ``there``."""
    if not there:
        what = f"no event of {listed(plan.groups, 3)}" if plan.groups else "nothing recognised"
        return clean(f"{what} in {listed(plan.paths, 3)}")
    most = len(there) if len(", ".join(there)) < LONGEST else 8
    similar = [name for one in absent for name in close(one, there)]
    hint = f"did you mean {' or '.join(map(repr, similar[:3]))}? " if similar else ""
    names = " or ".join(map(repr, absent[:3]))
    return clean(f"no event of group {names}: {hint}the logs have {listed(map(repr, there), most)}")


def _read_twice(audit: Audited) -> str:
    """Return the warning about zombies: what was read twice, how long, and what that may have done."""
    mine = [one for one in audit.findings if one.check == ZOMBIE.id and one.certain]
    partitions = count(len({(one.group, one.about) for one in mine}), "partition")
    longest = span(max(one.seconds for one in mine))
    return (
        f"records of {partitions} were read by two consumers for {longest}: one is a zombie, "
        "its commits are fenced, its side effects are not"
    )


def _doubts(audit: Audited) -> str:
    """Why findings that count are not certain."""
    unsure = [one for one in audit.findings if audit.plan.gates(one.level) and not one.certain]
    doubts = list(dict.fromkeys(one.doubt for one in unsure if one.check != ZOMBIE.id))
    texts = [doubt or "none beyond what the clocks may differ by" for doubt in doubts]
    return clean(f"not certain: {'; '.join(texts)}" if any(doubts) else texts[0])


def _unclear(notes: Sequence[Note]) -> str:
    several = sum(note.kind == MIXED for note in notes)
    parts = [f"{count(several, 'client id')} of several processes, not separable"] if several else []
    if back := len({note.consumer for note in notes if note.kind == SET_BACK}):
        parts.append(f"the times of {count(back, 'log')} go back")
    parts += [clean(note.text) for note in notes if note.kind == APART][:MAX_UNREAD]
    if clusters := sum(note.kind == CLUSTERS for note in notes):
        parts.append(f"{count(clusters, 'name')} of groups on several clusters")
    return ", ".join(parts)


# -- the parts of the text -----------------------------------------------------------------------------


def _read(audit: Audited) -> list[str]:
    if not (audit.sources or audit.unread):
        return []
    text = f"{count(audit.files, 'file')}, {count(audit.lines, 'line')}, {count(audit.events, 'event')}"
    lines = _labelled("read", text)
    for one in audit.sources:
        if one.source:
            what = (
                f"{count(one.recognised, 'line')} in {count(one.files, 'file')}, {count(one.events, 'event')}"
            )
            lines += _labelled("", f"{one.source}: {what}")
    others = audit.lines - audit.recognised - audit.malformed
    if others > 0:
        lines += _labelled("", f"{count(others, 'line')} about other things")
    for part in audit.unread[:MAX_UNREAD]:
        what = f"{shorten(part.file, 60)}: {part.why} ({count(part.lines, 'line')})"
        lines += _labelled("not read" if part.lost else "damaged", cut(clean(what), 2 * page_width()))
    if len(audit.unread) > MAX_UNREAD:
        lines += _labelled("", f"and {len(audit.unread) - MAX_UNREAD:,} more")
    for note in audit.notes[:MAX_UNREAD]:
        lines += _labelled("not clear", clean(note.text))
    if audit.malformed:
        kept = audit.plan.table("malformed")
        lines += _labelled("malformed", f"{count(audit.malformed, 'line')}, kept in {kept}")
        for bad in audit.first_malformed:
            where = shorten(f"{bad.file}:{bad.line}", 48)
            lines += _labelled("", cut(clean(f"{where}: {bad.why}: {bad.text}"), page_width() - 13))
        if audit.malformed > len(audit.first_malformed):
            lines += _labelled("", f"and {audit.malformed - len(audit.first_malformed):,} more")
    return lines


def _known(audit: Audited) -> list[str]:
    """Return the findings that the known list allows, and its useless lines."""
    if not audit.plan.known or audit.stage:
        return []
    lines = ["", *_labelled("known", f"{count(audit.known, 'finding')}, kept in {audit.plan.table('known')}")]
    for entry in audit.unmatched[:MAX_UNREAD]:
        lines += _labelled("not found", clean(str(entry)))
    more = len(audit.unmatched) - MAX_UNREAD
    return lines + (_labelled("", f"and {more:,} more") if more > 0 else [])


def _tallies(audit: Audited) -> list[str]:
    rows = [("check", "level", "findings", "certain", "groups", "longest")]
    for one in audit.tallies:
        level = CHECKS[one.check].level
        longest = span(one.longest) + ("" if audit.plan.gates(level) else "  (informs only)")
        rows.append((one.check, level, f"{one.findings:,}", f"{one.certain:,}", f"{one.groups:,}", longest))
    lines, narrow = list[str](), page_width() < 90
    for check, level, findings, certain, groups, longest in rows:
        figures = f"{level:<10}{findings:>9}{certain:>9}{groups:>8}  {longest}"
        lines += [f"  {check}", f"    {figures}"] if narrow else [f"  {check:<24}{figures}"]
    return lines


def _section(audit: Audited, tally: AuditTally, shown: Sequence[LogFinding]) -> list[str]:
    check = CHECKS[tally.check]
    lines = fold(f"{check.id}: {check.sentence} [{check.level}; {check.source}]", page_width())
    for one in shown:
        lines += ["", *_finding(one, one.id if one.id in audit.traces else "")]
        pointed = audit.pointers.get(one.id)
        for sentence in ([f"points to: {pointed}"] if pointed else []) + sentences(
            audit.diagnoses.get(one.id, ())
        ):
            lines += [f"    {line}" for line in fold(clean(sentence), page_width() - 4)]
    if len(shown) < tally.findings:
        lines += ["", f"  and {tally.findings - len(shown):,} more"]
    return lines


def _finding(one: LogFinding, trace: str = "") -> list[str]:
    about = f"{_name(one.about)} of " if one.about else ""
    lines = [f"  {about}group {_name(one.group)}  {lasted(one)}  {trace}".rstrip()]
    lines += [f"    {line}" for line in fold(clean(one.sentence), page_width() - 4)]
    if one.doubt:
        lines += [f"    {line}" for line in fold(clean(f"not certain: {one.doubt}"), page_width() - 4)]
    rows = aligned(_event_cells(event, one) for event in one.places[:MAX_PLACES])
    lines += [f"    {row}" for row in rows]
    if len(one.places) > MAX_PLACES:
        lines.append(f"    and {len(one.places) - MAX_PLACES:,} more places")
    return lines


def _event_cells(event: LogEvent, finding: LogFinding) -> tuple[str, str, str, str]:
    """Return member, generation, event and time, and the line of the log."""
    granted = {owner.consumer: owner.generation for owner in finding.owners}
    generation = event.generation if event.generation is not None else granted.get(event.consumer)
    since = "" if generation is None else f"generation {generation}"
    stamp = event.at.strftime("%H:%M:%S.%f")[:-3]
    who = event.consumer or "coordinator"
    return _name(who), since, f"{_name(event.kind)} {stamp}", shorten(clean(event.where), 2 * page_width())


def _groups(audit: Audited) -> list[str]:
    if not audit.worst:
        return []
    heads = ("findings", "rebalances", "consumers", "partitions", "events")
    rows = [("group", *(f"{head:>10}" for head in heads), "at the end")]
    for one in audit.worst[:MAX_GROUPS]:
        figures = (one.findings, one.rebalances, one.consumers, one.partitions, one.events)
        settled = "" if one.settled is None else "settled" if one.settled else "rebalancing"
        rows.append((_name(one.group), *(f"{figure or 0:>10,}" for figure in figures), settled))
    left = audit.groups - len(rows) + 1
    more = [f"  and {count(left, 'more group')}: {audit.plan.table('groups')}"] if left > 0 else []
    return ["", *(f"  {row}" for row in aligned(rows)), *more]


def _pauses(audit: Audited) -> list[str]:
    shown = [one for one in audit.pauses if one.handovers][:MAX_GROUPS]
    if not shown:
        return []
    rows: list[tuple[str, ...]] = [
        ("without an owner", "hand-overs", "half within", " 95% within", f"{'longest':>11}")
    ]
    for one in shown:
        spans = (f"{span(value):>11}" for value in (one.p50, one.p95, one.longest))
        rows.append((_name(one.group), f"{one.handovers:>10,}", *spans))
    more = [f"  and others, less: {audit.plan.table('pauses')}"] if len(audit.pauses) > len(shown) else []
    return ["", *(f"  {row}" for row in aligned(rows)), *more]


def _clocks(audit: Audited) -> list[str]:
    given = audit.plan.thresholds.clock_skew
    lines = (
        _labelled("clocks", f"taken to differ by at most {span(given)} (--clock-skew)")
        if given is not None
        else []
    )
    for one in audit.clocks[:MAX_GROUPS] if given is None else ():
        if one.ahead is not None and one.samples:
            direction = "ahead" if one.ahead >= 0 else "behind"
            spread = "" if one.spread is None else f", give or take {span(one.spread)}"
            offset = f"{_name(one.host)} {span(abs(one.ahead))} {direction}{spread}"
            text = f"{offset} ({count(one.samples, 'sample')})"
            lines += _labelled("" if lines else "clocks", text)
    if lines and len(audit.clocks) > MAX_GROUPS and given is None:
        lines += _labelled("", f"and others, less: {audit.plan.table('clocks')}")
    return ["", *lines] if lines else []


def _saved(audit: Audited, page: str) -> list[str]:
    plan = audit.plan
    tables = f", tables in {plan.data}" if plan.data else ""
    lines = _labelled("saved", f"{plan.out}{tables}") if plan.keeps else []
    if audit.traces:
        first = next(one for one in audit.findings if one.id in audit.traces)
        total = sum(tally.findings for tally in audit.tallies)
        some = "" if len(audit.traces) == total else f" (the first {len(audit.traces):,} of {total:,})"
        lines += _labelled("traces", f"{plan.out / 'traces'}{some}")
        # `show` finds ids in the latest run.
        known = plan.out.parent == ROOT and first.file_name == f"{first.id}.json"
        lines += _labelled("show", f"rebalance show {first.id if known else audit.traces[first.id]}")
    if audit.findings:
        lines += _labelled("page", f"{page}: for the incident review") if page else []
        lines += _labelled("docs", f"{PAGE}: what a finding proves, and what to do next")
    if audit.failed:
        lines += _labelled("failed", f"Spark, while {audit.stage}: {audit.failed}")
    if audit.unsaved:
        lines += _labelled("unsaved", f"the traces cannot be saved: {audit.unsaved}")
    return lines


def _name(text: str) -> str:
    return shorten(clean(text), NAME)


# -- JSON ----------------------------------------------------------------------------------------------


def data(audit: Audited) -> dict[str, Any]:
    """The result as plain JSON values; what depends on the machine it ran on is ``seconds``."""
    plan = audit.plan
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": version("rebalance-verifier")},
        "paths": list(plan.paths),
        "out": str(plan.out) if plan.keeps else "",
        "data": plan.data or (str(plan.out) if plan.keeps else ""),
        "level": plan.level,
        "thresholds": asdict(plan.thresholds),
        "verdict": audit.verdict.value,
        "exit": int(audit.exit),
        "interrupted": audit.interrupted,
        "unfinished": audit.stage,
        "failed": audit.failed,
        "seconds": round(audit.seconds, 3),
        "read": {
            "files": audit.files,
            "lines": audit.lines,
            "recognised": audit.recognised,
            "malformed": audit.malformed,
            "events": audit.events,
            "sources": [asdict(one) for one in audit.sources],
        },
        "malformed": [asdict(one) for one in audit.first_malformed],
        "unread": [one._asdict() for one in audit.unread],
        "notes": [one._asdict() for one in audit.notes],
        "clients": [one._asdict() for one in audit.clients],
        "groups": {
            "seen": audit.groups,
            "broken": audit.broken,
            "absent": list(audit.absent),
            "without_owners": audit.blind,
            "silent_consumers": audit.silent,
            "members_without_log": [one._asdict() for one in audit.unlogged],
        },
        "not_judged": [check.id for check in audit.not_judged],
        "known": {"findings": audit.known, "unmatched": [str(entry) for entry in audit.unmatched]},
        "checks": list(_checks(audit)),
        "findings": [
            {
                **finding_out(one),
                "points_to": audit.pointers.get(one.id, ""),
                "bugs": [mistake._asdict() for mistake in audit.diagnoses.get(one.id, ())],
                "trace": audit.traces.get(one.id, ""),
            }
            for one in audit.findings
        ],
        "worst": [asdict(one) for one in audit.worst],
        "pauses": [asdict(one) for one in audit.pauses],
        "clocks": [asdict(one) for one in audit.clocks],
    }


def _checks(audit: Audited) -> Iterable[dict[str, Any]]:
    """Every check that was asked, those without findings too."""
    for check in audit.plan.chosen_checks:
        yield {
            "check": check.id,
            "level": check.level,
            "gates": audit.plan.gates(check.level),
            "sentence": check.sentence,
            "source": check.source,
            **asdict(audit.tally(check.id)),
        }
