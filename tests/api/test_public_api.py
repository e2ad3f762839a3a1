"""The public Python API: it says what the commands say, prints and writes nothing, and stays what it is."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from rebalance_verifier.api.groups import GroupSize
from rebalance_verifier.base.verdict import Exit

import rebalance_verifier as api

LOG = Path(__file__).parents[2] / "examples" / "audit" / "orders.log"
BROKEN: GroupSize = {"members": 2, "partitions": 2, "max_faults": 0, "switches": ["no_withhold"]}
"""A group in which two members own one partition."""

SMALL: GroupSize = {"members": 1, "partitions": 1, "faults": []}


class Deals:
    """An assignor that is right, and deals anew each time."""

    promises = ()
    protocols = ("eager",)

    def assign(self, cluster, group):
        found: dict[str, list[Any]] = {member: [] for member in group}
        for partition in cluster.partitions():
            takers = [member for member in group if partition.topic in group[member].topics]
            if takers:
                found[takers[partition.partition % len(takers)]].append(partition)
        return found


class GivesTwice(Deals):
    """An assignor that gives all partitions of a topic to each of its subscribers."""

    def assign(self, cluster, group):
        return {m: [p for p in cluster.partitions() if p.topic in group[m].topics] for m in group}


class Interrupted(Deals):
    """An assignor during which Ctrl-C is hit."""

    def assign(self, cluster, group):
        raise KeyboardInterrupt


def without_paths(document: Any, *more: str) -> Any:
    """A report without the files that a command has saved, and without its speed."""
    if isinstance(document, dict):
        left_out = ("path", "speed", "seconds", "out", "data", *more)
        return {name: without_paths(value, *more) for name, value in document.items() if name not in left_out}
    return [without_paths(value, *more) for value in document] if isinstance(document, list) else document


# -- the names -----------------------------------------------------------------------------------------


def test_importing_the_package_loads_no_other_module_of_it_and_nothing_installed():
    program = "import sys, rebalance_verifier; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()} & {"numpy", "z3", "networkx", "pytest"}
    ours = [name for name in ran.stdout.split() if name.startswith("rebalance_verifier")]
    assert (loaded, ours) == (set(), ["rebalance_verifier"])


def test_type_checkers_are_told_of_the_names_that_are_loaded():
    tree = ast.parse(Path(str(api.__file__)).read_text())
    (told,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name: str(node.module).removeprefix("rebalance_verifier.")
        for node in told.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == api._MODULES
    assert sorted([*imported, "__version__"]) == sorted(api.__all__) == dir(api)


@pytest.mark.parametrize(
    "name", sorted({*api.__all__} - {"__version__", "GroupAssignment", "GroupSubscription"})
)
def test_each_name_has_a_docstring_of_its_own_in_whole_sentences(name: str):
    about = inspect.getdoc(getattr(api, name)) or ""
    assert about[:1].isupper()
    assert about.split("\n\n")[0].rstrip().endswith((".", ":"))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        _ = api.chek


def test_functions_stay_what_they_are_when_a_package_of_one_name_is_loaded():
    program = """
import rebalance_verifier
import rebalance_verifier.explore.engine.fast
from rebalance_verifier import explore
assert callable(explore) and callable(rebalance_verifier.explore)
import rebalance_verifier.explore.random.walks
assert callable(rebalance_verifier.explore)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


# -- the answers are those of the commands -------------------------------------------------------------


@pytest.mark.covering
@pytest.mark.parametrize("target", ["range", "range+members_unsorted", "sticky+max_generation_only"])
def test_check_says_what_the_command_says(rebalance, target: str):
    ran = rebalance("check", target, "--profile", "smoke", "--level", "quality", "--report", "json",
                    "--report-dir", "reports")  # fmt: skip
    written = json.loads(Path("reports/report.json").read_text())
    answer = api.check(target, profile="smoke", level="quality")
    assert without_paths(answer.to_json()) == without_paths(written)
    assert (answer.exit_code, answer.verdict) == (ran.code, written["verdict"])


