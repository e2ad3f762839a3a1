"""What each command found, as cases: one function a command. See ``gate.report.cases``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance.gate.report import facts
from rebalance.gate.report.cases import Case, Evidence, Report, Rule
from rebalance.gate.report.place import locate, shown
from rebalance.gate.report.words import clean, count, cut, percent, size
from rebalance.gate.result import ClauseResult, Exit, Finding, Result, Status, Verdict
from rebalance.properties.clauses import Level

if TYPE_CHECKING:
    from rebalance.explore.upgrades import Outcome as WayOutcome
    from rebalance.gate import recordings
    from rebalance.gate.auditing import Audited
    from rebalance.gate.exploring import Explored, Violation
    from rebalance.gate.proving import Proof
    from rebalance.gate.report.picture import Picture
    from rebalance.gate.runs import SavedRun
    from rebalance.properties.protocol import ProtocolClause
    from rebalance.specs.prover import Outcome
    from rebalance.specs.theorems import Theorem


# -- a check -----------------------------------------------------------------------------------------------


def result(checked: Result) -> Report:
    """A finished ``rebalance check``. Where a Python target lies in the working directory, its source is
    looked at for the line of its definition."""
    target = checked.target
    name = f"{target.name} {target.version}".strip()
    return Report(
        "check",
        target.spec,
        checked.suite_version,
        facts.headline(checked),
        checked.verdict,
        checked.exit,
        tuple(_case(checked, clause) for clause in checked.clauses),
        facts.tally(checked),
        checked.seconds,
        (
            ("target", cut(target.spec, 100)),
            ("name", cut(clean(name), 100)),
            ("suite", checked.suite_version),
            ("protocols", ", ".join(target.protocols) or "-"),
            ("profile", checked.profile),
            ("seed", str(checked.seed)),
            ("played", f"{count(checked.scenarios, 'scenario')}, {checked.seconds:.1f} s"),
        ),
        (
            ("suite_version", checked.suite_version),
            ("target", target.spec),
            ("target_name", target.name),
            ("target_version", target.version),
            ("profile", checked.profile),
            ("level", checked.level),
            ("seed", str(checked.seed)),
            ("verdict", checked.verdict.value),
        ),
        checked.stale_known,
        checked.missed,
        tuple(f"{name} {percent(share)}" for name, share in facts.reached(checked)),
        checked.interrupted,
        locate(target.spec),
    )


def _case(checked: Result, row: ClauseResult) -> Case:
    from rebalance.gate.report.text import block

    clause = row.clause
    rule = Rule(clause.id, clause.level, clause.sentence, clause.rule, clause.link)
    gates = facts.gating(checked, row)
    broken = row.status in (Status.VIOLATED, Status.KNOWN, Status.FLAKY) and row.finding is not None
    return Case(
        rule,
        row.status,
        gates,
        row.protocol.value,
        row.note,
        (_evidence(row, row.finding),) if broken and row.finding else (),
        lambda: block("VIOLATION" if gates else "FINDING", row),
    )


def _evidence(row: ClauseResult, finding: Finding) -> Evidence:
    from rebalance.gate.report.chart import chart
    from rebalance.gate.report.picture import of_finding

    breach = finding.breach
    return Evidence(
        breach.summary,
        finding.trace_id,
        finding.path,
        None,
        breach.because,
        tuple((name, text) for name, text in _outcomes(finding) if text),
        lambda: chart(finding),
        (
            ("shrunk", f"from {size(finding.found_size)} to {size(finding.scenario.size)}"),
            ("found", facts.found_where(row, finding)),
        ),
        f"rebalance replay {finding.trace_id}" if finding.trace_id else "",
        lambda: of_finding(finding),
    )


def _outcomes(finding: Finding) -> tuple[tuple[str, str], ...]:
    return ("expected", finding.breach.expected), ("actual", finding.breach.actual)


# -- an exploration ----------------------------------------------------------------------------------------


def explored(found: Explored, paths: Mapping[str, str]) -> Report:
    """A finished ``rebalance explore``. ``paths``: id of a run -> the file that it was saved to."""
    from importlib.metadata import version

    from rebalance.gate.report.exploration import headline
    from rebalance.properties.protocol import CLAUSES

    suite, origin = version("rebalance-verifier"), dict(found.plan.origin)
    broken = {violation.clause: violation for violation in found.violations}
    asked = list(dict.fromkeys((*broken, *_asked(found))))
    states = count(found.coverage.distinct, "state")
    named = [(name, _spelled(value)) for name, value in origin.items()]
    return Report(
        "explore",
        str(origin.get("scenario", "group")),
        suite,
        headline(found),
        found.verdict,
        found.exit,
        tuple(_explored(found, CLAUSES[clause], broken.get(clause), paths) for clause in asked),
        f"{len(broken)} of {count(len(asked), 'clause')} broken, {states}",
        found.search.cpu if found.search is not None else 0.0,
        (*named, ("suite", suite), ("searched", f"{states}, depth {found.coverage.depth}")),
        (("suite_version", suite), *named, ("verdict", found.verdict.value)),
        missed=tuple(_unexplored(found)),
        reached=tuple(found.shown),
        interrupted=found.interrupted,
    )


def _spelled(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _asked(found: Explored) -> Iterator[str]:
    """The clauses that were to be asked, liveness too."""
    from rebalance.properties.protocol import CONVERGES, ROUNDS, rules

    asked = rules(found.plan.setup)
    yield from (rule.clause for rule in asked.always)
    yield from (rule.clause for rule in asked.each_step)
    yield from (CONVERGES.id, ROUNDS.id)


def _explored(
    found: Explored, clause: ProtocolClause, violation: Violation | None, paths: Mapping[str, str]
) -> Case:
    from rebalance.gate.report.exploration import block
    from rebalance.properties.protocol import CONVERGES, ROUNDS

    rule = Rule(clause.id, clause.level, clause.sentence, clause.source)
    if violation is not None:
        evidence = tuple(_run(violation, run, paths) for run in violation.runs)
        return Case(rule, Status.VIOLATED, evidence=evidence, text=lambda: block(violation, dict(paths)))
    if clause.id in (CONVERGES.id, ROUNDS.id) and found.lively is None:
        return Case(rule, Status.UNTESTED, note=found.unasked)
    if found.search is None:
        return Case(rule, Status.UNTESTED, note="walks are no proof")
    if not found.search.complete:
        return Case(rule, Status.UNTESTED, note=f"the search ended before its end ({found.search.stop})")
    return Case(rule, Status.PASSED)


def _run(violation: Violation, run: SavedRun, paths: Mapping[str, str]) -> Evidence:
    shortest = "; no run is shorter" if violation.shortest else ""
    return _counterexample(run, run.sentence or violation.sentence, paths, shortest)


def _counterexample(run: SavedRun, message: str, paths: Mapping[str, str], more: str) -> Evidence:
    """A run of the group that breaks something."""
    from rebalance.gate.report.exploration import run_lines
    from rebalance.gate.report.picture import of_run

    return Evidence(
        message,
        run.id,
        paths.get(run.id, ""),
        chart=lambda: run_lines(run),
        notes=(("length", count(len(run.events), "step") + more),),
        command=f"rebalance replay {run.id}" if run.id in paths else "",
        draw=lambda: of_run(run),
    )


def _unexplored(found: Explored) -> Iterator[str]:
    yield from (f"never shown: {witness}" for witness in found.missed)
    if found.verdict is Verdict.INCONCLUSIVE and not found.missed:
        ended = f"the search ended ({found.search.stop})" if found.search else "walks are no proof"
        yield f"{ended} after {count(found.coverage.distinct, 'state')}"


# -- an audit ----------------------------------------------------------------------------------------------


def audited(found: Audited) -> Report:
    """A finished ``rebalance audit``: a case for each check, with the findings that were collected."""
    from importlib.metadata import version

    from rebalance.gate.report.audit import headline

    suite, plan = version("rebalance-verifier"), found.plan
    logs = ", ".join(plan.paths)
    read = f"{count(found.lines, 'line')}, {count(found.events, 'event')}, {count(found.groups, 'group')}"
    cases = tuple(_checked(found, check.id) for check in plan.asked)
    return Report(
        "audit",
        logs,
        suite,
        headline(found),
        found.verdict,
        found.exit,
        cases,
        f"{count(sum(tally.findings for tally in found.tallies), 'finding')} in {read}",
        found.seconds,
        (("logs", cut(logs, 100)), ("suite", suite), ("level", plan.level), ("read", read)),
        (("suite_version", suite), ("logs", logs), ("level", plan.level), ("verdict", found.verdict.value)),
        missed=tuple(_unread(found)),
        interrupted=found.interrupted,
    )


def _checked(found: Audited, name: str) -> Case:
    from rebalance.gate.auditing import Tally
    from rebalance.gate.report.audit import told
    from rebalance.pipeline.findings import CHECKS

    check = CHECKS[name]
    rule = Rule(check.id, Level(check.level), check.sentence, check.source)
    gates = found.plan.gates(check.level)
    tally = next((one for one in found.tallies if one.check == name), Tally(name, 0, 0, 0, 0.0))
    mine = [one for one in found.findings if one.check == name]
    evidence = tuple(_finding(found, one) for one in mine)
    if tally.findings > len(mine):
        note = f"{tally.findings - len(mine):,} more findings: {found.plan.table('findings')}"
    elif tally.findings and not tally.certain:
        note = f"{count(tally.findings, 'finding')}, none beyond what the clocks may differ by"
    else:
        note = "nothing was judged" if found.stage or not found.events else ""
    if tally.certain or (tally.findings and not gates):
        return Case(
            rule,
            Status.VIOLATED,
            gates,
            note=note,
            evidence=evidence,
            text=lambda: [line for one in mine[:MOST_TOLD] for line in told(one, found.plan).splitlines()],
        )
    return Case(rule, Status.UNTESTED if note else Status.PASSED, gates, note=note, evidence=evidence)


MOST_TOLD = 20
"""Findings of a check in the body of its case."""


def _finding(found: Audited, one: recordings.Finding) -> Evidence:
    about = f"{one.about} of " if one.about else ""
    path = found.traces.get(one.id, "")
    where = next((place for place in one.places if place.file), None)
    return Evidence(
        f"{about}group {one.group}: {one.sentence}",
        one.id,
        path,
        shown(where.file, where.line) if where else None,
        tuple(f"{place.consumer or 'coordinator'} {place.kind} at {place.where}" for place in one.places),
        command=f"rebalance show {path}" if path else "",
        draw=(lambda: _recorded(path)) if path else None,
        certain=one.certain,
    )


def _recorded(path: str) -> Picture:
    from rebalance.gate import recordings
    from rebalance.gate.report.picture import of_recording

    return of_recording(recordings.load(Path(path)))


def _unread(found: Audited) -> Iterator[str]:
    if found.failed:
        yield f"Spark failed while {found.stage}: {found.failed}"
    elif not found.events and not found.interrupted:
        yield "no event was recognised in the logs"
    if unsure := found.count(gating=True, certain=False):
        yield f"{count(unsure, 'finding')} within what the clocks may differ by"


# -- a proof -----------------------------------------------------------------------------------------------


def proved(proof: Proof) -> Report:
    """A finished ``rebalance prove``: a case for each theorem."""
    from importlib.metadata import version

    from rebalance.gate.report.proof import headline

    suite, plan = version("rebalance-verifier"), proof.plan
    done = f"{len(proof.outcomes):,} of {count(proof.obligations, 'obligation')} tried"
    verdicts = {"proved": Verdict.CONFORMANT, "refuted": Verdict.VIOLATION, "unknown": Verdict.INCONCLUSIVE}
    without = (("without", ", ".join(plan.without)),) if plan.without else ()
    cases = tuple(_proved(proof, theorem) for theorem in plan.theorems)
    missed = tuple(f"{case.id}: {case.note}" for case in cases if case.status is Status.UNTESTED)
    return Report(
        "prove",
        "the protocol",
        suite,
        headline(proof),
        verdicts[proof.verdict.value],
        proof.exit,
        cases,
        done,
        proof.seconds,
        (("proof of", "the protocol"), ("suite", suite), *without, ("limit", f"{plan.limit:g} s")),
        (("suite_version", suite), ("limit", f"{plan.limit:g}"), *without, ("verdict", proof.verdict.value)),
        missed=missed,
        interrupted=proof.interrupted,
    )


def _proved(proof: Proof, theorem: Theorem) -> Case:
    from rebalance.gate.report.proof import label
    from rebalance.specs.prover import Verdict as Proved

    level = Level.LIVENESS if theorem.name == "convergence" else Level.SAFETY
    rule = Rule(theorem.name, level, theorem.sentence, theorem.source)
    refuted = [one for one in proof.of(theorem) if one.verdict is Proved.REFUTED]
    if refuted:
        said = tuple(Evidence(f"refuted: {label(one)}", chart=partial(_group, one)) for one in refuted)
        return Case(rule, Status.VIOLATED, evidence=said, text=lambda: [one.message for one in said])
    if proof.judged(theorem) is Proved.PROVED:
        return Case(rule, Status.PASSED)
    missing = theorem.obligations - len(proof.of(theorem))
    weak = ", ".join(proof.weak(theorem))
    note = (
        f"rests upon {weak}"
        if weak
        else f"{missing:,} not tried"
        if missing
        else "neither proved nor refuted"
    )
    return Case(rule, Status.UNTESTED, note=note)


def _group(one: Outcome) -> list[str]:
    from rebalance.specs.counterexample import lines

    if one.counterexample is None:
        return ["refuted by the solver, but by no small group"]
    return [f"{name:<9}{text}" for name, text in lines(one.counterexample)]


# -- an upgrade --------------------------------------------------------------------------------------------


def upgraded(
    outcomes: Sequence[WayOutcome], saved: Mapping[str, SavedRun | None], paths: Mapping[str, str], code: int
) -> Report:
    """A finished ``rebalance upgrade``: a case for each path. That one is unsafe fails only where none is
    safe. ``saved``: path -> the run that shows it; ``paths``: id of a run -> its file; ``code``: of exit."""
    from importlib.metadata import version

    suite = version("rebalance-verifier")
    safe = [one.path.name for one in outcomes if one.verdict.value == "safe"]
    verdict = {0: Verdict.CONFORMANT, 1: Verdict.VIOLATION}.get(code, Verdict.INCONCLUSIVE)
    subject = next((str(run.origin["scenario"]) for run in saved.values() if run), "upgrade")
    plan = f"safe: {', '.join(safe)}" if safe else "none of these paths is safe"
    return Report(
        "upgrade",
        subject,
        suite,
        f"{verdict.upper()}  {subject}: {plan}",
        verdict,
        Exit(code),
        tuple(_way(one, saved[one.path.name], paths, gates=not safe) for one in outcomes),
        f"safe: {len(safe)} of {count(len(outcomes), 'path')}",
        properties=(("suite_version", suite), ("verdict", verdict.value)),
        missed=tuple(f"{one.path.name} was not searched to its end" for one in outcomes if code == 3),
    )


def _way(outcome: WayOutcome, run: SavedRun | None, paths: Mapping[str, str], *, gates: bool) -> Case:
    from rebalance.gate.report.exploration import run_lines
    from rebalance.properties.protocol import CLAUSES

    clause = CLAUSES.get(outcome.clause or "")
    level = clause.level if clause else Level.SAFETY
    rule = Rule(f"upgrade/{outcome.path.name}", level, f"this path is safe: {outcome.path.sentence}")
    if outcome.verdict.value == "safe":
        return Case(rule, Status.PASSED)
    if run is None or outcome.verdict.value == "inconclusive":
        return Case(rule, Status.UNTESTED, note=outcome.verdict.value)
    evidence = _counterexample(run, f"{run.clause}: {run.sentence}", paths, "")
    return Case(rule, Status.VIOLATED, gates, evidence=(evidence,), text=lambda: run_lines(run))
