"""All mutants in one copy of the model, of which one at a time is switched on.

So the tests of single steps are imported once, and a mutant costs no more than the tests that can tell it.
What is decided while a module is imported, or while a test makes its machine before any mutant is on, cannot
be switched: such a mutant passes, and is asked the same tests in a process of its own.
"""

from __future__ import annotations

import ast
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import CodeType, FrameType
from typing import Any

import pytest

from tools.mutation.loading import KEPT, keeping, replaced
from tools.mutation.mutants import MODULES, Mutant, mutants, sources
from tools.mutation.oracles import IN_ORDER, TESTS
from tools.mutation.testing import TestRun, forget, run_tests

SECONDS = 5
"""Of the processor, for one mutant: what takes longer does not end."""


class Switch:
    """Which mutant is on: its number, or None."""

    number: int | None = None

    def is_on(self, *numbers: int) -> bool:
        """Whether it is one of these."""
        return self.number in numbers


class Switched(ast.NodeTransformer):
    """Puts all mutants of a module into it: each takes the place of its node while ``SWITCH`` is on it."""

    def __init__(self, tree: ast.Module, some: Sequence[Mutant]) -> None:
        nodes = list(ast.walk(tree))
        self.at: dict[int, list[Mutant]] = {}
        for mutant in some:
            self.at.setdefault(id(nodes[mutant.node_index]), []).append(mutant)

    def visit(self, node: ast.AST) -> Any:
        here = self.at.get(id(node), [])
        self.generic_visit(node)
        if here and isinstance(node, ast.stmt):
            off = ast.UnaryOp(ast.Not(), self._on([mutant.number for mutant in here]))
            return ast.If(off, [node], [])
        if isinstance(node, ast.expr):
            for mutant in here:
                assert isinstance(mutant.new, ast.expr)
                node = ast.IfExp(self._on([mutant.number]), deepcopy(mutant.new), node)
        return node

    @staticmethod
    def _on(numbers: Sequence[int]) -> ast.expr:
        is_on = ast.Attribute(ast.Name("SWITCH", ast.Load()), "is_on", ast.Load())
        return ast.Call(is_on, [ast.Constant(number) for number in numbers], [])


def _code(module: str) -> CodeType:
    tree = ast.parse(sources()[module])
    some = [mutant for mutant in mutants() if mutant.module == module]
    tree = ast.fix_missing_locations(Switched(tree, some).visit(tree))
    return compile(tree, f"<{MODULES[module]}>", "exec")


class _OneByOne(TestRun):
    """A plugin of pytest that runs for each mutant the tests that can tell it, with that mutant on."""

    def __init__(
        self,
        todo: Sequence[Mutant],
        tests: Mapping[int, Sequence[str]],
        switch: Switch,
        report: Callable[[Mutant, str, float], None],
    ) -> None:
        super().__init__(None, None)
        self.todo, self.tests, self.switch, self.report = todo, tests, switch, report

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        signal.signal(signal.SIGVTALRM, _too_long)
        for mutant in self.todo:
            began = time.process_time()
            wanted = [items[test] for test in self.tests.get(mutant.number, ())]
            failed = next((item for item in wanted if self._fails(item, mutant.number)), None)
            if failed is not None and self._fails(failed, None):
                raise RuntimeError(f"{failed.nodeid} fails without a mutant after {mutant.key}")
            name = failed.nodeid.rpartition("::")[2].partition("[")[0] if failed is not None else ""
            self.report(mutant, name, time.process_time() - began)
        return True

    def _fails(self, item: pytest.Item, number: int | None) -> bool:
        forget()
        self.failed, self.switch.number = "", number
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.switch.number = None
        return bool(self.failed)


def _too_long(_: int, frame: FrameType | None) -> None:
    raise TimeoutError("the test does not end")


def told_by_tests(
    todo: Sequence[Mutant],
    tests: Mapping[int, Sequence[str]],
    report: Callable[[Mutant, str, float], None],
) -> None:
    """Report of each mutant the first test that fails while it is on, "" where none does, and the seconds.

    ``tests``: those that can tell it, by its number. Raises RuntimeError where a test fails without a mutant.
    """
    switch = Switch()
    known = {"SWITCH": switch, "KEPT": KEPT}
    with replaced({MODULES[name]: _code(name) for name in MODULES}, known) as fresh:
        keeping(fresh)
        run_tests([TESTS / f"{name}.py" for name in IN_ORDER], run=_OneByOne(todo, tests, switch, report))
