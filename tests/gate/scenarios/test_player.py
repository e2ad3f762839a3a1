"""Playing scenarios: who claims what in each round, when it stops, and what the contract is good for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.generator import BY_NAME, generate
from rebalance_verifier.gate.scenarios.player import (
    MAX_ROUNDS,
    ROUNDS_IN_CIRCLES,
    PlayedHistory,
    history,
    play,
)
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import (
    NO_GENERATION,
    OF_TASKS,
    Cluster,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Ask,
    AssignorCall,
    AssignQuestion,
    Failure,
    Question,
    Reply,
    Writer,
    WriteUserData,
    Written,
    answered,
)
from rebalance_verifier.properties.assignors.clause import Breach, Clause, History, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.properties.assignors.played import calls_of, of_partitions
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioEvent,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    uniform,
)

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
SILENT, GHOST = FaultKind.SILENT, FaultKind.GHOST
LOST_JOIN, MISSED_SYNC = FaultKind.LOST_JOIN, FaultKind.MISSED_SYNC


def tps(text: str) -> Partitions:
    split = [name.rpartition("-") for name in text.split()]
    return tuple(TopicPartition(topic, int(index)) for topic, _, index in split)


def text(partitions: Partitions) -> str:
    return " ".join(map(str, partitions))


def each(write: Callable[[Partitions, int], bytes | Failure | None]) -> WriteUserData:
    """The userData of several members by a function for one."""
    return lambda questions: [write(question.owned, question.generation) for question in questions]


COOPERATIVE_WRITER = Writer.of(each(lambda owned, generation: wire.encode_cooperative_user_data(generation)))
STICKY_WRITER = Writer.of(each(wire.encode_sticky_user_data))
OWN_FORMAT = Writer.of(each(lambda owned, generation: f"{text(owned)}@{generation}".encode()))


def script(*answers: Mapping[str, str]) -> Ask:
    """Answers the n-th question with the n-th answer, and from then on with the last one."""
    calls = iter(range(10**6))

    def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        answer = answers[min(next(calls), len(answers) - 1)]
        return Answer({m: tps(owned) for m, owned in answer.items() if m in group})

    return ask


def calls(
    members: Sequence[ScenarioMember],
    rounds: Sequence[Sequence[ScenarioEvent]],
    *answers: Mapping[str, str],
    writer: Writer | None = COOPERATIVE_WRITER,
    protocol: RebalanceProtocol = COOPERATIVE,
    topics: Mapping[str, int] | None = None,
) -> tuple[AssignorCall, ...]:
    """The calls of the disturbed rounds and of the first one after them."""
    cluster = uniform({"t": 4} if topics is None else topics)
    scenario = Scenario(
        protocol=protocol, topics=cluster, members=tuple(members), rounds=tuple(map(tuple, rounds))
    )
    return calls_of(play(scenario, script(*answers), writer, (), ()).calls)[: len(rounds) + 1]


def claims(call: AssignorCall) -> dict[str, tuple[str, int]]:
    return {m: (text(c.partitions), c.generation) for m, c in call.claims.items()}


def sent(call: AssignorCall) -> dict[str, tuple[str, int]]:
    return {m: (text(s.owned_partitions), s.generation_id) for m, s in call.group.items()}


def member(name: str, owned: str = "", generation: int = NO_GENERATION, **more: object) -> ScenarioMember:
    return ScenarioMember(id=name, topics=("t",), owned=tps(owned), generation=generation, **more)  # type: ignore[arg-type]


# --- who claims what ------------------------------------------------------------------------------


def test_without_faults_everybody_claims_what_it_was_last_assigned():
    first, second, third = calls(
        [member("A"), member("B", "t-1", 5)],
        [[], []],
        {"A": "t-2 t-0", "B": "t-1"},
        {"A": "t-0", "B": "t-1 t-3"},
    )
    assert claims(first) == sent(first) == {"A": ("", -1), "B": ("t-1", 5)}
    assert claims(second) == sent(second) == {"A": ("t-0 t-2", 6), "B": ("t-1", 6)}, (
        "generations go on from 5"
    )
    assert claims(third) == {"A": ("t-0", 7), "B": ("t-1 t-3", 7)}


def test_a_partition_assigned_twice_is_owned_once():
    _, second = calls([member("A")], [[]], {"A": "t-0 t-0"})
    assert claims(second) == {"A": ("t-0", 1)}


def test_a_member_that_the_answer_leaves_out_was_assigned_nothing():
    _, second = calls([member("A", "t-0", 5)], [[]], {})
    assert claims(second) == {"A": ("", 6)}


def test_missed_sync_keeps_the_set_under_the_new_label():
    """The label is the generation of the last JoinGroup answered, not of the assignment (1.2)."""
    _, second, third = calls(
        [member("A", "t-0", 5), member("B", "t-1", 5, version=1)],
        [[Fault(MISSED_SYNC, "A"), Fault(MISSED_SYNC, "B")], []],
        {"A": "t-2", "B": "t-3"},
    )
    assert claims(second) == {"A": ("t-0", 6), "B": ("t-1", 5)}, "userData says what the label does not"
    assert wire.decode_cooperative_user_data(second.group["A"].user_data) == 5
    assert claims(third) == {"A": ("t-2", 7), "B": ("t-3", 7)}, "a fault lasts for one round"


def test_lost_join_keeps_set_and_label():
    first, second, third = calls(
        [member("A", "t-0", 5), member("B", "t-1", 5)],
        [[Fault(LOST_JOIN, "A")], []],
        {"A": "t-2", "B": "t-1"},
    )
    assert "A" in first.group, "its JoinGroup request did arrive"
    assert claims(second) == {"A": ("t-0", 5), "B": ("t-1", 6)}
    assert claims(third) == {"A": ("t-2", 7), "B": ("t-1", 7)}


def test_a_silent_dynamic_member_is_removed_and_comes_back_with_nothing():
    first, second = calls(
        [member("A", "t-0", 5), member("B")], [[Fault(SILENT, "A")]], {"A": "t-0", "B": "t-0"}
    )
    assert list(first.group) == ["B"]
    assert list(second.group) == ["A", "B"]
    assert claims(second)["A"][0] == ""
    assert sent(second) == {"A": ("", NO_GENERATION), "B": ("t-0", 6)}


def test_a_ghost_comes_back_with_everything():
    first, second = calls([member("A", "t-0", 5), member("B")], [[Fault(GHOST, "A")]], {"B": "t-0"})
    assert list(first.group) == ["B"]
    assert claims(second) == {"A": ("t-0", 5), "B": ("t-0", 6)}


def test_a_silent_static_member_is_represented_by_what_it_last_presented():
    """One assignment older than what it holds: what it gained since looks free (2.2 a)."""
    first, second, third = calls(
        [member("A", "t-0", 5, instance="i"), member("B")],
        [[], [Fault(SILENT, "A")]],
        {"A": "t-0 t-1", "B": "t-2"},
        {"A": "t-3", "B": "t-2"},
    )
    assert claims(second)["A"] == claims(first)["A"] == ("t-0", 5)
    assert second.group["A"] == first.group["A"]
    assert claims(third)["A"] == ("t-0 t-1", 6), "it never learnt of the assignment of round 2"


def test_a_static_member_that_never_joined_is_not_represented():
    first, second = calls(
        [member("A", "t-0", 5, instance="i"), member("B")], [[Fault(SILENT, "A")]], {"A": "t-0", "B": "t-1"}
    )
    assert list(first.group) == ["B"]
    assert claims(second)["A"] == ("t-0", 5)


def test_versions_say_more_and_more():
    topics = uniform({"t": 4})
    everybody = tuple(
        ScenarioMember(
            id=f"V{v}",
            topics=("t",),
            owned=tps(f"t-{v}"),
            generation=5,
            version=v,
            rack="r1",
            instance=f"i-{v}",
            user_data=UserData.NONE,
        )
        for v in range(4)
    )
    scenario = Scenario(protocol=COOPERATIVE, topics=topics, members=everybody)
    [call] = calls_of(play(scenario, script({}), None, (), ()).calls)[:1]
    assert sent(call) == {"V0": ("", -1), "V1": ("t-1", -1), "V2": ("t-2", 5), "V3": ("t-3", 5)}
    assert claims(call) == sent(call)
    assert [s.rack_id for s in call.group.values()] == [None, None, None, "r1"]
    assert [s.version for s in call.group.values()] == [0, 1, 2, 3]
    assert [s.group_instance_id for s in call.group.values()] == ["i-0", "i-1", "i-2", "i-3"]


def test_what_a_negative_generation_says_is_nothing():
    first, _ = calls([member("A", "t-0", -7), member("B", "t-0", -1, version=1)], [[]], {})
    assert claims(first) == {"A": ("t-0", -1), "B": ("t-0", -1)}
    assert first.holders == {TopicPartition("t", 0): ("A", "B")}


def test_eager_members_claim_nothing_in_a_cooperative_group():
    first, second = calls(
        [member("A", "t-0", 5, eager=True), member("B", "t-1", 5)],
        [[Fault(MISSED_SYNC, "A")]],
        {"A": "t-0", "B": "t-1"},
    )
    assert claims(first)["A"] == ("", 5)
    assert claims(second)["A"] == ("", 6)


def test_user_data_in_a_cooperative_group():
    kinds = [member(kind.value, "t-0 t-1", 5, version=1, user_data=kind) for kind in UserData]
    first, second = calls(kinds, [[]], {kind.value: f"t-{i}" for i, kind in enumerate(UserData)})
    assert {m: s.user_data for m, s in first.group.items()} == {
        "own": wire.encode_cooperative_user_data(5),
        "none": None,
        "empty": b"",
        "sticky-v0": wire.encode_sticky_user_data(tps("t-0 t-1"), None),
        "sticky-v1": wire.encode_sticky_user_data(tps("t-0 t-1"), 5),
        "truncated": wire.encode_sticky_user_data(tps("t-0 t-1"), 5)[:11],
    }
    # The claims are in owned_partitions, whatever userData says; four bytes are a generation (2.8.1 on).
    assert claims(second) == {
        "own": ("t-0", 6),
        "none": ("t-1", -1),
        "empty": ("t-2", -1),
        "sticky-v0": ("t-3", -1),
        "sticky-v1": ("t-4", -1),
        "truncated": ("t-5", -1),
    }
    assert second.group["sticky-v1"].user_data == wire.encode_sticky_user_data(tps("t-4"), 6)


def test_user_data_in_an_eager_group_is_where_the_claims_are():
    kinds = [member(kind.value, "t-0", 5, user_data=kind) for kind in UserData]
    rounds: list[list[ScenarioEvent]] = [
        [Fault(MISSED_SYNC, "own"), Fault(SILENT, "sticky-v1")],
        [Subscribe("own", ("u",))],
    ]
    answer = {"own": "t-1", "none": "t-1", "sticky-v0": "t-2", "sticky-v1": "t-3"}
    first, second, third = calls(kinds, rounds, answer, writer=STICKY_WRITER, protocol=EAGER)
    nothing = dict.fromkeys(("none", "empty", "truncated"), ("", -1))
    assert claims(first) == {"own": ("t-0", 5), **nothing, "sticky-v0": ("t-0", -1)}
    assert all(not s.owned_partitions for call in (first, second) for s in call.group.values())
    assert claims(second) == {
        **nothing,
        "own": ("t-0", 5),  # and nothing was trimmed for the new subscription
        "sticky-v0": ("t-2", -1),
        "sticky-v1": ("t-0", 5),  # never cleared, although it lost everything
    }
    assert claims(third)["own"] == ("t-1", 7)
    for member_id, (owned, generation) in claims(third).items():
        data = third.group[member_id].user_data
        if member_id not in nothing:
            assert data is not None
            assert wire.decode_sticky_user_data(data) == (tps(owned), generation)


def test_an_eager_group_without_telling_user_data_claims_nothing():
    for writer in (None, COOPERATIVE_WRITER):
        for call in calls([member("A", "t-0", 5)], [[]], {"A": "t-0"}, writer=writer, protocol=EAGER):
            assert claims(call) == {"A": ("", -1)}


def test_a_format_of_its_own_is_not_mixed_with_others():
    kinds = [member(kind.value, "t-0", 5, user_data=kind) for kind in UserData]
    first, _ = calls(kinds, [[]], {}, writer=OWN_FORMAT, protocol=EAGER)
    own = b"t-0@5"
    cut = wire.encode_sticky_user_data(tps("t-0"), 5)[:9]
    assert [s.user_data for s in first.group.values()] == [own, None, b"", own, own, cut]
    assert claims(first) == {
        **dict.fromkeys(("none", "empty", "truncated"), ("", -1)),
        **dict.fromkeys(("own", "sticky-v0", "sticky-v1"), ("t-0", 5)),
    }


def test_writer_finds_out_by_asking():
    assert (COOPERATIVE_WRITER.tells_claims, COOPERATIVE_WRITER.sticky_too) == (False, True)
    assert (STICKY_WRITER.tells_claims, STICKY_WRITER.sticky_too) == (True, True)
    assert (OWN_FORMAT.tells_claims, OWN_FORMAT.sticky_too) == (True, False)
    silent = Writer.of(each(lambda owned, generation: None))
    assert (silent.tells_claims, silent.sticky_too) == (False, True)
    broken = Writer.of(each(lambda owned, generation: Failure(FailureKind.ERRORED, "no")))
    assert not broken.sticky_too


# --- events ---------------------------------------------------------------------------------------


def test_members_join_and_leave():
    first, second, third = calls(
        [member("A")],
        [
            [],
            [AddMember(member("B", "t-1", 9)), AddMember(member("A", "t-3", 2))],
            [Leave("A"), Leave("nobody")],
        ],
        {"A": "t-0", "B": "t-1"},
    )[:3]
    assert list(first.group) == ["A"]
    assert claims(second) == {"A": ("t-0", 1), "B": ("t-1", 9)}, "who is there does not join again"
    assert claims(third) == {"B": ("t-1", 10)}, "generations never go back"


def test_one_that_left_may_join_again_as_new():
    _, _, third = calls(
        [member("A", "t-0", 5), member("B")], [[], [Leave("A")], [AddMember(member("A"))]], {"A": "t-0"}
    )[:3]
    assert list(third.group) == ["B", "A"]
    assert claims(third)["A"] == ("", -1)


def test_a_changed_subscription_revokes_before_joining():
    wide = ScenarioMember(id="A", topics=("t", "u"), owned=tps("t-0 u-0"), generation=5)
    lazy = ScenarioMember(id="B", topics=("t", "u"), owned=tps("t-1 u-1"), generation=5)
    first, second = calls(
        [wide, lazy],
        [[Subscribe("A", ("u",)), Subscribe("nobody", ("t",)), Fault(LOST_JOIN, "A")]],
        {"A": "u-0", "B": "t-1"},
        topics={"t": 2, "u": 2},
    )
    assert first.group["A"].topics == ("u",)
    assert claims(first) == {"A": ("u-0", 5), "B": ("t-1 u-1", 5)}
    assert claims(second)["A"] == ("u-0", 5)


def test_topics_come_go_and_change():
    rounds = [
        [SetTopic("v", ((),) * 2)],
        [SetTopic("t", None)],
        [SetTopic("t", (("r",),)), SetTopic("nobody", None)],
    ]
    first, second, third, last = calls([member("A", "t-3", 5)], rounds, {"A": "t-3"}, topics={"t": 4, "u": 1})
    assert [list(c.cluster.topics) for c in (first, second, third)] == [
        ["t", "u", "v"],
        ["u", "v"],
        ["u", "v", "t"],
    ]
    assert claims(second)["A"] == ("t-3", 6), "deleted topics are not dropped by the member (1.3)"
    assert third.cluster.topics["t"] == (("r",),)
    assert last.cluster == third.cluster
    assert first.cluster.partition_count("t") == 4, "each call has its own"


def test_faults_of_strangers_do_nothing():
    assert len(calls([member("A")], [[Fault(SILENT, "B")]], {"A": "t-0"})) == 2


# --- how it ends ----------------------------------------------------------------------------------


def histories_of(
    record_of: Callable[[Sequence[Clause]], PlayedHistory],
) -> tuple[PlayedHistory, list[History]]:
    seen: list[History] = []

    def look(history: History) -> Breach | None:
        seen.append(history)
        return None

    clause = Clause(
        id="look/1", level=Level.QUALITY, scope=Scope.HISTORY, sentence="", rule="", link="", check=look
    )
    return record_of((clause,)), seen


def settle(
    *answers: Mapping[str, str], rounds: int = 1, protocol: RebalanceProtocol = COOPERATIVE
) -> tuple[PlayedHistory, list[History]]:
    scenario = Scenario(
        protocol=protocol,
        topics=uniform({"t": 2}),
        members=(member("A", "t-0 t-1", 5), member("B")),
        rounds=((),) * rounds,
    )
    return histories_of(lambda clauses: play(scenario, script(*answers), COOPERATIVE_WRITER, clauses, ()))


def test_settles_at_once():
    record, [history] = settle({"A": "t-0 t-1", "B": ""})
    assert (history.settling, history.settled) == (0, 0)
    assert len(record.calls) == len(history.calls) == 3, "that of the scenario, one more, one to confirm it"
    assert "follow-up rebalance" not in record.witnesses


@pytest.mark.parametrize(
    ("rounds", "settling"),
    [
        (((),), 0),
        (((), ()), 0),
        (((), (Leave("C"),)), 1),
        (((AddMember(member("C")),), (), ()), 0),
        (((Fault(MISSED_SYNC, "B"),),), 1),
        (((), (Leave("C"), Fault(SILENT, "B")), ()), 2),
    ],
)
def test_rounds_count_from_the_first_in_which_nothing_goes_wrong(rounds, settling):
    """An event comes before its rebalance, a fault is in it."""
    scenario = replace(GROUP, rounds=rounds)
    record, [history] = histories_of(lambda clauses: play(scenario, script(FAIR), None, clauses, ()))
    assert history.settling == history.settled == settling
    assert len(record.calls) == len(rounds) + 2


def test_settles_after_a_revocation():
    record, [history] = settle({"A": "t-0", "B": ""}, {"A": "t-0", "B": "t-1"}, rounds=0)
    assert (history.settling, history.settled) == (0, 1)
    assert len(record.calls) == 3
    assert "follow-up rebalance" in record.witnesses


def test_never_settles():
    swaps = [{"A": f"t-{i % 2}", "B": f"t-{1 - i % 2}"} for i in range(20)]
    record, [history] = settle(*swaps, rounds=2)
    assert (history.settling, history.settled) == (0, None)
    assert len(record.calls) == 2 + ROUNDS_IN_CIRCLES, "it is where it was"


def test_a_group_that_goes_in_no_small_circle_has_more_rounds():
    """Who owns what counts up to 31 in binary, so no state comes twice."""
    topics, everyone = uniform({"t": 5}), (member("A", "t-0 t-1 t-2 t-3 t-4", 5), member("B"))
    scenario = Scenario(protocol=COOPERATIVE, topics=topics, members=everyone, rounds=((),))

    def counting(number: int) -> dict[str, str]:
        owners = ["BA"[number >> bit & 1] for bit in range(5)]
        return {m: " ".join(f"t-{bit}" for bit in range(5) if owners[bit] == m) for m in "AB"}

    answers = script(*map(counting, range(1, 31)))
    record, [history] = histories_of(lambda clauses: play(scenario, answers, COOPERATIVE_WRITER, clauses, ()))
    assert (history.settling, history.settled) == (0, None)
    assert len(record.calls) == 1 + MAX_ROUNDS


def test_an_eager_group_needs_no_second_round():
    record, [history] = settle({"A": "t-0", "B": "t-1"}, {"A": "t-1", "B": "t-0"}, rounds=1, protocol=EAGER)
    assert (history.settling, history.settled) == (0, 0)
    assert len(record.calls) == 3


def test_nobody_there_is_no_rebalance():
    empty = Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=())
    record, seen = histories_of(lambda clauses: play(empty, script({}), None, clauses, ()))
    assert (record.calls, record.found, seen, record.questions) == ((), (), [], 0)
    alone = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 1}),
        members=(member("A"),),
        rounds=((Fault(SILENT, "A"),), (), (Leave("A"),)),
    )
    record, seen = histories_of(lambda clauses: play(alone, script({"A": "t-0"}), None, clauses, ()))
    assert len(record.calls) == 1
    assert not seen, "nobody was left to settle"


# --- judging --------------------------------------------------------------------------------------


GROUP = Scenario(
    protocol=COOPERATIVE, topics=uniform({"t": 2}), members=(member("A"), member("B")), rounds=((), ())
)
FAIR = {"A": "t-0", "B": "t-1"}


def failing_at(number: int, failure: Failure) -> Ask:
    good, count = script(FAIR), iter(range(1, 1000))
    return lambda *question: failure if next(count) == number else good(*question)


def test_a_failure_ends_the_history_with_assign_4_only():
    failure = Failure(FailureKind.CRASH, "exit code 1")
    # Each disturbed call is followed by the further question of assign/7, the last by that of assign/6.
    for number, complete in ((1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3)):
        record = play(GROUP, failing_at(number, failure), COOPERATIVE_WRITER, TABLE, Promise)
        assert [f.clause.id for f in record.found] == ["assign/4"], number
        assert len(record.calls) == complete, number
        assert record.questions == number
        assert record.failure == failure
        assert record.skipped is None
        assert "no answer: crash" in record.witnesses


def test_a_skip_judges_nothing():
    double = {"A": "t-0 t-1", "B": "t-1"}
    calls = iter(range(100))

    def ask(*question: object) -> Reply:
        if next(calls) == 1:
            return Failure(FailureKind.SKIPPED, "no racks, please")
        return script(double)(*question)  # type: ignore[arg-type]

    record = play(GROUP, ask, None, TABLE, Promise)
    assert record.skipped == "no racks, please"
    assert record.found == ()
    assert not record.witnesses
    assert record.claims == 0
    assert record.questions == 2


def test_a_failing_user_data_is_a_failure_to_answer():
    def write(owned: Partitions, generation: int) -> bytes | Failure:
        return Failure(FailureKind.ERRORED, "RuntimeError: second call") if generation > 0 and owned else b""

    record = play(
        GROUP,
        script(FAIR),
        Writer(write=each(write), tells_claims=True, tells_generation=False, sticky_too=False),
        TABLE,
        (),
    )
    assert [f.clause.id for f in record.found] == ["assign/4"]
    assert len(record.calls) == 1
    assert record.breach_of("assign/4") is not None
    assert record.breach_of("assign/4").round == 2  # type: ignore[union-attr]


def test_one_finding_for_each_clause_the_first():
    answers = ({"A": "t-0", "B": "t-1"}, {"A": "t-0 t-1", "B": "t-1"}, {"A": "t-0", "B": "t-0 t-1"})
    record = play(GROUP, script(*answers), None, [CLAUSES["assign/1"], CLAUSES["assign/2"]], ())
    [found] = record.found
    assert (found.clause.id, found.round) == ("assign/1", 2)
    assert "t-1 is assigned to A and B" in found.breach.summary
    assert record.breach_of("assign/1") is found
    assert record.breach_of("assign/2") is None


def test_only_clauses_that_apply_are_asked():
    lopsided = script({"A": "t-0 t-1", "B": ""})
    balance = [CLAUSES["kip54/balance/1"]]
    assert not play(GROUP, lopsided, None, balance, ()).found
    assert play(GROUP, lopsided, None, balance, (Promise.BALANCED,)).found
    eager = Scenario(protocol=EAGER, topics=GROUP.topics, members=GROUP.members)
    hand_over = script({"A": "t-0 t-1"}, {"B": "t-0 t-1"})
    assert play(GROUP, hand_over, None, [CLAUSES["kip429/leader/4"]], ()).found
    assert not play(eager, hand_over, STICKY_WRITER, [CLAUSES["kip429/leader/4"]], ()).found


def test_further_questions_follow_disturbed_rounds_only_and_go_where_they_belong():
    calls: Counter[str] = Counter()

    def counting(name: str) -> Ask:
        def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
            calls[name] += 1
            return script(FAIR)(protocol, cluster, group)

        return ask

    record = play(GROUP, counting("first"), None, TABLE, Promise, again=counting("second"))
    assert len(record.calls) == 4
    assert calls == {"first": 4 + 2, "second": 1}, "assign/7 asks the first process, assign/6 the second"
    assert record.questions == 7
    calls.clear()
    play(GROUP, counting("first"), None, [CLAUSES["assign/1"]], Promise, again=counting("second"))
    assert calls == {"first": 4}


def test_rounds_of_histories_are_those_that_show_the_breach():
    moving = script(FAIR, {"A": "t-1", "B": ""}, FAIR, {"A": "t-1", "B": "t-0"}, FAIR)
    moves = replace(GROUP, rounds=((), (Leave("C"),)))
    record = play(moves, moving, None, [CLAUSES["kip429/converge/1"]], ())
    [found] = record.found
    assert found.round == len(record.calls) - 1, "the settled one; the last only confirms it"


def test_witnesses():
    topics = {"t": (("r1",), ()), "u": ((),)}
    everybody = (
        ScenarioMember(id="A", topics=("t",), owned=tps("t-0 t-0 u-0 x-0"), generation=5, rack="r1"),
        ScenarioMember(id="B", topics=("t", "gone"), owned=tps("t-0"), generation=4, version=1),
        ScenarioMember(id="C", topics=("t",), owned=tps("t-1"), generation=5),
        ScenarioMember(id="D", topics=("t",), owned=tps("t-1"), generation=5),
        ScenarioMember(id="E", topics=("u",)),
    )
    record = play(Scenario(protocol=COOPERATIVE, topics=topics, members=everybody), script({}), None, (), ())
    assert record.witnesses >= {
        "partition withheld",
        "unequal subscriptions",
        "stale claim",
        "tied claims",
        "claim listed twice",
        "claim to unknown partition",
        "claim to unsubscribed topic",
        "topic without metadata",
        "mixed versions",
        "racks",
        "claims beside none",
    }
    plain = play(GROUP, script(FAIR), None, (), ())
    assert plain.witnesses == set()
    for kind, name in (
        (MISSED_SYNC, "missed-sync with claims"),
        (LOST_JOIN, "lost-join with claims"),
        (GHOST, "ghost with claims"),
        (SILENT, "removed member returns"),
    ):
        faulty = Scenario(
            protocol=COOPERATIVE, topics=GROUP.topics, members=GROUP.members, rounds=((), (Fault(kind, "A"),))
        )
        assert name in play(faulty, script(FAIR), None, (), ()).witnesses


# --- the contract is good for something -----------------------------------------------------------

HONEST = tuple(
    name
    for name in BY_NAME
    # What members arrive with could be anything; a ghost or an old static subscription hides ownership.
    if name not in ("claims", "stale", "duplicated", "repeated", "unsubscribed", "unknown", "generations")
    and name not in ("ghosts", "static", "hostile")
)


def honest_scenario(seed: int) -> Scenario:
    draw = Seeded(f"honest {seed}")
    names = [n for n in HONEST if draw.integer(0, 2) == 0] + ["faults", "membership"]
    return generate(draw, COOPERATIVE, names)


def two_owners(record: PlayedHistory) -> Iterator[str]:
    """Hand-overs that make two owners, by following the members alone: who owned what, who was told what.

    It knows nothing of claims or generations. Members that are removed are no participants; those that
    give up everything before they join (EAGER ones, and those whose version 0 cannot tell) own nothing.
    """
    scenario, answered = of_partitions(record.scenario), iter(calls_of(record.calls))
    members = {m.id: m for m in scenario.members}
    owns: dict[str, set[TopicPartition]] = {m: set() for m in members}
    undisturbed = [()] * len(record.calls)
    for number, events in enumerate([*scenario.rounds, *undisturbed]):
        faults = {}
        for event in events:
            match event:
                case AddMember(joiner) if joiner.id not in members:
                    members[joiner.id], owns[joiner.id] = joiner, set()
                case Leave(who) if who in members:
                    del members[who], owns[who]
                case Subscribe(who, topics) if who in members:
                    owns[who] = {p for p in owns[who] if p.topic in topics}
                case Fault(kind, who) if who in members:
                    faults[who] = kind
                case _:
                    pass
        for who, one in members.items():
            if one.eager or one.version == 0 or faults.get(who) is SILENT:
                owns[who] = set()
        present = [m for m in members if faults.get(m) is not SILENT]
        call = next(answered, None) if present else None
        if call is None:
            continue
        assert list(call.group) == present
        before = {m: set(owns[m]) for m in present}
        for who in present:
            if who not in faults:
                owns[who] = set(call.assignment.get(who, ()))
        for who in present:
            for other in present:
                if who != other:
                    for p in sorted((owns[who] - before[who]) & (before[other] | owns[other])):
                        yield f"round {number + 1}: {who} gets {p} of {other}"


def ask_reference(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
    return Answer(reference("cooperative-sticky").assign(cluster, group))


def test_contract_kept_means_one_owner():
    promises = reference("cooperative-sticky").promises
    moved = late = 0
    for seed in range(120):
        record = play(honest_scenario(seed), ask_reference, COOPERATIVE_WRITER, TABLE, promises)
        assert record.found == (), seed
        assert list(two_owners(record)) == [], seed
        moved += "partition withheld" in record.witnesses
        late += bool({"missed-sync with claims", "lost-join with claims"} & record.witnesses)
    assert moved > 36, "hand-overs did happen"
    assert late > 24, "and members did miss them"


def deal_at_once(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
    """Everybody's partitions in turn, whoever has them now."""
    hands: dict[str, list[TopicPartition]] = {m: [] for m in sorted(group)}
    for topic in sorted(cluster.topics):
        takers = [m for m in hands if topic in group[m].topics]
        for index in range(cluster.partition_count(topic) if takers else 0):
            hands[takers[index % len(takers)]].append(TopicPartition(topic, index))
    return Answer({m: tuple(ps) for m, ps in hands.items()})


