"""Groups of one's own, from files."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance.explore.groups.scenario_files import scenario_in
from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioError


def written(directory: Path, text: str) -> Path:
    path = directory / "mine.toml"
    path.write_text(text)
    return path


def test_what_the_file_does_not_say_is_as_in_another_scenario(tmp_path: Path) -> None:
    found = scenario_in(written(tmp_path, 'like = "static"\nmembers = 4\n'))
    like = SCENARIOS["static"]
    assert (found.name, found.members, found.static) == ("mine", 4, True)
    assert (found.faults, found.lists) == (like.faults, like.lists)


def test_members_may_be_upgraded_stage_by_stage(tmp_path: Path) -> None:
    text = 'lists = [["range"], [["range"], ["range", "cooperative-sticky"]]]\nfaults = ["crash"]\n'
    found = scenario_in(written(tmp_path, text))
    assert found.lists == ((("range",),), (("range",), ("range", "cooperative-sticky")))
    assert found.faults == ("crash",)
    assert len(found.setup().consumers[1].stages) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("members = ", "Invalid value"),
        ("\0" * 1000, "Invalid"),
        ("a = " + "[" * 9999, "recursion"),
        ("members = " + "9" * 9999, "digits"),
        ('like = ["dynamic"]', "like: no scenario is called"),
        ('like = "dynamik"', "like: no scenario is called 'dynamik': did you mean dynamic"),
        ("member = 3", "no key is called 'member': did you mean members"),
        ('members = "3"', "members: a number from 0 is expected, not '3'"),
        ("members = true", "members: a number from 0 is expected, not True"),
        ("budget = -1", "budget: a number from 0 is expected, not -1"),
        ("static = 1", "static: true or false is expected, not 1"),
        ('faults = ["crush"]', "faults: no fault is called 'crush': did you mean crash"),
        ('faults = "crash"', "faults: a list of names is expected, not 'crash'"),
        ('policy = "upward"', "policy: no policy is called 'upward'"),
        ("lists = []", "lists: a list with the assignors of each member is expected"),
        ("lists = [[]]", r"lists\[0\]: a member lists one assignor at least"),
        ('lists = [["rang"]]', r"lists\[0\]: no assignor is called 'rang': did you mean range"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario_in(written(tmp_path, text))


@pytest.mark.parametrize("text", ["topics = 0", "spare = 1000000000", "members = 13", "partitions = 41"])
def test_a_group_of_no_possible_size_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match="are possible"):
        scenario_in(written(tmp_path, text)).setup()
