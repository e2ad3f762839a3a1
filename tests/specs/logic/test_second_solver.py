"""A second solver reads the obligations and comes to the same answer: one checker's word is no evidence."""

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from rebalance_verifier.cli.commands.prove import theorems as theorems_of
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge, prove, written

from tests.specs.logic import solvers
from tests.specs.logic.solvers import answer_of_cvc5, answer_of_z3, expected, needs_cvc5

pytestmark = needs_cvc5
this = sys.modules[__name__]


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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


DECIDED = 0.97
"""Which part of the files of a protocol both solvers have to decide; z3 decides all."""


def compared(files: Sequence[Path]) -> tuple[list[tuple[str, str, str]], list[str]]:
    """What is decided otherwise than the file expects, or not by z3; and what cvc5 leaves open."""
    wrong, still_open = [], []
    for path in files:
        text = path.read_text()
        found = answer_of_z3(text), answer_of_cvc5(text)
        if found == (expected(text), "unknown"):
            still_open.append(path.name)
        elif found != (expected(text), expected(text)):
            wrong.append((path.name, *found))
    return wrong, still_open


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["classic", "consumer", "migration"])
def test_both_solvers_agree_on_every_file(tmp_path, protocol):
    """Those that expect sat, too. A solver that does not decide in its time does not disagree."""
    theorems = theorems_of(protocol, (), ())
    outcomes = [one for some in prove(theorems, smt2=tmp_path) for one in some]
    files = sorted(tmp_path.rglob("*.smt2"))
    assert len(files) == len(outcomes)
    wrong, still_open = compared(files)
    assert wrong == []
    share = 1 - len(still_open) / len(files)
    assert share >= DECIDED, f"both decide {share:.1%} of {len(files)}; cvc5 leaves open: {still_open}"


def test_a_solver_that_does_not_decide_does_not_disagree(tmp_path, monkeypatch):
    texts = {"one": "unsat", "two": "sat", "three": "unsat", "four": "unsat", "five": "unsat"}
    for name, status in texts.items():
        (tmp_path / name).write_text(f"{name}(set-info :status {status})")
    of_cvc5 = {"one": "unsat", "two": "sat", "three": "unknown", "four": "sat", "five": "cannot be read: x"}
    monkeypatch.setattr(this, "answer_of_z3", expected)
    monkeypatch.setattr(this, "answer_of_cvc5", lambda text: of_cvc5[text.partition("(")[0]])
    assert compared([tmp_path / name for name in texts]) == (
        [("four", "unsat", "sat"), ("five", "unsat", "cannot be read: x")],
        ["three"],
    )
    monkeypatch.setattr(this, "answer_of_z3", lambda text: "unknown")
    assert [name for name, *_ in compared([tmp_path / "three"])[0]] == ["three"]


def test_the_kernel_ends_a_solver_that_heeds_no_limit(monkeypatch):
    """As on goals of convergence, where cvc5 went on for minutes behind its own limit of 20 s."""
    assert solvers._in_time("", ("fresh-binders",), 5) == ""
    monkeypatch.setattr(solvers, "_asked_of_cvc5", lambda text, options: next(i for i in count() if i < 0))
    assert solvers._in_time("", (), 1) == "unknown"
