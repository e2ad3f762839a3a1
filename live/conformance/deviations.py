"""The model's machine with what the clients of a recording do otherwise, as steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rebalance_verifier.live.conformance.clients.every import UNHEARD
from rebalance_verifier.live.conformance.clients.table import DEVIATIONS
from rebalance_verifier.live.conformance.clients.traits import NEXT, ClientTraits
from rebalance_verifier.live.conformance.mock import mock
from rebalance_verifier.live.conformance.observed import UnloggedAction
from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import Member, SyncOk
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Action, Machine, Outcome, Value


def with_deviations(
    built: Machine,
    setup: Setup,
    clients: Sequence[ClientTraits],
    *,
    timed: Collection[tuple[str, int]],
    findings: bool,
) -> Machine:
    """``built`` with the deviations of each slot's client (`client_of`): the benign ones; all with
    ``findings``.

    ``timed``: which of those that only happen at times are to be there, by id and slot.
    """
    actions = list(built.actions)
    components, initial = built.components, built.initial
    for slot, client in enumerate(clients):
        me = MemberContext(p.Slot(slot), setup)
        if client.closes_midway:
            actions = [_closing(me, action) if action.who == slot else action for action in actions]
        if client.subscribes_again:
            components = (*components, me.name(NEXT))
            initial = tuple((*state, None) for state in initial)
            actions = [_postponing(me, action) if action.who == slot else action for action in actions]
        for deviation in DEVIATIONS:
            has = deviation.client in ("", client.name) and (
                not deviation.timed or (deviation.id, slot) in timed
            )
            if has and deviation.id == UNHEARD:
                join = next(action for action in actions if action.name == "join" and action.who == slot)
                actions.append(join._replace(name=UNHEARD))
            elif has and (deviation.benign or findings):
                actions.append(deviation.step(me))
    # Symmetries do not know what is new.
    return replace(built, components=components, initial=initial, actions=tuple(actions), symmetries=())


def _closing(me: MemberContext, action: Action) -> Action:
    """``close()`` of a member during a rebalance, or of one that has abandoned its join, as if at rest."""
    if action.name != "close":
        return action
    index = action.reads.index(me.name("member"))

    def run(*values: Any) -> Iterator[Outcome]:
        yield from action.run(*values)
        member = values[index]
        under_way = member.state in (p.MemberState.PREPARING, p.MemberState.COMPLETING)
        if member.stuck or under_way:
            state = p.MemberState.UNJOINED if member.generation == p.NONE else p.MemberState.STABLE
            there = member._replace(stuck=False, state=state)
            yield from action.run(*values[:index], there, *values[index + 1 :])

    return action._replace(run=run)


def _subscribes(me: MemberContext, member: Member, after: int | None) -> Iterator[Outcome]:
    """``subscribe()``: the new subscription waits until the client takes it up, be it for no time."""
    if works(member) and member.topics:
        for topics in me.consumer.subscriptions:
            yield Outcome((member, topics), f"topics {topics}")


def _postponing(me: MemberContext, action: Action) -> Action:
    """Return the driver's steps for a member whose subscriptions wait."""
    waits = me.name(NEXT)
    if action.name == "resubscribe":
        both = (me.name("member"), waits)
        return action._replace(reads=both, writes=both, run=partial(_subscribes, me), guard=None)
    if action.name not in ("start", "close", "crash", "unsubscribe"):
        return action

    def run(*values: Value) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            yield outcome._replace(values=(*outcome.values, None))

    return action._replace(writes=(*action.writes, waits), run=run)


@dataclass(frozen=True)
class RecordedMachine:
    """Makes the machine of a question: the coordinator's, with the deviations of ``clients`` by slot."""

    mocked: bool
    clients: tuple[ClientTraits, ...]
    timed: frozenset[UnloggedAction]
    findings: bool = False

    def __call__(self, setup: Setup) -> Machine:
        built = mock(setup, self.findings) if self.mocked else machine(setup)
        losing = [slot for slot, client in enumerate(self.clients) if client.loses]
        actions = tuple(
            action._replace(run=_only_synced(action))
            if action.name == "disconnect" and action.who in losing
            else action
            for action in built.actions
        )
        built = replace(built, actions=actions)
        return with_deviations(built, setup, self.clients, timed=self.timed, findings=self.findings)


def _only_synced(action: Action) -> Callable[..., Iterable[Outcome]]:
    def run(budget: int, member: Value, wire: Value) -> Iterable[Outcome]:
        return action.run(budget, member, wire) if isinstance(wire, SyncOk) else ()

    return run
