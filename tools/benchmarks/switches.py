"""Which clause finds which design switch, how soon, and how small the counterexample gets.

``python tools/benchmarks/switches.py [SEED ...]`` runs profile ci on every assignor-level switch and writes
tools/benchmarks/switches.md.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan
from rebalance_verifier.gate.search.progress import CheckProgress
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.bugs.switches import SWITCHES

HEAD = """# Design switches, found

Every assignor-level bug of the catalogue, switched on in a reference assignor and searched for with
`rebalance check NAME+SWITCH --profile ci` (seed {seeds}), each through its own process. *Found after*:
seconds, scenarios and questions until the first breach. *Size*: members / partitions / claims of the smallest
minimised counterexample; *known*: of the scenario that the catalogue of bugs describes, as in
tests/model/bugs/test_switches.py.

| switch | entry | clauses broken (scenarios that show it) | found after | whole run | size | known |
|---|---|---|---|---|---|---|"""


def known(switch: str) -> str:
    """The size of the smallest scenario that was known before the search."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.model.bugs.test_switches import SHOWN

    if switch not in SHOWN:
        return "-"  # a matter of running time
    topics, group, _, _ = SHOWN[switch]
    partitions = sum(count if isinstance(count, int) else len(count) for count in topics.values())
    claims = sum(len(subscription.owned_partitions) for subscription in group.values())
    return f"{len(group)} / {partitions} / {claims}"


def row(spec: str, entry: str, seed: int) -> str:
    """One line of the table."""
    target = resolve(spec)
    first: list[str] = []
    began = time.monotonic()

    def report_progress(progress: CheckProgress, total: int) -> None:
        if progress.breaking and not first:
            first.append(f"{time.monotonic() - began:.1f} s, {progress.done}, {progress.questions:,}")

    with Session(target) as session:
        plan = CheckPlan(profile=PROFILES["ci"], seed=seed, level=Level.QUALITY)
        result = check(
            plan, session, describe(spec, session.hello), report_progress=report_progress, fresh=session.close
        )
    broken = [r for r in result.clauses if r.status is Status.VIOLATED]
    broken.sort(key=lambda r: -r.broken)
    clauses = ", ".join(f"`{r.id}` ({r.broken})" for r in broken) or "**not found**"
    sizes = [r.finding.scenario.size for r in broken if r.finding is not None]
    size = " / ".join(map(str, min(sizes)[:3])) if sizes else "-"
    soon = first[0] if first else "-"
    shown = known(spec.rpartition("+")[2])
    return f"| `{spec}` | {entry} | {clauses} | {soon} | {result.seconds:.0f} s | {size} | {shown} |"


def main() -> None:
    seeds = [int(word) for word in sys.argv[1:]] or [0]
    lines = [HEAD.format(seeds=", ".join(map(str, seeds)))]
    for switch in SWITCHES.values():
        for seed in seeds:
            lines.append(row(f"{switch.assignor}+{switch.id}", switch.entry, seed))
            print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
