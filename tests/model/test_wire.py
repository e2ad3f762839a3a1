"""The wire formats against the encoders of three other clients, and against everything that is not one."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rebalance_verifier.model.values import Subscription, TopicPartition
from rebalance_verifier.model.wire import (
    Assignment,
    WireError,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
FULL = Subscription(
    topics=("t", "u"),
    user_data=b"x",
    owned_partitions=(T0, T1, U0),
    generation_id=5,
    rack_id="rack",
    version=3,
)

topics = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(["t0", "t1", "t2"])
int32 = st.integers(-(2**31), 2**31 - 1)
indexes = st.integers(0, 9) | int32
partitions = st.lists(st.builds(TopicPartition, topics, indexes), max_size=8).map(tuple)
user_data = st.none() | st.binary(max_size=20)
versions = st.integers(0, 3)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(topics, max_size=4).map(tuple),
    user_data=user_data,
    owned_partitions=partitions,
    generation_id=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | topics,
    group_instance_id=st.none() | topics,
    version=versions,
)


def groups(flat, make=lambda topic, of_topic: (topic, of_topic)):
    """Partitions grouped by topic, in the order of first appearance."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in flat:
        by_topic.setdefault(topic, []).append(partition)
    return [make(topic, of_topic) for topic, of_topic in by_topic.items()]


def grouped(flat):
    return tuple(TopicPartition(topic, p) for topic, of_topic in groups(flat) for p in of_topic)


def as_read(sub: Subscription, version: int) -> Subscription:
    """``sub`` as a reader must see it when it was written in ``version``."""
    return Subscription(
        topics=tuple(sorted(sub.topics)),
        user_data=sub.user_data,
        owned_partitions=tuple(sorted(sub.owned_partitions)) if version >= 1 else (),
        generation_id=sub.generation_id if version >= 2 else -1,
        rack_id=sub.rack_id if version >= 3 else None,
        group_instance_id=sub.group_instance_id,
        version=version,
    )


# --- bytes, spelled out ----------------------------------------------------------------------------------


def test_subscription_bytes_by_hand():
    assert encode_subscription(FULL) == bytes.fromhex(
        "0003"  # version
        "00000002 0001 74 0001 75"  # topics
        "00000001 78"  # user data
        "00000002 0001 74 00000002 00000000 00000001 0001 75 00000001 00000000"  # owned partitions
        "00000005"  # generation
        "0004 7261636b"  # rack
    )


def test_nulls_and_defaults_by_hand():
    assert encode_subscription(Subscription(topics=())) == bytes.fromhex(
        "0003 00000000 ffffffff 00000000 ffffffff ffff"
    )


def test_fields_that_a_version_lacks_are_dropped():
    newest = encode_subscription(FULL)
    for version, dropped in ((2, 6), (1, 10), (0, 40)):
        expected = version.to_bytes(2, "big") + newest[2 : len(newest) - dropped]
        assert encode_subscription(FULL, version) == expected


def test_equal_subscriptions_are_equal_bytes():
    shuffled = Subscription(
        topics=("u", "t"),
        user_data=b"x",
        owned_partitions=(U0, T1, T0),
        generation_id=5,
        rack_id="rack",
        group_instance_id="instance",
        version=3,
    )
    assert encode_subscription(shuffled) == encode_subscription(FULL)


def test_assignment_keeps_the_order_of_partitions():
    data = bytes.fromhex(
        "0001  00000002 0001 75 00000001 00000000  0001 74 00000002 00000001 00000000  00000000"
    )
    assert encode_assignment([U0, T1, T0], b"", 1) == data
    assert decode_assignment(data) == Assignment((U0, T1, T0), b"", 1)


def test_sticky_user_data_by_hand():
    claims = bytes.fromhex("00000001 0001 74 00000002 00000000 00000001")
    assert encode_sticky_user_data([T0, T1], 7) == claims + bytes.fromhex("00000007")
    assert encode_sticky_user_data([T0, T1], None) == claims
    assert decode_sticky_user_data(claims) == ((T0, T1), -1)


def test_cooperative_user_data_is_lenient():
    assert encode_cooperative_user_data(7) == bytes.fromhex("00000007")
    assert decode_cooperative_user_data(None) == -1
    assert decode_cooperative_user_data(b"") == -1
    assert decode_cooperative_user_data(b"\0\0\7") == -1
    assert decode_cooperative_user_data(b"\0\0\0\7and more") == 7


# --- the same bytes as other clients ---------------------------------------------------------------------


@given(subscriptions, versions)
def test_subscription_equals_kafka_python(sub, version):
    metadata = pytest.importorskip("kafka.protocol.consumer.metadata").ConsumerProtocolSubscription
    theirs = metadata(
        version=version,
        topics=sorted(sub.topics),
        user_data=sub.user_data,
        owned_partitions=groups(sorted(sub.owned_partitions), metadata.TopicPartition),
        generation_id=sub.generation_id,
        rack_id=sub.rack_id,
    )
    assert encode_subscription(sub, version) == theirs.encode()


