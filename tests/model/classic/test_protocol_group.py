"""The group as a machine: what engines rely on, shown on the states that small groups reach."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits, Stop
from rebalance_verifier.explore.liveness.liveness import judge
from rebalance_verifier.model.classic.group import FAULTS, machine
from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    JoinParked,
    LeaveGroup,
    Member,
    MemberRecord,
    Metadata,
    Refused,
    Sync,
    SyncOk,
    SyncParked,
    generations,
)
from rebalance_verifier.model.group.parts import (
    Ask,
    Copies,
    Error,
    Generation,
    Grant,
    GroupState,
    Id,
    Late,
    Names,
    Parts,
    Slot,
    Topics,
    relabel,
    rename,
)
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine, State
from rebalance_verifier.properties.group.clauses import rules

from tests.model.classic.small_groups import BOTH, COOPERATIVE, EAGER, EVERY_FAULT, meta, setup, stable, walk
from tests.tiers import tiered

SMALL: dict[str, Setup] = {
    "dynamic": setup(2, 2, faults=("crash", "disconnect", "slow network"), budget=2, steps="atomic"),
    "fine": setup(2, 2, faults=("pause", "disconnect", "max poll", "late request"), budget=1),
    "three": setup(3, 2, faults=("close", "slow member"), budget=1, steps="atomic"),
    "failover": setup(2, 2, faults=("failover", "crash"), budget=2, steps="atomic"),
    "topics": setup(2, topics=(0b001, 0b110), faults=("topic deleted", "topic grows"), budget=2),
    "growing": setup(2, topics=(0b111,), exist=0b011, faults=("topic grows", "crash"), steps="atomic"),
    "upgrade": setup(2, 2, lists=(EAGER, BOTH, COOPERATIVE), steps="atomic"),
    "sticky": setup(2, 2, lists=(("sticky",),), faults=("unsubscribe", "pause"), budget=1),
    "v1": setup(2, 2, version=1, tells=False, faults=("enforce", "hang"), budget=1),
    "everything": setup(2, 2, faults=EVERY_FAULT, budget=3),
    "static": setup(2, 2, static=True, faults=("crash", "pause", "failover", "unsubscribe"), budget=2),
}  # fmt: skip


@cache
def built(name: str) -> Machine:
    return machine(SMALL[name])


@cache
def states(name: str, count: int = 40) -> tuple[State, ...]:
    """States of random runs, as they come: with gaps in the labels. Every one of ``count`` is another."""
    found: dict[State, None] = {}
    for seed in range(100):
        for state, _, _ in walk(built(name), seed, 60):
            found[state] = None
        if len(found) > 6 * count:
            break
    return tuple(found)[:: max(1, len(found) // count)]


def test_the_list_of_faults_is_whole():
    assert set(EVERY_FAULT) == set(FAULTS)


def test_an_unknown_fault_is_named():
    with pytest.raises(ValueError, match="no fault is called 'flood'"):
        machine(setup(faults=("flood",)))


# -- steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_step_is_outcomes_and_apply(name: str):
    m = built(name)
    for state in states(name, 60):
        outcomes = list(m.outcomes(state))
        events = [event for event, _ in outcomes]
        assert len(set(events)) == len(events), "one event, two outcomes"
        assert m.enabled(state) == tuple(events)
        for event, outcome in outcomes:
            assert m.step(state, event) == m.apply(state, event, outcome)


@pytest.mark.parametrize("name", SMALL)
def test_conditions_only_save_calls(name: str):
    """Where a condition of ``Action.when`` does not hold there is nothing; what is written is whole."""
    m = built(name)
    for state in states(name, 30):
        for action in m.actions:
            values = m.read(state, action.reads)
            if action.guard is None or action.guard(values[0]):
                outcomes = list(action.run(*values))
                assert all(len(outcome.values) == len(action.writes) for outcome in outcomes)
                if not all(when.holds(*m.read(state, when.reads)) for when in action.when):
                    assert outcomes == [], action.name


@pytest.mark.parametrize("name", SMALL)
def test_faults_draw_on_the_budget(name: str):
    """But those that a run cannot do without: starting, subscribing, the bounces of an upgrade."""
    m = built(name)
    budget = m.position["budget"]
    for state in states(name, 60):
        for event, outcome in m.outcomes(state):
            spent = int(str(state[budget])) - int(str(m.apply(state, event, outcome)[budget]))
            fault = m.by_name[event.action, event.who].fault
            assert spent == (fault and event.action not in ("start", "subscribe", "bounce")), event


# -- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_normal(name: str):
    """Idempotent, and what can happen does not depend on it: the choices name no generation."""
    m = built(name)
    gaps = 0
    for state in states(name):
        normal = m.normal(state)
        gaps += normal != state
        assert m.normal(normal) == normal
        raw, dense = list(m.outcomes(state)), list(m.outcomes(normal))
        assert [event for event, _ in raw] == [event for event, _ in dense]
        for (event, a), (_, b) in zip(raw, dense, strict=True):
            assert m.normal(m.apply(state, event, a)) == m.normal(m.apply(normal, event, b)), event
    assert gaps


@pytest.mark.parametrize("name", SMALL)
def test_symmetries_are_a_group(name: str):
    m = built(name)
    assert len(m.symmetries) > 1
    for state in states(name, 10):
        assert m.permuted(state, m.symmetries[0]) == state
        images = {m.permuted(state, one) for one in m.symmetries}
        for one in m.symmetries:
            moved = m.permuted(state, one)
            assert {m.permuted(moved, other) for other in m.symmetries} == images
            assert state in images


@pytest.mark.parametrize("name", SMALL)
def test_symmetries_map_steps_to_steps(name: str):
    """The steps of a permuted state are the permuted steps: what makes it sound to merge them."""
    m = built(name)
    assert all(m.permuted(m.initial[0], one) == m.initial[0] for one in m.symmetries)
    for state in states(name, 60):
        after = [m.apply(state, event, outcome) for event, outcome in m.outcomes(state)]
        for one in m.symmetries[1:]:
            moved = m.permuted(state, one)
            theirs = {m.apply(moved, event, outcome) for event, outcome in m.outcomes(moved)}
            assert {m.permuted(s, one) for s in after} == theirs


@pytest.mark.parametrize("name", SMALL)
def test_symmetries_keep_the_verdict(name: str):
    """A state breaks an ``Always`` clause exactly if its image does."""
    m, clauses = built(name), rules(SMALL[name]).always

    def broken(state: State) -> set[str]:
        return {r.clause for r in clauses if r.breach(*[m.look(state, view) for view in r.views]) is not None}

    for state in states(name, 30):
        assert {frozenset(broken(m.permuted(state, one))) for one in m.symmetries} == {
            frozenset(broken(state))
        }


def test_no_symmetry_where_the_assignor_is_asked_under_one_naming():
    assert machine(setup(naming="given")).symmetries == ()


def test_members_that_differ_are_not_exchanged():
    one, two = setup(1, 1).consumers[0], setup(1, 1, version=1).consumers[0]
    mixed = Setup(consumers=(one, two), topics=(Parts(1),), exist=Parts(1))
    assert len(machine(mixed).symmetries) == 1


# -- rename --------------------------------------------------------------------------------------------

GENERATIONS = st.integers(-1, 5)
PARTS = st.integers(0, 15)
IDS = st.builds(Id, st.integers(0, 2), st.integers(1, 3))
METADATA = st.builds(Metadata, st.just(("range",)), st.integers(1, 3), PARTS, GENERATIONS, GENERATIONS, PARTS,
                     caught_up=PARTS)  # fmt: skip
COPIES = st.builds(Copies, PARTS, st.sampled_from(Ask))
VALUES = st.one_of(
    st.builds(Member, generation=GENERATIONS, owned=PARTS, own_gen=GENERATIONS, view=PARTS,
              watch=st.none() | PARTS, received=st.none() | PARTS, last=PARTS, believed=PARTS,
              unfetched=PARTS, copies=COPIES, caught_up=PARTS),
    st.builds(Join, st.integers(0, 3), METADATA),
    st.builds(Sync, st.integers(1, 3), GENERATIONS,
              st.none() | st.lists(st.builds(Grant, IDS, PARTS, COPIES), unique_by=lambda g: g.id).map(
                  lambda grants: tuple(sorted(grants)))),
    st.builds(Group, st.sampled_from(GroupState), st.integers(0, 5), st.none() | IDS),
    st.lists(st.builds(MemberRecord, st.integers(1, 9), st.none() | METADATA, st.none() | PARTS,
                       copies=COPIES),
             unique_by=lambda record: record.id).map(tuple),
    st.none(), st.integers(0, 3),
)  # fmt: skip


@pytest.mark.slow
@given(VALUES, st.permutations(range(4)), st.permutations(range(6)), st.permutations(range(3)))
def test_renamed_and_back(value: object, parts: list[int], labels: list[int], slots: list[int]):
    def mask(to: list[int]):
        return lambda mask: sum(1 << to[number] for number in range(len(to)) if mask >> number & 1)

    def names(parts: list[int], labels: list[int], slots: list[int]) -> Names:
        return Names(mask(parts), labels.__getitem__, slots.__getitem__)

    def inverse(to: list[int]) -> list[int]:
        return sorted(range(len(to)), key=to.__getitem__)

    there = rename(value, names(parts, labels, slots))
    assert type(there) is type(value)
    assert rename(there, names(inverse(parts), inverse(labels), inverse(slots))) == value


def test_rename_reaches_every_kind_of_field():
    names = Names(lambda p: p << 1, lambda g: g + 10, lambda s: 1 - s)
    one, two, four = Parts(1), Parts(2), Parts(4)
    sent = Metadata(
        assignors=("range",),
        topics=Topics(1),
        owned=one,
        label=Generation(2),
        own_gen=Generation(3),
        last=four,
    )
    assert rename(sent, names) == Metadata(
        assignors=("range",),
        topics=Topics(1),
        owned=two,
        label=Generation(12),
        own_gen=Generation(13),
        last=Parts(8),
    )
    grants = (Grant(Id(Slot(0), 1), one), Grant(Id(Slot(1), 2), two))
    moved = (Grant(Id(Slot(0), 2), four), Grant(Id(Slot(1), 1), two))
    assert rename(Sync(1, Generation(2), grants), names) == Sync(1, Generation(12), moved)
    leads = Group(GroupState.STABLE, Generation(2), Id(Slot(0), 7))
    assert rename(leads, names) == leads._replace(generation=Generation(12), leader=Id(Slot(1), 7))
    idle = Member(watch=one, received=None, topics=Topics(1), stage=1, id=1)
    assert rename(idle, names) == idle._replace(watch=two)  # NONE is no generation, topics have no new names


def test_generations_after_that_of_the_group_are_kept_apart():
    """The group's next one is its own plus one; a member may hold one that the group forgot."""
    group = Group(GroupState.STABLE, Generation(3))
    assert [generations(group) >> n & 1 for n in range(6)] == [0, 0, 0, 1, 1, 1]
    assert generations(Member(generation=Generation(2))) == 0b100
    assert relabel(group, {3: 0}).generation == 0


