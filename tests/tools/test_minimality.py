"""Nothing can be deleted from a minimal counterexample; from others it is counted what can. And each shows
again."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance_verifier.gate.search.counterexamples import Trace, save, save_all
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import TargetInfo
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.hosted import load
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach, Clause
from rebalance_verifier.properties.assignors.clauses import CLAUSES, select
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

from tools import steadiness
from tools.minimality import main, measured

CLAUSE = CLAUSES["assign/2"]
TARGET = TargetInfo(spec="sticky", name="sticky")


def scenario(members: int, partitions: int) -> Scenario:
    group = tuple(ScenarioMember(id=f"m{number}", topics=("t",)) for number in range(members))
    return Scenario(protocol=RebalanceProtocol.EAGER, topics=uniform({"t": partitions}), members=group)


@pytest.mark.parametrize(
    ("members", "partitions", "breaks", "left", "otherwise"),
    [(2, 3, True, 0, 0), (3, 3, True, 3, 0), (2, 5, True, 5, 0), (1, 3, False, 0, 0), (4, 3, True, 0, 4)],
)
def test_what_can_be_deleted_is_counted(
    members: int, partitions: int, breaks: bool, left: int, otherwise: int
) -> None:
    def broken(s: AnyScenario, clause: Clause) -> Breach | None:
        if s.size[0] < 2 or s.size[1] < 3:
            return None
        return Breach(
            summary="", because=(), expected="", actual="", kind="never" if s.size[0] > 3 else "late"
        )

    found = measured(Trace(clause=CLAUSE, target=TARGET, scenario=scenario(members, partitions)), broken)
    assert (found.breaks, found.tried, found.left) == (breaks, members + partitions, left)
    assert found.otherwise == otherwise
    assert found.minimal == (breaks and not left)


def test_the_counterexamples_of_a_check_are_minimal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = "cooperative-sticky+trust_all_claims"
    session = InProcess(load(spec))
    profile = SearchProfile(name="few", each=2, mixed=0, large=0, crowd=0, shrink=300)
    plan = CheckPlan(profile=profile, clauses=tuple(select(["kip792"])))
    save_all(check(plan, session, describe(spec, session.hello)), tmp_path)
    monkeypatch.setattr("sys.argv", ["minimality", str(tmp_path)])
    assert main() == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines
    assert all(" minimal " in line for line in lines)
    assert last.startswith(f"{len(lines)} of {len(lines)} are minimal, 0 but for another way")
    monkeypatch.setattr("sys.argv", ["steadiness", str(tmp_path), "--plays", "3"])
    assert steadiness.main() == 0
    *again, last = capsys.readouterr().out.splitlines()
    assert all(" 3 of 3 plays  kip792/" in line for line in again)
    assert last == f"{len(lines)} of {len(again)} break their clause in each play"


def test_a_play_that_keeps_the_clause_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = Trace(clause=CLAUSE, target=TARGET, scenario=scenario(2, 3))
    path = save(trace, tmp_path)
    breach = Breach(summary="", because=(), expected="", actual="")
    answers = iter((breach, None, breach, breach))
    monkeypatch.setattr(steadiness, "on_targets", lambda found: [(found[0], lambda *_: next(answers))])
    monkeypatch.setattr("sys.argv", ["steadiness", str(path), "--plays", "4"])
    assert steadiness.main() == 1
    assert capsys.readouterr().out == (
        f"{trace.id}     3 of 4 plays  assign/2\n0 of 1 break their clause in each play\n"
    )
