"""The state machine on finite structures: against hand-written machines, against z3, against itself."""
# ruff: noqa: N803, N806, SIM300 (capital letters are variables of the language, == makes terms)

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import pytest
import z3
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY
from rebalance_verifier.specs.logic.compiled import Exists, translate
from rebalance_verifier.specs.logic.language import ANY, OPEN, Vocabulary
from rebalance_verifier.specs.logic.universe import Universe
from z3 import And, ForAll, If, Implies, Not, Or
from z3 import Exists as Some

from tests.specs.logic.structures import structure
from tools.state_space import StateSpace, explore

# -- toys ----------------------------------------------------------------------------------------------


def counter():
    """A number that grows by any amount, and falls back to the least."""
    v = Vocabulary()
    number, _, _ = v.sort("Number", "GH")
    lt = v.fixed("lt", number, number)
    zero = v.fixed("zero", value=number)
    v.function("now", value=number)
    v.relation("seen", number, meaning="it has been that")

    def grow(s, t, g):
        t.when(lt(s.now, g))
        t.now = g
        t.seen[g] = True

    def reset(s, t):
        t.when(s.now != zero)
        t.now = zero

    return v, [v.action(grow), v.action(reset)]


def counter_universe(v, size):
    return Universe(v, {"Number": size}, {"lt": lambda g, h: g < h, "zero": 0})


def locks():
    """Clients that ask for locks, get what is free, and drop them; all of them at once when they die."""
    v = Vocabulary()
    client, C, D = v.sort("Client", "CD")
    lock, L = v.sort("Lock", "L")
    v.relation("asks", client, lock)
    v.relation("held", client, lock)
    s = v.state()
    exclusive = Implies(And(s.held(C, L), s.held(D, L)), C == D)

    def ask(s, t, c, l):  # noqa: E741
        t.when(Not(s.held(c, l)))
        t.asks[c, l] = True

    def grant(s, t, c, l):  # noqa: E741
        t.when(s.asks(c, l), ForAll([D], Not(s.held(D, l))))
        t.held[c, l] = True
        t.asks[c, l] = False

    def die(s, t, c):
        t.when(Some([L], Or(s.asks(c, L), s.held(c, L))))
        t.asks[c, L] = False
        t.held[c, L] = False

    def careless(s, t, c, l):  # noqa: E741
        t.when(s.asks(c, l))
        t.held[c, l] = True

    return v, [v.action(ask), v.action(grant), v.action(die)], v.action(careless), exclusive


@cache  # z3 knows an enumeration once
def teams():
    """Everything the language has: enumerations as values and as arguments, ``ANY`` with conditions, parts
    of one symbol assigned twice, quantifiers and conditionals in what is assigned, keys that are terms."""
    v = Vocabulary()
    player, P, Q = v.sort("Player", "PQ")
    team, T = v.sort("Team", "T")
    colour, RED, GREEN, BLUE = v.enumeration("Hue", ("red", "green", "blue"))
    coach = v.fixed("coach", team, value=player)
    v.function("captain", value=player)
    v.relation("plays", player, team)
    v.function("shirt", team, value=colour)
    v.relation("worn", colour, meaning="by some team")

    def choose(s, t, q):
        """A captain who plays somewhere; it may be anybody's turn in the teams that q leaves."""
        t.when(Some([T], s.plays(q, T)))
        t.captain = q
        t.plays[P, T] = And(s.plays(P, T), Or(P != q, coach(T) == q, ForAll([Q], s.plays(Q, T))))

    def dress(s, t, q):
        """Every team but that of the captain gets a colour; two teams with a common player differ."""
        t.shirt[T] = ANY
        t.where(Implies(s.plays(s.captain, T), t.shirt(T) == s.shirt(T)))
        t.where(Implies(And(coach(T) == q, s.captain == q), t.shirt(T) != RED))
        t.worn[RED] = Some([T], s.shirt(T) == RED)
        t.worn[GREEN] = ANY
        t.where(t.worn(GREEN) == Some([T], t.shirt(T) == GREEN))

    def transfer(s, t, p):
        """The captain's teams become p's; the captain's coach keeps him out or not."""
        t.when(s.captain != p)
        t.plays[p, T] = s.plays(s.captain, T)
        t.plays[s.captain, T] = ANY
        t.where(Implies(t.plays(s.captain, T), coach(T) != p))
        t.shirt[T] = If(s.worn(BLUE), BLUE, If(coach(T) == p, GREEN, s.shirt(T)))
        t.captain = p

    return v, [v.action(effect) for effect in (choose, dress, transfer)]


