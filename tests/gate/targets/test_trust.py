"""What a run of this user has signed may run again: by this user, in that directory, and nothing else."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from rebalance_verifier.base.processes import signing
from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.gate.targets import trust
from rebalance_verifier.gate.targets.hosts.hosted import is_ours

from tests.command import Rebalance

CODE = "-- ./adapter"
MINE = "def assign(cluster, group): return {}\n"


@pytest.fixture
def cache(here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user who has no key yet; the current directory is ``here``."""
    made = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(made))
    return made / "rebalance-verifier"


def is_trusted(code: str = CODE) -> bool:
    try:
        trust.check(Path("x.json"), code, trusted=False, target=True)
    except TraceError:
        return False
    return True


def test_what_was_signed_is_trusted_and_nothing_else(cache: Path, here: Path) -> None:
    assert not is_trusted()
    trust.sign(CODE)
    trust.sign("mine:assign")
    trust.sign(CODE)
    assert is_trusted()
    assert is_trusted("mine:assign")
    assert not is_trusted(f"{CODE} ")
    assert not is_trusted("-- ./adapter2")
    assert len((here / ".rebalance" / "signed").read_text().split()) == 2


def test_a_signature_is_of_one_directory(cache: Path, here: Path, monkeypatch) -> None:
    trust.sign(CODE)
    other = here / "other"
    other.mkdir()
    (other / ".rebalance").symlink_to(here / ".rebalance")
    monkeypatch.chdir(other)
    assert not is_trusted()
    monkeypatch.chdir(here)
    assert is_trusted()


def test_a_signature_is_of_one_user(cache: Path, here: Path, tmp_path_factory, monkeypatch) -> None:
    trust.sign(CODE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("of-another")))
    assert not is_trusted()
    trust.sign("mine:assign")
    assert is_trusted("mine:assign")
    assert not is_trusted()


def test_a_key_of_somebody_else_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert len(signing.key()) == signing.KEY_BYTES
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(OSError, match="no key that you alone can read"):
        signing.key()


def test_the_key_is_for_its_user_alone(cache: Path) -> None:
    before = os.umask(0)
    try:
        trust.sign(CODE)
    finally:
        os.umask(before)
    key = cache / signing.KEY
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == signing.KEY_BYTES
    assert [one.name for one in cache.iterdir()] == [signing.KEY], "no draft is left"


@pytest.mark.parametrize("wrong", ["readable", "short", "long", "link", "fifo", "directory"])
def test_what_is_no_key_signs_nothing_and_trusts_nothing(cache: Path, here: Path, wrong: str) -> None:
    trust.sign(CODE)
    key = cache / signing.KEY
    kept = key.read_bytes()
    moved = key.rename(here / "moved")
    match wrong:
        case "link":
            key.symlink_to(moved)
        case "fifo":
            os.mkfifo(key)
        case "directory":
            key.mkdir()
        case _:
            key.write_bytes({"readable": kept, "short": kept[:-1], "long": kept + b"x"}[wrong])
            key.chmod(0o640 if wrong == "readable" else 0o600)
    assert not is_trusted()
    before = (here / ".rebalance" / "signed").read_bytes()
    trust.sign("mine:assign")
    assert (here / ".rebalance" / "signed").read_bytes() == before


def _sign(numbers: range) -> None:
    for number in numbers:
        trust.sign(f"-- ./adapter{number}")


def test_many_at_once_have_one_key(cache: Path) -> None:
    start = multiprocessing.get_context("fork").Process
    several = [start(target=_sign, args=(range(first, 40, 8),)) for first in range(8)]
    for one in several:
        one.start()
    for one in several:  # a pool would be terminated, which a process that has just begun may not hear
        one.join()
        assert one.exitcode == 0
    assert all(is_trusted(f"-- ./adapter{number}") for number in range(40))


def test_a_list_of_signatures_that_is_none_trusts_nothing(cache: Path, here: Path) -> None:
    (here / ".rebalance").mkdir()
    os.mkfifo(here / ".rebalance" / "signed")
    trust.sign(CODE)
    assert not is_trusted()


def test_a_check_signs_what_it_ran_and_a_replay_of_another_command_is_refused(
    rebalance: Rebalance, cache: Path, here: Path
) -> None:
    (here / "mine.py").write_text(MINE)
    rebalance(
        "check", "mine:assign", "--profile", "smoke", "--clause", "assign/8", "--report", "", "--jobs", "1"
    )
    (saved, *_) = (here / ".rebalance" / "failures").glob("*.json")
    assert rebalance("replay").out.startswith("failing")
    assert rebalance("replay", saved, "--as-pytest", "out.py").code == 0
    edited = json.loads(saved.read_text())
    edited["scenario"]["topics"] = {name: count + 1 for name, count in edited["scenario"]["topics"].items()}
    saved.write_text(json.dumps(edited))
    assert "signed" not in rebalance("replay").out, "the scenario is for everybody to edit"
    edited["target"]["spec"] = "mine:other"
    saved.write_text(json.dumps(edited))
    assert "which no run of yours has signed here" in rebalance("replay").out


def test_an_exploration_signs_what_it_imported(rebalance: Rebalance, cache: Path, here: Path) -> None:
    (here / "mine.py").write_text("def never(group): return group.state != 'Stable'\n")
    ran = rebalance("explore", "dynamic", "--members", "1", "--partitions", "1", "--invariant", "mine:never")
    assert ran.code == 1, ran
    assert rebalance("replay").out.startswith("failing")
    (here / ".rebalance" / "signed").unlink()
    assert rebalance("replay").code == 2


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        ("range", True),
        ("cooperative-sticky+no_withhold", True),
        ("kafka-python:sticky", True),
        ("kafka-python==2.0.2:sticky", False),
        ("client:kafka-python:sticky", False),
        ("java:org.apache.kafka.clients.consumer.RangeAssignor@x", False),
        ("-- range", False),
        ("wire -- range", False),
        ("range:assign", False),
        ("", False),
    ],
)
def test_what_is_ours(spec: str, ours: bool) -> None:
    assert is_ours(spec) is ours


@pytest.mark.parametrize("spec", ["range", "kafka-python:range"])
def test_a_module_here_does_not_stand_for_one_of_ours(rebalance: Rebalance, here: Path, spec: str) -> None:
    """A directory that came from elsewhere may hold modules by the names of ours, or of clients."""
    pytest.importorskip("kafka")
    for name in ("kafka", "numpy", "networkx", "statistics"):
        (here / f"{name}.py").write_text(f"open({str(here / 'run')!r}, 'w')\n")
    ran = rebalance("check", spec, "--profile", "smoke", "--clause", "assign/1", "--report", "")
    assert ran.code in (0, 1), ran
    assert not (here / "run").exists()
