"""Options that stand in rebalance.toml or pyproject.toml: `rebalance check` alone is a CI line."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance_verifier.cli.config import completed
from rebalance_verifier.cli.main import build_parser
from rebalance_verifier.cli.parser import Parser

CONFIG = """
[{}check]
target = "cooperative-sticky"
profile = "smoke"
clause = ["kip54", "assign/1"]
jobs = 1
fail-fast = true
no-color = false
"""
WORDS = ["--profile=smoke", "--clause=kip54", "--clause=assign/1", "--jobs=1", "--fail-fast"]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return build_parser()


@pytest.mark.parametrize(("name", "prefix"), [("rebalance.toml", ""), ("pyproject.toml", "tool.rebalance.")])
def test_what_the_file_says_comes_first(here: Path, parser: Parser, name: str, prefix: str, capsys) -> None:
    Path(name).write_text(CONFIG.format(prefix))
    assert completed(parser, ["check"], ()) == ["check", *WORDS, "cooperative-sticky"]
    assert capsys.readouterr().err == f"{name}: check cooperative-sticky {' '.join(WORDS)}\n"
    assert completed(parser, ["check", "range"], ()) == ["check", *WORDS, "range"]
    assert completed(parser, ["check"], ("./adapter",)) == ["check", *WORDS]
    assert completed(parser, ["list", "clauses"], ()) == ["list", "clauses"]
    typed = parser.parse(completed(parser, ["check", "--profile", "ci", "--clause", "assign/2"], ()))
    assert (typed.profile, typed.clause) == ("ci", ["kip54", "assign/1", "assign/2"])


def test_rebalance_toml_wins_and_nothing_is_nothing(here: Path, parser: Parser) -> None:
    assert completed(parser, ["check"], ()) == ["check"]
    Path("pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert completed(parser, ["check"], ()) == ["check"]
    Path("pyproject.toml").write_text(CONFIG.format("tool.rebalance."))
    Path("rebalance.toml").write_text("[compare]\ntargets = ['range', 'sticky']\n")
    assert completed(parser, ["check"], ()) == ["check"]
    assert completed(parser, ["compare"], ()) == ["compare", "range", "sticky"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[chek]\n", "rebalance.toml: no command is called 'chek': did you mean check?"),
        ("check = 3\n", "rebalance.toml: check is a table of options"),
        ("[check]\nprofil = 'ci'\n", "rebalance.toml: check has no option --profil: did you mean --profile"),
        ("[check]\nprofile = 'cii'\n", "rebalance.toml: --profile: no profile is called 'cii'"),
        ("[check]\nprofile = {a = 1}\n", "rebalance.toml: profile: expected text, a number, true"),
        ("[check]\nprofile = ['ci', 'smoke']\n", "rebalance.toml: --profile: given twice, say it once"),
        ("[check\n", "rebalance.toml: Expected ']'"),
        ("a = " + "[" * 9999, "rebalance.toml: not TOML that can be read: nested too deeply"),
    ],
)
def test_what_is_wrong_in_the_file_names_it(rebalance, text: str, complaint: str) -> None:
    Path("rebalance.toml").write_text(text)
    ran = rebalance("check")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"rebalance: {complaint}")
    assert len(ran.err.splitlines()) <= 2


@pytest.mark.parametrize(("text", "code"), [("tool = 5", 0), ("[tool]\nrebalance = 5", 2), ("[tool", 0)])
def test_a_pyproject_that_holds_no_table_of_ours(rebalance, text: str, code: int) -> None:
    Path("pyproject.toml").write_text(text)
    ran = rebalance("list", "targets")
    assert (ran.code, "Traceback" in ran.err, "pyproject.toml" in ran.err) == (code, False, code == 2)


def test_what_is_typed_wrong_is_not_the_files_fault(rebalance) -> None:
    Path("rebalance.toml").write_text(CONFIG.format(""))
    assert "rebalance.toml" not in rebalance("check", "--profil", "ci").err


def test_a_check_by_the_file_alone(rebalance) -> None:
    Path("rebalance.toml").write_text(CONFIG.format(""))
    ran = rebalance("check")
    assert ran.code == 0
    assert ran.out.startswith("CONFORMANT  cooperative-sticky passes ")
    assert "profile=smoke" in ran.out