def teams_universe(v):
    return Universe(v, {"Player": 2, "Team": 2}, {"coach": lambda team: 1 - team})


def any_structure(universe, rng):
    return tuple(
        tuple(rng.choice(universe.domain_of(symbol.name)) for _ in universe.places[symbol.name])
        for symbol in universe.vocabulary.mutable
    )


# -- universes and states ------------------------------------------------------------------------------


def test_structures_are_read_where_they_were_written():
    v, _, _, _ = locks()
    universe = Universe(v, {"Client": 2, "Lock": 3})
    state = structure(universe, {"held": {(1, 2): True}, "asks": {(0, 0): True, (1, 1): True}})
    assert state == ((True, False, False, False, True, False), (False, False, False, False, False, True))
    assert [
        arguments for arguments in product(range(2), range(3)) if universe.read(state, "held", *arguments)
    ] == [(1, 2)]
    other = structure(universe, {"held": {(1, 2): True}, "asks": {(0, 0): True}})
    assert list(universe.differences(state, other)) == [("asks", (1, 1), True, False)]


def test_defaults_and_sole_arguments():
    v, _ = teams()
    universe = teams_universe(v)
    state = structure(universe, {"shirt": {1: "blue"}, "captain": {(): 1}}, {"shirt": "red", "worn": True})
    assert state == ((1,), (False,) * 4, ("red", "blue"), (True, True, True))


@pytest.mark.parametrize(
    ("sizes", "fixed", "problem"),
    [
        ({"Player": 2}, {"coach": 0}, "missing or unknown: Team"),
        ({"Player": 2, "Team": 0}, {"coach": 0}, "Team needs"),
        ({"Player": 2, "Team": 1, "Hue": 3}, {"coach": 0}, "unknown: Hue"),
        ({"Player": 2, "Team": 1}, {}, "unknown: coach"),
        ({"Player": 2, "Team": 1}, {"coach": 2}, "2 is no value of coach"),
        ({"Player": 2, "Team": 1}, {"coach": 0, "shirt": "red"}, "unknown: shirt"),
    ],
)
def test_incomplete_universes_are_refused(sizes, fixed, problem):
    v, _ = teams()
    with pytest.raises(ValueError, match=problem):
        Universe(v, sizes, fixed)


# -- steps of the toys ---------------------------------------------------------------------------------


def test_counter_does_what_the_hand_written_one_does():
    v, actions = counter()
    universe = counter_universe(v, 4)
    stepper = StateSpace(universe, actions)
    for now, *seen in product(range(4), *[(False, True)] * 4):
        expected: list[Any] = [
            ("grow", (g,), g, [*seen[:g], True, *seen[g + 1 :]]) for g in range(now + 1, 4)
        ]
        expected += [("reset", (), 0, seen)] if now else []
        assert list(stepper.successors(((now,), tuple(seen)))) == [
            (name, parameters, ((then,), tuple(saw))) for name, parameters, then, saw in expected
        ]


def test_locks_do_what_the_hand_written_ones_do():
    v, actions, _, _ = locks()
    stepper = StateSpace(Universe(v, {"Client": 2, "Lock": 2}), actions)
    places = list(product(range(2), range(2)))
    at = {arguments: i for i, arguments in enumerate(places)}

    def put(entry, values):
        return tuple(values.get(arguments, entry[at[arguments]]) for arguments in places)

    for asks, held in product(product((False, True), repeat=4), repeat=2):
        expected: set[Any] = set()
        for c, lock in places:
            here = at[c, lock]
            if not held[here]:
                expected.add(("ask", (c, lock), (put(asks, {(c, lock): True}), held)))
            if asks[here] and not held[at[0, lock]] and not held[at[1, lock]]:
                after = put(asks, {(c, lock): False}), put(held, {(c, lock): True})
                expected.add(("grant", (c, lock), after))
        for c in range(2):
            none = {(c, 0): False, (c, 1): False}
            after = put(asks, none), put(held, none)
            if after != (asks, held):
                expected.add(("die", (c,), after))
        found = list(stepper.successors((asks, held)))
        assert len(found) == len(expected)
        assert set(found) == expected


