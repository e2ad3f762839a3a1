"""Logs as strangers paste them, by kind of trap, each with the answer that was written down before it ran.

A line is ``second client text``; each client has a file of its own, unless ``client>file`` names another.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.result import NO_OWNERS, AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.report.terminal.audit import headline

BEGIN = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)
FINE, WRONG, OPEN = Verdict.CONFORMANT, Verdict.VIOLATION, Verdict.INCONCLUSIVE

WHO = "Generation{{generationId={1}, memberId='{0}-uuid', protocol='range'}}"
SHORT = {
    "JOINED": f"Successfully joined group with generation {WHO}",
    "SYNCED": f"Successfully synced group in generation {WHO}",
    "LEAVE": "Member {0}-uuid sending LeaveGroup request to coordinator b:9092 due to {rest}",
    "PREPARE": "Preparing to rebalance group orders in state PreparingRebalance with old generation {1} "
    "(reason: {rest}).",
    "GIVEN": "Adding newly assigned partitions: {rest}",
    "TAKEN": "Revoke previously assigned partitions {rest}",
    "LOST": "Lost previously assigned partitions {rest}",
    "PLAN": "Finished assignment for group at generation {1}: {{{rest}}}",
    "REJOIN": "(Re-)joining group",
    "WHY": "Request joining group due to: {rest}",
    "OLD": "Seeking to offset 42 for partition orders-9",
    "EPOCH": "Member {0}-uuid with epoch {1} transitioned from {2} to {3}.",
}


def text(line: str) -> tuple[str, str]:
    """The file of a line, and the line as a Java consumer writes it."""
    second, client, rest = line.strip().split(" ", 2)
    client, _, file = client.partition(">")
    client, _, instance = client.partition("/")
    word, *args = rest.split(" ")
    if word in SHORT:
        rest = SHORT[word].format(
            instance or client, *args, rest=" ".join(args[word in ("PLAN", "PREPARE") :])
        )
    ahead = 3600 if file.endswith("+1h") else 0
    stamp = (BEGIN + timedelta(seconds=float(second) + ahead)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    prefix = f"instanceId={instance.partition('#')[0]}, " if instance else ""
    if client == "broker":
        return (
            "broker.log",
            f"[{stamp}] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0] {rest}",
        )
    return (
        f"{file or client}.log",
        f"{stamp} INFO [Consumer {prefix}clientId={client}, groupId=orders] {rest}",
    )


def share(**members: str) -> str:
    """A leader's plan."""
    return ", ".join(f"{who}-uuid=Assignment(partitions=[{parts}])" for who, parts in members.items())


A_HAS_BOTH = f"""
    3.4 a JOINED 7
    3.41 a PLAN 7 {share(a="orders-0, orders-1")}
    3.45 a SYNCED 7
    3.46 a GIVEN orders-0, orders-1
"""
B_JOINS = """
    61.3 a JOINED 8
    61.3 b JOINED 8
    61.4 a SYNCED 8
    61.4 b SYNCED 8
"""
EPOCHS = """
    0.5 a EPOCH 1 JOINING RECONCILING
    0.65 a GIVEN [orders-0, orders-1]
    0.8 a EPOCH 1 ACKNOWLEDGING STABLE
    60.5 b EPOCH 2 JOINING RECONCILING
"""
"""A member of the consumer protocol has both partitions, and another joins."""

