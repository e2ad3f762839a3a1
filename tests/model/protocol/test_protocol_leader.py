"""The leader against docs/protocol.md, sections 1.6 and 1.7."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from rebalance.model.assignor import Assignor
from rebalance.model.assignors import reference
from rebalance.model.bugs.switches import switched
from rebalance.model.protocol.leader import Question, Refusal, answers, validated
from rebalance.model.protocol.observations import Decided, Noted, Threw
from rebalance.model.protocol.setup import Setup
from rebalance.model.protocol.state import (
    ClusterState,
    Generation,
    Group,
    GroupState,
    Id,
    JoinOk,
    MemberRecord,
    MemberState,
    Metadata,
    Parts,
    Slot,
    Sync,
    Topics,
)
from rebalance.model.values import GroupAssignment, GroupSubscription

from tests.model.protocol.small_groups import BOTH, COOPERATIVE, EAGER, PlayedGroup, Step, meta, setup, stable

A1, B1 = Id(Slot(0), 1), Id(Slot(1), 1)
NOW = Generation(4)
GROUP = Group(GroupState.COMPLETING, NOW, A1, "cooperative-sticky")
LEADER = stable(owned=0b11, state=MemberState.PREPARING, rejoin=True, prepare=False)
ELECTED = JoinOk(1, NOW, "cooperative-sticky", leader=True)


def claims(owned: int, generation: int = 3, **more: Any) -> tuple[MemberRecord, ...]:
    own = Generation(generation if owned else -1)
    return (MemberRecord(1, meta(owned=Parts(owned), own_gen=own, label=Generation(generation), **more)),)


def lead(
    game: PlayedGroup, a: tuple[MemberRecord, ...], b: tuple[MemberRecord, ...], **more: Any
) -> list[Step]:
    values = {"member_A": LEADER, "wire_A": ELECTED, "group": GROUP, "record_A": a, "record_B": b, **more}
    return game.steps("assign", **values)


def grants(step: Step) -> tuple[int, ...]:
    sync = step.after["wire A"]
    assert isinstance(sync, Sync)
    assert sync.grants is not None
    assert (sync.id, sync.generation) == (1, NOW)
    return tuple(grant.parts for grant in sync.grants)


def given(steps: list[Step]) -> set[tuple[int, ...]]:
    return {grants(step) for step in steps}


TWO = PlayedGroup(setup())


def test_the_leader_assigns_and_sends():
    steps = lead(TWO, claims(0), claims(0))
    assert given(steps) == {(0b01, 0b10), (0b10, 0b01)}
    for step in steps:
        after = step.after["member A"]
        assert (after.state, after.generation, after.owned) == (MemberState.COMPLETING, 4, 0b11)
        (decided,) = step.saw(Decided)
        assert tuple(grant.parts for grant in decided.grants) == grants(step)
        assert [grant.id for grant in decided.grants] == [A1, B1]


def test_a_partition_that_changes_hands_is_withheld_for_a_round():
    assert given(lead(TWO, claims(0b11), claims(0))) == {(0b01, 0), (0b10, 0)}


def test_without_the_adjustment_it_is_handed_over_at_once():
    game = PlayedGroup(setup(factory=lambda name, switches: switched(name, ("no_withhold",))))
    assert given(lead(game, claims(0b11), claims(0))) == {(0b01, 0b10), (0b10, 0b01)}


def test_an_eager_leader_adjusts_too():
    """1.6: the adjustment is the assignor's, whoever runs it; section 4, second bounce."""
    game = PlayedGroup(setup(lists=(BOTH,)))
    a = claims(0, assignors=BOTH)
    assert given(lead(game, a, claims(0b11))) == {(0, 0b01), (0, 0b10)}


def test_range_knows_no_claims():
    game = PlayedGroup(setup(lists=(EAGER,)))
    group = GROUP._replace(protocol="range")
    a, b = claims(0, assignors=EAGER), claims(0, assignors=EAGER)
    ok = ELECTED._replace(protocol="range")
    assert given(lead(game, a, b, group=group, wire_A=ok)) == {(0b01, 0b10), (0b10, 0b01)}


