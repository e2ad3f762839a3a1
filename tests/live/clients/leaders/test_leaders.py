"""A real consumer as the leader of a played group: one without a library, and librdkafka."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.gate.search.search import replay
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.live.clients.leaders.clients import LEADING
from rebalance_verifier.live.clients.leaders.user_data import LearntUserData
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.model.written import FORMATS
from rebalance_verifier.properties.assignors.calls import Answer, AssignQuestion, Failure, Reply
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

COOPERATIVE = RebalanceProtocol.COOPERATIVE
CONSUMER = Path(__file__).with_name("consumer.py")


def started(habit: str) -> Session:
    command = (sys.executable, str(CONSUMER), "{address}", habit)
    return Session(resolve("wire", command), call_seconds=5.0)


def leading(command: Sequence[str], **more: object) -> tuple[str, ...]:
    settings: dict[str, object] = {"command": command, "environment": {}, "promises": {}, "hello": {}}
    settings |= {"steady": True, "pinned": False, "at_once": 1, "anew": False}
    settings |= {"forks": [], "hosts": [], "remembers": False} | more
    return (sys.executable, "-P", "-m", "rebalance_verifier.live.clients.leaders", json.dumps(settings))


def asked(session: Session, counts: dict[str, int], *members: str) -> Reply:
    group = {name: Subscription(topics=tuple(counts)) for name in members}
    return session.assign(COOPERATIVE, Cluster.of(counts), group)


def given(reply: Reply, member: str = "A") -> str:
    assert isinstance(reply, Answer), reply
    return " ".join(map(str, reply.assignment[member]))


# --- how a target is named -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("client::sticky", "names no client"),
        ("client:nothing:sticky", "no client is called 'nothing'"),
        ("client:aiokafka:cooperative-sticky", "no assignor of aiokafka is called 'cooperative-sticky'"),
        ("wire -- ./my-consumer", "does not say where the address of the broker goes"),
    ],
)
def test_what_names_no_client_says_so(spec: str, complaint: str):
    with pytest.raises(TargetError, match=complaint):
        resolve(spec)


def test_a_program_is_named_by_one_string_too():
    target = resolve("wire", ("./my consumer", "{address}"))
    assert target.spec == "wire -- './my consumer' '{address}'"
    assert resolve(target.spec) == target


def test_what_a_client_writes_is_read_as_it_was_saved():
    owned = (TopicPartition("t", 0), TopicPartition("t", 2))
    for first in (None, b"", b"\x01"):
        for form in (None, *FORMATS):
            learnt = LearntUserData(assignor="mine", first=first, format=form, keeps=True)
            assert LearntUserData.from_text(learnt.to_text()) == learnt
    sticky = LearntUserData(assignor="sticky", first=b"", format=wire.encode_sticky_user_data, keeps=False)
    assert sticky.written(pytest.fail, (), -1) == b""
    assert sticky.written(pytest.fail, owned, 4) == wire.encode_sticky_user_data(owned, 4)


class JoinsOnceMore:
    """A client that finds other metadata each time, so that the group is a generation further."""

    first = Subscription(topics=("t",), user_data=None)
    assignor, short, generation = "sticky", False, 0

    def rejoined(self, topics, member: str, generation: int) -> tuple[Subscription, bytes]:
        self.generation = generation + 1
        owned = tuple(TopicPartition("t", index) for index in range(len(topics["t"])))
        return Subscription(
            topics=("t",), user_data=wire.encode_sticky_user_data(owned, self.generation)
        ), b""


def test_a_format_is_learnt_from_a_client_that_joins_once_more():
    learnt = LearntUserData.of(JoinsOnceMore(), "t")  # type: ignore[arg-type]
    assert learnt.format is wire.encode_sticky_user_data


# --- a program that nobody knows -------------------------------------------------------------------------


@pytest.mark.slow
def test_any_program_is_a_target():
    """What it is is seen: it joins with what it owns, and with the user data of the sticky assignor."""
    with started("fetches") as session:
        assert session.hello.name == "mine"
        assert session.hello.protocols == (COOPERATIVE,)
        assert session.hello.user_data
        assert session.user_data((), -1) == b""
        owned = (TopicPartition("t", 0), TopicPartition("t", 3))
        assert session.user_data(owned, 7) == wire.encode_sticky_user_data(owned, 7)
        # Each question has topics of its own: the same name with more partitions, with none, and not at all.
        assert given(asked(session, {"t": 2}, "A", "B")) == "t-0 t-1"
        assert given(asked(session, {"t": 3}, "A")) == "t-0 t-1 t-2"
        assert given(asked(session, {"t": 0}, "A")) == ""
        assert given(asked(session, {"u": 1}, "A")) == "u-0"
        assert session.starts == 1


@pytest.mark.slow
def test_a_client_that_ends_is_the_verdict_and_the_next_question_is_answered():
    with started("crashes") as session:
        for _ in range(3):
            reply = asked(session, {"t": 1}, "A", "B")
            assert isinstance(reply, Failure)
            assert reply.kind is FailureKind.CRASH
            assert reply.message == "the client was ended by SIGSEGV before its SyncGroup"
            assert given(asked(session, {"t": 2}, "A", "C")) == "t-0 t-1"
        assert session.starts == 1


@pytest.mark.slow
def test_clients_answer_side_by_side_also_where_one_ends():
    """Each reply is that of its own question, and the process of the target goes on."""
    command = (sys.executable, str(CONSUMER), "{address}", "crashes")
    argv = leading(command, at_once=2)
    subscription = Subscription(topics=("t",))
    plain = [AssignQuestion(COOPERATIVE, Cluster.of({"t": n}), {"A": subscription}) for n in range(1, 7)]
    deadly = AssignQuestion(COOPERATIVE, Cluster.of({"t": 1}), dict.fromkeys("AB", subscription))
    with Session(resolve(None, argv), call_seconds=20.0) as session:
        assert session.hello.histories > 1
        questions = [*plain[:2], deadly, *plain[2:4], deadly, *plain[4:]]
        replies = session.answers(list(enumerate(questions, 1)))
        for question, reply in zip(questions, replies, strict=True):
            if question is deadly:
                assert isinstance(reply, Failure)
                assert reply.kind is FailureKind.CRASH, reply
            else:
                assert isinstance(reply, Answer)
                assert given(reply) == " ".join(map(str, question.cluster.partitions()))
        assert session.starts == 1


@pytest.mark.slow
@pytest.mark.parametrize("remembers", [False, True])
def test_one_that_keeps_what_metadata_has_no_more_plays_each_history_without_that_of_others(remembers: bool):
    """A topic that loses partitions within a history is its own doing, also where it is asked anew."""
    argv = leading((sys.executable, str(CONSUMER), "{address}", "keeps"), remembers=remembers)
    with Session(resolve(None, argv), call_seconds=20.0) as session:
        session.history = 1
        assert given(asked(session, {"t": 3}, "A")) == "t-0 t-1 t-2"
        assert given(asked(session, {"t": 1}, "A")) == "t-0 t-1 t-2"
        session.history = 2
        assert given(asked(session, {"t": 1}, "A")) == ("t-0" if remembers else "t-0 t-1 t-2")
        session.history = 3
        assert given(asked(session, {"t": 2}, "A")) == ("t-0 t-1" if remembers else "t-0 t-1 t-2")
        assert session.starts == 1


@pytest.mark.slow
def test_a_subscription_that_ends_early_is_a_verdict_that_names_the_bug():
    """Not a target that does not start: each of its members writes what a leader may not read."""
    scenario = Scenario(
        protocol=RebalanceProtocol.EAGER,
        topics=uniform({"t": 1}),
        members=(ScenarioMember(id="A", topics=("t",)),),
        rounds=((),),
    )
    with started("short") as session:
        found = replay(session, scenario, CLAUSES["assign/4"]).breach_of("assign/4")
    assert found
    assert "its JoinGroup for 'mine' has a subscription that cannot be read: it says version 1" in (
        found.breach.summary
    )
    assert "rebalance bugs Q1" in found.breach.summary


@pytest.mark.slow
def test_a_client_that_subscribes_to_all_topics_knows_those_of_the_question_alone():
    """Its first topic is that of the question, where that of others' own would come first."""
    with started("all") as session:
        assert given(asked(session, {"t": 2}, "A")) == "t-0 t-1"
        assert given(asked(session, {"u": 1, "v": 1}, "A")) == "u-0 v-0"


