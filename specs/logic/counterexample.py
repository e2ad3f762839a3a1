"""Why an obligation does not hold, as a group: who is there, what holds before, the step, what it breaks.

It is the smallest group of all and of those the plainest, so that what it shows has to be so. The state
before fulfils all that was given; whether a run leads to it is another question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from string import ascii_uppercase
from typing import Any

import z3
from rebalance_verifier.specs.logic.finite import Finite, Model, Preference
from rebalance_verifier.specs.logic.language import SpecAction, Term, Vocabulary
from rebalance_verifier.specs.logic.limit import Budget

SIZES = {"Generation": 4}
MAX_ELEMENTS = 3
"""Most elements that are tried: of some sorts, and of all others."""

TOGETHER = {"Consumer": "Member"}
"""Groups are easier to follow when every member is a consumer of its own."""

PREFER: Mapping[str, Preference] = {
    "none": lambda _: (0,),
    "zero": lambda _: (1,),
    "lt": lambda arguments: (int(arguments[0] < arguments[1]),),
    "of": lambda arguments: arguments,
    "honest": lambda _: (1,),
    "cooperative": lambda _: (1,),
    "life": lambda _: (1,),
}
"""What is plain, where it is not the first value: an honest consumer with an ordinary assignor, that runs."""

SHOWN = ("life", "group")
"""What is always told; else a value is, unless it is false, no generation, or the first of its sort."""

UNSAID = ("of", "lt", "none", "zero", "cooperative")
"""What the names of the elements say."""


@dataclass(frozen=True)
class Fact:
    """The value of one symbol at some elements, all by name; a truth value of a relation."""

    symbol: str
    of: tuple[str, ...]
    value: str | bool
    plain: bool
    """It goes without saying."""


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """``elements`` by sort. ``broken`` says for which elements the goal does not hold. Without an action
    there is no state after."""

    elements: Mapping[str, tuple[str, ...]]
    action: str
    parameters: Mapping[str, str]
    fixed: tuple[Fact, ...]
    before: tuple[Fact, ...]
    after: tuple[Fact, ...]
    goal: str
    broken: Mapping[str, str]

    def data(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def counterexample(
    vocabulary: Vocabulary,
    hypotheses: Iterable[Term],
    name: str,
    goal: Term,
    action: SpecAction | None,
    budget: Budget,
) -> Counterexample | None:
    """Return the plainest group in which the hypotheses hold and the goal does not.

    None if there is none with so few elements, or the budget was used up.
    """
    finite = Finite(vocabulary, {sort: SIZES.get(sort, MAX_ELEMENTS) for sort in vocabulary.sorts})
    finite.add(*hypotheses, z3.Not(goal))
    parameters = action.parameters if action else ()
    symbols = sorted(vocabulary.symbols.values(), key=lambda symbol: not symbol.fixed)
    shown = [*(parameter.decl() for parameter in parameters), *(symbol.of() for symbol in symbols)]
    for symbol in shown:
        finite.know(symbol)
    order = [symbol.name() for symbol in shown]
    together = {one: other for one, other in TOGETHER.items() if {one, other} <= {*vocabulary.sorts}}
    model = finite.plainest(budget, together=together, prefer=PREFER, first=order)
    return None if model is None else _as_counterexample(model, name, goal, action)


def _as_counterexample(model: Model, name: str, goal: Term, action: SpecAction | None) -> Counterexample:
    vocabulary = model.finite.vocabulary
    names = _names(model)
    fixed = [symbol.name for symbol in vocabulary.symbols.values() if symbol.fixed]
    mutable = [symbol.name for symbol in vocabulary.mutable]
    return Counterexample(
        elements={sort: tuple(names[sort]) for sort in model.finite.most},
        action=action.name if action else "",
        parameters={str(c): names[c.sort().name()][model.value(c)] for c in action.parameters}
        if action
        else {},
        fixed=tuple(_facts(model, names, fixed, None)),
        before=tuple(_facts(model, names, mutable, None)),
        after=tuple(_facts(model, names, mutable, action)) if action else (),
        goal=name,
        broken=_instance(model, names, goal),
    )


def _facts(
    model: Model, names: Mapping[str, Sequence[str]], symbols: Iterable[str], action: SpecAction | None
) -> Iterator[Fact]:
    """Yield the values of ``symbols``, after ``action`` if there is one."""
    vocabulary = model.finite.vocabulary
    for name in symbols:
        symbol = vocabulary.symbols[name]
        sort = symbol.value.name()
        for arguments in model.places(symbol.arguments):
            here = symbol.of()(*model.at(symbol.arguments, arguments))
            value = model.value(action.after(vocabulary, here) if action else here)
            of = tuple(names[s.name()][i] for s, i in zip(symbol.arguments, arguments, strict=True))
            first = names[sort][0] if sort in vocabulary.values else "none"
            shown = bool(value) if sort == "Bool" else names[sort][value]
            yield Fact(name, of, shown, shown in (False, first) and name not in SHOWN)


def _instance(model: Model, names: Mapping[str, Sequence[str]], goal: Term) -> dict[str, str]:
    """For which elements a formula that is for all does not hold."""
    if not (z3.is_quantifier(goal) and goal.is_forall()):
        return {}
    letters = [(goal.var_name(i), goal.var_sort(i)) for i in range(goal.num_vars())]
    sorts = [sort for _, sort in letters]
    for arguments in model.places(sorts):
        if not model.value(z3.substitute_vars(goal.body(), *reversed(model.at(sorts, arguments)))):
            pairs = zip(letters, arguments, strict=True)
            return {letter: names[sort.name()][i] for (letter, sort), i in pairs}
    return {}


def _names(model: Model) -> dict[str, list[str]]:
    """Return what the elements of each sort are called."""
    vocabulary = model.finite.vocabulary
    names = {
        sort: list(vocabulary.values.get(sort, [f"{sort.lower()} {i}" for i in range(len(elements))]))
        for sort, elements in model.elements.items()
    }
    elements = model.elements
    if "Consumer" in elements:
        names["Consumer"] = list(islice(ascii_uppercase, len(elements["Consumer"])))
    if "Partition" in elements:
        names["Partition"] = [f"t-{i}" for i in range(len(elements["Partition"]))]
    if "Member" in elements and "of" in vocabulary.symbols:
        of = vocabulary.symbols["of"].of()
        names["Member"] = _counted(
            [names["Consumer"][model.value(of(element))] for element in elements["Member"]], every=True
        )
    if "Assignor" in elements and "cooperative" in vocabulary.symbols:
        can = vocabulary.symbols["cooperative"].of()
        kinds = ["cooperative" if model.value(can(e)) else "eager" for e in elements["Assignor"]]
        names["Assignor"] = _counted(kinds)
    if "Generation" in elements and {"lt", "none"} <= {*vocabulary.symbols}:
        lt, none = vocabulary.symbols["lt"].of(), vocabulary.symbols["none"].of()()
        numbers = elements["Generation"]
        older = [sum(model.value(lt(other, element)) for other in numbers) for element in numbers]
        nothing = model.value(none)
        names["Generation"] = ["none" if i == nothing else str(rank - 1) for i, rank in enumerate(older)]
    return names


def _counted(names: Sequence[str], *, every: bool = False) -> list[str]:
    """Return equal words told apart by a number, ``every`` one with a number."""
    return [
        f"{name}{names[: i + 1].count(name)}" if every or names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


# -- as text -------------------------------------------------------------------------------------------


def lines(found: Counterexample) -> Iterator[tuple[str, str]]:
    """Yield the group in words: each line with a label, or with an empty one if it goes on."""
    elements = [f"{sort.lower()}s {', '.join(names)}" for sort, names in found.elements.items()]
    yield "group", "; ".join(elements)
    label = "before"
    fixed = (fact for fact in found.fixed if fact.symbol not in UNSAID)
    for owner, facts in _by_owner((*fixed, *found.before)):
        yield label, f"{owner}: {facts}"
        label = ""
    if found.action:
        given = ", ".join(f"{name}={value}" for name, value in found.parameters.items())
        yield "step", f"{found.action}({given})"
        label = "after"
        for before, after in zip(found.before, found.after, strict=True):
            if before.value != after.value:
                yield label, _change(before, after)
                label = ""
        if label:
            yield label, "nothing has changed"
    where = ", ".join(f"{letter}={name}" for letter, name in found.broken.items())
    yield "broken", found.goal + (f", for {where}" if where else "")


def _by_owner(facts: Iterable[Fact]) -> Iterator[tuple[str, str]]:
    """Yield what is worth telling, by the first element that it is of."""
    phrases: dict[str, list[str]] = {}
    for fact in facts:
        if not fact.plain:
            owner = fact.of[0] if fact.of else "all"
            phrases.setdefault(owner, []).append(_phrase(fact))
    for owner in sorted(phrases, key=lambda owner: (owner != "all", owner)):
        yield owner, ", ".join(phrases[owner])


def _phrase(fact: Fact) -> str:
    rest = " ".join(fact.of[1:])
    parts = [fact.symbol, rest] if fact.value is True else [fact.symbol, rest, str(fact.value)]
    return " ".join(filter(None, parts))


def _change(before: Fact, after: Fact) -> str:
    subject = f"{before.symbol}({', '.join(before.of)})" if before.of else before.symbol
    if isinstance(after.value, bool):
        return subject if after.value else f"not {subject}"
    return f"{subject}: {before.value} -> {after.value}"
