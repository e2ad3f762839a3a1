"""What shippers, runtimes and exports put around a line: taken off, and what it tells of the process kept.

[pod/orders-7d9f-x2x4z/app] 2024-01-02T03:04:05Z ...   kubectl logs --prefix, stern, compose, CRI, syslog
{"@timestamp": ..., "kubernetes": {"pod": {"name": ...}}, "message": "..."}   JSON of whatever layout
{"hits": {"hits": [{"_source": {...}}, ...]}}           answers that hold many lines
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Which process wrote a line, as far as what is around the line tells. All empty: nothing is."""

    pod: str = ""
    """Or another name that one process has: a task, a log stream, a Compose service's container."""
    container: str = ""
    host: str = ""
    process: str = ""
    """Its number."""

    @property
    def name(self) -> str:
        """Return the name that distinguishes processes; empty where nothing does.

        >>> Origin(pod="orders-0", container="app", host="n1").name, Origin(host="n1", process="7").name
        ('orders-0:app', 'n1:7')
        """
        if self.pod:
            return f"{self.pod}:{self.container}" if self.container else self.pod
        return ":".join(filter(None, (self.host, self.container, self.process)))

    def within(self, outer: Origin) -> Origin:
        """With what ``outer`` knows besides."""
        return Origin(*(inner or around for inner, around in zip(self, outer, strict=True)))


class Wrapped(NamedTuple):
    """A line without what is around it. ``when``: the times that stood there."""

    text: str
    when: str = ""
    origin: Origin = Origin()
    partial: bool = False
    """The next line of the same stream goes on with it."""
    fields: Mapping[str, Any] | None = None
    """What stands beside the message in its JSON, or its logfmt."""


