"""The mutation score of the model: every guard and every update of ``model/protocol`` is wrong once.

``python -m benchmarks.mutation`` makes every mutant, explores it on a battery of small groups until a clause
falls, and writes benchmarks/mutation.md. ``--only TEXT`` takes the mutants whose key contains TEXT,
``--list`` shows the mutants, ``--jobs N`` runs N at once.

A mutant is one change of the syntax tree, in memory. What a named decision does (``"..." in decisions``)
is left alone: switching it is a mutant already, with a test of its own. So are the observations of a step
(``seen=``): they are what the clauses look at, not what the model does.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import random
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
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TextIO, TypeVar

import rebalance.model.protocol as package
from rebalance.explore import fast
from rebalance.explore.liveness import counts, settles
from rebalance.explore.search import Limits, Stop
from rebalance.model.machine import Action, Machine, Outcome, Value
from rebalance.model.protocol import state
from rebalance.model.protocol.group import FAULTS as ALL
from rebalance.properties.protocol import CONVERGES, ROUNDS, WITNESSES, rules
from rebalance.properties.rules import Bounded, Rules

T = TypeVar("T")

MODULES = ("setup", "member", "coordinator", "leader", "environment", "atomic", "group")
"""In the order in which they import each other. ``state`` holds values and renames them, decides nothing."""

UNTOUCHED = {
    *("letter", "letters", "spell", "partition", "name", "id"),
    *("actions", "machine", "initial", "_components", "_initial", "_symmetries", "_orders", "_permutation"),
    *("_witnesses", "_claims"),
}
"""Functions that spell names, tell the engine what there is, or only observe; they decide nothing."""

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


def is_switch(node: ast.AST, names: Mapping[str, bool]) -> bool | None:
    """Whether ``node`` asks for a named decision: True if it holds where that is on, None if it does not ask.

    ``names`` are local names that stand for such a question.
    """
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


class _Compared(ast.NodeTransformer):
    """Puts all mutants of a module beside the original: ``COMPARE`` gets both values wherever they differ.

    An expression is evaluated as it is; what a mutant makes of it is evaluated by the way. A statement that
    a mutant drops says that it runs.
    """

    def __init__(self, tree: ast.Module, some: Sequence[Mutant]) -> None:
        nodes = list(ast.walk(tree))
        self.at: dict[int, list[Mutant]] = {}
        for mutant in some:
            self.at.setdefault(id(nodes[mutant.place]), []).append(mutant)

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


class _Differing:
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

    Replace().visit(tree)
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[tuple[str, Change]]:
    """Every change of a module with the function it is in; equal ones within a function once."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple() as value):
                for change in _elements(value):
                    yield name, change
    for name, function in _functions(tree.body, ""):
        if name.rpartition(".")[2] in UNTOUCHED:
            continue
        seen: set[tuple[int, str]] = set()
        for change in _Body(function).changes():
            where = id(change.node), ast.dump(change.new)
            if where not in seen:
                seen.add(where)
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
                    never: list[ast.stmt] = [node]  # stays a generator
                    yield Change(node, "step dropped", _text(node), ast.If(ast.Constant(False), never, []))
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
            case ast.BinOp(
                op=ast.BitAnd() | ast.BitOr() | ast.Add() | ast.Sub() as op, left=left, right=right
            ):
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


COOPERATIVE, RANGE, STICKY = ("cooperative-sticky",), ("range",), ("sticky",)
BOTH = ("range", "cooperative-sticky")


@dataclass(frozen=True)
class Case:
    """One small group: ``build`` makes its setup from the module ``setup`` of the (mutated) model.

    ``finds``: the clause that a mistake which is switched on in it has to break; "" where none is.
    """

    name: str
    build: Callable[[Any], Any]
    finds: str = ""


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


def case(name: str, *args: Any, finds: str = "", **more: Any) -> Case:
    """A case by the arguments of ``group``."""
    return Case(name, lambda names: group(names, *args, **more), finds)


def bug(decision: str, finds: str, base: str, *, broker: bool = False) -> Case:
    """The group ``base`` with one mistake switched on."""
    lists, partitions, more = BASES[base]
    where = {"broker" if broker else "on": (decision,)}
    return case(f"{decision}, {base}", lists, partitions, finds=finds, **more, **where)


