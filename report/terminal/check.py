"""The report for a terminal: the verdict first, then one block per broken clause, then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rebalance_verifier.base.text import clean, columns, count, cut, fold, page_width, percent, size
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status
from rebalance_verifier.report.diagram.scenario_diagram import of_finding
from rebalance_verifier.report.diagram.text import draw
from rebalance_verifier.report.facts import (
    NOT_JUDGED,
    UNUSUAL,
    broken,
    cause_facts,
    counts,
    found_where,
    having,
    headline,
    informational,
    kept_noun,
    label,
    mark,
    played,
    reached,
    tally,
    unattributed,
    undeclared,
    verdict_word,
)
from rebalance_verifier.report.frame import aligned, labelled, painted


def render(
    result: Result, color: bool = False, verbose: int = 0, unicode: bool = True, brief: bool = False
) -> str:
    """Return the whole report, each line at most as wide as ``page_width`` says.

    ``verbose`` 1 names the known, unsupported and untested clauses, 2 shows the known ones as blocks.
    Without ``unicode`` the text is pure ASCII. ``brief``: of what is broken the worst in full, and a line for
    each of the others, so that the first screen names all.
    """
    lines = [*fold(headline(result), page_width() - 1), *_header(result)]
    lines += _labelled("promises", undeclared(result)) if result.assumed else []
    blocks = [("VIOLATION", c) for c in broken(result)] + [("FINDING", c) for c in informational(result)]
    if verbose > 1:
        blocks += [("KNOWN", c) for c in having(result, Status.KNOWN, Status.FLAKY) if c.finding]
    for word, clause in blocks[:1] if brief else blocks:
        lines += ["", *block(word, clause, unicode, brief)]
    lines += _others(blocks, unicode) if brief else []
    lines += ["", *_known(result, verbose), *_table(result), *_figures(result)]
    if result.page:
        lines += _labelled("report", result.page)
    elif result.run_dir:
        lines += _labelled("reports", result.run_dir)
    lines.append(f"{tally(result)}; {verdict_word(result)}, exit {int(result.exit)}")
    if not unicode:
        lines = [part for line in lines for part in _ascii(line)]
    safe = map(_inert, lines)
    return painted(safe, color) + "\n"


_labelled = partial(labelled, most=6)


def _others(blocks: Sequence[tuple[str, ClauseResult]], unicode: bool) -> list[str]:
    """Return a line for each finding but the first, and how to see more of them."""
    findings = [(word, clause, finding) for word, clause in blocks for finding in clause.findings or (None,)]
    rows = []
    for word, clause, finding in findings[1:]:
        where = clause.id + (mark(finding, unicode) if finding else "")
        summary = finding.breach.summary if finding else clause.note or clause.clause.sentence
        traced = finding.trace_id if finding else ""
        rows.append((word, clause.clause.level, where, traced, clean(summary, unicode)))
    if not rows:
        return []
    shown = [cut(line, page_width() - 2) for line in aligned(rows)]
    says = f"{count(len(rows), 'more finding')}: all in full with -v, one played again by rebalance replay ID"
    return ["", says, *(f"  {line}" for line in shown)]


def block(word: str, clause: ClauseResult, unicode: bool = True, brief: bool = False) -> list[str]:
    """Return everything about one broken clause; the first line says it all in short. ``brief``: its first
    cause."""
    finding = clause.finding
    summary = clean(finding.breach.summary if finding else clause.clause.sentence, unicode)
    where = f"{clause.clause.level}, {clause.protocol}"
    start = f"{word} {clause.clause.id}{mark(finding, unicode) if finding else ''}  "
    lines = [f"{start}{summary}   [{where}]"]
    if columns(lines[0]) > page_width():
        lines = [start + cut(summary, page_width() - len(start)), *_labelled("level", where)]
    if columns(start + summary) > page_width():
        lines += _labelled("what", summary)
    lines += _labelled("rule", f"{clause.clause.sentence} ({clause.clause.rule})")
    lines.append(f"  {clause.clause.link}")
    if finding is None:
        return lines + (_labelled("note", clause.note) if clause.note else [])
    lines += _labelled("hint", clause.hint) if clause.hint else []
    lines += _counterexample(clause, finding, unicode)
    for number, other in enumerate(() if brief else clause.others, 2):
        title = f"  CAUSE {number}{mark(other, unicode)}  {clean(other.breach.summary, unicode)}"
        lines += ["", *fold(title, page_width() - 1), *_counterexample(clause, other, unicode)]
    return lines + (_labelled("more", left) if (left := unattributed(clause)) else [])


def _counterexample(clause: ClauseResult, finding: Finding, unicode: bool) -> list[str]:
    lines = []
    for name, text in cause_facts(clause, finding):
        lines += _labelled(name if unicode or name != UNUSUAL else "~", clean(text, unicode))
    for position, reason in enumerate(finding.breach.because):
        lines += _labelled("because" if position == 0 else "", clean(reason, unicode))
    for name, text in (("expected", finding.breach.expected), ("actual", finding.breach.actual)):
        if text:
            lines += _labelled(name, clean(text, unicode))
    drawn = draw(of_finding(finding), unicode, page_width() - 3)
    lines += ["", *(f"  {line}".rstrip() for line in drawn), ""]
    nouns = finding.scenario.nouns
    lines += _labelled("shrunk", f"{size(finding.found_size, nouns)} -> {size(finding.scenario.size, nouns)}")
    lines += _labelled("found", found_where(clause, finding))
    if finding.trace_id:
        lines += _labelled("replay", f"rebalance replay {finding.trace_id}")
    if finding.path:
        lines += _labelled("trace", finding.path)
    cause = f"@{finding.cause.id}" if finding.cause else ""
    return lines + _labelled("allow", f"echo '{clause.id}{cause}  # <issue url>' >> known-failing.txt")


def _header(result: Result) -> list[str]:
    target = result.target
    parts = [f"rebalance {result.suite_version}", f"target={label(target)}"]
    if target.spec != target.name:
        parts.append(f"({cut(clean(target.spec), 60)})")
    parts.append(f"protocols={','.join(clean(p) for p in target.protocols) or '-'}")
    parts += [f"profile={result.profile}", f"level={result.level}", f"seed={result.seed}"]
    return fold("  ".join(parts), page_width() - 1)


def _known(result: Result, verbose: int) -> list[str]:
    lines = []
    if known := having(result, Status.KNOWN):
        lines += _labelled("known", f"{count(len(known), 'failure')} on the known list, none of them new")
    if flaky := having(result, Status.FLAKY):
        lines += _labelled("flaky", f"{count(len(flaky), 'check')} on the list of flaky ones")
    for clause in having(result, Status.FIXED):
        lines += _labelled("fixed", f"{clause.id} holds: remove line {clean(clause.note)}".rstrip())
    for line in result.stale_known:
        lines += _labelled("stale", f"{clean(line)} matches no clause: remove line")
    if verbose:
        for clause in having(result, *NOT_JUDGED):
            lines += _labelled("", f"{clause.id}  {clause.status}  {clean(clause.note)}".rstrip())
    return lines


def _table(result: Result) -> list[str]:
    table = counts(result)
    always = (Status.PASSED, Status.VIOLATED, Status.KNOWN, Status.UNSUPPORTED, Status.UNTESTED)
    shown = [s for s in Status if s in always or any(row[s] for row in table.values())]
    wide = 13 if 11 + 13 * len(shown) <= page_width() else 0
    rows = [("checks", *shown)]
    rows += [(f"  {level}", *(f"{row[s]}" for s in shown)) for level, row in table.items()]
    cells = [(f"{first:11}" if wide else first, *(f"{s:>{wide}}" for s in rest)) for first, *rest in rows]
    return aligned(cells, range(1, len(shown) + 1), "" if wide else " ")


def _figures(result: Result) -> list[str]:
    lines = _labelled("ran", played(result))
    situations = [f"{clean(name)} {percent(share)}" for name, share in reached(result)]
    if situations:
        lines += _labelled("reached", " | ".join(situations), most=20)
    for reason in result.doubts:
        lines += _labelled("missed", clean(reason))
    if result.quality is not None:
        share = percent(result.quality)
        lines += _labelled("quality", f"{share} of the {kept_noun(result)} that could be kept were kept")
    return lines


def _inert(line: str) -> str:
    """GitHub's runner takes ``::error::`` at the start of a line for an order; a backslash stops it."""
    start = len(line) - len(line.lstrip())
    return f"{line[:start]}\\{line[start:]}" if line.startswith("::", start) else line


def _ascii(line: str) -> list[str]:
    plain = clean(line, unicode=False)
    return [plain] if plain == line or len(plain) <= page_width() else fold(plain, page_width() - 1, most=20)
