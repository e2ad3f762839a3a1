"""However many processes search, and wherever the target runs: the result is the same."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.gate.search import plan as plans
from rebalance_verifier.gate.search import search as searching
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import Result, Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session, TargetLost
from rebalance_verifier.model.values import RebalanceProtocol

from tests.command import process
from tests.gate.search.test_check import digest
from tests.processes import left
from tests.tiers import tiered

TINY = SearchProfile(name="tiny", each=1, mixed=12, large=0, crowd=0, shrink=8)
HOSTILE = Path(__file__).parents[1] / "targets" / "hostile"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Several slices in a small search, and the hostile targets at hand."""
    for module in (plans, searching):
        monkeypatch.setattr(module, "SLICE", 10)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sometimes.py").write_text(SOMETIMES)
    monkeypatch.setenv("PYTHONPATH", str(HOSTILE))
    monkeypatch.syspath_prepend(HOSTILE)


SOMETIMES = """
import hostile_assignors
from rebalance_verifier.model.assignors import reference

def __getattr__(name):
    misbehaving, good = getattr(hostile_assignors, name), reference("roundrobin")

    def assign(cluster, group):
        if sum(map(len, cluster.topics.values())) % 7:
            return good.assign(cluster, group)
        return misbehaving(cluster, {**group, "BAD": None})

    return assign
"""
"""Targets that misbehave on one input in seven, as the hostile target of their name does."""


def judged(spec: str, jobs: int, call_seconds: float = 10.0, memory_mib: int = 2048) -> Result:
    """A search of a few slices under one protocol."""
    plan = CheckPlan(profile=TINY, protocols=(RebalanceProtocol.EAGER,))
    with Session(resolve(spec), call_seconds, memory_mib=memory_mib) as session:
        return check(plan, session, describe(spec, session.hello), jobs=jobs, fresh=session.close)


def everywhere(monkeypatch: pytest.MonkeyPatch, spec: str, **limits: float) -> Result:
    """The one result of a conversation, and of two processes that run the target themselves."""
    monkeypatch.setattr(Session, "can_be_entered", False)
    result = judged(spec, 1, **limits)  # type: ignore[arg-type]
    monkeypatch.setattr(Session, "can_be_entered", True)
    assert digest(judged(spec, 2, **limits)) == digest(result)  # type: ignore[arg-type]
    return result


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("spec", ["roundrobin", "sticky+last_claim_wins", "hostile_assignors:Reporting"])
def test_the_result_does_not_depend_on_who_plays(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    assert everywhere(monkeypatch, spec).scenarios > 2 * plans.SLICE


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("raises", "assign() raises"),
        pytest.param("interrupt", "assign() raises", marks=pytest.mark.nightly),
        ("returns_none", "not an assignment"),
        pytest.param("os_exit", "ends the process", marks=pytest.mark.nightly),
        pytest.param("close_everything", "ends the process", marks=pytest.mark.nightly),
        ("print_things", None),
    ],
)
def test_what_a_target_does_to_its_process_is_judged_alike(
    monkeypatch: pytest.MonkeyPatch, name: str, summary: str | None
) -> None:
    result = everywhere(monkeypatch, f"sometimes:{name}")
    found = [row.finding.breach.summary for row in result.clauses if row.finding]
    assert summary is None or any(summary in one for one in found)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "clause", "limits"),
    [
        ("spin_in_c", "assign/4", {"call_seconds": 0.3}),
        ("eat_memory", "assign/4", {"memory_mib": 200}),
    ],
)
def test_what_no_reply_tells_of_is_found_by_whoever_plays(
    monkeypatch: pytest.MonkeyPatch, name: str, clause: str, limits: dict[str, float]
) -> None:
    monkeypatch.setattr(searching, "MAX_CALLS", 5)
    monkeypatch.setattr(Session, "can_be_entered", True)
    result = judged(f"sometimes:{name}", 2, **limits)  # type: ignore[arg-type]
    assert clause in {row.clause.id for row in result.clauses if row.status is Status.VIOLATED}


MANY = """
import json, os, sys
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import Cluster
from rebalance_verifier.model.wire import decode_subscription

histories, mode = int(sys.argv[1]), sys.argv[2]
kept, inner = {}, reference("sticky")
own = {"protocols": ["eager"], "promises": ["balanced"], "user_data": True}
new = {"histories": histories, "metadata_only": True, "user_data_from": ["generation"]}

def answer(request):
    if request["cmd"] == "bye":
        sys.exit()
    if request["cmd"] == "hello":
        return {"name": "many", **own, **(new if request.get("newest", 1) >= 2 and histories else {})}
    if request["cmd"] == "user_data":
        return {"user_data": "%08x" % max(0, request["generation"])}
    asked = kept.setdefault(request["history"], [])  # the ones asked last are kept, no more
    kept[request["history"]] = kept.pop(request["history"])
    while len(kept) > max(1, histories):
        del kept[next(iter(kept))]
    asked.append(len(request["members"]))
    topics = {topic: tuple(map(tuple, racks)) for topic, racks in request["cluster"]["topics"].items()}
    if mode != "good" and sum(map(len, topics.values())) % 7 == 0:
        if mode == "dies":
            os._exit(3)
        sys.stdout.write("nonsense\\n")
    group = {m["id"]: decode_subscription(bytes.fromhex(m["metadata"])) for m in request["members"]}
    given = inner.assign(Cluster(topics), group)
    turn = sum(asked) % len(given)  # so that a history that was forgotten is seen
    rotated = [*given][turn:] + [*given][:turn]
    return {"assignment": {m: [[t, [i]] for t, i in given[other]] for m, other in zip(given, rotated)}}

left = b""
while data := os.read(0, 1 << 16):  # what comes together is answered together, by writes that wait
    *lines, left = (left + data).split(b"\\n")
    requests = [json.loads(line) for line in lines]
    for request in requests:
        print(json.dumps({"seq": request["seq"], "result": answer(request)}))
    sys.stdout.flush()
"""
"""A program that is in as many histories at once as it is told, and one that is not of version 2 with 0."""


