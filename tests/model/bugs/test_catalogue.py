"""The catalogue is complete, its parts agree, and its ranges say what the trackers say."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from rebalance_verifier.model.bugs import catalogue, decisions
from rebalance_verifier.model.bugs.catalogue import CATALOGUE, PROPERTIES, Entry, entries_of, shipped
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.releases import Version, parse, version
from rebalance_verifier.model.bugs.switches import NOT_EXPRESSED as NO_SWITCH
from rebalance_verifier.model.bugs.switches import SWITCHES

LISTED = """
    U1 U2 U3 U4 U5 U6 U7 U8 U9 U10 U11 U12 U13 U14
    J1 J2 J3 J4 J5 J6 J7 J8 J9 J10 J11 J12 J13 J14 J15 J16 J17 J18 J19 J20 J21 J22 J23 J24 J25 J28 J29 J30 J31
    B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12
    L4 L5 L6 L7 L8 L9 L10 L11
    F1 F2 F3 F4 F5 F6 F10 F11 F12 F13 F14
    S1 S2 S4 K1 K2 K3 K4 K5 K6 Q1 Q2 Q3 Q4 Q5 Q6 Q7
    N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12
    N13 N14 N15 N16 N17 N18 N19 N20 N21 N22 N23 N24 N25 N26 N27 N28
    N29 N30 N31 N32 N33 N34 N35 N36 N37 N38 N39 N40 N41 N42
    T1 T2 T3 T4
    X1 X2
