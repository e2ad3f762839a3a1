"""One step of a client of the consumer protocol: heartbeats, answers, reconciliation, leaving.

The cases follow Java's ``ConsumerMembershipManager`` and its heartbeats (KIP-848).
"""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import member as client
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.observations import Acknowledged, Ended
from rebalance_verifier.model.group.observations import Call, Callback, Noted
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    ClusterState,
    Generation,
    Late,
    Life,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

UNSUBSCRIBED, JOINING, RECONCILING, ACKNOWLEDGING, STABLE, FENCED, STALE = s.ClientState
JOIN, STEADY, LEAVE, AWAY = s.BeatKind
BOTH, P0, P1 = Parts(0b11), Parts(0b01), Parts(0b10)
A = Slot(0)


def me(*switches: str, name: str = "consumer") -> MemberContext:
    size = ScenarioSize(members=2, partitions=2, naming="given", switches=switches)
    return MemberContext(A, SCENARIOS[name].setup(size))


def member(state: s.ClientState = STABLE, **fields: Any) -> s.ConsumerMember:
    """A client at work in epoch 3 that has reconciled and consumes both partitions, unless told otherwise."""
    inside = state not in (UNSUBSCRIBED, JOINING, FENCED, STALE)
    usual: dict[str, Any] = {"life": Life.UP, "id": 1, "topics": Topics(1), "owned": BOTH, "believed": BOTH}
    usual |= {"epoch": Generation(3), "claim": BOTH, "target": BOTH} if inside else {}
    return s.ConsumerMember(state=state, **usual | fields)


def only(outcomes: Any) -> Any:
    """The one outcome; ``values`` are of many kinds, and each test knows which."""
    [outcome] = outcomes
    assert isinstance(outcome, Outcome)
    return outcome


# -- the next heartbeat --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "beat", "state"),
    [
        (member(JOINING, owned=NOTHING), s.Beat(JOIN, 1, NONE, NOTHING, True, Topics(1)), JOINING),
        (member(), s.Beat(STEADY, 1, Generation(3), None, False, Topics(1)), STABLE),
        (member(full=True), s.Beat(STEADY, 1, Generation(3), BOTH, True, Topics(1)), STABLE),
        (member(RECONCILING), s.Beat(STEADY, 1, Generation(3), None, False, Topics(1)), RECONCILING),
        (
            member(ACKNOWLEDGING, unsent=True),
            s.Beat(STEADY, 1, Generation(3), BOTH, False, Topics(1)),
            STABLE,
        ),
        (
            member(ACKNOWLEDGING, unsent=True, fresh=True),  # another target came meanwhile
            s.Beat(STEADY, 1, Generation(3), BOTH, False, Topics(1)),
            RECONCILING,
        ),
    ],
)
def test_what_a_heartbeat_carries_and_where_it_leaves_its_client(before, beat, state):
    after, sent = only(client.send(me(), before, None)).values
    assert sent == beat
    assert after == before._replace(state=state, unsent=False, full=False)


@pytest.mark.parametrize(
    "before",
    [
        member(UNSUBSCRIBED),
        member(FENCED),
        member(STALE),
        member(life=Life.PAUSED),
        member(life=Life.DOWN),
        member(life=Life.FAILED),
    ],
)
def test_who_is_outside_or_does_not_run_sends_none(before):
    assert list(client.send(me(), before, None)) == []


def test_an_application_that_hangs_sends_heartbeats_and_only_one_is_under_way():
    assert list(client.send(me(), member(life=Life.HUNG), None))
    waits = s.BeatOk(1, Generation(3), None)
    assert list(client.send(me(), member(), waits)) == []


def test_a_client_with_the_bug_joins_before_it_has_lost_its_partitions():
    after, sent = only(client.send(me("heartbeat_while_fenced"), member(FENCED), None)).values
    assert isinstance(sent, s.Beat)
    assert (sent.kind, after.state, after.owned) == (JOIN, FENCED, BOTH)


@pytest.mark.parametrize(
    ("fields", "claim", "shipped"),
    [
        ({}, BOTH, BOTH),
        ({"claim": P0, "owned": BOTH}, BOTH, P0),
        ({"claim": NOTHING, "owned": NOTHING, "target": P1}, P1, NOTHING),  # received, not begun
        ({"claim": NOTHING, "owned": NOTHING, "target": NOTHING, "goal": P1}, P1, NOTHING),
        ({"claim": NOTHING, "owned": NOTHING, "target": None}, NOTHING, NOTHING),
        ({"claim": NOTHING, "owned": P0, "target": NOTHING}, P0, NOTHING),  # not revoked yet
    ],
)
def test_as_specified_a_client_claims_all_that_it_has_or_may_come_to_have(fields, claim, shipped):
    one = member(full=True, **fields)
    outcome = only(client.send(me(), one, None))
    assert (outcome.values[1].owned, outcome.seen) == (claim, (Acknowledged(A, claim, one.owned),))
    assert only(client.send(me("claims_reconciled_only"), one, None)).values[1].owned == shipped


