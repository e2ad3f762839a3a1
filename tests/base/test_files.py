"""Files that are whole or not there, directories that go with their makers: kill -9, several at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rebalance_verifier.base import files as drafts
from rebalance_verifier.base.files import scratch, whole

POSIX = os.name == "posix"

HANGS = """
import sys, time
from pathlib import Path
from rebalance_verifier.base.files import scratch, whole
with whole(Path("file")) as file, scratch("test", Path(".")) as beside, scratch("test") as directory:
    file.write(b"half")
    (directory / "full").mkdir()
    print("in it", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory, with one for temporary files in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def names(directory: Path) -> list[str]:
    return sorted(str(one.relative_to(directory)) for one in directory.rglob("*"))


def test_a_file_is_what_was_written_and_has_the_mode_of_any_other(here):
    path = here / "file"
    before = os.umask(0o027)
    try:
        with whole(path) as file:
            file.write(b"old")
            assert not path.exists()
    finally:
        os.umask(before)
    assert (path.read_bytes(), names(here)) == (b"old", ["file", "temporary"])
    assert not POSIX or path.stat().st_mode & 0o777 == 0o640


def test_a_file_stays_as_it_was_when_writing_fails(here):
    path = here / "file"
    path.write_bytes(b"old")

    def fails() -> None:
        with whole(path) as file:
            file.write(b"half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert (path.read_bytes(), names(here)) == (b"old", ["file", "temporary"])


def test_a_directory_is_gone_at_the_end_with_what_is_in_it(here):
    def fails() -> None:
        with scratch("test") as directory:
            (directory / "a").write_text("a")
            assert directory.parent == here / "temporary"
            assert not POSIX or directory.stat().st_mode & 0o777 == 0o700
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert names(here) == ["temporary"]


@pytest.mark.skipif(not POSIX, reason="what cannot be locked stays")
def test_what_a_killed_process_left_goes_with_the_next_and_what_is_in_use_stays(here):
    path = here / "file"
    path.write_bytes(b"old")

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"in it\n"
        process.stdout.close()
        return process

    killed, works = start(), start()
    try:
        assert len(names(here)) == 10
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(names(here)) == 10
        with whole(path) as file, scratch("test"), scratch("test", here):
            file.write(b"new")
        assert path.read_bytes() == b"new"
        assert len(names(here)) == 6  # those of the process that works
    finally:
        works.kill()
        works.wait()
    with whole(path), scratch("test"), scratch("test", here):
        pass
    assert names(here) == ["file", "temporary"]


@pytest.mark.skipif(not POSIX, reason="what cannot be locked stays")
def test_what_is_seen_before_it_is_locked_and_removed_is_made_again(here, monkeypatch):
    seen: list[Path] = []
    held = drafts._held

    def slow(number: int, path: Path) -> bool:
        if len(seen) < 2:
            seen.append(path)
            path.rmdir() if path.is_dir() else path.unlink()
        return held(number, path)

    monkeypatch.setattr(drafts, "_held", slow)
    with whole(here / "file") as file, scratch("test") as directory:
        file.write(b"new")
        assert directory.is_dir()
    assert ((here / "file").read_bytes(), len(seen)) == (b"new", 2)
    assert names(here) == ["file", "temporary"]


def test_what_is_removed_before_it_is_opened_is_made_again(here, monkeypatch):
    seen: list[Path] = []
    opened = drafts._opened

    def late(path: Path) -> int | None:
        if not seen:
            path.rmdir()
        seen.append(path)
        return opened(path)

    monkeypatch.setattr(drafts, "_opened", late)
    with scratch("test") as directory:
        assert directory.is_dir()
    assert len(seen) == 2


@pytest.mark.skipif(not POSIX, reason="links")
def test_nothing_is_removed_through_a_link_or_that_is_named_otherwise(here):
    (here / "precious").mkdir()
    (here / "precious" / "a").write_text("a")
    (here / "temporary" / "rebalance.test.link").symlink_to(here / "precious")
    (here / ".file.0123.draft").symlink_to(here / "precious" / "a")
    for name in ("file.0123.draft", ".other.0123.draft", ".file.draft.txt"):
        (here / name).write_text("mine")
    (here / "temporary" / "rebalance.other.x").mkdir()
    before = names(here)
    with whole(here / "file"), scratch("test"):
        pass
    assert names(here) == sorted([*before, "file"])


ADDS = """
import sys
from pathlib import Path
from rebalance_verifier.base.files import alone, whole
path = Path("numbers")
for number in range(50):
    with alone(Path(".")):
        before = path.read_bytes() if path.exists() else b""
        with whole(path) as file:
            file.write(before + f"{sys.argv[1]} {number}\\n".encode())
"""


@pytest.mark.skipif(not POSIX, reason="locks")
def test_who_reads_and_writes_alone_loses_nothing_of_others(here):
    processes = [subprocess.Popen([sys.executable, "-c", ADDS, name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    lines = (here / "numbers").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in "abc" for number in range(50))


def test_many_at_once_write_one_file(here):
    path = here / "[a]*"  # no pattern
    texts = [str(number).encode() * 5000 for number in range(40)]

    def write(text: bytes) -> None:
        with whole(path) as file, scratch("test"):
            file.write(text)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, texts))
    assert path.read_bytes() in texts
    assert names(here) == ["[a]*", "temporary"]


@pytest.mark.skipif(not POSIX, reason="locks")
def test_what_somebody_left_is_swept_whatever_it_is(here):
    """Deeper than Python recurses, and without a mode: the next run ended with an error."""
    left = here / "temporary" / "rebalance.test.left"
    left.mkdir()
    os.mkfifo(here / "temporary" / "rebalance.test.fifo")
    number = os.open(left, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=number)
        below = os.open("d", os.O_RDONLY, dir_fd=number)
        os.close(number)
        number = below
    os.close(number)
    left.chmod(0o000)
    with scratch("test"):
        pass
    assert os.listdir(here / "temporary") == []
