"""Ways to upgrade, as text and as JSON: of which releases, the verdict on each path, the runs, the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_verifier.base.text import count, fold, page_width
from rebalance_verifier.explore.groups.bugs import two_owners
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.upgrade_paths import Path
from rebalance_verifier.explore.groups.upgrades import (
    JudgedHop,
    UpgradeOutcome,
    UpgradeVerdict,
    joined_plan,
    searched,
)
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED, broker, client, group_options, group_title
from rebalance_verifier.model.group.setup import MIGRATION
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.report.terminal.exploration import run_lines
from rebalance_verifier.traces.runs import run_id, step_out, steps_of


@dataclass(frozen=True, kw_only=True)
class UpgradeReport:
    """A finished ``rebalance upgrade``. ``saved``: path -> the run that shows what is wrong with it;
    ``paths``: id of a run -> its file; ``members`` and ``partitions`` as they were asked for."""

    clients: str
    broker: str
    members: int
    partitions: int
    judged: tuple[JudgedHop, ...]
    saved: Mapping[str, SavedRun | None]
    paths: Mapping[str, str]

    @property
    def title(self) -> str:
        """Return from where to where it goes."""
        first, *others = (one.hop for one in self.judged)
        via = f" by way of {', '.join(hop.old for hop in others)}" if others else ""
        return f"{first.old}{via} to {(others or [first])[-1].new}"

    @property
    def about(self) -> str:
        """Return of which coordinator and clients it speaks."""
        return group_title([self.clients], self.broker)

    @property
    def other(self) -> str:
        """Return how to ask for the other coordinator and clients."""
        return group_options([self.clients], self.broker)

    @property
    def outcomes(self) -> tuple[UpgradeOutcome, ...]:
        """Return what came of every path."""
        return tuple(outcome for one in self.judged for outcome in one.outcomes)

    @property
    def plan(self) -> tuple[str, ...]:
        """Return what to do, in order; nothing where there is no safe way."""
        return joined_plan(self.judged)

    @property
    def plan_title(self) -> str:
        """Return the names of the paths that the plan takes, or why there is none."""
        if self.plan:
            return f"plan: {', then '.join(one.safe.path.name for one in self.judged if one.safe)}"
        open_ = next((one for one in self.judged if one.safe is None), None)
        some = f"the paths from {open_.hop.title}" if open_ and len(self.judged) > 1 else "these paths"
        known = "known to be " * (open_ is not None and open_.verdict is UpgradeVerdict.UNKNOWN)
        return f"no plan: none of {some} is {known}safe"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what those who follow the plan have to know besides."""
        return (*(note for one in self.judged for note in one.hop.notes), *self._known)

    @property
    def _known(self) -> Iterator[str]:
        """Yield by which bugs a partition can have two owners, whichever path is taken: a search without
        faults meets few of them."""
        paths = [path for one in self.judged for path in one.hop.paths]
        protocols = {stage.group_protocol for path in paths for stage in path.stages}
        if any(path.converts for path in paths):
            protocols.add(MIGRATION)
        elif all(stage.eager for path in paths for stage in path.stages):
            return
        found = {
            profile.title: ids
            for profile in (client(self.clients), broker(self.broker))
            if (ids := two_owners(profile, protocols))
        }
        if found:
            of_each = "; ".join(f"{', '.join(ids)} of {title}" for title, ids in found.items())
            first = next(iter(found.values()))[0]
            yield (
                f"by known bugs a partition can have two owners, whichever path is taken: {of_each} "
                f"(`rebalance bugs {first}` has the story of the first)"
            )

    @property
    def size(self) -> str:
        """Return the size of the group that was searched, and of the one that was asked for."""
        sizes = [
            f"{count(members, 'member')}, {count(partitions, 'partition')}"
            for members, partitions in (
                searched(self.members, self.partitions),
                (self.members, self.partitions),
            )
        ]
        return sizes[0] if sizes[0] == sizes[1] else f"{sizes[0]}, in place of {sizes[1]}"

    @property
    def any_size(self) -> tuple[str, ...]:
        """Return what is proved of groups of any size, of the paths that the plan takes, or of all."""
        chosen = [one.safe for one in self.judged if one.safe] if self.plan else self.outcomes
        return tuple(dict.fromkeys(self._proved(one.path) for one in chosen))

    def _proved(self, path: Path) -> str:
        if path.converts and path.rollout == "stopped":
            return (
                f"{path.name}: no theorem is about a group that stops in between; `rebalance prove` and "
                "`rebalance prove --group-protocol consumer` are about the groups before and after"
            )
        if path.stages[0].upgrade_from:
            return f"{path.name}: nothing is proved where an application of 2.3 or older withholds nothing"
        if not path.agrees and not path.converts:
            return f"{path.name}: members whose lists share no assignor are turned away in any group"
        if path.converts:
            theorem = (
                "no partition has two owners while the group is converted, if its members are dynamic and "
                "its coordinator does not fail over; whether it settles is open (`rebalance prove "
                "--group-protocol migration`)"
            )
        else:
            theorem = (
                "no member is turned away and no partition has two owners, if the assignor keeps its "
                "contract (`rebalance prove --theorem upgrades --theorem exclusive-ownership`)"
            )
        if self.clients == self.broker == AS_SPECIFIED:
            return f"{path.name}: proved as specified: {theorem}"
        return (
            f"{path.name}: proved as specified, not of any release: {theorem}. Of {self.about} only the "
            "group that was searched is known"
        )


