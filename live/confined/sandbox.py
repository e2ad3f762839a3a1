"""A process of its own world: no network, nothing to see of other processes, no file to write but in one
directory. Made of Linux namespaces by the process itself, without any right that a user does not have.

`keeper` runs it with nothing else of ours on the path. ``enter`` and ``confine`` raise OSError where the
system does not allow it: it may have no user namespaces, or keep them from users (AppArmor, a container).
"""

from __future__ import annotations

import contextlib
import ctypes
import os

NEW_MOUNTS, NEW_HOST, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
RECURSIVE, PRIVATE, BIND = 0x4000, 0x40000, 0x1000
NO_SUID, NO_DEVICES, READ_ONLY = 2, 4, 1

_MOUNT_SETATTR = 442  # the same on every architecture; since Linux 5.12
_HERE, _ALL_BELOW = -100, 0x8000
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY = 38, 24
_CAPABILITIES = 64
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def enter() -> None:
    """A user namespace for this process, in which it is who it is, and a PID namespace for its children."""
    user, group = os.geteuid(), os.getegid()
    _done(_libc.unshare(NEW_USERS | NEW_PIDS))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def confine(scratch: str, shared_mib: int) -> None:
    """For the first process of the PID namespace: everything is read-only but ``scratch``; shared memory is
    of its own and holds ``shared_mib``; the network is loopback, of its own; no capability is left to what it
    executes."""
    _done(_libc.unshare(NEW_MOUNTS | NEW_NETWORK | NEW_IPC | NEW_HOST))
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    _mount(scratch, scratch, "", BIND)
    _attributes("/", set_=READ_ONLY, flags=_ALL_BELOW)
    _attributes(scratch, clear=READ_ONLY)
    with contextlib.suppress(
        OSError
    ):  # a container that hides parts of its own: other processes stay in sight
        _mount("proc", "/proc", "proc", NO_SUID | NO_DEVICES)
    for path, options in (("/dev/shm", f"size={shared_mib}m"), ("/dev/pts", "size=0"), ("/run", "size=0")):
        needed = (os.getcwd(), scratch, os.path.realpath("/proc/self/exe"))
        if os.path.isdir(path) and not any(one.startswith(path + "/") for one in needed):
            _mount("tmpfs", path, "tmpfs", NO_SUID | NO_DEVICES, options)
    _loopback()
    os.chdir(os.getcwd())
    _done(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(_CAPABILITIES):
        _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)  # EINVAL behind the last one


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _done(_libc.mount(*map(os.fsencode, (source, target, kind)), ctypes.c_ulong(flags), os.fsencode(options)))


def _attributes(path: str, set_: int = 0, clear: int = 0, flags: int = 0) -> None:
    """Change the attributes of a mount, and with a flag of all mounts below it."""
    wanted = (ctypes.c_uint64 * 4)(set_, clear, 0, 0)
    _done(
        _libc.syscall(
            ctypes.c_long(_MOUNT_SETATTR),
            ctypes.c_int(_HERE),
            os.fsencode(path),
            ctypes.c_uint(flags),
            ctypes.byref(wanted),
            ctypes.c_size_t(ctypes.sizeof(wanted)),
        )
    )


def _loopback() -> None:
    """Let programs of the namespace speak with each other over 127.0.0.1."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl
        import socket

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = bytearray(b"lo".ljust(40, b"\0"))
            fcntl.ioctl(any_socket, _GET_FLAGS, request)
            request[16] |= _UP
            fcntl.ioctl(any_socket, _SET_FLAGS, bytes(request))


def _done(result: int) -> None:
    """Raises OSError for a system call that failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
