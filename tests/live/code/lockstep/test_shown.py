"""What a released coordinator of consumer groups has of the catalogue's bugs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.groups.bugs import SERVED_SHOWN
from rebalance_verifier.live.code.lockstep.reproduce import observe_served, observed_on, singly
from rebalance_verifier.live.code.lockstep.setups import UNLIMITED_FAULTS
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.observed import ABSENT, SERVED, SHOWN, Observation
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.consumer.group import consumer_machine
from rebalance_verifier.model.machine import Event

from tests.live.code.played import needs_java

NOW = CodeReleases(coordinator=NEWEST, consumers=(NEWEST,))
OLD, NEW = "4.2.2", "4.3.1"


def test_a_step_of_an_exploration_is_single_messages():
    setup = SERVED_SHOWN["commit_epoch_equality"].setup()
    built, fine = (
        consumer_machine(setup),
        consumer_machine(replace(setup, steps="fine", budget=UNLIMITED_FAULTS)),
    )
    started = built.step(built.initial[0], Event("start", 0))
    joined = built.step(started, Event("heartbeat", 0, "A t-0"))
    steps = singly(fine, started, Event("heartbeat", 0, "A t-0"), joined)
    assert [event.action for event in steps] == ["heartbeat", "heartbeat arrives", "answer"]
    assert singly(fine, built.initial[0], Event("start", 0), started) == [Event("start", 0)]
    with pytest.raises(ValueError, match="no 6 steps of 1 lead there"):
        singly(fine, started, Event("heartbeat", 1), joined)


def test_one_that_changes_nothing_is_steps_too():
    shown = SERVED_SHOWN["reject_epoch0_of_known"]
    setup = shown.setup()
    built, fine = (
        consumer_machine(setup),
        consumer_machine(replace(setup, steps="fine", budget=UNLIMITED_FAULTS)),
    )
    state = built.initial[0]
    for event in (
        *(Event("start", 0), Event("heartbeat", 0, "A t-0 t-1"), Event("start", 1)),
        *(Event("heartbeat", 1, "A t-0, B t-1"), Event("heartbeat", 0), Event("reconcile", 0)),
        *(Event("heartbeat", 0), Event("leave lost", 0, "max poll"), Event("lose", 0)),
    ):
        state = built.step(state, event)
    again = built.step(state, Event("heartbeat", 0))
    assert again == state
    steps = [event.action for event in singly(fine, state, Event("heartbeat", 0), again)]
    assert steps == ["heartbeat", "heartbeat arrives", "answer", "lose"]


def test_a_step_that_is_one_message_is_not_another_one_that_leads_there():
    """The session of who is away may expire too, and nobody breaks a clause by that."""
    setup = SERVED_SHOWN["failover_times_away"].setup()
    built, fine = (
        consumer_machine(setup),
        consumer_machine(replace(setup, steps="fine", budget=UNLIMITED_FAULTS)),
    )
    state = built.initial[0]
    for event in (
        *(Event("start", 0), Event("heartbeat", 0, "A t-0 t-1"), Event("start", 1)),
        *(Event("heartbeat", 1, "A t-0, B t-1"), Event("heartbeat", 0), Event("close", 0)),
        Event("failover"),
    ):
        state = built.step(state, event)
    late, expires = Event("stale timeout", 0, "id 1"), Event("session expires", 0, "id 1")
    assert built.step(state, late) == built.step(state, expires)
    assert singly(fine, state, late, built.step(state, late)) == [late]


@needs_java
@pytest.mark.slow
def test_what_was_mended_is_shown_before_and_absent_since():
    """KIP-1251, as of 4.3.0."""
    shown = SERVED_SHOWN["commit_epoch_equality"]
    with Simulation([OLD, NEW], NOW.consumers) as simulation:
        seen = [observed_on(simulation, shown, replace(NOW, coordinator=one)) for one in (OLD, NEW)]
    assert seen == [Observation(SHOWN), Observation(ABSENT)]


@needs_java
@pytest.mark.nightly
def test_where_there_are_no_such_groups_nothing_is_observed():
    found = observe_served({"x": SERVED_SHOWN["overtaken_heartbeat_believed"]}, ("3.9.1", NEWEST), NEWEST)
    assert (found.part, found.releases, found.other) == (SERVED, (NEWEST,), NEWEST)
    assert found.found == {("x", NEWEST): Observation(SHOWN)}
