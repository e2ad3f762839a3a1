"""What is proved of a group between the protocols, and what is asked so that it says something."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_verifier.specs.classic.necessity import vacuity
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityCheck
from rebalance_verifier.specs.consumer.proof import GRANTED, RUNS, named
from rebalance_verifier.specs.consumer.proof import SENTENCES as OF_CONSUMER
from rebalance_verifier.specs.logic.specification import Specification, Theorem
from rebalance_verifier.specs.logic.theorems import every_step, theorems
from rebalance_verifier.specs.migration.safety import STEPS_KEEP, specification

SENTENCES = {
    **OF_CONSUMER,
    "exclusive ownership": (
        "no partition is owned by two members of the group, whichever protocol they and it have", "KIP-848",
    ),
    "revoke before assign": (
        "what one member owns no other one has a right to, nor is it on its way to it", "KIP-848, KIP-429",
    ),
    "what is read is known": (
        "what a member owns the coordinator has as assigned to it, to be revoked by it or claimed by it",
        "KIP-848, online migration",
    ),
    "commit fencing": (
        "in a consumer group no commit is stored for a partition that another member owns, of either kind",
        "KIP-848, KIP-1251",
    ),
}  # fmt: skip
"""Of each property: what it says, and who demands it."""

SCOPE = "dynamic members that subscribe by name; no failover of a classic group, no topic that is made anew"
"""What groups the logic has; `MigrationRefinement` refuses a sample of others."""

EPOCHS = ("the group's epoch grows", "the target's epoch grows", "a member's epoch grows")

_GIVEN = "joined retargeted given answered"
_SETTLED = (
    "start_old start_old join_claiming join_claiming enters enters phase_ends join_answered join_answered"
)

WITNESSES: Mapping[str, str] = {
    **RUNS,
    "start_old": "",
    "dissolved": "",
    "founded": "join",
    "raises": "founded",
    "joined": "founded",
    "retargeted": "joined",
    "must_revoke": f"{_GIVEN} raises retargeted heartbeat",
    "expelled": "start_old",
    "join_claiming": "start_old",
    "join_eager": "start_old",
    "refuses": "join_claiming",
    "dropped": "join_claiming",
    "enters": "join_claiming",
    "leaves": "enters",
    "phase_ends": "enters",
    "join_answered": "phase_ends",
    "sync_waits": "join_answered",
    "decides": "sync_waits",
    "sync_answered": "decides",
    "sync_of_settled": f"{_SETTLED} sync_waits decides",
    "upgraded": "enters start join",
    "not_found": "enters start join",
    "presents": "joined start_old join_claiming",
    "returns": "presents joined given",
    "returns_nothing": "returns join_answered dropped join_claiming presents removed unknown",
    "sync_of_epoch": "returns join_answered",
    "downgraded": "returns",
}
"""Actions from which the action is possible; the first of them begins where its own run ends, and so on."""


def proof(spec: Specification | None = None) -> tuple[Theorem, ...]:
    """Return all theorems about groups between the protocols."""
    spec = spec or specification()
    conversion = {name: formula for name, formula in STEPS_KEEP.items() if name not in (GRANTED, *EPOCHS)}
    return (
        *(named(theorem, SENTENCES) for theorem in theorems(spec)),
        every_step(
            spec,
            "conversion keeps both",
            "whoever had a right to a partition has it after a conversion, up or down, and nobody else; "
            "every member is at the generation, or the generation at the epoch, that there was",
            "KIP-848, online migration",
            conversion,
        ),
        every_step(
            spec, "monotone epochs", "no step takes an epoch back", "KIP-848",
            {name: STEPS_KEEP[name] for name in EPOCHS},
        ),
        every_step(
            spec,
            "grants",
            "a member comes to a right to a partition only when no other one has it, or may come to have it",
            "KIP-848, KIP-429",
            {GRANTED: STEPS_KEEP[GRANTED]},
        ),
    )  # fmt: skip


def checks(spec: Specification) -> tuple[VacuityCheck, ...]:
    """That the assumptions are consistent, every action is taken in a run from the beginning, and every
    formula can fail."""
    return vacuity.of_protocol(spec, WITNESSES)
