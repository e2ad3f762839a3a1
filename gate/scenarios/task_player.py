"""Playing a scenario of tasks: an application lives through its rebalances, the target decides each.

Of the runtime there is what decides about the next question. ``StreamsPartitionAssignor`` withholds a task
that another client runs, and asks for a rebalance at once; a follow-up that the assignor asked for comes when
copies have caught up a little; a process that starts again has its disk. In a streams group members have
reached their target before the next question. Whatever an answer says beyond that is for the clauses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.gate.scenarios.player import Found, NoAnswer, NothingLeft, PlayedHistory
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    UNKNOWN_LAG,
    Application,
    ClientTasks,
    StoreKind,
    Subtopology,
    TaskClient,
    TaskId,
    Tasks,
)
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Failure, answered
from rebalance_verifier.properties.assignors.clause import Breach, Clause, Scope
from rebalance_verifier.properties.assignors.task_calls import (
    ASKED_SITUATIONS,
    TASK_SITUATIONS,
    TaskAnswer,
    TaskCall,
    TaskHistory,
    TaskQuestion,
    TaskReply,
)
from rebalance_verifier.properties.assignors.task_scenarios import (
    Copy,
    ScenarioClient,
    TaskEvent,
    TaskEventKind,
    TaskScenario,
)

T = TypeVar("T")
Playing = Generator[TaskQuestion, Any, T]
AskTasks = Callable[[TaskQuestion], TaskReply]

STREAMS = RebalanceProtocol.STREAMS

RETRIES = frozenset({"TaskAssignmentException", "TaskAssignorException"})
"""What an assignor may throw to have the rebalance retried; reasonable where end offsets are unknown."""

CIRCLES = 3
"""Undisturbed rebalances that ask the same: what then goes on does so for ever."""


@dataclass(slots=True, kw_only=True)
class _ClientState:
    """One client while a scenario is played. ``copies``: what is on its disk, with its lag; in a streams
    group the disk is that of the process, and ``standby`` what the member is assigned of it."""

    client: ScenarioClient
    id: str
    threads: int
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)
    copies: dict[TaskId, int] = field(default_factory=dict)


class _TaskJudge:
    """Holds answers against the clauses and remembers the first breach of each; ``to_breach``: no more."""

    def __init__(self, clauses: Sequence[Clause], promises: frozenset[Promise], to_breach: bool) -> None:
        self.promises = promises
        self.situations = {} if to_breach else dict(TASK_SITUATIONS)
        self.happened = True  # something since the last call
        self.wanted = len(clauses) if to_breach else math.inf
        self.by_scope = {scope: [c for c in clauses if c.scope is scope] for scope in Scope}
        self.found: dict[str, Found] = {}
        self.witnesses: set[str] = set()
        self.judged = {Scope.REPLY}
        self.questions = self.round = 0
        self.unknown_ends = False

    def reply(self, reply: TaskReply) -> TaskAnswer:
        self.questions += 1
        if isinstance(reply, Failure) and self.unknown_ends and _retries(reply):
            raise NoAnswer(Failure(FailureKind.SKIPPED, f"asks for a retry: {reply.message}"))
        for clause in self.by_scope[Scope.REPLY]:
            self._note(clause, clause.check(reply))
        if isinstance(reply, Failure):
            raise NoAnswer(reply)
        return reply

    def call(self, call: TaskCall) -> None:
        shown = [
            name
            for name, shows in self.situations.items()
            if (self.happened or name not in ASKED_SITUATIONS) and shows(call)
        ]
        for name in shown:
            del self.situations[name]
        self.witnesses.update(shown)
        self.happened = False
        for clause in self.by_scope[Scope.CALL]:
            if clause.id not in self.found:
                self._note(clause, clause.check(call))
        self.judged.add(Scope.CALL)
        self._look()

    def further(self, scope: Scope, call: TaskCall) -> Playing[None]:
        """Let the clauses of a scope ask further questions about a call."""
        for clause in self.by_scope[scope]:
            if clause.id not in self.found:
                asking = clause.check(call)
                try:
                    question = next(asking)
                    while True:
                        question = asking.send(self.reply((yield question)))
                except StopIteration as end:
                    self._note(clause, end.value)
        self.judged.add(scope)
        self._look()

    def history(self, history: TaskHistory) -> None:
        self.round = len(history.calls)
        for clause in self.by_scope[Scope.HISTORY]:
            self._note(clause, clause.check(history))
        self.judged.add(Scope.HISTORY)

    def _look(self) -> None:
        if len(self.found) >= self.wanted:
            raise NothingLeft

    def _note(self, clause: Clause, breach: Breach | None) -> None:
        if breach is not None and clause.id not in self.found:
            self.found[clause.id] = Found(clause, breach, self.round)


def _retries(failure: Failure) -> bool:
    return failure.message.partition(":")[0].rpartition(".")[2] in RETRIES


def play(
    scenario: TaskScenario, ask: AskTasks, clauses: Sequence[Clause], promises: Iterable[Promise]
) -> PlayedHistory:
    """Play ``scenario`` against a target and judge every answer."""
    return answered(history(scenario, clauses, promises), ask)


def history(
    scenario: TaskScenario,
    clauses: Sequence[Clause],
    promises: Iterable[Promise],
    to_breach: bool = False,
) -> Playing[PlayedHistory]:
    """Play ``scenario`` as ``play`` does: a generator of its questions that is sent the answers."""
    promised = frozenset(promises)
    judge = _TaskJudge([c for c in clauses if c.applies(scenario.protocol, promised)], promised, to_breach)
    group = _TaskGroup(scenario)
    calls: list[TaskCall] = []
    failure: Failure | None = None
    try:
        for events in scenario.rounds:
            unknown = group.apply(events, judge.witnesses)
            if not group.states:
                continue
            judge.happened = True
            call = yield from _rebalance(group, judge, calls, unknown)
            yield from judge.further(Scope.RELATION, call)
        if calls and group.states:
            judge.unknown_ends = False
            yield from judge.further(Scope.REPEAT, calls[-1])
            yield from _left_alone(group, judge, calls)
    except NoAnswer as stop:
        failure = stop.failure
        judge.witnesses.add(f"no answer: {failure.kind}")
    except NothingLeft:
        pass
    skipped = failure is not None and failure.kind is FailureKind.SKIPPED
    return PlayedHistory(
        scenario=scenario,
        calls=tuple(calls),
        found=() if skipped else tuple(judge.found.values()),
        witnesses=frozenset(judge.witnesses),
        skipped=failure.message if failure and skipped else None,
        questions=judge.questions,
        failure=failure,
        judged=frozenset(judge.judged),
    )


def _rebalance(
    group: _TaskGroup, judge: _TaskJudge, calls: list[TaskCall], unknown_ends: bool = False
) -> Playing[TaskCall]:
    judge.round, judge.unknown_ends = len(calls) + 1, unknown_ends
    application = group.view(unknown_ends)
    protocol = group.scenario.protocol
    answer = judge.reply((yield TaskQuestion(protocol, application)))
    call = TaskCall(
        protocol=protocol,
        application=application,
        assignment=answer.assignment,
        promises=judge.promises,
        unknown_ends=unknown_ends,
    )
    calls.append(call)
    judge.call(call)
    group.learn(call)
    return call


def _left_alone(group: _TaskGroup, judge: _TaskJudge, calls: list[TaskCall]) -> Playing[None]:
    """Play on until nothing moves and nobody asks for more, and once more; or until that took too long."""
    scenario, alone = group.scenario, len(calls)
    if not (judge.by_scope[Scope.HISTORY] or judge.situations):
        return
    allowed = _allowed(group)
    seen: dict[object, int] = {}
    settled = None
    while len(calls) - alone <= allowed and settled is None:
        call = yield from _rebalance(group, judge, calls)
        if not call.revoked or scenario.protocol is STREAMS:
            asks = call.assignment.followup and Promise.FALLBACK not in judge.promises
            group.catch_up(whole=not asks)
            settled = None if asks else len(calls) - 1
        else:
            judge.witnesses.add("task withheld")
        if settled is None:
            key = _question_key(call.application)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] >= CIRCLES:
                break
    if settled is not None:
        yield from _rebalance(group, judge, calls)
        if settled > alone:
            judge.witnesses.add("follow-up rebalance")
    judge.history(TaskHistory(tuple(calls), alone, settled, allowed))


def _question_key(application: Application) -> object:
    """Return what differs between the questions about an application that is left alone."""
    return tuple([(one.id, one.active, one.standby, *one.lags.items()) for one in application.clients])


def _allowed(group: _TaskGroup) -> int:
    """Return the rebalances that an application may take to settle: two for each batch of copies, and two for
    each task, which an assignor may let move one at a time."""
    configs = group.scenario.configs
    copies = math.ceil(len(group.logged()) * (1 + configs.standbys) / max(1, configs.warmups))
    tasks = sum(len(one.racks) for one in group.subtopologies.values())
    return group.scenario.slow * (4 + 2 * copies) + 2 * tasks


class _TaskGroup:
    """The clients of an application, and what they have, while a scenario is played."""

    def __init__(self, scenario: TaskScenario) -> None:
        self.scenario = scenario
        self.subtopologies = {one.id: one for one in scenario.subtopologies}
        self.states: dict[str, _ClientState] = {}
        self._restarted: dict[str, int] = {}
        self._ends: dict[TaskId, int] = {}  # of tasks with a changelog
        for client in scenario.clients:
            self._join(client)

    def logged(self) -> list[TaskId]:
        """Return the tasks with a changelog."""
        logged = (one for one in self.subtopologies.values() if one.store is StoreKind.LOGGED)
        return [task for one in logged for task in one.tasks]

    def view(self, unknown_ends: bool) -> Application:
        """Return what the assignor is told."""
        logged = [one for one in self.subtopologies.values() if one.store is StoreKind.LOGGED]
        self._ends = {task: one.end for one in logged for task in one.tasks}
        seen = self._seen_by_a_member if self.scenario.protocol is STREAMS else self._seen_by_a_process
        return Application(
            configs=self.scenario.configs,
            subtopologies=tuple(self.subtopologies.values()),
            clients=tuple([seen(state, unknown_ends) for state in self.states.values()]),
        )

    def _seen_by_a_process(self, state: _ClientState, unknown_ends: bool) -> TaskClient:
        """A process has a lag for each task with a changelog, from its end where nothing is on the disk."""
        if unknown_ends:
            lags = dict.fromkeys(self._ends, UNKNOWN_LAG)
        else:
            behind = state.copies.get  # no copy is further behind than the end
            lags = {task: behind(task, end) for task, end in self._ends.items()}
        for task in state.active:
            if task in lags:
                lags[task] = RUNNING_LAG
        disk = state.copies.keys() | state.standby
        return self._client(state, tuple(sorted(disk - state.active)), lags)

    def _seen_by_a_member(self, state: _ClientState, unknown_ends: bool) -> TaskClient:
        """A member tells of what is on its disk, and of nothing that runs."""
        lags = {task: lag for task, lag in sorted(state.copies.items()) if task not in state.active}
        return self._client(state, tuple(sorted(state.standby - state.active)), lags)

    def _client(self, state: _ClientState, standby: Tasks, lags: Mapping[TaskId, int]) -> TaskClient:
        process = state.client.process_id
        return TaskClient(
            id=state.id,
            process=process,
            threads=state.threads,
            active=tuple(sorted(state.active)),
            standby=standby,
            lags=lags,
            tags=state.client.tags,
            rack=state.client.rack,
        )

    # -- what happens ----------------------------------------------------------------------------------

    def apply(self, events: Sequence[TaskEvent], witnesses: set[str]) -> bool:
        """Let the events happen; whether end offsets are unknown then. Events about clients that are not
        there do nothing, so that minimising may drop a client first and its events later."""
        unknown = False
        for event in events:
            state = self._now(event.id)
            match event.kind:
                case TaskEventKind.JOIN if event.client and event.client.id not in self.states:
                    self._join(event.client)
                    witnesses.add("process joins")
                case TaskEventKind.LEAVE if state is not None:
                    del self.states[state.id]
                    witnesses.add("process leaves")
                case TaskEventKind.RESTART | TaskEventKind.WIPED if state is not None:
                    keeps = event.kind is TaskEventKind.RESTART
                    self._restart(state, keeps)
                    witnesses.add("restart with its disk" if keeps else "restart without its disk")
                case TaskEventKind.THREADS if state is not None:
                    state.threads = max(1, event.number)
                case TaskEventKind.GROW if event.id in self.subtopologies:
                    one = self.subtopologies[event.id]
                    self.subtopologies[event.id] = replace(one, racks=_grown(one, event.number))
                case TaskEventKind.FALL_BEHIND if state is not None:
                    for task in state.copies.keys() - state.active:
                        end = self.subtopologies[task.topic].end  # nobody is further behind than that
                        state.copies[task] = min(end, state.copies[task] + event.number)
                    witnesses.add("copies fall behind")
                case TaskEventKind.UNKNOWN_ENDS:
                    unknown = True
                case _:
                    pass
        return unknown

    def _now(self, name: str) -> _ClientState | None:
        """Return the client that was called so when it came."""
        return next((state for state in self.states.values() if state.client.id == name), None)

    def _join(self, client: ScenarioClient) -> None:
        state = _ClientState(client=client, id=client.id, threads=client.threads)
        known = {task for one in self.subtopologies.values() for task in one.tasks}
        taken = {task for other in self.states.values() for task in other.active}
        state.active = {task for task in client.active if task in known and task not in taken}
        ends = {task: one.end for one in self.subtopologies.values() for task in one.tasks}
        copies = map(Copy._make, client.copies)
        state.copies = {task: min(lag, ends[task]) for task, lag in copies if task in known}
        if not client.started:
            state.standby = set(state.copies) - state.active
        for task in state.active:
            self._keep(state, task, 0)
        self.states[client.id] = state

    def _restart(self, state: _ClientState, keeps: bool) -> None:
        """Let a client start again; a member of a streams group does so under another id (KAFKA-20719)."""
        state.active, state.standby = set(), set()
        if not keeps:
            state.copies = {}
        logged = set(self.logged())
        state.copies = {task: lag for task, lag in state.copies.items() if task in logged}

        if self.scenario.protocol is STREAMS:
            again = self._restarted[state.client.id] = self._restarted.get(state.client.id, 1) + 1
            del self.states[state.id]
            state.id = f"{state.client.id}-{again}"
            self.states[state.id] = state

    def _keep(self, state: _ClientState, task: TaskId, lag: int) -> None:
        """Let there be something of a task on a disk, if it keeps anything."""
        store = self.subtopologies[task.topic].store
        if store is StoreKind.LOGGED or (store is StoreKind.MEMORY and self.scenario.protocol is not STREAMS):
            state.copies[task] = lag

    def learn(self, call: TaskCall) -> None:
        """Let everybody do as the answer says; a task that another client runs waits until that one has
        stopped it."""
        given: dict[str, ClientTasks] = {}
        for one in call.assignment.clients:  # of several entries of one client the last counts
            given[one.id] = one
        owners = call.owners if self.scenario.protocol is not STREAMS else {}
        existing, nothing = call.existing, ClientTasks("")
        for state in self.states.values():
            new, here = given.get(state.id, nothing), state.id
            running = {task for task in new.active if task in existing and owners.get(task, here) == here}
            for task in state.active | running:  # what it stops now is up to date
                self._keep(state, task, 0)
            state.active = running
            state.standby = {task for task in new.standby if task in existing} - running
            for task in state.standby - state.copies.keys():
                self._keep(state, task, self.subtopologies[task.topic].end)
            if StoreKind.MEMORY in call.application.stores.values():
                self._forget(state)

    def _forget(self, state: _ClientState) -> None:
        """Drop what is in memory only, and no longer assigned."""
        for task in state.copies.keys() - state.active - state.standby:
            if self.subtopologies[task.topic].store is StoreKind.MEMORY:
                del state.copies[task]

    def catch_up(self, whole: bool) -> None:
        """Let copies that are kept up get nearer, or all the way."""
        for state in self.states.values():
            for task in state.standby:
                if task in state.copies:
                    step = math.ceil(self.subtopologies[task.topic].end / self.scenario.slow)
                    state.copies[task] = 0 if whole else max(0, state.copies[task] - step)


def _grown(one: Subtopology, number: int) -> tuple[tuple[str, ...], ...]:
    return (*one.racks, *((one.racks[-1] if one.racks else ()),) * max(0, number))
