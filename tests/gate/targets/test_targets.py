"""Every way to name a target, every way to get the name wrong, and first aid for adapters."""

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from rebalance_verifier.gate.targets.hosts.hosted import GROUP, TargetError, describe, load
from rebalance_verifier.gate.targets.resolve import Target, known, resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import Answer

HERE = Path(__file__).parent
HOSTILE = HERE / "hostile"
PLAIN = HERE.parents[2] / "examples" / "adapters" / "python_stdio.py"


@pytest.fixture(autouse=True)
def in_hostile_directory(monkeypatch):
    monkeypatch.chdir(HOSTILE)
    monkeypatch.syspath_prepend(HOSTILE)


@pytest.fixture
def adapter(monkeypatch, tmp_path):
    """An adapter that shadows the module of the same name, registered as its distribution would."""
    (tmp_path / "acme_adapter.py").write_text(
        "class Acme:\n"
        "    name = 'acme'\n"
        "    def __init__(self, spec): self.version = spec\n"
        "    def assign(self, cluster, group): return {}\n"
        "def load(spec):\n"
        "    if spec == 'broken': raise KeyError(spec)\n"
        "    return Acme(spec)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("json", "acme_adapter:load", GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    yield "json"
    sys.modules.pop("acme_adapter", None)


# --- names that are right --------------------------------------------------------------------------------


def test_nothing_is_run_that_nobody_named():
    with pytest.raises(TargetError, match=r"which TARGET\?\n.*rebalance list targets"):
        resolve()


def test_a_reference_is_hosted():
    target = resolve("cooperative-sticky")
    assert target.command == (
        sys.executable,
        "-P",
        "-m",
        "rebalance_verifier.gate.targets.hosts.host",
        "cooperative-sticky",
    )
    assert target.hosted
    assert target.label == "cooperative-sticky (reference)"


@pytest.mark.parametrize("name", NAMES)
def test_references(name):
    assert resolve(name).spec == name
    assert load(name).name == name


def test_reference_switches_are_passed_on(monkeypatch):
    calls = []

    def switched(name, switches):
        calls.append((name, switches))
        return name

    monkeypatch.setattr("rebalance_verifier.model.bugs.switches.switched", switched)
    load("cooperative-sticky+max_generation_only+steal_once")
    load("range")
    assert calls == [("cooperative-sticky", ("max_generation_only", "steal_once")), ("range", ())]


def test_program():
    target = resolve(command=[sys.executable, "-c", "x y"])
    line = f"{sys.executable} -c 'x y'"
    assert target == Target(spec=f"-- {line}", command=(sys.executable, "-c", "x y"), label=line)
    assert not target.hosted
    assert resolve(target.spec) == target  # what a trace has kept of it


def test_python_targets():
    assert resolve("hostile_assignors:Reporting").label == "hostile_assignors:Reporting (python)"
    assert load("hostile_assignors:Reporting").name == "reporting"
    assert load("hostile_assignors:Reporting.assign").name == "hostile_assignors"
    group = {"A": Subscription(topics=("t",))}
    assert load("hostile_assignors:hang").assign(Cluster.of({"t": 1}), group) == {"A": [("t", 0)]}


def test_resolve_imports_nothing_of_the_targets(tmp_path, monkeypatch):
    (tmp_path / "explosive_target.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    assert resolve("explosive_target:x").hosted
    assert "explosive_target" not in sys.modules


def test_adapter_wins_over_a_module(adapter):
    assert resolve("json:loads").label == "json:loads (adapter acme_adapter:load)"
    assert load("json:loads").version == "loads"
    assert "json:..." in known()


def test_known_lists_installed_adapters():
    assert known()[: len(NAMES)] == list(NAMES)
    assert {"aiokafka:...", "kafka-python:..."} <= set(known())


# --- names that are wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ("cooperativ-stiky", ["no target is called 'cooperativ-stiky'", "did you mean cooperative-sticky"]),
        ("", ["no target is called ''", "`rebalance list targets`", "module:attribute"]),
        ("cooperative-sticky+no_such_switch", ["no_such_switch"]),
        ("kafka-pyton:sticky", ["is no target", "did you mean kafka-python"]),
        (
            "kafkapython:sticky",
            ["no module and no adapter is called 'kafkapython'", "did you mean kafka-python"],
        ),
        (
            "no_such_module_at_all:x",
            ["no adapter is called 'no_such_module_at_all'", "PYTHONPATH"],
        ),
        ("my_assignor.py:assign", ["got a file", "write my_assignor:assign"]),
        ("src/my_assignor:assign", ["got a file"]),
        ("hostile_assignors:", ["is no target"]),
        (":x", ["is no target"]),
        ("kafka-python:", ["names no assignor", "write kafka-python:NAME"]),
    ],
)
def test_unresolvable(spec, texts):
    with pytest.raises(TargetError) as error:
        resolve(spec)
    for text in texts:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("command", "text"),
    [(["no-such-program-here"], "a relative path needs a ./"), (["./hostile_program.py"], "chmod +x")],
)
def test_no_such_program(command, text):
    with pytest.raises(TargetError, match="no such program") as error:
        resolve(command=command)
    assert text in str(error.value)


