"""Every story of every client in several layouts: an incident is found, a healthy group has none.

Story x client x layout: by day each of them at least once, at night all.
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
from tests.pipeline.audit.foreign.epochs import EPOCH_CLIENTS, EPOCHS, Java
from tests.pipeline.audit.foreign.layouts import LAYOUTS, Written
from tests.pipeline.audit.foreign.stories import STORIES, steps_of

CORPUS = [
    *(
        (story, client, layout)
        for story, client, layout in product(STORIES, CLIENTS, LAYOUTS)
        if story not in CLIENTS[client].untold
    ),
    *product(EPOCHS, EPOCH_CLIENTS, LAYOUTS),
]
ALL = {**STORIES, **EPOCHS}
assert len(ALL) == len(STORIES) + len(EPOCHS)


def told_by(story, write):
    """Return the lines of a story."""
    return [
        Written(second, member, logger, message)
        for second, member, act, arguments in steps_of(story)
        for logger, message in write(member, act, arguments)
    ]


def log(story, client, layout):
    """Return the files of a story."""
    write = CLIENTS[client].write if client in CLIENTS else EPOCH_CLIENTS[client]()
    return LAYOUTS[layout](told_by(ALL[story], write))


def audited(files, tmp_path):
    """Return what an audit of these files finds."""
    (tmp_path / "logs").mkdir()
    for name, lines in files.items():
        (tmp_path / "logs" / name).write_text("".join(f"{line}\n" for line in lines))
    return run_audit(AuditPlan(paths=(str(tmp_path / "logs"),), out=tmp_path / "out"))


def test_half_of_the_corpus_is_healthy():
    healthy = [story for story, *_ in CORPUS if ALL[story].healthy]
    assert len(CORPUS) >= 500
    assert 0.4 <= len(healthy) / len(CORPUS) <= 0.6


@pytest.mark.covering("story", "client", "layout")
@pytest.mark.parametrize(("story", "client", "layout"), CORPUS, ids=map(", ".join, CORPUS))
def test_an_incident_is_found_and_a_healthy_group_has_none(story, client, layout, tmp_path):
    found = audited(log(story, client, layout), tmp_path)
    gating = {one.check for one in found.findings if found.plan.gates(one.level)}
    certain = {one.check for one in found.findings if found.plan.gates(one.level) and one.certain}
    expected = ALL[story].checks
    assert found.malformed == 0
    assert certain <= expected, f"{headline(found)}: what is certain is so"
    assert expected <= gating, f"{headline(found)}: the incident is there"
    assert (found.verdict is Verdict.CONFORMANT) <= (not expected)
    if not expected:
        assert found.verdict is Verdict.CONFORMANT, headline(found)


def test_without_a_rebalance_listener_nothing_is_said_of_partitions(tmp_path):
    """The consumer protocol logs to nobody what a member is given, and always what it gives away."""
    for story in ("scale out", "one leaves"):
        (tmp_path / story).mkdir()
        found = audited(LAYOUTS["files"](told_by(EPOCHS[story], Java(listens=False))), tmp_path / story)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert not found.findings
        assert "of a consumer with a rebalance listener" in headline(found)


HEALTHY = [
    (name, client)
    for name, one in ALL.items()
    for client in (("java", "aiokafka", "librdkafka") if name in STORIES else EPOCH_CLIENTS)
    if one.healthy
]


@pytest.mark.covering("client")
@pytest.mark.parametrize(("story", "client"), HEALTHY)
def test_lines_that_a_shipper_cuts_off_accuse_nobody(story, client, tmp_path):
    """What a line says is lost, and nothing that rests on that is certain."""
    nothing_is_certain(story, client, 100, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("limit", range(70, 200, 8))
def test_wherever_a_shipper_cuts_them_off_they_accuse_nobody(limit, tmp_path):
    for number, (story, client) in enumerate(HEALTHY):
        (tmp_path / str(number)).mkdir()
        nothing_is_certain(story, client, limit, tmp_path / str(number))


def nothing_is_certain(story, client, limit, folder):
    cut = {name: [line[:limit] for line in lines] for name, lines in log(story, client, "files").items()}
    found = audited(cut, folder)
    assert found.verdict is not Verdict.VIOLATION, f"{story}, {client}: {headline(found)}"
