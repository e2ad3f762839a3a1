"""Auditing the logs of groups that ran."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.api.judgement import JudgedFinding, Judgement, judgement_of, judging, one_of, several
from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.verdict import Level

if TYPE_CHECKING:
    from rebalance_verifier.pipeline.audit.records import LogFinding
    from rebalance_verifier.pipeline.audit.result import Audited


def audit(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    groups: Sequence[str] = (),
    checks: Sequence[str] = (),
    level: str = "liveness",
    known: Sequence[str] = (),
    source: str | None = None,
    zone: str = "UTC",
    date: str | None = None,
    clock_skew: float | None = None,
    stranded: float = 60.0,
    settle: float = 300.0,
    storm: tuple[int, float] = (10, 600.0),
    pause: float = 300.0,
    out: str | os.PathLike[str] | None = None,
) -> Judgement:
    """Judge the logs of consumers and brokers, as `rebalance audit` does; needs the extra `audit`.

        answer = audit(["a.log", "logs/"])
        for finding in answer.findings:
            print(finding.clause, finding.about, finding.summary)

    Args:
        paths: files, directories and globs, compressed or not.
        groups: only the groups of these names.
        checks: only these of `rebalance list checks`.
        level: the weakest level that makes the verdict a violation: safety, liveness or quality.
        known: findings to expect: ids, patterns or "@FILE".
        source: only lines of one kind, such as "java", "kgo" or "broker" (each is recognised).
        zone: the time zone of times that do not say theirs, such as "Europe/Berlin" or "+02:00".
        date: the day of times that do not say theirs, as "YYYY-MM-DD".
        clock_skew: seconds by which the clocks of two hosts may differ (estimated from the logs).
        stranded: seconds that a partition may be without an owner.
        settle: seconds that a rebalance may take.
        storm: so many rebalances in so many seconds are too many.
        pause: seconds that a rebalance may keep a partition from everybody.
        out: a directory for the tables of the audit, in Parquet (none are kept).

    Logs in which nothing is recognised are inconclusive. Raises CannotJudge.
    """
    from rebalance_verifier.base.known import KnownError
    from rebalance_verifier.pipeline.audit import known as lists
    from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds
    from rebalance_verifier.pipeline.audit.result import AuditPlan, InputError, day_of, keep_apart, zone_of
    from rebalance_verifier.pipeline.audit.run import run_audit
    from rebalance_verifier.pipeline.audit.sources.parsing import KINDS
    from rebalance_verifier.pipeline.session import Missing

    logs = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    storm_count, storm_seconds = storm
    with ExitStack() as stack, judging(InputError, KnownError, Missing, OSError):
        plan = AuditPlan(
            paths=tuple(logs),
            out=Path(out) if out is not None else stack.enter_context(scratch("audit")),
            keeps=out is not None,
            kind=source and one_of("source", source, KINDS),
            zone=zone_of(zone),
            date=date and day_of(date),
            groups=several(groups),
            checks=tuple(one_of("checks", check, CHECKS) for check in several(checks)),
            level=one_of("level", level, Level),
            known=lists.read(several(known), "known"),
            thresholds=Thresholds(
                stranded=stranded,
                settle=settle,
                storm=storm_count,
                storm_within=storm_seconds,
                pause=pause,
                clock_skew=clock_skew,
            ),
        )
        keep_apart(None if out is None else str(out), logs)
        plan.out.mkdir(parents=True, exist_ok=True)
        found = run_audit(plan)
    return _judgement(found)


def _judgement(audit: Audited) -> Judgement:
    """Return the answer that a finished audit gives."""
    from rebalance_verifier.report.html import audit as page
    from rebalance_verifier.report.terminal import audit as text

    findings = (_finding(audit, finding) for finding in audit.findings)
    return judgement_of(
        audit, findings, text.headline, document=text.data, text=text.render, page=page.render
    )


def _finding(audit: Audited, one: LogFinding) -> JudgedFinding:
    from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
    from rebalance_verifier.pipeline.audit.run import recording
    from rebalance_verifier.traces import recordings

    saved = {each.finding.id: each for each in audit.recordings}
    document = saved.get(one.id) or recording(audit.plan, one, one.places)
    return JudgedFinding(
        clause=one.check,
        level=Level(one.level),
        rule=CHECKS[one.check].sentence,
        summary=one.sentence,
        about=f"{one.group} {one.about}".rstrip(),
        certain=one.certain,
        gates=audit.plan.gates(one.level),
        _text=partial(recordings.to_text, document),
        _save=partial(recordings.save, document),
    )