def test_contract_broken_means_two_owners():
    """No history has two owners without the clause saying so, and hardly one the other way round: there
    the new owner happened to miss the answer that made it one."""
    clause = CLAUSES["kip429/leader/4"]
    verdicts: Counter[tuple[bool, bool]] = Counter()
    for seed in range(200):
        record = play(honest_scenario(seed), deal_at_once, COOPERATIVE_WRITER, (clause,), ())
        verdicts[bool(record.found), bool(list(two_owners(record)))] += 1
    assert verdicts[False, True] == 0
    assert verdicts[True, False] < 10
    assert verdicts[True, True] > 50
    assert verdicts[False, False] > 20


def test_to_breach_is_the_same_breach_with_fewer_questions():
    fewer = 0
    for clause in (CLAUSES["kip429/leader/4"], CLAUSES["assign/7"], CLAUSES["kip429/converge/1"]):
        for seed in range(25):
            asking = history(honest_scenario(seed), COOPERATIVE_WRITER, (clause,), (), to_breach=True)
            hasty = answered(asking, by_deal_at_once)
            whole = play(honest_scenario(seed), deal_at_once, COOPERATIVE_WRITER, (clause,), ())
            assert hasty.found == whole.found
            assert hasty.calls == whole.calls[: len(hasty.calls)]
            assert bool(hasty.found) or hasty.questions == whole.questions
            fewer += hasty.questions < whole.questions
    assert fewer > 10


