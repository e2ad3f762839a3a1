"""Tools of the user's machine - Maven, javac, pip - run to their end, the cache of what they made, and files
that are written whole."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.processes.supervision import end_all, spawn


class ToolError(Exception):
    """A program or a package that is needed is missing, does not start, or fails; the text says what to do.

    ``hints`` are lines of the text below its first; ``detail`` is all that the program said.
    """

    def __init__(self, message: str, *hints: str, detail: str = "") -> None:
        super().__init__("\n  ".join([message, *filter(None, hints)]))
        self.detail = detail


def run(
    argv: Sequence[str], seconds: float, what: str, directory: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Return what a program says and how it ends; ``what`` is what it is doing, for messages, and
    ``directory`` where, the current one without.

    Raises ToolError where it does not start, or does not end within ``seconds``; it is ended then, with all
    that it has started.
    """
    pipe, text = subprocess.PIPE, {"encoding": "utf-8", "errors": "replace"}
    try:
        process = spawn(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, **text)
    except OSError as error:
        raise ToolError(f"{what}: cannot run {argv[0]}: {error.strerror}") from error
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ToolError(f"{what} did not end within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            end_all(process.pid)
            process.communicate()
    return subprocess.CompletedProcess(argv, process.returncode, str(output), str(errors))


def cache() -> Path:
    """Return the directory of what was downloaded and compiled, which may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "rebalance-verifier")


def key(*parts: str) -> str:
    """Return a file name that stands for ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def made_once(directory: Path, make: Callable[[Path], Path], trouble: str) -> Path:
    """``directory``, made by the first who wants it, also beside another process that makes the same one.

    ``make`` fills an empty draft and returns what of it becomes the directory. Raises ToolError, which begins
    with ``trouble``, where it cannot be kept.
    """
    if directory.exists():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with scratch("made", directory.parent) as draft:
            made = make(draft)
            if not directory.exists():  # another process may have been quicker
                made.rename(directory)
    except OSError as error:
        if not directory.exists():
            raise ToolError(f"{trouble} {directory.parent}: {error}") from error
    return directory