def every_step(stepper, state):
    """What ``successors`` says, by action and parameters."""
    found: dict[Any, list[Any]] = {}
    for name, parameters, after in stepper.successors(state):
        found.setdefault((name, parameters), []).append(after)
    return found


@pytest.mark.parametrize("budget", [0, 80])
def test_successors_are_exactly_what_is_allowed(budget, monkeypatch):
    """Of every pair of states of a tiny universe, and all parameters; with loops, and written out."""
    monkeypatch.setattr("rebalance_verifier.specs.logic.compiled.WRITTEN_OUT", budget)
    v, actions = teams()
    universe = Universe(v, {"Player": 2, "Team": 1}, {"coach": 1})
    stepper = StateSpace(universe, actions)
    domains = [universe.domain_of(symbol.name) for symbol in v.mutable]
    entries = [
        list(product(domain, repeat=len(universe.places[symbol.name])))
        for domain, symbol in zip(domains, v.mutable, strict=True)
    ]
    states = list(product(*entries))
    allowed = 0
    for before in states[::16]:
        steps = every_step(stepper, before)
        for name, q in product(stepper.actions, range(2)):
            afters = [after for after in states if stepper.allowed(before, name, (q,), after) is None]
            assert afters == sorted(steps.get((name, (q,)), []), key=states.index)
            allowed += len(afters)
    assert allowed > 50


@pytest.mark.parametrize("seed", range(3))
def test_a_successor_with_one_value_changed_is_not_allowed_unless_it_is_another(seed):
    v, actions = teams()
    universe, rng = teams_universe(v), random.Random(seed)
    stepper = StateSpace(universe, actions)
    refused = 0
    for _ in range(60):
        before = any_structure(universe, rng)
        for (name, parameters), afters in every_step(stepper, before).items():
            after = rng.choice(afters)
            assert stepper.allowed(before, name, parameters, after) is None
            position = rng.randrange(len(after))
            i = rng.randrange(len(after[position]))
            domain = universe.domain_of(v.mutable[position].name)
            entry = list(after[position])
            entry[i] = rng.choice([value for value in domain if value != entry[i]])
            mutated = (*after[:position], tuple(entry), *after[position + 1 :])
            problem = stepper.allowed(before, name, parameters, mutated)
            assert (problem is None) == (mutated in afters)
            refused += problem is not None
    assert refused > 50


def test_what_is_wrong_with_a_step_is_said():
    v, actions, _, _ = locks()
    universe = Universe(v, {"Client": 2, "Lock": 2})
    stepper = StateSpace(universe, actions)
    wanted = structure(universe, {"asks": {(0, 1): True}})
    held = structure(universe, {"held": {(0, 1): True}})
    empty = structure(universe, {})
    assert stepper.allowed(wanted, "grant", (0, 1), held) is None
    assert stepper.allowed(wanted, "grant", (1, 1), held) == "grant(c=1, l=1) needs asks(c, l)"
    both = structure(universe, {"asks": {(1, 1): True}, "held": {(0, 1): True}})
    problem = stepper.allowed(both, "grant", (1, 1), both)
    assert problem == "grant(c=1, l=1) needs ForAll(D, Not(held(D, l)))"
    problem = stepper.allowed(wanted, "grant", (0, 1), empty)
    assert problem == "grant(0, 1): held(0, 1) was False, is False, should be True"
    elsewhere = structure(universe, {"held": {(0, 1): True}, "asks": {(1, 0): True}})
    problem = stepper.allowed(wanted, "grant", (0, 1), elsewhere)
    assert problem == "grant(0, 1): asks(1, 0) was False, is True, should be False"


