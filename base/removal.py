"""Remove files and directories that somebody else may have filled: never through a link, across no mount,
however deep the directories are and whatever is in them, and without an error.

`base.confine.keeper` runs this file by its path, with nothing else of ours.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator

_BY_NUMBER = {os.open, os.unlink, os.rmdir, os.rename, os.stat} <= os.supports_dir_fd
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_ANY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OURS = 0o700

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602  # ioctl of Linux where a long has eight bytes
_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20


def remove(path: str | os.PathLike[str]) -> bool:
    """Remove a file, a link, or a directory with all in it, as far as that can be done; say whether it is
    gone. Raises no OSError."""
    path = os.path.abspath(path)
    if not _BY_NUMBER:  # Windows
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        above = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            _remove(above, os.path.basename(path))
        finally:
            os.close(above)
    return not os.path.lexists(path)


def opened(above: int | None, name: str | os.PathLike[str]) -> int | None:
    """Open a directory that is ours, whatever its mode, which becomes one that we may use; None for what is
    another's, or none. ``above``: number of the directory in which it is, the current one without."""
    try:
        number = os.open(name, _DIRECTORY, dir_fd=above)
    except PermissionError:
        if not _made_ours(above, name):
            return None
        try:
            number = os.open(name, _DIRECTORY, dir_fd=above)
        except OSError:
            return None
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if stat.S_IMODE(os.fstat(number).st_mode) & _OURS != _OURS:
            os.fchmod(number, _OURS)
    return number


def _remove(above: int, name: str) -> None:
    """Empty a directory, bringing up what is in its directories, so that none is deep; then remove it."""
    if _unlinked(above, name):
        return
    with _directory(above, name) as folder:
        if folder is None:
            return
        fresh = _fresh_names()
        moved = 1
        while moved:
            moved = sum(_brought_up(folder, inside, fresh) for inside in os.listdir(folder))
    _rmdir(above, name)


def _brought_up(folder: int, name: str, fresh: Iterator[str]) -> bool:
    """Remove what is in a directory, or bring up what is in it if it is one; say whether something came of
    that. What is mounted there cannot be renamed, so nobody looks into it."""
    if _unlinked(folder, name):
        return True
    own = next(fresh)
    if not _renamed(folder, name, folder, own):
        return False
    moved = False
    with _directory(folder, own) as inside:
        for one in os.listdir(inside) if inside is not None else ():
            assert inside is not None
            moved |= _unlinked(inside, one) or _renamed(inside, one, folder, next(fresh))
    return _rmdir(folder, own) or moved


@contextlib.contextmanager
def _directory(above: int, name: str) -> Iterator[int | None]:
    """Open a directory on the device of that in which it is; None if it is none."""
    number = opened(above, name)
    try:
        mounted = number is not None and os.fstat(number).st_dev != os.fstat(above).st_dev
        yield None if mounted else number
    finally:
        if number is not None:
            os.close(number)


def _unlinked(above: int, name: str) -> bool:
    """Remove what is no directory; of one that may not be changed, let it be changed."""
    for last in (False, True):
        try:
            os.unlink(name, dir_fd=above)
        except (IsADirectoryError, FileNotFoundError):
            return False
        except OSError:
            if last:
                return False
            with contextlib.suppress(OSError):
                _unlocked(number := os.open(name, _ANY, dir_fd=above))
                os.close(number)
        else:
            return True
    return False


def _renamed(above: int, name: str, other: int, new: str) -> bool:
    """Move a directory; one that is moved elsewhere has to be ours to write to, since its ``..`` changes."""
    for last in (False, True):
        try:
            os.rename(name, new, src_dir_fd=above, dst_dir_fd=other)
        except OSError:
            if last or (number := opened(above, name)) is None:
                return False
            os.close(number)
        else:
            return True
    return False


def _rmdir(above: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=above)
        return True
    return False


def _made_ours(above: int | None, name: str | os.PathLike[str]) -> bool:
    """Give a directory that may not be opened a mode with which it may, and no link."""
    with contextlib.suppress(OSError, NotImplementedError):
        if not hasattr(os, "O_PATH"):
            os.chmod(name, _OURS, dir_fd=above, follow_symlinks=False)
            return True
        number = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{number}", _OURS)
        finally:
            os.close(number)
        return True
    return False


def _unlocked(number: int) -> None:
    """Take from a file what keeps it from being changed (``chattr +i``, ``+a``), as root may set it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            import fcntl

            known = bytearray(8)
            fcntl.ioctl(number, _GET_FLAGS, known)
            flags = int.from_bytes(known, sys.byteorder)
            if flags & (_IMMUTABLE | _APPEND_ONLY):
                flags &= ~(_IMMUTABLE | _APPEND_ONLY)
                fcntl.ioctl(number, _SET_FLAGS, flags.to_bytes(8, sys.byteorder))


def _fresh_names() -> Iterator[str]:
    """Yield names that nothing has."""
    mark, number = os.urandom(8).hex(), 0
    while True:
        yield f".{mark}.{number}"
        number += 1
