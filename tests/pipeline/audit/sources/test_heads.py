"""Lines that are read part by part mean what they mean when each is taken apart as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from rebalance_verifier.pipeline.audit.sources import parsing
from rebalance_verifier.pipeline.audit.sources.heads import Heads
from rebalance_verifier.pipeline.audit.sources.parsing import LineParser
from rebalance_verifier.pipeline.audit.sources.reading import Content, files

LOGS = str(Path(__file__).parents[1] / "logs")

JOINED = "[Consumer clientId=a, groupId=g] Successfully joined group with generation 7"
GIVEN = (
    "Joined group at generation 1 with protocol version 2 and got assignment: Assignment{error=0, "
    "leader='x', leaderUrl='http://x/', offset=5, connectorIds=[orders], taskIds=[orders-0], "
    "revokedConnectorIds=[], delay=0} with rebalance delay: 0"
)
AT = "2026-03-02 10:00:0"
HEADS = (
    f"[{AT}%s,123] INFO ",
    f"{AT}%s.123 INFO 7 --- [main] o.a.k.c.c.i.ConsumerCoordinator : ",
    f"{AT.replace(' ', 'T')}%sZ orders-7d9f-x2x4z app ",
    f"[pod/orders-7d9f-x2x4z/app] {AT}%s,123 INFO ",
    f"[pod/orders-7d9f-x2x4z/app {AT}%s,123 INFO ",
    f"{AT.replace(' ', 'T')}%s.123456Z stdout P [{AT}%s,500] INFO ",
    f"{AT.replace(' ', 'T')}%s.123+01:00 [{AT}%s,500] INFO ",
    f"{AT.replace(' ', 'T')}%s.123Z [{AT}1,123] INFO ",
    f"{AT.replace(' ', 'T')}%s.123456Z stdout P ",
    f'"{AT}%s","INFO",',
    f"<14>1 {AT.replace(' ', 'T')}%sZ host app 7 ID ",
    f"{AT.replace(' ', 'T')}%sZ host app[7]: ",
    f"{AT}%s,INFO,",
    f"{AT}%s {{app=x ",
    f"msg=x {AT}%s ",
    f"Mar  2 10:00:0%s host app[7]: {AT}%s ",
    "1772445600%s23 INFO ",
    "10:00:0%s INFO ",
    "INFO ",
    "",
)
MESSAGES = (
    JOINED,
    f"{JOINED} (org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)",
    f"{JOINED}}} ",
    f'{JOINED} "quoted, row"',
    f"{JOINED} msg=x",
    f"{JOINED} and so on",
    "[Consumer clientId=a, groupId=g] Adding newly assigned partitions: t-0, t-x",
    "[Consumer instanceId=i, clientId=a] b, groupId=g] (Re-)joining group",
    "[Consumer clientId=a, groupId=null] (Re-)joining group",
    "[Consumer clientId=a, groupId=g] Revoke previously assigned partitions [t-0, t-1]",
    "[Consumer clientId=a, groupId=g",
    "[GroupCoordinator 0]: Group g with generation 3 is now empty (__consumer_offsets-1)",
    "[GroupCoordinator 0]: [Consumer clientId=a, groupId=g] (Re-)joining group",
    "[Worker clientId=connect-1, groupId=c] Rebalance started",
    f"[Worker clientId=connect-1, groupId=c] {GIVEN}",
)


def understood(read, whole, monkeypatch):
    """Return all that a parser knows after ``read``; of ``whole`` lines, where that is asked for."""
    with monkeypatch.context() as patched:
        if whole:
            patched.setattr(parsing, "_quick_sources", lambda _: [])
        parser = LineParser(date="2026-03-02")
        read(parser)
    return parser.rows, parser.malformed, parser.counts, parser.until, parser.ends


@pytest.mark.parametrize("head", HEADS)
def test_every_head_with_every_message(head, monkeypatch):
    """Whichever of them the layout is learned of."""
    for first in range(len(MESSAGES)):
        messages = (*MESSAGES[first:], *MESSAGES[:first])
        lines = [head.replace("%s", second) + message for second in "12" for message in messages]

        def read(parser, lines=lines):
            parser.content("a.log", list(enumerate(lines, 1)))

        assert understood(read, False, monkeypatch) == understood(read, True, monkeypatch)


def test_every_log_of_the_tests(monkeypatch):
    def read(parser):
        for file in files(LOGS)[0]:
            parser.content(file, Content(file))

    assert understood(read, False, monkeypatch) == understood(read, True, monkeypatch)


def test_a_layout_is_learned_once_and_its_times_are_read(monkeypatch):
    """Else the tests above hold of nothing."""
    heads = Heads("UTC", LineParser()._at, ())
    text = f"[2026-03-02 10:00:01,123] INFO {JOINED}"
    begins = text.index("[Consumer")
    first = heads.read(text, begins)
    learned: list[str] = []
    monkeypatch.setattr(Heads, "_learned", lambda *_: learned.append("again"))
    second = heads.read(text.replace("10:00:01,123", "23:59:59,001"), begins)
    assert first
    assert second
    assert not learned
    assert second[1] - first[1] == ((13 * 60 + 59) * 60 + 58) * 1_000_000 - 122_000
    for wrong in ("2026-03-02 10:00:61,123", "2026-03-02 25:00:01,123", "2026-13-02 10:00:01,123"):
        assert heads.read(text.replace("2026-03-02 10:00:01,123", wrong), begins) is None
