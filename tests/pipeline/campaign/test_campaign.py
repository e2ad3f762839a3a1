"""A campaign: what it plays, what it leaves behind, and that a kill changes neither."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from rebalance_verifier.base.processes.supervision import family

from tests.command import command
from tests.processes import left

TOY = {"toy": "toy"}
SEED = 42
"""One in whose first 100 scenarios the toy does all that it can do, and hangs once, for time's sake."""


@dataclass(frozen=True)
class Toy:
    """Breaks clauses, hangs and dies as a seed says."""

    log: str = ""

    def identity(self):
        return TOY

    @contextlib.contextmanager
    def playing(self):
        from rebalance_verifier.pipeline.campaign.campaign import SliceOutcome

        def play(seed: int, number: int) -> SliceOutcome:
            if self.log:
                with open(self.log, "a") as file:
                    file.write(f"{seed}\n")
            kind = seed % 50
            if kind == 0:
                time.sleep(1000)
            if kind == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == 2:
                raise RuntimeError("no way")
            broken = ("a/1", "b/2") if kind == 3 else ("b/2",) if kind in (4, 5) else ()
            return SliceOutcome(
                "violation" if broken else "conformant",
                broken,
                f"{broken[0]} breaks" if broken else None,
                dimensions=("odd",) if kind % 2 else (),
                members=kind,
                partitions=2,
                steps=3,
                coverage={"seen": 2, "done": 1},
            )

        yield play


@dataclass(frozen=True)
class Unfit(Toy):
    """Does not get ready."""

    def playing(self):
        raise ValueError("no licence")


@dataclass(frozen=True)
class Deadly(Toy):
    """Ends the process that started the one in which it plays."""

    @contextlib.contextmanager
    def playing(self):
        yield lambda seed, number: os.kill(os.getppid(), signal.SIGKILL)


@dataclass(frozen=True)
class Odd(Toy):
    """Says what is hard to write."""

    @contextlib.contextmanager
    def playing(self):
        from rebalance_verifier.pipeline.campaign.campaign import SliceOutcome

        odd = SliceOutcome("violation", ('a,"/1',), "\udcff 'quoted'\n", coverage={"\u00e9": 1})
        yield lambda seed, number: odd


