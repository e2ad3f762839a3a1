"""Formulas as Python functions over finite structures.

Three stages: z3 terms become nodes of a small language; its constructors simplify as they build (constants,
``X == t`` under a quantifier, short quantifiers written out), since everything of a finite universe is
known; what remains is written as Python source and compiled once. Every node is total, so operands may be
evaluated in any order: cheap ones go first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import z3
from rebalance_verifier.specs.logic.language import Term
from rebalance_verifier.specs.logic.universe import Universe, Value

WRITTEN_OUT = 80
"""Cost up to which a quantifier is written out for all elements rather than looped over."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class SymbolLookup:
    """A symbol's value. ``state`` is the number of the state it is read in, None for a fixed symbol."""

    symbol: str
    state: int | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    of: Node


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Equal:
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """``then`` if ``condition`` else ``other``."""

    condition: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class Exists:
    """Names and domains, and what holds for some of their values. There is no node for "for all"."""

    variables: tuple[Binding, ...]
    body: Node


Node = Literal | Variable | SymbolLookup | Not | And | Or | Equal | Choice | Exists
Binding = tuple[str, tuple[Value, ...]]
TRUE, FALSE = Literal(True), Literal(False)


def conjuncts(node: Node) -> tuple[Node, ...]:
    """Return the parts that all have to hold."""
    return node.parts if isinstance(node, And) else () if node == TRUE else (node,)


def conjunction(parts: Iterable[Node]) -> Node:
    flat = tuple(dict.fromkeys(inner for part in parts for inner in conjuncts(part)))
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else And(flat) if flat else TRUE


def disjunction(parts: Iterable[Node]) -> Node:
    flat: dict[Node, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, Or) else () if part == FALSE else (part,)))
    if TRUE in flat:
        return TRUE
    return next(iter(flat)) if len(flat) == 1 else Or(tuple(flat)) if flat else FALSE


def negation(node: Node) -> Node:
    match node:
        case Literal(value):
            return Literal(not value)
        case Not(of):
            return of
        case And(parts):
            return disjunction(map(negation, parts))
        case Or(parts):
            return conjunction(map(negation, parts))
        case Choice(condition, then, other):
            return choice(condition, negation(then), negation(other))
    return Not(node)


def equality(left: Node, right: Node) -> Node:
    if left == right:
        return TRUE
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(right, Literal):
        if isinstance(left, Literal):
            return FALSE
        if isinstance(right.value, bool):
            return left if right.value else negation(left)
    return Equal(left, right)


def choice(condition: Node, then: Node, other: Node) -> Node:
    if isinstance(condition, Literal):
        return then if condition.value else other
    if then == other:
        return then
    if isinstance(then, Literal) and isinstance(then.value, bool):
        return disjunction([condition, other]) if then.value else conjunction([negation(condition), other])
    if isinstance(other, Literal) and isinstance(other.value, bool):
        return disjunction([negation(condition), then]) if other.value else conjunction([condition, then])
    return Choice(condition, then, other)


def exists(variables: Sequence[Binding], body: Node, universe: Universe) -> Node:
    """Return some values of ``variables`` make ``body`` true."""
    parts = conjuncts(body)
    for i, (name, _) in enumerate(variables):
        for part in parts:
            if (value := _determined(name, part)) is not None:
                rest = (*variables[:i], *variables[i + 1 :])
                remaining = conjunction(other for other in parts if other is not part)
                return exists(rest, substitute(remaining, {name: value}, universe), universe)
    names = {name for name, _ in variables}
    outside = [part for part in parts if names.isdisjoint(free(part))]
    inside = conjunction(part for part in parts if not names.isdisjoint(free(part)))
    needed = set(free(inside))
    bound = tuple(binding for binding in variables if binding[0] in needed)
    if not bound:
        return conjunction([*outside, inside])
    if cost(inside) * prod(len(domain) for _, domain in bound) <= WRITTEN_OUT:
        cases = (
            substitute(inside, dict(zip(names_of(bound), map(Literal, values), strict=True)), universe)
            for values in product(*(domain for _, domain in bound))
        )
        return conjunction([*outside, disjunction(cases)])
    if isinstance(inside, Exists):
        bound, inside = (*bound, *inside.variables), inside.body
    return conjunction([*outside, Exists(bound, inside)])


def names_of(variables: Iterable[Binding]) -> list[str]:
    return [name for name, _ in variables]


def _determined(name: str, part: Node) -> Node | None:
    """Return what the variable equals if ``part`` is an equation for it."""
    if isinstance(part, Equal):
        for one, other in ((part.left, part.right), (part.right, part.left)):
            if one == Variable(name) and name not in free(other) and not isinstance(other, Choice):
                return other
    return None


def lookup(symbol: str, state: int | None, arguments: tuple[Node, ...], universe: Universe) -> Node:
    if state is None and all(isinstance(argument, Literal) for argument in arguments):
        values = tuple(argument.value for argument in arguments if isinstance(argument, Literal))
        return Literal(universe.tables[symbol][universe.places[symbol][values]])
    return SymbolLookup(symbol, state, arguments)


