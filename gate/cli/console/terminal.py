"""What the commands share: how they print, errors of use, and the kinds of values that options take."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

EXITS = (
    "exit codes: 0 conformant, 1 violation (or a stale known failure), 2 usage or target cannot start, "
    "3 inconclusive, 4 internal error, 130 interrupted"
)
ROOT = Path(".rebalance")
"""Where everything is saved that is saved."""


class UsageError(Exception):
    """Something the user can put right; printed as one message, exit code 2."""


def print_out(text: str) -> None:
    """Print to stdout. Where nobody reads any more (``| head``) the rest is dropped, the verdict is not."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_err(text: str) -> None:
    """Print to stderr."""
    with contextlib.suppress(BrokenPipeError):
        print(clean(text), file=sys.stderr, flush=True)


def draw(line: str = "") -> None:
    """Put ``line`` in place of the progress line, which is on stderr; nothing takes it away."""
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def clean(text: str) -> str:
    """Without the escapes by which names and messages from outside could steer the terminal."""
    from rebalance.gate.cli.console.text import clean as clean_line

    return "\n".join(clean_line(line) for line in text.splitlines())


def color(options: argparse.Namespace) -> bool:
    """Whether to print in colour."""
    return not options.no_color and "NO_COLOR" not in os.environ and sys.stdout.isatty()


def unicode() -> bool:
    """Whether stdout can show the bars of the charts."""
    try:
        "█▓▒░·▲△".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def positive(text: str) -> float:
    """An option's value: a number above 0."""
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def whole(text: str) -> int:
    """An option's value: 1, 2, 3 ..."""
    if (value := int(positive(text))) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 1")
    return value


def natural(text: str) -> int:
    """An option's value: 0, 1, 2 ..."""
    if not re.fullmatch(r"\d{1,12}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def amount(text: str) -> int:
    """An option's value: so many bytes, as 500M or 4G."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)(?:i?[bB])?", text)
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory, such as 500M or 4G")
    return int(float(found[1]) * 1024 ** " kmg".index(found[2].lower() or " "))


def comma_separated(text: str) -> tuple[str, ...]:
    """An option's value: several words, separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def write(path: Path, text: str, option: str) -> None:
    """Write a file that an ``option`` asked for. Raises UsageError when that cannot be done."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option}: {error}") from error


Add = Callable[..., argparse.ArgumentParser]
"""``add_parser`` of the subcommands."""


def usage(error: Exception) -> UsageError:
    """``error``, which says what is wrong with what the user asked for, as a UsageError."""
    message: Any = error.args[0] if error.args and not isinstance(error, OSError) else error
    return UsageError(str(message))
