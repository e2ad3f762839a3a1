"""``rebalance explore``, ``replay`` and ``show`` of runs: verdicts, options, files, errors of use."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.cli.commands import explore as explore_cli
from rebalance_verifier.cli.shared.values import amount
from rebalance_verifier.explore.groups import exploration
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.model.bugs.releases import CURRENT
from rebalance_verifier.properties.group.clauses import CLAUSES

from rebalance_verifier import CannotJudge, explore
from tests.command import command
from tests.processes import worked

SMALL = ("explore", "dynamic", "--members", 2, "--partitions", 1)
"""A group that is as specified, within a second."""
TINY = ("explore", "dynamic", "--members", 1, "--partitions", 1, "--faults", "crash")
BROKEN = ("explore", "dynamic", "--members", 2, "--partitions", 2, "--faults", "none")
"""With a switch, the quickest way to a violation."""
NO_WITHHOLD = (*BROKEN, "--switch", "no_withhold")
STOPS = (*BROKEN[:4], "--partitions", 1, "--faults", "none", "--switch", "leave_on_empty_assignment")


def counts(text: str) -> dict[str, Any]:
    """A report without what depends on the machine, or on how often the search was interrupted."""
    document: dict[str, Any] = json.loads(text)
    document.pop("speed")
    document["states"].pop("collision")
    return document


def test_a_group_as_specified_is_conformant(rebalance):
    ran = rebalance(*SMALL)
    assert ran.code == 0, ran.out
    assert ran.out.startswith("CONFORMANT  dynamic (as specified) satisfies ")
    for line in ("complete; hash-collision probability < ", "every fair run settles", "further rebalances"):
        assert line in ran.out
    assert "missed" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 110
    assert not Path(".rebalance/failures").exists()
    assert not list(Path(".rebalance/explore").glob("*"))


OWN = """
def one_each(group):
    '''No member owns more than one partition.'''
    return all(len(member.owns) <= 1 for member in group.members.values())
