"""What an installed wheel does to test suites that never use it, and to one that does.

An editable installation hides it: pytest takes the names that it rewrites from the list of installed files.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.test_wheel import project, wheel

__all__ = ["wheel"]

pytestmark = pytest.mark.slow

[(PLUGIN, MODULE)] = project()["project"]["entry-points"]["pytest11"].items()
PACKAGE = MODULE.partition(".")[0]
"""What is imported, and below it a name for each folder of the house."""

FOLDERS = sorted({name.split(".")[1] for name in project()["tool"]["setuptools"]["packages"] if "." in name})


def required(requirements: list[str], seen: set[str]) -> Iterator[Distribution]:
    """The distributions that these requirements bring, each once."""
    for requirement in map(Requirement, requirements):
        if requirement.name not in seen and (requirement.marker is None or requirement.marker.evaluate()):
            seen.add(requirement.name)
            found = distribution(requirement.name)
            yield found
            yield from required(found.requires or [], seen)


class Environment(NamedTuple):
    """A Python that has the wheel, what it requires, pytest-xdist and nothing else."""

    python: Path

    def run(self, where: Path, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python there, with none of the variables of this test run."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return subprocess.run(
            [self.python, *argv], cwd=where, env={**kept, **variables}, capture_output=True, text=True
        )

    def pytest(self, where: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(where, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", *options, **variables)


def without_us(home: Path, *options: str) -> Environment:
    """An environment in a new directory that has all but the wheel."""
    subprocess.run([sys.executable, "-m", "venv", *options, "venv"], cwd=home, check=True)
    needed = home / "needed"
    needed.mkdir()
    # Links to what is installed here, so that nothing is fetched; not all of it, or we would be found twice.
    for each in required([*project()["project"]["dependencies"], "pytest-xdist"], set()):
        for top in {file.parts[0] for file in each.files or []} - {"..", "__pycache__"}:
            if not top.endswith(".pth"):
                (needed / top).symlink_to(Path(str(each.locate_file(top))))
    (site,) = (home / "venv" / "lib").glob("python*/site-packages")
    (site / "needed.pth").write_text(f"{needed}\n")
    return Environment(home / "venv" / "bin" / "python")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = without_us(tmp_path_factory.mktemp("installed"), "--without-pip")
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, capture_output=True)
    return environment


PASSES = {"test_it.py": "def test_it():\n    assert 1 + 1 == 2\n"}
LIGHT = f"""
import sys

def test_light():
    heavy = {{"networkx", "numpy", "z3", "duckdb", "{PACKAGE}.properties", "{PACKAGE}.model"}}
    assert not heavy & sys.modules.keys()
    assert any(name.startswith("{PACKAGE}.") for name in sys.modules), "the plugin was not loaded"
"""
ITEMS = """
import pytest

class Refusing(pytest.Item):
    @property
    def obj(self):
        raise RuntimeError("nobody is to ask")

    def setup(self):
        type(self).obj = None  # pytest itself asks later

    def runtest(self):
        pass

class File(pytest.File):
    def collect(self):
        yield Refusing.from_parent(self, name="refusing")

def pytest_collect_file(file_path, parent):
    return File.from_parent(parent, path=file_path) if file_path.suffix == ".own" else None
"""
WRAPPED = f"""
import functools
import sys

class Answering:
    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __getattr__(self, name):
        if "rebalance" not in name:  # pytest asks for some of its own
            raise AttributeError(name)
        return "yes"

    def __call__(self):
        assert "{PACKAGE}.gate" not in sys.modules

@Answering
def test_wrapped():
    pass
"""
MARKED = """
import pytest

@pytest.mark.{name}(3)
def test_marked():
    pass
