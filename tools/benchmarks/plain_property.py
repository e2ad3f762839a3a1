"""The Hypothesis test that an author of an assignor would write: what ``plain`` holds our search against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from rebalance_verifier.model.values import Cluster, Subscription, TopicPartition

Assign = Callable[[Cluster, dict[str, Subscription]], Any]


def keeps_the_contract(
    assign: Assign,
    user_data: Callable[..., bytes | None],
    sticky: bool,
    cooperative: bool,
    data: st.DataObject,
) -> None:
    """A group of up to six members rebalances up to four times, members come and go in between."""
    topics = data.draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 8), min_size=1))
    names = st.sampled_from("uvwxyz")
    some_topics = st.lists(st.sampled_from(sorted(topics)), unique=True, min_size=1)
    subscribed = data.draw(st.dictionaries(names, some_topics, min_size=1))
    cluster = Cluster.of(topics)
    owned: dict[str, tuple[TopicPartition, ...]] = {}

    def rebalance(generation: int) -> dict[str, tuple[TopicPartition, ...]]:
        group = {
            member: Subscription(
                topics=tuple(listed),
                user_data=user_data(owned.get(member, ()), generation - 1),
                owned_partitions=owned.get(member, ()) if cooperative else (),
                generation_id=generation - 1,
            )
            for member, listed in subscribed.items()
        }
        return {member: tuple(parts) for member, parts in assign(cluster, group).items()}

    for generation in range(1, data.draw(st.integers(1, 4)) + 1):
        result = rebalance(generation)
        assert result.keys() == subscribed.keys()
        granted = [partition for parts in result.values() for partition in parts]
        assert len(granted) == len(set(granted)), "given twice"
        for member, parts in result.items():
            assert all(p.topic in subscribed[member] and p in cluster for p in parts), "not subscribed"
            taken = {p for other, parts in owned.items() if other != member for p in parts}
            assert not (cooperative and taken & set(parts)), "not revoked yet"
        wanted = {p for p in cluster.partitions() if any(p.topic in listed for listed in subscribed.values())}
        missing = wanted - set(granted)
        assert missing <= ({p for parts in owned.values() for p in parts} if cooperative else set()), (
            "left out"
        )
        sizes = [len(parts) for parts in result.values()]
        if not missing and len(set(map(frozenset, subscribed.values()))) == 1:
            assert max(sizes) - min(sizes) <= 1 or not sticky, "not balanced"
        owned = result
        if not missing and sticky:
            again = rebalance(generation + 1)
            assert {m: set(p) for m, p in again.items()} == {m: set(p) for m, p in owned.items()}, "moved"
        if data.draw(st.booleans()):
            subscribed[data.draw(names)] = data.draw(some_topics)
        elif len(subscribed) > 1:
            gone = data.draw(st.sampled_from(sorted(subscribed)))
            del subscribed[gone]
            owned.pop(gone, None)
