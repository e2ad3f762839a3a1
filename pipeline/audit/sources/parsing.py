"""Lines, of whoever wrote them, as rows: which line is which event of which client, and when it was."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rebalance_verifier.pipeline.audit.sources import jsonl
from rebalance_verifier.pipeline.audit.sources.assignments import listed, planned
from rebalance_verifier.pipeline.audit.sources.envelopes import COLOURS, Wrapped, lines_of, taken_off, unwrap
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.fields import FieldSource
from rebalance_verifier.pipeline.audit.sources.heads import Heads
from rebalance_verifier.pipeline.audit.sources.loggers import (
    ALIVE,
    BROKER,
    EXCHANGED,
    KAFKAJS,
    LOGGED,
    OFFSETS,
    RELEASE,
    RUNNING,
    TARGETED,
)
from rebalance_verifier.pipeline.audit.sources.patterns import (
    BEHIND,
    KnownLine,
    Source,
    UnrecognisedTail,
    bare,
    captures,
)
from rebalance_verifier.pipeline.audit.sources.rows import (
    EventPart,
    LineRow,
    MalformedLine,
    NoPartition,
    named,
    small,
)
from rebalance_verifier.pipeline.audit.sources.times import (
    AMBIGUOUS,
    AMERICAN,
    moment,
    stamp,
    undated,
    yearless,
    zoned,
)

KINDS = (jsonl.NAME, *(source.name for source in LOGGED))
"""The kinds of logs that are read."""

SHOWN = 1000
"""Characters of a malformed line that are kept."""

BEFORE = 400
"""Characters before the message in which the time is looked for, the last ones."""

UNDATED = "a time without a date: name the day with --date YYYY-MM-DD"
NO_YEAR = "a day without a year: name one of its year with --date YYYY-MM-DD"
ANY_ORDER = (
    "a date whose order of day, month and year nobody knows: write it as YYYY-MM-DD "
    "(Azure: project tostring(TimeGenerated))"
)
UNLIKE = "begins like a line of this source that we know, and goes on otherwise"
GLUED = "two lines in one, of which the second would not be read"
QUOTED = "stands within quotes that this reader does not open, so names do not end where they end"
NO_TIME = "no date and time that we understand"
_OF_JUL = ("INFO: ", "WARNING: ", "SEVERE: ", "CONFIG: ", "FINE: ")
"""How a message of java.util.logging begins; the time stands on the line above."""

_UNFINISHED = tuple(
    f"{line.start}{end}" for line in KAFKAJS.lines for end in ("", " {", "\x1b[39m", "\x1b[0m", "\x1b[39m {")
)
"""How a line ends below which the fields stand: pino-pretty, node's console."""

BELOW = 200
"""Lines of fields that are read below a message."""


def _untimed(text: str) -> str:
    """Say why nobody knows when a line was written, of which this is the beginning."""
    if AMBIGUOUS.search(text):
        return ANY_ORDER
    return NO_YEAR if yearless(text) else UNDATED if undated(text) else NO_TIME


STRANGE = "of a form that this reader fails on; please report it"
BROKEN = "bytes that are not UTF-8 in what it says"

ROTATED = re.compile(
    r"[-_.](?:previous|prev)(?=\.\w+$|$)|"  # kubectl logs --previous, saved beside the other
    r"[-_.]\d{4}-\d{2}-\d{2}(?:[-_T.]\d{1,2})*(?=\.)"  # app-2024-01-02.0.log
    r"|(?:\.(?:gz|bz2|xz|zst|lz4|snappy|deflate|\d{1,4}|\d{4}-\d{2}-\d{2}(?:[-_T]\d{2}){0,3}|\d{8}))+$"
)
"""What rotation adds to the name of a log: a date, a number, a codec."""

_EPOCH_OF = re.compile(r"@-?\d+\b")
"""``topic id-0@8``: since which epoch, from 4.3 on."""

_EVERY = 200
"""Of lines that nobody knows, one of so many is looked at for its time, and the last ones of each file."""


