"""What operators export: the same incident in many shapes is the same events; what cannot be told apart is
named."""

from __future__ import annotations

import pytest
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.parsing import GLUED
from rebalance_verifier.pipeline.audit.sources.settling import (
    CLUSTERS,
    MIXED,
    LoggedClient,
    mixed,
    on_several_clusters,
)
from rebalance_verifier.pipeline.audit.sources.times import text_of

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import PODS, deploy, incident


def happened(events):
    """What happened, without who wrote it where; consumers by the order in which they come."""
    numbers: dict[str, int] = {}
    rows = sorted(events, key=lambda e: (e.at, str(e.member), e.kind, str(e.topic), e.partition or 0))
    for row in sorted(rows, key=lambda e: (e.member or "", e.at)):
        numbers.setdefault(row.consumer, len(numbers))
    return [
        (
            row.at,
            row.kind,
            row.group,
            row.member,
            row.generation,
            row.topic,
            row.partition,
            numbers[row.consumer],
        )
        for row in rows
    ]


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return local.read(shapes.write(shapes.per_pod(incident()), tmp_path_factory.mktemp("pods")))


@pytest.mark.parametrize("shape", shapes.APART, ids=lambda shape: shape.__name__)
def test_the_same_events_in_every_shape(expected, shape, tmp_path):
    logs = local.read(shapes.write(shape(incident()), tmp_path))
    assert logs.malformed == []
    assert logs.unread == []
    assert logs.notes == []
    assert happened(logs.events) == happened(expected.events)
    assert len({event.consumer for event in logs.events}) == 3
    assert len({event.host for event in logs.events}) == 3
    assert text_of(logs.until or 0) == "2026-11-21T18:16:30.000000Z"
    assert {(one.release, one.assignor) for one in logs.clients} == {("3.4.0", "cooperative-sticky")}


def test_nothing_tells_them_apart(tmp_path):
    logs = local.read(shapes.write(shapes.merged(incident()), tmp_path))
    (note,) = logs.notes
    assert (note.kind, note.group, note.consumer) == (MIXED, "billing", "orders@all.log")
    assert note.text.startswith("orders@all.log joins generation 2 as orders-")
    assert f"{tmp_path}/all.log:15: several processes share this client id" in note.text
    assert "no pod, host, prefix, file or instance id" in note.text
    assert mixed(logs.notes) == ["billing"]


def test_without_member_ids_a_generation_that_is_joined_twice_is_noticed(tmp_path):
    texts = shapes.merged(incident())["all.log"].decode().splitlines()
    old = [line for line in texts if "Successfully synced" not in line]
    old = [line.split("Generation{generationId=")[0] + line.split("generationId=")[1][:1]
           if "Generation{" in line else line for line in old]  # fmt: skip
    (tmp_path / "all.log").write_text("\n".join(old))
    (note,) = local.read([str(tmp_path)]).notes
    assert "joins generation 2 twice" in note.text


def test_a_line_that_a_shipper_delivers_twice_is_one(expected, tmp_path):
    for name, data in shapes.per_pod(incident()).items():
        (tmp_path / name).write_text("".join(2 * line for line in data.decode().splitlines(keepends=True)))
    logs = local.read([str(tmp_path)])
    assert logs.notes == []
    assert {*happened(logs.events)} == {*happened(expected.events)}


@pytest.mark.parametrize("second", ["(Re-)joining group", "Adding newly assigned partitions: orders-0"])
def test_two_lines_in_one_are_not_read_as_the_first(second, tmp_path):
    line = "2026-11-21 18:00:00,000 INFO [Consumer clientId=c, groupId=g] {}"
    whole = "".join(map(line.format, ("(Re-)joining group ", second)))
    (tmp_path / "a.log").write_text(f"{line.format('(Re-)joining group')}\n{whole}\n")
    logs = local.read([str(tmp_path)])
    assert [event.line for event in logs.events] == [1]
    assert [bad.why for bad in logs.malformed] == [GLUED]


