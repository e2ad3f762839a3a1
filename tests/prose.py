"""Sentences of pages and help texts, and the faults of their style: tests/test_style.py holds the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

MAX_WORDS = 25
"""Words of one sentence."""

UNUSED = (
    *(
        "whoever",
        "whosoever",
        "whichever",
        "whatsoever",
        "seldom",
        "somebody",
        "hither",
        "thereof",
        "therein",
    ),
    *("thus", "hence", "of yours", "of ours", "in vain", "no news", "told apart", "is told"),
    *("comes of it", "stands for itself", "as it were", "beside each other", "of its own accord"),
)
"""Words and turns that we do not use: there is a plain one."""

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_GENERATED = re.compile(r"<!-- generated from here on.*?(?=<!-- to here -->|\Z)", re.S)
_TABLE = re.compile(r"^\|.*$|^#+ .*$", re.M)
_LINK = re.compile(r"!?\[((?:[^\]\\]|\\.)*)\]\([^)]*\)")
_CODE = re.compile(r"(`+).+?\1")
_NAMES = re.compile(r"[\w.\\-]*\d(?:[\w.-]*\w)?(?:, [\w.\\-]*\d(?:[\w.-]*\w)?)+")
"""Partitions, members or releases in a row: people look one up, and read none."""

_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|no|fig)\.", re.I)


def sentences(text: str, tables: bool = False) -> Iterator[str]:
    """Yield the sentences of a page: no headings, code blocks, tables, generated parts.

    Code counts as one word, and so does a list of names.
    """
    text = _GENERATED.sub("\n", text)
    text = _COMMENT.sub("", _FENCE.sub("\n\n", text))
    if not tables:
        text = _TABLE.sub("\n", text)
    text = _CODE.sub("CODE", _LINK.sub(r"\1", text))
    text = _NAMES.sub("NAMES", _ABBREVIATIONS.sub(r"\1", text))
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |#|>))|(?<=\|)\n", text):
        plain = re.sub(r"^[\s>#*-]+|^\s*\d+\. ", "", paragraph)
        plain = " ".join(re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}(?=\W|$)", "", plain).split())
        for sentence in re.split(r"(?<=[.!?])[\"')]*\s+(?=\S)|:\s+(?=[A-Z])", plain):
            if sentence.strip(" |"):
                yield sentence.strip(" |")


def faults(sentence: str) -> Iterator[str]:
    """Yield what is wrong with a sentence."""
    question = sentence.endswith("?")
    if not question and (found := re.match(r"(what|who|whoever|whose|that which|whether)\b", sentence, re.I)):
        yield f"subject {found[1].lower()}"
    if re.match(r"the same\b", sentence, re.I):
        yield "begins with the same"
    for word in UNUSED:
        if re.search(rf"\b{word}\b", sentence, re.I):
            yield f"word {word}"
    if (length := len(re.findall(r"[\w'’./+@-]*\w[\w'’./+@-]*", sentence))) > MAX_WORDS:
        yield f"{length} words"


def of_page(path: Path) -> list[tuple[str, str]]:
    """Return each fault of a page with its sentence."""
    return [
        (fault, sentence)
        for sentence in sentences(path.read_text(encoding="utf-8"))
        for fault in faults(sentence)
    ]
