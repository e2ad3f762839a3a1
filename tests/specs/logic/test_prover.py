"""The prover on toys and on the protocol: what holds is proved, what does not is refuted by a real group."""
# ruff: noqa: N806 (capital letters are variables of the language)

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import z3
from rebalance_verifier.base.processes.workers import spread
from rebalance_verifier.specs.classic.contract import SAFETY
from rebalance_verifier.specs.classic.member import owns, send_join
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import P, honest, none
from rebalance_verifier.specs.logic import prover
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.counterexample import (
    PREFER,
    TOGETHER,
    Counterexample,
    counterexample,
    lines,
)
from rebalance_verifier.specs.logic.finite import Finite
from rebalance_verifier.specs.logic.language import Vocabulary
from rebalance_verifier.specs.logic.limit import Budget
from rebalance_verifier.specs.logic.prover import (
    ProofOutcome,
    ProofVerdict,
    arranged,
    discharge,
    file_name,
    in_turn,
    prove,
    verdict,
    written,
)
from rebalance_verifier.specs.logic.specification import ProofCase, Specification
from rebalance_verifier.specs.logic.theorems import chosen, theorems
from rebalance_verifier.specs.logic.universe import Universe
from z3 import And, If, Implies, Not

from tests.specs.logic.structures import structure

ENOUGH = Budget(1 << 62)
PROVED, REFUTED, UNKNOWN = ProofVerdict.PROVED, ProofVerdict.REFUTED, ProofVerdict.UNKNOWN


def locks(*, guarded: bool = True, contradictory: bool = False, stuck: bool = False) -> Specification:
    """Clients take locks that are free (or, not ``guarded``, any), and drop them."""
    v = Vocabulary()
    client, C, D = v.sort("Client", "CD")
    lock, L = v.sort("Lock", "L")
    root = v.fixed("root", value=client)
    v.relation("held", client, lock)
    v.relation("watched", lock)
    s = v.state()

    def take(s, t, c, l):  # noqa: E741
        if guarded:
            t.when(v.close(Not(s.held(C, l))))
        t.held[c, l] = True

    def drop(s, t, c, l):  # noqa: E741
        t.when(s.held(c, l))
        if stuck:
            t.when(Not(s.held(c, l)))
        t.held[c, l] = False

    def watch(s, t, l):  # noqa: E741
        t.watched[l] = True

    exclusive = v.close(Implies(And(s.held(C, L), s.held(D, L)), C == D))
    return Specification(
        vocabulary=v,
        axioms={"root is nobody": root != root} if contradictory else {"root is root": root == root},
        initial=v.close(Not(s.held(C, L))),
        actions=(v.action(take), v.action(drop), v.action(watch)),
        invariants={"exclusive": exclusive},
        properties={"one or none": exclusive, "everything is held by root": v.close(s.held(root, L))},
    )


def verdicts(spec: Specification, **how: Any) -> dict[tuple[str, str, str], ProofVerdict]:
    found = [outcome for case in prove(theorems(spec), **how) for outcome in case]
    return {(one.theorem, one.case, one.goal): one.verdict for one in found}


# -- toys ----------------------------------------------------------------------------------------------


def test_what_holds_is_proved_and_what_does_not_follow_is_refuted():
    assert verdicts(locks()) == {
        ("possibility", "", "the initial state"): PROVED,
        ("possibility", "", "take can be taken"): PROVED,
        ("possibility", "", "drop can be taken"): PROVED,
        ("possibility", "", "watch can be taken"): PROVED,
        ("invariants", "", "exclusive"): PROVED,
        ("invariants", "take", "exclusive"): PROVED,
        ("invariants", "drop", "exclusive"): PROVED,  # watch assigns nothing of it
        ("one or none", "", "one or none"): PROVED,
        ("everything is held by root", "", "everything is held by root"): REFUTED,
    }


def test_a_missing_guard_is_refuted_by_the_smallest_group():
    spec = locks(guarded=False)
    (found,) = [o for case in prove(theorems(spec)) for o in case if o.case == "take"]
    assert found.verdict is REFUTED
    shown = found.counterexample
    assert shown is not None
    assert shown.elements == {"Client": ("client 0", "client 1"), "Lock": ("lock 0",)}
    assert shown.parameters == {"c": "client 0", "l": "lock 0"}
    assert shown.broken in ({"C": "client 0", "D": "client 1", "L": "lock 0"},)
    assert [text for label, text in lines(shown) if label == "after"] == ["held(client 0, lock 0)"]
    is_real(spec, shown)


def test_nothing_is_known_without_a_unit():
    assert set(verdicts(locks(), limit=0).values()) == {UNKNOWN}


