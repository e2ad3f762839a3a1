"""Targets as they were recorded, where the model's assignor cannot be asked under every naming of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from rebalance_verifier.live.conformance.wire.frontier import COORDINATOR, Partitions
from rebalance_verifier.live.conformance.wire.items import WireRecording
from rebalance_verifier.model.consumer.coordinator import TargetMember, targets
from rebalance_verifier.model.group.parts import Parts, union
from rebalance_verifier.model.group.setup import Setup


@dataclass(frozen=True, eq=False)
class IntendedTargets:
    """Assignments of a recording, as ``Setup.targets``; ``setup`` is the group's without it."""

    recording: WireRecording
    setup: Setup
    partitions: Partitions

    @cached_property
    def _plans(self) -> tuple[Mapping[int, tuple[int, ...]], ...]:
        """Return what was assigned at any time, by slot: targets, and what leaders have decided."""
        logged = (item.data["plan"] for item in self.recording.lanes[COORDINATOR] if item.kind == "target")
        found: dict[tuple[tuple[int, tuple[int, ...]], ...], None] = {}
        for plan in chain(logged, self.recording.plans.values()):
            shares: dict[int, list[int]] = {}
            for member, names in plan.items():
                slot = self.recording.members.get(member, -1)
                shares.setdefault(slot, []).append(self.partitions.bits(names))
            found[tuple(sorted((slot, tuple(sorted(several))) for slot, several in shares.items()))] = None
        return tuple(dict(one) for one in found)

    def __call__(self, members: Sequence[TargetMember]) -> Iterator[tuple[Parts, ...]]:
        """Of what was assigned that which the model's assignor is no better than: as even, and with as much
        that stays; one that withholds something is a leader's."""
        [ours] = targets(self.setup, tuple(members))
        slots = sorted({member.slot for member in members})
        for plan in self._plans:
            if sorted(plan) != slots or any(len(several) > 1 for several in plan.values()):
                continue
            theirs = tuple(Parts(plan[member.slot][0]) for member in members)
            whole = union(theirs) == union(ours)
            if not whole or _worth(members, theirs) >= _worth(members, ours):
                yield theirs


def _worth(members: Sequence[TargetMember], parts: Sequence[Parts]) -> tuple[int, int]:
    """Return how good a target is: how even, then how much of it stays."""
    sizes = [some.bit_count() for some in parts]
    kept = sum((some & member.before).bit_count() for member, some in zip(members, parts, strict=True))
    return min(sizes, default=0) - max(sizes, default=0), kept
