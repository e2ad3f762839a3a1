"""What Spark, DuckDB and the system say when they give up."""

from __future__ import annotations


def message(error: Exception) -> str:
    """What an error says, in one line: what follows is where in Java it came from."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    messages = [line for line in lines if not line.startswith("An error occurred while calling")]
    return messages[0] if messages else type(error).__name__


def of_engine(error: Exception) -> bool:
    """Whether Spark or DuckDB gave up while it ran, and not because it was asked for nonsense."""
    kinds = type(error).__mro__
    names = {kind.__name__ for kind in kinds}
    modules = {kind.__module__.partition(".")[0] for kind in kinds}
    if modules & {"duckdb", "_duckdb"}:
        return "OperationalError" in names
    return not names & {"AnalysisException", "ParseException"} and bool(modules & {"pyspark", "py4j"})


def failure(error: Exception) -> str:
    """What could not be read or written any more, in one line; nothing if it was a mistake of ours."""
    return message(error) if isinstance(error, OSError) or of_engine(error) else ""
