"""How many one-word sabotages of the model does ``prove`` notice alone, and how many does lockstep?

``python -m tools.mutation.alone --by prove`` (or ``lockstep``) draws ``--count`` mutants by ``--seed``, half
of them in the model of the classic protocol, half in those of consumer groups and of the migration. Each is
written into a copy of the project, whose model the judge imports (`judges`), and which says so or ends with
an error. What is known is kept beside this file and not asked again, so a run that was ended goes on;
``--again`` asks anew what was not noticed. The table is alone.md.

A sabotage is one change of the syntax tree, as in `mutants`: a condition negated, always or never so, an
operand or an element dropped, a step or an update dropped. What is known to be equivalent is not drawn, nor
are the steps that are put together (``atomic``), of which the proof and lockstep take the parts.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from rebalance_verifier.base.files import scratch

from tools.mutation.edits import ROOT, Copy
from tools.mutation.loading import applied
from tools.mutation.mutants import CLASSIC, Mutant, mutants_of
from tools.mutation.page import REASONS

FOLDER = Path(__file__).parent
PAGE = FOLDER / "alone.md"
EQUIVALENT = FOLDER / "alone.toml"

JUDGES = ("prove", "lockstep")
BARS = {"prove": 36, "lockstep": 30}
"""Of forty."""

KINDS = (
    "negated", "always", "never", "operand dropped", "element dropped", "step dropped", "update dropped",
)  # fmt: skip

CONSUMER = (
    "assignors", "connections", "conversion", "coordinator", "environment", "group", "member", "reconcile",
)  # fmt: skip
MIGRATION = ("coordinator", "group", "member")

PARTS: Mapping[str, tuple[str, ...]] = {
    "classic": ("group.setup", *(f"classic.{name}" for name in CLASSIC if name != "atomic")),
    "others": (*(f"consumer.{name}" for name in CONSUMER), *(f"migration.{name}" for name in MIGRATION)),
}
"""Modules of the model in each half of a draw."""

PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    "group": ("classic",),
    "classic": ("classic",),
    "consumer": ("consumer", "migration"),
    "migration": ("migration",),
}
"""Folder of the model -> the protocols whose groups its steps are in."""

NO_STEPS = ("views", "symmetries")
"""How functions end that say what is looked at and what is symmetric."""

OFTEN = 8
"""Steps of a kind: walks that are others take one of so many in any case."""

Taken = Mapping[str, int]
"""Kind of step -> how often it was taken."""

SECONDS = 3600.0
"""A model with which a judge takes longer does not end, and so is noticed."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a judge said of one sabotage; ``noticed`` is empty where it noticed nothing."""

    key: str
    commit: str
    noticed: str


def sabotages(part: str) -> list[Mutant]:
    """All of a half, but for those that are known to be equivalent; a key begins with folder and module."""
    found: list[Mutant] = []
    for module in PARTS[part]:
        source = path_of(module).read_text(encoding="utf-8")
        found += [
            one
            for one in mutants_of(module, source)
            if one.kind in KINDS and one.key.partition(".")[2] not in REASONS and _decides(one)
        ]
    return found


def _decides(mutant: Mutant) -> bool:
    """Whether it is in what the model does, not in what an engine is told of it."""
    looks = any(name.endswith(NO_STEPS) for name in mutant.function.split("."))
    return not looks and not mutant.was.startswith(("budget - ", "seen = "))


def path_of(module: str, root: Path = ROOT) -> Path:
    """Where ``folder.module`` of the model is."""
    return root / "model" / f"{module.replace('.', '/')}.py"


