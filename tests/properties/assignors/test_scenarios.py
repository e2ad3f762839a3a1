"""Scenarios as data: their JSON, its error messages, their size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from rebalance_verifier.gate.scenarios.generator import BY_NAME, SMALL
from rebalance_verifier.gate.scenarios.strategies import histories
from rebalance_verifier.model.values import NO_GENERATION, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    from_json,
    to_json,
    uniform,
)

COOPERATIVE = RebalanceProtocol.COOPERATIVE

FULL = Scenario(
    protocol=COOPERATIVE,
    topics={"my-topic": (("r1", "r2"), ()), "u": ((), (), ()), "empty": ()},
    members=(
        ScenarioMember(id="A", topics=("my-topic", "u")),
        ScenarioMember(
            id="B",
            topics=("u",),
            owned=(TopicPartition("my-topic", 0), TopicPartition("my-topic", 0)),
            generation=7,
            version=1,
            rack="r1",
            instance="i-B",
            eager=True,
            user_data=UserData.STICKY_V1,
        ),
    ),
    rounds=(
        (AddMember(ScenarioMember(id="C", topics=(), generation=0)), Leave("A")),
        (),
        (
            Subscribe("B", ("u", "my-topic")),
            SetTopic("u", None),
            SetTopic("v", ((), ())),
            SetTopic("w", (("r3",),)),
            Fault(FaultKind.LOST_JOIN, "B"),
        ),
    ),
    dimensions=("claims", "racks"),
)


def test_json_is_what_a_person_would_write():
    data = to_json(FULL)
    assert data["topics"] == {"my-topic": [["r1", "r2"], []], "u": 3, "empty": 0}
    assert data["members"][0] == {"id": "A", "topics": ["my-topic", "u"]}
    assert data["members"][1] == {
        "id": "B",
        "topics": ["u"],
        "owned": ["my-topic-0", "my-topic-0"],
        "generation": 7,
        "version": 1,
        "rack": "r1",
        "instance": "i-B",
        "eager": True,
        "user_data": "sticky-v1",
    }
    assert data["rounds"] == [
        [{"join": {"id": "C", "topics": [], "generation": 0}}, {"leave": "A"}],
        [],
        [
            {"subscribe": "B", "topics": ["u", "my-topic"]},
            {"topic": "u", "partitions": None},
            {"topic": "v", "partitions": 2},
            {"topic": "w", "partitions": [["r3"]]},
            {"fault": "lost-join", "member": "B"},
        ],
    ]


def round_trip(scenario: Scenario) -> Scenario:
    return from_json(json.loads(json.dumps(to_json(scenario))))


def test_round_trip_of_everything():
    again = round_trip(FULL)
    assert again == FULL
    assert again.dimensions == FULL.dimensions, "not compared"
    assert list(again.topics) == list(FULL.topics), "nor is this order, which is an input"


@given(histories())
@settings(max_examples=60, deadline=None)
def test_round_trip_of_cooperative_scenarios(scenario: Scenario):
    again = round_trip(scenario)
    assert again == scenario
    assert list(again.topics) == list(scenario.topics)
    assert again.dimensions == scenario.dimensions


@given(histories(RebalanceProtocol.EAGER, tuple(BY_NAME), SMALL))
@settings(max_examples=20, deadline=None)
def test_round_trip_of_eager_scenarios_along_all_dimensions(scenario: Scenario):
    assert round_trip(scenario) == scenario


def test_only_protocol_topics_and_members_are_required():
    scenario = from_json({"protocol": "eager", "topics": {"t": 2}, "members": [{"id": "A", "topics": ["t"]}]})
    assert scenario == Scenario(
        protocol=RebalanceProtocol.EAGER,
        topics=uniform({"t": 2}),
        members=(ScenarioMember(id="A", topics=("t",)),),
    )
    assert scenario.members[0].generation == NO_GENERATION
    assert scenario.rounds == ((),)


def edited(**changes: Any) -> dict[str, Any]:
    return {**to_json(FULL), **changes}


def member(**changes: Any) -> dict[str, Any]:
    return edited(members=[{"id": "A", "topics": ["u"], **changes}])


def event(**fields: Any) -> dict[str, Any]:
    return edited(rounds=[[fields]])


def without(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (without(to_json(FULL), "topics"), "field 'topics' is missing"),
        (without(to_json(FULL), "members"), "field 'members' is missing"),
        (without(to_json(FULL), "protocol"), "field 'protocol' is missing"),
        (edited(protocol="lazy"), "field 'protocol' is 'lazy'; known: eager, cooperative"),
        (edited(topics=["t"]), "not of the expected form"),
        (edited(topics={"t": -1}), "-1 is not a number of partitions"),
        (edited(topics={"t": None}), "not of the expected form"),
        (edited(members=[{"topics": ["t"]}]), "'id'"),
        (edited(members=[{"id": "A"}]), "field 'topics' is missing"),
        (edited(members=[{"id": "A", "topics": []}] * 2), "member ids are not unique: A, A"),
        (member(colour="red"), "member 'A': unknown field 'colour'"),
        (member(topics="orders"), "'orders' is not a list of topics"),
        (member(owned=["orders"]), "'orders' is not a partition such as 'orders-0'"),
        (member(owned=["orders-x"]), "'orders-x' is not a partition"),
        (member(owned=[3]), "not of the expected form"),
        (
            member(user_data="mine"),
            "field 'user_data' is 'mine'; known: own, none, empty, sticky-v0, sticky-v1, truncated",
        ),
        (member(generation="5"), "member 'A': field 'generation' cannot be '5'"),
        (member(generation=True), "member 'A': field 'generation' cannot be True"),
        (member(version=4), "member 'A': field 'version' is 0 to 3"),
        (member(rack=1), "member 'A': field 'rack' cannot be 1"),
        (member(eager="no"), "member 'A': field 'eager' cannot be 'no'"),
        (member(id=1), "field 'id' cannot be 1"),
        (event(explode="A"), "unknown event {'explode': 'A'}; known: join, leave, subscribe, topic, fault"),
        (event(fault="tired", member="A"), "field 'fault' is 'tired'; known: silent, ghost"),
        (event(fault="silent"), "field 'member' is missing"),
        (event(subscribe="A"), "field 'topics' is missing"),
        (event(subscribe="A", topics="t"), "'t' is not a list of topics"),
        (event(topic="t"), "field 'partitions' is missing"),
        (event(join={"id": "A", "topics": ["t"], "x": 1}), "unknown field 'x'"),
        ([], "not of the expected form"),
    ],
)
def test_what_is_wrong_is_named(data: Any, says: str):
    with pytest.raises(ValueError, match="scenario") as error:
        from_json(data)
    assert says in str(error.value)


def test_size_counts_members_partitions_claims_events():
    assert FULL.size == (3, 2 + 3 + 0 + 2 + 1, 2, 3 + 2 + 5)
    assert Scenario(protocol=COOPERATIVE, topics={}, members=(), rounds=()).size == (0, 0, 0, 0)
    assert Scenario(protocol=COOPERATIVE, topics={}, members=()).size == (0, 0, 0, 1)


def test_uniform_knows_no_racks():
    assert uniform({"t": 2, "u": 0}) == {"t": ((), ()), "u": ()}