@pytest.mark.slow
def test_an_answer_from_old_metadata_is_no_answer():
    with pytest.raises(TargetError, match="the leader did not fetch metadata of topic-of-the-leader"):
        started("remembers").__enter__()


@pytest.mark.slow
def test_a_leader_that_joins_again_is_asked_once_more_and_then_has_no_answer():
    with started("again") as session:
        reply = asked(session, {"t": 2}, "A", "B")
        assert isinstance(reply, Failure)
        assert (reply.kind, reply.message) == (
            FailureKind.ERRORED,
            "the leader joins again and assigns nothing",
        )
        # Where a topic is not there it may be that, and nobody knows what its assignor would do.
        group = {"A": Subscription(topics=("gone",)), "B": Subscription(topics=("t",))}
        declined = session.assign(COOPERATIVE, Cluster.of({"t": 1}), group)
        assert isinstance(declined, Failure)
        assert declined.kind is FailureKind.SKIPPED
        assert given(asked(session, {"t": 2}, "A")) == "t-0 t-1"


# --- librdkafka ------------------------------------------------------------------------------------------

needs_librdkafka = pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="needs confluent-kafka"
)


def test_librdkafka_is_asked_once_where_it_takes_long_to_join_again():
    assert [
        LEADING["confluent-kafka"].is_slow(release) for release in ("2.0.2", "2.9.0", "2.10.0", "main")
    ] == [
        True,
        True,
        False,
        False,
    ]
    assert not LEADING["kafka-python"].is_slow("2.0.2")


