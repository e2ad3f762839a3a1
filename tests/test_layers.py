"""The rules of the house (ARCHITECTURE.md), each on the source as it stands: who imports whom, how large."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

from tests.trees import TOKENS, statements, tree

ROOT = Path(__file__).parents[1]
TOP = "rebalance_verifier"


class Row(NamedTuple):
    """What a folder may import besides itself and the standard library."""

    folders: set[str]
    installed: set[str]
    """Installed packages, anywhere in a module."""
    lazily: set[str]
    """Installed packages, inside a function only."""


CLIENTS = {"kafka", "aiokafka", "confluent_kafka"}
SPARK = {"pyspark", "pyarrow", "duckdb"}
OPTIONAL = CLIENTS | SPARK | {"jsonschema"}
"""Not among the required packages: whoever imports them has to live without."""

FLOORS = (
    *("base", "model", "properties", "explore", "specs", "live", "gate", "pipeline", "traces", "report"),
    *("api", "cli"),
)
"""The folders from the ground up; each imports those before it, as far as it has need of them."""

PASSES_OVER = {"specs": {"explore"}, "live": {"specs"}}
"""Folders that a floor has no need of."""

INSTALLED = {
    "properties": {"hypothesis", "networkx"},
    "explore": {"networkx", "numpy", "hypothesis"},
    "specs": {"z3"},
    "gate": {"hypothesis"},
    "pipeline": {"pyspark", "numpy", "pyarrow", "duckdb"},
    "api": {"hypothesis"},
    "cli": {"pytest"},
}
LAZILY = {
    "live": CLIENTS | {"hypothesis"},
    "gate": OPTIONAL,
    "report": {"z3"},
    "cli": {"hypothesis", "networkx", "z3"} | OPTIONAL,
}
MAY_IMPORT = {
    folder: Row(
        set(FLOORS[:number]) - PASSES_OVER.get(folder, set()),
        INSTALLED.get(folder, set()),
        LAZILY.get(folder, set()),
    )
    for number, folder in enumerate(FLOORS)
}

PROTOCOLS = ("model.protocols", "specs.protocols")
"""The tables of the three protocols: they come after the packages of the protocols that stand beside them."""

ORDER = {
    "base": ("base", "base.confine", "base.processes"),
    "model": (
        *("model", "model.assignors", "model.bugs", "model.group", "model.classic", "model.consumer"),
        *("model.migration", "model.protocols"),
    ),
    "properties": ("properties", "properties.assignors", "properties.group"),
    "explore": ("explore", "explore.engine", "explore.liveness", "explore.random", "explore.groups"),
    "specs": (
        *("specs.logic", "specs.classic", "specs.classic.refinement", "specs.classic.necessity"),
        *("specs.consumer", "specs.migration", "specs.protocols", "specs"),
    ),
    "live": (
        *("live", "live.artifacts", "live.code", "live.clients", "live.clients.clusters"),
        *("live.conformance.clients", "live.clients.consumers.clients", "live.clients.consumers"),
        *("live.clients.proxy", "live.clients.leaders.clients", "live.clients.leaders"),
        *("live.clients.record", "live.clients.replay", "live.code.replay"),
        *("live.code.search", "live.code.lockstep", "live.conformance", "live.conformance.wire"),
    ),
    "gate": (
        *("gate", "gate.targets.hosts.java", "gate.targets.hosts", "gate.targets", "gate.scenarios"),
        *("gate.search.causes", "gate.search", "gate.compare"),
    ),
    "pipeline": (
        *("pipeline", "pipeline.campaign", "pipeline.exploration", "pipeline.audit.sources"),
        *("pipeline.audit.kernel", "pipeline.audit"),
    ),
    "traces": ("traces",),
    "report": ("report", "report.diagram", "report.terminal", "report.html", "report.ci"),
    "api": ("api",),
    "cli": ("cli.console", "cli.shared", "cli.init", "cli.commands", "cli"),
}
"""The packages of each folder, each importing only those before it."""

DEBT: dict[str, set[str]] = {}
"""Package -> packages that it imports although they come later; to be paid back, not added to."""

CIRCLES: list[set[str]] = []
"""Modules that import each other in a circle; to be paid back."""

# What the two entry points must not load: they run in every user's shell and test run.
HEAVY = {"hypothesis", "networkx", "z3", "pandas", "numpy"} | OPTIONAL


@cache
def nodes(source: str) -> tuple[tuple[ast.AST, bool], ...]:
    """Every node of a module, and whether it is in a function. Its statements cost a tenth."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    found: list[tuple[ast.AST, bool]] = []
    left: list[tuple[ast.AST, bool]] = [(tree(source), False)]
    while left:
        node, inside = left.pop()
        found.append((node, inside))
        inside = inside or isinstance(node, functions)
        left.extend((child, inside) for child in ast.iter_child_nodes(node))
    return tuple(found)


