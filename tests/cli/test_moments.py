"""Moments: commands that are killed in mid-work and run again, run twice at once, or run where something is
missing. Nothing is lost, nothing doubled, the result is the same, no traceback, nothing left behind.

docs/explanation/moments.md has the table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.supervision import family, marked

from tests.command import Ran, command
from tests.processes import LINUX
from tests.tiers import tiered

MARK = "REBALANCE_MOMENT"
"""A variable by which all that a command starts is found; the target of ``check`` has to be let see it."""

LOGS = Path(__file__).parents[2] / "examples" / "audit" / "orders.log"
GREEDY = """
class Greedy:
    name, promises = "greedy", ()

    def assign(self, cluster, group):
        first = sorted(group)[0]
        return {first: [(t, p) for t in cluster.topics for p in range(cluster.partition_count(t))]}
"""

pytestmark = pytest.mark.skipif(not LINUX, reason="what a killed command leaves is known on Linux only")


@dataclass(frozen=True, kw_only=True)
class Job:
    """A command, and what is added to it when it goes on after a kill."""

    argv: tuple[str, ...]
    again: tuple[str, ...] = ()
    result: str = "out"
    """Where its result is: ``out``, what it prints as JSON; a file; "", how it ends."""
    waits: bool = False
    """It waits more than it works, so its moments are those of the clock."""


SMALL = ("--members", "2", "--partitions", "1")
JSON = ("--format", "json")
JOBS = {
    "check": Job(
        argv=("check", "greedy:Greedy", "--profile", "smoke", "--report", "json", "--env", MARK),
        again=("--resume",),
        result=".rebalance/latest/report.json",
    ),
    "check, in words": Job(argv=("check", "greedy:Greedy", "--profile", "smoke", "--env", MARK), result=""),
    "explore": Job(argv=("explore", "dynamic", *SMALL, *JSON), again=("--resume",)),
    "upgrade": Job(
        argv=("upgrade", "--from", "range", "--to", "cooperative-sticky", *JSON), again=("--resume",)
    ),
    "prove": Job(argv=("prove", "--theorem", "contract", "--model-steps", "0", *JSON)),
    "record": Job(argv=("record", "--clients", "confluent:2"), result="", waits=True),
    "conform": Job(argv=("conform", "recorded", *JSON)),
    "audit": Job(argv=("audit", str(LOGS), *JSON)),
    "campaign": Job(
        argv=("campaign", "greedy:Greedy", "--scenarios", "60", "--slice", "20", "--out", "played", *JSON)
    ),
}
"""Name -> what is killed."""

KILLS = {
    "check": 9,
    "explore": 6,
    "upgrade": 3,
    "prove": 3,
    "record": 4,
    "conform": 2,
    "audit": 3,
    "campaign": 3,
}
MOMENTS = [(name, (number + 0.5) / each) for name, each in KILLS.items() for number in range(each)]
"""What is killed, and after which part of what it takes."""

QUICK = {("audit", 1.5 / 3)}
"""Those of the normal tests."""


class Room:
    """A directory to work in and one for temporary files; all that is started in it is known by a mark."""

    def __init__(self, above: Path, recorded: Path | None = None) -> None:
        self.above, self.at, self.temporary = above, above / "work", above / "temporary"
        for directory in (self.at, self.temporary):
            directory.mkdir(parents=True)
        (self.at / "greedy.py").write_text(GREEDY)
        if recorded is not None:
            shutil.copytree(recorded, self.at / "recorded")
        self.mark = str(uuid.uuid4())

    def start(self, argv: Sequence[str], name: str = "", **options: Any) -> subprocess.Popen[bytes]:
        """A command; what it prints goes to files."""
        own = {"TMPDIR": str(self.temporary), MARK: self.mark, "PYTHONDONTWRITEBYTECODE": "1"}
        environment = {**os.environ, **own, **options.pop("env", {})}
        files = [(self.above / f"{name}{which}").open("wb") for which in ("out", "err")]
        settings: dict[str, Any] = {
            "cwd": self.at,
            "stdout": files[0],
            "stderr": files[1],
            "start_new_session": True,
        }
        try:
            return subprocess.Popen(argv, env=environment, **(settings | options))
        finally:
            for file in files:
                file.close()

    def ended(self, process: subprocess.Popen[bytes], name: str = "") -> Ran:
        """What it did, once it has."""
        code = process.wait(900)
        return Ran(code, *((self.above / f"{name}{which}").read_text() for which in ("out", "err")))

    def run(self, job: Job, *more: str, **options: Any) -> Ran:
        return self.ended(self.start(command(*job.argv, *more), **options))

    def result(self, job: Job, ran: Ran) -> tuple[int, Any]:
        """What a command came to, without what two equal runs differ in."""
        if not job.result:
            return ran.code, None
        text = ran.out if job.result == "out" else (self.at / job.result).read_text()
        return ran.code, timeless(json.loads(text))

    def files(self) -> set[str]:
        """What is there, whatever the time of the run."""
        names = (str(one.relative_to(self.at)) for one in self.at.rglob("*") if one.is_file())
        return {STAMP.sub("TIME", name) for name in names}

    def nothing_is_left(self) -> None:
        """No process a minute later, which the last of them may take on a busy machine; no temporary file."""
        until = time.monotonic() + 60
        while (running := marked(f"{MARK}={self.mark}")) and time.monotonic() < until:
            time.sleep(0.05)
        assert not running


def spent(pid: int) -> float:
    """Seconds of a processor that a process, its descendants, and those it has waited for have used."""
    ticks = 0
    for one in family(pid):
        try:
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:  # it has just ended
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


TIMES = frozenset({"seconds", "cpu_seconds", "started", "ended", "speed", "slowest"})
STAMP = re.compile(r"\d{8}T\d{6}Z(-\d+)?|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What the directory of a run is called, and in the name of a table what Spark drew for who wrote it."""


