"""How loggers and shippers write lines: name of a file -> its bytes, from the lines of a client."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.pipeline.audit.matrix.clients import Entry

Files = dict[str, bytes]
PODS = {"a": "orders-7d9fbc5d4-x2x4z", "b": "orders-7d9fbc5d4-k8s9q"}


def z(one: Entry) -> str:
    return one.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(one: Entry) -> int:
    return round(one.at.timestamp() * 1000)


def _by_pod(entries: Sequence[Entry], line: Callable[[Entry], str]) -> Files:
    files: dict[str, list[str]] = {}
    for one in entries:
        files.setdefault(f"{PODS[one.pod]}.log", []).append(line(one) + "\n")
    return {name: "".join(lines).encode() for name, lines in files.items()}


def _in_one(entries: Sequence[Entry], line: Callable[[Entry], str]) -> Files:
    return {"all.log": "".join(f"{line(one)}\n" for one in entries).encode()}


def _flat(one: Entry, **more: Any) -> str:
    return json.dumps({**more, **(one.fields or {})})


def own(entries: Sequence[Entry]) -> Files:
    """The client's own, with a time before it where it writes none."""
    return _by_pod(entries, lambda one: f"{one.at.strftime('%Y-%m-%d %H:%M:%S.%f')[:-3]} {one.text}")


def zap(entries: Sequence[Entry]) -> Files:
    return _by_pod(
        entries,
        lambda one: _flat(one, level="info", ts=one.at.timestamp(), caller="x.go:12", msg=one.message),
    )


def zap_console(entries: Sequence[Entry]) -> Files:
    return _by_pod(
        entries,
        lambda one: (
            f"{z(one)}\tINFO\tx.go:12\t{one.message}" + (f"\t{json.dumps(one.fields)}" if one.fields else "")
        ),
    )


def slog(entries: Sequence[Entry]) -> Files:
    return _by_pod(entries, lambda one: _flat(one, time=z(one), level="INFO", msg=one.message))


