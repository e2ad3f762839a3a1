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
        forks=forks,
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
    forks: Sequence[str] = (),
) -> list[str]:
    settings: dict[str, Any] = {
        "command": command,
        "hello": hello,
        "promises": promises,
        "environment": environment,
    }
    settings |= {"steady": steady, "pinned": pinned, "at_once": at_once, "forks": forks, "anew": anew}
    return [sys.executable, "-P", "-m", "rebalance_verifier.live.clients.leaders", json.dumps(settings)]