def test_what_is_wrong_with_an_open_value_is_said():
    v, actions = teams()
    universe = teams_universe(v)
    stepper = StateSpace(universe, actions)
    before = structure(universe, {"plays": {(0, 0): True}, "captain": {(): 0}}, {"shirt": "red"})
    after = structure(
        universe,
        {"plays": {(0, 0): True}, "captain": {(): 0}, "worn": {"red": True}, "shirt": {0: "blue"}},
        {"shirt": "red"},
    )
    problem = stepper.allowed(before, "dress", (1,), after)
    assert problem is not None
    assert problem.startswith("dress(q=1) has to lead to ForAll(T, Implies(plays(captain, T), shirt'(T) == ")


def test_an_action_applied():
    v, actions = counter()
    stepper = StateSpace(counter_universe(v, 3), actions)
    before = ((1,), (True, True, False))
    assert stepper.apply(before, "grow", (2,)) == ((2,), (True, True, True))
    with pytest.raises(ValueError, match=r"grow\(g=1\) needs lt\(now, g\)"):
        stepper.apply(before, "grow", (1,))
    with pytest.raises(ValueError, match="no action 'win'"):
        stepper.apply(before, "win", ())


def test_an_action_that_leaves_something_open_cannot_be_applied():
    v, actions = teams()
    universe = teams_universe(v)
    before = structure(universe, {"captain": {(): 0}}, {"shirt": "red"})
    with pytest.raises(ValueError, match=r"dress\(1\): shirt is open"):
        StateSpace(universe, actions).apply(before, "dress", (1,))


def test_what_is_assigned_later_is_what_counts():
    """Also when the part before left it open."""
    v = Vocabulary()
    sort, _ = v.sort("Sort", "C")
    v.relation("up", sort)

    def wake(s, t, c):
        t.up[v.letters["C"]] = ANY
        t.up[c] = True

    stepper = StateSpace(Universe(v, {"Sort": 2}), [v.action(wake)])
    found = list(stepper.successors(((False, False),)))
    assert found == [
        ("wake", (0,), ((True, False),)),
        ("wake", (0,), ((True, True),)),
        ("wake", (1,), ((False, True),)),
        ("wake", (1,), ((True, True),)),
    ]
    assert stepper.allowed(((False, False),), "wake", (0,), ((False, True),)) is not None


def test_a_condition_on_the_state_after_holds_without_anything_open():
    """It is then a condition on the state before, as ``SpecAction.where`` makes it."""
    v = Vocabulary()
    sort, every = v.sort("Sort", "C")
    v.relation("up", sort)

    def wake(s, t, c):
        t.up[c] = True
        t.where(t.up(every))

    stepper = StateSpace(Universe(v, {"Sort": 2}), [v.action(wake)])
    assert list(stepper.successors(((True, False),))) == [("wake", (1,), ((True, True),))]
    assert stepper.allowed(((True, False),), "wake", (0,), ((True, False),)) is not None
    with pytest.raises(ValueError, match="has to lead to"):
        stepper.apply(((True, False),), "wake", (0,))


def one_action(effect):
    v = Vocabulary()
    sort, C, D = v.sort("Sort", "CD")
    v.relation("up", sort)
    v.relation("near", sort, sort)
    v.function("next", sort, value=sort)
    return StateSpace(
        Universe(v, {"Sort": 2}), [v.action(lambda s, t, c: effect(s, t, c, C, D), name="step")]
    )


@pytest.mark.parametrize(
    ("effect", "problem"),
    [
        (lambda s, t, c, C, D: t.when(s.up(C)), "C is neither a symbol nor bound"),
        (lambda s, t, c, C, D: t.up.__setitem__(c, s.up(D)), "D is neither a symbol nor bound"),
        (lambda s, t, c, C, D: t.up.__setitem__(c, t.up(c)), "up' is neither a symbol nor bound"),
        (lambda s, t, c, C, D: t.near.__setitem__((C, s.next(C)), True), "depends on a letter of the key"),
        (lambda s, t, c, C, D: t.near.__setitem__((C, C), True), "a letter occurs twice in the key"),
    ],
)
def test_actions_that_cannot_be_executed_are_refused(effect, problem):
    with pytest.raises(ValueError, match=problem):
        list(one_action(effect).successors(((True,) * 2, (True,) * 4, (0,) * 2)))


