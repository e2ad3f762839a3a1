"""A second solver reads the obligations and comes to the same answer: one checker's word is no evidence."""

import pytest
from rebalance_verifier.cli.commands.prove import theorems as theorems_of
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge, prove, written

from tests.specs.logic.solvers import answer_of_cvc5, answer_of_z3, expected, needs_cvc5

pytestmark = needs_cvc5


def obligations(every: int, of: int):
    """Each ``of``-th case of the proof: how Z3 answered, and the text for others."""
    cases = [(theorem, case) for theorem in proof() for case in theorem.cases if not case.possible]
    for theorem, case in cases[every::of]:
        for answer in discharge(theorem.vocabulary, case):
            yield f"{theorem.name}: {case.name} {answer.goal}", answer.verdict, written(theorem, case, answer)


def differing(every: int, of: int) -> tuple[int, list[str]]:
    count, differ = 0, []
    for name, verdict, text in obligations(every, of):
        assert verdict is ProofVerdict.PROVED, name
        count += 1
        output = answer_of_cvc5(text)
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
    assert answer_of_cvc5(text) == "unsat", name
    assert answer_of_cvc5(head + "(check-sat)\n") != "unsat", name


def test_both_solvers_read_the_files_of_a_function_exists():
    """In two files a function of the leader's metadata has that name: cvc5 refused both, z3 misread one."""
    seen = set()
    for theorem in proof():
        for case in theorem.cases if theorem.name == "contract" else ():
            if case.possible or "complete" in case.goals:
                for answer in discharge(theorem.vocabulary, case):
                    text = written(theorem, case, answer)
                    assert "(declare-fun _exists (" in text
                    assert answer_of_z3(text) == answer_of_cvc5(text) == expected(text)
                    seen.add(expected(text))
    assert seen == {"sat", "unsat"}


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["classic", "consumer", "migration"])
def test_both_solvers_agree_on_every_file(tmp_path, protocol):
    """Those that expect sat, too."""
    theorems = theorems_of(protocol, (), ())
    outcomes = [one for some in prove(theorems, smt2=tmp_path) for one in some]
    files = sorted(tmp_path.rglob("*.smt2"))
    assert len(files) == len(outcomes)
    wrong = []
    for path in files:
        text = path.read_text()
        found = answer_of_z3(text), answer_of_cvc5(text)
        if found != (expected(text), expected(text)):
            wrong.append((path.name, *found))
    assert wrong == []
