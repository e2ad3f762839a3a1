"""A member of the consumer protocol that does not do what it is told to: who says so, and how surely."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict

from tests.pipeline.audit.foreign.test_corpus import audited


def lines(text):
    """Return log lines of ``minute what``; a name before the first blank of ``what`` says who writes it."""
    said = (line.split(maxsplit=2) for line in text.splitlines() if line)
    return [f"2026-10-25 10:{int(at):02}:00,000 INFO {WRITES[who]}{what}" for at, who, what in said]


WRITES = {
    "java": "[Consumer clientId=orders-a, groupId=orders] ",
    "java-b": "[Consumer clientId=orders-b, groupId=orders] ",
    "c": "HEARTBEAT [orders-a#consumer-1] [thrd:main]: ",
    "c-group": 'PARTADD [orders-a#consumer-1] [thrd:main]: Group "orders": ',
    "broker": "[GroupCoordinator id=1 topic=__consumer_offsets partition=42] ",
    "another": "[GroupCoordinator id=1 topic=__consumer_offsets partition=7] ",
    "app": "",
}
JOINS = """
0 java Member A with epoch 0 transitioned from UNSUBSCRIBED to JOINING.
0 java Member A with epoch 1 transitioned from JOINING to RECONCILING.
0 java Adding newly assigned partitions: [orders-0, orders-1]
0 java Member A with epoch 1 transitioned from RECONCILING to ACKNOWLEDGING.
"""
STABLE = "0 java Member A with epoch 1 transitioned from ACKNOWLEDGING to STABLE.\n"
TOLD = """
1 java Member A with epoch 1 transitioned from STABLE to RECONCILING.
1 java Revoke previously assigned partitions [orders-1]
"""
GOES_ON = "20 java Node -1 disconnected.\n"
C_TOLD = """
0 c ConsumerGroupHeartbeat of member id "A", group id "orders", generation id 0, group instance id "NULL"
0 c ConsumerGroupHeartbeat response received for member id "A" with epoch 1
0 c Reconciliation starts with new target assignment "orders(x)[0], orders(x)[1]". Next assignment (null)
0 c-group add orders [0]
0 c-group add orders [1]
0 c Target assignment acked, new current assignment  "orders(x)[0], orders(x)[1]"
1 c Reconciliation starts with new target assignment "orders(x)[0]". Next assignment (null)
"""
C_BEATS = '20 c ConsumerGroupHeartbeat response received for member id "A" with epoch 1\n'
STATE = (
    "{} broker [GroupId orders] Member A new assignment state: epoch={}, previousEpoch=1, state={}, "
    "assignedPartitions=[x-0] and revokedPartitions=[x-1].\n"
)
ASKED = STATE.format(1, 1, "UNREVOKED_PARTITIONS")
OF_ANOTHER = "20 {} [GroupId others] Bumped group epoch to 7 with metadata hash 1.\n"
FENCED = (
    "7 broker [GroupId orders] Member A fenced from the group because it failed to transition from epoch 1.\n"
)
QUIET = "20 app still here\n"

STUCK = {
    "Java, its log goes on": (JOINS + STABLE + TOLD + GOES_ON, True),
    "Java, whose log may be cut off": (JOINS + STABLE + TOLD + QUIET, False),
    "librdkafka, its heartbeats go on": (C_TOLD + C_BEATS, True),
    "librdkafka, whose log may be cut off": (C_TOLD + QUIET, False),
    "a coordinator that goes on": (ASKED + OF_ANOTHER.format("broker"), True),
    "a coordinator that may have moved": (ASKED + OF_ANOTHER.format("another"), False),
}


@pytest.mark.parametrize(("log", "certain"), STUCK.values(), ids=STUCK)
def test_a_member_for_which_the_group_waits_is_found(log, certain, tmp_path):
    found = audited({"a.log": lines(log)}, tmp_path)
    assert [(one.check, one.certain) for one in found.findings] == [("never-settles", certain)]
    assert found.findings[0].seconds == 19 * 60
    assert not found.worst[0].settled
    assert found.verdict is (Verdict.VIOLATION if certain else Verdict.INCONCLUSIVE)


GIVEN_ON = "2 java-b Adding newly assigned partitions: [orders-1]\n"
B_JOINS = "1 java-b Member B with epoch 2 transitioned from JOINING to RECONCILING.\n"
FREE = {
    "Java, without the lines that would say that it is done": JOINS + TOLD + GOES_ON,
    "Java, whose partition another has": JOINS + STABLE + TOLD + B_JOINS + GIVEN_ON + GOES_ON,
    "Java, which says what it is assigned": JOINS + STABLE + TOLD + GIVEN_ON.replace("-b", "") + GOES_ON,
    "Java, done": JOINS + STABLE + TOLD + STABLE.replace("0 java", "2 java") + GOES_ON,
    "Java, which leaves": JOINS
    + STABLE
    + TOLD
    + "2 java Member A with epoch -1 transitioned from X to LEAVING.\n",
    "librdkafka, done": C_TOLD
    + '2 c Target assignment acked, new current assignment  "orders(x)[0]"\n'
    + C_BEATS,
    "a coordinator that had its answer": ASKED + STATE.format(5, 2, "STABLE") + OF_ANOTHER.format("broker"),
    "a coordinator that removed it": ASKED + FENCED + OF_ANOTHER.format("broker"),
}


@pytest.mark.parametrize("log", FREE.values(), ids=FREE)
def test_nobody_waits_for_a_member_that_is_done_or_gone(log, tmp_path):
    found = audited({"a.log": lines(log + QUIET)}, tmp_path)
    assert "never-settles" not in {one.check for one in found.findings}
