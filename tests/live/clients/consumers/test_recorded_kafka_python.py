"""What a recorded consumer of kafka-python writes of its coordinator, without a broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from rebalance_verifier.live.clients.consumers.clients.kafka_python import KafkaPython


class Coordinator:
    """What of kafka-python's is called through."""

    def __init__(self) -> None:
        self._generation = SimpleNamespace(generation_id=-1)
        self.calls: list[object] = []

    async def _on_join_complete_async(self, *given: object) -> str:
        self.calls.append(given)
        return "done"

    def reset_generation(self, *given: object, **named: object) -> str:
        self.calls.append((given, named))
        return "reset"


@pytest.fixture
def hooked() -> tuple[Coordinator, list[str]]:
    written: list[str] = []
    client = object.__new__(KafkaPython)
    client._recorder = SimpleNamespace(write=written.append)  # type: ignore[assignment]
    client._hook(coordinator := Coordinator())
    return coordinator, written


@pytest.mark.parametrize(("generation", "written"), [(-1, []), (0, ["reset"]), (1, ["reset"])])
def test_a_membership_that_there_was_is_reset(
    hooked: tuple[Coordinator, list[str]], generation: int, written: list[str]
) -> None:
    """Generations count from 0; -1 is none."""
    coordinator, seen = hooked
    coordinator._generation.generation_id = generation
    assert coordinator.reset_generation("why", member="c") == "reset"
    assert coordinator.calls == [(("why",), {"member": "c"})]
    assert seen == written


def test_who_has_its_assignment_is_synced(hooked: tuple[Coordinator, list[str]]) -> None:
    coordinator, seen = hooked
    assert asyncio.run(coordinator._on_join_complete_async(7, "m", "range", b"")) == "done"
    assert (coordinator.calls, seen) == ([(7, "m", "range", b"")], ["synced"])
