"""Real logs, recorded as ``logs/README.md`` says: what was done to the groups is what is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.times import text_of

LOGS = Path(__file__).parents[1] / "logs"
ORDERS = {("orders", p) for p in range(6)} | {("pay.ments_eu-1", p) for p in range(2)}


@pytest.fixture(scope="module")
def found():
    """Events in order, malformed lines and counts of all logs in one read, as a user would."""
    logs = local.read([str(LOGS / "*.log*")], date="2026-11-21")
    events = sorted(logs.events, key=lambda row: (row.at, row.file, row.line))
    return events, logs.malformed, logs.lines


def of(found, host, *kinds):
    return [row for row in found[0] if row.host == host and (not kinds or row.kind in kinds)]


def test_nothing_is_malformed_and_every_line_is_counted(found):
    _, malformed, lines = found
    assert malformed == []
    plain: Counter[str] = Counter()
    for row in lines:
        plain[Path(row.file).name] += row.lines
    assert plain["range-2.3.1.log"] == len((LOGS / "range-2.3.1.log").read_text().splitlines())
    assert {row.source for row in lines} == {"java", "librdkafka", "broker", None}
    assert all(row.recognised <= row.lines for row in lines)
    assert all((row.recognised > 0) == (row.source is not None) for row in lines)


@pytest.mark.parametrize(
    ("group", "hosts"),
    [
        ("billing", ["cooperative-2.4.1.log", "cooperative-3.9.1.json.log", "cooperative-4.2.0.log"]),
        ("shipping", ["range-2.3.1.log", "range-2.8.2.log", "range-3.5.2.log"]),
        ("modern", ["kip848-4.2.0.log"]),
    ],
)
def test_one_owner_at_a_time_and_all_partitions_owned(found, group, hosts):
    """One clock, one broker, nothing forced: Kafka keeps its promise, to those who live."""
    owner: dict[tuple[str, int], str] = {}
    most = 0
    for row in found[0]:
        if row.source != "java" or row.group != group or row.host not in hosts:
            continue
        tied = (row.topic, row.partition)
        if row.kind in ("started", "closed"):
            owner = {one: who for one, who in owner.items() if who != row.consumer}
        elif row.kind == "assigned" and row.partition is not None:
            assert owner.get(tied, row.consumer) in (row.consumer, *DEAD), (tied, row)
            owner[tied] = row.consumer
        elif row.kind in ("revoked", "lost") and owner.get(tied) == row.consumer:
            del owner[tied]
        most = max(most, len(owner))
    assert most == len(ORDERS)
    assert not [one for one, who in owner.items() if who not in DEAD]


DEAD = ("app-b@cooperative-3.9.1.json.log", "app-c@cooperative-4.2.0.log")
"""Paused beyond max.poll.interval.ms; killed. Both own on until they say that they lost it, or never do."""


def test_the_process_that_was_killed_starts_anew(found):
    rows = of(found, "cooperative-4.2.0.log")
    starts = [row for row in rows if row.kind == "started"]
    assert [row.instance for row in starts] == [None, "third"]
    before = [row for row in rows if row.at < starts[1].at]
    assert "leaving" not in {row.kind for row in before}, "it was killed"
    after = [row for row in rows if row.at >= starts[1].at and row.kind == "assigned"]
    assert {row.member.split("-")[0] for row in after} == {"third"}


def test_who_polls_too_late_loses_everything(found):
    rows = of(found, "cooperative-3.9.1.json.log")
    leaving = next(row for row in rows if row.kind == "leaving")
    assert "poll timeout has expired" in leaving.detail
    lost = [row for row in rows if row.kind == "lost"]
    assert lost
    assert all(row.at > leaving.at for row in lost)
    assert {row.generation for row in lost} == {leaving.generation}


def test_generations_and_members_are_filled_in(found):
    for row in found[0]:
        if row.source == "java" and row.kind in ("assigned", "revoked", "lost") and row.topic:
            assert row.generation is not None, row
    old = of(found, "range-2.3.1.log", "joined", "assigned", "revoked")
    assert [row.generation for row in old if row.kind == "joined"] == [1, 2, 3, 4]
    for row, nearest in zip(old, [None, *old], strict=False):
        if row.kind == "assigned" and nearest is not None and nearest.kind == "joined":
            assert row.generation == nearest.generation


def test_the_leaders_plan_is_what_members_were_given(found):
    """What members say of themselves that log their id; of the generations whose leader logs its plan."""
    planned = {
        (row.group, row.generation, row.member, row.topic, row.partition)
        for row in found[0]
        if row.kind == "planned" and row.group == "shipping"
    }
    generations = {generation for _, generation, *_ in planned}
    given = [
        row
        for row in found[0]
        if row.group == "shipping" and row.kind == "assigned" and row.member and row.generation in generations
    ]
    assert given
    for row in given:
        assert (row.group, row.generation, row.member, row.topic, row.partition) in planned


def test_members_of_the_broker_are_members_of_the_clients(found):
    removed = {row.member for row in found[0] if row.source == "broker" and row.kind == "removed"}
    joined = {row.member for row in found[0] if row.source == "java" and row.kind == "joined" and row.member}
    assert len(removed) >= 8
    assert len(removed & joined) >= 7  # 2.3 and 2.4 do not log theirs
    stable = {
        (row.group, row.generation) for row in found[0] if row.source == "broker" and row.kind == "stable"
    }
    generations = {
        (row.group, row.generation)
        for row in found[0]
        if row.source == "java" and row.kind == "joined" and row.group != "modern"
    }
    assert generations <= stable
    empty = [row for row in found[0] if row.kind == "empty"]
    assert {row.group for row in empty} == {"billing", "shipping"}


def test_librdkafka_loses_what_it_did_not_poll_for(found):
    rows = of(found, "librdkafka-2.16.0-cooperative.log")
    assert {row.group for row in rows} == {"billing"}
    lost = [row for row in rows if row.kind == "lost"]
    assert {row.consumer for row in lost} == {"app-2#consumer-3@librdkafka-2.16.0-cooperative.log"}
    assert any(row.kind == "reset" and "max.poll.interval.ms" in (row.detail or "") for row in rows)
    kinds = Counter(row.kind for row in rows)
    assert kinds["assigned"] == kinds["revoked"] + kinds["lost"], "all consumers were closed"
    assert kinds["started"] == kinds["closed"] == 3
    assert all(row.generation is not None for row in rows if row.kind == "assigned")


def test_librdkafka_through_a_python_logger(found):
    rows = of(found, "librdkafka-2.16.0-range.python.log")
    kinds = Counter(row.kind for row in rows)
    assert kinds["assigned"] == kinds["revoked"] > 8
    assert {row.topic for row in rows if row.kind == "subscribed"} == {"orders"}
    assert all(text_of(row.at).startswith("2026-11-21") for row in rows)


def test_librdkafka_as_a_member_of_the_consumer_protocol(found):
    """It logs the epoch with each heartbeat: the first is an event, and each new one; so is each target."""
    rows = of(found, "librdkafka-2.16.0-consumer.log")
    kinds = ("joining", "joined", "synced", "reset", "leaving")
    seen = {who: [(r.kind, r.generation) for r in rows if r.consumer.startswith(who) and r.kind in kinds]
            for who in ("confluent-1", "confluent-2")}  # fmt: skip
    assert seen["confluent-2"][0][0] == "joining"
    first = [(kind, generation) for kind, generation in seen["confluent-1"] if kind in ("joined", "synced")]
    targets = [("synced", 2), ("synced", 2), ("synced", 5)]
    assert first == [("joined", 2), *targets[:2], ("synced", 3), ("joined", 5), *targets[2:]]
    assert [kind for kind, _ in seen["confluent-1"] if kind == "joining"] == ["joining"] * 2
    assert "reset" in {kind for kind, _ in seen["confluent-1"]}
    assert {row.group for row in rows} == {"recorded"}
    assert {row.generation for row in rows if row.kind == "assigned"} == {2, 3, 4, 5}
    [lost] = {row.generation for row in rows if row.kind == "lost"}
    assert lost == 3
    ids = {row.consumer.split("#")[0]: row.member for row in rows if row.kind == "joined"}
    assert len({*ids.values()}) == 2
