"""Files of SMT-LIB read by two solvers, as docs/explanation/proof.md says that anybody can."""

from __future__ import annotations

import importlib.util

import pytest
import z3

needs_cvc5 = pytest.mark.skipif(
    importlib.util.find_spec("cvc5") is None, reason="needs cvc5, an extra of dev"
)

CVC5 = {"unsat": ("enum-inst",), "sat": ("finite-model-find",)}
"""The options of cvc5 by the answer that a file expects."""

MILLISECONDS = 20_000
"""How long a solver may take for one file."""


def expected(text: str) -> str:
    """What the file says that it is."""
    return text.split("(set-info :status ", 1)[1].split(")", 1)[0]


def answer_of_cvc5(text: str) -> str:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    options = ("fresh-binders", *CVC5.get(expected(text), ()))
    for option, value in (("tlimit-per", str(MILLISECONDS)), *((option, "true") for option in options)):
        solver.setOption(option, value)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    names, output = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        output += str(command.invoke(solver, names))
    return output.strip()


def answer_of_z3(text: str) -> str:
    solver = z3.Solver(ctx=z3.Context())
    solver.set("timeout", MILLISECONDS)
    solver.from_string(text)
    return str(solver.check())
