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
import shlex
from pathlib import Path

from rebalance_verifier.base.processes.signing import key
from rebalance_verifier.base.reading import Unreadable, text
from rebalance_verifier.base.saved import (
    ROOT,
    TraceError,
    make_root,
)
from rebalance_verifier.base.text import clean
from rebalance_verifier.gate.targets.hosts.hosted import is_ours

SIGNED = "signed"

LONGEST = 200
"""Letters of a command that is shown as what to type."""


def sign(code: str) -> None:
    """Note that this user has run ``code`` in this directory. Nothing is noted where that cannot be kept."""
    with contextlib.suppress(OSError, Unreadable):
        digest = _digest(code, key())
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
        why = "" if _digest(code, key()) in _signed() else "which no run of yours has signed here"
    except (OSError, Unreadable) as error:
        why = f"which cannot be known for yours: {error}"
    if why:
        shown = clean(code)
        name = f"{shown[:LONGEST]}..." if len(shown) > LONGEST else shown
        ways = "--trust runs it"
        if target and name == code:
            ways = f"--target {shlex.quote(code)} or --trust runs it"
        raise TraceError(f"{path} names {name!r}, {why}: if you know it, {ways}")


def _digest(code: str, by: bytes) -> str:
    """Return what stands for code in this directory, where a module or a relative path is looked up."""
    content = json.dumps([os.path.realpath(os.getcwd()), code])
    return hmac.new(by, content.encode(), hashlib.sha256).hexdigest()


def _signed() -> set[str]:
    """Return the digests that are kept here. Raises Unreadable."""
    try:
        return set(text(ROOT / SIGNED).split())
    except (FileNotFoundError, NotADirectoryError):
        return set()
