"""A run of a machine step by step: what happens in its own words, what shows, who owns what afterwards.

The run is replayed without renaming anything, so the generations of a group are those that it would count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rebalance_verifier.model.machine import Event, Machine, Outcome, State, StepDetails, StepOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: what happens, what shows on the way (callbacks first of all), everybody afterwards.

    ``fault`` is true of what the environment does.
    """

    number: int
    event: Event
    fault: bool
    what: str
    seen: tuple[str, ...]
    owners: tuple[StepOwner, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One moment for who steps through a run, of whatever kind.

    ``label`` is its number (of moment 0, which is the start, "0"), ``what`` happens and ``seen`` shows on the
    way; ``parties`` is (name, one line) of everybody afterwards, in the same order in each moment.
    """

    label: str
    what: str
    seen: tuple[str, ...] = ()
    fault: bool = False
    parties: tuple[tuple[str, str], ...] = ()


def views(built: Machine, events: Sequence[Event]) -> Iterator[StepView]:
    """Yield the start of a run and each of its steps. Raises CannotHappenError as ``walked`` does."""
    before = built.initial[0]
    yield StepView(label="0", what="the start", parties=built.describe.parties(before))
    for number, (event, (after, outcome)) in enumerate(zip(events, built.replay(events), strict=True), 1):
        yield _view(built, number, before, event, after, outcome)
        before = after


def _view(
    built: Machine, number: int, before: State, event: Event, after: State, outcome: Outcome
) -> StepView:
    what, seen = built.describe.step(before, event, after, outcome.seen)
    fault, parties = built.by_name[event.action, event.who].fault, built.describe.parties(after)
    return StepView(label=f"{number}", what=what, seen=seen, fault=fault, parties=parties)


def walked(
    built: Machine, events: Sequence[Event], wanted: Callable[[int], bool] = lambda number: True
) -> Iterator[tuple[Step, StepDetails]]:
    """Yield the steps of a run whose number, from 1, is wanted, and what a drawing shows of each.

    Raises CannotHappenError when it comes to an event that is not enabled.
    """
    before = built.initial[0]
    for number, (event, (after, outcome)) in enumerate(zip(events, built.replay(events), strict=True), 1):
        if wanted(number):
            scene = before, event, after, outcome.seen
            what, seen = built.describe.step(*scene)
            fault, owners = built.by_name[event.action, event.who].fault, built.describe.owners(after)
            yield (
                Step(number=number, event=event, fault=fault, what=what, seen=seen, owners=owners),
                built.describe.details(*scene),
            )
        before = after


def steps(built: Machine, events: Sequence[Event]) -> tuple[Step, ...]:
    """Return the run of ``events`` from the start. Raises CannotHappenError."""
    return tuple(one for one, _ in walked(built, events))


def changes(step: Step, last: Step | None) -> list[str]:
    """Return the members that are not as they were after the step before, in words: of the first one those
    that own or have a generation."""
    old: dict[str, StepOwner] = {} if last is None else {owner.name: owner for owner in last.owners}
    return [
        f"{owner.name}{f' ({owner.life})' if owner.life else ''}: {owner_text(owner, old.get(owner.name))}"
        for owner in step.owners
        if (owner != old[owner.name] if owner.name in old else owner.owns or owner.generation is not None)
    ]


def owner_text(owner: StepOwner, old: StepOwner | None = None) -> str:
    """Return what a member owns, no longer owns, and its generation."""
    gone = " ".join(part for part in old.owns if part not in owner.owns) if old else ""
    generation = "no generation" if owner.generation is None else f"generation {owner.generation}"
    return f"owns {' '.join(owner.owns) or 'nothing'}{f', no longer {gone}' if gone else ''}, {generation}"


class SteppedRun:
    """A run that somebody goes through, forward and back; ``at`` is the view that is shown.

    With the machine and its events, other events than those of the run can be taken: the run goes on from
    there as it is taken, and ``left`` says after which step it was left.
    """

    def __init__(self, views: Sequence[StepView], built: Machine | None = None, events: Sequence[Event] = ()):
        self.views, self.events, self.at = list(views), list(events), 0
        self.left: int | None = None
        self._built = built

    def go(self, at: int) -> None:
        """Show the view of this number, or the nearest there is."""
        self.at = min(max(at, 0), len(self.views) - 1)

    def changed(self) -> dict[str, str]:
        """Of everybody who is not as he was before this step, what he was."""
        if not self.at:
            return {}
        now, before = (dict(self.views[at].parties) for at in (self.at, self.at - 1))
        return {name: before.get(name, "") for name in now if before.get(name) != now[name]}

    def choices(self) -> list[tuple[Event, StepView]]:
        """Return what can happen next, in a fixed order, and what would be shown then."""
        if self._built is None:
            return []
        built = self._built
        state = [built.initial[0], *(after for after, _ in built.replay(self.events[: self.at]))][-1]
        return [
            (event, _view(built, self.at + 1, state, event, built.apply(state, event, outcome), outcome))
            for event, outcome in built.outcomes(state)
        ]

    def take(self, event: Event, view: StepView) -> None:
        """Let one of the choices happen."""
        if self.events[self.at : self.at + 1] != [event]:
            self.left = self.at if self.left is None else min(self.left, self.at)
            self.events[self.at :], self.views[self.at + 1 :] = [event], [view]
        self.at += 1
