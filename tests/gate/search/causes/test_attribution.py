"""Which causes are told apart, in which order they come, and that a counterexample cannot be made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import generate
from rebalance_verifier.gate.scenarios.minimise import deletions
from rebalance_verifier.gate.scenarios.player import PlayedHistory, play
from rebalance_verifier.gate.scenarios.preconditions import Realism
from rebalance_verifier.gate.search.causes.attribution import (
    MAX_CAUSES,
    Attribution,
    BreakingScenario,
    Cause,
    CauseFound,
    realism,
)
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.switches import SWITCHES, switched
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.played import of_partitions
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

COOPERATIVE = RebalanceProtocol.COOPERATIVE
LIMIT = 3000

Condition = Callable[[Cluster, GroupSubscription], bool]


class Judged:
    """An assignor under one clause, in this process; it counts what is played."""

    def __init__(self, clause: str, assignor, condition: Condition | None = None) -> None:
        self.clause, self.assignor, self.condition = CLAUSES[clause], assignor, condition
        self.plays = 0

    def ask(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
        assignment = dict(self.assignor.assign(cluster, group))
        if self.condition is not None and self.condition(cluster, group):
            assignment = {member: partitions[1:] for member, partitions in assignment.items()}
        return Answer(assignment)

    def play(self, scenario: Scenario) -> tuple[PlayedHistory, float]:
        self.plays += 1
        return play(scenario, self.ask, None, (self.clause,), self.assignor.promises), 1

    def plays_of(self, scenarios: Sequence[Scenario]) -> list[tuple[PlayedHistory, float]]:
        return [self.play(scenario) for scenario in scenarios]

    def breaking(self, ways: Iterable[tuple[str, ...]], each: int = 40) -> list[BreakingScenario]:
        found: list[BreakingScenario] = []
        for names in ways:
            for seed in range(each):
                scenario = generate(Seeded(f"{names}/{seed}"), COOPERATIVE, names)
                if shown := self.play(scenario)[0].breach_of(self.clause.id):
                    found.append(BreakingScenario(scenario, shown, len(found)))
        return found

    def explain(self, broken: list[BreakingScenario], **more) -> list[CauseFound]:
        return Attribution(clause=self.clause, plays=self.plays_of, limit=LIMIT, **more).explain(broken)


def repeated(cluster: Cluster, group: GroupSubscription) -> bool:
    return any(len(set(s.owned_partitions)) < len(s.owned_partitions) for s in group.values())


def old(cluster: Cluster, group: GroupSubscription) -> bool:
    return any(s.version == 1 and s.owned_partitions for s in group.values())


def racked(cluster: Cluster, group: GroupSubscription) -> bool:
    unequal = len({frozenset(s.topics) for s in group.values()}) > 1
    return unequal and any(s.rack_id for s in group.values())


def any_of(*conditions: Condition) -> Condition:
    return lambda cluster, group: any(condition(cluster, group) for condition in conditions)


WAYS = (
    ("repeated",),
    ("versions", "claims"),
    ("unequal", "racks"),
    ("unequal", "racks", "repeated", "versions"),
    ("faults", "racks", "repeated", "membership", "unequal"),
)


def test_each_cause_is_found_and_the_most_real_comes_first():
    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), any_of(repeated, old, racked))
    broken = judged.breaking(WAYS)
    found = judged.explain(broken)
    assert [one.cause.id for one in found] == ["unequal+racks", "versions", "repeated"]
    assert [realism(one.small) for one in found] == [Realism.HONEST, Realism.MIXED, Realism.UNREAL]
    assert sum(len(one.broken) for one in found) == len(broken)
    assert all(one.small.size[0] <= 2 and one.small.size[1] <= 2 for one in found)
    assert found == Judged(
        "kip429/leader/5", reference("cooperative-sticky"), any_of(repeated, old, racked)
    ).explain(broken), "the same every time"
    judged.plays = 0
    assert judged.explain(broken) == found
    alone, judged.plays = judged.plays, 0
    assert judged.explain(broken, together=True) == found, "what is played ahead changes nothing"
    assert judged.plays > alone


def test_however_a_claim_came_about_it_is_one_cause():
    """What arrives with the members, and what is left by a lost answer, fold into the same call."""

    def superseded(cluster: Cluster, group: GroupSubscription) -> bool:
        claimed = [p for s in group.values() for p in set(s.owned_partitions)]
        return len(set(claimed)) < len(claimed)

    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), superseded)
    broken = judged.breaking((("stale",), ("faults", "membership"), ("ghosts", "membership")), 60)
    assert any(not any(m.owned for m in one.of_partitions.members) for one in broken)
    found = judged.explain(broken)
    assert next(one.cause.id for one in found) == "stale"
    assert len(found[0].broken) > len(broken) // 2


@pytest.mark.nightly
def test_a_cause_that_is_expected_is_not_made_small():
    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), any_of(repeated, racked))
    broken = judged.breaking(WAYS)
    key = "kip429/leader/5-cooperative@repeated"
    known, new = (
        next(one for one in judged.explain(broken, expected=lambda k: k == key) if one.cause.id == name)
        for name in ("repeated", "unequal+racks")
    )
    assert known.small == known.first.scenario
    assert new.small.size < new.first.scenario.size


def test_without_time_nothing_is_attributed():
    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), repeated)
    broken = judged.breaking(WAYS[:1])
    assert Attribution(clause=judged.clause, plays=judged.plays_of, limit=0).explain(broken) == []
    judged.plays = 0
    Attribution(clause=judged.clause, plays=judged.plays_of, limit=5).explain(broken)
    assert judged.plays < 5 * (2 * MAX_CAUSES + 1) + 30


@pytest.mark.parametrize("asked", [0, 1, 2, 3, 5, 8, 13, 40])
def test_nothing_is_played_once_it_is_late(asked: int):
    """Whenever that is, after it was ``asked`` so often."""
    times = 0

    def late() -> bool:
        nonlocal times
        times += 1
        return times > asked

    def plays(scenarios: Sequence[Scenario]) -> list[tuple[PlayedHistory, float]]:
        assert times <= asked, "played though it is late"
        return judged.plays_of(scenarios)

    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), repeated)
    broken = judged.breaking(WAYS[:1])
    found = Attribution(clause=judged.clause, plays=plays, limit=LIMIT, late=late).explain(broken)
    assert found or asked < 13
    assert not (asked < 2 and found)


def test_what_does_not_break_again_has_no_cause():
    judged = Judged("kip429/leader/5", reference("cooperative-sticky"), repeated)
    broken = judged.breaking(WAYS[:1])
    judged.condition = None
    assert judged.explain(broken) == []


def test_a_group_that_never_settles_is_no_late_one():
    """A partition goes round among the members with racks, and only once among those with old claims."""

    class Restless:
        promises: frozenset[Promise] = frozenset()

        def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
            given = dict(reference("cooperative-sticky").assign(cluster, group))
            owners = [m for m, s in group.items() if s.owned_partitions]
            if owners and any(s.rack_id for s in group.values()):
                given[owners[0]] = given[owners[0]][1:]
            return given

    judged = Judged("kip429/converge/1", Restless())
    found = judged.explain(judged.breaking((("racks",), ("racks", "claims"))))
    kinds = {one.cause.kind: one for one in found}
    assert "never" in kinds
    assert all("racks" in one.cause.features for one in found)
    never = kinds["never"]
    shown = judged.play(of_partitions(never.small))[0].breach_of("kip429/converge/1")
    assert shown
    assert shown.breach.summary == "the group never settles: after 2 rounds it is where it was"


def test_changes_at_random_that_lead_nowhere_come_to_an_end():
    """Four members are one too many to be legible, and without one the group settles: what can be changed is
    soon known, and is not played again."""

    class RestlessFour:
        promises: frozenset[Promise] = frozenset()

        def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
            given = dict(reference("cooperative-sticky").assign(cluster, group))
            owners = [m for m, s in group.items() if s.owned_partitions]
            if len(group) > 3 and owners:
                given[owners[0]] = given[owners[0]][1:]
            return given

    judged = Judged("kip429/converge/1", RestlessFour())
    owned = [TopicPartition("t", number) for number in range(4)]
    members = tuple(ScenarioMember(id=f"m{p}", topics=("t",), owned=(p,), generation=1) for p in owned)
    start = Scenario(protocol=COOPERATIVE, topics=uniform({"t": 4}), members=members, rounds=())
    shown = judged.play(start)[0].breach_of("kip429/converge/1")
    assert shown
    looking = Attribution(clause=judged.clause, plays=judged.plays_of, limit=200)
    [found] = looking.explain([BreakingScenario(start, shown, 0)])
    assert found.small.size[0] == 4
    assert judged.plays < 1000


@pytest.mark.parametrize(
    ("name", "clause", "ways"),
    [
        ("max_generation_only", "kip792/claim/1", (("stale",), ("generations",))),
        ("last_claim_wins", "kip792/claim/1", (("stale",), ("ghosts",))),
        ("no_withhold", "kip429/leader/4", (("claims",), ("membership",))),
        ("duplicate_claims_counted", "assign/1", (("repeated",), ("repeated", "unequal"))),
        ("duplicate_claims_cancel", "kip54/sticky/1", (("repeated",), ("repeated", "unequal"))),
        ("claims_always_empty", "kip54/sticky/1", (("claims",), ("claims", "racks"))),
        ("single_known_topic_shortcut", "assign/2", (("unequal",), ("no-metadata", "unequal"))),
        ("members_unsorted", "assign/7", (("order",), ("order", "unequal"))),
    ],
)
def test_of_a_counterexample_nothing_can_be_deleted(name, clause, ways):
    judged = Judged(clause, switched(SWITCHES[name].assignor, (name,)))
    broken = judged.breaking(ways)
    found = judged.explain(broken)
    assert found, name
    for one in found:
        small = of_partitions(one.small)
        assert judged.play(small)[0].breach_of(clause)
        for smaller in deletions(small):
            assert not judged.play(smaller)[0].breach_of(clause), (one.cause.id, one.small, smaller)


def test_causes_name_and_describe_themselves():
    cause = Cause.of("late", {"racks", "unequal", "claims", "phantom"})
    assert cause.id == "late+unequal+racks+phantom"
    assert "racks are known" in cause.sentence(COOPERATIVE)
    assert Cause.of("", ()).id == "plain"
    assert Cause.of("", ()).sentence(COOPERATIVE) == "no special precondition"
    assert cause.key(CLAUSES["assign/1"], COOPERATIVE) == "assign/1-cooperative@late+unequal+racks+phantom"
