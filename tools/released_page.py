"""docs/results/released.md: what was observed of each release, beside the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebalance_verifier.explore.groups import bugs
from rebalance_verifier.explore.groups.released import SPELLED
from rebalance_verifier.model.bugs.catalogue import CATALOGUE, Entry, entries_of
from rebalance_verifier.model.bugs.observed import (
    ABSENT,
    CLIENT,
    CONSUMER,
    COORDINATOR,
    PROJECTS,
    SEEN,
    SERVED,
    SHOWN,
    Observations,
)
from rebalance_verifier.report.markup import escaped, table

BEFORE_240 = """\
2.4.0 is the first consumer with incremental rebalancing, and the oldest that a simulation runs: J11, J14 \
and J15 were mended before it, or in no release, so they are absent in all."""

BEFORE_380 = """\
Before 3.8.0 the coordinator is another or Scala's, which no simulation runs: of what was mended before, \
only that can be seen. B1 to B8, B10 and the coordinator's half of J19 end there, so they are absent in all; \
where they were was read (the catalogue's trackers), not run."""


IN_STEP = """\
KIP-848, and what of it the coordinator decides; there is none before 4.0.0. The clients are the model's: \
the runs are walked in [lockstep](../explanation/lockstep.md), by a model with the decisions of the release \
and the switch. *Shown*: both agree to the end, where the clause breaks. *Absent*: they agree, and it does \
not; or they part, and the model without the switch does not part from the code."""


def page(observations: Mapping[str, Observations]) -> str:
    """What stands below its head, as Markdown."""
    consumer, coordinator = observations[CONSUMER], observations[COORDINATOR]
    lines = [*_summary(observations)]
    about = f"With the coordinator of {consumer.other}. {BEFORE_240}"
    lines += ["", "## Java's consumer", "", about, "", *_part(consumer)]
    about = f"With the consumer of {coordinator.other}. {BEFORE_380}"
    lines += ["## The coordinator", "", about, "", *_part(coordinator)]
    lines += ["## The coordinator of consumer groups", "", IN_STEP, "", *_part(observations[SERVED])]
    return "\n".join([*lines, *_elsewhere(), *_clients(observations[CLIENT])])


def _summary(observations: Mapping[str, Observations]) -> Iterator[str]:
    """How many of the switches are seen in a release that has it and not in one that has not."""
    for part, name in ((CONSUMER, CONSUMER), (COORDINATOR, COORDINATOR), (SERVED, "consumer protocol")):
        of = observations[part]
        kinds = [{one for one in (SHOWN, ABSENT) if of.where(switch, one)} for switch in of.switches]
        yield (
            f"- Of {len(kinds)} switches of the {name}, {kinds.count({SHOWN, ABSENT})} are shown in some "
            f"releases and absent in others, {kinds.count({SHOWN})} shown in all, "
            f"{kinds.count({ABSENT})} absent in all."
        )


def _part(of: Observations) -> list[str]:
    heads = ["entry", "switch", "breaks", "by the catalogue", "shown in", "absent in", "so"]
    rows, notes = [], []
    for switch in of.switches:
        differing = list(of.differences(switch))
        rows.append((
            ", ".join(entry.id for entry in entries_of(switch)),
            f"`{switch}`", bugs.SHOWN[switch].clause,
            *map(of.spans, (of.shipped(switch), of.where(switch, SHOWN), of.where(switch, ABSENT))),
            "otherwise, see below" if differing else "as the catalogue says",
        ))  # fmt: skip
        for one in differing:
            reason = one.why or "**not explained**"
            notes.append(f"- `{switch}` is {one.seen} in {of.spans(one.releases)}: {reason}")
            stopped = of.found[switch, one.releases[0]].why
            notes += [f"  ({escaped(stopped)})"] if stopped else []
    lines = [*table(heads, rows), "Otherwise than the catalogue says:", "", *(notes or ["Nothing."]), ""]
    mixed = [run for run in SPELLED if run.beside and run.shown.switch in of.switches]
    if mixed:
        lines += ["In some runs members of other releases are there besides the one that is asked:", ""]
        for run in mixed:
            others = ", ".join(f"{name} of {release}" for name, release in run.beside.items())
            lines.append(f"- `{run.shown.switch}`, {others}: {run.why}")
        lines.append("")
    return lines


def _elsewhere() -> Iterator[str]:
    """Entries of Java and of the broker that no run of the group shows."""
    yield from ("## Not asked of a release by a run", "")
    for entry in CATALOGUE.values():
        java = entry.project in PROJECTS.values()
        if java and not any(switch in bugs.SHOWN for switch in entry.switches):
            yield f"- {entry.id}, {entry.title[0].lower()}{entry.title[1:]}: {_why_not(entry)}"
    yield ""


def _why_not(entry: Entry) -> str:
    how = list(bugs.shown_by(entry))
    checked = [what for _, kind, what in how if kind == "check"]
    if checked:
        return (
            f"one call of an assignor shows it, `rebalance check {checked[0]}`; what the assignors of each "
            "release do is in [the results](README.md)"
        )
    return escaped("; ".join(what for _, _, what in how)) or "it has no switch"


def _clients(of: Observations) -> list[str]:
    heads = ("entry", "switch", "breaks", "shown in", "absent in", "open in")
    rows = [
        (
            ", ".join(entry.id for entry in entries_of(switch)) or "-",
            f"`{switch}`", bugs.SHOWN[switch].clause,
            *(of.spans(of.where(switch, seen)) for seen in SEEN),
        )
        for switch in of.switches
    ]  # fmt: skip
    about = (
        "What the catalogue has of other clients only, or of none, asked of Java's consumer all the same "
        f"({', '.join(of.releases)}, with the coordinator of {of.other}). Where one shows, a bug of "
        "Java's own shows in the same way. *Open*: Kafka's coordinator does not elect the run's leader, or "
        "another bug of the release keeps the run from its end."
    )
    return ["## Bugs of other clients", "", about, "", *table(heads, rows)]
