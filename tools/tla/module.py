r"""The protocol as a TLA+ module: the same state machine, in the notation others read.

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

from collections.abc import Iterator, Sequence
from dataclasses import replace

import z3
from rebalance_verifier.specs.logic.language import ANY, NEXT, SpecAction, Symbol, Term, free, symbols_of

from tools.tla.formulas import TermReader, choice, closed, flattened, junction
from tools.tla.layout import (
    COMPARISON,
    FALSE,
    TRUE,
    WIDTH,
    Brackets,
    Comparison,
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
from tools.tla.names import Export, TlaNames, function_set, ranges, set_of


def module(export: Export) -> str:
    """The TLA+ module ``export.name``.

    Raises ValueError for a formula without a counterpart: a free letter, arithmetic.
    """
    names = TlaNames(export)
    return file_text(
        export.name,
        comment(export.text),
        ["EXTENDS Naturals"],
        *_constants(names),
        *_variables(names),
        definition("Init", _initial(names)),
        *[action_lines(names, name, action) for name, action in names.actions],
        *_behaviours(names),
        *[definition(name, closed(names, export.invariants[key])) for key, name in names.invariants.items()],
    )


# -- actions -------------------------------------------------------------------------------------------


def action_lines(names: TlaNames, name: str, action: SpecAction) -> list[str]:
    """The definition of one action, under ``name``."""
    reader = TermReader(names, names.parameters(action))
    effects = {symbol: _assignment(reader, symbol, action) for symbol in action.assigned}
    effects = {symbol: effect for symbol, effect in effects.items() if effect != TRUE}
    open_ = [symbol for symbol in effects if action.updates[symbol].open]
    items = [reader.node(guard) for guard in flattened(z3.And(*action.guards, z3.BoolVal(True)))]
    items += [effect for symbol, effect in effects.items() if symbol not in open_]
    # What is open is chosen last; a condition follows as soon as all that it reads has been chosen.
    reader = replace(reader, assigned=frozenset(effects))
    wheres = list(flattened(z3.And(action.where_, z3.BoolVal(True))))
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


def _grouped(names: TlaNames, symbols: Sequence[str]) -> list[str]:
    """The groups that are all in ``symbols``, and the variables of the rest."""
    groups = {name: group for name, group in names.export.groups.items() if set(group) <= set(symbols)}
    inside = {symbol for group in groups.values() for symbol in group}
    return [*groups, *(names.symbols[symbol] for symbol in symbols if symbol not in inside)]


Part = tuple[tuple[Term, ...], Term]
"""One assignment to a symbol: where, and what."""


def _assignment(reader: TermReader, name: str, action: SpecAction) -> TlaNode:
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
            chosen[new] = function_set([placeholder.sort() for _, placeholder in bound], symbol.value)
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
    reader: TermReader,
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
        body = choice(junction("/\\", here, TRUE, FALSE), same if unchanged else value, body)
        updates.append((f"![{', '.join(own)}] = ", value))
    if body == same:
        return None
    if any(names.is_letter(part) for key, _ in parts for part in key):
        return Brackets(f"{ranges(texts, symbol.arguments)} |->", (("", body),))
    return Brackets(f"{head} EXCEPT", tuple(updates))


def _effective(names: TlaNames, parts: Sequence[Part]) -> list[Part]:
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


def _places(names: TlaNames, symbol: Symbol, parts: Sequence[Part]) -> list[Term]:
    """One variable for each argument of ``symbol``, with the assignments' letters where they have some."""
    written = [
        [str(key[i]) for key, _ in parts if names.is_letter(key[i])] for i in range(len(symbol.arguments))
    ]
    places: list[Term] = []
    for own, sort in zip(written, symbol.arguments, strict=True):
        wish = next(iter([*own, *names.letters[set_of(sort)]]), "x")
        others = [letter for other in written if other is not own for letter in other[:1]]
        scope = [str(placeholder) for placeholder in places] + ([] if own else others)
        places.append(z3.Const(names.bound(wish, sort, scope), sort))
    return places


