"""The coordinator against docs/protocol.md, section 2: one test, or one row of a table, per row there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.model.classic.join_group import select_protocol, written
from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    JoinParked,
    Member,
    MemberRecord,
    Metadata,
    Refused,
    Sync,
    SyncOk,
    SyncParked,
)
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import (
    Admitted,
    Expelled,
    Noted,
    Repeated,
    Replaced,
    TurnedAway,
)

from tests.model.classic.small_groups import (
    BOTH,
    COOPERATIVE,
    EAGER,
    NOBODY,
    PlayedGroup,
    Step,
    meta,
    setup,
    stable,
)

A1, B1 = p.Id(p.Slot(0), 1), p.Id(p.Slot(1), 1)
EMPTY, PREPARING, COMPLETING, STABLE, DEAD = (
    p.GroupState.EMPTY,
    p.GroupState.PREPARING,
    p.GroupState.COMPLETING,
    p.GroupState.STABLE,
    p.GroupState.DEAD,
)
EITHER = (EAGER, BOTH, COOPERATIVE)
"""Stages, so that the coordinator compares assignor lists."""

DYNAMIC, STATIC, MIXED = (
    PlayedGroup(setup()),
    PlayedGroup(setup(static=True)),
    PlayedGroup(setup(lists=EITHER)),
)


def group(state: p.GroupState, leader: p.Id | None = B1, protocol: str = "cooperative-sticky") -> Group:
    if state is DEAD:
        return Group()
    return Group(state, p.Generation(3), leader, protocol)


def here(
    game: PlayedGroup, join: Join, state: p.GroupState, mine: tuple[MemberRecord, ...], **more: Any
) -> Step:
    """A JoinGroup of A arrives at a group in ``state`` that has ``mine`` of A, and B."""
    values = {
        "group": group(state),
        "record_A": mine,
        "record_B": (MemberRecord(1, meta(), synced=True),),
        **more,
    }
    return game.step("join request", wire_A=join, **values)


# -- 2.1 JoinGroup -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [DEAD, EMPTY, PREPARING, COMPLETING, STABLE])
def test_a_dynamic_member_without_an_id_is_given_one(state: p.GroupState):
    step = here(DYNAMIC, Join(0, meta()), state, ())
    assert step.after["wire A"] == Refused("join", p.Error.MEMBER_ID_REQUIRED, 0, given=1)
    assert step.after["record A"] == (MemberRecord(1, None),)
    assert step.after["group"] == group(state)


def test_each_id_is_another():
    step = here(DYNAMIC, Join(0, meta()), PREPARING, (MemberRecord(1, meta()), MemberRecord(4, None)))
    assert step.after["wire A"].given == 5


@pytest.mark.parametrize("state", [DEAD, EMPTY, PREPARING, COMPLETING, STABLE])
def test_an_id_that_the_group_does_not_know(state: p.GroupState):
    step = here(DYNAMIC, Join(7, meta()), state, (), record_B=())
    assert step.after["wire A"] == Refused("join", p.Error.UNKNOWN_MEMBER_ID, 7)
    assert (step.after["record A"], step.after["group"]) == ((), group(state))


def test_a_static_id_that_was_replaced_is_fenced():
    step = here(STATIC, Join(1, meta()), STABLE, (MemberRecord(2, meta(), synced=True),))
    assert step.after["wire A"].error is p.Error.FENCED_INSTANCE_ID


@pytest.mark.parametrize("state", [DEAD, EMPTY, PREPARING, COMPLETING, STABLE])
def test_a_pending_id_is_admitted(state: p.GroupState):
    step = here(DYNAMIC, Join(1, meta()), state, (MemberRecord(1, None),))
    assert step.after["wire A"] == JoinParked(1)
    (record,) = step.after["record A"]
    assert (record.meta, record.joined) == (meta(), True)
    assert (step.after["group"].state, step.after["group"].first) == (PREPARING, state in (DEAD, EMPTY))


@pytest.mark.parametrize(
    ("stored", "offered", "error"),
    [
        (EAGER, COOPERATIVE, p.Error.INCONSISTENT_GROUP_PROTOCOL),
        (COOPERATIVE, EAGER, p.Error.INCONSISTENT_GROUP_PROTOCOL),
        (EAGER, BOTH, p.Error.MEMBER_ID_REQUIRED),
        (COOPERATIVE, BOTH, p.Error.MEMBER_ID_REQUIRED),
        (BOTH, COOPERATIVE, p.Error.MEMBER_ID_REQUIRED),
    ],
)
def test_protocols_must_fit(stored: tuple[str, ...], offered: tuple[str, ...], error: p.Error):
    other = (MemberRecord(1, meta(stored), synced=True),)
    for state in (PREPARING, COMPLETING, STABLE):
        step = here(MIXED, Join(0, meta(offered)), state, (), record_B=other)
        assert step.after["wire A"].error is error


def test_an_empty_group_takes_any_protocol():
    assert here(MIXED, Join(0, meta(COOPERATIVE)), EMPTY, (), record_B=()).after["wire A"].given == 1


def test_the_own_old_entry_counts():
    mine = (MemberRecord(1, meta(EAGER), synced=True),)
    step = here(MIXED, Join(1, meta(COOPERATIVE)), STABLE, mine, record_B=())
    assert step.after["wire A"].error is p.Error.INCONSISTENT_GROUP_PROTOCOL


def test_a_pending_id_supports_nothing():
    step = here(MIXED, Join(0, meta(COOPERATIVE)), EMPTY, (), record_B=(MemberRecord(1, None),))
    assert step.after["wire A"].error is p.Error.MEMBER_ID_REQUIRED


def test_group_max_size():
    game = PlayedGroup(setup(max_size=1))
    for state in (COMPLETING, STABLE):
        refused = here(game, Join(0, meta()), state, ()).after["wire A"]
        assert refused.error is p.Error.GROUP_MAX_SIZE_REACHED
        known = here(game, Join(1, meta()), state, (MemberRecord(1, meta(), synced=True),)).after["wire A"]
        assert not isinstance(known, Refused)
    assert here(game, Join(0, meta()), EMPTY, (), record_B=()).after["wire A"].given == 1


@pytest.mark.parametrize(
    ("other_came", "error"),
    [
        (True, p.Error.GROUP_MAX_SIZE_REACHED),
        (False, p.Error.MEMBER_ID_REQUIRED),
    ],
)
def test_group_max_size_while_preparing(other_came: bool, error: p.Error):
    game = PlayedGroup(setup(max_size=1))
    other = (MemberRecord(1, meta(), joined=other_came),)
    assert here(game, Join(0, meta()), PREPARING, (), record_B=other).after["wire A"].error is error


OTHER = meta(owned=p.Parts(0b01))
"""Metadata that differs from what is stored."""


@pytest.mark.parametrize(
    ("state", "leads", "sent", "answered", "rebalances"),
    [
        (PREPARING, False, meta(), None, False),
        (PREPARING, False, OTHER, None, False),
        (COMPLETING, False, meta(), False, False),
        (COMPLETING, True, meta(), True, False),
        (COMPLETING, False, OTHER, None, True),
        (COMPLETING, True, OTHER, None, True),
        (STABLE, False, meta(), False, False),
        (STABLE, False, OTHER, None, True),
        (STABLE, True, meta(), None, True),
        (STABLE, True, OTHER, None, True),
    ],
)
def test_a_known_member_joins(
    state: p.GroupState, leads: bool, sent: Metadata, answered: bool | None, rebalances: bool
):
    """``answered``: at once, as leader or not; None: its JoinGroup is parked."""
    before = group(state, A1 if leads else B1)
    step = here(DYNAMIC, Join(1, sent), state, (MemberRecord(1, meta(), synced=True),), group=before)
    (record,) = step.after["record A"]
    if answered is None:
        assert (step.after["wire A"], record.joined, record.meta) == (JoinParked(1), True, sent)
    else:
        assert step.after["wire A"] == JoinOk(1, p.Generation(3), "cooperative-sticky", answered)
        assert not record.joined
    after = step.after["group"]
    assert (after.state, after.first) == (PREPARING if rebalances else state, False)


@pytest.mark.parametrize(("version", "rebalances"), [(3, True), (1, False)])
def test_a_follower_that_enforces_a_rebalance_with_equal_bytes_is_not_heard(version: int, rebalances: bool):
    """2.1, note: with version 2 or more the generation is in the bytes, and they always differ."""
    game = PlayedGroup(setup(lists=(EAGER,), version=version))
    joins = game.step("join", member_A=stable(owned=0b01, rejoin=True)).after["wire A"]
    again = game.step("join", member_A=stable(generation=4, owned=0b10, rejoin=True)).after["wire A"]
    step = here(game, again, STABLE, (MemberRecord(1, joins.meta, synced=True),))
    assert (step.after["group"].state is PREPARING) is rebalances


def test_what_is_not_written_makes_no_difference():
    game = PlayedGroup(setup(version=1, tells=False))
    first = game.step("join", member_A=stable(3, 0b01, own_gen=2, rejoin=True)).after["wire A"]
    again = game.step("join", member_A=stable(4, 0b01, own_gen=4, rejoin=True)).after["wire A"]
    assert (
        here(game, again, STABLE, (MemberRecord(1, first.meta, synced=True),)).after["group"].state is STABLE
    )


# -- 2.1 the rebalance begins, the join phase lasts ----------------------------------------------------


@pytest.mark.parametrize("state", [PREPARING, STABLE, EMPTY])
def test_parked_syncs_fail_when_the_phase_is_over(state: p.GroupState):
    step = DYNAMIC.step("sync refused", wire_A=SyncParked(1, p.Generation(3)), group=group(state))
    refused = step.after["wire A"]
    assert (refused.api, refused.error) == ("sync", p.Error.REBALANCE_IN_PROGRESS)
    assert (refused.id, refused.generation) == (1, 3)


def test_parked_syncs_wait_while_it_lasts():
    assert DYNAMIC.steps("sync refused", wire_A=SyncParked(1, p.Generation(3)), group=group(COMPLETING)) == []


def phase(
    game: PlayedGroup,
    a: tuple[MemberRecord, ...],
    b: tuple[MemberRecord, ...],
    *,
    first: bool = False,
    **more: Any,
):
    wires = {
        f"wire_{slot}": JoinParked(records[0].id) if records and records[0].joined else None
        for slot, records in (("A", a), ("B", b))
    }
    before = {"group": group(PREPARING)._replace(first=first), **wires, **more}
    return game.steps("join phase ends", NOBODY, record_A=a, record_B=b, **before)


CAME, MISSING, GIVEN_UP = (
    (MemberRecord(1, meta(), joined=True),),
    (MemberRecord(1, meta()),),
    (MemberRecord(1, meta(), given_up=True),),
)
PENDING = (MemberRecord(1, None),)


@pytest.mark.parametrize(
    ("a", "b", "first", "ends"),
    [
        (CAME, CAME, False, True),
        (CAME, MISSING, False, False),
        (CAME, PENDING, False, False),
        (CAME, PENDING, True, True),  # the initial rebalance ends by its timer alone
        (CAME, GIVEN_UP, False, True),
        (CAME, (), False, True),
        (MISSING, MISSING, False, False),
        ((), (), False, True),
        (PENDING, (), False, False),
        (CAME, (*GIVEN_UP, MemberRecord(2, None)), False, True),  # at the timeout, whoever is pending
        (GIVEN_UP, GIVEN_UP, False, True),  # they are dropped first, and nobody is left
    ],
)
def test_when_the_join_phase_ends(
    a: tuple[MemberRecord, ...], b: tuple[MemberRecord, ...], first: bool, ends: bool
):
    assert bool(phase(DYNAMIC, a, b, first=first)) is ends


def test_without_a_rebalance_timeout_an_abandoned_group_is_empty_all_the_same():
    game = PlayedGroup(setup(coordinator=("rebalance_timeout_zero",)))
    assert [step.after["group"].state for step in phase(game, (), ())] == [EMPTY]


def test_a_phase_that_no_static_member_comes_to_goes_on():
    assert phase(STATIC, GIVEN_UP, GIVEN_UP) == []


# -- 2.2 ----------------------------------------------------------------------------------------------


def test_the_generation_rises_and_only_the_leader_leads():
    for leader, leads in ((A1, (True, False)), (B1, (False, True))):
        (step,) = phase(DYNAMIC, CAME, CAME, group=group(PREPARING, leader))
        answers = step.after["wire A"], step.after["wire B"]
        assert answers == tuple(JoinOk(1, 4, "cooperative-sticky", lead) for lead in leads)  # type: ignore[arg-type]
        assert step.after["group"] == Group(COMPLETING, p.Generation(4), leader, "cooperative-sticky")
        for slot in "AB":
            (record,) = step.after[f"record {slot}"]
            assert (record.joined, record.synced, record.given_up) == (False, False, False)


def test_a_dynamic_member_that_did_not_come_is_dropped_without_a_word():
    (step,) = phase(DYNAMIC, CAME, GIVEN_UP)
    assert (step.after["record B"], step.after["wire B"]) == ((), None)


@pytest.mark.parametrize("a", [CAME, ()])
def test_any_member_that_came_may_follow_a_leader_that_did_not(a: tuple[MemberRecord, ...]):
    game = PlayedGroup(setup(members=3))
    wires = {f"wire_{s}": JoinParked(1) for s in "AC"}
    steps = game.steps(
        "join phase ends", NOBODY, group=group(PREPARING), record_A=CAME, record_B=GIVEN_UP if a else (),
        record_C=CAME, **wires,
    )  # fmt: skip
    assert [step.after["group"].leader for step in steps] == [A1, p.Id(p.Slot(2), 1)]


def test_a_leader_that_was_removed_leads_no_more():
    """2.2: the current leader leads on; one that was removed is not that, though the model may give its id
    again."""
    game = PlayedGroup(setup())
    values = {
        "record_A": (MemberRecord(1, meta(), synced=True),),
        "record_B": (MemberRecord(1, meta(), synced=True),),
    }
    removed = game.step("session expires", group=group(STABLE, A1), **values).after
    given = game.step("join request", wire_A=Join(0, meta()), group=removed["group"]).after["wire A"].given
    came = (MemberRecord(given, meta(), joined=True),)
    steps = game.steps(
        "join phase ends", NOBODY, group=removed["group"], record_A=came, record_B=CAME,
        wire_A=JoinParked(given), wire_B=JoinParked(1),
    )  # fmt: skip
    assert len(steps) == 2


@pytest.mark.parametrize("label", [2, -1])
@pytest.mark.parametrize(("stale", "owned", "own_gen"), [(True, 0b01, 2), (False, 0b11, 3)])
def test_a_silent_static_member_is_represented_by_what_it_said_last(
    stale: bool, owned: int, own_gen: int, label: int
):
    """2.2, consequence (a); as specified also by what it was assigned since."""
    game = PlayedGroup(setup(static=True, coordinator=("silent_static_claims_stale",) if stale else ()))
    sent = meta(owned=p.Parts(0b01), own_gen=p.Generation(2), label=p.Generation(label))
    away = (MemberRecord(1, sent, p.Parts(0b10), synced=True, given_up=True),)
    (step,) = phase(game, CAME, away)
    (record,) = step.after["record B"]
    assert (record.silent, record.synced, record.given_up) == (True, False, False)
    assert (record.meta.owned, record.meta.own_gen) == (owned, own_gen)
    assert record.meta.label == (-1 if label < 0 else own_gen)  # version 1 has none
    assert step.after["group"].leader == A1  # though B was the leader: it did not come


def test_without_members_the_group_is_empty_and_the_generation_rises():
    (step,) = phase(DYNAMIC, (), ())
    assert (step.after["group"].state, step.after["group"].generation) == (EMPTY, 4)


# -- 2.3 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "winners"),
    [
        ([("range", "coop"), ("range", "coop")], ["range"]),
        ([("range", "coop"), ("coop",)], ["coop"]),
        ([("range",), ("range", "coop")], ["range"]),
        ([("range", "coop"), ("coop", "range")], ["range", "coop"]),
        ([("range", "coop"), ("coop", "range"), ("coop", "range")], ["coop"]),
        ([("a", "b", "c"), ("c", "b"), ("b", "c")], ["b"]),  # a is no candidate, so the first votes b
        ([("range",), ("coop",)], []),
        ([], []),
    ],
)
def test_select_protocol(lists: list[tuple[str, ...]], winners: list[str]):
    assert select_protocol([Metadata(names, p.Topics(1)) for names in lists]) == winners


def test_a_tie_goes_to_either():
    a = (MemberRecord(1, meta(("range", "cooperative-sticky")), joined=True),)
    b = (MemberRecord(1, meta(("cooperative-sticky", "range")), joined=True),)
    steps = phase(MIXED, a, b)
    assert sorted(step.after["group"].protocol for step in steps) == ["cooperative-sticky", "range"]


# -- 2.4 SyncGroup -------------------------------------------------------------------------------------

MINE = (MemberRecord(1, meta(), p.Parts(0b01)),)


@pytest.mark.parametrize(
    ("state", "records", "generation", "error"),
    [
        (EMPTY, (), 3, p.Error.UNKNOWN_MEMBER_ID),
        (STABLE, (), 3, p.Error.UNKNOWN_MEMBER_ID),
        (COMPLETING, PENDING, 3, p.Error.UNKNOWN_MEMBER_ID),
        (STABLE, MINE, 2, p.Error.ILLEGAL_GENERATION),
        (PREPARING, MINE, 2, p.Error.ILLEGAL_GENERATION),
        (COMPLETING, MINE, 4, p.Error.ILLEGAL_GENERATION),
        (PREPARING, MINE, 3, p.Error.REBALANCE_IN_PROGRESS),
    ],
)
def test_sync_errors(state: p.GroupState, records: tuple[MemberRecord, ...], generation: int, error: p.Error):
    wire = Sync(1, p.Generation(generation))
    step = DYNAMIC.step("sync request", wire_A=wire, group=group(state), record_A=records)
    assert step.after["wire A"] == Refused("sync", error, 1, p.Generation(generation))
    assert step.after["record A"] == records


def test_the_sync_of_a_replaced_id_is_fenced():
    values = {
        "wire_A": Sync(1, p.Generation(3)),
        "group": group(STABLE),
        "record_A": (MemberRecord(2, meta()),),
    }
    assert STATIC.step("sync request", **values).after["wire A"].error is p.Error.FENCED_INSTANCE_ID


def test_a_follower_waits_for_the_leader():
    wire = Sync(1, p.Generation(3))
    step = DYNAMIC.step("sync request", wire_A=wire, group=group(COMPLETING), record_A=MINE)
    assert step.after["wire A"] == SyncParked(1, p.Generation(3))
    assert step.after["record A"][0].synced


@pytest.mark.parametrize("assigned", [p.Parts(0b01), p.Parts(0), None])
def test_a_late_sync_gets_what_is_stored(assigned: p.Parts | None):
    record = MemberRecord(1, meta(), assigned)
    step = DYNAMIC.step(
        "sync request", wire_A=Sync(1, p.Generation(3)), group=group(STABLE), record_A=(record,)
    )
    assert step.after["wire A"] == SyncOk(1, p.Generation(3), assigned)
    assert step.after["record A"][0].synced


def test_the_leader_settles_the_group():
    grants = (p.Grant(A1, p.Parts(0b01)),)
    step = DYNAMIC.step(
        "leader sync", wire_A=Sync(1, p.Generation(3), grants), group=group(COMPLETING, A1),
        record_A=(MemberRecord(1, meta()),),
        record_B=(MemberRecord(1, meta(), synced=True), MemberRecord(2, None)),
        wire_B=SyncParked(1, p.Generation(3)),
    )  # fmt: skip
    assert step.after["group"] == group(STABLE, A1)
    assert step.after["wire A"] == SyncOk(1, p.Generation(3), p.Parts(0b01))
    assert step.after["wire B"] == SyncOk(1, p.Generation(3), None)  # left out: empty bytes
    assert [record.assigned for record in step.after["record B"]] == [None, 0]


@pytest.mark.parametrize("state", [EMPTY, PREPARING, STABLE])
def test_a_leader_that_is_late_settles_nothing(state: p.GroupState):
    values = {"group": group(state, A1), "record_A": MINE}
    wire = Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(0b01)),))
    assert DYNAMIC.steps("leader sync", wire_A=wire, **values) == []
    assert DYNAMIC.step("sync request", wire_A=wire, **values)


def test_nobody_settles_but_the_leader():
    wire = Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(0b01)),))
    values = {"group": group(COMPLETING, B1), "record_A": MINE}
    assert DYNAMIC.steps("leader sync", wire_A=wire, **values) == []


# -- 2.4 heartbeats, commits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "records", "generation", "heartbeat", "commit"),
    [
        (EMPTY, (), 3, p.Error.UNKNOWN_MEMBER_ID, p.Error.UNKNOWN_MEMBER_ID),
        (STABLE, (), 3, p.Error.UNKNOWN_MEMBER_ID, p.Error.UNKNOWN_MEMBER_ID),
        (STABLE, PENDING, 3, p.Error.UNKNOWN_MEMBER_ID, p.Error.UNKNOWN_MEMBER_ID),
        (STABLE, MINE, 2, p.Error.ILLEGAL_GENERATION, p.Error.ILLEGAL_GENERATION),
        (COMPLETING, MINE, 2, p.Error.ILLEGAL_GENERATION, p.Error.ILLEGAL_GENERATION),
        (PREPARING, MINE, 2, p.Error.ILLEGAL_GENERATION, p.Error.ILLEGAL_GENERATION),
        (STABLE, MINE, 3, None, None),
        (PREPARING, MINE, 3, p.Error.REBALANCE_IN_PROGRESS, None),
        (COMPLETING, MINE, 3, None, p.Error.REBALANCE_IN_PROGRESS),
    ],
)
def test_answers_to_heartbeats_and_commits(
    state: p.GroupState,
    records: tuple[MemberRecord, ...],
    generation: int,
    heartbeat: p.Error | None,
    commit: p.Error | None,
):
    for api, error in (("heartbeat", heartbeat), ("commit", commit)):
        late = p.Late(api, 1, p.Generation(generation))
        step = DYNAMIC.step("late request arrives", stray_A=late, group=group(state), record_A=records)
        answer = step.after["stray A"]
        assert (answer.error if answer else None) is error


def test_the_heartbeat_of_a_replaced_id_is_fenced():
    late = p.Late("heartbeat", 1, p.Generation(3))
    step = STATIC.step(
        "late request arrives", stray_A=late, group=group(STABLE), record_A=(MemberRecord(2, meta()),)
    )
    assert step.after["stray A"].error is p.Error.FENCED_INSTANCE_ID


# -- 2.4 timeouts --------------------------------------------------------------------------------------

AWAY = Member(life=p.Life.PAUSED, state=p.MemberState.STABLE, id=1, generation=p.Generation(3))


@pytest.mark.parametrize(
    ("state", "record", "expires", "then"),
    [
        (STABLE, MemberRecord(1, meta(), synced=True), True, PREPARING),
        (COMPLETING, MemberRecord(1, meta()), True, PREPARING),
        (PREPARING, MemberRecord(1, meta()), True, PREPARING),
        (PREPARING, MemberRecord(1, meta(), joined=True), False, None),  # parked in JoinGroup
        (COMPLETING, MemberRecord(1, meta(), synced=True), False, None),  # parked in SyncGroup
        (STABLE, MemberRecord(1, None), True, STABLE),  # pending: no rebalance
        (PREPARING, MemberRecord(1, None), True, PREPARING),
    ],
)
def test_session_expiry(state: p.GroupState, record: MemberRecord, expires: bool, then: p.GroupState | None):
    steps = DYNAMIC.steps("session expires", member_A=AWAY, group=group(state), record_A=(record,))
    assert bool(steps) is expires
    if expires:
        (step,) = steps
        assert (step.after["record A"], step.after["group"].state) == ((), then)


@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_a_new_member_that_vanished_expires_though_its_join_is_parked(kind: str):
    """2.4: unless isNew, which it is until its first join phase is over."""
    game, join, before = {
        "dynamic": (DYNAMIC, Join(1, meta()), PENDING),
        "static": (STATIC, Join(0, meta()), ()),
    }[kind]
    admitted = here(game, join, STABLE, before).after
    gone: dict[str, Any] = {"member_A": Member(), "group": admitted["group"]}
    assert game.step("session expires", record_A=admitted["record A"], **gone).after["record A"] == ()
    (ended,) = phase(game, admitted["record A"], CAME)
    again = here(game, Join(1, OTHER), STABLE, ended.after["record A"]).after["record A"]
    assert again[0].joined
    assert game.steps("session expires", record_A=again, **gone) == []


def test_b1_is_about_new_members_only():
    game = PlayedGroup(setup(version=1, coordinator=("new_member_never_expires",)))
    old = (MemberRecord(1, meta(version=1, owned=p.Parts(0b01), own_gen=p.Generation(3)), synced=True),)
    assert game.steps("session expires", member_A=AWAY, group=group(STABLE), record_A=old)


def test_the_session_of_a_member_at_work_expires_by_a_fault_only():
    game = PlayedGroup(setup(faults=("session timeout",)))
    values = {"member_A": stable(), "group": group(STABLE), "record_A": MINE}
    assert game.steps("session expires", **values) == []
    assert game.step("session timeout", **values).after["budget"] == 0


@pytest.mark.parametrize("state", [COMPLETING, STABLE])
@pytest.mark.parametrize("static", [False, True])
def test_members_that_never_sync_are_removed(state: p.GroupState, static: bool):
    game = STATIC if static else DYNAMIC
    values = {"member_A": AWAY, "group": group(state)}
    (step,) = game.steps("rebalance timeout", record_A=(MemberRecord(1, meta()),), **values)
    assert (step.after["record A"], step.after["group"].state) == ((), PREPARING)
    assert game.steps("rebalance timeout", record_A=(MemberRecord(1, meta(), synced=True),), **values) == []


@pytest.mark.parametrize(
    ("decision", "removed"),
    [("", False), ("pending_sync_evicts_static", True), ("no_pending_sync_expiry", False)],
)
def test_a_silent_static_member_never_syncs(decision: str, removed: bool):
    game = PlayedGroup(setup(static=True, coordinator=(decision,) if decision else ()))
    silent = (MemberRecord(1, meta(), silent=True),)
    steps = game.steps("rebalance timeout", member_A=Member(), group=group(STABLE), record_A=silent)
    assert bool(steps) is removed


def test_a_parked_join_of_a_removed_member_is_answered():
    step = DYNAMIC.step("join refused", wire_A=JoinParked(1), group=group(PREPARING), record_A=())
    assert step.after["wire A"] == Refused("join", p.Error.UNKNOWN_MEMBER_ID, 1)
    assert DYNAMIC.steps("join refused", wire_A=JoinParked(1), record_A=CAME) == []


@pytest.mark.parametrize(
    ("state", "record", "then"),
    [
        (STABLE, MemberRecord(1, meta(), synced=True), PREPARING),
        (COMPLETING, MemberRecord(1, meta()), PREPARING),
        (PREPARING, MemberRecord(1, meta()), PREPARING),
    ],
)
def test_leave_group(state: p.GroupState, record: MemberRecord, then: p.GroupState):
    game = PlayedGroup(setup(faults=("close",)))
    step = game.step("close", member_A=stable(), group=group(state), record_A=(record,))
    assert (step.after["record A"], step.after["group"].state) == ((), then)


# -- 2.5 static membership -----------------------------------------------------------------------------


def back(
    state: p.GroupState, sent: Metadata, *, leads: bool = False, game: PlayedGroup = STATIC, **more: Any
) -> Step:
    """A static process was started again and joins without an id; it holds nothing."""
    old = (MemberRecord(1, meta(), p.Parts(0b01), synced=True),)
    return here(game, Join(0, sent), state, old, group=group(state, A1 if leads else B1), **more)


@pytest.mark.parametrize("leads", [False, True])
def test_a_static_member_returns_to_a_stable_group(leads: bool):
    step = back(STABLE, meta(), leads=leads)
    assert step.after["wire A"] == JoinOk(2, p.Generation(3), "cooperative-sticky", leads, skip=leads)
    (record,) = step.after["record A"]
    assert (record.id, record.assigned, record.synced) == (2, 0b01, True)
    assert step.after["group"] == group(STABLE, p.Id(p.Slot(0), 2) if leads else B1)


def test_a_static_leader_returns_as_a_follower_before_kip_814():
    game = PlayedGroup(setup(static=True, coordinator=("static_leader_returns_as_follower",)))
    answer = back(STABLE, meta(), leads=True, game=game).after["wire A"]
    assert (answer.leader, answer.skip) == (False, False)


@pytest.mark.parametrize(("ignored", "state"), [(True, STABLE), (False, PREPARING)])
def test_a_static_member_returns_with_another_subscription(ignored: bool, state: p.GroupState):
    decisions = ("static_rejoin_ignores_subscription",) if ignored else ()
    game = PlayedGroup(setup(static=True, topics=(0b01, 0b10), coordinator=decisions))
    assert back(STABLE, meta(topics=p.Topics(0b11)), game=game).after["group"].state is state


@pytest.mark.parametrize("lists", [(BOTH, COOPERATIVE), (COOPERATIVE, ("cooperative-sticky", "range"))])
def test_a_static_member_returns_and_the_selected_protocol_changes(lists: tuple[tuple[str, ...], ...]):
    """It was alone with its list, and the group had selected the first name in it."""
    game = PlayedGroup(setup(members=1, static=True, lists=EITHER))
    old, new = lists
    before = MemberRecord(1, meta(old), p.Parts(0), synced=True)
    step = game.step(
        "join request", wire_A=Join(0, meta(new)), group=group(STABLE, A1, old[0]), record_A=(before,)
    )
    assert step.after["group"].state is (PREPARING if old[0] != new[0] else STABLE)


def test_a_static_member_returns_with_another_order_of_assignors():
    """2.5: what counts is what the group selects, not whether the selected protocol is still offered."""
    game = PlayedGroup(setup(members=1, static=True, lists=EITHER))
    before = MemberRecord(1, meta(("range", "cooperative-sticky")), p.Parts(0), synced=True)
    step = game.step(
        "join request", wire_A=Join(0, meta(("cooperative-sticky", "range"))),
        group=group(STABLE, A1, "range"), record_A=(before,),
    )  # fmt: skip
    assert step.after["group"].state is PREPARING
    assert [seen.changed for seen in step.saw(Replaced)] == [True]


@pytest.mark.parametrize(
    "theirs",
    [
        0b01,
        0,
    ],
)
def test_everybody_else_has_a_vote_when_a_static_member_returns(theirs: int):
    """2.5 and 2.3: B supports range only, so the group cannot select anything else."""
    game = PlayedGroup(setup(static=True, lists=EITHER))
    mine, other = (MemberRecord(1, meta(EAGER), p.Parts(parts), synced=True) for parts in (0, theirs))
    step = game.step(
        "join request", wire_A=Join(0, meta(("cooperative-sticky", "range"))),
        group=group(STABLE, B1, "range"), record_A=(mine,), record_B=(other,),
    )  # fmt: skip
    assert step.after["group"].state is STABLE


@pytest.mark.parametrize("state", [COMPLETING, PREPARING])
def test_a_static_member_returns_during_a_rebalance(state: p.GroupState):
    step = back(state, meta(), leads=True)
    assert step.after["wire A"] == JoinParked(2)
    assert [record.id for record in step.after["record A"]] == [2]
    assert (step.after["group"].state, step.after["group"].leader) == (PREPARING, p.Id(p.Slot(0), 2))


def test_a_static_member_is_new():
    step = here(STATIC, Join(0, meta()), STABLE, ())
    assert (step.after["wire A"], step.after["group"].state) == (JoinParked(1), PREPARING)


def test_a_static_member_that_knows_its_id_is_as_any_other():
    mine = (MemberRecord(1, meta(), synced=True),)
    assert here(STATIC, Join(1, meta()), STABLE, mine).after["wire A"] == JoinOk(
        1, p.Generation(3), "cooperative-sticky"
    )
    assert here(STATIC, Join(1, OTHER), STABLE, mine).after["wire A"] == JoinParked(1)


def test_the_parked_join_of_a_replaced_id_is_fenced():
    step = STATIC.step(
        "join refused", wire_A=JoinParked(1), group=group(PREPARING), record_A=(MemberRecord(2, meta()),)
    )
    assert step.after["wire A"].error is p.Error.FENCED_INSTANCE_ID


def persisted(action: str, decisions: tuple[str, ...] = ()) -> list[int]:
    """The ids in the log after a static member returned by ``action``."""
    game = PlayedGroup(setup(static=True, faults=("failover",), coordinator=decisions))
    old = (MemberRecord(1, meta(), p.Parts(0b01), synced=True),)
    request = {"wire_A" if action == "join request" else "stray_A": Join(0, meta())}
    step = game.step(action, group=group(STABLE), record_A=old, log_A=old, log=group(STABLE), **request)
    assert [record.id for record in step.after["record A"]] == [2]
    return [record.id for record in step.after["log A"]]


def test_a_replacement_is_persisted():
    assert persisted("join request") == [2]
    assert persisted("join request", ("static_replace_not_persisted",)) == [1]


def test_a_replacement_by_an_abandoned_join_is_persisted():
    assert persisted("abandoned join") == [2]


# -- 2.6 failover --------------------------------------------------------------------------------------

FAILS = PlayedGroup(setup(faults=("failover",)))
LOGGED = (MemberRecord(1, meta(), p.Parts(0b01), synced=True),)


def test_the_log_is_what_comes_back():
    """Phase, pending ids, the bumped generation and removals since the last append are forgotten."""
    step = FAILS.step(
        "failover", NOBODY, group=group(COMPLETING)._replace(generation=p.Generation(4)), log=group(STABLE),
        record_A=(MemberRecord(1, OTHER), MemberRecord(2, None)), log_A=LOGGED, log_B=LOGGED,
    )  # fmt: skip
    assert step.after["group"] == group(STABLE)
    assert (step.after["record A"], step.after["record B"]) == (LOGGED, LOGGED)


@pytest.mark.parametrize(
    ("wire", "after"),
    [
        (Join(1, meta()), Refused("join", p.Error.NOT_COORDINATOR, 1)),
        (JoinParked(1), Refused("join", p.Error.NOT_COORDINATOR, 1)),
        (SyncParked(1, p.Generation(4)), Refused("sync", p.Error.NOT_COORDINATOR, 1, p.Generation(4))),
        (JoinOk(1, p.Generation(4), "range"), JoinOk(1, p.Generation(4), "range")),
        (SyncOk(1, p.Generation(4), p.Parts(1)), SyncOk(1, p.Generation(4), p.Parts(1))),
        (None, None),
    ],
)
def test_what_a_failover_makes_of_a_request(wire: Any, after: Any):
    step = FAILS.step("failover", NOBODY, wire_A=wire, group=group(STABLE), log=group(STABLE))
    assert step.after["wire A"] == after


@pytest.mark.parametrize(
    ("raw", "error"), [(False, "REBALANCE_IN_PROGRESS"), (True, "COORDINATOR_LOAD_IN_PROGRESS")]
)
def test_sync_may_reach_a_coordinator_that_loads(raw: bool, error: str):
    game = PlayedGroup(setup(faults=("failover",), coordinator=("sync_load_error_raw",) if raw else ()))
    steps = game.steps("failover", NOBODY, wire_A=Sync(1, p.Generation(3)), group=group(STABLE))
    assert [step.after["wire A"].error.value for step in steps] == ["NOT_COORDINATOR", error]
    assert [step.choice for step in steps] == ["", "loading"]
    assert {(step.after["wire A"].api, step.after["wire A"].generation) for step in steps} == {("sync", 3)}


@pytest.mark.parametrize(("decision", "names"), [("", BOTH), ("persist_selected_protocol_only", EAGER)])
def test_the_log_keeps_the_selected_protocol(decision: str, names: tuple[str, ...]):
    game = PlayedGroup(
        setup(lists=(BOTH,), faults=("failover",), coordinator=(decision,) if decision else ())
    )
    step = game.step(
        "leader sync", wire_A=Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(0b01)),)),
        group=group(COMPLETING, A1, "range"), record_A=(MemberRecord(1, meta(BOTH)), MemberRecord(2, None)),
    )  # fmt: skip
    (kept,) = step.after["log A"]
    assert (kept.meta.assignors, kept.assigned, kept.id) == (names, 0b01, 1)
    assert kept.synced  # who is loaded from the log is not waited for
    assert step.after["log"] == group(STABLE, A1, "range")


def test_a_generation_that_was_never_synced_is_illegal_afterwards():
    step = FAILS.step("sync request", wire_A=Sync(1, p.Generation(4)), group=group(STABLE), record_A=LOGGED)
    assert step.after["wire A"].error is p.Error.ILLEGAL_GENERATION


def test_an_empty_group_is_persisted():
    (step,) = phase(FAILS, (), (), log=group(STABLE), log_A=LOGGED)
    assert (step.after["log"].state, step.after["log"].generation, step.after["log A"]) == (EMPTY, 4, ())


def test_a_removal_that_a_failover_remembers_is_a_rebalance():
    game = PlayedGroup(setup(static=True, faults=("failover",)))
    step = game.step(
        "failover", NOBODY, group=group(PREPARING), log=group(STABLE), log_A=LOGGED, log_B=LOGGED,
        record_A=LOGGED, record_B=(),
    )  # fmt: skip
    assert step.after["record B"] == ()
    assert step.after["group"].state is PREPARING


# -- what becomes of records -----------------------------------------------------------------------------


def test_who_has_joined_is_silent_no_more():
    joined = MemberRecord(1, meta(), p.Parts(1), joined=True, synced=True, silent=True, given_up=True)
    step = STATIC.step(
        "join phase ends", NOBODY, group=group(PREPARING, A1), record_A=(joined,), wire_A=JoinParked(1)
    )
    [after] = step.after["record A"]
    assert after == MemberRecord(1, meta())


def test_a_static_member_that_returns_is_known_by_what_it_says_now():
    """Stable, the same subscription: no rebalance, and what it claims now is what the coordinator knows."""
    old = MemberRecord(
        1, meta(owned=p.Parts(1), own_gen=p.Generation(2)), p.Parts(1), synced=True, silent=True
    )
    step = STATIC.step("join request", group=group(STABLE), record_A=(old,), wire_A=Join(0, meta()))
    [after] = step.after["record A"]
    assert isinstance(step.after["wire A"], JoinOk)
    assert after == MemberRecord(2, meta(), p.Parts(1), synced=True)


@pytest.mark.parametrize(
    ("assignors", "version", "tells", "same"),
    [
        (("cooperative-sticky",), 1, True, False),
        (("cooperative-sticky",), 0, True, True),
        (("cooperative-sticky",), 1, False, True),
        (("sticky",), 1, False, False),
        (("range",), 1, True, True),
    ],
)
def test_the_generation_of_what_is_owned_is_compared_where_it_is_written(
    assignors: tuple[str, ...], version: int, tells: bool, same: bool
):
    some = meta(assignors, version=version, tells=tells, own_gen=p.Generation(2))
    assert (written(some) == written(some._replace(own_gen=p.Generation(3)))) is same


# -- topics ----------------------------------------------------------------------------------------------


def changed(action: str, exist: int) -> list[int]:
    game = PlayedGroup(
        setup(1, topics=(0b0011, 0b1100), faults=("topic shrinks", "topic grows", "topic deleted"))
    )
    steps = game.steps(action, NOBODY, cluster=p.ClusterState(p.Parts(exist)))
    assert all(step.after["budget"] == game.setup.budget - 1 for step in steps)
    return [step.after["cluster"].parts for step in steps]


def test_a_topic_loses_a_partition_but_not_its_last():
    assert changed("topic shrinks", 0b1111) == [0b1110, 0b1101, 0b1011, 0b0111]
    assert changed("topic shrinks", 0b0111) == [0b0110, 0b0101]
    assert changed("topic shrinks", 0b0101) == []


def test_a_topic_gets_what_it_can_have():
    assert changed("topic grows", 0b0101) == [0b0111, 0b1101]
    assert changed("topic grows", 0b1111) == []


def test_a_topic_goes_with_all_its_partitions():
    assert changed("topic deleted", 0b0111) == [0b0100, 0b0011]
    assert changed("topic deleted", 0b0011) == [0]


# -- who counts ------------------------------------------------------------------------------------------


def test_a_pending_id_does_not_count_as_known_where_the_group_is_full():
    game = PlayedGroup(setup(max_size=1))
    assert (
        here(game, Join(1, meta()), STABLE, PENDING).after["wire A"].error is p.Error.GROUP_MAX_SIZE_REACHED
    )


def test_while_preparing_it_is_who_came_that_counts():
    game = PlayedGroup(setup(max_size=1))
    for mine, full in ((MISSING, True), (CAME, False)):
        answer = here(game, Join(1, meta()), PREPARING, mine, record_B=CAME).after["wire A"]
        assert isinstance(answer, Refused) is full


@pytest.mark.parametrize("state", [STABLE, COMPLETING, PREPARING])
def test_a_static_member_of_a_full_group_comes_back(state: p.GroupState):
    """Where others join meanwhile its place may be gone; N34 is that it is one too many in any case."""
    mine = (MemberRecord(1, meta(), synced=True),)
    for switches, refused in ((frozenset[str](), False), (frozenset({"full_classic_refuses_static"}), True)):
        game = PlayedGroup(replace(STATIC.setup, max_size=1, coordinator=switches))
        step = here(game, Join(0, meta()), state, mine, record_B=CAME if state is PREPARING else ())
        full = refused or state is PREPARING
        assert (getattr(step.after["wire A"], "error", None) is p.Error.GROUP_MAX_SIZE_REACHED) is full
        assert step.saw(TurnedAway) == ([TurnedAway(p.Slot(0), state is not PREPARING)] if full else [])


def test_protocols_that_do_not_fit_come_before_an_id_that_is_not_known():
    other = (MemberRecord(1, meta(EAGER), synced=True),)
    step = here(MIXED, Join(7, meta(COOPERATIVE)), STABLE, (), record_B=other)
    assert step.after["wire A"].error is p.Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("game", "join", "mine"), [(STATIC, Join(0, meta()), ()), (DYNAMIC, Join(1, meta()), PENDING)]
)
def test_whoever_is_admitted_is_one_more(game: PlayedGroup, join: Join, mine: tuple[MemberRecord, ...]):
    limited = PlayedGroup(replace(game.setup, max_size=3))
    [admitted] = here(limited, join, STABLE, mine).saw(Admitted)
    assert (admitted.size, admitted.limit, admitted.known) == (2, 3, True)


@pytest.mark.parametrize("joined", [True, False])
def test_an_append_that_fails_asks_for_another_join_group(joined: bool):
    """KAFKA-10870: the member is still known, and has not come."""
    game = PlayedGroup(setup(faults=("append fails",)))
    mine = CAME if joined else ()
    step = game.step("append fails", wire_A=JoinParked(1), group=group(PREPARING), record_A=mine)
    assert step.after["wire A"] == Refused("join", p.Error.REBALANCE_IN_PROGRESS, 1)
    assert step.after["record A"] == (MISSING if joined else ())
    assert step.after["budget"] == 0
    assert game.steps("append fails", wire_A=Join(1, meta()), record_A=mine) == []


def test_who_comes_again_is_neither_given_up_nor_carried():
    away = (MemberRecord(1, meta(), given_up=True, silent=True),)
    [record] = here(STATIC, Join(1, OTHER), PREPARING, away).after["record A"]
    assert (record.joined, record.given_up, record.silent) == (True, False, False)


def test_a_follower_whose_bytes_alone_have_changed_rebalances_for_nothing():
    """Clause coordinator/repeat: the order of a client's topics is no news, and Kafka cannot see that."""
    mine = (MemberRecord(1, meta(), synced=True),)
    noisy = (MemberRecord(1, meta(noise=1), synced=True),)
    for step in (
        here(DYNAMIC, Join(1, meta(noise=1)), STABLE, mine),
        here(DYNAMIC, Join(1, meta()), STABLE, noisy),
    ):
        assert [seen.rebalances for seen in step.saw(Repeated)] == [True]
    for other, leader in ((OTHER, B1), (meta(noise=1), A1)):
        step = here(DYNAMIC, Join(1, other), STABLE, mine, group=group(STABLE, leader))
        assert step.saw(Repeated) == []


