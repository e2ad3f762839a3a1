"""One Spark session for all tests of a process."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def spark():
    """Two cores, small memory."""
    from rebalance_verifier.pipeline.session import session

    with session("local[2]", memory="1g", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        yield spark
