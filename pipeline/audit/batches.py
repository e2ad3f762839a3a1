"""The audit of logs while they are written: the same kernel, again with each batch of lines.

What is kept from one batch to the next lies below the output directory. ``state/begun.json`` says which
bytes of which files a batch is of, before anything of it is done, and ``state/done.json`` how far all was
done. A batch that is run again after a crash reads the same bytes and overwrites what it wrote, so no event
and no finding is there twice. ``state/rows`` has what the lines said, a table for each batch, until
``state/bases`` has what may still matter of it. ``state/groups.json`` names the groups that have events.
``findings`` has each finding once, as it is known now;
``malformed`` a table for each batch.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.reading import fields, json_of, listed, whole, word
from rebalance_verifier.base.removal import remove
from rebalance_verifier.pipeline.audit import kernel, tail
from rebalance_verifier.pipeline.audit.engine import MALFORMED, groups_in
from rebalance_verifier.pipeline.audit.kernel import events as of_kernel
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.records import LogFinding
from rebalance_verifier.pipeline.audit.result import InputError
from rebalance_verifier.pipeline.audit.sources.parsing import LineParser
from rebalance_verifier.pipeline.audit.sources.reading import decoded
from rebalance_verifier.pipeline.audit.sources.rows import LineRow
from rebalance_verifier.pipeline.audit.sources.settling import mixed, on_several_clusters, settle
from rebalance_verifier.pipeline.audit.tables import FINDING, finding, micros, rows
from rebalance_verifier.pipeline.database import PART, add, save, saved

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_T = TypeVar("_T")

HORIZON = 3600.0
"""Seconds of event time that are kept as they are; of what is older, only what may still matter."""

COMPACT = 20
"""Batches after which older rows are gone through."""

LATEST = ("group", "client", "origin", "stream", "instance", "topic", "partition", "kind")
"""Of rows that are alike in this, only the last matters once they are old."""

NUMBERS = ("at", "generation", "partition", "line", "members")
COLUMNS = {name: "BIGINT" if name in NUMBERS else "VARCHAR" for name in LineRow._fields}


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Plan of a watch. ``report`` gets what a batch has found for the first time, or seen end.

    ``now``: the log is of this moment, so that what does not happen (a partition that nobody takes) is found
    when nothing is written either.
    """

    path: str
    out: Path
    thresholds: Thresholds
    report: Callable[[Sequence[LogFinding]], None]
    kind: str | None = None
    zone: str = "UTC"
    now: bool = True
    horizon: float = HORIZON
    compact: int = COMPACT

    @property
    def state(self) -> Path:
        """Return the directory that is kept between batches."""
        return self.out / "state"


def batch(watch: Watch) -> bool:
    """Run the next batch: of what was written since, or the one again that did not come to its end.

    Returns whether there was something to read.
    """
    last, start = _position(watch, "done") or (-1, {})
    number, ends = _position(watch, "begun") or (-1, {})
    if number <= last:
        number, ends = last + 1, tail.ends(watch.path, start)
        write_whole(watch.state / "begun.json", json.dumps({"number": number, "ends": tail.plain(ends)}))
    stretches = tail.stretches(start, ends)
    news = []
    if stretches or (watch.now and last >= 0):
        news = _judge(watch, number, stretches)
    with _undisturbed():
        watch.report(news)
        write_whole(watch.state / "done.json", json.dumps({"number": number, "ends": tail.plain(ends)}))
    return bool(stretches)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C comes after this: or else what was reported is reported again. Signals are not blocked, since
    they may come to a thread of DuckDB."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _judge(watch: Watch, number: int, stretches: Sequence[tail.Stretch]) -> list[LogFinding]:
    """The rows of the batch are kept, then everything that is kept is judged. Returns what is new."""
    connection = kernel.prepared(watch.thresholds, spill=str(watch.state / "spill"))
    try:
        if stretches:
            parser = _parsed(watch, stretches)
            add(connection, parser.rows, "fresh", COLUMNS)
            add(connection, parser.malformed, "malformed", MALFORMED)
            save(connection, "FROM fresh", str(_table(watch.state / "rows", number)))
            if parser.malformed:
                save(connection, "FROM malformed", str(_table(watch.out / "malformed", number)))
        _misread(connection, watch, number)
        cut = _kept(connection, watch.state, number)
        listed = ", ".join(f'"{name}"' for name in COLUMNS)
        settled = settle(_rows(connection, f"SELECT {listed} FROM kept"))
        add(connection, settled.events, "events", of_kernel.COLUMNS)
        ((end,),) = connection.execute("SELECT max(moment) FROM events").fetchall()
        if end is None:
            return []
        if watch.now:
            end = max(end, micros(datetime.now(UTC)))
        kernel.judge(connection, end)
        kernel.finish(connection)
        _note_groups(connection, watch)
        kernel.doubt(connection, mixed([*settled.notes, *on_several_clusters(settled.clients)]))
        kernel.misread(connection)
        news = _remembered(connection, watch, number, end, cut)
        if number and number % watch.compact == 0:
            _compact(connection, number, watch)
        return news
    finally:
        connection.close()


