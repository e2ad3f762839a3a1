"""Heartbeats of the consumer protocol: of the epochs that a client logs the new ones are events."""

from __future__ import annotations

from pathlib import Path

from rebalance_verifier.pipeline.audit.sources import local

CLIENT = "|confluent-1#consumer-1| [thrd:main]: "
BEAT = 'ConsumerGroupHeartbeat of member id "m", group id "g", generation id {}, group instance id "(null)"'
ANSWER = 'ConsumerGroupHeartbeat response received for member id "{}" with epoch {}'


def events(tmp_path: Path, *messages: str) -> list[tuple[str, int | None]]:
    lines = [f"%7|{1795627371.0 + n:.3f}|HEARTBEAT{CLIENT}{message}" for n, message in enumerate(messages)]
    (tmp_path / "one.log").write_text("\n".join(lines) + "\n")
    found = local.read([str(tmp_path / "one.log")])
    assert found.malformed == []
    rows = sorted(found.events, key=lambda row: (row.at, row.line))
    assert {(row.group, row.member) for row in rows if row.generation} <= {("g", "m")}
    return [(row.kind, row.generation) for row in rows]


def joins(epoch: int) -> tuple[str, str]:
    return BEAT.format(0), ANSWER.format("m", epoch)


def test_the_first_epoch_joins_and_each_new_one_is_synced_once(tmp_path: Path) -> None:
    steady = [text for epoch in (2, 2, 3, 3, 3) for text in (BEAT.format(epoch), ANSWER.format("m", epoch))]
    assert events(tmp_path, *joins(2), *steady) == [("joining", None), ("joined", 2), ("synced", 3)]


def test_where_answers_are_not_logged_the_next_request_tells_the_epoch(tmp_path: Path) -> None:
    requests = [BEAT.format(epoch) for epoch in (0, 2, 2, 5)]
    assert events(tmp_path, *requests) == [("joining", None), ("joined", 2), ("synced", 5)]


def test_who_joins_anew_in_its_old_epoch_has_joined_twice(tmp_path: Path) -> None:
    rejoining = "Revoking assignment as lost an rejoining in join state steady"
    assert events(tmp_path, *joins(4), rejoining, *joins(4)) == [
        *(("joining", None), ("joined", 4), ("reset", 4)),
        *(("joining", 4), ("joined", 4)),
    ]


def test_what_was_lost_before_is_not_lost_after_it_joins_again(tmp_path: Path) -> None:
    lost = "current assignment of 1 partition(s) lost: member fenced - rejoining"
    seen = events(
        tmp_path, *joins(2), "add t [0]", lost, "delete t [0]", *joins(5), "add t [0]", "delete t [0]"
    )
    assert [one for one in seen if one[0] in ("assigned", "lost", "revoked")] == [
        *(("assigned", 2), ("lost", 2)),
        *(("assigned", 5), ("revoked", 5)),
    ]
