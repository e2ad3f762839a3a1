"""What is necessary: each clause of the contract and each decision of the design made otherwise, and what
becomes of the proof then.

A variation is needed if an obligation of the proof fails without it and a run from the beginning breaks what
was to be proved. The run is found by the solver along a path of actions, and it replays on the executable
model. Where every obligation still holds, safety does not need the decision; ``kept`` tells what does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import z3
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.machine import NOBODY
from rebalance_verifier.specs.classic.contract import SAFETY, ContractClause
from rebalance_verifier.specs.classic.necessity.replay import Altered, Besides, Replay, play
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import A, C, Consumer, Member, P, cooperative, honest, of
from rebalance_verifier.specs.logic.bounded import (
    SearchAnswer,
    SpecRun,
    StepRelations,
    Unrolling,
    first_deviation,
)
from rebalance_verifier.specs.logic.counterexample import lines
from rebalance_verifier.specs.logic.language import Effect, SpecAction, Term
from rebalance_verifier.specs.logic.limit import LIMIT
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict, Spread, arranged, in_turn, prove
from rebalance_verifier.specs.logic.specification import IMPLIES, INIT, Specification, Theorem
from rebalance_verifier.specs.logic.theorems import theorems
from rebalance_verifier.specs.logic.universe import call

FEW = {"Consumer": 2, "Member": 2, "Partition": 1, "Generation": 4, "Assignor": 1}
"""How many elements most runs take."""


@dataclass(frozen=True, kw_only=True)
class Refutation:
    """How a variation is refuted.

    ``goal`` is what breaks: a property, or an invariant that says something by itself. ``path`` is one line
    for each consumer whose turn it is, with the actions that it is about; ``-`` is the group; ``dynamic`` is
    the same of dynamic members where those of ``path`` are static for no reason. ``clause`` is
    what the replay breaks (``properties.group.clauses``), with the model ``altered`` or the
    variation's switches on; ``also`` are other events of the model for some actions. ``sizes`` are of sorts
    of which it takes more than in ``FEW``; ``given`` is asked of every state besides.
    """

    goal: str
    path: str
    dynamic: str = ""
    clause: str = "group/owner"
    altered: Altered | None = None
    also: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    given: Term | None = None


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One decision made otherwise.

    ``about`` is whose decision it is. ``obligations`` are the (action, invariant) that fail, or the
    properties that do not follow, as ("", property). ``invariants`` and ``properties`` take the place of
    those of the same name: with weaker ones the proof may go through. ``refutation`` is how it is refuted;
    without one safety does not need it, and ``kept`` tells what does, in the form "clause: why". ``switches``
    stand for the same in the model, ``only_with`` others that it takes; ``everywhere``: every release decides
    so, and there is no switch for it.
    """

    name: str
    about: str
    sentence: str
    instead: tuple[Effect, ...] = ()
    contract: Mapping[str, ContractClause] = field(default_factory=lambda: SAFETY)
    invariants: Mapping[str, Term] = field(default_factory=dict)
    properties: Mapping[str, Term] = field(default_factory=dict)
    calm: Mapping[str, Term] = field(default_factory=dict)
    obligations: tuple[tuple[str, str], ...] = ()
    refutation: Refutation | None = None
    switches: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()
    everywhere: bool = False
    kept: str = ""

    @cached_property
    def specification(self) -> Specification:
        """Return the protocol so varied."""
        spec = specification(*self.instead, contract=self.contract)
        return replace(
            spec,
            invariants=spec.invariants | spec.vocabulary.closed(self.invariants),
            properties=spec.properties | spec.vocabulary.closed(self.properties),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the actions that differ."""
        decides = () if self.contract is SAFETY else ("lead", "left_decision_arrives")
        return tuple(dict.fromkeys((*(effect.__name__ for effect in self.instead), *decides)))

    @property
    def stated(self) -> bool:
        """Check whether something else is to be proved, so that every obligation is another one."""
        return bool(self.invariants or self.properties or self.calm)

    @property
    def varied(self) -> tuple[SpecAction, ...]:
        """Return the actions whose obligations are asked: those that differ; all, if the invariants do."""
        if self.invariants:
            return self.specification.actions
        return tuple(map(self.specification.action, self.names))


@dataclass(frozen=True, kw_only=True)
class VariationFinding:
    """Outcome of a variation.

    ``failed`` are the obligations that are not proved, those refuted with a group that shows it. ``run`` is
    from the beginning to where what is wanted breaks; ``deviates`` is the number of its first step that the
    protocol as specified does not allow, or of the last if it allows them all: then only what is asked of
    commits differs.
    """

    variation: Variation
    obligations: int
    failed: tuple[ProofOutcome, ...]
    run: SpecRun | None = None
    deviates: int = 0
    replay: Replay | None = None

    @property
    def verdict(self) -> str:
        """ "needed", "not needed", or "open": the proof does not go through, and no run is known."""
        if self.run is not None:
            return "needed"
        return "open" if self.failed else "not needed"

    @property
    def refuted(self) -> tuple[tuple[str, str], ...]:
        """The refuted obligations: action and invariant, or no action and the property."""
        return tuple((one.case, one.goal) for one in self.failed if one.verdict is ProofVerdict.REFUTED)


# -- obligations ---------------------------------------------------------------------------------------


def theorems_of(variation: Variation) -> tuple[Theorem, ...]:
    """Return what has to be proved anew: the invariants after each action that differs, and the properties
    where something that they follow from, or they themselves, differ."""
    spec = variation.specification
    names = [action.name for action in variation.varied]
    stated = variation.invariants or variation.properties
    found = []
    for theorem in theorems(spec):
        cases = tuple(
            case
            for case in theorem.cases
            if (case.action is not None and case.action.name in names)
            or (case.kind == INIT and variation.invariants)
            or (case.kind == IMPLIES and stated)
        )
        if cases:
            found.append(replace(theorem, cases=cases))
    return tuple(found)


def outcomes_of(
    variation: Variation, limit: int = LIMIT, beyond: Sequence[Theorem] = (), spread: Spread = in_turn
) -> tuple[ProofOutcome, ...]:
    """Return what becomes of these obligations, and of theorems ``beyond``: ``limit`` units for each;
    ``spread`` does the work."""
    selected = (*theorems_of(variation), *beyond)
    found = [outcome for case in prove(selected, limit=limit, spread=spread) for outcome in case]
    return arranged(selected, found)


# -- runs ----------------------------------------------------------------------------------------------


def steps_of(path: str) -> list[tuple[int, str]]:
    """Return a path as (consumer, action); the consumer is NOBODY for what is of the group.

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


def counterexample(variation: Variation, within: Specification | None = None) -> SearchAnswer:
    """Return a run along the path to a state that breaks the goal, of a group that the model can have:
    everybody is honest and subscribes to everything, assignors differ in what they can do. ``within``: a
    protocol that has the variation among others."""
    refutation, spec = variation.refutation, within or variation.specification
    assert refutation is not None
    unrolling = Unrolling(StepRelations(spec, {**FEW, **refutation.sizes}))
    elements = unrolling.steps.grounding.elements
    listed = z3.Exists([A], spec.vocabulary.state().lists(C, A))
    unrolling.require(honest(C), listed)
    first, *others = (cooperative(assignor) for assignor in elements["Assignor"])
    unrolling.add(*(z3.And(first, z3.Not(other)) for other in others))
    unrolling.require(spec.initial)
    for who, name in steps_of(refutation.path):
        parameters = {constant.sort(): constant for constant in reversed(unrolling.step(spec.action(name)))}
        if refutation.given is not None:
            unrolling.require(refutation.given)
        if who != NOBODY:
            consumer = elements["Consumer"][who]
            if Consumer in parameters:
                unrolling.add(parameters[Consumer] == consumer)
            elif Member in parameters:
                unrolling.add(of(parameters[Member]) == consumer)
        if name == "start":
            unrolling.require(spec.vocabulary.state().subscribed(elements["Consumer"][who], P), listed)
    return unrolling.answer(z3.Not(wanted(variation, spec)))


def wanted(variation: Variation, within: Specification | None = None) -> Term:
    """Return what the refutation breaks: a property or an invariant, closed."""
    assert variation.refutation is not None
    spec = within or variation.specification
    return {**spec.invariants, **spec.properties}[variation.refutation.goal]


def deviation(run: SpecRun, specified: Specification) -> int:
    """Return the number of the first step that the protocol as specified does not allow; of the last, if it
    allows them all."""
    found = first_deviation(run, specified.actions)
    return found[0] if found else len(run.steps)


def replay_of(variation: Variation, run: SpecRun, besides: Besides | None = None) -> Replay:
    """Return the run on the executable model, with what differs ``besides``. Raises ReplayError when it does
    not follow."""
    refutation = variation.refutation
    assert refutation is not None
    whose = [who for who, _ in steps_of(refutation.path)]
    # Where the contract is varied it is the assignor that is wrong, not the model.
    switches = () if variation.about == "contract" else (*variation.switches, *variation.only_with)
    return play(run, whose, refutation.clause, switches, refutation.altered, refutation.also, besides)


def examine(
    variation: Variation, limit: int = LIMIT, beyond: Sequence[Theorem] = (), spread: Spread = in_turn
) -> VariationFinding:
    """Return everything that is to be known of a variation; see ``outcomes_of``.

    Raises ReplayError when the model does not follow the run.
    """
    outcomes = outcomes_of(variation, limit, beyond, spread)
    failed = tuple(outcome for outcome in outcomes if outcome.verdict is not ProofVerdict.PROVED)
    run = counterexample(variation).run if variation.refutation else None
    if run is None:
        return VariationFinding(variation=variation, obligations=len(outcomes), failed=failed)
    return VariationFinding(
        variation=variation,
        obligations=len(outcomes),
        failed=failed,
        run=run,
        deviates=deviation(run, specification()),
        replay=replay_of(variation, run),
    )


# -- as text -------------------------------------------------------------------------------------------


def table(findings: Sequence[VariationFinding], width: int = 0) -> Iterator[str]:
    """Yield one line for each finding: what breaks and after how many steps, or what it is kept for.

    ``width``: of the names at least.
    """
    widest = max((len(finding.variation.name) for finding in findings), default=0)
    width = max(width, widest)
    for finding in findings:
        variation = finding.variation
        result = f"for safety; kept for {variation.kept.partition(':')[0]}"
        if finding.run is not None and variation.refutation is not None:
            result = f"{variation.refutation.goal}, {len(finding.run.steps)} steps"
            if finding.replay is not None:
                result += f"; replays: {finding.replay.clause}, {len(finding.replay.events)} events"
        yield f"{variation.name:<{width}}  {finding.verdict:<10}  {result}"


def summary(finding: VariationFinding) -> Iterator[str]:
    """Yield a finding in a few lines: what was varied, what fails, the run, the replay."""
    variation = finding.variation
    yield f"{variation.name}: {finding.verdict}"
    yield f"  what if      {variation.sentence}"
    for outcome in finding.failed:
        where = f"after {outcome.case}: " if outcome.case else ""
        yield f"  {outcome.verdict:<12} {where}{outcome.goal}"
    if not finding.failed:
        yield f"  proved       all {finding.obligations} obligations"
    if variation.kept:
        yield f"  kept for     {variation.kept}"
    if finding.run is not None and variation.refutation is not None:
        steps = len(finding.run.steps)
        yield f"  breaks       {variation.refutation.goal}, at step {steps}"
        yield f"  differs      from what is specified at step {finding.deviates}"
    if finding.replay is not None:
        played = finding.replay
        yield (
            f"  replays      {played.clause} breaks after {len(played.events)} events, {played.requests} of "
            f"them JoinGroup or SyncGroup: {played.sentence}"
        )
        yield f"  without      {played.without}"


def in_full(finding: VariationFinding) -> Iterator[str]:
    """Yield the same with each counterexample, the run and the replay in full."""
    yield from summary(finding)
    for outcome in finding.failed:
        if outcome.counterexample is not None:
            yield f"  {outcome.case}, {outcome.goal}"
            for label, text in lines(outcome.counterexample):
                yield f"    {label:<7} {text}"
    if finding.run is not None:
        yield "  run"
        before = finding.run.initial
        for number, (name, parameters, after) in enumerate(finding.run.steps, 1):
            mark = "*" if number == finding.deviates else " "
            changed = [
                f"{call(symbol, arguments)}: {old} -> {new}"
                for symbol, arguments, old, new in finding.run.universe.differences(before, after)
            ]
            yield f"   {mark}{number:>3} {call(name, parameters)}: {', '.join(changed)}"
            before = after
    if finding.replay is not None:
        yield "  events"
        yield from (
            f"    {number:>3} {event_text(event)}" for number, event in enumerate(finding.replay.events, 1)
        )


def data(finding: VariationFinding) -> dict[str, Any]:
    """Return a finding as plain JSON values."""
    variation, played = finding.variation, finding.replay
    return {
        "variation": variation.name,
        "about": variation.about,
        "sentence": variation.sentence,
        "switches": list(variation.switches),
        "verdict": finding.verdict,
        "obligations": finding.obligations,
        "failed": [
            {
                "action": outcome.case,
                "goal": outcome.goal,
                "verdict": str(outcome.verdict),
                "counterexample": outcome.counterexample.data() if outcome.counterexample else None,
            }
            for outcome in finding.failed
        ],
        "breaks": variation.refutation.goal if variation.refutation and finding.run else None,
        "kept": variation.kept or None,
        "run": [{"action": name, "parameters": list(parameters)} for name, parameters, _ in finding.run.steps]
        if finding.run
        else None,
        "deviates": finding.deviates if finding.run else None,
        "replay": {
            "clause": played.clause,
            "sentence": played.sentence,
            "events": [event_text(event) for event in played.events],
            "requests": played.requests,
            "without": played.without,
        }
        if played
        else None,
    }