def _misread(connection: DuckDBPyConnection, watch: Watch, number: int) -> None:
    """Make the table ``malformed`` of the lines by now that are not understood."""
    add(connection, (), "every", MALFORMED)
    for path in _whole(watch.out / "malformed"):
        if _number(path) <= number:
            connection.execute(f"INSERT INTO every BY NAME FROM {saved(path)}")
    connection.execute("CREATE OR REPLACE TEMP TABLE malformed AS FROM every")


def _parsed(watch: Watch, stretches: Sequence[tail.Stretch]) -> LineParser:
    parent = watch.path.rstrip("/") + "/"
    parser = LineParser(watch.kind, zone=watch.zone, parent=parent)
    for stretch in stretches:
        parser.content(
            stretch.file, ((number, decoded(line)[0]) for number, line in tail.lines(watch.path, stretch))
        )
    return parser


def _rows(connection: DuckDBPyConnection, query: str) -> Iterator[LineRow]:
    done = connection.execute(query)
    while several := done.fetchmany(10_000):
        yield from (LineRow(*one) for one in several)


def _kept(connection: DuckDBPyConnection, state: Path, number: int) -> int:
    """Make the table ``kept`` of the rows that a batch is to know. Returns since when they are complete."""
    bases = [path for path in _whole(state / "bases") if _number(path) < number]
    first, cut, paths = -1, 0, []
    if bases:
        paths = [bases[-1]]
        first = _number(bases[-1])
        cut = int(bases[-1].name.split("-")[1])
    paths += [path for path in _whole(state / "rows") if first < _number(path) <= number]
    listed = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TEMP TABLE kept ({listed})")
    for path in paths:
        connection.execute(f"INSERT INTO kept BY NAME FROM {saved(path)}")
    return cut


def _remembered(
    connection: DuckDBPyConnection, watch: Watch, number: int, end: int, cut: int
) -> list[LogFinding]:
    """Bring ``findings`` on disk up to date. Returns what is new in it, or has ended, in order.

    What began before ``cut`` is known already, or has gaps now. A finding that had not ended and is not
    found any more has: the rebalance did, or somebody took the partition.
    """
    known = watch.out / "findings"
    source = f"FROM {saved(known)}" if (known / PART).exists() else "FROM findings LIMIT 0"
    connection.execute(f"CREATE TEMP TABLE known AS {source}")
    connection.execute(
        f"""
        -- Of a rebalance that goes on, what it began with may be forgotten.
        UPDATE findings
        SET id = known.id, began = known.began, seconds = ({end} - epoch_us(known.began)) / 1e6
        FROM known
        WHERE findings."check" = 'never-settles' AND known."check" = 'never-settles'
            AND findings."group" = known."group" AND known.ended IS NULL;
        CREATE TEMP TABLE present AS
        SELECT * FROM findings WHERE ended IS NULL OR epoch_us(ended) >= {cut};
        CREATE TEMP TABLE over AS
        SELECT * REPLACE (
            make_timestamptz({end}) AS ended, ({end} - epoch_us(began)) / 1e6 AS seconds
        )
        FROM known
        ANTI JOIN findings USING (id)
        WHERE ended IS NULL AND "check" IN ('never-settles', 'stranded');
        CREATE TEMP TABLE remembered AS
        FROM present
        UNION ALL FROM over
        UNION ALL
        FROM known WHERE id NOT IN (SELECT id FROM present UNION ALL SELECT id FROM over);
        CREATE TEMP TABLE news AS
        SELECT * FROM remembered
        ANTI JOIN (SELECT id, ended IS NULL AS open FROM known) AS old
            ON old.id = remembered.id AND (NOT old.open OR remembered.ended IS NULL)
        """
    )
    # Written first: a batch that is run again reports what it has saved and not reported.
    known_of, ids = _reported(watch) or (-1, [])
    ids = ids if known_of == number else []
    ids += [one for (one,) in connection.execute("SELECT id FROM news").fetchall()]
    write_whole(watch.state / "news.json", json.dumps({"number": number, "ids": ids}))
    save(connection, "FROM remembered ORDER BY id", str(known))
    query = f"SELECT {FINDING} FROM remembered WHERE list_contains(?, id) ORDER BY began, id"
    return [finding(row) for row in rows(connection, query, [ids])]


