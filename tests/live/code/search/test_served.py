"""The search on Kafka's coordinator in groups with members of the consumer protocol: what can happen, what is
judged, and that what is known is found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize
from rebalance_verifier.explore.random.system import play, replay
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.enabled import BOUNCE, actions, choices, faults_of
from rebalance_verifier.live.code.search.group import SearchMemory
from rebalance_verifier.live.code.search.quiescence import Ending
from rebalance_verifier.live.code.search.run import CodePlaying, asked_clauses, not_asked
from rebalance_verifier.live.code.search.setups import as_released, search_setup
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.group.setup import CONSUMER, Setup
from rebalance_verifier.model.machine import NOBODY, Event
from rebalance_verifier.properties.group.clauses import CLAUSES, rules

from tests.command import Rebalance
from tests.live.code.played import RELEASE, needs_java
from tests.live.code.search.sleeping import sleep_sets_lose_no_end
from tests.traces.published import hold

NOW = CodeReleases(coordinator=RELEASE, consumers=(RELEASE,))
OLD = "2.8.1"
MIXED = CodeReleases(coordinator=RELEASE, consumers=(RELEASE, OLD))
GROUPS = [name for name, one in SCENARIOS.items() if one.protocol.name != "classic" and not one.patterns]


def of(name: str, releases: CodeReleases = NOW, members: int = 2, partitions: int = 2) -> Setup:
    size = ScenarioSize(members=members, partitions=partitions, budget=1 << 30)
    return search_setup(SCENARIOS[name], size, releases)


def events(text: str) -> list[Event]:
    """The events of a run as `rebalance show` writes them, one between semicolons."""
    found = []
    for one in text.split(";"):
        name, _, choice = one.strip().removesuffix(")").partition(" (")
        who, _, action = name.partition(" ")
        of_member = len(who) == 1
        slot = ord(who) - ord("A") if of_member else NOBODY
        found.append(Event(action if of_member else name, slot, choice))
    return found


# -- without a simulation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GROUPS)
def test_every_clause_of_such_a_group_is_asked_or_not_and_every_name_is_known(name: str) -> None:
    setup = of(name)
    clauses = [one for one in asked_clauses(setup) if one in CLAUSES]
    assert {*clauses, *not_asked(setup, clauses)} == set(rules(setup).broken_by)
    assert any(one.startswith("callback/") for one in clauses) is (setup.protocol != CONSUMER)
    named = [(action, who) for action, who, _ in actions(setup)]
    assert len(set(named)) == len(named)
    stages = max(len(consumer.stages) for consumer in setup.consumers)
    assert (BOUNCE in faults_of(setup)) is (stages > 1)


def test_clients_of_the_consumer_protocol_are_as_their_release_is_known() -> None:
    new, old = (
        of("consumer", CodeReleases(coordinator=RELEASE, consumers=(one,))) for one in (RELEASE, "4.0.0")
    )
    decisions = [one.consumers[0].stages[0].decisions for one in (new, old)]
    assert decisions[0] != decisions[1]
    assert as_released(old, NOW, "a run") == new


def test_only_who_speaks_the_consumer_protocol_has_to_be_of_a_release_that_has_it() -> None:
    assert of("migration", MIXED).consumers[1].stages[0].group_protocol == "classic"
    with pytest.raises(ScenarioError, match=r"consumer: a consumer of 2\.8\.1 has no such groups"):
        of("consumer", MIXED)
    with pytest.raises(ScenarioError, match=r"migration: a coordinator of 3\.9\.1 has no such groups"):
        of("migration", CodeReleases(coordinator="3.9.1", consumers=(RELEASE,)))


def test_a_copy_of_what_a_search_remembers_shares_nothing_that_changes() -> None:
    memory = SearchMemory()
    copy = memory.copied()
    for one in fields(SearchMemory):
        value = getattr(memory, one.name)
        assert isinstance(value, frozenset | int) or getattr(copy, one.name) is not value, one.name


@pytest.mark.parametrize("on", ["code:3.9.1", "coordinator:newest,consumer:3.9.1"])
def test_releases_without_such_groups_are_refused_in_a_line(rebalance: Rebalance, on: str) -> None:
    ran = rebalance("explore", "consumer", "--on", on)
    assert (ran.code, ran.out) == (2, "")
    assert "3.9.1 has no such groups" in ran.err
    assert len(ran.err.splitlines()) <= 2


# -- on a simulation ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation([RELEASE], [RELEASE, OLD]) as made:
        yield made


def played(
    simulation: Simulation,
    setup: Setup,
    steps: Iterable[Event],
    releases: CodeReleases = NOW,
    rest: bool = True,
) -> CodePlaying:
    playing = CodePlaying(simulation, setup, releases, keeps=True)
    replay(playing, steps, rest=rest)
    return playing


def broken(playing: CodePlaying) -> dict[str, str]:
    return {one.clause: one.sentence for one in playing.played.breaches}


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_every_group_settles_and_comes_back_where_it_stood(simulation: Simulation, name: str) -> None:
    """Nobody is left behind, and the way back leads to the same choices."""
    setup = of(name)
    setup = replace(setup, faults=tuple(dict.fromkeys((*setup.faults, "crash"))))
    playing = CodePlaying(simulation, setup, NOW)
    playing.begin()
    playing.gather()
    group = playing.group
    assert group.settled()
    turned_away = setup.policy == "disabled" or setup.max_size is not None
    assert all(group.is_up(slot) for slot in setup.slots) is not turned_away
    before, mark, sight = [one.event for one in playing.choices()], group.mark(), group.sight()
    play(playing, [Event("crash", 0), Event("start", 1)])
    assert group.sight() != sight
    group.back(mark)
    assert ([one.event for one in playing.choices()], group.sight()) == (before, sight)
    assert BOUNCE not in {one.event.action for one in choices(group, ())}  # a group at peace is not bounced


GIVEN_TWICE = """
A start; A heartbeat; B start; B heartbeat; B heartbeat arrives; A heartbeat arrives; A answer; A heartbeat;
B answer; B reconcile; B heartbeat; B assign; B disconnect; B heartbeat; B heartbeat arrives; A heartbeat
arrives; A answer; A reconcile; A assign
""".replace("\n", " ")
"""N1: a heartbeat says that its client has nothing of what it was just given."""

FORMING = """
B start; B join; B join request; A start; A heartbeat; B receive (JoinGroup); B join; B join request;
A heartbeat arrives; A answer
""".replace("\n", " ")
"""N24: a consumer that joins while a classic group forms."""

THROWS = """
B start; C start; A start; A heartbeat; A heartbeat arrives; C join; C join request; B join; B join request;
B receive (JoinGroup); B join; B join request; C receive (JoinGroup); C join; C join request;
A session timeout (id 1); C receive (JoinGroup); C sync request; C receive (SyncGroup)
""".replace("\n", " ")
"""N28: a conversion between JoinGroup and SyncGroup."""

LOST_LEAVE = "B start; B heartbeat; B heartbeat arrives; B unsubscribe; failover; B answer; B subscribe"
"""N23: a static member whose leave got lost; its session ends, and the group settles."""

GONE = """
A start; A heartbeat; A heartbeat arrives; A answer; A session timeout (id 1); B start; B join;
B join request; A heartbeat; A heartbeat arrives; A answer
""".replace("\n", " ")
"""N10: the group is gone, or a classic one now."""


AWAY = """
A start; A heartbeat; A heartbeat arrives; A answer; A reconcile; A assign; A acknowledge; A heartbeat;
A heartbeat arrives; A answer; B start; B heartbeat; B heartbeat arrives; A heartbeat; A heartbeat arrives;
A close; A left heartbeat arrives; failover; A rebalance timeout (id 1)
""".replace("\n", " ")
"""N35: a failover sets a rebalance timeout for a static member that is away."""


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "members", "run", "clause", "sentence"),
    [
        ("consumer", 2, GIVEN_TWICE, "group/owner", "is owned by A and by B"),
        ("migration", 2, FORMING, "member/ends", "A ends by UNKNOWN_SERVER_ERROR"),
        ("migration", 3, THROWS, "member/ends", "C ends by org.apache.kafka.common.KafkaException"),
        ("consumer-static", 2, LOST_LEAVE, "epoch/fenced", "B, a member, hears UNRELEASED_INSTANCE_ID: join"),
        ("migration", 2, GONE, "member/ends", "A ends by GROUP_ID_NOT_FOUND"),
        ("consumer-static", 2, AWAY, "epoch/timely", "A is away and has nothing to revoke"),
    ],
    ids=["N1", "N24", "N28", "N23", "N10", "N35"],
)  # fmt: skip
def test_a_known_bug_of_the_newest_release_shows(
    simulation: Simulation, name: str, members: int, run: str, clause: str, sentence: str
) -> None:
    playing = played(simulation, of(name, members=members), events(run))
    assert {one.clause for one in playing.played.breaches} == {clause}
    assert any(sentence in one.sentence for one in playing.played.breaches)
    assert playing.played.ending is Ending.SETTLED
    again = played(simulation, of(name, members=members), events(run))
    assert again.played == playing.played


@needs_java
@pytest.mark.slow
def test_a_classic_group_removes_who_does_not_sync_in_its_own_way(simulation: Simulation) -> None:
    """The timeout of consumer groups is another one."""
    run = """B start; B join; B join request; B receive (JoinGroup); B join; B join request; join phase ends;
    slow member (sync)""".replace("\n   ", "")
    playing = played(simulation, of("migration"), events(run), rest=False)
    assert playing.group.state.coordinator.members == ()
    assert broken(playing) == {}


@needs_java
@pytest.mark.slow
def test_clients_as_specified_say_what_they_have(simulation: Simulation) -> None:
    """The same run, and nothing breaks: N1 is the client's."""
    setup = of("consumer")
    consumers = tuple(
        replace(one, stages=tuple(replace(stage, decisions=frozenset()) for stage in one.stages))
        for one in setup.consumers
    )
    assert broken(played(simulation, replace(setup, consumers=consumers), events(GIVEN_TWICE))) == {}


