"""docs/reference/client-metadata.md: the table of model/written.toml in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby

from rebalance_verifier.model.written import GENERATION, JoinSituation, WrittenBy, written

Table = Callable[[Sequence[str], Iterable[Sequence[object]]], str]

HEADS = {
    JoinSituation.REBALANCED: "A rebalance, after an assignment in generation {}",
    JoinSituation.REFUSED: "SyncGroup of generation {} was refused with REBALANCE_IN_PROGRESS",
    JoinSituation.FENCED: "A heartbeat of generation {} was answered with ILLEGAL_GENERATION",
    JoinSituation.EXPELLED: "A heartbeat of generation {} was answered with UNKNOWN_MEMBER_ID",
}


def page(table: Table) -> str:
    """Return what is generated of the page."""
    rows = written()
    return "\n".join(
        [
            "## The first join\n",
            table(
                ("client", "assignors", "release", "JoinGroup", "reason", "subscription", "topics",
                 "user data", "rack"),
                alike(rows, _first),
            ),
            *(f"## {head.format(GENERATION[situation])}\n\n" + table(
                ("client", "assignors", "release", "owned", "generation", "user data"),
                alike(rows, partial(_later, situation)),
            ) for situation, head in HEADS.items()),
            "## The application names a topic twice\n",
            table(("client", "release", "topics"), alike(_one_each(rows), _twice, assignors=False)),
        ]
    )  # fmt: skip


def alike(
    rows: Iterable[WrittenBy], cells: Callable[[WrittenBy], Sequence[object]], *, assignors: bool = True
) -> list[Sequence[object]]:
    """Return the lines of a table: releases that write the same stand in one."""
    lines: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        name = (row.client, row.assignors) if assignors else (row.client,)
        lines.setdefault((name, *cells(row)), []).append(row.release)
    return [
        (*(name if isinstance(name, tuple) else (name,)), ", ".join(releases), *rest)
        for (name, *rest), releases in lines.items()
    ]


def _first(row: WrittenBy) -> Sequence[object]:
    join, read = row.joins[JoinSituation.FIRST], [row.read(JoinSituation.FIRST, one) for one in _names(row)]
    reason = "no field" if join.reason is None else "a text" if join.reason else "empty"
    version = f"{read[0].subscription.version}{', without owned partitions' if read[0].short else ''}"
    return (
        f"v{join.version}",
        reason,
        version,
        read[0].order,
        _each(one.user_data for one in read),
        read[0].rack,
    )


def _later(situation: JoinSituation, row: WrittenBy) -> Sequence[object]:
    if situation not in row.joins:
        return row.missing.get(situation, "it had ended before"), "", ""
    read = [row.read(situation, one) for one in _names(row)]
    return (
        _each(one.owned for one in read),
        _each(one.generation for one in read),
        _each(one.user_data for one in read),
    )


def _twice(row: WrittenBy) -> Sequence[object]:
    if JoinSituation.TWICE in row.missing:
        return ("refused: the client does not start",)
    topics = row.read(JoinSituation.TWICE).subscription.topics
    return ("twice" if len(set(topics)) < len(topics) else "once",)


def _one_each(rows: Iterable[WrittenBy]) -> list[WrittenBy]:
    return [next(some) for _, some in groupby(rows, key=lambda row: (row.client, row.release))]


def _names(row: WrittenBy) -> list[str]:
    return [*row.joins[JoinSituation.FIRST].metadata]


def _each(cells: Iterable[str]) -> str:
    """Say it once where it is the same for all assignors of a list."""
    return "; ".join(dict.fromkeys(cells))
