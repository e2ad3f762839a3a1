"""Steps of the logic that no run of the model comes to, from states put together by hand.

They take two processes with one group.instance.id, an answer that outlives the process it was for, or a
member whose claims are not to be relied on. The model takes them where it is put there, and they are the
steps of the logic that are meant.
"""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.classic.state import Group, Join, JoinParked, MemberRecord, Refused, Sync
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.specs.classic.refinement.refinement import Refinement
from rebalance_verifier.specs.logic.concrete import Stepper

from tests.model.classic.small_groups import PlayedGroup, meta, setup, stable

G0 = p.Generation(0)
GROUP = Group(p.GroupState.STABLE, G0, p.Id(p.Slot(0), 2), "cooperative-sticky")
OTHER = {"group": GROUP, "record_A": (MemberRecord(2, meta(), p.Parts(0), synced=True),)}
"""The coordinator knows another process by this instance id."""
REST = stable(0, owned=0b01)
WAITING = REST._replace(state=p.MemberState.PREPARING, rejoin=True, prepare=False)

BY_HAND: dict[str, tuple[str, dict[str, Any]]] = {
    "heartbeat_of_fenced": ("heartbeat", {"member_A": REST}),
    "late_answer_fails": (
        "late answer",
        {"member_A": REST, "stray_A": Refused("heartbeat", p.Error.FENCED_INSTANCE_ID, 1, G0)},
    ),
    "join_of_fenced": ("join request", {"member_A": WAITING, "wire_A": Join(1, meta())}),
    "join_of_replaced": ("join refused", {"member_A": WAITING, "wire_A": JoinParked(1)}),
    "sync_of_fenced": (
        "sync request",
        {"member_A": REST._replace(state=p.MemberState.COMPLETING), "wire_A": Sync(1, G0)},
    ),
    "id_given_too_late": (
        "receive",
        {
            "member_A": stable(-1, id=0, state=p.MemberState.UNJOINED, rejoin=True),
            "wire_A": Refused("join", p.Error.MEMBER_ID_REQUIRED, 0, given=1),
        },
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_step_that_no_run_comes_to_is_the_one_that_is_meant(name: str):
    action, values = BY_HAND[name]
    game = PlayedGroup(setup(1, static=name != "id_given_too_late", faults=("late request",)))
    refinement = Refinement(game.setup)
    numbered = refinement.numbered
    [state] = numbered.normal(numbered.numbers(game.state(**{**OTHER, **values})))
    taken = [step for step in numbered.steps(state) if step.event.action == action]
    assert taken
    assert [refinement.check(step) for step in taken] == [None] * len(taken)
    assert refinement.report.taken[name] == 1


def test_a_member_that_claims_nothing_of_what_it_owns_is_one_not_to_be_relied_on():
    game = PlayedGroup(setup(1, decisions=("claims_always_empty",)))
    refinement = Refinement(game.setup)
    owner = stable(0, owned=0b01, rejoin=True, prepare=False)
    numbered = refinement.numbered
    [state] = numbered.normal(numbered.numbers(game.state(member_A=owner)))
    [step] = [step for step in numbered.steps(state) if step.event.action == "join"]
    assert refinement.check(step) is not None
    before, after = (refinement._structure(refinement._appearance(s)) for s in (step.before, step.after))
    for honest, name, other in (
        (True, "join", "join_with_any_claim"),
        (False, "join_with_any_claim", "join"),
    ):
        refinement.map.universe.tables["honest"] = (honest,)
        stepper = Stepper(refinement.map.universe, refinement.spec.actions)
        assert (stepper.allowed(before, name, (0,), after) is None) is not honest
        assert stepper.allowed(before, other, (0,), after) is not None
