"""`rebalance init`: what it writes is valid and true, it overwrites nothing, and it writes all or nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rebalance_verifier.base.installation import Installation
from rebalance_verifier.cli.init import command, source, workflows
from rebalance_verifier.cli.init.workflows import KINDS, KNOWN_TEXT, Project
from rebalance_verifier.gate.search.known import parse
from ruamel.yaml import YAML

from tests.test_installation import without_us
from tests.test_wheel import ROOT, wheel

__all__ = ["wheel"]

GITHUB = Path(".github/workflows/rebalance.yml")
KNOWN = Path("known-failing.txt")
COMMIT = "4f2c0e5a4f2c0e5a4f2c0e5a4f2c0e5a4f2c0e5a"
ADDRESS = f"git+https://git.example.com/suite.git@{COMMIT}"
MINE = "class Mine:\n    protocols = ('eager',)\n    def assign(self, cluster, group): return {}\n"


def loaded(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def hold(kind: str, text: str) -> Any:
    """The YAML, which keeps the schema of those that read it."""
    name = "gitlab-ci" if kind == "gitlab" else "github-workflows"
    file = resources.files("check_jsonschema").joinpath(f"builtin_schemas/vendor/{name}.json")
    jsonschema.validate(loaded(text), json.loads(file.read_text("utf-8")))
    return loaded(text)


def files_in(where: Path) -> dict[str, str]:
    return {
        path.relative_to(where).as_posix(): path.read_text()
        for path in sorted(where.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture
def project(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a Python assignor, beside which nobody knows where the suite came from."""
    monkeypatch.setattr(command, "installation", Installation)
    (here / "mine.py").write_text(MINE)
    return here


# -- what it writes ----------------------------------------------------------------------------------------

STRANGE = (
    "it's:Mine",
    'a "b": c',
    "a # b",
    "- x",
    "ünï:Mine",
    "$(touch run)",
    "`touch run`",
    "a\\b",
    "%s {x}",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["mine:Mine", *STRANGE])
def test_a_job_is_valid_and_runs_what_was_typed(kind: str, word: str, tmp_path: Path) -> None:
    """A shell that runs the line gives each word to the command as it was typed, and runs none."""
    for given in ({"target": word}, {"command": ("./adapter", word)}):
        job = Project(suite=f"./{word}", python="3.13", install=(".",), **given)
        (text,) = workflows.files(kind, job).values()
        document = hold(kind, text)
        if kind == "gitlab":
            lines, variables = document["rebalance"]["script"], document["rebalance"]["variables"]
        else:
            lines = [step["run"] for step in document["jobs"]["assignor"]["steps"] if "run" in step]
            variables = document["env"]
        assert variables == {"SUITE": f"./{word}"}
        (line,) = [line for line in lines if line.startswith("rebalance check")]
        printed = subprocess.run(
            ["bash", "-c", f"rebalance() {{ printf '%s\\n' \"$@\"; }}\n{line}"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        assert word in printed
        assert printed[printed.index("--known-failing") :][:2] == ["--known-failing", "@known-failing.txt"]
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_what_is_not_known_is_to_be_filled_in_and_fails_until_it_is(
    rebalance, project: Path, kind: str
) -> None:
    ran = rebalance("init", "mine:Mine", "--ci", kind)
    name = KINDS[kind][0]
    assert (ran.code, ran.err) == (0, "")
    assert f"fill in SUITE in {name}" in ran.out
    text = (project / name).read_text()
    hold(kind, text)
    (line,) = re.findall(r"python -m pip install .*", text)
    done = subprocess.run(["bash", "-c", line], env={"SUITE": ""}, capture_output=True, text=True)
    assert (done.returncode, "SUITE: has to be filled in above" in done.stderr) == (1, True) or (
        done.returncode, "SUITE: has to be filled in above" in done.stderr) == (127, True)  # fmt: skip


def test_the_list_of_known_failures_allows_nothing(rebalance, project: Path) -> None:
    assert parse(KNOWN_TEXT, "it") == ()
    rebalance("init", "range", "--ci", "github")
    argv = ("--profile", "smoke", "--clause", "assign/1", "--known-failing", f"@{KNOWN}")
    assert rebalance("check", "range", *argv).code == 0


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, " ."),
        ({"pyproject.toml": "[build-system]\nrequires = []\n", "requirements.txt": ""}, " ."),
        ({"pyproject.toml": "[tool.ruff]\n"}, ""),
        ({"pyproject.toml": "not TOML", "requirements.txt": ""}, " -r requirements.txt"),
        ({"setup.py": ""}, " ."),
        ({}, ""),
    ],
)
def test_the_project_is_installed_where_it_can_be(
    rebalance, project: Path, files: dict[str, str], installed: str
) -> None:
    for name, text in files.items():
        (project / name).write_text(text)
    assert rebalance("init", "mine:Mine", "--ci", "github").code == 0
    assert f'filled in above}}"{installed}\n' in GITHUB.read_text()


