"""How much of the model do lockstep's walks go through, and why not the rest?

``python -m tools.lockstep_coverage`` walks with each group of `rows` and counts the branches of the model's
steps that were taken. A branch that was not is listed with the reason: the decision that it stands for and
who has it, as the catalogue knows, or what lockstep_coverage.toml says of it. Exit code 1 when less than
`BAR` of those without a reason were taken, or a reason in lockstep_coverage.toml is one for nothing that was
not taken.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import rebalance_verifier.model.classic as package
from coverage import Coverage
from rebalance_verifier.base.processes.workers import stream
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.lockstep.classic import Lockstep
from rebalance_verifier.live.code.lockstep.setups import NOT_PLAYED, lockstep_setup
from rebalance_verifier.live.code.lockstep.system import drawn, lines_of, walk
from rebalance_verifier.live.code.replay.attempts import code_releases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs import catalogue
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.releases import NEWEST, parse, version
from rebalance_verifier.model.classic.group import FAULTS, machine

from tools.mutation.mutants import is_switch

MODULES = (
    "application", "callbacks", "coordinator", "environment", "errors", "expiry", "join_group", "leader",
    "member",
)  # fmt: skip
"""The steps of the model. The others of model/classic/ put them together, describe them, or hold values."""

OLD, NOW = "2.4.1", NEWEST
MIXED = f"coordinator:{NOW},consumer:{OLD},consumer:{NOW},consumer:2.8.1"

Group = tuple[str, tuple[str, ...]]
"""Releases, and the scenarios that are walked with them."""

Row = tuple[str, str, int, bool]
"""Releases, a scenario, how many members, and whether with every kind of fault."""

WALKED: Sequence[Group] = (
    (NOW, tuple(name for name, one in SCENARIOS.items() if one.protocol.name == "classic")),
    (f"coordinator:{NOW},consumer:2.8.0,consumer:{NOW},consumer:3.0.0", ("dynamic", "connections", "eager")),
    (f"coordinator:{NOW},consumer:{OLD},consumer:2.8.1", ("dynamic", "static", "topics", "sticky")),
    (f"coordinator:{NOW},consumer:3.2.1,consumer:3.3.1", ("dynamic", "eager")),
    (f"coordinator:{NOW},consumer:3.2.2,consumer:2.6.1", ("dynamic", "static-connections")),
)
"""With the faults of each scenario."""

ALONE: Sequence[Group] = (
    (NOW, ("dynamic", "failover", "static-appends", "midway")),
    (f"coordinator:{NOW},consumer:{OLD}", ("dynamic",)),
    (f"coordinator:{NOW},consumer:3.1.2", ("dynamic",)),
)
"""Walked with one member, who comes deeper in as many steps: it returns to a stable group, and its commit
before a join is refused."""

EVERYTHING: Sequence[Group] = (
    (NOW, ("static", "crowded", "topics")),
    (MIXED, ("static", "crowded", "topics")),
    (f"coordinator:{NOW},consumer:2.8.0,consumer:3.1.2", ("eager", "mixed")),
)
"""Walked with every kind of fault."""

CONSUMERS, COORDINATORS = version("2.4.0"), version("4.0.0")
"""The first releases with which a simulation is what a group runs: cooperative consumers, and the coordinator
that brokers have by default."""

BAR = 0.95

BETWEEN = (
    "2.5.0", "2.6.0", "2.6.1", "2.7.0", "2.8.0", "2.8.1", "3.0.0", "3.1.0", "3.2.0", "3.2.1", "3.3.0",
    "3.3.2", "3.4.0", NOW,
)  # fmt: skip
"""Releases enough that each decision which a range of them has is had by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A condition at ``line`` of a module from which the walks never went to line ``to``; negative: out."""

    module: str
    line: int
    to: int
    function: str
    text: str
    reason: str = ""


@dataclass(slots=True)
class BranchCount:
    """Branches of all modules, and those that were not taken."""

    possible: int = 0
    missing: list[Branch] = field(default_factory=list)

    @property
    def open(self) -> list[Branch]:
        return [branch for branch in self.missing if not branch.reason]

    @property
    def share(self) -> float:
        """What was taken of the branches for which nothing is a reason not to."""
        explained = len(self.missing) - len(self.open)
        return 1 - len(self.open) / (self.possible - explained)


# -- why not ---------------------------------------------------------------------------------------------


def of_others(decision: str) -> str:
    """Who has a decision, if no release has it that a simulation can be made of; "" if one has."""
    ranges = parse(catalogue.shipped(decision))
    here = any(version(one) >= CONSUMERS and ranges.includes("Java", version(one)) for one in BETWEEN)
    here = here or ranges.includes("broker", version(NOW))
    return "" if here else f"{decision}: {catalogue.shipped(decision)}"


def in_all(decision: str) -> str:
    """Who has a decision, if every coordinator of a simulation does; "" if not."""
    here = parse(catalogue.shipped(decision)).includes("broker", COORDINATORS)
    everywhere = here and DECISIONS[decision].where == "coordinator"
    return f"every coordinator has {decision}" if everywhere else ""


@cache
def written_reasons() -> Mapping[str, str]:
    """``module.function: text`` of what no walk goes through, or ``module.function`` -> why."""
    page = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    reasons: Mapping[str, str] = tomllib.loads(page)["unreached"]
    return reasons


class Reasons:
    """Why lines of one module are not reached."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.lines = module, source.splitlines()
        self.parents: dict[ast.AST, ast.AST] = {}
        self.at: dict[int, ast.AST] = {}
        for node in ast.walk(ast.parse(source)):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if line := _line(node):
                self.at.setdefault(line, node)

    def around(self, line: int) -> Iterator[ast.AST]:
        """The statement at a line, and what it is in."""
        node: ast.AST | None = next(
            (self.at[number] for number in range(line, 0, -1) if number in self.at), None
        )
        while node is not None:
            yield node
            node = self.parents.get(node)

    def function(self, line: int) -> str:
        """The name of the function of a line."""
        return next((one.name for one in self.around(line) if isinstance(one, ast.FunctionDef)), "")

    def reason(self, line: int, to: int = 0) -> str:
        """Why a line is not reached, or ``to`` from it; "" for no reason."""
        known, function = written_reasons(), self.function(line)
        inside: ast.AST | None = None
        for node in self.around(line):
            if isinstance(node, ast.FunctionDef):
                break
            if isinstance(node, ast.If) and (inside is not None or to):
                first = node.body[0].lineno
                if found := _shut(node, to == first if inside is None else inside in node.body):
                    return found
            text = self.lines[at - 1].strip() if (at := _line(node)) else ""
            if found := known.get(f"{self.module}.{function}: {text}", ""):
                return found
            inside = node
        return known.get(f"{self.module}.{function}", "")