@pytest.mark.parametrize("what", ["contradictory", "stuck"])
def test_a_proof_about_nothing_is_refused(what):
    found = verdicts(locks(**{what: True}))
    refuted = [
        goal
        for (theorem, _, goal), verdict in found.items()
        if theorem == "possibility" and verdict is REFUTED
    ]
    everything = ["the initial state", *(f"{name} can be taken" for name in ("take", "drop", "watch"))]
    assert refuted == (everything if what == "contradictory" else ["drop can be taken"])


def test_all_hypotheses_are_tried_where_the_near_ones_do_not_do():
    spec = locks()
    v, s = spec.vocabulary, spec.vocabulary.state()
    l = z3.Const("l", v.sorts["Lock"])  # noqa: E741
    case = ProofCase(
        kind="step",
        name="",
        facts=lambda: {"watched": s.watched(l)},
        goals={"a": lambda: s.watched(l), "b": lambda: Not(s.held(v.letters["C"], l))},
        given={"far": v.close(Not(s.held(v.letters["C"], v.letters["L"]))), "near": l == l},
        near={"a": ("near", "not there any more"), "b": ("near",)},
    )
    a, b = discharge(v, case)
    assert (a.verdict, list(a.used)) == (PROVED, ["watched", "near"])
    assert (b.verdict, list(b.used)) == (PROVED, ["watched", "far", "near"])


def test_the_outcome_is_the_same_in_two_processes():
    spec = theorems(locks(guarded=False))
    one, two = (
        [
            replace(o, seconds=0.0)
            for o in arranged(spec, [o for case in prove(spec, spread=how) for o in case])
        ]
        for how in (in_turn, spread)
    )
    assert one == two
    assert len(one) == sum(theorem.obligations for theorem in spec)
    assert verdict(one) is REFUTED
    assert verdict([o for o in one if o.verdict is PROVED]) is PROVED


def test_theorems_bring_what_they_rest_upon():
    among = theorems(locks())
    assert [t.name for t in chosen(among, ["one-or-none"])] == ["invariants", "one or none"]
    assert chosen(among, []) == among
    with pytest.raises(ValueError, match="no theorem is called 'two': there are possibility, invariants"):
        chosen(among, ["two"])


def test_the_plainest_model_is_a_matter_of_the_formulas_alone():
    spec = locks()
    v, s = spec.vocabulary, spec.vocabulary.state()
    C, L = v.letters["C"], v.letters["L"]
    some = z3.Exists([C, L], And(s.held(C, L), Not(s.watched(L))))
    other = z3.Exists([C, L], And(s.held(C, L), s.watched(L)))
    found = set()
    for seed in range(4):
        finite = Finite(v, {"Client": 3, "Lock": 3})
        finite.solver.set("random_seed", seed)
        finite.add(some, other)
        model = finite.plainest(ENOUGH, together={}, prefer={"watched": lambda arguments: (1,)})
        assert model is not None
        assert {name: len(elements) for name, elements in model.elements.items()} == {"Client": 1, "Lock": 2}
        found.add(tuple(model.value(s.watched(lock)) for lock in model.elements["Lock"]))
    assert found == {(1, 0)}


def test_there_is_no_small_model_of_what_contradicts_itself():
    spec = locks()
    finite = Finite(spec.vocabulary, {"Client": 2, "Lock": 2})
    C, D = spec.vocabulary.letters["C"], spec.vocabulary.letters["D"]
    finite.add(z3.Exists([C, D], C != D))
    with finite.supposing(spec.vocabulary.close(C == D)):
        assert finite.plainest(ENOUGH, together={}, prefer={}) is None
    assert finite.plainest(Budget(0), together={}, prefer={}) is None
    assert finite.plainest(ENOUGH, together={}, prefer={}) is not None


# -- limits --------------------------------------------------------------------------------------------


def pigeons(count):
    """More pigeons than holes: resolution needs time that is exponential in their number."""
    solver = z3.SimpleSolver()
    sits = [[z3.Bool(f"{pigeon} in {hole}") for hole in range(count)] for pigeon in range(count + 1)]
    solver.add(*(z3.Or(holes) for holes in sits))
    for a, b in combinations(sits, 2):
        solver.add(*(z3.Not(z3.And(x, y)) for x, y in zip(a, b, strict=True)))
    return solver


@pytest.mark.slow
def test_what_costs_too_much_is_unknown_and_takes_what_it_may():
    many, few = pigeons(14), pigeons(3)
    for units in (0, 1, 1000, 200_000):
        budget = Budget(units)
        assert budget.check(many) == z3.unknown
        assert (budget.used, budget.left) == (units, 0)
        assert Budget(1_000_000).check(few) == z3.unsat
    assert Budget(1 << 40).check(few) == z3.unsat  # more than z3 takes as a limit


