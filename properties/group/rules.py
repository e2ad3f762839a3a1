"""What must hold of a machine's runs: always, at a step, at some time, in the end.

Rules are clauses of ``properties.assignors.clauses`` applied to one machine: plain functions that return
None, or a sentence that says what is wrong. They see views and observations, never an engine's
representation, so every engine, the Hypothesis machine and the replay of a trace ask the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from rebalance_verifier.model.machine import Change, Event, Value


class Always(NamedTuple):
    """Holds in every state: ``breach`` is asked with the values of ``views``."""

    clause: str
    views: tuple[str, ...]
    breach: Callable[..., str | None]


class EachStep(NamedTuple):
    """Holds at every step: ``breach`` is asked with the event and what was seen."""

    clause: str
    breach: Callable[[Event, tuple[Hashable, ...]], str | None]


class EachChange(NamedTuple):
    """Holds between the states before and after every step of ``actions`` that is about ``who``.

    ``breach`` is asked with the event and, for each of ``views``, the values before and after: what the step
    did to the state, whatever was observed of it. ``views`` read only what these actions read.
    """

    clause: str
    who: int
    actions: frozenset[str]
    views: tuple[str, ...]
    breach: Callable[..., str | None]

    def concerns(self, action: str, who: int) -> bool:
        """Check whether it is asked about this action."""
        return who == self.who and action in self.actions


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
    each_change: tuple[EachChange, ...] = ()
    sometimes: tuple[Sometimes, ...] = ()
    finally_: tuple[Finally, ...] = ()
    bounded: tuple[Bounded, ...] = ()

    @property
    def safety(self) -> tuple[str, ...]:
        """Return the clauses that are asked of states, steps and changes; one may be named by several
        rules."""
        stated, stepped, changed = self.always, self.each_step, self.each_change
        return (*(r.clause for r in stated), *(r.clause for r in stepped), *(r.clause for r in changed))

    @property
    def lively(self) -> tuple[str, ...]:
        """Return the clauses that are asked of runs that never end."""
        return (*(r.clause for r in self.finally_), *(r.clause for r in self.bounded))

    @property
    def broken_by(self) -> tuple[str, ...]:
        """Return every clause that a run can break."""
        return (*self.safety, *self.lively)

    def about(self, *clauses: str) -> Rules:
        """Return those of ``clauses``."""
        return Rules._make(tuple(rule for rule in kind if rule.clause in clauses) for kind in self)

    def in_state(self, look: Callable[[str], Value]) -> Iterator[tuple[str, str]]:
        """Yield clause and sentence of each ``Always`` that fails in a state; ``look`` gives its views by
        name."""
        for rule in self.always:
            sentence = rule.breach(*map(look, rule.views))
            if sentence is not None:
                yield rule.clause, sentence

    def at_step(
        self, event: Event, seen: tuple[Hashable, ...], change: Change | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield clause and sentence of each ``EachStep`` that fails at a step, and of each ``EachChange``.

        ``change``: what the step did to the views; None where nobody knows (shipped code shows no state of
        this form), and then changes are not judged.
        """
        for rule in self.each_step:
            sentence = rule.breach(event, seen)
            if sentence is not None:
                yield rule.clause, sentence
        if change is not None:
            for about in self.each_change:
                if about.concerns(event.action, event.who):
                    sentence = about.breach(event, *map(change, about.views))
                    if sentence is not None:
                        yield about.clause, sentence

    def shown(self, event: Event, seen: tuple[Hashable, ...]) -> Iterator[str]:
        """Yield the witnesses that a step shows."""
        return (rule.clause for rule in self.sometimes if rule.shows(event, seen))

    def concerns(self, event: Event, seen: tuple[Hashable, ...], change: Change) -> bool:
        """Check whether a step breaks or shows anything."""
        return any(self.at_step(event, seen, change)) or any(self.shown(event, seen))