def render(report: UpgradeReport, *, color: bool = False, page: str = "") -> str:
    """Return the whole report; ``page``: the HTML report."""
    lines = fold(f"from {report.title}: {report.about}", page_width())
    lines += labelled("other", report.other)
    lines += [*labelled("searched", f"{report.size}, every interleaving"), ""]
    width = max(len(outcome.path.name) for outcome in report.outcomes)
    for one in report.judged:
        lines += [f"  {one.hop.title}"] if len(report.judged) > 1 else []
        for outcome in one.outcomes:
            lines += _outcome(outcome, width, color=color)
    for outcome in report.outcomes:
        found = report.saved[outcome.path.name]
        if found is None:
            continue
        lines += ["", f"{outcome.path.name}: {found.clause}, {found.sentence}", "", *run_lines(found), ""]
        if (name := run_id(found)) in report.paths:
            lines += [f"  replay   rebalance replay {name}", f"  trace    {report.paths[name]}"]
    lines += ["", report.plan_title]
    lines += [f"  {number}. {step}" for number, step in enumerate(report.plan, 1)]
    for note in report.notes:
        lines += labelled("note", note)
    lines += ["", "groups of any size:", *(line for text in report.any_size for line in labelled("", text))]
    return "\n".join([*lines, *(["", f"report: {page}"] if page else [])])


def _outcome(outcome: UpgradeOutcome, width: int, *, color: bool) -> Iterator[str]:
    states = f"{count(outcome.search.unreduced, 'state')}"
    cost = "a quiet run does not settle"
    if outcome.rebalances is not None and outcome.pauses is not None:
        cost = f"{count(outcome.rebalances, 'rebalance')}, {count(outcome.pauses, 'partition-pause')}"
    word = outcome.verdict.value.upper()
    painted = _paint(f"{word:<16}", outcome.verdict is UpgradeVerdict.SAFE, color)
    yield f"  {painted} {outcome.path.name:<{width}}  {cost}; {states}"
    yield f"  {'':<16} {outcome.path.sentence}"
    for line in remarks(outcome):
        yield f"  {'':<16} {line}"


def remarks(outcome: UpgradeOutcome) -> Iterator[str]:
    """Say what breaks without an upgrade too, and what the group was too small to show."""
    if outcome.besides:
        yield f"breaks {', '.join(outcome.besides)}, as a restart that changes nothing does"
    if outcome.anyway:
        yield "a restart that changes nothing breaks it too"
    group, path = outcome.setup, outcome.path
    if not path.shown_by(len(group.consumers), group.exist.bit_count()):
        members, partitions = path.shows_with
        yield f"known to break in a larger group: --members {members} --partitions {partitions}"


def _paint(word: str, safe: bool, painted: bool) -> str:
    return f"\x1b[{'32;1' if safe else '31;1'}m{word}\x1b[0m" if painted else word


def data(report: UpgradeReport) -> dict[str, Any]:
    """Return the report as plain JSON values."""
    members, partitions = searched(report.members, report.partitions)
    return {
        "schema": 1,
        "from": report.judged[0].hop.old,
        "to": report.judged[-1].hop.new,
        "about": report.about,
        "clients": report.clients,
        "broker": report.broker,
        "members": report.members,
        "partitions": report.partitions,
        "searched": {"members": members, "partitions": partitions},
        "any_size": list(report.any_size),
        "plan": list(report.plan),
        "notes": list(report.notes),
        "paths": [_row(one, outcome, report) for one in report.judged for outcome in one.outcomes],
    }


def _row(one: JudgedHop, outcome: UpgradeOutcome, report: UpgradeReport) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": outcome.path.name,
        "from": one.hop.old,
        "to": one.hop.new,
        "sentence": outcome.path.sentence,
        "verdict": outcome.verdict.value,
        "states": outcome.search.unreduced,
        "rebalances": outcome.rebalances,
        "partition_pauses": outcome.pauses,
        "plan": list(outcome.path.plan),
        "remarks": list(remarks(outcome)),
    }
    found = report.saved[outcome.path.name]
    if found is not None:
        row["clause"], row["what"] = found.clause, found.sentence
        name = run_id(found)
        row["trace"] = {"id": name, "path": report.paths.get(name, "")}
        row["steps"] = [step_out(step) for step in steps_of(found)]
    return row