@needs_java
@pytest.mark.slow
def test_members_are_bounced_up_and_down_again_one_round_after_the_other(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("migration-static"), NOW)
    playing.begin()
    playing.gather()
    group = playing.group
    assert group.state.coordinator.state == "STABLE"
    play(playing, events("A bounce; A start"))
    assert playing.found(Event(BOUNCE, 0)) is None  # before B
    playing.gather()
    assert group.state.coordinator.consumer is not None
    assert [group.is_played(slot) for slot in (0, 1)] == [True, False]
    play(playing, events("B bounce; B start"))
    playing.gather()
    play(playing, events("A bounce; A start"))
    playing.gather()
    play(playing, events("B bounce; B start"))
    assert playing.rest() is Ending.SETTLED
    assert group.state.coordinator.state == "STABLE"
    assert playing.faults_left == 1 << 30  # no fault
    assert broken(playing) == {}


@needs_java
@pytest.mark.slow
def test_classic_members_of_an_old_release_meet_one_of_the_consumer_protocol(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("migration", MIXED), MIXED)
    playing.begin()
    playing.gather()
    known = playing.group.state.coordinator.consumer
    assert known is not None
    assert sorted(one.classic for one in known.members) == [False, True]
    play(playing, events("B late request (commit); B late request arrives"))
    assert playing.group.seen[-1].accepted == playing.group.seen[-1].held != 0
    assert broken(playing) == {}