def by_deal_at_once(question: Question) -> Reply | Written:
    if isinstance(question, AssignQuestion):
        return deal_at_once(*question[:3])
    return COOPERATIVE_WRITER.write(question)


@pytest.mark.slow
def test_nonsense_is_judged_never_fatal():
    """Answers that are well-typed and nothing else: breaches come out of it, exceptions do not."""
    found: Counter[str] = Counter()
    promises = set(Promise) - {Promise.STOP_THE_WORLD}  # it excuses from two clauses
    for seed in range(150):
        rnd = random.Random(seed)
        draw = Seeded(seed)
        protocol = rnd.choice((EAGER, COOPERATIVE))
        writer = rnd.choice((None, COOPERATIVE_WRITER, STICKY_WRITER, OWN_FORMAT))
        scenario = generate(draw, protocol, [n for n in BY_NAME if draw.integer(0, 2) == 0])

        def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription, rnd=rnd) -> Reply:
            hands = {m: list(ps) for m, ps in reference("cooperative-sticky").assign(cluster, group).items()}
            claimed = [p for s in group.values() for p in s.owned_partitions]
            for _ in range(rnd.choice((0, 0, 0, 1, 3))):
                hand = hands.setdefault(rnd.choice((*group, "nobody", "")), [])
                topic = rnd.choice((*cluster.topics, "gone", ""))
                strange = TopicPartition(topic, rnd.choice((0, 1, 2**31 - 1, -1)))
                rnd.choice((hand.clear, hand.sort, lambda hand=hand, strange=strange: hand.append(strange)))()
                hand += rnd.sample(claimed, min(len(claimed), rnd.randint(0, 2)))
            if rnd.random() < 0.05:
                hands.pop(rnd.choice(sorted(hands)))
            return Answer({m: tuple(ps) for m, ps in hands.items()}, rnd.choice((None, "topics of A")))

        record = play(scenario, ask, writer, TABLE, promises)
        found.update(f.clause.id for f in record.found)
        assert len({f.clause.id for f in record.found}) == len(record.found)
        assert record.failure is None
    own = {*RebalanceProtocol} - {RebalanceProtocol.SHARE, *OF_TASKS}
    asked = [c for c in TABLE if own & {*c.protocols} and (not c.promises or c.promises & promises)]
    unsound = {c.id for c in asked if c.level is not Level.QUALITY} - {"assign/4", "kip792/claim/1"}
    assert set(found) >= unsound  # quality is judged on sound answers only


