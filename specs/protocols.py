"""The table of the three group protocols in logic: what is proved of each, and what shows that it says
something."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.specs.classic import proof as classic_proof
from rebalance_verifier.specs.classic import safety as classic
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY
from rebalance_verifier.specs.classic.necessity import vacuity
from rebalance_verifier.specs.classic.necessity.examine import (
    Refutation,
    Variation,
    VariationFinding,
    deviation,
)
from rebalance_verifier.specs.classic.necessity.examine import examine as examine_classic
from rebalance_verifier.specs.classic.necessity.necessity import NECESSITY
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityCheck
from rebalance_verifier.specs.classic.refinement import sampling as classic_refinement
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel
from rebalance_verifier.specs.consumer import necessity as consumer_guards
from rebalance_verifier.specs.consumer import proof as consumer_proof
from rebalance_verifier.specs.consumer import refinement as consumer_refinement
from rebalance_verifier.specs.consumer import safety as consumer
from rebalance_verifier.specs.consumer.necessity import GuardLeftOut, run_without
from rebalance_verifier.specs.consumer.order import CONTRACT
from rebalance_verifier.specs.logic.assumptions import ASSIGNOR, Premise, premises
from rebalance_verifier.specs.logic.limit import LIMIT
from rebalance_verifier.specs.logic.prover import ProofVerdict, Spread, in_turn, prove
from rebalance_verifier.specs.logic.specification import Specification, Theorem
from rebalance_verifier.specs.migration import necessity as migration_guards
from rebalance_verifier.specs.migration import proof as migration_proof
from rebalance_verifier.specs.migration import refinement as migration_refinement
from rebalance_verifier.specs.migration import safety as migration

Kept = Collection[str]
"""The clauses of an assignor's contract that are assumed, by name."""

Clauses = Mapping[str, Callable[..., Any]]

Examine = Callable[..., VariationFinding]
"""Solver units for each obligation, and how the work is spread (both optional), to what comes of it."""


@dataclass(frozen=True, kw_only=True)
class ProtocolProof:
    """Theorems of one group protocol.

    ``theorems`` and ``checks`` are those under some clauses of the assignor's contract. All its clauses are
    in ``every``, which every theorem assumes, and ``converging``, which convergence does; ``optional`` of
    them can be left out. ``assumptions``: those and all others, each with the run that needs it.
    ``scope``: which groups of the model the logic has, "" where it has all. ``variations``: what each clause
    and decision is for, by its name.
    """

    theorems: Callable[[Kept], tuple[Theorem, ...]]
    checks: Callable[[Kept], tuple[VacuityCheck, ...]]
    sampled: Callable[[ModelSample], SampledModel]
    variations: Mapping[str, Examine]
    every: Clauses = field(default_factory=dict)
    converging: Clauses = field(default_factory=dict)
    optional: Clauses = field(default_factory=dict)
    assumptions: tuple[Premise, ...]
    scope: str = ""

    def kept(self, without: Collection[str] = ()) -> tuple[str, ...]:
        """Return the optional clauses but for some. Raises ValueError for one that there is not."""
        for name in without:
            if name not in self.optional:
                raise ValueError(unknown("clause", name, self.optional))
        return tuple(name for name in self.optional if name not in without)

    def assumed(self, kept: Kept) -> tuple[str, ...]:
        """Return what every theorem assumes of the assignor."""
        always = (one.name for one in self.assumptions if one.of == ASSIGNOR)
        clauses = {*self.every, *self.converging}
        return (*(name for name in kept if name in self.every), *(n for n in always if n not in clauses))


def _classic_theorems(kept: Kept) -> tuple[Theorem, ...]:
    return classic_proof.proof({name: SAFETY[name] for name in kept})


def _classic_checks(kept: Kept) -> tuple[VacuityCheck, ...]:
    contract = {name: SAFETY[name] for name in kept}
    return vacuity.checks(classic.specification(contract=contract), {**contract, **LIVENESS})


def _examine_classic(name: str, limit: int = LIMIT, spread: Spread = in_turn) -> VariationFinding:
    return examine_classic(NECESSITY[name], limit, spread=spread)


def _without(
    protocol: str,
    guard: GuardLeftOut,
    specification: Callable[[], Specification],
    theorems: Callable[[Specification], tuple[Theorem, ...]],
    limit: int = LIMIT,
    spread: Spread = in_turn,
) -> VariationFinding:
    """Return what becomes of the proof without a guard, and the run at the end of which a property breaks."""
    run = run_without(guard)
    outcomes = [
        one for some in prove(theorems(guard.specification()), limit=limit, spread=spread) for one in some
    ]
    return VariationFinding(
        variation=Variation(
            name=guard.name,
            about=protocol,
            sentence=guard.sentence,
            refutation=Refutation(goal=guard.breaks, path=guard.path),
            switches=(guard.name,) if guard.switch else (),
        ),
        obligations=len(outcomes),
        failed=tuple(one for one in outcomes if one.verdict is not ProofVerdict.PROVED),
        run=run,
        deviates=deviation(run, specification()) if run else 0,
    )


PROOFS: Mapping[str, ProtocolProof] = {
    "classic": ProtocolProof(
        theorems=_classic_theorems,
        checks=_classic_checks,
        sampled=classic_refinement.sampled,
        variations={name: partial(_examine_classic, name) for name in NECESSITY},
        assumptions=premises("classic", SAFETY, LIVENESS),
        every=SAFETY,
        converging=LIVENESS,
        optional=SAFETY,
    ),
    "consumer": ProtocolProof(
        theorems=lambda kept: consumer_proof.proof(contract=kept),
        checks=lambda kept: consumer_proof.checks(consumer.specification()),
        sampled=consumer_refinement.sampled,
        variations={
            name: partial(_without, "consumer", guard, consumer.specification, consumer_proof.proof)
            for name, guard in consumer_guards.GUARDS.items()
        },
        assumptions=premises("consumer", {}, CONTRACT),
        converging=CONTRACT,
        optional=CONTRACT,
    ),
    "migration": ProtocolProof(
        theorems=lambda kept: migration_proof.proof(),
        checks=lambda kept: migration_proof.checks(migration.specification()),
        sampled=migration_refinement.sampled,
        variations={
            name: partial(_without, "migration", guard, migration.specification, migration_proof.proof)
            for name, guard in migration_guards.GUARDS.items()
        },
        assumptions=premises("migration", {}, {}),
        scope=migration_proof.SCOPE,
    ),
}
"""By the name that a command line gives the protocol."""