@cache
def imports(source: str, package: str) -> tuple[tuple[int, str, bool], ...]:
    """Everything that ``source``, a module in ``package``, imports: line, absolute name, if in a function.

    Imports under ``TYPE_CHECKING`` count like others, and so does ``import_module("name")``.
    """
    every: list[tuple[int, str, bool]] = []
    calls = "import_module" in source or "__import__" in source
    for node, inside in nodes(source) if calls else statements(source):
        found: list[str] = []
        match node:
            case ast.Import(names=names):
                found = [name.name for name in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = package.split(".")[: package.count(".") + 2 - level] if level else []
                base = ".".join([*parents, *([module] if module else [])])
                # With the name: `from rebalance_verifier import gate` has the folder only there.
                found = [f"{base}.{name.name}" for name in names]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                found = [name]
        every += ((getattr(node, "lineno", 0), name, inside) for name in found)
    return tuple(every)


def forbidden(source: str, package: str) -> list[str]:
    """``line: name`` for each import that the row of ``package``'s folder does not allow."""
    folder = package.split(".")[1]
    row = MAY_IMPORT[folder]
    found = []
    for line, name, lazy in sorted(imports(source, package)):
        top, *rest = name.split(".")
        if top == TOP:
            allowed = bool(rest) and rest[0] in {folder, *row.folders}
        else:
            allowed = top in sys.stdlib_module_names | row.installed or (lazy and top in row.lazily)
        if not allowed:
            found.append(f"{line}: {name}")
    return found


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the product by its name below ``rebalance``."""
    found = {}
    for folder in MAY_IMPORT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package_of(module: str, path: Path) -> str:
    """The package that a module lies in; a package, and a table of protocols, for itself."""
    return module if path.name == "__init__.py" or module in PROTOCOLS else module.rpartition(".")[0]


@cache
def edges() -> tuple[tuple[str, str], ...]:
    """Who imports whom among our modules, at whatever place in the module."""
    known = modules()
    found = set()
    for module, path in known.items():
        for _, name, _ in imports(path.read_text(), f"{TOP}.{package_of(module, path)}"):
            inner = name.removeprefix(f"{TOP}.")
            target = inner if inner in known else inner.rpartition(".")[0]
            if name.startswith(f"{TOP}.") and target in known and target != module:
                found.add((module, target))
    return tuple(sorted(found))


def upwards(order: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[str, set[str]]:
    """Of the imports between packages those that go to a later one."""
    found: dict[str, set[str]] = {}
    for importer, imported in pairs:
        if order.index(importer) < order.index(imported):
            found.setdefault(importer, set()).add(imported)
    return found


def circles(pairs: Sequence[tuple[str, str]]) -> list[set[str]]:
    """Modules that reach each other by imports."""
    components = nx.strongly_connected_components(nx.DiGraph(pairs))
    return sorted((one for one in components if len(one) > 1), key=sorted)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folder_imports_only_what_its_row_allows(folder: str) -> None:
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        relative = path.relative_to(ROOT)
        if wrong := forbidden(path.read_text(), ".".join([TOP, *relative.parent.parts])):
            found[str(relative)] = wrong
    assert found == {}


@pytest.mark.parametrize("folder", ORDER)
def test_packages_of_a_folder_import_those_before_them(folder: str) -> None:
    known = modules()
    there = {package_of(module, path) for module, path in known.items()}
    packages = [one for one in there if one.split(".")[0] == folder]
    assert sorted(packages) == sorted(set(ORDER[folder]) & set(packages)), (
        "a package that ORDER does not know"
    )
    named = {module: package_of(module, path) for module, path in known.items()}
    inside = [(named[a], named[b]) for a, b in edges() if a.split(".")[0] == b.split(".")[0] == folder]
    debt = {package: names for package, names in DEBT.items() if package.split(".")[0] == folder}
    assert upwards(ORDER[folder], inside) == debt


def test_no_import_goes_round_in_a_circle() -> None:
    assert circles(edges()) == CIRCLES


def records(source: str) -> Iterator[tuple[str, int, bool]]:
    """The dataclasses of a module: name, number of fields, if keyword-only."""
    for node, _ in statements(source):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if "dataclass" not in ast.unparse(called):
                continue
            given = {k.arg for k in decorator.keywords} if isinstance(decorator, ast.Call) else set()
            fields = [
                s for s in node.body if isinstance(s, ast.AnnAssign) and "ClassVar" not in ast.unparse(s)
            ]
            yield node.name, len(fields), "kw_only" in given


def test_records_with_more_than_four_fields_are_keyword_only() -> None:
    loose = [
        f"{module}.{name}"
        for module, path in modules().items()
        for name, fields, keyword_only in records(path.read_text())
        if fields > 4 and not keyword_only
    ]
    assert loose == []


BANNED = {
    *("modern", "MODERN", "migrates", "either"),
    *("told", "tell", "said", "say", "place", "asked", "words", "way"),
    *("Stage", "Seat", "Picture", "Look", "Sign", "Told", "Rest", "Mood", "Game", "Play", "Desk", "Crew"),
    *("Still", "Fall", "Hollow", "Runs", "Me", "Plug"),
}
"""Words that have meant many things here, and classes that have a better name now."""


def identifiers(source: str) -> set[str]:
    """The names that a module gives to anything: variables, parameters, fields, functions, classes."""
    found = set()
    for node in ast.walk(tree(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                found.add(name)
            case (
                ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                found.add(name)
    return found


def test_banned_words_are_no_names() -> None:
    paths = [*modules().values(), *(ROOT / "tools").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    mentioned = re.compile(rf"\b_*({'|'.join(BANNED)})_*\b")
    texts = {str(path): path.read_text() for path in paths}
    suspects = {path: text for path, text in texts.items() if mentioned.search(TOKENS.sub("''", text))}
    found = {
        path: {name.strip("_") for name in identifiers(text)} & BANNED for path, text in suspects.items()
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_one_class_name_means_one_thing() -> None:
    where: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node, inside in statements(path.read_text()):
            if isinstance(node, ast.ClassDef) and not inside:
                where.setdefault(node.name, []).append(module)
    assert {name: found for name, found in where.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("package", "source", "found"),
    [
        ("rebalance_verifier.model", "import os.path, json\nfrom rebalance_verifier.model import values", []),
        ("rebalance_verifier.model", "from . import values\nfrom .values import Cluster", []),
        ("rebalance_verifier.model.assignors", "from ..values import Cluster\nfrom .. import wire", []),
        (
            "rebalance_verifier.model",
            "from rebalance_verifier.properties import scope",
            ["1: rebalance_verifier.properties.scope"],
        ),
        ("rebalance_verifier.model", "from rebalance_verifier import gate", ["1: rebalance_verifier.gate"]),
        ("rebalance_verifier.model", "from .. import gate", ["1: rebalance_verifier.gate"]),
        ("rebalance_verifier.model", "from ..gate import main", ["1: rebalance_verifier.gate.main"]),
        ("rebalance_verifier.model", "def f():\n    import networkx", ["2: networkx"]),
        ("rebalance_verifier.model", "if TYPE_CHECKING:\n    import networkx", ["2: networkx"]),
        ("rebalance_verifier.model", "importlib.import_module('z3.z3')", ["1: z3.z3"]),
        ("rebalance_verifier.properties", "import hypothesis.strategies\nimport kafka", ["2: kafka"]),
        (
            "rebalance_verifier.properties",
            "import model",
            ["1: model"],
        ),
        (
            "rebalance_verifier.live.conformance",
            "from rebalance_verifier.specs import logic",
            ["1: rebalance_verifier.specs.logic"],
        ),
        ("rebalance_verifier.gate", "import tests.helpers", ["1: tests.helpers"]),
        ("rebalance_verifier.gate.targets", "from rebalance_verifier.properties import scope", []),
        ("rebalance_verifier.gate.targets", "def load():\n    import kafka.errors", []),
        ("rebalance_verifier.gate.targets", "if True:\n    import kafka", ["2: kafka"]),
        ("rebalance_verifier.cli", "import pytest\ndef f(g=lambda: __import__('z3')): ...", []),
    ],
)
def test_the_check_of_imports_itself(package: str, source: str, found: list[str]) -> None:
    assert forbidden(source, package) == found


def test_the_other_checks_themselves() -> None:
    assert upwards("abc", [("b", "a"), ("a", "c"), ("c", "c")]) == {"a": {"c"}}
    assert circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]) == [{"a", "b", "c"}]
    five = "".join(f"    {name}: int\n" for name in "abcde")
    for decorator, keyword_only in (("", False), ("(frozen=True)", False), ("(kw_only=True)", True)):
        source = f"@dataclass{decorator}\nclass One:\n{five}    known: ClassVar[int] = 1\n"
        assert list(records(source)) == [("One", 5, keyword_only)]
    given = "def tell(said, *, place=1): way: int = 2\nself.words = asked = [say for say in told]"
    assert identifiers(given) & BANNED == {"tell", "said", "place", "way", "words", "asked", "say"}


def test_required_packages_are_those_of_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {requirement.split(">")[0].split("[")[0] for requirement in project["dependencies"]}
    used = {name for row in MAY_IMPORT.values() for name in row.installed | row.lazily}
    assert {name.replace("z3-solver", "z3") for name in required} == used - OPTIONAL


def entry_modules() -> list[str]:
    """The modules behind the command and the pytest plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = [*project["scripts"].values(), *project["entry-points"]["pytest11"].values()]
    return sorted({entry.partition(":")[0] for entry in entries})


SLOW = {"asyncio", "email", "http", "importlib.metadata", "ssl", "urllib.request", "xml"}
"""Of the standard library: each takes as long to load as the whole command."""

ENTRIES = {
    **{module: f"import {module}" for module in entry_modules()},
    TOP: f"import {TOP}; dir({TOP})",
    "the help": f"from {TOP}.cli.main import build_parser; build_parser().format_help()",
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_point_imports_nothing_heavy(entry: str) -> None:
    code = f"{ENTRIES[entry]}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert HEAVY & {name.partition(".")[0] for name in loaded} == set()
    if not entry.endswith("pytest_plugin"):  # pytest has loaded them
        assert SLOW & set(loaded) == set()
