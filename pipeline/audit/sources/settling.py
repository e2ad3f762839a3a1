"""From rows to events: who wrote which lines, and what takes the lines before.

A consumer is a process, over all the member ids it may be given. Which lines are of one comes from everything
there is: the client id, the instance id, what runtimes and shippers put around lines, the file, and the
member id, which nobody shares. Lines that contradict each other (two member ids in one generation) are of
several processes: where something tells these apart, it does; where nothing does, that is noted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from rebalance_verifier.pipeline.audit.sources import jsonl
from rebalance_verifier.pipeline.audit.sources.events import EventRow, Kind
from rebalance_verifier.pipeline.audit.sources.holdings import CHANGES, spelled_out
from rebalance_verifier.pipeline.audit.sources.loggers import (
    ALIVE,
    COORDINATORS,
    DONE,
    EPOCH,
    HOLDS,
    LOGGED,
    LOSES,
    LOSING,
    NAMED,
    OVERDUE,
    PIECEWISE,
    REBOOTSTRAPPING,
    REJOINS,
    RELEASE,
    SESSION,
    SHARED,
    TASKS,
)
from rebalance_verifier.pipeline.audit.sources.patterns import FOLLOWED, Source
from rebalance_verifier.pipeline.audit.sources.rows import LineRow
from rebalance_verifier.pipeline.audit.sources.times import text_of

MIXED = "mixed"
"""Kind of a note: several processes, and nothing tells them apart."""

CLUSTERS = "clusters"
"""Kind of a note: groups of one name on several clusters, which have nothing to do with each other."""

SET_BACK = "set back"
"""Kind of a note: by its times a log goes back to a generation that its member had left behind."""

APART = "apart"
"""Kind of a note: a group that has no owners of partitions."""

_APART = {
    SHARED: "is a share group: its members share partitions, so nobody owns one and nothing is judged",
    TASKS: "is a Streams group (KIP-1071): its members own tasks, which are not read, so nothing is judged",
}


class Note(NamedTuple):
    """Something about the logs that bears on what is found in them; ``kind``: one of those above."""

    kind: str
    group: str
    consumer: str
    """"" for a note about the whole group."""
    text: str


def mixed(notes: Iterable[Note]) -> list[str]:
    """The groups of which nothing is certain, since what is several things is taken for one."""
    return sorted({note.group for note in notes})


class LoggedClient(NamedTuple):
    """Description of a consumer, or a coordinator (None): as far as its log tells."""

    group: str
    consumer: str | None
    source: str
    release: str | None
    assignor: str | None
    cluster: str | None = None
    """The one that it was in last. Java's clients log it."""


