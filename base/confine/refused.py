"""The system calls that a program in a sandbox is refused, as a filter of the kernel (seccomp).

Mounts and namespaces end at files and networks. Sockets of other families than the Internet's do not: a UNIX
socket is found by a file, one of a virtual machine (``AF_VSOCK``) by a number. ``AF_UNIX`` pairs are let
through where they cannot be led elsewhere, since Node, the JVM and asyncio speak with themselves by them.
"""

from __future__ import annotations

import ctypes
import errno
import os

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NETLINK_ROUTE = 0
SOCK_STREAM, SOCK_SEQPACKET, _SOCK_TYPE = 1, 5, 0xF

MACHINES = {
    # machine: (AUDIT_ARCH_..., socket, socketpair, the keyring's three)
    "x86_64": (0xC000003E, 41, 53, (248, 249, 250)),
    "aarch64": (0xC00000B7, 198, 199, (217, 218, 219)),
}
_IO_URING = (425, 426, 427)  # the same everywhere; a ring opens sockets that no filter sees
_X32 = 0x40000000  # such numbers are of another table of the same processor

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _MACHINE, _FIRST = 0, 4, 16  # offsets in struct seccomp_data; each argument has eight bytes

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


class _Step(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("true", ctypes.c_uint8),
        ("false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Step)))


def steps(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter for a machine, of which `MACHINES` has the numbers: code, jumps, value."""
    arch, socket, pair, keys = MACHINES[machine]
    no_family, none = (
        (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
    )
    allow, kill = (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _KILL)

    def argument(number: int) -> tuple[int, int, int, int]:
        return (_LOAD, 0, 0, _FIRST + 8 * number)  # its low half: the kernel reads an int

    of_socket = [
        argument(0),
        (_EQUAL, 5, 0, AF_INET),
        (_EQUAL, 4, 0, AF_INET6),
        (_EQUAL, 0, 2, AF_NETLINK),  # what network there is, which getaddrinfo asks
        argument(2),
        (_EQUAL, 1, 0, NETLINK_ROUTE),
        no_family,
        allow,
    ]
    of_pair = [
        argument(0),
        (_EQUAL, 0, 4, AF_UNIX),
        argument(1),
        (_AND, 0, 0, _SOCK_TYPE),
        (_EQUAL, 2, 0, SOCK_STREAM),
        (_EQUAL, 1, 0, SOCK_SEQPACKET),
        no_family,  # a datagram of a pair goes to whatever socket it is sent to
        allow,
    ]
    refused = [step for number in (*keys, *_IO_URING) for step in ((_EQUAL, 0, 1, number), none)]
    return [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, arch),
        kill,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        kill,
        *refused,
        (_EQUAL, 0, len(of_socket), socket),
        *of_socket,
        (_EQUAL, 0, len(of_pair), pair),
        *of_pair,
        allow,
    ]


def refuse() -> None:
    """Refuse them to this process and all that it starts, for ever. Raises OSError where that cannot be."""
    machine = os.uname().machine
    if machine not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(errno.ENOSYS, f"no filter of system calls is known for {machine}")
    program = [_Step(*step) for step in steps(machine)]
    libc = ctypes.CDLL(None, use_errno=True)
    given = _Program(len(program), (_Step * len(program))(*program))
    for option, *values in ((_NO_NEW_PRIVILEGES, 1, 0), (_SECCOMP, _FILTER, ctypes.addressof(given))):
        if libc.prctl(option, *map(ctypes.c_ulong, values), 0, 0):
            raise OSError(number := ctypes.get_errno(), f"filter of system calls: {os.strerror(number)}")
