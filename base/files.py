"""Files that are there as a whole or not at all, and directories for temporary files: of both nothing stays,
whatever ends the process that made them.

What is unfinished is locked while somebody works at it, and the kernel lets go of the lock with the last
process that holds it. So who makes the next one knows which of those that lie about are nobody's any more,
also those of another container, and removes them. Names are random. Where files cannot be locked (Windows,
some network drives) what a killed process leaves stays.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from rebalance_verifier.base.removal import opened, remove

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

MARK = ".draft"
"""How the name of an unfinished file ends, and the hidden name of one begins with that of the file."""


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to be written: ``path`` holds what was written once the block ends, and what it held
    before if the block raises or the process is killed. Whoever writes ``path`` at the same time does not
    matter."""
    _sweep(path.parent.glob(f".{glob.escape(path.name)}.*{MARK}"))
    while True:
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}{MARK}")
        number = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(number, "wb") as file:
            if not _held(number, draft):
                continue
            try:
                yield file
                file.flush()
                if os.name == "nt":  # what is open cannot be renamed there
                    file.close()
                draft.replace(path)
            finally:
                file.close()
                draft.unlink(missing_ok=True)
            return


@contextlib.contextmanager
def scratch(kind: str, within: Path | None = None) -> Iterator[Path]:
    """Yield a directory for temporary files of this ``kind``, removed when the block ends; below ``within``
    if that is given, where the system has its own otherwise."""
    directory = Kept(kind, within)
    try:
        yield directory.path
    finally:
        directory.remove()


class Kept:
    """Such a directory, at ``path``, until somebody calls ``remove``."""

    def __init__(self, kind: str, within: Path | None = None) -> None:
        above = within or Path(tempfile.gettempdir())
        _sweep(above.glob(f".rebalance.{kind}.*" if within else f"rebalance.{kind}.*"))
        prefix = f"{'.' if within else ''}rebalance.{kind}."
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
            self._number = _opened(self.path)
            if self.path.is_dir() if self._number is None else _held(self._number, self.path):
                return
            self.let_go()

    def remove(self) -> None:
        """It is gone, with all in it. Idempotent."""
        remove(self.path)
        self.let_go()

    def let_go(self) -> None:
        """Leave it to who has it besides, as in a fork, or to the next who sweeps. Idempotent."""
        if self._number is not None:
            os.close(self._number)
            self._number = None


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Nobody else who asks for the same is in such a block meanwhile: what is read there and written anew
    loses nothing of what others write. Raises OSError where there is no directory."""
    number = os.open(directory, os.O_RDONLY) if fcntl is not None else None
    try:
        if number is not None:
            with contextlib.suppress(OSError):  # a drive without locks
                fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        if number is not None:
            os.close(number)


def _opened(path: Path) -> int | None:
    """Return a number by which a file or a directory that is ours can be locked; None where it cannot be."""
    if fcntl is None:
        return None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        ours = opened(None, path)  # a directory whose mode somebody has changed
        if ours is None:
            return None
        number = ours
    if os.fstat(number).st_uid == os.geteuid():
        return number
    os.close(number)
    return None


def _held(number: int, path: Path) -> bool:
    """Lock what was made just now, and say whether it is still there: somebody may have seen it before."""
    if fcntl is None:
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX)
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(number), path.stat())
    return False


def _sweep(left: Iterable[Path]) -> None:
    """Remove those of these files and directories that nobody works at. What cannot be removed is no matter
    of who makes the next one."""
    for path in left:
        if (number := _opened(path)) is None:
            continue
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            remove(path)
        finally:
            os.close(number)


def write_whole(path: Path, text: str) -> Path:
    """Write a file as a whole or not at all, also beside another process that writes the same one."""
    with whole(path) as file:
        file.write(text.encode())
    return path
