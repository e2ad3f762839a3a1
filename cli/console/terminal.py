"""How commands print and write, and errors of use."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.reading import reason
from rebalance_verifier.base.text import NARROWEST, fitted, page_width
from rebalance_verifier.base.text import clean as clean_line
from rebalance_verifier.base.verdict import Exit

EXIT_CODES = {
    Exit.CONFORMANT: "conformant",
    Exit.VIOLATION: "violation (or a stale known failure)",
    Exit.USAGE: "usage or target cannot start",
    Exit.INCONCLUSIVE: "inconclusive",
    Exit.INTERNAL: "internal error",
    Exit.INTERRUPTED: "interrupted",
}
"""What they mean in every command; ``rebalance --help`` says it."""


class UsageError(Exception):
    """Something the user can put right; printed as one message, exit code 2."""


def print_out(text: str) -> None:
    """Print to stdout. Where nobody reads any more (``| head``) the rest is dropped, the verdict is not.

    Raises UsageError where it cannot be written for another reason, such as a full disk.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"stdout cannot be written: {error.strerror}") from error


def print_text(text: str) -> None:
    """Print what people read, no wider than the terminal; as ``print_out`` where there is none."""
    print_out(fitted(text, page_width()) if sys.stdout.isatty() else text)


def print_err(text: str) -> None:
    """Print to stderr, no wider than the terminal where it is one."""
    shown = clean(text)
    with contextlib.suppress(OSError):
        if sys.stderr.isatty():
            shown = fitted(shown, max(NARROWEST, os.get_terminal_size(sys.stderr.fileno()).columns))
    with contextlib.suppress(OSError):
        print(shown, file=sys.stderr, flush=True)


def clean(text: str) -> str:
    """Without the escapes by which names and messages from outside could steer the terminal."""
    return "\n".join(clean_line(line) for line in text.splitlines())


def color(options: argparse.Namespace) -> bool:
    """Check whether to print in colour: what is typed counts before NO_COLOR, that before FORCE_COLOR, which
    asks for colours in a pipe and at a dumb terminal too; with 0 or false it asks for none."""
    if options.no_color or os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced.lower() not in ("0", "false")
    return sys.stdout.isatty() and not dumb()


def dumb() -> bool:
    """Check whether the terminal takes no escapes."""
    return os.environ.get("TERM") == "dumb"


def unicode() -> bool:
    """Check whether stdout can show the bars of the charts."""
    try:
        "█▓▒░·▲△".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def write(path: Path, text: str, option: str) -> None:
    """Write a file that an ``option`` asked for, whole or not at all; what is no file, a pipe say, as it is.

    A link is followed. Raises UsageError when that cannot be done.
    """
    with usage_errors(OSError, option=option):
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            path.write_text(text, encoding="utf-8")
        else:
            write_whole(path.resolve(), text)


def make_directory(path: Path, option: str, *, empty: bool = False) -> Path:
    """Make a directory that an ``option`` asked for, an ``empty`` one where nothing may be overwritten.

    Raises UsageError when that cannot be done.
    """
    with usage_errors(OSError, option=option):
        path.mkdir(parents=True, exist_ok=True)
        if empty and any(path.iterdir()):
            raise UsageError(f"{option}: {path} is not empty; name a new directory")
    return path


@contextlib.contextmanager
def usage_errors(*kinds: type[Exception], option: str = "") -> Iterator[None]:
    """Make errors of these kinds, which say what is wrong with what was asked for, a UsageError.

    ``option``: whose value it is, named first.
    """
    try:
        yield
    except kinds as error:
        raise UsageError(f"{option}: {reason(error)}" if option else reason(error)) from error


def answer(options: argparse.Namespace, document: Callable[[], Any], text: Callable[[], str]) -> None:
    """Print what a command found, as ``--format`` says: the document as JSON, or the text."""
    if options.format == "json":
        print_json(document())
    else:
        print_text(text())


def print_json(document: Any) -> None:
    """Print a document as JSON."""
    print_out(json_text(document))


def json_text(document: Any, indent: int = 2) -> str:
    """Return a document as JSON, to be printed or written, without what GitHub's runner obeys in a log."""
    return json.dumps(document, indent=indent).replace("##[", "#\\u0023[")
