"""Pictures as SVG and Mermaid: well formed, nothing runs, nothing overlaps, hostile names do no harm."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from rebalance_verifier.base.text import columns
from rebalance_verifier.report.diagram import mermaid, svg
from rebalance_verifier.report.diagram.diagram import (
    Away,
    DiagramColumn,
    EventMark,
    MessageArrow,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
    bars,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\x1b[31m\"'&;#\nend\u202e\ufdfd\ud800漢字%%{init:1}%%"
SIZES = {"s": 10, "t": 15}
EM = 0.61
"""Width of a character of the monospaced fonts that browsers have, in ems, at most."""


def drawing(
    count: int = 8, name: str = "orders-0", people: tuple[str, ...] = ("A", "B", "C")
) -> OwnershipDiagram:
    """A made-up picture with everything in it: two owners from column 4 on, C away, a message each column."""
    a, b, c = people
    half = count // 2
    line = [None, *[OwnershipState.OWNED] * (count - 1)]
    late = [None] * half + [OwnershipState.OWNED] * (count - half)
    gone = [
        OwnershipState.STALE,
        OwnershipState.LEAVING,
        OwnershipState.WITHOUT,
        *[OwnershipState.REMOVED] * (count - 3),
    ]
    return OwnershipDiagram(
        title=f"group/owner: {name} is owned by {a} and by {b}",
        columns=tuple(DiagramColumn(label=str(n + 1), what=f"{a} does {n}", generation=n // 3 + 1,
        fault=n == 2) for n in range(count)),
        rows=(Row(name, a), Row(name, b), Row(name, c), Row("orders-1", "")),
        bars=bars([line, late, gone, [OwnershipState.NOBODY] * count]),
        overlaps=(Overlap(partition=name, start=half, end=count, members=(a, b)), Overlap(partition=name,
        start=1, end=half, members=(a, c), zombies=(c,))),
        members=people,
        arrows=tuple(
            MessageArrow(column=n, member=people[n % 3], api=("JoinGroup", "SyncGroup", "Heartbeat")[n % 3],
                answer=n % 2 == 1, generation=n,
                  text="UNKNOWN_MEMBER_ID" if n == 5 else "", lost=n == 4)
            for n in range(count)
        ),
        marks=tuple(EventMark(n, who, f"assigned {name}",
        fault=n == 2) for n in range(count) for who in ("", *people)),
        away=(Away(c, 2, 5, "paused"),),
        loop=(half, count),
        left_out=("and 3 more partitions",),
    )  # fmt: skip


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def texts(root: ET.Element) -> list[tuple[float, float, float, str]]:
    """(left, right, baseline, text) of each text, as wide as the font may be at most."""
    found = []
    for element in root.iter(f"{SVG}text"):
        style = element.get("class", "").split()
        size = next((SIZES[s] for s in style if s in SIZES), 12)
        width = columns(element.text or "") * EM * size
        x, anchor = float(element.get("x", "")), element.get("text-anchor", "start")
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        found.append((left, left + width, float(element.get("y", "")), element.text or ""))
    return found


def crowded(text: str) -> list[str]:
    """What overlaps or leaves the drawing."""
    root = parsed(text)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    placed = texts(root)
    wrong = [
        f"{t!r} leaves" for left, right, y, t in placed if left < 0 or right > width or not 8 < y < height
    ]
    for one, other in combinations(placed, 2):
        across = min(one[1], other[1]) - max(one[0], other[0])
        if across > 0.5 and abs(one[2] - other[2]) < 8:
            wrong.append(f"{one[3]!r} and {other[3]!r} by {across:.1f}")
    return wrong


@pytest.mark.parametrize("people", [("A", "B", "C"), ("orders-consumer-" * 9 + "1", "漢字" * 30, HOSTILE)])
@pytest.mark.parametrize("count", [3, 8, 25, 64])
@pytest.mark.parametrize("unit", ["step", "event", "round"])
def test_text_neither_overlaps_nor_leaves_the_drawing(count, people, unit):
    drawn = replace(drawing(count, people=people), unit=unit)
    if unit == "event":
        stamped = [replace(c, when="18:01:11.420", skipped=n % 5) for n, c in enumerate(drawn.columns)]
        drawn = replace(drawn, columns=tuple(stamped))
    assert crowded(svg.render(drawn, standalone=True)) == []
    assert crowded(svg.render(replace(drawn, left_out=("x" * 5000,), title="y " * 900))) == []


def test_two_owners_are_hatched_framed_and_named():
    root = parsed(svg.render(drawing(8)))
    boxes = {kind: [e for e in root.iter(f"{SVG}rect") if e.get("class") == kind] for kind in
             ("hatch", "frame", "soft", "veil")}  # fmt: skip
    assert len(boxes["hatch"]) == 3  # A's bar and B's, and the legend
    first, second, _ = boxes["hatch"]
    assert (first.get("x"), first.get("width")) == (second.get("x"), second.get("width"))
    frame = boxes["frame"][0]
    assert float(frame.get("y", "")) < float(first.get("y", "")) < float(second.get("y", ""))
    assert frame.get("x") == first.get("x") == boxes["veil"][0].get("x")
    labels = {t for *_, t in texts(root)}
    assert "orders-0 is owned by A and B" in labels
    assert "orders-0 is used by A and C (no longer a member)" in labels
    assert len(boxes["soft"]) == 2
    assert root.findtext(f"{SVG}desc", "").endswith("orders-0 has two owners from step 5 to 8: A and B.")


def test_without_two_owners_nothing_is_red():
    text = svg.render(replace(drawing(8), overlaps=(), loop=None, arrows=()))
    assert not re.search(r'class="(hatch|frame|veil|x|[^"]*\br\b[^"]*)"', text)


def test_the_loop_is_marked():
    assert "again and again" in svg.render(drawing(8))
    assert "nothing else ever happens" in svg.render(replace(drawing(8), loop=(8, 8)))
    assert "again" not in svg.render(replace(drawing(8), loop=None))


def test_a_long_picture_goes_on_below():
    short, long = (parsed(svg.render(drawing(n), steps=False)) for n in (20, 60))
    height = [float(root.get("viewBox", "").split()[3]) for root in (short, long)]
    assert height[1] > 2 * height[0]
    assert [t for *_, t in texts(long)].count("coordinator") == 3
    numbers = {t for *_, t in texts(long)}
    assert {str(n) for n in range(1, 61)} <= numbers


def test_nothing_in_it_runs_or_is_loaded():
    text = svg.render(drawing(8, HOSTILE, (HOSTILE, HOSTILE + "2", "C")), standalone=True)
    root = parsed(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "defs", "pattern", "path", "circle", "rect", "text",
    }  # fmt: skip
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert text.count("://") == 1  # the name space
    assert "@import" not in text
    assert "\u202e" not in text
    assert "\ufdfd" not in text


def test_several_fit_into_one_page():
    roots = [parsed(svg.render(drawing(8), prefix=prefix)) for prefix in ("a1", "b2")]
    ids = [{e.get("id") for e in root.iter() if e.get("id")} for root in roots]
    assert not ids[0] & ids[1]
    assert all(name.startswith("a1") for name in ids[0] if name)
    style = roots[0].findtext(f"{SVG}style", "")
    assert all(
        rule.strip().startswith(("#a1", "@media")) for rule in re.findall(r"([^{}]+)\{[^{}]*\}", style)
    )
    assert set(re.findall(r"url\(#([^)]+)\)", style)) <= ids[0]
    assert roots[0].get("aria-labelledby") == "a1-title a1-desc"
    assert roots[0].get("role") == "img"


def test_a_picture_of_nothing():
    assert crowded(svg.render(OwnershipDiagram(title="nothing", columns=()))) == []
    assert mermaid.render(OwnershipDiagram(title="nothing", columns=())).startswith("sequenceDiagram\n")


@pytest.mark.slow
def test_equal_pictures_are_equal_bytes():
    program = (
        "from tests.report.test_svg import *; import sys; "
        "sys.stdout.write(svg.render(drawing(30)) + mermaid.render(drawing(30)))"
    )
    root = Path(__file__).parents[2]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PATH": ""}, cwd=root,
            capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


# --- Mermaid --------------------------------------------------------------------------------------


def test_mermaid_tells_the_messages_and_who_owned_it_twice(expected):
    lines = mermaid.render(drawing(8)).splitlines()
    expected("\n".join(lines[:6]), "1")
    expected(lines[lines.index("    rect rgba(193, 18, 31, 0.25)") + 1], "2")
    assert "    m0->>c: JoinGroup, generation 0" in lines
    assert "    m1-xc: SyncGroup, generation 4" in lines
    assert "    c-->>m2: Heartbeat, generation 5: UNKNOWN_MEMBER_ID" in lines
    assert lines.count("    end") == 1


def test_mermaid_keeps_the_last_steps_and_its_size():
    lines = mermaid.render(drawing(64)).splitlines()
    assert "    note over m0,c: steps before this are left out" in lines
    assert "    m0->>c: JoinGroup, generation 24" in lines
    assert not any("generation 23" in line for line in lines)
    marks = tuple(EventMark(n // 100, "A", "x" * 100) for n in range(6400))
    assert len(mermaid.render(replace(drawing(64), marks=marks))) <= 50_000


@pytest.mark.parametrize("name", [HOSTILE, "end", "as", "", "a;b", "a#b", "<br/>", "participant x"])
def test_mermaid_names_are_only_names(name):
    text = mermaid.render(drawing(8, name or "t-0", (name, "B" + name, "C")))
    assert text.isascii()
    for line in text.splitlines()[1:]:
        assert re.fullmatch(
            r"    (participant (m\d|c) as \S.*|note over [mc]\d?(,[mc]\d?)?: .+|rect rgba\([\d, .]+\)|end"
            r"|[mc]\d?--?(>>|x)[mc]\d?: .+)", line,
        ), line  # fmt: skip
        assert not re.search(r"[;#<>{}%]", re.sub(r"--?>>", "", line)), line
        assert not line.endswith((" as end", " as as", ": end"))


# --- in a browser ---------------------------------------------------------------------------------

MEASURE = """<script>
const out = [];
for (const svg of document.querySelectorAll('svg')) {
  const box = svg.getBoundingClientRect();
  const edge = (r) => r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1;
  const all = [...svg.querySelectorAll('text')].map(e => [e.getBoundingClientRect(), e.textContent]);
  for (const [r, s] of all)
    if (edge(r)) out.push('leaves: ' + s);
  for (let i = 0; i < all.length; i++) for (let j = i + 1; j < all.length; j++) {
    const [a, b] = [all[i][0], all[j][0]];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 5) out.push('overlap: ' + all[i][1] + ' | ' + all[j][1]);
  }
}
document.title = 'measured ' + document.querySelectorAll('svg text').length + ' ' + JSON.stringify(out);
</script>"""


@pytest.mark.slow
def test_in_a_browser_nothing_overlaps(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("needs chromium")
    drawn = [drawing(25), drawing(64, people=("orders-consumer-" * 9 + "1", "漢字" * 30, HOSTILE))]
    drawn.append(replace(drawing(8), unit="round"))
    page = tmp_path / "page.html"
    parts = [svg.render(one, prefix=f"p{n}") for n, one in enumerate(drawn)]
    page.write_text(f"<!doctype html><meta charset=utf-8>{''.join(parts)}{MEASURE}", encoding="utf-8")
    ran = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--user-data-dir={tmp_path / 'user'}", "--window-size=1300,900", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    title = re.search(r"<title>(measured \d+ .*?)</title>", ran.stdout)
    assert title is not None
    assert re.fullmatch(r"measured [1-9]\d{2,} \[\]", title[1]), title[1]