def _line(node: ast.AST) -> int:
    """Where a statement or a case of a match begins; 0 for other nodes."""
    at = node.pattern if isinstance(node, ast.match_case) else node
    return at.lineno if isinstance(at, ast.stmt | ast.pattern) else 0


def _shut(node: ast.If, body: bool) -> str:
    """Why the ``body`` of a condition, or what else comes of it, does not run where a decision shuts it."""
    polarity = is_switch(node.test, {})
    if polarity is None:
        return ""
    names = [one.value for one in ast.walk(node.test) if isinstance(one, ast.Constant)]
    known = [one for one in names if isinstance(one, str) and one in DECISIONS]
    return next(filter(None, map(of_others if polarity is body else in_all, known)), "")


# -- counting --------------------------------------------------------------------------------------------


def rows() -> list[Row]:
    """What is walked, a scenario each."""
    some = [(code, name, 3, False) for code, names in WALKED for name in names]
    some += [(code, name, 1, False) for code, names in ALONE for name in names]
    return [*some, *((code, name, 3, True) for code, names in EVERYTHING for name in names)]


def walked(walks: int, what: Sequence[Row], jobs: int | None = None) -> tuple[BranchCount, int]:
    """The branches after so many walks with each group, and how many steps they took.

    Walks that disagree are told on stderr. Raises CannotStart where no simulation can be had.
    """
    found: list[tuple[BranchCount, int]] = []
    for number, one in stream(lambda: _walking(walks, what), len(what), jobs):
        if one is None:
            raise RuntimeError(f"the worker of {what[number]} was killed")
        found.append(one)
    return together([count for count, _ in found]), sum(steps for _, steps in found)