# -- an answer -----------------------------------------------------------------------------------------


def heard(before: s.ConsumerMember, answer: s.BeatWire, *switches: str, name: str = "consumer") -> Any:
    outcome = only(client.receive(me(*switches, name=name), answer, before))
    assert outcome.values[1] is None
    return outcome


@pytest.mark.parametrize(
    ("before", "epoch", "parts", "changes"),
    [
        (member(JOINING, owned=NOTHING), 1, BOTH, {"state": RECONCILING, "target": BOTH, "fresh": True}),
        (member(JOINING, owned=NOTHING), 1, NOTHING, {"state": RECONCILING, "target": 0, "fresh": True}),
        (member(JOINING, owned=NOTHING), 1, None, {}),  # no coordinator says so: a join is full
        (member(), 4, None, {}),
        (member(), 4, P0, {"state": RECONCILING, "target": P0, "fresh": True}),
        (member(), 4, BOTH, {}),  # the target that it has
        (member(RECONCILING, goal=P0, target=P0), 4, P1, {"target": P1, "fresh": True}),  # goes on with P0
        (member(RECONCILING, goal=P0, target=P0), 3, P0, {}),  # told again while it is at it
        (member(RECONCILING, target=P0, fresh=True), 3, None, {}),
        (member(RECONCILING), 3, BOTH, {"state": STABLE}),  # nothing is left to reconcile
        (member(ACKNOWLEDGING, unsent=True), 3, None, {}),
        (member(ACKNOWLEDGING, unsent=True), 4, P0, {"state": RECONCILING, "target": P0, "fresh": True}),
    ],
)
def test_a_success_takes_the_epoch_and_a_new_target(before, epoch, parts, changes):
    outcome = heard(before, s.BeatOk(1, Generation(epoch), parts))
    assert outcome.values[0] == before._replace(epoch=Generation(epoch), **changes)
    assert outcome.seen == ()


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (member(FENCED), s.BeatOk(1, Generation(4), P0)),
        (member(STALE), s.BeatOk(1, Generation(4), P0)),
        (member(UNSUBSCRIBED), s.BeatOk(1, Generation(4), P0)),
        (member(JOINING), s.BeatOk(1, NONE, None)),  # of its leave: KAFKA-19335
        (member(), s.BeatOk(1, NONE, None)),
        (member(), s.BeatOk(2, Generation(4), P0)),
        (member(), s.BeatRefused(2, s.BeatError.FENCED_MEMBER_EPOCH)),
        (member(FENCED), s.BeatRefused(1, s.BeatError.UNKNOWN_MEMBER_ID)),
        (member(STALE), s.BeatRefused(1, s.BeatError.GROUP_ID_NOT_FOUND)),
    ],
)
def test_an_answer_of_a_membership_that_has_ended_or_of_another_id_changes_nothing(before, answer):
    outcome = heard(before, answer)
    assert (outcome.values[0], outcome.seen) == (before, ())


def test_an_answer_is_not_read_by_who_does_not_run_nor_is_a_request_one():
    answer = s.BeatOk(1, Generation(4), P0)
    assert list(client.receive(me(), answer, member(life=Life.PAUSED))) == []
    assert (
        list(client.receive(me(), s.Beat(STEADY, 1, Generation(3), None, False, Topics(1)), member())) == []
    )


LOSES = Callback(Call.LOST, A, BOTH, False, True, BOTH, BOTH)
FAILED = s.ConsumerMember(life=Life.FAILED)


@pytest.mark.parametrize("state", [JOINING, RECONCILING, ACKNOWLEDGING, STABLE])
@pytest.mark.parametrize("error", [s.BeatError.FENCED_MEMBER_EPOCH, s.BeatError.UNKNOWN_MEMBER_ID])
def test_a_fence_ends_the_membership_and_what_it_was_about(state, error):
    before = member(state, goal=P0, calls=True, unsent=True, full=True, fresh=True)
    outcome = heard(before, s.BeatRefused(1, error))
    after = outcome.values[0]
    assert (after.state, after.epoch, after.id, after.owned) == (FENCED, NONE, 1, BOTH)
    assert (after.target, after.fresh, after.goal, after.calls) == (None, False, None, False)
    assert (after.unsent, after.full) == (False, False)
    assert outcome.seen == (Noted("member is fenced"),)  # onPartitionsLost comes with the next poll


