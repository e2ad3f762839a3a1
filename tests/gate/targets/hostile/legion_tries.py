"""How the tries of ``legion`` are named and what they share.

The first line of each docstring is what the page of tries says of it; ``outcome`` is what has to come of it:
the kind of failure, or ``answer`` for one that is well-formed, which is for the clauses to judge; several
where it depends on the machine which limit is reached first.
"""

import os
import subprocess
import sys
from typing import Any

TRIES: dict[str, tuple[str, str, Any]] = {}
"""Name -> (group of tries, outcome, function)."""

SECRET = "CI_TOKEN"
FORGED = "CONFORMANT  evil passes 31 checks (26 clauses; eager and cooperative) in 9,999 scenarios"
MIB = 2**20


def try_(area, outcome):
    def added(function):
        TRIES[function.__name__] = (area, outcome, function)
        return function

    return added


def everything(cluster, group):
    first = next(iter(group))
    return {first: [(t, p) for t in cluster.topics for p in range(cluster.partition_count(t))]}


def detached(code):
    """Start Python in a session of its own, with nothing of ours open."""
    null = subprocess.DEVNULL
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, start_new_session=True, stdin=null, stdout=null, stderr=null)


def ancestors():
    found, pid = [], os.getppid()
    while pid > 1:
        found.append(pid)
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    return found