def substitute(node: Node, values: Mapping[str, Node], universe: Universe) -> Node:
    """``node`` with variables replaced, simplified again."""

    def inside(part: Node) -> Node:
        return substitute(part, values, universe)

    match node:
        case Variable(name):
            return values.get(name, node)
        case SymbolLookup(symbol, state, arguments):
            return lookup(symbol, state, tuple(map(inside, arguments)), universe)
        case Not(of):
            return negation(inside(of))
        case And(parts):
            return conjunction(map(inside, parts))
        case Or(parts):
            return disjunction(map(inside, parts))
        case Equal(left, right):
            return equality(inside(left), inside(right))
        case Choice(condition, then, other):
            return choice(inside(condition), inside(then), inside(other))
        case Exists(variables, body):
            return exists(variables, inside(body), universe)
    return node


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case SymbolLookup(arguments=inner) | And(inner) | Or(inner):
            return inner
        case Not(of) | Exists(body=of):
            return (of,)
        case Equal(left, right):
            return (left, right)
        case Choice(condition, then, other):
            return (condition, then, other)
    return ()


def free(node: Node) -> Iterator[str]:
    """Yield the variables that ``node`` does not bind itself."""
    if isinstance(node, Variable):
        yield node.name
    bound = names_of(node.variables) if isinstance(node, Exists) else ()
    for child in children(node):
        yield from (name for name in free(child) if name not in bound)


def cost(node: Node) -> int:
    """Roughly how long ``node`` takes, if nothing is decided early."""
    below = sum(map(cost, children(node)))
    if isinstance(node, Exists):
        return 15 + prod(len(domain) for _, domain in node.variables) * (2 + below)
    return below if isinstance(node, (And, Or, Literal)) else below + 1


def translate(term: Term, universe: Universe, marks: Sequence[str], names: Iterable[str]) -> Node:
    """Return a z3 term as a node. ``marks`` are those of the states it may speak of, ``names`` its free
    constants.

    Raises ValueError for a constant or function that is neither, and for what z3 has and this has not.
    """
    allowed, symbols, known = frozenset(names), universe.vocabulary.symbols, dict[Any, Node]()

    def constant_or_call(term: Term, bound: tuple[str, ...]) -> Node:
        name = term.decl().name()
        if name in allowed:
            return Variable(name)
        arguments = tuple(node(child, bound) for child in term.children())
        if name in symbols and symbols[name].fixed:
            return lookup(name, None, arguments, universe)
        for state, mark in enumerate(marks):
            base = name.removesuffix(mark) if name.endswith(mark) else name
            if base + mark == name and base in symbols and not symbols[base].fixed:
                return SymbolLookup(base, state, arguments)
        raise ValueError(f"{name} is neither a symbol nor bound, in: {shown(term)}")

    def node(term: Term, bound: tuple[str, ...]) -> Node:
        key = (term.get_id(), bound)
        if key not in known:
            known[key] = build(term, bound)
        return known[key]

    def build(term: Term, bound: tuple[str, ...]) -> Node:
        if z3.is_var(term):
            return Variable(bound[-1 - z3.get_var_index(term)])
        if z3.is_quantifier(term) and not term.is_lambda():
            # Names say how deep they are bound, so that no substitution captures one.
            count = range(term.num_vars())
            inner = tuple(f"{term.var_name(i)}_{len(bound) + i}" for i in count)
            domains = [universe.domain(term.var_sort(i)) for i in count]
            variables = list(zip(inner, domains, strict=True))
            body = node(term.body(), bound + inner)
            if term.is_exists():
                return exists(variables, body, universe)
            return negation(exists(variables, negation(body), universe))
        kind = term.decl().kind()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return constant_or_call(term, bound)
        if kind == z3.Z3_OP_DT_CONSTRUCTOR:
            return Literal(term.decl().name())
        inside = [node(child, bound) for child in term.children()]
        if kind == z3.Z3_OP_DISTINCT:
            pairs = ((inside[i], inside[j]) for j in range(len(inside)) for i in range(j))
            return conjunction(negation(equality(*pair)) for pair in pairs)
        if kind not in _OPERATORS:
            raise ValueError(f"not supported: {shown(term)}")
        return _OPERATORS[kind](inside)

    return node(term, ())


_OPERATORS: dict[int, Callable[[list[Node]], Node]] = {
    z3.Z3_OP_TRUE: lambda _: TRUE,
    z3.Z3_OP_FALSE: lambda _: FALSE,
    z3.Z3_OP_AND: conjunction,
    z3.Z3_OP_OR: disjunction,
    z3.Z3_OP_NOT: lambda x: negation(x[0]),
    z3.Z3_OP_IMPLIES: lambda x: disjunction([negation(x[0]), x[1]]),
    z3.Z3_OP_EQ: lambda x: equality(x[0], x[1]),
    z3.Z3_OP_XOR: lambda x: negation(equality(x[0], x[1])),
    z3.Z3_OP_ITE: lambda x: choice(x[0], x[1], x[2]),
}


