"""docs/results/released.md: what was observed of each release, beside the catalogue and the model."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebalance.explore.groups.bugs import SHOWN, shown_by
from rebalance.gate.report.markup import escaped, table
from rebalance.gate.report.terminal.comparison import ranges
from rebalance.model.bugs.catalogue import CATALOGUE, Entry, entries_of
from rebalance.model.bugs.releases import parse, version

CONSUMER, COORDINATOR, CLIENT = "consumer", "coordinator", "client"
"""The parts of the page: Java's consumer, Kafka's coordinator, and bugs of other clients asked of Java's."""

PRODUCTS = {CONSUMER: "Java", COORDINATOR: "broker"}

PROJECTS = {CONSUMER: "Kafka client", COORDINATOR: "Kafka broker"}

EXPLAINED = Path(__file__).with_name("explained.toml")
"""Why what was observed differs from the catalogue."""


@dataclass(frozen=True, slots=True)
class Observation:
    """``seen``: shown, absent, or open, with the reason."""

    seen: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Observations:
    """What was observed of ``releases``, by switch and release."""

    releases: Sequence[str]
    found: Mapping[tuple[str, str], Observation]

    @property
    def switches(self) -> list[str]:
        """In the order in which they were asked."""
        return list(dict.fromkeys(switch for switch, _ in self.found))

    def spans(self, switch: str, *seen: str) -> str:
        """The releases of which that was seen."""
        return self._ranges([self.found[switch, one].seen in seen for one in self.releases])

    def shipped(self, part: str, switch: str) -> str:
        """Those that have it by the catalogue."""
        return self._ranges([shipped(part, switch, one) for one in self.releases])

    def _ranges(self, chosen: Sequence[bool]) -> str:
        return "all" if all(chosen) else ranges(self.releases, chosen) or "-"

    def differences(self, part: str, switch: str) -> Iterator[tuple[str, str]]:
        """(what, releases) where it is not as the catalogue says: shown, absent, or open."""
        for seen in ("shown", "absent", "open"):
            not_so = [
                self.found[switch, one].seen == seen
                and (seen == "open" or shipped(part, switch, one) is not (seen == "shown"))
                for one in self.releases
            ]
            if any(not_so):
                yield seen, self._ranges(not_so)


def shipped(part: str, switch: str, release: str) -> bool:
    """Whether this release has the bug of a switch, by the catalogue."""
    product = PRODUCTS.get(part, "")
    return any(
        parse(entry.shipped(switch)).includes(product, version(release)) for entry in entries_of(switch)
    )


def concerns(part: str, switch: str) -> bool:
    """Whether the catalogue has something to say of this part by this switch."""
    if part == CLIENT:
        return not concerns(CONSUMER, switch) and not concerns(COORDINATOR, switch)
    return any(
        entry.project == PROJECTS[part]
        or any(span.product == PRODUCTS[part] for span in parse(entry.shipped(switch)).spans)
        for entry in entries_of(switch)
    )


def explanations() -> dict[tuple[str, str, str, str], str]:
    """(part, switch, what, releases) -> why."""
    rows = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["difference"]
    return {(row["part"], row["switch"], row["what"], row["releases"]): row["why"] for row in rows}


def _differing(found: Mapping[str, Observations]) -> dict[tuple[str, str, str, str], None]:
    return {
        (part, switch, what, spans): None
        for part, seen in found.items()
        if part != CLIENT
        for switch in seen.switches
        for what, spans in seen.differences(part, switch)
    }


def wrong(found: Mapping[str, Observations], *, whole: bool = True) -> Iterator[str]:
    """Differences that nobody has explained; and, of a page that is ``whole``, explanations of none."""
    known, there = explanations(), _differing(found)
    for part, switch, what, spans in there:
        if (part, switch, what, spans) not in known and whole:
            yield f"not explained: {switch} is {what} in {part} {spans}"
    for part, switch, what, spans in known if whole else ():
        if (part, switch, what, spans) not in there:
            yield f"explained, and not so: {switch} is {what} in {part} {spans}"


# -- the page ------------------------------------------------------------------------------------------


def page(
    found: Mapping[str, Observations], marks: Mapping[tuple[str, str], str], newest: tuple[str, str]
) -> str:
    """The page, as Markdown. ``newest``: coordinator and consumer that were the other part."""
    coordinator, consumer = newest
    about = (
        "Made by `make code`. The runs of the model that show a switch, forced step by step on Kafka's own "
        "code ([the cell](../explanation/cell.md)), release by release, as `rebalance replay RUN --on "
        "coordinator:RELEASE,consumer:RELEASE` does. *Shown*: the clause that the run breaks in the model is "
        "broken. *Absent*: every step was forced and it is not, or the release goes the run's way up to the "
        "step in which the switch matters and then another way. *Open*: neither. Beside it what the "
        "catalogue says; `-` is none of these releases. "
        + (
            "*model*: the [release profiles](../reference/profiles.md) in which it shows it."
            if marks
            else "What the model says of its release profiles: `rebalance bugs --matrix`."
        )
    )
    lines = ["# What is released, run", "", about, "", *_summary(found)]
    if CONSUMER in found:
        lines += ["", "## Java's consumer", "", f"With the coordinator of {coordinator}.", ""]
        lines += _part(found[CONSUMER], CONSUMER, marks)
    if COORDINATOR in found:
        about = (
            f"With the consumer of {consumer}. Before 3.8.0 the coordinator is another or Scala's, which no "
            "cell runs: of what was mended before, only that can be seen."
        )
        lines += ["## The coordinator", "", about, ""]
        lines += _part(found[COORDINATOR], COORDINATOR, marks)
    lines += [*_elsewhere()]
    if CLIENT in found:
        lines += _clients(found[CLIENT], coordinator)
    return "\n".join(lines)


