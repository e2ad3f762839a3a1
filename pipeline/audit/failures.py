"""What Spark says when it gives up."""

from __future__ import annotations

import builtins
import re


def spark_message(error: Exception) -> str:
    """What an error of Spark's says, in one line: what follows is where in Java it came from."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    messages = [line for line in lines if not line.startswith("An error occurred while calling")]
    return messages[0] if messages else type(error).__name__


def of_spark(error: Exception) -> bool:
    """Whether Spark gave up while it ran, and not because it was asked for nonsense."""
    kinds = type(error).__mro__
    mistaken = any(kind.__name__ in ("AnalysisException", "ParseException") for kind in kinds)
    return not mistaken and any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in kinds)


def failure(error: Exception) -> str:
    """What could not be read or written any more, in one line; nothing if a mistake of ours ended the stream.

    Of an exception that was raised in Python while Spark called it, Spark shows the traceback; the lines
    without indent name what was raised.
    """
    text = str(error)
    if not of_spark(error):
        return ""
    if "Traceback (most recent call last)" not in text:
        return spark_message(error).rpartition("terminated with exception: ")[2]
    for name, why in re.findall(r"^((?:\w+\.)*\w+): (.+)$", text, re.M):
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, OSError):
            return str(why)
        if name.startswith(("py4j.", "pyspark.")) and not name.endswith("AnalysisException"):
            return str(why)
    return ""
