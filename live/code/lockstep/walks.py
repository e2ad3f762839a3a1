"""Random walks in lockstep, in parallel, and what they come to; the first disagreement is made short."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from rebalance_verifier.base.processes.gather import gather
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.live.code.lockstep.classic import Agreement, Disagreement
from rebalance_verifier.live.code.lockstep.protocols import AnyLockstep, in_step
from rebalance_verifier.live.code.lockstep.system import again, drawn, shortened, walk
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.sharing import Sharing
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine

WALKS_PER_TASK = 20
"""Walks that a worker does at once, and then tells: each has a coordinator in its JVM, and more of them in a
line would make it little cheaper."""

Part = tuple[Agreement, Disagreement | None]
"""What some walks come to, up to the first disagreement."""


@dataclass(frozen=True, kw_only=True)
class LockstepPlan:
    """``walks`` from the one numbered ``first`` on, each of at most ``steps`` steps; ``releases`` are run."""

    setup: Setup
    releases: CodeReleases
    walks: int = 1000
    steps: int = 100
    seed: int = 0
    first: int = 0
    jobs: int | None = None


@dataclass(kw_only=True)
class LockstepResult:
    """Result of a plan. ``disagreement`` is that of the first walk that has one, made short.

    ``seen_again``: a simulation of its own came to it too, so that it is not a JVM that somebody killed.
    ``stopped``: why not all was walked, or "".
    """

    plan: LockstepPlan
    agreement: Agreement = field(default_factory=Agreement)
    disagreement: Disagreement | None = None
    seen_again: bool = False
    interrupted: bool = False
    stopped: str = ""

    @property
    def never_taken(self) -> list[str]:
        """Return the actions of the model that were not taken."""
        names = dict.fromkeys(action.name for action in machine(self.plan.setup).actions)
        return [name for name in names if not self.agreement.taken[name]]

    @property
    def verdict(self) -> Verdict:
        """Return what the walks say."""
        if self.disagreement is not None:
            return Verdict.VIOLATION if self.seen_again else Verdict.INCONCLUSIVE
        return Verdict.INCONCLUSIVE if self.interrupted or self.stopped else Verdict.CONFORMANT


def lockstep(plan: LockstepPlan, progress: Callable[[Agreement], None] = lambda _: None) -> LockstepResult:
    """Walk until the end or the first disagreement; Ctrl-C ends it with what is known.

    The result is the same for any number of jobs. Raises CannotStart where no simulation can be had.
    """
    result = LockstepResult(plan=plan)

    def take(part: Part) -> str:
        agreement, result.disagreement = part
        result.agreement.add(agreement)
        return "" if result.disagreement is None else "a disagreement"

    def heard() -> str:
        progress(result.agreement)
        return ""

    end = gather(lambda: _walking(plan), -(-plan.walks // WALKS_PER_TASK), plan.jobs, take, heard)
    result.interrupted = end.interrupted
    if end.killed is not None:
        number = plan.first + end.killed * WALKS_PER_TASK
        result.stopped = f"the worker of the walks from {number} on was killed"
    if result.disagreement is not None:
        with contextlib.suppress(KeyboardInterrupt, SimulationDied), _simulation(plan) as simulation:
            fresh = _fresh(plan, simulation)
            second = again(fresh(), result.disagreement.events)
            result.seen_again = second is not None and second.cause == result.disagreement.cause
            result.disagreement = shortened(fresh, result.disagreement)
    return result


def _simulation(plan: LockstepPlan) -> Simulation:
    return Simulation([plan.releases.coordinator], plan.releases.consumers)


def _fresh(plan: LockstepPlan, simulation: Simulation) -> Callable[[], AnyLockstep]:
    built = machine(plan.setup)
    return lambda: in_step(simulation, plan.setup, built, plan.releases)


@contextlib.contextmanager
def _walking(plan: LockstepPlan) -> Iterator[Callable[[int], Sequence[Part]]]:
    """Yield what does one part of the walks, up to its first disagreement: all of them at once."""
    built = machine(plan.setup)

    def play(number: int, simulation: Simulation) -> Part:
        one = in_step(simulation, plan.setup, built, plan.releases)
        disagreement = walk(one, drawn(plan.seed, plan.first + number), plan.steps)
        return one.seen, disagreement

    with _simulation(plan) as simulation:
        shares = Sharing(simulation, WALKS_PER_TASK, _disagrees)

        def part(number: int) -> Sequence[Part]:
            numbers = range(number * WALKS_PER_TASK, min(plan.walks, (number + 1) * WALKS_PER_TASK))
            found = shares.run([partial(play, one) for one in numbers])
            if shares.over and _disagrees(found[-1]):
                found = _one_by_one(plan, [partial(play, one) for one in numbers]) or found
            agreement = Agreement()
            for seen, _ in found:
                agreement.add(seen)
            return ((agreement, found[-1][1]),)

        yield part


def _disagrees(part: Part) -> bool:
    return part[1] is not None


def _one_by_one(plan: LockstepPlan, plays: Sequence[Callable[[Simulation], Part]]) -> list[Part]:
    """Return the walks up to the one that disagrees, in a simulation of their own one after the other: of
    several at once in a JVM that died each may be the cause. None where all agree: somebody killed it."""
    found = []
    with _simulation(plan) as simulation:
        for play in plays:
            found.append(play(simulation))
            if _disagrees(found[-1]):
                return found
    return []