"""
INI = "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"


class Foreign(NamedTuple):
    """A suite of somebody else: its files, and what becomes of it where we are not installed."""

    files: dict[str, str]
    options: tuple[str, ...] = ()
    said: str = "1 passed"
    code: int = 0


SUITES = {
    "plain": Foreign(PASSES),
    "strict": Foreign({**PASSES, "pytest.ini": INI}),
    "two workers": Foreign({**PASSES, "pytest.ini": INI}, ("-n", "2")),
    "importlib": Foreign(PASSES, ("--import-mode=importlib",)),
    "switched off": Foreign(PASSES, ("-p", f"no:{PLUGIN}")),
    "nothing heavy is loaded": Foreign({"test_it.py": LIGHT}),
    "items of its own": Foreign({"a.own": "", "conftest.py": ITEMS}, ("a.own",)),
    "tests that are no functions": Foreign({"test_it.py": WRAPPED}),
    **{
        f"marker {name} not declared": Foreign(
            {"test_it.py": MARKED.format(name=name), "pytest.ini": INI},
            said=f"'{name}' not found in `markers` configuration option",
            code=2,
        )
        for name in ("clause", "level")
    },
    "markers of its own": Foreign(
        {
            "test_it.py": MARKED.format(name="level"),
            "pytest.ini": f"{INI}markers =\n    level(n): a level of ours\n    clause: c\n    protocol: p\n",
        },
        ("-m", "level"),
    ),
}


def written(where: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (where / name).write_text(text)
    return where


@pytest.mark.nightly
@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_a_suite_that_never_uses_us_runs_as_without_us(
    installed: Environment, tmp_path: Path, suite: Foreign
) -> None:
    ran = installed.pytest(written(tmp_path, suite.files), "-q", *suite.options)
    assert (ran.returncode, ran.stderr) == (suite.code, ""), ran.stdout
    assert suite.said in ran.stdout
    assert "arning" not in ran.stdout
    assert PACKAGE not in ran.stdout
    made = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert made == suite.files.keys()


def test_pytest_may_be_called_after_we_were_imported_and_after_folders_named_like_ours(
    installed: Environment, tmp_path: Path
) -> None:
    """A user has a `model` too: pytest is not to take it for a part of our plugin."""
    written(tmp_path, {**PASSES, **{f"{name}.py": "" for name in FOLDERS}})
    program = f"import {PACKAGE}, {', '.join(FOLDERS)}, pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
    ran = installed.run(tmp_path, "-c", program, "-q", "-W", "error", "-p", "no:cacheprovider")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert "1 passed" in ran.stdout


CONTRACT = {"test_contract.py": f"from {PACKAGE} import conformance\n\ntest_it = conformance('range')\n"}


@pytest.mark.nightly
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_suite_that_uses_us_runs_where_warnings_are_errors(
    installed: Environment, tmp_path: Path, options: tuple[str, ...]
) -> None:
    ran = installed.pytest(written(tmp_path, {**CONTRACT, "pytest.ini": INI}), "-q", *options)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert re.search(r"^\d\d passed, \d\d skipped in", ran.stdout, re.M)


@pytest.mark.nightly
def test_a_suite_that_uses_us_is_told_that_the_plugin_is_switched_off(
    installed: Environment, tmp_path: Path
) -> None:
    written(tmp_path, CONTRACT)
    off = installed.run(tmp_path, "-m", "pytest", "-q", "-p", f"no:{PLUGIN}", "-p", "no:cacheprovider")
    assert off.returncode == 1
    assert f"not to load the plugin `{PLUGIN}`: leave out `-p no:{PLUGIN}`" in off.stdout
    assert "KeyError" not in off.stdout
    alone = installed.pytest(tmp_path, "-q", "-p", PLUGIN, "-k", "search", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 passed" in alone.stdout


@pytest.mark.parametrize("module", [PACKAGE, f"{PACKAGE}.cli.start"])
def test_the_command_starts_where_warnings_are_errors(
    installed: Environment, tmp_path: Path, module: str
) -> None:
    version = f"rebalance {project()['project']['version']}\n"
    ran = installed.run(tmp_path, "-W", "error", "-m", module, "--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, version, "")


def test_adapters_are_loaded_without_the_clients_that_they_adapt(
    installed: Environment, tmp_path: Path
) -> None:
    program = """
from importlib.metadata import entry_points
for each in entry_points(group="rebalance_verifier.assignors"):
    each.load()
    print(each.name)