def test_two_targets():
    with pytest.raises(TargetError, match="give either"):
        resolve("range", ["true"])


@pytest.mark.parametrize(
    ("spec", "texts", "detail"),
    [
        (
            "hostile_assignors:Reportin",
            ["there is no 'Reportin'", "did you mean Reporting?", "_assignors.py"],
            "",
        ),
        ("hostile_assignors:time.nothing", ["there is no 'nothing'"], ""),
        ("hostile_assignors:not_an_assignor", ["a int is no assignor", "assign(cluster, group)"], ""),
        (
            "hostile_assignors:NeedsArguments",
            ["cannot make a NeedsArguments without arguments: TypeError"],
            "",
        ),
        ("hostile_assignors.more:x", ["cannot import 'hostile_assignors.more'"], "Traceback"),
    ],
)
def test_unloadable(spec, texts, detail):
    with pytest.raises(TargetError) as error:
        load(spec)
    for text in texts:
        assert text in str(error.value)
    assert detail in error.value.detail


def test_broken_adapter(adapter):
    with pytest.raises(TargetError, match="cannot load 'broken': KeyError"):
        load("json:broken")


def test_wrong_attributes():
    assignor = load("hostile_assignors:WrongProtocols")
    with pytest.raises(
        TargetError, match=r"'lazy' is not a valid RebalanceProtocol\n  protocols are of eager"
    ):
        describe(assignor)


def test_the_host_reports_what_it_cannot_load():
    """The error of `load` reaches the user as if it had happened here."""
    for spec, text in [
        ("hostile_assignors:Reportin", "did you mean Reporting?"),
        ("hostile_assignors:WrongProtocols", "is not a valid RebalanceProtocol"),
    ]:
        with pytest.raises(TargetError, match=text) as error, Session(resolve(spec)):
            pass
        assert "does not start" not in str(error.value)


