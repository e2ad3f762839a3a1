"""Profiles follow from the catalogue; here is what must come out, written down by hand."""

from __future__ import annotations

import pytest
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.observed import CONSUMER, COORDINATOR, OBSERVED, SERVED, SHOWN, explanation
from rebalance_verifier.model.bugs.profiles import (
    AIOKAFKA_READ,
    BROKERS,
    CLIENTS,
    INERT,
    KAFKA_PYTHON_READ,
    YIELDS,
    broker,
    client,
    decisions_in,
    profile_of_code,
    switches_in,
)
from rebalance_verifier.model.bugs.releases import CURRENT, NEWEST, dotted, version
from rebalance_verifier.model.bugs.switches import SWITCHES, switched
from rebalance_verifier.model.values import Cluster, Subscription, TopicPartition
from rebalance_verifier.model.written import JoinSituation, written

JAVA = ["java-2.4", "java-2.6", "java-2.8.0", "java-2.8.1", "java-3.0"]
JAVA += ["java-3.3.1", "java-3.4.0", "java-3.5", "java-current"]

FAITHFUL = {
    "client": {
        "join_sent_after_reset",
        "keep_owned_on_sync_rip",
        "late_commit_resets",
        "skipped_assignment_noted",
        "static_forgets_id",
        *("claims_reconciled_only", "group_not_found_fatal"),
    },
    "broker": {
        *("commit_any_at_epoch", "rejoin_on_target_epoch", "full_classic_refuses_static"),
        *("failover_times_away", "failover_times_classic"),
        *("new_pattern_keeps_target", "stale_subscription_type", "classic_held_by_id"),
        *("overtaken_heartbeat_believed", "previous_epoch_overwritten"),
        *("no_barrier_for_withheld", "interrupted_holds_nothing", "unknown_member_admitted"),
        *("downgrade_to_target", "static_downgrade_without_rebalance", "rebalance_not_logged"),
        *("upgrade_reads_last_protocol", "sync_names_first_protocol"),
        *("upgrade_keeps_target", "upgrade_needs_protocol", "static_rejoin_unreleased"),
        "lost_generation_believed",
        "overtaken_join_believed",
        "persist_selected_protocol_only",
        "sync_load_error_raw",
        "silent_static_claims_stale",
        "pending_sync_evicts_static",
        "static_rejoin_ignores_subscription",
        "static_removal_not_persisted",
        "static_replace_drops_revocation",
    },
}
"""How the current release behaves, right or wrong."""


def test_names() -> None:
    others = ["librdkafka-1.6", "librdkafka", "kafka-python", "aiokafka"]
    assert list(CLIENTS) == ["as-specified", *JAVA, *others]
    brokers = ["broker-2.4", "broker-2.6", "broker-2.8.0", "broker-3.0", "broker-3.2", "broker-current"]
    assert list(BROKERS) == ["as-specified", *brokers]
    assert {p.kind for p in CLIENTS.values()} == {"client"}
    assert {p.kind for p in BROKERS.values()} == {"broker"}
    assert all(p.notes for p in (*CLIENTS.values(), *BROKERS.values()))


def test_look_up() -> None:
    assert client("java-3.4.0").name == "java-3.4.0"
    assert client("as-specified").kind == "client"
    assert broker("as-specified").kind == "broker"
    with pytest.raises(
        ValueError, match=r"no release of a client is called 'broker-2\.4': `rebalance list releases` has"
    ):
        client("broker-2.4")
    with pytest.raises(ValueError, match=r"no release of a broker is called 'broker-9': did you mean"):
        broker("broker-9")