SESSIONS = (
    "consumergroup/session/sarama-a/7 heartbeat loop stopped",
    "consumergroup/session/sarama-{}/{} heartbeat loop stopped",
    "consumergroup/session/sarama-a/9 heartbeat loop stopped",
)


@pytest.mark.parametrize(("other", "generation", "several"), [("b", 7, 1), ("b", 8, 1), ("a", 8, 0)])
def test_members_of_sarama_in_one_log_are_noticed(other, generation, several, tmp_path):
    texts = [
        "client/coordinator coordinator for g is #1 (k:9092)",
        "consumer/broker/1 added subscription to t/0",
    ]
    texts += [text.format(other, generation) for text in SESSIONS]
    lines = [f"[sarama] 2026/11/21 18:00:0{n}.000001 {text}\n" for n, text in enumerate(texts)]
    (tmp_path / "a.log").write_text("".join(lines))
    assert len(local.read([str(tmp_path)]).notes) == several


def test_one_name_on_two_machines(tmp_path):
    """What tells them apart in one file does not in two: then the file does."""
    lines = incident()
    for number in range(3):
        own = [f"orders-1  | {one.plain()}" for one in lines if one.pod == number]
        (tmp_path / f"host{number}.log").write_text("\n".join(own))
    logs = local.read([str(tmp_path)])
    assert logs.notes == []
    assert {event.consumer for event in logs.events} == {f"orders@host{n}.log:orders-1" for n in range(3)}


def test_one_process_in_two_files(expected, tmp_path):
    """A member id is nobody else's: what a rotation nobody knows cut in two is put together."""
    files = shapes.per_pod(incident())
    name = f"{PODS[0]}.log"
    texts = files.pop(name).splitlines(keepends=True)
    shapes.write({**files, "current": b"".join(texts[14:]), "before": b"".join(texts[:14])}, tmp_path)
    logs = local.read([str(tmp_path)])
    assert happened(logs.events) == happened(expected.events)


def test_instances_of_one_client_id_in_one_file(tmp_path):
    lines = [
        one._replace(text=one.text.replace("[Consumer ", f"[Consumer instanceId=i-{one.pod}, "))
        for one in incident()
    ]
    logs = local.read(shapes.write(shapes.merged(lines), tmp_path))
    assert logs.notes == []
    assert {event.consumer for event in logs.events} == {f"orders@all.log:i-{n}" for n in range(3)}


def test_the_end_is_that_of_whatever_line(tmp_path):
    logs = local.read(shapes.write(shapes.per_pod(deploy()), tmp_path))
    last = max(event.at for event in logs.events)
    assert (logs.until or 0) - last > 7000e6


def test_an_offset_that_the_shipper_knows_and_the_logger_does_not(tmp_path):
    """The logger writes local time; what is around it is in UTC."""
    inner = "2026-11-21 19:00:05,000 INFO [Consumer clientId=c, groupId=g] (Re-)joining group"
    (tmp_path / "a.log").write_text(f"2026-11-21T18:00:05.001Z stdout F {inner}\n")
    (event,) = local.read([str(tmp_path)]).events
    assert text_of(event.at) == "2026-11-21T18:00:05.001000Z"


@pytest.mark.parametrize(
    ("clusters", "several"),
    [
        (("east", "east", None), False),
        (("east", None, None), False),
        (("east", "west", None), True),
    ],
)
def test_who_does_not_log_its_cluster_is_in_no_other(clusters, several):
    clients = [LoggedClient("g", f"c{n}", "java", None, None, one) for n, one in enumerate(clusters)]
    coordinator = LoggedClient("g", None, "broker", None, None, None)
    notes = on_several_clusters([*clients, coordinator, LoggedClient("h", "d", "java", None, None, "north")])
    assert [(note.kind, note.group) for note in notes] == [(CLUSTERS, "g")] * several