def test_terms_that_cannot_be_executed_are_refused():
    v, _ = counter()
    stepper = StateSpace(counter_universe(v, 2), [])
    x, array = z3.Int("x"), z3.Array("a", v.sorts["Number"], z3.BoolSort())
    for term in (ForAll([x], x == x), x + 1 == 2, z3.Select(array, v.state().now)):
        with pytest.raises(ValueError, match=r"not supported|not in the vocabulary|neither"):
            stepper.holds(term, ((0,), (True, False)))


# -- formulas, against z3 ------------------------------------------------------------------------------


@cache  # z3 knows an enumeration once
def zoo():
    v = Vocabulary()
    a, *_ = v.sort("A", "XYZ")
    b, *_ = v.sort("B", "UV")
    kind, *_ = v.enumeration("Kind", ("one", "two", "three"))
    v.fixed("below", a, a)
    v.fixed("home", a, value=b)
    v.fixed("top", value=a)
    v.fixed("likes", kind, b)
    v.relation("r", a, b)
    v.relation("flag")
    v.relation("odd", kind, a)
    v.function("f", a, b, value=a)
    v.function("g", a, value=kind)
    v.function("k", value=a)
    v.function("w", kind, value=b)
    return v


def zoo_universe(v, rng):
    below = {pair: rng.random() < 0.5 for pair in product(range(3), repeat=2)}
    home = [rng.randrange(2) for _ in range(3)]
    likes = {pair: rng.random() < 0.5 for pair in product(v.values["Kind"], range(2))}
    return Universe(
        v,
        {"A": 3, "B": 2},
        {
            "below": lambda x, y: below[x, y],
            "home": lambda x: home[x],
            "top": rng.randrange(3),
            "likes": lambda kind, u: likes[kind, u],
        },
    )


class Drawn:
    """Random terms of a vocabulary."""

    def __init__(self, v, rng):
        self.v, self.rng = v, rng
        self.constants = {name: [sort.constructor(i)() for i in range(sort.num_constructors())]
                          for name, sort in v.sorts.items() if name in v.values}  # fmt: skip

    def term(self, sort, depth, scope):
        """Of a sort that is not Bool."""
        leaves = [x for x in scope if x.sort() == sort] + self.constants.get(sort.name(), [])
        calls = [s for s in self.v.symbols.values() if s.value == sort and (depth > 0 or not s.arguments)]
        if depth > 0 and self.rng.random() < 0.1:
            return If(self.formula(depth - 1, scope), *(self.term(sort, depth - 1, scope) for _ in "ab"))
        if leaves and (not calls or self.rng.random() < 0.6):
            return self.rng.choice(leaves)
        return self.call(self.rng.choice(calls), depth, scope) if calls else self.term(sort, 1, scope)

    def call(self, symbol, depth, scope):
        return symbol.of()(*(self.term(sort, depth - 1, scope) for sort in symbol.arguments))

    def formula(self, depth, scope):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            if rng.random() < 0.5:
                relations = [s for s in self.v.symbols.values() if s.value == z3.BoolSort()]
                return self.call(rng.choice(relations), 2, scope)
            sort = rng.choice(list(self.v.sorts.values()))
            return self.term(sort, 1, scope) == self.term(sort, 1, scope)
        kind = rng.choice(
            ["not", "and", "or", "implies", "iff", "xor", "if", "distinct", *["quantifier"] * 6]
        )
        parts = [self.formula(depth - 1, scope) for _ in range(3)] if kind != "quantifier" else []
        match kind:
            case "not":
                return Not(parts[0])
            case "and":
                return And(*parts)
            case "or":
                return Or(*parts)
            case "implies":
                return Implies(*parts[:2])
            case "iff":
                return parts[0] == parts[1]
            case "xor":
                return z3.Xor(*parts[:2])
            case "if":
                return If(*parts)
            case "distinct":
                sort = rng.choice(list(self.v.sorts.values()))
                return z3.Distinct(*(self.term(sort, 1, scope) for _ in range(rng.randint(2, 3))))
        bound = rng.sample(list(self.v.letters.values()), rng.randint(1, 2))
        # Often an equation for the variable, as protocols have it: that is what is compiled differently.
        body = self.formula(depth - 1, [*scope, *bound])
        if rng.random() < 0.4:
            body = rng.choice([And, Implies])(bound[0] == self.term(bound[0].sort(), 1, scope or bound), body)
        return rng.choice([ForAll, Some])(bound, body)


