"""What is fetched is held against its checksum, nothing is unpickled, no name or port can be guessed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.artifacts import maven, packages, pypi

from tests.test_layers import FLOORS
from tests.trees import tree

ROOT = Path(__file__).parents[1]

# --- what is fetched ----------------------------------------------------------------------------------------


def given(only_programs, monkeypatch, tmp_path: Path, name: str) -> Path:
    """A program that writes down what it is called with, and fails."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    only_programs(name, f'echo "$@" > {tmp_path}/given; exit 1')
    return tmp_path / "given"


def test_maven_refuses_what_does_not_fit_its_checksum(only_programs, monkeypatch, tmp_path):
    """On its own it warns, and goes on."""
    written = given(only_programs, monkeypatch, tmp_path, "mvn")
    with pytest.raises(ToolError):
        maven.classpath(("org.example:example:1.0",))
    assert "--strict-checksums" in written.read_text().split()


def test_maven_is_not_run_where_a_directory_of_others_may_name_its_extensions(
    only_programs, monkeypatch, tmp_path, here
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    only_programs("mvn", f"pwd > {tmp_path}/given; exit 1")
    with pytest.raises(ToolError):
        maven.classpath(("org.example:example:1.0",))
    assert Path((tmp_path / "given").read_text().strip()) != here


def test_pip_builds_nothing(monkeypatch, tmp_path):
    """The ``setup.py`` of a release, or of what it needs, would run with all rights of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = []

    def run(argv, *_):
        given.append(argv)
        return subprocess.CompletedProcess(argv, 1, "", "No matching distribution")

    monkeypatch.setattr(pypi, "run", run)
    with pytest.raises(ToolError, match="as a wheel, and builds none"):
        pypi.installed("kafka-python", "0.0.1")
    (argv,) = given
    assert argv[argv.index("--only-binary") + 1] == ":all:"
    assert "--prefer-binary" not in argv


def test_pip_is_not_a_module_of_the_current_directory(here):
    (here / "pip.py").write_text("open('run', 'w')\n")
    subprocess.run([*pypi.pip(), "--version"], cwd=here, capture_output=True, check=False)
    assert not (here / "run").exists()


def test_npm_runs_no_script_of_what_it_installs(only_programs, monkeypatch, tmp_path):
    written = given(only_programs, monkeypatch, tmp_path, "npm")
    with pytest.raises(ToolError):
        packages.npm_program("example", "1.0.0", {"a.js": ""})
    assert "--ignore-scripts" in written.read_text().split()


LOCKS = sorted((ROOT / "examples" / "adapters").glob("js/*/package-lock.json"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_file_of_npm_pins_all_that_it_names(lock):
    installed = {name: one for name, one in json.loads(lock.read_text())["packages"].items() if name}
    assert installed
    assert [name for name, one in installed.items() if not one["integrity"].startswith("sha512-")] == []


def test_go_sums_pin_all_modules():
    folder = ROOT / "examples" / "adapters" / "go"
    required = set(re.findall(r"^\t?(?:require )?([\w./-]+) (v\S+)", (folder / "go.mod").read_text(), re.M))
    sums = {tuple(line.split()[:2]) for line in (folder / "go.sum").read_text().splitlines()}
    assert len(required) > 3
    assert required - sums == set()


# --- what is written in the code ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, str, ast.Call]]:
    """Every call of the product: module, what is called, as it is written, and the call."""
    return [
        (path.relative_to(ROOT).as_posix(), written(node.func), node)
        for folder in FLOORS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(tree(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]


def written(node: ast.expr) -> str:
    """Return an expression as it is written; most are names, which need no ``unparse``."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{written(value)}.{name}"
    return ast.unparse(node)


def test_nothing_is_unpickled_but_what_our_own_processes_share(calls):
    """`once` reads a directory of pytest's, which nobody else can write to; `texts` what its own tasks hand
    over by way of Spark, which pickles itself."""
    readers = {"loads", "load", "Unpickler", "read_pickle"}
    named = re.compile(r"(pickle|cPickle|dill|cloudpickle|shelve|marshal|joblib|np|numpy)\.(\w+)\Z")
    found = {
        (module, function)
        for module, function, _ in calls
        if (match := named.match(function)) and (match[2] in readers or match[1] in ("shelve", "marshal"))
    }
    shared = {"base/processes/compute_once.py", "pipeline/audit/texts.py"}
    assert found == {(module, "pickle.loads") for module in shared}


def test_no_name_of_a_temporary_file_can_be_guessed(calls):
    assert [
        (m, f) for m, f, _ in calls if f in ("tempfile.mktemp", "mktemp", "os.tempnam", "os.tmpnam")
    ] == []
    fixed = re.compile(r"/(var/)?tmp/")
    written = [
        (module, ast.unparse(call))
        for module, function, call in calls
        for one in call.args
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and fixed.match(one.value)
    ]
    assert written == []


def test_whoever_listens_does_so_on_loopback_at_a_port_that_the_system_chose(calls):
    found = []
    for module, function, call in calls:
        name = function.rpartition(".")[2]
        if name == "start_server":
            found.append((module, [ast.unparse(one) for one in call.args[1:]]))
        elif name in ("bind", "create_server") and call.args and isinstance(call.args[0], ast.Tuple):
            found.append((module, [ast.unparse(one) for one in call.args[0].elts]))
        else:
            assert not re.search(r"(HTTP|TCP|UDP)Server\Z|serve_forever", name), (module, function)
    assert len(found) >= 3
    for module, (host, port) in found:
        assert host in ("HOST", "'127.0.0.1'"), module
        assert port == "0", module
    for module in {module for module, (host, _) in found if host == "HOST"}:
        body = tree((ROOT / module).read_text()).body
        hosts = {
            ast.unparse(node.value)
            for node in body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HOST"
        }
        assert hosts == {"'127.0.0.1'"}, module


def test_no_code_is_made_of_text_but_formulas_of_ours(calls):
    found = {(m, f) for m, f, _ in calls if f in ("eval", "exec", "os.system", "os.popen", "yaml.load")}
    assert found == {("specs/logic/compiled.py", "exec")}
    shells = [
        (module, function)
        for module, function, call in calls
        for keyword in call.keywords
        if keyword.arg == "shell" and ast.unparse(keyword.value) != "False"
    ]
    assert shells == []