@pytest.mark.parametrize(
    ("spelled", "release"),
    [
        ("3.9", "3.9.2"),
        ("4.1.0", "4.1.0"),
        (f"v{NEWEST}", NEWEST),
        ("PRODUCT-4.0", "4.0.2"),
        ("PRODUCT 2.8.0", "2.8.0"),
    ],
)
def test_a_release_of_kafka_has_its_profile(spelled: str, release: str) -> None:
    """X.Y is the last release of that minor series."""
    for find, product in ((client, "java"), (broker, "broker")):
        found = find(spelled.replace("PRODUCT", product))
        assert found.name in (f"{product}-{release}", f"{product}-{release.removesuffix('.0')}")
        assert found.release == version(release)
        assert found.decisions == decisions_in("Java" if product == "java" else "broker", version(release))


@pytest.mark.parametrize(
    ("spelled", "write"), [("4.99", NEWEST), ("java-99.0.1", NEWEST), ("3.9.7", "3.9.2"), ("2.3.0", "2.4.0")]
)
def test_a_release_that_does_not_exist_is_refused(spelled: str, write: str) -> None:
    with pytest.raises(ValueError, match=rf"is not known, 2\.4\.0 to .* are: write {write}$"):
        client(spelled)


def test_the_newest_release_is_the_newest_that_was_observed() -> None:
    """One place names it, and its profiles are computed from it."""
    assert max(version(release) for of in OBSERVED.values() for release in of.releases) == CURRENT
    assert client("java-current").release == broker("broker-current").release == CURRENT
    text = ".".join(map(str, CURRENT))
    assert client(text).decisions == client("java-current").decisions
    assert broker(text).decisions == broker("broker-current").decisions
    assert text in client("java-current").notes
    assert text in broker("broker-current").notes


@pytest.mark.parametrize("part", [CONSUMER, COORDINATOR, SERVED])
def test_the_newest_profile_is_as_its_code_was_observed(part: str) -> None:
    """Every decision that the newest code was observed to have, or not to have, is so in the profile; what
    differs is explained (``explained.toml``)."""
    found, newest = OBSERVED[part], dotted(CURRENT)
    has = (client if part == CONSUMER else broker)(newest)
    for switch in found.switches:
        if switch not in DECISIONS or explanation(part, switch, found.found[switch, newest].seen, newest):
            continue
        assert (switch in has.decisions) is (found.found[switch, newest].seen == SHOWN), switch


def test_code_has_the_profile_of_its_release_up_to_the_newest() -> None:
    newest = dotted(CURRENT)
    newer = dotted((*CURRENT[:-1], CURRENT[-1] + 1))
    assert (profile_of_code("client", newest), profile_of_code("client", newer)) == (
        f"java-{newest}",
        "java-current",
    )
    assert (profile_of_code("broker", newest), profile_of_code("broker", newer)) == (
        f"broker-{newest}",
        "broker-current",
    )


@pytest.mark.parametrize("profile", [client("as-specified"), broker("as-specified")], ids=lambda p: p.kind)
def test_as_specified_has_no_mistake(profile) -> None:
    assert profile.decisions == frozenset()
    assert profile.switches == ()


def test_faithful() -> None:
    assert client("java-current").decisions == FAITHFUL["client"]
    assert broker("broker-current").decisions == FAITHFUL["broker"]


@pytest.mark.parametrize(
    "profile", [*CLIENTS.values(), *BROKERS.values()], ids=lambda p: f"{p.kind} {p.name}"
)
def test_each_side_decides_for_itself(profile) -> None:
    """The one decision of both sides is KIP-814: client and broker have to know version 9 of JoinGroup."""
    coordinators = {id_ for id_ in profile.decisions if DECISIONS[id_].where == "coordinator"}
    if profile.kind == "broker":
        assert coordinators == profile.decisions
    else:
        assert coordinators <= {"static_leader_returns_as_follower"}


