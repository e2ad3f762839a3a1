"""Which kinds of breaches are behind the scenarios of tasks that break a clause, one small one for each.

A kind of breach is the cause: which client loses what does not tell causes apart, as it does not for
partitions. So a list of known failures has ``task/11@standbys``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rebalance_verifier.gate.scenarios.player import Found, PlayedHistory
from rebalance_verifier.gate.scenarios.task_minimise import from_call, minimise
from rebalance_verifier.gate.search.causes.attribution import MAX_CAUSES, BreakingScenario, Cause, CauseFound
from rebalance_verifier.properties.assignors.clause import Clause
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario


def of_tasks(broken: BreakingScenario) -> TaskScenario:
    """Return its scenario, which is one of tasks."""
    assert isinstance(broken.scenario, TaskScenario)
    return broken.scenario


STARTS = 3
"""Scenarios of a kind from which a counterexample is made, the smallest first."""


@dataclass(slots=True, kw_only=True)
class TaskAttribution:
    """Finds out what is behind the scenarios that break ``clause``; its fields are those of
    ``Attribution``."""

    clause: Clause
    plays: Callable[[Sequence[TaskScenario]], Sequence[tuple[PlayedHistory, float]]]
    limit: float
    together: bool = False
    expected: Callable[[str], bool] = lambda key: False
    most: int = MAX_CAUSES
    late: Callable[[], bool] = lambda: False
    _left: float = 0.0
    _known: dict[tuple[str, str], PlayedHistory | None] = field(default_factory=dict)
    """How scenarios broke that were played since the last counterexample, None for those that did not."""

    def explain(self, broken: Sequence[BreakingScenario]) -> list[CauseFound]:
        """Return the causes behind what is ``broken``, each with a counterexample, the most frequent
        first."""
        kinds: dict[str, list[BreakingScenario]] = {}
        for one in broken:
            kinds.setdefault(one.found.breach.kind, []).append(one)
        found: list[CauseFound] = []
        for kind, shown in sorted(kinds.items(), key=lambda item: (-len(item[1]), item[0])):
            cause, starts = Cause(kind, ()), sorted(shown, key=lambda one: (one.scenario.size, one.number))
            first, small = starts[0], of_tasks(starts[0])
            if not self.expected(cause.key(self.clause, first.scenario.protocol)) and len(found) < self.most:
                made = [(self._small(one, kind), one) for one in starts[:STARTS]]
                small, first = min(made, key=lambda one: (one[0].size, one[1].number))
            found.append(CauseFound(cause=cause, broken=tuple(shown), small=small, first=first))
        return found

    def _small(self, start: BreakingScenario, kind: str) -> TaskScenario:
        """Return a scenario made small: from the round that breaks on, as long as that helps."""
        best = of_tasks(start)
        self._left = self.limit / STARTS
        self._known.clear()
        while True:
            begun = self._folded(best, kind)
            small = minimise(
                begun,
                lambda scenario: self._shown(scenario, kind) is not None,
                may_go_on=lambda: self._left > 0 and not self.late(),
                ahead=(lambda several: self._play_ahead(several, kind)) if self.together else None,
            )
            if small.size >= best.size:
                return small if small.size == best.size else best
            best = small

    def _folded(self, scenario: TaskScenario, kind: str) -> TaskScenario:
        """Return the scenario that begins as late as it can and still breaks."""
        record = self._shown(scenario, kind)
        if record is None:
            return scenario
        for number in range(len(record.calls), 1, -1):
            later = from_call(record, number)
            for shorter in (replace(later, rounds=later.rounds[:1]), later):
                if self._shown(shorter, kind) is not None:
                    return shorter
        return scenario

    def _play_ahead(self, several: Sequence[TaskScenario], kind: str) -> None:
        """Play scenarios all at once that are about to be looked at, as far as they are not known."""
        if self._left <= 0 or self.late():
            return
        new = {key: s for s in several if (key := (kind, repr(s))) not in self._known}
        if len(new) > 1:
            for key, (record, cost) in zip(new, self.plays([*new.values()]), strict=True):
                self._left -= cost / len(new)  # of several at once one is needed
                self._known[key] = record if self._breaks(record, kind) else None

    def _shown(self, scenario: TaskScenario, kind: str) -> PlayedHistory | None:
        """Return the play of a scenario that breaks the clause in this kind; None once the limit is
        reached."""
        key = kind, repr(scenario)
        if key not in self._known:
            if self._left <= 0 or self.late():
                return None
            [(record, cost)] = self.plays([scenario])
            self._left -= cost
            self._known[key] = record if self._breaks(record, kind) else None
        return self._known[key]

    def _breaks(self, record: PlayedHistory, kind: str) -> bool:
        found: Found | None = record.breach_of(self.clause.id)
        return found is not None and found.breach.kind == kind
