"""Two processes keep a program: they resume who was stopped, but no job of a shell, and leave nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rebalance_verifier.base.confine import keeper
from rebalance_verifier.base.processes.child import Child, ProcessGone
from rebalance_verifier.base.processes.supervision import KEPT, family

from tests.base.confine.test_sandbox import possible
from tests.processes import LINUX, alive, left

pytestmark = pytest.mark.skipif(not LINUX, reason="there are no keepers")

LOOKS = 6 * keeper.POLL_SECONDS
"""Time in which keepers look several times."""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(reached: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether it is so within this time."""
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.01)
    return reached()


def becomes(pid: int, *, stopped: bool) -> bool:
    """Whether a process is soon stopped, or soon no more."""
    return until(lambda: (state(pid) == "T") is stopped)


SHELL = """
import os, signal, sys, time
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)  # which becomes that of the session
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
read, write = os.pipe()
job = os.fork()
if not job:
    os.setpgid(0, 0)
    os.read(read, 1)
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
os.setpgid(job, job)
os.tcsetpgrp(terminal, job)
os.write(write, b"x")
print(job, flush=True)
for line in sys.stdin:
    os.tcsetpgrp(terminal, os.getpgrp() if line == "take\\n" else job)
    print(line, end="", flush=True)
"""


class Shell:
    """A shell with a terminal and one job in the foreground."""

    def __init__(self, *command: str) -> None:
        self._ours, its = pty.openpty()
        argv = [sys.executable, "-c", SHELL, os.ttyname(its), *command]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.job = int(self._process.stdout.readline())
        os.close(its)

    def terminal(self, order: str) -> None:
        """``take`` the terminal back, or ``give`` it to the job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{order}\n"

    def close(self) -> None:
        for pid in family(self._process.pid)[::-1]:
            with contextlib.suppress(ProcessLookupError):  # a keeper ends with what it keeps
                os.kill(pid, signal.SIGKILL)
        self._process.communicate()
        os.close(self._ours)


@pytest.fixture
def shell(request):
    opened = Shell(*request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize("shell", [("sleep", "600")], indirect=True)
def test_a_job_that_a_shell_has_stopped_is_none_that_somebody_else_has(shell):
    assert not keeper.stopped(shell.job)
    os.kill(shell.job, signal.SIGSTOP)
    assert until(lambda: state(shell.job) == "T")
    assert keeper.stopped(shell.job), "no shell knows of it"
    shell.terminal("take")
    assert not keeper.stopped(shell.job), "it was Ctrl-Z"
    shell.terminal("give")
    os.kill(shell.job, signal.SIGCONT)
    assert until(lambda: state(shell.job) == "S")
    assert not keeper.stopped(shell.job)


def test_without_a_terminal_somebody_else_has_stopped_it():
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: state(process.pid) == "T")
        assert keeper.stopped(process.pid)
    finally:
        process.kill()
        process.wait()
    assert not keeper.stopped(process.pid)


JUDGE = (
    "import sys, time; from rebalance_verifier.base.processes.child import Child\n"
    "child = Child(['sleep', '600'], kept=True)\n"
    "open(sys.argv[1], 'w').write(str(child.pid))\ntime.sleep(600)"
)


@pytest.mark.parametrize("taken", [True, False])
def test_a_judge_that_ctrl_z_has_stopped_stays_so_and_one_that_its_target_has_goes_on(tmp_path, taken):
    started = tmp_path / "started"
    shell = Shell(sys.executable, "-c", JUDGE, str(started))
    try:
        assert until(lambda: started.exists() and started.read_text() != "")
        if taken:
            shell.terminal("take")
        os.kill(shell.job, signal.SIGTSTP if taken else signal.SIGSTOP)
        assert until(lambda: state(shell.job) == "T") or not taken
        time.sleep(LOOKS)
        assert (state(shell.job) == "T") is taken or until(lambda: state(shell.job) != "T")
    finally:
        shell.close()
    assert not left([int(started.read_text())])


def keepers(child: Child) -> tuple[int, int]:
    """Process ids of the outer and of the inner keeper."""
    outer, inner, *_ = family(child._process.pid)
    return outer, inner


@pytest.fixture
def child():
    opened = Child(["sh", "-c", "echo ready; exec sleep 600"], kept=True)
    assert opened.line(time.monotonic() + 60) == b"ready"
    yield opened
    opened.kill()


def test_keepers_that_are_stopped_go_on(child):
    for pid in keepers(child):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(LOOKS)
        assert becomes(pid, stopped=False)
    assert alive(child.pid)


def test_keepers_leave_the_pipes_to_the_program(child):
    """Who reads them comes to an end when the program closes them."""
    own = [f"/proc/{pid}/fd/{number}" for pid in keepers(child) for number in range(3)]
    assert until(lambda: {*map(os.readlink, own)} == {"/dev/null"}), [*map(os.readlink, own)]


def test_a_program_that_is_stopped_stays_so(child):
    """It is for the judge to say how long it may take."""
    os.kill(child.pid, signal.SIGSTOP)
    assert until(lambda: state(child.pid) == "T")
    time.sleep(LOOKS)
    assert state(child.pid) == "T"


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("sandbox", [False, True])
def test_a_program_ends_with_each_of_its_keepers(sandbox, which):
    if sandbox and not possible():
        pytest.skip("Linux does not let this user make namespaces")
    child = Child(["sh", "-c", "echo ready; exec sleep 600"], kept=True, sandbox=sandbox)
    assert child.line(time.monotonic() + 60) == b"ready"
    scratch = Path(child._scratch)
    os.kill(keepers(child)[which], signal.SIGKILL)
    assert not left([child.pid])
    with pytest.raises(ProcessGone):
        child.line(time.monotonic() + 60)
    child.kill()
    assert not scratch.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_keeper_that_is_to_end_ends_all(child, number):
    outer, inner = keepers(child)  # which ends soon after
    os.kill(outer, number)
    assert not left([child.pid, inner])
    assert until(lambda: not Path(child._scratch).exists())


ENDINGS = {"exit 7": 7} | {f"kill -{-n} $$": n for n in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGPIPE)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_keeper_ends_as_the_program_did(ending):
    """By a signal that Python ignores, too."""
    child = Child(["sh", "-c", ending], kept=True)
    with pytest.raises(ProcessGone):
        child.line(time.monotonic() + 60)
    assert child.returncode == ENDINGS[ending]
    child.kill()


def test_a_keeper_whose_parent_is_another_ends():
    """Should the kernel not have told it so."""
    code = (
        "import os, subprocess; from rebalance_verifier.base.confine import keeper\n"
        "child = subprocess.Popen(['sleep', '5'])\n"
        "print(keeper.watch(os.getppid() + 1, child.pid, resume=False)); child.kill()"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"9\n"


def test_a_program_has_its_pipes_and_nothing_else_of_ours():
    lists = "for f in /proc/$$/fd/*; do test -e $f && printf '%s ' ${f##*/}; done; echo; exec cat"
    with open(__file__) as ours:
        os.set_inheritable(ours.fileno(), True)
        child = Child(["sh", "-c", lists], kept=True)
        assert child.line(time.monotonic() + 60).split() == [b"0", b"1", b"2"]
        child.kill()


def test_a_program_has_the_signals_that_programs_expect():
    child = Child(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], kept=True)
    blocked, ignored = (int(child.line(time.monotonic() + 60).split()[1], 16) for _ in range(2))
    assert blocked == 0
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1), "Python ignores them"
    child.kill()


def test_what_a_program_leaves_goes_with_it(tmp_path):
    """A daemon in a session of its own, whose parent is gone, and a tree that is deep and has links in it."""
    (tmp_path / "precious").write_text("kept")
    leaves = (
        f"cd $TMPDIR; ln -s {tmp_path} link; mkdir -p a/b; ln -s {tmp_path} a/b/link; chmod 0 a/b\n"
        "(setsid sleep 600 & echo $!); sleep 0.2"
    )
    child = Child(["sh", "-c", leaves], kept=True)
    daemon = int(child.line(time.monotonic() + 60))
    with pytest.raises(ProcessGone):
        child.line(time.monotonic() + 60)
    assert not left([daemon])
    child.wait(60)
    assert not Path(child._scratch).exists(), "the keeper removes it, not the judge"
    child.kill()
    assert (tmp_path / "precious").read_text() == "kept"


MISSED = """
import os, signal, time
from rebalance_verifier.base.confine import keeper

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        time.sleep(600)
    children.append(child)
