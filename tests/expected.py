"""Expected outputs in files, so that a sentence can be improved: ``pytest --update-expected`` rewrites them.

A test calls ``expected(printed)``. The text lies beside the test, in ``expected/<file>/<test>.txt``; a test
with several texts names each: ``expected(printed, "brief")``. Durations, versions and times are not compared.
The flag rewrites the outputs in README.md and docs/ too, and the TLA+ text: everything that a test compares
and a command prints. Read ``git diff`` afterwards: it is what users will read. ``UPDATE_DOCS=1`` is the flag
as a variable, for ``make``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest

FLAG = "--update-expected"
FOLDER = "expected"

VARIABLE = [
    (re.compile(r"\b\d+(\.\d+)? s\b"), "<seconds>"),
    (re.compile(r"\d+(\.\d+){2,}"), "<version>"),
    (re.compile(r"\.rebalance/\d{8}T\d{6}Z(-\d+)?"), ".rebalance/<time>"),
    (re.compile(r"\b\d+\.\d+s\b"), "<seconds>"),  # as pytest writes it
    (re.compile(r"\b\d+ releases of the\b"), "<releases> of the"),  # each new one is one more
    (re.compile(r"[ \t]+$", re.M), ""),
]


def plain(text: str) -> str:
    """Return the text without what differs from run to run or from machine to machine."""
    for pattern, word in VARIABLE:
        text = pattern.sub(word, text)
    return text.strip("\n")


def is_updating(config: pytest.Config) -> bool:
    """Check whether this run rewrites what it would compare."""
    return bool(config.getoption(FLAG) or os.environ.get("UPDATE_DOCS"))


@dataclass(frozen=True)
class Expected:
    """The expected outputs of one test."""

    test: Path
    name: str
    is_updating: bool

    def path(self, part: str = "") -> Path:
        """Return the file of one output."""
        name = re.sub(r"[^\w.=+-]+", "-", f"{self.name}-{part}" if part else self.name).strip("-")
        return self.test.parent / FOLDER / self.test.stem / f"{name}.txt"

    def __call__(self, printed: str, part: str = "") -> None:
        """Compare an output with its file, or rewrite the file."""
        path, text = self.path(part), plain(printed) + "\n"
        before = path.read_text(encoding="utf-8") if path.exists() else None
        if self.is_updating and text != before:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert before is not None, f"{path} is missing: pytest {FLAG} writes it"
        if text != before:
            lines = unified_diff(before.splitlines(), text.splitlines(), "expected", "printed", lineterm="")
            advice = f"{path} is out of date: if the new text is better, pytest {FLAG}"
            pytest.fail("\n".join([advice, *lines]), pytrace=False)