"""
    ran = installed.run(tmp_path, "-W", "error", "-c", program)
    assert (ran.stdout.split(), ran.stderr) == (["aiokafka", "kafka-python"], "")


JUDGES = """
from rebalance_verifier import CannotJudge, check, explore, scenario

answer = check("range", profile="smoke", clauses=["assign"])
assert answer and answer.to_json()["verdict"] == "conformant", str(answer)
broken = explore(scenario("dynamic", members=2, partitions=2, max_faults=0, switches=["no_withhold"]))
assert not broken and broken.findings[0].save("traces").exists()
try:
    check("nothing")
except CannotJudge as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.nightly
def test_the_python_api_judges_where_warnings_are_errors(installed: Environment, tmp_path: Path) -> None:
    ran = installed.run(tmp_path, "-W", "error", "-c", JUDGES)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "no target is called 'nothing'\n", "")


TYPED = """
from rebalance_verifier import Cluster, GroupAssignment, GroupSubscription, Judgement
from rebalance_verifier import check, conformance, explore


class Mine:
    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        return {member: tuple(cluster.partitions()) for member in group}


answer: Judgement = check(Mine(), profile="smoke")
count: int = len(explore("static", members=2).findings[0].summary)
test_contract = conformance("mine:Mine")
reveal_type(explore)
check(Mine(), profile=3)
explore("static", member=2)
"""


@pytest.mark.nightly
def test_type_checkers_see_the_api_of_the_installed_wheel(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TYPED)
    command = ["-m", "mypy", "--strict", "--python-executable", str(installed.python), "mine.py"]
    ran = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
    assert 'Revealed type is "def (group: ' in ran.stdout
    assert re.findall(r": error: .*\[([\w-]+)\]", ran.stdout) == ["arg-type", "call-arg"], ran.stdout


def stranger(home: Path) -> Path:
    """A wheel of another project called `rebalance`, with a package and a command of that name."""
    about = "rebalance-2.9.dist-info"
    files = {
        "rebalance/__init__.py": "def main():\n    print('portfolio')\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: rebalance\nVersion: 2.9\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nrebalance = rebalance:main\n",
    }
    made = home / "rebalance-2.9-py3-none-any.whl"
    with ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"]))
    return made


@pytest.mark.nightly
@pytest.mark.parametrize("ours_last", [True, False], ids=["installed after it", "installed before it"])
def test_both_work_beside_another_project_called_rebalance(
    wheel: Path, tmp_path: Path, ours_last: bool
) -> None:
    """It has the same command: that of the last one installed is there, and ours has another name too."""
    both = without_us(tmp_path, "--without-pip")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(both.python),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    for one in sorted([wheel, stranger(tmp_path)], key=lambda one: one == wheel, reverse=not ours_last):
        subprocess.run([*pip, str(one)], check=True, capture_output=True)
    version = f"rebalance {project()['project']['version']}\n"
    scripts = both.python.parent
    where = tmp_path / "suite"
    where.mkdir()
    written(
        where,
        {
            **CONTRACT,
            "pytest.ini": INI,
            "test_other.py": "import rebalance\n\ndef test_it():\n    rebalance.main()\n",
        },
    )
    said = {
        name: subprocess.run([scripts / name, "--version"], capture_output=True, text=True).stdout
        for name in ("rebalance", "rebalance-verifier")
    }
    assert said == {"rebalance": version if ours_last else "portfolio\n", "rebalance-verifier": version}
    assert both.run(where, "-W", "error", "-m", PACKAGE, "--version").stdout == version
    ran = both.pytest(where, "-q", "-k", "test_other or search")
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert "2 passed" in ran.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["pytest==8.4.0", "pytest<9", "pytest<10"])
def test_every_release_of_pytest_that_we_allow_lets_foreign_suites_be(
    installed: Environment, tmp_path: Path, release: str
) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "older", release], check=True
    )
    where = tmp_path / "suite"
    where.mkdir()
    written(where, {**PASSES, "pytest.ini": INI})
    for options in ((), ("-n", "2")):
        ran = installed.pytest(where, "-q", *options, PYTHONPATH=str(tmp_path / "older"))
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
        assert "1 passed" in ran.stdout