# -- a static member returns, in the details -------------------------------------------------------------


@pytest.mark.parametrize(("state", "ids"), [(STABLE, [2]), (COMPLETING, [2]), (PREPARING, [1, 2])])
def test_before_kafka_8500_a_static_member_is_doubled_while_the_group_prepares(
    state: p.GroupState, ids: list[int]
):
    game = PlayedGroup(setup(static=True, coordinator=("static_replace_only_stable",)))
    assert [record.id for record in back(state, meta(), game=game).after["record A"]] == ids


@pytest.mark.parametrize("assigned", [None, p.Parts(0), p.Parts(0b10)])
def test_what_the_old_process_was_to_give_up_is_owed(assigned: p.Parts | None):
    """The new one has nothing to revoke, so nobody would ask for the round that hands it over."""
    old = (MemberRecord(1, meta(owned=p.Parts(0b01)), assigned, synced=True),)
    step = here(STATIC, Join(0, meta()), STABLE, old)
    assert [seen.owed for seen in step.saw(Replaced)] == [True]
    assert step.after["group"].state is PREPARING


def test_a_leader_that_returns_between_join_and_sync_has_an_assignment_to_make():
    game = PlayedGroup(setup(static=True, coordinator=("static_replace_in_completing_no_rebalance",)))
    answer = back(COMPLETING, meta(), leads=True, game=game).after["wire A"]
    assert (answer.leader, answer.skip) == (True, False)


