"""Runs found by the solver: the explicit evaluator has to agree with each step, and the explicit search with
what is there and what is not."""
# ruff: noqa: N806 (capital letters are variables of the language, == makes terms)

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import z3
from rebalance.specs.logic.bounded import SpecRun, follow, k_induction, reach
from rebalance.specs.logic.concrete import Stepper, explore
from rebalance.specs.logic.language import Vocabulary
from rebalance.specs.logic.specification import Specification
from rebalance.specs.logic.universe import Universe
from rebalance.specs.necessity.witnesses import path_to
from rebalance.specs.protocol import contract
from rebalance.specs.protocol.vocabulary import VOCABULARY, C, Consumer, D, M, N, P, none
from rebalance.specs.theorems.safety import specification
from z3 import And, Exists, Implies, Not

S = VOCABULARY.state()
SIZES = {"Consumer": 2, "Member": 3, "Partition": 2, "Generation": 4, "Assignor": 2}

SETTLES = (
    "start(c)", "start(d)", "partitions_lost(c)", "join(c)", "join_refused_without_id(c, m)", "id_given(c)",
    "join(c)", "join_with_given_id(c, m)", "join_phase_ends(g, m, a)", "join_answered(c, m)", "lead(c)",
    "leader_syncs(c, m)", "sync_answered(c)", "partitions_assigned(c)",
)  # fmt: skip
"""One consumer settles alone while another one runs."""


@cache
def protocol() -> Specification:
    return specification()


def checked(spec: Specification, run: SpecRun | None) -> SpecRun:
    """The run, if the explicit evaluator allows each of its steps."""
    assert run is not None
    stepper, before = Stepper(run.universe, spec.actions), run.initial
    assert stepper.holds(spec.initial, before)
    assert all(stepper.holds(axiom, before) for axiom in spec.axioms.values())
    for name, parameters, after in run.steps:
        assert stepper.allowed(before, name, parameters, after) is None
        before = after
    return run


def last(run: SpecRun):
    return run.steps[-1][2] if run.steps else run.initial


# -- along a path --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [SIZES, None], ids=["small", "any size"])
def test_a_run_along_a_path(sizes):
    c = z3.Const("c", Consumer)
    goal = Exists([P], S.since(c, P) != none)
    answer = follow(protocol(), SETTLES, sizes, goal)
    assert answer.verdict == "run"
    run = checked(protocol(), answer.run)
    assert [name for name, _, _ in run.steps] == [step.partition("(")[0] for step in SETTLES]
    (owner,) = run.steps[0][1]
    partitions = run.universe.domains["Partition"]
    none_ = run.universe.tables["none"][0]
    assert any(run.universe.read(last(run), "since", owner, p) != none_ for p in partitions)


@pytest.mark.parametrize("sizes", [SIZES, None], ids=["small", "any size"])
@pytest.mark.parametrize(
    ("path", "goal"),
    [
        (["start(c)", "start(c)"], None),
        (["start(c)", "join(c)"], None),
        (SETTLES, Exists([C, D, P], And(C != D, S.since(C, P) != none, S.since(D, P) != none))),
        ([*SETTLES[:-1], "partitions_assigned(d)"], None),
        (["start(c)", "crash(c)"], S.subscribes(C)),
    ],
)
def test_what_no_run_does(path, goal, sizes):
    assert follow(protocol(), path, sizes, goal).verdict == "none"


def test_without_names_the_elements_are_free():
    run = checked(protocol(), follow(protocol(), ["start", "start"], SIZES).run)
    assert {parameters for _, parameters, _ in run.steps} == {(0,), (1,)}
    one = {**SIZES, "Consumer": 1}
    assert follow(protocol(), ["start", "start"], one).verdict == "none"


def test_two_names_may_be_one_element():
    path = ["start(c)", "pause(c)", "resume(d)"]
    run = checked(protocol(), follow(protocol(), path, SIZES).run)
    assert len({parameters for _, parameters, _ in run.steps}) == 1


def test_a_universe_fixes_who_is_static():
    path = ["start(c)", "partitions_lost(c)", "join(c)", "join_of_static(c, m)"]
    assert follow(protocol(), path, consumers(True)).verdict == "run"
    assert follow(protocol(), path, consumers(False)).verdict == "none"


@pytest.mark.slow
def test_a_long_path():
    """Two members settle: twenty steps."""
    path = path_to("sync_parked_answered")
    assert len(path) > 15
    run = checked(protocol(), follow(protocol(), path, SIZES).run)
    assert follow(protocol(), path, SIZES, Not(Exists([M], S.synced(M)))).verdict == "none"
    assert len(run.steps) == len(path)


