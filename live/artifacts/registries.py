"""Which releases of a package exist. Each registry is asked by the user's own client of it, so that his
settings and mirrors hold.

A package is written ``REGISTRY:NAME``::

    maven:org.apache.kafka:kafka-clients     pypi:kafka-python
    go:github.com/IBM/sarama                 npm:kafkajs
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.processes.tools import ToolError, run
from rebalance_verifier.live.artifacts import maven, pypi
from rebalance_verifier.model.bugs.releases import released

SECONDS = 60
"""How long go and npm may take."""


@dataclass(frozen=True, slots=True)
class Existing:
    """The ``releases`` of a package, the oldest first; or ``trouble``, one line that says why they are not
    known."""

    releases: tuple[str, ...] = ()
    trouble: str = ""


@cache
def existing(package: str) -> Existing:
    """Return the releases of a package, asked once in a run. Raises ValueError for what names none."""
    kind, name = parsed(package)
    try:
        found = released(VERSIONS[kind](name))
    except ToolError as error:
        return Existing(trouble=str(error).splitlines()[0])
    except ValueError as error:
        return Existing(trouble=f"releases of {name}: the answer of {kind} cannot be read: {error}")
    return Existing(found) if found else Existing(trouble=f"releases of {name}: {kind} lists none")


def existing_of(packages: Iterable[str]) -> Mapping[str, Existing]:
    """Return the same for several, all asked at once."""
    several = tuple(dict.fromkeys(packages))
    with ThreadPoolExecutor(max_workers=len(several) or 1) as pool:
        return dict(zip(several, pool.map(existing, several), strict=True))


def parsed(package: str) -> tuple[str, str]:
    """Registry and name. Raises ValueError."""
    kind, _, name = package.partition(":")
    if kind not in VERSIONS or not name:
        raise ValueError(f"{package!r} is no package: write REGISTRY:NAME, of {', '.join(VERSIONS)}")
    return kind, name


# --- each registry ---------------------------------------------------------------------------------------


def _go(module: str) -> Sequence[str]:
    with scratch("go") as outside:  # of any module, and of what that one vendors
        return go_versions(_printed(["go", "list", "-m", "-versions", "-json", module], module, str(outside)))


def go_versions(output: str) -> Sequence[str]:
    """Return what ``go list -m -versions -json`` lists, retracted versions not among them. Raises
    ValueError."""
    found = json.loads(output)
    return _strings(found.get("Versions", []) if isinstance(found, dict) else found)


def _npm(package: str) -> Sequence[str]:
    with scratch("npm") as empty:  # from its own cache npm answers without a network, as of then
        hasty = [
            "--cache",
            str(empty),
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
            "--loglevel=error",
        ]
        return npm_versions(_printed(["npm", "view", package, "versions", "--json", *hasty], package))


def npm_versions(output: str) -> Sequence[str]:
    """Return what ``npm view PACKAGE versions --json`` lists: one alone is no list. Raises ValueError."""
    found = json.loads(output)
    return _strings([found] if isinstance(found, str) else found)


def _strings(value: object) -> Sequence[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("no list of versions")
    return value


def _printed(argv: Sequence[str], name: str, directory: str | None = None) -> str:
    """Return what a program prints. Raises ToolError."""
    wanted = f"releases of {name}"
    if shutil.which(argv[0]) is None:
        raise ToolError(f"{wanted}: there is no {argv[0]}")
    ran = run(argv, SECONDS, f"{wanted}: {argv[0]}", directory)
    if ran.returncode:
        reason = next(filter(None, map(str.strip, ran.stderr.splitlines())), "it does not say why")
        raise ToolError(f"{wanted}: {argv[0]} fails: {reason[:300]}", detail=ran.stderr)
    return ran.stdout


VERSIONS: dict[str, Callable[[str], Sequence[str]]] = {
    "maven": maven.versions,
    "pypi": pypi.versions,
    "go": _go,
    "npm": _npm,
}
"""Registry -> all versions of a package, previews too, in any order; raises ToolError, ValueError."""