def in_the_log(join: Join, state: p.GroupState) -> tuple[list[int], Group]:
    """The ids in the log, and the group there, after a JoinGroup of a static member."""
    game = PlayedGroup(setup(static=True, faults=("failover",)))
    old = (MemberRecord(1, meta(), p.Parts(0b01), synced=True),)
    before = {"record_A": old, "log_A": old, "log": group(STABLE, B1)}
    step = game.step("join request", wire_A=join, group=group(state, A1), **before)
    return [record.id for record in step.after["log A"]], step.after["log"]


def test_only_a_replacement_without_a_rebalance_is_written_at_once():
    assert in_the_log(Join(0, meta()), STABLE) == ([2], group(STABLE, p.Id(p.Slot(0), 2)))
    assert in_the_log(Join(0, meta()), COMPLETING) == ([1], group(STABLE, B1))
    assert in_the_log(Join(1, OTHER), STABLE) == ([1], group(STABLE, B1))


# -- the join phase, in the details ----------------------------------------------------------------------


def test_of_two_ids_of_one_process_the_leader_is_named():
    """A ghost that came before it was given up."""
    both = (MemberRecord(1, meta(), joined=True), MemberRecord(2, meta(), joined=True))
    before = group(PREPARING, None)
    steps = phase(DYNAMIC, both, CAME, group=before)
    assert [step.choice.rpartition("leader ")[2] for step in steps] == ["A id 1", "A id 2", "B"]
    assert [step.choice.rpartition("leader ")[2] for step in phase(DYNAMIC, CAME, CAME, group=before)] == [
        "A",
        "B",
    ]


