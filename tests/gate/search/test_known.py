"""Lists of known failures: what a line means, what is refused, what is written is exact."""

from __future__ import annotations

import random
from datetime import date

import pytest
from rebalance_verifier.base.known import KnownError
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.search import known
from rebalance_verifier.gate.search.known import KnownFailure
from rebalance_verifier.gate.search.result import ClauseResult, Finding, Status
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach, Clause, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.properties.assignors.scenarios import Scenario

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
TODAY = date(2027, 1, 31)
LIST = """\
# Failures of acme.

kip54/sticky/1          # https://example.org/1
kip429/**-cooperative   # https://example.org/2  until=2027-01-31
*/balance/1-eager       # some day
"""


def row(clause_id, status, protocol=COOPERATIVE, summary=None):
    clause = CLAUSES.get(clause_id) or Clause(
        id=clause_id, level=Level.SAFETY, scope=Scope.CALL, sentence=clause_id, rule="", link="", check=print
    )
    found = None
    if summary is not None:
        scenario = Scenario(protocol=protocol, topics={}, members=())
        found = Finding(
            clause=clause,
            protocol=protocol,
            breach=Breach(summary=summary),
            scenario=scenario,
            round=1,
            calls=(),
            seed=7,
            number=1,
            found_size=(1, 1, 1, 1),
            confirmed=True,
        )
    return ClauseResult(clause=clause, protocol=protocol, status=status, finding=found)


def rows(text):
    """``"a/1 x  b/2-e ."``: x violated, . passed, u unsupported, ? untested, under both protocols or one."""
    tokens = text.split()
    status = {"x": Status.VIOLATED, ".": Status.PASSED, "u": Status.UNSUPPORTED, "?": Status.UNTESTED}
    made = []
    for path, mark in zip(tokens[::2], tokens[1::2], strict=True):
        clause, _, only = path.partition("-")
        protocols = {"": (EAGER, COOPERATIVE), "e": (EAGER,), "c": (COOPERATIVE,)}[only]
        made += [row(clause, status[mark], protocol) for protocol in protocols]
    return made


def patterns(text):
    return [entry.pattern for entry in known.parse(text, "x")]


# --- what a line means ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "clause_id", "means"),
    [
        ("kip54/sticky/1", "kip54/sticky/1-eager", True),
        ("kip54/sticky/1", "kip54/sticky/1-cooperative", True),
        ("kip54/sticky/1-eager", "kip54/sticky/1-eager", True),
        ("kip54/sticky/1-eager", "kip54/sticky/1-cooperative", False),
        ("kip54/sticky/1", "kip54/sticky/12-eager", False),
        ("kip54/sticky", "kip54/sticky/1-eager", False),
        ("kip54/sticky/*", "kip54/sticky/1-eager", True),
        ("kip54/*", "kip54/sticky/1-eager", False),
        ("kip54/*/1", "kip54/sticky/1-eager", True),
        ("*/*/1", "kip54/sticky/1-eager", True),
        ("*/1", "kip54/sticky/1-eager", False),
        ("**", "assign/1-eager", True),
        ("**-cooperative", "assign/1-eager", False),
        ("kip54/**", "kip54/sticky/1-eager", True),
        ("**/1", "kip54/sticky/1-eager", True),
        ("**/sticky/**-eager", "kip54/sticky/1-eager", True),
        ("kip54/**/sticky/1", "kip54/sticky/1-eager", True),
        ("kip429/**", "kip54/sticky/1-eager", False),
    ],
)
def test_patterns(pattern, clause_id, means):
    assert KnownFailure(pattern=pattern).matches(clause_id) is means


def test_parse():
    assert known.parse(LIST, "acme.txt") == (
        KnownFailure(
            pattern="kip54/sticky/1", comment="https://example.org/1", until=None, source="acme.txt", line=3
        ),
        KnownFailure(
            pattern="kip429/**-cooperative",
            comment="https://example.org/2  until=2027-01-31",
            until=TODAY,
            source="acme.txt",
            line=4,
        ),
        KnownFailure(pattern="*/balance/1-eager", comment="some day", until=None, source="acme.txt", line=5),
    )
    assert known.parse("\ufeffa/1 # x\r\n\r\n", "x")[0].pattern == "a/1"
    assert known.parse("", "x") == ()
    assert str(known.parse(LIST, "acme.txt")[0]) == "kip54/sticky/1 (acme.txt:3)"


