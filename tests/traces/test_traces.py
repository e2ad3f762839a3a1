"""Traces on disk: what is written reads back, ids are stable, damaged files are named with their fault."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rebalance_verifier.base import saved as files
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.saved import NewerSchema, TraceError
from rebalance_verifier.gate.scenarios.generator import DIMENSIONS, generate
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.counterexamples import Trace
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Result, Status, TargetInfo
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    to_json,
    uniform,
)

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "traces" / "schemas"
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TARGET = TargetInfo(
    spec="acme:sticky",
    name="acme",
    version="1.4",
    language="python",
    protocols=("eager", "cooperative"),
    promises=("sticky",),
    homepage="",
    issues="x",
)
NOON = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)


def scenario(**fields):
    members = (
        ScenarioMember(
            id="A",
            topics=("t",),
            owned=(T0, T1),
            generation=3,
            version=1,
            rack="r1",
            instance="static-a",
            eager=True,
            user_data=UserData.STICKY_V0,
        ),
        ScenarioMember(id="B", topics=("t", "u")),
    )
    events = (
        (AddMember(ScenarioMember(id="C", topics=("t",))), Leave("B"), Subscribe("A", ("u",))),
        (SetTopic("u", ((), ())), SetTopic("v", (("r1", "r2"), ())), SetTopic("t", None)),
        (Fault(FaultKind.MISSED_SYNC, "A"),),
    )
    topics = {"u": (("r1",), ("r1", "r2"))} | uniform({"t": 2})
    return Scenario(protocol=COOPERATIVE, **{"topics": topics, "members": members, "rounds": events} | fields)


def finding(of=None, clause="kip429/leader/4", **fields):
    group = {
        "A": Subscription(topics=("t",), user_data=None, owned_partitions=(T0, T1), generation_id=3),
        "B": Subscription(topics=("t", "u")),
    }
    claims = {"A": StatedClaim((T0, T1), 3), "B": StatedClaim((), -1)}
    call = AssignorCall(
        protocol=COOPERATIVE,
        cluster=Cluster.of({"t": 2}),
        group=group,
        claims=claims,
        assignment={"A": (T0,), "B": (T1,)},
    )
    breach = Breach(
        summary="t-1 has two owners",
        because=("first", "then"),
        expected="one",
        actual="two",
        partitions=(T1,),
    )
    values: dict[str, Any] = {"seed": 7, "number": 37, "found_size": (5, 9, 1, 7), "confirmed": True} | fields
    return Finding(
        clause=CLAUSES[clause],
        protocol=COOPERATIVE,
        breach=breach,
        scenario=of or scenario(),
        round=1,
        calls=(call,),
        **values,
    )


def trace(**fields):
    return counterexamples.of(finding(**fields), TARGET, "ci", "0.1.0")


def document(**changes):
    return json.loads(counterexamples.to_text(trace())) | changes


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


# --- writing and reading --------------------------------------------------------------------------


def test_what_is_saved_reads_back(tmp_path):
    path = counterexamples.save(trace(), tmp_path / "deep" / "failures")
    read = counterexamples.load(path)
    assert read == replace(trace(), path=path)
    assert list(path.parent.iterdir()) == [path]
    assert path.name == f"{read.id}.json"


def test_scenarios_of_all_kinds_read_back(tmp_path):
    published = schema()
    for number in range(30):
        names = [d.name for d in DIMENSIONS if (number >> (number % 7)) & 1]
        protocol = (EAGER, COOPERATIVE)[number % 2]
        drawn = generate(Seeded(f"traces/{number}"), protocol, names)
        saved = trace(of=drawn)
        path = counterexamples.save(saved, tmp_path)
        published.validate(json.loads(path.read_text()))
        assert counterexamples.load(path).scenario == drawn
        assert counterexamples.load(path).id == saved.id


def schema():
    published = json.loads((SCHEMAS / "trace.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


def test_file_is_as_its_schema_says_and_names_every_field():
    made = document()
    schema().validate(made)
    assert list(made) == list(schema().schema["properties"])


@pytest.mark.parametrize("wrong", [{"schema": 2}, {"scenario": {}}, {"target": {}}, {"confirmed": "yes"}])
def test_schema_refuses(wrong):
    with pytest.raises(jsonschema.ValidationError):
        schema().validate(document(**wrong))


def test_file_is_made_to_be_read():
    text = counterexamples.to_text(trace())
    assert '"A": {"topics": ["t"], "claims": ["t-0", "t-1"], "generation": 3}' in text
    assert '"assignment": {"A": ["t-0"], "B": ["t-1"]}' in text
    assert max(map(len, text.splitlines())) < 200
    assert list(document())[:4] == ["schema", "suite", "suite_version", "clause"]


def test_a_short_file_written_by_hand_is_enough(tmp_path):
    made = {"schema": 1, "clause": "assign/1", "target": {"spec": "range"}, "scenario": to_json(scenario())}
    read = counterexamples.load(write(tmp_path / "x.json", made))
    expected = Trace(
        clause=CLAUSES["assign/1"], target=TargetInfo(spec="range", name=""), scenario=scenario()
    )
    assert replace(read, path=None) == expected
    assert (read.protocol, read.target.spec) == (COOPERATIVE, "range")


def test_hostile_names_read_back(tmp_path):
    name = 'a"\n\x00\x1b[31m\udc80消"""'
    drawn = scenario(members=(ScenarioMember(id=name, topics=(name,)),), topics=uniform({name: 1}))
    assert counterexamples.load(counterexamples.save(trace(of=drawn), tmp_path)).scenario == drawn


