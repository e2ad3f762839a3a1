"""Subscriptions by pattern of the classic protocol: the client matches them with its own metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.bugs import CLASSIC_SHOWN, SHOWN
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize
from rebalance_verifier.live.clients.replay.replay_plan import replay_plan
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.setups import search_setup
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.classic import application, callbacks, member
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group.parts import (
    ClusterState,
    Generation,
    Life,
    MemberState,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import _settles
from rebalance_verifier.specs.classic.refinement.refinement import Refinement

SETUP = SCENARIOS["patterns"].setup(ScenarioSize(partitions=2))
"""t0 with two partitions; t1 comes with one."""
ME, OTHER = MemberContext(Slot(0), SETUP), MemberContext(Slot(1), SETUP)

T0, T1, BOTH = Topics(0b01), Topics(0b10), Topics(0b11)
NEITHER = Topics(0)
EXIST, ALL = Parts(0b011), Parts(0b111)


def having(*mistakes: str) -> MemberContext:
    [stage] = SETUP.consumers[0].stages
    stage = replace(stage, decisions=frozenset(mistakes))
    consumer = replace(SETUP.consumers[0], stages=(stage,))
    return MemberContext(Slot(0), replace(SETUP, consumers=(consumer, SETUP.consumers[1])))


def consumer(**fields: Any) -> s.Member:
    usual: dict[str, Any] = {
        "life": Life.UP, "state": MemberState.STABLE, "generation": Generation(1), "id": 1, "rejoin": False,
        "topics": T0, "joined_topics": T0, "view": EXIST, "pattern": BOTH, "owned": EXIST, "believed": EXIST,
    }  # fmt: skip
    return s.Member(**usual | fields)


def after_refresh(me: MemberContext, cluster: int, one: s.Member) -> s.Member:
    [outcome] = application.refresh(me, one, ClusterState(Parts(cluster)))
    after: Any = outcome.values[0]
    assert isinstance(after, s.Member)
    return after


@pytest.mark.parametrize(("exist", "topics"), [(EXIST, T0), (ALL, BOTH), (Parts(0), NEITHER)])
def test_a_pattern_is_matched_with_what_is_there_at_the_start(exist: Parts, topics: Topics) -> None:
    [outcome] = application.start(ME, s.Member(), None, None, ClusterState(exist))
    started: Any = outcome.values[0]
    assert (started.topics, started.pattern) == (topics, BOTH)
    assert started.subscribes
    assert member.wants_to_join(ME, started)  # also where nothing matches yet
    again: Any = next(iter(application.subscribe(ME, s.Member(life=Life.UP, view=exist)))).values[0]
    assert (again.topics, again.pattern) == (topics, BOTH)


@pytest.mark.parametrize(("cluster", "topics"), [(ALL, BOTH), (Parts(0b100), T1), (Parts(0), NEITHER)])
def test_other_metadata_are_other_topics_and_another_join(cluster: Parts, topics: Topics) -> None:
    after = after_refresh(ME, cluster, consumer())
    assert (after.topics, after.owned, after.view) == (topics, EXIST, cluster)
    assert member.wants_to_join(ME, after)
    named = consumer(pattern=NEITHER)
    assert after_refresh(ME, cluster, named).topics == T0
    assert not member.wants_to_join(ME, after_refresh(ME, cluster, named))


def test_names_beside_a_pattern_stay() -> None:
    assert after_refresh(OTHER, 0, consumer()).topics == T0


def test_mistakes_with_what_matches() -> None:
    once = after_refresh(having("pattern_matched_once"), ALL, consumer())
    assert (once.topics, member.wants_to_join(ME, once)) == (T0, False)
    gone = after_refresh(having("subscription_drops_owned"), 0b100, consumer())
    assert (gone.topics, gone.owned, gone.believed) == (T1, 0, EXIST)


def test_a_member_may_change_to_another_pattern_or_to_names() -> None:
    outcomes: list[Any] = list(application.resubscribe(ME, 1, consumer(view=ALL)))
    assert [(o.values[1].topics, o.values[1].pattern) for o in outcomes] == [(BOTH, BOTH), (T1, T1), (T0, 0)]
    assert [o.choice for o in outcomes] == ["topics 0 pattern 3", "topics 0 pattern 2", "topics 1"]


def test_what_matches_is_taken_although_it_is_gone() -> None:
    """By name it is an assignment of an old subscription."""
    for pattern, owned in ((BOTH, ALL), (NEITHER, Parts(0))):
        one = consumer(pattern=pattern, owned=Parts(0), believed=Parts(0), received=ALL)
        taken, _ = callbacks.join_complete(ME, one, ALL)
        assert (taken.owned, taken.rejoin) == (owned, not owned)


def test_a_topic_that_matches_has_to_be_owned() -> None:
    """Also while nobody has seen it; and one that there is not is watched for by who has a pattern."""

    def settles(cluster: int, owned: int, watch: int, scope: int) -> bool:
        share = (Parts(owned), ALL, Parts(watch), Parts(scope), False)
        return _settles(SETUP, cluster, "Stable", "", "", share, share)  # type: ignore[arg-type]

    assert settles(EXIST, EXIST, EXIST, EXIST)
    assert not settles(ALL, EXIST, EXIST, EXIST)
    assert not settles(ALL, ALL, EXIST, EXIST)
    assert settles(ALL, ALL, ALL, ALL)


def test_what_has_no_patterns_says_so_in_a_line() -> None:
    now = CodeReleases(coordinator=NEWEST, consumers=(NEWEST,))
    with pytest.raises(ScenarioError, match="patterns is not walked"):
        lockstep_setup(SCENARIOS["patterns"], ScenarioSize(), now)
    for name in ("patterns", "consumer-patterns"):
        with pytest.raises(ScenarioError, match="subscribe by name, not by pattern"):
            search_setup(SCENARIOS[name], ScenarioSize(), now)
    with pytest.raises(ValueError, match="that subscribe by name only"):
        Refinement(SETUP)
    run: Any = type("Run", (), {"setup": SETUP})
    with pytest.raises(ValueError, match="members of this run subscribe by pattern"):
        replay_plan(run)
    shown = {name for name in SHOWN if SCENARIOS[SHOWN[name].scenario].patterns}
    assert shown.isdisjoint(CLASSIC_SHOWN)
    assert machine(SETUP).initial
