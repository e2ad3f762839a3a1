"""Diagrams as text: two owners are seen, nothing is wider than the terminal, what is left out is named."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.text import columns, span
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.gate.scenarios.generator import generate
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.scenarios.round_view import followed
from rebalance_verifier.pipeline.audit.records import FindingOwner
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clause import Breach, Clause, History, Scope
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    uniform,
)
from rebalance_verifier.report.diagram import log_diagram, run_diagram, scenario_diagram, text
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram

from tests.report.handmade import COOPERATIVE, EAGER, call, finding, granted_while_owned, tps
from tests.report.test_svg import HOSTILE, drawing
from tests.traces.test_recordings import A, B, on, seen, twice

__all__ = ["twice"]


def chart(recording, **options):
    """All of a recording as text."""
    return text.draw(log_diagram.of_recording(recording), **options)


def of_finding(found, **options):
    """All of a finding as text."""
    return text.draw(scenario_diagram.of_finding(found), **options)


def drawn(found, **options):
    """The part of a chart that follows the story."""
    lines = of_finding(found, **options)
    return "\n".join(lines[lines.index("") + 1 :]) if "" in lines else ""


# --- the chart ------------------------------------------------------------------------------------


def test_chart_of_a_partition_granted_while_it_is_owned(expected):
    expected("\n".join(of_finding(granted_while_owned())))


def test_chart_of_the_legal_way_has_no_overlap(expected):
    calls = (
        call({"t": 1}, {"A": ("t-0", 1, ""), "B": ("", -1, "")}),
        call({"t": 1}, {"A": ("", 2, ""), "B": ("", 2, "t-0")}),
    )
    expected(drawn(finding("kip429/converge/2", calls, 2, Breach(summary="x"))))


def test_chart_of_a_superseded_claim_that_wins(expected):
    calls = (call({"t": 1}, {"A": ("t-0", 5, ""), "B": ("t-0", 3, "t-0")}),)
    expected(drawn(finding("kip792/claim/1", calls, 1, Breach(summary="x", partitions=tps("t-0")))))


def test_chart_of_two_owners_under_eager_knows_that_claims_are_past(expected):
    calls = (call({"t": 2}, {"A": ("t-0", 1, "t-1"), "B": ("t-1", 1, "t-0 t-1")}, EAGER),)
    expected(drawn(finding("assign/1", calls, 1, Breach(summary="x", partitions=tps("t-1")))))


def test_chart_of_one_member_given_the_same_twice():
    calls = (call({"t": 1}, {"A": ("t-0", 1, "t-0 t-0")}),)
    assert "▲ t-0 is owned by A twice in round 1" in drawn(finding("assign/1", calls, 1, Breach(summary="x")))


def test_chart_of_tied_claims_has_no_overlap_where_one_of_them_is_kept():
    calls = (call({"t": 1}, {"A": ("t-0", 1, "t-0"), "B": ("t-0", 1, "")}),)
    assert "▲" not in drawn(finding("kip54/sticky/1", calls, 1, Breach(summary="x")))


def test_chart_of_a_partition_with_nobody(expected):
    calls = (call({"t": 2}, {"A": ("", -1, "t-0")}),)
    expected(drawn(finding("kip429/leader/5", calls, 1, Breach(summary="x", partitions=tps("t-1")))))


def test_chart_shows_a_round_without_answer_and_who_was_away(expected):
    calls = (
        call({"t": 1}, {"A": ("", -1, "t-0"), "B": ("", -1, "")}),
        call({"t": 1}, {"B": ("", 1, "t-0")}),
    )
    members = ScenarioMember(id="A", topics=("t",)), ScenarioMember(id="B", topics=("t",))
    away = ((), (Fault(FaultKind.GHOST, "A"),), (Leave("B"),))
    found = finding(
        "assign/4",
        calls,
        3,
        Breach(summary="hangs"),
        Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=members, rounds=away),
    )
    expected("\n".join(of_finding(found)))


def test_chart_of_an_unconfirmed_finding_tells_the_story_only(expected):
    found = finding("assign/4", (), 2, Breach(summary="hung once"), confirmed=False)
    expected("\n".join(of_finding(found)))


def test_story_of_a_scenario_without_rounds_tells_who_joins(expected):
    calls = [call({"t": 1}, {"A": ("t-0", 5, "t-0")})] * 4
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 1}),
        members=(ScenarioMember(id="A", topics=("t",), owned=tps("t-0"), generation=5),),
        rounds=(),
    )
    lines = of_finding(finding("assign/6", calls, 3, Breach(summary="x"), scenario))
    expected("\n".join(lines[:2]), "1")
    expected("\n".join(lines[2:5]), "2")


def test_the_breaking_round_says_who_claims_what_it_is_about(expected):
    """Where nothing happens to anybody the claims decide; in the first round they join with them."""
    calls = [call({"t": 2}, {"A": ("t-0", 5, "t-0"), "B": ("t-0", 3, "t-1")}),
             call({"t": 2}, {"A": ("t-0", 6, ""), "B": ("t-0", 4, "t-0 t-0")})]  # fmt: skip
    scenario = Scenario(protocol=COOPERATIVE, topics=uniform({"t": 2}), rounds=(),
                        members=(ScenarioMember(id="A", topics=("t",)),))  # fmt: skip
    (partition,) = tps("t-0")
    about = Breach(summary="x", partitions=(partition,))
    _, breaking, *_ = of_finding(finding("kip792/claim/1", calls, 2, about, scenario))
    expected(breaking, "1")
    lines = of_finding(finding("kip54/sticky/1", calls, 2, Breach(summary="x"), scenario))
    breaking = lines[1 : lines.index("")]
    text = re.sub(r" +", " ", " ".join(breaking))
    expected(text, "2")
    first, *_ = of_finding(finding("kip792/claim/1", calls, 1, about, scenario))
    assert first == "round 1*    A joins"


def test_chart_in_ascii():
    lines = of_finding(granted_while_owned(), unicode=False)
    assert "t-1  A           .....#####  #####~~~~~  .........." in lines
    assert "     B                       .....#####  ##########" in lines
    assert "     two owners                   ^^^^^" in lines
    assert all(line.isascii() for line in lines)


def test_chart_is_bounded_and_shows_the_breaking_round_and_partition():
    counts = {"orders-of-the-eu": 40}
    everything = " ".join(f"orders-of-the-eu-{i}" for i in range(40))
    calls = [call(counts, {f"member-{i}": ("", -1, everything) for i in range(30)}) for _ in range(40)]
    found = finding("assign/1", calls, 30, Breach(summary="x", partitions=tps("orders-of-the-eu-33")))
    lines = of_finding(found)
    assert len(lines) < 80
    assert max(map(columns, lines)) <= 108
    assert "30*" in next(line for line in lines if line.startswith("round  "))
    assert lines[0] == "(20 left out)"
    assert any(line.startswith("not shown: 28 rounds of 40; 32 more partitions") for line in lines)
    assert next(line for line in lines if line.startswith("orders")).startswith("orders-of-the-eu-33")


def test_chart_shows_first_what_moves_when_the_breach_names_no_partition():
    counts = {"t": 20}
    held = " ".join(f"t-{i}" for i in range(20))
    calls = (call(counts, {"A": (held, 1, held.replace("t-17", "")), "B": ("", -1, "")}),)
    rows = [
        line for line in of_finding(finding("kip54/sticky/1", calls, 1, Breach(summary="x"))) if " A " in line
    ]
    assert [line.split()[0] for line in rows[1:4]] == ["t-17", "t-0", "t-1"]


def test_stories_stand_beside_their_rounds():
    """The chart follows who takes part as ``play`` does: one story for each disturbed rebalance."""
    names = ("membership", "faults", "ghosts", "static")
    skipped = 0
    static = ScenarioMember(id="A", topics=("t",), instance="a")
    back = (Leave("A"), AddMember(static), Fault(FaultKind.GHOST, "A"))  # the coordinator has forgotten A
    forgotten = Scenario(
        protocol=COOPERATIVE, topics=uniform({"t": 1}), members=(static,), rounds=((), back, ())
    )
    for scenario in (forgotten, *(generate(Seeded(f"{i}"), COOPERATIVE, names) for i in range(400))):
        seen: list[History] = []
        clause = Clause(
            id="x/1",
            level=Level.SAFETY,
            scope=Scope.HISTORY,
            sentence="",
            rule="",
            link="",
            check=seen.append,
        )
        play(scenario, lambda protocol, cluster, group: Answer({}), None, (clause,), ())
        for history in seen:
            shown = len(list(followed(scenario, range(10_000))))
            assert len(history.calls) == shown + 1, "one more confirms that it settles"
            assert history.settling <= shown
            skipped += shown <= len(scenario.rounds)
    assert skipped > 5


# --- a run ---


@pytest.fixture(scope="module")
def run() -> OwnershipDiagram:
    """A loses its membership, keeps its claims, and becomes a member again beside B."""
    made = reproduce(SHOWN["prepare_not_repeated_after_reset"])
    assert made is not None
    return run_diagram.of_run(made)


@pytest.fixture(scope="module")
def lasso() -> OwnershipDiagram:
    made = reproduce(SHOWN["rebalance_timeout_zero"])
    assert made is not None
    return run_diagram.of_run(made)


@pytest.mark.slow
def test_the_chart_of_a_run_for_the_terminal(run, lasso):
    lines = text.chart(run)
    assert lines[0].split() == ["step", *(str(n) for n in range(1, 26))]
    assert lines[1].split() == ["generation", "1", "2", "3"]
    a = next(line for line in lines if line.startswith("t-0  A"))
    b = lines[lines.index(a) + 1]
    twice = next(line for line in lines if "two owners" in line)
    assert a.count("█") == 9
    assert a.index("▒") == a.index("█") + 6
    assert twice.index("▲") == len(a) - 3 == len(b) - 3 == len(twice) - 3
    assert twice.index("△") == b.index("█")
    assert "▲ t-0 is owned by A and B at step 25" in lines
    assert any("(nobody)" in line and "---" in line for line in text.chart(lasso))
    assert "steps 7 to 18 come again and again" in text.chart(lasso)


def test_what_is_too_long_goes_on_below(run):
    whole, narrow = text.chart(run), text.chart(run, unicode=False, width=60)
    assert max(map(len, narrow)) <= 60
    assert "".join(narrow).isascii()
    numbers = [word for line in narrow if line.startswith("step") for word in line.split()[1:]]
    assert numbers == [str(n) for n in range(1, 26)]
    bars = sum(line.count("#") for line in narrow if line.startswith(("t-0  A", "     B")))
    assert bars == sum(line.count("█") for line in whole if line.startswith(("t-0  A", "     B")))


# --- whatever there is ---


@pytest.mark.parametrize("unit", ["step", "event", "round"])
@pytest.mark.parametrize("count", [4, 8, 64])
@pytest.mark.parametrize("unicode", [True, False])
def test_any_diagram_is_drawn_within_its_width(unit, count, unicode):
    drawn = replace(drawing(count, people=("A" * 200, "漢字" * 30, HOSTILE)), unit=unit)
    lines = text.draw(drawn, unicode=unicode, width=90)
    assert max(map(columns, lines)) <= 90
    assert all(line.isprintable() for line in lines)
    assert unicode or all(line.isascii() for line in lines)
    marks = [line for line in lines if "two owners  " in line]
    assert sum(line.count("▲" if unicode else "^") for line in marks) % (count - count // 2) == 0
    assert any(line.startswith("not shown: 3 more partitions") for line in lines)


# --- a recording ---


def rows(lines):
    """Label -> the bar and the marks of the chart, with what stands in each column of four."""
    first = lines.index("") + 1
    margin = lines[first].index(" 1 ") + 1
    found: dict[str, list[list[str]]] = {}
    label = ""
    for line in lines[first:]:
        name, cells = line[:margin].removeprefix("orders-1  ").strip(), line[margin:]
        if line[margin - 1 : margin].strip():
            break  # below the chart
        label = name or label
        found.setdefault(label, []).append([cells[at : at + 4].strip() for at in range(0, len(cells), 4)])
    return found


def test_two_owners_are_seen(twice):
    drawn = rows(chart(twice))
    assert drawn["event"] == [[str(n) for n in range(1, 10)]]
    assert drawn["generation"] == [["", "7", "", "", "8"]]
    assert drawn[A][0] == ["", "", *["████"] * 5, "▒▒▒▒"]  # until it has lost it
    assert drawn[A][1] == ["j", "J7", "+", "", "", "", "", "", "!"]
    assert drawn[B][0] == ["", "", "", "", "", "", *["████"] * 3]
    assert drawn["coordinator"] == [["", "", "", "p", "G8", "", "", "r"]]
    assert drawn["two owners"] == [["", "", "", "", "", "", "▲▲▲▲", "△△△△"]]


def test_an_orderly_hand_over_has_no_overlap(twice):
    orderly = (*twice.events[:3], on(62, "revoked", 5), *twice.events[4:7])
    drawn = rows(chart(replace(twice, events=orderly)))
    assert "two owners" not in drawn
    assert drawn[A][0] == ["", "", "████"]
    assert drawn[B][0][-1] == "████"


@pytest.mark.parametrize("kind", ["started", "closed"])
def test_who_starts_or_ends_owns_nothing(twice, kind):
    drawn = rows(chart(replace(twice, events=(*twice.events[:3], seen(61, kind, 5), *twice.events[4:7]))))
    assert "two owners" not in drawn


def test_other_partitions_are_other_bars(twice):
    """Whoever is assigned another partition does not own this one, and one line of a log is one column."""
    events = (
        on(0, "assigned", 3, partition=0),
        on(0, "assigned", 3, partition=2),
        on(1, "revoked", 4, partition=0),
    )
    lines = chart(replace(twice, events=events))
    assert "█" not in "".join(lines)
    assert any("assigned orders-0 and 1 more" in line for line in lines)
    mine = chart(replace(twice, events=(events[0], on(0, "assigned", 3), events[2])))
    assert any("assigned orders-1 and 1 more" in line for line in mine)


def test_list_has_every_line_of_the_log_and_marks_what_the_finding_rests_on(twice):
    lines = chart(twice)
    listed = lines[: lines.index("(times in UTC; * the finding rests on it)")]
    assert [line.split()[1] for line in listed] == [f"{n}{'*' * (n in (3, 7))}" for n in range(1, 10)]
    assert [line.split()[-1] for line in listed] == [f"({event.where})" for event in twice.events]
    assert "18:01:04.000  coordinator removes a member, m-a: session timed out" in "\n".join(listed)


@pytest.mark.parametrize("width", [80, 110, 160])
@pytest.mark.parametrize("unicode", [True, False])
def test_chart_keeps_within_its_width(twice, width, unicode):
    long = "x" * 300 + "\x1b[31m" + "消" * 50
    many = tuple(
        replace(on(n, kind, n, f"{long}{n % 12}", generation=100_000 + n), file=f"/{long}.log", detail=long)
        for n, kind in enumerate(("joined", "assigned", "revoked", "odd") * 30, 1)
    )
    finding = replace(twice.finding, topic=long, owners=(FindingOwner(f"{long}3"),))
    for one in (twice, replace(twice, events=many, finding=finding)):
        lines = chart(one, unicode=unicode, width=width)
        assert max(map(columns, lines)) <= width
        assert all(line.isprintable() for line in lines)
        assert unicode or all(line.isascii() for line in lines)


def test_what_is_left_out_is_the_furthest_from_the_finding(twice):
    crowd = tuple(seen(-n, "joining", 100 + n, f"c{n}") for n in range(1, 300))
    lines = chart(replace(twice, events=(*crowd, *twice.events)))
    text = "\n".join(lines)
    assert all(f"app.log:{event.line}" in text for event in twice.events)
    shown = sum("app.log:" in line for line in lines)
    assert f"not shown: {299 + 9 - shown} events around these" in text


def test_a_finding_about_the_whole_group_has_no_bars(twice):
    finding = replace(twice.finding, check="rebalance-storm", topic=None, partition=None, places=())
    lines = chart(replace(twice, finding=finding, events=twice.events[:2]))
    assert "█" not in "".join(lines)
    assert any("joined, generation 7" in line for line in lines)
    assert chart(replace(twice, events=())) == ["nothing was kept of what happened"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"), (0.9, "900 ms"), (0.9999, "1.0 s"), (9.96, "10 s"), (119.7, "2 min"),
        (7199, "2 h 0 min"), (172800, "2 d 0 h"), (float("nan"), "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_spans(seconds, text):
    assert span(seconds) == text
