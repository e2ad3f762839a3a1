"""Where an unfinished exploration is kept, so that the same command with --resume goes on from there."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.cli.console.terminal import print_err

if TYPE_CHECKING:
    from rebalance_verifier.explore.engine.checkpoint import Checkpoint
    from rebalance_verifier.model.group.setup import Setup


def fingerprint(setup: Setup, *more: str) -> str:
    """Name the search of a group, and the code of it, ``more`` packages besides the model's."""
    from rebalance_verifier.base.sources import fingerprint
    from rebalance_verifier.traces.runs import setup_out

    names = ["base", "model", "properties", "explore", *more]
    return fingerprint(str(setup_out(setup)), [import_module(f"rebalance_verifier.{name}") for name in names])


def checkpoint(setup: Setup, *, resume: bool, marks: str = "", keep: bool = False) -> Checkpoint | None:
    """Return what the search of a group is saved to, removed unless it is to ``resume``; None where none can
    be."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.explore.engine.checkpoint import Checkpoint

    name = fingerprint(setup)
    path = ROOT / "explore" / f"{name}{marks}.checkpoint"
    try:
        files.make_root(ROOT)
        path.parent.mkdir(exist_ok=True)
        if not resume:
            path.unlink(missing_ok=True)
    except OSError as error:
        print_err(f"an interrupted search cannot be saved: {error}")
        return None
    if resume and not keep and not path.exists():
        print_err("nothing to resume: a new start")
    return Checkpoint(path, name, keep=keep)