@pytest.mark.parametrize(
    ("error", "switches", "name", "after"),
    [
        (s.BeatError.UNRELEASED_INSTANCE_ID, (), "consumer-static", "goes on"),
        (s.BeatError.UNRELEASED_INSTANCE_ID, ("unreleased_fatal",), "consumer-static", "ends"),
        (s.BeatError.FENCED_INSTANCE_ID, (), "consumer-static", "ends"),
        (s.BeatError.UNKNOWN_SERVER_ERROR, (), "consumer", "ends"),
        (s.BeatError.GROUP_ID_NOT_FOUND, (), "consumer", "fenced"),  # as specified it joins again
        (s.BeatError.GROUP_ID_NOT_FOUND, ("group_not_found_fatal",), "consumer", "ends"),
        (s.BeatError.GROUP_ID_NOT_FOUND, (), "migration-disabled", "ends"),  # which could not let it in
    ],
)
def test_what_a_client_makes_of_other_errors(error, switches, name, after):
    outcome = heard(member(), s.BeatRefused(1, error), *switches, name=name)
    if after == "goes on":
        assert (outcome.values[0], outcome.seen) == (member(), ())
    elif after == "fenced":
        assert outcome.values[0].state is FENCED
    else:
        assert (outcome.values[0], outcome.seen) == (FAILED, (LOSES, Ended(A, error)))


def test_after_a_lost_answer_the_next_heartbeat_carries_every_field():
    lost = heard(member(RECONCILING, goal=P0), s.BeatRefused(1, s.BeatError.DISCONNECT))
    assert lost.values[0] == member(RECONCILING, goal=P0, full=True)


@pytest.mark.parametrize("state", [FENCED, STALE])
def test_a_client_without_membership_loses_everything_and_joins_under_its_id(state):
    outcome = only(client.lose(me(), member(state)))
    assert outcome.values == (member(JOINING, owned=NOTHING, believed=NOTHING),)
    assert outcome.seen == (LOSES,)
    assert only(client.lose(me(), member(state, owned=NOTHING))).seen == ()


def test_nobody_else_loses_anything():
    inside = (JOINING, RECONCILING, ACKNOWLEDGING, STABLE)
    assert [list(client.lose(me(), member(state))) for state in inside] == [[]] * 4
    assert list(client.lose(me(), member(FENCED, life=Life.HUNG))) == []


# -- reconciliation ------------------------------------------------------------------------------------


def test_a_reconciliation_begins_with_the_newest_target_if_none_is_under_way():
    fresh = member(RECONCILING, target=P0, fresh=True)
    assert only(client.begin(me(), fresh)).values == (fresh._replace(goal=P0, fresh=False),)
    assert only(client.begin(me(), fresh._replace(target=None))).values[0].goal == NOTHING
    assert list(client.begin(me(), fresh._replace(goal=P1))) == []
    assert list(client.begin(me(), member())) == []
    assert list(client.begin(me(), fresh._replace(life=Life.HUNG))) == []


def test_what_goes_is_revoked_before_anything_comes():
    begun = member(RECONCILING, owned=P0, believed=P0, target=P1, goal=P1)
    assert list(client.assign(me(), begun)) == []
    revoked = only(client.revoke(me(), begun))
    assert revoked.values == (begun._replace(owned=NOTHING, believed=NOTHING),)
    assert revoked.seen == (Callback(Call.REVOKED, A, P0, False, False, P0, P0),)
    assert list(client.revoke(me(), revoked.values[0])) == []


def test_what_comes_is_consumed_and_told_also_where_it_is_nothing():
    begun = member(RECONCILING, owned=P0, believed=P0, goal=BOTH)
    assigned = only(client.assign(me(), begun))
    assert assigned.values == (begun._replace(owned=BOTH, believed=BOTH, calls=True),)
    assert assigned.seen == (Callback(Call.ASSIGNED, A, P1, False, False, P0, P0),)
    nothing = only(client.assign(me(), member(RECONCILING, goal=BOTH)))
    assert nothing.seen == (Callback(Call.ASSIGNED, A, NOTHING, False, False, BOTH, BOTH),)
    assert list(client.assign(me(), assigned.values[0])) == []  # the callback runs


