"""Files of SMT-LIB read by two solvers, as docs/explanation/proof.md says that anybody can."""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
from collections.abc import Sequence
from multiprocessing.connection import Connection

import pytest
import z3

needs_cvc5 = pytest.mark.skipif(
    importlib.util.find_spec("cvc5") is None, reason="needs cvc5, an extra of dev"
)

CVC5 = {"unsat": ("enum-inst", "finite-model-find"), "sat": ("finite-model-find",)}
"""The options of cvc5 by the answer that a file expects, one after the other: some goals of convergence are
refuted with the second alone."""

MILLISECONDS = 20_000
"""How long z3 may take for one file."""

CPU_SECONDS = 15
"""How long cvc5 may take for one, with each option. It does not heed its own limits in some of them."""

FORK = multiprocessing.get_context("fork")


def expected(text: str) -> str:
    """What the file says that it is."""
    return text.split("(set-info :status ", 1)[1].split(")", 1)[0]


def answer_of_cvc5(text: str) -> str:
    """Answer ``unknown`` where cvc5 needs longer; what it says of a file that it cannot read."""
    answer = "unknown"
    for option in CVC5.get(expected(text), ()) or ("",):
        answer = _in_time(text, ("fresh-binders", *filter(None, [option])))
        if not answer.startswith("unknown"):
            break
    return answer


def _in_time(text: str, options: Sequence[str], seconds: int = CPU_SECONDS) -> str:
    """Answer in a process of its own, which a limit of the kernel ends."""
    ours, its = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_answered, args=(text, options, seconds, its))
    process.start()
    its.close()
    try:
        return str(ours.recv())
    except EOFError:
        return "unknown"
    finally:
        process.join()


def _answered(text: str, options: Sequence[str], seconds: int, to: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        to.send(_asked_of_cvc5(text, options))
    except Exception as error:
        to.send(f"cannot be read: {error}")


def _asked_of_cvc5(text: str, options: Sequence[str]) -> str:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    for option in options:
        solver.setOption(option, "true")
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
