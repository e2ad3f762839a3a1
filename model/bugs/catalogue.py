"""The catalogue of rebalance bugs that were shipped: what happens, where, what breaks, which switches.

This is the one place that says in which releases a mistake lives and which entry a switch stands for.
Switches are of two kinds: those of an assignor (``model.bugs.switches``, stages that are replaced)
and those of the protocol (``model.bugs.decisions``). An id that is in both stands for the same
mistake, asked at two levels. Profiles (``model.bugs.profiles``) are computed from the ranges here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.bugs.releases import Releases, parse, version

Level = Literal["A", "P", "A+P"]
"""A: one call of an assignor shows it. P: it takes members, coordinator and network. A+P: both."""

PROPERTIES: dict[str, str] = {
    "DO": "a partition has two owners, or changes hands before its old owner gave it up",
    "NC": "the group does not settle, or a member is stuck",
    "ST": "a partition is unowned or unread",
    "IM": "work is distributed worse than promised",
    "LS": "members lose partitions that they could have kept",
    "TR": "a claim that is no longer true is believed",
    "CB": "the listener does not hear what happened, or in the wrong order",
    "RT": "the result comes too late",
    "CR": "an input that is legal ends in an exception",
    "AV": "the rebalance is delayed, or a healthy member is shut out",
}
"""What an entry can break, by code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mistake. ``affected`` follows ``model.bugs.releases``.

    ``trackers`` are KAFKA-nnnnn, ``project#number``, or ``project@commit`` where there is no ticket.
    ``breaks`` are keys of ``PROPERTIES``; none where records are only read again. ``switches`` are ids of
    either kind; ``narrower`` gives the releases of those that were not in all of ``affected``.
    """

    id: str
    title: str
    level: Level
    project: str
    affected: str
    trackers: tuple[str, ...]
    breaks: tuple[str, ...]
    switches: tuple[str, ...]
    story: str
    narrower: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def releases(self) -> Releases:
        """``affected``, to be asked."""
        return parse(self.affected)

    def shipped(self, switch: str) -> str:
        """Return the releases in which this entry shows as ``switch``."""
        return self.narrower.get(switch, self.affected)


_OWNERS = {
    "confluent-kafka-go": "confluentinc",
    "franz-go": "twmb",
    "kafka-go": "segmentio",
    "kafka-python": "dpkp",
    "kafka-python-ng": "wbarnha",
    "kafkajs": "tulios",
    "librdkafka": "confluentinc",
    "pekko-connectors-kafka": "apache",
    "sarama": "IBM",
    "spring-kafka": "spring-projects",
}
"""Project of a tracker -> whose it is on GitHub."""


def tracker_link(tracker: str) -> str:
    """Return where to read a tracker of an entry, "" where that is not known.

    >>> tracker_link("KAFKA-12983"), tracker_link("franz-go#366")
    ('https://issues.apache.org/jira/browse/KAFKA-12983', 'https://github.com/twmb/franz-go/issues/366')
    """
    if tracker.startswith("KAFKA-"):
        return f"https://issues.apache.org/jira/browse/{tracker}"
    kind = "issues" if "#" in tracker else "commit"
    project, _, number = tracker.replace("@", "#").partition("#")
    owner = _OWNERS.get(project)
    return f"https://github.com/{owner}/{project}/{kind}/{number}" if owner and number else ""


_TABLE = tuple(Entry(**row) for row in table(__file__)["bug"])

CATALOGUE: dict[str, Entry] = {entry.id: entry for entry in _TABLE}
"""All entries by id, in the order of the projects."""


def entries_of(switch: str) -> tuple[Entry, ...]:
    """Return the entries that ``switch`` stands for, the one that names it first in front; none is
    possible."""
    return tuple(entry for entry in _TABLE if switch in entry.switches)


def shipped(switch: str) -> str:
    """Return the releases that have ``switch``, over all its entries; ``never`` if it has none."""
    texts = [entry.shipped(switch) for entry in entries_of(switch)]
    return ", ".join(text for text in texts if text != "never") or "never"


def ships(switch: str, project: str, release: str) -> bool | None:
    """Check whether a release of a project has ``switch``; None for what is no release."""
    try:
        number = version(release)
    except ValueError:
        return None
    return any(parse(entry.shipped(switch)).includes(project, number) for entry in entries_of(switch))
