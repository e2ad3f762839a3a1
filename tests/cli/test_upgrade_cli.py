"""``rebalance upgrade``: the verdict on each path, the counterexample, the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.model.bugs.releases import CURRENT

from tests.report.pages import sound


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_one_path_only_and_json(rebalance):
    argv = ("upgrade", "--from", "range", "--to", "cooperative-sticky", "--path", "single-bounce")
    ran = rebalance(*argv, "--format", "json", "--out", "runs")
    assert ran.code == 1
    document = json.loads(ran.out)
    assert [(p["path"], p["verdict"]) for p in document["paths"]] == [("single-bounce", "refused")]
    assert document["paths"][0]["trace"]["path"].startswith("runs/")
    assert "no plan: none of these paths is safe" in rebalance(*argv).out


@pytest.mark.nightly
def test_streams_have_a_path_of_their_own(rebalance):
    ran = rebalance("upgrade", "--from", "streams-2.3", "--to", "streams", "--format", "json")
    document = json.loads(ran.out)
    verdicts = {p["path"]: p["verdict"] for p in document["paths"]}
    assert verdicts == {
        "1/upgrade.from": "safe",
        "1/single-bounce": "inconclusive",  # what is unsafe there takes three instances to see
        "2/single-bounce": "safe",
    }
    assert "3.9.2 and upgrade.from = 2.3" in document["plan"][0]
    assert "Kafka Streams 4" in document["plan"][-1]


def test_a_plan_for_streams_follows_the_release(rebalance):
    """Since 4.0 an application lists COOPERATIVE alone, and cannot stay EAGER for a round."""
    argv = ("upgrade", "--from", "streams", "--to", "streams", "--members", 1, "--partitions", 1)
    ran = rebalance(*argv)
    assert (ran.code, "upgrade.from = " in ran.out) == (0, False)
    assert "plan: single-bounce\n  1. restart the instances one by one with Kafka Streams 4" in ran.out
    assert "note     an application of 2.3 or older goes over 3.9" in ran.out
    assert "with Kafka Streams 3.9.2\n" in rebalance(*argv, "--release", "3.9").out


# -- of which coordinator and clients ----------------------------------------------------------------------

GOES = ("upgrade", "--from", "cooperative-sticky", "--to", "consumer", "--members", 1, "--partitions", 1)
NEWEST = ".".join(map(str, CURRENT))


@pytest.mark.covering
@pytest.mark.parametrize(
    ("given", "about", "other"),
    [
        ((), f"coordinator {NEWEST}, clients java {NEWEST}", "as specified: --broker as-specified --release"),
        (("--broker", "as-specified", "--release", "as-specified"), "as specified", f"--broker {NEWEST}"),
        (("--broker", "4.1.0"), f"coordinator 4.1.0, clients java {NEWEST}", "as specified: --broker"),
        (("--broker", "4.0", "--release", "java 4.2.0"), "coordinator 4.0.2, clients java 4.2.0", ""),
        (
            ("--broker", "as-specified"),
            f"coordinator as specified, clients java {NEWEST}",
            f"--broker {NEWEST}",
        ),
    ],
)
def test_the_first_lines_say_of_which_group(rebalance, given, about, other):
    ran = rebalance(*GOES, *given)
    first, second, *_ = ran.out.splitlines()
    assert first == f"from cooperative-sticky to consumer: {about}"
    assert other in second
    assert about in Path(".rebalance/latest/report.html").read_text()
    document = json.loads(rebalance(*GOES, *given, "--format", "json").out)
    assert document["about"] == about
    published = rebalance(*GOES, *given, "--report", "markdown,junit", "--report-dir", "out")
    assert published.code == 0
    for one in Path("out").iterdir():
        assert about in one.read_text(), one


@pytest.mark.nightly
def test_a_plan_is_about_what_is_released(rebalance):
    """As specified members may go over at any time, and as released two of them own a partition then."""
    argv = ("upgrade", "--from", "cooperative-sticky", "--to", "consumer", "--path", "online")
    ran = rebalance(*argv)
    assert ran.code == 1
    assert "online: group/owner, t-" in ran.out
    assert rebalance(*argv, "--broker", "as-specified", "--release", "as-specified").code == 0
    assert rebalance(*argv, "--broker", NEWEST).code == 1


def test_a_plan_names_the_bugs_that_come_with_any_path(rebalance):
    argv = ("upgrade", "--from", "range", "--to", "cooperative-sticky", "--path", "single-bounce")
    notes = json.loads(rebalance(*argv, "--release", "2.6.3", "--format", "json").out)["notes"]
    assert any("J2 of java 2.6.3" in note and "U12 of coordinator" in note for note in notes)
    specified = rebalance(*argv, "--broker", "as-specified", "--release", "as-specified", "--format", "json")
    assert not any("known bugs" in note for note in json.loads(specified.out)["notes"])
    eager = rebalance(
        "upgrade", "--from", "range", "--to", "roundrobin", "--path", "double-bounce", "--format", "json"
    )
    assert not any("known bugs" in note for note in json.loads(eager.out)["notes"])


def test_a_group_of_any_size_has_an_answer(rebalance):
    """What was searched, and what is proved of which protocol; nothing of a release that nobody proved."""
    argv = ("upgrade", "--from", "range", "--to", "consumer", "--path", "online-settled", "--members", 6)
    ran = rebalance(*argv)
    assert ran.code == 0
    assert "  searched 2 members, 2 partitions, in place of 6 members, 2 partitions" in ran.out
    words = " ".join(ran.out.split())
    assert "online-settled: proved as specified, not of any release: no partition has two owners" in words
    assert f"Of coordinator {NEWEST}, clients java {NEWEST} only the group that was searched" in words
    document = json.loads(rebalance(*argv, "--format", "json").out)
    assert (document["members"], document["searched"]["members"]) == (6, 2)
    specified = rebalance(*argv, "--broker", "as-specified", "--release", "as-specified").out
    assert "online-settled: proved as specified: no partition has two owners" in specified.replace("\n  ", "")
    many = rebalance(
        "upgrade", *SMALL[:4], "--path", "double-bounce", "--members", 500, "--partitions", 9_000
    )
    assert "in place of 500 members, 9,000 partitions" in many.out
    assert "--theorem upgrades" in many.out


def test_two_hops_are_one_plan(rebalance):
    argv = ("--from", "range", "--via", "cooperative-sticky", "--to", "consumer")
    ran = rebalance("upgrade", *argv, "--members", 1, "--partitions", 1)
    assert ran.code == 0
    assert ran.out.startswith("from range by way of cooperative-sticky to consumer: coordinator 4")
    plan = ran.out.partition("\nplan: 1/double-bounce, then 2/online")[2]
    assert [line[:5] for line in plan.splitlines()[1:6]] == [f"  {step}. " for step in range(1, 6)]
    assert "group.protocol = consumer" in plan
    refused = rebalance("upgrade", *argv, "--path", "1/single-bounce", "--members", 2)
    assert refused.code == 1
    assert "no plan: none of the paths from range to cooperative-sticky is safe" in refused.out
    small = ("--members", 1, "--path", "2/offline", "--format", "json")
    document = json.loads(rebalance("upgrade", *argv, *small).out)
    assert {path["path"] for path in document["paths"]} >= {"1/double-bounce", "2/offline"}
    assert "2/online" not in [path["path"] for path in document["paths"]]


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


def test_ctrl_c_ends_it_at_once_and_resume_goes_on(rebalance, monkeypatch, expected):
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
    expected(ran.err)
    paths[:] = [False, False, False]
    assert rebalance("upgrade", *SMALL, "--resume") == whole
    assert paths[3:] == [True, False, False], "the first path was searched before"
    assert list(Path(".rebalance/explore").iterdir()) == []


def test_every_stage_shows_itself(rebalance, monkeypatch):
    drawn = []
    monkeypatch.setattr("rebalance_verifier.cli.console.progress.quiet", lambda options: False)
    monkeypatch.setattr("rebalance_verifier.cli.console.progress.EVERY", 0.0001)
    monkeypatch.setattr("rebalance_verifier.cli.console.progress.draw", lambda line="": drawn.append(line))
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
        (("--from", "range", "--to", "sticky", "--broker", "4.9"), "--broker: Kafka 4.9 is not known"),
        (("--from", "range", "--to", "sticky", "--release", "3.9.8"), "--release: Kafka 3.9.8 is not known"),
        (("--from", "range", "--to", "consumer", "--broker", "3.9"), "since 4.0; write 4"),
        (("--from", "range", "--to", "consumer", "--release", "3.9"), "since 4.0; write 4"),
        (
            ("--from", "streams", "--to", "streams", "--release", "2.3"),
            "write --from streams-2.3 --to streams",
        ),
        (
            ("--from", "streams", "--to", "streams", "--release", "librdkafka"),
            "--release librdkafka: Kafka Streams runs on the Java client",
        ),
        (("--from", "range", "--via", "range", "--to", "sticky"), "are both range: nothing changes"),
        (("--from", "range", "--via", "streams", "--to", "sticky"), "--from streams --to streams"),
        (("--from", "range", "--via", "rage", "--to", "sticky"), "did you mean range"),
        (("--from", "rage,sticky", "--to", "sticky"), "'rage': did you mean range"),
        (("--from", "range,consumer", "--to", "sticky"), "upgrade from or to is called 'consumer'"),
        (("--from", "range,range", "--to", "sticky"), "range is in the list twice"),
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
