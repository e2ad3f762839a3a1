"""A stranger's checklist: sixty wrong uses, each answered in a line or two that say what to write instead."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from rebalance_verifier.base.tables import table
from rebalance_verifier.cli.commands.compare import columns
from rebalance_verifier.cli.commands.prove import theorems
from rebalance_verifier.cli.completion import SCRIPTS
from rebalance_verifier.cli.main import build_parser
from rebalance_verifier.cli.parser import Parser
from rebalance_verifier.cli.shared.releases import faults
from rebalance_verifier.cli.shared.targets import clauses
from rebalance_verifier.model.protocols import FAULTS
from rebalance_verifier.properties.assignors.clauses import CLAUSES

from tests.command import command

ROOT = Path(__file__).parents[2]

FAIR = """
class Fair:
    def assign(self, cluster, group):
        return {member: [] for member in group}
"""

WRONG = [line.split("  ->  ") for line in r"""
chek  ->  did you mean check?
exlpore dynamic  ->  did you mean explore?
verify  ->  no command is called 'verify'
  ->  which command? `rebalance check TARGET` is a start
--profile smoke check  ->  --profile goes behind a command
--foo  ->  --foo goes behind a command
--completion tcsh  ->  there are bash, zsh, fish
check  ->  which TARGET?
check --profile smoke  ->  or `-- COMMAND ...`
check --adapter  ->  which TARGET?
check --in-group  ->  which TARGET?
campaign --scenarios 1 --out x  ->  which TARGET?
check --  ->  it takes a command, such as `-- java -jar adapter.jar`
check --profil smoke  ->  did you mean --profile
check --profile smok  ->  did you mean smoke?
check --profile  ->  --profile: expected one argument
check --level saftey  ->  did you mean safety?
check --protocol coop  ->  did you mean cooperative?
check range --seed 1 --seed 2  ->  --seed: given twice, say it once
check range --seed=1 --seed=1  ->  --seed: given twice
check range --report text --report json  ->  several names go behind it, with commas
check range --fail-fast --fail-fast  ->  --fail-fast: given twice
check range --lags  ->  --lags and --promise go with java:CLASS and streams:RELEASE, not 'range'
check java:a.B --lags --sandbox  ->  it does not go with --sandbox, which denies it the network
check java:a.B --lags --in-group  ->  it does not go with --in-group, where there is none
explore dynamic --symmetry --no-symmetry  ->  --symmetry and --no-symmetry: given twice
audit a.log ""  ->  a path is empty: write . for the current directory
audit logs --zone UTC --zone UTC  ->  --zone: given twice
explore dynamic --faults crash --faults pause  ->  with commas
explore dynamic --faults none,crash  ->  none stands alone
explore dynamic --faults ,  ->  --faults names no fault
check --seed abc  ->  'abc' is not a whole number from 0 on
check --seed=-1  ->  '-1' is not a whole number from 0 on
check --time-limit soon  ->  such as 90, 90s, 5m or 2h
check --jobs 0  ->  'is not a whole number from 1 on
check --clause kip42  ->  did you mean kip429
check --clause leader/4  ->  did you mean kip429/leader/4
check --report htm  ->  did you mean html?
check --format=text  ->  check has no option --format
check --faults crash  ->  check has no option --faults: it belongs to explore
check --validate  ->  --validate goes with --adapter
check range --known-failing fair.py  ->  fair.py is a file: write --known-failing @fair.py
check range --known-flaky fair.py  ->  fair.py is a file: write --known-flaky @fair.py
check range --known-failing nowhere.txt  ->  no clause is called 'nowhere.txt'
check range --known-failing kip429/leader/44  ->  did you mean kip429/leader/4
check range --known-failing assign/99-eager  ->  a list in a file is @FILE
check range --known-flaky kip42/**  ->  no clause is called 'kip42/**'
audit fair.py --known fair.py  ->  fair.py is a file: write --known @fair.py
compare --client fair.py  ->  fair.py is a file of clients, which is a TARGET: @fair.py
compare --client @fair.py  ->  which is a TARGET: @fair.py
check --known-failing @nowhere.txt  ->  nowhere.txt
check --write-known no/such/dir.txt  ->  --write-known: no directory
check range roundrobin  ->  'roundrobin' is too much: check takes [TARGET] only
check rang  ->  did you mean range?
check com.acme.MyAssignor  ->  java:com.acme.MyAssignor, with --classpath my.jar
check java:com.acme.MyAssignor  ->  add --maven
check range --maven org.apache.kafka:kafka-clients:4.1.0  ->  go with java:CLASS
check fair  ->  did you mean fair:Fair?
check fair.py  ->  did you mean fair:Fair?
check fair.py:Fair  ->  write fair:Fair
check fair:Fare  ->  did you mean Fair?
check fairr:Fair  ->  no module and no adapter is called 'fairr'
check fair:  ->  is no target
check range+rack_breaks  ->  did you mean rack_breaks_copartition?
check sticky+rack_breaks_copartition  ->  does not fit sticky; these do
check kafka-python:stiky  ->  did you mean sticky?
check kafka-pyton:sticky  ->  did you mean kafka-python
check client:kafka-pythn:sticky  ->  did you mean kafka-python?
check client:sarama:stiky  ->  did you mean sticky?
check -- ./no-such-adapter  ->  a relative path needs a ./
check range -- cat  ->  give either a TARGET or `-- COMMAND ...`
check wire -- ./consumer  ->  does not say where the address of the broker goes
explore  ->  which SCENARIO?
explore statik  ->  did you mean static
explore static --faults pausee  ->  did you mean pause?
explore static --release jawa-2.4  ->  did you mean java-2.4
explore static --broker borker-curent  ->  did you mean broker-current
explore static --broker 4.9  ->  --broker: Kafka 4.9 is not known, 2.4.0 to
explore static --release java-3.9.7  ->  are: write 3.9.2
explore static --switch overtaken_join_beleived  ->  did you mean overtaken_join_believed?
explore static --members 0  ->  'is not a whole number from 1 on
explore static --members 99  ->  1 to 12
explore static --memory lots  ->  such as 500M or 4G
explore static --dfs --swarm  ->  not allowed with argument --dfs
explore static --engine quick  ->  there are fast, plain, spark
upgrade --from range  ->  the following arguments are required: --to
upgrade --from range --to coperative-sticky  ->  did you mean cooperative-sticky?
upgrade --from range --to sticky --path bounce  ->  no path from range to sticky is called 'bounce'
prove --theorem fencing  ->  did you mean
prove --without held_bakc  ->  did you mean held_back?
prove --group-protocol consumer --without held_back  ->  called 'held_back': there are exclusive, complete
prove --group-protocol migration --without exclusive  ->  --without is not for groups between the protocols
prove --group-protocol consumer --release java-4.1  ->  prove --release is not for consumer groups
bugs J99  ->  did you mean J9
bugs J1 --release java-2.4  ->  --release goes with --matrix
bugs coordinator_keep  ->  no bug or switch is called
record --scenario scale_out  ->  did you mean scale-out?
record --clients confluant:3  ->  did you mean confluent?
record --assignor stiky  ->  did you mean sticky
replay 8afa6ca3  ->  neither a file, a directory, nor the id of a trace
show  ->  the following arguments are required: ID|FILE|DIR
audit  ->  which logs? `rebalance audit PATH...`
audit nowhere.log --check owned-twise  ->  did you mean owned-twice?
campaign range  ->  needs --scenarios N and --out DIR
conform --code newest --scenario dynamik  ->  did you mean dynamic?
list clausess  ->  did you mean clauses?
list  ->  the following arguments are required: WHAT
list clauses kip999  ->  no clause is called 'kip999'
list schemas trase  ->  did you mean trace?
smoke range  ->  no command is called 'smoke'
""".splitlines()[1:]]  # fmt: skip


def test_there_are_sixty() -> None:
    assert len(WRONG) >= 60
    assert len({typed for typed, _ in WRONG}) == len(WRONG)


@pytest.mark.parametrize(("typed", "correction"), WRONG, ids=[typed for typed, _ in WRONG])
def test_a_wrong_use_is_answered_with_what_to_write(rebalance, typed: str, correction: str) -> None:
    Path("fair.py").write_text(FAIR)
    ran = rebalance(*shlex.split(typed))
    assert (ran.code, ran.out) == (2, "")
    assert correction.strip("'") in ran.err
    assert len(ran.err.splitlines()) <= 2, "two lines at most"
    assert "Traceback" not in ran.err
    assert "bug of the suite" not in ran.err


CONTENTS = {
    "wrong.toml": b"[]",
    "nul.toml": bytes(1000),
    "deep.toml": b"a = " + b"[" * 9999,
    "none.toml": b"topics = 0",
    "endless.toml": b"spare = 1000000000",
    "nul.txt": bytes(1000),
    "big.txt": bytes(10_000_000),
    "garbage.txt": bytes(range(128, 256)),
    "list.txt": b"no list of what is known\n" * 10_000,
    "ends.py": b"raise SystemExit(0)\n",
    "rule.py": b"def ends(group):\n    raise SystemExit(0)\n",
    "nul_rule.py": bytes(1000),
}
GARBAGE = [line.split("  ->  ") for line in r"""
explore --scenario wrong.toml  ->  wrong.toml:
explore --scenario nul.toml  ->  nul.toml: Invalid statement
explore --scenario deep.toml  ->  deep.toml: not TOML that can be read: nested too deeply
explore --scenario none.toml  ->  0 topics
explore --scenario endless.toml  ->  1000000000 spare partitions
explore --scenario directory.toml  ->  directory.toml: is no file but a directory
explore missing.toml  ->  --scenario: missing.toml: No such file
explore --scenario mine.json  ->  write your group to mine.toml
explore dynamic --witness follow-up-rebalances  ->  did you mean follow-up rebalance?
explore dynamic --invarant a:b  ->  did you mean --invariant?
explore --scenaro dynamic  ->  did you mean --scenario?
explore dynamic --witnes all  ->  did you mean --witness?
explore dynamic --invariant ends:rule  ->  'ends:rule': SystemExit: 0
explore dynamic --invariant rule:ends  ->  'rule:ends' fails: SystemExit: 0
explore dynamic --invariant nul_rule:ends  ->  null bytes
explore dynamic --invariant directory:ends  ->  No module named 'directory'
explore dynamic --witness nothing  ->  no situation is called 'nothing'
audit x --known @nul.txt  ->  nul.txt:1:
audit x --known @big.txt  ->  is too long for a pattern
audit x --known @garbage.txt  ->  is not UTF-8
audit x --known @directory.toml  ->  directory.toml: is no file but a directory
audit x --known @missing  ->  no file 'missing'
audit x --known ""  ->  is no id of a finding
prove --group-protocol nothing  ->  called 'nothing': there are classic, consumer, migration
upgrade --from consumer --to consumer  ->  nothing changes
upgrade --from streams --to consumer  ->  keeps its own assignor
conform --code 3.4.1 --scenario consumer  ->  has no such groups
conform --code "" --scenario consumer  ->  write code:RELEASE
conform --code newest --scenario nul.toml  ->  no scenario is called 'nul.toml'
""".splitlines()[1:]]  # fmt: skip


@pytest.fixture
def garbage(here: Path) -> None:
    (here / "directory.toml").mkdir()
    for name, content in CONTENTS.items():
        (here / name).write_bytes(content)


@pytest.mark.usefixtures("garbage")
@pytest.mark.parametrize(("typed", "complaint"), GARBAGE, ids=[typed for typed, _ in GARBAGE])
def test_garbage_is_refused_in_a_line(rebalance, typed: str, complaint: str) -> None:
    ran = rebalance(*shlex.split(typed))
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err
    assert len(ran.err.splitlines()) <= 2
    assert "Traceback" not in ran.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
@pytest.mark.parametrize("typed", ["explore --scenario pipe.toml", "record --again pipe.toml"])
def test_who_waits_for_a_writer_would_wait_for_ever(rebalance, typed: str) -> None:
    os.mkfifo("pipe.toml")
    ran = rebalance(*typed.split())
    assert (ran.code, ran.out) == (2, "")
    assert "pipe.toml: " in ran.err
    assert "no file" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("garbage")
def test_of_a_list_of_garbage_the_first_lines_are_named(rebalance) -> None:
    ran = rebalance("audit", "x", "--known", "@list.txt")
    first, *lines, last = ran.err.splitlines()
    assert first.startswith("rebalance: list.txt:1: 'no' is no id of a finding")
    assert len(lines) < 30
    assert last == "and 9,980 lines more"


def test_examples_of_help_are_right() -> None:
    parser = build_parser()
    examples = table(str(ROOT / "cli" / "parser.py"))["examples"]
    assert set(examples) == {f"rebalance {name}" for name in parser.commands()}
    for command_line, several in examples.items():
        assert several
        for typed in several:
            assert typed.startswith(command_line)
            words = shlex.split(typed)[1:]
            parser.parse(words[: words.index("--")] if "--" in words else words)


@pytest.mark.parametrize("name", ["", *build_parser().commands()])
def test_help(rebalance, expected, monkeypatch, name) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = rebalance(*name.split(), "--help")
    assert ran.code == 0
    expected(ran.out)


@pytest.mark.parametrize("name", ["check", "explore", "campaign", "conform"])
def test_help_is_read_from_the_top(rebalance, monkeypatch, name) -> None:
    """One line of usage, the purpose, examples, then options in groups that an eye can hold."""
    monkeypatch.setenv("COLUMNS", "80")
    usage, *lines = rebalance(name, "--help").out.splitlines()
    assert usage.startswith(f"usage: rebalance {name} ")
    assert usage.endswith("[OPTION ...]")
    sections = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert sections[0] == "examples:"
    assert lines.index("examples:") <= 10
    parser = build_parser().commands()[name]
    sizes = {group.title: len(group._group_actions) for group in parser.arranged_groups()}
    assert max(sizes.values()) <= 10
    assert sizes["options"] == 1, "--help alone is in no group"
    long = {one.dest for one in parser._actions if len(one.help or "") > 110 and one.option_strings}
    assert long == set()


def test_a_group_of_options_that_does_not_exist_is_no_group() -> None:
    commands = build_parser().commands()
    for command_line, groups in table(str(ROOT / "cli" / "parser.py"))["groups"].items():
        known = set(commands[command_line.removeprefix("rebalance ")]._option_string_actions)
        assert {name for names in groups.values() for name in names} <= known


@pytest.mark.covering
@pytest.mark.parametrize("where", ["list clauses", "--help", "--version", "bugs", "check --help"])
def test_a_full_disk_is_one_line(where: str, here) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    with full.open("w") as out:
        ran = subprocess.run(command(*where.split()), stdout=out, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (
        2,
        "rebalance: stdout cannot be written: No space left on device\n",
    )


def shadowed(where: Path, module: str, source: str) -> dict[str, str]:
    """An environment in which a module is another."""
    (where / f"{module}.py").write_text(source)
    return {**os.environ, "PYTHONPATH": str(where)}


def test_ctrl_c_while_the_command_loads_is_one_line(here) -> None:
    variables = shadowed(here, "argparse", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    ran = subprocess.run(command("--version"), env=variables, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


@pytest.mark.covering
@pytest.mark.parametrize(
    ("module", "argv", "line"),
    [
        ("z3", ("prove",), "rebalance: prove needs the package z3, which is not there: pip install"),
        ("networkx", ("check", "range"), "rebalance: check needs the package networkx, which is not there"),
        ("duckdb", ("campaign", "range", "--scenarios", "1", "--out", "c"), "[audit]"),
        (
            "pyspark",
            ("campaign", "range", "--scenarios", "1", "--out", "c", "--master", "local"),
            "[spark]",
        ),
    ],
)
def test_a_missing_package_is_one_line(module: str, argv: tuple[str, ...], line: str, here) -> None:
    absent = f"raise ModuleNotFoundError('No module named {module}', name='{module}')\n"
    variables = shadowed(here, module, absent)
    ran = subprocess.run(command(*argv), env=variables, capture_output=True, text=True)
    assert ran.returncode == 2
    assert line in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (("ch",), ["check"]),
        (("check", "--prof"), ["--profile"]),
        (("check", "--profile", "s"), ["smoke"]),
        (("check", "coop"), ["cooperative-sticky"]),
        (("explore", "static-f"), ["static-failover"]),
        (("explore", "static", "--faults", "leave"), ["leave-lost"]),
        (("list", "cl"), ["clauses"]),
        (("bugs", "J1"), ["J1", "J10", "J11", "J12", "J13", "J14", "J15", "J16", "J17", "J18", "J19"]),
        (("upgrade", "--from", "st"), ["sticky", "streams"]),
        (("explore", "--witness", "follow"), ["follow-up-rebalance"]),
        (("explore", "--scenario", "static-f"), ["static-failover"]),
        (("explore", "--inv"), ["--invariant"]),
        (("upgrade", "--report", "h"), ["html"]),
        (("nothing", "x"), []),
        (("audit", "--out", "x"), []),
    ],
)
def test_completion(rebalance, typed: tuple[str, ...], found: list[str]) -> None:
    ran = rebalance("--complete", *typed)
    assert (ran.code, ran.out.split(), ran.err) == (0, found, "")


def test_the_shell_completes(here) -> None:
    (here / "rebalance").write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    (here / "rebalance").chmod(0o755)
    script = SCRIPTS["bash"] + (
        "\nCOMP_WORDS=(rebalance check --profile sm); COMP_CWORD=3; _rebalance; echo ${COMPREPLY[@]}"
    )
    variables = {**os.environ, "PATH": f"{here}:{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True)
    assert ran.stdout == "smoke\n", ran.stderr


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_scripts_are_right_for_their_shells(shell: str, rebalance) -> None:
    ran = rebalance("--completion", shell)
    assert ran == (0, SCRIPTS[shell] + "\n", "")
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    checked = subprocess.run([shell, "-n"], input=ran.out, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_usage_is_one_line_for_every_command() -> None:
    parser = build_parser()
    for one in (parser, *parser.commands().values()):
        assert isinstance(one, Parser)
        assert one.short_usage().startswith(f"usage: {one.prog}")
        assert "\n" not in one.short_usage()


@pytest.mark.parametrize("typed", ["all", "crash,all", "all,leave-lost"])
def test_all_among_faults_is_every_fault(typed: str) -> None:
    assert faults(typed) == FAULTS
    assert faults("none") == ()


def test_a_list_that_names_all_is_about_everything(rebalance, here) -> None:
    """Where leaving the option out means everything, ``all`` is a word for it."""
    assert clauses(["all"]) == clauses([]) == clauses(["assign/1", "all"])
    assert len(theorems("consumer", ["all"], ())) == len(theorems("consumer", [], ()))
    assert columns([], ["reference", "all"], ["4.1.0"], ["all"], lambda names: {}) == columns(
        [], ["all"], ["4.1.0"], None, lambda names: {}
    )
    assert rebalance("list", "clauses", "all").out == rebalance("list", "clauses", *CLAUSES).out
    assert rebalance("list", "schemas", "all").code == 0
    assert rebalance("bugs", "all", "--story").out.startswith("U1  ")
    (here / "some.log").write_text("nothing that is known\n")
    ran = rebalance("audit", "some.log", "--check", "all", "--report", "all")
    assert (ran.code, "no check is called" in ran.err, "no format" in ran.err) == (3, False, False)


HANDED = [line.split("  ->  ") for line in """
replay orders.log  ->  orders.log is a log: `rebalance audit orders.log` checks it
show orders.log  ->  orders.log is a log: `rebalance audit orders.log`
show mine.toml  ->  mine.toml is a group in TOML: `rebalance explore --scenario mine.toml`
replay mine.toml  ->  mine.toml is a group in TOML
show report.json  ->  report.json is a report: the counterexamples that it names
replay events.jsonl  ->  events.jsonl is an event log: `rebalance audit events.jsonl`
audit trace.json  ->  trace.json is a trace: `rebalance show trace.json` draws it, `rebalance replay
audit orders.log trace.json  ->  trace.json is a trace
audit mine.toml  ->  mine.toml is a group in TOML
audit report.json  ->  report.json is a report
audit --follow trace.json  ->  trace.json is a trace
check trace.json  ->  trace.json is a trace
check --adapter orders.log  ->  orders.log is a log
check mine.toml  ->  mine.toml is a group in TOML
compare trace.json range  ->  trace.json is a trace
explore trace.json  ->  --scenario: trace.json is a trace
explore orders.log  ->  --scenario: orders.log is a log
conform orders.log  ->  orders.log is a log: `rebalance audit orders.log`
conform trace.json  ->  trace.json is a trace
conform mine.toml  ->  mine.toml is a group in TOML
conform recorded/run.json  ->  `rebalance conform recorded` asks the model
conform traces  ->  traces is a directory of traces
conform logs  ->  logs is a directory of logs
record --again trace.json  ->  --again: trace.json is a trace
record --again events.jsonl  ->  --again: events.jsonl is an event log
record --again logs  ->  --again: logs is a directory of logs: `rebalance audit logs` checks them
record --again played  ->  --again: played is a campaign: `rebalance campaign --played --out played`
campaign trace.json  ->  trace.json is a trace
campaign mine.toml --scenarios 1 --out c  ->  mine.toml is a group in TOML
campaign orders.log --scenarios 1 --out c --as scenario  ->  orders.log is a log
campaign ./logs  ->  logs is a directory of logs
prove trace.json  ->  trace.json is a trace: `rebalance show trace.json` draws it, `rebalance replay
prove --release java-4.1.0 report.json  ->  report.json is a report
upgrade --from range --to sticky orders.log  ->  orders.log is a log
bugs trace.json  ->  trace.json is a trace
replay logs  ->  logs is a directory of logs: `rebalance audit logs` checks them
show logs  ->  logs is a directory of logs
show played  ->  played is a campaign: `rebalance campaign --played --out played` shows it
replay played/campaign.json  ->  is a campaign: `rebalance campaign --played --out played`
replay recorded  ->  recorded is what `rebalance record` writes: `rebalance conform recorded`
show recorded/run.json  ->  `rebalance record --again recorded` plays it again
audit traces  ->  traces is a directory of traces: `rebalance show traces` draws them, `rebalance replay
audit logs traces  ->  traces is a directory of traces
audit --follow traces  ->  traces is a directory of traces
audit played  ->  played is a campaign
audit 'two words.json'  ->  `rebalance show 'two words.json'` draws it
check ./traces  ->  traces is a directory of traces
""".splitlines()[1:]]  # fmt: skip


def test_a_directory_that_a_command_takes_is_taken(rebalance, here: Path) -> None:
    """A directory with traces beside logs, and a target whose name some directory has."""
    for name in ("range", "mixed"):
        (here / name).mkdir()
        shutil.copy(ROOT / "examples" / "audit" / "orders.log", here / name / "orders.log")
    shutil.copy(ROOT / "examples" / "audit" / "orders-1-owned-twice.json", here / "mixed" / "trace.json")
    assert rebalance("audit", "mixed").code != 2
    assert rebalance("show", "mixed").code == 0
    assert rebalance("check", "range", "--profile", "smoke", "--clause", "assign/1").code == 0


@pytest.mark.parametrize(("typed", "right"), HANDED, ids=[typed for typed, _ in HANDED])
def test_a_file_for_another_command_is_recognised(rebalance, here: Path, typed: str, right: str) -> None:
    shutil.copy(ROOT / "examples" / "audit" / "orders.log", here / "orders.log")
    shutil.copy(ROOT / "examples" / "audit" / "orders-1-owned-twice.json", here / "trace.json")
    (here / "mine.toml").write_text('like = "dynamic"\n')
    suite = '"suite": {"name": "rebalance-verifier"}'
    (here / "report.json").write_text(f'{{"schema": 1, {suite}, "verdict": "violation", "exit": 1}}')
    (here / "events.jsonl").write_text('{"event": "joined", "group": "g", "consumer": "a"}\n' * 2)
    (here / "logs" / "old").mkdir(parents=True)
    shutil.copy(here / "orders.log", here / "logs" / "old" / "orders.log.1")
    (here / "traces").mkdir()
    for copied in ("traces/trace.json", "two words.json"):
        shutil.copy(here / "trace.json", here / copied)
    (here / "recorded").mkdir()
    shutil.copy(here / "events.jsonl", here / "recorded")
    (here / "recorded" / "run.json").write_text('{"cluster": {"kind": "mock"}, "request": {}}')
    (here / "played").mkdir()
    (here / "played" / "campaign.json").write_text('{"schema": 1, "legs": [[1, 1]]}')
    ran = rebalance(*shlex.split(typed))
    assert ran.code == 2
    assert right in " ".join((ran.out + ran.err).split())
    assert "Traceback" not in ran.err