# From one Java profile to the next: decisions repaired, decisions new, switches of cooperative-sticky.
STEPS = {
    "java-2.6": (
        {
            "late_commit_resets",
            "no_sent_generation_check",
            "rejoin_flag_not_latched",
        },
        set(),
        ("trust_all_claims",),
    ),
    "java-2.8.0": (
        {"join_rip_fatal", "no_heartbeat_in_completing"},
        {"late_commit_resets", "reset_on_retriable"},
        ("trust_all_claims",),
    ),
    "java-2.8.1": (
        {"prepare_not_repeated_after_reset", "reset_on_retriable", "unsorted_metadata"},
        {"validate_raw_claims"},
        ("max_generation_only", "third_round_general"),
    ),
    "java-3.0": (set(), set(), ("max_generation_only", "third_round_general")),
    "java-3.3.1": (
        {
            "clear_member_id_on_illegal_generation",
            "lost_only_without_id",
            "static_leader_returns_as_follower",
            "validate_raw_claims",
        },
        {"reset_on_sync_rip", "skipped_assignment_noted"},
        ("max_generation_only", "third_round_general"),
    ),
    "java-3.4.0": (
        {"reset_on_sync_rip"},
        {"keep_owned_on_sync_rip"},
        ("max_generation_only", "third_round_general"),
    ),
    "java-3.5": (set(), set(), ("third_round_general",)),
    "java-current": (
        set(),
        {"claims_reconciled_only", "group_not_found_fatal"},
        ("third_round_general",),
    ),
}


def test_java_release_by_release() -> None:
    assert list(STEPS) == JAVA[1:]
    for before, (name, (repaired, new, switches)) in zip(JAVA, STEPS.items(), strict=False):
        old, now = client(before), client(name)
        found = name, set(old.decisions - now.decisions), set(now.decisions - old.decisions), now.switches
        assert found == (name, repaired, new, switches)
    assert client("java-2.4").switches == ("last_claim_wins", "third_round_general")


def test_brokers() -> None:
    both = {
        "full_classic_refuses_static",
        "lost_generation_believed",
        "overtaken_join_believed",
        "persist_selected_protocol_only",
        "silent_static_claims_stale",
        "static_rejoin_ignores_subscription",
        "static_removal_not_persisted",
        "static_replace_drops_revocation",
    }
    early = {"static_leader_returns_as_follower", *both}
    assert broker("broker-2.4").decisions == early | {
        "max_size_counts_members",
        "new_member_never_expires",
        "static_replace_in_completing_no_rebalance",
        "static_replace_not_persisted",
    }
    assert broker("broker-2.6").decisions == early | {"static_replace_not_persisted"}
    assert broker("broker-2.8.0").decisions == early | {"no_pending_sync_expiry"}
    assert broker("broker-3.0").decisions == early | {"pending_sync_evicts_static"}
    assert broker("broker-3.2").decisions == both | {"pending_sync_evicts_static"}
    assert {(p.metadata_version, p.default_assignors, p.switches) for p in BROKERS.values()} == {(0, (), ())}


def test_other_clients() -> None:
    every = {"members_watch_own_topics", "static_leader_returns_as_follower"}
    assert client("librdkafka").decisions == every
    assert client("librdkafka-1.6").decisions == every | {
        "assign_during_close_hangs",
        "commit_illegal_generation_always_lost",
        "no_leave_on_unsubscribe",
    }
    u1 = {"assign_before_revoke_cb", "skip_empty_assigned_cb", "prepare_once_per_rebalance"}
    read = {id_ for id_ in KAFKA_PYTHON_READ if id_ in DECISIONS}
    assert client("kafka-python").decisions == u1 | read | {"claims_last_assigned"}
    assert client("kafka-python").switches == ("last_claim_wins",)
    assert read | {"last_claim_wins"} == set(KAFKA_PYTHON_READ)
    assert all(
        f"{id_}: {reason}" in client("kafka-python").notes for id_, reason in KAFKA_PYTHON_READ.items()
    )
    assert client("aiokafka").decisions == set(AIOKAFKA_READ)
    assert client("aiokafka").switches == ()


