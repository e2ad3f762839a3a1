"""One step of a member of the classic protocol as a migration has it: EAGER or COOPERATIVE."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.observations import Ended
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome
from rebalance_verifier.model.migration import member as classic

BOTH, P0, P1 = p.Parts(0b11), p.Parts(0b01), p.Parts(0b10)
UNJOINED, PREPARING, COMPLETING, STABLE = (
    p.MemberState.UNJOINED, p.MemberState.PREPARING, p.MemberState.COMPLETING, p.MemberState.STABLE,
)  # fmt: skip

SETUP = SCENARIOS["migration"].setup(ScenarioSize(naming="given"))
COOPERATIVE, EAGER = MemberContext(p.Slot(1), SETUP), MemberContext(p.Slot(2), SETUP)
STATIC = MemberContext(p.Slot(0), SCENARIOS["migration-static"].setup())


def member(state: p.MemberState = STABLE, **fields: Any) -> s.ClassicMember:
    """A member at work in generation 3 that owns both partitions, unless told otherwise."""
    usual: dict[str, Any] = {
        "life": p.Life.UP,
        "id": 1,
        "generation": p.Generation(3),
        "owned": BOTH,
        "believed": BOTH,
    }
    return s.ClassicMember(state=state, **usual | {"rejoin": False, "topics": p.Topics(1)} | fields)


def message(step: s.ClassicStep, **fields: Any) -> s.ClassicMessage:
    return s.ClassicMessage(step, **{"id": 1, "generation": p.Generation(3)} | fields)


def only(outcomes: Any) -> Any:
    """The one outcome; ``values`` are of many kinds, and each test knows which."""
    [outcome] = outcomes
    assert isinstance(outcome, Outcome)
    return outcome


def call(me: MemberContext, kind: Call, parts: int, owned: int, *, reset: bool = False) -> Callback:
    return Callback(kind, me.slot, p.Parts(parts), me is EAGER, reset, p.Parts(owned), p.Parts(owned))


# -- JoinGroup -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("me", "claim", "kept", "seen"),
    [
        (COOPERATIVE, BOTH, BOTH, ()),
        (EAGER, p.NOTHING, p.NOTHING, (call(EAGER, Call.REVOKED, BOTH, BOTH),)),
    ],
)
def test_an_eager_member_gives_up_everything_before_it_joins(me, claim, kept, seen):
    called = member(rejoin=True)
    outcome = only(classic.join(me, called, None))
    assert outcome.values == (
        called._replace(state=PREPARING, owned=kept, believed=kept),
        message(s.ClassicStep.JOIN, parts=claim, topics=p.Topics(1)),
    )
    assert outcome.seen == seen
    assert only(classic.join(me, member(rejoin=True, owned=p.NOTHING), None)).seen == ()


@pytest.mark.parametrize(
    ("one", "wire"),
    [
        (member(), None),  # nobody has called it
        (member(rejoin=True), message(s.ClassicStep.SYNC)),
        (member(rejoin=True, topics=p.Topics(0)), None),
        (member(rejoin=True, life=p.Life.PAUSED), None),
    ],
)
def test_who_joins_not(one, wire):
    assert list(classic.join(COOPERATIVE, one, wire)) == []


# -- answers -------------------------------------------------------------------------------------------


def heard(me: MemberContext, one: s.ClassicMember, answer: s.ClassicMessage) -> Any:
    return only(classic.receive(me, answer, one))


def test_behind_the_answer_to_a_join_goes_the_sync():
    joining = member(PREPARING, generation=p.NONE, rejoin=True)
    after, wire = heard(
        COOPERATIVE, joining, message(s.ClassicStep.JOIN_OK, generation=p.Generation(4))
    ).values
    assert after == joining._replace(state=COMPLETING, generation=p.Generation(4), rejoin=False)
    assert wire == message(s.ClassicStep.SYNC, generation=p.Generation(4))


@pytest.mark.parametrize(
    ("me", "owned", "parts", "rejoins", "seen"),
    [
        (COOPERATIVE, p.NOTHING, BOTH, False, (call(COOPERATIVE, Call.ASSIGNED, BOTH, 0),)),
        (COOPERATIVE, BOTH, BOTH, False, (call(COOPERATIVE, Call.ASSIGNED, 0, BOTH),)),
        (
            COOPERATIVE, BOTH, P0, True,  # KIP-429: who has revoked joins again
            (call(COOPERATIVE, Call.REVOKED, P1, BOTH), call(COOPERATIVE, Call.ASSIGNED, 0, P0)),
        ),
        (EAGER, p.NOTHING, P0, False, (call(EAGER, Call.ASSIGNED, P0, 0),)),
    ],
)  # fmt: skip
def test_the_answer_to_a_sync_revokes_what_goes_then_assigns_what_comes(me, owned, parts, rejoins, seen):
    syncing = member(COMPLETING, owned=p.Parts(owned), believed=p.Parts(owned))
    outcome = heard(me, syncing, message(s.ClassicStep.SYNC_OK, parts=p.Parts(parts)))
    after = syncing._replace(state=STABLE, owned=parts, believed=parts, rejoin=rejoins)
    assert (outcome.values, outcome.seen) == ((after, None), seen)


@pytest.mark.parametrize("error", [p.Error.UNKNOWN_MEMBER_ID, p.Error.ILLEGAL_GENERATION])
def test_an_error_that_ends_the_membership_loses_what_is_owned(error):
    outcome = heard(COOPERATIVE, member(COMPLETING), message(s.ClassicStep.REFUSED, error=error))
    lost = member(UNJOINED, generation=p.NONE, owned=p.NOTHING, believed=p.NOTHING, rejoin=True)
    assert outcome.values == (lost, None)
    assert outcome.seen == (call(COOPERATIVE, Call.LOST, BOTH, BOTH, reset=True),)


@pytest.mark.parametrize("error", [p.Error.REBALANCE_IN_PROGRESS, p.Error.DISCONNECT])
def test_an_error_that_passes_makes_it_join_again_with_what_it_owns(error):
    outcome = heard(COOPERATIVE, member(COMPLETING), message(s.ClassicStep.REFUSED, error=error))
    assert outcome.values == (member(UNJOINED, rejoin=True), None)
    assert outcome.seen == ()


@pytest.mark.parametrize(("state", "ends"), [(PREPARING, False), (COMPLETING, True)])
def test_an_inconsistent_protocol_ends_the_application(state, ends):
    error = p.Error.INCONSISTENT_GROUP_PROTOCOL
    outcome = heard(COOPERATIVE, member(state), message(s.ClassicStep.REFUSED, error=error))
    assert outcome.values == (s.ClassicMember(life=p.Life.FAILED), None)
    assert (Ended(COOPERATIVE.slot, error) in outcome.seen) is ends
    assert outcome.seen[0] == call(COOPERATIVE, Call.LOST, BOTH, BOTH, reset=True)


@pytest.mark.parametrize(
    ("one", "answer"),
    [
        (member(COMPLETING), message(s.ClassicStep.SYNC_OK, id=2, parts=P0)),
        (member(UNJOINED), message(s.ClassicStep.SYNC_OK, parts=P0)),
        (member(), message(s.ClassicStep.JOIN_OK)),
    ],
)
def test_an_answer_that_nobody_waits_for_changes_nothing(one, answer):
    assert heard(COOPERATIVE, one, answer).values == (one, None)


def test_an_answer_is_read_by_who_runs_and_a_request_by_nobody():
    answer = message(s.ClassicStep.JOIN_OK)
    assert list(classic.receive(COOPERATIVE, answer, member(PREPARING, life=p.Life.PAUSED))) == []
    for step in (s.ClassicStep.JOIN, s.ClassicStep.JOIN_WAITS, s.ClassicStep.SYNC_WAITS):
        assert list(classic.receive(COOPERATIVE, message(step), member(PREPARING))) == []


# -- heartbeats ----------------------------------------------------------------------------------------

OTHER = s.ConsumerRecord(1, p.Generation(3), p.Generation(3), target=P0, assigned=P0, topics=p.Topics(1))
MINE = s.ConsumerRecord(
    1, p.Generation(3), p.Generation(3), assigned=P1, target=P1, topics=p.Topics(1), classic=True
)


def beaten(one: s.ClassicMember, epoch: int, *mine: s.ConsumerRecord) -> list[Outcome]:
    group = s.ConsumerGroup(s.GroupKind.CONSUMER, p.Generation(epoch), p.Generation(epoch), BOTH)
    return list(classic.beat(COOPERATIVE, one, group, (OTHER,), mine, ()))


def test_a_heartbeat_has_a_consequence_where_it_is_refused():
    assert beaten(member(), 3, MINE) == []
    [called] = beaten(member(), 4, MINE)
    assert (called.values, called.choice) == ((member(rejoin=True),), p.Error.REBALANCE_IN_PROGRESS)
    assert beaten(member(rejoin=True), 4, MINE) == []  # it knows
    [gone] = beaten(member(), 3)
    assert gone.values == (
        member(UNJOINED, generation=p.NONE, owned=p.NOTHING, believed=p.NOTHING, rejoin=True),
    )
    assert gone.seen == (call(COOPERATIVE, Call.LOST, BOTH, BOTH, reset=True),)


@pytest.mark.parametrize(
    "one", [member(COMPLETING), member(PREPARING), member(life=p.Life.PAUSED), member(generation=p.NONE)]
)
def test_who_is_not_settled_in_a_generation_sends_none(one):
    assert beaten(one, 4, MINE) == []


# -- the process ---------------------------------------------------------------------------------------


def closed(me: MemberContext, one: s.ClassicMember) -> Any:
    slots = len(me.setup.consumers)
    book = [(MINE,) if slot == me.slot else () for slot in range(slots)]
    group = s.ConsumerGroup(s.GroupKind.CONSUMER, p.Generation(3), p.Generation(3), BOTH)
    return only(classic.close(me, 1, one, None, None, group, p.ClusterState(BOTH), *book))


def test_a_close_revokes_everything_and_leaves():
    outcome = closed(COOPERATIVE, member())
    assert outcome.values[:4] == (0, s.ClassicMember(), None, None)
    assert outcome.values[4].epoch == 4
    assert outcome.values[5:] == ((), (), ())
    assert outcome.seen[0] == call(COOPERATIVE, Call.REVOKED, BOTH, BOTH)
    assert closed(COOPERATIVE, member(generation=p.NONE)).seen[0].call is Call.LOST


def test_a_static_member_sends_no_leave():
    outcome = closed(STATIC, member())
    assert (outcome.values[4].epoch, outcome.values[5]) == (3, (MINE,))


def test_a_process_starts_under_an_id_that_nobody_knows():
    assert list(classic.start(COOPERATIVE, member(), None, None, ())) == []
    for life in (p.Life.DOWN, p.Life.FAILED):
        outcome = only(
            classic.start(COOPERATIVE, s.ClassicMember(life=life), message(s.ClassicStep.JOIN), None, (MINE,))
        )
        assert outcome.values == (s.ClassicMember(life=p.Life.UP, id=2, topics=p.Topics(1)), None, None)


@pytest.mark.parametrize("step", s.ClassicStep)
def test_of_a_process_that_is_killed_a_request_may_still_arrive(step):
    outcome = only(classic.crash(COOPERATIVE, 1, member(), message(step), None))
    kept = message(step) if step in (s.ClassicStep.JOIN, s.ClassicStep.SYNC) else None
    assert outcome.values == (0, s.ClassicMember(), kept, None)


@pytest.mark.parametrize("step", s.ClassicStep)
def test_a_connection_loses_what_is_under_way(step):
    outcomes = list(classic.disconnect(COOPERATIVE, 1, member(), message(step)))
    lost = message(s.ClassicStep.REFUSED, error=p.Error.DISCONNECT)
    assert [outcome.values for outcome in outcomes] == ([] if step is s.ClassicStep.REFUSED else [(0, lost)])
