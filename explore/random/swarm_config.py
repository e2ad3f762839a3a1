"""The config of a random walk: what it would rather not do, and how often something goes wrong.

Swarm: each walk has its own, a random set of actions that it would rather not take. One that is put
off again and again for a whole walk meets states that a fair coin never meets (Groce and others, "Swarm
testing", 2012). Put off is not forbidden: where nothing else can happen, everything may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from rebalance_verifier.model.machine import Event

ODDS = (0, 1, 2, 4)
"""How many of eight actions a config puts off."""

FAULTS_IN = (4, 12, 40)
"""One of so many steps of a walk is a fault, where one is possible."""


@dataclass(frozen=True, slots=True)
class SwarmConfig:
    """``reluctant``: actions by name and member that are put off. ``rare``: one of so many steps is a fault
    where one is possible; 0 where a fault is a step like any other."""

    reluctant: frozenset[tuple[str, int]] = frozenset()
    rare: int = 0

    def choose(self, random: Random, events: Sequence[Event], faults: Sequence[bool] = ()) -> int:
        """Return the number of one of ``events``, at least one; ``faults``: which are, where those are
        rare."""
        pool: Sequence[int] = range(len(events))
        if self.rare:
            wrong = [at for at in pool if faults[at]]
            right = [at for at in pool if not faults[at]]
            pool = wrong if self.goes_wrong(random, bool(wrong), bool(right)) else right
        return pool[self.pick(random, [events[at] for at in pool])]

    def goes_wrong(self, random: Random, wrong: bool, right: bool) -> bool:
        """Check whether the next step is a fault where faults are rare, by which of both kinds is
        possible."""
        return wrong and (not right or random.randrange(self.rare) == 0)

    def pick(self, random: Random, events: Sequence[Event]) -> int:
        """Return the number of one of ``events``, at least one."""
        willing = [at for at, one in enumerate(events) if (one.action, one.who) not in self.reluctant]
        return willing[random.randrange(len(willing))] if willing else random.randrange(len(events))


def drawn_config(
    random: Random, actions: Iterable[tuple[str, int, bool]], faults_in: Sequence[int] = ()
) -> SwarmConfig:
    """Return a config over ``actions``: name, member, whether it is a fault. Integer draws only, in their
    order.

    ``faults_in``: of which ``SwarmConfig.rare`` is drawn; without it steps and faults are put off apart.
    """
    odds = [ODDS[random.randrange(len(ODDS))]]
    odds.append(odds[0] if faults_in else ODDS[random.randrange(len(ODDS))])
    rare = faults_in[random.randrange(len(faults_in))] if faults_in else 0
    put_off = frozenset((name, who) for name, who, fault in actions if random.randrange(8) < odds[fault])
    return SwarmConfig(put_off, rare)
