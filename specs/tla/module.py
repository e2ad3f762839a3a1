r"""The protocol as a TLA+ module and a model for TLC: the same state machine, in the notation others read.

One definition per action, with the action's own text, guards and assignments. Nothing is proved here and
nothing is read back: the text exists so that somebody who knows TLA+ can review the protocol, and so that
TLC, which shares no code with us, can search it in small sizes. For that the text is executable: every
variable is assigned before anything that reads it primed.

    relation or function of a state     a variable, in [Consumer \X Partition -> BOOLEAN]
    enumeration                         strings
    unbounded sort                      a constant set; one of ``naturals`` is 0..MaxGeneration
    fixed symbol                        a constant function, or the text given for it in ``rendered``

Source: L. Lamport, Specifying Systems, chapters 14 (TLC) and 15 (syntax, precedence, indentation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import z3
from rebalance.specs.logic.language import ANY, NEXT, SpecAction, Symbol, Term, Vocabulary, free, symbols_of
from rebalance.specs.tla.layout import (
    ATOM,
    COMPARISON,
    FALSE,
    TRUE,
    WIDTH,
    Arrow,
    Brackets,
    Comparison,
    IfThenElse,
    Junction,
    Negation,
    Quantifier,
    Text,
    TlaNode,
    VariableAssignment,
    comment,
    definition,
    filled,
    indent,
    listed,
)

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS
    DOMAIN ELSE ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW
    OBVIOUS OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE STATE STRING SUBSET SUFFICES TAKE
    TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES WITH WITNESS
    Nat Print PrintT Assert JavaTime TLCGet TLCSet TLCEval Permutations SortSeq RandomElement Any ToString
    vars TypeOK Init Next Spec Fairness FairSpec
    """,
    )
)
"""Words of the language, of the modules that we extend, and of this exporter."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What is written out.

    ``initial``, ``invariants`` and ``axioms`` (of the fixed symbols; they become assumptions, which TLC
    checks) are closed here if they are not. ``naturals``: the sorts that are 0 to a constant, with the name
    of that constant. ``rendered``: TLA+ text for fixed symbols, with ``{0}`` for the first argument.
    ``groups``: names for variables that often stay as they are together.
    """

    name: str
    vocabulary: Vocabulary
    actions: Sequence[SpecAction]
    initial: Term
    invariants: Mapping[str, Term]
    axioms: Mapping[str, Term] = field(default_factory=dict)
    naturals: Mapping[str, str] = field(default_factory=dict)
    rendered: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: str = ""


def module(export: Export) -> str:
    """The TLA+ module ``export.name``.

    Raises ValueError for a formula without a counterpart: a free letter, arithmetic.
    """
    names = _Names(export)
    return _file(
        export.name,
        comment(export.text),
        ["EXTENDS Naturals"],
        *_constants(names),
        *_variables(names),
        definition("Init", _initial(names)),
        *[_action(names, name, action) for name, action in names.actions],
        *_behaviours(names),
        *[definition(name, _closed(names, export.invariants[key])) for key, name in names.invariants.items()],
    )


def model(export: Export, sizes: Mapping[str, int], definitions: Mapping[str, str]) -> str:
    """The module ``MC...`` that TLC runs.

    ``sizes`` gives each unbounded sort its number of elements, named by the sort's first letter (c1, c2), and
    each of ``naturals`` its greatest; ``definitions`` gives each fixed symbol that is not ``rendered`` its
    TLA+ text, in which the elements may occur. Raises ValueError if one is missing or unknown.
    """
    names = _Names(export)
    elements = _elements(names, sizes)
    _same("definitions", [symbol.name for symbol in names.fixed], definitions)
    return _file(
        f"MC{export.name}",
        [f"EXTENDS {export.name}, TLC"],
        [f"CONSTANTS {', '.join(part)}" for part in elements.values()],
        [f"MC{sort} == {{{', '.join(part)}}}" for sort, part in elements.items()],
        [f"MC{symbol.name} == {definitions[symbol.name]}" for symbol in names.fixed],
    )