def stream_of(file: str, parent: str = "") -> str:
    """Which log a file is a piece of: its name without the parent directory and what rotation adds.

    >>> stream_of("/logs/h1/app.log.2", "/logs/"), stream_of("/logs/h2/app-2024-01-02.0.log.gz", "/logs/")
    ('h1/app.log', 'h2/app.log')
    """
    return ROTATED.sub("", file.removeprefix(parent))


class Meaning(NamedTuple):
    """A message of a client, whenever and wherever; ``kind`` is None for nothing of interest."""

    kind: str | None = None
    group: str | None = None
    client: str | None = None
    member: str | None = None
    instance: str | None = None
    generation: int | None = None
    detail: str | None = None
    assignor: str | None = None
    protocol: str | None = None
    members: int | None = None
    parts: list[EventPart] = []  # noqa: RUF012 - nothing is added to it


class LastLine(NamedTuple):
    """Place of a line that is of no interest but for its time; ``at``: the text that has it, or the time."""

    at: int | str
    when: str
    name: str
    host: str
    number: int


KNOWN = 1 << 15
"""Messages that are looked up, before they are forgotten."""

_TELLING = ('"', "\x1b", "\ufffd", "msg=", "message=")
"""In a line with one of these the parts are not read each by itself: JSON, logfmt, CSV, a colour."""

_IN_TWO = frozenset({TARGETED, EXCHANGED})
"""Events that are several."""

_new: Any = tuple.__new__
"""Make a record of all of its fields: the class itself takes three times as long."""


class QuickSource:
    """A source whose lines are read part by part: the head, the name of the client, the message.

    ``earlier``: the marks of the sources that a line is held against before. What has been said by now is in
    ``meanings``, None for a message that takes more than itself.
    """

    def __init__(self, source: Source, earlier: Sequence[str]) -> None:
        self.name, self.client, self.head, self.match = source.name, source.client, source.head, source.match
        self.source, self.earlier = source, earlier
        self.openings = tuple(dict.fromkeys(f"{mark.partition(' ')[0]} " for mark in source.marks))
        self.telling = (*_TELLING, *earlier)
        self.meanings: dict[str, Meaning | None] = {}


class Speaker(NamedTuple):
    """Sender of a message."""

    source: QuickSource
    group: str | None
    client: str | None
    instance: str | None
    coordinator: str


def _quick_sources(sources: Sequence[Source | FieldSource]) -> list[QuickSource]:
    """Return the sources whose lines all have the name of a client in brackets before the message."""
    found, earlier = [], list[str]()
    for one in sources:
        if isinstance(one, Source) and not one.loose and one.prefix.startswith(r"(?P<head>.*?)\["):
            found.append(QuickSource(one, tuple(earlier)))
        earlier += one.marks
    return found


def _meaning_of_message(source: QuickSource, message: str) -> Meaning | None:
    """Return what a message says, whoever says it, and note it; None where that takes more than it."""
    if len(source.meanings) >= KNOWN:
        source.meanings.clear()
    meaning = None
    telling = message[-1:] in (" ", "\r", "\n") or message.endswith(_UNFINISHED)
    if not telling and not any(map(message.__contains__, (*source.telling, *source.source.marks))):
        text = bare(message)
        try:
            meaning = _meaning(source.source, {}, *source.match(text), text)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
            meaning = None  # what is wrong with it is said where the whole line is read
    source.meanings[message] = meaning
    return meaning


