"""The member against docs/protocol.md, section 1: one test, or one row of a table, per row there."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group.observations import Answered, Call, Callback, Left, Noted, Threw
from rebalance_verifier.model.group.parts import (
    ClusterState,
    Error,
    Generation,
    GroupState,
    Id,
    Late,
    Life,
    MemberState,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import ConsumerConfig

from tests.model.classic.small_groups import COOPERATIVE, EAGER, PlayedGroup, Step, meta, setup, stable

G3, G4 = Generation(3), Generation(4)
DYNAMIC, EAGERLY = PlayedGroup(setup()), PlayedGroup(setup(lists=(EAGER,)))
STATIC = PlayedGroup(setup(static=True))
TWO_TOPICS = PlayedGroup(setup(topics=(0b01, 0b10)))
KINDS = {"EAGER": EAGERLY, "COOPERATIVE": DYNAMIC}
PREPARING, COMPLETING, STABLE, UNJOINED = (
    MemberState.PREPARING,
    MemberState.COMPLETING,
    MemberState.STABLE,
    MemberState.UNJOINED,
)
IN_STABLE = {"group": s.Group(GroupState.STABLE, G3, Id(Slot(0), 1), "cooperative-sticky")}
LISTED = {"record_A": (s.MemberRecord(1, meta(), synced=True),)}


def calls(step: Step) -> list[tuple[str, int]]:
    return [(call.call.value, call.parts) for call in step.saw(Callback)]


def a(step: Step) -> s.Member:
    member = step.after["member A"]
    assert isinstance(member, s.Member)
    return member


# -- 1.1 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignors", "eager"),
    [
        (("range",), True),
        (("roundrobin",), True),
        (("sticky",), True),
        (("cooperative-sticky",), False),
        (("range", "cooperative-sticky"), True),
        (("cooperative-sticky", "range"), True),
    ],
)
def test_the_protocol_follows_from_the_whole_list(assignors: tuple[str, ...], eager: bool):
    assert ConsumerConfig(assignors=assignors).eager is eager


def test_first_flags():
    member = s.Member()
    assert member.rejoin
    assert member.prepare
    assert (member.state, member.generation, member.id) == (UNJOINED, -1, 0)


# -- 1.2 -----------------------------------------------------------------------------------------------


def test_join_group_is_built_from_the_member_as_it_is():
    step = DYNAMIC.step("join", member_A=stable(owned=0b01, rejoin=True))
    request = step.after["wire A"]
    assert isinstance(request, s.Join)
    assert (request.id, request.meta.owned, request.meta.label) == (1, 0b01, 3)
    assert (a(step).state, a(step).prepare) == (PREPARING, False)


def test_the_label_is_the_generation_last_joined():
    """1.2, consequence for KIP-792: not that in which the owned partitions were assigned."""
    late = stable(owned=0b01, own_gen=2, state=COMPLETING, rejoin=True, prepare=False)
    java = PlayedGroup(setup(decisions=("keep_owned_on_sync_rip",)))
    assert java.step("join", member_A=late).after["wire A"].meta.label == 3
    assert DYNAMIC.step("join", member_A=late).after["wire A"].meta.label == 2


def test_version_1_has_no_label_and_version_0_no_owned_partitions():
    for version, label, owned in ((3, 3, 0b01), (1, -1, 0b01), (0, -1, 0)):
        game = PlayedGroup(setup(version=version))
        request = game.step("join", member_A=stable(owned=0b01, rejoin=True)).after["wire A"]
        assert (request.meta.label, request.meta.owned) == (label, owned)


@pytest.mark.parametrize(("assignors", "label"), [(("cooperative-sticky",), 3), (("range",), -1)])
def test_each_member_of_librdkafka_watches_its_topics_and_an_eager_one_writes_no_generation(
    assignors: tuple[str, ...], label: int
) -> None:
    """L11: an EAGER follower that asks for a rebalance repeats the bytes of its last JoinGroup."""
    game = PlayedGroup(setup(lists=(assignors,), decisions=("members_watch_own_topics",)))
    sent = game.step("join", member_A=stable(owned=0b01, rejoin=True))
    assert (a(sent).watch, a(sent).watched) == (a(sent).view & 0b11, a(sent).topics)
    assert sent.after["wire A"].meta.label == label
    answer = s.JoinOk(1, G4, assignors[0])
    heard = game.step("receive", member_A=a(sent), wire_A=answer)
    assert (a(heard).watch, a(heard).watched) == (a(sent).watch, a(sent).watched)


@pytest.mark.parametrize(("assignor", "known"), [("sticky", 3), ("range", -1)])
def test_sticky_tells_the_generation_of_what_it_has_revoked(assignor: str, known: int):
    step = PlayedGroup(setup(lists=((assignor,),))).step("join", member_A=stable(owned=0b11, rejoin=True))
    assert (a(step).owned, a(step).own_gen, step.after["wire A"].meta.own_gen) == (0, known, known)


def test_preparation_is_not_repeated_on_a_retry():
    again = stable(owned=0b01, state=PREPARING, rejoin=True, prepare=False, topics=Topics(2))
    assert calls(TWO_TOPICS.step("join", member_A=again)) == []


def test_join_ok_makes_the_new_generation_known_before_any_assignment():
    waiting = stable(owned=0b01, state=PREPARING, rejoin=True, prepare=False)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.JoinOk(1, G4, "cooperative-sticky"))
    assert (a(step).state, a(step).generation, a(step).owned) == (COMPLETING, 4, 0b01)
    assert step.after["wire A"] == s.Sync(1, G4)
    assert calls(step) == []


def test_join_ok_after_a_reset_is_ignored():
    gone = stable(owned=0b01, state=UNJOINED, generation=-1, id=0, rejoin=True)
    for leader, action in ((False, "receive"), (True, "assign")):
        step = DYNAMIC.step(
            action, member_A=gone, wire_A=s.JoinOk(1, G4, "cooperative-sticky", leader), **IN_STABLE, **LISTED
        )
        assert (a(step), step.after["wire A"]) == (gone, None)


def test_sync_ok_swallows_what_asked_for_a_rejoin():
    waiting = stable(generation=4, state=COMPLETING, rejoin=True, enforced=True)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.SyncOk(1, G4, Parts(0b01)))
    assert (a(step).state, a(step).rejoin, a(step).received) == (STABLE, False, 0b01)
    assert step.saw(Noted) == [Noted("enforceRebalance swallowed")]
    assert DYNAMIC.steps("join", member_A=a(step)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"state": UNJOINED, "generation": -1, "id": 0},
        {"state": UNJOINED, "generation": -1},
        {"state": UNJOINED},
    ],
)
def test_sync_ok_after_a_reset_is_a_rejoin(changed: dict[str, Any]):
    waiting = stable(generation=4, owned=0b10, own_gen=3, rejoin=True)._replace(**changed)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.SyncOk(1, G4, Parts(0b01)))
    assert (a(step).owned, a(step).received, a(step).rejoin) == (0b10, None, True)
    assert DYNAMIC.steps("join", member_A=a(step))


@pytest.mark.parametrize("kept", [0, 1])
def test_a_reset_between_sync_and_callback_ends_in_a_full_reset(kept: int):
    between = stable(generation=-1, state=UNJOINED, id=kept, owned=0b01, rejoin=True, received=Parts(0b10))
    step = DYNAMIC.step("complete", member_A=between)
    assert calls(step) == []
    after = a(step)
    assert (after.owned, after.received, after.id, after.generation) == (0b01, None, 0, -1)
    assert after.rejoin
    assert after.prepare
    assert calls(DYNAMIC.step("join", member_A=after)) == [("lost", 0b01)]


# -- 1.3 -----------------------------------------------------------------------------------------------

INTACT, NO_GENERATION, NO_MEMBER_ID, NAMELESS = (3, 1), (-1, 1), (-1, 0), (3, 0)


@pytest.mark.parametrize(
    ("kind", "membership", "owned", "expected", "left"),
    [
        ("EAGER", NO_GENERATION, 0b11, [("lost", 0b11)], 0),
        ("EAGER", NO_MEMBER_ID, 0b11, [("lost", 0b11)], 0),
        ("COOPERATIVE", NO_GENERATION, 0b11, [("lost", 0b11)], 0),
        ("COOPERATIVE", NO_MEMBER_ID, 0b11, [("lost", 0b11)], 0),
        ("COOPERATIVE", NAMELESS, 0b11, [("lost", 0b11)], 0),
        ("EAGER", NO_MEMBER_ID, 0, [], 0),
        ("COOPERATIVE", NO_MEMBER_ID, 0, [], 0),
        ("EAGER", INTACT, 0b11, [("revoked", 0b11)], 0),
        ("EAGER", INTACT, 0, [("revoked", 0)], 0),
        ("COOPERATIVE", INTACT, 0b11, [], 0b11),
        ("COOPERATIVE", INTACT, 0, [], 0),
    ],
)
def test_join_prepare(
    kind: str, membership: tuple[int, int], owned: int, expected: list[tuple[str, int]], left: int
):
    generation, member_id = membership
    member = stable(generation, owned, id=member_id, rejoin=True)
    step = KINDS[kind].step("join", member_A=member)
    assert calls(step) == expected
    assert all(call.reset is (membership != INTACT) for call in step.saw(Callback))
    assert (a(step).owned, a(step).believed, step.after["wire A"].meta.owned) == (left, left, left)
    assert not a(step).prepare


def test_cooperative_revokes_what_left_the_subscription():
    member = stable(owned=0b11, topics=Topics(0b01), joined_topics=Topics(0b11))
    step = TWO_TOPICS.step("join", member_A=member)
    assert calls(step) == [("revoked", 0b10)]
    assert (a(step).owned, step.after["wire A"].meta.owned) == (0b01, 0b01)


def test_partitions_of_a_deleted_topic_are_not_dropped_before_the_join():
    member = stable(
        owned=0b11, view=Parts(0b01), topics=Topics(0b11), joined_topics=Topics(0b11), rejoin=True
    )
    step = TWO_TOPICS.step("join", cluster=ClusterState(Parts(0b01)), member_A=member)
    assert (calls(step), a(step).owned) == ([], 0b11)


@pytest.mark.parametrize(("kind", "stopped"), [("EAGER", 0b11), ("COOPERATIVE", 0)])
def test_only_eager_stops_reading_while_it_commits(kind: str, stopped: int):
    game = PlayedGroup(setup(lists=(EAGER if kind == "EAGER" else COOPERATIVE,), faults=("slow commit",)))
    step = game.step("slow commit", member_A=stable(owned=0b11, rejoin=True))
    assert (a(step).committing, a(step).unfetched, a(step).owned) == (True, stopped, 0b11)
    assert game.steps("join", member_A=a(step)) == []
    done = a(game.step("commit done", member_A=a(step)))
    assert (done.committing, done.unfetched) == (False, stopped)


# -- 1.4 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "owned", "assigned", "expected", "rejoin"),
    [
        ("COOPERATIVE", 0b01, 0b10, [("revoked", 0b01), ("assigned", 0b10)], True),
        ("COOPERATIVE", 0b11, 0b01, [("revoked", 0b10), ("assigned", 0)], True),
        ("COOPERATIVE", 0b01, 0b11, [("assigned", 0b10)], False),
        ("COOPERATIVE", 0b01, 0b01, [("assigned", 0)], False),
        ("COOPERATIVE", 0, 0, [("assigned", 0)], False),
        ("EAGER", 0, 0b11, [("assigned", 0b11)], False),
        ("EAGER", 0, 0, [("assigned", 0)], False),
        ("EAGER", 0b01, 0b10, [("revoked", 0b01), ("assigned", 0b10)], False),
    ],
)
def test_join_complete(kind: str, owned: int, assigned: int, expected: list[tuple[str, int]], rejoin: bool):
    member = stable(4, owned, own_gen=3, prepare=False, received=Parts(assigned))
    step = KINDS[kind].step("complete", member_A=member)
    after = a(step)
    assert calls(step) == expected
    assert step.saw(Threw) == []
    assert step.saw(Noted) == ([Noted("follow-up rebalance")] if rejoin else [])
    assert (after.owned, after.believed, after.rejoin, after.prepare) == (assigned, assigned, rejoin, True)
    assert after.received is None
    assert after.own_gen == (4 if assigned else -1)
    assert all(call.current for call in step.saw(Callback))


@pytest.mark.parametrize(
    ("before", "assigned", "after"), [(0b10, 0b11, 0b10), (0b10, 0b01, 0), (0b01, 0b10, 0)]
)
def test_what_was_not_fetched_is_still_to_be_if_it_is_kept(before: int, assigned: int, after: int):
    member = stable(4, 0b11, prepare=False, received=Parts(assigned), unfetched=Parts(before))
    assert a(DYNAMIC.step("complete", member_A=member)).unfetched == after


def test_what_is_new_is_fetched():
    member = stable(4, 0b01, prepare=False, received=Parts(0b11), unfetched=Parts(0b11))
    assert a(DYNAMIC.step("complete", member_A=member)).unfetched == 0b01


def test_partitions_are_owned_while_they_are_revoked():
    member = stable(4, 0b01, prepare=False, received=Parts(0b10))
    revoked, assigned = DYNAMIC.step("complete", member_A=member).saw(Callback)
    assert (revoked.owned, assigned.owned) == (0b01, 0b10)


def test_an_assignment_outside_the_subscription_changes_nothing():
    member = stable(4, 0b01, prepare=False, topics=Topics(0b01), received=Parts(0b11))
    step = TWO_TOPICS.step("complete", member_A=member)
    after = a(step)
    assert calls(step) == []
    assert (after.owned, after.believed, after.rejoin, after.received) == (0b01, 0b01, True, None)


def test_an_assignment_of_no_bytes_is_thrown():
    waiting = stable(generation=4, state=COMPLETING, rejoin=True)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.SyncOk(1, G4, None))
    assert len(step.saw(Threw)) == 1
    assert a(step).life is Life.FAILED


def test_a_listener_that_throws_skips_nothing():
    game = PlayedGroup(setup(faults=("listener throws",)))
    member = stable(4, 0b01, prepare=False, received=Parts(0b10))
    step = game.step("listener throws", member_A=member)
    assert calls(step) == [("revoked", 0b01), ("assigned", 0b10)]
    assert (a(step).owned, a(step).rejoin) == (0b10, True)
    assert [threw.error for threw in step.saw(Threw)] == ["listener"]


def test_on_join_complete_runs_again_after_it_threw():
    """1.2 step 6: joinFuture and needsJoinPrepare are reset after onJoinComplete has returned, so one that
    throws runs again at the next poll and no preparation precedes it."""
    game = PlayedGroup(setup(faults=("completes again",)))
    member = stable(4, 0b01, prepare=False, received=Parts(0b10))
    step = game.step("completes again", member_A=member)
    after = a(step)
    assert calls(step) == [("revoked", 0b01), ("assigned", 0b10)]
    assert not after.prepare
    assert game.steps("join", member_A=after) == []
    again = game.step("complete", member_A=after)
    assert calls(again) == [("assigned", 0)]
    assert (a(again).owned, a(again).prepare, a(again).rejoin) == (0b10, True, True)
    reset = after._replace(state=UNJOINED, generation=Generation(-1))
    assert calls(game.step("complete", member_A=reset)) == []


def test_who_is_not_called_throws_nothing():
    game = PlayedGroup(setup(topics=(0b01, 0b10), faults=("completes again",)))
    outside = stable(4, 0b01, prepare=False, topics=Topics(0b01), received=Parts(0b11))
    assert game.steps("completes again", member_A=outside) == []


# -- 1.5, answers --------------------------------------------------------------------------------------

KEPT, HALF, FULL = (3, 1), (-1, 1), (-1, 0)
"""Generation and member id after an answer: as before; ILLEGAL_GENERATION; everything reset."""


def answer(
    api: str, error: Error, member: s.Member, generation: int = 3, game: PlayedGroup = DYNAMIC
) -> Step:
    """An error answer reaches ``member``."""
    refused = s.Refused(api, error, 1, Generation(generation))
    if api in ("join", "sync"):
        return game.step("receive", member_A=member, wire_A=refused)
    return game.step("late answer", member_A=member, stray_A=refused)


_RETRIABLE = (Error.NOT_COORDINATOR, Error.DISCONNECT)


@pytest.mark.parametrize(
    ("api", "error", "state", "current", "membership", "rejoin", "next_join"),
    [
        ("join", Error.UNKNOWN_MEMBER_ID, PREPARING, True, FULL, True, [("lost", 0b11)]),
        ("join", Error.REBALANCE_IN_PROGRESS, PREPARING, True, KEPT, True, []),
        ("join", Error.COORDINATOR_LOAD_IN_PROGRESS, PREPARING, True, KEPT, True, []),
        *(("join", error, PREPARING, True, KEPT, True, []) for error in _RETRIABLE),
        *(("sync", error, COMPLETING, True, KEPT, True, []) for error in _RETRIABLE),
        ("sync", Error.REBALANCE_IN_PROGRESS, COMPLETING, True, KEPT, True, []),
        ("sync", Error.UNKNOWN_MEMBER_ID, COMPLETING, True, FULL, True, [("lost", 0b11)]),
        ("sync", Error.ILLEGAL_GENERATION, COMPLETING, True, HALF, True, [("lost", 0b11)]),
        ("heartbeat", Error.REBALANCE_IN_PROGRESS, STABLE, True, KEPT, True, []),
        ("heartbeat", Error.REBALANCE_IN_PROGRESS, COMPLETING, True, KEPT, False, None),
        ("heartbeat", Error.REBALANCE_IN_PROGRESS, PREPARING, True, KEPT, False, None),
        ("heartbeat", Error.ILLEGAL_GENERATION, STABLE, True, HALF, True, [("lost", 0b11)]),
        ("heartbeat", Error.UNKNOWN_MEMBER_ID, STABLE, True, FULL, True, [("lost", 0b11)]),
        ("heartbeat", Error.ILLEGAL_GENERATION, STABLE, False, KEPT, False, None),
        ("heartbeat", Error.UNKNOWN_MEMBER_ID, COMPLETING, False, KEPT, False, None),
        ("heartbeat", Error.FENCED_INSTANCE_ID, STABLE, False, KEPT, False, None),
        ("heartbeat", Error.NOT_COORDINATOR, STABLE, True, KEPT, False, None),
        ("commit", Error.REBALANCE_IN_PROGRESS, STABLE, True, KEPT, True, []),
        ("commit", Error.ILLEGAL_GENERATION, STABLE, True, HALF, True, [("lost", 0b11)]),
        ("commit", Error.UNKNOWN_MEMBER_ID, STABLE, True, FULL, True, [("lost", 0b11)]),
        ("commit", Error.ILLEGAL_GENERATION, PREPARING, False, KEPT, False, None),
        ("commit", Error.UNKNOWN_MEMBER_ID, PREPARING, False, KEPT, False, None),
        ("commit", Error.ILLEGAL_GENERATION, PREPARING, True, HALF, True, [("lost", 0b11)]),
        ("commit", Error.FENCED_INSTANCE_ID, STABLE, False, KEPT, False, None),
    ],
)
def test_error_table(
    api: str,
    error: Error,
    state: MemberState,
    current: bool,
    membership: tuple[int, int],
    rejoin: bool,
    next_join: list[tuple[str, int]] | None,
):
    """``next_join``: the callbacks of the next join, None where none is due for this answer."""
    requested = rejoin and api in ("join", "sync")  # whoever waits for one of these has asked for it
    member = stable(owned=0b11, state=state, prepare=state is STABLE, rejoin=requested)
    step = answer(api, error, member, 3 if current else 2)
    after = a(step)
    assert step.saw(Threw) == []
    assert calls(step) == []
    assert (after.generation, after.id) == membership
    assert all(seen.reset is (membership != KEPT) for seen in step.saw(Answered))
    assert (after.owned, after.rejoin) == (0b11, rejoin)
    if membership != KEPT:
        assert (after.state, after.prepare) == (UNJOINED, True)
    joins = DYNAMIC.steps("join", member_A=after)
    assert [calls(join) for join in joins] == ([] if next_join is None else [next_join])


def test_sync_refused_for_a_rebalance_keeps_the_new_generation_and_the_old_partitions():
    member = stable(4, 0b01, own_gen=3, state=COMPLETING, prepare=False, rejoin=True)
    step = answer("sync", Error.REBALANCE_IN_PROGRESS, member, 4)
    assert (a(step).generation, a(step).owned, a(step).own_gen) == (4, 0b01, 3)


@pytest.mark.parametrize("api", ["join", "sync"])
def test_an_answer_for_a_membership_that_is_gone_resets_nothing_more(api: str):
    """1.5, gu: a late heartbeat brought ILLEGAL_GENERATION first, and the member id stays."""
    member = stable(-1, 0b01, own_gen=3, state=UNJOINED, rejoin=True)
    step = answer(api, Error.UNKNOWN_MEMBER_ID, member)
    assert (a(step).id, a(step).owned, a(step).rejoin) == (1, 0b01, True)
    assert [seen.reset for seen in step.saw(Answered)] == [False]


def test_member_id_required():
    first = s.Member(life=Life.UP, state=PREPARING, prepare=False, topics=Topics(1), joined_topics=Topics(1))
    given = s.Refused("join", Error.MEMBER_ID_REQUIRED, 0, given=5)
    step = DYNAMIC.step("receive", member_A=first, wire_A=given)
    assert (a(step).id, a(step).generation, a(step).prepare, a(step).rejoin) == (5, -1, False, True)
    assert calls(step) == []
    again = DYNAMIC.step("join", member_A=a(step))
    assert (calls(again), again.after["wire A"].id) == ([], 5)


@pytest.mark.parametrize("kind", ["EAGER", "COOPERATIVE"])
@pytest.mark.parametrize(
    "error", [Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_MAX_SIZE_REACHED]
)
def test_join_errors_that_poll_throws(error: Error, kind: str):
    """The application closes: what a COOPERATIVE member kept is lost, since a rebalance is in progress."""
    owned = 0b11 if kind == "COOPERATIVE" else 0
    member = stable(owned=owned, state=PREPARING, prepare=False, rejoin=True)
    step = answer("join", error, member, game=KINDS[kind])
    assert [threw.error for threw in step.saw(Threw)] == [error]
    assert calls(step) == ([("lost", owned)] if owned else [])
    assert a(step).life is Life.FAILED


@pytest.mark.parametrize("error", [Error.FENCED_INSTANCE_ID, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_sync_errors_that_poll_throws(error: Error):
    step = answer("sync", error, stable(4, 0b01, state=COMPLETING, prepare=False, rejoin=True), 4)
    assert ([threw.error for threw in step.saw(Threw)], calls(step)) == ([error], [("lost", 0b01)])


def test_a_fenced_heartbeat_resets_before_poll_throws():
    step = answer("heartbeat", Error.FENCED_INSTANCE_ID, stable(owned=0b01), game=STATIC)
    assert ([threw.error for threw in step.saw(Threw)], calls(step)) == (
        [Error.FENCED_INSTANCE_ID],
        [("lost", 0b01)],
    )


def test_a_fenced_commit_of_this_generation_is_fatal():
    step = answer("commit", Error.FENCED_INSTANCE_ID, stable(owned=0b01), game=STATIC)
    assert [threw.error for threw in step.saw(Threw)] == [Error.FENCED_INSTANCE_ID]


def test_a_fenced_commit_resets_nothing():
    """The application closes a member whose generation stands: revoked, not lost."""
    step = answer("commit", Error.FENCED_INSTANCE_ID, stable(owned=0b01), game=STATIC)
    assert calls(step) == [("revoked", 0b01)]


@pytest.mark.xfail(reason="fail: the application closes the consumer, which sends LeaveGroup")
def test_a_dynamic_member_that_gives_up_leaves():
    step = DYNAMIC.step(
        "receive",
        member_A=stable(owned=0b01, state=PREPARING, prepare=False, rejoin=True),
        wire_A=s.Refused("join", Error.INCONSISTENT_GROUP_PROTOCOL, 1),
        **IN_STABLE,
        **LISTED,
    )
    assert step.after["record A"] == ()


def test_a_late_commit_error_of_an_old_generation_resets_java_but_while_preparing():
    java = PlayedGroup(setup(decisions=("late_commit_resets",)))
    for state, generation in ((STABLE, -1), (COMPLETING, -1), (PREPARING, 3)):
        step = answer("commit", Error.ILLEGAL_GENERATION, stable(owned=0b01, state=state), 2, java)
        assert a(step).generation == generation


# -- 1.5, events ---------------------------------------------------------------------------------------


def test_a_changed_subscription_is_a_rejoin():
    member = stable(owned=0b11, topics=Topics(0b11), joined_topics=Topics(0b01))
    assert calls(TWO_TOPICS.step("join", member_A=member)) == []
    assert TWO_TOPICS.steps("join", member_A=member._replace(joined_topics=Topics(0b11))) == []


def test_metadata_that_changed_is_a_rejoin_of_the_leader_only():
    watching = stable(owned=0b01, watch=Parts(0b01), watched=Topics(1))
    assert DYNAMIC.steps("join", member_A=watching)
    assert DYNAMIC.steps("join", member_A=watching._replace(watch=Parts(0b11))) == []
    assert DYNAMIC.steps("join", member_A=watching._replace(watch=None)) == []


def test_topics_that_nobody_in_the_group_wants_are_not_watched():
    watching = stable(owned=0b01, watch=Parts(0b01), watched=Topics(0b01), topics=Topics(0b01))
    assert TWO_TOPICS.steps("join", member_A=watching) == []


def test_a_former_leader_watches_no_longer():
    waiting = stable(state=PREPARING, rejoin=True, prepare=False, watch=Parts(0b01), watched=Topics(1))
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.JoinOk(1, G4, "cooperative-sticky"))
    assert (a(step).watch, a(step).watched) == (None, 0)


def test_enforce_rebalance_is_a_flag():
    game = PlayedGroup(setup(faults=("enforce",)))
    step = game.step("enforce", member_A=stable(owned=0b01))
    assert (a(step).rejoin, a(step).owned, calls(step)) == (True, 0b01, [])
    assert calls(game.step("join", member_A=a(step))) == []


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("state", [COMPLETING, STABLE])
def test_max_poll(state: MemberState, forgets: bool, static: bool):
    """Java forgets the id of a static member too (J21); as specified it keeps it."""
    decisions = ("static_forgets_id",) if forgets else ()
    game = PlayedGroup(setup(static=static, faults=("max poll",), decisions=decisions))
    member = stable(owned=0b01, state=state)
    step = game.step("max poll", member_A=member, **IN_STABLE, **LISTED)
    left = bool(step.after["record A"])
    assert left is static
    assert step.after["group"].state is (GroupState.STABLE if static else GroupState.PREPARING)
    after = a(step)
    assert (after.state, after.generation, after.owned) == (UNJOINED, -1, 0b01)
    assert after.id == (1 if static and not forgets else 0)
    assert calls(game.step("join", member_A=after)) == [("lost", 0b01)]


def test_max_poll_does_nothing_while_join_group_is_out():
    game = PlayedGroup(setup(faults=("max poll",)))
    assert game.steps("max poll", member_A=stable(state=PREPARING), **IN_STABLE, **LISTED) == []


@pytest.mark.parametrize("action", ["unsubscribe", "close"])
@pytest.mark.parametrize(
    ("state", "membership", "owned", "expected"),
    [
        (STABLE, INTACT, 0b01, [("revoked", 0b01)]),
        (STABLE, INTACT, 0, []),
        (PREPARING, INTACT, 0b01, [("lost", 0b01)]),
        (COMPLETING, INTACT, 0b01, [("lost", 0b01)]),
        (UNJOINED, NO_GENERATION, 0b01, [("lost", 0b01)]),
        (UNJOINED, NO_MEMBER_ID, 0b01, [("lost", 0b01)]),
        (UNJOINED, NAMELESS, 0b01, [("lost", 0b01)]),
        (UNJOINED, NO_MEMBER_ID, 0, []),
    ],
)
def test_leaving(
    state: MemberState, membership: tuple[int, int], owned: int, expected: list[tuple[str, int]], action: str
):
    game = PlayedGroup(setup(faults=(action,)))
    generation, member_id = membership
    member = stable(generation, owned, state=state, id=member_id)
    step = game.step(action, member_A=member, **IN_STABLE, **LISTED)
    assert calls(step) == expected
    sends = state is not UNJOINED and bool(member_id)
    (left,) = step.saw(Left)
    assert (left.sent, left.believed) == (sends, 0)
    assert bool(step.after["record A"]) is not sends
    after = a(step)
    assert (after.generation, after.id, after.owned, after.state) == (-1, 0, 0, UNJOINED)
    assert (after.own_gen, step.after["budget"]) == (-1, 0)


@pytest.mark.parametrize("action", ["unsubscribe", "close"])
def test_static_members_never_send_leave_group(action: str):
    game = PlayedGroup(setup(static=True, faults=(action,)))
    step = game.step(action, member_A=stable(owned=0b01), **IN_STABLE, **LISTED)
    assert (calls(step), step.saw(Left)[0].sent) == ([("revoked", 0b01)], False)
    assert (step.after["record A"], step.after["group"]) == (LISTED["record_A"], IN_STABLE["group"])


def test_closing_with_a_pending_id_sends_leave_group():
    """1.5: MEMBER_ID_REQUIRED changes the generation only, so the state is still PREPARING."""
    game = PlayedGroup(setup(faults=("close",)))
    first = s.Member(life=Life.UP, state=PREPARING, prepare=False, topics=Topics(1), joined_topics=Topics(1))
    given = s.Refused("join", Error.MEMBER_ID_REQUIRED, 0, given=1)
    member = a(game.step("receive", member_A=first, wire_A=given))
    step = game.step(
        "close", member_A=member, group=s.Group(GroupState.EMPTY), record_A=(s.MemberRecord(1, None),)
    )
    assert step.after["record A"] == ()


# -- heartbeats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("life", "state", "beats"),
    [
        (Life.UP, STABLE, True),
        (Life.UP, COMPLETING, True),
        (Life.HUNG, STABLE, True),
        (Life.UP, PREPARING, False),
        (Life.UP, UNJOINED, False),
        (Life.PAUSED, STABLE, False),
        (Life.FAILED, STABLE, False),
        (Life.DOWN, STABLE, False),
    ],
)
def test_who_sends_heartbeats(life: Life, state: MemberState, beats: bool):
    """The group does not know the member, so a heartbeat would reset it."""
    steps = DYNAMIC.steps("heartbeat", member_A=stable(life=life, state=state))
    assert bool(steps) is beats


# -- what stays behind ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", [s.Join(1, meta()), s.Sync(1, G3)])
def test_a_request_outlives_the_process_that_sent_it(wire: s.Join | s.Sync):
    game = PlayedGroup(setup(faults=("crash",)))
    assert game.step("crash", member_A=stable(), wire_A=wire).after["wire A"] == wire


@pytest.mark.parametrize("wire", [s.JoinParked(1), s.SyncParked(1, G3), s.SyncOk(1, G3, Parts(0))])
def test_an_answer_does_not(wire: Any):
    game = PlayedGroup(setup(faults=("crash",)))
    step = game.step("crash", member_A=stable(owned=0b01), wire_A=wire)
    assert step.after["wire A"] is None
    assert a(step) == s.Member()


def test_a_late_answer_does_not_reach_the_next_process():
    game = PlayedGroup(setup(faults=("crash",), decisions=("no_sent_generation_check",)))
    late = s.Refused("heartbeat", Error.UNKNOWN_MEMBER_ID, 1, Generation(2))
    crashed = game.step("crash", member_A=stable(), stray_A=late).after
    started = game.step("start", stray_A=crashed["stray A"]).after
    assert game.steps("late answer", member_A=started["member A"], stray_A=started["stray A"]) == []


def test_the_sticky_assignor_remembers_over_an_unsubscribe():
    game = PlayedGroup(setup(lists=(("sticky",),), faults=("unsubscribe",)))
    member = stable(owned=0b01, last=Parts(0b01))
    after = a(game.step("unsubscribe", member_A=member, **IN_STABLE, **LISTED))
    assert (after.last, after.own_gen) == (0b01, 3)


def test_lost_as_told_by_the_rest():
    """A callback says what it was given and who was told what before."""
    step = DYNAMIC.step("join", member_A=stable(-1, 0b01, id=0, rejoin=True))
    (call,) = step.saw(Callback)
    assert (call.call, call.reset, call.believed, call.midway) == (Call.LOST, True, 0b01, False)


def test_an_error_for_an_older_generation_is_a_rejoin_where_it_is_of_join_or_sync():
    old = s.Refused("sync", Error.ILLEGAL_GENERATION, 1, Generation(2))
    waiting = stable(state=COMPLETING, rejoin=False, owned=0b01)
    after = a(DYNAMIC.step("receive", member_A=waiting, wire_A=old))
    assert (after.rejoin, after.generation, after.owned) == (True, 3, 0b01)
    late = s.Refused("commit", Error.ILLEGAL_GENERATION, 1, Generation(2))
    assert not a(DYNAMIC.step("late answer", member_A=stable(owned=0b01), stray_A=late)).rejoin


def test_a_commit_that_never_ends_never_ends():
    game = PlayedGroup(setup(decisions=("prepare_commit_never_done",)))
    committing = stable(owned=0b01, rejoin=True, committing=True)
    assert game.steps("commit done", member_A=committing) == []
    assert game.steps("commit done", member_A=committing._replace(generation=Generation(-1)))


# -- what is kept and what goes ------------------------------------------------------------------------


def test_the_answer_of_join_group_names_the_member():
    """A static member that came back learns its id from it."""
    waiting = stable(-1, id=0, state=PREPARING, rejoin=True, prepare=False)
    step = STATIC.step("receive", member_A=waiting, wire_A=s.JoinOk(2, G4, "cooperative-sticky"))
    assert (a(step).id, step.after["wire A"]) == (2, s.Sync(2, G4))


@pytest.mark.parametrize("wire", [s.SyncOk(2, G4, Parts(0b01)), s.SyncOk(1, G3, Parts(0b01))])
def test_the_answer_of_sync_group_is_for_the_membership_that_asked(wire: s.SyncOk):
    waiting = stable(generation=4, owned=0b10, own_gen=3, state=COMPLETING, rejoin=False, prepare=False)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=wire)
    assert (a(step).state, a(step).received, a(step).rejoin) == (COMPLETING, None, True)
    assert step.after["wire A"] is None


@pytest.mark.parametrize("changed", [{"state": UNJOINED}, {"generation": Generation(-1)}])
def test_a_callback_takes_a_generation_and_a_rebalance_that_is_over(changed: dict[str, Any]):
    """``joinGroupIfNeeded``: neither a generation that was reset nor a state that is not STABLE will do."""
    between = stable(owned=0b01, received=Parts(0b10), prepare=False)._replace(**changed)
    after = a(DYNAMIC.step("complete", member_A=between))
    assert (after.owned, after.received, after.generation) == (0b01, None, -1)
    throwing = PlayedGroup(setup(faults=("listener throws",)))
    assert "state" not in changed or throwing.steps("listener throws", member_A=between) == []


@pytest.mark.parametrize(("before", "after"), [(0b11, 0b01), (0b10, 0), (0b01, 0b01)])
def test_what_was_not_fetched_and_is_revoked_is_not_to_be_fetched(before: int, after: int):
    member = stable(owned=0b11, topics=Topics(0b01), joined_topics=Topics(0b11), unfetched=Parts(before))
    assert a(TWO_TOPICS.step("join", member_A=member)).unfetched == after


def test_a_rebalance_that_began_before_the_callback_is_not_forgotten():
    member = stable(4, 0b01, own_gen=3, prepare=False, received=Parts(0b10), rejoin=True)
    assert a(EAGERLY.step("complete", member_A=member)).rejoin


@pytest.mark.parametrize(
    ("assignor", "version", "tells", "known"),
    [
        ("cooperative-sticky", 1, True, 4),
        ("cooperative-sticky", 1, False, -1),
        ("cooperative-sticky", 2, True, -1),
        ("sticky", 3, False, 4),
        ("range", 1, True, -1),
    ],
)
def test_who_owns_nothing_knows_a_generation_where_user_data_has_it(
    assignor: str, version: int, tells: bool, known: int
):
    game = PlayedGroup(setup(lists=((assignor,),), version=version, tells=tells))
    member = stable(4, 0b01, own_gen=3, prepare=False, received=Parts(0))
    assert a(game.step("complete", member_A=member)).own_gen == known


@pytest.mark.parametrize(("assignor", "kept"), [("sticky", 0b10), ("range", 0)])
def test_only_the_sticky_assignor_remembers_its_last_assignment(assignor: str, kept: int):
    game = PlayedGroup(setup(lists=((assignor,),)))
    member = stable(4, 0b01, prepare=False, received=Parts(0b10), last=Parts(0b01))
    after = a(game.step("complete", member_A=member))
    assert after.last == kept
    joins = game.step("join", member_A=after._replace(rejoin=True)).after["wire A"]
    assert joins.meta.last == kept


def test_partitions_that_the_member_has_not_heard_of_are_no_change():
    watching = stable(owned=0b01, watch=Parts(0b01), watched=Topics(1), view=Parts(0b01))
    assert DYNAMIC.steps("join", member_A=watching) == []


@pytest.mark.parametrize(
    ("decisions", "before", "after"),
    [
        ((), False, True),
        ((), True, True),
        (("rejoin_flag_not_latched",), False, False),
        (("rejoin_flag_not_latched",), True, True),
    ],
)
def test_who_has_sent_join_group_wants_to(decisions: tuple[str, ...], before: bool, after: bool):
    """2.7.1: also where nothing but the subscription asked for it."""
    game = PlayedGroup(setup(topics=(0b01, 0b10), decisions=decisions))
    member = stable(topics=Topics(0b11), joined_topics=Topics(0b01), rejoin=before)
    assert a(game.step("join", member_A=member)).rejoin is after


def test_unsorted_metadata_has_other_bytes_each_time():
    game = PlayedGroup(setup(decisions=("unsorted_metadata",)))
    first = game.step("join", member_A=stable(rejoin=True))
    again = game.step("join", member_A=stable(rejoin=True, noise=a(first).noise))
    assert [step.after["wire A"].meta.noise for step in (first, again)] == [1, 0]
    assert DYNAMIC.step("join", member_A=stable(rejoin=True)).after["wire A"].meta.noise == 0


# -- what the listener sees meanwhile ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "generation", "current"),
    [
        ("no_snapshot_before_callback", -1, [False, False]),
        ("no_snapshot_before_callback", 4, [True, True]),
        ("metadata_after_revoke", 4, [False, True]),
    ],
)
def test_which_generation_the_listener_sees(decision: str, generation: int, current: list[bool]):
    game = PlayedGroup(setup(decisions=(decision,)))
    state = STABLE if generation == 4 else UNJOINED
    member = stable(generation, 0b01, own_gen=3, state=state, prepare=generation < 0, received=Parts(0b10))
    step = game.step("complete", member_A=member)
    assert calls(step) == [("revoked", 0b01), ("assigned", 0b10)]
    assert [call.current for call in step.saw(Callback)] == current


@pytest.mark.parametrize(
    ("assigned", "expected"), [(0b01, []), (0b11, [("assigned", 0b10)])], ids=["nothing new", "something"]
)
def test_an_empty_callback_may_be_skipped(assigned: int, expected: list[tuple[str, int]]):
    game = PlayedGroup(setup(decisions=("skip_empty_assigned_cb",)))
    member = stable(4, 0b01, prepare=False, received=Parts(assigned))
    assert calls(game.step("complete", member_A=member)) == expected


# -- whom an answer is for -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "state", "rejoin"), [("join", PREPARING, True), ("heartbeat", STABLE, False)]
)
def test_an_answer_to_another_id_resets_nothing(api: str, state: MemberState, rejoin: bool):
    member = stable(owned=0b01, state=state)
    wire = s.Refused(api, Error.UNKNOWN_MEMBER_ID, 2, G3 if api == "heartbeat" else Generation(-1))
    action, channel = ("receive", "wire_A") if api == "join" else ("late answer", "stray_A")
    step = DYNAMIC.step(action, member_A=member, **{channel: wire})
    assert (a(step).id, a(step).generation, a(step).rejoin) == (1, 3, rejoin)
    assert bool(step.saw(Noted)) is (api == "heartbeat")  # it is late


def test_an_id_that_comes_late_is_nobodys():
    reset = stable(-1, id=0, state=UNJOINED, rejoin=True)
    given = s.Refused("join", Error.MEMBER_ID_REQUIRED, 0, given=5)
    assert a(DYNAMIC.step("receive", member_A=reset, wire_A=given)) == reset


def test_an_id_that_is_given_comes_without_a_generation():
    waiting = stable(id=0, state=PREPARING, prepare=False, rejoin=True)
    given = s.Refused("join", Error.MEMBER_ID_REQUIRED, 0, given=5)
    assert a(DYNAMIC.step("receive", member_A=waiting, wire_A=given)).generation == -1


def test_a_pending_id_that_is_not_known_any_more_is_a_membership_that_was_reset():
    waiting = stable(-1, id=5, state=PREPARING, prepare=False, rejoin=True)
    step = DYNAMIC.step("receive", member_A=waiting, wire_A=s.Refused("join", Error.UNKNOWN_MEMBER_ID, 5))
    [answered] = step.saw(Answered)
    assert (answered.reset, answered.keeps_id, a(step).id) == (True, False, 0)


def test_join_and_sync_errors_that_poll_throws_need_not_be_of_this_generation():
    """SyncGroupResponseHandler raises FENCED_INSTANCE_ID whatever it was sent with."""
    waiting = stable(4, 0b01, state=COMPLETING, prepare=False, rejoin=True)
    old = s.Refused("sync", Error.FENCED_INSTANCE_ID, 1, G3)
    assert a(STATIC.step("receive", member_A=waiting, wire_A=old)).life is Life.FAILED


def test_late_commits_alone_reset_java():
    java = PlayedGroup(setup(decisions=("late_commit_resets",)))
    late = s.Refused("heartbeat", Error.ILLEGAL_GENERATION, 1, Generation(2))
    assert a(java.step("late answer", member_A=stable(owned=0b01), stray_A=late)).generation == 3


@pytest.mark.parametrize("decision", ["prepare_once_per_rebalance", "prepare_not_repeated_after_reset"])
def test_who_is_expelled_in_a_rebalance_prepares_anew_since_kafka_12983(decision: str):
    waiting = stable(state=COMPLETING, owned=0b01, prepare=False, rejoin=True)
    refused = s.Refused("sync", Error.UNKNOWN_MEMBER_ID, 1, G3)
    older = PlayedGroup(setup(decisions=(decision,)))
    found = [a(game.step("receive", member_A=waiting, wire_A=refused)).prepare for game in (DYNAMIC, older)]
    assert found == [True, False]


# -- leaving and dying ---------------------------------------------------------------------------------

LATE_HEARTBEAT = Late("heartbeat", 1, G3)


@pytest.mark.parametrize("action", ["unsubscribe", "close"])
@pytest.mark.parametrize(
    ("kind", "wire", "stray", "left"),
    [
        ("forgets", s.Join(1, meta()), None, s.Join(1, meta())),
        ("forgets", s.JoinParked(1), None, None),
        ("forgets", s.Join(1, meta()), LATE_HEARTBEAT, LATE_HEARTBEAT),
        ("forgets", s.JoinParked(1), s.Join(0, meta()), s.Join(0, meta())),
        ("keeps", s.Join(1, meta()), None, None),
        ("dynamic", s.Join(1, meta()), None, None),
    ],
)
def test_what_a_member_that_leaves_has_under_way(kind: str, wire: Any, stray: Any, left: Any, action: str):
    """A static one that forgets its id leaves its JoinGroup behind; a heartbeat dies with its connection."""
    decisions = ("static_forgets_id",) if kind == "forgets" else ()
    game = PlayedGroup(setup(static=kind != "dynamic", faults=(action,), decisions=decisions))
    member = stable(owned=0b01, state=PREPARING, rejoin=True, prepare=False)
    step = game.step(action, member_A=member, wire_A=wire, stray_A=stray, **IN_STABLE, **LISTED)
    gone = action == "close" and isinstance(left, Late)
    assert (step.after["wire A"], step.after["stray A"]) == (None, None if gone else left)


def test_a_join_group_that_was_given_up_outlives_the_process_too():
    game = PlayedGroup(setup(faults=("crash",)))
    left = s.Join(0, meta())
    assert game.step("crash", member_A=stable(), stray_A=left).after["stray A"] == left


@pytest.mark.parametrize(
    ("state", "after", "wire"),
    [(PREPARING, COMPLETING, None), (UNJOINED, UNJOINED, s.JoinOk(1, G4, "range"))],
)
def test_who_hangs_in_its_assignor_has_joined(state: MemberState, after: MemberState, wire: Any):
    game = PlayedGroup(setup(faults=("hang",)))
    member = stable(state=state, rejoin=True, prepare=False)
    step = game.step("hang", member_A=member, wire_A=s.JoinOk(1, G4, "range"))
    assert (a(step).life, a(step).state, step.after["wire A"]) == (Life.HUNG, after, wire)
    assert a(step).generation == (4 if wire is None else 3)


@pytest.mark.parametrize(
    ("state", "beats"), [(STABLE, True), (COMPLETING, False)], ids=["between rebalances", "in one"]
)
def test_before_kafka_10134_nobody_beats_between_join_and_sync(state: MemberState, beats: bool):
    faults = ("late request",)
    game = PlayedGroup(setup(faults=faults, decisions=("no_heartbeat_in_completing",)))
    assert bool(game.steps("heartbeat", member_A=stable(state=state))) is beats
    assert bool(game.steps("late request", member_A=stable(state=state), **IN_STABLE, **LISTED)) is beats


def test_who_hangs_outside_its_assignor_leaves_whatever_the_group_does():
    group = s.Group(GroupState.COMPLETING, G3, Id(Slot(0), 1), "cooperative-sticky")
    hung = stable(life=Life.HUNG)
    assert DYNAMIC.step("poll interval", member_A=hung, group=group, **LISTED).after["record A"] == ()
