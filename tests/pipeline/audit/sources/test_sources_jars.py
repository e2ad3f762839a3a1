"""The tables against the clients themselves: every text that they hold about a group is read or known."""

from __future__ import annotations

import itertools
import re
import shutil
import struct
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rebalance.pipeline.audit.sources.loggers import JAVA
from rebalance.pipeline.audit.sources.patterns import Line

from tests.pipeline.audit.sources.matching import match

pytestmark = pytest.mark.nightly

RELEASES = (
    *("2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.2.3", "3.4.1", "3.7.2"),
    *("3.8.1", "3.9.1", "4.0.0", "4.1.0", "4.2.0", "4.3.1", "4.4.0"),
)
LOGGERS = (
    *("AbstractCoordinator", "ConsumerCoordinator", "ConsumerRebalanceListenerInvoker", "Metadata"),
    *("KafkaConsumer", "LegacyKafkaConsumer", "ClassicKafkaConsumer", "AsyncKafkaConsumer"),
)
ABOUT = re.compile(
    r"^(?!.* %s)(?=.*(?:[Jj]oin|[Aa]ssign|[Rr]evok|[Ll]ost |[Ss]ynced|[Ss]yncGroup|[Rr]esetting gen"
    r"|sending Leave|Cluster ID|Rebootstrapping|Subscribed to|has been closed|will leave))"
)

