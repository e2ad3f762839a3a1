"""Rolling upgrades: legal ones are safe in every interleaving, illegal ones are refused or break."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits, Stop
from rebalance_verifier.explore.groups import upgrades
from rebalance_verifier.explore.groups.scenarios import ScenarioError
from rebalance_verifier.explore.groups.upgrade_paths import STREAMS, Path, eager_alone, hops
from rebalance_verifier.explore.groups.upgrades import (
    MAX_MEMBERS,
    JudgedHop,
    UpgradeVerdict,
    cost,
    joined_plan,
    judge,
    searched,
    setup,
)
from rebalance_verifier.model.bugs.profiles import CLIENTS, client
from rebalance_verifier.model.bugs.releases import CURRENT, KAFKA, dotted, kafka
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

LEGAL = [
    ("range", "cooperative-sticky", "double-bounce"),
    ("range", "cooperative-sticky", "double-bounce-new-first"),
    ("cooperative-sticky", "range", "double-bounce"),
    ("sticky", "cooperative-sticky", "double-bounce"),
    ("default", "cooperative-sticky", "single-bounce"),
    ("cooperative-sticky", "default", "single-bounce"),
    ("range", "default", "single-bounce"),
    ("streams-2.3", "streams-3.9", "upgrade.from"),
    (STREAMS, STREAMS, "single-bounce"),
]


def path_of(old: str, new: str, name: str, profile: str = "as-specified") -> Path:
    [path] = [path for hop in hops(old, new, (), profile) for path in hop.paths if path.name == name]
    return path


@pytest.mark.covering("name")
@pytest.mark.parametrize(("old", "new", "name"), LEGAL)
@pytest.mark.slow
def test_legal(old: str, new: str, name: str) -> None:
    path = path_of(old, new, name)
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert outcome.rebalances
    assert outcome.pauses


@pytest.mark.parametrize("profile", CLIENTS)
def test_a_quiet_run_of_every_client_settles(profile: str) -> None:
    """Members of 2.4 leave an id behind when they join; its timer once kept the group from coming to rest."""
    new = "sticky" if "cooperative-sticky" in client(profile).lacks else "cooperative-sticky"
    for old in ("range", "default"):
        for path in (path for hop in hops(old, new, (), profile) for path in hop.paths):
            group = setup(path, broker_profile="broker-current")
            assert cost(machine(group), group) is not None


def test_ctrl_c_in_the_comparison_with_a_plain_restart_passes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was taken for a restart that breaks nothing, and the rest of the paths went on."""
    path = path_of("cooperative-sticky", "range", "double-bounce")
    group = setup(path)
    stopped = fast.explore(machine(group), rules(group), Limits(states=1))
    interrupted = replace(stopped, stop=Stop.INTERRUPTED)
    monkeypatch.setattr(fast, "explore", lambda *_, **__: interrupted)
    with pytest.raises(KeyboardInterrupt):
        upgrades._anyway(path, group, {"group/owner"})


def test_a_quiet_run_that_goes_on_for_ever_has_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "MAX_QUIET_STEPS", 3)
    group = setup(path_of("range", "cooperative-sticky", "single-bounce"))
    assert cost(machine(group), group) is None


BETWEEN = [
    ("cooperative-sticky", "consumer", (4, 16), (3, 16)),
    ("consumer", "cooperative-sticky", (5, 21), (4, 23)),
    ("range", "consumer", (4, 21), (3, 20)),
]
"""Rebalances and partition-pauses, where members go over one by one and where all are stopped first."""


@pytest.mark.covering("name")
@pytest.mark.parametrize(("old", "new", "one_by_one", "together"), BETWEEN)
@pytest.mark.parametrize("name", ["online", "online-settled", "offline"])
def test_between_the_protocols_every_path_is_safe_as_specified(
    old: str, new: str, one_by_one: tuple[int, int], together: tuple[int, int], name: str
) -> None:
    path = path_of(old, new, name)
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert (outcome.rebalances, outcome.pauses) == (together if name == "offline" else one_by_one)