def configuration(
    export: Export,
    sizes: Mapping[str, int],
    *,
    invariants: Iterable[str] | None = None,
    fair: bool = False,
) -> str:
    """TLC's configuration for ``model`` in the same sizes: TypeOK, and the invariants named (or all).

    Generations run out in every small model, so run TLC with ``-deadlock``: the end of a run is no error.
    """
    names = _Names(export)
    chosen = export.invariants if invariants is None else invariants
    lines = [f"SPECIFICATION {'FairSpec' if fair else 'Spec'}", "CONSTANTS"]
    for sort, elements in _elements(names, sizes).items():
        lines += [*(f"  {element} = {element}" for element in elements), f"  {sort} <- MC{sort}"]
    lines += [f"  {greatest} = {sizes[sort]}" for sort, greatest in export.naturals.items()]
    lines += [f"  {names.of(symbol)} <- MC{symbol.name}" for symbol in names.fixed]
    lines += ["INVARIANTS", "  TypeOK", *(f"  {names.invariants[key]}" for key in chosen)]
    return "\n".join(lines) + "\n"


def camel(name: str) -> str:
    """A definition's name.

    >>> camel("join_group"), camel("one owner at most")
    ('JoinGroup', 'OneOwnerAtMost')
    """
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


# -- names ---------------------------------------------------------------------------------------------


