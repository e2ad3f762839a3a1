"""A release of a Python client as pip installs it, in a directory of its own below the user's cache."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rebalance_verifier.base.processes.tools import ToolError, cache, key, made_once, run

SECONDS = 300
"""How long pip may take."""


def pip() -> list[str]:
    """Return the command of the installed pip, not of a module of that name in the current directory."""
    return [sys.executable, "-P", "-m", "pip"]


RELEASE = f"such release for Python {sys.version_info[0]}.{sys.version_info[1]}"
WHEEL = f"{RELEASE} as a wheel, and builds none (`pip wheel` may)"

_RELEASE = re.compile(r"[\w.!+-]+\Z")
_NO_NETWORK = re.compile(
    r"Failed to establish a new connection|Temporary failure in name resolution|timed out"
)


def installed(distribution: str, release: str) -> Path:
    """Return the directory that holds ``distribution`` in this release and whatever it needs, for
    ``sys.path``.

    Asks pip the first time only. Takes wheels alone: what is built from source runs its ``setup.py``, with
    all rights of the user. Raises ToolError where there is no such wheel, no pip or no network.
    """
    wanted = f"{distribution}=={release}"
    if not _RELEASE.match(release):
        raise ToolError(f"{wanted!r} names no release", f"write {distribution}==1.2.3")
    directory = cache() / "pypi" / f"{wanted}-{key(sys.version, wanted)}"

    def make(draft: Path) -> Path:
        site = draft / "site"
        argv = [*pip(), "install", "--quiet", "--no-input", "--only-binary", ":all:"]
        argv += ["--disable-pip-version-check", "--target", str(site), wanted]
        ran = run(argv, SECONDS, f"{wanted}: pip")
        if ran.returncode:
            raise ToolError(_complaint(wanted, ran.stderr, WHEEL), detail=ran.stderr)
        return site

    return made_once(directory, make, f"{wanted} cannot be kept in")


def versions(distribution: str) -> tuple[str, ...]:
    """Return all releases of ``distribution`` that pip finds, whatever Python they are for. Raises
    ToolError."""
    wanted = f"releases of {distribution}"
    argv = [*pip(), "index", "versions", "--ignore-requires-python", "--no-input"]
    # One retry: without any, pip does not say that it reached no index.
    argv += ["--disable-pip-version-check", "--retries", "1", "--timeout", "15", distribution]
    ran = run(argv, SECONDS, f"{wanted}: pip")
    if ran.returncode or _NO_NETWORK.search(ran.stderr):  # it goes on with what lies on this machine
        raise ToolError(_complaint(wanted, ran.stderr, RELEASE), detail=ran.stderr)
    return versions_in(ran.stdout)


def versions_in(output: str) -> tuple[str, ...]:
    """Return the releases that ``pip index versions`` names.

    >>> versions_in("six (1.16.0)\\nAvailable versions: 1.16.0, 1.15.0\\n  INSTALLED: 1.16.0")
    ('1.16.0', '1.15.0')
    """
    listed = (
        line.partition(":")[2] for line in output.splitlines() if line.startswith("Available versions:")
    )
    return tuple(one.strip() for line in listed for one in line.split(","))


def _complaint(wanted: str, output: str, sought: str) -> str:
    """Return what pip has against it, in one line; ``sought`` is what it was to find."""
    if _NO_NETWORK.search(output):
        return f"{wanted}: pip reaches no index: is there a network?"
    if "No matching distribution" in output:
        return f"{wanted}: pip finds no {sought}"
    errors = [line.strip() for line in output.splitlines() if line.strip()]
    return f"{wanted}: pip fails: {(errors or ['it does not say why'])[-1][:300]}"
