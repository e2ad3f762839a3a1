"""Clauses of one answer of a task assignor, and of one with further questions about it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import ClientTasks, RackStrategy, TaskAssignment, TaskId
from rebalance_verifier.properties.assignors.calls import Failure
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.replies import failed, mutates
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskCall, TaskQuestion, TaskReply
from rebalance_verifier.properties.assignors.task_optima import Moves, least_moves, least_traffic, moves_of
from rebalance_verifier.properties.assignors.wording import counted, listed, together

TaskAsking = Generator[TaskQuestion, TaskReply, Breach | None]
"""A clause that asks the target, and comes to a breach or none."""


def active_once(call: TaskCall) -> Breach | None:
    nobody, several = [], []
    actives, clients = call.actives, call.clients
    for task in call.application.tasks:
        on = [client for client in actives.get(task, ()) if client in clients]
        if not on:
            nobody.append(task)
        elif len(on) > 1:
            several.append((task, on))
    if several:
        task, on = several[0]
        where = f"twice on {on[0]}" if len(set(on)) == 1 else f"on {together(sorted(set(on)))}"
        return Breach(
            kind="twice",
            summary=f"{task} is active {where}",
            because=(everything(call.assignment),),
            expected="one client that runs it",
            actual=f"{counted(len(several), 'task')} active more than once",
            partitions=tuple(task for task, _ in several),
        )
    if nobody:
        return Breach(
            kind="nobody",
            summary=f"nobody runs {listed(nobody)}",
            because=(everything(call.assignment), "Kafka does not look: its partitions are read by nobody"),
            expected="one client that runs each task",
            actual=f"{counted(len(nobody), 'task')} not assigned",
            partitions=tuple(nobody),
        )
    return None


def each_process_once(call: TaskCall) -> Breach | None:
    twice = [client for client, times in call.listed.items() if times > 1]
    missing = [client for client in call.clients if client not in call.listed]
    unknown = [client for client in call.listed if client not in call.clients]
    if twice:
        kind, wrong = "twice", f"the answer lists {twice[0]} {call.listed[twice[0]]} times"
        then = "of several entries of a process the last one counts: it loses what the others say"
    elif unknown:
        kind, wrong = "unknown", f"the answer names {unknown[0]}, which is not in the application"
        then = "the runtime answers UNKNOWN_PROCESS_ID, and the thread dies"
    elif missing:
        kind, wrong = "missing", f"the answer does not name {listed(missing)}"
        then = "the runtime answers MISSING_PROCESS_ID, and the thread dies"
    else:
        return None
    return Breach(
        kind=kind,
        summary=wrong,
        because=(everything(call.assignment), then),
        expected="each process once, with all its tasks",
        actual=", ".join(f"{client} {times} times" for client, times in sorted(call.listed.items())),
        partitions=tuple(
            task
            for one in call.assignment.clients
            if one.id in (*twice, *unknown)
            for task in (*one.active, *one.standby)
        ),
    )


def only_existing_tasks(call: TaskCall) -> Breach | None:
    if call.existing.issuperset(call.actives) and call.existing.issuperset(call.standbys):
        return None
    unknown = sorted({*call.actives, *call.standbys} - call.existing)
    return Breach(
        summary=f"there is no task {listed(unknown)}",
        because=(everything(call.assignment), f"there are {listed(call.application.tasks, 'none')}"),
        expected="tasks of the application",
        actual=f"{counted(len(unknown), 'unknown task')}",
        partitions=tuple(unknown),
    )


def copies_apart(call: TaskCall) -> Breach | None:
    for task, standbys in call.standbys.items():
        if task not in call.existing:
            continue
        if not call.is_stateful(task):
            return _misplaced(call, task, "stateless", f"{task} has no store, and a standby on {standbys[0]}")
        actives = call.actives.get(task, [])
        running = {call.process(client): client for client in actives}
        seen: dict[str, str] = {}
        for client in standbys:
            process = call.process(client)
            if process in running:
                beside = running[process]
                where = f"{client}, where it runs" if beside == client else f"{client}, of {beside}'s process"
                return _misplaced(call, task, "beside", f"the standby of {task} is on {where}")
            if process in seen:
                on = "" if seen[process] == client else f" ({together(sorted((seen[process], client)))})"
                return _misplaced(call, task, "together", f"{process} has two standbys of {task}{on}")
            seen[process] = client
    return None


def _misplaced(call: TaskCall, task: TaskId, kind: str, summary: str) -> Breach:
    return Breach(
        kind=kind,
        summary=summary,
        because=(everything(call.assignment), *_processes(call)),
        expected="copies of a store on processes of their own, of stateful tasks",
        actual=f"active on {listed(call.actives.get(task, ()))}, standby on {listed(call.standbys[task])}",
        partitions=(task,),
    )


def _processes(call: TaskCall) -> tuple[str, ...]:
    """Return who is of one process, where that is not plain."""
    members: dict[str, list[str]] = {}
    for client in call.application.clients:
        members.setdefault(client.process, []).append(client.id)
    return tuple(f"{together(ids)} are of process {p}" for p, ids in members.items() if len(ids) > 1)


def answers(reply: TaskReply) -> Breach | None:
    if isinstance(reply, Failure):
        return failed(reply)
    changed = mutates(reply.mutated)
    return replace(changed, kind="mutated") if changed else None


def one_answer(call: TaskCall) -> TaskAsking:
    reversed_clients = replace(call.application, clients=call.application.clients[::-1])
    again = yield TaskQuestion(call.protocol, reversed_clients, again=True)
    if not isinstance(again, TaskAnswer):
        return None
    here, there = placed(call.assignment), placed(again.assignment)
    moved = sorted(task for task in {*here, *there} if here.get(task) != there.get(task))
    if not moved:
        return None
    actives = [task for task in moved if here.get(task, ((), ()))[0] != there.get(task, ((), ()))[0]]
    kind = "actives" if actives else "standbys"
    return Breach(
        kind=kind,
        summary=f"another process gives {listed(actives or moved)} to another client, asked the same",
        because=(f"once {everything(call.assignment)}", f"once {everything(again.assignment)}"),
        expected="the same answer, on every leader and in whatever order processes are iterated",
        actual=f"{counted(len(moved), 'task')} with other copies",
        partitions=tuple(moved),
    )


def enough_standbys(call: TaskCall) -> Breach | None:
    wanted = call.application.configs.standbys
    most = min(wanted, len(call.threads) - 1)
    for task in call.application.tasks:
        copies = len(call.standbys.get(task, ()))
        if not call.is_logged(task):
            if copies and call.is_stateful(task):
                return _copies(call, task, "no-changelog", f"{task} has no changelog, and a standby", 0)
        elif copies < most:
            text = f"{task} has {counted(copies, 'standby')}, not {most}"
            return _copies(call, task, "too-few", text, most)
        elif copies > wanted and Promise.HIGH_AVAILABILITY not in call.promises:
            text = f"{task} has {counted(copies, 'standby')}, and {wanted} are asked for"
            return _copies(call, task, "too-many", text, wanted)
    return None


def _copies(call: TaskCall, task: TaskId, kind: str, summary: str, wanted: int) -> Breach:
    configs = call.application.configs
    return Breach(
        kind=kind,
        summary=summary,
        because=(
            everything(call.assignment),
            f"num.standby.replicas is {configs.standbys}, and there are {len(call.threads)} processes",
        ),
        expected=counted(wanted, "standby"),
        actual=f"on {listed(call.standbys.get(task, ()))}",
        partitions=(task,),
        gap=abs(wanted - len(call.standbys.get(task, ()))),
    )


def few_warmups(call: TaskCall) -> Breach | None:
    configs = call.application.configs
    extra = {
        task: len(clients) - configs.standbys
        for task, clients in call.standbys.items()
        if len(clients) > configs.standbys
    }
    if (warming := sum(extra.values())) <= configs.warmups:
        return None
    return Breach(
        summary=f"{warming} copies are made besides the standbys, and {configs.warmups} are allowed",
        because=(everything(call.assignment), f"max.warmup.replicas is {configs.warmups}"),
        expected=f"at most {counted(configs.warmups, 'warm-up')}",
        actual=f"{warming}, of {listed(sorted(extra))}",
        partitions=tuple(sorted(extra)),
        gap=warming - configs.warmups,
    )


def runs_where_caught_up(call: TaskCall) -> Breach | None:
    if call.unknown_ends:  # nobody knows who is caught up
        return None
    for task in call.application.logged:
        on = call.actives.get(task)
        known = call.clients.get(on[0]) if on else None
        if on and known and not call.is_caught_up(known, task) and (caught := call.caught_up(task)):
            lag = known.lags.get(task)
            return Breach(
                summary=f"{task} runs on {on[0]}, which has to restore it first, and not on {caught[0]}",
                because=(
                    everything(call.assignment),
                    f"{on[0]} is {lag} records behind; caught up: {listed(caught)}",
                    f"acceptable.recovery.lag is {call.application.configs.recovery_lag}",
                ),
                expected=f"{task} on {listed(caught)}",
                actual=f"on {on[0]}",
                partitions=(task,),
            )
    return None


def moves_least(call: TaskCall) -> Breach | None:
    """Return what moves beside what had to; where racks count too, that is not known."""
    if call.application.configs.rack_strategy is not RackStrategy.NONE:
        return None
    made = moves_of(call)
    if made == Moves(0, 0):
        return None
    needed = least_moves(call)
    if needed is None or made.actives < needed.actives:  # the others may come in the next rebalance
        return None
    if made <= needed:
        return None
    running = made.actives > needed.actives
    return Breach(
        kind="actives" if running else "copies",
        summary=moves_told(made, needed),
        because=(everything(call.assignment), *_before(call)),
        expected=moves_told(needed),
        actual=moves_told(made),
        partitions=tuple(sorted(_moved(call) if running else _made(call))),
        gap=made.actives - needed.actives if running else made.copies - needed.copies,
    )


def moves_told(moves: Moves, needed: Moves | None = None) -> str:
    """Return what moves, in words, and how much of it had to."""
    least = f", and {needed.actives} and {needed.copies} are needed" if needed else ""
    verb = "moves" if moves.actives == 1 else "move"
    return (
        f"{counted(moves.actives, 'active task')} {verb} and {counted(moves.copies, 'store')} "
        f"{'is' if moves.copies == 1 else 'are'} copied{least}"
    )


def _before(call: TaskCall) -> Iterator[str]:
    had = [ClientTasks(client.id, client.active, client.standby) for client in call.application.clients]
    yield f"before {everything(TaskAssignment(tuple(had)))}"


def _moved(call: TaskCall) -> Iterator[TaskId]:
    return (task for task, client in call.owners.items() if client not in call.actives.get(task, ()))


def _made(call: TaskCall) -> Iterator[TaskId]:
    had = {client.id: {*client.standby, *client.active} for client in call.application.clients}
    for task in call.application.logged:
        on = [*call.actives.get(task, ()), *call.standbys.get(task, ())]
        if any(task not in had.get(client, (task,)) for client in on):
            yield task


def racks_cost_nothing(call: TaskCall) -> Generator[TaskQuestion, TaskReply, Breach | None]:
    application = call.application
    fresh = not any(client.active or client.standby for client in application.clients)
    if application.configs.rack_strategy is RackStrategy.NONE or not fresh:
        return None  # beside what is there already, moves cost too
    without = replace(application.configs, rack_strategy=RackStrategy.NONE)
    reply = yield TaskQuestion(call.protocol, replace(application, configs=without))
    if not isinstance(reply, TaskAnswer):
        return None
    plain = replace(call, assignment=reply.assignment)
    before, after = crossing(plain), crossing(call)
    if len(after) > len(before):
        least = least_traffic(call)
        best = "" if least is None else f", and {least} would do"
        text = f"with racks {len(after)} copies read from another rack, without {len(before)}"
        return _worse(call, plain, "traffic", text + best, after)
    for task in application.logged:
        for tag in application.configs.tags:
            was, now = _values(plain, task, tag), _values(call, task, tag)
            if len(now) < len(was):
                text = f"the copies of {task} are in {tag} {listed(sorted(now))}; without racks "
                return _worse(call, plain, "tags", f"{text}in {listed(sorted(was))}", (task,))
    return None


def _worse(call: TaskCall, plain: TaskCall, kind: str, summary: str, tasks: Iterable[TaskId]) -> Breach:
    racks = " ".join(f"{client.id} in {client.rack or 'no rack'}" for client in call.application.clients)
    return Breach(
        kind=kind,
        summary=summary,
        because=(
            f"with rack.aware.assignment.strategy {call.application.configs.rack_strategy}: "
            + everything(call.assignment),
            f"with none: {everything(plain.assignment)}",
            racks,
            *_tagged(call),
        ),
        expected="racks that are taken into account cost no traffic and no spread",
        actual=kind,
        partitions=tuple(dict.fromkeys(tasks)),
    )


def crossing(call: TaskCall) -> tuple[TaskId, ...]:
    """Return each copy that a client reads from another rack than its own, by its task."""
    found = []
    for placing in (call.actives, call.standbys):
        for task, clients in placing.items():
            if task not in call.existing:
                continue
            here = call.application.racks_of(task)
            for client in clients:
                known = call.clients.get(client)
                if here and known and known.rack and known.rack not in here:
                    found.append(task)
    return tuple(found)


def spread_over_tags(call: TaskCall) -> Breach | None:
    """Return a standby that could be elsewhere, where its task had copies under more values of a tag."""
    tags = call.application.configs.tags
    for task in call.application.logged if tags else ():
        spread = {tag: len(_values(call, task, tag)) for tag in tags}
        copies = _copies_of(call, task)
        for standby in call.standbys.get(task, ()):
            for client in call.application.clients:
                if client.process in map(call.process, copies) or standby not in call.clients:
                    continue
                rest = [one for one in copies if one != standby]
                other = {tag: len(_tag_values(call, [*rest, client.id], tag)) for tag in tags}
                if other != spread and all(other[tag] >= spread[tag] for tag in tags):
                    return _crowded(call, task, standby, client.id)
    return None


def _crowded(call: TaskCall, task: TaskId, standby: str, better: str) -> Breach:
    tag = next(
        tag
        for tag in call.application.configs.tags
        if call.clients[standby].tags.get(tag) != call.clients[better].tags.get(tag)
    )
    return Breach(
        summary=f"copies of {task} are together in {tag} {call.clients[standby].tags.get(tag)}: its "
        f"standby could be on {better}, in {call.clients[better].tags.get(tag)}",
        because=(everything(call.assignment), *_tagged(call)),
        expected=f"the copies of {task} under as many values of {tag} as there can be",
        actual=f"on {listed(_copies_of(call, task))}, in {listed(sorted(_values(call, task, tag)))}",
        partitions=(task,),
    )


def _copies_of(call: TaskCall, task: TaskId) -> list[str]:
    return [*call.actives.get(task, ()), *call.standbys.get(task, ())]


def _values(call: TaskCall, task: TaskId, tag: str) -> set[str]:
    return _tag_values(call, _copies_of(call, task), tag)


def _tag_values(call: TaskCall, clients: Iterable[str], tag: str) -> set[str]:
    return {call.clients[client].tags.get(tag, "") for client in clients if client in call.clients}


def _tagged(call: TaskCall) -> Iterator[str]:
    if call.application.configs.tags:
        yield " ".join(
            f"{client.id} has {' '.join(f'{key} {value}' for key, value in sorted(client.tags.items()))}"
            for client in call.application.clients
        )


def placed(assignment: TaskAssignment) -> Mapping[TaskId, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return where each task is active, and where it has standbys."""
    found: dict[TaskId, tuple[list[str], list[str]]] = {}
    for one in assignment.clients:
        for task in one.active:
            found.setdefault(task, ([], []))[0].append(one.id)
        for task in one.standby:
            found.setdefault(task, ([], []))[1].append(one.id)
    return {task: (tuple(sorted(a)), tuple(sorted(s))) for task, (a, s) in found.items()}


def everything(assignment: TaskAssignment) -> str:
    """Return an answer in a line: what is active, and behind a plus the standbys.

    >>> everything(TaskAssignment.of({"A": [TaskId("0", 0)]}, {"B": [TaskId("0", 0)]}))
    'A: {0_0}  B: {+ 0_0}'
    """
    shown = []
    for one in sorted(assignment.clients, key=lambda one: one.id):
        copies = f"+ {listed(sorted(one.standby), '')}" if one.standby else ""
        inside = " ".join(filter(None, (listed(sorted(one.active), ""), copies)))
        shown.append(f"{one.id}: {{{inside}}}")
    return "  ".join(shown[:8]) + (f"  and {len(shown) - 8} more" if len(shown) > 8 else "")
