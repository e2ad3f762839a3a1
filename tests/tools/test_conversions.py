"""Groups on their way between the protocols, on the shipped coordinator: what breaks, and what does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rebalance_verifier.live.code.simulation import Simulation

from tools.migration.findings import (
    RELEASES,
    MigrationFinding,
    findings,
    readable,
    shown,
)
from tools.migration.group import MigrationGroup
from tools.migration.search import (
    FAULTS,
    NOBODY,
    OVERLAP,
    PLANS,
    TWICE,
    MigrationRun,
    drawn,
    plan_of,
    play,
    smaller,
)

NEWEST = RELEASES[-1]
PAGE = Path(__file__).parents[2] / "docs" / "results" / "migration.md"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Simulation]:
    with Simulation([NEWEST], [NEWEST]) as simulation:
        yield simulation


def name(finding: MigrationFinding) -> str:
    return finding.id


def test_each_finding_has_one_fault_at_most_and_the_page_has_each():
    text = PAGE.read_text(encoding="utf-8")
    for one in findings():
        assert sum(step.split()[0] in FAULTS for step in one.each_step) == (1 if one.fault else 0), one.id
        assert one.plan in PLANS
        assert f'<a id="{one.id}"></a>\n## {one.title}\n' in text
        assert f"`{one.steps}`" in text
    assert text.count("<a id=") == len(findings())
    assert not re.search(r"/root|/home|/tmp|/work", text)


@pytest.mark.slow
def test_a_group_that_a_refused_join_deletes_is_in_the_log_still(jvm: Simulation) -> None:
    one = next(one for one in findings() if one.id == "refused-and-deleted")
    _, group = play(jvm, plan_of(one.plan, NEWEST), one.each_step[:-1], "dead", at_rest=False)
    assert (group.state.coordinator.state, group.state.coordinator.consumer) == (None, None)
    group.step("failover")
    known = group.state.coordinator.consumer
    assert known is not None
    assert (known.state, known.members) == ("Empty", ())


def test_a_log_is_shown_from_where_the_group_was_last_at_rest():
    log = [
        "# start A",
        "# settle",
        "A -> Heartbeat",
        "# start B",
        "B: metadata",
        "# poll B",
        "B -> JoinGroup",
    ]
    assert readable(log) == ("-- B starts", "B -> JoinGroup")
    assert readable(["# start A", "A -> JoinGroup", "# failover"]) == (
        "-- A starts", "A -> JoinGroup", "-- another broker becomes the coordinator",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("finding", findings(), ids=name)
def test_it_is_so_on_the_newest_release(finding: MigrationFinding, jvm: Simulation):
    one = shown(jvm, finding, NEWEST)
    assert one.shows, one.run
    if finding.kind == TWICE:
        assert len(one.commits) == 2
        assert all(line.endswith(": NONE") for line in one.commits)
    text = PAGE.read_text(encoding="utf-8")
    assert f"| [{finding.id}](#{finding.id}) |" in text
    assert one.log[-1] in text


@pytest.mark.slow
def test_of_two_owners_one_may_not_commit_where_it_is_said_so(jvm: Simulation):
    for one in (one for one in findings() if one.kind == OVERLAP):
        run, group = play(jvm, plan_of(one.plan, NEWEST), one.each_step, one.kind)
        assert run.kind == OVERLAP
        errors = {group.commit(owner.member, run.what) for owner in group.owners()[run.what]}
        assert errors == {"NONE", "ILLEGAL_GENERATION"}


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["cooperative", "eager", "two"])
def test_a_conversion_that_nothing_disturbs_gives_everybody_its_part(plan: str, jvm: Simulation):
    group = MigrationGroup(jvm, plan_of(plan, NEWEST))
    for step in ("start A", "settle", "start B", "settle", "start C", "settle"):
        assert group.step(step)
    assert {len(owners) for owners in group.owners().values()} == {1}
    assert all(group.accepted(who) for who in "ABC")
    assert group.converted == 1
    for step in ("leave C", "settle"):
        assert group.step(step)
    assert {owner.member for owners in group.owners().values() for owner in owners} == {"A", "B"}
    assert (group.overlaps(), group.unowned()) == ((), ())
    assert group.converted == (1 if plan == "two" else 2)


@pytest.mark.slow
def test_a_step_that_cannot_be_changes_nothing(jvm: Simulation):
    group = MigrationGroup(jvm, plan_of("static", NEWEST))
    for step in ("poll A", "respond C", "expire A", "reconcile C", "no such", "poll Z"):
        assert not group.step(step)
    assert group.log == []
    assert group.step("start A")
    assert not group.step("start C")  # the same process after its upgrade


@pytest.mark.slow
def test_a_drawn_run_is_the_same_again_and_what_is_made_smaller_breaks_the_same(jvm: Simulation):
    plan = plan_of("cooperative", NEWEST)
    assert drawn(jvm, plan, "7") == drawn(jvm, plan, "7")
    steps = ("start C", "settle", "start A", "settle", "poll A", "run C", "beat A", "leave C", "failover")
    run, _ = play(jvm, plan, steps, NOBODY)
    assert run.kind == NOBODY
    small = smaller(jvm, MigrationRun(plan=plan, steps=steps, kind=NOBODY, what=run.what))
    assert small.steps == ("start C", "settle", "start A", "settle", "leave C", "failover")


@pytest.mark.nightly
@pytest.mark.parametrize("release", RELEASES[:-1])
def test_it_is_so_on_each_release_as_the_page_has_it(release: str):
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(#.*?\) \|[^|]*\|[^|]*\| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M
    )
    assert [name for name, _ in rows] == [one.id for one in findings()]
    column = RELEASES.index(release)
    with Simulation([release], [NEWEST]) as simulation:
        for one, (_, marks) in zip(findings(), rows, strict=True):
            assert shown(simulation, one, release).shows is (marks.split(" | ")[column] == "X"), one.id
