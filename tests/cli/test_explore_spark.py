"""``rebalance explore --engine spark``: the report of the local engine, from Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GROUP = ("explore", "dynamic", "--members", 1, "--partitions", 1)
BROKEN = (*GROUP, "--switch", "reset_on_retriable")
"""Breaks a clause at depth 4."""


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_violation_is_that_of_the_local_engine(rebalance):
    """Same verdict, same trace, same counts; and the levels are gone when nobody needs them."""
    local, spark = (rebalance(*BROKEN, "--engine", e, "--format", "json") for e in ("fast", "spark"))
    assert local.code == spark.code == 1, spark.err
    ours, theirs = (json.loads(ran.out) for ran in (local, spark))
    assert "speed" not in theirs
    del ours["speed"]
    for document in (ours, theirs):
        document.pop("engine")
        document["states"].pop("collision")
    assert ours == theirs
    assert not list(Path(".rebalance/explore").iterdir())


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_a_bounded_search_is_gone_on_with(rebalance, tmp_path):
    spark = ("--engine", "spark", "--out", str(tmp_path / "out"), "--no-liveness")
    ran = rebalance(*GROUP, "--depth", 1, *spark)
    assert ran.code == 3, ran.err
    assert "the same command with --resume" in ran.out
    (where,) = (tmp_path / "out").iterdir()
    before = (where / "surveys" / "level=001" / "_SUCCESS").stat().st_mtime_ns
    ran = rebalance(*GROUP, "--depth", 2, *spark, "--resume")
    assert ran.code == 3
    assert "depth 2" in ran.out
    assert (where / "surveys" / "level=001" / "_SUCCESS").stat().st_mtime_ns == before
    assert sorted(path.name for path in (where / "levels").iterdir()) == [
        "level=000",
        "level=001",
        "level=002",
    ]


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("--master", "local[2]"), "--master goes with --engine spark only"),
        (("--engine", "spark", "--exact"), "--exact does not go with --engine spark"),
        (("--engine", "spark", "--memory", "1G"), "--memory does not go with --engine spark"),
        (("--engine", "spark", "--dfs"), "--dfs does not go with --engine spark"),
        (("--engine", "spark", "--swarm"), "--swarm does not go with --engine spark"),
        (("--engine", "spark", "--master", "spark://h:7077"), "spark://h:7077 needs --out DIR"),
    ],
)
def test_what_does_not_go_together_is_said(rebalance, argv, says):
    ran = rebalance(*GROUP, *argv)
    assert ran.code == 2
    assert says in ran.err


def test_no_java_is_said_in_one_line(rebalance, monkeypatch, tmp_path):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    ran = rebalance(*GROUP, "--engine", "spark")
    assert ran.code == 2
    assert "Spark needs Java 17 or newer" in ran.err
    assert "Traceback" not in ran.err