@pytest.fixture(autouse=True)
def _workers_know_this_module():
    """They do not import the tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def campaign(scenarios: int = 100, size: int = 40, **changes):
    from rebalance_verifier.pipeline.campaign.campaign import Campaign

    return replace(Campaign(TOY, SEED, ((scenarios, size),), "0"), **changes)


def rows_of(directory):
    """All rows, by number, without how long they took."""
    import pyarrow.parquet as pq
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    begun = pipeline.load(directory)
    assert begun is not None
    files = pipeline.rows_of(directory, begun)
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    rows.sort(key=lambda row: row["number"])
    return [{**row, "coverage": dict(row["coverage"]), "micros": None} for row in rows]


# -- what is to be played --------------------------------------------------------------------------------


def test_seeds_follow_from_seed_and_number_alone():
    from rebalance_verifier.pipeline.campaign.campaign import seed_of

    assert seed_of(0, 0) == 1532623528772875733
    assert len({seed_of(seed, number) for seed in range(20) for number in range(500)}) == 10_000
    assert all(0 <= seed_of(7, number) < 1 << 62 for number in range(100))


def test_slices_cover_every_number_once_however_a_campaign_grew():
    grown = campaign(legs=((100, 40), (101, 40), (250, 60)))
    slices = grown.slices()
    assert [one.number for one in slices] == list(range(len(slices)))
    assert [n for one in slices for n in range(one.first, one.last)] == list(range(250))
    assert slices[:3] == campaign(legs=((100, 40),)).slices()


def test_the_same_campaign_is_taken_up_and_a_longer_one_added_to_it(tmp_path):
    from rebalance_verifier.pipeline.campaign.campaign import enlist, load

    assert load(tmp_path) is None
    assert enlist(tmp_path, campaign()) == campaign()
    assert enlist(tmp_path, campaign(size=7)) == campaign()  # the slices there are stay
    grown = enlist(tmp_path, campaign(scenarios=250, size=60))
    assert grown.legs == ((100, 40), (250, 60))
    assert load(tmp_path) == grown == enlist(tmp_path, campaign(scenarios=250))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"identity": {"toy": "other"}}, 'its plays is toy = "toy", not "other"'),
        ({"seed": 2}, "its seed is 42, not 2"),
        ({"version": "9"}, "its suite version is 0, not 9"),
        ({"legs": ((99, 40),)}, "longer, not shorter: say --scenarios 100 or more"),
    ],
)
def test_another_campaign_is_refused(tmp_path, changes, reason):
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError, enlist

    enlist(tmp_path, campaign())
    with pytest.raises(CampaignError) as refused:
        enlist(tmp_path, campaign(**changes))
    assert reason in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "legs": 3}'])
def test_a_damaged_campaign_is_refused(tmp_path, text):
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError, load

    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(CampaignError, match=r"campaign\.json"):
        load(tmp_path)


def test_rows_of_nobody_are_not_taken_over(tmp_path):
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError, enlist

    (tmp_path / "verdicts").mkdir()
    with pytest.raises(CampaignError, match=r"no campaign\.json"):
        enlist(tmp_path, campaign())


def test_two_drivers_do_not_play_one_campaign(tmp_path):
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError, locked

    with (
        locked(tmp_path / "new"),
        pytest.raises(CampaignError, match="another process"),
        locked(tmp_path / "new"),
    ):
        pass
    with locked(tmp_path / "new"):
        pass


# -- playing ---------------------------------------------------------------------------------------------


def here(*arguments):
    """Play by processes of this machine."""
    from rebalance_verifier.pipeline.campaign import alone

    alone.run(*arguments)


@pytest.fixture(params=["here", pytest.param("on Spark", marks=pytest.mark.nightly)])
def run(request):
    """How slices are played."""
    if request.param == "here":
        return here
    from rebalance_verifier.pipeline.campaign import spread

    request.getfixturevalue("spark")  # is used whatever the master
    return partial(spread.run, "local[2]")


@pytest.mark.slow
def test_rows_are_what_was_played_with_quarantine_and_a_kill_changes_nothing(run, tmp_path):
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    enlisted = pipeline.enlist(tmp_path, campaign())
    reported: list[int] = []
    run(Toy(), enlisted, tmp_path, 0.5, reported.append)
    assert reported == sorted(reported)
    assert {0, 40, 80, 100} <= {*reported}
    rows = rows_of(tmp_path)
    assert [row["number"] for row in rows] == list(range(100))
    assert [row["seed"] for row in rows] == [pipeline.seed_of(SEED, n) for n in range(100)]
    lost = {0: "hung", 1: "died", 2: "error"}
    for row in rows:
        kind = row["seed"] % 50
        broken = ["a/1", "b/2"] if kind == 3 else ["b/2"] if kind in (4, 5) else []
        assert row["verdict"] == lost.get(kind, "violation" if broken else "conformant")
        assert row["clauses"] == broken
        assert row["clause"] == (broken[0] if broken else None)
        if kind in lost:
            assert (row["members"], row["coverage"]) == (None, {})
        else:
            assert (row["members"], row["coverage"]) == (kind, {"seen": 2, "done": 1})
    assert {row["verdict"] for row in rows} == {"conformant", "violation", *lost.values()}

    # As a kill leaves it behind: one slice not begun, one with rows and no commit.
    places = sorted((tmp_path / "verdicts").iterdir())
    shutil.rmtree(places[2])
    (places[1] / "_SUCCESS").unlink()
    log = tmp_path / "log"
    assert len(rows_of(tmp_path)) == 40
    run(Toy(str(log)), enlisted, tmp_path, 0.5)
    assert rows_of(tmp_path) == rows
    assert {int(seed) for seed in log.read_text().split()} == {row["seed"] for row in rows[40:]}

    # Longer: what is there stays, the rest is added.
    log.unlink()
    longer = pipeline.enlist(tmp_path, campaign(scenarios=130))
    run(Toy(str(log)), longer, tmp_path, 0.5)
    assert rows_of(tmp_path)[:100] == rows
    assert {int(seed) for seed in log.read_text().split()} == {
        pipeline.seed_of(SEED, n) for n in range(100, 130)
    }


@pytest.mark.slow
def test_a_player_that_does_not_get_ready_on_a_worker_is_an_error_of_use(run, tmp_path):
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    begun = pipeline.enlist(tmp_path, campaign(scenarios=1))
    with pytest.raises(pipeline.CampaignError, match="on a worker: ValueError: no licence"):
        run(Unfit(), begun, tmp_path, 60.0)
    assert pipeline.played(tmp_path, begun) == []


@pytest.mark.parametrize("damage", [b"", b"PAR1" + bytes(50)], ids=["empty", "cut off"])
def test_rows_that_cannot_be_read_are_named_with_what_to_do(tmp_path, damage):
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError
    from rebalance_verifier.pipeline.campaign.tables import tables

    there = tmp_path / "verdicts/slice=00000"
    there.mkdir(parents=True)
    (there / "_SUCCESS").touch()
    (there / "part-0.parquet").write_bytes(damage)
    with pytest.raises(CampaignError, match=r"slice=00000/part-0\.parquet.*; remove the slice=NNNNN"):
        tables(tmp_path, campaign())


def test_a_walk_goes_on_to_two_owners_and_the_gravest_clause_is_its_first():
    """A leader that withholds nothing breaks a clause of safety first."""
    from rebalance_verifier.pipeline.campaign.campaign import Failing
    from rebalance_verifier.pipeline.campaign.walks import WalkPlayer, shrink_walks

    player = WalkPlayer(
        scenario="dynamic", members=2, partitions=2, budget=0, switches=("no_withhold",), steps=100
    )
    with player.playing() as play:
        outcome = play(16, 0)
    assert outcome.clauses == ("group/owner", "leader/withhold", "group/commit")
    assert "owned by" in (outcome.summary or "")
    [(clause, run)] = shrink_walks(player, [Failing("group/owner", 0, 16, 1)])
    assert clause == run.clause == "group/owner"


def test_the_table_of_broken_clauses_begins_with_the_gravest(tmp_path):
    """Not with the most frequent: of groups, of assignors, and of what is neither."""
    from rebalance_verifier.pipeline.campaign.tables import gravest_first

    def rows(*names):
        return [SimpleNamespace(clause=name) for name in names]

    for names in (
        ("member/ends", "group/commit", "group/owner"),
        ("kip54/sticky/1-eager", "assign/2-cooperative"),
        ("kip54/sticky/1-eager", "the model and the code differ"),
    ):
        assert [row.clause for row in gravest_first(rows(*names))] == [*reversed(names)]


def test_tables_count_scenarios_and_name_the_smallest(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from rebalance_verifier.pipeline.campaign.spread import ARROW
    from rebalance_verifier.pipeline.campaign.tables import tables
    from rebalance_verifier.report.terminal.campaign import data

    def row(number, verdict, clauses=(), members=2, steps=1, dimensions=(), release=None, micros=1000):
        clause = clauses[0] if clauses else None
        coverage = [] if members is None else [("seen", number + 1)]
        size = (members, None if members is None else 4, steps)
        return (number, 100 + number, verdict, clause, list(clauses), "why", release, list(dimensions), *size,
                coverage, micros)  # fmt: skip

    rows = [
        row(0, "conformant", dimensions=("x",)),
        row(1, "violation", ("a", "b"), members=9, dimensions=("x", "y")),
        row(2, "violation", ("b",), members=3, steps=7, dimensions=("y",)),
        row(3, "violation", ("b",), members=3, steps=7),
        row(4, "violation", ("b",), members=3, steps=8, release="java-2.4", micros=9_000_000),
        row(5, "hung", members=None, steps=None, micros=None),
    ]
    assert set(map(len, tables(tmp_path, campaign()).values())) == {0}
    for number in (0, 1):
        place = tmp_path / "verdicts" / f"slice={number:05}"
        place.mkdir(parents=True)
        columns = zip(zip(*rows[3 * number :][:3], strict=True), ARROW, strict=True)
        arrays = [pa.array(values, field.type) for values, field in columns]
        pq.write_table(pa.Table.from_arrays(arrays, schema=ARROW), place / "part.parquet")
        (place / "_SUCCESS").touch()
    found = tables(tmp_path, campaign())
    assert [tuple(r)[:2] for r in found["verdicts"]] == [("violation", 4), ("conformant", 1), ("hung", 1)]
    assert [tuple(r) for r in found["clauses"]] == [("b", 4, 2, 102, 1), ("a", 1, 1, 101, 1)]
    assert [tuple(r) for r in found["kinds"]] == [("java-2.4", 1, 1), ("x", 2, 1), ("y", 2, 2)]
    assert [tuple(r) for r in found["clauses by kind"]] == [
        ("java-2.4", "b", 1, 4, 104),
        ("x", "a", 1, 1, 101),
        ("x", "b", 1, 1, 101),
        ("y", "a", 1, 1, 101),
        ("y", "b", 2, 2, 102),
    ]
    assert [tuple(r) for r in found["coverage"]] == [("seen", 5, 15)]
    assert [r.number for r in found["slowest"]] == [4, 0, 1, 2, 3]
    assert [tuple(r) for r in found["quarantine"]] == [(5, 105, "hung", "why")]
    document = data(campaign(), tmp_path, found, {"a": "trace.json"})
    assert document["clauses"][1] == {
        "clause": "a", "scenarios": 1, "number": 1, "seed": 101, "first": 1, "trace": "trace.json"
    }  # fmt: skip


# -- kill -9 -----------------------------------------------------------------------------------------------


def until(what, process):
    """What ``what()`` gives as soon as it gives something."""
    while process.poll() is None:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError(f"it ended before that, with {process.returncode}")


def players(pid: int, spark: bool) -> list[int]:
    """The workers below a driver, then the children that play in them; of Spark, those of Python."""
    found = []
    for one in family(pid)[1:]:
        with contextlib.suppress(OSError):
            if not spark or b"pyspark.worker" in Path(f"/proc/{one}/cmdline").read_bytes():
                found.append(one)
    return found[spark:]  # the first of Spark's is the daemon itself, their parent


@pytest.mark.nightly
@pytest.mark.parametrize("master", ["", "local[2]"])
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_kill_9_of_a_worker_and_of_the_driver_and_the_tables_are_equal(tmp_path, master):
    from rebalance_verifier.pipeline.campaign import campaign as pipeline
    from rebalance_verifier.pipeline.campaign.walks import WalkPlayer

    player, size = WalkPlayer(scenario="eager", members=2, partitions=1, steps=30), 60
    argv = command("campaign", "eager", "--members", "2")
    argv += ["--partitions", "1", "--depth", "30", "--scenarios", "600", "--slice", str(size)]
    argv += [*(("--master", master) if master else ("--jobs", "1")), "--out"]  # slow enough to be killed
    killed = tmp_path / "killed"
    with subprocess.Popen([*argv, str(killed)], start_new_session=True) as driver:
        until(lambda: (killed / "verdicts/slice=00000/_SUCCESS").exists(), driver)
        for which in (0, -1):  # a worker, and most likely the child in which it plays
            with contextlib.suppress(ProcessLookupError):
                os.kill(until(lambda: players(driver.pid, bool(master)), driver)[which], signal.SIGKILL)
        until(lambda: (killed / "verdicts/slice=00002/_SUCCESS").exists(), driver)
        everybody = family(driver.pid)
        driver.kill()
    began = pipeline.load(killed)
    assert began is not None
    kept = pipeline.played(killed, began)
    assert 3 <= len(kept) < 10  # killed in the middle
    assert not left(everybody)

    commits = {path: path.stat().st_mtime_ns for path in (killed / "verdicts").glob("*/_SUCCESS")}
    assert len(commits) == len(kept)
    here(player, began, killed, 60.0)  # the other drive goes on as well
    assert {path: path.stat().st_mtime_ns for path in commits} == commits  # none was played again

    whole = tmp_path / "whole"
    undisturbed = pipeline.Campaign(player.identity(), 0, ((600, 600),), began.version)
    assert began.identity == json.loads(json.dumps(player.identity()))
    whole.mkdir()
    here(player, pipeline.enlist(whole, undisturbed), whole, 60.0)
    assert rows_of(killed) == rows_of(whole)


@pytest.mark.slow
def test_a_process_that_is_ended_again_and_again_ends_the_campaign(tmp_path):
    from rebalance_verifier.pipeline.campaign import alone
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    begun = pipeline.enlist(tmp_path, campaign(scenarios=1))
    with pytest.raises(pipeline.CampaignError, match="ended again and again, 4 times"):
        alone.run(Deadly(), begun, tmp_path, 60.0)
    assert pipeline.played(tmp_path, begun) == []


def test_a_slice_whose_rows_were_removed_is_played_again(tmp_path):
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    begun = pipeline.enlist(tmp_path, campaign(scenarios=2, size=1))
    here(Toy(), begun, tmp_path, 60.0)
    rows = rows_of(tmp_path)
    (lost,) = (tmp_path / "verdicts/slice=00001").glob("*.parquet")
    lost.unlink()
    assert [one.number for one in pipeline.played(tmp_path, begun)] == [0]
    here(Toy(), begun, tmp_path, 60.0)
    assert rows_of(tmp_path) == rows


def test_what_a_target_says_is_written_whatever_it_is(tmp_path):
    from rebalance_verifier.pipeline.campaign import campaign as pipeline

    begun = pipeline.enlist(tmp_path, campaign(scenarios=1))
    here(Odd(), begun, tmp_path, 60.0)
    (row,) = rows_of(tmp_path)
    assert row["summary"] == "\\udcff 'quoted'\n"
    assert (row["clauses"], row["coverage"]) == (['a,"/1'], {"\u00e9": 1})
