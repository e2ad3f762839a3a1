"""Where CI gets the suite from: an address, or a path in the repository."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from rebalance_verifier.base.installation import Installation

ADDRESS = re.compile(r"(git|hg|bzr|svn)\+(https|ssh)://\S+|https://\S+")
"""What pip fetches without an index."""


def for_ci(installed: Installation, root: Path) -> str:
    """Return what pip in CI is given to install what is installed here, or "" where nothing is true there: a
    file elsewhere on this machine, changes that nobody has pushed, an index that is recorded nowhere."""
    if installed.path is None:
        return installed.address if urlsplit(installed.address).scheme.endswith("https") else ""
    return within(installed.path, root) or (pushed(installed.path) if installed.path.is_dir() else "")


def within(path: Path, root: Path) -> str:
    """Return a path from ``root`` on, as pip takes it, or "" where it lies elsewhere or is not there."""
    found, top = path.resolve(), root.resolve()
    return (
        f"./{found.relative_to(top).as_posix()}"
        if found != top and found.is_relative_to(top) and found.exists()
        else ""
    )


def pushed(checkout: Path) -> str:
    """Return the address of a checkout's commit, if it is all there is and its remote has it; else ""."""
    url = _git(checkout, "remote", "get-url", "origin")
    commit = _git(checkout, "rev-parse", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--untracked-files=no")
    there = _git(checkout, "branch", "--remotes", "--contains", "HEAD")
    if not (url and commit and there) or changed != "" or urlsplit(url).scheme != "https":
        return ""
    scheme, host, path, *_ = urlsplit(url)
    return f"git+{urlunsplit((scheme, host.rpartition('@')[2], path, '', ''))}@{commit}"  # without a password


def _git(checkout: Path, *argv: str) -> str | None:
    """Return what git prints, or None where it fails or is not there."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(checkout), *argv]
    try:
        ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return ran.stdout.strip()
