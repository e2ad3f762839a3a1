"""What is proved of each release as shipped: the table of docs/results/shipped.md.

python -m tools.shipped                   write the page anew; some minutes for each release
python -m tools.shipped java-2.4,broker-2.4 ...    print the lines of these
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rebalance_verifier.base.processes.workers import processors, spread
from rebalance_verifier.specs.classic.necessity.repairs import ShippedTheorem, examine_shipped
from rebalance_verifier.specs.classic.necessity.shipped import released
from rebalance_verifier.specs.logic.prover import ProofVerdict

PAGE = Path(__file__).parents[1] / "docs" / "results" / "shipped.md"
MARK = "<!-- generated from here on: python -m tools.shipped -->\n"
PAIRS = (
    "java-3.4.0,broker-3.2",
    "java-current,broker-current",
    "librdkafka,broker-current",
)
THEOREM = "exclusive ownership"
HEAD = "| releases | group | exclusive ownership | repair |\n|---|---|---|---|\n"


def line(pair: str, *, dynamic: bool) -> str:
    """One kind of group of a client and a broker."""
    member, coordinator = pair.split(",")
    protocol = released(member, coordinator, dynamic=dynamic)
    found = examine_shipped(protocol, spread=partial(spread, jobs=processors()), names=[THEOREM])
    one = found.theorems[-1]
    return f"| `{member}`, `{coordinator}` | {protocol.members} | {verdict(one)} | {repair(one)} |\n"


def verdict(one: ShippedTheorem) -> str:
    """In a few words."""
    if one.run is not None:
        played = one.run.replay
        return f"refuted by `{one.run.variation}`: {played.clause} after {len(played.events)} events"
    return "proved" if one.verdict is ProofVerdict.PROVED else "open"


def repair(one: ShippedTheorem) -> str:
    """Those that a run shows to be needed are bold."""
    if one.repair is None:
        return "-" if one.verdict is ProofVerdict.PROVED else "none is known"
    needed = one.repair.needed
    return ", ".join(f"**`{name}`**" if name in needed else f"`{name}`" for name in one.repair.mended)


def main() -> None:
    """Print or write the lines."""
    pairs = sys.argv[1:]
    lines = (line(pair, dynamic=dynamic) for pair in pairs or PAIRS for dynamic in (True, False))
    if pairs:
        for one in lines:
            print(one, end="", flush=True)
        return
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{PAGE} has no line {MARK.strip()!r}")
    PAGE.write_text(f"{head}{MARK}\n{HEAD}{''.join(lines)}", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
