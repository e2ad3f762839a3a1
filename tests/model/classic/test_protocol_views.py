"""What rules are asked about: what follows from a state, member by member."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.classic.state import Group, Join, Member, MemberRecord, Refused
from rebalance_verifier.model.group import parts as p

from tests.model.classic.small_groups import EAGER, PlayedGroup, meta, setup, stable

G3 = p.Generation(3)
ONE, TWO_TOPICS = PlayedGroup(setup(1)), PlayedGroup(setup(1, topics=(0b001, 0b110)))
GROUP = Group(p.GroupState.STABLE, G3, p.Id(p.Slot(0), 1), "cooperative-sticky")
MINE = (MemberRecord(1, meta(), p.Parts(0b01), synced=True),)
REST = stable(owned=0b01)
SETTLED: dict[str, Any] = {"member_A": REST, "group": GROUP, "record_A": MINE}


def look(view: str, game: PlayedGroup = ONE, **values: Any) -> Any:
    return game.machine.look(game.state(**values), f"{view} A")


# -- what is settled -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "records"),
    [
        (REST, MINE),
        (Member(), ()),
        (Member(life=p.Life.FAILED), ()),
        (REST._replace(topics=p.Topics(0)), ()),
        (REST._replace(life=p.Life.HUNG), MINE),
        (REST._replace(life=p.Life.HUNG, topics=p.Topics(0), state=p.MemberState.PREPARING), MINE),
    ],
    ids=["at rest", "down", "failed", "unsubscribed", "hangs", "hangs in a rebalance"],
)
def test_nothing_is_left_to_do(member: Member, records: tuple[MemberRecord, ...]):
    assert look("settled", member_A=member, group=GROUP, record_A=records) == ""


@pytest.mark.parametrize(
    "amiss",
    [
        {"member_A": Member()},
        {"member_A": Member(life=p.Life.FAILED)},
        {"member_A": REST._replace(topics=p.Topics(0), joined_topics=p.Topics(0))},
        {"member_A": REST._replace(life=p.Life.PAUSED)},
        {"member_A": REST._replace(life=p.Life.PAUSED, topics=p.Topics(0)), "record_A": ()},
        {"member_A": REST._replace(state=p.MemberState.COMPLETING)},
        {"group": GROUP._replace(state=p.GroupState.COMPLETING)},
        {"group": GROUP._replace(generation=p.Generation(4))},
        {"record_A": ()},
        {"record_A": (MINE[0]._replace(id=2),)},
        {"record_A": (*MINE, MemberRecord(2, None))},
        {"member_A": REST._replace(received=p.Parts(0b01))},
        {"wire_A": Join(1, meta())},
        {"member_A": REST._replace(rejoin=True)},
        {"member_A": REST._replace(committing=True)},
        {"member_A": REST._replace(stuck=True)},
        {"member_A": REST._replace(owned=p.Parts(0b10))},
        {"member_A": REST._replace(joined_topics=p.Topics(0b10))},
        {"member_A": REST._replace(unfetched=p.Parts(0b01))},
    ],
)
def test_something_is_amiss(amiss: dict[str, Any]):
    assert look("settled", **{**SETTLED, **amiss})


def test_what_is_amiss_is_named():
    assert look("settled", **{**SETTLED, "record_A": (MINE[0]._replace(id=2),)}).startswith("not in the")
    assert look("settled", **{**SETTLED, "member_A": REST._replace(life=p.Life.PAUSED)}) == "paused"


# -- who owns what -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "records", "held"),
    [
        (REST, MINE, 0b01),
        (REST, (MemberRecord(1, None),), 0),
        (REST, (MINE[0]._replace(id=2),), 0),
        (REST, (), 0),
        (REST._replace(generation=p.Generation(-1)), MINE, 0),
    ],
    ids=["a member", "a pending id", "another id", "removed", "reset"],
)
def test_only_who_is_of_the_group_holds(member: Member, records: tuple[MemberRecord, ...], held: int):
    assert look("held", member_A=member, record_A=records) == held


@pytest.mark.parametrize(
    ("values", "accepted"),
    [
        ({}, 0b01),
        ({"member_A": REST._replace(state=p.MemberState.PREPARING)}, 0),
        ({"stray_A": p.Late("commit", 1, G3, p.Parts(0b10))}, 0b11),
        ({"stray_A": p.Late("commit", 1, p.Generation(2), p.Parts(0b10))}, 0b01),
        ({"stray_A": p.Late("heartbeat", 1, G3, p.Parts(0b10))}, 0b01),
        ({"stray_A": Refused("commit", p.Error.ILLEGAL_GENERATION, 1, G3)}, 0b01),
        ({"group": GROUP._replace(state=p.GroupState.COMPLETING)}, 0b01),
        ({"group": GROUP._replace(state=p.GroupState.EMPTY)}, 0),
        ({"record_A": ()}, 0),
    ],
)
def test_what_may_be_committed(values: dict[str, Any], accepted: int):
    """Now, or by what is under way: in an old generation it is refused; between join and sync only of a
    transaction it is not."""
    assert look("commits", **{**SETTLED, **values}) == accepted


def test_what_is_read_is_owned_and_fetched():
    assert look("reads", member_A=stable(owned=0b11, unfetched=p.Parts(0b10))) == (False, False, 0b01)
    eager = PlayedGroup(setup(1, lists=(EAGER,)))
    assert look("reads", eager, member_A=stable(owned=0b11, committing=True)) == (True, True, 0b11)


def test_what_the_listener_believes():
    member = stable(owned=0b01, believed=p.Parts(0b11))
    assert look("listener", member_A=member) == (0b11, 0b01, p.Life.UP)


# -- what members have a share in ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "records", "share"),
    [
        (
            stable(topics=p.Topics(0b10), owned=0b010, watch=p.Parts(0b001), watched=p.Topics(0b01)),
            MINE,
            (0b010, 0b110, 0b001, 0b001, False),
        ),
        (stable(owned=0b001, topics=p.Topics(0b01)), MINE, (0b001, 0b001, 0, 0, False)),
        (stable(life=p.Life.PAUSED, owned=0b001, watch=p.Parts(0b001)), MINE, (0, 0, 0, 0, False)),
        (stable(life=p.Life.HUNG, owned=0b010), MINE, (0b011, 0, 0, 0, False)),
        (stable(life=p.Life.HUNG, owned=0b010), (MINE[0]._replace(assigned=None),), (0b010, 0, 0, 0, False)),
        (stable(life=p.Life.HUNG, owned=0b010), (MINE[0]._replace(id=2),), (0, 0, 0, 0, False)),
        (stable(life=p.Life.HUNG, owned=0b010, watch=p.Parts(0)), MINE, (0b011, 0, 0, 0, True)),
    ],
    ids=[
        "a leader",
        "a follower",
        "paused",
        "hangs",
        "was assigned nothing",
        "was removed",
        "a leader hangs",
    ],
)
def test_what_a_member_takes(member: Member, records: tuple[MemberRecord, ...], share: tuple[Any, ...]):
    assert look("share", TWO_TOPICS, member_A=member, record_A=records) == share


def test_ids_and_size():
    """A pending id is no member; one that is carried along does not count against the limit."""
    records = (*MINE, MemberRecord(2, meta(), silent=True), MemberRecord(3, None), MemberRecord(4, meta()))
    assert (look("ids", record_A=records), look("size", record_A=records)) == (3, 2)


def test_cluster_and_group():
    state = ONE.state(cluster=p.ClusterState(p.Parts(0b10)), group=GROUP)
    assert ONE.machine.look(state, "cluster") == 0b10
    assert ONE.machine.look(state, "group") is p.GroupState.STABLE
