"""The adapters: the real assignors of the Python clients on small known cases, and what the adapters add."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.search.search import replay
from rebalance_verifier.gate.targets.hosts import aiokafka, classic, kafka_python
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.hosted import load as targets_load
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.live.artifacts import pypi
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Assignor, Promise
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.model.wire import decode_sticky_user_data
from rebalance_verifier.model.written import ASSIGNED, JoinSituation, described, written_by
from rebalance_verifier.properties.assignors.calls import Answer, Failure
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import AddMember, Scenario, ScenarioMember, uniform

ADAPTERS = {"kafka-python": kafka_python, "aiokafka": aiokafka}
SPECS = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
TARGETS = [f"{client}:{spec}" for client, specs in SPECS.items() for spec in specs]
STICKY = [target for target in TARGETS if target.endswith("sticky")]


def load(target):
    client, spec = target.split(":")
    pytest.importorskip(client.removesuffix("-python"), reason=f"{client} is not installed")
    return ADAPTERS[client].load(spec)


def tps(text):
    """``"t0 t1"`` -> partitions 0 and 1 of topic t."""
    return tuple(TopicPartition(word[:-1], int(word[-1])) for word in text.split())


def subscription(assignor, topics="t", owned="", generation=-1, **fields):
    """What a member of the assignor's own client writes, with claims in both places that can hold them."""
    fields = {"version": assignor.metadata_version, "generation_id": generation} | fields
    return Subscription(
        topics=tuple(topics),
        user_data=assignor.user_data(tps(owned), generation),
        owned_partitions=tps(owned),
        **fields,
    )


def assign(assignor, counts, group):
    result = assignor.assign(Cluster.of(counts), group)
    return {member: " ".join(f"{t}{p}" for t, p in sorted(result[member])) for member in result}


@pytest.mark.parametrize("target", TARGETS)
def test_is_an_assignor(target):
    assignor: kafka_python.KafkaPythonAssignor | classic.ClassicAssignor = load(target)
    _: Assignor = assignor  # mypy's part of this test
    assert assignor.name == target.split(":")[1]
    assert assignor.promises <= set(Promise)
    assert assignor.promises
    assert assignor.protocols == (
        (RebalanceProtocol.COOPERATIVE,)
        if assignor.name == "cooperative-sticky"
        else (RebalanceProtocol.EAGER,)
    )
    assert assignor.version[0].isdigit()
    assert assignor.issues.startswith(assignor.homepage)
    assert assignor.mutated is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("range", {"A": "t0 t1 u0", "B": "t2 u1"}),
        ("roundrobin", {"A": "t0 t2 u1", "B": "t1 u0"}),
        ("sticky", {"A": "t0 t2 u1", "B": "t1 u0"}),
        ("cooperative-sticky", {"A": "t0 t2 u1", "B": "t1 u0"}),
    ],
)
def test_fresh_groups(spec, expected):
    for target in TARGETS:
        if target.endswith(f":{spec}"):
            assignor = load(target)
            group = {"B": subscription(assignor, "tu"), "A": subscription(assignor, "ut")}
            assert assign(assignor, {"t": 3, "u": 2}, group) == expected
            assert assignor.mutated is None


UNEQUAL = [
    pytest.param(
        target,
        marks=pytest.mark.xfail(
            target == "kafka-python:roundrobin",
            reason="up to 3.0.12 it looks up a (group.instance.id, member id) pair as a member id",
            raises=KeyError,
            strict=False,
        ),
    )
    for target in TARGETS
]


