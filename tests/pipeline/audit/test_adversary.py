"""Logs after a mishap: nothing certain is found in a healthy group, and no incident makes a log CONFORMANT.

The fixtures are recorded logs and the written incident; what becomes of them is in ``adversary``.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.report.terminal.audit import headline

from tests.pipeline.audit import adversary
from tests.pipeline.audit.adversary import Log
from tests.pipeline.audit.sources.incident import PODS, deploy, incident

LOGS = Path(__file__).parent / "logs"


def by_client(log: Log) -> Log:
    """Return the records of each client in a file of its own."""
    found: Log = {}
    for lines in log.values():
        for record in adversary.records(lines):
            who = adversary.client_of(record[0])
            if who:
                found.setdefault(f"{who}.log", []).extend(record)
    return found


def of_pods(lines) -> Log:
    found: Log = {}
    for line in lines:
        found.setdefault(f"{PODS[line.pod]}.log", []).append(line.plain())
    return found


def recorded(pattern, day=""):
    return adversary.read(*sorted(LOGS.glob(pattern)), day=day)


HEALTHY = {
    "range, 2.3 to 3.5": lambda: recorded("range-*", "2026-11-21"),
    "KIP-848, Java": lambda: by_client(recorded("kip848-*")),
    "librdkafka, cooperative": lambda: by_client(recorded("*-cooperative.log.gz")),
    "librdkafka, range": lambda: by_client(recorded("*-range.python*")),
    "a migration": lambda: recorded("migration/*"),
    "a rolling deploy": lambda: of_pods(deploy()),
}
BROKEN = {
    "a member that is stopped": lambda: recorded("cooperative-*"),
    "KIP-848, a member that is stopped": lambda: by_client(recorded("*-consumer.log.gz")),
    "owned twice, and a zombie": lambda: of_pods(incident()),
}
CUTS = 10
RED_ONCE = ("range, 2.3 to 3.5-cut_and_quiet-5", "librdkafka, range-cut_and_quiet-3")
"""Mishaps that once made a healthy group certainly ill: the log ends while the last member leaves, or between
SyncGroup's answer and the first partition."""


def audited(log, folder):
    adversary.write(log, folder / "logs")
    return run_audit(AuditPlan(paths=(str(folder / "logs"),), out=folder / "out"))


def certain(found):
    return {one.check for one in found.findings if found.plan.gates(one.level) and one.certain}


def cases(fixtures, mishaps, seeds):
    found = []
    for name, mishap, seed in product(fixtures, mishaps, range(seeds)):
        case = f"{name}-{mishap.__name__}-{seed}"
        marks = [pytest.mark.nightly] if seed and case not in RED_ONCE else []
        found.append(pytest.param(name, mishap, seed, id=case, marks=marks))
    return found


@pytest.mark.covering("name", "mishap", also=RED_ONCE)
@pytest.mark.parametrize(("name", "mishap", "seed"), cases(HEALTHY, adversary.HARMFUL, CUTS))
def test_nothing_certain_is_found_in_a_healthy_group(name, mishap, seed, tmp_path):
    log = mishap(HEALTHY[name](), Random(f"{name} {seed}"))
    found = audited(log, tmp_path)
    # A log that goes on, of a member that waits for an answer, says that the rebalance does not end.
    waits = mishap is adversary.cut_and_quiet and adversary.in_a_rebalance(log)
    assert certain(found) <= ({"never-settles"} if waits else set()), headline(found)


@pytest.mark.covering("name")
@pytest.mark.parametrize("seed", range(CUTS))
@pytest.mark.parametrize("name", ["KIP-848, Java", "a migration", "KIP-848, a member that is stopped"])
def test_ten_quiet_minutes_after_a_cut_prove_nothing_of_the_consumer_protocol(name, seed, tmp_path):
    log = adversary.cut_and_quiet({**HEALTHY, **BROKEN}[name](), Random(f"cut {name} {seed}"))
    assert certain(audited(log, tmp_path)) <= ({"owned-by-zombie"} if name in BROKEN else set())


@pytest.mark.covering("name", "mishap")
@pytest.mark.parametrize(("name", "mishap", "seed"), cases(HEALTHY | BROKEN, adversary.HARMLESS, 5))
def test_what_takes_nothing_away_changes_no_answer(name, mishap, seed, tmp_path):
    log = mishap({**HEALTHY, **BROKEN}[name](), Random(f"{name} {seed}"))
    found = audited(log, tmp_path)
    assert found.verdict is (Verdict.VIOLATION if name in BROKEN else Verdict.CONFORMANT), headline(found)


@pytest.mark.nightly
def test_the_fixtures_are_what_they_are_called(tmp_path):
    for number, (name, log) in enumerate({**HEALTHY, **BROKEN}.items()):
        found = audited(log(), tmp_path / str(number))
        assert found.verdict is (Verdict.VIOLATION if name in BROKEN else Verdict.CONFORMANT), name
