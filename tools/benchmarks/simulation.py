"""How many steps a second Kafka's own code does in a simulation, alone, in step with the model, and searched.

A step of the simulation alone is a command that did something: what was refused, since nothing was under way,
and a poll in which nothing happened count for nothing; three consumers rebalance all the time. A step of the
others is what their commands count. Seconds are those of the processors, of the JVM with its compiler and of
Python, since that is what does not depend on who else is at work.

``python -m tools.benchmarks.simulation [--coordinator RELEASE] [--consumers R,R,R] [--steps 120000]``
writes tools/benchmarks/simulation.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.lockstep.classic import Lockstep
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import walk as walk_in_step
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search import walks as searching
from rebalance_verifier.live.code.simulation import Simulation, SimulationMember
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.classic.group import machine

ROUNDS = 8
"""In one line, each of a few commands for every member."""

RUN = 25
"""Lines before the group begins anew."""

WARM = 10
"""One of so many steps is done before anything is measured."""

SLOWER = 40
"""How many steps of the simulation alone are measured for one of the others."""

SCENARIO = "dynamic"

HEAD = """# Kafka's own code in a simulation

Made by `python -m tools.benchmarks.simulation` ({machine}, Python {python}; load {load:.0f} on {cores} cores
when it began). Coordinator {coordinator}, consumers {consumers}, scenario `{scenario}`; one JVM, one
process of Python. Seconds are those of the processors: of the JVM, with its compiler's threads, and of
Python. *Lines*: to the simulation and back, for each step.

| what | steps | JVM, us a step | Python, us a step | lines a step | steps per CPU s |
|---|---|---|---|---|---|"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What ``steps`` took: seconds of both processes, lines."""

    steps: int
    jvm: float
    python: float
    lines: int

    def row(self, name: str) -> str:
        """As a row of the table."""
        each = (f"{1e6 * one / self.steps:.0f}" for one in (self.jvm, self.python))
        rate = self.steps / (self.jvm + self.python)
        return (
            f"| {name} | {self.steps:,} | {' | '.join(each)} | {self.lines / self.steps:.2f} | {rate:,.0f} |"
        )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinator", default=NEWEST)
    parser.add_argument("--consumers", default=",".join([NEWEST] * 3))
    parser.add_argument(
        "--steps", type=int, default=120_000, help="of the simulation alone, of the others a fortieth"
    )
    parser.add_argument("--resets", type=int, default=10_000)
    given = parser.parse_args()
    consumers = given.consumers.split(",")
    releases = CodeReleases(coordinator=given.coordinator, consumers=tuple(consumers))
    lines = [
        HEAD.format(
            machine=platform.machine(), python=platform.python_version(), load=os.getloadavg()[0],
            cores=os.cpu_count(), coordinator=given.coordinator, consumers=", ".join(consumers),
            scenario=SCENARIO,
        )
    ]  # fmt: skip
    with Simulation([given.coordinator], consumers):
        pass  # everything is compiled now
    with Counted([given.coordinator], consumers) as simulation:
        create(simulation, releases)
        started = simulation.cpu()
        lines.append(alone(simulation, releases, given.steps).row("the simulation alone"))
    with Counted([given.coordinator], consumers) as simulation:
        lines.append(lockstep(simulation, releases, given.steps // SLOWER).row("in step with the model"))
    with Counted([given.coordinator], consumers) as simulation:
        lines.append(searched(simulation, releases, given.steps // SLOWER).row("searched"))
    lines.append(f"\nA simulation with all consumers started took {started:.1f} CPU seconds.")
    with Counted([given.coordinator], consumers) as simulation:
        sizes = [resets(simulation, releases, some) for some in (given.resets // 10, given.resets)]
    lines.append(
        f"{sizes[0]} MiB were resident after {given.resets // 10:,} resets, {sizes[1]} MiB after "
        f"{given.resets:,} more, each with all consumers started."
    )
    print("\n".join(lines))
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Counted(Simulation):
    """A simulation that counts its lines."""

    lines = 0

    def _ask(self, message: JsonLine) -> JsonLine:
        self.lines += 1
        return super()._ask(message)

    def cpu(self) -> float:
        """Seconds of all threads of the JVM."""
        times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def cost(self, play: Callable[[int], int], steps: int) -> Cost:
        """Of so many steps; ``play`` plays a number of the run and tells how many steps it had."""
        number = done = 0
        while done < steps // WARM:
            done += play(number := number + 1)
        jvm, python, lines, done = self.cpu(), time.process_time(), self.lines, 0
        while done < steps:
            done += play(number := number + 1)
        python = time.process_time() - python
        return Cost(steps=done, jvm=self.cpu() - jvm, python=python, lines=self.lines - lines)


def alone(simulation: Counted, releases: CodeReleases, steps: int) -> Cost:
    """Random commands, a hundred in a line."""
    rnd, begins = random.Random(1), create(simulation, releases)

    def play(number: int) -> int:
        line = [one for _ in range(ROUNDS) for one in commands(rnd, len(releases.consumers))]
        line = [*(begins if number % RUN == 0 else ()), *line]
        answers = simulation.batch(line)
        return sum(
            bool(answer.get("events") or ("refused" not in answer and one["do"] != "poll"))
            for one, answer in zip(line, answers, strict=True)
        )

    return simulation.cost(play, steps)


def lockstep(simulation: Counted, releases: CodeReleases, steps: int) -> Cost:
    """Walks of ``rebalance conform --code``."""
    size = ScenarioSize(members=len(releases.consumers), partitions=3)
    setup = lockstep_setup(SCENARIOS[SCENARIO], size, releases)
    built = machine(setup)

    def play(number: int) -> int:
        one = Lockstep(simulation, setup, built, releases)
        if walk_in_step(one, random.Random(f"0/{number}"), 100) is not None:
            raise SystemExit(f"walk {number} is out of step")
        return one.seen.steps

    return simulation.cost(play, steps)


def searched(simulation: Counted, releases: CodeReleases, steps: int) -> Cost:
    """Walks of ``rebalance explore --on``, left in peace in the end."""
    setup = SCENARIOS[SCENARIO].setup(ScenarioSize(members=len(releases.consumers), partitions=3))
    setup = replace(setup, budget=searching.UNLIMITED_FAULTS)
    playing = searching.CodeSearchPlan(setup=setup, releases=releases).playing(simulation)

    def play(number: int) -> int:
        return len(searching.walk(playing, random.Random(f"0/{number}"), 100).events)

    return simulation.cost(play, steps)


def create(simulation: Simulation, releases: CodeReleases) -> list[JsonLine]:
    """A group of its releases; what begins it anew, with everybody started."""
    members = [SimulationMember(release=one) for one in releases.consumers]
    simulation.create(releases.coordinator, members, {"t": 3})
    begins: list[JsonLine] = [{"do": "start", "member": one} for one in range(len(members))]
    simulation.batch(begins)
    return [{"do": "reset"}, *begins]


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


def resets(simulation: Simulation, releases: CodeReleases, count: int) -> int:
    """MiB that the JVM has resident after so many resets."""
    begins = create(simulation, releases)
    for _ in range(count // 100):
        simulation.batch(begins * 100)
    pages = int(Path(f"/proc/{simulation.pid}/statm").read_text().split()[1])
    return pages * 4096 >> 20


if __name__ == "__main__":
    main()
