"""From what a user names to the command of a target: ``client:NAME[==RELEASE]:ASSIGNOR``, and any program."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.processes.tools import ToolError, run
from rebalance_verifier.live.clients.leaders.clients import (
    ADDRESS,
    EVERY,
    GROUP,
    LEADING,
    PROMISES,
    TOPICS,
    promised,
    released,
)
from rebalance_verifier.live.clients.leaders.leader import OWN_TOPIC
from rebalance_verifier.live.clients.leaders.starting import FORKING
from rebalance_verifier.live.clients.leaders.user_data import LEARN, remembered
from rebalance_verifier.model.written import dialect, written

LEARN_SECONDS = 120
"""How long a client may take to be assigned partitions and to join again; a JVM on a busy machine."""
CLIENT = "client:"
"""How the spec of a client that is known begins."""
WIRE = "wire"
"""The target that is whatever program stands behind ``--``."""
NAMES = (*(f"{CLIENT}{name}:..." for name in LEADING), f"{WIRE} -- COMMAND ...")
"""How they are listed."""


def command(spec: str) -> tuple[str, ...]:
    """Return what judges the client of a spec, ``client:...`` or ``wire -- COMMAND``. Raises ToolError."""
    if spec.startswith(CLIENT):
        return tuple(client_command(spec))
    return tuple(program_command(shlex.split(spec.removeprefix(f"{WIRE} -- "))))


def beside(spec: str, others: Sequence[str]) -> tuple[str, ...]:
    """Return the names of clients whose bytes the members of a group write, in turn (`model.written`).

    The first is that of the target, "" where it is a program that nobody knows. Raises ToolError.
    """
    if not spec.startswith((CLIENT, f"{WIRE} -- ")):
        raise ToolError(f"{spec} is no client", f"--with goes with {' and '.join(NAMES)}")
    own = dialect(_observed(spec, "")) if spec.startswith(CLIENT) else None
    found = [own.name if own else ""]
    for other in others:
        if not other.startswith(CLIENT):
            raise ToolError(f"{other!r} names no client", f"write {CLIENT}NAME, of {', '.join(LEADING)}")
        one = dialect(_observed(other, own.row.assignors if own else ""))
        if own and (alike := own.protocol) != one.protocol:
            raise ToolError(
                f"{other}: its JoinGroup calls the assignor {one.protocol!r}, that of {spec} {alike!r}",
                "a broker refuses such a group",
            )
        found.append(one.name)
    return tuple(found)


def _observed(spec: str, assignor: str) -> str:
    """Return the name of the dialect of a spec, whose assignor may be left out. Raises ToolError."""
    pinned, _, own = spec.removeprefix(CLIENT).partition(":")
    name, _, release = pinned.partition("==")
    if name not in LEADING:
        raise ToolError(f"{spec!r}: {unknown('client', name, LEADING)}")
    wanted = own or assignor
    rows = [row for row in written() if row.client == name and row.assignors == wanted]
    if not rows:
        known = dict.fromkeys(row.assignors for row in written() if row.client == name)
        raise ToolError(f"{spec}: {unknown(f'assignor of {name}', wanted, known)}")
    releases = [row.release for row in rows]
    if release and release not in releases and not assignor:
        release = ""  # the target itself, of which another release was observed
    if release and release not in releases:
        raise ToolError(f"{spec}: {unknown(f'release of {name} that was observed', release, releases)}")
    return f"{name}=={release or releases[-1]}:{wanted}"


def client_command(spec: str) -> list[str]:
    """Return what judges the client of a ``client:`` spec: downloads and builds it, if that was not done
    before. Raises ToolError."""
    pinned, _, assignor = spec.removeprefix(CLIENT).rpartition(":")
    name, _, wanted = pinned.partition("==")
    client = LEADING.get(name)
    if client is None:
        if not name:
            raise ToolError(
                f"{spec!r} names no client", f"write {CLIENT}NAME:ASSIGNOR, of {', '.join(LEADING)}"
            )
        raise ToolError(f"{spec!r}: {unknown('client', name, LEADING)}")
    if assignor not in client.assignors:
        raise ToolError(unknown(f"assignor of {name}", assignor, client.assignors))
    release = released(client, wanted)
    started = client.start(wanted or ("" if client.package.startswith("pypi:") else release))
    hello = {"version": release, "language": client.language, "homepage": client.homepage}
    hello |= {"name": f"{name} {assignor}", "issues": f"{client.homepage}/issues"}
    topics = TOPICS if client.own_topics else EVERY if client.by_pattern else OWN_TOPIC
    forks = [sys.executable, FORKING, *started.program[1:], *started.modules] if started.modules else []
    argv = _command(
        [*([] if forks else started.program), ADDRESS, GROUP, topics, assignor],
        hello,
        {any_name: promised(name, any_name) for any_name in PROMISES},
        started.environment,
        steady=not client.fetches,
        pinned=True,
        at_once=client.at_once,
        anew=client.is_slow(release),
        remembers=assignor in client.remembers,
        forks=forks,
        hosts=started.program if started.hosts else (),
    )
    if not remembered(argv[-1]).exists():
        learning = run([*argv, LEARN], LEARN_SECONDS, f"{spec}: the client")
        if learning.returncode:
            lines = learning.stderr.strip().splitlines() or ["it does not say why"]
            raise ToolError(f"{spec}: the client does not join: {lines[-1][:300]}", detail=learning.stderr)
    return argv


def program_command(command: Sequence[str]) -> list[str]:
    """Return what judges a program that starts a consumer. Raises ToolError."""
    if not any(ADDRESS in word for word in command):
        raise ToolError(
            f"the command does not say where the address of the broker goes: {' '.join(command)}",
            f"write {WIRE} -- PROGRAM ... {ADDRESS} ... {GROUP}, also {TOPICS}",
        )
    return _command(command, {}, {name: promised("", name) for name in PROMISES}, {})


def _command(
    command: Sequence[str],
    hello: Mapping[str, Any],
    promises: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    *,
    steady: bool = True,
    pinned: bool = False,
    at_once: int = 1,
    anew: bool = False,
    remembers: bool = False,
    forks: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> list[str]:
    settings: dict[str, Any] = {
        "command": command,
        "hello": hello,
        "promises": promises,
        "environment": environment,
    }
    settings |= {"steady": steady, "pinned": pinned, "at_once": at_once, "forks": forks, "anew": anew}
    settings |= {"hosts": hosts, "remembers": remembers}
    return [sys.executable, "-P", "-m", "rebalance_verifier.live.clients.leaders", json.dumps(settings)]
