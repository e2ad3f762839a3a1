"""The shell of every HTML page: one style, one policy, and no way to put text in without escaping it.

A page asks for nothing: no script, no font, no picture, no style sheet from elsewhere, and its policy forbids
all of that. What is not ``Markup`` is text from outside, and every function here escapes it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count as counter
from typing import Any
from urllib.parse import urlsplit

from rebalance.gate.cli.console.text import clean, count, cut
from rebalance.gate.report.diagram import svg
from rebalance.gate.report.diagram.diagram import OwnershipDiagram

MOST_TEXT = 300
"""Characters of one value from outside."""

MOST_ROWS = 200
"""Rows of one table."""

MOST = 4 * 1024 * 1024
"""Bytes of one page, unless the page says otherwise."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Of every page (``Content-Security-Policy``): nothing runs, nothing is loaded, its own styles apply."""


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


_SIMPLE = re.compile(r"[A-Za-z0-9_#.:/-]+\Z")
_VOID = frozenset({"meta", "br", "hr"})


def text(value: object, most: int = MOST_TEXT) -> Markup:
    """A value as HTML: on one line, at most ``most`` columns, nothing in it that a browser obeys."""
    if isinstance(value, Markup):
        return value
    shown = "" if value is None else str(value)[: 10 * most]  # which is enough, and may be megabytes
    return Markup(html.escape(cut(clean(shown), most)))


def lines(value: str, most: int = 20_000) -> Markup:
    """Text of several lines for a ``pre``, the end left out where it is longer than ``most`` characters."""
    shown = value[:most] + (f"\n... ({len(value) - most:,} characters left out)" if len(value) > most else "")
    return Markup("\n".join(html.escape(clean(line)) for line in shown.split("\n")))


def join(*parts: object) -> Markup:
    """The parts one after the other."""
    return Markup("".join(map(text, parts)))


def tag(name: str, /, *parts: object, **attributes: object) -> Markup:
    """An element. Attributes: ``class_`` is ``class``, ``aria_label`` is ``aria-label``; None leaves one out.

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
    """A link where ``url`` is one of http or https, otherwise the label alone."""
    try:
        found = urlsplit(url)
        safe = found.scheme in ("http", "https") and bool(found.hostname) and url.isprintable()
    except ValueError:
        safe = False
    if not safe or " " in url or len(url) > 2000:
        return text(label or url)
    return tag("a", label or url, href=url, rel="noopener noreferrer")


def code(value: object, most: int = MOST_TEXT) -> Markup:
    """A word that a program reads."""
    return tag("code", text(value, most))


def scroll(label: object, *parts: object, class_: str = "") -> Markup:
    """What may be wider than the page, in a box that scrolls, also by keyboard. No two labels of a page may
    be equal: ``document`` sees to that."""
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
    most: int = MOST_ROWS,
    class_: str | None = None,
) -> Markup:
    """A table, the first cell of each row its head. ``numbers`` are columns of figures; a row after the
    first ``most`` is left out, and counted below."""
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
    """A remark."""
    return tag("p", *parts, class_="dim")


def facts(pairs: Iterable[tuple[object, object]]) -> Markup:
    """Names and values; a pair without a value is left out."""
    return tag(
        "dl", *(join(tag("dt", name), tag("dd", value)) for name, value in pairs if value not in ("", None))
    )


def listed(items: Iterable[object], most: int = MOST_ROWS, ordered: bool = False) -> Markup:
    """A list; an item after the first ``most`` is left out, and counted."""
    kept = list(items)
    shown = [tag("li", item) for item in kept[:most]]
    if len(kept) > most:
        shown.append(tag("li", f"and {len(kept) - most:,} more", class_="dim"))
    return tag("ol" if ordered else "ul", *shown)


def section(name: str, title: object, *parts: object) -> Markup:
    """A part of the page with a heading; ``name`` is its id. Nothing where there is nothing in it."""
    body = join(*parts)
    if not body:
        return Markup("")
    return tag("section", tag("h2", title, id=name), body)


def details(summary: object, *parts: object, open_: bool = False) -> Markup:
    """What is shown on demand."""
    return tag("details", tag("summary", summary), *parts, open=open_)


def pre(label: object, value: str, most: int = 20_000) -> Markup:
    """Text as it is, in a box that scrolls."""
    return scroll(label, tag("pre", lines(value, most)))


def figure(label: str, draw: Callable[[], OwnershipDiagram], name: str, *, steps: bool = False) -> Markup:
    """A picture, in a box that scrolls where the window is narrow. ``name-chart`` begins the ids in it.

    ``steps``: with what happens in words below it.
    """
    return tag("figure", scroll(label, Markup(svg.render(draw(), prefix=f"{name}-chart", steps=steps))))


def badge(word: object, kind: str) -> Markup:
    """A word on a colour; ``kind`` is ``good``, ``bad``, ``warn`` or ``info``, or a verdict."""
    return tag("b", word, class_=kind)


def headline(line: str, kind: str) -> Markup:
    """The first line of a report as heading: its first word is the verdict."""
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
    """One thing that is broken: a heading with its mark, whose id is ``name``, and all about it."""
    heading = tag("h3", mark, f" {title} ", tag("span", small, class_="dim") if small else "", id=name)
    return tag("article", heading, *parts, class_="mild" if mild else None, aria_labelledby=name)


def report(
    command: str,
    line: str,
    verdict: str,
    named: Iterable[tuple[object, object]],
    *sections: Markup,
    foot: str,
) -> str:
    """The page of what a command found: its headline, named figures, the sections."""
    head = join(headline(line, verdict), facts(named))
    return document(f"rebalance {command}: {line}", head, *sections, foot=foot)


def document(title: str, head: Markup, *sections: Markup, foot: object = "", contents: bool = True) -> str:
    """The whole page. ``contents``: with links to its sections, where there are several."""
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
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("style", Markup(STYLE)),
    )
    return (
        f"<!DOCTYPE html>\n{tag('html', tag('head', top), tag('body', Markup(_unique(inner))), lang='en')}\n"
    )


def _unique(body: str) -> str:
    """Every region with a name of its own, as landmarks need it: the second of a name is numbered."""
    seen: dict[str, counter[int]] = {}

    def named(found: re.Match[str]) -> str:
        label = found[1].strip('"')
        number = next(seen.setdefault(label, counter(1)))
        return f'role=region aria-label="{label}{f" ({number})" if number > 1 else ""}"'

    return re.sub(r'role=region aria-label=("[^"]*"|[^\s>]+)', named, body)


STYLE = """
:root { color-scheme: light dark; --fg: #1b1f24; --dim: #59636e; --bg: #fff; --soft: #f6f8fa; --line: #d7dce1;
  --link: #0550ae; --bad: #b3261e; --good: #1a7f37; --warn: #8a5a00; --info: #0550ae; --on: #fff;
  --heat: 9 105 218; --red: 179 38 30 }