@pytest.mark.covering("verdict")
@pytest.mark.parametrize(
    ("old", "new", "name", "verdict", "clause"),
    [
        ("cooperative-sticky", "consumer", "online", UpgradeVerdict.UNSAFE, "group/owner"),
        ("cooperative-sticky", "consumer", "online-settled", UpgradeVerdict.SAFE, None),
        ("cooperative-sticky", "consumer", "offline", UpgradeVerdict.SAFE, None),
        ("range", "consumer", "online", UpgradeVerdict.REFUSED, "member/ends"),
        ("consumer", "cooperative-sticky", "online", UpgradeVerdict.UNSAFE, "epoch/covers"),
        ("consumer", "cooperative-sticky", "online-settled", UpgradeVerdict.SAFE, None),
    ],
)
def test_between_the_protocols_as_shipped(
    old: str, new: str, name: str, verdict: UpgradeVerdict, clause: str | None
) -> None:
    path = path_of(old, new, name, "java-current")
    outcome = judge(path, setup(path, broker_profile="broker-current"))
    assert (outcome.verdict, outcome.clause) == (verdict, clause)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(("release", "states"), [("4.0.0", 6503), (dotted(CURRENT), 6467)])
def test_three_members_that_wait_go_over_safely_as_shipped(release: str, states: int) -> None:
    path = path_of("cooperative-sticky", "consumer", "online-settled")
    outcome = judge(path, setup(path, 3, 2, broker_profile=release))
    assert outcome.verdict is UpgradeVerdict.SAFE
    assert outcome.search.unreduced == states


@pytest.mark.nightly
@pytest.mark.parametrize(("old", "new"), [("range", "cooperative-sticky"), ("cooperative-sticky", "range")])
def test_skipping_a_step_is_refused(old: str, new: str) -> None:
    path = path_of(old, new, "single-bounce")
    outcome = judge(path, setup(path))
    assert outcome.verdict is UpgradeVerdict.REFUSED
    assert outcome.trace is not None
    assert "INCONSISTENT_GROUP_PROTOCOL" in outcome.sentence


@pytest.mark.nightly
def test_streams_without_upgrade_from_breaks() -> None:
    """It takes three instances: an old leader that does not withhold, and two new ones to take from."""
    path = path_of("streams-2.3", "streams-3.9", "single-bounce")
    outcome = judge(path, setup(path, 3, 3))
    assert outcome.verdict is UpgradeVerdict.UNSAFE
    assert outcome.clause == "group/owner"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [("range", "range", "nothing changes"), ("rage", "range", "rage"), (STREAMS, "range", "keeps its own")],
)
def test_bad_input_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        hops(old, new)


# -- as released -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "name", "verdict", "besides"),
    [
        ("default", "cooperative-sticky", "single-bounce", UpgradeVerdict.SAFE, ("leader/label",)),
        ("cooperative-sticky", "range", "single-bounce", UpgradeVerdict.REFUSED, ("leader/label",)),
    ],
)
def test_what_a_release_claims_wrongly_anyway_is_not_held_against_a_path(
    old: str, new: str, name: str, verdict: UpgradeVerdict, besides: tuple[str, ...]
) -> None:
    """J6 labels claims wrongly in every restart, and nobody owns anything twice by it here."""
    path = path_of(old, new, name, "java-current")
    outcome = judge(path, setup(path, broker_profile="broker-current"))
    assert (outcome.verdict, outcome.besides, outcome.anyway) == (verdict, besides, False)


def test_two_owners_are_held_against_a_path_although_a_restart_has_them_too() -> None:
    """Here the assignor withholds nothing, before, after and without the upgrade."""
    path = path_of("cooperative-sticky", "default", "single-bounce")
    group = setup(path)
    stages = tuple(replace(stage, switches=("no_withhold",)) for stage in path.stages)
    path = replace(path, stages=stages)
    group = replace(group, consumers=(replace(group.consumers[0], stages=stages),) * 2)
    outcome = judge(path, group)
    assert (outcome.verdict, outcome.clause, outcome.anyway) == (UpgradeVerdict.UNSAFE, "group/owner", True)


@pytest.mark.parametrize("broker", ["broker-3.9.2", "broker-2.8.0"])
def test_a_coordinator_before_the_consumer_protocol_is_not_judged_in_it(broker: str) -> None:
    """The catalogue says nothing of it there, by which it would be faultless."""
    path = path_of("range", "consumer", "online")
    with pytest.raises(ScenarioError, match=r"--broker: .* is not known to speak the consumer protocol"):
        setup(path, broker_profile=broker)
    assert setup(path_of("range", "sticky", "double-bounce"), broker_profile=broker)


