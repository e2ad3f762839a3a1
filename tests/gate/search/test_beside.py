"""`check --with`: whose bytes the members of a check write."""

from __future__ import annotations

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, numbered
from rebalance_verifier.live.clients.leaders.targets import beside
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Scenario,
    ScenarioMember,
    from_json,
    to_json,
)


def test_clients_come_in_turn_in_every_scenario() -> None:
    clients = ("kafka-clients==4.4.0:sticky", "aiokafka==0.14.0:sticky", "sarama==1.61.1:sticky")
    plan = CheckPlan(profile=PROFILES["smoke"], beside=clients)
    plain = CheckPlan(profile=PROFILES["smoke"])
    eager = (RebalanceProtocol.EAGER,)
    for scenario, before in zip(numbered(plan, eager), numbered(plain, eager), strict=True):
        assert isinstance(scenario, Scenario)
        joined = [e.member for events in scenario.rounds for e in events if isinstance(e, AddMember)]
        every = [*scenario.members, *joined]
        assert [m.writes for m in every] == [clients[n % 3] for n in range(len(every))]
        assert scenario.size == before.size
        assert from_json(to_json(scenario)) == scenario


@pytest.mark.parametrize(
    ("spec", "others", "complaint"),
    [
        ("client:aiokafka:roundrobin", ["client:kafkajs"], "calls the assignor 'RoundRobinAssigner'"),
        ("client:aiokafka:sticky", ["aiokafka"], "'aiokafka' names no client"),
        ("client:aiokafka:sticky", ["client:aiokafak"], "no client is called 'aiokafak'"),
        ("client:aiokafka:sticky", ["client:kafka-go"], "no assignor of kafka-go is called 'sticky'"),
        ("client:aiokafka:sticky", ["client:sarama==1.2.3"], "no release of sarama that was observed"),
        ("kafka-python:sticky", ["client:sarama"], "kafka-python:sticky is no client"),
    ],
)
def test_what_cannot_be_in_one_group_is_refused(spec: str, others: list[str], complaint: str) -> None:
    with pytest.raises(ToolError, match=complaint):
        beside(spec, others)


def test_releases_are_those_that_were_observed() -> None:
    assert beside("client:kafkajs:roundrobin", ["client:kafkajs==2.2.1"]) == (
        "kafkajs==2.2.4:roundrobin",
        "kafkajs==2.2.1:roundrobin",
    )
    found = beside("client:kafka-python==3.0.4:sticky", ["client:sarama", "client:aiokafka:sticky"])
    assert found == ("kafka-python==3.0.12:sticky", "sarama==1.61.1:sticky", "aiokafka==0.14.0:sticky")
    assert beside("wire -- ./mine {address}", ["client:sarama:range"]) == ("", "sarama==1.61.1:range")


def test_a_scenario_names_clients_that_were_observed() -> None:
    member = ScenarioMember(id="A", topics=("t",), writes="kafka-go==0.4.51:range")
    scenario = Scenario(protocol=RebalanceProtocol.EAGER, topics={"t": ((),)}, members=(member,))
    data = to_json(scenario)
    assert from_json(data) == scenario
    data["members"][0]["writes"] = "kafka-go==0.0.1:range"
    with pytest.raises(ValueError, match=r"'A': nobody observed what 'kafka-go==0\.0\.1:range' writes"):
        from_json(data)
