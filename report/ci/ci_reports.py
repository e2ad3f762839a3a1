"""What each command found, as cases: one function a command. See ``report.ci.cases``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.base.text import clean, count, cut, percent, size
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status
from rebalance_verifier.gate.targets.hosts.source_location import locate, shown
from rebalance_verifier.report import facts
from rebalance_verifier.report.ci.cases import SUITE_VERSION, CiCase, CiReport, CiRule, Evidence
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.diagram.scenario_diagram import of_finding
from rebalance_verifier.report.diagram.text import draw

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.exploration import ExplorationViolation, Explored
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.explore.groups.upgrades import UpgradeOutcome
    from rebalance_verifier.pipeline.audit.records import LogFinding
    from rebalance_verifier.pipeline.audit.result import Audited
    from rebalance_verifier.properties.group.clauses import ProtocolClause
    from rebalance_verifier.report.terminal.upgrade import UpgradeReport
    from rebalance_verifier.specs.logic.prover import ProofOutcome
    from rebalance_verifier.specs.logic.specification import Theorem
    from rebalance_verifier.specs.proving import Proof


# -- a check -----------------------------------------------------------------------------------------------


def result(checked: Result) -> CiReport:
    """Return a finished ``rebalance check``. Where a Python target lies in the working directory, its source
    is looked at for the line of its definition."""
    target = checked.target
    name = f"{target.name} {target.version}".strip()
    return CiReport(
        command="check",
        subject=target.spec,
        headline=facts.headline(checked),
        verdict=checked.verdict,
        exit=checked.exit,
        cases=tuple(_case(checked, clause) for clause in checked.clauses),
        tally=facts.tally(checked),
        seconds=checked.seconds,
        facts=(
            ("target", cut(target.spec, 100)),
            ("name", cut(clean(name), 100)),
            ("suite", SUITE_VERSION),
            ("protocols", ", ".join(target.protocols) or "-"),
            *([("promises", facts.undeclared(checked))] if checked.assumed else []),
            ("profile", checked.profile),
            ("seed", str(checked.seed)),
            *([("without", ", ".join(checked.without))] if checked.without else []),
            *([("topics", ", ".join(checked.topics))] if checked.topics else []),
            *([("members", ", ".join(checked.beside))] if checked.beside else []),
            ("played", f"{count(checked.scenarios, 'scenario')}, {checked.seconds:.1f} s"),
        ),
        properties=(
            ("target", target.spec),
            ("target_name", target.name),
            ("target_version", target.version),
            ("profile", checked.profile),
            ("level", checked.level),
            ("seed", str(checked.seed)),
            *([("without", ", ".join(checked.without))] if checked.without else []),
            *([("topics", ", ".join(checked.topics))] if checked.topics else []),
            *([("members", ", ".join(checked.beside))] if checked.beside else []),
        ),
        stale=checked.stale_known,
        missed=checked.doubts,
        reached=tuple(f"{name} {percent(share)}" for name, share in facts.reached(checked)),
        interrupted=checked.interrupted,
        source_location=locate(target.spec),
    )


def _case(checked: Result, row: ClauseResult) -> CiCase:
    from rebalance_verifier.report.terminal.check import block

    clause = row.clause
    rule = CiRule(
        id=clause.id, level=clause.level, sentence=clause.sentence, source=clause.rule, link=clause.link
    )
    gates = facts.gating(checked, row)
    broken = row.status in (Status.VIOLATED, Status.KNOWN, Status.FLAKY)
    return CiCase(
        rule=rule,
        status=row.status,
        gates=gates,
        variant=row.protocol.value,
        note=row.note,
        evidence=tuple(finding_evidence(row, finding) for finding in row.findings if broken),
        text=lambda: block("VIOLATION" if gates else "FINDING", row),
    )


def finding_evidence(row: ClauseResult, finding: Finding) -> Evidence:
    """Return a counterexample of an assignor."""
    breach, nouns = finding.breach, finding.scenario.nouns
    return Evidence(
        message=breach.summary,
        id=finding.trace_id,
        path=finding.path,
        because=breach.because,
        cause=finding.cause.id if finding.cause else "",
        facts=tuple((name, text) for name, text in _outcomes(row, finding) if text),
        chart=lambda: draw(of_finding(finding)),
        notes=(
            ("shrunk", f"from {size(finding.found_size, nouns)} to {size(finding.scenario.size, nouns)}"),
            ("found", facts.found_where(row, finding)),
        ),
        command=f"rebalance replay {finding.trace_id}" if finding.trace_id else "",
        draw=lambda: of_finding(finding),
    )


def _outcomes(row: ClauseResult, finding: Finding) -> list[tuple[str, str]]:
    outcomes = [("expected", finding.breach.expected), ("actual", finding.breach.actual), ("hint", row.hint)]
    return facts.cause_facts(row, finding) + outcomes


# -- an exploration ----------------------------------------------------------------------------------------


def explored(exploration: Explored, paths: Mapping[str, str]) -> CiReport:
    """Return a finished ``rebalance explore``. ``paths``: id of a run -> the file that it was saved to."""
    from rebalance_verifier.properties.group.own import clause_named
    from rebalance_verifier.report.terminal.exploration import headline, spelled

    origin = dict(exploration.plan.origin)
    broken = {violation.clause: violation for violation in exploration.violations}
    clauses = list(dict.fromkeys((*broken, *_requested_clauses(exploration))))
    states = count(exploration.coverage.distinct, "state")
    named = [(name, spelled(value, ", ")) for name, value in origin.items()]
    return CiReport(
        command="explore",
        subject=str(origin.get("scenario", "group")),
        headline=headline(exploration),
        verdict=exploration.verdict,
        exit=exploration.exit,
        cases=tuple(
            _explored(exploration, clause_named(clause), broken.get(clause), paths) for clause in clauses
        ),
        tally=f"{len(broken)} of {count(len(clauses), 'clause')} broken, {states}",
        seconds=exploration.search.cpu if exploration.search is not None else 0.0,
        facts=(
            *named,
            ("suite", SUITE_VERSION),
            ("searched", f"{states}, depth {exploration.coverage.depth}"),
        ),
        properties=tuple(named),
        missed=tuple(_unexplored(exploration)),
        reached=tuple(exploration.shown),
        interrupted=exploration.interrupted,
    )


def _requested_clauses(exploration: Explored) -> Iterator[str]:
    """Yield the clauses that were to be asked, liveness too."""
    yield from exploration.plan.rules.broken_by


def _explored(
    exploration: Explored,
    clause: ProtocolClause,
    violation: ExplorationViolation | None,
    paths: Mapping[str, str],
) -> CiCase:
    from rebalance_verifier.report.terminal.exploration import block

    rule = CiRule(id=clause.id, level=clause.level, sentence=clause.sentence, source=clause.source)
    if violation is not None:
        evidence = tuple(_run(violation, run, paths) for run in violation.runs)
        return CiCase(
            rule=rule, status=Status.VIOLATED, evidence=evidence, text=lambda: block(violation, dict(paths))
        )
    if clause.id in exploration.plan.rules.lively and exploration.lively is None:
        return CiCase(rule=rule, status=Status.UNTESTED, note=exploration.unasked)
    if exploration.search is None:
        return CiCase(rule=rule, status=Status.UNTESTED, note="walks are no proof")
    if not exploration.search.complete:
        note = f"the search ended before its end ({exploration.search.stop})"
        return CiCase(rule=rule, status=Status.UNTESTED, note=note)
    return CiCase(rule=rule, status=Status.PASSED)


def _run(violation: ExplorationViolation, run: SavedRun, paths: Mapping[str, str]) -> Evidence:
    shortest = "; no run is shorter" if violation.shortest else ""
    return _counterexample(run, run.sentence or violation.sentence, paths, shortest)


def _counterexample(run: SavedRun, message: str, paths: Mapping[str, str], more: str) -> Evidence:
    """Return a run of the group that breaks something."""
    from rebalance_verifier.report.diagram.run_diagram import of_run
    from rebalance_verifier.report.terminal.exploration import run_lines
    from rebalance_verifier.traces.runs import run_id

    name = run_id(run)
    return Evidence(
        message=message,
        id=name,
        path=paths.get(name, ""),
        chart=lambda: run_lines(run),
        notes=(("length", count(len(run.events), "step") + more),),
        command=f"rebalance replay {name}" if name in paths else "",
        draw=lambda: of_run(run),
    )


def _unexplored(exploration: Explored) -> Iterator[str]:
    yield from (f"never shown: {witness}" for witness in exploration.missed)
    if exploration.verdict is Verdict.INCONCLUSIVE and not exploration.missed:
        ended = (
            f"the search ended ({exploration.search.stop})" if exploration.search else "walks are no proof"
        )
        yield f"{ended} after {count(exploration.coverage.distinct, 'state')}"


# -- an audit ----------------------------------------------------------------------------------------------


def audited(audit: Audited) -> CiReport:
    """Return a finished ``rebalance audit``: a case for each check, with the findings that were collected."""
    from rebalance_verifier.report.terminal.audit import headline

    plan = audit.plan
    logs = ", ".join(plan.paths)
    read = f"{count(audit.lines, 'line')}, {count(audit.events, 'event')}, {count(audit.groups, 'group')}"
    cases = tuple(_checked(audit, check.id) for check in plan.chosen_checks)
    return CiReport(
        command="audit",
        subject=logs,
        headline=headline(audit),
        verdict=audit.verdict,
        exit=audit.exit,
        cases=cases,
        tally=f"{count(sum(tally.findings for tally in audit.tallies), 'finding')} in {read}",
        seconds=audit.seconds,
        facts=(("logs", cut(logs, 100)), ("suite", SUITE_VERSION), ("level", plan.level), ("read", read)),
        properties=(("logs", logs), ("level", plan.level)),
        missed=tuple(_unread(audit)),
        interrupted=audit.interrupted,
    )


def _checked(audit: Audited, name: str) -> CiCase:
    from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
    from rebalance_verifier.report.terminal.audit import finding_text

    check = CHECKS[name]
    rule = CiRule(id=check.id, level=Level(check.level), sentence=check.sentence, source=check.source)
    gates = audit.plan.gates(check.level)
    tally = audit.tally(name)
    mine = [one for one in audit.findings if one.check == name]
    evidence = tuple(_finding(audit, one) for one in mine)
    if tally.findings > len(mine):
        note = f"{tally.findings - len(mine):,} more findings: {audit.plan.table('findings')}"
    elif tally.findings and not tally.certain:
        note = f"{count(tally.findings, 'finding')}, none beyond what the clocks may differ by"
    else:
        note = "nothing was judged" if audit.stage or not audit.events else ""
    if tally.certain or (tally.findings and not gates):
        return CiCase(
            rule=rule,
            status=Status.VIOLATED,
            gates=gates,
            note=note,
            evidence=evidence,
            text=lambda: "\n".join(finding_text(one, audit.plan) for one in mine[:MAX_SHOWN]).splitlines(),
        )
    status = Status.UNTESTED if note else Status.PASSED
    return CiCase(rule=rule, status=status, gates=gates, note=note, evidence=evidence)


MAX_SHOWN = 20
"""Findings of a check in the body of its case."""


def _finding(audit: Audited, one: LogFinding) -> Evidence:
    about = f"{one.about} of " if one.about else ""
    path = audit.traces.get(one.id, "")
    where = next((event for event in one.places if event.file), None)
    return Evidence(
        message=f"{about}group {one.group}: {one.sentence}",
        id=one.id,
        path=path,
        source_location=shown(where.file, where.line) if where else None,
        because=tuple(
            f"{event.consumer or 'coordinator'} {event.kind} at {event.where}" for event in one.places
        ),
        command=f"rebalance show {path}" if path else "",
        draw=(lambda: _recorded(path)) if path else None,
        certain=one.certain,
    )


def _recorded(path: str) -> OwnershipDiagram:
    from rebalance_verifier.report.diagram.log_diagram import of_recording
    from rebalance_verifier.traces import recordings

    return of_recording(recordings.load(Path(path)))


def _unread(audit: Audited) -> Iterator[str]:
    if audit.failed:
        yield f"Spark failed while {audit.stage}: {audit.failed}"
    elif not audit.events and not audit.interrupted:
        yield "no event was recognised in the logs"
    if unsure := audit.count(gating=True, certain=False):
        yield f"{count(unsure, 'finding')} within what the clocks may differ by"


# -- a proof -----------------------------------------------------------------------------------------------


def proved(proof: Proof) -> CiReport:
    """Return a finished ``rebalance prove``: a case for each theorem."""
    from rebalance_verifier.report.terminal.proof import headline

    plan = proof.plan
    done = f"{len(proof.outcomes):,} of {count(proof.obligations, 'obligation')} tried"
    without = (("without", ", ".join(plan.without)),) if plan.without else ()
    theorems = (_proved(proof, theorem) for theorem in plan.theorems)
    cases = (*theorems, *_about_something(proof), *_about_the_model(proof))
    missed = tuple(f"{case.id}: {case.note}" for case in cases if case.status is Status.UNTESTED)
    return CiReport(
        command="prove",
        subject="the protocol",
        headline=headline(proof),
        verdict=proof.judgement,
        exit=proof.exit,
        cases=cases,
        tally=done,
        seconds=proof.seconds,
        facts=(
            ("proof of", "the protocol"),
            ("suite", SUITE_VERSION),
            *without,
            ("limit", f"{plan.limit:,} units"),
        ),
        properties=(("limit", f"{plan.limit}"), *without),
        missed=missed,
        interrupted=proof.interrupted,
    )


def _proved(proof: Proof, theorem: Theorem) -> CiCase:
    from rebalance_verifier.report.terminal.proof import label
    from rebalance_verifier.specs.logic.prover import ProofVerdict as Proved

    level = Level.LIVENESS if theorem.name == "convergence" else Level.SAFETY
    rule = CiRule(id=theorem.name, level=level, sentence=theorem.sentence, source=theorem.source)
    refuted = [one for one in proof.of(theorem) if one.verdict is Proved.REFUTED]
    if refuted:
        evidence = tuple(
            Evidence(message=f"refuted: {label(one)}", chart=partial(_group, one)) for one in refuted
        )
        return CiCase(rule=rule, status=Status.VIOLATED, evidence=evidence)
    if proof.judged(theorem) is Proved.PROVED:
        return CiCase(rule=rule, status=Status.PASSED)
    missing = theorem.obligations - len(proof.of(theorem))
    weak = ", ".join(proof.weak(theorem))
    note = f"{missing:,} not tried" if missing else "neither proved nor refuted"
    if weak:
        note = f"depends on {weak}"
    return CiCase(rule=rule, status=Status.UNTESTED, note=note)


def _about_something(proof: Proof) -> Iterator[CiCase]:
    if proof.plan.checks:
        sentence = "assumptions are consistent, every action is taken, every formula can fail"
        rule = CiRule(id="vacuity", level=Level.SAFETY, sentence=sentence, source="a proof about something")
        missing = sum(len(check.names) for check in proof.plan.checks) - len(proof.vacuity)
        doubtful = ", ".join(f"{row.finding}: {row.kind} {row.name}" for row in proof.doubts)
        note = doubtful or (f"{missing:,} not tried" if missing else "")
        yield CiCase(rule=rule, status=Status.UNTESTED if note else Status.PASSED, note=note)


def _about_the_model(proof: Proof) -> Iterator[CiCase]:
    from rebalance_verifier.report.terminal.proof import model_line, model_rows

    sentence = "every step of random runs of the executable model is a step of the logic"
    rule = CiRule(id="model", level=Level.SAFETY, sentence=sentence, source="a proof about the model")
    if proof.breaches:
        evidence = tuple(
            Evidence(
                message=f"{row.group}: {row.breach.failure}",
                chart=partial(_lines, tuple(model_rows(row))),
            )
            for row in proof.breaches
            if row.breach
        )
        yield CiCase(rule=rule, status=Status.VIOLATED, evidence=evidence)
        return
    whole = proof.held_against_model and not proof.deviations
    yield CiCase(
        rule=rule,
        status=Status.PASSED if whole else Status.UNTESTED,
        note="" if whole else model_line(proof),
    )


def _lines(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name:<9}{text}" for name, text in rows]


def _group(one: ProofOutcome) -> list[str]:
    from rebalance_verifier.specs.logic.counterexample import lines

    if one.counterexample is None:
        return ["refuted by the solver, but by no small group"]
    return _lines(tuple(lines(one.counterexample)))


# -- an upgrade --------------------------------------------------------------------------------------------


def upgraded(report: UpgradeReport, code: int) -> CiReport:
    """Return a finished ``rebalance upgrade``: a case for each path. That one is unsafe fails only where its
    hop has no safe one. ``code``: of exit."""
    outcomes = report.outcomes
    safe = [one.path.name for one in outcomes if one.verdict.value == "safe"]
    verdict = {0: Verdict.CONFORMANT, 1: Verdict.VIOLATION}.get(code, Verdict.INCONCLUSIVE)
    subject = f"upgrade {report.title}"
    plan = f"safe: {', '.join(safe)}" if report.plan else report.plan_title
    return CiReport(
        command="upgrade",
        subject=subject,
        headline=f"{verdict.upper()}  {subject} ({report.about}): {plan}",
        verdict=verdict,
        exit=Exit(code),
        cases=tuple(
            _upgrade_path(outcome, report.saved[outcome.path.name], report.paths, gates=one.safe is None)
            for one in report.judged
            for outcome in one.outcomes
        ),
        tally=f"safe: {len(safe)} of {count(len(outcomes), 'path')}",
        facts=(
            ("about", report.about),
            ("other", report.other),
            ("searched", report.size),
            ("suite", SUITE_VERSION),
            *(("any size", cut(text, 600)) for text in report.any_size),
        ),
        properties=(("about", report.about), ("searched", report.size)),
        missed=tuple(f"{one.path.name} was not searched to its end" for one in outcomes if code == 3),
    )


def _upgrade_path(
    outcome: UpgradeOutcome, run: SavedRun | None, paths: Mapping[str, str], *, gates: bool
) -> CiCase:
    from rebalance_verifier.properties.group.clauses import CLAUSES
    from rebalance_verifier.report.terminal.exploration import run_lines

    clause = CLAUSES.get(outcome.clause or "")
    level = clause.level if clause else Level.SAFETY
    rule = CiRule(
        id=f"upgrade/{outcome.path.name}", level=level, sentence=f"this path is safe: {outcome.path.sentence}"
    )
    if outcome.verdict.value == "safe":
        return CiCase(rule=rule, status=Status.PASSED)
    if run is None or outcome.verdict.value == "inconclusive":
        return CiCase(rule=rule, status=Status.UNTESTED, note=outcome.verdict.value)
    evidence = _counterexample(run, f"{run.clause}: {run.sentence}", paths, "")
    return CiCase(
        rule=rule, status=Status.VIOLATED, gates=gates, evidence=(evidence,), text=lambda: run_lines(run)
    )
