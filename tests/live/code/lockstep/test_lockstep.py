"""Model and Kafka's own code in lockstep: they agree, and a model that is another one does not."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from rebalance_verifier.base.processes import gather
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import Agreement, Disagreement, Lockstep
from rebalance_verifier.live.code.lockstep.comparison import IdNames, ModelSight, differences
from rebalance_verifier.live.code.lockstep.deviations import NAMED
from rebalance_verifier.live.code.lockstep.system import again, lines_of, shortened, walk
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, LockstepResult
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.bugs.releases import parse
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import Refused
from rebalance_verifier.model.group.observations import Callback
from rebalance_verifier.model.group.parts import Life
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)
from rebalance_verifier.report.terminal.lockstep import render

from tests.command import Rebalance
from tests.live.code.lockstep.stepping import (
    ALONE,
    ENTERS,
    JOINED,
    LEADS,
    NOW,
    SMALL,
    begun,
    plays,
    setup,
    walked,
)
from tests.live.code.played import RELEASE, needs_java
from tests.traces.published import hold

# -- what is compared ------------------------------------------------------------------------------------


def test_differences_are_sentences() -> None:
    model = {"A is": "STABLE", "B is": "UNJOINED", "C is": "COMPLETING_REBALANCE", "D is": "STABLE"}
    code = {"A is": "STABLE", "B is": "STABLE", "C is": "REBALANCING", "D is": "REBALANCING", "E": "up"}
    assert differences(model, code) == [
        "B is: the model has UNJOINED, Kafka STABLE",
        "D is: the model has STABLE, Kafka REBALANCING",
        "E: the model has nothing, Kafka up",
    ]


def test_a_process_that_walks_and_is_killed_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([(0, (Agreement(walks=20, steps=9), None)), (1, None)])
    monkeypatch.setattr(gather, "stream", lambda *given: (one for one in ends))
    found = walked(setup(), 60)
    assert (found.agreement.steps, found.verdict) == (9, Verdict.INCONCLUSIVE)
    assert "stopped   the worker of the walks from 20 on was killed" in render(found, "dynamic")


def test_ids_have_the_names_of_the_model() -> None:
    ids = IdNames()
    ids.learn(0, [1], ["0A-1", "0A-2"])
    ids.learn(0, [2], ["0A-1", "0A-2"])
    ids.learn(1, [1], [])
    assert [ids.name(one) for one in ("0A-1", "0A-2", "0B-1", "", None)] == ["A1", "A2", "0B-1", "-", "-"]
    assert (ids.real(0, 2), ids.number("0A-2"), ids.number("0B-1")) == ("0A-2", (0, 2), None)
    ids.learn(0, [1], ["0A-3"])  # the coordinator forgot the first
    assert (ids.name("0A-3"), ids.real(0, 1)) == ("A1", "0A-3")


def test_the_model_is_seen_as_kafka_is() -> None:
    built = machine(of := setup())
    state = built.initial[0]
    assert ModelSight(of, built).all(state) == {"the group": "empty", "A": "down", "B": "down", "C": "down"}
    for event in (Event("start", 0), Event("join", 0), Event("join request", 0), Event("receive", 0)):
        state = built.step(state, event)
    seen = ModelSight(of, built).all(state)
    assert (seen["member id A1"], seen["A with id"], seen["A is"]) == ("pending", "A1", "PREPARING_REBALANCE")
    assert seen["under way of A"] == "nothing"


def test_each_deviation_names_the_releases_that_have_it() -> None:
    assert all(parse(one.releases).spans and one.id == name for name, one in NAMED.items())


def test_each_deviation_is_told() -> None:
    page = (Path(__file__).parents[4] / "docs" / "explanation" / "lockstep.md").read_text()
    rows = [f"| `{one.id}` | {one.sentence} | {one.releases} |" for one in NAMED.values()]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


def test_what_is_not_played_is_no_fault_and_timers_always_are() -> None:
    of = setup(size=replace(SMALL, faults=("slow network", "crash")))
    assert of.faults == ("crash", "session timeout", "slow member")


# -- in step ---------------------------------------------------------------------------------------------


@needs_java
@pytest.mark.slow
def test_the_newest_release_is_in_step_whatever_the_jobs_and_in_parts() -> None:
    found = walked(setup(), 12)
    assert found.disagreement is None, "\n".join(lines_of(found.disagreement))
    assert found.agreement.steps == 1_200
    first, rest = (walked(setup(), walks, jobs=1, first=first) for first, walks in ((0, 4), (4, 8)))
    first.agreement.add(rest.agreement)
    assert found.agreement == first.agreement


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_is_in_step(scenario: str) -> None:
    found = walked(setup(scenario), 300)
    assert found.disagreement is None, "\n".join(lines_of(found.disagreement))


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("older", ["2.4.1", "2.8.0", "2.8.1", "3.4.1", "3.9.1"])
def test_older_consumers_are_in_step_with_new_ones(older: str) -> None:
    releases = CodeReleases(coordinator=RELEASE, consumers=(older, RELEASE))
    found = walked(setup(releases=releases), 300, releases)
    assert found.disagreement is None, "\n".join(lines_of(found.disagreement))


@needs_java
@pytest.mark.slow
def test_who_led_and_could_not_assign_has_the_snapshot_of_before() -> None:
    """The assignor throws at a claim of what is not there any more, and its leader follows later."""
    with begun(without="slow commit") as one:
        plays(one, f"{ENTERS.format('C')}, join phase ends, C assign, {LEADS.format('C')}")
        plays(one, f"{ENTERS.format('B')}, C heartbeat, C join, C join request, C assign, B receive")
        plays(one, "B sync request, C leader sync, B receive, B complete, C receive, C complete")
        plays(one, "C join request, B heartbeat, B join, B join request, B receive, B sync request, C assign")
        plays(one, f"{LEADS.format('C')}, B receive, B complete")
        plays(one, "topic shrinks t-2, B refresh, C refresh, C join, C join request, B heartbeat, B join")
        plays(one, "B join request, C assign, B receive, B sync request, C session timeout, B receive")
        assert list(one.seen.threw) == ["java.lang.IllegalStateException"]
        plays(one, f"C join request, B join, B join request, C receive, B assign, {LEADS.format('B')}")
        plays(one, "C join, C join request, C receive, C join, C join request, B heartbeat, B join")
        plays(one, "B join request, C receive, C sync request, B assign, B leader sync, C receive")
        plays(one, "C complete")
    assert one.seen.deviations == {"snapshot_outlives_leadership": 1}


@needs_java
@pytest.mark.slow
def test_a_leader_whose_membership_went_under_way_is_not_asked_what_its_assignor_threw() -> None:
    """A heartbeat of the generation before ends it, and Java reads no answer to JoinGroup then."""
    with begun() as one:
        plays(one, f"{ENTERS.format('A')}, join phase ends, A assign, {LEADS.format('A')}, A enforce")
        plays(one, "A late request, A join, A join request, A late request arrives, A late answer, A assign")
        plays(one, "A join")


@needs_java
@pytest.mark.slow
def test_a_join_request_that_its_sender_gave_up_arrives() -> None:
    """Of a process that is closed, and of one that lives on: the second id takes the place of the first."""
    with begun("static") as one:
        plays(one, "A start, A join, A close, A abandoned join, A start, A join, A join request")
        plays(one, "B start, B join, B unsubscribe, B subscribe, B join, B join request, B abandoned join")
        known = [member.client[-1] for member in one.group.state.coordinator.members]
    assert (sorted(known), one.seen.taken["abandoned join"]) == (["A", "B"], 2)


@needs_java
@pytest.mark.slow
def test_a_join_request_of_a_broken_connection_undoes_a_later_one() -> None:
    """U10, step by step with Kafka's own code: A owns a partition, and the group takes it to own none."""
    with begun("connections") as one:
        plays(one, f"{ENTERS.format('B')}, A start, A join, A join request, A receive, A join, A left behind")
        plays(one, "A receive, A join, A join request, join phase ends, B assign, B leader sync, B receive")
        plays(one, "B complete, A receive, A sync request, A receive, A complete, B enforce, B join")
        plays(one, "B join request, A left join arrives")
        (record,) = one.built.value(one.state, "record A")
        member = one.built.value(one.state, "member A")
    assert bool(member.owned) > bool(record.meta.owned)


