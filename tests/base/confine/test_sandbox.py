"""A program in a sandbox reaches nobody and changes nothing, and without a sandbox nothing runs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.confine import refused
from rebalance_verifier.base.confine.environment import minimal
from rebalance_verifier.base.processes.child import Child

from tests.processes import LINUX

TRIES = Path(__file__).parent / "tries.py"
MIB = 8


def possible() -> bool:
    """Whether Linux lets this user make a sandbox by hand."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    with contextlib.suppress(OSError):
        return LINUX and subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


pytestmark = pytest.mark.skipif(not possible(), reason="Linux does not let this user make namespaces")


def run(command: list[str], environment: dict[str, str], memory_mib: float = MIB) -> Any:
    """Return what a program in a sandbox prints, as JSON."""
    child = Child(command, memory_mib, environment, kept=True, sandbox=True)
    child._memory_mib = 1000  # what it writes is bounded all the same
    try:
        return json.loads(child.line(time.monotonic() + 60))
    except Exception as error:
        raise AssertionError(child.stderr()) from error
    finally:
        child.kill()


class World:
    """A directory with a home, a project, another one, and those who listen."""

    def __init__(self, base: Path, project: str) -> None:
        self.home, self.project = base / "home", base / project
        for path in (self.home / ".secret", self.project / "below", base / "other"):
            path.mkdir(parents=True)
        self.secret, self.other = self.home / ".secret" / "key", base / "other" / "file"
        self.file = self.project / "file"
        for path in (self.secret, self.other, self.file, self.project / "below" / "file"):
            path.write_text("as it was")
        self.fifo = self.project / "fifo"
        os.mkfifo(self.fifo)
        self.reader = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        os.write(self.reader, b"for somebody else")
        self.abstract = f"rebalance test {os.getpid()} {base.name}"
        self.stream, self.datagrams = str(self.project / "stream"), str(self.project / "datagrams")
        self.listeners = [
            self._listener(socket.AF_UNIX, socket.SOCK_STREAM, self.stream),
            self._listener(socket.AF_UNIX, socket.SOCK_DGRAM, self.datagrams),
            self._listener(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.abstract),
            self._listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        ]
        self.segment = 0x5EBA0000 + os.getpid() % 2**16
        self._segment = ctypes.CDLL(None).shmget(self.segment, ctypes.c_size_t(4096), 0o1600)

    @staticmethod
    def _listener(family: int, kind: int, address: Any) -> socket.socket:
        listener = socket.socket(family, kind)
        here = Path.cwd()
        if family == socket.AF_UNIX and not address.startswith("\0"):
            os.chdir(Path(address).parent)  # its own name only: a path of more than 107 bytes is none
            address = Path(address).name
        listener.bind(address)
        os.chdir(here)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener

    def given(self) -> dict[str, Any]:
        return {
            "stream": "stream",
            "datagrams": "datagrams",
            "abstract": self.abstract,
            "port": self.listeners[-1].getsockname()[1],
            "fifo": "fifo",
            "other": str(self.other)[::-1],  # what a command names is shown
            "segment": self.segment,
            "judge": os.getpid(),
            "mib": MIB,
        }

    def environment(self) -> dict[str, str]:
        return {**minimal(), "HOME": str(self.home), "PYTHONDONTWRITEBYTECODE": "1"}

    def heard(self) -> list[str]:
        """What reached those who listen."""
        found = []
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    found.append(str(listener.recv(100)))
                else:
                    found.append(f"a connection to {listener.accept()[0].getsockname()}")
        waiting = os.read(self.reader, 100)
        return [*found, *([] if waiting == b"for somebody else" else [str(waiting)])]

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()
        os.close(self.reader)
        ctypes.CDLL(None).shmctl(self._segment, 0, None)


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """The world after the tries, and what came of each."""
    world = World(tmp_path_factory.mktemp("world"), "project")
    before, here = set(os.listdir("/tmp")), Path.cwd()
    os.chdir(world.project)
    try:
        outcomes = run([sys.executable, str(TRIES), json.dumps(world.given())], world.environment())
        yield world, outcomes
    finally:
        os.chdir(here)
        world.close()
    assert "own" not in set(os.listdir("/tmp")) - before


