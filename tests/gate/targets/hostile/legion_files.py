"""Tries by the files that a target leaves, and by what is in place of others."""

import fcntl
import os
import signal
import socket
import struct
import time

from legion_tries import MIB, detached, everything, try_  # type: ignore[import-not-found]

TEMPORARY = os.environ.get("TMPDIR", "")
PRECIOUS = os.environ.get("REBALANCE_PRECIOUS", "")
"""A directory of the user's, which no try may change by way of its own."""


def deep(levels, name="d"):
    """Directories in each other, deeper than a path is long, with a file in each."""
    here = os.open(TEMPORARY, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@try_("files", "answer")
def leaves_a_deep_tree(cluster, group):
    """leaves directories in each other, two thousand deep"""
    deep(2000)
    return everything(cluster, group)


@try_("files", "crash")
def leaves_a_deep_tree_and_kills_both_parents(cluster, group):
    """leaves such a tree without a mode, and kills who would remove it"""
    deep(1200)
    os.chmod(TEMPORARY, 0)
    with open(f"/proc/{os.getppid()}/stat") as stat:
        above = int(stat.read().rpartition(")")[2].split()[1])
    os.kill(above, signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


@try_("files", "answer")
def a_link_in_place_of_its_directory(cluster, group):
    """puts a link to a directory of its user's in place of its own"""
    os.rmdir(TEMPORARY)
    os.symlink(PRECIOUS, TEMPORARY)
    return everything(cluster, group)


@try_("files", "answer")
def another_directory_in_place_of_its_own(cluster, group):
    """puts another directory in place of its own, with a link to one of its user's in it"""
    os.rmdir(TEMPORARY)
    os.makedirs(f"{TEMPORARY}/a/b")
    os.symlink(PRECIOUS, f"{TEMPORARY}/a/b/link")
    os.link(f"{PRECIOUS}/file", f"{TEMPORARY}/a/hard")
    return everything(cluster, group)


@try_("files", "answer")
def a_fifo_in_place_of_its_directory(cluster, group):
    """puts a FIFO in place of its directory"""
    os.rmdir(TEMPORARY)
    os.mkfifo(TEMPORARY)
    return everything(cluster, group)


@try_("files", "answer")
def a_socket_in_place_of_its_directory(cluster, group):
    """puts a socket in place of its directory"""
    os.rmdir(TEMPORARY)
    socket.socket(socket.AF_UNIX).bind(TEMPORARY)
    return everything(cluster, group)


@try_("files", "answer")
def names_that_are_no_text(cluster, group):
    """leaves names that are no text, end lines, or look like options"""
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"\x1b[2J", b"x" * 255, b".", b"*"):
        where = os.fsencode(TEMPORARY) + b"/" + name + (b"" if len(name) > 99 else b"dir")
        os.mkdir(where)
        os.mkfifo(where + b"/fifo")
        os.chmod(where, 0)
    return everything(cluster, group)


@try_("files", "answer")
def files_that_may_not_be_changed(cluster, group):
    """leaves files and directories that may not be changed, as far as it may say so"""
    for path in (f"{TEMPORARY}/file", TEMPORARY):
        number = os.open(path, os.O_CREAT if path != TEMPORARY else os.O_RDONLY)
        try:
            fcntl.ioctl(number, 0x40086602, struct.pack("l", 0x10))  # FS_IOC_SETFLAGS, FS_IMMUTABLE_FL
        except OSError:
            os.chmod(path, 0)
        os.close(number)
    return everything(cluster, group)


@try_("files", "answer")
def fills_its_directory_meanwhile(cluster, group):
    """lets a daemon make files for as long as it lives"""
    detached(
        "import os, itertools\n"
        "for number in itertools.count(): os.makedirs(os.environ['TMPDIR'] + f'/{number}', exist_ok=True)"
    )
    time.sleep(0.1)
    return everything(cluster, group)


@try_("files", "memory")
def writes_for_ever(cluster, group):
    """writes files for ever"""
    for number in range(300):
        with open(f"{TEMPORARY}/{number}", "wb") as file:
            file.write(bytes(MIB))
    time.sleep(60)


@try_("files", "memory")
def writes_to_a_file_without_a_name(cluster, group):
    """writes for ever to a file that it has removed"""
    with open(f"{TEMPORARY}/file", "wb", buffering=0) as file:
        os.unlink(file.name)
        for _ in range(300):
            file.write(bytes(MIB))
        time.sleep(60)
