"""The contract of a task assignor, as a table: rows of the one table of clauses of assignors."""

from __future__ import annotations

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.task_placement import (
    active_once,
    answers,
    copies_apart,
    each_process_once,
    enough_standbys,
    few_warmups,
    moves_least,
    one_answer,
    only_existing_tasks,
    racks_cost_nothing,
    runs_where_caught_up,
)
from rebalance_verifier.properties.assignors.task_settling import (
    balanced_tasks,
    probing_ends,
    settled_stays,
    spread_when_settled,
)

WIKI = "https://cwiki.apache.org/confluence/display/KAFKA/"

KIP_924 = WIKI + "KIP-924%3A+customizable+task+assignment+for+Streams"
KIP_441 = WIKI + "KIP-441%3A+Smooth+Scaling+Out+of+Kafka+Streams"
KIP_708 = WIKI + "KIP-708%3A+Rack+aware+StandbyTask+assignment+for+Kafka+Streams"
KIP_925 = WIKI + "KIP-925%3A+Rack+aware+task+assignment+in+Kafka+Streams"
KIP_54 = WIKI + "KIP-54+-+Sticky+Partition+Assignment+Strategy"

TASK_KINDS = (
    *("nobody", "twice", "missing", "unknown", "stateless", "beside", "together", "mutated"),
    *("actives", "standbys", "too-few", "too-many", "no-changelog", "asks", "moves", "all", "stateful"),
    *("traffic", "tags", "copies"),
)
"""The kinds of breaches that these clauses tell apart."""

ONLY_CLIENT = (RebalanceProtocol.TASKS,)

TASK_CLAUSES: tuple[Clause, ...] = (
    Clause(
        id="task/1", level=Level.SAFETY, scope=Scope.CALL,
        sentence="each task is active on exactly one client",
        rule="KIP-924, AssignmentError", link=KIP_924, check=active_once, protocols=OF_TASKS,
    ),
    Clause(
        id="task/2", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="the answer has each process of the application once, and no other",
        rule="KIP-924, AssignmentError", link=KIP_924, check=each_process_once, protocols=ONLY_CLIENT,
    ),
    Clause(
        id="task/3", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="only tasks of the application are assigned",
        rule="KIP-924, AssignmentError", link=KIP_924, check=only_existing_tasks, protocols=OF_TASKS,
    ),
    Clause(
        id="task/4", level=Level.LIVENESS, scope=Scope.CALL,
        sentence="a standby is of a stateful task, on a process that has no other copy of it",
        rule="KIP-924, AssignmentError", link=KIP_924, check=copies_apart, protocols=OF_TASKS,
        needs="standbys in the answer",
    ),
    Clause(
        id="task/5", level=Level.LIVENESS, scope=Scope.REPLY,
        sentence="an assignment comes back for every well-formed input, which is left as it was",
        rule="TaskAssignor.assign", link=KIP_924, check=answers, protocols=OF_TASKS,
    ),
    Clause(
        id="task/6", level=Level.QUALITY, scope=Scope.REPEAT,
        sentence="the same input gives the same assignment, on every leader and in whatever order processes "
        "are iterated",
        rule="TaskAssignor.assign", link=KIP_924, check=one_answer, protocols=OF_TASKS,
    ),
    Clause(
        id="task/7", level=Level.QUALITY, scope=Scope.CALL,
        sentence="a task with a changelog has num.standby.replicas standbys, or as many as there are other "
        "processes; no more but warm-ups",
        rule="KIP-441, num.standby.replicas", link=KIP_441, check=enough_standbys, protocols=OF_TASKS,
        promises=frozenset({Promise.STANDBYS}), needs="standbys asked for",
    ),
    Clause(
        id="task/8", level=Level.QUALITY, scope=Scope.CALL,
        sentence="at most max.warmup.replicas copies are made besides the standbys",
        rule="KIP-441, max.warmup.replicas", link=KIP_441, check=few_warmups, protocols=ONLY_CLIENT,
        promises=frozenset({Promise.HIGH_AVAILABILITY}), needs="copy that lags",
    ),
    Clause(
        id="task/9", level=Level.QUALITY, scope=Scope.CALL,
        sentence="a task runs where its store is caught up, if it is anywhere",
        rule="KIP-441, acceptable.recovery.lag", link=KIP_441, check=runs_where_caught_up,
        protocols=ONLY_CLIENT, promises=frozenset({Promise.HIGH_AVAILABILITY}), needs="copy that lags",
    ),
    Clause(
        id="task/10", level=Level.LIVENESS, scope=Scope.HISTORY,
        sentence="left alone, with copies that catch up, tasks stop moving and follow-up rebalances end",
        rule="KIP-441, probing rebalances", link=KIP_441, check=probing_ends, protocols=ONLY_CLIENT,
        unless=frozenset({Promise.FALLBACK}),
    ),
    Clause(
        id="task/11", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="once settled, a rebalance with nothing changed moves no task and no standby",
        rule="KIP-54, stickiness", link=KIP_54, check=settled_stays, protocols=OF_TASKS,
        promises=frozenset({Promise.STICKY}), by_chance=True,
    ),
    Clause(
        id="task/12", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="once settled, active tasks are spread over threads as evenly as they can be",
        rule="KIP-441, balance", link=KIP_441, check=balanced_tasks, protocols=OF_TASKS,
        promises=frozenset({Promise.BALANCED}),
    ),
    Clause(
        id="task/13", level=Level.QUALITY, scope=Scope.HISTORY,
        sentence="once settled, the copies of a task are under as many values of each client tag as there "
        "can be",
        rule="KIP-708", link=KIP_708, check=spread_when_settled, protocols=OF_TASKS,
        promises=frozenset({Promise.STANDBYS, Promise.TAGS}), needs="client tags",
    ),
    Clause(
        id="task/14", level=Level.QUALITY, scope=Scope.RELATION,
        sentence="to take racks into account costs no traffic between racks, and no spread over client tags",
        rule="KIP-925", link=KIP_925, check=racks_cost_nothing, protocols=ONLY_CLIENT,
        promises=frozenset({Promise.RACK_AWARE}), needs="racks",
    ),
    Clause(
        id="task/15", level=Level.QUALITY, scope=Scope.CALL,
        sentence="no more active tasks move, and no more stores are copied, than what else is promised needs",
        rule="KIP-54, stickiness", link=KIP_54, check=moves_least, protocols=OF_TASKS,
        promises=frozenset({Promise.LEAST_MOVES}), needs="tasks with an owner",
    ),
)  # fmt: skip
