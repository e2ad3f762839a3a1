"""Lists of findings that are known: what an audit may find and has been looked into.

A line is the id of a finding, or a check with what it may be about, and why::

    3f2a9c81d0e4                               # https://example.org/issues/12
    owned-by-zombie group=billing              # slow shutdown, issue 13 until=2027-01-31
    *               group=test-* partition=t-* # nobody minds

``group`` and ``partition`` (``topic-number``, or a topic) may hold ``*``, ``?`` and ``[...]``; what is left
out means any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rebalance_verifier.base import known
from rebalance_verifier.base.known import KnownEntry
from rebalance_verifier.base.names import unknown
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.records import partition_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ID = re.compile(r"[0-9a-f]{12}")
FIELDS = ("group", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFinding(KnownEntry):
    """One line of a list."""

    @classmethod
    def check(cls, pattern: str) -> None:
        """Raise ValueError for what is no pattern."""
        first, *rest = pattern.split() or [""]
        if _ID.fullmatch(first) and not rest:
            return
        if first != "*" and first not in CHECKS:
            raise ValueError(
                f"{first!r} is no id of a finding, and {unknown('check', first, CHECKS)}; * means all checks"
            )
        for field in rest:
            name, equals, text = field.partition("=")
            if name not in FIELDS or not equals or not text:
                raise ValueError(f"{field!r} in {pattern!r}: write group=NAME or partition=TOPIC-NUMBER")

    def matches(self, id_: str, check: str, group: str, about: str) -> bool:
        """Check whether a finding is meant; ``about`` is its partition or topic, "" for what is about a
        group."""
        first, *rest = self.pattern.split()
        if first == id_:
            return True
        wanted = dict(field.split("=", 1) for field in rest)
        return (
            first in ("*", check)
            and fnmatchcase(group, wanted.get("group", "*"))
            and fnmatchcase(about, wanted.get("partition", "*"))
        )


def read(options: Sequence[str], option: str = "--known") -> tuple[KnownFinding, ...]:
    """The entries of several options, each a pattern or ``@FILE``. Raises ``KnownError``."""
    return known.read(KnownFinding, options, option)


def set_aside(
    connection: DuckDBPyConnection, entries: Sequence[KnownFinding], today: date
) -> tuple[int, tuple[KnownFinding, ...]]:
    """Take what is known today from ``findings`` to a table ``known``. Returns how many, and the entries that
    mean nothing that was found."""
    valid = [entry for entry in entries if not entry.expired(today)]
    query = 'SELECT DISTINCT id, "check", "group", topic, partition FROM findings'
    meant: set[KnownFinding] = set()
    ids: list[str] = []
    for id_, check, group, topic, partition in connection.execute(query).fetchall() if valid else ():
        mine = [e for e in valid if e.matches(id_, check, group, partition_name(topic, partition))]
        meant.update(mine)
        ids += [id_] if mine else []
    connection.execute(
        "CREATE TEMP TABLE known AS FROM findings WHERE list_contains(?::VARCHAR[], id)", [ids]
    )
    connection.execute("DELETE FROM findings WHERE list_contains(?::VARCHAR[], id)", [ids])
    ((count,),) = connection.execute("SELECT count(*) FROM known").fetchall()
    return count, tuple(entry for entry in entries if entry not in meant)
