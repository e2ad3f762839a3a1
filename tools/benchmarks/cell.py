"""How many steps a second a cell does: three consumers and their coordinator, rebalancing all the time.

A step is a command that did something: what was refused, since nothing was under way, and a poll in which
nothing happened count for nothing. Measured from this side of the pipe, with the answers read as JSON.

    python -m tools.benchmarks.cell [--coordinator 4.4.0] [--consumers 4.4.0,4.4.0,4.4.0] [--seconds 20]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

from rebalance.live.code.cell import CellMember, KafkaCell
from rebalance.live.processes.program import JsonLine

ROUNDS = 8
"""In one line, each of a few commands for every member."""

RUN = 25
"""Lines before the group begins anew."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinator", default="4.4.0")
    parser.add_argument("--consumers", default="4.4.0,4.4.0,4.4.0")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--resets", type=int, default=10_000)
    given = parser.parse_args()
    consumers = given.consumers.split(",")
    with KafkaCell([given.coordinator], consumers):
        pass  # everything is compiled now
    began = time.monotonic()
    with KafkaCell([given.coordinator], consumers) as cell:
        cell.create(given.coordinator, [CellMember(release=one) for one in consumers], {"t": 3})
        started = [{"do": "start", "member": one} for one in range(len(consumers))]
        cell.batch(started)
        print(f"a cell with {len(consumers)} consumers started in {time.monotonic() - began:.1f} s")
        steps(cell, len(consumers), 1, given.seconds / 2)
        rate, shares = steps(cell, len(consumers), 2, given.seconds)
        print(f"{rate:,.0f} steps a second: {shares}")
        for part in (given.resets // 10, given.resets):
            print(f"{resets(cell, started, part)} MiB resident after {part:,} resets")


def steps(cell: KafkaCell, members: int, seed: int, seconds: float) -> tuple[float, str]:
    """Steps a second over ``seconds``, by random commands of ``seed``, and the share of each command."""
    rnd, lines = random.Random(seed), 0
    done: Counter[str] = Counter()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        line = [one for _ in range(ROUNDS) for one in commands(rnd, members)]
        if lines % RUN == 0:
            line = [{"do": "reset"}, *({"do": "start", "member": one} for one in range(members)), *line]
        lines += 1
        answers = cell.batch(line)
        done.update(
            one["do"]
            for one, answer in zip(line, answers, strict=True)
            if answer.get("events") or ("refused" not in answer and one["do"] != "poll")
        )
    shares = ", ".join(f"{do} {count / done.total():.0%}" for do, count in done.most_common(4))
    return done.total() / (time.monotonic() - began), shares


def commands(rnd: random.Random, members: int) -> list[JsonLine]:
    """Some steps of every member in a random order, and now and then a fault or the end of a timer."""
    made: list[JsonLine] = [
        {"do": do, "member": one} for one in range(members) for do in ("poll", "deliver", "respond", "poll")
    ]
    rnd.shuffle(made)
    who = rnd.randrange(members)
    match rnd.randrange(5):
        case 0:
            made.append({"do": "enforce", "member": who})
        case 1:
            made += [{"do": "heartbeat", "member": one} for one in range(members)]
        case 2:
            made.append({"do": "expire", "timer": "rebalance"})
        case 3 if rnd.random() < 0.2:
            made.append({"do": "disconnect", "member": who})
        case 4 if rnd.random() < 0.1:
            made.append({"do": "failover"})
    return made


def resets(cell: KafkaCell, started: list[JsonLine], count: int) -> int:
    """MiB that the JVM has resident after so many resets, each with all consumers started."""
    for _ in range(count // 100):
        cell.batch([{"do": "reset"}, *started] * 100)
    pages = int(Path(f"/proc/{cell.pid}/statm").read_text().split()[1])
    return pages * 4096 >> 20


if __name__ == "__main__":
    main()
