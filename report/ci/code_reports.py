"""What a command that plays real code found, as cases: one function a command. See ``report.ci.cases``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.live.clients.record.judge import CHECKS, CheckFinding
from rebalance_verifier.live.clients.record.record import Recorded
from rebalance_verifier.live.code.lockstep.system import lines_of
from rebalance_verifier.live.code.lockstep.walks import LockstepResult
from rebalance_verifier.live.code.search.findings import CodeFinding
from rebalance_verifier.live.code.search.runs import saved_run
from rebalance_verifier.live.code.search.walks import CodeSearchResult
from rebalance_verifier.live.conformance.ask import ConformanceAnswer
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.report.ci.cases import CiCase, CiReport, CiRule, Evidence
from rebalance_verifier.report.diagram.run_diagram import of_run
from rebalance_verifier.report.terminal import code_search, conformance, lockstep, recording

IN_STEP = CiRule(
    id="conform/in-step",
    level=Level.SAFETY,
    sentence="the model and Kafka's own code look alike after each step",
)
ALLOWED = CiRule(
    id="conform/allowed",
    level=Level.SAFETY,
    sentence="the recording is a run of the model",
)
THROWS = "Kafka's code throws nothing where no application sees it"

_STATUS = {Verdict.CONFORMANT: Status.PASSED, Verdict.VIOLATION: Status.VIOLATED}


def in_step(result: LockstepResult, scenario: str) -> CiReport:
    """Return a finished ``rebalance conform --code``."""
    first = result.disagreement
    evidence = () if first is None else (
        Evidence(message=first.cause, chart=lambda: list(map(clean, lines_of(first))),
                 facts=(("what", lockstep.shortest_title(result)),)),
    )  # fmt: skip
    case = CiCase(rule=IN_STEP, status=_status(result.verdict), note=result.stopped, evidence=evidence)
    return CiReport(
        command="conform",
        subject=scenario,
        headline=lockstep.headline(result, scenario),
        verdict=result.verdict,
        exit=Exit.of(result.verdict, interrupted=result.interrupted),
        cases=(case,),
        facts=(("scenario", scenario), *lockstep.facts(result)),
        properties=(("code", str(result.plan.releases)), ("seed", str(result.plan.seed))),
        interrupted=result.interrupted,
    )


def searched(
    result: CodeSearchResult, command: str, subject: str, paths: Mapping[tuple[str, str], str]
) -> CiReport:
    """Return a finished ``rebalance explore --on`` or ``check --in-group``; ``paths`` as in the text."""
    broken: dict[str, list[CodeFinding]] = {}
    for one in result.findings:
        broken.setdefault(one.breach.clause, []).append(one)
    unasked = Status.PASSED if result.verdict is not Verdict.INCONCLUSIVE else Status.UNTESTED
    cases = tuple(
        CiCase(
            rule=_clause(clause),
            status=Status.VIOLATED if clause in broken else unasked,
            evidence=tuple(_run(result, one, paths) for one in broken.get(clause, ())),
        )
        for clause in dict.fromkeys((*broken, *result.plan.asked_clauses))
    )
    return CiReport(
        command=command,
        subject=subject,
        headline=code_search.headline(result, subject),
        verdict=result.verdict,
        exit=Exit.of(result.verdict, interrupted=result.interrupted),
        cases=cases,
        facts=(("subject", subject), *code_search.facts(result)),
        properties=(("on", str(result.plan.releases)), ("seed", str(result.plan.seed))),
        interrupted=result.interrupted,
    )


def _clause(name: str) -> CiRule:
    clause = CLAUSES.get(name)
    if clause is None:
        return CiRule(id="code/throws", level=Level.SAFETY, sentence=THROWS)
    return CiRule(id=clause.id, level=clause.level, sentence=clause.sentence, source=clause.source)


def _run(result: CodeSearchResult, one: CodeFinding, paths: Mapping[tuple[str, str], str]) -> Evidence:
    path = paths.get(one.cause, "")
    run = saved_run(one, result.plan, {}) if one.steps else None
    return Evidence(
        message=one.breach.sentence,
        path=path,
        cause=one.breach.cause,
        facts=(("found", code_search.how_found(one)),),
        chart=lambda: [f"{number:3} {event_text(event)}" for number, event in enumerate(one.events, 1)],
        command=f"rebalance show {path}" if path else "",
        draw=None if run is None else partial(of_run, run),
    )


def conforming(answer: ConformanceAnswer) -> CiReport:
    """Return a finished ``rebalance conform`` of a recording."""
    found, group = answer.conformance, answer.question.recorded.group
    message = next(iter(conformance.mismatch(answer)), "").strip() if found.blamed is not None else ""
    evidence = (Evidence(message=message, chart=partial(conformance.mismatch, answer)),) if message else ()
    case = CiCase(rule=ALLOWED, status=_status(found.judgement), note=found.why, evidence=evidence)
    return CiReport(
        command="conform",
        subject=str(answer.question.recorded.path),
        headline=conformance.headline(answer),
        verdict=found.judgement,
        exit=Exit.of(found.judgement),
        cases=(case,),
        facts=(("group", group), ("searched", f"{found.searched:,} states and events")),
        missed=(found.why,) if found.why else (),
    )


def recorded(made: Recorded) -> CiReport:
    """Return a finished ``rebalance record``: a case for each check."""
    broken: dict[str, list[CheckFinding]] = {}
    for one in made.findings:
        broken.setdefault(one.check, []).append(one)
    unasked = Status.PASSED if made.verdict is not Verdict.INCONCLUSIVE else Status.UNTESTED
    cases = tuple(
        CiCase(
            rule=CiRule(id=f"record/{check.id}", level=Level(check.level), sentence=check.sentence),
            status=Status.VIOLATED if check.id in broken else unasked,
            gates=check.level != Level.QUALITY,
            evidence=tuple(Evidence(message=recording.line(one)) for one in broken.get(check.id, ())),
        )
        for check in CHECKS.values()
    )
    return CiReport(
        command="record",
        subject=made.request.scenario,
        headline=recording.headline(made),
        verdict=made.verdict,
        exit=made.exit,
        cases=cases,
        tally=count(len(made.findings), "finding"),
        seconds=made.seconds,
        facts=(("scenario", made.request.scenario), ("played", count(len(made.played), "step"))),
        properties=(("seed", str(made.request.seed)),),
        missed=(made.unsupported,) if made.unsupported else (),
        interrupted=made.interrupted,
    )


def _status(verdict: Verdict) -> Status:
    return _STATUS.get(verdict, Status.UNTESTED)
