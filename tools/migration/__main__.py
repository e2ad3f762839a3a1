"""``python -m tools.migration``: what conversions between the protocols break, docs/results/migration.md.

Each finding of findings.toml is played on the unchanged coordinators of ``--releases``,
and written up as one would report it. ``--search RUNS`` plays as many drawn runs on the newest of them
instead, makes small what breaks something, and prints it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.report.markup import table

from tools.arguments import writable
from tools.migration.findings import RELEASES, MigrationFinding, ShownFinding, findings, shown
from tools.migration.search import PLANS, drawn, plan_of, smaller

PAGE = Path(__file__).parents[2] / "docs" / "results" / "migration.md"

CONSUMERS = NEWEST
"""The release of the classic consumers."""

MAX_LINES = 40
"""Of a log of messages."""

BREAKS = {
    "twice": "two owners, both may commit",
    "overlap": "two owners, one may commit",
    "nobody": "a partition that nobody owns",
    "dead": "a consumer that never comes back",
    "thrown": "a consumer that throws",
}

TEMPLATE = Path(__file__).with_name("page.md")
"""The page around what is made."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.migration", description=__doc__)
    parser.add_argument("--releases", default=",".join(RELEASES), help="of coordinators, the oldest first")
    parser.add_argument("--search", type=int, metavar="RUNS", help="search instead, so many runs")
    parser.add_argument("--seed", type=int, default=0, help="where the search begins")
    parser.add_argument("--out", type=writable, default=PAGE, help="the page")
    options = parser.parse_args(argv)
    releases = options.releases.split(",")
    if options.search:
        return search(releases[-1], options.seed, options.search)
    played: dict[str, dict[str, ShownFinding]] = {one.id: {} for one in findings()}
    for release in releases:
        with Simulation([release], [CONSUMERS]) as simulation:
            for one in findings():
                played[one.id][release] = shown(simulation, one, release)
    options.out.write_text(page(played, releases), encoding="utf-8")
    return 0


def search(release: str, seed: int, runs: int) -> int:
    """Draw runs and print what they break, made small; the exit code is 1 if there is any."""
    found: dict[tuple[str, tuple[str, ...]], str] = {}
    names = tuple(PLANS)
    with Simulation([release], [CONSUMERS]) as simulation:
        for number in range(seed, seed + runs):
            run = drawn(simulation, plan_of(names[number % len(names)], release), str(number))
            if run.kind:
                small = smaller(simulation, run)
                key = (small.kind, small.steps)
                if key not in found:
                    print(
                        f"{small.kind}\t{names[number % len(names)]}\t{', '.join(small.steps)}\t{small.what}"
                    )
                found.setdefault(key, small.what)
    return 1 if found else 0


def page(played: Mapping[str, Mapping[str, ShownFinding]], releases: Sequence[str]) -> str:
    """The page: a table, and each finding as a report."""
    rows = [
        [
            f"[{one.id}](#{one.id})",
            BREAKS[one.kind],
            one.fault or "none",
            *("X" if played[one.id][release].shows else "·" for release in releases),
        ]
        for one in findings()
    ]
    made = {
        "table": "\n".join(table(["finding", "breaks", "fault", *releases], rows)).strip(),
        "findings": "\n".join(line for one in findings() for line in report(one, played[one.id], releases)),
        "consumers": CONSUMERS,
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in made.items():
        text = text.replace("{" + name + "}", value.strip())
    return text


def report(one: MigrationFinding, played: Mapping[str, ShownFinding], releases: Sequence[str]) -> list[str]:
    """One finding, as an upstream report would have it."""
    newest = played[releases[-1]]
    log = newest.log if len(newest.log) <= MAX_LINES else (*newest.log[:MAX_LINES], "...")
    return [
        f'<a id="{one.id}"></a>',
        f"## {one.title}",
        "",
        one.story,
        "",
        f"Steps (`{one.plan}`): `{one.steps}`",
        "",
        f"Messages since the group was last at rest, on {releases[-1]}:",
        "",
        "```text",
        *log,
        *newest.commits,
        "```",
        "",
        f"**Cause.** {one.cause}",
        "",
        f"**Fix.** {one.fix}",
        "",
    ]


if __name__ == "__main__":
    sys.exit(main())
