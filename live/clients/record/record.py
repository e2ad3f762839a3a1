"""Play a scenario with real clients on a real coordinator, and write down what they say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rebalance_verifier.base.processes.program import CommandRefused, JsonLine
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.live.clients.clusters.cluster import LiveCluster, Unsupported
from rebalance_verifier.live.clients.record.coordinator import COORDINATOR
from rebalance_verifier.live.clients.record.judge import (
    CheckFinding,
    HandOver,
    QuiescencePoint,
    hand_overs,
    judge,
)
from rebalance_verifier.live.clients.record.messages import FILE, MESSAGES, with_epochs
from rebalance_verifier.live.clients.record.request import AGAIN, CLUSTER, Request
from rebalance_verifier.live.clients.record.run import ANSWER, AUDITED, RecordingRun
from rebalance_verifier.live.clients.record.scenarios import SCENARIOS, RecordingPlan, RecordingStep


@dataclass(kw_only=True)
class Recorded:
    """Result of a recording. ``unsupported``: why there is no verdict."""

    request: Request
    out: Path
    version: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    """Member -> the client in its own words."""
    played: list[RecordingStep] = field(default_factory=list)
    rests: list[QuiescencePoint] = field(default_factory=list)
    lines: list[JsonLine] = field(default_factory=list)
    messages: list[JsonLine] = field(default_factory=list)
    """What a proxy has seen of the group, where there was one."""
    findings: list[CheckFinding] = field(default_factory=list)
    hand_overs: list[HandOver] = field(default_factory=list)
    unread: int = 0
    """Records that were produced before the last rest and read by nobody by then."""
    errors: dict[str, int] = field(default_factory=dict)
    """What polls raised, and members that did not close -> how often."""
    seconds: float = 0.0
    unsupported: str = ""
    interrupted: bool = False
    saved: bool = False
    """Whether there is something in ``out``."""

    @property
    def gating(self) -> list[CheckFinding]:
        """The findings that fail the run."""
        return [one for one in self.findings if one.level != "quality"]

    @property
    def verdict(self) -> Verdict:
        """Nothing is conformant that was not played to its end, with somebody who owned something."""
        if self.gating:
            return Verdict.VIOLATION
        owned = any(line["event"] == "assigned" and line.get("partitions") for line in self.lines)
        whole = owned and self.rests and not self.unsupported and not self.interrupted
        return Verdict.CONFORMANT if whole else Verdict.INCONCLUSIVE

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.of(self.verdict, interrupted=self.interrupted)


ProgressReporter = Callable[[str], None]


def play(request: Request, cluster: LiveCluster, out: Path, report_progress: ProgressReporter) -> Recorded:
    """Record ``request`` on a cluster that runs, write OUT, judge. Ctrl-C ends it; what is known is kept."""
    started = time.monotonic()
    (out / "clients").mkdir(parents=True, exist_ok=True)
    made = Recorded(request=request, out=out, version=cluster.version)
    doing = RecordingRun(request, cluster, out)
    plan = RecordingPlan(
        members=tuple(request.members),
        stages=len(request.stages),
        together=request.together,
        seed=request.seed,
        length=None if request.duration else request.length,
    )
    several = iter(request.steps) if request.steps else SCENARIOS[request.scenario].steps(plan)
    try:
        doing.prepare()
        for number, step in enumerate(_until(several, request.duration), 1):
            report_progress(f"{number}. {step}")
            made.played.append(step)
            if step.do == "settle":
                made.rests.append(doing.settle(number))
            else:
                doing.do(step)
        made.unread = doing.read_all(ANSWER)
        doing.close()
    except KeyboardInterrupt:
        made.interrupted = True
    except (Unsupported, ToolError, CommandRefused) as error:
        made.unsupported = str(error)
    finally:
        doing.end()
        lines = [line for line in (*doing.log.lines, *doing.coordinated()) if "at" in line]
        timed = with_epochs(sorted(lines, key=lambda one: str(one["at"])))
        kept = (*MESSAGES, *COORDINATOR)
        made.messages = [line for line in timed if line["event"] in kept]
        made.lines = [line for line in timed if line["event"] not in kept]
    made.findings = judge(made.lines, made.rests)
    made.hand_overs = hand_overs(made.lines)
    for line in made.lines:
        if line["event"] == "error":
            made.errors[line["detail"]] = made.errors.get(line["detail"], 0) + 1
        if line["event"] == "started":
            made.versions[line["consumer"]] = line.get("detail", "")
    made.seconds = time.monotonic() - started
    write(made)
    return made


def _until(several: Iterator[RecordingStep], duration: float | None) -> Iterator[RecordingStep]:
    """Yield the steps, up to a rest that begins after so many seconds."""
    over = None if duration is None else time.monotonic() + duration
    for one in several:
        yield one
        if over is not None and one.do == "settle" and time.monotonic() >= over:
            return


def write(made: Recorded) -> None:
    """``events.jsonl`` for ``rebalance audit``, ``messages.jsonl`` with what was seen on the wire,
    ``reads.jsonl`` with the rest, and two reports."""
    audited: list[str] = []
    others: list[str] = []
    for line in made.lines:
        (audited if line["event"] in AUDITED else others).append(json.dumps(line) + "\n")
    (made.out / "events.jsonl").write_text("".join(audited), encoding="utf-8")
    (made.out / "reads.jsonl").write_text("".join(others), encoding="utf-8")
    if made.messages:
        messages = "".join(json.dumps(line) + "\n" for line in made.messages)
        (made.out / FILE).write_text(messages, encoding="utf-8")
    for name, value in (("run", run_data(made)), ("report", data(made))):
        (made.out / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    made.saved = True


def run_data(made: Recorded) -> dict[str, Any]:
    """Return what was played, with what: enough to play it again."""
    request = made.request
    return {
        "cluster": {"kind": request.cluster, "version": made.version},
        "request": {
            "cluster": request.cluster,
            "clients": ",".join(f"{profile}:{count}" for profile, count in request.clients),
            **{name: getattr(request, name) for name in (*AGAIN, *CLUSTER)},
        },
        "clients": {name: made.versions.get(name, str(kind)) for name, kind in request.members.items()},
        "assignors": [list(stage) for stage in request.stages],
        "protocols": list(request.protocols),
        "config": request.config(0),
        "steps": [step.data() for step in made.played],
        "rests": [asdict(rest) for rest in made.rests],
    }


def data(made: Recorded) -> dict[str, Any]:
    """Return the report for programs."""
    again = [one for one in made.hand_overs if one.offsets > 0]
    return {
        "verdict": str(made.verdict),
        "exit": int(made.exit),
        "unsupported": made.unsupported,
        "interrupted": made.interrupted,
        "notes": made.request.notes(),
        "scenario": made.request.scenario,
        "seed": made.request.seed,
        "steps": len(made.played),
        "rests": len(made.rests),
        "seconds": round(made.seconds, 3),
        "events": len(made.lines),
        "findings": [{**asdict(one), "level": one.level} for one in made.findings],
        "offsets": {
            "hand_overs": len(made.hand_overs),
            "with_duplicates": len(again),
            "duplicates": sum(one.offsets for one in again),
            "skipped": sum(-one.offsets for one in made.hand_overs if one.offsets < 0),
            "unread": made.unread,
        },
        "errors": made.errors,
    }