@pytest.mark.parametrize(
    ("profile", "row"),
    [
        ("librdkafka", "confluent-kafka"),
        ("librdkafka-1.6", "confluent-kafka"),
        ("kafka-python", "kafka-python"),
        ("aiokafka", "aiokafka"),
        ("java-current", "kafka-clients"),
    ],
)
def test_kip_814_is_for_who_writes_version_9_of_join_group(profile: str, row: str) -> None:
    """By the bytes that clients of the matrix were seen to write."""
    versions = {one.joins[JoinSituation.FIRST].version for one in written() if one.client == row}
    older = {version < 9 for version in versions}
    assert older == {"static_leader_returns_as_follower" in client(profile).decisions}


def test_metadata() -> None:
    """v1 until 3.3.2, v3 from 3.4.0; the list with cooperative-sticky from 3.0.0; user data from 2.8.1."""
    assert [client(name).metadata_version for name in JAVA] == [1, 1, 1, 1, 1, 1, 3, 3, 3]
    assert [client(name).user_data_generation for name in JAVA] == [False] * 3 + [True] * 6
    assert [len(client(name).default_assignors) for name in JAVA] == [1] * 4 + [2] * 5
    assert client("librdkafka").metadata_version == 3
    assert client("kafka-python").metadata_version == 1
    assert client("aiokafka").metadata_version == 0


# -- the assignor of a profile -----------------------------------------------------------------------------


def member(topics: str, own: str = "", generation: int = -1) -> Subscription:
    claims = (word.split("-") for word in own.split())
    owned = tuple(TopicPartition(topic, int(index)) for topic, index in claims)
    return Subscription(topics=tuple(topics.split()), owned_partitions=owned, generation_id=generation)


# Switch -> a call that shows it (see tests/model/bugs/test_switches.py).
CALLS = {
    "last_claim_wins": ({"t": 2}, {"A": member("t", "t-0", 9), "B": member("t", "t-0", 1)}),
    "trust_all_claims": ({"t": 3}, {"A": member("t", "t-0 t-1", 1), "B": member("t", "t-1 t-2", 1)}),
    "max_generation_only": (
        {"t": 3},
        {"A": member("t", "t-0 t-1", 5), "B": member("t"), "C": member("t", "t-2", 6)},
    ),
    "third_round_general": (
        {"t0": 4, "t1": 4, "t2": 1, "t3": 6},
        {
            "m0": member("t0 t1", "t0-1 t0-2 t0-3 t1-0 t1-1 t1-2 t1-3", 5),
            "m1": member("t0 t1 t2", "t0-0 t2-0", 5),
            "m2": member("t0 t1 t3", "t3-0 t3-1 t3-2 t3-3 t3-4 t3-5", 5),
            "m3": member("t1 t2"),
        },
    ),
}


@pytest.mark.parametrize("profile", CLIENTS.values(), ids=CLIENTS)
def test_each_switch_of_a_profile_shows(profile) -> None:
    """No switch of a profile undoes another: on its own call each does what it does alone."""
    whole, right = switched("cooperative-sticky", profile.switches), reference("cooperative-sticky")
    for id_ in profile.switches:
        topics, group = CALLS[id_]
        cluster = Cluster.of(topics)
        alone = switched("cooperative-sticky", [id_]).assign(cluster, group)
        assert whole.assign(cluster, group) == alone
        assert alone != right.assign(cluster, group)


def test_what_is_left_out() -> None:
    assert all(INERT.values())
    assert [id_ for id_ in INERT if id_ not in SWITCHES] == []
    assert {id_ for id_ in INERT if id_ in DECISIONS} == {id_ for id_ in SWITCHES if id_ in DECISIONS}
    for first, second in YIELDS.items():
        released = [p for p in CLIENTS.values() if second in p.switches]
        assert released
        assert all(first not in p.switches for p in released)


def test_nothing_from_a_product_that_does_not_exist() -> None:
    assert decisions_in("java", CURRENT) == frozenset()  # it is spelt Java
    assert switches_in("java", CURRENT) == ()
