"""What sleep sets may not lose, of groups of each protocol."""

from __future__ import annotations

from collections.abc import Hashable

from rebalance_verifier.live.code.search.exhaustive import Everything
from rebalance_verifier.live.code.search.run import CodePlaying, PlayedOnCode


def sleep_sets_lose_no_end(playing: CodePlaying, depth: int) -> None:
    """Search with and without them: the same ends and breaches are found, in fewer runs with them."""

    def ends(sleeps: bool) -> tuple[set[Hashable], set[str], int]:
        found: list[PlayedOnCode] = []
        every = Everything(playing=playing, depth=depth, faults=1, ends=found.append, sleeps=sleeps)
        every.search()
        return every.looks, {one.cause for run in found for one in run.breaches}, len(found)

    (slept, some, fewer), (looks, every, more) = ends(True), ends(False)
    assert (slept, some) == (looks, every)
    assert fewer < more
