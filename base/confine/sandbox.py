"""A process of its own world: no network, no other process, and a file system that holds the programs of the
system, what the program is made of, and nothing to write but memory of its own. Made of Linux namespaces by
the process itself, without any right that a user does not have.

`keeper` runs it with nothing else of ours on the path. ``enter`` and ``confine`` raise OSError where the
system does not allow it: it may have no user namespaces, or keep them from users (AppArmor, a container).

Directories of the host are shown through overlays, never bound: to connect to a socket and to write into a
FIFO a mount that is read-only is no hindrance, whereas behind an overlay each is a file of its own to which
nobody listens.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterable

NEW_MOUNTS, NEW_HOST, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
RECURSIVE, PRIVATE, BIND = 0x4000, 0x40000, 0x1000
NO_SUID, NO_DEVICES, READ_ONLY = 2, 4, 1

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu")
"""Where the programs of a system and their libraries are."""

DEVICES = ("null", "zero", "full", "random", "urandom")
LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/var/run": "/run",
    "/var/lock": "/run/lock",
}
OF_THE_KERNEL = ("acpi", "keys", "key-users", "latency_stats", "sched_debug", "scsi", "timer_list")
"""What of /proc tells of the machine, besides what only root may read."""

PUBLIC, OWN = 0o1777, 0o700
WRITABLE = {"/tmp": PUBLIC, "/var/tmp": PUBLIC, "/dev/shm": PUBLIC, "/run": OWN}
FILES_AT_MOST = 200_000

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442  # the same on every architecture; since Linux 5.12
_HERE, _DETACH = -100, 2
_DROP_CAPABILITY = 24
_CAPABILITIES = 64
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_MOST_LINKS = 40

_libc = ctypes.CDLL(None, use_errno=True)


def enter() -> None:
    """A user namespace for this process, in which it is who it is, and a PID namespace for its children."""
    user, group = os.geteuid(), os.getegid()
    _done(_libc.unshare(NEW_USERS | NEW_PIDS), "user namespace")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def confine(scratch: str, shared_mib: int, home: str, shown: Iterable[str]) -> None:
    """For the first process of the PID namespace: besides the system it sees what is ``shown``; what it
    writes, to ``scratch``, ``home`` and where temporary files are, is in memory, ``shared_mib`` at most, and
    gone with it; the network is loopback, of its own; no capability is left to what it executes."""
    _done(_libc.unshare(NEW_MOUNTS | NEW_NETWORK | NEW_IPC | NEW_HOST), "namespaces")
    here = os.getcwd()
    _mount("none", "/", "", RECURSIVE | PRIVATE)
    world = _World(scratch, shared_mib)
    places: dict[str, int | None] = dict.fromkeys([*SYSTEM, *shown])
    places |= {**WRITABLE, home: OWN, scratch: OWN}
    for path in sorted(places, key=_depth):  # what is above is mounted first
        if (mode := places[path]) is None:
            world.show(path)
        else:
            world.own(path, mode)
    if not os.geteuid():
        world.hide("/etc")
    world.devices()
    world.processes()
    world.enter(here)
    _loopback()
    for capability in range(_CAPABILITIES):
        _libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)  # EINVAL behind the last one


class _World:
    """A file system in the making, at ``root``, which is empty, until it is entered."""

    def __init__(self, root: str, mib: int) -> None:
        self._root, self._mounts = root, _mount_points()
        limits = f"size={mib}m,nr_inodes={FILES_AT_MOST},mode=755"
        _mount("tmpfs", root, "tmpfs", NO_SUID | NO_DEVICES, limits)
        self._nothing, self._no_file = f"{root}/.nothing", f"{root}/.no-file"
        os.mkdir(self._nothing, 0o555)
        os.close(os.open(self._no_file, os.O_CREAT, 0o444))
        self._shown: dict[str, bool] = {}
        """Path to whether it is the host's; what is below is of the longest that begins so."""

    def show(self, path: str) -> None:
        """Show a file or directory of the host, read-only, with the links on the way to it."""
        names, at, links = path.split("/")[::-1], "/", 0
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            at = os.path.dirname(at) if name == ".." else os.path.join(at, name)
            if self._is_shown(at):
                return
            if os.path.islink(at):
                self._link(at, text := os.readlink(at))
                names += text.split("/")[::-1]
                at = "/" if text.startswith("/") else os.path.dirname(at)
                if (links := links + 1) > _MOST_LINKS:
                    return
        if at != "/":
            self._show(at)

    def _show(self, path: str) -> None:
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                self._directory(path)
            elif stat.S_ISREG(mode):
                self._file(path)
            elif stat.S_ISLNK(mode):
                self._link(path, os.readlink(path))
        except (FileNotFoundError, PermissionError):
            return  # nor can the program

    def _directory(self, path: str) -> None:
        """Show a directory; entry by entry where others are mounted below it, which an overlay leaves out."""
        os.makedirs(self._root + path, exist_ok=True)
        if any(one.startswith(f"{path}/") for one in self._mounts):
            for name in os.listdir(path):
                if not self._is_shown(inside := os.path.join(path, name)):
                    self._show(inside)
            return
        self._shown[path] = True
        below = os.open(path, os.O_PATH | os.O_DIRECTORY)
        nothing = os.open(self._nothing, os.O_PATH)
        try:  # by number, since a path may hold what separates options
            layers = f"lowerdir=/proc/self/fd/{nothing}:/proc/self/fd/{below}"
            kept = READ_ONLY | NO_SUID | NO_DEVICES
            _mount("overlay", self._root + path, "overlay", kept, layers, shown=path)
        finally:
            os.close(below)
            os.close(nothing)

    def _file(self, path: str) -> None:
        self._shown[path] = True
        self._bind(path, self._root + path)

    def _bind(self, source: str, target: str, *, device: bool = False) -> None:
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT, 0o444))
        _mount(source, target, "", BIND)
        kept = READ_ONLY | NO_SUID
        _attributes(target, kept if device else kept | NO_DEVICES)

    def _link(self, path: str, text: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.makedirs(os.path.dirname(self._root + path), exist_ok=True)
            os.symlink(text, self._root + path)

    def hide(self, path: str) -> None:
        """Hide what of a directory that is shown not everybody may read: root may, and so may its target."""
        for folder, directories, files in os.walk(path):
            for name in [*directories, *files]:
                mode = os.lstat(one := os.path.join(folder, name)).st_mode
                if stat.S_ISDIR(mode) and mode & 0o005 != 0o005:
                    directories.remove(name)
                    instead = self._nothing
                elif stat.S_ISREG(mode) and not mode & 0o004:
                    instead = self._no_file
                else:
                    continue
                self._bind(instead, self._root + one)

    def own(self, path: str, mode: int) -> None:
        """Give it a directory that it may write to, in memory, in place of the host's."""
        target = os.path.normpath(self._root + path)
        if self._whose(path) is False:
            os.makedirs(target, mode, exist_ok=True)
            return
        source = f"{self._root}/.own{len(self._shown)}"
        os.mkdir(source)
        os.chmod(source, mode)
        if not os.path.isdir(target):
            try:
                os.makedirs(target)
            except OSError:
                return  # below what is shown, where there is no such directory
        _mount(source, target, "", BIND)
        self._shown[path] = False

    def _is_shown(self, path: str) -> bool:
        return self._whose(path) is True

    def _whose(self, path: str) -> bool | None:
        while path != "/":
            if path in self._shown:
                return self._shown[path]
            path = os.path.dirname(path)
        return None

    def devices(self) -> None:
        """Give it the devices that nobody else notices."""
        for name in DEVICES:
            self._bind(f"/dev/{name}", f"{self._root}/dev/{name}", device=True)
        for path, text in LINKS.items():
            self._link(path, text)

    def processes(self) -> None:
        """Give it a /proc of its own processes, from which it changes nothing, with no namespaces in it."""
        os.mkdir(at := f"{self._root}/proc")
        _mount("proc", at, "proc", NO_SUID | NO_DEVICES)
        with open(f"{at}/sys/user/max_user_namespaces", "w") as most:
            most.write("0")
        for entry in os.scandir(at):
            if entry.name in OF_THE_KERNEL or (entry.is_file() and not entry.stat().st_mode & stat.S_IROTH):
                self._bind(self._nothing if entry.is_dir() else self._no_file, entry.path)
        _attributes(at, READ_ONLY)

    def enter(self, here: str) -> None:
        """Let this be all that there is, and be where we are."""
        os.chdir(self._root)
        number = _PIVOT_ROOT.get(os.uname().machine)
        if number is None:
            raise OSError(errno.ENOSYS, f"no sandbox is known for {os.uname().machine}")
        _done(_libc.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
        _done(_libc.umount2(b".", _DETACH), "umount")
        _attributes("/", READ_ONLY)
        os.chdir(here)


def _depth(path: str) -> int:
    return os.path.realpath(path).count("/")


def _mount_points() -> list[str]:
    """Return the paths at which something is mounted."""
    with open("/proc/self/mountinfo", "rb") as table:
        paths = [line.split()[4] for line in table]
    return [os.fsdecode(path.decode("unicode_escape").encode("latin-1")) for path in paths]


def _mount(
    source: str, target: str, kind: str, flags: int, options: str = "", *, shown: str | None = None
) -> None:
    arguments = (*map(os.fsencode, (source, target, kind)), ctypes.c_ulong(flags), os.fsencode(options))
    _done(_libc.mount(*arguments), f"mount of {shown or kind or target}")


def _attributes(path: str, set_: int) -> None:
    """Set attributes of a mount."""
    wanted = (ctypes.c_uint64 * 4)(set_, 0, 0, 0)
    arguments = (ctypes.c_long(_MOUNT_SETATTR), ctypes.c_int(_HERE), os.fsencode(path), ctypes.c_uint(0))
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    _done(_libc.syscall(*arguments, ctypes.byref(wanted), size), f"mount attributes of {path}")


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


def _done(result: int, what: str) -> None:
    """Raises OSError for a system call that failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