def test_a_huge_recording_is_left_out():
    many = tuple(TopicPartition("t", i) for i in range(counterexamples.MAX_RECORDED + 1))
    call = AssignorCall(
        protocol=COOPERATIVE,
        cluster=Cluster.of({"t": 1}),
        group={"A": Subscription(topics=("t",))},
        claims={},
        assignment={"A": many},
    )
    made = counterexamples.of(replace(finding(), calls=(call,)), TARGET, "ci", "0.1.0")
    assert made.calls == ()
    assert len(trace().calls) == 1


def test_save_all_says_where_the_findings_are(tmp_path):
    clause = CLAUSES["kip429/leader/4"]
    rows = (
        ClauseResult(clause=clause, protocol=COOPERATIVE, status=Status.VIOLATED, finding=finding()),
        ClauseResult(clause=CLAUSES["assign/1"], protocol=COOPERATIVE, status=Status.PASSED),
    )
    made = Result(
        suite_version="0.1.0",
        target=TARGET,
        profile="ci",
        seed=7,
        level="liveness",
        clauses=rows,
        scenarios=300,
        questions=1000,
        seconds=1.0,
    )
    saved = counterexamples.save_all(made, tmp_path)
    found = saved.clauses[0].finding
    assert found is not None
    assert found.trace_id == trace().id
    assert found.path == str(tmp_path / "failures" / f"{found.trace_id}.json")
    assert counterexamples.load(Path(found.path)).profile == "ci"
    assert saved.clauses[1] == rows[1]


def test_an_interrupted_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = files.write(tmp_path / "x.json", "old")

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# --- ids ------------------------------------------------------------------------------------------


def test_id_is_pinned():
    """A change of this id orphans every trace that somebody has referred to."""
    written = (
        '["assign/1","range",{"protocol":"eager","topics":{"t":1},'
        '"members":[{"id":"A","topics":["t"]}],"rounds":[[]],"dimensions":[]}]'
    )
    made = counterexamples.trace_id(
        "assign/1",
        "range",
        Scenario(protocol=EAGER, topics=uniform({"t": 1}), members=(ScenarioMember(id="A", topics=("t",)),)),
    )
    assert made == hashlib.sha256(written.encode()).hexdigest()[:8] == "180c0e69"


def test_id_depends_on_clause_target_and_scenario_only():
    one = trace()
    assert trace(seed=8, number=1, found_size=(1, 1, 1, 1), confirmed=False).id == one.id
    assert trace(of=scenario(dimensions=("claims",))).id == one.id
    assert replace(one, target=replace(TARGET, version="2", name="other")).id == one.id
    others = [
        trace(clause="assign/1").id,
        replace(one, target=replace(TARGET, spec="acme:range")).id,
        trace(of=scenario(rounds=((),))).id,
        trace(of=scenario(members=scenario().members[::-1])).id,
        trace(of=scenario(topics=dict(sorted(scenario().topics.items())))).id,
    ]
    assert len({one.id, *others}) == 6
    assert all(len(i) == 8 and set(i) <= set("0123456789abcdef") for i in others)


@pytest.mark.slow
def test_id_is_the_same_in_every_process():
    program = (
        "from rebalance_verifier.gate.search.counterexamples import trace_id\n"
        "from rebalance_verifier.model.values import RebalanceProtocol\n"
        "from rebalance_verifier.gate.scenarios.generator import generate, DIMENSIONS\n"
        "from rebalance_verifier.base.draws import Seeded\n"
        "s = generate(Seeded('7'), RebalanceProtocol('cooperative'), [d.name for d in DIMENSIONS])\n"
        "print(trace_id('assign/1', 'range', s))"
    )
    ids = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(ids) == 1


