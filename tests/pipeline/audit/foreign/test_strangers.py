"""Small logs of strangers, each once read wrong; the right answer was written down before."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.report.html import audit as html
from rebalance_verifier.report.terminal.audit import data, headline, render

from tests.pipeline.audit.foreign.clients import librdkafka
from tests.pipeline.audit.foreign.epochs import Java
from tests.pipeline.audit.foreign.layouts import files
from tests.pipeline.audit.foreign.stories import A, Story, both
from tests.pipeline.audit.foreign.test_corpus import audited, told_by

PREFIX = "[Consumer {}clientId=orders, groupId=orders] "
GENERATION = "Generation{{generationId={}, memberId='{}', protocol='range'}}"
FENCED = "Resetting generation and member id due to: encountered FENCED_INSTANCE_ID from HEARTBEAT response"


def java(*steps, instance=""):
    """Return the lines of a Java consumer: (time, what happens, its arguments)."""
    lines = []
    for time, act, *rest in steps:
        match act:
            case "starts":
                texts = ["Cluster ID: rSbXMg_bQVWwnDTJhRWkOw", "(Re-)joining group"]
            case "joins":
                generation, member, *numbers = rest
                state = GENERATION.format(generation, member)
                texts = [
                    f"Successfully {what} {state}"
                    for what in ("joined group with generation", "synced group in generation")
                ]
                texts.append(
                    "Adding newly assigned partitions: " + ", ".join(f"orders-{number}" for number in numbers)
                )
            case "revokes":
                texts = [
                    "Revoke previously assigned partitions "
                    + ", ".join(f"orders-{number}" for number in rest)
                ]
                texts.append("(Re-)joining group")
            case _:
                texts = [act]
        lines += [f"2026-10-25 {time} INFO {PREFIX.format(instance)}{text}" for text in texts]
    return lines


def certain(found):
    return {one.check for one in found.findings if found.plan.gates(one.level) and one.certain}


def test_what_a_member_gives_away_and_no_line_gave_it_is_not_its_own_since_before_it_joined(tmp_path):
    """No rebalance listener: a gives orders-2 away at 75 s, b joined at 70 s and gives it away at 300 s."""
    story = Story(
        "0 a joins\n1 a told 1\n1.1 a acks 1\n70 b joins\n75 a told 1\n75.1 a revoked orders-2 orders-3\n"
        "75.2 a acks 2\n76 b told 2\n76.1 b acks 2\n300 b told 3\n300.1 b revoked orders-2\n300.2 b acks 4\n"
        "900 a quiet\n900 b quiet\n"
    )
    lines: dict[str, list[str]] = {name: [] for name in "ab"}
    for one in told_by(story, Java(listens=False)):
        second = round(one.second * 1000)
        time = f"10:{second // 60000:02}:{second // 1000 % 60:02},{second % 1000:03}"
        lines[one.member].append(f"2026-10-25 {time} INFO {one.message}")
    found = audited({f"{name}.log": of_one for name, of_one in lines.items()}, tmp_path)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not certain(found)


def test_two_members_of_the_consumer_protocol_in_one_file_are_not_one_that_comes_back(tmp_path):
    write = Java()
    write.members["b"].name = "b"
    told = told_by(
        Story(
            "0 a joins\n1 a told 1\n1.1 a assigned orders-0\n2 b joins\n3 b told 2\n"
            "3.1 b assigned orders-1\n100 a told 3\n100.1 a assigned orders-2\n"
        ),
        write,
    )
    lines = [
        f"2026-10-25 10:0{int(one.second) // 60}:{one.second % 60:06.3f} INFO {one.message}" for one in told
    ]
    found = audited(
        {"all.log": [line.replace("orders-a,", "o,").replace("orders-b,", "o,") for line in lines]}, tmp_path
    )
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "several processes share this client id" in found.notes[0].text


def test_an_hour_of_local_time_that_is_there_twice_makes_nothing_certain(tmp_path):
    """Berlin, at the end of summer time: generation 1 at 02:59, 2 and 3 after it at 02:01 and 02:02."""
    a = java(
        ("02:59:03,000", "starts"),
        ("02:59:04,000", "joins", 1, "m-a", 0, 1),
        ("02:00:01,000", "revokes", 0, 1),
        ("02:00:02,000", "joins", 2, "m-a", 0, 1),
        ("02:02:00,000", "revokes", 0, 1),
    )
    found = audited({"a.log": a}, tmp_path)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "export these logs with times in UTC" in found.notes[0].text


def test_a_clock_that_one_generation_shows_to_be_wrong_makes_no_gap_certain(tmp_path):
    """The clock of b is an hour behind; a had given orders-1 to it, and took it back."""
    plan = "Finished assignment for group at generation {}: {{m-a=Assignment(partitions=[{}])"
    alone = "orders-0, orders-1"
    a = java(
        ("10:00:00,000", "starts"),
        ("10:00:03,000", plan.format(1, alone) + "}"),
        ("10:00:03,000", "joins", 1, "m-a", 0, 1),
        ("10:01:00,000", "revokes", 0, 1),
        ("10:01:01,000", "joins", 2, "m-a", 0),
        ("10:01:01,000", plan.format(2, "orders-0") + ", m-b=Assignment(partitions=[orders-1])}"),
        ("10:03:00,000", "revokes", 0),
        ("10:03:01,000", "joins", 3, "m-a", 0, 1),
        ("10:03:01,000", plan.format(3, alone) + "}"),
    )
    b = java(
        ("09:00:59,000", "starts"), ("09:01:01,000", "joins", 2, "m-b", 1), ("09:02:59,000", "revokes", 1)
    )
    right = audited({"a.log": a, "b.log": [line.replace(" 09:", " 10:") for line in b]}, tmp_path)
    assert not right.findings
    (tmp_path / "wrong").mkdir()
    wrong = audited({"a.log": a, "b.log": b}, tmp_path / "wrong")
    assert wrong.findings
    assert not certain(wrong)


def test_two_processes_that_fence_each_other_read_the_same_records(tmp_path):
    """One group.instance.id: b replaces a, which reads until a heartbeat tells it so, and dies of that."""
    a = java(
        ("10:00:00,000", "starts"),
        ("10:00:03,000", "joins", 1, "m-a", 0),
        ("10:01:09,000", FENCED),
        ("10:05:00,000", "starts"),
        instance="instanceId=orders-0, ",
    )
    b = java(
        ("10:01:00,000", "starts"),
        ("10:01:01,000", "joins", 1, "m-b", 0),
        ("10:06:00,000", "(Re-)joining group"),
        instance="instanceId=orders-0, ",
    )
    found = audited({"a.log": a, "b.log": b}, tmp_path)
    assert found.verdict is Verdict.VIOLATION
    assert certain(found) == {"owned-by-zombie"}
    assert found.findings[0].seconds == 8.0


def test_a_name_does_not_end_behind_the_quotes_that_nobody_opened(tmp_path):
    """Fluent Bit's standard output: JSON, escaped, within what is no JSON."""
    message = json.dumps({"levelname": "INFO", "message": "(Re-)joining group orders"})
    record = json.dumps({"log": message, "pod": "orders-0"})
    found = audited({"f.log": [f"[0] kube.orders: [[1795860000.000000000, {{}}], {record}]"]}, tmp_path)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (found.events, found.malformed) == (0, 1)


