"""`replay`, `show` and `bugs` have every format: their results as cases, and those as files and a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.explore.groups import matrix
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.model.bugs.catalogue import CATALOGUE
from rebalance_verifier.model.bugs.profiles import CLIENTS
from rebalance_verifier.report.ci import document, junit, pages, trace_reports
from rebalance_verifier.report.ci.cases import CiReport
from rebalance_verifier.report.terminal.bugs import Reproduction
from rebalance_verifier.report.terminal.replayed import ReplayOutcome, Replays, on_clients
from rebalance_verifier.report.terminal.trace import NamedTrace, named
from rebalance_verifier.traces import kinds

from tests.report.handmade import HOSTILE, violated
from tests.report.test_cases import agree
from tests.traces.published import hold

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "tests/traces/saved/two-owners.json", ROOT / "examples/audit/orders-1-owned-twice.json")
RUN, RECORDING = (named(path, kinds.load(path)) for path in FILES)
SITUATION = replace(RUN, is_situation=True)
HURT = replace(RUN, sentence="; ".join(HOSTILE), subject=HOSTILE[0])


def outcome(word: str, code: Exit, trace: NamedTrace | None = RUN, sentence: str = "") -> ReplayOutcome:
    return ReplayOutcome(word=word, exit=code, path=FILES[0], trace=trace, sentence=sentence)


def played(*broken: BrokenClause, stopped: str = "") -> ReplayOutcome:
    result = Replayed(clause=RUN.clause, client="confluent", broken=list(broken), stopped=stopped, steps=3)
    return on_clients(RUN, result, Path("replays/1.json"))


FAILING = outcome("failing", Exit.VIOLATION, sentence="t-0 is owned by A and by B")
FIXED = outcome("fixed", Exit.CONFORMANT)
SHOWN = outcome("shown", Exit.CONFORMANT, SITUATION, "the run shows it")
ERROR = outcome("error", Exit.USAGE, sentence="the target cannot start")
UNREADABLE = outcome("error", Exit.USAGE, None, "a.json:1:2: not JSON")
SKIPPED = outcome("skipped", Exit.CONFORMANT, None, "a.json: has schema 9")


def replays(*outcomes: ReplayOutcome, **how: str | bool) -> CiReport:
    return trace_reports.replayed(Replays(outcomes=list(outcomes), **how))  # type: ignore[arg-type]


def reproduction(how: str = "model", **found: object) -> Reproduction:
    what = {
        "model": "group/owner",
        "check": "cooperative-sticky+trust_all_claims",
        "not": "that racks change",
    }
    entry, switch = CATALOGUE["J1"], "prepare_not_repeated_after_reset"
    return Reproduction(entry=entry, switch=switch, how=how, what=what[how], **found)  # type: ignore[arg-type]


(ROW, *_) = violated().clauses
BY_MODEL = reproduction(run=kinds.load(FILES[0]), path=str(FILES[0]))
BY_CHECK = reproduction("check", row=ROW, profile="smoke", also=("assign/1-eager",))
NOT_SHOWN = reproduction()
NOT_EXPRESSED = reproduction("not")

SWITCH = "leave_on_empty_assignment"
AGREES = matrix.Cell(SWITCH, CLIENTS["java-3.5"], matrix.Mark.FINE, False)
DIFFERS = matrix.Cell(SWITCH, CLIENTS["java-3.5"], matrix.Mark.BREAKS, False)

REPORTS = {
    "show a run": (trace_reports.shown([RUN]), Verdict.VIOLATION),
    "show a situation": (trace_reports.shown([SITUATION]), Verdict.INCONCLUSIVE),
    "show several": (trace_reports.shown([RUN, RECORDING, HURT]), Verdict.VIOLATION),
    "replay failing": (replays(FAILING, FIXED, SHOWN), Verdict.VIOLATION),
    "replay fixed": (replays(FIXED, SHOWN), Verdict.CONFORMANT),
    "replay error": (replays(ERROR, FIXED), Verdict.INCONCLUSIVE),
    "replay error and failing": (replays(UNREADABLE, FAILING), Verdict.VIOLATION),
    "replay skipped": (replays(SKIPPED), Verdict.INCONCLUSIVE),
    "replay hostile": (
        replays(*(outcome("failing", Exit.VIOLATION, HURT, text) for text in HOSTILE)), Verdict.VIOLATION
    ),
    "replay interrupted": (replays(FIXED, interrupted=True), Verdict.INCONCLUSIVE),
    "replay stopped": (replays(FIXED, stopped="no such client"), Verdict.INCONCLUSIVE),
    "replay on same": (replays(played(BrokenClause(RUN.clause, 3, "x")), on="confluent"), Verdict.VIOLATION),
    "replay on another": (replays(played(BrokenClause("leave/sent", 3, "x")), on="java"), Verdict.VIOLATION),
    "replay on none": (replays(played(), on="confluent"), Verdict.CONFORMANT),
    "replay on unforced": (replays(played(stopped="no answer"), on="confluent"), Verdict.INCONCLUSIVE),
    "bugs shown": (trace_reports.reproduced([BY_MODEL, BY_CHECK, NOT_EXPRESSED]), Verdict.CONFORMANT),
    "bugs not shown": (trace_reports.reproduced([BY_MODEL, NOT_SHOWN]), Verdict.INCONCLUSIVE),
    "bugs not expressed": (trace_reports.reproduced([NOT_EXPRESSED]), Verdict.INCONCLUSIVE),
    "matrix": (trace_reports.compared([AGREES], {}), Verdict.CONFORMANT),
    "matrix differs": (trace_reports.compared([AGREES, DIFFERS], {}), Verdict.VIOLATION),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_every_format_says_the_same(name, published):
    report, verdict = REPORTS[name]
    assert report.verdict is verdict
    agree(report, published)
    page = pages.render(report, "lead")
    blocks = [*report.failing, *report.informing, *report.showing]
    assert page.count("<article") == len(blocks)
    assert "<script>alert" not in page
    if report.subject != "--matrix":
        hold("cases", document.to_json(report))


def test_nothing_is_passed_that_was_not_played():
    for name, (report, _) in REPORTS.items():
        passed = {case.status for case in report.cases} == {Status.PASSED}
        assert passed <= (report.verdict is Verdict.CONFORMANT or "situation" in name or "interrupted" in name
                          or "stopped" in name)  # fmt: skip


def test_the_gravest_exit_code_is_that_of_the_command():
    codes = {name: report.exit for name, (report, _) in REPORTS.items() if name.startswith("replay")}
    assert codes == {
        "replay failing": 1, "replay fixed": 0, "replay error": 2, "replay error and failing": 2,
        "replay skipped": 0, "replay hostile": 1, "replay interrupted": 130, "replay stopped": 2,
        "replay on same": 1, "replay on another": 1, "replay on none": 0, "replay on unforced": 3,
    }  # fmt: skip


def test_a_bug_that_shows_passes_and_is_drawn():
    report, _ = REPORTS["bugs shown"]
    assert [case.status for case in report.cases] == [Status.PASSED, Status.PASSED, Status.UNTESTED]
    assert "SHOWN  J1: 2 of 2 switches" in report.headline
    page = pages.render(report, "lead")
    assert page.count("<svg") == 2
    assert "What was shown" in page


def test_a_trace_that_is_shown_neither_passes_nor_fails():
    text = junit.render(REPORTS["show several"][0])
    assert text.count("<skipped") == 3
    assert "broken, but show judges nothing: " in text


def test_what_is_explained_does_not_fail(monkeypatch):
    monkeypatch.setattr(matrix, "hidden", lambda switch, profile: "it is hidden by J2")
    report = trace_reports.compared([DIFFERS], {})
    (case,) = report.cases
    assert (report.verdict, case.status, case.gates) == (Verdict.CONFORMANT, Status.VIOLATED, False)
    assert case.message.endswith("; it is hidden by J2")


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        ("bugs --report html", "--report goes with IDs, which are run, and with --matrix"),
        ("bugs J1 --story --report html", "--report goes with IDs, which are run, and with --matrix"),
        ("bugs J1 --format md", "--format md goes with the list and with --matrix: say --report markdown"),
        ("show RUN --step --report html", "--report does not go with --step"),
        ("replay RUN --as-pytest t.py --ci github", "--ci does not go with --as-pytest"),
        ("show RUN --format svg --ci github", "--ci github and --format svg both print"),
        ("replay RUN --report pdf", "--report: no format is called 'pdf'"),
    ],
)
def test_what_has_no_report_says_so(rebalance, typed, wrong):
    ran = rebalance(*typed.replace("RUN", str(FILES[0])).split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"rebalance: {wrong}")


def test_outcomes_before_an_end_are_not_lost(rebalance):
    """The second file is none that can be replayed: the first one's outcome is in the report all the same."""
    ran = rebalance("replay", *FILES, "--report", "junit", "--report-dir", "out")
    assert ran.code == 2
    assert "is a recording of a log" in ran.err
    assert "group/owner" in Path("out/junit.xml").read_text()