@pytest.mark.parametrize(("kept", "new"), [(True, True), (True, False), (False, True)])
def test_who_is_new_is_so_for_one_join_phase(kept: bool, new: bool):
    game = PlayedGroup(setup(coordinator=("new_member_never_expires",) if kept else ()))
    (step,) = phase(game, (MemberRecord(1, meta(), joined=True, new=new),), ())
    assert step.after["record A"][0].new is (kept and new)


def test_a_leader_without_a_decision_waits_as_a_follower():
    """One that was overtaken, or skipped the assignment, and was counted on again."""
    values = {"group": group(COMPLETING, A1), "record_A": MINE, "wire_A": Sync(1, p.Generation(3))}
    assert DYNAMIC.step("sync request", **values).after["wire A"] == SyncParked(1, p.Generation(3))


def test_a_decision_of_an_older_generation_settles_nothing():
    wire = Sync(1, p.Generation(2), (p.Grant(A1, p.Parts(0b01)),))
    values = {"group": group(COMPLETING, A1), "record_A": MINE, "wire_A": wire}
    assert DYNAMIC.steps("leader sync", **values) == []
    assert DYNAMIC.step("sync request", **values).after["wire A"].error is p.Error.ILLEGAL_GENERATION


def test_a_sync_group_that_was_parked_in_an_older_generation_is_refused_and_not_answered():
    old = SyncParked(1, p.Generation(2))
    step = DYNAMIC.step(
        "leader sync", wire_A=Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(0b01)),)), wire_B=old,
        group=group(COMPLETING, A1), record_A=MINE, record_B=MINE,
    )  # fmt: skip
    assert step.after["wire B"] == old
    assert DYNAMIC.step("sync refused", wire_A=old, group=group(COMPLETING)).after["wire A"].generation == 2


