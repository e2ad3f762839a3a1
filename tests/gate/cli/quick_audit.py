"""``rebalance`` with an audit that costs nothing, for tests of what goes on around it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import SimpleNamespace


def audit(events, thresholds, until=None):
    """One finding in each group, the same whenever it is asked for, whatever happened there."""
    from rebalance.pipeline.audit.frames import FINDINGS

    always = {"check": "never-settles", "level": "liveness", "seconds": 1.0, "certain": True, "places": [],
              "began": datetime(2026, 11, 21, tzinfo=UTC), "detail": "it is so"}  # fmt: skip
    rows = []
    for (group,) in events.select("group").distinct().orderBy("group").collect():
        row = dict.fromkeys(FINDINGS.names) | always | {"id": f"{group.encode().hex():0>12}", "group": group}
        rows.append(tuple(row.values()))
    frame = events.sparkSession.createDataFrame(rows, FINDINGS)
    return SimpleNamespace(findings=frame, release=lambda: None)


if __name__ == "__main__":
    from rebalance.gate.cli import main as cli
    from rebalance.pipeline.audit import batches

    vars(batches)["audit"] = audit
    sys.exit(cli.main(sys.argv[1:]))
