"""A second generator of event logs with planted violations, which shares no code with the first (``logs``).

Groups of four EAGER consumers rebalance every two minutes, since one of them starts again each time; in some
groups one thing goes wrong. Rows are plain tuples, group after group; DuckDB writes them as Parquet.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

MEMBERS, PARTITIONS, GENERATIONS = 4, 24, 50
EVERY = 120_000_000
"""Microseconds between generations."""
WRONG = 25
"""The generation in which something goes wrong."""
START = 1_780_000_000_000_000

FAULTS = (
    "owned-twice",
    "granted-before-revoked",
    "owned-by-zombie",
    "stranded",
    "never-settles",
    "rebalance-storm",
    "needless-movement",
    "long-pause",
)
ONE_IN = 5
"""Of so many groups one has a fault."""

Row = tuple[int, str, str | None, int | None, int | None]
"""When, what, which member, generation, partition."""
Mark = tuple[str, int | None, int]
"""Check, partition, when."""


class Group:
    """One group; ``rows`` and ``marks`` are made at once."""

    def __init__(self, number: int, seed: int) -> None:
        self.random = Random(f"{seed}/{number}")
        self.name = f"second-{number:06}"
        self.fault = FAULTS[number // ONE_IN % len(FAULTS)] if number % ONE_IN == 0 else ""
        self.offset = [self.random.randrange(-15_000, 15_000) for _ in range(MEMBERS)]
        self.start = START + self.random.randrange(3_600_000_000)
        self.life = [0] * MEMBERS
        self.rows: list[tuple[int, str, int, int | None, int | None, int]] = []
        self.marks: list[Mark] = []
        self.owner: list[int] = []
        for k in range(GENERATIONS):
            self.generation(k)
        self.ending(self.start + (GENERATIONS - 1) * EVERY + 1_000_000_000)

    def note(self, at: int, kind: str, who: int, generation: int | None, part: int | None = None) -> int:
        at += self.offset[who]
        self.rows.append((at, kind, who, generation, part, self.life[who]))
        return at

    def generation(self, k: int) -> None:
        at, wrong = self.start + k * EVERY, self.fault if k == WRONG else ""
        fresh = -1 if wrong == "needless-movement" else k % MEMBERS
        absent = (k + 1) % MEMBERS if wrong == "owned-by-zombie" else -1
        present = [m for m in range(MEMBERS) if m != absent]
        before = self.owner
        after = [self.random.choice(present) for _ in range(PARTITIONS)]
        special = None
        if wrong == "needless-movement":
            after = list(before)
            special = 0
            after[0] = (before[0] + 1) % MEMBERS
        elif wrong in ("owned-twice", "granted-before-revoked", "stranded"):
            special = next(p for p in range(PARTITIONS) if before[p] != fresh)
            after[special] = next(m for m in present if m not in (before[special], fresh))
        for part, who in enumerate(before):
            if who < 0 or who == absent:
                continue
            gone = at - (3_000_000 if who == fresh else 500_000)
            if part == special and wrong == "owned-twice":
                self.note(at + 8_000_000, "revoked", who, k + 1, part)
            elif part == special and wrong == "granted-before-revoked":
                self.note(at - 100_000, "revoked", who, k + 1, part)
            else:
                left = self.note(gone, "revoked", who, k, part)
                if part == special:
                    self.marks.append((wrong, part, left))
        if fresh >= 0 and k:
            self.note(at - 2_000_000, "closed", fresh, k)
            self.life[fresh] += 1
            self.note(at - 1_000_000, "started", fresh, None)
        for who in present:
            self.note(at - 400_000, "joining", who, k or None)
            self.note(at + 1_000 * who, "joined", who, k + 1)
            self.note(at + 6_000 + 1_000 * who, "synced", who, k + 1)
        for part, who in enumerate(after):
            if part == special and wrong == "stranded":
                after[part] = -1
                continue
            got = self.note(at + 20_000, "assigned", who, k + 1, part)
            if part == special and wrong in ("owned-twice", "granted-before-revoked"):
                self.marks.append((wrong, part, got))
            if absent >= 0 and before[part] == absent:
                self.marks.append((wrong, part, got))
        if absent >= 0:
            for part in (p for p, who in enumerate(before) if who == absent):
                self.note(at + 20_000_000, "lost", absent, k, part)
        self.owner = after

    def ending(self, at: int) -> None:
        last = GENERATIONS
        if self.fault == "never-settles":
            first = min(self.note(at, "joining", who, last) for who in range(MEMBERS))
            self.marks.append((self.fault, None, first))
        elif self.fault == "rebalance-storm":
            began = []
            for more in range(12):
                self.life = [life + 1 for life in self.life]
                for who in range(MEMBERS):
                    began.append(self.note(at + more * 20_000_000, "joined", who, last + 1 + more))
                    self.note(at + more * 20_000_000 + 5_000, "synced", who, last + 1 + more)
            self.marks.append((self.fault, None, min(began)))
        elif self.fault == "long-pause":
            for part, who in enumerate(self.owner):
                self.marks.append((self.fault, part, self.note(at, "revoked", who, last, part)))
            for step in range(8):
                for who in range(MEMBERS):
                    self.note(at + 1_000 + step * 50_000_000, "joining", who, last)
            self.life = [life + 1 for life in self.life]
            for who in range(MEMBERS):
                self.note(at + 360_000_000, "joined", who, last + 1)
                self.note(at + 360_006_000, "synced", who, last + 1)
            for part, who in enumerate(self.owner):
                self.note(at + 360_020_000, "assigned", who, last + 1, part)

    def events(self) -> Iterator[tuple[object, ...]]:
        """at, kind, group, consumer, member, generation, topic, partition, host, source, file, line."""
        in_order = sorted(self.rows, key=lambda row: row[0])
        for line, (at, kind, who, generation, part, life) in enumerate(in_order, 1):
            consumer = f"{self.name}-c{who}"
            yield (
                *(at, kind, self.name, consumer, f"{consumer}-{life}", generation),
                *(None if part is None else "things", part, f"{self.name}-h{who}"),
                *("events", f"{self.name}.jsonl", line),
            )


def write(directory: Path, *, events: int, seed: int) -> int:
    """Write about so many events to ``events`` and what is planted to ``truth``; returns how many."""
    import duckdb

    groups = max(ONE_IN * len(FAULTS), round(events / 3_200))
    count = end = 0
    (directory / "events").mkdir(parents=True)
    (directory / "truth").mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        truth = Path(scratch, "truth.csv")
        with truth.open("w", newline="") as marks:
            for part, first in enumerate(range(0, groups, 500)):
                rows = Path(scratch, "rows.csv")
                with rows.open("w", newline="") as stream:
                    for number in range(first, min(first + 500, groups)):
                        group = Group(number, seed)
                        csv.writer(stream).writerows(group.events())
                        count, end = count + len(group.rows), max(end, max(row[0] for row in group.rows))
                        csv.writer(marks).writerows(
                            (check, group.name, None if p is None else "things", p, at)
                            for check, p, at in group.marks
                        )
                    if first + 500 >= groups:  # the log goes on after everybody has come to rest
                        last = (end + 400_000_000, "assigned", "last", "last-c", "last-m", 1, "things", 0)
                        csv.writer(stream).writerow((*last, "last-h", "events", "last.jsonl", 1))
                        count += 1
                duckdb.sql(
                    f"""
                    COPY (
                        SELECT make_timestamptz("at") AS "at", * EXCLUDE ("at")
                        FROM read_csv('{rows}', header = false, columns = {{
                            'at': 'BIGINT', 'kind': 'VARCHAR', 'group': 'VARCHAR', 'consumer': 'VARCHAR',
                            'member': 'VARCHAR', 'generation': 'INTEGER', 'topic': 'VARCHAR',
                            'partition': 'INTEGER', 'host': 'VARCHAR', 'source': 'VARCHAR', 'file': 'VARCHAR',
                            'line': 'BIGINT'
                        }})
                    ) TO '{directory}/events/part-{part}.parquet' (FORMAT parquet)
                    """
                )
        duckdb.sql(
            f"""
            COPY (
                SELECT * EXCLUDE ("at"), make_timestamptz("at") AS began
                FROM read_csv('{truth}', header = false, columns = {{
                    'check': 'VARCHAR', 'group': 'VARCHAR', 'topic': 'VARCHAR', 'partition': 'INTEGER',
                    'at': 'BIGINT'
                }})
            ) TO '{directory}/truth/part-0.parquet' (FORMAT parquet)
            """
        )
    return count
