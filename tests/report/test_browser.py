"""The HTML reports in a real browser: nothing sticks out, nothing is asked for, anybody can read them.

Skipped where there is no Chromium; the scan with axe also where npm cannot fetch axe-core.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from rebalance_verifier.base import saved as files
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups import upgrade_paths, upgrades
from rebalance_verifier.pipeline.audit.diagnosis import BugLink
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient
from rebalance_verifier.report.ci import ci_reports
from rebalance_verifier.report.html import audit, exploration, history, proof, upgrade
from rebalance_verifier.report.html import check as html
from rebalance_verifier.report.terminal.upgrade import UpgradeReport
from rebalance_verifier.specs import proving
from rebalance_verifier.specs.logic.theorems import theorems
from rebalance_verifier.traces.runs import run_id

from tests.report import chromium, test_audit_report, test_html_runs
from tests.report.chromium import Browser
from tests.report.pages import checked, hostile, stepped
from tests.specs.logic.test_prover import locks
from tests.tiers import tiered
from tests.traces.test_history import run as past_run
from tools.site import RESULTS, site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium.found() is None, reason="no Chromium (Debian: apt-get install chromium)"),
]

AXE = "axe-core@4"


def _audit(directory: Path) -> str:
    places = tuple(
        replace(event, at=event.at + timedelta(seconds=7 * number))
        for number, event in enumerate(test_audit_report.finding().places)
    )
    found = [
        test_audit_report.finding(places=places),
        test_audit_report.finding(1, "stranded", certain=False),
        test_audit_report.finding(2, "owned-by-zombie", places=places),
    ]
    bug = BugLink("J4", "orders-1", "java", "3.4.0", "3.4.1", "orders-1 missed one")
    clients = (LoggedClient("orders", "orders-1", "java", "3.4.0", "cooperative-sticky"),)
    saved = test_audit_report.saved(test_audit_report.audited(*found), directory)
    return audit.render(replace(saved, clients=clients, diagnoses={found[0].id: (bug,)}))


def _upgrade(directory: Path) -> str:
    way = upgrade_paths.paths("range", "cooperative-sticky")[-1]
    outcome = upgrades.judge(way, upgrades.setup(way, 2, 1), Limits(go_on=True))
    hop = upgrade_paths.Hop(old="range", new="cooperative-sticky", paths=(way,))
    report = UpgradeReport(
        clients="as-specified",
        broker="as-specified",
        members=2,
        partitions=1,
        judged=(upgrades.JudgedHop(hop=hop, outcomes=(outcome,)),),
        saved={way.name: outcome.run({"scenario": "upgrade range to cooperative-sticky"})},
        paths={},
    )
    case = ci_reports.upgraded(report, 1)
    return upgrade.render(case.headline, case.exit, report, {"from": "range"})


def _explore(directory: Path) -> str:
    found = test_html_runs.explored("no_withhold")
    return exploration.render(found, {run_id(found.violations[0].runs[0]): "failures/x.json"})


PAGES: dict[str, Callable[[Path], str]] = {
    "check": lambda directory: html.render(checked("trust_all_claims")),
    "hostile": lambda directory: html.render(hostile(clauses=2)),
    "explore": _explore,
    "prove": lambda directory: proof.render(
        proving.run_proof(proving.ProofPlan(theorems=theorems(locks(guarded=False))[:3], contract=("once",)))
    ),
    "audit": _audit,
    "upgrade": _upgrade,
    "history": lambda directory: history.render(
        [
            past_run(number, target, a="violated", b="passed")
            for number in (1, 2)
            for target in ("x", "y" * 200)
        ],
        lambda run: True,
    ),
    "site": lambda directory: site(RESULTS)["index.html"],
    "site of a client": lambda directory: site(RESULTS)["kafka-python.html"],
}


BY_DAY = {"check", "hostile", "explore", "site"}
"""Pages that have together every part that a script moves."""


class Pages(dict[str, Path]):
    """Each page as a file, made when it is asked for."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def __missing__(self, name: str) -> Path:
        self[name] = self.directory / f"{name}.html"
        self[name].write_text(PAGES[name](self.directory), encoding="utf-8")
        return self[name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return the pages by name."""
    return Pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium.browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def axe(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script, kept in pytest's cache."""
    assert pytestconfig.cache is not None
    script = pytestconfig.cache.mkdir("axe-core") / "axe.min.js"
    if not script.exists():
        npm, directory = shutil.which("npm"), tmp_path_factory.mktemp("axe")
        if npm is None:
            pytest.skip("no npm, which fetches axe-core")
        command = [npm, "pack", AXE, "--silent"]
        got = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
        if got.returncode:
            pytest.skip(f"npm cannot fetch {AXE}: {got.stderr.strip()[-200:]}")
        with tarfile.open(directory / got.stdout.split()[-1]) as packed:
            file = packed.extractfile("package/axe.min.js")
            assert file is not None
            files.write(script, file.read().decode())
    return script.read_text(encoding="utf-8")


WIDE = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
OPEN = "for (const one of document.querySelectorAll('details')) one.open = true"
SCAN = """axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(found.violations.map(
    one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])))"""


@pytest.mark.covering("name", "width")
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", tiered(PAGES, BY_DAY))
def test_nothing_sticks_out_and_nothing_is_asked_for(
    browser: Browser, pages: Pages, name: str, width: int
) -> None:
    seen = browser.open(pages[name], width, dark=width == 400)
    browser.run(OPEN)
    scrolls, client = browser.run(WIDE)
    assert client == width
    assert scrolls <= client
    assert (seen.requests, seen.console) == ([], [])


def press(browser: Browser, *keys: str) -> None:
    """Press keys one after the other, as a keyboard does."""
    for key in keys:
        for kind in ("rawKeyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)


SHOWN = """new Promise(done => setTimeout(() => done([
    document.querySelector('.stepper output').textContent,
    document.querySelector('.stepper .what').textContent,
    [...document.querySelectorAll('.stepper dt.changed')].map(one => one.textContent),
    [...document.querySelectorAll('svg .col.now')].map(one => one.dataset.at),
    location.hash]), 100))"""


def test_a_run_is_stepped_through_with_keys(browser: Browser, pages: Pages) -> None:
    """Forward and back: what happens, who changed, the column of the chart, a link that stays."""
    written = pages["explore"].read_text(encoding="utf-8")
    rows = stepped(written)[0]
    browser.open(pages["explore"], 1280)
    browser.run("document.querySelector('.stepper').scrollIntoView()")
    press(browser, "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    output, what, changed, columns, link = browser.run(SHOWN)
    assert output == f"step 2 of {len(rows) - 1}"
    assert what.endswith(rows[2][1] + "".join(rows[2][3]))
    assert changed == sorted(rows[2][4], key=["coordinator", "A", "B"].index)
    assert columns == ["2"]
    browser.open(pages["check"], 1280)
    browser.open(pages["explore"].with_name(f"explore.html{link}"), 1280)
    assert browser.run(SHOWN)[:4] == [output, what, changed, columns]
    browser.run("document.querySelector('.stepper button').focus()")
    press(browser, "End")
    assert browser.run(SHOWN)[1].endswith(rows[-1][1] + "".join(rows[-1][3]))
    assert browser.run("document.querySelectorAll('.stepper dd').length") == 3
    browser.run("document.querySelector('.stepper input[type=checkbox]').click()")
    shown = "[...document.querySelectorAll('.stepper dt')].filter(one => one.offsetHeight).length"
    assert browser.run(shown) == len(rows[-1][4]) < 3


def test_tables_are_filtered_and_a_command_is_copied(browser: Browser, pages: Pages) -> None:
    browser.open(pages["check"], 1280)
    shown = "[...document.querySelectorAll('table.clauses tbody tr')].filter(one => one.offsetHeight).length"
    everything = browser.run(shown)
    browser.run("document.querySelector('#clauses ~ .controls input').focus()")
    browser.ask("Input.insertText", text="violated SAFETY")
    found = browser.run(shown)
    assert 0 < found < everything
    assert browser.run("document.querySelector('#clauses ~ .controls output').textContent") == (
        f"{found} of {everything} rows"
    )
    browser.open(pages["site"], 1280)
    rows = "[...document.querySelectorAll('#clauses ~ .scroll tbody tr')].filter(one => one.offsetHeight)"
    for label, value in (("client", "kafka-python"), ("release", "3.0.12"), ("clause", "assign/4")):
        browser.run(f"""(() => {{
            const chosen = document.querySelector('#clauses ~ .controls select[aria-label^="{label}:"]');
            chosen.value = '{value}';
            chosen.dispatchEvent(new Event('input'))}})()""")
    left = browser.run(f"{rows}.map(row => [...row.cells].map(cell => cell.textContent).join(' '))")
    assert len(left) == 3
    assert all("assign/4 liveness kafka-python" in row and " 3.0.12 " in row for row in left)
    browser.open(pages["explore"], 1280)
    browser.run("document.querySelector('dd button').click()")
    after = (
        "new Promise(done => setTimeout(() => done(document.querySelector('dd button').textContent), 100))"
    )
    assert browser.run(after) in ("copied", "selected")


def test_on_a_phone_a_chart_begins_where_it_is_red(browser: Browser, pages: Pages) -> None:
    browser.open(pages["check"], 400)
    left, right, red, end = browser.run("""(() => {
        const red = document.querySelector('article svg .veil, article svg .col.marked'),
            [a, b] = [red.closest('.scroll'), red].map(one => one.getBoundingClientRect());
        return [a.left, a.right, b.left, red.closest('.scroll').scrollLeft]})()""")
    assert left <= red < right
    assert end > 0


def test_without_scripts_everything_is_there(browser: Browser, pages: Pages) -> None:
    """What the script adds is not needed: the steps, the clauses and the commands are in the page."""
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        for name in ("hostile", "explore"):
            browser.open(pages[name], 1280)
            root = browser.ask("DOM.getDocument", depth=0)["root"]["nodeId"]
            found = {
                query: len(browser.ask("DOM.querySelectorAll", nodeId=root, selector=query)["nodeIds"])
                for query in (".controls", "article table tbody tr", "dd code", "svg .msg title")
            }
            assert found.pop(".controls") == 0
            assert all(found.values()), found
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)


def test_what_a_page_forbids_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """That the tests above could fail: a page with a script, a picture from elsewhere, and something wide."""
    page = html.render(checked())
    wrong = "<script>document.title = 'mine'</script><img src='http://127.0.0.1:9/x.png'>"
    wrong += "<p style='width: 3000px'>wide</p></main>"
    path = tmp_path / "wrong.html"
    path.write_text(page.replace("</main>", wrong), encoding="utf-8")
    seen = browser.open(path, 1280)
    assert len(seen.console) >= 2
    assert browser.run("document.title") != "mine"
    assert browser.run(WIDE)[0] > 3000


@pytest.mark.parametrize("name", tiered(PAGES, {"check", "site"}))
def test_axe_finds_nothing(browser: Browser, pages: Pages, axe: str, name: str) -> None:
    number = list(PAGES).index(name)
    browser.open(pages[name], (1280, 400)[number % 2], dark=bool(number % 2))
    browser.run(OPEN)
    if name in ("check", "explore"):
        press(browser, "ArrowRight", "ArrowRight", "ArrowRight")
        browser.run(SHOWN)
    browser.run(axe)
    assert json.loads(browser.run(SCAN)) == []


@pytest.mark.nightly
def test_axe_finds_nothing_in_the_dark_where_a_run_is_stepped_through(
    browser: Browser, pages: Pages, axe: str
) -> None:
    browser.open(pages["check"], 1280, dark=True)
    browser.run("document.querySelector('.stepper').scrollIntoView()")
    press(browser, "ArrowRight")
    browser.run(axe)
    assert json.loads(browser.run(SCAN)) == []


def test_axe_would_find_something(browser: Browser, tmp_path: Path, axe: str) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(html.render(checked()).replace("<main>", "<main><h5 style='color: #ccc'>pale</h5>"))
    browser.open(path, 1280)
    browser.run(axe)
    assert {"color-contrast", "heading-order"} <= {one[0] for one in json.loads(browser.run(SCAN))}
