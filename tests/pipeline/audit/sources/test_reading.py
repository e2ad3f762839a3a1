"""Files with whatever is wrong with them, beside good ones: each is named, counted, and the rest read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rebalance_verifier.pipeline.audit import run
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.sources import local, reading
from rebalance_verifier.pipeline.audit.sources.parsing import BROKEN, STRANGE

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import deploy

LINE = "2026-11-21 18:00:00,000 INFO [Consumer clientId=c, groupId=g] Adding newly assigned partitions: {}\n"


@pytest.fixture
def folder(tmp_path):
    """Three good logs."""
    shapes.write(shapes.per_pod(deploy(600)), tmp_path)
    return tmp_path


def unread(logs):
    return {Path(one.file).name: (one.why, one.lines, one.lost) for one in logs.unread}


def test_hostile_files_among_good_ones(folder):
    good = local.read([str(folder)])
    noise = "".join(f"2026-11-21 18:00:01,000 INFO {random.Random(i).random()}\n" for i in range(3000))
    packed = gzip.compress((LINE.format("t-7") + noise).encode())
    (folder / "cut.log.gz").write_bytes(packed[: len(packed) // 2])
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    (folder / "damaged.log.gz").write_bytes(damaged)
    (folder / "cut.log.xz").write_bytes(lzma.compress(noise.encode())[:-40])
    (folder / "cut.log.bz2").write_bytes(bz2.compress(noise.encode())[:-40])
    (folder / "new.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    (folder / "empty.log").touch()
    (folder / "gone.log").symlink_to(folder / "nowhere")
    (folder / "nul.log").write_bytes(b"\0" * 5000 + LINE.format("t-8").encode())
    (folder / "latin.log").write_bytes("2026-11-21 18:00:01 Verspätung\n".encode("latin-1") * 2)
    (folder / "binary.log").write_bytes(random.Random(1).randbytes(3000))
    logs = local.read([str(folder)])
    found = unread(logs)
    why, lines, lost = found.pop("cut.log.gz")
    assert (why, lost) == ("ends in the middle of what is compressed; what comes before is read", True)
    assert 1000 < lines < 2500
    assert found.pop("damaged.log.gz")[0].startswith("not what it is said to be: ")
    assert found.pop("cut.log.xz")[2]
    assert found.pop("cut.log.bz2")[2]
    assert found.pop("new.log.zst") == ("compressed with zstd, which is not read: unpack it first", 0, True)
    assert found.pop("gone.log") == ("no such file or directory", 0, True)
    assert found.pop("nul.log") == (reading.DAMAGED, 1, False)
    assert found.pop("latin.log") == (reading.DAMAGED, 2, False)
    assert found.pop("binary.log")[::2] == (reading.DAMAGED, False)
    assert not found
    strange = {"cut.log", "damaged.log", "nul.log"}
    assert {event.host for event in logs.events} - {event.host for event in good.events} == strange
    kept = [event for event in logs.events if event.host not in strange]
    assert sorted(kept) == sorted(good.events)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no users")
def test_a_file_without_permission_is_not_one_that_does_not_exist(folder):
    (folder / "private.log").write_text(LINE.format("t-9"))
    (folder / "private.log").chmod(0)
    (folder / "closed").mkdir(mode=0)
    program = (
        "import os, sys\n"
        "from rebalance_verifier.pipeline.audit.sources import local\n"
        "os.getuid() or os.setuid(65534)\n"
        "logs = local.read(sys.argv[1:])\n"
        "print(sorted((os.path.basename(one.file), one.why) for one in logs.unread), len(logs.events) > 50)"
    )
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True
    )
    expected = [("closed", "permission denied"), ("private.log", "permission denied")]
    assert ran.stdout == f"{expected} True\n"


def test_bytes_in_what_a_line_says(tmp_path):
    text = LINE.format("caf\u00e9-0").encode("latin-1")
    (tmp_path / "a.log").write_bytes(text + LINE.format("t-0").encode())
    logs = local.read([str(tmp_path)])
    assert [(bad.line, bad.why) for bad in logs.malformed] == [(1, BROKEN)]
    assert [event.topic for event in logs.events] == ["t"]


def test_a_line_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST", 1000)
    (tmp_path / "a.log").write_bytes(b"x" * 5000 + b"\n" + LINE.format("t-0").encode() + b"y" * 999 + b"\n")
    logs = local.read([str(tmp_path)])
    assert unread(logs) == {"a.log": ("lines longer than 1,000 bytes, cut off", 1, True)}
    assert [(event.topic, event.line) for event in logs.events] == [("t", 2)]
    assert sum(one.lines for one in logs.lines) == 3


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(
    ("bound", "why"), [("ROOM", "more than 200 bytes for each"), ("MANY", "more than 4 lines for each")]
)
def test_what_unpacks_beyond_all_measure_is_read_to_there_and_named(
    tmp_path, monkeypatch, packed, bound, why
):
    """A mebibyte of short lines in a GiB of them takes an hour."""
    text = LINE.format("t-0").encode()
    (tmp_path / "a.bz2").write_bytes(packed(text + b"\n" * 120_000))
    assert not local.read([str(tmp_path)]).unread
    monkeypatch.setattr(reading, bound, 20_000)
    logs = local.read([str(tmp_path)])
    ((_, (reason, lines, lost)),) = unread(logs).items()
    assert (reason, lost) == (f"unpacks to {why} of its bytes: the rest is not read", True)
    assert 0 < lines < 120_000
    assert [event.topic for event in logs.events] == ["t"]
    (tmp_path / "a.bz2").write_bytes(packed(b"".join(LINE.format(f"t{n}-0").encode() for n in range(900))))
    logs = local.read([str(tmp_path)])
    assert (len(logs.events), logs.unread) == (900, [])


def test_what_powershell_writes(tmp_path):
    (tmp_path / "a.log").write_text(LINE.format("t-0"), encoding="utf-16")
    logs = local.read([str(tmp_path)])
    assert [event.topic for event in logs.events] == ["t"]
    assert not logs.unread


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[\n{"message": "a"},\n{"message": \n', "not JSON from line 3 on"),
        ('"@timestamp",message\n"2026", "x\n', ""),
    ],
)
def test_exports_that_are_cut_off(tmp_path, text, why):
    (tmp_path / "a").write_text(text)
    logs = local.read([str(tmp_path)])
    assert [one.why.startswith(why) for one in logs.unread] == [True] * bool(why)


def test_names_as_they_are(tmp_path):
    for name in ("a [1].log", "b*.log", "-c.log", ".hidden.log", "_SUCCESS", "sub dir/\u00e9.log"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(LINE.format("t-0"))
    names = {event.host for event in local.read([str(tmp_path)]).events}
    assert names == {"a [1].log", "b*.log", "-c.log", "sub dir/\u00e9.log"}
    assert len(local.read([str(tmp_path / "b*.log")]).events) == 1
    assert len(local.read([str(tmp_path / "*.log")]).events) == 3


def test_what_lines_stand_for_themselves(tmp_path):
    cases = {
        "plain line\n": True,
        '{"message": "x"}\n': True,
        "[2026-11-21 18:00:00,000] INFO x\n": True,
        "[pod/a/b] x\n": True,
        "{\n": False,
        '[{"message": "x"},\n': False,
        '{"events": [\n': False,
        "@timestamp,message\n": False,
    }
    for text, expected in cases.items():
        (tmp_path / "a").write_text(text)
        assert reading.lines_only(str(tmp_path / "a")) is expected, text
    (tmp_path / "a").write_bytes(gzip.compress(b"x"))
    assert not reading.lines_only(str(tmp_path / "a"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_pipes_and_devices_are_named_and_not_waited_for(tmp_path):
    """A reader of either waits for ever, or reads what has no end."""
    (tmp_path / "a.log").write_text(LINE)
    os.mkfifo(tmp_path / "fifo.log")
    (tmp_path / "zero.log").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to(tmp_path)
    found, unread = reading.files(str(tmp_path))
    assert found == [str(tmp_path / "a.log")]
    assert [(Path(one.file).name, one.lost) for one in unread] == [("fifo.log", True), ("zero.log", True)]
    for named in ("/dev/zero", str(tmp_path / "fifo.log")):
        assert reading.files(named) == ([], [reading.Unread(named, reading.ENDLESS)])


ENVELOPE = {"message": "[Consumer clientId=c, groupId=g] (Re-)joining group"}

HOSTILE = {
    "a carriage return beside a comma": b"a,b\rc\n",
    "carriage returns and a comma": b"\r,\r\n",
    "a carriage return beside a comma, UTF-16": "a,b\rc\r\n".encode("utf-16"),
    "half a character of UTF-16": "a,b\rc\n".encode("utf-16") + b"x",
    "half a pair of UTF-16": b"\xfe\xff" + "a,\ud83d\n".encode("utf-16-be", "surrogatepass"),
    "a cell beyond what csv reads": b'a,"' + b"x" * 300_000 + b'"\n',
    "a long line": b"a," + b"x" * (5 << 20) + b"\n",
    "blanks after what begins like JSON": b'{"a": ,' + b" " * 200_000 + b"x\n",
    "blanks after a bracket": b"[" + b" " * 200_000 + b"x\n",
    "brackets": b"[" * 100_000,
    "nested objects": b'{"data":' * 900 + b"1" + b"}" * 900,
    "nested events": b'{"event":' * 900 + json.dumps(ENVELOPE).encode() + b"}" * 900,
    "a brace": b"{",
    "nothing": b"",
    "a time of no number": json.dumps(
        {**ENVELOPE, "instant": {"epochSecond": 1, "nanoOfSecond": [1]}, "timeUnixNano": {}}
    ).encode(),
    "a generation of 5,000 digits": (
        LINE.partition("Adding")[0] + f"Successfully joined group with generation {'9' * 5000}\n"
    ).encode(),
    "a partition of 5,000 digits": LINE.format("t-" + "9" * 5000).encode(),
    "digits of another script": (
        LINE.partition("Adding")[0] + "Successfully joined group with generation \u0663\n"
    ).encode(),
    "half a character in an event": json.dumps({"at": 1, "event": "stable", "group": "g\ud800"}).encode(),
    "a NUL in an event": json.dumps({"at": 1, "event": "stable", "group": "g\0"}).encode(),
    "half a character in JSON": json.dumps(
        {**ENVELOPE, "@timestamp": "2026-11-21T18:00:00Z", "host": "\ud800\0"}
    ).encode(),
    "times of no calendar": b"".join(
        at + LINE[23:].format("t-0").encode()
        for at in (b"0000-00-00 99:99:99", b"9999-12-31 23:59:59 -99:99", b"0001-01-01 00:00:00 +23:59")
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_file_takes_the_verdict_of_the_others(folder, tmp_path_factory, content):
    pytest.importorskip("duckdb")
    takes_no_verdict(folder, tmp_path_factory.mktemp("out"), [content])


def test_all_of_them_do_not_take_it(folder, tmp_path_factory):
    pytest.importorskip("duckdb")
    takes_no_verdict(folder, tmp_path_factory.mktemp("out"), list(HOSTILE.values()))


def takes_no_verdict(folder, out, contents):
    (folder / "twice-1.log").write_text(LINE.format("t-9"))
    (folder / "twice-2.log").write_text(LINE.replace("clientId=c", "clientId=d").format("t-9"))
    for number, content in enumerate(contents):
        (folder / f"{number}-strange.log").write_bytes(content)
    found = run.run_audit(AuditPlan(paths=(str(folder),), out=out))
    assert found.tally("owned-twice").findings == 1
    assert not any(bad.why.startswith(STRANGE) for bad in found.first_malformed)
    named = [one.file for one in found.unread] + [one.file for one in found.first_malformed]
    assert all(file.endswith("-strange.log") for file in named)


def test_a_line_that_the_reader_fails_on_is_named(folder, monkeypatch):
    """Nobody knows of one; the next one takes no verdict with it either."""
    from rebalance_verifier.pipeline.audit.sources import parsing

    good = local.read([str(folder)])
    (folder / "strange.log").write_text(LINE.format("t-7"))
    parts = parsing._parts
    monkeypatch.setattr(
        parsing, "_parts", lambda caught, kind: [[][1]] if "t-7" in str(caught) else parts(caught, kind)
    )
    logs = local.read([str(folder)])
    assert [(Path(bad.file).name, bad.line, bad.why) for bad in logs.malformed] == [
        ("strange.log", 1, f"{STRANGE}: IndexError")
    ]
    assert sorted(logs.events) == sorted(good.events)


@pytest.mark.parametrize("first", ["timestamp,message", "[{", "[", "{"])
def test_a_log_whose_first_line_looks_like_a_table_or_json(tmp_path, first):
    (tmp_path / "a.log").write_text(f"{first}\n{LINE.format('t-0, t-1')}{LINE.format('t-2')}")
    logs = local.read([str(tmp_path)])
    assert sorted((event.partition, event.line) for event in logs.events) == [(0, 2), (1, 2), (2, 3)]
    assert not logs.unread
    assert sum(one.lines for one in logs.lines) == 3 - (first == "timestamp,message")


def test_a_quote_that_is_not_closed_is_named(tmp_path):
    rows = '"2026-11-21T18:00:00Z","[Consumer clientId=c, groupId=g] Adding newly assigned partitions: t-0"\n'
    (tmp_path / "a.csv").write_text(f'timestamp,message\n{rows}"2026,x\n{rows[1:].replace(chr(34), "")}')
    logs = local.read([str(tmp_path)])
    assert [event.line for event in logs.events] == [2]
    assert unread(logs) == {
        "a.csv": ("a quote that is opened in line 3 is not closed: what follows is not read", 4, True)
    }


def test_a_name_that_is_no_text(folder):
    name = os.path.join(os.fsencode(folder), b"a\xff.log")
    try:
        Path(os.fsdecode(name)).write_text(LINE.format("t-0"))
    except OSError:
        pytest.skip("this file system has no such names")
    logs = local.read([str(folder)])
    assert unread(logs) == {"a\\xff.log": ("its name is not UTF-8: rename it", 0, True)}
    assert logs.events


@pytest.mark.parametrize("ending", ["zip", "tar", "gztar"])
def test_an_archive_of_several_logs_is_no_log(ending, tmp_path):
    """What is not packed in it was read as one file, of all processes at once."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(LINE.format("t-1"))
    shutil.make_archive(str(tmp_path / "saved"), ending, tmp_path / "logs")
    (archive,) = tmp_path.glob("saved.*")
    logs = local.read([str(archive)])
    assert (logs.events, logs.malformed) == ([], [])
    assert [(one.why, one.lost) for one in logs.unread] == [
        ("an archive of several files, which are not told apart: unpack it first", True)
    ]