ALONE, TWO = (COOPERATIVE,), (COOPERATIVE, COOPERATIVE)
BASES: dict[str, tuple[Sequence[Sequence[str]], int | Sequence[int], dict[str, Any]]] = {
    "1 x 1": (ALONE, 1, {"faults": ALL, "budget": 2}),
    "2 x 1": (TWO, 1, {"faults": ALL, "budget": 1}),
    "range": ((RANGE, RANGE), 2, {"faults": ALL, "budget": 1}),
    "static": (TWO, 1, {"faults": ALL, "budget": 1, "instances": (1, 2)}),
    "limit of one": (TWO, 1, {"faults": ALL, "budget": 1, "max_size": 1}),
    "one member": (ALONE, 1, {"faults": ALL, "budget": 1}),
    "one static member": (ALONE, 1, {"faults": ALL, "budget": 1, "instances": (1,)}),
    "slow commits": (TWO, 1, {"faults": ("crash", "slow commit", "hang"), "budget": 1}),
    "subscriptions": (
        *(TWO, (1, 1)),
        {
            "faults": ("resubscribe", "crash"),
            "budget": 1,
            "subscriptions": ((3, 1), (3, 2)),
            "instances": (1, 2),
        },
    ),
    "two topics": (TWO, (1, 1), {"faults": ("resubscribe",), "budget": 1, "subscriptions": ((3, 1), (3, 2))}),
}

CLEAN = (
    case("1 x 1, every fault, budget 2", ALONE, 1, faults=ALL, budget=2),
    case("2 x 2, one to come, every fault", TWO, 2, faults=ALL, budget=1, exist=1),
    case("3 x 2", [COOPERATIVE] * 3, 2),
    case("static members, every fault", TWO, 1, faults=ALL, budget=1, instances=(1, 2)),
    case("static members, 2 x 2", TWO, 2, faults=("crash", "session timeout", "failover"), budget=1,
         instances=(1, 2)),
    case("range, every fault", (RANGE, RANGE), 1, faults=ALL, budget=1),
    case("sticky", (STICKY, STICKY), 2, faults=("crash", "topic shrinks", "slow network", "unsubscribe"),
         budget=1),
    case("two topics, resubscription", TWO, (1, 1), faults=("resubscribe", "topic grows"), budget=1, exist=1,
         subscriptions=((3, 1), (3, 2))),
    case("one topic each, resubscription", TWO, (1, 1), faults=("resubscribe", "topic deleted", "crash"),
         budget=1, subscriptions=((3, 1), (3, 2)), instances=(1, None)),
    case("mixed lists", (BOTH, COOPERATIVE), 1, faults=("crash", "failover", "close"), budget=1),
    case("a static member comes and goes", ALONE, 1, faults=("slow network", "close", "unsubscribe", "crash"),
         budget=2, instances=(1,)),
    case("lists that exclude each other", (BOTH, RANGE, COOPERATIVE), 1),
    case("first bounce", (RANGE, RANGE), 1, then=(BOTH,)),
    case("second bounce", (BOTH, BOTH), 1, then=(COOPERATIVE,)),
    case("double bounce", (RANGE, RANGE), 1, then=(BOTH, COOPERATIVE)),
    case("limit of one", TWO, 1, faults=ALL, budget=1, max_size=1),
    case("limit of two", [COOPERATIVE] * 3, 1, max_size=2),
    case("fine steps", TWO, 1, faults=("crash",), budget=1, steps="fine"),
)  # fmt: skip
"""Groups in which every clause holds but those that the model itself breaks, which are not asked there."""