@pytest.mark.parametrize("size", [SMALL, BROKEN], ids=["conformant", "violation"])
def test_explore_says_what_the_command_says(rebalance, size: GroupSize):
    options = ["--members", size["members"], "--partitions", size["partitions"]]
    options += ["--faults", "none"] if "faults" in size else ["--max-faults", 0, "--switch", "no_withhold"]
    ran = rebalance("explore", "dynamic", *options, "--format", "json")
    answer = api.explore("dynamic", **size)
    assert without_paths(answer.to_json()) == without_paths(json.loads(ran.out))
    assert answer.exit_code == ran.code


def test_audit_says_what_the_command_says(rebalance):
    ran = rebalance("audit", LOG, "--format", "json")
    answer = api.audit(LOG)
    assert without_paths(answer.to_json(), "trace") == without_paths(json.loads(ran.out), "trace")
    assert (answer.exit_code, answer.verdict) == (Exit.VIOLATION, "violation")


def test_nothing_is_printed_or_written(here: Path, capfd: pytest.CaptureFixture[str]):
    answers = [api.check(GivesTwice, profile="smoke"), api.explore("dynamic", **BROKEN), api.audit([LOG])]
    assert [answer.verdict for answer in answers] == ["violation"] * 3
    assert all(answer.to_html().startswith("<!") and str(answer) for answer in answers)
    assert capfd.readouterr() == ("", "")
    assert list(here.iterdir()) == []


# -- what an answer is ---------------------------------------------------------------------------------


@pytest.mark.nightly
def test_an_answer_is_true_where_it_is_conformant_only(tmp_path: Path):
    empty = tmp_path / "empty.log"
    empty.write_text("nothing of a consumer\n")
    stale = tmp_path / "known.txt"
    stale.write_text("assign/1 # https://example.com/1\n")
    assert api.check(Deals(), profile="smoke")
    assert api.explore("dynamic", **SMALL)
    assert not api.check(GivesTwice(), profile="smoke")
    assert not api.explore("dynamic", depth=2, members=2, partitions=1)
    assert not api.explore("dynamic", walks=3, steps=5)
    assert not api.audit(empty)
    fixed = api.check(Deals, profile="smoke", known_failing=f"@{stale}")
    assert (bool(fixed), fixed.verdict, fixed.exit_code) == (False, "conformant", Exit.VIOLATION)


def test_what_is_known_is_no_finding():
    answer = api.check(GivesTwice, profile="smoke", level="safety", clauses=["assign/1"])
    assert {finding.clause for finding in answer.findings} == {"assign/1"}
    assert api.check(GivesTwice, profile="smoke", clauses="assign/1", known_failing="assign/1").findings == ()


def test_a_finding_is_a_trace_that_the_command_plays_again(rebalance, monkeypatch: pytest.MonkeyPatch):
    Path("mine.py").write_text(
        "class Twice:\n    promises = ()\n    def assign(self, cluster, group):\n"
        "        return {m: [p for p in cluster.partitions() if p.topic in group[m].topics] for m in group}\n"
    )
    answers = [api.check("mine:Twice", profile="smoke", fail_fast=True), api.explore("dynamic", **BROKEN)]
    for answer in answers:
        finding = answer.findings[0]
        assert (finding.level, finding.certain, finding.gates) == ("safety", True, True)
        path = finding.save("kept")
        assert json.loads(path.read_text()) == finding.trace
        assert rebalance("replay", path).code == Exit.VIOLATION
    (finding, *_) = api.audit(LOG).findings
    assert finding.about.startswith("orders ")
    assert rebalance("show", finding.save("kept")).code == 0


def test_ctrl_c_ends_it_as_it_ends_any_function():
    with pytest.raises(KeyboardInterrupt):
        api.check(Interrupted(), profile="smoke")


def test_it_works_beside_the_main_thread():
    answers: list[Any] = []

    def work() -> None:
        answers.append(api.check("range", profile="smoke", clauses="assign"))
        answers.append(api.audit(LOG))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert [answer.exit_code for answer in answers] == [0, 1]


