"""The mutation score of the model: every guard and every update of ``model/protocol`` is wrong once.

``python -m benchmarks.mutation`` makes every mutant, explores it on a battery of small groups until a clause
falls, and writes benchmarks/mutation.md. ``--only TEXT`` takes the mutants whose key contains TEXT,
``--list`` shows the mutants, ``--jobs N`` runs N at once.

A mutant is one change of the syntax tree, in memory. What belongs to a named decision (``"..." in decisions``)
is left alone: switching it is a mutant already, with a test of its own. So are observations (``seen=``): they
are what the clauses look at, not what the model does.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import rebalance.model.protocol as package
from rebalance.explore import fast, plain
from rebalance.explore.liveness import counts, settles
from rebalance.explore.search import Limits, Stop
from rebalance.model.machine import Action, Machine, Outcome, Value
from rebalance.model.protocol import state
from rebalance.properties.protocol import CONVERGES, ROUNDS, WITNESSES, rules
from rebalance.properties.rules import Rules

MODULES = ("setup", "member", "coordinator", "leader", "environment", "atomic", "group")
"""In the order in which they import each other. ``state`` holds values and their renaming, it decides nothing."""

UNTOUCHED = {
    *("letter", "letters", "spell", "partition", "name", "id"),
    *("actions", "machine", "initial", "_components", "_initial", "_symmetries", "_orders", "_permutation"),
}
"""Functions that spell names, or tell the engine what there is; they decide nothing."""

ALWAYS_SO = ("isinstance(member, Member)", "isinstance(group, Group)")
"""Said for the type checker, of components that never hold anything else."""

WIRING = {"Action", "View", "Machine", "Labels", "Permutation", "partial", "chain", "at_a_cost", "Noted"}
"""Calls whose arguments name footprints and guards of the engine, or a witness."""

VALUES = {
    name: kind
    for name in ("Member", "Metadata", "Record", "Group", "Refused", "JoinOk", "Sync")
    if hasattr(kind := getattr(state, name), "_field_defaults")
}
"""What states are made of: a field given in place is dropped by giving its default."""


# -- making mutants ------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """One change: the node ``place`` (in the order of ``ast.walk``) of ``module`` becomes ``new``.

    ``key`` names it whatever line it is on; ``was`` and ``now`` are the source before and after.
    """

    number: int
    key: str
    module: str
    function: str
    line: int
    kind: str
    was: str
    now: str
    place: int
    new: ast.AST


class Change(NamedTuple):
    """A node and what becomes of it."""

    node: ast.AST
    kind: str
    what: str
    new: ast.AST


def is_switch(node: ast.AST, names: Mapping[str, bool] = {}) -> bool | None:  # noqa: B006
    """Whether ``node`` asks for a named decision: True if it holds where the decision is on, None if not."""
    match node:
        case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn() as op]):
            return isinstance(op, ast.In)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = is_switch(operand, names)
            return None if inner is None else not inner
        case ast.Call(func=ast.Attribute(attr="isdisjoint")):
            return False
        case ast.BoolOp(op=ast.And(), values=values):
            return True if any(is_switch(value, names) for value in values) else None
        case ast.BoolOp(op=ast.Or(), values=values):
            return False if any(is_switch(value, names) is False for value in values) else None
    return None


def mutants_of(module: str, source: str, first: int = 0) -> list[Mutant]:
    """All mutants of one module, numbered from ``first`` by line and kind."""
    tree = ast.parse(source)
    places = {id(node): place for place, node in enumerate(ast.walk(tree))}
    found: list[Mutant] = []
    keys: Counter[str] = Counter()
    for function, change in sorted(_changes(tree), key=lambda pair: _position(pair[1])):
        was = _text(change.node)
        now = "pass" if isinstance(change.new, ast.Pass) else _text(change.new)
        if was == now:
            continue
        key = f"{module}.{function} | {change.kind} | {change.what}"
        keys[key] += 1
        if keys[key] > 1:
            key += f" #{keys[key]}"
        number = first + len(found)
        line = getattr(change.node, "lineno", 0)
        place = places[id(change.node)]
        found.append(Mutant(number, key, module, function, line, change.kind, was, now, place, change.new))
    return found


def _position(change: Change) -> tuple[int, int, str, str]:
    node = change.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0), change.kind, change.what


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def applied(source: str, mutant: Mutant) -> ast.Module:
    """The tree of ``source`` with one node replaced."""
    tree = ast.parse(source)
    target = next(node for place, node in enumerate(ast.walk(tree)) if place == mutant.place)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return deepcopy(mutant.new) if node is target else self.generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(tree))


def _changes(tree: ast.Module) -> Iterator[tuple[str, Change]]:
    """Every change of a module with the function it is in; equal ones within a function once."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            if node.targets[0].__class__ is ast.Name and all(_is_enum(part) for part in node.value.elts):
                for change in _elements(node.value):
                    yield ast.unparse(node.targets[0]), change
    for name, function in _functions(tree.body, ""):
        if name.rpartition(".")[2] in UNTOUCHED:
            continue
        seen: set[tuple[int, str]] = set()
        for change in _Body(function).changes():
            where = (id(change.node), ast.dump(change.new))
            if where not in seen:
                seen.add(where)  # type: ignore[arg-type]
                yield name, change