@pytest.mark.slow
def test_a_share_is_taken_from_the_whole():
    whole = Budget(5000)
    part = whole.share(2000)
    assert part.check(pigeons(14)) == z3.unknown
    assert (part.left, whole.used, whole.left) == (0, 2000, 3000)
    rest = whole.share(9000)
    assert rest.units == 3000
    assert rest.share(9000).check(pigeons(14)) == z3.unknown
    assert (rest.left, whole.left) == (0, 0)


def units(outcomes: Iterable[ProofOutcome]) -> dict[tuple[str, str, str, str], int]:
    """What each obligation cost."""
    return {(one.theorem, one.kind, one.case, one.goal): one.units for one in outcomes}


def test_a_case_costs_the_same_alone_in_any_order_and_in_any_process():
    """Refuted ones too, with their groups."""
    among = theorems(locks(guarded=False))
    together, in_two = (
        units(outcome for case in prove(among, spread=how) for outcome in case) for how in (in_turn, spread)
    )
    assert together == in_two
    assert max(together.values()) > min(together.values()) > 0
    for theorem in reversed(among):
        for case in reversed(theorem.cases):
            for answer in discharge(theorem.vocabulary, case):
                assert answer.units == together[theorem.name, case.kind, case.name, answer.goal]


@pytest.mark.slow
def test_a_case_of_the_protocol_costs_the_same_after_another():
    def cost(spec: Specification, action: str) -> list[int]:
        return [answer.units for answer in discharge(spec.vocabulary, step(spec, action))]

    spec = specification()
    cost(spec, "join")
    assert cost(spec, "lead") == cost(specification(), "lead")


def test_what_is_proved_does_not_depend_on_the_goals_before(monkeypatch):
    """The goals of a case share solvers; also where no more than one is kept."""
    among = theorems(locks(guarded=False))

    def verdicts() -> list[tuple[str, ProofVerdict]]:
        return [(one.goal, one.verdict) for case in prove(among) for one in case]

    shared = verdicts()
    monkeypatch.setattr(prover, "KEPT", 1)
    assert verdicts() == shared
    alone = [
        (answer.goal, answer.verdict)
        for theorem in among
        for case in theorem.cases
        for goal in case.goals
        for answer in discharge(theorem.vocabulary, replace(case, goals={goal: case.goals[goal]}))
    ]
    assert alone == shared


# -- written out ---------------------------------------------------------------------------------------


def test_obligations_are_written_for_other_solvers(tmp_path):
    among = theorems(locks())
    for _ in prove(among, smt2=tmp_path):
        pass
    paths = sorted(tmp_path.rglob("*.smt2"))
    assert len(paths) == sum(theorem.obligations for theorem in among)
    for path in paths:
        text = path.read_text()
        solver = z3.Solver()
        solver.from_string(text)
        refuted = "everything-is-held" in path.name
        expected = "sat" if "possibility" in str(path) or refuted else "unsat"
        assert f"(set-info :status {expected})" in text
        assert refuted or str(solver.check()) == expected, path
    again = tmp_path / "again"
    for _ in prove(among, smt2=again, spread=spread):
        pass
    assert {path.relative_to(again): path.read_text() for path in again.rglob("*.smt2")} == {
        path.relative_to(tmp_path): path.read_text() for path in paths
    }


@pytest.mark.slow
def test_every_obligation_of_the_protocol_has_a_file_of_its_own():
    names = [
        file_name(theorem, case, goal) for theorem in proof() for case in theorem.cases for goal in case.goals
    ]
    assert len(names) > 1000
    assert len({*names}) == len(names)


# -- the protocol --------------------------------------------------------------------------------------


def step(spec: Specification, name: str) -> ProofCase:
    """The induction step of one action."""
    cases = next(theorem for theorem in theorems(spec) if theorem.name == "invariants").cases
    return next(case for case in cases if case.name == name)


