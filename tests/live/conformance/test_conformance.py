"""Conformance: what the model did is explained, what it cannot do is not, whoever wrote the log."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.conformance.log import LogLine
from rebalance_verifier.live.conformance.observed import (
    ALWAYS_LOGGED,
    INPUTS,
    LogCapabilities,
    Observed,
    SearchQuestion,
)
from rebalance_verifier.live.conformance.search import Conformance, conforms
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import JoinOk, Member
from rebalance_verifier.model.group.observations import Callback
from rebalance_verifier.model.group.parts import MemberState, Parts
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import Action, Event, Outcome, State

EVERYTHING = LogCapabilities(ALWAYS_LOGGED | {"joined"}, frozenset({"assigned", "revoked", "lost"}))
NO_EMPTY = LogCapabilities(ALWAYS_LOGGED | {"joined"})
CALLS = LogCapabilities(ALWAYS_LOGGED)

JOINED = {"receive join", "assign", "sync late", "sync lost"}


def log_of(setup: Setup, seed: int, steps: int, capabilities: LogCapabilities = EVERYTHING) -> list[Observed]:
    """What a random run of the model shows, a second a step: written without the code under test."""
    built, random = machine(setup), Random(seed)
    state = built.initial[0]
    log: list[Observed] = []
    for at in range(steps):
        possible = [(built.by_name[e.action, e.who], e, outcome) for e, outcome in built.outcomes(state)]
        if not possible:
            break
        weights = [{"start": 0.3, "resume": 0.3}.get(a.name, 0.05) if a.fault else 1.0 for a, *_ in possible]
        action, event, outcome = random.choices(possible, weights)[0]
        log += shown(setup, state, action, event, outcome, float(at), capabilities)
        state = built.apply(state, event, outcome)
    return log


def shown(
    setup: Setup,
    state: State,
    action: Action,
    event: Event,
    outcome: Outcome,
    at: float,
    capabilities: LogCapabilities,
) -> list[Observed]:
    built, who = machine(setup), event.who
    log: list[Observed] = []
    if who >= 0:
        member, wire = built.read(state, (f"member {letter(who)}", f"wire {letter(who)}"))
        assert isinstance(member, Member)
        if (
            isinstance(wire, JoinOk)
            and member.state is MemberState.PREPARING
            and event.action in JOINED
            and "joined" in capabilities.kinds
        ):
            log.append(Observed(at, who, "joined", generation=wire.generation))
        log += [
            Observed(at, who, seen.call.value, seen.parts)
            for seen in outcome.seen
            if isinstance(seen, Callback) and (seen.parts or seen.call.value in capabilities.empty)
        ]
    if event.action in INPUTS:
        choice = event.choice
        if INPUTS[event.action] in ("started", "subscribed"):
            after = outcome.values[action.writes.index(f"member {letter(who)}")]
            assert isinstance(after, Member)
            choice = f"topics {after.topics}"
        log.append(Observed(at, who, INPUTS[event.action], choice=choice))
    return log


def conformance(
    setup: Setup, log: list[Observed], capabilities: LogCapabilities = EVERYTHING, **more: object
) -> Conformance:
    known = dict.fromkeys(setup.slots, capabilities)
    bounds: dict[str, Any] = {"window": 0.0, **more}
    return conforms(SearchQuestion(setup=setup, events=log, capabilities=known, **bounds))


def group(
    scenario: str = "dynamic",
    members: int = 3,
    partitions: int = 3,
    *,
    faults: tuple[str, ...] = ("crash", "close", "pause"),
    budget: int = 4,
    **more: object,
) -> Setup:
    size = ScenarioSize(members=members, partitions=partitions, faults=faults, budget=budget, **more)  # type: ignore[arg-type]
    return SCENARIOS[scenario].setup(size)


# -- what the model does is explained ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covering("scenario", "profile", "observed_assignments")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("observed_assignments", [False, True])
@pytest.mark.parametrize(
    ("scenario", "profile", "capabilities"),
    [
        ("dynamic", "as-specified", EVERYTHING),
        ("dynamic", "librdkafka", NO_EMPTY),
        ("dynamic", "java-2.4", CALLS),
        ("eager", "kafka-python", EVERYTHING),
        ("mixed", "java-current", EVERYTHING),
    ],
)
def test_a_run_of_the_model_is_explained(
    scenario: str, profile: str, capabilities: LogCapabilities, observed_assignments: bool, seed: int
) -> None:
    setup = group(scenario, partitions=2, profiles=(profile,))
    log = log_of(setup, seed, 120, capabilities)
    found = conformance(setup, log, capabilities, observed_assignments=observed_assignments)
    assert found.verdict == "explained"
    assert found.longest == len(log) > 10
    assert sorted(position for step in found.witness for position in step.shows) == list(range(len(log)))


@pytest.mark.parametrize("seed", range(4))
def test_subscriptions_topics_and_static_members(seed: int) -> None:
    faults = ("resubscribe", "unsubscribe", "topic grows", "crash")
    setup = group("topics", 2, 2, faults=faults, budget=5)
    assert conformance(setup, log_of(setup, seed, 100)).verdict == "explained"
    setup = group("static", 2, 2, faults=("crash", "pause"))
    assert conformance(setup, log_of(setup, seed, 100)).verdict == "explained"


@pytest.mark.slow
def test_hidden_faults_take_a_budget() -> None:
    setup = group(members=2, partitions=2, faults=("disconnect", "slow network", "session timeout"), budget=2)
    logs = [log_of(setup, seed, 40) for seed in (0, 3, 4)]  # in each of these runs a fault shows
    hidden = [conformance(setup, log, EVERYTHING, faults=setup.faults, budget=2).verdict for log in logs]
    assert hidden == ["explained"] * 3
    assert [conformance(setup, log).verdict for log in logs] == ["mismatch"] * 3


def test_the_witness_is_a_run_of_the_model() -> None:
    setup = group(partitions=2)
    log = log_of(setup, 1, 100)
    found = conformance(setup, log)
    built = machine(replace(setup, budget=100))
    state, seen = built.initial[0], list[tuple[int, str, Parts | None]]()
    for step in found.witness:
        assert step.event is not None
        after = next(o for e, o in built.outcomes(state) if e == step.event)
        action = built.by_name[step.event.action, step.event.who]
        made = shown(setup, state, action, step.event, after, 0.0, EVERYTHING)
        assert len(made) == len(step.shows)
        seen += [(e.who, e.kind, e.parts) for e in made]
        state = built.apply(state, step.event, after)
    assert seen == [(e.who, e.kind, e.parts) for e in log]


def test_a_log_may_begin_at_any_generation() -> None:
    setup = group(members=2, partitions=2)
    log = [e if e.generation is None else e._replace(generation=e.generation + 100) for e in HAND_OVER]
    assert conformance(setup, log).verdict == "explained"
    log[10] = log[10]._replace(generation=1000)
    assert conformance(setup, log).verdict == "mismatch"


# -- what it cannot do is not --------------------------------------------------------------------------

A, B = 0, 1
HAND_OVER = [
    Observed(0, A, "started"),
    Observed(1, A, "joined", generation=5),
    Observed(2, A, "assigned", Parts(0b11)),
    Observed(3, B, "started"),
    Observed(4, A, "joined", generation=6),
    Observed(5, B, "joined", generation=6),
    Observed(6, A, "revoked", Parts(0b10)),
    Observed(7, A, "assigned", Parts(0)),
    Observed(8, B, "assigned", Parts(0)),
    Observed(9, A, "joined", generation=7),
    Observed(10, B, "joined", generation=7),
    Observed(11, A, "assigned", Parts(0)),
    Observed(12, B, "assigned", Parts(0b10)),
    Observed(13, A, "revoked", Parts(0b01)),
    Observed(14, A, "closed"),
]
"""B joins A and gets a partition in the second round; then A closes."""


def changed(*edits: tuple[int, Observed | None]) -> list[Observed]:
    by_place = dict(edits)
    return [new for n, event in enumerate(HAND_OVER) if (new := by_place.get(n, event)) is not None]


@pytest.mark.parametrize("observed_assignments", [False, True])
def test_a_hand_over_is_explained(observed_assignments: bool) -> None:
    setup = group(members=2, partitions=2)
    assert conformance(setup, HAND_OVER, observed_assignments=observed_assignments).verdict == "explained"


@pytest.mark.parametrize("observed_assignments", [False, True])
@pytest.mark.parametrize(
    ("log", "blamed", "allowed"),
    [
        (changed((6, None)), 6, "A: revoked t-1, assigned -"),
        (changed((6, HAND_OVER[7]._replace(at=6)), (7, HAND_OVER[6]._replace(at=7))), 6, ""),
        (changed((12, HAND_OVER[12]._replace(parts=Parts(0b11)))), 12, ""),
        (changed((8, HAND_OVER[12]._replace(at=8))), 8, "B: assigned -"),
        (changed((13, None)), 13, ""),
        (changed((13, HAND_OVER[13]._replace(kind="lost"))), 13, ""),
        (changed((10, None)), 11, "B: joined generation 7"),
        (changed((5, HAND_OVER[5]._replace(generation=7))), 5, "B: joined generation 6"),
    ],
    ids=[
        "no revoked",
        "swapped",
        "two owners",
        "too early",
        "closed owning",
        "lost",
        "no join",
        "generation",
    ],
)
def test_what_no_run_shows_is_a_mismatch(
    log: list[Observed], blamed: int, allowed: str, observed_assignments: bool
) -> None:
    found = conformance(group(members=2, partitions=2), log, observed_assignments=observed_assignments)
    assert found.verdict == "mismatch"
    assert found.blamed is not None
    if not observed_assignments:  # a leader of its own may find a run that gets further
        assert found.blamed == blamed
        assert not allowed or allowed in dict(found.allowed)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("kind", ["revoked", "assigned", "swapped"])
def test_a_changed_run_is_a_mismatch(kind: str) -> None:
    setup, random, judged = group(partitions=3, faults=("close",), budget=2), Random(7), 0
    for seed in range(3):
        log = log_of(setup, seed, 120)
        calls = [n for n, event in enumerate(log) if event.parts]
        if kind == "revoked":
            del log[random.choice([n for n in calls if log[n].kind == "revoked"])]
        elif kind == "assigned":
            position = random.choice(
                [n for n in calls if log[n].kind == "assigned" and log[n].parts != 0b111]
            )
            log[position] = log[position]._replace(parts=Parts(0b111))
        else:
            mine = [n for n in calls if log[n].who == log[calls[0]].who]
            different = [(n, m) for n, m in pairwise(mine) if log[n][2:] != log[m][2:]]
            if not different:
                continue
            one, other = different[0]
            log[one], log[other] = (
                log[other]._replace(at=log[one].at),
                log[one]._replace(at=log[other].at),
            )
        judged += 1
        assert conformance(setup, log).verdict == "mismatch"
    assert judged


@pytest.mark.slow
@pytest.mark.covering("faults")
@pytest.mark.parametrize(
    ("switch", "faults"),
    [
        ("skip_empty_assigned_cb", ()),
        ("assigned_cb_repeated", ()),
        ("claims_always_empty", ()),
        ("no_withhold", ()),
        ("reset_on_sync_rip", ()),
        ("clear_before_leave_prepare", ("close",)),
        ("lost_as_revoked", ("pause",)),
        pytest.param("prepare_not_repeated_after_reset", ("pause",), marks=pytest.mark.nightly),
    ],
)
def test_a_log_made_with_a_switch_takes_the_switch(switch: str, faults: tuple[str, ...]) -> None:
    made = group(partitions=2, faults=faults, budget=3, switches=(switch,))
    without = group(partitions=2, faults=faults, budget=3)
    for seed in range(30):
        log = log_of(made, seed, 90)
        assert conformance(made, log).verdict == "explained"
        if conformance(without, log).verdict == "mismatch":
            return
    pytest.fail(f"no log of 30 shows {switch}")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "A assigned"),
        ({"partitions": ()}, "A assigned -"),
        ({"partitions": ("t-0", "t-1"), "generation": 0}, "A assigned t-0 t-1 generation 0"),
        ({"partitions": (), "topics": ("t",)}, "A assigned -"),
        ({"topics": (), "detail": "late"}, "A assigned - (late)"),
    ],
)
def test_a_line_that_names_no_partitions_is_not_one_that_has_none(more: dict[str, Any], text: str) -> None:
    assert str(LogLine(number=1, at=0.0, event="assigned", consumer="A", **more)) == text


# -- the search ----------------------------------------------------------------------------------------


def test_events_within_the_window_may_have_happened_in_either_order() -> None:
    log = sorted(changed((4, HAND_OVER[4]._replace(at=2.5))), key=lambda event: event.at)
    setup = group(members=2, partitions=2)
    assert conformance(setup, log).verdict == "mismatch"  # nobody came, and A joined again
    assert conformance(setup, log, window=0.4).verdict == "mismatch"
    assert conformance(setup, log, window=0.5).verdict == "explained"


def test_a_limit_is_inconclusive() -> None:
    setup = group(partitions=2)
    log = log_of(setup, 0, 100)
    found = conformance(setup, log, limit=20)
    assert found.verdict == "inconclusive"
    assert found.longest < len(log)
    assert found.why == "more than 20 pairs of state and events explained"
    assert conformance(setup, changed((6, None)), limit=3).verdict == "inconclusive"


def test_what_cannot_be_asked() -> None:
    setup = group(members=2, partitions=2)
    with pytest.raises(ValueError, match="'polled'"):
        conformance(setup, [Observed(0, A, "polled")])
    with pytest.raises(ValueError, match="no consumer number 2"):
        conformance(setup, [Observed(0, 2, "started")])
