"""The HTML report of a check: what it says, that hostile text stays text, that it stays small."""

from __future__ import annotations

import cProfile
import html as escaping
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.gate.scenarios.generator import BY_NAME
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.result import Result, Status
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.report.html import check as html
from rebalance_verifier.report.html import page

from tests.report.pages import HOSTILE, checked, hostile, sound, stepped

BUG = "trust_all_claims"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A check that found something, its traces saved."""
    return counterexamples.save_all(checked(BUG), tmp_path_factory.mktemp("root"))


@pytest.mark.slow
def test_a_failure_is_told_with_all_that_it_takes(broken: Result) -> None:
    written = html.render(broken)
    seen = sound(written)
    row = next(row for row in broken.clauses if row.status is Status.VIOLATED)
    finding = row.finding
    assert finding is not None
    assert "VIOLATION" in seen.text
    for expected in (
        finding.breach.summary,
        *finding.breach.because,
        finding.breach.expected,
        finding.breach.actual,
        row.clause.sentence,
        f"rebalance replay {finding.trace_id}",
        "✗ breaks here",
        f"def test_{finding.trace_id}() -> None:",
        f'"clause": "{row.clause.id}"',
    ):
        assert expected in seen.text, expected
    assert row.clause.link in seen.values("href")
    drawn = len(broken.samples) + sum(row.finding is not None for row in broken.clauses)
    assert len(seen.all("svg")) == drawn


def test_rounds_can_be_stepped_through_and_the_breaking_one_says_why(broken: Result) -> None:
    written = html.render(broken)
    findings = [one for row in broken.clauses for one in row.findings if one.calls]
    runs = stepped(written)
    assert sorted(len(rows) for rows in runs) == sorted(len(one.calls) + 1 for one in findings)
    for rows in runs:
        assert {name for row in rows for name in row[4]} >= {"the leader"}
    for one in findings:
        here = re.findall("<tr class=here>.*?</tr>", written)
        assert any(escaping.escape(one.breach.summary)[:60] in row for row in here)
        assert any(str(one.breach.partitions[0]) in row for row in here if one.breach.partitions)


def test_the_test_and_the_trace_in_the_page_are_those_on_disk(broken: Result) -> None:
    row = next(row for row in broken.clauses if row.finding)
    assert row.finding is not None
    trace = counterexamples.load(Path(row.finding.path))
    shown = [
        escaping.unescape(text) for text in re.findall("<pre>(.*?)</pre>", html.render(broken), re.DOTALL)
    ]
    assert counterexamples.as_pytest(trace) in shown
    assert counterexamples.to_text(trace) in shown


@pytest.mark.slow
def test_every_clause_and_every_dimension_is_there_with_its_figures() -> None:
    result = checked()
    seen = sound(html.render(result))
    assert "CONFORMANT" in seen.text
    assert "What is broken" not in seen.text
    for row in result.clauses:
        assert row.clause.id in seen.text
        assert row.clause.sentence in seen.text
    for name in BY_NAME:
        assert BY_NAME[name].sentence in seen.text
    assert set(result.witnesses) <= set(seen.texts)
    unsupported = [row.note for row in result.clauses if row.status is Status.UNSUPPORTED]
    assert unsupported
    assert all(note in seen.text for note in unsupported)


def test_coverage_adds_up() -> None:
    result = checked(BUG)
    for row in result.clauses:
        mine = [one for one in result.coverage if one.protocol is row.protocol]
        if row.scenarios:
            assert max(one.scenarios for one in mine) <= row.scenarios <= sum(one.scenarios for one in mine)
        if row.broken:
            assert max(one.broken.get(row.clause.id, 0) for one in mine) <= row.broken
            assert sum(one.broken.get(row.clause.id, 0) for one in mine) >= row.broken
    for name, times in result.witnesses.items():
        assert sum(one.witnesses.get(name, 0) for one in result.coverage) >= times


def test_samples_pass_and_are_the_same_for_the_same_seed() -> None:
    result = checked(BUG)
    keys = [(one.scenario.protocol, one.dimension) for one in result.samples]
    assert len(keys) == len(set(keys)) > 30
    assert all(set(one.scenario.dimensions) == {one.dimension} - {""} for one in result.samples)
    subject = Subject.of(InProcess(switched("cooperative-sticky", (BUG,))))
    for one in result.samples:
        record = subject.play(one.scenario, TABLE)
        assert (record.calls, record.found) == (one.calls, ())
    checked.cache_clear()
    again = checked(BUG)
    assert again.samples == result.samples
    assert again.coverage == result.coverage


@pytest.mark.slow
def test_equal_results_give_equal_pages_that_name_no_machine(broken: Result) -> None:
    assert html.render(broken) == html.render(replace(broken))
    slow = re.sub("99.9 s", "", html.render(replace(broken, seconds=99.9)))
    quick = re.sub("11.1 s", "", html.render(replace(broken, seconds=11.1)))
    assert slow == quick


@pytest.mark.slow
def test_what_is_missed_flaky_known_fixed_or_stale_is_named() -> None:
    result = checked()
    first, second, third, *rest = result.clauses
    rows = (
        replace(first, status=Status.KNOWN, note="see issue 12"),
        replace(second, status=Status.FLAKY, note="see issue 13"),
        replace(third, status=Status.FIXED, note="line 7"),
        *rest,
    )
    seen = sound(html.render(replace(result, clauses=rows, stale_known=("old/**",), missed=("never: x",))))
    for expected in ("see issue 12", "see issue 13", "line 7", "old/**", "never: x"):
        assert expected in seen.text


def test_a_floor_that_was_missed_shows() -> None:
    result = checked()
    protocol = result.coverage[0].protocol
    reached = next(name for one in result.coverage if one.protocol is protocol for name in one.witnesses)
    seen = sound(html.render(replace(result, floors={protocol: (reached, "no such situation")})))
    assert seen.texts.count(f"{protocol} ✗ missed") == 1
    assert seen.texts.count(f"{protocol} ✓") == 1


def test_hostile_names_stay_text() -> None:
    written = html.render(hostile())
    seen = sound(written)
    assert "<script>alert(1)</script>" in seen.text
    assert "javascript:alert(1)" in seen.text
    assert not [url for url in seen.values("href") if url.startswith("javascript")]
    assert "\u202e" not in written
    assert [tag for tag, _ in seen.tags].count("h1") == 1
    assert len(written.encode()) < 5_000_000


def test_a_page_of_failures_is_capped_and_says_so() -> None:
    found = hostile(clauses=33)
    seen = sound(html.render(found))
    assert len(seen.all("article")) <= html.MAX_DRAWN
    assert "more broken clauses without a picture" in seen.text


def test_a_long_counterexample_has_its_first_and_last_rounds() -> None:
    seen = sound(html.render(hostile(rounds=1000, clauses=1)))
    assert "rounds 181 to 980 are left out here" in seen.text
    assert "1,000 ✗ breaks here" in seen.text
    assert "--as-pytest test_0123abcd.py" in seen.text


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(("more", "fixed"), [("rounds", {"members": 5}), ("members", {"rounds": 5})])
def test_work_and_size_grow_no_faster_than_the_trace(more: str, fixed: dict[str, int]) -> None:
    def work(size: int) -> tuple[int, int]:
        found = hostile(clauses=1, **{more: size}, **fixed)
        with cProfile.Profile() as profile:
            written = html.render(found)
        return sum(one.callcount for one in profile.getstats()), len(written.encode())

    calls, size = work(150)
    more_calls, more_size = work(1200)
    assert more_calls < 10 * calls
    assert more_size < 2 * size + 100_000


def test_an_unconfirmed_finding_has_no_rounds_to_show() -> None:
    result = hostile(clauses=1)
    rows = tuple(
        replace(row, finding=row.finding and replace(row.finding, calls=(), confirmed=False))
        for row in result.clauses
    )
    assert "there is no recording to show" in sound(html.render(replace(result, clauses=rows))).text


@pytest.mark.parametrize(
    ("url", "links"),
    [
        ("https://example.org/a?b=c&d", True),
        ("http://example.org", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("https:///x", False),
        ("https://exa\nmple.org", False),
        ("//example.org", False),
        ("https://[", False),
        ("file:///etc/passwd", False),
    ],
)
def test_only_web_addresses_become_links(url: str, links: bool) -> None:
    assert ("<a " in page.link(url)) == links
    assert "\n" not in page.link(url)


@pytest.mark.parametrize("value", HOSTILE)
def test_text_and_attributes_are_escaped(value: str) -> None:
    made = page.tag("p", value, title=value)
    assert made.count("<") == made.count(">") == 2
    assert sound(page.document(value, page.headline(f"X  {value}", "good"), page.section("s", value, value)))


def test_regions_of_one_name_get_numbers() -> None:
    made = page.document(
        "t", page.headline("X  y", "good"), page.scroll("same", "a"), page.scroll("same", "b")
    )
    assert 'aria-label="same"' in made
    assert 'aria-label="same (2)"' in made
    sound(made)
