"""A value that several processes want is made by one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.compute_once import once

MAKER = """
import sys, time
from pathlib import Path
from rebalance_verifier.base.processes.compute_once import once
def make():
    with Path(sys.argv[1], "made").open("a") as made:
        made.write("x")
    time.sleep(0.2)
    return 7
print(*once(Path(sys.argv[1], "value"), make))
"""


def test_of_several_at_once_one_makes_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MAKER, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = sorted(one.communicate()[0].split()[1] for one in started)
    assert printed == ["False", "False", "True"]
    assert (tmp_path / "made").read_text() == "x"


def test_who_fails_leaves_it_to_the_next(tmp_path: Path) -> None:
    def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        once(tmp_path / "value", fail)
    assert once(tmp_path / "value", os.getpid) == (os.getpid(), True)
    assert once(tmp_path / "value", fail) == (os.getpid(), False)
