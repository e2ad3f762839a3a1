"""State machines in first-order logic: sorts, symbols, states, actions, on z3's terms.

A capital letter in a formula is a variable for all elements of its sort, as in Ivy: ``s.owned(C, P)``; the
small letter is one element, a parameter of an action. An action is a Python function of the state before
(``s``), the state after (``t``) and its parameters. It is run once, with terms:

    def forget(s, t, c):
        t.when(s.state(c) == STABLE)
        t.since[c, P] = none          # for this c and every P; every other consumer keeps what it has

What an action does not assign stays as it is. ``ANY`` assigns anything; ``t.where`` says what it has to
fulfil. One action is thereby a formula over two states, and its effect on a formula is a substitution, so
that the proofs need neither a second copy of the state nor frame axioms.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import z3
from rebalance_verifier.specs.logic.smtlib import declarable

Term = Any
"""A z3 expression; z3 has no types for checkers."""

Effect = Callable[..., None]
"""What an action does: a function of the states before and after it, and of its parameters."""

ANY = object()
"""The value of what an action leaves open."""


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """One relation or function. ``value`` is the sort of its values, Bool for a relation.

    ``fixed`` ones never change in a run.
    """

    name: str
    arguments: tuple[Any, ...]
    value: Any
    fixed: bool
    meaning: str

    def of(self, mark: str = "") -> Any:
        """Return its z3 declaration; ``mark`` tells apart copies in different states."""
        if mark not in self._copies:
            self._copies[mark] = z3.Function(self.name + mark, *self.arguments, self.value)
        return self._copies[mark]

    def anywhere(self, mark: str = "") -> Term:
        """Return its value at z3's variables 0, 1, 2 ..., as ``substitute_funs`` takes a function."""
        if mark not in self._functions:
            places = (z3.Var(i, sort) for i, sort in enumerate(self.arguments))
            self._functions[mark] = self.of(mark)(*places)
        return self._functions[mark]

    # z3 takes its time for each of these, and they are asked for at every step.

    @cached_property
    def _copies(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _functions(self) -> dict[str, Term]:
        return {}


class Vocabulary:
    """Sorts with their letters, and symbols. Declared once, read in order."""

    def __init__(self) -> None:
        self.sorts: dict[str, Any] = {}
        self.values: dict[str, tuple[str, ...]] = {}
        """The values of the sorts that are enumerations."""
        self.letters: dict[str, Any] = {}
        """Variables for all, by their capital letter."""
        self.symbols: dict[str, Symbol] = {}

    def extended(self) -> Vocabulary:
        """Return another one that has all of this one, and may have more."""
        other = Vocabulary()
        other.sorts, other.values = {**self.sorts}, {**self.values}
        other.letters, other.symbols = {**self.letters}, {**self.symbols}
        return other

    def sort(self, name: str, letters: str) -> tuple[Any, ...]:
        """Return an unbounded sort, and one variable for each of ``letters``."""
        sort = z3.DeclareSort(declarable(name))
        self.sorts[name] = sort
        for letter in letters:
            self.letters[letter] = z3.Const(letter, sort)
        return (sort, *(self.letters[letter] for letter in letters))

    def enumeration(self, name: str, values: Sequence[str]) -> tuple[Any, ...]:
        """Return a sort of exactly ``values``, and the values."""
        sort, constants = z3.EnumSort(declarable(name), list(map(declarable, values)))
        self.sorts[name] = sort
        self.values[name] = tuple(values)
        return (sort, *constants)

    def fixed(self, name: str, *arguments: Any, value: Any = None, meaning: str = "") -> Any:
        """Return a relation (or function, given ``value``) that is the same in every state; usable at
        once."""
        symbol = Symbol(
            name=name,
            arguments=arguments,
            value=z3.BoolSort() if value is None else value,
            fixed=True,
            meaning=meaning,
        )
        self.symbols[name] = symbol
        return symbol.of()() if not arguments else symbol.of()

    def relation(self, name: str, *arguments: Any, meaning: str = "") -> None:
        """Declare a relation of a state."""
        self.symbols[name] = Symbol(
            name=name, arguments=arguments, value=z3.BoolSort(), fixed=False, meaning=meaning
        )

    def function(self, name: str, *arguments: Any, value: Any, meaning: str = "") -> None:
        """Declare a function of a state; without arguments a constant of it."""
        self.symbols[name] = Symbol(name=name, arguments=arguments, value=value, fixed=False, meaning=meaning)

    @property
    def mutable(self) -> list[Symbol]:
        """Return what a state consists of."""
        return [symbol for symbol in self.symbols.values() if not symbol.fixed]

    def state(self, mark: str = "") -> State:
        """Return the state of that mark; no mark is the state before a step."""
        return State(self, mark)

    def close(self, formula: Term) -> Term:
        """``formula`` for all of its capital letters.

        >>> v = Vocabulary()
        >>> _, C = v.sort("Consumer", "C")
        >>> v.relation("up", _)
        >>> v.close(v.state().up(C))
        ForAll(C, up(C))
        """
        letters = free(formula, self.letters.values())
        return z3.ForAll(letters, formula) if letters else formula

    def closed(self, formulas: Mapping[str, Term]) -> dict[str, Term]:
        """Return each of ``formulas`` for all of its capital letters."""
        return {name: self.close(formula) for name, formula in formulas.items()}

    def actions(
        self, effects: Iterable[Effect], faults: Collection[Effect], instead: Iterable[Effect] = ()
    ) -> tuple[SpecAction, ...]:
        """Return the actions that ``effects`` describe, those ``instead`` in the place of what has the same
        name.

        Raises ValueError for one that takes the place of no action.
        """
        by_name = {effect.__name__: effect for effect in effects}
        for effect in instead:
            if effect.__name__ not in by_name:
                raise ValueError(f"no action {effect.__name__!r} to be replaced")
            by_name[effect.__name__] = effect
        named = {effect.__name__ for effect in faults}
        return tuple(_action(self, effect, name in named) for name, effect in by_name.items())

    def action(self, effect: Effect, *, fault: bool = False, name: str = "") -> SpecAction:
        """Return the action that ``effect`` describes: a function of (s, t, parameters...).

        A parameter's sort is that of its first letter as a capital. Raises ValueError for a letter that is
        not declared.
        """
        names = list(inspect.signature(effect).parameters)[2:]
        parameters = tuple(self.parameter(letter) for letter in names)
        after = After(self)
        effect(self.state(), after, *parameters)
        return SpecAction(
            name=name or effect.__name__,
            parameters=parameters,
            guard=z3.And([*after._guards]) if after._guards else z3.BoolVal(True),
            updates={name: self._update(name, parts) for name, parts in after._assigned.items()},
            where_=z3.And([*after._wheres]) if after._wheres else z3.BoolVal(True),
            fault=fault,
            text=inspect.cleandoc(effect.__doc__ or ""),
            guards=tuple(after._guards),
            assigned={name: tuple(parts) for name, parts in after._assigned.items()},
        )

    def parameter(self, name: str) -> Any:
        """Return the element that a small letter stands for. Raises ValueError for one without a sort."""
        letter = name[0].upper()
        if letter not in self.letters:
            raise ValueError(f"parameter {name}: no sort has the letter {letter}")
        return z3.Const(name, self.letters[letter].sort())

    def _update(self, name: str, parts: Sequence[tuple[tuple[Any, ...], Any]]) -> Update:
        symbol = self.symbols[name]
        places = tuple(z3.Const(f"{name}_{i}", sort) for i, sort in enumerate(symbol.arguments))
        body = symbol.of()(*places)
        open_ = False
        for key, value in parts:
            if len(key) != len(places):
                raise ValueError(f"{name} takes {len(places)} arguments, not {len(key)}")
            fixed, bound = [], []
            for placeholder, term in zip(places, key, strict=True):
                if any(term is letter for letter in self.letters.values()):
                    bound.append((term, placeholder))
                else:
                    fixed.append(placeholder == term)
            if value is ANY:
                value, open_ = symbol.of(OPEN)(*places), True
            elif not z3.is_expr(value):
                value = z3.BoolVal(value)
            value = z3.substitute(value, *bound)
            body = z3.If(z3.And(fixed) if len(fixed) > 1 else fixed[0], value, body) if fixed else value
        return Update(places, body, open_)


@cache
def _action(vocabulary: Vocabulary, effect: Effect, fault: bool) -> SpecAction:
    """Formulas are long to build, and the same in every specification."""
    return vocabulary.action(effect, fault=fault)


OPEN = "!"
"""Mark of the copy of a symbol that ``ANY`` refers to."""
NEXT = "'"
"""Mark of the state after a step, in ``t.where``."""


class State:
    """The symbols of one state: ``s.owned(c, P)``, and ``s.group`` for a constant."""

    def __init__(self, vocabulary: Vocabulary, mark: str = "") -> None:
        self._vocabulary, self._mark = vocabulary, mark

    @property
    def vocabulary(self) -> Vocabulary:
        """Return its symbols."""
        return self._vocabulary

    def __getattr__(self, name: str) -> Any:
        if name not in self._vocabulary.symbols:
            raise AttributeError(f"no symbol {name!r} in the vocabulary")
        symbol = self._vocabulary.symbols[name]
        declared = symbol.of("" if symbol.fixed else self._mark)
        return declared if symbol.arguments else declared()


class After:
    """The state after a step, while an action is described: assigned to, and read in ``where`` only."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.__dict__.update(_vocabulary=vocabulary, _guards=[], _wheres=[], _assigned={})

    _guards: list[Term]
    _wheres: list[Term]
    _assigned: dict[str, list[tuple[tuple[Any, ...], Any]]]

    def when(self, *conditions: Term) -> None:
        """Require all of these before the step."""
        self._guards.extend(conditions)

    def where(self, *conditions: Term) -> None:
        """Require all of these of what is ``ANY``, for all of their capital letters."""
        vocabulary: Vocabulary = self.__dict__["_vocabulary"]
        self._wheres.extend(vocabulary.close(condition) for condition in conditions)

    def __getattr__(self, name: str) -> _Target:
        symbol = self.__dict__["_vocabulary"].symbols[name]
        if symbol.fixed:
            raise ValueError(f"{name} is the same before and after; say it without the state")
        return _Target(self, symbol)

    def __setattr__(self, name: str, value: Any) -> None:
        self._assigned.setdefault(name, []).append(((), value))


class _Target:
    def __init__(self, after: After, symbol: Symbol) -> None:
        self._after, self._symbol = after, symbol

    def __setitem__(self, key: Any, value: Any) -> None:
        key = key if isinstance(key, tuple) else (key,)
        self._after._assigned.setdefault(self._symbol.name, []).append((key, value))

    def __call__(self, *arguments: Term) -> Term:
        return self._symbol.of(NEXT)(*arguments)

    def __eq__(self, other: object) -> bool:
        raise TypeError(f"in where, the new value of a constant is t.{self._symbol.name}()")

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Update:
    """New value of a symbol at ``places``: ``body``, over the state before. ``open``: it uses ``ANY``."""

    places: tuple[Any, ...]
    body: Term
    open: bool

    def as_function(self) -> Term:
        """``body`` with its places as z3's variables, for ``substitute_funs``."""
        return self._function

    @cached_property
    def _function(self) -> Term:
        return z3.substitute(
            self.body,
            *[(placeholder, z3.Var(i, placeholder.sort())) for i, placeholder in enumerate(self.places)],
        )


@dataclass(frozen=True, kw_only=True)
class SpecAction:
    """One kind of step: when it is possible for these parameters, and what it changes.

    ``guards`` and ``assigned`` are the same as written, for those who print it.
    """

    name: str
    parameters: tuple[Any, ...]
    guard: Term
    updates: Mapping[str, Update]
    where_: Term
    fault: bool
    text: str
    guards: tuple[Term, ...]
    assigned: Mapping[str, tuple[tuple[tuple[Any, ...], Any], ...]]

    def guard_of(self, *elements: Term) -> Term:
        """Return the condition under which it is possible for these elements as its parameters."""
        return z3.substitute(self.guard, *zip(self.parameters, elements, strict=True))

    def after(self, vocabulary: Vocabulary, formula: Term) -> Term:
        """``formula``, of the state before or marked ``NEXT``, as a formula of the state before that says
        that it will hold after this action."""
        pairs = [
            (vocabulary.symbols[name].of(), update.as_function()) for name, update in self.updates.items()
        ]
        return z3.substitute_funs(formula, *pairs) if pairs else formula

    def where(self, vocabulary: Vocabulary) -> Term:
        """Return what has to hold of what is open, over the state before and the open symbols."""
        return self.across(vocabulary, self.where_)

    def across(self, vocabulary: Vocabulary, formula: Term) -> Term:
        """``formula`` of two states, the one before and the one marked ``NEXT``, for this action: over the
        state before and the open symbols."""
        return across(
            vocabulary, formula, {name: update.as_function() for name, update in self.updates.items()}
        )


def across(vocabulary: Vocabulary, formula: Term, updates: Mapping[str, Term]) -> Term:
    """``formula`` of two states over the state before, in a step that ``updates`` these symbols only."""
    pairs = [(symbol.of(NEXT), updates.get(symbol.name, symbol.anywhere())) for symbol in vocabulary.mutable]
    return z3.substitute_funs(formula, *pairs)


def free(formula: Term, among: Iterable[Term]) -> list[Term]:
    """Return those of the constants ``among`` that occur in ``formula``, in the order given."""
    found = {leaf.get_id() for leaf in leaves(formula)}
    return [constant for constant in among if constant.get_id() in found]


def leaves(formula: Term) -> Iterator[Term]:
    """Yield all constants in ``formula``, each once."""
    return (part for part in parts(formula) if z3.is_app(part) and part.num_args() == 0)


def parts(formula: Term) -> Iterator[Term]:
    """Yield all subterms of ``formula``, each once."""
    seen: set[int] = set()
    stack = [formula]
    while stack:
        term = stack.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        yield term
        stack.extend(term.children() if z3.is_app(term) else [term.body()] if z3.is_quantifier(term) else [])


def symbols_of(formula: Term) -> set[str]:
    """Return names of the functions and relations in ``formula``."""
    known = _SYMBOLS.get(formula.get_id())
    if known is None:  # the formula is kept, or its id would be that of another
        found = {part.decl().name() for part in parts(formula) if z3.is_app(part)}
        known = _SYMBOLS[formula.get_id()] = formula, found
    return known[1]


_SYMBOLS: dict[int, tuple[Term, set[str]]] = {}
"""What was found, by the formula's id: the same few are asked about for every action."""
