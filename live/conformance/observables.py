"""What a step of the model would leave in a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from rebalance_verifier.live.conformance.clients.traits import HEARD
from rebalance_verifier.live.conformance.observed import INPUTS, LogCapabilities, Observable
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback, Threw
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import NOBODY, Action, Outcome

_JOINS = frozenset({"join", "join late", "join lost", "join unanswered"})
_RECEIVES_JOIN = frozenset({"receive", "receive join", "sync late", "sync lost", "assign", "hang"})


def observables_of(
    action: Action,
    before: Mapping[str, Any],
    outcome: Outcome,
    capabilities: LogCapabilities,
    is_input: bool,
) -> tuple[Observable, ...]:
    """Return what a step shows of itself, in the order in which a consumer notes it, as far as that is
    logged.

    ``before`` is what the action has read; the event that stands for an input (``is_input``) comes last.
    """
    if action.who == NOBODY:
        return (Observable(INPUTS[action.name], choice=outcome.choice),) if action.name in INPUTS else ()
    name = letter(action.who)
    member, wire = before.get(f"member {name}"), before.get(f"wire {name}")
    then = dict(zip(action.writes, outcome.values, strict=True)).get(f"member {name}")
    observables = [*_answered(action, member, wire, then, outcome), *_noticed(member, outcome)]
    if action.name in _JOINS:
        again = isinstance(member, s.Member) and member.id != p.NO_ID and member.generation == p.NONE
        if not (again and capabilities.once):
            observables.append(Observable("joining"))
    if is_input:
        kind, choice = INPUTS[action.name], outcome.choice
        if kind in ("started", "subscribed"):
            choice = choice or f"topics {cast(s.Member, then).topics}"
        observables.append(Observable(kind, choice=choice))
    return tuple(
        one
        for one in observables
        if one.kind in capabilities.kinds and (one.parts != 0 or one.kind in capabilities.empty)
    )


def _answered(action: Action, member: Any, wire: Any, then: Any, outcome: Outcome) -> Iterator[Observable]:
    """Yield the answer of the group that the step takes."""
    if isinstance(member, s.Member) and isinstance(wire, s.JoinOk):
        heard = HEARD in outcome.seen or action.name in _RECEIVES_JOIN
        if member.state is p.MemberState.PREPARING and heard:
            yield Observable("joined", generation=wire.generation)
    elif isinstance(wire, s.SyncOk) and isinstance(then, s.Member) and then.state is p.MemberState.STABLE:
        yield Observable("synced", generation=wire.generation)


def _noticed(member: Any, outcome: Outcome) -> Iterator[Observable]:
    """Callbacks, and what poll throws."""
    for seen in outcome.seen:
        if isinstance(seen, Callback):
            generation = None
            if seen.call is Call.ASSIGNED and isinstance(member, s.Member) and member.generation != p.NONE:
                generation = member.generation
            yield Observable(seen.call.value, seen.parts, generation)
        elif isinstance(seen, Threw) and seen.error != "listener":
            yield Observable("failed")
