"""What is necessary: each clause of the contract and each decision of the design made otherwise, and what
becomes of the proof then.

A variation is needed if an obligation of the proof fails without it and a run from the beginning breaks what
was to be proved. The run is found by the solver along a path of actions, and it replays on the executable
model. Where every obligation still holds, safety does not need the decision; ``kept`` tells what does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import z3
from rebalance.model.machine import NOBODY
from rebalance.specs.bounded import Answer, Run, Unrolling
from rebalance.specs.concrete import Stepper
from rebalance.specs.contract import SAFETY, Clause
from rebalance.specs.logic import Action, Term, symbols_of
from rebalance.specs.protocol import Specification, specification
from rebalance.specs.replay import Altered, Replay, play
from rebalance.specs.variations import Effect
from rebalance.specs.vocabulary import A, C, Consumer, Member, P, cooperative, honest, of

LIMIT = 20.0
"""Seconds for one obligation; those that hold take less than one."""

BRIEFLY = 3.0
"""Seconds for one obligation where some are known to fail, which the solver cannot tell for all sizes."""

FEW = {"Consumer": 2, "Member": 2, "Partition": 1, "Generation": 4, "Assignor": 1}
"""How many elements most runs take."""

SMALL = {"Consumer": 2, "Member": 3, "Partition": 1, "Generation": 4, "Assignor": 1}
"""In how small a structure the obligations that fail are looked for."""


@dataclass(frozen=True)
class Fall:
    """How a variation is refuted.

    ``goal`` is what breaks: a property, or an invariant that says something by itself. ``path`` is one line
    for each consumer whose turn it is, with the actions that it is about; ``-`` is the group. ``clause`` is
    what the replay breaks (``rebalance.properties.protocol``), with ``switches`` of the model on or the
    model ``altered``; ``also`` are other events of the model for some actions. ``sizes`` are of sorts of which
    it takes more than in ``FEW``; ``given`` is asked of every state besides.
    """

    goal: str
    path: str
    clause: str = "group/owner"
    switches: tuple[str, ...] = ()
    altered: Altered | None = None
    also: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    given: Term = z3.BoolVal(True)


@dataclass(frozen=True)
class Variation:
    """One decision made otherwise.

    ``about`` is whose decision it is. ``obligations`` are the (action, invariant) that fail, or the
    properties that do not follow, as ("", property). ``invariants`` and ``properties`` take the place of
    those of the same name: with weaker ones the proof may go through. ``fall`` is how it is refuted; without
    one safety does not need it, and ``kept`` tells what does, in the form "clause: why".
    """

    name: str
    about: str
    sentence: str
    instead: tuple[Effect, ...] = ()
    contract: Mapping[str, Clause] = field(default_factory=lambda: SAFETY)
    invariants: Mapping[str, Term] = field(default_factory=dict)
    properties: Mapping[str, Term] = field(default_factory=dict)
    obligations: tuple[tuple[str, str], ...] = ()
    fall: Fall | None = None
    switches: tuple[str, ...] = ()
    kept: str = ""

    @cached_property
    def specification(self) -> Specification:
        """The protocol so varied."""
        spec = specification(*self.instead, contract=self.contract)
        close = spec.vocabulary.close
        return Specification(
            spec.vocabulary,
            spec.axioms,
            spec.initial,
            spec.actions,
            {**spec.invariants, **{name: close(formula) for name, formula in self.invariants.items()}},
            {**spec.properties, **{name: close(formula) for name, formula in self.properties.items()}},
        )

    @property
    def varied(self) -> tuple[Action, ...]:
        """The actions whose obligations are asked: those that differ; all, if the invariants do."""
        if self.invariants:
            return self.specification.actions
        names = [effect.__name__ for effect in self.instead]
        if self.contract is not SAFETY:
            names.append("lead")
        return tuple(self.specification.action(name) for name in names)


@dataclass(frozen=True)
class Refuted:
    """An obligation that fails: from a state in which all invariants hold, ``action`` leads to one in which
    ``invariant`` does not. Or a ``property`` that does not hold in such a state; then there is no action."""

    action: str
    invariant: str
    run: Run


@dataclass(frozen=True)
class Finding:
    """What became of a variation.

    ``open`` are obligations that are neither proved nor refuted. ``run`` is from the beginning to where the
    property breaks; ``deviates`` is the number of its first step that the protocol as specified does not
    allow, or the number of steps if only what is asked of commits differs.
    """

    variation: Variation
    refuted: tuple[Refuted, ...]
    open: tuple[tuple[str, str], ...]
    run: Run | None = None
    deviates: int = 0
    replay: Replay | None = None

    @property
    def verdict(self) -> str:
        """ "needed", "not needed" or "open"."""
        if self.run is not None:
            return "needed"
        return "open" if self.refuted or self.open else "not needed"


# -- obligations ---------------------------------------------------------------------------------------


def obligations(variation: Variation) -> Iterator[tuple[Action | None, str, Term]]:
    """What has to be proved anew: invariants after an action that assigns something they speak of, and the
    properties that were changed."""
    spec = variation.specification
    for action in variation.varied:
        for name, formula in spec.invariants.items():
            if symbols_of(formula) & set(action.updates):
                yield action, name, formula
    for name in variation.properties:
        yield None, name, spec.properties[name]
    if variation.invariants:
        yield from ((None, name, formula) for name, formula in spec.properties.items())


def unproved(variation: Variation, limit: float = LIMIT) -> list[tuple[str, str]]:
    """The obligations that do not hold for groups of any size, or are not decided within ``limit`` seconds."""
    spec = variation.specification
    solver = z3.Solver()
    solver.set("random_seed", 0)
    solver.set("timeout", int(limit * 1000))
    solver.add(*spec.axioms.values(), *spec.invariants.values())
    left = []
    for action, name, formula in obligations(variation):
        solver.push()
        if action is not None:
            solver.add(action.guard, action.where(spec.vocabulary))
            formula = action.after(spec.vocabulary, formula)
        solver.add(z3.Not(formula))
        if solver.check() != z3.unsat:
            left.append((action.name if action else "", name))
        solver.pop()
    return left


def refuted(
    variation: Variation, obligation: tuple[str, str], sizes: Mapping[str, int] = SMALL
) -> Refuted | None:
    """A finite structure that refutes the obligation, with no element to spare; None if there is none of
    these sizes."""
    run = _refute(variation, obligation, sizes)
    if run is None:
        return None
    smaller = dict(sizes)
    for sort in smaller:
        while smaller[sort] > 1:
            less = _refute(variation, obligation, {**smaller, sort: smaller[sort] - 1})
            if less is None:
                break
            smaller[sort], run = smaller[sort] - 1, less
    return Refuted(*obligation, run)


def _refute(variation: Variation, obligation: tuple[str, str], sizes: Mapping[str, int]) -> Run | None:
    spec, (action, name) = variation.specification, obligation
    unrolling = Unrolling(spec, sizes)
    unrolling.require(*spec.invariants.values())
    if action:
        unrolling.step(spec.action(action))
    wanted = {**spec.properties, **spec.invariants}[name]
    return unrolling.answer(LIMIT, z3.Not(wanted)).run


# -- runs ----------------------------------------------------------------------------------------------


def steps_of(path: str) -> list[tuple[int, str]]:
    """A path as (consumer, action); the consumer is NOBODY for what is of the group.

    >>> steps_of('''B: start join
    ... -: join_phase_ends''')
    [(1, 'start'), (1, 'join'), (-1, 'join_phase_ends')]
    """
    steps = []
    for line in filter(None, map(str.strip, path.splitlines())):
        who, _, names = line.partition(":")
        consumer = NOBODY if who == "-" else ord(who) - ord("A")
        steps += [(consumer, name) for name in names.split()]
    return steps


def counterexample(variation: Variation, spec: Specification | None = None) -> Answer:
    """A run along the path to a state that breaks the goal, of a group that the model can have: everybody
    is honest and subscribes to everything, assignors differ in what they can do."""
    fall = variation.fall
    assert fall is not None
    spec = spec or variation.specification
    unrolling = Unrolling(spec, {**FEW, **fall.sizes})
    elements = unrolling.steps.elements
    listed = z3.Exists([A], spec.vocabulary.state().lists(C, A))
    unrolling.require(honest(C), listed)
    able = [cooperative(assignor) for assignor in elements["Assignor"]]
    unrolling.solver.add(
        able[0] if fall.sizes.get("Assignor", 1) > 1 else z3.BoolVal(True), *map(z3.Not, able[1:])
    )
    unrolling.require(spec.initial)
    for number, (who, name) in enumerate(steps_of(fall.path)):
        action = spec.action(name)
        sorts = [parameter.sort() for parameter in action.parameters]
        names = [f"{parameter}@{number}" for parameter in action.parameters]
        unrolling.step(action, names)
        unrolling.require(fall.given)
        if who != NOBODY:
            consumer = elements["Consumer"][who]
            if Consumer in sorts:
                unrolling.solver.add(z3.Const(names[sorts.index(Consumer)], Consumer) == consumer)
            elif Member in sorts:
                unrolling.solver.add(of(z3.Const(names[sorts.index(Member)], Member)) == consumer)
        if name == "start":
            unrolling.require(spec.vocabulary.state().subscribed(elements["Consumer"][who], P), listed)
    return unrolling.answer(60.0, z3.Not(wanted(variation)))


def wanted(variation: Variation) -> Term:
    """What the fall breaks: a property or an invariant, closed."""
    assert variation.fall is not None
    spec = variation.specification
    return {**spec.invariants, **spec.properties}[variation.fall.goal]


def deviation(variation: Variation, run: Run) -> int:
    """The number of the first step that the protocol as specified does not allow; of the last, if it allows
    them all."""
    spec, names = specification(), [action.name for action in variation.varied]
    stepper, before = Stepper(run.universe, spec.actions), run.initial
    for number, (name, parameters, after) in enumerate(run.steps, 1):
        if name in names and stepper.allowed(before, name, parameters, after) is not None:
            return number
        before = after
    return len(run.steps)


def replay(variation: Variation, run: Run) -> Replay:
    """The run on the executable model. Raises ReplayError when it does not follow."""
    fall = variation.fall
    assert fall is not None
    whose = [who for who, _ in steps_of(fall.path)]
    return play(run, whose, fall.clause, fall.switches, fall.altered, fall.also)


def examine(variation: Variation) -> Finding:
    """Everything that is to be known of a variation."""
    left = unproved(variation, LIMIT if variation.fall is None else BRIEFLY)
    found = [refuted(variation, obligation) for obligation in left]
    known = tuple(one for one in found if one is not None)
    open_ = tuple(left[i] for i, one in enumerate(found) if one is None)
    run = counterexample(variation).run if variation.fall else None
    if run is None:
        return Finding(variation, known, open_)
    return Finding(variation, known, open_, run, deviation(variation, run), replay(variation, run))
