"""What a recording of a group says, event by event, and what its author could see."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.parts import Parts
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine

INPUTS: Mapping[str, str] = table(__file__, "inputs")
"""Action of the model -> the event that stands for it. These happen only where the log has them."""

_NO_FAULTS = ("start", "resume", "subscribe")
CALLBACKS = ("assigned", "revoked", "lost")
ALWAYS_LOGGED = frozenset({*INPUTS.values(), *CALLBACKS})
OPTIONAL = ("joining", "joined", "synced", "failed")
"""Events that some clients tell and others do not."""

LIMIT = 400_000
"""Pairs of state and frontier that are searched by default."""


class Observed(NamedTuple):
    """One event of a recording. ``at`` is in seconds, ``who`` a slot, NOBODY for the cluster.

    ``kind`` is one of ``INPUTS``' values, ``CALLBACKS`` or ``OPTIONAL``. ``parts`` are a callback's, None
    where they are not known; ``generation`` is the real number, None where it was not told. ``choice`` says
    which outcome an input has, where that is known: the topics of a subscription (``topics 3``), the
    partition that is new.
    """

    at: float
    who: int
    kind: str
    parts: Parts | None = None
    generation: int | None = None
    choice: str = ""


UnloggedAction = tuple[str, int]
"""An action that may happen unseen and costs nothing: its name and whose it is."""

Spans = tuple[tuple[float, float], ...]
"""Times from when to when, as those of events."""


class LogCapabilities(NamedTuple):
    """Facts that a consumer's recording tells: kinds of events, and those it tells even of no partitions."""

    kinds: frozenset[str] = ALWAYS_LOGGED
    empty: frozenset[str] = frozenset()
    once: bool = False
    """``joining`` is told once for a JoinGroup that is sent again with the member id it was given."""


class Observable(NamedTuple):
    """Observations that a step shows. ``generation`` is what the node's labels say, None for none."""

    kind: str
    parts: Parts | None = None
    generation: int | None = None
    choice: str = ""


@dataclass(frozen=True, kw_only=True)
class SearchQuestion:
    """Question whether the group of ``setup`` can show ``events``, and the bounds of its search.

    The setup's faults and budget are replaced: by what the inputs take, and by the hidden ``faults`` of which
    ``budget`` may happen; those in ``unlogged_actions`` may happen as often as they like, also inputs that
    the recording does not tell; those in ``when`` only in these spans of time, those in ``silent`` only where
    their consumer tells nothing for so many seconds. ``build`` makes the machine. ``capabilities`` are the
    slots whose recordings tell something else than ``LogCapabilities()``.
    ``observed_assignments``: assignments are as observed; leaders in the slots of ``lenient`` may break the
    clauses of a leader, and the choice of such a step ends with ``AGAINST`` and the clause. Of runs that
    explain as much, those with fewer such steps and fewer of the actions ``penalised`` come first. The
    actions ``unlogged`` begin a generation that no event may tell. ``window`` is in seconds; ``limit`` bounds
    the pairs searched, ``seconds`` the computing time.
    """

    setup: Setup
    events: Sequence[Observed]
    capabilities: Mapping[int, LogCapabilities] = field(default_factory=dict)
    faults: Sequence[str] = ()
    budget: int = 0
    unlogged_actions: Collection[UnloggedAction] = ()
    when: Mapping[UnloggedAction, Spans] = field(default_factory=dict)
    silent: Mapping[str, float] = field(default_factory=dict)
    observed_assignments: bool = False
    build: Callable[[Setup], Machine] = machine
    lenient: Collection[int] = ()
    penalised: Collection[str] = ()
    unlogged: Collection[str] = ()
    window: float = 1.0
    limit: int = LIMIT
    seconds: float | None = None


def kinds_of(events: Iterable[Observed]) -> tuple[str, ...]:
    """Return the kinds of faults of the model that the inputs among ``events`` are."""
    logged = {event.kind for event in events}
    return tuple(action for action, kind in INPUTS.items() if kind in logged and action not in _NO_FAULTS)


def describe(setup: Setup, observable: Observable | Observed) -> str:
    """Return what is shown, as text: ``revoked t-0 t-1``, ``joined generation 4``."""
    text = observable.kind
    if observable.kind in CALLBACKS:
        text += f" {setup.spell(observable.parts)}"
    if observable.kind not in CALLBACKS and observable.generation is not None:
        text += f" generation {observable.generation}"
    return text + (f" ({observable.choice})" if observable.choice else "")
