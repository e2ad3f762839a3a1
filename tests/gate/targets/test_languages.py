"""The adapters in other languages under examples/adapters: built, greeted, and asked for known mistakes.

Whatever is missing - a toolchain, the registry that its packages come from - skips its tests with the reason.
The Go libraries are nightly: compiling them for the first time takes a minute.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from rebalance_verifier.gate.search.search import replay
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.model.wire import decode_sticky_user_data, encode_cooperative_user_data
from rebalance_verifier.model.written import ASSIGNED, JoinSituation, described, written_by
from rebalance_verifier.properties.assignors.calls import Answer, Failure
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

from tests.gate.toolchains import NPM, copied, run

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
FRANZ = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Programs(NamedTuple):
    """Where a session's programs are built, and the copy of the sources that they are built from."""

    sources: Path
    bin: Path


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(copied(tmp_path_factory.mktemp("languages")), tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def go(programs: Programs) -> Path:
    run(
        "go",
        "build",
        "-o",
        f"{programs.bin}/",
        "./franz-go",
        "./kafka-go",
        "./sarama",
        cwd=programs.sources / "go",
    )
    return programs.bin


@pytest.fixture(scope="session")
def template(programs: Programs) -> dict[str, list[str]]:
    """Commands by language, of those whose toolchain is here."""
    found = {}
    if shutil.which("node"):
        found["js"] = ["node", str(programs.sources / "template" / "adapter.js")]
    for language, compiler in (("go", ("go", "build", "-o")), ("c", ("cc", "-O1", "-Wall", "-Werror", "-o"))):
        if shutil.which(compiler[0]):
            binary = programs.bin / f"template-{language}"
            run(*compiler, binary, f"adapter.{language}", cwd=programs.sources / "template")
            found[language] = [str(binary)]
    return found


def node(programs: Programs, name: str) -> list[str]:
    """The command of an adapter, after `npm ci` from its lock file."""
    folder = programs.sources / "js" / name
    if not (folder / "node_modules").exists():
        run("npm", "ci", *NPM, cwd=folder)
    return ["node", str(folder / "adapter.js")]


def assert_smoke(command: list[str]) -> None:
    wrong = [step for step in smoke(resolve(None, command), validate=True) if not step.ok]
    assert not wrong, wrong


def tps(text: str) -> tuple[TopicPartition, ...]:
    """``"t0-1 t0-2"`` -> partitions 1 and 2 of t0."""
    return tuple(
        TopicPartition(topic, int(index)) for topic, index in (word.split("-") for word in text.split())
    )


def member(name: str, topics: str, owned: str = "", generation: int = -1) -> ScenarioMember:
    return ScenarioMember(id=name, topics=tuple(topics.split()), owned=tps(owned), generation=generation)


def breaks(
    command: list[str],
    clause: str,
    protocol: RebalanceProtocol,
    counts: dict[str, int],
    *members: ScenarioMember,
) -> str:
    """What the clause says about the first rebalance of these members; empty if nothing."""
    scenario = Scenario(protocol=protocol, topics=uniform(counts), members=members, rounds=((),))
    with Session(resolve(None, command)) as session:
        found = replay(session, scenario, CLAUSES[clause]).breach_of(clause)
    return "" if found is None else found.breach.summary


def ask(
    session: Session, counts: dict[str, int], group: dict[str, Subscription], protocol=EAGER
) -> dict[str, str]:
    reply = session.assign(protocol, Cluster.of(counts), group)
    assert isinstance(reply, Answer), reply
    return {name: " ".join(map(str, sorted(partitions))) for name, partitions in reply.assignment.items()}


# --- templates -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("language", ["js", "go", "c"])
def test_a_template_is_a_target(template: dict[str, list[str]], language: str):
    if language not in template:
        pytest.skip(f"no toolchain for {language}")
    assert_smoke(template[language])


@pytest.mark.slow
@pytest.mark.parametrize("language", ["js", "go", "c"])
def test_a_template_remembers_by_user_data(template: dict[str, list[str]], language: str):
    """It reads what it writes: the newer claim wins, what nobody can have is dropped; and keeps no state."""
    if language not in template:
        pytest.skip(f"no toolchain for {language}")
    with Session(resolve(None, template[language])) as session:
        old = session.user_data(tps("t-0 t-1 gone-0 t-9"), 4)
        new = session.user_data(tps("t-1 t-2"), 5)
        assert isinstance(old, bytes)
        assert isinstance(new, bytes)
        group = {
            "B": Subscription(topics=("t",), user_data=new),
            "A": Subscription(topics=("t",), user_data=old),
            "C": Subscription(topics=("x",), user_data=b"\xff"),
        }
        assert ask(session, {"t": 4}, group) == {"A": "t-0 t-3", "B": "t-1 t-2", "C": ""}
        assert ask(
            session, {"t": 4}, {"A": Subscription(topics=("t",)), "B": Subscription(topics=("t",))}
        ) == {
            "A": "t-0 t-2",
            "B": "t-1 t-3",
        }


@pytest.mark.slow
def test_templates_agree_with_each_other(template: dict[str, list[str]]):
    if len(template) < 2:
        pytest.skip(f"one toolchain or none: {sorted(template)}")
    group = {
        name: Subscription(topics=topics)
        for name, topics in {"m10": ("b", "a"), "m2": ("a",), "é": ("b", "é"), 'q"': ("none",)}.items()
    }
    answers = []
    for command in template.values():
        with Session(resolve(None, command)) as session:
            answers.append(ask(session, {"a": 5, "b": 3, "é": 1, "unread": 2}, group))
    assert answers == [answers[0]] * len(answers)
    assert answers[0]['q"'] == ""


# --- JavaScript ------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize(("client", "args"), [("kafkajs", ()), ("platformatic", ("roundrobin",))])
def test_round_robin_in_javascript_forgets_who_subscribes(programs: Programs, client: str, args: tuple[str]):
    """tulios/kafkajs#1679; the other has the same."""
    command = [*node(programs, client), *args]
    assert_smoke(command)
    summary = breaks(command, "assign/2", EAGER, {"t": 2, "u": 1}, member("A", "t"), member("B", "u"))
    assert summary == "t-1 is assigned to B, which does not subscribe to t"
    assert breaks(command, "assign/2", EAGER, {"t": 2, "u": 1}, member("A", "t u"), member("B", "t u")) == ""


@pytest.mark.slow
def test_platformatic_forgets_the_claims_of_an_older_generation(programs: Programs):
    """KAFKA-14639 once more."""
    command = [*node(programs, "platformatic"), "cooperative-sticky"]
    assert_smoke(command)
    new, other = member("B", "t"), member("C", "t", "t-2", 6)
    for generation, wrong in ((5, "t-1 is granted to B while A still owns it"), (6, "")):
        group = member("A", "t", "t-0 t-1", generation), new, other
        assert breaks(command, "kip429/leader/4", COOPERATIVE, {"t": 3}, *group) == wrong


@pytest.mark.slow
def test_an_assigner_of_ones_own_writes_and_reads_user_data_in_kafkajs(programs: Programs):
    folder = programs.sources / "js" / "kafkajs"
    (folder / "mine.js").write_text(
        """
        const {AssignerProtocol: {MemberAssignment, MemberMetadata}} = require("kafkajs");
        module.exports = ({cluster}) => ({
          name: "Mine", version: 3,
          // All to the member with the greatest user data.
          async assign({members, topics}) {
            const weight = ({memberMetadata}) => MemberMetadata.decode(memberMetadata).userData?.[0] ?? 0;
            const most = members.reduce((a, b) => (weight(b) > weight(a) ? b : a));
            return members.map(({memberId}) => ({memberId, memberAssignment: MemberAssignment.encode({
              version: this.version,
              assignment: memberId !== most.memberId ? {} : Object.fromEntries(topics.map((topic) =>
                [topic, cluster.findTopicPartitionMetadata(topic).map(({partitionId}) => partitionId)]))})}));
          },
          protocol({topics}) {
            const metadata = MemberMetadata.encode({version: 3, topics, userData: Buffer.from([7])});
            return {name: this.name, metadata};
          },
        });
        """,
        encoding="utf-8",
    )
    with Session(resolve(None, [*node(programs, "kafkajs"), str(folder / "mine.js"), ""])) as session:
        assert session.hello.name == "Mine"
        assert not session.hello.promises
        data = session.user_data((), -1)
        assert data == b"\x07"
        # Metadata of version 3: its own decoder reads the user data in front of fields that it does not know.
        group = {
            "A": Subscription(topics=("t", "x")),
            "B": Subscription(topics=("t",), user_data=data, owned_partitions=tps("t-0"), generation_id=4),
        }
        assert ask(session, {"t": 2}, group) == {"A": "", "B": "t-0 t-1"}


# --- Go --------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("library", ["franz-go", "sarama"])
def test_a_go_client_is_a_target(go: Path, library: str):
    for name in FRANZ:
        assert_smoke([str(go / library), name])
    refused = subprocess.run([go / library, "no"], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"usage: {library} range|")


@pytest.mark.nightly
@pytest.mark.parametrize("library", ["franz-go", "sarama"])
def test_sticky_writes_and_reads_the_user_data_of_java(go: Path, library: str):
    with Session(resolve(None, [str(go / library), "sticky"])) as session:
        owned = tps("t-1 t-2")
        data = session.user_data(owned, 4)
        assert isinstance(data, bytes)
        assert decode_sticky_user_data(data) == (owned, 4)
        older = session.user_data(tps("t-1"), 3)
        assert isinstance(older, bytes)
        other = session.user_data(tps("t-3"), 4)
        assert isinstance(other, bytes)
        group = {
            "A": Subscription(topics=("t",), user_data=data),
            "B": Subscription(topics=("t",), user_data=other),
        }
        assert ask(session, {"t": 4}, group) == {"A": "t-1 t-2", "B": "t-0 t-3"}
        group = {
            "A": Subscription(topics=("t",), user_data=older),
            "B": Subscription(topics=("t",), user_data=data),
        }
        assert ask(session, {"t": 2}, group)["B"] == "t-1"


@pytest.mark.nightly
def test_an_adapter_writes_the_user_data_of_its_client(go: Path, programs: Programs):
    """As the table of the bytes of clients has it; what differs is said in docs."""
    commands: list[tuple[list[str], str, tuple[str, ...]]] = [
        ([str(go / name)], name, FRANZ) for name in ("franz-go", "sarama")
    ]
    commands.append(
        (node(programs, "platformatic"), "@platformatic/kafka", ("roundrobin", "cooperative-sticky"))
    )
    differs = []
    for command, client, names in commands:
        for name in names:
            with Session(resolve(None, [*command, name])) as session:
                first, row = session.user_data((), -1), written_by(client, name)
                later = session.user_data(ASSIGNED, 6)
            assert not isinstance(first, Failure)
            assert not isinstance(later, Failure)
            said = [described(first), described(later)]
            if said != [row.read(at).user_data for at in (JoinSituation.FIRST, JoinSituation.REBALANCED)]:
                differs.append((client, name, *said))
    # franz-go's eager members tell their leader nothing: its balancer is told what the client never tells it.
    assert differs == [("franz-go", "sticky", "no partitions", "all partitions, generation 6")]


@pytest.mark.nightly
def test_kafka_go_assigns_nothing_where_a_topic_is_unknown(go: Path):
    command = [str(go / "kafka-go"), "range"]
    for name in ("range", "roundrobin", "rack-affinity"):
        assert_smoke([*command[:1], name])
    group = member("A", "t"), member("B", "t u")
    assert breaks(command, "kip429/leader/5", EAGER, {"t": 2}, *group).startswith("t-0 is not assigned")
    assert breaks(command, "kip429/leader/5", EAGER, {"t": 2, "u": 1}, *group) == ""


@pytest.mark.nightly
def test_the_generation_of_a_cooperative_member(go: Path):
    with Session(resolve(None, [str(go / "sarama"), "cooperative-sticky"])) as session:
        assert session.user_data(tps("t-0"), 4) == encode_cooperative_user_data(4)
        assert session.user_data((), -1) == encode_cooperative_user_data(-1)
    for library in ("franz-go", "sarama"):
        with Session(resolve(None, [str(go / library), "cooperative-sticky"])) as session:
            claims = {
                name: Subscription(
                    topics=("t",), user_data=None, owned_partitions=tps("t-0"), generation_id=g
                )
                for name, g in (("A", 4), ("B", 5))
            }
            assert ask(session, {"t": 1}, claims, COOPERATIVE)["B"] == "t-0"


@pytest.mark.nightly
def test_sarama_gives_a_partition_to_a_stale_claim_while_its_owner_has_it(go: Path):
    command = [str(go / "sarama"), "cooperative-sticky"]
    group = member("A", "t", "t-0 t-1", 4), member("B", "t", "t-0", 3)
    assert breaks(command, "kip792/claim/1", COOPERATIVE, {"t": 2}, *group) == (
        "t-0 is granted to B, whose claim is of generation 3, over the newer claim of A"
    )
    assert breaks(command, "kip792/claim/1", COOPERATIVE, {"t": 2}, *group[:1], member("B", "t")) == ""


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "protocol"), [("sticky", EAGER), ("cooperative-sticky", COOPERATIVE)])
def test_sarama_gives_a_partition_back_to_a_member_that_unsubscribed(
    go: Path, name: str, protocol: RebalanceProtocol
):
    group = member("A", "t", "u-0", 5), member("B", "t u"), member("C", "t u", "t-0 u-0", 6)
    summary = breaks([str(go / "sarama"), name], "assign/2", protocol, {"t": 1, "u": 1}, *group)
    assert summary == "u-0 is assigned to A, which does not subscribe to u"


@pytest.mark.nightly
def test_sarama_does_not_read_empty_user_data(go: Path):
    """kafka-python's and aiokafka's sticky members write it when they join for the first time."""
    with Session(resolve(None, [str(go / "sarama"), "sticky"])) as session:
        reply = session.assign(EAGER, Cluster.of({"t": 1}), {"A": Subscription(topics=("t",), user_data=b"")})
        assert isinstance(reply, Failure)
        assert "insufficient data" in reply.message
        assert ask(session, {"t": 1}, {"A": Subscription(topics=("t",), user_data=None)}) == {"A": "t-0"}


@pytest.mark.nightly
def test_franz_go_withholds_what_it_gives_back(go: Path):
    command = [str(go / "franz-go"), "cooperative-sticky"]
    owner = member("A", "u", "u-0 u-1", 5)
    stale, none = member("B", "t u", "u-0", 4), member("B", "t u")
    summary = breaks(command, "kip792/claim/2", COOPERATIVE, {"t": 1, "u": 2}, owner, stale)
    assert summary == "superseded claims cost 1 valid ones and withhold 1 more partitions"
    assert breaks(command, "kip54/sticky/1", COOPERATIVE, {"t": 1, "u": 2}, owner, none) == ""
