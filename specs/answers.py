"""Answers of earlier proofs, kept for the next one with nothing changed.

The name of a file stands for all that an answer depends on: the sources of the packages that state, prove and
sample, the versions of Python and of what they import, the solver's library, and what was asked. A file of
other sources is never opened, so an answer cannot be stale. Only what succeeded is kept: whatever is refuted,
open, doubtful or deviates is asked again. A file is signed with the key of this user, since what it says was
proved is believed; one that is damaged, or somebody else's, counts as none.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from importlib.metadata import distribution, version
from pathlib import Path
from types import FunctionType
from typing import Any

from rebalance_verifier.base.files import alone, write_whole
from rebalance_verifier.base.processes.signing import seal_of
from rebalance_verifier.base.processes.tools import cache
from rebalance_verifier.base.reading import json_of, word
from rebalance_verifier.base.sources import fingerprint
from rebalance_verifier.specs.classic.necessity.vacuity import Vacuity, VacuityCheck, VacuityFinding
from rebalance_verifier.specs.classic.refinement.coverage import SampleCoverage
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel
from rebalance_verifier.specs.logic.prover import ProofOutcome, ProofVerdict
from rebalance_verifier.specs.logic.specification import ProofCase, Theorem

SOURCES = ("base", "model", "properties", "explore", "specs")
IMPORTED = ("z3-solver", "numpy", "networkx", "hypothesis")
FILES = 8
"""How many files are kept: one for each protocol and set of assumptions of the newest sources, and a few."""

Row = list[Any]


def key(*question: str) -> str:
    """Return what stands for everything that an answer to ``question`` depends on."""
    packages = [import_module(f"rebalance_verifier.{name}") for name in SOURCES]
    return fingerprint("\0".join([*question, *_surroundings()]), packages)


def _surroundings() -> Iterable[str]:
    yield from (sys.version, str(sys.flags), platform.platform())
    for name in IMPORTED:
        yield f"{name} {version(name)}"
    for file in distribution("z3-solver").files or ():
        if file.name.startswith("libz3"):
            found = os.stat(str(file.locate()))
            yield f"{file} {found.st_size} {found.st_mtime_ns}"


def _row(one: ProofOutcome) -> Row:
    return [one.theorem, one.kind, one.case, one.goal, one.units, one.seconds, one.hypotheses]


@dataclass(kw_only=True)
class KeptAnswers:
    """Answers that a file has, and those that came since; ``day`` is when the file was written. ``used`` are
    how many obligations, checks and samples were answered from it."""

    path: Path | None
    day: str = ""
    outcomes: dict[str, list[Row]] = field(default_factory=dict)
    checks: dict[str, list[Row]] = field(default_factory=dict)
    samples: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: int = 0
    fresh: bool = False

    def case(self, theorem: Theorem, case: ProofCase) -> tuple[ProofOutcome, ...] | None:
        """Return the outcomes of a case, if all its goals were proved."""
        rows = self.outcomes.get(_named(theorem.name, case.kind, case.name, *case.goals))
        if rows is None:
            return None
        self.used += len(rows)
        return tuple(_outcome(*row) for row in rows)

    def left(self, theorem: Theorem, found: list[ProofOutcome]) -> Theorem:
        """Return the theorem with the cases that are to be proved; outcomes of the others go to ``found``."""
        cases = []
        for case in theorem.cases:
            known = self.case(theorem, case)
            if known is None:
                cases.append(case)
            else:
                found += known
        return replace(theorem, cases=tuple(cases))

    def proved(self, theorem: Theorem, outcomes: Iterable[ProofOutcome]) -> None:
        """Keep the cases of a theorem of which every goal is proved."""
        by_goal = {(one.kind, one.case, one.goal): one for one in outcomes if one.theorem == theorem.name}
        for case in theorem.cases:
            name = _named(theorem.name, case.kind, case.name, *case.goals)
            of_case = [by_goal.get((case.kind, case.name, goal)) for goal in case.goals]
            rows = [_row(one) for one in of_case if one and one.verdict is ProofVerdict.PROVED]
            if name not in self.outcomes and len(rows) == len(of_case):
                self.outcomes[name] = rows
                self.fresh = True

    def check(self, check: VacuityCheck) -> tuple[Vacuity, ...] | None:
        """Return what came of a check."""
        rows = self.checks.get(_named(check.kind, *check.names))
        if rows is None:
            return None
        self.used += len(rows)
        return tuple(
            Vacuity(kind, name, VacuityFinding(finding), tuple(because))
            for kind, name, finding, because in rows
        )

    def checked(self, check: VacuityCheck, rows: Iterable[Vacuity]) -> None:
        """Keep what came of a check, if it says something."""
        found = [*rows]
        name = _named(check.kind, *check.names)
        if name not in self.checks and not any(row.doubtful for row in found):
            self.checks[name] = [[row.kind, row.name, row.finding.value, [*row.because]] for row in found]
            self.fresh = True

    def sample(self, sample: ModelSample) -> SampledModel | None:
        """Return what came of a sample."""
        found = self.samples.get(_sampled(sample))
        if found is None:
            return None
        self.used += 1
        met, wanted = (_coverage(found[name]) for name in ("met", "wanted"))
        return SampledModel(**{**found, "met": met, "wanted": wanted})

    def sampled(self, sample: ModelSample, found: SampledModel) -> None:
        """Keep what came of a sample, if the model does what the logic does."""
        if _sampled(sample) not in self.samples and not (found.deviation or found.breach):
            self.samples[_sampled(sample)] = {
                **asdict(found), "met": _listed(found.met), "wanted": _listed(found.wanted)
            }  # fmt: skip
            self.fresh = True

    def save(self) -> None:
        """Write what came, whole, and remove the oldest files of other sources. No file is no trouble."""
        if self.path is None or not self.fresh:
            return
        kept = {"day": time.strftime("%Y-%m-%d %H:%M"), "outcomes": self.outcomes, "checks": self.checks,
                "samples": self.samples}  # fmt: skip
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with alone(self.path.parent):
                signed = {"signed": seal_of(self.path.name, kept), "answers": kept}
                write_whole(self.path, json.dumps(signed))
                files = sorted(self.path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
                for old in files[:-FILES]:
                    old.unlink(missing_ok=True)


def kept_answers(*question: str, directory: Callable[[], Path] = cache) -> KeptAnswers:
    """Return the answers that a file has of a ``question``; none where it is missing, damaged or not of this
    user."""
    path = directory() / "prove" / f"{key(*question)}.json"
    try:
        found = json_of(path)
        if hmac.compare_digest(seal_of(path.name, found["answers"]), word(found["signed"])):
            return KeptAnswers(path=path, **found["answers"])
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return KeptAnswers(path=path)


def _named(*names: str) -> str:
    return json.dumps(names)


def _sampled(sample: ModelSample) -> str:
    return json.dumps(asdict(sample), default=_plain, sort_keys=True)


def _plain(value: object) -> object:
    """Return a set in order, and a function by its name: the sources have the rest of it."""
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    raise TypeError(f"{value!r} has no name that stays")


def _outcome(
    theorem: str, kind: str, case: str, goal: str, units: int, seconds: float, hypotheses: int
) -> ProofOutcome:
    return ProofOutcome(
        theorem=theorem,
        kind=kind,
        case=case,
        goal=goal,
        verdict=ProofVerdict.PROVED,
        units=units,
        seconds=seconds,
        hypotheses=hypotheses,
    )


def _coverage(found: dict[str, list[Any]]) -> SampleCoverage:
    return SampleCoverage(
        actions=frozenset(found["actions"]), pairs=frozenset((one, other) for one, other in found["pairs"])
    )


def _listed(coverage: SampleCoverage) -> dict[str, list[Any]]:
    return {"actions": sorted(coverage.actions), "pairs": sorted(coverage.pairs)}
