"""The samples of a proof under many seeds. The theorems depend on no seed: their obligations are discharged
once, elsewhere. A group is looked at by one refinement under all seeds, which keeps what it knows of a step;
so many seeds cost less than as many proofs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from operator import or_

from rebalance_verifier.cli.commands.prove import MODEL_STEPS, model_samples
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.refinement.coverage import NOTHING, enough
from rebalance_verifier.specs.classic.refinement.refinement import Refinement
from rebalance_verifier.specs.classic.refinement.sampling import SIZE, ChecksSteps, SampledModel, sampled_by
from rebalance_verifier.specs.consumer.refinement import ConsumerRefinement
from rebalance_verifier.specs.migration.refinement import MigrationRefinement

REFINEMENTS: Mapping[str, Callable[[Setup], ChecksSteps]] = {
    "classic": lambda setup: Refinement(setup, size=SIZE),
    "consumer": ConsumerRefinement,
    "migration": MigrationRefinement,
}
"""What checks the samples of each protocol."""


def under_seeds(
    protocol: str, seeds: Iterable[int], steps: int = MODEL_STEPS
) -> Iterator[tuple[int, list[SampledModel]]]:
    """Each seed, and what came of each group under it."""
    known: dict[str, ChecksSteps] = {}
    for seed in seeds:
        rows = []
        for sample in model_samples(steps, seed, protocol):
            if sample.group not in known:
                known[sample.group] = REFINEMENTS[protocol](sample.setup)
            rows.append(sampled_by(sample, known[sample.group]))
        yield seed, rows


def doubts(rows: list[SampledModel]) -> list[str]:
    """Why a proof with these samples would not say PROVED."""
    found = [row.breach or row.deviation for row in rows]
    texts = [f"{one.failure}: {'; '.join(one.run)}" for one in found if one]
    met, wanted = (reduce(or_, (getattr(row, part) for row in rows), NOTHING) for part in ("met", "wanted"))
    return texts or ([] if enough(met, wanted) else [f"too little was met; not {wanted - met}"])


def main() -> None:
    """Protocol, first seed, end: a line for each seed."""
    protocol, first, end = sys.argv[1], *map(int, sys.argv[2:])
    for seed, rows in under_seeds(protocol, range(first, end)):
        met, wanted = (
            reduce(or_, (getattr(row, part) for row in rows), NOTHING) for part in ("met", "wanted")
        )
        actions, pairs = len(met.actions & wanted.actions), len(met.pairs & wanted.pairs)
        of = f"{actions}/{len(wanted.actions)} actions {pairs}/{len(wanted.pairs)} pairs"
        why = "; ".join(doubts(rows)) or "nothing against PROVED"
        sys.stdout.write(f"{protocol} {seed} {sum(row.steps for row in rows)} steps, {of}: {why}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