def test_the_leader_uses_the_metadata_that_it_has():
    step = lead(
        TWO,
        claims(0),
        claims(0),
        member_A=LEADER._replace(view=Parts(0b01)),
        cluster=ClusterState(Parts(0b11)),
    )
    assert given(step) == {(0b01, 0), (0, 0b01)}


def test_claims_on_what_the_leader_does_not_know_are_left_aside():
    step = lead(TWO, claims(0b10), claims(0), member_A=LEADER._replace(view=Parts(0b01)))
    assert all(parts & 0b10 == 0 for shares in given(step) for parts in shares)


def test_the_leader_watches_the_topics_of_all():
    for decisions, watched, watch in (((), 0b11, 0b11), (("leader_watches_own_topics",), 0b01, 0b01)):
        game = PlayedGroup(setup(topics=(0b01, 0b10), decisions=decisions))
        own = LEADER._replace(topics=Topics(0b01), joined_topics=Topics(0b01))
        steps = lead(game, claims(0), claims(0, topics=Topics(0b10)), member_A=own)
        assert {(s.after["member A"].watched, s.after["member A"].watch) for s in steps} == {(watched, watch)}


def test_a_static_leader_that_returned_skips_the_assignment():
    game = PlayedGroup(setup(static=True))
    (step,) = lead(game, claims(0), claims(0), wire_A=ELECTED._replace(skip=True),
                   group=GROUP._replace(state=GroupState.STABLE))  # fmt: skip
    assert step.after["wire A"] == Sync(1, NOW)
    assert (step.after["member A"].watch, step.after["member A"].watched) == (0b11, 1)
    assert step.saw(Noted) == [Noted("static leader skips the assignment")]


@pytest.mark.parametrize(
    "group",
    [
        GROUP._replace(state=GroupState.PREPARING),
        GROUP._replace(generation=Generation(5)),
        Group(),
    ],
)
def test_a_leader_that_was_overtaken_sends_all_the_same(group: Group):
    (step,) = lead(TWO, claims(0), claims(0), group=group)
    assert step.after["wire A"] == Sync(1, NOW)
    refused = TWO.step("sync request", wire_A=step.after["wire A"], group=group, record_A=claims(0))
    assert refused.after["wire A"].api == "sync"


def test_a_leader_that_was_reset_meanwhile_does_nothing():
    gone = LEADER._replace(state=MemberState.UNJOINED, generation=Generation(-1), id=0)
    (step,) = lead(TWO, claims(0), claims(0), member_A=gone)
    assert (step.after["member A"], step.after["wire A"]) == (gone, None)


class Throwing:
    """An assignor that throws."""

    name, protocols, promises = (
        "cooperative-sticky",
        reference("cooperative-sticky").protocols,
        frozenset[Any](),
    )

    def assign(self, cluster: object, group: GroupSubscription) -> GroupAssignment:
        raise IllegalStateError("no")

    def user_data(self, owned: object, generation: int) -> bytes | None:
        return None


class IllegalStateError(Exception):
    pass


def throwing(name: str, switches: tuple[str, ...]) -> Assignor:
    return Throwing()


def test_an_assignor_that_throws_sends_nothing():
    """1.6: poll throws; the leader joins again, the others wait for the pending-sync expiration."""
    game = PlayedGroup(setup(factory=throwing))
    (step,) = lead(game, claims(0b11), claims(0))
    assert step.after["wire A"] is None
    assert [threw.error for threw in step.saw(Threw)] == ["IllegalStateError: no"]
    after = step.after["member A"]
    assert (after.generation, after.owned, after.rejoin) == (4, 0b11, True)
    assert game.steps("join", member_A=after)