# -- timeouts, in the details ----------------------------------------------------------------------------

HUNG = stable(life=p.Life.HUNG)


@pytest.mark.parametrize(
    ("member", "record", "expires"),
    [
        (stable(), MINE[0], False),
        (stable(topics=p.Topics(0)), MINE[0], True),  # unsubscribed, and its LeaveGroup never came
        (HUNG, MINE[0], False),
        (HUNG, MINE[0]._replace(id=2), True),
        (HUNG._replace(state=p.MemberState.PREPARING), MINE[0], True),
    ],
    ids=["at work", "unsubscribed", "beats", "another id", "beats no more"],
)
def test_whose_session_expires_without_a_fault(member: Member, record: MemberRecord, expires: bool):
    steps = DYNAMIC.steps("session expires", member_A=member, group=group(STABLE), record_A=(record,))
    assert bool(steps) is expires


@pytest.mark.parametrize(("decisions", "expires"), [((), False), (("no_heartbeat_in_completing",), True)])
def test_who_hangs_in_assign_beats_since_kafka_10134(decisions: tuple[str, ...], expires: bool):
    game = PlayedGroup(setup(decisions=decisions))
    hung = HUNG._replace(state=p.MemberState.COMPLETING)
    assigning = {"group": group(COMPLETING, A1), "record_A": (MINE[0]._replace(synced=False),)}
    assert bool(game.steps("session expires", member_A=hung, **assigning)) is expires