UNTAKEN = (
    A + "60 b starts\n60.5 b joining\n60.9 a revoked orders-0 orders-1\n61 a joining\n"
    + both(61.3, 8, "a", "b") + "61.5 a assigned orders-0\n900 a quiet\n"
)  # fmt: skip
"""b is told in generation 8 what to own, and no line says that it owns it."""


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_log_that_may_be_cut_off_where_its_member_is_told_its_share_makes_no_gap_certain(goes_on, tmp_path):
    lines = files(told_by(Story(UNTAKEN + "900 b quiet\n" * goes_on), librdkafka))
    for of_one in lines.values():
        of_one.append("2026-10-25 12:00:00,000 INFO [main] com.example.App - still here")
    found = audited(lines, tmp_path)
    assert [one.check for one in found.findings] == ["stranded"]
    assert found.findings[0].certain is goes_on
    assert goes_on or "of orders-b" in found.findings[0].doubt


PLAN = ", ".join(f"m-{member}=Assignment(partitions=[orders-{n}])" for n, member in enumerate("abc"))
FINISHED = f"{PREFIX.format('')}Finished assignment for group at generation 7: {{{PLAN}}}"
ALONE = [
    *java(("10:00:00,000", "starts"), ("10:00:03,000", "joins", 7, "m-a", 0)),
    "2026-10-25 10:12:00,000 INFO still here",
]
COORDINATOR = "2026-10-25 10:00:02,998 INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=7] "
TARGET = ", ".join(
    f"{member}=MemberAssignment(partitions={{Xk2vPpUlTmWg8gA1wB1rUg=[0]}})" for member in "ABC"
)
KGO = "2026-10-25 10:00:0{} [INFO] {}; group: orders, {}"
INCOMPLETE = {
    "the leader's plan": [
        *ALONE[:3],
        f"2026-10-25 10:00:03,000 INFO {FINISHED}",
        *ALONE[3:],
    ],
    "a coordinator that counts": [
        *ALONE,
        COORDINATOR + "Stabilized group orders generation 7 with 3 members.",
    ],
    "a coordinator of the consumer protocol": [
        *(
            f"2026-10-25 10:00:0{second} INFO {PREFIX.format('')}{text}"
            for second, text in (
                (1, "Member A with epoch 0 transitioned from UNSUBSCRIBED to JOINING."),
                (3, "Member A with epoch 4 transitioned from JOINING to RECONCILING."),
                (4, "Adding newly assigned partitions: [orders-0]"),
                (5, "Member A with epoch 4 transitioned from RECONCILING to STABLE."),
            )
        ),
        COORDINATOR
        + "[GroupId orders] Computed a new target assignment for epoch 4 with 'uniform' assignor: "
        + f"{{{TARGET}}}.",
    ],
    "franz-go's plan": [
        KGO.format(
            3,
            "joined, balancing group",
            "member_id: m-a, generation: 7, balance_protocol: range, leader: true",
        ),
        "2026-10-25 10:00:04 [INFO] balanced; plan: m-a{orders[0]}, m-b{orders[1]}, m-c{}",
        KGO.format(5, "synced", "assigned: orders[0]"),
        KGO.format(6, "new group session begun", "added: orders[0], lost: "),
    ],
    "librdkafka's leader": files(
        told_by(
            Story("0 a starts\n1 a joined 7 3\n2 a synced 7\n3 a assigned orders-0\n900 a quiet\n"),
            librdkafka,
        )
    ).popitem()[1],
}


