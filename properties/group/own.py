"""Invariants of one's own: a function of a module, asked in every state of a group.

    def one_each(group):
        '''No member owns more than one partition.'''
        return all(len(member.owns) <= 1 for member in group.members.values())

It is given a `GroupView` and returns True or None where all is well, False or a sentence where it is not.
"""

from __future__ import annotations

import importlib
import inspect
import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.group.parts import GroupState, each
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.properties.group import consumer
from rebalance_verifier.properties.group.clause import ProtocolClause
from rebalance_verifier.properties.group.clauses import CLAUSES, WITNESSES
from rebalance_verifier.properties.group.clauses import rules as required
from rebalance_verifier.properties.group.rules import Always, Rules

OWN = "own/"
"""How the id of such a clause begins; what follows is where its function is, ``module:function``."""

MAX_LETTERS = 300
"""Letters of what an invariant says."""


class InvariantError(ValueError):
    """An invariant that cannot be asked; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One member in one state.

    ``life``: up, down, paused, hung or failed. ``owns``: the partitions that its consumer has, by name.
    ``holds``: those that it has as a member of the group; one that was removed and has not noticed owns
    what it owned, and holds nothing.
    """

    life: str
    owns: frozenset[str]
    holds: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group in one state.

    ``partitions``: those that exist, by name. ``members``: by letter, those that are down too. ``state``:
    that of the coordinator, such as Stable; "" of a consumer group (KIP-848), which has none of these.
    """

    partitions: frozenset[str]
    members: Mapping[str, MemberView]
    state: str


Invariant = Callable[[GroupView], bool | str | None]


def load(reference: str) -> Invariant:
    """Return the function at ``module:function``; modules of the current directory come first.

    Raises InvariantError.
    """
    module, colon, name = reference.partition(":")
    if not (colon and module and name):
        raise InvariantError(f"{reference!r} is not module:function")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        loaded = importlib.import_module(module)
        found = getattr(loaded, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of the user's code, which may end the process too
        raise InvariantError(f"{reference!r}: {_named(error)}") from error
    if found is None:
        functions = [one for one, value in vars(loaded).items() if inspect.isfunction(value)]
        raise InvariantError(f"{reference!r}: {unknown('function', name, functions)}")
    if not callable(found):
        raise InvariantError(f"{reference!r} is no function")
    return found  # type: ignore[no-any-return]


def _named(error: BaseException) -> str:
    """Return what is wrong, in a line."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:MAX_LETTERS]


def clause_named(name: str) -> ProtocolClause:
    """Return a clause of the table, an invariant of one's own, or a witness, by its id. Imports nothing.

    Raises KeyError where it is none of them.
    """
    if name.startswith(OWN):
        where = name.removeprefix(OWN)
        sentence = f"what {where} asks holds in every state"
        return ProtocolClause(id=name, level=Level.SAFETY, kind="always", sentence=sentence, source=where)
    served = (*consumer.WITNESSES, *consumer.CONNECTION_WITNESSES, *consumer.MIGRATION_WITNESSES)
    if name in (*WITNESSES, *served):
        sentence = f"some run shows: {name}"
        return ProtocolClause(
            id=name, level=Level.QUALITY, kind="sometimes", sentence=sentence, source="witness"
        )
    return CLAUSES[name]


WORST = "group/owner"
"""The clause that the others are for: two processes read the same records."""

FORERUNNERS = ("poll/throws", "epoch/covers")
"""Clauses of safety that break before something worse does, or where nothing else does."""


def gravity(name: str) -> tuple[int, int]:
    """Return how bad it is that a clause is broken, by its level first: the smaller, the worse."""
    within = 0 if name == WORST else 2 if name in FORERUNNERS else 1
    return list(Level).index(clause_named(name).level), within


def milder(names: Iterable[str]) -> frozenset[str]:
    """Return those of these clauses after which worse may break: not of the worst level, or forerunners."""
    levels = {name: list(Level).index(clause_named(name).level) for name in names}
    return frozenset(n for n, level in levels.items() if level > min(levels.values()) or n in FORERUNNERS)


def outranked(names: Iterable[str]) -> frozenset[str]:
    """Return those of these clauses after which two owners may still be found: all of the suite, but the
    worst. An invariant of one's own is what the user asked about, and ends a search."""
    several = frozenset(names)
    ordinary = frozenset(n for n in several if n != WORST and not n.startswith(OWN))
    return ordinary if WORST in several else milder(several)


def rules(setup: Setup, invariants: Iterable[str] = ()) -> Rules:
    """Return all that a group has to keep, the ``invariants`` at ``module:function`` too. Raises
    InvariantError."""
    own = tuple(_rule(setup, reference) for reference in invariants)
    needed = required(setup)
    return needed._replace(always=(*needed.always, *own))


def rules_about(setup: Setup, clause: str) -> Rules:
    """Return the rules of a group with the one that ``clause`` names, wherever it comes from."""
    return rules(setup, [clause.removeprefix(OWN)] if clause.startswith(OWN) else [])


def _rule(setup: Setup, reference: str) -> Always:
    slots = [letter(slot) for slot in setup.slots]
    views = ("cluster", "group", *(f"{view} {a}" for a in slots for view in ("life", "owned", "held")))
    return Always(f"{OWN}{reference}", views, partial(_breach, setup, slots, reference, load(reference)))


def _breach(
    setup: Setup,
    slots: list[str],
    reference: str,
    invariant: Invariant,
    cluster: int,
    group: Any,
    *views: Any,
) -> str | None:
    def named(parts: int) -> frozenset[str]:
        return frozenset(str(setup.partition(number)) for number in each(parts))

    members = {
        slot: MemberView(life=str(life), owns=named(owned), holds=named(held))
        for slot, life, owned, held in zip(slots, views[::3], views[1::3], views[2::3], strict=True)
    }
    state = str(group) if isinstance(group, GroupState) else ""
    shown = GroupView(partitions=named(cluster), members=members, state=state)
    try:
        answer = invariant(shown)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InvariantError(f"{reference!r} fails: {_named(error)}") from error
    if answer is None or answer is True:
        return None
    if answer is False:
        return (inspect.getdoc(invariant) or f"{reference} is False").splitlines()[0]
    if isinstance(answer, str) and answer:
        return answer[:MAX_LETTERS]
    raise InvariantError(
        f"{reference!r} returns {reprlib.repr(answer)}: write True, False, None or a sentence"
    )
