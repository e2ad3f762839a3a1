"""Formulas as TLA+: z3's terms as nodes that know how they are laid out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import z3
from rebalance_verifier.specs.logic.language import NEXT, Term

from tools.tla.layout import (
    ATOM,
    COMPARISON,
    FALSE,
    TRUE,
    WIDTH,
    Arrow,
    Comparison,
    IfThenElse,
    Junction,
    Negation,
    Quantifier,
    Text,
    TlaNode,
    listed,
)
from tools.tla.names import TlaNames, ranges


@dataclass(frozen=True)
class TermReader:
    """Turns terms into nodes.

    ``scope``: constants that are no symbols, by z3's name. ``bound``: z3's bound variables, innermost last.
    ``assigned``: the symbols whose next value has to be told from the present one.
    """

    names: TlaNames
    scope: Mapping[str, str] = field(default_factory=dict)
    bound: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()

    def node(self, term: Term) -> TlaNode:
        if z3.is_var(term):
            return Text(self.bound[-1 - z3.get_var_index(term)])
        if z3.is_quantifier(term):
            return self._quantifier(term)
        arguments = [self.node(argument) for argument in _arguments(term)]
        match term.decl().kind():
            case z3.Z3_OP_TRUE:
                return TRUE
            case z3.Z3_OP_FALSE:
                return FALSE
            case z3.Z3_OP_AND:
                return junction("/\\", arguments, TRUE, FALSE)
            case z3.Z3_OP_OR:
                return junction("\\/", arguments, FALSE, TRUE)
            case z3.Z3_OP_NOT:
                return negation(arguments[0])
            case z3.Z3_OP_IMPLIES:
                return _implication(*arguments)
            case z3.Z3_OP_EQ | z3.Z3_OP_IFF:
                return equation(*arguments, truth=z3.is_bool(term.arg(0)))
            case z3.Z3_OP_XOR:
                return negation(equation(*arguments, truth=True))
            case z3.Z3_OP_DISTINCT:
                pairs = [(a, b) for i, a in enumerate(arguments) for b in arguments[i + 1 :]]
                return junction("/\\", [Comparison(a, "#", b) for a, b in pairs], TRUE, FALSE)
            case z3.Z3_OP_ITE:
                return choice(*arguments)
            case z3.Z3_OP_DT_CONSTRUCTOR if not arguments:
                return Text(f'"{term.decl().name()}"')
            case z3.Z3_OP_UNINTERPRETED:
                return self._application(term.decl().name(), arguments)
        raise ValueError(f"no TLA+ for {term}")

    def _quantifier(self, term: Term) -> TlaNode:
        if term.is_lambda():
            raise ValueError(f"no TLA+ for {term}")
        sorts = [term.var_sort(i) for i in range(term.num_vars())]
        texts: list[str] = []
        for i, sort in enumerate(sorts):
            scope = (*self.scope.values(), *self.bound, *texts)
            texts.append(self.names.bound(term.var_name(i), sort, scope))
        quantifier = "\\A" if term.is_forall() else "\\E"
        body = replace(self, bound=(*self.bound, *texts)).node(term.body())
        return Quantifier(f"{quantifier} {ranges(texts, sorts)} :", body)

    def _application(self, name: str, arguments: Sequence[TlaNode]) -> TlaNode:
        if not arguments and name in self.scope:
            return Text(self.scope[name])
        plain = name.removesuffix(NEXT)
        if plain not in self.names.symbols:
            raise ValueError(f"{name} is no symbol, no parameter, and not bound")
        if plain in self.names.export.rendered:
            template = self.names.export.rendered[plain]
            text = template.format(*(argument.above(COMPARISON).flat() for argument in arguments))
            return Text(text, COMPARISON if " " in template else ATOM)
        head = self.names.symbols[plain] + (NEXT if name != plain and plain in self.assigned else "")
        return Text(f"{head}[{', '.join(part.flat() for part in arguments)}]" if arguments else head)


def _arguments(term: Term) -> list[Term]:
    """Those of an /\\ in an /\\ as of one."""
    return list(flattened(term)) if z3.is_and(term) or z3.is_or(term) else term.children()


def flattened(term: Term) -> Iterator[Term]:
    for child in term.children():
        if z3.is_app(child) and child.decl().kind() == term.decl().kind():
            yield from flattened(child)
        else:
            yield child


# What actions share is written once, in Python, with truth values for what differs; here these disappear.


def junction(operator: str, items: Sequence[TlaNode], neutral: TlaNode, decisive: TlaNode) -> TlaNode:
    rest = tuple(item for item in items if item != neutral)
    if decisive in rest:
        return decisive
    return Junction(operator, rest) if len(rest) > 1 else rest[0] if rest else neutral


def negation(inner: TlaNode) -> TlaNode:
    if isinstance(inner, Negation):
        return inner.inner
    if isinstance(inner, Comparison):
        return replace(inner, operator="#" if inner.operator == "=" else "=")
    return FALSE if inner == TRUE else TRUE if inner == FALSE else Negation(inner)


def _implication(left: TlaNode, right: TlaNode) -> TlaNode:
    if left == FALSE or right == TRUE:
        return TRUE
    return right if left == TRUE else negation(left) if right == FALSE else Arrow("=>", left, right)


def equation(left: TlaNode, right: TlaNode, *, truth: bool) -> TlaNode:
    for one, other in ((left, right), (right, left)):
        if one == TRUE:
            return other
        if one == FALSE:
            return negation(other)
    return Arrow("<=>", left, right) if truth else Comparison(left, "=", right)


def choice(condition: TlaNode, yes: TlaNode, no: TlaNode) -> TlaNode:
    if condition == TRUE or yes == no:
        return yes
    return no if condition == FALSE else IfThenElse(condition, yes, no)


def closed(names: TlaNames, formula: Term) -> list[str]:
    node = TermReader(names).node(names.vocabulary.close(formula))
    return listed(node.operator, node.items) if isinstance(node, Junction) else node.lines(WIDTH - 2)