def test_the_acknowledgement_is_of_what_was_reconciled_and_not_yet_sent():
    ends = member(RECONCILING, target=P0, fresh=True, goal=BOTH, calls=True, claim=P0)
    after = only(client.acknowledge(me(), ends)).values[0]
    assert after == ends._replace(state=ACKNOWLEDGING, claim=BOTH, goal=None, calls=False, unsent=True)
    assert list(client.acknowledge(me(), ends._replace(calls=False))) == []


@pytest.mark.parametrize("state", [FENCED, STALE, JOINING])
@pytest.mark.parametrize("step", [client.revoke, client.assign, client.acknowledge])
def test_a_reconciliation_of_a_membership_that_has_ended_goes_no_further(state, step):
    fields = {"owned": BOTH, "goal": P0} if step is client.revoke else {"goal": BOTH}
    half = member(state, calls=step is client.acknowledge, **fields)
    assert list(step(me(), half)) == []
    again = list(step(me("no_rejoin_flag"), half))  # KAFKA-16375
    assert bool(again) is (state is JOINING)


# -- it leaves, and comes back -------------------------------------------------------------------------

CLUSTER = ClusterState(BOTH)
GROUP = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), BOTH)
RECORD = s.ConsumerRecord(1, Generation(3), Generation(3), assigned=BOTH, target=BOTH, topics=Topics(1))
BOOK = ((RECORD,), ())
REVOKES = Callback(Call.REVOKED, A, BOTH, False, False, BOTH, BOTH)


def left(
    step: Any, before: s.ConsumerMember, name: str = "consumer", wire: s.BeatWire = None, book: Any = BOOK
) -> Any:
    return only(step(me(name=name), 1, before, wire, None, GROUP, CLUSTER, *book))


@pytest.mark.parametrize(
    ("step", "after"),
    [
        (client.close, s.ConsumerMember()),
        (client.unsubscribe, s.ConsumerMember(life=Life.UP, id=1)),
    ],
)
def test_who_leaves_has_everything_revoked_and_is_out_of_the_group(step, after):
    outcome = left(step, member())
    budget, now, wire, stray, group, *book = outcome.values
    assert (budget, now, wire, stray) == (0, after, None, None)
    assert (group, book) == (GROUP._replace(epoch=Generation(4)), [(), ()])
    assert outcome.seen == (REVOKES,)


@pytest.mark.parametrize("step", [client.close, client.unsubscribe])
def test_a_static_member_leaves_with_minus_2_and_stays_in_the_group(step):
    *_, group, mine, _ = left(step, member(), "consumer-static").values
    assert group == GROUP
    assert mine == (RECORD._replace(epoch=NONE, previous=NONE, away=True),)


@pytest.mark.parametrize("state", [FENCED, STALE])
def test_who_has_no_epoch_any_more_loses_what_it_has_and_sends_no_leave(state):
    outcome = left(client.close, member(state))
    assert outcome.values[4:] == (GROUP, *BOOK)
    assert outcome.seen == (LOSES,)


def test_who_is_joining_leaves_too_since_the_coordinator_may_know_it():
    outcome = left(client.close, member(JOINING, owned=NOTHING))
    assert outcome.values[5:] == ((), ())
    assert outcome.seen == ()


def test_a_heartbeat_that_was_sent_before_the_leave_arrives_before_it():
    sent = s.Beat(JOIN, 1, NONE, NOTHING, True, Topics(1))
    *_, group, mine, _ = left(client.close, member(JOINING, owned=NOTHING), wire=sent, book=((), ())).values
    assert (group.epoch, mine) == (5, ())  # it has joined, and it has left


def test_a_member_that_polls_too_late_is_out_and_hears_of_it_as_it_polls():
    outcome = left(client.max_poll, member(RECONCILING, goal=P0, owned=BOTH))
    after = outcome.values[1]
    assert (after.state, after.epoch, after.owned, after.goal) == (STALE, NONE, BOTH, None)
    assert outcome.values[5:] == ((), ())
    assert outcome.seen == ()
    for state in (JOINING, FENCED, STALE, UNSUBSCRIBED):
        assert list(client.max_poll(me(), 1, member(state), None, None, GROUP, CLUSTER, *BOOK)) == []


def test_the_interval_passes_by_itself_for_an_application_that_hangs():
    hung = member(life=Life.HUNG)
    outcome = only(client.poll_interval(me(), hung, None, None, GROUP, CLUSTER, *BOOK))
    assert outcome.values[0].state is STALE
    assert len(outcome.values) == 6  # it is no fault, and costs nothing
    assert list(client.poll_interval(me(), member(), None, None, GROUP, CLUSTER, *BOOK)) == []


