"""What somebody meets who has cloned the repository and prepared nothing; all but the downloads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A whole machine with no Python on it: what the Makefile and its shell call, found on the real one.
TOOLS = ("make", "sh", "sed", "rm", "mkdir", "ln", "touch", "dirname", "bash")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This checkout without what git ignores: what a clone of the next commit holds."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    return shutil.copytree(ROOT, tmp_path / "clone", ignore=shutil.ignore_patterns(".git", *ignored))


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder that serves as the whole PATH; holds no Python, Java or git."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, f"this test needs {tool}"
        (folder / tool).symlink_to(found)
    return folder


def put(machine: Path, name: str, script: str) -> None:
    """Add a command to ``machine``, a shell script."""
    (machine / name).write_text(f"#!/bin/sh\n{script}\n")
    (machine / name).chmod(0o755)


def run(clone: Path, path: str | Path, *command: str, **more: str) -> tuple[int, list[str], list[str]]:
    """Exit code and the lines of stdout and stderr; the environment is PATH, HOME and ``more``."""
    environment = {"PATH": str(path), "HOME": str(clone.parent / "home"), **more}
    done = subprocess.run(
        command,
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


REAL = f'exec "{sys.executable}" "$@"'
WITHOUT_VENV = f'case "$*" in *ensurepip*) exit 1;; esac\n{REAL}'
TOO_OLD = "exit 1"  # what the version check answers
SHIM = 'echo "pyenv: command not found" >&2; exit 127'


@pytest.mark.parametrize("target", ["help", ""])
def test_help_lists_every_target(clone: Path, target: str) -> None:
    code, out, err = run(clone, os.environ["PATH"], "make", *target.split())
    phony = re.search(r"^\.PHONY: (help .*)$", (clone / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert [line.partition(":")[0] for line in out] == [f"make {name}" for name in phony[1].split()]
    assert (code, err) == (0, [])


@pytest.mark.parametrize(
    ("target", "packages", "last"),
    [
        ("gate", ".", ".venv/bin/rebalance check cooperative-sticky"),
        (
            "test",
            "'.[dev]'",
            (
                ".venv/bin/pytest -n 4 --dist worksteal --durations=10 "
                '-o timeout=600 -o timeout_method=thread -o session_timeout=4500 -m "not nightly"'
            ),
        ),
    ],
)
def test_plan_of_a_fresh_clone_is_set_up_then_the_job(
    clone: Path, target: str, packages: str, last: str
) -> None:
    code, out, err = run(clone, os.environ["PATH"], "make", "-n", target, CI="true")
    assert (code, err) == (0, [])
    assert out[-1] == last
    steps = "\n".join(out)
    assert steps.index("-m venv .venv") < steps.index("-m pip install") < steps.index(last)
    assert f" -e {packages} " in steps


def test_java_is_looked_for_first_and_only_where_tests_need_it(clone: Path) -> None:
    steps = {}
    for target in ("gate", "test"):
        code, out, err = run(clone, os.environ["PATH"], "make", "-n", target)
        assert (code, err) == (0, [])
        steps[target] = "\n".join(out)
    assert "java" not in steps["gate"]
    assert steps["test"].index(".ci/need java") < steps["test"].index("-m pip install")


@pytest.mark.parametrize("target", ["check", "test"])
def test_lint_and_types_come_before_the_tests(clone: Path, target: str) -> None:
    code, out, err = run(clone, os.environ["PATH"], "make", "-n", target)
    assert (code, err) == (0, [])
    jobs = [line.partition(" ")[2] for line in out if line.startswith(".venv/bin/")]
    kinds = [job for job in ("check", "format --check") if job in jobs]
    assert kinds == ["check", "format --check"]
    assert ".venv/bin/mypy" in out
    assert out[-1].startswith(".venv/bin/pytest ")


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("modules", "wrong", "complaint"),
    [
        (["model/values.py"], "import os", "F401"),
        (["tests/processes.py"], "x  =  1", "would be reformatted"),
        (["cli/commands/listing.py", "tests/test_wheel.py"], 'COUNT: int = "one"', "Incompatible types"),
    ],
)
def test_an_error_of_lint_format_or_types_ends_it(
    clone: Path, modules: list[str], wrong: str, complaint: str
) -> None:
    (clone / ".installed").touch()
    if (ROOT / ".mypy_cache").is_dir():  # made by the lint that comes before; without it this takes a minute
        shutil.copytree(ROOT / ".mypy_cache", clone / ".mypy_cache")
    lint = ("make", "lint", f"BIN={Path(sys.executable).parent}", "OURS=True", "STAMP=.installed")
    for module in modules:
        with (clone / module).open("a") as file:
            file.write(f"\n\n{wrong}\n")
    code, out, err = run(clone, os.environ["PATH"], *lint)
    assert code != 0
    assert complaint in "\n".join(out)
    assert all(any(f"{module}:" in line for line in out) for module in modules)
    assert err[-1].startswith("make: *** ")


@pytest.mark.parametrize("command", [("make", "gate"), ("make", "test"), ("make", "check"), (".ci/run",)])
def test_no_python_ends_at_once_in_one_line(clone: Path, machine: Path, command: tuple[str, ...]) -> None:
    put(machine, "python3.13", SHIM)
    put(machine, "python3", TOO_OLD)
    code, out, err = run(clone, machine, *command)
    assert code != 0
    assert out == []
    (line,) = [line for line in err if not line.startswith("make: ***")]
    assert line.startswith("no Python 3.11 or newer found (tried python3.13 python3.12 python3.11 python3)")
    assert "apt-get install" in line
    assert "make PYTHON=" in line
    assert not (clone / ".venv").exists()


def test_python_without_venv_is_named_with_the_package_to_install(clone: Path, machine: Path) -> None:
    put(machine, "python3.12", WITHOUT_VENV)
    code, out, err = run(clone, machine, "make", "gate")
    assert code != 0
    assert out == []
    (line,) = [line for line in err if not line.startswith("make: ***")]
    assert line.startswith("python3.12 cannot make an environment")
    assert "python3-venv" in line


@pytest.mark.parametrize("more", [{}, {"PYTHON": "mine"}])
def test_python_is_the_first_that_works_or_the_one_named(
    clone: Path, machine: Path, more: dict[str, str]
) -> None:
    put(machine, "python3.13", SHIM)
    put(machine, "python3.12", WITHOUT_VENV)
    put(machine, "python3.11", TOO_OLD)
    put(machine, "python3", REAL)
    put(machine, "mine", REAL)
    code, out, err = run(clone, machine, "sh", ".ci/need", "python", **more)
    assert (code, out, err) == (0, [more.get("PYTHON", "python3")], [])


@pytest.mark.parametrize(
    ("java", "line"),
    [
        (None, "java not found: only the Spark pipeline needs it; install e.g. openjdk-17-jre-headless"),
        ("1.8.0_392", "java 17 not found, only 1.8.0_392: only the Spark pipeline needs it; install e.g."),
        ("17.0.15", "java 17.0.15"),
        ("26-ea", "java 26-ea"),
    ],
    ids=["none", "old", "good", "early"],
)
def test_doctor_prints_one_line_each(clone: Path, machine: Path, java: str | None, line: str) -> None:
    put(machine, "python3", REAL)
    if java is not None:
        put(machine, "java", f"""echo 'openjdk version "{java}" 2025-04-15' >&2""")
    code, out, err = run(clone, machine, "make", "doctor")
    assert (code, err) == (0, [])
    python, java_line, git = out
    assert python.startswith(f"python {sys.version.split()[0]} ")
    assert java_line.startswith(line)
    assert git.startswith("git not found")


@pytest.mark.nightly
def test_failed_installation_ends_in_one_clear_line(clone: Path, machine: Path) -> None:
    put(machine, "python3", REAL)
    code, _, err = run(clone, machine, "make", "gate", PIP_NO_INDEX="1", CI="true")
    assert code != 0
    *pip, line, make = err
    assert any("ERROR: " in line for line in pip)
    assert line.startswith("installation failed, pip says why above")
    assert make.startswith("make: *** ")
    assert not (clone / ".venv" / ".installed").exists()
