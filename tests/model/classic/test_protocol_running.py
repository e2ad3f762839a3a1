"""Who acts at all: only a process that runs polls, its heartbeats go on while a call hangs, and so on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.callbacks import drop
from rebalance_verifier.model.classic.errors import refused
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Callback, Claimed, Completed, Noted
from rebalance_verifier.model.group.setup import MemberContext

from tests.model.classic.small_groups import EVERY_FAULT, NOBODY, PlayedGroup, meta, setup, stable

COMPLETING, PREPARING = p.MemberState.COMPLETING, p.MemberState.PREPARING
G3 = p.Generation(3)
ONE = PlayedGroup(setup(1, faults=EVERY_FAULT, budget=2))
CHOOSING = setup(1, topics=(0b01, 0b10), faults=("resubscribe",))
TWO_TOPICS = PlayedGroup(
    replace(CHOOSING, consumers=(replace(CHOOSING.consumers[0], subscriptions=(p.Topics(3), p.Topics(1))),))
)
RESTING, WANTING = stable(owned=0b01), stable(owned=0b01, rejoin=True)
SYNCING = stable(state=COMPLETING, rejoin=True, prepare=False)
RECEIVED = stable(owned=0b01, received=p.Parts(0b10), prepare=False)
SETTLED = {
    "group": s.Group(p.GroupState.STABLE, G3, p.Id(p.Slot(0), 1), "cooperative-sticky"),
    "record_A": (s.MemberRecord(1, meta(), p.Parts(0b01), synced=True),),
}
GONE: dict[str, Any] = {"group": s.Group(p.GroupState.EMPTY, G3)}
POLLS, RUNS, BEATS, ANY = (
    (p.Life.UP,),
    (p.Life.UP,),
    (p.Life.UP, p.Life.HUNG),
    (p.Life.UP, p.Life.PAUSED, p.Life.HUNG),
)
HEARS = (p.Life.UP, p.Life.HUNG, p.Life.DOWN, p.Life.FAILED)
"""Nobody is there to be told; the answer goes all the same."""

ACTS: tuple[tuple[str, s.Member, dict[str, Any], tuple[p.Life, ...]], ...] = (
    ("join", WANTING, {}, POLLS),
    ("receive", SYNCING, {"wire_A": s.SyncOk(1, G3, p.Parts(0b01))}, POLLS),
    ("receive", SYNCING, {"wire_A": s.Refused("sync", p.Error.REBALANCE_IN_PROGRESS, 1, G3)}, POLLS),
    ("complete", RECEIVED, {}, POLLS),
    ("listener throws", RECEIVED, {}, POLLS),
    ("slow commit", WANTING, {}, POLLS),
    ("commit done", WANTING._replace(committing=True), {}, POLLS),
    ("commit refused", WANTING._replace(committing=True), GONE, POLLS),
    ("prepare", SYNCING._replace(prepare=True), {"wire_A": s.SyncOk(1, G3, p.Parts(0))}, POLLS),
    ("enforce", RESTING, {}, POLLS),
    ("unsubscribe", RESTING, SETTLED, POLLS),
    ("close", RESTING, SETTLED, POLLS),
    ("hang", RESTING, {}, POLLS),
    ("subscribe", RESTING._replace(topics=p.Topics(0)), {}, POLLS),
    ("refresh", RESTING._replace(view=p.Parts(0)), {}, RUNS),
    ("pause", RESTING, {}, RUNS),
    ("heartbeat", RESTING, GONE, BEATS),
    ("late request", RESTING, SETTLED, BEATS),
    ("max poll", RESTING, SETTLED, BEATS),
    ("crash", RESTING, {}, ANY),
    ("resume", RESTING, {}, (p.Life.PAUSED,)),
    ("poll interval", RESTING, SETTLED, (p.Life.HUNG,)),
    ("start", s.Member(), {}, (p.Life.DOWN, p.Life.FAILED)),
    ("late answer", RESTING, {"stray_A": s.Refused("heartbeat", p.Error.UNKNOWN_MEMBER_ID, 1, G3)}, HEARS),
)


@pytest.mark.parametrize(("action", "member", "more", "lives"), ACTS, ids=[one[0] for one in ACTS])
def test_who_acts(action: str, member: s.Member, more: dict[str, Any], lives: tuple[p.Life, ...]):
    possible = [life for life in p.Life if ONE.steps(action, member_A=member._replace(life=life), **more)]
    assert possible == [life for life in p.Life if life in lives]


@pytest.mark.parametrize(("action", "member", "more", "lives"), ACTS, ids=[one[0] for one in ACTS])
def test_what_it_costs(action: str, member: s.Member, more: dict[str, Any], lives: tuple[p.Life, ...]):
    """A fault one of the budget, everything else nothing; a start and a subscription are for nothing."""
    cost = ONE.machine.by_name[action, 0].fault and action not in ("start", "subscribe")
    for step in ONE.steps(action, member_A=member._replace(life=lives[0]), **more):
        assert step.after["budget"] == ONE.setup.budget - cost


EFFECTS: tuple[tuple[str, s.Member, dict[str, Any], dict[str, Any]], ...] = (
    ("refresh", RESTING._replace(view=p.Parts(0)), {}, {"view": 0b11}),
    ("pause", RESTING, {}, {"life": p.Life.PAUSED}),
    ("resume", RESTING._replace(life=p.Life.PAUSED), {}, {"life": p.Life.UP}),
    ("hang", RESTING, {}, {"life": p.Life.HUNG}),
    ("subscribe", RESTING._replace(topics=p.Topics(0)), {}, {"topics": 1}),
    ("enforce", RESTING, {}, {"rejoin": True}),
    ("enforce", SYNCING, {}, {"enforced": True}),
    ("receive", SYNCING._replace(enforced=True), {"wire_A": s.SyncOk(1, G3, p.Parts(0))},
     {"enforced": False, "state": p.MemberState.STABLE, "rejoin": False, "received": 0}),
    ("commit done", WANTING._replace(committing=True, unfetched=p.Parts(1)), {},
     {"committing": False}),  # EAGER reads on when it has revoked
)  # fmt: skip


@pytest.mark.parametrize(("action", "member", "more", "then"), EFFECTS)
def test_what_it_changes(action: str, member: s.Member, more: dict[str, Any], then: dict[str, Any]):
    """And nothing else of the member."""
    after = ONE.step(action, member_A=member, **more).after
    assert after["member A"] == member._replace(**then)
    assert after["budget"] == ONE.setup.budget - (action in ONE.setup.faults)


def test_what_changes_nothing_is_no_step():
    assert ONE.steps("refresh", member_A=RESTING) == []
    for wants in (RESTING, WANTING._replace(topics=p.Topics(0)), WANTING._replace(received=p.Parts(0))):
        assert ONE.steps("join", member_A=wants) == []
    assert ONE.steps("join", member_A=WANTING, wire_A=s.JoinParked(1)) == []
    again = SYNCING._replace(prepare=True)
    assert ONE.steps("prepare", member_A=again) == []
    joined = {"wire_A": s.JoinOk(1, G3, "range")}
    assert ONE.steps("prepare", member_A=again._replace(state=p.MemberState.UNJOINED), **joined) == []
    assert ONE.steps("prepare", member_A=again, **joined)


def test_a_process_that_starts_waits_for_nothing():
    game, late = PlayedGroup(setup(1)), p.Late("heartbeat", 1, G3)
    after = game.step("start", member_A=s.Member(), wire_A=s.JoinParked(1), stray_A=late).after
    assert (after["wire A"], after["stray A"]) == (None, None)
    assert (after["member A"].topics, after["member A"].view) == (1, 0b11)


def test_another_subscription_is_one_of_those_that_there_are():
    some = stable(owned=0b01, topics=p.Topics(0b11), joined_topics=p.Topics(0b11))
    step = TWO_TOPICS.step("resubscribe", member_A=some)
    assert (step.after["member A"].topics, step.after["budget"]) == (0b01, 0)


def test_only_a_group_that_is_empty_is_deleted():
    expires = "group expires"
    for state in p.GroupState:
        group = s.Group(state, G3, p.Id(p.Slot(0), 1), "range")
        found = [
            (step.after["group"], step.after["budget"]) for step in ONE.steps(expires, NOBODY, group=group)
        ]
        assert found == ([(s.Group(), 1)] if state is p.GroupState.EMPTY else [])


def test_a_failover_costs_one_too():
    for step in ONE.steps("failover", NOBODY, group=SETTLED["group"]):
        assert step.after["budget"] == 1


STUCK = [one for one in ACTS if one[3] is POLLS and one[0] != "hang"]


@pytest.mark.parametrize(
    ("action", "member", "more"), [one[:3] for one in STUCK], ids=[one[0] for one in STUCK]
)
def test_a_thread_that_waits_for_ever_does_not_act(action: str, member: s.Member, more: dict[str, Any]):
    assert ONE.steps(action, member_A=member._replace(stuck=True), **more) == []


def test_another_subscription_takes_a_poll_and_a_subscription():
    some = stable(owned=0b01, topics=p.Topics(0b11), joined_topics=p.Topics(0b11))
    assert len(TWO_TOPICS.steps("resubscribe", member_A=some)) == 1
    assert TWO_TOPICS.steps("resubscribe", member_A=some._replace(life=p.Life.PAUSED)) == []
    assert TWO_TOPICS.steps("resubscribe", member_A=some._replace(topics=p.Topics(0))) == []


# -- what is under way ---------------------------------------------------------------------------------


def test_of_a_member_one_late_request_is_under_way_at_a_time():
    sent = ONE.steps("late request", member_A=RESTING, **SETTLED)
    assert [step.choice for step in sent] == ["heartbeat", "commit"]
    for step in sent:
        assert ONE.steps("late request", member_A=RESTING, stray_A=step.after["stray A"], **SETTLED) == []


def test_only_who_has_nothing_to_wait_for_commits_late():
    sent = ONE.steps("late request", member_A=SYNCING, **SETTLED)
    assert [step.choice for step in sent] == ["heartbeat"]


def test_an_answer_without_an_error_is_none():
    late = p.Late("heartbeat", 1, G3)
    assert (
        ONE.step("late request arrives", member_A=RESTING, stray_A=late, **SETTLED).after["stray A"] is None
    )


def test_a_late_answer_is_handled_by_who_is_there_and_then_gone():
    refused = s.Refused("heartbeat", p.Error.ILLEGAL_GENERATION, 1, G3)
    for life, generation in ((p.Life.UP, -1), (p.Life.HUNG, -1), (p.Life.DOWN, 3), (p.Life.FAILED, 3)):
        after = ONE.step("late answer", member_A=RESTING._replace(life=life), stray_A=refused).after
        assert (after["member A"].generation, after["stray A"]) == (generation, None)
    late = p.Late("heartbeat", 1, G3)
    assert ONE.steps("late answer", member_A=RESTING._replace(life=p.Life.DOWN), stray_A=late) == []


@pytest.mark.parametrize(("member_id", "generation", "old"), [(1, 3, False), (1, 2, True), (2, 3, True)])
def test_which_answer_is_late(member_id: int, generation: int, old: bool):
    refused = s.Refused("heartbeat", p.Error.REBALANCE_IN_PROGRESS, member_id, p.Generation(generation))
    assert bool(ONE.step("late answer", member_A=RESTING, stray_A=refused).saw(Noted)) is old


def test_a_heartbeat_that_finds_everything_well_or_what_is_known_is_no_step():
    assert ONE.steps("heartbeat", member_A=RESTING, **SETTLED) == []
    rebalancing = {**SETTLED, "group": s.Group(p.GroupState.PREPARING, G3)}
    assert ONE.step("heartbeat", member_A=RESTING, **rebalancing).after["member A"].rejoin
    assert ONE.steps("heartbeat", member_A=WANTING, **rebalancing) == []


@pytest.mark.parametrize("gone", [{"generation": p.Generation(-1)}, {"id": 0}])
def test_without_a_generation_or_an_id_nobody_beats(gone: dict[str, Any]):
    for action, more in (("heartbeat", GONE), ("max poll", SETTLED), ("late request", SETTLED)):
        assert ONE.steps(action, member_A=RESTING._replace(**gone), **more) == []


def test_who_has_no_subscription_has_none_to_give_up():
    assert ONE.steps("unsubscribe", member_A=RESTING._replace(topics=p.Topics(0)), **SETTLED) == []


def test_an_enforced_rebalance_asks_once():
    rejoining = ONE.step("enforce", member_A=RESTING).after["member A"]
    assert rejoining.rejoin
    assert ONE.steps("enforce", member_A=rejoining) == []
    swallowed = ONE.step("enforce", member_A=SYNCING).after["member A"]
    assert swallowed.enforced
    assert ONE.steps("enforce", member_A=swallowed) == []
    assert ONE.steps("enforce", member_A=RESTING._replace(id=0)) == []
    assert ONE.steps("enforce", member_A=stable(state=PREPARING, rejoin=True)) == []


def test_a_leader_that_hangs_in_its_assignor_is_left_to_the_coordinator():
    """Its heartbeat thread sees no poll that is late as long as the SyncGroup has not been sent."""
    inside = SYNCING._replace(life=p.Life.HUNG)
    assigning = {"group": s.Group(p.GroupState.COMPLETING, G3, p.Id(p.Slot(0), 1), "cooperative-sticky")}
    records = {"record_A": SETTLED["record_A"]}
    assert ONE.steps("poll interval", member_A=inside, **assigning, **records) == []
    assert ONE.steps("poll interval", member_A=inside, **SETTLED)
    sent = {**assigning, **records, "wire_A": s.SyncParked(1, G3)}
    assert ONE.steps("poll interval", member_A=inside, **sent)


CRASHES = "owner crashed between join and sync"


@pytest.mark.parametrize(
    ("state", "seen"), [(COMPLETING, [CRASHES]), (p.MemberState.STABLE, []), (PREPARING, [])]
)
def test_a_crash_between_join_and_sync_is_of_note(state: p.MemberState, seen: list[str]):
    member = stable(owned=0b01, state=state)
    assert [noted.what for noted in ONE.step("crash", member_A=member).saw(Noted)] == seen
    for stray in (p.Late("heartbeat", 1, G3), s.Refused("commit", p.Error.ILLEGAL_GENERATION, 1, G3)):
        assert ONE.step("crash", member_A=member, stray_A=stray).after["stray A"] is None


@pytest.mark.parametrize(
    ("missing", "possible"),
    [
        ({}, True),
        ({"owned": p.Parts(0)}, False),
        ({"generation": p.Generation(-1)}, False),
        ({"prepare": False}, False),
    ],
)
def test_only_who_owns_something_commits_before_it_joins(missing: dict[str, Any], possible: bool):
    assert bool(ONE.steps("slow commit", member_A=WANTING._replace(**missing))) is possible
    committing = WANTING._replace(committing=True, **missing)
    assert bool(ONE.steps("commit refused", member_A=committing, **GONE)) is ("generation" not in missing)


@pytest.mark.parametrize(
    ("owned", "version", "claims"), [(0b01, 3, [(0b01, 3, 3)]), (0, 3, []), (0b01, 1, []), (0b01, 0, [])]
)
def test_a_claim_that_has_a_label_is_seen(owned: int, version: int, claims: list[tuple[int, int, int]]):
    game = PlayedGroup(setup(1, version=version))
    step = game.step("join", member_A=stable(owned=owned, rejoin=True))
    assert [(seen.parts, seen.label, seen.own_gen) for seen in step.saw(Claimed)] == claims
    assert step.after["wire A"].meta.version == version


def test_an_assignment_that_nobody_asked_again_for_swallows_nothing():
    assert ONE.step("receive", member_A=SYNCING, wire_A=s.SyncOk(1, G3, p.Parts(0))).saw(Noted) == []


# -- and what else a member does not do, or keeps ----------------------------------------------------------


def test_who_is_subscribed_does_not_subscribe_again():
    assert ONE.steps("subscribe", member_A=RESTING) == []
    assert len(ONE.steps("subscribe", member_A=RESTING._replace(topics=p.Topics(0)))) == 1


def test_who_hangs_sends_no_commit():
    game = PlayedGroup(setup(1, faults=("late request",)))
    for life, sent in ((p.Life.UP, ["heartbeat", "commit"]), (p.Life.HUNG, ["heartbeat"])):
        steps = game.steps("late request", member_A=RESTING._replace(life=life), **SETTLED)
        assert [step.choice for step in steps] == sent


def test_what_is_left_of_an_assignment_is_of_its_generation():
    """CooperativeStickyAssignor tells no generation of what is not there since version 2."""
    config = setup(1).consumers[0].stages[0]
    owns = stable(4, 0b11)
    assert drop(owns, config, 0b01).own_gen == 4
    assert drop(owns, config, 0b11).own_gen == -1


@pytest.mark.parametrize("state", [p.MemberState.STABLE, p.MemberState.PREPARING])
def test_a_callback_of_who_leaves_says_whether_a_rebalance_is_under_way(state: p.MemberState):
    game = PlayedGroup(setup(1, faults=("close",)))
    step = game.step("close", member_A=stable(3, 0b11, state=state), **SETTLED)
    assert [one.midway for one in step.saw(Callback)] == [state is p.MemberState.PREPARING]


def test_the_end_of_on_join_complete_says_what_it_was_about():
    step = ONE.step("complete", member_A=stable(3, 0b01, received=p.Parts(0b10), prepare=False), **SETTLED)
    [completed] = step.saw(Completed)
    assert (completed.assigned, completed.owned, completed.revoked) == (0b10, 0b10, True)
    assert (completed.eager, completed.rejoin, completed.believed) == (False, True, 0b10)


@pytest.mark.parametrize("api", ["join", "sync"])
def test_a_rebalance_in_the_midst_of_one_asks_for_the_next(api: str):
    """Of a heartbeat and a commit that is no news."""
    me = MemberContext(p.Slot(0), ONE.setup)
    member = stable(4, state=p.MemberState.COMPLETING, prepare=False)
    for one, rejoins in ((api, True), ("heartbeat", False), ("commit", False)):
        answer = s.Refused(one, p.Error.REBALANCE_IN_PROGRESS, 1, p.Generation(4))
        assert refused(me, member, answer)[0].rejoin is rejoins


@pytest.mark.parametrize(("decisions", "rejoins"), [((), True), (("rejoin_flag_not_latched",), False)])
def test_what_calls_for_a_join_is_remembered_from_its_commit_on(decisions: tuple[str, ...], rejoins: bool):
    game = PlayedGroup(setup(1, faults=("slow commit",), decisions=decisions))
    changed = stable(3, 0b01, joined_topics=p.Topics(0))
    step = game.step("slow commit", member_A=changed, **SETTLED)
    assert step.after["member A"].rejoin is rejoins


def test_an_assignment_of_no_bytes_is_taken_from_the_wire():
    step = ONE.step("receive", member_A=SYNCING, wire_A=s.SyncOk(1, G3, None), **SETTLED)
    assert (step.after["wire A"], step.after["member A"].life) == (None, p.Life.FAILED)
