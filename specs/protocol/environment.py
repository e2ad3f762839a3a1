"""What happens to the cluster: topics are created, grow, shrink and go."""

from __future__ import annotations

from rebalance.specs.logic.language import ANY, After, State
from rebalance.specs.protocol.vocabulary import DOWN, C
from z3 import Implies


def topics_change(s: State, t: After) -> None:
    """Topics or partitions come or go; consumers that run will see it when they refresh their metadata."""
    t.unseen[C] = ANY
    t.where(Implies(s.life(C) == DOWN, t.unseen(C) == s.unseen(C)))


STEPS = ()
FAULTS = (topics_change,)