def test_an_entry_allows_until_its_day_is_over():
    entries = known.parse(LIST, "x")
    clause_id = "kip429/leader/4-cooperative"
    assert known.match(entries, clause_id, TODAY) == entries[1]
    assert known.match(entries, clause_id, date(2027, 2, 1)) is None
    assert known.match(entries, "kip429/leader/5-eager", TODAY) is None


def test_the_first_line_that_allows_it_counts():
    entries = known.parse("a/1 # one until=2020-01-01\na/* # two\n** # three", "x")
    assert known.match(entries, "a/1-eager", TODAY) == entries[1]


def test_unmatched():
    entries = known.parse(LIST, "x")
    assert known.unmatched(entries, ["kip54/sticky/1-eager", "kip54/balance/1-cooperative"]) == entries[1:]
    assert known.unmatched(entries, [f"{c.id}-{p}" for c in TABLE for p in c.protocols]) == ()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a/1", "'a/1' has no reason: add '# <issue url>'"),
        ("a/1  #", "has no reason"),
        ("a/1  # until=2027-01-31", "has no reason"),
        ("a/1 b/2 # x", "holds a space: one pattern per line"),
        ("a/1*  # x", r"'1\*' in 'a/1\*': '\*' and '\*\*' stand for whole parts only"),
        ("a/***  # x", "whole parts only"),
        ("/a/1  # x", "is no pattern: write a clause id"),
        ("a//1  # x", "is no pattern"),
        ("!a/1  # x", "is no pattern"),
        ("a/1  # x until=31.1.2027", r"'until=31\.1\.2027' is no date: write until=YYYY-MM-DD"),
        ("a/1  # x until=2027-02-30", "is no date"),
        ("a/1  # x until=", "'until=' is no date"),
        ("a/1  # x until=2027-01-01 until=2028-01-01", "more than one 'until='"),
    ],
)
def test_refused_lines_are_named(line, message):
    with pytest.raises(KnownError, match=message) as caught:
        known.parse(f"# list\n\n{line}\n", "acme.txt")
    assert str(caught.value).startswith("acme.txt:3: ")


def test_all_wrong_lines_are_named_at_once():
    with pytest.raises(KnownError) as caught:
        known.parse("a/1\na/2 # fine\nb/*x # y\na/2 # again\n", "f")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["f:1", "f:3", "f:4"]
    assert "'a/2' is in line 2 already: remove one" in str(caught.value)


def test_until_inside_a_word_is_no_date():
    assert known.parse("a/1 # see?until=never", "x")[0].until is None


# --- options --------------------------------------------------------------------------------------


def test_read(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeff" + LIST, encoding="utf-8")
    entries = known.read([f"@{tmp_path / 'a.txt'}", "assign/*"])
    assert [e.pattern for e in entries] == [
        "kip54/sticky/1",
        "kip429/**-cooperative",
        "*/balance/1-eager",
        "assign/*",
    ]
    assert entries[0].source == str(tmp_path / "a.txt")
    assert str(entries[3]) == "assign/* (--known-failing)"
    assert known.read([]) == ()


def test_read_names_what_is_wrong(tmp_path):
    gone = tmp_path / "gone.txt"
    with pytest.raises(KnownError, match=r"no file '.*gone\.txt'; --write-known .*gone\.txt makes one"):
        known.read([f"@{gone}"])
    with pytest.raises(KnownError, match=r"--known-flaky: .*: is no file but a directory"):
        known.read([f"@{tmp_path}"], "--known-flaky")
    gone.write_bytes(b"\xff\xfe")
    with pytest.raises(KnownError, match="is not UTF-8"):
        known.read([f"@{gone}"])
    with pytest.raises(KnownError, match="--known-failing: 'a b' holds a space"):
        known.read(["a b"])


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("a/1 . b/1 .", []),
        ("a/1 x", ["a/1"]),
        ("a/1-e x a/1-c .", ["a/1-eager"]),
        ("a/1-e x a/1-c u", ["a/1"]),  # what is not supported did not run
        ("a/1-e x a/1-c ?", ["a/1-eager"]),  # nobody knows
        ("a/1-c x", ["a/1"]),
        ("a/1-c x a/2-c x b/1 .", ["a/1", "a/2"]),
        ("a/1 x a/2 x b/1 .", ["a/1", "a/2"]),
        ("a/1 x a/2 . b/1 .", ["a/1"]),
        ("a/1 x a/2 u b/1 .", ["a/1"]),
        ("a/b/1 x a/b/2 x a/c/1 .", ["a/b/1", "a/b/2"]),
        ("a/1-e x a/2-e x a/1-c . a/2-c .", ["a/1-eager", "a/2-eager"]),
        ("a/1-e x a/2-e x a/1-c . a/2-c x", ["a/1-eager", "a/2"]),
    ],
)
def test_write_is_exact(results, expected):
    text = known.write(rows(results))
    assert patterns(text) == expected