def _compact(connection: DuckDBPyConnection, number: int, watch: Watch) -> None:
    """Keep of old rows only what may still matter; remove what a former compaction has replaced."""
    ((end,),) = connection.execute('SELECT max("at") FROM kept').fetchall()
    cut = end - round(watch.horizon * 1e6)
    alike = ", ".join(f'"{name}"' for name in LATEST)
    query = f"""
        FROM kept
        QUALIFY "at" >= {cut}
            OR row_number() OVER (PARTITION BY {alike} ORDER BY "at" DESC, file, line DESC) = 1
    """
    save(connection, query, str(watch.state / "bases" / f"batch={number:09}-{cut}"))
    former = [path for path in _whole(watch.state / "bases") if _number(path) < number]
    if former:
        events = _whole(watch.state / "rows")
        for path in [*former[:-1], *(p for p in events if _number(p) <= _number(former[-1]))]:
            remove(path)


def _table(directory: Path, number: int) -> Path:
    return directory / f"batch={number:09}"


def _whole(directory: Path) -> list[Path]:
    """The tables in a directory, by number; what a crash left half written is not there."""
    return sorted(path.parent for path in directory.glob(f"batch=*/{PART}"))


def _number(path: Path) -> int:
    return int(path.name.removeprefix("batch=").split("-")[0])


def _position(watch: Watch, name: str) -> tuple[int, tail.Positions] | None:
    """The number of a batch, and how far it goes in which files."""
    return _left(watch, name, lambda kept: (whole(kept["number"]), tail.positions(kept["ends"])))


def _reported(watch: Watch) -> tuple[int, list[str]] | None:
    """The number of a batch, and the ids of the findings that it has saved."""
    return _left(watch, "news", lambda kept: (whole(kept["number"]), [*map(word, listed(kept["ids"]))]))


class SeenGroups(NamedTuple):
    """The names of the groups that had events, of those of which some line says who owns which partition, and
    of those of which one says that they rebalance."""

    names: tuple[str, ...] = ()
    owning: tuple[str, ...] = ()
    rebalancing: tuple[str, ...] = ()
    silent: Mapping[str, int] = MappingProxyType({})
    """Group -> its consumers of which no line says what they own."""
    missing: Mapping[str, int] = MappingProxyType({})
    """Group -> its members whose logs are not here; ``members``: how many it has."""
    members: Mapping[str, int] = MappingProxyType({})
    misread: Mapping[str, int] = MappingProxyType({})
    """Group, or "" where it is not known -> lines that are not understood."""


def groups(watch: Watch) -> SeenGroups:
    """Return the groups that had events by now."""

    def read(kept: dict[str, Any]) -> SeenGroups:
        several = (kept["groups"], kept.get("owning", []), kept.get("rebalancing", []))
        names, owning, rebalancing = (tuple(map(word, listed(one))) for one in several)
        silent, missing, members, misread = (
            {word(name): whole(number, 0) for name, number in fields(kept.get(key, {})).items()}
            for key in ("silent", "missing", "members", "misread")
        )
        return SeenGroups(names, owning, rebalancing, silent, missing, members, misread)

    return _left(watch, "groups", read) or SeenGroups()


def _note_groups(connection: DuckDBPyConnection, watch: Watch) -> None:
    """Keep which groups there are, and what is known of them by now: older lines are not kept for ever."""
    seen = groups(watch)
    known = connection.execute(
        """SELECT "group", partitions > 0, rebalances > 0 OR "group" IN (SELECT "group" FROM findings)
        FROM groups"""
    ).fetchall()
    owning = sorted({*seen.owning, *(name for name, owns, _ in known if owns)})
    rebalancing = sorted({*seen.rebalancing, *(name for name, _, moves in known if moves)})
    silent = 'SELECT "group", silent FROM groups WHERE silent > 0 ORDER BY ALL'
    unlogged = connection.execute(
        'SELECT "group", missing, members FROM groups WHERE missing > 0 ORDER BY ALL'
    ).fetchall()
    misread = """SELECT coalesce("group", ''), count(*) FROM malformed GROUP BY ALL ORDER BY ALL"""
    kept = {
        "groups": groups_in(connection, "events"),
        "owning": owning,
        "rebalancing": rebalancing,
        "silent": dict(connection.execute(silent).fetchall()),
        "missing": {name: missing for name, missing, _ in unlogged},
        "members": {name: members for name, _, members in unlogged},
        "misread": dict(connection.execute(misread).fetchall()),
    }
    write_whole(watch.state / "groups.json", json.dumps(kept))


def _left(watch: Watch, name: str, parse: Callable[[Any], _T]) -> _T | None:
    """Return the results of a batch that the next needs, None where there was none. Raises InputError."""
    path = watch.state / f"{name}.json"
    try:
        return parse(fields(json_of(path)))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"{path} is not what was saved there ({error}); remove {watch.out} to begin anew"
        raise InputError(text) from error
