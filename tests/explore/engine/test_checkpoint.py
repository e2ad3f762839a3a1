"""An interrupted search goes on where it stood, and counts the same."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.signing import SEAL_BYTES, seal
from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.checkpoint import Checkpoint, CheckpointError
from rebalance_verifier.explore.engine.search import Limits, Progress, Stop
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.model import portable
from rebalance_verifier.model.machine import Action, Machine, Outcome, Value
from rebalance_verifier.properties.group.rules import Rules

from tests.explore.toys import coordinator, replay

GO_ON = Limits(go_on=True)


def after(levels: int) -> Callable[[Progress], None]:
    """Ctrl-C between two levels."""

    def press(progress: Progress) -> None:
        if progress.depth == levels:
            raise KeyboardInterrupt

    return press


def interrupted(machine: Machine, calls: int) -> Machine:
    """The machine, with Ctrl-C in the middle of an action."""
    left = [calls]

    def wrap(action: Action) -> Action:
        def run(*values: Value) -> Iterable[Outcome]:
            for outcome in action.run(*values):
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt
                yield outcome

        return action._replace(run=run)

    return replace(machine, actions=tuple(wrap(action) for action in machine.actions))


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_resume(tmp_path: Path, symmetry: bool, exact: bool) -> None:
    machine, rules = coordinator(3, 1, 2, withhold=False)
    whole = fast.explore(machine, rules, GO_ON, symmetry=symmetry, exact=exact)
    at = Checkpoint(tmp_path / "search", "toy")
    part = fast.explore(
        machine, rules, GO_ON, symmetry=symmetry, exact=exact, checkpoint=at, progress=after(5)
    )
    assert (part.stop, part.levels) == (Stop.INTERRUPTED, whole.levels[: part.depth + 1])
    more = fast.explore(
        *(interrupted(machine, 150), rules, GO_ON), symmetry=symmetry, exact=exact, checkpoint=at
    )
    assert (more.stop, more.levels) == (Stop.INTERRUPTED, whole.levels[: more.depth + 1])
    assert part.depth < more.depth < whole.depth
    rest = fast.explore(machine, rules, GO_ON, symmetry=symmetry, exact=exact, checkpoint=at)
    assert rest.counts == whole.counts
    assert rest.unreduced == whole.unreduced
    assert list(tmp_path.iterdir()) == []
    trace = rest.trace("one-owner")
    assert len(trace.events) == whole.breaches[0].depth
    replay(machine, *trace)


def test_traces_after_an_interrupt() -> None:
    """What was found before can be asked for, although tables were left half written."""
    machine, rules = coordinator(3, 1, 2, withhold=False)
    whole = plain.explore(machine, rules)
    part = fast.explore(interrupted(machine, 650), rules, GO_ON)
    assert part.stop is Stop.INTERRUPTED
    assert part.depth >= whole.breaches[0].depth
    assert set(part.traces("one-owner")) == set(whole.traces("one-owner"))
    stopped = plain.explore(interrupted(machine, 3000), rules, GO_ON)
    assert stopped.stop is Stop.INTERRUPTED
    assert stopped.levels[: whole.depth + 1] == whole.levels


def test_bounds_can_be_raised(tmp_path: Path) -> None:
    machine, rules = coordinator(2, 2, 2)
    at = Checkpoint(tmp_path / "search", "toy")
    stops = [
        fast.explore(machine, rules, limits, checkpoint=at).stop
        for limits in (Limits(depth=3), Limits(states=200), Limits(memory=-1), Limits())
    ]
    assert stops == [Stop.DEPTH, Stop.STATES, Stop.MEMORY, Stop.COMPLETE]


def test_saved_now_and_then(tmp_path: Path) -> None:
    machine, rules = coordinator(2, 2, 2)
    at = Checkpoint(tmp_path / "search", "toy", every=0)
    there: list[bool] = []
    fast.explore(machine, rules, progress=lambda p: there.append(at.path.exists()), checkpoint=at)
    assert all(there)
    assert not at.path.exists()


def test_of_another_search(tmp_path: Path) -> None:
    machine, rules = coordinator(2, 2, 2)
    fast.explore(machine, rules, Limits(depth=3), checkpoint=Checkpoint(tmp_path / "search", "toy"))
    for other, symmetry in (("other", False), ("toy", True)):
        with pytest.raises(ValueError, match="is a checkpoint of toy"):
            fast.explore(machine, rules, symmetry=symmetry, checkpoint=Checkpoint(tmp_path / "search", other))


def test_a_checkpoint_of_another_version_says_so(tmp_path: Path) -> None:
    machine, rules = coordinator(2, 2, 2)
    at = Checkpoint(tmp_path / "search", "toy")
    for written in (pickle.dumps((3, "toy")), b'{"version": 4, "fingerprint": "toy symmetry=False"}\n'):
        at.path.write_bytes(written)
        with pytest.raises(CheckpointError, match="another version of rebalance: begin anew"):
            fast.explore(machine, rules, checkpoint=at)


@pytest.fixture
def saved(tmp_path: Path) -> tuple[bytes, dict[str, Any], bytes]:
    """A checkpoint: its head, what it says of itself, and the rest."""
    machine, rules = coordinator(2, 2, 2, withhold=False)
    at = Checkpoint(tmp_path / "search", "toy")
    fast.explore(machine, rules, Limits(depth=7, go_on=True), checkpoint=at)
    head, body, rest = at.path.read_bytes().split(b"\n", 2)
    return head + b"\n", json.loads(body), rest[:-SEAL_BYTES]


def signed(path: Path, written: bytes) -> bytes:
    """As this user would have signed it: what is wrong with it is found all the same."""
    signature = seal(path.name)
    signature.update(written)
    return written + signature.digest()


def refused(path: Path, written: bytes) -> str:
    """What is said of it, in one line."""
    path.write_bytes(signed(path, written))
    with pytest.raises(CheckpointError) as error:
        fast.explore(*coordinator(2, 2, 2), checkpoint=Checkpoint(path, "toy"))
    assert str(path) in str(error.value)
    assert "begin anew" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


Body = dict[str, Any]


def wrong(name: str, value: object) -> Callable[[Body], None]:
    """Another value in the body, or below its tally."""

    def change(body: Body) -> None:
        (body if name in body else body["tally"])[name] = value

    return change


def first_level(body: Body, columns: object = None, states: object = None) -> None:
    body["levels"][0] = [
        body["levels"][0][0] if columns is None else columns,
        body["levels"][0][1] if states is None else states,
    ]


WRONG: dict[str, Callable[[Body], object]] = {
    "no-values": wrong("values", 0),
    "negative": wrong("values", -1),
    "endless": wrong("values", 2**62),
    "no-levels": wrong("levels", []),
    "levels-text": wrong("levels", "u1"),
    "cpu-text": wrong("cpu", "1"),
    "cpu-negative": wrong("cpu", -1),
    "counts-text": wrong("generated", "1"),
    "counts-huge": wrong("expanded", 2**63),
    "actions-few": lambda body: body["tally"]["taken"].pop(),
    "actions-wrong": wrong("taken", [[1]]),
    "witness-unknown": wrong("witnesses", [["x", 1, 1]]),
    "breach-without-depth": wrong("breaches", [["one-owner", "x"]]),
    "no-tally": lambda body: body.pop("tally"),
    "tally-list": wrong("tally", []),
    "level-of-objects": lambda body: first_level(body, ["O", "O", "O", "O"]),
    "level-of-one-column": lambda body: first_level(body, ["u1"]),
    "level-of-floats": lambda body: first_level(body, ["f4"] * len(body["levels"][0][0])),
    "level-of-many-states": lambda body: first_level(body, states=2**60),
    "level-of-no-states": lambda body: first_level(body, states=0),
    "level-of-true-states": lambda body: first_level(body, states=True),
    "level-counted-otherwise": lambda body: body["tally"]["levels"].__setitem__(0, 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_checkpoint_that_says_something_else_of_itself(tmp_path: Path, saved, name: str) -> None:
    head, body, rest = saved
    WRONG[name](body)
    refused(tmp_path / "search", head + json.dumps(body).encode() + b"\n" + rest)


def test_a_checkpoint_that_was_cut_or_changed(tmp_path: Path, saved) -> None:
    head, body, rest = saved
    whole = head + json.dumps(body).encode() + b"\n" + rest
    values = rest[: body["values"]]
    for written in (
        *(b"", b"nothing", b"[]\n", head, head + b"[]\n", head[:-1], whole[:-1], whole + b"x"),
        pickle.dumps(7),
        b"[" * 100_000,
        b"0" * 100_000,
        whole[: -len(rest)] + b"\xff" * len(rest),
        whole.replace(values, b"[" * len(values)),
    ):
        refused(tmp_path / "search", written)
    for beyond in (len(portable.loads(values)[-1]), 255):
        assert "a value that is not there" in refused(tmp_path / "search", whole[:-1] + bytes([beyond]))
    assert fast.explore(*_written(tmp_path, whole)).levels


def _written(tmp_path: Path, whole: bytes) -> tuple[Machine, Rules]:
    (tmp_path / "search").write_bytes(signed(tmp_path / "search", whole))
    return coordinator(2, 2, 2, withhold=False)


def test_nothing_is_read_before_it_is_known_whose_search_it_is(tmp_path: Path, saved, monkeypatch) -> None:
    head, _, rest = saved

    def parsed(document: bytes) -> None:
        raise AssertionError("values of another search are read")

    monkeypatch.setattr(portable, "loads", parsed)
    path = tmp_path / "search"
    path.write_bytes(head.replace(b"toy", b"other") + b"[" * 100_000 + b"\n" + rest)
    with pytest.raises(CheckpointError, match="is a checkpoint of other symmetry=False, not of toy"):
        fast.explore(*coordinator(2, 2, 2), checkpoint=Checkpoint(path, "toy"))


def test_a_checkpoint_of_somebody_else_is_not_believed(tmp_path: Path, saved, monkeypatch) -> None:
    """It may say that all was searched and nothing is broken."""
    head, body, rest = saved
    body["tally"]["breaches"] = []
    lie, path = head + json.dumps(body).encode() + b"\n" + rest, tmp_path / "search"
    path.write_bytes(signed(path, lie))
    assert fast.explore(*coordinator(2, 2, 2), checkpoint=Checkpoint(path, "toy")).levels
    for name, cache in (("search", tmp_path / "theirs"), ("other", None)):
        with monkeypatch.context() as changed:
            if cache is not None:
                changed.setenv("XDG_CACHE_HOME", str(cache))
            path.write_bytes(signed(tmp_path / name, lie))
        with pytest.raises(CheckpointError, match="not saved by a search of yours: begin anew"):
            fast.explore(*coordinator(2, 2, 2), checkpoint=Checkpoint(path, "toy"))


def test_a_pipe_or_a_device_is_no_checkpoint(tmp_path: Path) -> None:
    for number, make in enumerate((os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir)):
        make(tmp_path / str(number))
        with pytest.raises(CheckpointError, match="is no file but a"):
            Checkpoint(tmp_path / str(number), "toy").load("toy", Tally.of(*coordinator(2, 2, 2)), 1)