BUGS = (
    bug("claims_always_empty", "group/owner", "two topics"),
    bug("claims_always_empty", "group/commit", "two topics"),
    bug("keep_owned_on_sync_rip", "leader/label", "two topics"),
    bug("unsorted_metadata", "coordinator/repeat", "2 x 1"),
    bug("clear_member_id_on_illegal_generation", "error/id", "static"),
    bug("reset_on_retriable", "error/retriable", "1 x 1"),
    bug("reset_on_sync_rip", "error/retriable", "two topics"),
    bug("no_sent_generation_check", "error/old", "1 x 1"),
    bug("commit_error_no_rejoin", "error/membership", "1 x 1"),
    bug("no_rejoin_after_revoke", "callback/rejoin", "two topics"),
    bug("protocol_flag_inconsistent", "callback/revoked", "range"),
    bug("protocol_flag_inconsistent", "leader/withhold", "range"),
    bug("no_leave_on_unsubscribe", "leave/sent", "1 x 1"),
    bug("assign_before_revoke_cb", "callback/owned", "two topics"),
    bug("skip_empty_assigned_cb", "callback/assigned", "two topics"),
    bug("assigned_cb_repeated", "callback/assigned", "two topics"),
    bug("lost_as_revoked", "callback/lost", "1 x 1"),
    bug("clear_before_leave_prepare", "leave/callback", "1 x 1"),
    bug("no_snapshot_before_callback", "callback/generation", "1 x 1"),
    bug("metadata_after_revoke", "callback/generation", "two topics"),
    bug("fetch_while_pending_revocation", "callback/fetch", "range"),
    bug("eager_revoke_keeps_last_assigned", "callback/told", "limit of one"),
    bug("sync_load_error_raw", "poll/throws", "1 x 1", broker=True),
    bug("pending_sync_evicts_static", "coordinator/keep", "static", broker=True),
    bug("evict_static_on_rebalance_timeout", "coordinator/keep", "static", broker=True),
    bug("static_leader_returns_as_follower", "coordinator/leader", "static", broker=True),
    bug("static_replace_in_completing_no_rebalance", "coordinator/static", "static", broker=True),
    bug("static_replace_only_stable", "group/instance", "static", broker=True),
    bug("ghost_on_retry", "coordinator/admit", "1 x 1", broker=True),
    bug("leave_on_empty_assignment", CONVERGES.id, "one member"),
    bug("offset_fetch_not_resumed", CONVERGES.id, "one member"),
    bug("static_leader_returns_as_follower", CONVERGES.id, "one static member", broker=True),
    bug("prepare_commit_never_done", CONVERGES.id, "slow commits"),
    bug("claims_always_empty", CONVERGES.id, "slow commits"),
    bug("no_rejoin_after_revoke", CONVERGES.id, "subscriptions"),
    bug("leader_watches_own_topics", CONVERGES.id, "subscriptions"),
    bug("max_size_counts_members", "group/size", "limit of one", broker=True),
)


# -- trying a mutant -----------------------------------------------------------------------------------


CPU_SECONDS = 90
"""Of one mutant, on the whole battery."""

MEMORY = 3 << 30
"""Of one mutant."""

ROOM = 25_000
"""States that a mutant may have in a case beyond three times those of the model."""


class _Kept:
    """Stands for "this component keeps its old value" in what a step writes."""


KEPT = _Kept()


def _keeping(name: str, who: int, reads: tuple[str, ...], writes: tuple[str, ...], run: Any, *rest: Any,
             **more: Any) -> Action:  # fmt: skip
    """An action whose steps may say ``KEPT``."""

    def resolved(*values: Value) -> Iterator[Outcome]:
        old = dict(zip(reads, values, strict=True))
        for outcome in run(*values):
            written = tuple(
                old[write] if value is KEPT else value
                for write, value in zip(writes, outcome.values, strict=True)
            )
            yield outcome._replace(values=written)

    return Action(name, who, reads, writes, resolved, *rest, **more)


@cache
def _compiled(module: str, number: int | None, compared: bool) -> CodeType:
    source = sources()[module]
    tree = ast.parse(source) if number is None else applied(source, mutants()[number])
    if compared:
        some = [mutant for mutant in mutants() if mutant.module == module]
        tree = ast.fix_missing_locations(_Compared(tree, some).visit(tree))
    return compile(tree, f"<model/protocol/{module}.py>", "exec")


@contextmanager
def loaded(
    mutant: Mutant | None = None, compare: _Differing | None = None
) -> Iterator[Mapping[str, ModuleType]]:
    """The modules of the model, new, with one mutant in them; what was there before comes back after.

    ``compare``, where given, is told which mutants make a difference to a value while the model runs.
    """
    before = {name: sys.modules.get(f"{package.__name__}.{name}") for name in MODULES}
    fresh: dict[str, ModuleType] = {}
    try:
        for name in MODULES:
            full = f"{package.__name__}.{name}"
            module = fresh[name] = sys.modules[full] = ModuleType(full)
            setattr(package, name, module)
            keeps = False
            wrong = mutant if mutant is not None and mutant.module == name else None
            if wrong is not None:
                keeps = wrong.kind == "write dropped"
                module.__dict__["KEPT"] = KEPT
            if compare is not None:
                module.__dict__["COMPARE"] = compare
            exec(
                _compiled(name, None if wrong is None else wrong.number, compare is not None), module.__dict__
            )
            if keeps:
                module.__dict__["Action"] = _keeping
        yield fresh
    finally:
        for name, old in before.items():
            if old is not None:
                sys.modules[f"{package.__name__}.{name}"] = old
                setattr(package, name, old)


