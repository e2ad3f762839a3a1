"""Do the tests notice a subtle mistake in thirty functions of the product?

``python -m tools.mutation.edits`` makes each edit of `edits.toml` in a copy of the project, asks the test
files that are named beside it, and writes the table `edits.md`.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from rebalance_verifier.base.files import scratch
from rebalance_verifier.cli.shared.values import whole

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("edits.toml")
PAGE = Path(__file__).with_name("edits.md")

MARKS = "not slow and not nightly"
"""Those of the fast loop: a mistake is to be noticed while somebody works."""

SECONDS = 1200.0
"""Tests that take longer with a mistake than this do not end, and so notice it."""

_NOT_COPIED = shutil.ignore_patterns(
    *(".git", ".venv", ".ns", ".rebalance", ".hypothesis", ".*_cache", "__pycache__"),
    *("node_modules", "build", "dist", "*.egg-info"),
)


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One mistake: ``new`` for ``old`` in a function of ``file``. ``tests``: the files that are asked, of
    them the tests with these ``marks``."""

    function: str
    file: str
    what: str
    old: str
    new: str
    tests: list[str]
    marks: str = MARKS

    @property
    def key(self) -> str:
        """Its name, whatever line it is on."""
        return f"{self.file} {self.function}"

    def applied(self, source: str) -> str:
        """``source`` with the mistake. Raises ValueError unless ``old`` is there once, in the function."""
        functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
        bodies = [ast.get_source_segment(source, one) or "" for one in functions if one.name == self.function]
        if source.count(self.old) != 1 or not any(self.old in body for body in bodies):
            raise ValueError(f"{self.key} has no more, or twice: {self.old}")
        return source.replace(self.old, self.new)


def edits() -> list[Edit]:
    """All that there are."""
    return [Edit(**row) for row in tomllib.loads(DATA.read_text(encoding="utf-8"))["edit"]]


class Copy:
    """A copy of the project, whose tests import what is in it and not what is installed."""

    def __init__(self, where: Path) -> None:
        self.root = where / "rebalance_verifier"
        shutil.copytree(ROOT, self.root, ignore=_NOT_COPIED, symlinks=True)
        top = (
            self.root / "rebalance_verifier"
        )  # else pytest finds it here, and its parts where they are installed
        for path in top.glob("*.py"):
            path.rename(self.root / path.name)
        shutil.rmtree(top)

    @contextmanager
    def edited(self, edit: Edit) -> Iterator[None]:
        """The copy has the mistake meanwhile."""
        path = self.root / edit.file
        before, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(edit.applied(before), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # what was compiled counts by that

    def failing(self, tests: Sequence[str], marks: str, *options: str) -> list[str]:
        """The tests of these files that fail. Raises RuntimeError where they cannot be run."""
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-m", marks, *options]
        try:
            ran = subprocess.run(
                [*command, *tests],
                cwd=self.root,
                env={**os.environ, "PYTHONPATH": str(self.root.parent)},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ["no end"]
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
        if ran.returncode not in (0, 5) and not failed:  # 5: there are none of these marks
            raise RuntimeError(f"{' '.join(tests)}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return failed


def noticed(some: Sequence[Edit], jobs: int = 2) -> list[str]:
    """For each edit the test that fails first because of it; "" where none does.

    Raises RuntimeError when one fails in the copy without any mistake: it would say nothing.
    """
    copies: SimpleQueue[Copy] = SimpleQueue()

    def ask(edit: Edit) -> str:
        copy = copies.get()
        try:
            with copy.edited(edit):
                failed = copy.failing(edit.tests, edit.marks, "-x")
        finally:
            copies.put(copy)
        print(f"{edit.key}: {failed[0] if failed else 'not noticed'}", file=sys.stderr, flush=True)
        return failed[0] if failed else ""

    with (
        scratch("edits") as directory,
        ThreadPoolExecutor(jobs) as pool,
    ):
        unchanged = Copy(directory / "unchanged")
        for marks in dict.fromkeys(edit.marks for edit in some):
            files = sorted({test for edit in some if edit.marks == marks for test in edit.tests})
            if failed := unchanged.failing(files, marks):
                raise RuntimeError(f"without any mistake: {', '.join(failed)}")
        for number in range(jobs):
            copies.put(Copy(directory / str(number)))
        return list(pool.map(ask, some))


def page(some: Sequence[Edit], found: Sequence[str]) -> str:
    """The table."""
    rows = [
        f"| `{edit.file}` | `{edit.function}` | {edit.what} | {f'`{test}`' if test else 'none'} |"
        for edit, test in zip(some, found, strict=True)
    ]
    return "\n".join(
        [
            "# Thirty subtle mistakes",
            "",
            "Made by `python -m tools.mutation.edits`. One mistake at a time is put into a function; here",
            "is the first test that fails because of it. [edits.toml](edits.toml) has the mistakes, how the",
            "functions were chosen, and which tests are asked.",
            "",
            f"{sum(map(bool, found))} of {len(some)} are noticed.",
            "",
            "| file | function | mistake | test |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when a mistake is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.edits")
    parser.add_argument("--only", default="", help="the edits whose file and function contain this; no table")
    parser.add_argument("--jobs", type=whole, default=2, help="processes at once")
    given = parser.parse_args(arguments)
    some = [edit for edit in edits() if given.only in edit.key]
    if not some:
        parser.error(f"--only: of no edit do file and function contain {given.only!r}")
    found = noticed(some, given.jobs)
    text = page(some, found)
    if given.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