CASES: Mapping[str, tuple[str, Verdict, list[str]]] = {
    # A. epochs are not generations
    "848: three members, one epoch each": (
        EPOCHS
        + """
        61.1 a TAKEN [orders-1]
        61.6 b GIVEN [orders-1]
        120 c EPOCH 3 JOINING STABLE
        600 c OLD
        """,
        FINE,
        [],
    ),
    "848: scaled in again": (
        EPOCHS
        + """
        61.1 a TAKEN [orders-1]
        61.6 b GIVEN [orders-1]
        200 b EPOCH 2 STABLE LEAVING
        200.1 b TAKEN [orders-1]
        200.9 a EPOCH 3 STABLE RECONCILING
        201 a GIVEN [orders-1]
        600 a OLD
        """,
        FINE,
        [],
    ),
    "848: two own it, and the first gives it away late": (
        EPOCHS + "61.6 b GIVEN [orders-1]\n 71.2 a TAKEN [orders-1]\n 600 a OLD",
        WRONG,
        ["owned-twice"],
    ),
    "848: two own it, the first leaves": (
        EPOCHS + "61.6 b GIVEN [orders-1]\n 80 a EPOCH 1 STABLE LEAVING\n 80.1 a TAKEN [orders-0, orders-1]",
        WRONG,
        ["owned-twice"],
    ),
    "848: a zombie that is fenced": (
        EPOCHS + "61.6 b GIVEN [orders-1]\n 76.6 a EPOCH 1 STABLE FENCED\n 76.7 a LOST [orders-0, orders-1]",
        WRONG,
        ["owned-by-zombie"],
    ),
    "848: one that the log of the broker removes": (
        EPOCHS
        + """
        60.9 broker [GroupId orders] Member a-uuid fenced from the group because its session expired.
        61.6 b GIVEN [orders-0, orders-1]
        600 b OLD
        """,
        FINE,
        [],
    ),
    "848: one that says nothing any more": (
        EPOCHS + "61.6 b GIVEN [orders-1]\n 600 b OLD",
        OPEN,
        ["owned-twice"],
    ),
    "848: one has no listener, so nobody knows what it owns": (
        EPOCHS
        + """
        61.1 a TAKEN [orders-1]
        61.5 b Reconciling assignment with local epoch 1
        600 b OLD
        """,
        OPEN,
        ["stranded"],
    ),
    "848: one has no listener, and nothing moves": (
        EPOCHS + "61.5 b Reconciling assignment with local epoch 1\n 600 b OLD",
        OPEN,
        [],
    ),
    # F. who a process is
    "a console beside the file": (
        A_HAS_BOTH + A_HAS_BOTH.replace(" a ", " a>console ") + "600 a OLD",
        FINE,
        [],
    ),
    "a copy of half a log": (
        A_HAS_BOTH + "3.4 a>half JOINED 7\n 3.46 a>half GIVEN orders-0, orders-1\n 600 a OLD",
        FINE,
        [],
    ),
    "a static member that was killed": (
        """
        3.4 p/i>before JOINED 7
        3.5 p/i>before SYNCED 7
        3.6 p/i>before GIVEN orders-0
        30.5 p/i#2 JOINED 7
        30.6 p/i#2 SYNCED 7
        30.7 p/i#2 GIVEN orders-0
        600 p/i#2 OLD
        """,
        FINE,
        [],
    ),
    "a static member that was killed, in one file": (
        """
        3.4 p/i JOINED 7
        3.5 p/i SYNCED 7
        3.6 p/i GIVEN orders-0
        30.5 p/i#2 JOINED 7
        30.6 p/i#2 SYNCED 7
        30.7 p/i#2 GIVEN orders-0
        600 p/i#2 OLD
        """,
        FINE,
        [],
    ),
    "a static member in place of the one that was planned for": (
        f"""
        3.4 p/i#1>before JOINED 7
        3.41 p/i#1>before PLAN 7 {share(**{"i#1": "orders-0"})}
        3.5 p/i#1>before SYNCED 7
        3.6 p/i#1>before GIVEN orders-0
        30.5 p/i#2 JOINED 7
        30.6 p/i#2 SYNCED 7
        30.7 p/i#2 GIVEN orders-0
        300 p/i#2 TAKEN orders-0
        300.1 p/i#2 LEAVE the consumer is being closed
        """,
        FINE,
        [],
    ),
    "two processes of one client id, no copy of each other": (
        "3.4 p>x JOINED 7\n3.5 p>x GIVEN orders-0\n3.4 q JOINED 7\n9 q GIVEN orders-0\n20 p>x TAKEN orders-0",
        WRONG,
        ["owned-twice"],
    ),
    # G. members whose logs are not here
    "the plan names somebody else": (
        A_HAS_BOTH
        + f"""
        61.2 a TAKEN orders-0, orders-1
        61.3 a JOINED 8
        61.31 a PLAN 8 {share(a="orders-0", z="orders-1")}
        61.4 a SYNCED 8
        61.41 a GIVEN orders-0
        600 a OLD
        """,
        OPEN,
        [],
    ),
    "a follower alone": (
        """
        3.4 a JOINED 7
        3.5 a SYNCED 7
        3.6 a GIVEN orders-0, orders-1
        61.2 a TAKEN orders-0, orders-1
        61.3 a JOINED 8
        61.4 a SYNCED 8
        61.5 a GIVEN orders-0
        600 a OLD
        """,
        OPEN,
        ["stranded"],
    ),
    "the plan gives it to nobody": (
        A_HAS_BOTH
        + f"""
        61.2 a TAKEN orders-0, orders-1
        61.3 a JOINED 8
        61.31 a PLAN 8 {share(a="orders-0")}
        61.4 a SYNCED 8
        61.41 a GIVEN orders-0
        600 a OLD
        """,
        WRONG,
        ["stranded"],
    ),
    "the broker counts one more": (
        A_HAS_BOTH
        + f"""
        61.2 a TAKEN orders-0, orders-1
        61.25 broker Stabilized group orders generation 8 (__consumer_offsets-0) with 2 members.
        61.3 a JOINED 8
        61.31 a PLAN 8 {share(a="orders-0")}
        61.4 a SYNCED 8
        61.41 a GIVEN orders-0
        600 a OLD
        """,
        OPEN,
        ["stranded"],
    ),
    # H. clocks
    "an hour ahead": (
        A_HAS_BOTH
        + (
            B_JOINS
            + "61.5 a TAKEN orders-1\n"
            + B_JOINS.replace("61", "62").replace(" 8", " 9")
            + "62.5 b GIVEN orders-1"
        )
        .replace(" b ", " b>b+1h ")
        .replace("62.3 a", f"62.31 a PLAN 9 {share(a='orders-0', b='orders-1')}\n62.3 a"),
        FINE,
        [],
    ),
    "an hour ahead, and two own it for ten seconds": (
        A_HAS_BOTH
        + (B_JOINS + B_JOINS.replace("61", "62").replace(" 8", " 9") + "62.5 b GIVEN orders-1").replace(
            " b ", " b>b+1h "
        )
        + "\n72.5 a TAKEN orders-1",
        WRONG,
        ["owned-twice"],
    ),
    # I. a rebalance that nobody answers
    "rebalancing for twenty minutes": (
        A_HAS_BOTH + "".join(f"\n{60 + 3 * i} a WHY group is already rebalancing" for i in range(400)),
        WRONG,
        ["never-settles"],
    ),
    "rebalancing for a while, in an old release": (
        A_HAS_BOTH
        + "".join(
            f"\n{60 + 3 * i} a Attempt to heartbeat failed since group is rebalancing" for i in range(120)
        ),
        WRONG,
        ["never-settles"],
    ),
    "closed after it was told": (
        A_HAS_BOTH
        + """
        60 a TAKEN orders-0, orders-1
        60.1 a LEAVE the consumer is being closed
        60.2 a WHY consumer pro-actively leaving the group
        900 b OLD
        """,
        FINE,
        [],
    ),
    # K. finished rebalances with a reason
    "a topic that grows twice": (
        A_HAS_BOTH
        + "".join(
            f"""
            {at} a WHY cached metadata has changed from x at the beginning of the rebalance to y
            {at + 1} a JOINED {7 + n}
            {at + 1.1} a PLAN {7 + n} {share(a="orders-0, orders-1")}
            {at + 1.2} a SYNCED {7 + n}
            {at + 2} a JOINED {8 + n}
            {at + 2.1} a PLAN {8 + n} {share(a="orders-0, orders-1")}
            {at + 2.2} a SYNCED {8 + n}
            """
            for at, n in ((100, 1), (340, 3))
        )
        + "460 a OLD",
        FINE,
        [],
    ),
    "a topic that grows, in a release that says no reason": (
        A_HAS_BOTH
        + "".join(
            f"""
            {at + 1} a JOINED {7 + n}
            {at + 1.1} a PLAN {7 + n} {share(a=", ".join(f"orders-{i}" for i in range(2 + n)))}
            {at + 1.2} a SYNCED {7 + n}
            """
            for at, n in ((100, 1), (240, 2), (340, 3), (400, 4))
        )
        + "460 a OLD",
        FINE,
        [],
    ),
    # N. order inside a millisecond
    "empty in the millisecond in which it prepares": (
        A_HAS_BOTH
        + """
        50 broker Member a-uuid in group orders has failed, removing it from the group.
        50.001 broker PREPARE 7 removing member a-uuid on heartbeat expiration.
        50.001 broker Group orders with generation 8 is now empty.
        900 b OLD
        """,
        FINE,
        [],
    ),
    "prepares in the millisecond in which it was stable": (
        A_HAS_BOTH
        + """
        50.001 broker Stabilized group orders generation 8 with 1 members.
        50.001 broker PREPARE 8 x
        900 a OLD
        """,
        WRONG,
        ["never-settles"],
    ),
    "joins in the millisecond in which it synced": (
        A_HAS_BOTH + "3.46 a REJOIN\n 900 a OLD",
        WRONG,
        ["never-settles"],
    ),
    # P. lines that say it outright
    "given what it did not ask for, once a second": (
        "".join(
            f"""
            {n} b JOINED {n}
            {n}.1 b SYNCED {n}
            {n}.2 b Assigned partition other-0 for non-subscribed topic; subscription is [orders]
            {n}.3 b TAKEN []
            {n}.4 b REJOIN
            """
            for n in range(2, 20)
        ),
        WRONG,
        ["never-settles"],
    ),
    # D. nothing to judge
    "assign() and no group": (
        "0 a Subscribed to partition(s): orders-0\n1 a Cluster ID: xyz\n600 a OLD",
        OPEN,
        [],
    ),
    "the logger of partitions is off": ("3 a JOINED 7\n3.1 a SYNCED 7\n600 a OLD", OPEN, []),
    "the logger of partitions is off in one of two": (
        A_HAS_BOTH.replace("orders-0, orders-1]", "orders-0]") + B_JOINS + "600 a OLD",
        OPEN,
        [],
    ),
    "a broker alone": (
        "1 broker Stabilized group orders generation 7 with 2 members.\n600 broker x",
        OPEN,
        [],
    ),
    # B. what is not understood
    "a line that goes on otherwise": (
        A_HAS_BOTH + "600 a GIVEN orders-0 or not",
        OPEN,
        [],
    ),
    # L. the headline
    "a zombie after a long pause": (
        A_HAS_BOTH
        + f"""
        61.3 b JOINED 8
        61.31 b PLAN 8 {share(b="orders-0, orders-1")}
        61.4 b SYNCED 8
        61.5 b GIVEN orders-0, orders-1
        76.5 a LOST orders-0, orders-1
        """,
        WRONG,
        ["owned-by-zombie", "owned-by-zombie"],
    ),
}


