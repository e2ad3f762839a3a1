"""Names in files of SMT-LIB. z3 writes each name as it is, also one that SMT-LIB gives another meaning: a
file with a function ``exists`` is refused by cvc5, and z3 itself answers about another formula.

So it is where a constant has the name of an enumeration's value, which z3 tells apart and nobody else can.

Functions and constants are renamed; sorts and values of enumerations are refused as they are declared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import z3

_NAMES: Mapping[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text())
RESERVED = frozenset(_NAMES["reserved"])
"""The reserved words of SMT-LIB 2.6 and 2.7."""
PREDEFINED = frozenset(_NAMES["predefined"])
"""Names that theories of the standard, z3 or cvc5 give a meaning of their own."""
PREFIXES = tuple(_NAMES["prefixes"])
"""Beginnings of more of them; the first two are the solver's by the standard."""

_DECLARED = re.compile(r"^\(declare-fun (\|[^|]*\||\S+) ", re.M)
_ENUMERATIONS = re.compile(r"^\(declare-datatypes .*", re.M)
_VALUE = re.compile(r"\((\|[^|]*\||[^\s()|]+)\)")
_TWICE = re.compile(r"\(_ (\|([^|]*)\| \2|([^\s()|]+) \3)\)")
"""A value as z3 writes it for itself only: (_ UP UP), and with bars the first time, (_ |no call| no call)."""


def taken(name: str) -> bool:
    """Check whether a name means something in a file of SMT-LIB without being declared there.

    >>> taken("exists"), taken("select"), taken("bvadd"), taken("owned")
    (True, True, True, False)
    """
    return name in RESERVED or name in PREDEFINED or name.startswith(PREFIXES)


def declarable(name: str) -> str:
    """``name`` of a sort or of a value of one. Raises ValueError where it is taken."""
    if taken(name):
        raise ValueError(f"{name!r} is a word of SMT-LIB or of a solver: another name for the sort or value")
    return name


def text_of(formulas: Iterable[Any]) -> str:
    """Return the formulas as z3 writes them, with names that are free."""
    asserted = tuple(formulas)
    text = _written(asserted)
    names = {name.strip("|") for name in _DECLARED.findall(text)}
    values = {name.strip("|") for line in _ENUMERATIONS.findall(text) for name in _VALUE.findall(line)}
    if wrong := {name for name in names if taken(name) or name in values}:
        text = _written([_renamed(formula, wrong, names | values) for formula in asserted])
    return text


def _written(formulas: Iterable[Any]) -> str:
    context = z3.Context()  # of its own, so that the names in it are the same each time
    solver = z3.Solver(ctx=context)
    solver.add(*(formula.translate(context) for formula in formulas))
    return _TWICE.sub(lambda two: two[3] or f"|{two[2]}|", str(solver.to_smt2()))


def _renamed(formula: Any, wrong: set[str], names: set[str]) -> Any:
    for old in _functions(formula):
        if old.name() in wrong:
            sorts = [old.domain(i) for i in range(old.arity())]
            new = z3.Function(_free(old.name(), names), *sorts, old.range())
            places = [z3.Var(i, sort) for i, sort in enumerate(sorts)]
            formula = z3.substitute_funs(formula, (old, new(*places)))
    return formula


def _free(name: str, names: set[str]) -> str:
    """Return a name like ``name`` that nothing else has."""
    while taken(name) or name in names:
        name = f"_{name}"
    return name


def _functions(formula: Any) -> Iterator[Any]:
    """Yield the declared functions and constants in a formula, each once."""
    todo, seen = [formula], set[int]()
    while todo:
        term = todo.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_quantifier(term):
            todo.append(term.body())
            continue
        todo += term.children()
        decl = term.decl() if z3.is_app(term) else None
        if decl is not None and decl.kind() == z3.Z3_OP_UNINTERPRETED and decl.get_id() not in seen:
            seen.add(decl.get_id())
            yield decl
