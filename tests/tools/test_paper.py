"""The paper: numbers and links of the page, tables as long as their sources, figures that are still true."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rebalance_verifier.model.bugs.catalogue import CATALOGUE
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY
from rebalance_verifier.specs.classic.necessity.necessity import NECESSITY
from rebalance_verifier.specs.classic.safety import INVARIANTS

from tools.docs import GENERATED
from tools.paper import page, tables
from tools.paper.page import render
from tools.tla.configurations import GROUPS
from tools.tla.consumer import CONSUMER_GROUPS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "paper"
TEXT = (FOLDER / "paper.md").read_text(encoding="utf-8")
PARTS = GENERATED["docs/paper/paper.md"]

SMALL = """# A title

Before.

## Abstract

<!-- slow -->

See [below](#of-tables-and-b) and [what is left](#appendix-the-rest).

## One

### Of tables, and B

| a | `b` |
|---|---|
| 1 | x \\| y |

## Two

### First

### Second

## Appendix: the rest
"""


@cache
def html() -> str:
    return (FOLDER / "paper.html").read_text(encoding="utf-8")


def tree(text: str) -> ElementTree.Element:
    """Raises ParseError for a page that is not well-formed."""
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))


def texts(root: ElementTree.Element, *tags: str) -> list[str]:
    return ["".join(element.itertext()) for tag in tags for element in root.iter(tag)]


# -- the renderer --------------------------------------------------------------------------------------


def test_sections_are_numbered_and_appendices_lettered():
    root = tree(render(SMALL, FOLDER))
    assert texts(root, "h2") == ["Abstract", "1 One", "2 Two", "Appendix A: the rest"]
    assert texts(root, "h3") == ["1.1 Of tables, and B", "2.1 First", "2.2 Second"]


def test_the_contents_lead_to_every_section():
    root = tree(render(SMALL, FOLDER))
    nav = next(root.iter("nav"))
    assert [link.get("href") for link in nav.iter("a")] == [
        f"#{element.get('id')}" for element in root.iter() if element.tag in ("h2", "h3")
    ]
    assert texts(nav, "a")[2] == "1.1 Of tables, and B"


def test_a_link_within_the_page_says_the_number():
    paragraph = texts(tree(render(SMALL, FOLDER)), "p")[1]
    assert paragraph == "See below (§1.1) and what is left (Appendix A)."


def test_a_table_is_one_and_can_be_moved():
    root = tree(render(SMALL, FOLDER))
    (wide,) = (element for element in root.iter("div") if element.get("class") == "wide")
    assert texts(wide, "th") == ["a", "b"]
    assert texts(wide, "td") == ["1", "x | y"]


def test_comments_are_left_out():
    assert "slow" not in render(SMALL, FOLDER)


def test_a_picture_lies_in_the_page(tmp_path: Path):
    (tmp_path / "one.svg").write_text("<svg/>")
    (picture,) = tree(render("# T\n\n![what it shows](one.svg)\n", tmp_path)).iter("img")
    assert picture.attrib == {"src": "data:image/svg+xml;base64,PHN2Zy8+", "alt": "what it shows"}


def test_what_looks_like_markup_in_code_is_text():
    assert texts(tree(render("# T\n\n`a<b> & c`\n", FOLDER)), "code") == ["a<b> & c"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no title\n", "begins with its title"),
        ("# T\n\n[x](#nowhere)\n", "no heading is called #nowhere"),
        ("# T\n\n<script>alert(1)</script>\n", "HTML in the text"),
        ("# T\n\na <b>bold</b> word\n", "HTML in the text"),
    ],
)
def test_what_cannot_be_rendered_is_refused(text: str, says: str):
    with pytest.raises(ValueError, match=says):
        render(text, FOLDER)


# -- the page ------------------------------------------------------------------------------------------


def test_the_page_is_well_formed_and_every_name_is_one():
    ids = [element.get("id") for element in tree(html()).iter() if element.get("id")]
    assert len(ids) == len(set(ids)) > 20


def test_the_page_has_all_it_needs_in_it():
    root = tree(html())
    assert not [
        element.tag for element in root.iter() if element.tag in ("script", "link", "iframe", "object")
    ]
    sources = [element.get("src", "") for element in root.iter() if "src" in element.attrib]
    assert sources
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not re.search(r"@import|url\(|http", page.STYLE.read_text())


def test_links_of_the_page_lead_somewhere():
    root = tree(html())
    ids = {element.get("id") for element in root.iter()}
    for link in root.iter("a"):
        href = link.get("href", "")
        if href.startswith("#"):
            assert href[1:] in ids, href
        elif not href.startswith(("https://", "http://")):
            assert (FOLDER / href.partition("#")[0]).exists(), href


def test_the_page_is_for_paper_and_phone_light_and_dark():
    assert '<meta name="viewport"' in html()
    assert "@media print" in html()
    assert "prefers-color-scheme: dark" in html()


# -- the tables ----------------------------------------------------------------------------------------


@cache
def rows(part: str) -> list[str]:
    """Of a table as it is generated; that the text has it so is what tests/tools/test_docs.py asks."""
    lines = PARTS[part]().strip().splitlines()
    assert re.fullmatch(r"[-| ]+", lines[1])
    return lines[2:]


NEEDED = [name for name, one in NECESSITY.items() if one.refutation]


@cache
def sizes() -> dict[str, int]:
    """Rows by part: counted where the tables are not made."""
    return {
        "theorems": 14 + 1,
        "contract": len(SAFETY) + len(LIVENESS),
        "current": len(tables.shipped_now()),
        "shipped": (ROOT / "docs/results/shipped.md").read_text().count("\n| `"),
        "tlc": len(GROUPS) + len(CONSUMER_GROUPS),
        "walked": 22,
        "explored": (ROOT / "tools/benchmarks/explore.md").read_text().count("atomic |") + 1,
        "broken": (ROOT / "tools/benchmarks/explore.md").read_text().count("connections |"),
        "related": len(tomllib.loads(tables.RELATED.read_text())["work"]),
        "figures": len(tables.counted()),
        "invariants": len(INVARIANTS),
        "needed": len(NEEDED),
        "kept": len(NECESSITY) - len(NEEDED),
        "catalogue": len(CATALOGUE),
    }


def test_every_part_has_a_size():
    assert sizes().keys() == PARTS.keys()


@pytest.mark.parametrize("part", PARTS)
def test_a_table_has_a_row_for_each_thing(part: str):
    assert len(rows(part)) == sizes()[part] > 0


def test_the_needed_decisions_say_what_fails_and_after_how_many_steps():
    for name, row in zip(NEEDED, rows("needed"), strict=True):
        *_, breaks, steps = (cell.strip() for cell in row.strip("|").split(" | "))
        assert row.startswith(f"| `{name}` ")
        assert breaks
        assert int(steps) > 5, name


def test_the_obligations_are_those_that_the_proof_prints():
    """docs/explanation/proof.md shows what ``rebalance prove`` prints; a slow test runs it."""
    shown = (
        (ROOT / "docs" / "explanation" / "proof.md")
        .read_text()
        .partition("theorem   ")[2]
        .partition("\n\n")[0]
    )
    printed = dict(re.findall(r"^  (\w[\w ]*\w) +([\d,]+)  proved", shown, re.M))
    listed = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows("theorems")]
    assert {name: count for name, *_, count in listed if name != "*all*"} == printed


def test_a_page_without_a_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "none.md").write_text("# Nothing\n")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"none\.md has no table"):
        tables.lifted("none.md")


def test_related_work_says_who_where_what_and_the_difference():
    works = tomllib.loads(tables.RELATED.read_text())["work"]
    assert all({*work} == {"authors", "title", "url", "published", "about", "here"} for work in works)
    assert all(work["url"].startswith(("https://", "http://")) and all(work.values()) for work in works)
    assert len({work["url"] for work in works}) == len(works)


# -- the text ------------------------------------------------------------------------------------------


def prose() -> str:
    """What is written by hand: no generated part, no block of code."""
    text = re.sub(r"<!-- generated from here on.*?<!-- to here -->", "", TEXT, flags=re.S)
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def test_the_figures_in_the_text_are_still_true():
    figures = {figure.what: figure.count for figure in tables.counted() if "mutants" not in figure.what}
    nouns = "|".join(sorted(map(re.escape, figures), key=len, reverse=True))
    found = re.findall(rf"([\d,]*\d) ({nouns})\b", prose())
    assert len(found) >= 10
    assert [(n, what) for n, what in found if n != f"{figures[what]:,}"] == []


def test_the_text_says_how_many_mutants_are_noticed():
    figures = {figure.what: f"{figure.count:,}" for figure in tables.counted()}
    tried, killed, left = (figures[f"mutants that {of}"] for of in ("were tried", "were killed", "are open"))
    assert (
        f"All {figures['mutants']} mutants of the model were tried. {killed} are killed, nearly all by tests "
        f"of single steps, and {left} are open"
    ) in prose()
    assert tried == figures["mutants"]


def test_the_formulas_shown_are_those_of_the_logic():
    sources = [file.read_text() for file in sorted((ROOT / "specs").rglob("*.py"))]
    shown = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
    assert len(shown) == 3
    for block in shown:
        assert any(block in source for source in sources), block


def test_tests_and_pages_that_the_text_names_exist():
    for name in re.findall(r"`((?:tests|specs|model|docs|tools)/[\w/.]+)`", prose()):
        assert (ROOT / name).exists(), name