@given(partitions, user_data, versions)
def test_assignment_equals_kafka_python(assigned, data, version):
    theirs = pytest.importorskip("kafka.protocol.consumer.metadata").ConsumerProtocolAssignment
    assert encode_assignment(assigned, data, version) == theirs(version, groups(assigned), data).encode()


@given(partitions, int32)
def test_sticky_user_data_equals_aiokafka(owned, generation):
    sticky = pytest.importorskip("aiokafka.coordinator.assignors.sticky.sticky_assignor")
    theirs = sticky.StickyAssignorUserDataV1(groups(owned), generation).encode()
    assert encode_sticky_user_data(owned, generation) == theirs


@pytest.mark.slow
@given(partitions, int32)
def test_sticky_user_data_of_kafka_python_has_a_version_in_front(owned, generation):
    """kafka-python 3 puts an int16 before it that no other client writes or expects (peers disagree)."""
    theirs = pytest.importorskip("kafka.coordinator.assignors.sticky.user_data").StickyAssignorUserData
    ours = encode_sticky_user_data(owned, generation)
    assert theirs(groups(owned), generation).encode() == b"\0\1" + ours


@pytest.fixture(scope="module")
def librdkafka_bytes() -> list[dict[str, Any]]:
    """Requests of real librdkafka consumers; the script ends by itself, at the latest after 20 s."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    tap = [sys.executable, str(Path(__file__).with_name("librdkafka_tap.py"))]
    done = subprocess.run(tap, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


JOIN_GROUP, SYNC_GROUP = 11, 14
ALL = tuple(TopicPartition(t, p) for t, n in (("t", 3), ("u", 2)) for p in range(n))


def test_librdkafka_subscriptions(librdkafka_bytes):
    joins = [line for line in librdkafka_bytes if line["api"] == JOIN_GROUP]
    assert {line["strategy"] for line in joins} == {"range", "roundrobin", "cooperative-sticky"}
    for line in joins:
        data = bytes.fromhex(line["bytes"])
        assert encode_subscription(decode_subscription(data)) == data
    first = {line["strategy"]: decode_subscription(bytes.fromhex(line["bytes"])) for line in reversed(joins)}
    fresh = Subscription(topics=("t", "u"), user_data=b"", rack_id="r1", version=3)
    assert first == dict.fromkeys(first, fresh)


def test_librdkafka_claims(librdkafka_bytes):
    """The rejoin after a subscription change: owned partitions, and the sticky user data beside them."""
    joins = [line for line in librdkafka_bytes if line["api"] == JOIN_GROUP]
    read = [decode_subscription(bytes.fromhex(line["bytes"])) for line in joins]
    rejoin = next(claim for claim in read if claim.owned_partitions)
    assert rejoin.topics == ("t",)
    assert rejoin.owned_partitions == ALL[:3]
    assert rejoin.generation_id > 0
    assert rejoin.user_data is not None
    owned, generation = decode_sticky_user_data(rejoin.user_data)
    assert owned == ALL
    assert encode_sticky_user_data(owned, generation) == rejoin.user_data


def test_librdkafka_assignments(librdkafka_bytes):
    syncs = [line for line in librdkafka_bytes if line["api"] == SYNC_GROUP]
    assert {line["strategy"] for line in syncs} == {"range", "cooperative-sticky"}
    for line in syncs:
        data = bytes.fromhex(line["bytes"])
        assigned = decode_assignment(data)
        assert sorted(assigned.partitions) == list(ALL)
        assert encode_assignment(*assigned) == data


# --- round trips -----------------------------------------------------------------------------------------


@given(subscriptions, versions)
def test_subscription_round_trip(sub, version):
    data = encode_subscription(sub, version)
    assert decode_subscription(data, sub.group_instance_id) == as_read(sub, version)


@given(partitions, user_data, versions)
def test_assignment_round_trip(assigned, data, version):
    expected = Assignment(grouped(assigned), data, version)
    assert decode_assignment(encode_assignment(assigned, data, version)) == expected


@given(partitions, st.none() | int32)
def test_sticky_user_data_round_trip(owned, generation):
    expected = (grouped(owned), -1 if generation is None else generation)
    assert decode_sticky_user_data(encode_sticky_user_data(owned, generation)) == expected


@given(int32)
def test_cooperative_user_data_round_trip(generation):
    assert decode_cooperative_user_data(encode_cooperative_user_data(generation)) == generation


@given(subscriptions, st.integers(4, 2**15 - 1), st.binary(max_size=9))
def test_newer_versions_are_read_as_the_newest_known(sub, version, trailing):
    data = encode_subscription(sub, 3)
    newer = version.to_bytes(2, "big") + data[2:] + trailing
    assert decode_subscription(newer) == decode_subscription(data)
    assert encode_subscription(sub, version) == data
    assigned = encode_assignment(sub.owned_partitions)
    newer = version.to_bytes(2, "big") + assigned[2:] + trailing
    assert decode_assignment(newer) == decode_assignment(assigned)


def test_negative_generations_are_none():
    data = encode_subscription(Subscription(topics=("t",), generation_id=-7, version=2))
    assert decode_subscription(data).generation_id == -1


# --- refusals --------------------------------------------------------------------------------------------


@given(subscriptions)
def test_every_truncated_subscription_is_refused(sub):
    data = encode_subscription(sub)
    for end in range(len(data)):
        with pytest.raises(WireError):
            decode_subscription(data[:end])


@given(partitions, user_data)
def test_every_truncated_assignment_is_refused(assigned, data):
    whole = encode_assignment(assigned, data)
    for end in range(len(whole)):
        with pytest.raises(WireError):
            decode_assignment(whole[:end])


@given(partitions, int32)
def test_truncated_sticky_user_data_is_version_0_or_refused(owned, generation):
    data = encode_sticky_user_data(owned, generation)
    for end in range(len(data)):
        if end >= len(data) - 4:
            assert decode_sticky_user_data(data[:end]) == (grouped(owned), -1)
        else:
            with pytest.raises(WireError):
                decode_sticky_user_data(data[:end])


@pytest.mark.parametrize(
    ("data", "field", "offset", "message"),
    [
        ("", "version", 0, "version at byte 0: expected an int16, found 0 bytes before the end"),
        ("ffff", "version", 0, "version at byte 0: expected 0 or more, found -1"),
        ("0000ffffffff", "topics", 2, "topics at byte 2: expected an array length of 0 to 0, found -1"),
        ("0000 7fffffff 00", "topics", 2, "expected an array length of 0 to 0, found 2147483647"),
        ("0000 00000001 ffff", "topics", 6, "topics at byte 6: expected a length of 0 or more, found -1"),
        ("0000 00000001 000374", "topics", 8, "expected 3 bytes of text, found 1 bytes before the end"),
        ("0000 00000001 000274ff ffffffff", "topics", 9, "topics at byte 9: expected UTF-8, found byte 0xff"),
        ("0000 00000000 fffffffe", "user_data", 6, "expected a length of -1 or more, found -2"),
        ("0000 00000000 00000009 00", "user_data", 10, "expected 9 bytes, found 1 bytes before the end"),
        ("0001 00000000 ffffffff", "owned_partitions", 10, "expected an int32"),
        (
            "0001 00000000 ffffffff 00000001 0000 00000002 00000000",
            "owned_partitions.partitions",
            16,
            "0 to 1",
        ),
        ("0003 00000000 ffffffff 00000000 ffffffff fffe", "rack_id", 18, "-1 or more, found -2"),
    ],
)
def test_errors_name_field_offset_and_expectation(data, field, offset, message):
    with pytest.raises(WireError) as caught:
        decode_subscription(bytes.fromhex(data))
    assert (caught.value.field, caught.value.offset) == (field, offset)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "sub",
    [
        Subscription(topics=("t",), version=-1),
        Subscription(topics=("t" * 32768,)),
        Subscription(topics=("\ud800",)),
        Subscription(topics=(), generation_id=2**31),
        Subscription(topics=(), owned_partitions=(TopicPartition("t", 2**31),)),
    ],
)
def test_values_that_do_not_fit_are_refused(sub):
    with pytest.raises(WireError):
        encode_subscription(sub)


def mutated(data: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Valid data with one run of bytes replaced: gets deeper into the formats than random bytes."""

    def splice(whole, at, patch):
        at %= len(whole) + 1
        return whole[:at] + patch + whole[at + len(patch) :]

    return st.builds(splice, data, st.integers(0, 200), st.binary(min_size=1, max_size=4))


@given(st.binary(max_size=80) | mutated(subscriptions.map(encode_subscription)))
def test_anything_is_decoded_or_refused(data):
    for decode in (decode_subscription, decode_assignment, decode_sticky_user_data):
        try:
            decode(data)
        except WireError as error:
            offset = error.offset
        else:
            offset = 0
        assert offset is not None
        assert 0 <= offset <= len(data)
    decode_cooperative_user_data(data)


def test_absurd_lengths_do_not_allocate():
    huge = bytes.fromhex("7fffffff") + bytes(64)
    tracemalloc.start()
    try:
        for decode, head in (
            (decode_subscription, "0003"),
            (decode_subscription, "0003 00000000"),
            (decode_subscription, "0003 00000000 ffffffff"),
            (decode_assignment, "0003"),
            (decode_assignment, "0003 00000001 0000"),
            (decode_sticky_user_data, ""),
        ):
            with pytest.raises(WireError):
                decode(bytes.fromhex(head) + huge)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
