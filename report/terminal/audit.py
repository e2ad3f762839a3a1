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
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, STORM, ZOMBIE
from rebalance_verifier.pipeline.audit.records import LogEvent, LogFinding
from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan, AuditTally
from rebalance_verifier.pipeline.audit.sources.settling import APART, CLUSTERS, MIXED, Note
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


def render(found: Audited, *, verbose: bool = False, color: bool = False) -> str:
    """The whole report. ``verbose``: every finding that was collected, not the first 20 only."""
    lines = [headline(found), *_read(found)]
    if found.tallies:
        lines += ["", *_tallies(found)]
    shown = found.findings if verbose else found.findings[:MAX_SHOWN]
    for tally in found.tallies:
        mine = [one for one in shown if one.check == tally.check]
        if mine:
            lines += ["", *_section(found, tally, mine)]
    lines += [*_known(found), *_groups(found), *_pauses(found), *_clocks(found), "", *_saved(found)]
    lines.append(f"{found.verdict.upper()}, exit {int(found.exit)}")
    return painted(lines, color)


_labelled = partial(labelled, width=11)


def finding_text(one: LogFinding, plan: AuditPlan) -> str:
    """One finding of a log that is followed: check, what was found, where it is written, its trace."""
    trace = plan.out / "traces" / one.file_name
    return "\n".join([f"{one.check}  [{one.level}]", *_finding(one), f"    show  rebalance show {trace}"])


def headline(found: Audited) -> str:
    """Return the verdict and what it rests on, in one line."""
    start = found.verdict.upper()
    certain = found.count(gating=True, certain=True)
    zombies = found.tally(ZOMBIE.id)
    unsure = found.count(gating=True, certain=False)
    informs = sum(found.count(gating=False, certain=certain) for certain in (True, False))
    broken = f"{found.broken:,} of {count(found.groups, 'group')}"
    more = f", {unsure:,} more within clock skew" if unsure and certain else ""
    more += _storms(found)
    others = informs - (found.tally(STORM.id).findings if _storms(found) else 0)
    more += f", {others:,} more that only {'informs' if others == 1 else 'inform'}" if others else ""
    if found.verdict is Verdict.VIOLATION and certain == zombies.certain:
        line = f"{start}  {_read_twice(found)}{more}"
        return f"{line}; not finished" if found.stage else line
    if found.verdict is Verdict.VIOLATION:
        line = f"{start}  {count(certain, 'finding')} in {broken}{more}"
        return f"{line}; not finished" if found.stage else line
    if found.failed:
        return cut(clean(f"{start}  Spark failed while {found.stage}: {found.failed}"), 2 * page_width())
    if found.interrupted:
        return f"{start}  interrupted while {found.stage}"
    if found.notes:
        more = (f", {count(unsure, 'finding')} that may be of that" if unsure else "") + more
        return f"{start}  {_unclear(found.notes)}{more}"
    if not found.events:
        return _absent(found)
    if found.absent:
        return _absent(found)
    if unsure:
        return f"{start}  {count(unsure, 'finding')}, {_doubts(found)}{more}"
    if found.verdict is Verdict.INCONCLUSIVE and not any(one.lost for one in found.unread):
        return f"{start}  not judged: {found.gap}{more}"
    if found.verdict is Verdict.INCONCLUSIVE:
        return f"{start}  {count(sum(one.lost for one in found.unread), 'file')} could not be read{more}"
    checks = count(len(found.judged), "check")
    if found.not_judged:
        more = f", {len(found.not_judged)} not judged{more}"
    more = f", but for {count(found.known, 'known finding')}{more}" if found.known else more
    return (
        f"{start}  {checks} passed for {count(found.groups, 'group')} in {count(found.events, 'event')}{more}"
    )


def _storms(found: Audited) -> str:
    """The largest storm, where it fails no run: it is all that a broker's log alone can tell."""
    storms = [one for one in found.findings if one.check == STORM.id]
    if not storms or found.plan.gates(STORM.level):
        return ""
    worst = max(storms, key=lambda one: one.seconds)
    more = f", and {len(storms) - 1:,} more" if len(storms) > 1 else ""
    return clean(f"; a storm of {worst.sentence.partition(',')[0]} in {span(worst.seconds)}{more}")


def _absent(found: Audited) -> str:
    """Which groups were asked for that the logs do not have, and which they have."""
    return f"{found.verdict.upper()}  {absent_text(found.plan, found.absent, found.others)}"


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


def _read_twice(found: Audited) -> str:
    """Return the warning about zombies: what was read twice, how long, and what that may have done."""
    mine = [one for one in found.findings if one.check == ZOMBIE.id and one.certain]
    partitions = count(len({(one.group, one.about) for one in mine}), "partition")
    longest = span(max(one.seconds for one in mine))
    return (
        f"records of {partitions} were read by two consumers for {longest}: one is a zombie, "
        "its commits are fenced, its side effects are not"
    )