def timeless(value: Any) -> Any:
    """A result without times, and with names that are times alike."""
    if isinstance(value, dict):
        return {name: timeless(one) for name, one in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [timeless(one) for one in value]
    return STAMP.sub("TIME", value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording, for those who judge one."""
    room = Room(tmp_path_factory.mktemp("recording"))
    assert room.run(JOBS["record"], "--out", "recorded").code == 0
    return room.at / "recorded"


@dataclass(frozen=True, kw_only=True)
class Whole:
    """What a command came to that nobody disturbed."""

    result: tuple[int, Any]
    files: set[str]
    cpu: float
    clock: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, recorded):
    known: dict[str, Whole] = {}

    def whole(name: str) -> Whole:
        if name not in known:
            room, job, began = Room(tmp_path_factory.mktemp("whole"), recorded), JOBS[name], time.monotonic()
            process = room.start(command(*job.argv))
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            clock = time.monotonic() - began
            result = room.result(job, room.ended(process))
            # 3: a proof that is not held against the model.
            assert result[0] in (0, 1, 3), room.ended(process)
            cpu = used.ru_utime + used.ru_stime
            known[name] = Whole(result=result, files=room.files(), cpu=cpu, clock=clock)
        return known[name]

    return whole


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), tiered(MOMENTS, QUICK))
def test_a_command_is_killed_and_run_again(tmp_path, recorded, undisturbed, name, part):
    job, whole, room = JOBS[name], undisturbed(name), Room(tmp_path, recorded)
    process, began = room.start(command(*job.argv)), time.monotonic()
    while process.poll() is None:
        if (
            (time.monotonic() - began) / whole.clock >= part
            if job.waits
            else spent(process.pid) / whole.cpu >= part
        ):
            process.kill()
        time.sleep(0.005)
    killed = room.ended(process)
    assert "Traceback" not in killed.err
    room.nothing_is_left()
    ran = room.run(job, *job.again)
    assert "Traceback" not in ran.err
    assert room.result(job, ran) == whole.result
    assert room.files() == whole.files
    room.nothing_is_left()
    assert not list(room.temporary.iterdir())


TWICE = ("check", "explore", "audit", "record", "upgrade")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "time_"), tiered([(n, t) for t in range(4) for n in TWICE], {("explore", 0)})
)
def test_two_at_once_in_one_directory_do_not_meet(tmp_path, recorded, undisturbed, name, time_):
    """Twenty times, four a command."""
    job, whole, room = JOBS[name], undisturbed(name), Room(tmp_path, recorded)
    processes = {which: room.start(command(*job.argv), which) for which in ("a", "b")}
    for which, process in processes.items():
        ran = room.ended(process, which)
        assert "Traceback" not in ran.err
        assert room.result(job, ran) == whole.result
    assert room.files() == whole.files
    if ".rebalance/runs.jsonl" in whole.files:
        assert len((room.at / ".rebalance" / "runs.jsonl").read_text().splitlines()) == 2
    directories = [one for one in (room.at / ".rebalance").iterdir() if STAMP.match(one.name)]
    assert len(directories) == 2 * any("TIME" in one for one in whole.files)
    room.nothing_is_left()
    assert not list(room.temporary.iterdir())


# --- where something is missing -----------------------------------------------------------------------------


def shell(script: str, argv: Sequence[str]) -> list[str]:
    """A command behind what a shell does first."""
    return ["sh", "-c", f'{script}\nexec "$@"', "sh", *argv]


WITHOUT: dict[str, tuple[str, dict[str, str]]] = {
    "no HOME": ("unset HOME", {}),
    "HOME is nowhere": ("", {"HOME": "/nowhere"}),
    "TMPDIR is gone": ("", {"TMPDIR": "/nowhere"}),
    "64 open files": ("ulimit -n 64", {}),
    "another hash seed": ("", {"PYTHONHASHSEED": "4711"}),
    "no locale": ("unset LC_ALL LC_CTYPE LANG", {"LC_ALL": "C", "PYTHONUTF8": "0"}),
    "an ASCII terminal": ("", {"PYTHONIOENCODING": "ascii"}),
    "a time zone": ("", {"TZ": "Pacific/Kiritimati"}),
    "umask 077": ("umask 077", {}),
    "umask 0": ("umask 0", {}),
    "SIGHUP, SIGPIPE ignored": ("trap '' HUP PIPE", {}),
    "no stdin": ("exec 0<&-", {}),
}
"""What is missing or otherwise -> how."""

ANYWHERE = ("check", "explore", "conform", "audit", "record", "upgrade")
PRINTS = ("check, in words", *ANYWHERE[1:])
"""Without a report that was asked for: that it cannot be written is an error by itself."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what"),
    tiered([(name, what) for what in WITHOUT for name in ANYWHERE], {("explore", "64 open files")}),
)
def test_the_result_is_the_same_whatever_is_around(tmp_path, recorded, undisturbed, name, what):
    job, whole, room = JOBS[name], undisturbed(name), Room(tmp_path, recorded)
    script, variables = WITHOUT[what]
    ran = room.ended(room.start(shell(script, command(*job.argv)), env=variables))
    assert "Traceback" not in ran.err
    assert room.result(job, ran) == whole.result
    assert room.files() == whole.files
    room.nothing_is_left()


