"""Campaigns: any number of scenarios, played in slices, each of which leaves Parquet behind.

A scenario follows from its seed, the seed from the campaign's seed and the scenario's number. So a slice is
nothing but a range of numbers: it may be played anywhere, at any time, twice if need be, and gives the same
rows. A slice counts when it is committed (``_SUCCESS``) and is overwritten as long as it is not, which is all
that a killed campaign needs to go on. Processes of this machine play it (``alone``), or Spark does
(``spread``).

``DIR/campaign.json`` says what is played and in which slices, ``DIR/verdicts/slice=NNNNN/`` holds the rows.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.processes.workers import CannotStart, isolated
from rebalance_verifier.base.reading import Unreadable, fields, json_of, listed, whole, word
from rebalance_verifier.base.verdict import Exit

SCHEMA = 1
"""Of campaign.json; raised when older readers would misread it."""

MAX_BYTES = 16 * 2**20
"""Of campaign.json."""

MAX_SLICES = 99_999
"""Of a campaign; each is a directory."""

CHUNK = 2_000
"""Most scenarios of one task: it has one child, which gets ready once, and its results in memory."""

TASKS = 16
"""Tasks of a slice where it has scenarios enough, so that the cores end at about the same time."""

COMMITTED = "_SUCCESS"
"""The file that says that a slice has all its rows; Spark's own name for it."""

CONFORMANT, VIOLATION, DECLINED = "conformant", "violation", "declined"
LOST = ("hung", "died", "error")
"""Verdicts of scenarios that could not be played to their end."""

COLUMNS = {
    "number": "BIGINT",  # 0, 1, 2 ...
    "seed": "BIGINT",  # all that the scenario follows from
    "verdict": "VARCHAR",
    "clause": "VARCHAR",  # the first of these
    "clauses": "VARCHAR[]",  # all that broke, in the order in which they did; of groups the gravest first
    "summary": "VARCHAR",  # how the first broke, or what became of the process
    "release": "VARCHAR",  # of the members, for groups
    "dimensions": "VARCHAR[]",  # in which the input varies, for assignors
    "members": "INTEGER",
    "partitions": "INTEGER",
    "steps": "INTEGER",  # rebalances of a history, steps of a walk
    "coverage": "MAP(VARCHAR, BIGINT)",  # situation -> how often it came up
    "micros": "BIGINT",  # how long it took; all else is the same in every run
}
"""Of the rows, one for each scenario, with their types as DuckDB names them."""

ALWAYS = ("number", "seed", "verdict")
"""Those without which there is no row."""


class SliceOutcome(NamedTuple):
    """Outcome of one scenario; the fields are among ``COLUMNS``."""

    verdict: str
    clauses: tuple[str, ...] = ()
    summary: str | None = None
    release: str | None = None
    dimensions: tuple[str, ...] = ()
    members: int | None = None
    partitions: int | None = None
    steps: int | None = None
    coverage: Mapping[str, int] = {}  # never changed


PlaySeed = Callable[[int, int], SliceOutcome]
"""Plays the scenario that follows from a seed, the one of this number."""


class Player(Protocol):
    """Something to play scenarios on. It is sent to the workers, so it has to be picklable, and small."""

    def playing(self) -> AbstractContextManager[PlaySeed]:
        """Entered once in each process that plays."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return what is played, as JSON values: rows of equal identity and seed may lie side by side."""
        ...


class CampaignError(ValueError):
    """A campaign that cannot be run as it is asked for; the text says what is in the way and what to do."""


class Slice(NamedTuple):
    """The scenarios ``first`` to ``last - 1``, which are played and committed together."""

    number: int
    first: int
    last: int

    @property
    def scenarios(self) -> int:
        """Return how many there are."""
        return self.last - self.first