def audited(log, folder):
    files: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, log.splitlines())):
        file, written = text(line)
        files.setdefault(file, []).append(written)
    folder.mkdir(exist_ok=True)
    for file, lines in files.items():
        (folder / file).write_text("".join(f"{line}\n" for line in lines))
    return run_audit(AuditPlan(paths=(str(folder),), out=folder.parent / f"{folder.name}-out"))


@pytest.mark.parametrize(("log", "verdict", "checks"), CASES.values(), ids=CASES)
def test_the_answer_is_right(log, verdict, checks, tmp_path):
    found = audited(log, tmp_path)
    gating = sorted(one.check for one in found.findings if found.plan.gates(one.level))
    assert (found.verdict, gating) == (verdict, checks), headline(found)


def test_a_member_id_with_blanks_is_one_that_is_removed():
    from rebalance_verifier.pipeline.audit.sources.parsing import LineParser

    who = "orders@pod-1 (github.com/segmentio/kafka-go)-uuid"
    left = "has left group orders through explicit `LeaveGroup`"
    parser = LineParser()
    texts = [
        f"Member {who} in group orders has failed, removing it from the group",
        f"Member MemberMetadata(memberId={who}, groupInstanceId=None, clientId=orders) {left}",
        f"Member {who} {left} request; client reason: x",
        f"[GroupId orders] Member {who} fenced from the group because its session expired.",
        f"[Group orders] Dynamic Member {who} has left group through explicit `LeaveGroup` request",
    ]
    lines = [text(f"{second} broker {one}")[1] for second, one in enumerate(texts)]
    parser.content("broker.log", enumerate(lines, 1))
    assert [(row.kind, row.group, row.member) for row in parser.rows] == [("removed", "orders", who)] * 5
    assert not parser.malformed


