"""Recordings on disk and drawn: what is written reads back, what is damaged is named, two owners are seen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from rebalance.gate import recordings
from rebalance.gate.recordings import Finding, Owner, Recording, Seen
from rebalance.gate.report.timeline import chart, span
from rebalance.gate.report.words import columns
from rebalance.gate.traces import NewerSchema, TraceError

ROOT = Path(__file__).parents[2]
BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)
A, B = "orders-1@a", "orders-2@b"


def seen(seconds, kind, line, consumer=A, **fields):
    return Seen(BEGAN + timedelta(seconds=seconds), kind, "app.log", line, consumer, **fields)


def on(seconds, kind, line, consumer=A, partition=1, **fields):
    return seen(seconds, kind, line, consumer, topic="orders", partition=partition, **fields)


@pytest.fixture
def twice() -> Recording:
    """B is assigned orders-1 before A has lost it: A was removed, and does not know."""
    events = (
        seen(0, "joining", 1),
        seen(0.1, "joined", 2, generation=7, member="m-a"),
        on(0.3, "assigned", 3, generation=7),
        seen(60, "preparing", 61, None, generation=7),
        seen(63, "stable", 6, None, generation=8),
        seen(63, "joined", 7, B, generation=8, member="m-b"),
        on(63.3, "assigned", 9, B, generation=8),
        seen(64, "removed", 63, None, member="m-a", detail="session timed out"),
        on(71.2, "lost", 11),
    )
    finding = Finding(
        "1f2e3d4c5b6a7988", "owned-twice", "safety", "orders", "orders", 1,
        BEGAN + timedelta(seconds=63.3), BEGAN + timedelta(seconds=71.2), 7.9,
        (Owner(A, "m-a", 7), Owner(B, "m-b", 8)), None, True, (events[2], events[6]),
        "orders-1 is owned by two",
    )  # fmt: skip
    return Recording(finding, "No partition twice.", "KIP-429", events, {"paths": ["app.log"]}, "0.1.0")


def rows(lines):
    """Label -> the bar and the marks of the chart, with what stands in each column of four."""
    found: dict[str, list[list[str]]] = {}
    label, margin = "", 2 + lines[0][2:].index("  1") + 2
    for line in lines[: lines.index("")]:
        label, cells = line[:margin].strip() or label, line[margin:]
        found.setdefault(label, []).append([cells[at : at + 4].strip() for at in range(0, len(cells), 4)])
    return found


def test_what_is_written_reads_back_and_is_as_its_schema_says(twice, tmp_path):
    schema = json.loads((ROOT / "gate" / "recording.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    lasting = replace(twice.finding, id="no file name", topic=None, partition=None, ended=None, skew=0.8)
    for one in (twice, replace(twice, finding=lasting), replace(twice, events=())):
        path = recordings.save(one, tmp_path)
        assert recordings.is_recording(path)
        back = replace(recordings.load(path), path=None)
        # A place is written without what its finding says once and for all.
        short = tuple(replace(place, topic=None, partition=None, member=None) for place in one.finding.places)
        assert back == replace(one, finding=replace(one.finding, places=short))
        written = json.loads(path.read_text())
        validator.validate(written)
        assert list(written) == list(schema["properties"])
        assert list(written["finding"]) == list(schema["$defs"]["finding"]["properties"])
    assert (tmp_path / "1f2e3d4c5b6a7988.json").exists()
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**written, "events": [{"kind": "joined"}]})


def test_a_hostile_id_is_no_file_name(twice, tmp_path):
    path = recordings.save(replace(twice, finding=replace(twice.finding, id="../../x")), tmp_path / "in")
    assert path.parent == tmp_path / "in"
    assert ".." not in path.name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("schema"), "field 'schema' is missing"),
        (lambda d: d.update(kind="group run"), "field 'kind' is not 'recording'"),
        (lambda d: d["finding"].pop("group"), "field 'finding.group' is missing"),
        (lambda d: d["finding"].pop("seconds"), "field 'finding.seconds' is missing"),
        (lambda d: d["finding"].update(seconds=-1), "'finding.seconds' is -1, expected seconds, 0 or more"),
        (lambda d: d["finding"].update(level="grave"), "'finding.level' is 'grave', expected safety"),
        (lambda d: d["finding"].update(began="yesterday"), "'finding.began' is 'yesterday', expected a time"),
        (lambda d: d["finding"].update(owners=["A"]), r"'finding.owners\[0\]' is \"A\", expected an object"),
        (lambda d: d["events"][2].update(line="3"), r"'events\[2\].line' is \"3\", expected a whole number"),
        (lambda d: d["events"][2].pop("at"), r"'events\[2\].at' is missing"),
    ],
)
def test_what_is_wrong_is_named(twice, tmp_path, change, said):
    path = recordings.save(twice, tmp_path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(TraceError, match=said) as raised:
        recordings.load(path)
    assert str(path) in str(raised.value)


def test_a_newer_file_is_told_from_a_broken_one(twice, tmp_path):
    path = recordings.save(twice, tmp_path)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(NewerSchema, match="use a newer suite"):
        recordings.load(path)
    for text, said in (("{", "not JSON"), ("[]", "not a recording"), ("\xff", "not JSON")):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(TraceError, match=said):
            recordings.load(path)
        assert not recordings.is_recording(path)
    assert not recordings.is_recording(tmp_path / "none")


def test_two_owners_are_seen(twice):
    drawn = rows(chart(twice))
    assert drawn["orders-1"] == [[str(n) for n in range(1, 10)]]
    assert drawn[A][0] == ["", "", *["████"] * 5, "▒▒▒▒"]  # until it has lost it
    assert drawn[A][1] == ["j", "J7", "+", "", "", "", "", "", "!"]
    assert drawn[B][0] == ["", "", "", "", "", "", *["████"] * 3]
    assert drawn["coordinator"] == [["", "", "", "p", "G8", "", "", "r"]]
    assert drawn["two owners"] == [["", "", "", "", "", "", "▲▲▲▲", "▲▲▲▲"]]


def test_an_orderly_hand_over_has_no_overlap(twice):
    orderly = (*twice.events[:3], on(62, "revoked", 5), *twice.events[4:7])
    drawn = rows(chart(replace(twice, events=orderly)))
    assert "two owners" not in drawn
    assert drawn[A][0] == ["", "", "████"]
    assert drawn[B][0][-1] == "████"


@pytest.mark.parametrize("kind", ["started", "closed"])
def test_who_starts_or_ends_owns_nothing(twice, kind):
    drawn = rows(chart(replace(twice, events=(*twice.events[:3], seen(61, kind, 5), *twice.events[4:7]))))
    assert "two owners" not in drawn


def test_other_partitions_are_other_bars(twice):
    """Whoever is assigned another partition does not own this one, and one line of a log is one column."""
    events = (
        on(0, "assigned", 3, partition=0),
        on(0, "assigned", 3, partition=2),
        on(1, "revoked", 4, partition=0),
    )
    lines = chart(replace(twice, events=events))
    assert "█" not in "".join(lines)
    assert any("assigned orders-0 and 1 more" in line for line in lines)
    mine = chart(replace(twice, events=(events[0], on(0, "assigned", 3), events[2])))
    assert any("assigned orders-1 and 1 more" in line for line in mine)


def test_list_has_every_line_of_the_log_and_marks_what_the_finding_rests_on(twice):
    listed = chart(twice)
    listed = listed[listed.index("") + 2 : listed.index("", listed.index("") + 1)]
    assert [line.split()[0] for line in listed] == [f"{n}{'*' * (n in (3, 7))}" for n in range(1, 10)]
    assert [line.split()[-1] for line in listed] == [event.where for event in twice.events]
    assert "18:01:04.000  coordinator  removes a member, m-a: session timed out" in "\n".join(listed)


@pytest.mark.parametrize("width", [80, 110, 160])
@pytest.mark.parametrize("unicode", [True, False])
def test_chart_keeps_within_its_width(twice, width, unicode):
    long = "x" * 300 + "\x1b[31m" + "消" * 50
    many = tuple(
        replace(on(n, kind, n, f"{long}{n % 12}", generation=100_000 + n), file=f"/{long}.log", detail=long)
        for n, kind in enumerate(("joined", "assigned", "revoked", "odd") * 30, 1)
    )
    finding = replace(twice.finding, topic=long, owners=(Owner(f"{long}3"),))
    for one in (twice, replace(twice, events=many, finding=finding)):
        lines = chart(one, unicode=unicode, width=width)
        assert max(map(columns, lines)) <= width
        assert all(line.isprintable() for line in lines)
        assert unicode or all(line.isascii() for line in lines)


def test_what_is_left_out_is_the_furthest_from_the_finding(twice):
    crowd = tuple(seen(-n, "joining", 100 + n, f"c{n}") for n in range(1, 300))
    lines = chart(replace(twice, events=(*crowd, *twice.events)))
    text = "\n".join(lines)
    assert all(f"app.log:{event.line}" in text for event in twice.events)
    shown = sum("app.log:" in line for line in lines)
    assert f"and {299 + 9 - shown} events around them" in text


def test_a_finding_about_the_whole_group_has_no_bars(twice):
    finding = replace(twice.finding, check="rebalance-storm", topic=None, partition=None, places=())
    lines = chart(replace(twice, finding=finding, events=twice.events[:2]))
    assert "█" not in "".join(lines)
    assert any("joined, generation 7" in line for line in lines)
    assert chart(replace(twice, events=())) == ["nothing of the log was kept with this finding"]


def test_show_draws_a_recording(rebalance, twice, tmp_path):
    path = recordings.save(twice, tmp_path / ".rebalance" / "latest" / "traces")
    for name in (path, "1f2e3d4c", "1f2e3d4c5b6a7988"):
        ran = rebalance("show", name)
        assert ran.code == 0
        assert ran.out.startswith(
            "1f2e3d4c5b6a7988  owned-twice  orders-1 is owned by two\n  rule     No partition"
        )
        assert "group orders  orders-1  7.9 s from 2026-11-21 18:01:03.300  certain" in ran.out
        assert "▲▲▲▲" in ran.out


def test_a_recording_is_no_run(rebalance, twice, tmp_path):
    path = recordings.save(twice, tmp_path)
    assert (rebalance("show", "--metrics", path)).code == 2
    replayed = rebalance("replay", path)
    assert replayed.code == 2
    assert "is a recording of a log, which `rebalance show` draws" in replayed.err
    path.write_text(path.read_text().replace('"group": "orders"', '"group": 7'))
    shown = rebalance("show", path)
    assert shown.code == 2
    assert "field 'finding.group' is 7, expected a string" in shown.err


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 ms"), (0.9, "900 ms"), (0.9999, "1.0 s"), (9.96, "10 s"), (119.7, "2 min"),
        (7199, "2 h 0 min"), (172800, "2 d 0 h"), (float("nan"), "unknown"), (None, "unknown"),
    ],
)  # fmt: skip
def test_spans(seconds, said):
    assert span(seconds) == said
