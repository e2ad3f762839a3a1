"""What somebody else has left is removed, whatever it is, and nothing else with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rebalance_verifier.base import removal
from rebalance_verifier.base.removal import remove

LINUX = sys.platform == "linux"
ROOT = LINUX and os.geteuid() == 0


REMOVES = f"import runpy; print(runpy.run_path({removal.__file__!r})['remove']('left'))"


@pytest.fixture
def left(tmp_path):
    """A directory that somebody has left, beside one that is somebody's."""
    (tmp_path / "kept" / "below").mkdir(parents=True)
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "left").mkdir()
    yield tmp_path / "left"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").read_text() == "kept"
    assert (tmp_path / "kept" / "below").is_dir()


def deep(directory: Path, levels: int) -> None:
    """Make directories in each other, as deep as no path is long."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        with open(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here), "w"):
            below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@pytest.mark.parametrize("levels", [1, 3000])
def test_a_tree_of_any_depth_is_removed(left, levels):
    deep(left, levels)
    assert remove(left)


def test_a_link_is_removed_and_not_what_it_leads_to(left):
    kept = left.parent / "kept"
    (left / "inside").symlink_to(kept)
    (left / "below").mkdir()
    (left / "below" / "link").symlink_to(kept)
    (left / "nowhere").symlink_to("nowhere")
    os.link(kept / "file", left / "hard")
    assert remove(left)
    left.symlink_to(kept)
    assert remove(left)


def test_what_is_no_file_and_has_any_name_is_removed(left):
    os.mkfifo(left / "fifo")
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"x" * 255, b".\xff"):
        os.mkdir(os.fsencode(left) + b"/" + name)
        Path(os.fsdecode(os.fsencode(left) + b"/" + name), "file").touch()
    assert remove(left)
    os.mkfifo(left)
    assert remove(left)


def test_directories_without_a_mode_are_removed(left):
    for where in (left / "a" / "b" / "c", left / "d"):
        where.mkdir(parents=True)
        (where / "file").touch(0o000)
    for where in (left / "a" / "b" / "c", left / "a" / "b", left / "a", left / "d", left):
        where.chmod(0o000)
    (left.parent / "left").chmod(0o500)  # which may be opened and not changed
    if ROOT:  # for whom a mode is none, so by a process that may no more than a user
        unshare = ["unshare", "--user", "--map-user=1000", "--map-group=1000", sys.executable, "-c", REMOVES]
        ran = subprocess.run(unshare, cwd=left.parent, capture_output=True, text=True, check=False)
        assert (ran.stdout, "unshare:" in ran.stderr) in (("True\n", False), ("", True)), ran.stderr
    assert remove(left)


def test_no_directory_is_opened_by_a_link(left):
    (left.parent / "link").symlink_to(left.parent / "kept")
    assert removal.opened(None, left.parent / "link") is None
    number = removal.opened(None, left.parent / "kept")
    assert number is not None
    os.close(number)
    assert remove(left.parent / "link")
    assert remove(left)


@pytest.mark.parametrize("leads_to", ["nowhere", "link", "kept"])
def test_a_link_that_stays_is_not_gone_wherever_it_leads(left, monkeypatch, leads_to):
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    link = left.parent / "link"
    link.symlink_to(leads_to)
    with monkeypatch.context() as only_here:
        only_here.setattr(os, "unlink", refused)
        assert not remove(link)
    assert remove(link)
    assert remove(left)


def test_nothing_is_nothing_to_remove(left):
    assert remove(left)
    assert remove(left)
    assert remove(left / "below" / "nothing")


@pytest.mark.skipif(not ROOT, reason="only root may set such attributes")
def test_what_may_not_be_changed_is_removed(left):
    (left / "below" / "deep").mkdir(parents=True)
    (left / "file").touch()
    (left / "below" / "file").touch()
    for name in ("file", "below/file", "below/deep", "below", "."):
        attribute = "+a" if name == "below/file" else "+i"
        if subprocess.run(["chattr", attribute, left / name], check=False, capture_output=True).returncode:
            remove(left)
            pytest.skip("the file system has no such attributes")
    assert remove(left)


@pytest.mark.skipif(not LINUX, reason="by namespaces of Linux")
def test_no_mount_is_crossed(left):
    script = (
        "set -e; mkdir -p left/below/deep left/mounted left/tmpfs\n"
        "mount --bind kept left/below/deep; mount --bind kept left/mounted; mount -t tmpfs none left/tmpfs\n"
        f"touch left/tmpfs/file left/below/file; '{sys.executable}' -c \"{REMOVES}\"\n"
        "find left -type f | sed 's/[.][0-9a-f]*[.][0-9]*/NAME/'; ls kept"
    )
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    ran = subprocess.run(unshare, cwd=left.parent, capture_output=True, text=True, check=False)
    if "unshare" in ran.stderr:
        remove(left)
        pytest.skip(ran.stderr)
    found = ran.stdout.splitlines()
    assert found[0] == "False", ran.stderr
    assert {*found[1:]} >= {"left/tmpfs/file", "left/mounted/file", "below", "file"}
    assert remove(left), "outside nothing is mounted"


@pytest.mark.skipif(not LINUX, reason="by namespaces of Linux")
def test_nor_is_one_in_place_of_it(left):
    script = f"mount -t tmpfs none left; touch left/file; '{sys.executable}' -c \"{REMOVES}\"; ls left"
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script]
    ran = subprocess.run(unshare, cwd=left.parent, capture_output=True, text=True, check=False)
    assert ran.stdout == "False\nfile\n" or "unshare:" in ran.stderr
    assert remove(left)