TOPIC = "K7MngpSETGidoNpQUjsIsQ"
GROUP = "[GroupId orders] "
TARGET = f"{GROUP}Computed a new target assignment for epoch 7 with 'uniform' assignor"
STATE = f"{GROUP}Member m 1 new assignment state: epoch=8, previousEpoch=6, state="
NOTHING = "m@2=MemberAssignment(partitions={})"
REJOINS = f"{GROUP}Static member with instance id i re-joins the consumer group using the consumer protocol."
GONE = [("removed", "m 1", None, None)]
TOLD = [("stable", None, 7, None), ("planned", "m 1", 7, 0)]
GRANTED = [("granted", "m 1", 8, 0)]


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        # As 3.7 to 4.4 write it: the plan at INFO or at DEBUG, from 4.3 on the epoch of each partition.
        (
            f"{TARGET}: {{m 1=Assignment(partitions={{{TOPIC}=[0, 12]}})}}.",
            [*TOLD, ("planned", "m 1", 7, 12)],
        ),
        (
            f"{TARGET} in 31ms: {{m 1=MemberAssignment(partitions={{{TOPIC}=[0]}}), {NOTHING}}}.",
            [*TOLD, ("planned", "m@2", 7, None)],
        ),
        (f"{TARGET} in 0ms.", TOLD[:1]),
        (
            f"{STATE}A_B, assignedPartitions=[{TOPIC}-0@8, {TOPIC}-1@6] and revokedPartitions=[{TOPIC}-2@6].",
            [*GRANTED, ("granted", "m 1", 8, 1)],
        ),
        (f"{STATE}STABLE, assignedPartitions=[{TOPIC}-0] and revokedPartitions=[].", GRANTED),
        (f"{REJOINS} Created a new member x to replace the existing member m 1.", GONE),
        (f"{GROUP}Static Member m 1 with instance id i left the consumer group.", GONE),
        (f"{GROUP}Static member m 1 with instance id i temporarily left the consumer group.", GONE),
    ],
)
def test_a_broker_tells_what_members_of_the_consumer_protocol_may_own(line, rows):
    from rebalance_verifier.pipeline.audit.sources.parsing import LineParser

    parser = LineParser()
    parser.content("broker.log", [(1, text(f"1 broker {line}")[1])])
    assert not parser.malformed
    assert [(row.kind, row.member, row.generation, row.partition) for row in parser.rows] == rows
    assert {row.protocol for row in parser.rows} <= {"consumer"}
    assert {row.topic for row in parser.rows} <= {TOPIC, None}