def z3_holds(universe, formula, state, values=None):
    """What z3 says, which knows no finite sorts: the elements are distinct constants and everything, every
    symbol's table is stated. None when it gives up, after a fixed amount of work."""
    v = universe.vocabulary
    elements = {"Bool": {False: z3.BoolVal(False), True: z3.BoolVal(True)}}
    solver = z3.Solver()
    solver.set(random_seed=0, rlimit=2_000_000)
    for name, sort in v.sorts.items():
        if name in v.values:
            elements[name] = {
                sort.constructor(i).name(): sort.constructor(i)() for i in range(len(v.values[name]))
            }
        else:
            elements[name] = {i: z3.Const(f"{name}!{i}", sort) for i in universe.domains[name]}
            x = z3.Const("x", sort)
            solver.add(z3.Distinct(*elements[name].values()))
            solver.add(ForAll([x], Or(*(x == e for e in elements[name].values()))))
    tables = {**universe.tables, **{s.name: state[i] for i, s in enumerate(v.mutable)}}
    for symbol in v.symbols.values():
        for arguments, i in universe.places[symbol.name].items():
            terms = (elements[s.name()][e] for s, e in zip(symbol.arguments, arguments, strict=True))
            solver.add(symbol.of()(*terms) == elements[symbol.value.name()][tables[symbol.name][i]])
    for constant, value in (values or {}).items():
        solver.add(constant == elements[constant.sort().name()][value])
    answer = solver.check(formula)
    opposite = solver.check(Not(formula))
    if z3.unknown in (answer, opposite):
        return None
    assert answer != opposite
    return answer == z3.sat


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8))
def test_random_formulas_mean_what_z3_says(seed, monkeypatch):
    """Both with short quantifiers written out and with loops for all of them."""
    rng, v = random.Random(seed), zoo()
    verdicts = []
    for i in range(40):
        universe = zoo_universe(v, rng)
        formula = Drawn(v, rng).formula(rng.randint(2, 5), [])
        state = any_structure(universe, rng)
        expected = z3_holds(universe, formula, state)
        if expected is None:
            continue
        for budget in (0, 80, 10_000):
            monkeypatch.setattr("rebalance_verifier.specs.logic.compiled.WRITTEN_OUT", budget)
            assert StateSpace(universe, []).holds(formula, state) == expected, (i, budget, formula)
        verdicts.append(expected)
    assert min(verdicts.count(True), verdicts.count(False)) > 5
    assert len(verdicts) > 35


def test_a_few_random_formulas_mean_what_z3_says():
    rng, v = random.Random("few"), zoo()
    universe = zoo_universe(v, rng)
    stepper = StateSpace(universe, [])
    verdicts = set()
    for _ in range(12):
        formula, state = Drawn(v, rng).formula(3, []), any_structure(universe, rng)
        expected = z3_holds(universe, formula, state)
        assert stepper.holds(formula, state) == expected, formula
        verdicts.add(expected)
    assert len(verdicts) == 2


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("seed", range(3))
def test_breach_gives_letters_for_which_z3_agrees(seed):
    rng, v = random.Random(seed), zoo()
    universe = zoo_universe(v, rng)
    stepper, letters = StateSpace(universe, []), [v.letters[name] for name in "XYU"]
    found = 0
    for _ in range(20):
        formula, state = Drawn(v, rng).formula(2, letters), any_structure(universe, rng)
        breach = stepper.breach(formula, letters, state)
        assert (breach is None) == stepper.holds(formula, state)
        assert (breach is None) == z3_holds(universe, ForAll(letters, formula), state)
        if breach is not None:
            found += 1
            assert list(breach) == ["X", "Y", "U"]
            values = {v.letters[name]: x for name, x in breach.items()}
            assert z3_holds(universe, formula, state, values) is False
    assert 0 < found < 20


