"""The shell of every HTML page: one style, one policy, and no way to put text in without escaping it.

A page asks for nothing: no script, no font, no picture, no style sheet from elsewhere, and its policy forbids
all of that. Its one script (``page.js``) adds stepping and filters to what is whole without it. What is not
``Markup`` is text from outside, and every function here escapes it.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources
from itertools import count as counter
from typing import Any
from urllib.parse import urlsplit
from zlib import compress

from rebalance_verifier.base.text import clean, count, cut
from rebalance_verifier.model.steps import StepView
from rebalance_verifier.report.diagram import svg
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram

MAX_TEXT = 300
"""Characters of one value from outside."""

MAX_ROWS = 200
"""Rows of one table."""

MAX_BYTES = 4 * 1024 * 1024
"""Bytes of one page, unless the page says otherwise."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src "
"""Of every page (``Content-Security-Policy``), before the digest of its script: nothing is loaded, nothing
else runs, its own styles apply."""

MAX_STEPPED = 3 * 1024 * 1024
"""Bytes of the steps of one run, packed."""


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


_SIMPLE = re.compile(r"[A-Za-z0-9_#.:/-]+\Z")
_VOID = frozenset({"meta", "br", "hr"})


def text(value: object, most: int = MAX_TEXT) -> Markup:
    """Return a value as HTML: on one line, at most ``most`` columns, nothing in it that a browser obeys."""
    if isinstance(value, Markup):
        return value
    shown = "" if value is None else str(value)[: 10 * most]  # which is enough, and may be megabytes
    return Markup(html.escape(cut(clean(shown), most)))


def lines(value: str, most: int = 20_000) -> Markup:
    """Return text of several lines for a ``pre``, the end left out where it is longer than ``most``
    characters."""
    shown = value[:most] + (f"\n... ({len(value) - most:,} characters left out)" if len(value) > most else "")
    return Markup("\n".join(html.escape(clean(line)) for line in shown.split("\n")))


def join(*parts: object) -> Markup:
    """Return the parts one after the other."""
    return Markup("".join(map(text, parts)))


def tag(name: str, /, *parts: object, **attributes: object) -> Markup:
    """Return an element. Attributes: ``class_`` is ``class``, ``aria_label`` is ``aria-label``; None leaves
    one out.

    >>> tag("td", "a < b", class_="n")
    '<td class=n>a &lt; b</td>'
    """
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{written}>" + ("" if name in _VOID else f"{join(*parts)}</{name}>"))


def _attribute(name: str, value: object) -> str:
    if value is True:
        return f" {name}"
    shown = clean(str(value))
    return f" {name}={shown}" if _SIMPLE.match(shown) else f' {name}="{html.escape(shown)}"'


def link(url: str, label: object = "") -> Markup:
    """Return a link where ``url`` is one of http or https, otherwise the label alone."""
    try:
        found = urlsplit(url)
        safe = found.scheme in ("http", "https") and bool(found.hostname) and url.isprintable()
    except ValueError:
        safe = False
    if not safe or " " in url or len(url) > 2000:
        return text(label or url)
    return tag("a", label or url, href=url, rel="noopener noreferrer")


def code(value: object, most: int = MAX_TEXT) -> Markup:
    """Return a word that a program reads."""
    return tag("code", text(value, most))


def scroll(label: object, *parts: object, class_: str = "") -> Markup:
    """Return what may be wider than the page, in a box that scrolls, also by keyboard. No two labels of a
    page may be equal: ``document`` sees to that."""
    return tag(
        "div", *parts, class_=f"scroll {class_}".strip(), tabindex=0, role="region",
        aria_label=cut(clean(str(label)), 150),
    )  # fmt: skip


