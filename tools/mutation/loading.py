"""The modules of the model with one mutant in them, or with all beside the original."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any, TypeVar

from rebalance_verifier.model.machine import Action, Outcome, Value, fault

from tools.mutation.mutants import MODULES, Mutant, mutants, sources

T = TypeVar("T")


def applied(source: str, mutant: Mutant) -> ast.Module:
    """The tree of ``source`` with one node replaced."""
    tree = ast.parse(source)
    target = next(node for index, node in enumerate(ast.walk(tree)) if index == mutant.node_index)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return deepcopy(mutant.new) if node is target else self.generic_visit(node)

    Replace().visit(tree)
    return ast.fix_missing_locations(tree)


class Compared(ast.NodeTransformer):
    """Puts all mutants of a module beside the original: ``COMPARE`` gets both values wherever they differ.

    An expression is evaluated as it is; what a mutant makes of it is evaluated by the way. A statement that
    a mutant drops says that it runs.
    """

    def __init__(self, tree: ast.Module, some: Sequence[Mutant]) -> None:
        nodes = list(ast.walk(tree))
        self.at: dict[int, list[Mutant]] = {}
        for mutant in some:
            self.at.setdefault(id(nodes[mutant.node_index]), []).append(mutant)

    def visit(self, node: ast.AST) -> Any:
        here = self.at.get(id(node), [])
        self.generic_visit(node)
        if isinstance(node, ast.stmt):
            marks = [ast.parse(f"COMPARE(None, ({m.number}, None, True))").body[0] for m in here]
            return [*marks, node] if marks else node
        if not here or not isinstance(node, ast.expr):
            return node
        pairs = []
        for mutant in here:
            assert isinstance(mutant.new, ast.expr)
            nothing = ast.arguments([], [], kwonlyargs=[], kw_defaults=[], defaults=[])
            other = ast.Constant(None) if mutant.kind == "write dropped" else deepcopy(mutant.new)
            truth = ast.Constant(mutant.kind in ("always", "never", "negated"))
            parts = [ast.Constant(mutant.number), ast.Lambda(nothing, other), truth]
            pairs.append(ast.Tuple(parts, ast.Load()))
        return ast.Call(ast.Name("COMPARE", ast.Load()), [node, *pairs], [])


class Differing:
    """Collects the numbers of the mutants that make a difference somewhere."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, value: T, *others: tuple[int, Callable[[], Any] | None, bool]) -> T:
        for number, other, truth in others:
            if number not in self.numbers and (other is None or self.differs(value, other, truth)):
                self.numbers.add(number)
        return value

    @staticmethod
    def differs(value: object, other: Callable[[], Any], truth: bool) -> bool:
        try:
            new = other()
            if truth:
                return bool(new) is not bool(value)
            return type(new) is not type(value) or bool(new != value)
        except Exception:
            return True


class _Kept:
    """Stands for "this component keeps its old value" in what a step writes."""


KEPT = _Kept()


def _keeping(action: Action) -> Action:
    """``action`` whose steps may say ``KEPT``."""

    def resolved(*values: Value) -> Iterator[Outcome]:
        old = dict(zip(action.reads, values, strict=True))
        for outcome in action.run(*values):
            written = tuple(
                old[write] if value is KEPT else value
                for write, value in zip(action.writes, outcome.values, strict=True)
            )
            yield outcome._replace(values=written)

    return action._replace(run=resolved)


@cache
def _compiled(module: str, number: int | None, compared: bool) -> CodeType:
    source = sources()[module]
    tree = ast.parse(source) if number is None else applied(source, mutants()[number])
    if compared:
        some = [mutant for mutant in mutants() if mutant.module == module]
        tree = ast.fix_missing_locations(Compared(tree, some).visit(tree))
    return compile(tree, f"<{MODULES[module]}>", "exec")


@contextmanager
def replaced(code: Mapping[str, CodeType], known: Mapping[str, Any] = {}) -> Iterator[dict[str, ModuleType]]:
    """Make modules anew of ``code``, by their import names and in that order; yield them by their last names.
    The modules that were there come back afterwards.

    ``known`` are names that each of them knows.
    """
    before = {name: sys.modules.get(name) for name in code}
    fresh: dict[str, ModuleType] = {}
    try:
        for name in code:
            package, _, leaf = name.rpartition(".")
            module = fresh[leaf] = sys.modules[name] = ModuleType(name)
            setattr(import_module(package), leaf, module)
            module.__dict__.update(known)
            exec(code[name], module.__dict__)
        yield fresh
    finally:
        for name, old in before.items():
            if old is not None:
                package, _, leaf = name.rpartition(".")
                sys.modules[name] = old
                setattr(sys.modules[package], leaf, old)


@contextmanager
def loaded(
    mutant: Mutant | None = None, compare: Differing | None = None
) -> Iterator[Mapping[str, ModuleType]]:
    """The modules of the model, new, with one mutant in them.

    ``compare``, where given, is told which mutants make a difference to a value while the model runs.
    """
    wrong = {mutant.module: mutant.number} if mutant is not None else {}
    code = {MODULES[name]: _compiled(name, wrong.get(name), compare is not None) for name in MODULES}
    known = {"KEPT": KEPT, "COMPARE": compare}
    with replaced(code, known) as fresh:
        if mutant is not None and mutant.kind == "write dropped":
            keeping(fresh)  # a step may be wired in another module than its own
        yield fresh


def keeping(modules: Mapping[str, ModuleType]) -> None:
    """Steps that are wired in these modules from now on may say ``KEPT``."""
    for module in modules.values():
        for made in (Action, fault):
            if made.__name__ in vars(module):
                setattr(module, made.__name__, lambda *a, made=made, **k: _keeping(made(*a, **k)))
