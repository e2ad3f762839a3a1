"""What the tools are given on the command line, refused before the work and not behind it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def writable(text: str) -> Path:
    """A file that can be written."""
    path = Path(text)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path


def directory(text: str) -> Path:
    """A directory that is there."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no directory")
    return path
