"""The process of a local Spark that forks its Python workers, begun from the PySpark that is installed.

Spark puts an archive with PySpark's sources before it, which Python would compile anew in every worker. What
is loaded here is there in all workers; nothing of it may start a thread, which a fork would not have. It
stands in for ``pyspark.daemon``, by the setting ``spark.python.daemon.module``.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]

import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

if __name__ == "__main__":
    manager()
