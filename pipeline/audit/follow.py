"""An audit that goes on while logs are written: what it has found by now, as it finds it.

Nothing here prints or saves findings; ``report`` gets them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.installation import how_to_get
from rebalance_verifier.base.processes.supervision import record_signals
from rebalance_verifier.base.reading import fields, json_of
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.pipeline.audit import batches
from rebalance_verifier.pipeline.audit.engine import failure
from rebalance_verifier.pipeline.audit.records import LogFinding, Recording
from rebalance_verifier.pipeline.audit.result import (
    AuditPlan,
    InputError,
    Unlogged,
    judgeable,
    lacking,
    misread_text,
    silent_text,
    unlogged_text,
)
from rebalance_verifier.pipeline.audit.run import recording
from rebalance_verifier.pipeline.session import Missing

SETTINGS = "follow.json"


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Findings reported since the start. ``broken``: findings that are certain and of a level that counts."""

    findings: int = 0
    broken: int = 0
    doubtful: int = 0
    failed: str = ""
    """Why it did not come to its end: what cannot be read or written any more, in one line."""
    absent: bool = False
    """No event is about a group that was asked for, or about any."""
    gap: str = ""
    """Which lines are missing, where none of the gravest checks could have failed."""

    def and_also(self, plan: AuditPlan, new: Sequence[LogFinding]) -> Followed:
        """With these."""
        counting = [one for one in new if plan.gates(one.level)]
        certain = sum(one.certain for one in counting)
        doubtful = self.doubtful + len(counting) - certain
        findings, broken = self.findings + len(new), self.broken + certain
        return replace(self, findings=findings, broken=broken, doubtful=doubtful)

    @property
    def exit(self) -> Exit:
        """The exit code of a run that was not interrupted."""
        if self.broken:
            return Exit.VIOLATION
        unsure = self.doubtful or self.failed or self.absent or self.gap
        return Exit.INCONCLUSIVE if unsure else Exit.CONFORMANT


def follow_logs(
    plan: AuditPlan,
    every: float,
    *,
    once: bool,
    report: Callable[[Sequence[Recording]], None],
    report_absent: Callable[[Sequence[str], Sequence[str]], None],
) -> Followed:
    """Follow the one directory or file of the plan until Ctrl-C, or with ``once`` to its present end.

    Goes on where a run with the same ``plan.out`` had come to. ``report`` gets what is found as it is found,
    to be saved and shown. ``report_absent`` gets, where a group that was asked for has no event by now or
    nothing is recognised, these groups and those that have events. What cannot be read or written any more
    ends it, ``failed``. Raises InputError when that directory is of another run, and Missing.
    """
    (path,) = plan.absolute
    if not Path(path).exists():
        raise InputError(f"{path}: no such file or directory")
    _settle(plan, path)
    followed = Followed()

    def new(several: Sequence[LogFinding]) -> None:
        nonlocal followed
        today = datetime.now(UTC).date()
        found = [one for one in several if plan.wants(one, today)]
        followed = followed.and_also(plan, found)
        if found:
            report([recording(plan, one, one.places) for one in found])

    watch = batches.Watch(
        path=path,
        out=plan.out.absolute(),
        thresholds=plan.thresholds,
        report=new,
        kind=plan.kind,
        zone=plan.zone,
        now=not once,
    )
    signals: list[int] = []
    try:
        (watch.state / "spill").mkdir(parents=True, exist_ok=True)
        with record_signals(signals):
            while batches.batch(watch) and once:
                pass  # to the present end, or once before anybody waits for more
            there = batches.groups(watch)
            absent = [name for name in plan.groups if name not in there.names]
            if absent or not there.names:
                followed = replace(followed, absent=True)
                report_absent(absent, there.names)
            else:
                followed = replace(followed, gap=_gap(plan, there))
            while not once:
                time.sleep(every)
                batches.batch(watch)
    except ImportError as error:
        raise Missing(f"an audit needs DuckDB: {how_to_get('audit')}") from error
    except Exception as error:
        if signals:  # DuckDB makes an error of its own of Ctrl-C
            raise KeyboardInterrupt from error
        if not (failed := failure(error)):
            raise
        return replace(followed, failed=failed)
    return followed


def _gap(plan: AuditPlan, there: batches.SeenGroups) -> str:
    """Say what no line of the groups that are wanted tells, though the checks that are wanted need it."""
    wanted = set(plan.groups or there.names)
    blind = [len(wanted.difference(names)) for names in (there.owning, there.rebalancing)]
    if lacks := lacking(plan.chosen_checks, judgeable(plan.chosen_checks, len(wanted), *blind)):
        return lacks
    if silent := sum(there.silent.get(name, 0) for name in wanted):
        return silent_text(silent)
    absent = [
        Unlogged(name, there.members[name], there.missing[name]) for name in wanted if name in there.missing
    ]
    if absent:
        return unlogged_text(sorted(absent, key=lambda one: (-one.missing, one.group)))
    misread = sum(count for name, count in there.misread.items() if not name or name in wanted)
    return misread_text(misread) if misread else ""


def _settle(plan: AuditPlan, path: str) -> None:
    """Note what is followed in this directory, or refuse to follow something else in it."""
    settings = {"path": path, "source": plan.kind, "zone": plan.zone, **asdict(plan.thresholds)}
    file = plan.out / SETTINGS
    try:
        known = fields(json_of(file))
        differs = [name for name in settings if known.get(name) != settings[name]]
    except FileNotFoundError:
        write_whole(file, json.dumps(settings, indent=2) + "\n")
        return
    except ValueError as error:
        raise InputError(f"{file}: {error}; remove {plan.out} to begin anew") from error
    if differs:
        changes = ", ".join(f"{name} was {known.get(name)}" for name in differs)
        raise InputError(f"{plan.out} belongs to another run ({changes}): name another --out, or remove it")
