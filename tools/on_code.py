"""``make code``: what the catalogue says of Kafka's consumer and coordinator, asked of every release.

``python -m tools.on_code`` forces the runs that show a switch (``tools.released``) on Kafka's own
code, as ``rebalance replay RUN --on code`` does: on every release of the consumer with the newest
coordinator, and on every release of the coordinator with the newest consumer. What came of it is written to
docs/results/released.md, beside what the catalogue says and, with --model, the model of its release profiles.
Exit 1 where they differ and tools/explained.toml does not say why, or explains what is not there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rebalance.explore.groups.bugs import SHOWN
from rebalance.explore.groups.matrix import cells
from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.cli.console.terminal import print_err
from rebalance.gate.traces import files
from rebalance.live.code import releases
from rebalance.live.code.cell import KafkaCell
from rebalance.live.replay.code_group import CodeReleases
from rebalance.live.replay.on_code import replay_on_code
from rebalance.live.replay.verdict import Replayed
from rebalance.model.bugs.profiles import BROKERS, CLIENTS

from tools.on_code_page import CLIENT, CONSUMER, COORDINATOR, Observation, Observations, concerns, page, wrong
from tools.released import runs_for_code

PAGE = Path(__file__).parents[1] / "docs" / "results" / "released.md"

AT_ONCE = 10
"""Releases in one JVM."""


def observe(runs: Sequence[SavedRun], on: CodeReleases, cell: KafkaCell) -> Observation:
    """What the runs of one switch say of one release: it is enough that one of them shows it."""
    results: list[Replayed] = []
    for run in runs:
        results.append(replay_on_code(run, on, cell))
        if results[-1].verdict == "same":
            return Observation("shown")
    # What is spelled out is there because the smallest run says too little.
    if any(result.absent for result in results):
        return Observation("absent")
    last = results[-1]
    why = last.stopped or next(iter(last.unforced), "") or last.why_unobservable
    return Observation("open", why.partition("\n")[0])


def play(
    part: str,
    switches: Sequence[str],
    listed: Sequence[str],
    other: str,
    runs: Mapping[str, Sequence[SavedRun]],
) -> Iterator[tuple[str, str, Observation]]:
    """(switch, release, what came of it) for the releases of a part, with ``other`` as the other one."""
    for first in range(0, len(listed), AT_ONCE):
        several = listed[first : first + AT_ONCE]
        print_err(f"{part}s: {first} of {len(listed)} releases; {several[0]} to {several[-1]}")
        coordinators, consumers = ([other], several) if part != COORDINATOR else (several, [other])
        with KafkaCell(coordinators, consumers) as cell:
            for release in several:
                one = (other, release) if part != COORDINATOR else (release, other)
                on = CodeReleases(coordinator=one[0], consumers=(one[1],))
                for switch in switches:
                    yield switch, release, observe(runs[switch], on, cell)


def last_of_majors(listed: Sequence[str]) -> tuple[str, ...]:
    """The last release of each major one.

    >>> last_of_majors(("2.8.0", "2.8.2", "3.0.0", "4.4.0"))
    ('2.8.2', '3.0.0', '4.4.0')
    """
    return tuple({one.partition(".")[0]: one for one in listed}.values())


def modelled(switches: Iterable[str]) -> dict[tuple[str, str], str]:
    """(switch, release of a profile) -> the model's own mark, for the profiles of Kafka."""
    names = [name for name in (*CLIENTS, *BROKERS) if name.startswith(("java-", "broker-"))]
    return {(cell.switch, cell.profile.name): cell.mark.value for cell in cells(tuple(switches), names)}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.on_code", description=__doc__)
    parser.add_argument("--consumers", metavar="R[,R...]", help="their releases (all)")
    parser.add_argument("--coordinators", metavar="R[,R...]", help="their releases (all)")
    parser.add_argument("--switches", metavar="S[,S...]", help="which (all)")
    parser.add_argument(
        "--model", action="store_true", help="the model's own matrix beside it (minutes more)"
    )
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where it is written")
    options = parser.parse_args(argv)
    consumers = tuple(options.consumers.split(",")) if options.consumers else releases.consumers()
    coordinators = tuple(options.coordinators.split(",")) if options.coordinators else releases.coordinators()
    switches = options.switches.split(",") if options.switches else list(SHOWN)
    newest = coordinators[-1], consumers[-1]
    runs = {switch: runs_for_code(switch) for switch in switches}
    listed = {
        CONSUMER: consumers,
        COORDINATOR: coordinators,
        CLIENT: last_of_majors(consumers),
    }
    found: dict[str, Observations] = {}
    for part, some in listed.items():
        mine = [switch for switch in switches if concerns(part, switch)]
        if mine:
            played = play(part, mine, some, newest[part == COORDINATOR], runs)
            found[part] = Observations(some, {(switch, one): seen for switch, one, seen in played})
    marks = modelled(s for s in switches if not concerns(CLIENT, s)) if options.model else {}
    files.write(options.page, page(found, marks, newest))
    print_err(f"written  {options.page}")
    whole = not (options.consumers or options.coordinators or options.switches)
    for sentence in wrong(found, whole=whole):
        print_err(sentence)
    return 1 if any(wrong(found, whole=whole)) else 0


if __name__ == "__main__":
    sys.exit(main())
