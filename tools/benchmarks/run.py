"""``make bench``: the reference assignor beside its peer, in one run on one machine, as a table.

Ratios are what counts; seconds are those of this machine. Written to tools/benchmarks/results.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import SMALL, generate
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Writer
from rebalance_verifier.properties.assignors.clauses import TABLE

HERE = Path(__file__).parent
SUBJECT, PEER = "cooperative-sticky", "kafka-python:cooperative-sticky"


def measure(target: str, case: str, limit: float) -> dict[str, float] | str:
    """Seconds and peak memory of one case, or why there are none."""
    command = [sys.executable, str(HERE / "measure.py"), target, case]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"not finished in {limit:.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()
        return f"failed: {last[-1] if last else done.returncode}"
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def assignors(limit: float) -> list[str]:
    sys.path.insert(0, str(HERE.parent))
    from tools.benchmarks.measure import CASES

    rows = [
        f"| case | {SUBJECT} | peak MiB | {PEER} {version('kafka-python')} | peak MiB | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for case in CASES:
        ours, theirs = measure(SUBJECT, case, limit), measure(PEER, case, limit)
        ratio = "-"
        if isinstance(ours, dict):
            rest = theirs["seconds"] if isinstance(theirs, dict) else limit
            more = "" if isinstance(theirs, dict) else "> "
            if isinstance(theirs, dict) or theirs.startswith("not finished"):
                ratio = f"{more}{rest / ours['seconds']:.0f}x"
        rows.append(f"| {case} | {_cells(ours)} | {_cells(theirs)} | {ratio} |")
        print(rows[-1], flush=True)
    return rows


def _cells(measured: dict[str, float] | str) -> str:
    if isinstance(measured, str):
        return f"{measured} | "
    return f"{measured['seconds'] * 1000:,.1f} ms | {measured['mib']:,.0f}"


def gate() -> list[str]:
    """What a scenario costs: drawing it, asking a process, judging the answer."""
    count = 400
    started = time.perf_counter()
    cooperative = RebalanceProtocol.COOPERATIVE
    scenarios = [generate(Seeded(n), cooperative, ("unequal", "faults"), SMALL) for n in range(count)]
    drawing = time.perf_counter() - started
    with Session(resolve(SUBJECT)) as session:
        hello, writer = session.hello, Writer.of(session.user_data_of)
        started = time.perf_counter()
        records = [play(s, session.assign, writer, TABLE, hello.promises) for s in scenarios]
        playing = time.perf_counter() - started
    calls = sum(r.questions for r in records)
    return [
        "| gate | figure |",
        "|---|---|",
        f"| scenarios drawn per second | {count / drawing:,.0f} |",
        f"| scenarios played and judged per second, target in its own process | {count / playing:,.0f} |",
        f"| questions put to the target per second, judging included | {calls / playing:,.0f} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=40, help="seconds for one measurement")
    options = parser.parse_args()
    machine = f"{platform.machine()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    lines = [
        "# Benchmarks",
        "",
        f"Made by `make bench` ({machine}). Time is that of `assign()` alone, each case in a fresh process.",
        "",
        *assignors(options.limit),
        "",
        *gate(),
        "",
    ]
    (HERE / "results.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
