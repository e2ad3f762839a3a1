"""The tables of the audit against what was released: every message about a group is read or known."""

from __future__ import annotations

import ast
import io
import struct
import zipfile
from dataclasses import replace

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.pipeline.audit.sources.loggers import JAVA

from tools import log_messages
from tools.log_messages import LOGGINGS, UNREAD, of_python, readings, state

CLIENTS = LOGGINGS[0]
BY_NAME = {one.name: one for one in LOGGINGS}


def test_a_format_is_read_as_it_stands_in_logs():
    assert state(CLIENTS, "Adding newly assigned partitions: {}") == "assigned"
    assert state(CLIENTS, "Successfully synced group in generation {}") == "synced"
    assert state(CLIENTS, "The pause flag in partitions {} will be removed") == ""
    assert state(CLIENTS, "Partitions {} were assigned by magic") == UNREAD
    assert state(BY_NAME["aiokafka"], "Joined group '%s' (generation %s) with member_id %s") == "joined"
    assert state(BY_NAME["librdkafka"], 'Group "%.*s": updating member id "%.*s" -> "%.*s"') == "reset"
    assert "leaving" in state(BY_NAME["librdkafka"], 'Group "%.*s": leave (in state %s)')


def test_the_constants_of_a_class(tmp_path):
    """A class file made by hand: a text, a number that takes two places, and a constant of each."""
    texts = [b"first {}", b"never used", b"second"]
    pool = b"".join(b"\x01" + struct.pack(">H", len(one)) + one for one in texts)
    pool += b"\x05" + bytes(8)  # a long, which takes two entries
    pool += b"\x08" + struct.pack(">H", 1) + b"\x08" + struct.pack(">H", 3)
    data = b"\xca\xfe\xba\xbe" + bytes(4) + struct.pack(">H", 8) + pool
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("org/acme/Coordinator$Inner.class", data)
        jar.writestr("org/acme/Other.class", data)
    (tmp_path / "a.jar").write_bytes(buffer.getvalue())
    found = log_messages.classes(tmp_path / "a.jar", ["Coordinator"])
    assert found == {"Coordinator": {"first {}", "second"}}


def test_the_calls_of_a_logger(tmp_path, monkeypatch):
    source = 'log.info("Joined group %s", g)\nself._log.debug(f"x {g}")\nprint("Joined")\nlog.warning("y")\n'
    ast.parse(source)
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "group.py").write_text(source)
    monkeypatch.setattr("rebalance_verifier.live.artifacts.pypi.installed", lambda *_: tmp_path)
    mine = replace(BY_NAME["kafka-python"], where=("kafka/*.py",))
    assert list(of_python(mine, "1.0")) == ["Joined group %s", "y"]


def test_the_page_lists_what_is_not_read_and_in_which_releases(monkeypatch):
    texts = {
        "1": ["Joined group '%s' (generation %s) with member_id %s"],
        "2": ["Joined | %s by magic\n`x`"],
    }
    mine = replace(BY_NAME["aiokafka"], releases=("1", "2"), texts=lambda _, release: texts[release])
    monkeypatch.setattr(log_messages, "LOGGINGS", (mine,))
    page = log_messages.page()
    assert "2 messages about groups, 1 read, 0 ignored, 1 not read" in page
    assert "| `Joined group '{}' (generation {}) with member_id {}` | joined | 1 |" in page
    assert "| `Joined \\| {} by magic 'x'` | not read | 2 |" in page
    assert log_messages.written(texts["2"][0]) in log_messages.listed(page)


# -- what was released ---------------------------------------------------------------------------------


def speaking(logging, release):
    try:
        return logging.speaking(release)
    except ToolError as error:
        pytest.skip(str(error))


@pytest.mark.nightly
@pytest.mark.parametrize("release", CLIENTS.releases)
def test_every_text_about_the_group_is_read_or_known(release):
    unknown = [text for text in speaking(CLIENTS, release) if state(CLIENTS, text) == UNREAD]
    assert unknown == []


@pytest.mark.nightly
def test_every_row_is_of_the_releases_that_it_says():
    def number(release: str) -> tuple[int, ...]:
        return tuple(map(int, release.split(".")[:2]))

    texts = {release: set(CLIENTS.texts(CLIENTS, release)) for release in CLIENTS.releases}
    for line in JAVA.lines:
        if line.kind is None or "consumer protocol" in line.releases:
            continue
        first, _, last = line.releases.split(" (")[0].partition(" -")
        until = number(last) if last.strip() else number(first) if " -" not in line.releases else (99,)
        shipped = {one for one, every in texts.items() if any(line in readings("java", t) for t in every)}
        expected = {release for release in CLIENTS.releases if number(first) <= number(release) <= until}
        assert expected <= shipped, (line.start, sorted(expected - shipped))


@pytest.mark.nightly
@pytest.mark.parametrize("logging", LOGGINGS, ids=lambda one: one.name)
def test_what_a_new_release_logs_and_nobody_reads_is_on_the_page(logging):
    """When this fails: read the messages, add those that say something to the tables, and
    `python -m tools.log_messages`."""
    try:
        newest = logging.newest()
    except ToolError as error:
        pytest.skip(str(error))
    known = log_messages.listed(log_messages.PAGE.read_text(encoding="utf-8"))
    new = [
        text
        for text in speaking(logging, newest)
        if state(logging, text) == UNREAD and log_messages.written(text) not in known
    ]
    assert new == [], f"{logging.name} {newest} logs what is neither read nor known"


def test_without_what_is_to_be_fetched_the_page_stays(tmp_path, monkeypatch, capsys):
    (tmp_path / "page.md").write_text("as it was")

    def unreachable() -> str:
        raise ToolError("mvn fails")

    monkeypatch.setattr(log_messages, "page", unreachable)
    monkeypatch.setattr("sys.argv", ["log_messages", "--page", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit, match="2"):
        log_messages.main()
    assert capsys.readouterr().err.endswith("error: mvn fails\n")
    assert (tmp_path / "page.md").read_text() == "as it was"