# --- damaged files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"schema": 1,\n  "clause" "x"}', r"x\.json:2:12: not JSON: Expecting ':' delimiter"),
        ("", r"x\.json:1:1: not JSON"),
        ([], "not a trace: it has no field 'schema'"),
        ({}, "not a trace: it has no field 'schema'"),
        ({"schema": "1"}, 'schema: expected a whole number from 1 on, found "1"'),
        ({"schema": True}, "schema: expected a whole number from 1 on, found true"),
        ({"schema": 0}, "schema: expected a whole number from 1 on, found 0"),
        ({"schema": 1}, "clause: is missing"),
        (document(clause="assign/99"), "clause: 'assign/99' is unknown; known: assign/1, "),
        (document(target={}), r"target\.spec: is missing"),
        (document(target={"spec": 1}), r"target\.spec: expected a string, found 1"),
        (document(scenario=None), "scenario: not of the expected form"),
        (document(scenario={"protocol": "eager"}), "scenario: field 'topics' is missing"),
        (document(scenario=document()["scenario"] | {"members": [5]}), "scenario"),
        (document(scenario=document()["scenario"] | {"rounds": [[{"fly": "A"}]]}), "unknown event"),
        (document(protocol="eager"), "protocol is 'eager' and the scenario's is 'cooperative'"),
        (document(seed="7"), 'seed: expected a whole number, found "7"'),
        (document(because="x"), 'because: expected a list, found "x"'),
        (document(found_size={"members": "5"}), r"found_size\.members: expected a whole number, found \"5\""),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_damage_is_named(tmp_path, content, message):
    path = write(tmp_path / "x.json", content)
    with pytest.raises(TraceError, match=message) as caught:
        counterexamples.load(path)
    assert str(caught.value).startswith(f"{path}:")
    assert not isinstance(caught.value, NewerSchema)


def test_files_that_are_no_text_or_not_there(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe{")
    for name, message in (("binary.json", "is not UTF-8"), ("gone.json", "cannot be read: No such file")):
        with pytest.raises(TraceError, match=message):
            counterexamples.load(tmp_path / name)


def test_a_newer_schema_is_told_apart(tmp_path):
    path = write(tmp_path / "x.json", {"schema": 2, "clause": {"of": "the future"}})
    with pytest.raises(NewerSchema, match=r"x\.json: has schema 2, this suite reads up to 1"):
        counterexamples.load(path)


# --- finding --------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path):
    run = files.run_directory(tmp_path, NOON)
    for folder, names in (
        ("failures", ("aa11bb22", "aa11cc33")),
        (run.name, ("aa11bb22", "dd44ee55", "report")),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in names:
            write(tmp_path / folder / f"{name}.json", {})
    return tmp_path


def test_find_by_id(root):
    assert files.find("aa11bb22", root) == [root / "failures" / "aa11bb22.json"]
    assert files.find("dd", root) == [root / "latest" / "dd44ee55.json"]
    assert [p.stem for p in files.find("aa11", root)] == ["aa11bb22", "aa11cc33"]


def test_find_by_path(root):
    path = root / "failures" / "aa11cc33.json"
    assert files.find(str(path), root) == [path]
    (root / "failures" / "below").mkdir()
    write(root / "failures" / "below" / "0.json", {})
    write(root / "failures" / ".draft.json", {})
    write(root / "failures" / "notes.txt", "")
    found = files.find(str(root / "failures"), root)
    assert [str(p.relative_to(root / "failures")) for p in found] == [
        "aa11bb22.json",
        "aa11cc33.json",
        "below/0.json",
    ]
    latest = files.find(str(root / "latest"), root)
    assert [p.name for p in latest] == ["aa11bb22.json", "dd44ee55.json"]  # without the report


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, "known ids: aa11bb22, aa11cc") for name in ("ffff", "", "*", "report", "../gone")),
        ("aa11bb22.jso", r"did you mean aa11bb22\?"),
    ],
)
def test_find_nothing(root, name, hint, monkeypatch):
    monkeypatch.chdir(root / "failures")
    with pytest.raises(TraceError, match=f"neither a file, a directory, nor the id.*; {hint}"):
        files.find(name, root)


