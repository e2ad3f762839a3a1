"""Decisions for which the model has no switch, made otherwise."""

from __future__ import annotations

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.specs.classic.necessity.altered import (
    COMMIT_GENERATION_UNCHECKED,
    COMMIT_MEMBER_UNCHECKED,
)

KNOWN, NOW, OLD = 1, p.Generation(3), p.Generation(2)
OPEN = (p.GroupState.PREPARING, p.GroupState.STABLE)


def taken(altered, state, *, who=KNOWN, generation=NOW, late=None):
    """What a coordinator in this state would store of the commit of a member that is in its group."""
    member = s.Member(state=p.MemberState.STABLE, id=who, generation=generation, owned=p.Parts(1))
    group = s.Group(state=state, generation=NOW, leader=None)
    return altered.views["commits"](member, late, group, (s.MemberRecord(KNOWN, None),))


@pytest.mark.parametrize("altered", [COMMIT_GENERATION_UNCHECKED, COMMIT_MEMBER_UNCHECKED])
@pytest.mark.parametrize("state", p.GroupState)
def test_a_group_that_takes_no_commits_takes_none(altered, state):
    """While it waits for the leader's assignment it refuses all of them, whoever sends them."""
    assert taken(altered, state) == (p.Parts(1) if state in OPEN else p.Parts(0))


@pytest.mark.parametrize(
    ("altered", "who", "generation", "parts"),
    [
        (COMMIT_GENERATION_UNCHECKED, KNOWN, OLD, 1),
        (COMMIT_GENERATION_UNCHECKED, 2, NOW, 0),
        (COMMIT_GENERATION_UNCHECKED, p.NO_ID, p.NONE, 0),
        (COMMIT_MEMBER_UNCHECKED, 2, NOW, 1),
        (COMMIT_MEMBER_UNCHECKED, KNOWN, OLD, 0),
    ],
)
def test_of_member_and_generation_one_is_asked(altered, who, generation, parts):
    assert taken(altered, p.GroupState.STABLE, who=who, generation=generation) == parts
    late = p.Late("commit", who, generation, p.Parts(2))
    assert taken(altered, p.GroupState.STABLE, late=late) == (3 if parts else 1)
    assert taken(altered, p.GroupState.STABLE, late=late._replace(api="heartbeat")) == 1
