"""Scenarios whose topics have the names of a user: an assignor that is bound to them can be judged."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.base.processes.lines import from_line
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.cli.main import main
from rebalance_verifier.gate.scenarios.topics import called, keeps, names_given, refuse_names
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile, numbered
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.hosts.task_messages import decode_application, tasks_request
from rebalance_verifier.model.tasks import Application
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.played import from_json, to_json
from rebalance_verifier.properties.assignors.scenarios import Scenario, Subscribe, topics_named
from rebalance_verifier.properties.assignors.task_calls import TaskQuestion
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario

NAMES = ("prio-high", "prio-low")
TINY = SearchProfile(name="tiny", each=3, mixed=20, large=1, crowd=140, shrink=200)
CLASSIC_AND_SHARE = (RebalanceProtocol.EAGER, RebalanceProtocol.CONSUMER, RebalanceProtocol.SHARE)


class Bound:
    """Right, and knows no topics but its own."""

    protocols = ("eager",)
    promises: tuple[str, ...] = ()

    def assign(self, cluster: Any, group: Any) -> Any:
        mentioned = {*cluster.topics, *(topic for member in group.values() for topic in member.topics)}
        mentioned |= {owned.topic for member in group.values() for owned in member.owned_partitions}
        if foreign := sorted(mentioned - {*NAMES}):
            raise KeyError(foreign[0])
        given: dict[str, list[tuple[str, int]]] = {member: [] for member in group}
        for topic, partitions in cluster.topics.items():
            readers = [member for member, one in group.items() if topic in one.topics]
            for index in range(len(partitions) if readers else 0):
                given[readers[index % len(readers)]].append((topic, index))
        return given


class Greedy(Bound):
    """Gives what is urgent to everybody who wants it."""

    def assign(self, cluster: Any, group: Any) -> Any:
        given = super().assign(cluster, group)
        for member, one in group.items():
            if NAMES[0] in one.topics and cluster.topics.get(NAMES[0]):
                given[member] = sorted({*given[member], (NAMES[0], 0)})
        return given


def judged(target: Any, *names: str) -> Any:
    session = InProcess(target)
    return check(CheckPlan(profile=TINY, topics=names), session, describe("bound", session.hello))


def test_an_assignor_that_is_bound_to_names_is_judged_by_them():
    broken = [row.id for row in judged(Bound()).clauses if row.status is Status.VIOLATED]
    assert broken == ["assign/4-eager"]
    assert judged(Bound(), *NAMES).verdict is Verdict.CONFORMANT


def test_a_counterexample_has_these_names():
    [found, *others] = [row.finding for row in judged(Greedy(), *NAMES).clauses if row.finding]
    assert found.clause.id == "assign/1"
    assert list(found.scenario.topics) == [NAMES[0]]
    assert found.scenario.size[:2] == (2, 1)
    assert {topic for one in others for topic in one.scenario.topics} <= {*NAMES}


@pytest.mark.parametrize("names", [NAMES, ("orders",)])
@pytest.mark.parametrize("protocol", CLASSIC_AND_SHARE)
def test_no_scenario_has_another_name(protocol: RebalanceProtocol, names: tuple[str, ...]):
    plan = CheckPlan(profile=TINY, topics=names)
    drawn = [one for one in numbered(plan, (protocol,)) if isinstance(one, Scenario)]
    assert drawn
    assert {topic for one in drawn for topic in topics_named(one)} == {*names}
    events = [event for one in drawn for events in one.rounds for event in events]
    assert {topic for e in events if isinstance(e, Subscribe) for topic in e.topics} <= {*names}
    assert {first for one in drawn for first in [*one.topics][:1]} == {*names}  # each comes first somewhere


def test_a_task_reads_a_topic_of_these_names():
    tasks = RebalanceProtocol.TASKS
    drawn = [*numbered(CheckPlan(profile=TINY, topics=NAMES), (tasks,))]
    topics = {part.topic for one in drawn if isinstance(one, TaskScenario) for part in one.subtopologies}
    assert topics == {*NAMES, ""}  # a third subtopology has none
    [scenario, *_] = (one for one in drawn if isinstance(one, TaskScenario))
    assert from_json(to_json(scenario)) == scenario
    application = Application(configs=scenario.configs, subtopologies=scenario.subtopologies, clients=())
    line = tasks_request(1, TaskQuestion(tasks, application))
    assert decode_application(from_line(line))[1] == application


def test_a_search_without_names_has_no_field_for_them():
    [scenario, *_] = numbered(CheckPlan(profile=TINY), (RebalanceProtocol.TASKS,))
    assert "topic" not in str(to_json(scenario))
    assert called(scenario, (), 0) is scenario
    assert keeps(scenario, ())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a b"], "'a b' is no name"),
        (["a,,b"], "'' is no name"),
        (["a,b", "a"], "a is given twice"),
        (["."], "'.' is"),
    ],
)
def test_names_that_no_topics_can_have_are_refused(given: list[str], says: str):
    with pytest.raises(ValueError, match=says):
        names_given(given)


def test_a_broker_tells_a_task_assignor_of_no_topic(capsys: pytest.CaptureFixture[str]):
    refuse_names(NAMES, (OF_TASKS[0],))
    with pytest.raises(ValueError, match="subtopologies"):
        refuse_names(NAMES, OF_TASKS)
    assert main(["check", "tasks-sticky", "--topics", "orders", "--profile", "smoke"]) == 2
    assert "--topics: a broker tells a task assignor of subtopologies" in capsys.readouterr().err
