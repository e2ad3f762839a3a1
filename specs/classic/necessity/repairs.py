"""The protocol as shipped, theorem by theorem: proved, refuted by a run, or open; and what to mend.

A *repair* of a theorem is a set of variations without which it is proved, with all that it rests upon, and
all others as shipped. First those are mended that break it alone, each with all others mended, along a known
run. Where they will not do, all is mended, and then one after the other is left out if it can be. That is of
the proof; that the protocol itself needs a repair is shown by runs: with all the rest of the repair mended,
and all else as shipped, what was to be proved still breaks, on the executable model too. Whether another
repair does without what is needed so is not known: variations need not add up.

Where an invariant fails, a theorem may still follow from those that remain (``weaker``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.specs.classic.necessity.examine import Variation, counterexample, replay_of
from rebalance_verifier.specs.classic.necessity.replay import Besides, Replay, ReplayError
from rebalance_verifier.specs.classic.necessity.shipped import ShippedProtocol
from rebalance_verifier.specs.classic.proof import proof
from rebalance_verifier.specs.logic.bounded import SpecRun
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.limit import LIMIT
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict, Spread, in_turn, prove, worst
from rebalance_verifier.specs.logic.specification import ProofCase, Theorem
from rebalance_verifier.specs.logic.theorems import INVARIANTS, chosen

Mended = frozenset[str]
"""Names of variations that are left out."""

POSSIBILITY = "possibility"
WHOLE = ("upgrades", "convergence")
"""Theorems that are not tried with fewer invariants."""


@dataclass(frozen=True, kw_only=True)
class ShippedRun:
    """A run of the protocol as shipped but for what is ``mended``, along the path of a ``variation``, that
    ``breaks`` theorems."""

    variation: str
    mended: tuple[str, ...]
    breaks: tuple[str, ...]
    run: SpecRun
    replay: Replay


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Variations to mend. ``needed`` are those of which a run shows that the others do not do."""

    mended: tuple[str, ...]
    needed: Mapping[str, ShippedRun] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShippedTheorem:
    """Outcome of a theorem about the protocol as shipped.

    ``failed`` are the obligations that are not proved, its own and those of what it rests upon;
    ``left_out`` the invariants that do not hold and that it does without.
    """

    theorem: Theorem
    verdict: ProofVerdict
    failed: tuple[ProofOutcome, ...] = ()
    left_out: tuple[str, ...] = ()
    run: ShippedRun | None = None
    repair: Repair | None = None


@dataclass(frozen=True, kw_only=True)
class ShippedFindings:
    """Outcomes of all theorems in one kind of group; ``idle``: actions not known to be possible."""

    protocol: ShippedProtocol
    theorems: tuple[ShippedTheorem, ...]
    idle: tuple[str, ...]
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class ShippedProof:
    """Findings about some releases, in each kind of group that was tried: one at least."""

    releases: tuple[str, ...]
    findings: tuple[ShippedFindings, ...]
    limit: int

    @property
    def groups(self) -> tuple[tuple[str, ShippedFindings], ...]:
        """The kinds of groups by the name of their members."""
        return tuple((one.protocol.members, one) for one in self.findings)

    @property
    def interrupted(self) -> bool:
        """Check whether not all of it is there."""
        return any(one.interrupted for one in self.findings)

    @property
    def verdict(self) -> ProofVerdict:
        """Of all theorems in both kinds of groups."""
        found = [one.verdict for findings in self.findings for one in findings.theorems]
        return worst([*found, *([ProofVerdict.UNKNOWN] if self.interrupted else [])])

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.of(self.verdict.judgement, interrupted=self.interrupted)


def examine_shipped(
    protocol: ShippedProtocol,
    limit: int = LIMIT,
    spread: Spread = in_turn,
    report: Callable[[int], None] = lambda done: None,
    names: Collection[str] = (),
) -> ShippedFindings:
    """Return all theorems about the protocol, or those of these ``names`` and what they rest upon.

    ``report`` gets how many obligations are done; Ctrl-C ends it with what is known by then. Raises
    ValueError for a theorem that is not there.
    """
    bench = _Bench(protocol, limit, spread, report)
    every = chosen(bench.theorems(frozenset()).values(), names)
    wanted = [theorem.name for theorem in every if theorem.name != POSSIBILITY]
    found: list[ShippedTheorem] = []
    idle: tuple[str, ...] = ()
    try:
        idle = bench.idle()
        for theorem in wanted:
            found.append(bench.judged(theorem))  # noqa: PERF401, what is found stays if it is interrupted
    except KeyboardInterrupt:
        return ShippedFindings(protocol=protocol, theorems=tuple(found), idle=idle, interrupted=True)
    return ShippedFindings(protocol=protocol, theorems=tuple(found), idle=idle)