@dataclass(frozen=True)
class Seen:
    """What a case shows on the model as it is: clauses broken, liveness, what was reached.

    ``differ``: the numbers of the mutants that change any value on the way; the others cannot be told here.
    """

    broken: frozenset[str]
    settles: bool
    rounds: int | None
    witnesses: frozenset[str]
    taken: frozenset[tuple[str, int]]
    distinct: int
    generated: int
    seconds: float
    differ: frozenset[int]


class Verdict(NamedTuple):
    """How a mutant ended: ``kind`` is a key of ``KINDS``, ``by`` the clause (or what it was), ``where`` the
    case. ``same``: the counts of states and steps are those of the model in every case."""

    kind: str
    by: str = ""
    where: str = ""
    detail: str = ""
    same: bool = True
    seconds: float = 0.0


KINDS = {
    "clause": "a clause is broken",
    "settling": "a fair run does not settle (group/converges)",
    "rounds": "a run takes more rebalances than any run of the model does (group/rounds)",
    "witness": "a witness that the model reaches in the same case is not reached",
    "finding": "a clause does not find a mistake any more that is switched on",
    "error": "the model raises an exception",
    "large": "the space is more than three times as large, and nothing is found in that much of it",
    "timeout": "the time or the memory is used up",
    "coverage": "an action of the model is never taken in a case in which it was",
    "survived": "nothing of these",
    "idle": "no value is ever another one than in the model, wherever the battery comes",
}
STRONG = ("clause", "settling", "rounds", "witness", "finding", "error", "coverage")
"""After one of these the battery ends; after the others it goes on, and the first of them stands."""


def _asked(some: Case, setup: Any, known: frozenset[str] = frozenset()) -> Rules:
    """The rules of ``setup``: of a mistake the one that finds it, else all but those ``known`` to break."""
    asked = rules(setup)

    def wanted(clause: str) -> bool:
        return clause == some.finds if some.finds else clause not in known

    return asked._replace(
        always=tuple(rule for rule in asked.always if wanted(rule.clause)),
        each_step=tuple(rule for rule in asked.each_step if wanted(rule.clause)),
    )


def baseline(some: Case) -> Seen:
    """What ``some`` shows on the model as it is."""
    compare = _Differing()
    with loaded() as names:
        setup = some.build(names["setup"])
        asked = _asked(some, setup)
        began = time.process_time()
        made = names["group"].machine(setup)
        clean = not some.finds
        found = fast.explore(made, asked, Limits(go_on=clean))
        settled, rounds = True, None
        if clean or some.finds == CONVERGES.id:
            settled = all(settles(made, rule, found).holds for rule in asked.finally_)
        if clean:
            rounds = counts(made, ROUNDED, found).reached
        seconds = time.process_time() - began
    with loaded(compare=compare) as names:
        setup = some.build(names["setup"])
        made = names["group"].machine(setup)
        again = fast.explore(made, asked, Limits(go_on=clean))
        assert again.counts == found.counts
        if clean or some.finds == CONVERGES.id:
            for rule in asked.finally_:
                settles(made, rule, again)
    if some.finds:
        assert found.breaches or not settled, f"{some.name} does not find {some.finds}"
    return Seen(
        frozenset(breach.clause for breach in found.breaches), settled, rounds,
        frozenset(w.clause for w in found.witnesses if w.count),
        frozenset(action for action, taken in found.taken.items() if taken.outcomes),
        found.distinct, found.generated, seconds, frozenset(compare.numbers),
    )  # fmt: skip


ROUNDED = Bounded(ROUNDS.id, lambda event: event.action == "join phase ends", 0)


def attempt(mutant: Mutant | None, some: Case, seen: Seen) -> Verdict:
    """One mutant on one case; None is the model itself."""
    with loaded(mutant) as names:
        try:
            return _attempt(names, some, seen)
        except MemoryError:
            return Verdict("timeout", where=some.name, same=False)
        except Exception as error:
            return Verdict("error", type(error).__name__, some.name, str(error)[:120], same=False)


