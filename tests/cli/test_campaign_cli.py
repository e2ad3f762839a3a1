"""``rebalance campaign``: what it plays, what it prints and leaves behind, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

BAD = '''
import os, time
from rebalance_verifier.model.assignors import reference
RANGE = reference("range")
class Bad:
    """Sleeps with five members, and ends its process with four."""
    name, protocols, promises = "bad", ("eager",), ()
    def assign(self, cluster, group):
        if len(group) == 5:
            time.sleep(1000)
        if len(group) == 4:
            os._exit(3)
        return RANGE.assign(cluster, group)
'''


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("range", "--out", "c"), "--scenarios N and --out DIR"),
        (("range", "--scenarios", 10), "--scenarios N and --out DIR"),
        (("nonsense", "--scenarios", 10, "--out", "c"), "no target is called 'nonsense'"),
        (("sticky", "--scenarios", 10, "--out", "c"), "say --as target or --as scenario"),
        (("range", "--as", "scenario", "--scenarios", 10, "--out", "c"), "no scenario is called 'range'"),
        (
            ("dynamic", "--release", "9.9", "--scenarios", 10, "--out", "c"),
            "Kafka 9.9 is not known",
        ),
        (("dynamic", "--members", 99, "--scenarios", 10, "--out", "c"), "99 members"),
        (("range", "--release", "java-2.4", "--scenarios", 10, "--out", "c"), "goes with a SCENARIO"),
        (("range", "--clause", "kip0", "--scenarios", 10, "--out", "c"), "--clause"),
        (("range", "--protocol", "cooperative", "--scenarios", 10, "--out", "c"), "does not support"),
        (("--played", "--out", "nowhere"), "there is no campaign in nowhere"),
        (
            ("range", "--scenarios", 10, "--out", "c", "--jobs", 2, "--master", "local[2]"),
            "goes without --master",
        ),
        (("range", "--scenarios", 0, "--out", "c"), "not a whole number from 1 on"),
    ],
)
def test_what_cannot_be_played_is_said_before_anything_starts(rebalance, argv, message):
    ran = rebalance("campaign", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert not Path("c/verdicts").exists()


def test_a_file_in_the_way_is_named(rebalance):
    Path("c").touch()
    ran = rebalance("campaign", "dynamic", "--scenarios", 10, "--out", "c")
    assert (ran.code, "c cannot be written to" in ran.err) == (2, True)


@pytest.mark.slow
def test_a_broken_assignor_is_found_made_small_and_replays(rebalance):
    argv = ("campaign", "cooperative-sticky+trust_all_claims", "--clause", "kip792", "--out", "c")
    ran = rebalance(*argv, "--scenarios", 120, "--slice", 80)
    assert ran.code == 1
    assert ran.out.startswith("VIOLATION: cooperative-sticky+trust_all_claims, 120 scenarios, seed 0, in c\n")
    assert "interrupted" not in ran.err
    saved = sorted(Path(".rebalance/failures").glob("*.json"))
    assert saved
    for path in saved:
        trace = json.loads(path.read_text())
        assert (trace["profile"], trace["confirmed"]) == ("campaign", True)
        assert rebalance("replay", path.stem).code == 1
        assert f"rebalance replay {path.stem}" in ran.out

    # The same again plays nothing and says the same; so does --report, which makes no traces.
    again = rebalance(*argv, "--scenarios", 120)
    assert again.out == ran.out
    shown = json.loads(rebalance("campaign", "--played", "--out", "c", "--format", "json").out)
    assert (shown["played"], shown["verdict"], shown["exit"]) == (120, "violation", 1)
    assert {row["scenarios"] for row in shown["verdicts"]} <= set(range(121))
    assert sum(row["scenarios"] for row in shown["verdicts"]) == 120
    assert {row["clause"] for row in shown["clauses"]} == {
        f"{t['clause']}-{t['protocol']}" for t in (json.loads(p.read_text()) for p in saved)
    }

    # Something else does not go into the same directory.
    other = rebalance(*argv, "--scenarios", 120, "--seed", 5)
    assert (other.code, "its seed is 0, not 5" in other.err) == (2, True)


@pytest.mark.nightly
def test_releases_are_walked_compared_and_their_bugs_saved_as_runs(rebalance, monkeypatch):
    monkeypatch.setattr("rebalance_verifier.pipeline.campaign.walks.STATES", 200)  # short enough
    argv = "campaign dynamic --members 2 --partitions 2 --depth 60 --out c --trace-dir t --release 2.4"
    argv += " --release as-specified --scenarios 80 --slice 40 --format json"
    ran = rebalance(*argv.split())
    assert ran.code == 1
    document = json.loads(ran.out)
    about = "coordinator as specified, clients java 2.4.1 and as specified"
    assert document["about"] == about
    shown = rebalance("campaign", "--played", "--out", "c").out.splitlines()
    assert shown[0].startswith(f"VIOLATION: dynamic ({about}), 80 scenarios")
    assert "as released: --broker 4" in shown[1]
    kinds = {row["kind"]: row for row in document["kinds"]}
    assert set(kinds) == {"java-2.4.1", "as-specified"}
    assert kinds["java-2.4.1"]["violations"] > 0
    assert kinds["as-specified"]["violations"] == 0
    assert sum(row["scenarios"] for row in kinds.values()) == 80
    assert any(row["situation"] == "step: join" for row in document["coverage"])
    assert {row["trace"] for row in document["clauses"]} == {str(path) for path in Path("t").glob("*.json")}
    for row in document["clauses"]:
        assert json.loads(Path(row["trace"]).read_text())["origin"]["seed"] == row["seed"]
        assert rebalance("replay", row["trace"]).code == 1
        assert rebalance("show", row["trace"]).code == 0


@pytest.mark.nightly  # by day test_campaign.py has the quarantine
def test_what_hangs_and_dies_is_quarantined_and_the_campaign_inconclusive(rebalance):
    Path("worst.py").write_text(BAD)
    ran = rebalance(
        "campaign", "worst:Bad", "--scenarios", 12, "--each-limit", 1, "--out", "c", "--format", "json"
    )
    assert ran.code == 3
    document = json.loads(ran.out)
    assert {row["verdict"] for row in document["quarantine"]} == {"hung", "died"}
    traces = [json.loads(path.read_text()) for path in Path(".rebalance/failures").glob("*.json")]
    assert {trace["clause"] for trace in traces} == {"assign/4"}  # in a process of its own it does not answer
    assert sum(row["scenarios"] for row in document["verdicts"]) == document["played"] == 12
    text = rebalance("campaign", "--played", "--out", "c").out
    assert text.startswith("INCONCLUSIVE: worst:Bad, 12 scenarios")
    assert "its process ended with status 3" in text
    assert "no result within 1 s" in text


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_complete_and_says_how_to_go_on(rebalance, monkeypatch):
    from rebalance_verifier.pipeline.campaign import campaign

    argv = ("campaign", "range", "--scenarios", 40, "--slice", 20, "--out", "c")
    tasks = campaign.tasks

    def interrupted(one):
        if one.number == 1:
            raise KeyboardInterrupt
        return tasks(one)

    monkeypatch.setattr(campaign, "tasks", interrupted)
    ran = rebalance(*argv)
    assert (ran.code, ran.out) == (130, "")
    assert "interrupted: 20 of 40 scenarios are kept in c; the same command goes on from there" in ran.err
    part = rebalance("campaign", "--played", "--out", "c")
    assert part.code == 3
    assert part.out.startswith("INCONCLUSIVE: range, 20 of 40 scenarios")
    monkeypatch.setattr(campaign, "tasks", tasks)
    assert rebalance(*argv).code == 0


@pytest.mark.nightly
def test_a_program_is_played_through_its_session(rebalance):
    import sys

    program = ("--", sys.executable, "-m", "rebalance_verifier.gate.targets.hosts.host", "range")
    ran = rebalance("campaign", "--scenarios", 20, "--out", "c", *program)
    assert ran.code == 0
    twin = rebalance("campaign", "range", "--scenarios", 20, "--out", "d")
    drawn = [text[text.index("  dimension") :].splitlines()[:24] for text in (ran.out, twin.out)]
    assert drawn[0] == drawn[1]
    shutil.rmtree("c")