class _Bench:
    """Theorems about a protocol with more or less of it mended. What equals is proved once."""

    def __init__(
        self, protocol: ShippedProtocol, limit: int, spread: Spread, report: Callable[[int], None]
    ) -> None:
        self._protocol, self._limit, self._spread, self._report = protocol, limit, spread, report
        self._outcomes: dict[tuple[object, ...], ProofOutcome] = {}
        self._made: dict[tuple[Mended, frozenset[str]], dict[str, Theorem]] = {}
        self._protocols: dict[Mended, ShippedProtocol] = {}
        self._runs: dict[tuple[str, Mended], ShippedRun | None] = {}

    def protocol(self, mended: Mended) -> ShippedProtocol:
        if mended not in self._protocols:
            self._protocols[mended] = self._protocol.mended(mended)
        return self._protocols[mended]

    def theorems(self, mended: Mended, dropped: frozenset[str] = frozenset()) -> dict[str, Theorem]:
        """Return all theorems by name, without the invariants that are ``dropped``."""
        if (mended, dropped) not in self._made:
            protocol = replace(self.protocol(mended), dropped=dropped)
            every = proof(protocol.contract, protocol.build, protocol.calm)
            self._made[mended, dropped] = {theorem.name: theorem for theorem in every}
        return self._made[mended, dropped]

    # -- obligations -----------------------------------------------------------------------------------

    def outcomes(
        self, name: str, mended: Mended, dropped: frozenset[str] = frozenset()
    ) -> list[ProofOutcome]:
        """Of one theorem, what it rests upon taken for granted."""
        theorem = self.theorems(mended, dropped)[name]
        keys = {
            (case.kind, case.name, goal): (name, case.kind, case.name, goal, signature, dropped)
            for case in theorem.cases
            for signature in [self._touching(name, case, mended)]
            for goal in case.goals
        }
        left = [
            case
            for case in theorem.cases
            if any(keys[case.kind, case.name, goal] not in self._outcomes for goal in case.goals)
        ]
        due = [replace(theorem, cases=tuple(left))] if left else []
        for some in prove(due, limit=self._limit, spread=self._spread):
            for outcome in some:
                self._outcomes[keys[outcome.kind, outcome.case, outcome.goal]] = outcome
            self._report(len(self._outcomes))
        return [self._outcomes[key] for key in keys.values()]

    def _touching(self, name: str, case: ProofCase, mended: Mended) -> tuple[str, ...]:
        """Return the variations that have to do with a case: without one of them it is another formula."""
        every = case.action is None and name not in (INVARIANTS, *self._protocol.specification.properties)
        return tuple(
            variation.name
            for variation in self.protocol(mended).variations
            if every or variation.stated or (case.action is not None and case.action.name in variation.names)
        )

    def failures(self, name: str, mended: Mended) -> list[ProofOutcome]:
        """Return why the theorem is not proved; nothing if it is."""
        theorem = self.theorems(mended)[name]
        upon = [one for other in theorem.upon for one in self._unproved(other, mended)]
        return [*upon, *self._unproved(name, mended)]

    def _unproved(
        self, name: str, mended: Mended, dropped: frozenset[str] = frozenset()
    ) -> list[ProofOutcome]:
        outcomes = self.outcomes(name, mended, dropped)
        return [one for one in outcomes if one.verdict is not ProofVerdict.PROVED]

    def weaker(self, name: str, mended: Mended) -> frozenset[str]:
        """Return the invariants to leave out so that the others hold and the theorem follows; none if it
        fails."""
        dropped: frozenset[str] = frozenset()
        while failed := self._unproved(INVARIANTS, mended, dropped):
            dropped |= {one.goal for one in failed}
            if self._unproved(name, mended, dropped):
                return frozenset()
        return dropped

    def idle(self) -> tuple[str, ...]:
        """Return what is not known to be possible, such as an action: what is proved of it may say
        nothing."""
        found = self.outcomes(POSSIBILITY, frozenset())
        names = [one.goal for one in found if one.verdict is not ProofVerdict.PROVED]
        return tuple(name.removesuffix(" can be taken") for name in names)

    # -- runs ------------------------------------------------------------------------------------------

    def run(self, name: str, mended: Mended) -> ShippedRun | None:
        """Return the shortest known run that breaks the theorem."""
        found = [self._run_of(one, mended) for one in self.protocol(mended).variations if one.refutation]
        breaking = [run for run in found if run is not None and name in run.breaks]
        return min(breaking, key=lambda run: len(run.replay.events), default=None)

    def _needed(self, name: str) -> Mended:
        """Return the variations each of which breaks it alone, or what it rests upon."""
        every = frozenset(one.name for one in self._protocol.variations)
        wanted = {name, *self.theorems(frozenset())[name].upon}
        return frozenset(
            one.name
            for one in self._protocol.variations
            if one.refutation
            and (run := self._run_of(one, every - {one.name}))
            and not wanted.isdisjoint(run.breaks)
        )

    def _run_of(self, variation: Variation, mended: Mended) -> ShippedRun | None:
        key = variation.name, mended
        if key not in self._runs:
            self._runs[key] = self._found(variation, mended)
        return self._runs[key]

    def _found(self, variation: Variation, mended: Mended) -> ShippedRun | None:
        protocol = self.protocol(mended)
        refuted = protocol.refutation(variation)
        run = counterexample(refuted, protocol.specification).run
        rest = protocol.mended({variation.name})
        if run is None or refuted.refutation is None:
            return None
        try:
            played = replay_of(refuted, run, Besides(rest.decisions, rest.altered))
        except ReplayError:
            return None
        stepper = Stepper(run.universe, protocol.specification.actions)
        states = [run.initial, *(after for *_, after in run.steps)]
        broken = [
            name
            for name, formula in protocol.specification.properties.items()
            if not all(stepper.holds(formula, state) for state in states)
        ]
        return ShippedRun(
            variation=variation.name,
            mended=tuple(sorted(mended)),
            breaks=(INVARIANTS, *broken),
            run=run,
            replay=played,
        )

    # -- verdicts --------------------------------------------------------------------------------------

    def judged(self, name: str) -> ShippedTheorem:
        """Return what became of a theorem, and how to mend it."""
        theorem, nothing = self.theorems(frozenset())[name], frozenset[str]()
        failures = self.failures(name, nothing)
        if not failures:
            return ShippedTheorem(theorem=theorem, verdict=ProofVerdict.PROVED)
        run = self.run(name, nothing)
        left_out = self.weaker(name, nothing) if run is None and name not in (INVARIANTS, *WHOLE) else None
        if left_out:
            return ShippedTheorem(
                theorem=theorem, verdict=ProofVerdict.PROVED, left_out=tuple(sorted(left_out))
            )
        return ShippedTheorem(
            theorem=theorem,
            verdict=ProofVerdict.REFUTED if run else ProofVerdict.UNKNOWN,
            failed=tuple(failures),
            run=run,
            repair=self._repair(name),
        )

    def _mended(self, name: str) -> Mended | None:
        """Return a set without which the theorem is proved: what breaks it alone if that will do, else what
        is left when all that can be is left out. None if as specified it is not known to hold either."""
        needed, names = self._needed(name), [one.name for one in self._protocol.variations]
        if not self.failures(name, needed):
            return needed
        mended = frozenset(names)
        if self.failures(name, mended):
            return None
        for one in names:
            if one not in needed and not self.failures(name, mended - {one}):
                mended -= {one}
        return mended

    def _repair(self, name: str) -> Repair | None:
        mended = self._mended(name)
        if mended is None:
            return None
        ordered = [one.name for one in self._protocol.variations if one.name in mended]
        runs = {one: self.run(name, mended - {one}) for one in ordered}
        return Repair(
            mended=tuple(ordered), needed={one: run for one, run in runs.items() if run is not None}
        )
