"""A simulation of the newest release: each command does to Kafka's own code what it says, and the answers
show it.

What is expected of Kafka here is what its sources say; that the model agrees is another test's business.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.code.answers import (
    SimulationCommitted,
    SimulationNoted,
    SimulationRequest,
    SimulationResponse,
    SimulationThrown,
    state_of,
)
from rebalance_verifier.live.code.releases import command, newest_of_minors
from rebalance_verifier.live.code.simulation import (
    NotEnabled,
    Simulation,
    SimulationBroken,
    SimulationDied,
    SimulationMember,
)

from tests.live.code.played import RELEASE, Played, needs_java
from tests.processes import alive

IDS = ["A-00000001-0000-4000-8000-000000000000", "B-00000002-0000-4000-8000-000000000000"]

pytestmark = [pytest.mark.slow, needs_java]


@pytest.fixture(scope="module")
def jvm() -> Iterator[Simulation]:
    with Simulation([RELEASE], [RELEASE]) as simulation:
        yield simulation


def two(jvm: Simulation, **more: Any) -> Played:
    played = Played(jvm, [SimulationMember(release=RELEASE)] * 2, {"t": 3}, **more)
    played.settle()
    return played


def test_two_consumers_share_a_topic_and_every_part_says_so(jvm: Simulation) -> None:
    played = two(jvm)
    state = jvm.state()
    assert state.coordinator.state == "STABLE"
    assert (state.coordinator.generation, state.coordinator.protocol) == (1, "cooperative-sticky")
    assert [one.id for one in state.coordinator.members] == IDS
    assert [sorted(one.assigned or ()) for one in state.coordinator.members] == [["t-0", "t-2"], ["t-1"]]
    assert [one and (one.state, one.generation, one.member_id) for one in state.members] == [
        ("STABLE", 1, IDS[0]),
        ("STABLE", 1, IDS[1]),
    ]
    assert played.owned() == ["t-0 t-2", "t-1"]
    assert {key.split("-g")[0] for key in state.coordinator.timers} >= {"heartbeat", "expire"}
    assert not state.requests
    assert not state.responses


def test_partitions_move_in_two_rebalances_with_the_claims_of_kip_792(jvm: Simulation) -> None:
    played = Played(jvm, [SimulationMember(release=RELEASE)] * 2, {"t": 2})
    played.do("crash", member=1)
    played.settle()
    assert played.owned() == ["t-0 t-1", "-"]
    played.do("start", member=1)
    played.settle()
    none = ("assigned", "")
    assert played.callbacks(0) == [("assigned", "t-0 t-1"), ("revoked", "t-1"), none, none]
    joins = [one for one in played.events if isinstance(one, SimulationRequest) and one.api == "JoinGroup"]
    shown = [(sorted(one.claims[0].owned), one.claims[0].generation) for one in joins if one.member == 0]
    assert shown[-2:] == [(["t-0", "t-1"], 1), (["t-0"], 2)]
    assert jvm.state().coordinator.generation == 3


def test_the_same_commands_have_the_same_answers_in_another_jvm(jvm: Simulation) -> None:
    played = two(jvm)
    with Simulation([RELEASE], [RELEASE]) as other:
        assert two(other).events == played.events
        assert other.state() == jvm.state()
    jvm.reset()
    assert jvm.state().coordinator.state is None


def test_ids_can_be_made_to_fall(jvm: Simulation) -> None:
    member = SimulationMember(release=RELEASE, client="c")
    jvm.create(RELEASE, [member, member], {"t": 1})
    jvm.command("ids", first=9, step=-1)
    for number in (0, 1):
        jvm.command("start", member=number)
        for do in ("poll", "deliver", "respond", "poll", "deliver"):
            found = jvm.command(do, member=number)
    ids = [one.member_id for one in found if isinstance(one, SimulationResponse)]
    assert ids == ["c-00000008-0000-4000-8000-000000000000"]


def test_a_session_that_expires_is_noticed_by_the_next_heartbeat(jvm: Simulation) -> None:
    played = two(jvm)
    played.do("expire", timer="session", member_id=IDS[1])
    assert [one.id for one in jvm.state().coordinator.members] == IDS[:1]
    played.do("heartbeat", member=1)
    (answer,) = played.do("deliver", member=1)
    assert isinstance(answer, SimulationResponse)
    assert answer.error == "UNKNOWN_MEMBER_ID"
    played.do("respond", member=1)
    for _ in range(2):  # the first looks at the answer
        played.do("poll", member=1)
    assert played.callbacks(1)[-1] == ("lost", "t-1")
    with pytest.raises(NotEnabled, match="no such timer: session"):
        jvm.command("expire", timer="session", member_id=IDS[1])


def test_time_passes_at_the_coordinator_and_fires_what_is_due(jvm: Simulation) -> None:
    played = two(jvm)
    session = jvm.state().coordinator.timers[f"heartbeat-g-{IDS[0]}"]
    played.do("elapse", ms=session - 1)
    assert len(jvm.state().coordinator.members) == 2
    played.do("elapse", ms=1)
    assert jvm.state().coordinator.state == "EMPTY"


def test_max_poll_leaves_the_group_and_loses_the_partitions(jvm: Simulation) -> None:
    played = two(jvm)
    (leave,) = played.do("max_poll", member=0)
    assert isinstance(leave, SimulationRequest)
    assert (leave.api, leave.member_id) == ("LeaveGroup", IDS[0])
    played.do("poll", member=0)
    assert played.callbacks(0)[-1] == ("lost", "t-0 t-2")
    with pytest.raises(NotEnabled, match="nothing to do"):
        jvm.command("heartbeat", member=0)


def test_the_consumers_own_session_makes_it_look_for_the_coordinator(jvm: Simulation) -> None:
    played = two(jvm)
    (closed,) = played.do("session", member=0)
    assert isinstance(closed, SimulationNoted)
    assert closed.event == "disconnected"
    state = jvm.state().members[0]
    assert state is not None
    assert not state.coordinator_known
    (find,) = played.do("poll", member=0)
    assert isinstance(find, SimulationRequest)
    assert find.api == "FindCoordinator"


@pytest.mark.parametrize("arrives", [False, True])
def test_a_connection_ends_and_the_caller_says_what_still_arrives(jvm: Simulation, arrives: bool) -> None:
    played = two(jvm)
    (beat,) = played.do("heartbeat", member=0)
    assert isinstance(beat, SimulationRequest)
    played.do("disconnect", member=0, arrive=arrives)
    if arrives:
        (answer,) = played.do("deliver", id=beat.id)
        assert isinstance(answer, SimulationResponse)
        assert answer.abandoned
    with pytest.raises(NotEnabled, match="no request"):
        jvm.command("deliver", id=beat.id)
    played.do("poll", member=0)
    played.settle()
    assert played.owned() == ["t-0 t-2", "t-1"]


def test_a_lost_response_is_not_handed_over_and_a_lost_request_does_not_arrive(jvm: Simulation) -> None:
    played = two(jvm)
    played.do("heartbeat", member=0)
    played.do("deliver", member=0)
    played.do("lose", member=0)
    with pytest.raises(NotEnabled, match="no response of member 0"):
        jvm.command("respond", member=0)
    played.do("heartbeat", member=1)
    played.do("drop", member=1)
    with pytest.raises(NotEnabled, match="no request of member 1"):
        jvm.command("deliver", member=1)


def test_a_failover_knows_what_is_in_the_log(jvm: Simulation) -> None:
    played = two(jvm)
    log = jvm.state().coordinator.log
    played.do("failover")
    after = jvm.state().coordinator
    assert (after.state, after.generation, len(after.members)) == ("STABLE", 1, 2)
    played.do("failover", keep=log - 1)
    assert jvm.state().coordinator.members == ()
    played.do("heartbeat", member=0)
    (answer,) = played.do("deliver", member=0)
    assert isinstance(answer, SimulationResponse)
    assert answer.error == "UNKNOWN_MEMBER_ID"


def test_a_failover_answers_who_waits_and_a_coordinator_that_loads_refuses(jvm: Simulation) -> None:
    played = two(jvm)
    played.do("enforce", member=0)
    played.do("poll", member=0)
    played.do("deliver", member=0)  # its JoinGroup waits for B
    (answer,) = played.do("failover", loading=True)
    assert isinstance(answer, SimulationResponse)
    assert (answer.member, answer.error) == (0, "NOT_COORDINATOR")
    played.do("enforce", member=1)
    played.do("poll", member=1)
    (answer,) = played.do("deliver", member=1)
    assert isinstance(answer, SimulationResponse)
    assert answer.error == "COORDINATOR_LOAD_IN_PROGRESS"
    played.do("coordinator", available="active")
    played.settle()
    assert jvm.state().coordinator.state == "STABLE"


@pytest.mark.parametrize(
    ("error", "answered"), [(None, "NONE"), ("NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR")]
)
def test_an_append_that_waits_holds_the_answers(jvm: Simulation, error: str | None, answered: str) -> None:
    played = two(jvm)
    played.do("hold")
    played.do("enforce", member=0)
    while not jvm.state().coordinator.waiting:  # the leader's SyncGroup has arrived
        played.round()
        played.maybe("heartbeat", member=1)
    assert jvm.state().coordinator.state == "COMPLETING_REBALANCE"
    played.round(1)
    answers = played.do("append", **({"error": error} if error else {}))
    syncs = [one for one in answers if isinstance(one, SimulationResponse) and one.api == "SyncGroup"]
    assert {one.error for one in syncs} == {answered}
    with pytest.raises(NotEnabled, match="no write waits"):
        jvm.command("append")


def test_commits_wait_for_an_answer_or_are_helped(jvm: Simulation) -> None:
    played = two(jvm)
    (request,) = played.do("commit", member=0)
    assert isinstance(request, SimulationRequest)
    assert (request.api, sorted(request.partitions), request.generation) == (
        *("OffsetCommit", ["t-0", "t-2"], 1),
    )
    played.do("deliver", member=0)
    played.do("respond", member=0)
    played.do("poll", member=0)
    done = [one for one in played.do("poll", member=0) if isinstance(one, SimulationCommitted)]
    assert [(one.sync, one.error) for one in done] == [(False, None)]
    done = [one for one in played.do("commit", member=1, sync=True) if isinstance(one, SimulationCommitted)]
    assert [(one.sync, one.error) for one in done] == [(True, None)]
    lonely = played.do("commit", member=0, sync=True, help=False)
    assert [one.error for one in lonely if isinstance(one, SimulationCommitted)] == ["TimeoutException"]


def test_a_call_that_waits_for_ever_for_a_topic_that_is_not_there_ends(jvm: Simulation) -> None:
    member = SimulationMember(release=RELEASE, topics=("t", "no"), config={"enable.auto.commit": True})
    played = Played(jvm, [member], {"t": 1})
    played.settle()
    before = len(played.events)
    lonely = played.do("commit", member=0, sync=True, help=False)
    assert [one.error for one in lonely if isinstance(one, SimulationCommitted)] == ["TimeoutException"]
    assert len(played.events) - before < 10


def test_a_listener_throws_at_the_application(jvm: Simulation) -> None:
    played = Played(jvm, [SimulationMember(release=RELEASE)], {"t": 1})
    played.do("throw", member=0, call="assigned")
    played.settle()
    (threw,) = [one for one in played.events if isinstance(one, SimulationThrown)]
    assert threw.error == "org.apache.kafka.common.KafkaException"
    assert threw.cause == "java.lang.IllegalStateException"


def test_topics_grow_and_are_noticed_when_metadata_comes(jvm: Simulation) -> None:
    played = two(jvm)
    played.do("topics", topics={"t": 4})
    played.round()
    assert jvm.state().coordinator.state == "STABLE"
    for number in (0, 1):
        played.do("refresh", member=number)
    played.settle()
    assert sorted(" ".join(played.owned()).split()) == ["t-0", "t-1", "t-2", "t-3"]


def test_a_static_member_comes_back_under_its_name(jvm: Simulation) -> None:
    members = [SimulationMember(release=RELEASE), SimulationMember(release=RELEASE, instance="i")]
    played = Played(jvm, members, {"t": 2})
    played.settle()
    before = jvm.state().coordinator.generation
    played.do("crash", member=1)
    played.do("start", member=1)
    played.settle()
    after = jvm.state().coordinator
    assert after.generation == before
    assert [one.id for one in after.members if one.instance == "i"] == [
        "i-00000003-0000-4000-8000-000000000000"
    ]


def test_subscribe_unsubscribe_and_close(jvm: Simulation) -> None:
    played = Played(jvm, [SimulationMember(release=RELEASE)], {"t": 1, "u": 1})
    played.settle()
    played.do("subscribe", member=0, topics=["t", "u"])
    played.settle()
    assert played.owned() == ["t-0 u-0"]
    played.do("unsubscribe", member=0)
    assert played.callbacks(0)[-1] == ("revoked", "t-0 u-0")
    played.do("subscribe", member=0, topics=["u"])
    played.settle()
    assert played.owned() == ["u-0"]
    closing = played.do("close", member=0, arrive=True)
    leave = next(one for one in closing if isinstance(one, SimulationRequest))
    assert leave.api == "LeaveGroup"
    played.do("deliver", id=leave.id)
    assert jvm.state().coordinator.state == "EMPTY"
    assert jvm.state().members == (None,)


def test_one_line_can_have_many_commands(jvm: Simulation) -> None:
    two(jvm)
    line: list[JsonLine] = [{"do": "poll", "member": 0}, {"do": "deliver", "member": 0}, {"do": "state"}]
    answers = jvm.batch(line)
    assert [sorted(one) for one in answers] == [["events"], ["refused"], ["events", "state"]]
    assert [sorted(one) for one in jvm.batch(line, stop=True)] == [["events"], ["refused"]]


def test_a_state_by_its_changes_is_the_whole_state(jvm: Simulation) -> None:
    two(jvm)
    before = jvm.state()
    for do in ("enforce", "poll", "deliver", "nothing", "crash", "reset", "create"):
        member = {"release": RELEASE, "topics": ["t"]}
        more = {"topics": {"u": 1}, "members": [member], "coordinator": RELEASE} if do == "create" else {}
        jvm.batch([{"do": do, "member": 0} | more])
        after = jvm.state()
        assert after == state_of(jvm.batch([{"do": "state"}])[0])
        assert (after == before) is (do == "nothing")
        before = jvm.state()


def test_of_a_state_by_its_changes_what_has_not_changed_is_left_out(jvm: Simulation) -> None:
    two(jvm)
    before = jvm.state()
    changes: JsonLine = {"do": "state", "changes": True}
    asks, [refused, unchanged] = (
        {"do": "enforce", "member": 1},
        jvm.batch([{"do": "deliver", "id": 0}, changes]),
    )
    assert list(refused) == ["refused"]
    assert unchanged["state"] == {"members": [None, None]}
    state = jvm.batch([asks, changes])[1]["state"]
    assert [one and one["rejoin"] for one in state.pop("members")] == [None, True]
    assert state == {}
    quiet = jvm.batch([{"do": "crash", "member": 0}, changes], quiet=True)
    assert quiet == []
    assert jvm.state().members[0] is None
    assert jvm.state().coordinator == before.coordinator


@pytest.mark.nightly
def test_ten_thousand_resets_leave_nothing_behind() -> None:
    with Simulation([RELEASE], [RELEASE]) as simulation:
        Played(simulation, [SimulationMember(release=RELEASE)] * 3, {"t": 3}).settle()
        calls = ("start", "poll", "deliver", "respond", "poll", "deliver")
        run: list[JsonLine] = [{"do": do, "member": one} for do in calls for one in range(3)]

        def kept(resets: int) -> int:
            for _ in range(resets // 100):
                simulation.batch([{"do": "reset"}, *run] * 100, quiet=True)
            counted = ["jcmd", str(simulation.pid), "GC.class_histogram"]  # what a full collection leaves
            lines = subprocess.run(counted, capture_output=True, text=True, check=True).stdout
            return int(lines.split()[-2])  # objects

        first = kept(100)
        assert kept(10_000) < first * 1.01


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"do": "fly", "member": 0}, "no such command: fly"),
        ({"do": "poll", "member": 7}, "no member 7"),
        ({"do": "start", "member": 0}, "member 0 has a process"),
        ({"do": "deliver", "id": 4711}, "no request 4711"),
    ],
)
def test_what_cannot_be_is_refused(jvm: Simulation, command: dict[str, Any], why: str) -> None:
    two(jvm)
    with pytest.raises(NotEnabled, match=why):
        jvm.command(command.pop("do"), **command)


def test_a_consumer_that_cannot_be_made_is_no_end_of_the_cell(jvm: Simulation) -> None:
    jvm.create(RELEASE, [SimulationMember(release=RELEASE, assignors=("no.such.Assignor",))], {"t": 1})
    with pytest.raises(SimulationBroken, match=r"no\.such\.Assignor"):
        jvm.command("start", member=0)
    two(jvm)


def test_a_jvm_that_dies_or_hangs_is_an_exception_and_nothing_is_left() -> None:
    simulation = Simulation([RELEASE], [RELEASE])
    os.kill(simulation.pid, signal.SIGKILL)
    with pytest.raises(SimulationDied, match="SIGKILL"):
        simulation.state()
    assert not alive(simulation.pid)
    with pytest.raises(SimulationDied):
        simulation.state()
    simulation.close()


def test_a_release_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ToolError, match=r"kafka-group-coordinator:\S*3\.99\.9"):
        command(["3.99.9"], [])


def test_newest_of_minors() -> None:
    assert newest_of_minors(("2.8.0", "2.8.1", "3.10.0", "3.9.1")) == ("2.8.1", "3.10.0", "3.9.1")


def test_assignors_of_another_jar_run_in_the_consumers(tmp_path: Path) -> None:
    with Simulation([RELEASE], [RELEASE], classpath=[str(tmp_path)]) as simulation:
        name = "org.apache.kafka.clients.consumer.RoundRobinAssignor"
        played = Played(simulation, [SimulationMember(release=RELEASE, assignors=(name,))], {"t": 2})
        played.settle()
        assert played.callbacks(0) == [("assigned", "t-0 t-1")]
