"""What happens in a group, whoever logs it: half of the stories are healthy, half are incidents.

A step is ``second member act arguments``. The answers are those of the story; nothing was run before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Story(NamedTuple):
    """``checks``: what must be found with certainty; none of a healthy group."""

    steps: str
    checks: frozenset[str] = frozenset()

    @property
    def healthy(self) -> bool:
        """Return whether nothing is wrong."""
        return not self.checks


def both(second: float, generation: int, *members: str) -> str:
    """Return the steps in which members join and sync; the first leads."""
    return "".join(
        f"{second} {who} joined {generation} {len(members)}\n{second + 0.1} {who} synced {generation}\n"
        for who in members
    )


A = "0 a starts\n0.5 a joining\n" + both(3, 7, "a") + "3.2 a assigned orders-0 orders-1\n"
B = "60 b starts\n60.5 b joining\n61 a joining\n"
EAGER = (
    A + "60 b starts\n60.5 b joining\n60.9 a revoked orders-0 orders-1\n61 a joining\n"
    + both(61.3, 8, "a", "b") + "61.5 a assigned orders-0\n61.5 b assigned orders-1\n"
)  # fmt: skip
COOPERATIVE = (
    A + B + both(61.3, 8, "a", "b") + "61.5 a revoked orders-1\n61.6 a joining\n61.7 b joining\n"
    + both(62, 9, "a", "b") + "62.2 b assigned orders-1\n"
)  # fmt: skip
END = "900 a quiet\n900 b quiet\n"

STORIES = {
    "scale out, eager": Story(EAGER + END),
    "scale out, cooperative": Story(COOPERATIVE + END),
    "scale in": Story(
        EAGER + "300 b revoked orders-1\n300.1 b leaves\n300.9 a revoked orders-0\n301 a joining\n"
        + both(301.5, 9, "a") + "301.8 a assigned orders-0 orders-1\n900 a quiet\n"
    ),
    "a restart": Story(
        EAGER + "300 b revoked orders-1\n300.1 b leaves\n300.9 a revoked orders-0\n301 a joining\n"
        + both(301.5, 9, "a") + "301.8 a assigned orders-0 orders-1\n"
        + "330 b starts\n330.5 b joining\n330.9 a revoked orders-0 orders-1\n331 a joining\n"
        + both(331.5, 10, "a", "b") + "331.8 a assigned orders-0\n331.8 b assigned orders-1\n" + END
    ),
    "the whole group ends": Story(
        EAGER + "300 b revoked orders-1\n300.1 b leaves\n300.2 a revoked orders-0\n300.3 a leaves\n"
    ),
    "given before it is given back": Story(
        A + B + both(61.3, 8, "a", "b") + "61.5 b assigned orders-1\n75.5 a revoked orders-1\n"
        + "75.6 a joining\n75.7 b joining\n" + both(76, 9, "a", "b") + END,
        frozenset({"owned-twice"}),
    ),
    "a zombie": Story(
        A + "60 b starts\n60.5 b joining\n" + both(75, 8, "b") + "75.3 b assigned orders-0 orders-1\n"
        + "95.3 a fenced\n95.4 a lost orders-0 orders-1\n95.5 a joining\n95.6 b revoked orders-0 orders-1\n"
        + "95.7 b joining\n" + both(96, 9, "b", "a")
        + "96.3 b assigned orders-0\n96.3 a assigned orders-1\n" + END,
        frozenset({"owned-by-zombie"}),
    ),
    "a partition that nobody gets": Story(
        A + "60 b starts\n60.5 b joining\n60.9 a revoked orders-0 orders-1\n61 a joining\n"
        + both(61.3, 8, "a", "b") + "61.5 a assigned orders-0\n61.5 b assigned orders-2\n" + END,
        frozenset({"stranded"}),
    ),
    "a rebalance that does not end": Story(
        EAGER + "120 a revoked orders-0\n120.1 a joining\n120.2 b revoked orders-1\n120.3 b joining\n" + END,
        frozenset({"never-settles"}),
    ),
    "one that is never answered": Story(
        A + "60 a revoked orders-0 orders-1\n60.1 a joining\n900 a quiet\n", frozenset({"never-settles"})
    ),
}  # fmt: skip
"""Name -> a story of at most two members, a and b, of the group orders."""


def steps_of(story: Story) -> list[tuple[float, str, str, Sequence[str]]]:
    """Return the steps of a story in order: second, member, act, arguments."""
    found = []
    for line in story.steps.splitlines():
        second, member, act, *arguments = line.split()
        found.append((float(second), member, act, arguments))
    return sorted(found, key=lambda step: step[0])