def on_several_clusters(clients: Iterable[LoggedClient]) -> list[Note]:
    """A note for each group whose consumers were in different clusters at last: its logs are of several."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for one in sorted(clients, key=str):
        if one.cluster and one.consumer:
            found[one.group].setdefault(one.cluster, one.consumer)
    return [
        Note(
            CLUSTERS,
            group,
            "",
            f"{group} is the name of {len(named)} groups: "
            + " and ".join(f"{who} is in cluster {cluster}" for cluster, who in [*named.items()][:2])
            + "; audit the logs of each cluster apart",
        )
        for group, named in sorted(found.items())
        if len(named) > 1
    ]


class SettledRows(NamedTuple):
    """Events in no order, notes and clients in order."""

    events: list[EventRow]
    notes: list[Note]
    clients: list[LoggedClient]


def settle(rows: Iterable[LineRow], running: Iterable[LineRow] = ()) -> SettledRows:
    """The events of all lines of some whole clients (all that have these client ids), or of all.

    ``running``: rows that say which release a process is of, besides those among ``rows``.
    """
    events: list[EventRow] = []
    clients: set[LoggedClient] = set()
    releases = [row for row in running if row.kind == RELEASE]
    apart: dict[str, str] = {}
    spoke: dict[str, int] = {}  # coordinator -> until when it writes lines
    granted: list[tuple[EventRow, str]] = []
    of_client: dict[str, list[LineRow]] = defaultdict(list)
    for row in rows:
        if row.kind == RELEASE:
            releases.append(row)
        elif row.kind in _APART and row.group:
            apart[row.group] = row.kind
        elif row.source == jsonl.NAME:  # all is in the line
            events.append(EventRow._make((*row[:10], *row[13:19], None)))
        elif row.client is not None:
            of_client[row.client].append(row)
        elif row.kind == ALIVE:
            spoke[row.coordinator] = max(row.at, spoke.get(row.coordinator, row.at))
        elif row.group:
            if row.source in COORDINATORS:
                spoke[row.coordinator] = max(row.at, spoke.get(row.coordinator, row.at))
            event = _event(row, row.kind, row.group, None, row.host)
            if row.kind == Kind.GRANTED and row.detail in _UNREVOKED:
                granted.append((event, row.coordinator))
            else:
                events.append(event)
            clients.add(LoggedClient(row.group, None, row.source, _release(releases, row), None))
    events += [event._replace(heard=spoke[coordinator]) for event, coordinator in granted]
    notes = [Note(APART, group, "", f"{group} {_APART[kind]}") for group, kind in sorted(apart.items())]
    for client, of_one in sorted(of_client.items()):
        several = sorted(_same_names(of_one), key=_in_order)
        processes, unclear = processes_of(client, several)
        notes += unclear
        events += _replaced(several)
        notes += _groupless(client, processes)
        for name, own in sorted(processes.items()):
            if all(row.kind == ALIVE for row in own):
                continue
            notes += _set_back(name, own)
            events += _heard([*_filled(name, spelled_out(own))])
            clients |= _clients(name, own, releases)
    return SettledRows(events, notes, sorted(clients, key=str))


_UNREVOKED = ("UNREVOKED_PARTITIONS", "1")
"""State of a member that is to give partitions away, and has not acknowledged that yet: by name, and as it is
kept (``modern.MemberState``)."""


def _same_names(rows: list[LineRow]) -> list[LineRow]:
    """Return rows without what a layout writes behind a group's name where that ends a message.

    ``(Re-)joining group orders    coordinator.py:391``: nothing on this line says where the name ends. Who
    joins a generation says the name in the middle of its message, and ``detail`` is what stands behind that.
    Where nothing does, ``orders dlq`` is another group.
    """
    if not rows or rows[0].client not in _OPEN_ENDED:
        return rows
    joins = [row for row in rows if row.kind == Kind.JOINED and row.group]
    names = sorted({row.group for row in joins if row.group}, key=len)
    behind: dict[str, set[str]] = defaultdict(set)
    for row in joins:
        behind[row.file].add(row.detail or "")
    anywhere = set().union(*behind.values())
    found = []
    for row in rows:
        if row.group and row.group not in names:
            row = row._replace(group=_bare_name(row.group, names, behind.get(row.file, anywhere)))
        found.append(row._replace(detail=None) if row.kind == Kind.JOINED else row)
    return found


def _bare_name(text: str, names: Sequence[str], behind: Collection[str]) -> str:
    """Return the name of a group that ends a message. ``behind``: what stands behind others, "" for nothing.

    >>> _bare_name("orders dlq  a.py:7", ["orders"], ["  main.py:19"])
    'orders dlq'
    >>> _bare_name("orders dlq", ["orders"], [""]), _bare_name("orders  {x}", ["orders"], ["  {}"])
    ('orders dlq', 'orders')
    """
    for tail in filter(None, sorted(behind)):
        # Of one shape: with other words and numbers, or aligned to the right.
        if found := re.fullmatch("(.+?)" + "".join(map(_shape, _PIECES.findall(tail))), text):
            return found[1]
    if not any(behind):
        return text
    return next((name for name in names if _goes_on_after(text, name)), text)


_PIECES = re.compile(r"\w+|\s+|[^\w\s]")


def _shape(piece: str) -> str:
    return r"\s+" if piece.isspace() else r"\w+" if re.match(r"\w", piece) else re.escape(piece)


_OPEN_ENDED = tuple(one.client for one in LOGGED if isinstance(one, Source) and one.open_ended)


def _goes_on_after(text: str, name: str) -> bool:
    return text.startswith(name) and re.match(FOLLOWED, text[len(name) :]) is not None


_in_order: Callable[[LineRow], tuple[int, str, int]] = itemgetter(
    *(LineRow._fields.index(name) for name in ("at", "file", "line"))
)


def _event(
    row: LineRow,
    kind: str,
    group: str,
    consumer: str | None,
    host: str | None,
    generation: int | None = None,
    member: str | None = None,
    protocol: str | None = None,
) -> EventRow:
    (
        at,
        _,
        _,
        _,
        own,
        instance,
        since,
        topic,
        partition,
        detail,
        _,
        _,
        _,
        _,
        source,
        file,
        line,
        _,
        members,
        _,
    ) = row
    if own is None:
        own = member
    if since is None:
        since = generation
    # As a class of it does, in a third of the time.
    return tuple.__new__(
        EventRow,
        (
            *(at, str(kind), group, consumer, own, instance, since, topic, partition, detail),
            *(host, source, file, line, protocol, members, None),
        ),
    )


# -- who -----------------------------------------------------------------------------------------------


def processes_of(client: str, rows: Sequence[LineRow]) -> tuple[dict[str, list[LineRow]], list[Note]]:
    """Name of a consumer -> its rows in order; and what cannot be told apart. ``rows``: of a client id."""
    found: dict[str, list[LineRow]] = {}
    notes: list[Note] = []
    for name, own in _united(client, _apart(rows, lambda row: row.origin or row.stream)).items():
        if contradiction(own) is None:
            found[name] = own
            continue
        single = _without_repeats(own)
        if contradiction(single) is None:
            found[name] = single
            continue
        for finer in _FINER:
            parts = _apart(own, finer)
            if len(parts) > 1 and not any(map(contradiction, parts.values())):
                for part, its in parts.items():
                    found[f"{client}@{part}"] = its
                break
        else:
            found[name] = own
            notes.append(_note(name, own))
    return found, notes


def _apart(rows: Sequence[LineRow], key: Callable[[LineRow], str]) -> dict[str, list[LineRow]]:
    parts: dict[str, list[LineRow]] = defaultdict(list)
    for row in rows:
        parts[key(row)].append(row)
    return dict(sorted(parts.items()))


_FINER: tuple[Callable[[LineRow], str], ...] = (
    lambda row: f"{row.origin or row.stream}:{row.instance or ''}".rstrip(":"),
    lambda row: f"{row.stream}:{row.origin}".rstrip(":"),
    lambda row: f"{row.stream}:{row.origin}:{row.instance or ''}".rstrip(":"),
)


def _united(client: str, parts: dict[str, list[LineRow]]) -> dict[str, list[LineRow]]:
    """Streams in which one member id says that it joined are of one process, under the name of the first.

    The rows of each stream are in order.
    """
    of_member: dict[tuple[str | None, str], str] = {}
    root = {name: name for name in parts}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for name, rows in parts.items() if len(parts) > 1 else ():
        for row in rows:
            if row.kind in _JOINS and row.member:
                other = find(of_member.setdefault((row.group, row.member), name))
                mine = find(name)
                root[max(mine, other)] = min(mine, other)
    of_interest = {name: _of_interest(rows) for name, rows in parts.items()} if len(parts) > 1 else {}
    for name, other in _copies(of_interest):
        root[max(find(name), find(other))] = min(find(name), find(other))
    united: dict[str, list[list[LineRow]]] = defaultdict(list)
    for name, rows in parts.items():
        united[f"{client}@{find(name)}"].append(rows)
    return {
        name: _once(several[0] if len(several) == 1 else sorted(chain(*several), key=_in_order))
        for name, several in united.items()
    }


def _of_interest(rows: list[LineRow]) -> list[LineRow]:
    """Return rows without the last line of each file: a copy ends elsewhere."""
    return [row for row in rows if row.kind != ALIVE]


def _once(rows: list[LineRow]) -> list[LineRow]:
    """Return rows without what another file of the same process says again: its console, or a copy."""
    if len({row.file for row in rows}) == 1:
        return rows
    first: dict[tuple[object, ...], str] = {}
    return [row for row in rows if first.setdefault(_event_key(row), row.file) == row.file]


def _without_repeats(rows: list[LineRow]) -> list[LineRow]:
    """Return rows without the lines that a shipper delivered twice: the same in one file at one moment.

    Where the client logs no member id, and where times are whole seconds, they may be of two processes.
    """
    if not any(row.member for row in rows if row.kind in (*_JOINS, HOLDS)):
        return rows
    lines: dict[tuple[str, int], list[LineRow]] = defaultdict(list)
    for row in rows:
        lines[row.file, row.line].append(row)
    first: dict[tuple[object, ...], tuple[str, int]] = {}
    for line, several in lines.items():
        if several[0].at % 1_000_000:
            first.setdefault((line[0], *map(_event_key, several)), line)
    repeated = {*lines} - {*first.values()}
    return [row for row in rows if (row.file, row.line) not in repeated or not row.at % 1_000_000]


def _event_key(row: LineRow) -> tuple[object, ...]:
    """Return what a row says and when, whoever wrote it where."""
    return (*row[:3], *row[4:9])


def _copies(parts: dict[str, list[LineRow]]) -> Iterator[tuple[str, str]]:
    """Yield the streams of one client id of which one is a copy of the other, or of a piece of it.

    Each is in order. In the time that both have they say the same, in a millisecond the same of a partition
    or a member. No two processes do.
    """
    first = {name: rows[0] for name, rows in parts.items() if rows}
    begins: dict[int, list[str]] = defaultdict(list)
    for name, row in first.items():
        begins[row.at].append(name)
    for name, rows in parts.items() if len(first) > 1 else ():
        others = {other for row in rows for other in begins.get(row.at, ()) if other != name}
        for other in sorted(others):
            if _alike(rows, parts[other]):
                yield name, other


def _alike(one: Sequence[LineRow], other: Sequence[LineRow]) -> bool:
    """Return whether two streams say the same in the time that both have: of other files, not of two pods."""
    if {row.file for row in one} & {row.file for row in other}:
        return False
    if len({row.origin for row in (*one, *other)} - {""}) > 1:
        return False
    since = max(min(row.at for row in rows) for rows in (one, other))
    until = min(max(row.at for row in rows) for rows in (one, other))
    both = [Counter(_event_key(row) for row in rows if since <= row.at <= until) for rows in (one, other)]
    # At the ends of that time one of them may have begun, or ended, between two lines.
    differing = {event for event in both[0] | both[1] if both[0][event] != both[1][event]}
    same = (both[0] & both[1]).keys()
    if len(same) < 2 or not all(at in (since, until) for at, *_ in differing):
        return False
    return any(member is not None or partition is not None for _, _, _, member, *_, partition in same)


_JOINS = frozenset({Kind.JOINED, Kind.SYNCED})
_OWNING = frozenset({Kind.ASSIGNED, Kind.REVOKED, Kind.LOST})
_WITHOUT = frozenset({LOSING, Kind.RESET})
_ENDS = frozenset({Kind.STARTED, Kind.CLOSED, Kind.LEAVING})
_OUTSIDE = _ENDS | {Kind.JOINING, Kind.RESET, LOSING}
"""Where a member of the consumer protocol has no epoch from."""


def contradiction(rows: Sequence[LineRow]) -> tuple[LineRow, LineRow] | None:
    """Two rows that one process cannot have written, one after the other: None where there are none.

    It has one member id in a generation, joins it once, and is not given what it has, unless it starts or
    leaves in between. It never has a member id again that it had before another.
    """
    joined: dict[tuple[str | None, str, int], LineRow] = {}
    owned: dict[tuple[str | None, str, int], tuple[int | None, LineRow]] = {}
    generation: int | None = None
    holders: dict[str | None, LineRow] = {}
    former: set[tuple[str | None, str | None]] = set()
    for row in rows:
        kind = row.kind
        if kind in _JOINS and row.member:
            holder = holders.get(row.group)
            if holder is not None and holder.member != row.member:
                if (row.group, row.member) in former:
                    return holder, row
                former.add((row.group, holder.member))
            holders[row.group] = row
        if kind in _ENDS or (kind == Kind.JOINED and _begins_anew(joined, row)):
            joined.clear()
            owned.clear()
        if kind in _JOINS and row.generation is not None:
            generation = row.generation
            key = row.group, "" if row.member else kind, row.generation
            before = joined.setdefault(key, row)
            if before is not row and (before.member != row.member or not row.member):
                return before, row
        elif kind in _OWNING and row.partition is not None and row.topic is not None:
            if row.source == "librdkafka":
                continue
            what = row.group, row.topic, row.partition
            if kind == Kind.ASSIGNED:
                since = owned.get(what)
                if since is not None and since[0] == generation is not None:
                    return since[1], row
                owned[what] = generation, row
            else:
                owned.pop(what, None)
        elif kind in _WITHOUT and (row.topic is None or row.partition is None):
            owned.clear()
    return _interleaved(rows) or _sessions(rows)


def _sessions(rows: Sequence[LineRow]) -> tuple[LineRow, LineRow] | None:
    """Return two rows that one consumer cannot have written, of a client that logs how its sessions end.

    It has one member id in a generation, and never has one again that it had before another.
    """
    of_generation: dict[int | None, LineRow] = {}
    former: set[str] = set()
    holder: LineRow | None = None
    for row in rows:
        if row.kind != SESSION or not row.member:
            continue
        before = of_generation.setdefault(row.generation, row)
        if before.member != row.member:
            return before, row
        if holder is not None and holder.member and holder.member != row.member:
            if row.member in former:
                return holder, row
            former.add(holder.member)
        holder = row
    return None


def _interleaved(rows: Sequence[LineRow]) -> tuple[LineRow, LineRow] | None:
    """Return two rows that one consumer cannot have written, of a client that logs no generation.

    It keeps its member id until it is told to join again, and never has one again that it had before another.
    """
    if HOLDS not in {row.kind for row in rows}:
        return None
    holder: LineRow | None = None
    former: set[str | None] = set()
    outside = False
    for row in rows:
        outside = outside or row.kind in (LOSES, REJOINS, *_ENDS)
        if row.kind == HOLDS:
            if holder is not None and holder.member != row.member:
                if not outside or row.member in former:
                    return holder, row
                former.add(holder.member)
            holder, outside = row, False
    return None


def _begins_anew(joined: dict[tuple[str | None, str, int], LineRow], row: LineRow) -> bool:
    """Return whether a static member joins with another member id: a process that has started again."""
    if row.kind != Kind.JOINED or not row.instance or not row.member:
        return False
    same = (one for one in joined.values() if (one.group, one.instance) == (row.group, row.instance))
    return any(one.member not in (None, row.member) for one in same)


def _note(name: str, rows: Sequence[LineRow]) -> Note:
    pair = contradiction(rows)
    assert pair is not None
    one, other = pair
    group = one.group or next((row.group for row in rows if row.group), "?")
    where = f"{_where(one)} and {_where(other)}"
    what = f"{one.topic}-{one.partition}"
    if one.kind == Kind.ASSIGNED:
        why = f"is given {what} twice, {where}"
    elif one.member and one.generation is None:
        why = f"joins as {one.member} and as {other.member}, {where}"
    elif one.generation != other.generation:
        why = f"is {other.member} again after {one.member}, {where}"
    elif one.member:
        why = f"joins generation {one.generation} as {one.member} and as {other.member}, {where}"
    else:
        why = f"joins generation {one.generation} twice, {where}"
    text = (
        f"{name} {why}: several processes share this client id, and no pod, host, prefix, file or instance "
        "id tells their lines apart; export a file for each pod, or with the pod before each line "
        "(kubectl logs --prefix)"
    )
    return Note(MIXED, group, name, text)


def _set_back(name: str, rows: Sequence[LineRow]) -> Iterator[Note]:
    """Yield a note where a member is in an older generation than before; ``rows`` by their times.

    Generations of one member only rise, so the times of these lines are not in order: in autumn an hour of
    local time is there twice.
    """
    latest: dict[tuple[str, str], LineRow] = {}
    for row in rows:
        if row.kind not in _JOINS or row.generation is None or not row.member or not row.group:
            continue
        before = latest.setdefault((row.group, row.member), row)
        if before.generation is not None and row.generation < before.generation:
            times = f"{text_of(before.at)[:19]}Z, and {row.generation} at {text_of(row.at)[:19]}Z"
            yield Note(
                SET_BACK,
                row.group,
                name,
                f"{name} is in generation {before.generation} at {times} "
                f"({_where(before)} and {_where(row)}): its clock was set back, or an hour of local time is "
                "there twice; export these logs with times in UTC, or with their zone",
            )
            return
        latest[row.group, row.member] = row


def _groupless(client: str, processes: Mapping[str, Sequence[LineRow]]) -> Iterable[Note]:
    """Return notes on logs of several groups whose lines about partitions do not say of which they are."""
    for name, rows in sorted(processes.items()):
        groups = sorted({row.group for row in rows if row.group})
        if len(groups) > 1 and any(row.topic and row.group is None and row.kind in CHANGES for row in rows):
            text = f"{name} is in {len(groups)} groups, and {client} does not log of which a partition is"
            yield from (Note(MIXED, group, name, f"{text}: write a log for each group") for group in groups)


def _where(row: LineRow) -> str:
    return f"{row.file}:{row.line}"


# -- what the lines before say -------------------------------------------------------------------------


def _filled(consumer: str, rows: Sequence[LineRow]) -> Iterable[EventRow]:
    """The events of one consumer; ``rows`` in order.

    Group, generation and member are those of the lines before where a line does not name them. What is lost
    and not revoked is LOST, and who rebootstraps does not start. An epoch of the consumer protocol joins a
    member, or is its next one; to be told it again is no event.
    """
    any_group = max({row.group for row in rows if row.group}, default=None)
    group: str | None = None
    state: dict[str, _Before] = defaultdict(_Before)
    for row in rows:
        group = row.group or group
        mine = group or any_group
        if mine is None or row.kind == NAMED:
            continue
        before = state[mine]
        if row.kind not in _ABOUT_PARTITIONS or row.protocol:
            several = _turned(row, before)
            if several is None:
                yield _event(row, ALIVE, mine, consumer, row.host)
                continue
            row, starts = several
            if starts:
                yield _event(row, Kind.STARTED, mine, consumer, row.host)
        kind = row.kind
        if kind == Kind.REVOKED and before.phase == LOSING:
            kind = Kind.LOST
        elif kind == Kind.CLOSED and before.phase == OVERDUE:
            kind = Kind.LEAVING
        elif kind in (LOSING, OVERDUE):
            kind = Kind.RESET
        member = None if kind == Kind.PLANNED else before.member
        yield _event(row, kind, mine, consumer, row.host, before.generation, member, before.protocol)


def _heard(events: Sequence[EventRow]) -> Iterator[EventRow]:
    """Yield the events of a consumer, the last one first, with what says that its log breaks off.

    A consumer is told its share, and then says that it owns that, or why not. Where no line does, ``heard``
    says until when it writes anything: there its log may be cut off. Nothing is known of a member of the
    consumer protocol that never says so: its transitions are not logged.
    """
    transits = DONE in {event.kind for event in events}
    latest: dict[str, int] = {}
    complete: set[str] = set()
    for event in reversed(events):
        at, kind, group = event[:3]
        last = latest.setdefault(group, at)
        if kind == DONE or (kind == Kind.ASSIGNED and event.source not in PIECEWISE):
            complete.add(group)
        elif kind in _TURNS:
            begins = kind in _JOINS and not (event.protocol and event.detail in _NOTHING_TO_DO)
            if begins and group not in complete and (transits or not event.protocol):
                event = event._replace(heard=last)
            complete.discard(group)
            if kind in _GOES:
                latest[group] = at
            else:
                del latest[group]
        if kind not in (ALIVE, DONE):
            yield event


_NOTHING_TO_DO = (EPOCH, "STABLE")
"""Details of joins with which a member of the consumer protocol is not told to own anything else."""

_ABOUT_PARTITIONS = frozenset({Kind.ASSIGNED, Kind.REVOKED, Kind.LOST, Kind.PLANNED})
_GOES = frozenset({Kind.CLOSED, Kind.LEAVING, Kind.RESET})
_TURNS = _JOINS | _GOES | {Kind.STARTED, Kind.JOINING}
_INSIDE_OR_NOT = _ENDS | {Kind.JOINED, Kind.RESET, LOSING, OVERDUE}
_PHASES = frozenset({Kind.JOINED, LOSING, OVERDUE, REBOOTSTRAPPING})


class _Before:
    def __init__(self) -> None:
        self.generation: int | None = None
        self.member: str | None = None
        self.phase: str | None = None
        self.inside = False
        self.protocol: str | None = None
        self.epoch: tuple[str | None, int | None] | None = None


def _turned(row: LineRow, before: _Before) -> tuple[LineRow, bool] | None:
    """Bring what is known of a consumer up to a row of its life; None where that is no event.

    Return the row, and whether the process began with it.
    """
    if row.kind == EPOCH:
        if before.epoch == (row.member, row.generation):
            return None
        row = row._replace(kind=Kind.SYNCED if before.epoch else Kind.JOINED, detail=EPOCH)
        before.epoch = row.member, row.generation
    elif row.kind in _OUTSIDE:
        before.epoch = None
    if row.protocol or row.kind == Kind.JOINED:
        before.protocol = row.protocol
    new = row.kind == Kind.STARTED
    another = before.inside and row.member and before.member not in (None, row.member)
    starts = bool(row.kind == Kind.JOINED and row.instance and another)
    if row.kind in _INSIDE_OR_NOT:
        before.inside = row.kind == Kind.JOINED
    if row.kind in _JOINS:
        before.generation = row.generation if row.generation is not None else before.generation
        before.member = row.member or before.member
    elif new:
        before.generation = before.member = None
    if row.kind in _PHASES:
        before.phase = row.kind
    if row.kind == REBOOTSTRAPPING or (new and before.phase == REBOOTSTRAPPING):
        return None
    return row, starts


def _replaced(rows: Sequence[LineRow]) -> Iterable[EventRow]:
    """Return the removal of each static member in whose place another process joins: under its instance id
    and another member id. ``rows`` in order."""
    members: dict[tuple[str | None, str], str] = {}
    for row in rows:
        if row.instance and row.member and row.group and row.kind in _JOINS:
            before = members.get((row.group, row.instance))
            members[row.group, row.instance] = row.member
            if before not in (None, row.member):
                gone = row._replace(member=before, generation=None, detail="replaced")
                yield _event(gone, Kind.REMOVED, row.group, None, row.host)


# -- what they are -------------------------------------------------------------------------------------


def _clients(consumer: str, rows: Sequence[LineRow], releases: Sequence[LineRow]) -> set[LoggedClient]:
    groups = {row.group for row in rows if row.group}
    assignors = {row.group: row.assignor for row in rows if row.assignor}
    first = rows[0]
    stated = next(
        (row.detail for row in rows if row.source == "librdkafka" and row.kind == Kind.STARTED), None
    )
    release = stated or _release(releases, first)
    clusters = {
        row.group: row.detail
        for row in rows
        if row.source == "java" and row.kind == Kind.STARTED and row.detail
    }
    return {
        LoggedClient(group, consumer, first.source, release, assignors.get(group), clusters.get(group))
        for group in groups
    }


def _release(releases: Sequence[LineRow], row: LineRow) -> str | None:
    """Return the release that the process logged before this row, or else after it."""
    same = [one for one in releases if (one.origin, one.stream) == (row.origin, row.stream)]
    before = [one for one in same if one.at <= row.at]
    return max(before, key=_in_order).detail if before else min(same, key=_in_order).detail if same else None