@needs_java
@pytest.mark.slow
def test_what_leaves_with_a_connection_may_come_behind_what_is_sent_later(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("consumer-connections"), NOW)
    replay(playing, events("A start; A heartbeat; A left behind; A heartbeat; A heartbeat arrives"))
    assert playing.found(Event("left heartbeat arrives", 0)) is not None
    play(playing, events("A left heartbeat arrives; A answer"))
    assert playing.rest() is Ending.SETTLED


@needs_java
@pytest.mark.slow
def test_topics_are_not_made_again_for_their_new_id_is_not_played(simulation: Simulation) -> None:
    playing = CodePlaying(simulation, of("consumer-topics"), NOW)
    playing.begin()
    assert playing.found(Event("topic grows", NOBODY, "t1-1")) is not None
    play(playing, [Event("topic deleted", NOBODY, "t1")])
    assert playing.found(Event("topic grows", NOBODY, "t1-0")) is None


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["consumer", "migration"])
def test_sleep_sets_lose_no_end_of_such_groups(simulation: Simulation, name: str) -> None:
    setup = of(name, partitions=1)
    playing = CodePlaying(simulation, replace(setup, faults=("crash", "disconnect")), NOW)
    sleep_sets_lose_no_end(playing, depth=6)


@needs_java
@pytest.mark.nightly
def test_a_finding_of_such_a_group_is_saved_drawn_and_played_again(
    rebalance: Rebalance, tmp_path: Path
) -> None:
    """N24, without any fault."""
    out = str(tmp_path)
    found = rebalance(
        "explore", "migration", "--on", "code:newest", "--members", "2", "--partitions", "1",
        "--faults", "none", "--walks", "5", "--seed", "3", "--jobs", "1", "--out", out, "--format", "json",
    )  # fmt: skip
    assert found.code == 1, found.err
    document = json.loads(found.out)
    hold("code-search", document)
    [ended] = document["findings"]
    assert (ended["clause"], ended["cause"].split()[:3]) == ("member/ends", ["X", "ends", "by"])
    hold("run", json.loads(Path(ended["path"]).read_text()))
    drawn = rebalance("show", ended["path"])
    assert drawn.code == 0
    assert "joins and hears UNKNOWN_SERVER_ERROR" in drawn.out
    assert rebalance("show", ended["path"], "--format", "svg").out.endswith("</svg>\n")
    assert "say --on" in rebalance("replay", ended["path"]).err
    same = rebalance("replay", ended["path"], "--on", "code:newest", "--out", out)
    assert (same.code, same.out.split()[0]) == (1, "same")
    older = rebalance("replay", ended["path"], "--on", "code:3.9.1", "--out", out)
    assert (older.code, older.out) == (2, "")
    assert "a coordinator of 3.9.1 has no such groups" in older.err
