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
from typing import Any, NamedTuple

import rebalance.model.protocol as package
from rebalance.explore import fast
from rebalance.explore.liveness import counts, settles
from rebalance.explore.search import Limits, Stop
from rebalance.model.machine import Action, Machine, Outcome, Value
from rebalance.model.protocol import state
from rebalance.model.protocol.group import FAULTS as ALL
from rebalance.properties.protocol import CONVERGES, ROUNDS, WITNESSES, rules
from rebalance.properties.rules import Bounded, Rules

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
    ``statement`` is the line of the innermost statement that it is in, 0 outside of functions.
    """

    number: int
    key: str
    module: str
    function: str
    line: int
    statement: int
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
    statements = dict(_statements(tree, 0))
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
        line, statement = getattr(change.node, "lineno", 0), statements.get(id(change.node), 0)
        place = places[id(change.node)]
        found.append(Mutant(number, key, module, function, line, statement, change.kind, was, now, place, change.new))
    return found


def _statements(node: ast.AST, line: int) -> Iterator[tuple[int, int]]:
    """For each node (by identity) within a function the line of the innermost statement around it."""
    for child in ast.iter_child_nodes(node):
        inside = line or isinstance(node, ast.FunctionDef)
        own = child.lineno if inside and isinstance(child, ast.stmt) else line
        yield id(child), own
        yield from _statements(child, own)


class _Marked(ast.NodeTransformer):
    """Makes every statement of a function say that it runs, by its line, to the set ``RAN``."""

    inside = False

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.FunctionDef):
            before, self.inside = self.inside, True
            self.generic_visit(node)
            self.inside = before
        else:
            self.generic_visit(node)
        if self.inside and isinstance(node, ast.stmt):
            mark = ast.parse(f"RAN.add({node.lineno})").body[0]
            return [mark, node]
        return node


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
    "two topics": (TWO, (1, 1), {"faults": ("resubscribe",), "budget": 1, "subscriptions": ((3, 1), (3, 2))}),
}

CLEAN = (
    case("1 x 1, every fault, budget 2", ALONE, 1, faults=ALL, budget=2),
    case("2 x 2, one to come, every fault", TWO, 2, faults=ALL, budget=1, exist=1),
    case("3 x 2", [COOPERATIVE] * 3, 2),
    case("one instance id twice", TWO, 1, faults=ALL, budget=1, instances=(1, 1)),
    case("static members", TWO, 2, faults=("crash", "session timeout", "failover"), budget=1,
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
    bug("max_size_counts_members", "group/size", "limit of one", broker=True),
)


# -- trying a mutant -----------------------------------------------------------------------------------


CPU_SECONDS = 90
"""Of one mutant, on the whole battery."""

MEMORY = 3 << 30
"""Of one mutant."""


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
def _compiled(module: str, number: int | None, marked: bool) -> CodeType:
    source = sources()[module]
    tree = ast.parse(source) if number is None else applied(source, mutants()[number])
    if marked:
        tree = ast.fix_missing_locations(_Marked().visit(tree))
    return compile(tree, f"<model/protocol/{module}.py>", "exec")


@contextmanager
def loaded(
    mutant: Mutant | None = None, ran: Mapping[str, set[int]] | None = None
) -> Iterator[Mapping[str, ModuleType]]:
    """The modules of the model, new, with one mutant in them; what was there before comes back after.

    ``ran``, where given, receives the lines of the statements that run, by module.
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
            if ran is not None:
                module.__dict__["RAN"] = ran[name]
            exec(_compiled(name, None if wrong is None else wrong.number, ran is not None), module.__dict__)
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
    """What a case shows on the model as it is: broken clauses, liveness, what was reached, which lines ran."""

    broken: frozenset[str]
    settles: bool
    rounds: int | None
    witnesses: frozenset[str]
    taken: frozenset[tuple[str, int]]
    distinct: int
    generated: int
    seconds: float
    lines: frozenset[tuple[str, int]]


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
    "large": "the search has three times the states, and finds nothing in them",
    "timeout": "the time or the memory is used up",
    "coverage": "an action of the model is never taken in a case in which it was",
    "survived": "nothing of these",
}
STRONG = ("clause", "settling", "rounds", "witness", "finding", "error")
"""After one of these the battery ends; after the others it goes on, and the first of them stands."""


def _asked(some: Case, setup: Any, known: frozenset[str] = frozenset()) -> Rules:
    """The rules of ``setup``: of a mistake the one that finds it, else all but those ``known`` to be broken."""
    asked = rules(setup)

    def wanted(clause: str) -> bool:
        return clause == some.finds if some.finds else clause not in known

    return asked._replace(
        always=tuple(rule for rule in asked.always if wanted(rule.clause)),
        each_step=tuple(rule for rule in asked.each_step if wanted(rule.clause)),
    )


