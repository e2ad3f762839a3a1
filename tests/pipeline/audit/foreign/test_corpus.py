"""Every story of every client in several layouts: an incident is found, a healthy group has none.

Story x client x layout; the fast part takes two layouts of each story and client, in turn.
"""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.report.terminal.audit import headline

from tests.pipeline.audit.foreign.clients import CLIENTS
from tests.pipeline.audit.foreign.layouts import LAYOUTS, Written
from tests.pipeline.audit.foreign.stories import STORIES, steps_of

CORPUS = [
    (story, client, layout)
    for story, client, layout in product(STORIES, CLIENTS, LAYOUTS)
    if story not in CLIENTS[client].untold
]


def in_turn(story, client, layout):
    """Return whether a layout is one of the two in which the fast tests have this story and client."""
    turn = list(STORIES).index(story) + list(CLIENTS).index(client)
    return (list(LAYOUTS).index(layout) - turn) % 3 == 0


def log(story, client, layout):
    """Return the files of a story."""
    lines = [
        Written(second, member, logger, message)
        for second, member, act, arguments in steps_of(STORIES[story])
        for logger, message in CLIENTS[client].write(member, act, arguments)
    ]
    return LAYOUTS[layout](lines)


def test_half_of_the_corpus_is_healthy_and_the_fast_half_has_eighty_logs_of_all_kinds():
    fast = [one for one in CORPUS if in_turn(*one)]
    healthy = [one for one in fast if STORIES[one[0]].healthy]
    assert len(fast) >= 80
    assert len(CORPUS) >= 200
    assert 0.4 <= len(healthy) / len(fast) <= 0.6
    assert [{one[n] for one in fast} for n in range(3)] == [set(STORIES), set(CLIENTS), set(LAYOUTS)]


@pytest.mark.parametrize(
    ("story", "client", "layout"),
    [
        pytest.param(*one, marks=[] if in_turn(*one) else [pytest.mark.nightly], id=", ".join(one))
        for one in CORPUS
    ],
)
def test_an_incident_is_found_and_a_healthy_group_has_none(story, client, layout, tmp_path):
    (tmp_path / "logs").mkdir()
    for name, lines in log(story, client, layout).items():
        (tmp_path / "logs" / name).write_text("".join(f"{line}\n" for line in lines))
    found = run_audit(AuditPlan(paths=(str(tmp_path / "logs"),), out=tmp_path / "out"))
    gating = {one.check for one in found.findings if found.plan.gates(one.level)}
    certain = {one.check for one in found.findings if found.plan.gates(one.level) and one.certain}
    expected = STORIES[story].checks
    assert found.malformed == 0
    assert certain <= expected, f"{headline(found)}: what is certain is so"
    assert expected <= gating, f"{headline(found)}: the incident is there"
    assert (found.verdict is Verdict.CONFORMANT) <= (not expected)
    if not expected:
        assert found.verdict is Verdict.CONFORMANT, headline(found)
