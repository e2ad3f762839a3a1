"""Messages as their writers hold them in constants, filled in: what the tables make of each. No Spark."""

from __future__ import annotations

import pytest
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.loggers import BROKER, JAVA, LIBRDKAFKA
from rebalance_verifier.pipeline.audit.sources.parsing import LineParser
from rebalance_verifier.pipeline.audit.sources.patterns import Line, Source
from rebalance_verifier.pipeline.audit.sources.settling import settle

from tests.pipeline.audit.sources.matching import match

META = (
    "MemberMetadata(memberId=app-1-7, groupInstanceId=Some(one), clientId=app-1, clientHost=/10.0.0.1, "
    "sessionTimeoutMs=6000, rebalanceTimeoutMs=6000, supportedProtocols=List(range))"
)

OFFSETS = "(__consumer_offsets-9)"
STATIC = "Static member with groupInstanceId=one and unknown member id"
THIS = "this groupInstanceId"
REQUEST = "through explicit `LeaveGroup` request"
NODE = "b:9092 (id: 1 rack: null)"
HEARTBEAT = "heartbeat error response in state up (join-state steady, 2 partition(s) assigned)"
BEAT = 'ConsumerGroupHeartbeat of member id "m/+", group id "g", generation id'
REST = 'group instance id "(null)", current assignment "NULL", subscribed topics "NULL"'
BEAT_OK = 'ConsumerGroupHeartbeat response received for member id "m/+" with epoch'

TEXTS = [
    # Scala's coordinator, 2.4 to 3.9.
    (
        BROKER,
        f"Preparing to rebalance group a b in state Empty with old generation 3 {OFFSETS} (reason: (none))",
        "preparing",
        {
            "group": "a b",
            "generation": "3",
            "detail": "(none)",
        },
    ),
    (
        BROKER,
        "Stabilized group g generation 4 (__consumer_offsets-9)",
        "stable",
        {"group": "g", "generation": "4"},
    ),
    (
        BROKER,
        "Stabilized group g generation 4 (__consumer_offsets-9) with 3 members",
        "stable",
        {"group": "g", "generation": "4", "count": "3"},
    ),
    (
        BROKER,
        "Group g with generation 5 is now empty (__consumer_offsets-9)",
        "empty",
        {"group": "g", "generation": "5"},
    ),
    (
        BROKER,
        "Member app-1-7 in group g has failed, removing it from the group",
        "removed",
        {"member": "app-1-7", "group": "g", "detail": "failed"},
    ),
    (
        BROKER,
        "Member[group.instance.id None, member.id app-1-7] in group g has left, removing it from the group",
        "removed",
        {"member": "app-1-7", "group": "g", "detail": "left"},
    ),
    (
        BROKER,
        f"Member {META} has left group g through explicit `LeaveGroup`; client reason: closed",
        "removed",
        {"member": "app-1-7", "instance": "one", "group": "g", "detail": "closed"},
    ),
    (
        BROKER,
        "Group g removed dynamic members who haven't joined: Set(app-1-7, app-2-8)",
        "removed",
        {"group": "g", "members": "app-1-7, app-2-8"},
    ),
    (
        BROKER,
        f"{STATIC} joins group g in Empty state. Replacing previously mapped member m-7 with {THIS}.",
        "removed",
        {"instance": "one", "group": "g", "member": "m-7", "detail": "Replacing"},
    ),
    (BROKER, "Member app-1-7 joining group during Stable; client reason: not provided", None, {}),
    (BROKER, "Group g is dead, skipping rebalance stage", None, {}),
    # The Java one, 4.x.
    (
        BROKER,
        f"[GroupId g] Static member m-7 with instance id one has left group {REQUEST}; client reason: closed",
        "removed",
        {"member": "m-7", "instance": "one", "group": "g", "detail": "closed"},
    ),
    (
        BROKER,
        "[GroupId g] Member abc fenced from the group because the member session expired.",
        "removed",
        {"member": "abc", "group": "g", "detail": "the member session expired"},
    ),
    (BROKER, "[GroupId g] Bumped group epoch to 4.", None, {}),
    # Java clients.
    (
        JAVA,
        "Successfully joined group with generation Generation{generationId=7, memberId='m', protocol='p'}",
        "joined",
        {"generation": "7", "member": "m", "assignor": "p"},
    ),
    (JAVA, "Successfully joined group with generation 7", "joined", {"generation": "7"}),
    (
        JAVA,
        "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response",
        "reset",
        {"detail": "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"},
    ),
    (
        JAVA,
        f"Member m sending LeaveGroup request to coordinator {NODE} due to the consumer is closed",
        "leaving",
        {"member": "m", "detail": "the consumer is closed"},
    ),
    (
        JAVA,
        f"Member m sending LeaveGroup request to coordinator {NODE}",
        "closed",
        {"member": "m"},
    ),
    (
        JAVA,
        f"Member my app-7 sending LeaveGroup request to coordinator {NODE} due to the consumer is closed",
        "leaving",
        {"member": "my app-7", "detail": "the consumer is closed"},
    ),
    (JAVA, "Member m with epoch 3 transitioned from RECONCILING to ACKNOWLEDGING.", None, {}),
    # librdkafka.
    (LIBRDKAFKA, "add a.b-c_d [12]", "assigned", {"topic": "a.b-c_d", "number": "12"}),
    (LIBRDKAFKA, f"{BEAT} 0, {REST}", "joining", {"member": "m/+", "group": "g"}),
    (LIBRDKAFKA, f"{BEAT} 12, {REST}", "epoch", {"member": "m/+", "group": "g", "generation": "12"}),
    (LIBRDKAFKA, f"{BEAT} -1, {REST}", None, {}),
    (LIBRDKAFKA, f"{BEAT_OK} 7", "epoch", {"member": "m/+", "generation": "7"}),
    (LIBRDKAFKA, f"{BEAT_OK} -1", None, {}),
    (LIBRDKAFKA, "Revoking assignment as lost an rejoining in join state steady", "reset", {}),
    (
        LIBRDKAFKA,
        "Application maximum poll interval (300000ms) exceeded by 313ms (adjust it): leaving group",
        "overdue",
        {"detail": "exceeded by 313ms"},
    ),
    (LIBRDKAFKA, 'updating member id "" -> "m"', None, {}),
    (LIBRDKAFKA, 'updating member id "m" -> ""', "reset", {"member": "m"}),
    (
        LIBRDKAFKA,
        f"{HEARTBEAT}: Broker: Unknown member",
        "reset",
        {"detail": "Broker: Unknown member"},
    ),
    (
        LIBRDKAFKA,
        f"{HEARTBEAT}: Broker: Group rebalance in progress",
        "rebalancing",
        {"detail": "Broker: Group rebalance in progress"},
    ),
]


