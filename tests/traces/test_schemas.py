"""Every format that is written has a schema, which is one, which what is written keeps.

What the commands print is held against it in all tests of the gate (``conftest.rebalance``); here are the
files, and that no format is forgotten.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.live.clients.record.judge import CheckFinding, QuiescencePoint
from rebalance_verifier.live.clients.record.record import Recorded, data, run_data, write
from rebalance_verifier.live.clients.record.request import Request, clients
from rebalance_verifier.live.clients.record.scenarios import RecordingStep
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.traces import recordings, runs
from rebalance_verifier.traces.formats import FORMATS, schema

from tests.report.handmade import BROKEN_GROUP
from tests.report.test_audit_report import audited, finding
from tests.test_layers import FLOORS
from tests.traces.published import Validator, closed, hold, printed, validator

ROOT = Path(__file__).parents[2]


# --- the schemas ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_is_one_and_is_whole_in_itself(name):
    document = schema(name)
    Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"].startswith("urn:rebalance-verifier:")
    assert document["title"]
    refs = [str(value) for key, value in pairs(document) if key == "$ref"]
    assert all(
        ref.startswith("#/$defs/") and ref.removeprefix("#/$defs/") in document["$defs"] for ref in refs
    )


def pairs(document: object) -> Iterator[tuple[str, object]]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield key, value
            yield from pairs(value)
    elif isinstance(document, list):
        for item in document:
            yield from pairs(item)


def test_every_schema_file_is_of_a_format_and_has_its_own_id():
    paths = [path for folder in FLOORS for path in (ROOT / folder).glob("**/*.schema.json")]
    files = {path.name.removesuffix(".schema.json") for path in paths}
    assert files == {one.file for one in FORMATS.values()}
    assert len({schema(name)["$id"] for name in FORMATS}) == len(FORMATS)


def test_the_list_of_what_is_open_and_what_is_closed():
    """Objects that we write are open; closed is only what others write to us."""
    shut = {
        one.file
        for one in FORMATS.values()
        if any(key == "additionalProperties" and value is False for key, value in pairs(schema(one.name)))
    }
    assert shut == {"protocol", "trace", "run"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("exploration", {"schema": 2}),
        ("upgrade", {"schema": 1, "from": "range"}),
        ("proof", {}),
        ("necessity", [{"variation": "x"}]),
        ("shipped", {"schema": 1, "verdict": "open"}),
        ("campaign", {"schema": 1}),
        ("comparison", {"schema": 2, "targets": [{}]}),
        ("record-run", {"cluster": {"kind": "real", "version": ""}}),
        ("record-report", {"verdict": "fine"}),
        ("record-event", {"at": "2026-11-21T00:00:00Z", "event": "slept", "group": "g", "consumer": "c"}),
        ("conformance", {"verdict": "conformant"}),
        ("lockstep", {"verdict": "conformant"}),
        ("code-search", {"verdict": "conformant"}),
        ("replay", {"kind": "run"}),
        ("past-run", {"schema": 1, "kind": "run"}),
        ("finding", {"check": "owned-twice"}),
        ("checks", [{"check": "x", "level": "fatal", "sentence": "", "source": ""}]),
    ],
)
def test_a_schema_refuses(name, wrong):
    with pytest.raises(jsonschema.ValidationError):
        validator(name, strict=False).validate(wrong)


def test_a_field_may_be_added_but_not_without_a_word():
    document = json.loads(json.dumps(data(recorded(Path()))))
    validator("record-report", strict=False).validate({**document, "more": 1})
    with pytest.raises(AssertionError, match="more"):
        hold("record-report", {**document, "more": 1})


def test_closing_leaves_maps_open():
    names = {"type": "object", "additionalProperties": {"type": "string"}}
    assert closed({"type": "object", "properties": {"a": names}}) == {
        "type": "object", "properties": {"a": names}, "additionalProperties": False,
    }  # fmt: skip


# --- the files ------------------------------------------------------------------------------------


def recorded(out: Path) -> Recorded:
    made = Recorded(
        request=Request(cluster="mock", clients=clients("confluent:1,java:4.1.0:2"), scenario="scale-out"),
        out=out,
    )
    made.version = "2.16.0"
    made.played = [
        RecordingStep(do="start", member="confluent-1"),
        RecordingStep(do="subscribe", member="confluent-1", topics=("orders",)),
    ]
    made.rests = [
        QuiescencePoint(
            number=2,
            at="2026-11-21T00:00:02Z",
            settled=True,
            live=("confluent-1",),
            wanted=("orders-0",),
            owned={"confluent-1": ("orders-0",)},
        )
    ]
    made.findings = [
        CheckFinding(
            check="owned-twice",
            began="2026-11-21T00:00:01Z",
            seconds=0.5,
            consumers=("a", "b"),
            detail="so",
            partition="orders-0",
            generations=(1, None),
        )
    ]
    made.errors = {"it is over": 3}
    made.lines = [
        {"at": "2026-11-21T00:00:00.000001Z", "event": event, "group": "g", "consumer": "a", **more}
        for event, more in (
            ("assigned", {"generation": 1, "partitions": ["orders-0"]}),
            ("polled", {"ranges": {"orders-0": [0, 7]}}),
        )
    ]
    return made


def test_the_files_of_a_recording_of_real_clients(tmp_path):
    made = recorded(tmp_path)
    write(made)
    hold("record-run", json.loads((tmp_path / "run.json").read_text()))
    hold("record-report", json.loads((tmp_path / "report.json").read_text()))
    lines = [
        line for name in ("events", "reads") for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()
    ]
    assert len(lines) == 2
    for line in lines:
        hold("record-event", json.loads(line))
    assert run_data(made)["request"]["clients"] == "confluent:1,java:4.1.0:2"


def test_the_files_of_an_audit():
    found = audited(finding())
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.report.terminal.audit import data as report

    hold("audit", json.loads(json.dumps(report(found))))
    hold("finding", recordings.finding_out(found.findings[0]))
    whole = Recording(
        finding=found.findings[0], rule="rule", source="source", events=found.findings[0].places
    )
    hold("recording", json.loads(recordings.to_text(whole)))


@pytest.mark.slow
def test_a_replay_on_real_clients(rebalance, tmp_path):
    from rebalance_verifier.cli.commands.replay import save

    (saved,) = broken_runs(rebalance, tmp_path)
    result = Replayed(
        clause=saved.clause,
        client="java:4.1.0",
        version="4.1.0",
        naming=("A", "B"),
        steps=9,
        done=9,
        broken=[BrokenClause("group/owner", 3, "twice")],
    )
    result.shown, result.events = [{"step": 1, "event": "A start", "seen": []}], [{"event": "joined"}]
    frame = {"number": 0, "at": 0.5, "broker": 0, "connection": 1, "direction": "request", "api": "JoinGroup"}
    result.frames = [json.dumps({**frame, "version": 9, "client": "a", "fate": "passed"})]
    hold("replay", json.loads(save(saved, result, tmp_path).read_text()))


def broken_runs(rebalance, tmp_path):
    assert rebalance(*BROKEN_GROUP, "--format", "json").code == 1
    for path in sorted((tmp_path / ".rebalance/failures").glob("*.json")):
        hold("run", json.loads(path.read_text()))
        yield runs.load(path)


@pytest.mark.slow
def test_a_check_writes_its_report_and_traces(rebalance, tmp_path):
    argv = ("check", "cooperative-sticky+no_withhold", "--profile", "smoke", "--clause", "kip429/leader/4")
    assert rebalance(*argv, "--report", "json").code == 1
    hold("report", json.loads((tmp_path / ".rebalance/latest/report.json").read_text()))
    report = json.loads((tmp_path / ".rebalance/latest/report.json").read_text())
    [row] = [row for row in report["clauses"] if row["finding"]]
    assert row["causes"][0] == row["finding"]
    traces = {cause["trace"]: cause["cause"] for cause in row["causes"]}
    assert len(traces) == len(set(traces.values())) > 1
    for trace in traces:
        path = tmp_path / f".rebalance/failures/{trace}.json"
        hold("trace", json.loads(path.read_text()))
        assert counterexamples.load(path).clause.id == "kip429/leader/4"


@pytest.mark.parametrize(
    "argv",
    [("list", "scenarios"), ("list", "releases"), ("list", "clauses", "--of", "group"), ("list", "clauses"),
     ("list", "checks"), ("bugs",),
     ("explore", "dynamic", "--members", "2", "--partitions", "1", "--depth", "3"),
     ("upgrade", "--from", "range", "--to", "sticky", "--path", "single-bounce")],
    ids=" ".join,
)  # fmt: skip
def test_a_list_keeps_its_schema(rebalance, argv):
    """Held by the fixture; here only that there is something to hold."""
    ran = rebalance(*argv, "--format", "json")
    assert ran.code in (0, 1, 3)
    assert json.loads(ran.out)
    assert printed([*argv, "--format", "json"]) in FORMATS


# --- nothing is forgotten -------------------------------------------------------------------------

WRITTEN = {
    "cli.commands.audit.run": "audit",
    "cli.commands.audit._follow.report": "finding",
    "cli.commands.bugs._list": "bugs",
    "cli.commands.bugs._matrix": "matrix",
    "cli.commands.bugs._finish": "cases",
    "cli.commands.campaign._show": "campaign",
    "cli.commands.conform.run": "conformance",
    "cli.commands.lockstep.run_lockstep": "lockstep",
    "cli.commands.code_search.run_on_code": "code-search",
    "cli.commands.explore.run": "exploration",
    "cli.commands.listing._clauses": "clauses",
    "cli.commands.listing._obligations": "obligations",
    "cli.commands.listing._schemas": "",
    "cli.commands.listing._sentences": "checks",
    "cli.commands.listing.run": "scenarios",
    "live.clients.record.record.write": "record-run",
    "live.clients.proxy.frames.lines": "replay",
    "cli.commands.prove._necessity": "necessity",
    "cli.commands.prove._as_shipped": "shipped",
    "cli.commands.prove.run": "proof",
    "cli.commands.record.run": "record-report",
    "traces.recordings.to_text": "recording",
    "cli.commands.replay._finish": "cases",
    "cli.commands.replay.save": "replay",
    "report.terminal.comparison.to_json": "comparison",
    "report.data.render": "report",
    "traces.runs.to_text": "run",
    "cli.commands.show._picture": "picture",
    "gate.search.counterexamples.to_text": "trace",
    "cli.commands.upgrade.run": "upgrade",
}
"""Functions that turn a document into JSON for others -> its format; "" for a schema itself."""

OTHERS = {
    "report.ci.sarif.render": "OASIS says what it is: test_sarif.py",
    "cli.commands.show._drawn": "Apalache says what it is: tests/traces/test_itf.py",
}

OURS = {
    "gate.compare.compare._enlist": "read by compare itself",
    "gate.compare.compare._save": "read by compare itself",
    "cli.console.terminal.answer": "what others give it",
    "cli.shared.reports.Reports.finish_cases": "what others give it",
    "cli.console.terminal.json_text": "what others give it",
    "cli.console.terminal.print_json": "what others give it",
    "gate.search.resume.save": "read by check --resume itself",
    "report.html.page.stepper": "read by page.js, in the same page",
    "live.clients.clusters.mock.main.emit": "to the process that started it",
    "live.clients.consumers.clients.recorder.Recorder.write": "to whoever started it, as record-event",
    "gate.search.counterexamples.as_pytest": "a scenario, into a test",
    "live.clients.leaders.broker.LeaderBroker._describe": "no JSON: bytes of Kafka's protocol",
    "live.clients.leaders.broker.LeaderBroker.answer_join": "no JSON: bytes of Kafka's protocol",
    "live.clients.leaders.broker.LeaderBroker.answer_sync": "no JSON: bytes of Kafka's protocol",
    "live.clients.leaders.broker.LeaderBroker.handle": "no JSON: bytes of Kafka's protocol",
    "live.clients.leaders.starting.Forks.__call__": "read by live.leaders.forking",
    "live.clients.leaders.targets._command": "read by live.clients.leaders itself",
    "live.clients.leaders.user_data.LearntUserData.to_text": "read by live.leaders itself",
    "live.artifacts.packages.npm_program.build": "npm's package.json",
    "base.processes.supervision.keep": "read by the keeper itself",
}


INSIDE = {
    "gate.compare.compare._order",
    "live.conformance.log.seconds_of",
    "traces.runs.run_id",
    "gate.search.counterexamples.trace_id",
    "base.processes.signing.seal_of",
    "gate.targets.trust._digest",
}
"""What is made into JSON to be compared, hashed or named in an error."""


WRITERS = ("base", "live", "gate", "traces", "report", "cli")
DUMPS = ("dumps", "dump", "json_text", "print_json", "answer")


def writers() -> Iterator[str]:
    """Every function of these folders that makes JSON text of a value, but in an error or a hash."""
    for path in sorted(path for folder in WRITERS for path in (ROOT / folder).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield from found_in(ast.parse(path.read_text(encoding="utf-8")), module)


def found_in(node: ast.AST, name: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield from found_in(child, f"{name}.{child.name}")
            continue
        if isinstance(child, ast.JoinedStr) or (
            isinstance(child, ast.Call) and called(child) in ("sha256", "write_user_data")
        ):
            continue
        if isinstance(child, ast.Call) and called(child) in DUMPS and not name.endswith(".dump"):
            yield name
        yield from found_in(child, name)


def called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "pickle":
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_whoever_writes_json_is_known():
    found = set(writers())
    known = {*WRITTEN, *OTHERS, *OURS, *INSIDE}
    assert found - known == set(), "what is its format? see traces/formats.py"
    assert known - found == set()
    assert {name for name in WRITTEN.values() if name} <= set(FORMATS)
