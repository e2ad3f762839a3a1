"""The pictures in docs/pictures, byte for byte as the code draws them: ``python -m tools.pictures``.

    python -m tools.pictures              write what is stale
    python -m tools.pictures --into DIR   write all of them into DIR instead

tests/report/test_pictures.py fails where one is stale. Each is drawn from a trace that is made here:
calls of a reference assignor with a known mistake, the search for a known bug, the recording of an audited
log.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.search.result import Finding
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.values import Cluster, GroupSubscription, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.calls import Answer, Reply
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    uniform,
)
from rebalance_verifier.report.diagram import log_diagram, run_diagram, scenario_diagram, svg
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.traces import recordings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"


def assignor(switch: str, scenario: Scenario, clause: str) -> OwnershipDiagram:
    """What cooperative-sticky with a known mistake does in a scenario."""
    made = switched("cooperative-sticky", (switch,))

    def ask(_: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        return Answer(made.assign(cluster, group))

    record = play(scenario, ask, None, (CLAUSES[clause],), ())
    broken = record.breach_of(clause)
    assert broken is not None, f"{switch} keeps {clause} here"
    return scenario_diagram.of_finding(
        Finding(
            clause=broken.clause, protocol=scenario.protocol, breach=broken.breach, scenario=scenario,
            round=broken.round, calls=record.calls, seed=0, number=0,
            found_size=scenario.size, confirmed=True,
        )
    )  # fmt: skip


def run(switch: str) -> OwnershipDiagram:
    """The shortest run of the model that shows a bug."""
    found = reproduce(SHOWN[switch])
    assert found is not None, f"{switch} does not show"
    return run_diagram.of_run(found)


def recording(path: str) -> OwnershipDiagram:
    """What an audit saved."""
    return log_diagram.of_recording(recordings.load(ROOT / path))


_T = TopicPartition
_LATE = Scenario(
    protocol=RebalanceProtocol.COOPERATIVE,
    topics=uniform({"orders": 2}),
    members=(
        ScenarioMember(
            id="orders-a", topics=("orders",), owned=(_T("orders", 0), _T("orders", 1)), generation=5
        ),
        ScenarioMember(id="orders-b", topics=("orders",)),
    ),
    rounds=(
        (Fault(FaultKind.GHOST, "orders-a"),),
        (AddMember(ScenarioMember(id="orders-c", topics=("orders",))),),
    ),
)
"""A member that was away comes back with what it held before."""

_TWELVE = Scenario(
    protocol=RebalanceProtocol.COOPERATIVE,
    topics=uniform({"orders": 12}),
    members=tuple(ScenarioMember(id=f"orders-{n:02}", topics=("orders",)) for n in range(1, 12)),
    rounds=(
        (),
        (AddMember(ScenarioMember(id="orders-12", topics=("orders",))), Fault(FaultKind.GHOST, "orders-03")),
        (Leave("orders-07"),),
    ),
)

PICTURES: Mapping[str, Callable[[], OwnershipDiagram]] = {
    "assignor-two-owners": lambda: assignor("trust_all_claims", _LATE, "assign/1"),
    "assignor-twelve-members": lambda: assignor("trust_all_claims", _TWELVE, "assign/1"),
    "run-lost-membership": lambda: run("prepare_not_repeated_after_reset"),
    "run-not-withheld": lambda: run("no_withhold"),
    "run-never-settles": lambda: run("rebalance_timeout_zero"),
    "run-with-nobody": lambda: run("static_replace_drops_revocation"),
    "log-owned-twice": lambda: recording("examples/audit/orders-1-owned-twice.json"),
}
"""Name of the file -> what is drawn in it."""


def draw(name: str) -> str:
    """The file of one picture."""
    return svg.render(PICTURES[name](), prefix=name, standalone=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    about = "Write the pictures in docs/pictures."
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=about)
    parser.add_argument("--into", type=Path, default=FOLDER, metavar="DIR")
    folder = parser.parse_args(arguments).into
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        path, text = folder / f"{name}.svg", draw(name)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(path.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
