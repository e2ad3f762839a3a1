"""The finite groups that are searched twice: by TLC, and by ``tools.state_space``.

Each is a configuration of the model ``MCConsumerGroup``; those of a protocol with one decision made otherwise
are of ``MCBroken``. How many states there are is pinned here: ``tools.tlc`` counts them with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import z3
from rebalance.specs.logic.language import SpecAction, Term
from rebalance.specs.logic.specification import Specification
from rebalance.specs.logic.universe import Universe, Value
from rebalance.specs.necessity.necessity import NECESSITY
from rebalance.specs.protocol.vocabulary import VOCABULARY, A, C
from rebalance.specs.theorems.safety import specification
from rebalance.specs.tla import group
from rebalance.specs.tla.module import module
from rebalance.specs.tla.names import Export, camel
from rebalance.specs.tla.tlc import TlcModel, configuration, model, replacement

WHOLE = "MCConsumerGroup"
BROKEN = "MCBroken"

COOPERATIVE = z3.And(VOCABULARY.state().lists(C, A), z3.Not(VOCABULARY.state().eager(C)))
"""Every consumer lists every assignor, and none is EAGER."""


@dataclass(frozen=True, kw_only=True)
class FiniteGroup:
    """A group of as many consumers as members, with one partition and one assignor.

    ``generations`` are those a group can have; ``faults`` that can happen, None for all of them.
    ``cooperative``: no consumer is EAGER; else what a consumer lists is open. ``variation`` is the decision
    that is made otherwise, and ``broken`` the property that TLC then finds violated.

    ``distinct`` and ``depth`` are of the whole state graph; of a broken one, ``depth`` is the number of
    states of the shortest counterexample.
    """

    name: str
    members: int
    generations: int
    faults: tuple[str, ...] | None = None
    cooperative: bool = False
    variation: str = ""
    broken: str = ""
    distinct: int = 0
    depth: int

    @property
    def model(self) -> str:
        """The module that TLC runs with this configuration."""
        return BROKEN if self.variation else WHOLE

    @cached_property
    def specification(self) -> Specification:
        """The protocol with these faults only, with the decision made otherwise."""
        spec = NECESSITY[self.variation].specification if self.variation else specification()
        kept = tuple(one for one in spec.actions if not one.fault or self._is_possible(one.name))
        start = z3.And(spec.initial, spec.vocabulary.close(COOPERATIVE)) if self.cooperative else spec.initial
        return replace(spec, actions=kept, initial=start)

    def _is_possible(self, fault: str) -> bool:
        return self.faults is None or fault in self.faults

    @property
    def invariants(self) -> dict[str, Term]:
        """What is asked of every state: everything, or what is to be found broken."""
        spec = self.specification
        every = {**spec.properties, **spec.invariants}
        return {name: every[name] for name in ([self.broken] if self.broken else every)}

    @property
    def universe(self) -> Universe:
        """The same group for our own search."""
        sizes = {**self.sizes, "Generation": self.sizes["Generation"] + 1}
        fixed: dict[str, Value | Callable[..., Value]] = {
            "of": lambda m: m,
            "static": False,
            "honest": True,
            "cooperative": True,
            "lt": lambda g, h: g < h,
            "none": 0,
            "zero": 1,
        }
        return Universe(VOCABULARY, sizes, fixed)

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many there are of each sort. Generation 1 is that of a group that does not exist yet."""
        few = {"Consumer": self.members, "Member": self.members, "Partition": 1, "Assignor": 1}
        return {**few, "Generation": self.generations + 1}

    @property
    def sentence(self) -> str:
        """What is searched."""
        members = "1 member" if self.members == 1 else f"{self.members} members"
        generations = "1 generation" if self.generations == 1 else f"{self.generations} generations"
        faults = "every fault" if self.faults is None else ", ".join(self.faults)
        who = " of COOPERATIVE consumers" if self.cooperative else ""
        broken = f"; but {NECESSITY[self.variation].sentence}" if self.variation else ""
        return f"{members}{who}, {generations}, {faults}{broken}"

    @property
    def found(self) -> str:
        """What TLC has to find."""
        if self.broken:
            return f"{camel(self.broken)} is violated after {self.depth - 1} steps"
        return f"{self.distinct:,} distinct states, depth {self.depth}"