def test_find_in_an_empty_place(tmp_path):
    with pytest.raises(TraceError, match="no traces"):
        files.find(str(tmp_path), tmp_path)
    with pytest.raises(TraceError, match=r"'aa' is neither .* below \S+$"):
        files.find("aa", tmp_path / "nowhere")


# --- tests made of traces -------------------------------------------------------------------------


def test_as_pytest_is_a_test_that_asks_for_what_the_trace_says():
    made = counterexamples.as_pytest(trace())
    tree = ast.parse(made)
    values = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
    assert values == {
        "TARGET": "acme:sticky",
        "CLAUSE": "kip429/leader/4",
        "SCENARIO": json.loads(json.dumps(to_json(scenario()))),
    }
    topics = scenario().topics
    assert list(values["SCENARIO"]["topics"]) == list(topics) != sorted(topics)  # order is input
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == [f"test_{trace().id}"]
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imported == ["rebalance_verifier"]
    assert "# t-1 has two owners" in made


@pytest.mark.parametrize(
    "text", ['"""; raise SystemExit', "'''\nraise SystemExit", "\\", "\udc80\x00", "#{}%"]
)
def test_as_pytest_runs_nothing_that_the_trace_brings(text):
    name = ScenarioMember(id=text, topics=(text,))
    hostile = replace(
        trace(of=scenario(members=(name,), topics=uniform({text: 1}), rounds=((),))),
        summary=text,
        because=(text,),
        suite_version=text,
        target=TargetInfo(spec=text, name=text),
    )
    made = counterexamples.as_pytest(hostile)
    made.encode()
    assert [type(node).__name__ for node in ast.parse(made).body] == [
        "Expr",
        "ImportFrom",
        "Assign",
        "Assign",
        "Assign",
        "FunctionDef",
    ]


# --- run directories ------------------------------------------------------------------------------


def test_run_directory(tmp_path):
    root = tmp_path / ".rebalance"
    path = files.run_directory(root, NOON)
    assert path == root / "20270131T120000Z"
    assert path.is_dir()
    assert os.readlink(root / "latest") == path.name
    assert "\n*\n" in (root / ".gitignore").read_text()
    assert sorted(p.name for p in root.iterdir()) == [".gitignore", "20270131T120000Z", "latest"]


def test_two_runs_in_one_second_get_two_directories(tmp_path):
    paths = [files.run_directory(tmp_path, NOON + timedelta(milliseconds=i)) for i in range(3)]
    assert [p.name for p in paths] == ["20270131T120000Z", "20270131T120000Z-2", "20270131T120000Z-3"]
    assert os.readlink(tmp_path / "latest") == paths[-1].name


def test_old_run_directories_go_but_those_with_more_than_reports_in_them(tmp_path):
    def run(hours, *names):
        path = files.run_directory(tmp_path, NOON + timedelta(hours=hours))
        for name in names:
            write(path / name, "x")
        return path

    (tmp_path / "failures").mkdir()
    audit, going_on = run(0, "report.html", "events.parquet"), run(1)
    write(tmp_path / "failures" / "aa11bb22.json", {})
    old = [run(hours, "report.html", "report.txt", "junit.xml") for hours in (2, 3)]
    new = [run(hours, "report.html") for hours in range(4, 4 + files.KEPT)]
    assert [path.exists() for path in old] == [False, True]
    last = run(100)
    assert [path.exists() for path in (*old, audit, going_on, last)] == [False, False, True, True, True]
    assert all(path.exists() for path in new)
    assert len(os.listdir(audit)) == 2
    assert (tmp_path / "failures" / "aa11bb22.json").exists()


def test_run_directory_is_named_in_utc_and_keeps_the_users_gitignore(tmp_path):
    write(tmp_path / ".gitignore", "mine")
    local = NOON.astimezone(timezone(timedelta(hours=9)))
    assert files.run_directory(tmp_path, local).name == "20270131T120000Z"
    assert (tmp_path / ".gitignore").read_text() == "mine"


def test_run_directory_without_links(tmp_path, monkeypatch):
    def refuse(self, target, target_is_directory=False):
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert files.run_directory(tmp_path, NOON).is_dir()
    assert not (tmp_path / "latest").exists()


def test_a_directory_called_latest_is_left_alone(tmp_path):
    (tmp_path / "latest").mkdir()
    write(tmp_path / "latest" / "mine.txt", "x")
    files.run_directory(tmp_path, NOON)
    assert (tmp_path / "latest" / "mine.txt").read_text() == "x"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".latest")] == []