def drawn(count: int, seed: int) -> list[Mutant]:
    """``count`` sabotages, half of them classic ones."""
    found = []
    for part, some in zip(PARTS, (count - count // 2, count // 2), strict=True):
        found += random.Random(f"{seed}/{part}").sample(sabotages(part), some)
    return found


def protocols_of(module: str) -> tuple[str, ...]:
    """Of which protocols groups are asked."""
    return PROTOCOLS[module.partition(".")[0]]


class JudgedCopy(Copy):
    """A copy of the project that a judge imports."""

    @contextmanager
    def sabotaged(self, mutant: Mutant) -> Iterator[None]:
        """The copy has the mutant meanwhile."""
        path = path_of(mutant.module, self.root)
        before = path.read_text(encoding="utf-8")
        after = ast.unparse(applied(before, mutant))
        if after == ast.unparse(ast.parse(before)):
            raise RuntimeError(f"{mutant.key} changes nothing")
        try:
            self._write(path, after)
            yield
        finally:
            self._write(path, before)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()  # the time in it has whole seconds

    def judged(self, by: str, protocols: Sequence[str], effort: int | None = None) -> tuple[str, Taken]:
        """What a judge says of the model in this copy, and the steps that it took, by kind. Raises
        RuntimeError where it cannot judge.
        """
        command = [sys.executable, "-P", "-m", "tools.mutation.judges", by, *protocols, "--root", self.root]
        command += [] if effort is None else ["--effort", str(effort)]
        paths = os.pathsep.join(map(str, (self.root.parent, self.root)))
        try:
            ran = subprocess.run(
                [str(one) for one in command], cwd=self.root, env={**os.environ, "PYTHONPATH": paths},
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no end within {SECONDS:g} s", {}
        if ran.returncode:
            error = (ran.stderr.strip().splitlines() or ["no word"])[-1]
            if "rebalance_verifier/model/" in ran.stderr.replace(os.sep, "/"):
                return f"cannot be imported: {error}", {}
            raise RuntimeError(f"{by} cannot judge: {error}")
        answer = json.loads(ran.stdout.splitlines()[-1])
        return answer["noticed"], answer["taken"]


def judge(
    by: str, some: Sequence[Mutant], known: dict[str, Judged], jobs: int, effort: int | None = None
) -> None:
    """Ask a judge about those that are not ``known``, and write down what it says as it comes.

    Raises RuntimeError where it notices something in the model without any sabotage.
    """
    commit = _commit()
    copies: SimpleQueue[JudgedCopy] = SimpleQueue()

    sound: dict[tuple[str, ...], Taken] = {}

    def ask_unchanged(protocols: tuple[str, ...]) -> None:
        copy = copies.get()
        noticed, sound[protocols] = copy.judged(by, protocols, effort)
        copies.put(copy)
        if noticed:
            raise RuntimeError(f"without any sabotage: {noticed}")

    def ask(mutant: Mutant) -> None:
        copy, protocols = copies.get(), protocols_of(mutant.module)
        try:
            with copy.sabotaged(mutant):
                noticed, taken = copy.judged(by, protocols, effort)
        finally:
            copies.put(copy)
        noticed = noticed or never_taken(sound[protocols], taken)
        known[mutant.key] = Judged(key=mutant.key, commit=commit, noticed=noticed)
        _save(by, known)
        print(f"{mutant.key}: {noticed or 'not noticed'}", file=sys.stderr, flush=True)

    left = [one for one in some if one.key not in known]
    with scratch("alone") as directory, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            copies.put(JudgedCopy(directory / str(number)))
        for _ in pool.map(ask_unchanged, dict.fromkeys(protocols_of(one.module) for one in left)):
            pass
        for _ in pool.map(ask, left):
            pass


def never_taken(before: Taken, now: Taken) -> str:
    """What of the steps that walks took often without a sabotage they never took with it, as their report
    says; "" for nothing."""
    missing = sorted(kind for kind, times in before.items() if times >= OFTEN and not now.get(kind))
    return f"never taken: {', '.join(missing)}" if missing else ""


def known_of(by: str) -> dict[str, Judged]:
    """What a judge has said, by the key of the sabotage."""
    path = _kept(by)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = (Judged(**json.loads(line)) for line in lines)
    return {one.key: one for one in rows}


def equivalent() -> dict[str, str]:
    """Why a sabotage changes nothing that a judge could see: key -> reason."""
    return dict(tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"])


def page(some: Sequence[Mutant], seed: int, verdicts: Mapping[str, Mapping[str, Judged]]) -> str:
    """The table: ``verdicts`` are those of each judge."""
    reasons = equivalent()
    lines = [
        "# One-word sabotages of the model, and who notices them alone",
        "",
        f"Made by `python -m tools.mutation.alone --by JUDGE --count {len(some)} --seed {seed}`. Each",
        "sabotage is one word of one function of the model. A judge sees nothing but a copy with it.",
        "",
        "| judge | noticed | equivalent | missed | not asked |",
        "|---|---|---|---|---|",
    ]
    for by in JUDGES:
        judged = [one for one in some if one.key in verdicts[by]]
        found = [one for one in judged if verdicts[by][one.key].noticed]
        alike = [one for one in judged if one not in found and one.key in reasons]
        missed = len(judged) - len(found) - len(alike)
        lines.append(
            f"| `{by}` | {len(found)} of {len(some)} | {len(alike)} | {missed} | {len(some) - len(judged)} |"
        )
    lines += ["", "| sabotage | becomes | prove | lockstep |", "|---|---|---|---|"]
    for one in some:
        cells = [f"`{_cell(one.key)}`", f"`{_cell(one.now)}`"]
        cells += [_row_cell(verdicts[by].get(one.key), reasons.get(one.key, "")) for by in JUDGES]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _row_cell(one: Judged | None, reason: str) -> str:
    if one is None:
        return "not asked"
    return _cell(one.noticed) or (f"equivalent: {_cell(reason)}" if reason else "**missed**")


def _cell(text: str) -> str:
    short = " ".join(text.split())
    return (short if len(short) <= 160 else f"{short[:157]}...").replace("|", "\\|").replace("`", "'")


def _kept(by: str) -> Path:
    return FOLDER / f"alone.{by}.jsonl"


def _save(by: str, known: Mapping[str, Judged]) -> None:
    text = "".join(json.dumps(asdict(known[key])) + "\n" for key in sorted(known))
    fresh = _kept(by).with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(_kept(by))


def _commit() -> str:
    git = shutil.which("git") or "git"
    ran = subprocess.run(
        [git, "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ran.stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when more are missed than the bar of the judge allows."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.alone")
    parser.add_argument("--by", choices=JUDGES, required=True)
    parser.add_argument("--count", type=int, default=40, help="how many sabotages (40)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="ask anew about those that were not noticed")
    parser.add_argument("--list", action="store_true", help="print them, ask nobody")
    parser.add_argument("--jobs", type=int, default=1, help="copies that are judged at once (1)")
    parser.add_argument("--effort", type=int, help="steps of prove's sample, walks of lockstep with a group")
    given = parser.parse_args(arguments)
    some = drawn(given.count, given.seed)
    if given.list:
        print("\n".join(f"{one.key}  ->  {' '.join(one.now.split())}" for one in some))
        return 0
    known = known_of(given.by)
    if given.again:
        known = {key: one for key, one in known.items() if one.noticed}
    judge(given.by, some, known, given.jobs, given.effort)
    verdicts = {by: known_of(by) for by in JUDGES}
    PAGE.write_text(page(some, given.seed, verdicts), encoding="utf-8")
    noticed = sum(bool(known[one.key].noticed) for one in some)
    print(f"{noticed} of {len(some)} noticed by {given.by} alone")
    return 0 if noticed * 40 >= BARS[given.by] * len(some) else 1


if __name__ == "__main__":
    sys.exit(main())
