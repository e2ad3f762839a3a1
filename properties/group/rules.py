"""What must hold of a machine's runs: always, at a step, at some time, in the end.

Rules are clauses of ``properties.assignors.clauses`` applied to one machine: plain functions that return
None, or a sentence that says what is wrong. They see views and observations, never an engine's
representation, so every engine, the Hypothesis machine and the replay of a trace ask the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from rebalance.model.machine import Event, Value


class Always(NamedTuple):
    """Holds in every state: ``breach`` is asked with the values of ``views``."""

    clause: str
    views: tuple[str, ...]
    breach: Callable[..., str | None]


class EachStep(NamedTuple):
    """Holds at every step: ``breach`` is asked with the event and what was seen."""

    clause: str
    breach: Callable[[Event, tuple[Hashable, ...]], str | None]


class Sometimes(NamedTuple):
    """A witness: some step of some run shows it, or the search was too small to be a verdict."""

    clause: str
    shows: Callable[[Event, tuple[Hashable, ...]], bool]


class Finally(NamedTuple):
    """Once faults stop, every fair run reaches a state in which ``holds`` and stays in such states."""

    clause: str
    views: tuple[str, ...]
    holds: Callable[..., bool]


class Bounded(NamedTuple):
    """Once faults stop, ``counts`` is true of at most ``most`` steps of any run."""

    clause: str
    counts: Callable[[Event], bool]
    most: int


class Rules(NamedTuple):
    """Everything to be asked of one machine."""

    always: tuple[Always, ...] = ()
    each_step: tuple[EachStep, ...] = ()
    sometimes: tuple[Sometimes, ...] = ()
    finally_: tuple[Finally, ...] = ()
    bounded: tuple[Bounded, ...] = ()

    def about(self, *clauses: str) -> Rules:
        """Those of ``clauses``."""
        return Rules._make(tuple(rule for rule in kind if rule.clause in clauses) for kind in self)

    def in_state(self, look: Callable[[str], Value]) -> Iterator[tuple[str, str]]:
        """Clause and sentence of each ``Always`` that fails in a state; ``look`` gives its views by name."""
        for rule in self.always:
            sentence = rule.breach(*map(look, rule.views))
            if sentence is not None:
                yield rule.clause, sentence

    def at_step(self, event: Event, seen: tuple[Hashable, ...]) -> Iterator[tuple[str, str]]:
        """Clause and sentence of each ``EachStep`` that fails at a step."""
        for rule in self.each_step:
            sentence = rule.breach(event, seen)
            if sentence is not None:
                yield rule.clause, sentence

    def shown(self, event: Event, seen: tuple[Hashable, ...]) -> Iterator[str]:
        """The witnesses that a step shows."""
        return (rule.clause for rule in self.sometimes if rule.shows(event, seen))

    def concerns(self, event: Event, seen: tuple[Hashable, ...]) -> bool:
        """Whether a step breaks or shows anything."""
        return any(self.at_step(event, seen)) or any(self.shown(event, seen))
