"""Targets beside each other: the matrix, what it remembers, and what the catalogue says of it."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.cli.commands import compare as compare_cli
from rebalance_verifier.cli.console.terminal import UsageError
from rebalance_verifier.gate.compare import clients, compare
from rebalance_verifier.gate.compare.compare import (
    UNKNOWN,
    CellMark,
    Judged,
    TargetCell,
    TargetColumn,
    TargetComparison,
    expectation,
)
from rebalance_verifier.gate.scenarios.probes import Probe, ProbeOutcome, probes
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import TargetInfo
from rebalance_verifier.gate.search.search import describe
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.hosted import load
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.hosts.java import parse
from rebalance_verifier.live.artifacts.maven import CLIENTS
from rebalance_verifier.live.artifacts.registries import Existing
from rebalance_verifier.model.assignors.promises import KAFKA
from rebalance_verifier.model.bugs.catalogue import entries_of
from rebalance_verifier.model.bugs.releases import parse as releases
from rebalance_verifier.model.bugs.releases import version as as_version
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.model.values import RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE, select
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Scenario,
    ScenarioMember,
    SetTopic,
    UserData,
    uniform,
)
from rebalance_verifier.report.terminal import comparison as report

from tests.gate.compare.judged import ABOUT, ROWS, judged, other
from tools import results

EXAMPLES = Path(__file__).parents[3] / "examples" / "adapters" / "clients.json"
TINY = CheckPlan(
    clauses=select(["kip429/leader/4", "assign/1", "assign/4"]),
    profile=SearchProfile(name="tiny", each=1, mixed=2, large=0, crowd=0, shrink=60),
    level=Level.QUALITY,
)
COLUMNS = tuple(
    TargetColumn(spec=spec, label=spec.removeprefix("cooperative-sticky") or "right", client="reference")
    for spec in ("cooperative-sticky", "cooperative-sticky+max_generation_only", "range")
)
QUICK = [
    p for p in probes() if p.switch in ("max_generation_only", "trust_all_claims", "npe_on_missing_topic")
]


@pytest.fixture
def few(monkeypatch):
    """Only a few of the probes."""
    monkeypatch.setattr(compare, "probes", lambda: tuple(QUICK))


@pytest.fixture
def comparison(tmp_path, few):
    return TargetComparison(columns=COLUMNS, directory=tmp_path / "out", plan=TINY)


# --- the probes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probe", [p for p in probes() if p.scenario.size[0] < 100], ids=lambda p: p.switch)
def test_a_probe_shows_its_mistake_and_nothing_on_the_reference(probe: Probe):
    for spec, shown in (
        (probe.assignor, ProbeOutcome.NO),
        (f"{probe.assignor}+{probe.switch}", ProbeOutcome.YES),
    ):
        subject = Subject.of(InProcess(load(spec)))
        control = subject.play(probe.control, (probe.clause,)) if probe.control else None
        assert probe.shows(subject.play(probe.scenario, TABLE), control) is shown, spec


def test_all_mistakes_of_java_that_one_call_shows_have_a_probe():
    have = {probe.switch for probe in probes()}
    lacking = {
        switch
        for switch in SWITCHES
        for entry in entries_of(switch)
        if switch not in have
        and any(
            releases(entry.shipped(switch)).includes("Java", v)
            for v in ((2, 4, 1), (2, 8, 1), (3, 4, 0), (4, 0, 0))
        )
    }
    # The leader's check is in ConsumerCoordinator, which no assignor is asked through: the model shows it. A
    # useless sweep gives the right result, and the time does not tell with 1,000 partitions.
    assert lacking == {"validate_raw_claims", "is_balanced_off_by_one"}


def test_another_mistake_hides_the_one_that_is_asked_for():
    [probe] = [p for p in probes() if p.switch == "last_claim_wins"]
    record = Subject.of(InProcess(load("cooperative-sticky+trust_all_claims"))).play(probe.scenario, TABLE)
    assert record.breach_of(probe.clause.id)
    assert probe.shows(record) is ProbeOutcome.HIDDEN


class Raises:
    """Answers the first calls, then fails."""

    protocols, promises = ("eager",), ()

    def __init__(self, answers: int) -> None:
        self.left = answers

    def assign(self, cluster, group):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("enough")
        return dict.fromkeys(group, ())


def test_a_play_that_was_cut_short_says_nothing():
    """It ends before the two leaders could disagree."""
    [probe] = [p for p in probes() if p.switch == "members_unsorted"]
    record = Subject.of(InProcess(Raises(0))).play(probe.scenario, TABLE)
    assert record.failure
    assert probe.shows(record) is ProbeOutcome.UNSEEN


def test_who_fails_without_the_mistake_too_makes_another_one():
    [probe] = [p for p in probes() if p.switch == "npe_on_missing_topic"]
    assert probe.control
    subject = Subject.of(InProcess(Raises(0)))
    record, control = subject.play(probe.scenario, TABLE), subject.play(probe.control, (probe.clause,))
    assert probe.shows(record) is ProbeOutcome.YES
    assert probe.shows(record, control) is ProbeOutcome.HIDDEN


# --- the cells -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_cells_are_what_playing_shows(comparison):
    right, wrong, other = compare.run(comparison)
    assert {key: cell.mark for key, cell in right.clauses.items()} == {
        "assign/1-eager": CellMark.HOLDS,
        "assign/1-cooperative": CellMark.HOLDS,
        "assign/4-eager": CellMark.HOLDS,
        "assign/4-cooperative": CellMark.HOLDS,
        "kip429/leader/4-cooperative": CellMark.HOLDS,
    }
    assert wrong.clauses["kip429/leader/4-cooperative"].mark is CellMark.BROKEN
    assert other.clauses["kip429/leader/4-cooperative"].mark is CellMark.UNASKED
    assert [cell.mark for cell in right.entries.values()] == [
        CellMark.HOLDS,
        CellMark.HOLDS,
        CellMark.UNASKED,
    ]
    assert [cell.mark for cell in wrong.entries.values()] == [
        CellMark.HOLDS,
        CellMark.BROKEN,
        CellMark.UNASKED,
    ]
    assert {cell.mark for cell in other.entries.values()} == {CellMark.UNASKED}


def test_a_mistake_that_only_breaks_what_is_not_promised_is_not_asked_for():
    [probe] = [p for p in probes() if p.switch == "duplicate_claims_cancel"]
    info = describe("x", InProcess(load("cooperative-sticky")).hello)
    assert probe.concerns(info.name, info.protocols, info.promises)
    assert not probe.concerns(info.name, info.protocols, ("balanced",))


@pytest.mark.slow
def test_a_red_cell_has_a_trace_that_replays(comparison, rebalance):
    _, wrong, _ = compare.run(comparison)
    for cell in (wrong.entries["max_generation_only"], wrong.clauses["kip429/leader/4-cooperative"]):
        assert counterexamples.load(Path(cell.trace)).target.spec == wrong.column.spec
        ran = rebalance("replay", cell.trace)
        assert ran.code == 1
        assert cell.summary in ran.out


EMPTY = CheckPlan(
    clauses=TINY.clauses,
    profile=SearchProfile(name="none", each=0, mixed=0, large=0, crowd=0, shrink=60),
    level=Level.QUALITY,
)
KEY = "kip429/leader/4-cooperative"


def caught(comparison, one, scenario):
    """The target as if its own search had found this."""
    record = Subject.of(InProcess(load(one.column.spec))).play(scenario, TABLE)
    one.searched[KEY] = compare._red(comparison, one.info, CLAUSES[KEY.rpartition("-")[0]], record)
    compare._save(comparison, one)


@pytest.mark.nightly
def test_what_catches_one_is_asked_of_all(comparison, monkeypatch):
    """A search that finds nothing by itself: the counterexample comes from another target."""
    columns = (TargetColumn(spec="cooperative-sticky+no_withhold", label="a"), COLUMNS[1], COLUMNS[0])
    monkeypatch.setattr(compare, "probes", lambda: ())
    three = TargetComparison(columns=columns, directory=comparison.directory, plan=EMPTY)
    judged = compare.run(three)
    assert not [c for one in judged for c in one.clauses.values() if c.mark is CellMark.BROKEN]
    [probe] = [p for p in QUICK if p.switch == "max_generation_only"]
    caught(three, judged[0], probe.scenario)
    first, second, right = compare.run(three)
    for one in (first, second):
        assert one.clauses[KEY].mark is CellMark.BROKEN
        assert counterexamples.load(Path(one.clauses[KEY].trace)).scenario == probe.scenario
    assert right.clauses[KEY].mark is CellMark.UNKNOWN  # it was asked this one only


@pytest.mark.parametrize(("repeated", "plays"), [(CellMark.HOLDS, 5), (CellMark.BROKEN, 40)])
def test_a_cell_is_red_if_each_play_is_and_unknown_if_some_are(comparison, repeated, plays):
    """Forty in a row of who is known to answer one question in several ways, five of others."""
    [probe] = [p for p in QUICK if p.switch == "max_generation_only"]
    wrong, right = load(f"cooperative-sticky+{probe.switch}"), load("cooperative-sticky")
    each = len(Subject.of(InProcess(wrong)).play(probe.scenario, (probe.clause,)).calls)

    class Mended:
        protocols, promises, user_data = wrong.protocols, wrong.promises, wrong.user_data

        def __init__(self, left: int) -> None:
            self.left = left

        def assign(self, cluster, group):
            self.left -= 1
            return (wrong if self.left >= 0 else right).assign(cluster, group)

    marks = []
    for left in (plays * each, (plays - 1) * each, 0):
        session = InProcess(Mended(left))
        searched = {KEY: TargetCell(CellMark.HOLDS), "assign/6-cooperative": TargetCell(repeated)}
        one = Judged(column=COLUMNS[0], info=describe("mended", session.hello), searched=searched)
        compare._play(comparison, one, session, {KEY: [probe.scenario]})
        marks.append(one.clauses[KEY].mark)
    assert marks == [CellMark.BROKEN, CellMark.UNKNOWN, CellMark.HOLDS]


@pytest.mark.nightly
def test_the_smallest_counterexample_stands_behind_a_cell_whoever_was_first(comparison, monkeypatch):
    monkeypatch.setattr(compare, "probes", lambda: ())
    [small] = [p.scenario for p in QUICK if p.switch == "max_generation_only"]
    large = replace(small, members=(*small.members, ScenarioMember(id="D", topics=("t",))))
    found = []
    for folder, order in (("one", (0, 1)), ("two", (1, 0))):
        specs = ("cooperative-sticky+no_withhold", "cooperative-sticky+max_generation_only")
        columns = tuple(TargetColumn(spec=specs[at], label=specs[at]) for at in order)
        both = TargetComparison(columns=columns, directory=comparison.directory / folder, plan=EMPTY)
        for one, scenario in zip(compare.run(both), [(large, small)[at] for at in order], strict=True):
            caught(both, one, scenario)
        judged = compare.run(both)
        assert {counterexamples.load(Path(one.clauses[KEY].trace)).scenario.size for one in judged} == {
            small.size
        }
        found.append({one.column.spec: replace(one.clauses[KEY], trace="") for one in judged})
    assert found[0] == found[1]


@pytest.mark.slow
def test_counterexamples_from_elsewhere_are_played_too(comparison, monkeypatch):
    monkeypatch.setattr(compare, "probes", lambda: ())
    two = TargetComparison(columns=COLUMNS[:2], directory=comparison.directory, plan=EMPTY)
    assert {one.clauses[KEY].mark for one in compare.run(two)} == {CellMark.UNKNOWN}
    [probe] = [p for p in QUICK if p.switch == "max_generation_only"]
    trace = counterexamples.Trace(
        clause=probe.clause, target=TargetInfo(spec="another", name="another"), scenario=probe.scenario
    )
    right, wrong = compare.run(replace(two, known=(trace,)))
    assert right.clauses[KEY].mark is CellMark.UNKNOWN
    assert wrong.clauses[KEY].mark is CellMark.BROKEN


@pytest.mark.slow
def test_what_is_done_is_not_done_again(comparison, monkeypatch):
    reported: list[str] = []

    def report_progress(done, total, what):
        reported.append(f"{done + 1}/{total} {what}")

    before = compare.run(comparison, report_progress)
    assert len(reported) == 2 * len(COLUMNS)
    reported.clear()
    assert compare.run(comparison, report_progress) == before
    assert reported == []
    more = TargetComparison(
        columns=(*COLUMNS, TargetColumn(spec="sticky", label="sticky")),
        directory=comparison.directory,
        plan=TINY,
    )
    compare.run(more, report_progress)
    assert reported == ["1/1 search sticky", "1/1 counterexamples of all on sticky"]


@pytest.mark.nightly
def test_two_processes_find_what_one_finds(comparison, tmp_path):
    one = replace(comparison, columns=COLUMNS[:2])
    two = replace(one, directory=tmp_path / "two", jobs=2)
    alone, shared = (
        [{key: (cell.mark, cell.summary) for key, cell in row.clauses.items()} for row in compare.run(asked)]
        for asked in (one, two)
    )
    assert shared == alone


@pytest.mark.slow
def test_an_interrupt_keeps_what_is_done(comparison, monkeypatch):
    check = vars(compare)["check"]

    def interrupted(plan, session, info, **more):
        if "max" in info.spec:
            raise KeyboardInterrupt
        return check(plan, session, info, **more)

    monkeypatch.setattr(compare, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare.run(comparison)
    right, wrong, other = compare.stored(comparison)
    assert right.searched
    assert not wrong.info
    assert not other.info
    monkeypatch.setattr(compare, "check", check)
    assert all(one.searched for one in compare.run(comparison))


@pytest.mark.nightly
def test_another_comparison_in_the_same_place_is_refused(comparison):
    compare.run(comparison)
    other = TargetComparison(columns=COLUMNS, directory=comparison.directory, plan=TINY, call_seconds=3.0)
    with pytest.raises(compare.CompareError, match="another call_seconds: take another --out"):
        compare.run(other)
    (comparison.directory / "comparison.json").write_text('{"schema":')
    with pytest.raises(
        compare.CompareError, match=r"comparison\.json is not what was saved there: delete it"
    ):
        compare.run(comparison)


@pytest.mark.slow
def test_a_target_that_does_not_start_is_a_column_without_a_verdict(comparison):
    one, bad = compare.run(
        TargetComparison(
            columns=(COLUMNS[0], TargetColumn(spec="nowhere:x", label="bad")),
            directory=comparison.directory,
            plan=TINY,
        )
    )
    assert one.searched
    assert "no module and no adapter is called 'nowhere'" in bad.error
    assert "bad: not judged: 'nowhere:x'" in report.text([one, bad])
    assert "- bad: not judged: 'nowhere:x'" in report.markdown([one, bad], ABOUT)


@pytest.mark.slow
def test_a_search_that_did_not_end_clears_nothing(comparison, monkeypatch):
    check = vars(compare)["check"]
    monkeypatch.setattr(compare, "check", lambda *a, **k: replace(check(*a, **k), missed=("stopped early",)))
    right, wrong, _ = compare.run(comparison)
    assert right.clauses["assign/1-eager"] == TargetCell(CellMark.UNKNOWN, "stopped early")
    assert wrong.clauses[KEY].mark is CellMark.BROKEN
    assert "? assign/1-eager (safety) in right: stopped early" in report.text([right])


@pytest.mark.slow
def test_a_target_with_a_profile_of_its_own_is_searched_as_far_as_that(comparison, monkeypatch):
    check, profiles = vars(compare)["check"], []
    tiny = replace(TINY.profile, name="tinier")
    monkeypatch.setitem(PROFILES, "tinier", tiny)

    def noted(plan, *rest, **options):
        profiles.append(plan.profile.name)
        return check(plan, *rest, **options)

    monkeypatch.setattr(compare, "check", noted)
    columns = (COLUMNS[2], replace(COLUMNS[2], profile="tinier"))
    compare.run(replace(comparison, columns=columns))
    assert profiles == ["tiny", "tinier"]


# --- the catalogue ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "spec", "version", "expected"),
    [
        ("max_generation_only", f"java:{KAFKA}.CooperativeStickyAssignor@x.jar", "3.4.0", True),
        ("max_generation_only", f"java:{KAFKA}.CooperativeStickyAssignor@x.jar", "3.4.1", False),
        ("trust_all_claims", f"java:{KAFKA}.CooperativeStickyAssignor@x.jar", "2.8.0", True),
        ("trust_all_claims", f"java:{KAFKA}.CooperativeStickyAssignor@x.jar", "2.4.1", False),
        ("max_generation_only", "java:acme.Own@x.jar", "3.4.0", None),
        ("max_generation_only", "cooperative-sticky", "3.4.0", None),
        ("max_generation_only", f"java:{KAFKA}.CooperativeStickyAssignor@x.jar", "unknown", None),
    ],
)
def test_what_the_catalogue_expects(switch, spec, version, expected):
    assert expectation(switch, spec, version) is expected


@pytest.mark.parametrize(
    ("mark", "expected", "agrees"),
    [
        (CellMark.BROKEN, True, True),
        (CellMark.BROKEN, False, False),
        (CellMark.HOLDS, True, False),
        (CellMark.HOLDS, None, True),
        (CellMark.OTHERWISE, False, True),
        (CellMark.UNKNOWN, True, True),
    ],
)
def test_a_cell_agrees_or_not(mark, expected, agrees):
    assert TargetCell(mark, expected=expected).agrees is agrees


@pytest.mark.parametrize(
    ("agrees", "mark", "error", "code"),
    [
        (True, CellMark.BROKEN, "", 0),
        (True, CellMark.HOLDS, "", 0),
        (True, CellMark.HOLDS, "gone", 3),
        (True, CellMark.UNKNOWN, "", 3),
        (False, CellMark.UNKNOWN, "gone", 1),
    ],
)
def test_a_cell_that_differs_counts_more_than_one_without_a_verdict(agrees, mark, error, code):
    other = Judged(
        column=TargetColumn(spec="x", label="x"),
        error=error,
        clauses={"assign/1-eager": TargetCell(mark)},
    )
    assert compare_cli.exit_of([judged("1.0", CellMark.BROKEN, agrees), other]) == code


@pytest.mark.parametrize("verbose", [False, True])
def test_the_command_shows_the_form_that_was_asked_for(comparison, capsys, verbose):
    about = report.About.of(comparison)
    forms = {
        "json": report.to_json(ROWS),
        "md": report.markdown(ROWS, about),
        "text": report.text(ROWS, verbose=verbose),
    }
    assert len({*forms.values(), report.text(ROWS, verbose=not verbose)}) == 4
    for form, shown in forms.items():
        compare_cli._show(ROWS, comparison, form, verbose)
        assert capsys.readouterr().out.rstrip("\n") == shown.rstrip("\n")


# --- the clients -----------------------------------------------------------------------------------------


EXIST = {
    "maven:org.apache.kafka:kafka-clients": ("2.3.1", "2.4.0", "2.4.1", "3.4.0", "3.4.1", "4.3.1", "4.10.0"),
    "pypi:kafka-python": ("1.4.7", "2.0.2", "2.0.6", "3.0.0", "3.0.11", "3.0.13"),
    "go:github.com/twmb/franz-go": ("1.99.0",),
}
"""What the registries say here; the others cannot be asked."""


def ask(packages):
    return {
        package: Existing(EXIST[package]) if package in EXIST else Existing(trouble=f"{package}: no network")
        for package in packages
    }


def columns(targets, wanted, of, assignors):
    return compare_cli.columns(targets, wanted, of, assignors, ask=ask)


JAVA = next(client for client in clients.pinned() if client.name == "kafka-clients")


def test_columns_are_releases_of_each_assignor():
    found = columns(["range"], None, ("2.4.1", "4.0.0"), ("sticky", "roundrobin"))
    assert [column.label for column in found] == ["range", "2.4.1", "4.0.0", "2.4.1", "4.0.0"]
    assert parse(found[1].spec).where == (f"{CLIENTS}:2.4.1",)
    assert parse(found[1].spec).class_name == f"{KAFKA}.StickyAssignor"
    assert [column.newest for column in found] == ["", *["4.10.0"] * 4]


def test_all_releases_are_those_that_are_named_and_the_last_of_each_minor_series_that_exists():
    named = ["2.4.1", "2.5.1", "2.8.0", "2.8.1", "3.0.0", "3.4.0", "3.4.1", "4.0.0"]
    assert list(JAVA.releases) == named
    found = columns([], None, ("all",), ("range",))
    assert [c.label for c in found] == [*named, "4.3.1", "4.10.0"]
    python = columns([], ["kafka-python"], None, ["sticky"])
    assert [c.label for c in python] == ["2.0.2", "2.0.6", "3.0.0", "3.0.4", "3.0.12", "3.0.13"]


def test_the_newest_is_the_newest_that_exists():
    for name, release in (("kafka-clients", "4.10.0"), ("kafka-python", "3.0.13")):
        [found] = columns([], [name], ["newest"], ["range"])
        assert (found.label, found.newest) == (release, release)
        assert release in found.spec


def test_the_newest_of_an_adapter_is_known_and_what_is_installed_is_judged():
    found = columns([f"@{EXAMPLES}"], None, None, ["range"])
    assert [(c.client, c.label, c.newest) for c in found if c.client in ("franz-go", "sarama")] == [
        ("franz-go", "", "1.99.0"),
        ("sarama", "", UNKNOWN),
    ]


def test_without_the_registry_the_named_releases_are_taken_and_it_says_so(capsys):
    found = columns([], ["aiokafka", "reference"], ["newest"], ["range"])
    assert [(c.label, c.newest) for c in found] == [("0.14.0", UNKNOWN), ("", "")]
    assert capsys.readouterr().err == "pypi:aiokafka: no network; those that are named are taken\n"


def test_nobody_is_asked_for_what_is_wrong_or_in_no_registry():
    def never(packages):
        raise AssertionError(packages)

    assert compare_cli.columns([], ["reference"], None, None, ask=never)
    with pytest.raises(UsageError, match="none of the clients has 'fair'"):
        compare_cli.columns([], None, ["all"], ["fair"], ask=never)
    with pytest.raises(UsageError, match="'new' is no release"):
        compare_cli.columns([], ["kafka-python"], ["new"], None, ask=never)


def test_the_named_releases_stand_on_both_sides_of_each_mistake_of_java():
    """What a probe shows of the Java client shows, and is gone where it ended, without any registry."""
    for entry, switch in {(entry, p.switch) for p in probes() for entry in entries_of(p.switch)}:
        known = releases(entry.shipped(switch))
        spans = [span for span in known.spans if span.product == "Java"]
        shipped = {known.includes("Java", as_version(one)) for one in JAVA.releases}
        assert (True in shipped) is any(not span.end or span.end > (2, 4) for span in spans), entry.id
        assert (False in shipped) or not all(span.end for span in spans), entry.id


def test_an_assignor_is_asked_from_the_release_on_that_has_it():
    found = columns([], ["kafka-python"], ("2.3.3", "3.0.0", "3.0.12"), None)
    for name in ("range", "sticky"):
        assert [c.label for c in found if c.assignor == name] == ["2.3.3", "3.0.0", "3.0.12"]
    assert [c.spec for c in found if c.assignor == "cooperative-sticky"] == [
        "kafka-python==3.0.0:cooperative-sticky",
        "kafka-python==3.0.12:cooperative-sticky",
    ]


def test_every_pinned_target_is_named_once_and_fully():
    many = Existing(tuple(f"{major}.{minor}.9" for major in range(5) for minor in range(16)))
    found = compare_cli.columns(
        [f"@{EXAMPLES}"], ["all"], None, None, ask=lambda packages: dict.fromkeys(packages, many)
    )
    assert len({column.spec for column in found}) == len(found) > 100
    assert all("{" not in column.spec for column in found)
    assert {"sarama", "kafkajs", "aiokafka", "reference"} <= {column.client for column in found}


MISSPELT = {"name": "x", "target": "{asignor}", "assignors": ["a"], "releases": [""]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "is no list of clients"),
        ('{"clients": []}', "'schema' is missing"),
        ('{"schema": 2, "clients": []}', "schema 2, this release reads 1"),
        (json.dumps({"schema": 1, "clients": [MISSPELT]}), "'asignor' is missing"),
    ],
)
def test_a_file_that_is_no_list_of_clients(text, says, tmp_path, rebalance):
    (tmp_path / "mine.json").write_text(text)
    ran = rebalance("compare", f"@{tmp_path}/mine.json")
    assert ran.code == 2
    assert says in ran.err


def test_a_pipe_is_no_list_of_clients(tmp_path, rebalance):
    os.mkfifo(tmp_path / "mine.json")
    ran = rebalance("compare", f"@{tmp_path}/mine.json")
    assert (ran.code, "is no list of clients" in ran.err) == (2, True)


# --- the report ------------------------------------------------------------------------------------------


def test_text_shows_where_what_is_broken(expected):
    expected(report.text(ROWS))
    expected(report.text(ROWS, verbose=True), "verbose")


def test_different_counterexamples_of_a_row_are_told_apart(expected):
    other = judged("1.1", CellMark.BROKEN)
    other.clauses = {
        "assign/1-eager": TargetCell(CellMark.BROKEN, "t-9 is assigned to A twice", "traces/other.json")
    }
    expected(report.text([ROWS[0], other, ROWS[2]]))


def test_markdown_and_json_hold_the_same(expected):
    expected(report.markdown(ROWS, ABOUT))
    data = json.loads(report.to_json(ROWS))
    assert [t["entries"]["trust_all_claims"]["mark"] for t in data["targets"]] == [
        "broken",
        "broken",
        "holds",
    ]
    assert data["targets"][2]["entries"]["trust_all_claims"]["agrees"] is False
    assert data["targets"][0]["clauses"]["assign/1-eager"]["trace"] == "traces/1.0.json"


@pytest.mark.parametrize(
    ("exists", "line"),
    [
        ("2.10", "acme: 2.0 is the newest that was judged, 2.10 the newest that exists"),
        (UNKNOWN, "acme: 2.0 is the newest that was judged, which is the newest that exists is not known"),
    ],
)
def test_the_newest_that_exists_stands_beside_the_newest_that_was_judged(exists, line):
    """One that could not be judged does not count; nor does the order in which they are named."""
    failed = judged("2.10", CellMark.HOLDS, newest=exists)
    failed.error = "it does not start"
    rows = [judged(label, CellMark.HOLDS, newest=exists) for label in ("2.0", "1.1")]
    assert line in report.text([*rows, failed, other(CellMark.HOLDS)]).splitlines()
    overview = results.pages([*rows, other(CellMark.HOLDS)], ABOUT, "there")[0]["README.md"]
    assert "| client | assignor | release | newest | breaks safety |" in overview
    assert f"| acme | sticky | 1.1 | {exists} |" in overview
    assert "| peer | fair | 0.9 | - |" in overview
    assert ("`?` as the newest: the registry could not be asked" in overview) is (exists == UNKNOWN)
    page = report.markdown([*rows, other(CellMark.HOLDS)], ABOUT)
    acme, peer = page.split("# acme\n")[1].split("# peer\n")
    assert line in acme
    assert "newest that exists" not in peer
    known = None if exists == UNKNOWN else exists
    assert json.loads(report.to_json([*rows, other(CellMark.HOLDS)]))["clients"] == [
        {"client": "acme", "judged": "2.0", "exists": known}
    ]
    assert json.loads(report.to_json([failed]))["clients"][0]["judged"] is None


SEEN = Scenario(
    protocol=RebalanceProtocol.COOPERATIVE,
    topics=uniform({"t": 3}),
    members=(
        ScenarioMember(id="A", topics=("t",), owned=(TopicPartition("t", 0),), generation=5),
        ScenarioMember(id="B", topics=("t",)),
    ),
    rounds=(
        (AddMember(ScenarioMember(id="C", topics=("t",))), SetTopic("t", ((),) * 4)),
        (Fault(FaultKind.MISSED_SYNC, "A"),),
    ),
)


def claims(*owned: str, topics: tuple[str, ...] = ("t",)) -> Scenario:
    partitions = tuple(TopicPartition("t", int(number)) for number in owned)
    return replace(SEEN, members=(replace(SEEN.members[0], topics=topics, owned=partitions), SEEN.members[1]))


@pytest.mark.parametrize(
    ("scenario", "what"),
    [
        (SEEN, []),
        (
            claims("0", "3"),
            ["t-3 is claimed and does not exist: the topic was deleted, or made again smaller"],
        ),
        (claims("0", "0"), ["A claims a partition twice"]),
        (
            replace(SEEN, rounds=((), (SetTopic("t", ((),) * 2),))),
            ["t is deleted and made again with fewer partitions"],
        ),
        (replace(SEEN, rounds=((), (SetTopic("t", None),))), []),
        (
            replace(SEEN, members=(SEEN.members[0], replace(SEEN.members[0], id="B", generation=4))),
            ["A and B claim t-0 at the same time"],
        ),
        (claims("1", topics=("u",)), ["A claims t-1 and does not subscribe to it"]),
        (
            replace(SEEN, rounds=((), (Fault(FaultKind.GHOST, "A"),))),
            ["A keeps its claims when it is removed, as Java members did before KAFKA-12983"],
        ),
        (
            replace(SEEN, members=(replace(SEEN.members[0], user_data=UserData.STICKY_V0),)),
            ["A has user data of a sticky assignor before KIP-341, without a generation"],
        ),
    ],
)
def test_rare_inputs_are_named(scenario, what):
    assert unusual_preconditions(scenario) == what


def test_old_claims_are_no_news_in_eager():
    ghost = replace(SEEN, rounds=((), (Fault(FaultKind.GHOST, "A"),)))
    older, equal = (replace(SEEN.members[0], id="B", generation=generation) for generation in (4, 5))
    twice = replace(ghost, members=(SEEN.members[0], older))
    assert unusual_preconditions(twice)
    twice = replace(twice, protocol=RebalanceProtocol.EAGER)
    assert unusual_preconditions(twice) == []
    assert unusual_preconditions(replace(twice, members=(SEEN.members[0], equal))) == [
        "A and B claim t-0 at the same time"
    ]


def test_a_counterexample_of_rare_input_is_marked_and_says_so():
    [probe] = [p for p in QUICK if p.switch == "max_generation_only"]
    rare = replace(probe.scenario, members=claims("0", "0").members)
    shown = other(CellMark.BROKEN)
    for scenario, mark in ((rare, "°"), (SEEN, "")):
        trace = counterexamples.Trace(
            clause=probe.clause, target=TargetInfo(spec="y", name="y"), scenario=scenario
        )
        about = report.About("1.2.3", "tiny", 7, dict.fromkeys(shown.cells, trace).get)
        page = report.markdown([shown], about)
        assert f"| [assign/1](peer.md#beef){mark} |" in results.pages([shown], about, "there")[0]["README.md"]
        assert ("- rare in practice: A claims a partition twice\n" in page) is bool(mark)


# --- the command -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command(rebalance, few):
    argv = ["cooperative-sticky", "cooperative-sticky+max_generation_only", "--clause", "kip429/leader/4"]
    ran = rebalance("compare", *argv)
    assert ran.code == 0
    assert "J4 max_generation_only" in ran.out
    assert "1/2 search cooperative-sticky" in ran.err
    assert re.search(r"2/2 search cooperative-sticky\+max_generation_only  \(about .* left\)", ran.err)
    again = rebalance("compare", *argv, "--format", "json", "--no-progress")
    assert again.err == ""
    assert len(json.loads(again.out)["targets"]) == 2


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "name the TARGETs to compare, or --client"),
        (["no-such"], "no target is called 'no-such'"),
        (["--versions", "all", "--only", "fair"], "none of the clients has 'fair'"),
        (
            ["--client", "librdkafkas"],
            "no client is called 'librdkafkas': did you",
        ),
        (["--client", "kafka-python", "--versions", "new"], "'new' is no release"),
        (["@nowhere.json"], "nowhere.json: No such file"),
        (["range", "--traces", "nowhere.json"], "--traces: "),
        (["range", "--clause", "nope"], "nope"),
        (["range", "--out", f"{os.devnull}/x"], f"{os.devnull}/x/targets: Not a directory"),
    ],
)
def test_wrong_use(argv, text, rebalance):
    ran = rebalance("compare", *argv)
    assert ran.code == 2
    assert text in ran.err


@pytest.mark.nightly
def test_two_releases_of_the_java_client(rebalance):
    """J4 was fixed between them, J30 was not, J2 had been fixed before."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    argv = ["--versions", "3.4.0,3.4.1", "--only", "cooperative-sticky", "--format", "json"]
    ran = rebalance("compare", *argv)
    if ran.code == 3 and any(why in ran.out for why in ("is there a network?", "a JDK is needed")):
        pytest.skip(ran.out[-300:])
    assert ran.code == 0, ran.out
    before, after = json.loads(ran.out)["targets"]
    for switch, marks in {
        "max_generation_only": ("broken", "holds"),
        "duplicate_claims_cancel": ("broken", "broken"),
        "trust_all_claims": ("holds", "holds"),
    }.items():
        assert (before["entries"][switch]["mark"], after["entries"][switch]["mark"]) == marks
        assert before["entries"][switch]["agrees"]