# -- the same on every machine -------------------------------------------------------------------------

_SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.model.classic.small_groups import walk
from tests.model.classic.test_protocol_group import SMALL, machine
for name in ("three", "failover", "static", "everything"):
    m = machine(SMALL[name])
    for seed in range(4):
        for state, event, outcome in walk(m, seed, 40):
            print(name, *m.enabled(state), event, outcome.seen)
"""


@pytest.mark.nightly
def test_the_same_under_every_hash_seed():
    script = _SCRIPT.format(root=str(Path(__file__).parents[3]))
    lines = []
    for seed in ("1", "2", "3"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, check=True)
        lines.append(run.stdout.decode())
    assert lines[0] == lines[1] == lines[2]
    assert len(lines[0].splitlines()) > 300


# -- both sizes of steps -------------------------------------------------------------------------------


def verdict(setup: Setup) -> set[str]:
    """The clauses that some run breaks."""
    m, clauses = machine(setup), rules(setup)
    search = fast.explore(m, clauses, Limits(go_on=True, states=200_000))
    assert search.stop is Stop.COMPLETE
    settling = judge(m, clauses, search)[0]
    return {breach.clause for breach in search.breaches} | {one.clause for one in settling if not one.holds}


_ONE_FAULT = (
    "crash", "pause", "hang", "close", "unsubscribe", "max poll", "enforce", "disconnect", "late request",
    "slow commit", "session timeout", "slow member", "failover", "append fails",
)  # fmt: skip


def same(fine: Setup, atomic: Setup) -> set[str]:
    both = verdict(fine), verdict(atomic)
    assert both[0] == both[1]
    return both[0]


@pytest.mark.slow
def test_both_sizes_of_steps_agree():
    fine, atomic = (
        setup(2, 1, faults=("max poll", "disconnect"), budget=1, steps=s) for s in ("fine", "atomic")
    )
    assert same(fine, atomic) == set()


def test_the_smaller_steps_are_more():
    fine, atomic = (setup(2, 1, steps=steps) for steps in ("fine", "atomic"))
    counts = [fast.explore(machine(s), rules(s), Limits(go_on=True)).distinct for s in (fine, atomic)]
    assert counts[0] > 2 * counts[1]


@pytest.mark.nightly
@pytest.mark.parametrize("fault", tiered(_ONE_FAULT, {"crash", "late request", "failover"}))
def test_both_sizes_of_steps_agree_on_each_fault(fault: str):
    fine, atomic = (setup(2, 2, faults=(fault,), steps=steps) for steps in ("fine", "atomic"))
    assert same(fine, atomic) == set()


@pytest.mark.slow
@pytest.mark.parametrize("fault", tiered(("crash", "pause", "disconnect", "failover"), {"crash"}))
def test_both_sizes_of_steps_agree_on_static_members(fault: str):
    fine, atomic = (setup(2, 1, static=True, faults=(fault,), steps=steps) for steps in ("fine", "atomic"))
    assert same(fine, atomic) == set()


_FOUND_BY_DAY = {"no_rejoin_after_revoke", "late_commit_resets", "joinfuture_not_cleared"}


@pytest.mark.slow
@pytest.mark.covering("late")
@pytest.mark.parametrize(
    ("decision", "clause", "faults", "late"),
    tiered((
        ("no_rejoin_after_revoke", "callback/rejoin", (), ()),
        ("claims_always_empty", "group/owner", ("pause",), ()),
        ("keep_owned_on_sync_rip", "leader/label", ("pause",), ()),
        ("prepare_not_repeated_after_reset", "group/owner", ("pause",), ()),
        ("reset_on_sync_rip", "error/retriable", ("pause",), ()),
        ("reset_on_retriable", "error/retriable", ("disconnect",), ()),
        ("leave_on_empty_assignment", "group/converges", ("crash",), ()),
        ("late_commit_resets", "error/old", ("late request",), ()),
        ("no_snapshot_before_callback", "callback/generation", ("max poll",), ("slow network",)),
        ("joinfuture_not_cleared", "group/converges", ("max poll",), ("slow network",)),
    ), _FOUND_BY_DAY),
)  # fmt: skip
def test_both_sizes_of_steps_find_the_same(
    decision: str, clause: str, faults: tuple[str, ...], late: tuple[str, ...]
):
    """``late``: what waits in the small steps for free costs a fault in the large ones."""
    fine = setup(2, 2, faults=faults, decisions=(decision,))
    atomic = setup(2, 2, faults=(*faults, *late), decisions=(decision,), steps="atomic")
    assert clause in same(fine, atomic)


# -- known to be wrong ---------------------------------------------------------------------------------


def upgrade(static: bool) -> Setup:
    return setup(2, 1, lists=(EAGER, BOTH, COOPERATIVE), static=static, steps="atomic")


@pytest.mark.slow
def test_a_rolling_upgrade_breaks_nothing():
    assert verdict(upgrade(static=False)) == set()


@pytest.mark.slow
def test_a_rolling_upgrade_of_static_members_breaks_nothing():
    assert verdict(upgrade(static=True)) == set()


@pytest.mark.parametrize(
    "static",
    [
        False,
        True,
    ],
)
def test_a_bounce_may_keep_the_list(static: bool):
    """First a release is rolled out, then a list: both are at rest in the second stage, the third is due."""
    m = machine(setup(2, 2, lists=(BOTH, BOTH, COOPERATIVE), static=static))
    rest = dict(zip(m.components, m.initial[0], strict=True))
    for slot in "AB":
        rest[f"member {slot}"] = stable(stage=1)
        rest[f"record {slot}"] = (MemberRecord(1, meta(BOTH), synced=True),)
        rest[f"rollout {slot}"] = 1
    rest["group"] = Group(GroupState.STABLE, Generation(3), Id(Slot(0), 1), "range")
    assert [event.who for event in m.enabled(tuple(rest.values())) if event.action == "bounce"] == [0, 1]


@pytest.mark.slow
def test_a_group_whose_members_all_hang_settles():
    assert verdict(setup(2, 1, faults=("hang", "close"), steps="atomic")) == set()


@pytest.mark.parametrize("steps", ["fine", "atomic"])
def test_the_answer_that_brings_an_id_can_be_lost(steps: str):
    """Then a pending id stays behind, and the member is given another one."""
    m = machine(setup(1, 1, faults=("disconnect",), steps=steps))
    record = m.position["record A"]
    seen, front = set(m.initial), list(m.initial)
    while front:
        after = {m.normal(m.apply(s, event, outcome)) for s in front for event, outcome in m.outcomes(s)}
        front = [state for state in after if state not in seen]
        seen.update(front)
    records = [state[record] for state in seen]
    assert any(isinstance(one, tuple) and len(one) == 2 for one in records)


def test_no_message_equals_one_of_another_kind():
    """Engines take equal values for one. As tuples an empty SyncGroup and an answer of no bytes are."""
    g = Generation(1)
    messages = (
        *(Join(1, meta()), JoinParked(1), JoinOk(1, g, "range"), Sync(1, g), SyncParked(1, g)),
        *(SyncOk(1, g, None), Refused("sync", Error.ILLEGAL_GENERATION, 1, g), Late("commit", 1, g)),
        LeaveGroup(2),
    )
    assert len(set(messages)) == len(messages)
    assert [a for a, b in permutations(messages, 2) if a == b] == []
    assert Sync(1, g) == Sync(1, g) != Sync(1, g, ())
    assert SyncOk(1, g, Parts(0)) == SyncOk(1, g, Parts(0)) != SyncOk(1, g, None)
