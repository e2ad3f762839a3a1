"""Whatever a program in a sandbox may try, each try harmless where it succeeds: prints what came of each."""

import asyncio
import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
from typing import Any

GIVEN = json.loads(sys.argv[1])
LIBC = ctypes.CDLL(None, use_errno=True)
TRIES: dict[str, Any] = {}


def try_(function):
    TRIES[function.__name__] = function
    return function


def called(number, *arguments):
    if LIBC.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")


def written(path):
    with open(path, "ab") as file:
        file.write(b"the target was here\n")


def connected(family, kind, address):
    with socket.socket(family, kind) as one:
        one.connect(address)
        one.send(b"the target was here")


# --- sockets ------------------------------------------------------------------------------------------------


@try_
def connects_to_a_unix_socket():
    connected(socket.AF_UNIX, socket.SOCK_STREAM, GIVEN["stream"])


@try_
def sends_to_a_unix_socket():
    connected(socket.AF_UNIX, socket.SOCK_DGRAM, GIVEN["datagrams"])


@try_
def connects_to_an_abstract_socket():
    connected(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + GIVEN["abstract"])


@try_
def leads_a_pair_of_datagrams_to_a_unix_socket():
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"the target was here", GIVEN["datagrams"])


@try_
def leads_a_pair_that_is_raw_to_a_unix_socket():
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    ours.sendto(b"the target was here", GIVEN["datagrams"])


@try_
def makes_a_pair():
    a, b = socket.socketpair()
    a.send(b"x")
    assert b.recv(1) == b"x"
    asyncio.run(asyncio.sleep(0))


@try_
def connects_to_the_host_of_a_virtual_machine():
    socket.socket(40, socket.SOCK_STREAM)  # AF_VSOCK


@try_
def asks_the_kernel_for_ciphers():
    socket.socket(38, socket.SOCK_SEQPACKET)  # AF_ALG


@try_
def makes_a_ring():
    called(425, 1, None)


@try_
def connects_to_the_hosts_loopback():
    connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", GIVEN["port"]))


@try_
def speaks_over_its_own_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected(socket.AF_INET, socket.SOCK_STREAM, server.getsockname())
    assert socket.getaddrinfo("localhost", 80)


# --- files --------------------------------------------------------------------------------------------------


@try_
def writes_into_a_fifo():
    number = os.open(GIVEN["fifo"], os.O_WRONLY | os.O_NONBLOCK)
    os.write(number, b"the target was here")


@try_
def reads_from_a_fifo():
    number = os.open(GIVEN["fifo"], os.O_RDONLY | os.O_NONBLOCK)
    assert not os.read(number, 10), "it heard what is for somebody else"
    os.close(number)


@try_
def sees_its_project():
    return sorted(name for name in os.listdir(".") if name != "__pycache__")


@try_
def writes_to_its_project():
    written("file")


@try_
def writes_below_its_project():
    written("below/file")


@try_
def makes_a_file_in_its_project():
    written("new")


@try_
def changes_the_mode_of_a_file():
    os.chmod("file", 0o777)


@try_
def writes_to_its_python():
    written(os.path.join(sys.base_prefix, "new"))


@try_
def writes_to_the_root():
    written("/new")


@try_
def writes_to_the_system():
    written("/etc/new")


@try_
def writes_to_a_device():
    with open("/dev/null", "wb", buffering=0) as null:
        null.write(b"x")
    with open("/dev/urandom", "rb", buffering=0) as random:
        assert len(random.read(8)) == 8
    with open("/dev/fd/0", "rb"), open("/dev/stderr", "wb"):
        return sorted(os.listdir("/dev"))


@try_
def changes_a_device():
    os.chmod("/dev/null", 0o666)


@try_
def reads_the_secrets_of_its_user():
    with open(os.path.expanduser("~/.secret/key")) as file:
        return file.read()


@try_
def reads_another_project():
    with open(GIVEN["other"][::-1]) as file:
        return file.read()


@try_
def sees_its_home():
    return os.listdir(os.path.expanduser("~"))


@try_
def sees_what_is_temporary():
    return [*os.listdir("/run"), *os.listdir("/dev/shm"), *os.listdir("/var/tmp")]


@try_
def reads_what_only_root_may():
    files = [os.path.join(folder, name) for folder, _, names in os.walk("/etc") for name in names]
    readable = [path for path in files if os.access(path, os.R_OK)]
    return [path for path in readable if not os.stat(path).st_mode & 0o004 and os.path.getsize(path)]


@try_
def writes_where_it_may():
    for where in (os.environ["TMPDIR"], os.path.expanduser("~"), "/tmp", "/var/tmp", "/dev/shm", "/run"):
        written(os.path.join(where, "own"))


@try_
def fills_what_it_may_write():
    with open("/tmp/large", "wb") as file:
        for _ in range(GIVEN["mib"] + 1):
            file.write(bytes(2**20))


@try_
def sees_mounts_that_it_may_write_to():
    with open("/proc/self/mountinfo", errors="surrogateescape") as table:
        rows = [line.split() for line in table]
    return sorted(row[4] for row in rows if "ro" not in row[5].split(","))


@try_
def sees_mounts_with_devices_or_setuid():
    with open("/proc/self/mountinfo", errors="surrogateescape") as table:
        rows = [(row[4], row[5].split(",")) for row in map(str.split, table)]
    allowed = [path for path, options in rows if "nosuid" not in options]
    return allowed + [path for path, options in rows if "nodev" not in options and path[:5] != "/dev/"]


# --- the kernel and other processes -------------------------------------------------------------------------


@try_
def writes_a_sysctl_back():
    for path in ("/proc/sys/vm/swappiness", "/proc/sys/kernel/printk", "/proc/sys/net/ipv4/ip_forward"):
        with open(path) as file:
            known = file.read()
        with open(path, "w") as file:
            file.write(known)


@try_
def mounts_something():
    if LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None) < 0:
        raise OSError(ctypes.get_errno(), "")


@try_
def makes_namespaces():
    if LIBC.unshare(0x10000000) < 0:
        raise OSError(ctypes.get_errno(), "")


@try_
def lists_its_keys():
    called({"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3, 0)  # KEYCTL_GET_KEYRING_ID


@try_
def sees_processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


@try_
def signals_the_judge():
    os.kill(GIVEN["judge"], 0)


@try_
def traces_its_parent():
    if LIBC.ptrace(16, os.getppid(), 0, 0) < 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "")


@try_
def enters_the_root_of_its_parent():
    os.listdir(f"/proc/{os.getppid()}/root")


@try_
def finds_a_segment():
    if LIBC.shmget(GIVEN["segment"], 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "")


@try_
def opens_the_terminal():
    os.open("/dev/tty", os.O_RDWR)


@try_
def types_into_a_terminal():
    fcntl.ioctl(2, 0x5412, struct.pack("c", b"\n"))  # TIOCSTI


@try_
def sees_open_files():
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the directory
            continue
    return sorted(name.split(":")[0] for name in found)


@try_
def sees_its_rights():
    with open("/proc/self/status") as status:
        known = {name: text.strip() for name, _, text in (line.partition(":") for line in status)}
    caps = {int(known[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    return [*caps, known["NoNewPrivs"], known["Seccomp"]]


def outcome(function):
    try:
        found = function()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return "done" if found is None else found


print(json.dumps({name: outcome(function) for name, function in TRIES.items()}), flush=True)  # noqa: T201