def _attempt(names: Mapping[str, Any], some: Case, seen: Seen) -> Verdict:
    setup = some.build(names["setup"])
    made: Machine = names["group"].machine(setup)
    asked = _asked(some, setup, seen.broken)
    found = fast.explore(made, asked, Limits(states=3 * seen.distinct + ROOM))
    same = (found.distinct, found.generated) == (seen.distinct, seen.generated)
    end = partial(Verdict, where=some.name, same=same)
    clauses = [breach.clause for breach in found.breaches]
    if some.finds == CONVERGES.id and found.complete:
        settled = all(settles(made, rule, found).holds for rule in asked.finally_)
        return end("finding", some.finds) if settled else end("survived")
    if some.finds:
        return end("survived") if clauses else end("finding", some.finds)
    if found.breaches:
        return end("clause", found.breaches[0].clause, detail=found.breaches[0].sentence)
    if found.stop is not Stop.COMPLETE:
        return end("large")
    if seen.settles:
        for rule in asked.finally_:
            if not settles(made, rule, found).holds:
                return end("settling", rule.clause)
    if seen.rounds is not None and not same:
        most = counts(made, ROUNDED._replace(most=seen.rounds), found)
        if not most.holds:
            return end("rounds", ROUNDS.id, detail=f"{most.reached} for {seen.rounds}")
    lost = [name for name in WITNESSES if name in seen.witnesses and name in found.missed]
    if lost:
        return end("witness", lost[0])
    idle = [action for action in found.never_taken if action in seen.taken]
    return end("coverage", idle[0][0]) if idle else end("survived")


JUDGED = ("setup", "group")
"""Modules that the clauses look through. A mutant of another one that changes values in clean cases, and the
number of states and steps in none of them, is not tried on the mistakes."""


def judge(mutant: Mutant, battery: Sequence[tuple[Case, Seen]]) -> Verdict:
    """One mutant on the battery, until something strong is said about it."""
    began = time.process_time()
    differs = [some for some, seen in battery if mutant.number in seen.differ]
    first = Verdict("survived" if differs else "idle")
    clean = any(not some.finds for some in differs) and mutant.module not in JUDGED
    same = True
    for some, seen in battery:
        if mutant.number not in seen.differ or (some.finds and same and clean):
            continue
        verdict = attempt(mutant, some, seen)
        same = same and verdict.same
        if verdict.kind in STRONG or verdict.kind == first.kind == "large":
            first = verdict
            break
        if first.kind == "survived":
            first = verdict if verdict.kind != "survived" else first
    return first._replace(same=same, seconds=time.process_time() - began)


# -- all of them ---------------------------------------------------------------------------------------


