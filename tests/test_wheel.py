"""What is installed is what is on disk: the editable installation hides a package that pyproject forgot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.test_layers import FLOORS, TOP
from tools.benchmarks.first_verdict import built

ROOT = Path(__file__).parents[1]
FOLDERS = (*FLOORS, TOP)


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def files_on_disk() -> set[str]:
    """Every file of the package folders, as the wheel should name it."""
    return {
        f"{TOP}/{path.relative_to(ROOT).as_posix().removeprefix(f'{TOP}/')}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def packages_in(files: set[str]) -> set[str]:
    """Dotted names of the folders that hold Python files."""
    return {name.rpartition("/")[0].replace("/", ".") for name in files if name.endswith(".py")}


def test_pyproject_lists_the_packages_on_disk() -> None:
    setuptools = project()["tool"]["setuptools"]
    assert sorted(setuptools["packages"]) == sorted(packages_in(files_on_disk()))
    assert setuptools["package-dir"] == {
        name: name.removeprefix(f"{TOP}.").replace(".", "/") for name in setuptools["packages"]
    }


@pytest.mark.parametrize("package", sorted(packages_in(files_on_disk())))
def test_package_is_regular_and_typed(package: str) -> None:
    folder = package.replace(".", "/")
    assert {f"{folder}/__init__.py", f"{folder}/py.typed"} <= files_on_disk()


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        *(("console_scripts", *entry) for entry in project()["project"]["scripts"].items()),
        *(
            (group, *entry)
            for group, entries in project()["project"]["entry-points"].items()
            for entry in entries.items()
        ),
    ],
)
def test_entry_point_loads(group: str, name: str, value: str) -> None:
    (entry,) = [entry for entry in entry_points(group=group, name=name) if entry.value == value]
    assert entry.load() is not None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_wheel_holds_the_files_on_disk_and_no_other(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert sorted(names - about) == sorted(files_on_disk())
    assert packages_in(names) == set(project()["tool"]["setuptools"]["packages"])
    assert any(name.endswith("/LICENSE") for name in about)


@pytest.mark.slow
def test_wheel_declares_the_entry_points(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        declared = ConfigParser()
        declared.read_string(archive.read(name).decode())
    listed = {"console_scripts": project()["project"]["scripts"], **project()["project"]["entry-points"]}
    assert {section: dict(declared[section]) for section in declared.sections()} == listed


@pytest.mark.slow
def test_the_wheel_runs_from_an_index_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """As pipx installs it: in an environment of its own, which finds what else it needs here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "new"], cwd=tmp_path, check=True)
    python = tmp_path / "new" / "bin" / "python"
    (site,) = (tmp_path / "new" / "lib").glob("python*/site-packages")
    options = ["--no-deps", "--no-index", "--find-links", str(wheel.parent), "--no-warn-script-location"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", *options]
    subprocess.run([*command, "rebalance-verifier"], check=True, capture_output=True)
    needed = [path for path in map(Path, sys.path) if path.name == "site-packages" and path != site]
    # Their packages, not their .pth files: the editable installation is not to be found.
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, needed)),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    scripts = ([python.parent / name] for name in project()["project"]["scripts"])
    for started in ([python, "-m", TOP], *scripts):
        ran = subprocess.run(
            [*started, "check", "range", "--profile", "smoke", "--report", "text"],
            cwd=tmp_path, env=variables, capture_output=True, text=True,
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith("CONFORMANT  range passes ")


@pytest.mark.nightly
@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_tools_that_run_packages_run_the_wheel(wheel: Path, tmp_path: Path, tool: str) -> None:
    """By path and, with uv, from a folder that serves as index; what it needs comes from the index of pip."""
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    index = ["--find-links", str(wheel.parent)]
    commands = {
        "uvx": [["--from", str(wheel), "rebalance"], [*index, "--from", "rebalance-verifier", "rebalance"]],
        "pipx": [["run", "--spec", str(wheel), "rebalance"]],
    }
    environment = {**os.environ, "HOME": str(tmp_path)}
    for argv in commands[tool]:
        ran = subprocess.run(
            [tool, *argv, "check", "range", "--profile", "smoke", "--report", "text"],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith("CONFORMANT  range passes ")
