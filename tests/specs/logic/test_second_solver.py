"""A second solver reads the obligations and comes to the same answer: one checker's word is no evidence."""

import importlib.util

import pytest
from rebalance.specs.logic.prover import ProofVerdict, discharge, written
from rebalance.specs.theorems.proof import proof

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cvc5") is None, reason="needs cvc5, an extra of dev"
)


def obligations(every: int, of: int):
    """Each ``of``-th case of the proof: how Z3 answered, and the text for others."""
    cases = [(theorem, case) for theorem in proof() for case in theorem.cases if not case.possible]
    for theorem, case in cases[every::of]:
        for answer in discharge(theorem.vocabulary, case):
            yield f"{theorem.name}: {case.name} {answer.goal}", answer.verdict, written(theorem, case, answer)


def output_of_cvc5(text: str) -> str:
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    for option, value in (("tlimit-per", "10000"), ("enum-inst", "true"), ("fresh-binders", "true")):
        solver.setOption(option, value)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    names, output = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        output += str(command.invoke(solver, names))
    return output.strip()


def differing(every: int, of: int) -> tuple[int, list[str]]:
    count, differ = 0, []
    for name, verdict, text in obligations(every, of):
        assert verdict is ProofVerdict.PROVED, name
        count += 1
        output = output_of_cvc5(text)
        assert output != "sat", name
        if output != "unsat":
            differ.append(f"{name}: {output}")
    return count, differ


@pytest.mark.slow
def test_cvc5_agrees_on_a_sample():
    count, differ = differing(3, 40)
    assert count > 50
    assert differ == []


@pytest.mark.nightly
def test_cvc5_agrees_on_all():
    count, differ = differing(0, 1)
    assert count > 3000
    assert differ == []


@pytest.mark.slow
def test_cvc5_is_not_told_the_answer():
    """The same text without the negated goal, its last assertion, is not refuted."""
    name, _, text = next(obligations(10, 1000))
    head, _, _ = text.rpartition("(assert")
    assert output_of_cvc5(text) == "unsat", name
    assert output_of_cvc5(head + "(check-sat)\n") != "unsat", name