class LineParser:
    """Reads lines and keeps what they say: ``rows``, ``malformed``, ``counts``, ``until``.

    ``kind``: only lines of this one of ``KINDS``; of ``events`` every line must be one. ``zone`` is that of
    times which have none, ``date`` (``2024-01-02``) the day of those that have none. ``parent`` is the
    beginning of file names that says nothing.
    """

    def __init__(
        self, kind: str | None = None, *, zone: str = "UTC", date: str | None = None, parent: str = ""
    ) -> None:
        self.kind, self.zone, self.date, self.parent = kind, zone, date, parent
        self.rows: list[LineRow] = []
        self.malformed: list[MalformedLine] = []
        self.counts: dict[tuple[str, str | None], list[int]] = {}
        """File and source (None: of nobody we know) -> lines, and those of them that are events."""
        self.until: int | None = None
        """The last time in these lines, also of those that say nothing else."""
        self.ends: dict[str, int] = {}
        """The same of each file."""
        self._sources = [*(s for s in LOGGED if kind in (None, s.name)), RUNNING]
        self._marks = tuple(dict.fromkeys(mark for source in self._sources for mark in source.marks))
        self._open: dict[str, Wrapped] = {}
        self._above: tuple[int, str] | None = None
        self._below = 0
        self._line_before = ""
        self._known: dict[str, Meaning] = {}
        self._quick_sources = _quick_sources(self._sources)
        earlier = {mark for one in self._quick_sources for mark in one.earlier}
        self._heads = Heads(zone, self._at, sorted(earlier))
        self._speakers: dict[str, Speaker | None] = {}
        self._idle: deque[str] = deque(maxlen=50)
        self._alive: dict[tuple[str, str | None, str | None, str, str], LastLine] = {}
        """Source, client, group, coordinator and process -> the last line of this file of no interest."""
        self._passed = 0

    def content(
        self,
        file: str,
        lines: Iterable[tuple[int, str | dict[str, Any] | list[Any]]],
        *,
        goes_on: bool = False,
    ) -> None:
        """Read a file: its lines with their numbers, in order, or the values of JSON and rows of CSV in
        it. ``goes_on``: more of it follows, so what its last lines begin is not ended."""
        stream = stream_of(file, self.parent)
        before, self.until = self.until, None
        openings = [opening for one in self._quick_sources for opening in one.openings]
        for number, one in lines:
            if type(one) is str:
                for opening in openings:
                    begins = one.find(opening)
                    if begins > 0:
                        break
                else:
                    begins = 0
                if begins and self._quick(file, stream, number, one, begins):
                    continue
            self._guarded(file, stream, number, one)
        if not goes_on:
            if self._above is not None:
                self._guarded(file, stream, self._above[0], None)
            self._open.pop(file, None)
        self._end_of_lives(file, stream)
        self._catch_up()
        if self.until is not None:
            self.ends[file] = max(self.until, self.ends.get(file, self.until))
        self._reach(before)

    def _quick(self, file: str, stream: str, number: int, text: str, begins: int) -> bool:
        """Read a line of which each part has been there before. False: it has to be taken apart."""
        if self._above is not None or file in self._open:
            return False
        ends = text.find(" ", text.find("]", begins)) + 1
        try:
            speaker = self._speakers[text[begins:ends]]
        except KeyError:
            speaker = self._speaker(text[begins:ends])
        if speaker is None:
            return False
        message, source = text[ends:], speaker.source
        try:
            meaning = source.meanings[message]
        except KeyError:
            meaning = _meaning_of_message(source, message)
        if meaning is None or (read := self._heads.read(text, begins)) is None:
            return False
        (name, host, _, _), at = read
        self._line_before = text
        counted = self.counts.setdefault((file, source.name), [0, 0])
        counted[0] += 1
        if self.until is None or at > self.until:
            self.until = at
        kind, group, client, member, instance, generation, detail, assignor, protocol, members, parts = (
            meaning
        )
        group = group or speaker.group
        if kind is None:
            last = LastLine(at, "", name, host, number)
            self._says_more(source.name, speaker.client, speaker.group, speaker.coordinator, last)
            return True
        if group == "null":  # see `_logged`
            return True
        counted[1] += 1
        before = at, kind, group, client or speaker.client
        instance = instance or speaker.instance
        where = (
            detail,
            assignor,
            name,
            stream,
            host or name or stream,
            source.name,
            file,
            number,
            protocol,
            members,
            speaker.coordinator,
        )
        if kind in _IN_TWO:
            self._add(_new(LineRow, (*before, member, instance, generation, None, None, *where)), parts)
        elif not parts:
            self.rows.append(_new(LineRow, (*before, member, instance, generation, None, None, *where)))
        else:
            self.rows += [
                _new(LineRow, (*before, who or member, instance, generation, topic, partition, *where))
                for topic, partition, who in parts
            ]
        return True

    def _speaker(self, text: str) -> Speaker | None:
        """Return who says a message by what stands directly before it, and note it; None: that does not end
        there, or tells more."""
        if len(self._speakers) >= KNOWN:
            self._speakers.clear()
        source = next((one for one in self._quick_sources if text.startswith(one.openings)), None)
        found = source.head.match(text) if source else None
        self._speakers[text] = None
        telling = source is None or any(map(text.__contains__, source.telling))
        if source and not telling and found and not found["head"] and found.end() == len(text):
            head = captures(found)
            client = head.get("client") or source.client or None
            coordinator = text.strip() if source.name == BROKER.name else ""
            self._speakers[text] = Speaker(
                source, head.get("group"), client, head.get("instance"), coordinator
            )
        return self._speakers[text]

    def _guarded(
        self, file: str, stream: str, number: int, one: str | dict[str, Any] | list[Any] | None
    ) -> None:
        """Read a line, a value, or the end (None). One that nobody thought of does not end the audit."""
        try:
            if one is None:
                self._end_of_block(file, stream)
            elif isinstance(one, str):
                self._one(file, stream, number, one)
            else:
                for wrapped in lines_of(one):
                    self._wrapped(file, stream, number, wrapped)
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            self._count(file, None)
            why = f"{STRANGE}: {type(error).__name__}"
            self.malformed.append(MalformedLine(file, number, str(one)[:SHOWN], why))

    def _one(self, file: str, stream: str, number: int, text: str) -> None:
        """Read a line, with those below it that hold its fields, or the one above that has its time."""
        if self._above is not None:
            if text[:1] in (" ", "\t", "}") and self._below < BELOW:
                self._below += 1
                self._count(file, None)
                self._above = self._above[0], f"{self._above[1]}\n{COLOURS.sub('', text)}"
                return
            self._end_of_block(file, stream)
        if text.endswith(_UNFINISHED):
            self._above, self._below = (number, COLOURS.sub("", text)), 0
            return
        if text.startswith(_OF_JUL) and AMERICAN.match(self._line_before):
            text = f"{self._line_before} {text}"
        self._line_before = text
        self.line(file, stream, number, text)

    def _end_of_block(self, file: str, stream: str) -> None:
        if self._above is not None:
            number, text = self._above
            self._above = None
            self.line(file, stream, number, text)

    def line(self, file: str, stream: str, number: int, text: str) -> None:
        """Read one line."""
        if self.kind == jsonl.NAME:
            if text.strip():
                self._event(file, number, text)
            else:
                self._count(file, None)
            return
        if self.kind is None and jsonl.claimed(text):
            self._event(file, number, text)
            return
        if file not in self._open and not self._claimed(text):
            self._count(file, None)
            self._pass(text)
            return
        if file not in self._open and (text[:1] not in ("{", "[") or text[-1] not in "}]"):
            wrapped = taken_off(text)
            if not wrapped.partial:
                self._wrapped(file, stream, number, wrapped)
                return
        for wrapped in unwrap(text):
            whole = self._joined(file, wrapped)
            if whole is not None:
                self._wrapped(file, stream, number, whole)
            else:
                self._count(file, None)

    def _joined(self, file: str, wrapped: Wrapped) -> Wrapped | None:
        """With what runtimes cut off a long line; None: it goes on."""
        begun = self._open.pop(file, None)
        if begun is not None:
            wrapped = begun._replace(text=begun.text + wrapped.text, partial=wrapped.partial)
        if wrapped.partial:
            self._open[file] = wrapped
            return None
        return wrapped

    def _claimed(self, text: str) -> bool:
        return any(map(text.__contains__, self._marks))

    def _count(self, file: str, source: str | None, recognised: bool = False) -> None:
        counted = self.counts.setdefault((file, source), [0, 0])
        counted[0] += 1
        counted[1] += recognised

    def _reach(self, at: int | None) -> None:
        if at is not None and (self.until is None or at > self.until):
            self.until = at

    def _pass(self, text: str) -> None:
        """A line of no interest, but for its time."""
        self._passed += 1
        self._idle.append(text)
        if self._passed % _EVERY == 1:
            self._reach(self._stamp(text))

    def _catch_up(self) -> None:
        """The time of the last lines of a file."""
        while self._idle:
            at = self._stamp(self._idle.pop())
            if at is not None:
                self._reach(at)
                self._idle.clear()

    def _stamp(self, text: str) -> int | None:
        if text.startswith("{"):
            return next((moment(one.when, self.zone, self.date) for one in unwrap(text) if one.when), None)
        return stamp(text, self.zone, self.date)

    def _event(self, file: str, number: int, text: str) -> None:
        try:
            rows = jsonl.read(text, self.zone, file, number)
            if "\ufffd" in text:
                raise jsonl.NotOurs(BROKEN)
        except jsonl.NotOurs as error:
            self._count(file, jsonl.NAME)
            self.malformed.append(MalformedLine(file, number, text[:SHOWN], str(error)))
            return
        self._count(file, jsonl.NAME if rows else None, bool(rows))
        self._reach(rows[0].at if rows else jsonl.when(text, self.zone))
        self.rows += rows

    # -- what a logger wrote -----------------------------------------------------------------------------

    def _wrapped(self, file: str, stream: str, number: int, wrapped: Wrapped) -> None:
        if wrapped.text[-1:] in (" ", "\r", "\n"):
            wrapped = wrapped._replace(text=wrapped.text.rstrip(" \r\n"))
        for source in self._sources:
            if source.claims(wrapped.text) and self._logged(source, file, stream, number, wrapped):
                return
        self._count(file, None)
        if wrapped.when:
            self._reach(moment(wrapped.when, self.zone, self.date))
        else:
            self._pass(wrapped.text)

    def _logged(
        self, source: Source | FieldSource, file: str, stream: str, number: int, wrapped: Wrapped
    ) -> bool:
        """Return whether a line is of this source."""
        try:
            if not source.loose and any(wrapped.text.count(mark) > 1 for mark in source.marks):
                raise NotRead(GLUED)
            before, meaning = self._meaning_of(source, wrapped)
            if meaning is None:
                if not source.loose:
                    self._count(file, source.name)
                    self._pass(wrapped.text)
                return not source.loose
            if meaning.kind is None:
                self._count(file, source.name)
                dated = before if source.name == OFFSETS.name else wrapped.when  # not at its beginning there
                self._pass(f"{dated} {wrapped.text}" if dated else wrapped.text)
                name, host = wrapped.origin.name, wrapped.origin.host
                last = LastLine(before[-BEFORE:], wrapped.when, name, host, number)
                self._says_more(
                    source.name,
                    meaning.client,
                    meaning.group,
                    _coordinator(source, file, meaning.group, wrapped.text),
                    last,
                )
                return True
            if any('"' in name for name in (meaning.group, meaning.client, meaning.member) if name):
                raise NotRead(QUOTED)
            before = before[-BEFORE:]
            at = self._at(before, wrapped.when)
            self._reach(at)
            if meaning.group == "null":  # Java's name for the group of a consumer that assigns itself
                self._count(file, source.name)
                return True
            if at is None and meaning.kind == RELEASE:
                self._count(file, None)
                return True
            if at is None:
                raise NotRead(_untimed(f"{before} {wrapped.when}"))
        except UnrecognisedTail as error:
            self._unread(source, file, number, wrapped, str(error) or UNLIKE)
            return True
        except NotRead as error:
            self._unread(source, file, number, wrapped, str(error))
            return True
        except NoPartition:
            self._unread(source, file, number, wrapped, "a partition that is not topic-number")
            return True
        self._count(file, source.name, meaning.kind != RELEASE)
        name = wrapped.origin.name
        # Whose clock it is: the machine's, or else the process has one of its own.
        clock = wrapped.origin.host or name or stream
        self._add(
            LineRow._make(
                (
                    *(
                        at,
                        meaning.kind,
                        meaning.group,
                        meaning.client,
                        meaning.member,
                        meaning.instance,
                        meaning.generation,
                    ),
                    *(
                        None,
                        None,
                        meaning.detail,
                        meaning.assignor,
                        name,
                        stream,
                        clock,
                        source.name,
                        file,
                        number,
                    ),
                    *(
                        meaning.protocol,
                        meaning.members,
                        _coordinator(source, file, meaning.group, wrapped.text),
                    ),
                )
            ),
            meaning.parts,
        )
        return True

    def _meaning_of(self, source: Source | FieldSource, wrapped: Wrapped) -> tuple[str, Meaning | None]:
        """Return what stands before a message, and what it says; None where it is not of this source.

        A client says much again and again: what begins at its name is looked up.
        Raises UnrecognisedTail, NotRead and NoPartition.
        """
        text, opening = wrapped.text, source.opening
        begins = text.find(opening) if opening else -1
        if begins > 0:
            meaning = self._known.get(text[begins:])
            if meaning is None:
                head, meaning = _understood(source, wrapped._replace(text=text[begins:]))
                if head or meaning is None:  # the name of a client is further on
                    return _understood(source, wrapped)
                if len(self._known) >= KNOWN:
                    self._known.clear()
                self._known[text[begins:]] = meaning
            return text[:begins], meaning
        return _understood(source, wrapped)

    def _says_more(
        self, source: str, client: str | None, group: str | None, coordinator: str, line: LastLine
    ) -> None:
        """Note that a client or a coordinator writes on: of its lines of no interest the last one is kept."""
        if (client and group != "null") or coordinator:
            self._alive[source, client, group, coordinator, line.name] = line

    def _end_of_lives(self, file: str, stream: str) -> None:
        """Add a row for the last line of each client in a file that is of no interest but for its time."""
        for (source, client, group, coordinator, name), line in self._alive.items():
            at = line.at if isinstance(line.at, int) else self._at(line.at, line.when)
            if at is not None:
                row = LineRow(at, ALIVE, group, client, source=source, file=file, line=line.number)
                row = row._replace(origin=name, stream=stream, host=line.host or name or stream)
                self.rows.append(row._replace(coordinator=coordinator))
        self._alive.clear()

    def _add(self, row: LineRow, parts: list[EventPart]) -> None:
        if row.kind == TARGETED:
            self.rows.append(row._replace(kind=Kind.STABLE))
            row = row._replace(kind=Kind.PLANNED)
            if not parts:
                return
        if row.kind == EXCHANGED:
            given = [part for part in parts if part.member == EXCHANGED]
            for kind, some in ((Kind.REVOKED, [p for p in parts if p not in given]), (Kind.ASSIGNED, given)):
                self._add(row._replace(kind=kind), [part._replace(member=None) for part in some])
            return
        if not parts:
            self.rows.append(row)
            return
        before, own, since, after = row[:4], row.member, row[5:7], row[9:]
        self.rows += [
            LineRow._make((*before, member or own, *since, topic, partition, *after))
            for topic, partition, member in parts
        ]

    def _unread(
        self, source: Source | FieldSource, file: str, number: int, wrapped: Wrapped, why: str
    ) -> None:
        self._count(file, source.name)
        text = wrapped.text
        split = source.split(text) if isinstance(source, Source) else None
        at = self._at((split[0].get("head", "") if split else text)[-BEFORE:], wrapped.when)
        self._reach(at)
        group = split[0].get("group") if split else None
        self.malformed.append(MalformedLine(file, number, text[:SHOWN], why, group, at))

    def _at(self, inner: str, outer: str) -> int | None:
        """Return the time. The text before the message counts before that around both.

        Unless it has no zone, and is off by what zones differ by from a time that has one.
        """
        both = f"{inner} {outer}" if outer else inner
        at = moment(both, self.zone, self.date)
        if at is None or not outer or not inner or zoned(inner) or not zoned(outer):
            return at
        around = moment(outer, self.zone)
        if around is None or moment(inner, self.zone, self.date) is None:
            return at
        quarters, off = divmod(abs(around - at) + 60_000_000, 900_000_000)
        return around if 1 <= quarters <= 56 and off <= 120_000_000 else at


