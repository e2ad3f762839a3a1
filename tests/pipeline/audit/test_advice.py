"""What to do about a finding: for every check, for every release that is named, with links that lead out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rebalance_verifier.model.bugs.catalogue import CATALOGUE, tracker_link
from rebalance_verifier.pipeline.audit import advice
from rebalance_verifier.pipeline.audit.diagnosis import BREAKS, BugLink
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogFinding
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient

J4 = BugLink("J4", "orders-1", "java", "3.4.0", "3.4.1", "orders-1 missed generation 3")
U11 = BugLink("U11", "orders-2", "java", "3.4.0", "")


def finding(check="owned-twice", *owners):
    began = datetime(2026, 11, 21, 18, tzinfo=UTC)
    return LogFinding(
        id="0" * 12, check=check, level=CHECKS[check].level, group="orders", topic="t", partition=0,
        began=began, ended=None, seconds=1.0, owners=owners, skew=None, certain=True, places=(),
        sentence="s",
    )  # fmt: skip


def test_there_is_something_to_do_about_every_check():
    assert set(advice.STEPS) == set(CHECKS)


def test_every_proposal_that_a_check_names_can_be_read():
    for check in CHECKS.values():
        links = advice.kips(check.source)
        assert links, check
        assert all(link.startswith(f"https://cwiki.apache.org/confluence/display/KAFKA/{name}")
                   for name, link in links)  # fmt: skip


def test_what_is_shown_is_to_be_upgraded_and_what_may_be_says_so():
    shown, perhaps = advice.remedies([J4, U11])
    assert shown == "orders-1 is of java 3.4.0, which has J4: upgrade to 3.4.1"
    assert perhaps == (
        "orders-2 is of java 3.4.0, which has U11; it may be this (rebalance bugs U11 makes it again): "
        "no release is without it yet"
    )
    assert advice.remedies([J4, J4]) == [shown]
    assert (
        "the coordinator is of broker 4.0.0"
        in advice.remedies([BugLink("U6", None, "broker", "4.0.0", "")])[0]
    )


def test_trackers_of_the_catalogue_lead_to_where_they_are_kept():
    assert advice.trackers([J4, U11]) == [
        ("KAFKA-14639", "https://issues.apache.org/jira/browse/KAFKA-14639")
    ]
    assert tracker_link("franz-go@02560c7") == "https://github.com/twmb/franz-go/commit/02560c7"
    assert tracker_link("nobody#1") == tracker_link("franz-go") == ""


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda one: one.id)
def test_of_every_entry_the_trackers_that_have_an_address_have_one(entry):
    unknown = {tracker for tracker in entry.trackers if not tracker_link(tracker)}
    assert {tracker.partition("#")[0] for tracker in unknown} <= {"crabka"}, "nobody knows whose that is"


def test_release_and_assignor_are_those_of_whom_the_finding_is_about():
    clients = [
        LoggedClient("orders", "a", "java", "3.4.0", "range"),
        LoggedClient("orders", "b", "librdkafka", None, "sticky"),
        LoggedClient("orders", "c", "java", "3.9.0", "range"),
        LoggedClient("orders", None, "broker", "4.0.0", None),
        LoggedClient("billing", "a", "java", "2.4.0", "range"),
        LoggedClient("orders", "d", "java", None, None),
    ]
    assert advice.as_logged(finding("owned-twice", FindingOwner("a"), FindingOwner("b")), clients) == [
        "a: java 3.4.0, range",
        "b: librdkafka of a release that is not logged, sticky",
        "coordinator: broker 4.0.0",
    ]
    whole_group = advice.as_logged(finding("never-settles"), clients)
    assert [line.partition(":")[0] for line in whole_group] == ["a", "b", "c", "coordinator"]


def test_a_zombie_is_nobodys_mistake():
    assert "owned-by-zombie" not in BREAKS
    assert advice.unknown(finding("owned-by-zombie")).startswith("no bug: ")
    assert advice.unknown(finding()) != advice.unknown(finding("owned-by-zombie"))
