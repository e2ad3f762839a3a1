"""Runs of the model forced on Kafka's own code: bugs that were shipped show in the releases that have them.

What is expected here is the history of Kafka (its trackers), not what the replay says.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN as SHOWN
from rebalance_verifier.explore.groups.released import SPELLED, runs_for_code
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.live.code.releases import OLDEST_COORDINATOR
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.replay.on_code import observe, replay_on_code
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.properties.group.clauses import CONVERGES
from rebalance_verifier.traces import runs

from tests.command import Rebalance
from tests.live.code.played import RELEASE, needs_java
from tests.processes import alive

pytestmark = needs_java

HISTORY = {
    "prepare_not_repeated_after_reset": ("2.8.0", "2.8.1"),  # J1, KAFKA-12983
    "reset_on_retriable": ("2.8.0", "2.8.1"),  # J9, KAFKA-13214
    "reset_on_sync_rip": ("3.3.1", "3.3.2"),  # J7, KAFKA-14639
}
"""A switch -> the last release that has its bug, and the first that does not."""

OLDER = {
    "clear_member_id_on_illegal_generation": ("3.1.2", "3.2.0"),  # J5
    "prepare_commit_never_done": ("3.2.0", "3.2.1"),  # J16
    "fetch_while_pending_revocation": ("3.2.2", "3.2.3"),  # J17
    "no_heartbeat_in_completing": ("2.6.0", "2.6.1"),  # J18
    "join_rip_fatal": ("2.7.2", "2.8.0"),  # B11
    "rejoin_flag_not_latched": ("2.4.1", "2.5.0"),  # J12
    "static_leader_returns_as_follower": ("3.1.2", "3.2.0"),  # J19
    "no_sent_generation_check": ("2.5.1", "2.6.0"),  # J10
    "validate_raw_claims": ("2.8.1", "2.8.2"),  # J3
    "max_generation_only": ("3.3.2", "2.8.0"),  # J4, which came with 2.8.1
    "join_sent_after_reset": ("3.1.2", "3.2.0"),  # U11, which is back in 3.2.1
    "lost_only_without_id": ("3.1.2", "3.2.1"),  # U13
}

IN_EVERY_COORDINATOR = (
    "persist_selected_protocol_only",  # U3
    "sync_load_error_raw",  # U4
    "pending_sync_evicts_static",  # U5
    "silent_static_claims_stale",  # U6
    "static_removal_not_persisted",  # U8
    "static_replace_drops_revocation",  # U9
    "overtaken_join_believed",  # U10
    "static_rejoin_ignores_subscription",  # J20
    "static_forgets_id",  # J21, in the consumer
)

CONSUMERS = tuple(dict.fromkeys(release for pair in HISTORY.values() for release in pair))


@cache
def run(switch: str) -> SavedRun:
    found = reproduce(SHOWN[switch])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation([RELEASE], [*CONSUMERS, RELEASE]) as started:
        yield started


def played(simulation: Simulation, switch: str, consumer: str) -> Replayed:
    return replay_on_code(run(switch), CodeReleases(coordinator=RELEASE, consumers=(consumer,)), simulation)


@pytest.mark.slow
@pytest.mark.parametrize("switch", HISTORY)
def test_a_bug_shows_where_it_was_shipped_and_not_where_it_was_mended(
    simulation: Simulation, switch: str
) -> None:
    had, mended = (played(simulation, switch, release) for release in HISTORY[switch])
    assert (had.verdict, had.stopped, had.unforced) == ("same", "", [])
    assert (mended.verdict, mended.stopped, mended.unforced) == ("none", "", [])


@pytest.mark.nightly
@pytest.mark.parametrize("switch", OLDER)
def test_and_so_do_others(switch: str) -> None:
    with Simulation([RELEASE], OLDER[switch]) as older:
        assert [observed(older, switch, RELEASE, release) for release in OLDER[switch]] == ["shown", "absent"]


@pytest.mark.nightly
def test_what_was_lost_while_joining_is_given_to_nobody() -> None:
    """U11 with three members: since KAFKA-12983 was mended a stale claim is lost before it is answered, and
    the partition that was withheld for it stays with nobody."""
    strands, keeps = ("2.8.1", "3.1.2", "3.2.1", RELEASE), "2.8.0"
    [stranded] = [one for one in runs_for_code("join_sent_after_reset") if one.clause == CONVERGES.id]
    with Simulation([RELEASE], [*strands, keeps]) as several:
        found = {
            one: replay_on_code(
                stranded, CodeReleases(coordinator=RELEASE, consumers=(one,)), several
            ).verdict
            for one in (*strands, keeps)
        }
    assert found == {**dict.fromkeys(strands, "same"), keeps: "none"}


@pytest.mark.nightly
@pytest.mark.parametrize("switch", IN_EVERY_COORDINATOR)
def test_what_was_read_in_the_coordinator_is_in_it(switch: str) -> None:
    coordinators = (OLDEST_COORDINATOR, RELEASE)
    with Simulation(coordinators, [RELEASE]) as both:
        assert {observed(both, switch, one, RELEASE) for one in coordinators} == {"shown"}


def observed(simulation: Simulation, switch: str, coordinator: str, consumer: str) -> str:
    on = CodeReleases(coordinator=coordinator, consumers=(consumer,))
    return observe(runs_for_code(switch), on, simulation).seen


@pytest.mark.slow
def test_a_late_commit_still_costs_a_new_membership(simulation: Simulation) -> None:
    """U7: found in the model, and here in the newest release."""
    found = played(simulation, "late_commit_resets", RELEASE)
    assert (found.verdict, found.unforced) == ("same", [])
    assert found.broken[0].clause == "error/old"


@pytest.mark.slow
def test_a_decision_of_a_lost_generation_is_believed(simulation: Simulation) -> None:
    """U12: in the run that is spelled out, leader and assignor are Kafka's own."""
    [spelled] = [one.saved for one in SPELLED if one.shown.switch == "lost_generation_believed"]
    found = replay_on_code(spelled, CodeReleases(coordinator=RELEASE, consumers=(RELEASE,)), simulation)
    assert (found.verdict, found.stopped, found.unforced) == ("same", "", [])
    assert "t-1 is owned by A and by B" in [one.sentence for one in found.broken]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("switch", "consumer", "verdict"),
    [
        ("persist_selected_protocol_only", RELEASE, "same"),  # U3
        ("silent_static_claims_stale", "2.8.1", "same"),  # U6
        ("static_removal_not_persisted", RELEASE, "none"),  # U8, in its smallest run
        ("sync_load_error_raw", RELEASE, "same"),  # U4
        ("pending_sync_evicts_static", RELEASE, "same"),  # U5
        ("static_rejoin_ignores_subscription", RELEASE, "same"),  # J20
        ("evict_static_on_rebalance_timeout", RELEASE, "none"),  # B10
        ("no_pending_sync_expiry", RELEASE, "none"),  # B3: the group settles in the end
    ],
)
def test_what_was_read_in_the_coordinator_is_watched_in_it(
    simulation: Simulation, switch: str, consumer: str, verdict: str
) -> None:
    found = played(simulation, switch, consumer)
    assert (found.verdict, found.stopped, found.unforced) == (verdict, "", [])


