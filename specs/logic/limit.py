"""A solver asked within a time limit.

Not by z3's own ``timeout``: its timer threads and fork do not go together, and now and then wait for each
other for ever (Z3Prover/z3, pull request 7618). Here nothing but this call outlives the call.
"""

from __future__ import annotations

import threading
from typing import Any

DAY = 86_400.0
AGAIN = 0.01
"""Seconds between two interruptions: the first may come before z3 has begun, and is not kept for it."""


def check(solver: Any, seconds: float, *assumptions: Any) -> Any:
    """What the solver says of the assumptions: ``z3.sat``, ``z3.unsat``; ``z3.unknown`` when time is up."""
    if seconds >= DAY:
        return solver.check(*assumptions)
    over = threading.Event()

    def interrupt() -> None:
        wait = max(seconds, 0.0)
        while not over.wait(wait):
            solver.interrupt()
            wait = AGAIN

    watch = threading.Thread(target=interrupt, daemon=True)
    watch.start()
    try:
        return solver.check(*assumptions)
    finally:
        over.set()
        watch.join()
