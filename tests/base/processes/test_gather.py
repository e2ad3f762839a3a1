"""What parts of some work come to is taken in the order of the parts, whatever becomes of their processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rebalance_verifier.base.processes import gather
from rebalance_verifier.base.processes.gather import Gathered


def gathered(
    monkeypatch: pytest.MonkeyPatch,
    arriving: list[tuple[int, str | None]],
    last: str = "",
    error: bool = False,
) -> tuple[list[str], Gathered[str]]:
    """Return what is taken, and the end. ``last``: the result after which to stop; ``error``: Ctrl-C."""
    taken: list[str] = []

    def stream(*given: object) -> Iterator[tuple[int, str | None]]:
        yield from arriving
        if error:
            raise KeyboardInterrupt

    def take(one: str) -> str:
        taken.append(one)
        return "enough" if one == last else ""

    monkeypatch.setattr(gather, "stream", stream)
    return taken, gather.gather(lambda: None, len(arriving), 1, take)  # type: ignore[arg-type,return-value]


def test_results_are_taken_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, end = gathered(monkeypatch, [(1, "b"), (2, "c"), (0, "a")])
    assert (taken, end) == (["a", "b", "c"], Gathered())


def test_behind_a_part_that_is_missing_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, end = gathered(monkeypatch, [(0, "a"), (2, "c"), (1, None), (3, "d")])
    assert (taken, end) == (["a"], Gathered(killed=1, behind=("c",)))
    taken, end = gathered(monkeypatch, [(0, "a"), (2, "c")], error=True)
    assert (taken, end) == (["a"], Gathered(interrupted=True, behind=("c",)))


def test_who_takes_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, end = gathered(monkeypatch, [(1, "b"), (0, "a"), (2, "c")], last="a")
    assert (taken, end) == (["a"], Gathered(stopped="enough", behind=("b",)))
