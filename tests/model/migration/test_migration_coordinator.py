"""What a coordinator answers to a member of the classic protocol, in a consumer group and in a classic one.

The cases follow Kafka's ``classicGroupJoinToConsumerGroup`` and its SyncGroup, Heartbeat and LeaveGroup.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.coordinator import returned
from rebalance_verifier.model.group.observations import Noted, TurnedAway
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    ClusterState,
    Error,
    Generation,
    GroupState,
    Life,
    MemberState,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Event, Outcome
from rebalance_verifier.model.migration.coordinator import (
    arrives,
    decides,
    heartbeat,
    join_phase_ends,
    refuses,
)
from rebalance_verifier.model.protocols import machine

BOTH, P0, P1 = Parts(0b11), Parts(0b01), Parts(0b10)
STABLE, UNREVOKED, UNRELEASED = s.RecordState
JOIN, JOIN_WAITS, JOIN_OK, SYNC, SYNC_WAITS, SYNC_OK, REFUSED = s.ClassicStep
A, B = 0, 1


def setup(*switches: str, name: str = "migration-failover") -> Setup:
    """A of the consumer protocol, B of the classic one, which is COOPERATIVE."""
    return SCENARIOS[name].setup(ScenarioSize(naming="given", switches=switches))


def me(*switches: str, name: str = "migration-failover") -> MemberContext:
    return MemberContext(Slot(B), setup(*switches, name=name))


def consumers(epoch: int = 3, assigned: int | None = None) -> s.ConsumerGroup:
    target = epoch if assigned is None else assigned
    return s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(epoch), Generation(target), BOTH)


def classic(phase: GroupState = GroupState.STABLE) -> s.ConsumerGroup:
    return s.ConsumerGroup(s.GroupKind.CLASSIC, Generation(3), Generation(3), BOTH, phase)


def record(number: int = 1, **fields: Any) -> s.ConsumerRecord:
    """A classic member of a consumer group that is settled in epoch 3, with the second partition."""
    usual: dict[str, Any] = {
        "epoch": 3,
        "previous": 3,
        "assigned": P1,
        "target": P1,
        "topics": 1,
        "classic": True,
    }
    return s.ConsumerRecord(number, **usual | fields)


OTHER = s.ConsumerRecord(1, Generation(3), Generation(3), assigned=P0, target=P0, topics=Topics(1))
"""Who speaks the consumer protocol."""


def message(step: s.ClassicStep, **fields: Any) -> s.ClassicMessage:
    usual: dict[str, Any] = {"id": 1, "generation": Generation(3), "topics": Topics(1) if step is JOIN else 0}
    return s.ClassicMessage(step, **usual | fields)


def only(outcomes: Any) -> Any:
    """The one outcome; ``values`` are of many kinds, and each test knows which."""
    [outcome] = outcomes
    assert isinstance(outcome, Outcome)
    return outcome


def answered(
    of: s.ClassicMessage,
    group: s.ConsumerGroup,
    *mine: s.ConsumerRecord,
    other: Any = (OTHER,),
    who: MemberContext | None = None,
) -> Any:
    who = who or me()
    return only(arrives(who, of, group, ClusterState(BOTH), other, mine))


# -- JoinGroup in a consumer group ---------------------------------------------------------------------


def test_a_member_that_owns_what_it_was_given_joins_at_its_epoch():
    answer, group, other, mine = answered(message(JOIN, parts=P1), consumers(), record()).values
    assert answer == message(JOIN_OK, topics=0, parts=NOTHING)
    assert (group, other, mine) == (consumers(), (OTHER,), (record(),))


def test_a_new_member_takes_its_first_step_to_the_target_and_waits_for_nobody():
    alone = OTHER._replace(assigned=BOTH, target=BOTH)
    outcome = answered(message(JOIN, generation=NONE), consumers(), other=(alone,))
    answer, group, [other], [mine] = outcome.values
    assert (answer.step, answer.generation) == (JOIN_OK, 4)  # the epoch is its generation
    assert (group.epoch, group.assigned) == (4, 4)
    assert (mine.classic, mine.epoch, mine.state, mine.assigned, mine.target) == (True, 4, UNRELEASED, 0, P1)
    assert other == alone._replace(target=P0)
    assert Noted("classic member in a consumer group") in outcome.seen


@pytest.mark.parametrize(
    ("claim", "state", "epoch", "assigned", "pending"),
    [
        (BOTH, UNREVOKED, 3, P0, P1),  # COOPERATIVE: it has what it is to give up
        (P0, STABLE, 4, P0, NOTHING),  # it has given it up, and joins again
        (NOTHING, STABLE, 4, P0, NOTHING),  # EAGER: it has given up everything before
    ],
)
def test_what_it_claims_is_what_it_is_waited_for(claim, state, epoch, assigned, pending):
    before = record(assigned=BOTH, target=P0)
    outcome = answered(message(JOIN, parts=claim), consumers(4), before, other=())
    [mine] = outcome.values[3]
    assert (mine.state, mine.epoch, mine.assigned, mine.pending) == (state, epoch, assigned, pending)
    assert outcome.values[0].generation == epoch


@pytest.mark.parametrize(
    ("generation", "switches", "step"),
    [
        (3, (), REFUSED),  # it owns something under an id that is not one
        (NONE, (), JOIN_OK),
        (3, ("unknown_member_admitted",), JOIN_OK),  # as shipped
    ],
)
def test_an_id_that_is_not_known_is_refused_where_its_sender_was_a_member(generation, switches, step):
    outcome = answered(message(JOIN, generation=Generation(generation)), consumers(), who=me(*switches))
    assert outcome.values[0].step is step
    assert bool(outcome.values[3]) is (step is JOIN_OK)
    if step is REFUSED:
        assert outcome.values[0].error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("before", "switches", "kind"),
    [
        (
            OTHER,
            (),
            s.GroupKind.CLASSIC,
        ),  # the last member of the consumer protocol is replaced (KAFKA-17317)
        (OTHER, ("no_downgrade_on_replace",), s.GroupKind.CONSUMER),
        (record(), (), s.GroupKind.CONSUMER),
    ],
)
def test_a_classic_process_in_the_name_of_the_last_other_one_takes_the_group_back(before, switches, kind):
    who = me(*switches, name="migration-static")
    group = consumers()
    outcome = answered(message(JOIN, id=2, generation=NONE), group, before, other=(), who=who)
    assert outcome.values[1].kind is kind
    [mine] = outcome.values[3]
    assert (mine.id, mine.classic, mine.assigned) == (
        2,
        True,
        before.assigned if kind is s.GroupKind.CLASSIC else mine.assigned,
    )


@pytest.mark.parametrize(
    ("group", "topics", "generation"),
    [
        (consumers(), Topics(1), 3),  # it subscribes to less: the group's epoch becomes 4 in this request
        (consumers(5, assigned=3), Topics(3), 5),  # it was due before
    ],
)
def test_a_target_that_is_due_is_left_to_the_classic_group(
    group: s.ConsumerGroup, topics: Topics, generation: int
) -> None:
    """Found in lockstep with Kafka, whose answer names generation 0."""
    before = OTHER._replace(topics=Topics(3))
    sent = message(JOIN, id=2, generation=NONE, topics=topics)
    outcome = answered(sent, group, before, other=(), who=me(name="migration-patterns"))
    answer, after, _, [mine] = outcome.values
    assert (answer.step, answer.generation) == (JOIN_OK, NONE)
    assert (after.kind, after.phase, after.epoch) == (s.GroupKind.CLASSIC, GroupState.PREPARING, generation)
    assert (mine.id, mine.assigned, mine.topics, mine.joined) == (2, P0, topics, False)


MISSES, IN_VAIN = "downgrade_misses_due_target", "downgrade_computes_in_vain"


@pytest.mark.parametrize(
    ("decision", "group", "topics", "generation", "phase"),
    [
        (MISSES, consumers(5, assigned=3), Topics(3), 3, GroupState.STABLE),
        (MISSES, consumers(5, assigned=3), Topics(1), NONE, GroupState.PREPARING),
        (IN_VAIN, consumers(5, assigned=3), Topics(3), 5, GroupState.STABLE),
        (IN_VAIN, consumers(5, assigned=3), Topics(1), 6, GroupState.STABLE),
        (IN_VAIN, consumers(), Topics(3), 3, GroupState.STABLE),  # no target is due
    ],
)
def test_in_older_releases_the_group_may_not_rebalance_for_it(
    decision: str, group: s.ConsumerGroup, topics: Topics, generation: int, phase: GroupState
) -> None:
    """Before 4.3.0 it does so for another subscription alone, and in the first ones not even then. What is
    stored is the target of before, in the epoch of before."""
    before = OTHER._replace(topics=Topics(3))
    sent = message(JOIN, id=2, generation=NONE, topics=topics)
    who = me(name="migration-patterns")
    who = replace(who, setup=replace(who.setup, coordinator=frozenset({decision, "downgrade_to_target"})))
    outcome = answered(sent, group, before, other=(), who=who)
    answer, after, _, [mine] = outcome.values
    assert (answer.step, answer.generation) == (JOIN_OK, generation)
    assert (after.kind, after.phase, after.epoch) == (s.GroupKind.CLASSIC, phase, group.epoch)
    assert (mine.id, mine.assigned, mine.topics) == (2, P0, topics)


# -- SyncGroup in a consumer group ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "group", "generation", "answer"),
    [
        ({}, consumers(), 3, P1),
        ({}, consumers(), 2, Error.ILLEGAL_GENERATION),  # no epoch before is accepted
        ({}, consumers(), 4, Error.ILLEGAL_GENERATION),
        ({}, consumers(4), 3, Error.REBALANCE_IN_PROGRESS),  # there is a newer target
        ({"state": UNREVOKED, "assigned": NOTHING, "pending": P1}, consumers(4), 3, NOTHING),  # what it keeps
        ({"state": UNRELEASED, "target": BOTH}, consumers(), 3, P1),
        ({"classic": False}, consumers(), 3, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_is_answered_with_what_is_assigned_by_now(fields, group, generation, answer):
    outcome = answered(message(SYNC, generation=Generation(generation)), group, record(**fields))
    said = outcome.values[0]
    assert said.error == (answer if isinstance(answer, Error) else "")
    assert said.step is (REFUSED if isinstance(answer, Error) else SYNC_OK)
    if said.step is SYNC_OK:
        assert said.parts == answer
    assert outcome.values[1:] == (group, (OTHER,), (record(**fields),))  # it writes nothing


def test_a_sync_of_nobody_is_refused():
    assert answered(message(SYNC), consumers()).values[0].error is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("switches", "step"), [((), REFUSED), (("rejoin_on_target_epoch",), SYNC_OK)])
def test_since_4_3_a_member_rejoins_for_a_target_and_not_for_an_epoch_without_one(switches, step):
    late = consumers(4, assigned=3)
    assert answered(message(SYNC), late, record(), who=me(*switches)).values[0].step is step
    called = heartbeat(me(*switches), MEMBER, late, ((OTHER,), (record(),)))
    assert called is (Error.REBALANCE_IN_PROGRESS if step is REFUSED else None)


# -- Heartbeat -----------------------------------------------------------------------------------------

MEMBER = s.ClassicMember(Life.UP, 0, MemberState.STABLE, 1, Generation(3), P1, P1, False, Topics(1))


@pytest.mark.parametrize(
    ("group", "mine", "generation", "error"),
    [
        (consumers(), record(), 3, None),
        (consumers(), record(2), 3, Error.UNKNOWN_MEMBER_ID),
        (consumers(), record(classic=False), 3, Error.UNKNOWN_MEMBER_ID),
        (consumers(), record(), 2, Error.ILLEGAL_GENERATION),
        (consumers(4), record(), 3, Error.REBALANCE_IN_PROGRESS),
        (consumers(), record(state=UNREVOKED), 3, Error.REBALANCE_IN_PROGRESS),
        (consumers(), record(state=UNRELEASED, target=BOTH), 3, None),  # what it waits for is held
        (consumers(), record(state=UNRELEASED, target=P1, assigned=NOTHING), 3, Error.REBALANCE_IN_PROGRESS),
        (classic(), record(), 3, None),
        (classic(), record(), 2, Error.ILLEGAL_GENERATION),
        (classic(GroupState.PREPARING), record(), 3, Error.REBALANCE_IN_PROGRESS),
        (classic(GroupState.COMPLETING), record(), 3, None),
    ],
)
def test_a_heartbeat_calls_who_has_a_step_to_take(group, mine, generation, error):
    member = MEMBER._replace(generation=Generation(generation))
    assert heartbeat(me(), member, group, ((OTHER,), (mine,))) is error


# -- the classic group ---------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [GroupState.EMPTY, GroupState.STABLE, GroupState.PREPARING])
def test_a_join_begins_a_rebalance_and_waits(phase):
    mine = () if phase is GroupState.EMPTY else (record(),)
    outcome = answered(message(JOIN, parts=P1, generation=NONE), classic(phase), *mine, other=())
    answer, group, _, [joined] = outcome.values
    assert answer.step is JOIN_WAITS
    assert (group.phase, group.interrupted) == (GroupState.PREPARING, False)
    assert (joined.joined, joined.claim) == (True, P1)


def test_a_join_while_the_leader_assigns_leaves_nobody_an_assignment():
    other = record(assigned=P0)
    outcome = answered(message(JOIN, parts=P1), classic(GroupState.COMPLETING), record(), other=(other,))
    _, group, [one], [mine] = outcome.values
    assert (group.phase, group.interrupted) == (GroupState.PREPARING, True)
    assert (one.assigned, mine.assigned) == (NOTHING, NOTHING)


@pytest.mark.parametrize(
    ("fields", "switches", "step"),
    [
        ({"assigned": P1, "claim": P1}, (), JOIN_OK),  # its place is kept
        ({"assigned": P1, "claim": BOTH}, (), JOIN_WAITS),  # it was still to give something up
        ({"assigned": P1, "claim": BOTH}, ("static_replace_drops_revocation",), JOIN_OK),
    ],
)
def test_a_static_member_comes_back_to_a_stable_group_without_a_rebalance(fields, switches, step):
    who = me(*switches, name="migration-static")
    outcome = answered(message(JOIN, id=2, generation=NONE), classic(), record(**fields), other=(), who=who)
    answer, group, _, [mine] = outcome.values
    assert (answer.step, mine.id, mine.assigned) == (step, 2, P1)
    assert group.phase is (GroupState.STABLE if step is JOIN_OK else GroupState.PREPARING)


@pytest.mark.parametrize(
    ("phase", "generation", "answer"),
    [
        (GroupState.STABLE, 3, SYNC_OK),
        (GroupState.COMPLETING, 3, SYNC_WAITS),
        (GroupState.PREPARING, 3, Error.REBALANCE_IN_PROGRESS),
        (GroupState.STABLE, 2, Error.ILLEGAL_GENERATION),
    ],
)
def test_a_sync_in_a_classic_group(phase, generation, answer):
    outcome = answered(message(SYNC, generation=Generation(generation)), classic(phase), record(), other=())
    said = outcome.values[0]
    assert (said.error or said.step) == answer


PAIR = ((record(joined=True, claim=P0, assigned=P0),), (record(joined=True, claim=P1, assigned=P1),))
WAITS = message(JOIN_WAITS)


def test_a_join_phase_ends_when_everybody_has_joined():
    group = classic(GroupState.PREPARING)
    ended = only(join_phase_ends(setup(), group, *PAIR, WAITS, WAITS))
    after, *rest = ended.values
    assert (after.phase, after.epoch, after.assigned) == (GroupState.COMPLETING, 4, 4)
    assert [one.joined for [one] in rest[:2]] == [False, False]
    assert [wire.step for wire in rest[2:]] == [JOIN_OK, JOIN_OK]
    assert {wire.generation for wire in rest[2:]} == {4}
    missing = (PAIR[0], (record(),))
    assert list(join_phase_ends(setup(), group, *missing, WAITS, None)) == []
    assert list(join_phase_ends(setup(), classic(), *PAIR, WAITS, WAITS)) == []
    assert list(join_phase_ends(setup(), group, (), (), None, None)) == []
    assert list(join_phase_ends(setup(), consumers(), *PAIR, WAITS, WAITS)) == []


@pytest.mark.parametrize(
    ("claims", "assigned"),
    [
        ((P0, P1), (P0, P1)),
        ((BOTH, NOTHING), (P0, NOTHING)),  # what A claims is withheld from B
        ((NOTHING, NOTHING), (P0, P1)),
    ],
)
def test_the_leader_withholds_what_another_member_claims(claims, assigned):
    book = tuple((record(claim=claim, assigned=NOTHING),) for claim in claims)
    syncs = (message(SYNC_WAITS), message(SYNC_WAITS))
    decided = only(decides(setup(), classic(GroupState.COMPLETING), ClusterState(BOTH), *book, *syncs))
    group, *rest = decided.values
    assert group.phase is GroupState.STABLE
    assert tuple(one.assigned for [one] in rest[:2]) == assigned
    assert [(wire.step, wire.parts) for wire in rest[2:]] == [(SYNC_OK, parts) for parts in assigned]


def test_nobody_decides_before_a_sync_of_the_generation_waits():
    completing, cluster = classic(GroupState.COMPLETING), ClusterState(BOTH)
    assert list(decides(setup(), completing, cluster, *PAIR, None, None)) == []
    old = message(SYNC_WAITS, generation=Generation(2))
    assert list(decides(setup(), completing, cluster, *PAIR, old, None)) == []
    assert list(decides(setup(), classic(), cluster, *PAIR, message(SYNC_WAITS), None)) == []


@pytest.mark.parametrize(
    ("step", "group", "mine", "error"),
    [
        (JOIN_WAITS, classic(GroupState.PREPARING), (record(joined=True),), None),
        (JOIN_WAITS, classic(GroupState.PREPARING), (), Error.UNKNOWN_MEMBER_ID),
        (JOIN_WAITS, consumers(), (record(),), Error.REBALANCE_IN_PROGRESS),  # the group was converted
        (JOIN_WAITS, consumers(), (record(joined=True),), Error.REBALANCE_IN_PROGRESS),
        (SYNC_WAITS, classic(GroupState.COMPLETING), (record(),), None),
        (SYNC_WAITS, classic(GroupState.PREPARING), (record(),), Error.REBALANCE_IN_PROGRESS),
        (SYNC_WAITS, classic(GroupState.COMPLETING), (), Error.UNKNOWN_MEMBER_ID),
        (SYNC_WAITS, consumers(), (record(),), Error.REBALANCE_IN_PROGRESS),
    ],
)
def test_a_request_that_waits_for_what_will_not_come_is_refused(step, group, mine, error):
    outcomes: list[Any] = list(refuses(me(), message(step), group, mine))
    assert [outcome.values[0].error for outcome in outcomes] == ([] if error is None else [error])


# -- a limit of members --------------------------------------------------------------------------------

FULL = Error.GROUP_MAX_SIZE_REACHED
PREPARING, COMPLETING = GroupState.PREPARING, GroupState.COMPLETING


def crowded(*switches: str, name: str = "migration-failover") -> MemberContext:
    """B of a group that one member fills."""
    return MemberContext(Slot(B), replace(setup(*switches, name=name), max_size=1))


@pytest.mark.parametrize(
    ("group", "generation", "error"),
    [
        (consumers(), NONE, FULL),
        (consumers(), 3, FULL),  # which is said before that its id is not known
        (classic(), NONE, FULL),
        (classic(COMPLETING), NONE, FULL),
        (classic(PREPARING), NONE, None),  # the other has not come
        (s.ConsumerGroup(), NONE, None),
    ],
)
def test_a_full_group_turns_away_a_classic_member(
    group: s.ConsumerGroup, generation: int, error: Error | None
):
    asking = message(JOIN, generation=generation)
    done = answered(
        asking, group, other=(OTHER,) if group.kind is not s.GroupKind.NONE else (), who=crowded()
    )
    assert (done.values[0].error or None) == error
    assert (TurnedAway(Slot(B), False) in done.seen) is (error is not None)
    if error is not None:
        assert done.values[1:] == (group, (OTHER,), ())
    known = answered(message(JOIN, parts=P1), group, record(), who=crowded())
    assert known.values[0].step is not REFUSED


def test_while_a_classic_group_joins_who_comes_last_loses_its_place():
    came = (record(joined=True),)
    done = answered(message(JOIN), classic(PREPARING), record(), other=came, who=crowded())
    assert (done.values[0].error, done.values[2:]) == (FULL, (came, ()))
    assert done.seen == (TurnedAway(Slot(B), False),)
    again = answered(message(JOIN), classic(PREPARING), record(joined=True), other=came, who=crowded())
    assert again.values[0].step is JOIN_WAITS


@pytest.mark.parametrize(
    ("group", "switch"),
    [(consumers(), "full_group_refuses_static"), (classic(), "full_classic_refuses_static")],
)
def test_a_static_member_of_a_full_group_comes_back(group: s.ConsumerGroup, switch: str):
    asking = message(JOIN, id=2, generation=NONE)
    for switches, refused in (((), False), ((switch,), True)):
        who = crowded(*switches, name="migration-static")
        done = answered(asking, group, record(), other=(), who=who)
        assert (done.values[0].error == FULL) is refused
        assert (TurnedAway(Slot(B), True) in done.seen) is refused


# -- a rebalance timeout that a failover has set -------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "actions"),
    [
        ({"timed": None}, set()),  # a classic member has none
        ({"timed": P0}, {"slow member"}),
        ({"timed": P1}, {"stale timeout"}),
    ],
)
def test_a_classic_member_has_a_timeout_after_a_failover_alone(fields: dict[str, Any], actions: set[str]):
    """By mistake; it passes for a member that is slow, and for one that is not."""
    built = machine(setup("failover_times_classic"))
    revokes = record(state=UNREVOKED, assigned=P1, pending=P0, epoch=2, **fields)
    at_work = s.ClassicMember(Life.UP, id=1, generation=Generation(2), topics=Topics(1), owned=BOTH)
    state = built.initial[0]
    for name, value in {"group": consumers(), "member B": at_work, "record B": (revokes,)}.items():
        state = built.put(state, name, value)
    found = {event.action for event, _ in built.outcomes(state) if event.who == B}
    assert found & {"slow member", "stale timeout"} == actions


def test_a_failover_sets_it_for_the_members_of_a_consumer_group():
    built = machine(setup("failover_times_classic"))
    revokes = record(state=UNREVOKED, pending=P0)
    state = built.put(built.put(built.initial[0], "group", consumers()), "record B", (revokes,))
    assert built.value(built.step(state, Event("failover")), "record B") == (revokes._replace(timed=P0),)
    as_specified = machine(setup())
    assert as_specified.value(as_specified.step(state, Event("failover")), "record B") == (revokes,)
    assert returned(revokes._replace(timed=P0), 2).timed is None
