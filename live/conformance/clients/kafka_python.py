"""kafka-python."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance.live.conformance.clients.every import TAKEN_BACK
from rebalance.live.conformance.clients.traits import ClientTraits, Deviation, Diagnosis, FindingContext
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import works
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import Member, MemberState

KAFKA_PYTHON = "kafka-python"


def _asks_again(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state is MemberState.STABLE and not member.rejoin:
        yield Outcome((member._replace(rejoin=True),))


def _abandons(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state in (MemberState.PREPARING, MemberState.COMPLETING):
        yield Outcome((member._replace(stuck=True),))


def _takes_up(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if member.stuck:
        yield Outcome((member._replace(stuck=False, rejoin=True),))


def _somebody_went(seen: FindingContext) -> bool:
    gone = any(e["event"] == "closed" and e["at"] < seen.finding["began"] for e in seen.events)
    return gone or bool(seen.away)


def _unsubscribed_leader(seen: FindingContext) -> bool:
    """A live member does not subscribe to the topic that has no owner."""
    topic = str(seen.finding["partition"]).rpartition("-")[0]
    subscriptions = [seen.before(name, "subscribed") for name in seen.finding["consumers"]]
    return any(events and topic not in events[-1].get("topics", ()) for events in subscriptions)


def _abandoned(seen: FindingContext) -> bool:
    """A member that runs sent JoinGroup, or was answered, and was not heard of again."""
    for name in seen.finding["consumers"]:
        moves = [e["event"] for e in seen.before(name, "joining", "joined", "synced", "reset", "closed")]
        if moves and moves[-1] in ("joining", "joined", "reset"):
            return True
    return False


def _one_round(seen: FindingContext) -> bool:
    """The owner gives the partition away in the generation in which the other one is given it."""
    after = seen.finding["generations"][1]
    return after is not None and seen.finding["detail"].endswith(f"revoked in generation {after}")


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id="abandons its join", client=KAFKA_PYTHON, benign=False,
        sentence="a poll() that times out before the group has answered never takes the answer: the member "
        "sends no heartbeat, is removed, goes on owning what it had, and says revoked when it is closed",
        evidence="its log ends with '(Re-)joining' or 'Successfully joined'; coordinator/base.py, "
        "join_group_async",
        parts=("member",), run=_abandons,
        silent=1.0,
    ),
    Deviation(
        id="takes its join up again", client=KAFKA_PYTHON, benign=True,
        sentence="after that, subscribe() or another rebalance makes it join again",
        evidence="its log: '(Re-)joining' some time after the last",
        parts=("member",), run=_takes_up,
    ),
    Deviation(
        id="joins once more", client=KAFKA_PYTHON, benign=False,
        sentence="an answer to an offset commit of the last generation (REBALANCE_IN_PROGRESS) that comes "
        "after the rebalance begins another one",
        evidence="coordinator/consumer.py, _handle_offset_commit_response calls request_rejoin() whatever "
        "generation the commit was of; its log: 'Pre-rebalance offset commit failed', then '(Re-)joining' at "
        "once",
        parts=("member",), run=_asks_again,
    ),
)  # fmt: skip

DIAGNOSES: tuple[Diagnosis, ...] = (
    Diagnosis(
        id="a stale claim wins",
        sentence="kafka-python: its leader grants a partition in the round in which the owner has yet to "
        "give it away (`rebalance check kafka-python:cooperative-sticky --clause kip792/claim/1`)",
        evidence="owner and heir are in one generation; the heir's assigned comes before the owner's revoked",
        checks=("owned-twice", "granted-before-revoked"), fits=_one_round,
    ),
    TAKEN_BACK,
    Diagnosis(
        id="given to a member that is gone", on_mock=True,
        sentence="The mock cluster keeps a member that was killed or stopped, or abandoned its join, for "
        "longer than its session; the leader gives it partitions, and the group looks at rest",
        evidence="clients/*.log of the leader: its assignment leaves these partitions out; a consumer was "
        "closed, killed or stopped before; on Apache Kafka it does not happen",
        checks=("stranded",), fits=_somebody_went,
    ),
    Diagnosis(
        id="leader knows its own topics only",
        sentence="kafka-python: a leader that has just changed its subscription decides with the metadata of "
        "its own topics: partitions of topics that only others subscribe to are given to nobody, until "
        "something else begins a rebalance",
        evidence="clients/*.log of the leader: 'No partition metadata for topic ...'; it does not subscribe "
        "to the topic of the partitions that have no owner",
        checks=("stranded",), fits=_unsubscribed_leader,
    ),
    Diagnosis(
        id="abandons its join",
        sentence="kafka-python: a poll() that times out before the group has answered never takes the "
        "answer: the member sends no heartbeat, is removed, and goes on owning what it had",
        evidence="the member's last event is joining or joined; "
        "examples/recordings/kafka-python-abandons-its-join.json",
        checks=("never-settles", "stranded", "granted-before-revoked"), fits=_abandoned,
    ),
)  # fmt: skip

TRAITS = ClientTraits(
    name=KAFKA_PYTHON,
    recorder="kafka-python",
    reports="kafka-python",
    profile="kafka-python",
    module="kafka",
    distribution="kafka-python",
    cooperative=True,
    refuses_mixed="Mixing EAGER and COOPERATIVE assignors in a single consumer is not supported",
    calls_before_first_join=frozenset({"revoked"}),
    # A join that was answered between two polls is thrown away, and the next poll begins another one
    # (3.0.12, coordinator/base.py, where ``_join_task.is_done`` is asked).
    loses=("sync lost", "disconnect"),
    lenient_leader=True,  # `rebalance check kafka-python:...`
    closes_midway=True,
    deviations=DEVIATIONS,
    diagnoses=DIAGNOSES,
)