@needs_java
@pytest.mark.slow
def test_a_late_join_request_takes_the_answer_of_the_one_that_waits() -> None:
    """Of one member id; who sent both is never answered."""
    with begun("connections") as one:
        plays(one, "A start, A join, A join request, A receive, A join, A left behind, A receive, A join")
        plays(one, "A join request, A left join arrives, join phase ends, A session timeout, A disconnect")
        plays(one, "A receive, A join, A join request")
    assert one.seen.deviations == {"late_join_takes_the_answer": 3}


@needs_java
@pytest.mark.slow
def test_what_a_failed_consumer_had_sent_still_arrives() -> None:
    """The other id of a static member fences it while its SyncGroup is under way."""
    with begun("static-connections") as one:
        plays(one, "B start, A start, A join, A left behind, A receive, A join, B join, B join request")
        plays(one, "A join request, join phase ends, A left join arrives, A receive, A heartbeat")
        plays(one, "A sync request")


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.4.1", RELEASE])
def test_a_static_leader_that_returns_skips_the_assignment_whether_it_is_told_or_not(release: str) -> None:
    """Below version 9 of JoinGroup it is told that its old id leads (KIP-814)."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun("static", releases) as one:
        plays(one, f"{JOINED}, A crash, A start, A join, A join request, A assign, A sync request, A receive")
        plays(one, "A complete")


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.8.1", "3.1.2", RELEASE])
def test_a_commit_before_the_join_that_is_refused_is_heard_of_too_late(release: str) -> None:
    """U11: JoinGroup claims what it owned, and the next poll gives that up."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun(releases=releases) as one:
        plays(one, f"{ALONE}, A slow commit, A session timeout, A commit refused, A prepare, A join request")
        plays(one, "A receive, A join, A join request")
        assert one.seen.taken["prepare"] == 1


