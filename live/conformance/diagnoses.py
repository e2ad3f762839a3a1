"""Why a recording breaks a check of `rebalance record`: reviewed causes, each with what shows it.

The one place for them. A finding that no rule fits has no cause yet, and is a question for people. What
`rebalance conform` has to say of a client is in ``live/conformance/deviations.py``, by the same rule: a
reason for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Blame = Literal["client", "mock cluster"]


@dataclass(frozen=True, kw_only=True)
class FindingContext:
    """A finding in its recording: the finding as ``report.json`` has it, the events and ``run.json``."""

    client: str
    """As in ``--clients``, without the version."""
    cluster: str
    finding: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    run: Mapping[str, Any]

    def before(self, consumer: str, *kinds: str) -> list[Mapping[str, Any]]:
        """Events of a consumer up to the finding, the last ones last; of ``kinds``, if any are named."""
        began = self.finding["began"]
        return [
            event
            for event in self.events
            if event.get("consumer") == consumer
            and event["at"] <= began
            and (not kinds or event["event"] in kinds)
        ]

    @property
    def away(self) -> list[str]:
        """Consumers that were kept from polling, or stopped, when the group was to be at rest."""
        rest = next((r for r in self.run["rests"] if r["at"] == self.finding["began"]), None)
        done = self.run["steps"][: rest["number"]] if rest else []
        last = {step["member"]: step["do"] for step in done if step.get("member") and step["do"] in _LIFE}
        return sorted(name for name, do in last.items() if do in ("pause", "stop"))


_LIFE = ("start", "close", "kill", "pause", "resume", "stop", "cont")


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """``fits`` says whether it is the cause of a finding, ``evidence`` what shows it."""

    id: str
    blame: Blame
    sentence: str
    evidence: str
    fits: Callable[[FindingContext], bool]


def _checked(seen: FindingContext, client: str, *checks: str) -> bool:
    return seen.client == client and seen.finding["check"] in checks


def _lost_and_silent(seen: FindingContext) -> bool:
    """A live member was told that it lost partitions after it subscribed to others, and did nothing since."""
    for name in seen.finding["consumers"]:
        moves = [e for e in seen.before(name) if e["event"] not in ("synced", "assigned", "reset")][-2:]
        if [e["event"] for e in moves] == ["subscribed", "lost"]:
            return True
    return False


def _awaits_callback(seen: FindingContext) -> bool:
    """A consumer without polls is in the group: it synced last, or owns, and has not left."""
    return any(not _left(seen, name) for name in seen.away)


def _left(seen: FindingContext, name: str) -> bool:
    return any(e["event"] == "leaving" for e in seen.before(name)[-4:])


def _left_owning(seen: FindingContext) -> bool:
    """The earlier owner left the group by itself while it owned, and was not told that it lost anything."""
    earlier = seen.finding["consumers"][0]
    moves = [e["event"] for e in seen.before(earlier, "leaving", "lost", "assigned", "reset")]
    return bool(moves) and moves[-1] in ("leaving", "reset")


def _stopped(seen: FindingContext) -> bool:
    """The earlier owner was stopped at some time, and has joined since with the member id from before."""
    earlier = seen.finding["consumers"][0]
    stopped = any(step["do"] == "stop" and step.get("member") == earlier for step in seen.run["steps"])
    known = [e.get("member") for e in seen.before(earlier, "assigned")][-1:]
    later = [
        e.get("member")
        for e in seen.events
        if e.get("consumer") == earlier and e["event"] == "joined" and e["at"] > seen.finding["began"]
    ]
    return stopped and known == later[:1]


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


DIAGNOSES: tuple[Diagnosis, ...] = (
    Diagnosis(
        id="loses what it unsubscribed and does not rejoin", blame="client",
        sentence="librdkafka: subscribe() to a topic that it does not know yet: what it owned is lost, and "
        "the member stays in the group at rest, owning nothing, until something else begins a rebalance; "
        "neither the old nor the new topic's partitions have an owner",
        evidence="clients/*.log: 'current assignment of N partition(s) lost: N subscribed topic(s) no longer "
        "exist', 'wait-incr-unassign-to-complete -> steady' with 'rebalance rejoin=false', then heartbeats "
        "only",
        fits=lambda seen: _checked(seen, "confluent", "stranded") and _lost_and_silent(seen),
    ),
    Diagnosis(
        id="keeps what it left", blame="client",
        sentence="librdkafka: max.poll.interval.ms passes while a rebalance waits for the application's "
        "callback: it leaves the group, tells the application nothing, and joins with the partitions that "
        "others have been given",
        evidence="clients/*.log: 'leaving group', 'rebalance (COOPERATIVE) already in progress, skipping ... "
        "max.poll.interval.ms exceeded'",
        fits=lambda seen: _checked(seen, "confluent", "granted-before-revoked", "owned-twice")
        and _left_owning(seen),
    ),
    Diagnosis(
        id="a stale claim wins", blame="client",
        sentence="kafka-python: its leader grants a partition in the round in which the owner has yet to "
        "give it away (`rebalance check kafka-python:cooperative-sticky --clause kip792/claim/1`)",
        evidence="owner and heir are in one generation; the heir's assigned comes before the owner's revoked",
        fits=lambda seen: _checked(seen, "kafka-python", "owned-twice", "granted-before-revoked")
        and _one_round(seen),
    ),
    Diagnosis(
        id="taken back under its old id", blame="mock cluster",
        sentence="A member that is stopped for longer than its session, and goes on, is taken back by the "
        "mock cluster under its old member id: it does not learn that its partitions were given away",
        evidence="its joined after the stop has the member id from before; no reset, no lost",
        fits=lambda seen: seen.cluster == "mock" and seen.finding["check"] == "granted-before-revoked"
        and _stopped(seen),
    ),
    Diagnosis(
        id="not polled and never leaves: librdkafka", blame="client",
        sentence="librdkafka: a consumer that is not polled while its first callback waits is not put out of "
        "the group by max.poll.interval.ms: it goes on sending heartbeats",
        evidence="clients/*.log of the consumer without polls: heartbeats, join-state wait-assign-call, "
        "no MAXPOLL",
        fits=lambda seen: _checked(seen, "confluent", "stranded") and _awaits_callback(seen),
    ),
    Diagnosis(
        id="not polled and never leaves: aiokafka", blame="client",
        sentence="aiokafka: max_poll_interval_ms is measured only while fetched records wait to be taken: a "
        "consumer that is not polled and has nothing to read owns its partitions for ever",
        evidence="consumer/subscription_state.py, fetcher_idle_time is 0 while a fetch is under way; the "
        "consumer without polls neither leaves nor is removed",
        fits=lambda seen: _checked(seen, "aiokafka", "stranded") and _awaits_callback(seen),
    ),
    Diagnosis(
        id="given to a member that is gone", blame="mock cluster",
        sentence="The mock cluster keeps a member that was killed or stopped, or abandoned its join, for "
        "longer than its session; the leader gives it partitions, and the group looks at rest",
        evidence="clients/*.log of the leader: its assignment leaves these partitions out; a consumer was "
        "closed, killed or stopped before; on Apache Kafka it does not happen",
        fits=lambda seen: seen.cluster == "mock" and _checked(seen, "kafka-python", "stranded")
        and _somebody_went(seen),
    ),
    Diagnosis(
        id="leader knows its own topics only", blame="client",
        sentence="kafka-python: a leader that has just changed its subscription decides with the metadata of "
        "its own topics: partitions of topics that only others subscribe to are given to nobody, until "
        "something else begins a rebalance",
        evidence="clients/*.log of the leader: 'No partition metadata for topic ...'; it does not subscribe "
        "to the topic of the partitions that have no owner",
        fits=lambda seen: _checked(seen, "kafka-python", "stranded") and _unsubscribed_leader(seen),
    ),
    Diagnosis(
        id="abandons its join", blame="client",
        sentence="kafka-python: a poll() that times out before the group has answered never takes the "
        "answer: the member sends no heartbeat, is removed, and goes on owning what it had",
        evidence="the member's last event is joining or joined; "
        "examples/recordings/kafka-python-abandons-its-join.json",
        fits=lambda seen: (
            _checked(seen, "kafka-python", "never-settles", "stranded", "granted-before-revoked")
            and _abandoned(seen)
        ),
    ),
)  # fmt: skip
"""The first that fits counts."""


def diagnosis(seen: FindingContext) -> Diagnosis | None:
    """The reviewed cause of a finding, if there is one."""
    return next((one for one in DIAGNOSES if one.fits(seen)), None)