REFUSED = {
    "connects_to_a_unix_socket": "EAFNOSUPPORT",
    "sends_to_a_unix_socket": "EAFNOSUPPORT",
    "connects_to_an_abstract_socket": "EAFNOSUPPORT",
    "leads_a_pair_of_datagrams_to_a_unix_socket": "EAFNOSUPPORT",
    "leads_a_pair_that_is_raw_to_a_unix_socket": "EAFNOSUPPORT",
    "connects_to_the_host_of_a_virtual_machine": "EAFNOSUPPORT",
    "asks_the_kernel_for_ciphers": "EAFNOSUPPORT",
    "makes_a_ring": "ENOSYS",
    "connects_to_the_hosts_loopback": "ECONNREFUSED",
    "writes_into_a_fifo": "ENXIO",
    "writes_to_its_project": "EROFS",
    "writes_below_its_project": "EROFS",
    "makes_a_file_in_its_project": "EROFS",
    "changes_the_mode_of_a_file": "EROFS",
    "writes_to_its_python": "EROFS",
    "writes_to_the_root": "EROFS",
    "writes_to_the_system": "EROFS",
    "changes_a_device": "EROFS",
    "reads_the_secrets_of_its_user": "ENOENT",
    "reads_another_project": "ENOENT",
    "fills_what_it_may_write": "ENOSPC",
    "writes_a_sysctl_back": "EROFS",
    "mounts_something": "EPERM",
    "makes_namespaces": "ENOSPC",
    "lists_its_keys": "ENOSYS",
    "signals_the_judge": "ESRCH",
    "traces_its_parent": "EPERM",
    "enters_the_root_of_its_parent": "EACCES",
    "finds_a_segment": "ENOENT",
    "opens_the_terminal": "ENOENT",
    "types_into_a_terminal": "ENOTTY",
}
ALLOWED = {
    "makes_a_pair": "done",
    "speaks_over_its_own_loopback": "done",
    "writes_where_it_may": "done",
    "reads_from_a_fifo": "done",
    "sees_its_project": ["below", "datagrams", "fifo", "file", "stream"],
    "writes_to_a_device": sorted(
        "fd full null random shm stderr stdin stdout urandom zero".split()  # noqa: SIM905
    ),
    "sees_what_is_temporary": [],
    "reads_what_only_root_may": [],
    "sees_mounts_with_devices_or_setuid": [],
    "sees_open_files": ["pipe", "pipe", "pipe"],
    "sees_its_rights": [0, "1", "2"],
}


@pytest.mark.parametrize(("name", "expected"), [*REFUSED.items(), *ALLOWED.items()])
def test_what_a_program_in_a_sandbox_can_do(tried, name, expected):
    assert tried[1][name] == expected


def test_each_try_is_looked_at(tried):
    special = {"sees_its_home", "sees_processes", "sees_mounts_that_it_may_write_to"}
    assert {*tried[1]} == {*REFUSED, *ALLOWED, *special}


def test_a_program_in_a_sandbox_sees_itself_and_the_one_who_keeps_it(tried):
    assert len(tried[1]["sees_processes"]) == 2


def test_it_may_write_to_memory_of_its_own_alone(tried):
    world, outcomes = tried
    own = {"/tmp", "/var/tmp", "/dev/shm", "/run"}
    if not any(str(world.home).startswith(f"{path}/") for path in own):
        own.add(str(world.home))
    assert {*outcomes["sees_mounts_that_it_may_write_to"]} == own


def test_nobody_has_heard_of_it_and_nothing_has_changed(tried):
    world, _ = tried
    assert world.heard() == []
    for path in (world.file, world.project / "below" / "file", world.secret, world.other):
        assert path.read_text() == "as it was"
    assert [*world.home.iterdir()] == [world.home / ".secret"]
    assert {path.name for path in world.project.iterdir()} == {"below", "datagrams", "fifo", "file", "stream"}


@pytest.mark.parametrize("at_home", [False, True])
def test_it_has_its_own_world_in_a_directory_of_any_name(tmp_path, monkeypatch, at_home):
    """What separates options and paths is in it, and a byte that is no text. A home is shown entry by entry:
    what is hidden there is not, and FIFOs and sockets are no entries."""
    world = World(tmp_path, "pro:ject, \\ of\udcff mine=")
    try:
        monkeypatch.chdir(world.project)
        (world.project / ".hidden").mkdir()
        environment = world.environment() | ({"HOME": str(world.project)} if at_home else {})
        outcomes = run([sys.executable, str(TRIES), json.dumps(world.given())], environment)
        everything = [".hidden", "below", "datagrams", "fifo", "file", "stream"]
        assert outcomes["sees_its_project"] == (["below", "file"] if at_home else everything)
        assert outcomes["writes_into_a_fifo"] == ("ENOENT" if at_home else "ENXIO")
        for name in ("writes_to_its_project", "writes_below_its_project", "connects_to_a_unix_socket"):
            assert outcomes[name] == REFUSED[name]
        assert world.heard() == []
    finally:
        world.close()


def test_it_sees_a_file_by_the_links_that_lead_to_it(tmp_path, monkeypatch):
    """Relative ones, absolute ones, and one in a circle."""
    for name in ("project", "real/deep", "far"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "real" / "deep" / "file").write_text("seen")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "far" / "up").symlink_to("../link/deep")
    (tmp_path / "far" / "whole").symlink_to(tmp_path / "far" / "up")
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.chdir(tmp_path / "project")
    code = "import json, sys; print(json.dumps([open(path).read() for path in sys.argv[1:4]]))"
    paths = [f"{tmp_path}/{name}/file" for name in ("link/deep", "far/up", "far/whole")]
    assert run([sys.executable, "-c", code, *paths, f"{tmp_path}/circle/x"], minimal()) == ["seen"] * 3


