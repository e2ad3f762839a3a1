"""The HTML reports in a real browser: nothing sticks out, nothing is asked for, anybody can read them.

Skipped where there is no Chromium; the scan with axe also where npm cannot fetch axe-core.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rebalance.gate.report.html import audit, exploration, proof
from rebalance.gate.report.html import check as html
from rebalance.gate.traces import files
from rebalance.specs import proving
from rebalance.specs.theorems.theorems import theorems

from tests.gate.report import chromium, test_audit_report, test_html_runs
from tests.gate.report.chromium import Browser
from tests.gate.report.pages import checked, hostile
from tests.specs.logic.test_prover import locks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium.found() is None, reason="no Chromium (Debian: apt-get install chromium)"),
]

AXE = "axe-core@4"


def _audit(directory: Path) -> str:
    found = [test_audit_report.finding(), test_audit_report.finding(1, "stranded", certain=False)]
    return audit.render(test_audit_report.saved(test_audit_report.audited(*found), directory))


PAGES: dict[str, Callable[[Path], str]] = {
    "check": lambda directory: html.render(checked("trust_all_claims")),
    "hostile": lambda directory: html.render(hostile(clauses=2)),
    "explore": lambda directory: exploration.render(test_html_runs.explored("no_withhold"), {}),
    "prove": lambda directory: proof.render(
        proving.run_proof(proving.ProofPlan(theorems=theorems(locks(guarded=False))[:3], contract=("once",)))
    ),
    "audit": _audit,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each page as a file."""
    directory = tmp_path_factory.mktemp("pages")
    for name, render in PAGES.items():
        (directory / f"{name}.html").write_text(render(directory), encoding="utf-8")
    return {name: directory / f"{name}.html" for name in PAGES}


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


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_sticks_out_and_nothing_is_asked_for(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    for name, path in pages.items():
        seen = browser.open(path, width, dark=width == 400)
        browser.run(OPEN)
        scrolls, client = browser.run(WIDE)
        assert client == width
        assert scrolls <= client, f"{name} is {scrolls} wide"
        assert (seen.requests, seen.console) == ([], []), name


def test_what_a_page_forbids_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """That the tests above could fail: a page with a script, a picture from elsewhere, and something wide."""
    page = html.render(checked())
    wrong = "<script>1</script><img src='http://127.0.0.1:9/x.png'><p style='width: 3000px'>wide</p></main>"
    path = tmp_path / "wrong.html"
    path.write_text(page.replace("</main>", wrong), encoding="utf-8")
    seen = browser.open(path, 1280)
    assert len(seen.console) >= 2
    assert browser.run(WIDE)[0] > 3000


def test_axe_finds_nothing(browser: Browser, pages: dict[str, Path], axe: str) -> None:
    for number, (name, path) in enumerate(pages.items()):
        browser.open(path, (1280, 400)[number % 2], dark=bool(number % 2))
        browser.run(OPEN)
        browser.run(axe)
        assert json.loads(browser.run(SCAN)) == [], name
    browser.open(pages["check"], 1280, dark=True)
    browser.run(axe)
    assert json.loads(browser.run(SCAN)) == []


def test_axe_would_find_something(browser: Browser, tmp_path: Path, axe: str) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(html.render(checked()).replace("<main>", "<main><h5 style='color: #ccc'>pale</h5>"))
    browser.open(path, 1280)
    browser.run(axe)
    assert {"color-contrast", "heading-order"} <= {one[0] for one in json.loads(browser.run(SCAN))}
