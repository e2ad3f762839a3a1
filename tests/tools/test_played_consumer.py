"""The played member of the consumer protocol: what it sends, what it makes of answers."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.live.code.answers import SimulationResponse

from tools.migration.played import PlayedConsumer

BOTH = frozenset({"t-0", "t-1"})


def answer(error: str = "NONE", **fields: Any) -> SimulationResponse:
    return SimulationResponse(member=0, id=1, api="ConsumerGroupHeartbeat", error=error, **fields)


def member(**fields: Any) -> PlayedConsumer:
    return PlayedConsumer(member_id="m", up=True, **fields)


def stable() -> PlayedConsumer:
    one = member(epoch=3, owned=BOTH, target=BOTH, whole=False)
    assert "partitions" not in one.heartbeat()
    return one


def test_it_joins_with_everything_and_says_what_it_owns_when_that_has_changed():
    one = member()
    assert one.can_send
    assert one.heartbeat() == {
        "member_id": "m", "generation": 0, "instance": None, "topics": ["t"], "rebalance_ms": 60_000,
        "partitions": [],
    }  # fmt: skip
    assert not one.can_send
    one.hear(answer(generation=2, assignment=BOTH))
    assert (one.epoch, one.owned, one.can_reconcile) == (2, frozenset(), True)
    one.reconcile()
    assert one.heartbeat() == {
        "member_id": "m", "generation": 2, "instance": None, "partitions": ["t-0", "t-1"],
    }  # fmt: skip
    one.hear(answer(generation=2))
    assert one.owned == BOTH
    assert "partitions" not in one.heartbeat()


def test_an_answer_that_is_lost_is_asked_for_with_everything_and_the_old_epoch():
    one = stable()
    one.lose()
    again = one.heartbeat()
    assert (again["generation"], again["partitions"], again["topics"]) == (3, ["t-0", "t-1"], ["t"])


@pytest.mark.parametrize("error", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_who_is_fenced_gives_up_what_it_has_and_joins_again(error):
    one = stable()
    one.hear(answer(error))
    assert (one.owned, one.epoch, one.dead, one.can_send) == (frozenset(), 0, "", True)


@pytest.mark.parametrize("error", ["GROUP_ID_NOT_FOUND", "UNKNOWN_SERVER_ERROR", "UNRELEASED_INSTANCE_ID"])
def test_what_is_fatal_is_for_ever(error):
    one = stable()
    one.hear(answer(error))
    assert (one.owned, one.dead, one.can_send) == (frozenset(), error, False)


def test_a_coordinator_that_is_not_there_takes_nothing_away():
    one = stable()
    one.hear(answer("NOT_COORDINATOR"))
    assert (one.owned, one.epoch, one.can_send) == (BOTH, 3, True)


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_who_leaves_owns_nothing_and_hears_nothing_more(instance, epoch):
    one = member(epoch=3, owned=BOTH, target=BOTH, instance=instance)
    assert one.leave()["generation"] == epoch
    one.hear(answer(generation=epoch, assignment=BOTH))
    assert (one.owned, one.can_send, one.can_reconcile) == (frozenset(), False, False)