def shown(term: Term) -> str:
    """Return a z3 term on one line."""
    return " ".join(str(term).split())


class FunctionWriter:
    """Writes one Python function of ``states`` and of variables."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._entries: dict[str, str] = {}
        self._globals: dict[str, object] = {}

    def function(
        self, states: int, variables: Iterable[str], result: str, lines: Sequence[str] = ()
    ) -> Callable[..., Any]:
        """Return the function (states..., variables...) that runs ``lines`` and returns ``result``, which
        were written with this writer."""
        arguments = [*(f"s{i}" for i in range(states)), *map(self.variable, variables)]
        entries = (f"{name} = {source}" for name, source in self._entries.items())
        body = [*entries, *lines, f"return {result}"]
        source = f"def function({', '.join(arguments)}):\n" + "\n".join(f"    {line}" for line in body)
        exec(compile(source, "<formula>", "exec"), self._globals)
        written: Callable[..., Any] = self._globals["function"]  # type: ignore[assignment]
        return written

    @staticmethod
    def variable(name: str) -> str:
        return f"v_{name}"

    def expression(self, node: Node) -> str:
        match node:
            case Literal(value):
                return repr(value)
            case Variable(name):
                return self.variable(name)
            case SymbolLookup(symbol, state, arguments):
                return f"{self._entry(symbol, state)}[{self.offset(symbol, arguments)}]"
            case Not(Equal(left, right)):
                return f"({self.expression(left)} != {self.expression(right)})"
            case Not(of):
                return f"(not {self.expression(of)})"
            case And(parts):
                return f"({' and '.join(map(self.expression, sorted(parts, key=cost)))})"
            case Or(parts):
                return f"({' or '.join(map(self.expression, sorted(parts, key=cost)))})"
            case Equal(left, right):
                return f"({self.expression(left)} == {self.expression(right)})"
            case Choice(condition, then, other):
                return (
                    f"({self.expression(then)} if {self.expression(condition)} else {self.expression(other)})"
                )
            case Exists(variables, body):
                return f"any(True {self.loops(variables, body)})"

    def offset(self, symbol: str, arguments: Sequence[Node]) -> str:
        """Return where the value at ``arguments`` is in the entry of ``symbol``."""
        sorts = self._universe.vocabulary.symbols[symbol].arguments
        constant, terms, stride = 0, list[str](), 1
        for argument, sort in zip(reversed(arguments), reversed(sorts), strict=True):
            domain = self._universe.domain(sort)
            if isinstance(argument, Literal):
                constant += stride * domain.index(argument.value)
            else:
                term = self.expression(argument)
                if isinstance(domain[0], str):
                    table = f"at_{sort.name()}"
                    self._globals[table] = {value: i for i, value in enumerate(domain)}
                    term = f"{table}[{term}]"
                terms.append(term if stride == 1 else f"{stride} * {term}")
            stride *= len(domain)
        return " + ".join([*reversed(terms), *([str(constant)] if constant or not terms else [])])

    def loops(self, variables: Sequence[Binding], body: Node) -> str:
        """``for`` and ``if`` clauses of a comprehension over the values that make ``body`` true. Each
        condition stands as far out as it can."""
        left, parts = dict(variables), list(conjuncts(body))
        clauses = [f"for _ in (0,){self._filters(left, parts)}"]
        while left:
            name, source, part = self._next(left, parts)
            del left[name]
            if part is not None:
                parts.remove(part)
            clauses.append(f"for {self.variable(name)} in {source}{self._filters(left, parts)}")
        return " ".join(clauses)

    def _next(self, left: Mapping[str, tuple[Value, ...]], parts: list[Node]) -> tuple[str, str, Node | None]:
        """Return the variable to loop over now and over what: an equation with known values, or the next
        one."""
        for name in left:
            for part in parts:
                value = _determined(name, part)
                if value is not None and left.keys().isdisjoint(free(value)):
                    return name, f"({self.expression(value)},)", part
        name = next(iter(left))
        return name, repr(left[name]), None

    def _filters(self, left: Mapping[str, object], parts: list[Node]) -> str:
        """Return what can be decided before the variables that are ``left``; removed from ``parts``."""
        now = [part for part in parts if left.keys().isdisjoint(free(part))]
        parts[:] = [part for part in parts if part not in now]
        return f" if {self.expression(conjunction(now))}" if now else ""

    def _entry(self, symbol: str, state: int | None) -> str:
        if state is None:
            name = f"fixed_{symbol}"
            self._globals[name] = self._universe.tables[symbol]
        else:
            name = f"s{state}_{symbol}"
            self._entries[name] = f"s{state}[{self._universe.positions[symbol]}]"
        return name
