"""Targets that were judged, for tests of what is shown of them."""

from __future__ import annotations

from rebalance_verifier.gate.compare.compare import CellMark, Judged, TargetCell, TargetColumn
from rebalance_verifier.gate.search.result import TargetInfo
from rebalance_verifier.report.terminal import comparison as report

ABOUT = report.About("1.2.3", "tiny", 7, lambda cell: None)


def judged(label: str, mark: CellMark, agrees: bool = True, newest: str = "") -> Judged:
    summary, trace = (
        ("t-0 is assigned to A and B", f"traces/{label}.json") if mark is CellMark.BROKEN else ("", "")
    )
    expected = (mark is CellMark.BROKEN) is agrees
    return Judged(
        column=TargetColumn(
            spec=f"x@{label}", label=label, client="acme", assignor="sticky", page="acme", newest=newest
        ),
        clauses={"assign/1-eager": TargetCell(mark, summary, trace)},
        entries={"trust_all_claims": TargetCell(mark, summary, trace, expected)},
    )


ROWS = [
    judged("1.0", CellMark.BROKEN),
    judged("1.1", CellMark.BROKEN),
    judged("2.0", CellMark.HOLDS, agrees=False),
]


def other(mark: CellMark) -> Judged:
    trace = "traces/beef.json" if mark is CellMark.BROKEN else ""
    cells = {f"assign/5-{protocol}": TargetCell(CellMark.HOLDS) for protocol in ("eager", "cooperative")}
    cells["assign/1-cooperative"] = TargetCell(mark, "<b>t|1</b>", trace)
    return Judged(
        column=TargetColumn(spec="y", label="", client="peer", assignor="fair", page="peer"),
        info=TargetInfo(spec="y", name="y", version="0.9"),
        clauses=cells,
    )
