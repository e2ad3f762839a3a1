"""The reports on hand-made results: what they say, that hostile text stays text, that programs read them."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from rebalance_verifier.base import text as text_of
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.cli.shared.reports import CI_WRITERS
from rebalance_verifier.gate.search.result import Finding, Status, TargetInfo
from rebalance_verifier.model.values import CLASSIC
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.report import data, facts, markup
from rebalance_verifier.report.ci import ci_reports, github, junit, markdown
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.diagram.scenario_diagram import of_finding
from rebalance_verifier.report.html import check as html_check
from rebalance_verifier.report.terminal import check as text

from tests.report.handmade import HOSTILE, finding, granted_while_owned, hostile, result, row, violated

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "traces" / "schemas"
ci_report = ci_reports.result


# --- text -----------------------------------------------------------------------------------------


def test_text_puts_the_verdict_first_and_the_exit_code_last(expected):
    lines = text.render(violated()).splitlines()
    expected(lines[0], "1")
    assert lines[1].startswith("rebalance 0.1.0  target=acme 1.4.2  (acme:sticky)  protocols=eager,coop")
    expected(lines[-1], "2")


def test_block_in_full(expected):
    clause = row("kip429/leader/4", status=Status.VIOLATED, broken=3, finding=granted_while_owned())
    lines = text.block("VIOLATION", clause)
    start = lines.index("  round 1     A joins")
    expected("\n".join(lines[:start]), "1")
    assert [line[:11] for line in lines[-6:]] == [
        f"  {w:9}" for w in ("shrunk", "found", "", "replay", "trace", "allow")
    ]
    expected("\n".join([line[11:] for line in lines[-6:]]), "2")


@pytest.mark.parametrize(
    ("length", "start"),
    [
        (50, ["VIOLATION assign/1  " + "x" * 50 + "   [safety, cooperative]", "  rule     a"]),
        (80, ["VIOLATION assign/1  " + "x" * 80, "  level    safety, cooperative", "  rule     a"]),
        (
            95,
            [
                "VIOLATION assign/1  " + "x" * 87 + "...",
                "  level    safety, cooperative",
                "  what     " + "x" * 95,
                "  rule     a",
            ],
        ),
    ],
)
def test_first_line_of_a_block_is_as_complete_as_fits(length, start):
    found = finding("assign/1", (), 1, Breach(summary="x" * length))
    lines = text.block("VIOLATION", row("assign/1", status=Status.VIOLATED, finding=found))
    assert [line[: len(s)] for line, s in zip(lines, start, strict=False)] == start


@pytest.mark.parametrize(
    ("level", "word"), [("safety", "FINDING"), ("liveness", "FINDING"), ("quality", "VIOLATION")]
)
def test_what_does_not_gate_is_a_finding(level, word):
    found = finding("assign/6", (), 1, Breach(summary="differs"))
    shown = text.render(result(row("assign/6", status=Status.VIOLATED, finding=found), level=level))
    assert f"\n{word} assign/6  differs   [quality, cooperative]\n" in shown
    assert ("1 new violation" if word == "VIOLATION" else "0 new violations, 1 finding") in shown
    assert ("scenarios, with 1 finding below the level\n" in shown) == (word == "FINDING")


def test_the_worst_level_comes_first():
    found = finding("assign/1", (), 1, Breach(summary="x"))
    ids = ("kip429/converge/1", "assign/1", "kip429/leader/5", "assign/2")
    made = result(*(row(i, status=Status.VIOLATED, finding=found) for i in ids), verdict=Verdict.VIOLATION)
    shown = [line.split()[1] for line in text.render(made).splitlines() if line.startswith("VIOLATION ")]
    assert shown[1:] == ["assign/1", "assign/2", "kip429/converge/1", "kip429/leader/5"]


def test_known_failures_are_one_line_unless_asked_for():
    many = [row(c.id, status=Status.KNOWN, note="https://example.org/9") for c in TABLE]
    few = text.render(result(*many))
    assert f"known    {len(TABLE)} failures on the known list" in few
    assert "assign/1" not in few
    assert "assign/1-cooperative  known  https://example.org/9" in text.render(result(*many), verbose=1)
    shown = replace(many[0], finding=granted_while_owned())
    assert "KNOWN assign/1" not in text.render(result(shown), verbose=1)
    assert "KNOWN assign/1" in text.render(result(shown), verbose=2)


@pytest.mark.parametrize(
    ("known", "passed", "line"),
    [
        (1, 0, "fails 1 check that is known to fail, and no other, in 300 scenarios"),
        (2, 0, "fails 2 checks that are known to fail, and no other, in 300 scenarios"),
        (2, 3, "passes 3 checks (3 clauses; cooperative) and fails 2 that are known to fail in 300"),
    ],
)
def test_the_first_line_counts_what_is_known_to_break(known, passed, line):
    statuses = [Status.KNOWN] * known + [Status.PASSED] * passed
    made = result(*(row(c.id, status=s) for c, s in zip(TABLE, statuses, strict=False)))
    assert text.render(made).splitlines()[0].startswith(f"CONFORMANT  acme 1.4.2 {line}")


def test_a_check_is_a_clause_under_one_protocol(expected):
    both = [row(clause, protocol) for clause in ("assign/1", "assign/2") for protocol in CLASSIC]
    line = "CONFORMANT  acme 1.4.2 passes 4 checks (2 clauses; eager and cooperative) in 300 scenarios"
    assert text.render(result(*both)).splitlines()[0] == line
    found = finding("assign/1", (), 1, Breach(summary="x"))
    broken = [row(c, p, Status.VIOLATED, finding=found) for c in ("assign/1", "assign/4") for p in CLASSIC]
    shown = text.render(result(*broken, verdict=Verdict.VIOLATION, exit=Exit.VIOLATION)).splitlines()
    expected(shown[0])
    assert shown[-1].startswith("4 new violations")


def test_a_scenario_has_its_number_of_all_that_were_searched():
    clause = row("assign/1", broken=2, scenarios=132, searched=260, finding=granted_while_owned())
    assert clause.finding
    assert facts.found_where(clause, clause.finding).startswith(
        "in scenario 37 (of 0 to 259), seed 7712, round 2; broken in 2 of 132 cooperative scenarios;"
    )
    last = replace(clause.finding, number=259)
    assert "in scenario 259 (of 0 to 259)," in facts.found_where(clause, last)
    beyond = replace(clause.finding, number=260)  # of a campaign, which numbers what it draws itself
    assert "in scenario 260, seed" in facts.found_where(clause, beyond)


def several_broken():
    """Twelve broken clauses, the first but one for two causes."""
    summary = "something that takes many words to say, so that a line is too short for all of it, and more"
    made = {
        c.id: finding(c.id, (), 1, Breach(summary=summary, because=("since",) * 9), trace_id=f"{n:08}")
        for n, c in enumerate(TABLE[:12])
    }
    rows = [row(c, status=Status.VIOLATED, broken=3, finding=found) for c, found in made.items()]
    rows[0] = replace(rows[0], finding=granted_while_owned(), others=(made["assign/1"],))
    return result(*rows, level="quality", verdict=Verdict.VIOLATION, exit=Exit.VIOLATION)


def test_the_first_screen_is_the_worst_finding_and_a_line_for_each_other(expected):
    made = several_broken()
    brief, whole = text.render(made, brief=True).splitlines(), text.render(made).splitlines()
    table = next(number for number, line in enumerate(brief) if line.startswith("checks"))
    assert table <= 50 < 150 < len(whole)
    expected("\n".join([line for line in brief if line.startswith("VIOLATION ")][1:]))
    assert "  replay   rebalance replay f3a91c22" in brief
    [says] = [number for number, line in enumerate(brief) if line.startswith("12 more findings: ")]
    assert "-v" in brief[says]
    assert "rebalance replay ID" in brief[says]
    others = [line.split() for line in brief[says + 1 : says + 13]]
    ids = [found.trace_id for clause in facts.broken(made) for found in clause.findings]
    assert [cells[3] for cells in others] == ids[1:]
    assert {cells[2].rpartition("-")[0] for cells in others} == {c.id for c in TABLE[:12]}
    assert brief[table:] == whole[whole.index(brief[table]) :]


def test_one_finding_alone_is_no_list():
    assert text.render(violated(), brief=True) == text.render(violated())


def test_every_report_but_the_first_screen_has_all_findings_in_full():
    made = several_broken()
    for shown in (html_check.render(made), markdown.render(ci_report(made)), junit.render(ci_report(made))):
        assert shown.count("since") >= 12
    assert sum(bool(clause["finding"]["because"]) for clause in data.to_json(made)["clauses"]) == 12


def test_who_declares_no_promises_is_told_to_what_it_is_held():
    target = replace(result().target, promises=("balanced", "sticky"))
    made, declared = result(target=target, assumed=True), result(target=target)
    line = "  promises none declared, so it is held to balanced and sticky, the strictest; promises ="
    assert any(shown.startswith(line) for shown in text.render(made).splitlines()[:4])
    for shown in (text.render, html_check.render, lambda made: markdown.render(ci_report(made))):
        assert "none declared" in shown(made)
        assert "none declared" not in shown(declared)


def test_stale_entries_are_named(expected):
    fixed = row("assign/1", status=Status.FIXED, note="assign/1 (known.txt:3)")
    shown = text.render(result(fixed, stale_known=("assing/2 (known.txt:4)",), exit=Exit.VIOLATION))
    assert "STALE  acme 1.4.2 passes 1 check (1 clause; cooperative) in 300 scenarios; known list" in shown
    assert "fixed    assign/1-cooperative holds: remove line assign/1 (known.txt:3)" in shown
    assert "stale    assing/2 (known.txt:4) matches no clause: remove line" in shown
    expected(shown.splitlines()[-1])


def test_a_line_that_meant_several_clauses_is_one_line_to_remove():
    note = "assign/* (known.txt:3)"
    rows = [row(clause, status=Status.FIXED, note=note) for clause in ("assign/1", "assign/2")]
    alone = text.render(result(*rows, exit=Exit.VIOLATION))
    assert "list out of date, 1 line to remove" in " ".join(alone.split())
    more = row("assign/5", status=Status.FIXED, note="assign/5 (known.txt:4)")
    both = text.render(result(*rows, more, stale_known=("assing/2 (known.txt:5)",), exit=Exit.VIOLATION))
    assert "list out of date, 3 lines to remove" in " ".join(both.split())


def test_every_report_begins_with_a_word_that_the_exit_code_agrees_with():
    made = result(stale_known=("gone (known.txt:1)",), exit=Exit.VIOLATION)
    assert made.verdict is Verdict.CONFORMANT
    for shown in (text.render(made), html_check.render(made), markdown.render(ci_reports.result(made))):
        assert "STALE" in shown
        assert "CONFORMANT" not in shown
    assert "⚠️" in markdown.render(ci_reports.result(made))
    assert "<b class=warn>STALE</b>" in html_check.render(made)


def test_figures():
    shown = text.render(
        result(
            witnesses={"racks": 1, "stale claim": 41, "follow-up": 300, "ghost": 299},
            missed=("never reached: tied claims",),
            quality=0.973,
        )
    )
    assert "reached  follow-up 100% | ghost >99% | stale claim 14% | racks <1%" in shown
    assert "missed   never reached: tied claims" in shown
    assert "quality  97% of" in shown
    assert "ran      300 scenarios, 12,345 assign() calls, 12.3 s" in shown


def test_table_counts_each_level():
    lines = text.render(violated()).splitlines()
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("checks")) :][:4]
    assert [line.split() for line in table] == [
        ["checks", "passed", "violated", "known", "unsupported", "untested"],
        ["safety", "1", "1", "0", "0", "0"],
        ["liveness", "0", "0", "1", "0", "0"],
        ["quality", "0", "0", "0", "1", "0"],
    ]


@pytest.mark.parametrize(
    ("fields", "first", "last"),
    [
        ({}, "CONFORMANT  acme 1.4.2 passes 0 checks in 300 scenarios", "CONFORMANT, exit 0"),
        (
            {"verdict": Verdict.INCONCLUSIVE, "exit": Exit.INCONCLUSIVE, "missed": ("no racks", "no ties")},
            "INCONCLUSIVE  acme 1.4.2 is not judged: no racks and 1 more",
            "INCONCLUSIVE, exit 3",
        ),
        (
            {"verdict": Verdict.INCONCLUSIVE, "exit": Exit.INTERRUPTED, "interrupted": True},
            "INCONCLUSIVE  acme 1.4.2 is not judged: interrupted",
            "INCONCLUSIVE, exit 130",
        ),
    ],
)
def test_verdicts_without_any_clause(fields, first, last):
    lines = text.render(result(**fields)).splitlines()
    assert lines[0] == first
    assert lines[-1].endswith(last)


def test_colour_only_where_asked_for_and_nothing_but_colour():
    plain, painted = text.render(violated()), text.render(violated(), color=True)
    assert "\x1b" not in plain
    assert painted.startswith("\x1b[31;1mVIOLATION\x1b[0m")
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_ascii_is_ascii():
    assert text.render(violated(), unicode=False).isascii()
    assert all(text.render(hostile(name), unicode=False, verbose=2).isascii() for name in HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_in_text(name):
    for line in text.render(hostile(name), verbose=2).splitlines():
        assert line.isprintable()
        assert text_of.columns(line) <= 110 or re.fullmatch(r" *https://\S+", line)
        assert not line.lstrip().startswith("::")  # GitHub would obey
        assert "##[" not in line


@pytest.mark.parametrize("line", ["::error::x", "   ::set-env name=a::b", "a ##[error]b"])
def test_lines_of_a_targets_stderr_are_no_orders_to_a_ci(line):
    found = finding("assign/4", (), 1, Breach(summary="crashes", because=("Traceback", line)))
    shown = text.render(result(row("assign/4", status=Status.VIOLATED, finding=found)))
    assert not re.search(r"^\s*::|##\[", shown, re.MULTILINE)


# --- words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 20, 40])
@pytest.mark.parametrize(
    "sample", [*(text_of.clean(h) for h in HOSTILE), "", "a", "a b " * 50, "word " + "y" * 99]
)
def test_fold_and_cut_keep_within_the_width(sample, width):
    for line in text_of.fold(sample, width, most=4):
        assert text_of.columns(line) <= width
    assert len(text_of.fold(sample, width, most=4)) <= 4
    assert text_of.columns(text_of.cut(sample, width)) <= width
    assert text_of.columns(text_of.shorten(sample, width)) <= width


def test_wide_characters_take_two_columns():
    assert text_of.columns("消費者") == 6
    assert text_of.columns("e\u0301") == 1
    assert text_of.pad("消", 4) == "消  "


def test_fold_loses_nothing_that_fits():
    sample = "one two three four"
    assert " ".join(text_of.fold(sample, 9)) == sample
    assert text_of.fold("abcdefgh", 4) == ["abcd", "efgh"]


def test_shorten_keeps_the_end_where_client_ids_differ():
    assert text_of.shorten("consumer-orders-1-5f2c", 12) == "consu..-5f2c"


# --- JSON -----------------------------------------------------------------------------------------


def schema(name):
    document = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def everything():
    statuses = [row(c.id, p, s) for c, s in zip(TABLE, [*Status] * 3, strict=False) for p in c.protocols]
    return result(*statuses, quality=0.5, witnesses={"b": 1, "a": 2}, missed=("x",), stale_known=("y",))


@pytest.mark.parametrize("made", [violated(), result(), everything(), *map(hostile, HOSTILE)])
def test_json_is_as_its_schema_says(made):
    document = json.loads(data.render(made))
    schema("report").validate(document)
    assert document == json.loads(json.dumps(data.to_json(made)))


def test_json_schema_names_every_field():
    """Fields may be added, but not without a word about them."""
    document, published = data.to_json(violated()), schema("report").schema
    assert list(document) == list(published["properties"])
    assert list(document["clauses"][0]) == list(published["$defs"]["clause"]["properties"])
    assert list(document["clauses"][0]["finding"]) == list(published["$defs"]["finding"]["properties"])
    assert list(document["target"]) == list(published["$defs"]["target"]["properties"])


@pytest.mark.parametrize("wrong", [{"schema": 1}, {"verdict": "fine"}, {"seed": "7"}, {"clauses": [{}]}])
def test_json_schema_refuses(wrong):
    with pytest.raises(jsonschema.ValidationError):
        schema("report").validate(data.to_json(violated()) | wrong)


def test_json_content():
    document = data.to_json(violated())
    assert document["counts"] == {
        "safety": {"passed": 1, "violated": 1},
        "liveness": {"known": 1},
        "quality": {"unsupported": 1},
    }
    clause = document["clauses"][0]
    assert (clause["id"], clause["gates"]) == ("kip429/leader/4-cooperative", True)
    assert clause["finding"]["trace"] == "f3a91c22"
    assert clause["finding"]["partitions"] == ["t-1"]
    assert clause["finding"]["size"] == {"members": 2, "partitions": 2, "claims": 0, "events": 3}
    assert document["clauses"][3]["gates"] is False


# --- JUnit ----------------------------------------------------------------------------------------

XML_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def suite_of(made):
    (suite,) = ET.fromstring(junit.render(ci_report(made)))
    return suite


def cases_in(made):
    return {case.get("name"): case for case in ET.fromstring(junit.render(ci_report(made))).iter("testcase")}


def test_junit_of_a_violation(expected):
    found = cases_in(violated())
    case = found["kip429/leader/4-cooperative"]
    assert case.get("classname") == "rebalance.safety"
    assert {p.get("name"): p.get("value") for p in case.iter("property")} == {
        "clause": "kip429/leader/4",
        "kip": "KIP-429, leader 2.4",
        "link": CLAUSES["kip429/leader/4"].link,
        "trace": ".rebalance/failures/f3a91c22.json",
    }
    expected(case.find("failure").get("message"))
    assert "█████▒▒▒▒▒" in case.find("failure").text
    assert found["kip54/sticky/1-cooperative"].find("skipped").get("message") == (
        "unsupported: not promised: sticky"
    )
    assert found["kip429/converge/1-cooperative"].find("skipped").get("message") == (
        "known: https://example.org/1"
    )
    assert [child.tag for child in found["assign/1-cooperative"]] == ["properties"]


def test_junit_counts():
    suite = suite_of(violated())
    assert [suite.get(n) for n in ("tests", "failures", "errors", "skipped")] == ["5", "1", "0", "2"]
    assert suite.get("time") == "12.340"


def test_junit_does_not_fail_for_what_does_not_gate():
    found = finding("assign/6", (), 1, Breach(summary="differs"))
    case = cases_in(result(row("assign/6", status=Status.VIOLATED, finding=found)))["assign/6-cooperative"]
    assert "quality does not gate" in case.find("skipped").get("message")
    assert case.find("failure") is None


@pytest.mark.parametrize(
    "made",
    [
        result(),
        violated(),
        result(row("assign/1"), verdict=Verdict.INCONCLUSIVE, exit=Exit.INCONCLUSIVE, missed=("ties",)),
        result(verdict=Verdict.INCONCLUSIVE, exit=Exit.INTERRUPTED, interrupted=True),
        result(row("assign/1", status=Status.FIXED), exit=Exit.VIOLATION),
        result(stale_known=("gone (known.txt:1)",), exit=Exit.VIOLATION),
        violated(exit=Exit.INTERRUPTED, interrupted=True),
        result(exit=Exit.VIOLATION),
    ],
)
def test_junit_fails_exactly_when_the_command_does(made):
    suite = suite_of(made)
    bad = int(suite.get("failures", "")) + int(suite.get("errors", ""))
    assert (bad > 0) == (made.exit != 0)


@pytest.mark.parametrize("name", HOSTILE)
def test_junit_with_hostile_names(name):
    rendered = junit.render(ci_report(hostile(name)))
    assert not XML_ILLEGAL.search(rendered)
    assert "\x1b" not in rendered
    for element in ET.fromstring(rendered.encode()).iter():
        assert len(element.text or "") <= junit.MAX_LETTERS + 100
        assert len(element.get("message", "")) <= 300


def test_junit_bodies_are_bounded():
    found = finding("assign/1", (), 1, Breach(summary="x", because=tuple(f"line {i}" for i in range(10_000))))
    case = cases_in(violated(clauses=(row("assign/1", status=Status.VIOLATED, finding=found),)))
    assert len(case["assign/1-cooperative"].find("failure").text) <= junit.MAX_LETTERS + 10


# --- Markdown and GitHub --------------------------------------------------------------------------


def test_markdown_of_a_violation():
    shown = markdown.render(ci_report(violated()))
    assert shown.startswith("## ❌ VIOLATION  acme 1.4.2 breaks 1 clause (1 safety)\n")
    assert "| safety | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in shown
    assert "<details><summary>Violation kip429/leader/4 (cooperative)</summary>" in shown
    assert "```text\nround 1     A joins\n" in shown
    assert "- replay: `rebalance replay f3a91c22`" in shown
    assert shown.count("<details>") == shown.count("</details>") == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_with_hostile_names(name):
    shown = markdown.render(ci_report(hostile(name)))
    assert shown.count("<details>") == shown.count("</details>") == 2
    outside, fence = [], ""
    for line in shown.splitlines():
        mark = re.match("`{3,}", line)
        if mark and (not fence or line == fence):
            fence = "" if fence else mark.group()
        elif not fence:
            outside.append(line)
    assert not fence
    for line in outside:
        prose = re.sub(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)", "", line)  # without code spans
        bare = re.sub(r"\\[\\`*_\[\]#!|<>&~@$:.]", "", prose)
        ours = re.sub(r"\]\(https://(kafka|cwiki)\.apache\.org/[^)]*\)", "", bare)
        assert "](" not in ours
        assert "<!--" not in bare
        assert "@team" not in bare
        assert "https://evil" not in bare
        if line.startswith(("| [", "| safety")):
            assert bare.count("|") in (5, 10)


def test_markdown_fences_are_longer_than_what_they_hold():
    assert markup.fenced("a\n```")[0] == "````text"
    assert markup.code("a``b") == "```a``b```"
    assert markup.code("`") == "`` ` ``"


def test_markdown_leaves_out_sections_that_do_not_fit():
    found = violated().clauses[0]
    many = violated(clauses=(found,) * 400)
    limit = 200_000
    shown = markdown.render(ci_report(many), limit)
    assert len(shown.encode()) <= limit
    assert shown.count("<details>") == shown.count("</details>")
    left_out = 400 - shown.count("<details>")
    assert left_out > 0
    assert f"*{left_out} broken clauses left out here for length" in shown
    assert markdown.render(ci_report(many), 0) == ""
    assert len(markdown.render(ci_report(many), 1001).encode()) <= 1001


def test_annotations(expected):
    commands = github.commands(ci_report(violated(missed=("never reached: racks",))))
    assert commands[0].startswith(
        "::error title=kip429/leader/4 (safety%2C cooperative)::t-1 is granted to B while A still owns it%0A"
    )
    expected(commands[1])


@pytest.mark.parametrize("name", HOSTILE)
def test_annotations_are_one_line_each(name):
    for command in github.commands(ci_report(hostile(name))):
        assert command.isprintable()
        parts = re.fullmatch(r"::(\w+) title=(.*?)::(.*)", command)
        assert parts
        kind, title, message = parts.groups()
        assert kind in ("error", "warning", "notice")
        assert not set(":,") & set(title)
        assert not re.search("%(?!25|0D|0A|3A|2C)", title + message)
    if name.startswith("%"):
        assert any("%250A%2525" in command for command in github.commands(ci_report(hostile(name))))


def test_annotations_respect_githubs_limit(expected):
    broken = violated().clauses[0]
    quality = replace(broken, clause=CLAUSES["assign/6"])
    made = violated(clauses=(broken,) * 25 + (quality,) * 11, missed=("x",) * 10)
    kinds = [command.split()[0] for command in github.commands(ci_report(made))]
    assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"] * 10
    expected(github.commands(ci_report(made))[9])


def test_step_summary_is_appended_and_bounded(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    assert github.summarise(ci_report(violated()), {"GITHUB_STEP_SUMMARY": str(path)}) == path
    assert path.read_text(encoding="utf-8") == "before\n" + markdown.render(ci_report(violated()))
    path.write_bytes(b"x" * (markdown.MAX_BYTES - 500))
    github.summarise(ci_report(violated()), {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.stat().st_size <= markdown.MAX_BYTES
    assert github.summarise(ci_report(violated()), {}) is None


# --- all of them ----------------------------------------------------------------------------------


def written(of):
    """A result in every format that `rebalance check` writes."""
    own = [render(of) for render in (text.render, data.render, html_check.render)]
    return [*own, *(render(ci_report(of)) for render in CI_WRITERS.values())]


def test_writers():
    assert written(violated()) == written(violated())
    assert all(report.endswith("\n") for report in written(result()))


def test_schemas_are_packaged():
    package_data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert "*.json" in package_data["*"]


@pytest.mark.slow
def test_a_finding_is_drawn_once_by_each_writer_at_most(monkeypatch):
    drawn: list[Finding] = []

    def draw(finding: Finding) -> OwnershipDiagram:
        drawn.append(finding)
        return of_finding(finding)

    for module in (text, html_check, ci_reports):
        monkeypatch.setattr(module, "of_finding", draw)
    many = violated(clauses=(violated().clauses[0],) * 250)
    assert all(written(many))
    assert 250 <= len(drawn) <= 250 * (2 + len(CI_WRITERS))
    drawn.clear()
    github.commands(ci_report(many))
    assert not drawn  # an annotation has no picture


def test_result_with_an_unprintable_target_only():
    assert facts.label(TargetInfo(spec="cmd", name="", version="")) == "cmd"


def test_a_page_of_a_check_begins_with_one_sentence_for_everybody():
    leads = {
        made.verdict: re.findall("<p class=lead>(.*?)</p>", html_check.render(made))[0]
        for made in (violated(), result(row("assign/1")), result(verdict=Verdict.INCONCLUSIVE))
    }
    assert leads == {
        Verdict.VIOLATION: (
            "In some rebalances this assignor gives a partition to a wrong consumer, or to two."
        ),
        Verdict.CONFORMANT: "No rule is broken in 300 tested scenarios with this assignor.",
        Verdict.INCONCLUSIVE: "This run gives no verdict: the list below says why.",
    }


def test_a_page_of_a_check_shows_findings_and_clauses_and_folds_the_rest():
    shown = html_check.render(everything())
    folded = set(re.findall("<h2 id=([a-z]+)>[^<]*</h2><details><summary>show<", shown))
    assert {"reached", "others"} <= folded
    assert not folded & {"broken", "todo", "clauses"}
    assert {"todo", "clauses"} <= set(re.findall("<h2 id=([a-z]+)>", shown))