def table(
    label: object,
    heads: Sequence[object],
    rows: Iterable[Sequence[object] | Markup],
    *,
    numbers: Sequence[int] = (),
    most: int = MAX_ROWS,
    class_: str | None = None,
) -> Markup:
    """Return a table, the first cell of each row its head. ``numbers`` are columns of figures; a row after
    the first ``most`` is left out, and counted below."""
    kept = list(rows)
    heading = tag("tr", *(_cell("th", head, at in numbers, scope="col") for at, head in enumerate(heads)))
    body = [row if isinstance(row, Markup) else _row(row, numbers) for row in kept[:most]]
    whole = tag("table", tag("thead", heading), tag("tbody", *body), class_=class_)
    more = len(kept) - most
    return join(scroll(label, whole), dim(f"{count(more, 'more row')} left out here") if more > 0 else "")


def _row(values: Sequence[object], numbers: Sequence[int]) -> Markup:
    first, *rest = values
    cells = (_cell("td", value, at in numbers) for at, value in enumerate(rest, 1))
    return tag("tr", _cell("th", first, 0 in numbers, scope="row"), *cells)


def _cell(name: str, value: object, number: bool, **attributes: Any) -> Markup:
    if isinstance(value, Markup) and value.startswith(("<td", "<th")):
        return value
    return tag(name, value, class_="n" if number else None, **attributes)


def dim(*parts: object) -> Markup:
    """Return a remark."""
    return tag("p", *parts, class_="dim")


def facts(pairs: Iterable[tuple[object, object]]) -> Markup:
    """Return names and values; a pair without a value is left out."""
    return tag(
        "dl", *(join(tag("dt", name), tag("dd", value)) for name, value in pairs if value not in ("", None))
    )


def listed(items: Iterable[object], most: int = MAX_ROWS, ordered: bool = False) -> Markup:
    """Return a list; an item after the first ``most`` is left out, and counted."""
    kept = list(items)
    shown = [tag("li", item) for item in kept[:most]]
    if len(kept) > most:
        shown.append(tag("li", f"and {len(kept) - most:,} more", class_="dim"))
    return tag("ol" if ordered else "ul", *shown)


def section(name: str, title: object, *parts: object) -> Markup:
    """Return a part of the page with a heading; ``name`` is its id. Nothing where there is nothing in it."""
    body = join(*parts)
    if not body:
        return Markup("")
    return tag("section", tag("h2", title, id=name), body)


def folded(name: str, title: object, *parts: object) -> Markup:
    """Return a section that is shown on demand, its heading always."""
    body = join(*parts)
    return section(name, title, details("show", body)) if body else Markup("")


def details(summary: object, *parts: object, open_: bool = False, class_: str | None = None) -> Markup:
    """Return what is shown on demand."""
    return tag("details", tag("summary", summary), *parts, open=open_, class_=class_)


def pre(label: object, value: str, most: int = 20_000) -> Markup:
    """Return text as it is, in a box that scrolls."""
    return scroll(label, tag("pre", lines(value, most)))


def figure(label: str, draw: Callable[[], OwnershipDiagram], name: str, *, steps: bool = False) -> Markup:
    """Return a picture, in a box that scrolls where the window is narrow. ``name-chart`` begins the ids in
    it.

    ``steps``: with what happens in words below it.
    """
    return tag("figure", scroll(label, Markup(svg.render(draw(), prefix=f"{name}-chart", steps=steps))))


def stepper(label: str, views: Iterable[StepView], name: str, unit: str = "step") -> Markup:
    """Return a run to step through, where scripts run; ``name`` is that of its ``figure``, ``unit`` what a
    step is.

    Each view is [label, what happens, is it a fault, what shows, {name: its line if that has changed}], where
    null is the line of who is gone. Nothing where all of them are too large.
    """
    rows: list[list[object]] = []
    last: dict[str, str] = {}
    for view in views:
        now = {_plain(who): _plain(line) for who, line in view.parties}
        changed = {who: now.get(who) for who in [*now, *last] if now.get(who) != last.get(who)}
        seen = [_plain(one) for one in view.seen[:20]]
        rows.append([view.label, _plain(view.what), int(view.fault), seen, changed])
        last = now
    data = b64encode(compress(json.dumps(rows, separators=(",", ":")).encode(), 9)).decode()
    if len(rows) < 2 or len(data) > MAX_STEPPED:
        return Markup("")
    return tag(
        "div", tag("script", Markup(data), type="application/octet-stream"), class_="stepper", data_name=name,
        data_label=cut(clean(f"Step through {label}"), 150), data_last=len(rows) - 1, data_unit=unit,
    )  # fmt: skip


