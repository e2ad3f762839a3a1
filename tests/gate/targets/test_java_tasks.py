"""Task assignors in Java: a user's own with its mistakes, Kafka's own, and those of a broker."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.search import second_judge
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import Finding, Result, Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.properties.assignors.clauses import select

from tests.tiers import tiered

STREAMS, BROKER = "org.apache.kafka:kafka-streams", "org.apache.kafka:kafka-group-coordinator"
INSIDE = "org.apache.kafka.streams.processor.internals.assignment"
STICKY = "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor"
OF_GROUPS = "org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor"
TINY = SearchProfile(name="tiny", each=4, mixed=20, large=0, crowd=0, shrink=300)

pytestmark = pytest.mark.slow


def jars(artifact: str, release: str) -> Sequence[str]:
    """Skips where a JDK, Maven or what it would download is missing."""
    try:
        return maven.classpath([f"{artifact}:{release}"])
    except ToolError as error:
        pytest.skip(str(error))


def compiled(source: str, found: Sequence[str], classes: Path) -> Path:
    compiler = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    file = Path(__file__).with_name(source)
    subprocess.run([*compiler, "-cp", os.pathsep.join(found), "-d", classes, file], check=True, timeout=120)
    return classes


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The spec of the user's assignor, compiled here; add ``?mode=...``."""
    classes = compiled("Tasks.java", jars(STREAMS, NEWEST), tmp_path_factory.mktemp("tasks"))
    return f"java:acme.Tasks@{STREAMS}:{NEWEST},{classes}"


def judged(spec: str, level: Level = Level.LIVENESS, profile: SearchProfile = TINY) -> Result:
    with Session(resolve(spec)) as session:
        plan = CheckPlan(profile=profile, level=level)
        return check(plan, session, describe(spec, session.hello), fresh=session.close)


def broken(result: Result) -> dict[str, Finding]:
    rows = (row for row in result.clauses if row.status is Status.VIOLATED)
    return {row.clause.id: row.finding for row in rows if row.finding is not None}


@pytest.mark.parametrize("mode", tiered(["", "field", "lags"], {"field"}))
def test_one_that_is_right_passes(mode: str, own: str) -> None:
    result = judged(f"{own}?mode={mode}", Level.QUALITY)
    assert broken(result) == {}
    assert result.missed == ()


@pytest.mark.nightly
@pytest.mark.parametrize(("names", "clauses"), [(("orders",), set()), ((), {"task/5"})])
def test_one_that_looks_for_a_topic_finds_it(names: tuple[str, ...], clauses: set[str], own: str) -> None:
    spec = f"{own}?mode=names"
    with Session(resolve(spec)) as session:
        result = check(CheckPlan(profile=TINY, topics=names), session, describe(spec, session.hello))
    assert set(broken(result)) == clauses


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "clause"), [("forgets", "task/1"), ("twice", "task/2")])
def test_a_mistake_that_kafka_accepts_is_found_small(mode: str, clause: str, own: str) -> None:
    found = broken(judged(f"{own}?mode={mode}"))
    assert set(found) == {clause}
    processes, tasks, _, _ = found[clause].scenario.size
    assert processes <= 2
    assert tasks <= 3
    assert found[clause].confirmed


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["forgets", "twice"])
def test_the_runtime_says_what_comes_of_it(mode: str, own: str) -> None:
    """Kafka takes both answers: a task with nobody, no error, no rebalance."""
    told = second_judge.consult(judged(f"{own}?mode={mode}"), lambda spec: Session(resolve(spec)))
    [found] = broken(told).values()
    says = r"in StreamsPartitionAssignor [\d.]+: .*nobody runs .*, without an error, and no rebalance follows"
    assert re.fullmatch(says, found.breach.because[-1])


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["3.8.0", NEWEST])
def test_the_whole_runtime_keeps_the_contract(release: str) -> None:
    jars(STREAMS, release)
    result = judged(f"streams:{release}", Level.QUALITY)
    assert broken(result) == {}
    assert {"task/1", "task/10"} <= {row.clause.id for row in result.clauses if row.status is Status.PASSED}


@pytest.mark.nightly
def test_the_rack_aware_step_of_kafkas_helper_costs_a_zone(own: str) -> None:
    profile = SearchProfile(name="racks", each=50, mixed=0, large=0, crowd=0, shrink=600)
    with Session(resolve(f"{own}?mode=racks#rack-aware,standbys,tags")) as session:
        clauses = tuple(select(["task/14"]))
        plan = CheckPlan(profile=profile, clauses=clauses, level=Level.QUALITY, fail_fast=True)
        found = broken(check(plan, session, describe("own", session.hello), fresh=session.close))
    assert found["task/14"].breach.kind == "tags"
    assert found["task/14"].scenario.size[:2] <= (4, 3)


@pytest.mark.parametrize(
    "name", ["HighAvailabilityTaskAssignor", "FallbackPriorTaskAssignor", "LegacyStickyTaskAssignor"]
)
def test_those_inside_are_judged_too(name: str) -> None:
    jars(STREAMS, NEWEST)
    steps = smoke(resolve(f"java:{INSIDE}.{name}@{STREAMS}:{NEWEST}"), validate=True)
    assert [step.lines for step in steps if not step.ok] == []
    assert steps[0].lines[0] == "protocols: tasks"


@pytest.mark.nightly
def test_sticky_answers_one_question_in_two_ways() -> None:
    jars(STREAMS, NEWEST)
    found = broken(judged(f"java:{STICKY}@{STREAMS}:{NEWEST}", Level.QUALITY))
    assert {"task/6", "task/11"} <= set(found)
    assert found["task/6"].scenario.size[:2] <= (3, 2)


@pytest.mark.nightly
@pytest.mark.parametrize(("release", "label"), [(NEWEST, "task/12"), ("4.1.0", "task/6")])
def test_sticky_of_a_broker(release: str, label: str) -> None:
    jars(BROKER, release)
    result = judged(f"java:{OF_GROUPS}@{BROKER}:{release}", Level.QUALITY)
    assert label in broken(result)
    assert all(row.protocol == "streams" for row in result.clauses)


@pytest.mark.nightly
def test_the_two_mistakes_are_found_in_ten_seconds(own: str) -> None:
    """Of CPU time of the searches, without what it takes to start a JVM on a machine that is busy."""
    profile = SearchProfile(name="ci", each=50, mixed=650, large=12, crowd=0, shrink=1500)
    for mode in ("forgets", "twice"):
        with Session(resolve(f"{own}?mode={mode}")) as session:
            plan = CheckPlan(profile=profile, fail_fast=True)
            began = time.process_time()
            result = check(plan, session, describe("own", session.hello), fresh=session.close)
        assert broken(result)
        assert time.process_time() - began < 10


@pytest.mark.nightly
def test_a_null_of_an_assignor_of_4_1_is_no_error_of_the_harness(tmp_path: Path) -> None:
    """It was a NullPointerException in the harness, which nobody could place."""
    classes = compiled("Nulls41.java", jars(BROKER, "4.1.0"), tmp_path)
    found = broken(judged(f"java:acme.Nulls41@{BROKER}:4.1.0,{classes}"))
    assert found["task/5"].breach.summary.endswith("assign returned null")
