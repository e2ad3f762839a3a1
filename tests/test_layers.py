"""Who may import whom: the table of ARCHITECTURE.md, enforced on the source and on what gets loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    """What a folder may import besides itself and the standard library."""

    folders: set[str]
    installed: set[str]
    """Installed packages, anywhere in a module."""
    lazily: set[str]
    """Installed packages, inside a function only."""


OPTIONAL = {"kafka", "aiokafka", "confluent_kafka", "jsonschema"}
"""Not among the required packages: whoever imports them has to live without."""

BROUGHT = {"numpy", "pyarrow"}
"""Not required by name: pyspark's extra ``sql`` requires it."""

# A row for a folder that does not exist yet applies from the day it does.
MAY_IMPORT = {
    "model": Row(set(), set(), set()),
    "properties": Row({"model"}, {"hypothesis", "networkx"}, set()),
    "specs": Row({"model", "properties"}, {"z3"}, set()),
    "explore": Row({"model", "properties"}, {"networkx", "numpy"}, set()),
    "pipeline": Row({"model", "properties", "specs", "explore"}, {"pyspark", "numpy", "pyarrow"}, set()),
    "gate": Row(
        {"model", "properties", "specs", "explore", "pipeline"},
        {"pytest"},
        {"hypothesis", "networkx", "z3", "pyspark"} | OPTIONAL,
    ),
}

# What the two entry points must not load: they run in every user's shell and test run.
HEAVY = {"hypothesis", "networkx", "z3", "pyspark", "pandas", "numpy", "pyarrow"} | OPTIONAL


def imports(source: str, package: str) -> Iterator[tuple[int, str, bool]]:
    """Everything that ``source``, a module in ``package``, imports: line, absolute name, if in a function.

    Imports under ``TYPE_CHECKING`` count like others, and so does ``import_module("name")``.
    """
    tree = ast.parse(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    outer = [node for node in ast.walk(tree) if isinstance(node, functions)]
    inside = {inner for function in outer for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr):
            continue
        found: list[str] = []
        match node:
            case ast.Import(names=names):
                found = [name.name for name in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = package.split(".")[: package.count(".") + 2 - level] if level else []
                base = ".".join([*parents, *([module] if module else [])])
                # With the name: `from rebalance import gate` has the folder only there.
                found = [f"{base}.{name.name}" for name in names]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found = [name]
        yield from ((node.lineno, name, node in inside) for name in found)


def forbidden(source: str, package: str) -> list[str]:
    """``line: name`` for each import that the row of ``package``'s folder does not allow."""
    folder = package.split(".")[1]
    row = MAY_IMPORT[folder]
    found = []
    for line, name, lazy in sorted(imports(source, package)):
        top, *rest = name.split(".")
        if top == "rebalance":
            allowed = bool(rest) and rest[0] in {folder, *row.folders}
        else:
            allowed = top in sys.stdlib_module_names | row.installed or (lazy and top in row.lazily)
        if not allowed:
            found.append(f"{line}: {name}")
    return found


@pytest.mark.parametrize("folder", [folder for folder in MAY_IMPORT if (ROOT / folder).is_dir()])
def test_folder_imports_only_what_its_row_allows(folder: str) -> None:
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        relative = path.relative_to(ROOT)
        if wrong := forbidden(path.read_text(), ".".join(["rebalance", *relative.parent.parts])):
            found[str(relative)] = wrong
    assert found == {}


@pytest.mark.parametrize(
    ("package", "source", "found"),
    [
        ("rebalance.model", "import os.path, json\nfrom rebalance.model import values", []),
        ("rebalance.model", "from . import values\nfrom .values import Cluster", []),
        ("rebalance.model.assignors", "from ..values import Cluster\nfrom .. import wire", []),
        ("rebalance.model", "from rebalance.properties import clauses", ["1: rebalance.properties.clauses"]),
        ("rebalance.model", "from rebalance import gate", ["1: rebalance.gate"]),
        ("rebalance.model", "from .. import gate", ["1: rebalance.gate"]),
        ("rebalance.model", "from ..gate import cli", ["1: rebalance.gate.cli"]),
        ("rebalance.model", "def f():\n    import networkx", ["2: networkx"]),
        ("rebalance.model", "if TYPE_CHECKING:\n    import networkx", ["2: networkx"]),
        ("rebalance.model", "importlib.import_module('z3.z3')", ["1: z3.z3"]),
        ("rebalance.properties", "import hypothesis.strategies\nimport kafka", ["2: kafka"]),
        ("rebalance.properties", "import model", ["1: model"]),  # the folder's name is no import name
        ("rebalance.gate", "import tests.helpers", ["1: tests.helpers"]),
        ("rebalance.gate.adapters", "from rebalance.properties import clauses", []),
        ("rebalance.gate.adapters", "def load():\n    import kafka.errors", []),
        ("rebalance.gate.adapters", "if True:\n    import kafka", ["2: kafka"]),  # only in a function
        ("rebalance.gate", "import pytest\ndef f(g=lambda: __import__('z3')): ...", []),
    ],
)
def test_the_check_itself(package: str, source: str, found: list[str]) -> None:
    assert forbidden(source, package) == found


def test_required_packages_are_those_of_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {requirement.split(">")[0].split("[")[0] for requirement in project["dependencies"]}
    used = {name for row in MAY_IMPORT.values() for name in row.installed | row.lazily}
    assert {name.replace("z3-solver", "z3") for name in required} == used - OPTIONAL - BROUGHT


def entry_modules() -> list[str]:
    """The modules behind the command and the pytest plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = [*project["scripts"].values(), *project["entry-points"]["pytest11"].values()]
    return sorted({entry.partition(":")[0] for entry in entries})


@pytest.mark.parametrize("module", entry_modules())
def test_entry_point_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert HEAVY & set(done.stdout.split()) == set()
