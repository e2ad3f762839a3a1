"""The artifact of a CI job, replayed in the checkout of a developer: docs/how-to/put-the-gate-into-ci.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import command

SPEC = "mypkg.assignor:Greedy"
GREEDY = """
class Greedy:
    protocols = ("cooperative",)
    promises = ()

    def assign(self, cluster, group):
        assignment = {member: [] for member in group}
        for topic, partitions in sorted(cluster.topics.items()):
            first = next((m for m in sorted(group) if topic in group[m].topics), None)
            if first:
                assignment[first] += [(topic, number) for number in range(len(partitions))]
        return assignment
"""


def ran(*words: str, where: Path, **variables: str) -> tuple[int, str]:
    """The code of a program in a directory, and all that it prints."""
    everything = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(words, cwd=where, env=everything, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def project(where: Path, source: str) -> Path:
    """A project with its package in the folder ``source``."""
    (where / source / "mypkg").mkdir(parents=True)
    (where / source / "mypkg" / "__init__.py").touch()
    (where / source / "mypkg" / "assignor.py").write_text(GREEDY)
    return where


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What CI found with src on the path, as another machine has it: without what was signed."""
    ci, kept = project(tmp_path_factory.mktemp("ci"), "src"), tmp_path_factory.mktemp("artifact")
    check = command("check", SPEC, "--profile", "smoke", "--clause", "kip429/leader/4")
    code, text = ran(*check, where=ci, PYTHONPATH="src")
    assert code == 1, text
    (found,) = (ci / ".rebalance" / "failures").glob("*.json")
    return Path(shutil.copy(found, kept / "found.json"))


@pytest.mark.nightly
def test_what_ci_found_is_replayed_where_the_package_is_below_src(artifact: Path, tmp_path: Path) -> None:
    mine = project(tmp_path, "src")
    shutil.copy(artifact, mine / "found.json")
    code, text = ran(*command("replay", "found.json"), where=mine)
    assert (code, f"--target {SPEC} or --trust runs it" in text) == (2, True), "it says exactly what to type"
    again = ("replay", "found.json", "--target", SPEC)
    code, text = ran(*command(*again), where=mine)
    assert (code, text.startswith("failing ")) == (1, True), text
    assert ran(*command("replay", "found.json", "--trust"), where=mine) == (1, text)
    assert ran(*command(*again, "--as-pytest", "test_it.py"), where=mine) == (0, "written  test_it.py\n")
    code, text = ran(sys.executable, "-m", "pytest", "-q", "test_it.py", where=mine)
    assert (code, "Kip429Leader4Violation" in text) == (1, True), text


@pytest.mark.nightly
def test_a_test_of_it_finds_what_pytest_finds(artifact: Path, tmp_path: Path) -> None:
    mine = project(tmp_path, "lib")
    shutil.copy(artifact, mine / "found.json")
    made = command("replay", "found.json", "--target", SPEC, "--as-pytest", "test_it.py")
    assert ran(*made, where=mine)[0] == 0
    (mine / "pytest.ini").write_text("[pytest]\npythonpath = lib\n")
    code, text = ran(sys.executable, "-m", "pytest", "-q", "test_it.py", where=mine)
    assert (code, "Kip429Leader4Violation" in text) == (1, True), text


def test_a_target_that_is_nowhere_names_the_places(tmp_path: Path) -> None:
    code, text = ran(*command("check", SPEC), where=tmp_path)
    assert code == 2
    assert f"modules are looked up in {tmp_path}, its src, and on PYTHONPATH" in text


@pytest.mark.nightly
def test_modules_beside_src_come_first_and_it_is_annotated_where_it_lies(tmp_path: Path) -> None:
    mine = project(tmp_path, "src")
    check = command("check", SPEC, "--profile", "smoke", "--clause", "kip429/leader/4", "--ci", "github")
    code, text = ran(*check, where=mine)
    assert (code, "file=src/mypkg/assignor.py," in text) == (1, True)
    (project(mine, ".") / "mypkg" / "assignor.py").write_text("raise RuntimeError('beside')")
    code, text = ran(*command("check", SPEC, "--profile", "smoke", "--clause", "assign/1"), where=mine)
    assert (code, "RuntimeError: beside" in text) == (2, True)
