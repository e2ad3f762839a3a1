"""``python -m tools.benchmarks.exploration``: the engine on Spark beside the fast one, into exploration.md.

Every row is a process of its own. Times of Spark begin when its session stands; processor time and memory are
those of the whole family of processes (driver, Java, Python workers), as Linux counts them in /proc.
With arguments (MEMBERS PARTITIONS FAULTS ENGINE), one row as JSON.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.pipeline.exploration.exploration import explore, group
from rebalance_verifier.pipeline.session import session

HERE = Path(__file__).parent
HERTZ = os.sysconf("SC_CLK_TCK")

# members, partitions, faults, engine: fast, or cores for Spark; s for symmetry
ROWS = (
    (3, 3, 1, "fast s"),
    (3, 3, 1, "local[2] s"),
    (2, 2, 2, "fast"),
    (2, 2, 2, "local[1]"),
    (2, 2, 2, "local[2]"),
)


class Family(NamedTuple):
    """What this process and all below it have used: seconds of processor time, bytes resident at most."""

    cpu: float
    memory: int


def family() -> Family:
    """As of now; of those that have ended, the time only."""
    children: dict[int, list[int]] = {}
    own: dict[int, Family] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                status = (process / "status").read_text()
            except OSError:  # it has ended
                continue
            peak = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
            children.setdefault(int(fields[1]), []).append(int(process.name))
            own[int(process.name)] = Family(
                sum(map(int, fields[11:15])) / HERTZ, 1024 * int(peak[0]) if peak else 0
            )
    cpu, memory, left = 0.0, 0, [os.getpid()]
    while left:
        one = left.pop()
        left += children.get(one, [])
        cpu, memory = cpu + own[one].cpu, memory + own[one].memory
    return Family(cpu, memory)


def measure(members: int, partitions: int, budget: int, engine: str) -> dict[str, Any]:
    """One search of the scenario ``dynamic``, as specified, to its end."""
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=members, partitions=partitions, budget=budget))
    build, limits, symmetry = partial(group, setup), Limits(go_on=True), engine.endswith(" s")
    disk = 0
    if engine.startswith("fast"):
        before, clock = family(), time.monotonic()
        found = fast.explore(*build(), limits, symmetry=symmetry)
        seconds, after = time.monotonic() - clock, family()
    else:
        master = engine.removesuffix(" s")
        with tempfile.TemporaryDirectory() as where, session(master, memory="2g") as spark:
            spark.range(10).count()
            before, clock = family(), time.monotonic()
            found = explore(spark, build, where, limits, symmetry=symmetry)
            seconds, after = time.monotonic() - clock, family()
            disk = sum(path.stat().st_size for path in Path(where, "levels").rglob("*.parquet"))
    return {
        "distinct": found.distinct,
        "generated": found.generated,
        "levels": len(found.levels),
        "complete": found.complete and not found.breaches,
        "seconds": seconds,
        "cpu": after.cpu - before.cpu,
        "memory": after.memory,
        "disk": disk,
        "load": os.getloadavg()[0],
    }


HEAD = """# Exploring on Spark

Made by `python -m tools.benchmarks.exploration` ({machine}, Python {python}). Scenario `dynamic`, as
specified, to its end; *s* is with symmetry. Times of Spark begin when its session stands. *CPU s* and
*memory* are those of driver, Java and Python workers together. *Load* is that of the machine at the end of
the row: where it is above the number of cores the wall seconds are those of a crowded machine, and CPU
seconds the better figure.

"""
TABLE = ("group, faults", "engine", "states", "generated", "levels", "wall s", "CPU s", "s per level",
         "memory MB", "disk bytes per state", "load")  # fmt: skip

TAIL = """
The fast engine keeps each state in 60 to 100 bytes of one process ([explore.md](explore.md)). Spark keeps
what the column *disk* says on disk, and in memory its own needs, the tables of each worker (which grow with
the values of components, not with the states) and what a stage shuffles. So by calculation it
overtakes where states times 64 bytes are more than the machine has, about 250 million for 16 GB; no search
that large has been run. Before that the fast engine
is an order of magnitude cheaper on any number of cores measured here.
"""


def line(row: tuple[int, int, int, str], result: dict[str, Any]) -> str:
    """A row of the table."""
    members, partitions, budget, engine = row
    assert result["complete"]
    states, levels = result["distinct"], result["levels"]
    cells = [
        *(f"{members} x {partitions}, {budget}", engine, f"{states:,}", f"{result['generated']:,}", levels),
        *(f"{result['seconds']:.1f}", f"{result['cpu']:.1f}", f"{result['seconds'] / levels:.2f}"),
        *(f"{result['memory'] / 1e6:,.0f}", f"{result['disk'] / states:.1f}", f"{result['load']:.1f}"),
    ]
    return f"| {' | '.join(map(str, cells))} |\n"


def main() -> None:
    if len(sys.argv) > 1:
        members, partitions, budget = map(int, sys.argv[1:4])
        print(json.dumps(measure(members, partitions, budget, sys.argv[4])))
        return
    text = HEAD.format(machine=platform.machine(), python=platform.python_version())
    text += f"| {' | '.join(TABLE)} |\n{'|---' * len(TABLE)}|\n"
    seen: dict[tuple[int, int, int], tuple[int, int]] = {}
    for row in ROWS:
        argv = [sys.executable, "-m", "tools.benchmarks.exploration", *map(str, row)]
        ran = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(ran.stdout.splitlines()[-1])
        counts = result["distinct"], result["generated"]
        assert seen.setdefault(row[:3], counts) == counts, (row, result)
        text += line(row, result)
        print(text.splitlines()[-1], flush=True)
        (HERE / "exploration.md").write_text(text + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
