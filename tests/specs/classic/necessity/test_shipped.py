"""The protocol as shipped: variations put together, what is proved of it, runs, repairs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.specs.classic.contract import SAFETY
from rebalance_verifier.specs.classic.member import join, try_again
from rebalance_verifier.specs.classic.necessity.repairs import examine_shipped
from rebalance_verifier.specs.classic.necessity.shipped import DYNAMIC, released, shipped
from rebalance_verifier.specs.classic.safety import INVARIANTS
from rebalance_verifier.specs.logic.prover import ProofVerdict
from rebalance_verifier.specs.logic.varying import afterwards, around, instead_of, together

RELEASES = (
    ("java-2.4", "broker-2.4"),
    ("java-2.6", "broker-2.6"),
    ("java-2.8.0", "broker-2.8.0"),
    ("java-2.8.1", "broker-3.0"),
    ("java-3.3.1", "broker-3.2"),
    ("java-3.4.0", "broker-3.2"),
    ("java-current", "broker-current"),
    ("librdkafka", "broker-current"),
    ("kafka-python", "broker-current"),
    ("aiokafka", "broker-current"),
)


NEWEST = released("java-current", "broker-current")


# -- put together --------------------------------------------------------------------------------------


def test_variations_of_one_action_are_done_one_after_the_other():
    @instead_of(join)
    def other(s, t, c):
        s.append("other")

    @around(join)
    def wrapped(effect, s, t, c):
        s.append("before")
        effect(s, t, c)
        s.append("after")

    ending = afterwards(lambda s, t, c: s.append("end"))(join)
    for order in ((ending, wrapped, other), (other, ending, wrapped)):
        (made,) = together(order)
        assert made.__name__ == "join"
        done: list[str] = []
        made(done, None, None)
        assert done == ["before", "other", "after", "end"]


def test_two_that_replace_one_action_do_not_go_together():
    @instead_of(join)
    def one(s, t, c): ...

    @instead_of(join)
    def two(s, t, c): ...

    @instead_of(try_again)
    def three(s, t, c): ...

    assert {effect.__name__ for effect in together((one, three, one))} == {"join", "try_again"}
    with pytest.raises(ValueError, match="two variations replace 'join'"):
        together((one, two))


@pytest.mark.parametrize("releases", RELEASES, ids="-".join)
def test_every_release_can_be_put_together(releases):
    made = released(*releases)
    names = [name for variation in made.variations for name in variation.names]
    assert set(names) <= {action.name for action in made.specification.actions}
    left = {switch for one in made.variations for switch in one.switches} | set(made.beside)
    assert set(made.switches) <= left


@pytest.mark.parametrize(
    ("client", "has"), [("java-2.8.1", True), ("java-3.0", True), ("java-current", False)]
)
def test_a_new_id_hides_the_loss_in_releases_that_have_both(client, has):
    names = [one.name for one in released(client, "broker-current").variations]
    assert ("lost_only_without_id" in names) is has
    assert "join_sent_after_reset" in names


def test_what_is_mended_is_as_specified():
    mended = NEWEST.mended([one.name for one in NEWEST.variations])
    assert mended.contract == SAFETY
    assert set(mended.specification.invariants) == set(INVARIANTS)
    assert mended.switches == NEWEST.beside
    assert DYNAMIC not in mended.specification.axioms
    assert DYNAMIC in replace(mended, dynamic=True).specification.axioms


def test_no_leader_holds_back_in_any_release():
    assert "held_back" not in NEWEST.contract
    assert "held_back" in [one.name for one in shipped(()).variations]


# -- verdicts ------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_the_newest_is_safe_with_dynamic_members_if_nothing_late_is_believed():
    believed = NEWEST.mended({"overtaken_join_believed", "lost_generation_believed"})
    found = examine_shipped(replace(believed, dynamic=True), names=["exclusive ownership", "commit fencing"])
    assert {one.theorem.name: one.verdict for one in found.theorems} == {
        "invariants": ProofVerdict.PROVED,
        "exclusive ownership": ProofVerdict.PROVED,
        "commit fencing": ProofVerdict.PROVED,
    }
    assert "join_of_static" in found.idle
    assert {"join_of_member", "lead", "the initial state"}.isdisjoint(found.idle)


@pytest.mark.nightly
def test_the_newest_with_dynamic_members_needs_two_repairs():
    found = examine_shipped(replace(NEWEST, dynamic=True), names=["exclusive ownership"])
    one = found.theorems[-1]
    assert one.verdict is ProofVerdict.REFUTED
    repair = one.repair
    assert repair is not None
    late = {"lost_generation_believed", "overtaken_join_believed"}
    assert set(repair.mended) == set(repair.needed) == late


@pytest.mark.nightly
def test_the_newest_is_not_safe_with_static_members():
    found = examine_shipped(NEWEST, names=["exclusive ownership"])
    one = found.theorems[-1]
    assert one.verdict is ProofVerdict.REFUTED
    assert one.run is not None
    assert one.run.replay.clause == "group/owner"
    assert "exclusive ownership" in one.run.breaks
    repair = one.repair
    assert repair is not None
    mended = {"held_back", "join_sent_after_reset", "silent_static_claims_stale"}
    mended |= {"lost_generation_believed", "overtaken_join_believed"}
    assert set(repair.mended) == mended
    assert set(repair.needed) == mended
    assert found.idle == ()
