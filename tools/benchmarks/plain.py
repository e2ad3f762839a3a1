"""How soon our search and a plain Hypothesis test find the design switches, in calls of ``assign``.

``python -m tools.benchmarks.plain [--examples N] [SWITCH ...]`` plays both in this process on seeds 0 to 4,
ours in profile ci without the crowd, and writes tools/benchmarks/plain.md. Switches that are a matter of
running time are left out.
"""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, numbered
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.hosted import load
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.model.values import Cluster, GroupSubscription, RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import AssignorCall, Reply
from rebalance_verifier.properties.assignors.clause import Breach, Clause, Scope
from rebalance_verifier.properties.assignors.clauses import TABLE

from tools.benchmarks import plain_property

SEEDS = range(5)
TIMED = ("quadratic_general", "is_balanced_off_by_one")
"""Right answers, but late: no call of a small group shows it."""

HEAD = """# A plain Hypothesis test and our search

Made by `python -m tools.benchmarks.plain --examples {examples}`. Calls of `assign` up to the first that
breaks something, the median over seeds {first} to {last}, and how many of them found
it where not all did; 0 where a member's user data does. *Plain*: a test of
{lines} lines as an author of an assignor would write it (`tools/benchmarks/plain_property.py`): nothing
twice, nothing left out, only to subscribers, nothing before it is revoked, balanced where all subscribe
alike, and nothing moves that need not; up to {examples} examples of up to four rebalances. *Ours*:
the scenarios of `rebalance check --profile ci` but the crowd, all clauses.

Where ours takes more calls (10 and 11 are a draw), the smallest counterexample has members with different
subscriptions, or a topic without partitions: most examples of the plain test have such, few of our first
scenarios do, which vary one dimension each; and each of ours is some five calls, since clauses ask further.

| switch | entry | plain | ours |
|---|---|---|---|"""


def plain(spec: str, number: int, examples: int) -> int | None:
    """Calls until the plain test fails; None: it passes."""
    assignor = load(spec)
    calls: list[int] = []
    first: list[int] = []

    def assign(*question: Any) -> Any:
        calls.append(1)
        return assignor.assign(*question)

    sticky, cooperative = "sticky" in spec, spec.startswith("cooperative")

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(st.data())
    def run(data: st.DataObject) -> None:
        try:
            plain_property.keeps_the_contract(assign, assignor.user_data, sticky, cooperative, data)
        except Exception:
            first.append(len(calls))
            raise

    try:
        run()
    except Exception:
        return first[0]
    return None


class _Broken(Exception):
    """A clause is: what stops our search as an assertion stops the plain test."""


class _Counted(InProcess):
    """An assignor whose calls are counted."""

    calls = 0

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        self.calls += 1
        return super().assign(protocol, cluster, group)

    again = assign


def _stopping(clause: Clause) -> Clause:
    """The clause, with an exception where it is broken."""

    def found(breach: Breach | None) -> None:
        if breach is not None:
            raise _Broken

    def looked(shown: Any) -> None:
        found(clause.check(shown))

    def further(call: AssignorCall) -> Generator[Any, Any, None]:
        found((yield from clause.check(call)))

    return replace(clause, check=further if clause.scope in (Scope.RELATION, Scope.REPEAT) else looked)


def ours(spec: str, number: int) -> int | None:
    """Calls until an answer of our search breaks a clause; None: none does."""
    session = _Counted(load(spec))
    subject, protocols = Subject.of(session), tuple(map(RebalanceProtocol, session.hello.protocols))
    clauses = [_stopping(clause) for clause in TABLE]
    try:
        for scenario in numbered(CheckPlan(profile=replace(PROFILES["ci"], crowd=0), seed=number), protocols):
            subject.play(scenario, clauses)
    except _Broken:
        return session.calls
    return None


def summary(searches: Sequence[int | None]) -> str:
    """The median of the calls, one entry a seed; a search that found nothing counts as endless."""
    found = [calls for calls in searches if calls is not None]
    if not found:
        return "never"
    half = median([math.inf if calls is None else calls for calls in searches])
    calls = "never" if math.isinf(half) else f"{half:,.0f}"
    return calls if len(found) == len(searches) else f"{calls} (found by {len(found)} of {len(searches)})"


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("switches", nargs="*", metavar="SWITCH", help="only these (all)")
    parser.add_argument("--examples", type=int, default=2000, metavar="N", help="of the plain test (2000)")
    options = parser.parse_args(argv)
    lines = len(inspect.getsource(plain_property.keeps_the_contract).splitlines())
    head = HEAD.format(examples=options.examples, first=SEEDS[0], last=SEEDS[-1], lines=lines)
    rows = [head]
    print(head)
    for switch in SWITCHES.values():
        if switch.id in TIMED or (options.switches and switch.id not in options.switches):
            continue
        spec = f"{switch.assignor}+{switch.id}"
        beside = summary([plain(spec, number, options.examples) for number in SEEDS])
        mine = summary([ours(spec, number) for number in SEEDS])
        rows.append(f"| `{spec}` | {switch.entry} | {beside} | {mine} |")
        print(rows[-1], flush=True)
    if not options.switches:
        Path(__file__).with_suffix(".md").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