@needs_librdkafka
@pytest.mark.slow
def test_a_client_that_is_asked_once_answers_as_one_that_joins_again():
    target = resolve("client:confluent-kafka:cooperative-sticky")
    settings = json.loads(target.command[-1])
    assert settings["anew"] is False
    once = replace(target, command=(*target.command[:-1], json.dumps({**settings, "anew": True})))
    for one in (target, once):
        with Session(one) as session:
            assert given(asked(session, {"t": 2}, "A")) == "t-0 t-1"
            assert given(asked(session, {"t": 3}, "A")) == "t-0 t-1 t-2"


@needs_librdkafka
@pytest.mark.slow
def test_librdkafka_knows_the_racks_that_metadata_says():
    group = {
        name: Subscription(
            topics=("t",),
            rack_id=rack,
        )
        for name, rack in (("A", "r2"), ("B", "r1"))
    }
    cluster = Cluster({"t": (("r1",), ("r2",), ("r1",), ("r2",))})
    with Session(resolve("client:confluent-kafka:range")) as session:
        reply = session.assign(RebalanceProtocol.EAGER, cluster, group)
        assert (given(reply, "A"), given(reply, "B")) == ("t-1 t-3", "t-0 t-2")


def test_every_client_has_promises_for_what_it_has():
    from rebalance_verifier.live.clients.leaders.clients import promised

    for client in LEADING.values():
        for assignor in client.assignors:
            assert promised(client.name, assignor), (client.name, assignor)
    assert promised("kafka-clients", "range") == sorted(
        [Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED, Promise.RACK_AWARE]
    )