def _is_enum(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{node.name}.")


class _Body:
    """Finds the changes of one function, nested ones included."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.switches: dict[str, bool] = {}
        args = function.args
        self.params = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        self.params |= {a.arg for a in (args.vararg, args.kwarg) if a is not None}
        self.bound = set(self.params)
        assigned = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.rebound = {name.id for name in assigned}

    def changes(self) -> Iterator[Change]:
        yield from self.block(self.function.body)

    def block(self, body: Sequence[ast.stmt]) -> Iterator[Change]:
        for statement in body:
            yield from self.statement(statement)

    def statement(self, node: ast.stmt) -> Iterator[Change]:
        match node:
            case ast.FunctionDef(body=body):
                yield from self.block(body)
            case ast.If(test=test, body=body, orelse=orelse):
                switch = is_switch(test, self.switches)
                if switch is True:  # the body is what the decision does
                    pass
                else:
                    if not self.pure_switch(test):
                        yield from self.test(test)
                    yield from self.block(body)
                yield from self.block(orelse)
            case ast.While(test=test, body=body):
                yield from self.test(test)
                yield from self.block(body)
            case ast.For(iter=over, body=body):
                yield from self.expression(over)
                self.bind(node.target)
                yield from self.block(body)
            case ast.Try(body=body, handlers=handlers):
                yield from self.block(body)
                for handler in handlers:
                    yield from self.block(handler.body)
            case ast.Match(cases=cases):
                for case in cases:
                    yield from self.block(case.body)
            case ast.Return(value=value) if value is not None:
                yield from self.expression(value)
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                yield from self.assignment(node)
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=value):
                if isinstance(value, ast.Yield | ast.YieldFrom):
                    yield self.dropped("step dropped", node)
                elif isinstance(value, ast.Call):
                    yield self.dropped("update dropped", node)
                yield from self.expression(value)

    def assignment(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[Change]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        switch = is_switch(node.value, self.switches) if node.value is not None else None
        if switch is not None and node.value is not None:
            # What a name stands for when its decision is off follows from this one comparison.
            if self.pure_switch(node.value):
                self.switches.update({name.id: switch for name in names})
        elif names and all(name.id in self.bound for name in names) and node.value is not None:
            yield self.dropped("update dropped", node)
        if node.value is not None:
            yield from self.expression(node.value)
        for target in targets:
            self.bind(target)

    def bind(self, target: ast.AST) -> None:
        self.bound |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}

    @staticmethod
    def dropped(kind: str, node: ast.stmt) -> Change:
        return Change(node, kind, _text(node), ast.Pass())

    def pure_switch(self, node: ast.AST) -> bool:
        """Whether nothing but decisions is asked."""
        if isinstance(node, ast.BoolOp):
            return all(self.pure_switch(value) for value in node.values)
        return is_switch(node, self.switches) is not None

    def test(self, node: ast.expr) -> Iterator[Change]:
        """A condition: negated, dropped either way, and what is in it."""
        if is_switch(node, self.switches) is True or self.pure_switch(node):
            return
        text = _text(node)
        negated = _opposite(node) or ast.UnaryOp(ast.Not(), node)
        yield Change(node, "negated", text, negated)
        yield Change(node, "always", text, ast.Constant(True))
        yield Change(node, "never", text, ast.Constant(False))
        yield from self.expression(node)

    def expression(self, node: ast.AST) -> Iterator[Change]:
        if is_switch(node, self.switches) is not None and self.pure_switch(node):
            return
        match node:
            case ast.BoolOp(op=op, values=values):
                for k, value in enumerate(values):
                    if is_switch(value, self.switches) is None and _text(value) not in ALWAYS_SO:
                        rest = values[:k] + values[k + 1 :]
                        new = rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
                        yield Change(node, "operand dropped", _text(value), new)
            case ast.Compare():
                opposite = _opposite(node)
                if opposite is not None:
                    yield Change(node, "negated", _text(node), opposite)
                if isinstance(node.ops[0], ast.In | ast.NotIn) and isinstance(node.comparators[0], ast.Tuple):
                    yield from _elements(node.comparators[0])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield Change(node, "negated", _text(node), operand)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.Add() | ast.Sub() as op, left=left, right=right):
                if not self.is_type(node):
                    yield Change(node, "operand dropped", _text(right), left)
                    if not isinstance(op, ast.Sub):
                        yield Change(node, "operand dropped", _text(left), right)
            case ast.IfExp(test=test):
                if is_switch(test, self.switches) is None or not self.pure_switch(test):
                    yield from self.test(test)
            case ast.comprehension(ifs=ifs):
                for condition in ifs:
                    yield from self.test(condition)
                yield from self.expression(node.iter)
                return
            case ast.Call():
                yield from self.call(node)
                if _name(node.func) == "isinstance":
                    return
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.IfExp) and child is node.test:
                continue
            if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
                yield from self.expression(child)

    @staticmethod
    def is_type(node: ast.BinOp) -> bool:
        sides = (node.left, node.right)
        return any(isinstance(side, ast.Name) and side.id[:1].isupper() for side in sides)

    def call(self, node: ast.Call) -> Iterator[Change]:
        name = _name(node.func)
        if name in WIRING:
            return
        for k, keyword in enumerate(node.keywords):
            if keyword.arg in (None, "seen", "key", "default", "strict", "kind"):
                continue
            if name not in VALUES and name not in ("_replace", *OBSERVED):
                continue
            rest = node.keywords[:k] + node.keywords[k + 1 :]
            what = f"{name}({_text(keyword)})"
            yield Change(node, "field dropped", what, ast.Call(node.func, node.args, rest))
        kind = VALUES.get(name)
        if kind is not None and not any(isinstance(arg, ast.Starred) for arg in node.args):
            fields = kind._fields
            for k, arg in enumerate(node.args):
                if fields[k] in kind._field_defaults:
                    later = [ast.keyword(f, a) for f, a in zip(fields[k + 1 :], node.args[k + 1 :])]  # noqa: B905
                    new = ast.Call(node.func, node.args[:k], [*later, *node.keywords])
                    yield Change(node, "field dropped", f"{name}({fields[k]}={_text(arg)})", new)
        if name == "Outcome" and node.args and isinstance(node.args[0], ast.Tuple):
            yield from self.written(node, node.args[0])

    def written(self, node: ast.Call, values: ast.Tuple) -> Iterator[Change]:
        """Each component that a step writes keeps its old value once."""
        for k, value in enumerate(values.elts):
            inner = value.value if isinstance(value, ast.Starred) else value
            unchanged = isinstance(inner, ast.Name) and inner.id in self.params - self.rebound
            if unchanged:
                continue
            kept: ast.expr = ast.Name("KEPT", ast.Load())
            if isinstance(value, ast.Starred):
                several = ast.Call(ast.Name("list", ast.Load()), [inner], [])
                length = ast.Call(ast.Name("len", ast.Load()), [several], [])
                tuple_ = ast.Tuple([kept], ast.Load())
                kept = ast.Starred(ast.BinOp(tuple_, ast.Mult(), length), ast.Load())
            new = ast.Tuple([*values.elts[:k], kept, *values.elts[k + 1 :]], ast.Load())
            yield Change(values, "write dropped", f"{_text(value)} of {_text(values)}", new)


OBSERVED = ("Callback", "Answered")
"""Observations with fields that say what is the case, given by keyword."""


def _opposite(node: ast.expr) -> ast.expr | None:
    opposites: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
        ast.NotIn: ast.In, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    }  # fmt: skip
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    return ast.Compare(node.left, [opposites[type(node.ops[0])]()], node.comparators)


def _elements(node: ast.Tuple) -> Iterator[Change]:
    for k, element in enumerate(node.elts):
        if _is_enum(element):
            rest = ast.Tuple(node.elts[:k] + node.elts[k + 1 :], ast.Load())
            yield Change(node, "element dropped", f"{_text(element)} of {_text(node)}", rest)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def sources() -> Mapping[str, str]:
    """The source of each module."""
    folder = Path(package.__path__[0])
    return {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}


@cache
def mutants() -> tuple[Mutant, ...]:
    """All mutants of the model."""
    found: list[Mutant] = []
    for module, source in sources().items():
        found += mutants_of(module, source, len(found))
    return tuple(found)


# -- the battery ---------------------------------------------------------------------------------------


ALL = (
    "crash", "pause", "hang", "close", "unsubscribe", "max poll", "resubscribe", "enforce", "disconnect",
    "slow network", "late request", "slow commit", "listener throws", "session timeout", "slow member",
    "failover", "group expires", "topic grows", "topic shrinks", "topic deleted",
)  # fmt: skip
COOPERATIVE, RANGE, STICKY = ("cooperative-sticky",), ("range",), ("sticky",)
BOTH = ("range", "cooperative-sticky")


@dataclass(frozen=True)
class Case:
    """One small group. ``build`` gets the module ``setup`` of the (mutated) model and makes the setup.

    ``asks``: "safety" (every state and step, witnesses, actions), "settling" (liveness, on the whole
    graph), or the clause that a bug which is switched on has to break.
    """

    name: str
    build: Callable[[Any], Any]
    asks: str = "safety"


def group(
    names: Any,
    lists: Sequence[Sequence[str]],
    partitions: int | Sequence[int] = 1,
    *,
    faults: Sequence[str] = (),
    budget: int = 0,
    then: Sequence[Sequence[str]] = (),
    subscriptions: Sequence[Sequence[int]] = (),
    instances: Sequence[int | None] = (),
    racks: Sequence[str | None] = (),
    exist: int | None = None,
    on: Sequence[str] = (),
    switches: Sequence[str] = (),
    version: int = 3,
    tells: bool = True,
    broker: Sequence[str] = (),
    **more: Any,
) -> Any:
    """A setup: consumer ``i`` has the assignors ``lists[i]``, and after a bounce those of ``then``.

    ``partitions``: how many each topic can have. ``on``: decisions of every client.
    """
    sizes = [partitions] if isinstance(partitions, int) else partitions
    topics, first = [], 0
    for size in sizes:
        topics.append(((1 << size) - 1) << first)
        first += size
    consumers = tuple(
        names.Consumer(
            tuple(
                names.Runs(tuple(assignors), frozenset(on), tuple(switches), version, tells)
                for assignors in (listed, *then)
            ),
            tuple(subscriptions[i] if subscriptions else [(1 << len(sizes)) - 1]),
            instances[i] if instances else None,
            racks[i] if racks else None,
        )
        for i, listed in enumerate(lists)
    )
    there = (1 << first) - 1 if exist is None else exist
    return names.Setup(
        consumers, tuple(topics), there, tuple(faults), budget, frozenset(broker), **more
    )  # fmt: skip


def case(name: str, *args: Any, asks: str = "safety", **more: Any) -> Case:
    """A case by the arguments of ``group``."""
    return Case(name, lambda names: group(names, *args, **more), asks)


BATTERY: tuple[Case, ...] = (
    case("1 x 1, every fault, budget 2", [COOPERATIVE], 1, faults=ALL, budget=2),
    case("2 x 1, every fault", [COOPERATIVE] * 2, 1, faults=ALL, budget=1),
    case("2 x 2, one to come, every fault", [COOPERATIVE] * 2, 2, faults=ALL, budget=1, exist=1),
    case("2 x 2, every fault", [COOPERATIVE] * 2, 2, faults=ALL, budget=1),
    case("3 x 3", [COOPERATIVE] * 3, 3),
    case("two static members, every fault", [COOPERATIVE] * 2, 2, faults=ALL, budget=1, instances=(1, 2)),
    case("one instance id twice", [COOPERATIVE] * 2, 1, faults=ALL, budget=1, instances=(1, 1)),
    case("range, every fault", [RANGE] * 2, 2, faults=ALL, budget=1),
    case("sticky, every fault", [STICKY] * 2, 2, faults=ALL, budget=1),
    case("two topics, resubscription", [COOPERATIVE] * 2, (1, 1), faults=("resubscribe", "topic deleted"),
         budget=2, subscriptions=[(3, 1), (3, 2)]),
    case("mixed lists", [BOTH, COOPERATIVE], 2, faults=ALL, budget=1),
    case("mixed lists that exclude each other", [BOTH, RANGE, COOPERATIVE], 1),
    case("rolling upgrade", [RANGE] * 2, 2, then=[BOTH, COOPERATIVE], faults=("crash", "session timeout"),
         budget=1),
    case("limit of one", [COOPERATIVE] * 2, 1, faults=ALL, budget=1, max_size=1),
    case("limit of two", [COOPERATIVE] * 3, 1, faults=("crash",), budget=1, max_size=2),
    case("fine steps", [COOPERATIVE] * 2, 1, faults=("crash", "disconnect"), budget=1, steps="fine"),
    case("2 x 2, budget 2", [COOPERATIVE] * 2, 2, faults=("crash", "session timeout", "late request"),
         budget=2),
    case("settles: 1 x 1", [COOPERATIVE], 1, faults=tuple(f for f in ALL if f != "hang"), budget=1,
         asks="settling"),
    case("settles: 2 x 2", [COOPERATIVE] * 2, 2, asks="settling"),
    case("settles: range", [RANGE] * 2, 2, asks="settling"),
)  # fmt: skip
