"""Whatever is started ends with who started it, and says how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes import supervision
from rebalance_verifier.base.processes.program import CommandRefused, Process, Server
from rebalance_verifier.base.processes.supervision import TimeUsed, spawn
from rebalance_verifier.base.processes.tools import ToolError, run

from tests.processes import LINUX, left

linux = pytest.mark.skipif(not LINUX, reason="the kernel does it on Linux only")


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@linux
def test_a_child_that_hangs_dies_with_its_parent(tmp_path):
    """It reads nothing, so the end of its stdin tells it nothing."""
    program = (
        "import sys, time; from rebalance_verifier.base.processes.child import Child\n"
        "print(Child(['sleep', '1000']).pid, flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    assert not left([pid])


@linux
def test_what_a_process_leaves_that_is_killed_while_it_starts_a_target_goes_with_the_next(tmp_path):
    """Before the keepers are there, who remove the directory otherwise."""
    dies = (
        "import os; from rebalance_verifier.base.processes import child\n"
        "child.keep = lambda *_, **__: os.kill(os.getpid(), 9)\n"
        "child.Child(['true'], kept=True)"
    )
    lives = "from rebalance_verifier.base.processes.child import Child\nChild(['true'], kept=True).kill()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for program, there in ((dies, 1), (lives, 0)):
        subprocess.run([sys.executable, "-c", program], env=environment, check=False)
        assert len([*tmp_path.iterdir()]) == there


def test_what_cannot_be_started_says_why(tmp_path):
    text = tmp_path / "text"
    text.touch()
    for command, error in (("no-such-program", FileNotFoundError), (str(text), PermissionError)):
        with pytest.raises(error):
            spawn([command])
        with pytest.raises(ToolError, match=f"{command} cannot be started: "):
            Process([command])


def test_a_child_has_the_signals_that_programs_expect(tmp_path):
    """Python ignores SIGPIPE, and what is ignored stays so in whatever it becomes."""
    command = script(tmp_path / "pipe", "#!/bin/sh\nkill -PIPE $$\necho ignored\n")
    process = spawn([command], stdout=subprocess.PIPE)
    assert process.communicate()[0] == b""
    assert process.returncode == -signal.SIGPIPE


@pytest.mark.slow
def test_a_tool_that_takes_too_long_is_ended_with_what_it_started(tmp_path):
    pids = tmp_path / "pids"
    command = script(tmp_path / "mvn", f"#!/bin/sh\nsleep 1000 &\necho $$ $! > {pids}\nwait\n")
    with pytest.raises(ToolError, match="mvn did not end within 1 s"):
        run([command], 1, "mvn")
    assert not left(map(int, pids.read_text().split()))


SPEAKS = """
import json, sys
print("noise")
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    do = json.loads(line)["do"]
    print(json.dumps({"error": "no"} if do == "refuse" else {"did": do}), flush=True)
    if do == "end":
        sys.exit("that was all")