def test_write_is_exact_for_any_outcome():
    ids = ["a/b/1", "a/b/2", "a/3", "c/4"]
    everything = [f"{i}-{p}" for i in ids for p in (EAGER, COOPERATIVE)]
    chosen = random.Random(7)
    for _ in range(150):
        broken = {i for i in everything if chosen.random() < chosen.choice((0.3, 0.8))}
        results = [
            row(i, Status.VIOLATED if f"{i}-{p}" in broken else Status.PASSED, p)
            for i in ids
            for p in (EAGER, COOPERATIVE)
        ]
        entries = known.parse(known.write(results), "x")
        assert [[e.matches(i) for e in entries].count(True) for i in everything] == [
            int(i in broken) for i in everything
        ]
        assert len(entries) == sum(
            1 if {f"{i}-{p}" for p in (EAGER, COOPERATIVE)} <= broken else n
            for i in ids
            if (n := sum(one.startswith(f"{i}-") for one in broken))
        )


def test_write_reads_back_and_says_what_is_broken(expected):
    text = known.write(
        [
            row("kip54/sticky/1", Status.VIOLATED, EAGER, "5 partitions move more than needed"),
            row("kip54/sticky/1", Status.PASSED),
            row("kip54/balance/1", Status.PASSED),
            row("assign/6", Status.KNOWN, COOPERATIVE, "2 partitions change owner"),
        ]
    )
    expected(text)
    assert len(known.parse(text, "x")) == 2


@pytest.mark.parametrize(
    "summary", ["x\ny # z", "now until=2020-01-01", "\x1b[2J\udc80", "w " * 500, " ", ""]
)
def test_write_with_hostile_summaries(summary):
    text = known.write([row("assign/1", Status.VIOLATED, COOPERATIVE, summary)])
    (entry,) = known.parse(text, "x")
    assert (entry.pattern, entry.until) == ("assign/1", None)
    assert len(text) < 150
    text.encode()


def test_write_keeps_lines_that_are_still_exact(expected):
    old = known.parse(
        "b/2       # https://example.org/b\n"
        "a/*       # https://example.org/a until=2030-01-01\n"
        "gone/1    # https://example.org/gone\n"
        "c/**      # https://example.org/c\n",
        "x",
    )
    text = known.write(rows("a/1 x a/2 x b/1 x b/2 x c/1 x c/2 . d/1 x"), old)
    expected(text)  # c/1 is narrowed and keeps its reason
    assert known.write(rows("a/1 x a/2 x b/1 x b/2 x c/1 x c/2 . d/1 x"), known.parse(text, "x")) == text


def test_write_accepts_again_what_has_expired():
    old = known.parse("a/1 # https://example.org/a until=2027-01-30\nb/1 # y until=2027-01-31\n", "x")
    text = known.write(rows("a/1 x b/1 x"), old, TODAY)
    assert text == "a/1  # https://example.org/a\nb/1  # y until=2027-01-31\n"
    assert known.write(rows("a/1 x"), [KnownFailure(pattern="a/1", source="--known-failing")]) == (
        "a/1  # known before, no issue yet\n"
    )


def test_write_does_not_depend_on_the_order_of_results():
    made = rows("b/1 x a/2 x a/1 x a/3-e x a/3-c .")
    assert known.write(made) == known.write(made[::-1])
