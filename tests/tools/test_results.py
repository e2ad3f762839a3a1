"""The pages of ``make results``: links, what is kept of them, the same bytes again."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.failure import HARMFUL
from rebalance_verifier.cli.commands import compare as compare_cli
from rebalance_verifier.gate.compare import clients, compare
from rebalance_verifier.gate.compare.compare import CellMark, TargetColumn
from rebalance_verifier.gate.scenarios.probes import probes
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.model.bugs.releases import version as as_version

from tests.gate.compare.judged import ABOUT, ROWS, other
from tools import results

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "adapters" / "clients.json"
RESULTS = ROOT / "docs" / "results"


def test_the_overview_shows_the_newest_release_of_each_client_and_links_to_what_is_behind():
    pages, shown = results.pages([*ROWS, other(CellMark.BROKEN)], ABOUT, "there")
    assert sorted(pages) == ["README.md", "acme.md", "peer.md"]
    assert shown == {}  # no trace is to be had here
    overview = pages["README.md"]
    assert "| client | assignor | release | **assign/1** |" in overview
    assert "| acme | sticky | 2.0 | ? |" in overview  # cooperative was not asked
    assert "| peer | fair | 0.9 | [X](peer.md#beef) |" in overview
    assert "Broken by none of them: assign/5." in overview
    assert '<a id="beef"></a>' in pages["peer.md"]
    assert "\\<b\\>t\\|1" in pages["peer.md"]
    assert "`rebalance replay traces/beef.json`" in pages["peer.md"]  # where it was found
    assert "| acme | sticky | 2.0 | - | · | · | · |" in overview
    assert "| peer | fair | 0.9 | - | [assign/1](peer.md#beef) | · | · |" in overview


def test_a_client_over_the_wire_has_a_profile_of_its_own_and_the_pages_name_it(tmp_path):
    named = (TargetColumn(spec=f"{spec}:sticky", label="", client=spec) for spec in ("client:slow", "quick"))
    wanted = compare.TargetComparison(columns=tuple(named), directory=tmp_path)
    slow, quick = results.with_wire(wanted, "smoke").columns
    assert (slow.profile, quick.profile) == ("smoke", "")
    judged = [*ROWS, replace(ROWS[0], column=replace(slow, page="slow"))]
    pages, _ = results.pages(judged, replace(ABOUT, profile="ci"), "there")
    assert "profile ci, seed 7 (client:slow: smoke)." in pages["README.md"]
    assert "profile smoke, seed 7." in pages["slow.md"]
    assert "profile ci, seed 7." in pages["acme.md"]


def test_every_link_of_the_pages_leads_somewhere():
    pages, _ = results.pages([*ROWS, other(CellMark.BROKEN)], ABOUT, "there")
    for name, text in pages.items():
        for page, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
            assert not anchor or f'<a id="{anchor}"></a>' in pages[page or name]


def test_the_pages_that_are_kept_are_of_these_clients_and_lead_somewhere():
    """What `make results` wrote: every release that is named, every minor series from the first to the last
    judged, every anchor, every trace; nothing of one machine."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in RESULTS.glob("*.md")}
    for column in compare_cli.columns([f"@{EXAMPLES}"], ["all"], None, None, ask=lambda packages: {}):
        assert f"## {column.assignor}" in pages[f"{column.page}.md"]
        assert not column.label or f" {column.label} |" in pages[f"{column.page}.md"]
    for client in clients.pinned():
        if client.minors_since:
            headers = re.findall(r"^\| clause \| (.*) \|$", pages[f"{client.page or client.name}.md"], re.M)
            series = {as_version(release)[:2] for header in headers for release in header.split(" | ")}
            for major in {major for major, _ in series}:
                minors = [minor for known, minor in series if known == major]
                assert len(minors) == max(minors) - min(minors) + 1, (client.name, sorted(series))
            assert min(series) == as_version(client.minors_since)
    generated = {
        name: pages[name] for name in pages if name == "README.md" or "(README.md)" in pages[name][:40]
    }
    assert len(generated) == 17
    for name, text in generated.items():
        for page, anchor in re.findall(r"\]\((?!http)([\w-]*(?:\.md)?)#(\w+)\)", text):
            assert f'<a id="{anchor}"></a>' in pages[page or name], (name, anchor)
        for trace in re.findall(r"`rebalance replay docs/results/(\S+)`", text):
            assert counterexamples.load(RESULTS / trace).id == Path(trace).stem
        assert not re.search(r"/root|/home|/tmp|/work", text)


@pytest.mark.parametrize(("actual", "published"), [("crash", False), ("timeout", False), ("errored", True)])
def test_a_question_that_ends_a_process_is_not_published(actual: str, published: bool) -> None:
    trace = replace(counterexamples.load(min((RESULTS / "traces").glob("*.json"))), actual=actual)
    pages, shown = results.pages([other(CellMark.BROKEN)], replace(ABOUT, trace=lambda cell: trace), "there")
    assert bool(shown) is published
    assert (f"`rebalance replay there/traces/{trace.id}.json`" in pages["peer.md"]) is published
    search = f"`rebalance check {trace.target.spec} --profile {trace.profile} --seed {trace.seed}` finds it."
    assert (search in pages["peer.md"]) is not published
    assert ("```text" in pages["peer.md"]) is published


def test_no_file_of_ours_ends_a_process_of_others() -> None:
    """Counterexamples, recordings and fixtures, wherever they are kept."""
    failed = re.compile(rf'"(actual|check)": "({"|".join(sorted(HARMFUL))}|died)"')
    kept = (path for folder in ("docs", "examples", "tests") for path in (ROOT / folder).rglob("*.*"))
    files = [path for path in kept if path.suffix in (".json", ".jsonl", ".toml")]
    assert files
    assert [
        str(file) for file in files if failed.search(file.read_text(encoding="utf-8", errors="replace"))
    ] == []


@pytest.mark.nightly
def test_pages_are_the_same_byte_for_byte(rebalance, monkeypatch):
    """From the start in another place, and again from what is kept."""
    quick = [probe for probe in probes() if probe.switch in ("max_generation_only", "trust_all_claims")]
    monkeypatch.setattr(compare, "probes", lambda: tuple(quick))
    argv = ["cooperative-sticky+max_generation_only", "--client", "reference", "--clause", "kip429/leader/4"]
    argv += ["--no-progress"]
    made = []
    for out, pages in (("a", "one"), ("a", "two"), ("b", "one")):
        assert results.main([*argv, "--out", out, "--pages", pages]) == 0
        found = sorted(Path(pages).rglob("*"))
        made.append({str(f.relative_to(pages)): f.read_bytes() for f in found if f.is_file()})
        text = Path(pages, "targets.md").read_text(encoding="utf-8")
        replayed = re.findall(r"`rebalance (replay) (\S+)`", text)
        assert replayed
        assert {rebalance(*line).code for line in replayed} == {1}
        shutil.rmtree(pages)
    assert made[0]["README.md"] == made[1]["README.md"] == made[2]["README.md"]
    assert made[0].keys() == made[1].keys() == made[2].keys()
    assert made[0] == made[2]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["no-such", "--pages", "there"], "tools.results: no target is called 'no-such'"),
        (["range", "--pages", "there", "--out", f"{os.devnull}/x"], "/x/targets: Not a directory"),
    ],
)
def test_wrong_use(argv, text, monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    assert results.main(argv) == 2
    assert text in capfd.readouterr().err


def test_an_interrupt_writes_no_page(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "run", interrupted)
    assert results.main(["range", "--pages", "there"]) == 130
    assert "the same command goes on" in capfd.readouterr().err
    assert not Path("there").exists()