def test_the_sync_group_with_the_decision_is_not_parked():
    deciding = {"group": group(COMPLETING, A1), "record_A": (MemberRecord(1, meta()),)}
    decision = Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(0b11)),))
    assert DYNAMIC.steps("sync request", wire_A=decision, **deciding) == []
    undecided = DYNAMIC.step("sync request", wire_A=Sync(1, p.Generation(3)), **deciding)
    assert undecided.after["wire A"] == SyncParked(1, p.Generation(3))


def test_a_late_answer_is_about_the_generation_that_was_asked_for():
    late = p.Late("heartbeat", 1, p.Generation(2))
    step = DYNAMIC.step(
        "late request arrives", stray_A=late, group=group(STABLE), record_A=(MemberRecord(1, meta()),)
    )
    assert step.after["stray A"] == Refused("heartbeat", p.Error.ILLEGAL_GENERATION, 1, p.Generation(2))


@pytest.mark.parametrize(("record", "expires"), [(MINE[0], True), (PENDING[0], False)])
def test_where_pending_ids_block_the_join_they_never_expire(record: MemberRecord, expires: bool):
    game = PlayedGroup(setup(coordinator=("pending_blocks_join",)))
    assert bool(game.steps("session expires", group=group(STABLE), record_A=(record,))) is expires


