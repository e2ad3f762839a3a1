"""Runs of the group on disk: what is written reads back and replays; what is damaged is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.base.saved import NewerSchema, TraceError
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.floors import DUE, due
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.explore.groups.runs import SavedRun, play
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.plugged import plugged
from rebalance_verifier.model.machine import CannotHappenError, Event, StepOwner
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.steps import Step, steps
from rebalance_verifier.properties.group.clauses import WITNESSES, rules
from rebalance_verifier.report.terminal.table import table
from rebalance_verifier.traces import runs
from rebalance_verifier.traces.runs import setup_in, setup_out

from tests.tiers import tiered

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "traces" / "schemas"


@pytest.fixture(scope="module")
def owner() -> SavedRun:
    """Two owners, because claims are left empty: a run that ends."""
    found = reproduce(SHOWN["claims_always_empty"])
    assert found is not None
    return found


@pytest.fixture(scope="module")
def lasso() -> SavedRun:
    """A member that goes because it has nothing to do: a run that never settles."""
    found = reproduce(SHOWN["leave_on_empty_assignment"])
    assert found is not None
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_setup_reads_back(name):
    released = ScenarioSize(profiles=("java-2.4", "kafka-python"), broker="broker-2.4", steps="fine")
    if SCENARIOS[name].protocol.name != "classic" or SCENARIOS[name].warmups:
        released = ScenarioSize(profiles=("java-current",), broker="broker-current", steps="fine")
    for size in (ScenarioSize(), released):
        setup = SCENARIOS[name].setup(size)
        assert setup_in(json.loads(json.dumps(setup_out(setup)))) == setup


def test_a_plug_is_named_in_the_file():
    plug = plugged("cooperative-sticky+no_withhold")
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(factory=plug))
    assert setup_in(setup_out(setup)) == setup
    with pytest.raises(ValueError, match="plug without a name"):
        setup_out(replace(setup, factory=lambda name, switches: plug(name, switches)))


def test_a_plug_takes_the_place_that_fits():
    assert plugged("sticky+last_claim_wins").replaces == "sticky"
    with pytest.raises(TargetError, match="only Python assignors"):
        plugged("-- cat")


@pytest.mark.slow
def test_what_is_written_reads_back_and_is_as_its_schema_says(owner, lasso, tmp_path):
    schema = json.loads((SCHEMAS / "run.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for run in (owner, lasso):
        path = runs.save(run, tmp_path)
        assert replace(runs.load(path), path=None) == run
        written = json.loads(path.read_text())
        jsonschema.Draft202012Validator(schema).validate(written)
        assert path.stem == runs.run_id(run)
    of_code = ("on", "peace")
    assert list(written) == [name for name in schema["properties"] if name not in of_code]
    step = step_of_code(owner.events[0])
    code = replace(owner, on="code:4.3.1", events=owner.events[:1], recorded=(step,), peace=0)
    path = runs.save(code, tmp_path)
    assert replace(runs.load(path), path=None) == code
    written = json.loads(path.read_text())
    jsonschema.Draft202012Validator(schema).validate(written)
    assert (written["kind"], path.stem) == ("code run", runs.run_id(code))
    assert list(written) == [name for name in schema["properties"] if name != "loop"]


def step_of_code(event):
    owners = (StepOwner("A", "", 3, ("t-0",)), StepOwner("B", "down", None, ()))
    return Step(number=1, event=event, fault=False, what="A joins", seen=("A: hears",), owners=owners)


def test_a_run_breaks_its_clause_with_its_last_step_and_not_before(owner):
    played = play(owner)
    assert (played.sentence, played.after) == ("t-1 is owned by A and by B", len(owner.events))
    assert play(replace(owner, events=owner.events[:-1])).sentence is None


def test_a_lasso_is_confirmed_and_a_wrong_one_is_not(lasso):
    assert lasso.loop == len(lasso.events)
    assert play(lasso).sentence
    cut = replace(lasso, loop=lasso.loop - 1)
    assert play(cut).sentence is None
    assert "does not end in the state" in play(cut).why
    early = replace(lasso, events=lasso.events[:3], loop=3)
    assert "weakly fair" in play(early).why


def test_generations_are_those_of_the_run(owner):
    shown = steps(machine(owner.setup), owner.events)
    assert [o.generation for o in shown[-1].owners] == [2, 2]
    assert [o.owns for o in shown[-1].owners] == [("t-0", "t-1"), ("t-1",)]
    assert shown[0].fault
    assert not shown[1].fault
    assert shown[-1].seen == ("B: onPartitionsAssigned(t-1)",)


def test_an_event_that_cannot_happen_is_named(owner):
    wrong = replace(owner, events=(*owner.events[:4], Event("crash", 0), *owner.events[4:]))
    with pytest.raises(CannotHappenError, match=r"step 5, 'A crash', cannot happen; possible are: B join"):
        play(wrong)


def test_table_is_narrow_and_marks_the_loop(owner, lasso):
    for run, width in ((owner, 109), (lasso, 109), (owner, 60)):
        lines = table(steps(machine(run.setup), run.events), run.loop, width)
        assert max(map(len, lines)) <= width
        assert all(f"{n}" in "\n".join(lines) for n in range(1, len(run.events) + 1))
    assert "nothing else ever happens" in table(steps(machine(lasso.setup), lasso.events), lasso.loop)[-1]
    turning = table(steps(machine(owner.setup), owner.events), 12)
    assert [line.strip() for line in turning if "----" in line] == [
        "---- from here again and again ----",
        "---- back to where step 12 led ----",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "its field 'kind' is not 'group run'"),
        ({"schema": 2}, "use a newer suite"),
        ({"clause": "group/nonsense"}, "clause: expected one of "),
        ({"loop": 3}, "a run with a loop is about group/converges or streams/probing or group/rounds"),
        ({"loop": 99}, "loop: expected the number of events before it, 0 to "),
        ({"events": [{"action": "start", "who": "Z"}]}, 'events[0].who: expected one of A, B, found "Z"'),
        ({"events": ["start"]}, 'events[0]: expected an object, found "start"'),
        ({"events": [{"who": "A"}]}, "events[0].action: is missing"),
        ({"setup": {}}, "setup.members: is missing"),
    ],
)
def test_damage_is_named(owner, tmp_path, change, message):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(runs.to_text(owner)) | change))
    with pytest.raises(TraceError) as caught:
        runs.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, NewerSchema) is ("schema" in change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topics": {"x": 2}}, 'setup.topics: expected t, found ["x"]'),
        ({"topics": {"t": 0}}, "setup.topics.t: expected 1 to 100 partitions, found 0"),
        ({"exist": ["t-7"]}, 'setup.exist: expected one of t-0, t-1, found "t-7"'),
        ({"budget": -1}, "setup.budget: expected 0 or more, found -1"),
        ({"faults": ["fire"]}, "setup: no fault is called 'fire'"),
        ({"faults": [1]}, "setup.faults[0]: expected a string, found 1"),
        ({"coordinator": ["nonsense"]}, "setup.coordinator: expected one of "),
        ({"naming": "none"}, "setup.naming: expected every or given"),
        ({"members": []}, "setup.members: is empty"),
        ({"members": [1]}, "setup.members[0]: expected an object, found 1"),
        ({"members": [{"stages": [], "subscriptions": []}]}, "setup.members[0].stages: is empty"),
        ({"members": [{"stages": [{}], "subscriptions": [["u"]]}]}, "].stages[0].assignors: is missing"),
        (
            {"members": [{"stages": [{"assignors": ["no"]}], "subscriptions": [["t"]]}]},
            "assignors: expected",
        ),
        ({"members": [{"stages": [{"assignors": []}], "subscriptions": [["t"]]}]}, "].assignors: is empty"),
        ({"assignor": {"target": "nobody"}}, "no target is called 'nobody'"),
    ],
)
def test_a_damaged_setup_is_named(owner, change, message):
    with pytest.raises(TraceError) as caught:
        setup_in(setup_out(owner.setup) | change)
    assert message in str(caught.value)


def test_files_that_are_something_else(tmp_path):
    path = tmp_path / "x.json"
    for text in ("{", "[]", '{"schema": 1}', "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(TraceError, match=r"x\.json"):
            runs.load(path)


def test_floors_are_witnesses_of_the_table():
    assert set(DUE) <= set(WITNESSES)


@pytest.mark.parametrize(("members", "partitions"), tiered(((1, 1), (2, 1), (2, 2)), {(1, 1)}))
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_due_does_show(name, members, partitions):
    partitions = max(partitions, SCENARIOS[name].topics)
    setup = SCENARIOS[name].setup(ScenarioSize(members=members, partitions=partitions, budget=1))
    search = fast.explore(machine(setup), rules(setup))
    assert search.complete
    assert not set(due(setup)) & set(search.coverage.missed)
