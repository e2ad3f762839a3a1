"""``rebalance show`` on traces of every kind, in every format that fits."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.reproduction import reproduce
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.result import Finding, TargetInfo
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Scenario,
    ScenarioMember,
    uniform,
)
from rebalance_verifier.traces import runs

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "examples" / "audit" / "orders-1-owned-twice.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of each kind, by kind."""
    folder = tmp_path_factory.mktemp("traces")
    files = {"recording": RECORDING}
    for name, switch in (("run", "prepare_not_repeated_after_reset"), ("loop", "rebalance_timeout_zero")):
        run = reproduce(SHOWN[switch])
        assert run is not None
        files[name] = runs.save(run, folder)
    rounds = ((), (AddMember(ScenarioMember(id="B", topics=("t",))), Fault(FaultKind.GHOST, "A")), ())
    protocol = RebalanceProtocol.COOPERATIVE
    scenario = Scenario(
        protocol=protocol,
        topics=uniform({"t": 1}),
        members=(ScenarioMember(id="A", topics=("t",)),),
        rounds=rounds,
    )
    made = switched("cooperative-sticky", ("trust_all_claims",))
    record = play(
        scenario, lambda _, cluster, group: Answer(made.assign(cluster, group)), None,
        (CLAUSES["assign/1"],), (),
    )  # fmt: skip
    found = record.breach_of("assign/1")
    assert found is not None
    finding = Finding(
        clause=found.clause,
        protocol=protocol,
        breach=found.breach,
        scenario=scenario,
        round=found.round,
        calls=record.calls,
        seed=0,
        number=0,
        found_size=(1, 1, 0, 3),
        confirmed=True,
    )
    target = TargetInfo(spec="cooperative-sticky+trust_all_claims", name="cooperative-sticky")
    files["counterexample"] = counterexamples.save(
        counterexamples.of(finding, target, "smoke", "0.1.0"), folder
    )
    return files


KINDS = ("counterexample", "run", "loop", "recording")


