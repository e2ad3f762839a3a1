"""Our model of consumer groups beside the public TLA+ model of KIP-848, into docs/results/kip848-model.md.

    python -m tools.kip848               search our model: sizes, and who finds which mistake
    python -m tools.kip848 --spec DIR    count the states of the other model first, where that is not done:
                                         TLC searches the text

DIR has that text, ``consumer_group_protocol_kip_848_v2.tla``, what it extends, and the modules that TLC
does not bring (FiniteSetsExt, SequencesExt, Functions of CommunityModules). It is not ours to ship. What TLC
found is kept in ``counts.toml``. Its largest group took 25 minutes of one processor.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rebalance_verifier.base.tables import table as kept
from rebalance_verifier.explore.engine.fast import explore
from rebalance_verifier.explore.engine.search import Exploration, Limits
from rebalance_verifier.explore.groups.bugs import SERVED_SHOWN, SHOWN, Shown
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.group.setup import CONSUMER, Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.rules import Rules

from tools import tlc
from tools.docs import table
from tools.kip848.questions import QUESTIONS, put_to

PAGE = Path(__file__).parents[2] / "docs" / "results" / "kip848-model.md"
COUNTS = Path(__file__).with_name("counts.toml")
MARK = "<!-- written from here on: python -m tools.kip848 -->\n"
MODULE = "consumer_group_protocol_kip_848_v2"

PERTURBATIONS = ("resubscribe", "close", "crash", "session timeout")
"""Faults of ours that are its perturbations."""


@dataclass(frozen=True, order=True)
class Size:
    """Clients, and how many perturbations; there are two topics of one partition each.

    Written as "2 x 2, 1": clients, partitions, perturbations.
    """

    clients: int
    perturbations: int

    def __str__(self) -> str:
        return f"{self.clients} x 2, {self.perturbations}"

    def setup(self) -> Setup:
        """Return our group of this size, one message a step."""
        return SCENARIOS["consumer-topics"].setup(
            ScenarioSize(
                members=self.clients,
                partitions=2,
                steps="fine",
                faults=PERTURBATIONS if self.perturbations else (),
                budget=self.perturbations,
            )
        )


SIZES = (Size(1, 0), Size(1, 1), Size(2, 0), Size(2, 1))


def with_theirs(setup: Setup) -> Exploration:
    """Search all of a group, and ask both our clauses and the other model's questions."""
    ours = rules(setup)
    watched, theirs = put_to(setup, machine(setup))
    both: Rules = ours._replace(
        always=(*ours.always, *theirs.always), each_change=(*ours.each_change, *theirs.each_change)
    )
    return explore(watched, both, Limits(go_on=True))


def soonest(found: Exploration) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the depths at which our clauses break, and those at which the questions do."""
    depths = {breach.clause: breach.depth for breach in found.breaches}
    theirs = {name: depth for name, depth in depths.items() if name in QUESTIONS}
    return {name: depth for name, depth in depths.items() if name not in QUESTIONS}, theirs


def _first(depths: Mapping[str, int]) -> str:
    """Return what breaks at the least depth, with that depth."""
    least = min(depths.values(), default=None)
    names = ", ".join(f"`{name}`" for name, depth in sorted(depths.items()) if depth == least)
    return f"{names} ({least})" if names else "·"


def consumer_switches() -> Mapping[str, Shown]:
    """Return the mistakes of the catalogue that show in a consumer group, by switch."""
    return {name: shown for name, shown in SHOWN.items() if shown.protocol == CONSUMER}


def found() -> Iterator[tuple[str, str, str]]:
    """Yield each mistake of consumer groups, what of our clauses breaks first, and which question does."""
    for switch, shown in consumer_switches().items():
        ours, theirs = soonest(with_theirs(shown.setup()))
        if switch not in SERVED_SHOWN:  # liveness is asked of whole runs
            ours = ours or {shown.clause: -1}
        yield f"`{switch}`", _first(ours).replace("(-1)", "(whole runs)"), _first(theirs)


def sizes() -> Iterator[tuple[object, ...]]:
    """Yield rows: the size, states and CPU seconds of TLC, states and CPU seconds of ours."""
    counted = kept(__file__, "counts")
    for size in SIZES:
        ours = explore(machine(size.setup()), rules(size.setup()))
        theirs = counted[str(size)]
        yield size, f"{theirs['distinct']:,}", theirs["cpu"], f"{ours.distinct:,}", f"{ours.cpu:.1f}"


def counted_by_tlc(spec: Path, size: Size) -> tuple[int, float]:
    """Return how many distinct states TLC finds, and its CPU seconds. Raises SystemExit where it breaks."""
    lines = (spec / f"{MODULE}.cfg").read_text("utf-8")
    lines = re.sub(
        r"Clients = .*", f"Clients = {{{', '.join(f'c{n + 1}' for n in range(size.clients))}}}", lines
    )
    lines = re.sub(r"MaxPerturbations = .*", f"MaxPerturbations = {size.perturbations}", lines)
    lines = re.sub(r"SPECIFICATION.*", "SPECIFICATION Spec", lines)  # safety: no fairness is needed
    with tempfile.TemporaryDirectory() as directory:
        for module in spec.glob("*.tla"):
            shutil.copy(module, directory)
        Path(directory, f"{MODULE}.cfg").write_text(lines, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = tlc.run(Path(directory), MODULE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = re.search(r"(\d+) states generated, (\d+) distinct states found, 0 states left", printed)
    if not done or "No error has been found" not in printed:
        sys.exit(f"{size}: TLC does not end well:\n{printed[-2000:]}")
    return int(done[2]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Write the counts where TLC is asked, and the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spec", type=Path, metavar="DIR", help="TLC counts the states of the text there")
    options = parser.parse_args()
    if options.spec:
        for size in SIZES:
            if str(size) in kept(__file__, "counts"):
                continue
            distinct, cpu = counted_by_tlc(options.spec, size)
            print(f"{size}: {distinct:,} states, {cpu:.0f} CPU s", flush=True)
            with COUNTS.open("a", encoding="utf-8") as file:
                file.write(f'\n["{size}"]\ndistinct = {distinct}\ncpu = {cpu:.0f}\n')
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    states = table(("group", "theirs, states", "TLC, CPU s", "ours, states", "ours, CPU s"), sizes())
    mistakes = table(("mistake", "our clause that breaks first (steps)", "their question (steps)"), found())
    PAGE.write_text(f"{head}{MARK}\n{states}\n{mistakes}", encoding="utf-8")


if __name__ == "__main__":
    main()