@needs_java
@pytest.mark.slow
def test_an_eager_member_reads_nothing_from_its_commit_to_its_join() -> None:
    with begun("eager") as one:
        plays(one, f"{ALONE}, A slow commit, A commit done, A join, A join request")
        assert one.try_in_vain(Event("polls in vain", 0)) is None


@needs_java
@pytest.mark.slow
def test_an_empty_group_is_deleted_with_its_offsets_and_with_ids_that_were_never_used() -> None:
    with begun("failover") as one:
        plays(one, f"{ALONE}, A slow commit, A commit done, A join, A join request, A close, group expires")
        plays(one, "failover, B start, B join, B join request, B receive, B join, B join request")
        plays(one, "B session timeout, B receive, B join, B join request, group expires, B receive, B join")
        plays(one, "B join request")
        assert isinstance(one.built.value(one.state, "wire B"), Refused)


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("release", ["3.4.1", RELEASE])
def test_what_a_commit_is_answered_that_finds_no_group(release: str) -> None:
    """ILLEGAL_GENERATION, and since version 9 of the request what a consumer makes nothing of."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun(releases=releases, without="slow commit") as one:
        plays(
            one, f"{ALONE}, A late request t-commit, A session timeout, group expires, A late request arrives"
        )
        if release == RELEASE:
            assert one.built.value(one.state, "stray A") is None
        else:
            plays(one, "A late answer")
        plays(one, "A join, A join request")
    assert one.seen.deviations["commit_of_no_group"] == 1


@needs_java
@pytest.mark.slow
def test_a_group_that_has_handed_out_an_id_is_there_for_a_commit() -> None:
    with begun(without="slow commit") as one:
        plays(one, f"{ALONE}, A late request t-commit, A session timeout, group expires, C start, C join")
        plays(one, "C join request, A late request arrives, A late answer")
    assert not one.seen.deviations["commit_of_no_group"]


@needs_java
@pytest.mark.slow
def test_a_listener_that_hears_of_no_assignment_throws_nothing() -> None:
    with begun("topics", faults=("resubscribe", "listener throws")) as one:
        plays(one, "A start, A join, A join request, A receive, A join, A resubscribe, A join request")
        plays(one, "join phase ends, A assign, A leader sync, A receive")
        with pytest.raises(NotForcible):
            plays(one, "A listener throws")
        plays(one, "A complete")


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "unsubscribe", "max poll"])
def test_a_leave_that_takes_long_ends_a_membership_that_it_finds(how: str) -> None:
    with begun("connections") as one:
        plays(one, f"{ALONE}, A late leave t-{how}")
        back = {"close": "A start, ", "unsubscribe": "A subscribe, ", "max poll": ""}[how]
        plays(one, f"{back}A join, A join request, A receive, A left leave arrives, A join, A join request")


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.7.2", RELEASE])
def test_what_a_failed_append_answers_is_a_retry_or_the_end(release: str) -> None:
    """B11: before 2.8.0 no consumer knew REBALANCE_IN_PROGRESS as an answer to JoinGroup."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun(releases=releases) as one:
        plays(one, f"{ENTERS.format('A')}, A append fails, A receive")
        plays(one, "A start" if release == "2.7.2" else "A join, A join request, join phase ends, A assign")
    assert one.seen.deviations["join_not_appended"] == 1


