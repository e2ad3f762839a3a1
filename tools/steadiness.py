"""Whether what was found is found again: counterexamples played many times.

python -m tools.steadiness [--plays N] FILE|DIR ...    how often each breaks its clause

A play is what `rebalance replay` does. An assignor that answers at random may break a clause in one play
and keep it in the next. Exit 1 if a play of one does not break its clause.
"""

from __future__ import annotations

import argparse
import sys

from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.cli.shared.values import whole
from rebalance_verifier.gate.targets.hosts.hosted import TargetError

from tools.minimality import named_traces, on_targets

PLAYS = 100
"""Plays of each, if nothing else is said."""


def main() -> int:
    """Print a line for each counterexample, and how many break their clause in each play."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("named", nargs="+", metavar="FILE|DIR")
    parser.add_argument("--plays", type=whole, default=PLAYS, metavar="N", help=f"of each ({PLAYS})")
    options = parser.parse_args()
    steady = total = 0
    try:
        for trace, breaks in on_targets(named_traces(options.named)):
            shown = sum(breaks(trace.scenario, trace.clause) is not None for _ in range(options.plays))
            total, steady = total + 1, steady + (shown == options.plays)
            print(f"{trace.id}  {shown:>4} of {options.plays} plays  {trace.clause.id}", flush=True)
    except (TargetError, TraceError) as error:
        parser.error(str(error))
    print(f"{steady} of {total} break their clause in each play")
    return 0 if steady == total else 1


if __name__ == "__main__":
    sys.exit(main())
