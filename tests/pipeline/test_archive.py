"""The file of the classes that Java loads: recorded once, used from then on, and no reason to fail."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from rebalance_verifier.pipeline import archive
from rebalance_verifier.pipeline.archive import KEPT, archived, room

NOTES = "-XX:+RecordDynamicDumpInfo"


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java that does this; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(archive, "_runs", lambda: False)
    monkeypatch.setattr(archive, "write", lambda path: path.write_text("classes"))

    def put(script=":"):
        program = tmp_path / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return put


def kept(tmp_path):
    """What is in the cache, hidden or not."""
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


def session(java, version="17"):
    """The options of a session."""
    with archived(java, version) as options:
        return options


def test_the_first_session_notes_what_the_next_one_uses(java, tmp_path):
    sound = java()
    assert NOTES in session(sound)
    (path,) = kept(tmp_path)
    assert path.read_text() == "classes"
    assert session(sound).startswith(f'"-XX:SharedArchiveFile={path}" ')
    assert NOTES in session(sound, "21")


@pytest.mark.parametrize("content", ["", "class", "classes ", "Classes"])
def test_what_is_cut_off_or_damaged_is_made_anew(java, tmp_path, content):
    session(java())
    (path,) = kept(tmp_path)
    path.write_text(content)
    assert NOTES in session(java())
    assert [path.read_text() for path in kept(tmp_path)] == ["classes"]


def test_a_java_that_cannot_is_tried_once(java, tmp_path, monkeypatch):
    assert session(java("exit 1")) == ""
    assert [path.stat().st_size for path in kept(tmp_path)] == [0]
    assert session(java()) == ""
    monkeypatch.setattr(archive, "write", lambda path: 1 / 0)
    assert NOTES in session(java(), "21")
    assert session(java(), "21") == ""


def test_of_a_session_that_fails_nothing_is_kept(java, tmp_path):
    with pytest.raises(KeyboardInterrupt), archived(java(), "17"):
        raise KeyboardInterrupt
    assert kept(tmp_path) == []


def test_where_nothing_can_be_kept_or_java_was_told_what_to_do_there_are_no_options(
    java, tmp_path, monkeypatch
):
    (tmp_path / "cache").touch()
    assert session(java()) == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xshare:off")
    assert session(java()) == ""
    assert not (tmp_path / "other").exists()


def test_only_what_was_not_used_for_long_makes_room(tmp_path):
    for number in range(KEPT):
        assert room(tmp_path, since=0)
        (tmp_path / f"{number}.jsa").touch()
        os.utime(tmp_path / f"{number}.jsa", (1000 + number, 1000 + number))
    assert not room(tmp_path, since=1000)
    assert room(tmp_path, since=1001)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.jsa", "2.jsa"]


COUNTS = """
from rebalance_verifier.pipeline.session import session
for _ in range(2):
    with session("local[1]", memory="512m") as spark:
        print(spark.range(5).mapInArrow(lambda batches: batches, "id long").count())
"""


@pytest.mark.nightly
def test_sessions_start_and_are_silent_with_any_file(tmp_path, monkeypatch):
    """Written, used, cut off, damaged all over, and whole but of something else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)

    def counts():
        ran = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=True)
        assert (ran.stdout, ran.stderr) == ("5\n5\n", "")

    counts()
    directory = tmp_path / "rebalance-verifier" / "spark"
    (path,) = directory.glob("*.jsa")
    whole = path.read_bytes()
    assert len(whole) > 10_000_000
    other = b"nonsense" * 1000
    damaged = bytearray(whole)
    damaged[8192::500] = bytes(byte ^ 0x55 for byte in damaged[8192::500])
    of_other = path.with_stem(f"{path.stem.partition('-')[0]}-{hashlib.sha1(other).hexdigest()}")
    for name, content in (
        (path, whole),
        (path, whole[: len(whole) // 2]),
        (path, damaged),
        (of_other, other),
    ):
        for file in directory.iterdir():
            file.unlink()
        name.write_bytes(content)
        counts()
