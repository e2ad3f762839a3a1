"""The JoinGroups of a real client, in each situation in which it writes other bytes.

The client is alone in its group, so it assigns everything to itself; then its broker calls it back: by a
rebalance, by a refused SyncGroup, by an error that ends its membership.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.clients.leaders.broker import Network
from rebalance_verifier.live.clients.leaders.clients import ADDRESS, GROUP, TOPICS, Leading
from rebalance_verifier.live.clients.leaders.leader import (
    ANSWER_SECONDS,
    GroupMember,
    LeaderClient,
    LeaderLost,
)
from rebalance_verifier.live.clients.leaders.starting import by_command
from rebalance_verifier.model.written import (
    GENERATION,
    NAMED,
    STORY,
    TWICE,
    JoinSituation,
    WrittenBy,
    WrittenJoin,
)

TRIES = 3
"""Times that a client lives through the story, where it joins once more in between."""
_MEMBER = "member"
_TOPICS = dict.fromkeys(NAMED, ((),))
_AS_USED = {"PYTHONHASHSEED": "0", "DEFAULT_VERSION": "1"}
"""Some write topics in the order of a set, which differs from process to process. What sarama writes follows
from its Version, whose default people have."""
_Lived = tuple[dict[JoinSituation, WrittenJoin], dict[JoinSituation, str]]


def joins_of(client: Leading, release: str, assignors: str) -> WrittenBy:
    """Return what a ``release`` of a client writes that is told these ``assignors``.

    Raises ToolError, and OSError where it cannot be started.
    """
    started = client.start(release)
    command = (*started.program, ADDRESS, GROUP, TOPICS, assignors)
    start = by_command({**started.environment, **_AS_USED})

    def live(topics: Sequence[str]) -> LeaderClient:
        return LeaderClient(Network(), start, command, topics, steady=not client.fetches)

    tries = (_lived(partial(live, NAMED), STORY) for _ in range(TRIES))
    found = next((lived for lived in tries if lived), None)
    if found is None:
        raise ToolError(f"{client.name} {release} {assignors} joins once more in between, {TRIES} times")
    joins, missing = found
    first, refused = _lived(partial(live, TWICE), (JoinSituation.FIRST,)) or (
        {},
        {},
    )  # it cannot join in between
    if first:
        joins[JoinSituation.TWICE] = first[JoinSituation.FIRST]
    else:
        missing[JoinSituation.TWICE] = refused[JoinSituation.FIRST]
    return WrittenBy(client=client.name, release=release, assignors=assignors, joins=joins, missing=missing)


def _lived(live: Callable[[], LeaderClient], story: Sequence[JoinSituation]) -> _Lived | None:
    """Return the joins of a client that lives through these situations, and why it does not come to the next
    one; None where it has joined once more in between, as one does that finds other metadata."""
    joins: dict[JoinSituation, WrittenJoin] = {}
    client = live()
    try:
        for situation in story:
            try:
                joins[situation] = _bring(client, situation, joins)
            except LeaderLost as lost:
                return joins, {situation: lost.message}
            if client.generation != GENERATION.get(situation, 0):
                return None
    finally:
        client.close()
    return joins, {}


def _bring(
    client: LeaderClient, situation: JoinSituation, joins: Mapping[JoinSituation, WrittenJoin]
) -> WrittenJoin:
    """Bring the client from the situation before to this one. Raises LeaderLost."""
    if situation is not JoinSituation.FIRST:
        alone = GroupMember(_MEMBER, joins[JoinSituation.FIRST].metadata[client.assignor])
        if situation is JoinSituation.REFUSED:
            client.assign(_TOPICS, NAMED, [alone])
            client.join_again()
        else:
            client.called_back(_TOPICS, alone, GENERATION[situation], situation.value)
    client.await_join(ANSWER_SECONDS)
    return client.join()