def _doubts(found: Audited) -> str:
    """Why findings that count are not certain."""
    unsure = [one for one in found.findings if found.plan.gates(one.level) and not one.certain]
    doubts = list(dict.fromkeys(one.doubt for one in unsure if one.check != ZOMBIE.id))
    texts = [doubt or "none beyond what the clocks may differ by" for doubt in doubts]
    return clean(f"not certain: {'; '.join(texts)}" if any(doubts) else texts[0])


def _unclear(notes: Sequence[Note]) -> str:
    several = sum(note.kind == MIXED for note in notes)
    parts = [f"{count(several, 'client id')} of several processes, not separable"] if several else []
    parts += [clean(note.text) for note in notes if note.kind == APART][:MAX_UNREAD]
    if clusters := sum(note.kind == CLUSTERS for note in notes):
        parts.append(f"{count(clusters, 'name')} of groups on several clusters")
    return ", ".join(parts)


# -- the parts of the text -----------------------------------------------------------------------------


def _read(found: Audited) -> list[str]:
    if not (found.sources or found.unread):
        return []
    text = f"{count(found.files, 'file')}, {count(found.lines, 'line')}, {count(found.events, 'event')}"
    lines = _labelled("read", text)
    for one in found.sources:
        if one.source:
            what = (
                f"{count(one.recognised, 'line')} in {count(one.files, 'file')}, {count(one.events, 'event')}"
            )
            lines += _labelled("", f"{one.source}: {what}")
    others = found.lines - found.recognised - found.malformed
    if others > 0:
        lines += _labelled("", f"{count(others, 'line')} about other things")
    for part in found.unread[:MAX_UNREAD]:
        what = f"{shorten(part.file, 60)}: {part.why} ({count(part.lines, 'line')})"
        lines += _labelled("not read" if part.lost else "damaged", cut(clean(what), 2 * page_width()))
    if len(found.unread) > MAX_UNREAD:
        lines += _labelled("", f"and {len(found.unread) - MAX_UNREAD:,} more")
    for note in found.notes[:MAX_UNREAD]:
        lines += _labelled("not clear", clean(note.text))
    if found.malformed:
        kept = found.plan.table("malformed")
        lines += _labelled("malformed", f"{count(found.malformed, 'line')}, kept in {kept}")
        for bad in found.first_malformed:
            where = shorten(f"{bad.file}:{bad.line}", 48)
            lines += _labelled("", cut(clean(f"{where}: {bad.why}: {bad.text}"), page_width() - 13))
        if found.malformed > len(found.first_malformed):
            lines += _labelled("", f"and {found.malformed - len(found.first_malformed):,} more")
    return lines


def _known(found: Audited) -> list[str]:
    """Return the findings that the known list allows, and its useless lines."""
    if not found.plan.known or found.stage:
        return []
    lines = ["", *_labelled("known", f"{count(found.known, 'finding')}, kept in {found.plan.table('known')}")]
    for entry in found.unmatched[:MAX_UNREAD]:
        lines += _labelled("not found", clean(str(entry)))
    more = len(found.unmatched) - MAX_UNREAD
    return lines + (_labelled("", f"and {more:,} more") if more > 0 else [])


def _tallies(found: Audited) -> list[str]:
    rows = [("check", "level", "findings", "certain", "groups", "longest")]
    for one in found.tallies:
        level = CHECKS[one.check].level
        longest = span(one.longest) + ("" if found.plan.gates(level) else "  (informs only)")
        rows.append((one.check, level, f"{one.findings:,}", f"{one.certain:,}", f"{one.groups:,}", longest))
    lines, narrow = list[str](), page_width() < 90
    for check, level, findings, certain, groups, longest in rows:
        figures = f"{level:<10}{findings:>9}{certain:>9}{groups:>8}  {longest}"
        lines += [f"  {check}", f"    {figures}"] if narrow else [f"  {check:<24}{figures}"]
    return lines