START = ("start",)
FEW = ("start", "subscribe", "crash", "close", "disconnect", "failover")
FAILS = ("start", "disconnect", "failover")

GROUPS: Sequence[FiniteGroup] = (
    FiniteGroup(name="MCConsumerGroup", members=1, generations=1, distinct=566_768, depth=43),
    FiniteGroup(name="one_member", members=1, generations=1, faults=FEW, distinct=3_516, depth=28),
    FiniteGroup(name="two_members", members=2, generations=2, faults=START, distinct=39_688, depth=42),
    FiniteGroup(
        name="two_members_failing", members=2, generations=1, faults=FAILS, cooperative=True,
        distinct=48_447, depth=44,
    ),
    FiniteGroup(
        name="three_members", members=3, generations=1, faults=START, cooperative=True,
        distinct=110_868, depth=47,
    ),
    FiniteGroup(
        name="broken_newest_claim", members=2, generations=2, faults=START,
        variation="newest_claim", broken="exclusive ownership", depth=34,
    ),
    FiniteGroup(
        name="broken_claims_always_empty", members=2, generations=2, faults=START,
        variation="claims_always_empty", broken="exclusive ownership", depth=34,
    ),
)  # fmt: skip
"""By the size of what is searched. The second is the twin of those that are broken."""


# -- files -----------------------------------------------------------------------------------------------


def files() -> Iterator[tuple[str, str]]:
    """Everything that TLC reads, by the name of its file."""
    whole = group.export(specification())
    yield f"{whole.name}.tla", module(whole)
    yield f"{WHOLE}.tla", model(whole, _whole(whole))
    yield f"{BROKEN}.tla", model(whole, _broken())
    for one in GROUPS:
        yield f"{one.name}.cfg", _configuration(whole, one)


def _whole(export: Export) -> TlcModel:
    chosen = {one.faults for one in GROUPS if one.faults is not None}
    return TlcModel(
        name=WHOLE,
        extends=export.name,
        text="What TLC is to search of ConsumerGroup: definitions of which each configuration takes some.",
        definitions={
            "of": (
                "Every consumer has a member id. Which one is the same to all of them.",
                "CHOOSE f \\in [Member -> Consumer] : \\A c \\in Consumer : \\E m \\in Member : f[m] = c",
            ),
            "static": ("", "[c \\in Consumer |-> FALSE]"),
            "honest": ("", "[c \\in Consumer |-> TRUE]"),
            "cooperative": ("", "[a \\in Assignor |-> TRUE]"),
        },
        initial={"InitCooperative": ("Every consumer lists every assignor, and none is EAGER.", COOPERATIVE)},
        next={_next(some): (f"Of the faults only: {', '.join(some)}.", some) for some in sorted(chosen)},
    )


def _next(faults: Sequence[str]) -> str:
    return "Next" + "".join(map(camel, faults))


def _broken() -> TlcModel:
    instead: dict[str, tuple[str, SpecAction]] = {}
    for one in GROUPS:
        if one.variation:
            variation = NECESSITY[one.variation]
            text = f"{variation.sentence[0].upper()}{variation.sentence[1:]}."
            instead |= {replacement(act.name, one.variation): (text, act) for act in variation.varied}
    return TlcModel(
        name=BROKEN,
        extends=WHOLE,
        text="Actions with one decision made otherwise. A configuration puts one in the place of the "
        "original, and TLC finds what breaks.",
        instead=instead,
    )


def _configuration(export: Export, one: FiniteGroup) -> str:
    """The behaviour is that of ``one.specification``, written with the definitions of the models."""
    behaviour = ["SPECIFICATION Spec"]
    if one.faults is not None:
        behaviour = [
            f"INIT {'InitCooperative' if one.cooperative else 'Init'}",
            f"NEXT {_next(one.faults)}",
        ]
    varied = NECESSITY[one.variation].varied if one.variation else ()
    java = "java -XX:+UseParallelGC -cp tla2tools.jar tlc2.TLC"
    run = f"{java} -deadlock -config {one.name}.cfg {one.model}.tla"
    return configuration(
        export,
        one.sizes,
        behaviour=behaviour,
        instead={camel(act.name): replacement(act.name, one.variation) for act in varied},
        invariants=[one.broken] if one.broken else None,
        text=f"{one.sentence[0].upper()}{one.sentence[1:]}.\n{run}\n{one.found}.",
    )