def _child(pipe: Connection, mutant: Mutant, battery: Sequence[tuple[Case, Seen]]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    pipe.send(judge(mutant, battery))
    pipe.close()


def run(
    chosen: Sequence[Mutant],
    battery: Sequence[tuple[Case, Seen]],
    jobs: int = 2,
    tell: Callable[[Mutant, Verdict], None] | None = None,
) -> dict[str, Verdict]:
    """Judge each mutant in a process of its own, ``jobs`` at once; verdicts by key, in the order given."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(chosen))
    running: dict[Connection, tuple[Mutant, Any]] = {}
    verdicts: dict[str, Verdict] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, mutant, battery))
            process.start()
            theirs.close()
            running[mine] = mutant, process
        for pipe in wait(list(running)):
            assert isinstance(pipe, Connection)
            mutant, process = running.pop(pipe)
            try:
                verdicts[mutant.key] = pipe.recv()
            except EOFError:  # the limit of the processor's time ended it
                verdicts[mutant.key] = Verdict("timeout", same=False, seconds=CPU_SECONDS)
            pipe.close()
            process.join()
            if tell is not None:
                tell(mutant, verdicts[mutant.key])
    return {mutant.key: verdicts[mutant.key] for mutant in chosen}


def measured() -> list[tuple[Case, Seen]]:
    """The battery on the model as it is, the quickest first; a mistake after the clean cases that are quicker
    than a third of a second."""
    pairs = [(each, baseline(each)) for each in (*CLEAN, *BUGS)]
    return sorted(pairs, key=lambda pair: max(QUICK, pair[1].seconds) if pair[0].finds else pair[1].seconds)


QUICK = 0.35


# -- what is known of those that live -------------------------------------------------------------------

GUARDED = "the action's guard asks the same of the same component before"

EQUIVALENT: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        GUARDED,
        (
            "coordinator.join_request | always | isinstance(wire, Join)",
            "coordinator.abandoned_join | always | isinstance(stray, Join)",
            "coordinator.join_phase_ends | never | group.state is not GroupState.PREPARING",
            "coordinator.sync_request | never | not isinstance(wire, Sync)",
            "coordinator.leader_sync | operand dropped | not isinstance(wire, Sync)",
            "coordinator.leader_sync | operand dropped | wire.grants is None",
            "coordinator.refuse_sync | always | isinstance(wire, SyncParked)",
            "coordinator.refuse_join | operand dropped | isinstance(wire, JoinParked)",
            "leader.assign | operand dropped | not isinstance(wire, JoinOk)",
            "leader.assign | operand dropped | not wire.leader",
            "member.complete | operand dropped | member.received is None",
            "member.refresh | operand dropped | member.life is Life.UP",
        ),
    ),
    (
        "the function behind this guard asks the same again",
        ("leader._leads | operand dropped | wire.leader",),
    ),
    (
        "what is written is what was read",
        (
            "coordinator.join_phase_ends | write dropped | *wires of (empty, *kept, *wires, *log)",
            "member.receive | write dropped | member of (member, None)",
        ),
    ),
    (
        "asked again of a record that was chosen for it",
        (
            "coordinator._replace_static | operand dropped | old.meta is not None",
            "coordinator._replace_static | operand dropped | old.meta is not None #2",
        ),
    ),
    (
        "a static member is admitted with its first JoinGroup, so none of its ids is ever pending",
        ("coordinator._join_new | always | r.meta is not None",),
    ),
    (
        "whoever is removed makes the group leave CompletingRebalance, so a member that waits is still there",
        ("coordinator.leader_sync | always | record is not None",),
    ),
)
"""Why a mutant cannot be told from the model, and the keys of those that this is true of."""

REASONS: dict[str, str] = {key: reason for reason, keys in EQUIVALENT for key in keys}


def unexplained(verdicts: Mapping[str, Verdict]) -> list[str]:
    """The mutants that nothing was said about, by clause or by reason."""
    weak = [key for key, verdict in verdicts.items() if verdict.kind not in STRONG]
    return [key for key in weak if key not in REASONS]


def stale(verdicts: Mapping[str, Verdict], everything: bool) -> list[str]:
    """Reasons given for a mutant that is killed, or that there is no more."""
    gone = [key for key in REASONS if everything and key not in verdicts]
    return gone + [key for key in REASONS if key in verdicts and verdicts[key].kind in STRONG]


# -- the table -----------------------------------------------------------------------------------------


HEAD = """# Mutation score of the model

Made by `python -m benchmarks.mutation` (`--help` says more); the mutants and the battery are described there.
One mutant is one guard negated or dropped, one operand of a condition or of a set expression dropped, one
field, statement, step or write dropped. {tried} of {all} mutants were tried,
in {cpu:.0f} s of CPU time; if not all, they are a random sample.

{killed} are killed ({score:.1f} % of those that are not equivalent), {equivalent} are equivalent for a reason
that is given below, {open} are open. The search for a mutant ends with the first breach of a clause, run that
does not settle, witness or action that is never reached any more, or switched-on mistake that is not found
any more. What only makes the space larger is counted apart and not as killed.
"""


def report(tried: Sequence[Mutant], verdicts: Mapping[str, Verdict], total: int) -> str:
    """benchmarks/mutation.md."""
    by_kind = Counter(verdict.kind for verdict in verdicts.values())
    killed = sum(by_kind[kind] for kind in STRONG)
    live = [mutant for mutant in tried if verdicts[mutant.key].kind not in STRONG]
    reasoned = [mutant for mutant in live if mutant.key in REASONS]
    still = [mutant for mutant in live if mutant.key not in REASONS]
    lines = [
        HEAD.format(
            tried=len(tried), all=total, cpu=sum(v.seconds for v in verdicts.values()), killed=killed,
            score=100 * killed / max(1, len(tried) - len(reasoned)), equivalent=len(reasoned),
            open=len(still),
        ),
        "## How they end\n", "| end | mutants | |", "|---|---|---|",
        *(f"| {kind} | {by_kind[kind]} | {sentence} |" for kind, sentence in KINDS.items()),
        "\n## By module\n", "| module | mutants | killed | equivalent | open |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for module in MODULES:
        counted = [sum(mutant.module == module for mutant in some) for some in (tried, live, reasoned, still)]
        lines.append(f"| {module} | {counted[0]} | {counted[0] - counted[1]} | {counted[2]} | {counted[3]} |")
    lines += ["\n## By kind\n", "| kind | mutants | killed |", "|---|---|---|"]
    for kind in sorted({mutant.kind for mutant in tried}):
        of = [mutant for mutant in tried if mutant.kind == kind]
        lines.append(f"| {kind} | {len(of)} | {sum(verdicts[m.key].kind in STRONG for m in of)} |")
    lines += ["\n## What kills them\n", "| clause, witness or error | how | mutants |", "|---|---|---|"]
    killers = Counter((v.by, v.kind) for v in verdicts.values() if v.kind in STRONG)
    lines += [f"| {by} | {kind} | {n} |" for (by, kind), n in sorted(killers.items(), key=_most)]
    if reasoned:
        lines += ["\n## Equivalent, and why\n", "| mutant | reason |", "|---|---|"]
        lines += [f"| {_row(mutant)} | {REASONS[mutant.key]} |" for mutant in reasoned]
    if still:
        lines += ["\n## Open\n", "| mutant | end | where | same counts |", "|---|---|---|---|"]
        for mutant in still:
            end = verdicts[mutant.key]
            lines.append(f"| {_row(mutant)} | {end.kind} {end.by} | {end.where} | {end.same} |")
    return "\n".join(lines) + "\n"


def _most(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    return -item[1], item[0]


def _row(mutant: Mutant) -> str:
    text = f"`{mutant.module}.py:{mutant.line}` {mutant.key.partition('.')[2]}".replace(" | ", ", ")
    return text.replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when a mutant is open or a reason is stale."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation")
    parser.add_argument("--only", default="", help="the mutants whose key contains this; writes no table")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    parser.add_argument("--sample", type=int, default=0, help="so many of them; writes no table")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--log", type=Path, help="one line of JSON per mutant, as they end")
    parser.add_argument("--again", type=Path, help="take the verdicts from such a log, run what it has not")
    parser.add_argument("--known", action="store_true", help="with --again: only make the table of those")
    given = parser.parse_args(arguments)
    chosen = [mutant for mutant in mutants() if given.only in mutant.key]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.number:5} {mutant.module}.py:{mutant.line} {mutant.key}  ->  {mutant.now}")
        return 0
    random.Random(1).shuffle(chosen)  # what has run when somebody looks is a fair sample
    chosen = chosen[: given.sample or None]
    known = _read(given.again) if given.again else {}
    if given.known:
        chosen = [mutant for mutant in chosen if mutant.key in known]
    todo = [mutant for mutant in chosen if mutant.key not in known]
    verdicts = dict(known)
    if todo:
        battery = measured()
        seconds = sum(seen.seconds for _, seen in battery)
        print(f"{len(todo)} mutants, {len(battery)} cases, at most {seconds:.0f} s each", file=sys.stderr)
        log = given.log.open("a", encoding="utf-8") if given.log else None
        verdicts |= run(todo, battery, given.jobs, tell=partial(_tell, log))
    chosen.sort()
    verdicts = {mutant.key: verdicts[mutant.key] for mutant in chosen}
    whole = not (given.only or given.sample)
    text = report(chosen, verdicts, len(mutants()))
    if whole:
        (Path(__file__).parent / "mutation.md").write_text(text, encoding="utf-8")
    else:
        print(text)
    wrong = unexplained(verdicts) + stale(verdicts, whole and not given.known)
    print(f"{len(wrong)} open or stale", file=sys.stderr)
    return 1 if wrong else 0


def _tell(log: TextIO | None, mutant: Mutant, verdict: Verdict) -> None:
    if log is not None:
        print(json.dumps([mutant.key, *verdict]), file=log, flush=True)


def _read(log: Path) -> dict[str, Verdict]:
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {key: Verdict(*rest) for key, *rest in rows}


if __name__ == "__main__":
    sys.exit(main())
