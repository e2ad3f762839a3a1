"""Owners are counted from what members have and are given, whatever the code of a release answers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tools.streams.upgrade import Group, PeerError, Peers, upgraded


class Scripted(Peers):
    """Members that keep what they own or not, and a leader that gives everything to whoever is last."""

    def __init__(self, cooperative: bool, raises: str = "") -> None:
        self.cooperative, self.raises = cooperative, raises

    def ask(self, *parts: str) -> list[str]:
        kind, _, *rest = parts
        if kind == "lead":
            if self.raises:
                raise PeerError(self.raises)
            members = rest[1::3]
            everything = ",".join(map(str, range(int(rest[0]))))
            return [text for name in members for text in (name, everything * (name == members[-1]), "")]
        return ["true" if kind == "new" and self.cooperative else "false"]


@pytest.mark.parametrize(("cooperative", "breaks"), [(True, True), (False, False)])
def test_a_partition_that_is_taken_from_one_that_keeps_it_has_two_owners(cooperative: bool, breaks: bool):
    group = Group(partitions=2, draw=random.Random(0))
    peers: Any = Scripted(cooperative)
    group.start("a", peers, "")
    assert group.settle()
    group.start("b", peers, "")
    group.settle()
    assert bool(group.owned_twice) is breaks
    assert [sorted(member.owned) for member in group.members.values()] == [[], [0, 1]]


def test_whoever_leads_does_so_as_long_as_it_is_there():
    peers: Any = Scripted(cooperative=False)
    group = upgraded(peers, peers, ("2.3", ""), 3, random.Random(0))
    leaders = [line.split()[0] for line in group.log if " leads: " in line]
    assert len(set(leaders)) < len(leaders) / 2
    assert not group.owned_twice


def test_an_assignor_that_raises_ends_the_group():
    peers: Any = Scripted(cooperative=False, raises="no version")
    with pytest.raises(PeerError, match="no version"):
        upgraded(peers, peers, ("",), 2, random.Random(0))