@pytest.mark.slow
def test_the_same_run_has_the_same_outcome(simulation: Simulation) -> None:
    first, again = (played(simulation, "prepare_not_repeated_after_reset", "2.8.0") for _ in range(2))
    assert first == again


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["no_heartbeat_in_completing", "rebalance_timeout_zero", "no_withhold"])
def test_what_goes_another_way_where_the_switch_matters_does_not_have_it(
    simulation: Simulation, switch: str
) -> None:
    found = played(simulation, switch, RELEASE)
    assert (found.verdict, found.absent) == ("inconclusive", True)
    assert found.otherwise == found.parting


@pytest.mark.slow
def test_what_goes_another_way_before_says_nothing(simulation: Simulation) -> None:
    """Whoever joins first leads, which is not the run's leader."""
    found = played(simulation, "leader_watches_own_topics", RELEASE)
    assert (found.verdict, found.absent) == ("inconclusive", False)


@pytest.mark.slow
def test_a_jvm_that_dies_is_reported_and_leaves_nothing() -> None:
    with Simulation([RELEASE], [RELEASE]) as killed:
        os.kill(killed.pid, signal.SIGKILL)
        found = played(killed, "reset_on_retriable", RELEASE)
        assert not alive(killed.pid)
    assert (found.verdict, found.done) == ("inconclusive", 0)
    assert found.stopped.startswith("the simulation was ended by SIGKILL")


@pytest.mark.slow
def test_the_command(rebalance: Rebalance, tmp_path: Path) -> None:
    path = runs.save(run("reset_on_retriable"), tmp_path)
    ran = rebalance("replay", str(path), "--on", f"coordinator:{RELEASE},consumer:2.8.0", "--out", "kept")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.startswith("same ")
    assert f"coordinator {RELEASE}, consumers 2.8.0: breaks the same clause" in ran.out
    ran = rebalance("replay", str(path), "--on", "code:1.0.0", "--out", "kept")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
