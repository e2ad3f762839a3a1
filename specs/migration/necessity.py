"""What each guard of a migration is for: it is left out, and something is not proved any more.

As in ``specs.consumer.necessity``: a run from the beginning along ``path``, at the end of which two members
own one partition; where the catalogue has a switch of the name, the executable model breaks the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rebalance_verifier.specs.consumer.member import NO
from rebalance_verifier.specs.consumer.necessity import GuardLeftOut
from rebalance_verifier.specs.consumer.vocabulary import IDLE, JOIN, M, N, P, lt
from rebalance_verifier.specs.logic.language import ANY, After, Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.varying import around, instead_of
from rebalance_verifier.specs.migration import coordinator as group
from rebalance_verifier.specs.migration import member as classic
from rebalance_verifier.specs.migration import vocabulary as v
from rebalance_verifier.specs.migration.safety import specification
from z3 import And, Exists, Implies, Not

SIZES = {"Member": 3, "Partition": 2, "Generation": 6}
"""The groups of the runs."""

ROUND = "join_claiming enters phase_ends join_answered sync_waits decides"
"""A classic member alone goes through a rebalance; it has not heard of the decision."""

OWNS = f"start_old {ROUND} sync_answered"
"""A classic member comes, and owns something."""

GIVEN = "start join founded joined retargeted given answered"
"""A consumer group with its first member."""

ENTERS = "start_old join_claiming presents joined retargeted given returns"
"""A classic member comes into it."""

READS = "join_answered sync_of_epoch sync_answered"
"""And owns something."""


@dataclass(frozen=True, kw_only=True)
class MigrationGuard(GuardLeftOut):
    """One of a group between the protocols."""

    sizes: ClassVar[Mapping[str, int]] = SIZES

    def specification(self) -> Specification:
        return specification(*self.instead)


# -- the guards ----------------------------------------------------------------------------------------


@instead_of(group.upgraded)
def _holds_what_is_stored(s: State, t: After, m: Term, g: Term) -> None:
    t.when(s.kind == v.CLASSIC, s.wire(m) == JOIN, Not(s.member(m)))
    group.converts(s, t, g, NO)


@around(group.downgraded)
def _to_target(effect: Effect, s: State, t: After, m: Term) -> None:
    effect(s, t, m)
    t.assigned[M, P] = And(s.target(M, P), m != M)


def _may_enter(s: State, m: Term) -> Term:
    return s.call(m) == v.JOIN_GROUP


@instead_of(group.presents)
def _admits_the_unknown(s: State, t: After, m: Term) -> None:
    t.when(_may_enter(s, m), s.kind == v.CONSUMER, Not(group.nobody(s)), s.wire(m) == IDLE)
    group.shows(s, t, m)


@instead_of(group.decides)
def _gives_what_is_claimed(s: State, t: After) -> None:
    t.when(s.kind == v.CLASSIC, s.phase == v.COMPLETING, Exists([M], group.awaited(s, M)))
    t.phase = v.SETTLED
    t.assigned[M, P] = ANY
    t.where(Implies(t.assigned(M, P), s.member(M)))
    t.where(Implies(And(t.assigned(M, P), t.assigned(N, P)), M == N))
    group.announces(s, t)


@instead_of(group.phase_ends)
def _waits_for_nobody(s: State, t: After, g: Term) -> None:
    t.when(s.kind == v.CLASSIC, s.phase == v.PREPARING, lt(s.group_epoch, g), Not(group.nobody(s)))
    group.next_generation(s, t, g)


@instead_of(classic.join_eager)
def _claims_nothing(s: State, t: After, m: Term) -> None:
    t.when(s.runs(m), s.old(m), s.call(m) == v.NOTHING)
    classic.calls(t, m, v.JOIN_GROUP, epoch=s.epoch(m))


GUARDS: dict[str, MigrationGuard] = {
    guard.name: guard
    for guard in (
        MigrationGuard(
            name="no_barrier_for_withheld",
            sentence="a member holds what was assigned to it last, not what it claimed and nobody got",
            instead=(_holds_what_is_stored,),
            path=f"{OWNS} {ROUND} start join upgraded joined retargeted given answered begin assign",
            switch=True,
        ),
        MigrationGuard(
            name="downgrade_to_target",
            sentence="a downgrade assigns the target, and not what each member holds",
            instead=(_to_target,),
            path=f"{GIVEN} {ENTERS} {READS} {ENTERS} downgraded ends start join upgraded {READS}",
            switch=True,
        ),
        MigrationGuard(
            name="unknown_member_admitted",
            sentence="a JoinGroup with a generation is admitted under an id that is not known",
            instead=(_admits_the_unknown,),
            path=f"{GIVEN} {ENTERS} {READS} removed retargeted heartbeat given answered begin assign "
            "join_claiming presents joined",
            switch=True,
        ),
        MigrationGuard(
            name="gives_what_is_claimed",
            sentence="the leader of a classic group gives what another member claims",
            instead=(_gives_what_is_claimed,),
            path=f"{OWNS} start_old join_claiming enters join_claiming enters phase_ends join_answered "
            "sync_waits decides sync_answered",
        ),
        MigrationGuard(
            name="waits_for_nobody",
            sentence="a join phase ends although not everybody has joined",
            instead=(_waits_for_nobody,),
            path=f"{OWNS} {OWNS}",
        ),
        MigrationGuard(
            name="eager_claims_nothing",
            sentence="an EAGER member claims nothing and revokes nothing",
            instead=(_claims_nothing,),
            path=f"{OWNS} start_old join_claiming enters join_eager enters phase_ends join_answered "
            "sync_waits decides sync_answered",
        ),
    )
}  # fmt: skip
"""By name."""