@pytest.mark.parametrize("target", UNEQUAL)
def test_unequal_subscriptions_and_a_topic_without_metadata(target):
    assignor = load(target)
    group = {"A": subscription(assignor, "t"), "B": subscription(assignor, "ux")}
    assert assign(assignor, {"t": 2, "u": 1}, group) == {"A": "t0 t1", "B": "u0"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_metadata_version_is_read(target, version):
    assignor = load(target)
    sub = Subscription(
        topics=("t",), user_data=b"", owned_partitions=(), generation_id=4, rack_id="rack", version=version
    )
    assert assign(assignor, {"t": 2}, {"A": sub}) == {"A": "t0 t1"}


@pytest.mark.parametrize("target", STICKY)
def test_claims_are_kept(target):
    assignor = load(target)
    group = {
        "A": subscription(assignor, "t", "t1 t2", 4),
        "B": subscription(assignor, "t", "t0 t3", 4),
    }
    assert assign(assignor, {"t": 4}, group) == {"A": "t1 t2", "B": "t0 t3"}


def test_eager_moves_at_once_and_cooperative_withholds():
    for target in STICKY:
        assignor = load(target)
        group = {"A": subscription(assignor, "t", "t0 t1", 4), "B": subscription(assignor, "t")}
        result = assign(assignor, {"t": 2}, group)
        assert len(result["A"].split()) == 1
        assert len(result["B"].split()) == (0 if assignor.name == "cooperative-sticky" else 1)


def test_the_generation_reaches_kafka_python():
    sticky, cooperative = load("kafka-python:sticky"), load("kafka-python:cooperative-sticky")
    for older, newer in (("A", "B"), ("B", "A")):
        for assignor, fields in ((sticky, {}), (cooperative, {"version": 2})):
            claims = {
                older: subscription(assignor, "t", "t0", 4, **fields),
                newer: subscription(assignor, "t", "t0", 5, **fields),
            }
            assert assign(assignor, {"t": 1}, claims)[newer] == "t0"


def test_the_instance_id_reaches_kafka_python():
    """Its range assignor serves static members first."""
    assignor = load("kafka-python:range")
    group = {"B": subscription(assignor, "t", group_instance_id="i"), "A": subscription(assignor, "t")}
    assert assign(assignor, {"t": 1}, group) == {"A": "", "B": "t0"}


@pytest.mark.parametrize("target", TARGETS)
def test_a_member_writes_what_its_client_was_seen_to_write(target):
    """The version, and the user data before and after it was assigned something (model/written.toml)."""
    assignor, row = load(target), written_by(*target.split(":"))
    first, later = row.read(JoinSituation.FIRST), row.read(JoinSituation.REBALANCED)
    assert assignor.metadata_version == first.subscription.version
    assert described(assignor.user_data((), NO_GENERATION)) == first.user_data
    assert described(assignor.user_data(ASSIGNED, 6)) == later.user_data


def test_user_data_is_what_the_client_writes():
    owned = tps("t1 t0 u0")
    for target in TARGETS:
        assignor = load(target)
        assert assignor.user_data((), -1) == b""
        if assignor.name != "sticky":
            assert assignor.user_data(owned, 4) == b""
    kafka, aio = load("kafka-python:sticky"), load("aiokafka:sticky")
    user_data = import_module("kafka.coordinator.assignors.sticky.user_data").StickyAssignorUserData
    decoded = user_data.decode(kafka.user_data(owned, 4))
    assert [(t, tuple(p)) for t, p in decoded.previous_assignment] == [("t", (1, 0)), ("u", (0,))]
    assert decoded.generation == 4
    knows_generation = "on_generation_assignment" in aio._coordinator._on_join_complete.__code__.co_names
    assert decode_sticky_user_data(aio.user_data(owned, 4)) == (owned, 4 if knows_generation else -1)


@pytest.mark.parametrize("target", STICKY)
def test_members_do_not_share_state(target):
    """Asking for one member's user data must not make the leader, or another member, remember it."""
    assignor, other = load(target), load(target)
    group = {"A": subscription(assignor, "t"), "B": subscription(assignor, "t")}
    before = assign(assignor, {"t": 3}, group)
    assignor.user_data(tps("t0 t1 t2"), 4)
    assert assignor.user_data((), -1) == other.user_data((), -1) == b""
    assert assign(assignor, {"t": 3}, group) == before
    assert getattr(assignor._assignor, "member_assignment", None) is None


def spoiled(target, spoil):
    """An adapter whose assignor runs ``spoil(cls or self, members)`` before the real ``assign``."""
    adapter = load(target)
    real = adapter._assignor

    class Spoiled(real):  # type: ignore[valid-type, misc] # known only here
        if target.startswith("aiokafka"):

            @classmethod
            def assign(cls, cluster, members):
                spoil(cls, members)
                return super().assign(cluster, members)

        else:

            def assign(self, cluster, members):  # type: ignore[misc] # the clients differ in this
                spoil(self, members)
                return super().assign(cluster, members)

    if isinstance(adapter, kafka_python.KafkaPythonAssignor):
        return kafka_python.KafkaPythonAssignor(Spoiled, adapter.version)
    parts = adapter._protocol, adapter._coordinator, adapter.version, adapter.homepage
    return classic.ClassicAssignor(Spoiled, *parts)


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_mutation_of_the_input_is_reported(client):
    calls = []

    def spoil(_, members):
        calls.append(1)
        if len(calls) == 1:
            first = members["A"] if isinstance(members, dict) else members[0].metadata
            getattr(first, "topics" if client == "kafka-python" else "subscription").append("x")
        if len(calls) == 2:
            members.pop() if isinstance(members, list) else members.popitem()

    assignor = spoiled(f"{client}:sticky", spoil)
    group = {"A": subscription(assignor), "B": subscription(assignor)}
    assign(assignor, {"t": 1}, group)
    before, after = "00000000000100017400000000", "000000000002000174000178" + "00000000"
    assert assignor.mutated == f"metadata of A was {before}, became {after}"
    assign(assignor, {"t": 1}, group)
    assert assignor.mutated == "members were ['A', 'B'], became ['A']"
    assign(assignor, {"t": 1}, group)
    assert assignor.mutated is None
    assert group["A"].topics == ("t",)


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_a_leader_keeps_its_state_between_calls(client):
    def spoil(leader, _):
        leader.calls = getattr(leader, "calls", 0) + 1

    assignor, other = spoiled(f"{client}:sticky", spoil), spoiled(f"{client}:sticky", spoil)
    for _ in range(2):
        assign(assignor, {"t": 1}, {"A": subscription(assignor)})
    assign(other, {"t": 1}, {"A": subscription(other)})
    assert (assignor._leader.calls, other._leader.calls) == (2, 1)
    assert not hasattr(assignor._assignor, "calls")


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_exceptions_pass_through(client):
    def spoil(*_):
        raise KeyError("theirs")

    assignor = spoiled(f"{client}:sticky", spoil)
    with pytest.raises(KeyError, match="theirs"):
        assign(assignor, {"t": 1}, {"A": subscription(assignor)})


@pytest.mark.parametrize(("client", "specs"), SPECS.items())
def test_unknown_specs(client, specs):
    with pytest.raises(ValueError, match=f"no assignor of {client} is called 'stiky': did you mean sticky"):
        ADAPTERS[client].load("stiky")
    with pytest.raises(ValueError, match=f"there are {', '.join(sorted(specs))}"):
        ADAPTERS[client].load("x")


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_a_missing_library_is_named(client, monkeypatch):
    package = client.removesuffix("-python")
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {client}$"):
        ADAPTERS[client].load("range")


# --- releases --------------------------------------------------------------------------------------------


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """A pip that writes its arguments and an empty package, and says what it is told to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    commands: list[list[str]] = []

    def put(returncode: int = 0, output: str = "") -> list[list[str]]:
        def run(argv, seconds, what):
            commands.append(list(argv))
            if not returncode:
                Path(argv[argv.index("--target") + 1], "kafka").mkdir(parents=True)
            return subprocess.CompletedProcess(argv, returncode, "", output)

        monkeypatch.setattr(pypi, "run", run)
        return commands

    return put


def test_a_release_is_installed_once_in_a_directory_of_its_own(pip, tmp_path):
    commands = pip()
    found = pypi.installed("kafka-python", "2.0.2")
    assert found.is_relative_to(tmp_path)
    assert [path.name for path in found.iterdir()] == ["kafka"]
    assert commands[0][-1] == "kafka-python==2.0.2"
    assert pypi.installed("kafka-python", "2.0.2") == found
    assert pypi.installed("kafka-python", "2.0.6") != found
    assert len(commands) == 2
    assert sorted(path.name[0] for path in found.parent.iterdir()) == ["k", "k"]  # no drafts are left


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            "ERROR: No matching distribution found for kafka-python==9",
            "pip finds no such release for Python 3",
        ),
        ("NewConnectionError: Failed to establish a new connection", "is there a network?"),
        ("No module named pip", "pip fails: No module named pip"),
        ("", "it does not say why"),
    ],
)
def test_what_pip_says_becomes_one_line(output, text, pip):
    pip(1, output)
    with pytest.raises(ToolError) as error:
        pypi.installed("kafka-python", "9")
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_release_is_refused_before_pip_is_asked(pip):
    commands = pip()
    with pytest.raises(TargetError, match=r"write kafka-python==1\.2\.3"):
        resolve("kafka-python==2; rm:sticky")
    with pytest.raises(TargetError, match="names no assignor"):
        resolve("kafka-python==2.0.2:")
    assert commands == []


def test_a_release_beside_another_that_is_loaded_is_refused(pip):
    load("kafka-python:range")
    pip()
    with pytest.raises(TargetError, match=r"kafka-python==2\.0\.2: .* is imported instead"):
        targets_load("kafka-python==2.0.2:range")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "fails"),
    [("kafka-python==2.0.2", "dict_itemiterator"), ("kafka-python==2.3.3", ""), ("aiokafka==0.9.0", "")],
)
def test_releases_with_the_classic_interface(release, fails):
    """Three ways in which the coordinators call it; 2.0.2 cannot encode its user data (issue 2305)."""
    try:
        target = resolve(f"{release}:sticky")
    except TargetError as error:
        if "is there a network?" in str(error):
            pytest.skip(str(error))
        raise
    with Session(target) as session:
        assert session.hello.version == release.partition("==")[2]
        owned = tps("t0 t1")
        data = session.user_data(owned, 4)
        if fails:
            assert isinstance(data, Failure)
            assert fails in data.message
            data = wire.encode_sticky_user_data(owned, 4)
        assert isinstance(data, bytes)
        knows_generation = release.startswith("kafka-python")
        assert decode_sticky_user_data(data) == (owned, 4 if knows_generation else -1)
        group = {"A": Subscription(topics=("t",), user_data=data), "B": Subscription(topics=("t",))}
        reply = session.assign(RebalanceProtocol.EAGER, Cluster.of({"t": 2}), group)
        assert isinstance(reply, Answer)
        assert sorted(len(partitions) for partitions in reply.assignment.values()) == [1, 1]


@pytest.mark.parametrize("target", ["kafka-python:cooperative-sticky", "aiokafka:sticky"])
def test_warnings_of_the_client_are_not_errors(target):
    load(target)
    client, spec = target.split(":")
    code = (
        f"from rebalance_verifier.gate.targets.hosts.{client.replace('-', '_')} import load; load({spec!r})"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


# --- consumers of one process ----------------------------------------------------------------------------


def stickiness(spec):
    """Whether a group in which nothing happens but that B comes breaks kip54/sticky/1."""
    scenario = Scenario(
        protocol=RebalanceProtocol.EAGER,
        topics=uniform({"t": 3}),
        members=(ScenarioMember(id="A", topics=("t",)), ScenarioMember(id="B", topics=("t",))),
        rounds=((), (AddMember(ScenarioMember(id="C", topics=("t",))),), ()),
    )
    with Session(resolve(spec)) as session:
        return replay(session, scenario, CLAUSES["kip54/sticky/1"]).breach_of("kip54/sticky/1") is not None


def test_what_consumers_of_one_process_have_in_common_is_what_the_last_was_assigned():
    """All of them write what one of them owns: who comes takes part of it, and who stays loses its own."""
    load("aiokafka:sticky")
    assert not stickiness("aiokafka:sticky")
    assert stickiness("aiokafka:sticky+one_process")


def test_a_client_that_keeps_nothing_in_its_classes_is_not_judged_as_if_it_did():
    load("kafka-python:sticky")
    with pytest.raises(ValueError, match="keeps nothing in its classes"):
        kafka_python.load("sticky+one_process")