_COORDINATOR = re.compile(r"\[Group(?:Coordinator|MetadataManager) [^\]]*\]:?")


def _coordinator(source: Source | FieldSource, file: str, group: str | None, text: str) -> str:
    """Return which coordinator writes a line. A broker's says so. A dump may be of several partitions, which
    end at times of their own; all records of one group are in one of them."""
    if source.name == OFFSETS.name:
        return f"{group} in {file}"
    found = _COORDINATOR.search(text) if source.name == BROKER.name else None
    return found[0] if found else ""


def _understood(source: Source | FieldSource, wrapped: Wrapped) -> tuple[str, Meaning | None]:
    """Return what stands before a message, and what it says.

    Raises UnrecognisedTail, NotRead and NoPartition.
    """
    reading = source.read(wrapped)
    if reading is None:
        if not source.loose and _ends_in_its_head(source, wrapped.text):
            raise UnrecognisedTail
        return "", None
    head, line, caught, message = reading
    head.setdefault("client", source.client)
    return head.get("head", ""), _meaning(source, head, line, caught, message)


def _meaning(
    source: Source | FieldSource,
    head: Mapping[str, str],
    line: KnownLine | None,
    caught: Mapping[str, str],
    message: str,
) -> Meaning:
    """Return the meaning of a message that a row of a table takes. Raises NotRead and NoPartition."""
    if line is None or line.kind is None:
        return Meaning(group=head.get("group"), client=head.get("client") or None)
    generation = small(caught["generation"]) if "generation" in caught else None
    if generation is None and "generation" in caught:
        raise NotRead("the generation is no number")
    parts = _parts(caught, line.kind)
    if "\ufffd" in message and (
        "\ufffd" in message[:SHOWN] or any("\ufffd" in f"{one.topic}{one.member}" for one in parts)
    ):
        raise NotRead(BROKEN)
    get = caught.get
    return Meaning(
        line.kind,
        get("group") or head.get("group"),
        get("client") or head.get("client") or None,
        get("member"),
        get("instance") or head.get("instance"),
        generation,
        get("detail") or (get(BEHIND) if _ends_names(source, line.kind) else None),
        get("assignor"),
        line.protocol,
        small(caught["count"]) if "count" in caught else None,
        parts,
    )


