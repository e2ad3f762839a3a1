"""One heartbeat at the coordinator of a consumer group: what it is answered, and what it changes.

The cases follow Kafka's ``GroupMetadataManager.consumerGroupHeartbeat`` (KIP-848): joins, epochs, leaves,
static members, targets, what an answer carries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.coordinator import (
    Handled,
    TargetMember,
    accepted,
    heartbeat,
    held_by_others,
    late_arrives,
    target_members,
    targets,
)
from rebalance_verifier.model.consumer.observations import BeatAnswered, Committed, Granted
from rebalance_verifier.model.group.observations import Noted, TurnedAway
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    Generation,
    GroupState,
    Late,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.protocols import machine

JOIN, STEADY, LEAVE, AWAY = s.BeatKind
STABLE, UNREVOKED, UNRELEASED = s.RecordState
BOTH, P0, P1 = Parts(0b11), Parts(0b01), Parts(0b10)
A, B = 0, 1


def setup(*switches: str, name: str = "consumer", **size: Any) -> Setup:
    chosen: dict[str, Any] = {"members": 2, "partitions": 2, "naming": "given"} | size
    return SCENARIOS[name].setup(ScenarioSize(switches=switches, **chosen))


def group(epoch: int = 3, assigned: int | None = None, known: int = BOTH) -> s.ConsumerGroup:
    target = epoch if assigned is None else assigned
    return s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(epoch), Generation(target), Parts(known))


def record(number: int = 1, **fields: Any) -> s.ConsumerRecord:
    """A member that is settled in epoch 3, with both partitions unless told otherwise."""
    usual: dict[str, Any] = {
        "epoch": 3,
        "previous": 3,
        "assigned": BOTH,
        "target": BOTH,
        "topics": 1,
    } | fields
    return s.ConsumerRecord(number, **usual)


def beat(kind: s.BeatKind = STEADY, number: int = 1, epoch: int = 3, **fields: Any) -> s.Beat:
    """One heartbeat; a join shows no epoch, has nothing, and carries every field."""
    joins = kind is not STEADY
    usual: dict[str, Any] = {"owned": NOTHING if kind is JOIN else None, "full": joins, "topics": 1} | fields
    return s.Beat(kind, number, NONE if joins else Generation(epoch), **usual)


def handled(
    of: s.Beat,
    before: s.ConsumerGroup,
    *book: tuple[s.ConsumerRecord, ...],
    who: int = A,
    within: Setup | None = None,
    cluster: int = BOTH,
) -> Handled:
    """What the one heartbeat does; the target has one naming here."""
    within = within or setup()
    whole = (*book, *((),) * (len(within.consumers) - len(book)))
    [done] = heartbeat(MemberContext(Slot(who), within), of, before, whole, Parts(cluster))
    return done


def ok(number: int, epoch: int, parts: int | None) -> s.BeatOk:
    return s.BeatOk(number, Generation(epoch), None if parts is None else Parts(parts))


def error_of(done: Handled) -> s.BeatError | None:
    return done.answer.error if isinstance(done.answer, s.BeatRefused) else None


# -- which epoch is accepted ---------------------------------------------------------------------------

LOST: dict[str, Any] = {"epoch": 3, "previous": 2, "assigned": P0, "target": P0}
"""A member whose last answer, which took it from epoch 2 to 3, may be lost."""


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (3, None, None),
        (3, BOTH, None),  # whatever it claims
        (2, P0, None),
        (2, NOTHING, None),
        (2, None, s.BeatError.FENCED_MEMBER_EPOCH),  # a lost answer makes it send every field
        (2, P1, s.BeatError.FENCED_MEMBER_EPOCH),  # which it was not given
        (2, BOTH, s.BeatError.FENCED_MEMBER_EPOCH),
        (1, P0, s.BeatError.FENCED_MEMBER_EPOCH),
        (4, P0, s.BeatError.FENCED_MEMBER_EPOCH),
    ],
)
def test_a_heartbeat_shows_the_members_epoch_or_the_one_before_with_what_it_was_given(epoch, owned, error):
    done = handled(beat(epoch=epoch, owned=owned), group(), (record(**LOST),))
    assert error_of(done) is error
    if error is not None:
        assert done.group == group()
        assert done.book == ((record(**LOST),), ())
        assert done.seen == (BeatAnswered(Slot(A), STEADY, error, True),)


@pytest.mark.parametrize(
    ("before", "book", "error"),
    [
        (group(), (record(2),), s.BeatError.UNKNOWN_MEMBER_ID),
        (group(), (), s.BeatError.UNKNOWN_MEMBER_ID),
        (s.ConsumerGroup(), (), s.BeatError.GROUP_ID_NOT_FOUND),
        (group()._replace(kind=s.GroupKind.CLASSIC), (record(),), s.BeatError.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_heartbeat_of_nobody_or_to_no_consumer_group_is_refused(before, book, error):
    assert error_of(handled(beat(), before, book)) is error


def test_a_static_member_whose_name_another_one_has_is_fenced():
    static = setup(name="consumer-static")
    assert error_of(handled(beat(), group(), (record(2),), within=static)) is s.BeatError.FENCED_INSTANCE_ID
    assert error_of(handled(beat(), group(), (), within=static)) is s.BeatError.UNKNOWN_MEMBER_ID


# -- joins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [s.ConsumerGroup(), group(3)])
def test_a_new_member_raises_the_epoch_gets_a_target_and_all_of_it_where_nobody_holds_it(before):
    done = handled(beat(JOIN), before)
    epoch = before.epoch + 1
    assert (done.group.kind, done.group.epoch, done.group.assigned) == (s.GroupKind.CONSUMER, epoch, epoch)
    [joined] = done.book[A]
    assert (joined.epoch, joined.state, joined.assigned, joined.target) == (epoch, STABLE, BOTH, BOTH)
    assert done.answer == ok(1, epoch, BOTH)
    assert Noted("member joins") in done.seen


def test_one_that_joins_another_waits_at_the_new_epoch_for_what_that_holds():
    done = handled(beat(JOIN), group(), (record(),), who=B)
    [first], [joined] = done.book
    assert (done.group.epoch, done.group.assigned) == (4, 4)
    assert (joined.epoch, joined.state, joined.assigned, joined.target) == (4, UNRELEASED, NOTHING, P1)
    assert (first.epoch, first.assigned, first.target) == (3, BOTH, P0)  # it has not heard of it
    assert done.answer == ok(1, 4, NOTHING)  # {}, and not null: the request was full


@pytest.mark.parametrize(
    ("kept", "after"),
    [
        ({}, {}),
        # owned is empty: all that it was to revoke is gone
        (
            {"state": UNREVOKED, "assigned": P0, "pending": P1, "target": P0},
            {"state": STABLE, "pending": NOTHING},
        ),
    ],
)
def test_epoch_0_of_a_known_id_keeps_the_member(kept, after):
    known = record(**kept)
    done = handled(beat(JOIN), group(), (known,))
    assert done.group == group()  # it subscribes to what it did
    assert done.book[A] == (known._replace(previous=done.book[A][0].previous, **after),)
    assert done.answer == ok(1, 3, known.assigned)
    assert Noted("known member joins again") in done.seen


def test_that_a_static_member_has_to_leave_first_is_about_static_members():
    assert (
        error_of(handled(beat(JOIN), group(), (record(),), within=setup("static_rejoin_unreleased"))) is None
    )


@pytest.mark.parametrize(("previous", "error"), [(NONE, None), (2, s.BeatError.FENCED_MEMBER_EPOCH)])
def test_before_kafka_4_2_epoch_0_is_accepted_only_if_the_member_has_shown_nothing_else(previous, error):
    within = setup("reject_epoch0_of_known")
    done = handled(beat(JOIN), group(), (record(previous=previous),), within=within)
    assert error_of(done) is error


# -- static members ------------------------------------------------------------------------------------

STATIC = "consumer-static"
GONE: dict[str, Any] = {"epoch": NONE, "previous": NONE, "away": True}


def test_minus_2_keeps_what_a_static_member_has_and_raises_no_epoch():
    before = record(state=UNREVOKED, assigned=P0, pending=P1, target=P0)
    done = handled(beat(AWAY), group(), (before,), within=setup(name=STATIC))
    assert done.group == group()
    assert done.book[A] == (before._replace(pending=NOTHING, **GONE),)  # its state is left as it is
    assert done.answer == ok(1, NONE, None)


def test_nobody_gets_what_a_member_that_is_away_has():
    away = record(**GONE)
    assert held_by_others(((away,), ()), B, 1) == BOTH
    done = handled(beat(JOIN), group(), (away,), who=B, within=setup(name=STATIC))
    assert done.book[B][0].state is UNRELEASED
    assert done.book[B][0].assigned == NOTHING


def test_the_next_process_of_a_static_member_that_is_away_takes_its_place_without_a_new_epoch():
    done = handled(beat(JOIN, 2), group(), (record(**GONE),), within=setup(name=STATIC))
    [back] = done.book[A]
    assert (back.id, back.epoch, back.assigned, back.target, back.away) == (2, 3, BOTH, BOTH, False)
    assert done.group == group()
    assert done.answer == ok(2, 3, BOTH)
    assert Noted("static member returns") in done.seen
    assert not any(isinstance(seen, Granted) for seen in done.seen)  # it is its own already


def test_one_that_is_away_and_comes_back_with_another_subscription_raises_the_epoch():
    within = setup(name="consumer-topics")
    within = replace(within, consumers=tuple(replace(one, instance=0) for one in within.consumers))
    done = handled(beat(JOIN, 2, topics=Topics(0b01)), group(), (record(**GONE, topics=0b11),), within=within)
    assert (done.group.epoch, done.group.assigned) == (4, 4)


@pytest.mark.parametrize(
    ("number", "holder", "switches", "error"),
    [
        (2, {}, (), s.BeatError.UNRELEASED_INSTANCE_ID),  # another process has the name, and has not left
        (2, GONE, (), None),
        (2, {"classic": True}, (), None),  # which cannot say that it leaves (KAFKA-17228)
        (2, {"classic": True}, ("classic_static_must_leave",), s.BeatError.UNRELEASED_INSTANCE_ID),
        (1, {}, (), None),  # it has lost an answer
        (1, {}, ("static_rejoin_unreleased",), s.BeatError.UNRELEASED_INSTANCE_ID),
        (1, GONE, ("static_rejoin_unreleased",), None),
    ],
)
def test_who_may_join_under_the_name_of_a_static_member(number, holder, switches, error):
    done = handled(beat(JOIN, number), group(), (record(**holder),), within=setup(*switches, name=STATIC))
    assert error_of(done) is error
    assert len(done.book[A]) == 1


# -- leaves --------------------------------------------------------------------------------------------


def test_minus_1_removes_the_member_and_leaves_the_target_to_the_next_heartbeat():
    both = ((record(assigned=P0, target=P0),), (record(assigned=P1, target=P1),))
    done = handled(beat(LEAVE), group(), *both)
    assert done.book == ((), both[B])
    assert (done.group.epoch, done.group.assigned) == (4, 3)
    assert done.answer == ok(1, NONE, None)
    next_one = handled(beat(), done.group, *done.book, who=B)
    assert (next_one.group.assigned, next_one.book[B][0].assigned) == (4, BOTH)
    assert next_one.answer == ok(1, 4, BOTH)


def test_the_last_one_leaves_a_consumer_group_that_is_empty():
    done = handled(beat(LEAVE), group(), (record(),))
    assert done.book == ((), ())
    assert (done.group.kind, done.group.epoch) == (s.GroupKind.CONSUMER, 4)


@pytest.mark.parametrize("kind", [LEAVE, AWAY])
def test_who_is_no_member_cannot_leave(kind):
    done = handled(beat(kind, 2), group(), (record(),))
    assert error_of(done) is s.BeatError.UNKNOWN_MEMBER_ID
    assert done.book[A] == (record(),)


@pytest.mark.parametrize("epoch", [0, 2, 9])
def test_a_leave_shows_no_epoch_that_is_compared(epoch):
    assert handled(beat(LEAVE), group(), (record(epoch=epoch),)).book[A] == ()


# -- what raises the epoch -----------------------------------------------------------------------------

TOPICS: dict[str, Any] = {"name": "consumer-topics"}
"""Two topics, of which the second may have one partition more: t0-0, t1-0, t1-1."""

FIRST, SECOND, EVERY = Topics(0b01), Topics(0b10), Topics(0b11)


@pytest.mark.parametrize(
    ("had", "says", "cluster", "bumps"),
    [
        (EVERY, EVERY, 0b011, False),
        (EVERY, FIRST, 0b011, True),
        (FIRST, EVERY, 0b011, True),
        (EVERY, EVERY, 0b111, True),  # a partition more of the second topic
        (SECOND, SECOND, 0b111, True),
        (FIRST, FIRST, 0b111, False),  # to which nobody subscribes
        (EVERY, EVERY, 0b001, True),  # the second topic is gone
        (FIRST, FIRST, 0b001, False),
    ],
)
def test_another_subscription_and_other_partitions_of_its_topics_raise_the_epoch(had, says, cluster, bumps):
    before = record(topics=had, assigned=P0, target=P0)
    done = handled(beat(topics=says), group(known=0b011), (before,), within=setup(**TOPICS), cluster=cluster)
    assert done.group.epoch == (4 if bumps else 3)
    assert done.group.assigned == done.group.epoch
    assert done.group.known == cluster
    assert done.book[A][0].topics == says


def test_a_topic_of_another_member_counts_too():
    book = ((record(topics=FIRST, assigned=P0, target=P0),), (record(topics=SECOND, assigned=P1, target=P1),))
    done = handled(beat(topics=FIRST), group(known=0b011), *book, within=setup(**TOPICS), cluster=0b111)
    assert done.group.epoch == 4


def test_a_target_has_what_exists_and_its_member_subscribes_to():
    within = setup(**TOPICS)
    book = ((record(topics=FIRST, target=Parts(0b111)),), ())
    [member] = target_members(within, book, Parts(0b011))
    assert (member.subscribed, member.before) == (0b001, 0b011)
    assert targets(within, (member,)) == ((0b001,),)


def test_in_the_first_release_who_is_first_gets_what_is_over():
    """KAFKA-18688: who is second and has two gives one of them up."""
    members = (
        TargetMember(Slot(A), 1, Parts(0b111), Parts(0b001)),
        TargetMember(Slot(B), 1, Parts(0b111), Parts(0b110)),
    )
    within = setup(partitions=3)
    first = replace(within, coordinator=frozenset({"extra_by_iteration_order"}))
    assert targets(within, members) == ((0b001, 0b110),)
    assert targets(first, members) == ((0b101, 0b010),)


def test_where_targets_may_be_late_the_old_one_may_serve_for_a_while():
    """group.consumer.assignment.interval.ms (KIP-1263): the epoch is raised, its target comes later."""
    within = replace(setup(), delays=True)
    book = ((record(),), ())
    me = MemberContext(Slot(B), within)
    late, now = heartbeat(me, beat(JOIN), group(), book, BOTH)
    assert (late.group.epoch, late.group.assigned, late.book[B][0].epoch) == (4, 3, 3)
    assert late.answer == ok(1, 3, NOTHING)
    assert (now.group.epoch, now.group.assigned, now.book[B][0].epoch) == (4, 4, 4)


# -- from one member to the other ----------------------------------------------------------------------


def test_a_partition_goes_over_in_four_heartbeats():
    """It is revoked, acknowledged, released, given: and in no state do two members hold it."""
    first, second = (
        (record(target=P0),),
        (record(epoch=4, previous=4, state=UNRELEASED, assigned=0, target=P1),),
    )
    told = handled(beat(owned=BOTH), group(4), first, second)
    assert told.answer == ok(1, 3, P0)  # its epoch stays until it has acknowledged
    assert (told.book[A][0].state, told.book[A][0].assigned, told.book[A][0].pending) == (UNREVOKED, P0, P1)
    for owned in (None, BOTH, P1):
        waits = handled(beat(owned=owned), group(4), *told.book)
        assert (waits.book, waits.answer) == (told.book, ok(1, 3, None))
        assert handled(beat(epoch=4), group(4), *waits.book, who=B).book[B] == second
    gave = handled(beat(owned=P0), group(4), *told.book)
    assert gave.answer == ok(1, 4, None)
    assert (gave.book[A][0].state, gave.book[A][0].epoch, gave.book[A][0].pending) == (STABLE, 4, NOTHING)
    gets = handled(beat(epoch=4), group(4), *gave.book, who=B)
    assert gets.answer == ok(1, 4, P1)
    assert (gets.book[B][0].state, gets.book[B][0].assigned) == (STABLE, P1)
    assert Granted(Slot(B), P1, P0, NOTHING) in gets.seen


def test_a_partition_that_returns_to_its_owner_is_not_held_by_another_one():
    """KAFKA-19449: it was to be revoked, and the newest target has it again."""
    waits = record(state=UNREVOKED, assigned=P0, pending=P1, target=BOTH)
    done = handled(beat(owned=P0), group(4), (waits,))
    assert (done.book[A][0].state, done.book[A][0].assigned) == (STABLE, BOTH)
    assert Noted("partition returns to its owner") in done.seen


def test_a_coordinator_that_looks_at_no_epochs_gives_what_another_one_holds():
    second = (record(epoch=4, previous=4, state=UNRELEASED, assigned=0, target=P1),)
    done = handled(
        beat(epoch=4), group(4), (record(target=P0),), second, who=B, within=setup("ignore_current_epoch")
    )
    assert done.book[B][0].assigned == P1
    assert Granted(Slot(B), P1, BOTH, NOTHING) in done.seen


@pytest.mark.parametrize(
    ("full", "gains", "parts"),
    [(False, False, None), (True, False, P0), (False, True, BOTH), (True, True, BOTH)],
)
def test_an_answer_carries_the_assignment_if_it_changed_or_every_field_was_sent(full, gains, parts):
    target = BOTH if gains else P0
    before = record(assigned=P0, target=target, state=UNRELEASED if gains else STABLE)
    assert handled(beat(full=full, owned=P0), group(), (before,)).answer == ok(1, 3, parts)


# -- commits -------------------------------------------------------------------------------------------

HOLDS = record(assigned=P0, pending=P1)


@pytest.mark.parametrize(
    ("epoch", "parts", "switches", "stored"),
    [
        (3, BOTH, (), BOTH),  # also what it is to revoke
        (2, BOTH, (), BOTH),  # sent before its epoch was raised (KIP-1251)
        (4, BOTH, (), NOTHING),
        (NONE, BOTH, (), NOTHING),
        (2, BOTH, ("commit_epoch_equality",), NOTHING),
        (3, BOTH, ("commit_epoch_equality",), BOTH),
    ],
)
def test_a_commit_is_stored_for_what_its_sender_holds(epoch, parts, switches, stored):
    me = MemberContext(Slot(A), setup(*switches))
    assert accepted(me, (HOLDS,), 1, Generation(epoch), parts) == stored
    assert accepted(me, (HOLDS,), 2, Generation(epoch), parts) == NOTHING


@pytest.mark.parametrize(("switches", "stored"), [((), P0), (("commit_any_at_epoch",), BOTH)])
def test_at_the_members_epoch_kafka_stores_what_another_member_holds(switches, stored):
    me = MemberContext(Slot(A), setup(*switches))
    assert accepted(me, (record(assigned=P0),), 1, Generation(3), BOTH) == stored


@pytest.mark.parametrize(("fields", "held"), [({}, P0), (GONE, NOTHING)])
def test_a_late_commit_is_judged_by_what_is_held_as_it_arrives(fields, held):
    me = MemberContext(Slot(A), setup())
    [done] = late_arrives(me, Late("commit", 1, Generation(3), BOTH), (record(assigned=P0, **fields),))
    assert done.values == (None,)
    assert done.seen == (Committed(Slot(A), BOTH, held, held),)


# -- group.consumer.max.size ---------------------------------------------------------------------------

FULL = s.BeatError.GROUP_MAX_SIZE_REACHED


def crowded(*switches: str, name: str = "consumer-crowded") -> Setup:
    """A group that one member fills."""
    return setup(*switches, name=name, partitions=1)


@pytest.mark.parametrize(
    ("of", "error"),
    [
        (beat(JOIN), FULL),
        (beat(epoch=2), FULL),  # of a member that was removed, and its place has gone to another
        (beat(LEAVE), s.BeatError.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_full_group_turns_away_whom_it_does_not_know(of: s.Beat, error: s.BeatError):
    done = handled(of, group(), (), (record(),), within=crowded())
    assert error_of(done) is error
    assert done.book == ((), (record(),))
    assert (TurnedAway(Slot(A), False) in done.seen) is (error is FULL)
    there = handled(beat(JOIN), group(), (record(),), within=crowded())
    assert error_of(there) is None
    wide = replace(crowded(), max_size=2)
    assert error_of(handled(beat(JOIN), group(), (), (record(),), within=wide)) is None


@pytest.mark.parametrize("switch", ["full_group_refuses_static", "full_classic_refuses_static"])
def test_a_static_member_that_comes_back_is_none_too_many(switch: str):
    """Under another id, after it has gone away; N32 is that it is."""
    gone = (record(epoch=NONE, previous=NONE, away=True),)
    full = crowded(name="consumer-static-crowded")
    assert error_of(handled(beat(JOIN, 2), group(), gone, within=full)) is None
    done = handled(beat(JOIN, 2), group(), gone, within=crowded(switch, name="consumer-static-crowded"))
    assert (error_of(done) is FULL) is (switch == "full_group_refuses_static")
    assert (TurnedAway(Slot(A), True) in done.seen) is (switch == "full_group_refuses_static")


def test_what_else_is_wrong_with_a_heartbeat_of_a_static_member_is_said_of_a_full_group_too():
    """Kafka asks whether it is full first, and until 4.4 of everybody."""
    other = (record(2),)
    late, again = beat(epoch=2), beat(JOIN)
    for of, error in (
        (late, s.BeatError.FENCED_INSTANCE_ID),
        (again, s.BeatError.UNRELEASED_INSTANCE_ID),
    ):
        full = crowded(name="consumer-static-crowded")
        assert error_of(handled(of, group(), other, within=full)) is error
        shipped = crowded("full_group_refuses_static", name="consumer-static-crowded")
        assert error_of(handled(of, group(), other, within=shipped)) is FULL


def test_a_classic_group_that_is_full_stays_one():
    full = setup(name="migration-crowded", partitions=1)
    before = s.ConsumerGroup(s.GroupKind.CLASSIC, Generation(3), Generation(3), BOTH, GroupState.PREPARING)
    waits = (record(classic=True, joined=True),)
    done = handled(beat(JOIN), before, (), waits, within=full)
    assert (error_of(done), done.group, done.book) == (FULL, before, ((), waits))
    assert done.seen[-1] == TurnedAway(Slot(A), False)
    one_way = replace(full, policy="downgrade")
    assert error_of(handled(beat(JOIN), before, (), waits, within=one_way)) is s.BeatError.GROUP_ID_NOT_FOUND
    assert error_of(handled(beat(), before, (), waits, within=full)) is s.BeatError.GROUP_ID_NOT_FOUND


def test_a_group_with_a_lower_limit_after_a_failover_is_not_built():
    for name in ("consumer-crowded", "migration-crowded"):
        with pytest.raises(ValueError, match="has no lower limit of members"):
            machine(replace(setup(name=name), lowers=True))