def is_real(spec: Specification, found: Counterexample) -> None:
    """The group is one, the step is possible, all invariants hold before it and the broken one not after:
    by ``specs.logic.concrete``, which knows nothing of the solver."""
    v = spec.vocabulary
    number = {sort: {name: i for i, name in enumerate(names)} for sort, names in found.elements.items()}

    def value(symbol: Any, name: str | bool) -> Any:
        return number[symbol.value.name()][str(name)] if symbol.value.name() in number else name

    def indices(symbol: Any, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(number[sort.name()][name] for sort, name in zip(symbol.arguments, names, strict=True))

    def table(facts: Any) -> dict[str, dict[tuple[int, ...], Any]]:
        values: dict[str, dict[tuple[int, ...], Any]] = {}
        for fact in facts:
            symbol = v.symbols[fact.symbol]
            values.setdefault(fact.symbol, {})[indices(symbol, fact.of)] = value(symbol, fact.value)
        return values

    fixed: dict[str, Any] = {
        name: (lambda *at, values=values: values[at]) for name, values in table(found.fixed).items()
    }
    sizes = {sort: len(names) for sort, names in found.elements.items()}
    universe = Universe(v, sizes, fixed)
    stepper = Stepper(universe, spec.actions)
    before, after = structure(universe, table(found.before)), structure(universe, table(found.after))
    action = spec.action(found.action)
    parameters = tuple(number[c.sort().name()][found.parameters[str(c)]] for c in action.parameters)
    assert all(stepper.holds(axiom, before) for axiom in spec.axioms.values())
    assert [name for name, formula in spec.invariants.items() if not stepper.holds(formula, before)] == []
    assert stepper.allowed(before, action.name, parameters, after) is None
    assert not stepper.holds(spec.invariants[found.goal], after)


def refuted(spec: Specification, name: str, *goals: str) -> dict[str, Counterexample]:
    """What the action breaks (of the ``goals``, or of all), each shown by a real group."""
    found = {}
    case = step(spec, name)
    chosen = replace(case, goals={goal: case.goals[goal] for goal in goals or case.goals})
    for answer in discharge(spec.vocabulary, chosen):
        assert answer.verdict is not UNKNOWN
        if answer.verdict is REFUTED:
            assert answer.counterexample is not None
            is_real(spec, answer.counterexample)
            found[answer.goal] = answer.counterexample
    return found


def without(clause: str) -> Specification:
    return specification(contract={name: made for name, made in SAFETY.items() if name != clause})


@pytest.mark.slow
def test_the_clause_of_the_newest_claim_is_for_what_others_have():
    found = refuted(without("newest_claim"), "lead")
    assert [*found] == ["offered what nobody else has"]
    text = [*lines(found["offered what nobody else has"])]
    people = "consumers A, B; members A1, B1; partitions t-0; generations none, 0; assignors cooperative"
    assert text[0] == ("group", people)
    assert ("step", "lead(c=A)") in text
    assert ("", "offer(A, A1, t-0)") in text
    assert ("", "B1: member, claim t-0 0, supports cooperative") in text
    assert text[-1] == ("broken", "offered what nobody else has, for M=A1, N=B1, L=A1, P=t-0")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("clause", "broken"), [("once", "offered once"), ("held_back", "offered what nobody else has")]
)
def test_what_other_clauses_are_for(clause, broken):
    assert [*refuted(without(clause), "lead")] == [broken]


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "guard", "broken"),
    [
        ("leader_syncs", "wire_generation(c) == current", "no two rights"),
        ("join_answered", "names(m)", "answered under its id"),
        ("partitions_assigned", "ForAll(P, Implies(since(c, P) != none, got(c, P)))", "the listener is told"),
        ("static_returns", "of(n) == c", "no two rights"),
    ],
)
def test_a_guard_left_out_is_missed(name, guard, broken):
    spec = specification()
    action = spec.action(name)
    left = [one for one in action.guards if " ".join(str(one).split()) != guard]
    assert len(left) == len(action.guards) - 1
    weaker = replace(action, guard=And(left), guards=tuple(left))
    actions = tuple(weaker if one is action else one for one in spec.actions)
    assert refuted(replace(spec, actions=actions), name, broken)


@pytest.mark.slow
def test_an_action_put_in_the_place_of_another_is_judged():
    def join(s, t, c):
        """The claim says that it is of the last generation, whatever it is of."""
        t.when(honest(c))
        send_join(s, t, c)
        t.sent[c, P] = If(owns(s, c, P), s.generation(c), none)

    assert refuted(specification(join), "join", "a claim is what is owned")


@pytest.mark.slow
def test_a_goal_without_an_action_is_refuted_in_a_state():
    spec = specification()
    v, s = spec.vocabulary, spec.vocabulary.state()
    goal = v.close(Not(owns(s, v.letters["C"], P)))
    hypotheses = [*spec.axioms.values(), *spec.invariants.values()]
    found = counterexample(v, hypotheses, "nothing is owned", goal, None, ENOUGH)
    assert found is not None
    assert (found.action, found.after) == ("", ())
    assert [fact.value for fact in found.before if fact.symbol == "since" and fact.of == ("A", "t-0")] == [
        "0"
    ]
    assert found.broken == {"C": "A", "P": "t-0"}


@pytest.mark.slow
def test_files_of_the_protocol_are_unsatisfiable_as_they_say():
    spec = specification()
    theorem = next(theorem for theorem in theorems(spec) if theorem.name == "invariants")
    case = step(spec, "leader_syncs")
    for answer in discharge(spec.vocabulary, case):
        solver = z3.Solver()
        solver.from_string(written(theorem, case, answer))
        assert solver.check() == z3.unsat, answer.goal


def test_preferences_speak_of_the_vocabulary():
    v = specification().vocabulary
    assert {*PREFER} <= {*v.symbols}
    assert {*TOGETHER, *TOGETHER.values()} <= {*v.sorts}
