"""examples/java, built and judged as docs/how-to/check-a-java-project-in-ci.md says, with the real tools."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.gate.toolchains import run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "check-a-java-project-in-ci.md").read_text()
JOBS = {"mvn": "Maven", "gradle": "Gradle"}

pytestmark = pytest.mark.nightly


def steps(tool: str) -> Mapping[str, str]:
    """Return what the job of a page runs, by the names of its steps."""
    block = re.search(rf"## {JOBS[tool]}\n.*?```yaml\n(.*?)```", PAGE, re.S)
    assert block is not None
    (job,) = YAML(typ="safe", pure=True).load(block[1])["jobs"].values()
    found: list[Mapping[str, Any]] = job["steps"]
    return {step["name"]: step["run"] for step in found if "run" in step}


def variables() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    hidden = shutil.ignore_patterns("target", "build", ".*")
    return Path(shutil.copytree(ROOT / "examples" / "java", tmp_path / "java", ignore=hidden))


@pytest.mark.parametrize("tool", JOBS)
def test_the_job_builds_what_it_then_judges(example: Path, tool: str) -> None:
    job = steps(tool)
    run(*shlex.split(job["Build"].replace("./gradlew", "gradle")), cwd=example)
    (example / "known-failing.txt").write_text("")
    argv = [*shlex.split(job["Check"]), "--profile", "smoke"]
    done = subprocess.run(argv, cwd=example, env=variables(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("CONFORMANT  in-turn ")


def test_a_broken_clause_is_a_failed_test_of_junit(example: Path) -> None:
    source = example / "src" / "main" / "java" / "com" / "acme" / "InTurn.java"
    whole = source.read_text()
    source.write_text(whole.replace("index < partitions", "index + 1 < partitions"))
    assert source.read_text() != whole
    if not shutil.which("mvn"):
        pytest.skip("needs mvn")
    argv = ["mvn", "-q", "-B", "-ntp", "-Dstyle.color=never", "package"]
    done = subprocess.run(argv, cwd=example, env=variables(), capture_output=True, text=True, check=False)
    if "Could not transfer" in done.stdout:
        pytest.skip("mvn reaches no repository")
    assert done.returncode == 1
    assert "Failures: 1, Errors: 0, Skipped: 0" in done.stdout  # no test of what is not promised
    assert "t0-0 is not assigned, and nobody has to revoke it first" in done.stdout
    assert re.search(r"replay   rebalance replay \w{8}", done.stdout)
    assert list((example / ".rebalance" / "failures").glob("*.json"))
