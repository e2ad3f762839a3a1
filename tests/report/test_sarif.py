"""SARIF: held against the schema that OASIS publishes, and against what GitHub and VS Code want of a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.result import Status, TargetInfo
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation, locate
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.report.ci import ci_reports, sarif
from rebalance_verifier.report.ci.cases import CiCase, CiReport, CiRule, Evidence
from rebalance_verifier.report.diagram.diagram import (
    Bar,
    DiagramColumn,
    EventMark,
    MessageArrow,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
)

from tests.report.handmade import HOSTILE, finding, granted_while_owned, hostile, result, row, violated

BROKEN = "cooperative-sticky+no_withhold"


def log(made):
    return json.loads(sarif.render(ci_reports.result(made)))


def run_of(made):
    (run,) = log(made)["runs"]
    return run


def flows(made_result):
    (flow,) = made_result["codeFlows"]
    return {
        one["id"]: [step["location"]["message"]["text"] for step in one["locations"]]
        for one in flow["threadFlows"]
    }


def explained():
    """A report with everything in it, and a picture that nobody drew."""
    drawn = OwnershipDiagram(
        title="t-1 twice",
        columns=(
            DiagramColumn(label="JoinGroup", what="B joins", generation=2, marked=True),
            DiagramColumn(label="SyncGroup", generation=2),
        ),
        rows=(Row("t-1", "A"), Row("t-1", "B")),
        bars=(
            Bar(0, 0, 2, OwnershipState.OWNED),
            Bar(1, 0, 1, OwnershipState.WITHOUT),
            Bar(1, 1, 2, OwnershipState.OWNED),
        ),
        overlaps=(Overlap(partition="t-1", start=1, end=2, members=("A", "B")),),
        members=("A", "B"),
        arrows=(
            MessageArrow(column=0, member="B", api="JoinGroup"),
            MessageArrow(column=1, member="B", api="SyncGroup", answer=True, text="t-1", lost=True),
        ),
        marks=(EventMark(1, "A", "crashes"),),
        left_out=("rounds 1 to 1 left out",),
        era="round",
    )
    rule = CiRule(
        id="kip429/leader/4",
        level=Level.SAFETY,
        sentence="withheld until revoked",
        source="KIP-429",
        link="https://example.org/4",
    )
    one = Evidence(message="t-1 is granted to B", id="f3a91c22", path="x/f3a91c22.json", draw=lambda: drawn)
    return CiReport(
        command="check", subject="acme:sticky", suite_version="0.1.0", headline="VIOLATION",
        verdict=Verdict.VIOLATION, exit=Exit.VIOLATION,
        cases=(CiCase(rule=rule, status=Status.VIOLATED, variant="cooperative", evidence=(one,)),),
    )  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        result(),
        violated(),
        violated(
            missed=("ties",), stale_known=("gone (known.txt:1)",), interrupted=True, exit=Exit.INTERRUPTED
        ),
        result(row("assign/1", status=Status.FIXED), exit=Exit.VIOLATION),
        result(row("assign/1", status=Status.VIOLATED, note="no counterexample")),
        *map(hostile, HOSTILE),
    ],
)
def test_a_log_is_what_the_published_schema_asks_for(published, made):
    published.validate(log(made))


def test_a_picture_in_full_is_what_the_published_schema_asks_for(published):
    published.validate(sarif.to_json(explained()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run["results"][0].update(level="fatal"),
        lambda run: run["results"][0].update(message={}),
        lambda run: run["results"][0]["codeFlows"][0]["threadFlows"][0].update(locations=[]),
        lambda run: run["tool"]["driver"].pop("name"),
        lambda run: run["invocations"][0].update(exitCode="1"),
    ],
)
def test_the_published_schema_refuses(published, spoil):
    made = sarif.to_json(explained())
    published.validate(made)
    spoil(made["runs"][0])
    with pytest.raises(jsonschema.ValidationError):
        published.validate(made)


def test_every_location_has_a_file_without_which_github_refuses_the_upload():
    bare = finding("assign/1", (), 1, granted_while_owned().breach)  # neither trace nor place
    for made in (violated(), result(row("assign/1", status=Status.VIOLATED, finding=bare)), hostile("x")):
        for one in run_of(made)["results"]:
            assert one["locations"]
            steps = [
                step
                for flow in one.get("codeFlows", [])
                for t in flow["threadFlows"]
                for step in t["locations"]
            ]
            for location in (*one["locations"], *(step["location"] for step in steps)):
                uri = location["physicalLocation"]["artifactLocation"]["uri"]
                assert uri
                assert not uri.startswith("/")


def test_what_is_broken_without_a_counterexample_is_a_result_too():
    bare = finding("assign/1", (), 1, granted_while_owned().breach)  # the trace could not be saved
    rows = (
        row("assign/1", status=Status.VIOLATED, finding=bare),
        row("assign/2", status=Status.VIOLATED, note="so"),
    )
    uris = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in run_of(result(*rows))["results"]
    }
    assert uris == {".rebalance/failures"}
    assert [one["message"]["text"] for one in run_of(result(rows[1]))["results"]] == ["so."]


def test_every_result_finds_its_rule():
    run = run_of(hostile("x"))
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) > 1
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])


def test_a_rule_is_the_clause():
    (rule,) = [r for r in run_of(violated())["tool"]["driver"]["rules"] if r["id"] == "kip429/leader/4"]
    clause = CLAUSES["kip429/leader/4"]
    assert (rule["helpUri"], rule["shortDescription"]["text"]) == (clause.link, clause.sentence)
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert rule["properties"]["tags"] == ["kafka", "rebalance", "safety"]


def test_one_rule_a_clause_although_it_is_asked_under_two_protocols():
    rows = [row("assign/1", protocol) for protocol in CLAUSES["assign/1"].protocols]
    assert [rule["id"] for rule in run_of(result(*rows))["tool"]["driver"]["rules"]] == ["assign/1"]


def test_a_result_names_its_rule_and_says_what_is_wrong():
    run = run_of(violated())
    (one, *others) = run["results"]
    assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"] == "kip429/leader/4"
    assert one["level"] == "error"
    assert one["message"]["text"].startswith("t-1 is granted to B while A still owns it.\nA joined claiming")
    assert "rebalance replay f3a91c22" in one["message"]["text"]
    assert one["properties"]["protocol"] == "cooperative"
    assert not others


@pytest.mark.parametrize(("level", "sarif_level"), [("liveness", "note"), ("quality", "error")])
def test_error_is_what_fails_the_run(level, sarif_level):
    found = finding("assign/6", (), 1, granted_while_owned().breach)
    (one,) = run_of(result(row("assign/6", status=Status.VIOLATED, finding=found), level=level))["results"]
    assert one["level"] == sarif_level


def test_known_failures_are_suppressed_with_their_reason():
    rows = [
        row("assign/1", status=status, finding=granted_while_owned(), note="https://example.org/1")
        for status in (Status.KNOWN, Status.FLAKY)
    ]
    known, flaky = run_of(result(*rows))["results"]
    assert known["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "known: https://example.org/1"}
    ]
    assert flaky["suppressions"][0]["justification"].startswith("flaky")
    assert "suppressions" not in run_of(violated())["results"][0]


def test_the_fingerprints_are_the_trace_and_the_clause():
    def prints(**fields):
        return run_of(violated(**fields))["results"][0]["partialFingerprints"]

    first = prints()
    assert first["trace/v1"] == "f3a91c22"
    assert prints(seed=1, seconds=99.0, scenarios=7) == first
    other = replace(granted_while_owned(), trace_id="aaaaaaaa")
    changed = prints(clauses=(row("kip429/leader/4", status=Status.VIOLATED, finding=other),))
    assert changed["trace/v1"] != first["trace/v1"]
    # GitHub looks at this one only: another counterexample to the same clause is no new alert.
    assert changed["primaryLocationLineHash"] == first["primaryLocationLineHash"]


def test_the_first_flow_tells_the_group_the_others_a_member_each(expected):
    (one,) = sarif.to_json(explained())["runs"][0]["results"]
    texts = flows(one)
    assert texts == {
        "group": [
            "round 2 JoinGroup: B joins",
            "B -> coordinator JoinGroup",
            "A: t-1 owned",
            "round 2 SyncGroup",
            "coordinator -> B SyncGroup: t-1, lost",
            "A: crashes",
            "B: t-1 owned",
            "t-1 is owned by A and by B at one time",
        ],
        "member A": ["A: t-1 owned", "A: crashes", "t-1 is owned by A and by B at one time"],
        "member B": [
            "B -> coordinator JoinGroup",
            "coordinator -> B SyncGroup: t-1, lost",
            "B: t-1 owned",
            "t-1 is owned by A and by B at one time",
        ],
    }
    first = one["codeFlows"][0]["threadFlows"][0]
    expected(first["message"]["text"])
    assert [step["nestingLevel"] for step in first["locations"]] == [1, 2, 2, 1, 2, 2, 2, 2]
    assert [step["importance"] == "essential" for step in first["locations"]] == [True, *[False] * 6, True]


def test_the_order_of_steps_joins_the_flows():
    group, *members = sarif.to_json(explained())["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"]
    order = {step["executionOrder"]: step["location"]["message"] for step in group["locations"]}
    assert list(order) == sorted(order)
    for member in members:
        for step in member["locations"]:
            assert order[step["executionOrder"]] == step["location"]["message"]


def test_flows_keep_within_what_github_shows():
    columns = tuple(DiagramColumn(label=f"{n}", what="x") for n in range(3_000))
    long = OwnershipDiagram(
        title="x",
        columns=columns,
        members=("A",),
        arrows=tuple(MessageArrow(column=n, member="A", api="Heartbeat") for n in range(3_000)),
    )
    report = explained()
    (case,) = report.cases
    (one,) = case.evidence
    many = replace(report, cases=(replace(case, evidence=(replace(one, draw=lambda: long),)),))
    (found,) = sarif.to_json(many)["runs"][0]["results"]
    steps = [len(flow["locations"]) for flow in found["codeFlows"][0]["threadFlows"]]
    assert steps[0] == sum(steps) == sarif.MAX_STEPS


def test_results_are_bounded_and_it_is_said():
    (case,) = explained().cases
    many = replace(explained(), cases=(replace(case, evidence=(Evidence(message="x"),) * 5_007),))
    (run,) = sarif.to_json(many)["runs"]
    assert len(run["results"]) == sarif.MAX_RESULTS
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"] == "7 results left out"


@pytest.mark.parametrize(
    ("made", "notices", "successful"),
    [
        (violated(), [], True),
        (violated(missed=("ties",)), [("warning", "not reached: ties")], True),
        (result(exit=Exit.INTERRUPTED, interrupted=True), [("warning", "interrupted before the end")], False),
        (
            result(
                row("assign/1", status=Status.FIXED), stale_known=("gone (known.txt:1)",), exit=Exit.VIOLATION
            ),
            [
                ("error", "assign/1-cooperative holds: remove its line from the known list"),
                ("error", "gone (known.txt:1) matches no clause: remove line"),
            ],
            True,
        ),
    ],
)
def test_what_is_wrong_with_the_run_is_told_of_the_run(made, notices, successful):
    (invocation,) = run_of(made)["invocations"]
    found = [(one["level"], one["message"]["text"]) for one in invocation["toolExecutionNotifications"]]
    assert found == notices
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (int(made.exit), successful)


def test_equal_results_give_equal_text_in_ascii():
    assert sarif.render(ci_reports.result(violated())) == sarif.render(ci_reports.result(violated()))
    assert all(sarif.render(ci_reports.result(hostile(name))).isascii() for name in HOSTILE)


# --- where a target is ----------------------------------------------------------------------------

SOURCE = '''"""x"""

LIMIT = 3


class Outer:
    class Sticky:
        pass


def assign(cluster, group):
    return {}


made: object = Outer()
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "package" / "inner" / "deep.py").write_text(SOURCE)  # no __init__.py: a namespace
    (tmp_path / "broken.py").write_text("class (:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "location"),
    [
        ("mine:assign", SourceLocation("mine.py", 11)),
        ("mine:Outer", SourceLocation("mine.py", 6)),
        ("mine:Outer.Sticky", SourceLocation("mine.py", 7)),
        ("mine:LIMIT", SourceLocation("mine.py", 3)),
        ("mine:made", SourceLocation("mine.py", 15)),
        ("mine:made.attribute", SourceLocation("mine.py", 15)),
        ("mine:nothing", SourceLocation("mine.py", 0)),
        ("package.inner.deep:assign", SourceLocation("package/inner/deep.py", 11)),
        ("broken:assign", SourceLocation("broken.py", 0)),
        ("-- python3 mine.py --fast", SourceLocation("mine.py")),
        ("-- ./package/inner/deep.py", SourceLocation("package/inner/deep.py")),
        ("-- sh -c true", None),
        ("json:loads", None),  # installed: nobody's to annotate
        ("nowhere:x", None),
        ("mine.nowhere:x", None),
        ("cooperative-sticky", None),
        ("java:org.example.Mine@g:a:1", None),
        ("kafka-python:sticky", None),
    ],
)
def test_where_a_target_is_defined(here, spec, location):
    assert locate(spec) == location


def test_looking_for_a_target_runs_nothing_of_it(here):
    (here / "package" / "__init__.py").write_text("raise SystemExit\n")
    (here / "loud.py").write_text("raise SystemExit\nclass A: pass\n")
    assert locate("package.inner.deep:assign") == SourceLocation("package/inner/deep.py", 11)
    assert locate("loud:A") == SourceLocation("loud.py", 2)


def test_a_source_that_the_search_path_leads_to_is_found(here, monkeypatch):
    for folder, name in (("lib", "acme"), ("src", "other")):
        (here / folder / name).mkdir(parents=True)
        (here / folder / name / "__init__.py").write_text(SOURCE)
    assert locate("other:assign") == SourceLocation("src/other/__init__.py", 11), "which needs no path"
    assert locate("acme:assign") is None
    monkeypatch.syspath_prepend(here / "lib")
    assert locate("acme:assign") == SourceLocation("lib/acme/__init__.py", 11)


@pytest.mark.usefixtures("here")
def test_a_result_points_at_the_source_and_at_the_trace():
    target = TargetInfo(
        spec="mine:Outer", name="mine", version="", language="python", protocols=("cooperative",)
    )
    (one,) = run_of(violated(target=target))["results"]
    (location,) = one["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "mine.py"},
        "region": {"startLine": 6},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "mine:Outer"
    (related,) = one["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == ".rebalance/failures/f3a91c22.json"
    # The upload computes it from the line, and warns of any other.
    assert "primaryLocationLineHash" not in one["partialFingerprints"]


def test_a_uri_is_escaped_and_absolute_only_outside():
    assert sarif._physical(SourceLocation("a b/ä%.json"))["artifactLocation"]["uri"] == "a%20b/%C3%A4%25.json"
    assert (
        sarif._physical(SourceLocation("/elsewhere/x.json"))["artifactLocation"]["uri"]
        == "file:///elsewhere/x.json"
    )


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_what_the_published_schema_asks_for(rebalance, published, tmp_path):
    ran = rebalance("check", BROKEN, "--profile", "smoke", "--clause", "kip429/leader/4", "--report", "sarif")
    assert ran.code == 1
    made = json.loads((tmp_path / ".rebalance/latest/report.sarif").read_text())
    published.validate(made)
    one, *_ = made["runs"][0]["results"]
    uri = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert (tmp_path / uri).is_file()
    assert any("at one time" in text for text in flows(one)["group"])
