"""``rebalance upgrade``: the verdict on each path, the counterexample, the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rebalance.explore.engine import fast

from tests.gate.report.pages import sound


@pytest.mark.slow
def test_from_range_to_cooperative_there_is_a_safe_way(rebalance):
    ran = rebalance("upgrade", "--from", "range", "--to", "cooperative-sticky")
    assert ran.code == 0
    assert "SAFE             double-bounce " in ran.out
    assert "REFUSED          single-bounce" in ran.out
    assert "poll() throws INCONSISTENT_GROUP_PROTOCOL" in ran.out
    assert "plan: double-bounce\n  1. restart" in ran.out
    (saved,) = Path(".rebalance/failures").glob("*.json")
    assert rebalance("replay", saved.stem).code == 1
    assert "with [cooperative-sticky]" in rebalance("show", saved.stem).out


@pytest.mark.slow
def test_a_page_has_the_plan_and_the_run_that_breaks_another_path(rebalance):
    ran = rebalance("upgrade", "--from", "range", "--to", "cooperative-sticky")
    assert ran.out.endswith("\nreport: .rebalance/latest/report.html\n")
    made = Path(".rebalance/latest/report.html").read_text()
    page = sound(made)
    for expected in ("The plan: double-bounce", "single-bounce breaks"):
        assert expected in page.text, expected
    assert made.count("<b class=good>safe</b>") == 2
    assert made.count("<b class=bad>refused</b>") == 1
    assert page.all("svg")
    assert "upgrade range to cooperative-sticky" in Path(".rebalance/index.html").read_text()
    quiet = rebalance("upgrade", *SMALL, "--report", "json", "--report-dir", "out")
    assert "report:" not in quiet.out
    assert [one.name for one in Path("out").iterdir()] == ["report.json"]


@pytest.mark.slow
def test_one_path_only_and_json(rebalance):
    argv = ("upgrade", "--from", "range", "--to", "cooperative-sticky", "--path", "single-bounce")
    ran = rebalance(*argv, "--format", "json", "--out", "runs")
    assert ran.code == 1
    document = json.loads(ran.out)
    assert [(p["path"], p["verdict"]) for p in document["paths"]] == [("single-bounce", "refused")]
    assert document["paths"][0]["trace"]["path"].startswith("runs/")
    assert "no plan: none of these paths is safe" in rebalance(*argv).out


@pytest.mark.slow
def test_streams_have_a_path_of_their_own(rebalance):
    ran = rebalance("upgrade", "--from", "streams", "--to", "streams", "--format", "json")
    verdicts = {p["path"]: p["verdict"] for p in json.loads(ran.out)["paths"]}
    assert verdicts["upgrade.from"] == "safe"  # what is unsafe without it takes three instances to see


def test_a_bound_is_inconclusive(rebalance):
    argv = ("upgrade", "--from", "range", "--to", "cooperative-sticky", "--path", "double-bounce")
    ran = rebalance(*argv, "--states", 100)
    assert ran.code == 3
    assert "INCONCLUSIVE" in ran.out


def test_what_is_saved_says_of_which_group_it_is(rebalance):
    argv = ("--from", "range", "--to", "cooperative-sticky", "--path", "single-bounce", "--partitions", 1)
    assert rebalance("upgrade", *argv).code == 1
    (saved,) = Path(".rebalance/failures").glob("*.json")
    origin = json.loads(saved.read_text())["origin"]
    assert (
        origin.items()
        >= {
            "scenario": "upgrade range to cooperative-sticky",
            "path": "single-bounce",
            "members": 2,
            "partitions": 1,
        }.items()
    )


SMALL = ("--from", "range", "--to", "cooperative-sticky", "--members", 1, "--partitions", 1)


def test_ctrl_c_ends_it_at_once_and_resume_goes_on(rebalance, monkeypatch):
    whole = rebalance("upgrade", *SMALL)
    search, paths = fast.explore, []

    def interrupted(*given, **named):
        """The first path is searched, then somebody has enough."""
        paths.append(named["checkpoint"].path.exists())
        if len(paths) == 2:
            raise KeyboardInterrupt
        return search(*given, **named)

    monkeypatch.setattr(fast, "explore", interrupted)
    ran = rebalance("upgrade", *SMALL)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "interrupted; the same command with --resume goes on from here\ninterrupted\n"
    paths[:] = [False, False, False]
    assert rebalance("upgrade", *SMALL, "--resume") == whole
    assert paths[3:] == [True, False, False], "the first path was searched before"
    assert list(Path(".rebalance/explore").iterdir()) == []


def test_every_stage_shows_itself(rebalance, monkeypatch):
    drawn = []
    monkeypatch.setattr("rebalance.gate.cli.console.progress.quiet", lambda options: False)
    monkeypatch.setattr("rebalance.gate.cli.console.progress.EVERY", 0.0001)
    monkeypatch.setattr("rebalance.gate.cli.console.progress.draw", lambda line="": drawn.append(line))
    assert rebalance("upgrade", *SMALL).code == 0
    assert any(line.startswith("path 1 of 3, double-bounce: searching: depth ") for line in drawn)
    assert any(line.startswith("path 2 of 3, double-bounce-new-first: ") for line in drawn)
    assert drawn[-1] == "", "and goes away"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--from", "range"), "required: --to"),
        (("--from", "range", "--to", "nothing"), "no assignor to upgrade from or to is called 'nothing'"),
        (("--from", "range", "--to", "range"), "nothing changes"),
        (("--from", "range", "--to", "streams"), "--from streams --to streams"),
        (
            ("--from", "range", "--to", "sticky", "--path", "x"),
            "no path from range to sticky is called 'x'",
        ),
        (("--from", "range", "--to", "sticky", "--members", "9"), "at most 6 x 12"),
        (("--from", "range", "--to", "sticky", "--release", "x"), "no release of a client is called 'x'"),
        (("--from", "range", "--to", "sticky", "--broker", "x"), "no release of a broker is called 'x'"),
        (("--from", "range", "--to", "sticky", "--faults", "fire"), "no fault is called 'fire'"),
        (("--from", "range", "--to", "sticky", "--max-faults", "2"), "name some"),
    ],
)
def test_wrong_use_is_one_message(rebalance, argv, message):
    ran = rebalance("upgrade", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
