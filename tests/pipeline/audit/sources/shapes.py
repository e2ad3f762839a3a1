"""Lines of several pods as runtimes, shippers and exports write them: name of a file -> its bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from tests.pipeline.audit.sources.incident import PODS, UUIDS, PodLine

Files = dict[str, bytes]


def write(files: Files, folder: Path) -> list[str]:
    """Put them there, and give back where, as an audit takes it."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [str(folder)]


def in_another_cluster(text: bytes) -> bytes:
    """The same log, of other processes."""
    text = text.replace(b"4L6g3nShT-eMCtK--X86sw", b"nObOdYsShT-eMCtK--X86s")
    for number, uuid in enumerate(UUIDS):
        text = text.replace(uuid.encode(), f"{number}{uuid[1:-1]}f".encode())
    return text


def _text(texts: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in texts).encode()


def _z(one: PodLine) -> str:
    return one.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ms(one: PodLine) -> int:
    return round(one.at.timestamp() * 1000)


def per_pod(lines: Sequence[PodLine]) -> Files:
    """A file for each pod."""
    ordered = sorted(lines, key=attrgetter("pod"))
    return {
        f"{PODS[pod]}.log": _text([one.plain() for one in several])
        for pod, several in groupby(ordered, attrgetter("pod"))
    }


def merged(lines: Sequence[PodLine]) -> Files:
    """All in one file, and nothing tells them apart."""
    return {"all.log": _text([one.plain() for one in lines])}


def kubectl(lines: Sequence[PodLine]) -> Files:
    """kubectl logs --prefix"""
    return {"out.log": _text([f"[pod/{PODS[one.pod]}/app] {one.plain()}" for one in lines])}


def kubectl_timestamps(lines: Sequence[PodLine]) -> Files:
    """kubectl logs --prefix --timestamps, of a logger without a date"""
    texts = [f"[pod/{PODS[one.pod]}/app] {_z(one)} {one.plain()[11:]}" for one in lines]
    return {"out.log": _text(texts)}


def stern(lines: Sequence[PodLine]) -> Files:
    return {"out.log": _text([f"{PODS[one.pod]} app {one.plain()}" for one in lines])}


def compose(lines: Sequence[PodLine]) -> Files:
    return {"out.log": _text([f"orders-{one.pod + 1}  | {one.plain()}" for one in lines])}


def flat_json(lines: Sequence[PodLine]) -> Files:
    """JSON with kubernetes.pod_name."""
    return {
        "out.json": _text(
            [
                json.dumps({"@timestamp": _z(one), "kubernetes.pod_name": PODS[one.pod], "message": one.text})
                for one in lines
            ]
        )
    }


def host_json(lines: Sequence[PodLine]) -> Files:
    """JSON with host.name."""
    texts = [
        json.dumps({"@timestamp": _z(one), "host": {"name": f"node-{one.pod}"}, "message": one.text})
        for one in lines
    ]
    return {"out.json": _text(texts)}


def elasticsearch(lines: Sequence[PodLine]) -> Files:
    """The answer of a search, over many texts."""
    hits = [
        {
            "_index": "logs",
            "_id": str(number),
            "_source": {
                "@timestamp": _z(one),
                "kubernetes": {"pod": {"name": PODS[one.pod]}},
                "message": one.text,
            },
        }
        for number, one in enumerate(lines)
    ]
    return {"answer.json": json.dumps({"took": 3, "hits": {"hits": hits}}, indent=2).encode()}


def elasticdump(lines: Sequence[PodLine]) -> Files:
    """A document on each line, the newest first."""
    texts = [
        json.dumps(
            {
                "_id": str(number),
                "_source": {
                    "@timestamp": _z(one),
                    "kubernetes": {"pod": {"name": PODS[one.pod]}},
                    "message": one.text,
                },
            }
        )
        for number, one in enumerate(lines)
    ]
    return {"dump.json": _text(texts[::-1])}


