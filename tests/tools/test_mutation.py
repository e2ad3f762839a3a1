"""Testing the mutation score: the mutator mutates, the battery kills, and what lives has a reason."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import pytest
from rebalance_verifier.model.classic import member
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.machine import Outcome, fault

from tests.model.classic.small_groups import setup
from tools.mutation.battery import CLEAN
from tools.mutation.clauses import clause_mutants
from tools.mutation.loading import applied, loaded
from tools.mutation.mutants import MODULES, Mutant, mutants, mutants_of, sources
from tools.mutation.oracles import CostError, costing, failing_test, step_of_no_logic, telling_tests
from tools.mutation.page import REASONS, stale, unexplained
from tools.mutation.trying import asked_all, asked_quickly, attempt, baseline, judge, measured, run

SMALL = """
OVER = (Error.A, Error.B)

def step(member, wire, decisions):
    if member.up and wire is not None:
        member = member._replace(owned=member.owned & ~wire)
        yield Outcome((member, None))
    if "wrong" in decisions:
        member = member._replace(owned=0)
    return [p for p in wire if p != 1]
"""


def changes(source: str) -> list[tuple[str, str, str]]:
    return [(mutant.kind, mutant.was, mutant.now) for mutant in mutants_of("small", source)]


def test_every_guard_and_update_is_wrong_once():
    test = "member.up and wire is not None"
    update = "member._replace(owned=member.owned & ~wire)"
    step = "yield Outcome((member, None))"
    assert sorted(changes(SMALL)) == sorted(
        [
            ("element dropped", "(Error.A, Error.B)", "(Error.B,)"),
            ("element dropped", "(Error.A, Error.B)", "(Error.A,)"),
            ("negated", test, f"not ({test})"),
            ("always", test, "True"),
            ("never", test, "False"),
            ("operand dropped", test, "member.up"),
            ("operand dropped", test, "wire is not None"),
            ("negated", "wire is not None", "wire is None"),
            ("update dropped", f"member = {update}", "pass"),
            ("field dropped", update, "member._replace()"),
            ("operand dropped", "member.owned & ~wire", "member.owned"),
            ("operand dropped", "member.owned & ~wire", "~wire"),
            ("step dropped", step, f"if False: {step}"),
            ("write dropped", "(member, None)", "(KEPT, None)"),
            ("write dropped", "(member, None)", "(member, KEPT)"),
            ("negated", "p != 1", "p == 1"),
            ("always", "p != 1", "True"),
            ("never", "p != 1", "False"),
        ]
    )


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        ('"x" in decisions', []),
        ('"x" not in decisions', ["update dropped"]),
        ('a and "x" in decisions', []),
        ('a or "x" in decisions', ["always", "negated", "never", "operand dropped", "update dropped"]),
        ('a and "x" not in decisions', ["always", "negated", "never", "operand dropped", "update dropped"]),
    ],
)
def test_what_a_named_decision_does_is_left_alone(test: str, kinds: list[str]):
    source = f"def f(a, b, decisions):\n    if {test}:\n        b = 1\n    return b"
    assert sorted(mutant.kind for mutant in mutants_of("small", source)) == kinds


def test_a_mutant_changes_one_place():
    for mutant in mutants_of("small", SMALL):
        after = ast.unparse(applied(SMALL, mutant))
        assert after != ast.unparse(ast.parse(SMALL))
        compile(after, "small", "exec")


def test_keys_are_unique_and_numbers_are_places():
    listed = mutants()
    assert len({mutant.key for mutant in listed}) == len(listed) > 1000
    assert [mutant.number for mutant in listed] == list(range(len(listed)))


def test_a_module_comes_after_those_that_it_imports():
    """Or it would have what it imports without the mutant."""
    for number, module in enumerate(MODULES):
        for node in ast.walk(ast.parse(sources()[module])):
            if isinstance(node, ast.ImportFrom) and "model.classic" in str(node.module):
                names = {str(node.module).rpartition(".")[2], *(alias.name for alias in node.names)}
                assert names.isdisjoint([*MODULES][number:]), f"{module} imports {names}"


def test_reasons_are_for_mutants_that_exist():
    keys = {mutant.key for mutant in (*mutants(), *clause_mutants())}
    assert [key for key in REASONS if key not in keys] == []


@pytest.mark.slow
def test_the_model_is_back_after_a_mutant():
    mutant = next(m for m in mutants() if m.module == "member")
    with loaded(mutant) as names:
        assert sys.modules["rebalance_verifier.model.classic.member"] is names["member"] is not member
    assert sys.modules["rebalance_verifier.model.classic.member"] is member


KILLED = (
    ("join_group._join_new | never | old is not None and (not both)", "clause", "group/instance"),
    ("callbacks.leave_prepare | operand dropped | rebalancing", "clause", "callback/lost"),
    ("join_group.refusal | never | not accepted and count >= most", "clause", "group/size"),
    ("expiry.removed | field dropped | _replace(state=GroupState.PREPARING)", "settling", "group/converges"),
    ("join_group._replace_static | negated | group.state is GroupState.STABLE #2",
     "witness", "partitions lost"),
)  # fmt: skip
CASES = ("a static member comes and goes", "limit of two")


@pytest.fixture(scope="module")
def battery():
    return [(case, baseline(case)) for case in CLEAN if case.name in CASES]


@pytest.mark.parametrize(("key", "kind", "by"), KILLED, ids=[key for key, _, _ in KILLED])
def test_a_mutant_is_killed_by_the_clause_that_should(battery, key: str, kind: str, by: str):
    mutant = next(mutant for mutant in mutants() if mutant.key == key)
    verdict = judge(mutant, battery)
    assert (verdict.kind, verdict.by) == (kind, by)


@pytest.mark.slow
def test_the_model_itself_lives(battery):
    assert all(attempt(None, case, seen)[:1] == ("survived",) for case, seen in battery)


# -- what else is asked ----------------------------------------------------------------------------------


def in_a_process(question: Callable[[Mutant | None], Any], key: str = "") -> Any:
    """What ``question`` says of a mutant, or of the model itself: what it imports must not stay."""
    mutant = next(mutant for mutant in mutants() if mutant.key == key) if key else None
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=lambda: theirs.send(question(mutant)))
    process.start()
    theirs.close()
    try:
        return mine.recv()
    finally:
        process.join()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "test"),
    [("", ""), ("application.leave | never | forgets", "test_leaving")],
    ids=("the model", "a mutant"),
)
def test_a_mutant_that_fails_a_test_of_single_steps_is_named_by_it(key: str, test: str):
    assert in_a_process(failing_test, key) == test


@pytest.mark.nightly
def test_many_mutants_are_asked_the_tests_in_one_process():
    fails = {
        "application.leave | never | forgets": "test_leaving",
        "callbacks.leave_prepare | operand dropped | rebalancing": "test_join_errors_that_poll_throws",
    }
    lives = "errors.late_arrives | field dropped | Refused(generation=stray.generation)"
    some = [mutant for mutant in mutants() if mutant.key in (*fails, lives)]
    heard: list[str] = []
    telling = in_a_process(lambda _: telling_tests())
    found = asked_quickly(some, telling, 1, lambda mutant, _: heard.append(mutant.key))
    assert {key: (verdict.kind, verdict.by) for key, verdict in found.items()} == {
        key: ("test", test) for key, test in fails.items()
    }
    assert heard == list(found)


@pytest.mark.nightly
def test_a_mutant_whose_step_is_none_of_the_logic_is_told_from_the_model():
    assert in_a_process(step_of_no_logic) == ("", "")
    group, why = in_a_process(step_of_no_logic, "application.leave | never | forgets")
    assert group == "connections, 3 x 2"
    assert "unsubscribe" in why
    assert "identified(1)" in why


@pytest.mark.parametrize(
    ("faulty", "left", "left_over"), [(True, 2, "2 of 2"), (True, 0, "0 of 2"), (False, 1, "1 of 2")]
)
def test_a_step_that_costs_what_it_should_not_is_noticed(faulty: bool, left: int, left_over: str):
    right = fault("crash", 0, ("budget",), ("budget",), lambda budget: [Outcome((budget - 1,))])
    wrong = right._replace(fault=faulty, run=lambda budget: [Outcome((left,))])
    first, second = costing(replace(machine(setup()), actions=(right, wrong))).actions
    assert [outcome.values for outcome in first.run(2)] == [(1,)]
    with pytest.raises(CostError, match=f"crash leaves {left_over}"):
        list(second.run(2))


def test_a_process_that_breaks_is_no_mutant_that_took_too_long():
    def broken(_: Mutant) -> NoReturn:
        raise OSError("no more room")

    with pytest.raises(RuntimeError, match="ended with 1"):
        run(mutants()[:1], broken)


def test_what_never_makes_a_difference_is_not_tried(battery):
    mutant = next(mutant for mutant in mutants() if mutant.module == "environment")
    assert judge(mutant, battery).kind == "idle"  # no topic changes in these cases


@pytest.mark.nightly
def test_no_mutant_lives_without_a_reason():
    verdicts = run(mutants(), partial(asked_all, battery=measured(telling_tests())))
    assert unexplained(verdicts) == []
    assert stale(verdicts, everything=True) == []
