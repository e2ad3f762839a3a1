"""What each client writes (model/written.toml) beside what was measured once by other means, and beside what
else says something of a client: catalogue, release profiles, the codec, the formats of user data."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from rebalance_verifier.model import wire
from rebalance_verifier.model.bugs import catalogue
from rebalance_verifier.model.bugs.profiles import CLIENTS, client
from rebalance_verifier.model.bugs.releases import parse, version
from rebalance_verifier.model.values import NO_GENERATION
from rebalance_verifier.model.written import (
    ASSIGNED,
    FORMATS,
    GENERATION,
    JoinSituation,
    WrittenBy,
    described,
    dialect,
    from_table,
    written,
    written_by,
)

FIRST, REBALANCED, REFUSED = JoinSituation.FIRST, JoinSituation.REBALANCED, JoinSituation.REFUSED
FENCED, EXPELLED, TWICE = JoinSituation.FENCED, JoinSituation.EXPELLED, JoinSituation.TWICE

every_row = pytest.mark.parametrize(
    "row", written(), ids=lambda row: f"{row.client}-{row.release}-{row.assignors}"
)
NEWEST = {(row.client, row.assignors): row for row in written()}
"""The last row of each client and list of assignors is that of its newest release."""

# -- the table itself --------------------------------------------------------------------------------------

MEASURED = Path(__file__).with_name("measured_joins.txt").read_text(encoding="utf-8").splitlines()
"""By hand, from bytes that another broker kept on 27 November 2026: JoinGroup, reason, version and rack,
order of topics, user data; then owned partitions, generation and user data on the next join after a
rebalance, after SyncGroup of generation 7 was refused, after ILLEGAL_GENERATION in 8. One cell is not as it
was noted then: kafka-python's sticky user data after the refused SyncGroup has generation 6, since
`on_assignment` alone sets it."""


@pytest.mark.parametrize("line", MEASURED)
def test_the_newest_release_writes_what_was_measured(line: str) -> None:
    name, *expected = line.split("|")
    row = NEWEST[tuple(name.split(" "))]  # type: ignore[index]
    join, first = row.joins[FIRST], row.read(FIRST)
    reasons = {one.reason for at, one in row.joins.items() if at is not TWICE}
    reason = "-" if reasons == {None} else "empty" if reasons == {""} else "text"
    rack = "short" if first.short else first.rack
    found = [str(join.version), reason, f"{first.subscription.version} {rack}", first.order, first.user_data]
    for situation in (REBALANCED, REFUSED, FENCED):
        read = row.read(situation)
        found.append(f"{read.owned} {read.generation} {read.user_data}")
    assert [cell.replace("no field", "-") for cell in found] == expected


def test_a_topic_named_twice_is_sent_twice_by_two() -> None:
    """P3: librdkafka refuses it, and others make a set of it."""
    for row in NEWEST.values():
        if row.client == "confluent-kafka":
            assert TWICE in row.missing
        else:
            counts = Counter(row.read(TWICE).subscription.topics)
            assert counts == {"c": 2 if row.client in ("sarama", "kafka-go") else 1, "e": 1}


@every_row
def test_a_row_is_read_as_it_was_written(row: WrittenBy) -> None:
    assert from_table(row.client, row.release, row.assignors, row.to_table()) == row


@every_row
def test_expelled_is_as_fenced(row: WrittenBy) -> None:
    """Nothing depends on which of the two errors ended the membership."""
    if EXPELLED in row.joins:
        fenced, expelled = row.read(FENCED), row.read(EXPELLED)
        assert expelled.owned == fenced.owned
        for now, before in ((expelled.generation, fenced.generation), (expelled.user_data, fenced.user_data)):
            assert now == before.replace(str(GENERATION[FENCED]), str(GENERATION[EXPELLED]))


EMPTY_ARRAY = 4
"""Bytes of owned partitions that are none, which a subscription of Q1 leaves out."""

# -- the codec ---------------------------------------------------------------------------------------------


@every_row
def test_the_codec_writes_the_bytes_of_the_client(row: WrittenBy) -> None:
    """All that differs is told: an order that is not sorted, a rack of no text, fields that are left out."""
    for situation, join in row.joins.items():
        for name, data in join.metadata.items():
            read = row.read(situation, name)
            if read.short:
                assert (
                    wire.encode_subscription(read.subscription, 0)[2:] == data[2:] or read.order != "sorted"
                )
            elif read.order == "sorted" and situation is not TWICE:
                assert wire.encode_subscription(read.subscription) == data


@every_row
def test_user_data_is_of_a_known_format(row: WrittenBy) -> None:
    """What members that are played write when they were assigned something (`FORMATS`)."""
    for name in row.joins[FIRST].metadata:
        data = row.read(REBALANCED, name).subscription.user_data
        eager = (ASSIGNED, GENERATION[REBALANCED]), ((), NO_GENERATION)  # of a list, the one not chosen
        assert described(data) in {described(form(*told)) for form in FORMATS for told in eager}


# -- members that are played -------------------------------------------------------------------------------

LIVED = {
    FIRST: {"owned": (), "last": (), "joined": -1, "since": -1},
    REBALANCED: {"owned": ASSIGNED, "last": ASSIGNED, "joined": 6, "since": 6},
    REFUSED: {"owned": ASSIGNED, "last": ASSIGNED, "joined": 7, "since": 6},
    FENCED: {"owned": (), "last": ASSIGNED, "joined": -1, "since": 8},
    EXPELLED: {"owned": (), "last": ASSIGNED, "joined": -1, "since": 9},
}
"""What a member that is played has lived through in each situation."""


@every_row
def test_a_member_that_is_played_writes_what_its_client_wrote(row: WrittenBy) -> None:
    """Byte for byte, but for orders that are no sorted one."""
    client = dialect(f"{row.client}=={row.release}:{row.assignors}")
    for situation, state in LIVED.items():
        if situation not in row.joins:
            continue
        read, made = row.read(situation), client.claim(**state)  # type: ignore[arg-type]
        sent = client.subscription(read.subscription.topics, made)
        if read.order == "sorted":
            assert wire.encode_subscription(sent) == row.joins[situation].metadata[client.protocol], situation
        assert (sent.owned_partitions == ASSIGNED) is (read.owned == "all")
        assert described(sent.user_data) == read.user_data
        assert sent.generation_id == read.subscription.generation_id


def test_the_claim_of_a_member_is_what_can_be_read_from_its_bytes() -> None:
    """A leader of Java reads it so: the field, user data before version 2, and the list of StickyAssignor."""
    lived = {"owned": ASSIGNED, "last": ASSIGNED, "joined": 7, "since": 6}
    lost = {"owned": (), "last": ASSIGNED, "joined": -1, "since": 8}
    for name, told, after in (
        ("kafka-clients==4.4.0:cooperative-sticky", (ASSIGNED, 7), ((), -1)),
        ("confluent-kafka==2.16.1:cooperative-sticky", (ASSIGNED, 6), ((), 8)),
        ("sarama==1.61.1:cooperative-sticky", (ASSIGNED, 6), ((), 8)),
        ("kafka-python==3.0.12:cooperative-sticky", (ASSIGNED, -1), (ASSIGNED, -1)),
        ("kafka-clients==4.4.0:sticky", (ASSIGNED, 6), (ASSIGNED, 8)),
        ("aiokafka==0.14.0:sticky", (ASSIGNED, -1), (ASSIGNED, -1)),
        ("franz-go==1.22.3:sticky", ((), -1), ((), -1)),
        ("kafka-go==0.4.51:range", ((), -1), ((), -1)),
    ):
        claims = [dialect(name).claim(**state) for state in (lived, lost)]  # type: ignore[arg-type]
        assert [(claim.claimed, claim.since) for claim in claims] == [told, after], name


# -- catalogue and profiles --------------------------------------------------------------------------------

PRODUCT = {
    "kafka-clients": "Java",
    "confluent-kafka": "librdkafka",
    "@platformatic/kafka": "platformatic",
}
"""How the catalogue calls a client; others by their own names."""


def in_range(id_: str, row: WrittenBy) -> bool:
    affected = parse(catalogue.CATALOGUE[id_].affected)
    return affected.includes(PRODUCT.get(row.client, row.client), version(row.release))


@every_row
def test_q1_is_of_the_releases_that_leave_the_field_out(row: WrittenBy) -> None:
    assert in_range("Q1", row) is row.read(FIRST).short


COOPERATIVE = [
    row for row in written() if row.assignors == "cooperative-sticky" and not row.read(FIRST).short
]
every_cooperative = pytest.mark.parametrize(
    "row", COOPERATIVE, ids=[f"{row.client}-{row.release}" for row in COOPERATIVE]
)


@every_cooperative
def test_s4_is_of_the_releases_that_never_claim(row: WrittenBy) -> None:
    assert in_range("S4", row) is (row.read(REBALANCED).owned == "none")


@every_cooperative
def test_j6_is_of_the_releases_that_claim_under_the_refused_generation(row: WrittenBy) -> None:
    """What leaders read: the field, and before version 2 the user data."""
    read, refused = row.read(REFUSED), str(GENERATION[REFUSED])
    age = read.generation if read.subscription.version >= 2 else read.user_data.removeprefix("generation ")
    assert in_range("J6", row) is (read.owned == "all" and age == refused)


@every_cooperative
def test_k4_is_of_the_releases_that_claim_what_they_lost(row: WrittenBy) -> None:
    assert in_range("K4", row) is (row.read(FENCED).owned == "all")


PROFILED = [
    ("kafka-clients", f"java-{row.release}", row.release)
    for row in written()
    if (row.client, row.assignors) == ("kafka-clients", "range")
] + [
    ("confluent-kafka", "librdkafka", ""),
    ("kafka-python", "kafka-python", ""),
    ("aiokafka", "aiokafka", ""),
]


@pytest.mark.parametrize(("name", "profile", "release"), PROFILED)
def test_a_profile_writes_the_version_of_its_client(name: str, profile: str, release: str) -> None:
    """The highest of its assignors; and the generation in the user data of cooperative-sticky."""
    rows = [row for row in written() if row.client == name and release in ("", row.release)]
    assert client(profile).metadata_version == max(row.read(FIRST).subscription.version for row in rows)
    if name == "kafka-clients":
        tells = written_by(name, "cooperative-sticky", release).read(REBALANCED).user_data
        assert client(profile).user_data_generation is bool(re.fullmatch(r"generation \d+", tells))


def test_each_profile_of_a_client_is_held_against_the_table() -> None:
    assert {name for name in CLIENTS if not re.match(r"java-|as-specified|librdkafka-1\.6", name)} == {
        profile for _, profile, release in PROFILED if not release
    }