"""

NEVER_SHIPPED = ["lost_as_revoked", "no_rejoin_after_revoke", "no_withhold"]
"""Parts of KIP-429 left out: mistakes that nobody is known to have shipped."""

every_entry = pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)


# -- the tables --------------------------------------------------------------------------------------------


def test_all_entries_once() -> None:
    assert [entry.id for entry in catalogue._TABLE] == LISTED.split()
    assert all(CATALOGUE[entry.id] is entry for entry in catalogue._TABLE)
    titles = [entry.title for entry in CATALOGUE.values()]
    assert len(set(titles)) == len(titles)


def test_all_decisions_once() -> None:
    assert len(DECISIONS) == 106
    sentences = [d.sentence for d in DECISIONS.values()] + [s.sentence for s in SWITCHES.values()]
    shared = [id_ for id_ in DECISIONS if id_ in SWITCHES]
    assert shared == ["claims_always_empty", "validate_raw_claims"]
    assert len(set(sentences)) == len(sentences)
    assert [s for s in sentences if not s or s.endswith(".")] == []


def test_every_switch_belongs_to_an_entry() -> None:
    without = sorted(id_ for id_ in {**DECISIONS, **SWITCHES} if not entries_of(id_))
    assert without == NEVER_SHIPPED
    assert [DECISIONS[id_].shipped for id_ in NEVER_SHIPPED[:2]] == ["never", "never"]
    assert [DECISIONS[id_].entry for id_ in NEVER_SHIPPED[:2]] == ["none", "none"]
    named = chain.from_iterable(entry.switches for entry in CATALOGUE.values())
    assert [id_ for id_ in named if id_ not in DECISIONS and id_ not in SWITCHES] == []


def test_both_tables_name_the_same_entry() -> None:
    for id_, switch in SWITCHES.items():
        assert switch.entry in [entry.id for entry in entries_of(id_)] or switch.entry == "none"
    for id_, decision in DECISIONS.items():
        assert decision.entry in [entry.id for entry in entries_of(id_)] or decision.entry == "none"


def test_mistakes_made_twice() -> None:
    """One decision, several projects: its releases are those of all of them."""
    shared = {id_: [e.id for e in entries_of(id_)] for id_ in DECISIONS if len(entries_of(id_)) > 1}
    assert shared == {
        "claims_always_empty": ["F4", "S4"],
        "reset_on_sync_rip": ["J7", "K2"],
        "static_rejoin_ignores_subscription": ["J20", "F12"],
        "leader_watches_own_topics": ["F6", "S2"],
    }
    assert shipped("reset_on_sync_rip") == "Java 3.3.0 to 3.3.1, kafka-python before 2.2.4"
    assert DECISIONS["reset_on_sync_rip"].entry == "J7"


# -- each entry --------------------------------------------------------------------------------------------


@every_entry
def test_written_for_people(entry: Entry) -> None:
    assert not entry.title.endswith(".")
    assert entry.story.endswith(".")
    assert 1 <= len(re.findall(r"[.:](?= |$)", entry.story)) <= 6  # each is short: tests/test_style.py
    assert "  " not in entry.story
    assert len(set(entry.switches)) == len(entry.switches)
    for tracker in entry.trackers:
        assert re.fullmatch(r"KAFKA-\d+|[a-z-]+#\d+|[a-z-]+@[0-9a-f]{7,9}", tracker), tracker


@every_entry
def test_breaks_something(entry: Entry) -> None:
    assert [code for code in entry.breaks if code not in PROPERTIES] == []
    assert len(set(entry.breaks)) == len(entry.breaks)
    assert entry.breaks or entry.id in ("J17", "L8")  # records are read again, nothing else


@every_entry
def test_shown_or_not_expressed(entry: Entry) -> None:
    """Level A by a switch of an assignor; level P by a decision, or by a switch of cooperative-sticky."""
    calls = [id_ for id_ in entry.switches if id_ in SWITCHES]
    steps = [id_ for id_ in entry.switches if id_ in DECISIONS]
    reasons = {key.split(",")[0] for key in decisions.NOT_EXPRESSED}
    if "A" in entry.level:
        assert calls or entry.id in NO_SWITCH
    if entry.level == "A":
        assert not steps
    if entry.level == "P":
        assert steps or entry.id in reasons
    if entry.level == "A+P":
        plugged = [id_ for id_ in calls if "cooperative-sticky" in SWITCHES[id_].fits]
        assert steps or plugged or entry.id in reasons


def test_reasons_are_for_entries_that_exist() -> None:
    for key, reason in decisions.NOT_EXPRESSED.items():
        id_, _, part = key.partition(", ")
        entry = CATALOGUE[id_]
        assert "P" in entry.level
        assert reason
        # Either the whole entry, which then has no decision, or one of its tickets.
        assert part in entry.trackers if part else not any(s in DECISIONS for s in entry.switches)


# -- ranges ------------------------------------------------------------------------------------------------


def ends() -> list[tuple[str, Version]]:
    """Releases around every bound of the catalogue: a span can only differ from another at one of these."""
    spans = [s for id_ in (*DECISIONS, *SWITCHES) for s in parse(shipped(id_)).spans]
    spans += [s for entry in CATALOGUE.values() for s in entry.releases.spans]
    bounds = [(s.product, b) for s in spans for b in (s.first, s.end, (), (99,)) if b is not None]
    return sorted({(product, near) for product, b in bounds for near in (b, (*b, 0), (*b, 0, 0), (*b, 1))})


def names(text: str) -> list[tuple[str, Version]]:
    return [end for end in ends() if parse(text).includes(*end)]


@every_entry
def test_narrower_is_narrower(entry: Entry) -> None:
    everywhere = names(entry.affected)
    for switch, text in entry.narrower.items():
        assert switch in entry.switches
        assert text != entry.affected
        assert [end for end in names(text) if end not in everywhere] == []


def test_assignor_switches_tell_the_same_releases() -> None:
    """``Switch.shipped`` is prose; as far as it can be read it must agree with the catalogue."""
    prose, wrong = [], []
    for id_, switch in SWITCHES.items():
        try:
            documented = names(switch.shipped)
        except ValueError:
            prose.append(id_)
            continue
        if documented != names(shipped(id_)):
            wrong.append(id_)
    assert prose == [
        "user_data_once",
        "no_withhold",
        "steal_once",
        "minquota_still_unfilled",
        "assign_leader_topics_only",
    ]
    # The catalogue counts sarama's strategy among those that claim nothing.
    assert wrong == ["claims_always_empty"]


FACTS = {
    # KAFKA-12983: 2.4.0 to 2.7.1 and 2.8.0; fixed in 2.7.2, 2.8.1, 3.0.0.
    "prepare_not_repeated_after_reset": (
        "2.4.0 2.4.1 2.5.1 2.6.3 2.7.0 2.7.1 2.8.0",
        "2.3.1 2.7.2 2.8.1 3.0.0",
    ),
    # KAFKA-13214: up to the same releases, from the beginning.
    "reset_on_retriable": ("2.6.1 2.7.1 2.8.0", "2.6.0 2.7.2 2.8.1 3.0.0"),
    # KAFKA-12984: constrained algorithm only.
    "trust_all_claims": ("2.5.1 2.6.0 2.7.2 2.8.0", "2.5.0 2.8.1 3.0.0"),
    # KAFKA-14639: 2.8.1 to 3.4.0; fixed in 3.4.1, 3.5.0.
    "max_generation_only": ("2.8.1 2.8.2 3.0.0 3.3.2 3.4.0", "2.8.0 3.4.1 3.5.0"),
    # KAFKA-13406: before 2.8.1 no claim is left aside; the exemption is in 2.8.2, 3.0.1, 3.1.0.
    "validate_raw_claims": ("2.8.1 3.0.0", "2.4.1 2.8.0 2.8.2 3.0.1 3.1.0 3.5.0"),
    # KAFKA-13419: fixed in 3.2.0.
    "clear_member_id_on_illegal_generation": ("2.4.1 3.1.2", "3.2.0"),
    # KAFKA-13891 was shipped in 3.3.0 and 3.3.1 and taken back.
    "reset_on_sync_rip": ("3.3.0 3.3.1", "3.2.3 3.3.2 3.4.0"),
    # It takes the label of KIP-792: see docs/results/released.md.
    "keep_owned_on_sync_rip": ("3.4.0 4.0.0", "2.8.1 3.2.3 3.3.0 3.3.1 3.3.2"),
    # KAFKA-9620 is in 2.6.0, KAFKA-9741 in 2.5.0, with which KafkaConsumer.groupMetadata came.
    "abort_on_callback_exception": ("2.3.1", "2.4.1 2.5.0 2.6.0"),
    "metadata_after_revoke": ("", "2.4.1 2.5.0 2.6.0"),
    # KAFKA-10134: went to 2.6.1 too, as was observed.
    "no_heartbeat_in_completing": ("2.4.1 2.6.0", "2.6.1 2.6.3 2.7.0"),
    # KAFKA-14024, KAFKA-14196: short-lived.
    "prepare_commit_never_done": ("3.2.0", "3.1.2 3.2.1 3.3.0"),
    "fetch_while_pending_revocation": ("3.2.1 3.2.2", "3.2.0 3.2.3 3.3.0"),
    # U11: since KIP-429; in 3.2.0 a poll never hears of its own commit (J16). See docs/results/released.md.
    "join_sent_after_reset": ("2.4.0 2.8.1 3.1.2 3.2.1 4.0.0", "2.3.1 3.2.0"),
    # U13: KAFKA-13419 has mended it, with J5.
    "lost_only_without_id": ("2.4.0 2.8.1 3.1.2", "2.3.1 3.2.0 4.0.0"),
    # U14: JoinGroup has skipAssignment from version 9 on.
    "skipped_assignment_noted": ("3.2.0 3.2.3 4.0.0", "3.1.2"),
    # KAFKA-8972: never left trunk.
    "clear_before_leave_prepare": ("", "2.3.1 2.4.0 2.4.1"),
}

BROKER_FACTS = {
    # KAFKA-12890: 2.7.0 to 2.7.2 and 2.8.0; fixed in 2.8.1, 3.0.0, where U5 begins.
    "no_pending_sync_expiry": ("2.7.0 2.7.1 2.7.2 2.8.0", "2.6.3 2.8.1 3.0.0"),
    "pending_sync_evicts_static": ("2.8.1 3.0.0 4.0.0", "2.7.2 2.8.0"),
    # KAFKA-10284: fixed in 2.6.1, 2.7.0.
    "static_replace_not_persisted": ("2.4.1 2.6.0", "2.6.1 2.7.0"),
    # KAFKA-9752 is absent in 2.4.1.
    "new_member_never_expires": ("2.4.1", "2.5.0"),
    # KAFKA-8500, KAFKA-7909: never left trunk; KAFKA-8653: one release.
    "static_replace_only_stable": ("", "2.2.0 2.3.0"),
    "pending_blocks_join": ("", "2.1.1 2.2.0"),
    "rebalance_timeout_zero": ("2.3.0", "2.2.1 2.3.1"),
    # KIP-814.
    "static_leader_returns_as_follower": ("2.4.1 3.1.2", "3.2.0"),
    "persist_selected_protocol_only": ("2.4.1 4.0.0", ""),
}


@pytest.mark.parametrize(
    ("product", "switch", "inside", "outside"),
    [("Java", switch, *releases) for switch, releases in FACTS.items()]
    + [("broker", switch, *releases) for switch, releases in BROKER_FACTS.items()],
)
def test_facts(product: str, switch: str, inside: str, outside: str) -> None:
    found = parse(shipped(switch))
    assert [r for r in inside.split() if not found.includes(product, version(r))] == []
    assert [r for r in outside.split() if found.includes(product, version(r))] == []
