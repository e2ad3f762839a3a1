"""Each clause of tasks on an answer that breaks it, and on one that nearly does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    Application,
    ClientTasks,
    StoreKind,
    Subtopology,
    TaskAssignment,
    TaskClient,
    TaskConfigs,
    TaskId,
)
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Failure
from rebalance_verifier.properties.assignors.clause import Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskCall, TaskHistory
from rebalance_verifier.properties.assignors.task_clauses import TASK_CLAUSES, TASK_KINDS

TASKS, STREAMS = RebalanceProtocol.TASKS, RebalanceProtocol.STREAMS
HA = frozenset({Promise.HIGH_AVAILABILITY})


def tasks(text: str) -> tuple[TaskId, ...]:
    return tuple(map(TaskId.parse, text.split()))


def answer(*given: str, followup: bool = False) -> TaskAssignment:
    """``"A 0_0 + 0_1"``: A runs 0_0 and keeps a copy of 0_1."""
    entries = []
    for text in given:
        name, _, rest = text.partition(" ")
        active, _, standby = rest.partition("+")
        entries.append(ClientTasks(name, tasks(active), tasks(standby)))
    return TaskAssignment(tuple(entries), followup)


def call(
    *given: str,
    count: int = 2,
    clients: str = "A B",
    lags: Mapping[str, Mapping[str, int]] | None = None,
    zones: str = "",
    store: StoreKind = StoreKind.LOGGED,
    protocol: RebalanceProtocol = TASKS,
    processes: str = "",
    threads: int = 1,
    promises: frozenset[Promise] = frozenset(),
    unknown_ends: bool = False,
    had: str = "",
    **configs: Any,
) -> TaskCall:
    owned = {one.id: one for one in answer(had).clients}
    names = clients.split()
    of = dict(zip(names, processes.split() or names, strict=True))
    tags = dict(zip(names, zones.split(), strict=True)) if zones else {}
    known = lags or {}
    return TaskCall(
        protocol=protocol,
        application=Application(
            configs=TaskConfigs(**configs),
            subtopologies=(Subtopology(id="0", store=store, racks=((),) * count, end=100),),
            clients=tuple(
                TaskClient(
                    id=name,
                    process=of[name],
                    threads=threads if name == names[0] else 1,
                    active=owned[name].active if name in owned else (),
                    standby=owned[name].standby if name in owned else (),
                    lags={TaskId.parse(t): lag for t, lag in known.get(name, {}).items()},
                    tags={"zone": tags[name]} if zones else {},
                )
                for name in names
            ),
        ),
        assignment=answer(*given),
        promises=promises,
        unknown_ends=unknown_ends,
    )


RUNS = {"A": {"0_0": RUNNING_LAG}, "B": {"0_0": 7}}

CASES = [
    ("task/1", call("A 0_0", "B"), "nobody runs 0_1"),
    ("task/1", call("A 0_0 0_1", "B 0_1"), "0_1 is active on A and B"),
    ("task/1", call("A 0_0 0_1 0_1", "B"), "0_1 is active twice on A"),
    ("task/1", call("A 0_0", "X 0_1"), "nobody runs 0_1"),
    ("task/1", call("A 0_0", "B 0_1"), None),
    ("task/2", call("A 0_0", "B 0_1", "A + 0_1"), "lists A 2 times"),
    ("task/2", call("A 0_0 0_1"), "does not name B"),
    ("task/2", call("A 0_0 0_1", "B", "X"), "names X"),
    ("task/2", call("A 0_0 0_1", "B"), None),
    ("task/3", call("A 0_0 0_1 0_2", "B"), "no task 0_2"),
    ("task/3", call("A 0_0 0_1", "B + 1_0"), "no task 1_0"),
    ("task/3", call("A 0_0 0_1", "B + 0_1"), None),
    ("task/4", call("A 0_0 0_1 + 0_1", "B"), "the standby of 0_1 is on A, where it runs"),
    ("task/4", call("A 0_0 0_1", "B + 0_1 0_1"), "B has two standbys of 0_1"),
    ("task/4", call("A 0_0 0_1", "B + 0_1", store=StoreKind.NONE), "0_1 has no store"),
    ("task/4", call("A 0_0 0_1", "B + 0_1", store=StoreKind.MEMORY), None),
    (
        "task/4",
        call("A 0_0 0_1", "B + 0_1", "C", clients="A B C", processes="P P Q", protocol=STREAMS),
        "on B, of A's process",
    ),
    (
        "task/4",
        call("A 0_0 0_1", "B", "C + 0_1", clients="A B C", processes="P P Q", protocol=STREAMS),
        None,
    ),
    ("task/7", call("A 0_0 0_1", "B + 0_1", standbys=1), "0_0 has 0 standbys, not 1"),
    ("task/7", call("A 0_0 0_1", "B + 0_0 0_1", standbys=0), "0_0 has 1 standby, and 0 are asked for"),
    ("task/7", call("A 0_0 0_1", "B + 0_0", standbys=1, store=StoreKind.MEMORY), "no changelog"),
    ("task/7", call("A 0_0 0_1", "B + 0_0 0_1", standbys=3), None),
    ("task/7", call("A 0_0 0_1", "B + 0_0 0_1", standbys=0, promises=HA), None),
    ("task/8", call("A 0_0 0_1", "B + 0_0 0_1", warmups=1), "2 copies are made besides"),
    ("task/8", call("A 0_0 0_1", "B + 0_0 0_1", warmups=2), None),
    ("task/9", call("A", "B 0_0", count=1, lags=RUNS, recovery_lag=6), "0_0 runs on B"),
    ("task/9", call("A", "B 0_0", count=1, lags=RUNS, recovery_lag=7), None),
    ("task/9", call("A", "B 0_0", count=1, lags=RUNS, recovery_lag=6, unknown_ends=True), None),
    ("task/15", call("A 0_0", "B 0_1", had="A 0_0 0_1"), "1 active task moves and 1 store is copied, and 0"),
    ("task/15", call("A 0_0 0_1", "B", had="A 0_0 + 0_1", standbys=1), None),
    ("task/15", call("A 0_0", "B 0_1", had="A 0_0 0_1", promises=frozenset({Promise.BALANCED})), None),
]


@pytest.mark.parametrize(("clause_id", "judged", "says"), CASES)
def test_one_call(clause_id: str, judged: TaskCall, says: str | None):
    clause = CLAUSES[clause_id]
    assert clause.scope is Scope.CALL
    breach = clause.check(judged)
    if says is None:
        assert breach is None
    else:
        assert breach is not None
        assert says in breach.summary
        assert breach.kind in ("", *TASK_KINDS)
        assert breach.expected
        assert breach.actual


def test_every_clause_of_one_call_has_a_breach_and_a_near_miss():
    calls = {clause.id for clause in TASK_CLAUSES if clause.scope is Scope.CALL}
    assert {c for c, _, says in CASES if says} == calls
    assert {c for c, _, says in CASES if says is None} == calls


def history(*calls: TaskCall, settled: int | None = 0) -> TaskHistory:
    return TaskHistory(calls, 0, settled, 4)


ZONES: Any = {"zones": "x y x", "clients": "A B C", "count": 1, "tags": ("zone",)}

HISTORIES = [
    ("task/10", history(call("A 0_0 0_1", "B"), settled=None), "tasks move after 1 rebalance"),
    ("task/10", history(call("A 0_0 0_1", "B")), None),
    ("task/11", history(call("A 0_0 0_1", "B"), call("A 0_0", "B 0_1")), "0_1 changes owner"),
    (
        "task/11",
        history(call("A 0_0 0_1", "B + 0_1"), call("A 0_0 0_1", "B + 0_0")),
        "the standby of 0_0, 0_1 moves",
    ),
    ("task/11", history(call("A 0_0 0_1", "B + 0_1"), call("B + 0_1", "A 0_1 0_0")), None),
    ("task/12", history(call("A 0_0 0_1", "B")), "A runs 2 active tasks, B 0"),
    ("task/12", history(call("A 0_0", "B 0_1")), None),
    ("task/12", history(call("A 0_0 0_1", "B 0_2", count=3)), None),
    (
        "task/12",
        history(call("A 0_0 0_1 0_2", "B", count=3, threads=2)),
        "A runs 3 active tasks on 2 threads",
    ),
    ("task/12", history(call("A 0_0 0_1", "B", count=2, threads=2)), None),
    ("task/13", history(call("A 0_0", "B", "C + 0_0", **ZONES)), "could be on B, in y"),
    ("task/13", history(call("A 0_0", "B + 0_0", "C", **ZONES)), None),
]


@pytest.mark.parametrize(("clause_id", "judged", "says"), HISTORIES)
def test_histories(clause_id: str, judged: TaskHistory, says: str | None):
    breach = CLAUSES[clause_id].check(judged)
    if says is None:
        assert breach is None
    else:
        assert breach is not None
        assert says in breach.summary
        assert breach.kind in ("", *TASK_KINDS)


def test_what_moves_with_nothing_changed_is_counted_beside_what_had_to():
    breach = CLAUSES["task/11"].check(history(call("A 0_0 0_1", "B + 0_1"), call("A 0_0 0_1", "B + 0_0")))
    assert breach.actual == "moved 0 active tasks and 1 standby, 0 were needed"


def test_an_answer_is_one_and_leaves_its_input():
    check = CLAUSES["task/5"].check
    assert check(TaskAnswer(answer("A"))) is None
    assert check(TaskAnswer(answer("A"), "lags of A")).kind == "mutated"
    assert check(Failure(FailureKind.ERRORED, "ValueError: no", "")).kind == "ValueError"
    assert check(Failure(FailureKind.SKIPPED, "not this", "")) is None


def test_the_other_process_is_asked_in_another_order():
    judged = call("A 0_0", "B 0_1")
    asking = CLAUSES["task/6"].check(judged)
    question = next(asking)
    assert question.again
    assert [client.id for client in question.application.clients] == ["B", "A"]
    with pytest.raises(StopIteration) as end:
        asking.send(TaskAnswer(answer("B 0_1", "A 0_0")))
    assert end.value.value is None
    asking = CLAUSES["task/6"].check(judged)
    next(asking)
    with pytest.raises(StopIteration) as end:
        asking.send(TaskAnswer(answer("A 0_1", "B 0_0")))
    assert end.value.value.kind == "actives"
