"""What a campaign costs beside its scenarios, and gains from cores, into tools/benchmarks/campaign.md.

``python -m tools.benchmarks.campaign [SCENARIOS] [TARGET]`` plays the same scenarios with the same player in
ways each of which starts with nothing and ends when all rows are there, with one process and with two: a pool
(``multiprocessing``, rows kept in memory), a campaign by processes of this machine (a forked child for each
chunk, Parquet), and one on Spark (the start of the JVM besides). CPU seconds are those of the process and its
descendants. Spark runs once before, so that its Java has the file of its classes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rebalance_verifier.base.processes.supervision import family
from rebalance_verifier.model.values import CLASSIC
from rebalance_verifier.pipeline.campaign.assignor import TargetPlayer
from rebalance_verifier.pipeline.campaign.campaign import PlaySeed, seed_of

SLICE = 20_000
ENGINES = ("pool of 1", "campaign of 1", "local[1]", "pool of 2", "campaign of 2", "local[2]")
_TICK = os.sysconf("SC_CLK_TCK")


def player_of(target: str) -> TargetPlayer:
    """The player of all ways: an assignor of the classic protocol."""
    return TargetPlayer(spec=target, protocols=CLASSIC)


def main() -> None:
    if len(sys.argv) > 3:
        print(json.dumps(_measured(sys.argv[3], int(sys.argv[1]), sys.argv[2])))
        return
    scenarios = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    target = sys.argv[2] if len(sys.argv) > 2 else "cooperative-sticky"
    found = {}
    _in_own_process("local[1]", 1, target)
    for engine in ENGINES:
        found[engine] = _in_own_process(engine, scenarios, target)
        print(engine, found[engine], flush=True)
    if len({json.dumps(one["verdicts"]) for one in found.values()}) != 1:
        raise SystemExit(f"they disagree: {found}")
    text = _text(scenarios, target, found)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


def _in_own_process(engine: str, scenarios: int, target: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "tools.benchmarks.campaign", str(scenarios), target, engine]
    ran = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)  # type: ignore[no-any-return]


def _measured(engine: str, scenarios: int, target: str) -> dict[str, Any]:
    """Play all of them one way: wall and CPU seconds, and how many there were of each verdict."""
    load = os.getloadavg()[0]
    began = time.monotonic()
    if engine.startswith("pool"):
        verdicts = _pool(int(engine.rpartition(" ")[2]), scenarios, target)
        cpu = sum(
            sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
    else:
        verdicts, cpu = _campaign(engine, scenarios, target)
    wall = time.monotonic() - began
    return {"wall": wall, "cpu": cpu, "load": load, "verdicts": dict(sorted(verdicts.items()))}


# -- multiprocessing ---------------------------------------------------------------------------------------

_stack = ExitStack()
_play: list[PlaySeed] = []


def _ready(target: str) -> None:
    _play[:] = [_stack.enter_context(player_of(target).playing())]


def _one(number: int) -> tuple[Any, ...]:
    began = time.perf_counter_ns()
    return (number, *_play[0](seed_of(0, number), number), time.perf_counter_ns() - began)


def _pool(processes: int, scenarios: int, target: str) -> Counter[str]:
    with multiprocessing.Pool(processes, partial(_ready, target)) as pool:
        rows = list(pool.imap_unordered(_one, range(scenarios), chunksize=500))
        pool.close()
        pool.join()
    return Counter(row[1] for row in rows)


# -- campaigns ----------------------------------------------------------------------------------------------


def _campaign(engine: str, scenarios: int, target: str) -> tuple[Counter[str], float]:
    from rebalance_verifier.pipeline.campaign import alone, spread
    from rebalance_verifier.pipeline.campaign import campaign as pipeline
    from rebalance_verifier.pipeline.campaign.tables import tables

    spent, over = dict[int, float](), threading.Event()

    def watch() -> None:
        # The JVM and the workers end before they could be asked, so they are asked all the time.
        while not over.wait(0.2):
            spent.update({pid: cpu for pid in family(os.getpid()) if (cpu := _cpu(pid))})

    watcher = threading.Thread(target=watch)
    watcher.start()
    player = player_of(target)
    with tempfile.TemporaryDirectory() as directory:
        wanted = pipeline.Campaign(player.identity(), 0, ((scenarios, SLICE),), "")
        campaign = pipeline.enlist(Path(directory), wanted)
        played = (player, campaign, Path(directory), 60.0)
        if engine.startswith("campaign"):
            alone.run(*played, jobs=int(engine.rpartition(" ")[2]))
        else:
            spread.run(engine, *played)
        rows = tables(Path(directory), campaign)["verdicts"]
        over.set()
        watcher.join()
    return Counter({row.verdict: row.scenarios for row in rows}), sum(spent.values())


def _cpu(pid: int) -> float:
    """CPU seconds of a process so far, without its children's; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def _text(scenarios: int, target: str, found: dict[str, dict[str, Any]]) -> str:
    head = (
        f"{scenarios:,} histories on `{target}`, the same in each way (`python -m tools.benchmarks.campaign "
        f"{scenarios} {target}`), in slices of {SLICE:,}, from the start of the process to the last row, "
        f"that of the JVM included; {os.cpu_count()} cores. *Load* is the machine's when it began: above 0 "
        "others had their share, and CPU seconds are the fairer figure."
    )
    lines = ["# Campaigns beside plain multiprocessing", "", head, ""]
    lines += ["| way | wall s | CPU s | scenarios per wall s | load |", "|---|---|---|---|---|"]
    for engine, one in found.items():
        rate = scenarios / one["wall"]
        lines.append(f"| {engine} | {one['wall']:.1f} | {one['cpu']:.1f} | {rate:,.0f} | {one['load']:.1f} |")
    lines += [""]
    for kind, engines in (("a campaign by processes", ENGINES[1::3]), ("one on Spark", ENGINES[2::3])):
        plain, own = [found[engine] for engine in ENGINES[::3]], [found[engine] for engine in engines]
        lost = [
            " (by CPU seconds ".join(f"{1 - pool[what] / one[what]:.0%}" for what in ("wall", "cpu"))
            for pool, one in zip(plain, own, strict=True)
        ]
        lines.append(
            f"- Of the rate of plain multiprocessing {kind} loses {lost[0]}) with one process and {lost[1]}) "
            f"with two; it is {own[0]['wall'] / own[1]['wall']:.2f} times as fast with two as with one."
        )
    verdicts = ", ".join(f"{number:,} {verdict}" for verdict, number in found[ENGINES[0]]["verdicts"].items())
    lines.append(f"- Verdicts, equal in all ways: {verdicts}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
