"""``make code``: every run that shows a switch, forced on every release of Kafka's consumer.

``python -m tools.on_code`` plays the smallest run of each switch of the group (``explore.groups.bugs``) on
the consumers of Kafka's own code (``rebalance replay --on code``), with the newest coordinator, and writes
what came of it to docs/results/released.md, beside what the catalogue says. Exit 1 where the two differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rebalance.explore.groups.bugs import SHOWN
from rebalance.explore.groups.reproduction import reproduce
from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.cli.console.terminal import print_err
from rebalance.gate.report.markup import escaped, table
from rebalance.gate.report.terminal.comparison import ranges
from rebalance.gate.traces import files
from rebalance.live.code import releases
from rebalance.live.code.cell import KafkaCell
from rebalance.live.replay.code_group import CodeReleases
from rebalance.live.replay.on_code import replay_on_code
from rebalance.live.replay.verdict import Replayed
from rebalance.model.bugs.catalogue import entries_of
from rebalance.model.bugs.releases import parse, version

PAGE = Path(__file__).parents[1] / "docs" / "results" / "released.md"

AT_ONCE = 10
"""Releases in one JVM."""

VERDICTS = ("same", "another", "none", "inconclusive")


def shipped(switch: str, release: str) -> bool:
    """Whether the consumer of this release has the bug of a switch, by the catalogue."""
    return any(
        parse(entry.shipped(switch)).includes("Java", version(release)) for entry in entries_of(switch)
    )


def is_of_java(switch: str) -> bool:
    """Whether the catalogue speaks of Java's consumer; a run for another client may show a bug of it."""
    spans = (span for entry in entries_of(switch) for span in parse(entry.shipped(switch)).spans)
    return any(span.product == "Java" for span in spans)


def play(
    runs: Mapping[str, SavedRun], coordinator: str, consumers: Sequence[str]
) -> Iterator[tuple[str, str, Replayed]]:
    """(switch, release, what came of it), the releases in their order."""
    for first in range(0, len(consumers), AT_ONCE):
        several = consumers[first : first + AT_ONCE]
        print_err(f"{first} of {len(consumers)} releases; {several[0]} to {several[-1]}")
        with KafkaCell([coordinator], several) as cell:
            for release in several:
                on = CodeReleases(coordinator=coordinator, consumers=(release,))
                for switch, run in runs.items():
                    yield switch, release, replay_on_code(run, on, cell)


def differences(found: Mapping[tuple[str, str], Replayed], consumers: Sequence[str]) -> Iterator[str]:
    """Where what was forced to its end is not as the catalogue says of Java's consumer."""
    for switch in filter(is_of_java, dict.fromkeys(switch for switch, _ in found)):
        for verdict, which in (
            ("same", "shows in {}, which have"),
            ("none", "does not show in {}, which have"),
        ):
            not_so = [
                found[switch, release].verdict == verdict
                and shipped(switch, release) is not (verdict == "same")
                for release in consumers
            ]
            if any(not_so):
                other = " it not" if verdict == "same" else " it"
                yield f"`{switch}` {which.format(ranges(consumers, not_so))}{other} by the catalogue"


def page(found: Mapping[tuple[str, str], Replayed], coordinator: str, consumers: Sequence[str]) -> str:
    """The page, as Markdown."""
    switches = list(dict.fromkeys(switch for switch, _ in found))
    outcomes = ("shows in", "breaks another in", "forced, does not show in", "not settled in")
    heads = ("entry", "switch", "breaks", "Java's consumer, by the catalogue", *outcomes)
    rows = [
        (
            ", ".join(entry.id for entry in entries_of(switch)) or "-",
            f"`{switch}`",
            SHOWN[switch].clause,
            _spans(consumers, [shipped(switch, release) for release in consumers]),
            *(
                _spans(consumers, [found[switch, release].verdict == verdict for release in consumers])
                for verdict in VERDICTS
            ),
        )
        for switch in switches
    ]
    why = [
        f"- `{switch}`: {escaped(reason)}"
        for switch in switches
        if (reason := _reason(found[switch, consumers[-1]]))
    ]
    other = [f"- {one}" for one in differences(found, consumers)] or ["Nowhere."]
    about = (
        "Made by `make code`. The smallest run of the model that shows a switch, forced step by step on the "
        f"consumers of Kafka's own code ({consumers[0]} to {consumers[-1]}) and the coordinator of "
        f"{coordinator}, in one JVM ([the cell](../explanation/cell.md)): what `rebalance replay RUN --on "
        "coordinator:RELEASE,consumer:RELEASE` says of each. *Not settled* means that not every step could "
        "be forced, or that the clause does not show in what a consumer does."
    )
    lines = ["# What is released, run", "", about, "", *table(heads, rows)]
    lines += ["## Otherwise than the catalogue says", "", *other, ""]
    lines += [f"## Not settled in {consumers[-1]}, and why", "", *why, ""]
    return "\n".join(lines)


def _spans(consumers: Sequence[str], chosen: Sequence[bool]) -> str:
    return "all" if all(chosen) else ranges(consumers, chosen) or "-"


def _reason(result: Replayed) -> str:
    """Why a replay settles nothing; "" where it does."""
    if result.verdict != "inconclusive":
        return ""
    return result.stopped or next(iter(result.unforced), "") or result.why_unobservable


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.on_code", description=__doc__)
    parser.add_argument("--consumers", metavar="R[,R...]", help="their releases (all)")
    parser.add_argument("--coordinator", metavar="R", help="its release (the newest)")
    parser.add_argument("--switches", metavar="S[,S...]", help="which (all)")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where it is written")
    options = parser.parse_args(argv)
    consumers = tuple(options.consumers.split(",")) if options.consumers else releases.consumers()
    coordinator = options.coordinator or releases.coordinators()[-1]
    wanted = options.switches.split(",") if options.switches else list(SHOWN)
    runs = {switch: run for switch in wanted if (run := reproduce(SHOWN[switch])) is not None}
    found = {(switch, release): result for switch, release, result in play(runs, coordinator, consumers)}
    files.write(options.page, page(found, coordinator, consumers))
    print_err(f"written  {options.page}")
    return 1 if any(differences(found, consumers)) else 0


if __name__ == "__main__":
    sys.exit(main())