class _Names:
    """Who is called what: no name twice, and none that TLA+ reserves."""

    def __init__(self, export: Export) -> None:
        self.export, self.vocabulary = export, export.vocabulary
        self.letters: dict[str, list[str]] = {sort: [] for sort in (*self.vocabulary.sorts, "BOOLEAN")}
        """The capital letters of each sort."""
        for name, letter in self.vocabulary.letters.items():
            self.letters[_set(letter.sort())].append(name)
        self.taken = {*RESERVED, *self.vocabulary.sorts, *export.naturals.values(), *export.groups}
        self.symbols = {name: self._claim(name) for name in self.vocabulary.symbols}
        self.actions = [(self._claim(camel(action.name)), action) for action in export.actions]
        self.axioms = {key: self._claim(camel(key)) for key in export.axioms}
        self.invariants = {key: self._claim(camel(key)) for key in export.invariants}
        self.unbounded = [
            sort
            for sort in self.vocabulary.sorts
            if sort not in self.vocabulary.values and sort not in export.naturals
        ]
        self.fixed = [
            symbol
            for symbol in self.vocabulary.symbols.values()
            if symbol.fixed and symbol.name not in export.rendered
        ]

    def _claim(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def of(self, symbol: Symbol) -> str:
        return self.symbols[symbol.name]

    def is_letter(self, term: Term) -> bool:
        return any(term is letter for letter in self.vocabulary.letters.values())

    def bound(self, wish: str, sort: Term, scope: Iterable[str]) -> str:
        """``wish``, or another letter of its sort: TLA+ has no shadowing, not even of a definition."""
        avoid = {*scope, *self.taken}
        numbered = (f"{wish}{number}" for number in range(2, len(avoid) + 3))
        letters = self.letters[_set(sort)]
        return next(name for name in (wish, *letters, *numbered) if name not in avoid)

    def type(self, symbol: Symbol) -> str:
        return _functions(symbol.arguments, symbol.value)

    def parameters(self, action: SpecAction) -> dict[str, str]:
        """TLA+'s names of the action's parameters."""
        found: dict[str, str] = {}
        for constant in action.parameters:
            found[str(constant)] = self.bound(str(constant), constant.sort(), found.values())
        return found

    def call(self, name: str, action: SpecAction) -> tuple[str, str]:
        """The ranges of the action's parameters (none: ""), and the action applied to them."""
        texts = list(self.parameters(action).values())
        ranges = _ranges(texts, [constant.sort() for constant in action.parameters])
        return ranges, f"{name}({', '.join(texts)})" if texts else name


def _set(sort: Term) -> str:
    return "BOOLEAN" if sort == z3.BoolSort() else str(sort.name())


def _functions(arguments: Sequence[Term], value: Term) -> str:
    r"""``[Consumer \X Partition -> BOOLEAN]``; without arguments the values themselves."""
    domain = " \\X ".join(map(_set, arguments))
    return f"[{domain} -> {_set(value)}]" if arguments else _set(value)


def _ranges(texts: Sequence[str], sorts: Sequence[Term]) -> str:
    r"""``C, D \in Consumer, P \in Partition``."""
    groups: list[tuple[str, list[str]]] = []
    for text, sort in zip(texts, sorts, strict=True):
        if groups and groups[-1][0] == _set(sort):
            groups[-1][1].append(text)
        else:
            groups.append((_set(sort), [text]))
    return ", ".join(f"{', '.join(members)} \\in {sort}" for sort, members in groups)


def _elements(names: _Names, sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """The elements of each constant set."""
    _same("sizes", [*names.unbounded, *names.export.naturals], sizes)
    return {
        sort: [f"{names.letters[sort][0].lower()}{number + 1}" for number in range(sizes[sort])]
        for sort in names.unbounded
    }


def _same(what: str, wanted: Sequence[str], given: Iterable[str]) -> None:
    wrong = sorted(set(wanted) ^ set(given))
    if wrong:
        raise ValueError(f"{what}: missing or unknown: {', '.join(wrong)}")


# -- formulas ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TermReader:
    """Turns terms into nodes.

    ``scope``: constants that are no symbols, by z3's name. ``bound``: z3's bound variables, innermost last.
    ``assigned``: the symbols whose next value has to be told from the present one.
    """

    names: _Names
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
                return _junction("/\\", arguments, TRUE, FALSE)
            case z3.Z3_OP_OR:
                return _junction("\\/", arguments, FALSE, TRUE)
            case z3.Z3_OP_NOT:
                return _negation(arguments[0])
            case z3.Z3_OP_IMPLIES:
                return _implication(*arguments)
            case z3.Z3_OP_EQ | z3.Z3_OP_IFF:
                return _equation(*arguments, truth=z3.is_bool(term.arg(0)))
            case z3.Z3_OP_XOR:
                return _negation(_equation(*arguments, truth=True))
            case z3.Z3_OP_DISTINCT:
                pairs = [(a, b) for i, a in enumerate(arguments) for b in arguments[i + 1 :]]
                return _junction("/\\", [Comparison(a, "#", b) for a, b in pairs], TRUE, FALSE)
            case z3.Z3_OP_ITE:
                return _choice(*arguments)
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
        return Quantifier(f"{quantifier} {_ranges(texts, sorts)} :", body)

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
    return list(_flattened(term)) if z3.is_and(term) or z3.is_or(term) else term.children()


def _flattened(term: Term) -> Iterator[Term]:
    for child in term.children():
        if z3.is_app(child) and child.decl().kind() == term.decl().kind():
            yield from _flattened(child)
        else:
            yield child


# What actions share is written once, in Python, with truth values for what differs; here these disappear.


def _junction(operator: str, items: Sequence[TlaNode], neutral: TlaNode, decisive: TlaNode) -> TlaNode:
    rest = tuple(item for item in items if item != neutral)
    if decisive in rest:
        return decisive
    return Junction(operator, rest) if len(rest) > 1 else rest[0] if rest else neutral


def _negation(inner: TlaNode) -> TlaNode:
    if isinstance(inner, Negation):
        return inner.inner
    if isinstance(inner, Comparison):
        return replace(inner, operator="#" if inner.operator == "=" else "=")
    return FALSE if inner == TRUE else TRUE if inner == FALSE else Negation(inner)


def _implication(left: TlaNode, right: TlaNode) -> TlaNode:
    if left == FALSE or right == TRUE:
        return TRUE
    return right if left == TRUE else _negation(left) if right == FALSE else Arrow("=>", left, right)


def _equation(left: TlaNode, right: TlaNode, *, truth: bool) -> TlaNode:
    for one, other in ((left, right), (right, left)):
        if one == TRUE:
            return other
        if one == FALSE:
            return _negation(other)
    return Arrow("<=>", left, right) if truth else Comparison(left, "=", right)


def _choice(condition: TlaNode, yes: TlaNode, no: TlaNode) -> TlaNode:
    if condition == TRUE or yes == no:
        return yes
    return no if condition == FALSE else IfThenElse(condition, yes, no)


def _closed(names: _Names, formula: Term) -> list[str]:
    node = _TermReader(names).node(names.vocabulary.close(formula))
    return listed(node.operator, node.items) if isinstance(node, Junction) else node.lines(WIDTH - 2)


# -- actions -------------------------------------------------------------------------------------------


def _action(names: _Names, name: str, action: SpecAction) -> list[str]:
    reader = _TermReader(names, names.parameters(action))
    effects = {symbol: _assignment(reader, symbol, action) for symbol in action.assigned}
    effects = {symbol: effect for symbol, effect in effects.items() if effect != TRUE}
    open_ = [symbol for symbol in effects if action.updates[symbol].open]
    items = [reader.node(guard) for guard in _flattened(z3.And(*action.guards, z3.BoolVal(True)))]
    items += [effect for symbol, effect in effects.items() if symbol not in open_]
    # What is open is chosen last; a condition follows as soon as all that it reads has been chosen.
    reader = replace(reader, assigned=frozenset(effects))
    wheres = list(_flattened(z3.And(action.where_, z3.BoolVal(True))))
    for number in range(len(open_) + 1):
        items += [effects[symbol] for symbol in open_[:number][-1:]]
        waiting = {symbol + NEXT for symbol in open_[number:]}
        items += [reader.node(where) for where in wheres if not symbols_of(where) & waiting]
        wheres = [where for where in wheres if symbols_of(where) & waiting]
    lines = listed("/\\", [item for item in items if item != TRUE] or [TRUE])
    same = [symbol.name for symbol in names.vocabulary.mutable if symbol.name not in effects]
    if same:
        lines += filled("/\\ UNCHANGED << ", _grouped(names, same), " >>")
    _, head = names.call(name, action)
    return [*comment(action.text), *comment("(A fault.)" if action.fault else ""), *definition(head, lines)]


def _grouped(names: _Names, symbols: Sequence[str]) -> list[str]:
    """The groups that are all in ``symbols``, and the variables of the rest."""
    groups = {name: group for name, group in names.export.groups.items() if set(group) <= set(symbols)}
    inside = {symbol for group in groups.values() for symbol in group}
    return [*groups, *(names.symbols[symbol] for symbol in symbols if symbol not in inside)]


Part = tuple[tuple[Term, ...], Term]
"""One assignment to a symbol: where, and what."""


def _assignment(reader: _TermReader, name: str, action: SpecAction) -> TlaNode:
    """All that happens to one symbol, as one formula that gives it its next value; TRUE if nothing does."""
    names = reader.names
    symbol, letters = names.vocabulary.symbols[name], names.vocabulary.letters.values()
    parts = _effective(names, action.assigned[name])
    primed = names.symbols[name] + NEXT
    if len(parts) == 1 and parts[0][1] is ANY and all(names.is_letter(part) for part in parts[0][0]):
        return Text(f"{primed} \\in {names.type(symbol)}", COMPARISON)
    places = _places(names, symbol, parts)
    inner = replace(
        reader, scope={**reader.scope, **{str(placeholder): str(placeholder) for placeholder in places}}
    )
    values: list[TlaNode] = []
    chosen: dict[str, str] = {}
    for key, value in parts:
        bound = [
            (part, placeholder)
            for part, placeholder in zip(key, places, strict=True)
            if names.is_letter(part)
        ]
        if value is ANY:
            new = names.bound("new", symbol.value, [*inner.scope.values(), *chosen])
            chosen[new] = _functions([placeholder.sort() for _, placeholder in bound], symbol.value)
            values.append(
                Text(f"{new}[{', '.join(str(placeholder) for _, placeholder in bound)}]" if bound else new)
            )
        else:
            term = value if z3.is_expr(value) else z3.BoolVal(value)
            stray = [letter for letter in free(term, letters) if not any(letter is part for part, _ in bound)]
            if stray:
                raise ValueError(f"{action.name}: {name} is assigned {stray}, which it does not range over")
            values.append(inner.node(z3.substitute(term, *bound)))
    after = _next_value(inner, symbol, parts, places, values)
    node: TlaNode = TRUE if after is None else VariableAssignment(primed, after)
    for new, domain in reversed(chosen.items()):
        node = Quantifier(f"\\E {new} \\in {domain} :", node)
    return node


def _next_value(
    reader: _TermReader,
    symbol: Symbol,
    parts: Sequence[Part],
    places: Sequence[Term],
    values: Sequence[TlaNode],
) -> TlaNode | None:
    """None if it is the present one, as where actions share more than they change."""
    names, head = reader.names, reader.names.of(symbol)
    if not places:
        return None if values[-1] == Text(head) else values[-1]
    texts = [str(placeholder) for placeholder in places]
    same: TlaNode = Text(f"{head}[{', '.join(texts)}]")
    body = same
    updates = []
    for (key, _), value in zip(parts, values, strict=True):
        own = [
            text if names.is_letter(part) else reader.node(part).flat()
            for text, part in zip(texts, key, strict=True)
        ]
        unchanged = value == Text(f"{head}[{', '.join(own)}]")
        here = [
            Comparison(Text(text), "=", Text(at)) for text, at in zip(texts, own, strict=True) if text != at
        ]
        body = _choice(_junction("/\\", here, TRUE, FALSE), same if unchanged else value, body)
        updates.append((f"![{', '.join(own)}] = ", value))
    if body == same:
        return None
    if any(names.is_letter(part) for key, _ in parts for part in key):
        return Brackets(f"{_ranges(texts, symbol.arguments)} |->", (("", body),))
    return Brackets(f"{head} EXCEPT", tuple(updates))


def _effective(names: _Names, parts: Sequence[Part]) -> list[Part]:
    """Those assignments that no later one overrides everywhere."""
    kept: list[Part] = []
    for key, value in parts:
        ranging = [part for part in key if names.is_letter(part)]
        if len({part.get_id() for part in ranging}) < len(ranging):
            raise ValueError(f"{key} has one letter twice")
        kept = [
            (old, before)
            for old, before in kept
            if not all(names.is_letter(new) or new.eq(part) for new, part in zip(key, old, strict=True))
        ]
        kept.append((key, value))
    return kept


def _places(names: _Names, symbol: Symbol, parts: Sequence[Part]) -> list[Term]:
    """One variable for each argument of ``symbol``, with the assignments' letters where they have some."""
    written = [
        [str(key[i]) for key, _ in parts if names.is_letter(key[i])] for i in range(len(symbol.arguments))
    ]
    places: list[Term] = []
    for own, sort in zip(written, symbol.arguments, strict=True):
        wish = next(iter([*own, *names.letters[_set(sort)]]), "x")
        others = [letter for other in written if other is not own for letter in other[:1]]
        scope = [str(placeholder) for placeholder in places] + ([] if own else others)
        places.append(z3.Const(names.bound(wish, sort, scope), sort))
    return places


# -- initial states ------------------------------------------------------------------------------------


class _Conjunct(NamedTuple):
    """A formula without a quantifier for all in front, the variables that it is for all of, its symbols."""

    variables: list[Term]
    body: Term
    symbols: frozenset[str]


def _initial(names: _Names) -> list[str]:
    """A list that TLC can execute: what the condition defines is assigned, the rest chosen and tested."""
    conjuncts = list(_conjuncts(names, names.vocabulary.close(names.export.initial), []))
    todo = {symbol.name: symbol for symbol in names.vocabulary.mutable}
    items: list[TlaNode] = []
    while todo:
        found = next(_defining(todo, conjuncts), None)
        if found is None:
            symbol = next(iter(todo.values()))
            items.append(Text(f"{names.of(symbol)} \\in {names.type(symbol)}", COMPARISON))
        else:
            symbol, places, value, number = found
            del conjuncts[number]
            texts = [str(placeholder) for placeholder in places]
            node = _TermReader(names, dict(zip(texts, texts, strict=True))).node(value)
            if places:
                node = Brackets(f"{_ranges(texts, symbol.arguments)} |->", (("", node),))
            items.append(VariableAssignment(names.of(symbol), node))
        del todo[symbol.name]
        for conjunct in conjuncts:
            if not conjunct.symbols & todo.keys():
                used = free(conjunct.body, conjunct.variables)
                items.append(
                    _TermReader(names).node(z3.ForAll(used, conjunct.body) if used else conjunct.body)
                )
        conjuncts = [conjunct for conjunct in conjuncts if conjunct.symbols & todo.keys()]
    return listed("/\\", [item for item in items if item != TRUE] or [TRUE])


def _conjuncts(names: _Names, formula: Term, variables: list[Term]) -> Iterator[_Conjunct]:
    if z3.is_and(formula):
        for part in formula.children():
            yield from _conjuncts(names, part, variables)
    elif z3.is_quantifier(formula) and formula.is_forall():
        new: list[Term] = []
        for i in range(formula.num_vars()):
            sort = formula.var_sort(i)
            wish = formula.var_name(i)
            if wish not in names.letters[_set(sort)]:
                wish = next(iter(names.letters[_set(sort)]), wish)
            new.append(z3.Const(names.bound(wish, sort, map(str, [*variables, *new])), sort))
        yield from _conjuncts(names, z3.substitute_vars(formula.body(), *reversed(new)), [*variables, *new])
    else:
        yield _Conjunct(variables, formula, frozenset(symbols_of(formula)))


def _defining(
    todo: Mapping[str, Symbol], conjuncts: Sequence[_Conjunct]
) -> Iterator[tuple[Symbol, list[Term], Term, int]]:
    """Symbols that a conjunct defines by what is known: the symbol, its places, its value, which conjunct."""
    for symbol in todo.values():
        for number, (variables, body, used) in enumerate(conjuncts):
            if symbol.name not in used:
                continue
            for here, value in _sides(body):
                places = here.children()
                if (
                    z3.is_app(here)
                    and here.decl().name() == symbol.name
                    and len(free(here, variables)) == len(places)
                    and len({placeholder.get_id() for placeholder in places}) == len(places)
                    and all(any(placeholder.eq(variable) for variable in variables) for placeholder in places)
                    and len(free(value, variables)) == len(free(value, places))
                    and not symbols_of(value) & todo.keys()
                ):
                    yield symbol, places, value, number


def _sides(body: Term) -> Iterator[tuple[Term, Term]]:
    """The ways to read ``body`` as what is defined and its value."""
    if z3.is_eq(body):
        left, right = body.children()
        yield from ((left, right), (right, left))
    elif z3.is_not(body):
        yield body.arg(0), z3.BoolVal(False)
    elif z3.is_app(body):
        yield body, z3.BoolVal(True)


# -- the file ------------------------------------------------------------------------------------------


def _file(name: str, *paragraphs: Sequence[str]) -> str:
    head, foot = f" MODULE {name} ".center(WIDTH, "-"), "=" * WIDTH
    return "\n\n".join("\n".join(lines) for lines in ([head], *paragraphs, [foot]) if lines) + "\n"


def _constants(names: _Names) -> Iterator[list[str]]:
    export = names.export
    rows = [(sort, "", "") for sort in names.unbounded]
    rows += [(greatest, "Nat", f"the greatest {sort}") for sort, greatest in export.naturals.items()]
    rows += [(names.of(symbol), names.type(symbol), symbol.meaning) for symbol in names.fixed]
    yield _declared("CONSTANTS", rows)
    for sort, values in names.vocabulary.values.items():
        yield filled(f"{sort} == {{", [f'"{value}"' for value in values], "}")
    yield [f"{sort} == 0..{greatest}" for sort, greatest in export.naturals.items()]
    yield [f"ASSUME {greatest} \\in Nat" for greatest in export.naturals.values()] + [
        f"ASSUME {names.of(symbol)} \\in {names.type(symbol)}" for symbol in names.fixed
    ]
    for key, formula in export.axioms.items():
        yield definition(f"ASSUME {names.axioms[key]}", _closed(names, formula))


def _variables(names: _Names) -> Iterator[list[str]]:
    symbols = names.vocabulary.mutable
    yield _declared(
        "VARIABLES", [(names.of(symbol), names.type(symbol), symbol.meaning) for symbol in symbols]
    )
    for name, group in names.export.groups.items():
        yield filled(f"{name} == << ", [names.symbols[symbol] for symbol in group], " >>")
    yield filled("vars == << ", [names.of(symbol) for symbol in symbols], " >>")
    types = [Text(f"{names.of(symbol)} \\in {names.type(symbol)}", COMPARISON) for symbol in symbols]
    yield definition("TypeOK", listed("/\\", types))


def _declared(keyword: str, rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Declarations: name, type, meaning."""
    lines = []
    for i, (name, kind, meaning) in enumerate(rows):
        declared = f"  {name}{',' if i < len(rows) - 1 else ''}"
        text = ": ".join(part for part in (kind, " ".join(meaning.split())) if part)
        if len(declared) + len(text) + 5 > WIDTH:
            lines += [*indent(2, comment(text)), declared]
        else:
            lines.append(f"{declared}  \\* {text}" if text else declared)
    return [keyword, *lines] if lines else []


def _behaviours(names: _Names) -> Iterator[list[str]]:
    steps, fair = [], []
    for name, action in names.actions:
        ranges, call = names.call(name, action)
        steps.append(Quantifier(f"\\E {ranges} :", Text(call)) if ranges else Text(call))
        if not action.fault:
            weak = Text(f"WF_vars({call})")
            fair.append(Quantifier(f"\\A {ranges} :", weak) if ranges else weak)
    yield definition("Next", listed("\\/", steps))
    yield ["Spec == Init /\\ [][Next]_vars"]
    yield [*comment("Faults need not happen."), *definition("Fairness", listed("/\\", fair or [TRUE]))]
    yield ["FairSpec == Spec /\\ Fairness"]