@pytest.mark.parametrize(
    ("source", "text", "kind", "caught"), TEXTS, ids=[text[:50] for _, text, *_ in TEXTS]
)
def test_what_a_message_says(source, text, kind, caught):
    found = match(source, text)
    assert found is not None
    assert (found[0].kind, found[1]) == (kind, caught)


def test_a_row_that_nothing_reaches_is_refused():
    long, short = Line("Member [", ".*", Kind.LEAVING), Line("Member ", ".*", None)
    assert match(Source(name="s", marks=("m",), prefix="", lines=(long, short)), "Member [x") == (long, {})
    with pytest.raises(ValueError, match=r"'Member \[' comes after 'Member ', which takes its lines"):
        Source(name="s", marks=("m",), prefix="", lines=(short, long))
    with pytest.raises(ValueError, match=r"no such captures: \['where'\]"):
        Line("a", "(?P<where>.*)", None)


def test_of_rows_that_begin_alike_the_first_that_fits_is_taken():
    first, second = Line("a ", r"(?P<member>\d+)", Kind.JOINED), Line("a ", "(?P<detail>.*)", None)
    source = Source(name="s", marks=("m",), prefix="", lines=(first, second))
    assert match(source, "a 7") == (first, {"member": "7"})
    assert match(source, "a b") == (second, {"detail": "b"})
    assert match(source, "b") is None


@pytest.mark.parametrize(
    "behind", ["", " MainThread", "    coordinator.py:391", " [consumer-1]", "  {'a': 1}"]
)
def test_a_name_with_a_blank_is_another_group_whatever_a_layout_writes_behind_messages(behind):
    """``orders dlq`` was taken for ``orders`` with something behind it."""
    member = "m-0e1f2a3b-0000-4111-8222-000000000001"
    messages = (
        "(Re-)joining group orders",
        f"Joined group 'orders' (generation 3) with member_id {member}",
        "(Re-)joining group orders dlq",
    )
    parser = LineParser()
    lines = [f"2026-03-02 10:00:0{number},000 INFO {text}{behind}" for number, text in enumerate(messages)]
    parser.content("a.log", list(enumerate(lines, 1)))
    found = sorted(settle(parser.rows).events)
    assert [(one.kind, one.group, one.detail) for one in found] == [
        ("joining", "orders", None),
        ("joined", "orders", None),
        ("joining", "orders dlq", None),
    ]
    assert {one.member for one in found} == {None, member}


def test_a_partition_that_a_pattern_does_not_match_is_unwanted():
    """Who subscribes to a pattern says it in other words."""
    line, caught = JAVA.match(
        "Assigned partition other-0 for non-subscribed topic regex pattern; subscription pattern is orders.*"
    )
    assert line
    assert line.kind == Kind.UNWANTED
    assert (caught["topic"], caught["number"]) == ("other", "0")
