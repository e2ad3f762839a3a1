"""What becomes of processes, their tasks and their disks between rebalances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.scenarios.task_player import play
from rebalance_verifier.model.assignors.tasks import StickyTasks
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    UNKNOWN_LAG,
    Application,
    StoreKind,
    Subtopology,
    TaskAssignment,
    TaskConfigs,
    TaskId,
)
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Failure
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskCall, TaskQuestion
from rebalance_verifier.properties.assignors.task_scenarios import (
    Copy,
    ScenarioClient,
    TaskEvent,
    TaskEventKind,
    TaskScenario,
    from_json,
    to_json,
)

from tests.gate.search.odd_tasks import OneAtATime

ONE, TWO = TaskId("0", 0), TaskId("0", 1)
Assign = Callable[[Application], TaskAssignment]


def scenario(*rounds: tuple[TaskEvent, ...], **changes: Any) -> TaskScenario:
    fields: dict[str, Any] = {
        "protocol": RebalanceProtocol.TASKS,
        "configs": TaskConfigs(standbys=1, recovery_lag=0),
        "subtopologies": (Subtopology(id="0", racks=((), ()), end=100),),
        "clients": (ScenarioClient(id="A", active=(ONE, TWO)), ScenarioClient(id="B", started=True)),
        "rounds": ((), *rounds),
    }
    return TaskScenario(**(fields | changes))


def played(story: TaskScenario, assign: Assign | None = None, clauses: Any = ()) -> PlayedHistory:
    decide = assign or StickyTasks().assign_tasks

    def ask(question: TaskQuestion) -> TaskAnswer:
        return TaskAnswer(decide(question.application))

    return play(story, ask, clauses, StickyTasks().promises)


def calls(*args: Any, **changes: Any) -> list[TaskCall]:
    return [call for call in played(*args, **changes).calls if isinstance(call, TaskCall)]


def seen(call: TaskCall, client: str) -> tuple[str, str, dict[str, int]]:
    """What runs, what is on the disk, the lags."""
    known = call.clients[client]
    lags = {str(task): lag for task, lag in known.lags.items()}
    return " ".join(map(str, known.active)), " ".join(map(str, known.standby)), lags


def test_a_task_that_moves_is_withheld_until_its_owner_has_stopped_it():
    first, second, third, *_ = calls(scenario())
    assert [str(task) for task in first.actives if first.actives[task] == ["B"]] == ["0_1"]
    assert seen(second, "A")[:2] == ("0_0", "0_1")
    assert seen(second, "B")[0] == ""
    assert seen(third, "B")[0] == "0_1"
    assert seen(third, "A")[2] == {"0_0": RUNNING_LAG, "0_1": 0}


def test_a_process_has_lags_of_all_and_a_member_of_what_is_on_its_disk():
    story = {
        "clients": (ScenarioClient(id="A", copies=(Copy(ONE, 7),)), ScenarioClient(id="B", started=True))
    }
    assert seen(calls(scenario(**story))[0], "A")[2] == {"0_0": 7, "0_1": 100}
    streams = scenario(**story, protocol=RebalanceProtocol.STREAMS)
    assert seen(calls(streams)[0], "A") == ("", "0_0", {"0_0": 7})
    assert seen(calls(streams)[0], "B") == ("", "", {})


@pytest.mark.parametrize(("kind", "disk"), [(TaskEventKind.RESTART, "0_0 0_1"), (TaskEventKind.WIPED, "")])
def test_a_process_that_starts_again_runs_nothing_and_has_its_disk(kind: TaskEventKind, disk: str):
    alone = {"clients": (ScenarioClient(id="A", active=(ONE, TWO)),)}
    call = calls(scenario((TaskEvent(kind=kind, id="A"),), **alone))[1]
    assert seen(call, "A")[:2] == ("", disk)


def test_a_member_that_starts_again_has_another_id_and_its_disk_in_offsets_alone():
    alone = {"clients": (ScenarioClient(id="A", active=(ONE, TWO)),), "protocol": RebalanceProtocol.STREAMS}
    call = calls(scenario((TaskEvent(kind=TaskEventKind.RESTART, id="A"),), **alone))[1]
    assert [(client.id, client.process) for client in call.application.clients] == [("A-2", "A")]
    assert seen(call, "A-2") == ("", "", {"0_0": 0, "0_1": 0})


def test_unknown_end_offsets_are_for_one_rebalance():
    first, second, *_ = calls(scenario(rounds=((TaskEvent(kind=TaskEventKind.UNKNOWN_ENDS),), ())))
    assert seen(first, "B")[2] == {"0_0": UNKNOWN_LAG, "0_1": UNKNOWN_LAG}
    assert UNKNOWN_LAG not in seen(second, "B")[2].values()


@pytest.mark.parametrize("slow", [1, 3])
def test_a_copy_is_caught_up_after_as_many_follow_ups_however_far_it_fell_behind(slow: int):
    """A copy whose lag would stay where it is accused Kafka's default of probing for ever."""

    def probing(application: Application) -> TaskAssignment:
        lags = application.clients[1].lags
        given = {"A": [ONE, TWO], "B": []}
        return TaskAssignment.of(given, {"B": [ONE, TWO]}, followup=any(lag > 0 for lag in lags.values()))

    behind = (TaskEvent(kind=TaskEventKind.FALL_BEHIND, id="B", number=20_000),)
    record = played(scenario(behind, slow=slow), probing, [CLAUSES["task/10"]])
    assert record.found == ()
    lags = [call.application.clients[1].lags[ONE] for call in record.calls if isinstance(call, TaskCall)]
    assert lags[2] == 100
    assert lags.index(0) == 2 + slow


