"""The key of this user, and what is signed with it: a file may have come with somebody's directory."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from rebalance_verifier.base.processes.tools import cache

KEY = "signing.key"
KEY_BYTES = 32

SEAL_BYTES = hashlib.sha256().digest_size


def seal(name: str) -> hmac.HMAC:
    """Return what seals the content of a file of this name, as it is fed with it. Where there is no key, it
    seals so that nothing will ever be taken for signed."""
    try:
        by = key()
    except OSError:
        by = secrets.token_bytes(KEY_BYTES)
    return hmac.new(by, f"{name}\0".encode(), hashlib.sha256)


def seal_of(name: str, value: Any) -> str:
    """Return what seals a JSON value in a file of this name."""
    signature = seal(name)
    signature.update(json.dumps(value).encode())
    return signature.hexdigest()


def key() -> bytes:
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
        status = os.fstat(number)
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        if own and len(key := file.read(KEY_BYTES + 1)) == KEY_BYTES:
            return key
    raise OSError(f"{path} is no key that you alone can read: delete it")