@pytest.mark.parametrize(
    ("state", "after", "removed"),
    [(PREPARING, [True], False), (COMPLETING, [], True), (STABLE, [], True)],
)
def test_who_is_slow_is_given_up_or_removed(state: p.GroupState, after: list[bool], removed: bool):
    game = PlayedGroup(setup(faults=("slow member",)))
    values = {"member_A": stable(), "group": group(state), "record_A": (MemberRecord(1, meta()),)}
    step = game.step("slow member", **values)
    assert [record.given_up for record in step.after["record A"]] == after
    assert [seen.able for seen in step.saw(Expelled)] == [True] * removed
    assert (step.after["group"].state, step.after["budget"]) == (PREPARING, 0)
    assert game.steps("rebalance timeout", **values) == []


# -- who is removed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "leader", "gone", "left", "then"),
    [
        ((MINE[0], MINE[0]._replace(id=2)), B1, "id 1", [2], PREPARING),
        ((MINE[0], MINE[0]._replace(id=2)), A1, "id 2", [1], PREPARING),
        ((MINE[0], MemberRecord(2, None)), A1, "id 1", [2], PREPARING),
        ((MINE[0], MemberRecord(2, None)), A1, "id 2", [1], STABLE),
    ],
)
def test_one_is_removed_and_leads_no_more(
    records: tuple[MemberRecord, ...], leader: p.Id, gone: str, left: list[int], then: p.GroupState
):
    values = {"member_A": Member(), "group": group(STABLE, leader), "record_A": records}
    [step] = [step for step in DYNAMIC.steps("session expires", **values) if step.choice == gone]
    assert [record.id for record in step.after["record A"]] == left
    assert step.after["group"].state is then
    assert step.after["group"].leader == (None if leader == A1 and gone == "id 1" else leader)


def test_who_is_given_up_is_so_once():
    values = {"member_A": AWAY, "group": group(PREPARING)}
    [step] = DYNAMIC.steps("rebalance timeout", record_A=MISSING, **values)
    assert step.after["record A"] == GIVEN_UP
    assert DYNAMIC.steps("rebalance timeout", record_A=GIVEN_UP, **values) == []
    assert DYNAMIC.steps("rebalance timeout", record_A=CAME, **values) == []