def kibana(lines: Sequence[PodLine]) -> Files:
    """CSV, the newest first."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["@timestamp", "kubernetes.pod.name", "message"])
    for one in reversed(lines):
        stamp = one.at.strftime("%b %-d, %Y @ %H:%M:%S.") + f"{one.at.microsecond // 1000:03}"
        rows.writerow([stamp, PODS[one.pod], one.text])
    return {"export.csv": out.getvalue().encode()}


def syslog(lines: Sequence[PodLine]) -> Files:
    """RFC 5424"""
    texts = [f"<14>1 {_z(one)} node-{one.pod} orders {40 + one.pod} - - {one.text}" for one in lines]
    return {"syslog": _text(texts)}


def old_syslog(lines: Sequence[PodLine]) -> Files:
    """RFC 3164, of a logger that writes dates itself"""
    texts = [
        f"{one.at.strftime('%b %e %H:%M:%S')} node-{one.pod} orders[{40 + one.pod}]: {one.plain()}"
        for one in lines
    ]
    return {"messages": _text(texts)}


def journald(lines: Sequence[PodLine]) -> Files:
    """journalctl -o json"""
    texts = [
        json.dumps(
            {
                "__REALTIME_TIMESTAMP": str(round(one.at.timestamp() * 1e6)),
                "_HOSTNAME": f"node-{one.pod}",
                "_PID": str(40 + one.pod),
                "MESSAGE": one.text,
            }
        )
        for one in lines
    ]
    return {"journal.json": _text(texts)}


def loki(lines: Sequence[PodLine]) -> Files:
    """The answer of query_range."""
    streams = [
        {
            "stream": {"app": "orders", "pod": PODS[pod]},
            "values": [[str(_ms(one) * 1_000_000), one.text] for one in lines if one.pod == pod],
        }
        for pod in sorted({one.pod for one in lines})
    ]
    answer = {"status": "success", "data": {"resultType": "streams", "result": streams}}
    return {"loki.json": json.dumps(answer).encode()}


def logcli(lines: Sequence[PodLine]) -> Files:
    """logcli, its text and its JSON lines"""
    texts = [
        json.dumps({"labels": {"pod": PODS[one.pod]}, "line": one.text, "timestamp": _z(one)})
        if one.pod
        else f'{_z(one)} {{app="orders", pod="{PODS[one.pod]}"}} {one.text}'
        for one in lines
    ]
    return {"logcli.txt": _text(texts)}


def cloudwatch(lines: Sequence[PodLine]) -> Files:
    """aws logs filter-log-events"""
    events = [
        {"logStreamName": f"ecs/app/{one.pod}abc", "timestamp": _ms(one), "message": one.text}
        for one in lines
    ]
    return {"events.json": json.dumps({"events": events, "searchedLogStreams": []}, indent=4).encode()}


def aws_tail(lines: Sequence[PodLine]) -> Files:
    """aws logs tail"""
    texts = [f"{one.at.isoformat(timespec='microseconds')} ecs/app/{one.pod}abc {one.text}" for one in lines]
    return {"tail.txt": _text(texts)}


def datadog(lines: Sequence[PodLine]) -> Files:
    """The answer of its logs API."""
    data = [
        {
            "id": str(number),
            "type": "log",
            "attributes": {
                "timestamp": _z(one),
                "host": f"node-{one.pod}",
                "service": "orders",
                "tags": [f"pod_name:{PODS[one.pod]}", "env:prod"],
                "message": one.text,
            },
        }
        for number, one in enumerate(lines)
    ]
    return {"datadog.json": json.dumps({"data": data}).encode()}


def logback(lines: Sequence[PodLine]) -> Files:
    """logstash-logback-encoder, on stdout of Docker: JSON in JSON, a file for each container"""
    files: dict[str, list[str]] = {}
    for one in lines:
        inner = {"@timestamp": _z(one), "message": one.text, "logger_name": one.logger, "level": "INFO"}
        line = {"log": json.dumps(inner) + "\n", "stream": "stdout", "time": _z(one)}
        files.setdefault(f"{one.pod}{'f' * 8}-json.log", []).append(json.dumps(line))
    return {name: _text(its) for name, its in files.items()}


def log4j2(lines: Sequence[PodLine]) -> Files:
    """JsonLayout as it is by default: over many texts, one object after the other; a file for each pod"""
    files: dict[str, list[str]] = {}
    for one in lines:
        seconds, millis = divmod(_ms(one), 1000)
        value = {
            "instant": {"epochSecond": seconds, "nanoOfSecond": millis * 1_000_000},
            "thread": "main",
            "level": "INFO",
            "loggerName": one.logger,
            "message": one.text,
        }
        files.setdefault(f"{PODS[one.pod]}.json", []).append(json.dumps(value, indent=2) + ",")
    return {name: _text(its) for name, its in files.items()}


def cri(lines: Sequence[PodLine]) -> Files:
    """What the kubelet writes, long lines in pieces, of a logger without a date"""
    files: dict[str, list[str]] = {}
    for one in lines:
        text = one.plain()[11:]
        texts = files.setdefault(f"default_{PODS[one.pod]}_uid/app/0.log", [])
        if len(text) > 200:
            texts.append(f"{_z(one)} stdout P {text[:150]}")
            text = text[150:]
        texts.append(f"{_z(one)} stdout F {text}")
    return {name: _text(its) for name, its in files.items()}


def heroku(lines: Sequence[PodLine]) -> Files:
    """A platform that numbers its processes, with times of its own."""
    return {"heroku.log": _text([f"{_z(one)} app[worker.{one.pod + 1}]: {one.plain()}" for one in lines])}


def fluentd(lines: Sequence[PodLine]) -> Files:
    """What its file output writes: the time, the tag, the record."""
    texts = []
    for one in lines:
        record = {"log": f"{one.plain()}\n", "kubernetes": {"pod_name": PODS[one.pod]}}
        texts.append(f"{one.at:%Y-%m-%d %H:%M:%S}.000000000 +0000 kube.orders: {json.dumps(record)}")
    return {"fluentd.log": _text(texts)}


def container_log(lines: Sequence[PodLine]) -> Files:
    """Azure Monitor's ContainerLog."""
    rows = [{"TimeGenerated": _z(one), "PodName": PODS[one.pod], "LogEntry": one.plain()} for one in lines]
    return {"azure.json": json.dumps(rows).encode()}


