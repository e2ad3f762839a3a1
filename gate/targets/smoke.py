"""First aid for authors of adapters: the handshake and three small assignments, each explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from rebalance_verifier.base.processes.lines import Garbage, from_line
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.messages import Hello
from rebalance_verifier.gate.targets.resolve import Target
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    Application,
    Subtopology,
    TaskClient,
    TaskConfigs,
    TaskId,
)
from rebalance_verifier.model.values import (
    OF_TASKS,
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import AssignorCall, Failure, StatedClaim
from rebalance_verifier.properties.assignors.clause import Scope
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.properties.assignors.played import AnyCall
from rebalance_verifier.properties.assignors.task_calls import TaskCall, TaskQuestion


@dataclass(frozen=True, slots=True)
class SmokeStep:
    """One thing that was tried: what it was, whether it went well, and what there is to say about it."""

    title: str
    ok: bool
    lines: tuple[str, ...] = ()


def smoke(target: Target, validate: bool = False, **limits: Any) -> list[SmokeStep]:
    """Shake hands with ``target`` and ask it three trivial assignments; ``limits`` are those of `Session`.

    With ``validate`` every message is held against ``protocol.schema.json`` as well (needs jsonschema).
    Never raises for what the target does; a step that is not ``ok`` says what to look at.
    """
    traffic: list[tuple[str, bytes]] = []
    steps: list[SmokeStep] = []
    try:
        with Session(
            target, observe=lambda direction, line: traffic.append((direction, line)), **limits
        ) as session:
            steps.append(_hello(session.hello))
            if session.hello.protocols[0] in OF_TASKS:
                steps += [_assign_tasks(session, *case) for case in _task_cases()]
            else:
                steps += [_assign(session, *case) for case in _cases(session)]
    except TargetError as error:
        steps.append(SmokeStep("start the target", False, tuple(str(error).splitlines())))
    if validate:
        steps.append(_validation(traffic))
    return steps


# --- the steps -------------------------------------------------------------------------------------------


def _hello(hello: Hello) -> SmokeStep:
    promises = ", ".join(sorted(hello.promises)) or "nothing: no quality clause will be asked"
    promises += " (none declared)" * hello.promises_assumed
    data = "is asked for user data" if hello.user_data else "writes no user data"
    return SmokeStep(
        f"hello from {hello.name} {hello.version or ''}".rstrip(),
        True,
        (f"protocols: {', '.join(hello.protocols)}", f"promises: {promises}", data),
    )


def _cases(session: Session) -> Iterator[tuple[str, Cluster, GroupSubscription, str | None]]:
    plain = Subscription(topics=("t",))
    yield "one member, one partition", Cluster.of({"t": 1}), {"A": plain}, None
    yield "two members, four partitions", Cluster.of({"t": 4}), {"A": plain, "B": plain}, None
    held = tuple(TopicPartition("t", index) for index in range(4))
    data = session.user_data(held, 1)
    trouble = f"user_data: {data.kind}: {data.message}" if isinstance(data, Failure) else None
    owner = Subscription(
        topics=("t",),
        user_data=None if isinstance(data, Failure) else data,
        # An eager member has given everything up before it joins, so only its user data can claim.
        owned_partitions=held if _protocol(session) is not RebalanceProtocol.EAGER else (),
        generation_id=1,
    )
    title = "A holds all four partitions, B is new"
    yield title, Cluster.of({"t": 4}), {"A": owner, "B": plain}, trouble


def _protocol(session: Session) -> RebalanceProtocol:
    return max(session.hello.protocols, key=lambda p: p is RebalanceProtocol.COOPERATIVE)


def _assign(
    session: Session, title: str, cluster: Cluster, group: GroupSubscription, trouble: str | None
) -> SmokeStep:
    protocol = _protocol(session)
    reply = session.assign(protocol, cluster, group)
    if isinstance(reply, Failure):
        return SmokeStep(title, False, (f"{reply.kind}: {reply.message}", *reply.detail.splitlines()[-20:]))
    claims = {m: StatedClaim(s.owned_partitions, s.generation_id) for m, s in group.items()}
    call = AssignorCall(
        protocol=protocol, cluster=cluster, group=group, claims=claims, assignment=reply.assignment
    )
    complaints = [*([trouble] if trouble else []), *_complaints(protocol, call)]
    if reply.mutated:
        complaints.append(f"it changed its input: {reply.mutated}")
    got = [f"{member}: {_names(partitions)}" for member, partitions in reply.assignment.items()]
    given = {p for partitions in reply.assignment.values() for p in partitions}
    for member, sub in group.items():
        if withheld := tuple(p for p in sub.owned_partitions if p not in given):
            got.append(f"withheld until {member} has revoked them: {_names(withheld)}")
    return SmokeStep(f"{title} ({protocol})", not complaints, (*got, *complaints))


def _task_cases() -> Iterator[tuple[str, Application]]:
    """Yield the same of tasks."""
    one, other = TaskId("0", 0), TaskId("0", 1)
    lags = {one: RUNNING_LAG, other: RUNNING_LAG}
    alone, others = (TaskClient(id=i, process=i, lags=dict.fromkeys(lags, 100)) for i in "AB")
    fresh = Application(
        configs=TaskConfigs(standbys=1),
        subtopologies=(Subtopology(id="0", racks=((), ()), end=100),),
        clients=(alone,),
    )
    yield "one process, two tasks", fresh
    yield "two processes, two tasks, one standby", replace(fresh, clients=(alone, others))
    owner = TaskClient(id="A", process="A", active=(one, other), lags=lags)
    yield "A runs both tasks, B is new", replace(fresh, clients=(owner, others))


def _assign_tasks(session: Session, title: str, application: Application) -> SmokeStep:
    protocol = session.hello.protocols[0]
    reply = session.assign_tasks(TaskQuestion(protocol, application))
    if isinstance(reply, Failure):
        return SmokeStep(title, False, (f"{reply.kind}: {reply.message}", *reply.detail.splitlines()[-20:]))
    call = TaskCall(protocol=protocol, application=application, assignment=reply.assignment)
    complaints = [*_complaints(protocol, call)]
    if reply.mutated:
        complaints.append(f"it changed its input: {reply.mutated}")
    got = [
        f"{one.id}: {_names(one.active)}" + (f", standby {_names(one.standby)}" if one.standby else "")
        for one in reply.assignment.clients
    ]
    return SmokeStep(f"{title} ({protocol})", not complaints, (*got, *complaints))


def _complaints(protocol: RebalanceProtocol, call: AnyCall) -> Iterator[str]:
    """Yield what the clauses that look at one call, but for those of quality, say of an answer."""
    for clause in TABLE:
        applies = clause.scope is Scope.CALL and clause.applies(protocol, ())
        if applies and clause.level is not Level.QUALITY and (breach := clause.check(call)):
            yield f"{breach.summary} ({clause.id})"


def _names(partitions: Partitions) -> str:
    return " ".join(map(str, partitions)) or "nothing"


# --- validation ------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the protocol."""
    found: dict[str, Any] = json.loads(
        resources.files("rebalance_verifier.traces")
        .joinpath("schemas/protocol.schema.json")
        .read_text("utf-8")
    )
    return found


def _validation(traffic: list[tuple[str, bytes]]) -> SmokeStep:
    try:
        import jsonschema
    except ImportError:
        return SmokeStep("validate against the schema", False, ("not done: needs `pip install jsonschema`",))
    root = schema()
    expected: dict[object, str] = {}
    complaints = []
    for direction, line in traffic:
        try:
            message = from_line(line)
        except Garbage as garbage:
            complaints.append(f"{direction} {garbage}")
            continue
        seq = str(message.get("seq"))
        if direction == ">":
            expected[seq] = f"{message['cmd']}_reply"
        form = "request" if direction == ">" else expected.get(seq, "reply")
        validator = jsonschema.Draft202012Validator({**root, "oneOf": [{"$ref": f"#/$defs/{form}"}]})
        error = jsonschema.exceptions.best_match(validator.iter_errors(message))
        if error is not None:
            complaints.append(f"{direction} {line.decode('ascii', 'replace').strip()[:200]}")
            complaints.append(f"  at {error.json_path}: {error.message[:300]}")
    return SmokeStep(
        f"validate {len(traffic)} messages against the schema", not complaints, tuple(complaints)
    )
