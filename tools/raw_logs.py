"""Runs of ``rebalance record``, audited from what their clients logged, and from what the recorder noted.

``python -m tools.raw_logs`` records what is missing of ``PLAN`` into ``--into``, audits the text in
``clients/`` of each run and its ``events.jsonl``, and writes docs/results/raw-logs.md: how many say the same,
and what is missing where they do not. ``python -m tools.raw_logs DIR...`` does that with runs made before.
Exit 1 if fewer than 95 of 100 are alike.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebalance_verifier.live.clients.record.request import clients as parsed
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit

from tools.arguments import directory, writable

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "raw-logs.md"
ALIKE = 0.95

SCENARIOS = ("scale-out", "crash", "stall", "mixed", "random")
JAVA = ("2.4.1", "2.8.2", "3.4.1", "3.9.2", NEWEST)
PLAN = (
    *(
        ("mock", client, name, 1)
        for client in ("confluent", "kafka-python", "aiokafka")
        for name in SCENARIOS
    ),
    *(("mock", client, "random", 2) for client in ("confluent", "kafka-python", "aiokafka")),
    *(("kafka", f"java:{release}", name, 1) for release in JAVA for name in ("scale-out", "crash", "mixed")),
)
"""Cluster, client, scenario, seed."""


MISSING = {
    "kafka-python": "a line when a process starts: one that was killed and begins anew in the same file "
    "seems to own what it had",
}
"""Client -> what it does not log, by which its text says something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRun:
    """One run: the two verdicts, and what only one of them rests on, as ``check partition``."""

    name: str
    client: str
    cluster: str
    scenario: str
    of_text: str
    of_events: str
    text_only: tuple[str, ...]
    events_only: tuple[str, ...]
    lines: int
    """Of the clients' logs, that were recognised."""
    malformed: int

    @property
    def alike(self) -> bool:
        """Whether the text says what the recorder saw."""
        return self.of_text == self.of_events and not self.text_only and not self.events_only


def record(into: Path, cluster: str, client: str, scenario: str, seed: int) -> Path:
    """The directory of this run, played if it is not there."""
    out = into / f"{client.replace(':', '_')}-{cluster}-{scenario}-{seed}"
    if not (out / "report.json").exists():
        shutil.rmtree(out, ignore_errors=True)
        argv = [sys.executable, "-m", "rebalance_verifier", "record", "--cluster", cluster]
        argv += ["--clients", f"{client}:3", "--scenario", scenario, "--seed", str(seed), "--out", str(out)]
        print(" ".join(argv[2:]), flush=True)
        subprocess.run(argv, capture_output=True, check=False, timeout=600)
    return out


def compared(run: Path) -> RawRun | None:
    """Both audits of a run; None where it did not come to its end."""
    try:
        made = json.loads((run / "run.json").read_text(encoding="utf-8"))
        empty = not (run / "events.jsonl").stat().st_size
        request, interrupted = made["request"], made.get("interrupted")
    except (AttributeError, LookupError, OSError, TypeError, ValueError):
        return None
    if empty or interrupted:
        return None
    text, events = _audit(run / "clients"), _audit(run / "events.jsonl")
    seen, known = _certain(text), _certain(events)
    return RawRun(
        name=run.name,
        client=", ".join(sorted({str(profile) for profile, _ in parsed(request["clients"])})),
        cluster=str(request["cluster"]),
        scenario=str(request["scenario"]),
        of_text=text.verdict.value,
        of_events=events.verdict.value,
        text_only=tuple(sorted(seen - known)),
        events_only=tuple(sorted(known - seen)),
        lines=sum(source.recognised for source in text.sources),
        malformed=text.malformed,
    )


def _audit(path: Path) -> Audited:
    with tempfile.TemporaryDirectory() as out:
        return run_audit(AuditPlan(paths=(str(path),), out=Path(out)))


def _certain(audit: Audited) -> set[str]:
    """What the verdict rests on: certain findings of a level that fails a run."""
    gating = (one for one in audit.findings if one.certain and audit.plan.gates(one.level))
    return {f"{one.check} {one.about}".strip() for one in gating}


# -- the page ------------------------------------------------------------------------------------------


def page(runs: Sequence[RawRun]) -> str:
    """The whole of it."""
    alike = sum(run.alike for run in runs)
    lines = [
        "# Audited from text alone",
        "",
        "Made by `python -m tools.raw_logs`. Each run of `rebalance record` is audited twice: from the text",
        "that its clients logged, and from the events that the recorder noted in the callbacks. Alike means:",
        "the same verdict, and the same certain findings of safety and liveness, by check and partition.",
        "",
        f"**{alike} of {len(runs)} runs are alike ({alike / max(1, len(runs)):.0%}).**",
        "",
        "| client | cluster | runs | alike | with a violation | lines that were read | not understood |",
        "|---|---|---|---|---|---|---|",
        *_by_client(runs),
        "",
        "## What differs",
        "",
        *_differences([run for run in runs if not run.alike]),
    ]
    return "\n".join(lines) + "\n"


def _by_client(runs: Iterable[RawRun]) -> Iterator[str]:
    several: dict[tuple[str, str], list[RawRun]] = defaultdict(list)
    for run in runs:
        several[run.client, run.cluster].append(run)
    for (client, cluster), mine in sorted(several.items()):
        violated = sum(run.of_events == "violation" for run in mine)
        figures = (len(mine), sum(run.alike for run in mine), violated)
        read = f"{sum(run.lines for run in mine):,} | {sum(run.malformed for run in mine):,}"
        yield f"| {client} | {cluster} | {' | '.join(map(str, figures))} | {read} |"


def _differences(runs: Sequence[RawRun]) -> Iterator[str]:
    if not runs:
        yield "Nothing."
        return
    yield "| run | of the text | of the events | only in the text | only in the events | what is missing |"
    yield "|---|---|---|---|---|---|"
    for run in runs:
        only = (", ".join(one) or "-" for one in (run.text_only, run.events_only))
        missing = MISSING.get(run.client, "nobody has looked at it yet")
        yield f"| {run.name} | {run.of_text} | {run.of_events} | {' | '.join(only)} | {missing} |"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "made", nargs="*", type=directory, metavar="DIR", help="runs made before; none are played"
    )
    parser.add_argument("--into", type=Path, default=ROOT / ".rebalance" / "raw-logs", metavar="DIR")
    parser.add_argument("--page", type=writable, default=PAGE)
    options = parser.parse_args()
    if not options.made:
        try:
            options.into.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--into: {error}")
    made = options.made or [record(options.into, *one) for one in PLAN]
    runs = [found for found in map(compared, made) if found is not None]
    if runs:
        options.page.write_text(page(runs), encoding="utf-8")
    alike = sum(run.alike for run in runs)
    print(
        f"{options.page}: {alike} of {len(runs)} runs alike; {len(made) - len(runs)} did not come to an end"
    )
    return int(not runs or alike / len(runs) < ALIKE)


if __name__ == "__main__":
    sys.exit(main())