@needs_java
@pytest.mark.slow
def test_who_does_not_run_does_nothing() -> None:
    """In a simulation it would: the model has to know."""
    with begun() as one:
        plays(one, "A start, A pause")
        action = one.built.by_name["join", 0]
        running = one.built.put(
            one.state, "member A", one.built.value(one.state, "member A")._replace(life=Life.UP)
        )
        one.state = running
        found = one.step(Event("join", 0), next(iter(one.built.outcomes_of(action, running))))
    assert found is not None
    assert found.cause == "join: A does not run"


# -- out of step -----------------------------------------------------------------------------------------


@needs_java
@pytest.mark.nightly
def test_a_model_of_another_release_is_out_of_step_and_the_run_is_short() -> None:
    """Of 2.8.0, which gives up its membership when a connection breaks."""
    wrong = setup(releases=CodeReleases(coordinator=RELEASE, consumers=("2.8.0",)), size=replace(
        SMALL, faults=("disconnect",)
    ))  # fmt: skip
    found = walked(wrong, 200)
    assert found.disagreement is not None
    assert len(found.disagreement.events) <= 8
    assert any("UNJOINED" in one for one in found.disagreement.sentences)
    assert walked(wrong, 200, jobs=1).disagreement == found.disagreement


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "says"),
    [
        pytest.param(("complete", "listener throws"), "polls in vain: A is", marks=pytest.mark.nightly),
        (("session expires", "session timeout"), "session ends in vain: the group"),
        pytest.param(("enforce",), "complete: ", marks=pytest.mark.nightly),
        (("crash",), "crashes in vain: "),
    ],
)
def test_a_step_that_the_model_lacks_is_missed(missing: tuple[str, ...], says: str) -> None:
    whole = machine(of := setup())
    less = replace(whole, actions=tuple(one for one in whole.actions if one.name not in missing))
    with Simulation([RELEASE], [RELEASE]) as simulation:
        walks = (walk(Lockstep(simulation, of, less, NOW), Random(seed), 100) for seed in range(20))
        found = next(one for one in walks if one is not None and one.cause.startswith(says))
        short = shortened(lambda: Lockstep(simulation, of, less, NOW), found)
    assert (short.cause, len(short.events) < 20) == (found.cause, True)


class Greedy:
    """An assignor that gives everything to one."""

    name, protocols, promises = "greedy", tuple(RebalanceProtocol), frozenset[Promise]()

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        first, *others = group
        return {first: tuple(cluster.partitions()), **dict.fromkeys(others, ())}

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        return None


@needs_java
@pytest.mark.slow
def test_a_leader_decides_as_well_as_the_model() -> None:
    of = setup()
    greedy = machine(replace(of, factory=lambda *_: Greedy()))
    with Simulation([RELEASE], [RELEASE]) as simulation:
        walks = (walk(Lockstep(simulation, of, greedy, NOW), Random(seed), 100) for seed in range(20))
        found = next(one for one in walks if one is not None)
    assert found.cause.startswith("assign: the leader decides [Grant(")


@needs_java
@pytest.mark.nightly
def test_leaving_out_comes_to_the_same_cause() -> None:
    wrong = setup(releases=CodeReleases(coordinator=RELEASE, consumers=("2.8.0",)))
    built = machine(wrong)
    with Simulation([RELEASE], [RELEASE]) as simulation:

        def fresh() -> Lockstep:
            return Lockstep(simulation, wrong, built, NOW)

        first = next(found for seed in range(50) if (found := walk(fresh(), Random(seed), 100)))
        short = shortened(fresh, first)
        assert (short.cause, again(fresh(), short.events)) == (first.cause, short)
        for at in range(len(short.events)):
            fewer = again(fresh(), [*short.events[:at], *short.events[at + 1 :]])
            assert fewer is None or fewer.cause != short.cause or len(fewer.events) >= len(short.events)


