"""The paper as one HTML file: numbered sections, a table of contents, nothing from elsewhere, no script.

Markdown is rendered by markdown-it-py. Ours are the numbers, the contents, and pictures that lie in the page.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLE = Path(__file__).with_name("page.css")

PLAIN, APPENDIX = ("Abstract",), "Appendix: "
"""Sections without a number, and how the title of one begins that has a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """``level`` is 2 for a section. ``number`` is how it begins, ``label`` how others speak of it; both are
    empty for a section that has none."""

    level: int
    number: str
    label: str
    title: str
    anchor: str


def render(text: str, folder: Path) -> str:
    """The page of a Markdown text, whose pictures are found from ``folder``.

    Raises ValueError for HTML in the text that is no comment, for a link to a heading that is not there, and
    for a text that does not begin with its title.
    """
    parser = MarkdownIt("commonmark").enable("table")
    tokens = [token for token in parser.parse(text) if not _is_comment(token)]
    if not tokens or tokens[0].tag != "h1":
        raise ValueError("a paper begins with its title, a heading of the first level")
    found = dict(_headings(tokens))
    labels = {heading.anchor: heading.label for heading in found.values()}
    for index, heading in found.items():
        _number(tokens, index, heading)
    for token in tokens:
        if token.children:
            token.children = list(_inline(token.children, labels, folder))
    first = min(found, default=len(tokens))
    opening, body = (
        parser.renderer.render(part, parser.options, {}) for part in (tokens[:first], tokens[first:])
    )
    return _document(tokens[1].content, opening, _contents(found.values()), _scrolling(body))


def anchor_of(title: str) -> str:
    """The name of a heading in links, as GitHub makes it.

    >>> anchor_of("What is asked: safety, and liveness")
    'what-is-asked-safety-and-liveness'
    """
    return re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")


def _is_comment(token: Token) -> bool:
    if token.type != "html_block":
        return False
    if re.fullmatch(r"(<!--(?s:.*?)-->\s*)+", token.content):
        return True
    raise ValueError(f"HTML in the text: {token.content.strip()[:60]}")


# -- headings ------------------------------------------------------------------------------------------


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, Heading]]:
    """Where each section begins, from the second level on, with its number."""
    sections, appendices, parts, number = 0, 0, 0, ""
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.tag not in ("h2", "h3"):
            continue
        title = tokens[index + 1].content
        anchor, level = anchor_of(title), int(token.tag[1])
        if token.tag == "h3":
            parts += 1
            shown = f"{number}.{parts}"
            yield index, Heading(level=level, number=shown, label=f"§{shown}", title=title, anchor=anchor)
        elif title.startswith(APPENDIX):
            number, appendices, parts = chr(ord("A") + appendices), appendices + 1, 0
            label, title = f"Appendix {number}", title.removeprefix(APPENDIX)
            yield index, Heading(level=level, number=f"{label}:", label=label, title=title, anchor=anchor)
        elif title in PLAIN:
            yield index, Heading(level=level, number="", label="", title=title, anchor=anchor)
        else:
            sections, parts = sections + 1, 0
            number = str(sections)
            yield index, Heading(level=level, number=number, label=f"§{number}", title=title, anchor=anchor)


def _number(tokens: Sequence[Token], index: int, heading: Heading) -> None:
    tokens[index].attrSet("id", heading.anchor)
    children = tokens[index + 1].children or []
    children[0].content = children[0].content.removeprefix(APPENDIX)
    if heading.number:
        children.insert(0, Token("text", "", 0, content=f"{heading.number} "))


def _contents(headings: Iterable[Heading]) -> str:
    return "\n".join(
        f'<li class="l{one.level}"><a href="#{one.anchor}">'
        f"{escape(' '.join(filter(None, (one.number, one.title))))}</a></li>"
        for one in headings
    )


# -- inside of a paragraph -----------------------------------------------------------------------------


def _inline(children: Sequence[Token], labels: Mapping[str, str], folder: Path) -> Iterator[Token]:
    """Links within the page with the number of what they lead to, pictures as data."""
    label = ""
    for token in children:
        if token.type == "html_inline":
            raise ValueError(f"HTML in the text: {token.content[:60]}")
        if token.type == "image":
            token.attrSet("src", _data(folder / str(token.attrs["src"])))
        if token.type == "link_open" and str(token.attrs["href"]).startswith("#"):
            anchor = str(token.attrs["href"])[1:]
            if anchor not in labels:
                raise ValueError(f"no heading is called #{anchor}")
            label = labels[anchor]
        yield token
        if token.type == "link_close" and label:
            yield Token("text", "", 0, content=f" ({label})")
            label = ""


def _data(picture: Path) -> str:
    return f"data:image/svg+xml;base64,{b64encode(picture.read_bytes()).decode()}"


# -- the whole -----------------------------------------------------------------------------------------


def _scrolling(html: str) -> str:
    """Tables that are wider than a phone move by themselves."""
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def _document(title: str, opening: str, contents: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{escape(title)}</title>
<style>
{STYLE.read_text(encoding="utf-8").strip()}
</style>
</head>
<body>
<main>
{opening.strip()}
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
{body.strip()}
</main>
</body>
</html>
"""