real, looks = keeper.below, []


def below(pid):
    looks.append(pid)
    return real(pid)[:-1] if len(looks) < 3 else real(pid)


keeper.below = below
keeper.end_below(os.getpid())
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("none is left")
"""


def test_what_the_lists_of_the_kernel_miss_is_ended_too():
    """A process that gets another parent while they are read."""
    ran = subprocess.run(
        [sys.executable, "-c", MISSED], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "none is left\n", ran.stderr


def test_a_link_in_place_of_its_directory_is_removed_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "precious").write_text("kept")
    child = Child(["sh", "-c", f"rmdir $TMPDIR; ln -s {tmp_path} $TMPDIR; echo done"], kept=True)
    assert child.line(time.monotonic() + 60) == b"done"
    child.wait(60)
    child.kill()
    assert not os.path.lexists(child._scratch)
    assert (tmp_path / "precious").read_text() == "kept"


def test_what_cannot_be_run_says_why(tmp_path):
    text = tmp_path / "text"
    text.touch()
    for command, error in (("no-such-program", FileNotFoundError), (str(text), PermissionError)):
        with pytest.raises(error) as raised:
            Child([command], kept=True)
        assert raised.value.filename == command


def test_the_keeper_is_started_with_nothing_of_the_users():
    """No site, no variable for Python, no current directory."""
    assert KEPT[1:3] == ("-I", "-S")
