"""``python -m tools.connect``: histories of a Connect cluster on ``IncrementalCooperativeAssignor``.

The seeds of this project start from KIP-415. Each release is asked the same histories, in a JVM with its
jars. Printed is a table of clauses by release, and the smallest history for each clause, of the oldest that
breaks it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.model.bugs.releases import CURRENT, dotted

ARTIFACT = "org.apache.kafka:connect-runtime"
CLASS = "org.apache.kafka.connect.runtime.distributed.ConnectCheck"
RELEASES = ("3.3.2", "3.6.0", "3.6.2", "3.9.2", dotted(CURRENT))
"""Since 3.3.0 the assignor needs no coordinator to decide."""

CLAUSES = (
    *("answer", "revoked before given", "given once", "configured", "revoked from its owner", "delay"),
    *("settles", "settled: everything runs", "settled: runs once", "settled: nothing deleted runs"),
    "settled: even",
)


@dataclass(frozen=True)
class Judged:
    """What came of one release: for each clause that broke in how many histories, and the smallest."""

    release: str
    histories: int
    rounds: int
    broken: Mapping[str, tuple[int, Sequence[str]]]


def parsed(release: str, lines: Sequence[str]) -> Judged:
    """Return what ``ConnectCheck`` has written."""
    first, *rest = (line.split("\t") for line in lines if "\t" in line)
    broken = {clause: (int(count), log.split("|")) for clause, count, log in rest}
    return Judged(release, int(first[1]), int(first[3]), broken)


def judged(release: str, histories: int) -> Judged:
    """Play the histories on a release."""
    jars = maven.classpath([f"{ARTIFACT}:{release}"])
    source = Path(__file__).with_name("ConnectCheck.java")
    classes = jvm.compiled_texts({source.name: source.read_text(encoding="utf-8")}, jars)
    path = os.pathsep.join([classes, *jars])
    command = [jvm.program(), *jvm.OPTIONS, "-cp", path, CLASS, str(histories)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return parsed(release, ran.stdout.splitlines())


def page(found: Sequence[Judged]) -> str:
    """Return the table, and a history for each clause that some release breaks."""
    heads = ["clause", *(one.release for one in found)]
    lines = [f"| {' | '.join(heads)} |", "| " + " | ".join("---" for _ in heads) + " |"]
    for clause in CLAUSES:
        cells = [str(one.broken[clause][0]) if clause in one.broken else "·" for one in found]
        lines.append(f"| {' | '.join([clause, *cells])} |")
    counts = f"{found[0].histories:,} histories for each release, {found[-1].rounds:,} rebalances on the last"
    lines += ["", f"`·` never broken. {counts}."]
    for clause in CLAUSES:
        shown = next((one for one in found if clause in one.broken), None)
        if shown:
            lines += ["", f"### {clause}, in {shown.release}", "", "```text", *shown.broken[clause][1], "```"]
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.connect", description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    options = parser.parse_args()
    print(page([judged(release, options.histories) for release in options.releases]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
