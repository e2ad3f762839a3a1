"""The lines behind a finding are those of the log, where it is there to be read."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

from rebalance_verifier.pipeline.audit.quoting import MAX_SHOWN, quoted
from rebalance_verifier.pipeline.audit.records import LogEvent


def event(path: Path, line: int) -> LogEvent:
    return LogEvent(at=datetime(2026, 1, 2, tzinfo=UTC), kind="assigned", file=str(path), line=line)


def test_lines_of_plain_and_packed_logs(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.log", tmp_path / "b.log.gz"
    plain.write_bytes(b"one\r\ntwo \xff\nthree\n")
    packed.write_bytes(gzip.compress(b"four\n" + b"x" * 9999))
    found = quoted([event(plain, 2), event(plain, 1), event(packed, 2), event(plain, 9)])
    assert found == {
        (str(plain), 1): "one",
        (str(plain), 2): "two \ufffd",
        (str(packed), 2): "x" * MAX_SHOWN,
    }


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    broken = tmp_path / "c.log.gz"
    broken.write_bytes(b"no gzip")
    (tmp_path / "d.zst").write_bytes(b"packed\n")
    assert quoted([event(broken, 1), event(tmp_path / "d.zst", 1), event(tmp_path / "gone", 1)]) == {}
    assert quoted([event(tmp_path, 1)]) == {}
