"""The leader against docs/protocol.md, sections 1.6 and 1.7."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.classic.leader import Question, Refusal, answers, validated
from rebalance_verifier.model.classic.state import Group, JoinOk, MemberRecord, Metadata, Sync
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Decided, Noted, Threw
from rebalance_verifier.model.group.setup import Consumer, Setup
from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription, TopicPartition

from tests.model.classic.small_groups import BOTH, COOPERATIVE, EAGER, PlayedGroup, Step, meta, setup, stable

A1, B1 = p.Id(p.Slot(0), 1), p.Id(p.Slot(1), 1)
NOW = p.Generation(4)
GROUP = Group(p.GroupState.COMPLETING, NOW, A1, "cooperative-sticky")
LEADER = stable(owned=0b11, state=p.MemberState.PREPARING, rejoin=True, prepare=False)
ELECTED = JoinOk(1, NOW, "cooperative-sticky", leader=True)


def claims(owned: int, generation: int = 3, **more: Any) -> tuple[MemberRecord, ...]:
    own = p.Generation(generation if owned else -1)
    return (MemberRecord(1, meta(owned=p.Parts(owned), own_gen=own, label=p.Generation(generation), **more)),)


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
        assert (after.state, after.generation, after.owned) == (p.MemberState.COMPLETING, 4, 0b11)
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
        member_A=LEADER._replace(view=p.Parts(0b01)),
        cluster=p.ClusterState(p.Parts(0b11)),
    )
    assert given(step) == {(0b01, 0), (0, 0b01)}
    assert {one.after["member A"].watch for one in step} == {0b01}


def test_claims_on_what_the_leader_does_not_know_are_left_aside():
    step = lead(TWO, claims(0b10), claims(0), member_A=LEADER._replace(view=p.Parts(0b01)))
    assert all(parts & 0b10 == 0 for shares in given(step) for parts in shares)


def test_the_leader_watches_the_topics_of_all():
    for decisions, watched, watch in (((), 0b11, 0b11), (("leader_watches_own_topics",), 0b01, 0b01)):
        game = PlayedGroup(setup(topics=(0b01, 0b10), decisions=decisions))
        own = LEADER._replace(topics=p.Topics(0b01), joined_topics=p.Topics(0b01))
        steps = lead(game, claims(0), claims(0, topics=p.Topics(0b10)), member_A=own)
        assert {(s.after["member A"].watched, s.after["member A"].watch) for s in steps} == {(watched, watch)}


def test_a_leader_of_librdkafka_assigns_by_what_it_fetches_and_watches_its_own_topics() -> None:
    """L11: what it watches is of its JoinGroup, so that a change since then makes it join again."""
    game = PlayedGroup(setup(topics=(0b01, 0b10), decisions=("members_watch_own_topics",)))
    own = LEADER._replace(
        topics=p.Topics(0b01), joined_topics=p.Topics(0b01), view=p.Parts(0b01), watch=p.Parts(0b01),
        watched=p.Topics(0b01),
    )  # fmt: skip
    steps = lead(
        game, claims(0), claims(0, topics=p.Topics(0b10)), member_A=own,
        cluster=p.ClusterState(p.Parts(0b11)),
    )  # fmt: skip
    assert given(steps) == {(0b01, 0b10)}
    assert {(s.after["member A"].watched, s.after["member A"].watch) for s in steps} == {(0b01, 0b01)}


def test_a_static_leader_that_returned_skips_the_assignment():
    """It does not know of which metadata the assignment was made; a release believes that of its return."""
    for decisions, watch in (((), None), (("skipped_assignment_noted",), 0b11)):
        game = PlayedGroup(setup(static=True, decisions=decisions))
        (step,) = lead(game, claims(0), claims(0), wire_A=ELECTED._replace(skip=True),
                       group=GROUP._replace(state=p.GroupState.STABLE))  # fmt: skip
        assert step.after["wire A"] == Sync(1, NOW)
        after = step.after["member A"]
        assert (after.watch, after.watched, after.noted_nothing) == (watch, 1, watch is None)
        assert step.saw(Noted) == [Noted("static leader skips the assignment")]


@pytest.mark.parametrize(
    "group",
    [
        GROUP._replace(state=p.GroupState.PREPARING),
        GROUP._replace(generation=p.Generation(5)),
        Group(),
    ],
)
def test_a_leader_that_was_overtaken_sends_all_the_same(group: Group):
    (step,) = lead(TWO, claims(0), claims(0), group=group)
    assert step.after["wire A"] == Sync(1, NOW)
    after = step.after["member A"]
    assert (after.state, after.generation, after.watch) == (p.MemberState.COMPLETING, NOW, None)
    refused = TWO.step("sync request", wire_A=step.after["wire A"], group=group, record_A=claims(0))
    assert refused.after["wire A"].api == "sync"


def test_a_leader_that_was_reset_meanwhile_does_nothing():
    gone = LEADER._replace(state=p.MemberState.UNJOINED, generation=p.Generation(-1), id=0)
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
    view = LEADER._replace(view=p.Parts(0b111))
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
        ((0b010, 0b010), False),  # what is revoked is added nowhere
        ((0b011, 0b011), False),  # what is added is revoked nowhere
    ],
)
def test_what_is_added_may_not_be_claimed_by_somebody_who_loses_it(answer: tuple[int, ...], refused: bool):
    metas = (meta(owned=p.Parts(0b011)), meta(owned=p.Parts(0b010)))
    question = Question("cooperative-sticky", (), p.Parts(0b111), metas, (None, None), (None, None))
    shares = tuple(map(p.Parts, answer))
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
    member = stable(4, 0b01, own_gen=3, prepare=False, received=p.Parts(0))
    after = game.step("complete", member_A=member).after["member A"]
    assert game.step("join", member_A=after).after["wire A"].meta.own_gen == 4


# -- what the assignor is asked ----------------------------------------------------------------------------


class Recording:
    """An assignor that keeps what it is asked, gives everything to the first and names a partition that there
    is not."""

    protocols, promises = reference("cooperative-sticky").protocols, frozenset[Any]()

    def __init__(self, name: str = "cooperative-sticky") -> None:
        self.name = name
        self.clusters: list[Cluster] = []
        self.groups: list[GroupSubscription] = []

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        self.clusters.append(cluster)
        self.groups.append(group)
        every = [TopicPartition(t, n) for t, racks in cluster.topics.items() for n in range(len(racks))]
        return {next(iter(group)): (*every, TopicPartition("elsewhere", 0))}

    def user_data(self, owned: Any, generation: int) -> bytes | None:
        return repr((sorted(map(str, owned)), generation)).encode()


def recorded(
    *consumers: Consumer, protocol: str = "cooperative-sticky", records: Any = None, **more: Any
) -> tuple[Recording, list[Step]]:
    """What the assignor of A is asked, by records of A and B."""
    assignor = Recording(protocol)
    of = setup(2, lists=((protocol,),), naming="given", factory=lambda *_: assignor, **more)
    game = PlayedGroup(replace(of, consumers=consumers or of.consumers))
    a, b = records or (claims(0b01, assignors=(protocol,)), claims(0, assignors=(protocol,)))
    steps = lead(game, a, b, group=GROUP._replace(protocol=protocol), wire_A=ELECTED)
    return assignor, steps


def test_partitions_that_there_are_not_are_left_aside():
    _, steps = recorded()
    assert given(steps) == {(0b11, 0)}


def test_a_topic_without_partitions_is_none():
    assignor = Recording()
    game = PlayedGroup(setup(topics=(0b01, 0b10), naming="given", factory=lambda *_: assignor))
    lead(game, claims(0), claims(0), member_A=LEADER._replace(view=p.Parts(0b01)))
    assert list(assignor.clusters[0].topics) == ["t0"]


@pytest.mark.parametrize(
    ("view", "owned", "name"),
    [(0b111, 0b001, "t0-0"), (0b111, 0b010, "t1-0"), (0b111, 0b100, "t1-1"), (0b100, 0b100, "t1-0"),
     (0b100, 0b010, "t1-1"), (0b110, 0b001, "t0-0")],
)  # fmt: skip
def test_partitions_are_named_by_their_topic_those_that_are_known_first(view: int, owned: int, name: str):
    assignor = Recording()
    game = PlayedGroup(setup(topics=(0b001, 0b110), naming="given", factory=lambda *_: assignor))
    steps = lead(game, claims(owned), claims(0), member_A=LEADER._replace(view=p.Parts(view)))
    assert [str(partition) for partition in assignor.groups[0]["m0"].owned_partitions] == [name]
    assert given(steps) == {(view, 0)}


def test_racks_of_partitions_and_members_are_passed_on():
    of = setup(2).consumers
    consumers = (replace(of[0], rack="r1"), replace(of[1], rack="r2"))
    assignor, _ = recorded(*consumers, racks=(("r1",), ("r1", "r2")))
    assert assignor.clusters[0].topics == {"t0": (("r1",), ("r1", "r2"))}
    assert [member.rack_id for member in assignor.groups[0].values()] == ["r1", "r2"]
    bare, _ = recorded()
    assert bare.clusters[0].topics == {"t0": ((), ())}


@pytest.mark.parametrize(
    ("protocol", "version", "tells", "data", "label"),
    [
        ("cooperative-sticky", 3, True, "['t0-0']", 0),
        ("cooperative-sticky", 2, True, "['t0-0']", 0),
        ("cooperative-sticky", 1, True, "['t0-0']", -1),
        ("cooperative-sticky", 0, True, None, -1),
        ("cooperative-sticky", 3, False, None, 0),
        ("sticky", 3, False, "['t0-1']", 0),
    ],
)
def test_what_a_subscription_has_in_it(
    protocol: str, version: int, tells: bool, data: str | None, label: int
):
    """CooperativeStickyAssignor writes what it owns where it tells; StickyAssignor its last assignment."""
    mine = claims(0b01, assignors=(protocol,), version=version, tells=tells, last=p.Parts(0b10))
    assignor, _ = recorded(protocol=protocol, records=(mine, mine))
    first = assignor.groups[0]["m0"]
    assert first.user_data == (f"({data}, 0)".encode() if data else None)
    assert (first.generation_id, first.version) == (label, version)
    assert first.owned_partitions == (TopicPartition("t0", 0),)


def test_instances_are_named_where_there_are_any():
    of = setup(2, static=True).consumers
    assignor, _ = recorded(of[0], replace(of[1], instance=None))
    assert [member.group_instance_id for member in assignor.groups[0].values()] == ["i0", None]


def test_under_every_naming_a_member_keeps_its_rack_its_instance_and_what_it_remembers():
    assignor = Recording("sticky")
    of = setup(2, lists=(("sticky",),), static=True, factory=lambda *_: assignor)
    game = PlayedGroup(replace(of, consumers=tuple(replace(c, rack=f"r{c.instance}") for c in of.consumers)))
    a, b = claims(0b01, last=p.Parts(0b10)), claims(0b10, last=p.Parts(0b01))
    lead(game, a, b, group=GROUP._replace(protocol="sticky"))
    assert len(assignor.groups) == 4
    for group in assignor.groups:
        for member in group.values():
            assert member.rack_id == f"r{str(member.group_instance_id)[1:]}"
            [owned] = member.owned_partitions
            assert member.user_data == f"(['t0-{1 - owned.partition}'], 0)".encode()
    assert {str(member.owned_partitions[0]) for group in assignor.groups for member in group.values()} == {
        "t0-0",
        "t0-1",
    }


def test_a_pending_id_is_not_asked_about():
    assert given(lead(TWO, claims(0), (*claims(0), MemberRecord(2, None)))) == {(0b01, 0b10), (0b10, 0b01)}


def test_only_who_runs_assigns():
    assert lead(TWO, claims(0), claims(0), member_A=LEADER._replace(life=p.Life.PAUSED)) == []
    assert lead(TWO, claims(0), claims(0), member_A=LEADER._replace(stuck=True)) == []
    assert lead(TWO, claims(0), claims(0), wire_A=ELECTED._replace(leader=False)) == []


def test_a_leader_whose_assignor_throws_joins_again():
    game = PlayedGroup(setup(factory=throwing))
    (step,) = lead(game, claims(0), claims(0), member_A=LEADER._replace(rejoin=False))
    assert step.after["member A"].rejoin


def test_of_several_errors_the_first_is_thrown():
    class Choosy(Throwing):
        def assign(self, cluster: object, group: GroupSubscription) -> GroupAssignment:
            raise IllegalStateError(f"owned by {min(m for m in group if group[m].owned_partitions)}")

    game = PlayedGroup(setup(factory=lambda *_: Choosy()))
    (step,) = lead(game, claims(0b11), claims(0))
    assert [threw.error for threw in step.saw(Threw)] == ["IllegalStateError: owned by m0"]


def test_an_answer_that_there_is_not_is_not_validated():
    game = PlayedGroup(setup(factory=throwing, decisions=("validate_raw_claims",)))
    (step,) = lead(game, claims(0b11), claims(0))
    assert [threw.error for threw in step.saw(Threw)] == ["IllegalStateError: no"]


@pytest.mark.parametrize(("protocol", "passed"), [("cooperative-sticky", ("no_withhold",)), ("range", ())])
def test_switches_are_of_the_assignor_that_they_are_about(protocol: str, passed: tuple[str, ...]):
    found: list[tuple[str, ...]] = []

    def factory(name: str, switches: tuple[str, ...]) -> Assignor:
        found.append(switches)
        return reference(name)

    of = setup(2, lists=(BOTH,), factory=factory)
    stage = replace(of.consumers[0].stages[0], switches=("no_withhold",))
    game = PlayedGroup(replace(of, consumers=tuple(replace(c, stages=(stage,)) for c in of.consumers)))
    lead(game, claims(0), claims(0), group=GROUP._replace(protocol=protocol))
    assert set(found) == {passed}


def test_only_the_order_of_generations_is_asked_about():
    """The oldest is 0, and no generation stays none."""
    records = (claims(0b01, 7), claims(0, 9))
    assignor, _ = recorded(records=records)
    assert [member.generation_id for member in assignor.groups[0].values()] == [0, 1]
    assert [member.user_data for member in assignor.groups[0].values()] == [b"(['t0-0'], 0)", b"([], -1)"]


@pytest.mark.parametrize(("silent", "shares"), [(True, (0b01, 0)), (False, (0b11, 0))])
def test_what_a_silent_member_may_still_hold_goes_to_nobody_else(silent: bool, shares: tuple[int, ...]):
    other = tuple(record._replace(silent=silent) for record in claims(0b10))
    _, steps = recorded(records=(claims(0b01), other), static=True)
    assert given(steps) == {shares}


def test_and_it_may_keep_it():
    mine = tuple(record._replace(silent=True) for record in claims(0b10))
    _, steps = recorded(records=(mine, claims(0)), static=True)
    assert given(steps) == {(0b11, 0)}


# -- namings -------------------------------------------------------------------------------------------


def question(*owned: int, view: int = 0b111) -> Question:
    metas = tuple(
        Metadata(
            assignors=COOPERATIVE,
            topics=p.Topics(1),
            owned=p.Parts(parts),
            label=p.Generation(0),
            own_gen=p.Generation(0 if parts else -1),
        )
        for parts in owned
    )
    nobody = (None,) * len(owned)
    return Question(
        protocol="cooperative-sticky",
        switches=(),
        view=p.Parts(view),
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