def test_a_leave_that_is_lost_leaves_the_member_in_the_group():
    found: Any = client.leave_lost(me(), 1, member(), None, None)
    outcomes = {one.choice: one for one in found}
    assert outcomes.keys() == {"close", "unsubscribe", "max poll"}
    assert outcomes["close"].values == (0, s.ConsumerMember(), None, None)
    assert outcomes["unsubscribe"].values[1] == s.ConsumerMember(life=Life.UP, id=1)
    assert outcomes["max poll"].values[1].state is STALE
    assert [outcomes[name].seen for name in ("close", "max poll")] == [(REVOKES,), ()]
    assert list(client.leave_lost(me(), 1, member(JOINING), None, None)) == []


@pytest.mark.parametrize("life", [Life.DOWN, Life.FAILED])
def test_a_process_starts_under_an_id_that_nobody_knows(life):
    stopped = s.ConsumerMember(life=life)
    sent = s.Beat(STEADY, 1, Generation(3), None, False, Topics(1))
    known = ((RECORD,), ())[0]
    after, wire, stray = only(
        client.start(me(), stopped, sent, Late("commit", 1, Generation(3), P0), known)
    ).values
    assert after == s.ConsumerMember(life=Life.UP, state=JOINING, id=2, topics=Topics(1))
    assert (wire, stray) == (None, None)
    assert only(client.start(me(), stopped, None, None, known, named=[2, 3])).values[0].id == 4
    assert list(client.start(me(), member(), None, None, known)) == []


def test_of_a_process_that_is_killed_a_heartbeat_may_still_arrive():
    sent = s.Beat(STEADY, 1, Generation(3), None, False, Topics(1))
    for wire, kept in ((sent, sent), (s.BeatOk(1, Generation(3), None), None), (None, None)):
        outcome = only(client.crash(me(), 1, member(), wire, Late("commit", 1, Generation(3), P0)))
        assert outcome.values == (0, s.ConsumerMember(), kept, None)
    noted = only(client.crash(me(), 1, member(RECONCILING, goal=P0), None, None)).seen
    assert noted == (Noted("crash with a revocation under way"),)
    assert list(client.crash(me(), 1, s.ConsumerMember(), None, None)) == []


def test_who_has_unsubscribed_subscribes_under_the_same_id():
    [outcome] = client.subscribe(me(), s.ConsumerMember(life=Life.UP, id=1))
    assert outcome.values == (s.ConsumerMember(life=Life.UP, state=JOINING, id=1, topics=Topics(1)),)
    assert list(client.subscribe(me(), member())) == []


def test_a_subscription_changes_to_others_that_the_scenario_has():
    one = member(topics=Topics(0b11))
    outcomes = list(client.resubscribe(me(name="consumer-topics"), 1, one))
    assert [outcome.values for outcome in outcomes] == [(0, one._replace(topics=Topics(0b01)))]
    assert list(client.resubscribe(me(name="consumer-topics"), 1, one._replace(topics=Topics(0)))) == []


def test_a_connection_loses_what_is_under_way_once():
    sent = s.Beat(STEADY, 1, Generation(3), None, False, Topics(1))
    lost = s.BeatRefused(1, s.BeatError.DISCONNECT)
    for wire, what in ((sent, "heartbeat"), (s.BeatOk(1, Generation(3), None), "answer")):
        outcome = only(client.disconnect(me(), 1, member(), wire))
        assert (outcome.values, outcome.seen) == ((0, lost), (Noted(f"{what} lost"),))
    nothing: list[tuple[s.BeatWire, s.ConsumerMember]] = [
        (None, member()),
        (lost, member()),
        (sent, s.ConsumerMember()),
    ]
    assert all(list(client.disconnect(me(), 1, who, wire)) == [] for wire, who in nothing)


def test_a_commit_shows_the_epoch_at_which_it_was_sent():
    assert only(client.send_late(me(), 1, member(), None)).values == (
        0,
        Late("commit", 1, Generation(3), BOTH),
    )
    assert list(client.send_late(me(), 1, member(owned=NOTHING), None)) == []
    assert list(client.send_late(me(), 1, member(FENCED), None)) == []
    assert list(client.send_late(me(), 1, member(), Late("commit", 1, Generation(2), P0))) == []


def test_a_pause_is_noticed_by_nobody_and_a_hang_by_the_interval():
    paused = only(client.pause(me(), 1, member())).values[1]
    assert only(client.resume(me(), paused)).values == (member(),)
    assert list(client.pause(me(), 1, paused)) == list(client.resume(me(), member())) == []
    assert only(client.hang(me(), 1, member())).values == (0, member(life=Life.HUNG))
    assert list(client.hang(me(), 1, member(FENCED))) == []
