"""A child is heard line by line, within limits, and is gone with all of its own when it is killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from rebalance_verifier.base.files import Kept
from rebalance_verifier.base.processes import child as module
from rebalance_verifier.base.processes.child import MAX_ANSWER, Child, ProcessGone
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.supervision import marked

from tests.processes import LINUX, left

linux = pytest.mark.skipif(not LINUX, reason="/proc tells it")


def soon() -> float:
    return time.monotonic() + 60


@pytest.fixture
def started():
    """Starts Python programs as children, and kills them afterwards."""
    children: list[Child] = []

    def start(program: str, **options) -> Child:
        children.append(Child([sys.executable, "-c", program], **options))
        return children[-1]

    yield start
    for child in children:
        child.kill()


def gone(child: Child, seconds: float = 60.0) -> ProcessGone:
    with pytest.raises(ProcessGone) as error:
        child.line(time.monotonic() + seconds)
    return error.value


WRITES = "import sys\nsys.stdout.write('x' * {count} + '\\n' + 'next\\n'); sys.stdout.flush(); input()"


@pytest.mark.parametrize("kept", [True, False])
def test_an_answer_is_as_long_as_it_may_be_and_no_longer(started, monkeypatch, kept):
    """To the byte, and less for a program that is not trusted: 8 MiB."""
    if not kept:
        monkeypatch.setattr(module, "MAX_LINE", 2 * MAX_ANSWER)
    most = 8 * 2**20 if kept else 2 * MAX_ANSWER
    child = started(WRITES.format(count=most), kept=kept)
    assert len(child.line(soon())) == most
    assert child.line(soon()) == b"next"
    child = started(WRITES.format(count=most + 1), kept=kept)
    failure = gone(child)
    assert (failure.kind, str(failure)) == (
        FailureKind.GARBAGE,
        f"wrote {most >> 20} MiB without a newline",
    )


def test_a_trusted_program_may_say_more(started):
    child = started(WRITES.format(count=MAX_ANSWER + 1))
    assert len(child.line(soon())) == MAX_ANSWER + 1


def test_lines_are_whole_and_in_order_however_they_come(started):
    child = started(
        "import os, time\n"
        "for part in (b'a', b'b\\nc', b'd\\n\\n', b'e\\nlast'): os.write(1, part); time.sleep(0.05)"
    )
    assert [child.line(soon()) for _ in range(4)] == [b"ab", b"cd", b"", b"e"]
    failure = gone(child)
    assert (failure.kind, str(failure)) == (
        FailureKind.CRASH,
        "ended with exit status 0 instead of answering",
    )


@pytest.mark.parametrize(("written", "said"), [("", "no reply"), ("x", "no complete line")])
def test_a_child_that_says_nothing_is_waited_for_as_long_as_it_may_take(started, written, said):
    child = started(f"import os, time; os.write(1, {written.encode()!r}); time.sleep(600)", memory_mib=1000)
    failure = gone(child, 0.3)
    assert (failure.kind, str(failure)) == (FailureKind.TIMEOUT, said)


@pytest.mark.parametrize(
    ("program", "ending"),
    [
        ("import os; os._exit(3)", "ended with exit status 3"),
        ("import os; os.abort()", "was ended by SIGABRT"),
        ("import os, time; os.close(1); time.sleep(600)", "closed its stdout and is still running"),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_how_a_child_ended_is_said(started, program, ending, kept):
    failure = gone(started(program, kept=kept))
    assert (failure.kind, str(failure)) == (
        FailureKind.CRASH,
        f"{ending} instead of answering"[: len(str(failure))],
    )
    assert str(failure).startswith(ending)


def test_a_child_that_is_deaf_is_heard_to_its_last_line(started):
    child = started(
        "import os, time; os.close(0); print('deaf', flush=True); time.sleep(600)", memory_mib=1000
    )
    assert child.line(soon()) == b"deaf"
    child.send(b"x\n" * 10)
    failure = gone(child)
    assert (failure.kind, str(failure)) == (FailureKind.CRASH, "closed its stdin")


@linux
@pytest.mark.parametrize("kept", [True, False])
def test_memory_counts_with_that_of_descendants(started, kept):
    eats = "x = bytearray(b'x') * (150 * 2**20); input()"
    child = started(
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {eats!r}])", memory_mib=100, kept=kept
    )
    failure = gone(child)
    assert failure.kind is FailureKind.MEMORY
    assert str(failure).endswith("MiB of memory" + " and temporary files" * kept + ", limit 100 MiB")


@linux
def test_memory_that_is_shared_and_not_mapped_counts_for_who_is_not_trusted(started):
    child = started(
        "import os; n = os.memfd_create('x')\nfor _ in range(150): os.write(n, bytes(2**20))\ninput()",
        memory_mib=100,
        kept=True,
    )
    assert gone(child).kind is FailureKind.MEMORY


def test_the_last_of_what_it_writes_to_stderr_is_kept(started):
    child = started(
        "import os, sys; sys.stderr.write('first' + 'x' * 400_000 + 'last'); sys.stderr.flush()\n"
        "print(flush=True); input()"
    )
    child.line(soon())
    text = child.stderr()
    assert (len(text), text[-4:], text[:5]) == (64 * 2**10, "last", "xxxxx")


def test_what_is_sent_arrives_where_more_is_sent_than_a_pipe_takes(started):
    child = started("import sys\nfor line in sys.stdin.buffer: print(len(line), flush=True)", memory_mib=1000)
    for count in (1, 300_000, 2):
        child.send(b"x" * count + b"\n")
    assert [child.line(soon()) for _ in range(3)] == [b"2", b"300001", b"3"]


def test_a_child_hears_farewell_and_ends_by_itself(started, tmp_path):
    child = started(
        f"import sys; text = sys.stdin.read(); open({str(tmp_path / 'said')!r}, 'w').write(text)", kept=True
    )
    child.close(60, farewell=b"bye\n")
    assert (tmp_path / "said").read_text() == "bye\n"
    child.close()


@linux
def test_a_child_that_does_not_end_is_killed_with_what_it_has_started(started):
    child = started(
        "import subprocess, time\n"
        "others = [subprocess.Popen(['sleep', '600'], start_new_session=new) for new in (True, False)]\n"
        "print(*[one.pid for one in others], flush=True)\ntime.sleep(600)"
    )
    others = [int(number) for number in child.line(soon()).split()]
    child.close(0.05)
    assert not left([child.pid, *others])
    assert child.returncode == -signal.SIGKILL


def test_a_program_that_is_not_trusted_has_a_directory_of_its_own_that_goes_with_it(started):
    program = "import os; print(os.environ['TMPDIR'], os.environ.get('MINE'), flush=True); input()"
    child = started(program, kept=True, environment={"MINE": "1", "TMPDIR": "/elsewhere"})
    where, mine = child.line(soon()).decode().split()
    assert (where, mine) == (child._scratch, "1")
    assert Path(where).is_dir()
    child.kill()
    assert not Path(where).exists()
    assert os.environ.get("TMPDIR") != where


def test_what_cannot_be_started_leaves_no_directory(monkeypatch):
    made: list[Kept] = []

    class Noted(Kept):
        def __init__(self, kind: str) -> None:
            super().__init__(kind)
            made.append(self)

    monkeypatch.setattr(module, "Kept", Noted)
    with pytest.raises(FileNotFoundError):
        Child(["no-such-program"], kept=True)
    assert [kept.path.exists() for kept in made] == [False]


@linux
def test_a_fork_leaves_a_child_to_who_started_it(started):
    child = started("import sys\nfor line in sys.stdin: print('heard', flush=True)", kept=True)
    if not (pid := os.fork()):
        child.abandon()
        child.kill()
        os._exit(0)
    os.waitpid(pid, 0)
    assert Path(child._scratch).is_dir()
    child.send(b"x\n")
    assert child.line(soon()) == b"heard"


@linux
def test_who_has_killed_its_keepers_is_found_by_its_directory(started):
    child = started(
        "import os, subprocess, sys, ctypes\n"
        "other = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print(os.getppid(), other.pid, flush=True); input()",
        kept=True,
    )
    inner, other = map(int, child.line(soon()).split())
    until = soon()
    while other not in marked(child._scratch) and time.monotonic() < until:
        time.sleep(0.01)  # it is not quite another program yet
    os.kill(child._process.pid, signal.SIGKILL)
    os.kill(inner, signal.SIGKILL)
    child._process.wait(60)
    child.kill()
    assert not left([other])


@linux
def test_temporary_files_count_for_who_is_not_trusted(started):
    child = started(
        "import os\nwith open(os.environ['TMPDIR'] + '/file', 'wb') as file:\n"
        "    for _ in range(150): file.write(bytes(2**20))\ninput()",
        memory_mib=100,
        kept=True,
    )
    assert gone(child).kind is FailureKind.MEMORY
