"""The assignors on the coordinator: complete, exclusive, balanced, and no more moves than that takes."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS, Subscriber, ranges, uniform
from rebalance_verifier.model.group.parts import Parts, each, union


@st.composite
def homogeneous(draw: st.DrawFn) -> list[Subscriber]:
    """Members of one subscription, and an exclusive target before."""
    count, size = draw(st.integers(1, 5)), draw(st.integers(0, 8))
    owners = draw(st.lists(st.integers(-1, count - 1), min_size=size, max_size=size))
    every = Parts((1 << size) - 1)
    return [
        Subscriber(every, union([1 << p for p, owner in enumerate(owners) if owner == m]))
        for m in range(count)
    ]


@given(homogeneous())
def test_each_partition_goes_to_one_member(members: list[Subscriber]) -> None:
    every = members[0].subscribed
    for assign in SERVER_ASSIGNORS.values():
        parts = assign(members, each(every), ())
        assert union(parts) == every
        assert sum(some.bit_count() for some in parts) == every.bit_count()
        sizes = [some.bit_count() for some in parts]
        assert max(sizes) - min(sizes) <= 1


@given(homogeneous())
def test_uniform_moves_no_more_than_it_must(members: list[Subscriber]) -> None:
    """As many partitions stay as in the best even assignment of all; what is even stays as it is."""
    every, count = members[0].subscribed, len(members)
    after = zip(members, uniform(members, each(every)), strict=True)
    kept = sum((member.before & some).bit_count() for member, some in after)
    quota, extra = divmod(every.bit_count(), count)
    most = max(
        sum(min(m.before.bit_count(), quota + (i in lucky)) for i, m in enumerate(members))
        for lucky in {frozenset(order[:extra]) for order in permutations(range(count))}
    )
    assert kept == most


def test_uniform_first_come_first_served_is_not_sticky() -> None:
    """KAFKA-18688: the first member in order gets the partition too many, whoever had it."""
    every = Parts(0b111)
    members = [Subscriber(every, Parts(0b001)), Subscriber(every, Parts(0b110))]
    assert uniform(members, each(every)) == (0b001, 0b110)
    assert uniform(members, each(every), ["extra_by_iteration_order"]) == (0b101, 0b010)


def test_uniform_of_unequal_subscriptions_evens_out() -> None:
    members = [Subscriber(Parts(0b1111), Parts(0b1111)), Subscriber(Parts(0b0011), Parts(0))]
    assert uniform(members, [0, 1, 2, 3]) == (0b1100, 0b0011)


def test_range_goes_by_order_only() -> None:
    members = [Subscriber(Parts(0b111), Parts(0b100)), Subscriber(Parts(0b111), Parts(0b011))]
    assert ranges(members, [0, 1, 2]) == (0b011, 0b100)
