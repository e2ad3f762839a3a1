"""What drives the kernel: one process (``alone``) or Spark (``spread``). Both leave the same in the
database. And what is reported when they give up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from rebalance_verifier.pipeline.audit.records import LogEvent
from rebalance_verifier.pipeline.audit.sources.reading import Unread
from rebalance_verifier.pipeline.audit.sources.rows import MalformedLine
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note
from rebalance_verifier.pipeline.database import add

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, kw_only=True)
class Input:
    """Input that was read: ``events`` by source; ``until``, the last time in the logs, in microseconds since
    1970. ``groups`` are all that the logs have, where one that the plan names is not among them."""

    events: Mapping[str, int]
    until: int | None = None
    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    clients: tuple[LoggedClient, ...] = ()
    groups: tuple[str, ...] = ()


def groups_in(connection: DuckDBPyConnection, relation: str) -> tuple[str, ...]:
    """The names of the groups that have events in a table, sorted."""
    query = f'SELECT DISTINCT "group" FROM {relation} WHERE "group" IS NOT NULL ORDER BY ALL'
    return tuple(name for (name,) in connection.execute(query).fetchall())


class Engine(Protocol):
    """One audit, as a context manager."""

    connection: DuckDBPyConnection
    """With ``malformed`` and ``lines`` after ``read``, and the tables of ``kernel.FOUND`` after ``judge``."""

    @property
    def stage(self) -> str:
        """Name the stage while it is entered, if it takes long."""

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
MALFORMED = {name: "BIGINT" if name in ("line", "at") else "VARCHAR" for name in MalformedLine._fields}


def load(
    connection: DuckDBPyConnection,
    *,
    lines: Iterable[Sequence[Any]],
    malformed: Iterable[Sequence[Any]],
) -> None:
    """Make the tables ``lines`` and ``malformed``."""
    add(connection, lines, "lines", LINES)
    add(connection, malformed, "malformed", MALFORMED)


# -- giving up -------------------------------------------------------------------------------------------


def message(error: Exception) -> str:
    """Return the text of an error, in one line: what follows is where in Java it came from."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    messages = [line for line in lines if not line.startswith("An error occurred while calling")]
    return messages[0] if messages else type(error).__name__


def of_engine(error: Exception) -> bool:
    """Check whether Spark or DuckDB gave up while it ran, and not because the request was wrong."""
    kinds = type(error).__mro__
    names = {kind.__name__ for kind in kinds}
    modules = {kind.__module__.partition(".")[0] for kind in kinds}
    if modules & {"duckdb", "_duckdb"}:
        return "OperationalError" in names
    return not names & {"AnalysisException", "ParseException"} and bool(modules & {"pyspark", "py4j"})


def failure(error: Exception) -> str:
    """Return the path that could not be read or written any more, in one line; nothing if it was a mistake of
    ours."""
    return message(error) if isinstance(error, OSError) or of_engine(error) else ""