@pytest.mark.parametrize("kind", KINDS)
def test_every_trace_is_drawn_for_the_terminal(rebalance, saved, kind):
    ran = rebalance("show", saved[kind])
    assert ran.code == 0
    texts = {
        "counterexample": (
            "assign/1  t-0 is assigned to A and B",
            "t-0  A           ·····█████",
            "▲ t-0 is owned by A and B in round 3",
        ),
        "run": ("group/owner  t-0 is owned by A and by B", "A sends JoinGroup", "two owners", "▲▲▲"),
        "loop": ("group/converges", "from here again and again", "t-0  (nobody)"),
        "recording": ("owned-twice", "two owners", "▲▲▲▲", "times in UTC"),
    }[kind]
    assert [text for text in texts if text not in ran.out] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_trace_is_drawn_as_svg(rebalance, saved, kind, tmp_path):
    ran = rebalance("show", saved[kind], "--format", "svg", "--out", "drawn.svg")
    assert (ran.code, ran.out) == (0, "")
    root = ET.parse(tmp_path / "drawn.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    hatched = [e for e in root.iter() if e.get("class") == "hatch"]
    assert bool(hatched) is (kind != "loop")
    assert rebalance("show", saved[kind], "--format", "svg").out == (tmp_path / "drawn.svg").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_trace_is_drawn_for_a_pull_request(rebalance, saved, kind):
    ran = rebalance("show", saved[kind], "--format", "mermaid")
    assert ran.code == 0
    assert ran.out.startswith("sequenceDiagram\n    participant m0 as ")
    assert (" is owned by " in ran.out) is (kind != "loop")


@pytest.mark.parametrize("kind", KINDS)
def test_every_trace_is_drawn_as_data(rebalance, saved, kind):
    drawn = json.loads(rebalance("show", saved[kind], "--format", "json").out)
    assert (drawn["schema"], drawn["kind"]) == (1, "picture")
    assert drawn["columns"]
    assert bool(drawn["overlaps"]) is (kind != "loop")


def test_a_run_as_itf(rebalance, saved):
    finite = json.loads(rebalance("show", saved["run"], "--format", "itf").out)
    assert finite["#meta"]["format"] == "ITF"
    assert "loop" not in finite
    assert len(finite["states"]) == len(runs.load(saved["run"]).events) + 1
    assert set(finite["vars"]) == set(finite["states"][-1]) - {"#meta"}
    lasso = json.loads(rebalance("show", saved["loop"], "--format", "itf").out)
    assert lasso["loop"] == runs.load(saved["loop"]).loop


@pytest.mark.parametrize("kind", ["counterexample", "recording"])
def test_what_has_no_states_is_no_itf(rebalance, saved, kind):
    ran = rebalance("show", saved[kind], "--format", "itf")
    assert ran.code == 2
    assert f"--format itf is for runs of the model, which have states; {saved[kind]} is a " in ran.err
    assert "use svg, mermaid, text or json" in ran.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("{run}", "{loop}", "--format", "svg"), "--format svg is for one trace, these are 2"),
        (("{run}", "{loop}", "--out", "x.txt"), "--out x.txt is for one trace"),
        (("{counterexample}", "--metrics"), "--metrics is for runs of the model"),
        (("{recording}", "--metrics"), "is a recording of a log"),
        (("{run}", "--metrics", "--format", "svg"), "--metrics goes with --format text"),
        (("{run}", "--metrics", "--format", "itf"), "--metrics goes with --format text"),
        (("{run}", "--out", "no/where.txt"), "--out"),
        (("nothing",), "neither a file"),
        (("broken.json",), "not a trace"),
    ],
)
def test_what_cannot_be_drawn_says_why(rebalance, saved, argv, message, tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    ran = rebalance("show", *(word.format(**saved) for word in argv))
    assert ran.code == 2
    assert message in ran.err


def test_a_damaged_recording_of_answers_is_named(rebalance, saved, tmp_path):
    document = json.loads(saved["counterexample"].read_text())
    document["calls"][2]["assignment"]["A"] = ["t"]
    (tmp_path / "bad.json").write_text(json.dumps(document))
    ran = rebalance("show", "bad.json")
    assert ran.code == 2
    assert 'calls[2].assignment.A[0]: expected a partition such as orders-0, found "t"' in ran.err


def test_a_run_that_cannot_happen_is_no_crash(rebalance, saved, tmp_path):
    document = json.loads(saved["run"].read_text())
    del document["events"][1]
    (tmp_path / "bad.json").write_text(json.dumps(document))
    for form in ("text", "svg", "itf"):
        ran = rebalance("show", "bad.json", "--format", form)
        assert ran.code == 2, form
        assert "bad.json: step " in ran.err


def stepping(rebalance, monkeypatch, path, *typed):
    """What ``--step`` shows after each line that is typed, until the input ends."""
    lines = iter(typed)

    def read(prompt):
        sys.stdout.write("AT")
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    ran = rebalance("show", "--step", path)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split("AT")[:-1]


def test_a_run_is_stepped_through_and_left(rebalance, monkeypatch, saved, tmp_path):
    """Forward, back, to a step; another event than the run's; what came of it is a run that can be shown."""
    run = runs.load(saved["run"])
    last = len(run.events)
    start, first, second, again, fifth, chosen, wrote = stepping(
        rebalance, monkeypatch, saved["run"], "", "", "b", "g 5", "1", f"w {tmp_path / 'mine.json'}"
    )
    assert f"0 of {last}  the start" in start
    assert "Enter goes on" in start
    assert f"1 of {last}" in first
    assert "* A" in first
    assert "was down" in first
    assert f"2 of {last}" in second
    assert again == first
    assert f"5 of {last}" in fifth
    options = [line for line in fifth.splitlines() if line[1:2] == ">"]
    assert len(options) == 1  # the run's own among those that can happen
    assert "   1  " in fifth
    left = f"6 of {6 if ' >  1' not in fifth else last}"
    assert left in chosen
    assert ("left after step 5" in chosen) == (" >  1" not in fifth)
    written = runs.load(tmp_path / "mine.json")
    assert written.events[:5] == run.events[:5]
    assert len(written.events) == (6 if "left after" in chosen else last)
    assert wrote == chosen


def test_more_can_happen_than_is_listed_at_first(rebalance, monkeypatch, saved):
    from rebalance_verifier.report.terminal import stepping as module

    monkeypatch.setattr(module, "MAX_CHOICES", 1)
    _, short, everything, *_ = stepping(rebalance, monkeypatch, saved["run"], "", "c", "q", "never read")
    assert "more: c" in short
    assert "more: c" not in everything
    assert "    2  " in everything


@pytest.mark.parametrize(("kind", "shows"), [("counterexample", "claims"), ("recording", "owns orders-1")])
def test_what_was_recorded_is_stepped_through_too(rebalance, monkeypatch, saved, kind, shows):
    """Without choices; what cannot be understood is answered with what can be typed."""
    *_, end, wrong = stepping(rebalance, monkeypatch, saved[kind], "g 999", "b", "", "nonsense")
    first, _, total = end.split()[:3]
    assert first == total
    assert shows in end
    assert "Enter goes on" in wrong
    assert "w FILE" in wrong


def test_stepping_is_for_one_trace_and_a_terminal(rebalance, saved):
    for more in (("--format", "svg"), ("--metrics",), (saved["run"],)):
        ran = rebalance("show", "--step", saved["recording"], *more)
        assert ran.code == 2
        assert "--step is for one trace" in ran.err
