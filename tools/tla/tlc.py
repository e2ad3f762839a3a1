"""What TLC needs besides the module: who the constants are, how much is searched, and what is asked.

A model extends the module, a configuration says which of its definitions are taken and how large the sets
are. One model serves groups of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_verifier.specs.logic.language import SpecAction, Term

from tools.tla.formulas import TermReader
from tools.tla.layout import Text, TlaNode, comment, definition, listed
from tools.tla.module import action_lines, file_text, step
from tools.tla.names import Export, TlaNames, camel, elements_of, same_names


@dataclass(frozen=True, kw_only=True)
class TlcModel:
    """A module ``name`` that extends ``extends``.

    ``definitions`` gives fixed symbols that are not rendered their TLA+ text. ``initial`` are definitions of
    initial states, those of the module of which a formula holds; ``next`` of steps, those that are no
    faults and these faults. ``instead`` are actions to take the place of the module's, by the name that they
    get here. All have a text that goes above them.
    """

    name: str
    extends: str
    text: str = ""
    definitions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    initial: Mapping[str, tuple[str, Term]] = field(default_factory=dict)
    next: Mapping[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    instead: Mapping[str, tuple[str, SpecAction]] = field(default_factory=dict)


def model(export: Export, wanted: TlcModel) -> str:
    """The model's module. Raises ValueError for a definition of what is no fixed symbol, or no fault."""
    names = TlaNames(export)
    unknown = sorted({*wanted.definitions} - {symbol.name for symbol in names.fixed})
    if unknown:
        raise ValueError(f"definitions: unknown: {', '.join(unknown)}")
    return file_text(
        wanted.name,
        comment(wanted.text),
        [f"EXTENDS {wanted.extends}"],
        *[[*comment(text), f"MC{symbol} == {value}"] for symbol, (text, value) in wanted.definitions.items()],
        *[
            [*comment(text), *definition(name, listed("/\\", [Text("Init"), _closed(names, formula)]))]
            for name, (text, formula) in wanted.initial.items()
        ],
        *[
            [*comment(text), *definition(name, listed("\\/", [Text("Step"), *_faults(names, faults)]))]
            for name, (text, faults) in wanted.next.items()
        ],
        *[
            [*comment(text), *action_lines(names, name, action)]
            for name, (text, action) in wanted.instead.items()
        ],
    )


def _closed(names: TlaNames, formula: Term) -> TlaNode:
    return TermReader(names).node(names.vocabulary.close(formula))


def _faults(names: TlaNames, faults: Sequence[str]) -> list[TlaNode]:
    every = {action.name: step(names, name, action) for name, action in names.actions if action.fault}
    if unknown := sorted({*faults} - {*every}):
        raise ValueError(f"faults: unknown: {', '.join(unknown)}")
    return [node for name, node in every.items() if name in faults]


def replacement(action: str, variation: str) -> str:
    """What an action made otherwise is called.

    >>> replacement("leader_syncs", "assignment_not_logged")
    'LeaderSyncs_assignment_not_logged'
    """
    return f"{camel(action)}_{variation}"


def configuration(
    export: Export,
    sizes: Mapping[str, int],
    *,
    behaviour: Sequence[str] = ("SPECIFICATION Spec",),
    defined: Iterable[str] | None = None,
    instead: Mapping[str, str] | None = None,
    invariants: Iterable[str] | None = None,
    text: str = "",
) -> str:
    """TLC's configuration for a model: TypeOK, and the invariants named (or all).

    ``sizes`` gives each unbounded sort its number of elements, named by the sort's first letter (c1, c2), and
    each of ``naturals`` its greatest. Fixed symbols are as the model has ``defined`` them, which has to be
    all. ``instead`` names definitions that take the place of others. Raises ValueError if a size or a
    definition is missing or unknown.

    Generations run out in every small model, so run TLC with ``-deadlock``: the end of a run is no error.
    """
    names = TlaNames(export)
    fixed = [symbol.name for symbol in names.fixed]
    same_names("definitions", fixed, fixed if defined is None else defined)
    chosen = export.invariants if invariants is None else invariants
    lines = [*comment(text), *behaviour, "CONSTANTS"]
    lines += [f"  {sort} = {{{', '.join(part)}}}" for sort, part in elements_of(names, sizes).items()]
    lines += [f"  {greatest} = {sizes[sort]}" for sort, greatest in export.naturals.items()]
    lines += [f"  {names.of(symbol)} <- MC{symbol.name}" for symbol in names.fixed]
    lines += [f"  {old} <- {new}" for old, new in (instead or {}).items()]
    lines += ["INVARIANTS", "  TypeOK", *(f"  {names.invariants[key]}" for key in chosen)]
    return "\n".join(lines) + "\n"
