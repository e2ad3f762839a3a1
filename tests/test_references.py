"""Every path and dotted name of ours that a docstring, a comment or a page mentions exists."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_layers import FLOORS, TOP, modules
from tests.trees import TOKENS

ROOT = Path(__file__).parents[1]
OWN = "|".join((*FLOORS, "tests", "tools", "examples"))
PATH = re.compile(rf"(?<![\w./<-])((?:\.\./)*(?:{OWN})/[\w./*{{}},-]*[\w*}}/])")
NAME = re.compile(rf"(?<![\w./-])(?:{TOP}\.)?((?:{'|'.join(FLOORS)})(?:\.\w+)+)(?![\w/-])")
QUOTED = re.compile(r"``?([^`\n]+)``?")
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "tools/**/*.md", "tests/**/*.md")
NOT_OURS = ("docs/results/", "docs/paper/", "docs/reference/log-messages.md", "CHANGELOG.md")
"""Generated from results or from other people's code, or of a time that is over."""
WRITTEN = re.compile(r"(?:traces|report)/(?:ID|[\w-]+)\.(?:json|html|txt)|(?:^|/)test_it\.py")
"""Files that commands write where a reader runs them."""


@cache
def tracked() -> frozenset[str]:
    """Every file of the repository and every folder, by path."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    files = listed.stdout.split("\n")
    return frozenset(files) | {parent.as_posix() for file in files for parent in Path(file).parents}


def exists(path: str, beside: Path) -> bool:
    """Whether a path as a text has it leads somewhere, from the root or from the file that mentions it."""
    wanted = path.rstrip("/")
    if any(sign in wanted for sign in "*{"):
        return bool(list(ROOT.glob(re.sub(r"\{[^}]*\}", "*", wanted))))
    places = [wanted, f"{wanted}.py"]
    if path.startswith("../"):
        inside = (beside.parent / wanted).resolve()
        places = [inside.relative_to(ROOT).as_posix()] if inside.is_relative_to(ROOT) else []
    return any(place in tracked() for place in places)


@cache
def defined(module: str) -> frozenset[str]:
    """The names that a module defines or imports, and those in its classes as ``Class.name``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        match node:
            case ast.ClassDef(name=name, body=body):
                found.add(name)
                for part in body:
                    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                        found.add(f"{name}.{part.name}")
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        found.add(f"{name}.{part.target.id}")
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
            ):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {alias.asname or alias.name for alias in names}
    return frozenset(found)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of ours, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:length]), parts[length:]
        if module in modules():
            return (
                not rest or ".".join(rest[:2]) in defined(module) or (len(rest) == 1 and rest[0] in ENDINGS)
            )
    return False


ENDINGS = {"toml", "json", "sql", "py", "md", "html", "sarif", "txt", "xml"}
"""Of files: ``report.sarif`` is no name in the folder ``report``."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of prose in a file: all of a page, the docstrings and comments of a module."""
    source = path.read_text()
    if path.suffix == ".md":
        yield from enumerate(source.splitlines(), 1)
        return
    number, end = 1, 0
    for token in TOKENS.finditer(source):
        number += source.count("\n", end, token.start())
        if token.lastgroup:
            for below, line in enumerate(token[0].splitlines()):
                if not line.lstrip().startswith((">>>", "...")):
                    yield number + below, line
        number, end = number + token[0].count("\n"), token.end()


def dangling_in(line: str, path: Path) -> list[str]:
    """Everything in a line of a file that leads nowhere."""
    mentions = [m[1] for m in PATH.finditer(line) if not exists(m[1], path) and not WRITTEN.search(m[1])]
    for quoted in QUOTED.findall(line):
        mentions += [m[1] for m in NAME.finditer(quoted) if not resolves(m[1])]
    return mentions


def dangling(path: Path) -> list[str]:
    """``file:line: mention`` for everything in a file that leads nowhere."""
    name = path.relative_to(ROOT)
    return [f"{name}:{number}: {it}" for number, line in texts(path) for it in dangling_in(line, path)]


def pages() -> list[Path]:
    """The pages that people write."""
    return sorted(
        {
            p
            for pattern in PAGES
            for p in ROOT.glob(pattern)
            if not p.relative_to(ROOT).as_posix().startswith(NOT_OURS)
        }
    )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_mentions_exists(page: Path) -> None:
    assert dangling(page) == []


@pytest.mark.parametrize("folder", [*FLOORS, "tests", "tools", "examples"])
def test_what_docstrings_and_comments_mention_exists(folder: str) -> None:
    assert [line for path in sorted((ROOT / folder).rglob("*.py")) for line in dangling(path)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `model.values.Cluster` and model/values.py", []),
        ("see `model.values.Clutter`", ["model.values.Clutter"]),
        ("see `model.value`", ["model.value"]),
        ("in model/valves.py", ["model/valves.py"]),
        ("in `base/*.py`", []),
    ],
)
def test_the_check_itself(text: str, found: list[str]) -> None:
    assert dangling_in(text, ROOT / "docs" / "none.md") == found