def test_python_is_the_one_that_runs(rebalance, project: Path) -> None:
    rebalance("init", "mine:Mine", "--ci", "github")
    steps = hold("github", GITHUB.read_text())["jobs"]["assignor"]["steps"]
    (version,) = [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")]
    assert version == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_gitlab_keeps_its_own_file_and_is_told_what_to_add(rebalance, project: Path) -> None:
    first = rebalance("init", "mine:Mine", "--ci", "gitlab")
    assert "wrote .gitlab-ci.yml" in first.out
    assert hold("gitlab", Path(".gitlab-ci.yml").read_text()) == {
        "include": [{"local": ".gitlab/rebalance.yml"}]
    }
    Path(".gitlab/rebalance.yml").unlink()
    Path(".gitlab-ci.yml").write_text("mine: {script: [make]}\n")
    again = rebalance("init", "mine:Mine", "--ci", "gitlab")
    assert "add to .gitlab-ci.yml" in again.out
    assert "- local: .gitlab/rebalance.yml" in again.out
    assert Path(".gitlab-ci.yml").read_text() == "mine: {script: [make]}\n"


@pytest.mark.parametrize("name", workflows.LIB)
def test_gradle_is_told_of_the_task_that_it_lacks(rebalance, project: Path, name: str) -> None:
    (project / name).write_text("plugins {}\n")
    assert workflows.LIB[name].splitlines()[0] in rebalance("init", "java:a.B", "--ci", "gradle").out
    assert "run: gradle jar lib" in GITHUB.read_text()
    (project / name).write_text(workflows.LIB[name])
    (project / "gradlew").touch()
    ran = rebalance("init", "java:a.B", "--ci", "gradle", "--force")
    assert (ran.code, "add to" in ran.out) == (0, False)
    assert "run: ./gradlew jar lib" in GITHUB.read_text()


def test_the_task_for_gradle_is_that_of_the_example() -> None:
    build = (ROOT / "examples" / "java" / "build.gradle.kts").read_text()
    assert workflows.LIB["build.gradle.kts"] in build


# -- where the suite comes from ----------------------------------------------------------------------------


def git(where: Path, *argv: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main")
    ran = subprocess.run(["git", *who, *argv], cwd=where, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of the suite whose commit is on the server; the server's name has a password in it."""
    where = tmp_path / "checkout"
    where.mkdir()
    git(where, "init", "-q")
    (where / "a").write_text("1")
    git(where, "add", "a")
    git(where, "commit", "-qm", "first")
    git(where, "remote", "add", "origin", "https://me:secret@git.example.com/suite.git")
    git(where, "update-ref", "refs/remotes/origin/main", "HEAD")
    return where


def test_a_pushed_checkout_is_named_by_address_and_commit(checkout: Path, tmp_path: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    for editable in (True, False):
        found = source.for_ci(Installation(path=checkout, editable=editable), tmp_path / "project")
        assert found == f"git+https://git.example.com/suite.git@{commit}"


@pytest.mark.parametrize(
    "untrue", ["changed", "not known", "not pushed", "ssh", "no remote", "no repository", "gone"]
)
def test_what_ci_cannot_have_is_not_named(checkout: Path, tmp_path: Path, untrue: str) -> None:
    match untrue:
        case "changed":
            (checkout / "a").write_text("2")
        case "not known":  # git does not say what has changed
            (checkout / ".git" / "index").write_bytes(b"no index")
        case "not pushed":
            git(checkout, "commit", "-qm", "second", "--allow-empty")
        case "ssh":
            git(checkout, "remote", "set-url", "origin", "git@git.example.com:suite.git")
        case "no remote":
            git(checkout, "remote", "remove", "origin")
        case "no repository":
            shutil.rmtree(checkout / ".git")
        case "gone":
            shutil.rmtree(checkout)
    assert source.for_ci(Installation(path=checkout, editable=True), tmp_path / "project") == ""


@pytest.mark.parametrize(
    ("address", "named"),
    [
        (ADDRESS, ADDRESS),
        ("https://files.example.com/s.whl#sha256=ab", "https://files.example.com/s.whl#sha256=ab"),
        (f"git+ssh://git@git.example.com/suite.git@{COMMIT}", ""),
        (f"git+file:///home/me/suite@{COMMIT}", ""),
        ("", ""),
    ],
)
def test_an_address_is_named_where_ci_reaches_it(address: str, named: str, tmp_path: Path) -> None:
    assert source.for_ci(Installation(address=address), tmp_path) == named


def test_a_wheel_in_the_repository_is_named_by_its_path(rebalance, project: Path, monkeypatch) -> None:
    (project / "wheels").mkdir()
    file = project / "wheels" / "a b.whl"
    file.touch()
    monkeypatch.setattr(command, "installation", lambda: Installation(path=file))
    ran = rebalance("init", "mine:Mine", "--ci", "github")
    assert "the suite comes from ./wheels/a b.whl" in ran.out
    assert hold("github", GITHUB.read_text())["env"] == {"SUITE": "./wheels/a b.whl"}
    for given in ("wheels/a b.whl", ADDRESS, "https://files.example.com/s.whl"):
        assert rebalance("init", "mine:Mine", "--ci", "github", "--force", "--suite", given).code == 0
        assert given in hold("github", GITHUB.read_text())["env"]["SUITE"]


# -- what it refuses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ((), "which target?"),
        (("nothing_here:X",), "no module and no adapter is called 'nothing_here'"),
        (("mine:Mine", "--", "true"), "two targets"),
        (("mine:${{ x }}",), "cannot stand in a workflow"),
        (("mine:Mine\nrun: x",), "cannot stand in a workflow"),
        (("mine:Mine", "--suite", "rebalance-verifier"), "is no git+https://"),
        (("mine:Mine", "--suite", "rebalance-verifier==0.1.0"), "is no git+https://"),
        (("mine:Mine", "--suite=-e"), "is no git+https://"),
        (("mine:Mine", "--suite", "http://files.example.com/s.whl"), "is no git+https://"),
        (("mine:Mine", "--suite", "https://a/${{ x }}"), "is no git+https://"),
        (("mine:Mine", "--suite", "/"), "is not in this repository"),
        (("mine:Mine", "--ci", "maven"), "--ci maven judges a class"),
        (("java:", "--ci", "gradle"), "--ci gradle judges a class"),
        (("java:a.B", "--ci", "maven"), "no pom.xml here"),
        (("java:a.B", "--ci", "gradle"), "no build.gradle.kts or build.gradle here"),
    ],
)
def test_what_is_wrong_is_one_message_and_nothing_is_written(
    rebalance, project: Path, argv: tuple[str, ...], line: str
) -> None:
    before = files_in(project)
    ci = () if "--ci" in argv else ("--ci", "github")
    ran = rebalance("init", *ci, *argv)
    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err
    assert "Traceback" not in ran.err
    assert files_in(project) == before


def test_it_overwrites_nothing_unless_forced_and_never_the_list(rebalance, project: Path) -> None:
    GITHUB.parent.mkdir(parents=True)
    GITHUB.write_text("mine\n")
    ran = rebalance("init", "mine:Mine", "--ci", "github")
    assert (ran.code, GITHUB.read_text(), KNOWN.exists()) == (2, "mine\n", False)
    assert f"{GITHUB} is there already, nothing was written" in ran.err
    KNOWN.write_text("assign/1  # mine\n")
    ran = rebalance("init", "mine:Mine", "--ci", "github", "--force")
    assert (ran.code, KNOWN.read_text()) == (0, "assign/1  # mine\n")
    assert "known-failing.txt is there already and stays" in ran.out
    assert "mine:Mine" in GITHUB.read_text()


def test_links_are_not_followed(rebalance, project: Path, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    GITHUB.parent.mkdir(parents=True)
    GITHUB.symlink_to(elsewhere / "not there")
    ran = rebalance("init", "mine:Mine", "--ci", "github")
    assert (ran.code, "is there already, nothing was written" in ran.err) == (2, True)
    shutil.rmtree(".github")
    Path(".github").symlink_to(elsewhere)
    for force in ((), ("--force",)):
        ran = rebalance("init", "mine:Mine", "--ci", "github", *force)
        assert (ran.code, "through a link" in ran.err) == (2, True)
    assert list(elsewhere.iterdir()) == []
    assert not KNOWN.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_the_way_is_not_waited_for(rebalance, project: Path) -> None:
    GITHUB.parent.mkdir(parents=True)
    os.mkfifo(GITHUB)
    os.mkfifo("pyproject.toml")
    assert rebalance("init", "mine:Mine", "--ci", "github").code == 2
    forced = rebalance("init", "mine:Mine", "--ci", "github", "--force")
    assert (forced.code, "pipe" in forced.err, KNOWN.exists()) == (2, True, False)


def test_all_is_written_or_nothing(rebalance, project: Path, monkeypatch) -> None:
    def failing(path: Path, text: str) -> Path:
        if path.name == KNOWN.name:
            raise OSError(28, "No space left on device", str(path))
        path.write_text(text)
        return path

    monkeypatch.setattr(command, "write_whole", failing)
    before = files_in(project)
    ran = rebalance("init", "mine:Mine", "--ci", "github")
    assert (ran.code, files_in(project)) == (2, before)
    assert "No space left" in ran.err
    GITHUB.parent.mkdir(parents=True, exist_ok=True)
    GITHUB.write_text("mine\n")
    assert rebalance("init", "mine:Mine", "--ci", "github", "--force").code == 2
    assert GITHUB.read_text() == "mine\n"


def test_it_is_for_the_top_of_a_repository(rebalance, project: Path, monkeypatch) -> None:
    (project / ".git").mkdir()
    below = project / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    ran = rebalance("init", "range", "--ci", "github")
    assert (ran.code, list(below.iterdir())) == (2, [])
    assert f"cd {project}" in ran.err
    monkeypatch.chdir(project)
    assert rebalance("init", "range", "--ci", "github").code == 0


# -- as a user does it: a wheel, two fresh environments, the steps of the job by a shell ---------------------


class Machine:
    """A machine with Python and pip, and what the suite needs besides, so that nothing is fetched."""

    def __init__(self, where: Path) -> None:
        where.mkdir()
        python = without_us(where).python
        self.variables = {
            "PATH": f"{python.parent}:{os.environ['PATH']}",
            "HOME": str(where),
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
        }

    def run(self, where: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        environment = {**self.variables, **variables}
        return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)


def scripts(document: Any) -> dict[str, str]:
    """The steps of the GitHub job that are scripts, by name; this machine is not changed, and may be one
    without a sandbox."""
    steps = {step["name"]: step["run"] for step in document["jobs"]["assignor"]["steps"] if "run" in step}
    del steps["Allow the sandbox"]
    return {name: text.replace(" --sandbox", "") for name, text in steps.items()}


@pytest.fixture
def repository(wheel: Path, tmp_path: Path) -> Path:
    """A new repository that carries the wheel, and an environment of its author, in which it is installed."""
    where = tmp_path / "repository"
    (where / "wheels").mkdir(parents=True)
    shutil.copy(wheel, where / "wheels")
    git(where, "init", "-q")
    return where


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_the_job_of_a_python_project_runs_as_it_is_written(
    repository: Path, tmp_path: Path, kind: str
) -> None:
    shutil.copy(ROOT / "examples" / "my_assignor.py", repository)
    author, ci = Machine(tmp_path / "author"), Machine(tmp_path / "ci")
    line = f"rebalance init my_assignor:CooperativeRoundRobin --ci {kind}"
    written = author.run(repository, f"python -m pip install -q wheels/*.whl && {line}")
    assert written.returncode == 0, written.stderr
    assert "fill in" not in written.stdout
    document = hold(kind, (repository / KINDS[kind][0]).read_text())
    if kind == "gitlab":
        variables, steps = document["rebalance"]["variables"], document["rebalance"]["script"]
    else:
        variables, steps = document["env"], list(scripts(document).values())
    for script in steps:
        ran = ci.run(repository, script.replace("--report-dir", "--profile smoke --report-dir"), **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("CONFORMANT")
    reports = {path.name for path in (repository / "rebalance-report").iterdir()}
    assert {"report.txt", "report.html", "junit.xml"} <= reports


@pytest.mark.nightly
@pytest.mark.parametrize("scope", ["compile", "provided"])
def test_the_job_of_a_maven_project_runs_as_it_is_written(
    repository: Path, tmp_path: Path, scope: str
) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("needs mvn")
    shutil.copytree(
        ROOT / "examples" / "java", repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target")
    )
    pom = repository / "pom.xml"
    version = "<version>4.1.0</version>"
    pom.write_text(pom.read_text().replace(version, f"{version}\n      <scope>{scope}</scope>"))
    author, ci = Machine(tmp_path / "author"), Machine(tmp_path / "ci")
    line = "rebalance init java:com.acme.InTurn --ci maven"
    written = author.run(repository, f"python -m pip install -q wheels/*.whl && {line}")
    assert written.returncode == 0, written.stderr
    document = hold("maven", (repository / GITHUB).read_text())
    home = {"HOME": os.environ["HOME"], **document["env"]}  # where Maven keeps its settings
    for script in scripts(document).values():
        ran = ci.run(repository, script.replace("--report-dir", "--profile smoke --report-dir"), **home)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("CONFORMANT")
