"""What is proved of the consumer protocol, and what is asked so that it says something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from rebalance_verifier.specs.classic.necessity import vacuity
from rebalance_verifier.specs.classic.necessity.vacuity import VacuityCheck
from rebalance_verifier.specs.consumer.convergence import convergence
from rebalance_verifier.specs.consumer.order import CONTRACT, ORDER, assuming
from rebalance_verifier.specs.consumer.safety import STEPS_KEEP, specification
from rebalance_verifier.specs.logic.specification import Specification, Theorem
from rebalance_verifier.specs.logic.theorems import every_step, theorems

SENTENCES = {
    "exclusive ownership": ("no partition is owned by two members of the group", "KIP-848"),
    "revoke before assign": (
        "what one member owns is held for no other one, nor on its way to it", "KIP-848, reconciliation",
    ),
    "commit fencing": (
        "no commit, however old and however late, is stored for a partition that another member owns",
        "KIP-848, KIP-1251",
    ),
    "order of epochs": (
        "the epoch of a member is not beyond the target's, nor that beyond the group's", "KIP-848",
    ),
}  # fmt: skip
"""Of each property: what it says, and who demands it."""

GRANTED = "given when it is free"

RUNS: Mapping[str, str] = {
    "start": "",
    "commits_end": "",
    "join": "start",
    "ends": "start",
    "unsubscribe": "start",
    "subscribe": "unsubscribe",
    "disconnected": "join",
    "subscribed": "joined",
    "removed": "joined",
    "expired": "joined ends disconnected",
    "unheard": "join ends",
    "given": "joined",
    "answered": "given",
    "heartbeat": "answered",
    "full_heartbeat": "answered disconnected",
    "nothing_new": "heartbeat",
    "unknown": "heartbeat removed",
    "refused": "unknown",
    "lose": "refused",
    "begin": "answered",
    "revoke": "begin",
    "assign": "begin",
    "acknowledge": "begin",
    "poll_too_late": "answered",
    "commit_late": "answered",
    "commit_stored": "joined retargeted given answered begin assign commit_late",
    "commit_refused": "commit_stored removed",
    "must_drop": "joined retargeted given answered subscribed heartbeat",
    "has_dropped": "joined retargeted given answered poll_too_late lose join subscribed",
}
"""Of ``WITNESSES`` those that are the same in a group that members of the classic protocol may be in."""

WITNESSES: Mapping[str, str] = {
    **RUNS,
    "raised": "",
    "resolved": "",
    "joined": "join",
    "goes_away": "joined disconnected",
    "replaces": "joined disconnected start join",
    "unreleased": "join",
    "retargeted": "raised",
    "must_revoke": "joined retargeted given answered start join joined retargeted heartbeat",
}
"""Actions from which the action is possible; the first of them begins where its own run ends, and so on."""


def proof(
    spec: Specification | None = None, contract: Collection[str] = tuple(CONTRACT)
) -> tuple[Theorem, ...]:
    """Return all theorems about the consumer protocol; for convergence under these clauses of the
    contract."""
    spec = spec or specification()
    monotone = {name: formula for name, formula in STEPS_KEEP.items() if name != GRANTED}
    return (
        *(named(theorem) for theorem in theorems(spec)),
        every_step(spec, "monotone epochs", "no step takes an epoch back", "KIP-848", monotone),
        every_step(
            spec,
            "grants",
            "a partition is given to a member only when no other one has it, or may come to have it",
            "KIP-848, reconciliation",
            {GRANTED: STEPS_KEEP[GRANTED]},
        ),
        *convergence(spec, contract),
    )


def named(theorem: Theorem, sentences: Mapping[str, tuple[str, str]] = SENTENCES) -> Theorem:
    """Return the theorem with its sentence and its source, if there are some."""
    sentence, source = sentences.get(theorem.name, (theorem.sentence, theorem.source))
    return replace(theorem, sentence=sentence, source=source)


def checks(spec: Specification) -> tuple[VacuityCheck, ...]:
    """That the assumptions are consistent, every action is taken in a run from the beginning whose assignor
    keeps its contract, and every formula can fail."""
    return vacuity.of_protocol(assuming(spec), WITNESSES, spec.vocabulary.closed(ORDER))