def test_the_target_of_a_coordinator_takes_nothing_before_its_time(tmp_path):
    """Its members give away later what it plans for others, under whatever name of the topic."""
    targets = (
        f"{GROUP}Computed a new target assignment for epoch 2 with 'uniform' assignor in 1ms: "
        "{a-uuid=MemberAssignment(partitions={orders=[0]}), "
        "b-uuid=MemberAssignment(partitions={orders=[1]})}."
    )
    found = audited(
        EPOCHS
        + f"60.4 broker {targets}\n60.6 a EPOCH 2 STABLE RECONCILING\n 64 a TAKEN [orders-1]\n"
        + "64.5 b GIVEN [orders-1]\n600 a OLD",
        tmp_path,
    )
    assert found.verdict is FINE, headline(found)
    assert found.worst[0].rebalances == 2


def test_a_broker_alone_tells_of_storms_and_of_long_rebalances(tmp_path):
    log = "".join(
        f"\n{5 * n} broker PREPARE {n} x\n{5 * n + 1} broker Stabilized group orders generation {n + 1} "
        "(__consumer_offsets-0) with 2 members."
        for n in range(1, 81)
    )
    found = audited(
        f"{log}\n2000 broker PREPARE 81 x\n2400 broker Stabilized group orders generation 82 x", tmp_path
    )
    assert [(one.check, one.certain, round(one.seconds)) for one in found.findings] == [
        ("rebalance-storm", True, 395),
        ("long-pause", True, 400),
    ]
    assert found.verdict is OPEN
    assert headline(found).startswith(
        f"INCONCLUSIVE  not judged: {NO_OWNERS}; a storm of 80 generations in 7 min"
    )
    assert "changed" not in found.findings[0].sentence


def test_one_member_in_two_time_zones_is_not_two_owners(tmp_path):
    found = audited(A_HAS_BOTH + A_HAS_BOTH.replace(" a ", " a>a+1h ") + "600 a OLD", tmp_path)
    assert found.verdict is not WRONG, headline(found)


def test_members_without_a_shared_generation_are_not_certain_about_their_clocks(tmp_path):
    """By the clock of the first it was told of the second before it gave its partition away."""
    healthy = (
        EPOCHS
        + "61 a EPOCH 1 STABLE RECONCILING\n 61.1 a TAKEN [orders-1]\n61.6 b GIVEN [orders-1]\n 600 a OLD"
    )
    found = audited(healthy.replace(" a ", " a>a+1h "), tmp_path / "an hour ahead")
    assert (found.verdict, [one.check for one in found.findings]) == (OPEN, ["owned-twice"]), headline(found)
    assert "nothing in these logs compares it" in found.findings[0].doubt
    late = healthy.replace("61.1 a TAKEN", "71.1 a TAKEN")
    assert audited(late, tmp_path / "gives it away late").verdict is WRONG


def test_the_first_line_says_what_was_read_twice(tmp_path):
    found = audited(CASES["a zombie after a long pause"][0], tmp_path)
    assert headline(found) == (
        "VIOLATION  records of 2 partitions were read by two consumers for 15 s: one is a zombie, "
        "its commits are fenced, its side effects are not"
    )


def test_the_reason_for_doubt_is_the_true_one(tmp_path):
    found = audited(CASES["a follower alone"][0], tmp_path)
    assert "a member whose log is not here may own it" in headline(found)
    assert "clock" not in headline(found)