@lru_cache(4096)
def _plain(value: str) -> str:
    return cut(clean(value[:2000]), 600)


def badge(word: object, kind: str) -> Markup:
    """Return a word on a colour; ``kind`` is ``good``, ``bad``, ``warn`` or ``info``, or a verdict."""
    return tag("b", word, class_=kind)


def headline(line: str, kind: str) -> Markup:
    """Return the first line of a report as heading: its first word is the verdict."""
    word, _, rest = line.partition("  ")
    return tag("h1", badge(word, kind), " ", rest)


def within(parts: Iterable[Markup], most: int) -> tuple[list[Markup], int]:
    """As many of the parts, from the first on, as fit into ``most`` bytes, and how many are left out."""
    kept, left = [], 0
    for part in parts:
        most -= len(part.encode())
        if left or most < 0:
            left += 1
        else:
            kept.append(part)
    return kept, left


def article(
    name: str, mark: Markup, title: object, small: object, *parts: object, mild: bool = False
) -> Markup:
    """Return one thing that is broken: a heading with its mark, whose id is ``name``, and all about it."""
    link = tag("a", "#", href=f"#{name}", class_="link", aria_label=f"link to {title}")
    heading = tag(
        "h3", mark, f" {title} ", tag("span", small, class_="dim") if small else "", " ", link, id=name
    )
    return tag("article", heading, *parts, class_="mild" if mild else None, aria_labelledby=name)


def report(
    command: str,
    line: str,
    verdict: str,
    named: Iterable[tuple[object, object]],
    *sections: Markup,
    lead: str,
    foot: str,
) -> str:
    """Return the page of a command: its headline, one sentence for everybody, figures, sections."""
    head = join(headline(line, verdict), tag("p", lead, class_="lead"), facts(named))
    return document(f"rebalance {command}: {line}", head, *sections, foot=foot)


def document(title: str, head: Markup, *sections: Markup, foot: object = "", contents: bool = True) -> str:
    """Return the whole page. ``contents``: with links to its sections, where there are several."""
    body = "".join(sections)
    found = re.findall(r"<section><h2 id=([\w-]+)>(.*?)</h2>", body) if contents else []
    links = [tag("li", tag("a", Markup(re.sub("<[^>]*>", "", name)), href=f"#{at}")) for at, name in found]
    nav = tag("nav", tag("ul", *links), aria_label="Contents") if len(links) > 1 else ""
    inner = join(
        tag("header", head, nav),
        tag("main", Markup(body)),
        tag("footer", dim(foot)) if foot else "",
    )
    top = join(
        tag("meta", charset="utf-8"),
        tag("title", title),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY + _digest()),
        tag("style", Markup(_own("page.css"))),
    )
    whole = tag("body", Markup(_unique(inner)), tag("script", Markup(_own("page.js"))))
    return f"<!DOCTYPE html>\n{tag('html', tag('head', top), whole, lang='en')}\n"


@cache
def _own(name: str) -> str:
    return "\n" + resources.files(__package__).joinpath(name).read_text("utf-8")


@cache
def _digest() -> str:
    return f"'sha256-{b64encode(sha256(_own('page.js').encode()).digest()).decode()}'"


def _unique(body: str) -> str:
    """Return every region with a name of its own, as landmarks need it: the second of a name is numbered."""
    seen: dict[str, counter[int]] = {}

    def named(found: re.Match[str]) -> str:
        label = found[1].strip('"')
        number = next(seen.setdefault(label, counter(1)))
        return f'role=region aria-label="{label}{f" ({number})" if number > 1 else ""}"'

    return re.sub(r'role=region aria-label=("[^"]*"|[^\s>]+)', named, body)
