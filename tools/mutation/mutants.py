"""Every mutant of the model: one change of the syntax tree each."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import rebalance_verifier.model.classic as package
from rebalance_verifier.model.classic import state
from rebalance_verifier.model.group import setup

CLASSIC = (
    *("callbacks", "errors", "expiry", "application", "join_group", "coordinator"),
    *("environment", "member", "leader", "atomic", "group"),
)
MODULES = {"setup": setup.__name__} | {name: f"{package.__name__}.{name}" for name in CLASSIC}
"""Name to import name, in the order in which they import each other. ``state`` and ``observations`` hold
values and decide nothing."""

UNTOUCHED = {
    *("letter", "letters", "spell", "partition", "name", "id"),
    *(
        "actions",
        "machine",
        "initial",
        "_components",
        "_initial",
        "_symmetries",
        "_orders",
        "renamings",
        "_permutation",
    ),
    *("_witnesses", "_claims"),
}
"""Functions that spell names, tell the engine what there is, or only observe; they decide nothing."""

ALWAYS_SO = ("isinstance(member, Member)", "isinstance(group, Group)")
"""Said for the type checker, of components that never hold anything else."""

WIRING = {
    "Action",
    "fault",
    "View",
    "Machine",
    "Labels",
    "Permutation",
    "partial",
    "chain",
    "at_a_cost",
    "Noted",
}
"""Calls whose arguments name footprints and guards of the engine, or a witness."""

VALUES = {
    name: kind
    for name in ("Member", "Metadata", "MemberRecord", "Group", "Refused", "JoinOk", "Sync")
    if hasattr(kind := getattr(state, name), "_field_defaults")
}
"""What states are made of: a field given in place is dropped by giving its default."""


class Mutant(NamedTuple):
    """One change: the node ``node_index`` (in the order of ``ast.walk``) of ``module`` becomes ``new``.

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
    node_index: int
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
    places = {id(node): index for index, node in enumerate(ast.walk(tree))}
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
        index = places[id(change.node)]
        found.append(
            Mutant(
                number=number,
                key=key,
                module=module,
                function=function,
                line=line,
                kind=change.kind,
                was=was,
                now=now,
                node_index=index,
                new=change.new,
            )
        )
    return found


def _position(change: Change) -> tuple[int, int, str, str]:
    node = change.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0), change.kind, change.what


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


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
    specs = {name: find_spec(dotted) for name, dotted in MODULES.items()}
    return {name: Path(str(spec and spec.origin)).read_text(encoding="utf-8") for name, spec in specs.items()}


@cache
def mutants() -> tuple[Mutant, ...]:
    """All mutants of the model."""
    found: list[Mutant] = []
    for module, source in sources().items():
        found += mutants_of(module, source, len(found))
    return tuple(found)
