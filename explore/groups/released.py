"""Runs for Kafka's own code, where the smallest run that shows a switch cannot be forced on a release.

A release has other bugs and older metadata besides, and does some things at once that the model does in two
steps. So a switch may have further runs here, each spelled out; the model allows each and says that it breaks
its clause (``explore.groups.runs.play``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from rebalance_verifier.base.tables import table
from rebalance_verifier.explore.groups.bugs import SHOWN, Shown
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.model.machine import NOBODY, Event


@dataclass(frozen=True, kw_only=True)
class SpelledRun:
    """The ``steps`` of a run in the group of ``shown``: ``A join``, or ``join phase ends / CHOICE``.

    ``why``: what it has that the smallest has not. ``loop`` as in SavedRun. ``beside``: by letter the members
    whose release is not the one that is asked.
    """

    shown: Shown
    why: str
    steps: tuple[str, ...]
    loop: int | None = None
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def saved(self) -> SavedRun:
        """As a run to be played."""
        return SavedRun(
            setup=self.shown.setup(),
            clause=self.shown.clause,
            events=tuple(map(_event, self.steps)),
            loop=self.loop,
            origin={
                "scenario": self.shown.scenario,
                "switches": [self.shown.switch, *self.shown.also],
                **({"beside": self.beside} if self.beside else {}),
            },
        )


def _event(text: str) -> Event:
    step, _, choice = text.partition(" / ")
    who, _, action = step.partition(" ")
    if len(who) == 1:
        return Event(action, ord(who) - ord("A"), choice)
    return Event(step, NOBODY, choice)


def _spelled() -> Iterator[SpelledRun]:
    groups = {one.name for one in fields(Shown)}
    for switch, rows in table(__file__).items():
        for row in rows:
            group = {name: value for name, value in row.items() if name in groups}
            rest = {name: value for name, value in row.items() if name not in groups}
            group = {"clause": SHOWN[switch].clause, **group}
            yield SpelledRun(shown=Shown(switch=switch, **group), **rest)


SPELLED = tuple(_spelled())
"""All of them, by switch in the order of the file."""


def runs_for_code(switch: str) -> tuple[SavedRun, ...]:
    """Return the runs that show a switch, the smallest first, as `reproduce` finds it."""
    smallest = reproduce(SHOWN[switch])
    others = tuple(one.saved for one in SPELLED if one.shown.switch == switch)
    return others if smallest is None else (smallest, *others)
