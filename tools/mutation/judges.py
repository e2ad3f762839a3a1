"""What ``rebalance prove`` alone, and lockstep alone, say of the model that is imported here.

``python -m tools.mutation.judges`` is run in a copy of the project by `alone`, which has sabotaged its model,
and prints one line of JSON: how the judge notices, or nothing, and which kinds of steps lockstep took.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import rebalance_verifier.model as package
from rebalance_verifier.cli.commands.prove import MODEL_STEPS, model_samples
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, NamedScenario, ScenarioError, ScenarioSize
from rebalance_verifier.live.code.lockstep.protocols import in_step
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import drawn, walk
from rebalance_verifier.live.code.replay.attempts import code_releases
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.sharing import Sharing
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.classic.group import NamingsError
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.specs.protocols import PROOFS
from rebalance_verifier.specs.proving import ProofPlan, run_proof

NOW = "code:newest"
MIXED = "coordinator:newest,consumer:newest,consumer:2.8.1,consumer:2.4.1"

OLDER = ("dynamic", "connections", "eager", "sticky", "static", "topics")
"""Scenarios that are walked with older consumers too."""

ALONE = ("dynamic", "failover", "static-failover", "static-appends", "midway")
"""Walked with one member too, who comes deeper in as many steps: it returns to a stable group."""

WALKS = 40
"""Walks with each group."""

AT_ONCE = 20
"""Of all groups; they share the lines to the JVM."""


def by_prove(protocols: Sequence[str], seed: int = 0, steps: int = MODEL_STEPS) -> str:
    """Return what of the model is no step of the logic or breaks a theorem, as ``prove`` says by default.

    Its theorems and checks are of ``specs/`` alone, which nobody sabotages: they are not asked again.
    """
    for protocol in protocols:
        proof = run_proof(ProofPlan(
            theorems=(), contract=(), samples=model_samples(steps, seed, protocol),
            sample=PROOFS[protocol].sampled,
        ))  # fmt: skip
        for row in (*proof.deviations, *proof.breaches):
            found = row.deviation or row.breach
            assert found is not None
            return f"prove {protocol}: {row.group}: {found.failure}"
        if not proof.held_against_model:
            return f"prove {protocol}: the sample does not meet every action"
    return ""


def by_lockstep(
    protocols: Sequence[str], seed: int = 0, walks: int = WALKS, taken: Counter[str] | None = None
) -> str:
    """Return the first disagreement, of ``walks`` with each group in turn; ``taken`` gets the kinds of steps
    that they took."""
    kinds: Counter[str] = Counter() if taken is None else taken
    with ExitStack() as stack:
        older = [*code_releases(MIXED).consumers] if "classic" in protocols else []
        newest = code_releases(NOW)
        consumers = list(dict.fromkeys([*newest.consumers, *older]))
        simulation = stack.enter_context(Simulation([newest.coordinator], consumers))
        plays = [
            partial(_play, title, setup, releases, drawn(seed, number), kinds)
            for number in range(walks)
            for title, setup, releases in _groups(protocols)
        ]
        return Sharing[str](simulation, AT_ONCE, bool).run(plays)[-1]


def _play(
    title: str, setup: Setup, releases: CodeReleases, random: Random, taken: Counter[str],
    simulation: Simulation,
) -> str:  # fmt: skip
    one = in_step(simulation, setup, _machine(setup), releases)
    found = walk(one, random, 100)
    taken.update(re.sub("[0-9]+", "N", f"{event.action} {event.choice}".strip()) for event in one.events)
    return "" if found is None else f"{title}: {found.cause}"


_machine = cache(machine)


def _groups(protocols: Sequence[str]) -> Iterator[tuple[str, Setup, CodeReleases]]:
    for name, scenario in SCENARIOS.items():
        if scenario.protocol.name not in protocols:
            continue
        rows = [(NOW, 3), *([(MIXED, 3)] if name in OLDER else ()), *([(NOW, 1)] if name in ALONE else ())]
        for code, members in rows:
            releases = code_releases(code)
            setup = _setup(scenario, members, releases)
            if setup is not None:
                title = f"{name} of {len(setup.consumers)} with {releases.sentence}"
                yield title, setup, releases


def _setup(scenario: NamedScenario, members: int, releases: CodeReleases) -> Setup | None:
    """Return the largest group that can be walked; None where the scenario is not."""
    for size in (ScenarioSize(members=members, partitions=3), ScenarioSize(members=2, partitions=2)):
        with suppress(ScenarioError, NamingsError):
            setup = lockstep_setup(scenario, size, releases)
            _machine(setup)
            return setup
    return None


JUDGES: Mapping[str, Callable[..., str]] = {"prove": by_prove, "lockstep": by_lockstep}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.judges")
    parser.add_argument("by", choices=JUDGES)
    parser.add_argument("protocols", nargs="+", choices=PROOFS)
    parser.add_argument("--root", type=Path, required=True, help="where the model has to be")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", type=int, help="steps of the sample of prove, walks of lockstep")
    given = parser.parse_args(arguments)
    where = Path(str(package.__file__)).resolve()
    if not where.is_relative_to(given.root.resolve()):
        raise SystemExit(f"the model is that of {where}, not of {given.root}")
    options: dict[str, Any] = (
        {} if given.effort is None else {"steps" if given.by == "prove" else "walks": given.effort}
    )
    taken: Counter[str] = Counter()
    options |= {"taken": taken} if given.by == "lockstep" else {}
    try:
        noticed = JUDGES[given.by](given.protocols, given.seed, **options)
    except Exception as error:  # a model that raises is noticed by whoever runs it
        noticed = f"raises {type(error).__name__}: {error}"
    print(json.dumps({"noticed": " ".join(noticed.split())[:300], "taken": taken}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
