"""What others install and run: the action, its steps run by a shell; the image; recipes in the docs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests.test_readme import DOCUMENTS, blocks
from tests.test_wheel import FOLDERS, ROOT, project

ACTION = ROOT / "action.yml"
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def loaded(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def schema(name: str) -> dict[str, Any]:
    """One of GitHub's, as the package carries it."""
    file = resources.files("check_jsonschema").joinpath(f"builtin_schemas/vendor/{name}.json")
    return cast(dict[str, Any], json.loads(file.read_text("utf-8")))


def action() -> dict[str, Any]:
    return cast(dict[str, Any], loaded(ACTION.read_text()))


# -- the action ------------------------------------------------------------------------------------------


def test_the_action_is_one() -> None:
    jsonschema.validate(action(), schema("github-actions"))
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))
    assert used == set(action()["inputs"])
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "an input in the text of a script could be run"


@dataclass
class Runner:
    """What GitHub does with steps that are scripts: run by bash, with expressions filled in."""

    where: Path
    inputs: dict[str, str]
    variables: Mapping[str, str]

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        (step,) = (step for step in action()["runs"]["steps"] if step.get("name") == name)
        output = self.where / f"output-{step.get('id', 'none')}"
        summary = self.where / "summary.md"
        environment = {key: self.filled(value) for key, value in step["env"].items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.where,
            env={
                **self.variables, **environment,
                "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary),
            },
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.value(found[1]), text)

    def value(self, expression: str) -> str:
        kind, *rest = expression.split(".")
        if kind == "inputs":
            return self.inputs.get(rest[0], str(action()["inputs"][rest[0]].get("default", "")))
        if kind == "steps":
            return self.outputs(rest[0])[rest[2]]
        assert expression == "github.action_path"
        return str(self.where / "suite")

    def outputs(self, step: str) -> dict[str, str]:
        lines = (self.where / f"output-{step}").read_text().splitlines()
        return dict(line.partition("=")[::2] for line in lines)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """With pip and nothing else; what the suite needs besides is found here, so that nothing is fetched."""
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=tmp_path, check=True)
    hidden = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, tmp_path / "suite", ignore=hidden)
    needed = [path for path in sys.path if path.endswith("site-packages")]
    variables = {
        "PATH": f"{tmp_path / 'venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        # Their packages, not their .pth files: the editable installation is not to be found.
        "PYTHONPATH": os.pathsep.join(needed),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
    }
    return Runner(tmp_path, {}, variables)


GREEDY = re.search(r"<!-- file: assignor.py -->\n```python\n(.*?)```", (
    ROOT / "docs" / "how-to" / "put-the-gate-into-ci.md").read_text(), re.S)  # fmt: skip


@pytest.mark.nightly
def test_the_steps_of_the_action_install_judge_and_annotate(runner: Runner) -> None:
    installed = runner.run("Install")
    assert installed.returncode == 0, installed.stderr
    assert (runner.where / "venv" / "bin" / "rebalance").exists()

    runner.inputs["sandbox"] = "auto"
    assert runner.run("Sandbox").returncode == 0
    assert runner.outputs("sandbox")["option"] in ("", "--sandbox")
    runner.inputs["sandbox"] = "sometimes"
    assert runner.run("Sandbox").returncode == 2

    assert GREEDY is not None
    (runner.where / "assignor.py").write_text(GREEDY[1])
    runner.inputs = {"target": "assignor:Greedy", "profile": "smoke", "args": "--clause 'kip429/leader/4'"}
    broken = runner.run("Check")
    assert broken.returncode == 1, broken.stderr
    assert "::error file=assignor.py,line=1,title=kip429/leader/4" in broken.stdout
    assert runner.outputs("check")["exit-code"] == "1"
    reports = runner.where / runner.outputs("check")["report-dir"]
    assert {path.name for path in reports.iterdir()} == {
        "report.txt", "report.html", "junit.xml", "report.sarif"
    }  # fmt: skip
    assert "kip429/leader/4" in (runner.where / "summary.md").read_text()

    (runner.where / "rebalance.toml").write_text('[check]\ntarget = "range"\nclause = ["assign/1"]\n')
    runner.inputs = {"profile": "smoke", "args": "--seed 3 --env '$(touch run)'", "report-dir": "of its own"}
    good = runner.run("Check")
    assert (good.returncode, runner.outputs("check")["exit-code"]) == (0, "0"), good.stderr
    assert (runner.where / "of its own" / "report.sarif").exists()
    assert not (runner.where / "run").exists()


# -- the image -------------------------------------------------------------------------------------------


def copied() -> list[str]:
    """What the image is built of: the sources of each COPY that is not from a stage."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    return [name for line in lines for name in line.split()]


def test_the_image_is_built_of_all_that_the_wheel_is_made_of() -> None:
    assert set(copied()) == {*FOLDERS, "pyproject.toml", "README.md", "LICENSE"}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied())
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", DOCKERFILE, re.M)
    named = [name for _, name in stages if name]
    assert all(base.startswith("python:3.") or base in named for base, _ in stages)
    assert "judge" in re.findall(r"^USER (\w+)$", DOCKERFILE, re.M)[-1]


@pytest.mark.nightly
def test_the_wheel_of_the_image_has_all_packages(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            source.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    (step,) = re.findall(r"^RUN python (-m pip wheel .*)$", DOCKERFILE, re.M)
    command = [sys.executable, *step.replace("/wheels", str(tmp_path)).split(), "--no-build-isolation"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True, check=True
    )
    folders = {line.split()[0].rpartition("/")[0] for line in listed.stdout.splitlines()}
    assert {name.replace(".", "/") for name in project()["tool"]["setuptools"]["packages"]} <= folders


# -- recipes and links -----------------------------------------------------------------------------------


def recipes() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for block in blocks(document):
            if block.kind in ("yaml", "groovy", "sh", "xml", "kotlin"):
                yield block.name, block.text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name)
        for name, text in recipes()
        if re.search(r"^on:", text, re.M) and "steps:" in text
    ],
)
def test_a_workflow_in_the_docs_is_one(text: str) -> None:
    workflow = loaded(text)
    jsonschema.validate(workflow, schema("github-workflows"))
    known = action()["inputs"]
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("<"):
                assert step["uses"] == "<owner>/<repository>@<commit>"  # which no repository can be called
                assert set(step.get("with", {})) <= set(known)


def test_the_changelog_has_the_version() -> None:
    version = project()["project"]["version"]
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d|not released yet))?$", changelog(), re.M)
    assert headings[0][0] == "Unreleased" or headings[0] == (version, "not released yet")
    assert version in [name for name, _ in headings]
    assert all(when for name, when in headings if name != "Unreleased")


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text()
