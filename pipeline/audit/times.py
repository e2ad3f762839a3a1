"""Times as columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def column(one: Column | str) -> Column:
    """A column by its name, or itself."""
    return F.col(one) if isinstance(one, str) else one


def seconds(start: Column | str, end: Column | str) -> Column:
    """From one timestamp to another, in seconds with microseconds."""
    return (F.unix_micros(column(end)) - F.unix_micros(column(start))) / 1e6