def _pair(key: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{key}={json.dumps(text)}" if not text or set(text) & set(' "={}[],') else f"{key}={text}"


def logfmt(entries: Sequence[Entry]) -> Files:
    """logrus, slog's text."""
    return _by_pod(
        entries,
        lambda one: " ".join(
            _pair(*pair)
            for pair in {"time": z(one), "level": "info", "msg": one.message, **(one.fields or {})}.items()
        ),
    )


def logrus(entries: Sequence[Entry]) -> Files:
    return _by_pod(entries, lambda one: _flat(one, time=z(one), level="info", msg=one.message))


def zerolog(entries: Sequence[Entry]) -> Files:
    return _by_pod(
        entries,
        lambda one: json.dumps(
            {"level": "info", **(one.fields or {}), "time": z(one), "message": one.message}
        ),
    )


def pino(entries: Sequence[Entry]) -> Files:
    return _in_one(
        entries,
        lambda one: _flat(one, level=30, time=millis(one), pid=7, hostname=PODS[one.pod], msg=one.message),
    )


def pino_pretty(entries: Sequence[Entry]) -> Files:
    """In colours, each field on a line of its own below the message."""
    return _by_pod(
        entries,
        lambda one: "\n".join(
            (
                f"[{z(one).replace('T', ' ')}] \x1b[32mINFO\x1b[39m (7): \x1b[36m{one.message}\x1b[39m",
                *(
                    f"    \x1b[35m{key}\x1b[39m: {json.dumps(value, indent=2)}".replace("\n", "\n    ")
                    for key, value in (one.fields or {}).items()
                ),
            )
        ),
    )


def _inspected(value: Any) -> str:
    """Return a value as node's util.inspect writes it."""
    if isinstance(value, dict):
        pairs = (f"{key}: {_inspected(one)}" for key, one in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    if isinstance(value, list):
        return f"[ {', '.join(map(_inspected, value))} ]" if value else "[]"
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


def console(entries: Sequence[Entry]) -> Files:
    """console.log of a message and an object that fits on a line."""
    return _by_pod(entries, lambda one: f"{z(one)} info: {one.message} {_inspected(one.fields or {})}")


def console_below(entries: Sequence[Entry]) -> Files:
    """console.log of a message and an object that does not."""
    return _by_pod(
        entries,
        lambda one: (
            f"{z(one)} info: {one.message} {{\n"
            + ",\n".join(f"  {key}: {_inspected(value)}" for key, value in (one.fields or {}).items())
            + "\n}"
        ),
    )


def winston(entries: Sequence[Entry]) -> Files:
    """As kafkajs' documentation has it."""
    return _by_pod(
        entries,
        lambda one: json.dumps(
            {"level": "info", "message": one.message, "extra": one.fields or {}, "timestamp": z(one)}
        ),
    )


def bunyan(entries: Sequence[Entry]) -> Files:
    return _in_one(
        entries,
        lambda one: _flat(
            one, name="orders", hostname=PODS[one.pod], pid=7, level=30, msg=one.message, time=z(one), v=0
        ),
    )


def structlog(entries: Sequence[Entry]) -> Files:
    return _by_pod(
        entries, lambda one: _flat(one, event=one.message, level="info", logger="x", timestamp=z(one))
    )


def serilog(entries: Sequence[Entry]) -> Files:
    """Compact, rendered."""
    return _by_pod(
        entries, lambda one: json.dumps({"@t": z(one), "@m": one.message, "@i": "0a", **(one.fields or {})})
    )


def log4j(entries: Sequence[Entry]) -> Files:
    return _by_pod(
        entries,
        lambda one: json.dumps(
            {
                "instant": {
                    "epochSecond": millis(one) // 1000,
                    "nanoOfSecond": millis(one) % 1000 * 1_000_000,
                },
                "thread": "main",
                "level": "INFO",
                "loggerName": "x",
                "message": one.message,
                "contextMap": {},
                **(one.fields or {}),
            }
        ),
    )


def docker(entries: Sequence[Entry]) -> Files:
    """Of each container a file."""
    return _by_pod(
        entries, lambda one: json.dumps({"log": one.text + "\n", "stream": "stderr", "time": z(one)})
    )


def cri(entries: Sequence[Entry]) -> Files:
    return _by_pod(entries, lambda one: f"{z(one)} stderr F {one.text}")


def kubectl(entries: Sequence[Entry]) -> Files:
    """kubectl logs --prefix --timestamps"""
    return _in_one(entries, lambda one: f"[pod/{PODS[one.pod]}/app] {z(one)} {one.text}")


def pod_alone(entries: Sequence[Entry]) -> Files:
    """The pod and a blank, as terminals show the lines of several."""
    return _in_one(entries, lambda one: f"{PODS[one.pod]} {z(one).replace('T', ' ')} {one.text}")


def dynatrace(entries: Sequence[Entry]) -> Files:
    """The answer of its API."""
    results = [
        {
            "timestamp": millis(one),
            "content": one.text,
            "additionalColumns": {"k8s.pod.name": [PODS[one.pod]], "loglevel": ["INFO"]},
        }
        for one in entries
    ]
    return {"answer.json": json.dumps({"results": results}).encode()}


def journald(entries: Sequence[Entry]) -> Files:
    """journalctl -o json"""
    return _in_one(
        entries,
        lambda one: json.dumps(
            {
                "__REALTIME_TIMESTAMP": str(millis(one) * 1000),
                "_HOSTNAME": f"node-{one.pod}",
                "_PID": "7",
                "MESSAGE": one.text,
            }
        ),
    )


def syslog(entries: Sequence[Entry]) -> Files:
    return _in_one(entries, lambda one: f"<14>1 {z(one)} node-{one.pod} orders 7 - - {one.text}")


def datadog(entries: Sequence[Entry]) -> Files:
    """The answer of its API: fields are attributes."""
    data = [
        {
            "id": str(number),
            "type": "log",
            "attributes": {
                "timestamp": z(one),
                "service": "orders",
                "tags": [f"pod_name:{PODS[one.pod]}"],
                "message": one.message,
                "attributes": one.fields or {},
            },
        }
        for number, one in enumerate(entries)
    ]
    return {"answer.json": json.dumps({"data": data}).encode()}


def splunk(entries: Sequence[Entry]) -> Files:
    """Its JSON, line by line."""
    return _in_one(
        entries,
        lambda one: json.dumps(
            {"preview": False, "result": {"_raw": one.text, "_time": z(one), "host": PODS[one.pod]}}
        ),
    )


def ecs(entries: Sequence[Entry]) -> Files:
    return _in_one(
        entries,
        lambda one: json.dumps(
            {
                "@timestamp": z(one),
                "log.level": "INFO",
                "message": one.message,
                "host": {"name": PODS[one.pod]},
                "labels": one.fields or {},
            }
        ),
    )


def gcp(entries: Sequence[Entry]) -> Files:
    """gcloud logging read --format=json"""
    answer = [
        {
            "timestamp": z(one),
            "resource": {
                "type": "k8s_container",
                "labels": {"pod_name": PODS[one.pod], "container_name": "app"},
            },
            **(
                {"jsonPayload": {"message": one.message, **one.fields}}
                if one.fields is not None
                else {"textPayload": one.text}
            ),
        }
        for one in entries
    ]
    return {"answer.json": json.dumps(answer, indent=2).encode()}


def _rows(entries: Sequence[Entry], head: bool) -> Files:
    out = io.StringIO()
    rows = csv.writer(out)
    if head:
        rows.writerow(["@timestamp", "kubernetes.pod.name", "message"])
    for one in entries:
        rows.writerow([z(one), PODS[one.pod], one.text])
    return {"export.csv": out.getvalue().encode()}


def csv_head(entries: Sequence[Entry]) -> Files:
    return _rows(entries, True)


def csv_bare(entries: Sequence[Entry]) -> Files:
    """Without a head."""
    return _rows(entries, False)


LAYOUTS: tuple[Callable[[Sequence[Entry]], Files], ...] = (
    *(own, zap, zap_console, slog, logfmt, logrus, zerolog, pino, winston, bunyan, structlog, serilog, log4j),
    *(
        pod_alone,
        dynatrace,
        docker,
        cri,
        kubectl,
        journald,
        syslog,
        datadog,
        splunk,
        ecs,
        gcp,
        csv_head,
        csv_bare,
    ),
)

OF_NODE: tuple[Callable[[Sequence[Entry]], Files], ...] = (pino_pretty, console, console_below)
"""What node's consoles make of a message and its fields."""