FULL = """mount -t tmpfs -o size=16k tmpfs . && cd "$PWD" && cp ../greedy.py . && mkdir recorded
mount --bind ../recorded recorded && dd if=/dev/zero of=fill bs=1k 2>/dev/null"""
READ_ONLY = """mount -t tmpfs tmpfs . && cd "$PWD" && cp ../greedy.py . && mkdir recorded
mount --bind ../recorded recorded && mount -o remount,ro ."""


def namespaces() -> bool:
    """Whether disks can be mounted here, for a process and nobody else."""
    try:
        return not subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(LINUX and not namespaces(), reason="no disk can be mounted here (unshare -rm)")
@pytest.mark.parametrize(
    ("name", "disk"),
    tiered([(n, d) for d in ("full", "read-only") for n in PRINTS], {("explore", "full")}),
)
def test_a_disk_that_is_full_costs_what_is_saved_and_not_the_verdict(
    tmp_path, recorded, undisturbed, name, disk
):
    """Where the result is what is saved it is an error of one line."""
    job, whole, room = JOBS[name], undisturbed(name), Room(tmp_path, recorded)
    (tmp_path / "greedy.py").write_text(GREEDY)
    shutil.copytree(recorded, tmp_path / "recorded")
    script = shell(FULL if disk == "full" else READ_ONLY, command(*job.argv))
    ran = room.ended(room.start(["unshare", "-rm", *script]))
    assert "Traceback" not in ran.err
    if name in ("audit", "record"):
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert ran.err.startswith("rebalance: --out: ")
    else:
        assert ran.code == whole.result[0]
        assert name == "conform" or "annot be saved" in ran.err or "no report is written" in ran.err
    if job.result == "out" and ran.code < 2:
        assert room.result(job, ran) == whole.result
    room.nothing_is_left()
    assert not list(room.temporary.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(PRINTS, {"conform"}))
def test_a_full_disk_behind_stdout_is_one_line(tmp_path, recorded, name):
    room = Room(tmp_path, recorded)
    with Path("/dev/full").open("wb") as full:
        ran = room.ended(room.start(command(*JOBS[name].argv), stdout=full))
    assert ran.code == 2
    assert ran.err.splitlines()[-1] == "rebalance: stdout cannot be written: No space left on device"
    assert "Traceback" not in ran.err
    room.nothing_is_left()
    assert not list(room.temporary.iterdir())


def test_there_are_thirty_kills_and_forty_moments():
    assert len(MOMENTS) >= 30
    assert len(MOMENTS) + len(WITHOUT) >= 40
    assert {*MOMENTS} >= QUICK