MESSAGES = (
    *("message", "msg", "log", "short_message", "@message", "formattedMessage", "MESSAGE", "line"),
    *("Message", "Content", "textPayload", "body", "Line", "text", "_raw", "@m", "RenderedMessage", "event"),
    *("content", "LogMessage", "LogEntry", "@rawstring"),
)
TIMES = (
    *("@timestamp", "timestamp", "time", "timeMillis", "ts", "asctime", "Date", "date", "Time", "_time"),
    *("eventTime", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP", "datetime", "@t", "Timestamp", "t"),
    *("TimeGenerated", "ibm_datetime"),
)
PODS = (
    *("kubernetes.pod_name", "kubernetes.pod.name", "k8s.pod.name", "kubernetes.podName", "pod_name"),
    *(
        "podName",
        "PodName",
        "pod",
        "pod.name",
        "k8s_pod_name",
        "labels.pod",
        "labels.pod_name",
        "resource.labels.pod_name",
    ),
    *("resource.labels.instance_id", "service.instance.id", "task_arn", "ecs.task-arn", "ecs_task_arn"),
    *("logStreamName", "logStream", "@logStream", "log_stream"),
)
CONTAINERS = (
    *("kubernetes.container_name", "kubernetes.container.name", "k8s.container.name", "container.name"),
    *(
        "container_name",
        "containerName",
        "ContainerName",
        "container",
        "CONTAINER_NAME",
        "docker.name",
        "labels.container",
    ),
    *("resource.labels.container_name",),
)
HOSTS = (
    *("host.name", "host.hostname", "hostname", "HOSTNAME", "host", "Host", "_HOSTNAME", "agent.hostname"),
    *(
        "beat.hostname",
        "kubernetes.host",
        "kubernetes.node.name",
        "nodeName",
        "source_host",
        "hostName",
        "Computer",
        "_sourceHost",
    ),
)
PROCESSES = ("process.pid", "_PID", "SYSLOG_PID", "pid", "process_id")
"""Where the fields are, the best first. A dot is a level, or stands in the name."""

INNER = (
    *("_source", "attributes", "content", "jsonPayload", "fields", "labels", "stream", "resource", "event"),
    "additionalColumns",
)
"""Objects in which the fields may be, besides the one that they are around."""

MANY = (
    *("hits", "events", "logEvents", "results", "result", "streams", "data"),
    *("resourceLogs", "scopeLogs", "logRecords", "entries"),
)
"""Where answers of queries and batches of shippers hold their lines."""

_LEVELS = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|trace|debug|info|warn|warning|error|fatal"
_ISO = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"
_DAY = r"\d{4}-\d{2}-\d{2}[T ]"
_T = r"\d{4}-\d{2}-\d{2}T[\d:.]+"
_BSD = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{2}:\d{2}:\d{2}(?:\.\d+)?"
_APP = r"(?P<app>[\w./-]+)(?:\[(?P<process>\d+)\])?: "
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_POD = rf"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?-(?:[{_SAFE}]{{5}}|\d{{1,4}})"
_NAME = rf"(?!(?:{_LEVELS}|main)\b)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

PREFIXES: dict[str, tuple[re.Pattern[str], ...]] = {
    "[": (
        # kubectl logs --prefix
        re.compile(r"\[pod/(?P<pod>[^/\]]+)/(?P<container>[^\]]+)\] "),
        # kubetail; a thread has such a name, too, but for a Deployment's hash
        re.compile(rf"\[(?P<pod>[a-z0-9][-a-z0-9]*-[{_SAFE}]{{8,10}}-[{_SAFE}]{{5}})\] "),
    ),
    "<": (
        # syslog, RFC 5424 and RFC 3164
        re.compile(
            r"<\d{1,3}>1 (?P<when>\S+) (?P<host>\S+) (?P<app>\S+) (?P<process>\S+) \S+ "
            r"(?:-|(?:\[[^\]]*\])+) ?\ufeff?"
        ),
        re.compile(rf"<\d{{1,3}}>(?P<when>{_BSD}|{_ISO}) (?P<host>\S+) {_APP}"),
    ),
    "0": (
        # kubectl logs --timestamps, of JSON; CRI; Loki's logcli; CloudWatch's `aws logs tail`; syslog and
        # journald with ISO times
        re.compile(rf"(?P<when>{_ISO}) (?=\{{\")"),
        re.compile(rf"(?P<when>{_ISO}) (?:stdout|stderr) (?P<part>[FP])(?: |$)"),
        re.compile(rf"(?P<when>{_ISO}) \{{(?P<labels>[^{{}}]*=[^{{}}]*)\}} "),
        re.compile(r"(?P<when>\d{4}-\d{2}-\d{2}T[\d:.]+[+-]\d{2}:\d{2}) (?P<pod>[\w.$-]+/[\w./$\[\]-]+) "),
        re.compile(rf"(?P<when>{_ISO}) (?P<host>[\w.-]+) [\w./-]+\[(?P<process>\d+)\]: "),
        # Heroku; Fluentd's files
        re.compile(rf"(?P<when>{_ISO}) (?P<pod>[\w-]+\[[a-z]\w*\.\d+\]): "),
        re.compile(rf"(?P<when>{_ISO} [+-]\d{{4}}) [\w.*-]+: (?=\{{\")"),
        # journald's `short-unix`; Swarm with --timestamps; Papertrail's archives
        re.compile(r"(?P<when>\d{10}\.\d{6}) (?P<host>[\w.-]+) [\w./-]+\[(?P<process>\d+)\]: "),
        re.compile(rf"(?P<when>{_ISO}) +(?P<pod>[\w.-]+@[\w.-]+) +\| "),
        re.compile(rf"\d+\t(?P<when>{_ISO})\t{_ISO}\t\d+\t(?P<host>[^\t]+)\t(?:[^\t]*\t){{4}}"),
    ),
    "a": (
        # syslog and journald with local times; Compose and Swarm; stern
        re.compile(rf"(?P<when>{_BSD}) (?P<host>\S+) {_APP}"),
        re.compile(rf"(?!(?:{_LEVELS})\b)(?P<pod>[A-Za-z0-9][\w.@-]*) *\| "),
        re.compile(rf"(?:{_NAME} )?(?P<pod>{_POD}) (?P<container>(?!{_DAY}){_NAME}) (?:[|│] ?)?"),
        re.compile(rf"(?P<pod>{_POD}) (?={_DAY})"),
        # journald's `short-full`; kail; what `aws logs filter-log-events --output text` prints
        re.compile(rf"[A-Z][a-z]{{2}} (?P<when>{_ISO}) UTC (?P<host>[\w.-]+) {_APP}"),
        re.compile(r"[a-z0-9-]+/(?P<pod>[a-z0-9][-a-z0-9.]*)\[(?P<container>[a-z0-9][-a-z0-9]*)\]: "),
        re.compile(r"EVENTS\t\d+\t\d+\t(?P<pod>[^\t]+)\t"),
    ),
}
"""First character (0: any digit, a: any letter or digit) -> what a line may begin with."""

COLOURS = re.compile(r"\x1b\[[\d;]*m")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def unwrap(text: str) -> Iterator[Wrapped]:
    """The lines that are in a line: one, but for JSON that holds many, or nothing of the kind."""
    if text.startswith(("{", "[")) and text.rstrip()[-1] in "}]":
        values = _values(text)
        for value in values:
            yield from lines_of(value)
        if values:
            return
    yield taken_off(text)


_BLANKS = re.compile(r"\s*")


def _values(text: str) -> list[Any]:
    """Return the JSON values in a line: one, or several on end, as Firehose delivers them.

    >>> _values('{"a": 1}'), _values('{"a": 1}{"a": 2} {}'), _values('{"a": 1}{"a"}'), _values("[7] {}")
    ([{'a': 1}], [{'a': 1}, {'a': 2}, {}], [], [[7], {}])
    """
    value = parsed(text)
    if isinstance(value, (dict, list)):
        return [value]
    found, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        found.append(value)
        between = _BLANKS.match(text, end)
        at = between.end() if between else end
    return found


def taken_off(text: str) -> Wrapped:
    """A line that is no JSON without what stands around it."""
    return _plain(Wrapped(text))


def parsed(text: str) -> Any:
    """JSON, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _plain(one: Wrapped, depth: int = 0) -> Wrapped:
    """Prefixes taken off, one after the other; JSON behind them, too."""
    text = one.text
    if depth > 4 or not text:
        return one
    if text[0] == "\x1b":
        end = text.find("m") + 1
        return _plain(one._replace(text=text[end:]), depth + 1)
    first = "0" if text[0].isdigit() else "a" if text[0].isalpha() else text[0]
    for kind in (first, "a") if first == "0" else (first,):
        for pattern in PREFIXES.get(kind, ()):
            found = pattern.match(COLOURS.sub("", text[:400]) if "\x1b" in text[:400] else text)
            if found is not None:
                return _plain(_without(one, found), depth + 1)
    if text[0] == "{" and depth:
        value = parsed(text)
        if isinstance(value, dict):
            return next((_within(inner, one) for inner in lines_of(value)), one)
    if "msg=" in text or "message=" in text:
        pairs = pairs_of(text) if _LOGFMT.fullmatch(text) else {}
        if has_message(pairs):
            return _within(_document(pairs), one)
    if "," in text and ('"' in text or _TIMED_ROW.match(text)) and _ROW.fullmatch(text):
        return _of_row(one, depth)
    return one


def _within(inner: Wrapped, outer: Wrapped) -> Wrapped:
    """Return a line with what is around it."""
    when = f"{inner.when} {outer.when}".strip()
    return inner._replace(when=when, origin=inner.origin.within(outer.origin))


_PAIR = re.compile(r'([\w.@/-]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)')
_LOGFMT = re.compile(rf"\s*(?:{_PAIR.pattern}\s*)+")


def pairs_of(text: str) -> dict[str, Any]:
    """Return the pairs of logfmt in a text.

    >>> pairs_of('level=info msg="a b" group=g')
    {'level': 'info', 'msg': 'a b', 'group': 'g'}
    """
    if "=" not in text:
        return {}
    return {
        name: parsed(value) or value[1:-1] if value[:1] == '"' else value
        for name, value in _PAIR.findall(text)
    }


_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",]*))(?:,|$)')
_ROW = re.compile(r'(?:(?:"(?:[^"]|"")*"|[^",]*)(?:,|$))+')


_TIMED_ROW = re.compile(rf"{_ISO},(?!\d)")


def _of_row(one: Wrapped, depth: int) -> Wrapped:
    """Return the line in a row of CSV without a head: the longest cell. Others have the time and the pod."""
    cells = [quoted.replace('""', '"') or bare for quoted, bare in _CELL.findall(one.text)]
    pod = next((cell for cell in cells if re.fullmatch(_POD, cell)), "")
    message = max((cell for cell in cells if cell != pod), key=len)
    others = [cell for cell in cells if cell is not message]
    if not others or not message:
        return one
    inner = _plain(Wrapped(message), depth + 1)
    return _within(inner, Wrapped("", " ".join(filter(None, others)), Origin(pod=pod).within(one.origin)))


def _without(one: Wrapped, found: re.Match[str]) -> Wrapped:
    parts = {name: text for name, text in found.groupdict().items() if text and text != "-"}
    labels = dict(_LABEL.findall(parts.get("labels", "")))
    origin = _origin(labels) if labels else Origin(*(parts.get(name, "") for name in Origin._fields))
    when = " ".join(filter(None, (one.when, parts.get("when", ""))))
    plain = COLOURS.sub("", one.text[:400]) + one.text[400:] if "\x1b" in one.text[:400] else one.text
    return Wrapped(
        text=plain[found.end() :],
        when=when,
        origin=origin.within(one.origin),
        partial=one.partial or parts.get("part") == "P",
    )


# -- JSON ------------------------------------------------------------------------------------------------


def lines_of(value: Any, outer: Mapping[str, Any] | None = None) -> Iterator[Wrapped]:
    """The lines in a JSON value: of a document, an export, or the answer of a query."""
    if isinstance(value, list):
        if value and all(_is_cell(cell) for cell in value):  # CloudWatch Insights: a row of fields
            yield from lines_of({cell["field"]: cell.get("value") for cell in value})
            return
        for one in value:
            if isinstance(one, (dict, list)):
                yield from lines_of(one, outer)
        return
    if not isinstance(value, dict):
        return
    if _first(value, MESSAGES) is None:
        for name in MANY:
            inner = value.get(name)
            if isinstance(inner, list) or (isinstance(inner, dict) and name in ("hits", "data", "result")):
                yield from lines_of(inner, {**(outer or {}), **_scalars(value), **_resource(value)})
                return
    pairs = value.get("values")
    if isinstance(pairs, list):  # Loki: labels, and pairs of nanoseconds and line
        labels = value.get("stream") or value.get("labels") or {}
        for at, line, *_ in (pair for pair in pairs if isinstance(pair, list) and len(pair) > 1):
            yield _document({"timestamp": at, "message": line, "labels": labels}, outer)
        return
    yield _document(value, outer)


def _is_cell(value: Any) -> bool:
    return isinstance(value, dict) and "field" in value and value.keys() <= {"field", "value"}


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if isinstance(one, (str, int))}


def _resource(value: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of OpenTelemetry, which are lists of keys and values."""
    resource = value.get("resource")
    listed = resource.get("attributes") if isinstance(resource, dict) else None
    return _attributes(listed) if isinstance(listed, list) else {}


def _attributes(listed: Sequence[Any]) -> dict[str, Any]:
    pairs = (one for one in listed if isinstance(one, dict) and isinstance(one.get("value"), dict))
    return {str(one.get("key")): next(iter(one["value"].values()), None) for one in pairs}


def _document(value: Mapping[str, Any], outer: Mapping[str, Any] | None = None) -> Wrapped:
    """One line in an object, with what the object tells of it."""
    message = _first(value, MESSAGES) or ""
    labels = value.get("labels")
    if isinstance(labels, str) and isinstance(listed := parsed(labels), dict):  # a cell of Grafana's CSV
        value = {**value, "labels": listed}
    if isinstance(value.get("attributes"), list):
        value = {**value, **_attributes(value["attributes"])}
    when = " ".join(filter(None, (_first(value, (name,)) for name in TIMES)))
    instant = value.get("instant")
    if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
        nanos = instant.get("nanoOfSecond")
        when += f" {instant['epochSecond']}.{nanos if isinstance(nanos, int) else 0:09}"
    since = value.get("timeUnixNano")
    when += f" {since}" if since else ""
    origin = _origin(value)
    if outer:
        origin = origin.within(_origin(outer))
        when = when or " ".join(filter(None, (_first(outer, (name,)) for name in TIMES)))
    inside = _plain(Wrapped(message.rstrip("\r\n")), 1)
    when = f"{inside.when} {when}".strip()
    partial = "log" in value and "stream" in value and not message.endswith("\n") and len(value) <= 4
    return inside._replace(
        when=when,
        origin=inside.origin.within(origin),
        partial=inside.partial or partial,
        fields=value if inside.fields is None else inside.fields,
    )


def _origin(value: Mapping[str, Any]) -> Origin:
    inner = value.get("attributes")
    tags = (
        value.get("tags") or value.get("ddtags") or (inner.get("tags") if isinstance(inner, dict) else None)
    )
    listed = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
    if listed:
        pairs = (str(tag).partition(":") for tag in listed)
        value = {**{key: text for key, _, text in pairs if text}, **value}
    return Origin(*(_first(value, names) or "" for names in (PODS, CONTAINERS, HOSTS, PROCESSES)))


def _first(value: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these fields that is a text or a number, of the object or of one that is in it."""
    for name in names:
        found = _text(_at(value, name))
        if found is not None:
            return found
    for key in INNER:
        inner = value.get(key)
        if isinstance(inner, dict):
            found = _first(inner, names)
            if found is not None:
                return found
    return None


def _at(value: Mapping[str, Any], name: str) -> Any:
    if name in value:
        return value[name]
    first, dot, rest = name.partition(".")
    inner = value.get(first) if dot else None
    return _at(inner, rest) if isinstance(inner, dict) else None


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        if len(value) == 1:  # Elasticsearch's `fields`
            return _text(value[0])
        if value and all(isinstance(one, int) and 0 <= one < 256 for one in value):  # journald's bytes
            return bytes(value).decode("utf-8", "replace")
        return None
    if isinstance(value, dict):
        return _text(value.get("stringValue"))
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, str):
        return str(value)
    return (value if value.isascii() and "\0" not in value else _NO_TEXT.sub("\ufffd", value)) or None


_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""JSON can escape what no text holds."""


# -- CSV -------------------------------------------------------------------------------------------------


def header(cells: Sequence[str]) -> tuple[str, ...] | None:
    """The columns of a CSV file that exports a log, from its first row; None if it is no such file.

    >>> header(["@timestamp", "kubernetes.pod.name", "message"])
    ('@timestamp', 'kubernetes.pod.name', 'message')
    >>> header(["TimeGenerated [UTC]", "PodName", "LogMessage"])
    ('TimeGenerated', 'PodName', 'LogMessage')
    >>> header(["an", "ordinary", "line"]) is None
    True
    """
    bare = (cell.strip().lstrip("\ufeff").removeprefix("_source.") for cell in cells)
    names = tuple(cell.removesuffix(" [UTC]") for cell in bare)  # Azure's
    known = [set(names) & set(wanted) for wanted in (MESSAGES, TIMES)]
    return names if len(names) > 1 and all(known) else None


def has_message(row: Mapping[str, Any]) -> bool:
    """Return whether an object has a line in it."""
    return _first(row, MESSAGES) is not None