@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --dim: #9aa4ae; --bg: #0d1117; --soft: #161b22;
  --line: #30363d; --link: #6cb6ff; --bad: #ff8a80; --good: #56d364; --warn: #e3b341; --info: #79c0ff;
  --on: #0d1117; --heat: 56 139 253; --red: 248 81 73 } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 0 auto; padding: 1.5rem 1rem 3rem;
  color: var(--fg); background: var(--bg); overflow-wrap: anywhere }
h1 { font-size: 1.4rem; line-height: 1.35; margin: .2rem 0 .8rem }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line) }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem } h4 { font-size: 1rem; margin: 1.2rem 0 .3rem }
p { margin: .4rem 0 } a { color: var(--link) } ul, ol { padding-left: 1.4rem; margin: .3rem 0 }
h1 b, h3 b, td b { padding: .08em .5em; border-radius: .3em; color: var(--on); white-space: nowrap;
  font-weight: 600; background: var(--info) }
b.bad, b.violation, b.refuted { background: var(--bad) }
b.good, b.conformant, b.proved { background: var(--good) }
b.warn, b.inconclusive, b.unknown { background: var(--warn) }
.good { color: var(--good) } .bad { color: var(--bad) } .warn { color: var(--warn) }
.dim { color: var(--dim) }
b.good, b.bad, b.warn { color: var(--on) }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .8rem 0 0 }
dl { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr; gap: .15rem 1rem; margin: .6rem 0 }
dt { color: var(--dim) } dd { margin: 0; min-width: 0 } dd ol, dd ul { margin: 0 }
.lead { font-size: 1.05rem }
article { border: 1px solid var(--line); border-left: 4px solid var(--bad); border-radius: .4rem;
  padding: .2rem 1rem 1rem; margin: 1rem 0 } article.mild { border-left-color: var(--info) }
article h3 { margin-top: .8rem }
.scroll { overflow-x: auto; max-width: 100%; margin: .5rem 0 }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px }
table { border-collapse: collapse; min-width: 100%; font-size: .93rem; overflow-wrap: break-word }
td, th { padding: .25rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } tbody th { font-weight: 400 } thead th { background: var(--soft) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td ul { padding-left: 0; list-style: none; margin: 0 } tr.here > * { background: rgb(var(--red) / .12) }
pre { font: 12px/1.35 ui-monospace, monospace; background: var(--soft); padding: .8rem; margin: 0;
  width: max-content; min-width: 100%; overflow-wrap: normal }
code { font: .88em ui-monospace, monospace } summary { cursor: pointer; padding: .15rem 0 }
details { margin: .3rem 0 } figure { margin: .8rem 0 } figcaption { color: var(--dim); font-size: .9rem }
figure svg { display: block; width: 100%; min-width: 56rem; height: auto }
table.clauses td:nth-child(n+3) { white-space: nowrap } table.clauses code { font-size: .93em }
table.heat { width: auto; min-width: 0; font-size: .85rem }
table.heat td, table.heat thead th { text-align: center; padding: .2rem .3rem; min-width: 2.1rem;
  border: 1px solid var(--bg); font-variant-numeric: tabular-nums; white-space: nowrap }
table.heat thead th span { writing-mode: vertical-rl; transform: rotate(180deg); font-weight: 400 }
table.heat thead th { vertical-align: bottom } table.heat tbody th { min-width: 9rem; max-width: 22rem }
.h1 { background: rgb(var(--heat) / .1) } .h2 { background: rgb(var(--heat) / .2) }
.h3 { background: rgb(var(--heat) / .3) } .h4 { background: rgb(var(--heat) / .4) }
table.heat td.hx { background: rgb(var(--red) / .3); padding: .2rem .1rem } .h0 { color: var(--dim) }
@media (max-width: 40rem) { table { min-width: 36rem }
  article { padding: .2rem .6rem .8rem } td, th { padding: .2rem .4rem } }
@media print { body { max-width: none; padding: 0 } nav { display: none } .scroll { overflow: visible }
  article, figure, tr { break-inside: avoid } figure svg { min-width: 0 }
  details:not([open]) { display: none } table { font-size: .8rem } }
"""
