"""The commit of onJoinPrepare that is refused: who looks again before JoinGroup leaves, and who does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Answered, Callback
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.properties.group.clauses import rules

from tests.model.classic.small_groups import EAGER, PlayedGroup, Step, meta, setup, stable

UNAWARE = "join_sent_after_reset"
LOOKS_AGAIN = PlayedGroup(setup(static=True, faults=("slow commit",)))
SENDS = PlayedGroup(setup(static=True, faults=("slow commit",), decisions=(UNAWARE,)))
GONE = {
    "group": s.Group(p.GroupState.STABLE, p.Generation(3), p.Id(p.Slot(1), 1), "cooperative-sticky"),
    "record_B": (s.MemberRecord(1, meta(), synced=True),),
}
COMMITTING = stable(owned=0b01, rejoin=True, committing=True)


def a(step: Step) -> s.Member:
    member = step.after["member A"]
    assert isinstance(member, s.Member)
    return member


def calls(step: Step) -> list[tuple[str, int]]:
    return [(one.call.value, one.parts) for one in step.saw(Callback)]


def refused(game: PlayedGroup) -> Step:
    """The commit of a member that is not in the group any more."""
    return game.step("commit refused", member_A=COMMITTING, **GONE)


def test_as_specified_it_prepares_anew_and_claims_nothing():
    step = refused(LOOKS_AGAIN)
    assert [(one.api, one.error, one.reset) for one in step.saw(Answered)] == [
        ("commit", p.Error.UNKNOWN_MEMBER_ID, True)
    ]
    assert (a(step).committing, a(step).prepare, a(step).owned) == (False, True, 0b01)
    assert step.after["wire A"] is None
    joins = LOOKS_AGAIN.step("join", member_A=a(step), **GONE)
    assert calls(joins) == [("lost", 0b01)]
    assert joins.after["wire A"] == s.Join(0, meta())


def test_java_sends_what_it_owned_under_no_member_id():
    step = refused(SENDS)
    request = step.after["wire A"]
    assert isinstance(request, s.Join)
    assert (request.id, request.meta.owned) == (0, 0b01)
    assert calls(step) == []
    assert (a(step).owned, a(step).state, a(step).prepare) == (0b01, p.MemberState.PREPARING, True)


def test_and_loses_it_at_the_next_poll():
    waiting = {**GONE, "member_A": a(refused(SENDS)), "wire_A": s.JoinParked(2)}
    step = SENDS.step("prepare", **waiting)
    assert calls(step) == [("lost", 0b01)]
    assert (a(step).owned, a(step).prepare) == (0, False)
    assert SENDS.steps("prepare", **{**waiting, "member_A": a(step)}) == []


def test_unless_it_was_answered_first_which_makes_it_a_member_again():
    joined = a(refused(SENDS))._replace(state=p.MemberState.COMPLETING, generation=p.Generation(4), id=2)
    step = SENDS.step("prepare", member_A=joined, wire_A=s.Sync(2, p.Generation(4)), **GONE)
    assert (calls(step), a(step).owned) == ([], 0b01)


def test_before_an_assignment_is_taken_it_prepares_too():
    """KafkaConsumer.poll: onJoinPrepare, and onJoinComplete of the future that is done."""
    game = PlayedGroup(setup(static=True, faults=("slow commit",), decisions=(UNAWARE,), lists=(EAGER,)))
    member = stable(generation=4, owned=0b01, own_gen=3, received=p.Parts(0b01))
    step = game.step("complete", member_A=member)
    assert calls(step) == [("revoked", 0b01), ("assigned", 0b01)]
    prepared = game.step("complete", member_A=member._replace(prepare=False))
    assert calls(prepared) == [("assigned", 0)]


def test_eager_revokes_what_it_has_lost():
    game = PlayedGroup(setup(static=True, faults=("slow commit",), decisions=(UNAWARE,), lists=(EAGER,)))
    step = refused(game)
    assert calls(step) == [("revoked", 0b01)]
    assert step.saw(Callback)[0].reset
    assert step.after["wire A"].meta.owned == 0


def test_with_kafka_12983_nothing_is_lost_afterwards():
    both = PlayedGroup(
        setup(static=True, faults=("slow commit",), decisions=(UNAWARE, "prepare_not_repeated_after_reset"))
    )
    assert not a(refused(both)).prepare


def test_an_old_generation_keeps_its_id():
    present = {**GONE, "record_A": (s.MemberRecord(1, meta(), synced=True),)}
    older = COMMITTING._replace(generation=p.Generation(2))
    step = SENDS.step("commit refused", member_A=older, **present)
    assert isinstance(step.after["wire A"], s.Join)
    assert (step.after["wire A"].id, a(step).generation) == (1, -1)


@pytest.mark.parametrize("member", [COMMITTING._replace(committing=False), COMMITTING])
def test_a_commit_that_is_accepted_or_not_there_is_not_refused(member: s.Member):
    present = {**GONE, "record_A": (s.MemberRecord(1, meta(), synced=True),)}
    assert SENDS.steps("commit refused", member_A=member, **present) == []


def group(static: bool, switch: bool) -> Setup:
    faults = ("session timeout", "slow commit")
    decisions = (UNAWARE,) if switch else ()
    return setup(2, 2, static=static, faults=faults, decisions=decisions, steps="atomic")


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("static", "switch", "broken"),
    [
        (True, True, {"group/owner", "group/commit"}),
        (True, False, set()),
        (False, True, set()),  # KIP-394: the first JoinGroup brings no more than a member id (but see U13)
        (False, False, set()),
    ],
)
def test_static_members_are_not_asked_twice(static: bool, switch: bool, broken: set[str]):
    of = group(static, switch)
    search = fast.explore(machine(of), rules(of), Limits(go_on=True))
    assert {breach.clause for breach in search.breaches} == broken


@pytest.mark.nightly
def test_both_sizes_of_steps_find_the_same():
    for switch, broken in ((True, {"group/owner", "group/commit"}), (False, set())):
        for steps in ("fine", "atomic"):
            of = replace(group(static=True, switch=switch), steps=steps)
            search = fast.explore(machine(of), rules(of), Limits(go_on=True))
            assert {breach.clause for breach in search.breaches} == broken


GIVEN_AN_ID = stable(
    state=p.MemberState.PREPARING, generation=p.NONE, id=2, owned=0b01, prepare=True, rejoin=True
)
"""Expelled while it prepared, and given another id for the JoinGroup that it has sent all the same."""


def test_a_lost_generation_is_enough_to_lose_the_partitions():
    joins = SENDS.step("join", member_A=GIVEN_AN_ID, **GONE)
    assert calls(joins) == [("lost", 0b01)]
    assert joins.after["wire A"].meta.owned == 0


def test_up_to_java_3_1_the_new_id_hides_that():
    game = PlayedGroup(setup(faults=("slow commit",), decisions=(UNAWARE, "lost_only_without_id")))
    joins = game.step("join", member_A=GIVEN_AN_ID, **GONE)
    assert calls(joins) == []
    assert joins.after["wire A"].meta.owned == 0b01
    without_id = game.step("join", member_A=GIVEN_AN_ID._replace(id=0), **GONE)
    assert calls(without_id) == [("lost", 0b01)]
