"""What the tools are given is refused before they work, in a line or two, and nothing is written."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WRONG = [line.split("  ->  ") for line in """
benchmarks.first_verdict again  ->  unrecognized arguments: again
log_messages --page nowhere/page.md  ->  'nowhere/page.md' cannot be written
log_messages --page .  ->  '.' cannot be written
migration.__main__ --out nowhere/page.md  ->  'nowhere/page.md' cannot be written
minimality  ->  the following arguments are required: FILE|DIR
minimality nowhere  ->  'nowhere' is neither a file, a directory, nor the id of a trace
minimality empty  ->  empty:1:1: not JSON
minimality directory  ->  no traces (*.json) below this directory
minimality run.json  ->  none of these is a counterexample of an assignor
minimality gone.json  ->  no module and no adapter is called 'gone'
mutation.edits --jobs 0  ->  '0' is not a whole number from 1 on
mutation.edits --only nothing  ->  --only: of no edit do file and function contain 'nothing'
raw_logs nowhere  ->  'nowhere' is no directory
raw_logs empty  ->  'empty' is no directory
raw_logs --into empty  ->  --into: [Errno
steadiness nowhere  ->  'nowhere' is neither a file, a directory, nor the id of a trace
steadiness run.json --plays 0  ->  '0' is not a whole number from 1 on
site  ->  the following arguments are required: --out
site --out made --results nowhere  ->  'nowhere' is no directory
site --out made --results directory  ->  'directory' has no page of a client
site --out empty  ->  --out: [Errno
""".splitlines()[1:]]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("directory").mkdir()
    Path("empty").touch()
    shutil.copy(ROOT / "tests" / "traces" / "saved" / "two-owners.json", "run.json")
    trace = json.loads(sorted((ROOT / "docs" / "results" / "traces").glob("*.json"))[0].read_text())
    Path("gone.json").write_text(json.dumps(trace | {"target": {"spec": "gone:Assignor"}}))


@pytest.mark.parametrize(("typed", "message"), WRONG, ids=[typed for typed, _ in WRONG])
def test_what_is_wrong_is_a_line_or_two(
    typed: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().rglob("*"))
    monkeypatch.setattr(sys, "argv", typed.split())
    with pytest.raises(SystemExit) as ended:
        import_module(f"tools.{sys.argv[0]}").main()
    out, err = capsys.readouterr()
    usage, error = err.split("error: ")
    assert (ended.value.code, out, usage[:6]) == (2, "", "usage:")
    assert message in error
    assert len(error.splitlines()) <= 2
    assert sorted(Path().rglob("*")) == before