def test_a_path_has_to_be_of_actions_with_the_right_parameters():
    with pytest.raises(ValueError, match="join has 1 parameters"):
        follow(protocol(), ["join(c, m)"], SIZES)
    with pytest.raises(KeyError, match="joins"):
        follow(protocol(), ["joins(c)"], SIZES)


# -- by any path ---------------------------------------------------------------------------------------


def consumers(*static: bool, members: int = 2) -> Universe:
    return Universe(
        VOCABULARY,
        {
            "Consumer": len(static), "Member": members, "Partition": 1, "Generation": 3, "Assignor": 1,
        },
        {
            "of": lambda m: m % len(static), "static": lambda c: static[c],
            "honest": True, "cooperative": True,
            "lt": lambda g, h: g < h, "none": 0, "zero": 1,
        },
    )  # fmt: skip


JOINS_AND_SYNCS = (
    "start", "partitions_lost", "join", "join_of_static", "join_phase_ends", "join_answered",
    "lead", "follow",
    "leader_syncs", "sync_of_settled", "sync_answered", "partitions_assigned",
)  # fmt: skip


def reduced(clauses=contract.SAFETY) -> Specification:
    """Static members that join and sync, and nothing goes wrong but the assignor."""
    spec = specification(contract=clauses)
    return replace(spec, actions=tuple(spec.action(name) for name in JOINS_AND_SYNCS))


def agree(spec: Specification, universe: Universe, goal: z3.BoolRef, depth: int) -> int | None:
    """The length of the shortest run to the goal, None for no run so short; the same for both."""
    goal = spec.vocabulary.close(goal)
    answer, length = reach(spec, goal, depth, universe)
    stepper = Stepper(universe, spec.actions)
    counts = explore(stepper, stepper.states(spec.initial), {"goal": Not(goal)})
    if answer.verdict == "none":
        assert counts.end == "complete" or counts.depth - 1 > depth
        return None
    assert answer.verdict == "run"
    run = checked(spec, answer.run)
    assert stepper.holds(goal, last(run))
    assert (counts.end, counts.depth - 1) == ("breach", length)
    assert counts.breach is not None
    assert len(run.steps) == len(counts.breach.steps) == length
    return length


def locks() -> tuple[Specification, Specification]:
    """Clients take locks that are free and drop them; and the same with one that takes what is not free."""
    v = Vocabulary()
    client, E, F = v.sort("Client", "EF")
    lock, L = v.sort("Lock", "L")
    v.relation("asks", client, lock)
    v.relation("held", client, lock)
    s = v.state()

    def ask(s, t, e, l):  # noqa: E741
        t.when(Not(s.held(e, l)))
        t.asks[e, l] = True

    def grant(s, t, e, l):  # noqa: E741
        t.when(s.asks(e, l), z3.ForAll([F], Not(s.held(F, l))))
        t.held[e, l] = True
        t.asks[e, l] = False

    def drop(s, t, e):
        t.held[e, L] = False

    def careless(s, t, e, l):  # noqa: E741
        t.when(s.asks(e, l))
        t.held[e, l] = True

    actions = tuple(v.action(effect) for effect in (ask, grant, drop))
    initial = v.close(And(Not(s.held(E, L)), Not(s.asks(E, L))))
    exclusive = v.close(Implies(And(s.held(E, L), s.held(F, L)), E == F))
    spec = Specification(
        vocabulary=v,
        axioms={},
        initial=initial,
        actions=actions,
        invariants={"exclusive": exclusive},
        properties={},
    )
    return spec, replace(spec, actions=(*actions, v.action(careless)))


def test_the_solver_and_the_search_agree_on_locks():
    right, wrong = locks()
    universe = Universe(right.vocabulary, {"Client": 2, "Lock": 2})
    both = Not(right.invariants["exclusive"])
    s, letters = right.vocabulary.state(), right.vocabulary.letters
    all_held = z3.ForAll([letters["L"]], Exists([letters["E"]], s.held(letters["E"], letters["L"])))
    assert agree(right, universe, both, 6) is None
    assert agree(wrong, universe, both, 6) == 4
    assert agree(right, universe, all_held, 6) == 4
    every_asks = s.asks(letters["E"], letters["L"])
    assert agree(right, universe, every_asks, 3) is None
    assert agree(right, universe, every_asks, 6) == 4
    assert agree(right, universe, Not(s.asks(letters["E"], letters["L"])), 6) == 0


