"""Planted logs are written by Spark, and judged there."""

from tests.pipeline.conftest import spark

__all__ = ["spark"]
