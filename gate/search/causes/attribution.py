"""Which causes are behind the scenarios that break a clause, and one small counterexample for each.

A cause is what must be in the call that breaks: the history that leads there is folded into the claims that
its members arrive with, and whatever the clause breaks without is taken out. So a claim that outlived a
missed answer is one cause, however the answer was missed. The counterexample of a cause comes from the most
real scenario that shows it, and is not made less real while it is made small.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.minimise import minimise
from rebalance_verifier.gate.scenarios.player import Found, PlayedHistory, from_round
from rebalance_verifier.gate.scenarios.preconditions import (
    BY_NAME,
    TABLE,
    Realism,
    ablated,
    is_within,
    present,
    reduced,
)
from rebalance_verifier.gate.search.causes.random_search import seek, thin_out, wander
from rebalance_verifier.gate.search.causes.random_search import small as is_small
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario

STORY = frozenset({"claims"})
"""What is in most scenarios once their history is folded, and names no cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Preconditions that a clause needs to break: a ``kind`` of breach, and the names of the inputs that must
    stay."""

    kind: str
    features: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, features: Iterable[str]) -> Cause:
        """Return the cause with these features, in the order of the table, the most real first."""
        kept = set(features) - STORY
        return cls(kind, tuple(ablation.name for ablation in reversed(TABLE) if ablation.name in kept))

    @property
    def id(self) -> str:
        """Its name: ``plain`` where the clause breaks without a special precondition."""
        return "+".join((*filter(None, (self.kind,)), *self.features)) or "plain"

    def key(self, clause: Clause, protocol: RebalanceProtocol) -> str:
        """Name it among the causes of all clauses, as in a list of known failures."""
        return f"{clause.id}-{protocol}@{self.id}"

    def sentence(self, protocol: RebalanceProtocol) -> str:
        """Return what must stay."""
        sentences = (BY_NAME[name].sentence_in(protocol) for name in self.features)
        return "; ".join(sentences) or "no special precondition"


def realism(scenario: AnyScenario) -> Realism:
    """Return how real the least real input of a scenario is; what is drawn of tasks is what happens."""
    if isinstance(scenario, TaskScenario):
        return Realism.HONEST
    found = (BY_NAME[name].realism_in(scenario.protocol) for name in present(scenario))
    return max(found, default=Realism.HONEST)


@dataclass(frozen=True, slots=True)
class BreakingScenario:
    """A scenario with this ``number`` that breaks a clause, as it was ``found``."""

    scenario: AnyScenario
    found: Found
    number: int

    @property
    def of_partitions(self) -> Scenario:
        """Return the scenario, which is one of partitions."""
        assert isinstance(self.scenario, Scenario)
        return self.scenario

    @property
    def order(self) -> tuple[object, ...]:
        """Order those first that have the fewest kinds of input: they name causes at once."""
        return len(present(self.of_partitions)), self.scenario.size, self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseFound:
    """A ``cause`` with the scenarios that show it, and ``small``, made of ``first``, which does so too."""

    cause: Cause
    broken: tuple[BreakingScenario, ...]
    small: AnyScenario
    first: BreakingScenario

    @property
    def order(self) -> tuple[object, ...]:
        """The most real first, then the plainest and smallest."""
        return realism(self.small), len(self.cause.features), self.small.size, self.cause.id


LEGIBLE, STARTS, STARTS_AT_RANDOM = (3, 8), 4, 2
"""Members and partitions that a counterexample may have; a larger one is made once more, from another
scenario of its cause, so many times in all, and where it is changed at random as well."""

LARGE = (4, 16)
"""What is larger is changed at random first, and taken apart thing by thing then."""

LONGER, ROAMING = 2, 3
"""What changes at random may cost, in limits: for a counterexample that is still not legible, and for all of
a clause together. They cost most, and what is minimal is so without them."""

SOUGHT = 12
"""Scenarios of a milder kind of breach from which a graver one is looked for."""

GRAVER = {"late": "never"}
"""Kinds of breaches that are a step on the road to another one."""

MAX_DIGESTS = 256

MAX_CAUSES = 6
"""Causes of one clause that are made small and shown; the others are counted."""


NO_ANSWER = frozenset({FailureKind.TIMEOUT, FailureKind.CRASH, FailureKind.MEMORY, FailureKind.GARBAGE})
"""Kinds of breaches that may come whatever is asked, and take long to come, or a new process."""


def plainest(protocol: RebalanceProtocol) -> Scenario:
    """Return the group of which the least can be said: one member, one topic, one partition."""
    member = ScenarioMember(id="A", topics=("t",))
    return Scenario(protocol=protocol, topics={"t": ((),)}, members=(member,), rounds=())


@dataclass(slots=True, kw_only=True)
class Attribution:
    """Finds out what is behind the scenarios that break ``clause``.

    ``plays`` plays scenarios for the clause and says what each costs, a play being 1. ``limit`` is what
    grouping may cost, and again what making one counterexample small may cost. ``together``: many scenarios
    take hardly longer than one, so that some may be played in vain; this changes no result. ``expected``:
    whether a cause, as ``Cause.key`` writes it, needs no small counterexample. ``most``: so many causes are
    made small.
    """

    clause: Clause
    plays: Callable[[Sequence[Scenario]], Sequence[tuple[PlayedHistory, float]]]
    limit: float
    together: bool = False
    expected: Callable[[str], bool] = lambda key: False
    most: int = MAX_CAUSES
    late: Callable[[], bool] = lambda: False
    """Whether nothing is to be played any more: what was found by then is the result."""
    _left: float = 0.0
    _roam: float = field(init=False)
    """What of the changes at random is left."""
    _known: dict[tuple[str, bytes], bool] = field(default_factory=dict)
    """Which scenarios break, of those that were played since the last counterexample."""
    _met: dict[str, tuple[Scenario, Found]] = field(default_factory=dict)
    """Kinds of breaches that were not looked for when they were seen, each with the first scenario."""
    _real: dict[tuple[bytes, Realism], bool] = field(default_factory=dict)
    """Whether scenarios that were looked at since then are so real."""
    _digests: dict[int, tuple[Scenario, bytes]] = field(default_factory=dict)
    """The digests of those that were looked at just now, by identity: each is asked for several times."""
    _played: dict[bytes, tuple[PlayedHistory, float]] = field(default_factory=dict)
    """What was played before it was needed."""

    def __post_init__(self) -> None:
        self._roam = self.limit * ROAMING

    @property
    def wanders(self) -> bool:
        """Check whether scenarios are changed at random too: where a group does not settle its things fit
        each other. Elsewhere they can go alone, and the time is saved."""
        return self.clause.scope is Scope.HISTORY and self.clause.level is Level.LIVENESS

    @property
    def starts(self) -> int:
        """Scenarios of a cause from which its counterexample is made, at most."""
        return STARTS_AT_RANDOM if self.wanders else STARTS

    def explain(self, broken: Sequence[BreakingScenario]) -> list[CauseFound]:
        """Return the causes behind what is ``broken``, each with a counterexample, the most real first."""
        found: dict[Cause, CauseFound] = {}
        causes: list[CauseFound] = []
        if (always := self._always(broken)) is not None:
            found[always.cause] = always
            broken = [one for one in broken if one.found.breach.kind != always.cause.kind]
        groups = self._groups(broken)
        sought = dict(self._graver(groups))
        for cause, shown in [*((cause, []) for cause in sought if cause not in dict(groups)), *groups]:
            starts = sorted(shown, key=lambda one: (realism(one.scenario), *one.order))
            first, *others = [*([sought[cause]] if cause in sought else ()), *starts][: self.starts]
            if self.expected(cause.key(self.clause, first.scenario.protocol)):
                causes.append(CauseFound(cause=cause, broken=tuple(shown), small=first.scenario, first=first))
            elif len(found) < self.most:
                small = self._add(found, cause, first, shown)
                while others and not is_small(small, LEGIBLE):
                    small = self._add(found, cause, others.pop(0), ())
        for kind in sorted(self._met.keys() - {cause.kind for cause in found})[: self.most - len(found)]:
            scenario, breach = self._met[kind]
            self._add(found, Cause(kind, ()), BreakingScenario(scenario, breach, broken[0].number), ())
        return sorted((*found.values(), *causes), key=lambda one: one.order)

    def _always(self, broken: Sequence[BreakingScenario]) -> CauseFound | None:
        """Return what has no answer even for the plainest group. Nothing else is behind it, and to look for
        that could take as long as so many calls that hang."""
        first = min(broken, key=lambda one: one.order)
        kind = first.found.breach.kind
        if kind not in NO_ANSWER:
            return None
        small = plainest(first.scenario.protocol)
        self._left = self.limit
        if not self._breaks(small, kind):
            return None
        shown = tuple(one for one in broken if one.found.breach.kind == kind)
        return CauseFound(cause=Cause(kind, ()), broken=shown, small=small, first=first)

    def _graver(
        self, groups: Sequence[tuple[Cause, Sequence[BreakingScenario]]]
    ) -> Iterator[tuple[Cause, BreakingScenario]]:
        """Yield what a milder breach becomes when its scenario is changed at random, and no less real: looked
        for where all that is known of the graver kind is less real than the milder one, or of many
        members."""
        for cause, shown in groups:
            if not self.wanders or (kind := GRAVER.get(cause.kind)) is None:
                continue
            known = [b.of_partitions for other, those in groups if other.kind == kind for b in those]
            most = min(realism(one.scenario) for one in shown)
            if any(realism(s) <= most and len(s.members) <= LEGIBLE[0] for s in known):
                continue
            self._left = self.limit
            starts = sorted(shown, key=lambda one: (realism(one.scenario), one.scenario.size[1]))[:SOUGHT]
            scenario = self._sought([one.of_partitions for one in starts], kind)
            graver = Cause(kind, cause.features)
            if scenario is not None and not self.expected(graver.key(self.clause, scenario.protocol)):
                shows = self._seen(scenario, kind)
                if shows is not None:
                    yield graver, BreakingScenario(scenario, shows[1], starts[0].number)
                return

    def _sought(self, starts: Sequence[Scenario], kind: str) -> Scenario | None:
        """Return a scenario with no other inputs that breaks in a graver ``kind``: longer is nearer."""
        most = realism(starts[0])
        inputs = STORY.union(*(present(s) for s in starts if realism(s) == most))

        def measured(several: Sequence[Scenario]) -> list[float | None]:
            fit = {i: s for i, s in enumerate(several) if not self.late() and self._fits(s, most, inputs)}
            rounds: list[float | None] = [None] * len(several)
            played = self.plays([*fit.values()]) if fit else ()
            for number, (record, cost) in zip(fit, played, strict=True):
                self._left -= cost
                broken = record.breach_of(self.clause.id)
                rounds[number] = math.inf if broken and broken.breach.kind == kind else len(record.calls)
            self._left -= 1  # also where nothing fits
            return rounds

        return seek(starts, measured, LEGIBLE[0], may_go_on=lambda: self._left > 0 and not self.late())

    def _add(
        self,
        found: dict[Cause, CauseFound],
        cause: Cause,
        first: BreakingScenario,
        shown: Sequence[BreakingScenario],
    ) -> Scenario:
        """Make the counterexample of a cause, which may turn out to be one that has been ``found``."""
        self._left = self.limit
        self._known.clear()
        self._real.clear()
        small = self._small(first.of_partitions, cause.kind)
        self._left = self.limit
        cause = self._cause_of(small, cause.kind) or cause
        one = CauseFound(cause=cause, broken=tuple(shown), small=small, first=first)
        if (same := found.get(cause)) is not None:
            best = min(same, one, key=lambda each: each.order)
            one = replace(best, broken=(*same.broken, *one.broken))
        found[cause] = one
        return small

    def _groups(self, broken: Sequence[BreakingScenario]) -> list[tuple[Cause, list[BreakingScenario]]]:
        """Return what is ``broken`` by cause, as much as the limit allows; the most real causes first."""
        groups: dict[Cause, list[BreakingScenario]] = {}
        self._left = self.limit
        for one in sorted(broken, key=lambda one: one.order):
            if self._left <= 0 or self.late():
                break
            known = sorted(groups, key=lambda cause: (len(cause.features), cause.id))
            cause = self._cause_of(one.of_partitions, one.found.breach.kind, known)
            if cause is not None:
                groups.setdefault(cause, []).append(one)

        def order(group: tuple[Cause, list[BreakingScenario]]) -> tuple[object, ...]:
            cause, shown = group
            return min(realism(one.scenario) for one in shown), len(cause.features), cause.id

        return sorted(groups.items(), key=order)

    def _cause_of(self, scenario: Scenario, kind: str, known: Iterable[Cause] = ()) -> Cause | None:
        """Return what it takes ``scenario`` to break: one of the ``known`` causes, if that is enough; None if
        it does not break when it is played again."""
        folded = self._folded(scenario, kind)
        if folded is None:
            return None
        features = present(folded) | STORY
        for cause in known:
            kept = STORY.union(cause.features)
            if cause.kind != kind or not kept <= features:
                continue
            if kept == features or self._breaks(reduced(folded, kept), kind):
                return cause
        return Cause.of(kind, present(ablated(folded, lambda s: self._breaks(s, kind), STORY)))

    def _folded(self, scenario: Scenario, kind: str) -> Scenario | None:
        """Return the scenario that begins as late as it can and still breaks; None if it does not break at
        all."""
        if (shown := self._seen(scenario, kind)) is None:
            return None
        record, found = shown
        settling = len(scenario.rounds) + 1 if self.clause.scope is Scope.HISTORY else 1
        for number in dict.fromkeys((found.round, settling, 1)):
            if number <= len(record.calls):
                later = from_round(record, number)
                if number >= len(scenario.rounds):
                    later = replace(later, rounds=())
                if self._breaks(later, kind):
                    return later
        return scenario

    def _small(self, start: Scenario, kind: str) -> Scenario:
        """``start`` made small, and no less real: from the round that breaks, as long as that helps."""
        most = realism(start)

        def breaks(candidate: Scenario) -> bool:
            return self._fits(candidate, most) and self._breaks(candidate, kind)

        def going_on() -> bool:
            return self._left > 0 and not self.late()

        def ahead(several: Sequence[Scenario]) -> None:
            self._play_ahead([s for s in several if self._fits(s, most)], kind)

        def breaking(several: Sequence[Scenario]) -> list[bool]:
            """No other input than there is, so that the cause stays. What needs no play costs as much, or
            changes that lead nowhere would be made for ever."""
            inputs, left = present(best) | STORY, self._left
            fit = [self._fits(s, most, inputs) for s in several]
            self._play_ahead([s for s, fits in zip(several, fit, strict=True) if fits], kind)
            broken = [fits and self._breaks(s, kind) for s, fits in zip(several, fit, strict=True)]
            self._left -= len(several) * (self._left == left)
            return broken

        def roamed(start: Scenario, enough: tuple[int, int], cost: float) -> Scenario:
            """Return what changes at random make of a scenario, as long as that costs no more."""
            self._left = allowed = min(self._roam, cost)
            found = wander(start, breaking, enough=enough, may_go_on=going_on)
            self._roam -= allowed - max(0.0, self._left)
            self._left = self.limit
            return found

        best, longer = ablated(start, breaks, STORY), LONGER
        if self.wanders and not is_small(best, LARGE):
            best = roamed(thin_out(best, breaking, LEGIBLE[0]), LARGE, self._left)
        while True:
            most = realism(best)
            later = self._folded(best, kind)
            begin = later if later is not None and realism(later) <= most else best
            small = minimise(begin, breaks, may_go_on=going_on, ahead=ahead if self.together else None)
            if small.size < best.size:
                best = small
            elif longer and self.wanders and not is_small(best, LEGIBLE):
                best, longer = roamed(best, LEGIBLE, self.limit * longer), 0
            else:
                return best

    def _fits(self, scenario: Scenario, most: Realism, inputs: frozenset[str] | None = None) -> bool:
        """Check whether a scenario is no less real than ``most``, and has no more than these ``inputs``."""
        if most is Realism.UNREAL and inputs is None:
            return True
        key = self._digest(scenario), most
        if key not in self._real:
            self._real[key] = is_within(scenario, most)
        return self._real[key] and (inputs is None or present(scenario) <= inputs)

    def _play_ahead(self, several: Sequence[Scenario], kind: str) -> None:
        """Play scenarios all at once that are about to be looked at, as far as they are not known."""
        if not self.together or self._left <= 0 or self.late():
            return
        keyed = {self._digest(s): s for s in several}
        new = {key: s for key, s in keyed.items() if (kind, key) not in self._known}
        if len(new) > 1:
            self._played = dict(zip(new, self.plays([*new.values()]), strict=True))

    def _breaks(self, scenario: Scenario, kind: str) -> bool:
        """Check whether a scenario breaks the clause in this kind; not so once the limit is reached."""
        key = (kind, self._digest(scenario))
        if key not in self._known:
            if self._left <= 0 or self.late():
                return False
            self._known[key] = self._seen(scenario, kind) is not None
        return self._known[key]

    def _seen(self, scenario: Scenario, kind: str) -> tuple[PlayedHistory, Found] | None:
        """Return the play of a scenario that breaks the clause in this kind; None once it is late."""
        if self.late():
            return None
        key = self._digest(scenario)
        record, cost = self._played.pop(key) if key in self._played else self.plays([scenario])[0]
        self._left -= cost
        broken = record.breach_of(self.clause.id)
        if broken is None:
            return None
        if broken.breach.kind == kind:
            return record, broken
        self._met.setdefault(broken.breach.kind, (scenario, broken))
        return None

    def _digest(self, scenario: Scenario) -> bytes:
        known = self._digests.get(id(scenario))
        if known is None:
            if len(self._digests) >= MAX_DIGESTS:
                self._digests.clear()
            known = scenario, hashlib.sha256(repr(scenario).encode()).digest()
            self._digests[id(scenario)] = known
        return known[1]
