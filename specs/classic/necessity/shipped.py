"""The protocol as shipped: everything that a release decides otherwise, put in place at once.

What a release decides is a set of switches of the model (``model.bugs``); the table of variations
says what each does to the logic. Some make no difference to it: those are ``beside``. To *mend* a variation
is to leave it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import broker, client
from rebalance_verifier.specs.classic.contract import SAFETY, ContractClause
from rebalance_verifier.specs.classic.convergence import CALM
from rebalance_verifier.specs.classic.necessity.examine import Variation
from rebalance_verifier.specs.classic.necessity.necessity import BESIDE, NECESSITY
from rebalance_verifier.specs.classic.necessity.replay import Altered
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY, C, M, static
from rebalance_verifier.specs.logic.language import Effect, Term
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.varying import together
from z3 import Not, Or

DYNAMIC = "no member is static"
"""What is assumed of a group of dynamic members only."""
UNSILENT = "no member is silent"
"""And what then holds besides."""


@dataclass(frozen=True, kw_only=True)
class ShippedProtocol:
    """Protocol as releases decide it. ``switches`` are all that they have; ``dynamic``: no consumer is
    static; ``dropped`` are invariants that are not claimed."""

    switches: tuple[str, ...]
    variations: tuple[Variation, ...]
    dynamic: bool = False
    dropped: frozenset[str] = frozenset()

    @property
    def members(self) -> str:
        """Return the kind of members that the group has, in words."""
        return "dynamic members" if self.dynamic else "any members"

    @cached_property
    def beside(self) -> tuple[str, ...]:
        """The switches that make no difference to the logic."""
        varied = {switch for variation in self.variations for switch in variation.switches}
        return tuple(switch for switch in self.switches if switch not in varied)

    @cached_property
    def decisions(self) -> tuple[str, ...]:
        """Those of the switches that the model's members and coordinator have."""
        return tuple(switch for switch in self.switches if switch in DECISIONS)

    @cached_property
    def altered(self) -> tuple[Altered, ...]:
        """Return what the model does otherwise where it has no switch."""
        refutations = (one.refutation for one in self.variations if one.everywhere)
        return tuple(one.altered for one in refutations if one is not None and one.altered is not None)

    @cached_property
    def contract(self) -> Mapping[str, ContractClause]:
        """Return what is left of the contract of the assignor."""
        left: dict[str, ContractClause | None] = {**SAFETY}
        for variation in self.variations:
            for name, clause in SAFETY.items():
                if variation.contract.get(name) is not clause:
                    left[name] = variation.contract.get(name)
        return {name: clause for name, clause in left.items() if clause is not None}

    def build(self, *instead: Effect, contract: Mapping[str, ContractClause]) -> Specification:
        """Return the protocol, with actions ``instead`` of others besides."""
        varied = (effect for variation in self.variations for effect in variation.instead)
        spec = specification(*together((*varied, *instead)), contract=contract)
        close = VOCABULARY.close
        invariants, properties = dict(spec.invariants), dict(spec.properties)
        weaker: dict[str, list[Term]] = {}
        for variation in self.variations:
            properties |= VOCABULARY.closed(variation.properties)
            for name, formula in variation.invariants.items():
                weaker.setdefault(name, []).append(formula)
        # Where several weaken the same one, all that each allows is allowed.
        invariants |= {name: close(Or(*formulas)) for name, formulas in weaker.items()}
        if self.dynamic:
            invariants[UNSILENT] = close(Not(VOCABULARY.state().silent(M)))
        for name in self.dropped:
            del invariants[name]
        axioms = {**spec.axioms, **({DYNAMIC: close(Not(static(C)))} if self.dynamic else {})}
        return replace(spec, axioms=axioms, invariants=invariants, properties=properties)

    @property
    def calm(self) -> Mapping[str, Term]:
        """Return what holds of a calm group."""
        instead = (variation.calm for variation in self.variations)
        return {**CALM, **{name: formula for one in instead for name, formula in one.items()}}

    @cached_property
    def specification(self) -> Specification:
        """The protocol with what is to be proved of it."""
        return self.build(contract=self.contract)

    def refutation(self, variation: Variation) -> Variation:
        """Return the variation as it is to be refuted in this group."""
        refutation = variation.refutation
        if refutation is None or not self.dynamic:
            return variation
        return replace(variation, refutation=replace(refutation, path=refutation.dynamic))

    def mended(self, names: Collection[str]) -> ShippedProtocol:
        """Return the same without the variations of these names, and without their switches."""
        kept = tuple(one for one in self.variations if one.name not in names)
        gone = {switch for one in self.variations if one.name in names for switch in one.switches}
        switches = tuple(switch for switch in self.switches if switch not in gone)
        return replace(self, switches=switches, variations=kept)


def client_and_broker(names: Sequence[str]) -> tuple[str, str]:
    """Return the names of the profiles of one client and one broker. Raises ValueError."""
    brokers = [name for name in names if name.startswith("broker")]
    clients = [name for name in names if name not in brokers]
    if len(clients) != 1 or len(brokers) != 1:
        raise ValueError("name one client and one broker, such as java-current,broker-current")
    return client(clients[0]).name, broker(brokers[0]).name


def released(member: str, coordinator: str, *, dynamic: bool = False) -> ShippedProtocol:
    """Return the protocol of a release of a client and one of the broker, by the names of their profiles.

    What they decide in the consumer protocol (KIP-848) the logic knows nothing of. Raises ValueError that
    lists those there are.
    """
    profiles = client(member), broker(coordinator)
    classic = {*BESIDE, *(switch for one in NECESSITY.values() for switch in one.switches)}
    switches = (name for one in profiles for name in (*(one.decisions & classic), *one.switches))
    return shipped(switches, dynamic=dynamic)


def shipped(switches: Iterable[str], *, dynamic: bool = False) -> ShippedProtocol:
    """Return the protocol of releases that have these switches."""
    has = frozenset(switches)
    variations = tuple(
        one
        for one in NECESSITY.values()
        if one.everywhere or (has.issuperset(one.only_with) and not has.isdisjoint(one.switches))
    )
    return ShippedProtocol(switches=tuple(sorted(has)), variations=variations, dynamic=dynamic)
