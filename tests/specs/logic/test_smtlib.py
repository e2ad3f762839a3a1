"""Names in files of SMT-LIB: none means something else to a solver that reads the file."""

from __future__ import annotations

import re

import pytest
import z3
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY as CLASSIC
from rebalance_verifier.specs.consumer.vocabulary import VOCABULARY as CONSUMER
from rebalance_verifier.specs.logic import smtlib
from rebalance_verifier.specs.logic.language import Vocabulary
from rebalance_verifier.specs.logic.prover import GoalAnswer, ProofVerdict, file_name, written
from rebalance_verifier.specs.logic.smtlib import PREDEFINED, RESERVED, taken, text_of
from rebalance_verifier.specs.logic.specification import IMPLIES, ProofCase, Theorem
from rebalance_verifier.specs.migration.vocabulary import VOCABULARY as MIGRATION

from tests.specs.logic.solvers import answer_of_cvc5, answer_of_z3, expected, needs_cvc5
from tests.tiers import tiered

THING = z3.DeclareSort("Thing")
X, Y = z3.Const("X", THING), z3.Const("Y", THING)
FAST = {"exists", "let", "assert", "and", "select", "set-info", "!"}
NAMES = sorted(RESERVED | (PREDEFINED - {"par"}) | {"@mine", ".mine", "bvadd", "str.len", "free"})


def obligations(name: str):
    """About a function of that name, and about a constant: texts that are unsat, and one that is sat."""
    function, constant = z3.Function(name, THING, THING, z3.BoolSort()), z3.Const(name, THING)
    before = z3.Function("before", THING, THING, z3.BoolSort())
    yield "unsat", _text(z3.ForAll([X, Y], z3.Not(function(X, Y))), z3.Exists([X], function(X, X)))
    yield "sat", _text(z3.ForAll([X], z3.Not(function(X, X))), z3.Exists([X, Y], function(X, Y)))
    yield "unsat", _text(z3.ForAll([X], z3.Not(before(X, X))), before(constant, constant))


def _text(*formulas):
    return re.sub(r"\(set-info :status.*\n", "", text_of(formulas))


@needs_cvc5
@pytest.mark.parametrize("name", tiered(NAMES, FAST))
def test_both_solvers_read_a_function_of_any_name(name):
    for status, text in obligations(name):
        told = f"(set-info :status {status})\n(set-logic ALL)\n{text}"
        assert {answer_of_z3(told), answer_of_cvc5(told)} == {status}, text


def test_a_name_that_is_free_stays():
    assert all("(declare-fun free (" in text for _, text in obligations("free"))
    assert all("(declare-fun _exists (" in text for _, text in obligations("exists"))
    assert not any("(declare-fun exists (" in text for _, text in obligations("exists"))


def test_a_new_name_is_not_one_that_is_there():
    one, other = z3.Bool("exists"), z3.Bool("_exists")
    text = text_of([one, z3.Not(other)])
    assert {"_exists", "__exists"} == set(re.findall(r"declare-fun (\S+)", text))
    assert answer_of_z3(text) == "sat"


@needs_cvc5
def test_a_constant_is_not_taken_for_a_value():
    """``none`` is an epoch of the consumer protocol, and a kind of a group between the protocols."""
    kind, (nothing, _) = z3.EnumSort("Kind of test", ["none", "no call"])
    one, none = z3.Const("one", kind), z3.Const("none", THING)
    other = z3.Const("no call", THING)
    text = _text(one == nothing, none == other)
    told = f"(set-info :status sat)\n(set-logic ALL)\n{text}"
    assert {"_none", "_no call"} <= {
        name.strip("|") for name in re.findall(r"declare-fun (\|.*?\||\S+)", text)
    }
    assert answer_of_z3(told) == answer_of_cvc5(told) == "sat"


@needs_cvc5
@pytest.mark.parametrize("protocol", ["classic", "consumer", "migration"])
def test_both_solvers_read_each_value(protocol):
    """z3 wrote a call of a member that has spaces in its name so that nobody could read it."""
    vocabulary = {"classic": CLASSIC, "consumer": CONSUMER, "migration": MIGRATION}[protocol]
    sorts = [vocabulary.sorts[name] for name in vocabulary.values]
    values = [sort.constructor(i)() for sort in sorts for i in range(sort.num_constructors())]
    texts = _text(*(z3.Const(f"a{n}", value.sort()) == value for n, value in enumerate(values)))
    told = f"(set-info :status sat)\n(set-logic ALL)\n{texts}"
    assert answer_of_z3(told) == answer_of_cvc5(told) == "sat"
    assert len(values) == sum(map(len, vocabulary.values.values()))


def test_a_sort_or_a_value_cannot_be_renamed():
    vocabulary = Vocabulary()
    with pytest.raises(ValueError, match="'String' is a word of SMT-LIB"):
        vocabulary.sort("String", "S")
    with pytest.raises(ValueError, match="'true' is a word of SMT-LIB"):
        vocabulary.enumeration("Answer", ("true", "no"))


def test_the_words_are_there():
    assert {"exists", "forall", "lambda", "define-const", "declare-sort-parameter"} <= RESERVED
    assert taken("fp.add")
    assert not taken("since")
    assert all(map(taken, smtlib.PREFIXES))


def theorem(sentence: str = "") -> tuple[Theorem, ProofCase]:
    vocabulary = Vocabulary()
    case = ProofCase(kind=IMPLIES, name="a", facts=dict, goals={})
    return Theorem(name="t", sentence=sentence, source="", vocabulary=vocabulary, cases=(case,)), case


@pytest.mark.parametrize(
    ("verdict", "status"),
    [(ProofVerdict.PROVED, "unsat"), (ProofVerdict.REFUTED, "sat"), (ProofVerdict.UNKNOWN, "unknown")],
)
def test_the_status_is_what_was_found(verdict, status):
    """A file of an obligation that does not hold says so, not what one would have liked."""
    goal = z3.Bool("q") if verdict is not ProofVerdict.PROVED else z3.BoolVal(True)
    text = written(*theorem(), GoalAnswer(goal="g", verdict=verdict, formula=goal))
    assert expected(text) == status
    assert "expected: unsat" in text
    if status != "unknown":
        assert answer_of_z3(text) == status


def test_a_long_name_fits_into_a_file_system():
    """Those of the measure of the consumer protocol had 275 letters: a traceback."""
    long = [file_name(*theorem(), " or ".join(["partitions to be given"] * 20 + [end])) for end in "ab"]
    assert long[0] != long[1]
    assert all(len(path.name) < 144 for path in long)
    assert file_name(*theorem(), "short").name == "implies-a-short.smt2"