@pytest.mark.parametrize("name", ["java-3.9.2", "kafka-python", "aiokafka", "librdkafka"])
def test_nor_is_a_client(name: str) -> None:
    with pytest.raises(ScenarioError, match=r"--release: .* is not known to speak the consumer protocol"):
        hops("range", "consumer", (), name)


@pytest.mark.parametrize("name", ["librdkafka-1.6", "librdkafka", "kafka-python"])
@pytest.mark.parametrize(("old", "new"), [("range", "cooperative-sticky"), ("cooperative-sticky", "default")])
def test_a_client_that_takes_no_list_of_both_kinds_has_no_double_bounce(
    name: str, old: str, new: str
) -> None:
    """L9 and K3: the consumer refuses to start. The search of a plan with such a list said SAFE."""
    (hop,) = hops(old, new, (), name)
    assert [path.name for path in hop.paths] == ["single-bounce"]
    assert "stop all members, wait until the group is empty" in hop.notes[0]


def test_where_both_lists_are_eager_every_client_has_a_double_bounce() -> None:
    for name in ("librdkafka", "kafka-python", "aiokafka", "java-current"):
        (hop,) = hops("range", "roundrobin", (), name)
        assert hop.paths[0].name == "double-bounce"
        assert not hop.notes


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("aiokafka", "range", "cooperative-sticky", "has no cooperative-sticky assignor"),
        ("librdkafka", "sticky", "range", "has no sticky assignor"),
        ("kafka-python", "range,cooperative-sticky", "range", "refuses a list of EAGER and COOPERATIVE"),
    ],
)
def test_a_list_that_a_client_does_not_run_with_is_no_plan(name: str, old: str, new: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=f"--release: .* {why}"):
        hops(old, new, (), name)


def test_the_default_list_is_that_of_the_release() -> None:
    """Up to 2.8 it is [range]: one bounce from there to cooperative-sticky turns members away."""
    names = {
        release: [path.name for path in hops("default", "cooperative-sticky", (), release)[0].paths]
        for release in ("java-2.8.0", "java-current")
    }
    assert names["java-2.8.0"][0] == "double-bounce"
    assert names["java-current"] == ["single-bounce"]


@pytest.mark.parametrize("text", ["range,cooperative-sticky", "[range, cooperative-sticky]"])
def test_a_list_is_taken_as_it_stands_in_a_configuration(text: str) -> None:
    (hop,) = hops(text, "cooperative-sticky")
    assert [path.stages[0].assignors for path in hop.paths] == [("range", "cooperative-sticky")]
    assert hop.paths == hops("default", "cooperative-sticky")[0].paths
    with pytest.raises(ScenarioError, match="nothing changes"):
        hops(text, "default", (), "java-current")


# -- sizes and hops --------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [1, 2, MAX_MEMBERS, MAX_MEMBERS + 1, 6, 50, 10_000])
@pytest.mark.parametrize("partitions", [1, 2, 5, 12, 1_000])
def test_a_group_of_any_size_is_answered_by_one_that_can_be_searched(members: int, partitions: int) -> None:
    found = searched(members, partitions)
    assert found <= (members, partitions) or partitions == 1
    assert found[0] == (members if members <= MAX_MEMBERS else 2)
    assert searched(*found) == found
    for path in (*hops("range", "consumer")[0].paths, *hops("range", "sticky")[0].paths):
        assert machine(setup(path, *found)), "is not refused"


def test_two_hops_are_one_plan_that_waits_between_them() -> None:
    found = hops("range", "consumer", ("cooperative-sticky",))
    assert [hop.title for hop in found] == ["range to cooperative-sticky", "cooperative-sticky to consumer"]
    judged = tuple(
        JudgedHop(hop=hop, outcomes=tuple(judge(path, setup(path, 1, 1)) for path in hop.paths))
        for hop in found
    )
    plan = joined_plan(judged)
    assert [one.safe.path.name for one in judged if one.safe] == ["1/double-bounce", "2/online"]
    both, last = "[range, cooperative-sticky]", "[cooperative-sticky]"
    assert [step.rpartition(" = ")[2] for step in plan] == [both, plan[1], last, plan[1], "consumer"]
    assert "wait until all of them run with it" in plan[1]


