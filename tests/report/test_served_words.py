"""Reports on an assignor that a broker calls speak of what the broker does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

import pytest
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import Result
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.values import (
    SERVED,
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.report.ci import ci_reports, junit, markdown, sarif
from rebalance_verifier.report.html import check as page
from rebalance_verifier.report.terminal import check as text

TINY = SearchProfile(name="tiny", each=4, mixed=12, large=0, crowd=0, shrink=60)
OF_CLIENTS = re.compile(
    r"JoinGroup|SyncGroup|\bleader|\bgenerations?\b(?!&quot;)|partition\.assignment\.strategy"
    r"|\bConsumerPartitionAssignor|superseded|\bclaim(s|ed|ing)?\b(?!&quot;)"
)
"""What only a group has whose members lead; fields of a trace in JSON apart."""
IDS = re.compile(
    r"kip\d+[/-][\w/-]+|KIP-848%3A[^\s\")<]*|\b\d+ claims?\b|>claims<|(consumer|share), claims|\|claims"
)
"""Names that mean nothing more: of clauses, pages, dimensions, and the size of a scenario."""


class Wrong:
    """Gives each partition of a topic to its first subscriber, and errs in one way."""

    protocols: tuple[str, ...] = ("consumer",)
    promises: tuple[str, ...] = ("balanced", "sticky", "spread", "rack-aware", "co-partitioned")

    def __init__(self, way: str, protocol: str) -> None:
        self.way, self.protocols = way, (protocol,)

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Mapping[str, Partitions]:
        hands: dict[str, list[TopicPartition]] = {member: [] for member in group}
        for partition in cluster.partitions():
            members = sorted(m for m in group if partition.topic in group[m].topics)
            for member in members[: 2 if self.way == "twice" else 1]:
                if self.way != "forgets" or not group[member].owned_partitions:
                    hands[member].append(partition)
        for member in group if self.way == "keeps" else ():
            hands[member] += [p for p in group[member].owned_partitions if p not in hands[member]]
        return {member: tuple(hand) for member, hand in hands.items()}


@pytest.fixture(
    scope="module", params=product(("twice", "forgets", "keeps"), ("consumer", "share")), ids="-".join
)
def judged(request: pytest.FixtureRequest) -> Result:
    with InProcess(Wrong(*request.param)) as session:
        plan = CheckPlan(profile=TINY, level=Level.QUALITY)
        result = check(plan, session, describe("mine", session.hello))
    assert result.clauses, "nothing was asked"
    return result


@pytest.mark.covering("judged", "form")
@pytest.mark.parametrize("form", ["text", "html", "junit", "markdown", "sarif"])
def test_no_report_speaks_of_what_no_broker_has(judged: Result, form: str) -> None:
    writers = {"junit": junit, "markdown": markdown, "sarif": sarif}
    if form in writers:
        shown = writers[form].render(ci_reports.result(judged))
    else:
        shown = (text if form == "text" else page).render(judged)
        shown = re.sub(r"(?s)<(style|script|pre)\b.*?</\1>", "", shown)
    lines = IDS.sub("", shown).splitlines()
    found = [(at, line) for line in lines if (at := OF_CLIENTS.search(line)) is not None]
    assert [line[max(0, at.start() - 60) : at.end() + 40] for at, line in found] == []
    assert "target before" in shown or form in ("junit", "markdown", "sarif")


@pytest.mark.parametrize("clause", [c for c in TABLE if set(c.protocols) & set(SERVED)], ids=lambda c: c.id)
def test_a_clause_says_so_of_a_broker_and_the_other_of_a_leader(clause) -> None:
    for protocol in RebalanceProtocol:
        said = clause.under(protocol)
        shown = f"{said.sentence} {said.rule} {said.link}"
        if protocol in SERVED:
            assert not OF_CLIENTS.search(IDS.sub("", shown)), shown
        else:
            assert said == clause
