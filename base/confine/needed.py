"""The files and directories of the host that a program in a sandbox needs to see, besides the system's."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from rebalance_verifier.base.confine.sandbox import WRITABLE
from rebalance_verifier.base.installation import parsed

ELSEWHERE = ("/dev", "/proc", "/run", "/sys")
"""Neither they nor what is below them is a file of a program."""

_NAME_NO_FILES = {"HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME"}
_OF_A_WORD = re.compile(r"""[\s"',;:=@(){}\[\]]+""")
_OF_A_PREFIX = ("bin", "lib", "lib64", "libexec", "pyvenv.cfg")


def needed(command: Sequence[str], environment: Mapping[str, str], more: Iterable[str] = ()) -> list[str]:
    """Return the paths that ``command`` needs: the current directory, its interpreter, what its arguments and
    variables name, and ``more``. Raises OSError where the current directory holds what a sandbox hides.

    The user's home is not among them, nor what holds it, nor a directory for temporary files: what lies there
    is shown where it is named.
    """
    here, home = os.getcwd(), home_of(environment)
    hidden = {os.path.realpath(path) for path in (home, *WRITABLE)} | {*ELSEWHERE}
    if here in hidden:
        directories = [entry.path for entry in os.scandir(here) if not entry.name.startswith(".")]
    elif _is_above(here, hidden):
        raise OSError(0, f"{here} holds what it hides; change to the directory of your project", "sandbox")
    else:
        directories = [here]
    named = [word for part in command[1:] for word in _paths(part, here)]
    named += [
        word
        for name, text in environment.items()
        if name not in _NAME_NO_FILES
        for word in _paths(text, here)
    ]
    found = [
        *_python(),
        *environment.get("PATH", "").split(os.pathsep),
        *_program(command[0], environment, home),
        *(path for word in named for path in _with_neighbours(word, home)),
        *more,
    ]
    seen = [path for path in found if path.startswith("/") and os.path.exists(path)]
    return [*dict.fromkeys([*directories, *(one for one in seen if not _is_hidden(one, hidden))])]


def home_of(environment: Mapping[str, str]) -> str:
    """Return the home of the user; one that nobody has where there is none, or it is the root."""
    home = os.path.normpath(environment.get("HOME") or os.path.expanduser("~"))
    return home if os.path.isabs(home) and home.strip("/") else "/home/nobody"


def _is_hidden(path: str, hidden: Iterable[str]) -> bool:
    real = os.path.realpath(path)
    return real in hidden or _is_above(real, hidden) or real.startswith(tuple(f"{one}/" for one in ELSEWHERE))


def _is_above(path: str, others: Iterable[str]) -> bool:
    return any(other.startswith(path.rstrip("/") + "/") for other in others)


def _paths(text: str, here: str) -> Iterator[str]:
    """Yield the paths of the files that a word of a command, or a variable, names."""
    for word in dict.fromkeys([text, *text.split(os.pathsep), *_OF_A_WORD.split(text)]):
        if "/" in word and len(word) < 4096 and "\0" not in word:
            path = os.path.normpath(os.path.join(here, word))
            if os.path.exists(path):
                yield path


def _with_neighbours(path: str, home: str) -> Iterator[str]:
    """Yield a file with what lies beside it, and what Node looks for above it."""
    yield from _links(path)
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    if not _is_of_settings(directory, home):
        yield directory
    for above in Path(directory).parents if path.endswith((".js", ".mjs", ".cjs")) else ():
        yield str(above / "node_modules")
        yield str(above / "package.json")
    if os.access(path, os.X_OK) and not os.path.isdir(path):
        yield from _prefixes(path, home)


def _program(name: str, environment: Mapping[str, str], home: str) -> Iterator[str]:
    """Yield what a program is made of, and its interpreter where it is a script."""
    path = shutil.which(name, path=environment.get("PATH"))
    if path is None:
        return
    path = os.path.abspath(path)
    yield from _with_neighbours(path, home)
    with contextlib.suppress(OSError), open(path, "rb") as file:
        line = file.readline(4096)
        for word in os.fsdecode(line[2:]).split() if line.startswith(b"#!") else ():
            if interpreter := shutil.which(word, path=environment.get("PATH")):
                yield from _prefixes(interpreter, home)


def _prefixes(path: str, home: str) -> Iterator[str]:
    """Yield where a program was installed, which is above its ``bin``, and the same of each link to it."""
    for one in _links(path):
        directory = os.path.dirname(one)
        yield directory
        prefix = os.path.dirname(directory)
        if os.path.basename(directory) == "bin":
            if _is_of_settings(prefix, home) or prefix == home:
                yield from (os.path.join(prefix, name) for name in _OF_A_PREFIX)
            else:
                yield prefix


def _is_of_settings(directory: str, home: str) -> bool:
    """Check whether it is a hidden one of the home, which has more than programs in it."""
    return os.path.dirname(directory) == home and os.path.basename(directory).startswith(".")


def _links(path: str) -> Iterator[str]:
    """Yield a path and what it leads to, link by link."""
    for _ in range(40):
        yield path
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    yield os.path.realpath(path)


def _python() -> Iterator[str]:
    """Yield where this Python, its libraries, and what is installed for it lie."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path)
    yield str(Path(__file__).parents[2])
    for distribution in metadata.distributions():
        source = parsed(distribution.read_text("direct_url.json") or "")
        if source.editable:
            yield str(source.path)
