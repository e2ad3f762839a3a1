"""Assignors of share groups (KIP-932): in Python, over JSON lines, and Kafka's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Level, Verdict
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import Result, Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.live.artifacts import maven
from rebalance_verifier.model.values import Cluster, GroupSubscription, Partitions, TopicPartition
from rebalance_verifier.properties.assignors.clause import SHARE

from tests.command import Rebalance
from tests.tiers import tiered

SMALL = SearchProfile(name="small", each=5, mixed=20, large=0, crowd=0, shrink=60)
SIMPLE = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"

WAYS = {
    "everything": set[str](),
    "unsubscribed": {"assign/2"},
    "gone": {"assign/3"},
    "raises": {"assign/4"},
    "changes": {"assign/5"},
    "by order": {"assign/7"},
    "leaves out": {"kip932/complete/1"},
    "twice": {"kip932/once/1"},
    "one": {"kip932/idle/1", "kip932/balance/2"},
    "first topic": {"kip932/balance/1"},
    "alternates": {"kip932/settled/1"},
}
"""Way in which an assignor errs -> the clauses that it breaks, at any level."""


class Shares:
    """Gives every partition to every subscriber, and errs in one way."""

    protocols = ("share",)
    promises = ("balanced", "sticky")

    def __init__(self, way: str = "everything") -> None:
        self.way = way

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Mapping[str, Partitions]:
        if self.way == "raises" and len(group) > 3:
            raise ValueError("four")
        hands: dict[str, list[TopicPartition]] = {member: [] for member in group}
        for partition in cluster.partitions():
            members = sorted(m for m in group if partition.topic in group[m].topics)
            for member in self.some(partition, members, cluster, group):
                hands[member].append(partition)
        for member, subscription in group.items():
            owned = [p for p in subscription.owned_partitions if p not in hands[member]]
            if self.way == "unsubscribed":
                hands[member] += [p for p in owned if p in cluster]
            if self.way == "gone":
                hands[member] += [p for p in owned if p not in cluster and p.topic in subscription.topics]
            if self.way == "twice":
                hands[member] += hands[member][:1]
        if self.way == "changes":
            cluster.topics.clear()  # type: ignore[attr-defined]
        return {member: tuple(hand) for member, hand in hands.items()}

    def some(
        self, partition: TopicPartition, members: list[str], cluster: Cluster, group: GroupSubscription
    ) -> list[str]:
        """Return those of the subscribers who are given it."""
        others = members[1:] or members
        match self.way:
            case "leaves out" if len(members) > 1:
                return members if partition.partition else []
            case "one":
                return members[:1]
            case "first topic" if partition.topic == min(cluster.topics) and len(cluster.topics) > 1:
                return members[:1]
            case "alternates" if any(partition in group[m].owned_partitions for m in members[:1]):
                return others if not partition.partition else members
            case "by order" if list(group) != sorted(group) and not partition.partition:
                return others
        return members


def judged(way: str) -> Result:
    with InProcess(Shares(way)) as session:
        plan = CheckPlan(profile=SMALL, level=Level.QUALITY)
        return check(plan, session, describe("mine", session.hello))


def broken(result: Result) -> set[str]:
    return {row.clause.id for row in result.clauses if row.status is Status.VIOLATED}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_err_is_named_by_its_clause(way: str) -> None:
    result = judged(way)
    assert WAYS[way] <= broken(result)
    assert {row.protocol for row in result.clauses} == {SHARE}
    if not WAYS[way]:
        assert (result.verdict, broken(result)) == (Verdict.CONFORMANT, set())


def test_several_owners_are_no_finding_and_no_mark_in_a_chart() -> None:
    from rebalance_verifier.report.terminal import check as text

    result = judged("leaves out")
    shown = text.render(result)
    assert "two owners" not in shown
    assert "ShareGroupPartitionAssignor.assign" in text.render(judged("unsubscribed"))
    finding = next(row.finding for row in result.clauses if row.finding is not None)
    assert finding.scenario.size[:2] == (2, 1)
    assert finding.confirmed


LINES = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["cmd"] == "hello":
        result = {"name": "lines", "protocols": ["share"], "promises": ["balanced", "sticky"]}
    elif asked["cmd"] == "assign":
        topics = asked["cluster"]["topics"]
        result = {"assignment": {m["id"]: [
            [t, list(range(len(topics[t])))] for t in dict.fromkeys(m["topics"]) if topics.get(t)
        ] for m in asked["members"]}}
    else:
        break
    print(json.dumps({"seq": asked["seq"], "result": result}), flush=True)
"""


def test_one_over_json_lines(rebalance: Rebalance, tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(LINES)
    command = ("--profile", "smoke", "--", sys.executable, str(tmp_path / "lines.py"))
    ran = rebalance("check", *command)
    assert ran.code == 0, ran.out + ran.err
    assert "passes 12 checks (12 clauses; share)" in " ".join(ran.out.split())


@pytest.mark.slow
@pytest.mark.parametrize("release", tiered(["4.0.0", "4.4.0"], {"4.4.0"}))
def test_kafkas_own_keeps_what_nobody_subscribes_to_since_4_2(release: str) -> None:
    where = f"org.apache.kafka:kafka-group-coordinator:{release}"
    try:
        maven.classpath([where])
    except ToolError as error:
        pytest.skip(str(error))
    target = resolve(f"java:{SIMPLE}@{where}")
    with Session(target) as session:
        info = describe(target.spec, session.hello)
        profile = SearchProfile(name="small", each=10, mixed=100, large=0, crowd=0, shrink=400)
        plan = CheckPlan(profile=profile, level=Level.QUALITY)
        result = check(plan, session, info, fresh=session.close)
    assert info.interface == "ShareGroupPartitionAssignor"
    assert broken(result) == ({"assign/2", "assign/3"} if release == "4.4.0" else set())
    for row in result.clauses:
        if row.clause.id == "assign/2" and row.finding is not None:
            assert row.finding.scenario.size[:2] <= (2, 2)
            assert row.finding.confirmed
