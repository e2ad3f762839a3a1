"""The badge: what shields.io takes, and that it never says more than the verdict."""

from __future__ import annotations

import json

import pytest
from rebalance.gate.report import badge, cases_of
from rebalance.gate.result import Exit, Status, Verdict

from tests.gate.handmade import HOSTILE, hostile, result, row, violated

FIELDS = {"schemaVersion", "label", "message", "color", "labelColor", "isError", "namedLogo", "logoSvg",
          "logoColor", "logoWidth", "logoPosition", "style", "cacheSeconds"}  # fmt: skip
"""All that an endpoint badge of shields.io may have; with another field it is refused."""

UNDECIDED = {"verdict": Verdict.INCONCLUSIVE, "exit": Exit.INCONCLUSIVE}


def made(checked):
    return json.loads(badge.render(cases_of.result(checked)))


@pytest.mark.parametrize(
    ("checked", "message", "color"),
    [
        (result(row("assign/1"), row("assign/2")), "keeps 2 clauses", "brightgreen"),
        (
            result(row("assign/1"), row("assign/2", status=Status.KNOWN)),
            "keeps 1 clause, 1 known to fail",
            "brightgreen",
        ),
        (violated(), "1 of 4 clauses broken", "red"),
        (result(**UNDECIDED), "inconclusive", "lightgrey"),
        (result(**UNDECIDED, interrupted=True), "interrupted", "lightgrey"),
        (
            result(row("assign/1", status=Status.FIXED), exit=Exit.VIOLATION),
            "keeps 0 clauses, 1 stale",
            "orange",
        ),
    ],
)
def test_what_it_says(checked, message, color):
    said = made(checked)
    assert (said["message"], said["color"]) == (message, color)
    assert said.get("isError", False) == (color == "red")


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_what_shields_takes_and_repeats_nothing_of_a_target(name):
    said = made(hostile(name))
    assert set(said) <= FIELDS
    assert said["schemaVersion"] == 1
    assert said["message"]
    assert all(isinstance(said[key], str) for key in ("label", "message", "color"))
    assert name not in badge.render(cases_of.result(hostile(name)))