def together(counts: Sequence[BranchCount]) -> BranchCount:
    """What several walks have gone through, at least one, each counted by itself."""
    [first, *others] = counts
    also = [set(count.missing) for count in others]
    missing = [branch for branch in first.missing if all(branch in some for some in also)]
    return BranchCount(possible=first.possible, missing=missing)


@contextmanager
def _walking(walks: int, what: Sequence[Row]) -> Iterator[Callable[[int], Sequence[tuple[BranchCount, int]]]]:
    """What walks with one row, and counts."""
    files = [str(Path(package.__path__[0]) / f"{name}.py") for name in MODULES]
    every = tuple(fault for fault in FAULTS if fault not in NOT_PLAYED)

    def row(number: int) -> Sequence[tuple[BranchCount, int]]:
        code, name, members, everything = what[number]
        measured = Coverage(branch=True, include=files, data_file=None, config_file=False)
        releases = code_releases(code if ":" in code else f"code:{code}")
        size = ScenarioSize(members=members, partitions=3, faults=every if everything else None)
        setup = lockstep_setup(SCENARIOS[name], size, releases)
        steps = 0
        with Simulation([releases.coordinator], releases.consumers) as simulation:
            measured.start()
            try:
                built = machine(setup)
                for walk_number in range(walks):
                    one = Lockstep(simulation, setup, built, releases)
                    found = walk(one, drawn(0, walk_number), 100)
                    steps += one.seen.steps
                    if found is not None:
                        text = [f"OUT OF STEP  {name} with {code}", *lines_of(found)]
                        print(*text, sep="\n", file=sys.stderr)
            finally:
                measured.stop()
        return [(counted(measured, files), steps)]

    yield row


def counted(measured: Coverage, files: Sequence[str]) -> BranchCount:
    """The branches that were taken, and the others with their reasons."""
    count = BranchCount()
    with redirect_stdout(io.StringIO()):
        for name in files:
            analysis = measured._analyze(name)
            module, source = Path(name).stem, Path(name).read_text(encoding="utf-8")
            reasons = Reasons(module, source)
            count.possible += sum(total for total, _ in analysis.branch_stats().values())
            for line, targets in sorted(analysis.missing_branch_arcs().items()):
                text = source.splitlines()[line - 1].strip()
                function = reasons.function(line)
                for to in sorted(targets):
                    why = reasons.reason(line, to) or (reasons.reason(to) if to > 0 else "")
                    count.missing.append(Branch(
                        module=module, line=line, to=to, function=function, text=text, reason=why
                    ))  # fmt: skip
    return count


def needless(count: BranchCount) -> list[str]:
    """Written reasons for nothing that was not taken, by their keys."""
    needed = {(f"{branch.module}.{branch.function}", branch.reason) for branch in count.missing}
    return [key for key, why in written_reasons().items() if (key.partition(": ")[0], why) not in needed]


def lines(count: BranchCount, steps: int) -> Iterator[str]:
    """The result for people."""
    taken = count.possible - len(count.missing)
    share = f"{taken / count.possible:.1%}"
    yield f"{taken} of {count.possible} branches of the model's steps ({share}) in {steps:,} steps of walks"
    yield f"{count.share:.1%} of those that a release can reach by what is known; the others:"
    for branch in sorted(count.missing, key=lambda one: (bool(one.reason), one.module, one.line)):
        yield branch.reason or "not met"
        yield f"    {branch.module}.{branch.function}: line {branch.line} to {branch.to}: {branch.text}"
    for key in needless(count):
        yield f"was taken, in spite of the reason in lockstep_coverage.toml: {key}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.lockstep_coverage")
    parser.add_argument("--walks", type=int, default=100, help="with each scenario and releases (100)")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes, by default one for each processor")
    given = parser.parse_args(arguments)
    count, steps = walked(given.walks, rows(), given.jobs)
    print("\n".join(lines(count, steps)))
    return int(count.share < BAR or bool(needless(count)))


if __name__ == "__main__":
    sys.exit(main())
