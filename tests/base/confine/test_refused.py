"""The filter of system calls, run here as the kernel would."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

import pytest
from rebalance_verifier.base.confine.refused import MACHINES, steps

ALLOWED, KILLED = "allowed", "killed"
X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
SOCKET = {"x86_64": 41, "aarch64": 198}
PAIR = {"x86_64": 53, "aarch64": 199}
ARCH = {"x86_64": X86_64, "aarch64": AARCH64}


def decided(machine: str, arch: int, number: int, *arguments: int) -> str:
    """What becomes of a call: ``allowed``, ``killed`` or the name of an error."""
    data = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    accumulator, at, program = 0, 0, steps(machine)
    jumps: dict[int, Callable[[int, int], bool]] = {0x15: int.__eq__, 0x35: int.__ge__}
    while True:
        code, true, false, value = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            if value == 0x7FFF0000:
                return ALLOWED
            return KILLED if value == 0x80000000 else errno.errorcode[value & 0xFFFF]
        else:
            at += true if jumps[code](accumulator, value) else false


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_of_the_internet_are_for_a_target_and_no_others(machine):
    def socket(*arguments: int) -> str:
        return decided(machine, ARCH[machine], SOCKET[machine], *arguments)

    families = {family for family in range(64) if socket(family, 1, 0) == ALLOWED}
    assert families == {2, 10, 16}  # of AF_NETLINK one protocol: what routes there are
    assert [p for p in range(32) if socket(16, 3, p) == ALLOWED] == [0]
    assert socket(1, 1, 0) == "EAFNOSUPPORT"
    assert socket(1 | 7 << 32, 1, 0) == "EAFNOSUPPORT", "the kernel reads an int"


@pytest.mark.parametrize("machine", MACHINES)
def test_pairs_of_sockets_are_those_that_cannot_be_led_elsewhere(machine):
    def pair(*arguments: int) -> str:
        return decided(machine, ARCH[machine], PAIR[machine], *arguments, 0, 0)

    flags = 0o2000000 | 0o4000  # SOCK_CLOEXEC, SOCK_NONBLOCK
    assert [kind for kind in range(16) if pair(1, kind) == ALLOWED] == [1, 5]
    assert [kind for kind in range(16) if pair(1, kind | flags) == ALLOWED] == [1, 5]
    assert pair(2, 1) == pair(40, 1) == "EAFNOSUPPORT"


@pytest.mark.parametrize("machine", MACHINES)
def test_rings_and_keys_are_refused(machine):
    keys = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[machine]
    for number in (*keys, 425, 426, 427):
        assert decided(machine, ARCH[machine], number) == "ENOSYS"
    of_sockets = {SOCKET[machine], PAIR[machine]}
    others = {n for n in range(600) if decided(machine, ARCH[machine], n) != ALLOWED} - of_sockets
    assert others == {*keys, 425, 426, 427}


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_table_of_numbers_end_the_program(machine):
    others = {X86_64, AARCH64, I386, ARM} - {ARCH[machine]}
    assert {decided(machine, arch, number) for arch in others for number in (1, 41, 198, 359)} == {KILLED}
    assert decided(machine, ARCH[machine], 0x40000000 + 41, 1) == KILLED