def _ends_names(source: Source | FieldSource, kind: str) -> bool:
    """Check whether what stands behind a message tells where names of groups end (``settling``)."""
    return kind == Kind.JOINED and isinstance(source, Source) and source.open_ended


def _ends_in_its_head(source: Source | FieldSource, text: str) -> bool:
    """Return whether a line is cut off where it says whose it is."""
    begins = max(text.rfind(mark) for mark in source.marks)
    return text[begins : begins + 1] == "[" and "]" not in text[begins:]


class NotRead(ValueError):
    """A line that is an event, and does not say what it has to."""


def _parts(caught: Mapping[str, str], kind: str) -> list[EventPart]:
    """Raises NoPartition."""
    parts: list[EventPart] = []
    if "plan" in caught:
        for member, share in planned(caught["plan"]):
            parts += [named(name, member) for name in share] or [EventPart(member=member)]
        return parts
    if "numbers" in caught:
        return [named(f"{caught['topic']}-{number}") for number in caught["numbers"].split()]
    if "number" in caught:
        return [named(f"{caught.get('topic', '')}-{caught['number']}")]
    mark = EXCHANGED if kind == EXCHANGED else None  # what is given, beside what is taken
    if "topics" in caught:
        parts += [EventPart(topic) for topic in listed(caught["topics"])]
    if "revoked" in caught:
        parts += [named(name) for name in listed(caught["revoked"])]
    if "partitions" in caught:
        text = _EPOCH_OF.sub("", caught["partitions"]) if kind == Kind.GRANTED else caught["partitions"]
        parts += [named(name, mark) for name in listed(text)]
    if "members" in caught:
        parts += [EventPart(member=member) for member in listed(caught["members"])]
    return parts