"""


def test_a_server_answers_refuses_and_ends():
    server = Server([sys.executable, "-c", SPEAKS])
    assert server.hello == {"ready": True}
    assert server.ask("work") == {"did": "work"}
    with pytest.raises(CommandRefused, match="no"):
        server.ask("refuse")
    server.ask("end")
    with pytest.raises(ToolError, match="has ended: that was all"):
        server.ask("work")
    server.close()
    server.close()


def test_a_server_that_is_silent_is_not_waited_for():
    with pytest.raises(ToolError, match=r"sleep 1000 did not answer within 0\.1 s"):
        Server(["sleep", "1000"], ready=0.1)


def test_a_process_is_heard_to_its_end(tmp_path):
    heard: list[object] = []
    log = tmp_path / "log"
    process = Process([sys.executable, "-c", SPEAKS], log)
    process.listen(heard.append)
    process.order({"do": "end"})
    assert process.ended(60)
    assert heard == [{"ready": True}, {"did": "end"}, None]
    assert (process.returncode, process.stderr()) == (1, "that was all")
    process.order({"do": "work"})  # nobody listens
    process.end()
    process.end()
    assert log.read_text() == "that was all\n"


@pytest.mark.slow
def test_what_is_sent_while_another_thread_hears_arrives_once_and_whole():
    """More than a pipe takes: what is left over is written by the thread that reads."""
    numbers = list(range(3000))
    heard: list[object] = []
    all_heard = threading.Event()

    def hear(message: Any) -> None:
        heard.append(message and message["number"])
        if message is None or len(heard) == len(numbers):
            all_heard.set()

    answers = (
        "import json, sys\n"
        "for line in sys.stdin: print(json.dumps(json.loads(line) | {'more': 0}), flush=True)"
    )
    process = Process([sys.executable, "-c", answers])
    process.listen(hear)
    try:
        for number in numbers:
            process.order({"number": number, "more": "y" * 20_000})
        assert all_heard.wait(60)
        assert heard == numbers
    finally:
        process.end(0.0)


def test_a_process_that_does_not_end_is_killed():
    process = Process(["sleep", "1000"])
    process.listen(lambda line: None)
    process.end(0.0)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("load", [1, 20])
@pytest.mark.parametrize(
    ("work", "ran", "idle"),
    [
        ([("run", 3.0)], 3, 0),
        ([("sleep", 3.0)], 0, 3),
        ([("run", 2.0), ("sleep", 1.0), ("run", 2.0)], 4, 1),
        ([("sleep", 4.0), ("run", 1.0), ("sleep", 4.0)], 1, 8),
    ],
)
def test_a_busy_machine_does_not_change_the_time_that_is_used(monkeypatch, load, work, ran, idle):
    """On a made-up machine, where whoever is ready runs one moment of ``load``."""
    clock = cpu = 0.0
    ready = False
    monkeypatch.setattr(supervision, "family", lambda pid: [pid])
    monkeypatch.setattr(supervision, "cpu_seconds", lambda pids: round(cpu, 2))
    monkeypatch.setattr(supervision, "ready", lambda pids: ready)
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    used = TimeUsed(1)
    for kind, seconds in work:
        ready = kind == "run"
        for moment in range(round(seconds / 0.02 * (load if ready else 1))):
            clock += 0.02
            cpu += 0.02 if ready and moment % load == 0 else 0
            used.look()
    assert [used.ran, used.idle] == pytest.approx([ran, idle], abs=0.05)
    assert used.look() == max(used.ran, used.idle)


def test_where_the_system_does_not_tell_the_clock_counts(monkeypatch):
    clock = 5.0
    monkeypatch.setattr(supervision, "cpu_seconds", lambda pids: None)
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    used = TimeUsed(1)
    clock = 7.0
    assert used.look() == 2.0


@linux
def test_what_descendants_use_counts():
    """One in a session of its own, too; and a process that waits is idle."""
    spin = "import os\nwhile sum(os.times()[:2]) < 0.3: pass"
    waits = f"import subprocess as s, sys; s.run([sys.executable, '-c', {spin!r}], start_new_session=True)"
    process = spawn([sys.executable, "-c", f"{waits}; print(flush=True); input()"], stdin=-1, stdout=-1)
    used = TimeUsed(process.pid)
    assert process.stdout is not None
    process.stdout.readline()
    used.look()
    assert 0.3 <= used.ran <= 3
    for _ in range(10):
        time.sleep(0.02)
        used.look()
    assert used.idle >= 0.1
    process.communicate(b"\n")


@linux
def test_temporary_files_are_counted_once_and_those_without_a_name_too(tmp_path):
    (tmp_path / "below").mkdir()
    for name in ("file", "below/file"):
        (tmp_path / name).write_bytes(bytes(2**20))
    os.link(tmp_path / "file", tmp_path / "hard")
    (tmp_path / "link").symlink_to("/usr/bin/env")
    (tmp_path / "circle").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    assert supervision.temporary([], str(tmp_path)) == 2 * 2**20
    with (tmp_path / "open").open("wb", buffering=0) as file:
        file.write(bytes(2**20))
        os.unlink(file.name)
        assert supervision.temporary([os.getpid()], str(tmp_path)) == 3 * 2**20
        assert supervision.temporary([os.getpid()], str(tmp_path / "elsewhere")) == 0


def test_what_a_link_leads_to_is_no_temporary_file(tmp_path):
    """A target that links to the host's files has not written them."""
    for name in ("scratch", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(bytes(2**20))
    (tmp_path / "scratch" / "directory").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "scratch" / "named").symlink_to(tmp_path / "elsewhere" / "file")
    assert supervision.temporary([], str(tmp_path / "scratch")) == 2**20
