"""A client over the wire and its adapter, asked the same: where they differ the adapter is wrong.

Nightly: each builds or installs a client, and hundreds of questions take minutes.
"""

from __future__ import annotations

import dataclasses

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, scenario_at
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.live.clients.leaders.clients import LEADING, released
from rebalance_verifier.model.assignors.promises import KAFKA
from rebalance_verifier.model.values import Cluster, GroupSubscription, RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Failure, Reply, Writer
from rebalance_verifier.properties.assignors.played import of_partitions

SCENARIOS = 200
PLAN = dataclasses.replace(CheckPlan(), profile=dataclasses.replace(PROFILES["smoke"], mixed=SCENARIOS))


def compared(wire: str, adapter: str, scenarios: int = SCENARIOS) -> tuple[int, list[str], int]:
    """How many questions both answered, the answers that differ, and how many differed by what the two had
    been asked before: not so in new processes."""
    both, differences, remembered = 0, list[str](), 0
    with Session(resolve(wire)) as real, Session(resolve(adapter)) as other:
        protocols = tuple(p for p in real.hello.protocols if p in other.hello.protocols)
        assert protocols

        def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
            nonlocal both, remembered
            answer, its = real.assign(protocol, cluster, group), other.assign(protocol, cluster, group)
            if FailureKind.SKIPPED in (getattr(answer, "kind", None), getattr(its, "kind", None)):
                return answer
            both += 1
            if seen(answer) != seen(its):
                for session in (real, other):
                    session.renew()
                answer, its = real.assign(protocol, cluster, group), other.assign(protocol, cluster, group)
                remembered += seen(answer) == seen(its)
            if seen(answer) != seen(its):
                asked = f"{dict(cluster.topics)} {dict(group)}"
                differences.append(f"{asked}: {seen(answer)}, not {seen(its)}")
            return answer

        writer = Writer.of(real.user_data_of) if real.hello.user_data else None
        for number in range(scenarios):
            play(of_partitions(scenario_at(PLAN, protocols, number)), ask, writer, (), ())
    return both, differences, remembered


def seen(reply: Reply) -> object:
    """An answer as owners, whatever the order; or that there is none: what raises here ends a client."""
    if isinstance(reply, Failure):
        return "no answer"
    return {member: sorted(partitions) for member, partitions in reply.assignment.items() if partitions}


JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


REMEMBER = {("kafka-clients", "sticky"), ("kafka-clients", "cooperative-sticky")}
"""Leaders that answer by what they were asked before: AbstractStickyAssignor keeps the newest generation of
all calls, and a client that ended was started anew, where the adapter's was not."""


def adapter_of(client: str, assignor: str) -> str:
    """The target that asks the same assignor without a wire."""
    try:
        release = released(LEADING[client], "")
        if client == "kafka-clients":
            target = f"java:{KAFKA}.{JAVA[assignor]}@org.apache.kafka:kafka-clients:{release}"
        else:
            target = f"{client}:{assignor}"
        resolve(target)
        resolve(f"client:{client}:{assignor}")
    except (ToolError, TargetError) as error:
        pytest.skip(str(error).splitlines()[0])
    return target


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        (client, assignor)
        for client in ("kafka-python", "aiokafka", "kafka-clients")
        for assignor in LEADING[client].assignors
    ],
)
def test_wire_and_adapter_agree(client: str, assignor: str):
    adapter = adapter_of(client, assignor)
    both, differences, remembered = compared(f"client:{client}:{assignor}", adapter)
    assert both > SCENARIOS
    assert not differences, f"{len(differences)} of {both}: {differences[0]}"
    assert not remembered or (client, assignor) in REMEMBER


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("client", "assignor"), [(client, one) for client in LEADING for one in LEADING[client].assignors]
)
def test_every_client_is_judged_over_the_wire(client: str, assignor: str):
    """Most of profile smoke is answered, and nothing hangs: what is found is the client's."""
    try:
        target = resolve(f"client:{client}:{assignor}")
    except TargetError as error:
        pytest.skip(str(error).splitlines()[0])
    answered = dict.fromkeys(("answer", *FailureKind), 0)
    with Session(target) as session:
        writer = Writer.of(session.user_data_of) if session.hello.user_data else None

        def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
            reply = session.assign(protocol, cluster, group)
            answered[reply.kind if isinstance(reply, Failure) else "answer"] += 1
            return reply

        for number in range(60):
            play(of_partitions(scenario_at(PLAN, session.hello.protocols, number)), ask, writer, (), ())
    assert answered["answer"] > 60, answered
    assert not answered[FailureKind.TIMEOUT], answered
    assert not answered[FailureKind.GARBAGE], answered