def test_reach_of_any_size():
    _, wrong = locks()
    answer, length = reach(wrong, Not(wrong.invariants["exclusive"]), 5, None)
    assert (answer.verdict, length) == ("run", 4)
    checked(wrong, answer.run)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("goal", "length"),
    [
        (Exists([M], S.pending(M)), 4),
        (Exists([M], S.member(M)), 7),
        (And(Not(Exists([M], S.member(M))), S.current != VOCABULARY.symbols["zero"].of()()), None),
        (Exists([M], S.synced(M)), 11),
    ],
    ids=["pending", "member", "a generation without members", "synced"],
)
def test_the_solver_and_the_search_agree_on_the_protocol(goal, length):
    """All 89 actions, one consumer."""
    found = agree(protocol(), consumers(False, members=1), goal, 11)
    assert found == length or (length is None and found is not None)


@pytest.mark.nightly
def test_the_solver_and_the_search_agree_on_two_members():
    both = Exists([M, N], And(M != N, S.synced(M), S.synced(N)))
    assert agree(reduced(), consumers(True, True), both, 15) == 15


@pytest.mark.nightly
def test_the_solver_and_the_search_agree_on_what_the_contract_forbids():
    twice = Exists([M, N, P], And(M != N, S.assigned(M, P), S.assigned(N, P)))
    assert agree(reduced(), consumers(True, True), twice, 13) is None
    broken = {name: clause for name, clause in contract.SAFETY.items() if name != "once"}
    assert agree(reduced(broken), consumers(True, True), twice, 13) == 12


# -- k-induction ---------------------------------------------------------------------------------------


@cache  # z3 knows an enumeration once
def ladder() -> Specification:
    """A walker who starts at the bottom and stays there or on the first rung; from the third he would fall
    through the fourth, but nothing leads up to the third."""
    v = Vocabulary()
    _, bottom, first, third, fourth, fallen = v.enumeration("Rung", ("bottom", "1", "3", "4", "fallen"))
    v.function("rung", value=bottom.sort())

    def step(name, source, target):
        def effect(s, t):
            t.when(s.rung == source)
            t.rung = target

        return v.action(effect, name=name)

    actions = (
        step("up", bottom, first), step("down", first, bottom), step("slip", third, fourth),
        step("fall", fourth, fallen),
    )  # fmt: skip
    s = v.state()
    return Specification(
        vocabulary=v,
        axioms={},
        initial=s.rung == bottom,
        actions=actions,
        invariants={"safe": s.rung != fallen},
        properties={},
    )


def test_longer_induction_proves_more():
    spec = ladder()
    safe = spec.invariants["safe"]
    assert k_induction(spec, safe, 1).paths == (("fall",),)
    assert k_induction(spec, safe, 2).paths == (("slip", "fall"),)
    assert [k_induction(spec, safe, k).verdict for k in (1, 2, 3)] == ["open", "open", "proved"]


def test_what_is_known_shortens_the_induction():
    spec = ladder()
    s, rungs = spec.vocabulary.state(), spec.vocabulary.sorts["Rung"]
    not_above = And(s.rung != rungs.constructor(2)(), s.rung != rungs.constructor(3)())
    assert k_induction(spec, spec.invariants["safe"], 1, given=[not_above]).verdict == "proved"


def test_a_formula_that_is_not_true_is_refuted():
    spec = ladder()
    s, rungs = spec.vocabulary.state(), spec.vocabulary.sorts["Rung"]
    assert k_induction(spec, s.rung != rungs.constructor(0)(), 1).paths == ((),)
    found = k_induction(spec, s.rung != rungs.constructor(1)(), 2)
    assert (found.verdict, found.paths) == ("refuted", (("up",),))
    assert k_induction(spec, s.rung != rungs.constructor(1)(), 1).verdict == "open"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "upon"),
    [
        ("one name", ["one id"]),
        ("one leader", ["one logged leader"]),
        ("one logged leader", ["one leader"]),
        ("nothing is logged of others", ["nothing is known of others"]),
        ("prepared in EAGER owns nothing", ["down owns nothing"]),
    ],
)
def test_some_invariants_need_just_another_one(name, upon):
    spec = protocol()
    assert k_induction(spec, spec.invariants[name], 1).verdict == "open"
    given = [spec.invariants[other] for other in upon]
    assert k_induction(spec, spec.invariants[name], 1, given).verdict == "proved"


@pytest.mark.nightly
def test_longer_induction_is_no_help_to_the_protocol():
    """Whatever breaks an invariant may come after any step of a consumer that has nothing to do with it."""
    spec = protocol()
    found = k_induction(spec, spec.invariants["EAGER claims nothing"], 2)
    assert found.verdict == "open"
    assert found.paths == tuple((action.name, "join") for action in spec.actions)