IN_ONE_OF_ITS_OWN = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc")
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.base.confine.test_sandbox import run
from rebalance_verifier.base.confine import refused
from rebalance_verifier.base.confine.environment import minimal
print(json.dumps(run(sys.argv[1:], minimal())))
"""


def judged(prepare: str, *command: str, after: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command between two others in namespaces of their own."""
    shell = ["sh", "-c", f'{prepare}\n"$@"\nended=$?\n{after}\nexit $ended', "sh"]
    argv = [*IN_ONE_OF_ITS_OWN, *shell, *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_what_is_mounted_below_what_it_sees_is_as_safe(tmp_path, monkeypatch):
    """A mount of its own is no part of that above it, nor are those below it."""
    (tmp_path / "mounted").mkdir()
    (tmp_path / "link").symlink_to("mounted/deep")
    monkeypatch.chdir(tmp_path)
    prepare = (
        "mount -t tmpfs none mounted; mkdir mounted/deep; mount -t tmpfs none mounted/deep\n"
        "echo -n seen | tee mounted/file > mounted/deep/file; mkfifo mounted/deep/fifo"
    )
    tries = (
        "import json, os\n"
        "found = [open(name).read() for name in ('mounted/file', 'mounted/deep/file', 'link/file')]\n"
        "for name, kind in (('mounted/file', 'a'), ('mounted/deep/file', 'a'), ('mounted/deep/new', 'w')):\n"
        "    try: open(name, kind)\n"
        "    except OSError as error: found.append(error.strerror)\n"
        "open('mounted/new', 'w')  # of the directory in memory that stands for it\n"
        "try: os.open('mounted/deep/fifo', os.O_WRONLY | os.O_NONBLOCK)\n"
        "except OSError as error: found.append(error.strerror)\n"
        "print(json.dumps(found))"
    )
    command = [sys.executable, "-c", PROGRAM, sys.executable, "-c", tries]
    ran = judged(prepare, *command, after="echo; find mounted; cat mounted/file")
    assert ran.returncode == 0, ran.stderr
    refused = ["Read-only file system"] * 3 + ["No such device or address"]
    found, *after = ran.stdout.splitlines()
    assert json.loads(found) == ["seen"] * 3 + refused
    there = {f"mounted{path}" for path in ("", "/file", "/deep", "/deep/file", "/deep/fifo")}
    assert {*filter(None, after)} == {*there, "seen"}


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        ("echo 0 > /proc/sys/user/max_user_namespaces", "user namespace: No space left on device"),
        ("mount -t tmpfs none /proc/bus", "mount of proc: Operation not permitted"),
        ("cd /", "/ holds what it hides; change to the directory of your project"),
    ],
)
def test_where_there_can_be_no_sandbox_nothing_runs(tmp_path, monkeypatch, prepare, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\ndef assign(cluster, group): return {{}}\n"
    )
    check = [sys.executable, "-m", "rebalance_verifier.cli.start", "check", "mine:assign", "--sandbox"]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    ran = judged(prepare, *check)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0] == f"rebalance: no sandbox for mine:assign (python): {reason}"
    assert "cd /" in prepare or "sysctl" in ran.stderr
    assert not (tmp_path / "ran").exists()


def test_a_target_that_does_not_start_hears_what_it_can_see_and_how_it_sees_more(tmp_path, monkeypatch):
    """A path of a variable that is let through is shown."""
    (tmp_path / "project").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").touch()
    monkeypatch.chdir(tmp_path / "project")
    Path("mine.py").write_text(
        f"open({str(tmp_path / 'data')!r} + '/file')\n"
        "def assign(cluster, group):\n"
        "    topics, first = cluster.topics, min(group)\n"
        "    return {first: [(t, p) for t in topics for p in range(cluster.partition_count(t))]}\n"
    )
    check = [sys.executable, "-m", "rebalance_verifier.cli.start", "check", "mine:assign", "--sandbox"]
    ran = subprocess.run(check, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, "No such file" in ran.stderr) == (2, True)
    assert "with --sandbox it sees" in ran.stderr
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    more = [*check, "--adapter", "--env", "DATA"]
    ran = subprocess.run(more, capture_output=True, text=True, timeout=120, check=False)
    assert "hello from mine" in ran.stdout


def test_a_machine_of_which_no_filter_is_known_has_no_sandbox(monkeypatch):
    known = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*known[:4], "riscv64")))
    with pytest.raises(OSError, match="no filter of system calls is known for riscv64"):
        refused.refuse()