def baseline(some: Case) -> Seen:
    """What ``some`` shows on the model as it is."""
    ran: dict[str, set[int]] = {name: set() for name in MODULES}
    with loaded(ran=ran) as names:
        setup = some.build(names["setup"])
        asked = _asked(some, setup)
        began = time.process_time()
        made = names["group"].machine(setup)
        clean = not some.finds
        found = fast.explore(made, asked, Limits(go_on=clean))
        settled, rounds = True, None
        if clean:
            settled = all(settles(made, rule, found).holds for rule in asked.finally_)
            rounds = counts(made, ROUNDED, found).reached
        seconds = time.process_time() - began
    return Seen(
        frozenset(breach.clause for breach in found.breaches), settled, rounds,
        frozenset(w.clause for w in found.witnesses if w.count),
        frozenset(action for action, taken in found.taken.items() if taken.outcomes),
        found.distinct, found.generated, seconds,
        frozenset((name, line) for name, lines in ran.items() for line in lines),
    )  # fmt: skip


ROUNDED = Bounded(ROUNDS.id, lambda event: event.action == "join phase ends", 0)


def attempt(mutant: Mutant, some: Case, seen: Seen) -> Verdict:
    """One mutant on one case."""
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
    found = fast.explore(made, asked, Limits(states=3 * seen.distinct + 5000))
    same = (found.distinct, found.generated) == (seen.distinct, seen.generated)
    end = partial(Verdict, where=some.name, same=same)
    clauses = [breach.clause for breach in found.breaches]
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
    if seen.rounds is not None:
        most = counts(made, ROUNDED._replace(most=seen.rounds), found)
        if not most.holds:
            return end("rounds", ROUNDS.id, detail=f"{most.reached} for {seen.rounds}")
    lost = [name for name in WITNESSES if name in seen.witnesses and name in found.missed]
    if lost:
        return end("witness", lost[0])
    idle = [action for action in found.never_taken if action in seen.taken]
    return end("coverage", idle[0][0]) if idle else end("survived")


JUDGED = ("setup", "group")
"""Modules that the clauses look through. A mutant of another one that makes no difference to any space of the
clean cases is not tried on the mistakes."""


def judge(mutant: Mutant, battery: Sequence[tuple[Case, Seen]]) -> Verdict:
    """One mutant on the battery, until something strong is said about it."""
    began = time.process_time()
    first = Verdict("survived")
    same = True
    for some, seen in battery:
        if not _reached(mutant, seen) or (some.finds and same and mutant.module not in JUDGED):
            continue
        verdict = attempt(mutant, some, seen)
        same = same and verdict.same
        if verdict.kind in STRONG or verdict.kind == first.kind == "large":
            first = verdict
            break
        if first.kind == "survived":
            first = verdict
    return first._replace(same=same, seconds=time.process_time() - began)


def _reached(mutant: Mutant, seen: Seen) -> bool:
    """Whether what was changed is ever run in this case; if not, the case cannot tell."""
    return mutant.statement == 0 or (mutant.module, mutant.statement) in seen.lines


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
    """The battery on the model as it is: the clean cases, then the mistakes, each with the quickest first."""
    ordered = []
    for some in (CLEAN, BUGS):
        pairs = [(each, baseline(each)) for each in some]
        ordered += sorted(pairs, key=lambda pair: round(pair[1].seconds, 1))
    return ordered


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="the mutants whose key contains this")
    parser.add_argument("--list", action="store_true", help="print the mutants, run none")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="so many of them, drawn at random")
    parser.add_argument("--log", type=Path, help="one line per mutant, as they end")
    given = parser.parse_args(arguments)
    chosen = [mutant for mutant in mutants() if given.only in mutant.key]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.number:5} {mutant.module}.py:{mutant.line} {mutant.key}  ->  {mutant.now}")
        return 0
    battery = measured()
    print(f"{len(chosen)} mutants, {len(battery)} cases, {sum(s.seconds for _, s in battery):.0f} s each at most",
          file=sys.stderr)  # fmt: skip
    log = given.log.open("w") if given.log else None
    random.Random(1).shuffle(chosen)  # what has run when somebody looks is a fair sample
    chosen = chosen[: given.sample or None]
    verdicts = run(chosen, battery, given.jobs, tell=partial(_tell, log))
    print(Counter(v.kind for v in verdicts.values()), sum(v.seconds for v in verdicts.values()))
    return 0


def _tell(log: Any, mutant: Mutant, verdict: Verdict) -> None:
    if log is not None:
        print(json.dumps([mutant.number, mutant.line, mutant.key, mutant.now, *verdict]), file=log, flush=True)


if __name__ == "__main__":
    sys.exit(main())
