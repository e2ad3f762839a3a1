"""What was observed of Kafka's own code, release by release, beside what the catalogue says of it.

``observed.toml`` is written by ``make code``: the runs that show a switch, forced step by step on each
release. ``explained.toml`` is written by hand: why some of that is not as the catalogue says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.bugs.catalogue import entries_of
from rebalance_verifier.model.bugs.releases import parse, ranges, version

CONSUMER, COORDINATOR, CLIENT = "consumer", "coordinator", "client"
"""What is observed: Java's consumer, Kafka's coordinator, and Java's consumer of bugs of other clients."""

PARTS = (CONSUMER, COORDINATOR, CLIENT)

SERVED = "served"
"""What is observed in lockstep instead: Kafka's coordinator of consumer groups (KIP-848)."""

PRODUCTS = {CONSUMER: "Java", COORDINATOR: "broker", SERVED: "broker"}

PROJECTS = {CONSUMER: "Kafka client", COORDINATOR: "Kafka broker", SERVED: "Kafka broker"}

STREAMS = "Kafka Streams"
"""The project of bugs that no consumer has by itself, and that are not observed."""

SHOWN: Final = "shown"
ABSENT: Final = "absent"
OPEN: Final = "open"

Seen = Literal["shown", "absent", "open"]
"""Shown: the clause that the run breaks in the model is broken. Absent: every step was forced and it is not,
or the release goes the run's way up to the step in which the switch matters, and then another. Open: neither.
"""

SEEN: tuple[Seen, ...] = (SHOWN, ABSENT, OPEN)


@dataclass(frozen=True, slots=True)
class Observation:
    """Behaviour of a release; ``why`` it is open."""

    seen: Seen
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where one switch is ``seen`` in ``releases`` otherwise than the catalogue says; ``why`` may be ""."""

    part: str
    switch: str
    seen: Seen
    releases: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Observations of a ``part`` in ``releases``, by switch and release, with one release (``other``) of what
    it works with."""

    part: str
    releases: tuple[str, ...]
    other: str
    found: Mapping[tuple[str, str], Observation]

    @property
    def switches(self) -> list[str]:
        """Return the switches in the order in which they were asked."""
        return list(dict.fromkeys(switch for switch, _ in self.found))

    def where(self, switch: str, *seen: Seen) -> tuple[str, ...]:
        """Return the releases of which that was seen."""
        return tuple(
            one
            for one in self.releases
            if (switch, one) in self.found and self.found[switch, one].seen in seen
        )

    def shipped(self, switch: str) -> tuple[str, ...]:
        """Return those that have it by the catalogue."""
        return tuple(one for one in self.releases if shipped(self.part, switch, one))

    def spans(self, releases: Sequence[str]) -> str:
        """Return some of the releases as text; none that was left out lies between two ends."""
        if set(releases) == set(self.releases):
            return "all"
        known = OBSERVED[self.part].releases
        listed = known if set(self.releases) <= set(known) else self.releases
        return ranges(listed, [one in releases for one in listed]) or "-"

    def differences(self, switch: str) -> Iterator[Difference]:
        """Yield where it is not as the catalogue says: shown, absent or open, those of one explanation
        together."""
        has = self.shipped(switch)
        for seen in SEEN:
            found: dict[str, list[str]] = {}
            for one in self.where(switch, seen):
                if seen == OPEN or (one in has) is not (seen == SHOWN):
                    found.setdefault(explanation(self.part, switch, seen, one), []).append(one)
            for why, some in found.items():
                yield Difference(part=self.part, switch=switch, seen=seen, releases=tuple(some), why=why)


def shipped(part: str, switch: str, release: str) -> bool:
    """Check whether this release has the bug of a switch, by the catalogue."""
    product = PRODUCTS.get(part, "")
    return any(
        parse(entry.shipped(switch)).includes(product, version(release)) for entry in entries_of(switch)
    )


def concerns(part: str, switch: str) -> bool:
    """Check whether the catalogue has something to say of this part by this switch."""
    if part == CLIENT:
        elsewhere = concerns(CONSUMER, switch) or concerns(COORDINATOR, switch)
        return not elsewhere and all(entry.project != STREAMS for entry in entries_of(switch))
    return any(
        entry.project == PROJECTS[part]
        or any(span.product == PRODUCTS[part] for span in parse(entry.shipped(switch)).spans)
        for entry in entries_of(switch)
    )


# -- explanations ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """``why`` a switch is ``seen`` in these ``releases`` of a part, and not as the catalogue says."""

    part: str
    switch: str
    seen: Seen
    releases: str
    why: str

    def includes(self, release: str) -> bool:
        """Check whether it is about this release too."""
        return parse(f"{self.part} {self.releases}").includes(self.part, version(release))


EXPLANATIONS = tuple(Explanation(**row) for row in table(__file__, "explained")["difference"])


def explanation(part: str, switch: str, seen: Seen, release: str) -> str:
    """Return why this difference is there, "" where nobody has said it."""
    fitting = (one for one in EXPLANATIONS if (one.part, one.switch, one.seen) == (part, switch, seen))
    return next((one.why for one in fitting if one.includes(release)), "")


def hidden(switch: str, profile: str) -> str:
    """Return why the model's group does not show a switch that a release has, "" where nobody has said it."""
    rows = table(__file__, "explained")["hidden"]
    return next((row["why"] for row in rows if row["switch"] == switch and profile in row["profiles"]), "")


def unused(observations: Mapping[str, Observations]) -> Iterator[Explanation]:
    """Yield explanations that cover a release for which nothing is to be explained."""
    for one in EXPLANATIONS:
        of = observations[one.part]
        there = {
            release
            for difference in of.differences(one.switch)
            if difference.seen == one.seen
            for release in difference.releases
        }
        if any(one.includes(release) and release not in there for release in of.releases):
            yield one


# -- the file --------------------------------------------------------------------------------------------


def _observations() -> Iterator[Observations]:
    for part, row in table(__file__).items():
        found = {
            (switch, release): Observation(seen, spans["why"] if seen == OPEN else "")
            for switch, spans in row["switch"].items()
            for release in row["releases"]
            for seen in SEEN
            if spans[seen] and parse(f"{part} {spans[seen]}").includes(part, version(release))
        }
        yield Observations(part=part, releases=row["releases"], other=row["other"], found=found)


OBSERVED: Mapping[str, Observations] = {one.part: one for one in _observations()}
"""What ``make code`` observed, by part."""


def rows(observations: Mapping[str, Observations]) -> dict[str, dict[str, object]]:
    """Return the same as a table: what is read above."""
    return {part: _row(of) for part, of in observations.items()}


def _row(of: Observations) -> dict[str, object]:
    switches = {}
    for switch in of.switches:
        spans: dict[str, str] = {}
        for seen in SEEN:
            where = of.where(switch, seen)
            spans[seen] = ranges(of.releases, [one in where for one in of.releases])
        why = next((of.found[switch, one].why for one in of.where(switch, OPEN)), "")
        switches[switch] = {**spans, "why": why}
    return {"releases": of.releases, "other": of.other, "switch": switches}
