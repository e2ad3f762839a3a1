"""aiokafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebalance.live.conformance.clients.every import TAKEN_BACK, prepares
from rebalance.live.conformance.clients.traits import NEXT, ClientTraits, Deviation, Diagnosis
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import works
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import JoinOk, Member, MemberState, SyncOk, Topics, Wire

AIOKAFKA = "aiokafka"


def _notices(me: MemberContext, member: Member, topics: Any) -> Iterator[Outcome]:
    """``subscribe()``, also to the same topics: what was asked for before does not count any more."""
    if topics is not None and works(member):
        yield Outcome((member._replace(topics=topics, joined_topics=Topics(0)), None))


def _discards(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """An answer that comes after ``subscribe()``; of the JoinGroup not even the member id is kept."""
    if not works(member) or member.topics == member.joined_topics:
        return
    if isinstance(wire, JoinOk) and member.state is MemberState.PREPARING:
        yield Outcome((member._replace(state=MemberState.UNJOINED), None))
    elif isinstance(wire, SyncOk) and member.state is MemberState.COMPLETING:
        yield Outcome((member._replace(state=MemberState.STABLE, rejoin=True, prepare=False), None))


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id="takes its subscription", client=AIOKAFKA, benign=True,
        sentence="subscribe() is noticed by the task that joins some milliseconds later",
        evidence="group_coordinator.py, __coordination_routine is a task of its own",
        parts=("member", NEXT), run=_notices,
        after_subscribe=0.05,
    ),
    Deviation(
        id="prepares and waits", client=AIOKAFKA, benign=True,
        sentence="calls on_partitions_revoked some time before it sends JoinGroup: not before it is "
        "polled again",
        evidence="group_coordinator.py, ensure_active_group: returns after _on_join_prepare while the "
        "fetcher is idle for longer than max_poll_interval_ms",
        parts=("member", "wire"), run=prepares,
        timed="pause",
    ),
    Deviation(
        id="discards an answer", client=AIOKAFKA, benign=True,
        sentence="subscribe() during a rebalance throws the answer of the group away, and the member "
        "joins again",
        evidence="group_coordinator.py, perform_group_join and _do_rejoin_group ask for subscription.active",
        parts=("member", "wire"), run=_discards,
    ),
)  # fmt: skip

DIAGNOSES: tuple[Diagnosis, ...] = (
    TAKEN_BACK,
    Diagnosis(
        id="not polled and never leaves: aiokafka",
        sentence="aiokafka: max_poll_interval_ms is measured only while fetched records wait to be taken: a "
        "consumer that is not polled and has nothing to read owns its partitions for ever",
        evidence="consumer/subscription_state.py, fetcher_idle_time is 0 while a fetch is under way; the "
        "consumer without polls neither leaves nor is removed",
        checks=("stranded",), fits=lambda seen: seen.in_group_without_polls,
    ),
)  # fmt: skip

TRAITS = ClientTraits(
    name=AIOKAFKA,
    recorder="aiokafka",
    reports="aiokafka",
    profile="aiokafka",
    module="aiokafka",
    distribution="aiokafka",
    logs_join_once=True,
    calls_before_first_join=frozenset({"revoked"}),
    subscribes_again=True,
    joins_unpolled=True,
    deviations=DEVIATIONS,
    diagnoses=DIAGNOSES,
)
