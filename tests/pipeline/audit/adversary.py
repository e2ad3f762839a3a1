"""Turn logs of which the right answer is known into others, as mishaps and collectors of logs do.

A log is a file name -> its lines. Nothing here shares code with what reads logs.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

Log = dict[str, list[str]]

QUIET_MINUTES = 10

_UNPACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress}

_ISO = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)([.,]\d{3})")
_SECONDS = re.compile(r"(?<=\|)(\d{10}\.\d{3})(?=\|)")


def read(*paths: Path, day: str = "") -> Log:
    """Return the lines of files; ``day`` goes before times of the day that have none."""
    log: Log = {}
    for path in paths:
        data = path.read_bytes()
        if path.suffix in _UNPACKED:
            data = _UNPACKED[path.suffix](data)
        lines = data.decode().splitlines()
        log[f"{path.name.split('.log')[0]}.log"] = [dated(line, day) for line in lines]
    return log


def dated(line: str, day: str) -> str:
    """Return a line with a date before its time of the day."""
    return f"{day} {line}" if day and re.match(r"\d\d:\d\d:\d\d[.,]\d", line) else line


def write(log: Log, folder: Path) -> Path:
    """Write the files to a new folder."""
    for name, lines in log.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def time_of(line: str) -> datetime | None:
    """Return the first time of a line."""
    if found := _ISO.search(line):
        text = f"{found[1]}T{found[3]}{found[4].replace(',', '.')}"
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if found := _SECONDS.search(line):
        return datetime.fromtimestamp(float(found[1]), UTC)
    return None


def shifted(line: str, by: timedelta) -> str:
    """Return a line as a clock writes it that is ahead."""

    def later(found: re.Match[str]) -> str:
        fraction = found[4].replace(",", ".")
        at = datetime.fromisoformat(f"{found[1]}T{found[3]}{fraction}") + by
        return at.strftime(f"%Y-%m-%d{found[2]}%H:%M:%S{found[4][0]}") + f"{at.microsecond // 1000:03}"

    line = _ISO.sub(later, line, count=1)
    return _SECONDS.sub(lambda found: f"{float(found[1]) + by.total_seconds():.3f}", line, count=1)


def records(lines: list[str]) -> list[list[str]]:
    """Return the records of a log: a line with a time, and those without that follow it."""
    found: list[list[str]] = []
    for line in lines:
        if time_of(line) is None and found:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def _flat(parts: Iterable[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


# -- what becomes of logs --------------------------------------------------------------------------------


def cut_short(log: Log, random: Random) -> Log:
    """All files end at one random moment; an application writes on for ten minutes."""
    times = [at for lines in log.values() for line in lines if (at := time_of(line))]
    end = random.choice(times)
    cut = {
        name: _flat(r for r in records(lines) if (at := time_of(r[0])) is None or at <= end)
        for name, lines in log.items()
    }
    return {**cut, "application.log": [_quiet(end)]}


def cut_and_quiet(log: Log, random: Random) -> Log:
    """All files end at one random moment, and then hold what an application says ten minutes later."""
    cut = cut_short(log, random)
    last = cut.pop("application.log")
    return {name: lines + last for name, lines in cut.items() if lines}


def _quiet(end: datetime) -> str:
    later = (end + timedelta(minutes=QUIET_MINUTES)).isoformat(sep=" ", timespec="milliseconds")
    return f"{later[:23]} INFO [main] com.example.App - still here"


def one_cut_short(log: Log, random: Random) -> Log:
    """One file ends at a random record, the others go on."""
    name = random.choice(sorted(log))
    parts = records(log[name])
    return {**log, name: _flat(parts[: random.randrange(1, len(parts) + 1)])}


def without_one(log: Log, random: Random) -> Log:
    """The log of one process is not there."""
    name = random.choice(sorted(log))
    return {one: lines for one, lines in log.items() if one != name}


def renamed(log: Log, random: Random) -> Log:
    """The files have other names, and so another order."""
    names = sorted(log)
    numbers = random.sample(range(100), len(names))
    return {f"{number:02}-{name}": log[name] for number, name in zip(numbers, names, strict=True)}


def clock_off(log: Log, random: Random) -> Log:
    """The clock of one file is wrong."""
    name = random.choice(sorted(log))
    seconds = random.choice([0.3, 2, 5, 17, 60, 400, 3600, 7200]) * random.choice([1, -1])
    return {**log, name: [shifted(line, timedelta(seconds=seconds)) for line in log[name]]}


def copied(log: Log, random: Random) -> Log:
    """One file is there twice, whole or its end only, under another name."""
    name = random.choice(sorted(log))
    parts = records(log[name])
    start = random.choice([0, 0, random.randrange(len(parts))])
    return {**log, f"{random.choice('az')}-console-{name}": _flat(parts[start:])}


def in_pieces(log: Log, random: Random) -> Log:
    """One file was rotated."""
    name = random.choice(sorted(log))
    parts = records(log[name])
    at = random.randrange(1, len(parts)) if len(parts) > 1 else 1
    rest = {one: lines for one, lines in log.items() if one != name}
    return {**rest, f"{name}.1": _flat(parts[:at]), name: _flat(parts[at:])}


def beside_another(log: Log, random: Random) -> Log:
    """Another group of the same topics, clients and hosts writes to the same files."""
    both = {}
    for name, lines in log.items():
        mine, other = records(lines), records([_of_another(line) for line in lines])
        merged: list[list[str]] = []
        while mine or other:
            merged.append((mine if not other or (mine and random.random() < 0.5) else other).pop(0))
        both[name] = _flat(merged)
    return both


def beside_another_in_order(log: Log, random: Random) -> Log:
    """The same, each file in the order of its times."""
    both = beside_another(log, random)
    start = datetime.min.replace(tzinfo=UTC)
    return {
        name: _flat(sorted(records(lines), key=lambda r: time_of(r[0]) or start))
        for name, lines in both.items()
    }


_GROUP = re.compile(
    r"((?:groupId=|group |GroupId |Group |\[Group |group_id\W+|[gG]roup id )\"?)"
    r"(orders|billing|shipping|modern|recorded|migration|g)\b"
)
_MEMBER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[\w#]+-uuid\b")
_CLIENT = re.compile(r"(clientId=[\w.-]+)|(?<=[|\[])([\w.-]+)(?=#consumer)")


def _of_another(line: str) -> str:
    line = _GROUP.sub(r"\1other-\2", line)
    line = _CLIENT.sub(lambda found: f"{found[0]}-too", line)
    return _MEMBER.sub(lambda found: f"{found[0][:-1]}{'e' if found[0][-1] != 'e' else 'f'}", line)


HARMLESS = (renamed, copied, in_pieces, beside_another_in_order)
"""They take nothing away: the answer stays what it was."""

HARMFUL = (cut_short, cut_and_quiet, one_cut_short, without_one, clock_off)
"""They take something away: a healthy log may become unclear, and nothing certain is found in it."""


def client_of(line: str) -> str:
    """Return the client id in a line; "" where there is none."""
    found = re.search(r"clientId=([\w.-]+)|[|\[]([\w.-]+)#consumer", line)
    return (found[1] or found[2]) if found else ""


def in_a_rebalance(log: Log) -> bool:
    """Return whether the log of somebody ends after it has asked to join, and before it knows its share."""
    last: dict[tuple[str, str], bool] = {}
    for name, line in ((name, line) for name, lines in log.items() for line in lines):
        if who := client_of(line):
            if _BUSY.search(line):
                last[name, who] = True
            elif _DONE.search(line):
                last[name, who] = False
    return any(last.values())


_BUSY = re.compile(r"\(Re-\)joining|Request joining|Successfully joined|Joining group|JoinGroup response")
_DONE = re.compile(r"Successfully synced|LeaveGroup|SyncGroup response|leave \(in state|has been closed")
