"""The command that installs more: right for the place where the suite came from, and it names nothing that
nobody has registered."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from rebalance_verifier.base import installation
from rebalance_verifier.base.installation import NAME, Installation, command, how_to_get, parsed, requirements

from tests.test_installation import Environment, installed
from tests.test_wheel import project, wheel

__all__ = ["installed", "wheel"]

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
COMMIT = "4f2c0e5a4f2c0e5a4f2c0e5a4f2c0e5a4f2c0e5a"
GIT = {"vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}}


def record(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (record("file:///", dir_info={"editable": True}), ["-e", "/[audit]"]),
        (record("file:///", dir_info={}), ["/[audit]"]),
        (record("file:///dev/null", archive_info={}), ["/dev/null[audit]"]),
        (record("file:///is/gone.whl", archive_info={}), []),
        (record("https://git.example.com/s.git", **GIT), [f"{NAME}[audit] @ git+https://git.example.com/s.git@{COMMIT}"]),
        (
            record("https://git.example.com/s.git", subdirectory="a/b", **GIT),
            [f"{NAME}[audit] @ git+https://git.example.com/s.git@{COMMIT}#subdirectory=a/b"],
        ),
        (record("ssh://git@git.example.com/s.git", **GIT), [f"{NAME}[audit] @ git+ssh://git@git.example.com/s.git@{COMMIT}"]),
        (
            record("https://files.example.com/s.whl", archive_info={"hashes": {"sha256": "ab12"}}),
            [f"{NAME}[audit] @ https://files.example.com/s.whl#sha256=ab12"],
        ),
        (record("https://files.example.com/s.whl", archive_info={}), [f"{NAME}[audit] @ https://files.example.com/s.whl"]),
        *((text, []) for text in ("", "garbage", "[]", "{}", "7", '{"url": 7}', record("x", vcs_info={}))),
    ],
)  # fmt: skip
def test_the_place_is_what_the_installer_recorded(text: str, asked: list[str]) -> None:
    assert parsed(text).requirement("audit") == asked


def test_a_path_with_a_space_is_one_argument(tmp_path: Path) -> None:
    place = tmp_path / "a wheel & more.whl"
    place.touch()
    asked = parsed(record(place.as_uri())).requirement("audit")
    line = command(asked, ["duckdb>=1"], tmp_path)
    assert shlex.split(line) == ["pip", "install", f"{place}[audit]"]


def test_what_came_from_an_index_is_completed_by_the_packages_themselves(monkeypatch) -> None:
    """Which index it was is recorded nowhere; on the public one the name is anybody's."""
    monkeypatch.setattr(installation, "installation", Installation)
    extras = project()["project"]["optional-dependencies"]
    for extra in ("audit", "spark", "targets"):
        assert shlex.split(how_to_get(extra)) == ["pip", "install", *extras[extra]]
    assert set(shlex.split(how_to_get())) == {"pip", "install", *project()["project"]["dependencies"]}
    assert NAME not in how_to_get() + how_to_get("audit")


def test_requirements_of_an_extra_name_other_distributions() -> None:
    assert not any(NAME in one for extra in ("", "dev") for one in requirements(distribution(NAME), extra))


@pytest.mark.parametrize(
    ("file", "place", "line"),
    [
        ("pipx_metadata.json", ["/s.whl[audit]"], f"pipx inject {NAME} 'duckdb>=1'"),
        ("uv-receipt.toml", ["/s.whl[audit]"], "uv tool install --with 'duckdb>=1' '/s.whl[audit]'"),
        ("uv-receipt.toml", [], "pip install 'duckdb>=1'"),
        ("pyvenv.cfg", ["-e", "/s[audit]"], "pip install -e '/s[audit]'"),
    ],
)
def test_the_command_is_that_of_the_tool_which_made_the_environment(
    tmp_path: Path, file: str, place: list[str], line: str
) -> None:
    (tmp_path / file).touch()
    assert command(place, ["duckdb>=1"], tmp_path) == line


def test_without_pip_the_packages_are_installed_by_uv(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.executable", "/v/bin/python")
    assert command(["/s.whl"], [], tmp_path) == "uv pip install --python /v/bin/python /s.whl"


@pytest.mark.nightly
def test_the_command_that_an_installed_wheel_gives_is_taken_by_pip(
    installed: Environment, wheel: Path, tmp_path: Path
) -> None:
    """Run as it stands, where DuckDB lies beside: after it the audit has what it needs."""
    (tmp_path / "a.log").write_text("nothing\n")
    ran = installed.run(tmp_path, "-m", "rebalance_verifier", "audit", "a.log")
    assert ran.returncode == 2
    line = ran.stderr.partition("DuckDB: ")[2].strip()
    assert shlex.split(line) in (
        ["pip", "install", f"{wheel}[audit]"],
        ["uv", "pip", "install", "--python", str(installed.python), f"{wheel}[audit]"],
    ), ran.stderr
    report = tmp_path / "report.json"
    pip = [*PIP, "--python", str(installed.python), "install", "--dry-run", "--ignore-installed", "--no-deps"]
    done = subprocess.run(
        [*pip, "--report", str(report), shlex.split(line)[-1]], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(report.read_text())["install"]
    assert (one["metadata"]["name"], one["requested_extras"]) == (NAME, ["audit"])
