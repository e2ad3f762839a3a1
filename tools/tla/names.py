"""Who is called what in TLA+: no name twice, and none that the language reserves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import z3
from rebalance_verifier.specs.logic.language import SpecAction, Symbol, Term, Vocabulary

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    ACTION ASSUME ASSUMPTION AXIOM BOOLEAN BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS
    DOMAIN ELSE ENABLED EXCEPT EXTENDS FALSE HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW
    OBVIOUS OMITTED ONLY OTHER PICK PROOF PROPOSITION PROVE QED RECURSIVE STATE STRING SUBSET SUFFICES TAKE
    TEMPORAL THEN THEOREM TRUE UNCHANGED UNION USE VARIABLE VARIABLES WITH WITNESS
    Nat Print PrintT Assert JavaTime TLCGet TLCSet TLCEval Permutations SortSeq RandomElement Any ToString
    vars TypeOK Init Step Fault Next Spec Fairness FairSpec
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


def camel(name: str) -> str:
    """A definition's name.

    >>> camel("join_group"), camel("one owner at most")
    ('JoinGroup', 'OneOwnerAtMost')
    """
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


class TlaNames:
    """Who is called what: no name twice, and none that TLA+ reserves."""

    def __init__(self, export: Export) -> None:
        self.export, self.vocabulary = export, export.vocabulary
        self.letters: dict[str, list[str]] = {sort: [] for sort in (*self.vocabulary.sorts, "BOOLEAN")}
        """The capital letters of each sort."""
        for name, letter in self.vocabulary.letters.items():
            self.letters[set_of(letter.sort())].append(name)
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
        letters = self.letters[set_of(sort)]
        return next(name for name in (wish, *letters, *numbered) if name not in avoid)

    def type(self, symbol: Symbol) -> str:
        return function_set(symbol.arguments, symbol.value)

    def parameters(self, action: SpecAction) -> dict[str, str]:
        """TLA+'s names of the action's parameters."""
        found: dict[str, str] = {}
        for constant in action.parameters:
            found[str(constant)] = self.bound(str(constant), constant.sort(), found.values())
        return found

    def call(self, name: str, action: SpecAction) -> tuple[str, str]:
        """The ranges of the action's parameters (none: ""), and the action applied to them."""
        texts = list(self.parameters(action).values())
        bounds = ranges(texts, [constant.sort() for constant in action.parameters])
        return bounds, f"{name}({', '.join(texts)})" if texts else name


def set_of(sort: Term) -> str:
    return "BOOLEAN" if sort == z3.BoolSort() else str(sort.name())


def function_set(arguments: Sequence[Term], value: Term) -> str:
    r"""``[Consumer \X Partition -> BOOLEAN]``; without arguments the values themselves."""
    domain = " \\X ".join(map(set_of, arguments))
    return f"[{domain} -> {set_of(value)}]" if arguments else set_of(value)


def ranges(texts: Sequence[str], sorts: Sequence[Term]) -> str:
    r"""``C, D \in Consumer, P \in Partition``."""
    groups: list[tuple[str, list[str]]] = []
    for text, sort in zip(texts, sorts, strict=True):
        if groups and groups[-1][0] == set_of(sort):
            groups[-1][1].append(text)
        else:
            groups.append((set_of(sort), [text]))
    return ", ".join(f"{', '.join(members)} \\in {sort}" for sort, members in groups)


def elements_of(names: TlaNames, sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """The elements of each constant set."""
    same_names("sizes", [*names.unbounded, *names.export.naturals], sizes)
    return {
        sort: [f"{names.letters[sort][0].lower()}{number + 1}" for number in range(sizes[sort])]
        for sort in names.unbounded
    }


def same_names(what: str, wanted: Sequence[str], given: Iterable[str]) -> None:
    wrong = sorted(set(wanted) ^ set(given))
    if wrong:
        raise ValueError(f"{what}: missing or unknown: {', '.join(wrong)}")