def _section(found: Audited, tally: AuditTally, shown: Sequence[LogFinding]) -> list[str]:
    check = CHECKS[tally.check]
    lines = fold(f"{check.id}: {check.sentence} [{check.level}; {check.source}]", page_width())
    for one in shown:
        lines += ["", *_finding(one, one.id if one.id in found.traces else "")]
        pointed = found.pointers.get(one.id)
        for sentence in ([f"points to: {pointed}"] if pointed else []) + sentences(
            found.diagnoses.get(one.id, ())
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


def _groups(found: Audited) -> list[str]:
    if not found.worst:
        return []
    heads = ("findings", "rebalances", "consumers", "partitions", "events")
    rows = [("group", *(f"{head:>10}" for head in heads), "at the end")]
    for one in found.worst[:MAX_GROUPS]:
        figures = (one.findings, one.rebalances, one.consumers, one.partitions, one.events)
        settled = "" if one.settled is None else "settled" if one.settled else "rebalancing"
        rows.append((_name(one.group), *(f"{figure or 0:>10,}" for figure in figures), settled))
    left = found.groups - len(rows) + 1
    more = [f"  and {count(left, 'more group')}: {found.plan.table('groups')}"] if left > 0 else []
    return ["", *(f"  {row}" for row in aligned(rows)), *more]


def _pauses(found: Audited) -> list[str]:
    shown = [one for one in found.pauses if one.handovers][:MAX_GROUPS]
    if not shown:
        return []
    rows: list[tuple[str, ...]] = [
        ("without an owner", "hand-overs", "half within", " 95% within", f"{'longest':>11}")
    ]
    for one in shown:
        spans = (f"{span(value):>11}" for value in (one.p50, one.p95, one.longest))
        rows.append((_name(one.group), f"{one.handovers:>10,}", *spans))
    more = [f"  and others, less: {found.plan.table('pauses')}"] if len(found.pauses) > len(shown) else []
    return ["", *(f"  {row}" for row in aligned(rows)), *more]


def _clocks(found: Audited) -> list[str]:
    given = found.plan.thresholds.clock_skew
    lines = (
        _labelled("clocks", f"taken to differ by at most {span(given)} (--clock-skew)")
        if given is not None
        else []
    )
    for one in found.clocks[:MAX_GROUPS] if given is None else ():
        if one.ahead is not None and one.samples:
            direction = "ahead" if one.ahead >= 0 else "behind"
            spread = "" if one.spread is None else f", give or take {span(one.spread)}"
            offset = f"{_name(one.host)} {span(abs(one.ahead))} {direction}{spread}"
            text = f"{offset} ({count(one.samples, 'sample')})"
            lines += _labelled("" if lines else "clocks", text)
    if lines and len(found.clocks) > MAX_GROUPS and given is None:
        lines += _labelled("", f"and others, less: {found.plan.table('clocks')}")
    return ["", *lines] if lines else []


def _saved(found: Audited) -> list[str]:
    plan = found.plan
    tables = f", tables in {plan.data}" if plan.data else ""
    lines = _labelled("saved", f"{plan.out}{tables}") if plan.keeps else []
    if found.traces:
        first = next(one for one in found.findings if one.id in found.traces)
        total = sum(tally.findings for tally in found.tallies)
        some = "" if len(found.traces) == total else f" (the first {len(found.traces):,} of {total:,})"
        lines += _labelled("traces", f"{plan.out / 'traces'}{some}")
        # `show` finds ids in the latest run.
        known = plan.out.parent == ROOT and first.file_name == f"{first.id}.json"
        lines += _labelled("show", f"rebalance show {first.id if known else found.traces[first.id]}")
    if found.findings:
        lines += _labelled("docs", f"{PAGE}: what a finding proves, and what to do next")
    if found.failed:
        lines += _labelled("failed", f"Spark, while {found.stage}: {found.failed}")
    if found.unsaved:
        lines += _labelled("unsaved", f"the traces cannot be saved: {found.unsaved}")
    return lines


def _name(text: str) -> str:
    return shorten(clean(text), NAME)


# -- JSON ----------------------------------------------------------------------------------------------


def data(found: Audited) -> dict[str, Any]:
    """The result as plain JSON values; what depends on the machine it ran on is ``seconds``."""
    plan = found.plan
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": version("rebalance-verifier")},
        "paths": list(plan.paths),
        "out": str(plan.out) if plan.keeps else "",
        "data": plan.data or (str(plan.out) if plan.keeps else ""),
        "level": plan.level,
        "thresholds": asdict(plan.thresholds),
        "verdict": found.verdict.value,
        "exit": int(found.exit),
        "interrupted": found.interrupted,
        "unfinished": found.stage,
        "failed": found.failed,
        "seconds": round(found.seconds, 3),
        "read": {
            "files": found.files,
            "lines": found.lines,
            "recognised": found.recognised,
            "malformed": found.malformed,
            "events": found.events,
            "sources": [asdict(one) for one in found.sources],
        },
        "malformed": [asdict(one) for one in found.first_malformed],
        "unread": [one._asdict() for one in found.unread],
        "notes": [one._asdict() for one in found.notes],
        "clients": [one._asdict() for one in found.clients],
        "groups": {
            "seen": found.groups,
            "broken": found.broken,
            "absent": list(found.absent),
            "without_owners": found.blind,
            "silent_consumers": found.silent,
        },
        "not_judged": [check.id for check in found.not_judged],
        "known": {"findings": found.known, "unmatched": [str(entry) for entry in found.unmatched]},
        "checks": list(_checks(found)),
        "findings": [
            {
                **finding_out(one),
                "points_to": found.pointers.get(one.id, ""),
                "bugs": [mistake._asdict() for mistake in found.diagnoses.get(one.id, ())],
                "trace": found.traces.get(one.id, ""),
            }
            for one in found.findings
        ],
        "worst": [asdict(one) for one in found.worst],
        "pauses": [asdict(one) for one in found.pauses],
        "clocks": [asdict(one) for one in found.clocks],
    }


def _checks(found: Audited) -> Iterable[dict[str, Any]]:
    """Every check that was asked, those without findings too."""
    for check in found.plan.chosen_checks:
        yield {
            "check": check.id,
            "level": check.level,
            "gates": found.plan.gates(check.level),
            "sentence": check.sentence,
            "source": check.source,
            **asdict(found.tally(check.id)),
        }
