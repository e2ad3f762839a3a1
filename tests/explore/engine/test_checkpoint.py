"""An interrupted search goes on where it stood, and counts the same."""

from __future__ import annotations

import operator
import os
import pickle
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance.explore.engine import fast, plain
from rebalance.explore.engine.checkpoint import VERSION, Checkpoint, CheckpointError
from rebalance.explore.engine.search import Limits, Progress, Stop
from rebalance.model.machine import Action, Machine, Outcome, Value

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
    at = Checkpoint(tmp_path / "search", "toy")
    at.path.write_bytes(pickle.dumps((2, "toy")))
    with pytest.raises(ValueError, match="another version of rebalance: begin anew"):
        at.load("toy")


class Runs:
    """What a pickle of anybody may do when it is loaded."""

    def __init__(self, function, *arguments) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "hostile",
    [
        Runs(os.mkdir, "ran"),
        Runs(eval, "__import__('os').mkdir('ran')"),
        Runs(subprocess.Popen, ("mkdir", "ran")),
        Runs(operator.methodcaller("mkdir", "ran"), os.curdir),
        Runs(Path, "a"),
        (3, Runs(os.mkdir, "ran")),
    ],
)
def test_a_checkpoint_of_somebody_else_runs_nothing(tmp_path, monkeypatch, hostile):
    """It may have come with a directory: `.rebalance` of a clone."""
    monkeypatch.chdir(tmp_path)
    at = Checkpoint(tmp_path / "search", "toy")
    head = pickle.dumps((VERSION, "toy"))
    for written in (pickle.dumps(hostile), head + pickle.dumps(hostile)):
        at.path.write_bytes(written)
        with pytest.raises(CheckpointError, match="is no checkpoint"):
            at.load("toy")
    assert [one.name for one in tmp_path.iterdir()] == ["search"]


@pytest.mark.parametrize("written", [b"", b"nothing", pickle.dumps(7), pickle.dumps((VERSION, "toy"))])
def test_what_is_no_checkpoint_says_so(tmp_path, written):
    at = Checkpoint(tmp_path / "search", "toy")
    at.path.write_bytes(written)
    with pytest.raises(CheckpointError, match=r"is no checkpoint|another version"):
        at.load("toy")


def test_what_holds_no_search_says_so(tmp_path):
    at = Checkpoint(tmp_path / "search", "toy")
    at.path.write_bytes(pickle.dumps((VERSION, "toy")) + pickle.dumps({"values": []}))
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        at.load("toy")
