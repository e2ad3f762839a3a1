"""Building with the tools of other languages, which may be missing, or be without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "examples" / "adapters"
NPM = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=500")
"""Options of npm for a quiet installation that runs nothing of what it installs."""
_OFFLINE = re.compile(
    r"dial tcp|no such host|timeout|refused|unreachable|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONN"
)


def copied(directory: Path) -> Path:
    """The adapters' sources there, as they are in the repository."""
    ignored = shutil.ignore_patterns("node_modules", "bin")
    return Path(shutil.copytree(ADAPTERS, directory, dirs_exist_ok=True, ignore=ignored))


def run(*command: str | Path, cwd: Path) -> None:
    """Build; skip where the tool is missing or cannot reach its registry."""
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and _OFFLINE.search(done.stderr):
        pytest.skip(f"{command[0]} does not reach its registry: {done.stderr.strip().splitlines()[-1][:200]}")
    assert done.returncode == 0, done.stderr
