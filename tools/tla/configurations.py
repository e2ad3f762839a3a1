"""The finite groups that are searched twice: by TLC, and by ``tools.state_space``.

Each is a configuration of the model ``MCConsumerGroup``; those of a protocol with one decision made otherwise
are of ``MCBroken``. How many states there are is pinned here: ``tools.tlc`` counts them with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import z3
from rebalance_verifier.specs.classic.necessity.necessity import NECESSITY
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import VOCABULARY, A, C
from rebalance_verifier.specs.logic.language import SpecAction
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.universe import Universe, Value

from tools.tla import group
from tools.tla.module import module
from tools.tla.names import Export
from tools.tla.searched import TlcGroup, group_configuration, next_steps, varied_actions
from tools.tla.tlc import TlcModel, model

WHOLE = "MCConsumerGroup"
BROKEN = "MCBroken"

COOPERATIVE = z3.And(VOCABULARY.state().lists(C, A), z3.Not(VOCABULARY.state().eager(C)))
"""Every consumer lists every assignor, and none is EAGER."""


@dataclass(frozen=True, kw_only=True)
class FiniteGroup(TlcGroup):
    """A group of as many consumers as members, with one partition and one assignor.

    ``generations`` are those a group can have. ``cooperative``: no consumer is EAGER; else what a consumer
    lists is open.
    """

    members: int
    generations: int
    cooperative: bool = False

    models: ClassVar[tuple[str, str]] = (WHOLE, BROKEN)

    @property
    def protocol(self) -> Specification:
        spec = NECESSITY[self.variation].specification if self.variation else specification()
        if not self.cooperative:
            return spec
        return replace(spec, initial=z3.And(spec.initial, spec.vocabulary.close(COOPERATIVE)))

    @property
    def varied(self) -> tuple[SpecAction, ...]:
        return NECESSITY[self.variation].varied if self.variation else ()

    @property
    def otherwise(self) -> str:
        return NECESSITY[self.variation].sentence

    @property
    def universe(self) -> Universe:
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
        few = {"Consumer": self.members, "Member": self.members, "Partition": 1, "Assignor": 1}
        return {**few, "Generation": self.generations + 1}

    @property
    def size(self) -> str:
        members = "1 member" if self.members == 1 else f"{self.members} members"
        generations = "1 generation" if self.generations == 1 else f"{self.generations} generations"
        return f"{members}{' of COOPERATIVE consumers' if self.cooperative else ''}, {generations}"

    @property
    def start(self) -> str:
        return "InitCooperative" if self.cooperative else "Init"


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
        yield f"{one.name}.cfg", group_configuration(whole, one)


def _whole(export: Export) -> TlcModel:
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
        next=next_steps(GROUPS),
    )


def _broken() -> TlcModel:
    return TlcModel(
        name=BROKEN,
        extends=WHOLE,
        text="Actions with one decision made otherwise. A configuration puts one in the place of the "
        "original, and TLC finds what breaks.",
        instead=varied_actions(GROUPS),
    )