@pytest.mark.parametrize("log", INCOMPLETE.values(), ids=INCOMPLETE)
def test_the_first_line_says_whose_logs_are_missing(log, tmp_path):
    found = audited({"a.log": log}, tmp_path)
    missing = "the logs of 2 of the 3 members of group orders are missing or cut short"
    assert found.verdict is Verdict.INCONCLUSIVE
    assert headline(found) == f"INCONCLUSIVE  not judged: {missing}"
    assert render(found).startswith(headline(found))
    assert missing in html.render(found)
    assert data(found)["groups"]["members_without_log"] == [{"group": "orders", "members": 3, "missing": 2}]


def test_only_in_the_answer_to_a_leader_members_are_counted(tmp_path):
    log = [
        line.replace("LeaderId orders-a-5d1f (me)", "LeaderId x")
        for line in INCOMPLETE["librdkafka's leader"]
    ]
    assert log != INCOMPLETE["librdkafka's leader"]
    assert audited({"a.log": log}, tmp_path).verdict is Verdict.CONFORMANT


def test_a_violation_does_not_hide_that_logs_are_missing(tmp_path):
    """b is given what a has, in generation 8, whose leader counts three members."""
    steps = (
        A + "60 b starts\n60.5 b joining\n" + both(61.3, 8, "a", "b", "c") + "61.5 b assigned orders-1\n"
        "75.5 a revoked orders-1\n75.6 a joining\n" + both(76, 9, "a") + "900 a quiet\n"
    )
    told = [one for one in told_by(Story(steps), librdkafka) if one.member != "c"]
    found = audited(files(told), tmp_path)
    assert found.verdict is Verdict.VIOLATION
    assert headline(found).endswith("; the log of 1 of the 3 members of group orders is missing or cut short")


def test_the_log_of_a_member_that_dies_while_it_joins_is_here(tmp_path):
    """The leader plans for b, which says only under which id it asks to join, and starts again."""
    finished = "Finished assignment for group at generation {}: {{m-a=Assignment(partitions=[orders-0]){}}}"
    a = java(
        ("10:00:00,000", "starts"),
        ("10:00:03,000", "joins", 7, "m-a", 0),
        ("10:00:03,000", finished.format(7, ", m-b=Assignment(partitions=[orders-1])")),
        ("10:00:48,000", "revokes", 0),
        ("10:00:49,000", "joins", 8, "m-a", 0, 1),
        ("10:00:49,000", finished.format(8, "")),
        ("10:05:02,000", "revokes", 0, 1),
        ("10:05:03,000", "joins", 9, "m-a", 0),
        ("10:05:03,000", finished.format(9, ", m-c=Assignment(partitions=[orders-1])")),
    )
    killed = "Request joining group due to: need to re-join with the given member-id: m-b"
    restarted = ("10:05:00,000", "starts"), ("10:05:03,000", "joins", 9, "m-c", 1)
    b = java(("10:00:01,000", "starts"), ("10:00:01,500", killed), *restarted)
    found = audited({"a.log": a, "b.log": [line.replace("=orders,", "=b,", 1) for line in b]}, tmp_path)
    assert found.verdict is Verdict.CONFORMANT, headline(found)
