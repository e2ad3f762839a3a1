"""The proofs beside that of the classic protocol, by the name that a command line gives them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.specs.classic.necessity.examine import (
    Refutation,
    Variation,
    VariationFinding,
    deviation,
)
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityCheck
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel
from rebalance_verifier.specs.consumer import necessity as consumer_guards
from rebalance_verifier.specs.consumer import proof as consumer_proof
from rebalance_verifier.specs.consumer import refinement as consumer_refinement
from rebalance_verifier.specs.consumer import safety as consumer
from rebalance_verifier.specs.consumer.necessity import GuardLeftOut, run_without
from rebalance_verifier.specs.consumer.order import CONTRACT
from rebalance_verifier.specs.logic.limit import LIMIT
from rebalance_verifier.specs.logic.prover import ProofVerdict, Spread, in_turn, prove
from rebalance_verifier.specs.logic.specification import Specification, Theorem
from rebalance_verifier.specs.migration import necessity as migration_guards
from rebalance_verifier.specs.migration import proof as migration_proof
from rebalance_verifier.specs.migration import refinement as migration_refinement
from rebalance_verifier.specs.migration import safety as migrating


@dataclass(frozen=True, kw_only=True)
class ModernProof:
    """What is proved of a protocol that has consumer groups, and what shows that it says something.

    ``contract`` is what convergence assumes of the assignor, safety nothing; ``theorems`` are those about a
    specification under some of its clauses; ``always`` is what all theorems assume, ``assumed`` what they do
    of others.
    """

    specification: Callable[[], Specification]
    theorems: Callable[[Specification, Collection[str]], tuple[Theorem, ...]]
    checks: Callable[[Specification], tuple[VacuityCheck, ...]]
    sampled: Callable[[ModelSample], SampledModel]
    assumed: tuple[str, ...]
    always: tuple[str, ...] = ()
    guards: Mapping[str, GuardLeftOut]
    contract: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def kept(self, without: Collection[str]) -> tuple[str, ...]:
        """Return the clauses of the contract but for some. Raises ValueError for one that there is not."""
        for name in without:
            if name not in self.contract:
                raise ValueError(unknown("clause", name, self.contract))
        return tuple(name for name in self.contract if name not in without)


MODERN: Mapping[str, ModernProof] = {
    "consumer": ModernProof(
        specification=consumer.specification,
        theorems=consumer_proof.proof,
        checks=consumer_proof.checks,
        sampled=consumer_refinement.sampled,
        assumed=consumer_proof.ASSUMED,
        guards=consumer_guards.GUARDS,
        contract=CONTRACT,
    ),
    "migration": ModernProof(
        specification=migrating.specification,
        theorems=lambda spec, contract: migration_proof.proof(spec),
        checks=migration_proof.checks,
        sampled=migration_refinement.sampled,
        assumed=migration_proof.ASSUMED,
        always=migration_proof.ASSIGNORS,
        guards=migration_guards.GUARDS,
    ),
}
"""By name: the protocol of KIP-848, and groups between it and the classic one."""


def examine(about: str, name: str, limit: int = LIMIT, spread: Spread = in_turn) -> VariationFinding:
    """Return what becomes of the proof without that guard, and the run at the end of which a property
    breaks."""
    protocol = MODERN[about]
    guard = protocol.guards[name]
    theorems, run = protocol.theorems(guard.specification(), protocol.kept(())), run_without(guard)
    outcomes = [one for some in prove(theorems, limit=limit, spread=spread) for one in some]
    return VariationFinding(
        variation=Variation(
            name=name,
            about=about,
            sentence=guard.sentence,
            refutation=Refutation(goal=guard.breaks, path=guard.path),
            switches=(name,) if guard.switch else (),
        ),
        obligations=len(outcomes),
        failed=tuple(one for one in outcomes if one.verdict is not ProofVerdict.PROVED),
        run=run,
        deviates=deviation(run, protocol.specification()) if run else 0,
    )
