"""What every report says about a result, counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from rebalance_verifier.base.text import clean, count, cut
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status, TargetInfo
from rebalance_verifier.model.assignor import LESSER, PARTITION_PROMISES, TASK_PROMISES
from rebalance_verifier.model.values import OF_TASKS, SERVED, RebalanceProtocol
from rebalance_verifier.properties.assignors.clauses import UNANSWERED
from rebalance_verifier.properties.assignors.wording import terms_of

LEVELS = tuple(Level)
"""From the worst breach to the mildest."""


STALE = "STALE"

NOT_JUDGED = (Status.KNOWN, Status.UNCONFIRMED, Status.FLAKY, Status.UNSUPPORTED, Status.UNTESTED)
"""What becomes of clauses that neither pass nor fail."""


def gating(result: Result, clause: ClauseResult) -> bool:
    """Check whether a breach of this clause fails the run."""
    return clause.clause.level.gates(Level(result.level))


def broken(result: Result) -> list[ClauseResult]:
    """Return the violated clauses that fail the run, worst level first."""
    return _by_level(c for c in result.clauses if c.status is Status.VIOLATED and gating(result, c))


def informational(result: Result) -> list[ClauseResult]:
    """Return the violated clauses that do not fail the run."""
    return _by_level(c for c in result.clauses if c.status is Status.VIOLATED and not gating(result, c))


def having(result: Result, *statuses: Status) -> list[ClauseResult]:
    """Return the clauses with one of these statuses, worst level first."""
    return _by_level(c for c in result.clauses if c.status in statuses)


def _by_level(clauses: Iterable[ClauseResult]) -> list[ClauseResult]:
    return sorted(clauses, key=lambda c: LEVELS.index(c.clause.level))


def counts(result: Result) -> dict[Level, Counter[Status]]:
    """Return how many checks of each level, clauses under one protocol, have which status."""
    table: dict[Level, Counter[Status]] = {level: Counter() for level in LEVELS}
    for clause in result.clauses:
        table[clause.clause.level][clause.status] += 1
    return table


def reached(result: Result) -> list[tuple[str, float]]:
    """Return situations and the share of the scenarios that reached them, most frequent first."""
    found = sorted(result.witnesses.items(), key=lambda item: (-item[1], item[0]))
    return [(name, number / max(result.scenarios, 1)) for name, number in found]


def kept_noun(result: Result) -> str:
    """Return what members can keep: what they claim, or what the broker assigned them."""
    served = [protocol for protocol in SERVED if protocol in result.target.protocols]
    return terms_of(served[0] if served else RebalanceProtocol.EAGER).kept


def played(result: Result) -> str:
    """Return how much was played, and in what time."""
    whole = f"{count(result.scenarios, 'scenario')}, {count(result.questions, 'assign() call')}"
    return f"{whole}, {result.seconds:.1f} s" + (", interrupted" if result.interrupted else "")


def label(target: TargetInfo) -> str:
    """Return the target in its own words, as far as it has any."""
    return cut(clean(" ".join(filter(None, (target.name, target.version))) or target.spec), 50)


def verdict_word(result: Result) -> str:
    """Return the verdict as reports begin and end with it: a word that the exit code agrees with. A list of
    known failures that is out of date fails a run in which nothing else is wrong."""
    out_of_date = result.verdict is Verdict.CONFORMANT and result.exit is Exit.VIOLATION
    return STALE if out_of_date else result.verdict.upper()


def headline(result: Result) -> str:
    """Return the verdict and what it rests on, in one line."""
    stale = len({row.note for row in having(result, Status.FIXED)}) + len(result.stale_known)
    more = f"; known list out of date, {count(stale, 'line')} to remove" if stale else ""
    judged = f" ({clean(result.target.interface)})" if result.target.interface else ""
    also = f"; it is also a {clean(result.target.also)}" if result.target.also else ""
    named = f"{verdict_word(result)}  {label(result.target)}{judged}"
    played = f"{_left_out(result)}{_called(result)}{_beside(result)}"
    return f"{named} {_because(result)}{more}{_unasked(result)}{played}{also}"


def _unasked(result: Result) -> str:
    """Return what follows from promises that are not made, or that are less than those of others."""
    promised = result.target.promises
    if less := [promise for promise in LESSER if promise in promised]:
        return f"; fewer clauses apply, since it promises to be {', '.join(less)}"
    unasked = {c.clause.id for c in having(result, Status.UNSUPPORTED) if c.clause.promises}
    return "" if promised or not unasked else f"; promises nothing: {count(len(unasked), 'clause')} not asked"


def _left_out(result: Result) -> str:
    """Return what was not played, since its author says that it is not made for it."""
    return f"; without {', '.join(result.without)}, of which nothing was played" if result.without else ""


def _called(result: Result) -> str:
    """Return how topics were called, where the user wants it."""
    return f"; its topics are called {', '.join(result.topics)}" if result.topics else ""


def _beside(result: Result) -> str:
    """Return whose bytes the members of its groups write, where a command names clients."""
    return f"; its members write what {', '.join(filter(None, result.beside))} write" if result.beside else ""


def undeclared(result: Result) -> str:
    """To what a target is held that declares no promises, and how it declares them."""
    if not result.assumed:
        return ""
    held = " and ".join(result.target.promises)
    known = TASK_PROMISES if set(OF_TASKS) & set(result.target.protocols) else PARTITION_PROMISES
    return (
        f"none declared, so it is held to {held}, the strictest; promises = (...) declares them: any of "
        f"{', '.join(known)}, or () for none"
    )


def _because(result: Result) -> str:
    match result.verdict:
        case Verdict.VIOLATION:
            clauses = {c.clause.id: c.clause.level for c in broken(result)}
            levels = Counter(clauses.values())
            shares = ", ".join(f"{levels[level]} {level}" for level in LEVELS if levels[level])
            alone = "; nothing else was judged, since it never answered" if _never_answered(result) else ""
            return f"breaks {count(len(clauses), 'clause')} ({shares}){alone}"
        case Verdict.INCONCLUSIVE:
            reasons = ["interrupted"] * result.interrupted + list(result.doubts)
            others = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
            return "is not judged: " + cut(clean((*reasons, "no reason given")[0]), 50) + others
        case Verdict.CONFORMANT:
            weaker = len(informational(result))
            more = f", with {count(weaker, 'finding')} below the level" if weaker else ""
            return f"{_kept(result)} in {count(result.scenarios, 'scenario')}{more}"


def _never_answered(result: Result) -> bool:
    """Check whether there was no answer that a clause could be held against."""
    judged = {row.clause.id for row in result.clauses if row.scenarios}
    return bool(having(result, Status.UNTESTED)) and judged <= set(UNANSWERED)


def _kept(result: Result) -> str:
    """Return how many checks pass, and how many are known to fail: no others do that matter."""
    kept, known = having(result, Status.PASSED, Status.FIXED), len(having(result, Status.KNOWN))
    failing = f"that {'is' if known == 1 else 'are'} known to fail"
    if not kept and known:
        return f"fails {count(known, 'check')} {failing}, and no other,"
    return f"passes {_checks(kept)}" + (f" and fails {known} {failing}" if known else "")


def _checks(rows: Collection[ClauseResult]) -> str:
    """Return how many they are: a check is a clause under one protocol."""
    clauses = len({row.clause.id for row in rows})
    protocols = " and ".join(p for p in RebalanceProtocol if p in {row.protocol for row in rows})
    return f"{count(len(rows), 'check')}" + (f" ({count(clauses, 'clause')}; {protocols})" if rows else "")


def tally(result: Result) -> str:
    """Return how many checks came out how, zeros left out except for violations."""
    parts = [count(len(broken(result)), "new violation")]
    if others := informational(result):
        parts.append(count(len(others), "finding"))
    totals = sum(counts(result).values(), Counter())
    parts += [f"{totals[s]} {s}" for s in Status if s is not Status.VIOLATED and totals[s]]
    if result.stale_known:
        parts.append(f"{len(result.stale_known)} stale")
    return ", ".join(parts)


UNUSUAL = "°"
"""Marks a clause whose counterexample needs an input that is rare in practice."""


def mark(finding: Finding, unicode: bool = True) -> str:
    """Return ``UNUSUAL`` if the counterexample needs an input that is rare in practice."""
    return (UNUSUAL if unicode else "~") if unusual_preconditions(finding.scenario) else ""


def cause_facts(clause: ClauseResult, finding: Finding) -> list[tuple[str, str]]:
    """Return its cause with the number of scenarios, its rare inputs, and its line in the known list."""
    found = []
    if finding.cause is not None:
        often = f", {count(finding.broken, 'scenario')} of {clause.broken:,}" if finding.broken else ""
        found.append(("cause", f"{finding.cause.id}: {finding.cause.sentence(clause.protocol)}{often}"))
    found += [(UNUSUAL, f"rare in practice: {what}") for what in unusual_preconditions(finding.scenario)]
    return found + ([("known", finding.known)] if finding.known else [])


def unattributed(clause: ClauseResult) -> str:
    """Return how many scenarios break it by nobody knows what, if that was asked."""
    left = clause.unattributed if clause.finding is not None and clause.finding.cause else 0
    return f"{count(left, 'more scenario')} not attributed to a cause" if left else ""


def scenario_number(number: int, searched: int) -> str:
    """Return which scenario it is, of as many as were searched, whatever their protocol."""
    return f"scenario {number:,}" + (f" (of 0 to {searched - 1:,})" if number < searched else "")


def found_where(clause: ClauseResult, finding: Finding) -> str:
    """Return which scenario showed it, how often it was broken, and whether it broke again."""
    found = f"in {scenario_number(finding.number, clause.searched)}"
    parts = [f"{found}, seed {finding.seed}, round {finding.round}"]
    if clause.scenarios:
        scenarios = count(clause.scenarios, f"{clause.protocol} scenario")
        parts.append(f"broken in {clause.broken:,} of {scenarios}")
    parts.append("confirmed in a fresh process" if finding.confirmed else "NOT confirmed in a fresh process")
    return "; ".join(parts)