@dataclass(frozen=True)
class Campaign:
    """Content of campaign.json. ``legs`` are pairs: how many scenarios in all, in slices of which size; a
    campaign that was made longer has several, so that slices played before stay what they are."""

    identity: Mapping[str, Any]
    seed: int
    legs: tuple[tuple[int, int], ...]
    version: str

    @property
    def scenarios(self) -> int:
        """Return how many there are to play in all."""
        return self.legs[-1][0]

    def check(self) -> None:
        """Raise ValueError where there is nothing to play, or more slices than a directory may hold."""
        if not self.legs:
            raise ValueError("legs: expected one at least")
        firsts = (0, *(scenarios for scenarios, _ in self.legs))
        cut = sum(-(-(last - first) // size) for first, (last, size) in zip(firsts, self.legs, strict=False))
        if cut > MAX_SLICES:
            raise ValueError(f"{cut:,} slices are more than {MAX_SLICES:,}: say --slice, with more in each")

    def slices(self) -> list[Slice]:
        """Return all slices, in order."""
        found: list[Slice] = []
        for scenarios, size in self.legs:
            start = found[-1].last if found else 0
            for first in range(start, scenarios, size):
                found.append(Slice(len(found), first, min(first + size, scenarios)))
        return found


@dataclass(frozen=True)
class Failing:
    """The smallest scenario of a campaign that breaks ``clause`` (as in its rows), one of ``scenarios``."""

    clause: str
    number: int
    seed: int
    scenarios: int


def seed_of(seed: int, number: int) -> int:
    """Return the seed of scenario ``number`` of the campaign ``seed``: 62 bits, the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:8]) >> 2


# -- on disk -------------------------------------------------------------------------------------------


def load(directory: Path) -> Campaign | None:
    """Return the campaign in ``directory``, None when there is none. Raises CampaignError."""
    path = directory / "campaign.json"
    try:
        data = fields(json_of(path, MAX_BYTES))
        if (schema := whole(data["schema"])) != SCHEMA:
            raise CampaignError(f"{path} has schema {schema}, this suite reads {SCHEMA}")
        return _campaign(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except CampaignError:
        raise
    except Unreadable as error:
        raise CampaignError(f"{error}; choose another directory") from error
    except (ValueError, LookupError, TypeError) as error:
        why = f"has no {error}" if isinstance(error, LookupError) else error
        raise CampaignError(f"{path} is no campaign: {why}; choose another directory") from error


def _campaign(data: Mapping[str, Any]) -> Campaign:
    """Return what campaign.json says. Raises ValueError, LookupError or TypeError for what no campaign
    has."""
    plays = fields(data["plays"])
    for name in ("target", "scenario"):
        word(plays.get(name, ""))
    legs, before = [], 0
    for scenarios, size in (listed(leg, 2) for leg in listed(data["legs"], MAX_SLICES)):
        before = whole(scenarios, before + 1)
        legs.append((before, whole(size, 1)))
    found = Campaign(plays, whole(data["seed"]), tuple(legs), word(data["suite_version"]))
    found.check()
    return found


def enlist(directory: Path, wanted: Campaign) -> Campaign:
    """Begin ``wanted`` in ``directory``, or take up what was begun there, longer if need be.

    Raises CampaignError where something else was begun there, or more of the same.
    """
    _checked(wanted)
    there = load(directory)
    if there is not None:
        for what, was, now in (
            ("plays", there.identity, wanted.identity),
            ("seed", there.seed, wanted.seed),
            ("suite version", there.version, wanted.version),
        ):
            if was != now:
                raise CampaignError(
                    f"{directory} holds another campaign: its {what} is {_differs(was, now)}; "
                    "say the same, or choose another directory"
                )
        if wanted.scenarios < there.scenarios:
            raise CampaignError(
                f"{directory} holds a campaign of {there.scenarios:,} scenarios, which can be made longer, "
                f"not shorter: say --scenarios {there.scenarios} or more, or --played --out {directory} for "
                "what was played so far"
            )
        if wanted.scenarios == there.scenarios:
            return there
        wanted = _checked(replace(wanted, legs=(*there.legs, *wanted.legs)))
    elif (directory / "verdicts").exists():
        raise CampaignError(f"{directory} has verdicts but no campaign.json: choose another directory")
    data = {
        "schema": SCHEMA,
        "plays": dict(wanted.identity),
        "seed": wanted.seed,
        "legs": [list(leg) for leg in wanted.legs],
        "suite_version": wanted.version,
    }
    try:
        write_whole(directory / "campaign.json", json.dumps(data, indent=1) + "\n")
    except OSError as error:
        raise CampaignError(f"{directory} cannot be written to: {error}") from error
    return wanted


def _checked(wanted: Campaign) -> Campaign:
    try:
        wanted.check()
    except ValueError as error:
        raise CampaignError(str(error)) from error
    return wanted


def _differs(was: Any, now: Any) -> str:
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in (*was, *now):
            if was.get(name) != now.get(name):
                return f"{name} = {json.dumps(was.get(name))}, not {json.dumps(now.get(name))}"
    return f"{was}, not {now}"


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make ``directory`` and keep a second driver out of it, by a lock that a kill gives back.

    Raises CampaignError.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as error:
        raise CampaignError(f"{directory} cannot be written to: {error}") from error
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CampaignError(f"{directory}: another process is playing this campaign") from error
        except OSError:
            pass  # a file system without locks
        yield


def slice_path(directory: Path, part: Slice) -> Path:
    """Return where the rows of a slice are."""
    return directory / "verdicts" / f"slice={part.number:05}"


def played(directory: Path, campaign: Campaign) -> list[Slice]:
    """Return the slices that are committed, and whose rows nobody has removed since."""
    paths = {part: slice_path(directory, part) for part in campaign.slices()}
    return [part for part, at in paths.items() if (at / COMMITTED).exists() and any(at.glob("*.parquet"))]


def kept(directory: Path, campaign: Campaign) -> int:
    """Return how many scenarios are played and committed."""
    return sum(part.scenarios for part in played(directory, campaign))


def rows_of(directory: Path, campaign: Campaign) -> list[Path]:
    """Return the files with the rows of all committed slices. Raises CampaignError for one that may not
    end."""
    slices = [slice_path(directory, part) for part in played(directory, campaign)]
    files = [file for at in slices for file in sorted(at.glob("*.parquet"))]
    for file in files:
        if not file.is_file():
            raise CampaignError(f"{file}: is no file but a pipe, a device or a directory: remove it")
    return files


# -- playing -------------------------------------------------------------------------------------------


def run(
    campaign: Campaign,
    directory: Path,
    play: Callable[[Slice, Callable[[int], None]], None],
    report_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Play all slices that are not committed: ``play`` plays one and commits it, and may say meanwhile how
    many of its scenarios are done. ``report_progress`` is told how many are done of all."""
    committed = played(directory, campaign)
    before = sum(part.scenarios for part in committed)
    report_progress(before)

    def report(more: int) -> None:
        report_progress(before + more)

    for part in campaign.slices():
        if part not in committed:
            play(part, report)
            before += part.scenarios
            report(0)


def tasks(part: Slice) -> list[range]:
    """Return the scenarios of a slice in parts for which there is a worker each."""
    parts = min(part.scenarios, max(TASKS, -(-part.scenarios // CHUNK)))
    cuts = [part.first + number * part.scenarios // parts for number in range(parts + 1)]
    return [range(first, last) for first, last in pairwise(cuts)]


def rows(player: Player, seed: int, numbers: range, limit: float) -> Iterator[list[VerdictRow]]:
    """Play these scenarios; their rows, in order, as they become known. ``limit``: seconds that one may take.

    Raises CannotStart where the player does not get ready.
    """
    working, lost = partial(_working, player, seed), partial(_lost, seed)
    return isolated(working, numbers.start, numbers.stop, limit, lost)


def unready(text: str) -> CampaignError | None:
    """Return what a CannotStart says whose traceback is in ``text``."""
    why = re.search(rf"{CannotStart.__name__}: (.*)", text)
    return None if why is None else CampaignError(f"nothing can be played on a worker: {why[1]}")


VerdictRow = tuple[Any, ...]
"""The values of one row, in the order of ``COLUMNS``."""


@contextlib.contextmanager
def _working(player: Player, seed: int) -> Iterator[Callable[[int], VerdictRow]]:
    with player.playing() as play:

        def work(number: int) -> VerdictRow:
            began = time.perf_counter_ns()
            own = seed_of(seed, number)
            outcome = play(own, number)
            return _line(number, own, outcome, (time.perf_counter_ns() - began) // 1000)

        yield work


def _lost(seed: int, number: int, verdict: str, why: str) -> VerdictRow:
    return _line(number, seed_of(seed, number), SliceOutcome(verdict, summary=why), None)


def _line(number: int, seed: int, outcome: SliceOutcome, micros: int | None) -> VerdictRow:
    verdict, clauses, summary, *rest, coverage = outcome
    clause = clauses[0] if clauses else None
    # What a target says is not always text that can be written.
    text = summary and summary.encode("utf-8", "backslashreplace").decode()
    # Sorted: a map is written in the order in which it was filled.
    return (number, seed, verdict, clause, clauses, text, *rest, sorted(coverage.items()), micros)


# -- what came of it -----------------------------------------------------------------------------------

Tables = Mapping[str, Sequence[Any]]
"""What came of a campaign (``tables``): name of a query -> its rows."""


def exit_of(campaign: Campaign, found: Tables) -> Exit:
    """Violations first; then whether all was played, to its end, by a target that took part."""
    known = {row.verdict: row.scenarios for row in found["verdicts"]}
    if known.get(VIOLATION):
        return Exit.VIOLATION
    whole = sum(known.values()) == campaign.scenarios and not found["quarantine"]
    return Exit.CONFORMANT if whole and known.get(CONFORMANT) else Exit.INCONCLUSIVE
