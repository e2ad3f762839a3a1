"""A release of a Python client as pip installs it, in a directory of its own below the user's cache."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rebalance.gate.targets import TargetError
from rebalance.gate.tools import cache, key, run

SECONDS = 300
"""How long pip may take; a release without a wheel has to be compiled."""

_RELEASE = re.compile(r"[\w.!+-]+\Z")
_NO_NETWORK = re.compile(
    r"Failed to establish a new connection|Temporary failure in name resolution|timed out"
)


def installed(distribution: str, release: str) -> Path:
    """The directory that holds ``distribution`` in this release and whatever it needs, for ``sys.path``.

    Asks pip the first time only; where there is no wheel it runs the ``setup.py`` of the release. Raises
    TargetError where there is no such release, no pip or no network.
    """
    wanted = f"{distribution}=={release}"
    if not _RELEASE.match(release):
        raise TargetError(f"{wanted!r} names no release", f"write {distribution}==1.2.3")
    directory = cache() / "pypi" / f"{wanted}-{key(sys.version, wanted)}"
    if directory.exists():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".") as draft:
            words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--prefer-binary"]
            words += ["--disable-pip-version-check", "--target", f"{draft}/site", wanted]
            ran = run(words, SECONDS, f"{wanted}: pip")
            if ran.returncode:
                raise TargetError(_complaint(wanted, ran.stderr), detail=ran.stderr)
            if not directory.exists():  # another process may have been quicker
                Path(draft, "site").rename(directory)
    except OSError as error:
        if not directory.exists():
            raise TargetError(f"{wanted} cannot be kept in {directory.parent}: {error}") from error
    return directory


def _complaint(wanted: str, said: str) -> str:
    """What pip has against it, in one line."""
    if _NO_NETWORK.search(said):
        return f"{wanted}: pip reaches no index: is there a network?"
    if "No matching distribution" in said:
        return f"{wanted}: pip finds no such release for Python {sys.version_info[0]}.{sys.version_info[1]}"
    errors = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{wanted}: pip fails: {(errors or ['it does not say why'])[-1][:300]}"
