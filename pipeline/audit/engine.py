"""What drives the kernel: one process (``alone``) or Spark (``spread``). Both leave the same in the
database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from rebalance.pipeline.audit.kernel.events import add
from rebalance.pipeline.audit.records import LogEvent
from rebalance.pipeline.audit.sources.reading import Unread
from rebalance.pipeline.audit.sources.settling import LoggedClient, Note

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, kw_only=True)
class Input:
    """What was read: ``events`` by source; ``until``, the last time in the logs, in microseconds since
    1970."""

    events: Mapping[str, int]
    until: int | None = None
    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    clients: tuple[LoggedClient, ...] = ()


class Engine(Protocol):
    """One audit, as a context manager."""

    connection: DuckDBPyConnection
    """With ``malformed`` and ``lines`` after ``read``, and the tables of ``kernel.FOUND`` after ``judge``."""

    @property
    def stage(self) -> str:
        """What it does while it is entered, if that takes long."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None, /
    ) -> bool | None: ...

    def tasks(self) -> tuple[int, int]:
        """Tasks that are done and that there are, of what is done at the moment; zeros where nobody knows."""

    def read(self) -> Input:
        """Read the logs of the plan. Raises ValueError, with what the user can do about it."""

    def judge(self, end: int) -> None:
        """Judge all events, up to ``end``."""

    def around(self, wanted: Sequence[tuple[Any, ...]]) -> Mapping[str, tuple[LogEvent, ...]]:
        """The events around findings (``tables.wanted``), by their ids."""

    def save(self, name: str, query: str) -> None:
        """Write what a query gives to the table of this name."""


LINES = {"file": "VARCHAR", "source": "VARCHAR", "lines": "BIGINT", "recognised": "BIGINT"}
MALFORMED = {"file": "VARCHAR", "line": "BIGINT", "text": "VARCHAR", "why": "VARCHAR"}


def load(
    connection: DuckDBPyConnection,
    *,
    lines: Iterable[Sequence[Any]],
    malformed: Iterable[Sequence[Any]],
) -> None:
    """Make the tables ``lines`` and ``malformed``."""
    add(connection, lines, "lines", LINES)
    add(connection, malformed, "malformed", MALFORMED)
