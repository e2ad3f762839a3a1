"""What the adapters of Python clients share: imports, the cluster as assignors see it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.model.values import Cluster, Partitions, TopicPartition


def import_assignor(known: dict[str, tuple[str, str]], spec: str, package: str) -> Any:
    """Return the class that ``known`` lists (module, name) for ``spec``; errors as in `load`."""
    if spec not in known:
        raise ValueError(unknown(f"assignor of {package}", spec, sorted(known)))
    module, name = known[spec]
    top = module.partition(".")[0]
    try:
        import_client(top)
    except ModuleNotFoundError as error:
        todo = f": pip install {package}" if error.name == top else f", which this release of {package} needs"
        raise ImportError(f"cannot import {error.name}{todo}") from error
    try:
        return getattr(import_client(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"this release of {package} has no assignor {spec!r}") from error


def import_client(module: str) -> Any:
    """Return a module of a client. Deprecations that it uses while loading are not ours to turn into
    errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(module)


class ClusterView:
    """Part of the clients' ``ClusterMetadata`` that assignors use; as there, every answer is a new set."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.internal_topics: set[str] = set()

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        return set(self._cluster.topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        known = self._cluster.topics.get(topic)
        return None if known is None else set(range(len(known)))

    available_partitions_for_topic = partitions_for_topic


def led(
    leader: Any, cluster: Cluster, members: Any, seen: Callable[[Any], EncodedMembers]
) -> tuple[dict[str, bytes], str | None]:
    """Return what ``leader`` assigns to ``members``, encoded as its coordinator does, and what it changed in
    them.

    ``seen`` says what ``members``, in the shape that this client gives them, are.
    """
    before = seen(members)
    result = leader.assign(ClusterView(cluster), members)
    changed = difference(before, seen(members))
    return {member: assignment.encode() for member, assignment in result.items()}, changed


def partitions(decoded: Any) -> Partitions:
    """Of an assignment, as any of these clients decodes it."""
    return tuple(TopicPartition(*partition) for partition in decoded.partitions())


EncodedMembers = list[tuple[str, bytes]]
"""Member ids and their metadata as bytes, in the order in which the assignor was given them."""


def difference(before: EncodedMembers, after: EncodedMembers) -> str | None:
    """Return the first change that ``assign`` made to its input, in words."""
    ids, ids_after = [member for member, _ in before], [member for member, _ in after]
    if ids != ids_after:
        return f"members were {ids}, became {ids_after}"
    for (member, metadata), (_, metadata_after) in zip(before, after, strict=True):
        if metadata != metadata_after:
            return f"metadata of {member} was {metadata.hex()}, became {metadata_after.hex()}"
    return None