def _summary(found: Mapping[str, Observations]) -> Iterator[str]:
    """How many of the entries are seen on a release that has it and not on one that has not."""
    for part in (CONSUMER, COORDINATOR):
        if part not in found:
            continue
        seen = found[part]
        both = only = none = 0
        for switch in seen.switches:
            kinds = {one.seen for (name, _), one in seen.found.items() if name == switch}
            both += {"shown", "absent"} <= kinds
            only += "shown" in kinds and "absent" not in kinds
            none += "shown" not in kinds and "absent" in kinds
        total = len(seen.switches)
        yield (
            f"- Of {total} switches of the {part}, {both} are shown in some releases and absent in others, "
            f"{only} shown in all, {none} absent in all."
        )


def _part(seen: Observations, part: str, marks: Mapping[tuple[str, str], str]) -> list[str]:
    heads = ["entry", "switch", "breaks", "by the catalogue", "shown in", "absent in"]
    heads += ["model", "so"] if marks else ["so"]
    why = explanations()
    rows, notes = [], []
    for switch in seen.switches:
        differing = list(seen.differences(part, switch))
        rows.append((
            ", ".join(entry.id for entry in entries_of(switch)),
            f"`{switch}`", SHOWN[switch].clause,
            seen.shipped(part, switch), seen.spans(switch, "shown"), seen.spans(switch, "absent"),
            *([_marked(switch, part, marks)] if marks else []),
            "otherwise, see below" if differing else "as the catalogue says",
        ))  # fmt: skip
        for what, spans in differing:
            reason = why.get((part, switch, what, spans), "**not explained**")
            notes.append(f"- `{switch}` is {what} in {spans}: {reason}")
            stopped = next((one.why for (s, _), one in seen.found.items() if s == switch and one.why), "")
            if what == "open" and stopped:
                notes.append(f"  ({escaped(stopped)})")
    lines = table(heads, rows)
    return [*lines, "Otherwise than the catalogue says:", "", *(notes or ["Nothing."]), ""]


def _marked(switch: str, part: str, marks: Mapping[tuple[str, str], str]) -> str:
    """The release profiles in which the model shows it."""
    prefix = "java-" if part == CONSUMER else "broker-"
    mine = [
        (name.removeprefix(prefix), mark)
        for (s, name), mark in marks.items()
        if s == switch and name.startswith(prefix)
    ]
    if not mine:
        return ""
    return ranges([name for name, _ in mine], [mark in "Xo" for _, mark in mine]) or "-"


def _elsewhere() -> Iterator[str]:
    """Entries of Java and of the broker that no run of the group shows."""
    yield from ("## Not asked of a release by a run", "")
    for entry in CATALOGUE.values():
        java = entry.project in PROJECTS.values()
        if java and not any(switch in SHOWN for switch in entry.switches):
            yield f"- {entry.id}, {entry.title[0].lower()}{entry.title[1:]}: {_why_not(entry)}"
    yield ""


def _why_not(entry: Entry) -> str:
    ways = list(shown_by(entry))
    checked = [what for _, how, what in ways if how == "check"]
    if checked:
        return (
            f"one call of an assignor shows it, `rebalance check {checked[0]}`; what the assignors of each "
            "release do is in [the results](README.md)"
        )
    return escaped("; ".join(what for _, _, what in ways)) or "it has no switch"


def _clients(seen: Observations, coordinator: str) -> list[str]:
    heads = ("entry", "switch", "breaks", "shown in", "absent in", "open in")
    rows = [
        (
            ", ".join(entry.id for entry in entries_of(switch)) or "-",
            f"`{switch}`", SHOWN[switch].clause,
            seen.spans(switch, "shown"), seen.spans(switch, "absent"), seen.spans(switch, "open"),
        )
        for switch in seen.switches
    ]  # fmt: skip
    about = (
        "What the catalogue has of other clients only, or of none, asked of Java's consumer all the same "
        f"({', '.join(seen.releases)}, with the coordinator of {coordinator}). Where one shows, a bug of "
        "Java's own shows in the same way. *Open*: Kafka's coordinator does not elect the run's leader, or "
        "another bug of the release keeps the run from its end."
    )
    return ["## Bugs of other clients", "", about, "", *table(heads, rows)]