WRONG = {
    "no target": (lambda: api.check("nope"), "no target is called 'nope'"),
    "no module": (lambda: api.check("nope:Mine"), "no module and no adapter is called 'nope'"),
    "no assignor": (lambda: api.check(3), "a int is no assignor"),
    "profile": (lambda: api.check("range", profile="smok"), "profile: no profile is called 'smok'"),
    "level": (lambda: api.check("range", level="x"), "level: no level is called 'x'"),
    "protocols": (lambda: api.check("range", protocols="lazy"), "protocols: no protocol is called 'lazy'"),
    "clauses": (lambda: api.check("range", clauses="kip4"), "no clause is called 'kip4'"),
    "a list": (lambda: api.check("range", known_failing="@no.txt"), "known_failing: no file 'no.txt'"),
    "an object": (lambda: api.check(Deals(), sandbox=True), "go with a target by name"),
    "scenario": (lambda: api.explore("statik"), "did you mean static?"),
    "file": (lambda: api.explore("mine.toml"), "mine.toml: No such file or directory"),
    "members": (lambda: api.explore("static", members=99), "1 to 12 and 1 to 40 are possible"),
    "release": (lambda: api.scenario("static", release="9.9"), "9.9"),
    "broker": (lambda: api.scenario("consumer", broker="3.9"), "broker: coordinator 3.9.2"),
    "fault": (lambda: api.scenario("static", faults="rain"), "no fault is called 'rain'"),
    "switch": (lambda: api.scenario("static", switches="x"), "no switch is called 'x'"),
    "assignor": (lambda: api.scenario("static", target="range"), "target range is eager"),
    "naming": (lambda: api.scenario("static", naming="x"), "naming: "),
    "granularity": (lambda: api.scenario("static", granularity="x"), "granularity: "),
    "size twice": (lambda: api.explore(api.scenario("static"), members=2), "members: this scenario has"),
    "symmetry": (lambda: api.explore("static", symmetry=True, naming="given"), "symmetry needs"),
    "invariant": (lambda: api.explore("static", invariants="no:thing"), "'no:thing'"),
    "machine": (lambda: api.group_machine("static", invariants="no:thing"), "'no:thing'"),
    "code": (lambda: api.code_machine("dynamic", code="1:2").__enter__(), "write code:RELEASE"),
    "log": (lambda: api.audit("no.log"), "no.log: no such file or directory"),
    "zone": (lambda: api.audit(LOG, zone="Mars"), "'Mars' is no time zone"),
    "day": (lambda: api.audit(LOG, date="1"), "'1' is not a day"),
    "check": (lambda: api.audit(LOG, checks="x"), "checks: no check is called 'x'"),
    "source": (lambda: api.audit(LOG, source="x"), "source: no source is called 'x'"),
    "known": (lambda: api.audit(LOG, known="x"), "known: 'x' is no id of a finding"),
    "out": (lambda: api.audit(LOG.parent, out=LOG.parent / "out"), "name another directory"),
}


@pytest.mark.parametrize(("call", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_judged_is_a_value_error_that_says_why(here: Path, call: Any, says: str):
    with pytest.raises(api.CannotJudge, match=re.escape(says)) as raised:
        call()
    assert isinstance(raised.value, ValueError)
    assert not str(raised.value).startswith("--")


# -- Hypothesis ----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(api.histories(protocol="eager", dimensions=["stale", "unequal"]))
def test_a_history_is_played_on_an_assignor(history):
    for call in api.play(Deals(), history):
        assert call.assignment.keys() == call.group.keys()


def test_a_broken_clause_of_a_history_is_an_assertion_error():
    @settings(max_examples=30)
    @given(api.histories(protocol="eager"))
    def play(history):
        api.play(GivesTwice(), history)

    with pytest.raises(AssertionError, match="assign/1"):
        play()


def test_hypothesis_finds_a_run_of_a_group():
    found = api.find_run("dynamic", clause="leader/withhold", max_examples=500, **BROKEN)
    assert found is not None
    assert found.run.clause == "leader/withhold"
    assert api.find_run("dynamic", max_examples=20, **SMALL) is None


def test_a_group_is_a_state_machine_and_asks_rules_of_ones_own(here: Path, monkeypatch: pytest.MonkeyPatch):
    Path("rules_of_mine.py").write_text("def never(group):\n    return not group.members['A'].owns\n")
    monkeypatch.syspath_prepend(str(here))
    machine = api.group_machine("dynamic", invariants="rules_of_mine:never", **SMALL)
    machine.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
    with pytest.raises(AssertionError, match="rules_of_mine:never"):
        machine.TestCase().runTest()
