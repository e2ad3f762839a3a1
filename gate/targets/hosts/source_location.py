"""Where the source of a target is, as CI systems show it beside the code; nothing of the target's is run."""

from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.hosted import looked_up
from rebalance_verifier.gate.targets.hosts.java import JAVA, parse
from rebalance_verifier.gate.targets.hosts.java.class_file import class_bytes, source_of

ASSIGN = "assign"
NO_SOURCE = {"node_modules", "build", "target", "out", "__pycache__"}
"""Folders that hold what was made of sources."""


class SourceLocation(NamedTuple):
    """A file, as from the working directory and with ``/`` if it is below it, and a line from 1 (0: none)."""

    file: str
    line: int = 0


def locate(spec: str, directory: Path | None = None) -> SourceLocation | None:
    """Return where the target ``spec`` (``gate.targets.resolve``) is defined: a file below ``directory``,
    else None.

    Of ``java:CLASS@WHERE`` file and line are those that the compiled class has for its ``assign``, unless
    javac was to leave them out. Of ``module:attribute`` the line is that of the class, function or
    assignment; of ``-- COMMAND`` the file is the first word that names one. What lies elsewhere, as
    installed packages do, is nobody's to annotate.
    """
    root = (directory or Path.cwd()).resolve()
    if spec.startswith(JAVA):
        return _java(spec, root)
    if spec.startswith("-- "):
        return _program(shlex.split(spec.removeprefix("-- ")), root)
    module, colon, attribute = spec.partition(":")
    names = module.split(".")
    if not colon or not all(name.isidentifier() for name in names):
        return None
    path = _module(names, root)
    if path is None:
        return None
    return SourceLocation(path.relative_to(root).as_posix(), _line(path, attribute.split(".")))


def _java(spec: str, root: Path) -> SourceLocation | None:
    """Return the source of a Java class, or of the Kotlin or Scala that it was, below ``root``: the file of
    its name in the folders of its package, or else the first."""
    try:
        target = parse(spec)
        found = class_bytes(target.class_name, map(Path, target.where))
        source = source_of(found, ASSIGN) if found else None
    except (ToolError, ValueError, OSError):
        return None
    if source is None or not source.file:
        return None
    package = target.class_name.rpartition(".")[0].replace(".", "/")
    files = sorted(path for path in _files(root) if path.name == source.file)
    files.sort(key=lambda path: not path.parent.as_posix().endswith(package))
    return SourceLocation(files[0].relative_to(root).as_posix(), source.line) if files else None


def _files(root: Path) -> Iterator[Path]:
    """Yield the files below ``root``, but for folders that are a tool's own."""
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name[0] != "." and name not in NO_SOURCE)
        yield from (Path(folder, name) for name in names)


def shown(path: str, line: int = 0) -> SourceLocation:
    """Return a file that we have written or read, named as from the working directory if it is below it."""
    whole, root = Path(path).absolute(), Path.cwd()
    return SourceLocation(whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path, line)


def _program(command: Sequence[str], root: Path) -> SourceLocation | None:
    for word in command:
        path = (root / word).resolve()
        if path.is_file() and path.is_relative_to(root):
            return SourceLocation(path.relative_to(root).as_posix())
    return None


def _module(names: Sequence[str], root: Path) -> Path | None:
    """Return the source of a module below ``root``: there, or where the search path leads, as ``src`` layouts
    do."""
    places = [*map(Path, looked_up(str(root)))]
    below = (Path(entry).resolve() for entry in sys.path if entry)
    for base in (*places, *(entry for entry in below if entry.is_relative_to(root))):
        package = base.joinpath(*names)
        for path in (package / "__init__.py", package.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def _line(path: Path, names: Sequence[str]) -> int:
    """Return the line where ``names``, a path of attributes, is defined; 0 where that cannot be told."""
    try:
        body: Sequence[ast.stmt] = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return 0
    line = 0
    for name in names:
        node = next((node for node in body if name in _defined(node)), None)
        if node is None:
            return line
        line = node.lineno
        body = node.body if isinstance(node, ast.ClassDef) else ()
    return line


def _defined(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
    return []