KNOWN = (
    # About partitions that somebody assigns to himself, positions, commits, pauses, metrics.
    r"Assigned to partition\(s\)|Subscribed to partition\(s\)|Committed|Setting offset|Seeking",
    r"Ignoring the returned",
    r"Offset commit|OffsetCommit|Failing OffsetCommit|Fetching committed|The pause flag",
    r"Asynchronous|Synchronous",
    r"The (?:max|number|total|rate|average|avg|time|fraction)|group (?:joins|syncs)",
    r".*Attempt to heartbeat",
    r"Topic |You can only|Consumer is not subscribed|.*wakeup|Updating last seen",
    r"This consumer has already been closed",
    # What goes before an event that is read, or after it, or says that there is none.
    r"Request joining group due to|Requesting to re-join|Joining group with current subscription",
    r"Executing on",
    r"Sending (?:JoinGroup|leader SyncGroup|follower SyncGroup)|Received successful",
    r"JoinGroup failed|SyncGroup",
    r"Join group failed|Attempt to join group|Rebalance failed|Generation data was cleared",
    r"rebalance failed",
    r"Performing assignment|Finished assignment for group with|Skipped assignment|Assignment event skipped",
    r"Notifying assignor",
    r"Updating assignment with|Need to revoke|Marking assigned partitions|need to revoke",
    r"We received an assignment",
    r"received assignment|need to re-join|The following|Unsubscribed all|Unsubscribing all",
    r"LeaveGroup re",
    r"consumer pro-actively|consumer poll timeout|the consumer unsubscribed",
    r"offset commit failed since group",
    r"still waiting to ensure|.*onPartitions|Ignoring|User provided|Waiting|Received .*response",
    r"Released assign",
    r"subscription has changed|cached metadata has changed|group is already rebalancing",
    r"unsubscribe|Completed (?:leaving|releasing)|Releasing",
    # Errors, which the application gets.
    r"Unexpected|With the COOPERATIVE|Assignor|Specified assignors|Coordinator selected",
    r"Consumer was assigned",
    r"There (?:is|are) insufficient|Consumer group|consumer was|Tried to force",
    r"The expected leave group|User rebalance",
    r"Failed|Error|User configured|Must |All tasks|Subscribe to RE2|Task assign|Streams",
    r".*PartitionAssignor|.*must|.*cannot",
    r"Received fatal|Get fenced|.*metadata (?:after|update)|Exception|Interrupted|Timeout",
    r"Support for|Updated",
    # Pieces that are put together with others, and names.
    r"[ ,:;).]|[a-z]+$|which |before |this |is |due to|and |as |Caught|error response|generation",
    r"org\.|[\w.-]+$",
)
SAMPLES = (
    *("7", "m-1", "t-0, t-1", "[t-0]", "{m=Assignment(partitions=[t-0, u-1])}", "", "and member id "),
    "Generation{generationId=7, memberId='m', protocol='range'}",
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> dict[str, dict[str, set[str]]]:
    """Release -> class -> its string constants, from the jars."""
    if shutil.which("mvn") is None:
        pytest.skip("no mvn to fetch the clients with")
    folder = tmp_path_factory.mktemp("jars")
    items = "".join(
        "<artifactItem><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>"
        f"<version>{release}</version></artifactItem>"
        for release in RELEASES
    )
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
        "<version>1</version><build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>"
        "<artifactId>maven-dependency-plugin</artifactId><version>3.6.1</version><configuration>"
        f"<outputDirectory>{folder}</outputDirectory><artifactItems>{items}</artifactItems></configuration>"
        "</plugin></plugins></build></project>"
    )
    done = subprocess.run(
        ["mvn", "-q", "-B", "-f", str(folder), "dependency:copy"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"the clients cannot be fetched: {done.stdout.strip()[:200]}")
    return {release: dict(_classes(folder / f"kafka-clients-{release}.jar")) for release in RELEASES}


def _classes(jar: Path) -> Iterator[tuple[str, set[str]]]:
    found: dict[str, set[str]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            outer = name.rsplit("/", 1)[-1].removesuffix(".class").split("$")[0]
            if name.endswith(".class") and outer in LOGGERS:
                found.setdefault(outer, set()).update(_constants(archive.read(name)))
    yield from found.items()


def _constants(data: bytes) -> Iterator[str]:
    """The string constants of a class file: JVM specification, 4.4."""
    (count,) = struct.unpack_from(">H", data, 8)
    at, index = 10, 1
    strings: dict[int, str] = {}
    constants: list[int] = []
    while index < count:
        tag = data[at]
        if tag == 1:
            (size,) = struct.unpack_from(">H", data, at + 1)
            strings[index] = data[at + 3 : at + 3 + size].decode("utf-8", "replace")
            at += 3 + size
        else:
            if tag == 8:
                constants.append(struct.unpack_from(">H", data, at + 1)[0])
            at += {7: 3, 8: 3, 15: 4, 16: 3, 19: 3, 20: 3, 5: 9, 6: 9}.get(tag, 5)
            index += tag in (5, 6)
        index += 1
    return (strings[one] for one in constants)


def readings(text: str) -> list[Line]:
    """The rows by which a format is an event, filled in with what stands there in logs."""
    holes = text.count("{}")
    fills = itertools.product(SAMPLES, repeat=holes) if holes < 4 else ([one] * holes for one in SAMPLES)
    found = []
    for fill in fills:
        values = iter(fill)
        first, *others = text.split("{}")
        found_row = match(JAVA, first + "".join(next(values) + other for other in others))
        if found_row is not None and found_row[0].kind is not None:
            found.append(found_row[0])
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_every_text_about_the_group_is_read_or_known(texts, release):
    unknown = [
        text
        for name in LOGGERS
        for text in sorted(texts[release].get(name, ()))
        if ABOUT.match(text) and not any(re.match(one, text) for one in KNOWN) and not readings(text)
    ]
    assert unknown == []


def test_every_row_is_of_the_releases_that_it_says(texts):
    def number(release: str) -> tuple[int, ...]:
        return tuple(map(int, release.split(".")[:2]))

    for line in JAVA.lines:
        if line.kind is None or "consumer protocol" in line.releases:
            continue
        first, _, last = line.releases.split(" (")[0].partition(" -")
        until = number(last) if last.strip() else number(first) if " -" not in line.releases else (99,)
        shipped = {
            release
            for release in RELEASES
            for constants in texts[release].values()
            if any(line in readings(text) for text in constants)
        }
        expected = {release for release in RELEASES if number(first) <= number(release) <= until}
        assert expected <= shipped, (line.start, sorted(expected - shipped))
