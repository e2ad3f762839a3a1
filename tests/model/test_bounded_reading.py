"""A file that somebody else wrote, or that is none, is one line that names it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from rebalance_verifier.base import reading
from rebalance_verifier.base.reading import Unparsed, Unreadable

JSON: dict[str, bytes] = {
    "empty": b"",
    "truncated": b'{"a": [1, 2',
    "two-values": b"{} {}",
    "deep-lists": b"[" * 100_000,
    "deep-objects": b'{"a":' * 100_000,
    "digits": b"9" * 5000,
    "not-a-number": b'{"a": NaN}',
    "infinity": b"-Infinity",
    "beyond-floats": b'{"a": [1e999]}',
    "key-twice": b'{"a": 1, "b": 2, "a": 3}',
    "key-twice-inside": b'[{"x": {"a": 1, "a": 1}}]',
    "not-utf-8": b'{"a": "\xff"}',
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "pickle": b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.",
    "zeros": b"\0" * 1000,
}
TOML: dict[str, bytes] = {
    "truncated": b"[check",
    "deep-lists": b"a = " + b"[" * 100_000,
    "deep-tables": b"a = " + b"{a = " * 100_000,
    "digits": b"a = " + b"9" * 5000,
    "key-twice": b"a = 1\na = 2\n",
    "not-utf-8": b"a = '\xff'",
}


def irregular(where: Path) -> dict[str, Path]:
    """What is no file, or one that is larger than any reader wants."""
    found = {name: where / name for name in ("fifo", "device", "directory", "loop", "socket", "sparse")}
    os.mkfifo(found["fifo"])
    found["device"].symlink_to("/dev/zero")
    found["directory"].mkdir()
    found["loop"].symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(found["socket"]))
    with found["sparse"].open("wb") as file:
        file.truncate(2**30)
    return {**found, "long": where / ("x" * 5000), "zero": where / "a\0b"}


@pytest.mark.parametrize("name", JSON)
def test_json_that_is_none(tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(JSON[name])
    with pytest.raises(Unparsed) as error:
        reading.json_of(file)
    assert str(error.value).startswith(f"{file}:")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", TOML)
def test_toml_that_is_none(tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(TOML[name])
    with pytest.raises(Unparsed) as error:
        reading.toml_of(file)
    assert str(error.value).startswith(f"{file}:")


def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, path in irregular(tmp_path).items():
        with pytest.raises(Unreadable) as error:
            reading.contents(path)
        assert not isinstance(error.value, Unparsed)
        assert str(path)[:1000].split("\0")[0] in str(error.value), name
    with pytest.raises(Unreadable, match="is no file but a pipe"):
        reading.text(tmp_path / "fifo")


def test_a_file_that_is_not_there_stays_that(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    with pytest.raises(FileNotFoundError):
        reading.json_of(tmp_path / "none")
    with pytest.raises(NotADirectoryError):
        reading.json_of(tmp_path / "file" / "none")


def test_a_file_of_just_so_many_bytes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"\xef\xbb\xbf[1]")
    assert reading.json_of(file, 6) == [1]
    with pytest.raises(Unreadable, match="has more than"):
        reading.json_of(file, 5)


def test_a_file_that_grows_while_it_is_read_is_bounded_too(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"1234567")
    before = os.stat_result((0o100644, 0, 0, 1, 0, 0, 1, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda number: before)
    with pytest.raises(Unreadable, match="has more than"):
        reading.contents(file, 6)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path: Path, monkeypatch) -> None:
    os.mkfifo(tmp_path / "x")
    looked = os.stat_result((0o100644, 0, 0, 1, 0, 0, 1, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda self, **_: looked)
    with pytest.raises(Unreadable):
        reading.contents(tmp_path / "x")


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1], 2**63, -(2**63) - 1, 10**400])
def test_a_whole_number_is_one_within_limits(value: object) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        reading.whole(value)
    assert reading.whole(2**63 - 1) == 2**63 - 1


def test_values_of_other_kinds_are_refused() -> None:
    for refuse, value in (
        (reading.word, 1),
        (reading.fields, []),
        (reading.listed, {}),
        (lambda value: reading.listed(value, 1), [1, 2]),
        (lambda value: reading.whole(value, 1), 0),
    ):
        with pytest.raises(ValueError, match="expected"):
            refuse(value)
