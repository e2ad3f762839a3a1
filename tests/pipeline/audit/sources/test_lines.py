"""Every line of every file has the number that ``grep -n`` gives it."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from rebalance_verifier.pipeline.audit.sources import lines
from rebalance_verifier.pipeline.audit.sources.reading import NoInput

pytestmark = pytest.mark.slow

BLOCK = "spark.sql.files.maxPartitionBytes"


@contextlib.contextmanager
def blocks_of(spark, size):
    """Spark cuts files into blocks of this many bytes."""
    kept = spark.conf.get(BLOCK)
    spark.conf.set(BLOCK, str(size))
    try:
        yield
    finally:
        spark.conf.set(BLOCK, kept)


def numbered(frame):
    return sorted((row.file, row.line, row.value) for row in frame.collect())


@pytest.mark.nightly
def test_numbers_are_exact_whatever_the_blocks_and_codecs(spark, tmp_path):
    draw = random.Random(6)
    texts: dict[str, str] = {
        name: "".join(f"{i} {'x' * draw.randrange(200)}\n" for i in range(count))
        for name, count in {"a.log": 700, "host 1/b+%20é.log": 300, "z.log.gz": 50, "y.log.bz2": 900}.items()
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        data = text.encode()
        packed = {".gz": gzip.compress(data), ".bz2": bz2.compress(data)}
        path.write_bytes(packed.get(path.suffix, data))
    with blocks_of(spark, 5000):
        found = lines.read(spark, [str(tmp_path)])
        assert len(found.lines.select(F.spark_partition_id()).distinct().collect()) > 10, (
            "else this says nothing about blocks"
        )
        rows = numbered(found.lines)
        counts = {row.file: row.lines for row in found.counts.collect()}
    expected = [
        (str(tmp_path / name), number, line)
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
    ]
    assert rows == sorted(expected)
    assert counts == {str(tmp_path / name): text.count("\n") for name, text in texts.items()}


def test_line_ends_bytes_and_long_lines(spark, tmp_path):
    log = tmp_path / "odd.log"
    log.write_bytes(b"one\r\n\r\n" + b"\xff\xfe\x00bad\n" + b"y" * 1_000_000 + b"\nprogress 1%\r2%\nlast")
    (tmp_path / "empty.log").touch()
    found = lines.read(spark, [str(tmp_path)])
    rows = found.lines.selectExpr("line", "length(value) AS size", "hex(left(value, 4)) AS hex").collect()
    assert sorted((row.line, row.size) for row in rows) == [
        *((1, 3), (2, 0), (3, 6), (4, 1_000_000)),
        *((5, len("progress 1%\r2%")), (6, 4)),
    ]
    assert [row.hex for row in sorted(rows) if row.line == 3] == ["FFFE0062"]
    assert [row.asDict() for row in found.counts.collect()] == [{"file": str(log), "lines": 6}]


def test_a_path_that_matches_nothing_is_named(spark, tmp_path):
    for path in (str(tmp_path / "none.log"), str(tmp_path / "*.log")):
        with pytest.raises(NoInput, match="no such file or directory, or nothing that matches") as caught:
            lines.read(spark, [path])
        assert path in str(caught.value)
    with pytest.raises(NoInput, match="no files there"):
        lines.files(spark, str(tmp_path))


@pytest.mark.nightly
def test_blocks_that_change_are_an_error_and_no_wrong_number(spark, tmp_path):
    (tmp_path / "a.log").write_text("some line\n" * 2000)
    found = lines.read(spark, [str(tmp_path)])
    assert found.counts.count() == 1
    with blocks_of(spark, 5000), pytest.raises(PySparkException, match="blocks of this file changed"):
        found.lines.collect()
