"""A copy of the product, for tests that change it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.test_layers import FLOORS, ROOT, TOP


def copied(where: Path) -> Path:
    """Copy the packages into a directory for PYTHONPATH, where they come before the editable installation;
    return the directory of the package."""
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / TOP, where / TOP, ignore=hidden)
    for folder in FLOORS:
        shutil.copytree(ROOT / folder, where / TOP / folder, ignore=hidden)
    return where / TOP


def run_copy(where: Path, cwd: Path, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python with the copy in ``where``."""
    environment = {**os.environ, "PYTHONPATH": str(where), **variables}
    command = [sys.executable, "-m", *argv]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
