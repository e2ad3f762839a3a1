"""Groups of one's own, from files."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance_verifier.explore.groups.scenario_files import scenario_in
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError
from rebalance_verifier.model.protocols import PROTOCOLS, machine


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
        ("a = " + "[" * 9999, "nested too deeply"),
        ("members = " + "9" * 9999, "digits"),
        ('like = ["dynamic"]', "like: no scenario is called"),
        ('like = "dynamik"', "like: no scenario is called 'dynamik': did you mean dynamic"),
        ("member = 3", "no key is called 'member': did you mean members"),
        ('members = "3"', 'members: a number from 0 is expected, not "3"'),
        ("members = true", "members: a number from 0 is expected, not true"),
        ("racks = true", "racks: a number from 0 is expected, not true$"),
        ("faults = [true, 1]", r"faults: a list of names is expected, not \[true, 1\]"),
        ('members = "' + "x" * 9999 + '"', 'members: a number from 0 is expected, not "x{56}[.]{3}$'),
        ("budget = -1", "budget: a number from 0 is expected, not -1"),
        ("static = 1", "static: true or false is expected, not 1"),
        ('faults = ["crush"]', "faults: no fault is called 'crush': did you mean crash"),
        ('faults = "crash"', 'faults: a list of names is expected, not "crash"'),
        ('faults = ["none", "crash"]', "faults: none stands alone"),
        ('faults = [["crash"]]', "faults: a list of names is expected"),
        ('lists = [["range", "range"]]', r"lists\[0\]: a member lists an assignor once, not range, range"),
        ('lists = [["uniform", "range"]]', r"lists\[0\]: uniform is the coordinator's and stands alone"),
        ('lists = [["range"], [["range"], ["range", "uniform"]]]', r"lists\[1\]: uniform is"),
        ('lists = [[["range"], [["range"]]]]', r"lists\[0\]: a list of names is expected"),
        (
            'lists = [["range"], ["range"], ["range"]]\nmembers = 2',
            "lists: 3 members are listed, there are 2",
        ),
        ("[static]\nx = 1", "static: true or false is expected, not a table"),
        ("[[lists]]\nx = 1", r"lists\[0\]: a list of names is expected"),
        ("partitions = 2.0", "partitions: a number from 0 is expected, not 2.0"),
        ("lowers = true", "lowers: lowers group.max.size, which there is with crowded = 1 or more"),
        ("crowded = 3", "crowded: 3 of 3 members: one at least has to fit in"),
        ("apart = true", "apart: each member subscribes to a topic of its own first: write topics = 2"),
        ('like = "consumer"\npatterns = true', "patterns: a topic is not there at first: write topics = 2"),
        ('policy = "disabled"', "policy: of groups between the protocols only"),
        ('policy = "upward"', "policy: no policy is called 'upward'"),
        ("lists = []", "lists: a list with the assignors of each member is expected"),
        ("lists = [[]]", r"lists\[0\]: a member lists one assignor at least"),
        ('lists = [["rang"]]', r"lists\[0\]: no assignor is called 'rang': did you mean range"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        scenario_in(written(tmp_path, text))


KEYS = {"lowers": "true", "racks": "2", "leaves": "false"}
"""Keys of the classic protocol alone, each with a value that is not the usual one."""


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("like", "group"),
    [
        ("consumer", "a consumer group"),
        ("consumer-topics", "a consumer group"),
        ("migration", "a group between the protocols"),
        ("migration-upgrade", "a group between the protocols"),
    ],
)
def test_a_key_that_the_model_of_the_group_does_not_know_is_refused(
    tmp_path: Path, key: str, like: str, group: str
) -> None:
    file = written(tmp_path, f'like = "{like}"\n{key} = {KEYS[key]}\n')
    usual = {"lowers": "false", "racks": "0", "leaves": "true"}[key]
    with pytest.raises(ScenarioError) as error:
        scenario_in(file)
    assert str(error.value).startswith(f"{file}: {key}: {group} has none in the model: write {key} = {usual}")
    assert scenario_in(written(tmp_path, f'like = "{like}"\n{key} = {usual}\n')).setup()
    also = "crowded = 1\n" if key == "lowers" else ""
    assert scenario_in(written(tmp_path, f"{also}{key} = {KEYS[key]}\n")).setup(), "the classic one has it"


@pytest.mark.parametrize("like", ["dynamic", "consumer", "migration"])
def test_every_group_has_a_limit_of_members(tmp_path: Path, like: str) -> None:
    made = scenario_in(written(tmp_path, f'like = "{like}"\ncrowded = 1\n'))
    assert made.setup().max_size == 2
    assert machine(made.setup()).components


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_scenario_has_a_key_without_effect(tmp_path: Path, name: str) -> None:
    assert scenario_in(written(tmp_path, f'like = "{name}"')).setup() == SCENARIOS[name].setup()


def test_what_came_with_another_scenario_is_refused_too(tmp_path: Path) -> None:
    faults = 'faults = ["crash"]\n'
    with pytest.raises(ScenarioError, match=r"racks \(of like = 'racks'\): a consumer group has none"):
        scenario_in(written(tmp_path, f'like = "racks"\nlists = [["uniform"]]\n{faults}'))
    with pytest.raises(
        ScenarioError, match=r"faults \(of like = 'dynamic'\): '.*' does not happen to a consumer"
    ):
        scenario_in(written(tmp_path, 'lists = [["uniform"]]'))
    with pytest.raises(ScenarioError, match="faults: 'polls on' does not happen to a group between"):
        scenario_in(written(tmp_path, 'like = "migration"\nfaults = ["crash", "polls on"]'))


@pytest.mark.parametrize("like", ["dynamic", "consumer", "migration"])
def test_all_faults_are_those_that_such_a_group_has(tmp_path: Path, like: str) -> None:
    for typed in ('"all"', '["all"]', '["crash", "all"]'):
        made = scenario_in(written(tmp_path, f'like = "{like}"\nfaults = {typed}'))
        assert made.faults == PROTOCOLS[made.setup().protocol].faults
    assert scenario_in(written(tmp_path, f'like = "{like}"\nfaults = "none"')).faults == ()


@pytest.mark.parametrize("text", ["topics = 0", "spare = 1000000000", "members = 13", "partitions = 41"])
def test_a_group_of_no_possible_size_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScenarioError, match="are possible"):
        scenario_in(written(tmp_path, text)).setup()
