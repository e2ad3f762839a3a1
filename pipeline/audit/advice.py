"""For whoever reads a finding: what it is by the catalogue, what to do about it, where to read of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rebalance_verifier.model.bugs.catalogue import CATALOGUE, tracker_link
from rebalance_verifier.pipeline.audit.diagnosis import BugLink
from rebalance_verifier.pipeline.audit.records import LogFinding
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient
from rebalance_verifier.properties.assignors.clauses import KIP_429
from rebalance_verifier.properties.assignors.task_clauses import KIP_54, WIKI

KIPS = {
    "KIP-54": KIP_54,
    "KIP-345": f"{WIKI}KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances",
    "KIP-415": f"{WIKI}KIP-415%3A+Incremental+Cooperative+Rebalancing+in+Kafka+Connect",
    "KIP-429": KIP_429,
}
"""The proposals that the checks of an audit come from."""

STEPS = {
    "owned-twice": "See what both consumers did with the partition in that time: its records may have been "
    "handled twice. Then judge the assignor of the leader (rebalance check), and compare the releases below.",
    "granted-before-revoked": "The leader's assignor gave away a partition before it was revoked: judge that "
    "assignor in its release (rebalance check).",
    "owned-by-zombie": "The protocol is not broken: its commits are refused. Make it notice sooner (poll "
    "more often, or fewer records a poll: max.poll.records, max.poll.interval.ms), and expect that what it "
    "writes elsewhere than to Kafka happens twice.",
    "stranded": "Nobody read the partition: see its lag, and restart a member, which assigns it anew. Where "
    "a consumer's log is missing here, it may have had an owner after all.",
    "never-settles": "Find the member that the others wait for: the one whose JoinGroup or SyncGroup is "
    "missing in the lines below. max.poll.interval.ms bounds how long they do.",
    "rebalance-storm": "See who joins and leaves again and again. Restarts cost no rebalance with "
    "group.instance.id; pauses cost none that are shorter than session.timeout.ms and max.poll.interval.ms.",
    "needless-movement": "Use an assignor that is sticky (cooperative-sticky); where it is one, judge it in "
    "its release (rebalance check).",
    "long-pause": "Find the member that joined last: max.poll.interval.ms bounds the wait for it. With a "
    "cooperative assignor partitions that do not move are read on.",
}
"""Check -> what to do first, whatever the cause."""


def unknown(finding: LogFinding) -> str:
    """Return the name of a finding that no entry of the catalogue explains."""
    if finding.check == "owned-by-zombie":
        return "no bug: a removed consumer learns of it when it polls, and reads on until then"
    return "nothing that the catalogue knows of the releases that are logged"


def kips(source: str) -> list[tuple[str, str]]:
    """(name, link) of each proposal that the source of a check names."""
    return [(name, KIPS[name]) for name in re.findall(r"KIP-\d+", source) if name in KIPS]


def trackers(diagnoses: Iterable[BugLink]) -> list[tuple[str, str]]:
    """(tracker, link) of each issue behind the diagnoses of a finding, as far as there is one to read."""
    named = dict.fromkeys(tracker for one in diagnoses for tracker in CATALOGUE[one.bug].trackers)
    return [(tracker, link) for tracker in named if (link := tracker_link(tracker))]


def remedies(diagnoses: Sequence[BugLink]) -> list[str]:
    """Return the steps against the bugs of the catalogue that a finding is or may be, the release first."""
    return list(dict.fromkeys(map(_remedy, diagnoses)))


def _remedy(one: BugLink) -> str:
    has = f"{one.client or 'the coordinator'} is of {one.source} {one.release}, which has {one.bug}"
    again = "" if one.shown else f"; it may be this (rebalance bugs {one.bug} makes it again)"
    return f"{has}{again}: " + (f"upgrade to {one.fixed}" if one.fixed else "no release is without it yet")


def as_logged(finding: LogFinding, clients: Iterable[LoggedClient]) -> list[str]:
    """Release and assignor of each consumer that a finding is about, or of all of its group's, and of the
    coordinator, as their logs have them."""
    owners = {owner.consumer for owner in finding.owners}
    mine = [one for one in clients if one.group == finding.group]
    concerned = [one for one in mine if one.consumer in owners or one.consumer is None] if owners else mine
    return [client_line(one) for one in concerned if one.release or one.assignor]


def client_line(client: LoggedClient) -> str:
    """A client in a line: who, of which release, with which assignor."""
    release = client.release or "of a release that is not logged"
    assignor = f", {client.assignor}" if client.assignor else ""
    return f"{client.consumer or 'coordinator'}: {client.source} {release}{assignor}"