"""


def test_a_group_and_a_rule_of_ones_own(rebalance):
    Path("own_rule.py").write_text(OWN)
    Path("pair.toml").write_text("members = 2\npartitions = 2\nbudget = 0\n")
    ran = rebalance("explore", "--scenario", "pair.toml", "--invariant", "own_rule:one_each")
    assert ran.code == 1
    assert ran.out.startswith("VIOLATION  pair (as specified) breaks own/own_rule:one_each")
    (saved,) = Path(".rebalance/failures").glob("*.json")
    line = f"failing  {saved.stem}  own/own_rule:one_each  pair: No member owns more than one partition.\n"
    assert rebalance("replay") == (1, line, "")
    assert "own_rule:one_each" in rebalance("show", saved.stem).out
    elsewhere = saved.rename("elsewhere.json")
    assert rebalance("replay", elsewhere).code == 1  # signed by the run above, in this directory
    Path(".rebalance/signed").unlink()
    refused = rebalance("replay", elsewhere)
    assert refused.code == 2
    assert "names 'own_rule:one_each', which no run of yours has signed here" in refused.out + refused.err


def test_a_rule_that_is_broken_before_anything_happens_is_replayed(rebalance):
    """The run has no step, and was called fixed."""
    Path("own_up.py").write_text("def up(group):\n    return 'A is ' + group.members['A'].life\n")
    ran = rebalance("explore", "dynamic", "--members", 1, "--partitions", 1, "--invariant", "own_up:up")
    assert ran.code == 1
    assert "VIOLATION own/own_up:up  A is down" in ran.out
    (saved,) = Path(".rebalance/failures").glob("*.json")
    assert rebalance("replay") == (1, f"failing  {saved.stem}  own/own_up:up  dynamic: A is down\n", "")
    assert "A is down" in rebalance("show", saved.stem).out


def test_a_situation_is_shown_by_a_run(rebalance):
    ran = rebalance(*BROKEN, "--witness", "follow-up rebalance")
    assert ran.code == 0
    assert "WITNESS follow-up rebalance  the run shows it" in ran.out
    (saved,) = Path(".rebalance/failures").glob("*.json")
    shown = f"shown    {saved.stem}  follow-up rebalance  dynamic: the run shows it\n"
    assert rebalance("replay") == (0, shown, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("dynamic", "--scenario", "x.toml"), "SCENARIO dynamic and --scenario x.toml: one of them"),
        (("--scenario", "x.toml"), "--scenario: "),
        (("dynamic", "--witness", "follow-up"), "did you mean follow-up rebalance?"),
        (("dynamic", "--invariant", "no_such:rule"), "No module named 'no_such'"),
        (("dynamic", "--invariant", "a:b", "--on", "code:newest"), "asks the model"),
    ],
)
def test_wrong_uses_of_ones_own(rebalance, options, message):
    ran = rebalance("explore", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert len(ran.err.splitlines()) <= 2


def saved_of(clause):
    """The one file of a broken clause among those that were saved."""
    saved = [
        p for p in Path(".rebalance/failures").glob("*.json") if json.loads(p.read_text())["clause"] == clause
    ]
    (one,) = saved
    return one


def test_a_violation_is_told_saved_and_replayed(rebalance):
    ran = rebalance(*NO_WITHHOLD)
    assert ran.code == 1
    assert "VIOLATION leader/withhold  t-1 goes to B while A holds it" in ran.out
    assert "A: onPartitionsAssigned(t-0 t-1)" in ran.out
    assert "14 steps; no run is shorter" in ran.out
    saved = saved_of("leader/withhold")
    assert saved.stem in ran.out
    line = f"failing  {saved.stem}  leader/withhold  dynamic: t-1 goes to B while A holds it\n"
    assert rebalance("replay", saved) == (1, line, "")
    assert f"failing  {saved_of('group/owner').stem}  group/owner  " in rebalance("replay").out
    assert "leads generation 2" in rebalance("replay", saved.stem[:4], "-v").out
    shown = rebalance("show", saved)
    assert shown.code == 0
    assert "switches=no_withhold" in shown.out
    cost = rebalance("show", saved, "--metrics").out
    assert "  rebalance-total                  1       0       1\n" in cost
    assert "steps in 2 rebalances" in cost
    assert "    14  A leads generation 2 and decides A: t-0; B: t-1" in shown.out


def test_an_edited_run_is_fixed_or_cannot_happen(rebalance):
    rebalance(*NO_WITHHOLD)
    saved = saved_of("leader/withhold")
    written = json.loads(saved.read_text())
    saved.write_text(json.dumps(written | {"events": written["events"][:5]}))
    assert rebalance("replay", saved)[:2][0] == 0
    saved.write_text(json.dumps(written | {"events": written["events"][1:]}))
    ran = rebalance("replay", saved)
    assert ran.code == 2
    assert "step 1, 'A join', cannot happen; possible are: A start" in ran.out
    assert rebalance("show", saved).code == 2
    for member in written["setup"]["members"]:
        member["stages"][0]["switches"] = []
    saved.write_text(json.dumps(written))
    ran = rebalance("replay", saved)  # without the switch this decision is not made
    assert ran.code == 2
    assert "decides" not in ran.out


def test_a_run_that_never_settles_has_its_loop_marked(rebalance):
    ran = rebalance(*STOPS)
    assert ran.code == 1
    assert "VIOLATION group/converges" in ran.out
    assert "---- nothing else ever happens ----" in ran.out
    assert "no: see group/converges" in ran.out
    assert rebalance("replay").out.startswith("failing ")


@pytest.mark.slow
def test_go_on_finds_every_clause_and_all_shortest_every_trace(rebalance):
    ran = rebalance(*NO_WITHHOLD, "--go-on", "--all-shortest", 3, "--format", "json")
    document = json.loads(ran.out)
    assert [v["clause"] for v in document["violations"]] == ["group/owner", "leader/withhold", "group/commit"]
    assert all(len(v["traces"]) == 3 for v in document["violations"])
    assert len(list(Path(".rebalance/failures").glob("*.json"))) == 9
    assert document["verdict"] == "violation"
    assert document["liveness"] == {"settles": True, "rebalances": [3]}


def test_both_engines_and_exact_say_the_same(rebalance):
    ways = [(), ("--engine", "plain"), ("--exact",)]
    documents = [counts(rebalance(*TINY, *options, "--format", "json").out) for options in ways]
    for one in documents:
        one.pop("engine")
    assert documents[0] == documents[1] == documents[2]
    assert documents[0]["verdict"] == "conformant"


@pytest.mark.parametrize(
    ("asked", "called"), [(("--symmetry",), {"symmetry": True}), (("--naming", "every"), {"naming": "every"})]
)
def test_processes_of_streams_have_an_order_that_no_renaming_keeps(
    rebalance: Any, asked: tuple[str, ...], called: Any
):
    """Both were silently left out: the search was one under given names, and said so in its header alone."""
    ran = rebalance("explore", "streams", *asked, "--depth", "1")
    assert ran.code == 2
    assert f"{' '.join(asked)} does not go with streams: the processes" in ran.err
    with pytest.raises(CannotJudge, match="keep their order"):
        explore("streams", depth=1, **called)


@pytest.mark.nightly
def test_symmetry_gives_the_verdict_without_liveness(rebalance):
    ran = rebalance(*SMALL, "--symmetry", "--format", "json")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert document["states"]["stands_for"] > 1.5 * document["states"]["distinct"]
    assert "liveness" not in document
    assert "not asked: symmetry" in rebalance(*TINY, "--symmetry").out


@pytest.mark.parametrize("bound", [("--depth", 3), ("--states", 20)])
def test_a_bound_makes_it_inconclusive_and_resume_goes_on(rebalance, bound):
    whole = counts(rebalance(*TINY, "--format", "json").out)
    ran = rebalance(*TINY, *bound)
    assert ran.code == 3
    assert ran.out.startswith("INCONCLUSIVE  dynamic (as specified) is not judged: the search ended after")
    assert "--resume" in ran.out
    resumed = rebalance(*TINY, "--resume", "--format", "json")
    assert resumed.err == ""
    assert counts(resumed.out) == whole
    assert "nothing to resume" in rebalance(*TINY, "--resume").err


NEWEST = ".".join(map(str, CURRENT))


@pytest.mark.parametrize(
    ("given", "about", "other"),
    [
        ((), "as specified", f"as released: --broker {NEWEST} --release {NEWEST}"),
        (
            ("--broker", NEWEST, "--release", "java 3.9"),
            f"coordinator {NEWEST}, clients java 3.9.2",
            "as specified: --broker as-specified --release as-specified",
        ),
        (
            ("--release", "2.8.0,aiokafka"),
            "coordinator as specified, clients java 2.8.0 and aiokafka 0.14.0",
            f"as released: --broker {NEWEST}",
        ),
        (("--switch", "join_rip_fatal"), "as specified, with join_rip_fatal", "as released: --broker"),
    ],
)
def test_the_first_lines_say_of_which_group(rebalance, given, about, other):
    argv = ("explore", "dynamic", "--members", 1, "--partitions", 1, "--faults", "none", *given)
    reports = ("--report", "json,markdown,html,junit", "--report-dir", "out")
    ran = rebalance(*argv, *reports)
    assert f"  dynamic ({about}) " in ran.out.splitlines()[0]
    assert f"\n  other    {other}" in ran.out
    assert json.loads(Path("out/report.json").read_text())["about"] == about
    for one in Path("out").glob("report.*"):
        assert about in one.read_text().replace("\\", ""), one


@pytest.mark.parametrize("scenario", ["consumer", "migration"])
@pytest.mark.parametrize("given", [("--broker", "3.9"), ("--release", "3.9.1"), ("--release", "aiokafka")])
def test_a_preview_of_the_consumer_protocol_is_refused(rebalance, scenario, given):
    """The catalogue says nothing of it: it would be faultless."""
    ran = rebalance("explore", scenario, *given)
    assert (ran.code, ran.out) == (2, "")
    assert f"{given[0]}: " in ran.err
    assert "Kafka does since 4.0; write 4" in ran.err


def test_amounts_of_memory():
    assert [amount(text) for text in ("1000", "2k", "1.5M", "4GiB")] == [1000, 2048, 3 << 19, 4 << 30]


def test_a_witness_that_is_due_and_missing_is_inconclusive(rebalance, monkeypatch):
    monkeypatch.setattr(exploration, "due", lambda setup: ("stale claim seen by a leader",))
    ran = rebalance(*TINY)
    assert ran.code == 3
    assert "never shown: stale claim seen by a leader" in ran.out


def test_releases_and_brokers_matter(rebalance):
    argv = ("explore", "failover", "--members", 1, "--partitions", 1, "--faults", "failover")
    assert rebalance(*argv).code == 0
    ran = rebalance(*argv, "--broker", "broker-current", "--release", "java-current")
    assert ran.code == 1
    assert "COORDINATOR_LOAD_IN_PROGRESS" in ran.out


@pytest.mark.slow
def test_an_assignor_of_ones_own(rebalance, tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    protocols = ('cooperative', 'eager')\n"
        "    def assign(self, cluster, group):\n"
        "        members = sorted(group)\n"
        "        shares = {m: [] for m in members}\n"
        "        every = [(t, i) for t in sorted(cluster.topics) for i in range(len(cluster.topics[t]))]\n"
        "        for n, p in enumerate(every):\n"
        "            shares[members[n % len(members)]].append(p)\n"
        "        return shares\n"
    )
    ran = rebalance(*BROKEN, "--target", "mine:Mine")
    assert ran.code == 1
    assert "VIOLATION leader/withhold" in ran.out
    assert rebalance("replay").code == 1
    assert rebalance(*BROKEN, "--target", "cooperative-sticky").code == 0
    assert rebalance(*BROKEN, "--target", "cooperative-sticky+no_withhold").code == 1
    assert rebalance(*BROKEN, "--target", "cooperative-sticky+no_withhold", "--naming", "every").code == 1
    eager = ("explore", "eager", "--members", 2, "--partitions", 2, "--faults", "none")
    assert rebalance(*eager, "--target", "sticky").code == 0


@pytest.mark.nightly
def test_walks_find_it_too_and_make_it_short(rebalance):
    for options in (("--swarm", "--walks", 200, "--seed", 3), ("--dfs", "--depth", 25)):
        ran = rebalance(*NO_WITHHOLD, *options)
        assert ran.code == 1, ran.out
        assert "14 steps; no run is shorter" in ran.out
    ran = rebalance(*TINY, "--swarm", "--walks", 3)
    assert ran.code == 3
    assert "are no proof" in ran.out


@pytest.mark.slow
def test_exports(rebalance):
    assert rebalance(*STOPS, "--out", "runs").code == 1
    assert not Path(".rebalance/failures").exists()
    first, *_ = sorted(Path("runs").glob("*.json"))
    itf = json.loads(rebalance("show", first, "--format", "itf").out)
    assert itf["loop"] == len(itf["states"]) - 1


def test_the_list_names_every_scenario(rebalance):
    ran = rebalance("list", "scenarios")
    assert ran.code == 0
    assert all(name in ran.out for name in SCENARIOS)
    listed = json.loads(rebalance("list", "scenarios", "--format", "json").out)["scenarios"]
    assert [one["scenario"] for one in listed] == list(SCENARIOS)


def test_every_clause_is_listed(rebalance):
    ran = rebalance("list", "clauses", "--of", "group")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 110
    document = json.loads(rebalance("list", "clauses", "--of", "group", "--format", "json").out)
    assert [row["clause"] for row in document] == list(CLAUSES)
    assert all(f"\n{name} " in f"\n{ran.out}" for name in CLAUSES)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "which SCENARIO?"),
        (("nothing",), "no scenario is called 'nothing': `rebalance list scenarios`"),
        (("dynamic", "--members", 0), "'0' is not a whole number from 1 on"),
        (("dynamic", "--members", 99), "1 to 12 and 1 to 40 are possible"),
        (("topics", "--partitions", 1), "has 2 topics"),
        (("dynamic", "--release", "java-9"), "no release of a client is called 'java-9': did you mean java-"),
        (("dynamic", "--release", ","), "names no release"),
        (("dynamic", "--broker", "x"), "no release of a broker is called 'x'"),
        (("dynamic", "--faults", "fire"), "no fault is called 'fire': `rebalance list faults` has them"),
        (("dynamic", "--max-faults", "-1"), "not a whole number"),
        (("dynamic", "--switch", "nonsense"), "no switch is called 'nonsense'"),
        (
            ("dynamic", "--target", "range"),
            "range is eager; dynamic has cooperative-sticky only",
        ),
        (("dynamic", "--target", "nobody"), "no target is called 'nobody'"),
        (("dynamic", "--target", "a_module_of_nobody:x"), "no module and no adapter"),
        (
            ("dynamic", "--target", "cooperative-sticky", "--switch", "no_withhold"),
            "write --target NAME+",
        ),
        (("dynamic", "--engine", "plain", "--symmetry"), "--symmetry does not go with --engine plain"),
        (("dynamic", "--target", "cooperative-sticky", "--symmetry"), "needs --naming every"),
        (("dynamic", "--swarm", "--exact"), "--exact does not go with --swarm"),
        (("dynamic", "--swarm", "--dfs"), "not allowed with"),
        (("dynamic", "--memory", "much"), "not an amount of memory"),
        (("dynamic", "--", "java"), "goes with check, campaign and init only"),
    ],
)
def test_wrong_use_is_one_message(rebalance, argv, message):
    ran = rebalance("explore", *argv)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


def test_show_and_replay_of_something_else(rebalance, tmp_path):
    assert "neither a file" in rebalance("show", "nothing").err
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert "other.json: not a trace" in rebalance("show", other).err
    other.write_text('{"kind": "group run", "schema": 9}')
    assert "newer suite" in rebalance("show", other).err
    assert rebalance("replay", other)[0] == 0
    other.write_text('{"kind": "group run", "schema": 1}')
    assert "error    " in rebalance("replay", other).out
    assert rebalance("replay", other, "--target", "range").code == 2


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_gives_the_same_counts(rebalance, monkeypatch):
    argv = (*SMALL, "--format", "json")
    whole = counts(rebalance(*argv).out)

    def interrupt(progress):
        if progress.depth == 9:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(explore_cli, "speed", lambda show: interrupt)
        ran = rebalance(*argv)
    assert ran.code == 130
    assert "interrupted; saved to .rebalance/explore/" in ran.err
    assert json.loads(ran.out)["stop"] == "interrupted"
    resumed = rebalance(*argv, "--resume")
    assert resumed.code == 0
    assert counts(resumed.out) == whole


@pytest.mark.nightly
def test_ctrl_c_of_a_process(tmp_path):
    argv = ["explore", "eager", "--members", "3", "--partitions", "2", "--no-liveness", "--format", "json"]
    argv = command(*argv)
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    worked(process.pid, 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130), err  # a fast machine may have finished
    assert ("interrupted" in err) is (process.returncode == 130)
    resumed = subprocess.run(
        [*argv, "--resume"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    whole = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert counts(resumed.stdout) == counts(whole.stdout)
    assert counts(out)["states"]["distinct"] <= counts(whole.stdout)["states"]["distinct"]


@pytest.mark.slow
def test_an_assignor_that_goes_by_names_settles_under_names_that_stay(rebalance, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    argv = (*BROKEN, "--target", "my_assignor:CooperativeRoundRobin")
    assert rebalance(*argv).code == 0
    ran = rebalance(*argv, "--naming", "every")
    assert ran.code == 1
    assert ran.out.startswith("VIOLATION  dynamic (as specified) breaks group/converges\n")
    assert "---- from here again and again ----" in ran.out
    assert "---- back to where step 19 led ----" in ran.out
    assert rebalance("replay").code == 1


@pytest.mark.parametrize(
    "command", [("explore", "dynamic"), ("upgrade", "--from", "range", "--to", "sticky")]
)
def test_a_checkpoint_that_is_none_is_refused_in_one_line(rebalance, here, command):
    """It may have come with a clone, and it runs nothing."""
    small = (*command, "--members", 1, "--partitions", 1, "--states", 5, "--no-progress")
    assert rebalance(*small).code in (0, 1, 3)
    checkpoints = list((here / ".rebalance" / "explore").iterdir())
    assert checkpoints
    for path in checkpoints:
        path.write_bytes(b"cos\nmkdir\n(S'ran'\ntR.")
    ran = rebalance(*small, "--resume")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "is no checkpoint: begin anew (it:1:1: not JSON: Expecting value)" in ran.err
    assert not (here / "ran").exists()