def grafana(lines: Sequence[PodLine]) -> Files:
    """The CSV of Grafana's Explore: the labels are JSON in a cell."""
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(["labels", "Time", "Line", "tsNs", "id"])
    for number, one in enumerate(lines):
        labels = json.dumps({"app": "orders", "pod": PODS[one.pod]})
        rows.writerow([labels, f"{one.at:%Y-%m-%d %H:%M:%S}", one.plain(), f"{_ms(one)}000000", number])
    return {"grafana.csv": written.getvalue().encode()}


def kubetail(lines: Sequence[PodLine]) -> Files:
    """kubetail, of pods of a Deployment"""
    return {"k.log": _text([f"[orders-{HASHES[one.pod]}] {one.plain()}" for one in lines])}


def kail(lines: Sequence[PodLine]) -> Files:
    """kail: namespace, pod, container"""
    return {"kail.log": _text([f"default/{PODS[one.pod]}[app]: {one.plain()}" for one in lines])}


def journald_unix(lines: Sequence[PodLine]) -> Files:
    """journalctl -o short-unix"""
    texts = [f"{one.at.timestamp():.6f} vm-{one.pod} orders[811]: {one.plain()}" for one in lines]
    return {"journal.txt": _text(texts)}


def journald_full(lines: Sequence[PodLine]) -> Files:
    """journalctl -o short-full"""
    return {
        "j.txt": _text(
            [f"{one.at:%a %Y-%m-%d %H:%M:%S} UTC vm-{one.pod} orders[811]: {one.plain()}" for one in lines]
        )
    }


def swarm(lines: Sequence[PodLine]) -> Files:
    """docker service logs --timestamps"""
    return {
        "s.log": _text(
            [f"{_z(one)} orders.{one.pod}.k3v9q2x8d1zk@node-{one.pod}    | {one.plain()}" for one in lines]
        )
    }


def papertrail(lines: Sequence[PodLine]) -> Files:
    """Papertrail's archives: ten columns, tabs between them"""
    texts = []
    for one in lines:
        times = f"{one.at:%Y-%m-%dT%H:%M:%SZ}"
        around = [times, times, "7", f"orders-{one.pod}", "10.0.0.7", "Local0", "Info", "app"]
        texts.append("\t".join(["100000000000000001", *around, one.plain()]))
    return {"2026-11-21-18.tsv": _text(texts)}


def aws_text(lines: Sequence[PodLine]) -> Files:
    """aws logs filter-log-events --output text"""
    texts = [
        f"EVENTS\t3840{n}\t{_ms(one)}\torders/{one.pod}\t{one.plain()}\t{_ms(one)}"
        for n, one in enumerate(lines)
    ]
    return {"events.txt": _text(texts)}


def firehose(lines: Sequence[PodLine]) -> Files:
    """CloudWatch's subscriptions through Firehose: documents on end, in one line"""
    documents = [
        {"logStream": f"orders/{one.pod}", "logEvents": [{"timestamp": _ms(one), "message": one.plain()}]}
        for one in lines
    ]
    return {"firehose-1": "".join(map(json.dumps, documents)).encode()}


def logscale(lines: Sequence[PodLine]) -> Files:
    """An export of LogScale"""
    rows = [
        {"@timestamp": _ms(one), "@rawstring": one.plain(), "kubernetes.pod_name": PODS[one.pod]}
        for one in lines
    ]
    return {"logscale.json": json.dumps(rows).encode()}


HASHES = ("7d9f8b7c4d-x2x4z", "7d9f8b7c4d-b6w9k", "7d9f8b7c4d-q4j7t")

APART: tuple[Callable[[Sequence[PodLine]], Files], ...] = (
    *(per_pod, kubectl, kubectl_timestamps, stern, compose, flat_json, host_json, elasticsearch, elasticdump),
    *(
        kibana,
        syslog,
        old_syslog,
        journald,
        loki,
        logcli,
        cloudwatch,
        aws_tail,
        datadog,
        logback,
        log4j2,
        cri,
        heroku,
        fluentd,
        container_log,
        grafana,
    ),
    *(kubetail, kail, journald_unix, journald_full, swarm, papertrail, aws_text, firehose, logscale),
)
"""In these something tells the pods apart."""
