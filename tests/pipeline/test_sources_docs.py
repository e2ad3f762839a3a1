"""``docs/reference/log-formats.md`` says what the tables say; ``UPDATE_DOCS=1 pytest`` writes it anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from rebalance.pipeline.events import Kind
from rebalance.pipeline.sources import LOGGED
from rebalance.pipeline.sources.java import REBOOTSTRAPPING
from rebalance.pipeline.sources.patterns import Line, Source

DOC = Path(__file__).parents[2] / "docs" / "reference" / "log-formats.md"
MARK = "<!-- generated from here on: tests/pipeline/test_sources_docs.py -->\n"
TITLES = {"java": "Java clients", "librdkafka": "librdkafka", "broker": "Broker"}


def shown(line: Line) -> str:
    """The text of a row, with the names of its groups for what they catch."""
    text, out = line.rest, line.start
    while found := re.search(r"\(\?P<([a-z]+)\d?>", text):
        end, depth = found.end(), 1
        for token in re.finditer(r"\\.|\[\^?[^]]*\]|[()]", text[end:]):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if not depth:
                end += token.end()
                break
        out, text = out + text[: found.start()] + f"<{found[1]}>", text[end:]
    return (out + text).strip().replace("|", "\\|").replace("`", "'")


def generated() -> str:
    parts = []
    for source in LOGGED:
        rows = [
            f"| `{shown(line)}` | {line.kind if line.kind in set(Kind) else Kind.RESET} | {line.releases} |"
            for line in source.lines
            if line.kind not in (None, REBOOTSTRAPPING)
        ]
        parts += [
            f"\n## {TITLES[source.name]}\n",
            "| message | event | releases |",
            "|---|---|---|",
            *rows,
        ]
    return "\n".join(parts) + "\n"


def test_the_page_is_of_the_tables():
    fixed, mark, rest = DOC.read_text().partition(MARK)
    if os.environ.get("UPDATE_DOCS"):
        DOC.write_text(fixed + MARK + generated())
    else:
        assert mark, "the mark is missing"
        assert rest == generated(), "UPDATE_DOCS=1 pytest tests/pipeline/test_sources_docs.py"


def test_a_row_that_nothing_reaches_is_refused():
    long, short = Line("Member [", ".*", Kind.LEAVING), Line("Member ", ".*", None)
    assert Source("s", ("m",), "(?P<message>.*)", (long, short)).match("Member [x") == (long, {})
    with pytest.raises(ValueError, match=r"'Member \[' comes after 'Member ', which takes its lines"):
        Source("s", ("m",), "(?P<message>.*)", (short, long))
    with pytest.raises(ValueError, match=r"no such places: \['where'\]"):
        Line("a", "(?P<where>.*)", None)


def test_of_rows_that_begin_alike_the_first_that_fits_is_taken():
    first, second = Line("a ", r"(?P<member>\d+)", Kind.JOINED), Line("a ", "(?P<detail>.*)", None)
    source = Source("s", ("m",), "(?P<message>.*)", (first, second))
    assert source.match("a 7") == (first, {"member": "7"})
    assert source.match("a b") == (second, {"detail": "b"})
    assert source.match("b") is None