def test_the_host_is_started_properly():
    done = subprocess.run(
        [sys.executable, "-m", "rebalance_verifier.gate.targets.hosts.host"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ")


def test_local_files_do_not_shadow_the_host(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "mine.py").write_text("def assign(cluster, group): return {}\n")
    monkeypatch.chdir(tmp_path)
    with Session(resolve("mine:assign")) as session:
        assert session.hello.name == "mine"


# --- real targets ----------------------------------------------------------------------------------------


def test_references_in_a_session_answer_as_in_process():
    cluster = Cluster.of({"t": 3, "u": 1})
    group = {
        "B": Subscription(topics=("t", "u")),
        "A": Subscription(
            topics=("t",), owned_partitions=tuple(TopicPartition("t", i) for i in range(3)), generation_id=4
        ),
    }
    local = load("cooperative-sticky")
    with Session(resolve("cooperative-sticky")) as session:
        assert (session.hello.name, session.hello.protocols) == (local.name, tuple(local.protocols))
        assert session.hello.promises == local.promises
        reply = session.assign(RebalanceProtocol.COOPERATIVE, cluster, group)
        assert isinstance(reply, Answer), reply
        assert reply.assignment == local.assign(cluster, group)
        assert reply.mutated is None
        owned = (TopicPartition("t", 0),)
        assert session.user_data(owned, 4) == local.user_data(owned, 4)


def test_plain_program():
    """The example speaks the protocol without our package, and to the letter of the schema."""
    assert "rebalance" not in "".join(
        line for line in PLAIN.read_text().splitlines() if line.startswith(("import", "from"))
    )
    steps = smoke(resolve(command=[sys.executable, str(PLAIN)]), validate=True)
    assert [step.ok for step in steps] == [True] * 5, steps
    assert steps[0].title == "hello from plain-round-robin 1.0"
    assert steps[2].lines == ("A: t-0 t-2", "B: t-1 t-3")
    assert steps[4].title == "validate 9 messages against the schema"


def test_plain_program_skips_topics_without_subscribers():
    with Session(resolve(command=[sys.executable, str(PLAIN)])) as session:
        group = {"B": Subscription(topics=("u",)), "A": Subscription(topics=("t", "u"))}
        reply = session.assign(RebalanceProtocol.EAGER, Cluster.of({"none": 1, "t": 2, "u": 3}), group)
    assert isinstance(reply, Answer), reply
    found = {member: " ".join(map(str, partitions)) for member, partitions in reply.assignment.items()}
    assert found == {"B": "u-0 u-2", "A": "t-0 t-1 u-1"}


# --- first aid -------------------------------------------------------------------------------------------


def test_smoke_on_the_reference():
    assert [step.ok for step in smoke(resolve("cooperative-sticky"), validate=True)] == [True] * 5


def test_smoke_says_what_is_wrong():
    first, one, two, claims = smoke(resolve("hostile_assignors:hang"))
    assert (first.ok, one.ok, two.ok, claims.ok) == (True, True, False, False)
    assert two.lines[1:] == claims.lines[1:] == ("B left out of the answer (assign/8)",)
    program = [sys.executable, str(HOSTILE / "hostile_program.py"), "none"]
    first, one, two, claims = smoke(resolve(command=program))
    assert (first.ok, one.ok) == (True, True)
    assert two.lines[2:] == (
        "t-0 is assigned to A and B (assign/1)",
        "t-1 is not assigned, and nobody has to revoke it first (kip429/leader/5)",
    )
    assert claims.lines[2:] == (
        "withheld until A has revoked them: t-1 t-2 t-3",
        "t-0 is assigned to A and B (assign/1)",
        "t-0 is granted to B while A still owns it (kip429/leader/4)",
    )


def test_smoke_shows_failures_and_schema_violations():
    program = [sys.executable, str(HOSTILE / "hostile_program.py"), "hello_typo"]
    start, validation = smoke(resolve(command=program), validate=True)
    assert (start.title, start.ok, validation.ok) == ("start the target", False, False)
    assert any("promisses" in line for line in validation.lines)


def test_smoke_without_jsonschema(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    step = smoke(resolve("cooperative-sticky"), validate=True)[-1]
    assert (step.ok, step.lines) == (False, ("not done: needs `pip install jsonschema`",))


def test_host_imports_no_engine():
    """A Python target starts in the time that its own imports take."""
    heavy = {"hypothesis", "z3", "networkx", "pyspark", "pytest"}
    code = "import sys, rebalance_verifier.gate.targets.hosts.host; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())
    assert importlib.import_module("rebalance_verifier.gate.targets.hosts.host")