@needs_java
@pytest.mark.slow
def test_a_cell_that_dies_is_a_disagreement() -> None:
    with Simulation([RELEASE], [RELEASE]) as simulation:
        one = Lockstep(simulation, setup(), machine(setup()), NOW)
        one.begin()
        os.kill(simulation.pid, signal.SIGKILL)
        found = again_from(one, Event("start", 0))
        next_one = again(Lockstep(simulation, setup(), machine(setup()), NOW), ())
    assert found is not None
    assert "the simulation" in found.sentences[0]
    assert next_one is not None
    assert next_one.cause.startswith("the beginning: the simulation")


def again_from(one: Lockstep, event: Event) -> Disagreement | None:
    outcome = one.built.outcome(one.state, event)
    assert outcome is not None
    return one.step(event, outcome)


def test_what_no_second_cell_does_is_no_verdict() -> None:
    plan = LockstepPlan(setup=setup(), releases=NOW)
    died = Disagreement(events=(Event("start", 0),), sentences=("the simulation died",))
    once, twice = (LockstepResult(plan=plan, disagreement=died, seen_again=again) for again in (False, True))
    assert (once.verdict, twice.verdict) == (Verdict.INCONCLUSIVE, Verdict.VIOLATION)
    assert render(once, "dynamic").splitlines()[-3:] == [
        "the shortest run which a second simulation did not repeat:", "  1 A start", "    the simulation died"
    ]  # fmt: skip


# -- the command -----------------------------------------------------------------------------------------


@needs_java
@pytest.mark.nightly
def test_the_command_says_what_agreed(rebalance: Rebalance, tmp_path: Path) -> None:
    ran = rebalance("conform", "--code", RELEASE, "--walks", "20", "--out", str(tmp_path / "a.json"))
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"IN STEP  dynamic with coordinator {RELEASE}, consumers {RELEASE}\n")
    document = json.loads((tmp_path / "a.json").read_text())
    hold("lockstep", document)
    assert (document["verdict"], document["steps"], document["disagreement"]) == ("conformant", 2_000, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a log, or with --code"),
        (("log.jsonl", "--code", "newest"), "name a log, or with --code"),
        (("--code", "coordinator:newest"), "write code:RELEASE or coordinator:RELEASE"),
        (("--code", "3.7.0"), "3.8.0 is the oldest"),
        (("--code", "latest"), "'latest' is no release"),
        (("--code", "newest", "--scenario", "none"), "--scenario: no scenario is called 'none'"),
        (("--code", "newest", "--faults", "rain"), "no fault is called 'rain'"),
        (("--code", "newest", "--states", "9"), "--states goes with a log only"),
        (("log.jsonl", "--walks", "9"), "--walks goes with --code only"),
    ],
)
def test_what_cannot_be_walked_is_refused(
    rebalance: Rebalance, arguments: tuple[str, ...], message: str
) -> None:
    ran = rebalance("conform", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(("release", "calls"), [("3.4.1", 0), (RELEASE, 1)])
def test_who_is_closed_may_stay_in_the_group(release: str, calls: int) -> None:
    """leave.group.on.close=false, and since 4.1 an option of close, which calls the listener first."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun("unsent-leave", releases=releases) as one:
        plays(one, ALONE.removesuffix(", A enforce"))
        plays(one, "A close")
        assert len(one.group.state.coordinator.members) == 1
        assert sum(isinstance(seen, Callback) for seen in one.group.seen) == calls
        assert one.seen.deviations["closes_silently"] == 1 - calls


@needs_java
@pytest.mark.slow
def test_a_new_member_id_hides_the_loss_up_to_java_3_1() -> None:
    """U13, as the walks came upon it; the model does the same and stays in step."""
    releases = CodeReleases(coordinator=RELEASE, consumers=("2.8.1",))
    with begun(releases=releases) as one:
        plays(one, f"{ALONE}, A slow commit, A session timeout, A commit refused, A join request, A receive")
        plays(one, "A join, A join request")
        assert one.group.owned(0) != 0
