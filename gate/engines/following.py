"""An audit that goes on while logs are written: what it has found by now, as it finds it.

Nothing here prints; ``report_findings`` gets the findings.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rebalance.gate.engines.auditing import (
    AuditPlan,
    InputError,
    as_findings,
    noticed,
    of_spark,
    spark_message,
)
from rebalance.gate.traces import files, recordings
from rebalance.pipeline.audit.findings import CHECKS
from rebalance.pipeline.audit.records import LogFinding, Recording
from rebalance.pipeline.session import session
from rebalance.properties.verdict import Exit

SETTINGS = "follow.json"


@dataclass(frozen=True)
class Followed:
    """What was told since the start. ``broken``: findings that are certain and of a level that counts."""

    findings: int = 0
    broken: int = 0
    doubtful: int = 0
    failed: str = ""
    """Why it did not come to its end: what cannot be read or written any more, in one line."""

    def and_also(self, plan: AuditPlan, new: Sequence[LogFinding]) -> Followed:
        """With these."""
        counting = [one for one in new if plan.gates(one.level)]
        certain = sum(one.certain for one in counting)
        doubtful = self.doubtful + len(counting) - certain
        return Followed(self.findings + len(new), self.broken + certain, doubtful, self.failed)

    @property
    def exit(self) -> Exit:
        """The exit code of a run that was not interrupted."""
        if self.broken:
            return Exit.VIOLATION
        return Exit.INCONCLUSIVE if self.doubtful or self.failed else Exit.CONFORMANT


def follow(
    plan: AuditPlan, every: float, *, once: bool, report_findings: Callable[[Sequence[LogFinding]], None]
) -> Followed:
    """Follow the one directory or file of the plan until Ctrl-C, or with ``once`` to its present end.

    Goes on where a run with the same ``plan.out`` had come to. Each finding is saved as a trace below it and
    then told. What cannot be read or written any more ends it, ``failed``. Raises InputError when that
    directory is of another run, SparkMissing, and KeyboardInterrupt.
    """
    (path,) = plan.absolute
    if not Path(path).exists():
        raise InputError(f"{path}: no such file or directory")
    _settle(plan, path)
    followed = Followed()

    def new(frame: Any) -> None:
        nonlocal followed
        found = [one for one in as_findings(frame) if not plan.checks or one.check in plan.checks]
        found = [one for one in found if not plan.groups or one.group in plan.groups]
        for one in found:
            check = CHECKS[one.check]
            suite = version("rebalance-verifier")
            saved = Recording(
                finding=one,
                rule=check.sentence,
                source=check.source,
                events=one.places,
                origin=plan.origin,
                suite_version=suite,
            )
            recordings.save(saved, plan.out / "traces")
        followed = followed.and_also(plan, found)
        if found:
            report_findings(found)

    from rebalance.pipeline.audit.follow import Watch, follow

    watch = Watch(
        path=path,
        out=plan.out.absolute(),
        thresholds=plan.thresholds,
        report=new,
        kind=plan.kind,
        zone=plan.zone,
        every=every,
        now=not once,
    )
    signals: list[int] = []
    try:
        with session(plan.master, memory=plan.memory) as spark, noticed(signals):
            query = follow(spark, watch, once=once)
            try:
                query.awaitTermination()
            finally:
                query.stop()
    except Exception as error:
        if signals:
            raise KeyboardInterrupt from error
        if not (failed := failure(error)):
            raise
        return replace(followed, failed=failed)
    return followed


def failure(error: Exception) -> str:
    """What could not be read or written any more, in one line; nothing if a mistake of ours ended the stream.

    Of an exception that was raised in Python while Spark called it, Spark shows the traceback; the lines
    without indent name what was raised.
    """
    text = str(error)
    if not of_spark(error):
        return ""
    if "Traceback (most recent call last)" not in text:
        return spark_message(error).rpartition("terminated with exception: ")[2]
    for name, why in re.findall(r"^((?:\w+\.)*\w+): (.+)$", text, re.M):
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, OSError):
            return str(why)
        if name.startswith(("py4j.", "pyspark.")) and not name.endswith("AnalysisException"):
            return str(why)
    return ""


def _settle(plan: AuditPlan, path: str) -> None:
    """Note what is followed in this directory, or refuse to follow something else in it."""
    settings = {"path": path, "source": plan.kind, "zone": plan.zone, **asdict(plan.thresholds)}
    file = plan.out / SETTINGS
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        files.write(file, json.dumps(settings, indent=2) + "\n")
        return
    except ValueError as error:
        raise InputError(f"{file}: {error}; remove {plan.out} to begin anew") from error
    differs = [name for name in settings if known.get(name) != settings[name]]
    if differs:
        changes = ", ".join(f"{name} was {known.get(name)}" for name in differs)
        raise InputError(f"{plan.out} belongs to another run ({changes}): name another --out, or remove it")