@pytest.mark.parametrize("name", ["cooperative-sticky", "sticky", "range", "roundrobin"])
def test_no_false_alarm_for_the_references(name: str):
    assignor = reference(name)
    writer = Writer.of(each(assignor.user_data))
    for protocol in assignor.protocols:
        for seed in range(60):
            draw = Seeded(f"{name} {seed}")
            scenario = generate(draw, protocol, [n for n in BY_NAME if draw.integer(0, 3) == 0])
            record = play(
                scenario,
                lambda _, cluster, group: Answer(assignor.assign(cluster, group)),
                writer,
                TABLE,
                assignor.promises,
            )
            assert record.found == (), (protocol, seed)


# --- members that write what a client writes ------------------------------------------------------------


def of(name: str, client: str, topics: tuple[str, ...] = ("t",)) -> ScenarioMember:
    return ScenarioMember(id=name, topics=topics, writes=client)


def test_a_member_writes_what_its_client_writes() -> None:
    """Version, rack, fields and user data are the client's; the claim is what its bytes say."""
    java = of("A", "kafka-clients==4.4.0:cooperative-sticky")
    python = of("B", "kafka-python==3.0.12:cooperative-sticky")
    rdkafka = of("C", "confluent-kafka==2.16.1:cooperative-sticky")
    plan = {"A": "t-0", "B": "t-1", "C": "t-2"}
    first, second = calls([java, python, rdkafka], [(), ()], plan)[:2]
    written = {name: (s.version, s.rack_id, s.generation_id) for name, s in second.group.items()}
    assert written == {"A": (3, None, 1), "B": (1, None, -1), "C": (3, "", 1)}
    assert [s.user_data for s in first.group.values()] == [b"\xff" * 4, b"", b""]
    assert second.group["C"].user_data == wire.encode_sticky_user_data(tps("t-2"), 1)
    assert [(text(claim.partitions), claim.generation) for claim in second.claims.values()] == [
        ("t-0", 1),
        ("t-1", -1),
        ("t-2", 1),
    ]


