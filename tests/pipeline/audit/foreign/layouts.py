"""How runtimes, shippers and exports write the lines of two pods: file name -> its lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

BEGIN = datetime(2026, 3, 2, 10, 15, tzinfo=UTC)


class Written(NamedTuple):
    """A line of a member of the group."""

    second: float
    member: str
    logger: str
    message: str

    @property
    def at(self) -> datetime:
        """Return when it was written."""
        return BEGIN + timedelta(seconds=self.second)

    @property
    def pod(self) -> str:
        """Return the pod that wrote it."""
        return {"a": "orders-6d9c7f-aaaaa", "b": "orders-6d9c7f-bbbbb"}[self.member]


Files = dict[str, list[str]]


def _iso(at: datetime, mark: str = ".", sep: str = " ") -> str:
    return at.strftime(f"%Y-%m-%d{sep}%H:%M:%S") + f"{mark}{at.microsecond // 1000:03}"


def _each(lines: Iterable[Written], text: Callable[[Written], str]) -> Files:
    files: Files = {}
    for line in lines:
        files.setdefault(f"{line.pod}.log", []).append(text(line))
    return files


def files(lines: Iterable[Written]) -> Files:
    """A file for each pod, log4j's usual pattern."""
    return _each(lines, lambda one: f"[{_iso(one.at, ',')}] INFO {one.message} ({one.logger})")


def strimzi(lines: Iterable[Written]) -> Files:
    """A file for each pod, logger and thread behind the message."""
    return _each(lines, lambda one: f"{_iso(one.at)} INFO  {one.message} ({one.logger}) [main-thread]")


def spring(lines: Iterable[Written]) -> Files:
    """`kubectl logs --prefix` of Spring Boot."""
    return {
        "kubectl.log": [
            f"[pod/{one.pod}/app] {_iso(one.at, '.', 'T')}Z  INFO 1 --- [orders] [ntainer#0-0-C-1] "
            f"{one.logger} : {one.message}"
            for one in lines
        ]
    }


def logstash(lines: Iterable[Written]) -> Files:
    """JSON lines of logback, as Filebeat ships them."""
    return {
        "export.json": [
            json.dumps(
                {
                    "@timestamp": f"{_iso(one.at, '.', 'T')}Z",
                    "kubernetes": {"pod": {"name": one.pod}, "container": {"name": "app"}},
                    "logger_name": one.logger,
                    "message": one.message,
                }
            )
            for one in lines
        ]
    }


def compose(lines: Iterable[Written]) -> Files:
    """`docker compose logs`."""
    return {
        "compose.log": [
            f"orders-{one.member}-1  | {_iso(one.at)} INFO {one.logger} - {one.message}" for one in lines
        ]
    }


def cri(lines: Iterable[Written]) -> Files:
    """What the kubelet keeps below /var/log/pods."""
    return _each(
        lines,
        lambda one: f"{_iso(one.at, sep='T')}000000Z stdout F {_iso(one.at)[11:]} INFO {one.message}",
    )


def rich(lines: Iterable[Written]) -> Files:
    """A file for each pod, as rich writes Python's logging: padded, with file and line behind the message."""
    return _each(
        lines,
        lambda one: f"[{_iso(one.at)}] INFO     {one.message:<80} consumer.py:{100 + len(one.message) % 7}",
    )


def datadog(lines: Iterable[Written]) -> Files:
    """CSV of Datadog's explorer, the newest line first."""
    rows = [["Date", "Host", "Service", "pod_name", "Message"]]
    rows += [
        [f"{_iso(one.at, '.', 'T')}Z", "node-7", "orders", one.pod, f"INFO {one.message}"] for one in lines
    ]
    text = io.StringIO()
    csv.writer(text).writerows([rows[0], *rows[:0:-1]])
    return {"export.csv": text.getvalue().splitlines()}


LAYOUTS = {
    "files": files,
    "strimzi": strimzi,
    "kubectl": spring,
    "logstash": logstash,
    "compose": compose,
    "cri": cri,
    "rich": rich,
    "datadog": datadog,
}
