"""Code that a file names, and whether it may run: only where a run of this user has signed it.

A trace names what it was found with: a command, a module, a class with its jars, a release to be fetched. A
file may have come with a repository or as an artifact, and so may a whole ``.rebalance``; no place is a
reason to run what it names. So a run that saves a trace signs the code that it ran, and the directory where
it did, with a key in the cache of the user. What stands in ``.rebalance/signed`` is a digest a line, which
nobody makes without that key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shlex
import stat
from pathlib import Path

from rebalance_verifier.base.processes.tools import cache
from rebalance_verifier.base.reading import Unreadable, text
from rebalance_verifier.base.saved import (
    ROOT,
    TraceError,
    make_root,
)
from rebalance_verifier.base.text import clean
from rebalance_verifier.gate.targets.hosts.hosted import is_ours

SIGNED = "signed"
KEY = "signing.key"
KEY_BYTES = 32

LONGEST = 200
"""Letters of a command that is shown as what to type."""


def sign(code: str) -> None:
    """Note that this user has run ``code`` in this directory. Nothing is noted where that cannot be kept."""
    with contextlib.suppress(OSError, Unreadable):
        digest = _digest(code, _key())
        if digest not in _signed():
            make_root(ROOT)
            # One write of one line: another run may add its own at the same time.
            with (ROOT / SIGNED).open("ab", buffering=0) as file:
                file.write(f"{digest}\n".encode())


def check(path: Path, code: str, *, trusted: bool, target: bool) -> None:
    """Raise TraceError where a file names code that no run of this user has signed in this directory, unless
    the user has ``trusted`` it. ``target``: the code may be named by ``--target`` as well."""
    if trusted or is_ours(code):
        return
    try:
        why = "" if _digest(code, _key()) in _signed() else "which no run of yours has signed here"
    except (OSError, Unreadable) as error:
        why = f"which cannot be known for yours: {error}"
    if why:
        shown = clean(code)
        name = f"{shown[:LONGEST]}..." if len(shown) > LONGEST else shown
        ways = "--trust runs it"
        if target and name == code:
            ways = f"--target {shlex.quote(code)} or --trust runs it"
        raise TraceError(f"{path} names {name!r}, {why}: if you know it, {ways}")


def _digest(code: str, key: bytes) -> str:
    """Return what stands for code in this directory, where a module or a relative path is looked up."""
    content = json.dumps([os.path.realpath(os.getcwd()), code])
    return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


def _signed() -> set[str]:
    """Return the digests that are kept here. Raises Unreadable."""
    try:
        return set(text(ROOT / SIGNED).split())
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _key() -> bytes:
    """Return the key of this user, made by the first who wants it. Raises OSError."""
    path = cache() / KEY
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{KEY}.{secrets.token_hex(8)}")
    number = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        with contextlib.suppress(FileExistsError):  # of two who make one at once, the first has it
            os.link(draft, path)
    finally:
        draft.unlink()
    return _read(path)


def _read(path: Path) -> bytes:
    """Return the key in a file. Raises OSError, also for one that somebody else can read or has made."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        known = os.fstat(number)
        own = stat.S_ISREG(known.st_mode) and known.st_uid == os.geteuid() and not known.st_mode & 0o077
        if own and len(key := file.read(KEY_BYTES + 1)) == KEY_BYTES:
            return key
    raise OSError(f"{path} is no key that you alone can read: delete it")
