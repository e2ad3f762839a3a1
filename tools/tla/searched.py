"""A finite group that is searched twice, by TLC and by ``tools.state_space``, and what TLC reads of it.

``configurations`` has the groups of the classic protocol, ``consumer`` those of the consumer protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from rebalance_verifier.specs.logic.language import SpecAction, Term
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.universe import Universe

from tools.tla.names import Export, camel
from tools.tla.tlc import configuration, replacement


@dataclass(frozen=True, kw_only=True)
class TlcGroup(ABC):
    """What all such groups have.

    ``faults`` that can happen, None for all of them. ``variation`` is the decision that is made otherwise,
    and ``broken`` the property that TLC then finds violated.

    ``distinct`` and ``depth`` are of the whole state graph; of a broken one, ``depth`` is the number of
    states of the shortest counterexample.
    """

    name: str
    faults: tuple[str, ...] | None = None
    variation: str = ""
    broken: str = ""
    distinct: int = 0
    depth: int

    models: ClassVar[tuple[str, str]]
    """The module that TLC runs, and that of protocols with a decision made otherwise."""

    @property
    @abstractmethod
    def protocol(self) -> Specification:
        """The protocol with every fault, with the decision made otherwise."""

    @property
    @abstractmethod
    def varied(self) -> tuple[SpecAction, ...]:
        """The actions that differ by it."""

    @property
    @abstractmethod
    def otherwise(self) -> str:
        """What is decided, as a sentence."""

    @property
    @abstractmethod
    def size(self) -> str:
        """How large the group is, in words."""

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]:
        """How many there are of each sort. Generation 1 is that of a group that does not exist yet."""

    @property
    @abstractmethod
    def universe(self) -> Universe:
        """The same group for our own search."""

    @property
    def start(self) -> str:
        """The definition of its initial states."""
        return "Init"

    @property
    def model(self) -> str:
        """The module that TLC runs with this configuration."""
        return self.models[bool(self.variation)]

    @cached_property
    def specification(self) -> Specification:
        """The protocol with these faults only, with the decision made otherwise."""
        spec = self.protocol
        kept = tuple(one for one in spec.actions if not one.fault or self._is_possible(one.name))
        return replace(spec, actions=kept)

    def _is_possible(self, fault: str) -> bool:
        return self.faults is None or fault in self.faults

    @property
    def invariants(self) -> dict[str, Term]:
        """What is asked of every state: everything, or what is to be found broken."""
        spec = self.specification
        every = {**spec.properties, **spec.invariants}
        return {name: every[name] for name in ([self.broken] if self.broken else every)}

    @property
    def sentence(self) -> str:
        """What is searched."""
        faults = "every fault" if self.faults is None else ", ".join(self.faults)
        return f"{self.size}, {faults}{f'; but {self.otherwise}' if self.variation else ''}"

    @property
    def found(self) -> str:
        """What TLC has to find."""
        if self.broken:
            return f"{camel(self.broken)} is violated after {self.depth - 1} steps"
        return f"{self.distinct:,} distinct states, depth {self.depth}"


# -- what TLC reads --------------------------------------------------------------------------------------


def next_steps(groups: Iterable[TlcGroup]) -> dict[str, tuple[str, Sequence[str]]]:
    """The definitions of steps that these groups take, with their texts: for ``TlcModel.next``."""
    chosen = sorted({one.faults for one in groups if one.faults is not None})
    return {_next(some): (f"Of the faults only: {', '.join(some)}.", some) for some in chosen}


def varied_actions(groups: Iterable[TlcGroup]) -> dict[str, tuple[str, SpecAction]]:
    """The actions that differ in these groups, with their texts: for ``TlcModel.instead``."""
    return {
        replacement(act.name, one.variation): (f"{_capital(one.otherwise)}.", act)
        for one in groups
        for act in one.varied
    }


def group_configuration(export: Export, one: TlcGroup) -> str:
    """The behaviour is that of ``one.specification``, written with the definitions of the models."""
    behaviour = ["SPECIFICATION Spec"]
    if one.faults is not None:
        behaviour = [f"INIT {one.start}", f"NEXT {_next(one.faults)}"]
    java = "java -XX:+UseParallelGC -cp tla2tools.jar tlc2.TLC"
    run = f"{java} -deadlock -config {one.name}.cfg {one.model}.tla"
    return configuration(
        export,
        one.sizes,
        behaviour=behaviour,
        instead={camel(act.name): replacement(act.name, one.variation) for act in one.varied},
        invariants=[one.broken] if one.broken else None,
        text=f"{_capital(one.sentence)}.\n{run}\n{one.found}.",
    )


def _next(faults: Sequence[str]) -> str:
    return "Next" + "".join(map(camel, faults))


def _capital(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"
