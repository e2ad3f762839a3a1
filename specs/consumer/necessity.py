"""What each guard of the consumer protocol is for: it is left out, and something is not proved any more.

For each there is a run from the beginning, in the logic, at the end of which a property is broken; it is
given by its actions, the solver finds the members and the rest. Where the catalogue has a switch that leaves
the guard out of the executable model too, the variation has its name, and a run of the model breaks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import z3
from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer import member as client
from rebalance_verifier.specs.consumer.coordinator import accepted, arrived, gives, surplus, unrevoked
from rebalance_verifier.specs.consumer.safety import IsStored, properties_of, specification
from rebalance_verifier.specs.consumer.vocabulary import FENCED, IDLE, INSIDE, JOIN, JOINING, VOCABULARY, N, P
from rebalance_verifier.specs.logic.bounded import SpecRun, StepRelations, run_by
from rebalance_verifier.specs.logic.language import After, Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.varying import around, instead_of, without
from z3 import And, ForAll, Implies, Not, Or

SIZES = {"Member": 2, "Partition": 2, "Generation": 6}
"""The groups of the runs."""

OWNS = "start join joined retargeted given answered begin assign"
"""A member comes, and owns something."""

TAKEN = "raised retargeted"
"""Another target."""

ASKED = f"{OWNS} {TAKEN} heartbeat must_revoke answered"
"""A member owns something and hears that it has to revoke it."""


@dataclass(frozen=True, kw_only=True)
class GuardLeftOut:
    """Actions ``instead`` of those specified; ``path`` leads to a state in which ``breaks`` does not hold.
    ``switch``: whether it is one of the catalogue, of the same name."""

    name: str
    sentence: str
    instead: tuple[Effect, ...] = ()
    stored: IsStored = coordinator.stored
    path: str
    breaks: str = "exclusive ownership"
    switch: bool = False

    sizes: ClassVar[Mapping[str, int]] = SIZES
    """Of the group of the run."""

    def specification(self) -> Specification:
        """Return the protocol without the guard."""
        properties = VOCABULARY.closed(properties_of(VOCABULARY.state(), self.stored))
        return replace(specification(*self.instead), properties=properties)


# -- the guards ----------------------------------------------------------------------------------------


def _given(s: State, t: After, m: Term, is_free: Callable[[State, Term, Term], Term]) -> None:
    """As ``given``, with another notion of what is free."""
    t.when(accepted(s, m), Not(unrevoked(s, m)), Not(arrived(s, m)))
    t.when(ForAll([P], Implies(surplus(s, m, P), Not(coordinator.still(s, m, P)))))
    gives(s, t, m, is_free)


@instead_of(coordinator.given)
def _whoever_holds_it(s: State, t: After, m: Term) -> None:
    _given(s, t, m, lambda s, m, p: z3.BoolVal(True))


@instead_of(coordinator.given)
def _although_pending(s: State, t: After, m: Term) -> None:
    _given(s, t, m, lambda s, m, p: ForAll([N], Implies(s.assigned(N, p), m == N)))


@instead_of(coordinator.given)
def _silence_revokes(s: State, t: After, m: Term) -> None:
    t.when(accepted(s, m), Not(unrevoked(s, m)), Not(arrived(s, m)))
    t.when(ForAll([P], Implies(surplus(s, m, P), Not(s.sent(m, P)))))
    gives(s, t, m)


@around(coordinator.must_drop)
def _forgets_pending(effect: Effect, s: State, t: After, m: Term) -> None:
    effect(s, t, m)
    t.pending[m, P] = coordinator.dropped(s, m, P)


@instead_of(client.full_heartbeat)
def _claims_reconciled_only(s: State, t: After, m: Term) -> None:
    t.when(s.runs(m), s.state(m) == INSIDE, s.wire(m) == IDLE, client.has_news(s, m))
    client.send_all(s, t, m, s.claim(m, P))


@instead_of(client.join)
def _joins_while_fenced(s: State, t: After, m: Term) -> None:
    t.when(s.runs(m), Or(s.state(m) == JOINING, s.state(m) == FENCED), s.wire(m) == IDLE)
    client.put(t, m, JOIN, carries=client.YES)


@around(client.poll_too_late)
def _goes_on_reconciling(effect: Effect, s: State, t: After, m: Term) -> None:
    effect(s, t, m)
    t.reconciling[m] = s.reconciling(m)
    t.goal[m, P] = s.goal(m, P)


@instead_of(client.lose)
def _loses_nothing(s: State, t: After, m: Term) -> None:
    t.when(s.runs(m), s.state(m) == FENCED)
    t.state[m] = JOINING


@instead_of(coordinator.raised)
def _falls(s: State, t: After, g: Term) -> None:
    t.group_epoch = g


@instead_of(coordinator.goes_away)
def _away_while_inside(s: State, t: After, m: Term) -> None:
    t.when(s.member(m), s.wire(m) == IDLE)
    coordinator.is_away(t, m)


def _any_at_epoch(s: State, m: Term, g: Term, p: Term) -> Term:
    """State that a commit of the present epoch for any partition is stored."""
    return Or(coordinator.stored(s, m, g, p), And(s.member(m), g == s.at(m)))


GUARDS: dict[str, GuardLeftOut] = {
    guard.name: guard
    for guard in (
        GuardLeftOut(
            name="ignore_current_epoch",
            sentence="a partition is given whoever holds it",
            instead=(_whoever_holds_it,),
            path=f"{OWNS} {OWNS}",
            switch=True,
        ),
        GuardLeftOut(
            name="given_while_pending",
            sentence="a partition that another member has still to revoke counts as free",
            instead=(_although_pending,),
            path=f"{ASKED} {OWNS}",
        ),
        GuardLeftOut(
            name="not_awaited",
            sentence="a member is given the next target although it has not revoked yet",
            instead=(without("pending", coordinator.given),),
            path=f"{ASKED} {TAKEN} heartbeat given {OWNS}",
        ),
        GuardLeftOut(
            name="silence_revokes",
            sentence="a heartbeat without partitions counts as one that gives all up",
            instead=(_silence_revokes,),
            path=f"{OWNS} {TAKEN} heartbeat given {OWNS}",
        ),
        GuardLeftOut(
            name="pending_replaced",
            sentence="what a member drops takes the position of what it has still to revoke",
            instead=(_forgets_pending,),
            path=f"{ASKED} subscribed heartbeat must_drop {OWNS}",
        ),
        GuardLeftOut(
            name="claims_reconciled_only",
            sentence="a client claims what it reconciled last, not what it has received",
            instead=(_claims_reconciled_only,),
            path="start join joined retargeted given answered "
            f"disconnected {TAKEN} full_heartbeat given disconnected begin assign {OWNS}",
            switch=True,
        ),
        GuardLeftOut(
            name="heartbeat_while_fenced",
            sentence="a client joins again before it has lost what it owned",
            instead=(_joins_while_fenced, without("state", client.answered)),
            path=f"{OWNS} poll_too_late {TAKEN} join given answered {OWNS}",
            switch=True,
        ),
        GuardLeftOut(
            name="no_rejoin_flag",
            sentence="a reconciliation goes on in the next membership",
            instead=(_goes_on_reconciling,),
            path="start join joined retargeted given answered begin poll_too_late lose "
            f"{TAKEN} join given answered assign {OWNS}",
            switch=True,
        ),
        GuardLeftOut(
            name="keeps_when_fenced",
            sentence="a client that was fenced joins again with what it owned",
            instead=(_loses_nothing,),
            path=f"{OWNS} poll_too_late lose {TAKEN} join given answered {OWNS}",
        ),
        GuardLeftOut(
            name="away_while_inside",
            sentence="a static member goes away while its client is in the group",
            instead=(_away_while_inside,),
            path=f"{ASKED} goes_away {OWNS}",
        ),
        GuardLeftOut(
            name="epoch_falls",
            sentence="the group's next epoch need not be newer",
            instead=(_falls,),
            path="start join joined retargeted raised",
            breaks="order of epochs",
        ),
        GuardLeftOut(
            name="commit_any_at_epoch",
            sentence="a commit of the present epoch is stored for any partition",
            stored=_any_at_epoch,
            path=f"{OWNS} acknowledge commit_late {TAKEN} full_heartbeat must_revoke answered begin revoke "
            f"acknowledge {TAKEN} full_heartbeat must_revoke {OWNS}",
            breaks="commit fencing",
            switch=True,
        ),
    )
}
"""By name."""


# -- the runs -----------------------------------------------------------------------------------------


def run_without(guard: GuardLeftOut) -> SpecRun | None:
    """Return a run along the path, at the end of which what the guard is for is broken; None if there is
    none.

    The solver finds it, the explicit evaluator checks it: raises ValueError where they disagree.
    """
    return run_along(guard.specification(), guard)


def run_along(spec: Specification, guard: GuardLeftOut) -> SpecRun | None:
    """Return the same of any specification."""
    broken = z3.Not(spec.properties[guard.breaks])
    return run_by(StepRelations(spec, guard.sizes), guard.path.split(), broken)