def test_a_member_of_kafka_python_claims_what_it_lost() -> None:
    """K4: it was removed, and the owner claims the same; one of another client claims nothing."""
    plan = {"A": "t-0 t-1", "B": "t-2 t-3"}
    for client, claimed in (("kafka-python==3.0.12", "t-0 t-1"), ("kafka-clients==4.4.0", "")):
        members = [of(name, f"{client}:cooperative-sticky") for name in "AB"]
        found = calls(members, [(), (Fault(SILENT, "A"),), ()], plan, {"B": "t-0 t-1"}, plan)
        assert text(found[2].claims["A"].partitions) == claimed


def test_a_member_of_kafka_go_ends_its_subscription_early() -> None:
    (first, *_) = calls([of("A", "kafka-go==0.4.51:range")], [()], {"A": "t-0"}, protocol=EAGER)
    data = wire.encode_subscription(first.group["A"])
    assert data == b"\0\1" + wire.encode_subscription(replace(first.group["A"], short=False), 0)[2:]
    with pytest.raises(wire.WireError):
        wire.decode_subscription(data)


def test_lags_change_where_something_happens_and_stay_while_nothing_does():
    """An assignor by lag may move partitions when lags change; left alone, its group has to settle."""
    members = tuple(ScenarioMember(id=one, topics=("t",)) for one in "AB")
    rounds = ((), (AddMember(ScenarioMember(id="C", topics=("t",))),), (), (Leave("A"),))
    group = Scenario(protocol=EAGER, topics=uniform({"t": 3}), members=members, rounds=rounds)
    told: list[int] = []
    leader = reference("sticky")

    def ask(protocol: RebalanceProtocol, cluster: Cluster, subscriptions: GroupSubscription) -> Reply:
        return Answer(leader.assign(cluster, subscriptions))

    clauses = [one for one in TABLE if one.scope in (Scope.REPEAT, Scope.HISTORY)]
    writer = Writer.of(lambda asked: [b""] * len(asked), one_process=False)
    play(group, ask, writer, clauses, leader.promises, at=told.append)
    assert told == sorted(told)
    assert told[:4] == [0, 1, 1, 2]
    assert len(told) > 5  # the same again, and left alone
    assert set(told[4:]) == {2}
