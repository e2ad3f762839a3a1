"""A broken clause says what its author reads, in the author's own terms."""

from __future__ import annotations

import pytest
from rebalance_verifier.gate.search.hints import hint
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.hosted import load
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.report import data
from rebalance_verifier.report.ci import ci_reports, junit
from rebalance_verifier.report.html import check as page
from rebalance_verifier.report.terminal import check as text


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("java:com.acme.Mine@a.jar", "Subscription.generationId()"),
        ("my_module:Mine", "group[member].generation_id"),
        ("cooperative-sticky", "group[member].generation_id"),
        ("-- ./adapter", "`generation` of a member in the request"),
        ("client:franz-go:sticky", "GenerationId of ConsumerProtocolSubscription"),
        ("wire -- ./consumer", "GenerationId of ConsumerProtocolSubscription"),
        ("kafka-python:sticky", "GenerationId of ConsumerProtocolSubscription"),
    ],
)
def test_a_hint_is_in_the_terms_of_the_target(spec: str, named: str) -> None:
    assert named in hint("kip792/claim/1", spec)
    assert [one for one in CLAUSES if hint(one, spec)] == ["kip792/claim/1", "kip792/claim/2"]


def test_every_report_has_it() -> None:
    profile = SearchProfile(name="tiny", each=8, mixed=20, large=0, crowd=0, shrink=50)
    with InProcess(load("cooperative-sticky+last_claim_wins")) as session:
        result = check(
            CheckPlan(profile=profile), session, describe("java:com.acme.Mine@a.jar", session.hello)
        )
    named = "Subscription.generationId()"
    assert named in " ".join(text.render(result).split())
    assert named in page.render(result)
    assert named in junit.render(ci_reports.result(result))
    broken = {one["clause"]: one["hint"] for one in data.to_json(result)["clauses"] if one["finding"]}
    assert named in broken["kip792/claim/1"]
