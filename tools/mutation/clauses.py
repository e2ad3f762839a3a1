"""Mutants of the clauses of a group, each asked the tests of every single clause."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from types import CodeType

import rebalance_verifier.properties.group as package

from tools.mutation.loading import applied, replaced
from tools.mutation.mutants import Mutant, mutants_of
from tools.mutation.testing import run_tests
from tools.mutation.trying import MutantVerdict

MODULES = ("checks", "clauses")
"""In the order in which they import each other."""

TESTS = Path(__file__).parents[2] / "tests" / "properties" / "group" / "test_group_clauses.py"


@cache
def _sources() -> dict[str, str]:
    folder = Path(package.__path__[0])
    return {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}


@cache
def clause_mutants() -> tuple[Mutant, ...]:
    """All mutants of the clauses."""
    found: list[Mutant] = []
    for module, source in _sources().items():
        found += mutants_of(module, source, len(found))
    return tuple(found)


def asked_clause(mutant: Mutant) -> MutantVerdict:
    """The first test of a clause that fails on a mutant. Only for a process that ends with it."""
    began = time.process_time()
    with replaced({f"{package.__name__}.{name}": _code(name, mutant) for name in MODULES}):
        failed = run_tests([TESTS]).failed
    verdict = MutantVerdict("test", failed, same=False) if failed else MutantVerdict("survived")
    return verdict._replace(seconds=time.process_time() - began)


def _code(name: str, mutant: Mutant) -> CodeType:
    source = _sources()[name]
    file = f"<properties/group/{name}.py>"
    return compile(applied(source, mutant) if mutant.module == name else source, file, "exec")
