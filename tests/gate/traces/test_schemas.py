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
from rebalance.gate import recordings, runs, traces
from rebalance.gate.formats import FORMATS, schema
from rebalance.gate.live.judge import Found, Rest
from rebalance.gate.live.record import Recorded, Request, clients, data, run_data, write
from rebalance.gate.live.replayed import Broken, Replayed
from rebalance.gate.live.scenarios import Step

from tests.gate.handmade import BROKEN_GROUP
from tests.gate.published import Validator, closed, hold, printed, validator
from tests.gate.test_audit_report import audited, finding

ROOT = Path(__file__).parents[2]
GATE = ROOT / "gate"


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
    files = {path.name.removesuffix(".schema.json") for path in GATE.glob("**/*.schema.json")}
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
        ("campaign", {"schema": 1}),
        ("comparison", {"schema": 2, "targets": [{}]}),
        ("record-run", {"cluster": {"kind": "real", "version": ""}}),
        ("record-report", {"verdict": "fine"}),
        ("record-event", {"at": "2026-11-21T00:00:00Z", "event": "slept", "group": "g", "consumer": "c"}),
        ("conformance", {"verdict": "conformant"}),
        ("replay", {"kind": "run"}),
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
    made = Recorded(Request("mock", clients=clients("confluent:1,java:4.1.0:2"), scenario="scale-out"), out)
    made.version = "2.16.0"
    made.played = [Step("start", "confluent-1"), Step("subscribe", "confluent-1", topics=("orders",))]
    made.rests = [
        Rest(2, "2026-11-21T00:00:02Z", True, ("confluent-1",), ("orders-0",), {"confluent-1": ("orders-0",)})
    ]
    made.findings = [
        Found("owned-twice", "2026-11-21T00:00:01Z", 0.5, ("a", "b"), "so", "orders-0", (1, None))
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
    from rebalance.gate.report.audit import data as report

    hold("audit", json.loads(json.dumps(report(found))))
    hold("finding", recordings.finding_out(found.findings[0]))
    whole = recordings.Recording(found.findings[0], "rule", "source", found.findings[0].places)
    hold("recording", json.loads(recordings.to_text(whole)))


@pytest.mark.slow
def test_a_replay_on_real_clients(rebalance, tmp_path):
    from rebalance.gate.replay_cli import save

    (saved,) = broken_runs(rebalance, tmp_path)
    result = Replayed(
        saved.clause, "java:4.1.0", "4.1.0", ("A", "B"), 9, 9, [Broken("group/owner", 3, "twice")]
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
    words = ("check", "cooperative-sticky+no_withhold", "--profile", "smoke", "--clause", "kip429/leader/4")
    assert rebalance(*words, "--report", "json").code == 1
    hold("report", json.loads((tmp_path / ".rebalance/latest/report.json").read_text()))
    (path,) = (tmp_path / ".rebalance/failures").glob("*.json")
    hold("trace", json.loads(path.read_text()))
    assert traces.load(path).clause.id == "kip429/leader/4"


@pytest.mark.parametrize(
    "words",
    [("explore", "--list"), ("explore", "--clauses"), ("clauses",), ("bugs",), ("audit", "--list"),
     ("explore", "dynamic", "--members", "2", "--partitions", "1", "--depth", "3"),
     ("upgrade", "--from", "range", "--to", "sticky", "--path", "single-bounce")],
    ids=" ".join,
)  # fmt: skip
def test_a_list_keeps_its_schema(rebalance, words):
    """Held by the fixture; here only that there is something to hold."""
    ran = rebalance(*words, "--format", "json")
    assert ran.code in (0, 1, 3)
    assert json.loads(ran.out)
    assert printed([*words, "--format", "json"]) in FORMATS


# --- nothing is forgotten -------------------------------------------------------------------------

WRITTEN = {
    "audit_cli.run": "audit",
    "audit_cli._follow.tell": "finding",
    "audit_cli._write": "audit",
    "audit_cli._listed": "checks",
    "bugs_cli._list": "bugs",
    "bugs_cli._matrix": "matrix",
    "campaign_cli._show": "campaign",
    "cli._clauses": "clauses",
    "conform_cli.run": "conformance",
    "explore_cli.run": "exploration",
    "explore_cli._report": "exploration",
    "explore_cli._clauses": "group-clauses",
    "explore_cli._list": "scenarios",
    "live.record.write": "record-run",
    "live.proxy.lines": "replay",
    "necessity.run": "necessity",
    "prove_cli.run": "proof",
    "prove_cli._list": "obligations",
    "prove_cli._report": "proof",
    "record_cli.run": "record-report",
    "recordings.to_text": "recording",
    "replay_cli.save": "replay",
    "report.comparison.to_json": "comparison",
    "report.data.render": "report",
    "runs.to_text": "run",
    "runs_cli._drawn": "picture",
    "schemas_cli.run": "",
    "traces.to_text": "trace",
    "upgrade_cli.run": "upgrade",
}
"""Functions that turn a document into JSON for others -> its format; "" for a schema itself."""

OTHERS = {
    "report.badge.render": "shields.io says what it is: test_badge.py",
    "report.sarif.render": "OASIS says what it is: test_sarif.py",
    "explore_cli._itf": "Apalache says what it is: tests/explore/test_itf.py",
    "runs_cli._states": "the same",
}

OURS = {
    "compare._enlist": "read by compare itself",
    "compare._save": "read by compare itself",
    "following._settle": "read by audit --follow itself",
    "resume.save": "read by check --resume itself",
    "live.process.Process.send": "to a client of ours",
    "live.mock.main.say": "to the process that started it",
    "live.clients.recorder.Recorder.write": "to the process that started it, which writes record-event",
    "traces.as_pytest": "a scenario, into a test",
}


INSIDE = {"compare._order", "conformance._seconds", "runs.SavedRun.id", "traces.trace_id"}
"""What is made into JSON to be compared, hashed or named in an error."""


def writers() -> Iterator[str]:
    """Every function of the gate that makes JSON text of a value, but of a value in an error or in a hash."""
    for path in sorted(GATE.rglob("*.py")):
        module = ".".join(path.relative_to(GATE).with_suffix("").parts)
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
        if isinstance(child, ast.Call) and called(child) in ("dumps", "dump") and not name.endswith(".dump"):
            yield name
        yield from found_in(child, name)


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_whoever_writes_json_is_known():
    found = set(writers())
    known = {*WRITTEN, *OTHERS, *OURS, *INSIDE}
    assert found - known == set(), "what is its format? see gate/formats.py"
    assert known - found == set()
    assert {name for name in WRITTEN.values() if name} <= set(FORMATS)