def test_there_is_no_plan_where_one_hop_has_none() -> None:
    hop = hops("range", "cooperative-sticky")[0]
    refused = hop.paths[-1]
    one = JudgedHop(hop=hop, outcomes=(judge(refused, setup(refused)),))
    path = path_of("default", "cooperative-sticky", "single-bounce")
    other = JudgedHop(hop=hop, outcomes=(judge(path, setup(path, 1, 1)),))
    assert joined_plan((other,))
    assert joined_plan((one, other)) == joined_plan((other, one)) == ()


# -- Kafka Streams ---------------------------------------------------------------------------------------

SINCE_4 = [release for release in KAFKA if release.startswith("4.")]


@pytest.mark.parametrize("release", SINCE_4)
@pytest.mark.parametrize("first", [STREAMS, "streams-2.3", "streams-0.10.2", "streams-2.4", "streams-3.9"])
def test_no_release_since_4_is_told_to_stay_eager(first: str, release: str) -> None:
    """They list COOPERATIVE alone, and refuse upgrade.from = 2.3."""
    found = hops(first, f"streams-{release}")
    eager = [path for hop in found for path in hop.paths if any(stage.upgrade_from for stage in path.stages)]
    assert all("3.9" in path.plan[0] for path in eager), "at most over the bridge"
    told = [step for path in found[-1].paths for step in path.plan]
    assert told == [f"restart the instances one by one with Kafka Streams {release}"]
    assert bool(eager) == (first in ("streams-2.3", "streams-0.10.2"))


def test_an_eager_application_goes_over_the_last_release_that_can_be_eager() -> None:
    found = hops("streams-2.3", STREAMS, (), "java-current")
    assert [hop.title for hop in found] == [
        "streams-2.3 to streams-3.9.2",
        f"streams-3.9.2 to streams-{dotted(CURRENT)}",
    ]
    first, *_ = found[0].paths
    assert first.plan[0].endswith("Kafka Streams 3.9.2 and upgrade.from = 2.3")
    assert [stage.upgrade_from for stage in first.stages] == [True, True, False]
    [note, *_] = hops(STREAMS, STREAMS, (), "java-current")[0].notes
    assert "2.3 or older goes over 3.9" in note
    assert "--from streams-2.3 --to streams-" in note


@pytest.mark.parametrize(
    ("release", "over"),
    [("2.4", False), ("3.9", False), ("4.0", True), (dotted(CURRENT[:2]), True)],
)
def test_the_way_follows_the_release(release: str, over: bool) -> None:
    """That of --release, where --to names none."""
    assert len(hops("streams-2.3", STREAMS, (), release)) == 1 + over
    assert hops("streams-2.3", STREAMS, (), release)[-1].new == f"streams-{dotted(kafka(release))}"


def test_two_instances_are_too_few_to_show_what_breaks() -> None:
    path = path_of("streams-2.3", "streams-3.9", "single-bounce")
    assert judge(path, setup(path)).verdict is UpgradeVerdict.UNKNOWN


def test_so_are_two_partitions() -> None:
    """Three instances with two partitions were called SAFE: nobody has one to give away."""
    path = path_of("streams-2.3", "streams-3.9", "single-bounce")
    shown = [(m, p) for m in (2, 3, 4) for p in (2, 3, 4) if path.shown_by(m, p)]
    assert shown == [(3, 3), (3, 4), (4, 3), (4, 4)]
    assert path_of("range", "cooperative-sticky", "double-bounce").shown_by(1, 1)


@pytest.mark.nightly
def test_three_instances_with_two_partitions_are_inconclusive() -> None:
    path = path_of("streams-2.3", "streams-3.9", "single-bounce")
    assert judge(path, setup(path, 3, 2)).verdict is UpgradeVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (STREAMS, "streams-2.3", "write 2.4 or newer"),
        (STREAMS, "streams-4.9", "Kafka 4.9 is not known"),
        ("streams-x", STREAMS, "'x' is no release"),
        (STREAMS, "consumer", "keeps its own"),
    ],
)
def test_a_release_of_streams_that_there_is_not_is_named(old: str, new: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        hops(old, new)


@pytest.mark.parametrize("release", ["2.3.1", "java-2.3", "0.10.2", "2.4", "2.4.0", "java-2.4.1", "3.9"])
def test_a_release_that_is_eager_alone_is_older_than_2_4(release: str) -> None:
    older = release.removeprefix("java-").startswith(("2.3", "0"))
    assert (eager_alone(STREAMS, release) != "") is older
    assert eager_alone("range", release) == ""
