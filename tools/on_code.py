"""``make code``: what the catalogue says of Kafka's consumer and coordinator, asked of every release.

``python -m tools.on_code`` forces the runs that show a switch (``explore.groups.released``) on Kafka's own
code, as ``rebalance bugs --matrix --on code:RELEASE`` does for some: on every release of the consumer with
the newest coordinator, and on every release of the coordinator with the newest consumer; those of consumer
groups (KIP-848) in lockstep with every coordinator that has such groups. What came of it is
written to model/bugs/observed.toml, of which ``make docs`` makes docs/results/released.md and ``rebalance
bugs --matrix`` its marks. With --switches what was observed of the others stays. Exit 1 where it is not as
the catalogue says and model/bugs/explained.toml does not say why, or explains what is not there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rebalance_verifier.base import saved as files
from rebalance_verifier.cli.console.terminal import print_err
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN as SHOWN
from rebalance_verifier.explore.groups.bugs import SERVED_SHOWN
from rebalance_verifier.explore.groups.released import runs_for_code
from rebalance_verifier.live.code import releases
from rebalance_verifier.live.code.lockstep.reproduce import observe_served
from rebalance_verifier.live.code.replay.on_code import observe_part
from rebalance_verifier.model.bugs import observed
from rebalance_verifier.model.bugs.observed import (
    CLIENT,
    CONSUMER,
    COORDINATOR,
    SERVED,
    Observations,
    concerns,
)

FILE = Path(observed.__file__).with_suffix(".toml")


def last_of_majors(listed: Sequence[str]) -> tuple[str, ...]:
    """The last release of each major one.

    >>> last_of_majors(("2.8.0", "2.8.2", "3.0.0", "4.1.0"))
    ('2.8.2', '3.0.0', '4.1.0')
    """
    return tuple({one.partition(".")[0]: one for one in listed}.values())


def observe_all(switches: Sequence[str]) -> Iterator[Observations]:
    """Every part that has one of the switches, in every release there is."""
    consumers, coordinators = releases.consumers(), releases.coordinators()
    runs = {switch: runs_for_code(switch) for switch in switches if switch in SHOWN}
    for part, some, other in (
        (CONSUMER, consumers, coordinators[-1]),
        (COORDINATOR, coordinators, consumers[-1]),
        (CLIENT, last_of_majors(consumers), coordinators[-1]),
    ):
        mine = {switch: runs[switch] for switch in runs if concerns(part, switch)}
        yield observe_part(part, mine, some, other, progress=print_err)
    served = {switch: SERVED_SHOWN[switch] for switch in switches if switch in SERVED_SHOWN}
    served = {switch: one for switch, one in served.items() if concerns(SERVED, switch)}
    yield observe_served(served, coordinators, consumers[-1], progress=print_err)


def together(before: Observations, now: Observations) -> Observations:
    """What was observed now, and of other switches before. Raises ValueError where releases differ."""
    if (before.releases, before.other) != (now.releases, now.other):
        raise ValueError(f"{now.part}: there are other releases than were observed: observe all switches")
    found = {**before.found, **now.found}
    known = SERVED_SHOWN if now.part == SERVED else SHOWN
    order = [switch for switch in known if concerns(now.part, switch)]
    kept = {(s, one): found[s, one] for s in order for one in now.releases if (s, one) in found}
    return Observations(part=now.part, releases=now.releases, other=now.other, found=kept)


def toml(observations: Mapping[str, Observations]) -> str:
    """The file's text; ``model.bugs.observed`` reads it."""
    lines = ["# Made by `make code`; rebalance_verifier.model.bugs.observed says what it means."]
    for part, row in observed.rows(observations).items():
        switches = row.pop("switch")
        assert isinstance(switches, dict)
        lines += ["", f"[{part}]", *(f"{name} = {json.dumps(value)}" for name, value in row.items())]
        for switch, spans in switches.items():
            lines += ["", f"[{part}.switch.{switch}]"]
            lines += [f"{name} = {json.dumps(value)}" for name, value in spans.items()]
    return "\n".join(lines) + "\n"


def wrong(observations: Mapping[str, Observations]) -> Iterator[str]:
    """Differences that nobody has explained, and explanations of none."""
    for part, of in observations.items():
        for difference in (one for switch in of.switches for one in of.differences(switch)):
            if part != CLIENT and not difference.why:
                where = of.spans(difference.releases)
                yield f"not explained: {difference.switch} is {difference.seen} in {part} {where}"
    for one in observed.unused(observations):
        yield f"explained, and not so: {one.switch} is {one.seen} in {one.part} {one.releases}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.on_code", description=__doc__)
    parser.add_argument("--switches", metavar="S[,S...]", help="which (all)")
    parser.add_argument("--file", type=Path, default=FILE, help="where it is written")
    options = parser.parse_args(argv)
    found = {}
    for now in observe_all(options.switches.split(",") if options.switches else [*SHOWN, *SERVED_SHOWN]):
        found[now.part] = together(observed.OBSERVED.get(now.part, now), now) if options.switches else now
    files.write(options.file, toml(found))
    print_err(f"written  {options.file}")
    sentences = list(wrong(found))
    for sentence in sentences:
        print_err(sentence)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