def test_loops_remain_where_there_is_too_much_to_write_out():
    v = zoo()
    universe = zoo_universe(v, random.Random(0))
    s, (x, y, u) = v.state(), [v.letters[name] for name in "XYU"]
    formula = Some([x, y, u], And(s.r(x, u), s.r(y, u), s.f(x, u) != y, s.flag))
    node = translate(formula, universe, ("",), ())
    assert any(isinstance(part, Exists) for part in getattr(node, "parts", (node,)))


def test_many_states_are_found_by_their_formula():
    v, _ = counter()
    universe = counter_universe(v, 3)
    stepper, s, g = StateSpace(universe, []), v.state(), v.letters["G"]
    formula = And(s.seen(s.now), Implies(v.symbols["lt"].of()(s.now, g), Not(s.seen(g))))
    expected = [
        ((now,), seen)
        for now, seen in product(range(3), product((False, True), repeat=3))
        if seen[now] and not any(seen[now + 1 :])
    ]
    assert list(stepper.states(formula)) == expected
    assert list(stepper.states(And(formula, s.now != s.now))) == []


# -- steps, against the formulas that are proved ---------------------------------------------------------


def agrees_with_proof(stepper, before, name, parameters, after):
    """The step as ``SpecAction.guard``, ``updates`` and ``where(vocabulary)`` describe it to the solver. What
    is open is what the state after says."""
    universe, action = stepper.universe, stepper.actions[name]
    names = [str(parameter) for parameter in action.parameters]

    def value(term, places=()):
        found = [*names, *(str(placeholder) for placeholder in places)]
        return stepper.compiled(term, ("", OPEN), found)  # a function of two states and of these

    if not value(action.guard)(before, after, *parameters):
        return False
    for symbol in universe.vocabulary.mutable:
        update = action.updates.get(symbol.name)
        body = value(update.body, update.places) if update else None
        for arguments in universe.places[symbol.name]:
            old = universe.read(before, symbol.name, *arguments)
            new = body(before, after, *parameters, *arguments) if body else old
            if universe.read(after, symbol.name, *arguments) != new:
                return False
    return value(action.where(universe.vocabulary))(before, after, *parameters)


@pytest.mark.slow
def test_steps_of_the_toys_are_the_steps_of_the_proof():
    v, actions = teams()
    universe, rng = teams_universe(v), random.Random(1)
    stepper = StateSpace(universe, actions)
    seen = {True: 0, False: 0}
    for _ in range(25):
        before = any_structure(universe, rng)
        for (name, parameters), afters in every_step(stepper, before).items():
            for after in (rng.choice(afters), any_structure(universe, rng), before):
                allowed = stepper.allowed(before, name, parameters, after) is None
                assert allowed == agrees_with_proof(stepper, before, name, parameters, after)
                seen[allowed] += 1
    assert min(seen.values()) > 20


@cache
def protocol():
    """The protocol of specs.classic, of two consumers: one is static, the other claims what it likes."""
    universe = Universe(
        VOCABULARY,
        {"Consumer": 2, "Member": 3, "Partition": 2, "Generation": 4, "Assignor": 1},
        {
            "of": lambda m: m % 2,
            "static": lambda c: c == 1,
            "honest": lambda c: c == 1,
            "cooperative": True,
            "lt": lambda g, h: g < h,
            "none": 0,
            "zero": 1,
        },
    )
    return StateSpace(universe, specification().actions)


