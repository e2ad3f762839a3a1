"""``make states``: how many states, how fast, in how much memory; into tools/benchmarks/explore.md.

Every row is a process of its own, so that one does not pay for another's tables. The plain engine runs
beside the fast one in the same run; ratios are what counts, seconds are those of this machine.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

HERE = Path(__file__).parent

# members, partitions, faults, steps, engine; of the scenario `dynamic`, as specified
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

# members, partitions, faults; each as corrected and as shipped
BROKEN = tuple(
    (name, *size) for name in ("connections", "static-connections") for size in ((3, 3, 1), (2, 2, 2))
)

# scenario, members, partitions, faults: of the classic protocol, and beside it of KIP-848
BESIDE = (
    ("dynamic", 2, 2, 2),
    ("consumer", 2, 2, 2),
    ("mixed", 3, 2, 1),
    ("migration", 3, 2, 1),
    ("failover", 2, 2, 2),
    ("migration-failover", 2, 2, 2),
)

COUNTS = ("states", "stand for", "generated", "depth", "CPU s", "states per CPU s", "bytes per state")


def measure(scenario: str, members: int, partitions: int, budget: int, *how: str) -> dict[str, Any]:
    """One search to its end: fine or atomic steps, the engine, and with "shipped" of what is released."""
    steps, engine, *shipped = how
    size = ScenarioSize(members=members, partitions=partitions, budget=budget, steps=steps)
    if shipped:
        size = replace(size, profiles=("java-current",), broker="broker-current")
    setup = SCENARIOS[scenario].setup(size)
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
        "breaches": [(breach.clause, breach.depth) for breach in found.breaches],
        "cpu": found.cpu,
        "bytes": found.bytes_per_state,
    }


def measured(*row: object) -> dict[str, Any]:
    """`measure` in a process of its own."""
    command = [sys.executable, "-m", "tools.benchmarks.explore", *map(str, row)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parents[1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cells(got: dict[str, Any]) -> str:
    """What is counted, as the last cells of a row."""
    return (
        f"{got['distinct']:,} | {got['unreduced']:,} | {got['generated']:,} | {got['depth']} | "
        f"{got['cpu']:.1f} | {got['distinct'] / got['cpu']:,.0f} | {got['bytes']:.0f} |"
    )


def head(*columns: str) -> list[str]:
    """The head of a table."""
    return [f"| {' | '.join((*columns, *COUNTS))} |", "|---" * (len(columns) + len(COUNTS)) + "|"]


def dynamic() -> Iterator[str]:
    """The rows of the first table."""
    for row in ROWS:
        got = measured("dynamic", *row)
        members, partitions, budget, steps, engine = row
        ends = "" if got["stop"] == "complete" and not got["breaches"] else f" ({got['stop']})"
        yield f"| {members} x {partitions} | {budget} | {steps} | {engine}{ends} | {cells(got)}"


def broken() -> Iterator[str]:
    """The rows of the second table."""
    for scenario, members, partitions, budget in BROKEN:
        for shipped in ([], ["shipped"]):
            got = measured(scenario, members, partitions, budget, "atomic", "symmetry", *shipped)
            assert got["stop"] == "complete"
            says = ", ".join(f"{clause} ({depth})" for clause, depth in got["breaches"]) or "-"
            kind = "as shipped" if shipped else "as corrected"
            yield f"| {scenario} | {members} x {partitions} | {budget} | {kind} | {says} | {cells(got)}"


def beside() -> Iterator[str]:
    """The rows of the third table."""
    for scenario, members, partitions, budget in BESIDE:
        got = measured(scenario, members, partitions, budget, "atomic", "fast")
        assert got["stop"] == "complete"
        assert not got["breaches"]
        yield f"| {scenario} | {members} x {partitions} | {budget} | {cells(got)}"


BESIDE_HEAD = (
    "",
    "## Beside each other",
    "",
    "The classic protocol, consumer groups of KIP-848, and groups between the two, as specified, without",
    "symmetry. A search of few states pays for its tables: rates of searches of one size compare.",
    "",
    *head("scenario", "members x partitions", "faults"),
)


def main() -> None:
    """Measure every row and write the page."""
    lines = [
        "# Exploring the group",
        "",
        f"Made by `make states` ({platform.machine()}, Python {platform.python_version()}). Scenario",
        "`dynamic`, as specified: COOPERATIVE members, every kind of fault but a failover, so many faults",
        "in all. *States* are those searched, *stand for* what they are without symmetry. Each row ends",
        "complete and without a breach, or says so.",
        "",
        *head("members x partitions", "faults", "steps", "engine"),
    ]
    for line in dynamic():
        lines.append(line)
        print(line, flush=True)
    lines += [
        "",
        "## Connections that break",
        "",
        "Scenarios `connections` and `static-connections`, every kind of fault that they have, with",
        "symmetry, to the end: as corrected, and as Java and its broker ship it today (`java-current`,",
        "`broker-current`). *Breaks* are the clauses that break, each with the number of steps of its",
        "shortest run.",
        "",
        *head("scenario", "members x partitions", "faults", "protocol", "breaks"),
    ]
    for line in broken():
        lines.append(line)
        print(line, flush=True)
    lines += BESIDE_HEAD
    for line in beside():
        lines.append(line)
        print(line, flush=True)
    (HERE / "explore.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        scenario, members, partitions, budget, *how = sys.argv[1:]
        print(json.dumps(measure(scenario, int(members), int(partitions), int(budget), *how)))
    else:
        main()
