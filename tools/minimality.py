"""Whether counterexamples are as small as can be: nothing of one can be deleted.

python -m tools.minimality FILE|DIR ...    play each again, and without each single thing of it

A counterexample is minimal if its clause is no longer broken in the same way without any one member,
partition, claim or event. What is broken in another way then (the group settles late, and no longer never) is
counted apart. Exit 1 if one is not minimal, or does not break its clause.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.gate.scenarios.minimise import deletions
from rebalance_verifier.gate.search.counterexamples import Trace
from rebalance_verifier.gate.search.search import replay
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.properties.assignors.clause import Breach, Clause
from rebalance_verifier.properties.assignors.played import AnyScenario, of_partitions
from rebalance_verifier.traces import kinds

Breaks = Callable[[AnyScenario, Clause], Breach | None]


@dataclass(frozen=True, slots=True)
class Minimality:
    """How many of the ``tried`` deletions leave the clause of a counterexample broken as it was, and how many
    ``otherwise``; whether it ``breaks`` as it is."""

    trace: Trace
    breaks: bool
    tried: int
    left: int
    otherwise: int

    @property
    def minimal(self) -> bool:
        """Whether nothing can be deleted."""
        return self.breaks and not self.left

    def __str__(self) -> str:
        members, partitions, claims, events = self.trace.scenario.size
        size = f"{members} members, {partitions} partitions, {claims} claims, {events} events"
        verdict = "minimal" if self.minimal else f"{self.left} too many" if self.breaks else "not broken"
        line = f"{self.trace.id}  {verdict:<11} {self.trace.clause.id:<18} {size}; {self.tried} deletions"
        return line + f", {self.otherwise} break it in another way" * bool(self.otherwise)


def measured(trace: Trace, breaks: Breaks) -> Minimality:
    """Take away each single thing of a counterexample."""
    smaller = [*deletions(of_partitions(trace.scenario))]
    as_it_is = breaks(trace.scenario, trace.clause)
    kinds = [breach.kind for scenario in smaller if (breach := breaks(scenario, trace.clause))]
    left = sum(as_it_is is None or kind == as_it_is.kind for kind in kinds)
    return Minimality(trace, as_it_is is not None, len(smaller), left, len(kinds) - left)


def on_targets(traces: Iterable[Trace]) -> Iterator[tuple[Trace, Breaks]]:
    """Each with what plays on the target that it names; those of one target in one process."""

    def target(trace: Trace) -> str:
        return trace.target.spec

    for spec, same in groupby(sorted(traces, key=target), key=target):
        with Session(resolve(spec)) as session:

            def breaks(scenario: AnyScenario, clause: Clause, session: Session = session) -> Breach | None:
                found = replay(session, scenario, clause).breach_of(clause.id)
                return found.breach if found else None

            yield from ((trace, breaks) for trace in same)


def named_traces(names: Iterable[str]) -> list[Trace]:
    """The counterexamples of assignors in files and directories. Raises TraceError."""
    paths = [path for name in names for path in files.find(name, Path())]
    traces = [read for path in paths if isinstance(read := kinds.load(path, trusted=True), Trace)]
    if not traces:
        raise TraceError("none of these is a counterexample of an assignor")
    return traces


def main() -> int:
    """Print a line for each counterexample, and how many are minimal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("named", nargs="+", metavar="FILE|DIR")
    found = []
    try:
        for one in (measured(*known) for known in on_targets(named_traces(parser.parse_args().named))):
            found.append(one)
            print(one, flush=True)
    except (TargetError, TraceError) as error:
        parser.error(str(error))
    minimal = sum(one.minimal for one in found)
    other = sum(one.minimal and bool(one.otherwise) for one in found)
    print(f"{minimal} of {len(found)} are minimal, {other} but for another way to break the same clause")
    return 0 if minimal == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