@pytest.mark.parametrize(
    ("decisions", "names", "throws"),
    [
        ((), COOPERATIVE, False),
        (("validate_raw_claims",), COOPERATIVE, True),
        (("validate_raw_claims",), BOTH, False),  # an EAGER leader validates nothing
    ],
)
def test_validation_of_raw_claims(decisions: tuple[str, ...], names: tuple[str, ...], throws: bool):
    """J3: by the old rule the late claim of A does not count, so one of its two goes to C at once. To the
    validation that is added here and revoked there."""
    game = PlayedGroup(setup(3, 3, lists=(names,), decisions=decisions, factory=max_generation))
    records = {"record_C": claims(0)}
    view = LEADER._replace(view=Parts(0b111))
    steps = lead(game, claims(0b011, 2), claims(0b100, 3), member_A=view, **records)
    assert {bool(step.saw(Threw)) for step in steps} == {throws}
    assert throws or all(grants(step)[2] & 0b011 for step in steps)


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ((0b001, 0b010), False),
        ((0b001, 0b110), False),
        ((0b011, 0), False),  # both claim t-1, and one of the two keeps it
        ((0b010, 0b001), True),
        ((0b101, 0b010), False),
    ],
)
def test_what_is_added_may_not_be_claimed_by_somebody_who_loses_it(answer: tuple[int, ...], refused: bool):
    metas = (meta(owned=Parts(0b011)), meta(owned=Parts(0b010)))
    question = Question("cooperative-sticky", (), Parts(0b111), metas, (None, None), (None, None))
    shares = tuple(map(Parts, answer))
    found = validated(question, shares)
    assert isinstance(found, Refusal) is refused
    assert refused or found == shares


def max_generation(name: str, switches: tuple[str, ...]) -> Assignor:
    return switched(name, ("max_generation_only",))


def test_the_newest_claim_wins():
    for step in lead(TWO, claims(0b01, 2), claims(0b01, 3)):
        assert grants(step)[0] & 0b01 == 0
        assert grants(step)[1] & 0b01


def test_a_sole_claim_counts_whatever_its_age():
    assert given(lead(TWO, claims(0b01, 1), claims(0b10, 3))) == {(0b01, 0b10)}


def test_equal_claims_cancel():
    assert all(
        parts & 0b01 == 0 for parts in [g for s in lead(TWO, claims(0b01), claims(0b01)) for g in grants(s)]
    )


def test_a_member_that_owns_nothing_has_a_generation_all_the_same():
    """1.7, 2.8.1 to 3.4.0: the newest generation is that of all members, those that own nothing too."""
    game = PlayedGroup(setup(version=1))
    member = stable(4, 0b01, own_gen=3, prepare=False, received=Parts(0))
    after = game.step("complete", member_A=member).after["member A"]
    assert game.step("join", member_A=after).after["wire A"].meta.own_gen == 4


# -- namings -------------------------------------------------------------------------------------------


def question(*owned: int, view: int = 0b111) -> Question:
    metas = tuple(
        Metadata(
            assignors=COOPERATIVE,
            topics=Topics(1),
            owned=Parts(parts),
            label=Generation(0),
            own_gen=Generation(0 if parts else -1),
        )
        for parts in owned
    )
    nobody = (None,) * len(owned)
    return Question(
        protocol="cooperative-sticky",
        switches=(),
        view=Parts(view),
        metas=metas,
        racks=nobody,
        instances=nobody,
    )


def three(naming: str) -> Setup:
    return setup(3, 3, naming=naming)


@pytest.mark.parametrize("owned", [(0, 0, 0), (0b111, 0, 0), (0b011, 0b100, 0), (0b001, 0b010, 0b100)])
def test_every_naming_is_asked(owned: tuple[int, ...]):
    """The answers are closed under the renamings that leave the question alone, and one of them is that
    under the given naming."""
    found = answers(three("every"), question(*owned))
    assert set(answers(three("given"), question(*owned))) <= set(found)
    for order in permutations(range(3)):
        swapped = answers(three("every"), question(*(owned[i] for i in order)))
        expected = {tuple(answer[i] for i in order) for answer in found if isinstance(answer, tuple)}
        assert set(swapped) == expected


def test_answers_come_in_a_fixed_order_and_once():
    found = answers(three("every"), question(0, 0, 0))
    assert len(found) == len(set(found)) == 6
    assert list(found) == sorted(found, key=repr)
