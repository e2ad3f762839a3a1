"""Pages and help keep the rules of ``tests.prose``; docstrings begin with a verb or noun."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from rebalance_verifier.cli.main import build_parser

from tests import prose
from tests.trees import statements, tree

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = (
    *("api", "base", "model", "properties", "explore", "specs", "live", "gate", "pipeline", "traces"),
    *("report", "cli"),
)

_VERBS = """
Abort Accept Add Adopt Advance Allow Annotate Answer Append Apply Arrange Ask Assert Assign Begin Bind Bring
Build Call Cancel Catch Change Check Choose Clean Close Collect Combine Commit Compare Compile Complete
Compute Confine Confirm Connect Convert Copy Count Create Cut Decide Declare Decode Delete Deliver Describe
Do Draw Drop Encode Encrypt End Enlarge Enter Estimate Expand Explain Explore Export Extend Fail Feed Fetch
Fill Find Finish Fire Fit Flush Fold Follow Forget Format Free Fuse Generate Get Give Go Group Hand Handle
Hash Have Hide Hold Import Insert Join Judge Keep Kill Lead Learn Leave Let Limit Link List Load Lock Look
Lose Make Map Mark Match Measure Mend Merge Move Name Normalise Note Number Open Order Pack Parse Pass Pause
Pay Pick Place Play Poll Prepare Print Produce Prove Pull Push Put Raise Reach Read Receive Record Refuse
Register Release Remember Remove Rename Render Repeat Replace Replay Report Require Reset Resolve Restore
Return Revoke Run Save Say Search Seek Select Send Serve Set Settle Shorten Show Shrink Shut Sign Skip Sleep
Solve Sort Split Start State Step Stop Store Strip Sum Summarise Take Tell Test Translate Try Turn Undo
Unlock Update Use Visit Wait Walk Warn Watch Work Wrap Write Yield
"""
VERBS = frozenset(_VERBS.split())
"""Verbs with which a docstring begins."""

NOUNS = re.compile(
    r"(?:(?:The|An?|Each|Every) )?(?:static |classic |late |new )?(?:"
    r"members?|coordinators?|groups?|partitions?|topics?|assignors?|leaders?|followers?|consumers?|brokers?|"
    r"generations?|epochs?|assignments?|claims?|heartbeats?|subscriptions?|rebalances?|listeners?|offsets?|"
    r"JoinGroup|SyncGroup|LeaveGroup|Heartbeat|OffsetCommit|ConsumerGroupHeartbeat|EAGER|COOPERATIVE|KIP-\d+|KAFKA-\d+|"
    r"on[A-Z]\w+|max\.poll\.\S+|group\.\S+|[A-Z]+(?:_[A-Z]+)+|[A-Z]\d+\b|``[^`]+``|`[^`]+`)",
    re.I,
)
"""Kafka's nouns, names of its methods, errors and bugs, and names in the code."""

FLOOR = 0.82
"""Share of docstrings of functions that begin so; it rises."""


MOST_IMPORTED = 300
"""Functions and classes whose docstrings, and those of their public methods, all begin so."""

PRONOUNS = re.compile(r"(what|whether|the same|whose|whom|whoever|who)\b", re.I)
"""Words with which no docstring begins."""


@cache
def sources() -> dict[str, str]:
    """Read each module of the product, by its dotted name without the package."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
            encoding="utf-8"
        )
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def imported() -> list[tuple[str, str]]:
    """List (module, name) of what the product imports from itself, the most frequent first."""
    counted = Counter(
        (node.module, alias.name)
        for source in sources().values()
        for node, _ in statements(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rebalance_verifier.")
        for alias in node.names
    )
    return [(str(module), name) for (module, name), _ in counted.most_common()]


def docstrings() -> Iterator[tuple[ast.AST, str]]:
    """Yield each function and class with its docstring."""
    for source in sources().values():
        for node, _ in statements(source):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                text := ast.get_docstring(node)
            ):
                yield node, text


def begins_well(text: str) -> bool:
    return text.split()[0].strip(",.:;") in VERBS or NOUNS.match(text) is not None


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("What is saved lies below.", "subject what"),
        ("Whoever calls waits.", "subject whoever"),
        ("The same of another step.", "begins with the same"),
        ("Groups seldom see that.", "word seldom"),
        (" ".join(["word"] * 26) + ".", "26 words"),
    ],
)
def test_a_fault_is_found(sentence: str, fault: str) -> None:
    assert fault in list(prose.faults(sentence))


@pytest.mark.parametrize("sentence", ["What is a clause?", "It says what is wrong.", " ".join(["word"] * 25)])
def test_plain_sentences_have_no_fault(sentence: str) -> None:
    assert list(prose.faults(sentence)) == []


def test_a_page_is_read_as_people_read_it() -> None:
    page = (
        "# What\n\nOne [link](a.md) and `some code here`. Two.\n\n```sh\nWhat\n```\n\n- three\n- four: Five\n"
    )
    assert [*prose.sentences(page)] == ["One link and CODE.", "Two.", "three", "four", "Five"]


def test_a_list_of_names_is_one_word() -> None:
    (sentence,) = prose.sentences("A: {t0-0, t0-1, t10-2 and 3 more} since 4.3.1, 4.4.0.")
    assert sentence == "A: {NAMES and 3 more} since NAMES."


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_are_plain(page: Path) -> None:
    faults = prose.of_page(page)
    assert not faults, "\n".join(f"{fault}: {sentence}" for fault, sentence in faults)


def test_help_is_plain() -> None:
    wrong = []
    for name, parser in build_parser().commands().items():
        texts = [parser.description, parser.epilog, *(group.description for group in parser._action_groups)]
        for text in (*texts, *(action.help for action in parser._actions)):
            sentences = prose.sentences((text or "").replace("%%", "%"))
            wrong += [(name, fault, sentence) for sentence in sentences for fault in prose.faults(sentence)]
    assert wrong == []


def test_the_catalogue_is_plain() -> None:
    bugs = tomllib.loads((ROOT / "model" / "bugs" / "catalogue.toml").read_text(encoding="utf-8"))["bug"]
    wrong = [
        (bug["id"], fault, sentence)
        for bug in bugs
        for text in (bug["title"], bug["story"])
        for sentence in prose.sentences(text)
        for fault in prose.faults(sentence)
    ]
    assert bugs
    assert wrong == []


def test_docstrings_begin_with_a_verb_or_a_noun_of_kafka() -> None:
    texts = [text for node, text in docstrings() if not isinstance(node, ast.ClassDef)]
    well = sum(map(begins_well, texts))
    assert well / len(texts) >= FLOOR, f"{well} of {len(texts)}"
    assert not begins_well("What a member owns.")
    assert not begins_well("Whether it settles.")
    assert not begins_well("The same of another step.")


def test_no_docstring_begins_with_a_pronoun() -> None:
    assert {text.split("\n")[0] for _, text in docstrings() if PRONOUNS.match(text)} == set()
    assert PRONOUNS.match("What a member owns.")
    assert PRONOUNS.match("The same of another step.")


def test_docstrings_of_names_that_are_imported_most_begin_so() -> None:
    wrong, left = [], MOST_IMPORTED
    trees = {f"rebalance_verifier.{module}": tree(source) for module, source in sources().items()}
    for module, name in imported():
        for node in trees[module].body if module in trees and left else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                left -= 1
                public = [node, *(node.body if isinstance(node, ast.ClassDef) else ())]
                wrong += [
                    f"{module}.{name}: {text}"
                    for part in public
                    if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")
                    if (text := ast.get_docstring(part)) and not begins_well(text)
                ]
    assert left == 0
    assert wrong == []
