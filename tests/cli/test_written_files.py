"""A file that an option asks for is there whole, or as it was; what is no file is written to as it is."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest
from rebalance_verifier.cli.console.terminal import UsageError, write


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "known.txt"
    path.write_text("as it was")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match=r"--write-known.*No space left"):
        write(path, "new" * 10_000, "--write-known")
    assert path.read_text() == "as it was"
    assert [one.name for one in tmp_path.iterdir()] == ["known.txt"]


def test_a_link_stays_one_and_a_file_that_may_not_be_written_is_not(tmp_path):
    path, link = tmp_path / "a.py", tmp_path / "b.py"
    path.touch()
    link.symlink_to(path)
    write(link, "x", "--as-pytest")
    assert (link.is_symlink(), path.read_text()) == (True, "x")
    if os.geteuid():
        path.chmod(0o444)
        with pytest.raises(UsageError, match="Permission denied"):
            write(path, "y", "--as-pytest")
    assert path.read_text() == "x"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_a_pipe_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "to somebody who reads", "--as-pytest")
    reader.join(10)
    assert read == ["to somebody who reads"]
    assert pipe.is_fifo()
