"""Histories of a server-side assignor: what members claim is the target of the group before."""

from __future__ import annotations

from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import DIMENSIONS, generate
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.model.values import Cluster, GroupSubscription, Partitions, TopicPartition
from rebalance_verifier.properties.assignors.calls import Answer, Reply
from rebalance_verifier.properties.assignors.clause import CONSUMER
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.properties.assignors.played import calls_of
from rebalance_verifier.properties.assignors.scenarios import (
    Fault,
    FaultKind,
    Scenario,
    ScenarioEvent,
    ScenarioMember,
    SetTopic,
    Subscribe,
    uniform,
)

T = tuple(TopicPartition("t", index) for index in range(3))


def claims(*events: ScenarioEvent, owned: Partitions = ()) -> tuple[Partitions, ...]:
    """What A, which is given all of t in round 1, is said to hold in each round."""

    def ask(_: object, cluster: Cluster, group: GroupSubscription) -> Reply:
        return Answer({"A": tuple(p for p in cluster.partitions() if p.topic in group["A"].topics)})

    scenario = Scenario(
        protocol=CONSUMER,
        topics=uniform({"t": 3, "u": 1}),
        members=(ScenarioMember(id="A", topics=("t",), owned=owned),),
        rounds=((), *((event,) for event in events)),
    )
    record = play(scenario, ask, None, TABLE, ())
    assert record.found == ()
    return tuple(call.claims["A"].partitions for call in calls_of(record.calls))


def test_they_arrive_with_what_they_were_assigned_and_keep_it():
    assert claims(owned=T[:1])[:2] == (T[:1], T)


def test_what_is_no_longer_subscribed_is_held_until_the_next_target():
    before = claims(Subscribe("A", ("u",)))
    assert before[1:3] == (T, (TopicPartition("u", 0),))


def test_no_answer_can_be_lost_since_the_target_is_the_coordinators():
    for kind in FaultKind:
        assert claims(Fault(kind, "A"))[1] == T


def test_of_a_topic_that_is_made_again_nothing_is_held():
    assert claims(SetTopic("t", ((),)))[1] == ()
    assert claims(SetTopic("t", ((),) * 4))[1] == T
    assert claims(SetTopic("t", None), SetTopic("t", ((),) * 3))[1:3] == (T, ())
    assert claims(owned=(*T, TopicPartition("t", 7)))[0] == T


def test_what_is_drawn_has_no_faults_and_one_holder_for_each_partition():
    names = [dimension.name for dimension in DIMENSIONS]
    for seed in range(30):
        scenario = generate(Seeded(seed), CONSUMER, names)
        assert not any(isinstance(event, Fault) for events in scenario.rounds for event in events)
        held = [p for member in scenario.members for p in member.owned]
        assert len(held) == len(set(held))