def test_a_dynamic_member_is_never_fenced():
    """Another id of its process is another member."""
    late = p.Late("heartbeat", 1, p.Generation(3))
    values = {"stray_A": late, "group": group(STABLE), "record_A": (MemberRecord(2, meta()),)}
    step = DYNAMIC.step("late request arrives", **values)
    assert step.after["stray A"].error is p.Error.UNKNOWN_MEMBER_ID


def test_what_the_end_of_a_join_phase_is_seen_to_do():
    (step,) = phase(DYNAMIC, CAME, GIVEN_UP)
    assert [(seen.cause, seen.able, seen.away) for seen in step.saw(Expelled)] == [
        ("rebalance", False, False)
    ]
    assert step.saw(Noted) == []
    (step,) = phase(STATIC, CAME, GIVEN_UP)
    assert (step.saw(Expelled), step.saw(Noted)) == ([], [Noted("silent static member")])


def test_a_pending_id_outlives_the_join_phase():
    (step,) = phase(DYNAMIC, (*CAME, MemberRecord(2, None)), CAME, first=True)
    assert step.after["record A"] == (MISSING[0], MemberRecord(2, None))


def test_the_log_is_not_written_when_the_join_phase_ends():
    """Only what the leader decided is: the generation that a failover forgets."""
    (step,) = phase(FAILS, CAME, CAME, log=group(STABLE), log_A=LOGGED, log_B=LOGGED)
    assert (step.after["log"], step.after["log A"], step.after["log B"]) == (group(STABLE), LOGGED, LOGGED)


@pytest.mark.parametrize(
    ("state", "seen"), [(COMPLETING, "failover between join and sync"), (STABLE, "failover")]
)
def test_a_failover_is_of_note(state: p.GroupState, seen: str):
    step = FAILS.step("failover", NOBODY, group=group(state), log=group(STABLE))
    assert step.saw(Noted) == [Noted(seen)]


@pytest.mark.parametrize(
    ("known", "there", "state"), [(LOGGED, LOGGED, STABLE), ((), LOGGED, PREPARING), (LOGGED, (), STABLE)]
)
def test_a_failover_rebalances_only_for_what_the_log_does_not_know(
    known: tuple[MemberRecord, ...], there: tuple[MemberRecord, ...], state: p.GroupState
):
    game = PlayedGroup(setup(static=True, faults=("failover",)))
    step = game.step("failover", NOBODY, group=group(STABLE), log=group(STABLE), log_A=there, record_A=known)
    assert (step.after["group"].state, step.after["record A"]) == (state, there if known else ())


def test_only_static_members_are_written_when_they_join():
    """The reads of the action say what it may write: no log of a dynamic member."""
    for static in (False, True):
        game = PlayedGroup(setup(static=static, faults=("failover",)))
        assert ("log A" in game.machine.by_name["join request", 0].writes) is static


def test_a_static_member_that_selects_another_protocol_changes_something():
    game = PlayedGroup(setup(members=1, static=True, lists=EITHER))
    for topics, changed in ((1, False), (2, True)):
        step = game.step(
            "join request", wire_A=Join(0, meta(topics=p.Topics(topics))), group=group(STABLE, A1),
            record_A=(MemberRecord(1, meta(), p.Parts(0), synced=True),),
        )  # fmt: skip
        assert [seen.changed for seen in step.saw(Replaced)] == [changed]


@pytest.mark.parametrize("static", [False, True])
def test_who_is_removed_for_a_sync_that_never_came_was_not_away(static: bool):
    game = STATIC if static else DYNAMIC
    values = {"member_A": AWAY, "group": group(STABLE), "record_A": (MemberRecord(1, meta()),)}
    step = game.step("rebalance timeout", **values)
    assert step.saw(Expelled) == [Expelled(p.Slot(0), "pending sync", False, False)]


def test_who_leaves_and_is_gone_already_disturbs_nobody():
    game = PlayedGroup(setup(faults=("close",)))
    assert game.step("close", member_A=stable(), group=group(STABLE)).after["group"] == group(STABLE)


# -- ids and first rebalances ----------------------------------------------------------------------------


def test_the_initial_delay_goes_on_when_another_member_comes():
    first = group(PREPARING)._replace(first=True)
    assert here(DYNAMIC, Join(1, meta()), PREPARING, PENDING, group=first).after["group"] == first


@pytest.mark.parametrize(
    ("kept", "more", "given"),
    [
        ((), {"stray_A": p.Late("heartbeat", 4, p.Generation(3))}, 5),
        ((), {"stray_A": Refused("heartbeat", p.Error.UNKNOWN_MEMBER_ID, 4)}, 5),
        (("failover",), {"log_A": (MemberRecord(4, meta()),)}, 5),
        (("failover",), {}, 1),
    ],
)
def test_an_id_that_something_late_or_the_log_names_is_not_given_again(
    kept: tuple[str, ...], more: dict[str, Any], given: int
):
    game = PlayedGroup(setup(faults=kept))
    assert here(game, Join(0, meta()), STABLE, (), **more).after["wire A"].given == given


@pytest.mark.parametrize(
    ("values", "given"),
    [
        ({}, 1),
        ({"member_A": stable(id=4)}, 5),
        ({"wire_A": JoinOk(6, p.Generation(3), "range")}, 7),
        ({"wire_A": Refused("join", p.Error.MEMBER_ID_REQUIRED, 0, given=8)}, 9),
    ],
)
def test_nor_one_that_its_sender_has_or_hears_of(values: dict[str, Any], given: int):
    step = DYNAMIC.step("abandoned join", stray_A=Join(0, meta()), group=group(STABLE), **values)
    assert [record.id for record in step.after["record A"]] == [given]
    assert (step.after["stray A"], step.after["wire A"]) == (None, values.get("wire_A"))


def test_who_was_removed_is_not_answered_with_the_others():
    (step,) = phase(DYNAMIC, CAME, CAME, wire_A=JoinParked(7))
    assert step.after["wire A"] == JoinParked(7)
    assert isinstance(step.after["wire B"], JoinOk)


@pytest.mark.parametrize(("a", "first"), [(PENDING, True), (GIVEN_UP, False)])
def test_a_group_that_nobody_came_to_is_empty(a: tuple[MemberRecord, ...], first: bool):
    (step,) = phase(DYNAMIC, a, GIVEN_UP, first=first)
    assert step.after["group"].state is EMPTY
    assert (step.after["record A"], step.after["record B"]) == (PENDING if a == PENDING else (), ())


@pytest.mark.parametrize("assigned", [None, p.Parts(0)])
def test_who_was_assigned_nothing_since_is_represented_as_it_was(assigned: p.Parts | None):
    sent = meta(owned=p.Parts(0b01), own_gen=p.Generation(2), label=p.Generation(2))
    away = (MemberRecord(1, sent, assigned, synced=True, given_up=True),)
    (step,) = phase(STATIC, CAME, away)
    assert step.after["record B"][0].meta == sent


def test_of_three_partitions_two_exist():
    game = PlayedGroup(setup(1, topics=(0b111,), exist=0b011, faults=("topic shrinks",)))
    assert [step.after["cluster"].parts for step in game.steps("topic shrinks", NOBODY)] == [0b010, 0b001]


def test_a_join_phase_to_which_only_static_members_did_not_come_goes_on():
    away = (MemberRecord(1, meta(), given_up=True),)
    assert STATIC.steps("join phase ends", NOBODY, group=group(PREPARING), record_A=away) == []
    assert DYNAMIC.steps("join phase ends", NOBODY, group=group(PREPARING), record_A=away)


def test_a_join_request_whose_sender_gave_up_makes_the_group_rebalance_too():
    mine = (MemberRecord(1, meta(), synced=True),)
    step = STATIC.step("abandoned join", stray_A=Join(1, OTHER), group=group(STABLE, A1), record_A=mine)
    assert (step.after["stray A"], step.after["group"].state) == (None, PREPARING)
