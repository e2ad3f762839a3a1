"""What happens to a group of two EAGER consumers, and the right answer, written down before an audit saw it.

A step is ``second pod what details``. Partitions are numbers of the topic ``orders``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from rebalance_verifier.base.verdict import Verdict

FINE, WRONG, OPEN = Verdict.CONFORMANT, Verdict.VIOLATION, Verdict.INCONCLUSIVE


class Step(NamedTuple):
    second: float
    pod: str
    what: str
    """start, told (to join again), join, plan, sync, get, give, gone (it is no member), leave, other"""
    generation: int = 0
    partitions: tuple[int, ...] = ()
    shares: tuple[tuple[str, tuple[int, ...]], ...] = ()
    leads: bool = False
    life: int = 1
    """A member that was removed comes back with another member id."""

    @property
    def member(self) -> str:
        return f"{self.pod}-{self.life:08d}-5f4e-4d3c-8b2a-0123456789ab"


def rebalance(
    at: float, generation: int, plan: dict[str, tuple[int, ...]], lives: dict[str, int] | None = None
) -> list[Step]:
    """All of a plan join a generation, and get what it gives them. The first leads."""
    lives = lives or {}
    steps = []
    shares = tuple((Step(0, pod, "", life=lives.get(pod, 1)).member, parts) for pod, parts in plan.items())
    for number, (pod, parts) in enumerate(plan.items()):
        own: dict[str, Any] = {"generation": generation, "life": lives.get(pod, 1), "leads": number == 0}
        steps.append(Step(at, pod, "join", shares=shares, **own))
        if number == 0:
            steps.append(Step(at + 0.01, pod, "plan", shares=shares, **own))
        steps.append(Step(at + 0.1, pod, "sync", partitions=parts, **own))
        steps.append(Step(at + 0.11, pod, "get", partitions=parts, **own))
    return steps


def stop(at: float, generation: int, what: str = "told", **shares: tuple[int, ...]) -> list[Step]:
    """These are told to join again, and give all away."""
    return [
        step
        for pod, parts in shares.items()
        for step in (
            Step(at, pod, what, generation, parts),
            Step(at + 0.01, pod, "give", generation, parts),
        )
    ]


BEGIN = [
    Step(0, "a", "start"),
    *rebalance(3, 1, {"a": (0, 1, 2)}),
    Step(60, "b", "start"),
    *stop(60.5, 1, a=(0, 1, 2)),
]
QUIET = [Step(1200, "a", "other"), Step(1200, "b", "other")]

HEALTHY = [
    *BEGIN,
    *rebalance(61, 2, {"a": (0, 2), "b": (1,)}),
    Step(300, "b", "give", 2, (1,)),
    Step(300.01, "b", "leave", 2),
    *stop(303, 2, a=(0, 2)),
    *rebalance(303.5, 3, {"a": (0, 1, 2)}),
    *QUIET,
]
TWO_OWNERS = [
    *BEGIN,
    *rebalance(61, 2, {"a": (0, 1), "b": (1, 2)}),
    *stop(120, 2, a=(0, 1), b=(1, 2)),
    *rebalance(120.5, 3, {"a": (0, 1), "b": (2,)}),
    *QUIET,
]
ZOMBIE = [
    *BEGIN,
    *rebalance(61, 2, {"a": (0, 2), "b": (1,)}),
    *stop(100, 2, b=(1,)),
    *rebalance(100.5, 3, {"b": (0, 1, 2)}),
    Step(130, "a", "gone", 2, (0, 2)),
    *stop(132, 3, b=(0, 1, 2)),
    *rebalance(133, 4, {"b": (0, 1), "a": (2,)}, {"a": 2}),
    *QUIET,
]
ENDLESS = [
    *BEGIN,
    *rebalance(61, 2, {"a": (0, 2), "b": (1,)}),
    *(
        step
        for number in range(200)
        for step in (
            *stop(100 + 5 * number, 2 + number, a=(0, 2), b=(1,)),
            *rebalance(100.5 + 5 * number, 3 + number, {"a": (0, 2), "b": (1,)}),
        )
    ),
]


@dataclass(frozen=True)
class Story:
    steps: list[Step]
    verdict: Verdict
    checks: frozenset[str]
    """Findings that fail a run, certain or not."""


STORIES = {
    "healthy": Story(HEALTHY, FINE, frozenset()),
    "two owners": Story(TWO_OWNERS, WRONG, frozenset({"owned-twice"})),
    "a zombie": Story(ZOMBIE, WRONG, frozenset({"owned-by-zombie"})),
    "endless": Story(ENDLESS, WRONG, frozenset({"never-settles"})),
}