def walk(stepper, rng, length):
    """Steps of a run, every action as likely as any other, but faults rare; each step with its siblings."""
    state = rng.choice(list(stepper.states(specification().initial)))
    for _ in range(length):
        steps = every_step(stepper, state)
        quiet = [key for key in steps if not stepper.actions[key[0]].fault]
        names = sorted({name for name, _ in (quiet if quiet and rng.random() < 0.85 else steps)})
        name = rng.choice(names)
        parameters = rng.choice([key[1] for key in steps if key[0] == name])
        after = rng.choice(steps[name, parameters])
        yield state, name, parameters, after, steps[name, parameters]
        state = after


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("seed", range(3))
def test_steps_of_the_protocol_are_the_steps_of_the_proof(seed):
    rng, stepper = random.Random(seed), protocol()
    universe, seen = stepper.universe, set()
    for before, name, parameters, after, siblings in walk(stepper, rng, 80):
        assert stepper.allowed(before, name, parameters, after) is None
        assert agrees_with_proof(stepper, before, name, parameters, after)
        position = rng.randrange(len(after))
        i = rng.randrange(len(after[position]))
        domain = universe.domain_of(VOCABULARY.mutable[position].name)
        entry = list(after[position])
        entry[i] = rng.choice([value for value in domain if value != entry[i]])
        mutated = (*after[:position], tuple(entry), *after[position + 1 :])
        problem = stepper.allowed(before, name, parameters, mutated)
        assert (problem is None) == (mutated in siblings)
        seen.add(name)
    assert len(seen) > 20


# -- search --------------------------------------------------------------------------------------------


def test_the_search_counts_what_can_be_counted_by_hand():
    """The counter visits any set of numbers: 2^(n-1) sets that contain 0, at 0 or the last one it grew to."""
    v, actions = counter()
    universe = counter_universe(v, 3)
    stepper = StateSpace(universe, actions)
    counts = explore(stepper, [structure(universe, {"now": {(): 0}, "seen": {0: True}})])
    # 0{0} -> 1{01} 2{02}; 1{01} -> 2{012} 0{01}; 2{02} -> 0{02}; 0{01} -> 1{01} 2{012}; and so on
    assert (counts.distinct, counts.depth, counts.end) == (8, 4, "complete")
    steps = sum(taken for _, taken in counts.actions.values())
    assert counts.generated == 1 + steps
    assert counts.actions == {"grow": (4, 10), "reset": (3, 4)}


def test_the_search_finds_what_an_invariant_forbids():
    v, actions, careless, exclusive = locks()
    universe = Universe(v, {"Client": 2, "Lock": 1})
    start = [structure(universe, {})]
    clean = explore(StateSpace(universe, actions), start, {"exclusive": exclusive})
    assert (clean.end, clean.breach) == ("complete", None)
    broken = explore(StateSpace(universe, [*actions, careless]), start, {"exclusive": exclusive})
    assert broken.end == "breach"
    assert broken.breach is not None
    assert broken.breach.invariant == "exclusive"
    assert broken.breach.letters in ({"C": 0, "D": 1, "L": 0}, {"C": 1, "D": 0, "L": 0})
    assert len(broken.breach.steps) == broken.depth - 1 == 4
    stepper, state = StateSpace(universe, [*actions, careless]), broken.breach.initial
    for name, parameters, after in broken.breach.steps:
        assert stepper.allowed(state, name, parameters, after) is None
        state = after
    assert universe.read(state, "held", 0, 0)
    assert universe.read(state, "held", 1, 0)


def test_a_bad_initial_state_is_a_breach_without_steps():
    v, actions, _, exclusive = locks()
    universe = Universe(v, {"Client": 2, "Lock": 1})
    bad = structure(universe, {"held": {(0, 0): True, (1, 0): True}})
    counts = explore(StateSpace(universe, actions), [bad], {"exclusive": exclusive})
    assert (counts.end, counts.distinct, counts.depth) == ("breach", 1, 1)
    assert counts.breach is not None
    assert counts.breach.steps == ()


def test_the_search_stops_at_its_limit_and_says_so():
    v, actions, _, _ = locks()
    universe = Universe(v, {"Client": 2, "Lock": 2})
    start = [structure(universe, {})]
    whole = explore(StateSpace(universe, actions), start)
    assert whole.end == "complete"
    # Each lock: held by 0, 1 or nobody, and any of those who do not hold it ask.
    # A client that holds it may not ask, but one that asks may hold: only if it asked twice. It cannot.
    assert whole.distinct == (4 + 2 + 2) ** 2
    cut = explore(StateSpace(universe, actions), start, limit=10)
    assert (cut.end, cut.distinct) == ("limit", 10)
    assert explore(StateSpace(universe, actions), start, limit=whole.distinct) == whole