# -- initial states ------------------------------------------------------------------------------------


def _initial(names: TlaNames) -> list[str]:
    """A list that TLC can execute: what the condition gives a value is assigned, the rest chosen, tested."""
    values: dict[str, Term] = {}
    tests: list[TlaNode] = []
    for part in flattened(z3.And(names.export.initial, z3.BoolVal(True))):
        here, value = _equation_for_all(part)
        if here is None or symbols_of(value) & {symbol.name for symbol in names.vocabulary.mutable}:
            tests.append(TermReader(names).node(names.vocabulary.close(part)))
        else:
            values[here] = value
    items: list[TlaNode] = []
    for symbol in names.vocabulary.mutable:
        if symbol.name in values:
            node = TermReader(names).node(values[symbol.name])
            if symbol.arguments:
                texts = list(map(str, _places(names, symbol, [])))
                node = Brackets(f"{ranges(texts, symbol.arguments)} |->", (("", node),))
            items.append(VariableAssignment(names.of(symbol), node))
    free_ones = [symbol for symbol in names.vocabulary.mutable if symbol.name not in values]
    items += [Text(f"{names.of(symbol)} \\in {names.type(symbol)}", COMPARISON) for symbol in free_ones]
    return listed("/\\", [item for item in (*items, *tests) if item != TRUE] or [TRUE])


def _equation_for_all(part: Term) -> tuple[str | None, Term]:
    """The symbol that has one value everywhere, and the value: ``symbol(x, y) == value`` for all x, y."""
    body = part.body() if z3.is_quantifier(part) and part.is_forall() else part
    if z3.is_eq(body):
        here, value = body.children()
        variables = [z3.get_var_index(at) for at in here.children() if z3.is_var(at)]
        count = part.num_vars() if body is not part else 0
        constant = z3.is_app(value) and value.num_args() == 0
        if (
            constant
            and z3.is_app(here)
            and variables == [*reversed(range(count))]
            and here.num_args() == count
        ):
            return here.decl().name(), value
    return None, part


# -- the file ------------------------------------------------------------------------------------------


def file_text(name: str, *paragraphs: Sequence[str]) -> str:
    """A module of these paragraphs; empty ones are left out."""
    head, foot = f" MODULE {name} ".center(WIDTH, "-"), "=" * WIDTH
    return "\n\n".join("\n".join(lines) for lines in ([head], *paragraphs, [foot]) if lines) + "\n"


def _constants(names: TlaNames) -> Iterator[list[str]]:
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
        yield definition(f"ASSUME {names.axioms[key]}", closed(names, formula))


def _variables(names: TlaNames) -> Iterator[list[str]]:
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


def step(names: TlaNames, name: str, action: SpecAction) -> TlaNode:
    """The action with some parameters."""
    bounds, call = names.call(name, action)
    return Quantifier(f"\\E {bounds} :", Text(call)) if bounds else Text(call)


def _behaviours(names: TlaNames) -> Iterator[list[str]]:
    parts = {
        name: [step(names, called, action) for called, action in names.actions if action.fault == fault]
        for name, fault in (("Step", False), ("Fault", True))
    }
    parts = {name: steps for name, steps in parts.items() if steps}
    for name, steps in parts.items():
        yield definition(name, listed("\\/", steps))
    yield definition("Next", listed("\\/", [Text(name) for name in parts]))
    fair: list[TlaNode] = []
    for name, action in names.actions:
        bounds, call = names.call(name, action)
        if not action.fault:
            weak = Text(f"WF_vars({call})")
            fair.append(Quantifier(f"\\A {bounds} :", weak) if bounds else weak)
    yield ["Spec == Init /\\ [][Next]_vars"]
    yield [*comment("Faults need not happen."), *definition("Fairness", listed("/\\", fair or [TRUE]))]
    yield ["FairSpec == Spec /\\ Fairness"]
