"""``make states``: how many states, how fast, in how much memory; into tools/benchmarks/explore.md.

Every row is a process of its own, so that one does not pay for another's tables. The plain engine runs
beside the fast one in the same run; ratios are what counts, seconds are those of this machine.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance.explore.engine import fast, plain
from rebalance.explore.engine.search import Limits
from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance.model.protocol.group import machine
from rebalance.properties.group.clauses import rules

HERE = Path(__file__).parent

# members, partitions, faults, steps, engine
ROWS = (
    (2, 2, 1, "atomic", "plain"),
    (2, 2, 1, "atomic", "fast"),
    (2, 2, 2, "atomic", "fast"),
    (3, 3, 0, "atomic", "plain"),
    (3, 3, 0, "atomic", "fast"),
    (3, 3, 1, "fine", "fast"),
    (3, 3, 1, "atomic", "fast"),
    (3, 3, 1, "atomic", "symmetry"),
    (4, 2, 1, "atomic", "symmetry"),
    (3, 3, 2, "atomic", "symmetry"),
)


def measure(members: int, partitions: int, budget: int, steps: str, engine: str) -> dict[str, Any]:
    """One search of the scenario ``dynamic``, as specified, to its end."""
    setup = SCENARIOS["dynamic"].setup(
        replace(ScenarioSize(), members=members, partitions=partitions, budget=budget, steps=steps)
    )
    built, required, limits = machine(setup), rules(setup), Limits(go_on=True)
    if engine == "plain":
        found = plain.explore(built, required, limits)
    else:
        found = fast.explore(built, required, limits, symmetry=engine == "symmetry")
    return {
        "distinct": found.distinct,
        "unreduced": found.unreduced,
        "generated": found.generated,
        "depth": found.depth,
        "stop": str(found.stop),
        "breaches": len(found.breaches),
        "cpu": found.cpu,
        "bytes": found.bytes_per_state,
    }


def main() -> None:
    """Measure every row and write the table."""
    columns = (
        "members x partitions", "faults", "steps", "engine", "states", "stand for", "generated", "depth",
        "CPU s", "states per CPU s", "bytes per state",
    )  # fmt: skip
    lines = [
        "# Exploring the group",
        "",
        f"Made by `make states` ({platform.machine()}, Python {platform.python_version()}). Scenario",
        "`dynamic`, as specified: COOPERATIVE members, every kind of fault but a failover, so many faults",
        "in all. *States* are those searched, *stand for* what they are without symmetry. Each row ends",
        "complete and without a breach, or says so.",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    for row in ROWS:
        command = [sys.executable, "-m", "tools.benchmarks.explore", *map(str, row)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
        got = json.loads(done.stdout)
        members, partitions, budget, steps, engine = row
        ends = "" if got["stop"] == "complete" and not got["breaches"] else f" ({got['stop']})"
        lines.append(
            f"| {members} x {partitions} | {budget} | {steps} | {engine}{ends} | {got['distinct']:,} | "
            f"{got['unreduced']:,} | {got['generated']:,} | {got['depth']} | {got['cpu']:.1f} | "
            f"{got['distinct'] / got['cpu']:,.0f} | {got['bytes']:.0f} |"
        )
        print(lines[-1], flush=True)
    (HERE / "explore.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        members, partitions, budget, steps, engine = sys.argv[1:]
        print(json.dumps(measure(int(members), int(partitions), int(budget), steps, engine)))
    else:
        main()
