"""Which switches of the protocol the Hypothesis machine finds, how soon, and how short its traces are.

``python -m tools.benchmarks.stateful [SEED ...]`` searches for every switch in the group in which
``rebalance_verifier.explore.groups.bugs`` shows it, with ``EXAMPLES`` examples, and writes
tools/benchmarks/stateful.md.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits, ModelTrace
from rebalance_verifier.explore.groups.bugs import SHOWN, Shown
from rebalance_verifier.explore.liveness.liveness import settles
from rebalance_verifier.explore.random.group_machine import find
from rebalance_verifier.explore.random.minimise import minimise
from rebalance_verifier.explore.random.swarm import only
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.properties.group.clauses import rules

EXAMPLES = 5_000

HEAD = """# The Hypothesis machine against the explorer

Every switch of `explore.groups.bugs`, in the group given there, its clause searched for by
`explore.random.group_machine.find` with at most {examples:,} examples; seeds {seeds}.
*Examples*: played until the first breach. *Seconds*: of the CPU, shrinking included. *Length*: of the trace
as Hypothesis shrunk it, then after `explore.random.minimise` (not for runs that go round for ever).
*Shortest*: by the explorer.

| switch | clause | examples | seconds | length | minimised | shortest | ratio |
|---|---|---|---|---|---|---|---|"""


def shortest(shown: Shown) -> int | None:
    """The length of the shortest trace, for a goal that is missed that of the shortest lasso."""
    setup = shown.setup()
    group, required = machine(setup), only(rules(setup), shown.clause)
    if required.finally_:
        search = fast.explore(group, required, Limits(go_on=True))
        lasso = settles(group, required.finally_[0], search).lasso
        return len(lasso.trace.events) if lasso else None
    breaches = fast.explore(group, required).breaches
    return breaches[0].depth if breaches else None


def row(shown: Shown, seed: int, least: int | None) -> tuple[str, float | None]:
    """One line of the table, and the ratio of lengths where the switch was found."""
    setup, began = shown.setup(), time.process_time()
    found = find(setup, clause=shown.clause, seed=seed, max_examples=EXAMPLES)
    seconds = time.process_time() - began
    if found is None:
        line = f"| `{shown.switch}` | {shown.clause} | **not found** | {seconds:.1f} | - | - | {least} | - |"
        return line, None
    run, smaller = found.run, "-"
    if not run.cycle:
        group = machine(setup)
        trace = ModelTrace(group.initial[0], run.events)
        smaller = str(len(minimise(group, rules(setup), shown.clause, trace).trace.events))
    ratio = len(run.events) / least if least else 1.0
    length = f"{len(run.events)} | {smaller} | {least} | {ratio:.2f}"
    return f"| `{shown.switch}` | {shown.clause} | {found.examples} | {seconds:.1f} | {length} |", ratio


def main() -> None:
    seeds = [int(word) for word in sys.argv[1:]] or [0]
    lines, ratios = [HEAD.format(seeds=", ".join(map(str, seeds)), examples=EXAMPLES)], []
    for shown in SHOWN.values():
        least = shortest(shown)
        for seed in seeds:
            line, ratio = row(shown, seed, least)
            lines.append(line)
            ratios += [] if ratio is None else [ratio]
            print(line, flush=True)
    tries = len(SHOWN) * len(seeds)
    lines.append(
        f"\nFound: {len(ratios)} of {tries} ({len(ratios) / tries:.0%}). Length against the shortest: median "
        f"{median(ratios):.2f}, at most {max(ratios):.2f}."
    )
    print(lines[-1])
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