@pytest.mark.slow
@pytest.mark.parametrize("mode", tiered(("good", "dies", "nonsense"), {"dies"}))
def test_the_result_does_not_depend_on_how_many_histories_are_played_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str
) -> None:
    """Nor on the number of processes; what ends a process in between is found, and blamed on its history."""
    (tmp_path / "many.py").write_text(MANY)
    lost: list[TargetLost] = []
    answers = Session.answers

    def counted(self: Session, asked: Any) -> Any:
        try:
            return answers(self, asked)
        except TargetLost as one:
            lost.append(one)
            raise

    monkeypatch.setattr(Session, "answers", counted)
    plan = CheckPlan(profile=replace(TINY, shrink=2), repeatable=True)
    found = []
    for histories, jobs in ((0, 1), (4, 2), (64, 1)):
        target = resolve(None, [sys.executable, str(tmp_path / "many.py"), str(histories), mode])
        with Session(target) as session:
            info = describe("many", session.hello)
            found.append(digest(check(plan, session, info, jobs=jobs, fresh=session.close)))
    assert found == found[:1] * 3
    assert bool(lost) == (mode != "good")
    assert ("assign/4-eager', 'violated'" in str(found[0])) == (mode != "good"), found[0]


ONLY_HERE = """
import signal, sys, time
from rebalance_verifier.model.assignors import reference

def hang():
    if "rebalance_verifier.gate.targets.hosts.host" not in str(sys.modules["__main__"].__spec__):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        time.sleep(1000)

class Deaf:
    protocols, promises = ("eager",), ()
    def __init__(self):
        self.inner = reference("roundrobin")
    def assign(self, cluster, group):
        hang()
        return self.inner.assign(cluster, group)
"""
"""A target that hangs, deaf to the alarm, unless it is in a process of its own."""


@pytest.mark.nightly
@pytest.mark.parametrize("late", ["", "hang()"], ids=["in a call", "while it is loaded"])
def test_a_worker_that_no_alarm_ends_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, late: str
) -> None:
    monkeypatch.setattr(searching, "MAX_CALLS", 2)
    (tmp_path / "only_here.py").write_text(f"{ONLY_HERE}\n{late}")
    monkeypatch.syspath_prepend(tmp_path)
    result = everywhere(monkeypatch, "only_here:Deaf", call_seconds=2.0)
    assert {row.status for row in result.clauses} <= {Status.PASSED, Status.UNSUPPORTED}


LEAVES = """
import subprocess
from pathlib import Path
from rebalance_verifier.model.assignors import reference

class Leaves:
    protocols, promises = ("eager",), ()
    def __init__(self):
        self.inner, self.started = reference("roundrobin"), False
    def assign(self, cluster, group):
        if not self.started:
            self.started = True
            with open("pids", "a") as pids:
                print(subprocess.Popen(["sleep", "1000"]).pid, file=pids)
        return self.inner.assign(cluster, group)
"""


@pytest.mark.slow
def test_nothing_that_a_target_starts_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES)
    monkeypatch.setattr(Session, "can_be_entered", True)
    judged("leaves:Leaves", 2)
    assert not left(map(int, (tmp_path / "pids").read_text().split()))


@pytest.mark.nightly
def test_the_command_writes_the_same_report_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    reports = set()
    for jobs in ("1", "2", "3"):
        argv = ("check", "sticky+steal_once", "--profile", "smoke", "--jobs", jobs, "--report", "json")
        process(*argv, "--report-dir", jobs, cwd=tmp_path)
        reports.add((tmp_path / jobs / "report.json").read_text())
    (report,) = map(json.loads, reports)
    assert report["verdict"] == "violation"
    assert os.listdir(tmp_path / ".rebalance" / "failures")


WHERE = """
import sys
from rebalance_verifier.model.assignors import reference

class Where:
    protocols, promises = ("eager",), ()
    def __init__(self):
        self.inner = reference("roundrobin")
    def assign(self, cluster, group):
        with open("where", "a") as where:
            hosted = "targets.hosts.host" in str(sys.modules["__main__"].__spec__)
            print("host" if hosted else "worker", file=where)
        return self.inner.assign(cluster, group)
"""


@pytest.mark.slow
def test_the_command_runs_a_users_target_in_processes_of_its_own(tmp_path: Path) -> None:
    """Never in its workers, which judge: those are for assignors of ours."""
    (tmp_path / "where.py").write_text(WHERE)
    ran = process("check", "where:Where", "--profile", "smoke", "--report", "text", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    places = (tmp_path / "where").read_text().split()
    assert set(places) == {"host"}