def test_what_is_in_memory_is_gone_with_its_task():
    memory = (Subtopology(id="0", store=StoreKind.MEMORY, racks=((), ()), end=100),)
    second = calls(scenario(subtopologies=memory))[1]
    assert seen(second, "A") == ("0_0", "", {})


def test_of_two_entries_of_a_process_the_last_counts():
    def twice(application: Application) -> TaskAssignment:
        right = StickyTasks().assign_tasks(application)
        return TaskAssignment((*right.clients, right.clients[0].__class__("A")))

    record = played(scenario(), twice, TABLE)
    call = record.calls[1]
    assert isinstance(call, TaskCall)
    assert seen(call, "A")[0] == ""
    assert {found.clause.id for found in record.found} >= {"task/2"}


@pytest.mark.parametrize(("unknown", "skipped"), [(True, True), (False, False)])
def test_a_retry_is_reasonable_where_end_offsets_are_unknown_and_nowhere_else(unknown: bool, skipped: bool):
    events = (TaskEvent(kind=TaskEventKind.UNKNOWN_ENDS),) if unknown else ()
    failure = Failure(FailureKind.ERRORED, "org.apache.kafka.streams.errors.TaskAssignmentException: no", "")
    record = play(scenario(rounds=(events,)), lambda question: failure, TABLE, ())
    assert (record.skipped is not None) == skipped
    assert ({found.clause.id for found in record.found} == {"task/5"}) != skipped


def test_a_scenario_is_the_same_when_it_was_written_and_read():
    joins = TaskEvent(
        kind=TaskEventKind.JOIN, client=ScenarioClient(id="C", copies=(Copy(ONE, 3),), rack="r")
    )
    story = scenario((joins, TaskEvent(kind=TaskEventKind.GROW, id="0", number=2)))
    assert from_json(to_json(story)) == story
    for wrong in ({"protocol": "eager"}, {"clients": [{"id": "A"}, {"id": "A"}]}, {"slow": -1}):
        with pytest.raises(ValueError, match="scenario: "):
            from_json(to_json(story) | wrong)


def test_tasks_may_move_one_at_a_time_however_many_there_are():
    """Eleven tasks without a store, three processes: it was accused of asking for ever."""
    one = Subtopology(id="0", store=StoreKind.NONE, racks=((),) * 11)
    clients = (ScenarioClient(id="A", active=one.tasks), ScenarioClient(id="B"), ScenarioClient(id="C"))
    story = scenario(subtopologies=(one,), clients=clients)
    record = played(story, OneAtATime().assign_tasks, [CLAUSES["task/10"], CLAUSES["task/12"]])
    assert record.found == ()
    assert len(record.calls) > 8
